"""Requests of the providers' APIs, written from a conversation: what `Writing` asks of a dialect that is data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from compactor_cli.formats.base import Capabilities
from compactor_cli.formats.conversation import (
    NEVER_WRITTEN,
    SIGNED,
    Conversation,
    arguments_object,
    arguments_text,
    image_of,
    merged,
    plain_id,
    spoken_parts,
    without_system,
)
from compactor_cli.formats.new_message import BRIDGE
from compactor_cli.model.transcript import Media, Message, Part, Role, Text, ToolCall, ToolResult


def _openai_chat(conversation: Conversation) -> Sequence[Any]:
    row = conversation.row()
    row["messages"] = [line for message in conversation.messages for line in openai_lines(message)]
    if conversation.tools:
        row["tools"] = [{"type": "function", "function": tool.declaration()} for tool in conversation.tools]
    return (row,)


def openai_lines(message: Message) -> Iterator[dict[str, Any]]:
    """A message as this API has it: one each for the results of a tool message."""
    for result in message.results:
        yield {"role": "tool", "tool_call_id": result.id, "content": result.text}
    if message.role is Role.TOOL:
        return
    line: dict[str, Any] = {"role": message.role.value, "content": openai_content(message)}
    if message.calls:
        line["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}
            for call in message.calls
        ]
    yield line


def openai_content(message: Message) -> Any:
    """Words as a string, or null; blocks where there are images."""
    parts = list(spoken_parts(message))
    if not any(isinstance(part, Media) for part in parts):
        return message.text or (None if message.calls else "")
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "image_url", "image_url": {"url": part.url}}
        for part in parts
    ]


def _anthropic(conversation: Conversation) -> Sequence[Any]:
    system, others = without_system(conversation)
    row = conversation.row() | {"system": system or []}
    row["messages"] = [{"role": side.value, "content": anthropic_content(run)} for side, run in merged(others)]
    if conversation.tools:
        row["tools"] = [tool.declaration("input_schema") for tool in conversation.tools]
    return (row,)


def anthropic_content(run: Iterable[Message]) -> list[dict[str, Any]]:
    """The blocks of messages of one side, results first."""
    blocks = [block for message in run for block in _anthropic_blocks(message)]
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _anthropic_blocks(message: Message) -> Iterator[dict[str, Any]]:
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
            image = image_of(part)
            data = {"type": "base64", "media_type": image.media_type, "data": image.data} if image else None
            yield {"type": "image", "source": data or {"type": "url", "url": part.url}}


def _bedrock(conversation: Conversation) -> Sequence[Any]:
    system, others = without_system(conversation)
    row = conversation.row("modelId")
    if system:
        row["system"] = [{"text": system}]
    row["messages"] = list(_alternating(merged(others)))
    if conversation.tools:
        specs = (
            {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.parameters}}
            for tool in conversation.tools
        )
        row["toolConfig"] = {"tools": [{"toolSpec": spec} for spec in specs]}
    return (row,)


def _alternating(runs: Iterable[tuple[Role, Sequence[Message]]]) -> Iterator[dict[str, Any]]:
    """The messages, with a short answer between two of the user's: one of them is a summary."""
    last: Role | None = None
    for side, run in runs:
        if side is last:
            yield {"role": Role.ASSISTANT.value, "content": [{"text": BRIDGE}]}
        blocks = [block for message in run for part in message.parts if (block := _bedrock_block(part))]
        yield {"role": side.value, "content": sorted(blocks, key=lambda block: "toolResult" not in block)}
        last = side


def _bedrock_block(part: Part) -> dict[str, Any]:
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


class RequestWriter(NamedTuple):
    """How a conversation is written for an API, and what of it is not."""

    unwritten: Capabilities
    write: Callable[[Conversation], Sequence[Any]]


WRITERS = {
    "openai-chat": RequestWriter(NEVER_WRITTEN, _openai_chat),
    "anthropic": RequestWriter(SIGNED, _anthropic),
    "bedrock": RequestWriter(SIGNED, _bedrock),
}
