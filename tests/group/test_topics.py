"""Topics are runs of turns that share words and files."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.digest.language import terms
from compactor_cli.group.exchanges import topics

GENERAL = ("file", "test", "change", "please", "check", "done", "next", "look")


def vocabulary(subject: str, seed: int, *, own: int = 12, general: int = 3) -> list[str]:
    """The words of one turn: a few of the subject's, a few that any turn has, a few that no other has."""
    pick = random.Random(f"{subject}-{seed}")
    words = [f"{subject}{number}" for number in range(own)]
    return [*pick.sample(words, 5), *pick.sample(GENERAL, general), f"only-{subject}-{seed}"]


def told(*lengths: int) -> list[list[str]]:
    """Turns of one subject after the other."""
    return [vocabulary(f"subject{at}", turn) for at, length in enumerate(lengths) for turn in range(length)]


def starts(found: tuple[range, ...]) -> list[int]:
    return [topic.start for topic in found]


def test_planted_topics_are_found() -> None:
    assert starts(topics(told(6, 9, 4, 12))) == [0, 6, 15, 19]


def test_a_single_topic_stays_one() -> None:
    for length in (1, 2, 3, 10, 60):
        assert topics(told(length)) == (range(length),)


def test_the_same_turn_again_and_again_is_one_topic() -> None:
    assert topics([["gauge", "feed"]] * 20) == (range(20),)


def test_a_subject_that_comes_back_is_a_topic_again() -> None:
    turns = [*(vocabulary("one", n) for n in range(5)), *(vocabulary("two", n) for n in range(5))]
    turns += [vocabulary("one", n) for n in range(5, 10)]
    assert starts(topics(turns)) == [0, 5, 10]


def test_short_replies_belong_to_the_turns_around_them() -> None:
    turns = told(6, 6)
    turns[2], turns[8] = [], ["yes"]
    assert starts(topics(turns)) == [0, 6]


def test_files_hold_turns_together_that_are_worded_differently() -> None:
    turns = [[f"said-{n}", "src/harbour.py" if n < 5 else "docs/tariff.md"] for n in range(10)]
    assert starts(topics(turns)) == [0, 5]


def test_scripts_without_spaces_have_topics_too() -> None:
    weather = ["请修复港口的水位读数", "水位读数还是少一半", "港口水位的单位是什么", "把港口水位画成图"]
    billing = ["现在改一下发票税率", "发票税率按月计算", "税率表里缺了发票号", "导出所有发票税率"]
    assert starts(topics([terms(text) for text in (*weather, *billing)])) == [0, 4]


def test_nothing_has_no_topics() -> None:
    assert topics([]) == ()


VOCABULARIES = st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=8), max_size=40)


@given(VOCABULARIES)
def test_topics_tile_the_turns_in_order(turns: list[list[str]]) -> None:
    covered = [turn for topic in topics(turns) for turn in range(topic.start, topic.stop)]
    assert covered == list(range(len(turns)))
    assert all(topic.start < topic.stop for topic in topics(turns))


@given(VOCABULARIES, st.randoms(use_true_random=False))
def test_the_order_of_words_within_a_turn_says_nothing(turns: list[list[str]], order: random.Random) -> None:
    shuffled = [order.sample(words, len(words)) for words in turns]
    assert topics(shuffled) == topics(turns)
    assert topics([frozenset(words) for words in turns]) == topics(turns)
