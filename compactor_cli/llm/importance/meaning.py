"""Meaning: exchanges ranked by the cosine of their embedding to the task's; by words where there is no embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import sqrt

from compactor_cli.llm.failures import ModelFailure
from compactor_cli.llm.importance.nearness import WordOverlap, task, texts
from compactor_cli.model.plan import Middle, Ranking

Vector = Sequence[float]
# The vectors of texts, in their order; raises ModelFailure.
Embed = Callable[[Sequence[str]], Sequence[Vector]]
# Embedding models read a few hundred to a few thousand tokens; of longer texts the first part and the last.
FIRST_CHARS = 3_000
LAST_CHARS = 1_000


class Meaning:
    """Ranks by the largest cosine to a newest message of the user or the focus."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    def rank(self, middle: Middle) -> Ranking:
        """The blocks, the nearest first; of equals the newest. By words, and with a note, where the model fails."""
        asked, candidates = task(middle), texts(middle)
        if not asked:
            return Ranking(order=())
        try:
            vectors = [_unit(vector) for vector in self._embed([_short(text) for text in (*asked, *candidates)])]
        except ModelFailure as failure:
            return _by_words(middle, failure.reason)
        wanted, found = vectors[: len(asked)], vectors[len(asked) :]
        near = [max(_dot(vector, other) for other in wanted) for vector in found]
        return Ranking(order=sorted(range(len(found)), key=lambda number: (-near[number], -number)))


class Unasked:
    """Ranks by words and says so: for looks, which send nothing."""

    def __init__(self, model: str) -> None:
        self._model = model

    def rank(self, middle: Middle) -> Ranking:
        """As `WordOverlap` does."""
        return _by_words(middle, f"{self._model} is only asked when something is done")


def _by_words(middle: Middle, reason: str) -> Ranking:
    return replace(WordOverlap().rank(middle), note=f"what stays was chosen by words, not by meaning: {reason}")


def _short(text: str) -> str:
    if len(text) <= FIRST_CHARS + LAST_CHARS:
        return text or " "
    return f"{text[:FIRST_CHARS]}\n…\n{text[-LAST_CHARS:]}"


def _unit(vector: Vector) -> Vector:
    length = sqrt(_dot(vector, vector)) or 1.0
    return [value / length for value in vector]


def _dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
