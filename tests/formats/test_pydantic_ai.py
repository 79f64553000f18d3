from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import inserted, open_one, shortened

from compactor_cli.formats.harness import user_text
from compactor_cli.model.transcript import Media, Role, Text, Thinking, ToolCall, ToolResult

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


def test_a_system_prompt_is_kept_with_the_words_next_to_it() -> None:
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


def test_what_the_application_says_in_a_request_is_read_and_is_none_of_the_users_words() -> None:
    cause = {"cause": "validation_error", "attempt": 1, "max_retries": 3}
    error = {"type": "missing", "loc": ["city"], "msg": "Field required", "input": {"town": "Lisbon"}}
    feedback = {"retry": cause, "timestamp": TIME, "part_kind": "retry-feedback"}
    instruction = {"content": "Now book trains.", "dynamic": False, "part_kind": "instruction"}
    changed = {"id": "agent", "content": "Be brief.", "base_hash": None, "part_kind": "instruction-delta"}
    baseline = {"instructions": [instruction], "part_kind": "instruction-baseline"}
    switched = {"tools_added": ["search"], "tool_call_id": None, "part_kind": "tool-availability-delta"}
    transcript = open_one(
        [
            request(baseline, prompt()),
            response({"content": "No.", "part_kind": "text"}),
            request({**feedback, "content": [error]}),
            request({**feedback, "content": "Name a city."}, switched),
            request(changed),
            request(prompt(["Find", {"content": "a hotel", "metadata": {}, "kind": "text-content"}])),
        ]
    )
    assert [message.text for message in transcript.messages][::5] == [
        "Now book trains.\nFind a flight.",
        "Find\na hotel",
    ]
    assert "Field required" in transcript.messages[2].text
    assert [message.text for message in transcript.messages[3:5]] == ["Name a city.", "Be brief."]
    assert transcript.messages[4].role is Role.SYSTEM
    assert [user_text(message) for message in transcript.messages] == [
        "Find a flight.",
        "",
        "",
        "",
        "",
        "Find\na hotel",
    ]
    assert not any(isinstance(part, Media) for message in transcript.messages for part in message.parts)


def test_a_compaction_of_the_library_is_a_summary() -> None:
    part = {"content": "They flew to Lisbon.", "provider_name": None, "part_kind": "compaction"}
    sealed = {"content": None, "provider_name": "openai", "provider_details": {"x": "y"}, "part_kind": "compaction"}
    messages = open_one([request(part), response({**part, "provider_name": "anthropic"}), response(sealed)]).messages
    assert [message.summary and message.summary.text for message in messages] == [*["They flew to Lisbon."] * 2, None]
    assert shortened("pydantic-ai", request(part), {0: "…"}) == request({**part, "content": "…"})


def test_a_result_that_asks_for_another_try_is_an_error_and_speech_is_read() -> None:
    speech = {"speaker": "user", "transcript": "Find a train.", "audio": None, "part_kind": "speech"}
    transcript = open_one([request(speech), response(call(1)), request({**told(1, "no"), "outcome": "retried"})])
    assert user_text(transcript.messages[0]) == "Find a train."
    assert transcript.messages[2].results[0].is_error
