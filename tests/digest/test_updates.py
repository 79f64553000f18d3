"""Updates: a summary by compact is renewed, from the state stored next to it or, in a pipe, from its text alone."""

from __future__ import annotations

import pytest
from conversation import answer, call, conversation, digest, ran, rendered, says, summary, texts, user

from compactor_cli.model.summary import Answer, Section
from compactor_cli.model.transcript import Message

FIRST = (
    user("Fix the drift of the clock in src/clock.py. Never write to the live database."),
    says("The drift comes from the second hour of October, because both hours map to one key of the store."),
    *(call("TaskCreate", "t1", subject="Fix the drift"), answer("Task #1 created", "t1")),
    *(call("TaskCreate", "t2", subject="Write the export"), answer("Task #2 created", "t2")),
    *(call("TaskUpdate", "t3", taskId="1", status="in_progress"), answer("ok", "t3")),
    *(call("Edit", "e1", file_path="src/clock.py", old_string="a = 1", new_string="b = drift(2)"), answer("ok", "e1")),
    ran(
        "pytest tests/test_clock.py", "FAILED tests/test_clock.py::test_drift - assert 3 == 4\n1 failed", is_error=True
    ),
    says("The drift test fails, since the store keeps local time. Shall I store UTC?"),
    user("store UTC please"),
    *(call("Edit", "e2", file_path="src/store.py", old_string="local", new_string="utc"), answer("ok", "e2")),
    says("Stored as UTC now, and converted in the export, because the date functions of sqlite ignore folds."),
    user("yes"),
    says("The export reads the rows of the store in the order of their hours. All tests pass."),
)
GOES_ON = (
    ran("pytest tests/test_clock.py", "1 passed"),
    *(call("TaskUpdate", "t4", taskId="1", status="completed"), answer("ok", "t4")),
    ran("git add -A && git commit -m 'Store UTC'", "[main 1234abc] Store UTC\n 2 files changed, 3 insertions(+)"),
    user("now write the export of the two harbours"),
    *(call("Edit", "e3", file_path="src/export.py", old_string="x", new_string="y = convert()"), answer("ok", "e3")),
    says("The export is begun."),
)
BOTH = pytest.mark.parametrize("state", [True, False], ids=["state", "text"])


def renewed(*messages: Message | tuple[Message, ...], state: bool) -> Answer:
    first = digest(conversation(*FIRST), 1_500)
    again = conversation(summary(rendered(first.summary)), *messages)
    return digest(again, 1_500, state=first.state if state else None)


@BOTH
def test_files_that_were_seen_in_part_are_listed_as_looked_at_and_stay_so(state: bool) -> None:
    first = digest(conversation(user("what is in it?"), ran("head -20 tides.md", "# Tides"), says("Tides.")), 1_500)
    again = conversation(summary(rendered(first.summary)), user("go on"), says("I go on."))
    both = first, digest(again, 1_500, state=first.state if state else None)
    assert [texts(one, Section.FILES) for one in both] == [["looked at: tides.md"]] * 2


def test_steps_go_on_where_later_calls_name_them_by_their_number() -> None:
    opened = texts(renewed(*GOES_ON, state=True), Section.PLAN)
    assert "open: Write the export" in opened
    assert not any("progress" in line and "Fix the drift" in line for line in opened)


def test_of_steps_whose_numbers_are_not_known_nothing_is_said_once_one_of_them_is_updated() -> None:
    assert "in progress: Fix the drift" in texts(renewed(GOES_ON[0], state=False), Section.PLAN)
    opened = "\n".join(texts(renewed(*GOES_ON, state=False), Section.PLAN))
    assert "Fix the drift" not in opened
    assert "Write the export" not in opened


def test_a_commit_after_the_summary_holds_what_was_changed_before_it() -> None:
    files = texts(renewed(*GOES_ON, state=True), Section.FILES)
    assert "src/store.py — edited, in commit 1234abc" in files
    assert not any("src/export.py" in line and "1234abc" in line for line in files)
    left = "\n".join(texts(renewed(GOES_ON[0], *GOES_ON[4:], state=True), Section.PLAN))
    assert "src/store.py" not in left  # no record speaks of commits


@BOTH
def test_changes_that_were_thrown_away_and_an_earlier_commit_of_a_file_are_carried(state: bool) -> None:
    first = (
        user("Set the clock by the tide."),
        *(call("Edit", "e1", file_path="src/clock.py", old_string="a", new_string="b"), answer("ok", "e1")),
        ran("git add src/clock.py && git commit -m 'Set it'", "[main 1234abc] Set it\n 1 file changed, 1 insertion(+)"),
        *(call("Edit", "e2", file_path="src/clock.py", old_string="b", new_string="c"), answer("ok", "e2")),
        *(call("Edit", "e3", file_path="src/gauge.py", old_string="a", new_string="b"), answer("ok", "e3")),
        ran("git checkout src/gauge.py", "Updated 1 path from the index"),
        says("The gauge stays as it was."),
    )
    files = texts(after(first, user("go on"), says("ok"), state=state), Section.FILES)
    assert "src/clock.py — edited ×2, again since commit 1234abc" in files
    assert "src/gauge.py — edited, changes thrown away" in files


@BOTH
def test_what_a_check_said_is_not_told_again_where_it_ran_again(state: bool) -> None:
    assert "assert 3 == 4" in rendered(renewed(user("go on"), state=state).summary)
    text = rendered(renewed(*GOES_ON, state=state).summary)
    assert "assert 3 == 4" not in text
    assert "`pytest tests/test_clock.py` failed" not in text
    assert "→ edited clock.py" in text


@BOTH
def test_the_users_words_stay_and_yeses_are_left_out(state: bool) -> None:
    text = rendered(renewed(*GOES_ON, state=state).summary)
    assert "Fix the drift of the clock in src/clock.py. Never write to the live database." in text
    assert "- yes" not in text


@BOTH
def test_the_users_words_stay_in_their_order(state: bool) -> None:
    asked = [f"Add the harbour number {number} to the export of the gauges, with its own clock." for number in range(9)]
    edits = ((call("Edit", str(n), file_path=f"src/export_{n}.py"), answer("ok", str(n))) for n in range(9))
    turns = ((user(one), edit, says("It is in the export.")) for one, edit in zip(asked, edits, strict=True))
    first = digest(conversation(*turns), 700)
    again = conversation(summary(rendered(first.summary)), user("and write a test of all of these, please"), says("ok"))
    users = texts(digest(again, 1_500, state=first.state if state else None), Section.USER)
    known = [number for line in users for number in range(9) if f"the harbour number {number}" in line]
    assert len(known) > 3
    assert known == sorted(known)


@BOTH
def test_each_statement_of_an_earlier_summary_is_an_entry_of_its_own(state: bool) -> None:
    earlier = texts(renewed(*GOES_ON, state=state), Section.PREVIOUS)
    assert any(line.startswith("The drift comes from the second hour of October") for line in earlier)
    assert not any("October" in line and "sqlite" in line for line in earlier)


@BOTH
def test_a_verdict_of_an_earlier_summary_is_older_than_the_edits_since(state: bool) -> None:
    earlier = "\n".join(texts(renewed(*GOES_ON, state=state), Section.PREVIOUS))
    assert "All tests pass. (before the newest edits)" in earlier
    assert "before the newest edits" not in "\n".join(texts(renewed(user("hm"), state=state), Section.PREVIOUS))


def test_what_was_doubted_is_not_remembered_without_the_doubt() -> None:
    claim = says("The second kind of clock is only another name for the first one, and reads its drift.")
    doubted = conversation(
        user("review the clocks"), claim, user("no, that's wrong, they differ"), says("I look again.")
    )
    first = digest(doubted, 1_500)
    assert "another name for the first" in rendered(first.summary)
    again = conversation(summary(rendered(first.summary)), user("go on"), says("I go on."))
    assert "another name for the first" not in rendered(digest(again, 1_500, state=first.state).summary)


def test_pieces_of_a_message_stay_in_their_order() -> None:
    said = says("Zero readings were lost at the harbour in the night.\n\nAll of them came twice, after the reconnect.")
    first = digest(conversation(user("what happened?"), said, user("so?"), says("I look.")), 1_500)
    again = conversation(summary(rendered(first.summary)), user("go on"), says("I go on."))
    text = rendered(digest(again, 1_500, state=first.state).summary)
    assert text.index("Zero readings were lost") < text.index("All of them came twice")


@BOTH
def test_a_check_of_an_earlier_summary_is_no_fact_where_code_changed_since(state: bool) -> None:
    first = digest(
        conversation(user("run the lint"), *ran("ruff check .", "All checks passed!"), says("Clean.")), 1_500
    )

    def facts(*messages: Message) -> str:
        again = conversation(summary(rendered(first.summary)), *messages)
        return "\n".join(texts(digest(again, 1_500, state=first.state if state else None), Section.COMMANDS))

    assert "ruff check" in facts(user("what now?"))
    assert "ruff check" not in facts(user("edit it"), *GOES_ON[5:7])


COMMITTING = (
    user("Fix the drift of the clock in src/clock.py, and check it."),
    *(call("Edit", "c1", file_path="src/clock.py", old_string="a = 1", new_string="b = 2"), answer("ok", "c1")),
    *ran("git commit -am 'Fix it'", "[drift 1234abc] Fix it\n 1 file changed, 1 insertion(+)"),
    *ran("git push", "To github.com:a/b\n   0000000..1234abc  drift -> drift"),
    *(call("Edit", "c2", file_path="src/store.py", old_string="local", new_string="utc"), answer("ok", "c2")),
    *ran("git commit -m 'Store UTC' src/store.py", "[drift 5678abc] Store UTC\n 1 file changed, 1 insertion(+)"),
    *ran("pytest tests", "4 passed"),
    *(call("Edit", "c3", file_path="src/export.py", old_string="x", new_string="y"), answer("ok", "c3")),
    says("The export is changed, too, and converts what the store gives it into the time of the harbour."),
)


def after(first: tuple[Message | tuple[Message, ...], ...], *messages: Message, state: bool) -> Answer:
    one = digest(conversation(*first), 1_500)
    return digest(conversation(summary(rendered(one.summary)), *messages), 1_500, state=one.state if state else None)


@BOTH
def test_what_git_has_not_seen_stays_open_where_no_newer_record_speaks_of_it(state: bool) -> None:
    found = after(COMMITTING, user("now read the store"), says("I read it."), state=state)
    opened = texts(found, Section.PLAN)
    assert "Not committed: src/export.py" in opened
    assert 'Committed, not pushed: 5678abc "Store UTC"' in opened
    assert "Passed before the newest edits of src/export.py: `pytest tests`" in opened
    assert "branch drift" in texts(found, Section.COMMANDS)


@BOTH
def test_a_later_branch_a_push_and_a_run_take_the_place_of_earlier_ones(state: bool) -> None:
    later = (
        user("push it from a branch of its own"),
        *ran("git checkout -b harbour", "Switched to a new branch 'harbour'"),
        *ran("git commit -am 'Convert'", "[harbour 9abc123] Convert\n 1 file changed, 1 insertion(+)"),
        *ran("git push", "To github.com:a/b\n * [new branch]  harbour -> harbour"),
        *ran("pytest tests", "4 passed"),
        says("It is there."),
    )
    found = after(COMMITTING, *later, state=state)
    assert texts(found, Section.PLAN) == []
    assert "branch harbour" in texts(found, Section.COMMANDS)
    assert "branch drift" not in texts(found, Section.COMMANDS)


@BOTH
def test_a_check_that_passed_before_later_edits_is_older_than_these(state: bool) -> None:
    edit = (call("Edit", "e9", file_path="src/late.py", old_string="x", new_string="y"), answer("ok", "e9"))
    checked = (user("run the tests"), *ran("pytest tests", "4 passed"), says("All of them pass."))
    opened = texts(after(checked, user("edit it"), *edit, says("ok"), state=state), Section.PLAN)
    assert opened == ["Passed before the newest edits of src/late.py: `pytest tests`"]


@BOTH
def test_a_failing_check_is_not_open_any_more_where_one_that_contains_it_ran(state: bool) -> None:
    failed = ran("pytest tests/test_clock.py 2>&1", "FAILED tests/test_clock.py::test_a - assert 3 == 4", is_error=True)
    first = (user("run the tests"), *failed, says("It fails."))
    assert "::test_a — failing" in "\n".join(texts(after(first, user("hm"), state=state), Section.PLAN))
    assert texts(after(first, user("again"), *ran("pytest tests", "9 passed"), state=state), Section.PLAN) == []


def test_in_a_pipe_the_index_of_names_is_read_back() -> None:
    shown = "\n".join(" ".join(f"placeOf{line}Gauges{place}" for place in range(3)) for line in range(10, 40))
    read = (call("Read", "r1", file_path="src/gauges.py"), answer(shown, "r1"))
    asked = user("read the gauges in src/gauges.py, and see how src/clock.py and src/store.py do it")
    one = digest(conversation(asked, *read, says("I read them.")), 600)
    assert texts(one, Section.NAMES)[0].startswith("gauges.py: placeOf10Gauges0, ")
    again = digest(conversation(summary(rendered(one.summary)), user("go on")), 900)
    assert texts(again, Section.NAMES)[0].startswith("gauges.py: placeOf10Gauges0, ")


@BOTH
def test_replies_of_a_few_words_are_not_carried_and_what_was_replied_stays(state: bool) -> None:
    long_reply = "The clock reads the hour of the store, " + "and the store asks the harbour for its own hour, " * 4
    first = (
        user("how does the clock in src/clock.py know which of the two hours of October it is in?"),
        says(f"{long_reply}which is how it knows."),
        user("aha, funny"),
        says("Shall I say more of it?"),
        user("write down what you know of the gauges of the two harbours"),
        says("I write."),
    )
    users = texts(after(first, user("and then stop the clock of the harbour"), says("ok"), state=state), Section.USER)
    assert any("which of the two hours" in line and "→ replied" in line for line in users)
    assert not any("aha" in line for line in users)


@BOTH
def test_the_reason_of_a_stop_is_carried_as_the_users_words_with_what_was_stopped(state: bool) -> None:
    stop = answer(
        "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed,"
        " the user said:\nnever touch the live store of the harbours, copy it first",
        "x1",
        is_error=True,
    )
    first = (user("empty the store"), call("Bash", "x1", command="rm -r store"), stop, says("I copy it first."))
    users = texts(after(first, user("go on with the copy of the store"), says("ok"), state=state), Section.USER)
    assert "never touch the live store of the harbours, copy it first (Stopped by the user: `rm -r store`)" in users


def test_how_a_client_asks_for_its_summary_is_nothing_of_the_user() -> None:
    asked = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
    earlier = f'1. Primary Request:\n   - "Fix the tide clock"\n   - "{asked}"\n2. Files: src/tide.py'
    stated = rendered(digest(conversation(summary(earlier, "claude"), *GOES_ON), 1_500).summary)
    assert "Fix the tide clock" in stated
    assert "TEXT ONLY" not in stated
