"""Conversations that are values: cells of a table, columns of a batch, lists of messages, lines; in and out alike."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import orjson

from compactor_cli.formats.detect import find_row, open_transcripts
from compactor_cli.formats.jsontext import member_span
from compactor_cli.model.errors import CompactError, InputError, UnknownShape, UsageError
from compactor_cli.model.plan import Action
from compactor_cli.model.report import Compaction, Outcome, TranscriptReport
from compactor_cli.model.transcript import Container, Frame, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import OnInvalid, parse, read_records, records_in
from compactor_cli.read.streams import open_stream
from compactor_cli.run.rows import RowMaker, mapped

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelRun


# Keys of rows under which the formats of datasets have their messages.
COMMON_NAMES = ("messages", "conversations")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCell:
    """What became of one. ``text`` is the source, byte for byte, where nothing changed; ``reason``: why it failed."""

    text: bytes
    reports: tuple[TranscriptReport, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMaker:
    """Compacts the cells of one column. Safe for several threads.

    A cell holds a JSON value (a row, or the array of its messages, which is then read under the name of its
    ``column``, or under a name that rows commonly have) or the lines of a session. It gives what the same text gives
    as a line of a file. One that fails is passed on unchanged.
    """

    rows: RowMaker
    column: str
    dialect: str = ""

    def compact(self, text: bytes) -> RowCell:
        """The cell compacted."""
        if text.lstrip()[:1] != b"[":
            return self._read_as(b"", text)
        failures = []
        for name in dict.fromkeys((self.column, *COMMON_NAMES)):
            try:
                return self._read_as(b"{%s:" % orjson.dumps(name), text)
            except UnknownShape as error:
                failures.append(str(error))
        return self._failed(text, failures[0])

    def _read_as(self, head: bytes, text: bytes) -> RowCell:
        """The cell read after ``head``. Raises UnknownShape for an array that does not hold messages there."""
        # The hash in the marker is of a whole line.
        tail = (b"}" if head else b"") + (b"" if text.endswith(b"\n") else b"\n")
        try:
            records = read_records(io.BytesIO(head + text + tail), self.column, OnInvalid.FAIL)
            transcripts = open_transcripts(records, dialect=self.dialect, prefix=records.prefix)
            rows = [self.rows.compact(transcript) for transcript in transcripts]
        except CompactError as error:
            if head and isinstance(error, UnknownShape):
                raise
            return self._failed(text, str(error))
        output = b"".join(row.output for row in rows)[len(head) :].removesuffix(tail) if rows else text
        reports = tuple(row.report for row in rows)
        reason = "; ".join(report.reason for report in reports if report.outcome is Outcome.FAILED)
        return RowCell(text=output, reports=reports, reason=reason)

    def compact_any(self, value: Any) -> tuple[Any, RowCell]:
        """The same for a cell as a table gives it: text, bytes, or the value itself with absent keys as None."""
        if isinstance(value, str):
            cell = self.compact(value.encode())
            return cell.text.decode(), cell
        if isinstance(value, bytes):
            cell = self.compact(value)
            return cell.text, cell
        cell = self.compact(orjson.dumps(_present(value)))
        is_compacted = any(report.outcome is Outcome.COMPACTED for report in cell.reports)
        return (parse(cell.text) if is_compacted or self.rows.redacts else value), cell

    def _failed(self, text: bytes, reason: str) -> RowCell:
        if self.rows.redacts:
            from compactor_cli.llm.redact import Redactor, redact_text

            text = redact_text(text, Redactor())
        report = TranscriptReport(outcome=Outcome.FAILED, bytes_before=len(text), bytes_after=len(text))
        return RowCell(text=text, reports=(report,), reason=reason)


def holds_conversation(column: str, value: Any) -> bool:
    """Whether a value of a column is a conversation: a text of JSON, or the messages themselves.

    What it is must not depend on the column's name, which is `COMMON_NAMES`' or any other.
    """
    if isinstance(value, str | bytes):
        value = _parsed(value)
    if not isinstance(value, list):
        return find_row(value) is not None
    return any(find_row({name: value}) is not None for name in (column, *COMMON_NAMES))


def _present(value: Any) -> Any:
    """The value without keys that are None: tables give every key to every message."""
    if isinstance(value, dict):
        return {key: _present(item) for key, item in value.items() if item is not None}
    return [_present(item) for item in value] if isinstance(value, list) else value


# A column, and the keys inside its values where these are structures, or texts of JSON.
ColumnPath = tuple[str, ...]


def column_paths(text: str, columns: Sequence[str], *, place: str = "") -> tuple[ColumnPath, ...]:
    """What ``chosen,rejected`` or ``extra.chat`` means among these columns; a column's own name may hold dots.

    Raises `InputError` for a column that is not there.
    """
    found = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        head, *inner = (name,) if name in columns else name.split(".")
        if head not in columns:
            advice = f"columns: {', '.join(columns)}"
            raise InputError(f"no column is called {head!r}", place=place or None, next_step=advice)
        found.append((head, *inner))
    return tuple(dict.fromkeys(found))


def check_column(path: ColumnPath, values: Iterable[Any], columns: Sequence[str], *, place: str = "") -> None:
    """Raise `InputError` unless these values of a column hold a conversation, or nothing at all."""
    present = [value for value in values if value]
    if present and not any(holds_conversation(path[-1], _at(value, path[1:])) for value in present):
        advice = f"columns: {', '.join(columns)}; inside a column: {path[0]}.KEY"
        raise InputError(f"the column {'.'.join(path)!r} holds no conversation", place=place or None, next_step=advice)


def compact_at(path: ColumnPath, value: Any, cells: CellMaker) -> tuple[Any, RowCell | None]:
    """A value of the column ``path[0]`` with the conversation in it compacted; None where it holds nothing."""
    return _compact_inside(value, path[1:], cells)


def _compact_inside(value: Any, keys: Sequence[str], cells: CellMaker) -> tuple[Any, RowCell | None]:
    if not value:
        return value, None
    if not keys:
        return cells.compact_any(value)
    if isinstance(value, str | bytes):
        raw, cell = compact_within(value.encode() if isinstance(value, str) else value, keys, cells)
        return (raw.decode() if isinstance(value, str) else raw), cell
    if not isinstance(value, dict):
        return value, None
    inner, cell = _compact_inside(value.get(keys[0]), keys[1:], cells)
    return ({**value, keys[0]: inner} if cell else value), cell


def compact_within(raw: bytes, keys: Sequence[str], cells: CellMaker) -> tuple[bytes, RowCell | None]:
    """The conversation at these keys of a JSON value compacted, every other byte as it was; None where none is.

    A value on the way may be JSON within a text, and the conversation such a text.
    """
    if raw[:1] == b'"':
        text = str(parse(raw)).encode()
        made, cell = compact_within(text, keys, cells) if keys else _filled_cell(text, cells)
        return (orjson.dumps(made.decode()) if made != text else raw), cell
    if not keys:
        return _filled_cell(raw, cells)
    span = member_span(raw, keys[0]) if raw.lstrip()[:1] == b"{" else None
    if span is None:
        return raw, None
    made, cell = compact_within(raw[slice(*span)], keys[1:], cells)
    return raw[: span[0]] + made + raw[span[1] :], cell


def _filled_cell(raw: bytes, cells: CellMaker) -> tuple[bytes, RowCell | None]:
    if raw.strip() in (b"", b"null", b"[]", b"{}"):
        return raw, None
    cell = cells.compact(raw)
    return cell.text, cell


def _at(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if isinstance(value, str | bytes):
            value = _parsed(value)
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _parsed(text: str | bytes) -> Any:
    """What a text holds as JSON; None for other texts."""
    try:
        return parse(text.encode(errors="surrogateescape") if isinstance(text, str) else text)
    except ValueError:
        return None


def compact_columns(
    batch: Mapping[str, Sequence[Any]],
    rows: RowMaker,
    *,
    column: str = "",
    reasons: str = "",
    dialect: str = "",
    models: ModelRun | None = None,
) -> dict[str, list[Any]]:
    """The columns with conversations, compacted: ``column``, several of them, or the first that holds any.

    The conversations are in ``column``, whatever it is called, in several (``"chosen,rejected"``), or inside a column
    of structures (``"extra.chat"``). A row that fails stays as it was, with the reason in the column ``reasons``.
    Raises `InputError` for it where no such column is named, and where a named column is not there or holds no
    conversation, and where no column does.
    """
    columns = tuple(batch)
    if column:
        paths = column_paths(column, columns)
    else:
        found = (name for name in columns if any(holds_conversation(name, value) for value in batch[name] if value))
        if not (first := next(found, "")):
            advice = f"name it with column=…; columns: {', '.join(columns)}"
            raise InputError("no column holds conversations", next_step=advice)
        paths = ((first,),)
    compacted: dict[str, list[Any]] = {}
    failures: list[list[str]] = []
    for path in paths:
        values = compacted.get(path[0]) or batch[path[0]]
        check_column(path, values, columns)
        maker = CellMaker(rows=rows, column=path[-1], dialect=dialect)
        made = [result for _, result in mapped(partial(compact_at, path, cells=maker), values, models)]
        why = [cell.reason if cell else "" for _, cell in made]
        for number, reason in enumerate(why):
            if reason and not reasons:
                advice = 'name a column for the reasons (reasons="why") to keep such rows as they are'
                raise InputError(reason, next_step=advice, place=f"column {'.'.join(path)}, row {number}")
        compacted[path[0]] = [value for value, _ in made]
        failures.append(why)
    if reasons:
        compacted[reasons] = ["; ".join(filter(None, row)) for row in zip(*failures, strict=True)]
    return compacted


# Where records are, for messages: there is no file.
_PLACE = "messages"
_OPENINGS = ("{", "[")


@dataclass(frozen=True, slots=True)
class GivenConversation:
    """One conversation. ``rebuilt`` gives what became of it in the shape in which it was given."""

    transcript: Transcript
    rebuilt: Callable[[Compaction], Any]


def conversation_in(source: Any, dialect: str = "") -> GivenConversation:
    """The one conversation that there is. Raises InputError where there is none, UsageError where there are several."""
    if isinstance(source, Mapping):
        return _row(source, dialect)
    if not _is_text(source):
        source = list(source)
        if not source or not isinstance(source[0], str | bytes | list | tuple):
            return _messages(source, dialect)
    found = list(islice(conversations_in(source, dialect), 2))
    if not found:
        raise InputError("there is no conversation", next_step="give its messages, its lines or its path")
    if len(found) > 1:
        raise UsageError("there is more than one conversation", next_step="use iter_compact")
    return found[0]


def conversations_in(source: Any, dialect: str = "") -> Iterator[GivenConversation]:
    """The conversations, read as they are asked for."""
    if isinstance(source, Mapping):
        yield _row(source, dialect)
    elif _is_text(source):
        yield from _in_text(source, dialect)
    else:
        yield from _in_items(iter(source), dialect)


def _is_text(source: Any) -> bool:
    return isinstance(source, str | bytes | bytearray | memoryview | os.PathLike)


def _in_text(source: Any, dialect: str) -> Iterator[GivenConversation]:
    is_bytes = isinstance(source, bytes | bytearray | memoryview)
    with ExitStack() as stack:
        if is_bytes:
            records = read_records(io.BytesIO(source), _PLACE)
        elif isinstance(source, str) and ("\n" in source or source.lstrip("\ufeff \t\r").startswith(_OPENINGS)):
            records = read_records(io.BytesIO(_bytes(source)), _PLACE)
        else:
            records = records_in(stack.enter_context(open_stream(os.fspath(source))))
        for transcript in open_transcripts(records, dialect=dialect, prefix=records.prefix):
            yield GivenConversation(transcript, lambda row: row.output if is_bytes else _str(row.output))


def _in_items(items: Iterator[Any], dialect: str) -> Iterator[GivenConversation]:
    first = next(items, None)
    if first is None:
        return
    items = chain((first,), items)
    if isinstance(first, str | bytes):
        yield from _in_lines(items, dialect, is_text=isinstance(first, str), is_ended=first[-1:] in ("\n", b"\n"))
        return
    for item in items:
        try:
            yield _row(item, dialect) if isinstance(item, Mapping) else _messages(item, dialect)
        except InputError as error:
            # Whoever compacts it decides what becomes of it.
            frame = Frame(container=Container.ARRAY)
            transcript = Transcript(dialect="", records=(), messages=(), frame=frame, fault=error)
            yield GivenConversation(transcript, lambda row, item=item: item)  # type: ignore[misc]


def _in_lines(items: Iterator[Any], dialect: str, *, is_text: bool, is_ended: bool) -> Iterator[GivenConversation]:
    """The conversations of lines, each of which ends with a line feed or, like the first, without one."""

    def rebuilt(row: Compaction) -> list[Any]:
        lines = row.output.split(b"\n")
        ended = [line + b"\n" for line in lines[:-1]] + lines[-1:] if is_ended else lines
        return [_str(line) if is_text else line for line in (ended if ended[-1] else ended[:-1])]

    lines = (_bytes(item) if isinstance(item, str) else item for item in items)
    for transcript in _transcripts(_ended(lines, is_ended), "lines", dialect):
        yield GivenConversation(transcript, rebuilt)


def _ended(lines: Iterable[bytes], is_last_as_given: bool) -> Iterator[bytes]:
    """The lines, each with a line feed; the last line of a file may be without one, and stays so."""
    held: bytes | None = None
    for line in lines:
        if held is not None:
            yield held if held.endswith(b"\n") else held + b"\n"
        held = line
    if held is not None:
        yield held if is_last_as_given or held.endswith(b"\n") else held + b"\n"


def _row(row: Mapping[str, Any], dialect: str) -> GivenConversation:
    transcript = _only(_encoded(row) + b"\n", dialect)

    def rebuilt(made: Compaction) -> Any:
        return parse(made.output) if made.changed else row

    return GivenConversation(transcript, rebuilt)


def _messages(messages: Any, dialect: str) -> GivenConversation:
    """Messages read as the records of a session, else as those of a row, under a name that rows commonly have."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise InputError(f"not a list of messages ({type(messages).__name__})", next_step="give lists", place=_PLACE)
    encoded = [_encoded(message) for message in messages]
    session = b"".join(message + b"\n" for message in encoded)
    rows = [b'{"%s":[%s]}\n' % (name.encode(), b",".join(encoded)) for name in COMMON_NAMES]
    failures: list[InputError] = []
    for text, container in ((session, Container.LINES), *((row, Container.ARRAY) for row in rows)):
        try:
            transcript = _only(text, dialect)
        except InputError as error:
            failures.append(error)
            continue
        # A list of one row is not a list of messages.
        if transcript.frame.container is container and len(transcript.records) == len(messages):
            return GivenConversation(transcript, partial(_list, messages, transcript))
    raise failures[0] if failures else _several()


def _list(messages: Sequence[Any], source: Transcript, row: Compaction) -> list[Any]:
    """The messages of the output; those that stayed are the objects that were given."""
    if not row.changed or row.transcript is None:
        return list(messages)
    waiting = list(reversed(row.plan.indices(Action.KEEP)))
    made: list[Any] = []
    for record in row.transcript.records:
        if waiting and source.records[waiting[-1]].raw == record.raw:
            made.append(messages[waiting.pop()])
        else:
            made.append(record.value)
    return made


def _only(text: bytes, dialect: str) -> Transcript:
    """The one transcript of a text. Raises InputError for none, or several."""
    found = list(islice(_transcripts(io.BytesIO(text), _PLACE, dialect), 2))
    if len(found) != 1:
        raise _several()
    if found[0].fault:
        raise found[0].fault
    return found[0]


def _several() -> UnknownShape:
    advice = "rows of a dataset are given to iter_compact"
    return UnknownShape("these are not the messages of one conversation", next_step=advice, place=_PLACE)


def _transcripts(lines: Iterable[bytes], path: str, dialect: str) -> Iterator[Transcript]:
    records = read_records(lines, path)
    return open_transcripts(records, dialect=dialect, prefix=records.prefix)


def _encoded(value: Any) -> bytes:
    """The value as one line of JSON. Raises InputError for what JSON cannot hold."""
    if not isinstance(value, Mapping):
        advice = "give mappings; objects of a library are dumped first (model_dump, dumpd, …)"
        raise InputError(f"a message is not a mapping ({type(value).__name__})", next_step=advice, place=_PLACE)
    try:
        return orjson.dumps(value)
    except TypeError:  # among others: numbers of more than 64 bits, lone surrogates
        try:
            return json.dumps(value).encode()
        except (TypeError, ValueError) as error:
            raise InputError(f"a message is not JSON: {error}", next_step="dump it first", place=_PLACE) from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _str(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
