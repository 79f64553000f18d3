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
from compactor_cli.model.report import Event, InputReport, Listener, Outcome, without_progress
from compactor_cli.plan.tokens import load_vocabulary
from compactor_cli.run.jobs import Job, Outputs, RunConfig, failed, run_job

if TYPE_CHECKING:
    from concurrent.futures import Future

    from compactor_cli.run.model_run import ModelRun
    from compactor_cli.run.resume import UnchangedCache

# Enough small files a task that handing out costs nothing; measured: tasks of one file cost 66 % more.
CHUNK_FILES = 64
CHUNK_BYTES = 4 << 20
CHUNKS_PER_PROCESS = 4
# Inputs begun ahead of the one whose turn it is, per thread.
AHEAD = 2


class AfterFailure(StrEnum):
    """What a failed input means for those after it."""

    GO_ON = "go on"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputResult:
    """One input done. The others hold what could not be given to the sinks: a worker made it."""

    report: InputReport
    shown: str = ""
    plans: bytes = b""
    examples: bytes = b""
    events: tuple[Event, ...] = ()

    def give(self, outputs: Outputs) -> None:
        """To the sinks what came up in another process or thread."""
        if outputs.show and self.shown:
            outputs.show(self.shown)
        if outputs.save and self.plans:
            outputs.save(self.plans)
        if outputs.training_rows and self.examples:
            outputs.training_rows(self.examples)


def run_batch(
    jobs: Sequence[Job],
    run_config: RunConfig,
    *,
    processes: int = 1,
    after_failure: AfterFailure = AfterFailure.GO_ON,
    outputs: Outputs | None = None,
    seen: UnchangedCache | None = None,
) -> Generator[InputResult, None, None]:
    """Do all jobs; one result per job, in their order.

    Several ``processes`` share the inputs, or the rows of one input. Where one works on an input alone, the ``outputs``
    get what comes up at once, else it is in the results. Closing the iterator, or an exception in it, stops the work;
    an input being worked on stays as it was. With STOP, inputs after a failed one that were not begun are
    reported as skipped. Inputs that were ``seen`` in need of nothing, and are as they were, are not read.
    """
    given = outputs or Outputs()
    if seen:
        return _unseen(jobs, run_config, processes, after_failure, given, seen)
    if run_config.models and run_config.models.threads > 1 and len(jobs) > 1:
        return _in_threads(jobs, run_config, run_config.models, given, after_failure)
    processes = 1 if run_config.models or run_config.review else processes
    if processes <= 1 or len(jobs) <= 1:
        return _in_order(jobs, run_config, given, after_failure, processes)
    return _in_processes(jobs, run_config, min(processes, len(jobs)), given, after_failure)


def _unseen(
    jobs: Sequence[Job],
    run_config: RunConfig,
    processes: int,
    after_failure: AfterFailure,
    outputs: Outputs,
    seen: UnchangedCache,
) -> Generator[InputResult, None, None]:
    """What is as it was is dismissed before anything is begun, and reported in its place."""
    reports = [seen.dismissed(job) for job in jobs]
    left = [job for job, report in zip(jobs, reports, strict=True) if report is None]
    results = run_batch(left, run_config, processes=processes, after_failure=after_failure, outputs=outputs)
    try:
        for job, report in zip(jobs, reports, strict=True):
            if report is not None:
                yield InputResult(report=report)
                continue
            done = next(results)
            seen.note(job, done.report)
            yield done
    finally:
        results.close()
        seen.save()


def _in_order(
    jobs: Sequence[Job], run_config: RunConfig, outputs: Outputs, after_failure: AfterFailure, processes: int
) -> Generator[InputResult, None, None]:
    stopped = False
    for job in jobs:
        report = _not_reached(job) if stopped else run_job(job, run_config, outputs, processes)
        stopped = stopped or _stops(report, after_failure)
        yield InputResult(report=report)


def _in_threads(
    jobs: Sequence[Job], run_config: RunConfig, models: ModelRun, outputs: Outputs, after_failure: AfterFailure
) -> Generator[InputResult, None, None]:
    """Threads, since the time goes to waiting for models. A file is begun when one of those before it is written."""
    from concurrent.futures import ThreadPoolExecutor

    work = _Apart(run_config, outputs, after_failure, outputs.emit)
    with ThreadPoolExecutor(models.threads, thread_name_prefix="input") as pool:
        waiting: deque[Future[InputResult]] = deque()
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


def _not_begun(waiting: Iterable[Future[InputResult]], rest: Iterable[Job]) -> Iterator[InputResult]:
    """After a failure that stops the run: what was begun is finished, the rest is not reached."""
    for future in waiting:
        yield future.result()
    for job in rest:
        yield InputResult(report=_not_reached(job))


def _in_processes(
    jobs: Sequence[Job], run_config: RunConfig, processes: int, outputs: Outputs, after_failure: AfterFailure
) -> Generator[InputResult, None, None]:
    from compactor_cli.run.workers import Workers

    load_vocabulary(run_config.settings.tokenizer, sum(map(_size_bytes, jobs)))
    stopped = False
    chunks = _chunks(jobs, -(-len(jobs) // (processes * CHUNKS_PER_PROCESS)))
    handed_out: list[int] = [0]

    def tasks() -> Iterator[tuple[Job, ...]]:
        for chunk in chunks:
            if stopped:
                return
            handed_out[0] += len(chunk)
            yield chunk

    workers = Workers(_Apart(run_config, outputs, after_failure), processes, _lost)
    results = workers.results(tasks())
    try:
        for done in results:
            stopped = stopped or _stops(done.report, after_failure)
            yield done
    finally:
        results.close()
        if outputs.late:
            for done in workers.late:
                outputs.late(done.report)
    for job in jobs[handed_out[0] :]:
        yield InputResult(report=_not_reached(job))


class _Apart:
    """The work on an input in another process or thread, whose sinks are the results.

    ``emit``: who hears events at once, of a thread.
    """

    def __init__(
        self, run_config: RunConfig, wanted: Outputs, after_failure: AfterFailure, emit: Listener | None = None
    ) -> None:
        self._run_config = run_config
        self._wanted = wanted
        self._after_failure = after_failure
        self._emit = emit
        self._stopped = False

    def __call__(self, job: Job) -> InputResult:
        shown: list[str] = []
        plans: list[bytes] = []
        examples: list[bytes] = []
        events: list[Event] = []
        outputs = Outputs(
            show=shown.append if self._wanted.show else None,
            save=plans.append if self._wanted.save else None,
            training_rows=examples.append if self._wanted.training_rows else None,
            emit=self._emit or (without_progress(events.append) if self._wanted.emit else None),
        )
        report = _not_reached(job) if self._stopped else run_job(job, self._run_config, outputs)
        self._stopped = self._stopped or _stops(report, self._after_failure)
        return InputResult(
            report=report,
            shown="".join(shown),
            plans=b"".join(plans),
            examples=b"".join(examples),
            events=tuple(events),
        )


def _lost(job: Job) -> InputResult:
    """The result of an input whose worker died."""
    error = CompactError("the process that worked on it died", next_step="too little memory? run it alone, with -j 1")
    return InputResult(report=failed(job, error))


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


def _not_reached(job: Job) -> InputReport:
    return InputReport(path=job.source.path, outcome=Outcome.SKIPPED, reason="not reached: an input before it failed")


def _stops(report: InputReport, after_failure: AfterFailure) -> bool:
    return after_failure is AfterFailure.STOP and report.exit_code not in (0, TryLater.exit_code)
