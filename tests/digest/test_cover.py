"""Coverage: the greedy choice under a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compactor_cli.digest.coverage import Cover, Option, Shared
from hypothesis import given
from hypothesis import strategies as st

PRICES = {"x": Shared(cost_tokens=4), "y": Shared(cost_tokens=0), "z": Shared(cost_tokens=9, facts={9: 0.5})}
options = st.builds(
    Option,
    facts=st.dictionaries(st.integers(0, 8), st.floats(0, 1), max_size=5),
    cost_tokens=st.integers(0, 20),
    quality=st.sampled_from([0.5, 1.0]),
    needs=st.lists(st.sampled_from("xyz"), max_size=2, unique=True).map(tuple),
)


def take(
    found: Sequence[Option], budget: int, shared: Mapping[str, Shared] = PRICES, known: tuple[int, ...] = ()
) -> Cover:
    cover = Cover(found, shared, known, 0.85)
    cover.take(cover.rank(range(len(found))), budget)
    return cover


@given(st.lists(options, max_size=12), st.integers(0, 60))
def test_the_budget_holds(found: list[Option], budget: int) -> None:
    cover = take(found, budget)
    taken = [found[number] for number in cover.taken]
    needed = {thing for option in taken for thing in option.needs}
    cost = sum(option.cost_tokens for option in taken) + sum(PRICES[thing].cost_tokens for thing in needed)
    assert cost == sum(cover.taken.values()) <= budget
    assert cover.taken == take(found, budget).taken


@given(st.lists(options, max_size=12), st.integers(0, 40), st.integers(0, 40))
def test_two_steps_take_nothing_twice(found: list[Option], first: int, second: int) -> None:
    cover = Cover(found, PRICES, (), 0.85)
    ranked = cover.rank(range(len(found)))
    left = cover.take(ranked, first)
    cover.take(ranked, left + second)
    assert sum(cover.taken.values()) <= first + second


@given(st.lists(options, max_size=12))
def test_with_room_for_all_everything_new_is_told(found: list[Option]) -> None:
    cover = take(found, 10_000)
    worthwhile = {fact for option in found for fact, value in option.facts.items() if value > 1e-6}
    assert worthwhile <= {fact for number in cover.taken for fact in found[number].facts} | {9}


def test_what_is_known_is_not_paid_for() -> None:
    known, new = Option(facts={1: 1.0}, cost_tokens=1), Option(facts={2: 0.1}, cost_tokens=9)
    assert list(take([known, new], 10, known=(1,)).taken) == [1]


def test_a_line_under_a_heading_already_there_is_cheaper() -> None:
    shared = {"h": Shared(cost_tokens=5), "k": Shared(cost_tokens=5)}
    first = Option(facts={1: 1.0}, cost_tokens=2, needs=("h",))
    under = Option(facts={2: 0.5}, cost_tokens=2, needs=("h",))
    apart = Option(facts={3: 0.6}, cost_tokens=2, needs=("k",))
    assert list(take([first, under, apart], 9, shared).taken) == [0, 1]


def test_what_a_heading_tells_counts_for_the_first_line_under_it() -> None:
    shared = {"h": Shared(cost_tokens=1, facts={7: 1.0}), "k": Shared(cost_tokens=1)}
    told = Option(facts={1: 0.1}, cost_tokens=5, needs=("h",))
    plain = Option(facts={2: 0.5}, cost_tokens=5, needs=("k",))
    again = Option(facts={7: 1.0}, cost_tokens=5, needs=("k",))
    assert list(take([told, plain, again], 6, shared).taken) == [0]
    assert 2 not in take([told, plain, again], 100, shared).taken
