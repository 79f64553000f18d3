"""Append: plans that leave every byte where it is."""

from __future__ import annotations

from dataclasses import replace

from compactor_cli.formats.base import Appending
from compactor_cli.formats.registry import get
from compactor_cli.group.exchanges import Grouping
from compactor_cli.model.errors import UsageError
from compactor_cli.model.plan import Action, Mode, Plan
from compactor_cli.model.settings import Settings, Size
from compactor_cli.plan.refresh import marks_of, spans_of

# What is pruned by these rules is not sent by the client anyway, or must not be.
_NOT_SENT = ("superseded", "orphan")
_AS_THEY_ARE = "texts cannot be shortened where records stay as they are"


def append_settings(settings: Settings, name: str) -> Settings:
    """The settings without rules, which nothing can be shortened by, and without a head where the client's boundary
    cannot hold one.

    Raises `UsageError` if the client of this dialect has no boundary.
    """
    dialect = get(name)
    if not isinstance(dialect, Appending):
        raise UsageError(
            f"nothing can be appended to a transcript of the format {name}",
            next_step="use -i: the archive keeps the original",
        )
    keep = settings.keep if dialect.appends_head else replace(settings.keep, head_turns=0, head_messages=0)
    return replace(settings, prune=(), keep=keep)


def can_keep_middle(name: str) -> bool:
    """Whether the client's boundary in this dialect says record by record what is sent after the summary."""
    dialect = get(name)
    return isinstance(dialect, Appending) and dialect.appends_head


def append_floor(name: str, grouping: Grouping) -> int:
    """Where a tail may begin at the earliest: after the last half of a pair without its other half, where the
    boundary of this dialect names but the start of what the client goes on to send."""
    return 0 if can_keep_middle(name) else max(grouping.orphaned(), default=-1) + 1


def appended(plan: Plan, grouping: Grouping, settings: Settings) -> Plan:
    """The plan with everything kept that is not covered: nothing is shortened and no bookkeeping leaves.

    Nothing is appended after a call in flight: its result would come after the summary.
    """
    if not plan.changes:
        return replace(plan, mode=Mode.APPEND)
    if grouping.in_flight:
        return _left_alone(plan, settings, "a call is in flight: nothing is appended after it")
    marks = [
        (Action.KEEP, "") if action is Action.PRUNE and name not in _NOT_SENT else (action, name)
        for action, name in marks_of(plan)
    ]
    if not plan.summary_tokens:
        return _left_alone(plan, settings, f"{_AS_THEY_ARE}, and nothing can be covered")
    over = f"{plan.over_target}; " if plan.over_target else ""
    over_target = f"{over}{_AS_THEY_ARE}" if plan.edits else plan.over_target
    return replace(plan, spans=spans_of(marks), edits=(), over_target=over_target, mode=Mode.APPEND)


def _left_alone(plan: Plan, settings: Settings, reason: str) -> Plan:
    """The plan that was to change something, and appends nothing."""
    over_tokens = plan.tokens_before - plan.target_tokens if settings.target != Size() else 0
    return replace(
        plan,
        spans=spans_of([(Action.KEEP, "")] * len(marks_of(plan))),
        edits=(),
        tokens_kept=plan.tokens_before,
        summary_tokens=0,
        summary_at=0,
        reason=reason,
        over_target=f"{over_tokens:,} tokens over: {reason}" if over_tokens > 0 else "",
        mode=Mode.APPEND,
    )
