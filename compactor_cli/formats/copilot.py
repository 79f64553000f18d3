"""Copilot CLI sessions: ``~/.copilot/session-state/*/events.jsonl``, ``{"type", "data", "id", "parentId"}`` a line.

What is sent are messages of system, user and assistant, and what tools completed with; a successful
``session.compaction_complete`` stands for all before it. Everything else is bookkeeping. As found in sessions of
0.0.420 to 1.0.77; not run against the client.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats.base import Cut, Insertion, JsonPath
from compactor_cli.formats.contents import arguments, result_text, shortened_arguments, string
from compactor_cli.formats.holds import SESSION, Holds
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.places import at
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.records import Record
from compactor_cli.model.transcript import (
    Message,
    Part,
    PreviousSummary,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Transcript,
)

_ROLES = {"system.message": Role.SYSTEM, "user.message": Role.USER, "assistant.message": Role.ASSISTANT}
_RESULT = "tool.execution_complete"
_COMPACTION = "session.compaction_complete"
_FAMILIES = ("session.", "user.", "assistant.", "system.", "tool.", "hook.", "subagent.", "skill.", "permission.")
_TEXT_KEYS = ("reasoningText", "content")
_META = Message(role=Role.META)


class Copilot:
    """The dialect of Copilot CLI's session events."""

    name = "copilot"
    title = "Copilot CLI session"
    holds = (SESSION | Holds.SYSTEM | Holds.SUMMARIES) & ~(Holds.IMAGES | Holds.USAGE)

    def array_path(self, value: Any) -> JsonPath | None:
        """None: a line is a record."""
        return None

    def score(self, value: Any) -> int:
        """3 for an event of the client: its type has a family, its data is an object."""
        is_event = isinstance(value, dict) and isinstance(value.get("data"), dict) and "id" in value
        return 3 if is_event and string(value.get("type")).startswith(_FAMILIES) else 0

    def starts(self, value: Any) -> bool:
        """``session.start``."""
        return isinstance(value, dict) and value.get("type") == "session.start"

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what a compaction replaced is ``superseded``, but for system messages."""
        found = [_message(record.value) for record in records]
        last = max((i for i, record in enumerate(records) if _is_compaction(record.value)), default=0)
        for i, message in enumerate(found[:last]):
            if message.role is not Role.SYSTEM:
                found[i] = replace(message, superseded=True)
        return tuple(found)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that was chosen last."""
        places = (("data", "newModel"), ("data", "selectedModel"), ("data", "model"))
        names = (string(at(record.value, place)) for record in reversed(records) for place in places)
        return next((name for name in names if name), "")

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages in a chain; the last takes over the id of the removed event that the tail hangs on."""
        if not insertions:
            return ()
        values = [record.value if isinstance(record.value, dict) else {} for record in transcript.records]
        kept = {string(values[i].get("id")) for i in (*cut.before, *cut.after)}
        hung = next((string(values[i].get("parentId")) for i in cut.after), "")
        keys = [str(uuid.uuid5(uuid.NAMESPACE_OID, f"{transcript.sha256} {item.text}")) for item in insertions]
        if hung and hung not in kept:
            keys[-1] = hung
        parents = [next((values[i].get("id") for i in reversed(cut.before)), None), *keys]
        near = next((values[i] for i in (*reversed(cut.before), *cut.after)), {})
        like = transcript.records[0].raw if transcript.records else b""
        chain = zip(insertions, keys, parents, strict=False)
        return tuple(dump(_written(item, key, parent, near), like) for item, key, parent in chain)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The event with texts replaced in its data."""
        value = parse(record.raw)
        data = dict(value["data"])
        if value["type"] == _RESULT:
            key, place = ("error", "message") if _failed(data) else ("result", "content")
            data[key] = {**data[key], place: texts[0]} if isinstance(data.get(key), dict) else texts[0]
            return dump({**value, "data": data}, record.raw)
        requests = [dict(request) for request in _requests(data)]
        names = [key for key in _TEXT_KEYS if string(data.get(key))]
        for i, text in texts.items():
            if i >= len(names):
                requests[i - len(names)]["arguments"] = shortened_arguments(text)
            elif names[i] == "content":
                data |= {key: text for key in ("content", "transformedContent") if key in data}
        return dump({**value, "data": {**data, **({"toolRequests": requests} if requests else {})}}, record.raw)


def _is_compaction(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("type") != _COMPACTION or at(value, ("data", "success")) is False:
        return False
    return bool(string(at(value, ("data", "summaryContent"))))


def _message(value: Any) -> Message:
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(data, dict):
        return _META
    timestamp = string(value.get("timestamp"))
    if _is_compaction(value):
        text = data["summaryContent"]
        summary = PreviousSummary(origin="copilot", text=text)
        return Message(role=Role.USER, parts=(Text(text=text),), timestamp=timestamp, summary=summary)
    kind = string(value.get("type"))
    if kind == _RESULT:
        return Message(role=Role.TOOL, parts=(_result(data),), timestamp=timestamp)
    role = _ROLES.get(kind, Role.META)
    parts = tuple(_parts(data)) if role is not Role.META else ()
    return Message(role=role, parts=parts, timestamp=timestamp, summary=summary_of(role, parts))


def _parts(data: Mapping[str, Any]) -> Iterator[Part]:
    if thought := string(data.get("reasoningText")):
        yield Thinking(text=thought)
    if text := string(data.get("content")):
        yield Text(text=text)
    for request in _requests(data):
        name, key = string(request.get("name")), string(request.get("toolCallId"))
        yield ToolCall(id=key, name=name, arguments=arguments(request.get("arguments")))


def _requests(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    requests = data.get("toolRequests")
    return [each for each in requests if isinstance(each, dict)] if isinstance(requests, list) else []


def _failed(data: Mapping[str, Any]) -> bool:
    return data.get("success") is False and bool(data.get("error"))


def _result(data: Mapping[str, Any]) -> ToolResult:
    place = ("error", "message") if _failed(data) else ("result", "content")
    told = at(data, place)
    text = result_text(told if told is not None else data.get(place[0]))
    return ToolResult(id=string(data.get("toolCallId")), text=text, is_error=data.get("success") is False)


def _written(item: Insertion, key: str, parent: Any, near: Mapping[str, Any]) -> dict[str, Any]:
    kind = "assistant.message" if item.role is Role.ASSISTANT else "user.message"
    more = {"messageId": key, "toolRequests": []} if item.role is Role.ASSISTANT else {"attachments": []}
    data = {"content": item.text, **more}
    return {"type": kind, "data": data, "id": key, "timestamp": near.get("timestamp"), "parentId": parent}


DIALECT = Copilot()
