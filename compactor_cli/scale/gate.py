"""Gate: one rate limit and one account for all workers of a cluster.

The gate itself is a plain object that lives in one process (an actor of the engine). What a worker has of it keeps
the interfaces of `RateLimiter` and `Spend`, so that its line to the models knows nothing of clusters.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from compactor_cli.llm.limits import Charge, RateLimiter, RateLimits, Reservation, Spend, SpendLimits, Spent, Try
from compactor_cli.llm.model_calls import NO_SECRET, Call, LimitReached, Reply

_NO_LIMIT = 1 << 20


class Gate:
    """Hands out turns at the tempo of the cluster, and sets aside money within its limits."""

    def __init__(self, rate_limits: RateLimits, limits: SpendLimits, rate_limiter: RateLimiter | None = None) -> None:
        self._rate_limiter = rate_limiter or RateLimiter(replace(rate_limits, concurrency=_NO_LIMIT))
        self._spend = Spend(limits)

    async def turn(self, tokens: int) -> None:
        """Returns when a request of this many tokens may be sent."""
        async with self._rate_limiter.turn(tokens):
            return

    async def pause(self, seconds: float) -> None:
        """Nobody sends anything for so long."""
        self._rate_limiter.pause(seconds)

    async def reserve(self, call: Call, which: Try) -> Reservation | str:
        """As `Spend.reserve`; the reason, where a limit is reached: exceptions do not travel well."""
        try:
            return self._spend.reserve(call, which)
        except LimitReached as reached:
            return reached.reason

    async def settle(self, reservation: Reservation, reply: Reply) -> None:
        """As `Spend.settle`."""
        self._spend.settle(reservation, reply)

    async def failed(self, reservation: Reservation, charge: Charge) -> None:
        """As `Spend.failed`."""
        self._spend.failed(reservation, charge)

    async def hit(self, reply: Reply) -> None:
        """As `Spend.hit`."""
        self._spend.hit(reply)

    async def spent(self) -> Spent:
        """What all workers have used so far."""
        return self._spend.spent


class SharedRateLimiter(RateLimiter):
    """A worker's pace: its own places, and the gate's turns. ``gate``: a handle whose methods give awaitables."""

    def __init__(self, rate_limits: RateLimits, gate: Any) -> None:
        super().__init__(RateLimits(concurrency=rate_limits.concurrency))
        self._gate = gate

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[None]:
        """One request, when both allow it."""
        async with super().turn(tokens):
            await self._gate.turn.remote(tokens)
            yield

    def pause(self, seconds: float) -> None:
        """The provider said when to come back, and meant everyone."""
        self._gate.pause.remote(seconds)


class SharedSpend(Spend):
    """A worker's account: all of it is the gate's. ``wait`` gives the result after a handle's answer."""

    def __init__(self, gate: Any, wait: Callable[[Any], Any]) -> None:
        super().__init__()
        self._gate = gate
        self._wait = wait

    @property
    def spent(self) -> Spent:
        """What all workers have used so far."""
        found: Spent = self._wait(self._gate.spent.remote())
        return found

    def reserve(self, call: Call, which: Try = Try.FIRST) -> Reservation:
        """As `Spend.reserve`, for the cluster. The prompt stays here."""
        size = replace(call, messages=(), input_tokens=call.expected_input_tokens, key=NO_SECRET)
        found: Reservation | str = self._wait(self._gate.reserve.remote(size, which))
        if isinstance(found, str):
            raise LimitReached(found)
        return found

    def settle(self, reservation: Reservation, reply: Reply) -> None:
        """The request was answered."""
        self._wait(self._gate.settle.remote(reservation, replace(reply, text="")))

    def failed(self, reservation: Reservation, charge: Charge = Charge.NONE) -> None:
        """The request failed."""
        self._wait(self._gate.failed.remote(reservation, charge))

    def hit(self, reply: Reply) -> None:
        """A call was answered from this machine's reply cache."""
        self._wait(self._gate.hit.remote(replace(reply, text="")))
