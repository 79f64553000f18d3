"""Leftovers: files that killed runs left behind, and what becomes of them.

A run holds its temporary files locked (flock). One that nobody holds was left behind. A draft (``.tmp``) is removed.
A ``.swap`` file is either the new file that did not get its place, or the one that lost it: the first is known by its
hash, which is part of its name, the second is removed if the archive holds its bytes. What another program wrote to
it in the last moment is first appended to the file that has the name now.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from compactor_cli.archive.folder import LOCAL_ARCHIVE
from compactor_cli.archive.live_file import append_late
from compactor_cli.archive.manifest import ManifestEntry, read_entries
from compactor_cli.model.errors import CompactError

_NAME = re.compile(r"\.compact-[0-9a-f]{16}(?:\.tmp|-([0-9a-f]{16})\.swap)")


def find_leftovers(folder: Path) -> Iterator[Path]:
    """The files in a folder that runs left behind which are no more."""
    for path in _named(folder):
        with _held(path) as descriptor:
            if descriptor is not None:
                yield path


def sweep(folder: Path, archives: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Remove what killed runs left in a folder; what cannot be removed without a loss is returned.

    ``archives``: where replaced originals may be found. What cannot be looked at stays.
    """
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
            return [folder / entry.name for entry in entries if _NAME.fullmatch(entry.name)]
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
    found = _NAME.fullmatch(path.name)
    if not found or not found[1]:
        return True
    from compactor_cli.archive.undo import prefix_hashes

    size_bytes = os.fstat(descriptor).st_size
    whole = prefix_hashes(descriptor, [size_bytes])[size_bytes]
    if whole.startswith(found[1]):
        return True
    for archive in archives:
        for entry in _originals(archive, size_bytes, descriptor):
            if entry.bytes == size_bytes:
                return True
            late = os.pread(descriptor, size_bytes - entry.bytes, entry.bytes)
            if _appended(path.parent, entry, late):
                return True
    return False


def _originals(archive: Path, size_bytes: int, descriptor: int) -> Iterator[ManifestEntry]:
    """The originals in the archive that the file begins with, the longest first."""
    from compactor_cli.archive.undo import holds, prefix_hashes

    try:
        entries = {entry for _, entry in read_entries(archive) if entry and 0 <= entry.bytes <= size_bytes}
    except (OSError, CompactError):
        return
    hashes = prefix_hashes(descriptor, [entry.bytes for entry in entries])
    for entry in sorted(entries, key=lambda entry: entry.bytes, reverse=True):
        if hashes[entry.bytes] == entry.sha256 and holds(archive, entry):
            yield entry


def _appended(folder: Path, entry: ManifestEntry, late: bytes) -> bool:
    """Append what came late to the file that has the original's name, in this folder alone."""
    name = Path(entry.source).name
    if not name or not late:
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
