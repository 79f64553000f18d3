"""A run of the filter: configuration, options, inputs, the batch, and the messages about it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli import __version__
from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, holds_temporaries, lock, make_folders, system_errors
from compactor_cli.cli import views
from compactor_cli.cli.config import Configuration, RunOptions, check, check_written, configure
from compactor_cli.cli.console import Console, Level, counted, is_terminal, wants_color
from compactor_cli.cli.run_report import PROMETHEUS, RunReport, output_file, print_models
from compactor_cli.cli.views import PageFile, ResultLines, diff_view, plan_view, result_view, warn_of_fallbacks
from compactor_cli.model.errors import CompactError, UsageError
from compactor_cli.model.plugins import PluginGroup, load_plugin, plugin_names
from compactor_cli.model.report import Event, InputEnded, InputReport, Listener, Outcome, RunBegan
from compactor_cli.model.settings import KEPT_BY, SEMANTIC, Settings, Strategy, untouched
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.sources import find_sources, home_folder, is_folder
from compactor_cli.read.streams import STDIN, Compression, reads_within
from compactor_cli.run.jobs import PASSED_OVER, AfterFailure, Hooks, Job, Originals, Outputs, Purpose, RunConfig
from compactor_cli.run.outputs import STDOUT, Destination, Target, TargetKind, check_free, plan_targets
from compactor_cli.run.rows import NOTE_NAME, LazyDigest, View, note_of
from compactor_cli.run.runner import UnchangedCache, run_batch, seen_file

if TYPE_CHECKING:
    from compactor_cli.llm.model import ModelOptions
    from compactor_cli.model.summary import Summariser
    from compactor_cli.run.documents import PlanFile
    from compactor_cli.run.model_run import ModelConfig


WOULD_CHANGE = 1
FELL_BACK = 4
MOST_LOCKS = 200  # each takes a file descriptor, of which a process commonly has 1,024
OPEN_SECONDS = 60.0  # a session written to more recently is likely to be open in its client


def run(operands: Sequence[str], given: Mapping[str, Any], *, only_look: bool = False) -> int:
    """Compact what the operands name; returns the exit code. Raises CompactError for what concerns the whole run.

    With ``only_look`` the results are shown and not written, as on a terminal if no place for them is named. A
    requested report is written in any case, even if the run is stopped; never over another file.
    """
    report: str = given.get("report") or ""
    run_report = RunReport()
    with ExitStack() as stack:
        try:
            check_written("report", report)
            # Only after the check of the run options is it known whether the report may use standard output.
            run_report.report = "" if report == STDOUT else report
            configuration = configure(given)
            is_seen = is_terminal(sys.stdout)
            run_options = RunOptions(**configuration.options, stdout_is_terminal=is_seen, only_look=only_look)
            check(run_options, configuration.named)
            if run_options.stdout_is_taken or STDOUT in run_options.written_besides:
                _check_stdout()
            run_report.report, run_report.settings = run_options.report, configuration.settings
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


def _check_stdout() -> None:
    """Raise UsageError if standard output is closed or open only for reading."""
    import fcntl

    if fcntl.fcntl(sys.stdout.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise UsageError("standard output is closed", next_step="name a file with -o")


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
    _check_apart(jobs, run_options, run_report)
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
            _work_on(jobs, run_config, run_options, console, stack, run_report, reports)
        finally:
            run_report.inputs = (*reports, *run_report.inputs)
            run_report.model = account_for(run_config, console, inputs=len(reports))
            console.finish()
    warn_of_fallbacks(reports, console)
    if reports and all(report.reason == PASSED_OVER for report in reports):
        raise _nothing_found(operands, len(reports))
    return _exit_code(reports, run_options)


def _exit_code(reports: Sequence[InputReport], run_options: RunOptions) -> int:
    """The exit code for the results of all inputs."""
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
    known = clients_named(() if name.lower() == "any" else (name,), os.environ, home_folder())
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
    """Raise UsageError for unknown names and a window that is too small, before anything is changed."""
    from compactor_cli.formats.registry import get
    from compactor_cli.plan.tokens import counter_for
    from compactor_cli.plan.trigger import decide

    if settings.template != Settings().template:
        from compactor_cli.render.template import check_template

        check_template(settings.template)
    counter_for(settings.tokenizer)
    # Checks target and window for a transcript of any size, since a target that is a share needs one.
    decide(settings, tokens=1, base_tokens=1_000_000, model="")
    if run_options.format:
        get(run_options.format)
    if settings.language != "auto" and not (run_options.model or run_options.summariser or run_options.engine):
        from compactor_cli.digest.language import LANGUAGES

        if settings.language.partition("-")[0].lower() not in LANGUAGES:
            advice = f"one of auto, {', '.join(LANGUAGES)}; a model (-m) may write others"
            raise UsageError(f"the digest has no words of the language {settings.language!r}", next_step=advice)


def _jobs(operands: Sequence[str], run_options: RunOptions, console: Console) -> tuple[Job, ...]:
    """The inputs with their targets. Raises UsageError if no transcript is found in the folders that are named."""
    passed_over: list[str] = []
    sources = find_sources(
        operands or (() if run_options.files_from else (STDIN,)),
        recursive=run_options.recursive,
        walk=run_options.walk,
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
    # A result that is shown only because of the terminal gets the checks that it would get in a pipe.
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


def _check_apart(jobs: Sequence[Job], run_options: RunOptions, run_report: RunReport) -> None:
    """Raise UsageError if a report, a page or the like would overwrite an input, a result or another such file."""
    used = {path for job in jobs for path in (job.source.path, job.target.path)} - {STDOUT}
    try:
        check_free(run_options.written_besides, used)
    except UsageError:
        run_report.report, run_report.listeners = "", []  # the failure is not reported to those files either
        raise


def _nothing_found(operands: Sequence[str], passed_over: int) -> UsageError:
    what = f"no transcript is below {', '.join(operands)}"
    if not passed_over:
        return UsageError(what, next_step="there is no file; check the name")
    what = f"{what} ({counted(passed_over, 'name')} passed over)"
    return UsageError(what, next_step="-v shows what is passed over; --hidden and --include take more")


def _sweep(jobs: Sequence[Job], run_options: RunOptions, console: Console) -> None:
    """Remove what killed runs left in the folders where this run writes."""
    from compactor_cli.archive.store import LOCAL_ARCHIVE, default_archive_dir

    paths = {job.target.path for job in jobs if job.target.kind is not TargetKind.STDOUT}
    folders = {Path(os.path.realpath(path)).parent for path in paths}
    if run_options.archive_dir:
        swept = [(folders, Path(run_options.archive_dir))]
    elif run_options.in_place or run_options.append:
        swept = [({folder}, folder / LOCAL_ARCHIVE) for folder in folders]
    else:
        swept = [(folders, default_archive_dir(STDIN, in_place=False))]
    for places, archive in swept:
        if any(map(holds_temporaries, (*places, archive))):
            from compactor_cli.archive.maintenance import clear

            clear(places, (archive,), console.warn)


def _roots(jobs: Sequence[Job], run_options: RunOptions) -> tuple[str, ...]:
    """The folders to lock: those where files are changed in place, or the output folder."""
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


def _work_on(
    jobs: Sequence[Job],
    run_config: RunConfig,
    run_options: RunOptions,
    console: Console,
    stack: ExitStack,
    run_report: RunReport,
    reports: list[InputReport],
) -> None:
    """Run the jobs, adding a report of each to ``reports``; views, plans and events go to the outputs as they come."""
    total, unit = len(jobs), "file"
    if len(jobs) == 1:  # the progress of one input is counted in bytes
        path = Path(jobs[0].source.path)
        total, unit = 0, "B"
        with suppress(OSError):
            total = path.stat().st_size if path.is_file() else 0
    progress = stack.enter_context(console.progress(console.program, total, unit))
    settings, resume = run_config.settings, run_report.resume_command
    lines = ResultLines(run_options, settings, console, inputs=len(jobs), resume_command=resume)
    run_report.listeners += [progress, remember_archive, lines]
    outputs = _outputs(run_config, run_options, stack, run_report, is_single=len(jobs) == 1)
    if run_report.wants_all or (len(jobs) == 1 and console.watched):  # for the progress bar
        outputs.emit = run_report.emit
    # With several files in place, those that need nothing are remembered, unless the result depends on other packages,
    # programs or notes, whose changes would not be noticed.
    seen = None
    is_looked_at = run_config.purpose is not Purpose.ACT or run_options.plan or run_options.interactive
    others = (getattr(run_config, name) for name in ("engine", "summariser", "importance", "shape", "hooks", "memory"))
    stays = (run_options.in_place or run_options.append) and len(jobs) > 1
    # Files with figures of each conversation need every conversation to be read.
    is_summed = run_options.metrics.endswith(PROMETHEUS) and not run_options.report
    shows_each = run_options.html or (run_options.metrics and not is_summed)
    if stays and not (is_looked_at or any(others) or run_config.redacts_output or shows_each):
        from compactor_cli.llm.model_client import replies_file

        seen = UnchangedCache(seen_file(replies_file().parent, run_config, jobs[0].target.kind))
    with closing(run_batch(jobs, run_config, processes=run_options.processes, outputs=outputs, seen=seen)) as run:
        for report in run:
            run_report.emit(InputEnded(report=report))
            reports.append(report)


def _outputs(
    run_config: RunConfig, run_options: RunOptions, stack: ExitStack, run_report: RunReport, *, is_single: bool
) -> Outputs:
    """The outputs of the run, with the files that they write opened."""

    def show(text: str) -> None:
        with system_errors("standard output"):
            sys.stdout.write(text)

    outputs = Outputs(show=show if run_config.view else None, late=run_report.add_late)
    if run_options.html:
        page = PageFile(run_options.html, run_config.settings)
        run_report.listeners.append(page)
        run_report.wants_all = True
        outputs.page = page.add_session if is_single else None
    if run_options.plan_out:
        from compactor_cli.run.documents import header_line

        outputs.save = _private(run_options.plan_out, stack)
        outputs.save(header_line(run_config.settings))
    if run_options.summary_rows:
        outputs.training_rows = _private(run_options.summary_rows, stack)
    return outputs


def remember_archive(event: Event, /) -> None:
    """A listener that adds the archive of a stored original to the list of archives."""
    if isinstance(event, InputEnded) and event.report.archive:
        from compactor_cli.archive.restore import remember

        remember(Path(event.report.archive).parents[1])


def _private(path: str, stack: ExitStack) -> Callable[[bytes], object]:
    """A function that writes text from transcripts to a file; a new file is readable by the user alone."""
    file = stack.enter_context(output_file(path, mode=PRIVATE_FILE_MODE))

    def write(data: bytes) -> None:
        with system_errors("standard output" if path == STDOUT else path):
            file.write(data)

    return write


def run_config_of(
    run_options: RunOptions, settings: Settings, plan_file: PlanFile | None, console: Console
) -> RunConfig:
    """The configuration of a run of the filter, without models. Raises UsageError for unknown names."""
    importance = engine = page = None
    if settings.keep.by not in KEPT_BY:
        from compactor_cli.llm.importance import PluginImportance

        importance = PluginImportance(settings.keep.by, run_options.when_failing, console.warn)
    if run_options.engine:
        from compactor_cli.plugged import load_engine

        engine = load_engine(run_options.engine, run_options.when_failing)
    if run_options.html:
        page = partial(views.session_view, settings=settings)
    return RunConfig(
        settings=settings,
        purpose=run_options.purpose,
        dialect=run_options.format,
        on_invalid=OnInvalid(run_options.on_invalid),
        min_age_seconds=run_options.min_age_seconds,
        originals=run_options.originals,
        archive_dir=run_options.archive_dir,
        limits=run_options.limits,
        after_failure=AfterFailure.GO_ON if run_options.keep_going else AfterFailure.STOP,
        plans=plan_file.by_sha256 if plan_file else None,
        view=_view(run_options),
        page=page,
        summariser=_summariser(run_options),
        engine=engine,
        importance=importance,
        shape=run_options.shape,
        hooks=_hooks(run_options),
        memory=run_options.memory,
        redacts_output=run_options.redact_output,
    )


def _view(run_options: RunOptions) -> View | None:
    """The view of each transcript that is shown, in a run that writes nothing; None without one."""
    if run_options.purpose is Purpose.ACT:
        return None
    color = wants_color(run_options.color, sys.stdout)
    if run_options.shows_result:
        return None if run_options.only_look and run_options.html else partial(result_view, color=color)
    if run_options.diff:
        return partial(diff_view, color=color)
    if run_options.dry_run and run_options.plan_out != STDOUT:
        return partial(plan_view, model=run_options.model)
    return None


def _summariser(run_options: RunOptions) -> Callable[[str], Summariser] | None:
    """A function that makes the plug-in summariser for given guidance; None if no plug-in is named."""
    name = run_options.summariser
    if name in ("", "digest"):
        return None
    if name not in plugin_names(PluginGroup.SUMMARISERS):
        load_plugin(PluginGroup.SUMMARISERS, name)
    from compactor_cli.plugged import PluginSummariser

    return lambda guidance: PluginSummariser(name, run_options.when_failing, LazyDigest(guidance))


def _hooks(run_options: RunOptions) -> Hooks | None:
    """The user's hooks; None if there are none. Raises UsageError for an invalid command line."""
    before, after = run_options.hook_before, run_options.hook_after
    if not (before or after):
        return None
    import shlex

    for where, command in (("--hook-before", before), ("--hook-after", after)):
        try:
            words = shlex.split(command)
        except ValueError as error:
            what = f"the command cannot be read ({error})"
            raise UsageError(what, next_step="mind the quotes", place=where) from error
        if command and not words:
            raise UsageError("the command is empty", next_step="leave it out", place=where)
    return Hooks(before=before, after=after, seconds=run_options.hook_timeout)


def check_memory(run_options: RunOptions, *, inputs: int) -> None:
    """Raise UsageError for a note that cannot be read, and for one note for several sessions."""
    if not run_options.memory:
        return
    if NOTE_NAME not in run_options.memory:
        note_of(run_options.memory, "")
        if inputs > 1:
            advice = f"name each session's own: notes/{NOTE_NAME}.md"
            raise UsageError("one note cannot be the summary of several sessions", next_step=advice, place="memory")


def with_models(
    run_config: RunConfig, run_options: RunOptions, stack: ExitStack, emit: Listener | None = None
) -> RunConfig:
    """The configuration with the connection to the models, if any is named, and with the review if it is interactive.

    ``emit`` gets an event for each call. Raises UsageError if a model is named and nothing is to be summarised.
    """
    if run_options.model and run_config.settings.strategy is not Strategy.SUMMARY:
        what = f"nothing is summed up by the strategy {run_config.settings.strategy.value}, so no model can write it"
        raise UsageError(what, next_step="leave -m out, or take another preset")
    if run_options.interactive:
        views.check_terminal()
        run_config = replace(run_config, review=views.review)
    if embedding_model := run_options.embedding_model:
        if run_config.settings.keep.by != SEMANTIC:
            raise UsageError("embedding-model is about --keep semantic", next_step="add --keep semantic")
        from compactor_cli.llm.importance import LOCAL_PREFIX, EmbeddingSimilarity, local_embedder, not_asked

        if embedding_model.startswith(LOCAL_PREFIX):
            embed = local_embedder(embedding_model.removeprefix(LOCAL_PREFIX))
            run_config = replace(run_config, importance=EmbeddingSimilarity(embed))
        elif run_config.purpose is Purpose.PLAN:
            run_config = replace(run_config, importance=EmbeddingSimilarity(not_asked(embedding_model)))
    if not (run_options.model or embedding_model) or run_options.plan:
        return run_config
    from compactor_cli.run.model_run import ModelRun, check_setup

    models = replace(model_config(run_options, run_config.settings), embedding_model=embedding_model)
    check_setup(models)
    if run_config.importance:  # no server is asked for embeddings, although their model was named
        models = replace(models, embedding_model="")
        if not run_options.model:
            return run_config
    run = stack.enter_context(ModelRun(models, emit))
    importance = run.importance() if models.embedding_model else run_config.importance
    return replace(run_config, models=models, model_run=run, importance=importance)


def account_for(run_config: RunConfig, console: Console, *, inputs: int) -> Mapping[str, Any] | None:
    """Print the usage of models, made or planned; returns the same for the report, or None without models."""
    run = run_config.model_run
    if run is None:
        return None
    print_models(run, console)
    if run_config.view and run.writes and run_config.purpose is Purpose.PLAN and inputs > 1:
        sys.stdout.write(f"in all:\n{views.estimate_line(run.planned, run.config.model_options.model)}\n")
    spent = asdict(run.client.spend.spent)
    return {"model": run.name, **spent, "requests_planned": run.planned.requests}


def model_config(run_options: RunOptions, settings: Settings) -> ModelConfig:
    """The configuration of the models. Raises UsageError for files that cannot be read and for unknown tasks."""
    from compactor_cli.llm.limits import RateLimits, SpendLimits
    from compactor_cli.llm.model_calls import NO_KEYS, read_keys
    from compactor_cli.llm.model_client import Fallback, breaker_file, replies_file
    from compactor_cli.run.model_run import ModelConfig

    fallback, key_file = run_options.fallback_model, run_options.key_file
    return ModelConfig(
        model_options=_model_options(run_options, settings),
        limits=SpendLimits(
            cost_usd=run_options.max_cost, requests=run_options.max_requests, tokens_sent=run_options.max_tokens_sent
        ),
        rate_limits=RateLimits(
            concurrency=1 if run_options.interactive else max(1, run_options.llm_concurrency),
            requests_per_minute=run_options.rpm,
            tokens_per_minute=run_options.tpm,
        ),
        keys=read_keys(Path(key_file), run_options.model, run_options.api_base) if key_file else NO_KEYS,
        fallback=Fallback(model=fallback, api_base=run_options.api_base) if fallback else None,
        cache_file=replies_file() if run_options.cache else None,
        breaker_file=breaker_file(),
        resets_breaker=run_options.reset_breaker,
        redacts=run_options.redact,
    )


def _model_options(run_options: RunOptions, settings: Settings) -> ModelOptions:
    from compactor_cli.llm.model import OnFailure
    from compactor_cli.llm.model_calls import read_price
    from compactor_cli.llm.prompts import Stage
    from compactor_cli.llm.quoting import Previous
    from compactor_cli.run.model_run import model_options

    instructions, path = "", run_options.instructions
    try:
        instructions = Path(path).read_text(encoding="utf-8-sig") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        what = f"the instructions cannot be read ({reason})"
        raise UsageError(what, next_step="check the path after instructions=", place=path) from error
    models: dict[Stage, str] = {}
    for entry in filter(None, (part.strip() for part in run_options.model_for.split(","))):
        task, equals, model = (part.strip() for part in entry.partition("="))
        if not equals or not model or task not in tuple(Stage):
            advice = f"write TASK=MODEL; tasks: {', '.join(Stage)}"
            raise UsageError(f"“{entry}” names no model for a task", next_step=advice, place="model-for")
        models[Stage(task)] = model
    return model_options(
        settings,
        model=run_options.model,
        models=models,
        api_base=run_options.api_base,
        price=read_price(run_options.price),
        previous=Previous(run_options.previous),
        on_failure=OnFailure(run_options.on_failure),
        timeout_seconds=run_options.timeout,
        max_reply_bytes=run_options.max_reply,
        instructions=instructions,
        verifies=run_options.verify_pass,
    )
