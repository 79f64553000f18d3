"""Values: what each fact of a candidate is worth, in units of one atom that is sure to be used again.

Facts are numbered, since a choice compares hundreds of thousands of them: atoms by their row, pairs and
phrases by the numbers of their words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, log1p

from compactor_cli.digest import words
from compactor_cli.digest.atoms import atom_kinds
from compactor_cli.digest.candidates import Candidate
from compactor_cli.digest.events import EventKind, ToolKind
from compactor_cli.digest.facts import MOST_PAIR_CHARS, Facts
from compactor_cli.digest.salience import Scores, weights

# Chosen on real sessions that the constants were not fitted on (two thirds of them to choose, the rest to
# confirm): with names listed apart, a line is worth more for what it says about its atoms than the docs' 0.02
# for a pair and 0.3 for a phrase. Measured on the same sessions, the pairs of an atom that is likelier to be used
# again than this are no likelier to be.
PAIR_VALUE = 0.15
MOST_PAIR_CHANCE = 0.15
PAIR_WORDS = 20
PHRASE_VALUE = 0.95
TERM_VALUE = 0.5
# Pairs of atoms less likely than this are worth less than the time to count them.
_LEAST_PAIR_CHANCE = 0.03
_BITS = 21
_MOST_WORDS = (1 << _BITS) - 1
# Rows, pairs, terms and phrases share one space of numbers: rows first, the others above and below.
_PAIRS = 1 << 44
_TERMS = 1 << 43
_SPEAKERS = ("U", "A", "Cbash", "Cedit", "R")
_EDIT, _RESULT = 3, 4


class _Numbers(dict[str, int]):
    """Word → number, in order of first sight; words beyond the last number share it.

    ``telling``: the words that can make a pair. ``terms``: what the words are worth that carry meaning, where
    there are any that do by ``weights``.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        super().__init__()
        self.telling: set[int] = set()
        self.terms: dict[int, float] = {}
        self._weights = weights

    def __missing__(self, word: str) -> int:
        number = self[word] = min(len(self), _MOST_WORDS)
        if words.is_near(word):
            self.telling.add(number)
        if self._weights and words.is_term(word):
            self.terms[number] = TERM_VALUE * self._weights.get(word, 0.0)
        return number


class _Chances(dict[tuple[int, int, int], float]):
    """How often, by whom and when last a phrase was said → what it is worth."""

    def __init__(self, length_tokens: int) -> None:
        super().__init__()
        self._length_tokens = length_tokens

    def __missing__(self, told: tuple[int, int, int]) -> float:
        value = self[told] = PHRASE_VALUE * _chance(*told, self._length_tokens)
        return value


class Valuer:
    """The values of the facts of candidates."""

    def __init__(self, scores: Scores) -> None:
        self.scores = scores
        self.numbers = _Numbers(scores.terms)
        self.counts: dict[int, tuple[int, int, int]] = {}
        self.chances = _Chances(max(1, scores.table.length_tokens))

    def facts(self, candidates: Sequence[Candidate]) -> list[dict[int, float]]:
        """Fact → value for each candidate."""
        read = [list(map(self.numbers.__getitem__, words.words(candidate.text))) for candidate in candidates]
        phrases = list(map(_phrases, read))
        for candidate, found in zip(candidates, phrases, strict=True):
            self._count(candidate, found)
        return [self._facts(*each) for each in zip(candidates, read, phrases, strict=True)]

    def of_name(self, row: int) -> dict[int, float]:
        """The one fact that an atom alone tells."""
        return {row: self.scores.rows[row]}

    def known(self, facts: Facts) -> set[int]:
        """The numbers of facts that are shown already."""
        rows, numbers = self.scores.table.atoms, self.numbers
        known = {row for atom in facts.atoms if (row := rows.get(atom)) is not None}
        pairs = {atom: _pair(row, 0) for atom, _ in facts.pairs if (row := rows.get(atom)) is not None}
        known.update(pairs[atom] | numbers[word] for atom, word in facts.pairs if atom in pairs and word in numbers)
        known.update(_TERMS | numbers[term] for term in facts.terms if term in numbers)
        for phrase in facts.phrases:
            if all(map(numbers.__contains__, phrase)):
                known.update(_phrases([numbers[word] for word in phrase]))
        return known

    def _count(self, candidate: Candidate, phrases: Iterable[int]) -> None:
        counts, flag, at = self.counts, 1 << _speaker(candidate), max(0, candidate.at_tokens)
        once = (1, flag, at)
        for phrase in phrases:
            if phrase in counts:
                times, flags, last = counts[phrase]
                counts[phrase] = (times + 1, flags | flag, at if at > last else last)
            else:
                counts[phrase] = once

    def _facts(self, candidate: Candidate, numbers: Iterable[int], phrases: Iterable[int]) -> dict[int, float]:
        text, chances, counts = candidate.text, self.chances, self.counts
        facts = {phrase: chances[counts[phrase]] for phrase in phrases}
        near: list[int] | None = None if len(text) <= MOST_PAIR_CHARS else []
        p = self.scores.rows
        for row in self._rows(text):
            facts[row] = p[row]
            if p[row] >= _LEAST_PAIR_CHANCE:
                if near is None:
                    near = self._near(numbers)
                pair = _pair(row, 0)
                value = PAIR_VALUE * min(p[row], MOST_PAIR_CHANCE)
                for number in near:
                    facts[pair | number] = value
        if self.scores.terms:
            terms = self.numbers.terms
            said = numbers if text.isascii() else map(self.numbers.__getitem__, words.raw_terms(text))
            facts.update((_TERMS | number, terms[number]) for number in said if number in terms)
        return facts

    def _rows(self, text: str) -> Sequence[int]:
        """The atoms of a text; those of a whole line are known from the scan."""
        lines = self.scores.table.lines
        number = lines.numbers.get(text)
        if number is not None:
            return lines.atoms[number]
        rows = self.scores.table.atoms
        return [row for atom in atom_kinds(text) if (row := rows.get(atom)) is not None]

    def _near(self, numbers: Iterable[int]) -> list[int]:
        telling = self.numbers.telling
        return [number for number in dict.fromkeys(numbers) if number in telling][:PAIR_WORDS]


def _pair(row: int, word: int) -> int:
    return _PAIRS | row << _BITS | word


def _phrases(numbers: Sequence[int]) -> Iterable[int]:
    """Three words in a row as one number below zero."""
    return [
        -1 - (first << 2 * _BITS | second << _BITS | third)
        for first, second, third in zip(numbers, numbers[1:], numbers[2:], strict=False)
    ]


def _speaker(candidate: Candidate) -> int:
    if candidate.kind is EventKind.CALL:
        return _EDIT if candidate.tool is ToolKind.EDIT else _SPEAKERS.index("Cbash")
    return _RESULT if candidate.kind is EventKind.RESULT else 0 if candidate.kind is EventKind.USER else 1


def _chance(times: int, flags: int, last: int, length_tokens: int) -> float:
    w = weights("phrase_salience")
    logit = w["intercept"] + w["logn"] * log(times)
    logit += sum(w[name] for bit, name in enumerate(_SPEAKERS) if flags >> bit & 1)
    logit += w["rec"] * last / length_tokens + w["lsince"] * log1p(max(0, length_tokens - last) / 1000)
    return 1.0 / (1.0 + exp(-logit))
