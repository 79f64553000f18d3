"""Spans: where the elements of an array lie in the bytes of a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from compactor_cli.read.values import as_text, blanks_end, value_end

Spans = tuple[int, tuple[tuple[int, int], ...], int]


def element_spans(
    raw: bytes, path: tuple[str | int, ...], values: Sequence[Any] = (), *, of_object: bool = False
) -> Spans:
    """The array at ``path`` in some valid JSON, as byte offsets; ``values``: what a parser made of its elements.

    Returns the offset after ``[``, (start, stop) of each element without blanks around it, and the offset
    of ``]``; with ``of_object``, the members of the object there, with their keys. Of a key that an object has twice,
    the last counts, as it does for parsers. Every byte is passed once. Raises `LookupError` if there is no array
    (object) at ``path``, `ValueError` for invalid JSON.
    """
    found, _ = _Scanner(raw=raw, text=as_text(raw), values=values, of_object=of_object).find(blanks_end(raw), path)
    if found is None:
        raise LookupError(f"no array at {'.'.join(map(str, path)) or 'the top'}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scanner:
    raw: bytes
    text: str
    values: Sequence[Any]
    of_object: bool

    def find(self, start: int, path: tuple[str | int, ...]) -> tuple[Spans | None, int]:
        """The array at ``path`` below the value that begins at ``start``, and the offset after that value."""
        opening = self.text[start : start + 1]
        if not path and opening == ("{" if self.of_object else "["):
            return self._members(start) if self.of_object else self._array(start)
        if opening == "[" and path and isinstance(path[0], int):
            return self._in_array(start, path[0], path[1:])
        if opening == "{" and path and isinstance(path[0], str):
            return self._in_object(start, path[0], path[1:])
        return None, value_end(self.text, start)

    def _array(self, start: int) -> tuple[Spans, int]:
        spans: list[tuple[int, int]] = []
        at = self._inside(start, "]")
        known = iter(self.values)
        while self.text[at] != "]":
            stop = self._known_end(at, next(known, None))
            if stop < 0:
                # Written in another style than the fast one: so are the others.
                known, stop = iter(()), value_end(self.text, at)
            spans.append((at, stop))
            at = self._next(stop, "]")
        return (start + 1, tuple(spans), at), at + 1

    def _members(self, start: int) -> tuple[Spans, int]:
        """The members of an object, each from its key to the end of its value."""
        spans: list[tuple[int, int]] = []
        at = self._inside(start, "}")
        while self.text[at] != "}":
            value_start = self._expect(blanks_end(self.raw, value_end(self.text, at)), ":")
            stop = value_end(self.text, value_start)
            spans.append((at, stop))
            at = self._next(stop, "}")
        return (start + 1, tuple(spans), at), at + 1

    def _known_end(self, at: int, value: Any) -> int:
        """The end of an object that is written as orjson writes ``value``; -1 if it is not.

        No object's text is the beginning of another's, so what stands there is this one.
        """
        if not isinstance(value, dict):
            return -1
        try:
            written = orjson.dumps(value)
        except orjson.JSONEncodeError:
            return -1
        return at + len(written) if self.raw.startswith(written, at) else -1

    def _in_array(self, start: int, index: int, path: tuple[str | int, ...]) -> tuple[Spans | None, int]:
        found: Spans | None = None
        count = 0
        at = self._inside(start, "]")
        while self.text[at] != "]":
            if count == index:
                found, stop = self.find(at, path)
            else:
                stop = value_end(self.text, at)
            count += 1
            at = self._next(stop, "]")
        return found, at + 1

    def _in_object(self, start: int, key: str, path: tuple[str | int, ...]) -> tuple[Spans | None, int]:
        found: Spans | None = None
        at = self._inside(start, "}")
        while self.text[at] != "}":
            key_stop = value_end(self.text, at)
            value_start = self._expect(blanks_end(self.raw, key_stop), ":")
            if self._is_key(at, key_stop, key):
                found, stop = self.find(value_start, path)
            else:
                stop = value_end(self.text, value_start)
            at = self._next(stop, "}")
        return found, at + 1

    def _is_key(self, start: int, stop: int, key: str) -> bool:
        written = self.raw[start:stop]
        if b"\\" not in written:
            return written[1:-1] == key.encode()
        return bool(json.loads(written.decode("utf-8", "replace")) == key)

    def _inside(self, opening: int, closing: str) -> int:
        """The first element after ``opening``, or the closing bracket of an empty container."""
        at = blanks_end(self.raw, opening + 1)
        return at if self.text[at : at + 1] == closing else self._value(at)

    def _next(self, stop: int, closing: str) -> int:
        """The next element after one that ended at ``stop``, or the closing bracket."""
        if closing == "]" and self.raw.startswith(b",{", stop):
            return stop + 1
        at = blanks_end(self.raw, stop)
        return at if self.text[at : at + 1] == closing else self._value(self._expect(at, ","))

    def _expect(self, at: int, mark: str) -> int:
        if self.text[at : at + 1] != mark:
            raise ValueError(f"not JSON: {mark} expected at byte {at}")
        return blanks_end(self.raw, at + 1)

    def _value(self, at: int) -> int:
        if at >= len(self.text):
            raise ValueError("not JSON: it ends too early")
        return at
