"""The user's words: verbatim, the budget shared fairly, first and newest preferred."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from talk import answer, call, meter, ran, says, told, user

from compactor_cli.digest.user_words import said, user_items, water_level

LONG = "please keep the public names of the module as they are and write a test for each of them "


def test_messages_stand_verbatim_in_order_with_their_records() -> None:
    found = said(told(user(LONG + "one"), says("ok"), user(LONG + "two")))
    shown = user_items(found, 500, meter())
    assert [(item.text, item.records) for item in shown] == [(LONG + "one", (0,)), (LONG + "two", (2,))]


def test_the_users_lists_stay_word_for_word() -> None:
    found = said(told(user("Q: what happens if:\n- the agent is running\n\n- a human makes a change to it?")))
    assert found[0].text == "Q: what happens if: - the agent is running - a human makes a change to it?"


def test_a_long_message_keeps_both_ends_and_leaves_room_for_the_others() -> None:
    paste = " ".join(f"word{number}" for number in range(4_000))
    shown = user_items(said(told(user(LONG), user("start " + paste + " the end"), user(LONG + "last"))), 300, meter())
    assert [item.text for item in shown][::2] == [LONG.strip(), LONG + "last"]
    middle = shown[1].text
    assert middle.startswith("start word0")
    assert middle.endswith("the end")
    assert "…" in middle
    assert set(middle.split()) <= {*paste.split(), "start", "the", "end", "…"}


def test_newest_and_first_go_before_the_ones_between() -> None:
    found = said(told(*(user(f"{LONG}number {number}") for number in range(40))))
    shown = [item.records[0] for item in user_items(found, 100, meter())]
    assert shown == [0, *range(41 - len(shown), 40)]
    assert len(shown) < 8


def test_what_the_user_typed_when_turning_a_call_down_is_said_too() -> None:
    refused = "The user doesn't want to proceed. To tell you, the user said:\nuse the new client, not the old one"
    found = said(told(call("Edit", "1", file_path="a"), answer(refused, "1", is_error=True)))
    assert [message.text for message in found] == ["use the new client, not the old one"]


def test_a_message_said_twice_is_there_once() -> None:
    assert [message.record for message in said(told(user(LONG), says("x"), user(LONG)))] == [2]


@given(st.lists(st.integers(0, 1_000), max_size=30), st.integers(0, 5_000))
def test_water_fills_to_the_budget(costs: list[int], budget: int) -> None:
    level = water_level(costs, budget)
    assert sum(min(cost, level) for cost in costs) <= budget
    if any(cost > level for cost in costs):
        assert sum(min(cost, level + 1) for cost in costs) > budget


def test_a_short_reply_keeps_what_it_replies_to() -> None:
    offer = "The cache is stale. Shall I delete it and build again? It takes a minute."
    found = said(told(user(LONG), says(offer), user("yes, do that"), *ran("make", "ok"), user("and now the docs")))
    assert [one.answers for one in found] == ["", "Shall I delete it and build again?", ""]
    assert found[1].asked == 1
