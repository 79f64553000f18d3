"""Output: what is written for one input, taking effect only after its original is archived."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from compactor_cli.archive.live_file import check_unchanged
from compactor_cli.archive.targets import Target, TargetKind, open_target
from compactor_cli.model.errors import OutputError
from compactor_cli.read.streams import BUFFER_BYTES, Compression, Look, Stream, unreadable


def added_bytes(path: str, whole: bytes, look: Look) -> bytes:
    """What ``whole`` has more than the file that was looked at.

    Raises `Changed` if anyone wrote to it since, `OutputError` if its bytes are not the beginning of ``whole``.
    """
    at = 0
    try:
        with Path(path).open("rb") as file:
            while at < look.size_bytes and (piece := file.read(min(BUFFER_BYTES, look.size_bytes - at))):
                if not whole.startswith(piece, at):
                    break
                at += len(piece)
    except OSError as error:
        raise unreadable(error, path) from error
    check_unchanged(path, look)
    if at != look.size_bytes:
        advice = "use -i: the archive keeps the original"
        raise OutputError("holds several conversations: no end to append to", place=path, next_step=advice)
    return whole[at:]


if TYPE_CHECKING:
    from compactor_cli.run.archive_on_change import ArchiveOnChange

# So much of an input that seems to stay as it is waits before a replacement is begun.
HELD_BYTES = 8 << 20


class Output:
    """The target of one input.

    Appended, everything is held until `finish`. In place, nothing is begun before something changes, and a file
    that stays as it is is not touched. On standard output the newest transcript is held back until `finish`, so
    that an input of one transcript is archived before a byte of it is out.
    """

    def __init__(self, target: Target, stream: Stream) -> None:
        self._target = target
        self._stream = stream
        self._stack = ExitStack()
        self._file: IO[bytes] | None = None
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._on_change: ArchiveOnChange | None = None
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        if self._target.kind not in (TargetKind.IN_PLACE, TargetKind.APPEND):
            self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def write(self, data: bytes, changed: bool) -> None:
        """The next transcript."""
        if self._target.kind is TargetKind.STDOUT:
            self._release()
        self._held.append(data)
        self._held_bytes += len(data)
        if self._target.kind is TargetKind.IN_PLACE and (changed or self._held_bytes > HELD_BYTES):
            self._open()
        if self._target.kind is not TargetKind.STDOUT:
            self._release()

    def finish(self, altered: bool, on_change: ArchiveOnChange) -> str:
        """Everything was given and archived: let it take effect. The path written, empty if none was.

        ``on_change`` lists what it archived when it is known what takes its place, and before that happens.
        """
        if self._target.kind in (TargetKind.IN_PLACE, TargetKind.APPEND) and not altered:
            self._abandon()
            return ""
        self._on_change = on_change
        if self._target.kind is TargetKind.APPEND:
            self._append(on_change)
            return self._target.path
        if self._target.kind is not TargetKind.IN_PLACE:
            on_change.record()
        self._open()
        self._release()
        self._stack.close()
        return self._target.path

    def _append(self, on_change: ArchiveOnChange) -> None:
        path, look = self._target.path, self._stream.look
        if look is None or self._stream.compression is not Compression.NONE:
            advice = "use -i: the archive keeps the original"
            raise OutputError("nothing can be appended to it: compressed, or no file", place=path, next_step=advice)
        from compactor_cli.archive.live_file import append, check_no_writer

        whole = b"".join(self._held)
        added = added_bytes(path, whole, look)
        check_no_writer(self._stream.file.fileno(), path)
        on_change.record(hashlib.sha256(whole).hexdigest(), len(whole))
        with on_change.journal(added):
            append(path, added, look)

    def _ready(self, sha256: str, size_bytes: int) -> None:
        """The replacement is complete, and is to have these."""
        if self._on_change is not None:
            self._on_change.record(sha256, size_bytes)

    def _open(self) -> None:
        if self._file is None:
            opened = open_target(self._target, self._stream, self._ready, self.warnings.append)
            self._file = self._stack.enter_context(opened)

    def _release(self) -> None:
        if self._file is not None:
            for data in self._held:
                self._file.write(data)
            self._held.clear()
            self._held_bytes = 0

    def _abandon(self) -> None:
        """Leave the target as it is."""
        abandoned = OutputError("abandoned")
        with suppress(OutputError):
            self._stack.__exit__(OutputError, abandoned, None)
        self._stack.pop_all()
