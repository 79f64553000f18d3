"""Jobs: one input from its first look to its replaced file.

The order is the guarantee: the archive is durable before the output takes effect, and the output before
the source is replaced. Whatever fails leaves the source as it was. Rows of a dataset pass one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compactor_cli.archive.targets import Target, TargetKind
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import Changed, CompactError, InputError, InUse, InvalidLine, Place, UnknownShape
from compactor_cli.model.plan import Mode, Plan
from compactor_cli.model.report import (
    BytesRead,
    Compaction,
    InputBegan,
    InputReport,
    Listener,
    Outcome,
    Planned,
    TranscriptEnded,
    TranscriptReport,
)
from compactor_cli.model.settings import Settings, unarchived
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.finish import planned_report
from compactor_cli.plan.tokens import AMOUNT
from compactor_cli.read.jsonl import OnInvalid, RecordReader, records_in
from compactor_cli.read.sources import InputSource
from compactor_cli.read.streams import DEFAULT_LIMITS, STDIN, ReadLimits, Stream, look_at, open_stream
from compactor_cli.run.outputs import ArchiveOnChange, Output, Tally
from compactor_cli.run.rows import FinishedRow, Finisher, Review, RowMaker, View

if TYPE_CHECKING:
    from compactor_cli.model.plan import Importance
    from compactor_cli.model.summary import Summariser
    from compactor_cli.plugged import PluginEngine
    from compactor_cli.render.shape import OutputShape
    from compactor_cli.run.hooks import Hooks
    from compactor_cli.run.model_run import ModelRun
    from compactor_cli.run.planfile import Saved


class PlanEvents:
    """Emits each transcript's plan, once and before its end. Without a listener it does nothing."""

    def __init__(self, path: str, emit: Listener | None) -> None:
        self._path = path
        self._emit = emit
        self._announced: set[str] = set()

    def planned(self, transcript: Transcript, plan: Plan) -> None:
        """A plan is about to be carried out; called only where that takes long. From any thread."""
        if self._emit and transcript.sha256 not in self._announced:
            self._announced.add(transcript.sha256)
            self._emit(Planned(path=self._path, report=planned_report(transcript, plan)))

    def ended(self, report: TranscriptReport) -> None:
        """What became of it."""
        if self._emit is None:
            return
        if report.sha256 not in self._announced:
            self._emit(Planned(path=self._path, report=report))
        self._announced.discard(report.sha256)
        self._emit(TranscriptEnded(path=self._path, report=report))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One input and where its result goes."""

    source: InputSource
    target: Target

    @property
    def changes_input(self) -> bool:
        """Whether the input is replaced or appended to."""
        return self.target.kind in (TargetKind.IN_PLACE, TargetKind.APPEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """What holds for all inputs of a run.

    ``min_age_seconds``: files written to more recently are skipped. ``archive_dir`` empty: the default of
    each file. ``plans``: saved decisions to be followed, by hash; None: decide. ``view`` makes what is
    shown of each transcript, ``page`` its page. ``models`` or ``summariser`` (for guidance) writes the summaries (None:
    the digest does), ``review`` is asked about each of them; ``engine`` takes the place of plan and summary,
    ``importance`` that of what the settings name. ``shape``: how outputs are written, where that is not as they were.
    ``hooks`` are run before and after; ``memory`` names the agent's own notes; ``redacts_output``: secrets are taken
    out of what is written; ``limits`` are of each input.
    """

    settings: Settings
    purpose: Purpose = Purpose.ACT
    dialect: str = ""
    on_invalid: OnInvalid = OnInvalid.FAIL
    min_age_seconds: float = 0.0
    originals: Originals = Originals.REPLACED
    archive_dir: str = ""
    plans: Mapping[str, Saved] | None = None
    view: View | None = None
    page: View | None = None
    models: ModelRun | None = None
    review: Review | None = None
    summariser: Callable[[str], Summariser] | None = None
    engine: PluginEngine | None = None
    importance: Importance | None = None
    shape: OutputShape | None = None
    hooks: Hooks | None = None
    memory: str = ""
    redacts_output: bool = False
    limits: ReadLimits = DEFAULT_LIMITS

    def archives(self, job: Job) -> bool:
        """Whether the original of this input is archived when it is compacted."""
        return self.originals is Originals.ARCHIVED or (self.originals is Originals.REPLACED and job.changes_input)


@dataclass(slots=True, kw_only=True)
class Outputs:
    """Who gets what comes up on the way: texts to show, lines of a plan file, pages of transcripts, events of inputs
    (all but their end).

    ``late``: the reports of inputs that were done when the run was stopped.
    """

    show: Callable[[str], object] | None = None
    save: Callable[[bytes], object] | None = None
    training_rows: Callable[[bytes], object] | None = None
    page: Callable[[str], object] | None = None
    emit: Listener | None = None
    late: Callable[[InputReport], object] | None = None


def run_job(job: Job, run_config: RunConfig, outputs: Outputs, processes: int = 1) -> InputReport:
    """Do one job. Whatever goes wrong with this input is in its report; only a gone reader is raised.

    ``processes`` share the rows of a dataset.
    """
    if outputs.emit:
        outputs.emit(InputBegan(path=job.source.path))
    try:
        return _compact(job, run_config, outputs, processes)
    except (UnknownShape, InvalidLine) as error:
        if job.source.is_candidate:
            return InputReport(path=job.source.path, outcome=Outcome.SKIPPED, reason=PASSED_OVER)
        return failed(job, error)
    except CompactError as error:
        return failed(job, error)
    except BrokenPipeError:
        raise
    except RecursionError:
        advice = "look at its most nested record; leave it out of this run"
        return failed(job, InputError("a record is nested too deeply to be worked on", next_step=advice))
    except Exception as error:
        import traceback

        defect = CompactError(f"{type(error).__name__}: {error}", next_step="this is a defect, please report it")
        return failed(job, defect, reason=traceback.format_exc())


def failed(job: Job, error: CompactError, reason: str = "") -> InputReport:
    """The report of an input that failed."""
    path = job.source.path
    place = error.place or path
    where = str(replace(place, path="standard input") if isinstance(place, Place) and path == STDIN else place)
    return InputReport(
        path=path,
        outcome=Outcome.SKIPPED if isinstance(error, InUse) else Outcome.FAILED,
        reason="changed" if isinstance(error, Changed) else "in use" if isinstance(error, InUse) else reason,
        error=f"{'standard input' if where == STDIN else where}: {error.what}",
        next_step=error.next_step,
        exit_code=error.exit_code,
    )


def _compact(job: Job, run_config: RunConfig, outputs: Outputs, processes: int) -> InputReport:
    path = job.source.path
    if path != STDIN and run_config.min_age_seconds and look_at(path).age_seconds() < run_config.min_age_seconds:
        return InputReport(path=path, outcome=Outcome.SKIPPED, reason="live")
    if run_config.purpose is Purpose.ACT and job.changes_input:
        _prepare(job, run_config)
    folder = partial(_archive_dir, job, run_config)
    keeps = run_config.purpose is Purpose.ACT and run_config.archives(job)
    emit = outputs.emit
    listening = (lambda piece: emit(BytesRead(path=path, size_bytes=len(piece))),) if emit else ()
    with (
        ArchiveOnChange(folder if keeps else None, path) as on_change,
        open_stream(path, (on_change.watch, *listening), limits=run_config.limits) as stream,
    ):
        if keeps:
            on_change.begin(can_be_read_again=stream.look is not None and path != STDIN)
        AMOUNT.expect(stream.look.size_bytes if stream.look else 0)
        records = records_in(stream, run_config.on_invalid)
        tally = Tally(records=records, written_as=run_config.shape.dialect if run_config.shape else "")
        with closing(_rows(job, run_config, outputs, records, tally, processes)) as rows:
            output = ""
            if run_config.purpose is Purpose.ACT:
                output = write_rows(job.target, rows, tally, on_change, stream)
            for _ in rows:
                pass  # what is only looked at
    report = tally.report(path=path, content=on_change.content, output=output, archive=on_change.stored)
    hooks = run_config.hooks
    if hooks is None or run_config.purpose is not Purpose.ACT or report.outcome is not Outcome.COMPACTED:
        return report
    fault = hooks.emit(report)
    return replace(report, warnings=(*report.warnings, fault)) if fault else report


def _prepare(job: Job, run_config: RunConfig) -> None:
    """Leave a file that somebody has open to the next run; complete what a killed run began to append to it."""
    from compactor_cli.archive.live_file import check_no_writer
    from compactor_cli.archive.recover import finish_append

    path = job.source.path
    with suppress(OSError), Path(path).open("rb") as file:  # what cannot be read is reported later
        check_no_writer(file.fileno(), path, quick=True)
    if run_config.archives(job):
        finish_append(path, _archive_dir(job, run_config))


def _rows(
    job: Job, run_config: RunConfig, outputs: Outputs, records: RecordReader, tally: Tally, processes: int
) -> Generator[FinishedRow, None, None]:
    """Every transcript of the input, done, one at a time."""
    maker = _maker(job, run_config)
    if outputs.training_rows:
        from compactor_cli.llm.model import Examples

        maker.example = Examples(template=run_config.settings.template)
    plan_events = PlanEvents(job.source.path, outputs.emit)
    if outputs.emit and run_config.models:
        maker.planned = plan_events.planned
    finish = Finisher(
        make=maker.plan if run_config.purpose is Purpose.PLAN else maker.compact,
        view=run_config.view if outputs.show else None,
        plans_path=job.source.path if outputs.save else "",
        page=run_config.page if outputs.page else None,
    )
    is_shown = run_config.purpose is Purpose.PLAN or finish.view or finish.page or finish.plans_path
    unread_bytes = 0 if is_shown else maker.unread_bytes
    made: Iterable[FinishedRow]
    if processes > 1:
        from compactor_cli.run.workers import ParallelRows

        made = ParallelRows(
            records,
            dialect=run_config.dialect,
            finish=finish,
            maker=maker,
            processes=processes,
            unread_bytes=unread_bytes,
        )
    else:
        transcripts = open_transcripts(
            records, dialect=run_config.dialect, prefix=records.prefix, unread_bytes=unread_bytes
        )
        made = run_config.models.mapped(finish, transcripts) if run_config.models else map(finish, transcripts)
    for finished in made:
        tally.add(finished.report)
        plan_events.ended(finished.report)
        if run_config.view and outputs.show:
            outputs.show(finished.shown)
        if outputs.save:
            outputs.save(finished.plans)
        if outputs.training_rows:
            outputs.training_rows(finished.example)
        if outputs.page and finished.page:
            outputs.page(finished.page)
        yield finished


def _maker(job: Job, run_config: RunConfig) -> RowMaker:
    archived = run_config.archives(job)
    maker = RowMaker(
        settings=run_config.settings if archived else unarchived(run_config.settings),
        archived=archived,
        plans=run_config.plans,
        load_state=partial(_load_state, job, run_config),
        load_original=partial(_load_original, job, run_config),
        review=run_config.review,
        mode=Mode.APPEND if job.target.kind is TargetKind.APPEND else Mode.REWRITE,
        engine=run_config.engine,
        importance=run_config.importance,
        shape=run_config.shape,
        redacts=run_config.redacts_output,
    )
    if run_config.summariser:
        maker.summariser = run_config.summariser
    if (models := run_config.models) is not None and models.writes:
        folder = _archive_dir(job, run_config)
        maker.summariser = lambda guidance: models.summariser(folder, guidance)
        maker.estimate = lambda request: models.estimate(request, folder)
    if (hooks := run_config.hooks) is not None and run_config.purpose is Purpose.ACT:
        maker.ask = lambda transcript, plan: hooks.ask(job.source.path, job.target.path, transcript, plan)
    if run_config.memory:
        from compactor_cli.run.hooks import by_note, note_of

        maker.summariser = by_note(note_of(run_config.memory, job.source.path), maker.summariser)
    return maker


def _load_state(job: Job, run_config: RunConfig, name: str) -> bytes | None:
    """The digest's counter table of this name, from the archive."""
    from compactor_cli.archive.store import Archive

    return Archive(_archive_dir(job, run_config)).load_state(name)


def _load_original(job: Job, run_config: RunConfig, sha256: str) -> Transcript | None:
    """The archived transcript that a marker names; None if it is not there, or damaged."""
    from compactor_cli.archive.restore import load_original

    return load_original(_archive_dir(job, run_config), sha256)


def write_rows(
    target: Target,
    rows: Iterable[FinishedRow | Compaction],
    tally: Tally,
    on_change: ArchiveOnChange,
    stream: Stream,
) -> str:
    """Write the rows: archive durable, then output, then the source replaced. The path written.

    ``rows`` add themselves to the ``tally``; nothing takes effect where they raise, be it after the last one.
    """
    with Output(target, stream) as output:
        for row in rows:
            on_change.add(row.report, row.state, OnInvalid.DROP if tally.dropped else OnInvalid.KEEP)
            output.write(row.output, row.changed)
        if not tally.count:
            output.write(tally.records.prefix, changed=False)
        if tally.is_altered:
            on_change.commit(tally)
        path = output.finish(tally.is_altered, on_change)
        tally.warnings += output.warnings
        return path


def _archive_dir(job: Job, run_config: RunConfig) -> Path:
    if run_config.archive_dir:
        return Path(run_config.archive_dir)
    from compactor_cli.archive.folder import default_archive_dir

    return default_archive_dir(job.source.path, in_place=job.changes_input)
