"""tau2-bench: messages with flat calls (``{"id", "name", "arguments"}``) and results that are keyed by ``id``.

The simulated user has tools as well: user messages may hold calls, and results say whose they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.core.records import Record
from compactor_cli.core.transcript import Message, Transcript
from compactor_cli.normalise import chat, imitate
from compactor_cli.normalise.base import Cut, Insertion, JsonPath
from compactor_cli.normalise.openai_chat import model_of

_PATHS: tuple[JsonPath, ...] = (("messages",),)
_SHAPE = imitate.Shape(role_key="role", text_key="content", user=("user",), assistant=("assistant",))


class Tau:
    """The dialect of tau2-bench's simulations."""

    name = "tau"
    title = "tau2-bench messages"

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a simulation; a bare array of messages."""
        return chat.array_at(value, _PATHS)

    def score(self, value: Any) -> int:
        """3 for a flat call and for a result with ``requestor``; 2 for a message with ``turn_idx``."""
        if not chat.is_chat(value):
            return 0
        calls = value.get("tool_calls")
        if isinstance(calls, list) and calls:
            return 3 if all(map(_is_flat, calls)) else 0
        if value["role"] == "tool":
            return 0 if "tool_call_id" in value else 3 if "requestor" in value else 1
        return 2 if "turn_idx" in value else 1

    def starts(self, value: Any) -> bool:
        """Whether it is the first message of a simulation."""
        return chat.is_chat(value) and value.get("turn_idx") == 0 and type(value["turn_idx"]) is int

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record."""
        return chat.read_all(records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the last message names."""
        return model_of(records, row)

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with the keys of the file's own."""
        return imitate.insert(transcript, cut, insertions, _SHAPE)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced."""
        return chat.shorten(record, texts)


def _is_flat(call: Any) -> bool:
    return isinstance(call, dict) and "function" not in call and "name" in call and "arguments" in call


DIALECT = Tau()
