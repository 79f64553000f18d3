from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import inserted, open_one

from compactor_cli.model.transcript import Role


def said(text: str, name: str, role: str = "user") -> dict[str, Any]:
    return {"content": text, "role": role, "name": name}


def row(*history: Any) -> dict[str, Any]:
    return {"question": "How long?", "history": list(history), "mistake_agent": "Saw_Expert", "mistake_step": "1"}


TASK = said("You are given a task.", "Saw_Expert", "assistant")


def test_the_task_is_the_user_s_and_the_rest_the_agents() -> None:
    transcript = open_one(row(TASK, said("I saw.", "Saw_Expert"), said("exitcode: 0", "Computer_terminal")))
    assert transcript.dialect == "who-when"
    assert [found.role for found in transcript.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]


def test_roles_that_are_names() -> None:
    thought = {"content": "Plan.", "role": "Orchestrator (thought)"}
    transcript = open_one(row({"content": "How long?", "role": "human"}, thought))
    assert [found.role for found in transcript.messages] == [Role.USER, Role.ASSISTANT]
    assert inserted(transcript, 1, "So far.") == [{"content": "So far.", "role": "human"}]


def test_the_summary_has_a_name_of_its_own() -> None:
    turns = [said(f"{i} {LONG}", "Saw_Expert") for i in range(14)]
    value = value_of(round_trip(row(TASK, *turns), "who-when", indent=4))
    assert {found["name"] for found in value["history"]} == {"Saw_Expert", "summary"}
    assert value["mistake_step"] == "1"
