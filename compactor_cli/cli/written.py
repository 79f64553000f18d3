"""Written: the files that options name for what a run writes besides its results; ``-`` is standard output."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import IO

from compactor_cli.archive.atomic import DEFAULT_MODE, atomic_writer, output_error

STDOUT = "-"


@contextlib.contextmanager
def output_file(path: str, *, mode: int = DEFAULT_MODE) -> Iterator[IO[bytes]]:
    """A file as `atomic_writer` makes it, or standard output.

    Raises `OutputError` for what the system refuses; a broken pipe is passed on.
    """
    if path != STDOUT:
        with atomic_writer(path, mode=mode) as file:
            yield file
        return
    try:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error, "standard output") from error
