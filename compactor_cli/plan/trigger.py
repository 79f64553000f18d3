"""Trigger: whether a transcript is compacted, and how small it has to become.

Three ways, the first that is set:

- TARGET: a target is named. Compacted if the transcript is larger.
- PRESSURE: a window or a threshold is named. Compacted from ``compact_ratio`` of the window on, or as soon as
  ``tokens + reserve >= window``, or ``tokens > threshold``, whichever comes first; to at most ``target_ratio`` of the
  size that starts it, so that there is room to work. From ``emergency_ratio`` on tail and summary are half as large.
- NATURAL: nothing is named, or the transcript itself asks, by a call of the trigger's tool in its newest turn.
  Compacted to what head, tail and summary take, if that saves enough.

With ``at_phase`` all of them but pressure and the tool's call wait for the end of a phase of the task, which in turn
starts a compaction that no pressure starts yet.

The window of the model that the transcript itself names only serves to report the tier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from compactor_cli.model.plan import Tier
from compactor_cli.model.settings import Settings, Start, Trigger
from compactor_cli.plan.window import required_window_tokens, window_tokens


class Way(StrEnum):
    """What decided, see the module."""

    TARGET = "target"
    PRESSURE = "pressure"
    NATURAL = "natural"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDecision:
    """Whether to compact. ``target_tokens`` 0: as large as head, tail and summary by the settings are."""

    way: Way
    compacts: bool
    reason: str
    target_tokens: int = 0
    tier: Tier = Tier.NONE
    window_tokens: int = 0


def decide(
    settings: Settings, *, tokens: int, base_tokens: int, model: str, is_asked_for: bool = False, phase: str = ""
) -> TriggerDecision:
    """The decision about a transcript of ``tokens``; ``base_tokens`` is what a share as target is a share of.

    ``is_asked_for``: the transcript itself asks. ``phase``: why a phase of its task has just ended. Raises `UsageError`
    if the window of the model that the settings name is not known.
    """
    trigger = settings.trigger
    named_window = usable_tokens(trigger, named_window_tokens(trigger))
    window = named_window or usable_tokens(trigger, window_tokens(model))
    found = _started(settings, tokens, settings.target.of(base_tokens), named_window, is_asked_for, phase)
    return replace(found, tier=tier_of(trigger, tokens, window), window_tokens=window)


def _started(
    settings: Settings, tokens: int, target: int, window: int, is_asked_for: bool, phase: str
) -> TriggerDecision:
    """The decision, by the first reason that there is."""
    trigger = settings.trigger
    if trigger.start is Start.NEVER:
        return TriggerDecision(way=Way.NATURAL, compacts=False, reason="compaction is switched off")
    if is_asked_for and tokens <= (target or tokens):
        return TriggerDecision(way=Way.NATURAL, compacts=True, reason=f"the newest turn calls the tool {trigger.tool}")
    if trigger.at_phase and not phase and not _presses(trigger, tokens, window):
        return TriggerDecision(way=Way.NATURAL, compacts=False, reason="the phase of the task goes on")
    if target:
        sign = ">" if tokens > target else "<="
        reason = f"{tokens:,} tokens {sign} target {target:,}" + (f"; {phase}" if phase else "")
        return TriggerDecision(way=Way.TARGET, compacts=tokens > target, reason=reason, target_tokens=target)
    if phase and not _presses(trigger, tokens, window):
        return TriggerDecision(way=Way.NATURAL, compacts=True, reason=f"a phase of the task has ended: {phase}")
    if trigger.start is Start.ASKED:
        return TriggerDecision(way=Way.NATURAL, compacts=False, reason="compaction starts only when it is asked for")
    if window or trigger.threshold_tokens:
        start = starting_tokens(trigger, window)
        sign = ">=" if tokens >= start else "<"
        reason = f"{tokens:,} tokens {sign} {start:,}, where compaction starts"
        limit = max(min(int(start * trigger.target_ratio), start - 1), 1)
        return TriggerDecision(way=Way.PRESSURE, compacts=tokens >= start, reason=reason, target_tokens=limit)
    return TriggerDecision(
        way=Way.NATURAL, compacts=True, reason=f"{tokens:,} tokens, more than head, tail and summary need"
    )


def _presses(trigger: Trigger, tokens: int, window: int) -> bool:
    """Whether the window or the threshold starts a compaction by itself."""
    return bool(window or trigger.threshold_tokens) and tokens >= starting_tokens(trigger, window)


def left_alone_tokens(settings: Settings, model: str) -> int:
    """A transcript of up to this many tokens is not compacted and has no tier; 0 where only its exact size can tell."""
    trigger = settings.trigger
    if settings.target.tokens:
        return settings.target.tokens
    named_window = usable_tokens(trigger, named_window_tokens(trigger))
    presses = trigger.start is Start.AUTO and (named_window or trigger.threshold_tokens)
    if settings.target.ratio or not presses or trigger.at_phase:
        return 0
    window = named_window or usable_tokens(trigger, window_tokens(model))
    start = starting_tokens(trigger, named_window)
    ratios = (trigger.log_ratio, trigger.warn_ratio, trigger.compact_ratio, trigger.emergency_ratio)
    first_tier = -int(-min(ratios) * window // 1) if window else start
    return max(min(start, first_tier) - 1, 0)


def named_window_tokens(trigger: Trigger) -> int:
    """The window that the settings name, by size or by model; 0 if they name none."""
    if trigger.window_tokens or not trigger.window_model:
        return trigger.window_tokens
    return required_window_tokens(trigger.window_model)


def usable_tokens(trigger: Trigger, window: int) -> int:
    """What of a window is not left to the answer; 0 without a window."""
    return max(window - trigger.output_tokens, 1) if window else 0


def starting_tokens(trigger: Trigger, window: int) -> int:
    """The smallest size that is compacted, of those that the ratio, the reserve and the threshold name; at least 1."""
    starts = [trigger.threshold_tokens + 1] if trigger.threshold_tokens else []
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
