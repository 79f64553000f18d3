"""What a dialect is: how to recognise it, what its records say, and how to write into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from compactor_cli.core.records import Record
from compactor_cli.core.transcript import Message, Role, Transcript

JsonPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """A message to be written into a transcript: the summary, or an acknowledgement behind it."""

    role: Role
    text: str
    is_summary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What is kept on both sides of the insertions, as record indices, ascending."""

    before: tuple[int, ...]
    after: tuple[int, ...]


class Dialect(Protocol):
    """One on-disk format. Implementations hold no state."""

    @property
    def name(self) -> str:
        """Short name for ``--format`` (``claude-code``)."""
        ...

    @property
    def title(self) -> str:
        """What people call it (``Claude Code session``)."""
        ...

    def array_path(self, value: Any) -> JsonPath | None:
        """Where in this line's value the array of messages lies, if the line is a whole conversation.

        ``()`` is a bare array. None: the line is one record of a session.
        """
        ...

    def score(self, value: Any) -> int:
        """How surely this value (a line, or an element at ``array_path``) is of this dialect.

        0 no · 1 possible (a plain role and text) · 2 likely · 3 certain (a mark that no other dialect has).
        """
        ...

    def starts(self, value: Any) -> bool:
        """Whether this line can only be the first of a session (``session_meta``, ``{"type":"session"}``)."""
        ...

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record. Unknown records become META; nothing is raised for odd content."""
        ...

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the transcript itself last used, or an empty string."""
        ...

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """The new records, each the bytes of one line or array element without terminator.

        Deterministic: ids and times are derived from the transcript, never from clock or chance.
        """
        ...

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with the texts of these parts (numbered as in ``read``) replaced.

        Everything else of the record keeps its value; only such records are serialised anew.
        """
        ...
