"""Rows: a conversation that is one JSON value, in an array of messages within a line or a document."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from compactor_cli.formats.base import Dialect, JsonPath, read_messages
from compactor_cli.formats.located_parts import at
from compactor_cli.formats.registry import dialects_for
from compactor_cli.model.errors import UnknownShape
from compactor_cli.model.transcript import Container, Frame, Record, Transcript
from compactor_cli.read.jsonl import element_spans

# This many elements of a row are looked at before the most likely dialect is taken.
_LOOKED_AT_ELEMENTS = 50
_CERTAIN = 3
# Where documents hold an array of rows: the document itself, the runs of a benchmark, the samples of a log, the agents
# of a file, the calls of a model in a run, or exported conversations.
_ARRAYS_OF_ROWS: tuple[JsonPath, ...] = (
    (),
    ("simulations",),
    ("samples",),
    ("agents",),
    ("llm_interactions",),
    ("conversations",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRow:
    """A value recognised as a conversation: whose it is, and where its messages are."""

    dialect: Dialect
    path: JsonPath
    elements: Sequence[Any]


def find_row(value: Any, forced: Dialect | None = None) -> ConversationRow | None:
    """The row that a value is, of the forced dialect or of the surest that claims it. The same for the same value."""
    if not isinstance(value, (dict, list)):
        return None
    dialects = (forced,) if forced else dialects_for(value)
    claims = [(dialect, path) for dialect in dialects if (path := dialect.array_path(value)) is not None]
    if not claims:
        return None
    dialect, path = claims[0] if len(claims) == 1 else _surest(value, claims)
    return ConversationRow(dialect=dialect, path=path, elements=_at(value, path))


def _surest(value: Any, claims: Sequence[tuple[Dialect, JsonPath]]) -> tuple[Dialect, JsonPath]:
    totals = [dialect.score(value) for dialect, _ in claims]
    if max(totals) >= _CERTAIN:
        return claims[totals.index(max(totals))]
    for element in islice(_at(value, claims[0][1]), _LOOKED_AT_ELEMENTS):
        if _is_plain(element):
            continue
        for i, claim in enumerate(claims):
            score = claim[0].score(element)
            if score >= _CERTAIN:
                return claim
            totals[i] += score
    return claims[totals.index(max(totals))]


def _is_plain(element: Any) -> bool:
    """Whether it is a role and a text, which tells nothing."""
    return isinstance(element, dict) and len(element) == 2 and isinstance(element.get("content"), str)


def _at(value: Any, path: JsonPath) -> Any:
    """The elements there; of an object, the values of its members."""
    for step in path:
        value = value[step]
    return tuple(value.values()) if isinstance(value, dict) else value


def row_transcript(record: Record, row: ConversationRow) -> Transcript:
    """The row as a transcript of its own; what ends its line belongs to it."""
    start, records, suffix = _elements(record, row.path, row.elements)
    return Transcript(
        dialect=row.dialect.name,
        records=records,
        messages=read_messages(row.dialect, records, record.value),
        frame=Frame(container=Container.ARRAY, prefix=record.raw[:start], suffix=suffix),
        sha256=hashlib.sha256(record.raw + record.ending).hexdigest(),
        model=row.dialect.model(records, record.value),
        row=record.value,
    )


def find_rows(record: Record, forced: Dialect | None = None) -> tuple[bytes, tuple[Record, ...]] | None:
    """The rows of a document that is an array of rows, each as a record, and the bytes before the first."""
    for path in _ARRAYS_OF_ROWS:
        elements = _array(record.value, path)
        if elements and any(find_row(element, forced) for element in islice(elements, _LOOKED_AT_ELEMENTS)):
            start, records, suffix = _elements(record, path, elements)
            rows = [replace(row, place=replace(row.place, row=i)) for i, row in enumerate(records, 1)]
            return record.raw[:start], (*rows[:-1], replace(rows[-1], ending=rows[-1].ending + suffix))
    return None


def _array(value: Any, path: JsonPath) -> Sequence[Any]:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, list) else ()


def _elements(record: Record, path: JsonPath, elements: Sequence[Any]) -> tuple[int, tuple[Record, ...], bytes]:
    """Where the first element starts, the elements, and the bytes from ``]`` on with the record's ending."""
    raw = record.raw
    _, spans, end = element_spans(raw, path, elements, of_object=isinstance(at(record.value, path), dict))
    if len(spans) != len(elements):
        raise UnknownShape(
            f"{len(spans)} elements are written where {len(elements)} are read",
            place=record.place,
            next_step="look for a key that is given twice",
        )
    first = spans[0][0] if spans else end
    return first, tuple(_records(record, spans, elements, end)), raw[end:] + record.ending


def _records(record: Record, spans: Sequence[tuple[int, int]], elements: Sequence[Any], end: int) -> Iterator[Record]:
    raw, place = record.raw, record.place
    nexts = [*(start for start, _ in spans[1:]), end][: len(spans)]
    for (start, stop), next_start, value in zip(spans, nexts, elements, strict=True):
        yield Record(raw=raw[start:stop], ending=raw[stop:next_start], value=value, place=place)
