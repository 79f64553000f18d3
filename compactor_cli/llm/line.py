"""Line: the way to the models. Everything around one call, for all transcripts of a run."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from compactor_cli.llm import llm
from compactor_cli.llm.breaker import Breaker
from compactor_cli.llm.calls import NO_SECRET, Call, Reply, Secret, Wanted
from compactor_cli.llm.failures import Broken, Passing, TimedOut
from compactor_cli.llm.keys import NO_KEYS, Keys
from compactor_cli.llm.ladder import Ladder, Retries
from compactor_cli.llm.pace import Pace, Sleep, sleep_seconds
from compactor_cli.llm.redact import Redactor
from compactor_cli.llm.replies import ReplyCache
from compactor_cli.llm.spend import Charge, Spend, Try
from compactor_cli.model.events import Answered, Asked, Listener

Complete = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """The model that is asked when the first gives no reply."""

    model: str
    api_base: str = ""
    key: Secret = NO_SECRET


class Line:
    """Answers calls from the reply cache or from a model, within the limits and at the pace of the run.

    In this order: redaction, cache, breaker, pace, limits, request; on failure the ladder. One for all
    transcripts of a run; `ask` belongs to one event loop (`Loop`).
    """

    def __init__(
        self,
        *,
        spend: Spend | None = None,
        pace: Pace | None = None,
        retries: Retries | None = None,
        breaker: Breaker | None = None,
        cache: ReplyCache | None = None,
        keys: Keys = NO_KEYS,
        fallback: Fallback | None = None,
        complete: Complete = llm.complete,
        sleep: Sleep = sleep_seconds,
        tell: Listener | None = None,
    ) -> None:
        self.spend = spend or Spend()
        self.breaker = breaker or Breaker("the model")
        self._pace = pace or Pace()
        self._retries = retries or Retries()
        self._ladder = Ladder(self._retries, sleep=sleep)
        self._cache = cache
        self._keys = keys
        self._fallback = fallback
        self._complete = complete
        self._tell = tell

    async def ask(self, call: Call, redactor: Redactor | None = None) -> Reply:
        """The reply to a call. ``redactor``: that of the transcript; None leaves secrets in, by the user's wish.

        Texts already redacted stay as they are; redact a whole transcript in its order first, so that the numbers
        of its placeholders do not depend on which call comes first. Raises `ContextTooLong`, `GaveUp`,
        `LimitReached` or `CircuitOpen`; no failure shows a key.
        """
        call = redacted(call, redactor)

        async def send(asked: Call, which: Try) -> Reply:
            return await self._answer(asked, which, redactor)

        return await self._ladder.climb((call, *self._fallbacks(call)), send)

    def fallback_of(self, call: Call) -> Call | None:
        """The same call for the fallback model: for a caller whose spans the first model finds too long."""
        return next(iter(self._fallbacks(call)), None)

    def _fallbacks(self, call: Call) -> tuple[Call, ...]:
        other = self._fallback
        if other is None or call.wanted is Wanted.VECTORS:
            return ()
        if (other.model, other.api_base) == (call.model, call.api_base):
            return ()
        # Extra parameters are meant for the first model; another provider may refuse them.
        return (replace(call, model=other.model, api_base=other.api_base, key=other.key, extra={}),)

    async def _answer(self, call: Call, which: Try, redactor: Redactor | None) -> Reply:
        stored = self._cache.get(call) if self._cache and which is Try.FIRST else None
        if stored:
            self.spend.hit(stored)
            self._told(call, Answered.CACHED, time.monotonic(), stored)
            return stored
        reply = await self._send(call, which)
        if redactor and call.wanted is Wanted.TEXT:
            reply = replace(reply, text=redactor.redact(reply.text))
        if self._cache and reply.text and reply.finish_reason == "stop" and not reply.has_tool_call:
            self._cache.put(call, reply)
        return reply

    async def _send(self, call: Call, which: Try) -> Reply:
        async with self._pace.turn(call.expected_input_tokens + call.max_tokens):
            self.breaker.check()
            reservation = self.spend.reserve(call, which)
            started = time.monotonic()
            try:
                reply = await self._complete(call if call.key else replace(call, key=self._keys.for_model(call.model)))
            except BaseException as failure:  # a cancelled request was sent as well
                charge = Charge.NONE if _is_free(failure) else Charge.POSSIBLE
                self.spend.failed(reservation, charge)
                self._slow_down(failure)
                self._told(call, Answered.FAILED, started, error=getattr(failure, "reason", type(failure).__name__))
                raise
            self.spend.settle(reservation, reply)
            self._told(call, Answered.BY_MODEL, started, reply)
            return reply

    def _told(self, call: Call, how: Answered, started: float, reply: Reply | None = None, error: str = "") -> None:
        if self._tell is None:
            return
        is_new = reply is not None and how is Answered.BY_MODEL
        self._tell(
            Asked(
                transcript=call.about,
                model=call.model,
                reply=how,
                input_tokens=reply.input_tokens if reply else 0,
                output_tokens=reply.output_tokens if reply else 0,
                cost_usd=reply.cost_usd if reply and is_new else 0.0,
                seconds=time.monotonic() - started,
                error=error,
            )
        )

    def _slow_down(self, failure: BaseException) -> None:
        """Retry-After is meant for all requests, not only for the one that was told."""
        if isinstance(failure, Passing) and failure.retry_after_seconds <= self._retries.most_retry_after_seconds:
            self._pace.pause(failure.retry_after_seconds)


def redacted(call: Call, redactor: Redactor | None) -> Call:
    """The call as it is sent."""
    if redactor is None:
        return call
    return replace(call, messages=tuple(replace(said, text=redactor.redact(said.text)) for said in call.messages))


def _is_free(failure: BaseException) -> bool:
    """Whether the provider did not begin to answer."""
    return isinstance(failure, Exception) and not isinstance(failure, TimedOut | Broken)
