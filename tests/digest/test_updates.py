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
