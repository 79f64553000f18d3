"""Pace: how fast requests are sent, over all transcripts of a run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

WINDOW_SECONDS = 60.0
Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """``concurrency``: requests under way at once. Per minute, 0: no limit."""

    concurrency: int = 8
    requests_per_minute: int = 0
    tokens_per_minute: int = 0


async def sleep_seconds(seconds: float) -> None:
    """asyncio's sleep, imported when it is needed."""
    import asyncio

    await asyncio.sleep(seconds)


class RateLimiter:
    """Lets requests through, first come first served, so that no minute holds more than the tempo allows.

    Any 60 seconds in a row are such a minute. A single request that is larger than the tokens of a minute waits
    until nothing else is in the minute, then goes. Belongs to one event loop.
    """

    def __init__(
        self, rate_limits: RateLimits | None = None, *, clock: Clock = time.monotonic, sleep: Sleep = sleep_seconds
    ) -> None:
        self._rate_limits = rate_limits or RateLimits()
        self._clock = clock
        self._sleep = sleep
        self._sent: deque[tuple[float, int]] = deque()
        self._tokens = 0
        self._paused_until = 0.0
        self._gates: tuple[asyncio.Semaphore, asyncio.Lock] | None = None

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[None]:
        """One request of about ``tokens`` (prompt and reply); it may be sent within the block."""
        places, queue = self._open()
        async with places:
            async with queue:  # its waiters are served in order, so a large request is not overtaken for ever
                while (seconds := self._wait_seconds(tokens)) > 0:
                    await self._sleep(seconds)
                self._sent.append((self._clock(), tokens))
                self._tokens += tokens
            yield

    def pause(self, seconds: float) -> None:
        """Send nothing for so long: the provider said when to come back."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def _open(self) -> tuple[asyncio.Semaphore, asyncio.Lock]:
        if self._gates is None:
            import asyncio

            self._gates = asyncio.Semaphore(max(1, self._rate_limits.concurrency)), asyncio.Lock()
        return self._gates

    def _wait_seconds(self, tokens: int) -> float:
        now = self._clock()
        while self._sent and self._sent[0][0] <= now - WINDOW_SECONDS:
            self._tokens -= self._sent.popleft()[1]
        return max(self._paused_until - now, self._window_seconds(tokens, now))

    def _window_seconds(self, tokens: int, now: float) -> float:
        """How long until enough of the last minute is over."""
        rate_limits, count, sum_tokens = self._rate_limits, len(self._sent), self._tokens
        seconds = 0.0
        for sent, its_tokens in self._sent:
            too_many = rate_limits.requests_per_minute and count >= rate_limits.requests_per_minute
            too_much = rate_limits.tokens_per_minute and sum_tokens + tokens > rate_limits.tokens_per_minute
            if not (too_many or too_much):
                break
            count, sum_tokens = count - 1, sum_tokens - its_tokens
            seconds = sent + WINDOW_SECONDS - now
        return seconds
