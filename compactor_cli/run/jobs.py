"""Jobs: one input from its first look to its replaced file.

The order is the guarantee: the archive is durable before the output takes effect, and the output before
the source is replaced. Whatever fails leaves the source as it was. Rows of a dataset pass one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compactor_cli.archive.targets import Kind, Target
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import Changed, CompactError, InputError, InUse, InvalidLine, UnknownShape
from compactor_cli.model.events import BytesRead, InputBegan, Listener
from compactor_cli.model.plan import Mode
from compactor_cli.model.records import Place
from compactor_cli.model.report import InputReport, Outcome
from compactor_cli.model.settings import Settings
from compactor_cli.plan.fast import AMOUNT
from compactor_cli.read.jsonl import OnInvalid, Records, read_records
from compactor_cli.read.limits import DEFAULT_LIMITS, Limits, limited_lines
from compactor_cli.read.sources import Source
from compactor_cli.read.streams import STDIN, Observer, Stream, look_at, open_stream
from compactor_cli.run.account import Account
from compactor_cli.run.depot import Depot
from compactor_cli.run.finished import Finished, Finisher, View
from compactor_cli.run.notes import note_of
from compactor_cli.run.outputs import Output
from compactor_cli.run.rows import Review, RowMaker
from compactor_cli.run.tally import Tally

if TYPE_CHECKING:
    from compactor_cli.model.importance import Importance
    from compactor_cli.model.summariser import Summariser
    from compactor_cli.model.transcript import Transcript
    from compactor_cli.plugged import PluggedEngine
    from compactor_cli.render.shape import Shape
    from compactor_cli.run.hooks import Hooks
    from compactor_cli.run.models import ModelRun
    from compactor_cli.run.planfile import Saved


# Why a file of a tree is skipped that only its content can tell from a transcript.
PASSED_OVER = "no transcript"


class Purpose(StrEnum):
    """What a run is for."""

    ACT = "act"  # compact and write
    PLAN = "plan"  # decide, write nothing
    TRY = "try"  # compact, write nothing


class Originals(StrEnum):
    """Whether originals are archived."""

    ARCHIVED = "archived"
    NOT_KEPT = "not kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One input and where its result goes."""

    source: Source
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
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
    originals: Originals = Originals.ARCHIVED
    archive_dir: str = ""
    plans: Mapping[str, Saved] | None = None
    view: View | None = None
    page: View | None = None
    models: ModelRun | None = None
    review: Review | None = None
    summariser: Callable[[str], Summariser] | None = None
    engine: PluggedEngine | None = None
    importance: Importance | None = None
    shape: Shape | None = None
    hooks: Hooks | None = None
    memory: str = ""
    redacts_output: bool = False
    limits: Limits = DEFAULT_LIMITS


@dataclass(slots=True, kw_only=True)
class Sinks:
    """Who gets what comes up on the way: texts to show, lines of a plan file, pages of transcripts, events of inputs
    (all but their end).

    ``late``: the reports of inputs that were done when the run was stopped.
    """

    show: Callable[[str], object] | None = None
    save: Callable[[bytes], object] | None = None
    teach: Callable[[bytes], object] | None = None
    page: Callable[[str], object] | None = None
    tell: Listener | None = None
    late: Callable[[InputReport], object] | None = None


def run_job(job: Job, orders: Orders, sinks: Sinks, processes: int = 1) -> InputReport:
    """Do one job. Whatever goes wrong with this input is in its report; only a gone reader is raised.

    ``processes`` share the rows of a dataset.
    """
    if sinks.tell:
        sinks.tell(InputBegan(path=job.source.path))
    try:
        return _compact(job, orders, sinks, processes)
    except (UnknownShape, InvalidLine) as error:
        return _passed_over(job) if job.source.is_candidate else failed(job, error)
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


def _passed_over(job: Job) -> InputReport:
    """The report of a file of a tree that has a transcript's name and holds none."""
    return InputReport(path=job.source.path, outcome=Outcome.SKIPPED, reason=PASSED_OVER)


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


def _compact(job: Job, orders: Orders, sinks: Sinks, processes: int) -> InputReport:
    path = job.source.path
    if path != STDIN and orders.min_age_seconds and look_at(path).age_seconds() < orders.min_age_seconds:
        return InputReport(path=path, outcome=Outcome.SKIPPED, reason="live")
    if orders.purpose is Purpose.ACT and job.target.kind in (Kind.IN_PLACE, Kind.APPEND):
        _prepare(job, orders)
    folder = partial(_archive_dir, job, orders)
    keeps = orders.purpose is Purpose.ACT and orders.originals is Originals.ARCHIVED
    with (
        Depot(folder if keeps else None, path) as depot,
        open_stream(path, (depot.watch, *_watchers(path, sinks)), limits=orders.limits) as stream,
    ):
        if keeps:
            depot.begin(can_be_read_again=stream.look is not None and path != STDIN)
        AMOUNT.expect(stream.look.size_bytes if stream.look else 0)
        lines = limited_lines(stream.reader, path, orders.limits)
        records = read_records(lines, path, orders.on_invalid, orders.limits.line_bytes)
        tally = Tally(records=records, written_as=orders.shape.dialect if orders.shape else "")
        with closing(_rows(job, orders, sinks, records, tally, processes)) as rows:
            output = _write(job, rows, tally, depot, stream) if orders.purpose is Purpose.ACT else _exhaust(rows)
    report = tally.report(path=path, content=depot.content, output=output, archive=depot.stored)
    return _told(report, orders)


def _prepare(job: Job, orders: Orders) -> None:
    """Leave a file to the next run that somebody has open; make good what a killed run began to append to it."""
    from compactor_cli.archive.journal import finish_append
    from compactor_cli.archive.live_file import check_no_writer

    path = job.source.path
    with suppress(OSError), Path(path).open("rb") as file:  # what cannot be read is reported later
        check_no_writer(file.fileno(), path, quick=True)
    if orders.originals is Originals.ARCHIVED:
        finish_append(path, _archive_dir(job, orders))


def _told(report: InputReport, orders: Orders) -> InputReport:
    """The report, once the hook after has heard of it; what went wrong with that is a warning."""
    if orders.hooks is None or orders.purpose is not Purpose.ACT or report.outcome is not Outcome.COMPACTED:
        return report
    trouble = orders.hooks.tell(report)
    return replace(report, warnings=(*report.warnings, trouble)) if trouble else report


def _watchers(path: str, sinks: Sinks) -> tuple[Observer, ...]:
    tell = sinks.tell
    return (lambda piece: tell(BytesRead(path=path, size_bytes=len(piece))),) if tell else ()


def _rows(
    job: Job, orders: Orders, sinks: Sinks, records: Records, tally: Tally, processes: int
) -> Generator[Finished, None, None]:
    """Every transcript of the input, done, one at a time."""
    maker = _maker(job, orders)
    if sinks.teach:
        from compactor_cli.llm.example import Examples

        maker.example = Examples(template=orders.settings.template)
    account = Account(job.source.path, sinks.tell)
    if sinks.tell and orders.models:
        maker.planned = account.planned
    finish = Finisher(
        make=maker.plan if orders.purpose is Purpose.PLAN else maker.compact,
        view=orders.view if sinks.show else None,
        plans_path=job.source.path if sinks.save else "",
        page=orders.page if sinks.page else None,
    )
    made: Iterable[Finished]
    if processes > 1:
        from compactor_cli.run.spread import Spread

        made = Spread(records, dialect=orders.dialect, finish=finish, maker=maker, processes=processes)
    else:
        transcripts = open_transcripts(records, dialect=orders.dialect, prefix=records.prefix)
        made = orders.models.mapped(finish, transcripts) if orders.models else map(finish, transcripts)
    for finished in made:
        tally.add(finished.report)
        account.ended(finished.report)
        if orders.view and sinks.show:
            sinks.show(finished.shown)
        if sinks.save:
            sinks.save(finished.plans)
        if sinks.teach:
            sinks.teach(finished.example)
        if sinks.page and finished.page:
            sinks.page(finished.page)
        yield finished


def _maker(job: Job, orders: Orders) -> RowMaker:
    maker = RowMaker(
        settings=orders.settings,
        plans=orders.plans,
        load_state=partial(_load_state, job, orders),
        load_original=partial(_load_original, job, orders),
        review=orders.review,
        mode=Mode.APPEND if job.target.kind is Kind.APPEND else Mode.REWRITE,
        engine=orders.engine,
        importance=orders.importance,
        shape=orders.shape,
        redacts=orders.redacts_output,
    )
    if orders.summariser:
        maker.summariser = orders.summariser
    if (models := orders.models) is not None and models.writes:
        folder = _archive_dir(job, orders)
        maker.summariser = lambda guidance: models.summariser(folder, guidance)
        maker.estimate = lambda request: models.estimate(request, folder)
    if (hooks := orders.hooks) is not None and orders.purpose is Purpose.ACT:
        maker.ask = lambda transcript, plan: hooks.ask(job.source.path, job.target.path, transcript, plan)
    if orders.memory:
        maker.summariser = _by_note(note_of(orders.memory, job.source.path), maker.summariser)
    return maker


def _load_state(job: Job, orders: Orders, name: str) -> bytes | None:
    """The digest's counter table of this name, from the archive."""
    from compactor_cli.archive.store import Archive

    return Archive(_archive_dir(job, orders)).load_state(name)


def _load_original(job: Job, orders: Orders, sha256: str) -> Transcript | None:
    """The archived transcript that a marker names; None if it is not there, or damaged."""
    from compactor_cli.archive.originals import load_transcript

    try:
        return load_transcript([_archive_dir(job, orders)], sha256)
    except (CompactError, OSError):
        return None


def _by_note(note: str, otherwise: Callable[[str], Summariser]) -> Callable[[str], Summariser]:
    """The note as the summary, unless there is none, or somebody said what the summary is to be like."""

    def summariser(guidance: str) -> Summariser:
        from compactor_cli.llm.noted import Noted

        return otherwise(guidance) if guidance or not note else Noted(note, otherwise(guidance))

    return summariser


def _write(job: Job, rows: Iterator[Finished], tally: Tally, depot: Depot, stream: Stream) -> str:
    """Write the rows: archive durable, then output, then the source replaced. The path written."""
    with Output(job.target, stream) as output:
        for row in rows:
            depot.add(row.report, row.state, OnInvalid.DROP if tally.dropped else OnInvalid.KEEP)
            output.write(row.output, row.changed)
        if not tally.count:
            output.write(tally.records.prefix, changed=False)
        if tally.is_altered:
            depot.commit(tally)
        path = output.finish(tally.is_altered, depot)
        tally.warnings += output.warnings
        return path


def _exhaust(rows: Iterator[Finished]) -> str:
    for _ in rows:
        pass
    return ""


def _archive_dir(job: Job, orders: Orders) -> Path:
    if orders.archive_dir:
        return Path(orders.archive_dir)
    from compactor_cli.archive.layout import default_archive_dir

    return default_archive_dir(job.source.path, in_place=job.target.kind in (Kind.IN_PLACE, Kind.APPEND))
