"""Pieces are found where they stand, in texts of any length, without searching the whole text for each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.digest.loss import TextSearch

_SEARCHES = 20


def _told(text: str) -> TextSearch:
    """A text that was asked so often that it has its index."""
    told = TextSearch(text)
    for _ in range(_SEARCHES):
        assert "\0" not in told
    return told


@given(text=st.text(alphabet="ab01_é². \n", max_size=60), piece=st.text(alphabet="ab01_é². \n", max_size=9))
def test_stated_says_what_a_search_says(text: str, piece: str) -> None:
    assert (piece in _told(text)) is (piece in text)


@given(text=st.text(alphabet="abcd0123_ ", min_size=1, max_size=80), data=st.data())
def test_stated_knows_every_part_of_its_text(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    assert text[start:end] in _told(text)
