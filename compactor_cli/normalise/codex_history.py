"""What a Codex client sends of a rollout with compactions, and how a compaction is written.

On resuming, the newest valid ``compacted`` record is the base: its ``replacement_history`` instead of all
items before it, then the items behind it. Without a ``replacement_history`` the client rebuilds the user's
messages. Observed with Codex CLI 0.64 to 0.169; 0.45 knows the latter only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.core.transcript import Part, PreviousSummary, Role, Text, Transcript
from compactor_cli.normalise.base import Cut, Insertion
from compactor_cli.normalise.codex_items import (
    ITEM_TYPES,
    Item,
    is_context,
    is_opaque,
    item_parts,
    item_role,
    item_type,
)
from compactor_cli.normalise.contents import string
from compactor_cli.normalise.jsontext import dump, parse
from compactor_cli.normalise.previous import summary_of

Value = Mapping[str, Any]

# Clients know a summary by this opening and replace it at the next compaction; without it, it stays for ever.
PREFIX = (
    "Another language model started to solve this problem and produced a summary of its thinking process. You also"
    " have access to the state of the tools that were used by that language model. Use this to build on the work"
    " that has already been done and avoid duplicating work. Here is the summary produced by the other language"
    " model, use the information in this summary to assist with your own analysis:"
)
# What the client says of an item besides the item itself: a copy may lack it.
_LABELS = frozenset({"id", "internal_chat_message_metadata_passthrough", "metadata", "phase", "status"})
_BARE_KEYS = frozenset({"timestamp", "created_at", "ordinal"})
_ENVELOPED = ("session_meta", "response_item")


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
        places: dict[str, list[int]] = {}
        for i, key in reversed(self._keys):
            if i < boundary:
                places.setdefault(key, []).append(i)
        found = (places.get(_key(item)) for item in replacement(self.values[boundary]))
        return tuple(-1 if not indices else indices.pop() for indices in found)

    def _still_sent(self, boundary: int) -> frozenset[int]:
        if not self.boundaries:
            return frozenset()
        if isinstance(_payload(self.values[boundary]).get("replacement_history"), list):
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
    items = _payload(value).get("replacement_history")
    return tuple(item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()


def _payload(value: Value) -> Mapping[str, Any]:
    payload = value.get("payload")
    return payload if isinstance(payload, dict) else {}


def _is_boundary(value: Value) -> bool:
    """Whether a client takes this for a compaction: others it skips without a word."""
    payload = _payload(value)
    if value.get("type") != "compacted" or not string(value.get("timestamp")):
        return False
    contents = (item.get("content") for item in replacement(value) if item_type(item) == "message")
    return isinstance(payload.get("message"), str) and all(isinstance(content, list) for content in contents)


def _key(item: Item) -> str:
    plain = {key: value for key, value in _proper(item).items() if key not in _LABELS and value is not None}
    return json.dumps(plain, sort_keys=True)


def _proper(item: Item) -> Item:
    """The item as it may stand in a history: a content that is no list makes clients skip the compaction."""
    bare = {key: value for key, value in item.items() if key not in _BARE_KEYS}
    if item_type(item) != "message" or isinstance(item.get("content"), list):
        return bare
    kind = "output_text" if item.get("role") == "assistant" else "input_text"
    words = "\n".join(part.text for part in item_parts(item) if isinstance(part, Text))
    return {"type": "message", "role": item.get("role"), "content": [{"type": kind, "text": words}]}


def compacted_message(history: History, boundary: int) -> tuple[PreviousSummary, tuple[Part, ...]]:
    """The summary of a boundary, and what else it says that no record before it does."""
    value = history.values[boundary]
    message = string(_payload(value).get("message"))
    items = zip(replacement(value), history.copies[boundary], strict=True)
    parts = tuple(part for item, copied in items if copied < 0 for part in item_parts(item))
    if not replacement(value):
        parts = (Text(text=message),) if message else ()
    candidates = [message, *(part.text for part in reversed(parts) if isinstance(part, Text))]
    found = (summary_of(Role.USER, (Text(text=text),)) for text in candidates)
    summary = next((summary for summary in found if summary), None)
    return summary or PreviousSummary(origin="codex", text=message), parts


def insert(transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
    """The records to be put between ``cut.before`` and ``cut.after``.

    A ``compacted`` record with the head's items, the summary and what follows it; then a copy of the last
    full ``world_state``, without which the client repeats its permissions and surroundings. Their ordinals
    are those of removed records. A rollout without envelopes gets plain items.
    """
    if not insertions:
        return ()
    values = [parse(record.raw) if isinstance(record.value, dict) else {} for record in transcript.records]
    like = transcript.records[0].raw
    timestamp = _timestamp(values, cut)
    items = [_item(item) for item in insertions]
    if not any(value.get("type") in _ENVELOPED and _payload(value) for value in values):
        return tuple(dump({"timestamp": timestamp, **item}, like) for item in items)
    kept = [_proper(item) for item in _kept_items(History(values), cut)]
    payload = {"message": _summary_text(insertions), "replacement_history": [*kept, *items]}
    lines: list[tuple[str, Any]] = [("compacted", payload)]
    if any(map(is_context, kept)):
        lines.extend(("world_state", state) for state in _world_state(values, cut))
    ordinals = _ordinals(values, cut, len(lines))
    return tuple(
        dump({"timestamp": timestamp, **ordinal, "type": kind, "payload": payload}, like)
        for (kind, payload), ordinal in zip(lines, ordinals, strict=True)
    )


def _summary_text(insertions: Sequence[Insertion]) -> str:
    return next((_prefixed(item) for item in insertions if item.is_summary), "")


def _prefixed(item: Insertion) -> str:
    return f"{PREFIX}\n{item.text}" if item.is_summary else item.text


def _item(item: Insertion) -> dict[str, Any]:
    kind = "output_text" if item.role is Role.ASSISTANT else "input_text"
    role = "developer" if item.role is Role.SYSTEM else item.role.value
    return {"type": "message", "role": role, "content": [{"type": kind, "text": _prefixed(item)}]}


def _kept_items(history: History, cut: Cut) -> Iterator[Item]:
    """The items of the head that the client still sends, and opaque summaries of removed records: they hold
    what nothing else does."""
    before = set(cut.before)
    stop = cut.after[0] if cut.after else len(history.values)
    last = history.boundaries[-1] if history.boundaries else -1
    if 0 <= last < stop:
        pairs = zip(replacement(history.values[last]), history.copies[last], strict=True)
        yield from (item for item, i in pairs if is_opaque(item) or (i in before if i >= 0 else last in before))
    for i in range(max(last + 1 if last < stop else 0, 0), stop):
        item = item_of(history.values[i])
        if item is not None and item_role(item) is not Role.META and (i in before or is_opaque(item)):
            yield item


def _world_state(values: Sequence[Value], cut: Cut) -> Iterator[Any]:
    stop = cut.after[0] if cut.after else len(values)
    states = (value for value in reversed(values[:stop]) if value.get("type") == "world_state")
    full = (value["payload"] for value in states if _payload(value).get("full") is True)
    yield from [state for state in [next(full, None)] if state is not None]


def _ordinals(values: Sequence[Value], cut: Cut, count: int) -> list[dict[str, int]]:
    """Ordinals of the last removed records, the last of them repeated if there are too few."""
    kept = {*cut.before, *cut.after}
    stop = cut.after[0] if cut.after else len(values)
    numbers = [(i, value["ordinal"]) for i, value in enumerate(values) if isinstance(value.get("ordinal"), int)]
    if not numbers:
        return [{}] * count
    removed = [number for i, number in numbers if i not in kept and i < stop]
    spare = removed[-count:] or [max(number for _, number in numbers)]
    return [{"ordinal": number} for number in (*spare, *[spare[-1]] * (count - len(spare)))]


def _timestamp(values: Sequence[Value], cut: Cut) -> str:
    kept = {*cut.before, *cut.after}
    stop = cut.after[0] if cut.after else len(values)
    covered = [i for i in range(stop - 1, -1, -1) if i not in kept]
    order = (*covered, *reversed(cut.before), *cut.after)
    stamps = (string(values[i].get("timestamp")) for i in order)
    return next((stamp for stamp in stamps if stamp), "1970-01-01T00:00:00.000Z")
