"""Chat messages in envelopes: ``{"ts", "message": {"role", "content"}}`` a line, as programs of one's own log them.

What stands around a message is not sent. A new record has the times of the one before it and what all records say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import chat, new_message
from compactor_cli.formats.base import Insertion, InsertionPoint, objects, of_words, pad_missing_results
from compactor_cli.formats.jsontext import dumped
from compactor_cli.formats.located import LocatedPart, RecordDialect
from compactor_cli.model.transcript import Message, Record, Transcript

_KEYS = ("message", "msg", "data", "payload", "body", "entry", "record", "event")
_TIMES = ("timestamp", "ts", "time", "created_at", "createdAt")
_IDS = ("id", "uuid")


class Enveloped(RecordDialect):
    """The dialect of lines with a message in them."""

    name = "enveloped"
    title = "Chat messages in envelopes"
    holds = of_words("request times metadata".split())

    def score(self, value: Any) -> int:
        """1: nothing here is a mark of anybody."""
        return 1 if _key(value) else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; a line without one is META."""
        return pad_missing_results(tuple(map(self.read_one, records)))

    def read_one(self, record: Record) -> Message:
        """What one line says, with the time next to the message."""
        found, value = chat.read(_inner(record.value)), record.value
        times = (value.get(key) for key in _TIMES) if isinstance(value, dict) and not found.timestamp else ()
        return replace(found, timestamp=next((time for time in times if isinstance(time, str)), found.timestamp))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the newest line or message names."""
        values = (value for record in reversed(records) for value in (_inner(record.value), record.value))
        names = (value.get("model") for value in values if isinstance(value, dict))
        return next((name for name in names if name and isinstance(name, str)), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages like the file's own, in envelopes like its own."""
        records = tuple(replace(record, value=_inner(record.value)) for record in transcript.records)
        messages = new_message.insert(replace(transcript, records=records), cut, insertions, chat.SHAPE)
        values = objects(transcript.records)
        own = [value for value in values if _key(value)]
        near = next((values[i] for i in (*reversed(cut.before), *cut.after) if _key(values[i])), own[0])
        both = zip(insertions, map(json.loads, messages), strict=True)
        return dumped(
            transcript, [_sealed(near, own, message, f"{transcript.sha256} {item.text}") for item, message in both]
        )


def _key(value: Any) -> str:
    """Where the message of a line stands; empty where there is none, or where the line is a message itself."""
    if not isinstance(value, dict) or "role" in value:
        return ""
    return next((key for key in _KEYS if chat.is_chat(value.get(key))), "")


def _inner(value: Any) -> Any:
    return value[key] if (key := _key(value)) else None


def _sealed(near: Mapping[str, Any], own: Sequence[Mapping[str, Any]], message: Any, seed: str) -> dict[str, Any]:
    """The message in an envelope with its keys in the order of the one near by."""
    found: dict[str, Any] = {}
    for key, value in near.items():
        if key == _key(near):
            found[key] = message
        elif key in _IDS and isinstance(value, str):
            found[key] = hashlib.sha256(seed.encode()).hexdigest()[:24]
        elif key in _TIMES or all(key in other and other[key] == value for other in own):
            found[key] = value
        elif all(other.get(key) == _inner(other)["role"] for other in own):
            found[key] = message["role"]
    return found


def _pieces(value: Any) -> list[LocatedPart]:
    """The parts of the message, by their places in the line."""
    return [piece.below(key) for piece in chat.pieces(value[key])] if (key := _key(value)) else []


DIALECT = Enveloped(_pieces)
