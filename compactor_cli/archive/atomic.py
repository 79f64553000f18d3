"""Atomic: a file is there as a whole or not at all, one run at a time in a folder, no byte of others is lost.

A writer fills a new file next to the target; only when everything is on the disk does it take the target's name.
Whatever happens before (an error, Ctrl-C, a full disk), the target is as it was and nothing is left.

Three things happen between a look at a live file, which other programs write to, and its replacement: a program appends
to it, replaces it itself, or keeps it open and writes later. Against them stand, where the system has them:

- a read lease (Linux): it is refused while anybody has the file open for writing, and while it is held the system
  lets everyone wait who opens it for writing;
- an exchange of names (``renameat2``): what had the name until then stays in hand, is looked at again, and gets its
  name back if it is not what was read;
- appending (``O_APPEND``) with a look at where the bytes came to stand.

Without leases, open writers are looked for in ``/proc``, where only the user's own processes are seen; without that
they cannot be known.
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
# What a new file asks for; the umask takes away from it.
DEFAULT_MODE = 0o666

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


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
                        # Only root may give files away; for all others the new file is theirs, as with any editor.
                        with contextlib.suppress(PermissionError):
                            os.fchown(file.fileno(), replaced.st_uid, replaced.st_gid)
                    os.fchmod(file.fileno(), stat.S_IMODE(replaced.st_mode))
                os.fsync(file.fileno())
                if take:
                    with temporary.open("rb") as reader:
                        # Still locked, but closed for writing: whoever looks for its writers finds others alone.
                        with contextlib.suppress(OSError):
                            fcntl.flock(reader, fcntl.LOCK_SH)
                        file.close()
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


def write_private(path: Path, text: str) -> None:
    """A file that only its owner may read, and a folder for it. Raises `OutputError`."""
    make_folders(path.parent, PRIVATE_FOLDER_MODE)
    with atomic_writer(path, mode=PRIVATE_FILE_MODE) as file:
        file.write(text.encode("utf-8", "replace"))


def is_special(path: str | Path) -> bool:
    """Whether ``path`` is there but no regular file (``/dev/null``, a pipe): it is written to, not replaced."""
    with contextlib.suppress(OSError):
        mode = Path(path).stat().st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False


def temporary_name(folder: Path) -> Path:
    """A name in ``folder`` that nobody else uses; hidden, so that no run over the tree takes it for an input."""
    return folder / f"{TEMPORARY_START}{os.urandom(8).hex()}{TEMPORARY_END}"


def holds_temporaries(folder: Path) -> bool:
    """Whether a file in a folder has such a name: of a run that goes on, or of one that was killed."""
    with contextlib.suppress(OSError):
        return any(path.name.startswith(TEMPORARY_START) for path in folder.iterdir())
    return False


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
    with contextlib.suppress(FileNotFoundError):
        return path.stat()
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
        # Some file systems cannot fsync a folder; then there is nothing more to be done for durability.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
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
    if error.errno == errno.EBADF:
        return OutputError("is closed", place=path, next_step="open it: > FILE")
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


# A file that has, or is to have, another's place: `.compact-RANDOM-HASH.swap`, by the start of the new file's hash.
SWAP_END = ".swap"
HASH_CHARS = 16

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
# How often another program may replace the file while its own version is put back.
_MOST_EXCHANGES = 100
# How long a program that opened our file in the moment it had the name is waited for.
_SETTLE_SECONDS = 1.0
_ADVICE = "run again later, nothing was written"


def check_no_writer(descriptor: int, path: str, *, quick: bool = False) -> None:
    """Raise `InUse` if the file, open for reading as ``descriptor``, is open for writing or locked anywhere.

    Whoever is not seen (another user's process where there are no leases, another machine) is not known of.
    ``quick``: for files that are most likely left as they are; without leases, nobody is looked for.
    """
    _lock_shared(descriptor, path)
    with _leased(descriptor, path, quick=quick):
        pass


def replace(temporary: Path, target: Path, *, old: int, look: Look, ready: Callable[[str, int], object]) -> None:
    """Let a complete file take the place of ``target``, which was read through the descriptor ``old``.

    ``ready`` is called before, with SHA-256 and size of the new file. Raises `Changed` and `InUse` if other programs
    write to the file, replace it or have it open for that: their file then has its name, with every byte that they
    wrote. Raises `OSError` with the target as it was.
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
    # The original is in the archive; what cannot be removed now, the next run removes.
    with contextlib.suppress(OSError):
        swap.unlink()


def check_unchanged(path: str, look: Look) -> None:
    """Raise `Changed` if the file is no longer what it was at ``look``."""
    if not _is(Path(path), look):
        raise Changed("the file changed while it was read", place=path, next_step=_ADVICE)


def append(path: str, data: bytes, look: Look) -> None:
    """Write ``data`` after the file's last byte; durable on return.

    Raises `Changed` if others wrote to the file since ``look``, `OutputError` if it cannot be written. Then the file
    holds what it held, and all that others wrote, but nothing of ``data``; at the worst its beginning, at the end.
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
        # Nothing of what was appended stays, if that can be done: what does, the next run finds in the archive.
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
    """Append what another program wrote to the file that had this name before; durable on return. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        _write(descriptor, data, [])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_pieces(path: str, pieces: list[tuple[int, int]]) -> None:
    """Take these byte ranges out of the file, which other programs may write to. Raises as `replace`, and OSError."""
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
    """The processes that have the file open for writing, of those that this user may look at (Linux; else none)."""
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
    """The file without writers as long as the block lasts; the value is whether nobody tried meanwhile.

    Where there are no leases, only those are known who had it open before. Raises `InUse`.
    """
    import fcntl

    is_held = is_refused = False
    if hasattr(fcntl, "F_SETLEASE"):
        try:
            # Who wants to write is announced by a signal: one that is ignored unless it is asked for.
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
    """Hold the file (flock) until the descriptor is closed. Raises `InUse` if somebody has locked it."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno == errno.EWOULDBLOCK:
            raise InUse("another program has locked it", place=path, next_step=_ADVICE) from error


def exchange(one: Path, other: Path) -> bool:
    """Let two files change names at once; False where that cannot be done. Raises `OSError`."""
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
    """The name back to the file that other programs wrote; what they wrote to ours meanwhile is appended to it."""
    for _ in range(_MOST_EXCHANGES):
        try:
            exchange(swap, target)
        except FileNotFoundError:
            # Whoever removed the file meant the one that had the name before.
            swap.rename(target)
            return
        if swap.stat().st_ino == ours.inode:
            break
    # Those who opened it for writing in the last moment are waited for, within reason.
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
    """Replace, then look at the old file again. A program that itself replaces it in between would not be noticed."""
    check_unchanged(str(target), look)
    swap.replace(target)
    if Look.of(os.fstat(old)) == look:
        return
    # It was written to in the last moment: its bytes get a name again, with what was appended to ours meanwhile.
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
    """Write everything; ``pieces`` gets where it came to stand: others may write in between."""
    while data:
        count = os.write(descriptor, data)
        stop = os.lseek(descriptor, 0, os.SEEK_CUR)
        pieces.append((stop - count, stop))
        data = data[count:]


def _stands_at(start: int, pieces: list[tuple[int, int]]) -> bool:
    """Whether the pieces follow each other from ``start`` on."""
    starts = [start, *(stop for _, stop in pieces[:-1])]
    return [piece[0] for piece in pieces] == starts
