"""Counted: the plan for a transcript whose size in tokens has to be known. Imported when the first one is met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compactor_cli.group.exchanges import Grouping
from compactor_cli.model.plan import Importance, Plan
from compactor_cli.model.settings import Settings, Strategy, When
from compactor_cli.model.transcript import Message, Role, Transcript
from compactor_cli.plan.by_fit import by_fit
from compactor_cli.plan.by_rules import by_rules
from compactor_cli.plan.by_summary import by_summary
from compactor_cli.plan.cut_limits import measure_limits
from compactor_cli.plan.phase import ended_phase
from compactor_cli.plan.plan_input import PlanInput
from compactor_cli.plan.previous_marker import base_tokens, is_settled
from compactor_cli.plan.requested_focus import asked_focus
from compactor_cli.plan.rules import Ruler, with_edits
from compactor_cli.plan.shorten import Shortening
from compactor_cli.plan.tokens import Counter, count_messages
from compactor_cli.plan.trigger import decide

# Material of a prompt written by compact stands between such lines, in every language of the prompt.
_OURS = (("\n<<transcript>>\n", "\n<<end of transcript>>"), ("\n<<part 1>>\n", "\n<<end of parts>>"))
_THEIRS = (
    "Your task is to create a detailed summary of the conversation so far",
    "Your task is to create a detailed summary of the RECENT portion of the conversation",
)
# Before the sentence stands at most a warning not to call tools.
_SEARCHED_CHARS = 1_000


def is_summary_call(messages: Sequence[Message]) -> bool:
    """Whether the newest words of the user ask for a summary of a conversation, as a compaction does."""
    for message in reversed(messages):
        if message.role is not Role.USER or message.results or message.superseded or not message.text.strip():
            continue
        return message.summary is None and _asks(message.text)
    return False


def _asks(text: str) -> bool:
    opening = text[:_SEARCHED_CHARS]
    return any(opening_words in opening for opening_words in _THEIRS) or any(
        first in f"\n{text}" and last in text for first, last in _OURS
    )


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
    """The plan of the settings' strategy, or the one that changes nothing. ``floor``: as in `measure_limits`."""
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
    case = PlanInput(
        transcript=transcript,
        messages=shown.messages,
        grouping=grouping,
        settings=settings,
        counter=counter,
        tokens=tokens,
        tokens_before=sum(before),
        ground=measure_limits(shown, grouping, tokens, floor),
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
