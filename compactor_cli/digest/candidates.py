"""Candidates: the statements worth weighing for a summary, a few for each atom that matters, prose and commands.

They also are what is remembered beside the counter table: after a compaction the covered records are gone,
and what the next one can say about them are these lines and names.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import nlargest
from itertools import chain, islice
from typing import NamedTuple

from compactor_cli.digest import statements
from compactor_cli.digest.atoms import atom_kinds
from compactor_cli.digest.events import Event, EventKind, ToolKind
from compactor_cli.digest.labels import Labels
from compactor_cli.digest.places import Places
from compactor_cli.digest.salience import Scores
from compactor_cli.digest.worth import by_worth, gain, gains

# Lines weighed for one atom, and characters of candidates for one token of budget (docs, "Key lines").
LINES_PER_ATOM = 3
CHARS_PER_BUDGET_TOKEN = 3 * 4
# The share of those that is chosen for its atoms; the rest is the newest prose and commands.
_ATOMS_SHARE = 0.7
# Atoms that matter, for one token of budget: a line takes some twenty tokens and tells two or three.
_ATOMS_PER_TOKEN = 0.33
_LEAST_ATOMS = 200
# Names remembered, for one that matters now: what matters changes as a transcript goes on.
_WARM = 2
_MOST_LEAD_CHARS = 200
SPOKEN = (EventKind.USER, EventKind.ASSISTANT, EventKind.SUMMARY)


class Form(StrEnum):
    """What a candidate is."""

    LINE = "line"  # a statement
    NAME = "name"  # an atom alone, to stand in a list of names under its file


class Candidate(NamedTuple):
    """A statement or a name that may go into the summary; a tuple, as very many of them are made.

    ``text`` is verbatim but for gaps (see `statements.windowed`). ``event`` is its event's position, -1 for one
    remembered from an earlier round; ``place`` is where it stands in the event's text. ``lead``: the line that
    introduces the list it is an item of. ``at_tokens``: its event's position in the table's tokens.
    ``label``: the file, the command or the tool it stands under (see `labels`).
    """

    text: str
    event: int
    kind: EventKind
    form: Form = Form.LINE
    place: int = 0
    tool: ToolKind = ToolKind.OTHER
    label: str = ""
    lead: str = ""
    records: tuple[int, ...] = ()
    turn: int = 0
    at_tokens: int = 0


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates in transcript order, remembered ones first, names behind the lines of their event."""
    return sorted(candidates, key=_order)


def _order(item: Candidate) -> tuple[int, int, bool, int, str]:
    return item.event, item.at_tokens, item.form is Form.NAME, item.place, item.text


@dataclass(slots=True, kw_only=True)
class Gatherer:
    """Finds the candidates among new events and remembered ones.

    ``known``: atoms that are shown elsewhere; a line is not weighed for them.
    """

    events: Sequence[Event]
    scores: Scores
    old: Sequence[Candidate] = ()
    known: frozenset[str] = frozenset()
    labels: Labels = field(init=False)
    starts: list[int] = field(init=False)
    places: Places = field(init=False)
    warm: dict[int, float] = field(init=False, default_factory=dict)
    hot: dict[int, float] = field(init=False, default_factory=dict)
    named: dict[int, Candidate] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.labels = Labels(self.events)
        self.starts = _starts(self.events, self.scores.table.length_tokens)
        self.places = Places(self.events, self.scores.table.lines)

    def gather(self, budget_tokens: int) -> list[Candidate]:
        """The lines for a budget: about three times as much text as it holds."""
        number = max(_LEAST_ATOMS, int(budget_tokens * _ATOMS_PER_TOKEN))
        self.warm = self._best(_WARM * number)
        self.hot = dict(islice(self.warm.items(), number))
        most_chars = CHARS_PER_BUDGET_TOKEN * budget_tokens
        found: dict[str, Candidate] = {}
        left = _fill(found, self._rated(self.hot), int(most_chars * _ATOMS_SHARE))
        _fill(found, self._newest(), left + int(most_chars * (1 - _ATOMS_SHARE)))
        return in_order(found.values())

    def names(self, known: Container[int] = (), number: int = -1) -> list[Candidate]:
        """The atoms that matter most and are not ``known`` (by row), as names where they are at home."""
        self.named = self.named or dict(self._named())
        rows = [row for row in self.warm if row not in known]
        return [self.named[row] for row in rows[: len(rows) if number < 0 else number] if row in self.named]

    def _named(self) -> Iterator[tuple[int, Candidate]]:
        homes, texts = self._homes(), list(self.scores.table.atoms)
        remembered = {item.text: item for item in self.old if item.form is Form.NAME}
        for row in self.warm:
            text = texts[row]
            if not any(map(str.isalpha, text)):
                continue  # a bare number says nothing without its line
            if row in homes:
                yield row, self._candidate(homes[row], text, 0, form=Form.NAME)
            else:
                yield row, remembered.get(text) or self._homeless(row, text)

    def _homeless(self, row: int, name: str) -> Candidate:
        """A name of which only the table knows: its records are gone, and no line of them is remembered."""
        at_tokens = self.scores.table.columns.last[row]
        return Candidate(text=name, event=-1, kind=EventKind.RESULT, form=Form.NAME, at_tokens=at_tokens)

    def _best(self, number: int) -> dict[int, float]:
        """The atoms most likely to be used again that are not known already; the first of equals first."""
        rows = list(self.scores.rows)
        for atom in self.known:
            if (row := self.scores.table.atoms.get(atom)) is not None:
                rows[row] = 0.0
        best = sorted(range(len(rows)), key=rows.__getitem__, reverse=True)
        return {row: rows[row] for row in best[:number] if rows[row] > 0.0}

    def _rated(self, hot: dict[int, float]) -> Iterator[Candidate]:
        """Up to three statements for each atom that matters, by worth for their length."""
        lines, wanted = self.scores.table.lines, set(hot)
        new = zip(map(len, lines.numbers), gains(lines, hot, len(self.scores.rows)), strict=True)
        texts = list(lines.numbers)
        left = dict.fromkeys(hot, LINES_PER_ATOM)
        for order in by_worth(chain(self._old_gains(hot), new)):
            found = self.old[order] if order < len(self.old) else texts[order - len(self.old)]
            rows = self._rows(found, wanted)
            if any(left[row] > 0 for row in rows):
                for candidate in (found,) if isinstance(found, Candidate) else self._line(found, hot):
                    yield candidate
                    for row in rows:
                        left[row] -= 1

    def _old_gains(self, hot: dict[int, float]) -> Iterator[tuple[int, float]]:
        """Length and gain of what is remembered; names have none."""
        for candidate in self.old:
            is_line = candidate.form is Form.LINE
            yield len(candidate.text), gain([hot[row] for row in self._rows(candidate, hot)]) if is_line else 0.0

    def _rows(self, found: Candidate | str, wanted: Container[int | None]) -> list[int]:
        """The atoms of a remembered line, or of a distinct one, that matter."""
        table = self.scores.table
        if isinstance(found, str):
            return [row for row in table.lines.atoms[table.lines.numbers[found]] if row in wanted]
        return [row for row in map(table.atoms.get, atom_kinds(found.text)) if row is not None and row in wanted]

    def _homes(self) -> dict[int, int]:
        """Where atoms are at home: the newest event under a file's name that holds one, else the newest event."""
        homes: dict[int, int] = {}
        lines, missing = self.scores.table.lines, set(self.warm)
        ranks = [(self.labels.is_file(number), number) for number in range(len(self.events))]
        place_of = {number: place for place, (_, number) in enumerate(sorted(ranks, reverse=True))}
        for line in sorted(range(len(lines.atoms)), key=lambda line: place_of[lines.last[line]]):
            if not missing:
                break
            if not missing.isdisjoint(lines.atoms[line]):
                here = missing.intersection(lines.atoms[line])
                homes.update(dict.fromkeys(here, lines.last[line]))
                missing -= here
        return homes

    def _candidate(self, number: int, text: str, place: int, lead: str = "", form: Form = Form.LINE) -> Candidate:
        event = self.events[number]
        return Candidate(
            text=text,
            event=number,
            kind=event.kind,
            form=form,
            place=place,
            tool=event.tool,
            label=self.labels.of(number),
            lead=lead,
            records=(event.record,),
            turn=event.turn,
            at_tokens=self.starts[number],
        )

    def _newest(self) -> Iterator[Candidate]:
        """What was said and the commands that were run, newest first, remembered ones last."""
        for number in range(len(self.events) - 1, -1, -1):
            event = self.events[number]
            if _is_own(event):
                place = 0
                for raw in event.text.split("\n"):
                    if line := raw.strip():
                        yield from self._pieces(number, line, place)
                    place += len(raw) + 1
        own = (item for item in self.old if item.form is Form.LINE and _is_own(item))
        yield from sorted(own, key=lambda item: -item.at_tokens)

    def _line(self, text: str, hot: dict[int, float]) -> Iterator[Candidate]:
        """A distinct line at its newest place: the sentences of it that hold an atom that matters."""
        lines = self.scores.table.lines
        number = lines.last[lines.numbers[text]]
        pieces = list(self._pieces(number, text, self.places.of(text, number)))
        if len(pieces) < 2:
            return iter(pieces)
        rows = self.scores.table.atoms
        return (piece for piece in pieces if any(rows.get(atom) in hot for atom in atom_kinds(piece.text)))

    def _pieces(self, number: int, line: str, place: int) -> Iterator[Candidate]:
        """The statements of a line, each where it stands."""
        event = self.events[number]
        if event.kind in SPOKEN:
            lead = _lead(event.text, place) if statements.is_item(line) else ""
            at = 0
            for sentence in statements.sentences(line):
                at = max(at, line.find(sentence, at))
                if shown := self._shown(sentence):
                    yield self._candidate(number, shown, place + at, lead)
        else:
            is_call = event.kind is EventKind.CALL
            if is_call and event.tool is not ToolKind.OTHER and statements.is_setting(line):
                return
            text = statements.without_key(line) if is_call else line
            if line != event.name and (shown := self._shown(text)):
                yield self._candidate(number, shown, place + len(line) - len(text))

    def _shown(self, text: str) -> str:
        """A piece of text as it can be shown; empty if it says nothing."""
        if len(text) > statements.MOST_CHARS:
            best = nlargest(6, atom_kinds(text[:20_000]), key=self.scores.of)
            text = statements.windowed(text, [(at, at + len(atom)) for atom in best if (at := text.find(atom)) >= 0])
        return "" if statements.is_noise(text) else text.strip()


def _is_own(item: Event | Candidate) -> bool:
    """Whether somebody said it, or it is a command."""
    return item.kind in SPOKEN or (item.kind is EventKind.CALL and item.tool is ToolKind.COMMAND)


def _fill(found: dict[str, Candidate], candidates: Iterable[Candidate], left: int) -> int:
    """Enters new candidates until their characters are used up; the characters left."""
    for candidate in candidates:
        if left <= 0:
            break
        if candidate.text not in found:
            found[candidate.text] = candidate
            left -= len(candidate.text)
    return left


def _lead(text: str, place: int) -> str:
    """The line that introduces the list which the item at ``place`` belongs to."""
    for raw in reversed(text[max(0, place - 4_000) : place].split("\n")):
        line = raw.strip()
        if line and not statements.is_item(line):
            return line if line.endswith((":", "：")) and len(line) <= _MOST_LEAD_CHARS else ""
    return ""


def _starts(events: Sequence[Event], length_tokens: int) -> list[int]:
    """Where each event starts, in the tokens of a table that ends with these events."""
    sizes = [len(event.text) // 4 + 1 for event in events]
    at = length_tokens - sum(sizes)
    starts: list[int] = []
    for size in sizes:
        starts.append(at)
        at += size
    return starts
