from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import open_one


def session(*messages: Any) -> dict[str, Any]:
    known = {"session_id": "s", "model": "gpt-5.2", "session_start": "2026-04-29T20:00:00Z"}
    return {**known, "message_count": len(messages), "messages": list(messages)}


def turn(number: int) -> list[dict[str, Any]]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "shell", "arguments": '{"command":"ls"}'}}
    asked = {"role": "assistant", "content": "I look.", "tool_calls": [call], "codex_reasoning_items": []}
    return [asked, {"role": "tool", "content": LONG, "tool_call_id": f"c{number}", "tool_name": "shell"}]


def test_the_number_of_messages_is_right_after_a_compaction() -> None:
    messages = [{"role": "user", "content": "Saw."}, *(part for i in range(12) for part in turn(i))]
    value = value_of(round_trip(session(*messages, {"role": "user", "content": "On."}), "hermes-session", indent=2))
    assert value["message_count"] == len(value["messages"]) < len(messages)


def test_a_session_names_its_model() -> None:
    transcript = open_one(session({"role": "user", "content": "Saw."}, *turn(1)))
    assert (transcript.dialect, transcript.model) == ("hermes-session", "gpt-5.2")
    assert transcript.messages[2].results[0].name == "shell"
