"""Settled: what was decided, with its reason and what was given up; what the user overturned is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conversation import answer, call, conversation, digest, events_of, ran, rendered, says, texts, user

from compactor_cli.digest.corrections import overturned
from compactor_cli.digest.decisions import decisions, outline
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message


def decided(*messages: object) -> list[str]:
    found = events_of(*messages)  # type: ignore[arg-type]
    return [one.whole for one in decisions(found, overturned(found))]


def test_a_sentence_with_a_cue_is_quoted_whole_without_markup() -> None:
    assert decided(
        says("## Plan\n- **We use SQLite instead of files** because two writers would clash. Then I read the code."),
        says("```\n# because this is code\n```\nNothing here."),
    ) == ["We use SQLite instead of files because two writers would clash."]


def test_chinese_and_japanese_cues() -> None:
    assert decided(says("我决定改用 SQLite,因为文件会冲突。接下来看代码。")) == ["我决定改用 SQLite,因为文件会冲突。"]
    asked = says("用文件还是 SQLite\uff1f")
    assert decided(asked, user("SQLite")) == ['用文件还是 SQLite\uff1f → "SQLite"']
    assert decided(says("速度のためSQLiteを採用します。次に進みます。")) == ["速度のためSQLiteを採用します。"]


def test_what_the_user_chose_when_asked_counts_most() -> None:
    stores = [{"label": "SQLite", "description": "one file"}, {"label": "Files", "description": "no index"}]
    asked = [{"question": "Which store shall hold the readings?", "options": stores}]
    found = events_of(
        call("AskUserQuestion", "1", questions=asked),
        answer(
            'User has answered your questions: "Which store shall hold the readings?"="SQLite". You can now go.', "1"
        ),
    )
    (decision,) = decisions(found)
    assert (decision.weight, decision.given_up) == (4.0, ("Files",))
    assert decision.whole == 'Which store shall hold the readings? → "SQLite": one file'


def test_the_users_own_words_to_a_question_that_a_tool_asked_settle_it() -> None:
    asked = call("AskUserQuestion", "1", questions=[{"question": "Is the phase worth a field of its own?"}])
    reply = "make it explicit, but condense when it goes idle"
    assert decided(asked, answer(reply, "1")) == [f'Is the phase worth a field of its own? → "{reply}"']
    assert decided(says("Is the phase worth a field of its own?"), user(reply)) == []
    (own,) = decisions(events_of(asked, answer(reply, "1")))
    assert own.weight > 4.0  # an option that was taken


def test_what_the_user_answered_to_a_tool_stands_once_with_the_question_and_asks_for_nothing_new() -> None:
    question = "Is the phase of the gauge worth a field of its own, or can the console infer it from the tide?"
    reply = (
        "please make it explicit, but condense the readings of the night as soon as the gauge goes idle at the harbour"
    )
    asked = call("AskUserQuestion", "1", questions=[{"question": question}]), answer(reply, "1")
    edits = [
        (call("Edit", file_path=f"src/gauge_{n}.py", old_string="a", new_string="b"), answer("ok")) for n in range(3)
    ]
    stop = user("why then?")
    one = digest(conversation(user("add the phase of a gauge"), *asked, *edits, says("It is there."), stop), 1_500)
    assert texts(one, Section.DECISIONS)[0].startswith(f'{question} → "{reply}"')
    assert rendered(one.summary).count("as soon as the gauge goes idle") == 1


def test_a_question_that_points_back_is_stated_with_what_it_is_about() -> None:
    question = "No log of the gauge exists in this harbour yet. How should I create it?"
    asked = call("AskUserQuestion", "1", questions=[{"question": question}])
    assert decided(asked, answer("one file a day", "1")) == [f'{question} → "one file a day"']


def test_what_the_user_is_asked_about_what_happened_gives_up_no_option() -> None:
    options = [{"label": "In the harbour", "description": "at night"}, {"label": "In a test", "description": ""}]
    asked = call("AskUserQuestion", "1", questions=[{"question": "Where did the gauge stop?", "options": options}])
    (one,) = decisions(events_of(asked, answer("In the harbour", "1")))
    assert one.given_up == ()


def test_what_is_known_of_a_thing_is_no_decision() -> None:
    report = user("the gate of the harbour said that it is open")
    assert decided(says("Is there a gate of the harbour that you are thinking of?"), report) == []
    assert decided(says("Do you know which gate of the harbour it was?"), report) == []
    assert decided(says("Do you have to shut the gate of the harbour?"), user("yes, shut the gate at night")) != []


def test_choices_and_new_ones_go_first_and_are_stated_in_order() -> None:
    many = [says(f"We decided on limit number {number} because the server refuses more.") for number in range(60)]
    one = digest(conversation(user("set the limits"), *many), 3_000)
    shown = texts(one, Section.DECISIONS)
    assert shown == [text for message in many if (text := message.text) in shown]
    assert "number 59" in shown[-1]
    assert len(shown) < 30


def test_a_question_is_stated_with_the_users_short_answer() -> None:
    asked = says("Two ways. Which store should I use, files or SQLite?")
    assert decided(asked, user("SQLite, please"), says("Fine.")) == [
        'Which store should I use, files or SQLite? → "SQLite, please"'
    ]
    assert decided(says("Which store?"), user("By the way, " + "the logs are full of this line " * 20)) == []
    assert decided(says("Which store?"), says("I take files."), user("ok")) == []


def test_the_option_that_was_chosen_is_stated_with_its_words_and_the_others_as_not_taken() -> None:
    offer = "Three ways:\n1. one run a gauge\n2. a lock on the table\n3. refuse the second gauge\n\nWhich one?"
    one = digest(conversation(user("two gauges at once?"), says(offer), user("2"), says("Good.")), 4_000)
    assert texts(one, Section.DECISIONS) == [
        'Which one? → "2": a lock on the table (not taken: one run a gauge · refuse the second gauge)'
    ]


def test_the_numbers_of_a_list_of_the_users_own_choose_no_option() -> None:
    plan = "The plan:\n1. Read the gauge at ebb.\n2. Close the lock of the quay.\n3. Log both.\n\n"
    reply = "Looks good overall. Proceed with:\n\n1. Reading the gauge at ebb.\n2. Closing the lock at night only.\n"
    asked = call("ask_user", "1", questions=[{"question": f"{plan}Does this plan for the lock sound good?"}])
    (one,) = decisions(events_of(asked, answer(reply, "1")))
    assert (one.detail, one.given_up) == ("", ())
    assert "Closing the lock at night only" in one.text


def test_what_was_chosen_is_stated_with_what_came_of_it_and_what_comes_later_is_not_given_up() -> None:
    offer = says("Two ways:\n1. one run a gauge\n2. a lock on the table\n\nWhich one?")
    edited = (call("Edit", "e", file_path="lock.py", old_string="a", new_string="b"), answer("ok", "e"))
    for reply, rest in (("2", " (not taken: one run a gauge)"), ("do 2 first", "")):
        one = digest(conversation(user("two at once?"), offer, user(reply), *edited, says("Good.")), 4_000)
        assert texts(one, Section.DECISIONS) == [f'Which one? → "{reply}": a lock on the table{rest} → edited lock.py']


def test_of_steps_one_of_which_comes_first_none_is_given_up() -> None:
    steps = "Two things to do, in order:\n1. **Log.** Write the hours.\n2. **Sort.** By gauge.\n\n"
    asked = says(f"{steps}Want me to do step 1 first, or go straight to step 2?")
    (one,) = decisions(events_of(asked, user("let's do 1")))
    assert (one.whole.partition(" → ")[2], one.given_up) == ('"let\'s do 1": Log. Write the hours.', ())


def test_options_that_begin_alike_are_named_with_what_tells_them_apart() -> None:
    kinds = [{"label": f"Override: {kind}", "description": "for T-001"} for kind in ("this session", "verbatim copy")]
    asked = call("AskUserQuestion", "1", questions=[{"question": "Which provenance shall it have?", "options": kinds}])
    (one,) = decisions(events_of(asked, answer("Override: this session", "1")))
    assert one.given_up == ("Override: verbatim copy",)


def test_a_question_about_an_option_does_not_take_it() -> None:
    asked = says("- **A.** Local time\n- **B.** UTC for all\n\nWant me to make the edit for A now, or will you?")
    assert decided(asked, user("do option B might be helpful in the future?")) == []


def test_an_option_that_nobody_asked_for_is_stated_without_a_question() -> None:
    offer = "The ways are:\n1. one run a gauge\n2. a lock on the table\n\nI would go with the first of them."
    assert decided(says(offer), user("ok, do option 2")) == ['"ok, do option 2": a lock on the table']


def test_an_option_is_taken_in_more_words_and_whatever_is_asked_after_that() -> None:
    asked = says("Two ways:\n\nA) Ask the gauges every hour\nB) Let the gauges send a line\n\nWhich do you prefer?")
    for words in (
        "I think B, they sleep at night. can they send two?",
        "let's go with B",
        "but B seems like a good idea",
        "I'd like it to do B, and no more than one line",
    ):
        assert decided(asked, user(words))[0].endswith(": Let the gauges send a line")
    to_each = decided(asked, user("1. they sleep at night\n2. one line an hour is enough"))
    assert to_each == ['Which do you prefer? → "1. they sleep at night 2. one line an hour is enough"']


def test_what_the_user_asks_after_an_answer_does_not_make_it_a_question() -> None:
    asked = says("Should the gauges keep the lock in a file of the store?")
    answered = decided(asked, user("yes, keep the lock there. and what of the clock?"))
    assert answered == ['Should the gauges keep the lock in a file of the store? → "yes, keep the lock there."']


def test_a_remark_after_an_offer_is_no_answer_to_it() -> None:
    assert decided(says("Would you like to mark the harbour as ready?"), user("we also have two clocks")) == []


def test_a_question_of_two_halves_is_stated_whole_so_that_a_yes_is_not_turned_round() -> None:
    asked = says("Done. Should I note that the hook wants another name? Or leave that as a cleanup?")
    assert decided(asked, user("yeah that should be renamed")) == [
        'Should I note that the hook wants another name? Or leave that as a cleanup? → "yeah that should be renamed"'
    ]


def test_a_yes_of_other_words_takes_neither_of_two() -> None:
    asked = says("Would you like me to draw the harbour next, or would you prefer to look at the gauges first?")
    assert decided(asked, user("ok, I hope the storm has not washed you away")) == []
    assert decided(asked, user("ok, the gauges first"))[0].endswith('→ "ok, the gauges first"')


def test_an_entry_of_a_list_of_options_is_not_settled_by_being_listed() -> None:
    offer = "Resolution options:\n1. Commit first\n2. Resume the old session - go on where you left instead of anew."
    assert decided(says(offer)) == []
    assert decided(says("What I did:\n1. I kept the old session instead of a new one, so that nothing is lost.")) == [
        "1. I kept the old session instead of a new one, so that nothing is lost."
    ]


def test_who_asks_back_or_shows_something_settles_nothing() -> None:
    asked = says("How shall the readings of the tide reach the store?")
    assert decided(asked, user("that was my question: 1. write 2. push the readings to the store?")) == []
    assert decided(asked, user("and how do the readings reach the tide store, eg. at night?")) == []
    assert decided(asked, user("Like so:\n> readings of the tide\n> in the store")) == []
    assert decided(says("Shall I go on with the implementation?"), user("yes")) == []


def test_what_the_assistant_does_for_a_reason_is_settled_and_what_it_finds_or_begins_with_is_not() -> None:
    assert decided(says("I'll leave those gauges alone since they belong to another harbour.")) != []
    assert decided(says("I'll start with the two gauges since they are small.")) == []
    assert decided(says("We're counting all gauges instead of those of the harbour.")) == []
    assert decided(says("The issue was that I was reading the old table instead of the store.")) == []


def test_a_reply_that_passes_over_a_question_of_fact_does_not_answer_it() -> None:
    asked = says("Does your coworker remember running the cleanup on that machine?")
    assert decided(asked, user("the strategy is a trailer on the checkpoint commit")) == []
    assert len(decided(asked, user("no, never"))) == 1
    assert len(decided(asked, user("she says the cleanup ran on a laptop"))) == 1


def test_an_objection_to_a_question_settles_nothing() -> None:
    asked = says("Did the previous session end without a final commit?")
    assert decided(asked, user("but it had no changes in the worktree to commit")) == []


def test_a_reply_of_other_matters_settles_no_question_of_yes_or_no() -> None:
    asked = says("Both writers clash. Shall I add a lock?")
    assert decided(asked, user("this seems complicated and I wonder about the new model")) == []
    assert decided(asked, user("Q: are there redundant changes?a")) == []
    assert decided(says("Which store?"), user("what the other gauges have, the old one")) != []


def test_what_a_program_does_and_what_is_announced_settle_nothing() -> None:
    fault = says("The issue is that `count` is 1 instead of 0 after the third phase.")
    assert texts(digest(conversation(user("find it"), fault), 3_000), Section.DECISIONS) == []
    assert decided(says("Let me show the name of the gauge instead of its number.")) == []
    assert decided(says('The prompt reads:\n\n"Overwrite the log?"'), user("how does it look with two logs")) == []
    assert decided(says("## Decisions\n- No lock: readers wait instead of failing at once")) == [
        "No lock: readers wait instead of failing at once"
    ]


def test_what_the_agent_is_about_to_do_or_remarks_on_is_not_settled() -> None:
    intends = says("Now I need to read the drift from the gauge instead of the table.")
    remarks = says("This is intentional (we want to copy it), but the linter warns because the result is unused.")
    assert texts(digest(conversation(user("mend it"), intends, remarks), 3_000), Section.DECISIONS) == []


def test_a_yes_to_one_of_two_steps_or_to_a_step_of_the_work_settles_nothing() -> None:
    either = "Want me to look at the clock of the gauge and propose a patch, or run the experiment first?"
    assert decided(says(either), user("yes")) == []
    assert decided(says("Want me to commit the tables of the two gauges?"), user("yes, please")) == []
    kept = "Should I keep the tables of the two gauges apart?"
    assert decided(says(kept), user("yes")) == [f'{kept} → "yes"']


def test_a_yes_to_a_question_that_names_nothing_is_no_decision() -> None:
    assert decided(says("It is stale by now. Want me to go ahead?"), user("yeah let's do it")) == []


def test_another_task_is_no_answer_to_an_offer() -> None:
    offer = says("The filters are built. Do you want me to keep the chosen filters in the address?")
    assert decided(offer, user("rewrite the memory entry")) == []
    assert len(decided(offer, user("only the chosen functions"))) == 1


def test_an_answer_that_the_user_takes_back_settles_nothing() -> None:
    asked = says("Which runner shall the tests of phases use, testify or the plain one?")
    answered = asked, user("the plain one"), says("I rewrite them.")
    assert len(decided(*answered)) == 1
    assert decided(*answered, user("actually, keep testify")) == []


def test_a_question_answered_by_a_question_is_no_decision() -> None:
    assert decided(says("Shall I use a lock?"), user("does it handle two gauges at once?")) == []


def test_a_proposal_is_no_decision() -> None:
    assert decided(says("I would suggest to use SQLite instead of files because two writers would clash.")) == []


def test_a_decision_that_the_user_overturns_is_not_stated_as_settled() -> None:
    chose = "I decided to store the local time instead of UTC because the export needs it."
    new = "I switched to UTC instead of local time because the hour of October comes twice."
    one = digest(
        conversation(
            user("store the times"),
            says(chose),
            user("no, that breaks in October when the hour comes twice"),
            says(new),
        ),
        1_500,
    )
    assert texts(one, Section.DECISIONS) == [new]


def test_the_words_before_a_call_that_the_user_turned_down_settle_nothing() -> None:
    chose = "I decided to push to main now instead of opening a pull request for it."
    refused = (
        "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nno, a PR"
    )
    found = events_of(user("ship it"), says(chose), ran("git push", refused, is_error=True))
    assert decisions(found, overturned(found)) == ()


def test_what_limits_a_decision_is_quoted_with_it() -> None:
    said = says("We keep the lock instead of two files because writers clash. But the export reads without it.")
    assert decided(said) == [said.text]


def test_a_superseded_choice_between_options_is_stated_by_its_newest_answer_only() -> None:
    question = "Which store should I use, files or SQLite?"
    one = digest(
        conversation(
            user("store the readings"),
            says(question),
            user("files"),
            says("I write files then."),
            says(question),
            user("SQLite after all"),
            says("SQLite it is."),
        ),
        1_500,
    )
    shown = rendered(one.summary)
    assert f'{question} → "SQLite after all"' in shown
    assert f'{question} → "files"' not in shown


def test_a_yes_to_a_text_that_was_shown_is_no_decision_of_its_own() -> None:
    design = says("The session has a field for its end. Does this look right so far?")
    assert decided(design, user("yes, continue")) == []
    assert decided(says("Shall I store the end as UTC?"), user("yes")) == ['Shall I store the end as UTC? → "yes"']


def test_what_a_program_does_wrongly_is_no_choice() -> None:
    assert decided(says("The hook runs once, but it writes four commits instead of one combined commit.")) == []


def test_what_was_explained_is_taken_back_where_the_agent_owns_that_it_was_wrong() -> None:
    explained = "The old sessions stayed because a reset keeps their state files and their branches. " * 4
    found = events_of(
        user("why four?"),
        says(explained),
        user("but the branches and state files are deleted, how can the old sessions still be there?"),
        says("Ah! Now I see the real issue. You're right to question that. Let me trace it."),
    )
    assert set(overturned(found)) == {1}
    assert overturned(found[:3]) == {}


def test_a_stop_with_words_takes_back_what_was_stated_just_before() -> None:
    first = "HookStop and HookSessionEnd have the same input, so a new constant changes nothing in the parsing. " * 3
    second = "Skip the comments on HookStop and HookSessionEnd: they only change what is meant, not what is done. " * 3
    stopped = answer("The user doesn't want to proceed with this tool use. the user said:\nplease add it", "1")
    stopped_call = call("Bash", "1", command="git commit -m fix")
    found = events_of(user("review"), says(first), says(second), stopped_call, stopped)
    assert set(overturned(found)) == {2}


def test_a_correction_may_stand_under_the_line_that_it_quotes() -> None:
    chose = "We use the wrapper script instead of the plain command for everybody from now on."
    quoted = user("- We use the wrapper script\nThis should not be changed, only the flag installs it")
    found = events_of(user("install the hooks"), says(chose), quoted)
    assert set(overturned(found)) == {1}


def test_an_answer_that_begins_with_actually_takes_nothing_back() -> None:
    found = events_of(
        user("it looks wrong"), says("Is it the text, or the background?"), user("actually, the background")
    )
    assert overturned(found) == {}


def test_a_command_for_the_client_answers_no_question() -> None:
    asked = says("Should I set the colours, or would you prefer to edit the theme yourself?")
    one = digest(conversation(user("make me a theme"), asked, user("/them"), says("Which one?")), 2_000)
    assert not any("/them" in text for text in texts(one, Section.DECISIONS))


def test_several_options_that_the_user_takes_are_named_and_the_others_are_given_up() -> None:
    offer = says(
        "Here is where:\n\n**1. `hooks.go:153`** - the name is there already\n\n**2. `handlers.go`** - six handlers\n\n"
        "**3. `git.go:31`** - could detect it\n\nWould you like me to implement these?"
    )
    one = digest(conversation(user("where should it go?"), offer, user("Implement 1 and 2."), says("ok")), 2_000)
    (settled,) = texts(one, Section.DECISIONS)
    assert '"Implement 1 and 2.": `hooks.go:153` - the name is there already · `handlers.go` - six handlers' in settled
    assert "git.go:31" in settled.partition("not taken")[2]


CAUSE = (
    "The branches stay because the reset removes no shadow branch: the reset of the work tree only moves HEAD, and "
    "nothing that runs after it looks for the sessions and the branches that were left behind by the four of them."
)
WROTE = says("I've created the file ISSUE.md, which describes what a reset leaves behind and the shadow branches. " * 3)


def test_of_several_explanations_the_one_that_the_doubt_is_about_is_taken_back() -> None:
    other = says(
        "The export is slow because it opens the database again for each of the rows that it has to write. " * 3
    )
    doubt = user("but we are deleting the shadow branches after a reset, so how could they still be there?")
    owned = says("Ah! Now I see the real issue. You're right to question that.")
    found = events_of(user("why?"), says(CAUSE), user("write it down"), WROTE, user("and?"), other, doubt, owned)
    assert set(overturned(found)) == {1}


def test_what_the_user_corrects_without_a_cue_is_taken_back_where_the_assistant_accepts_it() -> None:
    corrected = user("I had two sessions, but I closed the shadow branches of the others before the reset")
    found = events_of(user("why?"), says(CAUSE), corrected, says("Good catch! Let me look at the sessions."))
    assert set(overturned(found)) == {1}


def test_what_the_user_adds_to_an_explanation_takes_nothing_back() -> None:
    added = user("there is also the reset of the index, which leaves the shadow branches and the sessions")
    found = events_of(user("why?"), says(CAUSE), added, says("You're absolutely right! I add it."))
    assert overturned(found) == {}


def test_an_entry_of_what_is_wrong_settles_nothing() -> None:
    rows = "| # | Place | Issue |\n|---|---|---|\n| 1 | store.py:4 | Uses `local()` instead of the clock of the gauge |"
    assert decided(says(f"**Remaining items:**\n\n{rows}")) == []


def test_the_option_of_a_table_that_was_chosen_is_told_with_its_words() -> None:
    table = (
        "Two ways:\n\n| Option | What | Cost |\n|---|---|---|\n| A | a lock on the table | slow |\n"
        "| B | one run a gauge | more runs |\n\nWhich one?"
    )
    one = digest(conversation(user("two gauges at once?"), says(table), user("B, please"), says("Good.")), 4_000)
    assert texts(one, Section.DECISIONS) == [
        'Which one? → "B, please": one run a gauge | more runs (not taken: a lock on the table | slow)'
    ]


def test_of_a_dialogue_a_yes_is_settled_and_what_says_itself_what_it_is_about_is_told_once() -> None:
    booked = says("I can book flight HAT271 for 174 dollars. Shall I add the travel insurance?"), user("no, thanks")
    session = conversation(
        user("a flight to Boston, please"),
        says("Which cabin class do you want to travel in?"),
        user("I want to travel in economy class, by the window"),
        *booked,
        says("It is booked without insurance, HAT271. Which seat do you want?"),
        user("the one by the window in row 12"),
    )
    (settled,) = texts(digest(session, 800), Section.DECISIONS)
    assert settled == 'Shall I add the travel insurance? → "no, thanks"'


PLAN = "# Plan: Move the clock\n\nIt drifts.\n\n1. Move `parse()` to clock.py\n2. Drop the cache\n3. Run the tests"
APPROVED = "User has approved your plan. You can now start coding."
REFUSED = (
    "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nkeep the cache"
)
SHOWN = call("ExitPlanMode", "p", plan=PLAN)
EDIT = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))
STATED = "Plan: Move the clock: 1. Move `parse()` to clock.py · 2. Drop the cache · 3. Run the tests → "


def settled(*messages: Message | tuple[Message, ...]) -> list[str]:
    return texts(digest(conversation(user("plan the move of the clock"), *messages), 4_000), Section.DECISIONS)


def test_a_plan_that_was_approved_is_stated_with_its_steps_and_what_came_of_it() -> None:
    assert settled(SHOWN, answer(APPROVED, "p"), *EDIT) == [f"{STATED}approved by the user → edited clock.py"]
    assert settled(SHOWN, answer(APPROVED, "p")) == [f"{STATED}approved by the user → nothing done since"]
    again = (call("Edit", "f", file_path="clock.py", old_string="b", new_string="c"), answer("ok", "f"))
    assert settled(SHOWN, answer(APPROVED, "p"), *EDIT, says("Done."), user("read the drift, too"), *again) == [
        f"{STATED}approved by the user → edited clock.py (files edited since)"
    ]


def test_the_steps_of_a_plan_are_its_headings_where_they_have_letters_and_not_the_entries_below() -> None:
    plan = "# Plan: Locks\n## Why\n1. Readers wait\n2. Writers clash\n### A. Take a lock\n1. open\n### B. Free it"
    assert outline(plan) == "Locks: A. Take a lock · B. Free it"


def test_a_yes_to_a_question_that_names_its_subject_is_no_yes_to_the_plan_above_it() -> None:
    steps = "\n".join(f"{number}. **Step {number}** of the tide" for number in range(1, 6))
    asked = says(f"I propose these steps:\n\n{steps}\n\nDo you want the export of the gauges to be GitHub-only?")
    (found,) = decided(asked, user("Yes, GitHub only for now."))
    assert found.startswith("Do you want the export of the gauges to be GitHub-only? →")


def test_a_plan_that_was_refused_is_stated_as_refused_with_the_reason() -> None:
    refused = settled(SHOWN, answer(REFUSED, "p", is_error=True), says("I leave it in."), *EDIT)
    assert refused == [f'{STATED}refused by the user: "keep the cache"']
    stopped = answer(REFUSED.partition(" To tell")[0], "p", is_error=True)
    assert settled(SHOWN, stopped, user("keep the cache, it is fast"), *EDIT) == [
        f'{STATED}refused by the user: "keep the cache, it is fast"'
    ]


def test_of_a_plan_that_is_shown_again_the_last_word_counts() -> None:
    again = call("ExitPlanMode", "q", plan=PLAN), answer(APPROVED, "q")
    (one,) = settled(SHOWN, answer(REFUSED, "p", is_error=True), *again, *EDIT)
    assert one.startswith(f"{STATED}approved")


def test_an_answer_to_each_of_two_questions_turns_none_of_them_down() -> None:
    asked = (
        "Before I plan:\n\n1. Are you fine with a login page of our own?\n2. Do you want to look into the kit first?"
    )
    one = digest(conversation(user("Plan it."), says(asked), user("1 - yeah, 2 - definitely, go for it."), says("Ok.")))
    assert "not taken" not in rendered(one.summary)


def test_a_long_answer_that_is_the_newest_request_stands_in_now_alone() -> None:
    options = "1. **Option 1:** berth 12\n2. **Option 2:** berth 14"
    asked = f"{options}\n\nIf so, please confirm which option you'd like to choose."
    reply = (
        "I'll go with Option 1. Please pay it with the card that ends in 7334, and send the receipt to my new address."
    )
    one = digest(conversation(user("Book me a berth."), says(asked), user(reply)), 900)
    assert rendered(one.summary).count(reply) == 1


def test_a_commit_of_something_else_is_not_what_came_of_a_plan_and_an_empty_refusal_of_one_is_no_word() -> None:
    stopped = answer(REFUSED.partition(" To tell")[0], "p", is_error=True)
    again = call("ExitPlanMode", "q", plan=PLAN), answer(APPROVED, "q")
    other = ran("git commit -am 'Add tar archives'", "[main 1a2b3c4] Add tar archives\n 1 file changed")
    asked = user("first commit the archives, then go on with the plan")
    one = digest(conversation(user("plan it"), SHOWN, stopped, asked, *again, *other), 4_000)
    assert texts(one, Section.DECISIONS) == [f"{STATED}approved by the user"]
    assert not any("Stopped" in text for text in texts(one, Section.USER))


@pytest.mark.parametrize(
    "asked",
    [
        "Hi there! How can I help you today?",
        "On the branch of the gauges. What do you need?",
        "The build is green here. Can you share the error that you see?",
    ],
)
def test_what_a_user_came_for_settles_no_question(asked: str) -> None:
    came = says(asked), user("there are a few comments of the reviewer that need an answer")
    assert texts(digest(conversation(user("hello"), *came), 900), Section.DECISIONS) == []


def test_agreement_to_a_proposal_without_a_question_is_stated_with_it() -> None:
    proposed = says("The gate is late. I'd suggest a timer in `open_gate` and no second thread. It costs nothing.")
    assert decided(proposed, user("Agreed. Keep the log as it is though.")) == [
        'I\'d suggest a timer in `open_gate` and no second thread. → "Agreed. Keep the log as it is though."'
    ]


def test_an_option_that_leaves_it_to_the_user_is_none_that_was_taken() -> None:
    asked = says("Do you want to:\n- A) write the page now\n- B) close the harbour\n- C) Something else?")
    one = digest(conversation(user("read the gauges"), asked, user("C) merge main first, then write the page")), 2_000)
    shown = rendered(one.summary)
    assert "Do you want to: A) write the page now" in shown
    assert "not taken" not in shown
    assert "c. Something else" not in shown


def test_what_stands_in_code_at_the_end_of_a_message_asks_nothing() -> None:
    code = "\n".join(("```yaml", *(f"field_{n}: what is the height of gauge {n}?" for n in range(60)), "```"))
    form = says(f"This is the form of the harbour.\n\n{code}\n\nIt has sixty fields, one for each of the gauges.")
    assert decided(user("write a form"), form, user("yes")) == []
    asked = says(f"{form.text} Should I add the form to the page of the harbour?")
    assert len(decided(user("write a form"), asked, user("yes"))) == 1


def test_an_option_that_comes_up_again_later_is_not_said_to_be_not_taken() -> None:
    offer = "Three ways:\n1. one run a gauge\n2. a lock on the table\n3. refuse the second gauge\n\nWhich one?"
    again = says("The lock is there. Left is to refuse the second gauge. Shall I do that, too?")
    session = conversation(user("two gauges?"), says(offer), user("2"), says("Good."), user("what is left?"), again)
    (settled, *_) = texts(digest(session, 4_000), Section.DECISIONS)
    assert settled == 'Which one? → "2": a lock on the table (not taken: one run a gauge)'


def test_words_that_have_nothing_of_the_options_choose_none_of_them() -> None:
    asked = says("Two ways:\n\n1. a lock on the table\n2. refuse the second gauge\n\nWhich approach do you prefer?")
    assert decided(asked, user("the harbour page is empty since today")) == []
    assert decided(asked, user("the lock, but only while the table is read")) != []


def test_what_is_asked_for_after_an_offer_to_go_on_with_the_next_thing_is_no_answer_to_it() -> None:
    asked = user("review the stack"), says("The comments are answered. Move to PR #91 next?")
    for reply, shown in (("respond to the PR comments", []), ("no, #93", ['Move to PR #91 next? → "no, #93"'])):
        one = digest(conversation(*asked, user(reply), says("I do."), user("and then?")), 1_500)
        assert texts(one, Section.DECISIONS) == shown


def test_a_choice_whose_work_the_user_stopped_says_so() -> None:
    asked = user("lock the store"), says("Shall the store wait for the lock, or give up at once?")
    looked = call("Read", "r", file_path="store.py"), answer("x", "r")
    edit = call("Edit", "s", file_path="store.py", old_string="x", new_string="y")
    stopped = answer(
        "The user doesn't want to proceed with this tool use. The tool use was rejected.", "s", is_error=True
    )
    session = conversation(*asked, user("it should wait"), *looked, edit, stopped, user("who else holds it?"))
    (shown,) = texts(digest(session, 1_500), Section.DECISIONS)
    assert shown.endswith('→ "it should wait" (Stopped by the user: `Edit store.py`)')


def test_a_question_of_one_word_is_asked_of_what_the_options_are_for() -> None:
    offer = (
        "**When the store is locked already:**\n- **A) Wait** for an hour\n- **B) Give up** at once\n\n"
        "I'd lean toward B). Thoughts?"
    )
    shown = texts(
        digest(conversation(user("lock the store"), says(offer), user("B)"), says("It gives up.")), 2_000),
        Section.DECISIONS,
    )
    assert shown[0].startswith('When the store is locked already: → "B)": Give up at once')


def test_what_the_user_leaves_to_the_agent_rejects_no_option_and_whether_there_is_more_to_ask_settles_nothing() -> None:
    def asked(question: str, reply: str, *labels: str) -> tuple[object, ...]:
        options = [{"label": label, "description": f"It would {label.lower()}."} for label in labels]
        called = call("AskUserQuestion", question, questions=[{"question": question, "options": options}])
        return called, answer(f'"{question}"="{reply}". You can now continue', question)

    left = asked("How shall the gauge show it?", "You decide", "Blink", "Ring", "You decide")
    more = asked("More questions about the gauge, or move on?", "Next area", "More questions", "Next area")
    one = digest(conversation(user("plan the gauges"), *left, *more), 3_000)  # type: ignore[arg-type]
    assert texts(one, Section.DECISIONS) == [
        'How shall the gauge show it? → "You decide" (left to the agent: Blink · Ring)'
    ]
    how = asked(
        "How are gauges named?", "how would option 1 sort? seems like #2 is the way to go", "By age", "By place"
    )
    back = asked("Which gauge leads?", "could you explain what a leading gauge does", "The oldest", "The newest")
    one = digest(conversation(user("plan the gauges"), *how, *back, *more), 3_000)  # type: ignore[arg-type]
    (text,) = texts(one, Section.DECISIONS)
    assert text.startswith("How are gauges named? → ")
    assert "By place" in text
    assert "not taken: By age" in text


def test_all_choices_come_before_what_any_of_them_says() -> None:
    says_much = "It keeps the readings of every gauge of the harbour in one file, which is copied each night. " * 2
    messages: list[object] = [user("plan the gauges")]
    for number in range(12):
        question = f"Which store shall gauge number {number} of the harbour have?"
        options = [{"label": f"File {number}", "description": says_much}, {"label": f"Table {number}"}]
        messages.append(call("AskUserQuestion", str(number), questions=[{"question": question, "options": options}]))
        messages.append(answer(f'"{question}"="File {number}". You can now continue', str(number)))
    settled = texts(digest(conversation(*messages), 1_500), Section.DECISIONS)  # type: ignore[arg-type]
    assert len(settled) == 12
    assert any("copied each night" in text for text in settled)


def test_by_which_workflow_the_agent_works_is_no_decision() -> None:
    assert decided(says("I'll use the GitHub workflow here because this is a triage of the open requests.")) == []
    assert decided(says("I'll use the older store here because two writers of the gauges would clash.")) != []


def test_what_was_agreed_to_and_asked_anew_before_anything_was_done_is_not_settled() -> None:
    offer = says("Both pages can be written now. Want me to create both of the pages of the harbour?")
    anew = user("ok let's create the first page, and do the research for the second one again")
    session = conversation(user("plan the pages"), offer, user("ok, lets"), anew, says("I write the first page."))
    assert not any("Want me to create both" in text for text in texts(digest(session, 2_000), Section.DECISIONS))


def test_options_that_are_taken_by_number_answer_the_question_above_them_and_not_one_below() -> None:
    offer = says(
        "What would be more useful to show? A few options:\n\n1. The check of the strategy\n2. The logic of the hook\n"
        "3. The state before a prompt\n\nWhat do you use it for, to see why nothing was stored, or to check it?"
    )
    session = conversation(user("does it help?"), offer, user("yeah 2 and 3"), says("I look at the hook."))
    (text,) = (text for text in texts(digest(session, 2_000), Section.DECISIONS) if "yeah 2 and 3" in text)
    assert text.startswith("What would be more useful to show? A few options:")
    assert "What do you use it for" not in text


def test_what_was_done_by_mistake_is_no_choice() -> None:
    slip = says("Good catch — I branched off `tide` instead of `main`.")
    kept = says("I branched off `tide` instead of `main`, because the gauge is read there.")
    assert texts(digest(conversation(user("start the work"), slip), 2_000), Section.DECISIONS) == []
    assert len(texts(digest(conversation(user("start the work"), kept), 2_000), Section.DECISIONS)) == 1


def test_an_okay_before_another_request_answers_no_offer() -> None:
    offer = says("Want me to sketch the workflow of the release for the gauges?")
    assert decided(offer, user("ok lets get back to main and pull in latest")) == []
    assert len(decided(offer, user("ok lets do that workflow"))) == 1
    assert len(decided(offer, user("ok"))) == 1


def test_an_okay_that_takes_none_of_two_steps_and_a_request_with_please_settle_nothing() -> None:
    offered = says("Want me to write the design into notes.md, or go straight to the gauges?")
    assert decided(offered, user("OK. That seems a good direction. Is the wiring of all tides as simple?")) == []
    assert len(decided(offered, user("ok, straight to the gauges then"))) == 1
    asked = says("Want me to fold the ebb tables into it?")
    assert decided(asked, user("Please, make a simple list that I can understand")) == []
    assert len(decided(asked, user("please do"))) == 1


def test_a_plan_that_the_approval_shows_is_stated_as_approved() -> None:
    left = call("ExitPlanMode", "p")
    shown = "Exited plan mode.\n\n## Approved Plan:\n# Count the gauges\n\n1. Find them\n2. Add up"
    (text,) = settled(left, answer(shown, "p"), *EDIT)
    assert text.startswith("Plan: Count the gauges: 1. Find them · 2. Add up → approved by the user")


def test_words_that_had_been_waiting_since_before_the_question_do_not_answer_it() -> None:
    asked = user("lock the store"), says("Shall the store wait for the lock, or give up at once?")
    waited = replace(user("it should log each try"), was_waiting=True)
    one = digest(conversation(*asked, waited), 1_500)
    assert texts(one, Section.DECISIONS) == []
    assert not any("Shall the store wait" in text for text in texts(one, Section.TASK))


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Want me to rewrite that opening (and roll it into the same commit)?", "commit changes and push"),
        ("What is your gut on that, and on the tone?", "just show me what you would write"),
        ("Want me to describe the lock, or leave it as it is?", "Ok. So in short, should we tell them of it?"),
        ("Want me to look at how the store lists what it holds?", "❯ tide probe --json | jq .store\nnull"),
    ],
)
def test_what_only_hands_the_work_on_asks_for_more_or_shows_something_settles_nothing(
    question: str, reply: str
) -> None:
    assert decided(user("lock the store"), says(question), user(reply), says("I do.")) == []


def test_what_the_agent_did_instead_of_something_is_settled_where_it_says_why() -> None:
    assert decided(says("I've left both files staged rather than committing.")) == []
    kept = "I used a copy instead of the store because two gauges write to that."
    assert decided(says(kept)) == [kept]


def test_who_likes_a_thing_and_then_objects_agrees_to_nothing() -> None:
    asked = says("Want me to write this up as a section of the plan, with what the store has to learn?")
    assert (
        decided(user("plan it"), asked, user("i like this but some of the store sounds complicated"), says("I see."))
        == []
    )


def test_a_new_request_in_chinese_does_not_answer_the_question_before_it() -> None:
    asked = says("潮汐表写好了。要不要我同步更新完整版？")
    assert decided(asked, user("现在我需要你帮我建立一下第一阶段的文件结构")) == []
    assert decided(asked, user("要，更新完整版")) != []


def test_a_chinese_question_that_points_back_stands_with_what_it_is_about() -> None:
    asked = call("AskUserQuestion", "q", questions=[{"question": "store.py 是手写实现，与计划冲突。怎么处理它？"}])
    replied = answer(
        'User has answered your questions: "store.py 是手写实现，与计划冲突。怎么处理它？"="移到 docs"', "q"
    )
    assert decided(asked, replied) == ['store.py 是手写实现，与计划冲突。 怎么处理它？ → "移到 docs"']


def test_what_the_user_only_suggests_or_asks_for_next_settles_nothing() -> None:
    question = "Want me to drop the guard and let the level rely on the clock, or keep it?"
    asked = says(question)
    assert decided(asked, user("maybe the level should be cast to float")) == []
    assert decided(asked, user("drop the guard")) == [f'{question} → "drop the guard"']
    offer = says("要不要我把这个链接改成新的文件名？或者你更希望真的建个目录？")
    assert decided(offer, user("现在我需要你帮我建立一下文件结构")) == []


def test_an_option_that_leaves_the_choice_to_the_agent_gives_up_none() -> None:
    options = [
        {"label": "Quay", "description": "near"},
        {"label": "Not sure / you decide", "description": "I'd take Quay"},
    ]
    asked = call("AskUserQuestion", "1", questions=[{"question": "Where shall the gauge stand?", "options": options}])
    reply = answer('User has answered: "Where shall the gauge stand?"="Not sure / you decide".', "1")
    (decision,) = decisions(events_of(asked, reply))
    assert (decision.leaves_open, decision.given_up) == (True, ("Quay",))


def test_an_option_that_the_answer_names_besides_is_not_given_up() -> None:
    offer = says("Three ways:\nA) one run a gauge\nB) a lock on the table\nC) refuse the second\n\nWhich one?")
    asked = user("two gauges at once?"), offer, user("A for the harbour. The pier should do B instead.")
    assert [one.given_up for one in decisions(events_of(*asked))] == [("refuse the second",)]
