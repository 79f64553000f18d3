"""ShareGPT: ``{"conversations": [{"from": ..., "value": ...}]}``, and Hermes' tags within the values.

Calls have no ids: a call is paired with what follows it. Where several calls are answered by fewer
observations, the last of these stands for the rest, so that the pairs stay whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats import new_message as new_message
from compactor_cli.formats.alternate import BRIDGE, alternating
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import Capabilities
from compactor_cli.formats.chat_dialect import model_of
from compactor_cli.formats.contents import result_text
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.missing_results import pad_missing_results
from compactor_cli.formats.previous import summary_of
from compactor_cli.formats.tags import TaggedPart, pieces, rejoined
from compactor_cli.formats.tool_calls import named_call
from compactor_cli.model.transcript import Message, Record, Role, ToolResult, Transcript

_PATHS: tuple[JsonPath, ...] = (("conversations",), ("conversation",))
SHAPE = new_message.TurnShape(
    role_key="from", text_key="value", user=("human", "user"), assistant=("gpt", "assistant", "model", "chatgpt")
)
_CALLERS = frozenset({"function_call", "tool_call", "tool_calls"})
_ROLES = {
    **chat.ROLES,
    **dict.fromkeys(("chatgpt", "bing", "bard", "bot", *_CALLERS), Role.ASSISTANT),
    **dict.fromkeys(("observation", "function_response", "tool_result"), Role.TOOL),
}
_META = Message(role=Role.META)
_OWN_ROLES = frozenset({"function_call", "observation"})
SPEAKERS = {Role.SYSTEM: "system", Role.USER: "human", Role.ASSISTANT: "gpt", Role.TOOL: "tool"}


class ShareGPT:
    """The dialect of ShareGPT data sets."""

    name = "sharegpt"
    title = "ShareGPT conversations"
    holds = Capabilities.SYSTEM | Capabilities.CALLS | Capabilities.TOOLS | Capabilities.MODEL | Capabilities.METADATA
    unwritten = NEVER_WRITTEN

    def array_path(self, value: Any) -> JsonPath | None:
        """``conversations``, or a bare array of turns."""
        return array_at(value)

    def score(self, value: Any) -> int:
        """3 for a call or an observation; 2 for any turn with ``from`` and ``value``."""
        if not is_turn(value):
            return 2 if isinstance(value, dict) and array_at(value) else 0
        return 3 if value["from"] in _OWN_ROLES else 2

    def starts(self, value: Any) -> bool:
        """Never: no turn says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per turn."""
        return read(records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the row names."""
        return model_of(records, row)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Turns with the keys of the file's own, alternating where these do."""
        return new_message.insert(transcript, cut, alternating(transcript, cut, insertions), SHAPE)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The turn with these texts replaced within its value; tags stay where they are."""
        return shorten(record, texts)

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
                    turns.append({"from": SPEAKERS[Role.ASSISTANT], "value": BRIDGE})
                turns.append(_turn(message))
            last = message
        return ({**row_of(conversation), "conversations": turns},)


def _turn(message: Message) -> dict[str, str]:
    if message.calls:
        calls = [{"name": call.name, "arguments": call.arguments} for call in message.calls]
        return {"from": "function_call", "value": dumps(calls[0] if len(calls) == 1 else calls)}
    if message.results:
        return {"from": "observation", "value": "\n".join(result.text for result in message.results)}
    return {"from": SPEAKERS[message.role], "value": message.text}


def row_of(conversation: Conversation) -> dict[str, Any]:
    """What stands next to the turns of a row."""
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in conversation.tools
    ]
    return {
        **conversation.extra,
        **({"model": conversation.model} if conversation.model else {}),
        **({"tools": dumps(tools)} if tools else {}),
    }


def dumps(value: Any) -> str:
    """JSON within a text."""
    return json.dumps(value, ensure_ascii=False)


def is_turn(value: Any) -> bool:
    """Whether this is a turn: a speaker and what was said."""
    return isinstance(value, dict) and isinstance(value.get("from"), str) and "value" in value


def array_at(value: Any) -> JsonPath | None:
    """Where the turns are: in the row, or the value itself."""
    places = ((), *_PATHS) if isinstance(value, list) else _PATHS
    for path in places:
        found = value if not path else value.get(path[0]) if isinstance(value, dict) else None
        if isinstance(found, list) and is_turn(next((item for item in found if isinstance(item, dict)), None)):
            return path
    return None


def read(records: Sequence[Record]) -> tuple[Message, ...]:
    """One message per turn; the results of a turn's calls are made as many as the calls."""
    return pad_missing_results([_message(record.value) for record in records])


def _message(value: Any) -> Message:
    if not is_turn(value):
        return _META
    role = _ROLES.get(value["from"], Role.META)
    if role is Role.META:
        return _META
    parts = tuple(piece.part for piece in _pieces(value, role) if piece.part is not None)
    return Message(role=role, parts=parts, summary=summary_of(role, parts))


def _pieces(value: Mapping[str, Any], role: Role) -> list[TaggedPart]:
    """The value in pieces; a call or an observation that is not tagged is one piece."""
    text = value["value"] if isinstance(value["value"], str) else result_text(value["value"])
    if value["from"] in _CALLERS:
        return _calls(text)
    found = pieces(text, role)
    if role is Role.TOOL and not any(isinstance(piece.part, ToolResult) for piece in found):
        return [TaggedPart(written=text, part=ToolResult(id="", text=text))]
    return found


def _calls(text: str) -> list[TaggedPart]:
    """A call as JSON, or an array of calls: each a piece with what stands between them."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, list) or not value:
        return [TaggedPart(written=text, part=named_call(text))]
    written = [json.dumps(call, ensure_ascii=False) for call in value]
    calls = [TaggedPart(written=call, part=named_call(call)) for call in written]
    between = [TaggedPart(written=", ", part=None)] * len(calls)
    joined = [piece for pair in zip(calls, between, strict=True) for piece in pair][:-1]
    return [TaggedPart(written="[", part=None), *joined, TaggedPart(written="]", part=None)]


def shorten(record: Record, texts: Mapping[int, str]) -> bytes:
    """The turn with these texts replaced. Results that only stand for missing ones have no text to replace."""
    value = parse(record.raw)
    role = _ROLES.get(value["from"], Role.META) if is_turn(value) else Role.META
    if role is Role.META or not texts:
        return record.raw
    return dump({**value, "value": rejoined(_pieces(value, role), texts)}, record.raw)


DIALECT = ShareGPT()
