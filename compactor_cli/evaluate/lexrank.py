"""LexRank and MMR over lines, with a bounded graph and no numeric library.

LexRank: Erkan and Radev, "LexRank: Graph-based Lexical Centrality as Salience in Text Summarization", JAIR 22
(2004). MMR: Carbonell and Goldstein, "The use of MMR, diversity-based reranking", SIGIR 1998.
"""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence

from compactor_cli.evaluate.text_views import words

Line = tuple[int, str]
Vector = Mapping[str, float]

MOST_LINES = 1_200
LEAST_WORDS = 4
# Edges below this cosine are left out, and the chance of a random jump (both from the paper).
THRESHOLD = 0.1
DAMPING = 0.15
ROUNDS = 25
# Words on more lines than this join everything with everything; they add time and no order.
MOST_LINES_A_WORD = 150
# Weight of relevance against novelty.
RELEVANCE = 0.7


def lexrank_order(lines: Sequence[Line]) -> list[Line]:
    """The lines by centrality, then what was left out of the graph, newest first."""
    sampled = _evenly([line for line in lines if len(words(line[1])) >= LEAST_WORDS])
    graph = _graph(_vectors([text for _, text in sampled]))
    rank = _centrality(graph)
    central = sorted(range(len(sampled)), key=lambda i: (-rank[i], sampled[i][0]))
    return [sampled[i] for i in central] + _rest(lines, sampled)


def mmr_order(lines: Sequence[Line], query: str) -> list[Line]:
    """The lines by maximal marginal relevance to ``query``, then what was left out, newest first."""
    worded = [line for line in lines if len(words(line[1])) >= LEAST_WORDS]
    vectors = _vectors([text for _, text in worded])
    asked = _normal(Tally(words(query)))
    relevance = [_dot(vector, asked) for vector in vectors]
    near = sorted(range(len(worded)), key=lambda i: (-relevance[i], -i))[:MOST_LINES]
    graph = _graph([vectors[i] for i in near])
    chosen = [worded[near[i]] for i in _marginal([relevance[i] for i in near], graph)]
    return chosen + _rest(lines, chosen)


def _rest(lines: Sequence[Line], taken: Iterable[Line]) -> list[Line]:
    seen = {position for position, _ in taken}
    return [line for line in reversed(lines) if line[0] not in seen]


def _evenly(lines: list[Line]) -> list[Line]:
    if len(lines) <= MOST_LINES:
        return lines
    return [lines[i * len(lines) // MOST_LINES] for i in range(MOST_LINES)]


def _normal(weights: Mapping[str, float]) -> dict[str, float]:
    length = math.sqrt(math.fsum(value * value for value in weights.values())) or 1.0
    return {word: value / length for word, value in weights.items()}


def _vectors(texts: Sequence[str]) -> list[dict[str, float]]:
    counts = [Tally(words(text)) for text in texts]
    held: Tally[str] = Tally(word for count in counts for word in count)
    idf = {word: math.log(len(texts) / number) + 0.01 for word, number in held.items()}
    return [_normal({word: number * idf[word] for word, number in count.items()}) for count in counts]


def _dot(one: Vector, other: Vector) -> float:
    if len(one) > len(other):
        one, other = other, one
    return math.fsum(value * other[word] for word, value in one.items() if word in other)


def _graph(vectors: Sequence[Vector]) -> list[dict[int, float]]:
    """The cosines above the threshold, both ways."""
    postings: dict[str, list[int]] = {}
    for i, vector in enumerate(vectors):
        for word in vector:
            postings.setdefault(word, []).append(i)
    graph: list[dict[int, float]] = [{} for _ in vectors]
    for i, vector in enumerate(vectors):
        cosines: dict[int, float] = {}
        for word, value in vector.items():
            others = postings[word]
            for j in others if len(others) <= MOST_LINES_A_WORD else ():
                if j < i:
                    cosines[j] = cosines.get(j, 0.0) + value * vectors[j][word]
        for j, cosine in cosines.items():
            if cosine >= THRESHOLD:
                graph[i][j] = graph[j][i] = cosine
    return graph


def _centrality(graph: Sequence[Mapping[int, float]]) -> list[float]:
    if not graph:
        return []
    size = len(graph)
    sums = [math.fsum(edges.values()) or 1.0 for edges in graph]
    rank = [1.0 / size] * size
    for _ in range(ROUNDS):
        rank = [
            DAMPING / size + (1 - DAMPING) * math.fsum(weight * rank[j] / sums[j] for j, weight in edges.items())
            for edges in graph
        ]
    return rank


def _marginal(relevance: Sequence[float], graph: Sequence[Mapping[int, float]]) -> list[int]:
    likeness = [0.0] * len(relevance)
    waiting = set(range(len(relevance)))
    order: list[int] = []
    while waiting:
        chosen = max(waiting, key=lambda i: (RELEVANCE * relevance[i] - (1 - RELEVANCE) * likeness[i], -i))
        waiting.remove(chosen)
        order.append(chosen)
        for i, cosine in graph[chosen].items():
            likeness[i] = max(likeness[i], cosine)
    return order
