"""The counter table: what one scan of the events says about every atom. The table is the state of a digest.

Every counter is a sum, a minimum or a maximum, so the tables of two parts of a transcript merge into exactly
the table of the whole: that carries knowledge from one compaction to the next, and up a hierarchy, without
reading a text twice. Positions and lengths are tokens estimated as characters / 4; a scan counts no tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import chain

from compactor_cli.digest import words
from compactor_cli.digest.atoms import Atom, AtomKind, chunks_by_line, remembered, split_urls
from compactor_cli.digest.transcript_events import Event, EventKind, ToolKind


@dataclass(slots=True, kw_only=True)
class Lines:
    """The distinct lines in order of first sight.

    ``numbers``: the place of each line in the lists next to it. ``atoms``: the rows of the table that a line
    holds, none twice. ``last``: the newest event (position in the scanned tuple) that holds it.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    atoms: list[tuple[int, ...]] = field(default_factory=list)
    last: list[int] = field(default_factory=list)

    def add(self, lines: Sequence[str], atoms: Sequence[tuple[int, ...]]) -> None:
        """Enters lines that were not there before, and their atoms."""
        start = len(self.atoms)
        self.numbers.update(zip(lines, range(start, start + len(lines)), strict=True))
        self.atoms.extend(atoms)
        self.last.extend([-1] * len(lines))

    def renumbered(self, rows: Sequence[int]) -> Lines:
        """The same lines with the rows of another table: ``rows[old]`` is the new one."""
        atoms = [tuple([rows[atom] for atom in atoms]) for atoms in self.atoms]
        return Lines(numbers=self.numbers, atoms=atoms, last=self.last)


KINDS = tuple(AtomKind)
_KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}
_BY_KIND = {
    EventKind.USER: "users",
    EventKind.ASSISTANT: "assistants",
    EventKind.CALL: "calls",
    EventKind.RESULT: "results",
    EventKind.SUMMARY: "summaries",
}
_BY_TOOL = {ToolKind.EDIT: "edits", ToolKind.COMMAND: "commands", ToolKind.READ: "reads"}
COUNTS = ("users", "assistants", "calls", "results", "summaries", "edits", "commands", "reads", "errors", "lines")
# A transcript that says more different things than this is not worth remembering what each chunk said.
_MANY = 1 << 30
_MOST_REMEMBERED = 1 << 19


@dataclass(slots=True, kw_only=True)
class Columns:
    """One counter a column, one atom a row.

    ``users`` … ``summaries``: events of that kind that hold the atom; ``edits`` … ``reads``: calls of such
    tools; ``errors``: results that are errors; ``lines``: lines, repeated ones counted each time; ``first`` and
    ``last``: tokens before the first and last event with it; ``fewest``: atoms in the event with fewest.
    """

    kinds: list[int] = field(default_factory=list)
    users: list[int] = field(default_factory=list)
    assistants: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    summaries: list[int] = field(default_factory=list)
    edits: list[int] = field(default_factory=list)
    commands: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    fewest: list[int] = field(default_factory=list)

    def items(self) -> Iterator[tuple[str, list[int]]]:
        """The columns by name, in order of definition."""
        return ((name, getattr(self, name)) for name in _names())

    def fill(self, at_tokens: int) -> None:
        """Makes the counters as long as ``kinds``, where new atoms are entered: first seen at ``at_tokens``."""
        missing = len(self.kinds) - len(self.first)
        if missing:
            for name in COUNTS:
                getattr(self, name).extend([0] * missing)
            self.first.extend([at_tokens] * missing)
            self.last.extend([at_tokens] * missing)
            self.fewest.extend([_MANY] * missing)

    def row(self, at: int) -> tuple[int, ...]:
        """The counters of one atom, in order of the columns."""
        return tuple(column[at] for _, column in self.items())


@cache
def _names() -> tuple[str, ...]:
    return tuple(item.name for item in fields(Columns))


@dataclass(slots=True, kw_only=True)
class Spoken:
    """The words of user and assistant: how often (``times``), in how many events (``events``), and in how many of
    them as a name (``names``); ``total``: how many events there were.
    """

    times: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    total: int = 0

    def add(self, text: str) -> None:
        """Counts the words of one event."""
        found = words.raw_terms(text)
        self.times.update(found)
        self.events.update(set(found))
        self.names.update(words.names(text))
        self.total += 1

    def __add__(self, newer: Spoken) -> Spoken:
        return Spoken(
            times=self.times + newer.times,
            events=self.events + newer.events,
            names=self.names + newer.names,
            total=self.total + newer.total,
        )


@dataclass(slots=True, kw_only=True)
class Table:
    """What is known about every atom and every word said.

    ``atoms``: the row of each atom. ``length_tokens``: of all events together. ``events``: how many there were.
    ``lines``: the distinct lines of the newest scan; not part of the state.
    """

    atoms: dict[str, int] = field(default_factory=dict)
    columns: Columns = field(default_factory=Columns)
    spoken: Spoken = field(default_factory=Spoken)
    length_tokens: int = 0
    events: int = 0
    lines: Lines = field(default_factory=Lines)

    def merge(self, newer: Table) -> Table:
        """The table of this part and the one after it, exactly as if both had been scanned as one."""
        merged = Table(
            atoms=dict(self.atoms),
            columns=Columns(**{name: column[:] for name, column in self.columns.items()}),
            spoken=self.spoken + newer.spoken,
            length_tokens=self.length_tokens + newer.length_tokens,
            events=self.events + newer.events,
        )
        _merge_rows(merged, newer, self.length_tokens)
        return merged


def _merge_rows(merged: Table, newer: Table, shift: int) -> None:
    atoms, columns, found = merged.atoms, merged.columns, newer.columns
    known = len(atoms)
    rows = [atoms.setdefault(atom, len(atoms)) for atom in newer.atoms]
    fresh = len(atoms) - known
    columns.kinds.extend(kind for row, kind in zip(rows, found.kinds, strict=True) if row >= known)
    columns.first.extend(first + shift for row, first in zip(rows, found.first, strict=True) if row >= known)
    for name in COUNTS:
        column = getattr(columns, name)
        column.extend([0] * fresh)
        for row, times in zip(rows, getattr(found, name), strict=True):
            column[row] += times
    columns.last.extend([0] * fresh)
    columns.fewest.extend([_MANY] * fresh)
    for row, last, fewest in zip(rows, found.last, found.fewest, strict=True):
        columns.last[row] = last + shift
        columns.fewest[row] = min(columns.fewest[row], fewest)
    merged.lines = newer.lines.renumbered(rows)


def build(events: Sequence[Event]) -> Table:
    """The table of these events, in one scan that reads every distinct line once.

    Guarantees: ``build(a).merge(build(b))`` has the counters of ``build(a + b)`` for any division of the events.
    """
    return _Scan().run(events)


class _Rows(dict[bytes, tuple[int, ...]]):
    """Chunk → rows of its atoms, worked out at first sight."""

    def __init__(self, row_of: Callable[[Atom], int]) -> None:
        super().__init__()
        self._row_of = row_of

    def __missing__(self, chunk: bytes) -> tuple[int, ...]:
        # Most chunks carry no information, and nearly all others one thing.
        atoms = remembered(chunk)
        rows = (self._row_of(atoms[0]),) if len(atoms) == 1 else tuple(map(self._row_of, atoms))
        if len(self) < _MOST_REMEMBERED:
            self[chunk] = rows
        return rows


class _Scan:
    def __init__(self) -> None:
        self.table = Table()
        self.columns = self.table.columns
        self.rows = _Rows(self._row_of)
        self.times: list[int] = []
        self.at_tokens = 0

    def run(self, events: Sequence[Event]) -> Table:
        for number, event in enumerate(events):
            self._count(event, self._read(event.text, number))
            if event.kind in (EventKind.USER, EventKind.ASSISTANT):
                self.table.spoken.add(event.text)
            self.at_tokens += len(event.text) // 4 + 1
        self._count_lines()
        self.table.length_tokens = self.at_tokens
        self.table.events = len(events)
        return self.table

    def _row_of(self, atom: Atom) -> int:
        text, kind = atom
        atoms = self.table.atoms
        row = atoms.setdefault(text, len(atoms))
        if row == len(self.columns.kinds):
            self.columns.kinds.append(_KIND_CODES[kind])
        return row

    def _read(self, text: str, event: int) -> set[int]:
        """The atoms of an event, by row; only lines that were not there before are looked into."""
        lines = self.table.lines
        stripped = list(map(str.strip, text.split("\n")))
        if new := [line for line in dict.fromkeys(stripped) if line not in lines.numbers]:
            self._enter(new)
        numbers = list(map(lines.numbers.__getitem__, stripped))
        last, times = lines.last, self.times
        for number in numbers:
            last[number] = event
            times[number] += 1
        return set(chain.from_iterable(map(lines.atoms.__getitem__, numbers)))

    def _enter(self, new: Sequence[str]) -> None:
        urls = {line: split_urls(line) for line in new if "://" in line}
        rests = [urls[line][0] if line in urls else line for line in new] if urls else new
        of_chunk = self.rows.__getitem__
        found: list[tuple[int, ...]] = []
        for line, chunks in zip(new, chunks_by_line(rests), strict=True):
            rows = tuple(chain.from_iterable(map(of_chunk, chunks)))
            if urls and line in urls:
                rows += tuple(map(self._row_of, urls[line][1]))
            found.append(rows if len(rows) < 2 or len(set(rows)) == len(rows) else tuple(dict.fromkeys(rows)))
        self.table.lines.add(new, found)
        self.times.extend([0] * len(new))

    def _count(self, event: Event, found: set[int]) -> None:
        self.columns.fill(self.at_tokens)
        columns, at, size = self.columns, self.at_tokens, len(found)
        last, fewest = columns.last, columns.fewest
        for row in found:
            last[row] = at
            if size < fewest[row]:
                fewest[row] = size
        for counter in self._counters(event):
            for row in found:
                counter[row] += 1

    def _counters(self, event: Event) -> list[list[int]]:
        names = [_BY_KIND[event.kind]]
        if event.kind is EventKind.CALL and event.tool in _BY_TOOL:
            names.append(_BY_TOOL[event.tool])
        if event.kind is EventKind.RESULT and event.is_error:
            names.append("errors")
        return [getattr(self.columns, name) for name in names]

    def _count_lines(self) -> None:
        column = self.columns.lines
        for rows, times in zip(self.table.lines.atoms, self.times, strict=True):
            for row in rows:
                column[row] += times
