"""One rate limit and one account for many workers, without any engine."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace
from typing import Any

import pytest

from compactor_cli.llm.limits import Charge, RateLimiter, RateLimits, SpendLimits
from compactor_cli.llm.model import ModelOptions
from compactor_cli.llm.model_calls import Call, ChatMessage, Keys, LimitHeld, LimitReached, Reply, Secret, Speaker
from compactor_cli.run.jobs import RunConfig
from compactor_cli.run.model_run import Gate, ModelConfig, SharedRateLimiter, SharedSpend

CALL = Call(
    model="openai/well",
    messages=(ChatMessage(speaker=Speaker.USER, text="word " * 300),),
    max_tokens=10,
    key=Secret("sk-of-this-test-0123456789"),
)
REPLY = Reply(text="yes", model="openai/well", input_tokens=300, output_tokens=1)


class Handle:
    """A gate as an engine's handle: what is sent can be pickled, and methods give awaitables."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        class Method:
            def remote(self, *arguments: object) -> Any:
                return getattr(handle._gate, name)(*pickle.loads(pickle.dumps(arguments)))

        handle = self
        return Method()


def wait(answer: Any) -> Any:
    return asyncio.run(answer)


def test_the_account_is_one_for_all_workers_and_no_prompt_or_key_leaves_them() -> None:
    handle = Handle(Gate(RateLimits(), SpendLimits(requests=2)))
    one, two = SharedSpend(handle, wait), SharedSpend(handle, wait)
    one.settle(one.reserve(CALL), REPLY)
    two.failed(two.reserve(CALL), Charge.POSSIBLE)
    with pytest.raises(LimitReached, match="limit of 2 requests"):
        one.reserve(CALL)
    two.hit(REPLY)
    spent = one.spent
    assert (spent.requests, spent.failures, spent.cache_hits) == (2, 1, 1)
    assert (spent.input_tokens, spent.tokens_sent) == (300, 300 + CALL.expected_input_tokens)


def test_a_worker_learns_that_another_holds_what_is_left() -> None:
    handle = Handle(Gate(RateLimits(), SpendLimits(tokens_sent=CALL.expected_input_tokens + 1)))
    one, two = SharedSpend(handle, wait), SharedSpend(handle, wait)
    held = one.reserve(CALL)
    with pytest.raises(LimitHeld):
        two.reserve(CALL)
    one.settle(held, replace(REPLY, input_tokens=1))
    two.settle(two.reserve(CALL), REPLY)
    with pytest.raises(LimitReached) as reached:
        two.reserve(CALL)
    assert type(reached.value) is LimitReached


def test_the_pace_is_one_for_all_workers() -> None:
    class Time:
        now = 0.0

        async def sleep(self, seconds: float) -> None:
            self.now += seconds
            await asyncio.sleep(0)

    time = Time()
    rate_limits = RateLimits(concurrency=50, requests_per_minute=3)
    handle = Handle(
        Gate(rate_limits, SpendLimits(), RateLimiter(rate_limits, clock=lambda: time.now, sleep=time.sleep))
    )
    sent: list[float] = []

    async def worker() -> None:
        rate_limiter = SharedRateLimiter(RateLimits(concurrency=4), handle)
        for _ in range(3):
            async with rate_limiter.acquire(10):
                sent.append(time.now)

    async def both() -> None:
        await asyncio.gather(worker(), worker())

    asyncio.run(both())
    assert sent == [0.0, 0.0, 0.0, 60.0, 60.0, 60.0]


def test_options_travel_without_keys() -> None:
    options = RunConfig(models=ModelConfig(model_options=ModelOptions(model="openai/well")), key_file="key")
    assert pickle.loads(pickle.dumps(options)) == options
    with pytest.raises(TypeError, match="a secret is not written"):
        pickle.dumps(ModelConfig(model_options=ModelOptions(model="x"), keys=Keys(bare=Secret("sk-1"))))
