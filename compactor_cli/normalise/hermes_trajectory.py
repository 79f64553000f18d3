"""Hermes trajectories: ShareGPT rows whose values hold ``<tool_call>`` and ``<tool_response>`` tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.core.records import Record
from compactor_cli.core.transcript import Message, Transcript
from compactor_cli.normalise import sharegpt
from compactor_cli.normalise.base import Cut, Insertion, JsonPath
from compactor_cli.normalise.openai_chat import model_of

_MARKS = ("<tool_call>", "<tool_response>", "[CONTEXT SUMMARY]:")


class HermesTrajectory:
    """The dialect of Hermes' trajectories."""

    name = "hermes"
    title = "Hermes trajectory"

    def array_path(self, value: Any) -> JsonPath | None:
        """``conversations``, as in ShareGPT."""
        return sharegpt.array_at(value)

    def score(self, value: Any) -> int:
        """3 for a turn with tags, of a tool, or that is its compressor's summary; 1 for any other turn."""
        if not sharegpt.is_turn(value):
            return 1 if isinstance(value, dict) and sharegpt.array_at(value) else 0
        said = value["value"]
        is_marked = isinstance(said, str) and any(mark in said for mark in _MARKS)
        return 3 if is_marked or value["from"] == "tool" else 1

    def starts(self, value: Any) -> bool:
        """Never: no turn says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per turn, its tags read as calls, results and thinking."""
        return sharegpt.read(records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the row names."""
        return model_of(records, row)

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Turns of ``human`` and ``gpt``."""
        return sharegpt.DIALECT.insert(transcript, cut, insertions)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The turn with these texts replaced within its tags."""
        return sharegpt.shorten(record, texts)


DIALECT = HermesTrajectory()
