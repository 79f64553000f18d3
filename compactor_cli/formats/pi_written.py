"""Messages as pi has them, of a conversation from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from compactor_cli.formats.conversation import arguments_object, image_of
from compactor_cli.model.transcript import Media, Message, Part, Role, Text, Thinking, ToolCall

# What the client wants of an answer: nobody counted its tokens.
_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": _COST}


def messages(message: Message, model: str, time: str) -> Iterator[dict[str, Any]]:
    """The message, or one for each of its results."""
    stamp = {"timestamp": _milliseconds(time)}
    for result in message.results:
        head = {"toolCallId": result.id, "toolName": result.name, "content": [{"type": "text", "text": result.text}]}
        yield {"role": "toolResult", **head, "isError": result.is_error, **stamp}
    if message.role is Role.TOOL:
        return
    blocks = [block for part in message.parts if (block := _block(part))]
    if message.role is not Role.ASSISTANT:
        yield {"role": "user", "content": blocks, **stamp}
        return
    reason = "toolUse" if message.calls else "stop"
    origin = {"api": "unknown", "provider": "unknown", "model": model or "unknown"}
    yield {"role": "assistant", "content": blocks, **origin, "usage": _USAGE, "stopReason": reason, **stamp}


def _block(part: Part) -> dict[str, Any]:
    """A part as a block; nothing for an image's address, which has no place."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Thinking):
        return {"type": "thinking", "thinking": part.text}
    if isinstance(part, ToolCall):
        return {"type": "toolCall", "id": part.id, "name": part.name, "arguments": arguments_object(part)}
    image = image_of(part) if isinstance(part, Media) else None
    return {"type": "image", "data": image.data, "mimeType": image.media_type} if image else {}


def _milliseconds(time: str) -> int:
    try:
        return int(datetime.fromisoformat(time).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
