"""Restore: find what an archive holds by a hash, a file or a record's id, read it as it was, and put it back.

The archives of this user are listed in the state folder, one path per line. The list only helps to find them: an
archive in it that is gone is left out, and one that is not in it is found by its folder.

An original is put back in place of the file that a compaction wrote only if nothing else is lost. Only bytes are
trusted: the file must be, by its hash, exactly what a compaction wrote there, and the archive must hold the original
with its known hash. A line in a manifest only names the place.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import IO

import orjson

from compactor_cli.archive import atomic, store
from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, Existing, atomic_writer, check_unchanged
from compactor_cli.archive.store import WHEN_ARCHIVED, Archive, ManifestEntry, content, stored_blobs
from compactor_cli.formats.detect import open_transcripts, transcripts_of
from compactor_cli.model.errors import CompactError, InputError, OutputError, UnknownShape, Unreadable, UsageError
from compactor_cli.model.marker import SHOWN_HASH_CHARS, Reference, find_marker, parse_id, parse_ranges, record_id
from compactor_cli.model.transcript import Message, Record, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.trigger import previous_marker
from compactor_cli.read import streams
from compactor_cli.read.jsonl import OnInvalid, read_records, records_in
from compactor_cli.read.sources import MANIFEST, is_folder, state_folder
from compactor_cli.read.streams import BUFFER_BYTES, Look, open_stream, packing, unreadable

MIN_PREFIX_CHARS = 8
_SHOWN = 5  # names in an error message, at most
# The beginning of a summary's marker line, in any format: it is ASCII, which JSON leaves as it is.
_MARKER = re.compile(rb"\[compact/1 transcript=([0-9a-f]{16}) ")
_MARKER_BYTES = 64  # more than `_MARKER` matches: kept from one piece for the next
_MARKER_LINE = re.compile(r"\[compact/1 [^\]]*\]")
_FORMS = "write HASH:12, HASH:4-9, HASH and then [12], or a summary's marker line"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOriginal:
    """What can be restored: a stored original, or a part of it (see `Part`)."""

    sha256: str  # of what is restored
    path: Path  # the stored file
    offset: int = 0  # in bytes of the unpacked file
    length: int = -1  # in bytes; -1: the whole file
    on_invalid: OnInvalid = OnInvalid.KEEP  # DROP: offsets count without the lines that are not JSON


def find(folders: Iterable[str | Path], prefix: str) -> FoundOriginal:
    """The one original whose SHA-256 begins with ``prefix``, or else the one transcript inside an original.

    Raises `UsageError` for too few hexadecimal digits, `InputError` if there is none or more than one.
    """
    prefix = prefix.lower()
    if len(prefix) < MIN_PREFIX_CHARS or not store.is_hex(prefix):
        advice = "copy it from the summary's marker, or from MANIFEST.jsonl"
        raise UsageError(f"{prefix!r} is not the start (at least 8 hex digits) of a hash", next_step=advice)
    places = [Path(folder) for folder in folders]
    blobs = (blob for place in places for blob in stored_blobs(place, prefix))
    items = [FoundOriginal(sha256=sha256, path=path) for sha256, path in blobs]
    if not items:
        sidecars = [(place, *stored) for place in places for stored in store.stored_sidecars(place)]
        for place, original, sidecar in sidecars:
            parts = [part for part in store.read_parts(sidecar) if part.sha256.startswith(prefix)]
            for _, path in stored_blobs(place, original) if parts else ():
                items += (FoundOriginal(path=path, **asdict(part)) for part in parts)
    hashes = sorted({item.sha256 for item in items})
    if len(hashes) == 1:
        return items[0]
    if hashes:
        names = ", ".join(hashes[:_SHOWN])
        raise InputError(f"{len(hashes)} hashes begin with {prefix}: {names}", next_step="give more digits")
    more = f" and {len(places) - _SHOWN:,} more archives" if len(places) > _SHOWN else ""
    where = (", ".join(map(str, places[:_SHOWN])) or "no archive") + more
    raise InputError(f"nothing with the hash {prefix} in {where}", next_step="name the archive with --archive-dir")


def restored(found: FoundOriginal) -> Iterator[bytes]:
    """The bytes, in pieces.

    Raises `Unreadable` if they are damaged, but only at the end, when the hash is known: what is made of them should
    take effect only then.
    """
    digest, at = hashlib.sha256(), 0
    stop = found.offset + found.length if found.length >= 0 else sys.maxsize
    for piece in content(found.path, found.on_invalid):
        wanted = piece[max(0, found.offset - at) : max(0, stop - at)]
        digest.update(wanted)
        if wanted:
            yield wanted
        at += len(piece)
        if at >= stop:
            break
    if digest.hexdigest() != found.sha256:
        advice = "look for another copy of the archive; compactor verify names all damage"
        raise Unreadable(f"is damaged: its hash is not {found.sha256[:16]}…", place=str(found.path), next_step=advice)


def restore(found: FoundOriginal, file: IO[bytes]) -> int:
    """Write the bytes to ``file``; returns how many. Raises as `restored`."""
    count = 0
    for piece in restored(found):
        file.write(piece)
        count += len(piece)
    return count


def restore_to(
    found: FoundOriginal,
    path: str | Path,
    existing: Existing = Existing.REFUSE,
    warn: Callable[[str], object] = lambda text: None,
) -> None:
    """`restore` to a file, compressed as its name says.

    The file is written only if the bytes are undamaged; a new one is readable by the user alone.
    """
    writer = atomic_writer(path, existing=existing, mode=PRIVATE_FILE_MODE, warn=warn)
    with writer as file, packing(file, streams.compression_named(str(path))) as packer:
        restore(found, packer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An entry of the manifest of one of several archives."""

    archive: Path
    entry: ManifestEntry

    @property
    def path(self) -> Path:
        """The stored file."""
        return self.archive / self.entry.stored

    @property
    def stored_bytes(self) -> int:
        """The size of the stored file; 0 if it is gone."""
        return self.path.stat().st_size if self.path.exists() else 0


def list_file() -> Path:
    """The path of the list of archives, below ``$XDG_STATE_HOME``."""
    return state_folder() / "archives"


def remember(archive: Path) -> None:
    """Add an archive to the list unless it is in it. If the list cannot be written, nothing happens."""
    line = os.fsencode(archive.absolute())
    if b"\n" in line:
        return
    path = list_file()
    with suppress(OSError, CompactError):
        if path.exists() and line in path.read_bytes().split(b"\n"):
            return
        atomic.make_folders(path.parent, atomic.PRIVATE_FOLDER_MODE)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE_MODE)
        try:
            os.write(descriptor, line + b"\n")
        finally:
            os.close(descriptor)


def known_archives() -> tuple[Path, ...]:
    """The archives in the list, then the one in the data folder: those that exist, each once."""
    try:
        lines = list_file().read_bytes().split(b"\n")
    except OSError:
        lines = []
    folders = [Path(os.fsdecode(line)) for line in lines if line]
    return each_once([*folders, store.default_archive_dir(streams.STDIN, in_place=False)])


def each_once(folders: Iterable[Path]) -> tuple[Path, ...]:
    """The folders that exist, in their order, each once even if it has several names."""
    found: dict[str, Path] = {}
    for folder in folders:
        if is_folder(folder):
            found.setdefault(os.path.realpath(folder), folder)
    return tuple(found.values())


def listed(archives: Iterable[Path]) -> Iterator[Listed]:
    """The entries of the manifests of these archives. A manifest that cannot be read is left out."""
    for archive in archives:
        with suppress(OSError, CompactError):
            yield from (Listed(archive=archive, entry=entry) for _, entry in store.read_entries(archive) if entry)


def original_of(path: str, archives: Iterable[Path]) -> FoundOriginal:
    """The original of a file, by the first of these that the archives know:

    - what was replaced by the compaction that wrote the file;
    - an archived original with which the file begins, as after `undo`;
    - what was archived when this path was last compacted in place, or else when it was last compacted at all;
    - the whole file from which its newest summary was made.

    Raises `InputError` if there is none of these, and for a file that was joined from several compacted ones.
    """
    folders = tuple(archives)
    found = _original_of(path, folders)
    _check_one_original(path, found, folders)
    return found


def _original_of(path: str, folders: Sequence[Path]) -> FoundOriginal:
    with suppress(CompactError):
        return find_compacted(path, folders).original
    names = _names(path)
    of_path = [item for item in listed(folders) if store.source_path(item.entry.source) in names and item.path.exists()]
    if of_path:
        hashes = _beginnings(path, (item.entry.bytes for item in of_path))

        def rank(item: Listed) -> tuple[int, bool, str]:
            """First the longest original that the file begins with, then those replaced in place, then the newest.

            What `undo` archived before it put an original back was not replaced by a compaction.
            """
            entry = item.entry
            is_here = hashes.get(entry.bytes) == entry.sha256
            return entry.bytes if is_here else 0, entry.written_sha256 != "", entry.compacted_at

        newest = max(reversed(of_path), key=rank)  # of two of the same second, the later entry
        return FoundOriginal(sha256=newest.entry.sha256, path=newest.path)
    if newest_marker := next(reversed(markers_in(path)), "") if Path(path).is_file() else "":
        with suppress(InputError):
            return _whole(find(folders, newest_marker))
    advice = "compactor archive list shows what there is; name another archive with --archive-dir"
    raise InputError(f"no archive holds an original of it ({WHEN_ARCHIVED})", place=path, next_step=advice)


def _check_one_original(path: str, found: FoundOriginal, folders: Sequence[Path]) -> None:
    """Raise `InputError` if conversations in the file were made from originals that ``found`` does not hold."""
    known = _hashes_in(found)
    originals = [found]
    with suppress(CompactError):
        # Any record may quote a marker, so that only that of each newest summary counts.
        for transcript in transcripts_of(path) if markers_in(path).keys() - known else ():
            marker = previous_marker(transcript)
            if marker and marker.transcript not in known:
                known.add(marker.transcript)
                with suppress(InputError):
                    originals.append(_whole(find(folders, marker.transcript)))
                    known |= _hashes_in(originals[-1])
    if len(originals) == 1:
        return
    sources = {item.entry.sha256: item.entry.source for item in listed(folders) if item.entry.written_sha256}
    names = [f"{sources.get(item.sha256, '?')} ({item.sha256[:SHOWN_HASH_CHARS]})" for item in originals]
    what = f"holds conversations of {len(names)} compacted files: {', '.join(names[:_SHOWN])}"
    raise InputError(what, place=path, next_step="fetch each original by its hash: compactor restore HASH")


def _whole(found: FoundOriginal) -> FoundOriginal:
    """The whole original in which ``found``, a single conversation of a dataset, lies."""
    return FoundOriginal(sha256=store.stored_sha256(found.path.name), path=found.path)


def _hashes_in(original: FoundOriginal) -> set[str]:
    """The shown hashes of an original, of the transcripts listed in it, and of what its summaries were made from."""
    found = {original.sha256[:SHOWN_HASH_CHARS], *markers_in(original.path, store.stored_opener)}
    sidecar = original.path.with_name(original.sha256 + store.SIDECAR_ENDING)
    with suppress(CompactError):
        found |= {part.sha256[:SHOWN_HASH_CHARS] for part in store.read_parts(sidecar)}
    return found


def _beginnings(path: str, sizes: Iterable[int]) -> dict[int, str]:
    """The SHA-256 of the first bytes of a file, by size; of a compressed file, only that of all its content."""
    with suppress(CompactError, OSError), open_stream(path) as stream:
        if stream.compression is streams.Compression.NONE:
            return prefix_hashes(stream.file.fileno(), sizes)
        whole = streams.ContentHash()
        while piece := stream.reader.read1(BUFFER_BYTES):
            whole(piece)
        return {whole.size_bytes: whole.sha256}
    return {}


def _names(path: str) -> set[str]:
    """The paths by which a manifest may name a file."""
    return {str(Path(path).absolute()), os.path.realpath(path)}


def markers_in(path: str | Path, opener: streams.Opener | None = None) -> dict[str, None]:
    """The hashes (16 digits) in the markers of a file, in their order; empty if it cannot be read."""
    found: dict[str, None] = {}
    tail = b""
    with suppress(CompactError, OSError), open_stream(str(path), opener=opener) as stream:
        while piece := stream.reader.read1(BUFFER_BYTES):
            window = tail + piece
            found.update(dict.fromkeys(name.decode() for name in _MARKER.findall(window)))
            tail = window[-_MARKER_BYTES:]
    return found


def is_archive(folder: Path) -> bool:
    """Whether a folder holds an archive."""
    return (folder / MANIFEST).exists() or any(stored_blobs(folder))


def stored_size(archive: Path) -> int:
    """The size of the stored originals of an archive in bytes."""
    return sum(path.stat().st_size for _, path in stored_blobs(archive))


def transcripts_in(path: Path, on_invalid: OnInvalid = OnInvalid.KEEP) -> Iterator[Transcript]:
    """The transcripts in a stored file, one at a time. Raises InputError."""
    with store.open_stored(path) as stream:
        yield from open_transcripts(records_in(stream, on_invalid))


def load_transcript(folders: Iterable[str | Path], prefix: str) -> Transcript:
    """The one archived transcript whose SHA-256 begins with ``prefix``.

    Raises as `find`, `Unreadable` for damage, and InputError for an original with several conversations.
    """
    found = find(folders, prefix)
    if found.length >= 0:
        # The bytes of a row may have a comma or bracket around them; it is then found in the whole file, below.
        records = read_records(io.BytesIO(b"".join(restored(found))), str(found.path), OnInvalid.KEEP)
        with suppress(UnknownShape):
            for transcript in open_transcripts(records):
                if transcript.sha256 == found.sha256:
                    return transcript
    for transcript in transcripts_in(found.path, found.on_invalid):
        if transcript.sha256 == found.sha256:
            return transcript
    deque(restored(found), maxlen=0)  # raises if it is damaged
    advice = "give the hash in the summary of one of them"
    raise InputError(f"{prefix} is a file of several conversations", place=str(found.path), next_step=advice)


def load_original(folder: Path, sha256: str) -> Transcript | None:
    """The archived transcript whose hash begins with ``sha256``; None if it is missing or damaged."""
    with suppress(CompactError, OSError):
        return load_transcript([folder], sha256)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedRecord:
    """One archived record and its message."""

    sha256: str  # of its transcript
    number: int  # counted from 1
    record: Record
    message: Message

    @property
    def id(self) -> str:
        """The id by which `expand` finds it."""
        return record_id(self.sha256, self.number - 1)


def expand(folders: Sequence[str | Path], names: Iterable[str]) -> Iterator[ExpandedRecord]:
    """The records that the ``names`` refer to, in the order given.

    A name is an id (``54453b50:12``, ``54453b50:4-9``, also in brackets), a hash (all records), or a marker line (the
    records that its summary covers). After a hash or a marker line, references as in summaries (``[12]``) select
    records of that transcript, and then not all of them. Raises UsageError for any other name, InputError if the
    archives have no such transcript, more than one, or fewer records.
    """
    load = lru_cache(maxsize=4)(lambda prefix: load_transcript(folders, prefix))
    for reference in references(names):
        transcript = load(reference.transcript)
        sha256, count = transcript.sha256, len(transcript.records)
        for first, last in reference.ranges or ((1, count),):
            if not 1 <= first <= last <= count:
                asked = f"{first}{f'-{last}' if last != first else ''}"
                what = f"{sha256[:16]} has the records 1-{count}, not {asked}"
                raise InputError(what, next_step="give numbers within")
            pairs = zip(transcript.records[first - 1 : last], transcript.messages[first - 1 : last], strict=True)
            for number, (record, message) in enumerate(pairs, first):
                yield ExpandedRecord(sha256=sha256, number=number, record=record, message=message)


def references(names: Iterable[str]) -> tuple[Reference, ...]:
    """Parse the names of `expand`; each reference has the transcript it belongs to. Raises UsageError."""
    found: list[Reference] = []
    base, is_waiting = "", False
    for name in (name.strip() for name in names):
        line, ranges = _MARKER_LINE.search(name), parse_ranges(name)
        if line and (marker := find_marker(line[0])):
            found.append(Reference(transcript=marker.transcript, ranges=((marker.first, marker.last),)))
            base, is_waiting = marker.transcript, ":" not in name
        elif marked := parse_id(name.strip("[]")):
            found.append(marked)
            base, is_waiting = marked.transcript, ":" not in name
        elif ranges and base:
            if is_waiting:
                found.pop()
            found.append(Reference(transcript=base, ranges=ranges))
            is_waiting = False
        elif ranges:
            advice = f"write HASH:{name.strip('[]')}, with the hash in the summary's marker line"
            raise UsageError(f"{name} does not name a transcript", next_step=advice)
        else:
            raise UsageError(f"“{name}” names no record", next_step=_FORMS)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A file that is, or begins with, what a compaction wrote."""

    entry: ManifestEntry  # of that compaction
    original: FoundOriginal  # what it replaced
    look: Look  # the file as it is now
    added_bytes: int  # written to the file after the compaction


def find_compacted(path: str, archives: Sequence[Path]) -> Compacted:
    """The last compaction of this file; the first of the archives is the file's own.

    Raises `OutputError` if these archives do not know the beginning of the file as the output of a compaction,
    `Unreadable` if it cannot be read, or if the archive is damaged.
    """
    items: list[Listed] = []
    try:
        with Path(path).open("rb") as file:
            look = Look.of(os.fstat(file.fileno()))
            for folder in archives:
                try:
                    for _, entry in store.read_entries(folder):
                        # The file begins with what was written, or with an original to which records were added.
                        if entry and (0 < entry.written_bytes <= look.size_bytes or 0 < entry.bytes < look.size_bytes):
                            items.append(Listed(archive=folder, entry=entry))
                except OSError as error:
                    raise unreadable(error, str(folder)) from error
            sizes = {size for item in items for size in (item.entry.written_bytes, item.entry.bytes)}
            hashes = prefix_hashes(file.fileno(), [size for size in sizes if size <= look.size_bytes])
    except OSError as error:
        raise unreadable(error, path) from error
    found = [item for item in items if hashes.get(item.entry.written_bytes) == item.entry.written_sha256 != ""]
    if not found:
        begins_with = [item.entry for item in items if hashes.get(item.entry.bytes) == item.entry.sha256]
        raise _not_compacted(path, look, begins_with)
    names = _names(path)

    def rank(item: Listed) -> tuple[int, bool, bool]:
        """First the longest output, then that of this path, then one in its own archive."""
        is_named = store.source_path(item.entry.source) in names
        return item.entry.written_bytes, is_named, item.archive == archives[0]

    last = max(reversed(found), key=rank)  # of equal ones, the later entry
    added_bytes = look.size_bytes - last.entry.written_bytes
    original = _verified(last.archive, last.entry)
    return Compacted(entry=last.entry, original=original, look=look, added_bytes=added_bytes)


def _not_compacted(path: str, look: Look, begins_with: Iterable[ManifestEntry]) -> OutputError:
    """The error for a file that no compaction wrote; ``begins_with`` are the originals that it begins with."""
    what = "is not what a compaction wrote here"
    longest = max(begins_with, key=lambda entry: entry.bytes, default=None)
    if longest is None or longest.bytes >= look.size_bytes:
        advice = "name its archive with --archive-dir, or fetch an original by its hash: compactor restore"
        return OutputError(f"{what} ({WHEN_ARCHIVED})", place=path, next_step=advice)
    count, first = lines_from(path, longest.bytes)
    records = "record" if count == 1 else "records"
    what = f"{what}: it is an archived original with {count:,} later {records} (the first: {first})"
    advice = f"compactor restore {longest.sha256[:16]} -o FILE fetches the original"
    return OutputError(what, place=path, next_step=advice)


def put_back(path: str, compacted: Compacted, archive: Path) -> tuple[int, Path]:
    """Archive the file as it is, then let the original take its place, durably.

    Returns the size of the original and the path of the archived file. Raises `Changed` or `InUse` if others write to
    the file, `OutputError`, `Unreadable`; the file is then as it was.
    """
    check_unchanged(path, compacted.look)
    with Path(path).open("rb") as file:
        atomic.check_no_writer(file.fileno(), path)
        kept = Archive(archive)
        with open_stream(path) as stream, kept.writer() as writer:
            records = 0
            while piece := stream.reader.read1(BUFFER_BYTES):
                writer(piece)
                records += piece.count(b"\n")
            stored = writer.commit()
        check_unchanged(path, compacted.look)
        kept.record(replace(stored, records=records, source=str(Path(path).absolute())))
        packed = streams.compression_of(os.pread(file.fileno(), 16, 0))
        take = partial(atomic.replace, old=file.fileno(), look=compacted.look, ready=lambda sha256, size_bytes: None)
        with atomic_writer(path, take=take) as draft, packing(draft, packed) as packer:
            size_bytes = restore(compacted.original, packer)
    return size_bytes, archive / stored.stored


def holds(archive: Path, entry: ManifestEntry) -> bool:
    """Whether an archive has the undamaged original of this entry."""
    with suppress(CompactError):
        _verified(archive, entry)
        return True
    return False


def prefix_hashes(descriptor: int, sizes: Iterable[int]) -> dict[int, str]:
    """The SHA-256 of the first bytes of a file by size, for the sizes that it reaches; the file is read once."""
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


def _verified(folder: Path, entry: ManifestEntry) -> FoundOriginal:
    """The stored original, after a check of its bytes against hash and size. Raises `Unreadable`."""
    for sha256, path in stored_blobs(folder, entry.sha256):
        found = FoundOriginal(sha256=sha256, path=path)
        if sum(map(len, restored(found))) == entry.bytes:
            return found
    advice = "name the archive that holds it with --archive-dir"
    raise Unreadable(f"the original {entry.sha256[:16]} is not here", place=str(folder), next_step=advice)


def lines_from(path: str, start: int) -> tuple[int, str]:
    """How many lines with content a file has from this byte on, and the type or role of the first, for people."""
    with Path(path).open("rb") as file:
        file.seek(start)
        lines = [line for line in file if line.strip()]
    if not lines:
        return 0, "nothing"
    try:
        value = orjson.loads(lines[0])
    except ValueError:
        return len(lines), "no JSON"
    # The type or role that the record gives itself.
    named = (value.get("type") or value.get("role")) if isinstance(value, dict) else ""
    return len(lines), str(named or "a record")[:40]
