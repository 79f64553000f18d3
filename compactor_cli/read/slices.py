"""Slices: a file of rows cut by bytes, at the beginnings of rows.

Where a slice really begins depends on the file and the offset alone, so that whoever reads the slices next to it
finds the same place: every byte is in exactly one of them.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import Any

from compactor_cli.read.values import blanks_end

_PIECE_BYTES = 1 << 16
# A byte-order mark, which counts as blank, may be split between two pieces.
_MARK_BYTES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """From ``start`` up to ``stop``: bytes of a file of lines, or row groups of a Parquet file."""

    start: int
    stop: int


def row_start(file: io.FileIO, offset: int) -> int:
    """The first byte of the first row that begins on a line after ``offset``, or at it; 0 for 0.

    Blanks and blank lines are in front of a row never, after one always, as `Records` has it.
    """
    if offset <= 0:
        return 0
    at = file.seek(offset - 1)
    while (piece := file.read(_PIECE_BYTES)) and (feed := piece.find(b"\n")) < 0:
        at += len(piece)
    if not piece:
        return at
    at += feed + 1
    rest = piece[feed + 1 :]
    while (blanks := blanks_end(rest)) > len(rest) - _MARK_BYTES and (more := file.read(_PIECE_BYTES)):
        at, rest = at + blanks, rest[blanks:] + more
    return at + blanks


class SlicedFile(io.FileIO):
    """A file that begins and ends where the rows of a slice do."""

    def __init__(self, path: str, part: Slice) -> None:
        with io.FileIO(path) as whole:
            size_bytes = os.fstat(whole.fileno()).st_size
            start, stop = (row_start(whole, min(offset, size_bytes)) for offset in (part.start, part.stop))
        super().__init__(path)
        self._left = stop - self.seek(start)

    def read(self, size: int | None = -1, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        found = super().read(self._left if size is None or size < 0 else min(size, self._left))
        self._left -= len(found)
        return found

    def readinto(self, buffer: Any, /) -> int:
        """Fills the buffer as far as one read goes; 0 at the end."""
        view = memoryview(buffer)[: self._left]
        count = super().readinto(view) or 0
        self._left -= count
        return count
