"""Parts and where in a record their texts stand; other texts put there; where a document holds its records.

A dialect gives the parts of a record together with their places: reading and shortening both follow from that.
Blocks of a content are read here: those of the Anthropic Messages API, with the text blocks of its relatives
(``input_text``, ``output_text``). Every block is one part, so that the number of a part is the number of its block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from compactor_cli.formats import contents
from compactor_cli.formats.base import JsonPath, first_object
from compactor_cli.formats.contents import arguments, listed, read_call, result_text, size_bytes, string
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.model.transcript import Media, Message, Part, Record, Role, Text, Thinking, ToolCall, ToolResult


class LocatedPart(NamedTuple):
    """A part, and the places of its text in the record: none if it cannot be shortened, several if there are copies.

    ``write(old, text)``: the new value of a place, from the old one and the new text; default: `written`.
    """

    part: Part
    places: tuple[JsonPath, ...] = ()
    write: Callable[[Any, str], Any] | None = None

    def below(self, *place: str | int) -> LocatedPart:
        """The part of a value that itself stands at this place."""
        part, places, write = self
        return LocatedPart(part, tuple([place + inner for inner in places]), write) if places else self


def text(words: Any, *places: JsonPath) -> LocatedPart:
    """A text; empty if the value is not a string."""
    return LocatedPart(Text(text=string(words)), places)


def media(kind: str, value: Any) -> LocatedPart:
    """What is not text (an image, a file), as large as the strings in it. It cannot be shortened."""
    return LocatedPart(Media(kind=kind, size_bytes=size_bytes(value)))


def thinking(words: Any) -> LocatedPart:
    """What the model thought. It has no place: a text that was changed loses its signature."""
    return LocatedPart(Thinking(text=string(words)))


def call(
    value: Mapping[str, Any], key: str, *place: str | int, id_key: str = "id", name_key: str = "name"
) -> LocatedPart:
    """A call that stands at ``place``, with its arguments, its id and its name at these keys."""
    call_id, name, asked = string(value.get(id_key)), string(value.get(name_key)), arguments(value.get(key))
    return LocatedPart(ToolCall(id=call_id, name=name, arguments=asked), ((*place, key),))


def any_call(value: Any, *place: str | int) -> LocatedPart:
    """A call that stands at ``place`` in any shape that `read_call` knows."""
    inner = contents.arguments_place(value)
    return LocatedPart(read_call(value), ((*place, *inner),) if inner else ())


class RecordDialect:
    """The defaults of dialects that give the parts of a record with their places; shortening follows from these.

    ``paths``: where a row holds its messages; ``models``, ``row_models``: where a record, and a row, name the model.
    """

    paths: tuple[JsonPath, ...] = ()
    models: tuple[JsonPath, ...] = ()
    row_models: tuple[JsonPath, ...] = ()
    row_score = 2

    def __init__(self, pieces_of: Callable[[Any], Sequence[LocatedPart]] = lambda value: ()) -> None:
        self._pieces_of = pieces_of

    def record_score(self, value: Any) -> int:
        """The score of an object as a record."""
        return 0

    def starts(self, value: Any) -> bool:
        """Never: no record says that it is the first."""
        return False

    def message(self, value: Any) -> Message:
        """The message of one record, whatever surrounds it."""
        return Message(role=Role.META)

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record."""
        return tuple([self.message(record.value) for record in records])

    def array_path(self, value: Any) -> JsonPath | None:
        """The first of ``paths`` at which an array begins with a record, or a bare array that does."""
        return array_path(value, self.paths, self._leads) if self.paths else None

    def _leads(self, elements: Any) -> bool:
        first = first_object(elements)
        return first is not None and self.record_score(first) > 0

    def score(self, value: Any) -> int:
        """That of a record; ``row_score`` for a row with an array of them; 0 for what is not an object."""
        if not isinstance(value, dict):
            return 0
        return self.record_score(value) or (self.row_score if self.paths and self.array_path(value) is not None else 0)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the newest record names, else the row."""
        inside = (at(record.value, path) for record in reversed(records) for path in self.models)
        return first_string(chain(inside, (at(row, path) for path in self.row_models)))

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with these texts replaced wherever they stand."""
        return shorten(record, texts, self._pieces_of)


def first_string(values: Iterable[Any]) -> str:
    """The first of these that is a string and not empty; empty where none is."""
    return next((value for value in values if isinstance(value, str) and value), "")


def parts_of(pieces: Iterable[LocatedPart]) -> tuple[Part, ...]:
    """The parts of a record, numbered as in `shorten`."""
    return tuple([piece.part for piece in pieces])


def shorten(record: Record, texts: Mapping[int, str], pieces_of: Callable[[Any], Sequence[LocatedPart]]) -> bytes:
    """The record with the texts of these parts replaced wherever they stand; arguments keep their type.

    Parts without a place stay as they are, also those that stand for missing results.
    """
    value = parse(record.raw)
    pieces = pieces_of(value)
    found = [(*pieces[i], new) for i, new in texts.items() if i < len(pieces) and pieces[i].places]
    if not found:
        return record.raw
    for part, places, write, new in found:
        for place in (place for place in places if isinstance(at(value, place[:-1]), dict | list)):
            old = at(value, place)
            value = replaced(value, place, write(old, new) if write else written(part, old, new))
    return dump(value, record.raw)


def written(part: Part, old: Any, new: str) -> Any:
    """The text of a part, of the type that stood in its place."""
    if isinstance(part, ToolCall):
        return contents.arguments_like(old, new)
    if not isinstance(part, ToolResult):
        return [{"type": "text", "text": new}] if isinstance(old, list) else new
    if isinstance(old, dict) and not isinstance(old.get("text"), str):
        return {_only_key(old) or "output": new}
    return contents.shortened_result(old, new)


def _only_key(value: Mapping[str, Any]) -> str:
    return next(iter(value)) if len(value) == 1 else ""


def at(value: Any, place: JsonPath) -> Any:
    """What stands at this place, or None."""
    for step in place:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def replaced(value: Any, place: JsonPath, new: Any) -> Any:
    """The value with something else at this place; what is around it must exist."""
    if not place:
        return new
    inner = new if len(place) == 1 else replaced(value[place[0]], place[1:], new)
    if isinstance(value, list):
        return [inner if i == place[0] else item for i, item in enumerate(value)]
    return {**value, place[0]: inner}


_TEXT_KINDS = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_CALL_KINDS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_BULKY_KEYS = ("data", "encrypted_content", "image_url", "url", "base64", "file_data")


def block(value: Any) -> LocatedPart:
    """The part that a block is; what is not known is its text, or `Media` of its own kind as large as it is."""
    if isinstance(value, str):
        return text(value, ())
    if not isinstance(value, dict):
        return media(type(value).__name__, None)
    kind = string(value.get("type"))
    if kind in _TEXT_KINDS:
        return text(value.get("text"), ("text",))
    if kind == "thinking":
        return thinking(value.get("thinking"))
    if kind in _CALL_KINDS:
        return call(value, "input")
    if kind.endswith("tool_result"):
        call_id, name, failed = value.get("tool_use_id"), value.get("name"), value.get("is_error") is True
        return result(value.get("content"), ("content",), call_id=call_id, name=name, is_error=failed)
    if kind == "compaction":
        return text(value.get("content"), ("content",))
    if isinstance(value.get("text"), str):
        return text(value["text"], ("text",))
    places = [*(inner for inner in value.values() if isinstance(inner, dict)), value]
    bulky = (place[key] for place in places for key in _BULKY_KEYS if isinstance(place.get(key), str))
    return media(kind or "unknown", next(bulky, value))


def content(value: Any, *place: str | int, read: Callable[[Any], LocatedPart] = block) -> list[LocatedPart]:
    """The parts of a content that stands at ``place``: a string, a list of blocks that ``read`` knows, or a block."""
    if isinstance(value, str):
        return [text(value, place)] if value else []
    if isinstance(value, dict):
        return [read(value).below(*place)]
    return [read(each).below(*place, i) for i, each in enumerate(value)] if isinstance(value, list) else []


def content_parts(value: Any) -> tuple[Part, ...]:
    """The parts of a content without their places: the fast way, for most are only read."""
    if isinstance(value, list):
        return tuple([block(each).part for each in value])
    return parts_of(content(value))


def result(value: Any, place: JsonPath, *, call_id: Any, name: Any = "", is_error: bool = False) -> LocatedPart:
    """A tool's answer that stands at ``place``: a string, blocks, or an object (of one text, that text)."""
    only = value.get(_only_key(value)) if isinstance(value, dict) else None
    words = only if isinstance(only, str) else result_text(value)
    count = 0 if isinstance(value, str) else contents.media_count(value)
    own_id, own_name = string(call_id), string(name)
    return LocatedPart(ToolResult(id=own_id, text=words, name=own_name, is_error=is_error, media_count=count), (place,))


def like_keys(message: Mapping[str, Any], like: Any) -> dict[str, Any]:
    """The message with its keys in the order of another one."""
    order = list(like) if isinstance(like, dict) else []
    known = [key for key in order if key in message]
    return {key: message[key] for key in (*known, *(key for key in message if key not in known))}


def array_path(value: Any, paths: Iterable[JsonPath], leads: Callable[[Any], bool]) -> JsonPath | None:
    """The first of these paths at which ``leads`` knows an array; of a bare array, the empty path."""
    if isinstance(value, list):
        return () if leads(value) else None
    for path in paths if isinstance(value, dict) else ():
        # Asked of every record: most have not even the first key of a path.
        if (not path or path[0] in value) and (found := at(value, path)) is not None and leads(found):
            return path
    return None


def any_block(value: Any) -> LocatedPart:
    """The part that a block is, whosever it is; also those that `block` does not know.

    These are Bedrock's untyped ones, Kimi's ``think``, results of tools that run at the provider's, and blocks of
    frameworks, by the types ``ModelMessage`` of the AI SDK (versions 4 and 5), ``ChatMessage.to_dict`` of Haystack 2,
    the rows of LLaMA-Factory's ``v1`` data sets and the sessions of goose 1. What an API checks as a whole (encrypted
    search results) is a result without a text: it is paired with its call, and nothing can be shortened in it.
    """
    return (_other_block(value) if isinstance(value, dict) else None) or block(value)


def _other_block(value: Mapping[str, Any]) -> LocatedPart | None:
    kind, inner = value.get("type"), value.get("value")
    if not isinstance(kind, str):
        return (_haystack(value) if kind is None else None) or _untyped(value)
    if kind == "text" and isinstance(inner, str):
        return text(inner, ("value",))
    if kind == "tool_call" and isinstance(inner, str):
        return LocatedPart(contents.named_call(inner))
    if kind == "reasoning" and isinstance(words := inner if isinstance(inner, str) else value.get("text"), str):
        return thinking(words)
    if kind == "think":
        return thinking(value.get("think"))
    if kind == "tool-call":
        return call(value, "input" if "input" in value else "args", id_key="toolCallId", name_key="toolName")
    if kind == "tool-result":
        return _sdk_result(value)
    if kind in ("toolRequest", "toolResponse"):
        return _goose(value, kind)
    if kind == "document" and at(value, ("source", "type")) == "text" and string(value["source"].get("data")):
        return text(value["source"]["data"], ("source", "data"))
    if kind.endswith("_tool_result") and kind not in _PLAIN_RESULTS:
        return _server_result(value)
    return None


def _sdk_result(value: Mapping[str, Any]) -> LocatedPart:
    """What a tool gave: ``output`` with a type and a value, ``result`` before version 5."""
    is_typed = isinstance(at(value, ("output", "type")), str) and "value" in value["output"]
    place = ("output", "value") if is_typed else ("output",) if "output" in value else ("result",)
    failed = value.get("isError") is True or string(at(value, ("output", "type"))).startswith("error")
    call_id, name = value.get("toolCallId"), value.get("toolName")
    return result(at(value, place), place, call_id=call_id, name=name, is_error=failed)


# Where goose has an answer, best first.
_GOOSE_ANSWERS: tuple[JsonPath, ...] = (
    ("toolResult", "value", "content"),
    ("toolResult", "value"),
    ("toolResult", "error"),
)


def _goose(value: Mapping[str, Any], kind: str) -> LocatedPart:
    """A call or an answer, which goose wraps in whether it could be made: ``{"status", "value" or "error"}``."""
    if kind == "toolRequest":
        called = at(value, ("toolCall", "value"))
        asked = read_call({**(called if isinstance(called, dict) else {}), "id": value.get("id")})
        return LocatedPart(asked, (("toolCall", "value", "arguments"),) if asked.arguments else ())
    place = next((place for place in _GOOSE_ANSWERS if at(value, place) is not None), ())
    failed = at(value, ("toolResult", "status")) == "error" or at(value, ("toolResult", "value", "isError")) is True
    return result(at(value, place) if place else None, place, call_id=value.get("id"), is_error=failed)


def _haystack(value: Mapping[str, Any]) -> LocatedPart | None:
    asked, answer = value.get("tool_call"), value.get("tool_call_result")
    if isinstance(asked, dict):
        named = {"id": asked.get("id"), "name": asked.get("tool_name"), "arguments": asked.get("arguments")}
        return LocatedPart(read_call(named), (("tool_call", "arguments"),))
    if isinstance(answer, dict):
        call_id, name = (at(answer, ("origin", key)) for key in ("id", "tool_name"))
        place, failed = ("tool_call_result", "result"), bool(answer.get("error"))
        return result(answer.get("result"), place, call_id=call_id, name=name, is_error=failed)
    words = at(value, ("reasoning", "reasoning_text"))
    return thinking(words) if isinstance(words, str) else None


# The kinds that `block` reads as plain results; other results are of tools that run at the provider's.
_PLAIN_RESULTS = frozenset({"tool_result", "mcp_tool_result"})
# Where results of server tools hold a text that may be shortened, best first.
_TEXT_PLACES = (("content", "stdout"), ("content", "stderr"), ("content", "content", "source", "data"))
_OPAQUE_SIZES = ("image", "document", "video", "guardContent", "cachePoint")


def _untyped(value: Mapping[str, Any]) -> LocatedPart | None:
    """A block of the Bedrock Converse API, known by its only key."""
    asked, answer, reasoning = (value.get(key) for key in ("toolUse", "toolResult", "reasoningContent"))
    if isinstance(asked, dict):
        return call(asked, "input", "toolUse", id_key="toolUseId")
    if isinstance(answer, dict):
        items = listed(answer.get("content"))
        texts = [item for item in items if isinstance(item, dict) and ("json" in item or "text" in item)]
        rest = [item for item in items if item not in texts]
        part = ToolResult(
            id=string(answer.get("toolUseId")),
            text="\n".join(result_text(item.get("json", item)) for item in texts),
            is_error=answer.get("status") == "error",
            media_count=len(rest),
        )
        return LocatedPart(part, (("toolResult", "content"),), lambda old, words: [{"text": words}, *rest])
    if isinstance(reasoning, dict) and isinstance(words := at(reasoning, ("reasoningText", "text")), str):
        return thinking(words)
    kind = "reasoning" if isinstance(reasoning, dict) else next((key for key in _OPAQUE_SIZES if key in value), "")
    return media(kind, value) if kind else None


def _server_result(value: Mapping[str, Any]) -> LocatedPart:
    place = next((place for place in _TEXT_PLACES if string(at(value, place))), ())
    part = ToolResult(
        id=string(value.get("tool_use_id")),
        text=at(value, place) if place else "",
        is_error=string(at(value, ("content", "type"))).endswith("_error"),
        media_count=0 if place else len(listed(value.get("content"))) or 1,
    )
    return LocatedPart(part, (place,) if place else ())
