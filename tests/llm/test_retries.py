"""Retries, fallback and giving up."""

from __future__ import annotations

import asyncio

import pytest

from compactor_cli.llm import model_calls as f
from compactor_cli.llm.limits import RateLimiter
from compactor_cli.llm.model_calls import Call, ChatMessage, Reply, Speaker
from compactor_cli.llm.model_client import Fallback, ModelClient, Retries

REPLY = Reply(text="done", model="m")
FIRST = Call(model="first", messages=(ChatMessage(speaker=Speaker.USER, text="hello"),), max_tokens=10)
SECOND = Fallback(model="second")


class Provider:
    """Fails as it is asked to, then answers."""

    def __init__(self, *failures: f.ModelFailure) -> None:
        self.failures = list(failures)
        self.asked: list[str] = []

    async def complete(self, call: Call) -> Reply:
        self.asked.append(call.model)
        if self.failures:
            raise self.failures.pop(0)
        return REPLY


def ask(
    provider: Provider, fallback: Fallback | None = None, retries: Retries | None = None
) -> tuple[ModelClient, list[float]]:
    """The line that was asked, and how long it waited before each further attempt."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def pass_time(seconds: float) -> None:
        nonlocal now
        now += seconds

    now = 0.0
    rate_limiter = RateLimiter(clock=lambda: now, sleep=pass_time)
    line = ModelClient(
        complete=provider.complete,
        retries=retries,
        sleep=sleep,
        rate_limiter=rate_limiter,
        fallback=fallback,
    )
    assert asyncio.run(line.ask(FIRST)) is REPLY
    return line, waits


@pytest.mark.parametrize("kind", [f.RateLimited, f.ServerTrouble, f.TimedOut, f.Broken])
def test_what_passes_is_tried_again(kind: type[f.Passing]) -> None:
    provider = Provider(kind("no"), kind("no"))
    line, waits = ask(provider)
    assert (line.spend.spent.requests, line.spend.spent.retries) == (3, 2)
    assert len(waits) == 2


def test_waits_grow_up_to_a_bound_and_are_spread() -> None:
    retries = Retries(attempts=12, base_seconds=1, most_seconds=20)
    _, waits = ask(Provider(*[f.ServerTrouble("no")] * 11), retries=retries)
    bounds = [min(20, 2**n) for n in range(11)]
    assert all(0 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    assert len(set(waits)) == len(waits)


def test_the_provider_says_when_to_come_back() -> None:
    _, waits = ask(Provider(f.RateLimited("slow", retry_after_seconds=30)))
    assert 30 <= waits[0] <= 31


def test_a_time_too_far_off_is_not_waited_for() -> None:
    provider = Provider(f.RateLimited("tomorrow", retry_after_seconds=86_400))
    _, waits = ask(provider, SECOND)
    assert not waits
    assert provider.asked == ["first", "second"]


def test_what_is_refused_goes_to_the_fallback_at_once() -> None:
    provider = Provider(f.Refused("no such model"))
    ask(provider, SECOND)
    assert provider.asked == ["first", "second"]


def test_the_fallback_is_retried_too_and_then_all_reasons_are_stated() -> None:
    provider = Provider(*[f.ServerTrouble("down")] * 3, *[f.TimedOut("no reply")] * 3)
    with pytest.raises(f.GaveUp, match="first: down; then second: no reply"):
        ask(provider, SECOND, Retries(attempts=3))
    assert provider.asked == ["first"] * 3 + ["second"] * 3


@pytest.mark.parametrize("kind", [f.ContextTooLong, f.LimitReached])
def test_what_a_retry_cannot_help_is_reported_upwards(kind: type[f.ModelFailure]) -> None:
    provider = Provider(kind("no"))
    with pytest.raises(kind):
        ask(provider, SECOND)
    assert len(provider.asked) == 1
