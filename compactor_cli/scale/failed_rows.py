"""Failed rows: set down next to the output, each with the reason, so that nobody has to search for them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from compactor_cli.archive.atomic import atomic_writer, output_error

ENDING = ".failed"


class FailedRows:
    """JSON lines ``{"row", "reason", "text"}`` in ``OUTPUT.failed``; no file where no row failed.

    ``row`` counts from 0 in the shard; ``text`` is the row as it was (a byte that is not UTF-8 as a lone surrogate,
    the way of Python's ``surrogateescape``). The output holds these rows too, unchanged. Takes effect when the block
    ends well.
    """

    def __init__(self, output: str) -> None:
        self._path = Path(output + ENDING)
        self._stack = ExitStack()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if kind is None and self._file is None:
            try:
                self._path.unlink(missing_ok=True)
            except OSError as reason:
                raise output_error(reason, str(self._path)) from reason

    def add(self, row: int, reason: str, text: bytes) -> None:
        """One that failed."""
        if self._file is None:
            self._file = self._stack.enter_context(atomic_writer(self._path))
        value = {"row": row, "reason": reason, "text": text.decode(errors="surrogateescape")}
        self._file.write(json.dumps(value).encode() + b"\n")
