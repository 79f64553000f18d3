"""Subagents: what they did to files counts, as their own records show it or as they report it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversation import (
    answer,
    call,
    conversation,
    digest,
    events_of,
    invented,
    ran,
    rendered,
    request,
    says,
    texts,
    user,
)

from compactor_cli.digest.analysis import analyse
from compactor_cli.digest.events import events
from compactor_cli.digest.file_lines import state_text
from compactor_cli.digest.files import file_operations, replay
from compactor_cli.digest.language import words_of
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message, Transcript
from compactor_cli.read.jsonl import read_records

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."
EDIT = {"file_path": "/data/app/tide.py", "old_string": "low = 1", "new_string": "low = min(levels)"}


def used(tool: str, number: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": number, "name": tool, "input": arguments}]


def came(number: str, text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": number, "content": text, **more}]


def as_progress(message: dict[str, Any]) -> dict[str, Any]:
    inner = {"type": message["role"], "message": message}
    return {"type": "progress", "data": {"type": "agent_progress", "message": inner}, "parentToolUseID": "task"}


def as_sidechain(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": message["role"], "isSidechain": True, "message": message}


def session(of_subagent: Any, *acts: list[dict[str, Any]], report: dict[str, Any]) -> Transcript:
    """A session whose subagent did these things, calls and results in turn, and reported."""
    contents: list[Any] = ["mend the tides", used("Task", "task", description="Mend the tides", prompt="Mend them.")]
    records = [{"type": role, "isSidechain": False} for role in ("user", "assistant")]
    records = [r | {"message": {"role": r["type"], "content": c}} for r, c in zip(records, contents, strict=True)]
    records += [
        of_subagent({"role": "user" if act[0]["type"] == "tool_result" else "assistant", "content": act})
        for act in acts
    ]
    records.append({"type": "user", "isSidechain": False, "message": {"role": "user", "content": [report]}})
    lines = []
    for number, record in enumerate(records):
        link = {
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "sessionId": "S",
            "cwd": "/data/app",
        }
        lines.append(json.dumps(record | link).encode() + b"\n")
    (transcript,) = open_transcripts(read_records(lines, "session.jsonl"))
    return transcript


def done(number: str, *more: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], ...]:
    return (used("Edit", number, **EDIT), came(number, "The file has been updated."), *more)


@pytest.mark.parametrize("of_subagent", [as_progress, as_sidechain])
def test_a_file_that_a_subagent_edited_is_edited_and_what_it_read_is_its_own_matter(of_subagent: Any) -> None:
    looked = (used("Read", "r", file_path="/data/app/moon.py"), came("r", "phase = 1"))
    transcript = session(of_subagent, *looked, *done("e"), report=came("task", "All is mended.")[0])
    one = digest(transcript)
    assert texts(one, Section.FILES) == ["tide.py — edited: `low = min(levels)`"]
    assert not invented(one, transcript) - {"tide.py"}


def test_what_the_user_said_while_a_subagent_worked_is_heard_after_it_reported() -> None:
    def told(message: dict[str, Any]) -> dict[str, Any]:
        is_said = message["content"][0]["type"] == "text"
        return {"type": "user", "message": message | {"role": "user"}} if is_said else as_progress(message)

    said = [{"type": "text", "text": "and then draw the moon"}]
    transcript = session(told, said, *done("e"), report=came("task", "All is mended.")[0])
    read = events(transcript, range(len(transcript.messages)), lambda *_: True)
    assert [event.text.partition("\n")[0] for event in read] == [
        "mend the tides",
        "Task",
        "Edit",
        "The file has been updated.",
        "All is mended.",
        "and then draw the moon",
    ]


def test_what_a_subagent_edited_before_the_user_stopped_it_stays() -> None:
    refused = session(as_progress, *done("e"), report=came("task", REFUSED, is_error=True)[0])
    one = digest(refused)
    assert texts(one, Section.FILES) == ["tide.py — edited: `low = min(levels)`"]
    assert any("`Task" in text for text in texts(one, Section.USER))


def test_an_edit_of_a_subagent_that_failed_did_nothing() -> None:
    failed = (used("Edit", "e", **EDIT), came("e", "<tool_use_error>not found</tool_use_error>", is_error=True))
    assert texts(digest(session(as_progress, *failed, report=came("task", "It failed.")[0])), Section.FILES) == []


def test_a_commit_that_a_subagent_made_holds_what_it_edited() -> None:
    commit = used("Bash", "c", command="git add tide.py && git commit -m 'Mend the tides'")
    made = came("c", "[tides 4f1c2aa] Mend the tides\n 1 file changed")
    one = digest(session(as_progress, *done("e", commit, made), report=came("task", "Committed.")[0]))
    assert texts(one, Section.FILES) == ["tide.py — edited, in commit 4f1c2aa"]
    assert texts(one, Section.PLAN) == []


REPORT = """## Summary
I read `store.py`. I have updated `src/clock.py` for it. The notes have been written to docs/clock.md.

### Files Created
1. **`src/zone.py`** (60 lines)
   - uses `utils.py`
2. `src/zone_test.py`

### Files Reviewed
- `moon.py`

Created in `src/tide.py`, lines 152-216 (`create_tide`)
"""


def reported(about: str) -> list[tuple[str, str]]:
    task = (call("Task", "t", description=about, prompt="Do it."), answer(REPORT, "t"))
    return sorted((one.path, one.action.value) for one in file_operations(events_of(task)))


def test_files_that_a_subagent_reports_to_have_written_are_edited() -> None:
    assert reported("Implement the zones") == [
        ("docs/clock.md", "create"),
        ("src/clock.py", "edit"),
        ("src/zone.py", "create"),
        ("src/zone_test.py", "create"),
    ]


@pytest.mark.parametrize(("own", "stated"), [(0, "edited"), (2, "edited ×2")])
def test_the_edits_of_a_file_are_counted_by_their_records(own: int, stated: str) -> None:
    task = call("Task", "t", description="Implement the zones", prompt="Do it."), answer(REPORT, "t")
    edits = [
        message
        for n in range(own)
        for message in (
            call("Edit", f"e{n}", file_path="src/clock.py", old_string=f"hand_{n}", new_string=f"dial_{n}"),
            answer("ok", f"e{n}"),
        )
    ]
    states = {one.path: one for one in replay(file_operations(events_of(*task, *edits)))}
    assert state_text(states["src/clock.py"], words_of("en")) == stated


def test_a_path_that_a_subagent_gives_from_its_own_folder_is_that_of_the_work_tree() -> None:
    known = call("Read", "r", file_path="app/src/moon.py"), answer("x = 1", "r")
    task = (call("Task", "t", description="Do it", prompt="Do it."), answer("Files modified:\n- `src/tide.py`", "t"))
    assert [one.path for one in file_operations(events_of(known, task))] == ["app/src/moon.py", "app/src/tide.py"]


def test_a_member_of_something_in_code_is_no_file_that_a_subagent_reports() -> None:
    report = "I modified `w.Write` to flush.\nI updated `clock.go`."
    task = (call("Task", "t", description="Do it", prompt="Do it."), answer(report, "t"))
    assert [one.path for one in file_operations(events_of(task))] == ["clock.go"]


def test_the_files_that_a_reviewer_lists_were_changed_by_somebody_else() -> None:
    assert [path for path, _ in reported("Review the zones")] == ["docs/clock.md", "src/clock.py"]


def test_a_line_that_is_gone_when_its_file_is_read_again_is_not_told_as_what_the_file_holds() -> None:
    edit = (call("Edit", "e", file_path="tide.py", old_string="", new_string="low = min(levels)\nhigh = max(levels)"),)
    again = call("Read", "r", file_path="tide.py")
    for text in ("high = max(levels)\nmean = 3", "low = 1\nhigh = max(levels)"):
        one = digest(conversation(user("mend it"), edit, answer("ok", "e"), again, answer(text, "r")))
        assert texts(one, Section.FILES) == ["tide.py — edited: `high = max(levels)`"]
    shown = ran("cat tide.py", "low = 1")
    assert texts(digest(conversation(user("mend it"), edit, answer("ok", "e"), shown)), Section.FILES) == [
        "tide.py — edited"
    ]


@pytest.mark.parametrize("text", ["File unchanged since last read.", "low = 1\n[... 40 lines truncated ...]"])
def test_a_reading_that_does_not_show_the_whole_file_says_nothing_of_its_other_lines(text: str) -> None:
    edit = (call("Edit", "e", file_path="tide.py", old_string="a", new_string="low = min(levels)"), answer("ok", "e"))
    again = (call("Read", "r", file_path="tide.py"), answer(text, "r"))
    assert texts(digest(conversation(user("mend it"), edit, again)), Section.FILES) == [
        "tide.py — edited: `low = min(levels)`"
    ]
    part = (call("Read", "r", file_path="tide.py", offset=90), answer("high = 2", "r"))
    assert "min(levels)" in texts(digest(conversation(user("mend it"), edit, part)), Section.FILES)[0]


def test_a_report_that_ends_with_the_file_that_it_names_is_read_to_its_end() -> None:
    task = (call("Task", "t", description="Mend it"), answer("Done.\n\n**File modified:** `src/tide.py`", "t"))
    assert [(one.path, one.action.value) for one in file_operations(events_of(task))] == [("src/tide.py", "edit")]


FINDINGS = (
    "The gauges are read in `read_gauges()`, which waits 40 ms. " + "It polls every harbour of the coast in turn. " * 9
)


def test_what_a_subagent_in_the_background_reports_is_told_under_its_task() -> None:
    begun = "Async agent launched successfully.\nagentId: a5a0533 (internal ID - do not mention to user.)\nIt works."
    task = call("Task", "t", description="Find the gauges", prompt="Find them.", run_in_background=True)
    notice = (
        "<task-notification>\n<task-id>a5a0533</task-id>\n<status>completed</status>\n"
        f'<summary>Agent "Find the gauges" completed</summary>\n<result>{FINDINGS}</result>\n</task-notification>'
    )
    one = digest(
        conversation(user("how are they read?"), *ran("make", "ok"), task, answer(begun, "t"), user(notice)), 2_000
    )
    text = rendered(one.summary)
    assert "The gauges are read in `read_gauges()`, which waits 40 ms." in text
    assert "Find the gauges" in text
    assert "internal ID" not in text
    assert "Async agent" not in text
    assert not any("background" in text for text in texts(one, Section.PLAN))


def _notice(status: str, said: str) -> Message:
    return user(
        f"<task-notification>\n<task-id>a5a0533</task-id>\n<status>{status}</status>\n{said}\n</task-notification>"
    )


def _set_to_work(about: str) -> tuple[Message, ...]:
    task = call("Task", "t", description=about, prompt="Do it.", run_in_background=True)
    return task, answer("Async agent launched successfully.\nagentId: a5a0533", "t")


def test_what_follows_the_report_of_an_agent_came_of_what_it_was_set_to_work_for() -> None:
    write = call("Write", "w", file_path="plans/tide.md", content="# Tide"), answer("ok", "w")
    talk = user("truncated storage, I mean"), says("Right, it holds the short form.")
    session = conversation(
        user("plan the tide tables of all of the harbours of the coast"),
        *_set_to_work("Plan the tables"),
        says("It is planned now."),
        *talk,
        _notice("completed", f"<result>{FINDINGS}</result>"),
        *write,
        says("All is planned."),
    )
    found = [one.text for one in analyse(request(session)).outcomes.values()]
    assert found == ["created tide.md"]


def test_that_an_agent_in_the_background_failed_is_stated_until_it_is_begun_again() -> None:
    failed = _notice("failed", '<summary>Agent "Plan the tables" failed: no such model</summary>')
    asked = user("plan the tables"), *_set_to_work("Plan the tables"), says("It is still running."), failed
    assert texts(digest(conversation(*asked, says("I go on."))), Section.PLAN) == [
        'Failed in the background: "Plan the tables"'
    ]
    committed = ran("git commit -m 'tables'", "[main 1a2b3c4] tables")
    for later in (_set_to_work("Plan the tables"), committed):
        again = digest(conversation(*asked, *later, says("I go on.")))
        assert not any("Failed" in text for text in texts(again, Section.PLAN))


def test_what_was_said_of_an_agent_that_ran_is_over_once_it_has_reported() -> None:
    waits = says("The tables of the north are done. The planner is still working, I review it when it reports.")
    over = _notice("completed", f"<result>{FINDINGS}</result>")
    asked = user("plan the tables"), *_set_to_work("Plan the tables")
    shown = rendered(digest(conversation(*asked, waits, over, says("All is planned now.")), 2_000).summary)
    assert "The tables of the north are done." in shown
    assert "still working" not in shown


def test_what_another_agent_of_the_team_says_is_told_as_its_own_and_what_its_client_says_is_not() -> None:
    idle = '<teammate-message teammate_id="pumps">\n{"type":"idle_notification","from":"pumps"}\n</teammate-message>'
    words = "Task 4 is complete: `PumpTable` holds the rates of both pumps, since one is replaced in March."
    sent = f'{idle}\n\n<teammate-message teammate_id="pumps" summary="Task 4">\n{words}\n</teammate-message>'
    one = digest(conversation(user("lead the team"), *ran("make", "ok"), user(sent), ran("make all", "ok")), 2_000)
    assert f"pumps: {words}" in "\n".join(texts(one, Section.HISTORY))
    assert "idle_notification" not in rendered(one.summary)
    assert texts(one, Section.TASK)[0] == "Asked: lead the team"


def test_a_member_of_a_team_works_for_whom_it_hears_from() -> None:
    def heard(words: str) -> Message:
        return user(f'<teammate-message teammate_id="team-lead">\n{words}\n</teammate-message>')

    asked = heard("Check the rates of pump 2."), *ran("make rates", "ok"), says("The rates of pump 2 hold.")
    later = heard("Check the rates of pump 3, too."), heard('{"type":"idle_notification"}'), says("I look at them.")
    first = texts(digest(conversation(*asked, *later)), Section.TASK)[0]
    assert first == "Asked (team-lead): Check the rates of pump 3, too."


def test_the_messages_of_agents_in_a_codex_session_are_not_the_users() -> None:
    def heard(kind: str, words: str) -> Message:
        return user(f"Message Type: {kind}\nTask name: /root\nSender: /root/pump_review\nPayload:\n{words}")

    asked = user("review the pumps")
    found = heard("FINAL_ANSWER", "`PumpTable` rounds the rates of both pumps down, since it divides before it adds.")
    sent = *ran("make", "ok"), heard("MESSAGE", ""), found, *ran("make all", "ok")
    one = digest(conversation(asked, *sent), 2_000)
    assert texts(one, Section.TASK)[0].startswith("Asked: review the pumps")
    assert "pump_review: `PumpTable` rounds the rates of both pumps down" in "\n".join(texts(one, Section.HISTORY))
    assert "Message Type" not in rendered(one.summary)


def test_what_a_subagent_shows_of_the_output_of_a_program_is_no_file_that_it_wrote() -> None:
    report = "The gauge answers so:\n\n```\n> write the tide\nCreated docs/tide.md.\n```\n\nI created `src/gauge.py`."
    task = call("Task", "t", description="Look at the gauge", prompt="Do it."), answer(report, "t")
    assert [one.path for one in file_operations(events_of(task))] == ["src/gauge.py"]


def test_a_list_of_running_agents_is_not_told() -> None:
    listed = json.dumps(
        {"agents": [{"agent_name": "/root/tide", "agent_status": {"completed": "The ebb is at noon."}}]}
    )
    asked = user("Have the tides looked up."), call("list_agents", "l"), answer(listed, "l"), says("They run.")
    assert "ebb is at noon" not in rendered(digest(conversation(*asked), 900).summary)
