"""Planner: the whole decision about one transcript, as a frozen value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compactor_cli.core.plan import Action, Mode, Plan, Tier
from compactor_cli.core.settings import Settings
from compactor_cli.core.transcript import Transcript
from compactor_cli.group.exchanges import Grouping
from compactor_cli.plan.append import append_settings, appended
from compactor_cli.plan.check import check_plan
from compactor_cli.plan.cut import Cut, Cutter
from compactor_cli.plan.ground import Ground, survey
from compactor_cli.plan.previous import base_tokens
from compactor_cli.plan.prune import Shortening, apply_rules, saved_tokens, shorten_to_fit
from compactor_cli.plan.refresh import Mark, refreshed, spans_of
from compactor_cli.plan.tokens import MESSAGE_TOKENS, Counter, bound_message, count_messages
from compactor_cli.plan.trigger import Decision, Way, decide

BOOKKEEPING = "bookkeeping"
SUPERSEDED = "superseded"
ORPHAN = "orphan"
SUMMARY = "summary"
# Without a target, a summary must save this much: below, it is the same conversation with less in it.
LEAST_SAVING_TOKENS = 200
# Tail and summary of a transcript that all but fills its window.
EMERGENCY_RATIO = 0.5

_EMERGENCY_NOTE = ("the window is all but full: tail and summary are half as large as set",)

_KEEP: Mark = (Action.KEEP, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """All that a plan is made from."""

    transcript: Transcript
    grouping: Grouping
    settings: Settings
    counter: Counter
    tokens: Sequence[int]
    total_tokens: int
    ground: Ground
    decision: Decision


def make_plan(
    transcript: Transcript, grouping: Grouping, settings: Settings, counter: Counter, mode: Mode = Mode.REWRITE
) -> Plan:
    """Decide what happens to every record. Deterministic; time is linear in the transcript.

    The plan is checked by `check_plan` before it is returned. Raises `UsageError` if the settings name a model
    whose window is not known, or if nothing can be appended in this dialect.
    """
    if mode is Mode.APPEND:
        settings = append_settings(settings, transcript.dialect)
    plan = _proven_small(transcript, settings) or _counted(transcript, grouping, settings, counter)
    plan = appended(plan, grouping) if mode is Mode.APPEND else refreshed(plan, transcript)
    check_plan(plan, transcript, grouping)
    return plan


def _proven_small(transcript: Transcript, settings: Settings) -> Plan | None:
    """The plan for a transcript whose bytes already show that it is within its target: nothing is counted."""
    target = settings.target.tokens
    bound = sum(map(bound_message, transcript.messages)) if target else 0
    if not target or bound > target:
        return None
    return Plan(
        transcript_sha256=transcript.sha256,
        fingerprint=settings.fingerprint(),
        spans=spans_of([_KEEP] * len(transcript.messages)),
        reason=f"at most {bound:,} tokens <= target {target:,}",
        target_tokens=target,
        tokens_before=bound,
        tokens_kept=bound,
        notes=("tokens not counted: the size in bytes is within the target and stands for them",),
    )


def _counted(transcript: Transcript, grouping: Grouping, settings: Settings, counter: Counter) -> Plan:
    tokens = count_messages(counter, transcript.messages)
    total = sum(tokens)
    base = base_tokens(transcript, tokens) if settings.target.ratio else total
    case = _Case(
        transcript=transcript,
        grouping=grouping,
        settings=settings,
        counter=counter,
        tokens=tokens,
        total_tokens=total,
        ground=survey(transcript, grouping, tokens),
        decision=decide(settings, tokens=total, base_tokens=base, model=transcript.model),
    )
    if not case.decision.compacts:
        return _unchanged(case, case.decision.reason)
    return _by_summary(case) if settings.summarise else _by_rules(case)


def _by_summary(case: _Case) -> Plan:
    """Head, summary and tail; or rules alone where they do; or nothing where a summary would not pay."""
    cut = _cut(case)
    target = cut.target_tokens
    if case.decision.way is not Way.NATURAL:
        if case.total_tokens <= target:
            return _unchanged(case, f"{case.total_tokens:,} tokens, no more than head, tail and summary would take")
        pruned = _pruned_middle(case, cut)
        if pruned:
            return _without_summary(case, pruned, target, "pruning alone is enough")
    saved = cut.covered_tokens - cut.summary_tokens
    if case.decision.way is Way.NATURAL and saved < LEAST_SAVING_TOKENS:
        return _unchanged(case, f"a summary would save fewer than {LEAST_SAVING_TOKENS} tokens")
    if saved <= 0:
        return _too_short_for_a_summary(case, target)
    return _with_summary(case, cut)


def _cut(case: _Case) -> Cut:
    """The cut by the way that was decided; under pressure the natural one, if it is small enough."""
    acknowledgement = case.settings.acknowledgement
    cutter = Cutter(
        ground=case.ground,
        settings=case.settings,
        frame_tokens=case.counter.count(acknowledgement) + MESSAGE_TOKENS if acknowledgement else 0,
        scale_ratio=EMERGENCY_RATIO if _is_emergency(case.decision) else 1.0,
    )
    target = case.decision.target_tokens
    if case.decision.way is Way.TARGET:
        return cutter.filling(target)
    natural = cutter.natural()
    if case.decision.way is Way.NATURAL or natural.target_tokens <= target:
        return natural
    return cutter.within(target)


def _is_emergency(decision: Decision) -> bool:
    return decision.way is Way.PRESSURE and decision.tier is Tier.EMERGENCY


def _pruned_middle(case: _Case, cut: Cut) -> tuple[Shortening, ...]:
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


def _rules_until(case: _Case, records: Iterable[int], excess_tokens: int) -> tuple[tuple[Shortening, ...], int]:
    found: list[Shortening] = []
    saved = 0
    for item in apply_rules(case.transcript.messages, case.settings.prune, records, case.counter):
        if saved >= excess_tokens:
            break
        found.append(item)
        saved += item.saved_tokens
    return tuple(found), saved


def _by_rules(case: _Case) -> Plan:
    """No summary is wanted: the rules alone, on everything that the settings' head and tail do not protect."""
    cut = Cutter(ground=case.ground, settings=case.settings).natural()
    middle = [i for i in range(cut.head_stop, cut.tail_start) if not case.transcript.messages[i].superseded]
    target = case.decision.target_tokens
    excess = case.total_tokens - target if target and not case.settings.target.ratio else case.total_tokens
    found, _ = _rules_until(case, middle, excess)
    if not found:
        return _unchanged(case, "no rule applies", target)
    return _without_summary(case, found, target, "by rules, without a summary")


def _too_short_for_a_summary(case: _Case, target: int) -> Plan:
    """What lies between head and tail is no larger than a summary: only long texts can give way."""
    reason = "what could be summarised is no larger than a summary"
    if case.settings.target.ratio:
        # Without a summary there is no marker, and the next run would take the share again.
        return _unchanged(case, reason, target)
    ground = case.ground
    stay = [i for i in range(ground.lead, ground.end) if not case.transcript.messages[i].summary]
    visible = [i for i in stay if case.tokens[i] and i not in case.grouping.orphaned()]
    excess = case.total_tokens - target
    found = shorten_to_fit(case.transcript.messages, visible, excess, case.counter, excess)
    return _without_summary(case, found, target, reason) if found else _unchanged(case, reason, target)


def _with_summary(case: _Case, cut: Cut) -> Plan:
    """The middle and everything that never stays is covered; what stays is shortened where it is too large."""
    messages = case.transcript.messages
    marks = _marks(case, cut)
    excess = cut.kept_tokens + cut.summary_tokens - cut.target_tokens
    edits: tuple[Shortening, ...] = ()
    if excess > 0:
        tail = [i for i in range(cut.tail_start, case.ground.end) if marks[i] == _KEEP and case.tokens[i]]
        needed = excess - cut.summary_tokens + cut.least_summary_tokens
        edits = shorten_to_fit(messages, tail, excess, case.counter, needed)
        missing = excess - saved_tokens(edits)
        budget = max(cut.summary_tokens - max(missing, 0), cut.least_summary_tokens)
        cut = replace(cut, summary_tokens=budget)
    return _plan(case, marks, edits, cut.target_tokens, case.decision.reason, cut=cut)


def _marks(case: _Case, cut: Cut) -> list[Mark]:
    """What happens to each record beside a summary. Bookkeeping among superseded records goes with them."""
    messages = case.transcript.messages
    marks = [_KEEP] * len(messages)
    first_superseded = next((i for i, message in enumerate(messages) if message.superseded), cut.head_stop)
    for i in range(min(first_superseded, cut.head_stop), cut.tail_start):
        if messages[i].is_meta:
            marks[i] = (Action.PRUNE, BOOKKEEPING)
        elif i >= cut.head_stop:
            marks[i] = (Action.COVER, SUMMARY)
    for i in case.ground.gone:
        marks[i] = (Action.PRUNE, SUPERSEDED) if messages[i].superseded else (Action.COVER, SUMMARY)
    return marks


def _without_summary(case: _Case, edits: tuple[Shortening, ...], target: int, reason: str) -> Plan:
    """Everything stays but what is shortened, and orphans, which no output may hold."""
    marks = [_KEEP] * len(case.transcript.messages)
    orphaned = case.grouping.orphaned()
    for i in orphaned:
        marks[i] = (Action.PRUNE, ORPHAN)
    edits = tuple(item for item in edits if item.edit.record not in orphaned)
    return _plan(case, marks, edits, target, f"{case.decision.reason}; {reason}")


def _unchanged(case: _Case, reason: str, missed_target: int = 0) -> Plan:
    marks = [_KEEP] * len(case.transcript.messages)
    return _plan(case, marks, (), missed_target, reason)


def _plan(
    case: _Case,
    marks: list[Mark],
    edits: Sequence[Shortening],
    target: int,
    reason: str,
    cut: Cut | None = None,
) -> Plan:
    """The plan that these marks and edits make. ``target`` 0: no target has to be held."""
    for item in reversed(edits):
        marks[item.edit.record] = (Action.PRUNE, item.rule)
    edited = {item.edit.record for item in edits}
    staying = [i for i, (action, _) in enumerate(marks) if action is Action.KEEP or i in edited]
    kept = sum(case.tokens[i] for i in staying) - saved_tokens(edits)
    budget = cut.summary_tokens if cut else 0
    if not target and not case.decision.target_tokens:
        shown_target = kept + budget
    else:
        shown_target = target or case.decision.target_tokens
    return Plan(
        transcript_sha256=case.transcript.sha256,
        fingerprint=case.settings.fingerprint(),
        spans=spans_of(marks),
        edits=tuple(item.edit for item in edits),
        reason=reason,
        tier=case.decision.tier,
        window_tokens=case.decision.window_tokens,
        target_tokens=shown_target,
        tokens_before=case.total_tokens,
        tokens_kept=kept,
        tokens_middle=cut.covered_tokens if cut else 0,
        summary_tokens=budget,
        summary_at=next((i for i in staying if i >= cut.tail_start), len(marks)) if cut else 0,
        notes=_EMERGENCY_NOTE if cut and _is_emergency(case.decision) else (),
        over_target=_over_target(case, kept, budget, target) if target else "",
    )


def _over_target(case: _Case, kept: int, budget: int, target: int) -> str:
    """Why the target is missed; empty if it is held."""
    over = kept + budget - target
    if over <= 0:
        return ""
    system = case.ground.staying(0, case.ground.lead)
    if system > target:
        return f"{over:,} tokens over: the system records alone take {system:,} and are never cut"
    if system + budget > target:
        return f"{over:,} tokens over: system records ({system:,}) and the smallest summary ({budget:,}) take more"
    if not budget:
        return f"{over:,} tokens over: what could be left out is no larger than a summary"
    return f"{over:,} tokens over: the newest exchange cannot be made any shorter"
