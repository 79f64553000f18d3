"""What a dialect is: what it has a place for, how to recognise it, what its records say, how to write into it.

`Dialect` is all that the other folders ask of a format; `registry` has them by name, `located` does most of the work of
one that is code, `spec` that of one that is data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Flag, auto
from typing import Any, Protocol, runtime_checkable

from compactor_cli.formats.harness import with_client
from compactor_cli.model.transcript import Message, Record, Role, ToolResult, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import INVALID


class Capabilities(Flag):
    """What a format has a place for."""

    SYSTEM = auto()
    CALLS = auto()  # tool calls and their results
    SEVERAL = auto()  # several calls in one message
    WORDS = auto()  # words in a message that calls
    IDS = auto()  # ids of calls
    ERRORS = auto()  # a mark of results that are errors
    THINKING = auto()
    IMAGES = auto()
    TIMES = auto()
    USAGE = auto()  # token counters
    TOOLS = auto()  # definitions of tools
    MODEL = auto()
    SIDECHAINS = auto()  # conversations of subagents
    SUMMARIES = auto()  # a mark of its own for a summary
    METADATA = auto()  # keys next to the messages that the format does not define


# What each is called: in the table, and in the line that says what could not be carried.
_LONG = (
    *("system prompt", "calls", "parallel calls", "words with calls", "call ids", "error flags", "thinking", "images"),
    *("timestamps", "usage counters", "tool definitions", "model", "sidechains", "summary marks", "metadata"),
)
NAMES = dict(zip(Capabilities, _LONG, strict=True))

# The heads of the table, in the same order.
SHORT_NAMES = "sys call par wrds id err thnk img time use tool modl side sum meta".split()

# By the words of a specification.
WORDS = {flag.name.lower(): flag for flag in Capabilities if flag.name}


def of_words(words: Iterable[str]) -> Capabilities:
    """What these words stand for, in their order; ``-images`` takes one away."""
    found = Capabilities(0)
    for word in words:
        flag = WORDS[word.removeprefix("-")]
        found = found & ~flag if word.startswith("-") else found | flag
    return found


# Messages of a model's API, without and with what stands around them in a request.
CHAT = of_words("calls several words system ids images".split())
REQUEST = CHAT | of_words("tools model metadata".split())
# Session files of a client, and logs of runs.
SESSION = of_words("calls several words ids errors thinking images times usage model".split())
RUN = of_words("calls several words system model metadata".split())
WORDS |= {"session": SESSION, "chat": CHAT, "request": REQUEST, "run": RUN}


def names_of(holds: Capabilities) -> tuple[str, ...]:
    """What these are called, in the order of the table."""
    return tuple(name for flag, name in NAMES.items() if flag in holds)


def pad_missing_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages; where fewer results follow than calls without ids were made, the last stands for the rest."""
    found = list(messages)
    for i, message in enumerate(found):
        calls = len(message.calls) if message.role is Role.ASSISTANT else 0
        if not calls or any(call.id for call in message.calls):
            continue
        stop = i + 1
        while stop < len(found) and found[stop].role is Role.TOOL:
            stop += 1
        missing = calls - sum(len(result.results) for result in found[i + 1 : stop])
        if stop > i + 1 and missing > 0:
            last = found[stop - 1]
            found[stop - 1] = replace(last, parts=last.parts + (ToolResult(id="", text=""),) * missing)
    return tuple(found)


JsonPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """A message to be written into a transcript: the summary, or an acknowledgement after it."""

    role: Role
    text: str
    is_summary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertionPoint:
    """What is kept on both sides of the insertions, as record indices, ascending."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def kept(self) -> frozenset[int]:
        """What is kept."""
        return frozenset((*self.before, *self.after))

    @property
    def near(self) -> tuple[int, ...]:
        """What is kept, from the insertions back to the start, then from them on."""
        return (*reversed(self.before), *self.after)

    def tail_start(self, count: int) -> int:
        """The first record of the tail; without a tail, ``count``: the end of the records."""
        return self.after[0] if self.after else count


class Dialect(Protocol):
    """One on-disk format. Implementations hold no state.

    What one may have as well, where it is so:

    - ``read_one(record)``: what `read` gives for a record that is read by itself, whatever stands around it, except for
      what `pad_missing_results` adds;
    - ``is_text_only(elements)``: whether the messages of a row hold nothing but texts and calls. Such a row has no more
      tokens than bytes, as its keys take more than 4 of them a message;
    - ``session_key(value)``: the session that this line belongs to; empty where it names none;
    - ``unread_keys``: keys of records under which everything is a repetition. A session's records are held without
      them;
    - ``settle(source, composed)``: the composed transcript (records, frame and row that are to be written, no messages
      yet) with what counts or names its records brought in line. Of kept records only what numbers them may change;
    - ``links_records``: whether the client sends one end only of a session that has two with nothing to join them;
    - the methods of `Refreshing` and `Appending`.
    """

    @property
    def name(self) -> str:
        """Short name for ``--format`` (``claude-code``)."""

    @property
    def title(self) -> str:
        """What people call it (``Claude Code session``)."""

    @property
    def holds(self) -> Capabilities:
        """What the format has a place for."""

    def array_path(self, value: Any) -> JsonPath | None:
        """Where in this line's value the array of messages lies, if the line is a whole conversation.

        ``()`` is a bare array. None: the line is one record of a session.
        """

    def score(self, value: Any) -> int:
        """How surely this value (a line, or an element at ``array_path``) is of this dialect.

        0 no · 1 possible (a plain role and text) · 2 likely · 3 certain (a mark that no other dialect has).
        """

    def starts(self, value: Any) -> bool:
        """Whether this line can only be the first of a session (``session_meta``, ``{"type":"session"}``)."""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record. Unknown records become META; nothing is raised for odd content."""

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the transcript itself last used, or an empty string."""

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """The new records, each the bytes of one line or array element without terminator.

        Deterministic: ids and times are derived from the transcript, never from clock or chance.
        """

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with the texts of these parts (numbered as in ``read``) replaced.

        Everything else of the record keeps its value; only such records are serialised anew.
        """


def objects(records: Sequence[Record]) -> list[Mapping[str, Any]]:
    """The values of the records; an empty object in place of any other value."""
    return [record.value if isinstance(record.value, dict) else {} for record in records]


def first_object(elements: Any) -> Any:
    """The first object of an array; None if it holds none, or the value is not an array."""
    found = elements if isinstance(elements, list) else ()
    return next((element for element in found if isinstance(element, dict)), None)


def read_messages(dialect: Dialect, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
    """`Dialect.read`, each message of the user with the client that may have written into it; lines that are not JSON
    are marked."""
    messages = with_client(dialect.read(records, row), dialect.name)
    if all(record.value is not INVALID for record in records):
        return messages
    return tuple(
        replace(message, is_unread=record.value is INVALID) for message, record in zip(messages, records, strict=True)
    )


def reread(dialect: Dialect, source: Transcript, records: Sequence[Record], row: Any) -> tuple[Message, ...]:
    """`Dialect.read` of the records that a transcript is composed of, of which most are those of the source.

    Of a dialect with ``read_one``, only new and changed records are read: the others give the same messages again.
    """
    read_one: Callable[[Record], Message] | None = getattr(dialect, "read_one", None)
    if read_one is None:
        return read_messages(dialect, records, row)
    known = {id(record.value): message for record, message in zip(source.records, source.messages, strict=True)}
    messages = pad_missing_results(tuple(known.get(id(record.value)) or read_one(record) for record in records))
    return with_client(messages, dialect.name)


def settled(dialect: Dialect, source: Transcript, composed: Transcript) -> Transcript:
    """What the dialect's ``settle`` makes of it; the composed transcript as it is where nothing counts its records."""
    settle: Callable[[Transcript, Transcript], Transcript] | None = getattr(dialect, "settle", None)
    return settle(source, composed) if settle else composed


@runtime_checkable
class Refreshing(Protocol):
    """A dialect whose client trusts what a session says of its own size, or repeats messages next to them."""

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """What must not stay of the records that would: what repeats messages, or takes back what is gone."""

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """The records by which the client takes the conversation's size, of those that stay: the size in tokens."""

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The record with its counter at this size; everything else keeps its value."""


@runtime_checkable
class Appending(Protocol):
    """A dialect whose client has a boundary of its own, after which earlier records are not sent."""

    @property
    def appends_head(self) -> bool:
        """Whether the boundary can hold a head before the summary; if not, the summary stands for it."""

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """The lines to be written after all others, each without terminator.

        The client then sends ``cut.before`` (if `appends_head`), the insertions and ``cut.after``, and takes the
        conversation to be of ``size_tokens``. Deterministic, as `Dialect.insert` is.
        """
