"""Shape: how a transcript is written, where that is not as it was read: as rows of columns, texts to read, windows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Self

from compactor_cli.formats.base import read_messages
from compactor_cli.formats.client_view import sent
from compactor_cli.formats.registry import get
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.transcript import Container, Media, Message, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import arguments_text
from compactor_cli.render.convert import Conversion, check_writable, convert

# Where rows hold messages.
_CONVERSATIONS = ("messages", "conversations", "prompt", "completion", "chosen", "rejected")
_ALWAYS: Mapping[str, Any] = {"content": "", "tool_calls": [], "tool_call_id": ""}
_ARGUMENTS = ("arguments", "args", "input")


def as_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as Arrow and the loaders on it want it, of one set of keys and one type for each.

    Arrow unites the keys of all objects it meets at a place and fills the missing ones with null: schemas of tools and
    arguments of calls come out changed, and a list here and a null there is an error. So ``tools``, arguments and
    every other object are JSON strings, and a message has the keys of every message.
    """
    found = {
        key: [_message(item) for item in value] if key in _CONVERSATIONS and isinstance(value, list) else _cell(value)
        for key, value in row.items()
    }
    return {**found, "tools": _text(row.get("tools") or [])}


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    cells = {key: _cell(value) for key, value in message.items()}
    if "tool_calls" in message:
        calls = message["tool_calls"]
        cells["tool_calls"] = [_call(call) for call in calls] if isinstance(calls, list) else []
    missing = {key: value for key, value in _ALWAYS.items() if "role" in message and cells.get(key) is None}
    return {**cells, **missing}


def _call(call: Any) -> Any:
    """The call with its arguments, in ``function`` or next to its id, as a JSON string."""
    if not isinstance(call, dict):
        return call
    inner = {"function": _call(call["function"])} if isinstance(call.get("function"), dict) else {}
    texts = {key: _text(call[key]) for key in _ARGUMENTS if key in call}
    return {**call, **inner, **texts}


def _cell(value: Any) -> Any:
    """A value of one type: objects, and lists with objects in them, as JSON."""
    is_nested = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict | list) for v in value))
    return _text(value) if is_nested else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Document(StrEnum):
    """How a document is marked up; the values are what ``--to`` takes."""

    MARKDOWN = "markdown"
    TEXT = "text"


DOCUMENTS = tuple(item.value for item in Document)


def document(transcript: Transcript, markup: Document) -> bytes:
    """The document, as UTF-8; it ends with a line feed, and an empty transcript gives an empty one.

    It holds what the client would send, in that order: words, thinking, calls with their arguments, results; of images
    and files that there is one. It is not read back.
    """
    is_markdown = markup is Document.MARKDOWN
    head = "## {}\n\n" if is_markdown else "{}:\n"
    blocks = []
    for i in sent(transcript):
        message = transcript.messages[i]
        body = "\n\n".join(filter(None, _marked_up(message, is_markdown)))
        if body:
            blocks.append((head.format(message.role.value) + body).encode("utf-8", "replace"))
    return b"\n\n".join(blocks) + b"\n" if blocks else b""


def _marked_up(message: Message, is_markdown: bool) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text.strip()
        elif isinstance(part, Thinking):
            text = part.text.strip()
            quoted = (f"> {line}".rstrip() for line in text.splitlines())
            yield "\n".join(quoted) if is_markdown else f"(thinking) {text}"
        elif isinstance(part, ToolCall):
            text = arguments_text(part)
            yield f"**{part.name}**\n{_fenced(text, 'json')}" if is_markdown else f"{part.name} {text}"
        elif isinstance(part, ToolResult):
            media = f"\n({part.media_count} images or files)" if part.media_count else ""
            yield (_fenced(part.text) if is_markdown else part.text.rstrip()) + media
        elif isinstance(part, Media):
            yield f"({part.kind})"


def _fenced(text: str, language: str = "") -> str:
    """The text in a fence that nothing in it closes."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


class Cells(StrEnum):
    """How rows hold objects."""

    OBJECTS = "objects"
    STRINGS = "strings"  # as JSON, for Arrow


class Parts(StrEnum):
    """What becomes a row of its own."""

    WHOLE = "whole"  # a transcript
    WINDOWS = "windows"  # what a model was shown before each boundary, and after the last


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputShape:
    """What is wanted of every output. ``dialect``: the name of the one it is written in; empty: its own."""

    dialect: str = ""
    cells: Cells = Cells.OBJECTS
    parts: Parts = Parts.WHOLE

    @classmethod
    def checked(cls, *, dialect: str, cells: Cells, parts: Parts) -> Self:
        """The shape. Raises UsageError for a dialect that cannot be written from nothing."""
        if dialect in DOCUMENTS and (cells is not Cells.OBJECTS or parts is not Parts.WHOLE):
            raise UsageError(f"{dialect} has no rows", next_step="leave arrow and split-at-boundaries out")
        if dialect and dialect not in DOCUMENTS:
            check_writable(dialect)
        return cls(dialect=dialect, cells=cells, parts=parts)

    @property
    def is_split(self) -> bool:
        """Whether a session may become several rows."""
        return self.parts is Parts.WINDOWS

    @property
    def is_document(self) -> bool:
        """Whether the output is a text to read: its size is that of the text, and no longer that of messages."""
        return self.dialect in DOCUMENTS

    def written(self, transcript: Transcript) -> Conversion:
        """The transcript in this shape. Raises InputError for what is not a row and is to become columns."""
        if self.is_document:
            return Conversion(output=document(transcript, Document(self.dialect)), not_carried={})
        if self.dialect:
            written = convert(transcript, self.dialect)
        elif transcript.frame.container is Container.ARRAY:
            written = Conversion(output=transcript.source(), not_carried={})
        else:
            raise InputError("is a session, and no row of a dataset", next_step="name a format for rows with --to")
        return replace(written, output=_columns(written.output)) if self.cells is Cells.STRINGS else written


def _columns(output: bytes) -> bytes:
    try:
        rows = [json.loads(line) for line in output.splitlines() if line.strip()]
    except ValueError as error:
        raise InputError("is not a row on a line of its own", next_step="name a format with --to") from error
    values = (as_columns(row) if isinstance(row, dict) else row for row in rows)
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


def windows(transcript: Transcript) -> tuple[Transcript, ...]:
    """The session as it was before each boundary in it, and as it is; itself alone where there is none.

    What a later window holds as well is none of its own: a boundary that took nothing away ends no window.
    """
    if transcript.frame.container is Container.ARRAY:
        return (transcript,)
    dialect = get(transcript.dialect)
    stages = []
    for i, message in enumerate(transcript.messages):
        # Where the boundary begins: at its summary, or at the client's mark right before it.
        end = i if message.summary else 0
        while end and (before := transcript.messages[end - 1]).is_meta and before.superseded:
            end -= 1
        if not end:
            continue
        records = transcript.records[:end]
        digest = hashlib.sha256(b"".join(record.raw + record.ending for record in records)).hexdigest()
        messages = read_messages(dialect, records, transcript.row)
        stages.append(replace(transcript, records=records, messages=messages, sha256=digest))
    later = (*stages[1:], transcript)[: len(stages)]
    own = [stage for stage, following in zip(stages, later, strict=True) if {*sent(stage)} - {*sent(following)}]
    return (*own, transcript)
