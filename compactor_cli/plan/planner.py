"""Planner: the whole decision about one transcript, as a frozen value, checked before anything acts on it.

Every record is kept, pruned by a named rule, or covered by the summary; no call is separated from its result. `trigger`
decides whether to compact, `strategies` what replaces the records that do not stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats.client_signs import ASKS_FOR_SUMMARY
from compactor_cli.formats.directories import directories_of
from compactor_cli.formats.registry import Appending, Refreshing, find, get
from compactor_cli.group.exchanges import Grouping, newest_request
from compactor_cli.model import plan as plans
from compactor_cli.model.errors import InvariantError, UsageError
from compactor_cli.model.plan import USAGE, Action, Edit, Importance, Mark, Mode, Plan, Span, Tier, spans_of
from compactor_cli.model.report import LISTED, Compaction, Outcome, TranscriptReport
from compactor_cli.model.settings import Settings, Size, When
from compactor_cli.model.transcript import Container, Message, Role, Transcript
from compactor_cli.plan.tokens import Counter, bound_message, count_message, count_messages
from compactor_cli.plan.trigger import Way, asked_focus, base_tokens, decide, ended_phase, is_settled, left_alone_tokens


def make_plan(
    transcript: Transcript,
    grouping: Grouping,
    settings: Settings,
    counter: Counter,
    mode: Mode = Mode.REWRITE,
    importance: Importance | None = None,
) -> Plan:
    """Decide what happens to every record. Deterministic; time is linear in the transcript.

    ``importance`` decides which records of the middle stay with the newest exchanges; None: only the newest stay. The
    plan is checked. Raises `UsageError` if the settings name a model whose window is not known, or if nothing can be
    appended to this format.
    """
    earliest_tail = 0
    if mode is Mode.APPEND:
        name = transcript.dialect
        dialect = get(name)
        if not isinstance(dialect, Appending):
            what = f"nothing can be appended to a transcript of the format {name}"
            raise UsageError(what, next_step="use -i: the archive keeps the original")
        settings = replace(settings, prune=())
        if not dialect.appends_head:
            # The boundary only names the record from which on everything is sent: there is no head and no kept middle,
            # and the tail begins after all orphans.
            settings = replace(settings, keep=replace(settings.keep, head_turns=0, head_messages=0))
            importance = None
            earliest_tail = max(grouping.orphaned(), default=-1) + 1
    plan = _proven_small(transcript, settings)
    if plan is None:
        plan = _counted_plan(transcript, grouping, settings, counter, importance, earliest_tail)
    plan = appended(plan, grouping, settings) if mode is Mode.APPEND else refreshed(plan, transcript)
    check_plan(plan, transcript, grouping)
    return plan


def _proven_small(transcript: Transcript, settings: Settings) -> Plan | None:
    """The plan that leaves a transcript alone because its size in bytes is small enough; None if it is not.

    No tokens are counted.
    """
    most = 0 if _looks_at_all(settings) else left_alone_tokens(settings, transcript.model)
    if not most:
        return None
    # A row that could have stayed unread is reported with its size in bytes, so that totals are the same either way.
    is_unlisted = bool(transcript.records) and transcript.records[0].place.line > LISTED
    is_row = is_unlisted and transcript.frame.container is not Container.LINES
    has_media = is_row and any(result.media_count for message in transcript.messages for result in message.results)
    bound = transcript.size_bytes
    if not is_row or has_media or bound > most:
        bound = 0
        for message in transcript.messages:
            bound += bound_message(message)
            if bound > most:
                return None
    decision = decide(settings, tokens=bound, base_tokens=bound, model=transcript.model)
    return Plan(
        transcript_sha256=transcript.sha256,
        fingerprint=settings.fingerprint(),
        spans=(Span(start=0, stop=transcript.record_count, action=Action.KEEP),) if transcript.records else (),
        tokens_before=bound,
        tokens_kept=bound,
        notes=_BY_BYTES,
        reason=f"at most {bound:,} tokens, all of which stay" if decision.compacts else f"at most {decision.reason}",
        window_tokens=decision.window_tokens if decision.way is Way.PRESSURE else 0,
        target_tokens=decision.target_tokens,
    )


def _looks_at_all(settings: Settings) -> bool:
    """Whether the content of a transcript may lead to changes, however small it is."""
    return bool(settings.trigger.tool) or any(rule.when is When.ALWAYS for rule in settings.prune)


def unread_bytes(settings: Settings) -> int:
    """The size up to which rows of texts stay as they are without being read; 0: every row has to be read.

    Bytes bound tokens: each token of a text has at least one byte, and the keys of a message have more bytes than the 4
    tokens that are counted for it.
    """
    return 0 if _looks_at_all(settings) else settings.target.tokens


_BY_BYTES = ("tokens not counted: the size in bytes shows that it is small enough, and stands for them",)


def unread_report(row: Transcript, settings: Settings, counter: Counter) -> TranscriptReport:
    """The report of a row that stays unread, without its hash. There may be millions, so no plan is made for them."""
    bound, target = row.size_bytes, settings.target.tokens
    return TranscriptReport(
        outcome=Outcome.UNCHANGED,
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
        reason=f"at most {bound:,} tokens <= target {target:,}",
        target_tokens=target,
    )


# How compact encloses the material of its own prompts, in every language, and how clients ask for a summary.
_COMPACT_MARKS = (("\n<<transcript>>\n", "\n<<end of transcript>>"), ("\n<<part 1>>\n", "\n<<end of parts>>"))
_CLIENT_REQUESTS = (f"{ASKS_FOR_SUMMARY}conversation so far", f"{ASKS_FOR_SUMMARY}RECENT portion of the conversation")
# The request of a client stands near the beginning: at most a warning not to call tools precedes it.
_SEARCHED_CHARS = 1_000


def is_summary_call(messages: Sequence[Message]) -> bool:
    """Whether the user's newest message is the prompt of a compaction: it asks for a summary of a conversation."""
    for message in reversed(messages):
        if message.role is not Role.USER or message.results or message.superseded or not message.text.strip():
            continue
        if message.summary is not None:
            return False
        text, opening = message.text, message.text[:_SEARCHED_CHARS]
        is_theirs = any(opening_words in opening for opening_words in _CLIENT_REQUESTS)
        return is_theirs or any(first in f"\n{text}" and last in text for first, last in _COMPACT_MARKS)
    return False


# Only the original shows of what the share is to be taken: without it, every run would take the share of what is left.
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
    earliest_tail: int,
) -> Plan:
    """The plan of the settings' strategy, or one that changes nothing. ``earliest_tail``: as in `measure_limits`."""
    # Imported here because most runs by a timer meet no transcript whose tokens have to be counted.
    from compactor_cli.plan.layout import measure_limits
    from compactor_cli.plan.shorten import Ruler, with_edits
    from compactor_cli.plan.strategies import STRATEGIES, PlanInput

    messages = transcript.messages
    before = count_messages(counter, messages)
    rules = [rule for rule in settings.prune if rule.when is When.ALWAYS]
    ruler, orphaned = Ruler(messages=messages, counter=counter, sha256=transcript.sha256), grouping.orphaned()
    sent = (i for i, m in enumerate(messages) if not (m.superseded or m.summary or i in orphaned))
    always = tuple(ruler.applied(rules, sent)) if rules else ()
    shown = replace(transcript, messages=with_edits(messages, always)) if always else transcript
    tokens = list(before)
    for item in always:
        tokens[item.edit.record] -= item.saved_tokens
    total = sum(tokens)
    decision = decide(
        settings,
        tokens=total,
        base_tokens=base_tokens(shown, tokens) if settings.target.ratio else total,
        model=transcript.model,
        is_asked_for=asked_focus(messages, settings.trigger.tool) is not None,
        phase=ended_phase(messages) if settings.trigger.at_phase else "",
    )
    if settings.target.ratio and decision.compacts and not transcript.original_tokens and is_settled(shown):
        decision = replace(decision, compacts=False, reason=_TAKEN)
    if is_summary_call(messages):
        decision = replace(decision, compacts=False, reason="it is itself a request for a summary")
    given = PlanInput(
        transcript=transcript,
        messages=shown.messages,
        grouping=grouping,
        settings=settings,
        counter=counter,
        tokens=tokens,
        tokens_before=sum(before),
        limits=measure_limits(shown, grouping, tokens, earliest_tail),
        decision=decision,
        importance=importance,
        always=always,
    )
    return STRATEGIES[settings.strategy](given) if decision.compacts else given.unchanged(decision.reason)


OUTDATED = "outdated"
COUNTER = "usage"


def refreshed(plan: Plan, transcript: Transcript) -> Plan:
    """The plan with the client's bookkeeping updated; the plan itself where nothing is rewritten.

    Clients trust the token counters in their session files: one from before the compaction makes them compact again
    at once. Some of their bookkeeping also repeats the conversation, the removed part included.

    Left out, by the rule ``outdated``: bookkeeping that repeats messages next to them. Changed, by the rule ``usage``:
    the counter that the client goes by, if it is larger than the size after the compaction.
    """
    dialect = find(transcript.dialect) if plan.changes and plan.mode is Mode.REWRITE else None
    if not isinstance(dialect, Refreshing):
        return plan
    marks = plan.marks()
    edited = {edit.record for edit in plan.edits}
    for i in dialect.outdated(transcript.records, _staying(marks, edited)):
        if marks[i] == (Action.KEEP, ""):
            marks[i] = (Action.PRUNE, OUTDATED)
    tokens = max(plan.tokens_kept + plan.summary_tokens, 1)
    counters = dialect.counters(transcript.records, _staying(marks, edited))
    stale = sorted(i for i, counted_tokens in counters.items() if counted_tokens > tokens)
    for i in stale:
        marks[i] = marks[i] if i in edited else (Action.PRUNE, COUNTER)
    edits = (*plan.edits, *(Edit(record=i, part=USAGE, text=str(tokens)) for i in stale))
    return replace(plan, spans=spans_of(marks), edits=edits)


def _staying(marks: Sequence[Mark], edited: set[int]) -> list[int]:
    return [i for i, (action, _) in enumerate(marks) if action is Action.KEEP or i in edited]


_AS_THEY_ARE = "texts cannot be shortened where records stay as they are"


def appended(plan: Plan, grouping: Grouping, settings: Settings) -> Plan:
    """The plan for appending: what is not covered is kept, nothing is shortened, and no bookkeeping is left out.

    With a call in flight nothing is appended: the call's result would come after the summary.
    """
    if not plan.changes:
        return replace(plan, mode=Mode.APPEND)
    reason = "" if plan.summary_tokens else f"{_AS_THEY_ARE}, and nothing can be covered"
    if grouping.in_flight:
        reason = "a call is in flight: nothing is appended after it"
    if reason:
        over_tokens = plan.tokens_before - plan.target_tokens if settings.target != Size() else 0
        return replace(
            plan,
            spans=(Span(start=0, stop=plan.spans[-1].stop, action=Action.KEEP),),
            edits=(),
            tokens_kept=plan.tokens_before,
            summary_tokens=0,
            summary_at=0,
            reason=reason,
            over_target=f"{over_tokens:,} tokens over: {reason}" if over_tokens > 0 else "",
            mode=Mode.APPEND,
        )
    # These stay pruned: the client does not send superseded records, and orphans must not be sent.
    is_left_out = (plans.SUPERSEDED, plans.ORPHAN)
    marks = [
        (Action.KEEP, "") if action is Action.PRUNE and name not in is_left_out else (action, name)
        for action, name in plan.marks()
    ]
    over = f"{plan.over_target}; " if plan.over_target else ""
    over_target = f"{over}{_AS_THEY_ARE}" if plan.edits else plan.over_target
    return replace(plan, spans=spans_of(marks), edits=(), over_target=over_target, mode=Mode.APPEND)


def check_plan(plan: Plan, transcript: Transcript, grouping: Grouping) -> None:
    """Raises `InvariantError` unless the plan was made for this transcript and can be carried out.

    That is: the spans tile the records; only pruned records have edits; no exchange is divided between what stays and
    what goes, and none that stays has a call without its result; a summary is planned if and only if records are
    covered; the target is met or the plan has the reason why not.
    """
    count = len(transcript.records)
    _demand(plan.transcript_sha256 == transcript.sha256, "the plan was made for another transcript")
    borders = [0, *(border for span in plan.spans for border in (span.start, span.stop)), count]
    is_tiled = all(left == right for left, right in zip(borders[::2], borders[1::2], strict=True))
    has_lengths = all(span.start < span.stop for span in plan.spans)
    _demand(is_tiled and has_lengths, "the plan's spans do not tile the records")
    edited = {edit.record for edit in plan.edits}
    pruned = set(plan.indices(Action.PRUNE))
    _demand(edited <= pruned, "the plan edits a record that is not pruned")
    leaving = set(plan.indices(Action.COVER)) | (pruned - edited)
    exchanges = grouping.exchanges if leaving else ()
    divided = [exchange for exchange in exchanges if 0 < len(leaving.intersection(exchange)) < len(exchange)]
    _demand(not divided, f"the plan divides the exchange of records {divided[:1]}")
    orphaned = grouping.orphaned() if plan.changes else frozenset()
    _demand(orphaned <= leaving, "the plan keeps a call without its result, or the other way round")
    _demand(bool(plan.count(Action.COVER)) == bool(plan.summary_tokens), "a summary is planned for nothing")
    _demand(0 <= plan.summary_at <= count, "the summary's place is outside the transcript")
    fits = plan.tokens_kept + plan.summary_tokens <= plan.target_tokens
    _demand(fits or not plan.changes or bool(plan.over_target), "the plan is over its target and does not say why")


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise InvariantError(what, next_step="this is a defect of compact")


def planned_report(transcript: Transcript, plan: Plan) -> TranscriptReport:
    """The report of a plan that is not carried out: the most tokens that the transcript would have after it."""
    planned_tokens = min(plan.tokens_kept + plan.summary_tokens, plan.tokens_before)
    return _report(
        transcript,
        plan,
        outcome=Outcome.COMPACTED if plan.changes else Outcome.UNCHANGED,
        tokens_after=planned_tokens if plan.changes else plan.tokens_before,
    )


def unchanged_report(transcript: Transcript, plan: Plan, grouping: Grouping, counter: Counter) -> TranscriptReport:
    """The report of a transcript that stays as it is, which is also what is known before a plan is carried out."""
    pruned: dict[str, int] = {}
    for span in plan.spans:
        if span.action is Action.PRUNE:
            pruned[span.name] = pruned.get(span.name, 0) + span.stop - span.start
    return _report(
        transcript,
        plan,
        outcome=Outcome.UNCHANGED,
        token_method=counter.method,
        tokens_after=plan.tokens_before,
        pruned=pruned,
        orphans=tuple(map(str, (*grouping.orphan_calls, *grouping.orphan_results))),
        in_flight=tuple(map(str, grouping.in_flight)),
    )


def newest_request_warning(transcript: Transcript, plan: Plan, counter: Counter, summary_text: str) -> str:
    """What happened to the user's newest message; empty where it stays whole, as it is or in the summary."""
    newest = newest_request(transcript.messages)
    if newest < 0 or not plan.changes:
        return ""
    message = transcript.messages[newest]
    size = f"the newest message of the user ({count_message(counter, message):,} tokens)"
    if any(edit.record == newest and edit.part != USAGE for edit in plan.edits):
        return f"{size} is cut: raise the target to keep it whole"
    action = next(span.action for span in plan.spans if span.start <= newest < span.stop)
    is_edited = any(edit.record == newest for edit in plan.edits)
    # A summary names files relative to the working directory and has its own bullets: compare without directories, and
    # words alone where the text is not there to the letter.
    text = directories_of(transcript).strip(message.text) if action is Action.COVER else ""
    if text and text not in summary_text and " ".join(_WORD.findall(text)) not in " ".join(_WORD.findall(summary_text)):
        return f"{size} is replaced by the summary, which does not hold all of it"
    if action is Action.PRUNE and not is_edited:
        return f"{size} is left out: raise the target to keep it"
    return ""


_WORD = re.compile(r"\w+")


def _report(transcript: Transcript, plan: Plan, **details: Any) -> TranscriptReport:
    """A report of a plan: what all reports have in common, and these details."""
    size_bytes = transcript.size_bytes
    return TranscriptReport(
        sha256=transcript.sha256,
        dialect=transcript.dialect,
        line=transcript.records[0].place.line if transcript.records else 0,
        row=transcript.records[0].place.row if transcript.records else 0,
        records=transcript.record_count,
        reason=plan.reason,
        tier=plan.tier.value,
        window_tokens=plan.window_tokens,
        target_tokens=plan.target_tokens,
        tokens_before=plan.tokens_before,
        bytes_before=size_bytes,
        bytes_after=size_bytes,
        kept=plan.count(Action.KEEP),
        covered=plan.count(Action.COVER),
        over_target=plan.over_target,
        notes=plan.notes,
        warnings=tuple(filter(None, (_unread_warning(transcript),))),
        **details,
    )


# A session that was opened and left has at most this many lines of bookkeeping, and no message.
_MOST_WITHOUT_MESSAGE = 2


def _unread_warning(transcript: Transcript) -> str:
    """The warning that no record holds a message; empty if one does, or there are few records.

    It happens where the records of another program look like those of the format.
    """
    count = len(transcript.messages)
    if count <= _MOST_WITHOUT_MESSAGE or not all(message.is_meta for message in transcript.messages):
        return ""
    return f"0 of {count:,} records hold a message, read as {transcript.dialect}: --format names another format"


def unchanged(transcript: Transcript, plan: Plan, counter: Counter, grouping: Grouping) -> Compaction:
    """The result for a transcript that is left as it was."""
    report = unchanged_report(transcript, plan, grouping, counter)
    return Compaction(output=transcript.source(), report=report, plan=plan)
