"""Hermes sessions: a document with ``messages`` in OpenAI's shape, and the number of them beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.core.records import Record
from compactor_cli.core.transcript import Message, Transcript
from compactor_cli.normalise import chat, imitate
from compactor_cli.normalise.base import Cut, Insertion, JsonPath
from compactor_cli.normalise.frames import with_key
from compactor_cli.normalise.openai_chat import model_of

_ROW_KEYS = frozenset({"session_id", "session_start"})
_SHAPE = imitate.Shape(role_key="role", text_key="content", user=("user",), assistant=("assistant",))


class HermesSession:
    """The dialect of Hermes' session files."""

    name = "hermes-session"
    title = "Hermes session"

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a session."""
        is_session = isinstance(value, dict) and value.keys() >= _ROW_KEYS
        return chat.array_at(value, (("messages",),)) if is_session else None

    def score(self, value: Any) -> int:
        """3 for a session. Its messages look like any other."""
        return 3 if isinstance(value, dict) and self.array_path(value) is not None else 0

    def starts(self, value: Any) -> bool:
        """Never: no message says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record."""
        return chat.read_all(records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the session."""
        return model_of(records, row)

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with the keys of the file's own."""
        return imitate.insert(transcript, cut, insertions, _SHAPE)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced."""
        return chat.shorten(record, texts)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """``message_count`` is the number of messages."""
        if not isinstance(source.row, dict) or not isinstance(source.row.get("message_count"), int):
            return composed
        return replace(composed, frame=with_key(composed.frame, "message_count", len(composed.records)))


DIALECT = HermesSession()
