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

No text of these holds a key: what a provider says is scrubbed before it gets here.
"""

from __future__ import annotations


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
