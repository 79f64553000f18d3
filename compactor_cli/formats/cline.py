"""Cline's and Roo Code's ``api_conversation_history.json``: an array of Anthropic messages.

What tools answer stands in text blocks that begin with ``[read_file for 'a.py'] Result:`` (older versions: the answer
in the block after it), next to blocks of the client's own; newer versions write ``tool_result`` too. Older versions
have calls as XML at the end of a text. Answers may quote the user. As found in histories of 2025 and 2026; not run
against a client.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from compactor_cli.formats import chat, located
from compactor_cli.formats.base import CHAT, Capabilities, Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.contents import listed, parse, string
from compactor_cli.formats.located import RecordDialect
from compactor_cli.model.transcript import Message, Part, Record, Role, Text, ToolCall, ToolResult, Transcript

_DETAILS = "<environment_details>"
# What the client says to the model in the user's name.
_OWN = (
    _DETAILS,
    "# task_progress",
    "# TODO LIST UPDATE",
    "[TASK RESUMPTION]",
    "[ERROR]",
    "Files attached by the user:",
    "The user has provided feedback",
    "The user provided the following feedback",
)
_MOST_HEAD_CHARS = 20_000
_RESULT = re.compile(r"\s*\[(\w+)(?: (?:for|to) '.*?')?\] Result:[ \t]*\n?", re.DOTALL)
_QUOTED = re.compile(r"<(feedback|answer|user_message)>\s*(.*?)\s*</\1>", re.DOTALL)
_FAILED = re.compile(r"\s*(?:The tool execution failed|<error>|Error\b|\[ERROR\])|.{0,80}exit code [1-9]", re.DOTALL)
_CALL = re.compile(
    r"<((?:use|access|ask|attempt|plan_mode|list|load|new|switch|update|fetch|web|codebase|browser)_\w+|\w+_(?:file|files"
    r"|command|content|diff|replace))>\s*(<\w+>.*?)\s*</\1>\s*$",
    re.DOTALL,
)
_ARGUMENT = re.compile(r"<(\w+)>\n?(.*?)\n?</\1>", re.DOTALL)
_LOOKED_AT = 4


class _Block(NamedTuple):
    """The part of a block, and where its text stands: after ``before`` and before ``after`` in block ``at``."""

    part: Part
    at: int
    before: str = ""
    after: str = ""


class Cline(RecordDialect):
    """The dialect of the histories that Cline and Roo Code send."""

    name = "cline"
    title = "Cline or Roo Code history"
    holds = CHAT | Capabilities.THINKING | Capabilities.MODEL
    models = (("modelInfo", "modelId"),)

    def array_path(self, value: Any) -> JsonPath | None:
        """A bare array, of whose first messages one has a mark."""
        is_ours = isinstance(value, list) and any(self.score(item) for item in islice(value, _LOOKED_AT))
        return () if is_ours else None

    def score(self, value: Any) -> int:
        """3 for a user's message with the client's details, or with a result as a text."""
        if not chat.is_chat(value) or value["role"] != "user":
            return 0
        texts = (string(block.get("text")) for block in listed(value.get("content")) if isinstance(block, dict))
        return 3 if any(text.lstrip().startswith(_DETAILS) or _RESULT.match(text) for text in texts) else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what the user said in an answer is a text after the other parts."""
        found: list[Message] = []
        asked: list[ToolCall] = []
        for message in map(_message, (record.value for record in records)):
            if message.role is Role.ASSISTANT:
                asked = list(message.calls)
            elif message.results or asked:
                message = _answering(message, asked)
                # Calls that are not answered here were given up: the client goes on without an answer to them.
                if asked and found and found[-1].calls:
                    hidden = (ToolResult(id=call.id, text="", name=call.name, is_recorded=False) for call in asked)
                    found[-1] = replace(found[-1], parts=(*found[-1].parts, *hidden))
                asked = []
            found.append(message)
        return tuple(found)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with the keys of the file's own; the API wants user and assistant to take turns."""
        placed = chat.alternating(transcript, cut, insertions)
        return chat.new_messages(transcript, cut, placed)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with texts replaced in its blocks; heads of results and calls in a text stay."""
        value = parse(record.raw)
        if not isinstance(value.get("content"), list):
            return chat.shorten(record, texts)
        read = _blocks(value)
        places = {i: read[i] for i in texts if i < len(read)}
        whole = {place.at: f"{place.before}{texts[i]}{place.after}" for i, place in places.items()}
        written = located.content(value["content"], "content", read=located.any_block)
        return located.shorten(record, whole, lambda value: written)


def _message(value: Any) -> Message:
    plain = chat.read(value)
    if plain.role not in (Role.USER, Role.TOOL, Role.ASSISTANT) or not isinstance(value.get("content"), list):
        return plain
    read = _blocks(value)
    parts = (*(block.part for block in read), *_embedded(read))
    role = plain.role
    if role is not Role.ASSISTANT:
        # The user, if anything but answers and the client's own words is said.
        texts = (part.text.lstrip() for part in parts if isinstance(part, Text))
        has_words = any(text and not text.startswith(_OWN) for text in texts)
        has_others = any(not isinstance(part, Text | ToolResult) for part in parts)
        role = Role.USER if has_words or has_others else Role.TOOL
    return Message(role=role, parts=parts, summary=summary_of(role, parts))


def _answering(message: Message, asked: list[ToolCall]) -> Message:
    """The message with the calls that its results answer: of that id; without one of that name, else the next one."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            own = (call for call in asked if (call.id == part.id if part.id else call.name == part.name))
            if call := next(own, asked[0] if asked and not part.id else None):
                asked.remove(call)
                part = replace(part, id=call.id, name=call.name)
        parts.append(part)
    return replace(message, parts=tuple(parts))


def _blocks(value: Mapping[str, Any]) -> list[_Block]:
    """One for each block of the content."""
    parts = [located.any_block(block).part for block in value["content"]]
    found: list[_Block] = []
    if value["role"] == "assistant":
        for i, part in enumerate(parts):
            call = _CALL.search(part.text) if isinstance(part, Text) and part.text.rstrip().endswith(">") else None
            # A text without the call at its end.
            words = call.string[: call.start()].rstrip() if call else ""
            found.append(_Block(Text(text=words), i, after=call.string[len(words) :]) if call else _Block(part, i))
        return found
    for i, part in enumerate(parts):
        text = _text(part)
        head = _head(text)
        after = _text(parts[i + 1]) if i + 1 < len(parts) else ""
        # Whether the block after it is the answer that belongs to this head.
        is_answered = after and not after.lstrip().startswith(_OWN) and not _head(after)
        if found and found[-1].at == i:
            found.append(_Block(Text(text=""), i))
        elif head and not text[head.end() :].strip() and is_answered:
            found.append(_Block(_result(head[1], after), i + 1))
        elif head:
            found.append(_Block(_result(head[1], text[head.end() :]), i, before=head[0]))
        else:
            found.append(_Block(part, i))
    return found


def _text(part: Part) -> str:
    return part.text if isinstance(part, Text) else ""


def _head(text: str) -> re.Match[str] | None:
    """What stands before the answer of a tool; a command in it may have many lines."""
    return _RESULT.match(text, 0, _MOST_HEAD_CHARS) if text.lstrip().startswith("[") else None


def _result(name: str, text: str) -> ToolResult:
    return ToolResult(id="", text=text, name=name, is_error=_FAILED.match(text[:200]) is not None)


def _embedded(read: Sequence[_Block]) -> Iterator[Part]:
    """What blocks say besides: calls in a text, and the user's words in an answer."""
    for block in read:
        if block.after and (found := _CALL.search(block.after)):
            yield ToolCall(id="", name=found[1], arguments=dict(_ARGUMENT.findall(found[2])))
        elif isinstance(block.part, ToolResult) or _text(block.part).startswith(_OWN):
            text = block.part.text if isinstance(block.part, ToolResult) else _text(block.part)
            yield from (Text(text=words) for _, words in _QUOTED.findall(text) if words)


DIALECT = Cline()
