"""Dialogues over a service: what calls did, what was looked up, what was offered and what of it was meant."""

from __future__ import annotations

import json
from typing import Any

from conversation import answer, call, conversation, digest, rendered, says, user

from compactor_cli.model.transcript import Message


def told(*messages: Message | tuple[Message, ...], tokens: int = 3_000) -> str:
    return rendered(digest(conversation(user("I need your help with a trip"), *messages), tokens).summary)


def did(tool: str, number: str, result: object, /, **arguments: Any) -> tuple[Message, Message]:
    text = result if isinstance(result, str) else json.dumps(result)
    return call(tool, number, **arguments), answer(text, number)


TRIP = {"user_id": "mia_li_3668", "cabin": "economy", "flights": [{"number": "HAT136"}, {"number": "HAT039"}]}


def test_of_two_bookings_the_older_one_shows_what_was_different() -> None:
    first = did("book_trip", "1", {"reservation_id": "HATHAT"}, **TRIP, payment="certificate_750")
    second = did("book_trip", "2", {"reservation_id": "HATHAU"}, **TRIP, payment="credit_card_442")
    shown = told(*first, user("rather with my card please, which is the Visa"), *second)
    assert "book_trip(certificate_750, …) → reservation_id HATHAT" in shown
    assert "book_trip(mia_li_3668, economy, flights HAT136; HAT039, credit_card_442) → reservation_id HATHAU" in shown


def test_a_call_that_failed_stands_where_no_later_one_could_use_what_the_error_names() -> None:
    failed = did("book_trip", "1", "Error: payment method certificate_750 not found", **TRIP, payment="certificate_750")
    slip = did("book_trip", "2", "Error: the amount does not add up", **TRIP, payment="credit_card_442", amount=1)
    went_well = did("book_trip", "3", {"reservation_id": "HATHAU"}, **TRIP, payment="credit_card_442", amount=305)
    shown = told(*failed, *slip, *went_well)
    assert "book_trip(certificate_750, …) → failed: Error: payment method certificate_750 not found" in shown
    assert "add up" not in shown
