"""Small transcripts for the tests of planning."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from compactor_cli.model.errors import Place
from compactor_cli.model.marker import Marker
from compactor_cli.model.transcript import (
    Message,
    Part,
    PreviousSummary,
    Record,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Transcript,
)

META = Message(role=Role.META)
UNREAD = Message(role=Role.META, is_unread=True)


class Words:
    """One token a word: sizes in tests can be read off."""

    method = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def words(count: int, word: str = "w") -> str:
    return " ".join([word] * count)


def says(role: Role, size: int, **more: object) -> Message:
    return Message(role=role, parts=(Text(text=words(size)),), **more)  # type: ignore[arg-type]


def system(size: int = 10) -> Message:
    return says(Role.SYSTEM, size)


def user(size: int = 10) -> Message:
    return says(Role.USER, size)


def assistant(size: int = 10) -> Message:
    return says(Role.ASSISTANT, size)


def call(key: str, size: int = 4) -> Message:
    part = ToolCall(id=key, name="run", arguments=words(size))
    return Message(role=Role.ASSISTANT, parts=(part,))


def answer(key: str, size: int = 10, **more: object) -> Message:
    return Message(role=Role.TOOL, parts=(ToolResult(id=key, text=words(size)),), **more)  # type: ignore[arg-type]


def summary(text: str = "what was before", origin: str = "pi") -> Message:
    return Message(role=Role.USER, parts=(Text(text=text),), summary=PreviousSummary(origin=origin, text=text))


def ours(tokens: int, end: str, size: int = 50) -> Message:
    marker = Marker(transcript="0" * 16, first=2, last=9, records=12, tokens=tokens, end=end)
    return summary(f"{marker}\n{words(size)}", origin="compact")


def exchanges(count: int, size: int = 50, prefix: str = "c") -> list[Message]:
    return [m for i in range(count) for m in (call(f"{prefix}{i}"), answer(f"{prefix}{i}", size))]


def transcript(messages: Sequence[Message], model: str = "") -> Transcript:
    records = tuple(
        Record(
            raw=json.dumps([i, _shape(m.parts)]).encode(), ending=b"\n", value=None, place=Place(path="t", line=i + 1)
        )
        for i, m in enumerate(messages)
    )
    sha256 = hashlib.sha256(b"".join(r.raw for r in records)).hexdigest()
    return Transcript(dialect="test", records=records, messages=tuple(messages), sha256=sha256, model=model)


def _shape(parts: Sequence[Part]) -> list[str]:
    return [str(part) for part in parts]


def hash_of(made: Transcript, index: int) -> str:
    return hashlib.sha256(made.records[index].raw).hexdigest()[:16]
