"""Retrieval: whether the lines of a summary can be found again by what the future asks (BM25)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from compactor_cli.evaluate.measures import Share, Use
from compactor_cli.evaluate.text_views import SummaryView, words
from compactor_cli.llm.bm25 import Index

TOP = 3


class LineIndex:
    """Lines that can be searched by words. Equal scores rank in the order of the lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._index = Index([words(line) for line in lines])

    def top(self, query: Iterable[str], number: int = TOP) -> list[int]:
        """The best lines for these words; lines that hold none of them are never found."""
        scores = self._index.scores(query)
        return heapq.nsmallest(number, scores, key=lambda i: (-scores[i], i))


def retrieval(uses: Iterable[Use], summary: SummaryView) -> Share:
    """Share of the used atoms that stand in the three lines nearest to the future line, the atom left out of it."""
    uses = tuple(use for use in uses if _query(use))
    index = LineIndex(summary.short_lines)
    holders = {atom: set(lines) for atom, lines in summary.by_atom.items()}
    kept = sum(
        any(summary.short_lines[i] in holders[use.atom] for i in index.top(_query(use)))
        for use in uses
        if use.atom in holders
    )
    return Share(kept=kept, total=len(uses))


def _query(use: Use) -> list[str]:
    return words(use.line.replace(use.atom, " "))
