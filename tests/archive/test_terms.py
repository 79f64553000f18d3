"""Words are found as people write them, in scripts with and without spaces."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor_cli.archive.index import add_words, create_words
from compactor_cli.archive.search import match_all, match_any
from compactor_cli.model.errors import UsageError

TEXTS = (
    "令牌桶限流算法",
    "第3章令牌",
    "the migrations failed",
    "Übung im café",
    "src/module_3.py failed",
    "รอบนี้ทดสอบ",
    "データベースの移行",
    "속도 제한을 설정했다",
)


def found(texts: Sequence[str], wanted: str) -> set[int]:
    database = sqlite3.connect(":memory:")
    create_words(database)
    for number, text in enumerate(texts):
        add_words(database, number, text)
    rows = {number for (number,) in database.execute("SELECT rowid FROM words WHERE words MATCH ?", (wanted,))}
    database.close()
    return rows


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("令牌", {0, 1}),
        ("牌桶", {0}),
        ("流", {0}),
        ("第3章令牌", {1}),
        ("3章", {1}),
        ("移行", {6}),
        ("データ", {6}),
        ("ทดสอบ", {5}),
        ("제한", {7}),
        ("migration", {2}),
        ("cafe UBUNG", {3}),
        ("module_3", {4}),
        ("mod*", {4}),
        ("failed -src", {2}),
        ("令牌 OR migration", {0, 1, 2}),
        ('"migrations failed"', {2}),
        ('"failed migrations"', set()),
        ("failed 令牌", set()),
    ],
)
def test_a_query_finds_what_holds_all_its_words(query: str, numbers: set[int]) -> None:
    assert found(TEXTS, match_all(query)) == numbers


@given(st.text(alphabet="令牌桶限流の移行abc3 -_/", min_size=1, max_size=12), st.data())
def test_any_piece_of_a_dense_text_finds_it(text: str, data: st.DataObject) -> None:
    """Also where scripts meet, and whatever stands around the piece."""
    start = data.draw(st.integers(0, len(text) - 1))
    piece = text[start : data.draw(st.integers(start + 1, len(text)))]
    if not any("\u3040" <= letter <= "\u9fff" for letter in piece) or any(letter in " -_/abc3" for letter in piece):
        return
    assert found([text], match_all(f'"{piece}"')) == {0}


@example(text="", query="\U0003134b")  # a letter that this Python does not know as one
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_and_no_query_breaks_the_index(text: str, query: str) -> None:
    try:
        wanted = match_all(query)
    except UsageError:
        wanted = match_any(query)
    assert not wanted or found([text, "\ud800 half"], wanted) <= {0, 1}


@pytest.mark.parametrize("query", ["", "  ", "-", "--", "OR", '""', "-word"])
def test_a_query_without_a_word_is_a_usage_error(query: str) -> None:
    with pytest.raises(UsageError):
        match_all(query)


def test_any_word_of_a_question_finds_and_a_path_is_found_by_its_pieces() -> None:
    wanted = match_any("Why did src/module_3.py, and the migration, break?")
    assert found(TEXTS, wanted) == {2, 4}
    assert found(["module three", "nothing"], match_any("src/module_3.py")) == {0}
    assert match_any("the and of ...") == ""
    assert found(["限时", "水流", "限流算法"], match_any("限流?")) == {2}
    assert found(["水流", "流水"], match_any("流")) == {0, 1}


def test_a_sqlite_without_full_text_search_is_named() -> None:
    class Without(sqlite3.Connection):
        def execute(self, *arguments: object) -> sqlite3.Cursor:  # type: ignore[override]
            raise sqlite3.OperationalError("no such module: fts5")

    database = sqlite3.connect(":memory:", factory=Without)
    with pytest.raises(UsageError, match="FTS5"):
        create_words(database)
    database.close()
