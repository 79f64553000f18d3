from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.evaluate.measures import Share
from compactor_cli.evaluate.run_eval import by_session, cell, paired

SCORES = st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1), min_size=1, max_size=12)


def test_cuts_of_a_session_are_averaged_before_sessions_are() -> None:
    values = [("a", 1), ("a", 1), ("a", 1), ("b", 0)]
    assert by_session(values) == {"a": 1.0, "b": 0.0}
    found = cell((session, Share(kept=kept, total=1)) for session, kept in values)
    assert found is not None
    assert (found.micro, found.macro) == (0.75, 0.5)
    assert found.error == pytest.approx(math.sqrt(0.5) / math.sqrt(2))
    assert found.sessions == 2


def test_one_session_has_no_error_and_no_session_no_mean() -> None:
    found = cell([("a", Share(kept=1, total=4))])
    assert found is not None
    assert found.error == 0
    assert cell([]) is None


@given(ours=SCORES, theirs=SCORES, seed=st.text(max_size=4))
def test_differences_are_paired_repeatable_and_within_their_interval_at_the_ends(
    ours: dict[str, float], theirs: dict[str, float], seed: str
) -> None:
    found = paired(ours, theirs, 200, seed)
    common = ours.keys() & theirs.keys()
    if not common:
        assert found is None
        return
    assert found == paired(dict(reversed(ours.items())), theirs, 200, seed)
    differences = [ours[name] - theirs[name] for name in common]
    assert found is not None
    assert found.sessions == len(common)
    assert min(differences) - 1e-9 <= found.low <= found.high <= max(differences) + 1e-9
    assert 1 / 200 <= found.p <= 1


def test_a_clear_difference_is_distinguished_from_none() -> None:
    better = {f"s{n}": 0.8 + n / 100 for n in range(10)}
    worse = {f"s{n}": 0.5 - n / 100 for n in range(10)}
    clear = paired(better, worse, 2_000, "seed")
    none = paired(worse, worse, 2_000, "seed")
    assert clear is not None
    assert none is not None
    assert clear.low > 0
    assert clear.p < 0.01
    assert none.p == 1


def test_swapping_sides_mirrors_the_difference() -> None:
    one, other = {"a": 0.9, "b": 0.4, "c": 0.7}, {"a": 0.2, "b": 0.5, "c": 0.1}
    forth, back = paired(one, other, 500, "seed"), paired(other, one, 500, "seed")
    assert forth is not None
    assert back is not None
    assert forth.value == pytest.approx(-back.value)
