"""Now: the newest request, what came of it, and the question the agent waits with."""

from __future__ import annotations

import pytest
from conversation import answer, call, conversation, digest, items, ran, rendered, says, texts, thinks, user

from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message, Role, Text, ToolCall

BUILD = ran("make", "ok")
ASKED = "File a ticket for the clock drift of the north gauge and then go on with the export of the readings."


def test_a_waiting_question_stands_verbatim_however_long_the_message_before_it() -> None:
    report = "The export writes one file a gauge and keeps the times in UTC. " * 30
    question = "Shall the export keep the old column order?"
    one = digest(conversation(user(ASKED), says(report + question)), 900)
    assert question in texts(one, Section.TASK)[1]


@pytest.mark.parametrize(
    ("first", "is_shown"), [("I named no order of the gauges before.", True), ("I read on.", False)]
)
def test_a_message_that_asks_keeps_the_beginning_that_denies_what_the_user_takes_for_granted(
    first: str, is_shown: bool
) -> None:
    report = "".join(f"Gauge {n} of the {n}th pier writes one file a day, which holds its level. " for n in range(60))
    asked = user(ASKED), *BUILD, says(f"{first} {report}Shall I work out an order now?")
    shown = texts(digest(conversation(*asked), 900), Section.TASK)[1]
    assert ((first in shown), "Shall I work out an order now?" in shown) == (is_shown, True)


def test_a_question_that_was_answered_later_waits_no_more() -> None:
    asked = says("Shall the export keep the old column order?")
    one = digest(conversation(user(ASKED), asked, user("yes, keep it as it is for now"), says("Kept.")), 900)
    assert texts(one, Section.QUESTIONS) == []


def test_a_question_that_the_kept_messages_answer_waits_no_more() -> None:
    session = conversation(user(ASKED), says("Shall I push it?"), user("yes"), says("Pushed."))
    one = digest(session, 900, covered=(0, 1), kept=(2, 3))
    assert texts(one, Section.QUESTIONS) == []


def test_where_it_stands_is_what_was_said_since_the_request_even_if_it_is_short() -> None:
    before = says("The gauge in the north resends three lines after every reconnect, which doubles its readings.")
    one = digest(conversation(user("why double?"), before, user(ASKED), says("Filed as TIDE-41.")), 900)
    assert "Where it stands: Filed as TIDE-41." in texts(one, Section.TASK)


def test_a_call_without_a_result_at_the_end_is_named() -> None:
    one = digest(conversation(user(ASKED), says("I start the export."), call("Bash", "1", command="make export")), 900)
    assert "No result seen of: `make export`" in texts(one, Section.TASK)


def test_what_the_agent_did_after_its_last_words_is_stated_as_steps() -> None:
    said = says("I found the cause: the second hour of October is dropped as a duplicate of the first.")
    edit = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))
    one = digest(conversation(user(ASKED), said, edit, ran("make test", "12 passed")), 900)
    assert any(text.endswith("Edit clock.py · `make test` → ok") for text in texts(one, Section.TASK))


def test_what_was_said_before_the_request_is_no_state_of_it() -> None:
    before = says("The gauge in the north resends three lines after every reconnect, which doubles its readings.")
    looked = ran("cat gauges.csv", "north,3")
    told = texts(digest(conversation(user("why double?"), before, user(ASKED), looked), 900), Section.TASK)
    assert not any(text.startswith("Where it stands") for text in told)


def test_a_courtesy_is_no_state() -> None:
    edit = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))
    told = texts(
        digest(conversation(user(ASKED), says("You're absolutely right! Good catch."), edit), 900), Section.TASK
    )
    assert told[1:] == ["since then: Edit clock.py"]


def test_of_a_row_of_calls_without_a_word_the_newest_thought_says_what_they_are_for() -> None:
    read = (call("Read", "r", file_path="clock.py"), answer("ok", "r"))
    thoughts = (thinks("The drift is in parse(). Now fix lines 31 and 47."), thinks("Line 31 is done, now line 47."))
    silent = conversation(user(ASKED), thoughts[0], read, thoughts[1], read)
    assert 'since then: thought: "Line 31 is done, now line 47." · Read clock.py' in texts(
        digest(silent, 900), Section.TASK
    )
    spoken = conversation(user(ASKED), thoughts[0], says("The export is next, line 47 comes after that."), read)
    assert "47." not in str([one for one in texts(digest(spoken, 900), Section.TASK) if "since then" in one])


def test_of_a_long_state_the_statements_that_hold_most_are_quoted() -> None:
    filler = "It was a long way to find that out and there is not much more to write about it. " * 12
    cause = "The export drops the second hour of October since store.py keys the readings by local time."
    shown_texts = texts(digest(conversation(user(ASKED), says(f"{filler}\n{cause}\n{filler}")), 400), Section.TASK)
    assert any(cause in text for text in shown_texts)
    assert not any("… …" in text for text in shown_texts)


def test_the_options_of_a_question_are_all_there() -> None:
    filler = "The store keeps each reading by its local time, and the export reads it back as it is. " * 15
    offer = "1. one run for each gauge\n2. a lock on the table\n3. refuse the second gauge\n\nWhich one shall I take?"
    steps = "1. I read store.py\n2. I read export.py\n"
    shown_text = texts(digest(conversation(user(ASKED), says(f"{steps}\n{filler}\n{offer}")), 900), Section.TASK)[1]
    assert (
        "1. one run for each gauge · 2. a lock on the table · 3. refuse the second gauge Which one shall I take?"
        in shown_text
    )


def test_a_question_of_the_user_is_quoted_as_what_was_asked_only() -> None:
    one = digest(conversation(says("The export is done."), user("Does it keep the old order of the columns?")), 900)
    assert texts(one, Section.QUESTIONS) == []


def test_an_answer_that_is_an_object_with_one_text_is_that_text() -> None:
    wrapped = says('{"message": "I found two bookings.\\nShall I cancel LU15PA, which is in business class?"}')
    one = digest(conversation(user(ASKED), wrapped), 900)
    assert texts(one, Section.TASK)[1].endswith(
        "I found two bookings. Shall I cancel LU15PA, which is in business class?"
    )


BROKEN = says("The test of the drift fails, because clock.py reads the time of the north gauge as local time.")
MENDED = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))


def test_what_was_said_before_something_was_done_is_no_state_any_more() -> None:
    one = digest(conversation(user(ASKED), BROKEN, MENDED, ran("make test", "12 passed")), 900)
    assert texts(one, Section.TASK)[1:] == [
        f"Said before the newest steps: {BROKEN.text}",
        "since then: Edit clock.py · `make test` → ok",
    ]


def test_a_short_word_after_it_stands_next_to_what_was_said_before() -> None:
    passed = says("All tests pass now.")
    one = digest(conversation(user(ASKED), BROKEN, MENDED, ran("make test", "12 passed"), passed), 900)
    assert texts(one, Section.TASK)[2] == 'since then: Edit clock.py · `make test` → ok · "All tests pass now."'


def test_of_a_chain_without_a_result_the_last_command_is_named_too() -> None:
    chain = (
        f"git fetch -q origin && git add {' '.join(f'docs/gauge_{n}.md' for n in range(12))} && git push -u origin HEAD"
    )
    one = digest(conversation(user(ASKED), says("I push it."), call("Bash", "1", command=chain)), 900)
    (line,) = (text for text in texts(one, Section.TASK) if text.startswith("No result seen"))
    assert "git fetch" in line
    assert line.endswith("… && git push -u origin HEAD`")


def test_what_only_looked_has_no_status_and_leaves_the_state_as_it_was() -> None:
    one = digest(conversation(user(ASKED), BROKEN, ran("git -C /srv/a status", "nothing to commit")), 900)
    assert texts(one, Section.TASK)[1:] == [f"Where it stands: {BROKEN.text}", "since then: `git -C /srv/a status`"]


def test_a_call_without_a_result_is_no_step_that_was_done() -> None:
    edit = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))
    one = digest(conversation(user(ASKED), edit, call("Bash", "1", command="make export")), 900)
    assert texts(one, Section.TASK)[1:] == ["since then: Edit clock.py", "No result seen of: `make export`"]


def test_a_commit_without_a_result_is_shown_with_the_first_line_of_its_message() -> None:
    message = "Read the clock of the northern gauge once\n\nIt was read twice, and the second time it was late.\n"
    commit = call("Bash", command=f"git add clock.py && git commit -m \"$(cat <<'EOF'\n{message}EOF\n)\"")
    edit = call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e")
    one = digest(conversation(user("read the clock once, and commit it"), edit, commit))
    (line,) = (text for text in texts(one, Section.TASK) if text.startswith("No result seen"))
    assert line.startswith("No result seen of: `git add clock.py && git commit -m ")
    assert line.endswith(' "Read the clock of the northern gauge once"')


def test_of_a_long_request_the_beginning_and_the_statements_that_hold_most_are_quoted() -> None:
    filler = "We talked about that for a long time and it is as it is, so please go on with it as you see fit. " * 12
    step = "Add drift_report(gauge) to src/report.py and keep the names of the columns."
    one = digest(conversation(user(f"Implement this plan.\n{filler}\n{step}\n{filler}"), says("I begin.")), 600)
    assert texts(one, Section.TASK)[0].startswith("Asked: Implement this plan.")
    assert step in texts(one, Section.TASK)[0]


def test_a_request_for_a_confirmation_is_quoted_like_a_question() -> None:
    offer = (
        "The lamp can be changed to item 53, the shirt to item 32. The backpack is the cheapest already. "
        + "Prices are as of today and may change until the order is modified. " * 4
        + "Please confirm if you want me to proceed with these changes."
    )
    one = digest(conversation(user("Change all items to the cheapest ones, please."), says(offer)), 300)
    assert any("Please confirm if you want me to proceed" in text for text in texts(one, Section.TASK))


STEPS = "Perfect! The steps are:\n```bash\ngit tag v0.8.0\ngit push origin v0.8.0\n```\nShould I proceed with tagging?"


def test_what_a_yes_agrees_to_is_quoted_with_the_commands_it_names() -> None:
    one = digest(conversation(user(ASKED), says(STEPS), user("yeah, do it all"), says("I begin.")), 1_500)
    assert any("`git tag v0.8.0` · `git push origin v0.8.0` Should I proceed" in t for t in texts(one, Section.TASK))


def test_what_a_question_is_about_stands_with_it_and_no_list_that_it_does_not_ask_of() -> None:
    tried = (
        "Changed:\n1. the clock\n2. the store\n\n" + "The readings of the north gauge come twice after a reset. " * 20
    )
    offer = "The table would be split:\n```\npart 1: gauges\npart 2: readings\n```\nShall I write that into the plan?"
    (_, about, *_) = texts(
        digest(conversation(user(ASKED), says(f"{tried}\n\n{offer}"), user("yes")), 440), Section.TASK
    )
    assert about.endswith(
        "The table would be split: `part 1: gauges` · `part 2: readings` Shall I write that into the plan?"
    )
    assert "the clock" not in about


def test_a_reply_to_please_confirm_is_shown_with_what_was_to_be_confirmed() -> None:
    offer = "The total for both passengers is $628. Please confirm."
    answered = user("Yes, please go ahead with the amount of $628 with my card that ends in 7334.")
    one = digest(conversation(user(ASKED), says(offer), answered, says("Done.")), 1_500)
    assert any("The total for both passengers is $628. Please confirm." in text for text in texts(one, Section.TASK))


def test_what_came_of_a_request_and_of_the_yes_to_it_stands_once() -> None:
    made = call("Write", "w", file_path="tides.py", content="level = 1"), answer("ok", "w")
    offered = says("The gauges can be read from one table. Shall I write it?")
    session = conversation(user(ASKED), offered, user("do it"), *made, says("Written."))
    found = texts(digest(session, 2_000), Section.TASK)
    assert found[0] == "Asked: do it → created tides.py"
    assert f"Before that: {ASKED}" in found


def test_the_words_of_a_refusal_stand_with_the_request_that_they_are_about() -> None:
    refused = "The user doesn't want to proceed with this tool use. the user said:\nnot in that folder, please"
    stopped = (call("Bash", "1", command="make export"), answer(refused, "1", is_error=True))
    one = digest(conversation(user(ASKED), *stopped), 1_500)
    assert texts(one, Section.TASK) == [
        "Asked: not in that folder, please (Stopped by the user: `make export`)",
        f"Before that: {ASKED}",
    ]


def test_words_at_a_plan_that_was_refused_answer_the_question_before_it_and_leave_its_text_in_force() -> None:
    reasoned = "SessionStart moves a session from ENDED to IDLE, since it is entered again. " * 4
    refused = answer(
        "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
        "leave plan mode and update the page first",
        "p",
        is_error=True,
    )
    shown = (user(ASKED), says(reasoned + "Ready to finalize?"), call("ExitPlanMode", "p", plan="# Plan"), refused)
    one = digest(conversation(*shown), 900)
    assert texts(one, Section.QUESTIONS) == []
    assert not any("Ready to finalize" in text for text in texts(one, Section.TASK)[1:2])
    assert "overruled" not in rendered(one.summary)


def test_where_work_stopped_is_stated_by_what_was_announced_last() -> None:
    store = (call("Edit", "s", file_path="store.py", old_string="a", new_string="b"), answer("ok", "s"))
    looked = (call("Read", "r", file_path="clock.py"), answer("x = 1", "r"))
    told = texts(
        digest(conversation(user(ASKED), *store, says("Now let me update the clock."), *looked), 900), Section.TASK
    )
    assert told[1:] == ['since then: Edit store.py · "Now let me update the clock." · Read clock.py']


def test_what_the_user_may_do_next_is_no_step_of_the_agent_since_its_message() -> None:
    words = (
        "The request to merge is open: https://tide.example/a/b/pull/184. It starts the check of the gauges by itself."
    )
    found = says(f"{words} Check its page in a minute to see the review of the gauges.")
    shown = texts(digest(conversation(user(ASKED), found), 900), Section.TASK)
    assert not any(text.startswith("since then") for text in shown)


def test_what_is_left_open_and_a_status_at_the_beginning_come_first_of_a_long_message() -> None:
    filler = [f"The reading of gauge_{n} has its hour from the lock of harbour_{n}." for n in range(40)]
    found = says("\n\n".join(("Pushed.", *filler[:20], "The north lock is still to be read.", *filler[20:])))
    edit = call("Edit", "s", file_path="store.py", old_string="a", new_string="b"), answer("ok", "s")
    shown = "\n".join(texts(digest(conversation(user(ASKED), *edit, found), 1_500), Section.TASK))
    assert "Where it stands: Pushed." in shown
    assert "still to be read" in shown


def test_what_stands_under_a_heading_of_what_is_left_comes_first_of_a_long_message() -> None:
    filler = [f"The reading of gauge_{n} has its hour from the lock of harbour_{n}." for n in range(40)]
    left = "## Residual items\n\n- The gauges of the north lock were looked at, no more."
    found = says("\n\n".join(("## Done", *filler[:20], left, "## Files", *filler[20:])))
    edit = call("Edit", "s", file_path="store.py", old_string="a", new_string="b"), answer("ok", "s")
    shown = "\n".join(texts(digest(conversation(user(ASKED), *edit, found), 900), Section.TASK))
    assert "Residual items: The gauges of the north lock were looked at, no more." in shown


def test_that_a_client_is_at_its_limit_is_nothing_that_the_assistant_wrote() -> None:
    session = conversation(
        user(ASKED), *ran("make", "ok"), says("You've hit your limit · resets 3pm (Africa/Addis_Ababa)")
    )
    assert "hit your limit" not in rendered(digest(session, 1_500).summary)


def test_the_last_section_of_a_long_message_is_quoted_in_any_language_until_something_is_done() -> None:
    filler = [f"Die Messung von gauge_{n} hat ihre Stunde von der Schleuse harbour_{n}." for n in range(40)]
    end = "## Danach\n\nSag Bescheid.\n\n1. Ich ziehe den Zweig ein.\n2. Ich setze die Marke neu."
    message = says("\n\n".join(("## Warum", *filler, end)))
    edit = call("Edit", "s", file_path="store.py", old_string="a", new_string="b"), answer("ok", "s")
    session = (user(ASKED), *edit, message)
    shown = "\n".join(texts(digest(conversation(*session), 1_500), Section.TASK))
    assert "Danach: Sag Bescheid. 1. Ich ziehe den Zweig ein. · 2. Ich setze die Marke neu." in shown
    done = ran("git merge zweig", "Fast-forward")
    assert "Sag Bescheid" not in "\n".join(texts(digest(conversation(*session, *done), 1_500), Section.TASK))


def test_what_was_announced_last_is_told_behind_what_was_found() -> None:
    edit = (call("Edit", "s", file_path="store.py", old_string="a", new_string="b"), answer("ok", "s"))
    for found in ("Clean lint.", "The hour is dropped by the key of the readings, which is their local time."):
        words = says(f"{found} Now let me check the test that named `drop_hour`.")
        told = texts(digest(conversation(user(ASKED), *edit, words), 900), Section.TASK)
        assert found in "".join(told)
        assert "Now let me check the test that named `drop_hour`." in told[-1]


def test_a_question_of_the_agent_to_itself_is_no_state() -> None:
    told = says(
        "`open()` drops the second hour. " + "It reads the clock of the gauge once. " * 30 + "What does `tz` do?"
    )
    looked = ran("grep -n tz clock.py", "3: tz = None")
    shown = texts(digest(conversation(user("why does it drift?"), told, *looked), 300), Section.TASK)
    assert any("drops the second hour" in text for text in shown)
    assert not any("What does `tz` do?" in text for text in shown)


def test_what_an_announcement_says_of_why_is_told() -> None:
    told = says("I need to use `utc_of()` to handle the gauges of the old kind.")
    shown = texts(digest(conversation(user("mend the drift"), told, *ran("ls", "a")), 2_000), Section.TASK)
    assert any(told.text in text for text in shown)


def task(*messages: Message | tuple[Message, ...]) -> list[str]:
    return texts(digest(conversation(*messages), 3_000), Section.TASK)


def test_a_remark_is_not_what_was_asked() -> None:
    read = (call("Read", "r", file_path="store.py"), answer("a = 1", "r"))
    for remark in ("oh whoops, switched branches, my bad", "Thanks, that's all for today. Bye!"):
        found = task(user("rebase our branch onto the export branch"), read, says("It is rebased."), user(remark))
        assert found[0] == "Asked: rebase our branch onto the export branch"
    for before in ((), (user("rebase our branch onto the export branch"),)):
        found = task(*before, read, says("It is."), user("thanks, now add a test of the export"))
        assert found[0] == "Asked: thanks, now add a test of the export"


def test_words_in_the_middle_of_the_work_stand_with_the_request_that_they_do_not_end() -> None:
    edit = (call("Edit", "e", file_path="store.py", old_string="a", new_string="b"), answer("ok", "e"))
    asked = user("move the times of all the gauges to UTC, one commit a module")
    note = user("let's not leave all of the tests to the very end of this")
    assert "Before that: move the times of all the gauges to UTC, one commit a module" in task(asked, edit, note, edit)
    assert not any("Before that" in text for text in task(asked, edit, says("They are moved."), note, edit))
    notice = user("<task-notification><task-id>b1</task-id><status>completed</status></task-notification>")
    assert not any("Before that" in text for text in task(asked, edit, says("They are moved."), notice, note, edit))


def test_a_new_request_is_no_reply_to_what_was_said_before_it() -> None:
    opened = ran("gh pr create --fill", "https://github.com/a/b/pull/7")
    found = task(user("open a pull request"), opened, says("It is opened."), user("fix the lint failure of the build"))
    assert found[:1] == ["Asked: fix the lint failure of the build"]
    assert not any(text.startswith("In reply to") for text in found)


def test_a_remark_that_much_was_done_after_is_no_state_and_an_explanation_is() -> None:
    edits = [
        (call("Edit", f"e{n}", file_path=f"m{n}.py", old_string="a", new_string="b"), answer("ok", f"e{n}"))
        for n in range(6)
    ]
    brief = "Since `store` imports `clock`, it can't be the other way round."
    remark = says(brief)
    why = says(
        f"{brief} The readings of a day are cut at midnight of the gauge's own clock, so that a "
        "move to UTC moves them to another day, unless the export converts them first."
    )
    looked = ran("cat clock.py", "import time")
    assert any("imports `clock`" in text for text in task(user(ASKED), looked, remark, edits[0]))
    assert not any("imports `clock`" in text for text in task(user(ASKED), looked, remark, *edits))
    assert any("imports `clock`" in text for text in task(user(ASKED), looked, why, *edits))


def test_a_thought_is_told_in_whole_sentences_from_its_end() -> None:
    aim = "I need to replace the three uses of `gauge_zone` and to take the local helper out of `clock.py`."
    thought = thinks(f"{'The tests of the clock all use a helper of their own. ' * 6}{aim}")
    found = task(user(ASKED), ran("cat clock.py", "import time"), thought, call("Grep", "g", pattern="gauge_zone"))
    assert any('· thought: "The tests of' in text and text.endswith(f'{aim}"') for text in found)


def test_steps_and_the_newest_thought_stand_in_order_and_those_that_only_looked_go_first() -> None:
    edit = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))
    looked = [one for name in "abcd" for one in ran(f"cat {name}.py", "import time")]
    found = task(
        user(ASKED), *edit, *looked, thinks("The helper is in d.py. Next I take it out."), *ran("cat e.py", "x")
    )
    assert found[-1].endswith(
        'since then: Edit clock.py · `cat d.py` · thought: "The helper is in d.py. Next I take it out." · `cat e.py`'
    )


def test_an_order_to_oneself_is_no_state_and_what_is_seen_is() -> None:
    done = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))
    seen = says("I see the replacement took the definition of the helper along as well.")
    order = says("Now remove the local helper functions of the tests that are no longer needed.")
    found = task(user(ASKED), ran("cat clock.py", "import time"), seen, order, done)
    assert any(text.endswith("took the definition of the helper along as well.") for text in found)


def test_an_edit_in_the_record_of_the_words_before_it_was_made() -> None:
    edit = ToolCall(id="e", name="Edit", arguments={"file_path": "a.py", "old_string": "a", "new_string": "b"})
    words = Text(text="The reader drops the second hour because it takes it for a duplicate of the first.")
    both = Message(role=Role.ASSISTANT, parts=(words, edit))
    assert task(user("please mend the reader"), both, answer("ok", "e"))[-1] == "since then: Edit a.py"


def test_what_a_subagent_reported_last_stands_with_the_steps_since() -> None:
    report = "Now I have all that I need.\n\n## Findings\nThe second hour is dropped by `read_feed` in feed.py."
    explored = call("Task", "1", description="Explore the reader"), answer(report, "1")
    steps = task(user("please mend the reader"), says("Let me explore the reader."), *explored)[-1]
    assert steps.endswith('Task → "The second hour is dropped by `read_feed` in feed.py."')


def test_the_last_question_of_a_dialogue_stands_with_what_it_is_about() -> None:
    listed = " ".join(
        f"Option {n} is a camera with {n} lenses, sold in the city of Port {n} for ${n}00." for n in range(9)
    )
    asked = says(f"Here is what I found. {listed} Your order #W74 would change to option 4. Shall I change it?")
    session = conversation(user("I would like another camera, the cheapest one that is waterproof"), asked)
    (_, state) = texts(digest(session, 200), Section.TASK)
    assert state.endswith("Your order #W74 would change to option 4. Shall I change it?")


def test_what_the_user_has_agreed_to_stands_whole() -> None:
    offer = (
        "I see that flight HAT018 was delayed. Since you are a gold member, I can send you a certificate of $50 for the"
        " inconvenience. Would you like me to go ahead with that?"
    )
    agreed = user("Yes, that would be great. Thank you for the offer, I really do appreciate it after that long day.")
    asked = user("my last flight was late, and I would like to have something for it"), says(offer), agreed
    (_, proposal, *_) = texts(digest(conversation(*asked), 500), Section.TASK)
    assert proposal.endswith(f": {offer}")


def test_a_doubt_about_the_work_stands_with_the_request_it_goes_back_to() -> None:
    asked = "Move the readings of all gauges into one table and keep the export as it is."
    work = (says("I add a second handler."), ran("make", "ok"))
    one = digest(conversation(user("Read it."), says("Done."), user(asked), *work, user("why are there 2 handlers?")))
    shown = texts(one, Section.TASK)
    assert shown[0].endswith("why are there 2 handlers?")
    assert any(asked in text for text in shown[1:])


def test_an_edit_that_failed_is_a_step_with_the_error_that_it_ended_with() -> None:
    write = (
        call("write_file", "w", path="/srv/hello.py"),
        answer("No such file or directory: '/srv'", "w", is_error=True),
    )
    shown = texts(digest(conversation(user("Write hello.py."), says("I begin."), write)), Section.TASK)
    assert any("/srv/hello.py → failed: No such file or directory: '/srv'" in text for text in shown)


def test_what_was_announced_for_after_the_work_under_way_is_told_until_it_is_taken_up() -> None:
    plan = says("Let me first mend the review's findings, then answer your question of the drift.")
    edit = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))
    found = task(user("why does the gauge drift?"), plan, *edit, says("The first finding is mended."))
    assert f'Announced: "{plan.text}"' in found
    later = says("The drift of the question comes from the zone of the gauge.")
    for asked in ((later, *edit, says("It is mended.")), (user("and mend the export of the gauges"), *edit, later)):
        assert not any(text.startswith("Announced") for text in task(user("why does it drift?"), plan, *edit, *asked))


def test_a_request_that_stays_before_the_summary_is_pointed_at() -> None:
    session = conversation(user(f"{ASKED} {ASKED} {ASKED}"), says("I begin with the ticket."), ran("make export", "ok"))
    first, *_ = items(digest(session, 900, covered=range(1, 4), kept=(0,)), Section.TASK)
    assert first.text.startswith(f"Asked: {ASKED}")
    assert len(first.text) < 2 * len(ASKED)
    assert first.records == ()


def test_after_thanks_and_goodbye_the_task_is_what_was_asked_before_them() -> None:
    asked = user("I would like to move my flight HAT018 to Friday, please.")
    for goodbye in (
        "Great, thank you for your help!",
        "Thank you so much! That's everything I needed. Have a great day!",
        "That's perfect! Thanks for your help.",
    ):
        assert task(asked, says("It is moved to Friday."), user(goodbye))[0] == f"Asked: {asked.text}"
    more = user("Thanks for your help! And can I take a suitcase with me?")
    assert task(asked, says("It is moved to Friday."), more)[0] == f"Asked: {more.text}"


def test_in_a_dialogue_an_answer_stands_with_the_request_that_it_is_for() -> None:
    asked = user("I would like to cancel my booking of the fourth of May.")
    found = task(asked, says("Which booking is it?"), user("I do not have the number of it here with me."))
    assert f"Before that: {asked.text}" in found
    found = task(asked, says("It is LU15PA. Shall I cancel it?"), user("Yes, please go ahead with the cancellation."))
    assert f"Before that: {asked.text}" in found
    new = user("Great! Could you also look for a flight on the fifth of May?")
    assert not any("Before that" in text for text in task(asked, says("It is cancelled. Anything else?"), new))


def test_an_address_alone_is_no_request() -> None:
    address = "https://tides.example.org/gauges/north/readings/2026/october/clock-drift-of-the-second-hour.html"
    found = task(user(address), ran("make", "ok"), says("It is a report of the drift."), user("yes"), ran("make", "ok"))
    assert not any(text.startswith("Before that") for text in found)


def test_an_option_that_heads_lines_of_its_own_is_pointed_at_with_these() -> None:
    offer = says("Which one?\n\n1. **First flight:**\n   - HAT018 at noon\n2. **Second flight:**\n   - HAT056 at night")
    found = task(user("a flight to Boston"), offer, user("I would like to book option 2, please."))
    assert any("2. Second flight: HAT056 at night" in text for text in found)


def test_intentions_that_as_many_steps_followed_are_no_state() -> None:
    found = says("The drift comes from the zone of the gauge. I need to:\n1. convert the zone\n2. test the export")
    edits = [
        (call("Edit", n, file_path=f"m{n}.py", old_string="a", new_string="b"), answer("ok", n)) for n in ("1", "2")
    ]
    assert any("convert the zone" in text for text in task(user(ASKED), found, edits[0]))
    done = task(user(ASKED), found, *edits)
    assert not any("convert the zone" in text for text in done)
    assert any("comes from the zone of the gauge" in text for text in done)


def test_what_the_state_leaves_free_is_the_requests() -> None:
    long = (
        f"please read the readings of all gauges, {'of the north and of the south, ' * 9}and keep each of their names."
    )
    session = conversation(user(long), says("Done."), user("yes"), *ran("make", "ok"))
    assert f"Before that: {long}" in texts(digest(session, 1_500), Section.TASK)


def test_a_request_is_named_by_what_it_asks_and_not_by_what_it_tells_the_agent_of_itself() -> None:
    preface = "You are given: (1) a task and (2) a plan. You should follow the plan.\n# Task\n"
    role = "You are a highly experienced developer. "
    for before in (preface, role, "We're currently solving the following issue. Here is the text:\nISSUE:\n"):
        session = conversation(user(before + ASKED), says("I begin."), ran("make export", "ok"))
        first, *_ = texts(digest(session, 900, covered=range(1, 4), kept=(0,)), Section.TASK)
        assert first.startswith(f"Asked: {ASKED}")


def test_of_options_that_do_not_fit_each_keeps_what_it_is_known_by_and_its_price() -> None:
    listed = "\n".join(
        f"{n}. **Option {n}:**\n   - **Flight:** DEN to RNO\n     - Flight Number: HAT10{n}\n"
        f"     - Departure: 0{n}:00 EST, from gate {n} of the north hall\n     - Price: ${n}17"
        for n in range(1, 6)
    )
    asked = says(f"These flights are free:\n\n{listed}\n\nWhich one shall I book?")
    session = conversation(user("is there a flight to Reno tomorrow?"), asked)
    for tokens in (260, 300):
        state = texts(digest(session, tokens), Section.TASK)[-1]
        assert all(f"HAT10{n}" in state for n in range(1, 6))
        assert "north hall" not in state
        assert state.endswith("Which one shall I book?")
    shown = [text for size in range(100, 320, 20) for text in texts(digest(session, size), Section.TASK)[1:]]
    assert not any("Option 5" in text and "Option 1" not in text for text in shown)


def test_a_proposal_that_does_not_fit_keeps_what_is_proposed_and_the_question() -> None:
    told = " ".join(f"It stops in the town of Port {n} and goes on from there at {n} o'clock." for n in range(1, 12))
    proposed = says(f"The cheapest is HAT107 for $717, as it flies at night. {told} Shall I book HAT107 for you?")
    session = conversation(user("the cheapest flight to Reno please, and with no more than two stops"), proposed)
    state = texts(digest(session, 200), Section.TASK)[-1]
    assert "The cheapest is HAT107 for $717, as it flies at night. …" in state
    assert state.endswith("Shall I book HAT107 for you?")


def test_a_question_after_thanks_is_nothing_agreed_to_that_waits_to_be_done() -> None:
    asked = user("Great! For the other flights, could you check whether there is a seat in business class?")
    found = call("search_flights", "1", to="RNO"), answer('[{"flight_number": "HAT107", "business": 3}]', "1")
    before = user("cancel the one to Boston please"), says("It is cancelled.")
    (request, *_) = texts(digest(conversation(*before, asked, *found), 900), Section.TASK)
    assert request.endswith("business class?")


def test_a_question_that_the_kept_records_answer_is_not_waiting_any_more() -> None:
    session = conversation(user("Book me the early ferry."), says("The early one is full. Shall I take the late one?"))
    answered = conversation(*session.messages, user("Yes, the late one."))
    assert any(text.startswith("Waiting for an answer: ") for text in texts(digest(session, 900), Section.TASK))
    one = digest(answered, 900, covered=(0, 1), kept=(2,))
    assert not any(text.startswith("Waiting for an answer: ") for text in texts(one, Section.TASK))


def test_what_was_announced_before_the_state_that_is_quoted_is_no_step_since() -> None:
    told = "Let me look at the gauge first. The gauge of the north quay counts every tide twice. Now I will change it."
    one = digest(conversation(user("Why is the tide wrong?"), says(told), call("Read", file_path="gauge.py")), 900)
    announced = [text for text in texts(one, Section.TASK) if text.startswith(("since then", "Announced"))]
    assert announced == ['Announced: "Now I will change it."']


def test_a_question_above_its_options_waits_for_an_answer() -> None:
    asked = says(
        "The store has one kind of clock, and the harbour two. When should the drift be set?\n\nA) With each reading\n"
        "B) Once a day, by the export\nC) Both, in two columns of the store"
    )
    text = rendered(digest(conversation(user("add a drift to the clocks"), asked), 600).summary)
    assert "Waiting for an answer: " in text


def test_a_patch_by_the_shell_is_named_by_the_program_and_the_file() -> None:
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: tide.py\n@@\n-x\n+y\n*** End Patch\nEOF"
    one = digest(conversation(user("Mend the gauges of the northern stations."), *ran(patch, "Success.", tool="shell")))
    assert "since then: apply_patch tide.py" in texts(one, Section.TASK)


def test_a_request_that_leans_on_the_one_before_it_is_shown_with_that_and_with_no_older_one() -> None:
    old = user("Please write the export of the gauges of the north as a table."), says("Written."), BUILD
    before = user("the columns of the night in grey"), BUILD, says("They are grey.")
    assert task(*old, *before, user("and for the south too"), BUILD)[:2] == [
        "Asked: and for the south too",
        "Before that: the columns of the night in grey",
    ]
    alone = task(*old, *before, user("Please add a column for the wind to the table."), BUILD)
    assert not any(text.startswith("Before that") for text in alone)


def test_a_request_behind_several_yeses_and_answers_is_dealt_with() -> None:
    old = user("Please write the export of the gauges of the north as a table."), says("Written."), BUILD
    yeses = [(says("Shall I go on?"), user(word), BUILD) for word in ("yes", "ok", "sure", "go on")]
    found = task(*old, *(one for yes in yeses for one in yes), user("and the south"), BUILD)
    assert not any(text.startswith("Before that") for text in found)


def test_what_was_announced_and_then_done_is_no_step() -> None:
    edit = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))
    seen = "The clock takes the zone of the gauge for its own."
    order = says(f"{seen} Now let me put the zone of the quay into it.")
    thought = thinks("The export reads it once. Let me run the tests of the export.")
    found = task(user(ASKED), order, *edit, thought, *ran("make test", "12 passed"))
    assert found[1] == f"Said before the newest steps: {seen}"
    assert found[2] == 'since then: Edit clock.py · thought: "The export reads it once." · `make test` → ok'


def test_a_few_words_that_something_was_done_after_are_no_state() -> None:
    edit = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))
    assert not any("Good points" in text for text in task(user(ASKED), says("Good points."), *edit))


def test_a_request_that_newer_words_of_the_kept_records_follow_is_not_called_the_newest() -> None:
    session = (user(ASKED), says("The drift is mended in clock.py."))
    for words, label in (("now add it to the export as well", "Asked earlier"), ("thanks", "Asked")):
        one = digest(conversation(*session, user(words)), 900, covered=(0, 1), kept=(2,))
        assert texts(one, Section.TASK)[0].partition(": ")[0] == label


def test_what_was_announced_is_taken_up_by_a_tool_of_that_name() -> None:
    looked = ran("cat clock.py", "import time")
    order = says("Let me put the files of the clock into the plan, and then exit plan mode.")
    shown = call("ExitPlanMode", "p", plan="1. mend the clock"), answer("ok", "p")
    assert any(text.startswith("Announced") for text in task(user(ASKED), order, *looked))
    assert not any(text.startswith("Announced") for text in task(user(ASKED), order, *looked, *shown))


def test_an_argument_that_was_not_given_is_not_stated() -> None:
    edit = call("Edit", "e", file_path="tide.py", old_string="low = 1", new_string="low = 2")
    found = call("web_search", "w", type="search", query="tides", url=None)
    one = digest(conversation(user("find the tides"), edit, answer("done", "e"), found, answer("none", "w")))
    assert any("web_search(search, tides)" in text for text in texts(one, Section.TASK))


def test_what_was_said_in_a_step_that_was_closed_since_is_no_state_of_the_work() -> None:
    said = "The init function is too large now. The simplest way is a nolint mark, since it only registers handlers."
    made = call("TaskCreate", "1", subject="Register"), answer("Task #1 created successfully: Register", "1")
    edit = call("Edit", "e", file_path="src/init.go", old_string="a", new_string="b"), answer("ok", "e")
    closed = call("TaskUpdate", "2", taskId="1", status="completed"), answer("Updated task #1", "2")
    session = (user("register the handlers of both harbours"), *made, says(said), *edit)
    assert any(said in text for text in texts(digest(conversation(*session), 1_500), Section.TASK))
    assert not any(said in text for text in texts(digest(conversation(*session, *closed), 1_500), Section.TASK))


def test_where_no_request_is_recorded_what_the_agent_set_out_to_do_stands_for_it() -> None:
    begun = says("I'll call `ready` to get the first gauge and begin the round of the harbour.")
    found = says("Gauge 12 is claimed by another round, and its clock stands still.")
    session = (begun, *ran("gauges ready", "none"), found, *ran("gauges show 12", "claimed"))
    assert texts(digest(conversation(*session), 1_500), Section.TASK)[0] == f'Began with: "{begun.text}"'
    asked = texts(digest(conversation(user("do the round"), *session), 1_500), Section.TASK)
    assert not any(text.startswith("Announced") for text in asked)


def test_who_asks_whether_the_agent_goes_on_asks_for_nothing_else() -> None:
    asked = "add the page of the winter to the handbook of the gauges"
    edit = call("Edit", "e", file_path="docs/winter.md", old_string="a", new_string="b"), answer("ok", "e")
    one = digest(conversation(user(asked), *BUILD, user("hey, you good there?"), *edit, says("I go on.")), 1_500)
    assert texts(one, Section.TASK)[0].startswith(f"Asked: {asked}")


def test_what_the_agent_asks_itself_waits_for_no_answer() -> None:
    asked = says(
        "The gauge is empty after the rotation. Let me check: when it turns, does the store keep the old name?"
    )
    one = digest(conversation(user("why is the gauge empty?"), asked, *ran("cat store.py", "x = 1"), asked), 3_000)
    assert not any(text.startswith("Waiting for an answer") for text in texts(one, Section.TASK))
    going_on = digest(conversation(user("why is the gauge empty?"), asked, call("Read", file_path="store.py")), 3_000)
    assert texts(going_on, Section.QUESTIONS) == []


def test_of_what_is_thought_aloud_what_it_turned_away_from_stands_nowhere() -> None:
    aloud = says(
        "The bug is that `turn_wheel` in tide.py drops the key of the north gauge, as its cache is old. "
        "But wait, `turn_wheel` runs on the side of the sender. Actually, the lock of `read_gauge` is never opened, "
        "so every reading after the first one is empty. Let me look at the store."
    )
    one = digest(conversation(user("why is the gauge empty?"), *BUILD, aloud, *ran("cat store.py", "x = 1")), 3_000)
    shown = rendered(one.summary)
    assert "the lock of `read_gauge` is never opened" in shown
    assert "drops the key" not in shown


def test_what_code_came_to_that_was_written_in_words_and_run_stands_among_the_newest_steps() -> None:
    script = says("The key was not there. Here is the new script:\n\n```python\nprint(newest())\n```\nLet's run it.")
    shown = Message(role=Role.TOOL, parts=(Text(text="exitcode: 0\nCode output: the newest reading is of 2024-12-10"),))
    one = digest(conversation(user("When was the newest reading taken?"), script, shown), 1_500)
    assert any(text.endswith("the newest reading is of 2024-12-10") for text in texts(one, Section.TASK))


def test_of_a_file_that_is_read_in_parts_the_newest_step_names_the_part() -> None:
    first = call("Read", "r", file_path="clock.py", limit=500), answer("x = 1", "r")
    second = call("Read", "s", file_path="clock.py", offset=500, limit=500), answer("y = 2", "s")
    one = digest(conversation(user("read clock.py, 500 lines at a time"), *first, *second), 900)
    assert texts(one, Section.TASK)[-1].endswith("Read clock.py (1-500) · Read clock.py (500-999)")


def test_a_note_while_the_agent_works_is_added_to_what_it_works_on() -> None:
    look = call("Read", "r", file_path="src/tide.py"), answer("def low(): ...", "r")
    note = user("note: the other clock seems to work")
    lines = texts(digest(conversation(user("find out why the clock is late"), look, note, look), 900), Section.TASK)
    assert lines[0].startswith("Asked: find out why the clock is late")
    assert lines[1] == "Added meanwhile: note: the other clock seems to work"


def test_of_an_option_that_is_chosen_by_its_number_what_stands_under_it_is_quoted() -> None:
    offer = says(
        "## Option 1: Ask once\n- A prompt that waits\n\n## Option 2: Inform, do not ask\nShow a notice:\n"
        "\n- Only shown where nothing is stored yet\n- The metrics stay enabled\n\n## Option 3: Nothing\n- Only docs\n"
    )
    session = conversation(user("how do we ask for metrics?"), offer, user("let's implement option 2"))
    lines = texts(digest(session, 900), Section.TASK)
    assert any("Only shown where nothing is stored yet" in line and "Only docs" not in line for line in lines)


def test_steps_that_are_left_out_before_the_newest_are_not_told_as_if_they_were_not() -> None:
    def edit(number: int) -> tuple[Message, Message]:
        given = {"file_path": f"src/page_{number}.py", "old_string": "a", "new_string": "b"}
        return call("Edit", f"e{number}", **given), answer("ok", f"e{number}")

    def since(count: int) -> str:
        lines = texts(digest(conversation(user("link the pages"), *map(edit, range(count))), 900), Section.TASK)
        return next(line for line in lines if line.startswith("since then: "))

    assert since(9).startswith("since then: … Edit src/page_")
    assert since(2).startswith("since then: Edit src/page_0.py")


def test_that_an_agent_is_being_started_is_over_once_it_has_answered() -> None:
    started = says("◆ Spawning researcher...")
    session = conversation(user("plan phase 14"), started, call("Task", "1", prompt="look"), answer("done", "1"), BUILD)
    assert "Spawning" not in " ".join(texts(digest(session, 900), Section.TASK))


def test_a_look_that_was_announced_is_past_once_some_calls_were_made() -> None:
    aim = says("The check of the clock runs. I'll wait for its end and then check whether the artifacts changed.")
    looks = [part for n in range(4) for part in ran(f"cat part{n}.py", f"gauge = {n}")]
    assert any("Announced" in text for text in task(user(ASKED), aim, *looks[:2]))
    assert not any("Announced" in text for text in task(user(ASKED), aim, *looks))


def test_what_is_announced_for_after_what_is_under_way_stands_in_now() -> None:
    aim = says("I'm reading the checklist of the harbour now, then I'll close with the command for the tag v4.")
    assert any("the command for the tag v4" in text for text in task(user(ASKED), aim, *ran("cat list.md", "- ship")))


def test_the_steps_of_a_list_are_announced_until_the_last_of_them_is_begun() -> None:
    order = says("I'll create a branch, commit, push, create a PR, and squash merge it.")
    pushed = ran("git checkout -b clock && git commit -qam x && git push", "ok")
    assert f'Announced: "{order.text}"' in task(user(ASKED), order, *pushed)
    merged = ran("gh pr merge --squash", "merged")
    assert not any(text.startswith("Announced") for text in task(user(ASKED), order, *pushed, *merged))
    things = says("I'll update the clock, the export, the gauge, and the tide tables.")
    assert not any(text.startswith("Announced") for text in task(user(ASKED), things, *pushed))


def test_of_many_looks_of_one_message_the_last_ones_are_shown() -> None:
    names = [f"gauge_{n}.py" for n in range(6)]
    calls = Message(role=Role.ASSISTANT, parts=tuple(one for n in names for one in call("Read", n, file_path=n).parts))
    found = task(user(ASKED), calls, *(answer("low = 1", n) for n in names))
    assert any(text.startswith("since then") and "gauge_5.py" in text and "gauge_1.py" not in text for text in found)


def test_what_a_search_found_since_stands_with_it() -> None:
    found = (call("Grep", "g", pattern="read_gauge", path="src"), answer("No matches found", "g"))
    one = digest(conversation(user("where are gauges read?"), *ran("make", "ok"), *found), 1_500)
    assert any('Grep read_gauge → "No matches found"' in text for text in texts(one, Section.TASK))


def test_a_call_that_the_user_stopped_last_without_a_word_waits_for_him() -> None:
    refused = answer(
        "The user doesn't want to proceed with this tool use. STOP what you are doing.", "p", is_error=True
    )
    plan = call("ExitPlanMode", "p", plan="# Count the gauges\n\n1. Find them")
    one = digest(conversation(user("plan the count"), *ran("ls", "a"), plan, refused), 1_500)
    assert "Waiting for an answer (Stopped by the user: ExitPlanMode" in texts(one, Section.TASK)[-1]
    more = digest(
        conversation(user("plan the count"), plan, refused, says("I wait."), user("go on"), says("Yes.")), 1_500
    )
    assert not any("Stopped by the user: Exit" in text for text in texts(more, Section.TASK)[1:])


def test_what_the_assistant_would_do_in_the_place_of_the_user_is_not_announced() -> None:
    stated = "The tide tables have one wrong sign. Given that, I'd fix it and then proceed with the test of the pumps."
    seen = ran("cat tides.py", "a = 1")
    (_, state) = texts(digest(conversation(user("review the tide tables"), seen, says(stated))), Section.TASK)
    assert state == f"Where it stands: {stated}"


def test_where_no_call_has_a_result_none_is_missed() -> None:
    calls = [call("Edit", str(n), file_path=f"{n}.py", old_string="a", new_string="b") for n in range(12)]
    one = digest(conversation(user("change them all"), *calls), 1_500)
    assert not any("No result seen of" in text for text in texts(one, Section.TASK))
    answered = digest(conversation(user("change them all"), *calls[:2], answer("ok", "0"), *calls[2:]), 1_500)
    assert any("No result seen of" in text for text in texts(answered, Section.TASK))


def test_on_one_line_what_stands_under_different_leads_is_kept_apart() -> None:
    filler = [f"The reading of gauge_{n} has its hour from the lock of harbour_{n}." for n in range(60)]
    long = "with the level, the hour and the lock of every gauge that was read since the last tide of the month" * 2
    end = f"## Page\n\n- Charts:\n  - Levels by hour\n  - Locks by day\n- Recent tides — {long}"
    found = says("\n\n".join(("## Done", *filler, end)))
    edit = call("Edit", "s", file_path="store.py", old_string="a", new_string="b"), answer("ok", "s")
    shown = "\n".join(texts(digest(conversation(user(ASKED), *edit, found), 1_500), Section.TASK))
    assert "Levels by hour · Locks by day · Recent tides" in shown
    assert shown.count("Recent tides") == 1


@pytest.mark.parametrize(
    "left",
    [
        "Not committed yet, let me know if the draft should be changed first.",
        "With that, the working tree is clean but for the notes.",
    ],
)
def test_of_a_long_last_message_what_is_left_to_the_user_is_quoted_first(left: str) -> None:
    report = "".join(f"The page of gauge {n} names pier_{n}, its {n} readings and level_{n}.csv. " for n in range(60))
    one = digest(conversation(user(ASKED), *BUILD, says(f"{report}{left}")), 900)
    assert left in texts(one, Section.TASK)[1]


def test_the_command_that_the_user_is_asked_to_run_is_quoted_as_one() -> None:
    report = "".join(f"The page of gauge {n} names pier_{n}, its {n} readings and level_{n}.csv. " for n in range(60))
    command = "Now retry the export:\n\n```sh\n# slow\nmake export \\\n  --gauges 400 \\\n  --days 7\n```"
    one = digest(conversation(user(ASKED), *BUILD, says(f"{report}\n\n{command}")), 900)
    assert "Now retry the export: … `make export --gauges 400 --days 7`" in texts(one, Section.TASK)[1]


def test_the_options_of_a_question_stand_with_it_and_not_what_is_above_another_list() -> None:
    above = "".join(f"I did not commit the page of gauge {n}, as you asked.\n\n" for n in range(20))
    done = "So far:\n\n- moved the store of the gauges\n- left the plan as it is\n\n"
    ways = "".join(
        f"{n}. {way} of the gauges, {'by the hour, ' * 30}and so on.\n" for n, way in ((1, "Keep"), (2, "Sum"))
    )
    question = "Which of the two do you prefer for the plan?"
    session = (
        user(ASKED),
        *BUILD,
        says(f"{above}## Ways\n\n{done}There are two ways:\n\n{ways}\n{question}"),
        user("explain them"),
    )
    shown = "\n".join(texts(digest(conversation(*session, says("I look.")), 500), Section.TASK))
    assert "1. Keep of the gauges" in shown
    assert "2. Sum of the gauges" in shown


def test_the_words_with_which_the_agent_stopped_tell_the_state_even_if_they_sound_like_a_step() -> None:
    before = (
        "The `read_level` check can no longer skip the first event of a gauge, since no gauge has an empty name. " * 2
    )
    last = (
        "Pushed as 8362b3f. I'll hold off calling this mergeable until the harbour has answered in the fifth round, say"
    )
    end = f"{last} the word when you want me to check their response to it."
    one = digest(conversation(user(ASKED), *BUILD, says(before), *ran("git push", "ok"), says(end)), 900)
    shown = "\n".join(texts(one, Section.TASK))
    assert "Pushed as 8362b3f." in shown
    assert "say the word when you want me to check their response to it." in shown


def test_a_result_that_was_delivered_empty_is_shown_as_such() -> None:
    report = says("No gap was found in any of the three gauges, since each checks its level before it opens.")
    sent = call("StructuredOutput", "s", findings=[]), answer("Structured output provided successfully", "s")
    one = digest(conversation(user("review the gauges and return the list of findings"), *BUILD, report, sent), 900)
    assert "Where it stands: findings: []" in texts(one, Section.TASK)
    gap = {"title": "The lock opens late", "severity": "high"}
    sent = call("StructuredOutput", "s", findings=[gap]), answer("Structured output provided successfully", "s")
    one = digest(conversation(user("review the gauges and return the list of findings"), *BUILD, sent), 900)
    assert "title: The lock opens late" in rendered(one.summary)
    wrong = (
        call("StructuredOutput", "w", findings="none of them"),
        answer("findings: must be array", "w", is_error=True),
    )
    one = digest(conversation(user("review the gauges and return the list of findings"), *BUILD, wrong, sent), 900)
    assert "none of them" not in rendered(one.summary)


@pytest.mark.parametrize(
    "told", ["[Request interrupted by user]", "<turn_aborted>\nThe user stopped it.\n</turn_aborted>"]
)
def test_a_request_that_the_user_stopped_before_a_word_was_said_is_stopped_and_not_replied_to(told: str) -> None:
    read = (
        call("Read", "r", file_path="tide.py"),
        answer("# Reads the tide of a gauge every hour.\ndef tide(): ...", "r"),
    )
    stop = user(told)
    one = digest(conversation(user("Which gauges does the export skip, and why?"), read, stop), 900)
    assert "Stopped by the user" in texts(one, Section.TASK)
    assert "replied" not in rendered(one.summary)
    after = digest(conversation(user(ASKED), read, stop, user("Go on with the ticket, please."), BUILD), 900)
    assert "Stopped by the user" not in texts(after, Section.TASK)


def test_a_request_after_the_question_whether_there_is_more_to_do_is_a_new_one() -> None:
    report = says("The export is live and was tried with both gauges. Want me to do anything else before you close it?")
    one = digest(conversation(user(ASKED), *BUILD, report, user("export a transcript of the chat"), *BUILD), 900)
    assert texts(one, Section.TASK)[0] == "Asked: export a transcript of the chat"
    assert not any(text.startswith(("In reply to", "Before that")) for text in texts(one, Section.TASK))


def test_that_no_answer_came_stands_where_the_session_ends_with_it() -> None:
    error = says("API Error: Request rejected (429) · this may be a temporary limit")
    one = digest(conversation(user(ASKED), *BUILD, error), 900)
    assert any(text.startswith('Broken off: "API Error: Request rejected (429)') for text in texts(one, Section.TASK))
    after = digest(conversation(user(ASKED), *BUILD, error, user("go on"), says("The ticket is filed.")), 900)
    assert "API Error" not in rendered(after.summary)


def test_what_was_announced_is_over_once_a_report_ends_the_work() -> None:
    aim = says("I'll look at the clock first, then patch what the linter shows and repeat it.")
    steps = [part for n in range(4) for part in ran(f"cat part{n}.py", f"gauge = {n}")]
    report = says(f"All of it is done. {'The clock rings at the hour, and the gauge reads the level then. ' * 3}")
    assert any("Announced" in text for text in task(user(ASKED), aim, *steps))
    assert not any("Announced" in text for text in task(user(ASKED), aim, *steps, report))
