"""Ladder: a call is tried again while that can help, then with the fallback model, then given up with the reason."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from compactor_cli.llm.calls import Call, Reply
from compactor_cli.llm.failures import GaveUp, Passing, Refused
from compactor_cli.llm.pace import Sleep
from compactor_cli.llm.spend import Try

Send = Callable[[Call, Try], Awaitable[Reply]]

# How often a caller cuts smaller spans after `ContextTooLong`; Claude Code's number.
SHRINK_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How a failed request is repeated.

    The n-th wait is drawn evenly from 0 to ``base_seconds * 2**n`` (exponential backoff with full jitter, after
    M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015), at most ``most_seconds``, and
    never less than the provider's Retry-After. One that is longer than ``most_retry_after_seconds`` is not
    waited for. ``seed`` makes the waits of a run repeatable.
    """

    attempts: int = 5
    base_seconds: float = 1.0
    most_seconds: float = 60.0
    most_retry_after_seconds: float = 120.0
    seed: int | None = None


class Ladder:
    """Retries, then the fallback. Belongs to one event loop."""

    def __init__(self, retries: Retries | None = None, *, sleep: Sleep) -> None:
        self._retries = retries or Retries()
        self._sleep = sleep
        self._random = random.Random(self._retries.seed)  # noqa: S311 -- spreads load, guards nothing

    async def climb(self, calls: tuple[Call, ...], send: Send) -> Reply:
        """The reply to the first of ``calls`` that gets one; the others are its fallbacks, in order.

        Raises `ContextTooLong` (the caller asks with less text), `GaveUp` with the last reason for each model, and
        lets `LimitReached` and `CircuitOpen` through.
        """
        reasons: list[str] = []
        for call in calls:
            try:
                return await self._repeat(call, send)
            except (Passing, Refused) as failure:
                reasons.append(f"{call.model}: {failure.reason}")
        raise GaveUp("; then ".join(reasons))

    async def _repeat(self, call: Call, send: Send) -> Reply:
        attempt = 0
        while True:
            try:
                return await send(call, Try.AGAIN if attempt else Try.FIRST)
            except Passing as failure:
                attempt += 1
                if attempt >= self._retries.attempts or self._too_far_off(failure):
                    raise
                seconds = self._wait_seconds(attempt, failure)
            await self._sleep(seconds)

    def _too_far_off(self, failure: Passing) -> bool:
        return failure.retry_after_seconds > self._retries.most_retry_after_seconds

    def _wait_seconds(self, attempt: int, failure: Passing) -> float:
        most = min(self._retries.most_seconds, self._retries.base_seconds * 2.0 ** (attempt - 1))
        # Jitter on top of Retry-After, so that all who were told the same second do not come back in it.
        return failure.retry_after_seconds + self._random.uniform(0.0, most)
