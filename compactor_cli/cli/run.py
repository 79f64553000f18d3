"""A run of the filter: configuration, inputs, the batch, and what is told about it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from compactor_cli import __version__
from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, make_folders, output_error
from compactor_cli.archive.lock import lock
from compactor_cli.archive.targets import STDOUT, Destination, Kind, Target, plan_targets
from compactor_cli.cli.account import ResultLines, Wording, warn_of_fallbacks
from compactor_cli.cli.beside import beside, check_memory
from compactor_cli.cli.book import Book
from compactor_cli.cli.config import Configuration, configure
from compactor_cli.cli.console import Console, counted, is_terminal, wants_color
from compactor_cli.cli.models import account_for, asked_line, with_models
from compactor_cli.cli.plugins import plugged
from compactor_cli.cli.progress import Progress
from compactor_cli.cli.wishes import Wishes, check
from compactor_cli.cli.written import output_file
from compactor_cli.model.errors import CompactError, UsageError
from compactor_cli.model.events import Event, InputEnded, RunBegan
from compactor_cli.model.report import InputReport
from compactor_cli.model.settings import Settings, untouched
from compactor_cli.read.sources import Source, find_sources
from compactor_cli.read.streams import STDIN
from compactor_cli.run.finished import View
from compactor_cli.run.jobs import PASSED_OVER, Job, Orders, Purpose, Sinks
from compactor_cli.run.run import AfterFailure, run_batch

if TYPE_CHECKING:
    from compactor_cli.cli.page import PageFile
    from compactor_cli.model.transcript import Transcript
    from compactor_cli.run.planfile import PlanFile
    from compactor_cli.run.row import Row
    from compactor_cli.run.seen import Seen

WOULD_CHANGE = 1
FELL_BACK = 4
# Each lock takes a file descriptor, of which a process commonly has 1,024.
MOST_LOCKS = 200


def run(operands: Sequence[str], given: Mapping[str, Any], *, only_look: bool = False) -> int:
    """Compact what the operands name; the exit code. Raises CompactError for what concerns the whole run.

    With ``only_look`` the results are shown and not written, as on a terminal where no place for them is named.
    A report that was asked for is written in every case, also when the run is stopped.
    """
    report = str(given.get("report", ""))
    # Standard output is only known to be free for it when the wishes are checked.
    book = Book(report="" if report == STDOUT else report)
    with ExitStack() as stack:
        try:
            configuration = configure(given, os.environ, Path.cwd())
            is_seen = is_terminal(sys.stdout)
            wishes = Wishes(**configuration.options, stdout_is_terminal=is_seen, only_look=only_look)
            check(wishes, given)
            book.report, book.settings = wishes.report, configuration.settings
            if sys.stdout is None and wishes.stdout_is_taken:
                raise UsageError("standard output is closed", next_step="name a file with -o")
            book.open_events(wishes, stack)
            if wishes.last:
                operands = _last_session(operands, wishes, book)
            code = _run(operands, wishes, configuration, book)
        except CompactError as error:
            with suppress(CompactError):
                book.close(error.exit_code, str(error))
            raise
        except KeyboardInterrupt as stop:
            with suppress(CompactError):
                book.close(128 + getattr(stop, "number", signal.SIGINT), "stopped by a signal")
            raise
        book.close(code, "")
    return code


def _run(operands: Sequence[str], wishes: Wishes, configuration: Configuration, book: Book) -> int:
    console = Console("compact", wishes.level, wishes.color)
    console.why(f"settings from: {', '.join(configuration.sources)}")
    plan_file = _plan_file(wishes)
    settings = plan_file.settings if plan_file else configuration.settings
    settings = book.settings = untouched(settings) if wishes.no_compact else settings
    check_names(settings, wishes)
    _print_estimate(settings, console)
    jobs = _jobs(operands, wishes, console)
    orders = _orders(wishes, settings, plan_file)
    check_memory(wishes, inputs=len(jobs))
    if wishes.redact_output:
        keeps = "the archive keeps the originals" if wishes.archive else "no original is kept"
        console.warn(f"--redact-output: kept records that hold secrets do not stay byte for byte; {keeps}")
    book.tell(RunBegan(inputs=len(jobs), version=__version__, preset=settings.preset, purpose=orders.purpose.value))
    reports: list[InputReport] = []
    with ExitStack() as stack:
        for folder in _roots(jobs, wishes):
            stack.enter_context(lock(folder))
        if orders.purpose is Purpose.ACT:
            _sweep(jobs, wishes, console)
        orders = with_models(orders, wishes, stack, book.tell)
        try:
            with closing(_batch(jobs, orders, wishes, console, stack, book)) as batch:
                for report in batch:
                    reports.append(report)
        finally:
            book.inputs = (*reports, *book.inputs)
            book.model = account_for(orders, console, inputs=len(reports))
            console.finish()
    warn_of_fallbacks(reports, console)
    if reports and all(report.reason == PASSED_OVER for report in reports):
        raise _nothing_found(operands, len(reports))
    return _exit_code(reports, wishes)


def _last_session(operands: Sequence[str], wishes: Wishes, book: Book) -> tuple[str, ...]:
    """The path of the session that --last names. Raises UsageError."""
    from compactor_cli.cli.sessions import OPEN_SECONDS, newest_session

    if operands or wishes.files_from:
        raise UsageError("--last is the input, and others are named too", next_step="leave one of them out")
    session = newest_session(wishes.last)
    replaces = wishes.append or wishes.in_place
    if replaces and time.time() - session.modified < OPEN_SECONDS:
        advice = "if its client is still open, leave it first: it does not see what is written now"
        Console("compact", wishes.level, wishes.color).warn(f"{session.path}: changed just now; {advice}")
    book.resume_command = session.resume_command if replaces else ""
    return (str(session.path),)


def _print_estimate(settings: Settings, console: Console) -> None:
    """Say that tokens are not counted, where that was not asked for."""
    from compactor_cli.plan.tokens import TiktokenCounter, counter_for

    counter = counter_for(settings.tokenizer)
    if isinstance(counter, TiktokenCounter) and counter.method.startswith("estimate"):
        console.done(f"no tokens are counted, all numbers of them are an {counter.method}")


def _plan_file(wishes: Wishes) -> PlanFile | None:
    if not wishes.plan:
        return None
    from compactor_cli.run.planfile import read_plan_file

    return read_plan_file(wishes.plan)


def _exit_code(reports: Sequence[InputReport], wishes: Wishes) -> int:
    from compactor_cli.model.report import Report

    report = Report(version="", settings={}, inputs=tuple(reports))
    if wishes.check and not report.exit_code:
        return WOULD_CHANGE if report.would_change else 0
    fell_back = any(item.fell_back for report in reports for item in report.transcripts)
    return report.exit_code or (FELL_BACK if wishes.strict and fell_back else 0)


def check_names(settings: Settings, wishes: Wishes) -> None:
    """Raise UsageError for names that nothing goes by, before anything is touched."""
    from compactor_cli.formats.registry import get
    from compactor_cli.plan.tokens import counter_for
    from compactor_cli.plan.trigger import named_window_tokens
    from compactor_cli.render.names import check_template

    check_template(settings.template)
    counter_for(settings.tokenizer)
    named_window_tokens(settings.trigger)
    if wishes.format:
        get(wishes.format)
    if settings.language != "auto" and not (wishes.model or wishes.summariser or wishes.engine):
        _check_language(settings.language)


def _check_language(name: str) -> None:
    """Raise UsageError for a language that the digest has no words of."""
    from compactor_cli.digest.language import LANGUAGES

    if name.partition("-")[0].lower() not in LANGUAGES:
        advice = f"one of auto, {', '.join(LANGUAGES)}; a model (-m) may write others"
        raise UsageError(f"the digest has no words of the language {name!r}", next_step=advice)


def _jobs(operands: Sequence[str], wishes: Wishes, console: Console) -> tuple[Job, ...]:
    """The inputs and their outputs. Raises UsageError where folders are named and nothing in them is taken."""
    passed_over: list[str] = []
    sources = find_sources(
        operands or (() if wishes.files_from else (STDIN,)),
        recursive=wishes.recursive,
        walk=replace(wishes.walk, skip=tuple(filter(None, (wishes.output_dir, wishes.archive_dir)))),
        files_from=wishes.files_from,
        null_separated=wishes.null,
        passed_over=passed_over.append,
    )
    for path in passed_over:
        console.note(f"{path}: passed over, by its name")
    if not sources and operands:
        raise _nothing_found(operands, len(passed_over))
    if passed_over:
        console.done(f"{counted(len(passed_over), 'name')} passed over, hidden or of no transcript: -v shows them")
    return tuple(
        Job(source=source, target=target) for source, target in zip(sources, _targets(sources, wishes), strict=True)
    )


def _nothing_found(operands: Sequence[str], passed_over: int) -> UsageError:
    what = f"no transcript is below {', '.join(operands)} ({counted(passed_over, 'name')} passed over)"
    return UsageError(what, next_step="-v shows what is passed over; --hidden and --include take more")


def _targets(sources: Sequence[Source], wishes: Wishes) -> tuple[Target, ...]:
    # What is shown only because it is a terminal is refused where a pipe would refuse it.
    if wishes.purpose is not Purpose.ACT and (wishes.only_look or not wishes.shows_result):
        kind = Kind.APPEND if wishes.append else Kind.IN_PLACE if wishes.in_place else Kind.STDOUT
        return tuple(Target(path=source.path, kind=kind) for source in sources)
    destination = Destination(
        output=wishes.output,
        output_dir=wishes.output_dir,
        in_place=wishes.in_place,
        append=wishes.append,
        force=wishes.force,
        compress=wishes.compression,
    )
    return plan_targets(sources, destination)


def _orders(wishes: Wishes, settings: Settings, plan_file: PlanFile | None) -> Orders:
    return Orders(
        settings=settings,
        **plugged(wishes, settings),
        **beside(wishes),
        purpose=wishes.purpose,
        dialect=wishes.format,
        on_invalid=wishes.invalid,
        min_age_seconds=wishes.min_age_seconds,
        originals=wishes.originals,
        archive_dir=wishes.archive_dir,
        limits=wishes.limits,
        plans=plan_file.by_sha256 if plan_file else None,
        view=_view(wishes),
        page=partial(_page, settings=settings) if wishes.html else None,
        shape=wishes.shape,
        redacts_output=wishes.redact_output,
    )


def _view(wishes: Wishes) -> View | None:
    if wishes.purpose is Purpose.ACT:
        return None
    from compactor_cli.cli.views import diff_view, plan_view, result_view

    color = wants_color(wishes.color, sys.stdout, os.environ)
    if wishes.shows_result:
        if wishes.only_look and wishes.html:
            return None
        return lambda transcript, row: result_view(transcript, row.plan, row.summary, row.report, color)
    if wishes.diff:
        return lambda transcript, row: (
            diff_view(transcript, row.plan, row.summary, row.report.tokens_after, color) if row.changed else ""
        )
    if wishes.dry_run and wishes.plan_out != STDOUT:
        return lambda transcript, row: plan_view(transcript, row.plan) + asked_line(row, wishes.model)
    return None


def _page(transcript: Transcript, row: Row, *, settings: Settings) -> str:
    from compactor_cli.cli.page import session_view

    return session_view(transcript, row, settings)


def _sweep(jobs: Sequence[Job], wishes: Wishes, console: Console) -> None:
    """Clear away what killed runs left where this one writes."""
    from compactor_cli.archive.folder import BESIDE
    from compactor_cli.archive.layout import default_archive_dir
    from compactor_cli.archive.leftovers import clear

    stays = wishes.in_place or wishes.append
    paths = {job.target.path for job in jobs if job.target.kind is not Kind.STDOUT}
    folders = {Path(os.path.realpath(path)).parent for path in paths}
    archive = Path(wishes.archive_dir) if wishes.archive_dir else default_archive_dir(STDIN, in_place=False)
    if stays and not wishes.archive_dir:
        for folder in folders:
            clear((folder,), (folder / BESIDE,), console.warn)
    else:
        clear(folders, (archive,), console.warn)


def _roots(jobs: Sequence[Job], wishes: Wishes) -> tuple[str, ...]:
    """The folders to lock: where files are replaced or written by the tree."""
    if not wishes.lock or wishes.purpose is not Purpose.ACT:
        return ()
    if wishes.output_dir:
        make_folders(Path(wishes.output_dir))
        return (wishes.output_dir,)
    if not (wishes.in_place or wishes.append):
        return ()
    roots = sorted({os.path.realpath(root) for root in {job.source.root for job in jobs}})
    if len(roots) > MOST_LOCKS:
        roots = [os.path.commonpath(roots)]
    return tuple(root for root in roots if Path(root).is_dir())


def _batch(
    jobs: Sequence[Job], orders: Orders, wishes: Wishes, console: Console, stack: ExitStack, book: Book
) -> Generator[InputReport, None, None]:
    """The inputs one by one, what comes up on the way shown, saved and told."""
    single = len(jobs) == 1
    progress = stack.enter_context(
        Progress(
            label=console.program,
            total=_size_bytes(jobs[0]) if single else len(jobs),
            unit="B" if single else "file",
            shown=console.watched,
        )
    )
    console.before_line = progress.make_room
    wording = Wording(
        purpose=orders.purpose,
        settings=orders.settings,
        inputs=len(jobs),
        in_place=wishes.in_place,
        append=wishes.append,
        is_shown=wishes.shows_result,
        only_look=wishes.only_look,
        resume_command=book.resume_command,
    )
    book.listeners += [progress, remember_archive, ResultLines(wording, console)]
    page = _page_file(wishes, orders, book)
    sinks = Sinks(
        page=page.add_session if page and single else None,
        show=_show if orders.view else None,
        save=_plan_saver(wishes, orders, stack),
        teach=stack.enter_context(_private(wishes.summary_rows)).write if wishes.summary_rows else None,
        tell=book.tell if book.wants_all or (single and console.watched) else None,
        late=partial(_late, book),
    )
    after_failure = AfterFailure.GO_ON if wishes.keep_going else AfterFailure.STOP
    run = run_batch(
        jobs,
        orders,
        processes=wishes.processes,
        after_failure=after_failure,
        sinks=sinks,
        seen=_seen(jobs, orders, wishes),
    )
    with closing(run):
        for done in run:
            done.give(sinks)
            for event in done.events:
                book.tell(event)
            book.tell(InputEnded(report=done.report))
            yield done.report


def remember_archive(event: Event, /) -> None:
    """A listener: the archive that an original went to is put on the list of archives."""
    if isinstance(event, InputEnded) and event.report.archive:
        from compactor_cli.archive.known import remember

        remember(Path(event.report.archive).parents[1])


def _page_file(wishes: Wishes, orders: Orders, book: Book) -> PageFile | None:
    """The page that is asked for, listening."""
    if not wishes.html:
        return None
    from compactor_cli.cli.page import PageFile

    page = PageFile(wishes.html, orders.settings)
    book.listeners.append(page)
    book.wants_all = True
    return page


def _late(book: Book, report: InputReport) -> None:
    book.inputs = (*book.inputs, report)
    book.tell(InputEnded(report=report))


def _seen(jobs: Sequence[Job], orders: Orders, wishes: Wishes) -> Seen | None:
    """What earlier runs found unchanged, where many files stay where they are and nobody looks at each.

    What other packages, programs and notes do may change without a word.
    """
    stays = (wishes.in_place or wishes.append) and wishes.purpose is Purpose.ACT and len(jobs) > 1
    others = (orders.engine, orders.summariser, orders.importance, orders.shape, orders.hooks, orders.memory)
    if not stays or wishes.plan or wishes.interactive or any(others) or orders.redacts_output:
        return None
    from compactor_cli.llm.places import replies_file
    from compactor_cli.run.seen import Seen, seen_file

    return Seen(seen_file(replies_file().parent, orders, jobs[0].target.kind))


def _show(text: str) -> None:
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error, "standard output") from error


def _private(path: str) -> AbstractContextManager[IO[bytes]]:
    """A file for what comes out of transcripts: a new one is the user's alone, as sessions are."""
    return output_file(path, mode=PRIVATE_FILE_MODE)


def _plan_saver(wishes: Wishes, orders: Orders, stack: ExitStack) -> Any:
    """Where lines of the plan file go; None where none is asked for."""
    if not wishes.plan_out:
        return None
    from compactor_cli.run.planfile import header_line

    file = stack.enter_context(_private(wishes.plan_out))
    file.write(header_line(orders.settings))
    return file.write


def _size_bytes(job: Job) -> int:
    path = Path(job.source.path)
    return path.stat().st_size if path.is_file() else 0
