"""Two baselines on atoms: lines that cover frequent atoms, and the bare list."""

from __future__ import annotations

import heapq
import math
from collections import Counter as Tally
from collections.abc import Iterable, Sequence

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.transcript_events import Event
from compactor_cli.evaluate.text_views import view

# Characters a token on average: costs only rank the lines, the budget is kept by counting.
_CHARS_A_TOKEN = 4


def _weights(events: Iterable[Event]) -> dict[str, float]:
    """log(1 + number of events) of each atom."""
    held: Tally[str] = Tally()
    for event in events:
        held.update(view(event.text).atoms)
    return {atom: math.log1p(number) for atom, number in held.items()}


def coverage_order(events: Iterable[Event], lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines in the order in which a lazy greedy choice takes them: new weight of atoms for each token."""
    weights = _weights(events)
    atoms = {position: atom_texts(line) & weights.keys() for position, line in lines}
    costs = {position: 1 + len(line) / _CHARS_A_TOKEN for position, line in lines}
    texts = dict(lines)
    covered: set[str] = set()

    def gain(position: int) -> float:
        return math.fsum(weights[atom] for atom in atoms[position] - covered) / costs[position]

    heap = [(-gain(position), position) for position in atoms if atoms[position]]
    heapq.heapify(heap)
    chosen: list[tuple[int, str]] = []
    while heap:
        position = heap[0][1]
        now = gain(position)
        if now <= 0:
            heapq.heappop(heap)
        elif len(heap) > 1 and (-now, position) > min(heap[1:3]):
            heapq.heapreplace(heap, (-now, position))
        else:
            heapq.heappop(heap)
            covered |= atoms[position]
            chosen.append((position, texts[position]))
    return chosen


def atom_list(events: Iterable[Event]) -> list[tuple[int, str]]:
    """Every atom with its position, those held by most events first."""
    weights = _weights(events)
    positions = {atom: i for i, atom in enumerate(sorted(weights))}
    return sorted(((positions[atom], atom) for atom in weights), key=lambda pair: (-weights[pair[1]], pair))
