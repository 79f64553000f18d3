"""Tagged texts: formats that write calls and answers as tags within texts, ShareGPT, Hermes' trajectories and Cline's.

ShareGPT: ``{"conversations": [{"from": ..., "value": ...}]}``, and Hermes' tags within the values. Calls have no ids: a
call is paired with the result that follows it. If several calls have fewer observations, the last observation gets
empty results for the others, so that every call has one. A text with ``<think>``, ``<tool_call>`` or
``<tool_response>`` is split into pieces that, joined, are the text again: one of them can thus be shortened while the
tags around it stay.

Cline's and Roo Code's ``api_conversation_history.json``: an array of Anthropic messages. Results of tools stand in
text blocks that begin with ``[read_file for 'a.py'] Result:`` (in older versions the answer is the next block), next
to blocks of the client's own; newer versions write ``tool_result`` too. Older versions have calls as XML at the end of
a text. Results may quote the user. As found in histories of 2025 and 2026; not tested against a client.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from compactor_cli.formats import chat, contents, located, registry
from compactor_cli.formats.chat import BRIDGE, alternating
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.contents import TextPiece, dump, json_text, json_value, listed, named_call, parse, string
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, thinking_of
from compactor_cli.formats.located import RecordDialect
from compactor_cli.formats.registry import CHAT, RUN, Capabilities, Insertion, InsertionPoint, JsonPath
from compactor_cli.model.transcript import Message, Part, Record, Role, Text, Thinking, ToolCall, ToolResult, Transcript

_THOUGHTS = ("think", "scratch_pad")
_TAGS = {Role.ASSISTANT: (*_THOUGHTS, "tool_call"), Role.TOOL: ("tool_response",)}


def pieces(text: str, role: Role) -> list[TextPiece]:
    """Split a text into pieces, in order. Tags that this speaker does not use or close are ordinary words. Linear."""
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
    """The pieces of a text outside of tags: white space, words, white space."""
    words = text.strip()
    start = text.index(words)
    spoken = TextPiece(words, Text(text=words) if words else None)
    return TextPiece(text[:start], None), spoken, TextPiece(text[start + len(words) :], None)


def _tagged(tag: str, inner: str) -> Part:
    if tag in _THOUGHTS:
        return Thinking(text=inner)
    if tag == "tool_call":
        return named_call(inner)
    answer = contents.object_of(json_value(inner))
    text = contents.result_text(answer["content"]) if "content" in answer else inner
    return ToolResult(id="", text=text, name=string(answer.get("name")))


def _shortened(part: Part, written: str, text: str) -> str:
    if isinstance(part, Thinking):
        return written
    if isinstance(part, ToolCall):
        return contents.shortened_call(written, text)
    is_wrapped = isinstance(part, ToolResult) and part.text != written
    return json_text({**json_value(written), "content": text}) if is_wrapped else text


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

    def message(self, value: Any) -> Message:
        """Read one turn."""
        role = _ROLES.get(value["from"], Role.META) if _is_turn(value) else Role.META
        parts = () if role is Role.META else contents.parts_in(_pieces(value, role))
        return Message(role=role, parts=parts, summary=summary_of(role, parts))

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per turn; if a turn has more calls than results, empty results are added."""
        return registry.pad_missing_results(super().read(records))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Turns with the keys of the file's own turns, alternating if those do."""
        return chat.new_messages(transcript, cut, alternating(transcript, cut, insertions), SHAPE)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The turn with these texts replaced; tags stay. Results that stand for missing ones have no text."""
        value = parse(record.raw)
        role = _ROLES.get(value["from"], Role.META) if _is_turn(value) else Role.META
        if role is Role.META or not texts:
            return record.raw
        written = contents.rewritten(_pieces(value, role), texts, _shortened)
        return dump({**value, "value": "".join(written)}, record.raw)

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
                speaker, text = _SPEAKERS[message.role], message.text
                if message.calls:
                    calls = [{"name": call.name, "arguments": call.arguments} for call in message.calls]
                    speaker, text = "function_call", json_text(calls[0] if len(calls) == 1 else calls)
                elif message.results:
                    speaker, text = "observation", "\n".join(result.text for result in message.results)
                turns.append({"from": speaker, "value": text})
            last = message
        return ({**_row_of(conversation), "conversations": turns},)


def _row_of(conversation: Conversation) -> dict[str, Any]:
    tools = [tool.declaration() for tool in conversation.tools]
    return {**conversation.row(), **({"tools": json_text(tools)} if tools else {})}


def _is_turn(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("from"), str) and "value" in value


def _pieces(value: Mapping[str, Any], role: Role) -> list[TextPiece]:
    """The pieces of a turn's value; a call or an observation without tags is one piece."""
    text = contents.result_text(value["value"])
    if value["from"] in _CALLERS:
        return _calls(text)
    found = pieces(text, role)
    if role is Role.TOOL and not any(isinstance(piece.part, ToolResult) for piece in found):
        return [TextPiece(text, ToolResult(id="", text=text))]
    return found


def _calls(text: str) -> list[TextPiece]:
    """The pieces of a call in JSON, or of an array of calls: each call, and the brackets and commas between them."""
    value = json_value(text)
    if not isinstance(value, list) or not value:
        return [TextPiece(text, named_call(text))]
    found = [TextPiece("[", None)]
    for written in map(json_text, value):
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
        """3 for a turn with tags, a tool's turn, or a summary of Hermes' own; 1 for any other turn."""
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
                lines.append(
                    f"<tool_call>\n{json_text({'name': call.name, 'arguments': call.arguments})}\n</tool_call>"
                )
            for result in message.results:
                answer = {"tool_call_id": result.id, "name": result.name, "content": result.text}
                lines.append(f"<tool_response>\n{json_text(answer)}\n</tool_response>")
            turns.append({"from": _SPEAKERS[message.role], "value": "\n".join(lines)})
        return ({**_row_of(conversation), "conversations": turns},)


HERMES_TRAJECTORY = HermesTrajectory()


_DETAILS = "<environment_details>"
# Openings of texts that the client writes to the model in the user's name.
_CLINE_OWN = (
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
# `[read_file for 'tides.txt'] Result:`.
_CLINE_RESULT = re.compile(r"\s*\[(\w+)(?: (?:for|to) '.*?')?\] Result:[ \t]*\n?", re.DOTALL)
_QUOTED = re.compile(r"<(feedback|answer|user_message)>\s*+(.*?)</\1>", re.DOTALL)
_FAILED = re.compile(r"\s*(?:The tool execution failed|<error>|Error\b|\[ERROR\])|.{0,80}exit code [1-9]", re.DOTALL)
# A call as XML at the end of a text: `<read_file><path>tides.txt</path></read_file>`.
_CLINE_CALL = re.compile(
    r"<((?:use|access|ask|attempt|plan_mode|list|load|new|switch|update|fetch|web|codebase|browser)_\w+|\w+_(?:file|files"
    r"|command|content|diff|replace))>\s*(<\w+>.*?)\s*</\1>\s*$",
    re.DOTALL,
)
_ARGUMENT = re.compile(r"<(\w+)>\n?(.*?)\n?</\1>", re.DOTALL)
_LOOKED_AT = 4


class _Block(NamedTuple):
    """The part of a block, and the place of its text."""

    part: Part
    at: int  # position of the block that holds the text
    before: str = ""  # what stands before the text in that block
    after: str = ""  # what stands after it


class Cline(RecordDialect):
    """The dialect of the histories that Cline and Roo Code send."""

    name = "cline"
    title = "Cline or Roo Code history"
    holds = CHAT | Capabilities.THINKING | Capabilities.MODEL
    models = (("modelInfo", "modelId"),)

    def array_path(self, value: Any) -> JsonPath | None:
        """The top level if it is an array and one of its first messages has a mark of the client; else None."""
        is_ours = isinstance(value, list) and any(self.score(item) for item in islice(value, _LOOKED_AT))
        return () if is_ours else None

    def record_score(self, value: Any) -> int:
        """3 for a user's message with the client's environment details, or with a result as a text; else 0."""
        if not chat.is_chat(value) or value["role"] != "user":
            return 0
        texts = (string(block.get("text")) for block in listed(value.get("content")) if isinstance(block, dict))
        return 3 if any(text.lstrip().startswith(_DETAILS) or _CLINE_RESULT.match(text) for text in texts) else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; the user's words within a result are a text after the other parts."""
        found: list[Message] = []
        asked: list[ToolCall] = []
        for message in map(_cline_message, (record.value for record in records)):
            if message.role is Role.ASSISTANT:
                asked = list(message.calls)
            elif message.results or asked:
                # A result belongs to the call with its id; without an id, to the call with its name, else to the next.
                parts = list(message.parts)
                for i, part in enumerate(parts):
                    if not isinstance(part, ToolResult):
                        continue
                    own = (call for call in asked if (call.id == part.id if part.id else call.name == part.name))
                    if call := next(own, asked[0] if asked and not part.id else None):
                        asked.remove(call)
                        parts[i] = replace(part, id=call.id, name=call.name)
                message = replace(message, parts=tuple(parts))
                # Calls without a result here were abandoned: the client goes on without one.
                if asked and found and found[-1].calls:
                    found[-1] = registry.with_unrecorded(found[-1], asked)
                asked = []
            found.append(message)
        return tuple(found)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with the keys of the file's own; user and assistant alternate, as the API requires."""
        return chat.new_messages(transcript, cut, alternating(transcript, cut, insertions))

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with texts replaced in its blocks; heads of results, and calls at the end of a text, stay."""
        value = parse(record.raw)
        if not isinstance(value.get("content"), list):
            return super().shorten(record, texts)
        read = _cline_blocks(value)
        places = {i: read[i] for i in texts if i < len(read)}
        whole = {place.at: f"{place.before}{texts[i]}{place.after}" for i, place in places.items()}
        written = located.content(value["content"], "content", read=located.any_block)
        return located.shorten(record, whole, lambda value: written)


def _cline_message(value: Any) -> Message:
    plain = chat.read(value)
    if plain.role not in (Role.USER, Role.TOOL, Role.ASSISTANT) or not isinstance(value.get("content"), list):
        return plain
    read, role = _cline_blocks(value), plain.role
    # Parts within blocks: calls in a text, and the user's words in a result.
    embedded: list[Part] = []
    for part, _, _, after in read:
        text = part.text if isinstance(part, Text | ToolResult) else ""
        if after and (found := _CLINE_CALL.search(after)):
            embedded.append(ToolCall(id="", name=found[1], arguments=dict(_ARGUMENT.findall(found[2]))))
        elif isinstance(part, ToolResult) or text.startswith(_CLINE_OWN):
            embedded += (Text(text=words) for _, inner in _QUOTED.findall(text) if (words := inner.rstrip()))
    parts = (*(block.part for block in read), *embedded)
    if role is not Role.ASSISTANT:
        # It is the user's if it has anything other than results and texts of the client.
        texts = (part.text.lstrip() for part in parts if isinstance(part, Text))
        has_words = any(text and not text.startswith(_CLINE_OWN) for text in texts)
        has_others = any(not isinstance(part, Text | ToolResult) for part in parts)
        role = Role.USER if has_words or has_others else Role.TOOL
    return Message(role=role, parts=parts, summary=summary_of(role, parts))


def _cline_blocks(value: Mapping[str, Any]) -> list[_Block]:
    """The part of each block of the content, one for one."""
    parts = [located.any_block(block).part for block in value["content"]]
    found: list[_Block] = []
    if value["role"] == "assistant":
        for i, part in enumerate(parts):
            call = (
                _CLINE_CALL.search(part.text) if isinstance(part, Text) and part.text.rstrip().endswith(">") else None
            )
            # A text without the call at its end.
            words = call.string[: call.start()].rstrip() if call else ""
            found.append(_Block(Text(text=words), i, after=call.string[len(words) :]) if call else _Block(part, i))
        return found
    for i, part in enumerate(parts):
        text = _cline_text(part)
        head = _cline_head(text)
        after = _cline_text(parts[i + 1]) if i + 1 < len(parts) else ""
        # Whether the next block is the answer to this head.
        is_answered = after and not after.lstrip().startswith(_CLINE_OWN) and not _cline_head(after)
        if found and found[-1].at == i:
            found.append(_Block(Text(text=""), i))
        elif head and not text[head.end() :].strip() and is_answered:
            found.append(_Block(_cline_result(head[1], after), i + 1))
        elif head:
            found.append(_Block(_cline_result(head[1], text[head.end() :]), i, before=head[0]))
        else:
            found.append(_Block(part, i))
    return found


def _cline_text(part: Part) -> str:
    return part.text if isinstance(part, Text) else ""


def _cline_head(text: str) -> re.Match[str] | None:
    """The head of a tool's answer, or None. A command in it may have many lines."""
    return _CLINE_RESULT.match(text, 0, _MOST_HEAD_CHARS) if text.lstrip().startswith("[") else None


def _cline_result(name: str, text: str) -> ToolResult:
    return ToolResult(id="", text=text, name=name, is_error=_FAILED.match(text[:200]) is not None)


CLINE = Cline(chat.pieces)
