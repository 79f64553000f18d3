from __future__ import annotations

from typing import Any

import pytest
from compaction import LONG, round_trip, value_of
from opening import inserted, message, open_one, open_values, shortened

from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Media, Role, Text, Thinking, ToolCall, ToolResult


def call(number: int) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"c{number}", "name": "saw", "arguments": '{"wood":"oak"}'}


def output(number: int, text: Any = "two boards") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": text}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 40}
ASK = {"role": "user", "content": "Saw the oak."}
SECRET = {"type": "compaction", "id": "cmp_1", "encrypted_content": "y" * 80}


def request(*items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5-mini", "input": list(items), "stream": False, **more}


@pytest.mark.parametrize(
    "value",
    [
        request(ASK, call(1), output(1)),
        {"custom_id": "r", "body": request(ASK)},
        {"object": "response", "model": "gpt-5-mini", "output": [REASONING, call(1)]},
        [ASK, call(1), output(1)],
        [REASONING, call(1)],
    ],
)
def test_where_the_items_are(value: Any) -> None:
    assert open_one(value).dialect == "openai-responses"


def test_lines_of_bare_items_stay_what_they_were() -> None:
    assert [found.dialect for found in open_values(call(1), output(1))] == ["codex"]


def test_a_call_and_its_output() -> None:
    transcript = open_one(request(ASK, call(1), output(1)))
    assert transcript.model == "gpt-5-mini"
    assert transcript.messages[1].parts == (ToolCall(id="c1", name="saw", arguments={"wood": "oak"}),)
    assert transcript.messages[2].parts == (ToolResult(id="c1", text="two boards"),)


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        ({"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": "r"}, ("f", "r")),
        ({"type": "file_search_call", "id": "m", "queries": ["q"], "results": []}, ("file_search", "")),
        ({"type": "code_interpreter_call", "id": "m", "code": "1", "outputs": []}, ("code_interpreter", "")),
        ({"type": "web_search_call", "id": "m", "action": {"query": "q"}}, ("web_search", "")),
    ],
)
def test_tools_of_the_provider_answer_themselves(item: Any, parts: tuple[str, str]) -> None:
    found = open_one(request(ASK, item)).messages[1]
    assert (found.calls[0].name, found.results[0].text) == parts
    assert not group((found,)).orphan_calls


def test_other_pairs_and_odd_items() -> None:
    shell = {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}}
    told = {"type": "shell_call_output", "call_id": "s", "output": [{"stdout": "a", "stderr": "b", "outcome": {}}]}
    tools = {"type": "additional_tools", "role": "developer", "tools": []}
    refused = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    messages = open_one(request(ASK, shell, told, tools, refused)).messages
    assert messages[2].results[0].text == "a\nb"
    assert messages[3].role is Role.META
    assert messages[4].parts == (Text(text="No."),)


def test_reasoning_stays_with_what_followed_it() -> None:
    messages = open_one(request(ASK, REASONING, call(1), call(2), output(1), output(2), REASONING, call(3))).messages
    groups = [found.group for found in messages]
    assert groups[1] == groups[2] == groups[3] != ""
    assert groups[6] == groups[7] not in ("", groups[1])
    assert messages[1].parts == (Media(kind="encrypted_reasoning", size_bytes=40),)
    assert message("openai-responses", {**REASONING, "summary": [{"type": "summary_text", "text": "why"}]}).parts[
        0
    ] == Thinking(text="why")


def test_what_only_the_provider_can_read_is_written_before_the_summary() -> None:
    transcript = open_one(request(ASK, SECRET, ASK, call(1), output(1), ASK))
    (summary,) = inserted(transcript, 3, "So far.")[-1:]
    assert summary == {"role": "user", "content": "So far."}
    items = [part for i in range(12) for part in (call(i), output(i, LONG))]
    again = round_trip(request(ASK, SECRET, *items, ASK, unknown=1), "openai-responses")
    value = value_of(again)
    assert SECRET in value["input"]
    assert value["unknown"] == 1


def test_insertions_are_typed_where_the_file_s_own_are() -> None:
    typed = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}
    (summary, answer) = inserted(open_one(request(typed, typed)), 1, "So far.", "Understood.")
    assert summary == {**typed, "content": [{"type": "input_text", "text": "So far."}]}
    assert answer["content"] == [{"type": "output_text", "text": "Understood."}]


def test_shortened_items() -> None:
    assert shortened("openai-responses", output(1), {0: "…"}) == output(1, "…")
    blocks = output(1, [{"type": "input_text", "text": "long"}, {"type": "input_image", "image_url": "u"}])
    assert shortened("openai-responses", blocks, {0: "…"})["output"][0] == {"type": "input_text", "text": "…"}
    assert shortened("openai-responses", REASONING, {}) == REASONING
