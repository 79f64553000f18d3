"""Workers: forked processes that share tasks; results come back in the order of the tasks.

Forked, so that what the parent has loaded (a vocabulary) is there at once. A worker that dies costs the
task it had, and nothing else.
"""

from __future__ import annotations

import contextlib
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Task = TypeVar("Task")
Result = TypeVar("Result")

# Tasks begun or finished ahead of the one whose result is waited for, per worker: bounds what is held.
AHEAD = 4
STOP_SECONDS = 5.0


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    task: int = -1  # the task it has; -1: none


class Workers(Generic[Task, Result]):
    """Runs ``work`` on tasks in ``processes`` processes, which are started when there is something to do.

    ``lost`` makes the result of a task whose worker died. An exception that ``work`` lets through is
    raised to the reader of the results. Use as ``for result in Workers(…).results(tasks)``; leaving the
    loop early, by whatever way, ends the processes after their own clean-up.
    """

    def __init__(self, work: Callable[[Task], Result], processes: int, lost: Callable[[Task], Result]) -> None:
        self._work = work
        self._processes = processes
        self._lost = lost
        self._team: list[_Worker] = []
        self._held: dict[int, Task] = {}
        self._done: dict[int, Result] = {}

    def results(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """One result per task, in order."""
        numbered = enumerate(tasks)
        waiting: deque[int] = deque()
        try:
            while self._hand_out(numbered, waiting):
                if waiting[0] not in self._done:
                    self._collect()
                while waiting and waiting[0] in self._done:
                    yield self._done.pop(waiting.popleft())
        finally:
            self._stop()

    def _hand_out(self, tasks: Iterator[tuple[int, Task]], waiting: deque[int]) -> bool:
        """Give tasks to idle workers as far as the window allows; whether results are to come."""
        while len(waiting) < AHEAD * self._processes and (worker := self._idle()):
            number, task = next(tasks, (-1, None))
            if task is None:
                break
            waiting.append(number)
            self._held[number], worker.task = task, number
            # A worker that died idle is found out when its result is received.
            with contextlib.suppress(BrokenPipeError):
                worker.connection.send(task)
        return bool(waiting)

    def _idle(self) -> _Worker | None:
        worker = next((worker for worker in self._team if worker.task < 0), None)
        if worker is None and len(self._team) < self._processes:
            worker = self._start()
        return worker

    def _start(self) -> _Worker:
        import multiprocessing

        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        others = (*(worker.connection for worker in self._team), ours)
        process = context.Process(target=_serve, args=(self._work, theirs, others), daemon=True)
        process.start()
        theirs.close()
        self._team.append(_Worker(process, ours))
        return self._team[-1]

    def _collect(self) -> None:
        """Wait for at least one result, if any is to come."""
        from multiprocessing.connection import wait

        busy = {worker.connection: worker for worker in self._team if worker.task >= 0}
        for connection in wait(list(busy)) if busy else ():
            self._receive(busy[connection])  # type: ignore[index]  # wait gives back what it was given

    def _receive(self, worker: _Worker) -> None:
        number, worker.task = worker.task, -1
        task = self._held.pop(number)
        try:
            result: Any = worker.connection.recv()
        except (EOFError, OSError):
            self._team.remove(worker)
            worker.connection.close()
            self._done[number] = self._lost(task)
            return
        if isinstance(result, BaseException):
            raise result
        self._done[number] = result

    def _stop(self) -> None:
        for worker in self._team:
            worker.connection.close()
            if worker.task >= 0:
                worker.process.terminate()
        for worker in self._team:
            worker.process.join(STOP_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
        self._team.clear()


def _serve(work: Callable[[Task], Result], connection: Connection, others: Iterable[Connection]) -> None:
    """A worker's life. It ends when the parent closes its end, on purpose or by dying."""
    # The terminal sends Ctrl-C to all; the parent decides when a worker stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _unwind)
    for other in others:
        other.close()
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        try:
            result: object = work(task)
        except Exception as error:
            result = error
        connection.send(result)


def _unwind(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)
