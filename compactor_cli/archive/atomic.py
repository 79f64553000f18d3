"""Atomic: a file is there as a whole or not at all; and one run at a time in a folder.

A writer fills a new file next to the target; only when everything is on the disk does it take the target's
name. Whatever happens before (an error, Ctrl-C, a full disk), the target is as it was and nothing is left.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO

from compactor_cli.model.errors import OutputError, TryLater
from compactor_cli.read.streams import BUFFER_BYTES

PRIVATE_FILE_MODE = 0o600
PRIVATE_FOLDER_MODE = 0o700
TEMPORARY_START = ".compact-"
TEMPORARY_END = ".tmp"
# What a new file asks for; the umask takes away from it.
DEFAULT_MODE = 0o666

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
# Some file systems cannot fsync a folder; then there is nothing more to be done for durability.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


class Existing(StrEnum):
    """What to do with a file that has the name already."""

    REFUSE = "refuse"
    REPLACE = "replace"


@contextlib.contextmanager
def atomic_writer(
    path: str | Path,
    *,
    mode: int = DEFAULT_MODE,
    existing: Existing = Existing.REPLACE,
    take: Callable[[Path, Path], None] | None = None,
    warn: Callable[[str], object] = lambda text: None,
) -> Iterator[IO[bytes]]:
    """A file to write ``path`` with; it takes effect, durably, when the block ends without an exception.

    Links are followed: the file they lead to is replaced, not the link. A replaced file's mode stays, and its
    owner where the system allows; a new file has ``mode`` less the umask. ``take`` gives the complete file
    (its first argument) the name (its second) in a way of its own. A device or a pipe is not replaced, but written
    to. ``warn`` is called where the file is in place, and only its folder could not be brought to the disk.

    Raises `OutputError` with a next step for everything that the system refuses (disk full, no permission).
    """
    target = followed(path)
    temporary = temporary_name(target.parent)
    try:
        if is_special(path):
            with Path(path).open("wb") as file:
                yield file
            return
        begun = PRIVATE_FILE_MODE if _status(target) else mode
        try:
            with os.fdopen(new_temporary(str(temporary), begun), "wb", BUFFER_BYTES) as file:
                yield file
                _complete(file, target)
                if take:
                    with _still_locked(file, temporary):
                        take(temporary, target)
                else:
                    _take_name(temporary, target, existing)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
        # The file has its name; what fails now takes nothing back.
        try:
            sync_folder(target.parent)
        except OSError as error:
            what = f"its folder cannot be synced ({error.strerror or error})"
            warn(f"is written, but may be lost in a power cut: {what}")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error, str(path)) from error


def write_private(path: Path, text: str) -> None:
    """A file that only its owner may read, and a folder for it. Raises `OutputError`."""
    make_folders(path.parent, PRIVATE_FOLDER_MODE)
    with atomic_writer(path, mode=PRIVATE_FILE_MODE) as file:
        file.write(text.encode("utf-8", "replace"))


def is_special(path: str | Path) -> bool:
    """Whether ``path`` is there but no regular file (``/dev/null``, a pipe): it is written to, not replaced."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def temporary_name(folder: Path) -> Path:
    """A name in ``folder`` that nobody else uses; hidden, so that no run over the tree takes it for an input."""
    return folder / f"{TEMPORARY_START}{os.urandom(8).hex()}{TEMPORARY_END}"


def holds_temporaries(folder: Path) -> bool:
    """Whether a file in a folder has such a name: of a run that goes on, or of one that was killed."""
    try:
        return any(path.name.startswith(TEMPORARY_START) for path in folder.iterdir())
    except OSError:
        return False


def _complete(file: IO[bytes], target: Path) -> None:
    """Everything on the disk, with the mode and owner of the file that is replaced."""
    file.flush()
    if replaced := _status(target):
        now = os.fstat(file.fileno())
        if (now.st_uid, now.st_gid) != (replaced.st_uid, replaced.st_gid):
            # Only root may give files away; for all others the new file is theirs, as with any editor.
            with contextlib.suppress(PermissionError):
                os.fchown(file.fileno(), replaced.st_uid, replaced.st_gid)
        os.fchmod(file.fileno(), stat.S_IMODE(replaced.st_mode))
    os.fsync(file.fileno())


@contextlib.contextmanager
def _still_locked(file: IO[bytes], temporary: Path) -> Iterator[None]:
    """The file closed for writing, so that whoever looks for its writers finds others alone, and still locked."""
    import fcntl

    with temporary.open("rb") as reader:
        with contextlib.suppress(OSError):
            fcntl.flock(reader, fcntl.LOCK_SH)
        file.close()
        yield


def new_temporary(name: str, mode: int = PRIVATE_FILE_MODE, folder: int | None = None) -> int:
    """A new file for writing, locked (flock) until its descriptor is closed: what is not locked was left behind.

    ``folder``: a descriptor that ``name`` is relative to.
    """
    import fcntl

    while True:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
        # Where a file system has no locks, nothing is swept either.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        # Swept between the two calls above.
        os.close(descriptor)


def followed(path: str | Path) -> Path:
    """The file that a path leads to through links, absolute; the path itself where links run in a circle."""
    try:
        return Path(path).resolve()
    except (RuntimeError, OSError):
        return Path(path).absolute()


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _take_name(temporary: Path, target: Path, existing: Existing) -> None:
    if existing is Existing.REPLACE:
        temporary.replace(target)
        return
    try:
        # Unlike a look and then a rename, this also refuses a file that came into being just now.
        os.link(temporary, target)
    except FileExistsError:
        raise already_there(str(target)) from None
    except OSError:  # a file system without hard links
        if target.exists():
            raise already_there(str(target)) from None
        temporary.replace(target)


def already_there(path: str) -> OutputError:
    """The refusal to overwrite."""
    return OutputError("exists already", place=path, next_step="use -f to overwrite it, or another name")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_opened(descriptor)
    finally:
        os.close(descriptor)


def sync_opened(folder: int) -> None:
    """`sync_folder` of an open folder."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def make_folders(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it, durably; what is there stays as it is. Raises `OutputError`."""
    missing = [item for item in (folder, *folder.parents) if not item.exists()]
    with system_errors(folder):
        for item in reversed(missing):
            item.mkdir(mode, exist_ok=True)
            sync_folder(item.parent)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def output_error(error: OSError, path: str) -> OutputError:
    """What went wrong with writing ``path``, in words, with what to do next."""
    if error.errno in _FULL:
        return OutputError("the disk is full", place=path, next_step="free some space, then run again")
    if error.errno in _FORBIDDEN:
        return OutputError("no permission to write it", place=path, next_step="check owner and mode of its folder")
    if error.errno == errno.ENOENT:
        return OutputError("its folder does not exist", place=path, next_step="make the folder, or use another name")
    advice = "nothing was replaced unless it is complete; check the file system, then run again"
    return OutputError(f"cannot be written ({error.strerror or error})", place=path, next_step=advice)


@contextlib.contextmanager
def system_errors(path: str | Path) -> Iterator[None]:
    """What the system refuses in the block is raised as `OutputError` about ``path``; a broken pipe as it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error, str(path)) from error


@contextlib.contextmanager
def lock(root: str | Path) -> Iterator[None]:
    """Hold the folder ``root`` for this process; it ends with the block, or with the process however it ends.

    The folder itself is locked (flock), so that nothing is left in it. Raises `TryLater` if another run
    holds it, `OutputError` if the folder is missing or its file system has no locks.
    """
    import fcntl

    with system_errors(root):
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            place, advice = str(root), "use --set lock=false"
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                advice = "try again when it is done, or --set lock=false"
                raise TryLater("another run is at work here", place=place, next_step=advice) from error
            raise OutputError(f"cannot be locked ({error.strerror})", place=place, next_step=advice) from error
        yield
    finally:
        os.close(descriptor)
