"""Spend: what a run has sent and paid, and the limits that stop it before the request that would pass them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from enum import StrEnum

from compactor_cli.llm.failures import LimitReached
from compactor_cli.llm.model_calls import Call, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendLimits:
    """The most that a run may use; 0: no limit. Retries count like any other request."""

    cost_usd: float = 0.0
    requests: int = 0
    tokens_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a run has used.

    ``requests`` are those really sent, ``failures`` among them, and ``retries``: what was asked again, because a
    request failed or its reply was refused. ``tokens_sent`` includes failed requests, by estimate; ``input_tokens``,
    ``output_tokens`` and ``cached_tokens`` are what the provider
    reported. ``unpriced`` replies are of models whose price is not known; ``cost_usd`` does not include them.
    ``cache_hits`` were answered from the reply cache and would have cost ``saved_usd``.
    """

    requests: int = 0
    retries: int = 0
    failures: int = 0
    tokens_sent: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    cache_hits: int = 0
    saved_usd: float = 0.0


class Charge(StrEnum):
    """Whether a failed request may have to be paid for."""

    NONE = "none"
    POSSIBLE = "possible"


class Try(StrEnum):
    """Whether a request is the first for what is asked."""

    FIRST = "first"
    AGAIN = "again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The most that one request may use, set aside until it is settled."""

    tokens: int
    cost_usd: float


class Spend:
    """The account of a run, shared by all its threads.

    Each request is reserved before it is sent and settled after, so the limits hold with any number of
    requests under way. A run never passes ``SpendLimits.cost_usd`` by more than the error of the token estimates.
    """

    def __init__(self, limits: SpendLimits | None = None) -> None:
        self._limits = limits or SpendLimits()
        self._lock = threading.Lock()
        self._spent = Spent()
        self._held_tokens = 0
        self._held_usd = 0.0

    @property
    def spent(self) -> Spent:
        """What was used so far."""
        with self._lock:
            return self._spent

    def reserve(self, call: Call, which: Try = Try.FIRST) -> Reservation:
        """Set aside what a request may use, and count it. Raises `LimitReached`; then nothing is counted."""
        tokens = call.expected_input_tokens
        price = call.known_price
        if price is None and self._limits.cost_usd:
            raise LimitReached(f"the price of {call.model} is not known, so a limit on cost cannot be kept")
        cost_usd = price.cost_usd(input_tokens=tokens, output_tokens=call.max_tokens) if price else 0.0
        with self._lock:
            self._check(tokens, cost_usd)
            self._held_tokens += tokens
            self._held_usd += cost_usd
            self._count(requests=1, retries=int(which is Try.AGAIN))
        return Reservation(tokens=tokens, cost_usd=cost_usd)

    def settle(self, reservation: Reservation, reply: Reply) -> None:
        """The request was answered: count what it really used."""
        with self._lock:
            self._free(reservation)
            self._count(
                tokens_sent=reply.input_tokens or reservation.tokens,
                input_tokens=reply.input_tokens,
                output_tokens=reply.output_tokens,
                cached_tokens=reply.cached_tokens,
                cost_usd=reply.cost_usd or 0.0,
                unpriced=int(reply.cost_usd is None),
            )

    def failed(self, reservation: Reservation, charge: Charge = Charge.NONE) -> None:
        """The request failed: its prompt was sent; its price is counted in full where it may be charged."""
        with self._lock:
            self._free(reservation)
            cost_usd = reservation.cost_usd if charge is Charge.POSSIBLE else 0.0
            self._count(failures=1, tokens_sent=reservation.tokens, cost_usd=cost_usd)

    def hit(self, reply: Reply) -> None:
        """A call was answered from the reply cache."""
        with self._lock:
            self._count(cache_hits=1, saved_usd=reply.cost_usd or 0.0)

    def _check(self, tokens: int, cost_usd: float) -> None:
        limits, spent = self._limits, self._spent
        if limits.requests and spent.requests + 1 > limits.requests:
            raise LimitReached(f"the limit of {limits.requests} requests is reached")
        if limits.tokens_sent and spent.tokens_sent + self._held_tokens + tokens > limits.tokens_sent:
            raise LimitReached(f"the next request would pass the limit of {limits.tokens_sent} tokens sent")
        if limits.cost_usd and spent.cost_usd + self._held_usd + cost_usd > limits.cost_usd:
            raise LimitReached(f"the next request could pass the limit of {limits.cost_usd:g} USD")

    def _free(self, reservation: Reservation) -> None:
        self._held_tokens -= reservation.tokens
        self._held_usd -= reservation.cost_usd

    def _count(self, **more: float) -> None:
        now = {name: getattr(self._spent, name) + amount for name, amount in more.items()}
        self._spent = replace(self._spent, **now)
