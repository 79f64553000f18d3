"""Atomic: files appear whole or not at all, one run works in a folder at a time, and no byte of others is lost.

A writer fills a new file next to the target; only when everything is on the disk does it take the target's name.
Whatever happens before (an error, Ctrl-C, a full disk), the target stays as it was and nothing is left.

Between reading a live file, which other programs write to, and replacing it, a program may append to it, replace it
itself, or keep it open and write later. Three means prevent a loss, where the system has them:

- a read lease (Linux): it is refused while anybody has the file open for writing; while it is held, the system lets
  everybody who opens the file for writing wait;
- an exchange of names (``renameat2``): the file that had the name can still be looked at, and gets its name back if
  it is not what was read;
- appending (``O_APPEND``), followed by a check where the bytes were written.

Without leases, writers are looked for in ``/proc``, which shows only the user's own processes; without that, they
cannot be found.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO

from compactor_cli.model.errors import Changed, CompactError, InUse, OutputError, TryLater
from compactor_cli.read.streams import BUFFER_BYTES, Look

PRIVATE_FILE_MODE = 0o600
PRIVATE_FOLDER_MODE = 0o700
TEMPORARY_START = ".compact-"
TEMPORARY_END = ".tmp"
DEFAULT_MODE = 0o666  # of a new file, less the umask

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class Existing(StrEnum):
    """What to do if a file of that name already exists."""

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

    Links are followed: the file that they lead to is replaced, not the link. A replaced file keeps its mode, and its
    owner if the system allows it; a new file has ``mode`` less the umask. ``take`` replaces the step in which the
    complete file (its first argument) takes the target's name (its second). A device or a pipe is not replaced, but
    written to. ``warn`` is called if the file is in place, but its folder could not be synced.

    Raises `OutputError` with a next step for everything that the system refuses (disk full, no permission).
    """
    import fcntl

    target = followed(path)
    temporary = temporary_name(target.parent)
    with system_errors(path):
        if is_special(path):
            with Path(path).open("wb") as file:
                yield file
            return
        begun = PRIVATE_FILE_MODE if _status(target) else mode
        try:
            with os.fdopen(new_temporary(str(temporary), begun), "wb", BUFFER_BYTES) as file:
                yield file
                file.flush()
                if replaced := _status(target):
                    now = os.fstat(file.fileno())
                    if (now.st_uid, now.st_gid) != (replaced.st_uid, replaced.st_gid):
                        # Only root may change the owner; otherwise the file is the user's, as with any editor.
                        with contextlib.suppress(PermissionError):
                            os.fchown(file.fileno(), replaced.st_uid, replaced.st_gid)
                    os.fchmod(file.fileno(), stat.S_IMODE(replaced.st_mode))
                os.fsync(file.fileno())
                if take:
                    with temporary.open("rb") as reader:
                        # Still locked, but closed for writing, so that a search for writers finds only others.
                        with contextlib.suppress(OSError):
                            fcntl.flock(reader, fcntl.LOCK_SH)
                        file.close()
                        take(temporary, target)
                else:
                    _take_name(temporary, target, existing)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
        # The file is in place; a failure from here on cannot undo that.
        try:
            sync_folder(target.parent)
        except OSError as error:
            what = f"its folder cannot be synced ({error.strerror or error})"
            warn(f"is written, but may be lost in a power cut: {what}")


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, and make its folder. Raises `OutputError`."""
    make_folders(path.parent, PRIVATE_FOLDER_MODE)
    with atomic_writer(path, mode=PRIVATE_FILE_MODE) as file:
        file.write(text.encode("utf-8", "replace"))


def is_special(path: str | Path) -> bool:
    """Whether ``path`` exists and is neither a regular file nor a folder: a device or a pipe, never replaced."""
    with contextlib.suppress(OSError):
        mode = Path(path).stat().st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False


def temporary_name(folder: Path) -> Path:
    """A name in ``folder`` that nobody else uses; it is hidden, so that no run takes the file for an input."""
    return folder / f"{TEMPORARY_START}{os.urandom(8).hex()}{TEMPORARY_END}"


def holds_temporaries(folder: Path) -> bool:
    """Whether a folder has a temporary file, of a run that goes on or of one that was killed."""
    with contextlib.suppress(OSError):
        return any(path.name.startswith(TEMPORARY_START) for path in folder.iterdir())
    return False


def new_temporary(name: str, mode: int = PRIVATE_FILE_MODE, folder: int | None = None) -> int:
    """Open a new file for writing; returns its descriptor.

    The file is locked (flock) until the descriptor is closed: one that is not locked was left by a killed run.
    ``folder`` is a descriptor that ``name`` is relative to.
    """
    import fcntl

    while True:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
        # If the file system has no locks, `sweep` removes nothing either.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        # `sweep` removed it between the two calls above.
        os.close(descriptor)


def followed(path: str | Path) -> Path:
    """The absolute path of the file that a path leads to through links, or the path itself if the links form a loop."""
    try:
        return Path(path).resolve()
    except (RuntimeError, OSError):
        return Path(path).absolute()


def _status(path: Path) -> os.stat_result | None:
    with contextlib.suppress(FileNotFoundError):
        return path.stat()
    return None


def _take_name(temporary: Path, target: Path, existing: Existing) -> None:
    if existing is Existing.REPLACE:
        temporary.replace(target)
        return
    try:
        # Unlike a check and then a rename, this also refuses a file that was created just now.
        os.link(temporary, target)
    except FileExistsError:
        raise already_there(str(target)) from None
    except OSError:  # a file system without hard links
        if target.exists():
            raise already_there(str(target)) from None
        temporary.replace(target)


def already_there(path: str) -> OutputError:
    """The error for a file that must not be overwritten."""
    return OutputError("exists already", place=path, next_step="use -f to overwrite it, or another name")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, if the file system can."""
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
        # Some file systems cannot fsync a folder; nothing more can be done for durability then.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise


def make_folders(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it, durably; existing ones stay as they are. Raises `OutputError`."""
    missing = [item for item in (folder, *folder.parents) if not item.exists()]
    with system_errors(folder):
        for item in reversed(missing):
            item.mkdir(mode, exist_ok=True)
            sync_folder(item.parent)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def output_error(error: OSError, path: str) -> OutputError:
    """The error for what went wrong with writing ``path``, in words, with the next step."""
    if error.errno in _FULL:
        return OutputError("the disk is full", place=path, next_step="free some space, then run again")
    if error.errno in _FORBIDDEN:
        return OutputError("no permission to write it", place=path, next_step="check owner and mode of its folder")
    if error.errno == errno.EBADF:
        return OutputError("is closed", place=path, next_step="open it: > FILE")
    if error.errno == errno.ENOENT:
        return OutputError("its folder does not exist", place=path, next_step="make the folder, or use another name")
    advice = "nothing was replaced unless it is complete; check the file system, then run again"
    return OutputError(f"cannot be written ({error.strerror or error})", place=path, next_step=advice)


@contextlib.contextmanager
def system_errors(path: str | Path) -> Iterator[None]:
    """Raise an OSError of the block as `OutputError` about ``path``; BrokenPipeError is passed on."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error, str(path)) from error


@contextlib.contextmanager
def lock(root: str | Path) -> Iterator[None]:
    """Lock the folder ``root`` for this process, until the block or the process ends, in whatever way.

    The folder itself is locked (flock), so that no lock file is left in it. Raises `TryLater` if another run has locked
    it, `OutputError` if the folder is missing or its file system has no locks.
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


# A file that changes places with another: `.compact-RANDOM-HASH.swap`, with the first digits of the new file's hash.
SWAP_END = ".swap"
HASH_CHARS = 16

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_MOST_EXCHANGES = 100  # attempts to put another program's version back, while that program goes on replacing it
_SETTLE_SECONDS = 1.0  # the longest wait for a program that opened the new file while it had the name
_ADVICE = "run again later, nothing was written"


def check_no_writer(descriptor: int, path: str, *, quick: bool = False) -> None:
    """Raise `InUse` if the file, open for reading as ``descriptor``, is open for writing or locked anywhere.

    Some writers cannot be seen: other machines and, without leases, processes of other users. With ``quick``, for files
    that will most likely not be changed, no search is made without leases.
    """
    _lock_shared(descriptor, path)
    with _leased(descriptor, path, quick=quick):
        pass


def replace(temporary: Path, target: Path, *, old: int, look: Look, ready: Callable[[str, int], object]) -> None:
    """Let a complete file take the place of ``target``, which was read through the descriptor ``old``.

    ``ready`` is called before that, with SHA-256 and size of the new file. Raises `Changed` or `InUse` if other
    programs write to the file, replace it or have it open for writing: their file then has the name, with every byte
    that they wrote. If it raises `OSError`, the target is as it was.
    """
    ours = Look.of(temporary.stat())
    with temporary.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    ready(sha256, ours.size_bytes)
    swap = temporary.with_name(f"{temporary.name.partition('.tmp')[0]}-{sha256[:HASH_CHARS]}{SWAP_END}")
    temporary.rename(swap)
    try:
        _lock_shared(old, str(target))
        with _leased(old, str(target)) as undisturbed:
            check_unchanged(str(target), look)
            if not exchange(swap, target):
                _replace_without_exchange(swap, target, old=old, look=look, ours=ours)
                return
            if not (_is(swap, look) and undisturbed()):
                _put_back(swap, target, ours)
                raise Changed("was written to while it was replaced", place=str(target), next_step=_ADVICE)
    except BaseException:
        with contextlib.suppress(OSError):
            if _is(swap, ours):
                swap.unlink()
        raise
    # The archive has the original; if the file cannot be removed now, the next run removes it.
    with contextlib.suppress(OSError):
        swap.unlink()


def check_unchanged(path: str, look: Look) -> None:
    """Raise `Changed` if the file is no longer as it was at ``look``."""
    if not _is(Path(path), look):
        raise Changed("the file changed while it was read", place=path, next_step=_ADVICE)


def append(path: str, data: bytes, look: Look) -> None:
    """Append ``data`` to the file; durable on return.

    Raises `Changed` if others wrote to the file since ``look``, `OutputError` if it cannot be written. The file then
    holds what it held and all that others wrote, but nothing of ``data``, or in the worst case its beginning at the
    end.
    """
    with system_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    pieces: list[tuple[int, int]] = []
    try:
        if Look.of(os.fstat(descriptor)) != look:
            raise Changed("the file changed while it was read", place=path, next_step=_ADVICE)
        _write(descriptor, data, pieces)
        os.fsync(descriptor)
    except BaseException as error:
        # What was appended is removed again if possible; otherwise the next run finds the journal in the archive.
        with contextlib.suppress(OSError, CompactError):
            if pieces and _stands_at(look.size_bytes, pieces) and os.fstat(descriptor).st_size == pieces[-1][1]:
                os.ftruncate(descriptor, look.size_bytes)
                os.fsync(descriptor)
            elif pieces:
                remove_pieces(path, pieces)
        if isinstance(error, OSError):
            raise output_error(error, path) from error
        raise
    finally:
        os.close(descriptor)
    if not _stands_at(look.size_bytes, pieces):
        remove_pieces(path, pieces)
        raise Changed("was written to while it was appended to", place=path, next_step=_ADVICE)


def append_late(path: Path, data: bytes) -> None:
    """Append what another program wrote to the file that lost this name; durable on return. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        _write(descriptor, data, [])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_pieces(path: str, pieces: list[tuple[int, int]]) -> None:
    """Remove these byte ranges (start, stop) from a file that others may write to. Raises as `replace`, and OSError."""
    target = Path(path).resolve()
    with target.open("rb") as file:
        look = Look.of(os.fstat(file.fileno()))
        whole = file.read(look.size_bytes)
        for start, stop in sorted(pieces, reverse=True):
            whole = whole[:start] + whole[stop:]
        take = partial(replace, old=file.fileno(), look=look, ready=lambda sha256, size_bytes: None)
        with atomic_writer(target, take=take) as draft:
            draft.write(whole)


def _writers(status: os.stat_result) -> list[str]:
    """The processes of this user that have the file open for writing; none on systems without ``/proc``."""
    found: list[str] = []
    if Path("/proc/self/fdinfo").is_dir():
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and _has_open(entry.path, status):
                with contextlib.suppress(OSError):
                    name = Path(entry.path, "comm").read_text(errors="replace").strip()
                    found.append(f"{name} (process {entry.name})")
    return found


def _has_open(process: str, status: os.stat_result) -> bool:
    try:
        names = os.listdir(f"{process}/fd")  # noqa: PTH208 -- very many: a Path each would cost more than the look
    except OSError:
        return False
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            link = f"{process}/fd/{name}"
            # Sockets and pipes have no path; devices may be slow to answer.
            where = os.readlink(link)  # noqa: PTH115
            if not where.startswith("/") or where.startswith("/dev/"):
                continue
            if os.path.samestat(os.stat(link), status):  # noqa: PTH116
                opened = Path(process, "fdinfo", name).read_text()
                flags = int(opened.partition("flags:")[2].split()[0], 8)
                if flags & os.O_ACCMODE != os.O_RDONLY:
                    return True
    return False


@contextlib.contextmanager
def _leased(descriptor: int, path: str, *, quick: bool = False) -> Iterator[Callable[[], bool]]:
    """Keep writers away from the file during the block; gives a function that returns whether nobody has tried so far.

    Without leases, only programs that have the file open already are noticed. Raises `InUse`.
    """
    import fcntl

    is_held = is_refused = False
    if hasattr(fcntl, "F_SETLEASE"):
        try:
            # The system announces a writer by a signal: SIGURG is ignored by default.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            is_held = True
        except OSError as error:
            is_refused = error.errno == errno.EAGAIN
    if is_held:
        try:
            yield lambda: fcntl.fcntl(descriptor, fcntl.F_GETLEASE) == fcntl.F_RDLCK
        finally:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        return
    found = _writers(os.fstat(descriptor)) if is_refused or not quick else []
    if found or is_refused:
        who = ", ".join(found[:3]) or "another program"
        raise InUse(f"is open for writing in {who}", place=path, next_step=_ADVICE)
    yield lambda: True


def _lock_shared(descriptor: int, path: str) -> None:
    """Hold a shared lock (flock) until the descriptor is closed. Raises `InUse` if another program locked the file."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno == errno.EWOULDBLOCK:
            raise InUse("another program has locked it", place=path, next_step=_ADVICE) from error


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two files in one step; returns False if the system cannot do that. Raises `OSError`."""
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # the C library has none
        return False
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    failed = call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    number = ctypes.get_errno()
    if failed and number not in _NO_EXCHANGE:
        raise OSError(number, os.strerror(number), str(other))
    return not failed


def _put_back(swap: Path, target: Path, ours: Look) -> None:
    """Give the name back to the file that others wrote, and append what they wrote to the new file meanwhile."""
    for _ in range(_MOST_EXCHANGES):
        try:
            exchange(swap, target)
        except FileNotFoundError:
            # A program removed the new file, and meant the one that had the name before; that still exists.
            swap.rename(target)
            return
        if swap.stat().st_ino == ours.inode:
            break
    # Wait, for a limited time, for programs that have just opened the new file for writing.
    deadline = time.monotonic() + _SETTLE_SECONDS
    while time.monotonic() < deadline:
        with swap.open("rb") as file, contextlib.suppress(InUse):
            check_no_writer(file.fileno(), str(swap))
            break
        time.sleep(0.01)
    with swap.open("rb") as file:
        file.seek(ours.size_bytes)
        late = file.read()
    if late:
        append_late(target, late)
    swap.unlink()


def _replace_without_exchange(swap: Path, target: Path, *, old: int, look: Look, ours: Look) -> None:
    """Replace the target, then check the old file. A replacement by another program in between is not noticed."""
    check_unchanged(str(target), look)
    swap.replace(target)
    if Look.of(os.fstat(old)) == look:
        return
    # The old file was written to just before: it is restored, with what was appended to the new one.
    os.lseek(old, 0, os.SEEK_SET)
    temporary = temporary_name(target.parent)
    with os.fdopen(new_temporary(str(temporary), PRIVATE_FILE_MODE), "wb") as file:
        while piece := os.read(old, BUFFER_BYTES):
            file.write(piece)
        with target.open("rb") as appended:
            appended.seek(ours.size_bytes)
            file.write(appended.read())
        file.flush()
        os.fchmod(file.fileno(), os.fstat(old).st_mode & 0o7777)
        os.fsync(file.fileno())
        temporary.replace(target)
    raise Changed("was written to while it was replaced", place=str(target), next_step=_ADVICE)


def _is(path: Path, look: Look) -> bool:
    with contextlib.suppress(OSError):
        return Look.of(path.stat()) == look
    return False


def _write(descriptor: int, data: bytes, pieces: list[tuple[int, int]]) -> None:
    """Write everything; ``pieces`` gets the ranges (start, stop) where it stands: others may write in between."""
    while data:
        count = os.write(descriptor, data)
        stop = os.lseek(descriptor, 0, os.SEEK_CUR)
        pieces.append((stop - count, stop))
        data = data[count:]


def _stands_at(start: int, pieces: list[tuple[int, int]]) -> bool:
    """Whether the pieces follow one another without a gap from ``start`` on."""
    starts = [start, *(stop for _, stop in pieces[:-1])]
    return [piece[0] for piece in pieces] == starts
