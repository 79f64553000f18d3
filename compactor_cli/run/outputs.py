"""Output: what is written for one input, taking effect only after its original is archived."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from compactor_cli.archive.live_file import check_unchanged
from compactor_cli.archive.targets import Target, TargetKind, open_target
from compactor_cli.model.errors import Changed, OutputError
from compactor_cli.model.report import LISTED, InputReport, Outcome, TranscriptReport
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import OnInvalid, RecordReader
from compactor_cli.read.streams import (
    BUFFER_BYTES,
    NO_LIMITS,
    STDIN,
    Compression,
    ContentHash,
    Look,
    Stream,
    open_stream,
    unreadable,
)
from compactor_cli.run.rows import LEFT_AS_IT_WAS

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

    def __init__(self, folder: Callable[[], Path | None] | None, path: str) -> None:
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
        self._committed: tuple[Blob, InputTally] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
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

    def commit(self, tally: InputTally) -> None:
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

            folder = self._folder() if self._folder else None
            assert folder is not None  # noqa: S101 -- for the type checker; callers look
            self._archive = Archive(folder)
            self._writer = self._stack.enter_context(self._archive.writer())
            if missing := self.content.size_bytes:
                with open_stream(self._path, limits=NO_LIMITS) as again:  # no more than was read before
                    while missing and (piece := again.reader.read(min(missing, _PIECE_BYTES))):
                        self._writer(piece)
                        missing -= len(piece)
        return self._archive, self._writer

    def _list_part(self) -> None:
        if self._part is not None and self._writer is not None:
            self._writer.add_part(self._part)
        self._part = None


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

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)

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
            with suppress(OutputError):  # the target stays as it is
                self._stack.__exit__(OutputError, OutputError("abandoned"), None)
            self._stack.pop_all()
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


# Odd rows are listed wherever they stand, within reason.
LISTED_ODD = 10_000


@dataclass(slots=True, kw_only=True)
class InputTally:
    """What became of an input: its transcripts counted, its hash, and where output and original lie."""

    path: str
    records: RecordReader | None = None
    output: str = ""
    archive: str = ""
    sha256: str = ""
    bytes_before: int = 0
    counts: Counter[Outcome] = field(default_factory=Counter)
    tokens_before: int = 0
    tokens_after: int = 0
    bytes_after: int = 0
    record_count: int = 0
    over_target: int = 0
    fell_back: int = 0
    left: int = 0
    written_as: str = ""
    not_carried: Counter[str] = field(default_factory=Counter)
    dialect: str = ""
    warnings: list[str] = field(default_factory=list)
    _listed: list[TranscriptReport] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many transcripts there were."""
        return self.counts.total()

    @property
    def dropped(self) -> int:
        """How many lines that are not JSON were left out."""
        records = self.records
        return records.invalid_count if records and records.on_invalid is OnInvalid.DROP else 0

    @property
    def is_altered(self) -> bool:
        """Whether the output differs from the input."""
        return bool(self.counts[Outcome.COMPACTED] or self.dropped)

    def add(self, report: TranscriptReport) -> None:
        """One more transcript."""
        self.counts[report.outcome] += 1
        self.tokens_before += report.tokens_before
        self.tokens_after += report.tokens_after
        self.bytes_after += report.bytes_after
        self.record_count += report.records
        self.over_target += bool(report.over_target)
        self.fell_back += bool(report.fell_back)
        if report.warnings:
            self.left += any(warning.startswith(LEFT_AS_IT_WAS) for warning in report.warnings)
        if report.not_carried:
            self.not_carried.update(report.not_carried)
        self.dialect = self.dialect or report.dialect
        is_odd = report.outcome is Outcome.FAILED or bool(report.warnings or report.over_target)
        if len(self._listed) < (LISTED_ODD if is_odd else LISTED):
            self._listed.append(report)

    def report(self) -> InputReport:
        """The report of the whole input."""
        failed = self.counts[Outcome.FAILED]
        outcome = Outcome.FAILED if failed else Outcome.UNCHANGED
        reason = "" if self.count else "empty"
        if self.dropped:
            reason = f"{self.dropped:,} lines that are not JSON were left out"
        elif self.count == 1 and self._listed:
            reason = self._listed[0].reason
        error = f"{self.path}: {failed:,} of {self.count:,} conversations failed and were passed on unchanged"
        return InputReport(
            path=self.path,
            outcome=Outcome.COMPACTED if self.is_altered else outcome,
            output=self.output,
            archive=self.archive,
            sha256=self.sha256,
            reason=reason,
            error=error if failed else "",
            next_step="--report FILE lists them" if failed else "",
            exit_code=3 if failed else 0,
            counts={outcome.value: count for outcome, count in self.counts.items()},
            tokens_before=self.tokens_before,
            tokens_after=self.tokens_after,
            bytes_before=self.bytes_before,
            bytes_after=self.bytes_after,
            written_as=self.written_as,
            not_carried=dict(self.not_carried),
            transcripts=tuple(self._listed),
            warnings=tuple(self.warnings),
        )
