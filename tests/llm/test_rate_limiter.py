"""The rate limiter: how many requests at once, and how many a minute."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_cli.llm.limits import RateLimiter, RateLimits


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def sent(rate_limits: RateLimits, sizes: list[int], pause: tuple[int, float] = (-1, 0.0)) -> list[tuple[float, int]]:
    """When each request goes, and with how many tokens; all are wanted at once."""
    time = Time()
    rate_limiter = RateLimiter(rate_limits, clock=time, sleep=time.sleep)
    log: list[tuple[float, int]] = []

    async def one(number: int, tokens: int) -> None:
        async with rate_limiter.acquire(tokens):
            log.append((time.now, tokens))
            if number == pause[0]:
                rate_limiter.pause(pause[1])

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number, tokens) for number, tokens in enumerate(sizes)))

    asyncio.run(all_of_them())
    return log


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 900), max_size=40), st.integers(1, 8), st.integers(0, 5), st.integers(0, 1_000))
def test_no_minute_holds_more_than_the_limits_allow(
    sizes: list[int], concurrency: int, requests: int, tokens: int
) -> None:
    rate_limits = RateLimits(concurrency=concurrency, requests_per_minute=requests, tokens_per_minute=tokens)
    log = sent(rate_limits, sizes)
    assert [size for _, size in log] == sizes  # in order
    for begin, _ in log:
        minute = [size for at, size in log if begin <= at < begin + 59.999]
        assert not requests or len(minute) <= requests
        assert not tokens or sum(minute) <= tokens or len(minute) == 1


def test_without_limits_nothing_waits() -> None:
    assert {at for at, _ in sent(RateLimits(), [10_000] * 50)} == {50.0}


def test_a_pause_holds_all_that_come_after() -> None:
    log = sent(RateLimits(concurrency=1), [1, 1, 1], pause=(0, 30))
    assert [at for at, _ in log] == [50, 80, 80]


def test_no_more_than_the_limit_at_once() -> None:
    rate_limiter = RateLimiter(RateLimits(concurrency=3))
    now, most = 0, 0

    async def one() -> None:
        nonlocal now, most
        async with rate_limiter.acquire(1):
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(20)))

    asyncio.run(all_of_them())
    assert most == 3
