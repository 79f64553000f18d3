"""Quoting: whole words only, markup gone, nothing that was not said."""

from __future__ import annotations

import pytest
from conversation import count, token_cache
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.statements import clipped
from compactor_cli.digest.texts import head, opening, plain_line, sentences, tail

WORDS = ["src/app/main.py", "parse_items", "https://host.example/x?id=77", "4711", "读取配置", "the", "end.", "\n"]
texts = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)


@given(texts, st.integers(0, 300))
def test_cuts_make_no_new_names(text: str, size: int) -> None:
    for cut in (head(text, size), tail(text, size), clipped(text, size // 3, token_cache()), opening(text, size)):
        assert atom_texts(cut) <= atom_texts(text)
    assert count(clipped(text, 20, token_cache())) <= 20
    assert len(head(text, size)) <= size


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("## **Plan**", "Plan"),
        ("- [ ] write **all** tests", "[ ] write all tests"),
        ("src/**/settings*.go and lib/**", "src/**/settings*.go and lib/**"),
        ("| a | `b` | |", "a | `b`"),
        ("|---|:--:|", ""),
        ("```python", ""),
        ("2 ** 3 ** 4", "2 ** 3 ** 4"),
        ('"port": 8080,', "port: 8080"),
        ('"It holds `"port": 8080,` now"', '"It holds `"port": 8080,` now"'),
    ],
)
def test_markup_goes_and_code_stays(line: str, plain: str) -> None:
    assert plain_line(line) == plain


def test_a_text_that_begins_with_a_very_long_word_is_quoted_without_it() -> None:
    assert opening(f"'/var/folders/{'x' * 90}.png'\n\nwhy is the tide grey?", 60) == "… why is the tide grey?"


def test_a_text_is_not_cut_after_the_number_of_a_list() -> None:
    text = (
        "Find out what is asked for. Choose among these kinds: 1. **No arguments**: look at all that is not committed"
    )
    assert opening(text, 60) == "Find out what is asked for. Choose among these kinds: 1. No …"
    assert opening("Which kinds are there? 1. No arguments: look at all changes", 26) == "Which kinds are there?"


def test_sentences_of_prose_lists_and_other_scripts() -> None:
    assert list(sentences("One is v1.2. Two!\n- three\n```\ncode.\n```\n修好了。下一步\uff1f好\uff01")) == [
        "One is v1.2.",
        "Two!",
        "three",
        "修好了。",
        "下一步\uff1f",
        "好\uff01",
    ]
