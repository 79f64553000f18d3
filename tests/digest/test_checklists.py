"""Checklists: what became of the entries of the assistant's numbered lists, as later records show it."""

from __future__ import annotations

from conversation import answer, call, conversation, digest, ran, rendered, says, texts, user

from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message

ASKED = user("review the store of the gauges and tell me what is wrong with it")
FOUND = says(
    "I found four issues in the store of the gauges:\n\n"
    "1. `src/store.py` - `add_all()` keeps the transaction open\n"
    "2. `src/clock.py` - `read_drift()` takes local time for UTC\n"
    "3. `src/export.py` - `write_row()` drops the second hour of October\n"
    "4. `src/page.py` - `load_page()` reads every gauge again\n"
)


def edited(path: str, new: str) -> tuple[Message, Message]:
    return call("Edit", path, file_path=path, old_string="a", new_string=new), answer("ok", path)


STORE, CLOCK = edited("src/store.py", "def add_all(rows):"), edited("src/clock.py", "def read_drift(gauge):")


def is_open(*messages: Message | tuple[Message, ...]) -> list[str]:
    return texts(digest(conversation(ASKED, FOUND, *messages), 3_000), Section.PLAN)


def test_an_entry_whose_file_was_edited_later_is_marked_and_the_others_are_not() -> None:
    shown = rendered(digest(conversation(ASKED, FOUND, user("mend the first one"), STORE), 3_000).summary)
    assert "1. `src/store.py` - `add_all()` keeps the transaction open (edited later)" in shown
    assert shown.count("edited later") == 1


def test_what_is_left_of_a_list_that_was_worked_off_is_open() -> None:
    assert is_open(user("mend them"), STORE, CLOCK) == [
        "No record deals with: 3. `src/export.py` - `write_row()` drops the second hour of October"
        " · 4. `src/page.py` - `load_page()` reads every gauge again"
    ]


def test_of_a_list_that_nobody_works_off_nothing_is_open() -> None:
    assert is_open(user("thanks, leave it for now")) == []


def test_what_the_user_leaves_out_of_a_list_is_not_open() -> None:
    assert is_open(user("skip 3 and 4, mend the rest"), STORE, CLOCK) == []


def test_what_the_user_does_not_choose_of_a_list_is_not_open() -> None:
    assert is_open(user("fix 1-2 please"), STORE, CLOCK) == []


def test_an_entry_whose_id_a_later_reply_names_is_answered() -> None:
    table = says(
        "**Remaining comments:**\n\n| # | Comment | Issue |\n|---|---|---|\n"
        "| 1 | 2734651359 | the doc comment does not match |\n"
        "| 2 | 2734651368 | the test is not hermetic |\n"
        "| 3 | 2734900785 | all temporaries are collapsed |\n"
    )
    replied = [
        ran(f'gh api repos/a/b/pulls/1/comments/{number}/replies -f body="Fixed"', '{"id": 9}')
        for number in (2734651359, 2734651368)
    ]
    found = texts(digest(conversation(ASKED, table, user("do them all"), *replied), 3_000), Section.PLAN)
    assert found == ["No record deals with: 3 | 2734900785 | all temporaries are collapsed"]


def test_a_list_of_what_was_done_is_no_checklist() -> None:
    done = says(FOUND.text.replace("I found four issues in", "All done. Changes made to"))
    assert texts(digest(conversation(ASKED, done, user("go on"), STORE, CLOCK), 3_000), Section.PLAN) == []


def test_a_sentence_that_calls_a_comment_still_open_is_marked_where_a_later_reply_names_its_id() -> None:
    told = says("The nil check of runExplain() that comment 2734900755 asks for is still unfixed, the others are done.")
    replied = ran('gh api repos/a/b/pulls/1/comments/2734900755/replies -f body="Fixed"', '{"id": 9}')
    shown = rendered(digest(conversation(ASKED, told, user("mend it and answer"), replied), 3_000).summary)
    assert f"{told.text} (answered later)" in shown


HEADED = says(
    "## Review of the gauges: findings\n\n"
    "**1. Readings may be lost at midnight**\n`src/store.py:80-96`\n\nWhat came in is kept by `StartedAt` alone.\n\n"
    "**2. Hours are compared as texts**\n`src/store.py:40`\n\nThe names of hours come from `BaseHour`, too short.\n\n"
    "**3. The page is slow**\n`src/page.py` reads every gauge again for each of the requests.\n\n"
    "**4. A reason that nobody reads**\n`src/store.py:12`\n\nThe field `reason_shown` is written and not read.\n"
)
CONTEXT = "def add_all(rows):\n    reason_shown = 1\n    keep(rows)"


def test_findings_under_headings_are_marked_by_the_names_in_the_lines_that_an_edit_changed() -> None:
    edit = call(
        "Edit", "e", file_path="src/store.py", old_string=CONTEXT, new_string=f"{CONTEXT}\n    if StartedAt: skip()"
    )
    shown = rendered(digest(conversation(ASKED, HEADED, user("the first one"), edit, answer("ok", "e")), 3_000).summary)
    marked = [line for line in shown.split("\n") if "edited later" in line]
    assert marked
    assert all("1. Readings may be lost" in line for line in marked)


def test_what_may_have_been_dealt_with_in_a_file_of_several_findings_is_not_called_untouched() -> None:
    edits = [edited("src/store.py", "if StartedAt: skip()"), edited("src/page.py", "read once")]
    assert is_open(user("mend them"), *edits) == [
        "No record deals with: 2. `src/clock.py` - `read_drift()` takes local time for UTC"
        " · 3. `src/export.py` - `write_row()` drops the second hour of October"
    ]
    one = digest(conversation(ASKED, HEADED, user("mend them"), *edits, edited("src/store.py", "BaseHour[:7]")), 3_000)
    assert texts(one, Section.PLAN) == []


def test_a_list_that_explains_how_something_came_about_leaves_nothing_open() -> None:
    why = says(
        "The bug slipped through because of how the store grew:\n\n"
        "1. `add_all()` was written first in `src/store.py`\n2. `read_drift()` came later in `src/clock.py`\n"
        "3. `write_row()` has no test in `src/export.py`\n"
    )
    assert texts(digest(conversation(ASKED, why, user("mend it"), STORE, CLOCK), 3_000), Section.PLAN) == []


def test_an_entry_is_dealt_with_where_its_title_was_said_just_before_an_edit() -> None:
    found = says(
        "I see issues:\n\n1. **Import order** — `os` stands last\n2. **Dead code** — `_old_way()`\n3. **Names** — `x`\n"
    )
    first = (says("**1. Import order in the clock** — two groups:"), *edited("src/clock.py", "import os"))
    dead = edited("src/store.py", "def _old_way(): pass")
    assert texts(digest(conversation(ASKED, found, user("do it"), first, dead), 3_000), Section.PLAN) == []
