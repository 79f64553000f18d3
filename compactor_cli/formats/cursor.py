"""Cursor's agent transcripts: ``~/.cursor/projects/*/agent-transcripts/*.jsonl``, ``{"role", "message"}`` a line.

Content blocks are Anthropic's, but calls have no ids, and what the tools answered is as a rule not in the file: such
calls are read as answered without words. ``[REDACTED]`` stands where the client took out reasoning. Lines with a
``type`` (``turn_ended``) are the client's own. As found in transcripts of 2026; not run against the client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats.base import Cut, Insertion, JsonPath
from compactor_cli.formats.contents import content_parts, role_of, string, with_texts
from compactor_cli.formats.holds import Holds
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.records import Record
from compactor_cli.model.transcript import Message, Part, Role, Text, ToolCall, ToolResult, Transcript

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_REDACTED = "[REDACTED]"
_META = Message(role=Role.META)


class Cursor:
    """The dialect of Cursor's agent transcripts."""

    name = "cursor"
    title = "Cursor transcript"
    holds = Holds.CALLS | Holds.SEVERAL | Holds.WORDS

    def array_path(self, value: Any) -> JsonPath | None:
        """None: a line is a record."""
        return None

    def score(self, value: Any) -> int:
        """3 for a role beside a message that has none of its own."""
        return 3 if _content(value) is not None else 0

    def starts(self, value: Any) -> bool:
        """Never: no line says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; a call that no later line answers gets a result that is not told."""
        messages = [_message(record.value) for record in records]
        answered = False
        for i in reversed(range(len(messages))):
            message = messages[i]
            if message.calls and not answered:
                messages[i] = Message(role=message.role, parts=(*message.parts, *map(_untold, message.calls)))
            answered = bool(message.results) if not message.is_meta else answered
        return tuple(messages)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """Empty: a transcript names no model."""
        return ""

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Lines of a role and a text block."""
        like = transcript.records[0].raw if transcript.records else b""
        return tuple(dump(_written(item), like) for item in insertions)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The line with texts replaced in its blocks."""
        value = parse(record.raw)
        message = {**value["message"], "content": with_texts(value["message"]["content"], texts)}
        return dump({**value, "message": message}, record.raw)


def _content(value: Any) -> list[Any] | str | None:
    """The content of a line of talk; None for any other."""
    message = value.get("message") if isinstance(value, dict) and string(value.get("role")) in _ROLES else None
    if not isinstance(message, dict) or "type" in value or "role" in message:
        return None
    content = message.get("content")
    return content if isinstance(content, list | str) else None


def _message(value: Any) -> Message:
    content = _content(value)
    if content is None:
        return _META
    parts = tuple(map(_unredacted, content_parts(content)))
    role = role_of(_ROLES[value["role"]], parts)
    return Message(role=role, parts=parts, summary=summary_of(role, parts))


def _unredacted(part: Part) -> Part:
    if isinstance(part, Text) and part.text.endswith(_REDACTED):
        return Text(text=part.text.removesuffix(_REDACTED).rstrip())
    return part


def _untold(call: ToolCall) -> ToolResult:
    return ToolResult(id=call.id, text="", name=call.name, is_told=False)


def _written(item: Insertion) -> dict[str, Any]:
    return {"role": item.role.value, "message": {"content": [{"type": "text", "text": item.text}]}}


DIALECT = Cursor()
