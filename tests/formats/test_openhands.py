from __future__ import annotations

from typing import Any

import pytest
from compaction import LONG, round_trip, value_of
from opening import inserted, message, open_one, shortened

from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import UnknownShape
from compactor_cli.model.transcript import Media, Role, Text, ToolCall, ToolResult


def action(number: int, kind: str, source: str = "agent", **args: Any) -> dict[str, Any]:
    stamp = f"2026-01-01T00:00:{number:02d}"
    return {"id": number, "timestamp": stamp, "source": source, "message": "", "action": kind, "args": args}


def observed(number: int, cause: int, text: str, kind: str = "run", **extras: Any) -> dict[str, Any]:
    known = {"id": number, "source": "agent", "cause": cause, "observation": kind}
    return {**known, "content": text, "extras": extras}


def called(event: dict[str, Any], call: str, answer: str = "r1", count: int = 1) -> dict[str, Any]:
    written = [{"id": call, "function": {"name": "execute_bash", "arguments": '{"command": "ls"}'}}]
    choices = [{"message": {"tool_calls": written}}]
    response = {"id": answer, "model": "claude", "choices": choices}
    metadata = {"function_name": "execute_bash", "tool_call_id": call, "model_response": response}
    return {**event, "tool_call_metadata": {**metadata, "total_calls_in_response": count}}


ASK = action(0, "message", "user", content="Saw the oak.", image_urls=["data:abc"])
STATE = {"id": 1, "observation": "agent_state_changed", "content": "", "extras": {"agent_state": "running"}}


def test_actions_and_observations() -> None:
    run = called(action(2, "run", command="ls", thought="I look.", hidden=False), "t1")
    transcript = open_one(
        [ASK, STATE, run, called(observed(3, 2, "a.txt"), "t1"), action(4, "finish", thought="Done.")]
    )
    assert (transcript.dialect, transcript.model) == ("openhands", "claude")
    assert transcript.messages[0].parts == (Text(text="Saw the oak."), Media(kind="image", size_bytes=8))
    assert transcript.messages[1].is_meta
    assert transcript.messages[2].parts == (
        Text(text="I look."),
        ToolCall(id="t1", name="execute_bash", arguments={"command": "ls"}),
    )
    assert transcript.messages[3].parts == (ToolResult(id="t1", text="a.txt", name="execute_bash"),)
    assert transcript.messages[4].parts == (Text(text="Done."),)


def test_without_ids_the_cause_ties() -> None:
    transcript = open_one([ASK, action(2, "run", command="ls", thought=""), observed(3, 2, "broke", exit_code=1)])
    assert transcript.messages[1].calls[0].arguments == {"command": "ls"}
    assert transcript.messages[2].results[0].is_error
    assert not group(transcript.messages).orphan_calls


def test_calls_of_one_answer_are_a_group() -> None:
    both = [called(action(i, "run", command="ls"), f"t{i}", count=2) for i in (2, 3)]
    assert [found.group for found in open_one([ASK, *both]).messages] == ["", "r1", "r1"]


def test_a_condensation_says_what_is_not_shown_any_more() -> None:
    condensed = action(
        9, "condensation", forgotten_events_start_id=0, forgotten_events_end_id=2, summary="Oak.", summary_offset=0
    )
    messages = open_one(
        [ASK, action(2, "message", content="Yes."), action(3, "message", content="b"), condensed]
    ).messages
    assert [found.superseded for found in messages] == [True, True, False, False]
    assert messages[3].summary is not None
    assert (messages[3].role, messages[3].summary.text) == (Role.USER, "Oak.")


def test_old_rows_hold_pairs() -> None:
    nothing = {"message": "No observation", "observation": "null", "content": "", "extras": {}}
    pairs = [[ASK, nothing], [action(2, "run_ipython", code="1", thought="So."), observed(3, 2, "1")]]
    transcript = open_one({"instance_id": 1, "history": pairs, "metadata": {"model_name": "gpt-4o"}})
    assert (transcript.dialect, transcript.model) == ("openhands", "gpt-4o")
    assert transcript.messages[1].parts[1:] == (
        ToolCall(id="event-2", name="run_ipython", arguments={"code": "1"}),
        ToolResult(id="event-2", text="1"),
    )
    (summary,) = inserted(transcript, 1, "So far.")
    assert (summary[0]["action"], summary[1]) == ("message", nothing)


def test_a_summary_is_a_condensation_with_the_number_of_a_removed_event() -> None:
    turns = [
        part
        for i in range(2, 22, 2)
        for part in (action(i, "run", command="ls", thought=LONG), observed(i + 1, i, LONG))
    ]
    again = round_trip([ASK, *turns, action(30, "message", "user", content="And now?")], "openhands", indent=2)
    events = value_of(again)
    numbers = [event["id"] for event in events]
    assert numbers == sorted(set(numbers))
    (condensed,) = (event for event in events if event.get("action") == "condensation")
    assert condensed["args"]["forgotten_events_start_id"] == condensed["id"] + 1
    assert condensed["args"]["summary_offset"] == numbers.index(condensed["id"])


def test_shortened_events() -> None:
    assert shortened("openhands", observed(3, 2, "long"), {0: "…"}) == observed(3, 2, "…")
    assert message("openhands", observed(3, 2, "long")).role is Role.TOOL


def flat(turns: int) -> list[dict[str, Any]]:
    """The history of a row of the resolver as of 2024: no numbers, times, speakers, args or extras."""
    found: list[dict[str, Any]] = [
        {
            "content": "Fix it.",
            "images_urls": None,
            "wait_for_response": False,
            "action": "message",
            "action_risk": None,
        }
    ]
    for i in range(turns):
        run = {"command": f"ls {i}", "thought": f"I look. {LONG}", "keep_prompt": True, "action": "run"}
        seen = {"content": f"a.txt {LONG}", "command_id": -1, "command": f"ls {i}", "exit_code": i % 2}
        found += [{**run, "is_confirmed": "confirmed", "action_risk": None}, {**seen, "observation": "run"}]
    return [*found, {"outputs": {}, "thought": "Done.", "action": "finish"}]


def test_flat_events_of_the_resolver_are_read_in_their_order() -> None:
    transcript = open_one({"issue": {"number": 1}, "instruction": "Fix it.", "history": flat(2), "success": True})
    assert transcript.dialect == "openhands"
    roles = [message.role for message in transcript.messages]
    assert roles == [Role.USER, *[Role.ASSISTANT, Role.TOOL] * 2, Role.ASSISTANT]
    assert transcript.messages[1].calls == (ToolCall(id="", name="run", arguments={"command": "ls 0"}),)
    assert [result.is_error for message in transcript.messages for result in message.results] == [False, True]
    assert transcript.messages[-1].text == "Done."


def test_flat_events_are_compacted_with_a_message_like_theirs() -> None:
    again = round_trip({"issue": {"number": 1}, "history": flat(12), "success": True}, "openhands")
    new = next(i for i, message in enumerate(again.messages) if message.summary)
    assert list(again.records[new].value) == ["content", "wait_for_response", "action"]


def test_steps_of_an_agent_of_ones_own_are_no_events() -> None:
    step = {"thought": "I look.", "action": "search", "action_input": "oak"}
    with pytest.raises(UnknownShape):
        open_one(step, step, [step, step])
