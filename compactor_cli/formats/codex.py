"""Codex rollouts: ``~/.codex/sessions/Y/M/D/rollout-*.jsonl``, one ``{"timestamp", "type", "payload"}`` a line.

What a model is shown are the response items; a ``compacted`` record replaces all before it by its
``replacement_history`` (see `codex_history`). Everything else is telemetry and state. Rollouts from before
the envelope, bare items a line, are read too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from compactor_cli.formats import codex_insert
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import SESSION, Capabilities
from compactor_cli.formats.codex_history import History, compacted_message, item_of
from compactor_cli.formats.codex_items import ITEM_TYPES, item_parts, item_role, item_type, shortened_item
from compactor_cli.formats.contents import string
from compactor_cli.formats.conversation import SIGNED, Conversation
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.previous import summary_of
from compactor_cli.formats.responses_items import written
from compactor_cli.model.transcript import Message, Record, Role, Transcript

_LINE_TYPES = frozenset(
    {
        "session_meta",
        "turn_context",
        "response_item",
        "event_msg",
        "compacted",
        "world_state",
        "token_usage_record",
        "inter_agent_communication_metadata",
    }
)
# Types of items that no other dialect has.
_OWN_ITEMS = ITEM_TYPES - {"message", "tool_call", "tool_result", "compaction"}
# Types that others use too, with the keys by which they are items: what such a line says stands nowhere else.
_BARE_KEYS = {"tool_call": ("arguments", "function"), "tool_result": ("result",), "compaction": ("encrypted_content",)}
_SAID = ("content", "message")


class Codex:
    """The dialect of Codex CLI's rollout files."""

    name = "codex"
    title = "Codex rollout"
    holds = SESSION | Capabilities.SYSTEM | Capabilities.SUMMARIES
    unwritten = SIGNED | Capabilities.ERRORS

    def array_path(self, value: Any) -> JsonPath | None:
        """None: a line is a record."""
        return None

    def score(self, value: Any) -> int:
        """3 for a line of the envelope; 2 for what older rollouts hold; 1 for a message or result of their kind."""
        if not isinstance(value, dict):
            return 0
        kind = string(value.get("type"))
        if isinstance(value.get("payload"), dict):
            return 3 if kind in _LINE_TYPES else 2 if kind and "timestamp" in value else 0
        if self.starts(value) or "record_type" in value or kind in _OWN_ITEMS:
            return 2
        if kind in ("message", "Message") and item_role(value) is not Role.META:
            return 2 if isinstance(value.get("content"), list) else int(any(key in value for key in _SAID))
        keys = _BARE_KEYS.get(kind, _SAID if item_role(value) is not Role.META else ())
        return int("timestamp" in value and any(key in value for key in keys))

    def starts(self, value: Any) -> bool:
        """``session_meta``, or the first line of rollouts from before it."""
        if not isinstance(value, dict):
            return False
        is_old = "instructions" in value and "timestamp" in value and not {"type", "role", "payload"} & value.keys()
        return is_old or (value.get("type") == "session_meta" and isinstance(value.get("payload"), dict))

    def session_key(self, value: Any) -> str:
        """Empty: lines do not name their session."""
        return ""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what the last compaction replaced is ``superseded``."""
        values = [_object(record) for record in records]
        history = History(values)
        groups = _responses(values)
        return tuple(
            _message(value, history, i, group) for i, (value, group) in enumerate(zip(values, groups, strict=True))
        )

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last turn."""
        values = (record.value for record in reversed(records) if isinstance(record.value, dict))
        places = (value.get("payload") if value.get("type") == "turn_context" else value for value in values)
        return next((name for place in places if isinstance(place, dict) and (name := string(place.get("model")))), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A ``compacted`` record that repeats the head's items before the summary (see `codex_insert`)."""
        return codex_insert.insert(transcript, cut, insertions)

    @property
    def appends_head(self) -> bool:
        """True: the boundary repeats what is sent."""
        return True

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """A ``compacted`` record that repeats head and tail (see `codex_insert`)."""
        return codex_insert.append(transcript, cut, insertions, size_tokens)

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """None: nothing that stays repeats messages elsewhere."""
        return frozenset()

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """The last ``token_count`` event that tells a size."""
        sizes = ((i, codex_insert.counted_tokens(_object(records[i]))) for i in reversed(staying))
        return dict(islice(((i, size) for i, size in sizes if size), 1))

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The event with another ``last_token_usage``."""
        return dump(codex_insert.recounted(parse(record.raw), size_tokens), record.raw)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with texts replaced in its item. A ``compacted`` record is returned as it is."""
        value = parse(record.raw)
        item = item_of(value)
        if item is None:
            return record.raw
        short = shortened_item(item, texts)
        return dump({**value, "payload": short} if isinstance(value.get("payload"), dict) else short, record.raw)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """The header with what the client asks for, the model, and the response items."""
        times = conversation.times()
        start = times[0] if times else ""
        about = {"cwd": "/", "originator": "compact", "cli_version": "0.0.0"}
        head = {"id": conversation.key("session"), "timestamp": start, **about}
        lines = [{"timestamp": start, "type": "session_meta", "payload": head}]
        if conversation.model:
            lines.append(
                {"timestamp": start, "type": "turn_context", "payload": {"cwd": "/", "model": conversation.model}}
            )
        for message, time in zip(conversation.messages, times, strict=True):
            items = (_item(item, message) for item in written(message))
            lines += ({"timestamp": time, "type": "response_item", "payload": item} for item in items)
        return lines


DIALECT = Codex()


def _item(item: dict[str, Any], message: Message) -> dict[str, Any]:
    """The item as the client takes it: system prompts of others are a developer's, summaries open as its own."""
    if item.get("role") == "system":
        return {**item, "role": "developer"}
    if message.summary and item["type"] == "message":
        text = message.text.removeprefix(codex_insert.PREFIX).lstrip()
        return {**item, "content": [{"type": "input_text", "text": f"{codex_insert.PREFIX}\n{text}"}]}
    return item


def _object(record: Record) -> Mapping[str, Any]:
    return record.value if isinstance(record.value, dict) else {}


def _message(value: Mapping[str, Any], history: History, i: int, group: str) -> Message:
    timestamp = string(value.get("timestamp")) or string(value.get("created_at"))
    if i in history.boundaries:
        summary, parts = compacted_message(history, i)
        return Message(
            role=Role.USER, parts=parts, timestamp=timestamp, summary=summary, superseded=i in history.superseded
        )
    item = item_of(value)
    role = Role.META if item is None else item_role(item)
    if item is None or role is Role.META:
        return Message(role=Role.META, timestamp=timestamp)
    parts = item_parts(item)
    return Message(
        role=role,
        parts=parts,
        group=group,
        timestamp=timestamp,
        summary=summary_of(role, parts),
        superseded=i in history.superseded,
    )


def _responses(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """One name for all items of a response that holds reasoning: an API refuses it without what follows it.

    A response is a run of the assistant's items; telemetry between them is not of the run.
    """
    groups = [""] * len(values)
    run: list[int] = []
    for i, value in enumerate([*values, {"role": "user"}]):
        item = item_of(value)
        role = Role.META if item is None else item_role(item)
        if role is Role.ASSISTANT:
            run.append(i)
        elif role is not Role.META:
            if len(run) > 1 and any(_is_reasoning(values[j]) for j in run):
                for j in run:
                    groups[j] = f"response-{run[0]}"
            run = []
    return groups


def _is_reasoning(value: Mapping[str, Any]) -> bool:
    item = item_of(value)
    return item is not None and item_type(item) == "reasoning"
