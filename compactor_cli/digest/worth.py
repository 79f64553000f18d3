"""Worth: what a line tells by its atoms, for its length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, nlargest

from compactor_cli.digest.lines import Lines
from compactor_cli.digest.statements import MOST_CHARS

# Worth of a line is its gain by a power of its length: one long line reads better than two scraps.
COST_POWER = 0.75
# Atoms that count for a line: a longer one is shown in part.
_MOST_COUNTED = 8
_COSTS = tuple((3 + chars / 4) ** COST_POWER for chars in range(MOST_CHARS + 1))


def gain(values: Sequence[float]) -> float:
    """What a line tells whose atoms have these values; of a long one only a part will be shown."""
    return sum(values) if len(values) <= _MOST_COUNTED else sum(nlargest(_MOST_COUNTED, values))


def gains(lines: Lines, values: Mapping[int, float], atoms: int) -> list[float]:
    """The gain of each distinct line, by the values of some of so many atoms."""
    value_of = [values.get(row, 0.0) for row in range(atoms)].__getitem__
    return [
        sum(map(value_of, rows)) if len(rows) <= _MOST_COUNTED else gain(list(map(value_of, rows)))
        for rows in lines.atoms
    ]


def by_worth(things: Iterable[tuple[int, float]]) -> Iterator[int]:
    """The numbers of things, given as length and gain, best first, the last of equals first; no gain, no number."""
    heap = [
        (-gained / (_COSTS[chars] if chars < MOST_CHARS else _COSTS[-1]), -number)
        for number, (chars, gained) in enumerate(things)
        if gained
    ]
    # Few of very many are asked for: no need to sort them all.
    heapify(heap)
    while heap:
        yield -heappop(heap)[1]
