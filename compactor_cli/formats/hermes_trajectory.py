"""Hermes trajectories: ShareGPT rows whose values hold ``<tool_call>`` and ``<tool_response>`` tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats import new_message as new_message
from compactor_cli.formats import sharegpt
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import RUN, Capabilities
from compactor_cli.formats.chat_dialect import model_of
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, thinking_of
from compactor_cli.model.transcript import Message, Record, Transcript

_MARKS = ("<tool_call>", "<tool_response>", "[CONTEXT SUMMARY]:")


class HermesTrajectory:
    """The dialect of Hermes' trajectories."""

    name = "hermes"
    title = "Hermes trajectory"
    holds = RUN | Capabilities.THINKING | Capabilities.TOOLS
    unwritten = NEVER_WRITTEN

    def array_path(self, value: Any) -> JsonPath | None:
        """``conversations``, as in ShareGPT."""
        return sharegpt.array_at(value)

    def score(self, value: Any) -> int:
        """3 for a turn with tags, of a tool, or that is its compressor's summary; 1 for any other turn."""
        if not sharegpt.is_turn(value):
            return 1 if isinstance(value, dict) and sharegpt.array_at(value) else 0
        turn_text = value["value"]
        is_marked = isinstance(turn_text, str) and any(mark in turn_text for mark in _MARKS)
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

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Turns of ``human`` and ``gpt``; a summary may follow a tool's turn, as Hermes itself writes it."""
        return new_message.insert(transcript, cut, insertions, sharegpt.SHAPE)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The turn with these texts replaced within its tags."""
        return sharegpt.shorten(record, texts)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A row of turns with tags."""
        return (
            {**sharegpt.row_of(conversation), "conversations": [_turn(message) for message in conversation.messages]},
        )


def _turn(message: Message) -> dict[str, str]:
    """Thinking, words and calls (or results), each in its tags."""
    thought = thinking_of(message)
    tagged = [("think", thought)] if thought else []
    calls = [("tool_call", {"name": call.name, "arguments": call.arguments}) for call in message.calls]
    results = [
        ("tool_response", {"tool_call_id": result.id, "name": result.name, "content": result.text})
        for result in message.results
    ]
    words = [message.text] if message.text else []
    lines = [*map(_tagged, tagged), *words, *map(_tagged, (*calls, *results))]
    return {"from": sharegpt.SPEAKERS[message.role], "value": "\n".join(lines)}


def _tagged(item: tuple[str, Any]) -> str:
    name, inner = item
    return f"<{name}>\n{inner if isinstance(inner, str) else sharegpt.dumps(inner)}\n</{name}>"


DIALECT = HermesTrajectory()
