"""Statements: what can stand alone, and how a long line is shortened."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.digest import noise, statements, texts


@pytest.mark.parametrize(
    "text",
    [
        "Exit code 1",
        *("", "});", "|---|---|", "==========", "A" * 200, "-rw-r--r--  1 tide tide  2327 Sep 10 10:02 gauge.py"),
        '<path d="M12 9v2m0 4h.01m-6.938 4h13.856c1.54 0 2.502-1.667 1.732-3L13.732 4c-.77-1.333-2.694-1.333z" />',
        *("...30695 bytes truncated...", "... [19966 characters truncated] ...", "… 72 more lines truncated …"),
        *("[File: /harbour/gauge.py (90 lines total)]", "(40 more lines above)", "<returncode>0</returncode>"),
        "<command with shellId: 30 is still running after 30 seconds. Use read_bash to wait for more output>",
        "00000000: 3834 303a 0909 0945 7870 6563 7465 6453  840:...ExpectedS",
    ],
)
def test_noise(text: str) -> None:
    assert noise.is_noise(text)


LONG_PATH = f"`/home/ada/.tides/-Users-ada-{'harbour-' * 10}gauge/4f1c2aa9.jsonl`"


@pytest.mark.parametrize(
    "text", ["Tests pass now.", "def load(path):", "pytest -q tests", "报告写完了。", "a/b.py", LONG_PATH]
)
def test_no_noise(text: str) -> None:
    assert not noise.is_noise(text)


def test_a_long_line_is_cut_into_sentences() -> None:
    line = "The first one is about the loader and its cache, which is wrong. " * 3 + "The last one ends it."
    pieces = [text for text, _, _ in statements.statements_of(line)]
    assert len(pieces) == 4
    assert all(piece in line for piece in pieces)


def test_what_limits_a_sentence_is_not_cut_off_from_it() -> None:
    first = "The limit of the gauges is not known outside of the loader, so the tests cannot read it from there."
    for limits in (
        "But they live in the same package.",
        "The tests are in the same package though, so they can.",
        "Actually, they live in the same package.",
        "These live in the same package.",
        "So the tests are in the same package.",
        "The rest live in the same package.",
    ):
        pieces = [text for text, _, _ in statements.statements_of(f"{first} {limits} The loader stays as it is.")]
        assert pieces == [f"{first} {limits}", "The loader stays as it is."]


def test_entries_rows_and_code_stand_under_the_heading_or_the_line_with_a_colon_before_them() -> None:
    text = "## Plan\nTwo ways:\n- keep the lock\n- drop it\n\nI take the first.\n| a | b |\n```\nx = 1\n```"
    assert [(piece, form.value, lead) for piece, form, lead in statements.statements_of(text)] == [
        ("keep the lock", "item", "Plan\nTwo ways:"),
        ("drop it", "item", "Plan\nTwo ways:"),
        ("I take the first.", "sentence", "Plan"),
        ("a | b", "row", "Plan"),
        ("x = 1", "code", "Plan"),
    ]


def test_what_stands_further_in_is_led_by_its_entry_and_by_nothing_that_ended_before() -> None:
    text = (
        "Here is what happened:\n1. You committed\n   - with two sessions\n2. You did a reset\n   - it undid the commit"
        "\n   Nothing was lost.\n\nThe cleanup likely came from:\n- another terminal"
    )
    assert [(piece, lead) for piece, _, lead in statements.statements_of(text)] == [
        ("1. You committed", "Here is what happened:"),
        ("with two sessions", "1. You committed"),
        ("2. You did a reset", "Here is what happened:"),
        ("it undid the commit", "2. You did a reset"),
        ("Nothing was lost.", "2. You did a reset"),
        ("another terminal", "The cleanup likely came from:"),
    ]


def test_the_later_sentences_of_an_entry_stand_under_its_first() -> None:
    first = "1. The getter of the log level belongs to the other package, where two callers still read it."
    text = f"{first} I will add it for consistency."
    assert list(statements.statements_of(text)) == [
        (first, "item", ""),
        ("I will add it for consistency.", "item", first),
    ]


@given(st.text(alphabet="ab.!? \n-#|`*:1)。", max_size=300))
def test_statements_hold_only_words_of_their_text(text: str) -> None:
    words = set(re.findall(r"[ab1]+", text))
    assert {word for piece, _, _ in statements.statements_of(text) for word in re.findall(r"[ab1]+", piece)} <= words


@pytest.mark.parametrize(
    "text",
    [
        "Let me check the tests.",
        "Now I'll run the migration.",
        "I'm checking the run for the new commit now.",
        "Running the tests",
        "Good question. Let me think about this...",
        "Now I have a clear picture of the three hooks.",
        "Is there anything else?",
        "Task 2: adding the field of the harbour and the helpers.",
        "I see the issue.",
        "让我看看",
    ],
)
def test_what_only_announces_the_next_call_is_narration(text: str) -> None:
    assert noise.is_narration(text)


@pytest.mark.parametrize(
    "text",
    [
        "The tests fail since the clock moved.",
        "Let me look closer: it reads the clock of the gauge twice.",
        "I see that `open()` drops the second hour.",
        "Reading the log shows a lock. The lock is never freed.",
        "测试失败了。",
    ],
)
def test_what_says_how_it_is_is_no_narration(text: str) -> None:
    assert not noise.is_narration(text)


@pytest.mark.parametrize(
    "text",
    [
        "All tests pass, including those of the export.",
        "The script is working much better now.",
        "The syntax is now correct and the command runs without errors.",
        "The runs are queued now (the server had not registered them before).",
        "Good, the tests of the gauge are written.",
        "Both tests fail as expected.",
        "The edit looks correct.",
        "Still building.",
        "There are compilation errors in the export.",
    ],
)
def test_how_a_step_went_is_passing(text: str) -> None:
    assert noise.is_passing(text)


@pytest.mark.parametrize(
    "text",
    [
        "The tests fail since the clock moved.",
        "All tests pass now, the store keeps the hours.",
        "Of the tests 3 fail.",
        "The export writes local time.",
    ],
)
def test_what_tells_more_than_how_a_step_went_is_not_passing(text: str) -> None:
    assert not noise.is_passing(text)


@pytest.mark.parametrize("text", ['#include "gauge.h"', "} else if (gauge) {", "from harbour.gauge import shown"])
def test_pieces_of_something_larger_are_scraps(text: str) -> None:
    assert noise.is_scrap(text)
    assert not noise.is_scrap("def shown(value):")


@given(st.text(alphabet="ab c", min_size=400, max_size=900), st.lists(st.integers(0, 380), max_size=4))
def test_a_window_is_verbatim_and_bounded(text: str, starts: list[int]) -> None:
    shown = texts.windowed(text, [(at, at + 3) for at in starts], 200)
    pieces = [piece.strip() for piece in shown.split("…")]
    assert all(piece in text for piece in pieces)
    assert sum(map(len, pieces)) <= 200


def test_a_window_holds_the_most_important_spot() -> None:
    text = "x " * 300 + "needle_here " + "y " * 300
    at = text.index("needle_here")
    shown = texts.windowed(text, [(at, at + 11)])
    assert "needle_here" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")


def test_an_entry_that_ends_with_a_colon_leads_what_stands_below_it() -> None:
    text = "1. Add to your profile:\n   ```\n   export MODE=1\n   ```\n2. Start anew."
    assert [(piece, lead) for piece, _, lead in statements.statements_of(text)] == [
        ("   export MODE=1", "1. Add to your profile:"),
        ("2. Start anew.", ""),
    ]


def test_a_link_to_a_file_is_quoted_as_the_path() -> None:
    line = "Look at [gauge.js:9](js/lib/gauge.js#L9), [`tide.py`](src/tide.py) and [a.json](a.json:20:8-23:9)."
    assert texts.one_line(line) == "Look at js/lib/gauge.js:9, src/tide.py and a.json:20."
    editors = "See [a.json](cci:1://file:///home/tide/a.json:0:0-0:0), of [#7](https://tide.example/pull/7)."
    assert texts.one_line(editors) == "See a.json, of [#7](https://tide.example/pull/7)."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("createdAt: row.created_at,", True),
        ("commitSha,", True),
        ("EntireID:       entireID,", True),
        ("limits?: Limits", True),
        ("const row = await store.read(id);", True),
        ("const read = async (id: string) => {", False),
        ("export const LIMIT = 4;", False),
        ("export function read(id: string): Row {", False),
        ('"version": "1.2.0"', False),
        ("Reads the levels of the gauge,", False),
    ],
)
def test_a_line_of_code_that_defines_nothing_is_amid_code(text: str, *, expected: bool) -> None:
    assert noise.is_amid_code(text) is expected


def test_the_navigation_of_a_page_is_noise_and_a_sentence_with_links_is_none() -> None:
    listed = " * ".join(f'[{name}](/wiki/{name}_(logic) "{name}")' for name in ("Form", "Matter", "Motion", "Place"))
    assert noise.is_noise(f"* {listed}")
    spoken = "Read [the guide](a), [the notes](b) and [the list](c) before the export is changed: the clock drifts."
    assert not noise.is_noise(spoken)


def test_a_sentence_goes_on_after_what_is_left_out_within_it() -> None:
    assert list(texts.sentences("It counts from 0 (`0/`, `1/`, ...) which matches the code. that is fine.")) == [
        "It counts from 0 (`0/`, `1/`, ...) which matches the code.",
        "that is fine.",
    ]


def test_an_offer_of_help_is_a_courtesy_and_what_help_is_made_of_is_none() -> None:
    assert noise.is_courtesy("I can help you with modifying your flights.")
    assert noise.is_courtesy("I’d be happy to help you with that!")
    told = (
        "I work out an order of them and merge - I'm glad to do that, but want to confirm before merging seven of them"
    )
    assert not noise.is_courtesy(
        f"{told}, as that is shared and hard to take back, and nothing that I have read here says what you meant."
    )
    assert not noise.is_courtesy("I can help you with your booking, and look into a compensation for HAT018.")


def test_the_head_of_a_table_leads_its_rows_and_is_no_statement() -> None:
    table = "| Gauge | Dry | Wet |\n|---|:--:|---|\n| CAS-02 | 1 | 4 |\n| CAS-07 | 0 | 2 |"
    found = [(piece, lead) for piece, _, lead in statements.statements_of(f"## Counts\n{table}\nSent at noon.")]
    head = "Counts\nGauge | Dry | Wet"
    assert found == [("CAS-02 | 1 | 4", head), ("CAS-07 | 0 | 2", head), ("Sent at noon.", "Counts")]


def test_rows_of_two_columns_are_led_by_a_head_that_says_more_than_a_word_of_each() -> None:
    table = "| Decision | Choice |\n| --- | --- |\n| Store of the readings | SQLite |"
    assert [(piece, lead) for piece, _, lead in statements.statements_of(table)] == [
        ("Store of the readings | SQLite", "")
    ]
    compared = "| Current (one run) | A run for each gauge |\n| --- | --- |\n| Gauges wait | Gauges are read at once |"
    assert [(piece, lead) for piece, _, lead in statements.statements_of(compared)] == [
        ("Gauges wait | Gauges are read at once", "Current (one run) | A run for each gauge")
    ]


def test_what_stands_under_a_heading_of_a_proposal_is_stated_as_proposed() -> None:
    text = "## Proposed layout\n### Files\n- store.py holds the readings\n## Tests\n- test_store.py"
    assert [(piece, lead) for piece, _, lead in statements.statements_of(text)] == [
        ("store.py holds the readings", "Proposed layout\nFiles"),
        ("test_store.py", "Tests"),
    ]


def test_a_pattern_is_asked_where_one_of_its_parts_stands_in_any_case() -> None:
    parts = ("because", "由于")
    assert all(noise.may_have(text, parts) for text in ("It fails — BECAUSE of it", "由于时钟漂移"))
    assert not any(noise.may_have(text, parts) for text in ("It fails.", "Es fällt aus – „so“", "时钟漂移"))


def test_a_paragraph_with_a_label_in_bold_is_not_under_the_bold_line_before_it() -> None:
    text = "**Done:**\n- the gauges are read\n\n**Old fault:** The tide is lost.\n## Next\n**Note:** It is dry."
    found = [(piece, lead) for piece, _, lead in statements.statements_of(text)]
    labelled = ("Old fault: The tide is lost.", ""), ("Note: It is dry.", "Next")
    assert found == [("the gauges are read", "Done:"), *labelled]


def test_the_last_sentence_of_a_long_paragraph_leads_the_list_that_it_introduces() -> None:
    first, last = f"I found why the gauges of {'the old harbour ' * 8}are lost.", "The reader takes any gauge, whether:"
    listed = "1. the harbour knows it\n2. it was read"
    found = [(piece, lead) for piece, _, lead in statements.statements_of(f"{first} {last}\n{listed}\n\nSo it is.")]
    assert found == [(first, ""), ("1. the harbour knows it", last), ("2. it was read", last), ("So it is.", "")]
    told = statements.statements_of(f"{first} Let's look at what happened:\n{listed}")
    assert [lead for _, _, lead in told] == ["", "", "", ""]


def test_the_sentences_of_a_paragraph_stand_under_its_label_in_bold() -> None:
    wrong = '**Wrong:** "raise the version of the tide table." There is no such version.'
    then = "The build writes it into the table of each harbour on every run."
    assert [*statements.statements_of(f"Checked both.\n\n{wrong} {then}\n\n**Right:** the gauge.")] == [
        ("Checked both.", "sentence", ""),
        ('"raise the version of the tide table."', "sentence", "Wrong:"),
        ("There is no such version.", "sentence", "Wrong:"),
        (then, "sentence", "Wrong:"),
        ("Right: the gauge.", "sentence", ""),
    ]


def test_a_line_that_begins_in_bold_leads_the_list_right_below_it() -> None:
    text = "## Order\n\n**1. Gauges** - most of it\n- Rare\n\n**2. Clock** - little\n- Dear\n\nShall I?"
    assert [(piece, lead) for piece, _, lead in statements.statements_of(text)] == [
        ("1. Gauges - most of it", "Order"),
        ("Rare", "Order\n1. Gauges - most of it"),
        ("2. Clock - little", "Order"),
        ("Dear", "Order\n2. Clock - little"),
        ("Shall I?", "Order"),
    ]


def test_what_stands_under_one_of_several_options_is_of_that_one() -> None:
    text = "## Option 2: By time\n**Cons:**\n- Races\n## Option 3: By name\n**Pros:**\n- Exact\n## Example\nFive."
    assert [(piece, lead) for piece, _, lead in statements.statements_of(text)] == [
        ("Races", "Option 2: By time\nCons:"),
        ("Exact", "Option 3: By name\nPros:"),
        ("Five.", "Example"),
    ]


def test_what_follows_a_break_is_not_of_the_part_before_it() -> None:
    text = "## Gates\nThey open at noon.\n\n---\n\nMore in the harbour's guide."
    assert [lead for _, _, lead in statements.statements_of(text)] == ["Gates", ""]
    framed = "**Checks**\n- it opens\n\n`★ Insight ──────────`\nA gate needs a guard.\n`──────────`"
    assert [(piece, lead) for piece, _, lead in statements.statements_of(framed)] == [
        ("it opens", "Checks"),
        ("A gate needs a guard.", ""),
    ]


def test_what_follows_the_list_of_a_label_in_bold_is_not_of_that_list() -> None:
    text = "**Gates:**\n- north\n- south\n\nAll open at noon.\n\n**Pumps:** they run."
    assert [(piece, lead) for piece, _, lead in statements.statements_of(text)] == [
        ("north", "Gates:"),
        ("south", "Gates:"),
        ("All open at noon.", ""),
        ("Pumps: they run.", ""),
    ]
    # What is said of the entries is of their list, and so are words before it.
    assert [lead for _, _, lead in statements.statements_of("**Gates:**\n- north\n\nThey open at noon.")] == [
        "Gates:"
    ] * 2
    words = "**Gates:**\nAll open at noon:\n- north\n- south"
    assert [lead for _, _, lead in statements.statements_of(words)] == ["Gates:\nAll open at noon:"] * 2


def test_numbered_headings_stand_under_the_heading_above_them() -> None:
    text = "# Review\n## P1: must fix\n### 1. Lost rows\nThey are lost.\n## P2: should fix\n### 2. Slow\nIt is slow."
    assert [lead for _, _, lead in statements.statements_of(text)] == [
        "P1: must fix\n1. Lost rows",
        "P2: should fix\n2. Slow",
    ]
    assert [lead for _, _, lead in statements.statements_of("# Review\n\n## Rows\n\nThey are lost.")] == ["Rows"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("The gauge is imported. Now let me run the tests.", "The gauge is imported."),
        ("Let me look at the gauge. It reads metres.", "Let me look at the gauge. It reads metres."),
        ("Now let me run the tests.", ""),
    ],
)
def test_an_announcement_is_taken_off_the_end_of_a_text(text: str, left: str) -> None:
    assert texts.without_end(text, noise.is_narration) == left


def test_a_mark_within_code_ends_no_sentence() -> None:
    first = "Put the check into `UPDATE stock SET grams = grams - ? WHERE tea = ?` and raise Refused."
    line = f"{first} It is safe then, and it needs no lock, which is what slows the loader down."
    assert texts.sentences(line)[0] == first
    assert next(piece for piece, _, _ in statements.statements_of(line)) == first


def test_a_numbered_line_in_bold_leads_the_quotation_below_it_and_nothing_after_that() -> None:
    text = (
        "New comments:\n\n**1. `chunking.go:103`** - Empty content\n> It could create chunks of empty strings\n\n"
        "**2. `gemini.go:424`** - No chunks\n> If all fail, it returns an empty slice\n\nBoth are valid."
    )
    assert [(piece, lead) for piece, _, lead in statements.statements_of(text)] == [
        ("1. `chunking.go:103` - Empty content", ""),
        ("It could create chunks of empty strings", "1. `chunking.go:103` - Empty content"),
        ("2. `gemini.go:424` - No chunks", ""),
        ("If all fail, it returns an empty slice", "2. `gemini.go:424` - No chunks"),
        ("Both are valid.", ""),
    ]


def test_an_address_alone_is_quoted_whole_where_it_takes_twice_the_room() -> None:
    address = "https://example.com/harbour/gauges/pull/127#review-38022876"
    assert texts.opening(address, 40) == address
    assert texts.opening(address, 20) == ""
    assert texts.opening(f"{address} is the review", 40) == "… is the review"


def test_a_sentence_that_speaks_of_the_one_before_it_is_one_piece_with_it() -> None:
    told = "The gauge keeps its old name. That breaks the store. Otherwise all of it is well. The wheel turns at noon."
    pieces = [piece for piece, _, _ in statements.statements_of(told)]
    assert pieces == [told.removesuffix(" The wheel turns at noon."), "The wheel turns at noon."]


def test_that_a_package_passed_and_what_a_program_logs_of_what_it_does_is_progress() -> None:
    passed = "ok  \ttide/clock\t0.4s"
    logged = "2026/02/03 15:31:41 INFO tide saved component=clock"
    failed = "2026/02/03 15:31:42 ERROR tide lost component=clock"
    meter = "51 10.7M   51 5643k    0     0  3903k      0  0:00:02  0:00:01  0:00:01 4583k"
    unpacked, told = "  inflating: tides/LICENSE", "The read takes 0:00:02 and adds: nothing"
    lines = [passed, logged, failed, "ok then, the clock is right", meter, unpacked, told]
    assert noise.progress_among(lines) == {passed, logged, meter, unpacked}


def test_a_label_and_the_sentence_below_it_are_one() -> None:
    told = "Root cause:\n\nThe store reads the clock twice.\n\nConditions:\n- at night\n\n```\nelse:\nrun()\n```"
    assert [text for text, _, _ in statements.statements_of(told)] == [
        "Root cause: The store reads the clock twice.",
        "at night",
        "else:",
        "run()",
    ]


def test_what_stands_in_another_element_is_under_no_heading_of_the_one_before() -> None:
    text = "**Do NOT:**\n- change the crates\n</action>\n<verification>\n1. The crate is built first\n2. The pump runs"
    found = [(piece, lead) for piece, _, lead in statements.statements_of(text)]
    assert found == [
        ("change the crates", "Do NOT:"),
        ("1. The crate is built first", ""),
        ("2. The pump runs", ""),
    ]


@pytest.mark.parametrize(
    ("sentence", "only"),
    [
        ("Now let me verify the work by running the lint and the build.", True),
        ("Let me confirm it by reading the file.", True),
        ("Let me fix it by keying readings by their clock.", False),
    ],
)
def test_how_something_is_to_be_looked_at_tells_no_more_than_that_it_is(sentence: str, only: bool) -> None:
    assert noise.only_announces(sentence) is only


def test_a_list_in_an_entry_of_a_list_stands_under_both() -> None:
    text = "Done:\n- `1a2b3c4`: clean the replies\n  - Redacts what may be secret:\n    - bearer tokens\n    - keys"
    found = [(one, lead) for one, _, lead in statements.statements_of(text)]
    both = "`1a2b3c4`: clean the replies\nRedacts what may be secret:"
    assert found == [("`1a2b3c4`: clean the replies", "Done:"), ("bearer tokens", both), ("keys", both)]


def test_stars_in_code_are_no_emphasis() -> None:
    assert (
        texts.plain_line("**Note**: it writes `**Action**: new file` now")
        == "Note: it writes `**Action**: new file` now"
    )


def test_a_bold_sentence_heads_nothing_and_a_bold_label_ends_the_one_before_it() -> None:
    answer = "**Short answer: it can be done, but the shells made the opposite choice.**"
    text = f"{answer}\n\nIt breaks in two ways:\n1. Enter repaints\n2. clocks go stale"
    led = "It breaks in two ways:"
    assert [(one, lead) for one, _, lead in statements.statements_of(text)] == [
        (answer.strip("*"), ""),
        ("1. Enter repaints", led),
        ("2. clocks go stale", led),
    ]
    text = "**Current Behavior:**\n- the link stays\n\n**Delete Flow** (of the clock):\n- takes the file"
    assert [(one, lead) for one, _, lead in statements.statements_of(text)] == [
        ("the link stays", "Current Behavior:"),
        ("takes the file", "Delete Flow (of the clock):"),
    ]


def test_a_list_of_the_same_indent_stands_under_the_numbered_entry_above_it() -> None:
    text = (
        "In order:\n1. **Build a harness**\n- a small corpus\n2. **Tighten the rules**\n- explicit checks\n3. Ship it"
    )
    assert [(one, lead) for one, _, lead in statements.statements_of(text)] == [
        ("1. Build a harness", "In order:"),
        ("a small corpus", "1. Build a harness"),
        ("2. Tighten the rules", "In order:"),
        ("explicit checks", "2. Tighten the rules"),
        ("3. Ship it", "In order:"),
    ]


def test_a_line_that_introduces_the_line_below_it_stands_with_it() -> None:
    text = "Still untracked, untouched:\n`examples/tide.json`\n\nThe checks are green."
    assert [(one, lead) for one, _, lead in statements.statements_of(text)] == [
        ("`examples/tide.json`", "Still untracked, untouched:"),
        ("The checks are green.", ""),
    ]


def test_a_full_stop_of_an_abbreviation_ends_no_sentence() -> None:
    line = "North vs. south is read (e.g. by `tide`) at night. The lock is not."
    assert texts.sentences(line) == ("North vs. south is read (e.g. by `tide`) at night.", "The lock is not.")
    assert texts.opening(line, 55) == "North vs. south is read (e.g. by `tide`) at night."


def test_an_entry_of_a_log_is_progress_unless_it_reports_an_error() -> None:
    entry = "2026-07-15 11:23:22.352442+0200 0x1e045    {:8}    0x71077   6845   0    Tides: (libxpc) no gauge"
    entries = [entry.format(level) for level in ("Default", "Info", "Error")]
    entries += ["2026-07-15 11:23:22 INFO gauge read", "2026-07-15 11:23:22 WARN gauge late"]
    assert noise.progress_among(entries) == {entries[0], entries[1], entries[3]}


def test_an_ellipsis_in_code_and_a_remark_in_brackets_end_no_statement() -> None:
    entry = (
        "- **Surface** — `isTide` reads the scheme of `new URL(url)`. Any `https://...` (one of `https://x@pier/`, too)"
        " passes; all hangs on the harbour that sends it. `readTide` does not look at the host. This is no gap."
    )
    assert not any(one.startswith("(") for one, _, _ in statements.statements_of(entry))


def test_a_block_of_code_stands_under_the_entry_that_introduces_it() -> None:
    led = "`local.json` is left out: each machine must be set up once with:"
    text = f"Two files:\n\n- `harbour.json` is shared.\n- {led}\n\n```sh\ngauge set quay\n```\n\nThat is all."
    leads = {one: lead for one, _, lead in statements.statements_of(text)}
    assert leads["gauge set quay"].endswith(led)
    assert leads["That is all."] == ""


def test_a_long_line_in_bold_that_is_no_sentence_takes_no_time() -> None:
    # Each blank could end a word or belong to the next one: no line may be read in all of these ways.
    line = f"**{'the tide of the harbour ' * 400}"
    assert [piece for piece, _, _ in statements.statements_of(f"{line}\n\nIt rises.")][-1] == "It rises."


def test_a_heading_in_bold_may_be_followed_by_what_it_is_of_in_brackets() -> None:
    text = "**Gates**\n\nThey open at noon.\n\n**Gauges** (`src/gauge.py`)\n\nEach is read:\n1. at noon"
    assert [lead for _, _, lead in statements.statements_of(text)] == [
        "Gates",
        "Gauges (`src/gauge.py`)\nEach is read:",
    ]
