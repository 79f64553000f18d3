"""Salience: how likely each atom is to be used again, from its counters alone.

p = sigmoid(intercept + Σ weight × feature), logistic regression fitted on cuts of real agent sessions whose
future is known; features and constants: ``weights.json`` (fitted by the code in ``benchmarks/``). Where a
conversation names no files the fit does not hold, and p is blended with log-frequency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from math import copysign, exp, log, log1p
from operator import mul

import orjson

from compactor_cli.digest import words
from compactor_cli.digest.atoms import AtomKind, atom_texts
from compactor_cli.digest.counter_table import COUNTS, KINDS, Table

# Below this share of paths and files among the atoms a conversation is not about code (chosen, not fitted).
_CODING_SHARE = 0.03
_CODE = frozenset("py pyi go ts js tsx jsx mjs rs java kt c h cpp cc hpp rb php cs swift scala vue sh sql".split())
_DOCUMENTS = frozenset(("md", "txt", "rst", "json", "yaml", "yml", "toml"))
# What log-frequency adds to a fitted score, which knows only the agents that it was fitted on.
FREQUENCY_SHARE = 0.05
# What a word the focus names adds to the log-odds of atoms that hold it: from p = 0.05 to 0.5.
_FOCUS_BONUS = 3.0
# The kinds whose parts say something, by code.
_WITH_PARTS = frozenset(code for code, kind in enumerate(KINDS) if kind in (AtomKind.PATH, AtomKind.FILE))


@cache
def weights(model: str) -> Mapping[str, float]:
    """The constants of a model: ``atom_salience`` or ``phrase_salience``."""
    data = orjson.loads(files("compactor_cli.digest").joinpath("weights.json").read_bytes())
    return {name: float(value) for name, value in data[model].items()}


@dataclass(slots=True, kw_only=True)
class Scores:
    """How likely reuse is.

    ``rows``: of each atom, by the table's rows; ``terms``: weight of each word, empty where the conversation is
    about code; ``coding`` from 0 (chat) to 1.
    """

    table: Table
    rows: list[float]
    terms: Mapping[str, float] = field(default_factory=dict)
    coding: float = 1.0

    def of(self, atom: str) -> float:
        """The score of an atom, 0 if the table does not know it."""
        row = self.table.atoms.get(atom)
        return 0.0 if row is None else self.rows[row]

    def top(self, number: int) -> tuple[str, ...]:
        """The atoms most likely to be used again, best first."""
        atoms = list(self.table.atoms)
        best = sorted(range(len(atoms)), key=lambda row: (-self.rows[row], row))[:number]
        return tuple(atoms[row] for row in best)


def score(table: Table, *, focus: str = "") -> Scores:
    """The scores of every atom (and, in chats, word) of a table. ``focus``: words whose atoms matter more."""
    coding = _coding(table)
    logits = _logits(table)
    for row, atom in _focused(table, focus):
        logits[row] += _FOCUS_BONUS * (2 if atom in focus else 1)
    rows = [1.0 / (1.0 + exp(-logit if -30.0 < logit < 30.0 else -copysign(30.0, logit))) for logit in logits]
    rows = _blended(table, rows, coding)
    return Scores(table=table, rows=rows, terms=_terms(table) if coding < 0.5 else {}, coding=coding)


def _coding(table: Table) -> float:
    files_seen = sum(map(table.columns.kinds.count, _WITH_PARTS))
    return min(1.0, files_seen / len(table.atoms) / _CODING_SHARE) if table.atoms else 0.0


def focus_names(focus: str) -> frozenset[str]:
    """What a focus names, in lower case: its paths and identifiers, and its words of more than three letters."""
    return frozenset((*map(str.lower, atom_texts(focus)), *(word for word in words.terms(focus) if len(word) > 3)))


def _focused(table: Table, focus: str) -> list[tuple[int, str]]:
    named = focus_names(focus)
    if not named:
        return []
    return [(row, atom) for atom, row in table.atoms.items() if any(word in atom.lower() for word in named)]


def _blended(table: Table, rows: list[float], coding: float) -> list[float]:
    """Scores with log-frequency, the best ranking where no fitted model holds: a little of it, in talk all."""
    columns = table.columns
    counts = [sum(row) for row in zip(columns.users, columns.assistants, columns.calls, columns.results, strict=True)]
    most = log1p(max(counts, default=1)) or 1.0
    share = FREQUENCY_SHARE * coding + 1.0 - coding
    return [(1.0 - share) * p + share * log1p(n) / most for p, n in zip(rows, counts, strict=True)]


def _terms(table: Table) -> dict[str, float]:
    """Weight of each word: names and numbers 2, others 1, × idf × (1 + 0.5 ln tf), scaled to at most 1."""
    spoken_table = table.spoken
    raw = {
        term: (2.0 if spoken_table.names[term] * 2 >= spoken_table.events[term] else 1.0)
        * log(1 + spoken_table.total / spoken_table.events[term])
        * (1 + 0.5 * log(times))
        for term, times in spoken_table.times.items()
        if words.is_term(term)
    }
    most = max(raw.values(), default=1.0)
    return {term: value / most for term, value in raw.items()}


def features(table: Table, atom: str) -> dict[str, float]:
    """All features of one atom, by name: what the constants are fitted on."""
    row, length = table.atoms[atom], max(1, table.length_tokens)
    columns = table.columns
    counts = tuple(getattr(columns, name)[row] for name in (*COUNTS, "fewest"))
    return {
        **_of_text(atom, KINDS[columns.kinds[row]], columns.calls[row] > 0),
        **dict(zip(_COUNT_FEATURES, _of_counts(counts), strict=True)),
        **dict(zip(_PLACE_FEATURES, _of_place(columns.first[row], columns.last[row], length), strict=True)),
    }


def _logits(table: Table) -> list[float]:
    intercept = weights("atom_salience")["intercept"]
    return [
        intercept + a + b + c for a, b, c in zip(_event_scores(table), _counted(table), _placed(table), strict=True)
    ]


def _event_scores(table: Table) -> list[float]:
    """What the atoms' texts say, of most kinds only by how long they are."""
    w, columns = weights("atom_salience"), table.columns
    known = _Known(lambda key: _dot(w, _of_shape(KINDS[key[0]], key[1], bool(key[2]))))
    return [
        _dot(w, _of_text(atom, KINDS[kind], calls > 0))
        if kind in _WITH_PARTS
        else known[kind, len(atom), "test" in atom or "spec" in atom]
        for atom, kind, calls in zip(table.atoms, columns.kinds, columns.calls, strict=True)
    ]


def _dot(w: Mapping[str, float], values: Mapping[str, float]) -> float:
    return sum([w[name] * value for name, value in values.items()])


def _of_text(atom: str, kind: AtomKind, is_called: bool) -> dict[str, float]:
    """What the atom's text says: its kind and length, and for a path what sort of path."""
    found = _of_shape(kind, len(atom), "test" in atom or "spec" in atom)
    if kind is AtomKind.PATH or kind is AtomKind.FILE:
        found |= _of_path(atom, is_called) if kind is AtomKind.PATH else {}
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
    """``wordy``: two words with a slash between them that no call ever named, as prose has them."""
    depth = path.count("/")
    is_plain = depth == 1 and path.replace("/", "").isalpha() and path[0] != "/"
    return {
        "depth": depth,
        "noext": 0.0 if "." in path.rpartition("/")[2] else 1.0,
        "wordy": 1.0 if is_plain and not is_called else 0.0,
        "relative": 1.0 if path.startswith(("./", "../")) else 0.0,
        "absolute": 1.0 if path[0] == "/" else 0.0,
    }


@cache
def _logs() -> tuple[float, ...]:
    return tuple(log1p(n) for n in range(4096))


def _log(count: int) -> float:
    return _logs()[count] if count < 4096 else log1p(count)


def _counted(table: Table) -> list[float]:
    """What the numbers of events say; most atoms share their numbers with others, so each set is read once."""
    columns = (getattr(table.columns, name) for name in (*COUNTS, "fewest"))
    known = _Known(_counts_say)
    return list(map(known.__getitem__, zip(*columns, strict=True)))


# Transcripts of a batch share most sets of numbers.
@lru_cache(maxsize=1 << 14)
def _counts_say(counts: tuple[int, ...]) -> float:
    spoken_table: float = sum(map(mul, _weights_of(_COUNT_FEATURES), _of_counts(counts)))
    return spoken_table


def _placed(table: Table) -> list[float]:
    """What first and last mention say; the atoms of an event share them."""
    w, length = _weights_of(_PLACE_FEATURES), max(1, table.length_tokens)
    known = _Known(lambda key: sum(map(mul, w, _of_place(key[0], key[1], length))))
    return list(map(known.__getitem__, zip(table.columns.first, table.columns.last, strict=True)))


@cache
def _weights_of(names: tuple[str, ...]) -> tuple[float, ...]:
    w = weights("atom_salience")
    return tuple(w[name] for name in names)


class _Known(dict[tuple[int, ...], float]):
    """Numbers → what they say, worked out at first sight."""

    def __init__(self, work: Callable[[tuple[int, ...]], float]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, key: tuple[int, ...]) -> float:
        value = self[key] = self._work(key)
        return value


_COUNT_FEATURES = (
    *("nev", "nU", "nA", "nC", "nR", "nEdit", "nBash", "nRead", "inU", "inA", "inC", "inR", "inEdit", "inErr"),
    *("onlyR", "onlyA", "dens", "nlines", "callres", "ua"),
)
_PLACE_FEATURES = ("rec", "lsince", "lfirst", "span")


def _of_counts(counts: tuple[int, ...]) -> tuple[float, ...]:
    """The values of ``_COUNT_FEATURES`` for the counters ``COUNTS`` and ``fewest``."""
    users, assistants, calls, results, summaries, edits, commands, reads, errors, lines, fewest = counts
    # Read back from a summary that lost its table: chosen once as worth keeping, so as if said by the assistant.
    assistants += summaries
    events = users + assistants + calls + results
    logged = map(_log, (events, users, assistants, calls, results, edits, commands, reads))
    spoken_table = (users > 0, assistants > 0, calls > 0, results > 0, edits > 0, errors > 0)
    only = (results == events, assistants == events)
    return (
        *logged,
        *spoken_table,
        *only,
        _log(fewest),
        _log(lines),
        calls > 0 and results > 0,
        users > 0 and assistants > 0,
    )


def _of_place(first: int, last: int, length: int) -> tuple[float, ...]:
    """The values of ``_PLACE_FEATURES``: what first and last mention say, in tokens and thousands of tokens."""
    since, before = log1p((length - last) / 1000), log1p((length - first) / 1000)
    return last / length, since, before, (last - first) / length
