"""Lock: one run at a time in an output root."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from compactor_cli.archive.atomic import output_error
from compactor_cli.model.errors import OutputError, TryLater


@contextlib.contextmanager
def lock(root: str | Path) -> Iterator[None]:
    """Hold the folder ``root`` for this process; it ends with the block, or with the process however it ends.

    The folder itself is locked (flock), so that nothing is left in it. Raises `TryLater` if another run
    holds it, `OutputError` if the folder is missing or its file system has no locks.
    """
    import fcntl

    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise output_error(error, str(root)) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise _refused(error, str(root)) from error
        yield
    finally:
        os.close(descriptor)


def _refused(error: OSError, root: str) -> OutputError | TryLater:
    if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
        return TryLater("another run is at work here", place=root, next_step="try again when it is done, or --no-lock")
    return OutputError(f"cannot be locked ({error.strerror})", place=root, next_step="use --no-lock")
