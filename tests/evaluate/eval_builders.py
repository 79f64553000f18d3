"""Small transcripts and cases with known answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from compactor_cli.evaluate.cuts import CutProtocol, EvalCase, plain_events, schema_words
from compactor_cli.model.errors import Place
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


def count_words(text: str) -> int:
    """A tokenizer that can be followed by eye."""
    return len(text.split())


def user(text: str) -> Message:
    return Message(role=Role.USER, parts=(Text(text=text),))


def assistant(text: str, *calls: ToolCall) -> Message:
    said: tuple[Part, ...] = (Text(text=text),) if text else ()
    return Message(role=Role.ASSISTANT, parts=(*said, *calls))


def call(name: str, number: int = 0, /, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"c{number}", name=name, arguments=arguments)


def result(text: str, number: int = 0, *, is_error: bool = False) -> Message:
    return Message(role=Role.TOOL, parts=(ToolResult(id=f"c{number}", text=text, is_error=is_error),))


def summary(text: str) -> Message:
    previous = PreviousSummary(origin="compact", text=text)
    return Message(role=Role.USER, parts=(Text(text=text),), summary=previous)


def transcript(messages: Sequence[Message], value: Mapping[str, Any] | None = None) -> Transcript:
    records = tuple(
        Record(raw=orjson.dumps({"n": i}), ending=b"\n", value=value or {"n": i}, place=Place(path="-", line=i + 1))
        for i in range(len(messages))
    )
    return Transcript(dialect="openai-chat", records=records, messages=tuple(messages))


def case(
    middle: Sequence[Message],
    future: Sequence[Message] = (),
    *,
    head: Sequence[Message] = (),
    tail: Sequence[Message] = (),
) -> EvalCase:
    """A case with these stretches; sizes are of `count_words`."""
    prefix = transcript((*head, *middle, *tail))
    whole = transcript((*prefix.messages, *future))
    found = plain_events(whole)
    at, start, stop = len(prefix.messages), len(head), len(head) + len(middle)
    return EvalCase(
        session="session",
        dialect="openai-chat",
        protocol=CutProtocol.SESSION,
        prefix=prefix,
        head=tuple(range(start)),
        middle=tuple(range(start, stop)),
        tail=tuple(range(stop, at)),
        middle_tokens=sum(count_words(event.text) for event in found if start <= event.record < stop),
        kept_tokens=sum(count_words(event.text) for event in found if not start <= event.record < stop),
        prefix_events=tuple(event for event in found if event.record < at),
        future_events=tuple(event for event in found if event.record >= at),
        schema=schema_words(found),
    )
