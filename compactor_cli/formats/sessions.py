"""What session files have in common: records that link to their parents, times, boundaries that repeat records.

Observed with the clients themselves; the formats' documentation lists the runs.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from compactor_cli.formats.base import Insertion, InsertionPoint
from compactor_cli.formats.contents import string
from compactor_cli.formats.jsontext import parse
from compactor_cli.formats.located import RecordDialect, at
from compactor_cli.model.transcript import Message, Record, Transcript

Value = Mapping[str, Any]
EPOCH = "1970-01-01T00:00:00.000Z"


class ParentTree:
    """Records that name their parent by its id. ``index`` has the record of each id, the last of several.

    ``keys``: where a record has its id and its parent's.
    """

    keys = ("uuid", "parentUuid")

    def __init__(self, values: Sequence[Value], keys: tuple[str, str] | None = None) -> None:
        self.keys = keys or self.keys
        self.values = values
        self.index = {own: i for i in range(len(values)) if (own := self.id(i))}

    def id(self, i: int | None) -> str:
        """The id of a record; empty where it has none, and for no record."""
        return "" if i is None else string(self.values[i].get(self.keys[0]))

    def parent_id(self, i: int | None) -> str:
        """The id that a record names as its parent's; empty for a root, and for no record."""
        return "" if i is None else string(self.values[i].get(self.keys[1]))

    def parent(self, i: int) -> int | None:
        """The record that this one links to; None for a root and where it is missing."""
        return self.index.get(self.parent_id(i))

    def ancestors(self, i: int | None) -> Iterator[int]:
        """The record itself, then what it links to, up to a root, a missing parent or a circle."""
        seen: set[int] = set()
        while i is not None and i not in seen:
            seen.add(i)
            yield i
            i = self.parent(i)

    def breaks_off(self, i: int) -> int | None:
        """The oldest ancestor of a record if it names a parent that is not there."""
        *_, oldest = self.ancestors(i)
        return oldest if self.parent_id(oldest) else None

    def holes(self, chain: Sequence[int], staying: Collection[int]) -> Iterator[tuple[str, str]]:
        """The ids of removed records between staying ones of a chain (newest first), with the id above each."""
        kept = [at for at, i in enumerate(chain) if i in staying]
        for below, above in pairwise(kept):
            if above > below + 1:
                yield self.parent_id(chain[below]), self.id(chain[above])


class LinkedSite:
    """Where insertions go among records that link to their parents.

    ``chain``: the tail's newest record and what it links to, up to the root, removed records among them. ``taken``: the
    id of the removed record that the tail links to, which the last insertion takes over; empty where there is none.
    """

    def __init__(self, transcript: Transcript, cut: InsertionPoint, tree: ParentTree, newest: int | None) -> None:
        self.transcript = transcript
        self.cut = cut
        self._links = tree
        self.after = frozenset(cut.after)
        self.chain = tuple(tree.ancestors(newest))
        top = next((i for i in reversed(self.chain) if i in self.after), None)
        parent = tree.parent_id(top)
        self.taken = "" if tree.index.get(parent, -1) in cut.kept else parent
        # That of the last removed record: clients may take the newest record for the end of the chain.
        self.timestamp = insertion_time(tree.values, cut)

    def later(self, milliseconds: int) -> str:
        """The time these milliseconds after the newest of the session."""
        return later(newest_time(self._links.values), milliseconds)

    def head_id(self, head: Sequence[int]) -> str:
        """The id of the kept record above the removed ones, else of the last of these; empty without a head."""
        if not head:
            return ""
        before, above = set(self.cut.before), self._links.ancestors(self._links.index.get(self.taken))
        return self._links.id(next((i for i in above if i in before), head[-1]))


class SessionDialect(RecordDialect):
    """What most dialects of session files answer."""

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """None: nothing that stays repeats messages elsewhere."""
        return frozenset()

    def counted_tokens(self, value: Value) -> int:
        """The size of the conversation that this record has for the client; 0 for a record without a counter."""
        return 0

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """The last record with a counter."""
        for i in reversed(staying):
            value = records[i].value
            if isinstance(value, dict) and (size := self.counted_tokens(value)):
                return {i: size}
        return {}

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The record as it is: it has no counter."""
        return record.raw


def is_shown(message: Message) -> bool:
    """Whether a client sends this message."""
    return not message.is_meta and not message.superseded


def derived_uuid(seed: str, what: object) -> str:
    """A UUID for something new in a transcript, the same in every run; ``seed`` is the transcript's hash."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed} {what}"))


def derived_hex(seed: str, what: object, digits: int) -> str:
    """As many hex digits for something new, the same in every run."""
    return hashlib.sha256(f"{seed} {what}".encode()).hexdigest()[:digits]


def derived_uuids(transcript: Transcript, insertions: Sequence[Insertion]) -> list[str]:
    """A UUID for each insertion."""
    return [derived_uuid(transcript.sha256, f"{i} {item.text}") for i, item in enumerate(insertions)]


def parsed(transcript: Transcript) -> list[Value]:
    """The full values of the records, to be written again; an empty object in place of any other value."""
    return [parse(record.raw) if isinstance(record.value, dict) else {} for record in transcript.records]


def covered(cut: InsertionPoint, count: int) -> list[int]:
    """The removed records before the tail, the newest first; ``count``: of how many records."""
    before = set(cut.before)
    return [i for i in reversed(range(cut.tail_start(count))) if i not in before]


def insertion_time(values: Sequence[Value], cut: InsertionPoint) -> str:
    """The time of the last removed record before the tail that has one, else of a kept one near it."""
    order = (*covered(cut, len(values)), *reversed(cut.before), *cut.after)
    return next(filter(None, (string(values[i].get("timestamp")) for i in order)), EPOCH)


def usage_of(value: Value) -> Mapping[str, Any]:
    """The ``usage`` of an answer; an empty one where there is none."""
    usage = at(value, ("message", "usage"))
    return usage if isinstance(usage, dict) else {}


def time_near(transcript: Transcript, cut: InsertionPoint) -> str:
    """The time of the last removed message that has one, else of a kept one; empty where none has."""
    kept = cut.kept
    removed = (i for i in reversed(range(len(transcript.records))) if i not in kept)
    times = (transcript.messages[i].timestamp for i in (*removed, *reversed(cut.before), *cut.after))
    return next(filter(None, times), "")


def newest_time(values: Sequence[Value]) -> str:
    """The latest time in a session; empty where it has none."""
    return max((string(value.get("timestamp")) for value in values), default="")


def later(timestamp: str, milliseconds: int) -> str:
    """An ISO 8601 time moved by milliseconds, in UTC; the text itself if it is not a time."""
    try:
        moment = datetime.fromisoformat(timestamp) + timedelta(milliseconds=milliseconds)
    except (ValueError, OverflowError):
        return timestamp
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def matched(keys: Sequence[str], held: Sequence[tuple[int, str]]) -> tuple[int, ...]:
    """For each item of a boundary, by its key, the record before it that says the same; -1 where none does.

    What stands after the last item of the boundary's own is the tail and is looked for from the end, the rest
    from the start: words like "Done." may come again and again. Each record is matched once.
    """
    places: dict[str, deque[int]] = {}
    for i, key in held:
        places.setdefault(key, deque()).append(i)
    own = [n for n, key in enumerate(keys) if key not in places]
    tail_start = own[-1] + 1 if own else len(keys)
    found = [-1] * len(keys)
    for n in range(len(keys) - 1, tail_start - 1, -1):
        if places[keys[n]]:
            found[n] = places[keys[n]].pop()
    for n in range(tail_start):
        if places.get(keys[n]):
            found[n] = places[keys[n]].popleft()
    return tuple(found)
