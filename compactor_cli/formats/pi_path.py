"""The path in a pi session: which entries are sent, and what an insertion links to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from compactor_cli.formats.contents import string
from compactor_cli.model.transcript import Record

Value = Mapping[str, Any]


class Path:
    """The entries of one session; ``has_ids`` is false before version 2, where the order of lines is the path.

    ``unread`` are those on a line with another, which the client passes over: none of them is the newest entry or a
    compaction. Where others link to one, it is on their path anyway.
    """

    def __init__(self, values: Sequence[Value], unread: frozenset[int] = frozenset()) -> None:
        self.values = values
        self.unread = unread
        self.objects = [i for i, value in enumerate(values) if value and i not in unread]
        self.entries = [i for i, value in enumerate(values) if value and value.get("type") != "session"]
        self.has_ids = any("parentId" in values[i] for i in self.entries)
        self.index = {string(values[i].get("id")): i for i in self.entries if string(values[i].get("id"))}

    def parent(self, i: int) -> int | None:
        """The entry that this one links to; None for a root and where it is missing."""
        return self.index.get(string(self.values[i].get("parentId")))

    def ancestors(self, i: int) -> Iterator[int]:
        """The entry itself, then what it links to, up to a root, a missing parent or a circle."""
        seen: set[int] = set()
        at: int | None = i
        while at is not None and at not in seen:
            seen.add(at)
            yield at
            at = self.parent(at)

    @property
    def newest(self) -> int | None:
        """The last entry that the client reads."""
        return next((i for i in reversed(self.entries) if i not in self.unread), None)

    def sent(self) -> list[int]:
        """The path from the root to the last entry. All entries, if that path breaks off at a missing parent:
        it is then not known what the client shows."""
        readable = [i for i in self.entries if i not in self.unread]
        if not self.has_ids or self.newest is None:
            return readable
        path = [i for i in self.ancestors(self.newest) if not self._is_unread_compaction(i)][::-1]
        is_whole = not string(self.values[path[0]].get("parentId"))
        return path if is_whole else readable

    def _is_unread_compaction(self, i: int) -> bool:
        return i in self.unread and self.values[i].get("type") == "compaction"

    def superseded(self) -> frozenset[int]:
        """Entries off the path, and on it what the last compaction replaced."""
        path = self.sent()
        marks = [at for at, i in enumerate(path) if self.values[i].get("type") == "compaction"]
        gone = set(self.entries) - set(path)
        if marks:
            first = self._first_kept(path[: marks[-1]], self.values[path[marks[-1]]])
            gone |= set(path[:first]) | {path[at] for at in marks[:-1]}
        return frozenset(gone)

    def _first_kept(self, before: Sequence[int], compaction: Value) -> int:
        """Where on the path the kept entries start: after all of it, if the entry named is not there."""
        index = compaction.get("firstKeptEntryIndex")
        if isinstance(index, int):
            target = self.objects[index] if 0 <= index < len(self.objects) else -1
        else:
            target = self.index.get(string(compaction.get("firstKeptEntryId")), -1)
        return before.index(target) if target in before else len(before)

    def free_parent(self, before: Sequence[int], after: Sequence[int]) -> str:
        """The id of the removed entry that the tail links to, empty if it links to none."""
        kept = {*before, *after}
        top = self._top(set(after))
        parent = string(self.values[top].get("parentId")) if top is not None else ""
        return parent if self.index.get(parent, -1) not in kept else ""

    def attachment(self, before: Sequence[int], after: Sequence[int]) -> str | None:
        """The id of the kept entry above the removed ones, else of the last entry before the cut."""
        head = [i for i in before if i in set(self.entries)]
        start = self.index.get(self.free_parent(before, after))
        above = self.ancestors(start) if start is not None else iter(())
        found = next((i for i in above if i in head), head[-1] if head else None)
        return string(self.values[found].get("id")) or None if found is not None else None

    def _top(self, after: set[int]) -> int | None:
        """The first entry of the tail that is on the path."""
        return next((i for i in reversed(self._chain(after)) if i in after), None)

    def _chain(self, after: set[int]) -> tuple[int, ...]:
        """The last entry of the tail and what it links to, up to the root, removed entries among them."""
        newest_first = sorted(after.intersection(self.entries), key=lambda i: (i in self.unread, -i))
        last = next(iter(newest_first), None)
        return tuple(self.ancestors(last)) if last is not None else ()

    def holes(self, after: Sequence[int]) -> Iterator[tuple[str, str]]:
        """Ids of removed entries that lie between kept ones of the tail on the path, with the id above each."""
        staying = set(after)
        chain = self._chain(staying) if self.has_ids else ()
        kept = [at for at, i in enumerate(chain) if i in staying]
        for below, above in pairwise(kept):
            if above > below + 1:
                yield string(self.values[chain[below]].get("parentId")), string(self.values[chain[above]].get("id"))


def path_of(records: Sequence[Record]) -> Path:
    """The path of these records; a line that is not an object is an empty entry."""
    unread = (i for i in range(1, len(records)) if b"\n" not in records[i - 1].ending)
    values = [record.value if isinstance(record.value, dict) else {} for record in records]
    return Path(values, frozenset(both for i in unread for both in (i - 1, i)))
