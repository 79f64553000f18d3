from __future__ import annotations

from typing import Any

import pytest
from compaction import LONG, round_trip, value_of
from opening import inserted, message, open_one, shortened

from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Media, Role, Text, Thinking, ToolCall, ToolResult


def content(role: str, *parts: Any) -> dict[str, Any]:
    return {"parts": list(parts), "role": role}


def call(**more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "saw", "args": {"wood": "oak"}, **more}, "thoughtSignature": "s" * 40}


def response(told: Any, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": "saw", "response": told, **more}}


ASK = content("user", {"text": "Saw the oak."})


@pytest.mark.parametrize("value", [{"contents": [ASK]}, {"request": {"contents": [ASK]}}, [ASK], {"history": [ASK]}])
def test_where_the_contents_are(value: Any) -> None:
    assert open_one(value).dialect == "gemini-contents"


def test_calls_without_ids_are_paired_by_order() -> None:
    transcript = open_one(
        {"contents": [ASK, content("model", call(), call()), content("user", response({"a": 1}), response({"b": 2}))]}
    )
    assert transcript.messages[1].calls == (ToolCall(id="", name="saw", arguments={"wood": "oak"}),) * 2
    assert transcript.messages[2].role is Role.TOOL
    found = group(transcript.messages)
    assert [(pair.call.part, pair.result.part) for pair in found.pairs] == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"text": "why", "thought": True}, Thinking(text="why")),
        ({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, Media(kind="inlineData", size_bytes=13)),
        ({"function_call": {"name": "f", "args": {}}}, ToolCall(id="", name="f", arguments={})),
        (response({"return_value": "two"}, id="7"), ToolResult(id="7", text="two", name="saw")),
        (response({"error": "no oak"}), ToolResult(id="", text="no oak", name="saw", is_error=True)),
        ({"executableCode": {"code": "1"}}, Text(text="1")),
    ],
)
def test_parts(part: Any, expected: Any) -> None:
    assert message("gemini-contents", content("model", part)).parts == (expected,)


def test_code_that_ran_at_the_provider_s_is_a_pair() -> None:
    ran = [{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}]
    found = message("gemini-contents", content("model", *ran))
    assert (found.calls[0].arguments, found.results[0].text) == ({"code": "1"}, "1")


def test_insertions_have_the_file_s_key_order() -> None:
    (summary, answer) = inserted(open_one({"contents": [ASK, ASK]}), 1, "So far.", "Understood.")
    assert list(summary.items()) == [("parts", [{"text": "So far."}]), ("role", "user")]
    assert answer["role"] == "model"


def test_responses_stay_objects() -> None:
    new = shortened("gemini-contents", content("user", response({"return_value": "long"})), {0: "…"})
    assert new["parts"][0]["functionResponse"]["response"] == {"return_value": "…"}
    new = shortened("gemini-contents", content("user", response({"a": "long", "b": 1})), {0: "…"})
    assert new["parts"][0]["functionResponse"]["response"] == {"output": "…"}
    new = shortened("gemini-contents", content("model", call()), {0: '{"wood": "o…"}'})
    assert new["parts"][0] == {**call(), "functionCall": {"name": "saw", "args": {"wood": "o…"}}}


def test_a_request_stays_what_it_was_around_its_contents() -> None:
    turns = [part for _ in range(8) for part in (content("model", call()), content("user", response({"r": LONG})))]
    again = round_trip({"contents": [ASK, *turns, ASK], "tools": [{"googleSearch": {}}], "odd": 1}, "gemini-contents")
    value = value_of(again)
    assert (value["tools"], value["odd"]) == ([{"googleSearch": {}}], 1)
    assert all(set(found) == {"parts", "role"} for found in value["contents"])


def test_the_array_of_an_early_log_is_read() -> None:
    log = [{"type": "user", "text": "Saw it.", "ts": "t1"}, {"type": "model", "parts": [{"text": "Done."}], "ts": "t2"}]
    transcript = open_one(log)
    assert transcript.dialect == "gemini-contents"
    assert [(m.role, m.text, m.timestamp) for m in transcript.messages] == [
        (Role.USER, "Saw it.", "t1"),
        (Role.ASSISTANT, "Done.", "t2"),
    ]
    assert list(inserted(transcript, 1, "Noted.")[0]) == ["type", "parts"]


def test_a_long_early_log_is_compacted() -> None:
    entries = [
        {"type": "user", "text": f"{LONG} {i}"} if i % 2 == 0 else {"type": "model", "parts": [{"text": f"{LONG} {i}"}]}
        for i in range(20)
    ]
    after = round_trip(entries, "gemini-contents")
    assert {entry["type"] for entry in value_of(after)} == {"user", "model"}
