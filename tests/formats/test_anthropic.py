from __future__ import annotations

from typing import Any

import pytest
from opening import inserted, message, open_one, shortened

from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Media, Role, Text, Thinking, ToolCall, ToolResult

USE = {"type": "tool_use", "id": "t1", "name": "saw", "input": {"wood": "oak"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "two boards"}


def read(role: str, *blocks: Any) -> tuple[Role, tuple[Any, ...]]:
    found = message("anthropic", {"role": role, "content": list(blocks)})
    return found.role, found.parts


def test_a_user_message_that_only_brings_results_is_a_tools() -> None:
    assert read("user", RESULT) == (Role.TOOL, (ToolResult(id="t1", text="two boards"),))
    assert read("user", RESULT, {"type": "text", "text": "Now plane them."})[0] is Role.USER


@pytest.mark.parametrize(
    ("content", "text", "media_count"),
    [
        (None, "", 0),
        ("", "", 0),
        ([], "", 0),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb", 0),
        ([{"type": "text", "text": "a"}, {"type": "image", "source": {"data": "xx"}}], "a", 1),
        (["a", "b"], "a\nb", 0),
    ],
)
def test_results_of_every_shape(content: Any, text: str, media_count: int) -> None:
    (part,) = read("user", {**RESULT, "content": content})[1]
    assert (part.text, part.media_count) == (text, media_count)


def test_errors_are_marked() -> None:
    assert read("user", {**RESULT, "is_error": True})[1][0].is_error
    assert not read("user", {**RESULT, "is_error": False})[1][0].is_error


def test_an_answer_with_thinking_words_and_calls_in_order() -> None:
    thinking = {"type": "thinking", "thinking": "Which saw?", "signature": "c2ln"}
    redacted = {"type": "redacted_thinking", "data": "AAAA"}
    role, parts = read("assistant", thinking, redacted, {"type": "text", "text": "Sawing."}, USE)
    assert role is Role.ASSISTANT
    assert parts == (
        Thinking(text="Which saw?"),
        Media(kind="redacted_thinking", size_bytes=4),
        Text(text="Sawing."),
        ToolCall(id="t1", name="saw", arguments={"wood": "oak"}),
    )


SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "oak"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "s1",
    "content": [
        {"type": "web_search_result", "url": "https://example.org", "title": "Oak", "encrypted_content": "zzzz"}
    ],
}


def test_a_server_tools_pair_stands_within_one_answer_and_its_encrypted_result_has_no_text() -> None:
    role, parts = read("assistant", SEARCH, FOUND, {"type": "text", "text": "Oak is hard."})
    assert role is Role.ASSISTANT
    assert [(part.id, type(part)) for part in parts[:2]] == [("s1", ToolCall), ("s1", ToolResult)]
    assert (parts[1].text, parts[1].media_count) == ("", 1)


def test_an_encrypted_result_is_not_touched() -> None:
    value = {"role": "assistant", "content": [SEARCH, FOUND]}
    assert shortened("anthropic", value, {1: "…"}) == value


def test_the_output_of_code_that_the_provider_ran_can_be_shortened() -> None:
    ran = {"type": "code_execution_tool_result", "tool_use_id": "s1"}
    content = {"type": "code_execution_result", "stdout": "1\n2\n3", "stderr": "", "return_code": 0}
    value = {"role": "assistant", "content": [SEARCH, {**ran, "content": content}]}
    assert message("anthropic", value).parts[1].text == "1\n2\n3"  # type: ignore[union-attr]
    new = shortened("anthropic", value, {1: "1…"})
    assert new["content"][1]["content"] == {**content, "stdout": "1…"}


def test_errors_of_server_tools_are_errors() -> None:
    error = {**FOUND, "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}
    assert read("assistant", SEARCH, error)[1][1].is_error


def test_calls_to_mcp_servers_are_calls() -> None:
    use = {"type": "mcp_tool_use", "id": "m1", "name": "saw", "server_name": "shop", "input": {}}
    result = {
        "type": "mcp_tool_result",
        "tool_use_id": "m1",
        "is_error": False,
        "content": [{"type": "text", "text": "ok"}],
    }
    assert read("assistant", use, result)[1] == (
        ToolCall(id="m1", name="saw", arguments={}),
        ToolResult(id="m1", text="ok"),
    )


@pytest.mark.parametrize("kind", ["image", "document", "container_upload", "tool_reference", "hologram"])
def test_other_blocks_are_media(kind: str) -> None:
    (part,) = read("user", {"type": kind, "source": {"type": "base64", "data": "AAAA"}})[1]
    assert part == Media(kind=kind, size_bytes=4)


def test_a_document_that_is_text_is_read() -> None:
    block = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Oak is hard."}}
    assert read("user", block)[1] == (Text(text="Oak is hard."),)
    new = shortened("anthropic", {"role": "user", "content": [block]}, {0: "Oak…"})
    assert new["content"][0]["source"] == {**block["source"], "data": "Oak…"}  # type: ignore[dict-item]


def test_a_compaction_block_is_a_previous_summary() -> None:
    found = message("anthropic", {"role": "assistant", "content": [{"type": "compaction", "content": "Oak was sawn."}]})
    assert found.summary is not None
    assert (found.summary.origin, found.summary.text) == ("anthropic", "Oak was sawn.")
    empty = message("anthropic", {"role": "assistant", "content": [{"type": "compaction", "content": None}]})
    assert empty.summary is not None


def test_system_messages_within_the_conversation() -> None:
    transcript = open_one(
        {
            "system": "S",
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "system", "content": [{"type": "text", "text": "b"}]},
            ],
        }
    )
    assert [found.role for found in transcript.messages] == [Role.USER, Role.SYSTEM]


BEDROCK_CALL = {
    "role": "assistant",
    "content": [
        {"reasoningContent": {"reasoningText": {"text": "Which saw?", "signature": "s"}}},
        {"text": "Sawing."},
        {"toolUse": {"toolUseId": "b1", "name": "saw", "input": {"wood": "oak"}}},
    ],
}
BEDROCK_RESULT = {
    "role": "user",
    "content": [
        {
            "toolResult": {
                "toolUseId": "b1",
                "status": "error",
                "content": [
                    {"text": "dull"},
                    {"json": {"teeth": 3}},
                    {"image": {"format": "png", "source": {"bytes": "AA"}}},
                ],
            }
        }
    ],
}


def test_bedrocks_untyped_blocks() -> None:
    asked, answered = open_one(BEDROCK_CALL, BEDROCK_RESULT).messages
    assert asked.parts == (
        Thinking(text="Which saw?"),
        Text(text="Sawing."),
        ToolCall(id="b1", name="saw", arguments={"wood": "oak"}),
    )
    assert answered.role is Role.TOOL
    assert answered.parts == (ToolResult(id="b1", text='dull\n{"teeth":3}', is_error=True, media_count=1),)


def test_bedrocks_results_are_shortened_with_their_images_kept() -> None:
    new = shortened("anthropic", BEDROCK_RESULT, {0: "d…"})
    result = new["content"][0]["toolResult"]
    assert result["content"] == [{"text": "d…"}, BEDROCK_RESULT["content"][0]["toolResult"]["content"][2]]  # type: ignore[index]
    assert (result["toolUseId"], result["status"]) == ("b1", "error")


def test_a_summary_is_written_as_the_files_own_user_messages_are() -> None:
    plain = [
        {"role": "user", "content": "Saw it."},
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [RESULT]},
    ]
    assert inserted(open_one(*plain), 0, "So far.")[0] == {"role": "user", "content": "So far."}
    blocks = [{"role": "user", "content": [{"type": "text", "text": "Saw it."}]}, *plain[1:]]
    assert inserted(open_one(*blocks), 0, "So far.")[0]["content"] == [{"type": "text", "text": "So far."}]
    bedrock = [{"role": "user", "content": [{"text": "Saw it."}]}, BEDROCK_CALL, BEDROCK_RESULT]
    answer, summary = inserted(open_one(*bedrock), 1, "So far.")
    assert answer["role"] == "assistant"
    assert summary == {"role": "user", "content": [{"text": "So far."}]}


def test_no_two_messages_of_the_user_follow_each_other_where_the_request_alternates() -> None:
    request = {
        "model": "m",
        "messages": [{"role": "user", "content": "Saw it."}, {"role": "assistant", "content": [USE]}],
    }
    request["messages"] += [{"role": "user", "content": [RESULT]}, {"role": "assistant", "content": "Sawn."}]
    roles = [message["role"] for message in inserted(open_one(request), 1, "So far.")]
    assert roles == ["assistant", "user"]
    roles = [message["role"] for message in inserted(open_one(request), 2, "So far.")]
    assert roles == ["user", "assistant"]


def test_an_acknowledgement_has_no_thinking_and_no_calls() -> None:
    transcript = open_one(
        {"role": "user", "content": "a"}, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT]}
    )
    assert inserted(transcript, 0, "So far.", "Understood.")[1] == {"role": "assistant", "content": "Understood."}


def test_parallel_calls_with_results_in_one_message_are_paired() -> None:
    uses = [{**USE, "id": f"t{i}"} for i in range(3)]
    results = [{**RESULT, "tool_use_id": f"t{i}"} for i in (2, 0, 1)]
    found = group(open_one({"role": "assistant", "content": uses}, {"role": "user", "content": results}).messages)
    assert not found.orphan_calls
    assert not found.orphan_results
