"""UI messages of the AI SDK: ``{"id", "role", "parts": [{"type": "text"}, {"type": "tool-NAME", "state"}]}``.

What chat applications store. A part holds a call together with its result. Read as of versions 4
(``tool-invocation``) to 6; copies of the words in ``content`` and ``toolInvocations`` (version 4) stay in line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats.base import SESSION, Capabilities, Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.blocks import size_bytes
from compactor_cli.formats.chat import model_of
from compactor_cli.formats.contents import arguments, string
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.located_parts import (
    LocatedPart,
    Place,
    array_path,
    at,
    like_keys,
    parts,
    result_piece,
    shorten,
)
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.transcript import Media, Message, Record, Role, Text, Thinking, ToolCall, Transcript

_PATHS: tuple[JsonPath, ...] = (("messages",), ("chat", "messages"), ("uiMessages",))
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_OLD, _DYNAMIC, _TOOL = "tool-invocation", "dynamic-tool", "tool-"
# This many elements of an array are looked at for one with parts.
_LOOKED_AT = 10
_IGNORED_TYPES = frozenset({"step-start", "source-url", "source-document", "source"})


class UIMessages:
    """The dialect of the AI SDK's UI messages."""

    name = "ui-messages"
    title = "AI SDK UI messages"
    holds = SESSION & ~Capabilities.USAGE | Capabilities.SYSTEM | Capabilities.METADATA

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a stored chat, or a bare array of messages."""
        return array_path(value, _PATHS, _leads)

    def score(self, value: Any) -> int:
        """3 for a message; 2 for a stored chat."""
        if is_message(value):
            return 3
        return 2 if isinstance(value, dict) and self.array_path(value) is not None else 0

    def starts(self, value: Any) -> bool:
        """Never: no message says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record."""
        return tuple(_message(record.value) for record in records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the last message's metadata or the row names."""
        infos = (at(record.value, ("metadata", "model")) for record in reversed(records))
        return next((name for name in infos if name and isinstance(name, str)), "") or model_of((), row)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages of one text part, with an id where the file's own have one."""
        first = next((r for r in transcript.records if isinstance(r.value, dict)), None)
        like, raw = (first.value, first.raw) if first else ({}, b"")
        return tuple(dump(_written(item, transcript.sha256, like), raw) for item in insertions)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced in its parts and their copies."""
        return shorten(record, texts, pieces)


def is_message(value: Any) -> bool:
    """Whether this is a role with parts that all have a type."""
    if not isinstance(value, dict) or string(value.get("role")) not in _ROLES:
        return False
    found = value.get("parts")
    return isinstance(found, list) and bool(found) and all(isinstance(at(part, ("type",)), str) for part in found)


def _leads(elements: Any) -> bool:
    """Whether an array begins with a message; one of version 4 may be without parts, its answer is not."""
    if not isinstance(elements, list):
        return False
    objects = [element for element in elements[:_LOOKED_AT] if isinstance(element, dict)]
    return bool(objects) and (is_message(objects[0]) or (_is_plain(objects[0]) and any(map(is_message, objects))))


def _is_plain(value: Any) -> bool:
    """Whether this is a message of version 4 that has no parts."""
    if not isinstance(value, dict) or string(value.get("role")) not in _ROLES:
        return False
    return "parts" not in value and isinstance(value.get("content"), str)


def _message(value: Any) -> Message:
    if not (is_message(value) or _is_plain(value)):
        return Message(role=Role.META)
    found, role = parts(pieces(value)), _ROLES[value["role"]]
    return Message(role=role, parts=found, timestamp=string(value.get("createdAt")), summary=summary_of(role, found))


def pieces(value: Any) -> list[LocatedPart]:
    """The parts that a model is shown, with the places of their texts."""
    if _is_plain(value):
        return [LocatedPart(Text(text=value["content"]), (("content",),))] if value["content"] else []
    if not is_message(value):
        return []
    listed = enumerate(value["parts"])
    return [piece for i, part in listed for piece in _pieces(part, ("parts", i), value)]


def _pieces(part: Mapping[str, Any], place: Place, message: Mapping[str, Any]) -> list[LocatedPart]:
    kind = part["type"]
    if kind == "text":
        text = string(part.get("text"))
        copies: tuple[Place, ...] = (("content",),) if text and message.get("content") == text else ()
        return [LocatedPart(Text(text=text), ((*place, "text"), *copies))] if text else []
    if kind == "reasoning":
        return [LocatedPart(Thinking(text=string(part.get("text")) or string(part.get("reasoning"))))]
    if kind == _OLD:
        return _old_tool(part, place, message)
    if kind == _DYNAMIC or kind.startswith(_TOOL):
        name = string(part.get("toolName")) or kind.removeprefix(_TOOL)
        key = "errorText" if part.get("state") == "output-error" else "output"
        return _tool(part, (place,), name, "input", key)
    return [] if kind in _IGNORED_TYPES else [LocatedPart(Media(kind=kind, size_bytes=size_bytes(part)))]


def _old_tool(part: Mapping[str, Any], place: Place, message: Mapping[str, Any]) -> list[LocatedPart]:
    """A part of version 4, and its copy next to the parts."""
    call = part.get("toolInvocation")
    listed = message.get("toolInvocations")
    copies = [("toolInvocations", i) for i, one in enumerate(listed if isinstance(listed, list) else ()) if one == call]
    if not isinstance(call, dict):
        return []
    return _tool(call, ((*place, "toolInvocation"), *copies), string(call.get("toolName")), "args", "result")


def _tool(
    call: Mapping[str, Any], places: Sequence[Place], name: str, asked: str, result_key: str
) -> list[LocatedPart]:
    """A call, and its result once there is one."""
    call_id = string(call.get("toolCallId"))
    arguments_places = tuple((*place, asked) for place in places) if asked in call else ()
    model_options = LocatedPart(
        ToolCall(id=call_id, name=name, arguments=arguments(call.get(asked) or {})), arguments_places
    )
    if call.get(result_key) is None:
        return [model_options]
    is_error = result_key == "errorText"
    result = result_piece(call[result_key], (), call_id=call_id, name=name, is_error=is_error).part
    is_held = isinstance(call[result_key], (str, dict, list))
    return [model_options, LocatedPart(result, tuple((*place, result_key) for place in places) if is_held else ())]


def _written(item: Insertion, sha256: str, like: Mapping[str, Any]) -> dict[str, Any]:
    digest = hashlib.sha256(f"{sha256} {item.text}".encode()).hexdigest()[:24]
    own_id = {"id": digest} if "id" in like else {}
    words = {"content": item.text} if isinstance(like.get("content"), str) else {}
    part = {"type": "text", "text": item.text}
    return like_keys({**own_id, "role": item.role.value, **words, "parts": [part]}, like)


DIALECT = UIMessages()
