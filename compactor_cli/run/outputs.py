"""Outputs: where the result of each input goes, decided before any work; and the writing of it.

What is written takes effect only after its original is archived.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from compactor_cli.archive import atomic
from compactor_cli.archive.atomic import Existing, append, atomic_writer, followed, is_special, system_errors
from compactor_cli.model.errors import Changed, CompactError, OutputError, UsageError
from compactor_cli.model.report import LISTED, InputReport, Outcome, TranscriptReport
from compactor_cli.model.value import dataclass
from compactor_cli.read import streams
from compactor_cli.read.jsonl import OnInvalid, RecordReader
from compactor_cli.read.sources import InputSource
from compactor_cli.read.streams import BUFFER_BYTES, NO_LIMITS, STDIN, Compression, ContentHash, Look, Stream
from compactor_cli.run.rows import LEFT_AS_IT_WAS

if TYPE_CHECKING:
    from compactor_cli.archive.store import Archive, ArchiveWriter, ManifestEntry, Part


STDOUT = "-"


class TargetKind(StrEnum):
    """The kinds of places that a result can go to."""

    STDOUT = "stdout"
    FILE = "file"
    IN_PLACE = "in-place"
    APPEND = "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where one result goes."""

    path: str  # `-` for standard output
    kind: TargetKind
    compression: Compression = Compression.NONE
    existing: Existing = Existing.REFUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The command line's options for output; if none is set, results go to standard output."""

    output: str = ""
    output_dir: str = ""
    in_place: bool = False
    append: bool = False
    force: bool = False  # overwrite existing files; in place, also files that are read-only or have hard links
    compress: Compression = Compression.NONE  # for outputs whose name has no ending that names a compression

    @property
    def existing(self) -> Existing:
        """What to do with a file that already exists."""
        return Existing.REPLACE if self.force else Existing.REFUSE


def plan_targets(sources: Sequence[InputSource], destination: Destination) -> tuple[Target, ...]:
    """The target of each source. Nothing is created or changed.

    Raises `UsageError` if several results would be joined, and for a target that is also another source's, that is an
    input, or that already exists.
    """
    ways = (destination.output, destination.output_dir, destination.in_place, destination.append)
    if sum(map(bool, ways)) > 1:
        raise UsageError("-o, --output-dir, -i and --append exclude one another", next_step="choose one")
    if destination.in_place or destination.append:
        return tuple(_own_target(source.path, destination) for source in sources)
    targets = tuple(_new_target(source, destination) for source in sources)
    if not destination.output_dir and len(targets) > 1:
        advice = "use --output-dir DIR, or -i to replace them"
        raise UsageError("several inputs would be joined into one output", next_step=advice)
    _check_apart(sources, targets)
    return targets


def _own_target(path: str, destination: Destination) -> Target:
    """The input as its own target, to be replaced or appended to."""
    if path == STDIN:
        option, what = ("--append", "appended to") if destination.append else ("-i", "replaced")
        raise UsageError(f"standard input cannot be {what}", next_step=f"name a file, or leave {option} out")
    if is_special(path):
        # Refused before it is opened: opening a pipe that nobody writes to would wait for ever.
        raise UsageError("is not a regular file", place=path, next_step="leave it out, or write with -o")
    kind = TargetKind.APPEND if destination.append else TargetKind.IN_PLACE
    return Target(path=path, kind=kind, existing=destination.existing)


def _new_target(source: InputSource, destination: Destination) -> Target:
    """Standard output, the file that is named, or the source's file below the output folder."""
    folder = destination.output_dir
    if not folder and destination.output in ("", STDOUT):
        return Target(path=STDOUT, kind=TargetKind.STDOUT, compression=destination.compress)
    if folder:
        path = Path(folder, "stdin.jsonl" if source.path == STDIN else source.name)
    else:
        check_folder(destination.output)
        path = Path(destination.output)
    compression = streams.compression_named(path.name)
    if compression is Compression.NONE:
        compression = destination.compress
        path = path.with_name(path.name + compression.suffix) if folder else path
    return Target(path=str(path), kind=TargetKind.FILE, compression=compression, existing=destination.existing)


def check_folder(path: str) -> None:
    """Raise `UsageError` if the folder of a file that is to be written does not exist."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise UsageError("there is no such folder", place=str(folder), next_step=f"make it: mkdir -p {folder}")


def _check_apart(sources: Sequence[InputSource], targets: Sequence[Target]) -> None:
    inputs = {_identity(source.path) for source in sources if source.path != STDIN}
    taken: dict[object, str] = {}
    for source, target in zip(sources, targets, strict=True):
        if target.kind is not TargetKind.FILE or is_special(target.path):
            continue
        if Path(target.path).is_dir():
            raise UsageError("is a directory", place=target.path, next_step="use --output-dir, or name a file in it")
        key = _identity(target.path)
        if key in inputs:
            raise UsageError("the output is an input", place=target.path, next_step="use -i to replace files in place")
        if key in taken:
            advice = "name the inputs so that their paths differ, or run them one by one"
            raise UsageError(f"both {taken[key]} and {source.path} go here", place=target.path, next_step=advice)
        if target.existing is Existing.REFUSE and Path(target.path).exists():
            refusal = atomic.already_there(target.path)
            raise UsageError(refusal.what, place=target.path, next_step=refusal.next_step)
        taken[key] = source.path


def check_free(paths: Iterable[str], used: Iterable[str]) -> None:
    """Raise `UsageError` if one of these files, by any name, is in ``used`` (inputs, targets) or named twice."""
    files = [path for path in paths if path not in ("", STDOUT) and not is_special(path)]
    taken = {_identity(path) for path in used} if files else set()
    for path in files:
        if (key := _identity(path)) in taken:
            what = "is an input, a result or another option's file, and nothing else is written to it"
            raise UsageError(what, place=path, next_step="name another file")
        taken.add(key)


def _identity(path: str) -> object:
    """A value that is equal for two names of one file: device and inode, or the full path of a file not yet there."""
    try:
        look = streams.look_at(path)
    except CompactError:
        return str(followed(path))
    return (look.device, look.inode)


def check_replaceable(path: str, existing: Existing) -> None:
    """Raise `OutputError` if a file must not be replaced in place.

    That is so if it is not a regular file and, unless ``existing`` is REPLACE, if it is read-only or has hard links.
    """
    with system_errors(path):
        status = Path(path).stat()
    if not stat.S_ISREG(status.st_mode):
        raise OutputError("is not a regular file", place=path, next_step="leave -i out")
    if existing is Existing.REPLACE:
        return
    if status.st_nlink > 1:
        advice = "use -f to replace it under this name only, or -o for a new file"
        raise OutputError(f"has {status.st_nlink} hard links", place=path, next_step=advice)
    if not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
        raise OutputError("is read-only", place=path, next_step="use -f to replace it anyway")


def check_writable(target: Target, archive: Path | None) -> None:
    """Raise `OutputError` if the system would refuse to replace or append to the target, or to write to the archive."""
    places = [archive] if archive else []
    if target.kind is TargetKind.IN_PLACE:
        check_replaceable(target.path, target.existing)
        places.append(followed(target.path).parent)
    elif target.kind is TargetKind.APPEND:
        places.append(followed(target.path))
    for place in places:
        there = next(path for path in (place, *place.absolute().parents) if path.exists())
        if not os.access(there, os.W_OK):
            raise atomic.output_error(PermissionError(errno.EACCES, ""), str(place))


@contextmanager
def open_target(
    target: Target,
    source: Stream,
    ready: Callable[[str, int], object] = lambda sha256, size_bytes: None,
    warn: Callable[[str], object] = lambda text: None,
) -> Iterator[IO[bytes]]:
    """Open a writer for one result; unless the target is a stream, the result takes effect if the block does not raise.

    In place, the result has the source's compression and mode; `Changed` or `InUse` is raised, and the file left as it
    is, if another program wrote to it since ``source`` was opened, or may be about to. ``ready`` is called with SHA-256
    and size of what is about to replace the file. ``warn``: as in `atomic_writer`. Raises `OutputError` for what cannot
    be written.
    """
    opened: AbstractContextManager[IO[bytes]]
    compression = target.compression
    if target.kind is TargetKind.STDOUT:
        opened = standard_output()
    elif target.kind is TargetKind.IN_PLACE:
        check_replaceable(target.path, target.existing)
        if source.look is None:
            raise OutputError("is not a regular file", place=target.path, next_step="leave -i out")
        take = partial(atomic.replace, old=source.file.fileno(), look=source.look, ready=ready)
        opened, compression = atomic_writer(target.path, take=take, warn=warn), source.compression
    else:
        mode = atomic.DEFAULT_MODE
        if source.look is not None:
            # What only its owner may read stays private.
            mode &= stat.S_IMODE(os.fstat(source.file.fileno()).st_mode) | stat.S_IWUSR
        if not is_special(target.path):
            atomic.make_folders(followed(target.path).parent)
        opened = atomic_writer(target.path, existing=target.existing, mode=mode, warn=warn)
    with opened as file, streams.packing(file, compression) as packer:
        yield packer


@contextmanager
def standard_output() -> Iterator[IO[bytes]]:
    """Standard output for bytes, after the text printed so far. Raises `OutputError`; BrokenPipeError is passed on."""
    with system_errors("standard output"):
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.flush()


_PIECE_BYTES = 1 << 20
# States of digests stored for one input. A session is continued and compacted again, and its state is then used; a row
# of a dataset rarely is, and a file for each of a million rows would cost more than their compaction.
MOST_STATES = 64


class ArchiveOnChange(AbstractContextManager["ArchiveOnChange"]):
    """Archives the input at ``path`` while it is read; nothing is stored of an input that stays as it is.

    ``folder`` returns the folder of the archive and is called when that is needed; None: nothing is stored at all.
    Copying a file begins when its first transcript changes, with what was read before. Copying a pipe, which cannot be
    read twice, begins at its start.
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
        self._committed: ManifestEntry | None = None

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def watch(self, piece: memoryview) -> None:
        """Take the next bytes of the input; an observer of its stream."""
        (self._writer or self.content)(piece)

    def add(self, report: TranscriptReport, state: bytes | None, on_invalid: OnInvalid = OnInvalid.KEEP) -> None:
        """Add the next transcript, and the state of its digest, which is durable on return.

        ``on_invalid`` is DROP if lines of the input were left out up to here.
        """
        length = report.bytes_before
        if report.outcome is Outcome.COMPACTED and self._folder:
            from compactor_cli.archive.store import Part

            archive, _ = self.start()
            self._list_part()
            self._part = Part(sha256=report.sha256, offset=self._offset, length=length, on_invalid=on_invalid)
            if state is not None and self._states < MOST_STATES:
                archive.store_state(state)
                self._states += 1
        self._offset += length

    def commit(self, tally: InputTally) -> None:
        """Store the original durably: the input was read to its end, and it changes. `record` has to follow."""
        if self._folder is None:
            return
        archive, writer = self.start()
        if self._part and self._part.sha256 != writer.content.sha256:
            self._list_part()
        entry = writer.commit()
        self.stored = str(archive.folder / entry.stored)
        source = self._path if self._path == STDIN else str(Path(self._path).absolute())
        self._committed = replace(entry, records=tally.record_count, dialect=tally.dialect, source=source)

    def record(self, written_sha256: str = "", written_bytes: int = 0) -> None:
        """List the original in the manifest, durably, before its compaction takes effect.

        ``written_*`` are of what takes its place, if anything does; `undo` recognises the file by them.
        """
        if self._archive is not None and self._committed is not None:
            entry = replace(self._committed, written_sha256=written_sha256, written_bytes=written_bytes)
            self._archive.record(entry)

    def journal(self, data: bytes) -> AbstractContextManager[None]:
        """Keep ``data`` in the archive while it is appended to the file, so that a killed run can be completed."""
        from compactor_cli.archive.maintenance import journal

        if self._archive is None or self._committed is None:
            return nullcontext()
        return journal(self._archive.folder, self._path, self._committed, data)

    def start(self) -> tuple[Archive, ArchiveWriter]:
        """The archive and its writer, which has by then got all that was read from the stream.

        Has to be called before the first byte of an input that cannot be read twice. Raises `Changed` if the bytes
        archived are not those that were read.
        """
        if self._archive is None or self._writer is None:
            from compactor_cli.archive.store import Archive

            folder = self._folder() if self._folder else None
            assert folder is not None  # noqa: S101 -- for the type checker; callers look
            archive = Archive(folder)
            writer = self._stack.push(archive.writer())  # before there is a file that has to be removed
            writer.__enter__()
            if missing := self.content.size_bytes:
                with streams.open_stream(self._path, limits=NO_LIMITS) as again:  # only what the limits let through
                    while missing and (piece := again.reader.read(min(missing, _PIECE_BYTES))):
                        writer(piece)
                        missing -= len(piece)
            if writer.content.sha256 != self.content.sha256:
                raise Changed("the file changed while it was read", place=self._path, next_step="run again later")
            # The writer hashes what follows, so that it is hashed only once.
            self._archive, self._writer, self.content = archive, writer, writer.content
        return self._archive, self._writer

    def _list_part(self) -> None:
        if self._part is not None and self._writer is not None:
            self._writer.add_part(self._part)
        self._part = None


def added_bytes(path: str, whole: bytes, look: Look) -> bytes:
    """The bytes of ``whole`` after those that the file, as it was at ``look``, holds.

    Raises `Changed` if the file changed since, `OutputError` if its bytes are not the beginning of ``whole``.
    """
    at = 0
    try:
        with Path(path).open("rb") as file:
            while at < look.size_bytes and (piece := file.read(min(BUFFER_BYTES, look.size_bytes - at))):
                if not whole.startswith(piece, at):
                    break
                at += len(piece)
    except OSError as error:
        raise streams.unreadable(error, path) from error
    atomic.check_unchanged(path, look)
    if at != look.size_bytes:
        advice = "use -i: the archive keeps the original"
        raise OutputError("holds several conversations: no end to append to", place=path, next_step=advice)
    return whole[at:]


HELD_BYTES = 8 << 20  # output held in memory before a replacement file is begun for an input without a change so far


class Output:
    """Writes the output of one input to its target.

    To append, everything is held in memory until `finish`. In place, a replacement is begun only when something changes
    or `HELD_BYTES` are exceeded, and a file that stays as it is is not touched. On standard output the first transcript
    is held back until the second or `finish`, so that an input of one transcript is archived before any of it is out.
    """

    def __init__(self, target: Target, stream: Stream, on_change: ArchiveOnChange) -> None:
        self.warnings: list[str] = []
        self._target = target
        self._stream = stream
        self._on_change = on_change
        self._stack = ExitStack()
        self._file: IO[bytes] | None = None
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._is_empty = True

    def __enter__(self) -> Self:
        if self._target.kind not in (TargetKind.IN_PLACE, TargetKind.APPEND):
            self._open()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)

    def write(self, data: bytes, changed: bool) -> None:
        """Write the next transcript."""
        is_first, self._is_empty = self._is_empty, False
        self._held.append(data)
        self._held_bytes += len(data)
        if self._target.kind is TargetKind.IN_PLACE and (changed or self._held_bytes > HELD_BYTES):
            self._open()
        if self._target.kind is not TargetKind.STDOUT:
            self._release()
        elif not is_first:
            self._release()
            if self._file is sys.stdout.buffer:  # not compressed, so that its reader can use it at once
                self._file.flush()

    def finish(self, altered: bool) -> str:
        """Let the output take effect, after all is written and archived; returns its path, or "" if nothing is written.

        What was archived is listed once it is known what takes its place, and before that happens.
        """
        path, kind, look = self._target.path, self._target.kind, self._stream.look
        if kind in (TargetKind.IN_PLACE, TargetKind.APPEND) and not altered:
            with suppress(OutputError):  # the target stays as it is
                self._stack.__exit__(OutputError, OutputError("abandoned"), None)
            self._stack.pop_all()
            return ""
        if kind is not TargetKind.APPEND:
            if kind is not TargetKind.IN_PLACE:
                self._on_change.record()
            self._open()
            self._release()
            self._stack.close()
            return path
        if look is None or self._stream.compression is not Compression.NONE:
            advice = "use -i: the archive keeps the original"
            raise OutputError("nothing can be appended to it: compressed, or no file", place=path, next_step=advice)
        whole = b"".join(self._held)
        added = added_bytes(path, whole, look)
        atomic.check_no_writer(self._stream.file.fileno(), path)
        self._on_change.record(hashlib.sha256(whole).hexdigest(), len(whole))
        with self._on_change.journal(added):
            append(path, added, look)
        return path

    def _open(self) -> None:
        if self._file is None:
            opened = open_target(self._target, self._stream, self._on_change.record, self.warnings.append)
            self._file = self._stack.enter_context(opened)

    def _release(self) -> None:
        if self._file is not None:
            for data in self._held:
                self._file.write(data)
            self._held.clear()
            self._held_bytes = 0


LISTED_ODD = 10_000  # rows listed at most that failed, have warnings or are over their target


@dataclass(slots=True, kw_only=True)
class InputTally:
    """What became of an input: its transcripts counted, its hash, and the paths of output and archived original."""

    path: str
    records: RecordReader | None = None
    output: str = ""  # the path written; empty: none
    archive: str = ""  # the path of the archived original; empty: none
    sha256: str = ""
    bytes_before: int = 0
    counts: Counter[Outcome] = field(default_factory=Counter)
    tokens_before: int = 0
    tokens_after: int = 0
    bytes_after: int = 0
    record_count: int = 0
    over_target: int = 0
    fell_back: int = 0  # transcripts whose summary is the digest's, in part or whole, though a model was asked
    left: int = 0  # transcripts left as they were for want of a summary
    written_as: str = ""  # the format of the output if it is not the input's
    not_carried: Counter[str] = field(default_factory=Counter)  # what the output's format cannot hold, by name
    dialect: str = ""  # that of the first transcript with one
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
        """Count one more transcript."""
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
        if self.lists(report):
            self._listed.append(report)

    def lists(self, report: TranscriptReport) -> bool:
        """Whether the next transcript, which has this report, is listed in the report of the input."""
        is_odd = report.outcome is Outcome.FAILED or bool(report.warnings or report.over_target)
        return len(self._listed) < (LISTED_ODD if is_odd else LISTED)

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
        same = ("path", "output", "archive", "sha256", "written_as")
        sizes = ("tokens_before", "tokens_after", "bytes_before", "bytes_after")
        return InputReport(
            **{name: getattr(self, name) for name in (*same, *sizes)},
            outcome=Outcome.COMPACTED if self.is_altered else outcome,
            reason=reason,
            error=error if failed else "",
            next_step="--report FILE lists them" if failed else "",
            exit_code=3 if failed else 0,
            counts={outcome.value: count for outcome, count in self.counts.items()},
            not_carried=dict(self.not_carried),
            transcripts=tuple(self._listed),
            warnings=tuple(self.warnings),
        )
