"""Statistics over sessions: cuts of one session are not independent, so a session is the unit.

Paired bootstrap as in Efron and Tibshirani, "An Introduction to the Bootstrap" (1993): percentile intervals.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

LOW, HIGH = 0.025, 0.975


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over sessions with its standard error (0 where there is one session)."""

    value: float
    error: float
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A mean difference over sessions with its 95 % interval and its two-sided p-value."""

    value: float
    low: float
    high: float
    p: float
    sessions: int


def by_session(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The mean of each session's values."""
    found: dict[str, list[float]] = {}
    for session, value in values:
        found.setdefault(session, []).append(value)
    return {session: fmean(several) for session, several in found.items()}


def macro(values: Iterable[tuple[str, float]]) -> Mean | None:
    """The mean of the sessions' means. None where there is nothing."""
    means = list(by_session(values).values())
    if not means:
        return None
    error = stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    return Mean(value=fmean(means), error=error, sessions=len(means))


def paired(ours: Mapping[str, float], theirs: Mapping[str, float], resamples: int, seed: str) -> Difference | None:
    """Ours minus theirs over the sessions that both have. Same seed, same result.

    p is twice the smaller share of resamples on one side of zero, never below 1 / resamples.
    """
    differences = [ours[session] - theirs[session] for session in sorted(ours.keys() & theirs.keys())]
    if not differences:
        return None
    drawn = _resampled(differences, resamples, seed)
    below = sum(mean <= 0 for mean in drawn) / resamples
    above = sum(mean >= 0 for mean in drawn) / resamples
    return Difference(
        value=fmean(differences),
        low=_quantile(drawn, LOW),
        high=_quantile(drawn, HIGH),
        p=min(1.0, max(2 * min(below, above), 1 / resamples)),
        sessions=len(differences),
    )


def _resampled(values: Sequence[float], resamples: int, seed: str) -> list[float]:
    """The sorted means of this many draws with replacement."""
    chance = random.Random(seed)  # noqa: S311 -- statistics, not secrets
    size = len(values)
    return sorted(sum(chance.choices(values, k=size)) / size for _ in range(resamples))


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
