"""Workers: forked processes that share items; results come back in the order of the items.

They are forked so that they have what the parent has loaded (a vocabulary) at once. Items are handed out in tasks, and
each result is sent as soon as it is there. If a worker dies, only the item that it worked on is lost.
"""

from __future__ import annotations

import contextlib
import gc
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import CompactError, raise_from_handler
from compactor_cli.model.transcript import Container, Record, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import RawLine, RecordReader
from compactor_cli.run.rows import FinishedRow, RowMaker

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess


Item = TypeVar("Item")
Result = TypeVar("Result")

# Tasks that are begun or done beyond the one whose results are next, per worker: bounds the memory.
AHEAD = 4
# How long a stopped worker may take to clean up: it may be in a sync of a slow disk, which nothing interrupts.
STOP_SECONDS = 30.0


@dataclass(slots=True)
class _Task(Generic[Item, Result]):
    """Items that one worker gets together."""

    items: Sequence[Item]
    results: list[Result] = field(default_factory=list)  # those that came so far, in the order of the items
    given: int = 0  # how many of the results were passed on

    @property
    def rest(self) -> Sequence[Item]:
        return self.items[len(self.results) :]


@dataclass(slots=True)
class _Worker(Generic[Item, Result]):
    process: BaseProcess
    connection: Connection
    task: _Task[Item, Result] | None = None  # what it works on; None: it is idle


class Workers(Generic[Item, Result]):
    """Runs ``work`` on items in up to ``processes`` processes, which are started when there is something to do.

    ``lost`` makes the result of an item whose worker died. An exception that ``work`` raises is raised to the reader of
    the results, in the place of the item's result. Use as ``for result in Workers(…).results(tasks)``; leaving the loop
    early, in whatever way, ends the processes after their own clean-up. ``late`` then holds, in order, the results that
    were done but not passed on.
    """

    def __init__(self, work: Callable[[Item], Result], processes: int, lost: Callable[[Item], Result]) -> None:
        self.late: tuple[Result, ...] = ()
        self._work = work
        self._processes = processes
        self._lost = lost
        self._team: list[_Worker[Item, Result]] = []
        self._waiting: deque[_Task[Item, Result]] = deque()
        self._orphaned: deque[_Task[Item, Result]] = deque()

    def results(self, tasks: Iterable[Sequence[Item]]) -> Generator[Result, None, None]:
        """Run the tasks; yields one result per item, in order."""
        rest = iter(tasks)
        try:
            while self._hand_out(rest):
                first = self._waiting[0]
                if first.given == len(first.results):
                    self._collect()
                while first.given < len(first.results):
                    first.given += 1
                    if isinstance(result := first.results[first.given - 1], BaseException):
                        raise result
                    yield result
                if not first.rest:
                    self._waiting.popleft()
        finally:
            self._stop()

    def _hand_out(self, tasks: Iterator[Sequence[Item]]) -> bool:
        """Give tasks to idle workers as far as `AHEAD` allows; returns whether there are results to wait for."""
        while True:
            idle = next((worker for worker in self._team if worker.task is None), None)
            if idle is None and len(self._team) >= self._processes:
                return bool(self._waiting)
            if self._orphaned:  # the rest of a dead worker's task
                task = self._orphaned.popleft()
            else:
                items = next(tasks, None) if len(self._waiting) < AHEAD * self._processes else None
                if not items:
                    return bool(self._waiting)
                task = _Task(items)
                self._waiting.append(task)
            worker = idle or self._new()
            worker.task = task
            # If an idle worker has died, that is noticed when its result is read.
            with contextlib.suppress(BrokenPipeError):
                worker.connection.send(task.rest)

    def _new(self) -> _Worker[Item, Result]:
        import multiprocessing

        # Present objects are exempt from garbage collection: a collection in a worker would copy their pages.
        gc.freeze()
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        others = (*(worker.connection for worker in self._team), ours)
        process = context.Process(target=_serve, args=(self._work, theirs, others), daemon=True)
        process.start()
        theirs.close()
        self._team.append(_Worker(process, ours))
        return self._team[-1]

    def _collect(self) -> None:
        """Wait for at least one result, and take all that are there."""
        from multiprocessing.connection import wait

        busy = {worker.connection: worker for worker in self._team if worker.task}
        for connection in wait(list(busy)):
            worker = busy[connection]  # type: ignore[index]  # wait gives back what it was given
            try:
                self._take(worker)
            except (EOFError, OSError):
                # It died: the item it worked on is lost, those after it go to another worker.
                self._team.remove(worker)
                worker.connection.close()
                if task := worker.task:
                    task.results.append(self._lost(task.rest[0]))
                    if task.rest:
                        self._orphaned.append(task)

    def _take(self, worker: _Worker[Item, Result]) -> None:
        """Receive the next result of a busy worker."""
        result: Any = worker.connection.recv()
        if worker.task:
            worker.task.results.append(result)
            worker.task = worker.task if worker.task.rest else None

    def _stop(self) -> None:
        for worker in self._team:
            if worker.task:
                worker.process.terminate()
        for worker in self._team:
            # Take what a stopped worker had done. An exception means that it is gone and there is nothing more.
            with contextlib.suppress(Exception):
                while worker.task and worker.connection.poll(STOP_SECONDS):
                    self._take(worker)
            worker.connection.close()
        for worker in self._team:
            worker.process.join(STOP_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
        self._team.clear()
        late = [result for task in self._waiting for result in task.results[task.given :]]
        self.late = tuple(result for result in late if not isinstance(result, BaseException))


def _serve(work: Callable[[Item], Result], connection: Connection, others: Iterable[Connection]) -> None:
    """The main function of a worker, which ends when the parent closes its end of the connection, or dies."""
    # The terminal sends Ctrl-C to all processes, but only the parent decides when a worker stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def unwind(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise_from_handler(SystemExit(128 + number))

    signal.signal(signal.SIGTERM, unwind)
    for other in others:
        other.close()
    with contextlib.suppress(EOFError, OSError):
        while True:
            for item in connection.recv():
                try:
                    result: object = work(item)
                except Exception as error:
                    result = error
                connection.send(result)


# A task has enough text that handing it out costs next to nothing, yet is so small that all workers end at about the
# same time.
TASK_BYTES = 256 << 10
TASK_LINES = 256


# The rows of one line, and how many values on it were left out because they are not JSON.
_RowsOfLine = tuple[tuple[FinishedRow, ...], int]


class ParallelRows:
    """The rows of one dataset, made in several processes; results and order are the same as with one process.

    The parent only divides the input into lines; workers parse them. At a line that is not a row (a session, a line
    that is not JSON, whatever fails for the whole input) the parent goes on alone, as a single process would have done
    from the start. ``dialect`` is as in `open_transcripts`.

    A row whose worker dies is passed on as it is, with the reason in its report. Memory is bounded by a few tasks per
    process. The first row is made in the parent, so that the workers have what it loads; if there is no second row, no
    worker is started.
    """

    def __init__(self, records: RecordReader, dialect: str, maker: RowMaker, processes: int) -> None:
        self._records = records
        self._dialect = dialect
        self._maker = maker
        self._processes = processes
        self._held: deque[RawLine] = deque()
        self._last = ""

    def __iter__(self) -> Iterator[FinishedRow]:
        """Make the rows; the input can be read only once."""
        if (opening := self._opening()) is None:
            yield from self._alone()
            return
        yield self._given(self._maker.make(opening))
        died = CompactError("the process that worked on it died", next_step="too little memory? run it with -j 1")

        def lost(line: RawLine) -> _RowsOfLine | None:
            """The rows of the line as they are."""
            return self._made(line, lambda row: self._maker.finished(row, self._maker.passed(row, died)))

        # The result is None for a line that fails or can only be understood together with those around it.
        workers = Workers(lambda line: self._made(line, self._maker.make), self._processes, lost)
        results = workers.results(self._tasks())
        for rows in results:
            if rows is None:
                results.close()
                self._records.put_back(tuple(self._held))
                yield from self._alone()
                return
            self._held.popleft()
            finished, invalid = rows
            self._records.invalid_count += invalid
            yield from map(self._given, finished)

    def _opening(self) -> Transcript | None:
        """The first line as a row; None if it is anything else, and then the line is still to be read."""
        if (first := self._records.take_line()) is None:
            return None
        size_bytes = len(self._records.prefix + first.body + first.ending)
        try:
            opening = next(self._transcripts(first), None)
        except Exception:
            opening = None
        if opening is not None and opening.size_bytes == size_bytes:
            return opening
        self._records.invalid_count = 0
        self._records.put_back((first,))
        return None

    def _alone(self) -> Iterator[FinishedRow]:
        return map(self._maker.make, self._opened(self._records))

    def _given(self, finished: FinishedRow) -> FinishedRow:
        self._last = finished.report.dialect or self._last
        return finished

    def _tasks(self) -> Iterator[list[RawLine]]:
        """Groups of lines, each for one worker.

        While the input has no next line yet, what there is is handed out at once; an empty group means that results
        should be collected before the next line is waited for.
        """
        task: list[RawLine] = []
        size_bytes = 0
        while True:
            while self._held and self._records.is_waiting():
                yield task
                task, size_bytes = [], 0
            if (line := self._records.take_line()) is None:
                break
            self._held.append(line)
            task.append(line)
            size_bytes += len(line.body)
            if size_bytes >= TASK_BYTES or len(task) >= TASK_LINES:
                yield task
                task, size_bytes = [], 0
        if task:
            yield task

    def _made(self, line: RawLine, finish: Callable[[Transcript], FinishedRow]) -> _RowsOfLine | None:
        invalid_before = self._records.invalid_count
        try:
            finished = tuple(map(finish, self._transcripts(line)))
        except Exception:
            return None
        finally:
            invalid, self._records.invalid_count = self._records.invalid_count - invalid_before, invalid_before
        return finished, invalid

    def _transcripts(self, line: RawLine) -> Iterator[Transcript]:
        """The rows of a line. Raises LookupError if it is not made of rows."""
        for transcript in self._opened(self._records.of_lines((line,))):
            if transcript.frame.container is not Container.ARRAY:
                raise LookupError
            yield transcript

    def _opened(self, records: Iterable[Record]) -> Iterator[Transcript]:
        prefix = b"" if self._last else self._records.prefix
        return open_transcripts(
            records,
            dialect=self._dialect,
            prefix=prefix,
            among_rows_of=self._last,
            unread_bytes=self._maker.unread_bytes,
        )
