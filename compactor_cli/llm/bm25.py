"""BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009)."""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Iterable, Sequence

# The usual constants.
K1 = 1.2
B = 0.75


class Index:
    """Documents, each a run of words, that can be searched by words."""

    def __init__(self, documents: Sequence[Iterable[str]]) -> None:
        counts = [Tally(document) for document in documents]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / len(counts) if counts else 1.0
        self._norms = [K1 * (1 - B + B * length / (mean or 1.0)) for length in lengths]
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for i, count in enumerate(counts):
            for word, number in count.items():
                self._postings.setdefault(word, []).append((i, number))

    def scores(self, query: Iterable[str]) -> dict[int, float]:
        """The score of every document that holds one of these words, by its number; repeated words count once."""
        found: dict[int, float] = {}
        for word in dict.fromkeys(query):
            postings = self._postings.get(word, [])
            idf = math.log(1 + (len(self._norms) - len(postings) + 0.5) / (len(postings) + 0.5))
            for i, count in postings:
                found[i] = found.get(i, 0.0) + idf * count * (K1 + 1) / (count + self._norms[i])
        return found
