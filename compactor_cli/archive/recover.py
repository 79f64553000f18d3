"""Recover: an original put back, an append finished, and what killed runs left behind removed.

- **Undo**: the original back in the place of the file that a compaction wrote, where nothing else would be lost. What
  is believed is bytes alone: the file must be, by its hash, exactly what a compaction wrote there, and the archive
  must hold the original, with the hash that it is known by. A line in a manifest only names the place.
- **Journal**: what is being appended to a file, kept in the archive until it is done. A run that is killed while it
  writes leaves the beginning of its records at the end of a session, where the next line of the agent would be glued
  to them. The next run finds the journal and finishes what was begun.
- **Leftovers**: a run holds its temporary files locked (flock). One that nobody holds was left behind. A draft
  (``.tmp``) is removed. A ``.swap`` file is either the new file that did not get its place, or the one that lost it:
  the first is known by its hash, which is part of its name, the second is removed if the archive holds its bytes. What
  another program wrote to it in the last moment is first appended to the file that has the name now.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import orjson

from compactor_cli.archive import atomic
from compactor_cli.archive.atomic import append, append_late, atomic_writer, check_no_writer, check_unchanged, followed
from compactor_cli.archive.restore import FoundOriginal, restore, restored
from compactor_cli.archive.store import (
    LOCAL_ARCHIVE,
    WHEN_ARCHIVED,
    Archive,
    Blob,
    ManifestEntry,
    PartialFile,
    open_inside,
    opened_folder,
    read_entries,
    stored_blobs,
)
from compactor_cli.model.errors import CompactError, OutputError, Unreadable
from compactor_cli.model.value import dataclass
from compactor_cli.read.streams import BUFFER_BYTES, Compression, Look, compression_of, open_stream, packing, unreadable

_NOT_WRITTEN = "is not what a compaction wrote here"
JOURNAL_START = "append-"
_NAME_CHARS = 16
# A summary and its boundary have some KB.
_MOST_JOURNAL_BYTES = 256 << 20
_LEFTOVER = re.compile(r"\.compact-[0-9a-f]{16}(?:\.tmp|-([0-9a-f]{16})\.swap)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A file that begins with what a compaction wrote."""

    entry: ManifestEntry
    original: FoundOriginal
    look: Look
    added_bytes: int  # written after that


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
    added_bytes = look.size_bytes - entry.written_bytes
    return Compacted(entry=entry, original=_verified(folder, entry), look=look, added_bytes=added_bytes)


def put_back(path: str, compacted: Compacted, archive: Path) -> tuple[int, Path]:
    """Archive the whole file, then let the original take its place, durably: its size, and where what was here lies.

    Raises `Changed` and `InUse` if others write to the file, `OutputError` and `Unreadable`; then it is as it was.
    """
    check_unchanged(path, compacted.look)
    with Path(path).open("rb") as file:
        check_no_writer(file.fileno(), path)
        store = Archive(archive)
        with open_stream(path) as stream, store.writer() as writer:
            records = 0
            while piece := stream.reader.read1(BUFFER_BYTES):
                writer(piece)
                records += piece.count(b"\n")
            blob = writer.commit()
        check_unchanged(path, compacted.look)
        store.record(blob, records=records, dialect="", source=str(Path(path).absolute()))
        packed = compression_of(os.pread(file.fileno(), 16, 0))

        def take(temporary: Path, target: Path) -> None:
            atomic.replace(
                temporary, target, old=file.fileno(), look=compacted.look, ready=lambda sha256, size_bytes: None
            )

        with atomic_writer(path, take=take) as draft, packing(draft, packed) as packer:
            size_bytes = restore(compacted.original, packer)
    return size_bytes, archive / blob.stored


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
    """The entries of originals that may have been in a file of this size."""
    try:
        for _, entry in read_entries(folder):
            if entry and (0 < entry.written_bytes <= size_bytes or 0 < entry.bytes < size_bytes):
                yield entry
    except OSError as error:
        raise unreadable(error, str(folder)) from error


def _verified(folder: Path, entry: ManifestEntry) -> FoundOriginal:
    """The stored original, once its bytes were found to have the hash. Raises `Unreadable`."""
    for sha256, path in stored_blobs(folder, entry.sha256):
        found = FoundOriginal(sha256=sha256, path=path)
        if sum(map(len, restored(found))) == entry.bytes:
            return found
    advice = "name the archive that holds it with --archive-dir"
    raise Unreadable(f"the original {entry.sha256[:16]} is not here", place=str(folder), next_step=advice)


def _refusal(path: str, look: Look, original: ManifestEntry | None) -> OutputError:
    if original is None or original.bytes >= look.size_bytes:
        advice = "name its archive with --archive-dir, or fetch an original by its hash: compactor restore"
        return OutputError(f"{_NOT_WRITTEN} ({WHEN_ARCHIVED})", place=path, next_step=advice)
    count, first = lines_from(path, original.bytes)
    records = "record" if count == 1 else "records"
    what = f"{_NOT_WRITTEN}: it is an archived original with {count:,} later {records} (the first: {first})"
    advice = f"compactor restore {original.sha256[:16]} -o FILE fetches the original"
    return OutputError(what, place=path, next_step=advice)


def lines_from(path: str, start: int) -> tuple[int, str]:
    """How many lines a file has from this byte on, and what the first is."""
    with Path(path).open("rb") as file:
        file.seek(start)
        lines = [line for line in file if line.strip()]
    if not lines:
        return 0, "nothing"
    try:
        value = orjson.loads(lines[0])
    except ValueError:
        return len(lines), "no JSON"
    # What the record calls itself.
    named = (value.get("type") or value.get("role")) if isinstance(value, dict) else ""
    return len(lines), str(named or "a record")[:40]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """An append that was begun."""

    sha256: str  # of the file before it
    size_bytes: int
    # The file's. Whoever makes a tree with a journal in it may know path and bytes of the file that goes with it, but
    # not the number it gets where the tree is unpacked: such a journal is not believed.
    inode: int
    data: bytes  # what is appended


@contextlib.contextmanager
def journal(archive: Path, path: str, original: Blob, data: bytes) -> Iterator[None]:
    """While the block appends ``data`` to the file at ``path``, which holds ``original``, the archive knows of it.

    It is durable before the block begins, and stays only if the process dies. Raises `OutputError`, `Unreadable`.
    """
    name = _journal_name(path)
    try:
        head = {"sha256": original.sha256, "bytes": original.size_bytes, "inode": Path(path).stat().st_ino}
    except OSError as error:
        raise unreadable(error, path) from error
    with PartialFile(archive, Compression.NONE) as draft:
        draft.write(orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE) + data)
        draft.take_name(archive / name)
    try:
        yield
    finally:
        _remove_journal(archive, name)


def finish_append(path: str, archive: Path) -> bool:
    """Finish what a killed run began to append to this file; whether there was anything of that kind.

    If its beginning is at the end of the file, the rest is appended. If others wrote after it, it is taken out:
    what they wrote is then in lines of its own. Anything else is left as it is. Raises `Changed`, `InUse`,
    `OutputError`, `Unreadable`.
    """
    name = _journal_name(path)
    if (begun := _read_journal(archive, name)) is None:
        return False
    try:
        with Path(path).open("rb") as file:
            look = Look.of(os.fstat(file.fileno()))
            hashes = prefix_hashes(file.fileno(), [begun.size_bytes])
            added = b""
            if look.inode == begun.inode and hashes.get(begun.size_bytes) == begun.sha256:
                check_no_writer(file.fileno(), path)
                file.seek(begun.size_bytes)
                added = file.read()
        if 0 < len(added) < len(begun.data) and begun.data.startswith(added):
            append(path, begun.data[len(added) :], look)
        elif torn := _torn(added, begun.data):
            atomic.remove_pieces(path, [(begun.size_bytes, begun.size_bytes + torn)])
    except OSError as error:
        raise atomic.output_error(error, path) from error
    _remove_journal(archive, name)
    return True


def _torn(added: bytes, data: bytes) -> int:
    """How many of the first bytes are the beginning of ``data``, torn, with the record of another program after it.

    Only where the line that the two share is not JSON, and what comes after the torn part is.
    """
    shared = next((at for at, pair in enumerate(zip(added, data, strict=False)) if pair[0] != pair[1]), 0)
    for at in range(shared, 0, -1):
        start = added.rfind(b"\n", 0, at) + 1
        if at == start or added[at : at + 1] not in (b"{", b"["):
            continue
        line = added[start:].partition(b"\n")[0]
        if not _is_json(line) and _is_json(line[at - start :]):
            return at
    return 0


def _is_json(line: bytes) -> bool:
    with contextlib.suppress(ValueError):
        orjson.loads(line)
        return True
    return False


def _journal_name(path: str) -> str:
    """One journal for each file."""
    return JOURNAL_START + hashlib.sha256(os.fsencode(followed(path))).hexdigest()[:_NAME_CHARS]


def _remove_journal(archive: Path, name: str) -> None:
    with contextlib.suppress(OSError, Unreadable), opened_folder(archive) as root:
        os.unlink(name, dir_fd=root)


def _read_journal(archive: Path, name: str) -> _Begun | None:
    """The journal of this name; None without one, or if it is not a journal."""
    try:
        with os.fdopen(open_inside(archive, name), "rb") as file:
            if os.fstat(file.fileno()).st_size > _MOST_JOURNAL_BYTES:
                return None
            head, data = orjson.loads(file.readline()), file.read()
        return _Begun(sha256=str(head["sha256"]), size_bytes=int(head["bytes"]), inode=int(head["inode"]), data=data)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def find_leftovers(folder: Path) -> Iterator[Path]:
    """The files in a folder that were left behind by runs which have ended."""
    for path in _named(folder):
        with _held(path) as descriptor:
            if descriptor is not None:
                yield path


def sweep(folder: Path, archives: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Remove what killed runs left in a folder; what cannot be removed without a loss of bytes is returned."""
    kept = []
    for path in _named(folder):
        with contextlib.suppress(OSError), _held(path) as descriptor:
            if descriptor is None:
                continue
            if _is_needless(path, descriptor, archives):
                path.unlink()
            else:
                kept.append(path)
    return tuple(kept)


def clear(folders: Iterable[Path], archives: Iterable[Path], warn: Callable[[str], object]) -> None:
    """`sweep` the folders and the archives; ``warn`` of what has to stay."""
    archives = tuple(archives)
    for folder in (*folders, *archives):
        for path in sweep(folder, archives):
            warn(f"{path}: was written to while a run that was killed replaced it: look at it, then remove it")


def _named(folder: Path) -> list[Path]:
    if folder.name == LOCAL_ARCHIVE and folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            return [folder / entry.name for entry in entries if _LEFTOVER.fullmatch(entry.name)]
    except OSError:
        return []


@contextlib.contextmanager
def _held(path: Path) -> Iterator[int | None]:
    """The file, held; None if a process has it, if it is gone, or if it is not a file of this user's."""
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        status = os.fstat(descriptor)
        is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            is_own = False
        yield descriptor if is_own and os.fstat(descriptor).st_nlink else None
    finally:
        os.close(descriptor)


def _is_needless(path: Path, descriptor: int, archives: Iterable[Path]) -> bool:
    """Whether a leftover may go; what another program appended to it has found its place then."""
    found = _LEFTOVER.fullmatch(path.name)
    if not found or not found[1]:
        return True
    size_bytes = os.fstat(descriptor).st_size
    if prefix_hashes(descriptor, [size_bytes])[size_bytes].startswith(found[1]):
        return True
    for archive in archives:
        entries: set[ManifestEntry] = set()
        with contextlib.suppress(OSError, CompactError):
            entries = {entry for _, entry in read_entries(archive) if entry and 0 <= entry.bytes <= size_bytes}
        hashes = prefix_hashes(descriptor, [entry.bytes for entry in entries])
        for entry in sorted(entries, key=lambda entry: entry.bytes, reverse=True):
            # The original that the file begins with, the longest first.
            if hashes[entry.bytes] == entry.sha256 and holds(archive, entry):
                late = os.pread(descriptor, size_bytes - entry.bytes, entry.bytes)
                if entry.bytes == size_bytes or (late and _appended(path.parent, entry, late)):
                    return True
    return False


def _appended(folder: Path, entry: ManifestEntry, late: bytes) -> bool:
    """Append what came late to the file that has the original's name, in this folder alone."""
    name = Path(entry.source).name
    if not name:
        return False
    target = folder / name
    try:
        with target.open("rb") as file:
            if hashlib.sha256(file.read(entry.written_bytes)).hexdigest() != entry.written_sha256:
                return False
            if late in file.read():
                return True
        append_late(target, late)
    except OSError:
        return False
    return True
