"""``at-phase``: a compaction waits for the end of a phase of the task, and starts there."""

from __future__ import annotations

from typing import Any

import pytest
from plan_builders import META, Words, exchanges, transcript

from compactor_cli.group.exchanges import group
from compactor_cli.model.plan import Plan
from compactor_cli.model.settings import Settings, Size, Start, Trigger
from compactor_cli.model.transcript import Message, Role, Text, ToolCall, ToolResult
from compactor_cli.plan.planner import make_plan
from compactor_cli.plan.trigger import ended_phase

ASK = "Now write the import of the ledger"


def user(text: str = ASK) -> Message:
    return Message(role=Role.USER, parts=(Text(text=text),))


def says(text: str = "The parser is written and tested.") -> Message:
    return Message(role=Role.ASSISTANT, parts=(Text(text=text),))


def todos(*states: str, number: str = "t", is_error: bool = False, tool: str = "TodoWrite") -> list[Message]:
    steps: list[dict[str, Any]] = [{"content": f"step {i}", "status": state} for i, state in enumerate(states)]
    asked = Message(role=Role.ASSISTANT, parts=(ToolCall(id=number, name=tool, arguments={"todos": steps}),))
    result = ToolResult(id=number, text="ok", is_error=is_error)
    return [asked, Message(role=Role.TOOL, parts=(result,))]


DONE, HALF = ("completed", "completed"), ("completed", "pending")
WORK = exchanges(2)


def test_to_dos_that_are_all_done_end_a_phase_until_other_work_begins() -> None:
    done = [user(), *todos(*HALF), *WORK, *todos(*DONE, number="u")]
    assert ended_phase(done) == "all 2 to-dos are done"
    assert ended_phase([*done, says(), META])
    assert ended_phase([*done, says(), user("go on")])
    assert not ended_phase([*done, says(), user("go on"), *exchanges(1, prefix="d")])


@pytest.mark.parametrize("tool", ["SetTodoList", "mcp__plans__todo_write", "update_plan"])
def test_the_list_may_be_any_agents(tool: str) -> None:
    assert ended_phase([user(), *todos(*DONE, tool=tool)])


def test_open_to_dos_and_failed_calls_end_nothing() -> None:
    assert not ended_phase([user(), *todos(*HALF), says(), user()])
    assert not ended_phase([user(), *todos(*HALF), *todos(*DONE, number="u", is_error=True)])


def test_a_list_that_takes_the_place_of_a_finished_one_ends_a_phase_until_its_work_begins() -> None:
    begun = [user(), *todos(*DONE), *todos("pending", "pending", "pending", number="u")]
    assert ended_phase(begun) == "2 to-dos are done and 3 others begin"
    assert not ended_phase([*begun, *WORK])


def test_a_new_request_after_a_finished_one_ends_a_phase() -> None:
    finished = [user(), *WORK, says()]
    assert ended_phase([*finished, user()]) == "a new request follows a finished one"
    assert ended_phase([*finished, user("现在请写账本的导入程序")])
    assert not ended_phase(finished)
    assert not ended_phase([*finished, user(), *exchanges(1, prefix="d")])


def test_replies_and_requests_in_the_middle_of_work_end_nothing() -> None:
    assert not ended_phase([user(), *WORK, says(), user("yes, go on")])
    assert not ended_phase([user(), *WORK, says("Which ledger do you mean?"), user("The one of the last year, please")])
    assert not ended_phase([user(), *WORK, user()])
    assert not ended_phase([user()])
    assert not ended_phase([])


def planned(messages: list[Message], *, target: int = 0, **trigger: Any) -> Plan:
    made = transcript(messages)
    settings = Settings(target=Size(tokens=target), trigger=Trigger(at_phase=True, **trigger))
    return make_plan(made, group(made.messages), settings, Words())


LONG = [user(), *exchanges(400, size=100)]


def test_a_compaction_waits_for_the_end_of_the_phase_and_says_so() -> None:
    waiting, due = planned(LONG, target=9_000), planned([*LONG, says(), user()], target=9_000)
    assert not waiting.changes
    assert waiting.reason == "the phase of the task goes on"
    assert not waiting.over_target
    assert due.changes
    assert due.reason.endswith("a new request follows a finished one")
    assert due.tokens_kept + due.summary_tokens <= 9_000


def test_pressure_does_not_wait_and_the_end_of_a_phase_not_for_pressure() -> None:
    assert planned(LONG, window_tokens=45_000).changes
    assert not planned(LONG, window_tokens=200_000).changes
    due = planned([*LONG, *todos(*DONE)], window_tokens=200_000)
    assert due.changes
    assert due.reason == "a phase of the task has ended: all 2 to-dos are done"


def test_a_preset_that_waits_to_be_asked_takes_the_end_of_a_phase_as_asking() -> None:
    assert planned([*LONG, *todos(*DONE)], start=Start.ASKED).changes
    assert not planned([*LONG, *todos(*DONE)], start=Start.NEVER).changes
