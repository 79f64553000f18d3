"""How the exchanges of a middle are ranked."""

from __future__ import annotations

from conversation import answer, call, conversation, ran, says, user

from compactor_cli.llm.importance import Salience, WordOverlap, importance_of, task
from compactor_cli.model.plan import Middle
from compactor_cli.model.settings import SEMANTIC, SMART, Keep
from compactor_cli.model.transcript import Transcript

CHAT = conversation(
    user("Make the tide table fast."),
    says("Thanks, and good morning to you."),
    ran("ls", "a b c"),
    ran("pytest tests/test_tide.py", "FAILED tests/test_tide.py::test_speed in src/tide_table.py line 4711"),
    call("Read", "r", file_path="/data/src/tide_table.py"),
    answer("def compute_table(station): return harmonic_sum(station)", "r"),
    says("The harmonic sum in src/tide_table.py is what takes long."),
    user("Now look at the gauge importer, please."),
    says("I look at it."),
)


def middle(transcript: Transcript = CHAT, focus: str = "") -> Middle:
    blocks = (range(1, 2), range(2, 4), range(4, 6), range(6, 8), range(8, 9))
    tokens = (8, 8, 30, 30, 14)
    kept = (0, 9, 10)
    return Middle(transcript=transcript, blocks=blocks, tokens=tokens, room_tokens=60, kept=kept, focus=focus)


def test_what_says_more_that_will_be_needed_comes_first() -> None:
    order = list(Salience().rank(middle()).order)
    assert order[0] in (2, 3, 4)
    assert 0 not in order[:3]
    assert sorted(order) == sorted(set(order))


def test_what_was_said_already_counts_nothing() -> None:
    twice = conversation(
        user("go"),
        says("The file src/tide_table.py and the file src/gauge_import.py matter."),
        says("The file src/tide_table.py and the file src/gauge_import.py matter."),
        says("Also tests/test_other.py is there, and some words around it for its size."),
    )
    found = Middle(
        transcript=twice, blocks=(range(1, 2), range(2, 3), range(3, 4)), tokens=(20, 20, 20), room_tokens=40, kept=(0,)
    )
    assert sorted(Salience().rank(found).order) == [0, 2] or sorted(Salience().rank(found).order) == [1, 2]


def test_the_focus_goes_before() -> None:
    plain = list(Salience().rank(middle()).order)
    focused = list(Salience().rank(middle(focus="compute_table")).order)
    assert focused.index(3) <= plain.index(3)


def test_the_same_middle_is_ranked_the_same() -> None:
    assert Salience().rank(middle()) == Salience().rank(middle())


def test_words_of_the_task_are_what_is_near() -> None:
    assert task(middle(focus="the harbour")) == (
        "Make the tide table fast.",
        "Now look at the gauge importer, please.",
        "the harbour",
    )
    order = list(WordOverlap().rank(middle()).order)
    assert order[0] in (2, 3, 4)
    assert 0 not in order
    assert next(iter(WordOverlap().rank(middle(focus="harmonic sum")).order)) in (3, 4)


def test_languages_without_blanks_are_near_by_their_characters() -> None:
    chat = conversation(user("潮位表を速くして"), says("天気がいいですね"), says("潮位表の計算が遅い"), says("はい"))
    found = Middle(
        transcript=chat, blocks=(range(1, 2), range(2, 3), range(3, 4)), tokens=(9, 9, 9), room_tokens=9, kept=(0,)
    )
    assert next(iter(WordOverlap().rank(found).order)) == 1


def test_the_settings_name_who_ranks() -> None:
    assert isinstance(importance_of(Keep(by=SMART)), Salience)
    assert isinstance(importance_of(Keep(by=SEMANTIC)), WordOverlap)
    assert importance_of(Keep()) is None
    assert importance_of(Keep(by="hierarchical")) is None
