"""ShareGPT: ``{"conversations": [{"from": ..., "value": ...}]}``, and Hermes' tags within the values.

Calls have no ids: a call is paired with what follows it. Where several calls are answered by fewer
observations, the last of these stands for the rest, so that the pairs stay whole. A text with ``<think>``,
``<tool_call>`` or ``<tool_response>`` is taken to pieces that, joined as written, are the text again: so one of them
can be shortened while the tags around it stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.formats import chat, contents
from compactor_cli.formats.base import RUN, Capabilities, Insertion, InsertionPoint, pad_missing_results
from compactor_cli.formats.chat import BRIDGE, alternating
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.contents import TextPiece, dump, json_value, named_call, parse, result_text, rewritten
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, thinking_of
from compactor_cli.formats.located import RecordDialect
from compactor_cli.model.transcript import Message, Part, Record, Role, Text, Thinking, ToolCall, ToolResult, Transcript

_TAGS = {Role.ASSISTANT: ("think", "scratch_pad", "tool_call"), Role.TOOL: ("tool_response",)}
_THOUGHTS = frozenset({"think", "scratch_pad"})


def pieces(text: str, role: Role) -> list[TextPiece]:
    """The text in order. Tags that this speaker does not use, and open ones, are words like others. Linear."""
    found: list[TextPiece] = []
    at = 0
    for tag, start, stop in _tagged_spans(text, _TAGS.get(role, ())):
        inner = text[start:stop].strip()
        first = start + text[start:stop].index(inner)
        found += _words(text[at : start - len(tag) - 2])
        found.append(TextPiece(text[start - len(tag) - 2 : first], None))
        found.append(TextPiece(inner, _tagged(tag, inner)))
        found.append(TextPiece(text[first + len(inner) : stop + len(tag) + 3], None))
        at = stop + len(tag) + 3
    if not found:
        return [TextPiece(text, Text(text=text) if text else None)]
    return [*found, *_words(text[at:])]


def _tagged_spans(text: str, names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Each outermost pair of tags: its name, and where its inner text starts and stops."""
    closed = {name for name in names if f"</{name}>" in text}
    if not closed:
        return
    at = 0
    for match in re.finditer(f"<({'|'.join(sorted(closed))})>", text):
        if match.start() < at or match[1] not in closed:
            continue
        stop = text.find(f"</{match[1]}>", match.end())
        if stop < 0:
            closed.discard(match[1])
            continue
        yield match[1], match.end(), stop
        at = stop


def _words(text: str) -> tuple[TextPiece, ...]:
    """What stands outside of tags: words, and the white space around them."""
    words = text.strip()
    start = text.index(words)
    spoken = TextPiece(words, Text(text=words) if words else None)
    return TextPiece(text[:start], None), spoken, TextPiece(text[start + len(words) :], None)


def _tagged(tag: str, inner: str) -> Part:
    if tag in _THOUGHTS:
        return Thinking(text=inner)
    if tag == "tool_call":
        return named_call(inner)
    answer = json_value(inner)
    answer = answer if isinstance(answer, dict) else {}
    text = result_text(answer["content"]) if "content" in answer else inner
    name = answer.get("name")
    return ToolResult(id="", text=text, name=name if isinstance(name, str) else "")


def _shortened(part: Part, written: str, text: str) -> str:
    if isinstance(part, Thinking):
        return written
    if isinstance(part, ToolCall):
        return contents.shortened_call(written, text)
    is_wrapped = isinstance(part, ToolResult) and part.text != written
    return dumps({**json_value(written), "content": text}) if is_wrapped else text


_NAMES = {Role.USER: ("human", "user"), Role.ASSISTANT: ("gpt", "assistant", "model", "chatgpt")}
SHAPE = chat.TurnShape("from", "value", _NAMES)
_CALLERS = frozenset({"function_call", "tool_call", "tool_calls"})
_ROLES = {
    **chat.ROLES,
    **dict.fromkeys(("chatgpt", "bing", "bard", "bot", *_CALLERS), Role.ASSISTANT),
    **dict.fromkeys(("observation", "function_response", "tool_result"), Role.TOOL),
}
_OWN_ROLES = frozenset({"function_call", "observation"})
_SPEAKERS = {Role.SYSTEM: "system", Role.USER: "human", Role.ASSISTANT: "gpt", Role.TOOL: "tool"}


class ShareGPT(RecordDialect):
    """The dialect of ShareGPT data sets."""

    name = "sharegpt"
    title = "ShareGPT conversations"
    holds = Capabilities.SYSTEM | Capabilities.CALLS | Capabilities.TOOLS | Capabilities.MODEL | Capabilities.METADATA
    unwritten = NEVER_WRITTEN
    paths = (("conversations",), ("conversation",))
    models = (("model",),)
    row_models = chat.ROW_MODELS

    def record_score(self, value: Any) -> int:
        """3 for a call or an observation; 2 for any turn with ``from`` and ``value``."""
        return (3 if value["from"] in _OWN_ROLES else 2) if _is_turn(value) else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per turn; the results of a turn's calls are made as many as the calls."""
        return pad_missing_results([_message(record.value) for record in records])

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Turns with the keys of the file's own, alternating where these do."""
        return chat.new_messages(transcript, cut, alternating(transcript, cut, insertions), SHAPE)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The turn with these texts replaced; tags stay. Results that only stand for missing ones have no text."""
        value = parse(record.raw)
        role = _ROLES.get(value["from"], Role.META) if _is_turn(value) else Role.META
        if role is Role.META or not texts:
            return record.raw
        return dump({**value, "value": "".join(rewritten(_pieces(value, role), texts, _shortened))}, record.raw)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A row of alternating turns; ``tools`` as the JSON string that trainers read."""
        turns: list[dict[str, str]] = []
        last: Message | None = None
        for message in conversation.messages:
            is_plain = last is not None and not (message.calls or last.calls or message.summary or last.summary)
            if last and is_plain and message.role is last.role:
                turns[-1]["value"] += f"\n\n{message.text}"
            else:
                if last and message.role is Role.USER and last.role in (Role.USER, Role.TOOL):
                    turns.append({"from": _SPEAKERS[Role.ASSISTANT], "value": BRIDGE})
                turns.append(_turn(message))
            last = message
        return ({**_row_of(conversation), "conversations": turns},)


def _turn(message: Message) -> dict[str, str]:
    if message.calls:
        calls = [{"name": call.name, "arguments": call.arguments} for call in message.calls]
        return {"from": "function_call", "value": dumps(calls[0] if len(calls) == 1 else calls)}
    if message.results:
        return {"from": "observation", "value": "\n".join(result.text for result in message.results)}
    return {"from": _SPEAKERS[message.role], "value": message.text}


def _row_of(conversation: Conversation) -> dict[str, Any]:
    tools = [tool.declaration() for tool in conversation.tools]
    return {**conversation.row(), **({"tools": dumps(tools)} if tools else {})}


def dumps(value: Any) -> str:
    """JSON within a text."""
    return json.dumps(value, ensure_ascii=False)


def _is_turn(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("from"), str) and "value" in value


def _message(value: Any) -> Message:
    role = _ROLES.get(value["from"], Role.META) if _is_turn(value) else Role.META
    if role is Role.META:
        return Message(role=role)
    parts = tuple(piece.part for piece in _pieces(value, role) if piece.part is not None)
    return Message(role=role, parts=parts, summary=summary_of(role, parts))


def _pieces(value: Mapping[str, Any], role: Role) -> list[TextPiece]:
    """The value in pieces; a call or an observation that is not tagged is one piece."""
    text = result_text(value["value"])
    if value["from"] in _CALLERS:
        return _calls(text)
    found = pieces(text, role)
    if role is Role.TOOL and not any(isinstance(piece.part, ToolResult) for piece in found):
        return [TextPiece(text, ToolResult(id="", text=text))]
    return found


def _calls(text: str) -> list[TextPiece]:
    """A call as JSON, or an array of calls: each a piece with what stands between them."""
    value = json_value(text)
    if not isinstance(value, list) or not value:
        return [TextPiece(text, named_call(text))]
    found = [TextPiece("[", None)]
    for written in map(dumps, value):
        found += [TextPiece(written, named_call(written)), TextPiece(", ", None)]
    return [*found[:-1], TextPiece("]", None)]


SHAREGPT = ShareGPT()


_MARKS = ("<tool_call>", "<tool_response>", "[CONTEXT SUMMARY]:")


class HermesTrajectory(ShareGPT):
    """The dialect of Hermes' trajectories."""

    name = "hermes"
    title = "Hermes trajectory"
    holds = RUN | Capabilities.THINKING | Capabilities.TOOLS
    row_score = 1

    def record_score(self, value: Any) -> int:
        """3 for a turn with tags, of a tool, or that is its compressor's summary; 1 for any other turn."""
        if not _is_turn(value):
            return 0
        turn_text = value["value"]
        is_marked = isinstance(turn_text, str) and any(mark in turn_text for mark in _MARKS)
        return 3 if is_marked or value["from"] == "tool" else 1

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Turns of ``human`` and ``gpt``; a summary may follow a tool's turn, as Hermes itself writes it."""
        return chat.new_messages(transcript, cut, insertions, SHAPE)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A row of turns with tags."""
        turns = []
        for message in conversation.messages:
            thought = thinking_of(message)
            lines = [f"<think>\n{thought}\n</think>"] if thought else []
            lines += [message.text] if message.text else []
            for call in message.calls:
                lines.append(f"<tool_call>\n{dumps({'name': call.name, 'arguments': call.arguments})}\n</tool_call>")
            for result in message.results:
                answer = {"tool_call_id": result.id, "name": result.name, "content": result.text}
                lines.append(f"<tool_response>\n{dumps(answer)}\n</tool_response>")
            turns.append({"from": _SPEAKERS[message.role], "value": "\n".join(lines)})
        return ({**_row_of(conversation), "conversations": turns},)


HERMES_TRAJECTORY = HermesTrajectory()
