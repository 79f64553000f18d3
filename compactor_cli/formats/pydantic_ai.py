"""Message histories of Pydantic AI: ``{"kind": "request" | "response", "parts": [{"part_kind": ...}]}``.

As ``ModelMessagesTypeAdapter`` and ``all_messages_json`` write them, up to version 2.68. A request may hold the
system prompt and the user's words together: it is of the system then, which is never cut. What the application says
in a request (instructions, feedback on an answer that it could not use) is none of the user's words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats.base import SESSION, Capabilities, Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.blocks import size_bytes
from compactor_cli.formats.contents import arguments, block_part, role_of, string
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.located_parts import (
    LocatedPart,
    Place,
    array_path,
    at,
    first_object,
    like_keys,
    parts,
    result_piece,
    shorten,
    text_pieces,
)
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.transcript import (
    Media,
    Message,
    PreviousSummary,
    Record,
    Role,
    Text,
    Thinking,
    ToolCall,
    Transcript,
)

_PATHS: tuple[JsonPath, ...] = (("messages",), ("message_history",), ("all_messages",))
_ROLES = {"request": Role.USER, "response": Role.ASSISTANT}
_WORDS = frozenset({"system-prompt", "user-prompt", "text"})
_CALLS = frozenset({"tool-call", "builtin-tool-call"})
_RESULTS = frozenset({"tool-return", "builtin-tool-return", "retry-prompt"})
_INSTRUCTIONS = frozenset({"system-prompt", "instruction", "instruction-delta", "instruction-baseline"})
_USERS = frozenset({"user-prompt", "speech"})
_FEEDBACK = frozenset({"retry-prompt", "retry-feedback"})
_FAILED = ("failed", "denied", "retried")
# Records of what was switched on, without a word.
_BOOKKEEPING = frozenset({"tool-availability-delta", "capability-load-delta", "model-settings-delta"})


class PydanticAI:
    """The dialect of Pydantic AI's message histories."""

    name = "pydantic-ai"
    title = "Pydantic AI messages"
    holds = SESSION | Capabilities.SYSTEM

    def array_path(self, value: Any) -> JsonPath | None:
        """A bare array of messages, or the key it is stored under."""
        return array_path(value, _PATHS, _leads)

    def score(self, value: Any) -> int:
        """3 for a message; 2 for a row of them."""
        if is_message(value):
            return 3
        return 2 if isinstance(value, dict) and self.array_path(value) is not None else 0

    def starts(self, value: Any) -> bool:
        """Never: no message says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; a request that only brings results is a tool's."""
        return tuple(_message(record.value) for record in records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last response."""
        names = (at(record.value, ("model_name",)) for record in reversed(records))
        return next((name for name in names if name and isinstance(name, str)), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A request with a user prompt, timed as the message before it; an answer with a text."""
        values = [record.value if isinstance(record.value, dict) else {} for record in transcript.records]
        near = next((values[i] for i in (*reversed(cut.before), *cut.after) if _time(values[i])), {})
        raw = transcript.records[0].raw if transcript.records else b""
        return tuple(dump(_written(item, _time(near), values), raw) for item in insertions)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced in its parts."""
        return shorten(record, texts, pieces)


def is_message(value: Any) -> bool:
    """Whether this is a request or a response of parts with a ``part_kind``."""
    if not isinstance(value, dict) or string(value.get("kind")) not in _ROLES:
        return False
    found = value.get("parts")
    return isinstance(found, list) and all(isinstance(at(part, ("part_kind",)), str) for part in found)


def _leads(elements: Any) -> bool:
    """Whether the first object of an array is a message."""
    return is_message(first_object(elements))


def _message(value: Any) -> Message:
    if not is_message(value):
        return Message(role=Role.META)
    found = parts(pieces(value))
    kinds = [part["part_kind"] for part in value["parts"]]
    is_system = "system-prompt" in kinds or (bool(kinds) and _INSTRUCTIONS.issuperset(kinds))
    role = Role.SYSTEM if is_system else role_of(_ROLES[value["kind"]], found)
    return Message(
        role=role,
        parts=found,
        timestamp=_time(value),
        summary=_summary(value) or summary_of(role, found),
        own_words=None if _USERS.issuperset(kinds) else _typed(value),
    )


def _summary(value: Mapping[str, Any]) -> PreviousSummary | None:
    """The summary of an earlier compaction, the provider's or the application's, if it can be read."""
    texts = (string(part.get("content")) for part in value["parts"] if part["part_kind"] == "compaction")
    text = next((text for text in texts if text), "")
    return PreviousSummary(origin="pydantic-ai", text=text) if text else None


def _typed(value: Mapping[str, Any]) -> str:
    """What the user said of a request that says other things, too."""
    users = [(i, part) for i, part in enumerate(value["parts"]) if part["part_kind"] in _USERS]
    found = parts([piece for i, part in users for piece in _pieces(part, ("parts", i))])
    return "\n".join(part.text for part in found if isinstance(part, Text) and part.text)


def _time(value: Mapping[str, Any]) -> str:
    """When a message was sent: its own time, or that of its first part."""
    return string(at(value, ("timestamp",))) or string(at(value, ("parts", 0, "timestamp")))


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of a message with the places of their texts."""
    listed = enumerate(value["parts"]) if is_message(value) else ()
    return [piece for i, part in listed for piece in _pieces(part, ("parts", i))]


def _pieces(part: Mapping[str, Any], place: Place) -> list[LocatedPart]:
    kind, content = part["part_kind"], part.get("content")
    if kind in _WORDS:
        return _content_pieces(content, (*place, "content"))
    if kind == "thinking":
        return [LocatedPart(Thinking(text=string(content)))]
    if kind in _INSTRUCTIONS or (kind == "compaction" and string(content)):
        return _instruction_pieces(part, place)
    if kind == "speech":
        return text_pieces(part.get("transcript"), (*place, "transcript"), block_part)
    if kind in _BOOKKEEPING:
        return []
    return _tool_pieces(part, place)


def _content_pieces(content: Any, place: Place) -> list[LocatedPart]:
    """A prompt: a text, or texts (alone or with something about them) and files."""
    if not isinstance(content, list):
        return text_pieces(content, place, block_part)
    return [_content_piece(item, (*place, i)) for i, item in enumerate(content)]


def _content_piece(item: Any, place: Place) -> LocatedPart:
    if isinstance(item, str):
        return LocatedPart(Text(text=item), (place,))
    if at(item, ("kind",)) == "text-content":
        return LocatedPart(Text(text=string(item.get("content"))), ((*place, "content"),))
    part = block_part(item)
    return LocatedPart(part, ((*place, "text"),) if isinstance(part, Text) else ())


def _instruction_pieces(part: Mapping[str, Any], place: Place) -> list[LocatedPart]:
    """The words of the application, also those that a baseline only records."""
    if isinstance(part.get("content"), str):
        return text_pieces(part["content"], (*place, "content"), block_part)
    listed = part.get("instructions")
    texts = (string(at(item, ("content",))) for item in listed) if isinstance(listed, list) else ()
    return [LocatedPart(Text(text=text)) for text in texts if text]


def _tool_pieces(part: Mapping[str, Any], place: Place) -> list[LocatedPart]:
    kind, content = part["part_kind"], part.get("content")
    call_id, name = string(part.get("tool_call_id")), string(part.get("tool_name"))
    if kind in _CALLS:
        call = ToolCall(id=call_id, name=name, arguments=arguments(part.get("args")))
        return [LocatedPart(call, ((*place, "args"),) if part.get("args") is not None else ())]
    if kind in _RESULTS and (name or kind != "retry-prompt"):
        is_error = kind == "retry-prompt" or part.get("outcome") in _FAILED
        result = result_piece(content, (*place, "content"), call_id=call_id, name=name, is_error=is_error)
        return [result if isinstance(content, (str, dict, list)) else LocatedPart(result.part)]
    if kind in _FEEDBACK:
        is_text = isinstance(content, str)
        return (
            text_pieces(content, (*place, "content"), block_part)
            if is_text
            else [LocatedPart(Text(text=_json(content)))]
        )
    return [LocatedPart(Media(kind=kind, size_bytes=size_bytes(part)))]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _written(item: Insertion, timestamp: str, values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kind, part_kind = ("response", "text") if item.role is Role.ASSISTANT else ("request", "user-prompt")
    like = next((value for value in values if value.get("kind") == kind), {})
    is_timed = bool(timestamp) and part_kind == "user-prompt"
    timed = {"timestamp": timestamp} if is_timed else {}
    part = like_keys({"content": item.text, **timed, "part_kind": part_kind}, at(like, ("parts", 0)))
    return like_keys({"parts": [part], "kind": kind}, like)


DIALECT = PydanticAI()
