"""Plan and insertions to the compacted transcript, kept records byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from compactor_cli.core.plan import Action, Edit, Plan
from compactor_cli.core.records import Record
from compactor_cli.core.transcript import Container, Transcript
from compactor_cli.normalise.base import Cut, Dialect, Insertion, settled
from compactor_cli.read.values import parse


def compose(transcript: Transcript, plan: Plan, dialect: Dialect, insertions: Sequence[Insertion]) -> Transcript:
    """The transcript after the plan: its ``source()`` is what is to be written.

    Kept records keep their bytes; only their separators may change, where a neighbour went, and the numbers of
    dialects that number their records. The messages are read anew from the composed records, so that they can
    be checked as they will be read.
    """
    edits = _edits_by_record(plan.edits)
    left_out = {i for i in plan.indices(Action.PRUNE) if i not in edits} | set(plan.indices(Action.COVER))
    staying = [i for i in range(len(transcript.records)) if i not in left_out]
    cut = Cut(
        before=tuple(i for i in staying if i < plan.summary_at),
        after=tuple(i for i in staying if i >= plan.summary_at),
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
    return replace(composed, messages=dialect.read(composed.records, composed.row))


def _edits_by_record(edits: Iterable[Edit]) -> dict[int, dict[int, str]]:
    by_record: dict[int, dict[int, str]] = {}
    for edit in edits:
        by_record.setdefault(edit.record, {})[edit.part] = edit.text
    return by_record


def _shortened(record: Record, texts: dict[int, str] | None, dialect: Dialect) -> Record:
    if not texts:
        return record
    raw = dialect.shorten(record, texts)
    return replace(record, raw=raw, value=parse(raw))


def _inserted(raw: bytes, transcript: Transcript) -> Record:
    return Record(raw=raw, ending=b"", value=parse(raw), place=transcript.records[0].place)


def _joined(pieces: Sequence[Record], transcript: Transcript) -> Iterable[Record]:
    """The pieces with separators that fit their container, in the style of the source."""
    mark = b"," if transcript.frame.container is Container.ARRAY else b"\n"
    styles = (record.ending for record in transcript.records if mark in record.ending)
    separator = next(styles, mark)
    last_ending = transcript.records[-1].ending
    for piece in pieces[:-1]:
        yield piece if mark in piece.ending else replace(piece, ending=separator)
    yield from (replace(piece, ending=last_ending) for piece in pieces[-1:])
