"""Content blocks beyond those that `located` reads: Bedrock's untyped ones, Kimi's ``think``, results of server
tools, and those of frameworks; the content of images in all of them.

One part per block, as there. What an API checks as a whole (encrypted search results) is a result without
a text: it is paired with its call, and nothing can be shortened in it. Sources for frameworks: the types
``ModelMessage`` of the AI SDK (versions 4 and 5), ``ChatMessage.to_dict`` of Haystack 2, the rows of LLaMA-Factory's
``v1`` data sets, the sessions of goose 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from compactor_cli.formats import located
from compactor_cli.formats.base import JsonPath
from compactor_cli.formats.contents import listed, named_call, read_call, result_text, size_bytes, string
from compactor_cli.formats.located import LocatedPart, at
from compactor_cli.model.transcript import Media, Part, ToolResult


def piece(block: Any) -> LocatedPart:
    """The part that a block is, whosever it is."""
    return (_other(block) if isinstance(block, dict) else None) or located.block(block)


def _other(block: Mapping[str, Any]) -> LocatedPart | None:
    """The part, for blocks that `located.block` does not know."""
    kind = block.get("type")
    if isinstance(value := block.get("value"), str) and kind in ("text", "reasoning", "tool_call"):
        if kind == "text":
            return located.text(value, ("value",))
        return located.thinking(value) if kind == "reasoning" else LocatedPart(named_call(value))
    if not isinstance(kind, str):
        return (_haystack(block) if kind is None else None) or _untyped(block)
    if kind == "tool-call":
        return located.call(block, "input" if "input" in block else "args", id_key="toolCallId", name_key="toolName")
    if kind == "tool-result":
        return _sdk_result(block)
    if kind in ("toolRequest", "toolResponse"):
        return _goose(block, kind)
    if kind == "reasoning" and isinstance(block.get("text"), str):
        return located.thinking(block["text"])
    if kind == "think":
        return located.thinking(block.get("think"))
    if kind == "document" and at(block, ("source", "type")) == "text" and (text := string(block["source"].get("data"))):
        return located.text(text, ("source", "data"))
    if kind.endswith("_tool_result") and kind not in _PLAIN_RESULTS:
        return _server_result(block)
    return None


def _sdk_result(block: Mapping[str, Any]) -> LocatedPart:
    """What a tool gave: ``output`` with a type and a value, ``result`` before version 5."""
    is_typed = isinstance(at(block, ("output", "type")), str) and "value" in block["output"]
    place = ("output", "value") if is_typed else ("output",) if "output" in block else ("result",)
    failed = block.get("isError") is True or string(at(block, ("output", "type"))).startswith("error")
    call_id, name = block.get("toolCallId"), block.get("toolName")
    return located.result(at(block, place), place, call_id=call_id, name=name, is_error=failed)


def _goose(block: Mapping[str, Any], kind: str) -> LocatedPart:
    """A call or an answer, which goose wraps in whether it could be made: ``{"status", "value" or "error"}``."""
    if kind == "toolRequest":
        called = at(block, ("toolCall", "value"))
        call = read_call({**(called if isinstance(called, dict) else {}), "id": block.get("id")})
        return LocatedPart(call, (("toolCall", "value", "arguments"),) if call.arguments else ())
    places: tuple[JsonPath, ...] = tuple(
        ("toolResult", *last) for last in (("value", "content"), ("value",), ("error",))
    )
    place = next((place for place in places if at(block, place) is not None), ())
    failed = at(block, ("toolResult", "status")) == "error" or at(block, ("toolResult", "value", "isError")) is True
    return located.result(at(block, place) if place else None, place, call_id=block.get("id"), is_error=failed)


def _haystack(block: Mapping[str, Any]) -> LocatedPart | None:
    call, result, reasoning = (block.get(key) for key in ("tool_call", "tool_call_result", "reasoning"))
    if isinstance(call, dict):
        named = {"id": call.get("id"), "name": call.get("tool_name"), "arguments": call.get("arguments")}
        return LocatedPart(read_call(named), (("tool_call", "arguments"),))
    if isinstance(result, dict):
        call_id, name = (at(result, ("origin", key)) for key in ("id", "tool_name"))
        place = ("tool_call_result", "result")
        return located.result(
            result.get("result"), place, call_id=call_id, name=name, is_error=bool(result.get("error"))
        )
    text = at(reasoning, ("reasoning_text",))
    return located.thinking(text) if isinstance(text, str) else None


# The kinds that `located.block` reads as plain results; other results are of tools that run at the provider's.
_PLAIN_RESULTS = frozenset({"tool_result", "mcp_tool_result"})
# Where results of server tools hold a text that may be shortened, best first.
_TEXT_PLACES = (("content", "stdout"), ("content", "stderr"), ("content", "content", "source", "data"))
_OPAQUE_SIZES = ("image", "document", "video", "guardContent", "cachePoint")


def _untyped(block: Mapping[str, Any]) -> LocatedPart | None:
    """A block of the Bedrock Converse API, known by its only key."""
    call, result, reasoning = (block.get(key) for key in ("toolUse", "toolResult", "reasoningContent"))
    if isinstance(call, dict):
        return located.call(call, "input", "toolUse", id_key="toolUseId")
    if isinstance(result, dict):
        items = listed(result.get("content"))
        answer = ToolResult(
            id=string(result.get("toolUseId")),
            text="\n".join(result_text(item.get("json", item)) for item in items if _has_text(item)),
            is_error=result.get("status") == "error",
            media_count=sum(not _has_text(item) for item in items),
        )
        rest = [item for item in items if not _has_text(item)]
        return LocatedPart(answer, (("toolResult", "content"),), lambda old, text: [{"text": text}, *rest])
    if isinstance(reasoning, dict):
        text = at(reasoning, ("reasoningText", "text"))
        secret = LocatedPart(Media(kind="reasoning", size_bytes=size_bytes(block)))
        return located.thinking(text) if isinstance(text, str) else secret
    kind = next((key for key in _OPAQUE_SIZES if key in block), "")
    return LocatedPart(Media(kind=kind, size_bytes=size_bytes(block))) if kind else None


def _has_text(item: Any) -> bool:
    return isinstance(item, dict) and ("json" in item or "text" in item)


def _server_result(block: Mapping[str, Any]) -> LocatedPart:
    place = next((place for place in _TEXT_PLACES if string(at(block, place))), ())
    result = ToolResult(
        id=string(block.get("tool_use_id")),
        text=string(at(block, place)) if place else "",
        is_error=string(at(block, ("content", "type"))).endswith("_error"),
        media_count=0 if place else len(listed(block.get("content"))) or 1,
    )
    return LocatedPart(result, (place,) if place else ())


# Blocks whose images are a tool's answer, not what the speaker shows.
_RESULTS = ("tool_result", "toolResult", "functionResponse", "function_response", "toolUseResult")


def with_images(parts: tuple[Part, ...], value: Any) -> tuple[Part, ...]:
    """The parts of a record with the content of its images; without, where it is not sure which is which."""
    if not any(is_image(part) for part in parts):
        return parts
    found = list(_images(value))
    if len(found) != sum(map(is_image, parts)):
        return parts
    urls = iter(found)
    return tuple(
        replace(part, url=next(urls)) if isinstance(part, Media) and is_image(part) else part for part in parts
    )


def is_image(part: Part) -> bool:
    """Whether this is an image, by the names that the dialects have for one."""
    return isinstance(part, Media) and ("image" in part.kind or part.kind in ("inlineData", "inline_data"))


def _images(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _images(item)
    if not isinstance(value, dict) or string(value.get("type")) in _RESULTS:
        return
    if (url := _url(value)) is not None:
        yield url
        return
    for key, item in value.items():
        if key not in _RESULTS:
            yield from _images(item)


def _url(block: Mapping[str, Any]) -> str | None:
    kind = string(block.get("type"))
    if kind in ("image_url", "input_image"):
        return string(block.get("image_url")) or string(at(block, ("image_url", "url")))
    if kind == "image":
        source = block.get("source")
        held = source if isinstance(source, dict) else block
        return string(held.get("url")) or _data(held.get("media_type") or held.get("mimeType"), held.get("data"))
    if isinstance(inline := block.get("inlineData", block.get("inline_data")), dict):
        return _data(inline.get("mimeType") or inline.get("mime_type"), inline.get("data"))
    if isinstance(image := block.get("image"), dict) and "format" in image:
        return _data(f"image/{image['format']}", at(image, ("source", "bytes")))
    return None


def _data(media_type: Any, data: Any) -> str:
    return f"data:{string(media_type) or 'image/png'};base64,{data}" if isinstance(data, str) else ""
