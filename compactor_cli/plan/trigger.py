"""Trigger: whether a transcript is compacted, and how small it has to become.

Three ways, the first that is set:

- TARGET: a target is named. Compacted if the transcript is larger.
- PRESSURE: a window or a threshold is named. Compacted from ``compact_ratio`` of the window on, or as soon as
  ``tokens + reserve >= window``, or ``tokens >= threshold``, whichever comes first; to at most half of the size that
  starts it, so that there is room to work. From ``emergency_ratio`` on the tail and the summary are half as large.
- NATURAL: nothing is named. Compacted to what head, tail and summary take, if that saves enough.

The window of the model that the transcript itself names only serves to report the tier.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from compactor_cli.core.plan import Tier
from compactor_cli.core.settings import Settings, Trigger
from compactor_cli.plan.window import required_window_tokens, window_tokens


class Way(StrEnum):
    """What decided, see the module."""

    TARGET = "target"
    PRESSURE = "pressure"
    NATURAL = "natural"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether to compact. ``target_tokens`` 0: as large as head, tail and summary by the settings are."""

    way: Way
    compacts: bool
    reason: str
    target_tokens: int = 0
    tier: Tier = Tier.NONE
    window_tokens: int = 0


def decide(settings: Settings, *, tokens: int, base_tokens: int, model: str) -> Decision:
    """The decision about a transcript of ``tokens``; ``base_tokens`` is what a share as target is a share of.

    Raises `UsageError` if the window of the model that the settings name is not known.
    """
    trigger = settings.trigger
    named_window = named_window_tokens(trigger)
    window = named_window or window_tokens(model)
    tier = tier_of(trigger, tokens, window)
    if target := settings.target.of(base_tokens):
        sign = ">" if tokens > target else "<="
        reason = f"{tokens:,} tokens {sign} target {target:,}"
        return Decision(
            way=Way.TARGET,
            compacts=tokens > target,
            reason=reason,
            target_tokens=target,
            tier=tier,
            window_tokens=window,
        )
    if named_window or trigger.threshold_tokens:
        start = starting_tokens(trigger, named_window)
        sign = ">=" if tokens >= start else "<"
        reason = f"{tokens:,} tokens {sign} {start:,}, where compaction starts"
        return Decision(
            way=Way.PRESSURE,
            compacts=tokens >= start,
            reason=reason,
            target_tokens=max(start // 2, 1),
            tier=tier,
            window_tokens=window,
        )
    reason = f"{tokens:,} tokens, more than head, tail and summary need"
    return Decision(way=Way.NATURAL, compacts=True, reason=reason, tier=tier, window_tokens=window)


def named_window_tokens(trigger: Trigger) -> int:
    """The window that the settings name, by size or by model; 0 if they name none."""
    if trigger.window_tokens or not trigger.window_model:
        return trigger.window_tokens
    return required_window_tokens(trigger.window_model)


def starting_tokens(trigger: Trigger, window: int) -> int:
    """The smallest size that is compacted, of those that the ratio, the reserve and the threshold name; at least 1."""
    starts = [trigger.threshold_tokens] if trigger.threshold_tokens else []
    if window:
        starts += [-int(-trigger.compact_ratio * window // 1), window - trigger.reserve_tokens]
    return max(min(starts), 1)


def tier_of(trigger: Trigger, tokens: int, window: int) -> Tier:
    """The tier of ``tokens / window``; NONE without a window."""
    pressure = tokens / window if window else 0.0
    tiers = (
        (trigger.emergency_ratio, Tier.EMERGENCY),
        (trigger.compact_ratio, Tier.COMPACT),
        (trigger.warn_ratio, Tier.WARN),
        (trigger.log_ratio, Tier.LOG),
    )
    return next((tier for ratio, tier in tiers if window and pressure >= ratio), Tier.NONE)
