"""JSON written in the style of the record next to it, and what stands around records brought in line with them.

Text that leaves the messages also leaves the copies that their document holds elsewhere. Copies are rarely whole
messages: a log repeats a command here and its output there. They are found by their lines.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from compactor_cli.model.transcript import Frame, Transcript
from compactor_cli.read.jsonl import as_text, value_end
from compactor_cli.read.streams import blanks_end

_FIRST_KEY = re.compile(rb'\A\{\s*"(?:[^"\\]|\\.)*"\s*:( ?)')


def parse(raw: bytes) -> Any:
    """The value with integers of any size. Bytes that are not UTF-8 become lone surrogates, and `dump` undoes that."""
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError:
        return json.loads(raw.decode("utf-8", "surrogateescape"))


def dump(value: Any, like: bytes) -> bytes:
    """One line of JSON: spaces as in ``like``, characters unescaped unless a lone surrogate forbids it."""
    spaced = (found := _FIRST_KEY.match(like)) is not None and found[1] == b" "
    separators = (", ", ": ") if spaced else (",", ":")
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _with_surrogates(text, like) or json.dumps(value, separators=separators).encode()


def dumped(transcript: Transcript, values: Iterable[Any]) -> tuple[bytes, ...]:
    """A line of JSON for each value, in the style of the transcript's first record."""
    like = transcript.records[0].raw if transcript.records else b""
    return tuple(dump(value, like) for value in values)


def _with_surrogates(text: str, like: bytes) -> bytes:
    """The text with the bytes of ``like`` that are not UTF-8; empty if its surrogates come from elsewhere."""
    try:
        like.decode()
    except UnicodeDecodeError:
        with contextlib.suppress(UnicodeEncodeError):
            return text.encode("utf-8", "surrogateescape")
    return b""


_ANY: Any = object()


def with_key(frame: Frame, key: str, value: Any, old: Any = _ANY) -> Frame:
    """The frame with another value for the key nearest to the records; as it is where the key is missing.

    Only the bytes of that value change. ``old``: the key is the nearest whose value is this one.
    """
    before = _with_value(frame.prefix, reversed(_key_places(frame.prefix, key)), key, value, old)
    if before is not None:
        return Frame(container=frame.container, prefix=before, suffix=frame.suffix)
    following = _with_value(frame.suffix, _key_places(frame.suffix, key), key, value, old)
    return frame if following is None else Frame(container=frame.container, prefix=frame.prefix, suffix=following)


def _quoted(key: str) -> bytes:
    """The key as it is written. Within a string its quotes would be escaped: it is found as a string only."""
    return json.dumps(key).encode()


def _key_places(raw: bytes, key: str) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(_quoted(key)), raw)]


def _with_value(raw: bytes, places: Iterable[int], key: str, value: Any, old: Any) -> bytes | None:
    for place in places:
        colon = blanks_end(raw, place + len(_quoted(key)))
        start = blanks_end(raw, colon + 1)
        try:
            stop = value_end(as_text(raw), start) if raw[colon : colon + 1] == b":" else -1
        except ValueError:
            stop = -1
        if stop < 0 or (old is not _ANY and parse(raw[start:stop]) != old):
            continue
        spaced = raw[start - 1 : start] == b" "
        written = json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if spaced else (",", ":"))
        return raw[:start] + written.encode() + raw[stop:]
    return None


def number_replaced(raw: bytes, key: str, number: int) -> bytes:
    """The object with another number at a key of its own; as it is where there is none. No other byte changes."""
    found = member_span(raw, key)
    return raw if found is None else raw[: found[0]] + str(number).encode() + raw[found[1] :]


def member_span(raw: bytes, key: str) -> tuple[int, int] | None:
    """Where an object has the value of a key of its own; None where it has none. Of several the first."""
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


# In place of a text that holds a line of what was removed.
LEFT_OUT = "[left out by compaction]"
# Shorter lines ("else:", "import os") stand anywhere and identify nothing.
_LEAST_CHARS = 16
# Quotes part lines too: the copy may be JSON within a string.
_BREAK = re.compile(r'\\n|\n|\\?"')

GoneLines = frozenset[str]


def gone_lines(source: Transcript, composed: Transcript) -> GoneLines:
    """The lines of records that were removed or shortened and that no record left over holds."""
    staying = {record.raw for record in composed.records}
    before = [record.value for record in source.records if record.raw not in staying]
    return lines_between(before, [record.value for record in composed.records]) if before else frozenset()


def lines_between(before: Any, after: Any) -> GoneLines:
    """The lines that only the first of two values holds."""
    gone = {line for text in _texts(before) for line in _lines(text)}
    return frozenset(gone.difference(line for text in _texts(after) for line in _lines(text)))


def scrubbed(value: Any, gone: GoneLines) -> Any:
    """The value with every text that holds such a line replaced; keys and everything else stay."""
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
    """The lines of a text worth knowing again, without the blanks around them."""
    lines = (line.strip() for line in _BREAK.split(text))
    return (line for line in lines if len(line) >= _LEAST_CHARS)
