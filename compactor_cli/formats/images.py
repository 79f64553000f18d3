"""Images: their content in the shapes of the providers, as URLs (``data:`` or an address)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from compactor_cli.formats.contents import string
from compactor_cli.formats.located_parts import at
from compactor_cli.model.transcript import Media, Part

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
    """The images in a value, in order."""
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
    """The image of a block; None for any other."""
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
