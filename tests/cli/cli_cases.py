"""Transcripts written for these tests, and the command line of a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: bytes
    err: str


Run = Callable[..., Ran]


def conversation(steps: int) -> list[dict[str, Any]]:
    """A system message and this many steps: asked, looked up by a tool, answered."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a careful coding agent."}]
    for step in range(steps):
        call = {"name": "read_file", "arguments": json.dumps({"path": f"src/module_{step}.py"})}
        lines = "\n".join(f"line {line} of module {step}: value = {step * line}" for line in range(30))
        messages += [
            {"role": "user", "content": f"Please fix problem {step} in src/module_{step}.py, it matters to us."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{step}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{step}", "content": lines},
            {"role": "assistant", "content": f"Fixed problem {step}: an off-by-one error in module_{step}."},
        ]
    return messages


def session_bytes(steps: int = 12) -> bytes:
    """A session: a message a line, spaced as no serialiser would."""
    return b"".join(json.dumps(message, separators=(" , ", " : ")).encode() + b"\n" for message in conversation(steps))


def dataset_bytes(rows: int = 5, steps: int = 6) -> bytes:
    """A dataset: a conversation a line, with keys of its own."""
    lines = ({"id": row, "messages": conversation(steps + row), "license": "MIT"} for row in range(rows))
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def command(*arguments: object, entry: str = "compact") -> list[str]:
    """The command line of a process of its own."""
    code = f"from compactor_cli.__main__ import {entry}; {entry}()"
    return [sys.executable, "-c", code, *map(str, arguments)]
