"""Dialogues over a service: what calls did, what was looked up, what was offered and what of it was meant."""

from __future__ import annotations

import json
import re
from typing import Any

from conversation import answer, call, conversation, digest, ran, rendered, says, texts, user

from compactor_cli.model.summary import Section
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


def test_a_list_that_a_call_sent_empty_is_stated() -> None:
    shown = told(*did("submit_report", "1", "The report was accepted.", findings=[]))
    assert "submit_report(findings: []) → The report was accepted." in shown
    assert "findings=" not in shown


def test_a_call_that_failed_stands_where_no_later_one_could_use_what_the_error_names() -> None:
    failed = did("book_trip", "1", "Error: payment method certificate_750 not found", **TRIP, payment="certificate_750")
    slip = did("book_trip", "2", "Error: the amount does not add up", **TRIP, payment="credit_card_442", amount=1)
    went_well = did("book_trip", "3", {"reservation_id": "HATHAU"}, **TRIP, payment="credit_card_442", amount=305)
    shown = told(*failed, *slip, *went_well)
    assert "book_trip(certificate_750, …) → failed: Error: payment method certificate_750 not found" in shown
    assert "add up" not in shown


def test_of_the_rows_of_an_answer_the_one_that_was_booked_stands_before_those_that_were_only_offered() -> None:
    flights = [{"flight_number": f"HAT{n}", "seats": f"rows {n} to {n + 9}"} for n in range(201, 219)]
    offered = says(f"There are {', '.join(one['flight_number'] for one in flights)}. Which of them do you take?")
    session = (
        did("search_flights", "1", flights, to="RNO"), offered, user("the one at night please, whichever that is"),
        did("book_trip", "2", {"reservation_id": "HATHAT"}, number="HAT213"),
    )  # fmt: skip
    (looked_up,) = (line for line in told(*session, tokens=160).split("\n") if "search_flights" in line)
    assert "HAT213" in looked_up
    assert len(re.findall(r"HAT2\d\d", looked_up)) < 4


def test_of_the_objects_that_were_looked_up_one_by_one_the_one_that_is_spoken_of_stands() -> None:
    trips = [
        did(
            "get_trip",
            str(n),
            {"trip_id": f"KA7I6{n}", "owner": "ada_72", "seat": f"seat{n} by the aisle"},
            id=f"KA7I6{n}",
        )
        for n in range(6)
    ]
    asked = user("please change my flight back from Denver, I do not remember which trip that is")
    shown = told(
        asked,
        *trips,
        says("It is KA7I63. Which seat by the aisle?"),
        user("the one of ada_72 in the middle"),
        tokens=130,
    )
    assert "get_trip(KA7I63)" in shown
    assert "get_trip(KA7I65)" not in shown


def options(count: int) -> str:
    return "\n\n".join(
        f"{n}. **Flight HAT{n}18 & HAT{n}39**\n   - **First leg HAT{n}18**\n     - Departure: {n}6:00\n"
        f"     - Arrival: {n}8:30\n   - Total price: ${n}61"
        for n in range(1, count + 1)
    )


def test_an_option_that_the_user_takes_by_its_number_stands_with_all_that_was_said_of_it() -> None:
    offered = says(f"These are the flights:\n\n{options(7)}\n\nPlease let me know which one you would like to book.")
    shown = told(offered, user("I'll go with the second option, since it is the cheaper one of them"), tokens=330)
    assert (
        "2. Flight HAT218 & HAT239 · First leg HAT218 · Departure: 26:00 · Arrival: 28:30 · Total price: $261" in shown
    )


def test_of_the_options_of_a_message_the_one_that_was_taken_stands_before_the_others() -> None:
    offered = says(f"These are the flights:\n\n{options(4)}\n\nAll of them have a stop.")
    booked = did("book_trip", "1", "Error: no seats", flights=["HAT218", "HAT239"])
    asked = user("take the one that is the cheapest, please"), says("I try."), booked, says("There are no seats left.")
    shown = told(offered, *asked, user("can you please try it again?"), tokens=180)
    assert "Departure: 26:00" in shown
    assert not any(f"Departure: {n}6:00" in shown for n in (1, 3, 4))


def now(text: str) -> str:
    return text.partition("## Now")[2].partition("\n## ")[0]


def test_an_answer_to_a_question_stands_with_the_question_though_it_asks_for_more() -> None:
    account = did("get_user", "1", {"user_id": "ada_72", "accounts": ["SEPA-771", "SEPA-802"]}, name="Ada Lovelace")
    asks = says("There is no bonus this year. From which account shall we take it, the one in 4410 or in 0937?")
    text = "0937 please, from August. But book it only when it is clear that the old contract costs me nothing."
    assert "- In reply to: There is no bonus this year. From which account" in now(told(account, asks, user(text)))


def test_what_that_is_stands_with_a_request_that_points_at_it() -> None:
    failed = did("book_trip", "1", "Error: no seats on HAT229", flight="HAT229", cabin="economy")
    asks = says("There are no seats in economy on HAT229. Would you like business class for this leg of the journey?")
    shown = told(failed, asks, user("Could you upgrade me to business class for that segment, please?"))
    assert "business class for this leg of the journey?" in now(shown)


def test_the_options_that_the_assistant_offered_stand_somewhere() -> None:
    offered = says(f"These are the flights:\n\n{options(3)}\n\nPlease let me know which one you would like to book.")
    account = did("get_user", "1", {"user_id": "ada_72", "cards": ["visa_4410"]}, name="Ada Lovelace")
    later = user("what do they cost with a suitcase for each of the two of us?"), says("A suitcase costs $50.")
    shown = told(account, offered, *later, user("and without one?"), tokens=600)
    assert all(f"HAT{n}18" in shown for n in (1, 2, 3))


def test_a_calculation_stands_with_all_that_is_said_of_the_option_that_it_is_for() -> None:
    sums = [did("calculate", str(n), f"{n * 300 + 600}.0", expression=f"({n}04 + 202) * 3") for n in (1, 2)]
    listed = "\n".join(
        f"{n}. **Option {n}:**\n   - Flight HAT19{n} on May 2{n}\n   - Cost difference: ${n * 300 + 600}"
        for n in (1, 2)
    )
    shown = told(*sums, says(f"You can have:\n\n{listed}\n\nWhich one shall it be?"), user("that is too much for me"))
    assert '→ 1200.0: "2. Option 2: Flight HAT192 on May 22 · Cost difference: $1200"' in shown


def test_of_the_fields_of_options_those_that_differ_stand_and_what_is_left_out_is_marked() -> None:
    listed = "\n".join(
        f"{n}. **Flight {n}**\n   - Number: HAT10{n}\n   - Cabin: {cabin}\n   - Price: ${n}10\n"
        "   - Terminal: the old one at the harbour"
        for n, cabin in ((1, "economy"), (2, "business"))
    )
    asks = says(f"These are free:\n\n{listed}\n\nShall I book both of them for you?")
    before = [
        says(
            f"The harbour of island {n} is closed in winter, because the ferries wait there for repairs of their hulls."
        )
        for n in range(9)
    ]
    reply = now(told(*before, asks, user("Yes, please do that."), tokens=260)).partition("In reply to: ")[2]
    assert "HAT101 · Cabin: economy · $110 … 2. Flight 2 · HAT102 · Cabin: business · $210 …" in reply


def test_an_answer_that_says_so_in_its_members_failed() -> None:
    shown = told(
        did("book_trip", "1", {"error": "the reading of the old meter is missing", "field": "reading"}, trip="KA7I60"),
        did("send_mail", "2", {"ok": False, "message": "no such address as ada@example"}, to="ada@example"),
        did("get_mail", "3", {"ok": True, "error": None, "subject": "the trip to Reno"}, id="M77120"),
    )
    assert "book_trip(KA7I60) → failed: the reading of the old meter is missing" in shown
    assert "send_mail(ada@example) → failed: no such address as ada@example" in shown
    assert shown.count("failed") == 2


def test_an_object_that_is_shown_without_some_of_its_members_says_so() -> None:
    trip = {"trip_id": "KA7I60", "cabin": "economy", "gate": "14B at the far end", "desk": "a grey one by the stairs"}
    asked = user("is KA7I60 in economy?"), did("get_trip", "1", trip, id="KA7I60"), says("KA7I60 is in economy.")
    long_talk = tuple(one for n in range(9) for one in (user(f"and what of my idea {n}?"), says(f"Idea {n} is fine.")))
    assert "get_trip(KA7I60): economy …" in told(*asked, *long_talk, tokens=230)
    assert "get_trip(KA7I60): economy, 14B at the far end, a grey one" in told(*asked)


def test_what_the_assistant_asked_for_is_not_told_any_more_when_the_user_has_given_it() -> None:
    asks = says(
        "To assist you I will need your user ID. Please share the ID once you find it."
        "\n\nThe desk is closed on Sundays."
    )
    account = did("get_user", "1", {"user_id": "ada_72", "trips": ["KA7I60", "AQLBTL"]}, name="ada_72")
    given = user("My user ID is ada_72, I have found it in an old letter.")
    shown = told(asks, given, account, says("You have two."), user("which are mine?"))
    assert "The desk is closed on Sundays." in shown
    assert not any(text in shown for text in ("need your user ID", "Please share"))
    assert "get_user(ada_72): trips: KA7I60, AQLBTL" in shown


def test_an_id_that_a_call_was_made_with_is_no_decision() -> None:
    session = (
        says("Could you please provide your user ID?"), user("Sure, it's ada_72."),
        did("get_user", "1", {"user_id": "ada_72", "trips": ["KA7I60"]}, id="ada_72"), says("It is KA7I60."),
    )  # fmt: skip
    assert "## Settled" not in told(*session)


def test_a_look_up_in_another_language_is_told_by_what_it_showed() -> None:
    tariffs = [{"tarif": "T-ECO12", "preis": 29.4}, {"tarif": "T-FLEX", "preis": 30.8}]
    shown = told(
        did("tarife_suchen", "1", tariffs, plz="88131"), did("buscar_vuelo", "2", {"vuelo": "HAT136"}, fecha="lunes"),
        says("Da gibt es T-ECO12 und T-FLEX."), user("T-FLEX bitte, und dann noch etwas anderes"),
    )  # fmt: skip
    assert "tarife_suchen(88131): T-ECO12, preis 29.4 · T-FLEX, 30.8" in shown
    assert "→ ok" not in shown


def test_what_a_server_only_shows_is_no_deed_whatever_stands_around_its_name() -> None:
    edited = call("Edit", "e", file_path="gauge.py", old_string="a", new_string="b"), answer("ok", "e")
    for name in ("github-mcp-server-search_code", "kubernetes-pods_list", "kubernetes-configuration_view"):
        looked = call(name, "l", query="the gauge"), answer('{"items": [{"name": "gauge.py"}]}', "l")
        acted = call("tides-create_list", "c", name="ebbs"), answer('{"id": "L-12345"}', "c")
        one = digest(conversation(user("where is it?"), *looked, *acted, *edited, ran("make", "done")), 2_000)
        facts = " ".join(texts(one, Section.COMMANDS))
        assert name not in facts
        assert "tides-create_list" in facts


def test_a_number_that_an_action_was_given_its_answer_does_not_repeat() -> None:
    shown = told(did("book_trip", "1", {"reservation_id": "HATHAT", "bags": 3, "fare": 152}, bags=3))
    assert shown.count("bags 3") == 1
    assert "fare 152" in shown


def test_what_failed_stands_before_what_was_looked_up() -> None:
    failed = did("book_trip", "1", "Error: payment method certificate_750 not found", payment="certificate_750")
    flights = [{"flight_number": f"HAT{n}", "seats": f"rows {n} to {n + 9}"} for n in range(201, 219)]
    looked_up = did("search_flights", "2", flights, to="RNO")
    shown = told(failed, looked_up, says("There are HAT201, HAT207 and HAT213."), user("which is best?"), tokens=130)
    assert "certificate_750 not found" in shown


def test_what_a_tool_to_think_with_was_given_is_a_thought() -> None:
    thought = "Basic economy was bought without insurance, so that KC18K6 must stay as it is."
    looked = did("get_trip", "1", {"trip_id": "KC18K6", "cabin": "basic_economy"}, trip_id="KC18K6")
    shown = told(*looked, *did("think", "2", "", thought=thought), *did("cancel_trip", "3", "ok", trip_id="NM1VX1"))
    assert f"thought: {thought}" in shown


def test_the_legs_of_one_journey_stand_together() -> None:
    def leg(number: str, origin: str, destination: str, economy: int) -> dict[str, object]:
        return {"flight": number, "origin": origin, "destination": destination, "economy": economy}

    by_seattle = [leg("HAT069", "JFK", "SEA", 123), leg("HAT258", "SEA", "SFO", 167)]
    by_denver = [leg("HAT057", "JFK", "DEN", 150), leg("HAT274", "DEN", "SFO", 198)]
    found = did("search_onestop", "1", [by_seattle, by_denver], origin="JFK", destination="SFO")
    shown = told(user("the cheapest one from JFK to SFO please"), *found, says("There are two journeys."))
    assert "HAT069 + HAT258: HAT069, origin JFK, destination SEA, economy 123 · HAT258, SEA, SFO, 167" in shown
    assert "HAT057 + HAT274: HAT057, origin JFK, destination DEN, economy 150 · HAT274, DEN, SFO, 198" in shown


def test_what_cannot_be_had_stands_before_what_can() -> None:
    denied = "Unfortunately, there are no nonstop trips available from JFK to MCO on May 22, in any cabin."
    given = "As expected, there are some nonstop trips available from JFK to PHX on May 23, in every cabin."
    talk = (says(f"{given}\n\n{denied}"), user("and what is there on May 22, for two of us?"))
    asks = (says("Which harbour do you leave from?"), user("from the north one please"))
    shown = told(user("cancel HATHAT and HATHAU"), *talk, *asks, tokens=140)
    assert (denied in shown, given in shown) == (True, False)


def test_a_page_is_named_by_its_address_and_where_it_holds_nothing_that_is_what_it_answered() -> None:
    page = "https://harbour.example/docs/latest/framework/guide/middleware-of-gauges"
    none = "# Gauges\n\nThe page content is truncated and doesn't include the middleware. Please share the whole page."
    asked = "Extract the complete documentation of the middleware of the gauges of the harbour."
    fetched = (call("WebFetch", "f", url=page, prompt=asked), answer(none, "f"))
    never = (call("WebFetch", "n", url=page, prompt=asked), answer("Sibling tool call errored", "n", is_error=True))
    edit = (call("Edit", "e", file_path="gauge.md", old_string="a", new_string="b"), answer("ok", "e"))
    one = digest(conversation(user("read the docs"), *fetched, *never, *edit, says("Noted.")), 2_000)
    text = rendered(one.summary)
    assert "framework/guide/middleware-of-gauges) → The page content is truncated and doesn't include" in text
    assert "Sibling" not in text


def test_members_of_what_was_looked_up_stand_with_their_object_alone() -> None:
    steps = [{"number": 1000 + n, "title": f"Measure gauge_{n}.rs", "is_blocked": n == 3} for n in range(8)]
    looked = [
        message
        for n in (16, 17)
        for message in did(
            "issue_get", f"{n}", json.dumps({"title": f"Tide {n}", "steps": steps}, indent=2), id=f"d-{n}"
        )
    ]
    one = digest(conversation(user("Find what is left of the tide."), *looked, says("I look at gauge_3.")), 2_000)
    assert any(text.startswith("issue_get(d-17): Tide 17") for text in texts(one, Section.COMMANDS))
    assert not any('"is_blocked":' in text for text in texts(one, Section.HISTORY))
