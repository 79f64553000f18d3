"""Retrieval: whether the lines of a summary can be found again by what the future asks.

BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the
usual constants.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter as Tally
from collections.abc import Iterable, Sequence

from compactor_cli.evaluate.measures import Share, Use
from compactor_cli.evaluate.views import SummaryView, words

TOP = 3
K1 = 1.2
B = 0.75


class Index:
    """Lines that can be searched by words. Equal scores rank in the order of the lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        counts = [Tally(words(line)) for line in lines]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / len(lines) if lines else 1.0
        self._norms = [K1 * (1 - B + B * length / (mean or 1.0)) for length in lengths]
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for i, count in enumerate(counts):
            for word, number in count.items():
                self._postings.setdefault(word, []).append((i, number))

    def top(self, query: Iterable[str], number: int = TOP) -> list[int]:
        """The best lines for these words; lines that hold none of them are never found."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(query):
            postings = self._postings.get(word, [])
            idf = math.log(1 + (len(self._norms) - len(postings) + 0.5) / (len(postings) + 0.5))
            for i, count in postings:
                scores[i] = scores.get(i, 0.0) + idf * count * (K1 + 1) / (count + self._norms[i])
        return heapq.nsmallest(number, scores, key=lambda i: (-scores[i], i))


def retrieval(uses: Iterable[Use], summary: SummaryView) -> Share:
    """Share of the used atoms that stand in the three lines nearest to the future line, the atom left out of it."""
    uses = tuple(use for use in uses if _query(use))
    index = Index(summary.short_lines)
    holders = {atom: set(lines) for atom, lines in summary.by_atom.items()}
    kept = sum(
        any(summary.short_lines[i] in holders[use.atom] for i in index.top(_query(use)))
        for use in uses
        if use.atom in holders
    )
    return Share(kept=kept, total=len(uses))


def _query(use: Use) -> list[str]:
    return words(use.line.replace(use.atom, " "))
