"""The choice of statements: nothing twice, outcomes before announcements, and the budget holds."""

from __future__ import annotations

from conversation import answer, call, conversation, count, digest, ran, rendered, request, says, texts, user
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_cli.digest.analysis import Analysis, analyse
from compactor_cli.digest.choice import ITEM_TOKENS, Choice, candidates_of
from compactor_cli.digest.history import history_items, running_text
from compactor_cli.digest.statements import Statement, StatementForm, statements_of
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message

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


def test_of_a_great_many_reports_only_the_newest_are_weighed() -> None:
    report = "Gauge CAS-{} resends three lines after a reconnect, because its clock drifts. " * 8
    calls = ((call("Task", str(n), prompt="look"), answer(report.format(*[n] * 8), str(n))) for n in range(200))
    found = read(*(message for pair in calls for message in pair))
    told = {one.event for one in candidates_of(found, 40) if one.form is not StatementForm.OUTPUT}
    assert told
    assert min(told) > len(found.events) // 2


def test_what_the_rest_of_the_summary_says_is_not_chosen() -> None:
    found = read(user("why?"), says(SENTENCES[0]), says(SENTENCES[3]))
    assert [one.text for one in chosen(found, 100, (SENTENCES[0],))] == [SENTENCES[3]]


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
        Statement(text=text, event=1, place=place, form=form, lead=lead, record=1)
        for place, (text, form, lead) in enumerate(statements_of(FOUND))
    ]
    return history_items(analysis, [pieces[place] for place in places], {}, {}, with_names=False)[0].text


def test_an_entry_stands_under_the_entry_it_belongs_to_even_where_that_one_was_not_chosen() -> None:
    shown_text = "1. You committed 43c285d: with two sessions\n2. You did a reset to 82b4027: it undid the commit"
    assert told(1, 3) == shown_text


def test_an_entry_that_was_chosen_is_not_stated_again_above_what_it_leads() -> None:
    assert told(0, 1, 2, 4) == (
        "What happened: 1. You committed 43c285d · with two sessions\n"
        "2. You did a reset to 82b4027 … the branches stayed"
    )


def test_an_ellipsis_stands_for_the_entries_of_a_list_that_are_left_out() -> None:
    assert told(0, 5) == "What happened: 1. You committed 43c285d … 3. You committed again"


def test_the_steps_of_a_build_are_stated_by_its_end_and_not_one_by_one() -> None:
    steps = "\n".join(f"   Compiling gauge-{name} v0.1.{len(name)}" for name in ("clock", "export", "console"))
    built = ran("cargo build --bin gauge-clock", f"{steps}\n    Finished `dev` profile [optimized] in 9.12s")
    shown_text = rendered(digest(conversation(user("does gauge-clock build?"), built), 2_000).summary)
    assert "Compiling" not in shown_text
    assert "Finished `dev` profile" in shown_text


def test_of_the_options_of_a_question_none_stands_alone_in_the_history() -> None:
    offer = (
        "The gauges overlap since both write at once.\n\nTwo ways:\nA) a lock on the table of the gauges\n"
        "B) one run for each gauge of the harbour\n\nWhich one?"
    )
    found = read(user("two gauges at once?"), says(offer), user("B"), says("Each gauge has a run now."))
    shown_text = " ".join(one.text for one in chosen(found, 2_000))
    assert "both write at once" in shown_text
    assert "a lock on the table" not in shown_text
    assert "one run for each gauge" not in shown_text


def test_an_ellipsis_stands_for_sentences_that_are_left_out_between_two() -> None:
    first, left_out, last = (Statement(f"The drift is {n}.", event=0, place=n) for n in range(3))
    assert running_text([first, left_out], {}) == "The drift is 0. The drift is 1."
    assert running_text([first, last], {}) == "The drift is 0. … The drift is 2."


def test_imports_and_the_frame_of_a_diff_tell_nothing() -> None:
    shown = (
        call("Read", "r", file_path="tide.go"),
        answer('import (\n\t"harbour/gauge_store"\n)\nfunc gauge_store_level() int', "r"),
    )
    diff = ran(
        "git diff", "diff --git a/tide.go b/tide.go\nindex df72094f..64004dd5 100644\n@@ -1 +1 @@ gauge_store_level"
    )
    found = "\n".join(one.text for one in candidates_of(read(user("mend gauge_store_level"), *shown, *diff), 500))
    assert "func gauge_store_level() int" in found
    assert not any(scrap in found for scrap in ("harbour/gauge_store", "diff --git", "df72094f", "@@"))


def test_what_was_proposed_loses_against_what_was_done() -> None:
    def weight(lead: str, *after: Message) -> float:
        said = says(f"{lead}:\n- the tide table is read once a day from the harbour's own server")
        found = candidates_of(read(user("why is it slow?"), said, *after), 500)
        return next(one.weight for one in found if one.text.startswith("the tide table"))

    more = (user("and now the gate"), says("It opens."))
    assert weight("I would suggest this", *more) < weight("These are done", *more)
    assert weight("I would suggest this") == weight("These are done")


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
    assert "Store gauge 1039" in shown
