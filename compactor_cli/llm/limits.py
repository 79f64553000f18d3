"""Limits of a run, for all its transcripts: how fast it may ask, how often a server may fail, what it may spend."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from compactor_cli.llm.model_calls import Call, CircuitOpen, LimitHeld, LimitReached, Passing, Reply
from compactor_cli.model.value import dataclass

if TYPE_CHECKING:
    import asyncio


WINDOW_SECONDS = 60.0
# How often a waiting request looks at what those before it used: it may be less than was reserved.
_LOOK_SECONDS = 1.0
Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """How fast a run may send requests; 0 per minute: no limit."""

    concurrency: int = 8  # requests under way at once
    requests_per_minute: int = 0
    tokens_per_minute: int = 0


async def sleep_seconds(seconds: float) -> None:
    """asyncio's sleep, imported when it is needed."""
    import asyncio

    await asyncio.sleep(seconds)


class RateLimiter:
    """Lets requests through, first come first served, so that no 60 seconds in a row hold more than the limits allow.

    A request counts with the most tokens that it may use until it is known what it used. One that alone is over the
    tokens of a minute goes when nothing else was sent within the last minute. Belongs to one event loop.
    """

    def __init__(
        self, rate_limits: RateLimits | None = None, *, clock: Clock = time.monotonic, sleep: Sleep = sleep_seconds
    ) -> None:
        import asyncio

        self._rate_limits = rate_limits or RateLimits()
        self._clock = clock
        self._sleep = sleep
        self._places = asyncio.Semaphore(max(1, self._rate_limits.concurrency))
        self._queue = asyncio.Lock()
        self._sent: OrderedDict[int, tuple[float, int]] = OrderedDict()  # time and tokens, by number of the request
        self._tokens = 0  # of the requests in _sent
        self._count = 0  # requests let through so far, which numbers them
        self._paused_until = 0.0

    @asynccontextmanager
    async def acquire(self, tokens: int) -> AsyncIterator[int]:
        """Waits until a request of at most ``tokens`` (prompt and reply) may be sent, within the block.

        The value is the request's number, for `took`.
        """
        async with self._places:
            async with self._queue:  # a lock serves in order, so that a large request is not overtaken for ever
                while (seconds := max(self._paused_until - self._clock(), self._window_seconds(tokens))) > 0:
                    await self._sleep(min(seconds, _LOOK_SECONDS))
                self._count += 1
                number = self._count
                self._sent[number] = self._clock(), tokens
                self._tokens += tokens
            yield number

    def took(self, number: int, tokens: int) -> None:
        """Correct the tokens of the request of this number to what it used."""
        if number in self._sent:
            sent, before = self._sent[number]
            self._sent[number] = sent, tokens
            self._tokens += tokens - before

    def pause(self, seconds: float) -> None:
        """Send nothing for this long: the provider named the time to come back."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def _window_seconds(self, tokens: int) -> float:
        """How long until a request of these tokens fits into the minute before it; 0: it fits now."""
        now = self._clock()
        while self._sent and next(iter(self._sent.values()))[0] <= now - WINDOW_SECONDS:
            self._tokens -= self._sent.popitem(last=False)[1][1]
        rate_limits, count, sum_tokens = self._rate_limits, len(self._sent), self._tokens
        seconds = 0.0
        for sent, its_tokens in self._sent.values():
            too_many = rate_limits.requests_per_minute and count >= rate_limits.requests_per_minute
            too_much = rate_limits.tokens_per_minute and sum_tokens + tokens > rate_limits.tokens_per_minute
            if not (too_many or too_much):
                break
            count, sum_tokens = count - 1, sum_tokens - its_tokens
            seconds = sent + WINDOW_SECONDS - now
        return seconds


FAILURES = 3  # Claude Code's number
COOL_DOWN_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What the breaker knows of one server; times in unix seconds."""

    failures: int = 0  # in a row
    opened: float = 0.0  # 0: closed
    probed: float = 0.0  # when the last probe was let through
    reason: str = ""  # of the last failure


class Breaker:
    """A circuit breaker for all transcripts of a run: it counts the calls that fail in a row by server (host and key).

    A call fails when its last attempt ends in a `Passing` failure; refusals by the server and useless replies do not
    count.

    Closed: calls are admitted. Until a server has answered in this run, and again after a failure, only as many calls
    are under way as failures are left, so that a server which is down is asked ``failures`` times however many
    transcripts wait. Open, after ``failures`` in a row: `admitted` raises. After the cool-down one probe is admitted
    and the others wait for it; if it succeeds the breaker closes, else it stays open for another cool-down.

    ``file`` (in the state folder) carries the counts to the next run; without it, or if it cannot be read or written,
    they hold for this run alone. A file is never trusted to be whole. Belongs to one event loop.
    """

    def __init__(
        self,
        *,
        file: Path | None = None,
        failures: int = FAILURES,
        cool_down_seconds: float = COOL_DOWN_SECONDS,
        clock: Clock = time.time,
    ) -> None:
        self._file = file
        self._failures = failures
        self._cool_down_seconds = cool_down_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._states: dict[str, _State] = {}
        # By server: calls under way; those that answered in this run; why it was opened in this run; those with a probe
        # under way.
        self._under_way: Counter[str] = Counter()
        self._answered: set[str] = set()
        self._stopped: dict[str, str] = {}
        self._probing: set[str] = set()
        self._ended: asyncio.Event | None = None  # set when the next call ends, of any server; None: nobody waits

    @asynccontextmanager
    async def admitted(self, server: str) -> AsyncIterator[None]:
        """Admit one call with its retries, within the block; may wait for other calls first. Raises `CircuitOpen`."""
        while not self._enter(server):
            import asyncio

            self._ended = self._ended or asyncio.Event()
            await self._ended.wait()
        try:
            yield
        except Passing as failure:
            with self._changing(server) as states:
                count = states[server].failures + 1
                opened = self._clock() if count >= self._failures else 0.0
                states[server] = state = _State(failures=count, opened=opened, reason=failure.reason)
            if opened:
                self._stopped[server] = self._why(server, state)
            raise
        else:
            self._answered.add(server)
            with self._changing(server) as states:
                states[server] = _State()
            self._stopped.pop(server, None)
        finally:
            self._under_way[server] -= 1
            self._probing.discard(server)
            if self._ended:
                self._ended.set()
                self._ended = None

    def check(self, server: str) -> None:
        """Before each further attempt: raises `CircuitOpen` if the breaker has opened for the server in this run."""
        if reason := self._stopped.get(server):
            raise CircuitOpen(reason)

    def reset(self) -> None:
        """Forget all failures, those of earlier runs too."""
        with self._lock, _locked(self._file) as file:
            self._states.clear()
            self._stopped.clear()
            if file:
                _write(file, {})

    def _enter(self, server: str) -> bool:
        """Whether a call may start now; if so it is counted as under way. Raises `CircuitOpen`."""
        now = self._clock()
        with self._changing(server) as states:
            state = states[server]
            if not state.opened:
                is_trusted = not state.failures and server in self._answered
                goes = is_trusted or self._under_way[server] < self._failures - state.failures
            elif server in self._probing:
                goes = False
            else:
                # A clock set back must not keep it open for ever.
                if abs(now - max(state.opened, state.probed)) < self._cool_down_seconds:
                    raise CircuitOpen(self._why(server, state))
                states[server], goes = replace(state, probed=now), True
                self._probing.add(server)
                self._stopped.pop(server, None)
        self._under_way[server] += goes
        return goes

    def _why(self, server: str, state: _State) -> str:
        ends = max(state.opened, state.probed) + self._cool_down_seconds
        minutes = max(1, round((ends - self._clock()) / 60))
        return (
            f"{server} failed {state.failures} times in a row (the last: {state.reason}), so it is not asked for"
            f" another {minutes} {'minute' if minutes == 1 else 'minutes'}; --set reset-breaker=true asks it at once"
        )

    @contextmanager
    def _changing(self, server: str) -> Iterator[dict[str, _State]]:
        """The current states by server, this one's among them; a changed state of this one is written to the file."""
        with self._lock, _locked(self._file) as file:
            if file:
                self._states = _read(file)
            before = self._states.setdefault(server, _State())
            yield self._states
            if file and self._states[server] != before:
                _write(file, {name: asdict(state) for name, state in self._states.items() if state != _State()})


@contextmanager
def _locked(path: Path | None) -> Iterator[IO[str] | None]:
    """The file, opened and locked against other processes; None without a path or if it cannot be opened."""
    file: IO[str] | None = None
    with suppress(OSError):
        if path:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            file = os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace")
    with file or nullcontext():
        if file:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _read(file: IO[str]) -> dict[str, _State]:
    """The states in a file; what makes no sense in it is left out, so that its server counts as closed."""
    try:
        states = json.loads(file.read() or "{}")
    except ValueError:
        return {}
    found: dict[str, _State] = {}
    for name, value in (states if isinstance(states, dict) else {}).items():
        known = value if isinstance(value, dict) else {}
        failures, opened, probed, reason = (known.get(key) for key in ("failures", "opened", "probed", "reason"))
        if isinstance(failures, int) and isinstance(opened, int | float) and isinstance(probed, int | float):
            found[name] = _State(failures=failures, opened=opened, probed=probed, reason=str(reason or ""))
    return found


def _write(file: IO[str], states: Mapping[str, Any]) -> None:
    with suppress(OSError):  # a full disk: the states hold for this run alone
        file.seek(0)
        file.truncate()
        file.write(json.dumps(states, indent=1) + "\n")
        file.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendLimits:
    """The most that a run may use; 0: no limit. Retries count like any other request."""

    cost_usd: float = 0.0
    requests: int = 0
    tokens_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a run has used. Input, output and cached tokens are what the provider reported."""

    requests: int = 0  # sent, retries and failures included
    retries: int = 0  # sent again, because a request failed or its reply was refused
    failures: int = 0
    tokens_sent: int = 0  # of prompts; those of failed requests by estimate
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0  # replies whose price is not known; the cost holds what was reserved for them
    cache_hits: int = 0  # answered from the reply cache
    saved_usd: float = 0.0  # what the cached replies cost when they were made


class Charge(StrEnum):
    """Whether a failed request may have to be paid for."""

    NONE = "none"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The most that one request may use, set aside until it is settled."""

    tokens: int
    cost_usd: float


class Spend:
    """The account of a run, shared by all its threads.

    What a request may use is reserved before it is sent and settled after, so the limits hold with any number of
    requests under way. A run never passes ``SpendLimits.cost_usd`` by more than the error of the token estimates.
    """

    def __init__(self, limits: SpendLimits | None = None) -> None:
        self._limits = limits or SpendLimits()
        self._lock = threading.Lock()
        self._spent = Spent()
        self._held: list[Reservation] = []

    @property
    def spent(self) -> Spent:
        """What was used so far."""
        with self._lock:
            return self._spent

    def reserve(self, call: Call) -> Reservation:
        """Set aside what a request may use, and count the request. Raises `LimitReached`; then nothing is counted."""
        tokens = call.expected_input_tokens
        price = call.known_price
        if price is None and self._limits.cost_usd:
            raise LimitReached(f"the price of {call.model} is not known, so a limit on cost cannot be kept")
        cost_usd = price.cost_usd(input_tokens=tokens, output_tokens=call.max_tokens) if price else 0.0
        reservation, limits = Reservation(tokens=tokens, cost_usd=cost_usd), self._limits
        with self._lock:
            spent = self._spent
            if limits.requests and spent.requests + 1 > limits.requests:
                raise LimitReached(f"the limit of {limits.requests} requests is reached")
            tokens_reason = f"the next request would pass the limit of {limits.tokens_sent} tokens sent"
            _keep(limits.tokens_sent, spent.tokens_sent + tokens, sum(one.tokens for one in self._held), tokens_reason)
            cost_reason = f"the next request could pass the limit of {limits.cost_usd:g} USD"
            _keep(limits.cost_usd, spent.cost_usd + cost_usd, sum(one.cost_usd for one in self._held), cost_reason)
            self._held.append(reservation)
            self._count(requests=1, retries=int(call.is_repeat))
        return reservation

    def settle(self, reservation: Reservation, reply: Reply) -> None:
        """Replace the reservation of a request that was answered by what it used."""
        with self._lock:
            self._held.remove(reservation)
            self._count(
                tokens_sent=reply.input_tokens or reservation.tokens,
                input_tokens=reply.input_tokens,
                output_tokens=reply.output_tokens,
                cached_tokens=reply.cached_tokens,
                cost_usd=reservation.cost_usd if reply.cost_usd is None else reply.cost_usd,
                unpriced=int(reply.cost_usd is None),
            )

    def failed(self, reservation: Reservation, charge: Charge = Charge.NONE) -> None:
        """Release the reservation of a failed request: its prompt counts as sent, its cost where it may be charged."""
        with self._lock:
            self._held.remove(reservation)
            cost_usd = reservation.cost_usd if charge is Charge.POSSIBLE else 0.0
            self._count(failures=1, tokens_sent=reservation.tokens, cost_usd=cost_usd)

    def hit(self, reply: Reply) -> None:
        """Count a call that was answered from the reply cache."""
        with self._lock:
            self._count(cache_hits=1, saved_usd=reply.cost_usd or 0.0)

    def _count(self, **more: float) -> None:
        now = {name: getattr(self._spent, name) + amount for name, amount in more.items()}
        self._spent = replace(self._spent, **now)


def _keep(limit: float, amount: float, held: float, reason: str) -> None:
    """Raises `LimitReached` if an amount would pass a limit, `LimitHeld` if only what others hold makes it pass."""
    if limit and amount + held > limit:
        raise (LimitReached if amount > limit else LimitHeld)(reason)
