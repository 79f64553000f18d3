"""Anthropic Messages: one message a line, or one request a line or document; Bedrock Converse with it.

Results stand in user messages; results of server tools in the assistant message of their call. Bedrock's
blocks have no ``type``: ``toolUse``, ``toolResult``, ``reasoningContent``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats import new_message as new_message
from compactor_cli.formats.base import REQUEST, Capabilities, Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.chat import ChatDialect
from compactor_cli.formats.contents import has_calls
from compactor_cli.formats.conversation import (
    SIGNED,
    Conversation,
    arguments_object,
    image_of,
    merged,
    plain_id,
    without_system,
)
from compactor_cli.formats.new_message import alternating
from compactor_cli.model.transcript import Media, Message, Text, ToolCall, ToolResult, Transcript

# Requests, lines of a message batch, logs of interactions, and exports of conversations.
_PATHS: tuple[JsonPath, ...] = (
    ("messages",),
    ("params", "messages"),
    ("request", "messages"),
    ("request_params", "messages"),
    ("conversation", "messages"),
)
_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "compaction"}
)
_BEDROCK_KEYS = ("toolUse", "toolResult", "reasoningContent")
_REQUEST_KEYS = frozenset({"system", "anthropic_version", "thinking", "toolConfig", "inferenceConfig"})


class Anthropic(ChatDialect):
    """The dialect of Anthropic's Messages API."""

    name = "anthropic"
    title = "Anthropic messages"
    holds = REQUEST | Capabilities.ERRORS | Capabilities.THINKING
    unwritten = SIGNED
    paths = _PATHS

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

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with the keys of the file's own, alternating where these do."""
        return new_message.insert(transcript, cut, alternating(transcript, cut, insertions), self.shape)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A request: ``system`` next to the messages, messages of one side as one, results first."""
        system, others = without_system(conversation)
        row: dict[str, Any] = {
            "system": system or [],
            "messages": [{"role": side.value, "content": content(run)} for side, run in merged(others)],
        }
        if conversation.tools:
            row["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in conversation.tools
            ]
        return ({**conversation.extra, **({"model": conversation.model} if conversation.model else {}), **row},)


def content(run: Iterable[Message]) -> list[dict[str, Any]]:
    """The blocks of messages of one side, results first."""
    blocks = [block for message in run for block in _blocks(message)]
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _blocks(message: Message) -> Iterator[dict[str, Any]]:
    for part in message.parts:
        if isinstance(part, Text) and part.text:
            yield {"type": "text", "text": part.text}
        elif isinstance(part, ToolCall):
            call = {"id": plain_id(part.id), "name": part.name, "input": arguments_object(part)}
            yield {"type": "tool_use", **call}
        elif isinstance(part, ToolResult):
            failed = {"is_error": True} if part.is_error else {}
            yield {"type": "tool_result", "tool_use_id": plain_id(part.id), "content": part.text, **failed}
        elif isinstance(part, Media):
            yield {"type": "image", "source": _source(part)}


def _source(media: Media) -> dict[str, str]:
    image = image_of(media)
    if image is None:
        return {"type": "url", "url": media.url}
    return {"type": "base64", "media_type": image.media_type, "data": image.data}


def _request_score(value: Any) -> int:
    if not isinstance(value, dict) or chat.array_at(value, _PATHS) is None:
        return 0
    inner = (value.get(key) for key in ("params", "request"))
    request: dict[str, Any] = next((found for found in inner if isinstance(found, dict)), value)
    tools = request.get("tools")
    has_schemas = isinstance(tools, list) and any(isinstance(tool, dict) and "input_schema" in tool for tool in tools)
    return 2 if has_schemas or not _REQUEST_KEYS.isdisjoint(request) else 0


def _is_own(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    if not isinstance(kind, str):
        return any(isinstance(block.get(key), dict) for key in _BEDROCK_KEYS)
    return kind in _BLOCKS or kind.endswith("_tool_result") or (kind in ("image", "document") and "source" in block)


DIALECT = Anthropic()
