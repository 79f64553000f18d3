"""Contents of records: tools' arguments and answers as text, and JSON written in the style of a neighbouring record.

Calls stand next to the content of a message, or as JSON within a text; shortened texts keep their shape. A text that is
removed from the messages is also removed from the copies elsewhere in the document. Copies are rarely whole messages,
since a log repeats a command in one place and its output in another, so they are found by their lines.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from compactor_cli.model.transcript import Frame, Part, Role, Text, ToolCall, ToolResult, Transcript
from compactor_cli.read.jsonl import as_text, value_end
from compactor_cli.read.streams import blanks_end

# Numbers that are seconds, of the years 1973 to 2286: smaller ones count something else, larger ones are milliseconds.
_SECONDS = (10**8, 10**10)
# The speakers' names in most formats.
ROLES = {role.value: role for role in (Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL)}
# Types of blocks with media, without the ``input_`` before and the ``_url`` after that some providers add.
_MEDIA_KINDS = frozenset({"image", "document", "file", "audio", "video"})


def arguments(value: Any) -> Mapping[str, Any] | str:
    """A call's arguments: an object as it is, the object in a JSON string, or any other text as it is."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        return "" if value is None else json_text(value, spaced=False)
    parsed = json_value(value)
    return parsed if isinstance(parsed, dict) else value


def result_text(content: Any) -> str:
    """A tool's answer as text: text blocks on lines of their own, other objects as JSON, without media."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(result_text(block) for block in content if not _is_media(block))
    if isinstance(content, dict):
        text = content.get(text_key(content))
        if isinstance(text, str) or _is_media(content):
            return text if isinstance(text, str) else ""
        plain = {key: value for key, value in content.items() if key != "encrypted_content"}
        return json_text(plain, spaced=False)
    return "" if content is None else str(content)


def text_key(block: Mapping[str, Any]) -> str:
    """The key of a block's text: ``value`` in rows of LLaMA-Factory, ``text`` everywhere else."""
    return "value" if block.get("type") == "text" and isinstance(block.get("value"), str) else "text"


def size_bytes(value: Any) -> int:
    """The size of a value that is not shown as text: the number of characters in all its strings."""
    return sum(map(len, _texts(value)))


def media_count(content: Any) -> int:
    """How many blocks of a tool's answer are images, documents or other files."""
    blocks: Sequence[Any] = content if isinstance(content, list) else [content]
    return sum(map(_is_media, blocks))


def _is_media(block: Any) -> bool:
    kind = string(object_of(block).get("type"))
    return kind.removeprefix("input_").removesuffix("_url") in _MEDIA_KINDS


def role_of(role: Role, parts: Sequence[Part]) -> Role:
    """TOOL for a user message that only brings results (and what came with them); else ``role``."""
    if role is not Role.USER or not any(isinstance(part, ToolResult) for part in parts):
        return role
    has_words = any(isinstance(part, Text) and part.text.strip() for part in parts)
    return role if has_words else Role.TOOL


def shortened_result(content: Any, text: str) -> Any:
    """A tool's answer with its text replaced and its images kept, in the shape it had."""
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return {**content, "text": text}
    if not isinstance(content, list):
        return text
    texts = (
        block for block in content if isinstance(block, dict) and not _is_media(block) and text_key(block) in block
    )
    first = next(texts, {"type": "text"})
    return [{**first, text_key(first): text}, *(block for block in content if _is_media(block))]


# What JSON has between elements, and after keys: with spaces and without.
_SEPARATORS = {True: (", ", ": "), False: (",", ":")}


def json_text(value: Any, *, spaced: bool = True) -> str:
    """The value as JSON in one line, its characters not escaped."""
    return json.dumps(value, ensure_ascii=False, separators=_SEPARATORS[spaced])


def json_value(text: Any) -> Any:
    """A text parsed as JSON; None if it is not JSON or nested too deeply. Other values are returned as they are."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class TextPiece(NamedTuple):
    """A piece of a text."""

    written: str
    part: Part | None  # None for tags, fences and the white space between them


def parts_in(pieces: Iterable[TextPiece]) -> tuple[Part, ...]:
    """The parts of these pieces."""
    return tuple(piece.part for piece in pieces if piece.part is not None)


def rewritten(
    pieces: Iterable[TextPiece], texts: Mapping[int, str], write: Callable[[Part, str, str], str]
) -> list[str]:
    """The texts of the pieces, some of them replaced.

    ``texts`` has the new texts by the number of the part, counted from 0 over the pieces that have one. Such a piece
    becomes ``write(part, written, text)``.
    """
    number, found = -1, []
    for written, part in pieces:
        number += part is not None
        found.append(written if part is None or number not in texts else write(part, written, texts[number]))
    return found


def listed(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def string(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def shell_exit_code(value: Any) -> int:
    """An exit code as shells count them (0 to 255); -1 if the value is not an integer."""
    return value % 256 if isinstance(value, int) else -1


def time_of(value: Any) -> str:
    """A time as text: a string as it is, seconds or milliseconds since 1970 in ISO 8601; empty for anything else."""
    if value is None or isinstance(value, str):  # of nearly all messages
        return value or ""
    if not isinstance(value, int | float) or not _SECONDS[0] <= value < 1000 * _SECONDS[1]:
        return ""
    moment = datetime.fromtimestamp(value if value < _SECONDS[1] else value / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters")
# OpenAI's key, and the form of it that JavaScript programs use.
CALL_LISTS = ("tool_calls", "toolCalls")


def has_calls(value: Mapping[str, Any]) -> bool:
    """Whether the message asks for tools outside its content."""
    return any(value.get(key) for key in CALL_LISTS) or isinstance(value.get("function_call"), dict)


def read_call(call: Any) -> ToolCall:
    """One call, its name and arguments in ``function`` or next to its id."""
    holder = _named(call)
    call_id, name = string(object_of(call).get("id")), string(holder.get("name"))
    return ToolCall(id=call_id, name=name, arguments=_parsed(holder.get(_arguments_key(holder))))


def _parsed(written: Any) -> Mapping[str, Any] | str:
    """As `arguments`, with the fast parser where it succeeds. JSON that is nested too deeply stays a text."""
    try:
        value = orjson.loads(written) if isinstance(written, str) else written
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else arguments(written)


def _named(call: Any) -> dict[str, Any]:
    """The object with name and arguments: ``function`` if there is one, else the call itself."""
    if not isinstance(call, dict):
        return {"name": "", "arguments": call}
    function = call.get("function")
    if isinstance(function, str):
        return {**call, "name": function}
    return function if isinstance(function, dict) else call


def _arguments_key(holder: Mapping[str, Any]) -> str:
    return next((key for key in _ARGUMENT_KEYS if key in holder), "arguments")


def named_call(text: str) -> ToolCall:
    """A call that is written as JSON within a text: ``{"name": ..., "arguments": ...}``; without an id."""
    value = arguments(text)
    if isinstance(value, str):
        return ToolCall(id="", name="", arguments=text)
    holder = _named(value)
    return ToolCall(id="", name=string(holder.get("name")), arguments=_parsed(holder.get(_arguments_key(holder))))


def arguments_place(call: Any) -> tuple[str, ...]:
    """The path to the arguments in a call; empty if it is not an object."""
    if not isinstance(call, dict):
        return ()
    inner = call.get("function")
    return ("function", _arguments_key(inner)) if isinstance(inner, dict) else (_arguments_key(call),)


def shortened_call(written: str, text: str) -> str:
    """A call written as JSON, with the text as its arguments; only the text if ``written`` is not a JSON object."""
    value = arguments(written)
    if isinstance(value, str):
        return text
    call = dict(value)
    *inside, key = arguments_place(call)
    holder = call[inside[0]] if inside else call
    holder[key] = arguments_like(holder.get(key), text)
    return json_text(call)


def arguments_like(old: Any, text: str) -> Any:
    """New arguments of the same type as the old ones: an object, or its JSON text.

    A text that is not a JSON object is wrapped in one, so that an API can still parse the arguments.
    """
    parsed = arguments(text)
    held: Mapping[str, Any] = {"shortened": parsed} if isinstance(parsed, str) else parsed
    if not isinstance(old, str):
        return held
    return text if not isinstance(parsed, str) else json_text(held)


def decoded_values(held: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments each of which is JSON in a text, parsed. A text whose end was cut off is what is left of it."""
    return {key: _decoded(value) for key, value in held.items()}


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(value)
    found = _CUT_TEXT.match(value)
    if found is None:
        return value
    with contextlib.suppress(ValueError):
        return json.loads(f'"{found[1]}"') + value[found.end() :]
    return value


# A JSON text without its end, up to the line break of a note on that; an escape that was cut in two is left out.
_CUT_TEXT = re.compile(r'"((?:[^"\\\n]|\\(?:[^u\n]|u[0-9a-fA-F]{4}))*)(?:\\u?[0-9a-fA-F]{0,3})?')


def coded_values(old: Any, text: str) -> Any:
    """New arguments each of which is JSON in a text, as `decoded_values` reads them; unchanged values keep their text.

    Arguments that are one JSON text stay one.
    """
    parsed, before = arguments(text), arguments(old)
    held: Mapping[str, Any] = {"shortened": parsed} if isinstance(parsed, str) else parsed
    known = before if isinstance(before, dict) else {}
    read = decoded_values(known)
    coded = {key: known[key] if key in read and read[key] == value else json_text(value) for key, value in held.items()}
    return json_text(coded) if isinstance(old, str) else coded


# `{"time": `: the beginning of an object up to its first value, with the space after the colon as group 1.
_FIRST_KEY = re.compile(rb'\A\{\s*"(?:[^"\\]|\\.)*"\s*:( ?)')


def parse(raw: bytes) -> Any:
    """Parse JSON with integers of any size. Bytes that are not UTF-8 become surrogates, which `dump` turns back."""
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError:
        return json.loads(raw.decode("utf-8", "surrogateescape"))


def dump(value: Any, like: bytes) -> bytes:
    """One line of JSON with the spacing of ``like``.

    Characters are not escaped, unless the value has lone surrogates. If ``like`` is not all UTF-8, these stand for
    bytes of it, as `parse` reads them, and are written as such.
    """
    spaced = (found := _FIRST_KEY.match(like)) is not None and found[1] == b" "
    text = json_text(value, spaced=spaced)
    try:
        return text.encode()
    except UnicodeEncodeError:
        with contextlib.suppress(UnicodeEncodeError):
            if like.decode(errors="ignore").encode() != like:
                return text.encode("utf-8", "surrogateescape")
        return json.dumps(value, separators=_SEPARATORS[spaced]).encode()


def dumped(transcript: Transcript, values: Iterable[Any]) -> tuple[bytes, ...]:
    """A line of JSON for each value, in the style of the transcript's first record."""
    return tuple(dump(value, transcript.records[0].raw) for value in values)


_ANY: Any = object()


def with_key(frame: Frame, key: str, value: Any, old: Any = _ANY) -> Frame:
    """The frame with another value for a key, of which only the bytes of that value change.

    Of several places with the key, the first before the records, counted back from them, is taken, else the first after
    them. With ``old``, only places with that value count. Unchanged if there is no such place.
    """
    for side, raw in (("prefix", frame.prefix), ("suffix", frame.suffix)):
        places = list(re.finditer(re.escape(_quoted(key)), raw))
        for place in places if side == "suffix" else reversed(places):
            colon = blanks_end(raw, place.end())
            start = blanks_end(raw, colon + 1)
            try:
                stop = value_end(as_text(raw), start) if raw[colon : colon + 1] == b":" else -1
            except ValueError:
                stop = -1
            if stop < 0 or (old is not _ANY and parse(raw[start:stop]) != old):
                continue
            written = json_text(value, spaced=raw[start - 1 : start] == b" ").encode()
            changed: dict[str, Any] = {side: raw[:start] + written + raw[stop:]}
            return replace(frame, **changed)
    return frame


def _quoted(key: str) -> bytes:
    """The key as JSON. It cannot be found inside another string, where its quotes would be escaped."""
    return json.dumps(key).encode()


def number_replaced(raw: bytes, key: str, number: int) -> bytes:
    """The object with another number at a top-level key; unchanged if it lacks the key. No other byte changes."""
    found = member_span(raw, key)
    return raw if found is None else raw[: found[0]] + str(number).encode() + raw[found[1] :]


def member_span(raw: bytes, key: str) -> tuple[int, int] | None:
    """(start, stop) of the value at a top-level key of an object (the first of several); None if the key is missing."""
    text = as_text(raw)
    at = blanks_end(raw, blanks_end(raw) + 1)
    while at < len(raw) and raw[at : at + 1] == b'"':
        key_stop = value_end(text, at)
        start = blanks_end(raw, blanks_end(raw, key_stop) + 1)
        stop = value_end(text, start)
        if raw[at:key_stop] == _quoted(key) or (b"\\" in raw[at:key_stop] and json.loads(raw[at:key_stop]) == key):
            return start, stop
        at = blanks_end(raw, blanks_end(raw, stop) + 1)
    return None


# Replaces a text that holds a removed line.
LEFT_OUT = "[left out by compaction]"
# Shorter lines ("else:", "import os") stand anywhere and identify nothing.
_LEAST_CHARS = 16
# Quotes end a line too, since a copy may be JSON within a string.
_BREAK = re.compile(r'\\n|\n|\\?"')

GoneLines = frozenset[str]


def gone_lines(source: Transcript, composed: Transcript) -> GoneLines:
    """The lines of removed and shortened records that no record of the result holds."""
    staying = {record.raw for record in composed.records}
    before = [record.value for record in source.records if record.raw not in staying]
    return lines_between(before, [record.value for record in composed.records]) if before else frozenset()


def lines_between(before: Any, after: Any) -> GoneLines:
    """The lines in the strings of the first value that are not in those of the second."""
    gone = {line for text in _texts(before) for line in _lines(text)}
    return frozenset(gone.difference(line for text in _texts(after) for line in _lines(text)))


def scrubbed(value: Any, gone: GoneLines) -> Any:
    """The value with every text replaced that holds one of these lines; keys and other values stay."""
    if isinstance(value, str):
        return LEFT_OUT if not gone.isdisjoint(_lines(value)) else value
    if isinstance(value, dict):
        return {key: scrubbed(item, gone) for key, item in value.items()}
    return [scrubbed(item, gone) for item in value] if isinstance(value, list) else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _lines(text: str) -> Iterator[str]:
    """The lines of a text that are long enough to identify it, stripped."""
    lines = (line.strip() for line in _BREAK.split(text))
    return (line for line in lines if len(line) >= _LEAST_CHARS)


@lru_cache(maxsize=1 << 10)
def short_name(name: str) -> str:
    """The tool's name without server and namespace, in lower case, without ``_``, ``-`` and spaces."""
    return re.sub("[-_ ]", "", _OF_A_SERVER.split(name)[-1]).lower()


def is_of_server(name: str) -> bool:
    """Whether a tool is a server's. It writes to other people, so it neither reports to the user nor asks."""
    return _OF_A_SERVER.search(name) is not None


_OF_A_SERVER = re.compile(r"__|[.:/]")
