"""Maintenance: verify an archive, remove old originals, and finish or remove what killed runs left.

No original is removed that a compacted file still depends on. A session that is archived again and again while it grows
takes the space of one: an earlier state, with whose bytes a later one begins, is listed as a transcript inside the
later one, under its own hash, and its own file is removed; it can be restored, expanded and verified as before.

- **Journal**: what is being appended to a file, kept in the archive until that is done. A run that is killed while it
  writes leaves the beginning of its records at the end of a session, and the agent's next line would be joined
  to them. The next run finds the journal and finishes the append.
- **Leftovers**: a run holds its temporary files locked (flock). One that nobody holds was left by a killed run. A draft
  (``.tmp``) is removed. A ``.swap`` file is either the new file that did not get its place, or the one that lost it:
  the first is recognised by its hash, which is part of its name, the second is removed if the archive holds its bytes.
  What another program wrote to it late is first appended to the file that has the name now.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

import orjson

from compactor_cli.archive import atomic, store
from compactor_cli.archive.atomic import append, append_late, check_no_writer, followed, system_errors
from compactor_cli.archive.restore import Listed, holds, listed, markers_in, prefix_hashes
from compactor_cli.archive.store import SIDECAR_ENDING, Archive, ManifestEntry, Part, content, opened_folder
from compactor_cli.model.errors import CompactError, InputError, Unreadable
from compactor_cli.model.marker import SHOWN_HASH_CHARS
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.sources import MANIFEST
from compactor_cli.read.streams import STDIN, Compression, Look, unreadable

_COPY = "look for another copy of the archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked and what is wrong; without problems, everything can be restored."""

    originals: int  # how many
    size_bytes: int  # of all originals, unpacked
    states: int  # how many tables of digests are stored
    problems: tuple[InputError, ...] = ()
    leftovers: tuple[Path, ...] = ()  # of killed runs, in the folder and, if it is ``.transcripts``, in the one above


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """The check of one stored original."""

    size_bytes: int = 0  # unpacked
    problems: tuple[InputError, ...] = ()


def verify(folder: str | Path) -> Verification:
    """Compare every file of an archive with its name, the manifest and the lists. Raises `Unreadable`."""
    root = Path(folder)
    if not root.is_dir():
        raise Unreadable("no such archive folder", place=str(root), next_step="name it with --archive-dir")
    with opened_folder(root):  # raises for one that is not the user's own
        pass
    # Read first: a run stores an original before it lists it, so that no entry read here lacks its file.
    entries = tuple(store.read_entries(root))
    checked = {path: _original(root, sha256, path) for sha256, path in store.stored_blobs(root)}
    states = sorted((root / store.STATE_FOLDER).glob("*.zst"))
    problems = [problem for item in checked.values() for problem in item.problems]
    problems += filter(None, map(_state_problem, states))
    for sha256, path in store.stored_sidecars(root):
        if next(store.stored_blobs(root, sha256), None) is None:
            what = "lists transcripts of an original that is not here"
            problems.append(InputError(what, place=str(path), next_step=_COPY))
    originals = {path.relative_to(root).as_posix(): item for path, item in checked.items()}
    problems += _entry_problems(root, entries, originals)
    folders = (root, root.absolute().parent) if root.name == store.LOCAL_ARCHIVE else (root,)
    left = [path for folder in folders for path in find_leftovers(folder)]
    return Verification(
        originals=len(checked),
        size_bytes=sum(item.size_bytes for item in checked.values()),
        states=len(states),
        problems=tuple(problems),
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
    return _Checked(size_bytes=size_bytes, problems=tuple(problems))


def _state_problem(path: Path) -> InputError | None:
    try:
        is_sound = _hashed(content(path))[1].startswith(path.name.partition(".")[0])
    except CompactError as error:
        return _damaged(path, error.what)
    return None if is_sound else _damaged(path, "its hash is not its name")


def _entry_problems(
    root: Path, entries: Iterable[tuple[int, ManifestEntry | None]], originals: Mapping[str, _Checked]
) -> Iterator[InputError]:
    """What is wrong with the lines of the manifest; ``originals`` are by their paths in the archive."""
    for number, entry in entries:
        what, advice = "", _COPY
        if entry is None:
            what, advice = "is not an entry", "the originals are not affected"
        elif (found := originals.get(entry.stored)) is None:
            what = f"{entry.stored} is not here"
        elif not found.problems and entry.bytes != found.size_bytes:
            what = f"does not fit {entry.stored}"
        if what:
            yield InputError(what, place=f"{root / MANIFEST}:{number}", next_step=advice)


def _hashed(pieces: Iterable[bytes], parts: Iterable[Part] = ()) -> tuple[int, str, tuple[Part, ...]]:
    """The size and the SHA-256 of all pieces, and the parts whose bytes do not have the part's hash.

    ``parts`` are in the order of their offsets; one that reaches beyond the end is among the wrong ones.
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


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"is damaged: {what}", place=str(path), next_step=_COPY)


def old_originals(archives: Sequence[Path], before: str) -> list[tuple[Listed, str]]:
    """The originals last compacted before a moment (UTC, ISO 8601), oldest first, each with a path that still uses it.

    The path is empty if no user is known. An original is in use if one of the archived paths, or another original that
    is in use, has a summary that names it, or begins with what the compaction of the original wrote.
    """
    items = sorted(listed(archives), key=lambda item: item.entry.compacted_at)
    newest = {(item.archive, item.entry.sha256): item for item in items}
    # Originals by the start of their hash, and by those of the transcripts inside them.
    by_name: dict[str, str] = {}
    for archive, sha256 in newest:
        by_name[sha256[:SHOWN_HASH_CHARS]] = sha256
        with suppress(CompactError):
            for part in _parts(archive, sha256):
                by_name[part.sha256[:SHOWN_HASH_CHARS]] = sha256
    paths = {sha256: item.path for (_, sha256), item in newest.items()}
    # What a compaction without a summary replaced is only in the manifest.
    replaced: dict[str, set[str]] = {}
    sizes: dict[str, set[int]] = {}
    for entry in (item.entry for item in items):
        replaced.setdefault(entry.written_sha256, set()).add(entry.sha256)
        sizes.setdefault(entry.source, set()).add(entry.written_bytes)

    def needed(path: str | Path, hashes: Iterable[str]) -> list[str]:
        named = [by_name[name] for name in markers_in(path) if name in by_name]
        return [*named, *chain.from_iterable(replaced.get(sha256, ()) for sha256 in hashes)]

    used: dict[str, str] = {}
    for source in sorted(sizes.keys() - {STDIN, ""}):
        path = store.source_path(source)
        waiting = needed(path, _beginnings(path, sizes[source])) if Path(path).is_file() else []
        while waiting:
            sha256 = waiting.pop()
            if sha256 not in used:
                used[sha256] = source
                waiting += needed(paths[sha256], [sha256])
    old = [item for item in newest.values() if item.entry.compacted_at < before]
    return [(item, used.get(item.entry.sha256, "")) for item in sorted(old, key=lambda item: item.entry.compacted_at)]


def _beginnings(path: str, sizes: Iterable[int]) -> Iterable[str]:
    """The SHA-256 of the first bytes of a file, for each of these sizes; nothing if it cannot be read."""
    with suppress(OSError), Path(path).open("rb") as file:
        return prefix_hashes(file.fileno(), sizes).values()
    return ()


def remove(items: Iterable[Listed], *, with_index: bool = True) -> None:
    """Remove originals: from the manifest, from the archive, then the index. Raises `OutputError`, `Unreadable`."""
    import fcntl

    by_archive: dict[Path, set[str]] = {}
    for item in items:
        by_archive.setdefault(item.archive, set()).add(item.entry.sha256)
    for archive, hashes in by_archive.items():
        with system_errors(archive):
            # Under the lock that `append_entry` takes, and in place: those who wait for the lock have this file open.
            with os.fdopen(store.open_inside(archive, MANIFEST, os.O_RDWR), "r+b") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX)
                lines = [(store.parse_entry(line), line) for line in file]
                file.seek(0)
                file.writelines(line for entry, line in lines if not (entry and entry.sha256 in hashes))
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
            with opened_folder(archive) as root:
                for sha256 in hashes:
                    with suppress(FileNotFoundError), opened_folder(archive, sha256[:2]) as folder:
                        for name in os.listdir(folder):  # noqa: PTH208 -- of a descriptor
                            if name.startswith(f"{sha256}."):
                                os.unlink(name, dir_fd=folder)
                    # Fails unless the folder is empty now.
                    with suppress(OSError):
                        os.rmdir(sha256[:2], dir_fd=root)
                # The next search makes the index again, without the words of what is gone.
                with suppress(FileNotFoundError):
                    if with_index:
                        os.unlink(store.INDEX, dir_fd=root)


def _parts(archive: Path, sha256: str) -> Iterator[Part]:
    """The transcripts listed inside an original; none if it has no list. Raises `Unreadable`."""
    sidecar = archive / store.stored_name(sha256, SIDECAR_ENDING)
    if sidecar.exists():
        yield from store.read_parts(sidecar)


def store_session(archive: Archive, transcript: Transcript, source: str) -> None:
    """Store a session as it is now, read from ``source``; its earlier states are then found inside it.

    It is durable before the files of the earlier states are removed. Raises `OutputError`, `Unreadable`.
    """
    data = transcript.source()
    earlier: list[ManifestEntry] = []
    if source:
        # Earlier states were only ever archived from this path, and the session begins with their bytes.
        entries = [entry for _, entry in store.read_entries(archive.folder) if entry]
        others = {entry.sha256 for entry in entries if entry.source != source or entry.written_sha256}
        own = {entry.sha256: entry for entry in entries if entry.sha256 not in others and entry.bytes < len(data)}
        digest, at = hashlib.sha256(), 0
        for entry in sorted(own.values(), key=lambda entry: entry.bytes):
            digest.update(memoryview(data)[at : entry.bytes])
            at = entry.bytes
            if digest.hexdigest() == entry.sha256:
                earlier.append(entry)
    with archive.writer() as writer:
        writer(data)
        if earlier:
            # The bytes of an earlier state, and the transcripts in it, have the same offsets in the new one.
            parts = [Part(sha256=writer.content.sha256, offset=0, length=len(data))]
            for entry in earlier:
                parts += _parts(archive.folder, entry.sha256)
                parts.append(Part(sha256=entry.sha256, offset=0, length=entry.bytes))
            for part in dict.fromkeys(parts):
                writer.add_part(part)
        stored = writer.commit()
    archive.record(replace(stored, records=len(transcript.records), dialect=transcript.dialect, source=source))
    remove((Listed(archive=archive.folder, entry=entry) for entry in earlier), with_index=False)


JOURNAL_START = "append-"
_NAME_CHARS = 16
_MOST_JOURNAL_BYTES = 256 << 20  # a larger journal is not compact's: what is appended has some KB
# `.compact-0123456789abcdef.tmp`, `.compact-0123456789abcdef-fedcba9876543210.swap`
_LEFTOVER = re.compile(r"\.compact-[0-9a-f]{16}(?:\.tmp|-([0-9a-f]{16})\.swap)")


@contextmanager
def journal(archive: Path, path: str, original: ManifestEntry, data: bytes) -> Iterator[None]:
    """Keep a journal in the archive while the block appends ``data`` to the file at ``path``, which holds ``original``.

    The journal is durable before the block begins, and stays only if the process dies. Raises `OutputError`,
    `Unreadable`.
    """
    name = _journal_name(path)
    try:
        # The inode guards against a forged journal in a tree made by somebody else, who may know path and bytes of the
        # file in that tree, but not the number that it gets when the tree is unpacked.
        head = {"sha256": original.sha256, "bytes": original.bytes, "inode": Path(path).stat().st_ino}
    except OSError as error:
        raise unreadable(error, path) from error
    with store.PartialFile(archive, Compression.NONE) as draft:
        draft.write(orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE) + data)
        draft.take_name(archive / name)
    try:
        yield
    finally:
        _remove_journal(archive, name)


def finish_append(path: str, archive: Path) -> None:
    """Finish what a killed run began to append to this file.

    If the file ends with the beginning of the data, the rest is appended. If others wrote after that beginning, it is
    removed, so that what they wrote is on lines of its own. Anything else is left as it is. Raises `Changed`, `InUse`,
    `OutputError`, `Unreadable`.
    """
    name = _journal_name(path)
    try:
        with os.fdopen(store.open_inside(archive, name), "rb") as file:
            if os.fstat(file.fileno()).st_size > _MOST_JOURNAL_BYTES:
                return
            head, data = orjson.loads(file.readline()), file.read()
        sha256, size_bytes, inode = str(head["sha256"]), int(head["bytes"]), int(head["inode"])
    except (OSError, ValueError, TypeError, KeyError):
        return
    try:
        with Path(path).open("rb") as file:
            look = Look.of(os.fstat(file.fileno()))
            added = b""
            if look.inode == inode and prefix_hashes(file.fileno(), [size_bytes]).get(size_bytes) == sha256:
                check_no_writer(file.fileno(), path)
                file.seek(size_bytes)
                added = file.read()
        if 0 < len(added) < len(data) and data.startswith(added):
            append(path, data[len(added) :], look)
        elif torn := _torn(added, data):
            atomic.remove_pieces(path, [(size_bytes, size_bytes + torn)])
    except OSError as error:
        raise atomic.output_error(error, path) from error
    _remove_journal(archive, name)


def _torn(added: bytes, data: bytes) -> int:
    """How many of the first bytes of ``added`` are a torn beginning of ``data`` that another program's record follows.

    It is 0 unless the line that holds both is not JSON, and the part of it after the torn beginning is.
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
    with suppress(ValueError):
        orjson.loads(line)
        return True
    return False


def _journal_name(path: str) -> str:
    """The name of the journal for a file, made from the hash of its path."""
    return JOURNAL_START + hashlib.sha256(os.fsencode(followed(path))).hexdigest()[:_NAME_CHARS]


def _remove_journal(archive: Path, name: str) -> None:
    with suppress(OSError, Unreadable), opened_folder(archive) as root:
        os.unlink(name, dir_fd=root)


def find_leftovers(folder: Path) -> Iterator[Path]:
    """The temporary files in a folder that belong to runs that have ended."""
    for path in _named(folder):
        with _held(path) as descriptor:
            if descriptor is not None:
                yield path


def sweep(folder: Path, archives: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Remove what killed runs left in a folder; returns the files that cannot be removed without a loss of bytes."""
    kept = []
    for path in _named(folder):
        with suppress(OSError), _held(path) as descriptor:
            if descriptor is None:
                continue
            if _is_needless(path, descriptor, archives):
                path.unlink()
            else:
                kept.append(path)
    return tuple(kept)


def clear(folders: Iterable[Path], archives: Iterable[Path], warn: Callable[[str], object]) -> None:
    """`sweep` the folders and the archives, and ``warn`` of each file that has to stay."""
    archives = tuple(archives)
    for folder in (*folders, *archives):
        for path in sweep(folder, archives):
            warn(f"{path}: was written to while a run that was killed replaced it: look at it, then remove it")


def _named(folder: Path) -> list[Path]:
    if not (folder.name == store.LOCAL_ARCHIVE and folder.is_symlink()):
        with suppress(OSError), os.scandir(folder) as entries:
            return [folder / entry.name for entry in entries if _LEFTOVER.fullmatch(entry.name)]
    return []


@contextmanager
def _held(path: Path) -> Iterator[int | None]:
    """A descriptor of the file, locked; None if a process holds it, if it is gone, or if it is not this user's."""
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
    """Whether a leftover can be removed. What another program appended to it is first moved to the present file."""
    found = _LEFTOVER.fullmatch(path.name)
    if not found or not found[1]:
        return True
    size_bytes = os.fstat(descriptor).st_size
    if prefix_hashes(descriptor, [size_bytes])[size_bytes].startswith(found[1]):
        return True
    for archive in archives:
        entries: set[ManifestEntry] = set()
        with suppress(OSError, CompactError):
            entries = {entry for _, entry in store.read_entries(archive) if entry and 0 <= entry.bytes <= size_bytes}
        hashes = prefix_hashes(descriptor, [entry.bytes for entry in entries])
        for entry in sorted(entries, key=lambda entry: entry.bytes, reverse=True):
            # Look for the archived original that the file begins with, the longest first.
            if hashes.get(entry.bytes) == entry.sha256 and holds(archive, entry):
                late = os.pread(descriptor, size_bytes - entry.bytes, entry.bytes)
                if entry.bytes == size_bytes or (late and _appended(path.parent, entry, late)):
                    return True
    return False


def _appended(folder: Path, entry: ManifestEntry, late: bytes) -> bool:
    """Append what was written late to the file of the original's name in this folder; returns whether it has it now.

    The file must begin with what the compaction wrote.
    """
    name = Path(store.source_path(entry.source)).name
    with suppress(OSError):
        with (folder / name).open("rb") as file:
            if hashlib.sha256(file.read(entry.written_bytes)).hexdigest() != entry.written_sha256:
                return False
            if late in file.read():
                return True
        append_late(folder / name, late)
        return True
    return False
