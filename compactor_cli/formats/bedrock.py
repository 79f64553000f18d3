"""Amazon Bedrock Converse: messages of blocks that have no ``type`` (``text``, ``toolUse``, ``toolResult``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from compactor_cli.formats.base import REQUEST, Capabilities, Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.chat import ChatDialect
from compactor_cli.formats.conversation import (
    SIGNED,
    Conversation,
    Tool,
    arguments_object,
    image_of,
    merged,
    plain_id,
    without_system,
)
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.located_parts import array_path, first_object, like_keys
from compactor_cli.formats.new_message import BRIDGE, alternating
from compactor_cli.model.transcript import Media, Message, Part, Record, Role, Text, ToolCall, ToolResult, Transcript

_PATHS: tuple[JsonPath, ...] = (("messages",), ("modelInput", "messages"), ("input", "inputBodyJson", "messages"))
_OWN = frozenset({"toolUse", "toolResult", "reasoningContent", "guardContent", "cachePoint"})
_BLOCKS = _OWN | {"text", "image", "document", "video"}


class Bedrock(ChatDialect):
    """The dialect of the Converse API."""

    name = "bedrock"
    title = "Bedrock Converse messages"
    holds = REQUEST | Capabilities.ERRORS | Capabilities.THINKING
    unwritten = SIGNED

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a request, of a batch line or of an invocation log; a bare array of messages."""
        return array_path(value, _PATHS, _leads)

    def score(self, value: Any) -> int:
        """3 for a block that only this API has; 2 for other blocks without a type, and for a request."""
        if not _is_message(value):
            return 2 if isinstance(value, dict) and self.array_path(value) is not None else 0
        return 3 if any(not _OWN.isdisjoint(block) for block in value["content"]) else 2

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the request or the log around it names."""
        names = (row.get(key) for key in ("modelId", "model")) if isinstance(row, dict) else ()
        return next((name.rpartition("/")[2] for name in names if name and isinstance(name, str)), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages of one text block, their keys in the file's order; the API wants the roles to alternate."""
        first = transcript.records[0] if transcript.records else None
        like, raw = (first.value, first.raw) if first else ({}, b"")
        placed = alternating(transcript, cut, insertions)
        messages = ({"role": item.role.value, "content": [{"text": item.text}]} for item in placed)
        return tuple(dump(like_keys(message, like), raw) for message in messages)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A request: ``system`` and ``toolConfig`` next to the messages, messages of one side as one."""
        system, others = without_system(conversation)
        row: dict[str, Any] = {"modelId": conversation.model} if conversation.model else {}
        if system:
            row["system"] = [{"text": system}]
        row["messages"] = list(_alternating(merged(others)))
        if conversation.tools:
            row["toolConfig"] = {"tools": [{"toolSpec": _definition(tool)} for tool in conversation.tools]}
        return ({**conversation.extra, **row},)


def _alternating(runs: Iterable[tuple[Role, Sequence[Message]]]) -> Iterator[dict[str, Any]]:
    """The messages, with a short answer between two of the user's: one of them is a summary."""
    last: Role | None = None
    for side, run in runs:
        if side is last:
            yield {"role": Role.ASSISTANT.value, "content": [{"text": BRIDGE}]}
        yield {"role": side.value, "content": _content(run)}
        last = side


def _content(run: Iterable[Message]) -> list[dict[str, Any]]:
    blocks = [block for message in run for part in message.parts if (block := _written(part))]
    return sorted(blocks, key=lambda block: "toolResult" not in block)


def _written(part: Part) -> dict[str, Any]:
    """A part as a block; nothing for an empty text, which the API refuses, and for an image's address."""
    if isinstance(part, Text):
        return {"text": part.text} if part.text else {}
    if isinstance(part, ToolCall):
        call = {"toolUseId": plain_id(part.id), "name": part.name, "input": arguments_object(part)}
        return {"toolUse": call}
    if isinstance(part, ToolResult):
        status = "error" if part.is_error else "success"
        return {"toolResult": {"toolUseId": plain_id(part.id), "content": [{"text": part.text}], "status": status}}
    image = image_of(part) if isinstance(part, Media) else None
    if image is None:
        return {}
    return {"image": {"format": image.media_type.rpartition("/")[2], "source": {"bytes": image.data}}}


def _definition(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.parameters}}


def _is_message(value: Any) -> bool:
    """Whether this is a role with blocks that have no type, and no ``meta`` of Haystack's next to them."""
    if not isinstance(value, dict) or value.get("role") not in ("user", "assistant") or "meta" in value:
        return False
    content = value.get("content")
    return isinstance(content, list) and bool(content) and all(map(_is_block, content))


def _is_block(block: Any) -> bool:
    return isinstance(block, dict) and "type" not in block and not _BLOCKS.isdisjoint(block)


def _leads(elements: Any) -> bool:
    return _is_message(first_object(elements))


DIALECT = Bedrock()
