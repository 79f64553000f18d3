"""Hermes' tags in a text: ``<think>``, ``<tool_call>`` and ``<tool_response>``, several in one turn.

A text is taken to pieces that, joined as written, are the text again: so one of them can be shortened
while the tags around it stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from compactor_cli.formats.contents import result_text
from compactor_cli.formats.tool_calls import named_call, shortened_call
from compactor_cli.model.transcript import Part, Role, Text, Thinking, ToolCall, ToolResult

_TAGS = {
    Role.ASSISTANT: ("think", "scratch_pad", "tool_call"),
    Role.TOOL: ("tool_response",),
}
_THOUGHTS = frozenset({"think", "scratch_pad"})


class TaggedPart(NamedTuple):
    """Some of a text, and what it says; None for tags, and for white space between them."""

    written: str
    part: Part | None


def pieces(text: str, role: Role) -> list[TaggedPart]:
    """The text in order. Tags that this speaker does not use, and open ones, are words like others. Linear."""
    found: list[TaggedPart] = []
    at = 0
    for tag, start, stop in _tagged_spans(text, _TAGS.get(role, ())):
        inner = text[start:stop].strip()
        first = start + text[start:stop].index(inner)
        found += _words(text[at : start - len(tag) - 2])
        found.append(TaggedPart(text[start - len(tag) - 2 : first], None))
        found.append(TaggedPart(inner, _tagged(tag, inner)))
        found.append(TaggedPart(text[first + len(inner) : stop + len(tag) + 3], None))
        at = stop + len(tag) + 3
    if not found:
        return [TaggedPart(text, Text(text=text) if text else None)]
    return [*found, *_words(text[at:])]


def _tagged_spans(text: str, names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Each outermost pair of tags: its name, and where its inner text starts and stops."""
    closed = {name for name in names if f"</{name}>" in text}
    if not closed:
        return
    at = 0
    for match in re.finditer(f"<({'|'.join(sorted(closed))})>", text):
        if match.start() < at or match[1] not in closed:
            continue
        stop = text.find(f"</{match[1]}>", match.end())
        if stop < 0:
            closed.discard(match[1])
            continue
        yield match[1], match.end(), stop
        at = stop


def _words(text: str) -> Iterator[TaggedPart]:
    """What stands outside of tags: words, and the white space around them."""
    words = text.strip()
    start = text.index(words)
    yield TaggedPart(text[:start], None)
    yield TaggedPart(words, Text(text=words) if words else None)
    yield TaggedPart(text[start + len(words) :], None)


def _tagged(tag: str, inner: str) -> Part:
    if tag in _THOUGHTS:
        return Thinking(text=inner)
    if tag == "tool_call":
        return named_call(inner)
    answer = _object(inner)
    name = answer.get("name")
    text = result_text(answer["content"]) if "content" in answer else inner
    return ToolResult(id="", text=text, name=name if isinstance(name, str) else "")


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def rejoined(found: Sequence[TaggedPart], texts: Mapping[int, str]) -> str:
    """The text again, with the texts of these parts (counted without the pieces that are none) replaced."""
    number = -1
    written = []
    for piece in found:
        number += piece.part is not None
        is_replaced = piece.part is not None and number in texts
        written.append(_shortened(piece, texts[number]) if is_replaced else piece.written)
    return "".join(written)


def _shortened(piece: TaggedPart, text: str) -> str:
    if isinstance(piece.part, Thinking):
        return piece.written
    if isinstance(piece.part, ToolCall):
        return shortened_call(piece.written, text)
    is_wrapped = isinstance(piece.part, ToolResult) and piece.part.text != piece.written
    return json.dumps({**_object(piece.written), "content": text}, ensure_ascii=False) if is_wrapped else text
