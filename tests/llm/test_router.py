"""Why the client of the models is not litellm's Router: what it does where the client must do otherwise.

Each test shows the Router first and the client after it, at the same server. Where one of them fails with a newer
litellm, the reason it stands for in docs/dependencies.md is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from llm_server.client import LlmServer

from compactor_cli.llm import llm
from compactor_cli.llm.limits import RateLimiter, RateLimits, Spend, SpendLimits
from compactor_cli.llm.model_calls import Call, ChatMessage, LimitReached, Price, Reply, Secret, Speaker
from compactor_cli.llm.model_client import BackgroundEventLoop, ModelClient, ReplyCache, Retries

CALLBACKS = ("callbacks", "input_callback", "success_callback", "failure_callback")
CALLBACKS += ("_async_input_callback", "_async_success_callback", "_async_failure_callback")
KEY = "k" * 20
# One call of this test costs less than that, and eight of them more.
LIMIT_USD, USD_PER_TOKEN = 2.0, 0.005
TEXT = "Please fix the login in src/login.py first.\nThen run the tests in tests/test_login.py again.\n" * 2


@pytest.fixture
def litellm() -> Iterator[Any]:
    """litellm as the product sets it up; what Routers leave in it is taken out again."""
    module = llm._litellm()
    before = {name: list(getattr(module, name)) for name in CALLBACKS}
    yield module
    for name, value in before.items():
        setattr(module, name, value)
    module.cache = None


@pytest.fixture(scope="module")
def loop() -> Iterator[BackgroundEventLoop]:
    with closing(BackgroundEventLoop(at_end=llm.close)) as running:
        yield running


def routed(
    loop: BackgroundEventLoop, litellm: Any, server: LlmServer, name: str, count: int, **router: Any
) -> list[Any]:
    """What a Router answers to this many calls at once: replies and errors."""
    own = {key: router.pop(key) for key in ("rpm", "input_cost_per_token", "output_cost_per_token") if key in router}
    parameters = {"model": f"openai/{name}", "api_base": server.openai, "api_key": KEY, **own}

    async def all_of_them() -> list[Any]:
        way = litellm.Router(model_list=[{"model_name": "m", "litellm_params": parameters}], **router)
        messages = [[{"role": "user", "content": f"{TEXT}{number}"}] for number in range(count)]
        calls = (way.acompletion("m", messages=text, max_tokens=40) for text in messages)
        return await asyncio.gather(*calls, return_exceptions=True)

    return loop.run(all_of_them())


def by_client(
    loop: BackgroundEventLoop, client: ModelClient, server: LlmServer, name: str, count: int, **call: Any
) -> list[Any]:
    """What the client answers to the same."""

    async def one(number: int) -> Reply:
        said = (ChatMessage(speaker=Speaker.USER, text=f"{TEXT}{number}"),)
        common = {"model": f"openai/{name}", "api_base": server.openai, "key": Secret(KEY), "max_tokens": 40}
        return await client.ask(Call(messages=said, **common, **call))

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*map(one, range(count)), return_exceptions=True)

    return loop.run(all_of_them())


def failed(answers: list[Any]) -> int:
    return sum(isinstance(answer, Exception) for answer in answers)


class Waits:
    """A clock that moves when somebody sleeps."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def test_the_router_rejects_what_is_over_the_rate_and_the_client_sends_it_later(
    llm_server: LlmServer, loop: BackgroundEventLoop, litellm: Any
) -> None:
    checks = {"optional_pre_call_checks": ["enforce_model_rate_limits"], "num_retries": 0}
    assert failed(routed(loop, litellm, llm_server, "well", 5, rpm=2, **checks)) >= 3
    waits = Waits()
    rate_limiter = RateLimiter(RateLimits(requests_per_minute=2), clock=waits, sleep=waits.sleep)
    assert failed(by_client(loop, ModelClient(rate_limiter=rate_limiter), llm_server, "well", 5)) == 0
    assert waits.now >= 120


def test_the_routers_budget_stops_after_the_money_is_spent_and_the_clients_before(
    llm_server: LlmServer, loop: BackgroundEventLoop, litellm: Any
) -> None:
    prices = {"input_cost_per_token": USD_PER_TOKEN, "output_cost_per_token": USD_PER_TOKEN}
    budget = {"provider_budget_config": {"openai": {"budget_limit": LIMIT_USD, "time_period": "1d"}}}
    replies = routed(loop, litellm, llm_server, "slow.1", 8, num_retries=0, **prices, **budget)
    spent = sum(reply._hidden_params["response_cost"] for reply in replies)
    assert failed(replies) == 0
    assert spent > LIMIT_USD
    price = Price(input_usd=USD_PER_TOKEN, output_usd=USD_PER_TOKEN, cached_usd=USD_PER_TOKEN)
    client = ModelClient(spend=Spend(SpendLimits(cost_usd=LIMIT_USD)))
    answers = by_client(loop, client, llm_server, "slow.1", 8, price=price)
    assert 0 < sum(isinstance(answer, LimitReached) for answer in answers) < 8
    assert 0 < client.spend.spent.cost_usd <= LIMIT_USD


def test_the_routers_retries_are_not_seen_by_a_limit_and_the_clients_are(
    llm_server: LlmServer, loop: BackgroundEventLoop, litellm: Any
) -> None:
    routed(loop, litellm, llm_server, "server_error", 1, num_retries=2)
    assert len(llm_server.requests()) == 3  # for one call; nothing is asked between them
    llm_server.control(reset=True)
    waits = Waits()
    client = ModelClient(spend=Spend(SpendLimits(requests=2)), sleep=waits.sleep)
    assert isinstance(by_client(loop, client, llm_server, "server_error", 1)[0], LimitReached)
    assert len(llm_server.requests()) == 2


def test_the_router_asks_a_dead_server_with_all_calls_under_way_and_the_client_with_three(
    llm_server: LlmServer, loop: BackgroundEventLoop, litellm: Any
) -> None:
    routed(loop, litellm, llm_server, "server_error", 8, num_retries=0, allowed_fails=2, cooldown_time=60)
    assert len(llm_server.requests()) == 8
    llm_server.control(reset=True)
    assert failed(by_client(loop, ModelClient(retries=Retries(attempts=1)), llm_server, "server_error", 8)) == 8
    assert len(llm_server.requests()) == 3


def test_both_caches_keep_a_reply_that_was_cut_off_and_the_clients_says_so(
    llm_server: LlmServer, loop: BackgroundEventLoop, litellm: Any, tmp_path: Path
) -> None:
    for _ in range(2):  # a hit gives the same half a reply, or fails for want of the proxy's packages
        routed(loop, litellm, llm_server, "cut_off", 1, num_retries=0, cache_responses=True)
        loop.run(asyncio.sleep(0.3))  # it is stored in the background
    assert len(llm_server.requests()) == 1
    litellm.cache = None  # it is litellm's one cache: other calls of the process would get it too
    llm_server.control(reset=True)
    for _ in range(2):
        client = ModelClient(cache=ReplyCache(tmp_path / "replies.sqlite3"))
        assert by_client(loop, client, llm_server, "cut_off", 1)[0].finish_reason == "length"
    assert len(llm_server.requests()) == 1
