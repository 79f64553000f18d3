"""The only module that imports litellm, when the first call is made.

litellm is set up to fetch no tables from the network, to read no ``.env``, to run no callbacks and to log nothing;
retries are left to `model_client`. Every error becomes one of the failures in `model_calls`, in one line without keys.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import sys
import time
import warnings
from array import array
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any

from compactor_cli.llm import model_calls
from compactor_cli.llm.model_calls import Broken, Call, ModelFailure, Refused, Reply, TimedOut, Unusable, Wanted
from compactor_cli.llm.redact import Redactor
from compactor_cli.model.value import dataclass

REASON_CHARS = 300
# Errors of a reply that began and cannot be read to its end: their text, or the class of a cause. litellm itself gives
# them the status 500.
_BROKEN_WORDS = ("codec can't decode", "json response", "invalid response", "not completed", "not enough data")
_BROKEN_CAUSES = frozenset({"RemoteProtocolError", "ReadError", "ClientPayloadError", "ServerDisconnectedError"})
# Names of exceptions in front of a message: `tides.RateError: TidesException - `.
_PREFIX = re.compile(r"^(?:[\w.]+(?:Error|Exception|Timeout)\s*[:-]\s*)+")
_TRACEBACK = "Traceback (most recent call last)"
# A key that a provider has masked itself: `sk-ti****de`.
_MASKED = re.compile(r"\S*\*{3,}\S*")


def failure_of(error: Exception, call: Call) -> ModelFailure:
    """The failure that an exception of litellm stands for, recognised by its name and status, not by its class."""
    names = {kind.__name__ for kind in type(error).__mro__}
    status = found if isinstance(found := getattr(error, "status_code", None), int) else 0
    # The provider's words, without litellm's names in front of them and its own calls after them.
    text = _PREFIX.sub("", str(error).partition(_TRACEBACK)[0].strip())
    reason = scrubbed(text or type(error).__name__, call)
    if "ContextWindowExceededError" in names or status == 413:
        return model_calls.ContextTooLong(reason)
    if "Timeout" in names or "APITimeoutError" in names:
        return TimedOut(f"no reply within {call.timeout_seconds:g} seconds")
    if status == 429:
        if "insufficient_quota" in f"{error} {getattr(error, 'body', '')}":
            return Unusable(reason)
        return model_calls.RateLimited(reason, retry_after_seconds=_retry_after(error))
    causes: dict[int, str] = {}
    cause: BaseException | None = error
    while cause is not None and id(cause) not in causes:
        causes[id(cause)] = type(cause).__name__
        cause = cause.__cause__ or cause.__context__
    words = str(error).lower()
    if any(word in words for word in _BROKEN_WORDS) or not _BROKEN_CAUSES.isdisjoint(causes.values()):
        return Broken(reason)
    if status >= 500 or status in (408, 409, 425):  # timeout, conflict, too early: asking again is of use
        return model_calls.ServerTrouble(reason, retry_after_seconds=_retry_after(error))
    if status == 404:
        return model_calls.UnknownModel(reason)
    if status in (401, 403):
        return Unusable(reason)
    return Refused(reason) if status else Broken(f"{type(error).__name__}: {reason}")


def scrubbed(text: str, call: Call) -> str:
    """One line of at most 300 characters, without this call's key, keys of the environment or what looks like one."""
    secrets = (call.key, *model_calls.environment_secrets())
    clean = Redactor(secret.reveal() for secret in secrets if secret).redact(text)
    clean = " ".join(_MASKED.sub("[REDACTED]", clean).split())
    return clean if len(clean) <= REASON_CHARS else clean[: REASON_CHARS - 1] + "…"


def _retry_after(error: Exception) -> float:
    """Seconds from the provider's header, which may be a date (RFC 9110, 10.2.3); 0 where there is none."""
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        value = (headers or {}).get("retry-after") or (headers or {}).get("llm_provider-retry-after")
        seconds = _seconds(str(value)) if value else None
        if seconds is not None:
            return seconds
    return 0.0


def _seconds(value: str) -> float | None:
    """Seconds from now that a header's value (seconds or a date) names, never negative; None for anything else."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


# Read by litellm when it is imported (the first two) or makes its first call to Anthropic.
_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "httpcore", "openai", "asyncio")
_WARNERS = r"(?:litellm|pydantic|openai|aiohttp|httpx)(?:\.|$)"
# Anthropic caches a prompt's beginning only where it is marked, and nothing shorter than about 1,024 tokens.
_MARKED_FROM_CHARS = 4_000


async def complete(call: Call) -> Reply:
    """One request to a model, without retries. Raises the failures of `model_calls`; none of them shows a key."""
    import asyncio

    litellm = _litellm()
    is_bounded = call.wanted is Wanted.TEXT and call.max_reply_bytes
    body = _Body(most_bytes=call.max_reply_bytes * _BODY_FACTOR + _BODY_EXTRA_BYTES if is_bounded else 0)
    _BODY.set(body)
    failure: ModelFailure
    try:
        # litellm's own timeout is for each read: a reply that drips in would never end.
        async with asyncio.timeout(call.timeout_seconds):
            # In a function of their own: the locals of this one, which a traceback may show, hold no key.
            return await (_reply if call.wanted is Wanted.TEXT else _vectors)(litellm, call)
    except ModelFailure:
        raise
    except TimeoutError:
        failure = TimedOut(f"no reply within {call.timeout_seconds:g} seconds")
    except Exception as error:
        failure = _too_large(call.max_reply_bytes) if body.is_too_large else failure_of(error, call)
    # Raised here, not above: litellm's error would be its context, with the request in it.
    raise failure


@dataclass(slots=True, kw_only=True)
class _Body:
    """The limit on the unpacked body of a call's response."""

    most_bytes: int  # 0: no limit
    is_too_large: bool = False  # whether it was longer; set while it is read


_BODY: ContextVar[_Body | None] = ContextVar("body", default=None)
# How much larger than its text the body of a reply may be: JSON's escapes (six characters for one), the reasoning
# before the text, the reported counts.
_BODY_FACTOR = 8
_BODY_EXTRA_BYTES = 1 << 20


def _bound_bodies() -> None:
    """Patch litellm so that every HTTP client it makes reads no more of a response than the call's limit allows."""
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    make: Callable[..., Any] = AsyncHTTPHandler.create_async_transport

    async def respond(send: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
        response = await send(request)
        body = _BODY.get()
        if body is None or not body.most_bytes:
            return response
        content = bytearray()
        try:
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > body.most_bytes:
                    body.is_too_large = True
                    raise ValueError("the body of the response is too long")
        finally:
            await response.aclose()
        packed = ("content-encoding", "content-length", "transfer-encoding")
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in packed]
        made = {"content": bytes(content), "request": request, "extensions": response.extensions}
        return type(response)(response.status_code, headers=headers, **made)

    def bounded(*arguments: Any, **options: Any) -> Any:
        transport = make(*arguments, **options)
        if transport is not None:
            transport.handle_async_request = partial(respond, transport.handle_async_request)
        return transport

    AsyncHTTPHandler.create_async_transport = staticmethod(bounded)  # type: ignore[method-assign]


# The statuses of a batch job that has ended, in the words of the interface.
ENDED = ("completed", "failed", "expired", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLook:
    """A provider's batch job as it is now."""

    status: str  # in the provider's words, see `ENDED`
    files: tuple[str, ...] = ()  # ids of its files of results and of errors


class Batches:
    """Batch jobs at one of ``PROVIDERS``, which have the interface of OpenAI.

    ``template``: a call whose model, server, key and timeout hold for all requests; its messages are ignored. Raises
    the failures of `model_calls`.
    """

    PROVIDERS = ("openai", "azure", "hosted_vllm", "litellm_proxy")

    def __init__(self, template: Call) -> None:
        self._template = template
        self._common = {
            "custom_llm_provider": model_calls.provider_of(template.model),
            "timeout": template.timeout_seconds,
            **_server(template),
        }

    def body(self, call: Call) -> dict[str, Any]:
        """The request of a call as a line of a job holds it, without parameters that the model does not know."""
        _, _, name = call.model.partition("/")
        parameters = _litellm().utils.get_optional_params(
            model=name or call.model,
            custom_llm_provider=self._common["custom_llm_provider"],
            max_tokens=call.max_tokens,
            temperature=call.temperature,
            drop_params=True,
        )
        known = {key: value for key, value in parameters.items() if key not in ("stream", "extra_body")}
        return {"model": name or call.model, "messages": _messages(call), **known, **call.extra}

    def begin(self, requests: Path, mark: str) -> str:
        """Upload the requests, begin a job and return its id. The provider keeps ``mark`` with it, for `find`."""
        with requests.open("rb") as file:
            sent = self._do("create_file", file=(requests.name, file), purpose="batch")
        wanted = {"completion_window": "24h", "endpoint": "/v1/chat/completions", "metadata": {"compact": mark}}
        return str(self._do("create_batch", input_file_id=sent.id, **wanted).id)

    def find(self, mark: str) -> str:
        """The id of the newest job with this mark; empty if there is none or the provider does not list jobs."""
        try:
            jobs = self._do("list_batches", limit=100).data
        except ModelFailure:
            return ""
        return next((str(job.id) for job in jobs if (job.metadata or {}).get("compact") == mark), "")

    def look(self, job: str) -> BatchLook:
        """The present state of a job."""
        found = self._do("retrieve_batch", batch_id=job)
        files = (found.output_file_id, getattr(found, "error_file_id", None))
        return BatchLook(status=str(found.status), files=tuple(str(file) for file in files if file))

    def lines(self, file: str) -> Iterator[bytes]:
        """The lines of a file of results."""
        yield from self._do("file_content", file_id=file).content.splitlines()

    def _do(self, name: str, **run_options: Any) -> Any:
        litellm = _litellm()
        try:
            return getattr(litellm, name)(**run_options, **self._common)
        except Exception as error:
            failure = failure_of(error, self._template)
        raise failure


def batch_reply(call: Call, body: Mapping[str, Any]) -> Reply:
    """The reply that a result of a job holds. Raises `Broken` for what cannot be read."""
    try:
        return _read(call, _litellm().ModelResponse(**body))
    except ModelFailure:
        raise
    except Exception as error:
        reason = failure_of(error, call).reason
    raise Broken(reason)


def find_provider(model: str, api_base: str) -> str:
    """Who serves a model, as litellm knows; empty if it cannot. Imports litellm (2 to 5 seconds); sends nothing."""
    try:
        return str(_litellm().get_llm_provider(model, api_base=api_base or None)[1])
    except Exception:
        return ""


async def close() -> None:
    """Close the connections that litellm keeps; nothing if it was never imported."""
    litellm = sys.modules.get("litellm")
    if litellm is not None:
        await litellm.close_litellm_async_clients()


def _litellm() -> Any:
    """The module, set up on its first import (2 to 5 seconds)."""
    # A user can do nothing about what these libraries warn of. Set every time, as other code may reset the filters.
    warnings.filterwarnings("ignore", module=_WARNERS)
    if "litellm" in sys.modules and getattr(sys.modules["litellm"], "_compact_ready", False):
        return sys.modules["litellm"]
    os.environ.update(_ENVIRONMENT)
    import logging

    import litellm

    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    # A parameter that a model does not know (a temperature, for most that reason) is left out.
    litellm.drop_params = True
    for name in ("callbacks", "input_callback", "success_callback", "failure_callback", "service_callback"):
        setattr(litellm, name, [])
    _bound_bodies()
    litellm._compact_ready = True
    return litellm


async def _reply(litellm: Any, call: Call) -> Reply:
    parameters = {"max_tokens": call.max_tokens, "temperature": call.temperature, **_common(call)}
    answer = await litellm.acompletion(messages=_messages(call), **parameters)
    if answer is None or not answer.choices:
        raise Broken("the reply holds no message")
    return _read(call, answer)


def _too_large(max_bytes: int) -> Refused:
    return Refused(f"the reply is longer than {max_bytes:,} bytes (max-reply)")


async def _vectors(litellm: Any, call: Call) -> Reply:
    # As numbers: the client's own default is base64, which not every server knows.
    texts = [_sendable(one.text) for one in call.messages]
    answer = await litellm.aembedding(input=texts, encoding_format="float", **_common(call))
    data = sorted(answer.data or (), key=lambda item: item["index"])
    if [item["index"] for item in data] != list(range(len(call.messages))):
        raise Broken("the reply does not hold a vector for each text")
    usage = getattr(answer, "usage", None)
    return Reply(
        text=json.dumps([base64.b64encode(array("f", item["embedding"]).tobytes()).decode() for item in data]),
        model=call.model,
        input_tokens=_count(usage, "prompt_tokens"),
        cost_usd=_cost_usd(call, answer, usage, None),
    )


def _common(call: Call) -> dict[str, Any]:
    """The parameters that all calls have."""
    patience = {"timeout": call.timeout_seconds, "num_retries": 0, "max_retries": 0}
    return {"model": call.model, **patience, **call.extra, **_server(call)}


def _server(call: Call) -> dict[str, str]:
    """The server and key of a call; no key where litellm is to find it in the environment."""
    key = call.key.reveal()
    if not key and call.api_base and not any(map(os.environ.get, model_calls.environment_names(call.model))):
        key = "none"  # the user's own servers often want no key, but the client insists on one
    return {name: value for name, value in (("api_base", call.api_base), ("api_key", key)) if value}


def _sendable(text: str) -> str:
    """The text with lone surrogates replaced: they cannot be sent as UTF-8."""
    return text.encode(errors="replace").decode()


def _messages(call: Call) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    has_marks = model_calls.provider_of(call.model) == "anthropic"
    for one in call.messages:
        content: Any = _sendable(one.text)
        if has_marks and one.speaker is model_calls.Speaker.SYSTEM and len(content) >= _MARKED_FROM_CHARS:
            content = [{"type": "text", "text": content, "cache_control": {"type": "ephemeral"}}]
        messages.append({"role": one.speaker.value, "content": content})
    return messages


def _read(call: Call, answer: Any) -> Reply:
    choice = answer.choices[0]
    usage = getattr(answer, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    reply = Reply(
        text=_sendable(choice.message.content or ""),
        model=call.model,
        finish_reason=choice.finish_reason or "stop",
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached_tokens=_count(details, "cached_tokens"),
        has_tool_call=bool(choice.message.tool_calls),
        request_id=answer.id or "",
        cost_usd=_cost_usd(call, answer, usage, details),
    )
    if call.max_reply_bytes and len(reply.text.encode()) > call.max_reply_bytes:
        raise _too_large(call.max_reply_bytes)
    if not reply.output_tokens and not reply.text and not reply.input_tokens and not reply.has_tool_call:
        # What is left of a page of HTML or of broken events, read as a stream.
        raise Broken("the reply cannot be read")
    return reply


def _count(usage: Any, name: str) -> int:
    """A number of tokens that a provider reports; 0 for none, and for what cannot be one."""
    number = getattr(usage, name, 0)
    return number if isinstance(number, int) and number > 0 else 0


def _cost_usd(call: Call, answer: Any, usage: Any, details: Any) -> float | None:
    """The cost of a call: by the user's price, else litellm's own figure (it knows of surcharges), else by the table.

    None if the price is not known or the provider does not report the tokens.
    """
    known = (getattr(answer, "_hidden_params", None) or {}).get("response_cost")
    if known and known > 0 and not call.price:
        return float(known)
    price, sent, written = call.known_price, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if price is None or not sent:  # where the provider reports no usage, litellm makes one of zeros
        return None
    return price.cost_usd(input_tokens=sent, output_tokens=written, cached_tokens=_count(details, "cached_tokens"))
