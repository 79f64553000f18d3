"""Conversion: a transcript written in another dialect, with what could not be carried counted by name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from compactor_cli.formats.base import NAMES, Capabilities
from compactor_cli.formats.blocks import is_image
from compactor_cli.formats.conversation import Conversation, Writing
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.registry import all_dialects, get
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import InputError, InvariantError, UsageError
from compactor_cli.model.transcript import (
    Media,
    Message,
    Part,
    Record,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Transcript,
)
from compactor_cli.read.jsonl import read_records
from compactor_cli.render.to_conversation import extra_of, to_conversation

OPAQUE = "opaque content"
IMAGES_IN_RESULTS = "images in results"
BOOKKEEPING = "bookkeeping records"
ORPHANS = "calls and results without their other half"
NOT_SENT = "messages that were no longer sent"
_USAGE_KEYS = frozenset({"usage", "usageMetadata", "usage_metadata", "token_count", "tokens", "metrics"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A transcript in another dialect: its bytes, and how much of what they do not hold, by name."""

    output: bytes
    not_carried: Mapping[str, int]


def writable() -> tuple[str, ...]:
    """The names of the dialects that can be written from nothing."""
    return tuple(dialect.name for dialect in all_dialects() if isinstance(dialect, Writing))


def check_writable(name: str) -> None:
    """Raise UsageError unless a conversation can be written in this dialect."""
    if not isinstance(get(name), Writing):
        what = f"a session of the format {name} cannot be written from nothing"
        raise UsageError(what, next_step=f"these can: {', '.join(writable())}, markdown, text")


def convert(transcript: Transcript, name: str) -> Conversion:
    """The transcript in the dialect of this name: whole lines, in the order in which its client sends it.

    Guarantees: the output is read as that dialect, and holds no call without its result but those that the
    transcript ends on. Deterministic. Raises UsageError for a dialect that cannot be written.
    """
    check_writable(name)
    dialect = get(name)
    assert isinstance(dialect, Writing)  # noqa: S101 -- for the type checker
    whole = to_conversation(transcript)
    conversation, dropped = fitted(whole, dialect.holds & ~dialect.unwritten)
    dropped += _not_carried(transcript, whole)
    dropped += _adjacent(transcript, dialect.holds & ~dialect.unwritten)
    output = _lines(dialect.write(conversation))
    if not _is_read_as(name, output):
        # Keys of the row make it look like another format: the conversation takes precedence over what is next to it.
        dropped[NAMES[Capabilities.METADATA]] += len(conversation.extra)
        output = _lines(dialect.write(replace(conversation, extra={})))
    if conversation.messages:
        _check(output, name)
    return Conversion(output=output, not_carried={what: count for what, count in dropped.items() if count})


def not_carried_line(not_carried: Mapping[str, int], name: str) -> str:
    """What a conversion lost, in one line; empty where it lost nothing."""
    holds = get(name).holds
    unplaced = {NAMES[flag] for flag in NAMES if flag not in holds}
    cannot = [f"{what} {count:,}" for what, count in not_carried.items() if what in unplaced]
    others = [f"{what} {count:,}" for what, count in not_carried.items() if what not in unplaced]
    clauses = [f"{', '.join(cannot)}: {name} cannot hold them"] if cannot else []
    return "; ".join([*clauses, *([f"{', '.join(others)}: not carried over"] if others else [])])


def fitted(conversation: Conversation, holds: Capabilities) -> tuple[Conversation, Counter[str]]:
    """The talk with what these can hold, and how much of what else there was."""
    dropped: Counter[str] = Counter()
    messages = list(_fitted(conversation.messages, holds, dropped))
    if Capabilities.TOOLS not in holds:
        dropped[NAMES[Capabilities.TOOLS]] += len(conversation.tools)
    if Capabilities.METADATA not in holds:
        dropped[NAMES[Capabilities.METADATA]] += len(conversation.extra)
    if Capabilities.MODEL not in holds:
        dropped[NAMES[Capabilities.MODEL]] += bool(conversation.model)
    kept = replace(
        conversation,
        messages=tuple(messages),
        tools=conversation.tools if Capabilities.TOOLS in holds else (),
        extra=conversation.extra if Capabilities.METADATA in holds else {},
        model=conversation.model if Capabilities.MODEL in holds else "",
    )
    return kept, dropped


def _fitted(messages: Iterable[Message], holds: Capabilities, dropped: Counter[str]) -> Iterator[Message]:
    for message in _sequential(messages, holds, dropped):
        if message.role is Role.SYSTEM and Capabilities.SYSTEM not in holds:
            dropped[NAMES[Capabilities.SYSTEM]] += 1
            continue
        parts = tuple(part for part in message.parts if _is_kept(part, message, holds, dropped))
        lost = {part.kind for part in message.parts if isinstance(part, Media)}
        if not parts and lost and message.role is Role.USER:
            parts = (Text(text=f"[{', '.join(sorted(lost))}]"),)
        if Capabilities.TIMES not in holds:
            dropped[NAMES[Capabilities.TIMES]] += bool(message.timestamp)
        if parts:
            yield replace(message, parts=parts)


def _is_kept(part: Part, message: Message, holds: Capabilities, dropped: Counter[str]) -> bool:
    if isinstance(part, Thinking):
        missing, what = Capabilities.THINKING not in holds, NAMES[Capabilities.THINKING]
    elif isinstance(part, Media):
        missing = not part.url or Capabilities.IMAGES not in holds
        what = NAMES[Capabilities.IMAGES] if is_image(part) else OPAQUE
    elif isinstance(part, Text):
        missing, what = bool(message.calls) and Capabilities.WORDS not in holds, NAMES[Capabilities.WORDS]
        return (not missing and bool(part.text)) or _counted(dropped, what, bool(part.text))
    else:
        if isinstance(part, ToolResult):
            dropped[IMAGES_IN_RESULTS] += part.media_count
            dropped[NAMES[Capabilities.ERRORS]] += part.is_error and Capabilities.ERRORS not in holds
        elif Capabilities.IDS not in holds:
            dropped[NAMES[Capabilities.IDS]] += bool(part.id)
        return True
    return not missing or _counted(dropped, what, True)


def _counted(dropped: Counter[str], what: str, is_something: bool) -> bool:
    dropped[what] += is_something
    return False


def _sequential(messages: Iterable[Message], holds: Capabilities, dropped: Counter[str]) -> Iterator[Message]:
    """Parallel calls one after another, each with its result, where a message holds one only."""
    model_options: Message | None = None
    for message in messages:
        if model_options is not None:
            answers = {result.id: result for result in message.results}
            yield from _one_by_one(model_options, answers)
            model_options = None
            if answers:
                continue
        if len(message.calls) > 1 and Capabilities.SEVERAL not in holds:
            dropped[NAMES[Capabilities.SEVERAL]] += len(message.calls)
            model_options = message
        else:
            yield message
    if model_options is not None:
        yield from _one_by_one(model_options, {})


def _one_by_one(model_options: Message, answers: Mapping[str, ToolResult]) -> Iterator[Message]:
    before = tuple(part for part in model_options.parts if not isinstance(part, ToolCall))
    for call in model_options.calls:
        yield replace(model_options, parts=(*before, call))
        before = ()
        if call.id in answers:
            yield Message(role=Role.TOOL, parts=(answers[call.id],), timestamp=model_options.timestamp)


def _not_carried(transcript: Transcript, conversation: Conversation) -> Counter[str]:
    """What of the conversation itself is not in the talk."""
    messages = transcript.messages
    grouping = group(messages)
    sidechains = sum(record.value.get("isSidechain") is True for record in transcript.records if _is_object(record))
    is_own = sidechains < len(messages)
    found = Counter({ORPHANS: len(grouping.orphan_calls) + len(grouping.orphan_results)})
    found[NOT_SENT] = sum(message.superseded and not message.is_meta for message in messages)
    found[NAMES[Capabilities.SIDECHAINS]] = sidechains if is_own else 0
    meta = sum(message.is_meta for message in messages)
    found[BOOKKEEPING] = max(meta - found[NAMES[Capabilities.SIDECHAINS]], 0)
    return found


def _adjacent(transcript: Transcript, holds: Capabilities) -> Counter[str]:
    """What stands next to the conversation: counters, and keys of the row that nobody knows."""
    found: Counter[str] = Counter()
    found[NAMES[Capabilities.USAGE]] = sum(_has_usage(record.value) for record in transcript.records)
    row = transcript.row if isinstance(transcript.row, dict) else {}
    known = {"messages", "system", "tools", "model", *extra_of(row)}
    if Capabilities.METADATA in holds:
        found[NAMES[Capabilities.METADATA]] = sum(
            1 for key, value in row.items() if key not in known and not _is_conversation(value)
        )
    return found


def _is_conversation(value: Any) -> bool:
    """Whether a value of a row may be the conversation itself."""
    return isinstance(value, (list, dict))


def _has_usage(value: Any, depth: int = 3) -> bool:
    if not isinstance(value, dict) or not depth:
        return False
    if any(value.get(key) for key in _USAGE_KEYS):
        return True
    return any(_has_usage(value.get(key), depth - 1) for key in ("message", "payload", "info", "response_metadata"))


def _is_object(record: Record) -> bool:
    return isinstance(record.value, dict)


def _lines(values: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for value in values)


def _is_read_as(name: str, output: bytes) -> bool:
    """Whether the output is recognised as this dialect by its content."""
    try:
        return all(item.dialect == name for item in _opened(output))
    except InputError:
        return False


def _check(output: bytes, name: str) -> None:
    """Raise InvariantError unless the output is read as it was meant, and every result has its call.

    Without any call, one dialect may look like another (a Hermes trajectory is ShareGPT then): that is the same
    conversation anyway.
    """
    asked = _opened(output, name)
    if [item.messages for item in _opened(output)] != [item.messages for item in asked]:
        raise InvariantError(f"the output would not be read as {name}")
    grouping = group(asked[0].messages)
    if grouping.orphan_calls or grouping.orphan_results:
        raise InvariantError("the output would hold a tool call without its result")


def _opened(output: bytes, name: str = "") -> list[Transcript]:
    return list(open_transcripts(read_records(output.splitlines(keepends=True), "converted"), dialect=name))
