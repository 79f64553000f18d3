"""Refresh: what must change in kept records because others went.

Clients trust the token counters in their session files: one from before the compaction makes them compact again
at once. And some of their bookkeeping repeats the conversation, the removed part included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby

from compactor_cli.formats.base import Refreshing
from compactor_cli.formats.registry import find
from compactor_cli.model.plan import USAGE, Action, Edit, Mode, Plan, Span
from compactor_cli.model.transcript import Transcript

OUTDATED = "outdated"
COUNTER = "usage"

Mark = tuple[Action, str]


def refreshed(plan: Plan, transcript: Transcript) -> Plan:
    """The plan with the client's bookkeeping brought in line; the plan itself where nothing is rewritten.

    Left out, by the rule ``outdated``: what repeats messages next to them. Changed, by the rule ``usage``: the
    counter that the client goes by, if it says more than what will be left.
    """
    dialect = _refreshing(transcript.dialect) if plan.changes and plan.mode is Mode.REWRITE else None
    if dialect is None:
        return plan
    marks = marks_of(plan)
    edited = {edit.record for edit in plan.edits}
    staying = _staying(marks, edited)
    for i in dialect.outdated(transcript.records, staying):
        if marks[i] == (Action.KEEP, ""):
            marks[i] = (Action.PRUNE, OUTDATED)
    staying = _staying(marks, edited)
    tokens = max(plan.tokens_kept + plan.summary_tokens, 1)
    counters = dialect.counters(transcript.records, staying)
    stale = sorted(i for i, counted_tokens in counters.items() if counted_tokens > tokens)
    for i in stale:
        marks[i] = marks[i] if i in edited else (Action.PRUNE, COUNTER)
    edits = (*plan.edits, *(Edit(record=i, part=USAGE, text=str(tokens)) for i in stale))
    return replace(plan, spans=spans_of(marks), edits=edits)


def _staying(marks: Sequence[Mark], edited: set[int]) -> list[int]:
    return [i for i, (action, _) in enumerate(marks) if action is Action.KEEP or i in edited]


def marks_of(plan: Plan) -> list[Mark]:
    """Action and name of each record."""
    return [(span.action, span.name) for span in plan.spans for _ in range(span.start, span.stop)]


def spans_of(marks: Sequence[Mark]) -> tuple[Span, ...]:
    """Runs of equal marks."""
    spans: list[Span] = []
    start = 0
    for (action, name), run in groupby(marks):
        stop = start + sum(1 for _ in run)
        spans.append(Span(start=start, stop=stop, action=action, name=name))
        start = stop
    return tuple(spans)


@cache
def _refreshing(name: str) -> Refreshing | None:
    dialect = find(name)
    return dialect if isinstance(dialect, Refreshing) else None
