"""Salience: exchanges ranked by how much of what will be used again they say, for their tokens.

The scores are the digest's. What the kept records show already counts nothing, and what a chosen exchange says
counts nothing in another: lazy greedy coverage (Minoux 1978), gain / cost.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from compactor_cli.digest import language
from compactor_cli.digest import salience as tables
from compactor_cli.digest.events import Event, events
from compactor_cli.digest.salience import Scores, score
from compactor_cli.model.plan import Middle, Ranking

# Worth of an exchange is its gain by a power of its size: many crumbs read worse than one exchange that says more.
COST_POWER = 1.0


class Salience:
    """Ranks by density of the digest's scores. Deterministic; time is linear in the transcript, except for sorting."""

    def rank(self, middle: Middle) -> Ranking:
        """The blocks by what they add to those before them."""
        messages = middle.transcript.messages
        sent = [i for i, message in enumerate(messages) if not message.superseded]
        found = events(middle.transcript, sent)
        table = tables.build(found)
        scores = score(table, focus=middle.focus)
        facts = _facts(found, scores)
        shown = {fact for record in middle.kept for fact in facts.get(record, ())}
        blocks = [{fact for record in block for fact in facts.get(record, ())} - shown for block in middle.blocks]
        return Ranking(order=_greedy(blocks, middle.tokens, _values(scores)))


def _facts(found: Sequence[Event], scores: Scores) -> dict[int, set[int | str]]:
    """What each record says: rows of atoms, and words in conversations that are not about code."""
    lines = scores.table.lines
    covered_facts: dict[int, set[int | str]] = {}
    for event in found:
        facts = covered_facts.setdefault(event.record, set())
        for line in event.text.split("\n"):
            facts.update(lines.atoms[lines.numbers[line.strip()]])
        if scores.terms:
            facts.update(language.terms(event.text))
    return covered_facts


def _values(scores: Scores) -> dict[int | str, float]:
    values: dict[int | str, float] = dict(enumerate(scores.rows))
    values.update(scores.terms)
    return values


def _greedy(blocks: Sequence[set[int | str]], tokens: Sequence[int], values: dict[int | str, float]) -> list[int]:
    """Blocks by gain / cost, each gain without what the blocks before it say; those without any are left out."""

    def worth(number: int) -> float:
        gain = sum(values.get(fact, 0.0) for fact in blocks[number])
        return gain / float(tokens[number] ** COST_POWER)

    heap = [(-worth(number), number) for number in range(len(blocks))]
    heapq.heapify(heap)
    order: list[int] = []
    covered_facts: set[int | str] = set()
    while heap:
        _, number = heapq.heappop(heap)
        blocks[number].difference_update(covered_facts)
        now = -worth(number)
        if not now:
            continue
        if heap and (now, number) > heap[0]:
            heapq.heappush(heap, (now, number))
            continue
        order.append(number)
        covered_facts |= blocks[number]
    return order
