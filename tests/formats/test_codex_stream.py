"""What ``codex exec --json`` prints."""

from __future__ import annotations

from typing import Any

from made_sessions import SUMMARY, compacted, made, shown
from opening import open_one, open_values

from compactor_cli.digest.events import EventKind, events
from compactor_cli.formats.registry import get
from compactor_cli.group.exchanges import group
from compactor_cli.group.todos import State, TodoReplay
from compactor_cli.model.transcript import Role

STARTED = {"type": "thread.started", "thread_id": "019a2d7a-41c4-78b1-b7cc-a45d62a89cd5"}
TURN = {"type": "turn.started"}
ENDED = {"type": "turn.completed", "usage": {"input_tokens": 6040, "output_tokens": 129}}


def item(kind: str, number: int = 0, event: str = "completed", **values: Any) -> dict[str, Any]:
    return {"type": f"item.{event}", "item": {"id": f"item_{number}", "type": kind, **values}}


def command(line: str, output: str, **values: Any) -> dict[str, Any]:
    return item("command_execution", 1, command=line, aggregated_output=output, **values)


LISTED = command("bash -lc ls", "test.js\n", exit_code=0, status="completed")
BEGUN = item("command_execution", 1, "started", command="bash -lc ls", aggregated_output="", status="in_progress")
ANSWERED = item("agent_message", 2, text="There is test.js.")


def test_a_command_is_one_call_with_its_output_though_the_stream_names_it_twice() -> None:
    transcript = open_one(STARTED, TURN, item("reasoning", text="**Listing**"), BEGUN, LISTED, ANSWERED, ENDED)
    assert transcript.dialect == "codex-stream"
    assert shown(transcript) == ["shell(bash -lc ls)", "= test.js\n", "There is test.js."]
    assert len(group(transcript.messages).pairs) == 1
    roles = [message.role for message in transcript.messages]
    assert roles == [Role.META, Role.META, Role.ASSISTANT, Role.META, *[Role.ASSISTANT] * 2, Role.META]


def test_a_command_that_failed_is_an_error() -> None:
    failed = command("bash -lc 'exit 2'", "no such file", exit_code=2, status="failed")
    (result,) = open_one(STARTED, failed).messages[1].results
    assert result.is_error


def test_each_file_of_a_change_is_a_call_of_its_own() -> None:
    changes = [{"path": "/a/new.py", "kind": "add"}, {"path": "/a/old.py", "kind": "update"}]
    transcript = open_one(STARTED, item("file_change", changes=changes, status="completed"), ANSWERED)
    assert not group(transcript.messages).orphan_calls
    found = [event for event in events(transcript, range(3)) if event.kind is EventKind.CALL]
    assert [event.name for event in found] == ["write_file", "edit_file"]


def test_steps_that_are_done_are_not_open() -> None:
    steps = [{"text": "Reproduce", "completed": True}, {"text": "Fix", "completed": False}]
    (call,) = open_one(STARTED, item("todo_list", event="updated", items=steps)).messages[1].calls
    replay = TodoReplay()
    replay.call(call.name, call.arguments, "", 1)
    assert {todo.text: todo.state for todo in replay.todos.values()} == {"Reproduce": State.DONE, "Fix": State.OPEN}


def test_the_tool_of_a_server_is_called_by_its_name() -> None:
    content = {"content": [{"type": "text", "text": "closed"}]}
    asked = {"server": "tracker", "tool": "close_issue", "arguments": {"number": 4}}
    done = item("mcp_tool_call", **asked, result=content, error=None, status="completed")
    failed = item("mcp_tool_call", **asked, result=None, error={"message": "no such issue"}, status="failed")
    transcript = open_one(STARTED, done, failed)
    assert shown(transcript) == ["close_issue({'number': 4})", "= closed", *shown(transcript)[2:3], "= no such issue"]
    assert [message.results[0].is_error for message in transcript.messages[1:]] == [False, True]


def test_why_a_turn_failed_is_shown() -> None:
    failed = {"type": "turn.failed", "error": {"message": "You have hit your usage limit."}}
    assert shown(open_one(STARTED, TURN, failed)) == ["You have hit your usage limit."]


def test_streams_of_several_runs_are_sessions_of_their_own() -> None:
    assert len(open_values(STARTED, TURN, ANSWERED, ENDED, STARTED, TURN, ANSWERED)) == 2


def test_a_summary_takes_the_place_of_what_was_removed() -> None:
    dialect = get("codex-stream")
    transcript = compacted(dialect, made(dialect, [STARTED, TURN, BEGUN, LISTED, ANSWERED, ENDED]), 2, 4)
    assert shown(transcript) == [SUMMARY.text, "There is test.js."]


def early(kind: str, **values: Any) -> dict[str, Any]:
    """An item as the first versions wrote it."""
    return {"type": "item.completed", "item": {"id": "item_9", "item_type": kind, **values}}


def test_items_of_the_first_versions_are_read_and_the_summary_is_one() -> None:
    ran = early("command_execution", command="npm test", exit_code=1)
    changed = early("file_change", changes=[{"path": "lib/oak.js"}])
    transcript = open_one(
        STARTED, TURN, early("reasoning", text="Why"), ran, changed, early("assistant_message", text="Oak.")
    )
    assert transcript.dialect == "codex-stream"
    assert shown(transcript)[0] == "shell(npm test)"
    assert shown(transcript)[-1] == "Oak."
    assert transcript.messages[3].results[0].is_error
    found = group(transcript.messages)
    assert len(found.pairs) == 2
    assert not found.orphan_calls
    after = compacted(get("codex-stream"), transcript, 0, 4)
    assert after.messages[0].text == SUMMARY.text
    assert "item_type" in after.records[0].value["item"]


def test_an_agent_that_was_sent_off_is_a_call_with_its_answer() -> None:
    states = {"t2": {"status": "completed", "message": "tests added"}}
    spawned = item("collab_tool_call", tool="spawn_agent", prompt="Write tests", agents_states=states)
    transcript = open_one(STARTED, spawned, ANSWERED)
    assert shown(transcript)[0] == "spawn_agent(Write tests)"
    assert "tests added" in shown(transcript)[1]
