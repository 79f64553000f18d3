"""Append: plans that leave every byte where it is."""

from __future__ import annotations

from dataclasses import replace

from compactor_cli.formats.base import Appending
from compactor_cli.formats.registry import get
from compactor_cli.group.exchanges import Grouping
from compactor_cli.model.errors import UsageError
from compactor_cli.model.plan import Action, Mode, Plan
from compactor_cli.model.settings import Settings
from compactor_cli.plan.refresh import marks_of, spans_of

# What is pruned by these rules is not sent by the client anyway, or must not be.
_NOT_SENT = ("superseded", "orphan")


def append_settings(settings: Settings, name: str) -> Settings:
    """The settings, without a head where the client's boundary cannot hold one.

    Raises `UsageError` if the client of this dialect has no boundary.
    """
    dialect = get(name)
    if not isinstance(dialect, Appending):
        raise UsageError(
            f"nothing can be appended to a transcript of the format {name}",
            next_step="use -i: the archive keeps the original",
        )
    return (
        settings
        if dialect.appends_head
        else replace(settings, keep=replace(settings.keep, head_turns=0, head_messages=0))
    )


def holds_islands(name: str) -> bool:
    """Whether the client's boundary in this dialect says record by record what is sent behind the summary."""
    dialect = get(name)
    return isinstance(dialect, Appending) and dialect.appends_head


def append_floor(name: str, grouping: Grouping) -> int:
    """Where a tail may begin at the earliest: behind the last half of a pair without its other half, where the
    boundary of this dialect names but the start of what the client goes on to send."""
    return 0 if holds_islands(name) else max(grouping.orphaned(), default=-1) + 1


def appended(plan: Plan, grouping: Grouping) -> Plan:
    """The plan with everything kept that is not covered: nothing is shortened and no bookkeeping leaves.

    Nothing is appended behind a call in flight: its result would come behind the summary.
    """
    if grouping.in_flight and plan.changes:
        whole = spans_of([(Action.KEEP, "")] * len(marks_of(plan)))
        reason = "a call is in flight: nothing is appended behind it"
        return replace(plan, spans=whole, edits=(), summary_tokens=0, summary_at=0, reason=reason, mode=Mode.APPEND)
    marks = [
        (Action.KEEP, "") if action is Action.PRUNE and name not in _NOT_SENT else (action, name)
        for action, name in marks_of(plan)
    ]
    if not plan.summary_tokens:
        marks = [(Action.KEEP, "")] * len(marks)
        return replace(plan, spans=spans_of(marks), edits=(), mode=Mode.APPEND)
    over = f"{plan.over_target}; " if plan.over_target else ""
    over_target = f"{over}texts cannot be shortened where records stay as they are" if plan.edits else plan.over_target
    return replace(plan, spans=spans_of(marks), edits=(), over_target=over_target, mode=Mode.APPEND)
