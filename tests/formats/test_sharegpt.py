from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opening import inserted, message, open_one, shortened

from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Role, Text, ToolCall, ToolResult


def turn(speaker: str, value: Any) -> dict[str, Any]:
    return {"from": speaker, "value": value}


CALL = turn("function_call", '{"name": "saw", "arguments": {"wood": "oak"}}')


@pytest.mark.parametrize(
    ("speaker", "role"),
    [
        ("system", Role.SYSTEM),
        ("human", Role.USER),
        ("user", Role.USER),
        ("gpt", Role.ASSISTANT),
        ("assistant", Role.ASSISTANT),
        ("function_call", Role.ASSISTANT),
        ("observation", Role.TOOL),
        ("tool", Role.TOOL),
        ("narrator", Role.META),
    ],
)
def test_speakers(speaker: str, role: Role) -> None:
    assert message("sharegpt", turn(speaker, "x")).role is role


def test_a_call_and_its_observation_have_no_ids() -> None:
    assert message("sharegpt", CALL).parts == (ToolCall(id="", name="saw", arguments={"wood": "oak"}),)
    assert message("sharegpt", turn("observation", "two boards")).parts == (ToolResult(id="", text="two boards"),)


def test_a_call_whose_arguments_are_a_string_or_that_is_no_json() -> None:
    written = json.dumps({"name": "saw", "arguments": '{"wood": "oak"}'})
    assert message("sharegpt", turn("function_call", written)).calls[0].arguments == {"wood": "oak"}
    assert message("sharegpt", turn("function_call", "saw(oak")).calls[0].arguments == "saw(oak"


def test_several_calls_in_one_turn_keep_their_pairs() -> None:
    calls = turn("function_call", json.dumps([{"name": "saw", "arguments": {}}, {"name": "plane", "arguments": {}}]))
    both = open_one({"conversations": [turn("human", "go"), calls, turn("observation", "a"), turn("observation", "b")]})
    one = open_one({"conversations": [turn("human", "go"), calls, turn("observation", '["a", "b"]')]})
    for transcript in (both, one):
        found = group(transcript.messages)
        assert not found.orphan_calls
        assert not found.orphan_results
    assert [result.text for result in one.messages[2].results] == ['["a", "b"]', ""]


def test_the_system_key_of_a_row_is_no_record() -> None:
    transcript = open_one({"conversations": [turn("human", "a"), CALL], "system": "S", "tools": "[]"})
    assert len(transcript.messages) == 2


def test_a_previous_summary() -> None:
    found = message("sharegpt", turn("human", "[CONTEXT SUMMARY]: Oak was sawn.")).summary
    assert found is not None
    assert found.text == "Oak was sawn."


def test_shortened_turns() -> None:
    assert shortened("sharegpt", turn("observation", "long"), {0: "…"}) == turn("observation", "…")
    new = shortened("sharegpt", CALL, {0: "o…"})
    assert json.loads(new["value"]) == {"name": "saw", "arguments": {"shortened": "o…"}}


def test_one_of_several_calls_is_shortened() -> None:
    calls = [{"name": "saw", "arguments": {"a": 1}}, {"name": "plane", "arguments": {"b": 2}}]
    new = shortened("sharegpt", turn("function_call", json.dumps(calls)), {1: "…"})
    assert json.loads(new["value"]) == [calls[0], {"name": "plane", "arguments": {"shortened": "…"}}]


def test_insertions_follow_the_files_own_names_and_keys() -> None:
    row = {
        "conversations": [
            {"from": "user", "value": "a", "weight": None},
            {"from": "assistant", "value": "b", "weight": 1},
        ]
    }
    (summary, answer) = inserted(open_one(row), 2, "So far.", "Understood.")
    assert summary == {"from": "user", "value": "So far.", "weight": 0}
    assert answer == {"from": "assistant", "value": "Understood.", "weight": 0}


def test_insertions_into_a_file_without_such_speakers() -> None:
    added = inserted(open_one(CALL, turn("observation", "x")), 2, "So far.", "Go on.")
    assert added == [turn("gpt", "Understood."), turn("human", "So far."), turn("gpt", "Go on.")]


TAGS = [f"<{mark}{name}>" for name in ("think", "tool_call", "tool_response") for mark in ("", "/")]
JSON = ['{"name": "saw", "arguments": {"a": 1}}', '{"name": "saw", "content": "ok"}', "[1]", "[", "{}"]
PIECE = st.sampled_from([*TAGS, *JSON, "\n", "oak", " ", "<b>"])
VALUE = st.lists(PIECE, max_size=9).map("".join)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["human", "gpt", "tool", "function_call", "observation", "system"]), VALUE)
def test_whatever_a_turn_holds_it_is_read_and_can_be_shortened(speaker: str, value: str) -> None:
    found = message("hermes", turn(speaker, value))
    assert shortened("hermes", turn(speaker, value), {}) == turn(speaker, value)
    texts = {i: "ß" for i, part in enumerate(found.parts) if isinstance(part, Text | ToolResult) and part.text}
    again = message("hermes", shortened("hermes", turn(speaker, value), texts))
    assert [type(part) for part in again.parts] == [type(part) for part in found.parts]
    assert all(again.parts[i].text == "ß" for i in texts)  # type: ignore[union-attr]
