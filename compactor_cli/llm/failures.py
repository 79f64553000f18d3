"""What can go wrong with a call of a model; each says whether asking again can help.

ModelFailure
├── Passing             asking again later can help
│   ├── RateLimited         the provider wants fewer requests (429)
│   ├── ServerTrouble       the provider or the way to it fails (5xx, overloaded, no connection)
│   ├── TimedOut            no reply within the time allowed
│   └── Broken              the reply broke off or cannot be read
├── ContextTooLong      the prompt does not fit the model: ask with less text
├── Refused             bad request, content policy: asking again is of no use
│   └── Unusable            wrong key, unknown model, no money: no other request would be answered either
├── GaveUp              every rung of the ladder failed: the last reason
├── LimitReached        a limit of the run (cost, requests, tokens) would be passed; nothing was sent
└── CircuitOpen         too many failures in a row: nothing is sent for now

No text of these holds a key: `failure_of` turns what litellm raises into one of them, in one line without keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compactor_cli.llm.calls import Call
from compactor_cli.llm.keys import environment_secrets
from compactor_cli.llm.redact import Redactor

REASON_CHARS = 300
TOO_LARGE = 413
# Asking again is of use although the status is not a server's: timeout, conflict, too early.
_PASSING_STATUS = (408, 409, 425)
# A reply was begun and cannot be read to its end. litellm gives these the status 500 of its own.
_BROKEN_WORDS = ("codec can't decode", "json response", "invalid response", "not completed", "not enough data")
_BROKEN_CAUSES = ("RemoteProtocolError", "ReadError", "ClientPayloadError", "ServerDisconnectedError")
# Wrong key, no permission, no such model or address.
_UNUSABLE_STATUS = (401, 403, 404)
# An account without money, told with the status of a rate limit.
_NO_MONEY = "insufficient_quota"
_PREFIX = re.compile(r"^(?:[\w.]+(?:Error|Exception|Timeout)\s*[:-]\s*)+")
_MASKED = re.compile(r"\S*\*{3,}\S*")


class ModelFailure(Exception):  # noqa: N818 -- named for what happened
    """A call of a model that gave no reply. ``reason`` is one line for people, without keys."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Passing(ModelFailure):
    """Asking again later can help, not before ``retry_after_seconds`` (0: the provider named no time)."""

    def __init__(self, reason: str, *, retry_after_seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds


class RateLimited(Passing):
    """The provider wants fewer requests or tokens per minute."""


class ServerTrouble(Passing):
    """The provider, or the way to it, fails."""


class TimedOut(Passing):
    """No reply within the time allowed. The provider may have charged for it."""


class Broken(Passing):
    """The reply broke off, or cannot be read. The provider may have charged for it."""


class ContextTooLong(ModelFailure):
    """The prompt is longer than the model reads."""


class Refused(ModelFailure):
    """The provider will not do this, however often it is asked."""


class Unusable(Refused):
    """The provider answers no request with this key to this model."""


class GaveUp(ModelFailure):
    """All attempts with all models failed. ``reason`` tells the last failure of each model."""


class LimitReached(ModelFailure):
    """A limit that the user set would be passed. Nothing was sent."""


class CircuitOpen(ModelFailure):
    """Too many failures in a row. Nothing was sent."""


def failure_of(error: Exception, call: Call) -> ModelFailure:
    """The failure that an exception of litellm stands for, recognised by its name and status, not by its class."""
    names = {kind.__name__ for kind in type(error).__mro__}
    status = _status(error)
    reason = scrubbed(_told(error), call)
    if "ContextWindowExceededError" in names or status == TOO_LARGE:
        return ContextTooLong(reason)
    if "Timeout" in names or "APITimeoutError" in names:
        return TimedOut(f"no reply within {call.timeout_seconds:g} seconds")
    if status == 429:
        if _NO_MONEY in str(error):
            return Unusable(reason)
        return RateLimited(reason, retry_after_seconds=_retry_after(error))
    if _is_broken(error):
        return Broken(reason)
    if status >= 500 or status in _PASSING_STATUS:
        return ServerTrouble(reason, retry_after_seconds=_retry_after(error))
    if status in _UNUSABLE_STATUS:
        return Unusable(reason)
    return Refused(reason) if status else Broken(f"{type(error).__name__}: {reason}")


def scrubbed(text: str, call: Call) -> str:
    """One line of at most 300 characters, without this call's key, keys of the environment or what looks like one."""
    secrets = (call.key, *environment_secrets())
    clean = Redactor(secret.reveal() for secret in secrets if secret).redact(text)
    clean = " ".join(_MASKED.sub("[REDACTED]", clean).split())
    return clean if len(clean) <= REASON_CHARS else clean[: REASON_CHARS - 1] + "…"


def _told(error: Exception) -> str:
    """What the provider said, without litellm's names in front of it."""
    return _PREFIX.sub("", str(error).strip()) or type(error).__name__


def _status(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def _retry_after(error: Exception) -> float:
    """Seconds from the provider's header, 0 where there is none (a date is not looked at; no provider sends one)."""
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        value = (headers or {}).get("retry-after") or (headers or {}).get("llm_provider-retry-after")
        try:
            return max(0.0, float(value)) if value else 0.0
        except ValueError:
            continue
    return 0.0


def _is_broken(error: Exception) -> bool:
    told = str(error).lower()
    causes = {type(cause).__name__ for cause in _causes(error)}
    return any(word in told for word in _BROKEN_WORDS) or bool(causes.intersection(_BROKEN_CAUSES))


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
