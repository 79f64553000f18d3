"""Conversations for the tests of presets, and what a preset makes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import Compaction, compact_transcript, plan_transcript
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.plan import Plan
from compactor_cli.model.settings import Settings, Size, Trigger
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import count_messages, counter_for
from compactor_cli.presets import load_preset
from compactor_cli.read.jsonl import read_records

Chat = list[dict[str, Any]]

SYSTEM = {"role": "system", "content": "You are a careful coding agent."}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(key: str, name: str = "read_file", **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": key, "type": "function", "function": function}],
    }


def result(key: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": text}


def step(number: int, lines: int = 40) -> Chat:
    """A turn: asked, looked up by a tool, answered."""
    body = "\n".join(f"line {line} of module {number}: value = {number * line}" for line in range(lines))
    return [
        user(f"Please fix problem {number} in src/module_{number}.py."),
        call(f"c{number}", path=f"src/module_{number}.py"),
        result(f"c{number}", body),
        assistant(f"Fixed problem {number}: an off-by-one error in module_{number}."),
    ]


def chat(steps: int, lines: int = 40) -> Chat:
    return [SYSTEM, *(message for number in range(steps) for message in step(number, lines))]


def words(count: int, word: str = "water") -> str:
    return " ".join([word] * count)


def transcript(messages: Chat) -> Transcript:
    lines = [json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in messages]
    (found,) = open_transcripts(read_records(lines, "session.jsonl"))
    return found


def preset(name: str, *, target: int = 0, keep: dict[str, Any] | None = None, **trigger: Any) -> Settings:
    """The settings of a preset, its trigger changed so."""
    settings = load_preset(name).settings
    changed: Trigger = replace(settings.trigger, **trigger)
    return replace(settings, trigger=changed, target=Size(tokens=target), keep=replace(settings.keep, **(keep or {})))


def planned(messages: Chat, settings: Settings) -> Plan:
    return plan_transcript(transcript(messages), settings, counter=counter_for(settings.tokenizer))


def size(messages: Chat, settings: Settings) -> int:
    """The tokens of a conversation, as these settings count."""
    return sum(count_messages(counter_for(settings.tokenizer), transcript(messages).messages))


def compacted(messages: Chat, settings: Settings) -> tuple[Compaction, Chat]:
    done = compact_transcript(
        transcript(messages),
        settings,
        counter=counter_for(settings.tokenizer),
        summariser=Digest(),
        load_state=lambda name: None,
    )
    return done, [json.loads(line) for line in done.output.splitlines()]


def roles(messages: Chat) -> list[str]:
    return [message["role"] for message in messages]


def is_stable(messages: Chat, settings: Settings) -> bool:
    """Whether a second run changes nothing."""
    done, after = compacted(messages, settings)
    return done.changed and not compacted(after, settings)[0].changed
