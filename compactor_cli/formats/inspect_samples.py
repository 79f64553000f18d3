"""Inspect samples: ``messages`` of a sample, alone in a file or among the ``samples`` of a log.

Long texts may stand in the sample's ``attachments``; they are read where they are referred to. Tools that ran
at the provider's are one block with arguments and result. Events repeat the messages: what leaves these leaves
the events and the attachments as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import located
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath, of_words
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.contents import ROLES, listed, string
from compactor_cli.formats.jsontext import LEFT_OUT, dumped, gone_lines, scrubbed, with_key
from compactor_cli.formats.located import LocatedPart, RecordDialect, at, like_keys, parts_of
from compactor_cli.formats.sessions import derived_hex
from compactor_cli.model.transcript import Message, PreviousSummary, Record, Role, Text, Transcript, text_of

_ATTACHED = "attachment://"
_REFERENCE = re.compile(rb"attachment://([0-9a-f]+)")
# What Inspect's own summaries stand between.
_OPENING, _CLOSING = "<previous_summary>", "</previous_summary>"


class InspectAI(RecordDialect):
    """The dialect of Inspect's samples."""

    name = "inspect"
    title = "Inspect sample"
    holds = of_words("chat errors thinking model summaries metadata".split())
    models = (("model",),)
    row_models = (("output", "model"),)

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a sample; ``samples`` of a log that has none."""
        if not isinstance(value, dict):
            return None
        if value.get("samples") == [] and isinstance(value.get("eval"), dict):
            return ("samples",)
        is_sample = "epoch" in value and isinstance(value.get("messages"), list)
        return ("messages",) if is_sample else None

    def score(self, value: Any) -> int:
        """3 for a sample; 2 for a message that says where it is from or which function it is of."""
        if not _is_message(value):
            return 3 if self.array_path(value) is not None else 0
        is_result = value["role"] == "tool" and isinstance(value.get("function"), str)
        return 2 if value.get("source") in ("input", "generate", "operator") or is_result else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record."""
        return tuple(_message(record.value, row) for record in records)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with ids where the file has them, the summary marked as Inspect marks its own."""
        values = [record.value for record in transcript.records if _is_message(record.value)]
        messages = []
        for item in insertions:
            like = next((value for value in values if value["role"] == item.role.value), values[0] if values else {})
            own_id = {"id": derived_hex(transcript.sha256, item.text, 22)} if "id" in like else {}
            mark = {"metadata": {"summary": True}} if item.is_summary else {}
            messages.append(like_keys({**own_id, "content": item.text, "role": item.role.value, **mark}, like))
        return dumped(transcript, messages)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """Events and attachments without what left the messages, attachments that nobody refers to any more empty."""
        row = source.row if isinstance(source.row, dict) else {}
        gone = gone_lines(source, composed)
        unused = _references(source) - _references(composed)
        frame = composed.frame
        for key in ("events", "attachments"):
            old = row.get(key)
            new = scrubbed(old, gone)
            if key == "attachments" and isinstance(new, dict):
                new |= dict.fromkeys(unused & new.keys(), LEFT_OUT)
            frame = with_key(frame, key, new, old) if new != old else frame
        return replace(composed, frame=frame)


def _references(transcript: Transcript) -> frozenset[str]:
    found = (reference for record in transcript.records for reference in _REFERENCE.findall(record.raw))
    return frozenset(reference.decode() for reference in found)


def _is_message(value: Any) -> bool:
    has_content = isinstance(value, dict) and ("content" in value or "tool_calls" in value)
    return has_content and string(value.get("role")) in ROLES


def _message(value: Any, row: Any) -> Message:
    if not _is_message(value):
        return Message(role=Role.META)
    found, role, metadata = parts_of(pieces(value, row)), ROLES[value["role"]], value.get("metadata")
    summary = summary_of(role, found)
    if summary is None and role is Role.USER and isinstance(metadata, dict) and "summary" in metadata:
        text = text_of(found)
        inner = text.partition(_OPENING)[2].rpartition(_CLOSING)[0] or text
        summary = PreviousSummary(origin="inspect", text=inner.strip())
    return Message(role=role, parts=found, summary=summary)


def pieces(value: Any, row: Any = None) -> list[LocatedPart]:
    """The parts of a message with the places of their texts. ``row`` holds the attachments."""
    if not _is_message(value):
        return []
    content = value.get("content")
    if value["role"] == "tool":
        error, words = value.get("error"), _text(content, row) if isinstance(content, str) else content
        place: JsonPath = ("content",)
        if not words and isinstance(at(error, ("message",)), str):
            # Of an error without a content, the model is shown what the error says.
            words, place = value["error"]["message"], ("error", "message")
        call_id, name = value.get("tool_call_id"), value.get("function")
        return [located.result(words, place, call_id=call_id, name=name, is_error=bool(error))]
    found: list[LocatedPart] = []
    if isinstance(content, str) and content:
        found.append(located.text(_text(content, row), ("content",)))
    for i, block in enumerate(listed(content)):
        found += _block(block, ("content", i), row)
    found += (located.any_call(call, "tool_calls", i) for i, call in enumerate(listed(value.get("tool_calls"))))
    return found


def _text(text: str, row: Any) -> str:
    """The text, or what it refers to."""
    found = at(row, ("attachments", text.removeprefix(_ATTACHED))) if text.startswith(_ATTACHED) else None
    return found if isinstance(found, str) else text


def _block(block: Any, place: JsonPath, row: Any) -> list[LocatedPart]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "reasoning":
        return [located.thinking(string(block.get("reasoning")) or block.get("summary"))]
    if kind == "tool_use":
        found, failed = block.get("result"), bool(block.get("error"))
        call_id, name = block.get("id"), block.get("name")
        answer = located.result(string(found), (*place, "result"), call_id=call_id, name=name, is_error=failed)
        call = located.call(block, "arguments").part
        return [LocatedPart(call), answer if isinstance(found, str) else LocatedPart(answer.part)]
    piece = located.block(block).below(*place)
    text = piece.part
    return [piece._replace(part=Text(text=_text(text.text, row))) if isinstance(text, Text) else piece]


DIALECT = InspectAI(pieces)
