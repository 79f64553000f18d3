from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import inserted, open_one

from compactor_cli.model.transcript import Role

TIME = "2026-01-01T00:00:00"


def said(role: str, text: str, number: int = 0, **more: Any) -> dict[str, Any]:
    known = {"created_at": f"{TIME}.{number:03d}", "group_id": None, "model": "gpt-4.1", "name": None, "role": role}
    empty = {"tool_call_id": None, "tool_calls": [], "tool_returns": [], "updated_at": TIME}
    return {**known, "content": [{"type": "text", "text": text}], **empty, **more}


def agent(*messages: Any, **more: Any) -> dict[str, Any]:
    indices = list(range(len(messages)))
    known = {"agent_type": "memgpt_agent", "llm_config": {"model": "gpt-4.1"}, "in_context_message_indices": indices}
    return {**known, "messages": list(messages), "name": "carpenter", **more}


def turns(count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for i in range(count):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "saw", "arguments": "{}"}}
        found += [said("assistant", "I saw.", i, tool_calls=[call]), said("tool", LONG, i, tool_call_id=f"c{i}")]
    return found


def test_what_is_not_in_context_is_not_shown() -> None:
    row = agent(said("system", "S"), said("user", "a", 1), said("user", "b", 2), in_context_message_indices=[0, 2])
    transcript = open_one(row)
    assert (transcript.dialect, transcript.model) == ("letta", "gpt-4.1")
    assert [found.superseded for found in transcript.messages] == [False, True, False]


def test_the_list_of_indices_fits_the_messages_that_stay() -> None:
    hidden = said("user", "Long ago.", 900)
    messages = [said("system", "S"), hidden, said("user", "Saw the oak.", 1), *turns(12), said("user", "On.", 999)]
    shown = [i for i in range(len(messages)) if i != 1]
    for indent in (None, 2):
        value = value_of(round_trip(agent(*messages, in_context_message_indices=shown), "letta", indent=indent))
        assert value["in_context_message_indices"] == list(range(len(value["messages"])))
        assert value["messages"][-1] == messages[-1]
        assert value["name"] == "carpenter"


def test_agents_of_a_newer_file_are_named_by_ids() -> None:
    messages = [said("system", "S", id="m-s"), said("user", "Saw.", id="m-u")]
    messages += [{**found, "id": f"m-{i}"} for i, found in enumerate(turns(12))]
    row = {"messages": [*messages, said("user", "On.", id="m-e")], "in_context_message_ids": ["m-s", "m-u", "m-e"]}
    row["in_context_message_ids"] = [found["id"] for found in row["messages"]]
    value = value_of(round_trip({"agents": [row], "groups": []}, "letta"))
    (compacted,) = value["agents"]
    assert compacted["in_context_message_ids"] == [found["id"] for found in compacted["messages"]]
    assert value["groups"] == []


def test_new_messages_have_all_keys() -> None:
    (summary,) = inserted(open_one(agent(said("system", "S"), said("user", "a"))), 1, "So far.")
    assert summary == said("user", "So far.")


def test_files_from_before_and_their_native_summary() -> None:
    told = '{"type": "system_alert", "message": "The following is a summary of the previous 9 messages: Oak."}'
    call = {"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}}
    old = {"model": "gpt-4", "messages": [{"role": "system", "content": "S"}, call], "messages_total": 2}
    old["messages"].append({"role": "user", "content": told})  # type: ignore[attr-defined]
    transcript = open_one(old)
    assert (transcript.dialect, transcript.messages[1].role) == ("letta", Role.ASSISTANT)
    assert transcript.messages[2].summary is not None
    assert transcript.messages[2].summary.origin == "letta"
