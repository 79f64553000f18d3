"""Jobs: one input from its first look to its replaced file.

The order is the guarantee: the archive is durable before the output takes effect, and the output before
the source is replaced. Whatever fails leaves the source as it was. Rows of a dataset pass one by one.
The user's hooks are programs that are run before and after an input is compacted.
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


# Why a file of a tree is skipped whose name might be that of a transcript, and whose content is not.
PASSED_OVER = "no transcript"


class Purpose(StrEnum):
    """What a run is for."""

    ACT = "act"  # compact and write
    PLAN = "plan"  # decide, write nothing
    TRY = "try"  # compact, write nothing


class Originals(StrEnum):
    """Which originals are archived."""

    REPLACED = "replaced"  # those of inputs that are replaced or appended to: the others stay where they are
    ARCHIVED = "archived"  # all of what is compacted
    NOT_KEPT = "not kept"


class AfterFailure(StrEnum):
    """What a failed input means for those after it."""

    GO_ON = "go on"
    STOP = "stop"


class FinishedPolicy(StrEnum):
    """What to do with a shard that was finished before."""

    SKIP = "skip"
    REDO = "redo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One input, or a part of one, and where its result goes."""

    source: InputSource
    target: Target
    part: Slice | None = None
    is_shard: bool = False  # gives the same bytes on every machine: only a named archive is looked into

    @property
    def changes_input(self) -> bool:
        """Whether the input is replaced or appended to."""
        return self.target.kind in (TargetKind.IN_PLACE, TargetKind.APPEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """What holds for all inputs of a run, be they files or shards."""

    settings: Settings = field(default_factory=Settings)
    purpose: Purpose = Purpose.ACT
    dialect: str = ""  # empty: by content
    on_invalid: OnInvalid = OnInvalid.FAIL
    min_age_seconds: float = 0.0  # files written to more recently are skipped
    originals: Originals = Originals.REPLACED
    archive_dir: str = ""  # empty: the default of each file, of shards none
    plans: Mapping[str, Saved] | None = None  # saved decisions to be followed, by hash; None: decide
    view: View | None = None  # makes what is shown of each transcript
    page: View | None = None  # makes its page
    models: ModelConfig | None = None  # they, or the summariser, write the summaries; None: the digest does
    model_run: ModelRun | None = None  # the connection to them
    key_file: str = ""  # the models hold no keys then: every process reads these itself
    review: Review | None = None  # is asked about each summary
    summariser: Callable[[str], Summariser] | None = None  # for guidance
    engine: PluginEngine | None = None  # takes the place of plan and summary
    importance: Importance | None = None  # takes the place of what the settings name
    shape: OutputShape | None = None  # how outputs are written, where that is not as they were
    hooks: Hooks | None = None  # are run before and after
    memory: str = ""  # names the agent's own notes
    redacts_output: bool = False  # secrets are taken out of what is written
    limits: ReadLimits = DEFAULT_LIMITS  # of each input
    after_failure: AfterFailure = AfterFailure.GO_ON
    # Of shards: the column that holds the conversations, or several with a comma between; empty: a row is one, of a
    # table the first column that holds any.
    column: str = ""
    finished: FinishedPolicy = FinishedPolicy.SKIP  # of shards

    def archives(self, job: Job) -> bool:
        """Whether the original of this input is archived when it is compacted."""
        if job.is_shard:
            return bool(self.archive_dir)
        return self.originals is Originals.ARCHIVED or (self.originals is Originals.REPLACED and job.changes_input)

    def archive_of(self, job: Job) -> Path | None:
        """The archive of this input; None: there is none."""
        if self.archive_dir or job.is_shard:
            return Path(self.archive_dir) if self.archive_dir else None
        from compactor_cli.archive.store import default_archive_dir

        return default_archive_dir(job.source.path, in_place=job.changes_input)

    def model_config(self) -> ModelConfig | None:
        """The configuration of models with the keys of this machine."""
        if self.models is None or not self.key_file:
            return self.models
        from compactor_cli.llm.model_calls import read_keys

        options = self.models.model_options
        return replace(self.models, keys=read_keys(Path(self.key_file), options.model, options.api_base))

    def fingerprint(self) -> str:
        """16 hex digits that differ whenever two configurations of shards may give different output."""
        models = self.models.fingerprint() if self.models else None
        parts = [__version__, self.settings.fingerprint(), self.dialect, self.on_invalid, self.column, models]
        parts += ["redacts"] if self.redacts_output else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(slots=True, kw_only=True)
class Outputs:
    """Who gets what comes up on the way; None: nobody."""

    show: Callable[[str], object] | None = None  # texts for a person
    save: Callable[[bytes], object] | None = None  # lines of a plan file
    training_rows: Callable[[bytes], object] | None = None  # the summariser's calls
    page: Callable[[str], object] | None = None  # pages of transcripts
    emit: Listener | None = None  # events of inputs, all but their end
    late: Callable[[InputReport], object] | None = None  # the reports of inputs that were done when the run was stopped
    failed_row: Callable[[int, str, bytes], object] | None = None  # rows that were passed on unchanged


def run_job(job: Job, run_config: RunConfig, outputs: Outputs, processes: int = 1) -> InputReport:
    """Do one job. Whatever goes wrong with this input is in its report; only a gone reader is raised."""
    path = job.source.path
    if outputs.emit:
        outputs.emit(InputBegan(path=path))
    try:
        if (
            path != STDIN
            and run_config.min_age_seconds
            and streams.look_at(path).age_seconds() < run_config.min_age_seconds
        ):
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
    """What went wrong with one input, as an error for people; and of a defect its trace."""
    if isinstance(error, CompactError):
        return error, ""
    if isinstance(error, RecursionError):
        advice = "look at its most nested record; leave it out of this run"
        return errors.InputError("a record is nested too deeply to be worked on", next_step=advice), ""
    import traceback

    defect = CompactError(f"{type(error).__name__}: {error}", next_step="this is a defect, please report it")
    return defect, "".join(traceback.format_exception(error))


def failed(job: Job, error: CompactError, reason: str = "") -> InputReport:
    """The report of an input that failed."""
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
    """Compact an input, be it a file or a shard, and write it; what became of its transcripts.

    Nothing takes effect where it raises: `CompactError` for what is wrong with the input or the output.
    """
    path, part = job.source.path, job.part
    acts = run_config.purpose is Purpose.ACT
    keeps = acts and run_config.archives(job)
    if acts and job.changes_input:
        from compactor_cli.archive.atomic import check_no_writer
        from compactor_cli.archive.maintenance import finish_append

        # A file that somebody has open is left to the next run; what a killed run began to append to it is completed.
        with suppress(OSError), Path(path).open("rb") as file:  # what cannot be read is reported later
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
            on_change.start()  # it cannot be read again
        AMOUNT.expect(stream.look.size_bytes if stream.look else 0)
        # Lines are counted from where the part begins.
        name = f"{path}, from byte {part.start:,}" if part and part.start else path
        records = records_in(stream, run_config.on_invalid, name)
        tally = InputTally(path=path, records=records, written_as=run_config.shape.dialect if run_config.shape else "")
        with closing(_rows(job, run_config, outputs, records, tally, processes)) as rows:
            if acts:
                tally.output = write_rows(job.target, rows, tally, on_change, stream)
            for _ in rows:
                pass  # what is only looked at
    tally.sha256, tally.bytes_before = on_change.content.sha256, on_change.content.size_bytes
    tally.archive = on_change.stored
    return tally


def _rows(
    job: Job, run_config: RunConfig, outputs: Outputs, records: RecordReader, tally: InputTally, processes: int
) -> Generator[FinishedRow, None, None]:
    """Every transcript of the input, done, one at a time."""
    maker = row_maker(job, run_config)
    if outputs.training_rows:
        from compactor_cli.llm.model import training_row

        maker.example = partial(training_row, template=run_config.settings.template)
    path, emit = job.source.path, outputs.emit
    announced: set[str] = set()  # each plan is emitted once, and before its transcript's end
    if run_config.model_run:

        def planned(transcript: Transcript, plan: Plan) -> None:  # from any thread
            if emit and transcript.sha256 not in announced:
                announced.add(transcript.sha256)
                emit(Planned(path=path, report=planned_report(transcript, plan)))
            if plan.changes and run_config.purpose is Purpose.ACT:
                # Before a model is paid for what cannot be written.
                check_writable(job.target, run_config.archive_of(job) if run_config.archives(job) else None)

        maker.planned = planned
    maker.only_plans = run_config.purpose is Purpose.PLAN
    wanted = {"show": run_config.view, "page": run_config.page}
    views = {name: view for name, view in wanted.items() if view and getattr(outputs, name)}
    if outputs.save:
        from compactor_cli.run.documents import plan_line

        views["save"] = lambda _, row: plan_line(path, row.plan, row.summary_text, row.report.summary_source)
    maker.views = views
    for finished in _finished_rows(job, run_config, records, maker, processes):
        if outputs.failed_row and finished.report.outcome is Outcome.FAILED:
            outputs.failed_row(tally.count, finished.report.reason, finished.output)
        if not finished.report.sha256 and (emit or tally.lists(finished.report)):
            # That of a row that stayed unread is asked for here alone.
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
    """The format of the first line, if it is a conversation; else empty. ``is_plain``: empty of packed files, too."""
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
    """What compacts the transcripts of an input."""
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
        # Guidance is for a summary to be written.
        maker.summariser = lambda guidance: written(guidance) if guidance else SessionNote(note, written(""))
    return maker


def write_rows(
    target: Target, rows: Iterable[FinishedRow], tally: InputTally, on_change: ArchiveOnChange, stream: streams.Stream
) -> str:
    """Write the rows: archive durable, then output, then the source replaced. The path written.

    ``rows`` add themselves to the ``tally``; nothing takes effect where they raise, be it after the last one.
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


# Of the output of a hook, this much is taken as instructions or shown as its complaint.
_HOOK_CHARS = 8_000
_COMPLAINT_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The user's programs, run before and after; empty: none. ``seconds``: how long one may take.

    Each gets one JSON object on its standard input. No shell is involved: the command is split into words as a shell
    would, and run as it is.
    """

    before: str = ""
    after: str = ""
    seconds: float = 60.0

    def ask(self, path: str, output: str, transcript: Transcript, plan: Plan) -> str:
        """Run the hook before: its standard output, as instructions for the summary.

        Raises KeptAsIs where it ends with another code than 0, OutputError where it cannot be run or takes too long.
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
        """Run the hook after; what went wrong with it, empty if nothing did. The output stays in any case."""
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
    """Exit code, standard output, and the first line of standard error for people. Raises OutputError."""
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
            if process.poll() is None:  # it and what it started are ended where they still run
                os.killpg(process.pid, signal.SIGKILL)
    first = complaint.decode(errors="replace").strip().partition("\n")[0][:_COMPLAINT_CHARS]
    return process.returncode, answer.decode(errors="replace"), f": {first}" if first else ""
