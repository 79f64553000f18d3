"""Compacts one transcript: group → plan → summarise → render → compose → check. Reads and writes no file.

Modules that are needed only if a transcript changes are imported only then: most runs by a timer change none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from compactor_cli.formats import registry
from compactor_cli.formats.registry import Appending, Dialect, Insertion, InsertionPoint, Refreshing, get, reread
from compactor_cli.group.exchanges import Grouping, group, orphans
from compactor_cli.model.errors import InvariantError, UsageError
from compactor_cli.model.marker import PLACEHOLDER_HASH, Marker
from compactor_cli.model.plan import EXCERPTS, NOTICE, USAGE, Action, Importance, Mode, Plan, Tier
from compactor_cli.model.report import Compaction as Compaction
from compactor_cli.model.report import Outcome
from compactor_cli.model.settings import NEWEST, UNBROKEN, Keep, Settings, Size
from compactor_cli.model.transcript import Container, Message, Record, Role, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.planner import check_plan, make_plan, newest_request_warning, unchanged, unchanged_report
from compactor_cli.plan.tokens import Counter, OnceCounter, count_messages
from compactor_cli.plan.trigger import asked_focus, base_tokens, end_hash, previous_marker
from compactor_cli.read.jsonl import parse_record

if TYPE_CHECKING:
    from compactor_cli.model.summary import Answer, LoadState, Request, Summariser


def plan_transcript(
    transcript: Transcript,
    settings: Settings,
    *,
    counter: Counter,
    mode: Mode = Mode.REWRITE,
    importance: Importance | None = None,
) -> Plan:
    """What `compact_transcript` would do, without doing it."""
    grouping, counter = group(transcript.messages), OnceCounter(counter)
    return make_plan(transcript, grouping, settings, counter, mode, importance or _importance(settings.keep))


def _importance(keep: Keep) -> Importance | None:
    """What ranks the middle, or None; imported only if needed. Raises UsageError for an unknown name."""
    if keep.by == NEWEST:
        return None
    from compactor_cli.llm.importance import importance_of

    return importance_of(keep)


def compact_transcript(
    transcript: Transcript,
    settings: Settings,
    *,
    counter: Counter,
    summariser: Summariser,
    load_state: LoadState,
    plan: Plan | None = None,
    mode: Mode = Mode.REWRITE,
    summary_text: str = "",
    importance: Importance | None = None,
    archived: bool = True,
) -> Compaction:
    """Compact one transcript by its plan, which is made here unless given.

    ``summary_text``: the text of a summary written for this plan, to be inserted as it is. ``importance`` takes
    precedence over that of the settings. ``archived``: whether an archive keeps the original; only then does the
    summary name it.

    The output is read back and checked before it is returned: every call has its results, the target is met, and
    nothing grows (tokens in any case, bytes unless the mode is to append). Raises InvariantError if a check fails, and
    UsageError if the plan was made for another mode; the caller then leaves the source as it is.
    """
    grouping, counter = group(transcript.messages), OnceCounter(counter)
    if plan is None:
        plan = make_plan(transcript, grouping, settings, counter, mode, importance or _importance(settings.keep))
    else:
        check_plan(plan, transcript, grouping)
        if plan.mode is not mode and plan.changes:
            how = "appending" if plan.mode is Mode.APPEND else "rewriting"
            raise UsageError(f"the plan was made for {how}", next_step="make a new plan with the same options")
    if not plan.changes:
        return unchanged(transcript, plan, counter, grouping)
    work = CompactionWork(
        transcript=transcript, settings=settings, counter=counter, grouping=grouping, plan=plan, archived=archived
    )
    if plan.summary_tokens and not summary_text:
        return work.applied(*work.summary(summariser, load_state))
    from compactor_cli.model.summary import Answer, Source, Summary

    source = Source.MODEL if summary_text else Source.DIGEST
    if summary_text and not archived:
        from compactor_cli.render.template import load_template

        # A summary written beforehand may promise an archive that does not exist.
        summary_text = load_template(settings.template).without_promise(summary_text)
    return work.applied(Answer(summary=Summary(source=source, sections=())), summary_text)


def summary_request(
    transcript: Transcript, settings: Settings, plan: Plan, *, counter: Counter, load_state: LoadState
) -> Request | None:
    """What a summariser would be asked for by this plan; None if the plan needs no summary."""
    if not plan.changes or not plan.summary_tokens:
        return None
    grouping, counter = group(transcript.messages), OnceCounter(counter)
    work = CompactionWork(transcript=transcript, settings=settings, counter=counter, grouping=grouping, plan=plan)
    return work.request(load_state)[0]


def marker_for(transcript: Transcript, covered: Sequence[int], *, tokens: int, end: str = "") -> Marker:
    """The marker of a summary of these records; `Marker` explains ``tokens`` and ``end``."""
    return Marker(
        transcript=transcript.sha256[:16],
        first=covered[0] + 1,
        last=covered[-1] + 1,
        records=len(transcript.records),
        tokens=tokens,
        end=end,
    )


def with_unread(messages: Sequence[Message], covered: Sequence[int]) -> tuple[int, ...]:
    """The covered records, ascending, with those that an encrypted summary among them stands for.

    Some clients keep their summaries encrypted. If the newest summary up to the last covered record is, the superseded
    records before it are added, back to the last summary whose text is readable.
    """
    summaries = [(i, found.text) for i in range(covered[-1] + 1) if (found := messages[i].summary)]
    if not summaries or summaries[-1][1].strip():
        return tuple(covered)
    start = next((i for i, text in reversed(summaries) if text.strip()), 0)
    gone = (i for i in range(start, summaries[-1][0]) if messages[i].superseded and not messages[i].is_meta)
    return tuple(sorted({*covered, *gone}))


def kept_outside(transcript: Transcript, plan: Plan) -> str:
    """The records that stay between covered ones, in words; empty if there are none."""
    covered = plan.indices(Action.COVER)
    messages = transcript.messages
    kept = [i for i in plan.indices(Action.KEEP) if plan.summary_at <= i < covered[-1] and not messages[i].is_meta]
    if not kept:
        return ""
    return f"{len(kept)} of the records {kept[0] + 1}-{kept[-1] + 1}, with gaps between them, then the newest messages"


def check_output(compacted: Transcript, plan: Plan, tokens_after: int) -> None:
    """Raises `InvariantError` unless every call has its results and the tokens are within the plan's target."""
    messages = compacted.messages
    if plan.mode is Mode.APPEND:
        # Records that the client no longer sends are ignored, and so is what was appended: it holds no call, and must
        # not make a call in flight look like an orphan.
        source = messages[: plan.spans[-1].stop]
        messages = tuple(Message(role=Role.META) if message.superseded else message for message in source)
    if orphans(messages):
        raise InvariantError("the output would hold a tool call without its result")
    if tokens_after > plan.target_tokens and not plan.over_target:
        raise InvariantError(f"the output would take {tokens_after} tokens, over its target {plan.target_tokens}")


# The summary is fitted before the hash of the digest's state is known, which may take a few tokens more.
_MARKER_SLACK_TOKENS = 8
# Inserted once in place of the summary, to measure what the dialect and the acknowledgement put around it and to see
# which record is then the last of the conversation. In every dialect it is recognised as a summary.
_TRIAL = str(Marker(transcript="0" * 16, first=1, last=1, records=1, tokens=0, end=""))
# The number in `1,200 tokens over …` that the plan wrote: the summary may turn out smaller than planned.
_PLANNED_OVER = re.compile(r"^[\d,]+(?= tokens over)")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionWork:
    """One transcript with the plan that is being carried out."""

    transcript: Transcript
    settings: Settings
    counter: Counter
    grouping: Grouping
    plan: Plan
    archived: bool = True  # whether an archive keeps the original

    def summary(self, summariser: Summariser, load_state: LoadState) -> tuple[Answer, str]:
        """The summariser's answer, and the text of its summary."""
        from compactor_cli.render.template import load_template, render

        request, marker = self.request(load_state)
        # The plan may want excerpts or a notice in place of a summary by the given summariser.
        names = {span.name for span in self.plan.spans if span.action is Action.COVER}
        if EXCERPTS in names:
            from compactor_cli.archive.search import Retrieval

            summariser = Retrieval()
        elif NOTICE in names:
            from compactor_cli.archive.search import OmissionNotice

            summariser = OmissionNotice()
        answer = summariser.summarise(request)
        state = hashlib.sha256(answer.state).hexdigest()[:16] if answer.state else ""
        # The summary was fitted under the longer preface, so that it is the same with and without an archive.
        template = load_template(self.settings.template).sized(self.plan.summary_tokens, archived=self.archived)
        return answer, render(answer.summary, template, replace(marker, state=state))

    def request(self, load_state: LoadState) -> tuple[Request, Marker]:
        """What the summariser is asked for, and the summary's marker, which still lacks its state."""
        from compactor_cli.model.summary import Request
        from compactor_cli.render.template import heading_names, load_template, read_client, read_ours, render

        previous = previous_marker(self.transcript)
        trial = self._composed(_TRIAL)
        around_tokens = self._tokens(trial) - self.plan.tokens_kept - self.counter.count(_TRIAL)
        tokens = self.plan.tokens_before
        if previous:
            tokens = base_tokens(self.transcript, count_messages(self.counter, self.transcript.messages))
        covered = with_unread(self.transcript.messages, self.plan.indices(Action.COVER))
        marker = marker_for(self.transcript, covered, tokens=tokens, end=end_hash(trial))
        is_apart = self.settings.keep.by not in UNBROKEN
        marker = replace(marker, kept_outside=kept_outside(self.transcript, self.plan)) if is_apart else marker
        template = load_template(self.settings.template).sized(self.plan.summary_tokens)
        request = Request(
            transcript=self.transcript,
            covered=covered,
            kept=self.plan.indices(Action.KEEP),
            budget_tokens=self.plan.summary_tokens - around_tokens - _MARKER_SLACK_TOKENS,
            render=partial(render, template=template, marker=replace(marker, state=PLACEHOLDER_HASH)),
            count=self.counter.count,
            focus=self.settings.focus or asked_focus(self.transcript.messages, self.settings.trigger.tool) or "",
            language=self.settings.language,
            state=load_state(previous.state) if previous and previous.state else None,
            read=read_ours,
            read_client=read_client,
            restore_files=self.settings.restore_files,
            kept_by=self.settings.keep.by,
            heading_names=partial(heading_names, self.settings.template),
        )
        return request, marker

    def _composed(self, text: str) -> Transcript:
        answer = self.settings.acknowledgement
        insertions = [Insertion(role=Role.USER, text=text, is_summary=True)] if text else []
        insertions += [Insertion(role=Role.ASSISTANT, text=answer)] if text and answer else []
        return compose(self.transcript, self.plan, get(self.transcript.dialect), insertions)

    def _tokens(self, transcript: Transcript) -> int:
        return sum(count_messages(self.counter, transcript.messages))

    def applied(self, answer: Answer, text: str) -> Compaction:
        """The checked compaction with this summary; the unchanged transcript if the result would be no smaller."""
        transcript, plan = self.transcript, self.plan
        compacted = self._composed(text)
        tokens_after = self._tokens(compacted)
        output = compacted.source()
        report = unchanged_report(transcript, plan, self.grouping, self.counter)
        grows = plan.mode is Mode.REWRITE and len(output) >= report.bytes_before
        if grows or tokens_after >= plan.tokens_before:
            reason, over_tokens = "a summary would be no smaller", plan.tokens_before - plan.target_tokens
            has_target = self.settings.target != Size() or plan.tier in (Tier.COMPACT, Tier.EMERGENCY)
            over_target = f"{over_tokens:,} tokens over: {reason}" if has_target and over_tokens > 0 else ""
            plan = replace(plan, reason=reason, over_target=over_target)
            return unchanged(transcript, plan, self.counter, self.grouping)
        check_output(compacted, plan, tokens_after)
        lost_request = newest_request_warning(transcript, plan, self.counter, text)
        over_tokens = tokens_after - plan.target_tokens
        report = replace(
            report,
            outcome=Outcome.COMPACTED,
            tokens_after=tokens_after,
            over_target=_PLANNED_OVER.sub(f"{over_tokens:,}", plan.over_target) if over_tokens > 0 else "",
            bytes_after=len(output),
            summary_source=answer.summary.source.value if text else "",
            summary_tokens=self.counter.count(text) if text else 0,
            state_used=answer.summary.state_used,
            lost=dict(answer.summary.lost),
            retention=dict(answer.summary.retention),
            fell_back=answer.fell_back,
            invented=answer.invented,
            redacted=answer.redacted,
            refused=answer.refused,
            refused_tokens=answer.refused_tokens,
            notes=(*plan.notes, *answer.notes),
            warnings=(*answer.warnings, *filter(None, (lost_request,))),
        )
        return Compaction(
            output=output, report=report, plan=plan, state=answer.state, summary_text=text, transcript=compacted
        )


def compose(transcript: Transcript, plan: Plan, dialect: Dialect, insertions: Sequence[Insertion]) -> Transcript:
    """The transcript after the plan; its ``source()`` is what is to be written.

    Kept records keep their bytes; only separators next to removed records may change, and the numbers in dialects that
    number their records. In append mode the source is a prefix of the result. Messages that may now be read differently
    are read again, so that checks see them as any reader will.
    """
    edits: dict[int, dict[int, str]] = {}
    for edit in plan.edits:
        edits.setdefault(edit.record, {})[edit.part] = edit.text
    left_out = {i for i in plan.indices(Action.PRUNE) if i not in edits} | set(plan.indices(Action.COVER))
    staying = [i for i in range(len(transcript.records)) if i not in left_out]
    cut = InsertionPoint(
        before=tuple(i for i in staying if i < plan.summary_at), after=tuple(i for i in staying if i >= plan.summary_at)
    )
    # What must separate two records in this container, and the bytes that do so in the source.
    mark = b"," if transcript.frame.container is Container.ARRAY else b"\n"
    separator = next((record.ending for record in transcript.records if mark in record.ending), mark)
    if plan.mode is Mode.APPEND:
        # All records, and after them the client's own boundary.
        if not isinstance(dialect, Appending) or transcript.frame.container is not Container.LINES:
            what = f"nothing can be appended to this transcript ({dialect.title})"
            raise UsageError(what, next_step="use -i: the archive keeps the original")
        *others, last = transcript.records
        boundary = dialect.append(transcript, cut, insertions, plan.tokens_kept + plan.summary_tokens)
        ended = last if mark in last.ending else replace(last, ending=last.ending + separator)
        records = (*others, ended, *(replace(_inserted(raw, transcript), ending=separator) for raw in boundary))
        messages = reread(dialect, transcript, records, transcript.row)
        return replace(transcript, records=records, messages=messages, sha256="")
    # Shorten first: a dialect that repeats kept records in what it inserts must repeat them shortened.
    shortened = list(transcript.records)
    for i, texts in edits.items():
        parts = {part: text for part, text in texts.items() if part != USAGE}
        if parts:
            raw = dialect.shorten(shortened[i], parts)
            shortened[i] = replace(shortened[i], raw=raw, value=parse_record(raw))
        if USAGE in texts and isinstance(dialect, Refreshing):
            raw = dialect.recount(shortened[i], int(texts[USAGE]))
            shortened[i] = replace(shortened[i], raw=raw, value=parse_record(raw))
    edited = replace(transcript, records=tuple(shortened))
    new = dialect.insert(edited, cut, insertions) if insertions else ()
    pieces = [
        *(shortened[i] for i in cut.before),
        *(_inserted(raw, transcript) for raw in new),
        *(shortened[i] for i in cut.after),
    ]
    # Every record gets a separator that fits the container, in the style of the source.
    joined = [piece if mark in piece.ending else replace(piece, ending=separator) for piece in pieces]
    if pieces:
        joined[-1] = replace(pieces[-1], ending=transcript.records[-1].ending)
    composed = replace(transcript, records=tuple(joined), messages=(), sha256="")
    composed = registry.settled(dialect, transcript, composed)
    return replace(composed, messages=reread(dialect, transcript, composed.records, composed.row))


def _inserted(raw: bytes, transcript: Transcript) -> Record:
    return Record(raw=raw, ending=b"", value=parse_record(raw), place=transcript.records[0].place)
