"""Counted: the plan for a transcript whose size in tokens has to be known. Imported when the first one is met."""

from __future__ import annotations

from dataclasses import replace

from compactor_cli.group.exchanges import Grouping
from compactor_cli.model.importance import Importance
from compactor_cli.model.plan import Plan
from compactor_cli.model.settings import Settings, Strategy, When
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.asked import asked_focus
from compactor_cli.plan.by_fit import by_fit
from compactor_cli.plan.by_rules import by_rules
from compactor_cli.plan.by_summary import by_summary
from compactor_cli.plan.case import Case
from compactor_cli.plan.ground import survey
from compactor_cli.plan.own_call import is_summary_call
from compactor_cli.plan.phase import ended_phase
from compactor_cli.plan.previous import base_tokens, is_settled
from compactor_cli.plan.prune import Shortening
from compactor_cli.plan.rules import Ruler, with_edits
from compactor_cli.plan.tokens import Counter, count_messages
from compactor_cli.plan.trigger import decide

_BY = {
    Strategy.SUMMARY: by_summary,
    Strategy.RETRIEVAL: by_summary,
    Strategy.RULES: by_rules,
    Strategy.FIT: by_fit,
}


# Its original would tell how much the share is; without it the share would be taken of what is left, run by run.
_TAKEN = "nothing was added since the last compaction, and its original is not in the archive: name a size in tokens"


def counted_plan(
    transcript: Transcript,
    grouping: Grouping,
    settings: Settings,
    counter: Counter,
    importance: Importance | None,
    floor: int,
) -> Plan:
    """The plan of the settings' strategy, or the one that changes nothing. ``floor``: as in `survey`."""
    before = count_messages(counter, transcript.messages)
    always = _always(transcript, grouping, settings, counter)
    shown = replace(transcript, messages=with_edits(transcript.messages, always)) if always else transcript
    tokens = list(before)
    for item in always:
        tokens[item.edit.record] -= item.saved_tokens
    total = sum(tokens)
    decision = decide(
        settings,
        tokens=total,
        base_tokens=base_tokens(shown, tokens) if settings.target.ratio else total,
        model=transcript.model,
        is_asked_for=asked_focus(transcript.messages, settings.trigger.tool) is not None,
        phase=ended_phase(transcript.messages) if settings.trigger.at_phase else "",
    )
    if settings.target.ratio and decision.compacts and not transcript.original_tokens and is_settled(shown):
        decision = replace(decision, compacts=False, reason=_TAKEN)
    if is_summary_call(transcript.messages):
        decision = replace(decision, compacts=False, reason="it is itself a request for a summary")
    case = Case(
        transcript=transcript,
        messages=shown.messages,
        grouping=grouping,
        settings=settings,
        counter=counter,
        tokens=tokens,
        tokens_before=sum(before),
        ground=survey(shown, grouping, tokens, floor),
        decision=decision,
        importance=importance,
        always=always,
    )
    return _BY[settings.strategy](case) if decision.compacts else case.unchanged(decision.reason)


def _always(transcript: Transcript, grouping: Grouping, settings: Settings, counter: Counter) -> tuple[Shortening, ...]:
    """What the rules that always apply shorten of the messages that are sent."""
    rules = [rule for rule in settings.prune if rule.when is When.ALWAYS]
    if not rules:
        return ()
    ruler = Ruler(messages=transcript.messages, counter=counter, sha256=transcript.sha256)
    orphaned = grouping.orphaned()
    messages = transcript.messages
    sent = (i for i, m in enumerate(messages) if not (m.superseded or m.summary or i in orphaned))
    return tuple(ruler.applied(rules, sent))
