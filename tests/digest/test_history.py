"""The choice of statements: nothing twice, outcomes before announcements, and the budget holds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from conversation import answer, call, conversation, count, digest, ran, rendered, request, says, texts, thinks, user
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_cli.digest.analysis import Analysis, analyse
from compactor_cli.digest.candidates import candidates_of
from compactor_cli.digest.choice import ITEM_TOKENS, Choice
from compactor_cli.digest.gist import whole_lists
from compactor_cli.digest.history import history_items
from compactor_cli.digest.statements import Statement, StatementForm, list_ends, running_text, statements_of
from compactor_cli.digest.texts import listed
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message, Transcript

SENTENCES = (
    "The clock drifts by two seconds a day.",
    "Let me look at the clock.",
    "The export drops the second hour of October because it takes it for a duplicate.",
    "Gauge CAS-02 resends three lines after a reconnect.",
    "Limits: load_items(8080) in src/clock.py.",
)


def read(*messages: Message) -> Analysis:
    return analyse(request(conversation(*messages)))


def chosen(analysis: Analysis, budget_tokens: int, shown: tuple[str, ...] = ()) -> list[Statement]:
    return Choice(candidates_of(analysis, budget_tokens), shown, analysis.worth, count).choose(budget_tokens)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4), max_size=8), st.integers(0, 200))
def test_the_choice_holds_its_budget_and_says_nothing_twice(messages: list[list[str]], budget_tokens: int) -> None:
    found = read(*(says("\n".join(lines)) for lines in messages))
    taken = chosen(found, budget_tokens)
    texts = [statement.text for statement in taken]
    assert len(texts) == len(set(texts))
    items = {statement.event for statement in taken}
    assert sum(count(text) + 1 for text in texts) + ITEM_TOKENS * len(items) <= budget_tokens or not texts
    assert all(statement.text in found.events[statement.event].text for statement in taken)


def test_where_there_is_room_a_sentence_stands_whose_words_all_stand_in_another() -> None:
    silver = "As a silver member you are allowed 2 free bags for each passenger in economy."
    gold = "As a gold member you are allowed 3 free bags for each passenger in economy."
    found = read(says(silver), says(gold), user("And a member without a tier: silver or gold, which is allowed more?"))
    assert [one.text for one in chosen(found, 200)] == [silver, gold]


def test_what_a_message_turned_away_from_gives_way_to_where_it_arrived() -> None:
    early = "The right approach is to drop the second copy of a reading in the importer, before the sum is built."
    late = "The right approach is to key all readings by gauge and clock in the loader, before they are stored."
    talk = says(f"{early}\n\nWait, the importer sees each copy in a run of its own.\n\n{late}")
    taken = [one.text for one in chosen(read(user("fix the sum"), talk, user("go on"), says("Done.")), 60)]
    assert late in taken
    assert early not in taken


def test_what_a_step_announced_gives_way_to_what_it_found() -> None:
    found = "The relay of the north gauge sends every reading a second time after its clock was set back."
    aims = (
        "I'll add a `seen` set to relay.py, because the importer can't tell the copies apart.",
        "The two calls in importer.py need to be moved below the loop, so that they see all of the hour.",
        "I'm updating the page of the relay alongside the importer, so that both name the same clock.",
    )
    kept = "I'm keeping the old import of relay.py for the gauges of the south, which send no clock at all."
    session = (user("fix the relay"), says("\n\n".join((found, *aims, kept))), *ran("make", "ok"), says("Done."))
    taken = [one.text for one in chosen(read(*session, user("go on")), 100)]
    assert {found, kept} <= {*taken}
    assert len({*aims} & {*taken}) < 2


def test_what_was_announced_stands_where_it_says_how_and_not_that_a_step_comes() -> None:
    how = "I'm going to make the shared file fail closed: it keeps the relay on and sends no readings by itself."
    step = "I'm doing a quick review pass over the whole difference of the relay before closing the item."
    session = (user("fix the relay"), says(f"{how}\n\n{step}"), *ran("make", "ok"), says("Done."), user("go on"))
    taken = [one.text for one in chosen(read(*session), 400)]
    assert how in taken
    assert step not in taken


def test_what_only_names_the_step_of_the_next_call_is_no_statement() -> None:
    def shown(line: str) -> list[str]:
        session = (user("fix the relay"), says(line), *ran("make", "ok"), says("Done."), user("go on"))
        return [one.text for one in candidates_of(read(*session), 400)]

    found = "The relay_tables.md still name the old clock:"
    assert found in shown(found)
    for step in (
        "Also update relay_tables.md to keep it accurate:",
        "I'm checking the relay_tables.md now, because the old clock may still be named in it.",
    ):
        assert step not in shown(step)


def test_of_a_short_block_of_code_no_line_is_left_out() -> None:
    block = "- type: harbour_grader\n  value: Paris"
    text = says(f"To compare by meaning, add an explicit grader to the file of the harbour:\n\n```yaml\n{block}\n```")
    found = read(*ran("make", "ok"), user("how?"), text)
    pieces = [listed(one.text) for one in whole_lists(candidates_of(found, 200), found, 1_000)]
    assert "• type: harbour_grader · value: Paris" in pieces


BEFORE = "The relay_server returns tokens and a keypair that is derived from the address of the gauge_station."
AFTER = "The panel_client does the setup of the vault in the browser, by page_evaluate and the exposed stores."
TURN = "But that was so only until the spring, and today nobody can tell how it is done there or why."


@pytest.mark.parametrize(
    ("spoken", "pieces", "tokens"),
    [
        # A few words between two statements, and what turns against the one before it.
        (f"{BEFORE} No vault there. {AFTER}", [BEFORE, "No vault there.", AFTER], 200),
        (f"{BEFORE}\n\n{TURN}", [BEFORE, TURN], 160),
    ],
)
def test_what_belongs_to_a_statement_is_not_left_out(spoken: str, pieces: list[str], tokens: int) -> None:
    steps = [f"Station {n} has module_{n}.py, and its valve_{n} reports to panel_{n} by relay_{n}." for n in range(60)]
    found = read(user("how?"), *map(says, steps), says(spoken), says("Done."))
    assert [one.text for one in chosen(found, tokens) if one.text in pieces] == pieces


def test_the_newest_explanation_is_quoted_whole() -> None:
    reasons = [
        "The gauge sends its lines twice after a reconnect, because the buffer is flushed by both threads.",
        "The import takes the second copy for a reading of its own, so the sum of the hour is too high.",
        "A reading is the same where gauge and clock are the same, whatever the time it came in.",
        "It keys readings by gauge and clock, so the gauge may send its lines as often as it likes.",
        "The buffer stays as it is, since the firmware of the older gauges cannot be changed.",
        "The sum of the hour is right again after the import has run once more over the raw lines.",
        "What the gauge sent twice before that stays in the sums of the import.",
    ]
    steps = [f"Station {n} has module_{n}.py, and its valve_{n} reports to panel_{n} by relay_{n}." for n in range(60)]
    found = read(user("why twice?"), says(" ".join(reasons)), *map(says, steps))
    assert [one.text for one in chosen(found, 560) if one.event == 1] == reasons


def test_facts_are_weighed_in_the_order_of_their_text_so_that_every_process_chooses_alike() -> None:
    words = "gauge drift reconnect october export duplicate clock hour seconds limits".split()
    told = read(user("why?"), says(" ".join(words))).worth.facts(" ".join(reversed(words)))
    assert list(told) == words[::-1]


def test_a_larger_budget_chooses_no_less() -> None:
    found = read(*(says(sentence) for sentence in SENTENCES))
    choice = Choice(candidates_of(found, 100), (), found.worth, count)
    few, is_all = choice.choose(30), choice.is_exhausted
    assert not is_all
    more = choice.choose(500)
    assert choice.is_exhausted
    assert len(few) < len(more)
    assert choice.choose(5_000) == more
    assert choice.choose(30) == few


def test_what_is_shown_already_and_surely_fits_is_not_counted() -> None:
    found, counted = read(*map(says, SENTENCES)), list[str]()
    candidates = candidates_of(found, 5_000)

    def counting(text: str) -> int:
        counted.append(text)
        return count(text)

    Choice(candidates, [one.text for one in candidates], found.worth, counting).choose(5_000)
    assert candidates
    assert not counted


def test_of_a_great_many_reports_only_the_newest_are_weighed() -> None:
    report = "Gauge CAS-{} resends three lines after a reconnect, because its clock drifts. " * 8
    calls = ((call("Task", str(n), prompt="look"), answer(report.format(*[n] * 8), str(n))) for n in range(200))
    found = read(*(message for pair in calls for message in pair))
    told = {one.event for one in candidates_of(found, 40) if one.form is not StatementForm.OUTPUT}
    assert told
    assert min(told) > len(found.events) // 2


def test_what_was_said_of_a_file_that_was_changed_later_weighs_less() -> None:
    said = says(
        "In `tide.py` the harbour reads each of its gauges.\n\nIn `wind.py` the harbour reads each of its vanes."
    )
    edit = call("Edit", "e", file_path="src/tide.py", old_string="each", new_string="all")
    found = read(user("how are they read?"), said, user("read them at once"), edit, answer("ok", "e"))
    tide, wind = (one.weight for one in candidates_of(found, 500) if one.event == 1)
    assert tide < wind


def test_what_a_client_answers_to_an_edit_is_no_line_of_its_file() -> None:
    edit = call("Edit", "e", file_path="tide.py", old_string="EBB_METRES = 3", new_string="SPRING_METRES = 7")
    made = answer('Replaced "EBB_METRES = 3" with "SPRING_METRES = 7" in tide.py', "e")
    found = read(user("which is EBB_METRES, and SPRING_METRES?"), edit, made)
    assert {one.text for one in candidates_of(found, 500)} == {"SPRING_METRES = 7"}


def test_the_lines_of_an_edit_that_was_not_made_are_no_lines_of_its_file() -> None:
    edit = call("Edit", "e", file_path="tide.py", old_string="EBB_METRES = 3", new_string="SPRING_METRES = 7")

    def quoted(told: str, *, is_error: bool) -> set[str]:
        found = read(user("which is EBB_METRES, and SPRING_METRES?"), edit, answer(told, "e", is_error=is_error))
        return {one.text for one in candidates_of(found, 500) if one.form is not StatementForm.SENTENCE}

    assert "SPRING_METRES = 7" in quoted("The file was updated", is_error=False)
    assert not any("METRES = " in text for text in quoted("String not found\nSPRING_METRES = 7", is_error=True))
    assert "failed: no EBB_METRES in tide.py" in quoted("no EBB_METRES in tide.py\nEBB_METRES = 3", is_error=True)
    assert quoted("The user doesn't want to proceed with this tool use.", is_error=True) == set()


def test_of_a_file_that_describes_the_task_whole_sentences_stand() -> None:
    why = "The clock of the north gauge cannot be read in winter, since its relay is shut off from the first frost on."
    note = f"# Clocks of the gauges\n\n## Why\n\n{why}\n\n## Steps\n\n- [ ] Read the clock of the quay instead\n"
    note += "- [ ] Say so in the handbook of the gauges, on its page\n- [ ] Nothing is wiped: the readings stay\n"

    def shown(path: str) -> str:
        read = call("Read", "r", file_path=path), answer(note, "r")
        code = [message for n in range(9) for message in ran(f"cat src/tide_{n}.py", f"tide_{n} = load_{n}(gauge_{n})")]
        session = conversation(
            user("take the note of the clocks"), *read, *code, says("On."), user("go on then please")
        )
        return rendered(digest(session, 1_200).summary)

    assert why in shown("todos/pending/clocks.md")
    assert "Nothing is wiped: the readings stay" in shown("todos/pending/clocks.md")


def test_what_a_client_instructs_in_the_name_of_the_user_is_no_finding() -> None:
    steps = "1. Move the note `harbour_todo.md` to done.\n2. Update `STATE_OF_TIDES.md`.\nMoved, beginning now."
    template = replace(user(steps), own_words="")
    session = conversation(user("take the note of the harbour"), template, *ran("make", "ok"), says("It is taken."))
    assert "STATE_OF_TIDES" not in "\n".join(texts(digest(session, 1_500), Section.HISTORY))


def test_of_a_file_whose_text_the_result_repeats_lines_are_shown() -> None:
    text = "def spring_tide(hours):\n    level_of_spring = hours * 7\n    return level_of_spring\n"
    write = call("Write", "w", file_path="tide.py", content=text), answer(f"File written:\n{text}", "w")
    shown = texts(digest(conversation(user("write the tide"), *write, says("Written.")), 1_500), Section.HISTORY)
    assert any(line.startswith("tide.py: ") and "level_of_spring = hours * 7" in line for line in shown)


def test_lines_that_a_command_showed_of_a_file_are_marked_as_read() -> None:
    looked = ran("cat tide.py", "def spring_tide(hours):\n    level_of_spring = hours * 7\n    return level_of_spring")
    shown = texts(digest(conversation(user("explain the tide"), *looked, says("It is so.")), 1_500), Section.HISTORY)
    assert any(line.startswith("read tide.py: ") and "level_of_spring" in line for line in shown)


def test_what_the_rest_of_the_summary_says_is_not_chosen() -> None:
    found = read(user("why?"), says(SENTENCES[0]), says(SENTENCES[3]))
    assert [one.text for one in chosen(found, 100, (SENTENCES[0],))] == [SENTENCES[3]]


def test_two_sentences_that_only_announce_steps_are_no_statement() -> None:
    looks = [says("Let me look at how the clock is set. I'll read the export first."), *ran("cat clock.py", "tick = 2")]
    found = [says("Found it!"), *ran("cat export.py", "hour = 1"), says("The clock drifts by two seconds a day.")]
    shown = rendered(digest(conversation(user("why is the clock late?"), *looks, *found), 1_500).summary)
    assert "two seconds a day" in shown
    assert "Let me look" not in shown
    assert "Found it" not in shown


def test_a_finding_is_stated_without_the_step_that_is_announced_after_it() -> None:
    found = [says("Good, the buoy speaks metres now. Now let me run the tests."), *ran("pytest", "14 passed")]
    shown = rendered(digest(conversation(user("add the gauge"), *found, user("now the wind"), says("Done."))).summary)
    assert "the buoy speaks metres now." in shown
    assert "let me run" not in shown


def test_an_announcement_loses_against_an_outcome() -> None:
    found = read(user("why?"), says(SENTENCES[1]), says(SENTENCES[2]))
    assert [one.text for one in chosen(found, 30)] == [SENTENCES[2]]


def test_the_tests_that_passed_are_counted_by_their_run_and_not_listed() -> None:
    passed = "\n".join(f"--- PASS: TestClock_{name} (0.00s)" for name in ("drifts", "resends", "exports"))
    one = digest(
        conversation(
            user("why does the clock drift?"), ran("go test ./clock", f"{passed}\nok  clock 0.4s"), says("ok")
        ),
        2_000,
    )
    assert "ok  clock 0.4s" in " ".join(texts(one, Section.COMMANDS))
    assert "--- PASS" not in str(one)
    assert "TestClock_drifts" not in str(one)


def test_what_the_harness_writes_of_a_stopped_call_is_not_quoted_as_its_output() -> None:
    stopped = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the"
        " new_string was NOT written to the file). STOP what you are doing and wait for the user to say more."
    )
    edit = call("Edit", "e", file_path="store.py", old_string="load_items()", new_string="load_rows()")
    session = conversation(user("rename load_items() to load_rows()"), edit, answer(stopped, "e", is_error=True))
    one = digest(session, 2_000)
    assert "Stopped by the user: `Edit store.py`" in texts(one, Section.USER)
    assert "NOT written" not in str(one)


def test_what_another_model_reported_is_quoted_by_its_sentences() -> None:
    report = (
        "## Findings\n\nSettings are parsed in two places, and LoadSettings in settings.go ignores local overrides.\n"
        + "Nothing else was found in the other folders that were looked through one after the other. " * 5
        + "\nagentId: a411d5c (for resuming to continue this agent's work)\n<usage>total_tokens: 37502</usage>"
    )
    explored = (call("Task", "1", prompt="Explore the settings"), answer(report, "1"))
    one = digest(conversation(user("where are the settings parsed?"), explored), 1_500)
    shown_text = rendered(one.summary)
    assert "LoadSettings in settings.go ignores local overrides." in shown_text
    assert "total_tokens" not in shown_text
    assert "for resuming" not in shown_text


def test_what_was_sent_to_others_is_quoted_and_what_echoes_it_is_not() -> None:
    reply = "gh api repos/tide/pulls/90/comments --field in_reply_to=2836 --raw-field body='{}'"
    why = "Removed count_rows: reading all gauges twice adds a minute for deep_archives."
    echo = f'{{"diff_hunk":"@@ -0,0 +1,9 @@\\n+def count_rows(deep_archives):\\n+    rows = 0","body":"{why}"}}'
    message = "git commit -m \"$(cat <<'EOF'\nfix: one clock\n\nThe `fold` of deep_archives was lost.\n\nEOF\n)\""
    committed = "[main 4f1c2aa] fix: one clock\n 3 files changed, 21 insertions(+)"
    work = (ran(message, committed), ran(reply.format(why), echo), says("Both are answered."))
    shown_text = rendered(digest(conversation(user("answer the comments"), *work), 1_500).summary)
    assert why in shown_text
    assert 'diff_hunk":' not in shown_text
    assert "The `fold` of deep_archives was lost." in shown_text
    assert "21 insertions" not in shown_text


FOUND = """What happened:

1. You committed 43c285d
   - with two sessions
2. You did a reset to 82b4027
   - it undid the commit
   - the branches stayed
3. You committed again"""


def told(*places: int) -> str:
    """What stands in the history of the pieces at these places of FOUND."""
    analysis = analyse(request(conversation(user("what happened to my two sessions today?"), says(FOUND))))
    pieces = [
        Statement(text, 1, place, form, lead, record=1, opens=place in (0, 1, 3), closes=place in (1, 4, 5))
        for place, (text, form, lead) in enumerate(statements_of(FOUND))
    ]
    return history_items(analysis, [pieces[place] for place in places], {}, {}, with_names=False)[0].text


def test_an_entry_stands_under_the_entry_it_belongs_to_even_where_that_one_was_not_chosen() -> None:
    shown_text = "1. You committed 43c285d: with two sessions\n2. You did a reset to 82b4027: it undid the commit …"
    assert told(1, 3) == shown_text


def test_an_entry_that_was_chosen_is_not_stated_again_above_what_it_leads() -> None:
    assert told(0, 1, 2, 4) == (
        "What happened: 1. You committed 43c285d · with two sessions\n"
        "2. You did a reset to 82b4027 … the branches stayed …"
    )


def test_an_ellipsis_stands_for_the_entries_of_a_list_that_are_left_out() -> None:
    assert told(0, 5) == "What happened: 1. You committed 43c285d … 3. You committed again"
    assert told(2) == "What happened: … 2. You did a reset to 82b4027 …"


def test_a_statement_after_a_list_does_not_stand_for_it_under_its_heading() -> None:
    review = (
        "**Missing tests of the harbour:**\n1. None reads a gauge of the north directly, only through the store\n"
        "2. The clock is read twice by each of them\n\nThose of the store are enough to see that it still works."
    )
    analysis = analyse(request(conversation(user("are the tests of the harbour enough?"), says(review))))
    found = [one for one in candidates_of(analysis, 2_000) if one.event == 1]
    assert [(one.text[:12], one.opens, one.closes) for one in found] == [
        ("1. None read", True, False),
        ("2. The clock", False, True),
        ("Those of the", False, True),
    ]
    shown_text = history_items(analysis, found[-1:], {}, {}, with_names=False)[0].text
    assert shown_text.startswith("Missing tests of the harbour: … Those of the store")


def test_an_entry_of_a_list_without_a_heading_shows_that_others_stand_before_it() -> None:
    done = "1. The gauges of the north are read once an hour\n2. Those of the south are read at night, by the crane"
    analysis = analyse(request(conversation(user("which gauges are read when?"), says(done))))
    found = [one for one in candidates_of(analysis, 2_000) if one.event == 1]
    shown_text = history_items(analysis, found[-1:], {}, {}, with_names=False)[0].text
    assert shown_text.startswith("… 2. Those of the south")
    after = list_ends([*statements_of(f"{done}\n\nThat is all there is of them.")])
    assert after == [(True, False), (False, True), (True, True)]


def test_what_a_review_calls_small_or_good_weighs_less_than_what_it_wants_changed() -> None:
    wanted, small = "the crane reads the gauge of the north twice", "the crane reads the gauge of the south once"
    review = f"## Critical issues\n- {wanted}\n\n## Suggestions (2)\n- {small}\n\n## Positives\n- {small}, too"
    analysis = analyse(request(conversation(user("review the crane"), says(review))))
    first, *others = (one.weight for one in candidates_of(analysis, 2_000) if one.event == 1)
    assert len(others) == 2
    assert all(weight < first for weight in others)


def test_the_steps_of_a_build_are_stated_by_its_end_and_not_one_by_one() -> None:
    steps = "\n".join(f"   Compiling gauge-{name} v0.1.{len(name)}" for name in ("clock", "export", "console"))
    built = ran("cargo build --bin gauge-clock", f"{steps}\n    Finished `dev` profile [optimized] in 9.12s")
    shown_text = rendered(digest(conversation(user("does gauge-clock build?"), built), 2_000).summary)
    assert "Compiling" not in shown_text
    assert "Finished `dev` profile" in shown_text


def test_of_the_options_of_a_question_none_stands_alone_in_the_history() -> None:
    offer = (
        "The gauges overlap since both write at once.\n\nTwo ways:\nA) a lock on the table of the gauges\n"
        "B) one run for each gauge of the harbour. The console of the harbour starts every run by itself, at night.\n"
        "\nWhich one?"
    )
    found = read(user("two gauges at once?"), says(offer), user("B"), says("Each gauge has a run now."))
    shown_text = " ".join(one.text for one in chosen(found, 2_000))
    assert "both write at once" in shown_text
    assert "a lock on the table" not in shown_text
    assert "one run for each gauge" not in shown_text
    assert "The console of the harbour" not in shown_text


def test_a_short_list_of_work_is_quoted_whole_or_not_at_all() -> None:
    steps = ["1. Ask the gauges for the drift", "2. Write `read_tides` to the store anew", "3. Show the drift"]
    said = says("The drift of the gauges is lost.\n\nThree changes are needed:\n" + "\n".join(steps))
    edit = (call("Edit", "1", file_path="src/clock.py", old_string="a", new_string="b"), answer("ok", "1"))
    more = [says(f"The harbour_{n} sends the level_{n} of its gate_{n} at hour_{n}, so it opens.") for n in range(40)]
    told = conversation(user("mend the gauges"), said, edit, *ran("read_tides", "ok"), *more, user("now the harbour"))
    taken = [rendered(digest(told, budget).summary) for budget in range(300, 1_300, 100)]
    assert {sum(step in text for step in steps) for text in taken} <= {0, 3}


def test_an_ellipsis_stands_for_sentences_that_are_left_out_between_two() -> None:
    first, left_out, last = (Statement(f"The drift is {n}.", event=0, place=n) for n in range(3))
    assert running_text([first, left_out], {}) == "The drift is 0. The drift is 1."
    assert running_text([first, last], {}) == "The drift is 0. … The drift is 2."


def test_a_sentence_that_leads_others_keeps_its_full_stop() -> None:
    lead = "1. `tide.py` — The check of the owner is for display only."
    rest = statements_of(
        f"Two files:\n\n{lead} Even if it fails, the server refuses the edit. It has a check of its own."
    )
    first, second = (
        Statement(text=text, event=0, place=place, form=form, lead=lead, opens=not place)
        for place, (text, form, _) in enumerate(one for one in rest if one[2] == lead)
    )
    assert running_text([first], {}) == f"{lead} Even if it fails, the server refuses the edit."
    assert running_text([second], {}) == f"{lead} … It has a check of its own."


def test_a_sentence_between_two_chosen_ones_is_quoted_with_them_so_that_its_condition_is_not_lost() -> None:
    limit = "It is not so where there was no one there to do it by then."
    words = ("`gauge_store` resends the lines of the gauge.", limit, "`tide_export` drops them as duplicates.")
    others = [f"The harbour_{n} sends the level_{n} of its gate_{n}." for n in range(40)]
    found = read(user("why twice?"), says(" ".join(words)), *map(says, others))
    candidates = candidates_of(found, 400)
    ends = [at for at, one in enumerate(candidates) if one.text in (words[0], words[2])]
    choice = Choice(candidates, (), found.worth, count, first=[(ends, 1.0)])
    assert [one.text for one in choice.choose(300) if one.event == 1] == [*words]


def test_imports_and_the_frame_of_a_diff_tell_nothing() -> None:
    shown = (
        call("Read", "r", file_path="tide.go"),
        answer('import (\n\t"harbour/gauge_store"\n)\nfunc gauge_store_level() int', "r"),
    )
    diff = ran(
        "git diff", "diff --git a/tide.go b/tide.go\nindex df72094f..64004dd5 100644\n@@ -1 +1 @@ gauge_store_level\n+x"
    )
    found = "\n".join(one.text for one in candidates_of(read(user("mend gauge_store_level"), *shown, *diff), 500))
    assert "func gauge_store_level() int" in found
    assert not any(scrap in found for scrap in ("harbour/gauge_store", "diff --git", "df72094f", "@@"))


def test_paths_of_a_long_listing_are_for_no_index() -> None:
    listing = "\n".join(f"./tests/gauge_{number}/models.py" for number in range(90))
    used = ran("cat ./tests/gauge_7/models.py", "tide = 3")
    one = digest(conversation(user("where is the model?"), *ran("find . -name models.py", listing), *used), 900)
    assert not [text for text in texts(one, Section.NAMES) if "gauge_" in text]


def test_paths_of_a_listing_are_for_the_index_of_names() -> None:
    listing = "\n".join(f"./tests/gauge_{number}/models.py" for number in range(40))
    one = digest(conversation(user("where is the model of a gauge?"), ran("find . -name models.py", listing)), 900)
    assert not [text for text in texts(one, Section.HISTORY) if "gauge_" in text]
    assert [text for text in texts(one, Section.NAMES) if "gauge_" in text]


def test_an_answer_in_the_words_of_the_question_is_told_beside_it() -> None:
    told = digest(
        conversation(
            user("shall the export clear the cache of every gauge before the upload or after the upload?"),
            says("The export shall clear the cache of every gauge after the upload."),
            user("now write the release notes for the new archive format"),
            call("Edit", file_path="notes/release.md", old_string="a", new_string="b"),
            says("Wrote them."),
        ),
        600,
    )
    assert "clear the cache of every gauge after the upload" in "\n".join(texts(told, Section.HISTORY))


def test_a_long_request_is_quoted_once_where_its_turn_is_told() -> None:
    asked = "please find out why the export loses the second hour of October every year, and whether the gauges know it"
    told = digest(
        conversation(
            user(asked),
            says("The export drops the second hour of October because it takes it for a duplicate."),
            user("now write the release notes for the new archive format"),
            call("Edit", file_path="notes/release.md", old_string="a", new_string="b"),
            says("Wrote them."),
        ),
        800,
    )
    assert rendered(told.summary).count("please find out why the export") == 1
    assert any(asked in text for text in texts(told, Section.HISTORY))


def test_of_a_dialogue_the_users_words_and_short_lists_are_quoted_whole() -> None:
    asked = says(
        "Which of these shall I book?\n\n- Flight HAT139 at 17:00 for $114\n- Flight HAT271 at 19:00 for $174\n"
        "- Flight HAT289 at 05:00 for $161"
    )
    chosen_ones = user("1. It's a one-way ticket.\n2. Economy class, please.\n3. The one at 19:00.\n4. No insurance.")
    later = says("I have booked it for you, HAT271."), user("thanks, and can I take a suitcase on HAT271 with me?")
    shown = rendered(digest(conversation(user("a flight to Boston"), asked, chosen_ones, *later), 260).summary)
    assert '"1. It\'s a one-way ticket. 2. Economy class, please. 3. The one at 19:00. 4. No insurance."' in shown
    listed = ("Flight HAT139 at 17:00 for $114", "Flight HAT271 at 19:00 for $174", "Flight HAT289 at 05:00 for $161")
    assert " · ".join(listed) in shown or not any(one in shown for one in listed)


def test_an_object_that_was_said_is_quoted_by_its_members() -> None:
    ledger = '{\n  "is_request_satisfied": {\n    "reason": "The version is not known.",\n    "answer": false\n  }\n}'
    shown = rendered(digest(conversation(user("which version?"), says(f"Updated ledger:\n{ledger}")), 800).summary)
    assert "is_request_satisfied: reason: The version is not known. answer: false" in shown


def test_what_the_user_has_given_need_not_be_asked_for_again() -> None:
    asks_for = says("To look up your order 7041, I’ll need to know your zip code and the name on order 7041.")
    tells = says("Order 7041 is on its way to Columbus and arrives there on Friday.")
    session = conversation(user("where is my order?"), asks_for, user("43215, and Ada Lovelace"), tells, user("when?"))
    shown = rendered(digest(session, 110).summary)
    assert "on its way to Columbus" in shown
    assert "need to know" not in shown


def test_many_commits_leave_room_for_what_was_explained() -> None:
    told = "The export drops the second hour of October because it takes it for a duplicate."
    asked = "please store the times of gauge number {0} in UTC and commit that with a message of your own"
    turns = (
        (
            user(asked.format(n)),
            *ran(f"git commit -m 'Store gauge {n}'", f"[main {n:07x}a] Store gauge {n}"),
            says("Ok."),
        )
        for n in range(1_000, 1_040)
    )
    session = conversation(*turns, user("why are 120 readings missing in the export?"), says(told), says("Ok."))
    shown = " ".join(texts(digest(session, 900), Section.HISTORY))
    assert told in shown or told in " ".join(texts(digest(session, 900), Section.TASK))
    assert "Store gauge 1039" in rendered(digest(session, 900).summary)


def test_what_was_thought_stands_where_nothing_was_said_after_it_in_its_turn() -> None:
    first = "The drift comes from parse(), which reads local time where the gauges write UTC."
    second = "Since the export keys its rows by that time, the second hour of October is lost there."
    work = [(thinks(f"**Reading**\n\n{one}"), *ran("make", "ok")) for one in (first, second)]
    silent = texts(digest(conversation(user("why?"), *work, user("go on"), says("I go on.")), 900), Section.HISTORY)
    assert [one for one in silent if one.startswith("thought")] == [f"thought: {first}", f"thought: {second}"]
    spoken = conversation(user("why?"), *work, says("The drift is in parse()."), user("go on"), says("I go on."))
    assert "thought" not in str(texts(digest(spoken, 900), Section.HISTORY))


def test_what_a_command_answered_in_a_few_words_is_shown_though_it_names_nothing() -> None:
    session = conversation(
        user("Is the ledger of the gauges there?"),
        *(message for n in range(3) for message in ran(f"cat station_{n}.txt", f"reading {n}\n" * 9)),
        *ran("cat ledger.txt", "closed until the flood is over"),
        says("I shall look at the gauges first."),
        *ran("cat gauges.txt", "level of the gauges\n" * 9),
    )
    assert "closed until the flood is over" in rendered(digest(session, 500).summary)


def test_a_short_session_without_explanations_is_shown_line_by_line() -> None:
    poem = ["the flood comes in", "and the clock is late", "so nobody rings", "at the lower gate"]
    session = conversation(user("What does the note say?"), *ran("cat note.txt", "\n".join(poem)))
    shown = rendered(digest(session, 400).summary)
    assert all(line in shown for line in poem)


def test_no_room_is_filled_with_lines_out_of_the_middle_of_code_that_was_only_looked_at() -> None:
    code = "class Gauge:\n    if late(self):\n        rest = [one]\n    def shown(self):\n        return (rest)"
    session = conversation(user("What does the gauge do?"), *ran("cat gauge.py", code))
    shown = rendered(digest(session, 400).summary)
    assert "class Gauge:" in shown
    assert "def shown(self):" in shown
    assert "rest = [one]" not in shown


def test_lines_of_what_was_looked_at_come_where_everything_else_is_said() -> None:
    lines = "\n".join(f"def load_{number}(store_{number}, readings_{number}):" for number in range(30))
    explained = SENTENCES[0], SENTENCES[2], SENTENCES[3]
    found = read(user("why?"), *ran("cat store.py", lines), *map(says, explained), user("go on"), says("Gone on."))
    assert {one.text for one in chosen(found, 100)} >= {*explained}
    assert "load_" in str(chosen(found, 400))


def test_of_a_patch_the_lines_that_it_takes_away_are_no_facts_and_its_file_names_the_others() -> None:
    patch = "*** Begin Patch\n*** Update File: src/store.py\n@@\n-drift_seconds = 2\n+drift_seconds = 41\n*** End Patch"
    work = (call("shell", "p", command=["bash", "-lc", f"apply_patch <<'E'\n{patch}\nE"]), answer("Success.", "p"))
    session = conversation(user("why?"), work, says("It drifts."), user("go on"), says("Gone on."))
    candidates = {one.text: one.label for one in candidates_of(analyse(request(session)), 900)}
    assert candidates["drift_seconds = 41"] == "src/store.py"
    assert not any("drift_seconds = 2" in text for text in candidates)


def test_of_each_file_that_was_only_looked_at_some_lines_are_shown_and_no_heap_of_one() -> None:
    looks = [
        ran(f"cat {name}.py", "\n".join(f"def load_{name}_{number}({name}_{number}_level):" for number in range(60)))
        for name in ("store", "gauge")
    ]
    named = user(" ".join(f"store_{number}_level" for number in range(60)))
    found = read(user("why?"), *(one for look in looks for one in look), named, says("On."), named, says("So."))
    for budget_tokens in (500, 5_000):
        assert sum("load_gauge_" in one.text for one in chosen(found, budget_tokens)) == 10


def test_what_several_runs_of_a_command_printed_stands_apart_with_how_each_ended() -> None:
    def run(said: str, **fields: bool) -> tuple[Message, Message]:
        return ran("make gauges", f"{said} of the gauge_{said}_table\n{said}_lines were written to the table", **fields)

    edit = call("Edit", "e", file_path="gauge.py", old_string="a", new_string="b"), answer("ok", "e")
    runs = run("header", is_error=True), edit, run("footer", is_error=True), edit, run("column")
    one = digest(conversation(user("build the tables of the gauges"), *runs, says("Built."), user("thanks")), 3_000)
    lines = [text for text in texts(one, Section.HISTORY) if text.startswith("`make gauges`")]
    assert all(sum(word in text for word in ("header", "footer", "column")) == 1 for text in lines)
    assert all(text.startswith(f"`make gauges` → {'ok' if 'column' in text else 'failed'}: ") for text in lines)
    assert len(lines) > 1


def _looked_at() -> Transcript:
    body = [f"    level_{n} = gauges[{n}].read(clock_{n}, tide_{n})" for n in range(300)]
    lines = [*body[:150], "def ring_the_bell(gate: Gate, hours: int) -> bool:", *body[150:]]
    lines[250:250] = ["    delay = 1000  # not before the lantern is lit"]
    files = [
        (call("Read", str(n), file_path=f"src/part_{n}.py"), answer("\n".join(lines[n * 50 : n * 50 + 50]), str(n)))
        for n in range(6)
    ]
    return conversation(user("When is the lantern lit?"), *files, says("I have read all parts."))


def test_lines_of_what_was_only_looked_at_take_no_more_than_half_and_the_rest_stays_unused() -> None:
    session = _looked_at()
    shown = [one for one in texts(digest(session, 1_500), Section.HISTORY) if one.startswith("part_")]
    assert 0 < count("\n".join(shown)) <= 0.52 * 1_500


def test_of_what_was_only_looked_at_declarations_and_what_the_request_names_come_first() -> None:
    shown = rendered(digest(_looked_at(), 700).summary)
    assert "def ring_the_bell(gate: Gate, hours: int) -> bool:" in shown
    assert "delay = 1000  # not before the lantern is lit" in shown


def test_the_head_of_a_test_run_is_no_statement() -> None:
    head = "platform tide -- gauge-8.4.0\nplugins: harbour-3.7.0, lantern-4.9.0\ncollected 2 items\n"
    old = f"{head}E   KeyError: 'ebb_of_the_second_gauge'\ntest_b FAILED\n1 failed, 1 passed in 2s"
    session = conversation(
        user("test it"),
        ran("pytest test_clock.py", old, is_error=True),
        (call("Edit", "9", file_path="src/clock.py", old_string="a = 1", new_string="a = 2"), answer("ok", "9")),
        ran("pytest test_clock.py", f"{head}2 passed in 2s"),
        says("Passed."),
    )
    shown = "\n".join(texts(digest(session, 1_500), Section.HISTORY))
    assert "lantern-4.9.0" not in shown


def test_a_question_back_is_not_stated_as_the_answer_to_a_question() -> None:
    asked = says("The lock could stand in the loader. Shall I move the lock into the loader of the gauges?")
    explained = says("The lock stands in the store, since the importer takes it before the first reading is read.")
    edited = (call("Edit", "e", file_path="src/gauge.py", old_string="a", new_string="b"), answer("ok", "e"))
    more = (
        user("keep it there and write the page of the harbour"),
        edited,
        says("The page of the harbour is written."),
    )
    session = conversation(user("why twice?"), asked, user("where is it now?"), explained, *more, *more)
    assert any(text.startswith("Asked: where is it now?") for text in texts(digest(session, 1_500), Section.HISTORY))


def test_lines_by_which_an_edit_found_its_place_are_none_that_it_wrote() -> None:
    old = "class GaugeReader(Reader):\n    limit_of_readings = 3"
    new = f"{old}\n    limit_of_gauges = 7"
    edited = (call("Edit", "e", file_path="src/gauge.py", old_string=old, new_string=new), answer("ok", "e"))
    found = read(user("limit the gauges of a GaugeReader"), *edited, says("The limit_of_gauges is 7."))
    written = [one.text for one in candidates_of(found, 2_000) if one.label.endswith("gauge.py")]
    assert "limit_of_gauges = 7" in written
    assert "class GaugeReader(Reader):" not in written


def test_the_rules_of_a_project_that_a_client_sends_are_no_output() -> None:
    rules = "# AGENTS.md instructions for /data/app\n\nNever edit `harbour/tide_table.py` by hand: `make tide-table`."
    one = digest(conversation(user("set the clock"), user(rules), says("I look at harbour/tide_table.py.")), 3_000)
    assert not any("by hand" in text for text in texts(one, Section.HISTORY))


def test_a_rule_out_of_the_middle_of_a_long_request_does_not_stand_for_it() -> None:
    entries = "\n".join(f"- the gauge of harbour {n} is read by the wheel at {n} o'clock" for n in range(40))
    style = f"## Style\n\n- Don't complain about the old wheel if it turns.\n{entries}"
    asked = user(f"You are a reviewer of gauges.\n\n## What to do\n\nReview the gauges.\n{entries}\n\n{style}")
    found = [says(f"The gauge {n} reads `lock_{n}` without a key, so that the wheel turns twice.") for n in range(12)]
    looked = [one for n in range(12) for one in (*ran(f"cat a{n}.py", f"return store.lock_{n}"), found[n])]
    one = digest(conversation(asked, *looked, says("Done.")), 1_500)
    assert texts(one, Section.USER) == ["Don't complain about the old wheel if it turns."]
    assert texts(one, Section.HISTORY)[0].startswith("Asked: What to do")


def test_the_end_of_a_sentence_around_code_does_not_stand_alone() -> None:
    around = "For the wheel today:\n\n```yaml\ngauge: north\n```\n\nwithout additional work of the harbour."
    told = says(f"{around} `wheel.turn()` is old and slow.")
    session = (user("can the wheel use it?"), *ran("cat clock.py", "x = 1"), told, user("and the page?"), says("No."))
    shown = rendered(digest(conversation(*session), 2_000).summary)
    assert "`wheel.turn()` is old and slow." in shown
    assert "without additional work" not in shown


def test_what_a_check_printed_that_passed_is_left_out_and_one_that_failed_says_so() -> None:
    lines = "gauge_table of the harbour was read\ngauge_table of the river was read"
    passed, failed = ran("make test", f"{lines}\nok"), ran("make test", f"{lines}\nharbour_drift failed", is_error=True)
    named = user("what of harbour_drift and of the gauge_table?"), says("So."), user("thanks")
    shown = texts(digest(conversation(user("test it"), passed, named), 3_000), Section.HISTORY)
    assert not any("gauge_table of" in text for text in shown)
    shown = texts(digest(conversation(user("test it"), failed, named), 3_000), Section.HISTORY)
    assert any(text.startswith("`make test` → failed: ") for text in shown)
    linted = ran("make test && make lint", f"{lines}\nFound 1 error.", is_error=True)
    shown = texts(digest(conversation(user("test it"), linted, named), 3_000), Section.HISTORY)
    assert any(text.startswith("`make test && make lint` → failed (Found 1 error.): gauge_table") for text in shown)


def test_a_request_that_is_named_by_its_beginning_says_that_it_goes_on() -> None:
    asked = "do they have pages of their own for wishes in these places? or can we make one of them ourselves?"
    told, edit = says("They have some. " * 20), call("Edit", "e", file_path="a.py", old_string="a", new_string="b")
    session = conversation(user(asked), told, user("write one of them"), edit, answer("ok", "e"), says("Written."))
    assert "Asked: do they have pages of their own for wishes in these places? … →" in rendered(
        digest(session, 2_000).summary
    )


def test_code_in_two_reports_of_other_agents_stays_code() -> None:
    def report(number: int) -> tuple[Message, Message]:
        text = f"## Form {number}\n\n```yaml\nvalue: |\n  # Thanks for form {number}\n  Read it first {number}.\n```\n"
        return call("Task", f"t{number}", description="look"), answer(
            text + f"Form {number} is short. " * 30, f"t{number}"
        )

    found = read(user("what forms are there?"), report(1), report(2), says("Two forms."))
    heads = {one.lead for one in candidates_of(found, 2_000)}
    assert not any("Thanks for form" in lead for lead in heads)


def test_what_was_thought_of_a_failed_run_and_what_a_command_sent_do_not_end_as_it_did() -> None:
    reason = "The drift of harbour_clock is read before the gauge_table is there, so that it is always zero."
    failed = ran("make test", "harbour_drift failed\ngauge_table was not there", is_error=True)
    commit = ran('git commit -m "Read the gauge_table before harbour_clock"', "[main 12ab34c] Read the gauge_table")
    found = conversation(user("test it"), failed, thinks(reason), *ran("make test", "1 failed"), commit, user("on"))
    lines = texts(digest(found, 3_000), Section.HISTORY)
    assert not any(line.startswith("thought → ") for line in lines)
    assert not any(line.startswith("`git commit` → ok: Read the gauge_table before") for line in lines)


def test_what_stands_before_a_line_that_introduces_a_call_is_kept() -> None:
    found = says("The file of the clock uses tabs. Let me use Python to do the replacement:")
    shown = rendered(
        digest(conversation(user("add the gauge"), found, *ran("python3 fix.py", "ok"), says("Done."))).summary
    )
    assert "The file of the clock uses tabs." in shown
    assert "Let me use Python" not in shown


@pytest.mark.parametrize(
    "sentence",
    [
        "The remaining gauges (north, south) are broader scope than what this task of the harbour asked.",
        "One more gap surfaced in the recovery: the export needs a `ref` input of its own.",
        "After merging the clock, push a new tag to deploy the harbour again.",
        "Fix adds a migration of the gauges, which runs before the index of the harbour.",
        "I'm going to make the tracked settings fail closed: the shared file keeps the gauge but disables the export.",
    ],
)
def test_what_begins_like_an_announcement_and_states_something_is_kept(sentence: str) -> None:
    step = (says(sentence), *ran("ls", "clock.py"))
    assert sentence in rendered(digest(conversation(user("look at the clock"), *step, says("Done."))).summary)


@pytest.mark.parametrize(
    ("question", "are_kept"), [("Want me to fix these?", True), ("Which one should I fix?", False)]
)
def test_findings_below_which_the_agent_offers_to_mend_them_are_no_options(question: str, *, are_kept: bool) -> None:
    listed = "1. `clock.py:30` never resets the drift of the tide\n2. `gauge.py:12` reads the buoy twice a minute"
    one = digest(
        conversation(
            user("review it"),
            says(f"Two comments:\n\n{listed}\n\n{question}"),
            user("1"),
            *ran("ls", "clock.py"),
            says("Done."),
        )
    )
    history = "\n".join(texts(one, Section.HISTORY))
    assert ("reads the buoy twice" in history) == are_kept


def test_what_stands_below_a_question_that_the_agent_answers_itself_is_kept_when_the_user_goes_on() -> None:
    found = says(f"**Can the harbour adopt this?**\n\n{SENTENCES[2]}")
    assert SENTENCES[2] in rendered(
        digest(conversation(user("compare them"), found, user("thanks, and the wind?"))).summary
    )


def test_the_steps_of_a_flow_far_above_a_question_are_no_options() -> None:
    flow = (
        "1. The buoy signs each reading with the key of its harbour\n2. The store derives the hour from the signature"
    )
    rest = "\n\n".join(f"The {one} of the harbour change with that as well." for one in ("gauges", "exports", "logs"))
    asked = says(f"So the flow would be:\n\n{flow}\n\n{rest}\n\nShould it be a release of its own or part of this one?")
    one = digest(
        conversation(user("how would it work?"), asked, user("of its own"), *ran("ls", "clock.py"), says("Done."))
    )
    assert "derives the hour from the signature" in "\n".join(texts(one, Section.HISTORY))


def test_what_was_wrong_goes_before_what_else_was_found() -> None:
    cause = "The root cause is the export of the gauge, which never resets the hour of the clock."
    other = "The tables are read by the store of the harbour, which also writes the logs of the day."
    found = read(user("why?"), says(f"{other} {cause}"), *ran("ls", "clock.py"), says("Done."))
    assert cause in {one.text for one in chosen(found, 40)}
    assert other not in {one.text for one in chosen(found, 40)}


def test_no_line_out_of_the_middle_of_code_that_was_read_is_shown_unless_the_work_is_about_it() -> None:
    body = "\n".join(f"    level_{number} = readings[{number}].level" for number in range(12))
    file = f'def load_levels():\n    """Reads the levels of the gauge."""\n{body}\n    return level_1'
    session = conversation(user("why is it late?"), *ran("cat store.py", file), says("It reads one level too many."))
    read, focused = (rendered(digest(session, 1_000, focus=about).summary) for about in ("", "level_3"))
    assert "def load_levels():" in read
    assert ("readings[3].level" in read, "readings[3].level" in focused) == (False, True)


def test_how_an_element_looks_older_commits_and_the_head_of_a_status_tell_nothing() -> None:
    page = '<div className="harbour_gauge absolute">\nconst TITLE = "the harbour_gauge is read hourly"'
    made = call("Write", "w", file_path="page.tsx", content=page), answer("ok", "w")
    log = "1a2b3c4 Read the harbour_gauge\n5d6e7f8 Set the harbour_gauge back\n9a8b7c6 Open the harbour_gauge"
    status = "To https://tide.example/harbour.git\n## main...origin/main\n?? harbour_gauge.txt"
    looks = *ran("git log --oneline -3", log), *ran("git push && git status --short --branch", status)
    one = digest(conversation(user("show the harbour_gauge"), made, *looks, says("Shown.")), 1_200)
    text = "\n".join(texts(one, Section.HISTORY))
    assert "is read hourly" in text
    assert not any(part in text for part in ("<div", "5d6e7f8", "## main..."))


def test_the_code_that_a_runner_shows_around_a_failure_is_not_quoted() -> None:
    output = (
        "316 |   const mockManager = createMockManager({\n317 |     submitGauge: true\n(fail) the gauge resends\n1 fail"
        "\n316 318 │   \tlimit: 4,\nRequire stack:\n- /opt/node/lib/gauge/cli.js"
        "\n    at Object.<anonymous> (/opt/node/node_modules/gauge/cli.js:2:18)"
    )
    one = digest(
        conversation(user("mend the gauge"), *ran("bun test", output, is_error=True), says("createMockManager."))
    )
    shown = "\n".join(texts(one, Section.HISTORY))
    assert not any(part in shown for part in ("316 |", "316 318", "cli.js"))


def test_lines_of_one_answer_stand_in_its_order_and_apart_where_others_are_left_out() -> None:
    first = "the gauge\n  low is gauge_low\n  high is gauge_high\n  limit is 4"
    again = "the gauge\n  offset is gauge_offset\n  low is gauge_low\n  high is gauge_high\n  zero is gauge_zero"
    found = read(user("how?"), *ran("cat old_gauge.md", first), *ran("cat gauge.md", again))
    lines = [one for one in candidates_of(found, 4_000) if "gauge.md" in one.label and one.label != "old_gauge.md"]
    of_new = sorted((one for one in lines if one.event == lines[-1].event), key=lambda one: one.place)
    texts_ = [one.text for one in of_new]
    assert texts_ == [line.strip() for line in again.split("\n") if line.strip() in texts_]
    ends = [one for one in of_new if one.text in ("offset is gauge_offset", "zero is gauge_zero")]
    assert running_text(ends, {}) == "offset is gauge_offset … zero is gauge_zero"


def test_lines_of_two_looks_at_a_file_are_never_shown_as_neighbours() -> None:
    one = Statement("low = 1", 1, 0, StatementForm.LOOKED)
    assert running_text([one, one._replace(text="high = 2", event=3, place=1)], {}) == "low = 1 … high = 2"
    assert running_text([one, one._replace(text="high = 2", place=1)], {}) == "low = 1 · high = 2"


def test_what_is_suggested_after_a_list_of_causes_stands_under_none_of_them() -> None:
    text = "### 2. The gauge\nIt may be old.\n\n**What I'd suggest next:**\n- Look at the clock"
    assert [(piece, lead) for piece, _, lead in statements_of(text)][-1] == (
        "Look at the clock",
        "What I'd suggest next:",
    )


def test_of_a_report_that_found_nothing_only_that_is_told() -> None:
    missing = "I cannot extract the limits of the gauge from the provided content."
    advice = " ".join(f"To obtain limit {n}, visit the page of gauge_{n} and read its table." for n in range(12))
    asked = call("WebFetch", "w", url="https://example.org/gauges", prompt="limits?")
    found = read(user("how?"), asked, answer(f"{missing}\n\nWhat you need: {advice}", "w"))
    reported = [one.text for one in candidates_of(found, 2_000)]
    assert missing in reported
    assert not any("To obtain" in text for text in reported)


def test_a_question_that_the_assistant_went_on_without_an_answer_to_counts_little() -> None:
    asks = "Could you describe which of the gauges of the harbour shows the wrong tide in the evening?"
    on = [says(asks), *ran("cat gauge.py", "low = 1"), says("The gauge of the harbour takes the wrong offset.")]
    weights = {one.text: one.weight for one in candidates_of(read(user("look"), *on), 2_000)}
    assert weights[asks] < weights["The gauge of the harbour takes the wrong offset."] / 3


def test_a_check_that_passed_and_a_wrong_call_are_no_lines_of_what_happened() -> None:
    passed = ran("ruff check gauge.py", "All checks passed for gauge.py")
    wrong = ran("cat -A gauge.py", "cat: illegal option -- A\nusage: cat [-belnstuv] [file ...] gauge")
    looked = ran("git rev-parse gauge", "4f1c2aa gauge")
    found = [one.text for one in candidates_of(read(user("how?"), *passed, *wrong, *looked), 2_000)]
    assert "4f1c2aa gauge" in found
    assert not any("passed" in text or "option" in text or "usage" in text for text in found)


def test_what_the_user_could_choose_from_is_not_told_beside_the_choice() -> None:
    options = [
        {"label": "The early boat", "description": "leaves at six"},
        {"label": "The late boat", "description": "waits"},
    ]
    asked = [{"question": "Which boat shall be booked?", "options": options}]
    chosen = 'User has answered your questions: "Which boat shall be booked?"="You decide". You can now go.'
    choice = call("AskUserQuestion", "1", questions=asked), answer(chosen, "1")
    looked_up = call("get_boats", "2", harbour="Tide"), answer('{"boats": ["early", "late"]}', "2")
    found = read(user("book a boat for me, please"), *looked_up, *choice, says("Which seat would you like?"))
    assert found.is_dialogue
    assert not any("leaves at six" in one.text for one in candidates_of(found, 4_000))


def test_an_entry_below_what_was_left_out_does_not_stand_right_under_the_heading() -> None:
    text = (
        "## Levels\n\n4. The gauge reads:\n   - the low one\n   - the high one\n\n5. The clock is kept.\n\nIt is all."
    )
    found = [*statements_of(text)]
    opens = {piece: opens for (piece, *_), (opens, _) in zip(found, list_ends(found), strict=True)}
    assert [opens[piece] for piece in ("the low one", "5. The clock is kept.")] == [True, False]


def test_what_a_thought_finds_amiss_is_told_while_the_turn_goes_on_and_left_to_its_last_message_then() -> None:
    found = "The comment of the clock is wrong, it reads in local time."
    thought = thinks(f"I read the gauge. {found} Let me go on with the crane of the harbour.")
    work = (
        user("review the gauge"),
        thought,
        *ran("cat gauge.py", "x"),
        says("Let me look at the crane."),
        *ran("ls", ""),
    )
    going_on = "\n".join(texts(digest(conversation(*work), 900), Section.HISTORY))
    assert f"thought: {found}" in going_on
    assert "go on with the crane" not in going_on
    done = says("I have read it all: the gauge and the crane work as the plan says, and nothing is left open. " * 3)
    assert found not in "\n".join(texts(digest(conversation(*work, done), 900), Section.HISTORY))


def test_the_wrapped_lines_of_a_commits_message_are_read_as_sentences() -> None:
    message = (
        "Install the tide app\n\nIt is free, so no unfree\nallowlist entry needed. The store_table\nstays as it is."
    )
    session = conversation(
        user("install it"), *ran(f'git commit -m "{message}"', "[main 12ab34c] Install the tide app")
    )
    (shown,) = (text for text in texts(digest(session, 1_500), Section.HISTORY) if "allowlist" in text)
    assert "It is free, so no unfree allowlist entry needed." in shown


def test_a_turn_is_opened_by_what_the_user_says_and_not_by_what_he_quotes() -> None:
    quoted = user("> it would have landed unseen\n\nActually, each lands by a pull request, which is reviewed first.")
    seen = says("Each is reviewed where it lands, since the store_table is written by a pull request alone.")
    asked = user("show the gauges of both harbours next to one another")
    session = conversation(asked, says("It would have landed unseen."), quoted, seen, user("now the clock, please"))
    opened = analyse(request(session)).turns
    assert opened[1].asked == "Actually, each lands by a pull request, which is reviewed first."


@pytest.mark.parametrize(
    ("form", "first", "second"),
    [
        (StatementForm.SENTENCE, "One thing is to change.", "Its cost is the harbour_clock of each store_table."),
        (StatementForm.ITEM, "1. It is late.", "2. The harbour_clock of each store_table is read twice."),
    ],
)
def test_what_stands_under_a_heading_or_a_number_is_read_with_what_opens_it(
    form: StatementForm, first: str, second: str
) -> None:
    found = read(user("mend the store"), says(f"The harbour_clock of the store_table is lost. {second}"))
    opens, other = (
        Statement(text, 1, place, form, "To do", opens=not place) for place, text in enumerate((first, second))
    )
    room = 2 + sum(count(text) + 1 for text in (first, second, "To do")) + ITEM_TOKENS
    for tokens, taken in ((room, [opens, other]), (room - 4, [])):
        assert [
            one for one in Choice([opens, other], (), found.worth, count).choose(tokens) if one is not opens
        ] == taken[1:]
    assert Choice([other], (), found.worth, count).choose(room - 4) == [other]


def test_a_line_that_differs_in_its_numbers_alone_is_quoted_of_one_run_and_what_node_warns_of_not_at_all() -> None:
    runs = []
    for n in (18312, 20105, 21142):
        warned = (
            f"(node:{n}) [MODULE_TYPELESS_PACKAGE_JSON] Warning: Module type of file:///tide/{n}.ts is not specified"
        )
        runs += [
            *ran("pnpm fix | tail -3", f"Finished in {n}ms on 183 tide_files using 8 threads.\n{warned}"),
            says("On."),
        ]
    one = digest(conversation(user("fix the tide_files"), *runs), 2_500)
    assert " ".join(texts(one, Section.HISTORY)).count("using 8 threads") == 1
    assert "MODULE_TYPELESS" not in rendered(one.summary)


@pytest.mark.parametrize(
    "pointing", ["Neither harbour reads the drift.", "Two further gauges drift.", "Either way the harbour reads it."]
)
def test_a_sentence_that_points_back_is_read_with_the_one_before_it(pointing: str) -> None:
    found = read(says(" ".join((*SENTENCES[:1], "Neither of the harbours reads it that way any more."))))
    first, back = (Statement(text, 1, place) for place, text in enumerate(("The clock drifts.", pointing)))
    room = count(first.text) + count(back.text) + 2 + ITEM_TOKENS
    assert Choice([first, back], (), found.worth, count).choose(room) == [first, back]
    assert back not in Choice([first, back], (), found.worth, count).choose(room - 2)


def test_what_is_said_after_a_remark_during_the_work_stands_under_the_request_that_was_under_way() -> None:
    remark = replace(user("The page of it is https://tide.example/a/b/pull/7"), interjects=True)
    words = says("The north gauge drifts by two seconds a day, since its clock has no battery. " * 3)
    asked = user("look into the drift of the north gauge"), says("Let me look."), *ran("ls", "a"), remark, words
    later = user("and how is the store of the readings sorted?"), says("It is sorted by the hour of the reading. " * 6)
    one = digest(conversation(*asked, *later, user("now mend the sluice of the lock")), 3_000)
    history = texts(one, Section.HISTORY)
    at = next(n for n, text in enumerate(history) if "no battery" in text)
    assert "look into the drift" in history[at - 1]


def test_a_long_address_is_named_by_its_end() -> None:
    address = f"https://raw.tide.example/{'harbour/' * 12}gauge/tide_clock.py"
    found = read(user("read it"), call("WebFetch", "w", url=address, prompt="what?"), answer("It drifts.", "w"))
    assert found.labels[2].text.endswith("harbour/gauge/tide_clock.py")


def test_what_is_said_after_an_answer_to_a_tool_stands_under_what_the_user_asked() -> None:
    asked = call("AskUserQuestion", "1", questions=[{"question": "Which gauge is meant, north or south?"}])
    words = says("The north gauge drifts by two seconds a day, since its clock has no battery. " * 3)
    first = user("look into the drift of the gauges"), asked, answer("the one in the north", "1"), words
    later = user("and how is the store of the readings sorted?"), says("It is sorted by the hour of the reading. " * 6)
    history = texts(digest(conversation(*first, *later, user("mend the sluice")), 3_000), Section.HISTORY)
    at = next(n for n, text in enumerate(history) if "no battery" in text)
    assert "look into the drift" in history[at - 1]


def test_an_ellipsis_stands_before_a_line_without_a_heading_and_before_a_number_whose_entries_are_left_out() -> None:
    one = Statement("The drift is 0.", 1, 0, lead="Harbours")
    assert running_text([one, one._replace(text="It is late.", place=1, lead="")], {}).endswith("\nIt is late.")
    assert running_text([one, one._replace(text="It is late.", place=4, lead="")], {}).endswith("\n… It is late.")
    reasons = [one._replace(text=text, lead=f"Two reasons:\n{lead}", place=place) for text, lead, place in (
        ("The clock drifts.", "**1. Time:**", 1), ("The lock leaks.", "**2. Water:**", 3),
    )]  # fmt: skip
    assert running_text(reasons, {}) == "Two reasons: **1. Time:** The clock drifts.\n**2. Water:** The lock leaks."
    assert running_text(reasons[1:], {}) == "Two reasons: … **2. Water:** The lock leaks."


@pytest.mark.parametrize("line", ["git status && git diff --stat", "git diff --cached --stat"])
def test_what_git_listed_before_a_commit_is_not_quoted_after_it(line: str) -> None:
    edit = call("Edit", "e", file_path="gauge_store.py", old_string="a", new_string="b"), answer("ok", "e")
    status = ran(line, "modified: gauge_store.py\n gauge_store.py | 2 +- for tide_export")
    commit = ran("git commit -am 'Mend gauge_store'", "[utc 4f1c2aa] Mend gauge_store\n 1 file changed")
    asked = user("mend gauge_store for tide_export"), *edit, *status

    def quoted(*more: Message) -> bool:
        return any("2 +- for tide_export" in one.text for one in candidates_of(read(*asked, *more), 900))

    assert (quoted(), quoted(*commit)) == (True, False)


def test_a_few_plain_words_on_a_step_that_went_on_are_left_out_unless_they_name_something() -> None:
    steps = ("Loop runs.", "relay.py counts twice. No syntax error.", "The gauge_station is silent.")
    spoken = [one for words in steps for one in (says(words), *ran("make relay", "ok"))]
    found = read(user("why is the relay late?"), *spoken, says("Done."), user("go on"))
    taken = [one.text for one in chosen(found, 400)]
    assert taken == ["relay.py counts twice.", "The gauge_station is silent."]


def test_what_was_announced_or_awaited_gives_way_to_the_report_that_ends_the_turn() -> None:
    how = "I'm going to make the shared file fail closed: it keeps the relay on and sends no readings by itself."
    waits = "The relay is merged, but two of its checks are still pending on the server of the harbour."
    found = "The relay of the north gauge sends every reading twice."
    report = f"{found} It is mended: a reading that is known by its clock is not stored again, and both agree. " * 3
    steps = says(f"{how}\n\n{waits}"), *ran("make", "ok"), says(report), user("go on")
    taken = [one.text for one in chosen(read(user("fix the relay"), *steps), 400)]
    assert not {how, waits} & {*taken}
    assert found in taken


def test_a_part_of_a_comment_that_was_read_is_not_shown() -> None:
    file = "// reads the level of the harbour_gauge and\n// The harbour_gauge is read hourly.\nconst rate = 3"
    one = digest(conversation(user("how?"), *ran("cat gauge.ts", file), says("As the file says.")), 1_500)
    text = "\n".join(texts(one, Section.HISTORY))
    assert "The harbour_gauge is read hourly." in text
    assert "and" not in text.partition("gauge.ts: ")[2].split()


def test_a_sentence_about_the_one_before_stands_with_it() -> None:
    before = "The relay of the north gauge is read by `harbour_relay`."
    it = "It sends every reading_row twice after the clock was set back, as `clock_drift` shows."
    session = user("why twice?"), says(f"{before} {it}\n\nThe gauges are old. The quay is not."), user("go on")
    for tokens in range(20, 120, 10):
        taken = {one.text for one in chosen(read(*session), tokens)}
        assert before in taken or it not in taken


def test_of_a_file_that_was_read_in_part_the_lines_are_named() -> None:
    def look(**given: object) -> list[str]:
        text = "The harbour_gauge is read hourly.\nThe quay is old.\nThe pier is new.\nThe lock opens at noon."
        read = call("Read", "r", file_path="gauge.md", **given), answer(text, "r")
        return texts(digest(conversation(user("how?"), *read, says("As it says.")), 900), Section.HISTORY)

    assert any("read gauge.md:58-102: The harbour_gauge" in text for text in look(offset=58, limit=45))
    assert any("read gauge.md:3-7: The harbour_gauge" in text for text in look(start_line=3, end_line=7))
    assert any("read gauge.md: The harbour_gauge" in text for text in look())


def test_a_question_that_a_tool_asked_is_settled_and_tells_nothing_more() -> None:
    known = "The `store.py` of the pier holds the levels of two gauges, and that of the harbour those of one, `north`. "
    more = "The gauge `north` of the harbour drifts at night, as `drift.py` shows, and no store holds its levels. "
    question = f"{known}{more}Which store shall hold them?"
    asked = call("AskUserQuestion", "1", questions=[{"question": question, "options": []}])
    reply = answer(f'User has answered your questions: "{question}"="The store of the pier".', "1")
    later = says("I use that store."), user("describe the gates in the handbook"), *ran("make", "ok")
    one = digest(conversation(user("store the levels"), asked, reply, *later), 2_000)
    assert "drifts at night" not in "".join(texts(one, Section.HISTORY))
    assert any("The store of the pier" in text for text in texts(one, Section.DECISIONS))


def test_a_plan_that_was_read_before_it_was_written_anew_is_not_told() -> None:
    old = "# Gauges\n\nThe old gauges are read by hand at noon.\n\n## Steps\n" + "- Read each gauge of the pier.\n" * 9
    read_plan = call("Read", "r", file_path="docs/plans/gauges.md"), answer(old, "r")
    write = call("Write", "w", file_path="docs/plans/gauges.md", content="# Gauges\n\nBy radio."), answer("ok", "w")
    asked = user("plan the gauges")
    assert "by hand at noon" in rendered(digest(conversation(asked, read_plan, says("Read.")), 900).summary)
    assert "by hand at noon" not in rendered(digest(conversation(asked, read_plan, write), 900).summary)


def test_an_answer_that_now_quotes_is_not_told_again_with_less_of_it() -> None:
    parts = {
        f"gauge_{n}": f"the level of the gauge {n} rises by {n} feet at noon, as the tide_{n} does" for n in range(14)
    }
    asked = user("Answer with a JSON object of what each gauge does."), *ran("cat gauges.py", "gauges = 14")
    one = digest(conversation(*asked, says(json.dumps(parts))), 2_000)
    assert any("gauge_13" in text for text in texts(one, Section.TASK))
    assert not any("gauge_3" in text for text in texts(one, Section.HISTORY))
