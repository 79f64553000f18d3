"""What the dialects of messages with a role and a content share; each adds how it is recognised and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats import new_message as new_message
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.missing_results import pad_missing_results
from compactor_cli.model.transcript import Message, Record, Transcript

SHAPE = new_message.TurnShape(role_key="role", text_key="content", user=("user",), assistant=("assistant",))


class ChatDialect:
    """Messages read by `chat`, and new ones shaped like the file's own."""

    paths: tuple[JsonPath, ...] = (("messages",),)
    shape = SHAPE

    def array_path(self, value: Any) -> JsonPath | None:
        """The first of ``paths`` with messages; a bare array of them."""
        return chat.array_at(value, self.paths)

    def starts(self, value: Any) -> bool:
        """Never: no message says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; a user message that only brings results is a tool's."""
        return pad_missing_results(tuple(map(self.read_one, records)))

    def read_one(self, record: Record) -> Message:
        """What one message says, whatever stands around it."""
        return chat.read(record.value)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the last message or the row names."""
        return model_of(records, row)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with the keys of the file's own; not to be trained on where its messages say so."""
        return new_message.insert(transcript, cut, insertions, self.shape)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced; thinking and its signature are never touched."""
        return chat.shorten(record, texts)


def model_of(records: Sequence[Record], row: Any) -> str:
    """The model named by the last message that names one, else by what is around the messages."""
    values = [record.value for record in reversed(records)]
    around = [row, row.get("body"), row.get("params"), row.get("request")] if isinstance(row, dict) else []
    names = (value.get("model") for value in (*values, *around) if isinstance(value, dict))
    return next((name for name in names if name and isinstance(name, str)), "")
