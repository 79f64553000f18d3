"""Letta agent files (``.af``): ``messages`` of an agent, alone or among the ``agents`` of a file.

What the model is shown are the messages in context (``in_context_message_indices``, ``in_context_message_ids``);
the list is brought in line with the messages that stay. Files from before are OpenAI messages next to the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath, objects, of_words
from compactor_cli.formats.contents import string
from compactor_cli.formats.jsontext import dumped, with_key
from compactor_cli.formats.located import RecordDialect, at, first_string
from compactor_cli.formats.sessions import derived_hex
from compactor_cli.model.transcript import Message, PreviousSummary, Record, Role, Transcript

_INDICES, _IDS = "in_context_message_indices", "in_context_message_ids"
_ROW_KEYS = (_INDICES, _IDS, "messages_total")
_OWN_KEYS = frozenset({"tool_returns", "group_id"})
_KEPT_NULL = ("tool_call_id", "name")
_EMPTY_LISTS = ("tool_calls", "tool_returns")
_COPIED = ("created_at", "updated_at", "date", "group_id", "model", "agent_id", "type")
_WRITTEN_KEYS = frozenset({"role", "content", "id", *_KEPT_NULL, *_EMPTY_LISTS, *_COPIED})
# How Letta's own summary begins, within the JSON that such messages hold.
_NATIVE = "The following is a summary of the previous"


class Letta(RecordDialect):
    """The dialect of Letta's agent files."""

    name = "letta"
    title = "Letta agent file"
    holds = of_words("chat errors times tools model metadata".split())

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of an agent."""
        is_agent = isinstance(value, dict) and any(key in value for key in _ROW_KEYS)
        return chat.array_at(value, (("messages",),)) if is_agent else None

    def score(self, value: Any) -> int:
        """3 for an agent, and for a message with ``tool_returns`` and a group; 2 for one of them."""
        if not chat.is_chat(value):
            return 3 if self.array_path(value) is not None else 0
        return 3 if value.keys() >= _OWN_KEYS else 2 * (not _OWN_KEYS.isdisjoint(value))

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what is not in context is ``superseded``."""
        shown = _in_context(records, row)
        messages = []
        for i, record in enumerate(records):
            message = replace(chat.read(record.value), timestamp=string(at(record.value, ("created_at",))))
            if message.role is Role.USER and not message.summary and _NATIVE in message.text:
                message = replace(message, summary=PreviousSummary(origin="letta", text=message.text))
            if i not in shown and not message.is_meta:
                message = replace(message, superseded=True)
            messages.append(message)
        return tuple(messages)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the agent is configured with, else the last message's."""
        messages = (at(record.value, ("model",)) for record in reversed(records))
        names = (at(row, ("llm_config", "model")), at(row, ("model",)), *messages)
        return first_string(names)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with all keys of their neighbours: the importer wants them."""
        values = objects(transcript.records)
        near: Mapping[str, Any] = next((values[i] for i in cut.near if values[i]), {})
        has_blocks, messages = isinstance(near.get("content"), list), []
        for item in insertions:
            message: dict[str, Any] = {"role": "", "content": "", **near}
            message["role"] = item.role.value
            message["content"] = [{"type": "text", "text": item.text}] if has_blocks else item.text
            empty = dict.fromkeys(_KEPT_NULL) | {key: [] for key in _EMPTY_LISTS}
            empty["id"] = f"message-{derived_hex(transcript.sha256, item.text, 32)}"
            message |= {key: value for key, value in empty.items() if key in near}
            messages.append({key: value for key, value in message.items() if key in _WRITTEN_KEYS})
        return dumped(transcript, messages)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """The list of messages in context with the new ones in it and the removed ones out of it."""
        if not isinstance(source.row, dict):
            return composed
        shown = _in_context(source.records, source.row)
        hidden = {record.raw for i, record in enumerate(source.records) if i not in shown}
        staying = [i for i, record in enumerate(composed.records) if record.raw not in hidden]
        lists: dict[str, Any] = {_INDICES: staying, "messages_total": len(composed.records)}
        lists[_IDS] = [string(at(composed.records[i].value, ("id",))) for i in staying]
        frame, row = composed.frame, dict(source.row)
        for key in (key for key in lists if key in row):
            frame = with_key(frame, key, lists[key])
            row[key] = lists[key]
        return replace(composed, frame=frame, row=row)


def _in_context(records: Sequence[Record], row: Any) -> frozenset[int]:
    """The indices of the messages that the model is shown; all of them where nothing says."""
    every = frozenset(range(len(records)))
    indices, ids = at(row, (_INDICES,)), at(row, (_IDS,))
    if isinstance(indices, list) and indices:
        return every & frozenset(index for index in indices if isinstance(index, int))
    if isinstance(ids, list) and ids:
        wanted = {own_id for own_id in ids if isinstance(own_id, str)}
        return frozenset(i for i, record in enumerate(records) if string(at(record.value, ("id",))) in wanted) or every
    return every


DIALECT = Letta(chat.pieces)
