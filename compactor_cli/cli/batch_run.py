"""A run over shards: its configuration, the shards of this share, the executor, and the messages about it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from compactor_cli import __version__
from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, lock, make_folders
from compactor_cli.archive.maintenance import clear
from compactor_cli.cli.config import RunOptions, check, configure
from compactor_cli.cli.console import Console, counted, table
from compactor_cli.cli.options import BY_NAME, NOT_FOR_SHARDS
from compactor_cli.cli.run_command import FELL_BACK, check_names, model_config
from compactor_cli.cli.run_report import output_file, print_models, print_spent
from compactor_cli.llm.llm import ENDED
from compactor_cli.model.errors import TryLater, UsageError
from compactor_cli.model.settings import Settings, read_count, read_size_bytes, settings_from
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.sources import find_sources
from compactor_cli.read.streams import Slice, reads_within
from compactor_cli.run import shards as sharding
from compactor_cli.run.jobs import FinishedPolicy, RunConfig
from compactor_cli.run.model_run import ModelRun, check_setup
from compactor_cli.run.outputs import check_free
from compactor_cli.run.provider import DEFAULT_ROUNDS, NAME, BatchJobLog, Missing, Provider, call_template
from compactor_cli.run.shards import Shard, ShardMetrics, ShardResult, summed

_SHARE = re.compile(r"([1-9]\d*)/([1-9]\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """The options of shards and rounds as the user wrote them; empty if not given."""

    split: str = ""  # a size in bytes
    column: str = ""
    shard: str = ""  # `I/N`
    executor: str = "local"
    address: str = ""
    rounds: str = ""

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> BatchOptions:
        """Those among the given options, which are left with the options of the filter."""
        own = {name: given.pop(name, None) for name in cls.__dataclass_fields__}
        return cls(**{name: value for name, value in own.items() if value is not None})


# Options of the filter that would change the outputs, but that `compactor batch` does not use.
_NOT_USED = ("engine", "summariser", "memory", "hook_before", "hook_after")


def read(given: Mapping[str, Any], batch: BatchOptions) -> tuple[RunOptions, Settings, Console]:
    """Read and check the run options; returns them, the settings and a console that got the warnings.

    Raises `UsageError`.
    """
    configuration = configure(given)
    if refused := sorted(configuration.named & NOT_FOR_SHARDS):
        what = f"compactor batch takes no {BY_NAME[refused[0]].key}"
        raise UsageError(what, next_step="leave it out, or use compact", place="--set")
    run_options = RunOptions(**configuration.options)
    check(run_options, configuration.named)
    check_names(configuration.settings, run_options)
    if not run_options.output_dir:
        raise UsageError("the outputs have no place to go", next_step="name one: --output-dir DIR")
    if batch.executor not in ("local", "ray"):
        raise UsageError(f"no executor is called {batch.executor}", next_step="local or ray", place="--executor")
    if batch.address and batch.executor != "ray":
        raise UsageError("--address is about a Ray cluster", next_step="add --executor ray")
    console = Console("compactor", run_options.level, run_options.color)
    unused = (BY_NAME[name].key for name in _NOT_USED if getattr(run_options, name))
    for warning in (*configuration.warnings, *(f"{key} is set, and compactor batch does not use it" for key in unused)):
        console.warn(warning)
    return run_options, configuration.settings, console


def run(operands: Sequence[str], given: dict[str, Any]) -> int:
    """Compact the shards of this share; returns the exit code. Raises `CompactError` if the whole run is affected."""
    batch = BatchOptions.taken_from(given)
    run_options, settings, console = read(given, batch)
    if run_options.redact_output:
        console.warn("--redact-output: rows that hold secrets do not stay byte for byte; the inputs keep them")
    shards = planned(operands, run_options, batch)
    check_free(run_options.written_besides, {path for shard in shards for path in (shard.input, shard.output)})
    models = model_config(run_options, settings) if run_options.model else None
    if models:
        # The machines of a cluster may have keys in their own environments.
        check_setup(models, has_keys_elsewhere=batch.executor == "ray")
    if not (batch.shard or batch.address):
        # With other machines at work nothing is removed: their locks are not always visible here.
        archives = [Path(run_options.archive_dir)] if run_options.archive_dir else []
        clear({Path(shard.output).parent for shard in shards}, archives, console.warn)
    results: list[ShardResult] = []
    with ExitStack() as stack:
        size_bytes = sum(shard.size_bytes for shard in shards)
        progress = stack.enter_context(console.progress("compactor batch", size_bytes, "B"))
        try:
            options = dataclasses.replace(shard_options(run_options, settings, batch), models=models)
            with closing(_executor(shards, options, run_options, batch, console, stack)) as executor:
                for result in executor:
                    results.append(result)
                    print_shard(result, console)
                    progress.advance(result.shard.size_bytes)
        finally:
            console.finish()
    metrics = summed(results)
    print_result(metrics, console)
    if run_options.report:
        by_output = sorted(results, key=lambda result: result.shard.output)
        report = {
            "version": __version__,
            "settings": dataclasses.asdict(settings),
            "metrics": dataclasses.asdict(metrics),
            "shards": [dataclasses.asdict(result) for result in by_output],
        }
        with output_file(run_options.report, mode=PRIVATE_FILE_MODE) as file:
            file.write(json.dumps(report, indent=1).encode() + b"\n")
    code = 3 if any(result.exit_code for result in results) else 0
    return code or (FELL_BACK if run_options.strict and metrics.fell_back else 0)


def planned(operands: Sequence[str], run_options: RunOptions, batch: BatchOptions) -> tuple[Shard, ...]:
    """The shards of all inputs, or those of the share if one is named."""
    include = run_options.include or sharding.INCLUDE
    walk = dataclasses.replace(run_options.walk, include=include, candidates=())
    sources = find_sources(
        operands,
        recursive=run_options.recursive,
        walk=walk,
        files_from=run_options.files_from,
        null_separated=run_options.null,
    )
    split_bytes = read_size_bytes(batch.split, "--split") if batch.split else sharding.DEFAULT_SPLIT_BYTES
    with reads_within(lambda: run_options.limits):
        shards = sharding.plan_shards(sources, run_options.output_dir, split_bytes)
    if not batch.shard:
        return shards
    found = _SHARE.fullmatch(batch.shard)
    if not found or int(found[1]) > int(found[2]):
        raise UsageError(f"“{batch.shard}” is not a share", next_step="write I/N, from 1/N to N/N", place="--shard")
    return sharding.share(shards, int(found[1]), int(found[2]))


def shard_options(run_options: RunOptions, settings: Settings, batch: BatchOptions) -> RunConfig:
    """The configuration of a run over these shards."""
    return RunConfig(
        settings=settings,
        dialect=run_options.format,
        on_invalid=OnInvalid(run_options.on_invalid),
        archive_dir=_absolute_name(run_options.archive_dir),
        key_file=_absolute_name(run_options.key_file),
        column=batch.column,
        limits=run_options.limits,
        redacts_output=run_options.redact_output,
        finished=FinishedPolicy.REDO if run_options.force else FinishedPolicy.SKIP,
    )


def _executor(
    shards: Sequence[Shard],
    options: RunConfig,
    run_options: RunOptions,
    batch: BatchOptions,
    console: Console,
    stack: ExitStack,
) -> Generator[ShardResult, None, None]:
    processes = run_options.processes
    emit_end = partial(print_spent, model=run_options.model, console=console)
    if batch.executor == "ray":
        # Workers have other working directories.
        named = [_absolute(shard) for shard in shards]
        return sharding.run_on_ray(named, options, address=batch.address, processes=processes, emit=emit_end)
    if options.models is None:
        return sharding.run_here(shards, options, processes=processes)
    if (processes := min(processes, len(shards))) > 1:
        return sharding.run_gated(shards, options, processes=processes, emit=emit_end)
    models = stack.enter_context(ModelRun(options.models))
    stack.callback(print_models, models, console)
    return sharding.run_here(shards, dataclasses.replace(options, model_run=models))


def _absolute_name(path: str) -> str:
    return str(Path(path).absolute()) if path else ""


def _absolute(shard: Shard) -> Shard:
    return dataclasses.replace(shard, input=_absolute_name(shard.input), output=_absolute_name(shard.output))


def print_shard(result: ShardResult, console: Console) -> None:
    """Print what became of one shard."""
    metrics, output = result.metrics, result.shard.output
    if result.error:
        console.error(result.error)
        console.why(result.trace)
    elif metrics.shards_skipped:
        console.note(f"{output}: finished before")
    else:
        console.done(f"{output}: {_rows(metrics)}", kind="written")
    if metrics.failed:
        console.warn(f"{output}: {metrics.failed:,} rows failed and were passed on unchanged: see {output}.failed")


def print_result(metrics: ShardMetrics, console: Console) -> None:
    """Print what became of all shards."""
    before = f", {metrics.shards_skipped:,} finished before" if metrics.shards_skipped else ""
    failed = f", {metrics.shards_failed:,} failed" if metrics.shards_failed else ""
    console.done(f"{counted(metrics.shards, 'shard')} written{before}{failed}; {_rows(metrics)}")
    asked = metrics.compacted + metrics.left
    if metrics.fell_back:
        console.warn(
            f"{metrics.fell_back:,} of {asked:,} summaries fell back to the digest: the model gave none, or not for all"
        )
    if metrics.left:
        console.warn(f"{metrics.left:,} of {asked:,} conversations were left as they were: the model gave no summary")


def _rows(metrics: ShardMetrics) -> str:
    return f"{metrics.rows:,} conversations, {metrics.tokens_before:,} → {metrics.tokens_after:,} tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob:
    """A submitted run, as the log of the batch jobs has it."""

    provider: Provider
    run_options: RunOptions
    shards: tuple[Shard, ...]
    options: RunConfig
    rounds: int  # after which nothing more is sent


def submit(operands: Sequence[str], given: dict[str, Any]) -> int:
    """Store the options in the log and begin the first round; returns the exit code. The options are those of `run`."""
    batch = BatchOptions.taken_from(given)
    rounds = read_count(batch.rounds, "--rounds") if batch.rounds else DEFAULT_ROUNDS
    run_options, settings, _ = read(given, batch)
    if not run_options.model:
        raise UsageError("batch jobs are for summaries by a model", next_step="name one with -m MODEL")
    models = model_config(run_options, settings)
    call_template(models)
    check_setup(models)
    folder = Path(run_options.output_dir).absolute()
    if (folder / NAME).exists():
        advice = f"compactor batch collect {folder}, or remove {folder / NAME} to begin anew"
        raise UsageError("batch jobs were begun here already", place=str(folder), next_step=advice)
    shards = tuple(_absolute(shard) for shard in planned(operands, run_options, batch))
    # Absolute, as `collect` may be called in another working directory.
    paths = {name: _absolute_name(getattr(run_options, name)) for name in ("archive_dir", "key_file")}
    make_folders(folder)
    with lock(folder), closing(BatchJobLog(folder)) as job_log:
        value = {
            "mark": f"compact-{os.urandom(6).hex()}",
            "run_options": dataclasses.asdict(run_options) | paths,
            "settings": dataclasses.asdict(settings),
            "column": batch.column,
            "instructions": models.model_options.instructions,
            "rounds": rounds,
            "shards": [dataclasses.asdict(shard) for shard in shards],
        }
        job_log.store_request(value)
        try:
            # --force applies to the submission only: outputs written after it are not made again.
            finished = FinishedPolicy.REDO if run_options.force else FinishedPolicy.SKIP
            return _advance(job_log, _task(job_log, finished), Missing.SEND)
        except UsageError:
            job_log.path.unlink()
            raise


def collect(output_dir: str, missing: Missing, level: int) -> int:
    """Fetch the replies, write the shards that are complete, send the next round; returns the exit code."""
    folder = Path(output_dir)
    with closing(BatchJobLog.open(folder)) as job_log, lock(folder):
        return _advance(job_log, _task(job_log), missing, level)


def status(output_dir: str) -> int:
    """Print the status of the jobs; nothing is written, sent or fetched."""
    with closing(BatchJobLog.open(Path(output_dir))) as job_log:
        task = _task(job_log)
        jobs = task.provider.statuses()
        tally = job_log.tally()
    rows = [(job.round, job.name, job.requests, job.status) for job in jobs]
    sys.stdout.write(table(("round", "job", "requests", "status"), rows))
    cost = f", ${tally['cost_usd']:.4f}" if tally["cost_usd"] else ""
    done = sum(Path(f"{shard.output}.done").exists() for shard in task.shards)
    sys.stdout.write(
        f"{tally['replies']:,} replies, {tally['faults']:,} failed; {tally['input_tokens']:,} tokens in,"
        f" {tally['output_tokens']:,} out{cost}; {done:,} of {len(task.shards):,} outputs written\n"
    )
    return 0


def _advance(job_log: BatchJobLog, task: BatchJob, missing: Missing, level: int | None = None) -> int:
    """Take the next step and print its result; returns the exit code."""
    console = Console("compactor", task.run_options.level if level is None else level, task.run_options.color)
    options = task.options
    folders = {job_log.path.parent, *(Path(shard.output).parent for shard in task.shards)}
    clear(folders, [Path(options.archive_dir)] if options.archive_dir else [], console.warn)
    try:
        step = task.provider.step(task.shards, options, missing, task.rounds)
        finished = [result for result in step.results if result.exit_code != TryLater.exit_code]
        for result in finished:
            print_shard(result, console)
        if step.waits:
            under_way = sum(job.requests for job in step.jobs if job.status not in ENDED)
            sent = f"round {step.jobs[-1].round}: {step.sent:,} requests sent" if step.sent else "not finished yet"
            advice = f"compactor batch collect {task.run_options.output_dir}"
            console.done(f"{sent}; {under_way:,} under way; {len(finished):,} outputs written: later, {advice}")
            return TryLater.exit_code if not step.sent or step.jobs[-1].round > 1 else 0
        metrics = summed(step.results)
        print_result(metrics, console)
    finally:
        console.finish()
    if any(result.exit_code for result in finished):
        return 3
    return FELL_BACK if task.run_options.strict and metrics.fell_back else 0


def _task(job_log: BatchJobLog, finished: FinishedPolicy = FinishedPolicy.SKIP) -> BatchJob:
    arguments = job_log.request()
    if arguments is None or "run_options" not in arguments:
        advice = f"collect with the version that submitted them, or remove {job_log.path} and submit again"
        problem = "the log of the batch jobs is not complete, or another version's"
        raise UsageError(problem, place=str(job_log.path), next_step=advice)
    # The version that submitted them may have had other options.
    known = {name: value for name, value in arguments["run_options"].items() if name in RunOptions.__dataclass_fields__}
    lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list)}
    run_options = RunOptions(**{**known, **lists, "instructions": ""})
    settings = settings_from(arguments["settings"], Settings(), str(job_log.path))
    models = model_config(run_options, settings)
    asked = dataclasses.replace(models.model_options, instructions=arguments["instructions"])
    models = dataclasses.replace(models, model_options=asked)
    options = shard_options(run_options, settings, BatchOptions(column=arguments["column"]))
    shards = ({**value, "part": Slice(**value["part"]) if value["part"] else None} for value in arguments["shards"])
    return BatchJob(
        provider=Provider(job_log, models, arguments["mark"]),
        run_options=run_options,
        shards=tuple(Shard(**shard) for shard in shards),
        options=dataclasses.replace(options, models=models, finished=finished),
        rounds=arguments["rounds"],
    )
