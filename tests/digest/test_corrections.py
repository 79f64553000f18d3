"""Corrections: of what was explained, what a later message doubts or overtakes is marked, and nothing else."""

from __future__ import annotations

import pytest
from conversation import (
    answer,
    call,
    conversation,
    digest,
    events_of,
    ran,
    rendered,
    request,
    says,
    summary,
    texts,
    user,
)

from compactor_cli.digest.analysis import analyse
from compactor_cli.digest.candidates import candidates_of
from compactor_cli.digest.corrections import misunderstood, overturned, standing
from compactor_cli.digest.statements import statements_of
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message

DOUBT = "(message questioned or overruled later)"
REVIEW = says(
    "I looked through the store, the clock and the page of the gauges, and this is what I think of the comments:\n\n"
    "- `ClockKind` reads the drift of both harbours, a second kind would only be another name for it\n"
    "- The export must not stop where a gauge of the harbour sends nothing, so it has to write an empty row\n"
    "- The page reads every gauge again after each of the requests, which takes a second for the whole harbour\n"
)
EDIT = (call("Edit", "e", file_path="src/store.py", old_string="a", new_string="b"), answer("ok", "e"))


AFTER = (
    user("and the page?"),
    says("It reads the store of the harbour once."),
    user("then rename the names of the clocks"),
)


def doubted(*messages: Message | tuple[Message, ...]) -> list[str]:
    found = events_of(*messages)
    return [
        piece
        for number, places in overturned(found).items()
        for place, (piece, _, _) in enumerate(statements_of(found[number].text))
        if place in places
    ]


def shown(*messages: Message | tuple[Message, ...]) -> str:
    return rendered(digest(conversation(user("review the store of the gauges"), *messages), 3_000).summary)


def after_edit(found: Message, old: str, new: str) -> str:
    """What is shown once ``found`` was said and ``src/export.py`` was then edited."""
    edit = call("Edit", "x", file_path="src/export.py", old_string=old, new_string=new), answer("ok", "x")
    return shown(found, *AFTER, *edit, says("They are renamed."))


def test_of_a_message_only_what_the_correction_is_about_is_in_doubt() -> None:
    corrected = user("the clock kinds are not right, one for each harbour please")
    assert doubted(REVIEW, corrected) == [
        "`ClockKind` reads the drift of both harbours, a second kind would only be another name for it"
    ]
    text = shown(REVIEW, corrected, says("I add a type for each of the harbours."))
    assert f"another name for it {DOUBT}" in text
    assert text.count(DOUBT) == 1


def test_where_a_correction_names_nothing_of_a_message_all_of_it_is_in_doubt() -> None:
    assert len(doubted(REVIEW, user("no, that's wrong"))) == 3


def test_a_question_that_the_user_wants_to_discuss_takes_nothing_back() -> None:
    asked = call("AskUserQuestion", "1", questions=[{"question": "Which harbours?"}])
    refused = answer(
        "The user doesn't want to proceed with this tool use. the user said:\nlet me think", "1", is_error=True
    )
    assert doubted(user("review"), REVIEW, asked, refused) == []


def test_that_checks_passed_is_stated_to_be_older_than_the_edits_after_it() -> None:
    passed = says("All tests pass now, the store keeps the readings of both harbours and the page shows them.")
    assert f"{passed.text} (before the newest edits)" in shown(passed, *AFTER, EDIT, says("Renamed."))
    assert "(before the newest edits)" not in shown(EDIT, passed, user("thanks"), ran("git status", "clean"))


def test_what_names_code_that_was_edited_later_is_marked() -> None:
    found = says("The export drops the second hour, `local_hours()` still takes it for a copy of the first one.")

    mark = f"{found.text} (files edited since)"
    assert mark in after_edit(found, "hours = local_hours(day)", "hours = utc_hours(day)")
    assert mark in after_edit(found, "day = 1", "day = 1\nhours = local_hours(day)")
    assert mark not in after_edit(found, "day = 1", "day = 2")


def test_what_names_code_that_was_only_indented_anew_is_not_marked_and_what_names_a_gone_function_is() -> None:
    found = says("The page never calls `local_hours()`; `has_gauges()` shows its section once there is one reading.")

    mark = f"{found.text} (files edited since)"
    line = "day = local_hours(has_gauges(day))"
    assert mark not in after_edit(found, f"if day:\n    {line}", line)
    assert mark in after_edit(found, "def has_gauges(day):\n    return day", "")


def test_all_that_was_answered_to_something_else_than_was_meant_is_in_doubt() -> None:
    answered = says(
        "The clock of the harbour is set by `sync_clock()`.\n\nIts drift is read from the gauges each hour."
    )
    asked = user("how is the clock set?"), says("I look at the harbour."), answered
    meant = user("i meant the clock of the web page, which we set up in app.ts")
    assert misunderstood(events_of(*asked, meant, says("I see."))) == {1: frozenset({0}), 2: frozenset({0, 1})}
    assert misunderstood(events_of(*asked, user("ok, I mean it: and the page?"))) == {}


def test_the_message_of_a_commit_is_not_marked_and_that_of_one_that_failed_not_quoted() -> None:
    message = "The export takes the hours of a day from `local_hours()`, which no harbour lacks."
    edit = call("Edit", "x", file_path="a.py", old_string="h = local_hours(d)", new_string="h = 1"), answer("ok", "x")
    line = f'git commit -m "Export hours\n\n{message}"'
    made = ran(line, "[main 1a2b3c4] Export hours")
    assert f"`git commit`: {message} [" in shown(*made, *AFTER, *edit, says("It is one."))
    failed = ran(line, "husky - pre-commit script failed", is_error=True)
    assert message not in shown(*failed, *AFTER, *edit, says("It is one."))


def test_what_a_document_says_of_code_changes_none() -> None:
    found = says("The export drops the second hour, `local_hours()` still takes it for a copy of the first one.")
    page = call(
        "Edit", "x", file_path="docs/export.mdx", old_string="tbd", new_string="`local_hours()` reads the clock."
    )
    assert "(files edited since)" not in shown(found, *AFTER, page, answer("ok", "x"), says("They are described."))


def test_what_is_not_wrong_is_marked_only_where_its_lines_are_gone() -> None:
    found = says("The export takes the hours of a day from `local_hours()`, which reads the clock of the gauge once.")

    mark = f"{found.text} (files edited since)"
    assert mark in after_edit(found, "hours = local_hours(day)", "hours = utc_hours(day)")
    assert mark not in after_edit(found, "day = 1", "day = 1\nother = local_hours(day)")


def test_the_place_of_a_line_is_marked_once_its_file_was_edited() -> None:
    found = says("The second hour of October is dropped in `src/export.py:120`, which takes it for a copy.")
    edit = call("Edit", "x", file_path="src/export.py", old_string="day = 1", new_string="day = 2"), answer("ok", "x")
    assert f"{found.text} (files edited since)" in shown(found, *AFTER, *edit, says("They are renamed."))
    assert f"{found.text} (files edited since)" not in shown(found, *AFTER, *EDIT, says("They are renamed."))


def test_that_a_test_fails_is_marked_once_it_passed_after_an_edit() -> None:
    found = says("The test of the store is failing since it reads the hours of the harbour without their zone.")
    passed, mark = ran("make test", "12 passed"), f"{found.text} (before the newest edits)"
    assert mark in shown(found, *AFTER, *EDIT, passed, says("They are renamed."))
    assert mark not in shown(found, *AFTER, *EDIT, says("They are renamed."))


def test_how_a_step_went_is_not_told_once_the_work_went_on() -> None:
    why = says("The hour is dropped by the key of the readings, which is their local time.")
    steps = (says("Both tests fail as expected."), *EDIT, says("Lint passes. Now let me run the tests."))
    one = shown(user("mend the hour"), *steps, why, user("thanks, and the page?"), says("The page reads the store."))
    assert "key of the readings" in one
    assert "as expected" not in one
    assert "Lint passes" not in one


def test_of_what_a_summary_says_is_open_only_that_stands_which_nobody_named_since() -> None:
    left = "Let `src/export.py` read the drift of `ClockKind` before the export begins"
    done = "Let `src/store.py` write an empty row for each gauge that `read_tides` leaves out"
    other = "The harbour was read at low tide, and then at high tide. \n" * 40
    earlier = summary(f"Pending tasks:\n- {left}\n- {done}\n\n{other}", "claude-code")
    text = rendered(digest(conversation(earlier, *AFTER, EDIT), 500).summary)
    assert left in text
    assert done not in text
    assert done in rendered(digest(conversation(earlier, *AFTER), 500).summary)


@pytest.mark.parametrize(
    ("heading", "nothing"),
    [
        ("7. Pending Tasks:", "No pending tasks are left of the `tide` report."),
        ("7. Pending Tasks:", "None was asked for of the `tide` report so far."),
        ("9. Optional Next Step:", "Read the `tide` report to the end, and print it."),
    ],
)
def test_what_was_left_to_do_or_next_stands_until_the_user_asks_for_something(heading: str, nothing: str) -> None:
    other = "The harbour was read at low tide, and then at high tide. \n" * 40
    earlier = summary(f"{heading}\n- {nothing}\n\n{other}", "claude-code")
    assert nothing in rendered(digest(conversation(earlier, says("I wait.")), 500).summary)
    assert nothing not in rendered(digest(conversation(earlier, *AFTER), 500).summary)


def test_how_to_take_a_stash_out_stands_until_it_is_taken_out() -> None:
    told = says("The old store of `read_tides` is there again; `git stash pop` puts the new one of `read_gauges` back.")
    asked = user("do both gauges show the old times?"), says("They do, both of them show the times of the old store.")
    stashed = user("put the old store back"), *ran("git stash", "Saved working directory"), told, *asked
    assert "git stash pop" in shown(*stashed)
    taken = user("now take the new one"), *ran("git stash pop", "Dropped refs/stash@{0}"), says("It is back.")
    assert "puts the new one" not in shown(*stashed, *taken)


def test_a_correction_that_goes_on_with_a_question_is_one() -> None:
    guess = says("I bet that the harbour sends its readings twice.")
    assert doubted(user("why double?"), guess, user("no, that's not it, it sends them once. can you log them?"))
    assert doubted(user("why double?"), guess, user("no, wait. does it keep what it sent?")) == []


def test_an_objection_is_a_correction_unless_it_only_asks() -> None:
    verdict = says("Keep the lock in the store of the harbour, since the gauges read it there.")
    for words in ("but then the gauges wait for the lock", "I still feel the lock is not right in the store"):
        assert doubted(user("where to?"), verdict, user(words))
    for words in (
        "but do the gauges wait for the lock then?",
        "Yes, but for 2. the gauges need one that is read first",
    ):
        assert doubted(user("where to?"), verdict, user(words)) == []


def test_who_asks_if_that_is_sure_doubts_what_was_said_of_it_whether_it_claims_success_or_not() -> None:
    report = says("The export returns the gauges of one harbour.\nThe clock of the harbour is read once, by the store.")
    asked = user("and are we sure that the export returns the gauges of one harbour?")
    assert doubted(user("what does the export return?"), report, asked) == [
        "The export returns the gauges of one harbour."
    ]


def test_a_failure_that_is_said_to_be_unrelated_doubts_nothing_of_what_was_reported() -> None:
    report = says("The scripts are ready and work: each reads one harbour and writes its gauges into the store.")
    assert doubted(user("write the scripts"), report, user("the scripts are still broken, they read no harbour")) != []
    other = user("unrelated to the scripts, but the tests of the harbour are still failing")
    assert doubted(user("write the scripts"), report, other) == []


def test_a_long_message_is_about_the_newest_explanation_however_many_words_it_shares_with_others() -> None:
    early = says(f"The importer of the harbour reads gauge, clock, level and tide of every reading. {CLAIM}")
    late = says(f"The report is written once an hour, because its writer sleeps. {'The writer sleeps well. ' * 8}")
    review = "The gate, gauge, clock, level, tide and harbour are read by the importer in local times. " * 6
    assert doubted(early, user("and the report?"), late, user(f"{review} Why?"), says("Good catch!")) == []


def test_a_message_that_begins_with_done_and_then_explains_is_what_an_objection_means() -> None:
    early = says(
        "The fix works. The export of the harbour lost rows because the gauge sends its readings twice an hour, and "
        "the store keeps one reading of an hour only.\n\nI changed the key of the store to the minute of the reading."
    )
    late = says(
        "Done. The test writes two readings of one gauge to the store and wants both of them in the export.\n\nWhile a "
        "gauge of the harbour cannot be asked here, the same loss of readings is caught because the key is the same."
    )
    asked = user("but is this the same, the loss was with the gauge of the harbour, readings of the store worked!?")
    taken_back = doubted(early, user("add a test"), late, asked, says("You're right, the store was never at fault."))
    assert taken_back
    assert all(piece in late.text for piece in taken_back)


CLAIM = (
    "The test opens the gate of the harbour and looks for the level, since the gauge sends none while it is shut. "
    "It catches the lost lines of the gauge. It is the way in which the gate of every harbour is looked at."
)


def test_what_the_assistant_says_was_wrong_is_in_doubt_though_the_user_did_not_name_it() -> None:
    asked = user("but is this the same, was the gate of the harbour not shut, and the gauge well?")
    assert not any(piece.startswith("It catches") for piece in doubted(says(CLAIM), asked, says("You're right.")))
    owned = says("You're right. My test never catches lost lines.")
    assert any(piece.startswith("It catches") for piece in doubted(says(CLAIM), asked, owned))


def test_what_a_doubt_quotes_is_in_doubt_though_another_message_has_more_of_its_words() -> None:
    wrong = says(
        "I looked at it:\n\n1. The clock writes its line\n2. The store keeps stale lines of the gauge\n\n"
        "Nothing is said where this happens, and the page of the harbour looks as it did on the day before, for as "
        "long as nobody opens it, and for some time after that as well."
    )
    asked = user(
        "You also said: 2. The store keeps stale lines of the gauge\nBut the gate, the level and the clock of the "
        "harbour start with each test, or what do I miss?"
    )
    assert doubted(wrong, says(CLAIM), asked, says("You're right. I was wrong.")) == [
        "2. The store keeps stale lines of the gauge"
    ]


def test_a_message_most_of_which_is_in_doubt_is_marked_once_before_it() -> None:
    asked = user("but is this the same, was the gate of the harbour not shut, and the gauge well?")
    text = shown(says(CLAIM), asked, says("You're right. My test never catches lost lines."))
    assert f"{DOUBT} The test opens the gate" in text
    assert text.count(DOUBT) == 1


REPORT = says(
    "I moved the redirect of the old address to `vercel.json`, next to those of the projects.\n\n"
    "The page of the gauges will now open at its new address.\n\nEverything is ready to deploy."
)


def test_what_does_not_work_for_the_user_was_not_so_as_it_was_reported() -> None:
    claims = ["The page of the gauges will now open at its new address.", "Everything is ready to deploy."]
    assert doubted(user("move the page"), REPORT, user("still doesn't work")) == claims
    assert doubted(user("move the page"), REPORT, user("now its not loading also")) == claims
    shows = user("The gauges don't show up on the new page :( might the page of the gauges need a build?")
    assert doubted(user("move the page"), REPORT, shows)[0] == claims[0]
    pasted = user("I opened it:\nError: no page of the gauges at the new address of the harbour")
    assert doubted(user("move the page"), REPORT, pasted) == claims[:1]
    assert doubted(user("move the page"), REPORT, user("now rename the clocks of the harbour")) == []


def test_a_failure_is_held_against_the_report_that_it_is_about() -> None:
    other = says("The linter allows the names of the clocks now, and all of its checks pass.")
    fails = user("the page of the gauges still does not open at its new address, please look at the redirect")
    places = doubted(user("move the page"), REPORT, user("and the linter?"), other, fails)
    assert places
    assert all(piece in REPORT.text for piece in places)


def test_a_message_that_begins_with_a_noun_of_stop_takes_nothing_back() -> None:
    assert doubted(user("move the page"), REPORT, user("Stop gates of the harbour want the same redirect")) == []


def test_of_an_explanation_in_doubt_the_first_sentence_that_fits_is_marked_whichever_it_is() -> None:
    telling = (
        "The export of `read_tides` in src/export.py loses rows since `ClockKind` reads 2 drifts of `gauge_north`."
    )
    wrong = "The clock catches lost lines because the gate was shut, and the gauge of the harbour lost no lines of it."
    explained = says(f"{telling} {wrong} It then goes on. It is the way of all of them. It never ends by itself.")
    asked = user("but was the gate of the harbour not shut, and the gauge well, when the clock lost its lines?")
    later = says("You're right. The gate was shut, and the clock lost no lines."), user("then rename `read_tides`")
    session = conversation(user("why?"), explained, asked, *later)
    texts = [rendered(digest(session, tokens).summary) for tokens in range(100, 200, 10)]
    pieces = [piece for piece, _, _ in statements_of(explained.text)]
    showing = [text for text in texts if any(piece in text for piece in pieces)]
    assert any(wrong not in text for text in showing)
    assert all(DOUBT in text for text in showing)


def test_a_cause_is_in_doubt_where_the_user_doubts_it_or_it_did_not_help() -> None:
    found = says("The problem is that `src/store.py` serves the page from `/gauges` and not from the root.")
    done = says("I have added the rewrite. The page loads now, with its styles and scripts. Try it!")
    asked = (user("the page has no styles"), found, *EDIT, done, user("Are you sure? The page loads without styles."))
    assert found.text in doubted(*asked)
    assert "Errors and what fixed them" not in shown(*asked)
    assert "Errors and what fixed them" in shown(*asked[:-1], user("Good. Now add a test."))


def test_a_request_that_doubts_what_was_said_stands_with_that() -> None:
    done = says(
        "I moved the clock of the two harbours into a module of its own, as you asked. The export of the harbour "
        "writes its rows in order now. What is left are the names of the gauges."
    )
    doubt = user("Are you sure? The export of the harbour has no rows in my browser.")
    text = shown(*EDIT, done, doubt, says("I look at it."), call("Read", "r", file_path="src/store.py"))
    assert "writes its rows in order now." in text.partition("In reply to: ")[2]


def test_the_answers_to_a_question_that_was_answered_are_not_told_again() -> None:
    asked = says(
        "Two things first.\n\n1. **Storage**: do you want to keep the readings:\n   - In one file for the harbour\n"
        "   - In a database of each gauge\n\nThis decides how the export works."
    )
    text = shown(asked, user("one file please, and then write the export of the gauges"), *EDIT, says("It is written."))
    assert "In a database of each gauge" not in text


def test_a_guess_on_the_way_is_left_out_once_the_work_went_on() -> None:
    steps = (
        says("The gauge probably sends its readings twice after a storm, the harbour has no other one."),
        ran("cat gauge.log", "one"),
        says("The hour is dropped by the key of the readings, which is their local time."),
        *EDIT,
    )
    one = shown(user("mend the hour of the gauges"), *steps, says("The key is UTC now."), *AFTER)
    assert "key of the readings" in one
    assert "probably" not in one


def test_what_names_lines_that_were_moved_is_not_marked() -> None:
    found = says("The export takes the hours of a day from `local_hours()`, which reads the clock of the gauge once.")
    line = "hours = local_hours(day)"
    out = call("Edit", "x", file_path="src/export.py", old_string=line, new_string="run()"), answer("ok", "x")
    back = call("Edit", "y", file_path="src/run.py", old_string="pass", new_string=line), answer("ok", "y")
    assert f"{found.text} (files edited since)" in shown(found, *AFTER, *out, says("They are gone."))
    assert f"{found.text} (files edited since)" not in shown(found, *AFTER, *out, *back, says("They are moved."))


def test_a_fix_that_a_later_turn_takes_back_to_the_letter_is_none_and_what_was_said_of_it_is_marked() -> None:
    def edit(number: int, old: str, new: str) -> tuple[Message, Message]:
        made = call("Edit", f"e{number}", file_path="src/registry.py", old_string=old, new_string=new)
        return made, answer("ok", f"e{number}")

    found = "The root cause is that `detect()` in `registry.py` walks a map in no order: it is sorted now, and stable."
    one = digest(
        conversation(
            user("metadata.json shows the wrong agent, why is that?"),
            *edit(1, "for name in names:", "for name in sorted(names):"),
            says(found),
            user("but the hook knows its agent, why do we not use that to find it?"),
            *edit(2, "for name in sorted(names):", "for name in names:"),
            says("The hook gives its agent now."),
            user("and add a test of that"),
        ),
        1_500,
    )
    assert texts(one, Section.FILES) == ["src/registry.py — changes thrown away"]
    assert not any("fixed" in text or "edited" in text for text in texts(one, Section.ERRORS))
    assert DOUBT in next(text for text in texts(one, Section.HISTORY) if "root cause" in text)


def test_edits_that_are_taken_back_in_other_pieces_left_nothing() -> None:
    def edit(path: str, old: str, new: str) -> tuple[Message, Message]:
        return call("Edit", path, file_path=path, old_string=old, new_string=new), answer("ok", path)

    tables = "tables = 11\nshares()\nkeys()"
    added = edit("src/schema.py", tables, "tables = 12\napprovals()\nshares()\nkeys()")
    other = edit("docs/schema.md", "Eleven tables.", "Every table has a clock.")
    back = edit("src/schema.py", "approvals()\n", ""), edit("src/schema.py", "tables = 12\n", "tables = 11\n")
    reported = says("The table of approvals stands in `schema.py` as number twelve, and the page of it says what for.")
    one = digest(
        conversation(
            user("add the table of approvals to the schema"), *added, *other, reported,
            user("it is made by its own migration anyway, so take it out of the schema again"),
            *back[0], *back[1], says("It is out again."), user("and the page?"),
        ),
        1_500,
    )  # fmt: skip
    assert "src/schema.py — changes thrown away" in texts(one, Section.FILES)
    assert DOUBT in next(text for text in texts(one, Section.HISTORY) if "number twelve" in text)
    assert not any("approvals to the schema → edited schema.py" in text for text in texts(one, Section.USER))


def test_what_names_a_file_that_was_deleted_later_is_marked() -> None:
    written = (call("Write", "w", file_path="flat/store.py", content="x = 1"), answer("ok", "w"))
    plain = says("The store of the harbour runs by `python flat/store.py`, and its page by `make page`.")
    assert "(file deleted since)" in shown(written, plain, ran("rm -rf flat", ""), *AFTER)
    again = (call("Write", "v", file_path="flat/store.py", content="x = 2"), answer("ok", "v"))
    assert "deleted since" not in shown(written, plain, ran("rm -rf flat", ""), again, *AFTER)


def test_that_the_tests_pass_stands_unmarked_where_they_passed_after_the_newest_edit_too() -> None:
    ready = says("The store keeps the hours of both harbours, and it is ready to merge.")
    passed = ran("make test", "12 passed")
    assert "(before the newest edits)" in shown(*EDIT, passed, ready, *AFTER, *EDIT, says("They are renamed."))
    assert "(before the newest edits)" not in shown(
        *EDIT, passed, ready, *AFTER, *EDIT, passed, says("They are renamed.")
    )


def test_a_message_that_the_user_takes_back_in_the_next_one_stands_nowhere() -> None:
    asked, wrong = "simplify the export of the tides to one file a day", "call the button update instead of finalize"
    session = (
        user(asked),
        *ran("make", "ok"),
        says("It is one file a day now."),
        user(wrong),
        says("Understood, I will name the button update and keep the page of the export as it is."),
        user("sorry wrong chat. ignore last message. the export can be simplified further"),
        says("I drop the second loop then."),
    )
    shown = rendered(digest(conversation(*session), 2_000).summary)
    assert "finalize" not in shown
    assert f"page of the export as it is. {DOUBT}" in shown
    assert "the export can be simplified further" in shown


def test_what_the_next_edit_mended_and_how_commits_stood_before_others_is_not_told() -> None:
    amiss = "The reader of gauge_rows is used in the export but not imported."
    why = "The export of gauge_rows is not read twice, since the second hour would be dropped."
    stood = "The new gauge_rows are still local and uncommitted."
    edit = (call("Edit", "e", file_path="export.py", old_string="a", new_string="b"), answer("ok", "e"))
    commit = ran("git commit -am 'export'", "[main 4f1c2aa] export\n 1 file changed")
    session = (user("mend the export"), says(amiss), edit, says(why), ran("make", "ok"), says(stood))
    asked = (user("what does the page read?"), says("It reads the store of the harbour once a day."))
    later = (*asked, user("commit it"), commit, says("Committed."))
    shown_text = rendered(digest(conversation(*session, *later)).summary)
    assert why in shown_text
    assert amiss not in shown_text
    assert stood not in shown_text
    assert stood in rendered(digest(conversation(*session)).summary)


def test_what_a_program_could_not_reach_is_over_once_a_call_of_it_succeeded() -> None:
    alone = "`gh` can't reach the harbour from this branch, so the requests are not checked."
    session = (user("check the requests"), *ran("git log", "4f1c2aa UTC"), says(alone), user("try it with -R"))
    assert alone in rendered(digest(conversation(*session, says("Yes."))).summary)
    reached = *ran("gh pr list -R ada/harbour", "12 open"), says("The harbour has twelve open requests.")
    assert alone not in rendered(digest(conversation(*session, *reached)).summary)


def test_what_was_next_is_marked_once_code_changed() -> None:
    step = "Next step whenever you like: build the page of the gauges from the store of the harbour."
    session = (user("plan the page"), *EDIT, says(step), user("build it"), *EDIT, says("The page is built of it."))
    session = (*session, user("now colour the page of the gauges blue"), *EDIT, says("The page is blue."))
    assert f"{step} (before the newest edits)" in rendered(digest(conversation(*session)).summary)


def test_what_a_check_that_repairs_put_right_and_what_was_not_made_yet_is_over() -> None:
    found, missing = says("Formatting issues."), says("The store tests fail because the new tables don't exist yet.")
    repaired = found, *ran("npm run lint:fix", "Fixed 2 files."), user("and the store?"), missing
    shown_text = rendered(
        digest(conversation(user("write the gauge"), *repaired, *EDIT, says("Made."), user("go on"))).summary
    )
    assert "Formatting issues." not in shown_text
    assert "don't exist yet. (before the newest edits)" in shown_text


def test_of_what_was_announced_what_is_left_as_it_is_stays() -> None:
    aim = "I'll add a seen set to relay.py."
    decided = "I'll resolve it by keeping the newer import of relay.py rather than the old one."
    grounds = "The relay test failed because the built relay.py is stale, so I need to rebuild it before the next run."
    session = (user("fix the relay"), says("\n\n".join((aim, decided, grounds))), ran("make", "ok"), says("Done."))
    shown_text = rendered(digest(conversation(*session, user("go on"))).summary)
    assert decided in shown_text
    assert grounds in shown_text
    assert aim not in shown_text


def test_what_an_edit_was_announced_by_is_not_dated_by_it() -> None:
    aim = says(
        "The page has one reader only, so I'm adding `local_hours()` there rather than to the clock of the harbour."
    )
    edit = call("Edit", "x", file_path="src/export.py", old_string="day = 1", new_string="hours = local_hours(day)")
    assert f"{aim.text} [" in shown(aim, edit, answer("ok", "x"), *AFTER, says("They are renamed."))


def test_what_was_edited_and_how_it_is_called_are_no_explanation_that_a_doubt_takes_back() -> None:
    made = says(
        "Done, the readings of the gauges are stamped with the harbour now. What changed:\n\n"
        "- Added `with_harbour(reading)` to stamp the harbour on a reading\n- `src/store.py` and `src/clock.py`\n\n"
        "```\nreading = with_harbour(read(gauge), harbour)\n```\n"
        "Every reading of a gauge names its harbour from now on when `with_harbour` was called."
    )
    doubt = user("I don't see any call of with_harbour, so no reading of a gauge is stamped with its harbour")
    assert doubted(made, doubt, says("You're right. Let me look where the readings are made.")) == [
        "Done, the readings of the gauges are stamped with the harbour now.",
        "Every reading of a gauge names its harbour from now on when `with_harbour` was called.",
    ]


def test_a_name_that_only_a_test_stopped_using_says_nothing_of_a_statement_about_the_work() -> None:
    known = says("I see that `gaugeName` is passed by hand to each of the logs of the harbour in several places.")
    for path, is_marked in (("src/log.go", True), ("src/log_test.go", False)):
        edit = (
            call("Edit", "e", file_path=path, old_string="gaugeName = 1", new_string="gauge_of = 1"),
            answer("ok", "e"),
        )
        assert ("(files edited since)" in shown(known, edit, says("Edited."), *AFTER)) is is_marked


def test_an_account_that_the_assistant_owns_to_be_wrong_is_in_doubt_wherever_it_was_told() -> None:
    told = (
        "The branch of the gauge stays after a reset, since the store moves it to the new harbour. That is how the old "
        "lines came into the second report: the store found them under the new harbour and took them for its own."
    )
    asked = user("the branch of the gauge was deleted with the first report of the store, no?")
    owned = says("You're right to question that - let me correct my understanding. Then my timeline is wrong.")
    first = says(f"Here is what happened. {told}")
    assert len(doubted(first, user("so it comes back?"), says(f"No. {told}"), asked, owned)) == 3
    assert len(doubted(first, user("so it comes back?"), says(f"No. {told}"), asked, says("You're right."))) == 1


def test_what_the_user_was_asked_to_try_is_not_in_doubt_when_it_fails() -> None:
    asks = says("The report is fixed now.\n\nPlease try it once more, this will show which of the two harbours it is.")
    assert doubted(asks, user("it still shows two reports of the harbour")) == ["The report is fixed now."]


def test_a_cause_that_the_assistant_itself_denies_later_in_its_turn_is_in_doubt() -> None:
    found = says("Found the root cause. `entire` shows a telemetry prompt, and the hook has no terminal to show it in.")
    later = says("So the issue isn't that telemetry hasn't been configured. It is set in every tree.")
    other = says("So the issue isn't that the gate is shut.")
    for said, is_denied in ((later, True), (other, False)):
        session = conversation(user("why does the hook fail?"), found, *ran("cat s.json", "{}"), said)
        text = rendered(digest(session, 2_000).summary)
        assert (
            f"`entire` shows a telemetry prompt, and the hook has no terminal to show it in. {DOUBT}" in text
            or (f"{DOUBT} Found the root cause." in text)
        ) is is_denied, text


def test_what_is_called_clean_is_marked_where_it_failed_when_it_was_last_run() -> None:
    vet = ran("go vet ./...", "clock.go:4:1: possible misuse of unsafe.Pointer", is_error=True)
    claim = says("The build is green: `go build` and `go vet` clean, and the page of the harbour reads the store once.")
    mark = "(`go vet`: failing when last run)"
    assert mark in shown(vet, claim, *AFTER)
    assert mark not in shown(vet, ran("go vet ./...", ""), claim, *AFTER)


def test_what_the_user_finds_too_much_is_in_doubt_and_what_he_adds_doubts_nothing() -> None:
    plan = says("I would build a harness for the gauges next, which scores each of the readings of the harbour.")
    assert doubted(plan, user("the harness for the gauges is a bit too much, you are overengineering")) != []
    done = says("Done and pushed: the clock keeps the time of the harbour, and the settings hold no more than that.")
    assert doubted(done, user("also ci failed, please fix. https://example.org/runs/27")) == []


def test_the_end_of_a_turn_is_marked_once_later_turns_edited_each_of_its_files() -> None:
    def edit(number: str, name: str) -> tuple[Message, ...]:
        return call("Edit", number, file_path=name, old_string=number, new_string=f"{number}0"), answer("ok", number)

    told = says(
        "The page is now one calm card with soft shadows, and the buttons are large and rounded at the corners."
    )
    first = (user("make the page of the harbour calm"), *edit("1", "page.tsx"), *edit("2", "button.tsx"), told)
    again = user("and show the tide table below the gauges of the quay")
    both = *first, again, *edit("3", "page.tsx"), *edit("4", "button.tsx"), says("It has none.")
    one = *first, again, *edit("3", "page.tsx"), says("It has none.")
    for session, mark in ((both, "files edited since"), (one, "")):
        analysis = analyse(request(conversation(*session)))
        assert {standing(one, analysis) for one in candidates_of(analysis, 2_000) if "calm card" in one.text} == {mark}


def test_how_a_file_was_is_marked_once_it_was_edited_if_the_statement_names_nothing_else() -> None:
    was = "The committed `harbour/settings.json` only says that the gauge is on, and no remote is set there."
    other = "The committed `harbour/settings.json` and `quay.toml` only say that the gauge is on."
    edit = call("Edit", "e", file_path="harbour/settings.json", old_string="a", new_string="b"), answer("ok", "e")
    told = "\n\n".join((was, other))
    analysis = analyse(request(conversation(user("why is it off?"), says(told), *edit, says("Set."), user("go on"))))
    marks = {one.text: standing(one, analysis) for one in candidates_of(analysis, 2_000) if "settings.json" in one.text}
    assert marks == {was: "files edited since", other: ""}


def test_numbers_of_data_at_the_end_of_a_turn_stay_whatever_is_edited_later() -> None:
    def edit(number: str, name: str) -> tuple[Message, ...]:
        return call("Edit", number, file_path=name, old_string=number, new_string=f"{number}0"), answer("ok", number)

    told = says("41 rows of 12 March have the quality M and are in no file, since somebody typed them in by hand.")
    first = (user("why are rows lost?"), *edit("1", "page.tsx"), *edit("2", "button.tsx"), told)
    later = user("now show the tide table"), *edit("3", "page.tsx"), *edit("4", "button.tsx"), says("It is shown.")
    analysis = analyse(request(conversation(*first, *later)))
    assert {standing(one, analysis) for one in candidates_of(analysis, 2_000) if "41 rows" in one.text} == {""}


def test_a_log_with_an_error_below_a_request_does_not_doubt_what_was_reported() -> None:
    log = "Fix the linting issues:\n\n[lint] gauges.py: page\n[lint] To fix: make fmt\nError: exit code 1."
    assert doubted(user("move the page"), REPORT, user(log)) == []
