"""A run over many inputs: results in the order of the inputs, however many processes work."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from compactor_cli.model.errors import CompactError, TryLater
from compactor_cli.model.events import Event, Listener, without_progress
from compactor_cli.model.report import InputReport, Outcome
from compactor_cli.plan.fast import AMOUNT
from compactor_cli.plan.tokens import counter_for
from compactor_cli.run.jobs import Job, Orders, Sinks, failed, run_job

if TYPE_CHECKING:
    from concurrent.futures import Future

    from compactor_cli.run.models import ModelRun
    from compactor_cli.run.seen import Seen

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
    """One input done. The others hold what could not be given to the sinks: a worker made it."""

    report: InputReport
    shown: str = ""
    plans: bytes = b""
    examples: bytes = b""
    events: tuple[Event, ...] = ()

    def give(self, sinks: Sinks) -> None:
        """To the sinks what came up in another process or thread."""
        if sinks.show and self.shown:
            sinks.show(self.shown)
        if sinks.save and self.plans:
            sinks.save(self.plans)
        if sinks.teach and self.examples:
            sinks.teach(self.examples)


def run_batch(
    jobs: Sequence[Job],
    orders: Orders,
    *,
    processes: int = 1,
    after_failure: AfterFailure = AfterFailure.GO_ON,
    sinks: Sinks | None = None,
    seen: Seen | None = None,
) -> Generator[Done, None, None]:
    """Do all jobs; one result per job, in their order.

    Several ``processes`` share the inputs, or the rows of one input. Where one works on an input alone, the ``sinks``
    get what comes up at once, else it is in the results. Closing the iterator, or an exception in it, stops the work;
    an input being worked on stays as it was. With STOP, inputs behind a failed one that were not begun are
    reported as skipped. Inputs that were ``seen`` in need of nothing, and are as they were, are not read.
    """
    given = sinks or Sinks()
    if seen:
        return _unseen(jobs, orders, processes, after_failure, given, seen)
    if orders.models and orders.models.threads > 1 and len(jobs) > 1:
        return _in_threads(jobs, orders, orders.models, given, after_failure)
    processes = 1 if orders.models or orders.review else processes
    if processes <= 1 or len(jobs) <= 1:
        return _in_order(jobs, orders, given, after_failure, processes)
    return _in_processes(jobs, orders, min(processes, len(jobs)), given, after_failure)


def _unseen(
    jobs: Sequence[Job], orders: Orders, processes: int, after_failure: AfterFailure, sinks: Sinks, seen: Seen
) -> Generator[Done, None, None]:
    """What is as it was is dismissed before anything is begun, and reported in its place."""
    reports = [seen.dismissed(job) for job in jobs]
    left = [job for job, report in zip(jobs, reports, strict=True) if report is None]
    results = run_batch(left, orders, processes=processes, after_failure=after_failure, sinks=sinks)
    try:
        for job, report in zip(jobs, reports, strict=True):
            if report is not None:
                yield Done(report=report)
                continue
            done = next(results)
            seen.note(job, done.report)
            yield done
    finally:
        results.close()
        seen.save()


def _in_order(
    jobs: Sequence[Job], orders: Orders, sinks: Sinks, after_failure: AfterFailure, processes: int
) -> Generator[Done, None, None]:
    stopped = False
    for job in jobs:
        report = _not_reached(job) if stopped else run_job(job, orders, sinks, processes)
        stopped = stopped or _stops(report, after_failure)
        yield Done(report=report)


def _in_threads(
    jobs: Sequence[Job], orders: Orders, models: ModelRun, sinks: Sinks, after_failure: AfterFailure
) -> Generator[Done, None, None]:
    """Threads, since the time goes to waiting for models. A file is begun when one of those before it is written."""
    from concurrent.futures import ThreadPoolExecutor

    work = _Apart(orders, sinks, after_failure, sinks.tell)
    with ThreadPoolExecutor(models.threads, thread_name_prefix="input") as pool:
        waiting: deque[Future[Done]] = deque()
        rest = iter(jobs)
        try:
            while waiting or rest:
                for job in islice(rest, AHEAD * models.threads - len(waiting)):
                    waiting.append(pool.submit(work, job))
                if not waiting:
                    return
                done = waiting.popleft().result()
                yield done
                if _stops(done.report, after_failure):
                    break
            yield from _not_begun(waiting, rest)
        finally:
            under_way = [future for future in waiting if not future.cancel() and not future.done()]
            if under_way:
                models.stop()


def _not_begun(waiting: Iterable[Future[Done]], rest: Iterable[Job]) -> Iterator[Done]:
    """After a failure that stops the run: what was begun is finished, the rest is not reached."""
    for future in waiting:
        yield future.result()
    for job in rest:
        yield Done(report=_not_reached(job))


def _in_processes(
    jobs: Sequence[Job], orders: Orders, processes: int, sinks: Sinks, after_failure: AfterFailure
) -> Generator[Done, None, None]:
    from compactor_cli.run.workers import Workers

    _load_vocabulary(jobs, orders)
    stopped = False
    chunks = _chunks(jobs, -(-len(jobs) // (processes * CHUNKS_PER_PROCESS)))
    handed_out: list[int] = [0]

    def tasks() -> Iterator[tuple[Job, ...]]:
        for chunk in chunks:
            if stopped:
                return
            handed_out[0] += len(chunk)
            yield chunk

    workers = Workers(_Apart(orders, sinks, after_failure), processes, _lost)
    results = workers.results(tasks())
    try:
        for done in results:
            stopped = stopped or _stops(done.report, after_failure)
            yield done
    finally:
        results.close()
        if sinks.late:
            for done in workers.late:
                sinks.late(done.report)
    for job in jobs[handed_out[0] :]:
        yield Done(report=_not_reached(job))


class _Apart:
    """The work on an input in another process or thread, whose sinks are the results.

    ``tell``: who hears events at once, of a thread.
    """

    def __init__(
        self, orders: Orders, wanted: Sinks, after_failure: AfterFailure, tell: Listener | None = None
    ) -> None:
        self._orders = orders
        self._wanted = wanted
        self._after_failure = after_failure
        self._tell = tell
        self._stopped = False

    def __call__(self, job: Job) -> Done:
        shown: list[str] = []
        plans: list[bytes] = []
        examples: list[bytes] = []
        events: list[Event] = []
        sinks = Sinks(
            show=shown.append if self._wanted.show else None,
            save=plans.append if self._wanted.save else None,
            teach=examples.append if self._wanted.teach else None,
            tell=self._tell or (without_progress(events.append) if self._wanted.tell else None),
        )
        report = _not_reached(job) if self._stopped else run_job(job, self._orders, sinks)
        self._stopped = self._stopped or _stops(report, self._after_failure)
        return Done(
            report=report,
            shown="".join(shown),
            plans=b"".join(plans),
            examples=b"".join(examples),
            events=tuple(events),
        )


def _lost(job: Job) -> Done:
    """The result of an input whose worker died."""
    error = CompactError("the process that worked on it died", next_step="too little memory? run it alone, with -j 1")
    return Done(report=failed(job, error))


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


def _load_vocabulary(jobs: Sequence[Job], orders: Orders) -> None:
    """Load it once, before the processes part."""
    AMOUNT.expect(sum(map(_size_bytes, jobs)))
    counter_for(orders.settings.tokenizer).count("a")


def _not_reached(job: Job) -> InputReport:
    return InputReport(path=job.source.path, outcome=Outcome.SKIPPED, reason="not reached: an input before it failed")


def _stops(report: InputReport, after_failure: AfterFailure) -> bool:
    return after_failure is AfterFailure.STOP and report.exit_code not in (0, TryLater.exit_code)
