"""Salience: how likely each atom is to be used again, from its counters alone.

p = sigmoid(intercept + Σ weight × feature), logistic regression fitted on cuts of real agent sessions whose
future is known. Its constants, by feature, are in ``weights.json`` (fitted by the code in ``benchmarks/``). The fit
does not hold for conversations that name no files: there, p is replaced by log-frequency.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache, lru_cache
from heapq import nlargest
from importlib.resources import files
from itertools import chain, count, filterfalse, groupby
from math import exp, log, log1p

import orjson

from compactor_cli.digest import language
from compactor_cli.digest.atoms import Atom, AtomKind, atom_texts, chunks_by_line, remembered, split_urls
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.texts import GAP, MAX_CHARS, sentences, windowed
from compactor_cli.digest.tools import ToolKind
from compactor_cli.model.value import dataclass

# A statement that names the focus is shortened to about this many characters around the name.
_FOCUS_CHARS = 200


@dataclass(slots=True, kw_only=True)
class Lines:
    """The distinct lines, in the order in which they first occur."""

    numbers: dict[str, int] = field(default_factory=dict)  # the index of each line in the two lists below
    atoms: list[tuple[int, ...]] = field(default_factory=list)  # the rows of the atoms in the line, none twice
    last: list[int] = field(default_factory=list)  # the newest event with the line: position in the scanned events


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
_MANY = 1 << 30
# Columns of the table, which has a row for each atom:
# - ``kinds``: the position of its kind in ``KINDS``;
# - ``users`` … ``summaries``: the events of that kind with the atom; ``edits`` … ``reads``: the calls of such tools;
# - ``errors``: the results with it that are errors; ``lines``: the lines with it, repeated lines counted each time;
# - ``first``, ``last``: the tokens before the first and the last event with it;
# - ``fewest``: the number of distinct atoms in the event with it that has the fewest.
COLUMNS = ("kinds", *COUNTS, "first", "last", "fewest")
Columns = dict[str, list[int]]


@dataclass(slots=True, kw_only=True)
class Spoken:
    """Counters of the words that user and assistant wrote."""

    times: Counter[str] = field(default_factory=Counter)  # occurrences of each word
    events: Counter[str] = field(default_factory=Counter)  # events with the word
    names: Counter[str] = field(default_factory=Counter)  # events in which it is a name
    total: int = 0  # all events counted

    def add(self, text: str) -> None:
        """Count the words of one event."""
        found = language.raw_terms(text)
        self.times.update(found)
        self.events.update(set(found))
        self.names.update(language.names(text))
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
    """The counters of every atom, and of every word in messages."""

    atoms: dict[str, int] = field(default_factory=dict)  # the row of each atom
    columns: Columns = field(default_factory=lambda: {name: [] for name in COLUMNS})
    spoken: Spoken = field(default_factory=Spoken)
    length_tokens: int = 0  # of all events together, at four characters a token
    events: int = 0  # how many were scanned
    lines: Lines = field(default_factory=Lines)  # of the newest scan only; not part of the stored state

    def merge(self, newer: Table) -> Table:
        """The table of this part followed by ``newer``, with the counters that one scan of both would give."""
        merged = Table(
            atoms=dict(self.atoms),
            columns={name: column[:] for name, column in self.columns.items()},
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
    fresh = [place for place, row in enumerate(rows) if row >= known]
    columns["kinds"] += [found["kinds"][place] for place in fresh]
    columns["first"] += [found["first"][place] + shift for place in fresh]
    for name, start in (*((name, 0) for name in COUNTS), ("last", 0), ("fewest", _MANY)):
        columns[name] += [start] * len(fresh)
    for name in COUNTS:
        column = columns[name]
        for row, times in zip(rows, found[name], strict=True):
            column[row] += times
    for row, last, fewest in zip(rows, found["last"], found["fewest"], strict=True):
        columns["last"][row] = last + shift
        columns["fewest"][row] = min(columns["fewest"][row], fewest)
    lines = newer.lines
    renumbered = [tuple([rows[atom] for atom in atoms]) for atoms in lines.atoms]
    merged.lines = Lines(numbers=lines.numbers, atoms=renumbered, last=lines.last)


def build(events: Sequence[Event]) -> Table:
    """The table of these events, from one scan that reads every distinct line once.

    Guarantee: ``build(a).merge(build(b))`` has the counters of ``build(a + b)`` for any division of the events.
    """
    return _Scan().run(events)


class _Rows(dict[Atom, int]):
    """The row of each atom in a table; looking up a new atom adds it to the table."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._atoms, self._kinds = table.atoms, table.columns["kinds"]

    def __missing__(self, atom: Atom) -> int:
        row = self[atom] = self._atoms.setdefault(atom.text, len(self._atoms))
        if row == len(self._kinds):
            self._kinds.append(_KIND_CODES[atom.kind])
        return row


class _Scan:
    def __init__(self) -> None:
        self.table = Table()
        self.columns = self.table.columns
        self.rows = _Rows(self.table)
        self.times: list[int] = []
        self.at_tokens = 0

    def run(self, events: Sequence[Event]) -> Table:
        for number, event in enumerate(events):
            self._count(event, self._read(event.text, number))
            if event.kind in (EventKind.USER, EventKind.ASSISTANT):
                self.table.spoken.add(event.text)
            self.at_tokens += len(event.text) // 4 + 1
        column = self.columns["lines"]
        for rows, times in zip(self.table.lines.atoms, self.times, strict=True):
            for row in rows:
                column[row] += times
        self.table.length_tokens = self.at_tokens
        self.table.events = len(events)
        return self.table

    def _read(self, text: str, event: int) -> set[int]:
        """The rows of the atoms in an event; only lines that no earlier event had are searched for atoms."""
        lines = self.table.lines
        stripped = list(map(str.strip, text.split("\n")))
        new = list(filterfalse(lines.numbers.__contains__, dict.fromkeys(stripped)))
        is_new = len(new) == len(stripped)
        if new:
            lines.numbers.update(zip(new, count(len(lines.atoms))))
            lines.atoms += self._rows_of(new)
            lines.last += [event] * len(new)
            self.times.extend([int(is_new)] * len(new))
        if is_new:
            return set(chain.from_iterable(lines.atoms[-len(new) :]))
        last, times = lines.last, self.times
        numbers = list(map(lines.numbers.__getitem__, stripped))
        for number in numbers:
            last[number] = event
            times[number] += 1
        return set(chain.from_iterable(map(lines.atoms.__getitem__, numbers)))

    def _rows_of(self, new: Sequence[str]) -> list[tuple[int, ...]]:
        """The rows of the atoms in each of these new lines."""
        urls = {line: split_urls(line) for line in new if "://" in line}
        rests = [urls[line][0] if line in urls else line for line in new] if urls else new
        row, of_chunk, chained = self.rows.__getitem__, remembered.__getitem__, chain.from_iterable
        found = [tuple(dict.fromkeys(map(row, chained(map(of_chunk, chunks))))) for chunks in chunks_by_line(rests)]
        for place, line in enumerate(new) if urls else ():
            if line in urls:
                found[place] = tuple(dict.fromkeys((*found[place], *map(row, urls[line][1]))))
        return found

    def _count(self, event: Event, found: set[int]) -> None:
        columns, at, size = self.columns, self.at_tokens, len(found)
        if missing := len(columns["kinds"]) - len(columns["first"]):
            for name in COLUMNS[1:]:
                start = at if name in ("first", "last") else _MANY if name == "fewest" else 0
                columns[name] += [start] * missing
        last, fewest = columns["last"], columns["fewest"]
        counter = columns[_BY_KIND[event.kind]]
        for row in found:
            last[row] = at
            counter[row] += 1
            if size < fewest[row]:
                fewest[row] = size
        more = _BY_TOOL.get(event.tool, "") if event.kind is EventKind.CALL else ""
        if event.kind is EventKind.RESULT and event.is_error:
            more = "errors"
        if more:
            counter = columns[more]
            for row in found:
                counter[row] += 1


# With at least this share of paths and files among its atoms, a conversation is wholly about code (chosen, not fitted).
_CODING_SHARE = 0.03
_CODE = frozenset("py pyi go ts js tsx jsx mjs rs java kt c h cpp cc hpp rb php cs swift scala vue sh sql".split())
_DOCUMENTS = frozenset(("md", "txt", "rst", "json", "yaml", "yml", "toml"))
# The share of log-frequency in a score: the fit knows only the agents that it was made on.
FREQUENCY_SHARE = 0.05
# Added to the log-odds of an atom that holds a word of the focus: it lifts p from 0.05 to 0.5.
_FOCUS_BONUS = 3.0
# The codes of the kinds whose parts (directories, extension) are features.
FILE_KINDS = frozenset(code for code, kind in enumerate(KINDS) if kind in (AtomKind.PATH, AtomKind.FILE))


@cache
def weights(model: str) -> Mapping[str, float]:
    """The constants of a model in ``weights.json``: ``atom_salience`` or ``phrase_salience``."""
    data = orjson.loads(files("compactor_cli.digest").joinpath("weights.json").read_bytes())
    return {name: float(value) for name, value in data[model].items()}


@dataclass(slots=True, kw_only=True)
class Scores:
    """How likely each atom is to be used again."""

    table: Table
    rows: list[float]  # the score of each atom, by its row in the table: 0 to 1
    terms: Mapping[str, float] = field(default_factory=dict)  # the weight of each word; empty if it is about code
    coding: float = 1.0  # how much the conversation is about code: 0 (chat) to 1

    def of(self, atom: str) -> float:
        """The score of an atom, 0 if the table does not know it."""
        row = self.table.atoms.get(atom)
        return 0.0 if row is None else self.rows[row]

    def top(self, number: int) -> tuple[str, ...]:
        """The atoms most likely to be used again, best first."""
        atoms = list(self.table.atoms)
        best = sorted(range(len(atoms)), key=self.rows.__getitem__, reverse=True)[:number]
        return tuple(atoms[row] for row in best)


def score(table: Table, *, focus: str = "") -> Scores:
    """The scores of every atom of a table and, in chats, of every word. Atoms with words of ``focus`` score higher."""
    coding = _coding(table)
    logits = _logits(table)
    named = focus_names(focus)
    for atom, row in table.atoms.items() if named else ():
        if any(word in atom.lower() for word in named):
            logits[row] += _FOCUS_BONUS * (2 if atom in focus else 1)
    rows = [1.0 / (1.0 + exp(-max(-30.0, min(30.0, logit)))) for logit in logits]
    rows = _blended(table, rows, coding)
    return Scores(table=table, rows=rows, terms=_terms(table) if coding < 0.5 else {}, coding=coding)


def _coding(table: Table) -> float:
    """How much a conversation is about files, from 0 to 1.

    Two words with a slash between them that no call names (silver/gold, 4G/5G) are not counted as a path.
    """
    columns = table.columns
    files_seen = sum(
        calls > 0 or "." in atom or atom.count("/") != 1
        for atom, kind, calls in zip(table.atoms, columns["kinds"], columns["calls"], strict=True)
        if kind in FILE_KINDS
    )
    return min(1.0, files_seen / len(table.atoms) / _CODING_SHARE) if table.atoms else 0.0


def focus_names(focus: str) -> frozenset[str]:
    """The paths, identifiers and words of more than three letters in a focus, in lower case."""
    return frozenset((*map(str.lower, atom_texts(focus)), *(word for word in language.terms(focus) if len(word) > 3)))


def _blended(table: Table, rows: list[float], coding: float) -> list[float]:
    """The scores blended with log-frequency, the best ranking where the fit does not hold.

    Its share is ``FREQUENCY_SHARE`` in a conversation about code, and 1 in a chat.
    """
    columns = table.columns
    counts = list(map(sum, zip(*(columns[name] for name in ("users", "assistants", "calls", "results")), strict=True)))
    most = log1p(max(counts, default=1)) or 1.0
    share = FREQUENCY_SHARE * coding + 1.0 - coding
    return [(1.0 - share) * p + share * log1p(n) / most for p, n in zip(rows, counts, strict=True)]


def _terms(table: Table) -> dict[str, float]:
    """The weight of each word: (2 if mostly a name, else 1) × idf × (1 + 0.5 ln tf), scaled to at most 1."""
    spoken = table.spoken
    raw = {
        term: (2.0 if spoken.names[term] * 2 >= spoken.events[term] else 1.0)
        * log(1 + spoken.total / spoken.events[term])
        * (1 + 0.5 * log(times))
        for term, times in spoken.times.items()
        if language.is_term(term)
    }
    most = max(raw.values(), default=1.0)
    return {term: value / most for term, value in raw.items()}


def features(table: Table, atom: str) -> dict[str, float]:
    """All features of one atom, by name; the constants are fitted on these."""
    row, length = table.atoms[atom], max(1, table.length_tokens)
    columns = table.columns
    counts = tuple(columns[name][row] for name in (*COUNTS, "fewest"))
    return {
        **_of_text(atom, KINDS[columns["kinds"][row]], columns["calls"][row] > 0),
        **_of_counts(counts),
        **_of_place(columns["first"][row], columns["last"][row], length),
    }


def _logits(table: Table) -> list[float]:
    """The log-odds of each atom, by row: the sum of what its text, its counters and its positions contribute.

    The parts are cached separately, since many atoms have the same counters or positions.
    """
    intercept, columns = weights("atom_salience")["intercept"], table.columns
    worded = (
        _text_says(atom, kind, calls > 0)
        if kind in FILE_KINDS
        else _shape_says(kind, len(atom), "test" in atom or "spec" in atom)
        for atom, kind, calls in zip(table.atoms, columns["kinds"], columns["calls"], strict=True)
    )
    counted = map(_counts_say, zip(*(columns[name] for name in (*COUNTS, "fewest")), strict=True))
    length = max(1, table.length_tokens)
    place_says = cache(lambda first, last: _dot(_of_place(first, last, length)))
    placed = map(place_says, columns["first"], columns["last"])
    return [intercept + a + b + c for a, b, c in zip(worded, counted, placed, strict=True)]


# Cached across transcripts: those of a batch share most of their file names and most combinations of counters.
@lru_cache(maxsize=1 << 14)
def _text_says(atom: str, kind: int, is_called: bool) -> float:
    return _dot(_of_text(atom, KINDS[kind], is_called))


@lru_cache(maxsize=1 << 14)
def _shape_says(kind: int, chars: int, is_testlike: bool) -> float:
    return _dot(_of_shape(KINDS[kind], chars, is_testlike))


@lru_cache(maxsize=1 << 14)
def _counts_say(counts: tuple[int, ...]) -> float:
    return _dot(_of_counts(counts))


def _dot(values: Mapping[str, float]) -> float:
    w = weights("atom_salience")
    return sum([w[name] * value for name, value in values.items()])


def _of_text(atom: str, kind: AtomKind, is_called: bool) -> dict[str, float]:
    """The features of an atom's text: its kind and length, and those of paths and extensions."""
    found = _of_shape(kind, len(atom), "test" in atom or "spec" in atom)
    if kind is AtomKind.PATH:
        found |= _of_path(atom, is_called)
    if kind is AtomKind.PATH or kind is AtomKind.FILE:
        extension = atom.rpartition(".")[2]
        if extension in _CODE or extension in _DOCUMENTS:
            found["code" if extension in _CODE else "doc"] = 1.0
    return found


def _of_shape(kind: AtomKind, chars: int, is_testlike: bool) -> dict[str, float]:
    return {
        f"k_{kind.value}": 1.0,
        "len": min(chars, 80) / 20,
        "tok": log1p(chars / 3),
        "testlike": 1.0 if is_testlike else 0.0,
    }


def _of_path(path: str, is_called: bool) -> dict[str, float]:
    """The features of a path. ``wordy``: two words with a slash between them, as in prose, that no call named."""
    depth = path.count("/")
    is_plain = depth == 1 and path.replace("/", "").isalpha() and path[0] != "/"
    return {
        "depth": depth,
        "noext": 0.0 if "." in path.rpartition("/")[2] else 1.0,
        "wordy": 1.0 if is_plain and not is_called else 0.0,
        "relative": 1.0 if path.startswith(("./", "../")) else 0.0,
        "absolute": 1.0 if path[0] == "/" else 0.0,
    }


_COUNT_FEATURES = (
    *("nev", "nU", "nA", "nC", "nR", "nEdit", "nBash", "nRead", "inU", "inA", "inC", "inR", "inEdit", "inErr"),
    *("onlyR", "onlyA", "dens", "nlines", "callres", "ua"),
)


def _of_counts(counts: tuple[int, ...]) -> dict[str, float]:
    """The features of the counters: those in ``COUNTS``, in that order, then ``fewest``."""
    users, assistants, calls, results, summaries, edits, commands, reads, errors, lines, fewest = counts
    # The text of a summary whose table was lost was once chosen as worth keeping: it counts as the assistant's words.
    assistants += summaries
    events = users + assistants + calls + results
    logged = map(log1p, (events, users, assistants, calls, results, edits, commands, reads))
    present = (users > 0, assistants > 0, calls > 0, results > 0, edits > 0, errors > 0)
    only = (results == events, assistants == events)
    together = (calls > 0 and results > 0, users > 0 and assistants > 0)
    values = (*logged, *present, *only, log1p(fewest), log1p(lines), *together)
    return dict(zip(_COUNT_FEATURES, values, strict=True))


def _of_place(first: int, last: int, length: int) -> dict[str, float]:
    """The features of the first and last mention: as shares of the length, and as logs of thousands of tokens."""
    since, before = log1p((length - last) / 1000), log1p((length - first) / 1000)
    return {"rec": last / length, "lsince": since, "lfirst": before, "span": (last - first) / length}


def shortened(text: str, scores: Scores, focus: frozenset[str], max_chars: int = MAX_CHARS) -> str:
    """A text as its parts around the names most likely to be used again, or around the focus if it names that.

    A text stays whole up to 200 characters, and up to ``max_chars`` if it does not name the focus.
    """
    if len(text) <= _FOCUS_CHARS:
        return text
    lowered = text.lower() if focus else ""
    spots = [(at, at + len(name)) for name in sorted(focus) if (at := lowered.find(name)) >= 0]
    if spots and len(lowered) == len(text):
        return windowed(text, spots, _FOCUS_CHARS)
    if len(text) <= max_chars:
        return text
    best = nlargest(6, sorted(atom_texts(text[:20_000])), key=scores.of)
    if (". " in text or "; " in text) and (whole := _in_sentences(text[:20_000], best, max_chars)):
        return whole
    return windowed(text, [(at, at + len(atom)) for atom in best if (at := text.find(atom)) >= 0])


def _in_sentences(text: str, best: Sequence[str], max_chars: int) -> str:
    """The sentences (or clauses) of a long text with these names, in order and with gaps; empty if none fits.

    Names are in order of importance: the first claim the room. Sentences are kept whole, since half of one may say the
    opposite.
    """
    found: Sequence[str] = sentences(text)
    found = found if len(found) > 1 else re.split(r"(?<=;) ", text)
    if len(found) == 1 or not all(one in text for one in found):
        return ""
    taken: set[int] = set()
    left = max_chars
    for name in best:
        at = next((i for i, one in enumerate(found) if name in one), -1)
        if at >= 0 and at not in taken and len(found[at]) <= left:
            taken.add(at)
            left -= len(found[at]) + len(GAP)
    kept = [(one if at in taken else "") for at, one in enumerate(found)]
    runs = [" ".join(row) for is_kept, row in groupby(kept, bool) if is_kept]
    begins, ends = "" if kept[0] else GAP.lstrip(), "" if kept[-1] else GAP.rstrip()
    return f"{begins}{GAP.join(runs)}{ends}" if runs else ""
