"""The loop that calls of models run on: who waits for it, what is cancelled, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import closing

import pytest

from compactor_cli.llm.model_client import BackgroundEventLoop


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_many_threads_share_one_loop() -> None:
    with closing(BackgroundEventLoop()) as loop, ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda n: loop.run(answer(n)), range(50))) == list(range(50))
        assert len([thread for thread in threading.enumerate() if thread.name == "model calls"]) == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "model calls"]


def test_what_a_coroutine_raises_is_raised_to_its_thread() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with closing(BackgroundEventLoop()) as loop, pytest.raises(ValueError, match="no"):
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
        with closing(BackgroundEventLoop()) as loop:
            threading.Thread(target=lambda: (begun.wait(10), os.kill(os.getpid(), signal.SIGUSR1))).start()
            with pytest.raises(KeyboardInterrupt):
                loop.run(for_ever())
            assert stopped.wait(10)
            assert loop.run(answer(2)) == 2
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_interrupt_cancels_one_call_and_not_the_others() -> None:
    with closing(BackgroundEventLoop()) as loop, ThreadPoolExecutor(1) as threads:
        first = loop.start(asyncio.sleep(3_600))
        other = threads.submit(loop.run, answer(7))
        first.cancel()
        assert other.result(10) == 7


def test_a_closed_loop_takes_nothing_more() -> None:
    loop = BackgroundEventLoop()
    loop.close()
    with pytest.raises(RuntimeError):
        loop.run(answer(1))
