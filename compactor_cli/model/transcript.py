"""Transcript: records with the content of each, the same in every dialect.

A transcript has as many messages as records: ``messages[i]`` is the content of ``records[i]``. Records
that are not part of the conversation are messages with the role ``META``. The record is thus the one
unit that grouping, planning and writing count in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from compactor_cli.model.errors import InputError, Place
from compactor_cli.model.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record with the bytes it was read from.

    The records of an input, joined as ``raw + ending``, are the input byte for byte: blank lines and
    spaces between records belong to the ``ending`` before them.
    """

    raw: bytes
    ending: bytes  # empty before another record: two records on one line, without a space between them
    value: Any  # what a JSON parser made of ``raw``; for reading only, since parsing does not round-trip
    place: Place


class Role(StrEnum):
    """Who speaks. META records are bookkeeping that is never shown to a model."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    META = "meta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Words of the speaker."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """Reasoning that the model wrote for itself. It is kept whole or dropped whole, never shortened."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool the model asked for."""

    id: str  # empty where the dialect has none: pairing is then by order
    name: str
    arguments: Mapping[str, Any] | str  # the parsed object; the text as it was where it is not a JSON object


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered."""

    id: str  # of the call; empty where the dialect has none
    text: str
    name: str = ""  # of the tool; empty where the record does not hold it
    is_error: bool = False
    media_count: int = 0  # images and files that came with the text
    is_recorded: bool = True  # False: the transcript does not hold what the tool answered, and the text is empty
    exit_code: int = -1  # of a command, where the record has a field for it; -1: it has none
    pruned: str = ""  # the full answer, where the client sends a placeholder, which is then the text; else empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image, a document or another content block that is not text, or opaque (encrypted) content."""

    kind: str
    size_bytes: int
    url: str = ""  # while an image is converted to another dialect: its content (a ``data:`` URL) or its address


Part = Text | Thinking | ToolCall | ToolResult | Media


def text_of(parts: Iterable[Part]) -> str:
    """The texts among these parts, joined with line breaks. Empty if there is none."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousSummary:
    """A summary found in the transcript, written by compact or by a client."""

    origin: str  # ``compact``, or the client, API or framework whose form the summary has
    text: str  # without its frame where the frame is known, else the whole text


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The content of one record. `formats.harness.user_text` finds the user's own words in it."""

    role: Role
    parts: tuple[Part, ...] = ()
    # Shared by records that are one message of the model's API, since some clients write one line for each block. Such
    # records are never separated. Empty: the record is a message of its own.
    group: str = ""
    timestamp: str = ""
    summary: PreviousSummary | None = None
    superseded: bool = False  # the client no longer sends it, since a later compaction boundary of its own replaced it
    client: str = field(default="", compare=False)  # the client that may have written into this message of the user
    is_unread: bool = False  # the record could not be read: it may hold a call, or the result of a call near it
    # What the person wrote, where the record separates that from the client's text (empty: nothing); None: it does not.
    own_words: str | None = None
    interjects: bool = field(default=False, compare=False)  # typed while the model worked and sent within its turn
    was_waiting: bool = field(default=False, compare=False)  # typed before the message that precedes it was written

    @property
    def is_meta(self) -> bool:
        """Whether this record is bookkeeping, which is never shown to a model."""
        return self.role is Role.META

    @property
    def text(self) -> str:
        """The text parts, joined with line breaks."""
        return text_of(self.parts)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


class Container(StrEnum):
    """What holds the records: lines of a file, or elements of a JSON array."""

    LINES = "lines"
    ARRAY = "array"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The bytes around the records: ``prefix + records + suffix`` is the whole transcript.

    LINES: ``prefix`` is a byte-order mark or leading blank lines, ``suffix`` is empty. ARRAY: ``prefix`` is the row (or
    document) up to and including ``[``, ``suffix`` is all from ``]`` on, other keys included.
    """

    container: Container = Container.LINES
    prefix: bytes = b""
    suffix: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One conversation: a session file, a part of a stream, or a row of a dataset."""

    dialect: str
    records: tuple[Record, ...]
    messages: tuple[Message, ...]
    frame: Frame = field(default_factory=Frame)
    sha256: str = ""  # of ``source()``, in hex; empty for a row that is not read
    model: str = ""  # the model that the transcript last used; empty: not known
    row: Any = None  # the parsed row around an ARRAY, for reading only (``tools``, ids, metadata)
    fault: InputError | None = None  # why this row is not a conversation; it has no records, the frame holds all bytes
    original_tokens: int = 0  # the counted size of the archived original of its newest summary; 0: not known
    # Number of records of a row whose size alone shows that it stays as it is. Its records are then not read:
    # ``records`` holds the whole row as one. 0: the records are read.
    unread_records: int = 0

    def source(self) -> bytes:
        """The bytes this transcript was read from."""
        pieces = [piece for record in self.records for piece in (record.raw, record.ending)]
        return b"".join((self.frame.prefix, *pieces, self.frame.suffix))

    @property
    def record_count(self) -> int:
        """The number of its records, whether read or not."""
        return self.unread_records or len(self.records)

    @property
    def size_bytes(self) -> int:
        """The length of ``source()``, without joining it."""
        body = sum([len(record.raw) + len(record.ending) for record in self.records])
        return len(self.frame.prefix) + body + len(self.frame.suffix)
