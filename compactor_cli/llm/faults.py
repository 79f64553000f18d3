"""Faults: what litellm raises, as one of this package's failures, in one line without keys."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from compactor_cli.llm.failures import (
    Broken,
    ContextTooLong,
    ModelFailure,
    RateLimited,
    Refused,
    ServerTrouble,
    TimedOut,
    Unusable,
)
from compactor_cli.llm.keys import environment_secrets
from compactor_cli.llm.model_calls import Call
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


def failure_of(error: Exception, call: Call) -> ModelFailure:
    """The failure that an exception of litellm stands for, recognised by its name and status, not by its class."""
    names = {kind.__name__ for kind in type(error).__mro__}
    status = _status(error)
    reason = scrubbed(_message_of(error), call)
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


def _message_of(error: Exception) -> str:
    """What the provider said, without litellm's names in front of it."""
    return _PREFIX.sub("", str(error).strip()) or type(error).__name__


def _status(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


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
    """Seconds from now on that a number of seconds or a date means, never negative; None for anything else."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _is_broken(error: Exception) -> bool:
    reason_text = str(error).lower()
    causes = {type(cause).__name__ for cause in _causes(error)}
    return any(word in reason_text for word in _BROKEN_WORDS) or bool(causes.intersection(_BROKEN_CAUSES))


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
