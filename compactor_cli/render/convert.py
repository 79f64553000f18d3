"""Conversion: a transcript written in another dialect, with what could not be carried counted by name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.holds import NAMES, Holds
from compactor_cli.formats.images import is_image
from compactor_cli.formats.registry import all_dialects, get
from compactor_cli.formats.talk import Talk, Writing
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import InputError, InvariantError, UsageError
from compactor_cli.model.records import Record
from compactor_cli.model.transcript import Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.read.jsonl import read_records
from compactor_cli.render.talk_of import extra_of, talk_of

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
    whole = talk_of(transcript)
    talk, dropped = fitted(whole, dialect.holds & ~dialect.unwritten)
    dropped += _left_behind(transcript, whole)
    dropped += _beside(transcript, dialect.holds & ~dialect.unwritten)
    output = _lines(dialect.write(talk))
    if not _is_read_as(name, output):
        # Keys of the row make it look like another format: the conversation goes before what is beside it.
        dropped[NAMES[Holds.METADATA]] += len(talk.extra)
        output = _lines(dialect.write(replace(talk, extra={})))
    if talk.messages:
        _check(output, name)
    return Conversion(output=output, not_carried={what: count for what, count in dropped.items() if count})


def not_carried_line(not_carried: Mapping[str, int], name: str) -> str:
    """What a conversion lost, in one line; empty where it lost nothing."""
    holds = get(name).holds
    homeless = {NAMES[flag] for flag in NAMES if flag not in holds}
    cannot = [f"{what} {count:,}" for what, count in not_carried.items() if what in homeless]
    others = [f"{what} {count:,}" for what, count in not_carried.items() if what not in homeless]
    clauses = [f"{', '.join(cannot)}: {name} cannot hold them"] if cannot else []
    return "; ".join([*clauses, *([f"{', '.join(others)}: not carried over"] if others else [])])


def fitted(talk: Talk, holds: Holds) -> tuple[Talk, Counter[str]]:
    """The talk with what these can hold, and how much of what else there was."""
    dropped: Counter[str] = Counter()
    messages = list(_fitted(talk.messages, holds, dropped))
    if Holds.TOOLS not in holds:
        dropped[NAMES[Holds.TOOLS]] += len(talk.tools)
    if Holds.METADATA not in holds:
        dropped[NAMES[Holds.METADATA]] += len(talk.extra)
    if Holds.MODEL not in holds:
        dropped[NAMES[Holds.MODEL]] += bool(talk.model)
    kept = replace(
        talk,
        messages=tuple(messages),
        tools=talk.tools if Holds.TOOLS in holds else (),
        extra=talk.extra if Holds.METADATA in holds else {},
        model=talk.model if Holds.MODEL in holds else "",
    )
    return kept, dropped


def _fitted(messages: Iterable[Message], holds: Holds, dropped: Counter[str]) -> Iterator[Message]:
    for message in _sequential(messages, holds, dropped):
        if message.role is Role.SYSTEM and Holds.SYSTEM not in holds:
            dropped[NAMES[Holds.SYSTEM]] += 1
            continue
        parts = tuple(part for part in message.parts if _stays(part, message, holds, dropped))
        lost = {part.kind for part in message.parts if isinstance(part, Media)}
        if not parts and lost and message.role is Role.USER:
            parts = (Text(text=f"[{', '.join(sorted(lost))}]"),)
        if Holds.TIMES not in holds:
            dropped[NAMES[Holds.TIMES]] += bool(message.timestamp)
        if parts:
            yield replace(message, parts=parts)


def _stays(part: Part, message: Message, holds: Holds, dropped: Counter[str]) -> bool:
    if isinstance(part, Thinking):
        missing, what = Holds.THINKING not in holds, NAMES[Holds.THINKING]
    elif isinstance(part, Media):
        missing = not part.url or Holds.IMAGES not in holds
        what = NAMES[Holds.IMAGES] if is_image(part) else OPAQUE
    elif isinstance(part, Text):
        missing, what = bool(message.calls) and Holds.WORDS not in holds, NAMES[Holds.WORDS]
        return (not missing and bool(part.text)) or _counted(dropped, what, bool(part.text))
    else:
        if isinstance(part, ToolResult):
            dropped[IMAGES_IN_RESULTS] += part.media_count
            dropped[NAMES[Holds.ERRORS]] += part.is_error and Holds.ERRORS not in holds
        elif Holds.IDS not in holds:
            dropped[NAMES[Holds.IDS]] += bool(part.id)
        return True
    return not missing or _counted(dropped, what, True)


def _counted(dropped: Counter[str], what: str, is_something: bool) -> bool:
    dropped[what] += is_something
    return False


def _sequential(messages: Iterable[Message], holds: Holds, dropped: Counter[str]) -> Iterator[Message]:
    """Parallel calls one after another, each with its result, where a message holds one only."""
    asking: Message | None = None
    for message in messages:
        if asking is not None:
            answers = {result.id: result for result in message.results}
            yield from _one_by_one(asking, answers)
            asking = None
            if answers:
                continue
        if len(message.calls) > 1 and Holds.SEVERAL not in holds:
            dropped[NAMES[Holds.SEVERAL]] += len(message.calls)
            asking = message
        else:
            yield message
    if asking is not None:
        yield from _one_by_one(asking, {})


def _one_by_one(asking: Message, answers: Mapping[str, ToolResult]) -> Iterator[Message]:
    before = tuple(part for part in asking.parts if not isinstance(part, ToolCall))
    for call in asking.calls:
        yield replace(asking, parts=(*before, call))
        before = ()
        if call.id in answers:
            yield Message(role=Role.TOOL, parts=(answers[call.id],), timestamp=asking.timestamp)


def _left_behind(transcript: Transcript, talk: Talk) -> Counter[str]:
    """What of the conversation itself is not in the talk."""
    messages = transcript.messages
    grouping = group(messages)
    sidechains = sum(record.value.get("isSidechain") is True for record in transcript.records if _is_object(record))
    is_own = sidechains < len(messages)
    found = Counter({ORPHANS: len(grouping.orphan_calls) + len(grouping.orphan_results)})
    found[NOT_SENT] = sum(message.superseded and not message.is_meta for message in messages)
    found[NAMES[Holds.SIDECHAINS]] = sidechains if is_own else 0
    meta = sum(message.is_meta for message in messages)
    found[BOOKKEEPING] = max(meta - found[NAMES[Holds.SIDECHAINS]], 0)
    return found


def _beside(transcript: Transcript, holds: Holds) -> Counter[str]:
    """What stands beside the conversation: counters, and keys of the row that nobody knows."""
    found: Counter[str] = Counter()
    found[NAMES[Holds.USAGE]] = sum(_has_usage(record.value) for record in transcript.records)
    row = transcript.row if isinstance(transcript.row, dict) else {}
    known = {"messages", "system", "tools", "model", *extra_of(row)}
    if Holds.METADATA in holds:
        found[NAMES[Holds.METADATA]] = sum(1 for key, value in row.items() if key not in known and not _is_talk(value))
    return found


def _is_talk(value: Any) -> bool:
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
    conversation all the same.
    """
    asked = _opened(output, name)
    if [item.messages for item in _opened(output)] != [item.messages for item in asked]:
        raise InvariantError(f"the output would not be read as {name}")
    grouping = group(asked[0].messages)
    if grouping.orphan_calls or grouping.orphan_results:
        raise InvariantError("the output would hold a tool call without its result")


def _opened(output: bytes, name: str = "") -> list[Transcript]:
    return list(open_transcripts(read_records(output.splitlines(keepends=True), "converted"), dialect=name))
