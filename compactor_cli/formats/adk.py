"""Sessions of Google's Agent Development Kit: ``{"app_name", "events": [{"author", "content": {"parts"}}]}``.

An event holds a content of the Gemini API. Written with underscores (stored sessions) or in camel case (the server).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats import gemini_contents
from compactor_cli.formats.arrays import array_path, first_object
from compactor_cli.formats.base import Cut, Insertion, JsonPath
from compactor_cli.formats.contents import role_of, string
from compactor_cli.formats.holds import SESSION, Holds
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.places import Piece, at, like_keys, parts, shorten
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.records import Record
from compactor_cli.model.transcript import Message, Role, Transcript

_INVOCATIONS = ("invocation_id", "invocationId")
_USER = "user"


class ADK:
    """The dialect of the Agent Development Kit's sessions."""

    name = "adk"
    title = "Google ADK session"
    holds = SESSION | Holds.METADATA

    def array_path(self, value: Any) -> JsonPath | None:
        """``events`` of a session, or a bare array of events."""
        return array_path(value, (("events",),), _leads)

    def score(self, value: Any) -> int:
        """3 for an event; 2 for a session."""
        if is_event(value):
            return 3
        return 2 if isinstance(value, dict) and self.array_path(value) is not None else 0

    def starts(self, value: Any) -> bool:
        """Never: no event says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per event; events without a content are bookkeeping."""
        return tuple(_message(record.value) for record in records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the last event names."""
        names = (at(record.value, (key,)) for record in reversed(records) for key in ("model_version", "modelVersion"))
        return next((name for name in names if name and isinstance(name, str)), "")

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Events of one text part, of the invocation and the time of the event before them."""
        values = [record.value if is_event(record.value) else {} for record in transcript.records]
        near: Mapping[str, Any] = next((values[i] for i in (*reversed(cut.before), *cut.after) if values[i]), {})
        raw = transcript.records[0].raw if transcript.records else b""
        return tuple(dump(_written(item, transcript.sha256, near), raw) for item in insertions)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The event with these texts replaced in its content."""
        return shorten(record, texts, pieces)


def is_event(value: Any) -> bool:
    """Whether this is an event: an author and an invocation."""
    has_author = isinstance(value, dict) and isinstance(value.get("author"), str)
    return has_author and any(key in value for key in _INVOCATIONS)


def _leads(elements: Any) -> bool:
    """Whether the first object of an array is an event."""
    return is_event(first_object(elements))


def _message(value: Any) -> Message:
    found = parts(pieces(value))
    if not found or value.get("partial") is True:
        return Message(role=Role.META)
    answers = value["author"] != _USER and at(value, ("content", "role")) != _USER
    role = role_of(Role.ASSISTANT if answers else Role.USER, found)
    return Message(role=role, parts=found, summary=summary_of(role, found))


def pieces(value: Any) -> list[Piece]:
    """The parts of an event's content with the places of their texts."""
    content = value.get("content") if is_event(value) else None
    if not gemini_contents.is_content(content):
        return []
    inner = gemini_contents.pieces(content)
    return [Piece(piece.part, tuple(("content", *place) for place in piece.places)) for piece in inner]


def _written(item: Insertion, sha256: str, near: Mapping[str, Any]) -> dict[str, Any]:
    digest = hashlib.sha256(f"{sha256} {item.text}".encode()).hexdigest()
    is_answer = item.role is Role.ASSISTANT
    author = next((name for name in (string(near.get("author")),) if name and name != _USER), "model")
    event = {
        "content": {"parts": [{"text": item.text}], "role": "model" if is_answer else _USER},
        "author": author if is_answer else _USER,
        "id": digest[:8],
        **{key: near[key] for key in (*_INVOCATIONS, "timestamp") if key in near},
    }
    return like_keys(event, near)


DIALECT = ADK()
