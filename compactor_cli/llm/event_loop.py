"""Loop: one event loop in a thread of its own, for coroutines that many threads wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

T = TypeVar("T")
CLOSE_SECONDS = 5.0


class BackgroundEventLoop:
    """Runs coroutines for the threads of this process; started by the first of them.

    Use as ``with BackgroundEventLoop(...) as loop``. On leaving, what is still running is cancelled and waited for,
    then
    ``at_end`` (a coroutine function) runs on the loop. Not to be used across a fork.
    """

    def __init__(self, at_end: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        self._at_end = at_end
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``; what it raises is raised here.

        An interrupt (Ctrl-C, a signal that raises) while waiting cancels the work. After `close`: RuntimeError.
        """
        import asyncio

        tasks: list[asyncio.Task[Any]] = []
        interrupted = False

        async def watched() -> T:
            tasks.extend(filter(None, (asyncio.current_task(),)))
            if interrupted:
                raise asyncio.CancelledError
            return await work

        try:
            return self.start(watched()).result()
        except BaseException:
            # The interrupt may come before the caller holds anything of the work: it is cancelled by its own task.
            interrupted = True
            if not tasks:
                work.close()  # never begun, or about to be, and then ended at once
            with suppress(RuntimeError):  # the loop is closed: what ran on it was cancelled then
                for task in tasks:
                    task.get_loop().call_soon_threadsafe(task.cancel)
            raise

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin ``work`` and do not wait for it. After `close`: RuntimeError."""
        try:
            return self._started().start_task_soon(lambda: work)
        except RuntimeError:
            work.close()
            raise

    def close(self) -> None:
        """Cancel what runs, wait for its clean-up, end the thread. Further calls do nothing."""
        with self._lock:
            self._closed = True
            portal, thread, self._portal, self._thread = self._portal, self._thread, None, None
        if portal is None or thread is None:
            return
        # All of these threads are daemons: clean-up that hangs, or a loop that is busy, keeps no process alive.
        threading.Thread(target=portal.call, args=(portal.stop, True), daemon=True).start()
        thread.join(CLOSE_SECONDS)

    def _started(self) -> BlockingPortal:
        import anyio

        with self._lock:
            if self._closed:
                raise RuntimeError("the loop is closed")
            if self._portal is None:
                ready: Future[BlockingPortal] = Future()
                work = (self._serve, ready)
                self._thread = threading.Thread(target=anyio.run, args=work, name="model calls", daemon=True)
                self._thread.start()
                self._portal = ready.result()
            return self._portal

    async def _serve(self, ready: Future[BlockingPortal]) -> None:
        """The life of the loop."""
        from anyio.from_thread import BlockingPortal

        async with BlockingPortal() as portal:
            ready.set_result(portal)
            await portal.sleep_until_stopped()
        if self._at_end:
            await self._at_end()
