"""Planner: the whole decision about one transcript, as a frozen value."""

from __future__ import annotations

from dataclasses import replace

from compactor_cli.core.importance import Importance
from compactor_cli.core.plan import Action, Mode, Plan
from compactor_cli.core.settings import Settings, Strategy, When
from compactor_cli.core.transcript import Transcript
from compactor_cli.group.exchanges import Grouping
from compactor_cli.plan.append import append_floor, append_settings, appended, holds_islands
from compactor_cli.plan.asked import asked_focus
from compactor_cli.plan.by_fit import by_fit
from compactor_cli.plan.by_rules import by_rules
from compactor_cli.plan.by_summary import by_summary
from compactor_cli.plan.case import Case
from compactor_cli.plan.check import check_plan
from compactor_cli.plan.ground import survey
from compactor_cli.plan.own_call import is_summary_call
from compactor_cli.plan.previous import base_tokens
from compactor_cli.plan.prune import Shortening
from compactor_cli.plan.refresh import refreshed, spans_of
from compactor_cli.plan.rules import Ruler, with_edits
from compactor_cli.plan.tokens import Counter, bound_message, count_messages
from compactor_cli.plan.trigger import Way, decide, left_alone_tokens

_BY = {
    Strategy.SUMMARY: by_summary,
    Strategy.RETRIEVAL: by_summary,
    Strategy.RULES: by_rules,
    Strategy.FIT: by_fit,
}


def make_plan(
    transcript: Transcript,
    grouping: Grouping,
    settings: Settings,
    counter: Counter,
    mode: Mode = Mode.REWRITE,
    importance: Importance | None = None,
) -> Plan:
    """Decide what happens to every record. Deterministic; time is linear in the transcript.

    ``importance`` says what of the middle stays beside the newest exchanges (see `choose`); None: the newest stay.
    The plan is checked by `check_plan` before it is returned. Raises `UsageError` if the settings name a model
    whose window is not known, or if nothing can be appended in this dialect.
    """
    floor = 0
    if mode is Mode.APPEND:
        settings = append_settings(settings, transcript.dialect)
        importance = importance if holds_islands(transcript.dialect) else None
        floor = append_floor(transcript.dialect, grouping)
    plan = _proven_small(transcript, settings)
    plan = plan or _counted(transcript, grouping, settings, counter, importance, floor)
    plan = appended(plan, grouping) if mode is Mode.APPEND else refreshed(plan, transcript)
    check_plan(plan, transcript, grouping)
    return plan


def _proven_small(transcript: Transcript, settings: Settings) -> Plan | None:
    """The plan for a transcript whose bytes already show that it is left alone: nothing is counted."""
    always = settings.trigger.tool or any(rule.when is When.ALWAYS for rule in settings.prune)
    most = 0 if always else left_alone_tokens(settings, transcript.model)
    bound = 0
    for message in transcript.messages:
        bound += bound_message(message)
        if bound > most:
            return None
    if not most:
        return None
    decision = decide(settings, tokens=bound, base_tokens=bound, model=transcript.model)
    return Plan(
        transcript_sha256=transcript.sha256,
        fingerprint=settings.fingerprint(),
        spans=spans_of([(Action.KEEP, "")] * len(transcript.messages)),
        reason=f"at most {decision.reason}",
        window_tokens=decision.window_tokens if decision.way is Way.PRESSURE else 0,
        target_tokens=decision.target_tokens,
        tokens_before=bound,
        tokens_kept=bound,
        notes=("tokens not counted: the size in bytes shows that it is small enough, and stands for them",),
    )


def _counted(
    transcript: Transcript,
    grouping: Grouping,
    settings: Settings,
    counter: Counter,
    importance: Importance | None,
    floor: int,
) -> Plan:
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
    )
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
