from __future__ import annotations

import json
from typing import Any

from opening import inserted, message, open_one, shortened

from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Role, Text, Thinking, ToolCall, ToolResult


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def response(name: str, content: Any) -> str:
    body = json.dumps({"tool_call_id": "x", "name": name, "content": content}, ensure_ascii=False)
    return f"<tool_response>\n{body}\n</tool_response>"


CALLS = {
    "from": "gpt",
    "value": f"<think>\nWhich saw?\n</think>\nSawing now.\n{call('saw', wood='oak')}\n{call('plane')}",
}
RESPONSES = {"from": "tool", "value": f"{response('saw', 'two boards')}\n{response('plane', {'smooth': True})}"}
START = [
    {"from": "system", "value": "You are a carpenter. <tools>[]</tools>"},
    {"from": "human", "value": "Make a shelf."},
]
ROW = {"conversations": [*START, CALLS, RESPONSES, {"from": "gpt", "value": "Done."}], "metadata": {"id": 1}}


def test_tags_are_thinking_words_calls_and_results() -> None:
    transcript = open_one(ROW)
    assert transcript.dialect == "hermes"
    assert transcript.messages[2].parts == (
        Thinking(text="Which saw?"),
        Text(text="Sawing now."),
        ToolCall(id="", name="saw", arguments={"wood": "oak"}),
        ToolCall(id="", name="plane", arguments={}),
    )
    assert transcript.messages[3].role is Role.TOOL
    assert transcript.messages[3].parts == (
        ToolResult(id="", text="two boards", name="saw"),
        ToolResult(id="", text='{"smooth":true}', name="plane"),
    )


def test_calls_and_results_of_one_turn_are_paired_by_order() -> None:
    found = group(open_one(ROW).messages)
    assert not found.orphan_calls
    assert not found.orphan_results


def test_one_answer_to_two_calls_stands_for_both() -> None:
    row = {"conversations": [*START, CALLS, {"from": "tool", "value": response("saw", "two boards")}]}
    assert not group(open_one(row).messages).orphan_calls


def test_a_call_that_is_no_json_and_a_response_that_is_only_words() -> None:
    assert message("hermes", {"from": "gpt", "value": "<tool_call>\nsaw(\n</tool_call>"}).calls[0].arguments == "saw("
    (result,) = message("hermes", {"from": "tool", "value": "<tool_response>\ntwo boards\n</tool_response>"}).results
    assert result.text == "two boards"
    assert message("hermes", {"from": "tool", "value": "two boards"}).results[0].text == "two boards"


def test_an_open_tag_is_words() -> None:
    assert message("hermes", {"from": "gpt", "value": "<tool_call> is how I call"}).calls == ()


def test_a_user_who_writes_of_tags_calls_nothing() -> None:
    assert message("hermes", {"from": "human", "value": call("saw")}).calls == ()


def test_its_compressors_summary_is_a_previous_summary() -> None:
    found = message("hermes", {"from": "human", "value": "[CONTEXT SUMMARY]: The boards are sawn."}).summary
    assert found is not None
    assert (found.origin, found.text) == ("hermes", "The boards are sawn.")


def test_shortened_within_the_tags() -> None:
    new = shortened("hermes", RESPONSES, {0: "two…"})
    assert new["value"] == RESPONSES["value"].replace("two boards", "two…")
    again = shortened("hermes", CALLS, {1: "Sawing…", 2: '{"wood": "o"}'})
    assert again["value"] == CALLS["value"].replace("Sawing now.", "Sawing…").replace('"oak"', '"o"')


def test_thinking_is_never_shortened() -> None:
    assert shortened("hermes", CALLS, {0: "…"}) == CALLS


def test_a_summary_is_a_human_turn() -> None:
    assert inserted(open_one(ROW), 5, "So far.") == [{"from": "human", "value": "So far."}]
