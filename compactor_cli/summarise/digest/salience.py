"""Salience: how likely each atom is to be used again, from its counters alone.

p = sigmoid(intercept + Σ weight × feature), logistic regression fitted on cuts of real agent sessions whose
future is known; features and constants: ``weights.json`` (fitted by the code in ``benchmarks/``). Where a
conversation names no files the fit does not hold, and p is blended with log-frequency.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import exp, log, log1p

import orjson

from compactor_cli.summarise.digest import words
from compactor_cli.summarise.digest.atoms import Kind, atom_texts
from compactor_cli.summarise.digest.table import COUNTS, KINDS, Table

# Below this share of paths and files among the atoms a conversation is not about code (chosen, not fitted).
_CODING_SHARE = 0.03
# What a word the focus names adds to the log-odds of atoms that hold it: from p = 0.05 to 0.5.
_FOCUS_BONUS = 3.0


@cache
def weights(model: str) -> Mapping[str, float]:
    """The constants of a model: ``atom_salience`` or ``phrase_salience``."""
    data = orjson.loads(files("compactor_cli.summarise.digest").joinpath("weights.json").read_bytes())
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
    rows = [1.0 / (1.0 + exp(-min(30.0, max(-30.0, logit)))) for logit in logits]
    if coding < 1.0:
        rows = _blended(table, rows, coding)
    return Scores(table=table, rows=rows, terms=_terms(table) if coding < 0.5 else {}, coding=coding)


def _coding(table: Table) -> float:
    files_seen = sum(KINDS[kind] in (Kind.PATH, Kind.FILE) for kind in table.columns.kinds)
    return min(1.0, files_seen / len(table.atoms) / _CODING_SHARE) if table.atoms else 0.0


def _focused(table: Table, focus: str) -> list[tuple[int, str]]:
    named = {atom.lower() for atom in atom_texts(focus)} | {word for word in words.terms(focus) if len(word) > 3}
    if not named:
        return []
    return [(row, atom) for atom, row in table.atoms.items() if any(word in atom.lower() for word in named)]


def _blended(table: Table, rows: list[float], coding: float) -> list[float]:
    """Scores mixed with log-frequency, the best ranking where no fitted model holds."""
    columns = table.columns
    counts = [sum(row) for row in zip(columns.users, columns.assistants, columns.calls, columns.results, strict=True)]
    most = log1p(max(counts, default=1)) or 1.0
    return [coding * p + (1.0 - coding) * log1p(n) / most for p, n in zip(rows, counts, strict=True)]


def _terms(table: Table) -> dict[str, float]:
    """Weight of each word: names and numbers 2, others 1, × idf × (1 + 0.5 ln tf), scaled to at most 1."""
    said = table.spoken
    raw = {
        term: (2.0 if said.names[term] * 2 >= said.events[term] else 1.0)
        * log(1 + said.total / said.events[term])
        * (1 + 0.5 * log(times))
        for term, times in said.times.items()
        if words.is_term(term)
    }
    most = max(raw.values(), default=1.0)
    return {term: value / most for term, value in raw.items()}


def _logits(table: Table) -> list[float]:
    w = weights("atom_salience")
    fixed = _fixed(table)
    counted = _counted(table, w)
    placed = _placed(table, w)
    return [a + b + c + w["intercept"] for a, b, c in zip(fixed, counted, placed, strict=True)]


def _fixed(table: Table) -> list[float]:
    """What the atom's text and kind say."""
    w = weights("atom_salience")
    by_kind = [w.get(f"k_{kind.value}", 0.0) for kind in KINDS]
    length, tokens, depth, testlike = w["len"] / 20, w["tok"], w["depth"], w["testlike"]
    return [
        by_kind[kind]
        + length * min(len(atom), 80)
        + tokens * log1p(len(atom) / 3)
        + depth * atom.count("/")
        + (testlike if "test" in atom or "spec" in atom else 0.0)
        for atom, kind in zip(table.atoms, table.columns.kinds, strict=True)
    ]


@cache
def _logs() -> tuple[float, ...]:
    return tuple(log1p(n) for n in range(4096))


def _log(count: int) -> float:
    return _logs()[count] if count < 4096 else log1p(count)


def _counted(table: Table, w: Mapping[str, float]) -> list[float]:
    """What the numbers of events say; most atoms share their numbers with others, so each set is read once."""
    columns = (getattr(table.columns, name) for name in (*COUNTS, "fewest"))
    known: dict[tuple[int, ...], float] = {}
    found: list[float] = []
    for key in zip(*columns, strict=True):
        value = known.get(key)
        if value is None:
            value = known[key] = _of_counts(key, w)
        found.append(value)
    return found


def _of_counts(key: tuple[int, ...], w: Mapping[str, float]) -> float:
    users, assistants, calls, results, summaries, edits, commands, reads, errors, lines, fewest = key
    # Read back from a summary that lost its table: chosen once as worth keeping, so as if said by the assistant.
    assistants += summaries
    events = users + assistants + calls + results
    features = {
        "nev": _log(events),
        "nU": _log(users),
        "nA": _log(assistants),
        "nC": _log(calls),
        "nR": _log(results),
        "nEdit": _log(edits),
        "nBash": _log(commands),
        "nRead": _log(reads),
        "inU": users > 0,
        "inA": assistants > 0,
        "inC": calls > 0,
        "inR": results > 0,
        "inEdit": edits > 0,
        "inErr": errors > 0,
        "onlyR": results == events,
        "onlyA": assistants == events,
        "dens": _log(fewest),
        "nlines": _log(lines),
        "callres": calls > 0 and results > 0,
        "ua": users > 0 and assistants > 0,
    }
    return sum(w[name] * value for name, value in features.items())


def _placed(table: Table, w: Mapping[str, float]) -> list[float]:
    """What first and last mention say."""
    length = max(1, table.length_tokens)
    recent, since, early, span = w["rec"] / length, w["lsince"], w["lfirst"], w["span"] / length
    return [
        recent * last
        + since * log1p((length - last) / 1000)
        + early * log1p((length - first) / 1000)
        + span * (last - first)
        for first, last in zip(table.columns.first, table.columns.last, strict=True)
    ]
