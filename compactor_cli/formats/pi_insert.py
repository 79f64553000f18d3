"""Writes a summary into a pi session: a ``compaction`` entry, in place of removed entries or after all others.

Observed with pi 0.73: the client goes by the ``usage`` of the last answer, unless a compaction is younger.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from compactor_cli.formats.base import Insertion, InsertionPoint
from compactor_cli.formats.contents import string
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.pi_path import Path, Value, path_of
from compactor_cli.formats.times import later
from compactor_cli.model.transcript import Message, Role, Transcript

_SIZES = ("input", "output", "cacheRead", "cacheWrite")


def insert(transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
    """The entries to be put between ``cut.before`` and ``cut.after``; the last message has the id that the tail needs.

    Where an entry of the tail links to another removed one, an entry that carries no information has that one's id.
    """
    site = _Site(transcript, cut)
    ids = [_id(transcript, i) for i in range(len(insertions))]
    ids[-1] = site.path.free_parent(cut.before, cut.after) or ids[-1]
    parents = [site.last_head_id(), *ids[:-1]]
    times = [site.timestamp()] * len(ids)
    entries = site.entries(insertions, ids, parents, times, site.first_kept())
    return (*entries, *(site.bridge(own, parent) for own, parent in site.path.holes(cut.after)))


def append(transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
    """The entries to be put after all others, linked to the last one; the first kept entry is that of the tail."""
    site = _Site(transcript, cut)
    ids = [_id(transcript, i) for i in range(len(insertions))]
    values = site.path.values
    last = values[site.path.newest] if site.path.newest is not None else {}
    parents = [string(last.get("id")) or None, *ids[:-1]]
    newest = max((string(value.get("timestamp")) for value in values), default="")
    times = [later(newest, n) for n in range(1, len(ids) + 1)]
    return site.entries(insertions, ids, parents, times, site.first_of_tail())


def counters(path: Path, staying: Sequence[int]) -> dict[int, int]:
    """The last answer that stays, with the size that its ``usage`` tells."""
    answers = ((i, path.values[i]) for i in reversed(staying))
    sizes = ((i, size_tokens(usage_of(value))) for i, value in answers if _is_answer(value))
    return dict(islice(((i, size) for i, size in sizes if size), 1))


def recounted(value: Value, size: int) -> dict[str, Any]:
    """The answer with another size in its ``usage``; what it cost stays."""
    old = usage_of(value)
    zeros = {key: 0 for key in _SIZES if key in old}
    usage = {**old, **zeros, "input": size, **({"totalTokens": size} if "totalTokens" in old else {})}
    return {**value, "message": {**value["message"], "usage": usage}}


def usage_of(value: Value) -> Mapping[str, Any]:
    """The ``usage`` of an answer; an empty one where there is none."""
    message = value.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    return usage if isinstance(usage, dict) else {}


def size_tokens(usage: Mapping[str, Any]) -> int:
    """The tokens of a request and its answer, as the provider counted them."""
    total = usage.get("totalTokens")
    parts = (usage.get(key) for key in _SIZES)
    return total if isinstance(total, int) and total else sum(part for part in parts if isinstance(part, int))


class _Site:
    """Where the insertion goes."""

    def __init__(self, transcript: Transcript, cut: InsertionPoint) -> None:
        self.transcript = transcript
        self.cut = cut
        self.path = path_of(transcript.records)
        stop = cut.after[0] if cut.after else len(transcript.records)
        kept = set(cut.before)
        self.covered = [i for i in range(stop - 1, -1, -1) if i not in kept]
        self.shown = [i for i in cut.before if _is_shown(transcript.messages[i])]

    def entries(
        self,
        insertions: Sequence[Insertion],
        ids: Sequence[str],
        parents: Sequence[str | None],
        times: Sequence[str],
        first_kept: dict[str, Any],
    ) -> tuple[bytes, ...]:
        """The compaction, then messages."""
        return tuple(self._entries(insertions, ids, parents, times, first_kept))

    def bridge(self, own: str, parent: str) -> bytes:
        """An entry that is not sent, in the place of a removed one."""
        entry = {"type": "custom", "id": own, "parentId": parent, "timestamp": self.timestamp()}
        return dump({**entry, "customType": "compact", "data": {}}, self.transcript.records[0].raw)

    def _entries(
        self,
        insertions: Sequence[Insertion],
        ids: Sequence[str],
        parents: Sequence[str | None],
        times: Sequence[str],
        first_kept: dict[str, Any],
    ) -> Iterator[bytes]:
        like = self.transcript.records[0].raw
        for item, own, parent, time in zip(insertions, ids, parents, times, strict=True):
            envelope = {"id": own, "parentId": parent} if self.path.has_ids else {}
            entry = {**envelope, "timestamp": time}
            yield dump(
                self._compaction(item, entry, first_kept) if item.is_summary else self._message_entry(item, entry), like
            )

    def _compaction(self, item: Insertion, entry: dict[str, Any], first_kept: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "compaction",
            **entry,
            "summary": item.text,
            **first_kept,
            "tokensBefore": self._tokens_before(),
        }

    def first_kept(self) -> dict[str, Any]:
        """The first entry of the head; without a head, that of the tail, before which nothing is sent."""
        if not self.path.has_ids:
            return {"firstKeptEntryIndex": self._first_kept_index()}
        first = next(iter((*self.shown, *self._tail())), None)
        return {"firstKeptEntryId": string(self.path.values[first].get("id")) if first is not None else ""}

    def _first_kept_index(self) -> int:
        """Counted as the client counts: all lines that are objects, the compaction itself among them."""
        objects = sorted(set(self.cut.before).intersection(self.path.objects))
        return objects.index(self.shown[0]) if self.shown else len(objects) + 1

    def first_of_tail(self) -> dict[str, Any]:
        """The first entry of the tail, for a compaction after it."""
        first = next(iter(self._tail()), None)
        if self.path.has_ids:
            return {"firstKeptEntryId": string(self.path.values[first].get("id")) if first is not None else ""}
        objects = self.path.objects
        return {"firstKeptEntryIndex": objects.index(first) if first in objects else len(objects) + 1}

    def _tail(self) -> list[int]:
        return [i for i in self.cut.after if self.path.values[i].get("type") != "session"]

    def last_head_id(self) -> str | None:
        """The id of the entry that the first new one links to."""
        return self.path.attachment(self.cut.before, self.cut.after)

    def _message_entry(self, item: Insertion, entry: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": item.role.value, "content": [{"type": "text", "text": item.text}]}
        if item.role is Role.ASSISTANT:
            near = [*self.cut.after, *reversed(self.cut.before), *self.covered]
            values = (self.path.values[i] for i in near)
            answers = (value["message"] for value in values if _is_answer(value))
            message |= {key: value for key, value in next(answers, {}).items() if key in ("api", "provider", "model")}
            message |= {"stopReason": "stop"}
        return {"type": "message", **entry, "message": message}

    def timestamp(self) -> str:
        """That of the last removed entry."""
        order = (*self.covered, *reversed(self.cut.before), *self.cut.after)
        stamps = (string(self.path.values[i].get("timestamp")) for i in order)
        return next((stamp for stamp in stamps if stamp), "1970-01-01T00:00:00.000Z")

    def _tokens_before(self) -> int:
        """The size of the last request before the cut, as the client itself had it."""
        answers = (self.path.values[i] for i in self.covered if _is_answer(self.path.values[i]))
        return next((size for value in answers if (size := size_tokens(usage_of(value)))), 0)


def _is_shown(message: Message) -> bool:
    return not message.is_meta and not message.superseded


def _is_answer(value: Value) -> bool:
    return isinstance(value.get("message"), dict) and value["message"].get("role") == "assistant"


def _id(transcript: Transcript, number: int) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{transcript.sha256} {number}").hex[:8]
