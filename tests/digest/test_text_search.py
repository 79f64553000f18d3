"""Pieces are found where they stand, in texts of any length, without searching the whole text for each."""

from __future__ import annotations

from compactor_cli.digest.text_search import Places, TextSearch
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.table import build

_SEARCHES = 20


def _told(text: str) -> TextSearch:
    """A text that was asked so often that it has its index."""
    told = TextSearch(text)
    for _ in range(_SEARCHES):
        assert "\0" not in told
    return told


@given(text=st.text(alphabet="ab01_é². \n", max_size=60), piece=st.text(alphabet="ab01_é². \n", max_size=9))
def test_told_says_what_a_search_says(text: str, piece: str) -> None:
    assert (piece in _told(text)) is (piece in text)


@given(text=st.text(alphabet="abcd0123_ ", min_size=1, max_size=80), data=st.data())
def test_told_knows_every_part_of_its_text(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    assert text[start:end] in _told(text)


def _places(text: str) -> Places:
    events = (Event(record=0, turn=0, kind=EventKind.RESULT, text=text),)
    return Places(events, build(events).lines)


def test_every_line_of_a_very_long_event_is_placed() -> None:
    text = "\n".join(f"  id_{number} is {number * 7}" for number in range(10_000))
    places = _places(text)
    for number in (0, 1, 77, 9_999):
        line = f"id_{number} is {number * 7}"
        assert places.of(line, 0) == text.index(line)


def test_a_repeated_line_is_placed_where_it_stands_first() -> None:
    text = "first\n" + "the same line\n" * 10_000
    assert _places(text).of("the same line", 0) == len("first\n")


def test_a_line_of_a_short_event_is_placed_by_search() -> None:
    assert _places("one\n  two words\n").of("two words", 0) == len("one\n  ")
