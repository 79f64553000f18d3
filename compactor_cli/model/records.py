"""Record: the bytes of one line (or one element of an array), its parsed value and its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something was read: a file (``-`` is standard input) and a line counted from 1.

    ``row``, counted from 1, is which of the rows of a document that is an array of them; 0 elsewhere.
    """

    path: str
    line: int
    row: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" + (f" (row {self.row})" if self.row else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record with the bytes it came in.

    The records of an input, joined as ``raw + ending``, are the input byte for byte: blank lines and
    spaces between records belong to the ``ending`` before them. ``value`` is what a JSON parser made
    of ``raw``; it is for reading only, since parsing does not round-trip. An empty ``ending`` before
    another record means that two records were glued on one line.
    """

    raw: bytes
    ending: bytes
    value: Any
    place: Place
