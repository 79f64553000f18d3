"""Restore: an original, or one transcript of it, byte for byte, found by the start of its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, Existing, atomic_writer
from compactor_cli.archive.layout import Part, is_hex, read_parts, stored_blobs, stored_sidecars
from compactor_cli.archive.layout import content as stored
from compactor_cli.model.errors import InputError, Unreadable, UsageError
from compactor_cli.read.jsonl import OnInvalid

MIN_PREFIX_CHARS = 8
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOriginal:
    """Something that can be restored: ``length`` bytes (-1: all) from ``offset`` on, unpacked, of a stored file.

    ``on_invalid``: as in `Part`.
    """

    sha256: str
    path: Path
    offset: int = 0
    length: int = -1
    on_invalid: OnInvalid = OnInvalid.KEEP


def find(folders: Iterable[str | Path], prefix: str) -> FoundOriginal:
    """The one original, else the one transcript inside an original, whose SHA-256 begins with ``prefix``.

    Raises `UsageError` for less than `MIN_PREFIX_CHARS` hex digits, `InputError` if there is none, or more
    than one.
    """
    prefix = prefix.lower()
    if len(prefix) < MIN_PREFIX_CHARS or not is_hex(prefix):
        advice = "copy it from the summary's marker, or from MANIFEST.jsonl"
        raise UsageError(f"{prefix!r} is not the start (at least 8 hex digits) of a hash", next_step=advice)
    places = [Path(folder) for folder in folders]
    found = _by_hash(item for place in places for item in _originals(place, prefix))
    found = found or _by_hash(item for place in places for item in _inside(place, prefix))
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        names = ", ".join(sorted(found)[:_SHOWN])
        raise InputError(f"{len(found)} hashes begin with {prefix}: {names}", next_step="give more digits")
    where = ", ".join(map(str, places)) or "no archive"
    raise InputError(f"nothing with the hash {prefix} in {where}", next_step="name the archive with --archive-dir")


class Writable(Protocol):
    """What bytes can be written to."""

    def write(self, data: bytes, /) -> object:
        """Take the next bytes."""


def restore(found: FoundOriginal, file: Writable) -> int:
    """Write the bytes to ``file``; returns their number.

    Raises `Unreadable` if they are damaged: at the end, when the hash is known, so write to a file that
    only then takes effect (`restore_to`) wherever that matters.
    """
    content = hashlib.sha256()
    count = 0
    for piece in _slice(stored(found.path, found.on_invalid), found.offset, found.length):
        content.update(piece)
        count += len(piece)
        file.write(piece)
    if content.hexdigest() != found.sha256:
        advice = "look for another copy of the archive; compactor verify names all damage"
        raise Unreadable(f"is damaged: its hash is not {found.sha256[:16]}…", place=str(found.path), next_step=advice)
    return count


def restore_to(
    found: FoundOriginal,
    path: str | Path,
    existing: Existing = Existing.REFUSE,
    warn: Callable[[str], object] = lambda text: None,
) -> int:
    """Write the bytes to a file, which is there only if they are undamaged; a new one is the user's alone.

    ``warn``: as in `atomic_writer`. Raises as `restore`, and `OutputError`.
    """
    with atomic_writer(path, existing=existing, mode=PRIVATE_FILE_MODE, warn=warn) as file:
        return restore(found, file)


def _by_hash(found: Iterable[FoundOriginal]) -> dict[str, FoundOriginal]:
    """One for each hash: copies of the same bytes are no ambiguity."""
    one: dict[str, FoundOriginal] = {}
    for item in found:
        one.setdefault(item.sha256, item)
    return one


def _originals(folder: Path, prefix: str) -> Iterator[FoundOriginal]:
    return (FoundOriginal(sha256=sha256, path=path) for sha256, path in stored_blobs(folder, prefix))


def _inside(folder: Path, prefix: str) -> Iterator[FoundOriginal]:
    for original, sidecar in stored_sidecars(folder):
        parts = [part for part in read_parts(sidecar) if part.sha256.startswith(prefix)]
        for _, path in stored_blobs(folder, original) if parts else ():
            yield from (_found(part, path) for part in parts)


def _found(part: Part, path: Path) -> FoundOriginal:
    return FoundOriginal(
        sha256=part.sha256, path=path, offset=part.offset, length=part.length, on_invalid=part.on_invalid
    )


def _slice(pieces: Iterable[bytes], offset: int, length: int) -> Iterator[bytes]:
    at = 0
    for piece in pieces:
        start = max(0, offset - at)
        stop = len(piece) if length < 0 else min(len(piece), offset + length - at)
        at += len(piece)
        if start < stop:
            yield piece[start:stop]
        if length >= 0 and at >= offset + length:
            return
