"""Statements: what can stand alone, and how a long line is shortened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.digest import statements


@pytest.mark.parametrize("text", ["", "});", "|---|---|", "==========", "A" * 200])
def test_noise(text: str) -> None:
    assert statements.is_noise(text)


@pytest.mark.parametrize("text", ["Tests pass now.", "def load(path):", "pytest -q tests", "报告写完了。", "a/b.py"])
def test_no_noise(text: str) -> None:
    assert not statements.is_noise(text)


def test_a_whole_statement_reads_better_than_a_scrap() -> None:
    assert statements.quality("The parser fails on empty input.") > statements.quality("foo(bar,")
    assert statements.quality("TypeError: x is not iterable") > statements.quality("x = 1")


def test_a_long_line_is_cut_into_sentences() -> None:
    line = "The first one is about the loader and its cache, which is wrong. " * 3 + "The last one ends it."
    pieces = statements.sentences(line)
    assert len(pieces) == 4
    assert all(piece in line for piece in pieces)


@given(st.text(alphabet="ab c", min_size=400, max_size=900), st.lists(st.integers(0, 380), max_size=4))
def test_a_window_is_verbatim_and_bounded(text: str, starts: list[int]) -> None:
    shown = statements.windowed(text, [(at, at + 3) for at in starts], 200)
    pieces = [piece.strip() for piece in shown.split("…")]
    assert all(piece in text for piece in pieces)
    assert sum(map(len, pieces)) <= 200


def test_a_window_holds_the_most_important_spot() -> None:
    text = "x " * 300 + "needle_here " + "y " * 300
    at = text.index("needle_here")
    shown = statements.windowed(text, [(at, at + 11)])
    assert "needle_here" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")


def test_how_a_tool_was_set_is_told_apart_from_what_it_was_used_on() -> None:
    assert all(map(statements.is_setting, ("timeout=60000", "replace_all=false", "output_mode=content")))
    assert not any(map(statements.is_setting, ("old_string=return x", "query=flights to Oslo", "a statement")))


def test_of_lines_that_differ_in_numbers_only_the_first_ones_count() -> None:
    worth = statements.repetition([*(f"value_{number} = {number}" for number in range(9)), "another line"])
    assert worth[:3] == [1.0] * 3
    assert all(value < 1.0 for value in worth[3:9])
    assert worth[9] == 1.0


def test_what_every_file_begins_with_reads_worse_than_what_it_defines() -> None:
    lines = ['#include "gauge.h"', "} else if (gauge) {", "struct gauge { int level; };"]
    assert sorted(lines, key=statements.quality) == lines
    assert statements.quality("from harbour.gauge import shown") < statements.quality("def shown(value):")
