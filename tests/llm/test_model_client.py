"""The client of the models as a whole, with a provider that behaves and one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from llm_server.client import LlmServer

from compactor_cli.llm import llm
from compactor_cli.llm import model_calls as f
from compactor_cli.llm.limits import Breaker, RateLimiter, RateLimits, Spend, SpendLimits
from compactor_cli.llm.model_calls import Call, ChatMessage, Keys, Price, Reply, Secret, Speaker
from compactor_cli.llm.model_client import BackgroundEventLoop, Fallback, ModelClient, ReplyCache, Retries
from compactor_cli.llm.redact import Redactor

PASSWORD = "Tr0ub4dor" + "and3"
TEXT = f"## Task\nfix src/login.py\npassword: {PASSWORD}\n"


@pytest.fixture(scope="module")
def loop() -> Iterator[BackgroundEventLoop]:
    with closing(BackgroundEventLoop(at_end=llm.close)) as running:
        yield running


class Waits:
    """Sleeps that take no time."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def waits() -> Waits:
    return Waits()


def new_client(waits: Waits, **parts: Any) -> ModelClient:
    rate_limits = parts.pop("rate_limits", RateLimits())
    rate_limiter = RateLimiter(rate_limits, clock=waits, sleep=waits.sleep)
    return ModelClient(rate_limiter=rate_limiter, sleep=waits.sleep, **{"retries": Retries(attempts=3), **parts})


def call(server: LlmServer, name: str, text: str = TEXT, **changes: Any) -> Call:
    said = (ChatMessage(speaker=Speaker.USER, text=text),)
    values = {"model": f"openai/{name}", "api_base": server.openai, "key": Secret("k" * 20), "messages": said}
    return Call(**{**values, "max_tokens": 300, "timeout_seconds": 20.0, **changes})


@pytest.mark.parametrize("name", ["rate_limit.2.1", "server_error.2", "overloaded.2", "broken.2", "garbage.2"])
def test_a_passing_fault_costs_retries_and_no_summary(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits, name: str
) -> None:
    client = new_client(waits)
    assert "src/login.py" in loop.run(client.ask(call(llm_server, name))).text
    assert len(llm_server.requests()) == 3
    spent = client.spend.spent
    assert (spent.requests, spent.retries, spent.failures) == (3, 2, 2)
    assert spent.tokens_sent > spent.input_tokens


def test_retry_after_holds_the_other_calls_too(llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits) -> None:
    client = new_client(waits, rate_limits=RateLimits(concurrency=1))

    async def both() -> None:
        await asyncio.gather(client.ask(call(llm_server, "rate_limit.1.9")), client.ask(call(llm_server, "well")))

    loop.run(both())
    assert waits.now >= 9
    assert any(9 <= seconds <= 10 for seconds in waits.seconds)
    assert len(llm_server.requests("well")) == 1


@pytest.mark.parametrize("name", ["auth", "not_found", "server_error", "garbage"])
def test_the_fallback_model_answers_when_the_first_does_not(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits, name: str
) -> None:
    fallback = Fallback(model="anthropic/well", api_base=llm_server.anthropic)
    keys = Keys(by_name={"ANTHROPIC_API_KEY": Secret("f" * 20)})
    reply = loop.run(new_client(waits, fallback=fallback, keys=keys).ask(call(llm_server, name)))
    assert reply.model == "anthropic/well"
    assert llm_server.requests("well")[0]["headers"]["x-api-key"] == "f" * 20
    assert len(llm_server.requests(name)) == (1 if name in ("auth", "not_found") else 3)


def test_when_nobody_answers_the_reasons_are_stated(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits
) -> None:
    fallback = Fallback(model="openai/auth", api_base=llm_server.openai)
    with pytest.raises(f.GaveUp) as caught:
        loop.run(new_client(waits, fallback=fallback).ask(call(llm_server, "server_error")))
    assert "openai/server_error: Internal server error; then openai/auth: Incorrect API key" in caught.value.reason
    assert "kkkk" not in caught.value.reason


def test_a_prompt_that_is_too_long_is_reported_upwards_at_once(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits
) -> None:
    fallback = Fallback(model="openai/well", api_base=llm_server.openai)
    client = new_client(waits, fallback=fallback)
    asked = call(llm_server, "context.100", TEXT * 20)
    with pytest.raises(f.ContextTooLong):
        loop.run(client.ask(asked))
    assert len(llm_server.requests()) == 1
    other = client.fallback_of(asked)
    assert other
    assert loop.run(client.ask(other)).model == "openai/well"


def test_secrets_do_not_reach_the_server_and_stay_out_of_the_cache(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits, tmp_path: Path
) -> None:
    redactor = Redactor()
    cache = ReplyCache(tmp_path / "replies.sqlite3")
    reply = loop.run(new_client(waits, cache=cache).ask(call(llm_server, "well"), redactor))
    assert PASSWORD not in llm_server.log.read_text()
    assert "[REDACTED:password:1]" in llm_server.log.read_text()
    assert PASSWORD not in reply.text
    assert redactor.counts == {"password": 1}


def test_a_secret_in_a_reply_is_redacted_before_it_is_stored(waits: Waits, tmp_path: Path) -> None:
    async def complete(asked: Call) -> Reply:
        return Reply(text=f"the password: {PASSWORD}", model=asked.model)

    cache = ReplyCache(tmp_path / "replies.sqlite3")
    asked = Call(model="m", messages=(ChatMessage(speaker=Speaker.USER, text="hi"),), max_tokens=9)
    reply = asyncio.run(new_client(waits, cache=cache, complete=complete).ask(asked, Redactor()))
    assert reply.text == "the password: [REDACTED:password:1]"
    assert PASSWORD.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_without_redaction_texts_go_as_they_are(llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits) -> None:
    loop.run(new_client(waits).ask(call(llm_server, "well")))
    assert PASSWORD in llm_server.log.read_text()


def test_what_was_paid_once_is_not_sent_again(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits, tmp_path: Path
) -> None:
    first = new_client(waits, cache=ReplyCache(tmp_path / "replies.sqlite3"))
    replies = [loop.run(first.ask(call(llm_server, "well", f"{TEXT} {n}"))) for n in range(5)]
    second = new_client(waits, cache=ReplyCache(tmp_path / "replies.sqlite3"))
    again = [loop.run(second.ask(call(llm_server, "well", f"{TEXT} {n}"))) for n in range(5)]
    assert again == replies
    assert len(llm_server.requests()) == 5
    assert (second.spend.spent.requests, second.spend.spent.cache_hits) == (0, 5)


@pytest.mark.parametrize("name", ["empty", "refusal", "tool_call"])
def test_a_reply_that_is_no_use_is_not_stored(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits, tmp_path: Path, name: str
) -> None:
    client = new_client(waits, cache=ReplyCache(tmp_path / "replies.sqlite3"))
    loop.run(client.ask(call(llm_server, name)))
    loop.run(client.ask(call(llm_server, name)))
    assert len(llm_server.requests()) == 2


def test_a_limit_stops_before_sending(llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits) -> None:
    client = new_client(waits, spend=Spend(SpendLimits(requests=2)))
    with pytest.raises(f.LimitReached, match=r"^Internal server error; then the limit of 2 requests is reached$"):
        loop.run(client.ask(call(llm_server, "server_error")))
    assert len(llm_server.requests()) == 2


def test_a_request_waits_for_what_those_under_way_leave_of_a_limit(
    llm_server: LlmServer, loop: BackgroundEventLoop
) -> None:
    client = ModelClient(spend=Spend(SpendLimits(cost_usd=1.0)))
    price = Price(input_usd=0.0, output_usd=0.4 / 300, cached_usd=0.0)  # reserved two at once; all cost less

    async def all_of_them() -> list[Reply]:
        texts = [f"{TEXT}{number}" for number in range(8)]
        return await asyncio.gather(*(client.ask(call(llm_server, "well", text, price=price)) for text in texts))

    assert len(loop.run(all_of_them())) == 8
    assert client.spend.spent.cost_usd <= 1
    assert max(request["at_once"] for request in llm_server.requests()) <= 2


def test_what_a_process_held_that_died_is_waited_for_once(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits
) -> None:
    asked = call(llm_server, "well")
    spend = Spend(SpendLimits(tokens_sent=asked.expected_input_tokens + 1))
    spend.reserve(asked)
    client = new_client(waits, spend=spend)
    for _ in range(3):
        with pytest.raises(f.LimitReached, match="tokens sent"):
            loop.run(client.ask(asked))
    assert asked.timeout_seconds <= waits.now < 2 * asked.timeout_seconds
    assert llm_server.requests() == []


def test_a_server_that_fails_is_left_alone_by_all_calls_and_the_fallbacks_server_is_not(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits
) -> None:
    async def all_of_them(client: ModelClient, model: str) -> list[Any]:
        calls = (client.ask(call(llm_server, model, f"{TEXT} {number}")) for number in range(8))
        return await asyncio.gather(*calls, return_exceptions=True)

    breaker = Breaker()
    failures = loop.run(all_of_them(new_client(waits, breaker=breaker), "server_error"))
    assert sum(isinstance(failure, f.CircuitOpen) for failure in failures) >= 5
    assert len(llm_server.requests()) <= 3 * 3
    llm_server.control(reset=True)
    with pytest.raises(f.CircuitOpen, match="not asked for another 15 minutes"):
        loop.run(new_client(waits, breaker=breaker).ask(call(llm_server, "well")))
    other = Fallback(model="anthropic/well", api_base=llm_server.anthropic.replace("127.0.0.1", "localhost"))
    replies = loop.run(all_of_them(new_client(waits, breaker=breaker, fallback=other), "well"))
    assert [reply.model for reply in replies] == ["anthropic/well"] * 8


def test_a_wrong_key_is_tried_once_a_run_and_is_no_trouble_of_the_server(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits
) -> None:
    breaker = Breaker()
    client = new_client(waits, breaker=breaker)
    for number in range(6):
        with pytest.raises(f.GaveUp, match="Incorrect API key"):
            loop.run(client.ask(call(llm_server, "auth", f"{TEXT} {number}")))
    assert len(llm_server.requests()) == 1
    loop.run(new_client(waits, breaker=breaker).ask(call(llm_server, "well")))


def test_a_key_file_serves_each_provider_with_its_own(
    llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits
) -> None:
    keys = Keys(by_name={"OPENAI_API_KEY": Secret("for-openai"), "ANTHROPIC_API_KEY": Secret("for-anthropic")})
    client = new_client(waits, keys=keys)
    loop.run(client.ask(call(llm_server, "well", key=Secret(""))))
    asked = call(llm_server, "well", key=Secret(""), model="anthropic/well", api_base=llm_server.anthropic)
    loop.run(client.ask(asked))
    openai, anthropic = llm_server.requests()
    assert openai["headers"]["authorization"] == "Bearer for-openai"
    assert anthropic["headers"]["x-api-key"] == "for-anthropic"


def test_threads_share_the_concurrency(llm_server: LlmServer, loop: BackgroundEventLoop) -> None:
    client = ModelClient(rate_limiter=RateLimiter(RateLimits(concurrency=3)))

    def one(number: int) -> str:
        return loop.run(client.ask(call(llm_server, "well", f"{TEXT} {number}"))).text

    with ThreadPoolExecutor(10) as threads:
        assert all(threads.map(one, range(30)))
    assert len(llm_server.requests()) == 30
    assert max(request["at_once"] for request in llm_server.requests()) <= 3


def test_a_cancelled_request_is_counted_as_sent(llm_server: LlmServer, loop: BackgroundEventLoop, waits: Waits) -> None:
    client = new_client(waits)

    async def leave() -> None:
        task = asyncio.create_task(client.ask(call(llm_server, "hang")))
        while not llm_server.requests():
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    loop.run(leave())
    assert (client.spend.spent.requests, client.spend.spent.failures) == (1, 1)
    assert client.spend.spent.tokens_sent > 0
