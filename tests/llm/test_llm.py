"""Real calls through litellm to a provider on the loopback interface; each fault of a provider by its name."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from llm_server.client import LlmServer

from compactor_cli.llm import llm
from compactor_cli.llm import model_calls as f
from compactor_cli.llm.llm import batch_reply, failure_of
from compactor_cli.llm.model_calls import Call, ChatMessage, Reply, Secret, Speaker
from compactor_cli.llm.model_client import BackgroundEventLoop

KEY = "sk-loopback-0123456789abcdef"
PROVIDERS = ("openai", "anthropic")
SYSTEM = "Summarise the transcript under these headings.\n## Task Context\n## Active Files"
TRANSCRIPT = "Please fix src/login/session.py\nI edited src/login/session.py line 4711\nTests pass: 132 passed\n" * 5


@pytest.fixture(scope="module")
def loop() -> Iterator[BackgroundEventLoop]:
    with closing(BackgroundEventLoop(at_end=llm.close)) as running:
        yield running


def ask(server: LlmServer, loop: BackgroundEventLoop, provider: str, name: str, **changes: object) -> Reply:
    values: dict[str, object] = {
        "model": f"{provider}/{name}",
        "api_base": getattr(server, provider),
        "key": Secret(KEY),
        "messages": (
            ChatMessage(speaker=Speaker.SYSTEM, text=SYSTEM),
            ChatMessage(speaker=Speaker.USER, text=TRANSCRIPT),
        ),
        "max_tokens": 400,
        "timeout_seconds": 20.0,
        **changes,
    }
    return loop.run(llm.complete(Call(**values)))  # type: ignore[arg-type]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_good_reply_comes_with_what_it_used(llm_server: LlmServer, loop: BackgroundEventLoop, provider: str) -> None:
    reply = ask(llm_server, loop, provider, "well")
    assert "## Task Context" in reply.text
    assert "src/login/session.py" in reply.text
    assert reply.finish_reason == "stop"
    assert reply.input_tokens > 50
    assert reply.output_tokens > 5
    assert reply.cost_usd is None  # nobody knows the price of a model of this name
    assert not reply.has_tool_call


@pytest.mark.parametrize("provider", PROVIDERS)
def test_one_request_is_sent_with_the_texts_the_key_and_no_tools(
    llm_server: LlmServer, loop: BackgroundEventLoop, provider: str
) -> None:
    ask(llm_server, loop, provider, "well")
    (request,) = llm_server.requests()
    body = request["body"]
    assert TRANSCRIPT.strip() in str(body["messages"][-1]["content"]).replace("\\n", "\n")
    assert SYSTEM in str(body).replace("\\n", "\n")
    assert KEY in (request["headers"].get("x-api-key", "") + request["headers"].get("authorization", ""))
    assert body["max_tokens"] == 400
    assert body["temperature"] == 0
    assert "tools" not in body


def test_a_known_model_has_its_price_and_the_providers_cache_is_counted(
    llm_server: LlmServer, loop: BackgroundEventLoop
) -> None:
    long = (
        ChatMessage(speaker=Speaker.SYSTEM, text=SYSTEM + TRANSCRIPT * 40),
        ChatMessage(speaker=Speaker.USER, text="hello"),
    )
    first = ask(llm_server, loop, "anthropic", "claude-haiku-4-5", messages=long)
    second = ask(llm_server, loop, "anthropic", "claude-haiku-4-5", messages=long)
    assert first.cost_usd
    assert not first.cached_tokens
    assert second.cached_tokens > 1_000
    assert second.cost_usd
    assert second.cost_usd < first.cost_usd / 2
    marked = llm_server.requests()[0]["body"]["system"]
    assert marked[0]["cache_control"] == {"type": "ephemeral"}


FAULTS = (
    ("rate_limit", f.RateLimited),
    ("server_error", f.ServerTrouble),
    ("overloaded", f.ServerTrouble),
    ("broken", f.Broken),
    ("garbage", f.Broken),
    ("invalid_utf8", f.Broken),
    ("context.100", f.ContextTooLong),
    ("auth", f.Unusable),
    ("quota", f.Unusable),
    ("not_found", f.UnknownModel),
    ("bad_request", f.Refused),
    ("policy", f.Refused),
)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("name", "kind"), FAULTS, ids=[name for name, _ in FAULTS])
def test_a_fault_becomes_its_failure_after_one_request(
    llm_server: LlmServer,
    loop: BackgroundEventLoop,
    provider: str,
    name: str,
    kind: type[f.ModelFailure],
) -> None:
    with pytest.raises(f.ModelFailure) as caught:
        ask(llm_server, loop, provider, name)
    assert type(caught.value) is kind, caught.value.reason
    assert len(llm_server.requests()) == 1
    assert "\n" not in caught.value.reason


def test_a_reply_of_another_shape_is_no_traceback_to_the_user(llm_server: LlmServer, loop: BackgroundEventLoop) -> None:
    with pytest.raises(f.Broken, match=r"^Invalid response object\W*$"):
        ask(llm_server, loop, "openai", "listed")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_reply_in_time(llm_server: LlmServer, loop: BackgroundEventLoop, provider: str) -> None:
    with pytest.raises(f.TimedOut, match=r"no reply within 0\.5 seconds"):
        ask(llm_server, loop, provider, "hang", timeout_seconds=0.5)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nobody_listens(llm_server: LlmServer, loop: BackgroundEventLoop, provider: str) -> None:
    with pytest.raises(f.ServerTrouble):
        ask(llm_server, loop, provider, "well", api_base="http://127.0.0.1:9")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_retry_after_is_read(llm_server: LlmServer, loop: BackgroundEventLoop, provider: str) -> None:
    with pytest.raises(f.RateLimited) as caught:
        ask(llm_server, loop, provider, "rate_limit.1.7")
    assert caught.value.retry_after_seconds == 7


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("7", 7, 7),
        ("0.5", 0.5, 0.5),
        ("in an hour", 3_000, 3_601),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        *((value, 0, 0) for value in ("-3", "nan", "inf", "soon", "", "Wed, 99 Foo 20155 07:28:00 GMT")),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date(value: str, least: float, most: float) -> None:
    if value == "in an hour":  # from when the test runs, not from when it was collected
        value = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    error = RuntimeError("slow down")
    error.status_code = 429  # type: ignore[attr-defined]
    error.litellm_response_headers = {"retry-after": value}  # type: ignore[attr-defined]
    failure = failure_of(error, Call(model="openai/x", messages=(), max_tokens=1))
    assert isinstance(failure, f.RateLimited)
    assert least <= failure.retry_after_seconds <= most


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_beyond_the_limit_is_given_up(llm_server: LlmServer, loop: BackgroundEventLoop, provider: str) -> None:
    with pytest.raises(f.Refused, match="longer than 10 bytes"):
        ask(llm_server, loop, provider, "well", max_reply_bytes=10)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", ["endless", "endless.1.1"], ids=["plain", "packed"])
def test_a_reply_as_a_whole_is_not_read_without_end(
    llm_server: LlmServer, loop: BackgroundEventLoop, provider: str, name: str
) -> None:
    with pytest.raises(f.Refused, match="longer than 1,000 bytes"):
        ask(llm_server, loop, provider, name, max_reply_bytes=1_000)
    deadline = time.monotonic() + 20
    while not (sent := llm_server.requests("sent")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sent[-1]["body"] < 16 << 20


def test_counts_that_cannot_be_are_none() -> None:
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "x",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "well"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": -5, "completion_tokens": -7, "total_tokens": -12},
    }
    reply = batch_reply(Call(model="openai/gpt-4o-mini", messages=(), max_tokens=1), body)
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("well", 0, 0)
    assert reply.cost_usd is None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_replies_that_are_no_summary_are_stated_as_they_are(
    llm_server: LlmServer, loop: BackgroundEventLoop, provider: str
) -> None:
    assert ask(llm_server, loop, provider, "empty").text == ""
    assert ask(llm_server, loop, provider, "cut_off").finish_reason == "length"
    assert ask(llm_server, loop, provider, "refusal").finish_reason == "content_filter"
    assert ask(llm_server, loop, provider, "chat").text.startswith("Sure!")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_tool_call_is_noticed(llm_server: LlmServer, loop: BackgroundEventLoop, provider: str) -> None:
    assert ask(llm_server, loop, provider, "tool_call").has_tool_call


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_key_shows_in_no_failure_traceback_log_or_output(
    llm_server: LlmServer,
    loop: BackgroundEventLoop,
    provider: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(f.Refused) as caught:
        ask(llm_server, loop, provider, "auth")
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert KEY not in shown + repr(caught.value) + caplog.text + "".join(capfd.readouterr())
    assert caught.value.__context__ is None


def test_a_key_from_the_environment_does_not_show_either(
    llm_server: LlmServer, loop: BackgroundEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "environment-0123456789")
    with pytest.raises(f.Refused) as caught:
        ask(llm_server, loop, "openai", "auth", key=Secret(""))
    assert "environment-0123456789" in llm_server.requests()[0]["headers"]["authorization"]
    assert "environment-0123456789" not in caught.value.reason


def test_a_server_of_ones_own_needs_no_key(
    llm_server: LlmServer, loop: BackgroundEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert ask(llm_server, loop, "openai", "well", key=Secret("")).text


def test_a_missing_key_is_refused_without_a_request(
    llm_server: LlmServer, loop: BackgroundEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(f.Refused):
        ask(llm_server, loop, "anthropic", "well", key=Secret(""), api_base="")
    assert not llm_server.requests()


def test_a_lone_surrogate_can_be_sent(llm_server: LlmServer, loop: BackgroundEventLoop) -> None:
    said = (ChatMessage(speaker=Speaker.USER, text="see src/a\ud800.py"),)
    assert ask(llm_server, loop, "openai", "well", messages=said).text
    assert llm_server.requests()[0]["body"]["messages"][0]["content"] == "see src/a?.py"


def test_litellm_talks_to_nobody_else_and_says_nothing(llm_server: LlmServer) -> None:
    code = """
import socket, sys
from contextlib import closing
hosts = set()
real = socket.getaddrinfo
def look(host, *rest, **more):
    hosts.add(host)
    return real(host, *rest, **more)
socket.getaddrinfo = look
from compactor_cli.llm import llm
from compactor_cli.llm.model_calls import Call, ChatMessage, Secret, Speaker
from compactor_cli.llm.model_client import BackgroundEventLoop
assert "litellm" not in sys.modules
said = (ChatMessage(speaker=Speaker.USER, text="see src/a.py"),)
with closing(BackgroundEventLoop(at_end=llm.close)) as loop:
    for model, base in (("openai/well", sys.argv[1]), ("anthropic/well", sys.argv[2])):
        loop.run(llm.complete(Call(model=model, api_base=base, key=Secret("k"), messages=said, max_tokens=9)))
print(sorted(map(str, hosts - {"127.0.0.1"})))
"""
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", code, llm_server.openai, llm_server.anthropic]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
