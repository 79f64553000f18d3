"""Plan and insertions to the compacted transcript, kept records byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from compactor_cli.formats.base import Appending, Dialect, Insertion, InsertionPoint, Refreshing, reread, settled
from compactor_cli.model.errors import UsageError
from compactor_cli.model.plan import USAGE, Action, Edit, Mode, Plan
from compactor_cli.model.transcript import Container, Record, Transcript
from compactor_cli.read.jsonl import parse_record


def compose(transcript: Transcript, plan: Plan, dialect: Dialect, insertions: Sequence[Insertion]) -> Transcript:
    """The transcript after the plan: its ``source()`` is what is to be written.

    Kept records keep their bytes; only their separators may change, where a neighbour went, and the numbers of
    dialects that number their records. In append mode the source is a prefix of the result. The messages are
    read anew where a record may be read in another way than before, so that they can be checked as they will be read.
    """
    edits = _edits_by_record(plan.edits)
    left_out = {i for i in plan.indices(Action.PRUNE) if i not in edits} | set(plan.indices(Action.COVER))
    staying = [i for i in range(len(transcript.records)) if i not in left_out]
    cut = InsertionPoint(
        before=tuple(i for i in staying if i < plan.summary_at),
        after=tuple(i for i in staying if i >= plan.summary_at),
    )
    if plan.mode is Mode.APPEND:
        records = _appended(transcript, plan, dialect, cut, insertions)
        return replace(
            transcript, records=records, messages=reread(dialect, transcript, records, transcript.row), sha256=""
        )
    # Shortened first: dialects that repeat kept records in what they insert repeat them as they will stand.
    shortened = tuple(_shortened(record, edits.get(i), dialect) for i, record in enumerate(transcript.records))
    edited = replace(transcript, records=shortened)
    new = dialect.insert(edited, cut, insertions) if insertions else ()
    pieces = [
        *(shortened[i] for i in cut.before),
        *(_inserted(raw, transcript) for raw in new),
        *(shortened[i] for i in cut.after),
    ]
    composed = replace(transcript, records=tuple(_joined(pieces, transcript)), messages=(), sha256="")
    composed = settled(dialect, transcript, composed)
    return replace(composed, messages=reread(dialect, transcript, composed.records, composed.row))


def _appended(
    transcript: Transcript, plan: Plan, dialect: Dialect, cut: InsertionPoint, insertions: Sequence[Insertion]
) -> tuple[Record, ...]:
    """All records, and after them the client's own boundary."""
    if not isinstance(dialect, Appending) or transcript.frame.container is not Container.LINES:
        raise UsageError(
            f"nothing can be appended to this transcript ({dialect.title})",
            next_step="use -i: the archive keeps the original",
        )
    *others, last = transcript.records
    separator = _separator(transcript)
    new = dialect.append(transcript, cut, insertions, plan.tokens_kept + plan.summary_tokens)
    ended = last if b"\n" in last.ending else replace(last, ending=last.ending + separator)
    return (*others, ended, *(replace(_inserted(raw, transcript), ending=separator) for raw in new))


def _edits_by_record(edits: Iterable[Edit]) -> dict[int, dict[int, str]]:
    by_record: dict[int, dict[int, str]] = {}
    for edit in edits:
        by_record.setdefault(edit.record, {})[edit.part] = edit.text
    return by_record


def _shortened(record: Record, texts: dict[int, str] | None, dialect: Dialect) -> Record:
    if not texts:
        return record
    parts = {part: text for part, text in texts.items() if part != USAGE}
    if parts:
        raw = dialect.shorten(record, parts)
        record = replace(record, raw=raw, value=parse_record(raw))
    if USAGE in texts and isinstance(dialect, Refreshing):
        raw = dialect.recount(record, int(texts[USAGE]))
        record = replace(record, raw=raw, value=parse_record(raw))
    return record


def _inserted(raw: bytes, transcript: Transcript) -> Record:
    return Record(raw=raw, ending=b"", value=parse_record(raw), place=transcript.records[0].place)


def _joined(pieces: Sequence[Record], transcript: Transcript) -> Iterable[Record]:
    """The pieces with separators that fit their container, in the style of the source."""
    mark = _mark(transcript)
    separator = _separator(transcript)
    last_ending = transcript.records[-1].ending
    for piece in pieces[:-1]:
        yield piece if mark in piece.ending else replace(piece, ending=separator)
    yield from (replace(piece, ending=last_ending) for piece in pieces[-1:])


def _mark(transcript: Transcript) -> bytes:
    return b"," if transcript.frame.container is Container.ARRAY else b"\n"


def _separator(transcript: Transcript) -> bytes:
    """The bytes between two records in the source."""
    mark = _mark(transcript)
    return next((record.ending for record in transcript.records if mark in record.ending), mark)
