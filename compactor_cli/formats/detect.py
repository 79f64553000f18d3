"""Records to transcripts: finding their dialect, and where one conversation ends and the next begins.

A stream may hold rows (a conversation a line), sessions (a record a line) or both, one after another, in
any dialects. File names are not looked at: names lie, contents do not.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from compactor_cli.formats import registry
from compactor_cli.formats.contents import json_value, listed
from compactor_cli.formats.located import at
from compactor_cli.formats.registry import Dialect, JsonPath, dialects_for, get, plain_scores, read_messages
from compactor_cli.model.errors import CompactError, UnknownShape
from compactor_cli.model.plugins import PluginGroup, plugin_failed, plugin_names
from compactor_cli.model.report import LISTED
from compactor_cli.model.transcript import Container, Frame, Record, Role, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import INVALID, OnInvalid, element_spans, records_in
from compactor_cli.read.streams import open_stream

# This many elements of a row are looked at before the most likely dialect is taken.
_LOOKED_AT_ELEMENTS = 50
_CERTAIN = 3
# Where documents hold an array of rows: the document itself, the runs of a benchmark, the samples of a log, the agents
# of a file, the calls of a model in a run, or exported conversations.
_ARRAYS_OF_ROWS: tuple[JsonPath, ...] = (
    (),
    *((key,) for key in ("simulations", "samples", "agents", "llm_interactions", "conversations")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRow:
    """A value that was recognised as a whole conversation."""

    dialect: Dialect
    path: JsonPath  # of the array of messages in the value
    elements: Sequence[Any]  # of that array, or the values of the members of an object


def find_row(value: Any, forced: Dialect | None = None) -> ConversationRow | None:
    """The value as a row, in the forced dialect or in the surest one that claims it; None if it is not a row."""
    if not isinstance(value, (dict, list)) or (forced is None and plain_scores(value)):
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
        # A role and a text decide nothing, since many formats have these.
        if isinstance(element, dict) and len(element) == 2 and isinstance(element.get("content"), str):
            continue
        for i, claim in enumerate(claims):
            score = claim[0].score(element)
            if score >= _CERTAIN:
                return claim
            totals[i] += score
    return claims[totals.index(max(totals))]


def _at(value: Any, path: JsonPath) -> Any:
    """The elements of the array at this path, or the values of the members of an object there."""
    for step in path:
        value = value[step]
    return tuple(value.values()) if isinstance(value, dict) else value


def _row_transcript(record: Record, row: ConversationRow) -> Transcript:
    """The row as a transcript of its own, including the end of its line."""
    start, records, suffix = _elements(record, row.path, row.elements)
    return Transcript(
        dialect=row.dialect.name,
        records=records,
        messages=read_messages(row.dialect, records, record.value),
        frame=Frame(container=Container.ARRAY, prefix=record.raw[:start], suffix=suffix),
        sha256=_hash(record),
        model=row.dialect.model(records, record.value),
        row=record.value,
    )


def _find_rows(record: Record, forced: Dialect | None = None) -> tuple[bytes, tuple[Record, ...]] | None:
    """The bytes before the first row of a document that is an array of rows, and its rows as records; else None."""
    for path in _ARRAYS_OF_ROWS:
        elements = listed(at(record.value, path))
        if elements and any(find_row(element, forced) for element in islice(elements, _LOOKED_AT_ELEMENTS)):
            start, records, suffix = _elements(record, path, elements)
            rows = [replace(row, place=replace(row.place, row=i)) for i, row in enumerate(records, 1)]
            return record.raw[:start], (*rows[:-1], replace(rows[-1], ending=rows[-1].ending + suffix))
    return None


def _elements(record: Record, path: JsonPath, elements: Sequence[Any]) -> tuple[int, tuple[Record, ...], bytes]:
    """The offset of the first element, the elements as records, and the bytes from ``]`` on with the ending."""
    raw = record.raw
    _, spans, end = element_spans(raw, path, elements, of_object=isinstance(at(record.value, path), dict))
    if len(spans) != len(elements):
        what = f"{len(spans)} elements are written where {len(elements)} are read"
        raise UnknownShape(what, place=record.place, next_step="look for a key that is given twice")
    first = spans[0][0] if spans else end
    # Each ends where the next begins.
    nexts = [*(start for start, _ in spans[1:]), end][: len(spans)]
    records = tuple(
        Record(raw=raw[start:stop], ending=raw[stop:following], value=value, place=record.place)
        for (start, stop), following, value in zip(spans, nexts, elements, strict=True)
    )
    return first, records, raw[end:] + record.ending


# This many records are looked at before the most likely dialect is taken.
_LOOKED_AT_RECORDS = 50

# One plain message within a session of another format is an oddity of that session.
_LEAST_FOREIGN_SCORE = 2
# The dialect of lines that several dialects know equally well, without a mark of any.
_PLAIN = "openai-chat"


def open_transcripts(
    lines: Iterable[Record],
    *,
    dialect: str = "",
    prefix: bytes | None = None,
    among_rows_of: str = "",
    unread_bytes: int = 0,
) -> Iterator[Transcript]:
    """Yield the transcripts of one input while it is read.

    ``dialect`` names the format; without it, that of each conversation is found by its content. ``prefix`` are the
    bytes before the first record (None: those that the reader of the records has). ``among_rows_of`` is the dialect of
    the row before the first record, if the records are the rest of a dataset. Rows of up to ``unread_bytes`` that hold
    only texts are not read, except for those that reports list.

    Guarantees: ``source()`` of the transcripts, joined, is prefix and records byte for byte; a row is held only while
    it is used, a session is held whole. Without records there are no transcripts. Unknown records next to known ones
    are META. If no built-in format fits, those of plug-ins are tried. Raises UnknownShape if nothing is recognised,
    PluginFailed with the name of a plug-in that fails.
    """
    before = getattr(lines, "prefix", b"") if prefix is None else prefix
    reader = _TranscriptReader(lines, dialect, before, unread_bytes)
    if among_rows_of:
        reader.last, reader.in_rows = get(among_rows_of), True
    try:
        yield from reader.transcripts()
    except CompactError:
        raise
    except Exception as error:
        if reader.forced and reader.forced.name in plugin_names(PluginGroup.DIALECTS):
            raise plugin_failed(PluginGroup.DIALECTS, reader.forced.name, error) from error
        raise


def transcripts_of(path: str, dialect: str = "", on_invalid: OnInvalid = OnInvalid.KEEP) -> Iterator[Transcript]:
    """The transcripts of a file, or of standard input (``-``), one at a time. Raises InputError."""
    with open_stream(path) as stream:
        records = records_in(stream, on_invalid)
        yield from open_transcripts(records, dialect=dialect)


class _TranscriptReader:
    """Divides records into transcripts: holds the records still to come, and the dialect recognised last."""

    def __init__(self, lines: Iterable[Record], name: str, prefix: bytes, unread_bytes: int) -> None:
        self.forced = get(name) if name else None
        self.last: Dialect | None = None
        self.in_rows = False
        self.lines = iter(lines)
        self.coming: deque[Record] = deque()
        self.prefix = prefix
        self.unread_bytes = unread_bytes

    def transcripts(self) -> Iterator[Transcript]:
        while record := self._next():
            certain = "" if self.last else _certain(self._scores(record.value))
            may_be_row = not certain or get(certain).array_path(record.value) is not None
            if count := self._unread_records(record):
                # Of this row only its size needs to be known.
                yield self._framed(
                    Transcript(dialect="", records=(record,), messages=(), frame=_WHOLE_ROW, unread_records=count)
                )
            elif may_be_row and (row := find_row(record.value, self.forced)):
                self.last, self.in_rows = row.dialect, True
                yield self._framed(_row_transcript(record, row))
            elif may_be_row and (rows := _find_rows(record, self.forced)):
                self.prefix += rows[0]
                self.coming.extendleft(reversed(rows[1]))
            elif self.in_rows and not self._is_known(record.value):
                # This row of a dataset is not a conversation: it is passed on as it is, with the reason.
                frame = Frame(container=Container.ARRAY, prefix=record.raw, suffix=record.ending)
                fault, sha256 = _unknown(record, self.forced), _hash(record)
                yield self._framed(
                    Transcript(dialect="", records=(), messages=(), frame=frame, sha256=sha256, fault=fault)
                )
            elif session_dialect := self._session_dialect(record):
                self.last, self.in_rows = session_dialect, False
                yield self._framed(self._session(record, session_dialect))
            else:
                self.coming.appendleft(record)

    def _unread_records(self, record: Record) -> int:
        """The number of records of this row if it is like the row before and need not be read; else 0."""
        if not self.in_rows or len(record.raw) > self.unread_bytes or record.place.line <= LISTED:
            return 0
        is_text_only: Callable[[Sequence[Any]], bool] | None = getattr(self.last, "is_text_only", None)
        if is_text_only is None or self.last is None or (path := self.last.array_path(record.value)) is None:
            return 0
        elements = _at(record.value, path)
        return len(elements) if is_text_only(elements) else 0

    def _next(self) -> Record | None:
        return self.coming.popleft() if self.coming else next(self.lines, None)

    def _dialects(self, value: Any) -> Iterable[Dialect]:
        return (self.forced,) if self.forced else dialects_for(value)

    def _is_known(self, value: Any) -> bool:
        """Whether any dialect knows the value. Lines that are not JSON count too: the user asked to keep them."""
        return value is INVALID or any(dialect.score(value) for dialect in self._dialects(value))

    def _scores(self, value: Any) -> Mapping[str, int]:
        """The scores of dialects for a value, up to the first that is certain; those after it are not even imported."""
        if self.forced is None and (scores := plain_scores(value)):
            return scores
        scores = {}
        for dialect in self._dialects(value):
            scores[dialect.name] = dialect.score(value)
            if scores[dialect.name] >= _CERTAIN:
                break
        return scores

    def _framed(self, transcript: Transcript) -> Transcript:
        """The transcript with the bytes before it, if there are any."""
        prefix, self.prefix = self.prefix, b""
        if not prefix:
            return transcript
        framed = replace(transcript, frame=replace(transcript.frame, prefix=prefix + transcript.frame.prefix))
        return replace(framed, sha256=hashlib.sha256(framed.source()).hexdigest())

    def _session(self, first: Record, dialect: Dialect) -> Transcript:
        """The session that begins with this record. Only the transcript keeps its records in memory."""
        session = _Session(dialect, first)
        while record := self._next():
            if session.ends_before(record) or self._is_foreign(record, session):
                self.coming.appendleft(record)
                break
            session.add(record)
        return session.transcript()

    def _is_foreign(self, record: Record, session: _Session) -> bool:
        """Whether a record does not belong to the session: it is a row, or begins a session of another dialect."""
        dialect = session.dialect
        is_row = dialect.array_path(record.value) is not None
        if not isinstance(record.value, (dict, list)) or (dialect.score(record.value) and not is_row):
            return False
        row = find_row(record.value, self.forced)
        if row or self.forced:
            return row is not None and len(row.elements) > 0
        if not self._is_known(record.value) or session.has_parent_of(record.value):
            return False
        return self._surest(chain((record,), self._ahead()), _LEAST_FOREIGN_SCORE) not in (dialect, None)

    def _session_dialect(self, first: Record) -> Dialect | None:
        """The dialect of the session that begins here; None if a plug-in's dialect is used from now on, also for rows.

        Raises UnknownShape if no dialect knows it.
        """
        found = self._surest(chain((first,), self._ahead())) or self.last
        if found is None and self.forced is None:
            self.forced = registry.plugin_dialect(first.value)
            if self.forced:
                return None
        if found is None:
            raise _unknown(first, self.forced)
        return found

    def _ahead(self) -> Iterator[Record]:
        """The records after the current one, which are still to be read."""
        missing = _LOOKED_AT_RECORDS - 1 - len(self.coming)
        self.coming.extend(islice(self.lines, max(missing, 0)))
        return islice(tuple(self.coming), _LOOKED_AT_RECORDS - 1)

    def _surest(self, records: Iterable[Record], least_score: int = 1) -> Dialect | None:
        """The dialect that is certain of any of these records, else the best one if it knows half of the objects.

        A certain record after records that only another dialect knows belongs to the next session. None if no dialect
        is good enough.
        """
        totals: Counter[str] = Counter()
        known: Counter[str] = Counter()
        objects = 0
        for value in (record.value for record in records):
            scores = self._scores(value)
            if certain := _certain(scores):
                least = max(known[certain], 1)
                if any(count > least and not get(name).score(value) for name, count in known.items()):
                    break
                return get(certain)
            objects += isinstance(value, dict)
            totals.update(scores)
            known.update(name for name, score in scores.items() if score)
        best = max(totals, key=lambda name: (totals[name], name == _PLAIN and totals[name] == known[name]), default="")
        return get(best) if best and totals[best] >= least_score and known[best] * 2 >= objects else None


def _certain(scores: Mapping[str, int]) -> str:
    return next((name for name, score in scores.items() if score >= _CERTAIN), "")


class _Session:
    """Collects the records of one session."""

    def __init__(self, dialect: Dialect, first: Record) -> None:
        self.dialect = dialect
        self.key_of: Callable[[Any], str] = getattr(dialect, "session_key", lambda value: "")
        self.unread_keys: frozenset[str] = getattr(dialect, "unread_keys", frozenset())
        self.records: list[Record] = []
        self.system = b""
        self.keys = set[str]()
        self.add(first)
        # Whether a record that is not a system prompt follows the first.
        self.has_conversation = False

    def add(self, record: Record) -> None:
        """One more record of this session."""
        self.records.append(self._held(record))
        if _is_system(record.value):
            self.system = self.system or record.raw
        else:
            self.has_conversation = True
        if key := self.key_of(record.value):
            self.keys.add(key)

    def _held(self, record: Record) -> Record:
        value = record.value
        if not isinstance(value, dict) or self.unread_keys.isdisjoint(value):
            return record
        return replace(record, value={key: item for key, item in value.items() if key not in self.unread_keys})

    def ends_before(self, record: Record) -> bool:
        """Whether a record begins another session: by its kind, by its system prompt or by its key."""
        key = self.key_of(record.value)
        if self.dialect.starts(record.value):
            return key not in self.keys and self._is_begun()
        if self.has_conversation and self.system and record.raw == self.system:
            return True
        if not key or not self.keys or key in self.keys:
            return False
        return not _parent_id(record.value) and self._is_begun()

    def has_parent_of(self, value: Any) -> bool:
        """Whether a record names one of this session as its parent, as damaged records may still do."""
        parent = _parent_id(value)
        values = (record.value for record in reversed(self.records) if parent and isinstance(record.value, dict))
        return any(parent in (value.get("uuid"), value.get("id")) for value in values)

    def _is_begun(self) -> bool:
        """Whether a message was read. Several first lines in a row are one beginning (a forked session, a prompt)."""
        return any(message.role not in (Role.META, Role.SYSTEM) for message in self.dialect.read(self.records))

    def transcript(self) -> Transcript:
        """The collected records as a transcript."""
        records = tuple(self.records)
        digest = hashlib.sha256()
        for record in records:
            digest.update(record.raw + record.ending)
        return Transcript(
            dialect=self.dialect.name,
            records=records,
            messages=read_messages(self.dialect, records),
            frame=Frame(),
            sha256=digest.hexdigest(),
            model=self.dialect.model(records),
        )


def _parent_id(value: Any) -> Any:
    return (value.get("parentUuid") or value.get("parentId")) if isinstance(value, dict) else None


_WHOLE_ROW = Frame(container=Container.ARRAY)


def _hash(record: Record) -> str:
    return hashlib.sha256(record.raw + record.ending).hexdigest()


def _is_system(value: Any) -> bool:
    return isinstance(value, dict) and (value.get("role") or value.get("from")) in ("system", "developer")


def _unknown(record: Record, forced: Dialect | None) -> UnknownShape:
    what = f"nothing here is of the format {forced.name}" if forced else "no format is recognised"
    items = record.value.items() if isinstance(record.value, dict) else ()
    texts = ((key, text) for key, text in items if isinstance(text, str) and text[:1] in ("[", "{"))
    advice = "name the format with --format; `compactor formats` lists them"
    if forced:
        advice = "leave --format out to have the format found by content"
    elif key := next((key for key, text in texts if find_row(json_value(text))), ""):
        advice = f"the key {key} holds one as JSON text: use compactor batch --column {key}"
    return UnknownShape(f"{what} ({_seen(record.value)})", place=record.place, next_step=advice)


def _seen(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(list(value)[:8])
        return f"an object with the keys {keys}" if keys else "an empty object"
    if isinstance(value, list) and value:
        return f"an array, first in it {_seen(value[0])}"
    return {list: "an array", str: "a string", int: "a number", float: "a number"}.get(type(value), "no object")
