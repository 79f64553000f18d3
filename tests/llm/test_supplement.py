"""What is added to a model's text: what it cannot be contradicted by and does not tell, and a quarter at most."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conversation import answer, call, conversation, count, ran, says, user
from llm_server.client import LlmServer
from model_cases import request, summariser

from compactor_cli.llm.supplement import CompletedText, completed
from compactor_cli.model.summary import Answer, Item, Section, SectionItems, Source
from compactor_cli.model.transcript import Transcript
from compactor_cli.render.template import load_template, read_ours

ASKED = "Move the importer to the new feed, and never write to the live database while you test it, please."
STOPPED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, "
    "the user said:\nwhy would you drop the table before the backup is there, leave the old rows alone"
)
EDITS = [
    message
    for name in ("reader", "writer", "schema", "notices")
    for message in (
        call("Edit", f"e-{name}", file_path=f"/data/app/src/feed_{name}.py", old_string="a", new_string=f"b_{name}"),
        answer("The file was updated.", f"e-{name}"),
        says(f"The {name} of the feed is moved: parse_{name}_line now takes the new {name} columns of the feed."),
    )
]
TALK = conversation(
    user(ASKED),
    says("We could use option A, a copy of the table, or option B, a view. I propose option A, the copy_of_levels."),
    call("Read", "r1", file_path="/data/app/levels.csv"),
    answer("the level of the water at the gate stands in this row of the table\n" * 120, "r1"),
    *EDITS,
    ran(
        "git commit -qm 'Move the importer' && git log --oneline | head -1", "[feed 4f1c2aa] Move the importer\n4 files"
    ),
    call("Bash", "d1", command="psql -c 'drop table levels_2025'"),
    answer(STOPPED, "d1", is_error=True),
    call(
        "TodoWrite",
        "t1",
        todos=[
            {"content": "Move the importer", "status": "completed"},
            {"content": "Write the backup of levels_2025 before anything else", "status": "in_progress"},
            {"content": "Ask the harbour office for a second token", "status": "pending"},
        ],
    ),
    answer("Todos have been modified.", "t1"),
    user("Not the copy: take option B, the view, and call it levels_view."),
    says("Then option B: the view is named levels_view and reads both tables."),
)
TEXT = {
    Section.TASK: "- The importer is moved to the new feed; the view levels_view is next. [24]",
    Section.PLAN: "- next: create the view levels_view over both tables",
    Section.QUESTIONS: "- none",
    Section.DECISIONS: "- Option B, the view levels_view, not the copy_of_levels (option A) [23]",
    Section.ERRORS: "- drop table levels_2025 was stopped by the user [19]",
    Section.FILES: "- /data/app/src/feed_reader.py: parse_reader_line is new\n- feed_writer.py, feed_schema.py",
    Section.COMMANDS: "- psql for the tables, git commit for the rest",
    Section.HISTORY: "- the four files of the feed were moved, then the drop was stopped, then option B was chosen"
    + " because the office reads the column directly, and so the rows of the table have to stay as they are" * 24,
}


def reply(headings: dict[Section, str]) -> str:
    return "\n".join(f"{headings[section]}\n{text}" for section, text in TEXT.items())


def summarised(server: LlmServer, budget_tokens: int = 1_600) -> Answer:
    template = load_template("hermes")
    headings = {section: template.head(section, "en") for section in TEXT}
    server.control(replies={"<<transcript>>": reply(headings)})
    with summariser(server, "replay") as one:
        return one.summarise(request(TALK, budget_tokens))


@pytest.fixture
def summary(llm_server: LlmServer) -> Answer:
    found = summarised(llm_server)
    assert (found.summary.source, found.fell_back, len(llm_server.requests())) == (Source.MODEL, "", 1)
    return found


def items(one: Answer, section: Section) -> list[str]:
    return [item.text for part in one.summary.sections if part.section is section for item in part.items]


def added(one: Answer) -> list[tuple[Section, str]]:
    own = {line.removeprefix("- ").partition(" [")[0] for text in TEXT.values() for line in text.split("\n")}
    return [
        (part.section, item.text)
        for part in one.summary.sections
        for item in part.items
        if item.text.partition(" [")[0] not in own
    ]


def test_the_users_words_and_refusals_are_added(summary: Answer) -> None:
    said = "\n".join(items(summary, Section.USER))
    assert "never write to the live database" in said
    assert "leave the old rows alone" in said
    assert "Not the copy: take option B, the view, and call it levels_view." in said


def test_open_steps_that_the_text_leaves_out_are_added_and_done_ones_are_not(summary: Answer) -> None:
    steps = [text for section, text in added(summary) if section is Section.PLAN]
    assert any("harbour office for a second token" in step for step in steps)
    assert not any("Move the importer" in step for step in steps)


def test_files_that_the_text_names_are_not_stated_again(summary: Answer) -> None:
    files = " ".join(text for section, text in added(summary) if section is Section.FILES)
    assert "feed_notices.py" in files
    assert not any(f"feed_{name}.py —" in files for name in ("reader", "writer", "schema"))


def test_nothing_of_task_decisions_or_history_is_placed_after_what_the_model_says(summary: Answer) -> None:
    sections = {section for section, _ in added(summary)}
    assert sections <= {Section.USER, Section.PLAN, Section.COMMANDS, Section.FILES, Section.NAMES}
    assert items(summary, Section.DECISIONS) == ["Option B, the view levels_view, not the copy_of_levels (option A)"]


def test_the_outcome_of_a_commit_is_added_with_its_id(summary: Answer) -> None:
    assert any("git commit" in text and "4f1c2aa" in text for text in items(summary, Section.COMMANDS))


def test_no_heading_stands_twice_and_the_models_items_come_first(summary: Answer) -> None:
    text = request(TALK).render(summary.summary)
    headings = [line for line in text.split("\n") if line.startswith("## ")]
    assert len(headings) == len(set(headings))
    assert items(summary, Section.PLAN)[0].startswith("next: create the view")


@pytest.mark.parametrize("budget", [1_200, 1_600, 3_000, 8_000])
def test_what_is_added_takes_a_quarter_of_both_at_most(llm_server: LlmServer, budget: int) -> None:
    one = summarised(llm_server, budget)
    whole = sum(count(item.text) for part in one.summary.sections for item in part.items)
    assert sum(count(text) for _, text in added(one)) <= 0.27 * whole
    assert count(request(TALK, budget).render(one.summary)) <= budget


def test_a_section_that_the_model_left_out_comes_from_the_digest(llm_server: LlmServer) -> None:
    template = load_template("hermes")
    headings = {section: template.head(section, "en") for section in TEXT}
    text = reply(headings).replace(f"{headings[Section.TASK]}\n{TEXT[Section.TASK]}\n", "")
    llm_server.control(replies={"<<transcript>>": text})
    with summariser(llm_server, "replay") as one:
        found = one.summarise(request(TALK, 1_600))
    assert found.summary.source is Source.MODEL
    assert items(found, Section.TASK)


PUSHED = conversation(
    user(
        "Please bring the gauges up to date on the server and open a pull request for them when the tests are through."
    ),
    call("Edit", "e1", file_path="/data/app/src/gauges.py", old_string="a", new_string="gauge_b"),
    answer("The file was updated.", "e1"),
    ran(
        "git add -A && git commit -m \"$(cat <<'EOF'\nRead gauges twice\nEOF\n)\"", "[gauges 1a2b3c4] Read gauges twice"
    ),
    ran(
        "git push origin gauges",
        "Exit code 1\nerror: failed to push some refs to 'example.com:harbour.git'",
        is_error=True,
    ),
    ran("git push origin gauges", "   0d0d0d0..1a2b3c4  gauges -> gauges"),
    ran("git commit -am 'Name the gauge'", "[gauges 5d6e7f8] Name the gauge"),
    ran("git push origin gauges", "   1a2b3c4..5d6e7f8  gauges -> gauges"),
    ran("gh pr create --title Gauges --body 'Reads gauges twice'", "https://example.com/harbour/pull/31"),
    says(
        "Shall I merge the pull request of the gauges at once, or wait until the harbour office has read it?\n\n"
        "Each gauge is read twice because the feed of the harbour office repeats its last line after every reconnect."
    ),
    user("Leave the merge of the gauges to the office, please."),
    says("Then the merge of the gauges waits."),
)


def completed_of(transcript: Transcript, text: str) -> list[str]:
    """What is added to a text about these records."""
    sections = (SectionItems(section=Section.TASK, items=(Item(text=text),)),)
    found = completed(request(transcript, 1_500), CompletedText(sections=sections), "en", most_ratio=0.8)
    return [item.text for part in found.summary.sections for item in part.items if item.text != text]


def completion(text: str) -> list[str]:
    return [text, *completed_of(PUSHED, text)]


def test_of_pushes_the_newest_is_stated_and_no_failure_that_was_fixed() -> None:
    outcomes = [text for text in completion("The work at the harbour goes on. " * 20) if text.startswith("`g")]
    assert outcomes == [
        "`gh pr create` → https://example.com/harbour/pull/31",
        "`git push origin gauges` → 1a2b3c4..5d6e7f8  gauges -> gauges",
        "`git commit` → [gauges 5d6e7f8] Name the gauge",
        "`git commit` → [gauges 1a2b3c4] Read gauges twice",
    ]


def test_what_explains_at_the_end_of_a_turn_is_added_and_a_question_is_not() -> None:
    said = "\n".join(completion("The gauges are pushed. " * 20))
    assert "because the feed of the harbour office repeats its last line" in said
    assert "Shall I merge" not in said


def test_a_request_stands_once() -> None:
    said = "\n".join(completion("The gauges are pushed. " * 20))
    assert said.count("Leave the merge of the gauges") == 1
    _, *more = completion("User: leave the merge of the gauges to the office, please. " * 9)
    assert "Leave the merge" not in "\n".join(more)


REVIEWED = conversation(
    user("/review https://example.com/harbour/pull/31"),
    says(
        "### 1. Gauges drift\nThe clock of the barrier is two minutes late.\n\n"
        "### 2. Symlinks in copy_levels\nos.walk follows them.\n\n"
        "### 3. Gauges are read twice\nThe feed of the gauges repeats its last line, so each gauge is read twice."
    ),
    ran("for id in 1a2b3c4 5d6e7f8; do\n  git show $id | grep 'git commit'\ndone", ""),
    user("fix the drift of the gauges"),
    call("Edit", "e1", file_path="/data/app/src/gauges.py", old_string="a", new_string="gauge_b"),
    answer("The file was updated.", "e1"),
    ran("git commit -am 'Fix the drift'", "[gauges 1a2b3c4] Fix the drift"),
    says("The drift is fixed."),
    user("/plan keep the old rows of the barrier until the office has answered"),
)
REVIEWED_TEXT = (
    "The user ran /review: the feed of the gauges repeats its last line, so each gauge is read twice.\n"
    "The user: fix the drift of the gauges.\n"
) * 10


def test_a_short_finding_stands_under_its_heading_and_what_the_text_has_is_not_repeated() -> None:
    added_lines = "\n".join(completed_of(REVIEWED, REVIEWED_TEXT))
    assert "2. Symlinks in copy_levels: os.walk follows them." in added_lines
    assert "repeats its last line" not in added_lines


def test_a_request_that_the_text_quotes_is_not_repeated_for_what_came_of_it() -> None:
    wants = [line for line in completed_of(REVIEWED, REVIEWED_TEXT) if "drift of the gauges" in line]
    assert wants == []


def test_of_a_clients_command_the_users_words_are_quoted_and_an_address_alone_is_not() -> None:
    added_lines = "\n".join(completed_of(REVIEWED, REVIEWED_TEXT))
    assert "keep the old rows of the barrier until the office has answered" in added_lines
    assert "/review https" not in added_lines


def test_a_loop_that_only_looks_is_not_told_as_a_change() -> None:
    assert not any("for id in" in line for line in completed_of(REVIEWED, REVIEWED_TEXT))


EARLIER = """## Remaining Work
- done: rename the feed
- ask the harbour office for the second token of the barrier [4f1c2aa0:3]
- write the page about tides

## The User's Words
- never write to the live database of the barrier"""


def test_what_an_update_drops_of_the_earlier_summary_comes_back() -> None:
    text = "The gauges are pushed, and the page about tides is written. " * 20
    found = completed(
        replace(request(PUSHED, 1_500), read=read_ours),
        CompletedText(sections=(SectionItems(section=Section.TASK, items=(Item(text=text),)),)),
        "en",
        previous=EARLIER,
    )
    assert items(found, Section.PLAN) == ["ask the harbour office for the second token of the barrier [4f1c2aa0:3]"]
    assert "never write to the live database of the barrier" in items(found, Section.USER)


def updated(transcript: Transcript, text: str, previous: str) -> Answer:
    """What comes of a text that brings an earlier summary up to date."""
    sections = (SectionItems(section=Section.TASK, items=(Item(text=text),)),)
    wanted = replace(request(transcript, 4_000), read=read_ours)
    return completed(wanted, CompletedText(sections=sections), "en", previous=previous)


def test_a_step_that_is_open_in_the_earlier_summary_and_in_the_records_stands_once() -> None:
    step = "in progress: Write the backup of levels_2025 before anything else"
    found = updated(TALK, "The importer is moved. " * 200, f"## Remaining Work\n- {step} [4f1c2aa0:3]")
    assert sum("backup of levels_2025" in text for text in items(found, Section.PLAN)) == 1


def test_a_push_of_the_earlier_summary_is_overtaken_by_the_next() -> None:
    facts = "- `git push` → 7c2d9e1..0d0d0d0  gauges -> gauges\n- `git commit` → [levels 7c2d9e1] Read the levels"
    found = updated(PUSHED, "The gauges are read. " * 200, f"## Commands and Outcomes\n{facts}")
    shown = "\n".join(items(found, Section.COMMANDS))
    assert "7c2d9e1..0d0d0d0" not in shown
    assert "[levels 7c2d9e1]" in shown


def test_the_folder_that_git_ran_in_takes_no_room() -> None:
    commit = ran("git -C /data/app commit -am 'Read gauges'", "[gauges 1a2b3c4] Read gauges")
    transcript = conversation(user("commit the gauges"), commit, says("Done."))
    assert "`git commit` → [gauges 1a2b3c4] Read gauges" in completed_of(
        transcript, "The work at the harbour goes on. " * 20
    )


SWEPT = conversation(
    user("Read the gauges of the barrier, and try the hook of git somewhere else."),
    call("Edit", "e1", file_path="/data/app/src/gauges.py", old_string="a", new_string="gauge_a"),
    answer("The file was updated.", "e1"),
    ran("cd /data/app && git commit -am 'Read gauges'", "[gauges 1a2b3c4] Read gauges"),
    ran("cd /tmp/try && git init && git commit -am 'Try the hook'", "[main (root-commit) 5d6e7f8] Try the hook"),
    ran("cd /data/crane && git commit -am 'Lift the crane'", "[main 9a8b7c6] Lift the crane"),
    ran("git stash && pytest -q tests/test_gauges.py", "Saved working directory\n3 passed in 0.1s"),
    ran("git stash pop", "On branch gauges\nYour branch is up to date with 'origin/gauges'."),
    says("The gauges are read."),
    cwd="/data/app",
)


def test_an_outcome_of_another_folder_names_it_and_what_was_tried_or_brought_back_is_none() -> None:
    found = completed_of(SWEPT, "The work at the harbour goes on. " * 20)
    assert [text for text in found if text.startswith("`git")] == [
        "`git commit` (/data/crane) → [main 9a8b7c6] Lift the crane",
        "`git commit` → [gauges 1a2b3c4] Read gauges",
    ]


def test_a_call_that_was_stopped_is_told_once_unless_the_text_only_names_it() -> None:
    refused = answer(
        "The user doesn't want to proceed with this tool use. The tool use was rejected.", "c", is_error=True
    )
    transcript = conversation(
        user("Who wrote the rule?"), call("Bash", "c", command="cat /etc/crane.rules"), refused, says("I stop.")
    )
    stop = "Stopped by the user: `cat /etc/crane.rules`"
    assert stop not in completed_of(transcript, "The user refused `cat /etc/crane.rules`: it is not to be read. " * 9)
    assert stop in completed_of(transcript, "Next is `cat /etc/crane.rules`, which shows who wrote the rule. " * 9)


LONG = (
    "Please bring the gauges of the harbour up to date before the next spring tide, all of them. "
    + " ".join(f"Gauge {n} is read by the crane of quay {n} and by nobody else." for n in range(12))
    + " Write to the office when it is done."
)


def test_a_request_that_the_earlier_summary_holds_without_its_middle_stands_once() -> None:
    transcript = conversation(user(LONG), says("The gauges are up to date."), user("Now the barrier, please."))
    cut = f"## The User's Words\n- {LONG[:200]} … {LONG[-60:]}"
    found = completed(
        replace(request(transcript, 3_000), read=read_ours),
        CompletedText(sections=(SectionItems(section=Section.TASK, items=(Item(text="The barrier is next. " * 20),)),)),
        "en",
        most_ratio=0.9,
        previous=cut,
    )
    assert sum("before the next spring tide" in text for text in items(found, Section.USER)) == 1


DECIDED = """## Key Decisions Resolved
- tides are stored in local time, because the harbour clock has no zone [4f1c2aa0:5]
- the merge of the gauges is done at once by the agent [4f1c2aa0:7]
- barrier_levels.csv keeps its header, which the crane controller expects [4f1c2aa0:9]"""


def test_a_decision_that_an_update_drops_comes_back_unless_text_or_user_have_to_do_with_it() -> None:
    text = "The gauges are pushed; barrier_levels.csv lost its header, since the crane controller is gone. " * 30
    found = completed(
        replace(request(PUSHED, 1_500), read=read_ours),
        CompletedText(sections=(SectionItems(section=Section.TASK, items=(Item(text=text),)),)),
        "en",
        previous=DECIDED,
    )
    settled = "tides are stored in local time, because the harbour clock has no zone [4f1c2aa0:5]"
    assert items(found, Section.DECISIONS) == [settled]


STATED = """## Commands and Outcomes
- `git commit -m 'Read the levels'` → ok: [levels 7c2d9e1] Read the levels [4f1c2aa0:5]
- `pytest tests/test_levels.py` → ok: 12 passed [4f1c2aa0:6]
- The levels of the sluice are in centimetres, since its sensor knows no metres. [4f1c2aa0:9]
- The gauges of the harbour are not pushed yet, and the crane still waits. [4f1c2aa0:11]"""


def test_of_earlier_facts_an_update_keeps_what_was_changed_and_what_nothing_since_has_to_do_with() -> None:
    found = updated(PUSHED, "The gauges of the harbour are pushed. " * 150, STATED)
    carried = [text for text in items(found, Section.COMMANDS) if "4f1c2aa0" in text]
    assert [text.partition(" [")[0] for text in carried] == [
        "`git commit -m 'Read the levels'` → ok:",
        "The levels of the sluice are in centimetres, since its sensor knows no metres.",
    ]


def test_a_text_without_a_history_gets_the_digests_with_its_requests() -> None:
    note = CompletedText(sections=(), prose="The note of the session.", missing=frozenset(Section))
    found = completed(request(PUSHED, 1_500), note, "en", most_ratio=1.0)
    history = "\n".join(items(found, Section.HISTORY))
    assert "Please bring the gauges up to date" in history
    assert "because the feed of the harbour office repeats its last line" in history
