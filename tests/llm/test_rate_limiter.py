"""The rate limiter: how many requests at once, and how many a minute."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_cli.llm.limits import RateLimiter, RateLimits
from compactor_cli.llm.model_calls import Call, ChatMessage, Passing, RateLimited, Reply, Speaker, TimedOut
from compactor_cli.llm.model_client import ModelClient


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


def test_what_a_request_did_not_take_is_there_for_the_next() -> None:
    time = Time()
    rate_limiter = RateLimiter(RateLimits(tokens_per_minute=1_000), clock=time, sleep=time.sleep)
    log: list[float] = []

    async def one() -> None:
        async with rate_limiter.acquire(900) as number:
            log.append(time.now)
            await asyncio.sleep(0)  # the others begin to wait
            await asyncio.sleep(0)
            rate_limiter.took(number, 40)

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(3)))

    asyncio.run(all_of_them())
    assert log[-1] - log[0] < 10


@pytest.mark.parametrize(("failure", "waits"), [(RateLimited("no"), False), (TimedOut("no"), True)])
def test_a_request_that_was_turned_down_leaves_its_tokens_to_the_next(failure: Passing, waits: bool) -> None:
    time, failures = Time(), [failure]
    call = Call(model="m", messages=(ChatMessage(speaker=Speaker.USER, text="hello"),), max_tokens=100)

    async def complete(call: Call) -> Reply:
        if failures:
            raise failures.pop()
        return Reply(text="done", model="m")

    rate_limiter = RateLimiter(RateLimits(tokens_per_minute=110), clock=time, sleep=time.sleep)
    client = ModelClient(complete=complete, rate_limiter=rate_limiter, sleep=time.sleep)
    asyncio.run(client.ask(call))
    # What timed out may have been worked on.
    assert (time.now - 50 >= 60) is waits


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
