"""Topics: turns in a row that speak of the same things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log, sqrt

# This many turns on each side of a gap are compared: TextTiling (Hearst 1997) takes blocks of a few sentences, as
# one alone is too short to tell.
_BLOCK_TURNS = 3
# A gap deeper than others carries no information where all turns speak of one thing: it has to fall to this ratio of
# the cohesion that is reached on either side of it.
_RATIO = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Turns ``start <= i < stop``, by their place among those that were given."""

    start: int
    stop: int


def topics(vocabularies: Sequence[Collection[str]]) -> tuple[Topic, ...]:
    """The topics of turns given by their words: in order, none empty, each turn in exactly one.

    A topic begins where cohesion with the turns before is a local minimum, below its mean minus half of its
    standard deviation and well below what it is around; so no topic is found in less than four turns, and the first
    and the last turn are never alone. Depends on which words a turn has, not on their order;
    time linear in the number of words.
    """
    if not vocabularies:
        return ()
    gaps = _cohesion(vocabularies)
    starts = [0, *(gap + 1 for gap in _valleys(gaps))]
    return tuple(
        Topic(start=start, stop=stop) for start, stop in zip(starts, [*starts[1:], len(vocabularies)], strict=True)
    )


def _cohesion(vocabularies: Sequence[Collection[str]]) -> list[float]:
    """Between 0 and 1 for each gap between two turns: the cosine of the words of the turns before and after it.

    A word that one turn alone has ties it to nothing and is left out; one that few turns have weighs more.
    """
    turns_with = Counter(word for vocabulary in vocabularies for word in set(vocabulary))
    total = len(vocabularies)
    weights = {word: log(1 + total / turns) ** 2 for word, turns in turns_with.items() if turns > 1}
    bags = [[word for word in set(vocabulary) if word in weights] for vocabulary in vocabularies]
    return [
        _cosine(_counted(bags[max(0, at - _BLOCK_TURNS) : at]), _counted(bags[at : at + _BLOCK_TURNS]), weights)
        for at in range(1, total)
    ]


def _counted(bags: Iterable[Iterable[str]]) -> Counter[str]:
    return Counter(word for bag in bags for word in bag)


def _cosine(one: Mapping[str, int], other: Mapping[str, int], weights: Mapping[str, float]) -> float:
    """1 where one side has no words: nothing tells the two apart. Summed exactly, so in any order of the words."""
    if not one or not other:
        return 1.0
    shared = fsum(turns * other[word] * weights[word] for word, turns in one.items() if word in other)
    return shared / sqrt(_square(one, weights) * _square(other, weights))


def _square(counts: Mapping[str, int], weights: Mapping[str, float]) -> float:
    return fsum(turns * turns * weights[word] for word, turns in counts.items())


def _valleys(gaps: Sequence[float]) -> list[int]:
    """Where cohesion falls far enough below what it is on both sides."""
    if not gaps:
        return []
    mean = fsum(gaps) / len(gaps)
    most = mean - sqrt(fsum((gap - mean) ** 2 for gap in gaps) / len(gaps)) / 2
    return [
        at
        for at in range(1, len(gaps) - 1)
        if gaps[at] < most and gaps[at - 1] > gaps[at] <= gaps[at + 1] and gaps[at] <= _RATIO * _peak(gaps, at)
    ]


def _peak(gaps: Sequence[float], at: int) -> float:
    """The lower of the highest cohesions near by on both sides."""
    return min(max(gaps[max(0, at - _BLOCK_TURNS) : at]), max(gaps[at + 1 : at + 1 + _BLOCK_TURNS]))
