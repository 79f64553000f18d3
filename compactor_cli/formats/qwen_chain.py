"""The chain in a Qwen Code session: which records are sent, and what a compression replaced.

Records of all kinds link to each other by ``parentUuid``; sent is the chain from the last record to its root. A
``chat_compression`` on it replaces all before it by its ``compressedHistory``. Observed with Qwen Code 0.24.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.formats.contents import string
from compactor_cli.formats.copies import matched
from compactor_cli.formats.located_parts import at

Value = Mapping[str, Any]

MESSAGE_TYPES = ("user", "assistant", "tool_result")


class Chain:
    """The records of one session. ``sent`` are those on the chain, ``boundary`` the last compression on it (-1 if
    there is none), ``copies`` what of its history stands in records before it, by the number in the history."""

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.index: dict[str, list[int]] = {}
        for i, value in enumerate(values):
            if key := string(value.get("uuid")):
                self.index.setdefault(key, []).append(i)
        self.sent = self._sent()
        marks = [i for i in self.sent if is_compression(values[i])]
        self.boundary = marks[-1] if marks else -1
        self.copies = self._copies() if marks else {}

    def parent(self, i: int) -> int | None:
        """The (last) record that this one links to; None for a root and where it is missing."""
        found = self.index.get(string(self.values[i].get("parentUuid")))
        return found[-1] if found else None

    def ancestors(self, i: int) -> Iterator[int]:
        """The record itself, then what it links to, up to a root, a missing parent or a circle."""
        seen: set[int] = set()
        at_: int | None = i
        while at_ is not None and at_ not in seen:
            seen.add(at_)
            yield at_
            at_ = self.parent(at_)

    def superseded(self) -> frozenset[int]:
        """What is next to the chain, and on it what the last compression replaced and does not repeat."""
        conversation = {i for i, value in enumerate(self.values) if is_of_conversation(value) or is_compression(value)}
        before = {i for i in self.sent if i < self.boundary} - set(self.copies.values())
        return frozenset((conversation - set(self.sent)) | (conversation & before))

    def _sent(self) -> tuple[int, ...]:
        """All records if the chain breaks off at a missing parent: it is then not known what the client shows."""
        with_id = [i for i, value in enumerate(self.values) if string(value.get("uuid"))]
        if not with_id:
            return ()
        path = list(self.ancestors(with_id[-1]))
        if string(self.values[path[-1]].get("parentUuid")):
            return tuple(with_id)
        # Pieces of one record have one uuid.
        whole = {j for i in path for j in self.index[string(self.values[i].get("uuid"))]}
        return tuple(sorted(whole))

    def _copies(self) -> dict[int, int]:
        before = (i for i in self.sent if i < self.boundary and is_of_conversation(self.values[i]))
        held = [(i, _key(self.values[i]["message"])) for i in before]
        found = matched([_key(content) for content in history(self.values[self.boundary])], held)
        return {number: i for number, i in enumerate(found) if i >= 0}


def is_of_conversation(value: Value) -> bool:
    """Whether a record is a message."""
    return value.get("type") in MESSAGE_TYPES and isinstance(at(value, ("message", "parts")), list)


def is_compression(value: Value) -> bool:
    """Whether a client takes this for a compaction."""
    has_history = isinstance(at(value, ("systemPayload", "compressedHistory")), list)
    return value.get("type") == "system" and value.get("subtype") == "chat_compression" and has_history


def history(value: Value) -> tuple[Value, ...]:
    """The contents of a compression."""
    contents = at(value, ("systemPayload", "compressedHistory"))
    return tuple(item for item in contents if isinstance(item, dict)) if isinstance(contents, list) else ()


def _key(content: Value) -> str:
    return json.dumps({"role": content.get("role"), "parts": content.get("parts")}, sort_keys=True)
