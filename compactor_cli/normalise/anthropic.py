"""Anthropic Messages: one message a line, or one request a line or document; Bedrock Converse with it.

Results stand in user messages; results of server tools in the assistant message of their call. Bedrock's
blocks have no ``type``: ``toolUse``, ``toolResult``, ``reasoningContent``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.core.records import Record
from compactor_cli.core.transcript import Message, Transcript
from compactor_cli.normalise import chat, imitate
from compactor_cli.normalise.base import Cut, Insertion, JsonPath
from compactor_cli.normalise.calls import has_calls
from compactor_cli.normalise.openai_chat import model_of

# Requests, and lines of a message batch.
_PATHS: tuple[JsonPath, ...] = (("messages",), ("params", "messages"))
_SHAPE = imitate.Shape(role_key="role", text_key="content", user=("user",), assistant=("assistant",))
_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "compaction"}
)
_BEDROCK_KEYS = ("toolUse", "toolResult", "reasoningContent")
_REQUEST_KEYS = frozenset({"system", "anthropic_version", "thinking", "toolConfig", "inferenceConfig"})


class Anthropic:
    """The dialect of Anthropic's Messages API."""

    name = "anthropic"
    title = "Anthropic messages"

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a request; a bare array of messages."""
        return chat.array_at(value, _PATHS)

    def score(self, value: Any) -> int:
        """3 for its tool, thinking and server blocks; 2 for a request with its keys; 1 for any role with a content."""
        if not chat.is_chat(value):
            return _request_score(value)
        if has_calls(value):
            return 0
        content = value.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        if value["role"] in ("user", "assistant", "system") and any(map(_is_own, blocks)):
            return 3
        return 1 if value["role"] in ("user", "assistant") else 0

    def starts(self, value: Any) -> bool:
        """Never: no message says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; a user message that only brings results is a tool's."""
        return chat.read_all(records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the request or the last message names."""
        return model_of(records, row)

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages whose content is a text or a block, as the file's own are."""
        return imitate.insert(transcript, cut, insertions, _SHAPE)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced; thinking and its signature are never touched."""
        return chat.shorten(record, texts)


def _request_score(value: Any) -> int:
    if not isinstance(value, dict) or chat.array_at(value, _PATHS) is None:
        return 0
    batched = value.get("params")
    request: dict[str, Any] = batched if isinstance(batched, dict) else value
    tools = request.get("tools")
    has_schemas = isinstance(tools, list) and any(isinstance(tool, dict) and "input_schema" in tool for tool in tools)
    return 2 if has_schemas or not _REQUEST_KEYS.isdisjoint(request) else 0


def _is_own(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    if not isinstance(kind, str):
        return any(isinstance(block.get(key), dict) for key in _BEDROCK_KEYS)
    return kind in _BLOCKS or kind.endswith("_tool_result") or (kind in ("image", "document") and "source" in block)


DIALECT = Anthropic()
