"""Local gate: the one gate of several worker processes on this machine, in a process of its own.

In a process, not a thread of the parent: a process with threads is not to be forked. Workers talk to it by a socket
that only they know the key of.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli.llm.limits import RateLimits, SpendLimits, Spent
from compactor_cli.llm.model_client import BackgroundEventLoop
from compactor_cli.model.errors import CompactError
from compactor_cli.scale.gate import Gate

if TYPE_CHECKING:
    from multiprocessing.connection import Connection, Listener

_STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAddress:
    """Where the gate listens, and the key to it."""

    path: str
    key: bytes

    @contextmanager
    def connected(self) -> Iterator[GateClient]:
        """A handle for one worker."""
        from multiprocessing.connection import Client

        with Client(self.path, "AF_UNIX", authkey=self.key) as connection:
            client = GateClient(connection)
            try:
                yield client
            finally:
                client.close()

    def spent(self) -> Spent:
        """What all workers have used so far."""
        with self.connected() as gate:
            found: Spent = wait(gate.spent.remote())
            return found


@contextmanager
def local_gate(rate_limits: RateLimits, limits: SpendLimits) -> Iterator[GateAddress]:
    """A gate for the time of the block."""
    import multiprocessing
    from multiprocessing.connection import Listener

    key = os.urandom(16)
    with tempfile.TemporaryDirectory(prefix="compact-") as folder:
        path = str(Path(folder, "gate"))
        # Closed only at the end: closing takes its name away.
        with Listener(path, "AF_UNIX", backlog=128, authkey=key) as listener:
            context = multiprocessing.get_context("fork")
            process = context.Process(target=_serve, args=(listener, Gate(rate_limits, limits)), daemon=True)
            process.start()
            try:
                yield GateAddress(path=path, key=key)
            finally:
                process.terminate()
                process.join(_STOP_SECONDS)


def _serve(listener: Listener, gate: Gate) -> None:
    """The life of the gate's process; the parent ends it."""
    # The terminal sends Ctrl-C to all; the parent decides when the gate goes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    loop = BackgroundEventLoop()
    while True:
        with contextlib.suppress(OSError, EOFError):  # a worker that died while it knocked
            connection = listener.accept()
            threading.Thread(target=_answer, args=(connection, gate, loop), daemon=True).start()


def _answer(connection: Connection, gate: Gate, loop: BackgroundEventLoop) -> None:
    """One worker's questions: each is answered when its answer is there, whatever the others wait for."""
    sending = threading.Lock()

    async def answered(number: int, name: str, arguments: tuple[Any, ...]) -> None:
        answer = await getattr(gate, name)(*arguments)
        with sending, contextlib.suppress(OSError):
            connection.send((number, answer))

    with contextlib.suppress(OSError, EOFError):
        while True:
            loop.start(answered(*connection.recv()))


class GateAnswer(Future[Any]):
    """What the gate will say; may be awaited on any event loop."""

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio

        return asyncio.wrap_future(self).__await__()


def wait(answer: GateAnswer) -> Any:
    """The answer itself."""
    return answer.result()


class GateClient:
    """The gate as `SharedPace` and `SharedSpend` want it: ``client.turn.remote(100)``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._open: dict[int, GateAnswer] = {}
        self._count = 0
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def close(self) -> None:
        """Say nothing more; both sides see the end."""
        import socket

        with socket.socket(fileno=os.dup(self._connection.fileno())) as end, contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        self._listener.join(_STOP_SECONDS)

    def __getattr__(self, name: str) -> _Method:
        return _Method(self, name)

    def ask(self, name: str, arguments: tuple[Any, ...]) -> GateAnswer:
        """Send a question."""
        answer = GateAnswer()
        with self._lock:
            self._count += 1
            self._open[self._count] = answer
            self._connection.send((self._count, name, arguments))
        return answer

    def _listen(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                number, value = self._connection.recv()
                self._open.pop(number).set_result(value)
        for answer in list(self._open.values()):
            answer.set_exception(CompactError("the process that keeps the rate limit is gone", next_step="run again"))


@dataclass(frozen=True, slots=True)
class _Method:
    client: GateClient
    name: str

    def remote(self, *arguments: Any) -> GateAnswer:
        """Ask; the answer is to be awaited, or waited for."""
        return self.client.ask(self.name, arguments)
