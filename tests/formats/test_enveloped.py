from __future__ import annotations

import json
from typing import Any

import pytest
from compaction import LONG
from opening import inserted, message, open_one, open_values, shortened

from compactor_cli import compact
from compactor_cli.model.transcript import Role, Text, ToolCall, ToolResult


def calls(steps: int) -> list[dict[str, Any]]:
    """A chat in which every answer looks something up."""
    messages: list[dict[str, Any]] = []
    for step in range(steps):
        function = {"name": "look", "arguments": json.dumps({"step": step})}
        messages += [
            {"role": "user", "content": f"Step {step}, please."},
            {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{step}", "function": function}]},
            {"role": "tool", "tool_call_id": f"c{step}", "content": f"{step} {LONG}"},
            {"role": "assistant", "content": f"Step {step} is done."},
        ]
    return messages


@pytest.mark.parametrize("key", ["message", "msg", "data", "payload", "body", "entry", "record", "event"])
def test_a_log_whose_lines_hold_the_messages_is_compacted_and_its_pairs_stay_whole(key: str) -> None:
    lines = [{"session": "s", "started": 1}, *({"ts": i, key: told} for i, told in enumerate(calls(8))), {"ended": 2}]
    source = "".join(json.dumps(line, separators=(" ,", ": ")) + "\n" for line in lines)
    result = compact(source, "30%")
    assert (result.report.dialect, result.changed) == ("enveloped", True)
    kept = result.messages.splitlines()
    told = [json.loads(line)[key] for line in kept if key in json.loads(line)]
    asked = {call["id"] for one in told for call in one.get("tool_calls", ())}
    assert asked == {one["tool_call_id"] for one in told if one["role"] == "tool"}
    assert len([line for line in kept if line not in source.splitlines()]) == 1
    assert compact(result.messages, "30%").messages == result.messages


def test_calls_and_results_are_read_where_they_stand_and_shortened_there() -> None:
    asked = {"ts": 1, "data": {"role": "assistant", "content": "Hm.", "tool_calls": [{"id": "c", "name": "look"}]}}
    told = {"at": "noon", "data": {"role": "tool", "tool_call_id": "c", "content": LONG}}
    assert message("enveloped", asked).parts == (Text(text="Hm."), ToolCall(id="c", name="look", arguments=""))
    assert message("enveloped", told).parts == (ToolResult(id="c", text=LONG),)
    assert shortened("enveloped", told, {0: "…"}) == {"at": "noon", "data": {**told["data"], "content": "…"}}


def test_a_summary_has_the_time_of_the_line_before_it_and_what_all_lines_say() -> None:
    lines = [
        {"id": f"r{i}", "type": told["role"], "session": "s", "ts": f"2026-01-0{i + 1}", "cost": i, "msg": told}
        for i, told in enumerate(calls(1))
    ]
    transcript = open_one(*lines)
    (written,) = inserted(transcript, 2, "S")
    assert len(written.pop("id")) == 24
    summary = {"role": "user", "content": "S"}
    assert written == {"type": "user", "session": "s", "ts": "2026-01-02", "msg": summary}
    assert transcript.messages[0].timestamp == "2026-01-01"


def test_messages_without_an_envelope_and_lines_without_a_message_are_not_taken_for_it() -> None:
    (transcript,) = open_values(*calls(2))
    assert transcript.dialect == "openai-chat"
    lines = [{"ts": 0, "data": {"cpu": 3}}, *({"ts": 1, "data": told} for told in calls(1))]
    assert [found.role for found in open_one(*lines).messages][:2] == [Role.META, Role.USER]
