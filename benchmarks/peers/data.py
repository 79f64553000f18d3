"""Transcripts in which what a tool keeps can be counted: words that stand nowhere else.

A user message holds ``ask-N``, a tool result ``result-N`` in its middle, an error ``fault-N``; edited files have
names of their own. What of these is found in an output was kept, word for word or in a summary.
"""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from make import Story

FAULT_SHARE = 1 / 12
EDITED_FILES = 300
MARKS = {
    "user messages": re.compile(rb"\bask-\d{6}\b"),
    "tool results": re.compile(rb"\bresult-\d{6}\b"),
    "errors": re.compile(rb"\bfault-\d{6}\b"),
    "edited paths": re.compile(rb"\bsrc/part_\d{3}/[a-z_]+\.py\b"),
}


def marks(data: bytes) -> dict[str, frozenset[bytes]]:
    """The words that tell what is there."""
    return {name: frozenset(mark.findall(data)) for name, mark in MARKS.items()}


def messages(seed: int, size_bytes: int, first: int = 0) -> Iterator[dict[str, Any]]:
    """Messages in OpenAI's shape with marks, numbered from ``first``; ``is_error`` on results that failed."""
    story = Story(seed)
    for number, message in enumerate(story.messages(size_bytes), first):
        if message["role"] == "user":
            message["content"] += f" (ask-{number:06})"
        elif message["role"] == "tool":
            _mark_result(story, message, number)
        for call in message.get("tool_calls", ()):
            _mark_call(story, call["function"])
        yield message


def _mark_result(story: Story, message: dict[str, Any], number: int) -> None:
    lines = message["content"].split("\n")
    lines.insert(len(lines) // 2, f"# result-{number:06}")
    if story.random.random() < FAULT_SHARE:
        lines.append(f"E   AssertionError: fault-{number:06}: expected {number} rows, got 0")
        message["is_error"] = True
    message["content"] = "\n".join(lines)


def _mark_call(story: Story, function: dict[str, Any]) -> None:
    if function["name"] == "edit_file":
        part = story.random.randrange(EDITED_FILES)
        stem = story.names[part].rstrip("0123456789_")
        arguments = {**orjson.loads(function["arguments"]), "path": f"src/part_{part:03}/{stem}.py"}
        function["arguments"] = orjson.dumps(arguments).decode()


def write_claude_session(path: Path, size_bytes: int) -> None:
    """A Claude Code session of this size."""
    parent: str | None = None
    with path.open("wb") as file:
        for number, message in enumerate(messages(1, size_bytes * 3 // 4)):
            if message["role"] == "system":
                continue
            record = _claude_record(message, number, parent)
            parent = record["uuid"]
            file.write(orjson.dumps(record) + b"\n")


def _claude_record(message: dict[str, Any], number: int, parent: str | None) -> dict[str, Any]:
    minutes, seconds = divmod(number, 60)
    role = "assistant" if message["role"] == "assistant" else "user"
    fields: dict[str, Any] = {"role": role, "content": _claude_content(message)}
    if role == "assistant":
        usage = {"input_tokens": 1_000, "output_tokens": 50}
        fields = {"id": f"msg_{number:08}", "type": "message", "model": "claude-sonnet-4-5", **fields, "usage": usage}
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/dev/project",
        "sessionId": str(uuid.uuid5(uuid.NAMESPACE_OID, "session")),
        "version": "2.1.100",
        "type": role,
        "message": fields,
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_OID, str(number))),
        "timestamp": f"2026-03-{1 + minutes // 1440:02}T{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}.000Z",
    }


def _claude_content(message: dict[str, Any]) -> str | list[dict[str, Any]]:
    if message["role"] == "user":
        return str(message["content"])
    if message["role"] == "tool":
        is_error = message.get("is_error", False)
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return [{**result, "is_error": is_error}]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message["content"]}]
    for call in message.get("tool_calls", ()):
        name = {"read_file": "Read", "bash": "Bash", "edit_file": "Edit"}[call["function"]["name"]]
        given = orjson.loads(call["function"]["arguments"])
        if "path" in given:
            given["file_path"] = given.pop("path")
        blocks.append({"type": "tool_use", "id": call["id"], "name": name, "input": given})
    return blocks


def write_trajectories(path: Path, rows: int) -> None:
    """Rows in the shape of Hermes' trajectories, of 80 to 160 KB each: all of them over that tool's target."""
    with path.open("wb") as file:
        first = 0
        for seed in range(1, rows + 1):
            made = list(messages(seed, 80_000 + 160 * (seed * 37 % 500), first))
            first += len(made)
            file.write(orjson.dumps({"id": seed, "conversations": list(map(_turn, made))}) + b"\n")


def _turn(message: dict[str, Any]) -> dict[str, str]:
    speaker = {"system": "system", "user": "human", "assistant": "gpt", "tool": "tool"}[message["role"]]
    value = message["content"]
    for call in message.get("tool_calls", ()):
        asked = {"name": call["function"]["name"], "arguments": orjson.loads(call["function"]["arguments"])}
        value += f"\n<tool_call>\n{orjson.dumps(asked).decode()}\n</tool_call>"
    if speaker == "tool":
        answered = orjson.dumps({"tool_call_id": message["tool_call_id"], "content": value}).decode()
        value = f"<tool_response>\n{answered}\n</tool_response>"
    return {"from": speaker, "value": value}
