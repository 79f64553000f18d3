"""pi sessions: ``~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl``, a header and one entry a line.

Since version 2, entries hang on each other by ``parentId``, and what is sent is the path from the last entry to
the root; before, entries have no ids and are sent in order. A ``compaction`` entry replaces what is before
its first kept entry (``firstKeptEntryId``, or ``firstKeptEntryIndex`` counted over all lines with the header).
Observed with pi 0.73; the older shape after the client's own migration.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.core.records import Record
from compactor_cli.core.transcript import Message, Part, PreviousSummary, Role, Text, ToolCall, ToolResult, Transcript
from compactor_cli.normalise.base import Cut, Insertion, JsonPath
from compactor_cli.normalise.contents import (
    arguments,
    block_part,
    content_parts,
    media_count,
    result_text,
    shortened_arguments,
    shortened_result,
    string,
    with_texts,
)
from compactor_cli.normalise.jsontext import dump, parse
from compactor_cli.normalise.pi_path import Path, Value
from compactor_cli.normalise.previous import summary_of

_SIDE_TYPES = frozenset({"model_change", "thinking_level_change", "custom", "label", "session_info"})
_TALK_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"})
_SUMMARIES = ("compaction", "branch_summary")


class Pi:
    """The dialect of pi's session files."""

    name = "pi"
    title = "pi session"

    def array_path(self, value: Any) -> JsonPath | None:
        """None: a line is a record."""
        return None

    def score(self, value: Any) -> int:
        """3 for the header, an entry with ``parentId`` or an entry only pi writes; 2 for an entry without ids."""
        if not isinstance(value, dict):
            return 0
        kind = value.get("type")
        if self.starts(value) or (kind == "compaction" and "summary" in value):
            return 3
        if kind == "message" and isinstance(value.get("message"), dict):
            known = string(value["message"].get("role")) in _TALK_ROLES
            return (3 if "parentId" in value else 2) if known else 0
        return 3 if string(kind) in {*_SIDE_TYPES, *_SUMMARIES, "custom_message"} and "timestamp" in value else 0

    def starts(self, value: Any) -> bool:
        """The header: ``{"type": "session", "id": …, "cwd": …}``."""
        return isinstance(value, dict) and value.get("type") == "session" and "id" in value

    def session_key(self, value: Any) -> str:
        """Empty: entries do not name their session."""
        return ""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what is off the path or before the first kept entry is ``superseded``."""
        path = path_of(records)
        gone = path.superseded()
        return tuple(_message(value, i in gone) for i, value in enumerate(path.values))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last answer, else the last one chosen."""
        values = [record.value for record in reversed(records) if isinstance(record.value, dict)]
        answers = (value["message"].get("model") for value in values if isinstance(value.get("message"), dict))
        chosen = (value.get("modelId") for value in values)
        return next((name for name in (*answers, *chosen) if isinstance(name, str) and name), "")

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A ``compaction`` entry, in the place of the removed entry that the tail hangs on.

        It names the first entry of the head as the first kept one: the client then sends the summary, the
        head, and everything behind the compaction. Further messages hang on it.
        """
        if not insertions:
            return ()
        site = _Site(transcript, cut)
        like = transcript.records[0].raw
        return tuple(dump(entry, like) for entry in site.entries(insertions))

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with texts replaced in its message; entries without a message are returned as they are."""
        value = parse(record.raw)
        message = value.get("message")
        if not isinstance(message, dict):
            return record.raw
        return dump({**value, "message": _shortened(message, texts)}, record.raw)


DIALECT = Pi()


def path_of(records: Sequence[Record]) -> Path:
    """The path of these records; a line that is no object is an empty entry."""
    return Path([record.value if isinstance(record.value, dict) else {} for record in records])


def _message(value: Value, is_superseded: bool) -> Message:
    role, parts = _said(value)
    timestamp = string(value.get("timestamp"))
    if role is Role.META:
        return Message(role=role, timestamp=timestamp)
    summary = None
    if value.get("type") == "compaction":
        summary = summary_of(role, parts) or PreviousSummary(origin="pi", text=string(value.get("summary")))
    return Message(role=role, parts=parts, timestamp=timestamp, summary=summary, superseded=is_superseded)


def _said(value: Value) -> tuple[Role, tuple[Part, ...]]:
    kind = value.get("type")
    if kind in _SUMMARIES:
        return Role.USER, content_parts(value.get("summary"))
    if kind == "custom_message":
        return Role.USER, content_parts(value.get("content"))
    message = value.get("message") if kind == "message" else None
    if not isinstance(message, dict):
        return Role.META, ()
    role = string(message.get("role"))
    if role == "toolResult":
        return Role.TOOL, (_result(message),)
    if role == "bashExecution":
        return (Role.META, ()) if message.get("excludeFromContext") is True else (Role.USER, _shell(message))
    speaker = {"user": Role.USER, "custom": Role.USER, "hookMessage": Role.USER, "assistant": Role.ASSISTANT}.get(role)
    return (speaker, _parts(message.get("content"))) if speaker else (Role.META, ())


def _parts(content: Any) -> tuple[Part, ...]:
    return tuple(map(_part, content)) if isinstance(content, list) else content_parts(content)


def _part(block: Any) -> Part:
    if not isinstance(block, dict) or block.get("type") != "toolCall":
        return block_part(block)
    name = string(block.get("name"))
    return ToolCall(id=string(block.get("id")), name=name, arguments=arguments(block.get("arguments")))


def _result(message: Value) -> ToolResult:
    content = message.get("content")
    return ToolResult(
        id=string(message.get("toolCallId")),
        text=result_text(content),
        name=string(message.get("toolName")),
        is_error=message.get("isError") is True,
        media_count=media_count(content),
    )


def _shell(message: Value) -> tuple[Part, ...]:
    """A command that the user ran, and its output."""
    command = f"Ran `{string(message.get('command'))}`"
    return (Text(text=command), Text(text=string(message.get("output"))))


def _shortened(message: Value, texts: Mapping[int, str]) -> dict[str, Any]:
    role, content = message.get("role"), message.get("content")
    if role == "bashExecution":
        return {**message, "output": texts.get(1, message.get("output"))}
    if role == "toolResult":
        return {**message, "content": shortened_result(content, texts[0])} if 0 in texts else dict(message)
    if not isinstance(content, list):
        return {**message, "content": with_texts(content, texts)}
    calls = [i for i in texts if i < len(content) and isinstance(_part(content[i]), ToolCall)]
    blocks = list(with_texts(content, {i: text for i, text in texts.items() if i not in calls}))
    for i in calls:
        blocks[i] = {**blocks[i], "arguments": shortened_arguments(texts[i])}
    return {**message, "content": blocks}


class _Site:
    """Where the insertion goes."""

    def __init__(self, transcript: Transcript, cut: Cut) -> None:
        self.transcript = transcript
        self.cut = cut
        self.path = path_of(transcript.records)
        stop = cut.after[0] if cut.after else len(transcript.records)
        kept = set(cut.before)
        self.covered = [i for i in range(stop - 1, -1, -1) if i not in kept]
        self.shown = [i for i in cut.before if _is_shown(transcript.messages[i])]

    def entries(self, insertions: Sequence[Insertion]) -> Iterator[dict[str, Any]]:
        """The compaction, then messages, each hung on the one before; the last has the id that the tail needs."""
        ids = [uuid.uuid5(uuid.NAMESPACE_OID, f"{self.transcript.sha256} {i}").hex[:8] for i in range(len(insertions))]
        ids[-1] = self.path.free_parent(self.cut.before, self.cut.after) or ids[-1]
        parents: list[str | None] = [self._last_head_id(), *ids[:-1]]
        for item, own, parent in zip(insertions, ids, parents, strict=True):
            envelope = {"id": own, "parentId": parent} if self.path.has_ids else {}
            entry = {**envelope, "timestamp": self._timestamp()}
            yield self._compaction(item, entry) if item.is_summary else self._said(item, entry)

    def _compaction(self, item: Insertion, entry: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "compaction",
            **entry,
            "summary": item.text,
            **self._first_kept(),
            "tokensBefore": self._tokens_before(),
        }

    def _first_kept(self) -> dict[str, Any]:
        """The first entry of the head; without a head, that of the tail, before which nothing is sent."""
        if not self.path.has_ids:
            return {"firstKeptEntryIndex": self._first_kept_index()}
        first = next(iter((*self.shown, *self._tail())), None)
        return {"firstKeptEntryId": string(self.path.values[first].get("id")) if first is not None else ""}

    def _first_kept_index(self) -> int:
        """Counted as the client counts: all lines that are objects, the compaction itself among them."""
        objects = [i for i in self.cut.before if self.path.values[i]]
        return objects.index(self.shown[0]) if self.shown else len(objects) + 1

    def _tail(self) -> list[int]:
        return [i for i in self.cut.after if self.path.values[i].get("type") != "session"]

    def _last_head_id(self) -> str | None:
        return self.path.attachment(self.cut.before, self.cut.after)

    def _said(self, item: Insertion, entry: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": item.role.value, "content": [{"type": "text", "text": item.text}]}
        if item.role is Role.ASSISTANT:
            near = [*self.cut.after, *reversed(self.cut.before), *self.covered]
            values = (self.path.values[i] for i in near)
            answers = (value["message"] for value in values if _is_answer(value))
            message |= {key: value for key, value in next(answers, {}).items() if key in ("api", "provider", "model")}
            message |= {"stopReason": "stop"}
        return {"type": "message", **entry, "message": message}

    def _timestamp(self) -> str:
        order = (*self.covered, *reversed(self.cut.before), *self.cut.after)
        stamps = (string(self.path.values[i].get("timestamp")) for i in order)
        return next((stamp for stamp in stamps if stamp), "1970-01-01T00:00:00.000Z")

    def _tokens_before(self) -> int:
        """The size of the last request before the cut, as the client itself had it."""
        answers = (self.path.values[i] for i in self.covered if _is_answer(self.path.values[i]))
        usages = (value["message"].get("usage") for value in answers)
        return next((size for usage in usages if isinstance(usage, dict) and (size := _size(usage))), 0)


def _is_shown(message: Message) -> bool:
    return not message.is_meta and not message.superseded


def _is_answer(value: Value) -> bool:
    return isinstance(value.get("message"), dict) and value["message"].get("role") == "assistant"


def _size(usage: Value) -> int:
    parts = (usage.get(key) for key in ("input", "output", "cacheRead", "cacheWrite"))
    total = usage.get("totalTokens")
    return total if isinstance(total, int) and total else sum(part for part in parts if isinstance(part, int))
