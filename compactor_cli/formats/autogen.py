"""AutoGen (0.4 and later): messages of a model's context, and messages and events of a team.

``{"type": "AssistantMessage", "source", "content"}`` in the saved state of an agent, ``TextMessage`` and
``ToolCallRequestEvent`` in the results of a run. Calls are the objects of a content, results those of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats.arrays import array_path, first_object
from compactor_cli.formats.base import Cut, Insertion, JsonPath
from compactor_cli.formats.contents import arguments, block_part, string
from compactor_cli.formats.holds import RUN, Holds
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.places import Piece, Place, like_keys, parts, shorten, text_pieces
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.records import Record
from compactor_cli.model.transcript import Message, Role, Text, Thinking, ToolCall, ToolResult, Transcript

_PATHS: tuple[JsonPath, ...] = (
    ("messages",),
    ("llm_context", "messages"),
    ("agent_state", "llm_context", "messages"),
    ("task_result", "messages"),
)
_SYSTEM, _USER, _RESULTS = "SystemMessage", "UserMessage", "FunctionExecutionResultMessage"
_OF_MODELS = frozenset({_SYSTEM, _USER, "AssistantMessage", _RESULTS})
_OF_TEAMS = frozenset(
    "TextMessage MultiModalMessage StopMessage HandoffMessage ToolCallSummaryMessage StructuredMessage"
    " ToolCallRequestEvent ToolCallExecutionEvent ThoughtEvent MemoryQueryEvent UserInputRequestedEvent".split()
)
_RESULT_KINDS = frozenset({_RESULTS, "ToolCallExecutionEvent"})
# Asks the person at the console; their answer is a message of its own.
_BESIDE = frozenset({"UserInputRequestedEvent"})
_PEOPLE = frozenset({"user", "human", "user_proxy", "userproxy"})


class AutoGen:
    """The dialect of AutoGen's messages."""

    name = "autogen"
    title = "AutoGen messages"
    holds = RUN | Holds.IDS | Holds.ERRORS | Holds.THINKING

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a result or of an agent's state, or a bare array of messages."""
        return array_path(value, _PATHS, _leads)

    def score(self, value: Any) -> int:
        """3 for a message; 2 for what holds them."""
        if is_message(value):
            return 3
        return 2 if isinstance(value, dict) and self.array_path(value) is not None else 0

    def starts(self, value: Any) -> bool:
        """Never: no message says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; in a team the first speaker sets the task, whatever its name."""
        first = next((string(record.value.get("source")) for record in records if is_message(record.value)), "")
        return tuple(_message(record.value, first) for record in records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """Empty: neither messages nor states name it."""
        return ""

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages of the file's kind, of its user and its last agent."""
        values = [record.value for record in transcript.records if is_message(record.value)]
        raw = transcript.records[0].raw if transcript.records else b""
        return tuple(dump(_written(item, values), raw) for item in insertions)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced in its content."""
        return shorten(record, texts, pieces)


def is_message(value: Any) -> bool:
    """Whether this is a message or an event of a known type."""
    if not isinstance(value, dict) or "content" not in value:
        return False
    kind = string(value.get("type"))
    return kind in (_SYSTEM, _RESULTS) or (kind in _OF_MODELS | _OF_TEAMS and isinstance(value.get("source"), str))


def _leads(elements: Any) -> bool:
    """Whether the first object of an array is a message."""
    return is_message(first_object(elements))


def _message(value: Any, first: str) -> Message:
    if not is_message(value) or value["type"] in _BESIDE:
        return Message(role=Role.META)
    found = parts(pieces(value))
    role = _role(value, first)
    return Message(role=role, parts=found, timestamp=string(value.get("created_at")), summary=summary_of(role, found))


def _role(value: Mapping[str, Any], first: str) -> Role:
    kind, source = value["type"], string(value.get("source"))
    if kind in _RESULT_KINDS:
        return Role.TOOL
    if kind in (_SYSTEM, _USER):
        return Role.SYSTEM if kind == _SYSTEM else Role.USER
    is_person = kind in _OF_TEAMS and (source == first or source.lower() in _PEOPLE)
    return Role.USER if is_person else Role.ASSISTANT


def pieces(value: Any) -> list[Piece]:
    """The parts of a message with the places of their texts."""
    if not is_message(value):
        return []
    content = value["content"]
    thought = string(value.get("thought"))
    thinking = [Piece(Thinking(text=thought))] if thought else []
    if value["type"] == "ThoughtEvent":
        return [Piece(Thinking(text=string(content)))]
    if not isinstance(content, list):
        return thinking + text_pieces(content, ("content",), block_part)
    is_result = value["type"] in _RESULT_KINDS
    return thinking + [_piece(block, ("content", i), is_result) for i, block in enumerate(content)]


def _piece(block: Any, place: Place, is_result: bool) -> Piece:
    if is_result and isinstance(block, dict):
        text, name = string(block.get("content")), string(block.get("name"))
        result = ToolResult(
            id=string(block.get("call_id")), text=text, name=name, is_error=block.get("is_error") is True
        )
        return Piece(result, ((*place, "content"),))
    if isinstance(block, dict) and "arguments" in block:
        name, call_id = string(block.get("name")), string(block.get("id"))
        return Piece(ToolCall(id=call_id, name=name, arguments=arguments(block["arguments"])), ((*place, "arguments"),))
    part = block_part(block)
    return Piece(part, (place,) if isinstance(part, Text) and isinstance(block, str) else ())


def _written(item: Insertion, values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    is_answer = item.role is Role.ASSISTANT
    of_models = any(value["type"] in _OF_MODELS for value in values)
    kind = ("AssistantMessage" if is_answer else _USER) if of_models else "TextMessage"
    first = next((string(value.get("source")) for value in values), "") or "user"
    others = [source for value in values if (source := string(value.get("source"))) not in ("", first)]
    like = next((value for value in values if value["type"] == kind), {})
    source = (others[-1] if others else "assistant") if is_answer else first
    return like_keys({"content": item.text, "source": source, "type": kind}, like)


DIALECT = AutoGen()
