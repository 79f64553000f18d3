"""Retries, fallback and giving up."""

from __future__ import annotations

import asyncio

import pytest

from compactor_cli.llm import failures as f
from compactor_cli.llm.calls import Call, Reply, Said, Speaker
from compactor_cli.llm.ladder import Ladder, Retries
from compactor_cli.llm.spend import Try

REPLY = Reply(text="done", model="m")
FIRST = Call(model="first", messages=(Said(speaker=Speaker.USER, text="hello"),), max_tokens=10)
SECOND = Call(model="second", messages=FIRST.messages, max_tokens=10)


class Provider:
    """Fails as told, then answers."""

    def __init__(self, *failures: f.ModelFailure) -> None:
        self.failures = list(failures)
        self.asked: list[tuple[str, Try]] = []

    async def send(self, call: Call, which: Try) -> Reply:
        self.asked.append((call.model, which))
        if self.failures:
            raise self.failures.pop(0)
        return REPLY


def climb(provider: Provider, *calls: Call, retries: Retries | None = None) -> tuple[Reply, list[float]]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    ladder = Ladder(retries or Retries(seed=1), sleep=sleep)
    return asyncio.run(ladder.climb(calls, provider.send)), waits


@pytest.mark.parametrize("kind", [f.RateLimited, f.ServerTrouble, f.TimedOut, f.Broken])
def test_what_passes_is_tried_again(kind: type[f.Passing]) -> None:
    provider = Provider(kind("no"), kind("no"))
    reply, waits = climb(provider, FIRST)
    assert reply is REPLY
    assert [which for _, which in provider.asked] == [Try.FIRST, Try.AGAIN, Try.AGAIN]
    assert len(waits) == 2


def test_waits_grow_up_to_a_bound_and_are_spread() -> None:
    retries = Retries(attempts=12, base_seconds=1, most_seconds=20, seed=3)
    _, waits = climb(Provider(*[f.ServerTrouble("no")] * 11), FIRST, retries=retries)
    bounds = [min(20, 2**n) for n in range(11)]
    assert all(0 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    assert len(set(waits)) == len(waits)


def test_a_seed_repeats_the_waits() -> None:
    runs = [climb(Provider(*[f.ServerTrouble("no")] * 4), FIRST, retries=Retries(seed=7))[1] for _ in range(2)]
    assert runs[0] == runs[1]


def test_the_provider_says_when_to_come_back() -> None:
    _, waits = climb(Provider(f.RateLimited("slow", retry_after_seconds=30)), FIRST)
    assert 30 <= waits[0] <= 31


def test_a_time_too_far_off_is_not_waited_for() -> None:
    provider = Provider(f.RateLimited("tomorrow", retry_after_seconds=86_400))
    reply, waits = climb(provider, FIRST, SECOND)
    assert reply is REPLY
    assert not waits
    assert [model for model, _ in provider.asked] == ["first", "second"]


def test_what_is_refused_goes_to_the_fallback_at_once() -> None:
    provider = Provider(f.Refused("no such model"))
    climb(provider, FIRST, SECOND)
    assert provider.asked == [("first", Try.FIRST), ("second", Try.FIRST)]


def test_the_fallback_is_retried_too_and_then_all_reasons_are_told() -> None:
    provider = Provider(*[f.ServerTrouble("down")] * 3, *[f.TimedOut("no reply")] * 3)
    with pytest.raises(f.GaveUp, match="first: down; then second: no reply"):
        climb(provider, FIRST, SECOND, retries=Retries(attempts=3, seed=1))
    assert [model for model, _ in provider.asked] == ["first"] * 3 + ["second"] * 3


@pytest.mark.parametrize("kind", [f.ContextTooLong, f.LimitReached, f.CircuitOpen])
def test_what_a_retry_cannot_help_is_told_upwards(kind: type[f.ModelFailure]) -> None:
    provider = Provider(kind("no"))
    with pytest.raises(kind):
        climb(provider, FIRST, SECOND)
    assert len(provider.asked) == 1
