"""Values: JSON as it is met in real files, parsed for reading, and where one value ends and the next begins."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

# A byte-order mark between values comes from files that were joined.
_BLANKS = re.compile(rb"(?:[ \t\r\n]|\xef\xbb\xbf)*")

# Bytes as Latin-1 have one character each, and no byte of a UTF-8 sequence looks like JSON's punctuation:
# the offsets found in the text are offsets of the bytes. Numbers are only passed over.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)


def parse(raw: bytes) -> Any:
    """The value of some JSON, for reading only.

    Strings can be encoded as UTF-8: a lone surrogate, and any byte that is not UTF-8, is U+FFFD. Integers
    beyond 64 bits may be floats. Raises `ValueError` for what is not JSON, or nested deeper than Python goes.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _parse_odd(raw.decode("utf-8", "replace"))


def parse_record(raw: bytes) -> Any:
    """The value of a record: of a line, of an element of an array, or of a member of an object (``"key": value``)."""
    try:
        return parse(raw)
    except ValueError:
        if not raw.startswith(b'"'):
            raise
        return next(iter(parse(b"{" + raw + b"}").values()))


def _parse_odd(text: str) -> Any:
    try:
        value = json.loads(text, parse_int=_integer)
        plain = json.dumps(value, ensure_ascii=False)
        if _has_surrogates(plain):
            repaired = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            return json.loads(repaired, parse_int=_integer)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # Python converts at most 4300 digits
        return float(digits)


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def blanks_end(raw: bytes, start: int = 0) -> int:
    """The first offset from ``start`` on that is neither blank nor in a byte-order mark."""
    found = _BLANKS.match(raw, start)
    return found.end() if found else start


def as_text(raw: bytes) -> str:
    """The text that `value_end` scans; its offsets are those of the bytes."""
    return raw.decode("latin-1")


def value_end(text: str, start: int) -> int:
    """The offset after the value that begins at ``start`` in an `as_text`. Raises `ValueError` if none does."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except RecursionError:
        raise ValueError("nested too deeply") from None


def object_spans(raw: bytes) -> tuple[tuple[int, int], ...]:
    """(start, stop) of the objects and arrays that stand one after another from the first byte on.

    Ends at the first thing that is neither: the caller compares the last stop with the length.
    """
    text = as_text(raw)
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(raw) and raw[start] in b"{[":
        try:
            stop = value_end(text, start)
        except ValueError:
            break
        spans.append((start, stop))
        start = blanks_end(raw, stop)
    return tuple(spans)
