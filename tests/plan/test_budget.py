from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.model.settings import Budget, Size
from compactor_cli.plan.layout import FLOOR_TOKENS, budget_for, scaled_tokens, tiered_tokens


@pytest.mark.parametrize(
    ("middle", "budget"),
    [(0, 0), (5_000, 1_000), (10_000, 2_000), (20_000, 2_500), (30_000, 3_000), (100_000, 5_000), (1_000_000, 20_000)],
)
def test_the_scaled_curve_goes_through_its_points(middle: int, budget: int) -> None:
    assert scaled_tokens(middle) == budget


@given(st.integers(0, 5_000_000), st.integers(0, 100_000))
def test_the_scaled_curve_is_continuous_and_monotone(middle: int, more: int) -> None:
    assert 0 <= scaled_tokens(middle + more) - scaled_tokens(middle) <= more // 5 + 1


@pytest.mark.parametrize(
    ("middle", "budget"),
    [
        (9_999, 1_999),
        (10_000, 1_500),
        (29_999, 4_499),
        (30_000, 3_000),
        (99_999, 9_999),
        (100_000, 5_000),
        (999_999, 49_999),
        (2_000_000, 100_000),
    ],
)
def test_the_tiered_table_jumps_as_it_is_written(middle: int, budget: int) -> None:
    assert tiered_tokens(middle) == budget


def test_a_named_size_goes_before_the_curve() -> None:
    assert budget_for(Budget(size=Size(tokens=1_234)), 50_000) == 1_234
    assert budget_for(Budget(size=Size(ratio=0.5)), 50_000) == 25_000
    assert budget_for(Budget(curve="tiered"), 29_999) == 4_499
    assert budget_for(Budget(), 100) == FLOOR_TOKENS
