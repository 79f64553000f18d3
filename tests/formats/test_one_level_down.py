"""Conversations that stand deeper in a document than most: in logs of requests, reports of errors and exports."""

from __future__ import annotations

from typing import Any

import pytest
from compaction import LONG, round_trip, value_of
from opening import shortened

CHAT = [{"role": ("user", "assistant")[i % 2], "content": f"{i} {LONG}"} for i in range(12)]
CONTENTS = [{"role": ("user", "model")[i % 2], "parts": [{"text": f"{i} {LONG}"}]} for i in range(12)]
THOUGHT = [
    {"role": "user", "content": f"{i} {LONG}"}
    if i % 2 == 0
    else {"role": "assistant", "content": [{"type": "thinking", "thinking": "why"}, {"type": "text", "text": LONG}]}
    for i in range(12)
]
SIMULATED = [{**message, "turn_idx": i, "tool_calls": None} for i, message in enumerate(CHAT)]


def events() -> list[dict[str, Any]]:
    """The history of an OpenHands resolver's row."""
    found: list[dict[str, Any]] = [
        {"source": "user", "message": "Fix it.", "action": "message", "args": {"content": "Fix the issue."}}
    ]
    for _ in range(10):
        run = {"source": "agent", "message": "Running", "action": "run", "args": {"command": "ls", "thought": ""}}
        seen = {"source": "agent", "message": "ran", "observation": "run", "content": LONG, "extras": {"command": "ls"}}
        found += [run, {**seen, "cause": len(found)}]
    return [{"id": i, "timestamp": "2026-01-01T00:00:00", **event} for i, event in enumerate(found)]


def exported(number: int) -> dict[str, Any]:
    """A message of an export of claude.ai."""
    text = f"{number} {LONG}"
    blocks = [{"type": "text", "text": text, "citations": []}]
    envelope = {"uuid": f"m{number}", "created_at": "2026-01-01T00:00:00Z", "attachments": [], "files": []}
    return {**envelope, "text": text, "content": blocks, "sender": ("human", "assistant")[number % 2]}


def test_an_export_of_claude_ai_is_read_and_its_blocks_stay_what_its_texts_are() -> None:
    conversation = {
        "uuid": "c",
        "name": "n",
        "account": {"uuid": "a"},
        "chat_messages": [exported(i) for i in range(12)],
    }
    (short,) = value_of(round_trip([conversation], "dialogue"))
    assert len(short["chat_messages"]) < 12
    cut = shortened("dialogue", exported(0), {0: "0 …"})
    assert (cut["text"], cut["content"]) == ("0 …", [{"type": "text", "text": "0 …"}])


@pytest.mark.parametrize(
    ("dialect", "value", "path"),
    [
        ("openai-chat", {"llm_interactions": [{"request_params": {"model": "m", "messages": CHAT}}]}, None),
        ("openai-chat", {"request_params": {"model": "m", "messages": CHAT}}, ("request_params", "messages")),
        ("openai-chat", {"conversation": {"id": "c", "messages": CHAT}, "user": 1}, ("conversation", "messages")),
        ("tau", {"simulation_run": {"id": "r", "messages": SIMULATED}}, ("simulation_run", "messages")),
        ("gemini-contents", {"systemInstruction": {"parts": [{"text": "s"}]}, "messages": CONTENTS}, ("messages",)),
        ("gemini-contents", {"error": {"message": "m", "stack": "s"}, "context": CONTENTS}, ("context",)),
        ("openhands", {"issue": {"number": 1}, "instruction": "i", "history": events(), "success": True}, ("history",)),
        ("openai-chat", {"task": 7, "trajectory": CHAT, "reward": 1.0}, ("trajectory",)),
        ("openai-chat", {"session": "s", "turns": CHAT}, ("turns",)),
        ("openai-chat", {"data": {"messages": CHAT, "id": 1}, "ok": True}, ("data", "messages")),
        ("anthropic", {"task": 7, "trajectory": THOUGHT}, ("trajectory",)),
    ],
    ids=[
        "interactions of SWE-agent",
        "one interaction",
        "export",
        "tau2 run",
        "Vertex tuning",
        "Gemini error report",
        "OpenHands resolver",
        "trajectory of a chat",
        "turns of a chat",
        "answer of a server",
        "trajectory of Anthropic's messages",
    ],
)
def test_a_conversation_one_level_down_is_compacted_where_it_stands(
    dialect: str, value: dict[str, Any], path: tuple[str, ...] | None
) -> None:
    short = value_of(round_trip(value, dialect))
    assert list(short) == list(value)
    if path is None:
        path, value, short = ("request_params", "messages"), value["llm_interactions"][0], short["llm_interactions"][0]
    for key in path[:-1]:
        assert {k: v for k, v in short.items() if k != key} == {k: v for k, v in value.items() if k != key}
        value, short = value[key], short[key]
    assert len(short[path[-1]]) < len(value[path[-1]])
    assert {k: v for k, v in short.items() if k != path[-1]} == {k: v for k, v in value.items() if k != path[-1]}


def session(*keys: str) -> list[dict[str, Any]]:
    """Records of Claude Code with these keys of their envelope; bookkeeping before the first."""
    kinds = ("user", "assistant")
    records = [
        {
            "uuid": f"u{i}",
            "parentUuid": f"u{i - 1}" if i else None,
            "sessionId": "S",
            "isSidechain": False,
            "type": kinds[i % 2],
            "timestamp": f"2026-01-01T00:00:{i:02d}.000Z",
            "message": {"role": kinds[i % 2], "content": f"{i} {LONG}"},
        }
        for i in range(12)
    ]
    wanted = {"type", "timestamp", "message", *keys}
    first = [{"type": "file-history-snapshot", "snapshot": {}, "messageId": "u0"}] if keys else []
    return [*first, *({key: value[key] for key in value if key in wanted} for value in records)]


@pytest.mark.parametrize("keys", [(), ("uuid", "parentUuid", "sessionId", "isSidechain")], ids=["bare", "linked"])
def test_a_session_of_claude_code_in_one_array_is_compacted_there(keys: tuple[str, ...]) -> None:
    for value in (session(*keys), {"loglines": session(*keys)}):
        again = round_trip(value, "claude-code", indent=2)
        short = value_of(again)
        assert type(short) is type(value)
        spoken = [message for message in again.messages if message.text]
        assert 2 <= len(spoken) < 12
        assert not any(message.superseded for message in spoken)
