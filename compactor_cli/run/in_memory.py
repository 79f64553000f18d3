"""Conversations that are values: lists of messages, rows, lines, texts; what becomes of them has the same shape."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from typing import Any

import orjson

from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import InputError, UnknownShape, UsageError
from compactor_cli.model.plan import Action
from compactor_cli.model.report import Compaction
from compactor_cli.model.transcript import Container, Frame, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import parse, read_records, records_in
from compactor_cli.read.streams import open_stream
from compactor_cli.run.rows import COMMON_NAMES

# Where records are, for messages: there is no file.
_PLACE = "messages"
_OPENINGS = ("{", "[")
_TEXTS = (str, bytes, bytearray, memoryview, os.PathLike)


@dataclass(frozen=True, slots=True)
class GivenConversation:
    """One conversation. ``rebuilt`` gives what became of it in the shape in which it was given."""

    transcript: Transcript
    rebuilt: Callable[[Compaction], Any]


def conversation_in(source: Any, dialect: str = "") -> GivenConversation:
    """The one conversation that there is. Raises InputError where there is none, UsageError where there are several."""
    if isinstance(source, Mapping):
        return _row(source, dialect)
    if not isinstance(source, _TEXTS):
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
        return
    if not isinstance(source, _TEXTS):
        yield from _in_items(iter(source), dialect)
        return
    is_text = isinstance(source, str | os.PathLike)
    with ExitStack() as stack:
        if isinstance(source, bytes | bytearray | memoryview):
            records = read_records(io.BytesIO(source), _PLACE)
        elif isinstance(source, str) and ("\n" in source or source.lstrip("\ufeff \t\r").startswith(_OPENINGS)):
            records = read_records(io.BytesIO(_bytes(source)), _PLACE)
        else:
            records = records_in(stack.enter_context(open_stream(os.fspath(source))))
        for transcript in open_transcripts(records, dialect=dialect):
            yield GivenConversation(transcript, lambda row: _str(row.output) if is_text else row.output)


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

    def lines() -> Iterator[bytes]:
        """Each with a line feed; the last line of a file may be without one, and stays so."""
        held: bytes | None = None
        for item in items:
            if held is not None:
                yield held if held.endswith(b"\n") else held + b"\n"
            held = _bytes(item) if isinstance(item, str) else item
        if held is not None:
            yield held if is_ended or held.endswith(b"\n") else held + b"\n"

    for transcript in open_transcripts(read_records(lines(), "lines"), dialect=dialect):
        yield GivenConversation(transcript, rebuilt)


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
    found = list(islice(open_transcripts(read_records(io.BytesIO(text), _PLACE), dialect=dialect), 2))
    if len(found) != 1:
        raise _several()
    if found[0].fault:
        raise found[0].fault
    return found[0]


def _several() -> UnknownShape:
    advice = "rows of a dataset are given to iter_compact"
    return UnknownShape("these are not the messages of one conversation", next_step=advice, place=_PLACE)


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
