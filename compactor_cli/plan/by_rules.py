"""Rules alone: texts are shortened, and at most the middle of the transcript is left out; no summary is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compactor_cli.model.plan import Plan
from compactor_cli.model.settings import PruneRule
from compactor_cli.plan.by_fit import middle_out
from compactor_cli.plan.layout import LayoutSearch
from compactor_cli.plan.plan_input import PlanInput
from compactor_cli.plan.rules import Ruler, halved, with_edits
from compactor_cli.plan.shorten import Shortening


def by_rules(case: PlanInput) -> Plan:
    """The plan by `Strategy.RULES`: rule by rule, the oldest texts first, as far as the target asks.

    The rules spare what the settings' head and tail protect. See `Rules` for what follows where they do not do.
    """
    target = case.decision.target_tokens
    # Nothing in the result says of what a share was taken, and a second run would take it again: the rules do
    # what they can then, once.
    is_aimed = target > 0 and not case.settings.target.ratio
    excess = case.total_tokens - target if is_aimed else case.total_tokens
    edits, saved = _shortened(case, excess, case.settings.rules.halvings if is_aimed else 0)
    if is_aimed and saved < excess and case.settings.rules.middle_out:
        return middle_out(case.shown(edits))
    if not edits:
        return case.unchanged("no rule applies", target)
    return case.shortened(edits, target, f"{case.decision.reason}; by rules, without a summary")


def _shortened(case: PlanInput, excess_tokens: int, halvings: int) -> tuple[tuple[Shortening, ...], int]:
    """What is shortened of which part, each once, and what all of it saves."""
    cut = LayoutSearch(ground=case.ground, settings=case.settings).natural()
    records = [i for i in range(cut.head_stop, cut.tail_start) if not case.messages[i].superseded]
    messages, saved = case.messages, 0
    found: dict[tuple[int, int], Shortening] = {}
    for rules in _rounds(case.settings.prune, halvings):
        ruler = Ruler(messages=messages, counter=case.counter, sha256=case.transcript.sha256)
        new: list[Shortening] = []
        for item in ruler.applied(rules, records):
            if saved >= excess_tokens:
                break
            if item.rule == rules[-1].name:
                new.append(item)
                saved += item.saved_tokens
        messages = with_edits(messages, new)
        for item in new:
            place = (item.edit.record, item.edit.part)
            before = found[place].saved_tokens if place in found else 0
            found[place] = replace(item, saved_tokens=item.saved_tokens + before)
        if saved >= excess_tokens:
            break
    return tuple(found[place] for place in sorted(found)), saved


def _rounds(rules: Sequence[PruneRule], halvings: int) -> Iterator[tuple[PruneRule, ...]]:
    """The rules one by one, each after those that go before it; then all of them with halved limits."""
    for _ in range(halvings + 1):
        yield from (tuple(rules[: count + 1]) for count in range(len(rules)))
        rules = [halved(rule) for rule in rules]
