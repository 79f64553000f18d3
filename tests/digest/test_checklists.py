"""Checklists: what became of the entries of the assistant's numbered lists, as later records show it."""

from __future__ import annotations

from conversation import answer, call, conversation, digest, rendered, says, user

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


def marked(*messages: Message | tuple[Message, ...]) -> int:
    """How many entries are said to be dealt with."""
    shown = rendered(digest(conversation(ASKED, *messages), 3_000).summary)
    return shown.count("edited later") + shown.count("answered later")


def test_an_entry_whose_file_was_edited_later_is_marked_and_the_others_are_not() -> None:
    shown = rendered(digest(conversation(ASKED, FOUND, user("mend the first one"), STORE), 3_000).summary)
    assert "1. `src/store.py` - `add_all()` keeps the transaction open (edited later)" in shown
    assert shown.count("edited later") == 1
    assert marked(FOUND, user("mend them"), STORE, CLOCK) == 2
    assert marked(FOUND, user("thanks, leave it for now")) == 0


def test_a_list_of_what_was_done_is_no_checklist() -> None:
    done = says(FOUND.text.replace("I found four issues in", "All done. Changes made to"))
    assert marked(done, user("go on"), STORE, CLOCK) == 0


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
    lines = [line for line in shown.split("\n") if "edited later" in line]
    assert lines
    assert all("1. Readings may be lost" in line for line in lines)


def test_a_list_that_explains_how_something_came_about_is_no_checklist() -> None:
    why = says(
        "The bug slipped through because of how the store grew:\n\n"
        "1. `add_all()` was written first in `src/store.py`\n2. `read_drift()` came later in `src/clock.py`\n"
        "3. `write_row()` has no test in `src/export.py`\n"
    )
    assert marked(why, user("mend it"), STORE, CLOCK) == 0


def test_what_a_summary_says_of_a_file_is_marked_where_a_later_edit_took_that_out_again() -> None:
    made = says(
        "**Changes made:**\n\n1. `src/store.py:4` - uses `must_parse()`\n2. `src/clock.py:9` - uses `must_parse()`"
    )
    edit = call("Edit", "e", file_path="src/store.py", old_string="x = must_parse(y)", new_string="x = y")
    shown = rendered(digest(conversation(ASKED, made, user("no panics"), edit, answer("ok", "e")), 3_000).summary)
    assert "1. `src/store.py:4` - uses `must_parse()` (edited later)" in shown
    assert shown.count("edited later") == 1


def test_a_proposal_is_not_marked_for_one_of_its_many_names() -> None:
    plan = says(
        "Changes needed:\n\n1. No suffixes: no `find_suffix()`, `next_suffix()` or `old_suffix` in `GaugeState`\n"
        "2. Whole trees, read anew each time\n3. A document of what is missing"
    )
    assert marked(plan, user("begin anew"), edited("src/store.py", "class GaugeState:")) == 0


def test_a_sentence_that_finds_something_missing_is_marked_where_an_edit_holds_half_of_its_names() -> None:
    fault = "`addRows` opens the store of the harbour for each of the gauges but never calls `closeStore` for it again."
    mended = edited("src/store.py", "addRows(rows); closeStore()")
    shown = rendered(digest(conversation(ASKED, says(fault), mended, says("Mended.")), 3_000).summary)
    assert f"{fault} (edited later)" in shown
    assert marked(says(fault), CLOCK, says("The clock is right.")) == 0
    past = fault.replace("but never calls", "and was never seen to call")
    assert marked(says(past), mended, says("Mended.")) == 0
