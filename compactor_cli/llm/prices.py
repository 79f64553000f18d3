"""Prices: what a call costs, from the table in litellm's wheel, read as a file (litellm is not imported)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from compactor_cli.model.errors import UsageError
from compactor_cli.plan.models import table_entry

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per token. ``cached_usd`` is for tokens that the provider has in its prompt cache."""

    input_usd: float
    output_usd: float
    cached_usd: float

    def cost_usd(self, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """The price of a call; ``cached_tokens`` are among ``input_tokens``."""
        fresh = max(0, input_tokens - cached_tokens)
        return fresh * self.input_usd + cached_tokens * self.cached_usd + output_tokens * self.output_usd


def read_price(text: str, place: str = "--price") -> Price | None:
    """A price as people write it: US dollars per million tokens, ``IN,OUT``; None for an empty text.

    Raises `UsageError`.
    """
    if not text:
        return None
    try:
        input_usd, output_usd = (float(part) / _MILLION for part in text.split(","))
    except ValueError:
        input_usd = output_usd = -1.0
    if not (0 <= input_usd < float("inf") and 0 <= output_usd < float("inf")):
        advice = "write US dollars per million tokens: --price 0.15,0.60"
        raise UsageError(f"“{text}” is no price", next_step=advice, place=place)
    return Price(input_usd=input_usd, output_usd=output_usd, cached_usd=input_usd)


@lru_cache(maxsize=64)
def price_of(model: str) -> Price | None:
    """The price of a model by its name in litellm's table (also without provider, date or mark); None if unknown."""
    entry = table_entry(model)
    input_usd, output_usd = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if not isinstance(input_usd, int | float) or not isinstance(output_usd, int | float):
        return None
    cached = entry.get("cache_read_input_token_cost")
    cached_usd = cached if isinstance(cached, int | float) else input_usd
    return Price(input_usd=input_usd, output_usd=output_usd, cached_usd=cached_usd)


def batch_price_of(model: str) -> Price | None:
    """The price within a provider's batch job, where the table has it; else the usual one, an upper bound."""
    entry, price = table_entry(model), price_of(model)
    input_usd, output_usd = (entry.get(f"{way}_cost_per_token_batches") for way in ("input", "output"))
    if price is None or not isinstance(input_usd, int | float) or not isinstance(output_usd, int | float):
        return price
    return Price(input_usd=input_usd, output_usd=output_usd, cached_usd=input_usd)
