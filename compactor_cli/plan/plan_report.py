"""Reported: what a report says of a plan, before anything is done by it."""

from __future__ import annotations

from collections import Counter as Tally
from typing import Any

from compactor_cli.group.exchanges import Grouping, newest_request
from compactor_cli.model.plan import USAGE, Action, Plan
from compactor_cli.model.report import Compaction, Outcome, TranscriptReport
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import Counter, count_message


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
    pruned: Tally[str] = Tally()
    for span in plan.spans:
        if span.action is Action.PRUNE:
            pruned[span.name] += span.stop - span.start
    return _report(
        transcript,
        plan,
        outcome=Outcome.UNCHANGED,
        token_method=counter.method,
        tokens_after=plan.tokens_before,
        pruned=dict(pruned),
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
        records=len(transcript.records),
        reason=plan.reason,
        tier=plan.tier.value,
        window_tokens=plan.window_tokens,
        target_tokens=plan.target_tokens,
        tokens_before=plan.tokens_before,
        bytes_before=size_bytes,
        bytes_after=size_bytes,
        kept=len(plan.indices(Action.KEEP)),
        covered=len(plan.indices(Action.COVER)),
        over_target=plan.over_target,
        notes=plan.notes,
        **details,
    )


def unchanged(transcript: Transcript, plan: Plan, grouping: Grouping, counter: Counter) -> Compaction:
    """The transcript left as it was."""
    report = unchanged_report(transcript, plan, grouping, counter)
    return Compaction(output=transcript.source(), report=report, plan=plan)
