"""A run over many inputs: results in the order of the inputs, however many processes work."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from compactor_cli.batch.jobs import Job, Orders, Sinks, failed, run_job
from compactor_cli.core.errors import CompactError
from compactor_cli.core.report import InputReport, Outcome
from compactor_cli.plan.tokens import counter_for

if TYPE_CHECKING:
    from concurrent.futures import Future

    from compactor_cli.batch.models import ModelRun

# Enough small files a task that handing out costs nothing; measured: tasks of one file cost 66 % more.
CHUNK_FILES = 64
CHUNK_BYTES = 4 << 20
CHUNKS_PER_PROCESS = 4
# Inputs begun ahead of the one whose turn it is, per thread.
AHEAD = 2


class AfterFailure(StrEnum):
    """What a failed input means for those behind it."""

    GO_ON = "go on"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One input done. ``shown`` and ``plans`` hold what could not be given to the sinks: a worker made it."""

    report: InputReport
    shown: str = ""
    plans: bytes = b""


def run_batch(
    jobs: Sequence[Job],
    orders: Orders,
    *,
    processes: int = 1,
    after_failure: AfterFailure = AfterFailure.GO_ON,
    sinks: Sinks | None = None,
) -> Iterator[Done]:
    """Do all jobs; one result per job, in their order.

    In one process the ``sinks`` get what comes up at once, else it is in the results. Closing the iterator, or
    an exception in it, stops the work; an input being worked on stays as it was. With STOP, inputs behind a
    failed one that were not begun are reported as skipped.
    """
    if orders.models and orders.models.threads > 1 and len(jobs) > 1:
        return _in_threads(jobs, orders, orders.models, after_failure)
    processes = 1 if orders.models else min(processes, len(jobs))
    if processes <= 1:
        return _in_order(jobs, orders, sinks or Sinks(), after_failure)
    return _in_processes(jobs, orders, processes, after_failure)


def _in_order(jobs: Sequence[Job], orders: Orders, sinks: Sinks, after_failure: AfterFailure) -> Iterator[Done]:
    stopped = False
    for job in jobs:
        report = _not_reached(job) if stopped else run_job(job, orders, sinks)
        stopped = stopped or _stops(report, after_failure)
        yield Done(report=report)


def _in_threads(jobs: Sequence[Job], orders: Orders, models: ModelRun, after_failure: AfterFailure) -> Iterator[Done]:
    """Threads, since the time goes to waiting for models. A file is begun when one of those before it is written."""
    from concurrent.futures import ThreadPoolExecutor

    work = partial(_chunk, orders=orders, after_failure=after_failure)
    with ThreadPoolExecutor(models.threads, thread_name_prefix="input") as pool:
        waiting: deque[Future[tuple[Done, ...]]] = deque()
        rest = iter(jobs)
        try:
            while waiting or rest:
                for job in islice(rest, AHEAD * models.threads - len(waiting)):
                    waiting.append(pool.submit(work, (job,)))
                if not waiting:
                    return
                (done,) = waiting.popleft().result()
                yield done
                if _stops(done.report, after_failure):
                    break
            yield from _not_begun(waiting, rest)
        finally:
            under_way = [future for future in waiting if not future.cancel() and not future.done()]
            if under_way:
                models.stop()


def _not_begun(waiting: Iterable[Future[tuple[Done, ...]]], rest: Iterable[Job]) -> Iterator[Done]:
    """After a failure that stops the run: what was begun is finished, the rest is not reached."""
    for future in waiting:
        yield from future.result()
    for job in rest:
        yield Done(report=_not_reached(job))


def _in_processes(jobs: Sequence[Job], orders: Orders, processes: int, after_failure: AfterFailure) -> Iterator[Done]:
    from compactor_cli.batch.workers import Workers

    _load_vocabulary(orders)
    stopped = False
    chunks = _chunks(jobs, -(-len(jobs) // (processes * CHUNKS_PER_PROCESS)))
    handed_out: list[int] = [0]

    def tasks() -> Iterator[tuple[Job, ...]]:
        for chunk in chunks:
            if stopped:
                return
            handed_out[0] += len(chunk)
            yield chunk

    work = partial(_chunk, orders=orders, after_failure=after_failure)
    for results in Workers(work, processes, _lost).results(tasks()):
        for done in results:
            stopped = stopped or _stops(done.report, after_failure)
            yield done
    for job in jobs[handed_out[0] :]:
        yield Done(report=_not_reached(job))


def _chunk(jobs: tuple[Job, ...], orders: Orders, after_failure: AfterFailure) -> tuple[Done, ...]:
    """The work of one task, in a worker."""
    results: list[Done] = []
    stopped = False
    for job in jobs:
        shown: list[str] = []
        plans: list[bytes] = []
        sinks = Sinks(show=shown.append, save=plans.append)
        report = _not_reached(job) if stopped else run_job(job, orders, sinks)
        stopped = stopped or _stops(report, after_failure)
        results.append(Done(report=report, shown="".join(shown), plans=b"".join(plans)))
    return tuple(results)


def _lost(jobs: tuple[Job, ...]) -> tuple[Done, ...]:
    """The results of a task whose worker died."""
    error = CompactError("the process that worked on it died", next_step="too little memory? run it alone, with -j 1")
    return tuple(Done(report=failed(job, error)) for job in jobs)


def _chunks(jobs: Iterable[Job], most: int) -> Iterator[tuple[Job, ...]]:
    """Jobs in tasks of at most ``most`` files (never more than 64), large files apart."""
    chunk: list[Job] = []
    size_bytes = 0
    for job in jobs:
        chunk.append(job)
        size_bytes += _size_bytes(job)
        if len(chunk) >= min(most, CHUNK_FILES) or size_bytes >= CHUNK_BYTES:
            yield tuple(chunk)
            chunk, size_bytes = [], 0
    if chunk:
        yield tuple(chunk)


def _size_bytes(job: Job) -> int:
    try:
        return os.stat(job.source.path).st_size  # noqa: PTH116 -- many small files: a Path each costs more than the look
    except OSError:
        return 0


def _load_vocabulary(orders: Orders) -> None:
    """Load it once, before the processes part."""
    counter_for(orders.settings.tokenizer).count("a")


def _not_reached(job: Job) -> InputReport:
    return InputReport(path=job.source.path, outcome=Outcome.SKIPPED, reason="not reached: an input before it failed")


def _stops(report: InputReport, after_failure: AfterFailure) -> bool:
    return after_failure is AfterFailure.STOP and report.exit_code != 0
