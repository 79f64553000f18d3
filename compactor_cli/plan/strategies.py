"""Strategies: what replaces the records that do not stay: a summary, shortened texts, or nothing.

Each is a function from a `PlanInput` to a plan; the settings choose it. `layout` decides where to cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from compactor_cli.formats.openai import OPAQUE
from compactor_cli.formats.registry import find
from compactor_cli.group.exchanges import Grouping, newest_request
from compactor_cli.model import plan as plans
from compactor_cli.model.plan import Action, Edit, Importance, Mark, Plan, Tier, spans_of
from compactor_cli.model.settings import OverflowPolicy, PruneRule, Settings, Strategy
from compactor_cli.model.transcript import Media, Message, Role, Text, ToolResult, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.layout import CutLimits, Layout, LayoutSearch, chosen
from compactor_cli.plan.shorten import Ruler, Shortening, halved, saved_tokens, shorten_to_fit, shortened, with_edits
from compactor_cli.plan.tokens import MEDIA_TOKENS, MESSAGE_TOKENS, Counter, most_that_fits
from compactor_cli.plan.trigger import TriggerDecision, Way, is_settled

KEEP: Mark = (Action.KEEP, "")


def sealed_tokens(messages: Sequence[Message]) -> int:
    """Tokens of the summaries that only a provider can read: they stay even where their records do not."""
    sent = (message.parts for message in messages if not (message.is_meta or message.superseded))
    sealed = (part for parts in sent for part in parts if isinstance(part, Media) and part.kind in OPAQUE)
    return sum(min(MEDIA_TOKENS, part.size_bytes) for part in sealed)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """Everything that a strategy plans with, for one transcript."""

    transcript: Transcript
    messages: Sequence[Message]  # after the edits in ``always``
    grouping: Grouping
    settings: Settings
    counter: Counter
    tokens: Sequence[int]  # of each message, after the edits in ``always``
    tokens_before: int  # of the transcript as it was read
    limits: CutLimits
    decision: TriggerDecision
    importance: Importance | None = None  # None: only the newest records stay
    always: tuple[Shortening, ...] = ()  # the edits of rules that apply in any case

    @property
    def is_emergency(self) -> bool:
        """Whether the window is all but full."""
        return self.decision.way is Way.PRESSURE and self.decision.tier is Tier.EMERGENCY

    def bookkeeping(self) -> frozenset[int]:
        """The records that no model is shown and that share no exchange with other records."""
        alone = (exchange[0] for exchange in self.grouping.exchanges if len(exchange) == 1)
        return frozenset(i for i in alone if self.messages[i].is_meta)

    def after_shortening(self, edits: Sequence[Shortening]) -> PlanInput:
        """The same input with these edits made, as part of ``always``."""
        tokens = list(self.tokens)
        for item in edits:
            tokens[item.edit.record] -= item.saved_tokens
        messages = with_edits(self.messages, edits)
        return replace(self, messages=messages, tokens=tokens, always=tuple(self._merged(edits)))

    def unchanged(self, reason: str, missed_target: int = 0) -> Plan:
        """The plan that makes no changes other than the edits in ``always``.

        ``missed_target``: the target to report as missed; 0: that of the decision.
        """
        is_due = self.decision.compacts or self.decision.way is Way.TARGET
        target = missed_target or (self.decision.target_tokens if is_due else 0)
        if self.always:
            return self.shortened((), target, f"{reason}; by rules that always apply")
        plan = self.plan([KEEP] * len(self.messages), (), target, reason)
        over_tokens = self.limits.total_tokens - target
        return replace(plan, over_target=f"{over_tokens:,} tokens over: {reason}") if plan.over_target else plan

    def shortened(self, edits: Sequence[Shortening], target: int, reason: str) -> Plan:
        """The plan with these edits that keeps every record except orphans, which no output may hold."""
        marks = [KEEP] * len(self.messages)
        for i in self.grouping.orphaned():
            marks[i] = (Action.PRUNE, plans.ORPHAN)
        return self.plan(marks, edits, target, reason)

    def plan(
        self,
        marks: Sequence[Mark],
        edits: Sequence[Shortening],
        target: int,
        reason: str,
        *,
        summary: Layout | None = None,
        notes: tuple[str, ...] = (),
    ) -> Plan:
        """The plan that these marks and edits make. ``target`` 0: there is no target to meet.

        ``summary``: the cut whose middle a summary replaces. The summary stands before the first kept record after its
        head.
        """
        every = [item for item in self._merged(edits) if marks[item.edit.record] == KEEP]
        rules = {item.edit.record: item.rule for item in reversed(every)}
        final = [(Action.PRUNE, rules[i]) if i in rules else mark for i, mark in enumerate(marks)]
        staying = [i for i, (action, _) in enumerate(final) if action is Action.KEEP or i in rules]
        kept = sum(self.tokens[i] for i in staying) - saved_tokens(item for item in edits if item.edit.record in rules)
        budget = summary.budget_tokens if summary else 0
        changes = any(mark != KEEP for mark in final)
        named = target or (self.decision.target_tokens if self.decision.compacts or not changes else 0)
        return Plan(
            transcript_sha256=self.transcript.sha256,
            fingerprint=self.settings.fingerprint(),
            spans=spans_of(final),
            edits=tuple(item.edit for item in every),
            reason=reason,
            tier=self.decision.tier,
            window_tokens=self.decision.window_tokens,
            target_tokens=named or kept + budget,
            tokens_before=self.tokens_before,
            tokens_kept=kept,
            tokens_middle=summary.covered_tokens if summary else 0,
            summary_tokens=budget,
            summary_at=next((i for i in staying if i >= summary.head_stop), len(final)) if summary else 0,
            notes=notes,
            over_target=self._over_target(kept, budget, target) if target else "",
        )

    def _merged(self, edits: Iterable[Shortening]) -> list[Shortening]:
        """These edits and those in ``always`` of other parts, ordered by record and part."""
        found = {(item.edit.record, item.edit.part): item for item in (*self.always, *edits)}
        return [found[place] for place in sorted(found)]

    def _over_target(self, kept: int, budget: int, target: int) -> str:
        """Why the target is missed; empty if it is met."""
        over = kept + budget - target
        if over <= 0:
            return ""
        system = self.limits.tokens_kept(0, self.limits.system_end)
        if system > target:
            return f"{over:,} tokens over: the system records alone take {system:,} and are never cut"
        if budget and system + budget > target:
            return f"{over:,} tokens over: system records ({system:,}) and the smallest summary ({budget:,}) take more"
        if self.settings.strategy is Strategy.RULES:
            return f"{over:,} tokens over: the rules shorten no further"
        if not budget and self.settings.strategy is not Strategy.FIT:
            return f"{over:,} tokens over: what could be left out is no larger than a summary"
        return f"{over:,} tokens over: the newest exchange cannot be made any shorter"


# The most that the notice takes that joins both ends of a session whose records link to each other (see `Dialect`).
NOTICE_TOKENS = 200
_CUT = "\n[… {omitted} characters left out]"
# A message that would be cut to less than this is left out.
_LEAST_CHARS = 40

# Records that stay or go together.
Unit = tuple[int, ...]


def by_fit(given: PlanInput) -> Plan:
    """The plan by `Strategy.FIT`: the newest messages stay that fit; `Fit` decides about those that do not.

    A call and its results stay or go together. System messages and calls in flight always stay, and take their tokens
    first. The newest exchange stays in any case, shortened as far as possible.
    """
    target = given.decision.target_tokens
    if not target or given.settings.target.ratio:
        # The result does not show what the share was taken of, so a second run would take it again.
        return given.unchanged("no number of tokens is named that it should fit in", target)
    walk = _Walk(given)
    walk.back()
    notes: tuple[str, ...] = ()
    if given.settings.fit.user_leads and not walk.led_by_user():
        notes = ("no message of the user fits: what fits stays without one",)
    return walk.plan(f"{given.decision.reason}; the newest that fit stay", notes)


def middle_out(given: PlanInput) -> Plan:
    """The plan that keeps units from both ends in turn, the newest first, until one does not fit; the middle goes."""
    walk = _Walk(given)
    older, newer = 0, len(walk.units)
    while older < newer:
        newest = walk.units[newer - 1]
        if walk.cost(newest) > walk.room:
            if newer == len(walk.units):
                walk.take(newest, walk.shortest(newest))
            break
        walk.take(newest)
        newer -= 1
        if older < newer:
            if walk.cost(walk.units[older]) > walk.room:
                break
            walk.take(walk.units[older])
            older += 1
    return walk.plan(f"{given.decision.reason}; texts are shortened, then both ends stay")


class _Walk:
    """Collects what stays within the target. First it takes what always stays: system messages and calls in flight."""

    def __init__(self, given: PlanInput) -> None:
        self.given = given
        self.is_linked = bool(getattr(find(given.transcript.dialect), "links_records", False))
        self.room = given.decision.target_tokens - (NOTICE_TOKENS if self.is_linked else 0)  # the tokens that are left
        self.units: list[Unit] = []  # what can stay or go, oldest first
        self.kept: list[Unit] = []  # what stays so far
        self.edits: list[Shortening] = []
        running = {half.record for half in given.grouping.in_flight}
        gone = given.grouping.orphaned()
        for unit in given.grouping.exchanges:
            sent = [given.messages[i] for i in unit if not given.messages[i].is_meta]
            if not sent or not gone.isdisjoint(unit) or any(message.superseded for message in sent):
                continue
            is_system = all(message.role is Role.SYSTEM and message.summary is None for message in sent)
            if is_system or not running.isdisjoint(unit):
                self.take(unit)
            else:
                self.units.append(unit)
        self.units.sort(key=lambda unit: unit[-1])

    def take(self, unit: Unit, edits: Sequence[Shortening] = ()) -> None:
        """Let a unit stay, with these edits."""
        self.kept.append(unit)
        self.edits.extend(edits)
        self.room -= self.cost(unit) - saved_tokens(edits)

    def cost(self, unit: Unit) -> int:
        """The tokens of these records."""
        return sum(self.given.tokens[i] for i in unit)

    def back(self) -> None:
        """Take units from the newest on, as `Fit` describes."""
        fit = self.given.settings.fit
        for unit in reversed(self.units):
            if self.cost(unit) <= self.room:
                self.take(unit)
                continue
            messages = [self.given.messages[i] for i in unit]
            policy = fit.user if any(_is_user(message) for message in messages) else fit.other
            policy = fit.result if any(message.results for message in messages) else policy
            edits = self.cut(unit, policy)
            if edits or unit is self.units[-1]:
                self.take(unit, edits or self.shortest(unit))
            if policy in (OverflowPolicy.STOP, OverflowPolicy.CUT_END) or (
                policy is OverflowPolicy.CUT_MIDDLE and not edits
            ):
                break

    def led_by_user(self) -> bool:
        """Let the oldest units go until a message of the user is first.

        Returns False if there is none: then nothing goes.
        """
        messages = self.given.messages
        units = set(self.units)
        free = sorted(unit for unit in self.kept if unit in units)
        leads = next((n for n, unit in enumerate(free) if _is_user(messages[unit[0]])), -1)
        dropped = {i for unit in free[: max(leads, 0)] for i in unit}
        self.kept = [unit for unit in self.kept if dropped.isdisjoint(unit)]
        self.edits = [item for item in self.edits if item.edit.record not in dropped]
        return leads >= 0 or not free

    def cut(self, unit: Unit, policy: OverflowPolicy) -> tuple[Shortening, ...]:
        """Edits by this policy that make the unit fit; empty if there are none."""
        excess = self.cost(unit) - self.room
        if policy is OverflowPolicy.CUT_END:
            # In the newest message the user's request is often at the end.
            is_newest = newest_request(self.given.messages) in unit
            return self._longest(
                unit, Text, excess, _both_ends if is_newest else partial(shortened, last_chars=0, marker=_CUT)
            )
        if policy is not OverflowPolicy.CUT_MIDDLE:
            return ()
        # Down to half of the room, so that the walk can go on; else to all of it.
        edits = self._longest(unit, ToolResult, self.cost(unit) - self.room // 2, _both_ends)
        edits = edits or self._longest(unit, ToolResult, excess, _both_ends)
        edits = edits or shorten_to_fit(self.given.messages, unit, excess, self.given.counter, excess)
        return edits if saved_tokens(edits) >= excess else ()

    def shortest(self, unit: Unit) -> tuple[Shortening, ...]:
        """Edits that make the unit fit; if none do, those that make it as short as possible."""
        cost = self.cost(unit)
        edits = self.cut(unit, OverflowPolicy.CUT_MIDDLE)
        return edits or shorten_to_fit(self.given.messages, unit, cost, self.given.counter, cost)

    def _longest(
        self, unit: Unit, kind: type[Text] | type[ToolResult], excess: int, shape: Callable[[str, int], str]
    ) -> tuple[Shortening, ...]:
        """An edit that cuts the longest text of this kind to save ``excess`` tokens; empty if too little is left."""
        places = [(i, n, part) for i in unit for n, part in enumerate(self.given.messages[i].parts)]
        texts = [(len(part.text), i, n, part.text) for i, n, part in places if isinstance(part, kind)]
        if not texts:
            return ()
        _, record, index, text = max(texts)
        count = self.given.counter.count
        allowed = count(text) - excess
        chars = most_that_fits(len(text), partial(shape, text), allowed, count)
        short = shape(text, chars)
        if chars < _LEAST_CHARS or short == text:
            return ()
        edit = Edit(record=record, part=index, text=short)
        return (Shortening(edit=edit, rule="cut", saved_tokens=count(text) - count(short)),)

    def plan(self, reason: str, notes: tuple[str, ...] = ()) -> Plan:
        """The plan that leaves out what was not taken, and the bookkeeping that follows it."""
        given, taken = self.given, {i for unit in self.kept for i in unit}
        orphaned = given.grouping.orphaned()
        shown = [i for i, m in enumerate(given.messages) if not (m.is_meta or m.superseded or i in orphaned)]
        gap = None
        if self.is_linked:
            # Where messages between kept ones are left out, a notice is set after the last of them.
            last = max((i for i in shown if i not in taken), default=-1)
            if any(i in taken for i in shown if i < last):
                tail = next((i for i in shown if i > last), last + 1)
                gap = Layout(head_stop=tail, tail_start=tail, budget_tokens=NOTICE_TOKENS)
        fate = (Action.COVER, plans.NOTICE) if gap else (Action.PRUNE, plans.NO_ROOM)
        marks: list[Mark] = []
        goes, bookkeeping = False, given.bookkeeping()
        for i, message in enumerate(given.messages):
            if message.superseded or i in orphaned:
                marks.append((Action.PRUNE, plans.SUPERSEDED if message.superseded else plans.ORPHAN))
            elif i in bookkeeping:
                marks.append((Action.PRUNE, plans.BOOKKEEPING) if goes else KEEP)
            else:
                goes = i not in taken
                marks.append(fate if goes else KEEP)
        return given.plan(marks, self.edits, given.decision.target_tokens, reason, summary=gap, notes=notes)


def _both_ends(text: str, chars: int) -> str:
    return shortened(text, chars - chars // 2, chars // 2)


def _is_user(message: Message) -> bool:
    return message.role is Role.USER and not message.results


def by_rules(given: PlanInput) -> Plan:
    """The plan by `Strategy.RULES`: texts are shortened rule by rule, oldest first, until the target is met.

    What the settings' head and tail protect is not shortened. `Rules` describes what follows if that is not enough.
    """
    target = given.decision.target_tokens
    # With a share as target, the rules are applied once, as far as they go: the result does not show what the share was
    # taken of, and a second run would take it again.
    is_aimed = target > 0 and not given.settings.target.ratio
    excess = given.limits.total_tokens - target if is_aimed else given.limits.total_tokens
    cut = LayoutSearch(limits=given.limits, settings=given.settings).by_settings()
    records = [i for i in range(cut.head_stop, cut.tail_start) if not given.messages[i].superseded]
    messages, saved = given.messages, 0
    found: dict[tuple[int, int], Shortening] = {}  # by record and part, each once
    # The rules one by one, each after those that precede it; then all of them with halved limits.
    rounds, every = list[tuple[PruneRule, ...]](), given.settings.prune
    for _ in range(given.settings.rules.halvings + 1 if is_aimed else 1):
        rounds += (every[: count + 1] for count in range(len(every)))
        every = tuple(map(halved, every))
    for rules in rounds:
        ruler = Ruler(messages=messages, counter=given.counter, sha256=given.transcript.sha256)
        new: list[Shortening] = []
        for item in ruler.applied(rules, records):
            if saved >= excess:
                break
            if item.rule == rules[-1].name:
                new.append(item)
                saved += item.saved_tokens
        messages = with_edits(messages, new)
        for item in new:
            place = (item.edit.record, item.edit.part)
            before = found[place].saved_tokens if place in found else 0
            found[place] = replace(item, saved_tokens=item.saved_tokens + before)
        if saved >= excess:
            break
    edits = tuple(found[place] for place in sorted(found))
    if is_aimed and saved < excess and given.settings.rules.middle_out:
        return middle_out(given.after_shortening(edits))
    if not edits:
        return given.unchanged("no rule applies", target)
    return given.shortened(edits, target, f"{given.decision.reason}; by rules, without a summary")


SUMMARY = "summary"
# Without a target, a summary must save at least this much to be worth what it loses.
LEAST_SAVING_TOKENS = 200
# The factor for the sizes of tail and summary where the window is nearly full.
EMERGENCY_RATIO = 0.5


def by_summary(given: PlanInput) -> Plan:
    """The plan by `Strategy.SUMMARY` and by RETRIEVAL, which only differs in the text of the summary."""
    if given.settings.keep.tail_ratio and given.decision.way is Way.NATURAL and is_settled(given.transcript):
        return given.unchanged("nothing was added since the last compaction, and its share was taken then")
    # Under pressure the cut by the settings is used if it is small enough.
    answer = given.settings.acknowledgement
    answer_tokens = given.counter.count(answer) + MESSAGE_TOKENS if answer else 0
    search = LayoutSearch(
        limits=given.limits,
        settings=given.settings,
        frame_tokens=answer_tokens + sealed_tokens(given.messages),
        scale_ratio=EMERGENCY_RATIO if given.is_emergency else 1.0,
    )
    target = given.decision.target_tokens
    cut = search.for_user_target(target) if given.decision.way is Way.TARGET else search.by_settings()
    if given.decision.way is Way.PRESSURE and cut.target_tokens > target:
        cut = search.for_window(target)
    target = cut.target_tokens
    if given.decision.way is not Way.NATURAL:
        if (tokens := given.limits.total_tokens) <= target:
            return given.unchanged(f"{tokens:,} tokens, no more than head, tail and summary would take")
        pruned = _pruned_middle(given, cut)
        if pruned:
            return given.shortened(pruned, target, f"{given.decision.reason}; pruning alone is enough")
    saved = cut.covered_tokens - cut.budget_tokens
    if given.decision.way is Way.NATURAL and saved < LEAST_SAVING_TOKENS:
        return given.unchanged(f"a summary would save fewer than {LEAST_SAVING_TOKENS} tokens")
    if saved <= 0:
        # What lies between head and tail is no larger than a summary: only long texts can be shortened.
        reason = "what could be summarised is no larger than a summary"
        if given.settings.target.ratio:
            # Without a summary there is no marker, so that the next run would take the share again.
            return given.unchanged(f"{reason}, and a share shortens no text: name a size in tokens", target)
        stay = [i for i in range(given.limits.system_end, given.limits.end) if not given.messages[i].summary]
        visible = [i for i in stay if given.tokens[i] and i not in given.grouping.orphaned()]
        excess = given.limits.total_tokens - target
        found = shorten_to_fit(given.messages, visible, excess, given.counter, excess)
        if not found:
            return given.unchanged(reason, target)
        return given.shortened(found, target, f"{given.decision.reason}; {reason}")
    return _with_summary(given, cut)


def _pruned_middle(given: PlanInput, cut: Layout) -> tuple[Shortening, ...]:
    """Edits that meet the target by applying the rules to the middle, oldest first; empty if that is not enough.

    Also empty with a share as target, as a second run needs a summary's marker to arrive at the same target, and where
    there are orphans, which only a summary can replace.
    """
    has_orphans = given.grouping.orphan_calls or given.grouping.orphan_results
    if given.settings.target.ratio or has_orphans or not given.settings.prune:
        return ()
    middle = [i for i in range(cut.head_stop, cut.tail_start) if i not in given.limits.removed]
    found: list[Shortening] = []
    excess = given.limits.total_tokens - cut.target_tokens
    ruler = Ruler(messages=given.messages, counter=given.counter, sha256=given.transcript.sha256)
    if excess > ruler.most_saved(given.settings.prune, middle):
        return ()
    for item in ruler.applied(given.settings.prune, middle):
        if excess <= 0:
            break
        found.append(item)
        excess -= item.saved_tokens
    return tuple(found) if excess <= 0 else ()


def _with_summary(given: PlanInput, cut: Layout) -> Plan:
    """The plan whose summary covers the middle and what never stays; what stays is shortened if it is too large."""
    notes: tuple[str, ...] = ()
    if given.is_emergency:
        notes = ("the window is all but full: tail and summary are half as large as set",)
    if given.importance:
        cut, note = chosen(cut, given.limits, given.transcript, given.importance, given.settings.focus)
        notes = (*notes, note) if note else notes
    # Bookkeeping among superseded records goes with them.
    messages, bookkeeping = given.messages, given.bookkeeping()
    name = plans.EXCERPTS if given.settings.strategy is Strategy.RETRIEVAL else SUMMARY
    marks = [KEEP] * len(messages)
    first_superseded = next((i for i, message in enumerate(messages) if message.superseded), cut.head_stop)
    for i in range(min(first_superseded, cut.head_stop), cut.tail_start):
        if i in bookkeeping:
            marks[i] = (Action.PRUNE, plans.BOOKKEEPING)
        elif i >= cut.head_stop:
            marks[i] = (Action.COVER, name)
    for i in cut.kept_middle:
        marks[i] = KEEP
    for i in given.limits.removed:
        marks[i] = (Action.PRUNE, plans.SUPERSEDED) if messages[i].superseded else (Action.COVER, name)
    excess = cut.kept_tokens + cut.budget_tokens - cut.target_tokens
    edits: tuple[Shortening, ...] = ()
    if excess > 0:
        tail = [i for i in range(cut.tail_start, given.limits.end) if marks[i] == KEEP and given.tokens[i]]
        needed = excess - cut.budget_tokens + cut.min_budget_tokens
        edits = shorten_to_fit(given.messages, tail, excess, given.counter, needed)
        missing = max(excess - saved_tokens(edits), 0)
        cut = replace(cut, budget_tokens=max(cut.budget_tokens - missing, cut.min_budget_tokens))
    return given.plan(marks, edits, cut.target_tokens, given.decision.reason, summary=cut, notes=notes)


STRATEGIES: Mapping[Strategy, Callable[[PlanInput], Plan]] = {
    Strategy.SUMMARY: by_summary,
    Strategy.RETRIEVAL: by_summary,
    Strategy.RULES: by_rules,
    Strategy.FIT: by_fit,
}
