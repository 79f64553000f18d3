"""A conversation from elsewhere, written as a session of a client, is resumed by that client whole."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from lab import client, resumed, transcripts

from compactor_cli.render.convert import convert

CALLS = [
    {"id": f"call_{n}", "type": "function", "function": {"name": "Bash", "arguments": json.dumps({"command": "ls"})}}
    for n in (1, 2)
]
ROW = {
    "messages": [
        {"role": "system", "content": "You are careful."},
        {"role": "user", "content": "ASKED-ONE"},
        {"role": "assistant", "content": "SAID-ONE", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "call_1", "content": "TOLD-ONE"},
        {"role": "tool", "tool_call_id": "call_2", "content": "TOLD-TWO"},
        {"role": "assistant", "content": "SAID-TWO"},
        {"role": "user", "content": "ASKED-TWO"},
        {"role": "assistant", "content": "SAID-THREE"},
    ]
}
ORDER = ["ASKED-ONE", "SAID-ONE", "TOLD-ONE", "TOLD-TWO", "SAID-TWO", "ASKED-TWO", "SAID-THREE"]


@pytest.mark.parametrize(
    ("name", "dialect"), [("claude", "claude-code"), ("codex", "codex"), ("pi", "pi"), ("gemini", "gemini-cli")]
)
def test_a_converted_conversation_is_sent_whole(name: str, dialect: str, tmp_path: Path) -> None:
    found = client(name)
    row = tmp_path / "row.jsonl"
    row.write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    (transcript,) = transcripts(row)
    session = tmp_path / "session.jsonl"
    # pi insists that the folder of a session is there.
    data = convert(transcript, dialect).output.decode().replace('"cwd":"/"', f'"cwd":"{found("-check").cwd}"')
    session.write_text(data, encoding="utf-8")
    sent = resumed(name, session).text
    assert re.findall(r"(?:ASKED|SAID|TOLD)-[A-Z]+", sent) == ORDER
