"""Parts and where in a record their texts stand; other texts put there; where a document holds its records.

For dialects whose records are deeper than a role and a content: each tells its parts together with their
places, and reading and shortening follow from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from compactor_cli.formats.base import JsonPath
from compactor_cli.formats.contents import arguments_like, media_count, result_text, shortened_result, string
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.model.transcript import Part, Record, Text, ToolCall, ToolResult

Place = tuple[str | int, ...]


class LocatedPart(NamedTuple):
    """A part, and where its text stands in the record: nowhere if it cannot be shortened, several times in copies."""

    part: Part
    places: tuple[Place, ...] = ()


def parts(pieces: Sequence[LocatedPart]) -> tuple[Part, ...]:
    """The parts of a record, numbered as in `shorten`."""
    return tuple(piece.part for piece in pieces)


def shorten(record: Record, texts: Mapping[int, str], pieces_of: Callable[[Any], Sequence[LocatedPart]]) -> bytes:
    """The record with the texts of these parts replaced wherever they stand; arguments keep their type."""
    value = parse(record.raw)
    pieces = pieces_of(value)
    for i, text in texts.items():
        for place in pieces[i].places:
            value = replaced(value, place, written(pieces[i].part, at(value, place), text))
    return dump(value, record.raw)


def written(part: Part, old: Any, text: str) -> Any:
    """The text of a part, of the type that stood in its place."""
    if isinstance(part, ToolCall):
        return arguments_like(old, text)
    if not isinstance(part, ToolResult):
        return [{"type": "text", "text": text}] if isinstance(old, list) else text
    return {_only_key(old) or "output": text} if isinstance(old, dict) else shortened_result(old, text)


def _only_key(value: Mapping[str, Any]) -> str:
    return next(iter(value)) if len(value) == 1 else ""


def at(value: Any, place: Place) -> Any:
    """What stands at this place, or None."""
    for step in place:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def replaced(value: Any, place: Place, new: Any) -> Any:
    """The value with something else at this place; what is around it must exist."""
    if not place:
        return new
    inner = new if len(place) == 1 else replaced(value[place[0]], place[1:], new)
    if isinstance(value, list):
        return [inner if i == place[0] else item for i, item in enumerate(value)]
    return {**value, place[0]: inner}


def text_pieces(content: Any, place: Place, read: Callable[[Any], Part]) -> list[LocatedPart]:
    """A content that stands at ``place`` in pieces: a string, or a list of blocks that ``read`` knows."""
    if isinstance(content, str):
        return [LocatedPart(Text(text=content), (place,))] if content else []
    if isinstance(content, dict):
        return [_block_piece(content, place, read)]
    if not isinstance(content, list):
        return []
    return [_block_piece(block, (*place, i), read) for i, block in enumerate(content)]


def _block_piece(block: Any, place: Place, read: Callable[[Any], Part]) -> LocatedPart:
    part = read(block)
    if not isinstance(part, Text):
        return LocatedPart(part)
    return LocatedPart(part, (place,) if isinstance(block, str) else ((*place, "text"),))


def result_piece(content: Any, place: Place, *, call_id: str, name: str = "", is_error: bool = False) -> LocatedPart:
    """A tool's answer that stands at ``place``: a string, blocks, or an object (of one text, that text)."""
    only = content.get(_only_key(content)) if isinstance(content, dict) else None
    result = ToolResult(
        id=call_id,
        text=string(only) if isinstance(only, str) else result_text(content),
        name=name,
        is_error=is_error,
        media_count=0 if isinstance(content, str) else media_count(content),
    )
    return LocatedPart(result, (place,))


def like_keys(message: Mapping[str, Any], like: Any) -> dict[str, Any]:
    """The message with its keys in the order of another one."""
    order = list(like) if isinstance(like, dict) else []
    known = [key for key in order if key in message]
    return {key: message[key] for key in (*known, *(key for key in message if key not in known))}


def array_path(value: Any, paths: Iterable[JsonPath], leads: Callable[[Any], bool]) -> JsonPath | None:
    """The first of these paths at which ``leads`` knows an array; of a bare array, the empty path."""
    if isinstance(value, list):
        return () if leads(value) else None
    return next((path for path in paths if (found := at(value, path)) is not None and leads(found)), None)


def first_object(elements: Any) -> Any:
    """The first object of an array; None where there is none, and where this is no array."""
    found = elements if isinstance(elements, list) else ()
    return next((element for element in found if isinstance(element, dict)), None)
