"""A run of the filter: configuration, inputs, the batch, and what is printed about it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from compactor_cli import __version__
from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, holds_temporaries, lock, make_folders, system_errors
from compactor_cli.cli.config import Configuration, RunOptions, check, configure
from compactor_cli.cli.console import Console, Level, Progress, counted, is_terminal
from compactor_cli.cli.run_config import account_for, check_memory, run_config_of, with_models
from compactor_cli.cli.run_report import RunReport, output_file
from compactor_cli.cli.views import PageFile, ResultLines, warn_of_fallbacks
from compactor_cli.model.errors import CompactError, UsageError
from compactor_cli.model.plan import Event, InputEnded, InputReport, Outcome, RunBegan
from compactor_cli.model.settings import Settings, untouched
from compactor_cli.read.sources import find_sources, is_folder
from compactor_cli.read.streams import STDIN, Compression, reads_within
from compactor_cli.run.jobs import PASSED_OVER, Job, Originals, Outputs, Purpose, RunConfig
from compactor_cli.run.outputs import STDOUT, Destination, Target, TargetKind, plan_targets
from compactor_cli.run.runner import AfterFailure, UnchangedCache, run_batch, seen_file

if TYPE_CHECKING:
    from compactor_cli.run.documents import PlanFile

WOULD_CHANGE = 1
FELL_BACK = 4
# Each lock takes a file descriptor, of which a process commonly has 1,024.
MOST_LOCKS = 200
# A session that was written to a moment ago is likely to be open in its client.
OPEN_SECONDS = 60.0


def run(operands: Sequence[str], given: Mapping[str, Any], *, only_look: bool = False) -> int:
    """Compact what the operands name; the exit code. Raises CompactError for what concerns the whole run.

    With ``only_look`` the results are shown and not written, as on a terminal where no place for them is named.
    A report that was asked for is written in every case, also when the run is stopped.
    """
    report = str(given.get("report", ""))
    # Standard output is only known to be free for it when the run options are checked.
    run_report = RunReport(report="" if report == STDOUT else report)
    with ExitStack() as stack:
        try:
            configuration = configure(given, os.environ, Path.cwd())
            is_seen = is_terminal(sys.stdout)
            run_options = RunOptions(**configuration.options, stdout_is_terminal=is_seen, only_look=only_look)
            check(run_options, configuration.named)
            run_report.report, run_report.settings = run_options.report, configuration.settings
            if sys.stdout is None and run_options.stdout_is_taken:
                raise UsageError("standard output is closed", next_step="name a file with -o")
            console = Console("compact", run_options.level, run_options.color)
            run_report.open_events(run_options, console, stack)
            if run_options.last:
                operands = _last_session(operands, run_options, console, run_report)
            stack.enter_context(reads_within(lambda: run_options.limits))
            code = _run(operands, run_options, configuration, console, run_report)
        except CompactError as error:
            with suppress(CompactError):
                run_report.close(error.exit_code, str(error))
            raise
        except KeyboardInterrupt as stop:
            with suppress(CompactError):
                run_report.close(128 + getattr(stop, "number", signal.SIGINT), "stopped by a signal")
            raise
        run_report.close(code, "")
    return code


def _run(
    operands: Sequence[str],
    run_options: RunOptions,
    configuration: Configuration,
    console: Console,
    run_report: RunReport,
) -> int:
    from compactor_cli.plan.tokens import TiktokenCounter, counter_for

    for warning in configuration.warnings:
        console.warn(warning)
    console.why(f"settings from: {', '.join(configuration.sources)}")
    plan_file: PlanFile | None = None
    if run_options.plan:
        from compactor_cli.run.documents import read_plan_file

        plan_file = read_plan_file(run_options.plan)
    settings = plan_file.settings if plan_file else configuration.settings
    settings = run_report.settings = untouched(settings) if run_options.no_compact else settings
    check_names(settings, run_options)
    counter = counter_for(settings.tokenizer)
    if isinstance(counter, TiktokenCounter) and counter.method.startswith("estimate"):
        console.done(f"no tokens are counted, all numbers of them are an {counter.method}")
    jobs = _jobs(operands, run_options, console)
    run_config = run_config_of(run_options, settings, plan_file, console)
    check_memory(run_options, inputs=len(jobs))
    if run_options.redact_output:
        console.warn(f"--redact-output: {_what_keeps_secrets(run_options)}")
    purpose = run_config.purpose.value
    run_report.emit(RunBegan(inputs=len(jobs), version=__version__, preset=settings.preset, purpose=purpose))
    reports: list[InputReport] = []
    with ExitStack() as stack:
        for folder in _roots(jobs, run_options):
            stack.enter_context(lock(folder))
        if run_config.purpose is Purpose.ACT:
            _sweep(jobs, run_options, console)
        run_config = with_models(run_config, run_options, stack, run_report.emit)
        try:
            with closing(_batch(jobs, run_config, run_options, console, stack, run_report)) as batch:
                for report in batch:
                    reports.append(report)
        finally:
            run_report.inputs = (*reports, *run_report.inputs)
            run_report.model = account_for(run_config, console, inputs=len(reports))
            console.finish()
    warn_of_fallbacks(reports, console)
    if reports and all(report.reason == PASSED_OVER for report in reports):
        raise _nothing_found(operands, len(reports))
    return _exit_code(reports, run_options)


def _exit_code(reports: Sequence[InputReport], run_options: RunOptions) -> int:
    """The code that says what became of all inputs."""
    codes = [report.exit_code for report in reports if report.exit_code]
    if codes:
        return 3 if 3 in codes else codes[0]
    if run_options.check:
        return WOULD_CHANGE if any(report.outcome is Outcome.COMPACTED for report in reports) else 0
    fell_back = any(item.fell_back for report in reports for item in report.transcripts)
    return FELL_BACK if run_options.strict and fell_back else 0


def _last_session(
    operands: Sequence[str], run_options: RunOptions, console: Console, run_report: RunReport
) -> tuple[str, ...]:
    """The path of the newest session of this folder, of the client that --last names or of any. Raises UsageError."""
    from compactor_cli.formats.clients import belongs_to, clients_named, find_sessions

    if operands or run_options.files_from:
        raise UsageError("--last is the input, and others are named too", next_step="leave one of them out")
    name = run_options.last
    known = clients_named(() if name.lower() == "any" else (name,), os.environ, Path.home())
    found = find_sessions(known)
    folder = Path.cwd().resolve()
    session = next((session for session in found if belongs_to(session, folder)), None)
    if session is None:
        title = known[0].title if len(known) == 1 else "any client"
        exports = "".join(f"; {item.title} writes one with: {item.export}" for item in known if item.has_database)
        elsewhere = f"{counted(len(found), 'session')} of other folders: compactor sessions lists them" if found else ""
        advice = (elsewhere or f"looked in {', '.join(str(client.root) for client in known)}") + exports
        raise UsageError(f"there is no session of {title} for this folder", next_step=advice, place="--last")
    replaces = run_options.append or run_options.in_place
    if replaces and time.time() - session.modified < OPEN_SECONDS:
        advice = "if its client is still open, leave it first: it does not see what is written now"
        console.warn(f"{session.path}: changed just now; {advice}")
    run_report.resume_command = session.resume_command if replaces else ""
    return (str(session.path),)


def _what_keeps_secrets(run_options: RunOptions) -> str:
    if run_options.append:
        return "what is appended holds no secrets, the records of the file keep theirs"
    keeps = "the archive keeps the originals"
    if run_options.originals is not Originals.ARCHIVED and not run_options.in_place:
        keeps = "the inputs stay as they are"
    elif run_options.originals is Originals.NOT_KEPT:
        keeps = "no original is kept"
    return f"kept records that hold secrets do not stay byte for byte; {keeps}"


def check_names(settings: Settings, run_options: RunOptions) -> None:
    """Raise UsageError for names that nothing goes by, before anything is touched."""
    from compactor_cli.formats.registry import get
    from compactor_cli.plan.tokens import counter_for
    from compactor_cli.plan.trigger import named_window_tokens

    if settings.template != Settings().template:
        from compactor_cli.render.template import check_template

        check_template(settings.template)
    counter_for(settings.tokenizer)
    named_window_tokens(settings.trigger)
    if run_options.format:
        get(run_options.format)
    if settings.language != "auto" and not (run_options.model or run_options.summariser or run_options.engine):
        from compactor_cli.digest.language import LANGUAGES

        if settings.language.partition("-")[0].lower() not in LANGUAGES:
            advice = f"one of auto, {', '.join(LANGUAGES)}; a model (-m) may write others"
            raise UsageError(f"the digest has no words of the language {settings.language!r}", next_step=advice)


def _jobs(operands: Sequence[str], run_options: RunOptions, console: Console) -> tuple[Job, ...]:
    """The inputs and their outputs. Raises UsageError where folders are named and nothing in them is taken."""
    passed_over: list[str] = []
    sources = find_sources(
        operands or (() if run_options.files_from else (STDIN,)),
        recursive=run_options.recursive,
        walk=replace(run_options.walk, skip=tuple(filter(None, (run_options.output_dir, run_options.archive_dir)))),
        files_from=run_options.files_from,
        null_separated=run_options.null,
        passed_over=passed_over.append,
    )
    for path in passed_over:
        console.note(f"{path}: passed over, by its name")
    if not sources and operands:
        raise _nothing_found(operands, len(passed_over))
    if passed_over and console.level < Level.DONE:
        console.done(f"{counted(len(passed_over), 'name')} passed over, hidden or of no transcript: -v shows them")
    # What is shown only because it is a terminal is refused where a pipe would refuse it.
    if run_options.purpose is not Purpose.ACT and (run_options.only_look or not run_options.shows_result):
        kind = TargetKind.IN_PLACE if run_options.in_place else TargetKind.STDOUT
        kind = TargetKind.APPEND if run_options.append else kind
        return tuple(Job(source=source, target=Target(path=source.path, kind=kind)) for source in sources)
    destination = Destination(
        output=run_options.output,
        output_dir=run_options.output_dir,
        in_place=run_options.in_place,
        append=run_options.append,
        force=run_options.force,
        compress=Compression(run_options.compress),
    )
    targets = plan_targets(sources, destination)
    return tuple(Job(source=source, target=target) for source, target in zip(sources, targets, strict=True))


def _nothing_found(operands: Sequence[str], passed_over: int) -> UsageError:
    what = f"no transcript is below {', '.join(operands)}"
    if not passed_over:
        return UsageError(what, next_step="there is no file; check the name")
    what = f"{what} ({counted(passed_over, 'name')} passed over)"
    return UsageError(what, next_step="-v shows what is passed over; --hidden and --include take more")


def _sweep(jobs: Sequence[Job], run_options: RunOptions, console: Console) -> None:
    """Clear away what killed runs left where this one writes."""
    from compactor_cli.archive.store import LOCAL_ARCHIVE, default_archive_dir

    stays = run_options.in_place or run_options.append
    paths = {job.target.path for job in jobs if job.target.kind is not TargetKind.STDOUT}
    folders = {Path(os.path.realpath(path)).parent for path in paths}
    archive = Path(run_options.archive_dir) if run_options.archive_dir else default_archive_dir(STDIN, in_place=False)
    if stays and not run_options.archive_dir:
        swept = [({folder}, folder / LOCAL_ARCHIVE) for folder in folders]
    else:
        swept = [(folders, archive)]
    for places, archive in swept:
        if any(map(holds_temporaries, (*places, archive))):
            from compactor_cli.archive.maintenance import clear

            clear(places, (archive,), console.warn)


def _roots(jobs: Sequence[Job], run_options: RunOptions) -> tuple[str, ...]:
    """The folders to lock: where files are replaced or written by the tree."""
    if not run_options.lock or run_options.purpose is not Purpose.ACT:
        return ()
    if run_options.output_dir:
        make_folders(Path(run_options.output_dir))
        return (run_options.output_dir,)
    if not (run_options.in_place or run_options.append):
        return ()
    roots = sorted({os.path.realpath(root) for root in {job.source.root for job in jobs}})
    if len(roots) > MOST_LOCKS:
        roots = [os.path.commonpath(roots)]
    return tuple(root for root in roots if is_folder(root))


def _batch(
    jobs: Sequence[Job],
    run_config: RunConfig,
    run_options: RunOptions,
    console: Console,
    stack: ExitStack,
    run_report: RunReport,
) -> Generator[InputReport, None, None]:
    """The inputs one by one, what comes up on the way shown, saved and reported."""
    progress = stack.enter_context(_progress(jobs, console))
    console.before_line = progress.make_room
    settings, resume = run_config.settings, run_report.resume_command
    lines = ResultLines(run_options, settings, console, inputs=len(jobs), resume_command=resume)
    run_report.listeners += [progress, remember_archive, lines]
    outputs = _outputs(run_config, run_options, stack, run_report, is_single=len(jobs) == 1)
    if run_report.wants_all or (len(jobs) == 1 and console.watched):  # one input moves the bar byte by byte
        outputs.emit = run_report.emit
    run = run_batch(
        jobs,
        run_config,
        processes=run_options.processes,
        after_failure=AfterFailure.GO_ON if run_options.keep_going else AfterFailure.STOP,
        outputs=outputs,
        seen=_seen(jobs, run_config, run_options),
    )
    with closing(run):
        for report in run:
            run_report.emit(InputEnded(report=report))
            yield report


def _progress(jobs: Sequence[Job], console: Console) -> Progress:
    """Counts the bytes of one input, of several the inputs."""
    total, unit = len(jobs), "file"
    if len(jobs) == 1:
        path = Path(jobs[0].source.path)
        total, unit = 0, "B"
        with suppress(OSError):
            total = path.stat().st_size if path.is_file() else 0
    return Progress(label=console.program, total=total, unit=unit, shown=console.watched)


def _outputs(
    run_config: RunConfig, run_options: RunOptions, stack: ExitStack, run_report: RunReport, *, is_single: bool
) -> Outputs:
    """Who gets what comes up on the way."""
    outputs = Outputs(show=_show if run_config.view else None, late=run_report.add_late)
    if run_options.html:
        page = PageFile(run_options.html, run_config.settings)
        run_report.listeners.append(page)
        run_report.wants_all = True
        outputs.page = page.add_session if is_single else None
    if run_options.plan_out:
        from compactor_cli.run.documents import header_line

        outputs.save = _private(run_options.plan_out, stack).write
        outputs.save(header_line(run_config.settings))
    if run_options.summary_rows:
        outputs.training_rows = _private(run_options.summary_rows, stack).write
    return outputs


def remember_archive(event: Event, /) -> None:
    """A listener: the archive that an original went to is put on the list of archives."""
    if isinstance(event, InputEnded) and event.report.archive:
        from compactor_cli.archive.restore import remember

        remember(Path(event.report.archive).parents[1])


def _seen(jobs: Sequence[Job], run_config: RunConfig, run_options: RunOptions) -> UnchangedCache | None:
    """What earlier runs found unchanged, where many files stay where they are and nobody looks at each.

    What other packages, programs and notes do may change without a word.
    """
    stays = (run_options.in_place or run_options.append) and run_options.purpose is Purpose.ACT and len(jobs) > 1
    others = (getattr(run_config, name) for name in ("engine", "summariser", "importance", "shape", "hooks", "memory"))
    if not stays or run_options.plan or run_options.interactive or any(others) or run_config.redacts_output:
        return None
    from compactor_cli.llm.model_client import replies_file

    return UnchangedCache(seen_file(replies_file().parent, run_config, jobs[0].target.kind))


def _show(text: str) -> None:
    with system_errors("standard output"):
        sys.stdout.write(text)


def _private(path: str, stack: ExitStack) -> IO[bytes]:
    """A file for what comes out of transcripts: a new one is the user's alone, as sessions are."""
    return stack.enter_context(output_file(path, mode=PRIVATE_FILE_MODE))
