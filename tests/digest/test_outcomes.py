"""Outcomes: what came of each request, where a record shows it, and nothing where none does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conversation import answer, call, conversation, digest, ran, rendered, request, says, texts, user

from compactor_cli.digest.analysis import analyse
from compactor_cli.digest.checks import brief
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message

STORE = (call("Edit", "s", file_path="src/store.py", old_string="a", new_string="b"), answer("ok", "s"))
COMMIT = ran("git commit -am 'Store UTC'", "[utc-times 4f1c2aa] Store UTC\n 1 file changed")
TESTS = ran("pytest -q", "212 passed in 3s")
ASKED = "please store the times of all the gauges in UTC"
NEXT = user("now describe in the handbook how the gauges are read")


def wanted(*messages: Message | tuple[Message, ...]) -> str:
    """What stands behind the first request, where it is quoted."""
    one = digest(conversation(user(ASKED), *messages, says("That is done."), NEXT), 3_000)
    found = (*texts(one, Section.USER), *texts(one, Section.HISTORY))
    return next(text for text in found if ASKED in text).partition(ASKED)[2].removeprefix('"')


def test_a_request_is_shown_with_the_commit_that_came_of_it() -> None:
    assert wanted(STORE, COMMIT) == ' → 4f1c2aa "Store UTC"'


@pytest.mark.parametrize("asked", ["store the times and push it", "先写一下commit message，然后push到远端"])
def test_a_request_to_push_is_shown_with_the_push_that_failed(asked: str) -> None:
    failed = ran("git push --force-with-lease", "fatal: could not read Username for 'https://tide'", is_error=True)
    one = digest(conversation(user(asked), STORE, COMMIT, failed, says("It failed."), NEXT), 3_000)
    assert f'{asked} → 4f1c2aa "Store UTC", `git push --force-with-lease` ' in rendered(one.summary)
    assert "`git push" not in wanted(STORE, COMMIT, failed)  # nobody asked for it


def test_a_request_is_shown_with_the_pull_request_that_came_of_it() -> None:
    opened = ran("gh pr create --fill", "https://github.com/a/b/pull/136")
    assert wanted(STORE, COMMIT, opened) == ' → 4f1c2aa "Store UTC", https://github.com/a/b/pull/136'


def test_of_many_things_made_the_last_are_shown_with_how_many_there_are_besides() -> None:
    opened = [ran(f"gh pr create --head t{n}", f"https://github.com/a/b/pull/{n}") for n in range(5)]
    addresses = ", ".join(f"https://github.com/a/b/pull/{n}" for n in (2, 3, 4))
    assert wanted(*opened) == f" → {addresses} +2"


def test_a_workflow_that_was_started_is_what_came_of_a_request() -> None:
    started = ran("gh workflow run tide.yml -f bump=minor; sleep 3; gh run list", "queued\tTide\t30550956487")
    assert wanted(started, says("It is queued.")).startswith(" → `gh workflow run tide.yml -f bump=minor")


def test_of_the_checks_after_the_last_edit_the_one_with_most_tests_is_the_outcome() -> None:
    some, build = ran("pytest -q tests/test_utc.py", "8 passed in 1s"), ran("make build", "built")
    assert wanted(STORE, TESTS, build, some) == " → edited store.py, `pytest -q` ok"
    assert wanted(STORE, TESTS, STORE, some) == " → edited store.py, `pytest -q tests/test_utc.py` ok"


def test_what_was_made_and_removed_again_is_no_outcome() -> None:
    scratch = *(ran(f"echo '{n}' > ./check.json", "") for n in range(3)), ran("rm check.json", "")
    assert wanted(STORE, *scratch) == " → edited store.py"


def test_an_address_within_what_a_server_answers_is_nothing_that_was_made() -> None:
    reply = ran(
        "gh api repos/a/b/pulls/112/comments/27/replies -f body='Fixed in 4f1c2aa'",
        '{"url":"https://api.github.com/repos/a/b/pulls/comments/28","html_url":"https://github.com/a/b/pull/112#r28"}',
    )
    assert wanted(STORE, COMMIT, reply, reply, reply) == ' → 4f1c2aa "Store UTC"'


def test_a_request_is_shown_with_the_ticket_that_was_filed_for_it() -> None:
    def asked(name: str, text: str) -> tuple[Message, Message]:
        return call(f"mcp__linear__{name}", "t", title="Store UTC"), answer(text, "t")

    filed = '{"id": "8c1d", "identifier": "TIDE-41", "title": "Store UTC"}'
    assert wanted(STORE, asked("create_issue", filed)) == " → create_issue TIDE-41"
    assert wanted(STORE, asked("get_issue", filed)) == " → edited store.py"


def test_a_commit_is_named_however_many_addresses_come_after_it() -> None:
    opened = [ran(f"gh issue create --title {n}", f"https://github.com/a/b/issues/{n}") for n in (7, 8, 9, 10)]
    assert '4f1c2aa "Store UTC"' in wanted(STORE, COMMIT, *opened)


def test_a_request_is_shown_with_the_check_that_passed_after_its_edits() -> None:
    assert wanted(STORE, TESTS) == " → edited store.py, `pytest -q` ok"


def test_of_the_checks_after_the_edits_one_that_failed_is_shown_before_one_that_passed() -> None:
    lint = ran("ruff check .", "Found 2 errors.", is_error=True)
    assert wanted(STORE, lint, TESTS) == " → edited store.py, `ruff check .` failed"


def test_a_check_is_named_by_what_it_was_of_however_long_its_path_is() -> None:
    key = "uv run pytest tests/harbour/test_tides.py::TestTides::test_ebb_is_low_at_night"
    assert brief(f"{key} -xvs", 60) == "uv run pytest …test_ebb_is_low_at_night -xvs"
    assert brief("go test -race -run TestEbbIsLowAtNight ./cmd/harbour/ -count=1", 24) == (
        "go test -race -run TestEbbIsLowAtNight …"
    )
    assert brief("git push origin harbour/the-lowest-ebb-at-night", 24) == "git push origin …"
    script = "/home/ada/harbours/north/tides/gauges/show_tides.py"
    assert brief(f"python3 {script} --low", 40) == "python3 …show_tides.py --low"
    assert brief(f"{script} --low", 40) == "…show_tides.py --low"
    cached = "GOCACHE=/var/tmp/cache/of/tides LOG=/dev/null go test ./ebb"
    assert brief(cached, 50) == "GOCACHE=…tides LOG=/dev/null go test ./ebb"
    assert brief("curl https://tides.example.com/harbours/north/gauges", 40) == "curl …"


def test_a_check_before_the_last_edit_of_a_request_is_no_evidence_for_it() -> None:
    assert wanted(TESTS, STORE) == " → edited store.py"


def test_a_check_that_failed_is_what_came_of_a_request_too() -> None:
    assert wanted(STORE, ran("pytest -q", "1 failed", is_error=True)) == " → edited store.py, `pytest -q` failed"


def test_thanks_with_a_but_are_no_sign_that_a_request_is_done() -> None:
    assert wanted(STORE, user("great, but the export is still wrong")) == " → edited store.py"


def test_what_does_not_work_yet_was_edited_all_the_same() -> None:
    reported = says("The times of all the gauges are stored in UTC now.")
    assert wanted(STORE, reported, user("the times of the gauges still don't show UTC")) == " → edited store.py"


def test_a_request_whose_work_the_user_takes_back_has_no_outcome() -> None:
    assert wanted(STORE, TESTS, says("It is stored in UTC."), user("no, that's not what I asked for")) == ""


def test_a_request_without_a_record_of_what_came_of_it_has_no_outcome() -> None:
    looked = (call("Read", "r", file_path="src/store.py"), answer("a", "r"))
    assert wanted(looked, says("I will do that.")) == ""


def test_what_a_yes_set_going_came_of_the_request_before_it() -> None:
    assert wanted(says("Shall I change store.py?"), user("yes, do it"), STORE, COMMIT) == ' → 4f1c2aa "Store UTC"'


def test_a_short_yes_is_stated_with_what_it_agreed_to_so_that_its_commit_does_not_stand_for_more() -> None:
    asked = says("I would change store.py first and the export later. Shall I start with store.py?")
    done = says("The times are stored in UTC now, since sqlite's date functions ignore the offset of a time.")
    one = digest(conversation(user(ASKED), asked, user("yeah, do it all"), STORE, COMMIT, done, NEXT), 3_000)
    line = 'Shall I start with store.py? → "yeah, do it all" → 4f1c2aa "Store UTC"'
    assert line in texts(one, Section.HISTORY)


QUESTION = "why are 120 readings of October missing in the export?"
LOOKS = "The export drops the second hour of October. That is odd, since it reads all of the gauges. "


def test_whether_the_newest_question_is_answered_is_not_stated() -> None:
    one = digest(conversation(user(QUESTION), says(LOOKS)), 3_000)
    assert texts(one, Section.TASK)[0] == f"Asked: {QUESTION}"


def test_a_question_whose_turn_ends_with_a_call_or_with_what_comes_next_is_not_answered() -> None:
    looked = ran("cat export.csv", "hour,reading")
    for turn in ((says(LOOKS), looked), (says(f"{LOOKS}Let me look at what the export reads:"),)):
        shown = texts(digest(conversation(user(QUESTION), *turn, NEXT), 3_000), Section.USER)
        assert not any("answered" in text for text in shown)


def test_a_check_is_no_outcome_of_a_question() -> None:
    one = digest(conversation(user(QUESTION), TESTS, says(LOOKS), NEXT), 3_000)
    assert not any("pytest" in text for text in texts(one, Section.USER))


def test_what_came_of_a_request_is_still_stated_when_the_transcript_is_compacted_again() -> None:
    first = digest(conversation(user(ASKED), STORE, COMMIT, NEXT), 3_000)
    again = digest(conversation(user("go on with the export of the gauges of the north")), 3_000, state=first.state)
    assert f'{ASKED} → 4f1c2aa "Store UTC"' in texts(again, Section.USER)


def test_a_check_before_the_end_of_the_newest_request_is_not_what_came_of_it() -> None:
    asked = "the lint of the build fails, merge the main branch as well"
    messages = (user(asked), ran("make lint", "0 issues."), says("It passes here. Let me look at the build."))
    assert f"Asked: {asked}" in texts(digest(conversation(*messages), 3_000), Section.TASK)


def test_a_request_that_led_to_words_alone_is_shown_with_the_record_of_the_reply() -> None:
    reply = says(LOOKS + LOOKS)
    before = user(ASKED), STORE, COMMIT
    one = digest(conversation(*before, user(QUESTION), reply, NEXT, says("I begin."), user("and the north")), 3_000)
    shown = (*texts(one, Section.USER), *texts(one, Section.HISTORY))
    assert any(QUESTION in text and text.endswith("→ replied") for text in shown)
    looked = ran("cat export.csv", "hour")
    cut = digest(conversation(*before, user(QUESTION), reply, looked, NEXT, says("I begin."), user("and so on")), 3_000)
    assert "replied" not in rendered(cut.summary)


def test_a_question_whose_answer_the_user_doubts_was_replied_to_all_the_same() -> None:
    doubted = user("no, that's not how the gauges are read at all")
    one = digest(conversation(user(QUESTION), says(LOOKS + LOOKS), doubted, says("I see."), NEXT), 3_000)
    assert any(text.endswith(f"{QUESTION} → replied") for text in texts(one, Section.TASK))


def test_a_question_that_was_answered_in_words_did_not_make_what_a_later_yes_set_going() -> None:
    asked = user("Can you approve all the writing yourself from now on?"), says("I can't do that.")
    assert wanted(*asked, user("continue"), STORE, says("Stored.")) == " → edited store.py"
    one = digest(conversation(user(ASKED), STORE, *asked, user("continue"), STORE, NEXT), 3_000)
    assert "from now on? → replied: I can't do that." in rendered(one.summary)


@pytest.mark.parametrize(
    ("reply", "stated"),
    [
        ("Good point. Yes, the sluice asks it each hour.", "Yes, the sluice asks it each hour."),
        (
            "Right, exactly. The sluice asks it each hour. It has three gates.",
            "Right, exactly. The sluice asks it each hour.",
        ),
        ("You're right - the sluice asks it each hour. It has gates.", "You're right - the sluice asks it each hour."),
    ],
)
def test_how_a_question_was_answered_that_a_yes_answers_stands_with_it(reply: str, stated: str) -> None:
    before = user("the clock of the sluice asks the harbour each hour, right?"), says(reply)
    assert analyse(request(conversation(*before, NEXT, STORE))).outcomes[1].text == f"replied: {stated}"
    shown = rendered(digest(conversation(*before, NEXT, STORE), 3_000).summary)
    assert shown.count(stated) == 1


@pytest.mark.parametrize(
    ("reply", "stated"),
    [
        (
            "Great question! I see it now. The key of the hour is the same twice.",
            "The key of the hour is the same twice.",
        ),
        (
            "The key of it is called “the hour.”\n\nIts copy is wrong in the export.",
            "The key of it is called “the hour.”",
        ),
        (
            "I looked. The key of the hour is the same twice.\n\n# Others\n\n1. The copy is wrong in the export, too.",
            "The key of the hour is the same twice.",
        ),
    ],
)
def test_a_question_stands_with_the_first_sentence_that_states_something(reply: str, stated: str) -> None:
    before = user("why exactly didn't you store the second hour"), says(reply)
    assert analyse(request(conversation(*before, NEXT, STORE))).outcomes[1].text == f"replied: {stated}"


@pytest.mark.parametrize("question", ["why are the readings of October missing?", "it looks like October missing?"])
def test_what_an_offer_after_an_answer_set_going_is_that_of_the_yes_and_not_of_the_question(question: str) -> None:
    why = "The export drops it, since both hours of October have the same key, and the second looks like a copy. " * 2
    asked = user(question), says(f"{why}Want me to store them in UTC?")
    one = digest(conversation(*asked, user("yes"), STORE, says("Stored."), NEXT, says("I begin.")), 3_000)
    lines = rendered(one.summary).split("\n")
    assert [line for line in lines if "October missing?" in line and "edited" in line] == []
    assert any('Want me to store them in UTC? → "yes"' in line and "edited store.py" in line for line in lines)


def test_an_apostrophe_of_a_typesetter_reads_like_that_of_a_keyboard() -> None:
    asked = user("Can you approve all the writing yourself from now on?"), says("I can\u2019t do that.")
    one = digest(conversation(user(ASKED), STORE, *asked, user("continue"), STORE, NEXT), 3_000)
    assert "from now on? → replied: I can't do that." in rendered(one.summary)


def test_files_that_were_created_and_edited_for_a_request_are_told_apart() -> None:
    new = (call("Write", "w", file_path="src/tide.py", content="x = 1"), answer("created", "w"))
    assert wanted(STORE, new) == " → created tide.py, edited store.py"


def test_a_check_that_the_runner_did_not_know_shows_nothing_of_what_was_asked() -> None:
    lint = ran("make lint", "0 issues.")
    unknown = ran("mise run lint:full", "mise ERROR no task lint:full found", is_error=True)
    assert wanted(STORE, lint, unknown) == " → edited store.py, `make lint` ok"
    one = digest(conversation(user(ASKED), STORE, *lint, *unknown, says("That is done."), NEXT), 3_000)
    assert not any("lint:full" in text for text in texts(one, Section.COMMANDS))


def test_what_the_user_forbids_in_the_middle_of_the_work_ends_no_request_and_has_no_outcome() -> None:
    forbids = "oh, please don't touch the gauges of the harbour, they are in use"
    session = conversation(user(ASKED), STORE, user(forbids), *COMMIT, says("That is done."), NEXT, says("Yes."))
    shown = rendered(digest(session, 3_000).summary)
    assert f'{ASKED} → 4f1c2aa "Store UTC"' in shown
    assert f"{forbids} →" not in shown
    new = user("oh, please add the gauges of the harbour to it")
    other = conversation(user(ASKED), STORE, new, *COMMIT, says("That is done."), NEXT, says("Yes."))
    assert 'of the harbour to it → 4f1c2aa "Store UTC"' in rendered(digest(other, 3_000).summary)


def test_a_check_in_a_folder_that_is_not_there_is_no_outcome() -> None:
    shown = "# ./gauge/gauge\nstat /tide/gauge/gauge: directory not found\nFAIL\t./gauge/gauge [setup failed]"
    assert wanted(STORE, ran("go test ./gauge/gauge", f"Exit code 1\n{shown}", is_error=True)) == " → edited store.py"


def test_what_was_edited_after_a_commit_came_of_the_request_as_well() -> None:
    later = (call("Edit", "l", file_path="src/clock.py", old_string="a", new_string="b"), answer("ok", "l"))
    assert wanted(STORE, COMMIT, later) == ' → 4f1c2aa "Store UTC", edited clock.py'


def test_a_file_whose_changes_are_thrown_away_was_not_edited_for_the_request() -> None:
    assert wanted(ran("git checkout -- src/gauge.py", "")) == ""


def test_what_is_asked_in_addition_while_the_agent_works_ends_the_request_before_it_not() -> None:
    also = user("also, forgot to say: in the clock, too")
    later = (call("Edit", "l", file_path="src/clock.py", old_string="a", new_string="b"), answer("ok", "l"))
    assert wanted(COMMIT, also, later) == ' → 4f1c2aa "Store UTC", edited clock.py'


def test_what_is_done_after_words_said_while_the_agent_works_came_of_the_request_before_them_as_well() -> None:
    remark = replace(user("the page of the store is loaded again now"), interjects=True)
    assert wanted(says("I look at the store first."), remark, STORE) == " → edited store.py"
    assert wanted(says("I look at the store first."), replace(remark, interjects=False), STORE) == ""


def test_a_question_that_a_tool_asks_next_is_not_the_reply_to_one() -> None:
    asked = [{"question": "Which then?", "options": [{"label": "Lock", "description": "Keeps one gauge out of it."}]}]
    reply = says("The lock keeps one gauge out of the store while the other writes.")
    chosen = answer('"Which then?"="Lock". You can now continue', "1")
    one = conversation(
        user("what are the drawbacks of a lock?"), reply, call("AskUserQuestion", "1", questions=asked), chosen, STORE
    )
    replied = analyse(request(one)).outcomes[1].text
    assert replied == "replied: The lock keeps one gauge out of the store while the other writes."


def test_of_answers_that_were_given_together_it_is_not_known_what_came_of_which() -> None:
    asked = [
        {"question": one, "options": [{"label": "Yes"}, {"label": "No"}]} for one in ("Types too?", "The tests too?")
    ]
    chosen = answer('"Types too?"="Yes", "The tests too?"="Yes". You can now continue', "1")
    session = conversation(
        user(ASKED), call("AskUserQuestion", "1", questions=asked), chosen, STORE, says("Done."), NEXT
    )
    assert [one.text for one in analyse(request(session)).outcomes.values()] == ["edited store.py"]


def test_a_file_that_was_deleted_again_is_nothing_that_came_of_a_request() -> None:
    new = (call("Write", "n", file_path="trial.py", content="x = 1"), answer("ok", "n"))
    assert wanted(STORE, new, ran("rm trial.py", "")) == " → edited store.py"
    assert wanted(STORE, ran("rm old.py", "")) == " → edited store.py, deleted old.py"


def test_what_a_run_left_is_no_outcome_when_it_is_cleaned_up_unless_that_was_asked_for() -> None:
    assert wanted(STORE, ran("rm -f .coverage && rm -rf build_store", "")) == " → edited store.py"
    asked = user("clean up what the runs have left in here"), *ran("rm -f .coverage", ""), says("Done."), NEXT
    assert "deleted .coverage" in analyse(request(conversation(*asked))).outcomes[1].text


def test_of_several_files_the_one_that_was_edited_most_is_named_first() -> None:
    edits = [
        (call("Edit", str(n), file_path=name, old_string=str(n), new_string=f"x{n}"), answer("ok", str(n)))
        for n, name in enumerate(("src/refs.py", "src/refs.py", "src/refs.py", "src/ssh.py", "src/http.py"))
    ]
    assert wanted(*edits).startswith(" → edited refs.py, http.py")


def test_a_request_after_what_the_user_is_told_to_run_is_one_of_its_own() -> None:
    told = says("The store is locked. Run the `unlock` command and then retry your export.")
    asked = user("https://tide.example/aliases set this up in the shell"), *STORE, says("Set up."), NEXT
    found = analyse(request(conversation(user(ASKED), told, *asked))).outcomes
    assert found[2].text == "edited store.py"
    assert 1 not in found


def test_a_note_next_to_the_work_is_not_what_came_of_a_request() -> None:
    note = call("Write", "n", file_path="/home/ada/.claude/memory/MEMORY.md", content="x"), answer("ok", "n")
    assert wanted(STORE, note) == " → edited store.py"
    assert wanted(note) == " → created MEMORY.md"


def test_a_file_that_one_patch_deletes_and_adds_again_is_there() -> None:
    patch = "*** Begin Patch\n*** Delete File: old.py\n*** Add File: old.py\n+x = 1\n*** End Patch"
    made = call("apply_patch", "p", input=patch), answer("Success", "p")
    assert wanted(STORE, made) == " → edited old.py, store.py"


def test_a_request_for_a_look_is_answered_by_the_reply_and_not_by_what_a_yes_to_its_offer_set_going() -> None:
    told = says(f"The comments are of the clock. {'It reads the tide too late. ' * 7}Want me to fix it?")
    edit = call("Edit", "e", file_path="src/clock.py", old_string="a", new_string="b"), answer("ok", "e")
    session = conversation(user("can you take a look at the comments?"), told, user("yes"), edit, says("Fixed."))
    assert "can you take a look at the comments? → replied" in rendered(digest(session, 2_000).summary)


def test_what_goes_on_after_a_question_that_was_asked_meanwhile_came_of_the_request_before_it() -> None:
    first = call("Edit", "1", file_path="store.py", old_string="a", new_string="b"), answer("ok", "1")
    more = call("Edit", "2", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "2")
    asked = user("Why is the first migration changed and no new one added?")
    one = digest(conversation(user("store the times in UTC"), first, asked, more, says("Now I test it.")), 3_000)
    now = texts(one, Section.TASK)
    assert now[0] == "Asked: Why is the first migration changed and no new one added?"
    assert any("store the times in UTC → edited clock.py, store.py" in text for text in now)


def test_what_is_asked_for_once_something_is_committed_has_none_of_that_commit() -> None:
    edits = [
        (call("Edit", name, file_path=name, old_string="a", new_string="b"), answer("ok", name))
        for name in ("store.py", "clock.py", "page.py")
    ]
    commit = ran('git commit -am "Store UTC"', "[main 4f1c2aa] Store UTC\n 2 files changed")
    asked = user("also, the page fails in the browser, look into it once you have committed these fixes")
    one = digest(conversation(user("store UTC"), edits[0], asked, edits[1], commit, edits[2], says("Fixed.")), 3_000)
    now = texts(one, Section.TASK)
    assert now[0] == f"Asked: {asked.text} → edited page.py"
    assert 'store UTC → 4f1c2aa "Store UTC"' in rendered(one.summary)


def test_a_chain_that_failed_is_no_outcome_where_what_failed_in_it_passed_alone() -> None:
    chain = ran("bun run test && bun run lint", "1290 pass\n0 fail\nFound 1 error.", is_error=True)
    assert wanted(STORE, chain, ran("bun run lint", "Checked 9 files. No fixes applied.")) == (
        " → edited store.py, `bun run lint` ok"
    )
    assert wanted(STORE, chain) == " → edited store.py, `bun run test && bun run lint` failed"


def test_what_the_user_threw_away_himself_came_of_no_request() -> None:
    edit = call("Edit", "1", file_path="src/gauge.py", old_string="a", new_string="b"), answer("ok", "1")
    done = says("Ported.")
    again = user("you broke that component. i undid your changes, try again. read the full file")
    one = digest(
        conversation(user("port the gauge to the new clock of the harbour"), *edit, done, again, says("I read it."))
    )
    assert "→ edited" not in rendered(one.summary)


def test_what_was_tested_is_named_before_its_tests() -> None:
    edits = [
        (call("Edit", path, file_path=path, old_string="a", new_string="b"), answer("ok", path))
        for path in ("src/clock.py", "tests/test_clock.py")
    ]
    assert wanted(*edits, ran("pytest", "3 passed")) == " → edited clock.py +1, `pytest` ok"


def test_a_file_that_was_only_moved_is_not_edited() -> None:
    moved = ran("git mv notes/tide.md notes/done/tide.md", "")
    assert wanted(STORE, moved) == " → edited store.py"
    assert wanted(moved) == " → moved tide.md"


def test_of_words_that_came_in_at_work_only_what_has_to_do_with_them_came() -> None:
    notes = (call("Write", "n", file_path="docs/deferred.md", content="# Deferred"), answer("ok", "n"))
    came = user("also, forgot to mention the suggested tests of the report")
    announced = says("I read the report. Now let me fix all of it:")
    one = digest(conversation(user(ASKED), announced, came, STORE, *notes, says("That is done."), NEXT), 3_000)
    found = (*texts(one, Section.USER), *texts(one, Section.HISTORY), *texts(one, Section.TASK))
    assert all(text.endswith("the suggested tests of the report") for text in found if "suggested tests" in text)
    assert any(ASKED in text and "edited" in text for text in found)
    tests = (call("Write", "t", file_path="tests/test_store.py", content="def test_a(): ..."), answer("ok", "t"))
    one = digest(conversation(user(ASKED), announced, came, STORE, *tests, says("That is done."), NEXT), 3_000)
    found = (*texts(one, Section.USER), *texts(one, Section.HISTORY))
    assert any("suggested tests" in text and "test_store.py" in text for text in found)


def test_who_wants_to_know_something_is_answered_by_the_reply() -> None:
    told = says(f"Yes, it is right. {'It reads the tide too late. ' * 7}Want me to fix it?")
    session = conversation(
        user("there is a comment on it. I want to know if the comment is right."),
        told,
        user("yes"),
        STORE,
        says("Fixed."),
    )
    assert "if the comment is right. → replied" in rendered(digest(session, 2_000).summary)


def test_files_of_one_name_stand_with_their_folders_in_what_came_of_a_request() -> None:
    def edited(path: str) -> tuple[Message, Message]:
        return call("Edit", path, file_path=path, old_string="a", new_string="b"), answer("ok", path)

    assert wanted(edited("ui/README.md"), edited("README.md")) == " → edited README.md, ui/README.md"
    assert wanted(edited("ui/README.md")) == " → edited README.md"


def test_a_remark_that_came_in_at_work_has_nothing_of_what_that_came_to() -> None:
    remark = replace(user("seems like some network slowness on the runners"), interjects=True)
    session = conversation(user(ASKED), STORE, remark, *COMMIT, says("It is committed."), NEXT)
    found = analyse(request(session)).outcomes
    assert [one.text for one in found.values()] == ['4f1c2aa "Store UTC"']
    wish = replace(user("the copy is made already and i would prefer not to make it again"), interjects=True)
    found = analyse(request(conversation(user(ASKED), STORE, wish, *COMMIT, says("It is committed."), NEXT))).outcomes
    assert [one.text for one in found.values()] == ['4f1c2aa "Store UTC"'] * 2


def test_what_only_changes_what_was_opened_before_opens_nothing() -> None:
    edited = ran("gh pr edit 166 --title UTC", "https://github.com/a/b/pull/166")
    assert "pull/166" not in wanted(STORE, edited)


def test_a_commit_that_another_request_amended_is_marked_in_both() -> None:
    amended = ran("git commit -a --amend --no-edit", "[utc-times 9b8c7d6] Store UTC\n 2 files changed")
    clock = call("Edit", "c", file_path="src/clock.py", old_string="a", new_string="b"), answer("ok", "c")
    session = conversation(user(ASKED), STORE, COMMIT, says("Done."), user("add the clock to it"), clock, amended)
    assert [one.text for one in analyse(request(session)).outcomes.values()] == ['9b8c7d6 "Store UTC" (new hash)'] * 2
    at_once = conversation(user(ASKED), STORE, COMMIT, clock, amended)
    assert [one.text for one in analyse(request(at_once)).outcomes.values()] == ['9b8c7d6 "Store UTC"']


def test_what_was_done_on_a_server_is_the_outcome_where_nothing_has_a_name() -> None:
    posted = ran(
        "gh api --method POST repos/a/b/pulls/29/reviews --input review.json", '{"id": 47, "state": "COMMENTED"}'
    )
    assert wanted(posted) == " → `gh api --method POST repos/a/b/pulls/29/reviews --input …`"
    assert wanted(STORE, posted) == " → edited store.py"


def test_what_followed_the_answer_to_a_tool_came_of_the_request_that_it_asked_about() -> None:
    asked = call("AskUserQuestion", "1", questions=[{"question": "Lock it?", "options": [{"label": "Lock"}]}])
    answered = answer('"Lock it?"="Lock". You can now continue', "1")
    assert wanted(asked, answered, STORE) == " → edited store.py"


def test_who_asks_to_be_given_something_was_answered_in_words_whatever_a_later_yes_set_going() -> None:
    link = says(
        f"It is https://tide.example/store. {'It shows how the store is locked. ' * 6}Want me to write it down?"
    )
    session = conversation(user("give me the link of the store"), link, user("yes, do it"), STORE, says("Done."), NEXT)
    found = analyse(request(session)).outcomes
    assert (found[1].text, found[2].text) == ("replied", "edited store.py")


def test_what_was_announced_for_after_the_users_word_is_done_for_that_word() -> None:
    asked = (
        user("make the tide page more festive"),
        STORE,
        says("It has fireworks now. Play it; if it lands, I'll commit."),
    )
    session = conversation(*asked, user("yeah let's push"), COMMIT, says("Pushed."), NEXT)
    found = analyse(request(session)).outcomes
    assert (found[1].text, found[2].text) == ("edited store.py", '4f1c2aa "Store UTC"')


def test_a_yes_to_what_an_answer_offers_is_none_to_the_request_before_the_question() -> None:
    offer = says(f"No. {'The newer one reads the harbour first. ' * 6}Want me to take it?")
    asked = user("is there a newer version of the clock yet?"), offer
    session = conversation(user(ASKED), STORE, says("Stored."), *asked, user("yes"), COMMIT, says("Done."), NEXT)
    found = analyse(request(session)).outcomes
    assert (found[1].text, found[3].text) == ("edited store.py", '4f1c2aa "Store UTC"')


def test_the_plan_that_a_client_keeps_in_a_file_is_no_outcome() -> None:
    plan = call("Write", "p", file_path="/home/ada/.claude/plans/tides.md", content="# Plan"), answer("ok", "p")
    assert "tides.md" not in wanted(plan)
    assert wanted(plan, STORE) == " → edited store.py"


def test_what_was_installed_for_a_request_is_its_outcome_where_nothing_else_was_done() -> None:
    installed = ran("cd src && python3 -m pip install -q tidelib", "")
    assert wanted(installed) == " → `python3 -m pip install -q tidelib` (src)"
    assert "pip" not in wanted(ran("echo 'now pip install tidelib'", "now pip install tidelib"))
    assert wanted(ran("pip install tidelib", ""), STORE) == " → edited store.py"


def test_a_question_that_scripts_for_a_try_helped_to_answer_was_replied_to() -> None:
    script = call("Write", "w", file_path="/tmp/count.py", content="print(3)"), answer("File created", "w")
    words = says("There are three of them: the north gauge, the south gauge and the one at the lock. " * 3)
    asked = user("how many gauges are there in all of the harbours?"), *script, *ran("python /tmp/count.py", "3"), words
    assert analyse(request(conversation(*asked, NEXT))).outcomes[1].text.startswith("replied")
    told = user("write a script that counts the gauges"), *script, *ran("python /tmp/count.py", "3"), words
    assert "count.py" in analyse(request(conversation(*told, NEXT))).outcomes[1].text


@pytest.mark.parametrize(
    "words",
    ["Let me look at the clock of the sluice first.", "I'm comparing the clock and its log now rather than guess."],
)
def test_a_question_that_is_answered_at_once_has_that_answer_whatever_is_said_later(words: str) -> None:
    why = says("No good reason for that, it was a mistake in the order. I ask the server now.")
    later = says(f"The server turns it down as well, as it has no such clock. {'It is asked each hour. ' * 8}")
    session = conversation(user("why do you build it with the old clock?"), why, *ran("curl tide", "404"), later, NEXT)
    shown = analyse(request(session)).outcomes[1].text
    assert shown == "replied: No good reason for that, it was a mistake in the order."
    asked = user("why do you build it with the old clock?")
    session = conversation(asked, says(words), *ran("curl tide", "404"), later, NEXT)
    assert analyse(request(session)).outcomes[1].text.startswith("replied: The server turns it down")


def test_of_words_about_branches_what_moved_the_work_tree_came() -> None:
    moved = ran("git checkout main && git pull", "Switched to branch 'main'\nAlready up to date.")
    session = conversation(user("back to main and pull in the latest"), *moved, says("On main."), user("thanks"))
    (outcome,) = analyse(request(session)).outcomes.values()
    assert outcome.text == "`git checkout main && git pull`"
    elsewhere = conversation(user("read the gauge of the north"), *moved, says("It stands at 4 m."), user("thanks"))
    assert not any("git" in one.text for one in analyse(request(elsewhere)).outcomes.values())


def test_what_a_subagent_wrote_before_its_report_is_no_outcome_yet() -> None:
    read = call("Read", "r", file_path="clock.py"), answer("tick", "r")
    task = call("Task", "t", description="Plan the move", prompt="Plan it.")
    wrote = call("Write", "w", file_path="plan.md", content="# Plan"), answer("ok", "w")
    started = conversation(user("move the clock"), *read, task, *wrote)
    assert not analyse(request(started)).outcomes
    reported = conversation(user("move the clock"), *read, task, *wrote, answer("The plan is written.", "t"))
    assert [one.text for one in analyse(request(reported)).outcomes.values()] == ["created plan.md"]


def test_a_question_is_answered_by_the_sentence_that_is_about_what_it_asks() -> None:
    first = says("The harbour master reads a paper table each morning. I look at what the pump does then.")
    asked = user("why does the sluice stay closed at night?")
    told = (
        "The tables list two hours of low tide, and both are read at noon. The sluice opens only by hand at low tide. "
    )
    session = conversation(asked, first, *ran("cat pump.log", "off"), says(f"{told}{'It is closed now. ' * 8}"), NEXT)
    assert analyse(request(session)).outcomes[1].text == "replied: The sluice opens only by hand at low tide."


def test_a_file_is_named_with_its_folder_where_one_that_was_read_has_the_same_name() -> None:
    def outcome(*before: Message) -> str:
        hooks = call("Edit", "h", file_path="gauges/hooks.py", old_string="a", new_string="b"), answer("ok", "h")
        session = conversation(user(ASKED), *before, *hooks, says("It is done."), NEXT)
        return analyse(request(session)).outcomes[1].text

    assert outcome() == "edited hooks.py"
    read = call("Read", "r", file_path="tides/hooks.py"), answer("low = 1", "r")
    assert outcome(*read) == "edited gauges/hooks.py"


def test_a_question_without_a_mark_that_comes_in_at_work_keeps_its_answer_and_the_work_its_request() -> None:
    first = call("Edit", "1", file_path="store.py", old_string="a", new_string="b"), answer("ok", "1")
    more = call("Edit", "2", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "2")
    asked = user("do you believe this keeps the hours apart"), says("Yes. The key of each hour holds its clock, too.")
    session = user("store the times in UTC"), first, *asked, more, says("Both are stored in UTC now."), NEXT
    found = analyse(request(conversation(*session))).outcomes
    assert found[1].text == "edited clock.py, store.py"
    assert found[2].text == "replied: Yes. The key of each hour holds its clock, too."


def test_what_is_deleted_for_an_added_request_did_not_come_of_the_one_before_it() -> None:
    reset = ran("git reset --hard origin/main", "HEAD is now at 354de72 Read the gauges")
    added = user("also, please confirm that the export still works, and try it with both gauges")
    tried = *ran("make export", "wrote out/tide.json"), *ran("rm out/tide.json && git status --short", "")
    one = digest(conversation(user("once done, check out the latest main"), *reset, added, tried, says("It works.")))
    (first,) = (text for text in (*texts(one, Section.TASK), *texts(one, Section.HISTORY)) if "latest main" in text)
    assert "deleted" not in first


def test_what_was_done_outside_is_shown_with_the_folder_that_it_was_done_in() -> None:
    assert wanted(ran("cd piers && tides deploy .#east", "deployed")) == " → `tides deploy .#east` (piers)"
    assert wanted(ran("cd /srv/tides && make deploy", "deployed")) == " → `make deploy`"


def test_a_command_that_nothing_answered_is_not_what_came_of_a_request() -> None:
    pending = call("Bash", "p", command="git commit -m 'Store UTC'")
    found = texts(digest(conversation(user(ASKED), *TESTS, user("commit it"), pending), 3_000), Section.TASK)
    assert "Asked: commit it" in found
    assert any(text.startswith("No result seen of: `git commit") for text in found)
    assert wanted(ran("git push", "main -> main")) != ""


def test_looks_of_git_are_not_what_came_of_a_request_about_branches() -> None:
    looks = (
        ran("git merge-base HEAD origin/main", "1a2b3c4d5e6f"),
        ran("git stash list -n 3", "stash@{0}: WIP on main: 1a2b3c4 Add tides"),
    )
    reviewed = (user("review the changes in this branch"), *looks, says("No findings: the branch does what it says."))
    stash = (user("stash the tutorials we made"), ran("git stash push -m tutorials", "Saved working directory"), *looks)
    text = rendered(digest(conversation(*reviewed, *stash, says("Stashed."), NEXT), 3_000).summary)
    assert "review the changes in this branch → replied [1]" in text
    assert "stash the tutorials we made → `git stash push -m tutorials`" in text
    assert "→ `git merge-base" not in text
    assert "→ `git stash list" not in text


def test_a_question_that_was_looked_into_and_answered_gets_nothing_of_what_the_user_chose_later() -> None:
    asked = user("add the gauge of the north"), *STORE, says("It is added.")
    how = (
        user("how is the review of it going?"),
        TESTS,
        says(f"The review is over: one fault in the clock. {'It rounds. ' * 40}"),
    )
    again = user("explain me again the fault"), says("The clock rounds down. Do you want me to mend it?")
    done = user("yes, mend it"), *STORE, *COMMIT, says("It is mended."), NEXT
    text = rendered(digest(conversation(*asked, *how, *again, *done), 3_000).summary)
    assert "how is the review of it going? → replied" in text


def test_a_message_to_an_agent_is_not_one_to_the_user() -> None:
    sent = call("send_message", "m", target="/root/pumps", message="Stop at the second pump."), answer("", "m")
    text = rendered(digest(conversation(user("check the pumps"), *sent)).summary)
    assert "Where it stands: Stop at the second pump." not in text
    assert "send_message(/root/pumps, Stop at the second pump.)" in text


def test_a_yes_that_led_to_another_question_did_not_lead_to_what_the_next_yes_did() -> None:
    drafted = says("Here is the message: Store UTC.\n\nAck to commit?")
    session = user("store the times in UTC"), STORE, says("Done. Shall I draft the message?"), user("yep"), drafted
    one = digest(conversation(*session, user("yes please"), COMMIT, says("It is committed."), NEXT), 3_000)
    told = rendered(one.summary)
    assert '→ "yep" → 4f1c2aa' not in told
    assert "yep → 4f1c2aa" not in told
    assert 'store the times in UTC → 4f1c2aa "Store UTC"' in told
