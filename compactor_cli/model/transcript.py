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
    """One record with the bytes it came in.

    The records of an input, joined as ``raw + ending``, are the input byte for byte: blank lines and
    spaces between records belong to the ``ending`` before them. ``value`` is what a JSON parser made
    of ``raw``; it is for reading only, since parsing does not round-trip. An empty ``ending`` before
    another record means that two records were glued on one line.
    """

    raw: bytes
    ending: bytes
    value: Any
    place: Place


class Role(StrEnum):
    """Who speaks. META records are bookkeeping that no model is shown."""

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
    """Reasoning the model wrote for itself; never shortened, kept or dropped whole."""

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

    id: str
    text: str
    name: str = ""
    is_error: bool = False
    media_count: int = 0  # images and files that came with the text
    is_recorded: bool = True  # False, and the text empty: the transcript does not hold what the tool answered
    exit_code: int = -1  # of a command, where the record tells it besides the text; -1: it does not
    pruned: str = ""  # the answer, where the client sends a placeholder for it; the text is then the placeholder


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image, a document or another content block that is not text, or opaque (encrypted) content.

    ``url``: the content of an image (a ``data:`` URL) or its address, where it is on its way into another dialect.
    """

    kind: str
    size_bytes: int
    url: str = ""


Part = Text | Thinking | ToolCall | ToolResult | Media


def text_of(parts: Iterable[Part]) -> str:
    """The words in these parts: texts only, a line break between them."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousSummary:
    """A summary found in the transcript: one written by compact (``origin == "compact"``) or a client's own.

    ``text`` is the summary without its frame where the frame is known, else the whole text.
    """

    origin: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The content of one record. `formats.harness.user_text` finds the user's own words in it."""

    role: Role
    parts: tuple[Part, ...] = ()
    # Not empty where several records are one message of the model's API (some clients write a block a line): records
    # that share it are never parted.
    group: str = ""
    timestamp: str = ""
    summary: PreviousSummary | None = None
    superseded: bool = False  # the client no longer sends it: a native boundary after it replaced it
    client: str = field(default="", compare=False)  # whose client may have written into a message of the user
    is_unread: bool = False  # nobody could read the record: it may hold what answers a call near it, or the call
    own_words: str | None = None  # the person's, where the record separates them from the client's (empty: none)
    interjects: bool = field(default=False, compare=False)  # typed while the model worked, which went on with both
    was_waiting: bool = field(default=False, compare=False)  # typed before the message that it stands after was written

    @property
    def is_meta(self) -> bool:
        """Whether no model is shown this record."""
        return self.role is Role.META

    @property
    def text(self) -> str:
        """The speaker's own words: text parts only, a line break between them."""
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

    LINES: a byte-order mark or leading blank lines before, nothing after. ARRAY: everything of the
    row (or document) up to and with ``[``, and everything from ``]`` on, other keys included.
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
    sha256: str = ""  # in hex, of ``source()``; empty of a row that stays unread
    model: str = ""  # the one that the transcript itself last used; empty: not known
    row: Any = None  # the parsed row around an ARRAY, for reading only (``tools``, ids, metadata)
    fault: InputError | None = None  # why this row is not a conversation: without records, all its bytes in the frame
    original_tokens: int = 0  # the counted size of the archived original of its newest summary; 0: not known
    # How many this row has, where its size alone shows that it stays: all of it is one record then, not read further.
    unread_records: int = 0

    def source(self) -> bytes:
        """The bytes this transcript was read from."""
        pieces = [piece for record in self.records for piece in (record.raw, record.ending)]
        return b"".join((self.frame.prefix, *pieces, self.frame.suffix))

    @property
    def record_count(self) -> int:
        """How many records it has, read or not."""
        return self.unread_records or len(self.records)

    @property
    def size_bytes(self) -> int:
        """The length of ``source()``, without joining it."""
        body = sum([len(record.raw) + len(record.ending) for record in self.records])
        return len(self.frame.prefix) + body + len(self.frame.suffix)
