"""Undo: the original back in the place of the file that a compaction wrote, where nothing else would be lost.

What is believed is bytes alone: the file must be, by its hash, exactly what a compaction wrote there, and the
archive must hold the original, with the hash that it is known by. A line in a manifest only says where to look.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from compactor_cli.archive.atomic import atomic_writer
from compactor_cli.archive.layout import SHA256_CHARS, is_hex, stored_blobs
from compactor_cli.archive.live_file import check_no_writer, check_unchanged, replace
from compactor_cli.archive.manifest import ManifestEntry, read_entries
from compactor_cli.archive.restore import FoundOriginal, restore
from compactor_cli.archive.store import Archive
from compactor_cli.model.errors import CompactError, OutputError, Unreadable
from compactor_cli.read.streams import BUFFER_BYTES, ContentHash, Look, compression_of, open_stream, packing, unreadable

_NOT_WRITTEN = "is not what a compaction wrote here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """A file that was put back: the original's size, and the archive file with what stood there until now."""

    size_bytes: int
    archived: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A file that begins with what a compaction wrote; ``added_bytes`` were written after that."""

    entry: ManifestEntry
    original: FoundOriginal
    look: Look
    added_bytes: int


def find_compacted(path: str, archives: Sequence[Path]) -> Compacted:
    """What the last compaction of this file replaced.

    Raises `OutputError` if the file does not begin with what a compaction wrote, as far as these archives know;
    `Unreadable` if it cannot be read, or the archive is damaged.
    """
    try:
        with Path(path).open("rb") as file:
            look = Look.of(os.fstat(file.fileno()))
            entries = [(folder, entry) for folder in archives for entry in _entries(folder, look.size_bytes)]
            sizes = {size for _, entry in entries for size in (entry.written_bytes, entry.bytes)}
            hashes = prefix_hashes(file.fileno(), [size for size in sizes if size <= look.size_bytes])
    except OSError as error:
        raise unreadable(error, path) from error
    found = [item for item in entries if hashes.get(item[1].written_bytes) == item[1].written_sha256 != ""]
    if not found:
        known = [entry for _, entry in entries if hashes.get(entry.bytes) == entry.sha256]
        raise _refusal(path, look, max(known, key=lambda entry: entry.bytes, default=None))
    # Of several compactions that wrote the same, the last.
    folder, entry = max(reversed(found), key=lambda item: item[1].written_bytes)
    return Compacted(
        entry=entry,
        original=_verified(folder, entry),
        look=look,
        added_bytes=look.size_bytes - entry.written_bytes,
    )


def put_back(path: str, compacted: Compacted, archive: Path) -> Undone:
    """Archive the whole file, then let the original take its place, durably.

    Raises `Changed` and `InUse` if others write to the file, `OutputError` and `Unreadable`; then it is as it was.
    """
    check_unchanged(path, compacted.look)
    with Path(path).open("rb") as file:
        check_no_writer(file.fileno(), path)
        archived = _archive_whole(path, archive, compacted.look)
        packed = compression_of(os.pread(file.fileno(), 16, 0))

        def take(temporary: Path, target: Path) -> None:
            replace(temporary, target, old=file.fileno(), look=compacted.look, ready=lambda sha256, size_bytes: None)

        with atomic_writer(path, take=take) as draft, packing(draft, packed) as packer:
            size_bytes = restore(compacted.original, packer)
    return Undone(size_bytes=size_bytes, archived=archived)


def added_records(path: str, compacted: Compacted) -> tuple[int, str]:
    """How many lines were written after the compaction, and what the first is."""
    return _lines_from(path, compacted.entry.written_bytes)


def holds(archive: Path, entry: ManifestEntry) -> bool:
    """Whether an archive holds the original of this entry, undamaged."""
    try:
        _verified(archive, entry)
    except CompactError:
        return False
    return True


def prefix_hashes(descriptor: int, sizes: Iterable[int]) -> dict[int, str]:
    """The SHA-256 of the first bytes of a file, for each of these sizes that it has; one pass."""
    content = hashlib.sha256()
    hashes: dict[int, str] = {}
    at = 0
    for size in sorted(set(sizes)):
        while at < size and (piece := os.pread(descriptor, min(size - at, BUFFER_BYTES), at)):
            content.update(piece)
            at += len(piece)
        if at == size:
            hashes[size] = content.copy().hexdigest()
    return hashes


def _entries(folder: Path, size_bytes: int) -> Iterator[ManifestEntry]:
    """The entries of originals that may have stood in a file of this size."""
    try:
        for _, entry in read_entries(folder):
            if entry and (0 < entry.written_bytes <= size_bytes or 0 < entry.bytes < size_bytes):
                yield entry
    except OSError as error:
        raise unreadable(error, str(folder)) from error


def _verified(folder: Path, entry: ManifestEntry) -> FoundOriginal:
    """The stored original, once its bytes were found to have the hash. Raises `Unreadable`."""
    is_hash = len(entry.sha256) == SHA256_CHARS and is_hex(entry.sha256)
    for sha256, path in stored_blobs(folder, entry.sha256) if is_hash else ():
        found = FoundOriginal(sha256=sha256, path=path)
        if restore(found, _Nowhere()) != entry.bytes:
            break
        return found
    advice = "name the archive that holds it with --archive-dir"
    raise Unreadable(f"the original {entry.sha256[:16]} is not here", place=str(folder), next_step=advice)


class _Nowhere:
    """Where bytes go that are only to be hashed."""

    def write(self, data: bytes, /) -> int:
        return len(data)


def _refusal(path: str, look: Look, original: ManifestEntry | None) -> OutputError:
    if original is None or original.bytes >= look.size_bytes:
        advice = "name its archive with --archive-dir, or fetch an original by its hash: compactor restore"
        return OutputError(_NOT_WRITTEN, place=path, next_step=advice)
    count, first = _lines_from(path, original.bytes)
    records = "record" if count == 1 else "records"
    what = f"{_NOT_WRITTEN}: it is an archived original with {count:,} later {records} (the first: {first})"
    advice = f"compactor restore {original.sha256[:16]} -o FILE fetches the original"
    return OutputError(what, place=path, next_step=advice)


def _lines_from(path: str, start: int) -> tuple[int, str]:
    with Path(path).open("rb") as file:
        file.seek(start)
        lines = [line for line in file if line.strip()]
    return len(lines), _kind(lines[0]) if lines else "nothing"


def _kind(line: bytes) -> str:
    """What a record calls itself."""
    try:
        value = orjson.loads(line)
    except ValueError:
        return "no JSON"
    if not isinstance(value, dict):
        return "a record"
    return str(value.get("type") or value.get("role") or "a record")[:40]


def _archive_whole(path: str, archive: Path, look: Look) -> Path:
    """Archive what the file holds now. Raises `Changed` if that is no longer what was looked at."""
    store = Archive(archive)
    content = ContentHash()
    with open_stream(path, (content,)) as stream, store.writer() as writer:
        records = 0
        while piece := stream.reader.read1(BUFFER_BYTES):
            writer(piece)
            records += piece.count(b"\n")
        blob = writer.commit()
    check_unchanged(path, look)
    store.record(blob, records=records, dialect="", source=str(Path(path).absolute()))
    return archive / blob.stored
