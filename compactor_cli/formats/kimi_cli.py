"""Kimi CLI contexts: ``~/.kimi/sessions/<folder>/<session>/context.jsonl``, one message a line.

Messages are those of OpenAI's API with Kimi's ``think`` blocks; roles that begin with ``_`` are the client's own:
``_system_prompt``, ``_checkpoint`` and ``_usage``, of which the last counts. As the formats' documentation says;
written like the client's own compaction. Not run against a client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import CHAT, Capabilities
from compactor_cli.formats.contents import string
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, thinking_of, without_system
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.openai_chat import lines
from compactor_cli.model.transcript import Message, Record, Role, Text, Transcript

_OWN_ROLES = {"_system_prompt": "content", "_checkpoint": "id", "_usage": "token_count"}
_OPENING = "<system>Previous context has been compacted. Here is the compaction output:</system>"


class KimiCli:
    """The dialect of Kimi CLI's context files."""

    name = "kimi-cli"
    title = "Kimi CLI context"
    holds = CHAT | Capabilities.THINKING | Capabilities.USAGE | Capabilities.SUMMARIES
    unwritten = NEVER_WRITTEN

    def array_path(self, value: Any) -> JsonPath | None:
        """None: a line is a message."""
        return None

    def score(self, value: Any) -> int:
        """3 for the client's own roles; 1 for any other message."""
        if not isinstance(value, dict):
            return 0
        key = _OWN_ROLES.get(string(value.get("role")))
        return 3 if key and key in value else 1 if chat.is_chat(value) else 0

    def starts(self, value: Any) -> bool:
        """The system prompt."""
        return isinstance(value, dict) and value.get("role") == "_system_prompt"

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per line; the client's own lines except for the system prompt are META."""
        return tuple(_message(record.value) for record in records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """Empty: a context names no model."""
        return ""

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages of text blocks; the summary after the words that the client opens it with."""
        return tuple(dump(_written(item), transcript.records[0].raw) for item in insertions)

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """None: no line repeats another."""
        return frozenset()

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """The last ``_usage``."""
        sizes = ((i, _counted(records[i].value)) for i in reversed(staying))
        return dict(islice(((i, size) for i, size in sizes if size), 1))

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """``_usage`` of another size."""
        return dump({**parse(record.raw), "token_count": size_tokens}, record.raw)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced."""
        return chat.shorten(record, texts)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """The system prompt, a checkpoint, and the messages."""
        system, others = without_system(conversation)
        head = [{"role": "_system_prompt", "content": system}] if system else []
        messages = [_with_blocks(line, message) for message in others for line in lines(message)]
        return [*head, {"role": "_checkpoint", "id": 0}, *messages]


DIALECT = KimiCli()


def _message(value: Any) -> Message:
    message = chat.read(value)
    if message.is_meta and isinstance(value, dict) and value.get("role") == "_system_prompt":
        return replace(message, role=Role.SYSTEM, parts=(Text(text=string(value.get("content"))),))
    return message


def _with_blocks(line: dict[str, Any], message: Message) -> dict[str, Any]:
    """A message with its thinking as a block; a summary as the client's own."""
    if message.summary:
        return _written(Insertion(role=Role.USER, text=message.text, is_summary=True))
    if line["role"] != "assistant":
        return line
    thought = thinking_of(message)
    thinking = [{"type": "think", "think": thought}] if thought else []
    words = [{"type": "text", "text": message.text}] if message.text else []
    return {**line, "content": [*thinking, *words]}


def _counted(value: Any) -> int:
    size = value.get("token_count") if isinstance(value, dict) and value.get("role") == "_usage" else None
    return size if isinstance(size, int) else 0


def _written(item: Insertion) -> dict[str, Any]:
    texts = (_OPENING, item.text) if item.is_summary else (item.text,)
    return {"role": item.role.value, "content": [{"type": "text", "text": text} for text in texts]}
