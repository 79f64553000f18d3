"""Actions and what tools were asked about: what a conversation without files has for state."""

from __future__ import annotations

import pytest
from compactor_cli.digest.actions import action_items
from compactor_cli.digest.tool_use import tool_items
from talk import answer, call, digest, meter, says, talk, texts, told, user

from compactor_cli.digest.language import words_of
from compactor_cli.digest.tools import is_lookup
from compactor_cli.model.summary import Section

EN = words_of("en")
BOOKING = (
    user("I am lena_hoff_12, move me to the morning flight please"),
    call("get_user_details", "a", user_id="lena_hoff_12"),
    answer('{"name": "Lena Hoff", "reservations": ["QX41ZP"]}', "a"),
    call("get_reservation_details", "b", reservation_id="QX41ZP"),
    answer('{"flights": [{"flight_number": "KL881"}]}', "b"),
    says("The morning flight KL877 costs 40 more. Shall I?"),
    user("yes"),
    call("update_reservation", "c", reservation_id="QX41ZP", flights=[{"flight_number": "KL877"}], payment_id="card_7"),
    answer('{"status": "changed"}', "c"),
    call("send_certificate", "d", user_id="lena_hoff_12", amount=50),
    answer("Error: certificates need a delay", "d"),
)


def test_actions_are_told_with_their_arguments_and_outcome_newest_first() -> None:
    found = [item.text for item in action_items(told(*BOOKING), 200, meter(), EN)]
    assert found == [
        "send_certificate(user_id=lena_hoff_12, amount=50) → failed: Error: certificates need a delay",
        "update_reservation(reservation_id=QX41ZP, flight_number=KL877, payment_id=card_7) → ok",
    ]


def test_where_room_is_short_an_action_is_told_with_fewer_arguments() -> None:
    long = call("book_table", guest="lena_hoff_12", place="Harbour House", time="19:30", seats=4, wish="by the window")
    assert [item.text for item in action_items(told(long), 24, meter(), EN)] == [
        "book_table(guest=lena_hoff_12, place=Harbour House, time=19:30, seats=4, …)"
    ]
    (whole,) = action_items(told(long), 240, meter(), EN)
    assert whole.text.endswith("seats=4, wish=by the window)")


def test_empty_arguments_are_not_told() -> None:
    change = call("modify_cart", to_remove=[], to_add=[{"product": "olive", "count": 1}], note="")
    (item,) = action_items(told(change), 200, meter(), EN)
    assert item.text == "modify_cart(product=olive, count=1)"


def test_equal_actions_are_told_once() -> None:
    again = told(*BOOKING[:-2], *BOOKING[7:9])
    assert len(action_items(again, 200, meter(), EN)) == 1


def test_looking_up_is_no_action_but_what_was_looked_up_is_told() -> None:
    (item,) = tool_items(told(*BOOKING), 200, meter(), EN)
    assert "get_user_details ×1 (user_id: lena_hoff_12)" in item.text
    assert "get_reservation_details ×1 (reservation_id: QX41ZP)" in item.text
    assert item.text.index("get_reservation_details") < item.text.index("update_reservation")


@pytest.mark.parametrize("name", ["get_order", "mcp__shop__find_user", "searchFlights", "Lookup", "shop.list-items"])
def test_names_of_lookups(name: str) -> None:
    assert is_lookup(name)


@pytest.mark.parametrize("name", ["book_reservation", "getaway_booking", "mcp__get__send", "cancelOrder", "finder"])
def test_names_of_actions(name: str) -> None:
    assert not is_lookup(name)


def test_a_small_summary_of_a_service_call_names_customer_reservation_and_change() -> None:
    one = digest(talk(*BOOKING), 400)
    shown = "\n".join(texts(one, Section.COMMANDS))
    assert "lena_hoff_12" in shown
    assert "update_reservation(reservation_id=QX41ZP" in shown
