"""The summary of a session alone: the session stays as it is, and the caller puts the summary where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from compactor_cli.archive.index import text_of
from compactor_cli.archive.maintenance import store_session
from compactor_cli.archive.restore import remember
from compactor_cli.archive.store import Archive
from compactor_cli.digest.analysis import Analysis, analyse
from compactor_cli.digest.digest import Digest
from compactor_cli.digest.loss import Dropped, dropped
from compactor_cli.engine import marker_for, with_unread
from compactor_cli.formats.clients import sent, sent_messages
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.marker import PLACEHOLDER_HASH, record_id
from compactor_cli.model.settings import Settings, with_head
from compactor_cli.model.summary import Request, Source, Summary
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.layout import LayoutSearch, budget_for, measure_limits
from compactor_cli.plan.tokens import BYTES_PER_TOKEN, Counter, OnceCounter, count_messages, counter_for
from compactor_cli.plan.trigger import base_tokens, previous_marker
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.read.streams import open_stream, shown_name
from compactor_cli.render.template import bare_request, heading_names, load_template, render


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLimit:
    """The largest size of a summary. Without a limit, the settings and the size of what it covers decide."""

    tokens: int = 0  # 0: no limit
    chars: int = 0  # 0: no limit

    def budget(self, covered_tokens: int, settings: Settings, counter: Counter) -> tuple[int, Callable[[str], int]]:
        """A budget in tokens, and a counter such that a text within that budget keeps both limits."""
        if not self.chars:
            return self.tokens or budget_for(settings.budget, covered_tokens), counter.count
        chars, tokens = self.chars, self.tokens or max(self.chars // BYTES_PER_TOKEN, 1)

        def count(text: str) -> int:
            by_chars = -(-len(text) * tokens // chars)
            return max(by_chars, counter.count(text)) if self.tokens else by_chars

        return tokens, count

    def check(self, request: Request) -> None:
        """Raise UsageError if not even an empty summary is within the limit."""
        least = request.count(request.render(Summary(source=Source.DIGEST, sections=())))
        if least > request.budget_tokens:
            asked, unit = (self.chars, "characters") if self.chars else (self.tokens, "tokens")
            enough = -(-least * asked // request.budget_tokens)
            raise UsageError(f"{asked:,} {unit} hold no summary", next_step=f"ask for more than {enough:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDigest:
    """A summary and what it covers."""

    summary: str
    kept: tuple[int, ...]  # positions of the records that a client sends besides the summary
    first_kept: int  # position of the first of them after the summary; -1: none
    first_kept_id: str  # the client's id of that record; empty: it has none
    tokens_before: int  # of the whole transcript
    transcript: str  # its SHA-256
    state: str = ""  # the name of its stored table, from which the next digest goes on; empty: none was archived
    analysis: Analysis | None = None  # of the records that the summary covers; None: there are none

    def as_json(self) -> dict[str, Any]:
        """The digest for programs; indices count from 0."""
        first = {"index": self.first_kept, "id": self.first_kept_id or None} if self.first_kept >= 0 else None
        return {
            "summary": self.summary,
            "first_kept": first,
            "kept": list(self.kept),
            "tokens_before": self.tokens_before,
            "transcript": self.transcript,
        }


def read_session(path: str, dialect: str = "") -> Transcript:
    """The one conversation of a file, or of standard input (``-``); lines that are not JSON are kept as bookkeeping.

    Raises InputError if it holds none or several.
    """
    with open_stream(path) as stream:
        records = read_records(stream.reader, path, OnInvalid.KEEP)
        found = list(islice(open_transcripts(records, dialect=dialect), 2))
    name = shown_name(path)
    if len(found) == 2:
        raise InputError("it holds more than one conversation", place=name, next_step="give one of them")
    if not found or found[0].fault or not found[0].records:
        raise (found and found[0].fault) or InputError("it holds no conversation", place=name, next_step="name another")
    return found[0]


def digest_session(
    transcript: Transcript,
    settings: Settings,
    *,
    limit: SizeLimit,
    archive: Archive | None = None,
    source: str = "",
    state: bytes | None = None,
) -> SessionDigest:
    """Summarise all that a client sends except for the tail that ``settings`` keep; head and target are ignored.

    With an archive, the transcript is stored there first, as read from ``source``. ``state`` is the table of an earlier
    digest, used if the transcript itself does not name one. Raises UsageError for a limit that is too small for any
    summary, OutputError if the archive cannot be written.
    """
    counter = OnceCounter(counter_for(settings.tokenizer, transcript.model))
    tokens = count_messages(counter, transcript.messages)
    covered, kept, first_kept = _cut(transcript, settings, tokens)
    done = SessionDigest(
        summary="",
        kept=kept,
        first_kept=first_kept,
        first_kept_id=_record_id(transcript.records[first_kept].value) if first_kept >= 0 else "",
        tokens_before=sum(tokens),
        transcript=transcript.sha256,
    )
    if archive:
        store_session(archive, transcript, source)
        remember(archive.folder)
    if not covered:
        return done
    covered = with_unread(transcript.messages, covered)
    unread = tuple(replace(m, superseded=False) for i in covered if (m := transcript.messages[i]).superseded)
    covered_tokens = sum(tokens[i] for i in covered) + sum(count_messages(counter, unread))
    budget, count = limit.budget(covered_tokens, settings, counter)
    template = load_template(settings.template).sized(budget)
    # The summary is in no output yet, so that the marker cannot name the output's last record.
    marker = marker_for(transcript, covered, tokens=base_tokens(transcript, tokens))
    previous = previous_marker(transcript)
    own_state = archive.load_state(previous.state) if archive and previous else None
    longest = replace(marker, state=PLACEHOLDER_HASH) if archive else marker
    request = replace(
        bare_request(transcript, covered, budget, count, partial(render, template=template, marker=longest)),
        kept=kept,
        focus=settings.focus,
        language=settings.language,
        state=own_state or state,
        heading_names=partial(heading_names, settings.template),
    )
    limit.check(request)
    answer, analysis = Digest().with_analysis(request)
    name = archive.store_state(answer.state) if archive and answer.state else ""
    text = render(answer.summary, template, replace(marker, state=name))
    return replace(done, summary=text, state=name, analysis=analysis)


def _cut(
    transcript: Transcript, settings: Settings, tokens: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The records to summarise, the sent records that stay, and the first of those in the tail (-1: there is none).

    All are positions. Earlier summaries are summarised as well. The system records at the beginning always stay; calls
    in flight are part of the tail, and are summarised if there is no tail. Records that no client sends, such as those
    of subagents, are summarised too if they are before the tail.
    """
    limits = measure_limits(transcript, group(transcript.messages), tokens)
    keep = with_head(settings.keep, "turns", 0)
    has_tail = any((keep.tail_tokens, keep.tail_messages, keep.tail_turns, keep.tail_ratio))
    search = LayoutSearch(limits=limits, settings=replace(settings, keep=keep))
    start = search.by_settings().tail_start if has_tail else len(transcript.messages)
    shown = sorted(sent(transcript))
    covered = [i for i in shown if limits.system_end <= i < start or transcript.messages[i].summary]
    left_in = frozenset(shown).difference(covered)
    kept = tuple(i for i in shown if i in left_in)
    if covered:
        covered += (i for i in range(covered[0], start) if transcript.messages[i].is_meta)
    return tuple(sorted(covered)), kept, next((i for i in kept if i >= start), -1)


def left_out(original: Transcript, now: Transcript) -> Iterator[tuple[str, Dropped]]:
    """What a session as it is now no longer shows of its original, the most likely to be needed first.

    Each comes with the id by which `expand` finds its record; that is empty if only an earlier summary knew of it.
    """
    if original.sha256 == now.sha256:
        return
    request = bare_request(original, sorted(sent(original)), 0, len, str)
    later = "\n".join(text_of(message) for _, message in sent_messages(now))
    for thing in dropped(analyse(request), later):
        yield record_id(original.sha256, thing.record) if thing.record >= 0 else "", thing


def _record_id(value: Any) -> str:
    """The client's id of this record; empty if it has none."""
    inner = value if isinstance(value, Mapping) else {}
    info = inner.get("info")
    names = (inner.get("uuid"), inner.get("id"), info.get("id") if isinstance(info, Mapping) else None)
    return next((name for name in names if isinstance(name, str)), "")
