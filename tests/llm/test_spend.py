"""The account of a run and its limits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from compactor_cli.llm.limits import Charge, Spend, SpendLimits, Spent
from compactor_cli.llm.model_calls import Call, ChatMessage, LimitReached, Reply, Speaker, price_of

SAID = (ChatMessage(speaker=Speaker.USER, text="x" * 3_000),)
PRICED = Call(model="anthropic/claude-haiku-4-5", messages=SAID, max_tokens=200, input_tokens=1_000)
AGAIN = replace(PRICED, is_repeat=True)
UNPRICED = Call(model="openai/of-ones-own", messages=SAID, max_tokens=200)


def replied(**changes: object) -> Reply:
    values = {"text": "t", "model": "m", "input_tokens": 900, "output_tokens": 100, "cost_usd": 0.0014, **changes}
    return Reply(**values)  # type: ignore[arg-type]


def test_prices_come_from_the_table_without_importing_litellm() -> None:
    price = price_of("anthropic/claude-haiku-4-5")
    assert price
    assert 0 < price.cached_usd < price.input_usd < price.output_usd
    assert price == price_of("claude-haiku-4-5")
    assert price_of("openai/of-ones-own") is None
    cost = price.cost_usd(input_tokens=1_000, output_tokens=10, cached_tokens=400)
    assert cost == pytest.approx(600 * price.input_usd + 400 * price.cached_usd + 10 * price.output_usd)


def test_everything_that_was_sent_is_counted() -> None:
    spend = Spend()
    spend.failed(spend.reserve(PRICED))
    spend.settle(spend.reserve(AGAIN), replied(cached_tokens=500))
    spend.hit(replied())
    assert spend.spent == Spent(
        requests=2,
        retries=1,
        failures=1,
        tokens_sent=1_900,
        input_tokens=900,
        output_tokens=100,
        cached_tokens=500,
        cost_usd=0.0014,
        cache_hits=1,
        saved_usd=0.0014,
    )


def test_a_reply_without_a_price_is_counted_apart() -> None:
    spend = Spend()
    spend.settle(spend.reserve(UNPRICED), replied(cost_usd=None))
    assert (spend.spent.cost_usd, spend.spent.unpriced) == (0, 1)


def test_a_reply_that_does_not_say_what_it_took_is_counted_in_full() -> None:
    spend = Spend()
    spend.settle(spend.reserve(PRICED), replied(input_tokens=0, output_tokens=0, cost_usd=None))
    assert spend.spent.cost_usd == pytest.approx(1_000 * 1e-06 + 200 * 5e-06)
    assert (spend.spent.tokens_sent, spend.spent.unpriced) == (1_000, 1)


def test_a_failed_request_that_may_be_charged_is_counted_in_full() -> None:
    spend = Spend()
    spend.failed(spend.reserve(PRICED), Charge.POSSIBLE)
    assert spend.spent.cost_usd == pytest.approx(1_000 * 1e-06 + 200 * 5e-06)


def test_the_limit_of_requests_counts_retries() -> None:
    spend = Spend(SpendLimits(requests=2))
    spend.failed(spend.reserve(PRICED))
    spend.failed(spend.reserve(AGAIN))
    with pytest.raises(LimitReached, match="2 requests"):
        spend.reserve(AGAIN)
    assert spend.spent.requests == 2


def test_the_limit_of_tokens_is_kept_before_sending() -> None:
    spend = Spend(SpendLimits(tokens_sent=2_500))
    spend.settle(spend.reserve(PRICED), replied(input_tokens=1_200))
    spend.reserve(PRICED)
    with pytest.raises(LimitReached, match="2500 tokens"):
        spend.reserve(PRICED)


def test_the_limit_of_cost_is_kept_by_the_worst_case_and_freed_by_the_real_one() -> None:
    spend = Spend(SpendLimits(cost_usd=0.005))  # a request may cost 0.002
    held = [spend.reserve(PRICED), spend.reserve(PRICED)]
    with pytest.raises(LimitReached, match=r"0\.005 USD"):
        spend.reserve(PRICED)
    for reservation in held:
        spend.settle(reservation, replied(cost_usd=0.001))
    spend.settle(spend.reserve(PRICED), replied(cost_usd=0.002))
    with pytest.raises(LimitReached):
        spend.reserve(PRICED)


def test_a_limit_of_cost_needs_a_price() -> None:
    with pytest.raises(LimitReached, match="price of openai/of-ones-own is not known"):
        Spend(SpendLimits(cost_usd=1)).reserve(UNPRICED)


def test_threads_cannot_pass_a_limit_together() -> None:
    spend = Spend(SpendLimits(requests=50))

    def ask(number: int) -> bool:
        try:
            spend.settle(spend.reserve(PRICED), replied())
        except LimitReached:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(ask, range(200))) == 50
    assert spend.spent.requests == 50


def test_a_size_that_nobody_counted_is_estimated() -> None:
    spend = Spend()
    assert spend.reserve(UNPRICED).tokens == 1_000
