"""Folder: the one way to open what lies in an archive folder.

An archive may lie in a tree that somebody else made (a repository, an unpacked file). A link in it would let that
person choose what is read, appended to or replaced, with the rights of whoever runs the program. So no step below
the archive folder may be a link, every file is a regular one, and all of it belongs to the user.
``.transcripts``, which is found rather than named, may be no link itself either.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE, sync_opened
from compactor_cli.model.errors import Unreadable

LOCAL_ARCHIVE = ".transcripts"

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A pipe in the place of a file is not waited for: it is refused when it is open.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ADVICE = "look at it, and remove it; or name another archive with --archive-dir"


@contextlib.contextmanager
def opened_folder(root: Path, name: str = "", *, make: bool = False) -> Iterator[int]:
    """A descriptor of the archive folder, or of the folder ``name`` in it, to open things relative to.

    ``make``: make it first, private. Raises `Unreadable` for a link and for what is not the user's, `OSError` else.
    """
    with _opened_root(root) as top:
        if not name:
            yield top
            return
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, PRIVATE_FOLDER_MODE, dir_fd=top)
                sync_opened(top)
        with _closing(_open(name, _FOLDER | os.O_NOFOLLOW, 0, top, root / name)) as descriptor:
            _check_own(os.fstat(descriptor), root / name)
            yield descriptor


def open_inside(root: Path, name: str, flags: int = os.O_RDONLY, mode: int = PRIVATE_FILE_MODE) -> int:
    """Open ``name`` (``file`` or ``folder/file``) in the archive folder ``root``; the descriptor.

    Raises `Unreadable` for a link, for what is no regular file, for what belongs to somebody else and, to be written
    to, for what has other names too; `OSError` for everything else, as `os.open` does.
    """
    folder, _, last = name.rpartition("/")
    path = root / name
    with opened_folder(root, folder) as parent:
        descriptor = _open(last, flags | _FILE, mode, parent, path)
    try:
        check_plain(os.fstat(descriptor), path, is_written=flags & (os.O_WRONLY | os.O_RDWR) != 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def stored_opener(path: str, flags: int) -> int:
    """An opener for `open_stream`: a stored file, ``ROOT/folder/file``."""
    file = Path(path)
    return open_inside(file.parent.parent, f"{file.parent.name}/{file.name}", flags)


def check_plain(status: os.stat_result, path: Path, *, is_written: bool) -> None:
    """Raise `Unreadable` unless it is a regular file of the user's; with one name, if it is written to."""
    if stat.S_ISLNK(status.st_mode):
        raise Unreadable("is a link, and nothing in an archive is one", place=str(path), next_step=_ADVICE)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("is no regular file, and it lies in an archive", place=str(path), next_step=_ADVICE)
    # Backups by hard links have second names, too, and may be read.
    if is_written and status.st_nlink > 1:
        raise Unreadable("has a second name elsewhere (a hard link)", place=str(path), next_step=_ADVICE)
    _check_own(status, path)


def _check_own(status: os.stat_result, path: Path) -> None:
    if status.st_uid != os.geteuid():
        what = f"belongs to another user (uid {status.st_uid})"
        raise Unreadable(what, place=str(path), next_step=_ADVICE)


@contextlib.contextmanager
def _opened_root(root: Path) -> Iterator[int]:
    is_found = root.name == LOCAL_ARCHIVE
    with _closing(_open(str(root), _FOLDER | (os.O_NOFOLLOW if is_found else 0), 0, None, root)) as descriptor:
        if is_found:
            _check_own(os.fstat(descriptor), root)
        yield descriptor


def _open(name: str, flags: int, mode: int, parent: int | None, path: Path) -> int:
    try:
        return os.open(name, flags, mode, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK) and _is_link(name, parent):
            what = "is a link, and nothing in an archive is one"
            raise Unreadable(what, place=str(path), next_step=_ADVICE) from error
        if error.errno == errno.ENXIO:
            what = "is no regular file, and it lies in an archive"
            raise Unreadable(what, place=str(path), next_step=_ADVICE) from error
        raise


def _is_link(name: str, parent: int | None) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return False


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)
