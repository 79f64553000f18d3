"""What the user wants: their words verbatim, refusals among them, the budget shared fairly."""

from __future__ import annotations

import json

import pytest
from conversation import (
    answer,
    call,
    conversation,
    count,
    digest,
    events_of,
    items,
    ran,
    rendered,
    request,
    says,
    texts,
    token_cache,
    user,
)
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.digest.analysis import analyse
from compactor_cli.digest.messages import is_remark, own_words, user_messages, without_data
from compactor_cli.digest.replies import last_question, pointed_at
from compactor_cli.digest.statements import water_level
from compactor_cli.digest.wants import condensed, rules_of, wants_items
from compactor_cli.model.summary import Item, Section
from compactor_cli.model.transcript import Message

LONG = "please keep the public names of the module as they are and write a test for each of them "
BUILD = ran("make", "ok")
REFUSED = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
WORDLESS = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def test_messages_stand_verbatim_in_order_with_their_records() -> None:
    said = (user(LONG + "one"), says("ok"), user(LONG + "two"), says("ok"), user(LONG + "3"))
    one = digest(conversation(*said, BUILD), 900)
    shown = [(item.text, item.records) for item in items(one, Section.USER)]
    assert shown == [(LONG + "one", (0,)), (LONG + "two", (2,))]
    assert texts(one, Section.TASK)[0].endswith(LONG + "3")


@pytest.mark.parametrize(
    "words",
    [
        "Why are you still calling the gauge in the shell when I told you to use the tide server?",
        "Didn't I say that the gauge is read by the tide server?",
        "why do you keep rounding?",
    ],
)
def test_a_question_that_comes_back_to_an_instruction_is_what_the_user_wants(words: str) -> None:
    done = (user(LONG), BUILD, says("Built."), user(words), says("You are right, I will."), user("Now " + LONG), BUILD)
    shown = texts(digest(conversation(*done), 900), Section.USER)
    assert any(text.startswith(words) for text in shown), shown
    asked = "Which of the two gauges is read by the tide server, and since when?"
    done = (user(LONG), BUILD, says("Built."), user(asked), says("The first."), user("Now " + LONG), BUILD)
    assert not any(text.startswith(asked) for text in texts(digest(conversation(*done), 900), Section.USER))


def test_the_users_lists_stay_word_for_word() -> None:
    found = user_messages(events_of(user("Q: what happens if:\n- the agent is running\n\n- a human makes a change?")))
    assert found[0].text == "Q: what happens if: - the agent is running - a human makes a change?"


def test_the_newest_request_stands_in_now_alone_even_where_now_quotes_it_from_its_title() -> None:
    session = conversation(user(LONG + "one"), says("ok"), user("Solve it.\nISSUE:\nUnion loses the order"), BUILD)
    now = Item(text="Asked: Union loses the order", records=(2,))
    shown = wants_items(analyse(request(session)), 900, token_cache(), shown=(now,))
    assert [item.text for item in shown] == [LONG + "one"]


def test_a_long_message_keeps_both_ends_and_leaves_room_for_the_others() -> None:
    paste = " ".join(f"word{number}" for number in range(4_000))
    session = conversation(
        user("First, " + LONG),
        says("ok"),
        user("start " + paste + " the end"),
        says("ok"),
        user(LONG + "mid"),
        says("ok"),
        user(LONG + "last"),
        BUILD,
    )
    shown = texts(digest(session, 2_000), Section.USER)
    assert [shown[0], shown[2]] == ["First, " + LONG.strip(), LONG + "mid"]
    assert shown[1].startswith("start word0")
    assert shown[1].endswith("the end")
    assert "…" in shown[1]
    assert set(shown[1].split()) <= {*paste.split(), "start", "the", "end", "…"}


def test_the_first_and_the_newest_go_before_the_ones_between() -> None:
    session = conversation(*((user(f"{LONG}number {number}"), says("ok")) for number in range(40)), BUILD)
    shown = [item.records[0] // 2 for item in items(digest(session, 1_000), Section.USER)]
    assert shown == [0, *range(40 - len(shown), 39)]
    assert 2 < len(shown) < 20


def test_a_rejected_call_is_the_users_word_with_what_it_stopped() -> None:
    session = conversation(
        user("Clean the fixtures up and commit what you have, then tell me what is left to do."),
        ran("git push origin main", REFUSED + "why does it touch the fixtures?", is_error=True),
        says("It rewrites their dates."),
    )
    one = digest(session, 1_500)
    assert 'Stopped by the user: `git push origin main` → "why does it touch the fixtures?"' in texts(one, Section.USER)
    assert texts(one, Section.ERRORS) == []
    assert not any("git push" in text for text in texts(one, Section.COMMANDS))


def test_a_call_rejected_without_a_word_is_stated_as_stopped() -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    session = conversation(user(LONG), ran("rm -rf build", refused, is_error=True), says("I leave it."))
    assert "Stopped by the user: `rm -rf build`" in texts(digest(session, 1_500), Section.USER)


def test_a_call_that_was_stopped_again_is_stated_once() -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    stops = [(*ran("rm -rf build", refused, is_error=True), says("I look again.")) for _ in range(3)]
    (stopped,) = [one for one in items(digest(conversation(user(LONG), *stops), 1_500), Section.USER) if one.records]
    assert (stopped.text, stopped.records) == ("Stopped by the user: `rm -rf build`", (8,))


def test_of_a_long_message_a_line_that_leads_what_is_quoted_stands_before_it() -> None:
    listed = "\n".join(f"    {number} + the gauge of harbour {number} counts its lines twice" for number in range(90))
    one = digest(conversation(user(f"again, this is not right:\n\n{listed}"), says("I see."), BUILD), 700)
    assert texts(one, Section.TASK)[0].startswith("Asked: again, this is not right: ")


def test_a_message_said_twice_is_there_once() -> None:
    found = user_messages(events_of(user(LONG), says("x"), user(LONG)))
    assert [message.record for message in found] == [2]


@given(st.lists(st.integers(0, 1_000), max_size=30), st.integers(0, 5_000))
def test_water_fills_to_the_budget(costs: list[int], budget: int) -> None:
    level = water_level(costs, budget)
    assert sum(min(cost, level) for cost in costs) <= budget
    if any(cost > level for cost in costs):
        assert sum(min(cost, level + 1) for cost in costs) > budget


def test_a_yes_to_an_offer_that_says_below_what_it_gives_replies_to_the_offer() -> None:
    gives = "\n".join(f"- the gauge {name} reads it" for name in ("north", "east", "south", "west", "harbour"))
    offer = says(f"The clock is shared.\n\n**Would you like me to split it?** It would mean:\n{gives}")
    found = user_messages(events_of(user("look at the clock"), offer, user("yes, please do")))
    assert found[-1].replies_to == "Would you like me to split it?"


def test_a_short_reply_keeps_what_it_replies_to() -> None:
    offer = "The cache is stale. Shall I delete it and build again? It takes a minute."
    found = user_messages(
        events_of(user(LONG), says(offer), user("yes, do that"), *ran("make", "ok"), user("and now the docs"))
    )
    assert [one.replies_to for one in found] == ["", "Shall I delete it and build again?", ""]
    assert found[1].asked == 1


def test_the_newest_request_is_quoted_once_however_long_it_is() -> None:
    plan = "Implement this plan. " + " ".join(
        f"Step {number} moves table {number} to the new store." for number in range(80)
    )
    one = digest(
        conversation(user("What would you change first?"), says("The store."), user(plan), says("I begin.")), 900
    )
    said = "\n".join(item.text for part in one.summary.sections for item in part.items)
    assert said.count("Implement this plan.") == 1


def test_a_message_that_opens_a_turn_in_the_history_is_not_listed_again() -> None:
    wish = "Keep the old column order in the export, please."
    told = "The export now writes the columns in the old order, gauge first and then the time, for all readings."
    one = digest(
        conversation(user(wish), says(told), user("thanks, and now commit all of it to main"), says("Done.")), 2_000
    )
    said = "\n".join(item.text for part in one.summary.sections for item in part.items)
    assert said.count(wish) == 1


def test_of_a_long_message_the_requests_are_kept_before_what_it_reports() -> None:
    told = "The readings of the gauges came in late and the table on the page was empty for most of the night. "
    asked = "Please keep the old page until the new one is accepted."
    long = f"Here is what happened yesterday. {told * 9}{asked} {told.replace('gauges', 'valves') * 9}"
    session = conversation(user(f"First, {LONG}"), says("ok"), user(long), says("ok"), user(LONG + "last"), BUILD)
    shown = texts(digest(session, 600), Section.USER)
    assert any(asked in text and "…" in text for text in shown)


RULES = "# Gauges\n\nThe readings come from twelve gauges.\n\n- NEVER write to the live database.\n- Run `make lint`.\n"


def test_a_rule_of_the_project_file_that_was_read_is_carried_with_the_name_of_the_file() -> None:
    read = (call("Read", "r", file_path="/srv/gauges/AGENTS.md"), answer(RULES, "r"))
    one = digest(conversation(user(LONG), read, says("I begin.")), 1_500)
    assert [item for item in items(one, Section.USER) if "NEVER" in item.text] == [
        Item(text="AGENTS.md: NEVER write to the live database.", records=(2,))
    ]


def test_the_numbers_that_a_viewer_sets_before_the_lines_of_a_project_file_are_none_of_its_rules() -> None:
    viewed = "\n".join(f"{number}. {line}" for number, line in enumerate(RULES.split("\n"), 1))
    read = (call("view", "r", path="/srv/gauges/AGENTS.md"), answer(viewed, "r"))
    found = texts(digest(conversation(user(LONG), read, says("I begin.")), 1_500), Section.USER)
    assert "AGENTS.md: NEVER write to the live database." in found


def test_a_rule_that_goes_on_in_the_next_line_is_carried_whole() -> None:
    rules = "# Gauges\n\n- Rewriting a branch is fine; main\n  history must never be rewritten.\n"
    read = (call("Read", "r", file_path="/srv/gauges/AGENTS.md"), answer(rules, "r"))
    one = digest(conversation(user(LONG), read, says("I begin.")), 1_500)
    whole = "AGENTS.md: Rewriting a branch is fine; main history must never be rewritten."
    assert [text for text in texts(one, Section.USER) if "never" in text] == [whole]


def test_a_rule_of_them_is_carried_with_the_sentence_that_says_what_they_are() -> None:
    rules = "# Gauges\n\n- `raw/*.bin` are the only copies. Never write to them by hand.\n\nDo not use it twice.\n"
    read = (call("Read", "r", file_path="/srv/gauges/AGENTS.md"), answer(rules, "r"))
    found = texts(digest(conversation(user(LONG), read, says("I begin.")), 1_500), Section.USER)
    assert "AGENTS.md: `raw/*.bin` are the only copies. Never write to them by hand." in found
    assert "AGENTS.md: Do not use it twice." in found


def test_a_rule_is_carried_with_all_that_says_what_it_is_about() -> None:
    rules = (
        "# Gauges\n\nSetting `cleanup` deletes old readings. This once took the year of **1998**. Do not change this"
        " without a word.\n\nThe folder `old/` is **left over**. Do not commit from it.\n"
    )
    read = (call("Read", "r", file_path="/srv/gauges/AGENTS.md"), answer(rules, "r"))
    found = [item.text for item in rules_of(analyse(request(conversation(user(LONG), read))))]
    assert found == [
        "AGENTS.md: Setting `cleanup` deletes old readings. This once took the year of 1998. Do not change this"
        " without a word.",
        "AGENTS.md: The folder `old/` is left over. Do not commit from it.",
    ]


def test_what_was_to_be_explained_and_nothing_else_is_wanted_no_more() -> None:
    asked = user("What do you mean, no changes? Explain what happened to me, don't do anything."), says("It compared.")
    one = digest(conversation(user(LONG), says("Done."), *asked, user("Fix the cap."), says("Fixed.")), 1_500)
    assert not any("anything" in text for text in texts(one, Section.USER))


def test_a_rule_in_another_file_that_was_read_is_no_rule_of_the_project() -> None:
    read = (call("Read", "r", file_path="/srv/gauges/vendor/README.md"), answer(RULES, "r"))
    one = digest(conversation(user(LONG), read, says("I begin.")), 1_500)
    assert not any("NEVER" in text for text in texts(one, Section.USER))


def test_a_rule_that_the_kept_records_hold_is_not_stated_again() -> None:
    sent = user(f"# AGENTS.md instructions for /srv/gauges\n\n<INSTRUCTIONS>\n{RULES}</INSTRUCTIONS>")
    read = (call("Read", "r", file_path="/srv/gauges/AGENTS.md"), answer(RULES, "r"))
    session = conversation(sent, user(LONG), read, says("I begin."))
    one = digest(session, 1_500, covered=(1, 2, 3, 4), kept=(0,))
    assert not any("NEVER" in text for text in texts(one, Section.USER))


def test_a_rule_of_the_user_is_stated_even_where_there_is_no_room_for_the_message() -> None:
    filler = "We talked about that for a long time and it is as it is, so the gauges of the north stay. "
    ruled = user(f"{filler * 12}You MUST NOT touch the fixtures. {filler * 12}")
    others = [user(f"{LONG}number {number}") for number in range(40)]
    one = digest(conversation(user(LONG), ruled, *others), 1_000)
    assert any("You MUST NOT touch the fixtures." in text for text in texts(one, Section.USER))


def test_the_words_of_a_refusal_are_the_request() -> None:
    refused = ran("git checkout -b next", REFUSED + "we are on a branch already, check its parent", is_error=True)
    asked = "Carry out the plan for the gauges of the north, step by step."
    assert texts(digest(conversation(user(asked), refused)), Section.TASK)[0].startswith("Asked: we are on a branch")


def test_a_long_report_of_a_bug_keeps_what_it_is_about_before_the_rules_that_every_task_ends_with() -> None:
    versions = "\n".join(f"   filepath: .../site-packages/lib{n}/libgomp-a34b3233.so.1.{n}" for n in range(12))
    rules = "\n".join(f"{n}. You must always wait for feedback after command number {n}." for n in range(1, 40))
    report = (
        "ColumnTransformer ignores its remainder.\n\nset_output() reaches the sub-transformers but not the remainder. "
        "So the results are not gathered as frames.\n\n"
        f"```\n{versions}\nValueError: frames expected\n```\n\n{rules}\n"
    )
    shown = rendered(digest(conversation(user(report), says("I open the file."), call("Read", "1")), 400).summary)
    assert "set_output() reaches the sub-transformers but not the remainder." in shown
    assert "filepath" not in shown
    assert "You must always wait for feedback" in shown


LISTED = says(
    "Steps:\n1. I read src/store.py\n2. I read src/clock.py\n\nIssues:\n\n| # | Issue |\n|---|---|\n"
    "| 1 | The drift is read as local time |\n| 2 | The second hour of October is lost |\n\n"
    "| Option | What it does |\n|---|---|\n| **A** | a lock on the table |\n| **B** | one run for each gauge |\n\n"
    "Which option?"
)


def test_a_bug_is_told_on_from_its_title_and_not_by_whichever_sentences_are_short_enough() -> None:
    title = "Naming a gauge by its harbour and number drops the second zero of every reading that the feed sends."
    cause = "The reader strips zeros from both ends of the text. The easy way is to strip them in front only."
    rules = "1. Look into the code first.\n2. Write one command.\n3. Then fix it.\n4. Check every change again. "
    one = digest(conversation(user(f"<report>\n{title}\n{cause}\n</report>\n{rules * 24}"), says("I look.")), 420)
    request = texts(one, Section.TASK)[0]
    assert f"{title} {cause}" in request


def test_a_request_that_points_at_an_entry_of_a_list_is_shown_with_the_entry() -> None:
    one = digest(conversation(user("what is wrong with it?"), LISTED, user("can you fix issue 2"), says("Yes.")), 1_500)
    shown = texts(one, Section.TASK)
    assert shown[:2] == [
        "Asked: can you fix issue 2",
        "In reply to: 2. The second hour of October is lost … Which option?",
    ]


def test_a_message_that_names_an_entry_by_its_number_is_quoted_with_the_entry() -> None:
    would = user("would B have helped with both of the harbours?")
    session = conversation(user("what is wrong with it?"), LISTED, would, says("Yes."), user("Then do that now."))
    shown = rendered(digest(session, 1_500).summary)
    assert "would B have helped with both of the harbours? (b. one run for each gauge)" in shown


def test_of_several_entries_that_a_message_names_all_are_shown_and_none_of_a_list_of_reasons() -> None:
    offer = "1. one run for each gauge\n2. a lock on the table\n\nI take 1 because:\n1. it is small\n2. it is safe"
    assert pointed_at("1 and 2", [offer.partition("\n\n")[0]]) == "1. one run for each gauge · 2. a lock on the table"
    assert pointed_at("so I'd go with option 2 for now", [offer]) == "2. a lock on the table"
    assert pointed_at("yes, all 2", [offer]) == ""
    drawn = "### Option 1: Rails\n\n### Option 2: Graph\n\nSteps of option 1:\n1. Track\n2. Compare\n\nShall I?"
    assert pointed_at("draw it in the style of option 2", [drawn]) == "2. Graph"


def test_a_reply_that_counts_what_it_means_stands_with_the_list_of_that_length() -> None:
    said = (
        "Three are done:\n\n- a\n- b\n- c\n\nTwo I could not see:\n\n- **the floor** of the gauge\n- the `tide`\n\nSo."
    )
    assert pointed_at("OK. verify those two", [said]) == "the floor of the gauge · the `tide`"
    assert pointed_at("do both", [said]) == "the floor of the gauge · the `tide`"
    assert pointed_at("all three again", [said]) == "a · b · c"
    assert pointed_at("run both tests", [said]) == ""
    assert pointed_at("those four", [said]) == ""


def test_a_number_that_counts_something_points_at_no_entry() -> None:
    counted = user("there were 2 sessions before I closed them and I had 1 more on the other machine of the harbour")
    one = digest(conversation(user("what is wrong with it?"), LISTED, counted, says("Yes.")), 1_500)
    assert "October" not in texts(one, Section.TASK)[0]
    assert not any("(2. " in text for text in texts(one, Section.USER))


def test_what_a_client_writes_for_a_user_who_wants_to_talk_is_not_the_users_word() -> None:
    refused = (
        "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
        "The user wants to clarify these questions.\n    This means they may have additional information."
    )
    asked = (call("AskUserQuestion", "1", questions=[]), answer(refused, "1", is_error=True))
    one = digest(conversation(user("plan the export of the readings"), asked, says("What is unclear?")), 1_500)
    assert "clarify" not in rendered(one.summary)


def test_in_a_conversation_without_work_on_files_what_the_user_said_stands_with_what_was_said_to_it() -> None:
    session = conversation(
        user("Which bed fits a room of 3.2 by 2.8 metres?"),
        says("A bunk bed for 420 euros, or two single beds along the walls for 380."),
        user("Then the bunk bed, but the rail must be 30 centimetres high."),
        says("Noted: bunk bed, 420 euros, with a rail of 30 centimetres."),
        user("And which colour for the walls?"),
        says("A light green, as she likes it, with water-based paint."),
        user("What about the curtains?"),
    )
    shown = texts(digest(session, 600), Section.HISTORY)
    assert shown[1].startswith('"Then the bunk bed, but the rail must be 30 centimetres high."\nNoted: ')


def test_a_call_that_the_user_refused_in_a_dialogue_over_a_service_is_stated_as_stopped() -> None:
    refused = (call("book_trip", "1", price=628), answer(REFUSED + "not before Monday", "1", is_error=True))
    one = digest(conversation(user("book the trip to Faro"), *refused, says("I wait.")), 900)
    assert 'Stopped by the user: `book_trip` → "not before Monday"' in rendered(one.summary)


def test_a_call_of_a_service_that_was_refused_and_made_again_as_the_user_wanted_is_stated_to_be_so() -> None:
    trip = {"to": "Faro", "guests": 2}
    refused = (call("book_trip", "1", **trip, price=628), answer(REFUSED + "not before Monday", "1", is_error=True))
    again = (call("book_trip", "2", **trip, price=540, day="Monday"), answer("booked: FA-7", "2"))
    other = (call("book_trip", "2", to="Porto", guests=1, price=90), answer("booked: PO-1", "2"))
    for later, is_again in ((again, True), (other, False)):
        session = conversation(user("book the trip to Faro"), *refused, *later, says("It is booked."))
        assert ("later edited or run" in rendered(digest(session, 900).summary)) is is_again


def test_a_refusal_whose_call_is_in_no_record_shows_the_users_words_and_fails_nothing() -> None:
    told, wordless = answer(REFUSED + "ask Jana about the tariff first", "gone", is_error=True), answer(REFUSED, "g2")
    asked = user("What does the tariff cost?"), says("Which tariff do you mean?"), user("The one of the new depot.")
    assert "ask Jana about the tariff first" in rendered(digest(conversation(told, *asked)).summary)
    assert texts(digest(conversation(wordless, says("What next?"))), Section.USER) == []


def test_a_limit_that_the_user_set_early_is_kept_before_newer_words() -> None:
    limit = "i would only want end to end tests for the store, anything else is useless"
    later = ((user(f"{LONG}number {number}"), says("ok")) for number in range(40))
    session = conversation(user("Read the store."), says("ok"), user(limit), says("ok"), *later, BUILD)
    assert limit in texts(digest(session, 1_000), Section.USER)
    whole = f"from now on write all readings of {', '.join(f'gauge {number}' for number in range(12))} in metres"
    later = ((user(f"{LONG}number {number}"), says("ok")) for number in range(40))
    session = conversation(user("Read the store."), says("ok"), user(whole), says("ok"), *later, BUILD)
    assert whole in texts(digest(session, 1_000), Section.USER)


def test_of_a_message_with_pasted_data_the_words_around_it_are_quoted() -> None:
    data = '{"type":"message","role":"assistant","content":[{"type":"call","id":"' + "7f3a" * 1600 + '"}]}'
    pasted = f"we need to tackle this bug:\n{data}\nthe reason is that a reading stands between call and answer"
    session = conversation(user(LONG), says("ok"), user(pasted), BUILD)
    shown = " ".join(texts(digest(session, 900), Section.TASK))
    assert "we need to tackle this bug: …" in shown
    assert "a reading stands between call and answer" in shown
    assert '"role"' not in shown
    lines = json.dumps({"log": {"pages": [{"id": f"page_{n}", "title": "tides"} for n in range(90)]}}, indent=2)
    pasted = f"only the page of the tides loads, without its style:\n{lines}\nis the path wrong?"
    shown = " ".join(texts(digest(conversation(user(LONG), says("ok"), user(pasted), BUILD), 900), Section.TASK))
    assert "only the page of the tides loads, without its style: …\nis the path wrong?" in shown


def test_of_a_pasted_page_its_beginning_its_errors_and_the_users_last_words_stay() -> None:
    page = [f"Gauges are instruments that station {n} reads by the hour, and panel {n} shows them." for n in range(60)]
    page[40] = "error: gauge CAS-02 is unknown"
    asked = "We need a cleaner way to read the gauges. Does this page help?"
    last = "I would rather not read them by hand."
    pasted = user("\n".join((asked, "", *page, last)))
    plan = user("\n".join(("Do as planned:", *(f"- {line}" for line in page))))
    shown = [one.text for one in user_messages(events_of(user(LONG), says("ok"), pasted, says("ok"), plan))]
    assert shown[1].startswith(asked)
    assert shown[1].endswith(f"{page[40]} …\n{last}")
    assert len(shown[1]) < 800
    assert page[59] in shown[2]


def test_a_plan_is_a_request_though_nobody_speaks_in_its_first_and_last_line() -> None:
    plan = (
        "Implement the following plan:\n# Clocks of the gauges\n1. Add `read_clock` to src/clock.py, no error hides.\n"
        "2. Remove the old `tick` from src/tide.py\n3. Run `make test` to verify no regressions"
    )
    session = (user(plan), BUILD, says("Done."), user("Which page of the handbook names the clocks?"), says("The 4th."))
    shown = rendered(digest(conversation(*session, user("thanks, go on then")), 2_000).summary)
    assert "Remove the old `tick`" in shown
    failed = "--- FAIL: TestTide (3.7s)\n    tide_test.go:7: low water\nFAIL"
    other = (user(plan), BUILD, says("Done."), user(failed), says("I look at it."), user("thanks, go on then"))
    wants = texts(digest(conversation(*other), 2_000), Section.USER)
    assert not any("low water" in text for text in wants)


def test_the_task_is_not_taken_for_a_pasted_page() -> None:
    task = "\n".join(f"Station {n} sends its readings twice after panel {n} was connected again." for n in range(60))
    assert user_messages(events_of(user(task)))[0].text == task


def test_a_patch_that_was_stopped_is_named_by_its_files_and_not_by_the_shell_that_it_went_through() -> None:
    patch = "*** Begin Patch\n*** Update File: src/gauge.py\n@@\n-a\n+b\n*** End Patch"
    refused = (call("shell", "1", command=["apply_patch", patch]), answer("patch rejected by user", "1", is_error=True))
    session = conversation(user(LONG), *refused, says("I leave it."), user(f"{LONG}again"), BUILD)
    assert "Stopped by the user: `apply_patch src/gauge.py`" in texts(digest(session, 1_500), Section.USER)


def _edit(number: str, told: str, path: str = "store.py") -> tuple[Message, Message]:
    is_error = told.startswith("The user")
    edit = call("Edit", number, file_path=path, old_string="load_items()", new_string="load_rows()")
    return edit, answer(told, number, is_error=is_error)


def test_what_the_user_says_next_is_the_reason_of_a_stop_without_a_word() -> None:
    stopped = (*_edit("1", WORDLESS), *_edit("2", WORDLESS, "clock.py"))
    reason = "why do you touch the store? it is read by the crane, and by the clerks at night"
    session = conversation(user(LONG), *stopped, user(reason), says("Then not."), user(f"{LONG}again"), BUILD)
    shown = rendered(digest(session, 1_500).summary)
    assert f"{reason} (Stopped by the user before that: `Edit store.py` · `Edit clock.py`)" in shown
    assert shown.count("Stopped") == 1


def test_a_stop_is_over_when_the_user_lets_the_file_be_changed_or_the_command_run_later() -> None:
    reasons = (*_edit("1", REFUSED + "wait, who reads it?"), *ran("git push", REFUSED + "pull first", is_error=True))
    silent = (*_edit("2", WORDLESS), user("go on"), *ran("rm -rf build", WORDLESS, is_error=True), says("I leave it."))
    done = (*_edit("3", "updated"), *ran("git push", "main -> main"))
    one = digest(conversation(user(LONG), reasons, silent, done, user(f"{LONG}again"), BUILD), 1_500)
    assert [item.text for item in items(one, Section.USER) if "Stopped" in item.text] == [
        'Stopped by the user: `Edit store.py` → "wait, who reads it?" (later edited or run)',
        'Stopped by the user: `git push` → "pull first" (later edited or run)',
        "Stopped by the user: `rm -rf build`",
    ]
    assert items(one, Section.USER)[0].records == (2, 11)


def test_a_stop_stands_while_only_other_files_were_changed() -> None:
    session = conversation(user(LONG), _edit("1", WORDLESS), says("ok"), _edit("2", "updated", "clock.py"), BUILD)
    assert "Stopped by the user: `Edit store.py`" in texts(digest(session, 1_500), Section.USER)


def test_a_message_that_was_typed_anew_stands_as_it_was_sent_at_last() -> None:
    first, again = (
        "are there changes of ours that can be deleted now?a",
        "are there changes of ours that can be deleted now?",
    )
    asked = user(first), user(f"{again}\nand yes, fix the gaps, they should be small")
    one = digest(conversation(user(LONG), says("ok"), *asked, says("Fixed."), user(f"{LONG}more"), BUILD), 900)
    assert rendered(one.summary).count(again) == 1


@pytest.mark.parametrize("line", ['{"level": 545, "gauge": "KRV1"},', "-" * 900, "a." * 900, "12:00:00 x", ""])
def test_a_message_of_nothing_but_data_is_quoted_in_part(line: str) -> None:
    assert len(own_words("\n".join([line] * 900))) <= 1_000


def test_a_long_paragraph_of_the_user_stays_whole() -> None:
    assert own_words(LONG * 40) == LONG * 40


def test_a_long_diff_in_a_request_is_left_out_and_no_list_below_it() -> None:
    added = "\n".join(f"+    gauge.read({n})  # you must never skip this" for n in range(30))
    patch = "diff --git a/tide.py b/tide.py\nindex 1a2b3c4..5d6e7f8\n--- a/tide.py\n+++ b/tide.py\n@@ -1,2 +1,31 @@\n"
    patch += f" import gauge\n-gauge.stop()\n{added}"
    rest = "- Look at the tests, too.\n- Return the list of findings."
    asked = f"Review this change:\n\n{patch}\n{rest}"
    assert own_words(asked, is_first=True) == f"Review this change:\n\ndiff --git a/tide.py b/tide.py\n…\n{rest}"
    short = asked.replace(added, added[:40]).replace("+1,31", "+1,2")
    assert own_words(short, is_first=True) == short  # a few lines may be what is asked for


def test_of_a_long_diff_each_file_is_named_once() -> None:
    added = "".join(f"+level {number}\n" for number in range(30))
    patches = [f"=== DIFF: tides/{name}.py ===\n@@ -0,0 +1,30 @@\n{added}" for name in "abc"]
    listed = "Review it. Changed files:\n- tides/a.py\n- tides/b.py\n"
    asked = f"{listed}{''.join(patches)}Then list what is wrong."
    assert (
        own_words(asked, is_first=True)
        == f"{listed}=== DIFF: tides/a.py ===\n…\n=== DIFF: tides/c.py ===\n…\nThen list what is wrong."
    )


def test_what_is_said_in_the_line_in_which_a_pasted_log_begins_is_kept() -> None:
    log = "\n".join(f'{{"time":"20:46","level":"INFO","msg":"hook {n}"}}' for n in range(60))
    assert own_words(f"this one is still failing: {log}\n/var/tide") == "this one is still failing: …"


def test_of_a_terminal_session_below_a_request_the_commands_and_errors_are_left_and_of_a_drawn_box_nothing() -> None:
    box = [f"│ the tide of day {n} is high, please confirm it  │" for n in range(30)]
    request = "The gauge of the pier reports nothing.\nHelp me to find out why, and say more where it fails."
    screen = ("╭────── Tides ──────╮", *box, "╰───────────────────╯", "  • Reading confirmed by the harbour master.")
    session = "\n".join((request, "", "$ tide read pier", *screen, "Error: the gauge is silent"))
    assert without_data(session) == f"{request}\n$ tide read pier\n…\nError: the gauge is silent"
    assert without_data("\n".join(("It shows this:", "```", *screen[:-1], "```"))) == "It shows this: …"
    tree = "├── src\n│   ├── tide.py\n│   ├── gauge.py\n│   └── pier.py\n├── docs\n└── tests"
    assert without_data(tree) == tree


def test_the_lines_that_introduce_a_request_stand_there_once() -> None:
    filler = "We talked about that for a long time and it is as it is, so the gauges of the north stay. " * 20
    issue = user(
        f"We solve this issue of the harbour. Here is its text:\nISSUE:\nThe clock drifts.\n{filler}\n{filler}"
    )
    asked = texts(digest(conversation(issue, says("I begin."), *BUILD), 400), Section.TASK)[0]
    assert asked.startswith("Asked: We solve this issue of the harbour. Here is its text: ISSUE: The clock drifts.")


def test_a_request_that_does_not_fit_keeps_its_title_and_headings_and_is_cut_between_clauses() -> None:
    filler = "We talked about that for a long time and it is as it is, so the gauges of the north stay. " * 20
    plan = user(f"Implement the following plan:\n\n# Move the clock\n\n## Context\n{filler}\n{filler}")
    one = digest(conversation(plan, says("I begin."), *BUILD), 400)
    assert texts(one, Section.TASK)[0].startswith(
        "Asked: Implement the following plan: Move the clock: Context: We talked"
    )
    steps = [f"### Step {number}: Turn part {number} of the clock\n\n- {filler}" for number in range(9)]
    one = digest(conversation(user("\n".join(["# Move the clock", *steps])), says("I begin."), *BUILD), 1_200)
    shown = texts(one, Section.TASK)[0]
    assert all(f"Step {number}: Turn part {number} of the clock:" in shown for number in range(9))
    parts = [f"read all the lines of gauge number {number} again" for number in range(40)]
    one = digest(conversation(user(", ".join(parts)), says("I begin."), *BUILD), 300)
    shown = texts(one, Section.TASK)[0].removeprefix("Asked: ").partition(" → ")[0]
    assert all(part.rstrip(",") in parts for piece in shown.split(" … ") for part in piece.split(", ") if part)
    assert shown.endswith(parts[-1])


def test_a_question_that_was_replied_to_and_a_pasted_output_are_no_wishes_but_a_wish_in_a_question_is() -> None:
    reply = says("The gauge sends its readings to the store at every full hour. " * 5)
    asked, wished = (
        "when does the gauge of the harbour send its readings to the store?",
        "could we keep the old gauges?",
    )
    log = "Building the gauge\nLinking the gauge\nerror: undefined reference to tide\nexit status 2"
    turns = [(user(words), reply) for words in (asked, wished, f"{asked} It sends none at night.", log)]
    one = digest(conversation(*turns, user("now write the new gauge"), BUILD), 3_000)
    shown = "\n".join(texts(one, Section.USER))
    assert wished in shown
    assert "It sends none at night." in shown
    assert f"{asked} →" not in shown
    assert "Linking the gauge" not in shown


def test_of_a_message_that_does_not_fit_what_limits_the_work_stands_before_what_it_asks() -> None:
    asked = " ".join(f"Do you know what gauge number {n} of the harbour says?" for n in range(12))
    limit = "Skip the old gauges without a clock."
    text = f"1. The list of the gauges is in the store of the harbour. {asked} {limit} 3. That is all of it, I hope."
    shown = condensed(text, 60, token_cache(), lambda pieces, *_: pieces[:1])
    assert limit in shown


def test_the_end_of_a_message_is_not_quoted_without_the_not_before_it() -> None:
    text = (
        f"you may look up the history in {'/srv/harbour/gauges' * 9} if you need to (don't read the file as a whole!)"
    )
    shown = condensed(text, 30, token_cache(), lambda *_: [])
    assert shown.startswith("you may look up")
    assert "as a whole" not in shown
    assert condensed(text.replace("don't", "just"), 30, token_cache(), lambda *_: []).endswith("as a whole!)")


@pytest.mark.parametrize(
    ("files", "mark"), [("notes.md page.md", " (later edited or run)"), ("page.md", ""), ("-A", "")]
)
def test_a_commit_of_other_files_is_not_the_one_that_was_stopped(files: str, mark: str) -> None:
    stopped = ran("git add notes.md && git commit -m 'Add notes'", REFUSED + "not the notes", is_error=True)
    made = ran(f"git add {files} && git commit -m 'Add the page'", "[main 4f1c2aa] Add the page")
    one = digest(conversation(user(LONG), stopped, says("I see."), *made, user(f"{LONG}again"), BUILD), 1_500)
    (stop,) = [item.text for item in items(one, Section.USER) if "Stopped" in item.text]
    assert stop.endswith(f'→ "not the notes"{mark}')
    wordless = ran("git add notes.md && git commit -m 'Add notes'", WORDLESS, is_error=True)
    one = digest(conversation(user(LONG), wordless, says("I see."), *made, user(f"{LONG}again"), BUILD), 1_500)
    assert any("Stopped" in text for text in texts(one, Section.USER)) is (files == "page.md")


def test_a_plan_that_was_turned_down_is_settled_by_the_yes_to_a_later_one_and_by_no_list_of_tasks() -> None:
    turned_down = call("ExitPlanMode", "p"), answer(REFUSED + "and who reads it at night?", "p", is_error=True)
    listed = call("TaskCreate", "t", subject="Read it"), answer("Task #1 created successfully", "t")
    again = (
        call("ExitPlanMode", "q", plan="# Readers\n1. The night reads it."),
        answer("User has approved your plan", "q"),
    )
    for later, mark in (((), ""), (listed, ""), (again, " (approved later)")):
        one = digest(conversation(user(LONG), *turned_down, *later, says("I begin."), user("go on"), BUILD), 1_500)
        assert f'Stopped by the user: `ExitPlanMode` → "and who reads it at night?"{mark}' in texts(one, Section.USER)


def test_a_stopped_command_that_was_run_later_in_a_chain_was_run() -> None:
    fetch = "git fetch origin tides:tides"
    stopped = ran(fetch, REFUSED + "delete the one you made first", is_error=True)
    made = ran(f"git branch -D tides && {fetch}", "Deleted branch tides")
    one = digest(conversation(user(LONG), stopped, *made, user(f"{LONG}again"), BUILD), 1_500)
    (stop,) = [item.text for item in items(one, Section.USER) if "Stopped" in item.text]
    assert stop.endswith('→ "delete the one you made first" (later edited or run)')


def test_a_stop_of_a_commit_is_over_when_one_is_made_with_another_message() -> None:
    stopped = ran("cd site && git add -A && git commit -m 'Add the page'", REFUSED + "the icon too", is_error=True)
    made = ran("cd site && git add -A && git commit -m 'Add page and icon'", "[main 4f1c2aa] Add page and icon")
    one = digest(conversation(user(LONG), stopped, says("I add it."), *made, user(f"{LONG}again"), BUILD), 1_500)
    (stop,) = [item.text for item in items(one, Section.USER) if "Stopped" in item.text]
    assert stop.endswith('→ "the icon too" (later edited or run)')


def test_a_long_text_of_signs_is_no_remark_and_takes_no_time_of_its_square() -> None:
    assert not is_remark("harbour " + '\x01"\\' * 60_000)
    assert not is_remark("Thanks, now write the page of the harbour.")
    assert is_remark("Thanks, that's great")


def test_what_the_user_said_at_each_refusal_of_one_edit_stands_in_one_line_in_order() -> None:
    def refused(number: int, words: str) -> tuple[Message, Message]:
        edit = call("Edit", f"e{number}", file_path="store.py", old_string="a", new_string="b")
        return edit, answer(REFUSED + words, f"e{number}", is_error=True)

    told = [refused(1, "could we not use a map?"), says("Go has none."), refused(2, "define it above then")]
    session = conversation(user(LONG), BUILD, *told[0], told[1], *told[2], says("I wait."))
    stopped = [text for text in texts(digest(session, 1_500), Section.USER) if text.startswith("Stopped")]
    assert stopped == [
        'Stopped by the user ×2: `Edit store.py` → "could we not use a map?" · "define it above then"',
    ]


def test_a_picture_that_was_dropped_on_the_terminal_takes_nothing_of_the_words_below_it() -> None:
    picture = (
        "'/var/folders/49/l4171l3n219_xwq30fmyzr8w0000gn/T/TemporaryItems/NSIRD_t8nr4u/Screenshot at 01.36.58.png'"
    )
    words = "this is what the tide had before, can you make it like that again?"
    for text, shown in ((f"{picture}\n\n{words}", words), (picture, "")):
        cut = condensed(text, 20, token_cache(), lambda pieces, _, left: pieces)
        assert (shown in cut, "/var/" in cut) == (True, False)


def test_answers_to_two_questions_of_one_call_are_two_messages_and_no_stops() -> None:
    first, second = (f"Where do the {name} of the harbour come from?" for name in ("gauges", "clocks"))
    replies = "from the store, which keeps them for a year", "from the crane, never from the store of the clerks"
    asked = call("AskUserQuestion", "a", questions=[{"question": first}, {"question": second}])
    told = answer(f'User has answered your questions: "{first}"="{replies[0]}", "{second}"="{replies[1]}".', "a")
    session = conversation(user(LONG), asked, told, says("I see."), user(f"{LONG}again"), BUILD)
    found = {item.text: item.records for item in wants_items(analyse(request(session)), 2_000, token_cache())}
    assert found[replies[0]] == found[replies[1]]


def test_a_message_that_is_typed_anew_and_goes_on_stands_once() -> None:
    first = "the most private way is the public key of the gauge, how would you find out mine?"
    whole = f"{first}\nPerhaps a search, but do the simple one first."
    found = user_messages(
        events_of(user("plan the sharing of the gauges"), says("Which way?"), user(first), user(whole))
    )
    assert [message.text for message in found] == ["plan the sharing of the gauges", whole]


def test_of_a_long_plan_the_commands_by_which_it_is_checked_stay() -> None:
    steps = "\n".join(
        f"{n}. Read gauge {n} of the harbour, and set its clock by the one before it." for n in range(1, 40)
    )
    checks = "## Verification\n1. `make lint` is clean\n2. `make test-all` passes, the slow gauges too\n"
    checks += "3. `make page` shows them"
    notes = "Always name the harbour first, never the gauge.\n" + "\n".join(
        f"Never touch the page of harbour {n}." for n in range(9)
    )
    plan = f"Implement the following plan:\n\n# One clock\n\n## Steps\n{steps}\n\n{checks}\n\n## Notes\n{notes}"
    now = texts(digest(conversation(user(plan), ran("ls", "a"), says("I begin.")), 500), Section.TASK)[0]
    assert "`make lint` is clean" in now
    assert "`make test-all` passes" in now


LATER = tuple(
    message
    for page in ("tides", "moons", "gauges", "winds")
    for message in (
        user(f"then write the page of the {page} and link it from the first page"),
        call("Write", page, file_path=f"docs/{page}.md", content=f"# The {page} of the harbour"),
        answer("ok", page),
        says(f"The page of the {page} is linked."),
    )
)


def test_of_what_was_copied_from_a_screen_the_first_line_stands_before_the_users_own_words() -> None:
    screen = "\n".join(
        f"{f'+ {number} - **Tide {number}**: the store of the harbour reads it':<70}" for number in range(9)
    )
    asked = user(f"{screen}\n\nremove that, we only say that tides are not read")
    one = digest(conversation(user("write the changelog"), says("Written."), asked, says("Removed."), *LATER), 3_000)
    text = rendered(one.summary)
    assert "+ 0 - **Tide 0**: the store of the harbour reads it …\n  remove that, we only say that tides" in text
    assert "Tide 1" not in text


def test_a_few_words_that_point_back_stand_after_what_they_reply_to() -> None:
    work = says("The blocks are `#8abeb7` now."), user("no, the block should stay as is")
    one = digest(conversation(user("color the links"), *work, says("Put back."), *LATER), 3_000)
    assert any(
        text.startswith("The blocks are `#8abeb7` now. → ") and "no, the block should stay as is" in text
        for text in texts(one, Section.USER)
    )


def test_a_rule_stands_once_where_its_whole_message_is_quoted() -> None:
    long = f"it broke when I started it again. Themes must NEVER break the start.\n{'the trace of it goes on ' * 20}"
    one = digest(conversation(user("write themes"), says("Done."), user(long), says("Mended."), user("go on")), 3_000)
    assert sum("NEVER" in text for text in texts(one, Section.USER)) == 1


def test_a_request_that_is_cut_has_what_nothing_else_needs_and_its_code_as_a_whole() -> None:
    code = "gauge = Gauge(\n    harbour=2,\n)\nprint(gauge.level())"
    rules = " ".join(f"Rule {number}: look at the page of harbour {number} before any edit." for number in range(60))
    report = f"The level is wrong:\n\n```python\n{code}\n```\n\nFix it. {rules}"
    one = digest(conversation(user(report), says("I look.")), 800)
    (request, *_) = texts(one, Section.TASK)
    assert "gauge = Gauge( ·     harbour=2, · ) · print(gauge.level())" in request
    assert count(rendered(one.summary)) > 720


def test_an_entry_of_a_list_after_code_is_not_lost_with_it() -> None:
    code = "  ```ts\n  const level = gauge(2);\n  ```"
    notes = " ".join(f"The harbour {number} has a tide of its own." for number in range(90))
    plan = f"# Plan\n\n- Add `level`:\n{code}\n- Pass `level` to `<Harbour>`\n\n## Notes\n\n{notes}"
    (request, *_) = texts(digest(conversation(user(plan)), 500), Section.TASK)
    assert "const level = gauge(2); Pass `level` to `<Harbour>`" in request


def test_all_that_is_to_be_verified_stands_before_the_details_of_a_long_plan() -> None:
    steps = "\n".join(
        f"- Step {number} reads the page of harbour {number} and writes its level." for number in range(50)
    )
    checks = "1. `make test` passes\n2. Open a report of two harbours and look for lines that stand twice"
    plan = f"Implement this plan:\n\n## Steps\n\n{steps}\n\n## Verification\n\n{checks}\n"
    request = texts(digest(conversation(user(plan), says("I look."), BUILD), 600), Section.TASK)[0]
    assert "look for lines that stand twice" in request


def test_of_many_rules_of_a_project_those_come_first_that_forbid_something() -> None:
    rules = "\n".join(f"- You MUST read the manual of gauge {n} before the work on it begins." for n in range(30))
    look = (
        call("Read", "1", file_path="AGENTS.md"),
        answer(f"{rules}\n- Do NOT commit unless asked to by the user", "1"),
    )
    one = digest(conversation(user("mend the clock of the harbour"), *look, says("Read."), *BUILD, says("Done.")), 900)
    assert any("Do NOT commit" in text for text in texts(one, Section.USER))


def test_a_rule_of_two_messages_stands_once_and_without_its_list_mark() -> None:
    rule = "Never merge the branch of the clock without the harbour's word."
    orders = (f"{verb} the tides of each gauge.\n- {rule}" for verb in ("Draw", "Paint"))
    asked = [part for one in orders for part in (user(one), says("Yes."), *BUILD)]
    assert [item.text for item in rules_of(analyse(request(conversation(*asked))))] == [rule]


def test_a_rule_of_which_the_title_has_the_words_stays_in_a_request_that_is_cut() -> None:
    filler = "We talked about that for a long time and it is as it is, so the gauges of the north stay. " * 20
    asked = user(f"Do the steps and never touch the clock at night:\nnever touch the clock\n{filler}\n{filler}")
    shown = texts(digest(conversation(asked, says("I begin."), *BUILD), 400), Section.TASK)[0]
    assert shown.count("never touch the clock") == 2


def test_a_change_that_was_stopped_is_shown_with_the_later_one_that_made_it() -> None:
    def edit(number: str, old: str, new: str) -> Message:
        return call("Edit", number, file_path="store.py", old_string=old, new_string=new)

    refused = answer(
        "The user doesn't want to proceed with this tool use. To tell you, the user said:\nfirst tell me why", "1"
    )
    made = (edit("2", "a = 1", "a = min(levels)"), answer("ok", "2"), edit("3", "# old", "# new"), answer("ok", "3"))
    told = (edit("1", "a = 1", "a = min(levels)"), refused, says("Since two are read."), *made)
    one = digest(conversation(user("mend the store"), *told), 2_000)
    (item,) = (item for item in items(one, Section.USER) if "first tell me why" in item.text)
    assert item.records == (2, 4)


def test_the_last_of_several_questions_with_numbers_is_asked_with_those_before_it() -> None:
    asked = "1. One name for all shells, or one each? I'd take one.\n2. Both shells, or the first only?\n\nI wait."
    assert last_question(f"Two things are open:\n\n{asked}") == (
        "1. One name for all shells, or one each? 2. Both shells, or the first only?"
    )
    assert last_question("1. I read it.\n2. Both shells, or the first only?") == "2. Both shells, or the first only?"


def test_a_request_that_is_cut_ends_with_no_clause_that_qualifies_another() -> None:
    asked = (
        "let's show the gauges of both harbours next to one another on the page of the tide tables, and I do like the"
        " idea of the history of the readings to be kept visible, whether or not it was confirmed by the harbour master"
    )
    for tokens in range(20, 50):
        shown = condensed(asked, tokens, token_cache(), lambda *_: [])
        assert not shown.rpartition("…")[2].strip().startswith(("whether", "and", "which"))


def test_a_request_that_asks_for_what_stands_before_it_is_quoted_with_that() -> None:
    asked = (
        "Please mend the gauge of the northern harbour. It was read at low tide. It was read again at high tide. If the"
        " check needs a file of readings, search the folder for one. Do this by running `find . -name tide.csv`."
    )
    for tokens in range(20, 60):
        shown = condensed(asked, tokens, token_cache(), lambda pieces, *_: pieces[:1])
        assert "Do this by" not in shown or "If the check needs a file" in shown


def test_what_a_request_forbids_is_quoted_with_what_it_forbids_it_of() -> None:
    asked = (
        "Build a page for the harbour. Everybody gets a name of their own. The page shows the name, the pier and the"
        " last reading of the gauge. The ledger is a table of all payments. Guests must never be able to read it. There"
        " is a list of piers. The colours are ours, blue and grey. Start with the sign-in page."
    )
    shown_at = {
        tokens: condensed(asked, tokens, token_cache(), lambda pieces, *_: pieces[:1]) for tokens in range(20, 70)
    }
    assert any("able to read it" in shown for shown in shown_at.values())
    for shown in shown_at.values():
        assert "able to read it" not in shown or "The ledger is a table" in shown


def test_checks_of_a_request_that_is_cut_stand_under_their_heading_or_not_at_all() -> None:
    steps = "\n".join(f"{n}. 将第 {n} 个水位计的读数改为每小时读取一次,并写入表格" for n in range(1, 9))
    checks = "\n".join(f"{n}. 打开页面 {n}, 看到 `gauge_{n}` 的读数" for n in range(1, 6))
    asked = f"# 水位计\n\n## 实现\n\n{steps}\n\n## 验证方式\n\n{checks}\n"
    for tokens in range(40, 120, 20):
        shown = condensed(asked, tokens, token_cache(), lambda pieces, *_: pieces[:4])
        assert "打开页面" in shown
        assert "验证方式" in shown


def test_what_is_to_be_tried_by_hand_is_open_until_a_tool_tries_it() -> None:
    plan = "Read the clock once.\n\n## Verification\n\n1. `make test` passes\n2. Manual test: open the page and read it"
    edit = call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e")
    done = edit, *ran("make test", "ok")

    def left(*messages: object, **more: object) -> list[str]:
        found = texts(digest(conversation(user(plan), *messages, says("Done.")), **more), Section.PLAN)  # type: ignore[arg-type]
        return [text for text in found if text.startswith("Asked for as a check")]

    asked = ['Asked for as a check and not run: "Manual test: open the page and read it"']
    assert left(*done) == asked
    assert left(*done, kept=(0,), covered=range(1, 6)) == asked
    assert left(*done, call("browser_navigate", "b", url="http://localhost:80"), answer("The page", "b")) == []
    assert left(*done, *ran("curl -s http://localhost:80/", "The page")) == []


def test_of_a_terminal_that_was_pasted_commands_and_errors_stay_and_what_is_written_below() -> None:
    printed = "user=ines\npassword=sea7\nerror: no such host"
    pasted = user(f"❯ tide login --host gauge \\\n  --user ines\n{printed}\nwhy does it not find it?")
    one = digest(conversation(user(LONG), says("I look at the store."), pasted, says("I see.")), 1_500)
    (shown,) = (text for text in (*texts(one, Section.USER), *texts(one, Section.TASK)) if "tide login" in text)
    assert "sea7" not in shown
    assert "--user ines" in shown
    assert "error: no such host" in shown
    assert "why does it not find it?" in shown


def test_what_a_terminal_showed_is_no_wish_even_below_a_line_that_the_shell_prints_above_its_prompt() -> None:
    above = "tidegate on  main [$!?] via go v1.26 on ☁️  (us-east-2) took 1m26s"
    pasted = user(f"{above}\n❯ tide login --host gauge\nuser=ines\nerror: no such host")
    one = digest(conversation(user(LONG), says("Run it."), pasted, says("I see."), user("go on with the gate")), 1_500)
    assert not any("tide login" in text for text in texts(one, Section.USER))
    assert "took 1m26s" not in rendered(one.summary)
    assert "error: no such host" in rendered(one.summary)


LOG = """Run the tide action
  Run # Do NOT pass --gate here. It opens the north gate
  Requesting the tables...
  Attempt 1 of 3...
  Error: could not fetch the tables: no token of the harbour
  Done in 15s"""


def test_what_a_pasted_log_forbids_is_no_rule_and_its_error_stands_with_the_turn() -> None:
    asked = user(LONG), *ran("make", "ok"), says("Run it."), user(LOG)
    answered = says("The harbour gave no token, since its key ran out in May."), user("go on with the gate")
    one = digest(conversation(*asked, *answered), 1_500)
    assert not any("NOT pass" in text for text in texts(one, Section.USER))
    shown = "Pasted output: Run the tide action … Error: could not fetch the tables: no token of the harbour"
    assert any(text.startswith(shown) for text in texts(one, Section.HISTORY))


def test_what_a_comment_of_pasted_code_forbids_is_no_rule() -> None:
    code = "Review this change for gaps:\n\n// The button must not stay disabled after a rejection.\nsetOpen(true);"
    found = analyse(request(conversation(user(code), *ran("make", "ok"), says("No gap."), user("go on"))))
    assert not any("must not stay" in item.text for item in rules_of(found))


@pytest.mark.parametrize(
    "pasted",
    [
        '{\n  "mode": "mirror",\n  "pushed": 61,\n  "level": 3\n}',
        "sudo tide switch\nreading the tables\nerror: this gate is open, although it must not be",
    ],
)
def test_what_only_shows_data_or_ends_with_an_error_is_no_request(pasted: str) -> None:
    one = digest(
        conversation(
            user(LONG), *ran("make", "ok"), says("Run it."), user(pasted), says("I see."), user("go on with the gate")
        ),
        1_500,
    )
    assert not any(pasted[:12] in text for text in texts(one, Section.USER))


def test_a_list_of_faults_to_mend_is_a_request_and_no_output() -> None:
    asked = "Mend the gate\n- a wrong key shows an error\n- the level is cut\n- add a test"
    one = digest(
        conversation(
            user(LONG), *ran("make", "ok"), says("Run it."), user(asked), says("I see."), user("go on with the gate")
        ),
        1_500,
    )
    assert any("the level is cut" in text for text in (*texts(one, Section.USER), *texts(one, Section.TASK)))


def test_words_after_the_sign_by_which_an_agent_asks_for_them_are_no_terminal() -> None:
    review = "The gate is not tested.\n  Add tests that open it at night, without the store.\n  Use the south gate."
    copied = user(f"❯ This branch mends the gate. I got some feedback to address:\n\n  {review}")
    one = digest(conversation(user(LONG), says("I look at the store."), copied, says("I see.")), 1_500)
    assert any("open it at night" in text for text in (*texts(one, Section.USER), *texts(one, Section.TASK)))


def test_a_question_above_bullets_is_asked_and_one_that_a_reader_would_ask_is_not() -> None:
    asked = "Which order do you mean? A couple of possibilities:\n\n- The one of the harbour.\n- I work one out now."
    assert last_question(f"There are seven.\n\n{asked}") == "Which order do you mean?"
    assert last_question("The line answers the only question that is left - *why is it not run?*\n\nIt passes.") == ""


def test_of_a_long_message_that_was_copied_the_request_at_its_end_stays() -> None:
    copied = " ".join(f"Gauge {number} of the harbour stood {number} m above zero." for number in range(30))
    asked = "Can you find out which of all these gauges was the highest when the tide of the north came in at noon?"
    shown = condensed(f"{copied}\n{asked}", 90, token_cache(), lambda pieces, _, left: pieces[:0])
    assert shown.startswith("Gauge 0 of the harbour")
    assert shown.endswith(asked)
    assert shown.count("above zero") > 1


def test_what_is_to_be_done_every_time_is_cut_after_what_was_asked_once() -> None:
    standing = (
        "I will keep moving the gauges. As I do, say at the end whether the readings of the harbour are steady enough. "
        "It means that the crane may be moved without another look at the tide."
    )
    once = [user(f"{LONG}{number} " * 6) for number in range(6)]
    session = [message for asked in (*once[:3], user(standing), *once[3:]) for message in (asked, says("Done."))]
    found = wants_items(analyse(request(conversation(*session, user("and now?"), BUILD))), 260, token_cache())
    assert any(item.text.startswith(standing) for item in found)
    assert any("…" in item.text for item in found)


def test_of_a_first_sentence_that_does_not_fit_the_beginning_stands_before_what_follows() -> None:
    where = "the wiring of the gauges in harbour/north.py, that in harbour/south.py, and the list of all the stations"
    task = f"Review the newest changes since the spring tide, with a look at {where}, and tell whether it holds."
    asked = f"{task} Do not edit files. Return the findings first."
    shown = condensed(asked, 34, token_cache(), lambda pieces, *_: [one for one in pieces if len(one.text) < 40])
    assert shown == f"{task[:60]} … Do not edit files. Return the findings first."


def test_a_limit_of_one_step_and_a_text_for_a_file_are_no_rules() -> None:
    given = "add this to the handbook\n## Gauges\nThe clock must never run without the gauge of the north pier."
    words = "Never touch the old gauge. Do not write any code yet."
    session = user(words), says("I read on."), *BUILD, user(given), *BUILD, says("Added."), user("now go on")
    rules = [item.text for item in rules_of(analyse(request(conversation(*session))))]
    assert rules == ["Never touch the old gauge."]


def test_a_question_after_a_fact_that_was_replied_to_is_no_wish() -> None:
    asked = "the export worked before, is it because the gauge of the north pier was left out of the list"
    reply = "No. The list has held that gauge since March, and the export reads it as it did before, hour by hour. " * 2
    session = user(LONG), *BUILD, says("Kept."), user(asked), says(reply), user("now go on"), says("On it.")
    assert not any("worked before" in text for text in texts(digest(conversation(*session), 400), Section.USER))


def test_the_heading_of_rules_is_no_rule() -> None:
    rules = "# Gauges\n\n## Rules that agents must never break\n\nNEVER write to the live database of the harbour."
    read = (call("Read", "r", file_path="/srv/gauges/AGENTS.md"), answer(rules, "r"))
    found = texts(digest(conversation(user("read the rules"), *read, says("They are read."))), Section.USER)
    assert found == ["AGENTS.md: NEVER write to the live database of the harbour."]


def test_a_brief_prohibition_stays_among_what_the_user_wants_though_it_opens_a_turn() -> None:
    done = says("The gauge is read each hour because the sea is slow, and the store keeps what it read for a year.")
    asked = user(LONG), says("I will."), user("implement it but don't commit"), BUILD, done
    one = digest(conversation(*asked, user("Now " + LONG), BUILD), 1_200)
    assert any(text.startswith("implement it but don't commit") for text in texts(one, Section.USER))
