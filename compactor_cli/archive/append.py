"""Append: new bytes behind those of a file, and back again. What stands there is never touched."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from compactor_cli.archive.atomic import output_error
from compactor_cli.archive.manifest import Entry, read_entries
from compactor_cli.model.errors import Changed, OutputError
from compactor_cli.read.streams import BUFFER_BYTES, Look


def append_to(path: str, whole: bytes, look: Look) -> None:
    """Write what ``whole`` has more than the file; durable on return.

    Raises `Changed`, with the file as it was, if anyone wrote to it since ``look``; `OutputError` if its bytes are
    not the beginning of ``whole``, or if it cannot be written, with the file cut back to what it was.
    """
    try:
        with Path(path).open("r+b") as file:
            begun = file.read()
            if Look.of(os.fstat(file.fileno())) != look:
                advice = "it is in use: run again later, nothing was written"
                raise Changed("the file changed while it was read", place=path, next_step=advice)
            if not whole.startswith(begun):
                advice = "use -i: the archive keeps the original"
                raise OutputError("holds several conversations: no end to append to", place=path, next_step=advice)
            try:
                file.write(whole[len(begun) :])
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(file.fileno(), len(begun))
                raise
    except OSError as error:
        raise output_error(error, path) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """A file that begins with an archived original."""

    original: Entry
    size_bytes: int


def find_appended(path: str, archives: Sequence[Path]) -> Appended:
    """The longest archived original that the file begins with and is longer than.

    Raises `OutputError` if there is none: nothing was appended, or its archive is not among these.
    """
    size_bytes = Path(path).stat().st_size
    entries = [entry for folder in archives for _, entry in read_entries(folder) if entry]
    shorter = sorted({entry.bytes for entry in entries if 0 < entry.bytes < size_bytes})
    begins_with = dict(zip(shorter, _prefix_hashes(path, shorter), strict=True))
    found = [entry for entry in entries if begins_with.get(entry.bytes) == entry.sha256]
    if not found:
        advice = "name the archive with --archive-dir; what -i replaced comes back with: compactor restore"
        raise OutputError("begins with no archived original", place=path, next_step=advice)
    return Appended(original=max(found, key=lambda entry: entry.bytes), size_bytes=size_bytes)


def _prefix_hashes(path: str, sizes: Iterable[int]) -> list[str]:
    """The SHA-256 of the first bytes of a file, for ascending sizes, in one pass."""
    digest = hashlib.sha256()
    hashes: list[str] = []
    with Path(path).open("rb") as file:
        at = 0
        for size in sizes:
            while at < size and (piece := file.read(min(size - at, BUFFER_BYTES))):
                digest.update(piece)
                at += len(piece)
            hashes.append(digest.copy().hexdigest())
    return hashes


def cut_back(path: str, appended: Appended) -> None:
    """Cut the file back to the original; durable on return.

    Raises `Changed` if it is no longer as long as it was, `OutputError` if it cannot be written.
    """
    try:
        with Path(path).open("r+b") as file:
            if os.fstat(file.fileno()).st_size != appended.size_bytes:
                raise Changed("the file changed meanwhile", place=path, next_step="run again")
            os.ftruncate(file.fileno(), appended.original.bytes)
            os.fsync(file.fileno())
    except OSError as error:
        raise output_error(error, path) from error
