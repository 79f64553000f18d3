"""Depot: the way of one original into the archive, begun only when there is something to lose."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from compactor_cli.model.errors import Changed
from compactor_cli.model.report import Outcome, TranscriptReport
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.streams import NO_LIMITS, STDIN, ContentHash, open_stream
from compactor_cli.run.tally import Tally

if TYPE_CHECKING:
    from compactor_cli.archive.folder import Blob, Part
    from compactor_cli.archive.store import Archive, ArchiveWriter

_PIECE_BYTES = 1 << 20
# Sessions are continued and compacted again, with what the digest counted; rows of a dataset are not, and a
# file on the disk for each of a million of them would cost more than the compaction.
MOST_STATES = 64


class ArchiveOnChange:
    """Archives the input at ``path`` while it is read; nothing is stored of an input that stays as it is.

    ``folder`` names the archive, when it is needed; None: nothing is stored at all. A file is copied from when
    its first transcript changes, catching up with what was read before; a pipe, which cannot be read twice, from
    its start.
    """

    def __init__(self, folder: Callable[[], Path] | None, path: str) -> None:
        self.content = ContentHash()
        self.stored = ""
        self._folder = folder
        self._path = path
        self._archive: Archive | None = None
        self._writer: ArchiveWriter | None = None
        self._stack = ExitStack()
        self._offset = 0
        self._states = 0
        self._part: Part | None = None
        self._committed: tuple[Blob, Tally] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def watch(self, piece: memoryview) -> None:
        """An observer of the input's stream."""
        self.content(piece)
        if self._writer is not None:
            self._writer(piece)

    def begin(self, can_be_read_again: bool) -> None:
        """Before the first byte is read."""
        if not can_be_read_again:
            self._start()

    def add(self, report: TranscriptReport, state: bytes | None, on_invalid: OnInvalid = OnInvalid.KEEP) -> None:
        """The next transcript, and its digest's state, which is durable on return.

        ``on_invalid`` DROP: lines of the input were left out up to here.
        """
        length = report.bytes_before
        if report.outcome is Outcome.COMPACTED and self._folder:
            from compactor_cli.archive.folder import Part

            archive, _ = self._start()
            self._list_part()
            self._part = Part(sha256=report.sha256, offset=self._offset, length=length, on_invalid=on_invalid)
            if state is not None and self._states < MOST_STATES:
                archive.store_state(state)
                self._states += 1
        self._offset += length

    def commit(self, tally: Tally) -> None:
        """The input was read to its end, and changes: the original is durable on return. `record` comes next.

        Raises `Changed` if the bytes archived are not those that were read.
        """
        if self._folder is None:
            return
        archive, writer = self._start()
        if writer.sha256 != self.content.sha256:
            raise Changed("the file changed while it was read", place=self._path, next_step="run again later")
        if self._part and self._part.sha256 != writer.sha256:
            self._list_part()
        blob = writer.commit()
        self.stored = str(archive.folder / blob.stored)
        self._committed = blob, tally

    def record(self, written_sha256: str = "", written_bytes: int = 0) -> None:
        """List the original in the manifest, durably, before its compaction takes effect.

        ``written_*``: what takes its place, if something does; `undo` knows the file by it.
        """
        if self._archive is None or self._committed is None:
            return
        blob, tally = self._committed
        source = self._path if self._path == STDIN else str(Path(self._path).absolute())
        self._archive.record(
            blob,
            records=tally.record_count,
            dialect=tally.dialect,
            source=source,
            written=(written_sha256, written_bytes),
        )

    def journal(self, data: bytes) -> AbstractContextManager[None]:
        """While ``data`` is being appended to the file, the archive holds it: a run that is killed is made good."""
        from compactor_cli.archive.recover import journal

        if self._archive is None or self._committed is None:
            return nullcontext()
        return journal(self._archive.folder, self._path, self._committed[0], data)

    def _start(self) -> tuple[Archive, ArchiveWriter]:
        """The archive, and its writer caught up with the stream."""
        if self._archive is None or self._writer is None:
            from compactor_cli.archive.store import Archive

            assert self._folder is not None  # noqa: S101 -- for the type checker; callers look
            self._archive = Archive(self._folder())
            self._writer = self._stack.enter_context(self._archive.writer())
            if self.content.size_bytes:
                self._catch_up(self._writer)
        return self._archive, self._writer

    def _catch_up(self, writer: ArchiveWriter) -> None:
        missing = self.content.size_bytes
        with open_stream(self._path, limits=NO_LIMITS) as again:  # no more than was read before
            while missing and (piece := again.reader.read(min(missing, _PIECE_BYTES))):
                writer(piece)
                missing -= len(piece)

    def _list_part(self) -> None:
        if self._part is not None and self._writer is not None:
            self._writer.add_part(self._part)
        self._part = None
