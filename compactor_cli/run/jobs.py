"""Jobs: one input, from opening it to replacing its file.

The order is the guarantee: the archive is durable before the output takes effect, and the output before
the source is replaced. A failure leaves the source as it was. Rows of a dataset are worked on one by one.
The user's hooks are programs that are run before a transcript and after an input is compacted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli import __version__
from compactor_cli.formats.detect import find_row, open_transcripts
from compactor_cli.model import errors
from compactor_cli.model.errors import CompactError, OutputError, UnknownShape
from compactor_cli.model.plan import Importance, Mode, Plan
from compactor_cli.model.report import BytesRead, InputBegan, InputReport, Listener, Outcome, Planned, TranscriptEnded
from compactor_cli.model.settings import Settings, unarchived
from compactor_cli.model.transcript import Container, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.planner import planned_report
from compactor_cli.plan.tokens import AMOUNT
from compactor_cli.read import streams
from compactor_cli.read.jsonl import OnInvalid, RecordReader, parse, records_in
from compactor_cli.read.sources import InputSource
from compactor_cli.read.streams import DEFAULT_LIMITS, STDIN, Compression, ReadLimits, Slice, open_stream, shown_name
from compactor_cli.run.outputs import ArchiveOnChange, InputTally, Output, Target, TargetKind, check_writable
from compactor_cli.run.rows import FinishedRow, Review, RowMaker, SessionNote, View, mapped, note_of

if TYPE_CHECKING:
    from compactor_cli.model.summary import Summariser
    from compactor_cli.plugged import PluginEngine
    from compactor_cli.render.convert import OutputShape
    from compactor_cli.run.documents import Saved
    from compactor_cli.run.model_run import ModelConfig, ModelRun


# Why a file found in a folder is skipped: its name matches that of a transcript, its content does not.
PASSED_OVER = "no transcript"


class Purpose(StrEnum):
    """What a run does with its inputs."""

    ACT = "act"  # compact and write
    PLAN = "plan"  # decide, write nothing
    TRY = "try"  # compact, write nothing


class Originals(StrEnum):
    """Which originals are archived."""

    REPLACED = "replaced"  # those of inputs that are replaced or appended to: other inputs stay where they are
    ARCHIVED = "archived"  # those of all inputs that are compacted
    NOT_KEPT = "not kept"


class AfterFailure(StrEnum):
    """What happens to the inputs after one that failed."""

    GO_ON = "go on"
    STOP = "stop"


class FinishedPolicy(StrEnum):
    """What to do with a shard that an earlier run finished."""

    SKIP = "skip"
    REDO = "redo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One input, or a part of one, and where its result goes."""

    source: InputSource
    target: Target
    part: Slice | None = None
    is_shard: bool = False  # has the same result on every machine, so that only an archive named by the user is read

    @property
    def changes_input(self) -> bool:
        """Whether the input is replaced or appended to."""
        return self.target.kind in (TargetKind.IN_PLACE, TargetKind.APPEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """The configuration of a run, the same for all its inputs (files or shards)."""

    settings: Settings = field(default_factory=Settings)
    purpose: Purpose = Purpose.ACT
    dialect: str = ""  # empty: found by content
    on_invalid: OnInvalid = OnInvalid.FAIL
    min_age_seconds: float = 0.0  # files that were written to more recently are skipped
    originals: Originals = Originals.REPLACED
    archive_dir: str = ""  # empty: the default one of each file, and none for shards
    plans: Mapping[str, Saved] | None = None  # saved decisions to follow, by the transcript's hash; None: decide anew
    view: View | None = None  # makes the text that is shown of each transcript
    page: View | None = None  # makes the HTML page of each transcript
    models: ModelConfig | None = None  # write the summaries; None: the summariser does, or else the digest
    model_run: ModelRun | None = None  # the connection to the models
    key_file: str = ""  # holds the keys: every process reads it itself, and ``models`` has none
    review: Review | None = None  # asks a person about each compaction
    summariser: Callable[[str], Summariser] | None = None  # makes the summariser that follows the given guidance
    engine: PluginEngine | None = None  # a plug-in that plans and summarises instead of the built-in engine
    importance: Importance | None = None  # is used instead of the importance that the settings name
    shape: OutputShape | None = None  # the format of the outputs; None: that of the input
    hooks: Hooks | None = None  # programs of the user
    memory: str = ""  # the file with the agent's own notes, see `note_of`; empty: none
    redacts_output: bool = False  # whether secrets are removed from what is written
    limits: ReadLimits = DEFAULT_LIMITS  # of each input
    after_failure: AfterFailure = AfterFailure.GO_ON
    # Of shards: the columns that hold the conversations, with commas between. Empty: each row is one conversation; in a
    # table, the first column that holds conversations is used.
    column: str = ""
    finished: FinishedPolicy = FinishedPolicy.SKIP  # of shards

    def archives(self, job: Job) -> bool:
        """Whether the original of this input is archived when it is compacted."""
        if job.is_shard:
            return bool(self.archive_dir)
        return self.originals is Originals.ARCHIVED or (self.originals is Originals.REPLACED and job.changes_input)

    def archive_of(self, job: Job) -> Path | None:
        """The folder of the archive for this input, or None if there is none."""
        if self.archive_dir or job.is_shard:
            return Path(self.archive_dir) if self.archive_dir else None
        from compactor_cli.archive.store import default_archive_dir

        return default_archive_dir(job.source.path, in_place=job.changes_input)

    def model_config(self) -> ModelConfig | None:
        """The configuration of the models, with this machine's keys if a key file is named; None without models."""
        if self.models is None or not self.key_file:
            return self.models
        from compactor_cli.llm.model_calls import read_keys

        options = self.models.model_options
        return replace(self.models, keys=read_keys(Path(self.key_file), options.model, options.api_base))

    def fingerprint(self) -> str:
        """16 hexadecimal digits that differ whenever two configurations of shards may give different output."""
        models = self.models.fingerprint() if self.models else None
        parts = [__version__, self.settings.fingerprint(), self.dialect, self.on_invalid, self.column, models]
        parts += ["redacts"] if self.redacts_output else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(slots=True, kw_only=True)
class Outputs:
    """Callbacks for what a run produces besides its results; what has no callback is not produced."""

    show: Callable[[str], object] | None = None  # texts for a person
    save: Callable[[bytes], object] | None = None  # lines of a plan file
    training_rows: Callable[[bytes], object] | None = None  # the summariser's calls, as rows to train a model with
    page: Callable[[str], object] | None = None  # HTML pages of transcripts
    emit: Listener | None = None  # events of inputs, except for their end
    late: Callable[[InputReport], object] | None = None  # reports of inputs done but not returned when the run stopped
    # Rows that were passed on unchanged because they failed: position (counted from 0), reason, text.
    failed_row: Callable[[int, str, bytes], object] | None = None


def run_job(job: Job, run_config: RunConfig, outputs: Outputs, processes: int = 1) -> InputReport:
    """Compact one input. Errors are in its report; only BrokenPipeError (the output has no reader left) is raised."""
    path = job.source.path
    if outputs.emit:
        outputs.emit(InputBegan(path=path))
    try:
        least_seconds = run_config.min_age_seconds if path != STDIN else 0.0
        if least_seconds and streams.look_at(path).age_seconds() < least_seconds:
            return InputReport(path=path, outcome=Outcome.SKIPPED, reason="live")
        report = compact_input(job, run_config, outputs, processes).report()
        hooks = run_config.hooks
        if hooks is None or run_config.purpose is not Purpose.ACT or report.outcome is not Outcome.COMPACTED:
            return report
        fault = hooks.emit(report)
        return replace(report, warnings=(*report.warnings, fault)) if fault else report
    except BrokenPipeError:
        raise
    except Exception as error:
        if job.source.is_candidate and isinstance(error, UnknownShape | errors.InvalidLine):
            return InputReport(path=path, outcome=Outcome.SKIPPED, reason=PASSED_OVER)
        return failed(job, *explained(error))


def explained(error: Exception) -> tuple[CompactError, str]:
    """The error to show to people, and the traceback if the error is a defect of the program (else an empty string)."""
    if isinstance(error, CompactError):
        return error, ""
    if isinstance(error, RecursionError):
        advice = "look at its most nested record; leave it out of this run"
        return errors.InputError("a record is nested too deeply to be worked on", next_step=advice), ""
    import traceback

    defect = CompactError(f"{type(error).__name__}: {error}", next_step="this is a defect, please report it")
    return defect, "".join(traceback.format_exception(error))


def failed(job: Job, error: CompactError, reason: str = "") -> InputReport:
    """The report of an input that failed, or was skipped because another program uses it; ``reason`` is a traceback."""
    path = job.source.path
    place = error.place or path
    where = replace(place, path=shown_name(place.path)) if isinstance(place, errors.Place) else shown_name(str(place))
    is_used = isinstance(error, errors.InUse)
    return InputReport(
        path=path,
        outcome=Outcome.SKIPPED if is_used else Outcome.FAILED,
        reason="changed" if isinstance(error, errors.Changed) else "in use" if is_used else reason,
        error=f"{where}: {error.what}",
        next_step=error.next_step,
        exit_code=error.exit_code,
    )


def compact_input(job: Job, run_config: RunConfig, outputs: Outputs, processes: int = 1) -> InputTally:
    """Compact an input, be it a file or a shard, and write the result; returns the tally of its transcripts.

    If it raises, no file has changed. Raises `CompactError` for what is wrong with the input or the output.
    """
    path, part = job.source.path, job.part
    acts = run_config.purpose is Purpose.ACT
    keeps = acts and run_config.archives(job)
    if acts and job.changes_input:
        from compactor_cli.archive.atomic import check_no_writer
        from compactor_cli.archive.maintenance import finish_append

        # A file that another program has open is left to the next run. An append that a killed run began is completed.
        with suppress(OSError), Path(path).open("rb") as file:  # a file that cannot be read is reported later
            check_no_writer(file.fileno(), path, quick=True)
        if keeps and (folder := run_config.archive_of(job)):
            finish_append(path, folder)
    emit = outputs.emit
    listening = (lambda piece: emit(BytesRead(path=path, size_bytes=len(piece))),) if emit else ()
    with (
        ArchiveOnChange(partial(run_config.archive_of, job) if keeps else None, path) as on_change,
        open_stream(path, (on_change.watch, *listening), part, limits=run_config.limits) as stream,
    ):
        if keeps and (stream.look is None or path == STDIN or part):
            on_change.start()  # the input cannot be read a second time
        AMOUNT.expect(stream.look.size_bytes if stream.look else 0)
        # Line numbers in messages count from where the part begins.
        name = f"{path}, from byte {part.start:,}" if part and part.start else path
        records = records_in(stream, run_config.on_invalid, name)
        tally = InputTally(path=path, records=records, written_as=run_config.shape.dialect if run_config.shape else "")
        with closing(_rows(job, run_config, outputs, records, tally, processes)) as rows:
            if acts:
                tally.output = write_rows(job.target, rows, tally, on_change, stream)
            for _ in rows:
                pass  # without an output, or after it, the rows left are only counted
    tally.sha256, tally.bytes_before = on_change.content.sha256, on_change.content.size_bytes
    tally.archive = on_change.stored
    return tally


def _rows(
    job: Job, run_config: RunConfig, outputs: Outputs, records: RecordReader, tally: InputTally, processes: int
) -> Generator[FinishedRow, None, None]:
    """Work on the transcripts of the input, and pass on what the outputs want of each; yields one row at a time."""
    maker = row_maker(job, run_config)
    if outputs.training_rows:
        from compactor_cli.llm.model import training_row

        maker.example = partial(training_row, template=run_config.settings.template)
    path, emit = job.source.path, outputs.emit
    announced: set[str] = set()  # each plan is emitted once, before the end of its transcript
    if run_config.model_run:

        def planned(transcript: Transcript, plan: Plan) -> None:  # from any thread
            if emit and transcript.sha256 not in announced:
                announced.add(transcript.sha256)
                emit(Planned(path=path, report=planned_report(transcript, plan)))
            if plan.changes and run_config.purpose is Purpose.ACT:
                # Found out before a model is paid for a summary that could not be written.
                check_writable(job.target, run_config.archive_of(job) if run_config.archives(job) else None)

        maker.planned = planned
    maker.only_plans = run_config.purpose is Purpose.PLAN
    maker.views = _views(path, run_config, outputs)
    for finished in _finished_rows(job, run_config, records, maker, processes):
        if outputs.failed_row and finished.report.outcome is Outcome.FAILED:
            outputs.failed_row(tally.count, finished.report.reason, finished.output)
        if not finished.report.sha256 and (emit or tally.lists(finished.report)):
            # A row that was not read has no hash yet, and it is needed only here.
            sha256 = hashlib.sha256(finished.output).hexdigest()
            finished = replace(finished, report=replace(finished.report, sha256=sha256))
        tally.add(finished.report)
        if emit:
            if finished.report.sha256 not in announced:
                emit(Planned(path=path, report=finished.report))
            announced.discard(finished.report.sha256)
            emit(TranscriptEnded(path=path, report=finished.report))
        for name, view in finished.views.items():
            getattr(outputs, name)(view)
        yield finished
    if run_config.model_run:
        run_config.model_run.settle()


def _views(path: str, run_config: RunConfig, outputs: Outputs) -> dict[str, View]:
    """What else the outputs want to be made of each transcript of this input, by the field of `Outputs`."""
    made = {"show": run_config.view, "page": run_config.page}
    views = {name: view for name, view in made.items() if view and getattr(outputs, name)}
    if outputs.save:
        from compactor_cli.run.documents import plan_line

        views["save"] = lambda _, row: plan_line(path, row.plan, row.summary_text, row.report.summary_source)
    return views


def _finished_rows(
    job: Job, run_config: RunConfig, records: RecordReader, maker: RowMaker, processes: int
) -> Iterable[FinishedRow]:
    if processes > 1:
        from compactor_cli.run.workers import ParallelRows

        return ParallelRows(records, run_config.dialect, maker, processes)
    among = ""
    if job.part and job.part.start:
        among = run_config.dialect or row_dialect(job.source.path, run_config.limits)
    dialect, unread_bytes = run_config.dialect, maker.unread_bytes
    transcripts = open_transcripts(records, dialect=dialect, among_rows_of=among, unread_bytes=unread_bytes)
    if job.part:
        transcripts = _only_rows(transcripts, job.source.path)
    return mapped(maker.make, transcripts, run_config.model_run)


def row_dialect(path: str, limits: ReadLimits | None = None, *, is_plain: bool = False) -> str:
    """The dialect of the first line if that is a row with a conversation, or else an empty string.

    With ``is_plain``, it is empty for compressed files as well.
    """
    with open_stream(path, limits=limits) as stream:
        if is_plain and stream.compression is not Compression.NONE:
            return ""
        line = next((line for line in stream.lines() if line.strip()), b"")
    try:
        row = find_row(parse(line.strip(b"\xef\xbb\xbf \t\r\n")))
    except ValueError:
        return ""
    return row.dialect.name if row else ""


def _only_rows(transcripts: Iterable[Transcript], source: str) -> Iterator[Transcript]:
    """The transcripts of a part. Raises `InputError` for a session, whose records may go on in the next part."""
    for transcript in transcripts:
        if transcript.frame.container is Container.LINES:
            place = transcript.records[0].place if transcript.records else source
            advice = "read the file as a whole: --split 0"
            what = "a session among the rows of a file that is read in parts"
            raise errors.InputError(what, place=place, next_step=advice)
        yield transcript


def row_maker(job: Job, run_config: RunConfig) -> RowMaker:
    """The maker that works on the transcripts of an input."""
    archived = run_config.archives(job)

    def load_state(name: str) -> bytes | None:
        from compactor_cli.archive.store import Archive

        folder = run_config.archive_of(job)
        return Archive(folder).load_state(name) if folder else None

    def load_original(sha256: str) -> Transcript | None:
        from compactor_cli.archive import restore

        folder = run_config.archive_of(job)
        return restore.load_original(folder, sha256) if folder else None

    maker = RowMaker(
        settings=run_config.settings if archived else unarchived(run_config.settings),
        archived=archived,
        plans=run_config.plans,
        load_state=load_state,
        load_original=load_original,
        review=run_config.review,
        mode=Mode.APPEND if job.target.kind is TargetKind.APPEND else Mode.REWRITE,
        engine=run_config.engine,
        importance=run_config.importance,
        shape=run_config.shape,
        redacts=run_config.redacts_output,
    )
    if run_config.summariser:
        maker.summariser = run_config.summariser
    if (models := run_config.model_run) is not None and models.writes:
        folder = run_config.archive_of(job) or Path()
        maker.summariser = lambda guidance: models.summariser(folder, guidance)
        maker.estimate = lambda request: models.estimate(request, folder)
    if (hooks := run_config.hooks) is not None and run_config.purpose is Purpose.ACT:
        maker.ask = lambda transcript, plan: hooks.ask(job.source.path, job.target.path, transcript, plan)
    if run_config.memory and (note := note_of(run_config.memory, job.source.path)):
        written = maker.summariser
        # Guidance asks for a newly written summary, so that the note is not used.
        maker.summariser = lambda guidance: written(guidance) if guidance else SessionNote(note, written(""))
    return maker


def write_rows(
    target: Target, rows: Iterable[FinishedRow], tally: InputTally, on_change: ArchiveOnChange, stream: streams.Stream
) -> str:
    """Write the rows: make the archive durable, then the output, then replace the source.

    Returns the path written, or an empty string if nothing was. ``rows`` must add themselves to the ``tally`` as they
    are read. If they raise, even after the last one, no file changes.
    """
    with Output(target, stream, on_change) as output:
        for row in rows:
            on_change.add(row.report, row.state, OnInvalid.DROP if tally.dropped else OnInvalid.KEEP)
            output.write(row.output, row.changed)
        if not tally.count and tally.records:
            output.write(tally.records.prefix, changed=False)
        if tally.is_altered:
            on_change.commit(tally)
        path = output.finish(tally.is_altered)
        tally.warnings += output.warnings
        return path


_HOOK_CHARS = 8_000  # of a hook's standard output, used as instructions
_COMPLAINT_CHARS = 200  # of the first line of a hook's standard error, shown to people


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The user's programs, run before a transcript and after an input is compacted.

    Each gets one JSON object on its standard input. No shell is involved: the command is split into words as a shell
    would do it, and then run.
    """

    before: str = ""  # the command; empty: none
    after: str = ""  # the command; empty: none
    seconds: float = 60.0  # how long one may take

    def ask(self, path: str, output: str, transcript: Transcript, plan: Plan) -> str:
        """Run the hook ``before``; returns its standard output, which holds instructions for the summary.

        Returns an empty string if there is no such hook. Raises KeptAsIs if it ends with a code other than 0,
        OutputError if it cannot be run or takes too long.
        """
        if not self.before:
            return ""
        payload = {
            "hook": "before",
            "path": path,
            "output": output,
            "dialect": transcript.dialect,
            "sha256": transcript.sha256,
            "tokens_before": plan.tokens_before,
            "tokens_after": plan.tokens_kept + plan.summary_tokens,
            "plan": asdict(plan),
        }
        code, answer, complaint = _run_hook(self.before, payload, self.seconds)
        if code:
            raise errors.KeptAsIs(f"the hook before it ended with code {code}{complaint}")
        return answer[:_HOOK_CHARS].strip()

    def emit(self, report: InputReport) -> str:
        """Run the hook ``after``; returns what went wrong with it, or an empty string. The output stays in any case."""
        if not self.after:
            return ""
        names = ("path", "output", "archive", "sha256", "tokens_before", "tokens_after", "bytes_before", "bytes_after")
        payload = {"hook": "after", **{name: getattr(report, name) for name in names}}
        try:
            code, _, complaint = _run_hook(self.after, payload, self.seconds)
        except OutputError as error:
            return error.what
        return f"the hook after it ended with code {code}{complaint}" if code else ""


def _run_hook(command: str, payload: Mapping[str, Any], seconds: float) -> tuple[int, str, str]:
    """Run a command; returns its exit code, its standard output, and `: ` with the first line of its standard error.

    The last is empty if it wrote nothing there. Raises OutputError if it cannot be run or takes too long.
    """
    import shlex
    import signal
    import subprocess

    words = shlex.split(command)
    given = json.dumps(payload).encode() + b"\n"
    try:
        process = subprocess.Popen(  # noqa: S603 -- what the user named
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        step = "check the command; it is run without a shell"
        raise OutputError(f"the hook {words[0]} cannot be run: {error.strerror}", next_step=step) from error
    with process:
        try:
            answer, complaint = process.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired as error:
            step = "give it more time: --set hook-timeout=5m"
            raise OutputError(f"the hook {words[0]} took more than {seconds:g} seconds", next_step=step) from error
        finally:
            if process.poll() is None:  # still running: it is ended together with what it started
                os.killpg(process.pid, signal.SIGKILL)
    first = complaint.decode(errors="replace").strip().partition("\n")[0][:_COMPLAINT_CHARS]
    return process.returncode, answer.decode(errors="replace"), f": {first}" if first else ""
