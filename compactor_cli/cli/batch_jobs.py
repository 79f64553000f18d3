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

from compactor_cli.archive.atomic import make_folders
from compactor_cli.archive.lock import lock
from compactor_cli.cli.batch_run import planned, read, shard_options, tell, tell_all
from compactor_cli.cli.console import Console
from compactor_cli.cli.models import model_orders
from compactor_cli.cli.run import FELL_BACK
from compactor_cli.cli.table import table
from compactor_cli.cli.wishes import Wishes
from compactor_cli.llm.llm import ENDED
from compactor_cli.model.errors import TryLater, UsageError
from compactor_cli.model.settings import Settings
from compactor_cli.presets import values
from compactor_cli.presets.overlay import settings_from
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.slices import Slice
from compactor_cli.run.models import ModelOrders, check_setup
from compactor_cli.scale.book import NAME, Book
from compactor_cli.scale.options import ShardOptions
from compactor_cli.scale.provider import DEFAULT_ROUNDS, Provider, Step, way_of
from compactor_cli.scale.recorded import Missing
from compactor_cli.scale.run import summed
from compactor_cli.scale.shards import Shard

_HEAD = ("round", "job", "requests", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What was submitted, as the book holds it."""

    mark: str
    wishes: Wishes
    shards: tuple[Shard, ...]
    options: ShardOptions
    orders: ModelOrders
    rounds: int


def submit(operands: Sequence[str], given: Mapping[str, Any]) -> int:
    """Set down what is asked for and begin the first round; the exit code."""
    rounds = values.count(given.get("rounds", DEFAULT_ROUNDS), "--rounds")
    said = read(operands, {name: value for name, value in given.items() if name != "rounds"})
    if not said.wishes.model:
        raise UsageError("batch jobs are for summaries by a model", next_step="name one with -m MODEL")
    orders = model_orders(said.wishes, said.settings)
    way_of(orders)
    check_setup(orders)
    folder = Path(said.wishes.output_dir).absolute()
    if (folder / NAME).exists():
        advice = f"compactor batch collect {folder}, or remove {folder / NAME} to begin anew"
        raise UsageError("batch jobs were begun here already", place=str(folder), next_step=advice)
    shards = tuple(_absolute(shard) for shard in planned(said))
    make_folders(folder)
    with lock(folder), _book(Book(folder)) as book:
        value = {
            "mark": f"compact-{os.urandom(6).hex()}",
            "wishes": dataclasses.asdict(said.wishes),
            "settings": dataclasses.asdict(said.settings),
            "column": said.own.get("column", ""),
            "instructions": orders.asking.instructions,
            "key_file": str(Path(said.wishes.key_file).absolute()) if said.wishes.key_file else "",
            "rounds": rounds,
            "shards": [dataclasses.asdict(shard) for shard in shards],
        }
        book.say(value)
        try:
            return _advance(book, _task(book), Missing.SEND, shard_options(said))
        except UsageError:
            book.path.unlink()
            raise


def collect(output_dir: str, missing: Missing, level: int) -> int:
    """Fetch what came back, write what is complete, send the next round; the exit code."""
    folder = Path(output_dir)
    with _book(Book.open(folder)) as book, lock(folder):
        task = _task(book)
        return _advance(book, task, missing, task.options, level)


def status(output_dir: str) -> int:
    """Print how the jobs stand; nothing is written, sent or fetched."""
    with _book(Book.open(Path(output_dir))) as book:
        task = _task(book)
        jobs = Provider(book, task.orders, task.mark).standing()
        tally = book.tally()
    sys.stdout.write(table(_HEAD, [(job.round, job.name, job.requests, job.status) for job in jobs]))
    cost = f", ${tally['cost_usd']:.4f}" if tally["cost_usd"] else ""
    done = sum(Path(f"{shard.output}.done").exists() for shard in task.shards)
    sys.stdout.write(
        f"{tally['replies']:,} replies, {tally['faults']:,} failed; {tally['input_tokens']:,} tokens in,"
        f" {tally['output_tokens']:,} out{cost}; {done:,} of {len(task.shards):,} outputs written\n"
    )
    return 0


def _advance(book: Book, task: Task, missing: Missing, options: ShardOptions, level: int | None = None) -> int:
    console = Console("compactor", task.wishes.level if level is None else level, task.wishes.color)
    options = dataclasses.replace(options, models=task.orders)
    try:
        step = Provider(book, task.orders, task.mark).step(task.shards, options, missing, task.rounds)
        return _told(step, task, console)
    finally:
        console.finish()


def _told(step: Step, task: Task, console: Console) -> int:
    """Say what the step came to; the exit code."""
    finished = [result for result in step.results if result.exit_code != TryLater.exit_code]
    for result in finished:
        tell(result, console)
    if step.waits:
        under_way = sum(job.requests for job in step.jobs if job.status not in ENDED)
        sent = f"round {step.jobs[-1].round}: {step.sent:,} requests sent" if step.sent else "not finished yet"
        advice = f"compactor batch collect {task.wishes.output_dir}"
        console.done(f"{sent}; {under_way:,} under way; {len(finished):,} outputs written: later, {advice}")
        return TryLater.exit_code if not step.sent or step.jobs[-1].round > 1 else 0
    metrics = summed(step.results)
    tell_all(metrics, console)
    if any(result.exit_code for result in finished):
        return 3
    return FELL_BACK if task.wishes.strict and metrics.fell_back else 0


def _task(book: Book) -> Task:
    said = book.said()
    if said is None:
        advice = f"remove {book.path}, and submit again"
        raise UsageError("the book of the batch jobs is not complete", place=str(book.path), next_step=advice)
    lists = {name: tuple(value) for name, value in said["wishes"].items() if isinstance(value, list)}
    wishes = Wishes(**{**said["wishes"], **lists, "instructions": "", "key_file": said["key_file"]})
    settings = settings_from(said["settings"], Settings(), str(book.path))
    orders = model_orders(wishes, settings)
    asking = dataclasses.replace(orders.asking, instructions=said["instructions"])
    return Task(
        mark=said["mark"],
        wishes=wishes,
        shards=tuple(_shard(value) for value in said["shards"]),
        options=ShardOptions(
            settings=settings,
            dialect=wishes.format,
            on_invalid=OnInvalid(wishes.on_invalid),
            archive_dir=wishes.archive_dir,
            column=said["column"],
        ),
        orders=dataclasses.replace(orders, asking=asking),
        rounds=said["rounds"],
    )


def _shard(value: Mapping[str, Any]) -> Shard:
    return Shard(**{**value, "part": Slice(**value["part"]) if value["part"] else None})


def _absolute(shard: Shard) -> Shard:
    source, output = Path(shard.input).absolute(), Path(shard.output).absolute()
    return dataclasses.replace(shard, input=str(source), output=str(output))


@contextmanager
def _book(book: Book) -> Iterator[Book]:
    try:
        yield book
    finally:
        book.close()
