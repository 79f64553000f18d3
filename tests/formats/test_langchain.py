from __future__ import annotations

from typing import Any

import pytest
from compaction import LONG, round_trip, value_of
from opening import inserted, message, open_one, shortened

from compactor_cli.model.transcript import Role, Text, ToolCall, ToolResult

ARGS = {"wood": "oak"}
CALL = {"name": "saw", "args": ARGS, "id": "c1", "type": "tool_call"}


def plain(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "content": content, **more}


def lc(name: str, content: Any, **more: Any) -> dict[str, Any]:
    kwargs = {"content": content, "type": name.removesuffix("Message").lower(), **more}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


ASK = lc("HumanMessage", "Saw the oak.")


@pytest.mark.parametrize(
    "value",
    [
        [ASK],
        {"messages": [plain("human", "Saw.", additional_kwargs={})]},
        {"values": {"messages": [plain("human", "Saw.")]}},
        [{"type": "human", "data": {"content": "Saw."}}],
    ],
)
def test_shapes(value: Any) -> None:
    transcript = open_one(value)
    assert transcript.dialect == "langchain"
    assert transcript.messages[0].role is Role.USER
    assert transcript.messages[0].text.startswith("Saw")


@pytest.mark.parametrize("kind", ["human", "chat"])
def test_a_plain_message_with_the_mark_of_a_serialised_one_keeps_its_words(kind: str) -> None:
    assert message("langchain", {"lc": 1, **plain(kind, "Saw the oak.")}).text == "Saw the oak."


def test_a_call_that_is_there_twice_is_read_once_and_shortened_everywhere() -> None:
    use = {"type": "tool_use", "id": "c1", "name": "saw", "input": ARGS}
    raw = {"id": "c1", "type": "function", "function": {"name": "saw", "arguments": '{"wood": "oak"}'}}
    value = lc("AIMessage", [plain("text", "x") | {"text": "I saw."}, use], tool_calls=[CALL])
    value["kwargs"]["additional_kwargs"] = {"tool_calls": [raw]}
    assert message("langchain", value).parts == (Text(text="I saw."), ToolCall(id="c1", name="saw", arguments=ARGS))
    new = shortened("langchain", value, {1: '{"wood": "o…"}'})["kwargs"]
    assert new["tool_calls"][0]["args"] == new["content"][1]["input"] == {"wood": "o…"}
    assert new["additional_kwargs"]["tool_calls"][0]["function"]["arguments"] == '{"wood": "o…"}'


def test_calls_that_only_the_provider_s_shape_shows() -> None:
    raw = {"id": "c1", "function": {"name": "saw", "arguments": '{"wood": "oak"}'}}
    old = plain("ai", "", additional_kwargs={"tool_calls": [raw]}, tool_calls=[])
    assert message("langchain", old).calls == (ToolCall(id="c1", name="saw", arguments=ARGS),)
    invalid = plain("ai", "", tool_calls=[], invalid_tool_calls=[{"name": "saw", "args": "{wood", "id": "c2"}])
    assert message("langchain", invalid).calls == (ToolCall(id="c2", name="saw", arguments="{wood"),)


def test_a_tool_message() -> None:
    told = plain("tool", "broke", tool_call_id="c1", name="saw", status="error")
    assert message("langchain", told).parts == (ToolResult(id="c1", text="broke", name="saw", is_error=True),)
    assert shortened("langchain", told, {0: "b"}) == {**told, "content": "b"}


def test_langchain_s_own_summary() -> None:
    text = "Here is a summary of the conversation to date:\n\nOak was sawn."
    found = message("langchain", plain("human", text, additional_kwargs={"lc_source": "summarization"})).summary
    assert found is not None
    assert (found.origin, found.text) == ("langchain", "Oak was sawn.")


@pytest.mark.parametrize("ask", [ASK, plain("human", "Saw."), {"type": "human", "data": {"content": "Saw."}}])
def test_insertions_are_written_as_the_file_s_own(ask: Any) -> None:
    (summary, answer) = inserted(open_one([ask, ask]), 1, "So far.", "Understood.")
    assert list(summary)[:2] == list(ask)[:2]
    again = open_one([ask, summary, answer])
    assert [found.text for found in again.messages[1:]] == ["So far.", "Understood."]
    assert again.messages[2].role is Role.ASSISTANT
    assert again.messages[1].summary is not None


def test_a_state_stays_what_it_was_around_its_messages() -> None:
    turns = [
        found
        for i in range(8)
        for found in (
            lc("AIMessage", "", tool_calls=[{**CALL, "id": f"c{i}"}], response_metadata={"model_name": "m"}),
            lc("ToolMessage", LONG, tool_call_id=f"c{i}"),
        )
    ]
    again = round_trip({"messages": [ASK, *turns, ASK], "files": {"a": 1}}, "langchain", indent=2)
    assert value_of(again)["files"] == {"a": 1}
    assert again.model == "m"
