from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import inserted, open_one, shortened

from compactor_cli.model.transcript import Role, Text, Thinking, ToolCall, ToolResult

TIME = "2026-01-01T00:00:00Z"


def request(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"parts": list(parts), "instructions": None, "kind": "request"}


def response(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"parts": list(parts), "model_name": "gpt-4o", "timestamp": TIME, "kind": "response"}


def prompt(content: Any = "Find a flight.") -> dict[str, Any]:
    return {"content": content, "timestamp": TIME, "part_kind": "user-prompt"}


def call(number: int) -> dict[str, Any]:
    return {"tool_name": "search", "args": '{"to": "Lisbon"}', "tool_call_id": f"c{number}", "part_kind": "tool-call"}


def told(number: int, content: Any) -> dict[str, Any]:
    return {"tool_name": "search", "content": content, "tool_call_id": f"c{number}", "part_kind": "tool-return"}


def test_calls_results_and_retries() -> None:
    thinking = {"content": "why", "part_kind": "thinking"}
    retry = {**told(2, "wrong"), "part_kind": "retry-prompt"}
    transcript = open_one(
        [request(prompt()), response(thinking, call(1), call(2)), request(told(1, {"a": 1, "b": 2}), retry)]
    )
    assert (transcript.dialect, transcript.model) == ("pydantic-ai", "gpt-4o")
    assert transcript.messages[1].parts[:2] == (
        Thinking(text="why"),
        ToolCall(id="c1", name="search", arguments={"to": "Lisbon"}),
    )
    assert transcript.messages[2].role is Role.TOOL
    assert transcript.messages[2].results == (
        ToolResult(id="c1", text='{"a":1,"b":2}', name="search"),
        ToolResult(id="c2", text="wrong", name="search", is_error=True),
    )


def test_a_system_prompt_is_kept_with_the_words_beside_it() -> None:
    system = {"content": "You book flights.", "part_kind": "system-prompt"}
    message = open_one([request(system, prompt(["Find", {"url": "https://a/b.png", "kind": "image-url"}]))]).messages[0]
    assert message.role is Role.SYSTEM
    assert [part.text for part in message.parts if isinstance(part, Text)] == ["You book flights.", "Find"]


def test_new_messages_are_requests_with_the_file_s_keys() -> None:
    transcript = open_one([request(prompt()), response({"content": "Yes.", "part_kind": "text"}), request(prompt())])
    summary, answer = inserted(transcript, 1, "So far.", "Understood.")
    assert summary == {"parts": [prompt("So far.")], "kind": "request"}
    assert answer == {"parts": [{"content": "Understood.", "part_kind": "text"}], "kind": "response"}


def test_a_result_is_shortened_in_its_part() -> None:
    assert shortened("pydantic-ai", request(told(1, "long")), {0: "…"}) == request(told(1, "…"))


def test_a_history_is_compacted() -> None:
    steps = [part for i in range(8) for part in (response(call(i)), request(told(i, LONG)))]
    assert len(value_of(round_trip([request(prompt()), *steps, request(prompt())], "pydantic-ai"))) < 17
