"""Names of records: printed and read back, in every form that people copy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.model.marker import Reference, parse_id, parse_ranges, record_id

HASH = "54453b50b756405f" + "0" * 48


@given(st.integers(min_value=0, max_value=10**9))
def test_an_id_names_one_record_and_counts_it_from_one(record: int) -> None:
    reference = parse_id(record_id(HASH, record))
    assert reference == Reference(transcript=HASH[:16], ranges=((record + 1, record + 1),))


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("54453b50", ()),
        ("54453B50:4-9", ((4, 9),)),
        ("54453b50b756405f:3,12", ((3, 3), (12, 12))),
        (f"{HASH}:1-2,7", ((1, 2), (7, 7))),
    ],
)
def test_ids_name_ranges_and_lists_and_any_length_of_hash(text: str, ranges: tuple[tuple[int, int], ...]) -> None:
    reference = parse_id(text)
    assert reference is not None
    assert reference.ranges == ranges
    assert HASH.startswith(reference.transcript)


@pytest.mark.parametrize("text", ["", "5445", "54453b50:", "54453b50:a", "54453b50:1-", "xyz12345:1", "[3]"])
def test_what_is_no_id_is_none(text: str) -> None:
    assert parse_id(text) is None


@pytest.mark.parametrize(
    ("text", "ranges"), [("[72]", ((72, 72),)), ("8,64", ((8, 8), (64, 64))), ("[6-52]", ((6, 52),))]
)
def test_references_of_summaries_are_read_with_and_without_brackets(
    text: str, ranges: tuple[tuple[int, int], ...]
) -> None:
    assert parse_ranges(text) == ranges
    assert parse_ranges(f"{text} x") == ()
