"""Content blocks beyond those of `contents`: Bedrock's untyped ones, Kimi's ``think``, results of server tools, and
those of frameworks (`other_blocks`).

One part per block, as there. What an API checks as a whole (encrypted search results) is a result without
a text: it is paired with its call, and nothing can be shortened in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compactor_cli.formats import contents, other_blocks
from compactor_cli.formats.located_parts import at, replaced, written
from compactor_cli.model.transcript import Media, Part, Text, Thinking, ToolCall, ToolResult

# The kinds that `contents` reads as plain results; other results are of tools that run at the provider's.
_PLAIN_RESULTS = frozenset({"tool_result", "mcp_tool_result"})
# Where results of server tools hold a text that may be shortened, best first.
_TEXT_PLACES = (("content", "stdout"), ("content", "stderr"), ("content", "content", "source", "data"))
_UNTYPED = ("toolUse", "toolResult", "reasoningContent")
_OPAQUE_SIZES = ("image", "document", "video", "guardContent", "cachePoint")


def parts(content: Any) -> tuple[Part, ...]:
    """The parts of a message's content: a string, a list of blocks (or strings), one block, or nothing."""
    if isinstance(content, list):
        return tuple(_own_part(block) or contents.block_part(block) for block in content)
    if isinstance(content, dict):
        return (_own_part(content) or contents.block_part(content),)
    return contents.content_parts(content)


def with_texts(content: Any, texts: Mapping[int, str]) -> Any:
    """The content with the texts of these parts replaced; blocks without a text stay as they are."""
    if isinstance(content, list):
        return [_with_text(block, texts[i]) if i in texts else block for i, block in enumerate(content)]
    return _with_text(content, texts[0]) if 0 in texts else content


def size_bytes(value: Any) -> int:
    """How much text is in a value that is not shown as text: the sum of its strings."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(size_bytes(item) for item in value.values())
    return sum(size_bytes(item) for item in value) if isinstance(value, list) else 0


def _own_part(block: Any) -> Part | None:
    """The part, for blocks that `contents` does not tell from others."""
    if not isinstance(block, dict):
        return None
    if other := other_blocks.piece(block):
        return other.part
    kind = block.get("type")
    if not isinstance(kind, str):
        return _untyped(block)
    if kind == "think":
        return Thinking(text=_string(block.get("think")))
    if kind == "document" and (text := _string(at(block, ("source", "data")))) and _is_text(block):
        return Text(text=text)
    if kind.endswith("_tool_result") and kind not in _PLAIN_RESULTS:
        return _server_result(block)
    return None


def _untyped(block: Mapping[str, Any]) -> Part | None:
    """A block of the Bedrock Converse API, known by its only key."""
    call, result, reasoning = (block.get(key) for key in _UNTYPED)
    if isinstance(call, dict):
        name = _string(call.get("name"))
        return ToolCall(id=_string(call.get("toolUseId")), name=name, arguments=contents.arguments(call.get("input")))
    if isinstance(result, dict):
        return ToolResult(
            id=_string(result.get("toolUseId")),
            text=_bedrock_text(result.get("content")),
            is_error=result.get("status") == "error",
            media_count=sum(1 for item in _list(result.get("content")) if not _has_text(item)),
        )
    if isinstance(reasoning, dict):
        text = at(reasoning, ("reasoningText", "text"))
        return Thinking(text=text) if isinstance(text, str) else Media(kind="reasoning", size_bytes=size_bytes(block))
    kind = next((key for key in _OPAQUE_SIZES if key in block), "")
    return Media(kind=kind, size_bytes=size_bytes(block)) if kind else None


def _bedrock_text(content: Any) -> str:
    return "\n".join(contents.result_text(item.get("json", item)) for item in _list(content) if _has_text(item))


def _has_text(item: Any) -> bool:
    return isinstance(item, dict) and ("json" in item or "text" in item)


def _server_result(block: Mapping[str, Any]) -> ToolResult:
    place = _text_place(block)
    content = block.get("content")
    return ToolResult(
        id=_string(block.get("tool_use_id")),
        text=_string(at(block, place)) if place else "",
        is_error=_string(at(block, ("content", "type"))).endswith("_error"),
        media_count=0 if place else len(_list(content)) or 1,
    )


def _text_place(block: Mapping[str, Any]) -> tuple[str, ...]:
    return next((place for place in _TEXT_PLACES if _string(at(block, place))), ())


def _with_text(block: Any, text: str) -> Any:
    own = _own_part(block)
    if own is None:
        return contents.with_texts([block], {0: text})[0]
    if other := other_blocks.piece(block):
        for place in other.places:
            block = replaced(block, place, written(own, at(block, place), text))
        return block
    if isinstance(own, Text):
        return replaced(block, ("source", "data"), text)
    if isinstance(own, ToolCall):
        return replaced(block, ("toolUse", "input"), contents.shortened_arguments(text))
    if isinstance(own, ToolResult) and "toolResult" in block:
        media = [item for item in _list(block["toolResult"].get("content")) if not _has_text(item)]
        return replaced(block, ("toolResult", "content"), [{"text": text}, *media])
    place = _text_place(block) if isinstance(own, ToolResult) else ()
    return replaced(block, place, text) if place else block


def _is_text(block: Mapping[str, Any]) -> bool:
    return _string(at(block, ("source", "type"))) == "text"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
