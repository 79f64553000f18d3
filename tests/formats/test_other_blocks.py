from __future__ import annotations

import json
from typing import Any

import pytest
from compaction import LONG, compacted, round_trip, value_of
from opening import inserted, message, open_bytes, open_one, shortened

from compactor_cli.formats.registry import get
from compactor_cli.group.exchanges import group
from compactor_cli.model.settings import Settings, Size
from compactor_cli.model.transcript import Role, Text, Thinking, ToolCall, ToolResult
from compactor_cli.plan.tokens import media_tokens

ASK = {"role": "user", "content": "Find a flight."}


def sdk_call(number: int) -> dict[str, Any]:
    block = {"type": "tool-call", "toolCallId": f"c{number}", "toolName": "search", "input": {"to": "Lisbon"}}
    return {"role": "assistant", "content": [{"type": "reasoning", "text": "why"}, block]}


def sdk_results(*numbers: int, text: str = "none") -> dict[str, Any]:
    def block(number: int) -> dict[str, Any]:
        output = {"type": "error-text", "value": text}
        return {"type": "tool-result", "toolCallId": f"c{number}", "toolName": "search", "output": output}

    return {"role": "tool", "content": [block(number) for number in numbers]}


def test_calls_and_results_of_the_ai_sdk() -> None:
    call, results = open_one([ASK, sdk_call(1), sdk_results(1, 2)]).messages[1:]
    assert call.parts == (Thinking(text="why"), ToolCall(id="c1", name="search", arguments={"to": "Lisbon"}))
    assert results.role is Role.TOOL
    assert [result.id for result in results.results] == ["c1", "c2"]
    assert results.results[0] == ToolResult(id="c1", text="none", name="search", is_error=True)


def test_results_of_before_version_5() -> None:
    block = {"type": "tool-result", "toolCallId": "c1", "toolName": "search", "result": {"fare": 90}}
    found = message("openai-chat", {"role": "tool", "content": [block]})
    assert found.results == (ToolResult(id="c1", text='{"fare":90}', name="search"),)


def test_calls_of_the_ai_sdk_keep_their_results() -> None:
    conversation = [item for i in range(12) for item in (ASK, sdk_call(i), sdk_results(i, text=LONG))]
    kept = value_of(round_trip(conversation, "openai-chat"))
    calls = [b["toolCallId"] for m in kept if m["role"] == "assistant" for b in m["content"] if "input" in b]
    results = [b["toolCallId"] for m in kept if m["role"] == "tool" for b in m["content"]]
    assert calls == results


def test_a_result_of_the_ai_sdk_is_shortened_in_its_block() -> None:
    assert shortened("openai-chat", sdk_results(1, 2, text="long"), {0: "…", 1: "…"}) == sdk_results(1, 2, text="…")


def test_haystack_s_messages_are_not_bedrock_s() -> None:
    origin = {"tool_name": "search", "arguments": {"to": "Lisbon"}, "id": "c1"}
    conversation = [
        {"role": "user", "meta": {}, "name": None, "content": [{"text": "Find a flight."}]},
        {"role": "assistant", "meta": {}, "name": None, "content": [{"tool_call": origin}]},
        {"role": "tool", "meta": {}, "content": [{"tool_call_result": {"result": "one", "origin": origin}}]},
    ]
    transcript = open_one(conversation)
    assert transcript.dialect == "openai-chat"
    assert transcript.messages[1].calls == (ToolCall(id="c1", name="search", arguments={"to": "Lisbon"}),)
    assert transcript.messages[2].results == (ToolResult(id="c1", text="one", name="search"),)


def valued(role: str, **values: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": kind, "value": value} for kind, value in values.items()]}


def test_a_result_answers_all_calls_without_ids() -> None:
    call = {"type": "tool_call", "value": '{"name": "search", "arguments": {}}'}
    model_options = {"role": "assistant", "content": [call, call]}
    transcript = open_one({"messages": [valued("user", text="Find."), model_options, valued("tool", text="[1, 2]")]})
    assert transcript.messages[2].results == (ToolResult(id="", text="[1, 2]"), ToolResult(id="", text=""))
    short = get("openai-chat").shorten(transcript.records[2], {0: "…"})
    assert json.loads(short) == valued("tool", text="…")


def test_rows_of_llama_factory() -> None:
    call = valued("assistant", reasoning="why", tool_call='{"name": "search", "arguments": {"to": "Lisbon"}}')
    transcript = open_one({"messages": [valued("user", text="Find."), call, valued("tool", text="one")]})
    assert transcript.messages[0].parts == (Text(text="Find."),)
    assert transcript.messages[1].parts == (
        Thinking(text="why"),
        ToolCall(id="", name="search", arguments={"to": "Lisbon"}),
    )
    assert transcript.messages[2].results == (ToolResult(id="", text="one"),)
    assert inserted(transcript, 1, "So far.") == [valued("user", text="So far.")]
    assert shortened("openai-chat", valued("tool", text="long"), {0: "…"}) == valued("tool", text="…")


def test_results_of_several_calls_that_were_shortened_still_answer_them_all() -> None:
    call = {"type": "tool_call", "value": '{"name": "search", "arguments": {}}'}
    model_options = {"role": "assistant", "content": [call, call]}
    long = " ".join(f"board {number} is oak" for number in range(1_500))
    conversation = [valued("user", text="Find."), model_options, valued("tool", text=long)]
    settings = Settings(target=Size(tokens=900))
    done = compacted(open_one({"messages": conversation}), settings)
    assert done.changed
    assert not group(open_bytes(done.output)[0].messages).orphan_calls


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 4000}"}},
        {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{'A' * 4000}"}},
        {"type": "input_audio", "input_audio": {"data": "A" * 4000, "format": "wav"}},
        {"type": "hologram", "layers": [{"points": "A" * 4000}]},
    ],
)
def test_what_a_block_holds_in_an_object_counts_for_the_size(block: dict[str, Any]) -> None:
    found = message("openai-chat", {"role": "user", "content": [{"type": "text", "text": "Look"}, block]})
    assert media_tokens(found) == 1_600


def test_the_text_of_a_block_of_an_unknown_kind_is_read() -> None:
    found = message("openai-chat", {"role": "user", "content": [{"type": "card", "text": "Keep the port 8443."}]})
    assert found.text == "Keep the port 8443."


def goose_call(number: int) -> dict[str, Any]:
    asked = {"status": "success", "value": {"name": "developer__shell", "arguments": {"command": f"ls {number}"}}}
    return {
        "role": "assistant",
        "created": number,
        "content": [{"type": "toolRequest", "id": f"g{number}", "toolCall": asked}],
    }


def goose_answer(number: int, told: dict[str, Any]) -> dict[str, Any]:
    block = {"type": "toolResponse", "id": f"g{number}", "toolResult": told}
    return {"role": "user", "created": number, "content": [block]}


def test_calls_and_answers_of_goose() -> None:
    text = [{"type": "text", "text": LONG}]
    call = ToolCall(id="g1", name="developer__shell", arguments={"command": "ls 1"})
    assert message("openai-chat", goose_call(1)).parts == (call,)
    for told in ({"status": "success", "value": text}, {"status": "success", "value": {"content": text}}):
        found = message("openai-chat", goose_answer(1, told))
        assert (found.role, found.parts) == (Role.TOOL, (ToolResult(id="g1", text=LONG),))
        assert LONG not in json.dumps(shortened("openai-chat", goose_answer(1, told), {0: "…"}))
    failed = goose_answer(1, {"status": "error", "error": "no such tool"})
    assert message("openai-chat", failed).parts == (ToolResult(id="g1", text="no such tool", is_error=True),)


def test_a_session_of_goose_is_compacted_with_its_pairs_whole() -> None:
    rows: list[dict[str, Any]] = [{"role": "user", "created": 0, "content": [{"type": "text", "text": "List them."}]}]
    for number in range(1, 9):
        rows += [
            goose_call(number),
            goose_answer(number, {"status": "success", "value": [{"type": "text", "text": LONG}]}),
        ]
    kept = [
        block for row in value_of(round_trip({"messages": rows}, "openai-chat"))["messages"] for block in row["content"]
    ]
    asked, told = ({block["id"] for block in kept if block["type"] == kind} for kind in ("toolRequest", "toolResponse"))
    assert asked == told
    assert len(asked) < 8
