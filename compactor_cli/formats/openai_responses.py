"""OpenAI Responses: the items of a request's ``input``, of a response's ``output``, or one item a line.

A ``compaction`` item holds, encrypted, what came before it: it is never left out, and the summary stands
after it. Reasoning is refused by the API without what followed it: the items of one answer stay together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats.arrays import first_object
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import REQUEST, Capabilities
from compactor_cli.formats.chat_dialect import model_of
from compactor_cli.formats.codex_items import is_opaque, item_type
from compactor_cli.formats.contents import string
from compactor_cli.formats.conversation import SIGNED, Conversation
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.located_parts import at, like_keys
from compactor_cli.formats.previous import summary_of
from compactor_cli.formats.responses_items import (
    OWN_BLOCKS,
    OWN_TYPES,
    is_item,
    is_reasoning,
    parts_of,
    role_of,
    shortened,
    written,
)
from compactor_cli.model.transcript import Message, Record, Role, Transcript

_INPUTS: tuple[JsonPath, ...] = (("input",), ("body", "input"), ("request", "input"))
_OUTPUTS: tuple[JsonPath, ...] = (("output",), ("response", "output"), ("response", "body", "output"))
_META = Message(role=Role.META)


class OpenAIResponses:
    """The dialect of OpenAI's Responses API."""

    name = "openai-responses"
    title = "OpenAI Responses items"
    holds = REQUEST | Capabilities.THINKING
    unwritten = SIGNED

    def array_path(self, value: Any) -> JsonPath | None:
        """``input`` of a request, ``output`` of a response, or a bare array of items."""
        if isinstance(value, list):
            return () if _leads(value) else None
        if not isinstance(value, dict) or isinstance(value.get("messages"), list):
            return None
        outputs = (
            path for path in _OUTPUTS if at(value, (*path[:-1], "object")) in ("response", "response.compaction")
        )
        return next((path for path in (*_INPUTS, *outputs) if _leads(at(value, path))), None)

    def score(self, value: Any) -> int:
        """2 for items that only this API has; 1 for a role and a content."""
        if not isinstance(value, dict):
            return 0
        if self.array_path(value) is not None:
            return 2
        if not is_item(value):
            return 0
        content = value.get("content")
        blocks = content if isinstance(content, list) else ()
        kinds = {string(block.get("type")) for block in blocks if isinstance(block, dict)}
        return 2 if item_type(value) in OWN_TYPES or not OWN_BLOCKS.isdisjoint(kinds) else 1

    def starts(self, value: Any) -> bool:
        """Never: no item says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per item; those of one answer with reasoning in it are a group."""
        items = [record.value for record in records]
        groups = _answers(items)
        return tuple(_message(item, group) for item, group in zip(items, groups, strict=True))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the request or response names."""
        inner = row.get("response") if isinstance(row, dict) else None
        return model_of(records, row) or model_of((), inner)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """The removed items that nobody but the provider can read, then messages in the file's own style."""
        kept = {*cut.before, *cut.after}
        records = transcript.records
        opaque = [record.raw for i, record in enumerate(records) if i not in kept and _is_opaque(record.value)]
        like = records[0].raw if records else b""
        return (*opaque, *(dump(_item(item, records), like) for item in insertions))

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The item with these texts replaced; reasoning and encrypted content are never touched."""
        value = parse(record.raw)
        return dump(shortened(value, texts), record.raw) if is_item(value) else record.raw

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A request: the items as its ``input``."""
        row: dict[str, Any] = {"model": conversation.model} if conversation.model else {}
        row["input"] = [item for message in conversation.messages for item in written(message)]
        if conversation.tools:
            row["tools"] = [
                {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
                for tool in conversation.tools
            ]
        return ({**conversation.extra, **row},)


def _leads(elements: Any) -> bool:
    """Whether the first object of an array is an item."""
    return is_item(first_object(elements))


def _message(item: Any, group: str) -> Message:
    role = role_of(item) if is_item(item) else Role.META
    if role is Role.META:
        return _META
    parts = parts_of(item)
    return Message(role=role, parts=parts, group=group, summary=summary_of(role, parts))


def _is_opaque(value: Any) -> bool:
    return isinstance(value, dict) and is_opaque(value)


def _answers(items: Sequence[Any]) -> list[str]:
    """One name for all items of an answer that holds reasoning, empty for others."""
    groups = [""] * len(items)
    run: list[int] = []
    for i, item in enumerate([*items, {"type": "message", "role": "user", "content": ""}]):
        role = role_of(item) if is_item(item) else Role.META
        if role is Role.ASSISTANT and not _is_opaque(item):
            run.append(i)
        elif role is not Role.META:
            if len(run) > 1 and any(is_reasoning(items[j]) for j in run):
                for j in run:
                    groups[j] = f"answer-{run[0]}"
            run = []
    return groups


def _item(insertion: Insertion, records: Sequence[Record]) -> dict[str, Any]:
    """A message; its content is a text where the file's own are."""
    messages = [record.value for record in records if is_item(record.value) and item_type(record.value) == "message"]
    kind = "output_text" if insertion.role is Role.ASSISTANT else "input_text"
    has_blocks = any(isinstance(message.get("content"), list) for message in messages)
    message: dict[str, Any] = {
        "type": "message",
        "role": insertion.role.value,
        "content": [{"type": kind, "text": insertion.text}] if has_blocks else insertion.text,
    }
    if messages and not any("type" in found for found in messages):
        del message["type"]
    return like_keys(message, next(iter(messages), {}))


DIALECT = OpenAIResponses()
