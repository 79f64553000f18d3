"""Breaker: a server that keeps failing is not asked for a while, in this run and in the next ones."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from compactor_cli.llm.failures import CircuitOpen, Passing

if TYPE_CHECKING:
    import asyncio

FAILURES = 3  # Claude Code's number
COOL_DOWN_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """Of one server. ``opened`` 0: closed. ``probed``: when the last probe was let through. Unix seconds."""

    failures: int = 0
    opened: float = 0.0
    probed: float = 0.0
    reason: str = ""


class Breaker:
    """Counts calls that failed one after another, by server (host and key); for all transcripts of a run.

    A call fails when its last attempt ends in a `Passing` failure; what the server refuses, and a reply that is no
    use, do not count. Closed: everything goes, but until a server has answered in this run, and again after a
    failure, no more calls are under way than failures are left, so that a server which is down is asked
    ``failures`` times however many transcripts wait. After ``failures`` in a row it opens: `admitted` raises. After
    the cool-down one probe is admitted and the others wait for it; if it succeeds the breaker closes, else it stays
    open for another cool-down. ``file`` (in the state folder) carries this to the next run; without it, or if it
    cannot be read or written, the breaker counts for this run alone. A file is never trusted to be whole.
    Belongs to one event loop.
    """

    def __init__(
        self,
        *,
        file: Path | None = None,
        failures: int = FAILURES,
        cool_down_seconds: float = COOL_DOWN_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._failures = failures
        self._cool_down_seconds = cool_down_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._states: dict[str, _State] = {}
        self._under_way: Counter[str] = Counter()
        self._answered: set[str] = set()
        self._stopped: dict[str, str] = {}
        self._probing: set[str] = set()
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def admitted(self, server: str) -> AsyncIterator[None]:
        """One call with its retries; may wait for the outcome of others. Raises `CircuitOpen`."""
        while not self._enter(server):
            await self._next_outcome()
        try:
            yield
        except Passing as failure:
            self._failed(server, failure.reason)
            raise
        else:
            self._succeeded(server)
        finally:
            self._under_way[server] -= 1
            self._probing.discard(server)
            self._wake()

    def check(self, server: str) -> None:
        """Before each further attempt: raises `CircuitOpen` if it opened in this run meanwhile."""
        if reason := self._stopped.get(server):
            raise CircuitOpen(reason)

    def reset(self) -> None:
        """Forget all failures, those of earlier runs too."""
        with self._lock, _locked(self._file) as file:
            self._states.clear()
            if file:
                _write(file, {})

    def _enter(self, server: str) -> bool:
        """Whether a call may go now; if so it is counted as under way. Raises `CircuitOpen`."""
        with self._turned(server) as turn:
            state, now = turn.state, self._clock()
            if not state.opened:
                is_trusted = not state.failures and server in self._answered
                goes = is_trusted or self._under_way[server] < self._failures - state.failures
            elif server in self._probing:
                goes = False
            else:
                # A clock set back must not keep it open for ever.
                if abs(now - max(state.opened, state.probed)) < self._cool_down_seconds:
                    raise CircuitOpen(self._why(server, state))
                turn.state, goes = replace(state, probed=now), True
                self._probing.add(server)
                self._stopped.pop(server, None)
        self._under_way[server] += goes
        return goes

    def _succeeded(self, server: str) -> None:
        self._answered.add(server)
        with self._turned(server) as turn:
            turn.state = _State()
        self._stopped.pop(server, None)

    def _failed(self, server: str, reason: str) -> None:
        with self._turned(server) as turn:
            count = turn.state.failures + 1
            opened = self._clock() if count >= self._failures else 0.0
            turn.state = _State(failures=count, opened=opened, reason=reason)
        if opened:
            self._stopped[server] = self._why(server, turn.state)

    def _why(self, server: str, state: _State) -> str:
        ends = max(state.opened, state.probed) + self._cool_down_seconds
        minutes = max(1, round((ends - self._clock()) / 60))
        return (
            f"{server} failed {state.failures} times in a row (the last: {state.reason}), so it is not asked for"
            f" another {minutes} {'minute' if minutes == 1 else 'minutes'}; --reset-breaker asks it at once"
        )

    async def _next_outcome(self) -> None:
        import asyncio

        self._waiting.append(asyncio.get_running_loop().create_future())
        await self._waiting[-1]

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    @contextmanager
    def _turned(self, server: str) -> Iterator[_Turn]:
        """The state now; what it is set to is kept, also when the block raises."""
        with self._lock, _locked(self._file) as file:
            states = _read(file) if file else {}
            turn = _Turn(_state(states.get(server)) if file else self._states.get(server, _State()))
            before = turn.state
            try:
                yield turn
            finally:
                self._states[server] = turn.state
                if file and turn.state != before:
                    states[server] = asdict(turn.state)
                    _write(file, {name: value for name, value in states.items() if _state(value) != _State()})


class _Turn:
    """A state that is being changed."""

    __slots__ = ("state",)

    def __init__(self, state: _State) -> None:
        self.state = state


@contextmanager
def _locked(path: Path | None) -> Iterator[IO[str] | None]:
    """The file, for this process alone; None if there is none to be had."""
    file = _opened(path) if path else None
    if file is None:
        yield None
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _opened(path: Path) -> IO[str] | None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    return os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace")


def _read(file: IO[str]) -> dict[str, Any]:
    try:
        states = json.loads(file.read() or "{}")
    except ValueError:
        return {}
    return states if isinstance(states, dict) else {}


def _write(file: IO[str], states: dict[str, Any]) -> None:
    try:
        file.seek(0)
        file.truncate()
        file.write(json.dumps(states, indent=1) + "\n")
        file.flush()
    except OSError:  # a full disk: this run knows what it knows
        return


def _state(value: object) -> _State:
    """What a file says of a model; closed if it makes no sense."""
    if not isinstance(value, dict):
        return _State()
    failures, opened, probed, reason = (value.get(name) for name in ("failures", "opened", "probed", "reason"))
    if not isinstance(failures, int) or not isinstance(opened, int | float) or not isinstance(probed, int | float):
        return _State()
    return _State(failures=failures, opened=opened, probed=probed, reason=str(reason or ""))
