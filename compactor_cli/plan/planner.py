"""Planner: the whole decision about one transcript, as a frozen value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from compactor_cli.group.exchanges import Grouping
from compactor_cli.model.plan import Action, Mode, Plan, Span, Tier
from compactor_cli.model.report import LISTED, Outcome, TranscriptReport
from compactor_cli.model.settings import Settings, When
from compactor_cli.model.transcript import Container, Message, Role, Transcript
from compactor_cli.plan.finish import append_floor, append_settings, appended, can_keep_middle, check_plan, refreshed
from compactor_cli.plan.tokens import Counter, bound_message, count_messages
from compactor_cli.plan.trigger import Way, asked_focus, base_tokens, decide, ended_phase, is_settled, left_alone_tokens

if TYPE_CHECKING:
    from compactor_cli.model.plan import Importance
    from compactor_cli.plan.shorten import Shortening


def make_plan(
    transcript: Transcript,
    grouping: Grouping,
    settings: Settings,
    counter: Counter,
    mode: Mode = Mode.REWRITE,
    importance: Importance | None = None,
) -> Plan:
    """Decide what happens to every record. Deterministic; time is linear in the transcript.

    ``importance`` decides what of the middle stays next to the newest exchanges (see `choose`); None: the newest stay.
    The plan is checked by `check_plan` before it is returned. Raises `UsageError` if the settings name a model
    whose window is not known, or if nothing can be appended in this dialect.
    """
    floor = 0
    if mode is Mode.APPEND:
        settings = append_settings(settings, transcript.dialect)
        importance = importance if can_keep_middle(transcript.dialect) else None
        floor = append_floor(transcript.dialect, grouping)
    plan = _proven_small(transcript, settings)
    if plan is None:
        plan = _counted_plan(transcript, grouping, settings, counter, importance, floor)
    plan = appended(plan, grouping, settings) if mode is Mode.APPEND else refreshed(plan, transcript)
    check_plan(plan, transcript, grouping)
    return plan


def _proven_small(transcript: Transcript, settings: Settings) -> Plan | None:
    """The plan for a transcript whose bytes already show that it is left alone: nothing is counted."""
    most = 0 if _looks_at_all(settings) else left_alone_tokens(settings, transcript.model)
    bound = _row_bound(transcript) if most else 0
    if not 0 < bound <= most:
        bound = 0
        for message in transcript.messages:
            bound += bound_message(message)
            if bound > most:
                return None
    return left_alone(transcript, settings, bound) if most else None


def _looks_at_all(settings: Settings) -> bool:
    """Whether something is done because of what a transcript holds, however small it is."""
    return bool(settings.trigger.tool) or any(rule.when is When.ALWAYS for rule in settings.prune)


def unread_bytes(settings: Settings) -> int:
    """Rows of texts of up to this many bytes stay as they are, whatever they say; 0: they have to be read.

    A token of a text has at least one of its bytes, and the keys of a message have more than the 4 tokens that are
    counted for it.
    """
    return 0 if _looks_at_all(settings) else settings.target.tokens


def _row_bound(transcript: Transcript) -> int:
    """The size of a row that could have stayed unread, so that totals are the same whether it did; else 0."""
    is_listed = not transcript.records or transcript.records[0].place.line <= LISTED
    if is_listed or transcript.frame.container is Container.LINES:
        return 0
    has_media = any(result.media_count for message in transcript.messages for result in message.results)
    return 0 if has_media else transcript.size_bytes


_BY_BYTES = ("tokens not counted: the size in bytes shows that it is small enough, and stands for them",)


def left_alone(transcript: Transcript, settings: Settings, bound: int) -> Plan:
    """The plan for a transcript that has at most ``bound`` tokens, and is left alone for that."""
    return Plan(
        transcript_sha256=transcript.sha256,
        fingerprint=settings.fingerprint(),
        spans=(Span(start=0, stop=transcript.record_count, action=Action.KEEP),) if transcript.records else (),
        tokens_before=bound,
        tokens_kept=bound,
        notes=_BY_BYTES,
        **_why_left_alone(settings, bound, transcript.model),
    )


def unread_report(row: Transcript, settings: Settings, counter: Counter) -> TranscriptReport:
    """What is reported of an unread row, which `left_alone` leaves. There are millions: no plan is made of each."""
    bound = row.size_bytes
    return TranscriptReport(
        outcome=Outcome.UNCHANGED,
        sha256=row.sha256,
        line=row.records[0].place.line,
        row=row.records[0].place.row,
        records=row.unread_records,
        tier=Tier.NONE.value,
        token_method=counter.method,
        tokens_before=bound,
        tokens_after=bound,
        bytes_before=bound,
        bytes_after=bound,
        kept=row.unread_records,
        notes=_BY_BYTES,
        **_why_left_alone(settings, bound, row.model),
    )


def _why_left_alone(settings: Settings, bound: int, model: str) -> dict[str, Any]:
    decision = decide(settings, tokens=bound, base_tokens=bound, model=model)
    return {
        "reason": f"at most {bound:,} tokens, all of which stay" if decision.compacts else f"at most {decision.reason}",
        "window_tokens": decision.window_tokens if decision.way is Way.PRESSURE else 0,
        "target_tokens": decision.target_tokens,
    }


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
        if message.summary is not None:
            return False
        text, opening = message.text, message.text[:_SEARCHED_CHARS]
        is_theirs = any(opening_words in opening for opening_words in _THEIRS)
        return is_theirs or any(first in f"\n{text}" and last in text for first, last in _OURS)
    return False


# Its original would show how much the share is; without it the share would be taken of what is left, run by run.
_TAKEN = (
    "nothing was added since the last compaction, and no archive of this run has its original: name a size in tokens,"
    " or that archive with --archive-dir"
)


def _counted_plan(
    transcript: Transcript,
    grouping: Grouping,
    settings: Settings,
    counter: Counter,
    importance: Importance | None,
    floor: int,
) -> Plan:
    """The plan of the settings' strategy, or the one that changes nothing. ``floor``: as in `measure_limits`."""
    # Most runs of a timer meet no transcript whose tokens have to be counted.
    from compactor_cli.plan.layout import measure_limits
    from compactor_cli.plan.shorten import with_edits
    from compactor_cli.plan.strategies import STRATEGIES, PlanInput

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
    return STRATEGIES[settings.strategy](case) if decision.compacts else case.unchanged(decision.reason)


def _always(transcript: Transcript, grouping: Grouping, settings: Settings, counter: Counter) -> tuple[Shortening, ...]:
    """What the rules that always apply shorten of the messages that are sent."""
    rules = [rule for rule in settings.prune if rule.when is When.ALWAYS]
    if not rules:
        return ()
    from compactor_cli.plan.shorten import Ruler

    ruler = Ruler(messages=transcript.messages, counter=counter, sha256=transcript.sha256)
    orphaned = grouping.orphaned()
    messages = transcript.messages
    sent = (i for i, m in enumerate(messages) if not (m.superseded or m.summary or i in orphaned))
    return tuple(ruler.applied(rules, sent))
