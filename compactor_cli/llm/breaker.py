"""Breaker: after several failures in a row no model is called for a while, in this run and in the next ones."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from compactor_cli.llm.failures import CircuitOpen

FAILURES = 3  # Claude Code's number
COOL_DOWN_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """Of one model. ``opened`` 0: closed. ``probed``: when the last probe was let through."""

    failures: int = 0
    opened: float = 0.0
    probed: float = 0.0
    reason: str = ""


class Breaker:
    """Counts summaries that failed, one after another, over all transcripts and threads of a run.

    Closed: everything goes. After ``failures`` in a row it opens: `admit` raises. After the cool-down one probe is
    admitted; if it succeeds the breaker closes, else it stays open for another cool-down. ``file`` (in the state
    folder) carries this to the next run, for the model ``name``; without it, or if it cannot be read or
    written, the breaker counts for this run alone. A file is never trusted to be whole.
    """

    def __init__(
        self,
        name: str,
        *,
        file: Path | None = None,
        failures: int = FAILURES,
        cool_down_seconds: float = COOL_DOWN_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self._file = file
        self._failures = failures
        self._cool_down_seconds = cool_down_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._state = _State()
        self._stopped = ""

    def admit(self) -> None:
        """Before the first call for a transcript. Raises `CircuitOpen`."""
        with self._turned() as turn:
            state, now = turn.state, self._clock()
            if not state.opened:
                return
            # A clock set back must not keep it open for ever.
            if abs(now - max(state.opened, state.probed)) < self._cool_down_seconds:
                raise CircuitOpen(self._why(state))
            turn.state = replace(state, probed=now)
            self._stopped = ""

    def check(self) -> None:
        """Before each further call: raises `CircuitOpen` if it opened in this run meanwhile."""
        if self._stopped:
            raise CircuitOpen(self._stopped)

    def succeeded(self) -> None:
        """A summary was made."""
        with self._turned() as turn:
            turn.state = _State()
            self._stopped = ""

    def failed(self, reason: str) -> None:
        """A summary could not be had from the model. A limit of the user's own is no failure."""
        with self._turned() as turn:
            count = turn.state.failures + 1
            opened = self._clock() if count >= self._failures else 0.0
            turn.state = _State(failures=count, opened=opened, reason=reason)
            self._stopped = self._why(turn.state) if opened else ""

    def _why(self, state: _State) -> str:
        return f"{state.failures} failures in a row, so {self._name} is not called for now (the last: {state.reason})"

    @contextmanager
    def _turned(self) -> Iterator[_Turn]:
        """The state now; what it is set to is kept, also when the block raises."""
        with self._lock, _locked(self._file) as file:
            states = _read(file) if file else {}
            turn = _Turn(_state(states.get(self._name)) if file else self._state)
            before = turn.state
            try:
                yield turn
            finally:
                self._state = turn.state
                if file and turn.state != before:
                    states[self._name] = asdict(turn.state)
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
