"""A run over many inputs: the results come in the order of the inputs, however many processes work.

A cache remembers inputs that needed nothing, so that they are not read again: path, device, inode, size, time of change
and hash of each. Every kind of configuration has a cache file of its own, which may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import nlargest
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from compactor_cli import __version__
from compactor_cli.archive.atomic import write_private
from compactor_cli.model.errors import CompactError, TryLater
from compactor_cli.model.report import BytesRead, Event, InputReport, Listener, Outcome
from compactor_cli.plan.tokens import load_vocabulary
from compactor_cli.plan.trigger import named_window_tokens
from compactor_cli.read.streams import Compression, Look, compression_named, content_sha256, look_at
from compactor_cli.run.jobs import PASSED_OVER, AfterFailure, Job, Outputs, RunConfig, failed, row_dialect, run_job

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelRun


# A task has enough small files that handing it out costs next to nothing. Measured: tasks of one file take 66 % more.
CHUNK_FILES = 64
CHUNK_BYTES = 4 << 20
CHUNKS_PER_PROCESS = 4
MEMORY_PER_BYTE = 12  # bytes of memory for each byte of a session, measured
COMMON_RATIO = 5  # by which compressed text is commonly smaller
AHEAD = 2  # inputs begun ahead of the one whose result is next, per thread


# The result of an input in another process or thread: its report, and the values for the outputs that come before it,
# each with the name of the field of `Outputs`.
_Held = tuple[InputReport, list[tuple[str, Any]]]


def run_batch(
    jobs: Sequence[Job],
    run_config: RunConfig,
    *,
    processes: int = 1,
    outputs: Outputs | None = None,
    seen: UnchangedCache | None = None,
) -> Generator[InputReport, None, None]:
    """Do all jobs; yields one report per job, in their order.

    Several ``processes`` share the inputs, or the rows of a single input. An input worked on in this process passes
    values to the ``outputs`` at once, any other just before its report. Closing the iterator, or an exception in it,
    stops the work; an input being worked on stays as it was. Inputs that were not begun when a failed one stopped the
    run are reported as skipped. Inputs that ``seen`` knows as needing nothing, and that are unchanged, are not read.
    """
    outputs = outputs or Outputs()
    if seen:
        yield from _unseen(jobs, run_config, processes, outputs, seen)
        return
    models = run_config.model_run
    if models and models.threads > 1 and len(jobs) > 1:
        yield from _in_threads(jobs, run_config, models, outputs)
        return
    processes = 1 if models or run_config.review else processes
    sizes = ((job.source.path, _size_bytes(job.source.path)) for job in jobs)
    at_once = affordable(sizes, processes, memory_at_hand()) if processes > 1 < len(jobs) else 1
    if at_once > 1:
        yield from _in_processes(jobs, run_config, at_once, outputs)
        return
    stopped = False
    for job in jobs:
        report = _not_reached(job) if stopped else run_job(job, run_config, outputs, processes)
        stopped = stopped or _stops(report, run_config)
        yield report


def affordable(inputs: Iterable[tuple[str, int]], processes: int, memory_bytes: int) -> int:
    """How many processes, at least 1, can work on these inputs: there is memory for that many of the largest.

    ``inputs`` are paths and sizes. A session is held whole; of a dataset only a few rows are, so that its size does not
    count.
    """
    needed: list[tuple[int, str]] = []
    for path, size_bytes in inputs:
        # Compressed ones are assumed to unpack to `COMMON_RATIO` times their size.
        ratio = 1 if compression_named(path) is Compression.NONE else COMMON_RATIO
        needed.append((MEMORY_PER_BYTE * ratio * size_bytes, path))
    largest = nlargest(processes, needed)
    sizes = [size for size, _ in largest]
    if sum(sizes) > memory_bytes:
        for place, (_, path) in enumerate(largest):
            with suppress(CompactError):
                if row_dialect(path):
                    sizes[place] = 0
        sizes.sort(reverse=True)
    return max(1, sum(total_bytes <= memory_bytes for total_bytes in accumulate(sizes)))


def memory_at_hand() -> int:
    """The bytes of memory that are available on this machine and within its container's limit."""
    found = [sys.maxsize]
    with suppress(OSError, ValueError):
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with suppress(OSError, ValueError, IndexError):
        found.append(int(Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()[0]) << 10)
    return min(found)


def _unseen(
    jobs: Sequence[Job], run_config: RunConfig, processes: int, outputs: Outputs, seen: UnchangedCache
) -> Generator[InputReport, None, None]:
    """Do the jobs that ``seen`` does not dismiss; the reports of the dismissed ones come in their places."""
    reports = [seen.dismissed(job) for job in jobs]
    left = [job for job, report in zip(jobs, reports, strict=True) if report is None]
    results = run_batch(left, run_config, processes=processes, outputs=outputs)
    try:
        for job, report in zip(jobs, reports, strict=True):
            if report is not None:
                yield report
                continue
            done = next(results)
            seen.note(job, done)
            yield done
    finally:
        results.close()
        seen.save()


def _in_threads(
    jobs: Sequence[Job], run_config: RunConfig, models: ModelRun, outputs: Outputs
) -> Generator[InputReport, None, None]:
    """Do the jobs in threads, as the time is spent waiting for models; only a few are begun before they are due."""
    from concurrent.futures import ThreadPoolExecutor

    from compactor_cli.run.model_run import in_order

    work = _holding_work(run_config, outputs, outputs.emit)
    with ThreadPoolExecutor(models.threads, thread_name_prefix="input") as pool:
        results = in_order(pool, work, jobs, AHEAD * models.threads)
        try:
            for held in results:
                yield _passed_on(held, outputs)
        except BaseException:  # nobody waits for the others any more
            results.close()
            models.stop()
            raise


def _in_processes(
    jobs: Sequence[Job], run_config: RunConfig, processes: int, outputs: Outputs
) -> Generator[InputReport, None, None]:
    from compactor_cli.run.workers import Workers

    load_vocabulary(run_config.settings.tokenizer, sum(_size_bytes(job.source.path) for job in jobs))
    stopped = False
    handed_out = 0

    def tasks() -> Iterator[Sequence[Job]]:
        nonlocal handed_out
        for task in _tasks(jobs, processes):
            if stopped:
                return
            handed_out += len(task)
            yield task

    died = CompactError("the process that worked on it died", next_step="too little memory? run it alone, with -j 1")
    workers = Workers(_holding_work(run_config, outputs), processes, lambda job: (failed(job, died), []))
    results = workers.results(tasks())
    try:
        for held in results:
            report = _passed_on(held, outputs)
            stopped = stopped or _stops(report, run_config)
            yield report
    finally:
        results.close()
        if outputs.late:
            for late, _ in workers.late:
                outputs.late(late)
    yield from map(_not_reached, jobs[handed_out:])


def _tasks(jobs: Sequence[Job], processes: int) -> Iterator[Sequence[Job]]:
    """Groups of neighbouring jobs: few enough that all processes get some, and closed by a large file."""
    most = min(-(-len(jobs) // (processes * CHUNKS_PER_PROCESS)), CHUNK_FILES)
    begin = size_bytes = 0
    for number, job in enumerate(jobs, 1):
        size_bytes += _size_bytes(job.source.path)
        if number - begin == most or size_bytes >= CHUNK_BYTES or number == len(jobs):
            yield jobs[begin:number]
            begin, size_bytes = number, 0


def _passed_on(held: _Held, outputs: Outputs) -> InputReport:
    """Pass the held values to the outputs; returns the report."""
    report, values = held
    for name, value in values:
        getattr(outputs, name)(value)
    return report


def _holding_work(run_config: RunConfig, wanted: Outputs, emit: Listener | None = None) -> Callable[[Job], _Held]:
    """A function that does a job in another process or thread and holds what the ``wanted`` outputs are to get.

    ``emit``, if given, gets the events at once; otherwise they are held too, without those of progress.
    """
    stopped = False

    def work(job: Job) -> _Held:
        nonlocal stopped
        held: list[tuple[str, Any]] = []

        def holder(name: str) -> Callable[[Any], object] | None:
            return (lambda value: held.append((name, value))) if getattr(wanted, name) else None

        def hold_event(event: Event) -> None:
            if not isinstance(event, BytesRead):
                held.append(("emit", event))

        outputs = Outputs(
            show=holder("show"),
            save=holder("save"),
            training_rows=holder("training_rows"),
            emit=emit or (hold_event if wanted.emit else None),
        )
        report = _not_reached(job) if stopped else run_job(job, run_config, outputs)
        stopped = stopped or _stops(report, run_config)
        return report, held

    return work


def _size_bytes(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 -- many small files: a Path each costs more than the look
    except OSError:
        return 0


def _not_reached(job: Job) -> InputReport:
    return InputReport(path=job.source.path, outcome=Outcome.SKIPPED, reason="not reached: an input before it failed")


def _stops(report: InputReport, run_config: RunConfig) -> bool:
    return run_config.after_failure is AfterFailure.STOP and report.exit_code not in (0, TryLater.exit_code)


UNCHANGED_REASON = "the same as when it was last looked at"
# A second change within one tick of the file system's clock would not show in the time; ticks are at most this long.
_TICK_SECONDS = 2.0
# Of more inputs than this the oldest entries are dropped; an entry takes about 250 bytes.
_MOST_SEEN = 200_000


_SEEN_TYPES = (int, int, int, int, str, int, int, int)


class _SeenInput(NamedTuple):
    """An input as it was when it needed nothing. The fields are in the order of the values in the file."""

    device: int
    inode: int
    packed_bytes: int  # the size of the file
    mtime_ns: int
    sha256: str  # of its unpacked content; empty for a file without a transcript
    size_bytes: int  # of its unpacked content
    tokens: int
    transcripts: int  # how many it holds; 0: the file was skipped, as it has none

    @property
    def look(self) -> Look:
        return Look(device=self.device, inode=self.inode, size_bytes=self.packed_bytes, mtime_ns=self.mtime_ns)


class UnchangedCache:
    """Dismisses inputs that are as they were, and remembers those found to need nothing; use it for one run.

    Only a file that did not change while it was worked on, and about which nothing had to be reported, gets an entry.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._entries: dict[str, _SeenInput] = {}
        # A cache file that is missing or damaged has no entries.
        with suppress(OSError, ValueError, TypeError, AttributeError):
            for path, values in json.loads(file.read_bytes()).items():
                if tuple(map(type, values)) == _SEEN_TYPES:
                    self._entries[path] = _SeenInput(*values)
        self._looks: dict[str, Look] = {}
        self._changed = False

    def dismissed(self, job: Job) -> InputReport | None:
        """The report of an input that is the same as when it needed nothing; None for any other."""
        path = str(Path(job.source.path).absolute())
        try:
            look = self._looks[path] = look_at(path)
        except CompactError:
            return None
        if (entry := self._entries.get(path)) is None:
            return None
        if entry.look != look:
            # It was touched or replaced, but may hold the same bytes.
            try:
                is_same = look.size_bytes == entry.look.size_bytes and content_sha256(path) == entry.sha256
            except CompactError:
                is_same = False
            if not is_same:
                return None
            self._enter(path, *entry[4:])
        if not entry.transcripts:
            passed_over = InputReport(path=job.source.path, outcome=Outcome.SKIPPED, reason=PASSED_OVER)
            return passed_over if job.source.is_candidate else None
        return InputReport(
            path=job.source.path,
            outcome=Outcome.UNCHANGED,
            reason=UNCHANGED_REASON,
            sha256=entry.sha256,
            counts={Outcome.UNCHANGED.value: entry.transcripts},
            tokens_before=entry.tokens,
            tokens_after=entry.tokens,
            bytes_before=entry.size_bytes,
            bytes_after=entry.size_bytes,
        )

    def note(self, job: Job, report: InputReport) -> None:
        """Take the report of an input that was not dismissed: make its entry, or remove it."""
        path = str(Path(job.source.path).absolute())
        # What a person should see each time gets no entry.
        is_odd = report.exit_code or any(item.warnings or item.over_target for item in report.transcripts)
        if report.outcome is Outcome.UNCHANGED and not is_odd:
            self._enter(path, report.sha256, report.bytes_before, report.tokens_before, sum(report.counts.values()))
        elif report.reason == PASSED_OVER:
            self._enter(path, "", 0, 0, 0)
        elif self._entries.pop(path, None):
            self._changed = True

    def save(self) -> None:
        """Write the entries if any changed. If that fails, the next run reads the inputs again."""
        if not self._changed:
            return
        newest = list(self._entries.items())[-_MOST_SEEN:]
        with suppress(CompactError):
            # ASCII with escapes, since names of files may hold bytes that are not UTF-8.
            write_private(self._file, json.dumps(dict(newest), separators=(",", ":")))

    def _enter(self, path: str, sha256: str, size_bytes: int, tokens: int, transcripts: int) -> None:
        look = self._looks.get(path)
        if look is None or look.age_seconds() < _TICK_SECONDS:
            return
        with suppress(CompactError):
            if look_at(path) == look:
                self._entries.pop(path, None)  # so that it is the newest
                place = (look.device, look.inode, look.size_bytes, look.mtime_ns)
                self._entries[path] = _SeenInput(*place, sha256, size_bytes, tokens, transcripts)
                self._changed = True


def seen_file(cache_folder: Path, run_config: RunConfig, kind: str) -> Path:
    """The cache file for this configuration; configurations that may have different outcomes have different files."""
    models = run_config.models.model_options if run_config.models else ""
    identity = (
        __version__,
        run_config.settings.fingerprint(),
        named_window_tokens(run_config.settings.trigger),
        run_config.dialect,
        run_config.on_invalid,
        kind,
        repr(models),
    )
    return cache_folder / "seen" / f"{hashlib.sha256(repr(identity).encode()).hexdigest()[:16]}.json"
