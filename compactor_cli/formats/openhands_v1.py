"""Events of the OpenHands software-agent SDK: one object each, known by its ``kind``.

Found as an array, one event a line, or a file per event. Calls and results share ``tool_call_id``; calls of
one answer share ``llm_response_id``. A ``Condensation`` names the events that are not shown any more and the
summary in their place; ours is written as one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats.arrays import array_path, first_object
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import RUN, Capabilities
from compactor_cli.formats.contents import arguments, block_part, string
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.located_parts import LocatedPart, at, like_keys, parts, result_piece, shorten, text_pieces
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.transcript import Message, PreviousSummary, Record, Role, Text, Thinking, ToolCall, Transcript

_PATHS: tuple[JsonPath, ...] = (("events",), ("history",))
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "tool": Role.TOOL}
# Kinds with the key that holds what a model is shown.
_SYSTEM_KINDS = frozenset({"SystemPromptEvent", "SystemPromptUpdateEvent"})
_RESULT_KINDS = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})
_IGNORED_KINDS = frozenset(
    {
        "ConversationStateUpdateEvent",
        "ConversationErrorEvent",
        "CondensationRequest",
        "LLMCompletionLogEvent",
        "PauseEvent",
        "TokenEvent",
        "StreamingDeltaEvent",
        "HookExecutionEvent",
    }
)
_KINDS = _SYSTEM_KINDS | _RESULT_KINDS | _IGNORED_KINDS
_MESSAGE_KINDS = frozenset({"MessageEvent", "ActionEvent", "Condensation", "CondensationSummaryEvent"})
_META = Message(role=Role.META)


class OpenHandsV1:
    """The dialect of the OpenHands SDK's events."""

    name = "openhands-v1"
    title = "OpenHands SDK events"
    holds = (
        RUN
        | Capabilities.IDS
        | Capabilities.TIMES
        | Capabilities.THINKING
        | Capabilities.SUMMARIES
        | Capabilities.ERRORS
    )

    def array_path(self, value: Any) -> JsonPath | None:
        """A bare array of events, or ``events`` (``history``) of a row."""
        return array_path(value, _PATHS, _leads)

    def score(self, value: Any) -> int:
        """3 for an event; 2 for a row."""
        if _kind(value):
            return 3
        return 2 if isinstance(value, dict) and self.array_path(value) is not None else 0

    def starts(self, value: Any) -> bool:
        """Whether it is the system prompt that a conversation begins with."""
        return _kind(value) == "SystemPromptEvent"

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per event; what a condensation left out is ``superseded``."""
        values = [record.value for record in records]
        listed = (at(value, ("forgotten_event_ids",)) for value in values if _kind(value) == "Condensation")
        gone = {key for keys in listed if isinstance(keys, list) for key in keys if isinstance(key, str)}
        return tuple(_message(value, gone) for value in values)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the last state update names."""
        states = (at(record.value, ("value", "agent", "llm", "model")) for record in reversed(records))
        return next((name for name in states if isinstance(name, str) and name), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A condensation in place of the removed events; other messages as messages."""
        kept = {*cut.before, *cut.after}
        values = [record.value for record in transcript.records]
        removed = [value for i, value in enumerate(values) if i not in kept and _kind(value)]
        forgotten = [string(value.get("id")) for value in removed if value.get("id")]
        times = (string(value.get("timestamp")) for value in (*reversed(removed), *filter(_kind, reversed(values))))
        time = next((time for time in times if time), "")
        raw = transcript.records[0].raw if transcript.records else b""
        like: Any = next((value for value in values if _kind(value)), {})
        offset = sum(_is_shown(transcript.messages[i]) for i in cut.before)
        written = []
        for item in insertions:
            own_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{transcript.sha256} {item.text}"))
            event = _condensation(item, forgotten, offset, own_id) if item.is_summary else _message_event(item)
            written.append(dump(like_keys({"id": own_id, "timestamp": time, **event}, like), raw))
        return tuple(written)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The event with these texts replaced."""
        return shorten(record, texts, pieces)


def _kind(value: Any) -> str:
    """The kind of an event; empty for anything else."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or "source" not in value:
        return ""
    return kind if kind in _KINDS or kind in _MESSAGE_KINDS else ""


def _leads(elements: Any) -> bool:
    return bool(_kind(first_object(elements)))


def _is_shown(message: Message) -> bool:
    return not message.is_meta and not message.superseded


def _message(value: Any, gone: set[str]) -> Message:
    role = _role(value)
    if role is Role.META:
        return _META
    found = parts(pieces(value))
    summary = summary_of(role, found)
    if _kind(value).startswith("Condensation"):
        text = "\n".join(part.text for part in found if isinstance(part, Text))
        summary = summary or PreviousSummary(origin="openhands", text=text)
    return Message(
        role=role,
        parts=found,
        group=string(value.get("llm_response_id")) if _kind(value) == "ActionEvent" else "",
        timestamp=string(value.get("timestamp")),
        summary=summary,
        superseded=value.get("id") in gone if isinstance(value.get("id"), str) else False,
    )


def _role(value: Any) -> Role:
    kind = _kind(value)
    if kind in _SYSTEM_KINDS:
        return Role.SYSTEM
    if kind in _RESULT_KINDS:
        return Role.TOOL
    if kind == "ActionEvent":
        return Role.ASSISTANT
    if kind == "MessageEvent":
        return _ROLES.get(string(at(value, ("llm_message", "role"))), Role.META)
    return (
        Role.USER
        if kind.startswith("Condensation") and string(value.get("summary")) and kind in _MESSAGE_KINDS
        else Role.META
    )


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of an event with the places of their texts."""
    kind = _kind(value)
    if kind in _SYSTEM_KINDS:
        return text_pieces(value.get("system_prompt"), ("system_prompt",), block_part)
    if kind == "MessageEvent":
        return [
            *_thoughts(value.get("llm_message")),
            *text_pieces(at(value, ("llm_message", "content")), ("llm_message", "content"), block_part),
            *text_pieces(value.get("extended_content"), ("extended_content",), block_part),
        ]
    if kind == "ActionEvent":
        return [*_thoughts(value), *text_pieces(value.get("thought"), ("thought",), block_part), _call(value)]
    if kind in _RESULT_KINDS:
        return [_result(value, kind)]
    return text_pieces(value.get("summary"), ("summary",), block_part) if kind in _MESSAGE_KINDS else []


def _thoughts(holder: Any) -> list[LocatedPart]:
    """Reasoning next to the words; as blocks where the provider signs them."""
    blocks = at(holder, ("thinking_blocks",))
    if isinstance(blocks, list) and blocks:
        return [LocatedPart(block_part(block)) for block in blocks]
    text = at(holder, ("reasoning_content",))
    return [LocatedPart(Thinking(text=text))] if isinstance(text, str) and text else []


def _call(value: Mapping[str, Any]) -> LocatedPart:
    call = value.get("tool_call")
    call_id = string(value.get("tool_call_id")) or string(at(call, ("id",)))
    name = string(value.get("tool_name")) or string(at(call, ("name",)))
    for place in (("tool_call", "arguments"), ("tool_call", "function", "arguments")):
        written = at(value, place)
        if isinstance(written, (str, dict)):
            return LocatedPart(ToolCall(id=call_id, name=name, arguments=arguments(written)), (place,))
    action = value.get("action")
    own = {key: found for key, found in action.items() if key != "kind"} if isinstance(action, dict) else {}
    return LocatedPart(ToolCall(id=call_id, name=name, arguments=own))


def _result(value: Mapping[str, Any], kind: str) -> LocatedPart:
    call_id, name = string(value.get("tool_call_id")), string(value.get("tool_name"))
    if kind != "ObservationEvent":
        key = "error" if kind == "AgentErrorEvent" else "rejection_reason"
        return result_piece(string(value.get(key)), (key,), call_id=call_id, name=name, is_error=True)
    observation = value.get("observation")
    keys = (key for key in ("content", "output", "message") if at(observation, (key,)) is not None)
    place = ("observation", next(keys, "content"))
    failed = at(observation, ("is_error",)) is True
    return result_piece(at(value, place), place, call_id=call_id, name=name, is_error=failed)


def _condensation(item: Insertion, forgotten: Sequence[str], offset: int, own_id: str) -> dict[str, Any]:
    return {
        "source": "environment",
        "forgotten_event_ids": list(forgotten),
        "summary": item.text,
        "summary_offset": offset,
        "llm_response_id": own_id,
        "kind": "Condensation",
    }


def _message_event(item: Insertion) -> dict[str, Any]:
    is_agent = item.role is Role.ASSISTANT
    message = {"role": item.role.value, "content": [{"type": "text", "text": item.text}]}
    return {"source": "agent" if is_agent else "user", "llm_message": message, "kind": "MessageEvent"}


DIALECT = OpenHandsV1()
