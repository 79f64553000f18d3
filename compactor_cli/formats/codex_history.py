"""What a Codex client sends of a rollout with compactions.

On resuming, the newest valid ``compacted`` record is the base: its ``replacement_history`` instead of all
items before it, then the items after it. Without a ``replacement_history`` the client rebuilds the user's
messages. Observed with Codex CLI 0.64 to 0.169; 0.45 knows the latter only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats.codex_items import (
    ITEM_TYPES,
    Item,
    item_parts,
    item_role,
    item_type,
)
from compactor_cli.formats.contents import string
from compactor_cli.formats.copies import matched
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.transcript import Part, PreviousSummary, Role, Text

Value = Mapping[str, Any]

# What the client says of an item besides the item itself: a copy may lack it.
_LABELS = frozenset({"id", "internal_chat_message_metadata_passthrough", "metadata", "phase", "status"})
_BARE_KEYS = frozenset({"timestamp", "created_at", "ordinal"})


class History:
    """Which records of a rollout are sent.

    ``boundaries`` are the valid ``compacted`` records; ``copies[i]`` are, for the boundary ``i``, the records
    that its items repeat, or -1 for items that no record holds; ``superseded`` are the records that are neither
    sent nor repeated.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.boundaries = tuple(i for i, value in enumerate(values) if _is_boundary(value))
        items = ((i, item_of(value)) for i, value in enumerate(values) if self.boundaries)
        self._keys = [(i, _key(item)) for i, item in items if item]
        self.copies = {i: self._copied(i) for i in self.boundaries}
        last = self.boundaries[-1] if self.boundaries else 0
        self.superseded = frozenset(range(last)) - self._still_sent(last)

    def _copied(self, boundary: int) -> tuple[int, ...]:
        held = [(i, key) for i, key in self._keys if i < boundary]
        return matched([_key(item) for item in replacement(self.values[boundary])], held)

    def _still_sent(self, boundary: int) -> frozenset[int]:
        if not self.boundaries:
            return frozenset()
        if isinstance(payload_of(self.values[boundary]).get("replacement_history"), list):
            return frozenset(self.copies[boundary])
        items = ((i, item_of(self.values[i])) for i in range(boundary))
        return frozenset(i for i, item in items if item and item_role(item) in (Role.USER, Role.SYSTEM))


def item_of(value: Value) -> Item | None:
    """The response item that a line holds, if it holds one."""
    payload = value.get("payload")
    if isinstance(payload, dict):
        return payload if value.get("type") == "response_item" else None
    return value if item_type(value) in ITEM_TYPES and value.get("type") != "response_item" else None


def replacement(value: Value) -> tuple[Item, ...]:
    """The items of a boundary's ``replacement_history``."""
    items = payload_of(value).get("replacement_history")
    return tuple(item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()


def payload_of(value: Value) -> Mapping[str, Any]:
    """The payload of an enveloped line; an empty one of any other."""
    payload = value.get("payload")
    return payload if isinstance(payload, dict) else {}


def _is_boundary(value: Value) -> bool:
    """Whether a client takes this for a compaction: others it skips without a word."""
    payload = payload_of(value)
    if value.get("type") != "compacted" or not string(value.get("timestamp")):
        return False
    contents = (item.get("content") for item in replacement(value) if item_type(item) == "message")
    return isinstance(payload.get("message"), str) and all(isinstance(content, list) for content in contents)


def _key(item: Item) -> str:
    plain = {key: value for key, value in proper(item).items() if key not in _LABELS and value is not None}
    return json.dumps(plain, sort_keys=True)


def proper(item: Item) -> Item:
    """The item as it may stand in a history: a content that is not a list makes clients skip the compaction."""
    bare = {key: value for key, value in item.items() if key not in _BARE_KEYS}
    if item_type(item) != "message" or isinstance(item.get("content"), list):
        return bare
    kind = "output_text" if item.get("role") == "assistant" else "input_text"
    words = "\n".join(part.text for part in item_parts(item) if isinstance(part, Text))
    return {"type": "message", "role": item.get("role"), "content": [{"type": kind, "text": words}]}


def compacted_message(history: History, boundary: int) -> tuple[PreviousSummary, tuple[Part, ...]]:
    """The summary of a boundary, and what else it says that no record before it does."""
    value = history.values[boundary]
    message = string(payload_of(value).get("message"))
    items = zip(replacement(value), history.copies[boundary], strict=True)
    parts = tuple(part for item, copied in items if copied < 0 for part in item_parts(item))
    if not replacement(value):
        parts = (Text(text=message),) if message else ()
    candidates = [message, *(part.text for part in reversed(parts) if isinstance(part, Text))]
    found = (summary_of(Role.USER, (Text(text=text),)) for text in candidates)
    summary = next((summary for summary in found if summary), None)
    return summary or PreviousSummary(origin="codex", text=message), parts
