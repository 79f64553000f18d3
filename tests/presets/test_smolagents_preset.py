"""`smolagents`: middle-out text, sentence by sentence."""

from __future__ import annotations

from preset_cases import SYSTEM, assistant, call, compacted, is_stable, planned, preset, result, user

SMOL = preset("smolagents")


def shown(text: str) -> str:
    _, after = compacted([SYSTEM, user("go"), call("x"), result("x", text), assistant("ok")], SMOL)
    found: str = after[3]["content"]
    return found


def test_a_text_over_20_000_characters_keeps_its_first_and_last_halves_around_a_marker() -> None:
    text = "a" * 15_000 + "b" * 15_000
    marker = "\n..._This content has been truncated to stay below 20000 characters_...\n"
    assert shown(text) == "a" * 10_000 + marker + "b" * 10_000


def test_one_of_20_000_stays() -> None:
    assert shown("a" * 20_000) == "a" * 20_000


def test_whoever_speaks() -> None:
    _, after = compacted([SYSTEM, user("u" * 40_000), assistant("a" * 40_000)], SMOL)
    assert [len(message["content"]) for message in after[1:]] == [20_072, 20_072]


def test_the_system_is_never_cut() -> None:
    long_system = {"role": "system", "content": "s" * 40_000}
    assert not planned([long_system, user("hello")], SMOL).changes


def test_no_message_is_added_or_removed() -> None:
    messages = [SYSTEM, user("go"), call("x"), result("x", "r" * 50_000), assistant("ok")]
    assert len(compacted(messages, SMOL)[1]) == len(messages)


def test_a_second_run_changes_nothing() -> None:
    assert is_stable([SYSTEM, user("go"), call("x"), result("x", "r" * 50_000)], SMOL)
