from __future__ import annotations

from typing import Any

import pytest
from compaction import LONG, round_trip, value_of
from opening import open_one, open_values, shortened

from compactor_cli.model.transcript import Role, Text, Thinking, ToolCall, ToolResult


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def event(name: str, kind: str, source: str = "agent", **more: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": f"2026-01-01T00:00:00.{name}", "source": source, **more, "kind": kind}


ASK = event("0", "MessageEvent", "user", llm_message={"role": "user", "content": [text("Saw.")]})
PROMPT = event("p", "SystemPromptEvent", system_prompt=text("You saw."), tools=[])


def call(name: str, **more: Any) -> dict[str, Any]:
    asked = {"id": f"c{name}", "name": "terminal", "arguments": '{"command": "ls"}'}
    known = {"thought": [text("I look.")], "tool_name": "terminal", "tool_call_id": f"c{name}", "tool_call": asked}
    return event(name, "ActionEvent", **known, llm_response_id=f"r{name}", **more)


def result(name: str, of: str, words: str) -> dict[str, Any]:
    told = {"content": [text(words)], "is_error": True, "kind": "TerminalObservation"}
    return event(name, "ObservationEvent", "environment", observation=told, tool_call_id=f"c{of}", tool_name="terminal")


def test_events_alone_in_lines_and_in_arrays() -> None:
    for values in ([[PROMPT, ASK, call("1")]], [PROMPT, ASK, call("1")]):
        transcript = open_one(*values)
        assert transcript.dialect == "openhands-v1"
        assert [found.role for found in transcript.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT]
    assert [len(found.records) for found in open_values(PROMPT, ASK, PROMPT, ASK)] == [2, 2]


def test_calls_results_and_rejections() -> None:
    rejected = event("3", "UserRejectObservation", "user", rejection_reason="No.", tool_call_id="c1", tool_name="t")
    messages = open_one([ASK, call("1", reasoning_content="why"), result("2", "1", "a.txt"), rejected]).messages
    assert messages[1].parts == (
        Thinking(text="why"),
        Text(text="I look."),
        ToolCall(id="c1", name="terminal", arguments={"command": "ls"}),
    )
    assert messages[2].parts == (ToolResult(id="c1", text="a.txt", name="terminal", is_error=True),)
    assert messages[3].results[0].text == "No."


def test_bookkeeping_and_condensations() -> None:
    state = event(
        "s", "ConversationStateUpdateEvent", "environment", key="agent", value={"agent": {"llm": {"model": "m"}}}
    )
    condensed = event("c", "Condensation", "environment", forgotten_event_ids=["0"], summary="Oak.", summary_offset=0)
    transcript = open_one([ASK, state, condensed])
    assert transcript.model == "m"
    assert [found.is_meta for found in transcript.messages] == [False, True, False]
    assert transcript.messages[0].superseded
    assert transcript.messages[2].summary is not None


def test_a_summary_is_a_condensation_of_the_removed_events() -> None:
    turns = [part for i in range(1, 21) for part in (call(str(i)), result(f"{i}r", str(i), LONG))]
    events = value_of(round_trip([PROMPT, ASK, *turns, {**ASK, "id": "end"}], "openhands-v1"))
    (condensed,) = (found for found in events if found["kind"] == "Condensation")
    assert set(condensed["forgotten_event_ids"]).isdisjoint(found["id"] for found in events)
    assert "1" in condensed["forgotten_event_ids"]
    assert condensed["summary_offset"] == events.index(condensed)


def test_a_result_is_shortened_in_its_block() -> None:
    assert shortened("openhands-v1", result("2", "1", "long"), {0: "…"}) == result("2", "1", "…")


@pytest.mark.parametrize("observation", [None, True, "text"])
def test_a_result_that_holds_no_observation_stays_as_it_is(observation: Any) -> None:
    odd = {**result("2", "1", ""), "observation": observation}
    assert shortened("openhands-v1", odd, {0: "…"}) == odd
