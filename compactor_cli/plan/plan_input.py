"""Case: all that the plan for one transcript is made from, and the plan that marks and edits make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compactor_cli.group.exchanges import Grouping
from compactor_cli.model.plan import Action, Importance, Plan
from compactor_cli.model.settings import Settings, Strategy
from compactor_cli.model.transcript import Message, Transcript
from compactor_cli.plan.cut_limits import CutLimits
from compactor_cli.plan.layout import Layout
from compactor_cli.plan.refresh import Mark, spans_of
from compactor_cli.plan.rules import with_edits
from compactor_cli.plan.shorten import Shortening, saved_tokens
from compactor_cli.plan.tokens import Counter
from compactor_cli.plan.trigger import TriggerDecision, Way

KEEP: Mark = (Action.KEEP, "")
ORPHAN = "orphan"
SUPERSEDED = "superseded"
BOOKKEEPING = "bookkeeping"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """One transcript as its model is to be shown it: ``messages`` and ``tokens`` are those after ``always``.

    ``always``: what the rules that always apply shorten; ``tokens_before``: the size without that.
    """

    transcript: Transcript
    messages: Sequence[Message]
    grouping: Grouping
    settings: Settings
    counter: Counter
    tokens: Sequence[int]
    tokens_before: int
    ground: CutLimits
    decision: TriggerDecision
    importance: Importance | None = None
    always: tuple[Shortening, ...] = ()

    @property
    def total_tokens(self) -> int:
        """The size after the rules that always apply."""
        return self.ground.total_tokens

    def shown(self, edits: Sequence[Shortening]) -> PlanInput:
        """The case as it reads when these parts are shortened for good."""
        tokens = list(self.tokens)
        for item in edits:
            tokens[item.edit.record] -= item.saved_tokens
        messages = with_edits(self.messages, edits)
        return replace(self, messages=messages, tokens=tokens, always=tuple(self._merged(edits)))

    def unchanged(self, reason: str, missed_target: int = 0) -> Plan:
        """The plan that changes nothing but what the rules always shorten."""
        is_due = self.decision.compacts or self.decision.way is Way.TARGET
        target = missed_target or (self.decision.target_tokens if is_due else 0)
        if self.always:
            return self.shortened((), target, f"{reason}; by rules that always apply")
        plan = self.plan([KEEP] * len(self.messages), (), target, reason)
        over_tokens = self.total_tokens - target
        return replace(plan, over_target=f"{over_tokens:,} tokens over: {reason}") if plan.over_target else plan

    def shortened(self, edits: Sequence[Shortening], target: int, reason: str) -> Plan:
        """The plan that keeps every record but orphans, which no output may hold."""
        marks = [KEEP] * len(self.messages)
        for i in self.grouping.orphaned():
            marks[i] = (Action.PRUNE, ORPHAN)
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
        """The plan that these marks and edits make. ``target`` 0: no target has to be held.

        With ``summary``, it stands before the first record after that cut's head that stays.
        """
        every = [item for item in self._merged(edits) if marks[item.edit.record] == KEEP]
        rules = {item.edit.record: item.rule for item in reversed(every)}
        final = [(Action.PRUNE, rules[i]) if i in rules else mark for i, mark in enumerate(marks)]
        staying = [i for i, (action, _) in enumerate(final) if action is Action.KEEP or i in rules]
        kept = sum(self.tokens[i] for i in staying) - saved_tokens(item for item in edits if item.edit.record in rules)
        budget = summary.summary_tokens if summary else 0
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
        """These edits, and what the rules always shorten of other parts; by record and part."""
        found = {(item.edit.record, item.edit.part): item for item in (*self.always, *edits)}
        return [found[place] for place in sorted(found)]

    def _over_target(self, kept: int, budget: int, target: int) -> str:
        """Why the target is missed; empty if it is held."""
        over = kept + budget - target
        if over <= 0:
            return ""
        system = self.ground.staying(0, self.ground.lead)
        if system > target:
            return f"{over:,} tokens over: the system records alone take {system:,} and are never cut"
        if budget and system + budget > target:
            return f"{over:,} tokens over: system records ({system:,}) and the smallest summary ({budget:,}) take more"
        if self.settings.strategy is Strategy.RULES:
            return f"{over:,} tokens over: the rules shorten no further"
        if not budget and self.settings.strategy is not Strategy.FIT:
            return f"{over:,} tokens over: what could be left out is no larger than a summary"
        return f"{over:,} tokens over: the newest exchange cannot be made any shorter"
