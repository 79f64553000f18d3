"""Verify and prune: whether an archive has everything, with the hashes it is named by; and old originals taken out.

None is taken out that a compacted file still depends on. A session that is archived again and again while it grows
takes the room of one: an earlier state that the bytes of a later one begin with is listed as a transcript inside that,
by its own hash, and its own file is taken out; it is restored, expanded and verified as before.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from compactor_cli.archive import store
from compactor_cli.archive.atomic import system_errors
from compactor_cli.archive.recover import JOURNAL_START, find_leftovers
from compactor_cli.archive.restore import Listed, listed, markers_in
from compactor_cli.archive.store import MANIFEST, SIDECAR_ENDING, Archive, ManifestEntry, Part, content, opened_folder
from compactor_cli.model.errors import CompactError, InputError, Unreadable
from compactor_cli.model.marker import SHOWN_HASH_CHARS
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.streams import STDIN

_COPY = "look for another copy of the archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked and what is wrong; everything can be restored where nothing is."""

    originals: int
    size_bytes: int
    transcripts: int
    states: int
    problems: tuple[InputError, ...] = ()
    leftovers: tuple[Path, ...] = ()  # what killed runs left in the archive folder and, of ``.transcripts``, next to it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """One stored file: its unpacked size, and what is wrong with it."""

    size_bytes: int = 0
    transcripts: int = 0
    problems: tuple[InputError, ...] = ()


def verify(folder: str | Path) -> Verification:
    """Compare every file of an archive with its name, the manifest and the lists. Raises `Unreadable`."""
    root = Path(folder)
    if not root.is_dir():
        raise Unreadable("no such archive folder", place=str(root), next_step="name it with --archive-dir")
    with opened_folder(root):  # raises for one that is not the user's own
        pass
    # Read first: what a run adds meanwhile is stored before it is listed, and so is no longer missing.
    entries = tuple(store.read_entries(root))
    checked = {path: _original(root, sha256, path) for sha256, path in store.stored_blobs(root)}
    states = sorted((root / store.STATE_FOLDER).glob("*.zst"))
    found = [problem for item in checked.values() for problem in item.problems]
    for path in states:
        try:
            if not _hashed(content(path))[1].startswith(path.name.partition(".")[0]):
                found.append(_damaged(path, "its hash is not its name"))
        except CompactError as error:
            found.append(_damaged(path, error.what))
    found += (
        InputError("lists transcripts of an original that is not here", place=str(path), next_step=_COPY)
        for sha256, path in store.stored_sidecars(root)
        if next(store.stored_blobs(root, sha256), None) is None
    )
    originals = {path.relative_to(root).as_posix(): item for path, item in checked.items()}
    folders = (root, root.absolute().parent) if root.name == store.LOCAL_ARCHIVE else (root,)
    left = [path for folder in folders for path in find_leftovers(folder)]
    return Verification(
        originals=len(checked),
        size_bytes=sum(item.size_bytes for item in checked.values()),
        transcripts=sum(item.transcripts for item in checked.values()),
        states=len(states),
        problems=(*found, *_manifest(root, entries, originals)),
        leftovers=(*left, *sorted(root.glob(f"{JOURNAL_START}*"))),
    )


def _original(root: Path, sha256: str, path: Path) -> _Checked:
    try:
        parts = sorted(_parts(root, sha256), key=lambda part: part.offset)
    except Unreadable as error:
        return _Checked(problems=(error,))
    of_whole = [part for part in parts if part.on_invalid is not OnInvalid.DROP]
    of_valid = [part for part in parts if part.on_invalid is OnInvalid.DROP]
    try:
        size_bytes, found, wrong = _hashed(content(path), of_whole)
        wrong += _hashed(content(path, OnInvalid.DROP), of_valid)[2] if of_valid else ()
    except CompactError as error:
        return _Checked(problems=(_damaged(path, error.what),))
    if found != sha256:
        return _Checked(problems=(_damaged(path, "its hash is not its name"),))
    sidecar = root / store.stored_name(sha256, SIDECAR_ENDING)
    problems = (_damaged(sidecar, f"no transcript {part.sha256[:16]}… at {part.offset}") for part in wrong)
    return _Checked(size_bytes=size_bytes, transcripts=len(parts), problems=tuple(problems))


def _hashed(pieces: Iterable[bytes], parts: Iterable[Part] = ()) -> tuple[int, str, tuple[Part, ...]]:
    """The size and the SHA-256 of the pieces together, and those of the parts that do not have their hash.

    ``parts`` ascend by offset; one that lies beyond the end is wrong.
    """
    whole = hashlib.sha256()
    size_bytes = 0
    waiting = deque(parts)
    begun: list[tuple[Part, hashlib._Hash]] = []
    wrong: list[Part] = []
    for piece in pieces:
        whole.update(piece)
        at, size_bytes = size_bytes, size_bytes + len(piece)
        while waiting and waiting[0].offset < size_bytes:
            begun.append((waiting.popleft(), hashlib.sha256()))
        for part, digest in begun:
            digest.update(piece[max(0, part.offset - at) : max(0, part.offset + part.length - at)])
            if part.offset + part.length <= size_bytes and digest.hexdigest() != part.sha256:
                wrong.append(part)
        begun = [item for item in begun if item[0].offset + item[0].length > size_bytes]
    return size_bytes, whole.hexdigest(), (*wrong, *(part for part, _ in begun), *waiting)


def _manifest(
    root: Path, entries: Iterable[tuple[int, ManifestEntry | None]], originals: Mapping[str, _Checked]
) -> Iterator[InputError]:
    """What is wrong with the manifest, given what was found."""
    for number, entry in entries:
        place = f"{root / MANIFEST}:{number}"
        if entry is None:
            yield InputError("is not an entry", place=place, next_step="the originals are not affected")
        elif (found := originals.get(entry.stored)) is None:
            yield InputError(f"{entry.stored} is not here", place=place, next_step=_COPY)
        elif not found.problems and entry.bytes != found.size_bytes:
            yield InputError(f"does not fit {entry.stored}", place=place, next_step=_COPY)


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"is damaged: {what}", place=str(path), next_step=_COPY)


def old_originals(archives: Sequence[Path], before: str) -> list[tuple[Listed, str]]:
    """The originals last compacted before this moment (UTC, ISO 8601), the oldest first, each once; with the file that
    still uses it (empty: none that is known).

    One is in use where a summary in the file it was archived from names it, or one in an original that is in use.
    """
    newest: dict[tuple[Path, str], Listed] = {}
    for item in sorted(listed(archives), key=lambda item: item.entry.compacted_at):
        newest[item.archive, item.entry.sha256] = item
    used = _in_use(newest)
    old = [item for item in newest.values() if item.entry.compacted_at < before]
    return [(item, used.get(item.entry.sha256, "")) for item in sorted(old, key=lambda item: item.entry.compacted_at)]


def remove(items: Iterable[Listed], *, with_index: bool = True) -> None:
    """Take originals out of their archives, the manifest first, and the index. Raises `OutputError`, `Unreadable`."""
    by_archive: dict[Path, set[str]] = {}
    for item in items:
        by_archive.setdefault(item.archive, set()).add(item.entry.sha256)
    for archive, hashes in by_archive.items():
        with system_errors(archive):
            _unlist(archive, hashes)
            with opened_folder(archive) as root:
                for sha256 in hashes:
                    with suppress(FileNotFoundError), opened_folder(archive, sha256[:2]) as folder:
                        for name in os.listdir(folder):  # noqa: PTH208 -- of a descriptor
                            if name.startswith(f"{sha256}."):
                                os.unlink(name, dir_fd=folder)
                    # Where the folder is empty now.
                    with suppress(OSError):
                        os.rmdir(sha256[:2], dir_fd=root)
                # May be deleted at any time; the next search makes it anew, without the words of what is gone.
                with suppress(FileNotFoundError):
                    if with_index:
                        os.unlink(store.INDEX, dir_fd=root)


def _in_use(items: dict[tuple[Path, str], Listed]) -> dict[str, str]:
    """The originals that are in use, with the file each is used by."""
    by_name: dict[str, str] = {}
    for archive, sha256 in items:
        by_name[sha256[:SHOWN_HASH_CHARS]] = sha256
        with suppress(CompactError):
            for part in _parts(archive, sha256):
                by_name[part.sha256[:SHOWN_HASH_CHARS]] = sha256
    paths = {sha256: item.path for (_, sha256), item in items.items()}
    used: dict[str, str] = {}
    for source in sorted({item.entry.source for item in items.values()} - {STDIN, ""}):
        waiting = [by_name[name] for name in markers_in(source) if name in by_name] if Path(source).is_file() else []
        while waiting:
            sha256 = waiting.pop()
            if sha256 not in used:
                used[sha256] = source
                waiting += [by_name[name] for name in markers_in(paths[sha256]) if name in by_name]
    return used


def _parts(archive: Path, sha256: str) -> Iterator[Part]:
    """The transcripts inside an original that holds several. Raises `Unreadable`."""
    sidecar = archive / store.stored_name(sha256, SIDECAR_ENDING)
    if sidecar.exists():
        yield from store.read_parts(sidecar)


def _unlist(archive: Path, hashes: set[str]) -> None:
    """Write the manifest without these originals, under the lock by which others add to it.

    It is written where it lies: who waits for the lock has this file open.
    """
    import fcntl

    with os.fdopen(store.open_inside(archive, MANIFEST, os.O_RDWR), "r+b") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        lines = file.readlines()
        kept = b"".join(line for line in lines if not any(f'"{sha256}"'.encode() in line for sha256 in hashes))
        file.seek(0)
        file.write(kept)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def store_session(archive: Archive, transcript: Transcript, source: str) -> None:
    """Store a session as it is now, read from ``source``; what it grew from is found inside it from then on.

    Durable on return: the earlier states are taken out after it. Raises `OutputError`, `Unreadable`.
    """
    data = transcript.source()
    earlier = tuple(_earlier(archive, data, source)) if source else ()
    with archive.writer() as writer:
        writer(data)
        if earlier:
            # Their bytes, and the transcripts in them, lie at the same places in what grew from them.
            parts = [Part(sha256=writer.content.sha256, offset=0, length=len(data))]
            for entry in earlier:
                parts += _parts(archive.folder, entry.sha256)
                parts.append(Part(sha256=entry.sha256, offset=0, length=entry.bytes))
            for part in dict.fromkeys(parts):
                writer.add_part(part)
        blob = writer.commit()
    archive.record(blob, records=len(transcript.records), dialect=transcript.dialect, source=source)
    remove((Listed(archive=archive.folder, entry=entry) for entry in earlier), with_index=False)


def _earlier(archive: Archive, data: bytes, source: str) -> Iterator[ManifestEntry]:
    """The originals that were only ever archived from here, and that the session goes on from."""
    entries = [entry for _, entry in store.read_entries(archive.folder) if entry]
    others = {entry.sha256 for entry in entries if entry.source != source or entry.written_sha256}
    own = {entry.sha256: entry for entry in entries if entry.sha256 not in others and entry.bytes < len(data)}
    digest, at = hashlib.sha256(), 0
    for entry in sorted(own.values(), key=lambda entry: entry.bytes):
        digest.update(memoryview(data)[at : entry.bytes])
        at = entry.bytes
        if digest.hexdigest() == entry.sha256:
            yield entry
