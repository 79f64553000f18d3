"""Loop: one event loop in a thread of its own, for coroutines that many threads wait for."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
CLOSE_SECONDS = 5.0


class Loop:
    """Runs coroutines for the threads of this process; started by the first of them.

    Use as ``with Loop(...) as loop``. On leaving, what is still running is cancelled and waited for, then
    ``at_end`` (a coroutine function) runs on the loop. Not to be used across a fork.
    """

    def __init__(self, at_end: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        self._at_end = at_end
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
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

        try:
            future = asyncio.run_coroutine_threadsafe(work, self._started())
        except RuntimeError:
            work.close()
            raise
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin ``work`` and do not wait for it. After `close`: RuntimeError."""
        import asyncio

        asyncio.run_coroutine_threadsafe(work, self._started())

    def close(self) -> None:
        """Cancel what runs, wait for its clean-up, end the thread. Further calls do nothing."""
        import asyncio

        with self._lock:
            self._closed = True
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        # A second interrupt, or clean-up that hangs, does not keep the process alive: the thread is a daemon.
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._finish(), loop).result(CLOSE_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_SECONDS)
        if not thread.is_alive():
            loop.close()

    async def _finish(self) -> None:
        import asyncio

        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._at_end:
            await self._at_end()

    def _started(self) -> asyncio.AbstractEventLoop:
        import asyncio

        with self._lock:
            if self._closed:
                raise RuntimeError("the loop is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="model calls", daemon=True)
                self._thread.start()
            return self._loop
