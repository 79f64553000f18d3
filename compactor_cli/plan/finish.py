"""A plan made ready: fitted to appending, the client's bookkeeping brought in line, checked, and reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any

from compactor_cli.formats.base import Appending, Refreshing
from compactor_cli.formats.registry import find, get
from compactor_cli.group.exchanges import Grouping, newest_request
from compactor_cli.model.errors import InvariantError, UsageError
from compactor_cli.model.plan import ORPHAN, SUPERSEDED, USAGE, Action, Edit, Mode, Plan, Span
from compactor_cli.model.report import Compaction, Outcome, TranscriptReport
from compactor_cli.model.settings import Settings, Size
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import Counter, count_message

OUTDATED = "outdated"
COUNTER = "usage"

Mark = tuple[Action, str]


def refreshed(plan: Plan, transcript: Transcript) -> Plan:
    """The plan with the client's bookkeeping brought in line; the plan itself where nothing is rewritten.

    Clients trust the token counters in their session files: one from before the compaction makes them compact again
    at once. And some of their bookkeeping repeats the conversation, the removed part included.

    Left out, by the rule ``outdated``: what repeats messages next to them. Changed, by the rule ``usage``: the
    counter that the client goes by, if it is larger than what will be left.
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


# What is pruned by these rules is not sent by the client anyway, or must not be.
_NOT_SENT = (SUPERSEDED, ORPHAN)
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
    """Whether the client's boundary in this dialect lists record by record what is sent after the summary."""
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


def check_plan(plan: Plan, transcript: Transcript, grouping: Grouping) -> None:
    """Raises `InvariantError` unless the plan is one for this transcript and can be acted on.

    That is: the spans tile the records; only records that are pruned have edits; no exchange is divided between
    what stays and what goes, and none that stays has a call without its result; a summary is planned
    if and only if records are covered; the target is held or the plan has the reason.
    """
    count = len(transcript.records)
    _demand(plan.transcript_sha256 == transcript.sha256, "the plan was made for another transcript")
    _demand(_tiles(plan, count), "the plan's spans do not tile the records")
    edited = {edit.record for edit in plan.edits}
    pruned = set(plan.indices(Action.PRUNE))
    _demand(edited <= pruned, "the plan edits a record that is not pruned")
    leaving = set(plan.indices(Action.COVER)) | (pruned - edited)
    exchanges = grouping.exchanges if leaving else ()
    divided = [exchange for exchange in exchanges if 0 < len(leaving.intersection(exchange)) < len(exchange)]
    _demand(not divided, f"the plan divides the exchange of records {divided[:1]}")
    orphaned = grouping.orphaned() if plan.changes else frozenset()
    _demand(orphaned <= leaving, "the plan keeps a call without its result, or the other way round")
    _demand(bool(plan.count(Action.COVER)) == bool(plan.summary_tokens), "a summary is planned for nothing")
    _demand(0 <= plan.summary_at <= count, "the summary's place is outside the transcript")
    fits = plan.tokens_kept + plan.summary_tokens <= plan.target_tokens
    _demand(fits or not plan.changes or bool(plan.over_target), "the plan is over its target and does not say why")


def _tiles(plan: Plan, count: int) -> bool:
    borders = [0, *(border for span in plan.spans for border in (span.start, span.stop)), count]
    pairs = zip(borders[::2], borders[1::2], strict=True)
    return all(left == right for left, right in pairs) and all(span.start < span.stop for span in plan.spans)


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise InvariantError(what, next_step="this is a defect of compact")


def planned_report(transcript: Transcript, plan: Plan) -> TranscriptReport:
    """The report of a decision that is not carried out: what a run by this plan would take at most."""
    planned_tokens = min(plan.tokens_kept + plan.summary_tokens, plan.tokens_before)
    return _report(
        transcript,
        plan,
        outcome=Outcome.COMPACTED if plan.changes else Outcome.UNCHANGED,
        tokens_after=planned_tokens if plan.changes else plan.tokens_before,
    )


def unchanged_report(transcript: Transcript, plan: Plan, grouping: Grouping, counter: Counter) -> TranscriptReport:
    """What is known before acting: the report of a transcript that stays as it is."""
    pruned: dict[str, int] = {}
    for span in plan.spans:
        if span.action is Action.PRUNE:
            pruned[span.name] = pruned.get(span.name, 0) + span.stop - span.start
    return _report(
        transcript,
        plan,
        outcome=Outcome.UNCHANGED,
        token_method=counter.method,
        tokens_after=plan.tokens_before,
        pruned=pruned,
        orphans=tuple(map(str, (*grouping.orphan_calls, *grouping.orphan_results))),
        in_flight=tuple(map(str, grouping.in_flight)),
    )


def newest_request_warning(transcript: Transcript, plan: Plan, counter: Counter, summary_text: str) -> str:
    """What became of the newest message of the user, where it does not stay whole; empty where it does.

    It stays whole in a summary that holds all its words.
    """
    newest = newest_request(transcript.messages)
    if newest < 0 or not plan.changes:
        return ""
    message = transcript.messages[newest]
    size = f"the newest message of the user ({count_message(counter, message):,} tokens)"
    if any(edit.record == newest and edit.part != USAGE for edit in plan.edits):
        return f"{size} is cut: raise the target to keep it whole"
    action = next(span.action for span in plan.spans if span.start <= newest < span.stop)
    is_edited = any(edit.record == newest for edit in plan.edits)
    if action is Action.COVER and " ".join(message.text.split()) not in " ".join(summary_text.split()):
        return f"{size} is replaced by the summary, which does not hold all of it"
    if action is Action.PRUNE and not is_edited:
        return f"{size} is left out: raise the target to keep it"
    return ""


def _report(transcript: Transcript, plan: Plan, **details: Any) -> TranscriptReport:
    """What is the same in all reports of a plan, with what is reported of this one."""
    size_bytes = transcript.size_bytes
    return TranscriptReport(
        sha256=transcript.sha256,
        dialect=transcript.dialect,
        line=transcript.records[0].place.line if transcript.records else 0,
        row=transcript.records[0].place.row if transcript.records else 0,
        records=transcript.record_count,
        reason=plan.reason,
        tier=plan.tier.value,
        window_tokens=plan.window_tokens,
        target_tokens=plan.target_tokens,
        tokens_before=plan.tokens_before,
        bytes_before=size_bytes,
        bytes_after=size_bytes,
        kept=plan.count(Action.KEEP),
        covered=plan.count(Action.COVER),
        over_target=plan.over_target,
        notes=plan.notes,
        **details,
    )


_UNGROUPED = Grouping(exchanges=(), borders=())


def unchanged(transcript: Transcript, plan: Plan, counter: Counter, grouping: Grouping = _UNGROUPED) -> Compaction:
    """The transcript left as it was."""
    report = unchanged_report(transcript, plan, grouping, counter)
    return Compaction(output=transcript.source(), report=report, plan=plan)
