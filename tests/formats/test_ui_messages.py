from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import inserted, open_one, shortened

from compactor_cli.model.transcript import Role, Text, Thinking, ToolCall, ToolResult


def asked(text: str = "Find a flight.") -> dict[str, Any]:
    return {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}


def tool(number: int, **state: Any) -> dict[str, Any]:
    return {"type": "tool-search", "toolCallId": f"c{number}", "input": {"to": "Lisbon"}, **state}


def answered(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": "m2", "role": "assistant", "parts": [{"type": "step-start"}, *parts]}


def test_a_part_is_a_call_and_its_result() -> None:
    words = {"type": "text", "text": "None.", "state": "done"}
    failed = tool(2, state="output-error", errorText="no network")
    thinking = {"type": "reasoning", "text": "why"}
    done = answered(thinking, tool(1, state="output-available", output={"fare": 90}), failed, words)
    transcript = open_one({"id": "chat", "messages": [asked(), done]})
    assert transcript.dialect == "ui-messages"
    assert transcript.messages[1].parts == (
        Thinking(text="why"),
        ToolCall(id="c1", name="search", arguments={"to": "Lisbon"}),
        ToolResult(id="c1", text='{"fare":90}', name="search"),
        ToolCall(id="c2", name="search", arguments={"to": "Lisbon"}),
        ToolResult(id="c2", text="no network", name="search", is_error=True),
        Text(text="None."),
    )


def test_a_call_in_flight_has_no_result() -> None:
    dynamic = {**tool(1, state="input-available"), "type": "dynamic-tool", "toolName": "seek"}
    assert open_one([asked(), answered(dynamic)]).messages[1].parts == (
        ToolCall(id="c1", name="seek", arguments={"to": "Lisbon"}),
    )


def test_a_call_that_the_user_turned_down_is_answered_by_their_reason() -> None:
    denied = {"state": "output-denied", "approval": {"id": "a", "approved": False}}
    reason = {"state": "output-denied", "approval": {"id": "b", "approved": False, "reason": "too dear"}}
    results = open_one([asked(), answered(tool(1, **reason), tool(2, **denied))]).messages[1].results
    assert [(result.text, result.is_error) for result in results] == [("too dear", True), ("output-denied", True)]


def test_messages_of_version_4_with_their_copies() -> None:
    call = {"state": "result", "toolCallId": "c1", "toolName": "search", "args": {}, "result": "one"}
    parts = [{"type": "tool-invocation", "toolInvocation": call}, {"type": "text", "text": "So."}]
    message = {"role": "assistant", "content": "So.", "toolInvocations": [call], "parts": parts}
    transcript = open_one([{"role": "user", "content": "Find a flight."}, message])
    assert [found.role for found in transcript.messages] == [Role.USER, Role.ASSISTANT]
    assert transcript.messages[1].results == (ToolResult(id="c1", text="one", name="search"),)
    short = shortened("ui-messages", message, {1: "…", 2: "S"})
    assert (short["content"], short["parts"][1]["text"]) == ("S", "S")
    assert short["toolInvocations"] == [short["parts"][0]["toolInvocation"]] == [{**call, "result": "…"}]


def test_plain_messages_with_a_content_are_chat() -> None:
    assert open_one([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]).dialect == "openai-chat"


def test_a_new_message_has_an_id_and_one_part() -> None:
    (summary,) = inserted(open_one([asked(), asked()]), 1, "So far.")
    assert summary == {**asked("So far."), "id": summary["id"]}
    assert summary["id"] != "m1"


def test_a_chat_is_compacted() -> None:
    steps = [part for i in range(8) for part in (asked(), answered(tool(i, state="output-available", output=LONG)))]
    assert value_of(round_trip({"id": "chat", "messages": steps}, "ui-messages"))["id"] == "chat"
