"""OpenHands events (before the software-agent SDK): actions and observations, tied by ``cause``.

Found as an array of events (a trajectory), as the ``history`` of an evaluation's row, and in old rows as
``[action, observation]`` pairs. What a condensation says was forgotten is not shown any more; a summary is
written as such a condensation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import RUN, Capabilities
from compactor_cli.formats.contents import string
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.located_parts import LocatedPart, Place, at, like_keys, parts, shorten
from compactor_cli.formats.openhands_parts import (
    ACTIONS_IGNORED,
    OBSERVATIONS_IGNORED,
    action_pieces,
    forgotten,
    is_action,
    observation_piece,
)
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.transcript import Message, PreviousSummary, Record, Role, Text, ToolCall, Transcript

_PATHS: tuple[JsonPath, ...] = (("history",), ("trajectory",), ("events",))
_META = Message(role=Role.META)
_NO_OBSERVATION = {"message": "No observation", "observation": "null", "content": "", "extras": {}}


class OpenHands:
    """The dialect of OpenHands' event streams."""

    name = "openhands"
    title = "OpenHands events"
    holds = RUN | Capabilities.IDS | Capabilities.TIMES | Capabilities.SUMMARIES | Capabilities.ERRORS

    def array_path(self, value: Any) -> JsonPath | None:
        """A bare array of events, or ``history`` (``trajectory``, ``events``) of a row."""
        if isinstance(value, list):
            return () if _leads(value) else None
        return next((path for path in _PATHS if _leads(at(value, path))), None)

    def score(self, value: Any) -> int:
        """3 for an event, or a pair of them; 2 for a row."""
        if is_event(value) or _is_pair(value):
            return 3
        return 2 if isinstance(value, dict) and self.array_path(value) is not None else 0

    def starts(self, value: Any) -> bool:
        """Whether it is the event with number 0."""
        return is_event(value) and value.get("id") == 0 and type(value["id"]) is int

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what a condensation left out is ``superseded``."""
        gone = {key for record in records for event in _events(record.value) for key in forgotten(event)}
        return tuple(_message(record.value, gone) for record in records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the last call came from, else the row's."""
        events = (event for record in reversed(records) for event in _events(record.value))
        called = (at(event, ("tool_call_metadata", "model_response", "model")) for event in events)
        named = (at(row, path) for path in (("metadata", "llm_config", "model"), ("metadata", "model_name")))
        return next((name for name in (*called, *named) if isinstance(name, str) and name), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A condensation in place of the removed events; other messages as messages. Numbers are those removed."""
        values = [record.value for record in transcript.records]
        raw = transcript.records[0].raw if transcript.records else b""
        site = _Site(values, cut, len(insertions))
        time = _time(transcript, cut)
        like = next((event for value in values for event in _events(value) if is_action(event)), {})
        written: list[bytes] = []
        for item, number in zip(insertions, site.numbers, strict=True):
            event = site.condensation(item) if item.is_summary and not site.has_pairs else _message_event(item)
            event = like_keys({"id": number, "timestamp": time, **event}, like)
            written.append(dump([event, _NO_OBSERVATION] if site.has_pairs else event, raw))
        return tuple(written)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The event with these texts replaced, arguments both as the model wrote them and as they were run."""
        return shorten(record, texts, pieces)


def is_event(value: Any) -> bool:
    """Whether this is an action or an observation."""
    if not isinstance(value, dict) or "kind" in value or "role" in value:
        return False
    return is_action(value) or (isinstance(value.get("observation"), str) and isinstance(value.get("extras"), dict))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_event, value))


def _events(value: Any) -> Sequence[Mapping[str, Any]]:
    if _is_pair(value):
        return tuple(value)
    return (value,) if is_event(value) else ()


def _leads(elements: Any) -> bool:
    if not isinstance(elements, list):
        return False
    first = next((element for element in elements if isinstance(element, (dict, list))), None)
    return is_event(first) or _is_pair(first)


def _message(value: Any, gone: set[Any]) -> Message:
    events = _events(value)
    roles = [role for event in events if (role := _role(event)) is not Role.META]
    if not events or not roles:
        return _META
    found = parts(pieces(value))
    first = events[0]
    summary = summary_of(Role.USER, found) if roles[0] is Role.USER else None
    if is_action(first) and first["action"] == "condensation":
        text = "\n".join(part.text for part in found if isinstance(part, Text))
        summary = summary or PreviousSummary(origin="openhands", text=text)
    return Message(
        role=roles[0],
        parts=found,
        group=_response(first),
        timestamp=string(first.get("timestamp")),
        summary=summary,
        superseded=isinstance(first.get("id"), int) and first["id"] in gone,
    )


def _role(event: Mapping[str, Any]) -> Role:
    if not is_action(event):
        return Role.META if string(event.get("observation")) in OBSERVATIONS_IGNORED else Role.TOOL
    kind = event["action"]
    if kind == "condensation":
        return Role.USER if string(at(event, ("args", "summary"))) else Role.META
    if kind == "system":
        return Role.SYSTEM
    if kind in ACTIONS_IGNORED:
        return Role.META
    return Role.USER if event.get("source") == "user" else Role.ASSISTANT


def _response(event: Mapping[str, Any]) -> str:
    """The answer that several calls came in together; empty for single ones."""
    metadata = event.get("tool_call_metadata") if is_action(event) else None
    count = at(metadata, ("total_calls_in_response",))
    return string(at(metadata, ("model_response", "id"))) if isinstance(count, int) and count > 1 else ""


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of an event, or of both of a pair, with the places of their texts."""
    if not _is_pair(value):
        return _event_pieces(value, ()) if is_event(value) else []
    action, observation = value
    found = _event_pieces(action, (0,))
    called = any(isinstance(piece.part, ToolCall) for piece in found)
    return [*found, *(_event_pieces(observation, (1,)) if called or _role(observation) is not Role.META else [])]


def _event_pieces(event: Mapping[str, Any], place: Place) -> list[LocatedPart]:
    if _role(event) is Role.META:
        return []
    return action_pieces(event, place) if is_action(event) else observation_piece(event, place)


class _Site:
    """Where insertions go: their numbers, which removed events had, and the removed events' other numbers."""

    def __init__(self, values: Sequence[Any], cut: InsertionPoint, count: int) -> None:
        kept = {*cut.before, *cut.after}
        every = [(i, event.get("id")) for i, value in enumerate(values) for event in _events(value)]
        known = [(i, number) for i, number in every if isinstance(number, int)]
        removed = [number for i, number in known if i not in kept]
        free = max((number for _, number in known), default=-1) + 1
        self.numbers = (*removed[:count], *range(free, free + count - len(removed[:count])))
        self.forgotten = removed[count:]
        self.has_pairs = any(map(_is_pair, values))
        self.offset = len(cut.before)

    def condensation(self, item: Insertion) -> dict[str, Any]:
        """A condensation that forgets the removed events and puts the summary in their place."""
        args: dict[str, Any] = {"forgotten_event_ids": self.forgotten}
        if self.forgotten and self.forgotten == list(range(self.forgotten[0], self.forgotten[-1] + 1)):
            args = {"forgotten_events_start_id": self.forgotten[0], "forgotten_events_end_id": self.forgotten[-1]}
        args |= {"summary": item.text, "summary_offset": self.offset}
        return {"source": "agent", "message": "Condensation", "action": "condensation", "args": args}


def _time(transcript: Transcript, cut: InsertionPoint) -> str:
    kept = {*cut.before, *cut.after}
    removed = [i for i in range(len(transcript.records) - 1, -1, -1) if i not in kept]
    times = (transcript.messages[i].timestamp for i in (*removed, *reversed(cut.before), *cut.after))
    return next((time for time in times if time), "")


def _message_event(item: Insertion) -> dict[str, Any]:
    source = "agent" if item.role is Role.ASSISTANT else "user"
    args = {"content": item.text, "wait_for_response": False}
    return {"source": source, "message": item.text, "action": "message", "args": args}


DIALECT = OpenHands()
