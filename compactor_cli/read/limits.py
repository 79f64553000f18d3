"""Limits: how much memory an input may make this program use, whoever wrote it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compactor_cli.model.errors import InputError, Place

# Below this, no ratio is suspicious: a few hundred MB of the same line are packed a thousandfold.
_RATIO_FROM_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What an input may be at most; 0: no limit.

    ``line_bytes``: a line, or a JSON document that spans lines; it takes up to 16 times as much memory.
    ``unpacked_bytes`` and ``unpacked_ratio`` (unpacked to packed) are of a packed input; the ratio counts from
    256 MiB unpacked on.
    """

    line_bytes: int = 0
    unpacked_bytes: int = 0
    unpacked_ratio: int = 0


NO_LIMITS = ReadLimits()
# Transcripts of a year are packed 5 to 50-fold and have lines of some MB: images, documents, results of tools.
DEFAULT_LIMITS = ReadLimits(line_bytes=128 << 20, unpacked_bytes=16 << 30, unpacked_ratio=1_000)


def limited_lines(reader: io.BufferedReader, path: str, limits: ReadLimits) -> Iterator[bytes]:
    """The lines of an open input. Raises InputError, with the number of the line, for one that is too long."""
    if not limits.line_bytes:
        yield from reader
        return
    number = 1
    while line := reader.readline(limits.line_bytes + 1):
        if len(line) > limits.line_bytes:
            raise too_long(path, number, limits.line_bytes)
        yield line
        number += 1


def too_long(path: str, number: int, limit_bytes: int, what: str = "the line") -> InputError:
    """The error for a line, or a document from this line on, beyond the limit."""
    advice = "check what it is; --max-line takes a larger limit, 0 for none"
    return InputError(
        f"{what} is longer than {written(limit_bytes)}", place=Place(path=path, line=number), next_step=advice
    )


class UnpackedWatch:
    """An observer of unpacked bytes that stops what unpacks beyond its limits. ``packed``: bytes read so far."""

    def __init__(self, path: str, limits: ReadLimits, packed: Callable[[], int]) -> None:
        self._path = path
        self._limits = limits
        self._packed = packed
        self._unpacked_bytes = 0

    def __call__(self, piece: memoryview) -> None:
        """Count the next piece. Raises InputError."""
        self._unpacked_bytes += len(piece)
        most = self._limits.unpacked_bytes
        if most and self._unpacked_bytes > most:
            raise self._error(f"it unpacks to more than {written(most)}", "--max-unpacked")
        ratio = self._limits.unpacked_ratio
        if ratio and self._unpacked_bytes > _RATIO_FROM_BYTES and self._unpacked_bytes > ratio * max(1, self._packed()):
            raise self._error(f"it unpacks to more than {ratio:,} times its size", "--max-ratio")

    def _error(self, what: str, option: str) -> InputError:
        return InputError(
            what, place=self._path, next_step=f"check what it is; {option} takes a larger limit, 0 for none"
        )


def written(size_bytes: int) -> str:
    """A number of bytes for people, as options take it."""
    for shift, unit in ((30, "G"), (20, "M"), (10, "K")):
        if size_bytes >= 1 << shift and not size_bytes % (1 << shift):
            return f"{size_bytes >> shift}{unit}"
    return f"{size_bytes:,} bytes"
