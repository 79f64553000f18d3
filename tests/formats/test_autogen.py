from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import inserted, open_one, shortened

from compactor_cli.model.transcript import Role, Thinking, ToolCall, ToolResult


def said(kind: str, content: Any, source: str = "agent", **more: Any) -> dict[str, Any]:
    return {"content": content, "source": source, **more, "type": kind}


ASK = said("UserMessage", "A unicycle exploded.", "User")
TASK = said("TextMessage", "Book a flight.", "boss")


def call(number: int, kind: str = "AssistantMessage") -> dict[str, Any]:
    return said(kind, [{"id": f"c{number}", "arguments": '{"item": "unicycle"}', "name": "refund"}])


def told(number: int, text: str) -> dict[str, Any]:
    result = {"content": text, "name": "refund", "call_id": f"c{number}", "is_error": True}
    return {"content": [result], "type": "FunctionExecutionResultMessage"}


def test_the_context_of_a_model() -> None:
    state = {"type": "AssistantAgentState", "llm_context": {"messages": [ASK, call(1), told(1, "no")]}}
    transcript = open_one(state)
    assert transcript.dialect == "autogen"
    assert [message.role for message in transcript.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert transcript.messages[1].calls == (ToolCall(id="c1", name="refund", arguments={"item": "unicycle"}),)
    assert transcript.messages[2].results == (ToolResult(id="c1", text="no", name="refund", is_error=True),)


def test_the_first_speaker_of_a_team_sets_the_task() -> None:
    events = [call(1, "ToolCallRequestEvent"), {**told(1, "no"), "source": "a", "type": "ToolCallExecutionEvent"}]
    conversation = [TASK, said("ThoughtEvent", "why"), *events, said("TextMessage", "Done."), TASK]
    messages = open_one({"messages": conversation, "stop_reason": "done"}).messages
    roles = [Role.USER, Role.ASSISTANT, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.USER]
    assert [message.role for message in messages] == roles
    assert messages[1].parts == (Thinking(text="why"),)


def test_new_messages_are_of_the_file_s_kind_and_speakers() -> None:
    of_models = inserted(open_one([ASK, said("AssistantMessage", "Yes."), ASK]), 1, "So far.", "Understood.")
    assert of_models == [said("UserMessage", "So far.", "User"), said("AssistantMessage", "Understood.")]
    assert inserted(open_one([TASK, said("TextMessage", "Yes.")]), 1, "So far.") == [
        said("TextMessage", "So far.", "boss")
    ]


def test_a_result_is_shortened_in_its_content() -> None:
    assert shortened("autogen", told(1, "long"), {0: "…"}) == told(1, "…")


def test_a_saved_state_stays_what_it_was_around_its_messages() -> None:
    steps = [part for i in range(8) for part in (call(i), told(i, LONG))]
    state = {"version": "1.0.0", "llm_context": {"messages": [ASK, *steps, ASK]}}
    assert value_of(round_trip(state, "autogen"))["version"] == "1.0.0"
