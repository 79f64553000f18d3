from __future__ import annotations

import pytest
from conversation import WORK, count
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.llm.quoting import Block, Border, borders, check_coverage, cut, merge_groups, split
from compactor_cli.model.errors import InvariantError


def piece(number: int, tokens: int, border: Border = Border.RECORD) -> Block:
    text = f"<<{number + 1} user>>\n" + "word " * tokens
    return Block(record=number, name=str(number + 1), text=text, tokens=count(text), border=border)


@given(
    st.lists(st.tuples(st.integers(0, 900), st.sampled_from(list(Border))), min_size=1, max_size=60),
    st.integers(200, 1_000),
)
def test_leaves_hold_every_piece_once_in_order_and_fit(sizes: list[tuple[int, Border]], room: int) -> None:
    pieces = [piece(number, tokens, border) for number, (tokens, border) in enumerate(sizes)]
    leaves = cut(pieces, room, count)
    assert [item.record for leaf in leaves for item in leaf] == list(range(len(pieces)))
    assert all(sum(item.tokens for item in leaf) <= room for leaf in leaves)
    check_coverage([item.name for item in pieces], [item.name for leaf in leaves for item in leaf])


def test_a_cut_is_made_where_a_turn_begins() -> None:
    pieces = [
        piece(n, 80, Border.TURN if n == 8 else Border.EXCHANGE if n % 2 == 0 else Border.RECORD) for n in range(12)
    ]
    first = cut(pieces, sum(item.tokens for item in pieces[:10]), count)[0]
    assert first[-1].record == 7


def test_a_split_loses_nothing_and_ends_with_half_of_one_record() -> None:
    leaf = tuple(piece(n, 50) for n in range(5))
    one, two = split(leaf, count)
    assert one + two == leaf
    ((half,),) = split((piece(0, 2_000),), count)
    assert half.tokens < 1_300
    assert half.cut_chars > 0


def test_turns_and_exchanges_begin_where_they_should() -> None:
    found = borders(WORK.messages)
    assert found[0] is Border.TURN
    assert found[13] is Border.TURN
    # A result never begins a span of its own.
    assert found[2] is Border.RECORD


@given(st.lists(st.integers(1, 500), min_size=2, max_size=40), st.integers(1, 2_000))
def test_groups_of_summaries_are_consecutive_and_always_fewer(sizes: list[int], room: int) -> None:
    groups = merge_groups(sizes, room)
    assert [n for start, stop in groups for n in range(start, stop)] == list(range(len(sizes)))
    assert len(groups) < len(sizes)


@pytest.mark.parametrize("shown", [("1", "3"), ("1", "2", "2", "3"), ("2", "1", "3")])
def test_a_record_in_no_prompt_or_in_two_is_a_defect(shown: tuple[str, ...]) -> None:
    with pytest.raises(InvariantError):
        check_coverage(("1", "2", "3"), shown)
