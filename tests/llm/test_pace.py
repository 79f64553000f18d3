"""Pace and the loop: how many requests at once, how many a minute, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_cli.llm.limits import RateLimiter, RateLimits
from compactor_cli.llm.model_client import BackgroundEventLoop


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
def test_no_minute_holds_more_than_the_tempo_allows(
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


def test_no_more_than_so_many_at_once() -> None:
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


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_many_threads_share_one_loop() -> None:
    with BackgroundEventLoop() as loop, ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda n: loop.run(answer(n)), range(50))) == list(range(50))
        assert len([thread for thread in threading.enumerate() if thread.name == "model calls"]) == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "model calls"]


def test_what_a_coroutine_raises_is_raised_to_its_thread() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with BackgroundEventLoop() as loop, pytest.raises(ValueError, match="no"):
        loop.run(fail())


def test_closing_cancels_what_runs_cleans_up_and_lets_nobody_wait() -> None:
    events: list[str] = []
    begun = threading.Event()

    async def for_ever() -> None:
        try:
            begun.set()
            await asyncio.sleep(3_600)
        finally:
            events.append("clean-up")

    async def at_end() -> None:
        events.append("end")

    loop = BackgroundEventLoop(at_end)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(loop.run, for_ever())
        begun.wait(10)
        loop.close()
        with pytest.raises(CancelledError):
            waiting.result(10)
    assert events == ["clean-up", "end"]
    loop.close()


def test_an_interrupt_while_waiting_cancels_the_work() -> None:
    begun, stopped = threading.Event(), threading.Event()

    async def for_ever() -> None:
        try:
            begun.set()
            await asyncio.sleep(3_600)
        finally:
            stopped.set()

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with BackgroundEventLoop() as loop:
            threading.Thread(target=lambda: (begun.wait(10), os.kill(os.getpid(), signal.SIGUSR1))).start()
            with pytest.raises(KeyboardInterrupt):
                loop.run(for_ever())
            assert stopped.wait(10)
            assert loop.run(answer(2)) == 2
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_interrupt_cancels_one_call_and_not_the_others() -> None:
    with BackgroundEventLoop() as loop, ThreadPoolExecutor(1) as threads:
        first = loop.start(asyncio.sleep(3_600))
        other = threads.submit(loop.run, answer(7))
        first.cancel()
        assert other.result(10) == 7


def test_a_closed_loop_takes_nothing_more() -> None:
    loop = BackgroundEventLoop()
    loop.close()
    with pytest.raises(RuntimeError):
        loop.run(answer(1))
