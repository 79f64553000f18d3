"""Head, summary and tail; or rules alone where they do; or nothing where a summary would not pay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compactor_cli.model.plan import Action, Plan, Tier
from compactor_cli.model.settings import Strategy
from compactor_cli.plan.choose import chosen
from compactor_cli.plan.layout import Layout, LayoutSearch
from compactor_cli.plan.plan_input import BOOKKEEPING, KEEP, SUPERSEDED, PlanInput
from compactor_cli.plan.previous_marker import is_settled
from compactor_cli.plan.refresh import Mark
from compactor_cli.plan.rules import Ruler
from compactor_cli.plan.shorten import Shortening, saved_tokens, shorten_to_fit
from compactor_cli.plan.tokens import MESSAGE_TOKENS, sealed_tokens
from compactor_cli.plan.trigger import Way

SUMMARY = "summary"
EXCERPTS = "excerpts"
# Without a target, a summary must save this much: below, it is the same conversation with less in it.
LEAST_SAVING_TOKENS = 200
# Tail and summary of a transcript that all but fills its window.
EMERGENCY_RATIO = 0.5

_EMERGENCY_NOTE = ("the window is all but full: tail and summary are half as large as set",)


def by_summary(case: PlanInput) -> Plan:
    """The plan by `Strategy.SUMMARY` (and RETRIEVAL, which differs in what is written only)."""
    if case.settings.keep.tail_ratio and case.decision.way is Way.NATURAL and is_settled(case.transcript):
        return case.unchanged("nothing was added since the last compaction, and its share was taken then")
    cut = _cut(case)
    target = cut.target_tokens
    if case.decision.way is not Way.NATURAL:
        if case.total_tokens <= target:
            return case.unchanged(f"{case.total_tokens:,} tokens, no more than head, tail and summary would take")
        pruned = _pruned_middle(case, cut)
        if pruned:
            return case.shortened(pruned, target, f"{case.decision.reason}; pruning alone is enough")
    saved = cut.covered_tokens - cut.summary_tokens
    if case.decision.way is Way.NATURAL and saved < LEAST_SAVING_TOKENS:
        return case.unchanged(f"a summary would save fewer than {LEAST_SAVING_TOKENS} tokens")
    if saved <= 0:
        return _too_short_for_a_summary(case, target)
    return _with_summary(case, cut)


def _cut(case: PlanInput) -> Layout:
    """The cut by the way that was decided; under pressure the natural one, if it is small enough."""
    acknowledgement = case.settings.acknowledgement
    answer_tokens = case.counter.count(acknowledgement) + MESSAGE_TOKENS if acknowledgement else 0
    cutter = LayoutSearch(
        ground=case.ground,
        settings=case.settings,
        frame_tokens=answer_tokens + sealed_tokens(case.messages),
        scale_ratio=EMERGENCY_RATIO if _is_emergency(case) else 1.0,
    )
    target = case.decision.target_tokens
    if case.decision.way is Way.TARGET:
        return cutter.filling(target)
    natural = cutter.natural()
    if case.decision.way is Way.NATURAL or natural.target_tokens <= target:
        return natural
    return cutter.within(target)


def _is_emergency(case: PlanInput) -> bool:
    return case.decision.way is Way.PRESSURE and case.decision.tier is Tier.EMERGENCY


def _pruned_middle(case: PlanInput, cut: Layout) -> tuple[Shortening, ...]:
    """The rules applied to the middle, oldest first, as far as the target asks; empty if they do not reach it.

    Not for a share as target, which only a summary's marker lets a second run resolve as the first did, nor
    where there are orphans, which only a summary can stand for.
    """
    has_orphans = case.grouping.orphan_calls or case.grouping.orphan_results
    if case.settings.target.ratio or has_orphans or not case.settings.prune:
        return ()
    middle = [i for i in range(cut.head_stop, cut.tail_start) if i not in case.ground.gone]
    found, saved = _rules_until(case, middle, case.total_tokens - cut.target_tokens)
    return found if case.total_tokens - saved <= cut.target_tokens else ()


def _rules_until(case: PlanInput, records: Iterable[int], excess_tokens: int) -> tuple[tuple[Shortening, ...], int]:
    found: list[Shortening] = []
    saved = 0
    ruler = Ruler(messages=case.messages, counter=case.counter, sha256=case.transcript.sha256)
    for item in ruler.applied(case.settings.prune, records):
        if saved >= excess_tokens:
            break
        found.append(item)
        saved += item.saved_tokens
    return tuple(found), saved


def _too_short_for_a_summary(case: PlanInput, target: int) -> Plan:
    """What lies between head and tail is no larger than a summary: only long texts can be shortened."""
    reason = "what could be summarised is no larger than a summary"
    if case.settings.target.ratio:
        # Without a summary there is no marker, and the next run would take the share again.
        return case.unchanged(reason, target)
    ground = case.ground
    stay = [i for i in range(ground.lead, ground.end) if not case.messages[i].summary]
    visible = [i for i in stay if case.tokens[i] and i not in case.grouping.orphaned()]
    excess = case.total_tokens - target
    found = shorten_to_fit(case.messages, visible, excess, case.counter, excess)
    if not found:
        return case.unchanged(reason, target)
    return case.shortened(found, target, f"{case.decision.reason}; {reason}")


def _with_summary(case: PlanInput, cut: Layout) -> Plan:
    """The middle and everything that never stays is covered; what stays is shortened where it is too large."""
    notes = _EMERGENCY_NOTE if _is_emergency(case) else ()
    if case.importance:
        cut, note = chosen(cut, case.ground, case.transcript, case.importance, case.settings.focus)
        notes = (*notes, note) if note else notes
    marks = _marks(case, cut)
    excess = cut.kept_tokens + cut.summary_tokens - cut.target_tokens
    edits: tuple[Shortening, ...] = ()
    if excess > 0:
        tail = [i for i in range(cut.tail_start, case.ground.end) if marks[i] == KEEP and case.tokens[i]]
        needed = excess - cut.summary_tokens + cut.least_summary_tokens
        edits = shorten_to_fit(case.messages, tail, excess, case.counter, needed)
        missing = excess - saved_tokens(edits)
        budget = max(cut.summary_tokens - max(missing, 0), cut.least_summary_tokens)
        cut = replace(cut, summary_tokens=budget)
    return case.plan(marks, edits, cut.target_tokens, case.decision.reason, summary=cut, notes=notes)


def _marks(case: PlanInput, cut: Layout) -> list[Mark]:
    """What happens to each record next to a summary. Bookkeeping among superseded records goes with them."""
    messages = case.messages
    name = EXCERPTS if case.settings.strategy is Strategy.RETRIEVAL else SUMMARY
    marks = [KEEP] * len(messages)
    first_superseded = next((i for i, message in enumerate(messages) if message.superseded), cut.head_stop)
    for i in range(min(first_superseded, cut.head_stop), cut.tail_start):
        if messages[i].is_meta:
            marks[i] = (Action.PRUNE, BOOKKEEPING)
        elif i >= cut.head_stop:
            marks[i] = (Action.COVER, name)
    for i in cut.kept_middle:
        marks[i] = KEEP
    for i in case.ground.gone:
        marks[i] = (Action.PRUNE, SUPERSEDED) if messages[i].superseded else (Action.COVER, name)
    return marks
