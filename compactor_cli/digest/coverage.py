"""Coverage: budgeted weighted coverage by lazy greedy choice.

Gain is submodular (what one line tells, another need not), so a line's gain only falls and a stale value is an
upper bound: the best stale line is weighed again and taken if it is still best (Minoux 1978; gain divided by a
power of the cost for budgets: Lin & Bilmes 2010).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

# Gains below this are rounding.
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Something that options need and that is paid for once: a heading, a lead-in. It may tell facts itself."""

    cost_tokens: int
    facts: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Something that can be taken: its facts with their values, its cost, and what it needs of ``shared``.

    ``quality`` scales the gain.
    """

    facts: Mapping[int, float]
    cost_tokens: int
    quality: float = 1.0
    needs: tuple[Hashable, ...] = ()


class Cover:
    """One choice under a budget, in one or several steps. ``power``: how much of its cost counts against an option."""

    def __init__(
        self, options: Sequence[Option], shared: Mapping[Hashable, Shared], covered: Iterable[int], power: float
    ) -> None:
        self.options = list(options)
        self.shared = shared
        self.covered = set(covered)
        self.power = power
        self.paid: set[Hashable] = set()
        self.left: dict[int, tuple[Mapping[int, float], float]] = {}
        self.taken: dict[int, int] = {}

    def copy(self) -> Cover:
        """The same choice before anything was taken, with what is known of its options."""
        copy = Cover(self.options, self.shared, self.covered, self.power)
        copy.left.update(self.left)
        return copy

    def add(self, options: Iterable[Option]) -> range:
        """More options; their numbers."""
        start = len(self.options)
        self.options.extend(options)
        return range(start, len(self.options))

    def rank(self, numbers: Iterable[int]) -> list[tuple[float, int]]:
        """What `take` starts from: options with a gain as they stand now, by falling worth, as (-worth, number)."""
        return sorted(
            (-worth, number) for number in numbers if (worth := self._worth(number, self._cost(number))) > _NOTHING
        )

    def take(self, ranked: Sequence[tuple[float, int]], budget_tokens: int) -> int:
        """Takes of these options what is best within the budget; the tokens left. ``taken`` says what each cost.

        ``ranked``: as `rank` gave it, now or before anything was taken. Same input, same choice: ties go to the
        first option.
        """
        numbers = [number for _, number in ranked]
        sharers: dict[Hashable, list[int]] = {}
        for number in numbers:
            for thing in self.options[number].needs:
                sharers.setdefault(thing, []).append(number)
        # Sorted is heap-ordered.
        heap = list(ranked)
        left = budget_tokens
        while heap and left > 0:
            _, number = heappop(heap)
            cost = self._cost(number)
            if number in self.taken or cost > left or (worth := self._worth(number, cost)) <= _NOTHING:
                continue
            if heap and -worth > heap[0][0]:
                heappush(heap, (-worth, number))
                continue
            left -= cost
            self.taken[number] = cost
            for other in self._pay(number, sharers):
                heappush(heap, (-self._worth(other, self._cost(other)), other))
        return left

    def _gain(self, number: int) -> float:
        option, covered = self.options[number], self.covered
        facts, gain = self.left.get(number) or (option.facts, -1.0)
        if not covered.isdisjoint(facts):
            facts, gain = {fact: value for fact, value in facts.items() if fact not in covered}, -1.0
        if gain < 0.0:
            gain = sum(facts.values())
            self.left[number] = facts, gain
        for thing in option.needs:
            if thing not in self.paid and (told := self.shared[thing].facts):
                gain += sum([value for fact, value in told.items() if fact not in covered and fact not in option.facts])
        return option.quality * gain

    def _cost(self, number: int) -> int:
        option = self.options[number]
        cost = option.cost_tokens
        for thing in option.needs:
            if thing not in self.paid:
                cost += self.shared[thing].cost_tokens
        return cost

    def _worth(self, number: int, cost_tokens: int) -> float:
        gain = self._gain(number)
        return gain / float(max(1, cost_tokens)) ** self.power if gain else 0.0

    def _pay(self, number: int, sharers: Mapping[Hashable, Sequence[int]]) -> list[int]:
        """Marks an option's facts and what it needs as there; the options that became cheaper by it."""
        option = self.options[number]
        self.covered.update(option.facts)
        fresh = [thing for thing in option.needs if thing not in self.paid]
        self.paid.update(fresh)
        for thing in fresh:
            self.covered.update(self.shared[thing].facts)
        return [other for thing in fresh for other in sharers[thing] if other not in self.taken]
