"""pi sessions: ``~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl``, a header and one entry a line.

Since version 2, entries link to each other by ``parentId``, and what is sent is the path from the last entry to
the root; before, entries have no ids and are sent in order. A ``compaction`` entry replaces what is before
its first kept entry (``firstKeptEntryId``, or ``firstKeptEntryIndex`` counted over all lines with the header).
Observed with pi 0.73; the older shape after the client's own migration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats import pi_insert, pi_written
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import SESSION, Capabilities
from compactor_cli.formats.contents import (
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
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.pi_path import Value, path_of
from compactor_cli.formats.previous import summary_of
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

_SIDE_TYPES = frozenset({"model_change", "thinking_level_change", "custom", "label", "session_info"})
_MESSAGE_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"})
_SUMMARIES = ("compaction", "branch_summary")


class Pi:
    """The dialect of pi's session files."""

    name = "pi"
    title = "pi session"
    holds = SESSION | Capabilities.SUMMARIES
    unwritten = NEVER_WRITTEN
    links_records = True

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
            known = string(value["message"].get("role")) in _MESSAGE_ROLES
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

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A ``compaction`` entry, in the place of the removed entry that the tail links to.

        It names the first entry of the head as the first kept one: the client then sends the summary, the
        head, and everything after the compaction. Further messages link to it.
        """
        return pi_insert.insert(transcript, cut, insertions) if insertions else ()

    @property
    def appends_head(self) -> bool:
        """False: what is kept begins at one entry and goes on to the end."""
        return False

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """A ``compaction`` entry that names the first entry of the tail; the client counts anew after it."""
        return pi_insert.append(transcript, cut, insertions)

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """None: nothing that stays repeats messages elsewhere."""
        return frozenset()

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """The ``usage`` of the last answer."""
        return pi_insert.counters(path_of(records), staying)

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The answer with another ``usage``."""
        return dump(pi_insert.recounted(parse(record.raw), size_tokens), record.raw)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with texts replaced in its message; entries without a message are returned as they are."""
        value = parse(record.raw)
        message = value.get("message")
        if not isinstance(message, dict):
            return record.raw
        return dump({**value, "message": _shortened(message, texts)}, record.raw)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """The header, and entries that link to each other; a summary as a compaction that keeps what is before it."""
        times = conversation.times()
        start = times[0] if times else ""
        lines: list[dict[str, Any]] = [
            {"type": "session", "version": 3, "id": conversation.key("session"), "timestamp": start, "cwd": "/"}
        ]
        parent = None
        for message, time in zip(conversation.messages, times, strict=True):
            for entry in pi_written.messages(message, conversation.model, time):
                own = conversation.key(len(lines))[:8]
                envelope = {"id": own, "parentId": parent, "timestamp": time}
                if message.summary:
                    kept = {"firstKeptEntryId": lines[1]["id"] if parent else own, "tokensBefore": 0}
                    lines.append({"type": "compaction", **envelope, "summary": message.text, **kept})
                else:
                    lines.append({"type": "message", **envelope, "message": entry})
                parent = own
        return lines


DIALECT = Pi()


def _message(value: Value, is_superseded: bool) -> Message:
    role, parts = _role_and_parts(value)
    timestamp = string(value.get("timestamp"))
    if role is Role.META:
        return Message(role=role, timestamp=timestamp)
    summary = None
    if value.get("type") == "compaction":
        summary = summary_of(role, parts) or PreviousSummary(origin="pi", text=string(value.get("summary")))
    return Message(
        role=role,
        parts=parts,
        timestamp=timestamp,
        summary=summary,
        superseded=is_superseded,
        own_words="" if _is_of_client(value) else None,
    )


def _is_of_client(value: Value) -> bool:
    """Whether an extension wrote this in the user's name, or it is a command that the user ran by themselves."""
    role = value["message"].get("role") if isinstance(value.get("message"), dict) else None
    return value.get("type") == "custom_message" or role in ("custom", "hookMessage", "bashExecution")


def _role_and_parts(value: Value) -> tuple[Role, tuple[Part, ...]]:
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
