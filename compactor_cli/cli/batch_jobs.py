"""``compactor batch submit``, ``status`` and ``collect``: a model's summaries by a provider's batch jobs."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactor_cli.archive.atomic import lock, make_folders
from compactor_cli.cli.batch_run import planned, print_result, print_shard, read, shard_options
from compactor_cli.cli.console import Console
from compactor_cli.cli.model_options import model_config
from compactor_cli.cli.run_command import FELL_BACK
from compactor_cli.cli.run_options import RunOptions
from compactor_cli.cli.text_table import table
from compactor_cli.llm.llm import ENDED
from compactor_cli.model.errors import TryLater, UsageError
from compactor_cli.model.settings import Settings
from compactor_cli.presets import units as values
from compactor_cli.presets.overlay import settings_from
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.streams import Slice
from compactor_cli.run.executors import summed
from compactor_cli.run.model_run import ModelConfig, check_setup
from compactor_cli.run.provider import DEFAULT_ROUNDS, NAME, BatchJobLog, Missing, Provider, Step, way_of
from compactor_cli.run.shards import Shard, ShardOptions

_HEAD = ("round", "job", "requests", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob:
    """What was submitted, as the book holds it."""

    mark: str
    run_options: RunOptions
    shards: tuple[Shard, ...]
    options: ShardOptions
    run_config: ModelConfig
    rounds: int


def submit(operands: Sequence[str], given: Mapping[str, Any]) -> int:
    """Set down what is asked for and begin the first round; the exit code."""
    rounds = values.count(given.get("rounds", DEFAULT_ROUNDS), "--rounds")
    arguments = read(operands, {name: value for name, value in given.items() if name != "rounds"})
    if not arguments.run_options.model:
        raise UsageError("batch jobs are for summaries by a model", next_step="name one with -m MODEL")
    run_config = model_config(arguments.run_options, arguments.settings)
    way_of(run_config)
    check_setup(run_config)
    folder = Path(arguments.run_options.output_dir).absolute()
    if (folder / NAME).exists():
        advice = f"compactor batch collect {folder}, or remove {folder / NAME} to begin anew"
        raise UsageError("batch jobs were begun here already", place=str(folder), next_step=advice)
    shards = tuple(_absolute(shard) for shard in planned(arguments))
    make_folders(folder)
    with lock(folder), _job_log(BatchJobLog(folder)) as job_log:
        value = {
            "mark": f"compact-{os.urandom(6).hex()}",
            "wishes": dataclasses.asdict(arguments.run_options),
            "settings": dataclasses.asdict(arguments.settings),
            "column": arguments.own.get("column", ""),
            "instructions": run_config.model_options.instructions,
            "key_file": str(Path(arguments.run_options.key_file).absolute()) if arguments.run_options.key_file else "",
            "rounds": rounds,
            "shards": [dataclasses.asdict(shard) for shard in shards],
        }
        job_log.store_request(value)
        try:
            return _advance(job_log, _task(job_log), Missing.SEND, shard_options(arguments))
        except UsageError:
            job_log.path.unlink()
            raise


def collect(output_dir: str, missing: Missing, level: int) -> int:
    """Fetch what came back, write what is complete, send the next round; the exit code."""
    folder = Path(output_dir)
    with _job_log(BatchJobLog.open(folder)) as job_log, lock(folder):
        task = _task(job_log)
        return _advance(job_log, task, missing, task.options, level)


def status(output_dir: str) -> int:
    """Print how the jobs stand; nothing is written, sent or fetched."""
    with _job_log(BatchJobLog.open(Path(output_dir))) as job_log:
        task = _task(job_log)
        jobs = Provider(job_log, task.run_config, task.mark).standing()
        tally = job_log.tally()
    sys.stdout.write(table(_HEAD, [(job.round, job.name, job.requests, job.status) for job in jobs]))
    cost = f", ${tally['cost_usd']:.4f}" if tally["cost_usd"] else ""
    done = sum(Path(f"{shard.output}.done").exists() for shard in task.shards)
    sys.stdout.write(
        f"{tally['replies']:,} replies, {tally['faults']:,} failed; {tally['input_tokens']:,} tokens in,"
        f" {tally['output_tokens']:,} out{cost}; {done:,} of {len(task.shards):,} outputs written\n"
    )
    return 0


def _advance(
    job_log: BatchJobLog, task: BatchJob, missing: Missing, options: ShardOptions, level: int | None = None
) -> int:
    console = Console("compactor", task.run_options.level if level is None else level, task.run_options.color)
    options = dataclasses.replace(options, models=task.run_config)
    try:
        step = Provider(job_log, task.run_config, task.mark).step(task.shards, options, missing, task.rounds)
        return _print_progress(step, task, console)
    finally:
        console.finish()


def _print_progress(step: Step, task: BatchJob, console: Console) -> int:
    """Say what the step came to; the exit code."""
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
    if any(result.exit_code for result in finished):
        return 3
    return FELL_BACK if task.run_options.strict and metrics.fell_back else 0


def _task(job_log: BatchJobLog) -> BatchJob:
    arguments = job_log.request()
    if arguments is None:
        advice = f"remove {job_log.path}, and submit again"
        raise UsageError("the book of the batch jobs is not complete", place=str(job_log.path), next_step=advice)
    lists = {name: tuple(value) for name, value in arguments["wishes"].items() if isinstance(value, list)}
    run_options = RunOptions(**{**arguments["wishes"], **lists, "instructions": "", "key_file": arguments["key_file"]})
    settings = settings_from(arguments["settings"], Settings(), str(job_log.path))
    run_config = model_config(run_options, settings)
    model_options = dataclasses.replace(run_config.model_options, instructions=arguments["instructions"])
    return BatchJob(
        mark=arguments["mark"],
        run_options=run_options,
        shards=tuple(_shard(value) for value in arguments["shards"]),
        options=ShardOptions(
            settings=settings,
            dialect=run_options.format,
            on_invalid=OnInvalid(run_options.on_invalid),
            archive_dir=run_options.archive_dir,
            column=arguments["column"],
            limits=run_options.limits,
        ),
        run_config=dataclasses.replace(run_config, model_options=model_options),
        rounds=arguments["rounds"],
    )


def _shard(value: Mapping[str, Any]) -> Shard:
    return Shard(**{**value, "part": Slice(**value["part"]) if value["part"] else None})


def _absolute(shard: Shard) -> Shard:
    source, output = Path(shard.input).absolute(), Path(shard.output).absolute()
    return dataclasses.replace(shard, input=str(source), output=str(output))


@contextmanager
def _job_log(job_log: BatchJobLog) -> Iterator[BatchJobLog]:
    try:
        yield job_log
    finally:
        job_log.close()
