"""SWE-agent trajectories: a document with ``history`` (what the model was shown) and ``trajectory`` (the steps).

In text modes an action stands in the assistant's words and the next user message is its observation; in
function-calling modes the messages are those of OpenAI, with ``tool_call_ids`` on the result. A document that
has no history is read by its steps: each is an action with its observation. What was done in a demonstration
(``is_demo``) was done by nobody: it is read as material the client sends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import RUN, Capabilities
from compactor_cli.formats.chat_dialect import model_of
from compactor_cli.formats.contents import media_count, result_text, shortened_result, string
from compactor_cli.formats.fenced import TOOL, Fenced, fenced, text_of, with_text
from compactor_cli.formats.frames import with_key
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.located_parts import LocatedPart, at, like_keys, parts, shorten
from compactor_cli.formats.scrub import gone_lines, scrubbed
from compactor_cli.formats.tool_calls import has_calls
from compactor_cli.model.transcript import Message, Record, Role, Text, ToolCall, ToolResult, Transcript

# Where a step repeats the prompt: since version 1.1, and before.
_PROMPTS = ("query", "messages")
_OWN_KEYS = frozenset({"thought", "action", "message_type", "is_demo", "agent", "tool_call_ids"})


class SweAgent:
    """The dialect of SWE-agent's ``.traj`` files."""

    name = "swe-agent"
    title = "SWE-agent trajectory"
    holds = RUN | Capabilities.IDS

    def array_path(self, value: Any) -> JsonPath | None:
        """``history``, or ``trajectory`` where there is no history."""
        if not isinstance(value, dict) or not isinstance(value.get("trajectory"), list):
            return None
        if chat.array_at(value, (("history",),)) and value["history"]:
            return ("history",)
        return ("trajectory",) if value["trajectory"] and _is_step(value["trajectory"][0]) else None

    def score(self, value: Any) -> int:
        """3 for a document, a step, and a message with thought and action; 2 for other marks."""
        if _is_step(value):
            return 3
        if not chat.is_chat(value):
            return 3 if self.array_path(value) is not None else 0
        return 3 if "thought" in value and "action" in value else 2 * (not _OWN_KEYS.isdisjoint(value))

    def starts(self, value: Any) -> bool:
        """Never: no message says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; a user message after an action is its observation."""
        messages: list[Message] = []
        for record in records:
            asks = bool(messages) and messages[-1].role is Role.ASSISTANT and _asks(messages[-1])
            messages.append(_message(record.value, asks))
        return tuple(messages)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the run was configured with."""
        named = at(row, ("replay_config", "agent", "model", "name")) or at(row, ("info", "model"))
        return named if isinstance(named, str) else model_of(records, row)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages of the history; among bare steps, a step without an action whose observation is the summary."""
        first = next((r for r in transcript.records if isinstance(r.value, dict)), None)
        like, raw = (first.value, first.raw) if first else ({}, b"")
        if _is_step(like):
            return tuple(dump(like_keys(_step(item), like), raw) for item in insertions)
        marks = {"agent": like["agent"]} if "agent" in like else {}
        messages = ({"role": item.role.value, "content": item.text, **marks} for item in insertions)
        return tuple(dump(like_keys(message, like), raw) for message in messages)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with these texts replaced within its words."""
        value = parse(record.raw)
        if _is_step(value):
            return shorten(record, texts, _step_pieces)
        if _action(value):
            return dump(_with_action(value, texts), record.raw)
        if value.get("role") == "tool":
            return dump({**value, "content": shortened_result(value.get("content"), texts[0])}, record.raw)
        return chat.shorten(record, texts)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """Next to a history, the steps without what left it; none repeats what the model was asked with."""
        steps = source.row.get("trajectory") if isinstance(source.row, dict) else None
        if not isinstance(steps, list) or not source.records or _is_step(source.records[0].value):
            return composed
        gone = gone_lines(source, composed)
        new = [scrubbed(_without_query(step), gone) for step in steps]
        frame = with_key(composed.frame, "trajectory", new, steps) if new != steps else composed.frame
        return replace(composed, frame=frame)


def _without_query(step: Any) -> Any:
    """The step without the whole prompt, which every step repeats."""
    return {**step, **{key: [] for key in _PROMPTS if step.get(key)}} if isinstance(step, dict) else step


def _is_step(value: Any) -> bool:
    return isinstance(value, dict) and "role" not in value and {"action", "observation"} <= value.keys()


def _asks(message: Message) -> bool:
    return any(not call.id for call in message.calls)


def _message(value: Any, follows_action: bool) -> Message:
    if _is_step(value):
        return _step_message(value)
    message = chat.read(value)
    if message.is_meta or message.summary:
        return message
    if value.get("is_demo") is True:
        return Message(role=Role.TOOL, parts=message.parts)
    if message.role is Role.TOOL:
        return Message(role=Role.TOOL, parts=(_tool_result(value, message.results),))
    if follows_action and message.role is Role.USER and (text := text_of(value.get("content"))):
        return Message(role=Role.TOOL, parts=(ToolResult(id="", text=text),))
    if _action(value):
        return Message(role=Role.ASSISTANT, parts=_fenced(value).parts())
    return message


def _tool_result(value: Mapping[str, Any], results: Sequence[ToolResult]) -> ToolResult:
    ids = value.get("tool_call_ids")
    call_id = string(value.get("tool_call_id")) or (string(ids[0]) if isinstance(ids, list) and ids else "")
    content = value.get("content")
    name = results[0].name if results else ""
    return ToolResult(id=call_id, text=result_text(content), name=name, media_count=media_count(content))


def _action(value: Any) -> str:
    """The action in the words of an assistant; empty where there are calls next to them."""
    if not chat.is_chat(value) or value["role"] != "assistant" or has_calls(value) or value.get("is_demo") is True:
        return ""
    action = string(value.get("action")).strip()
    return action if action and action in text_of(value.get("content")) else ""


def _fenced(value: Mapping[str, Any]) -> Fenced:
    return fenced(text_of(value.get("content")), _action(value))


def _with_action(value: Mapping[str, Any], texts: Mapping[int, str]) -> dict[str, Any]:
    """The message with its words shortened, and the copies of thought and action next to them."""
    old = _fenced(value)
    new = old.shortened(texts)
    copies = {"action": new.action} if new.action != old.action else {}
    if new.before != old.before and "thought" in value:
        copies["thought"] = new.before
    return {**value, "content": with_text(value.get("content"), "".join(new)), **copies}


def _step_message(value: Mapping[str, Any]) -> Message:
    found = parts(_step_pieces(value))
    if not string(value.get("action")).strip():
        texts = tuple(Text(text=part.text) if isinstance(part, ToolResult) else part for part in found)
        message = chat.read({"role": "user", "content": string(value.get("observation"))})
        is_summary = message.summary is not None
        return Message(role=Role.USER if is_summary else Role.ASSISTANT, parts=texts, summary=message.summary)
    return Message(role=Role.ASSISTANT, parts=found)


def _step_pieces(value: Mapping[str, Any]) -> list[LocatedPart]:
    """A step: the thought, the action and what came of it."""
    thought, action, observation = (string(value.get(key)) for key in ("thought", "action", "observation"))
    call = [LocatedPart(ToolCall(id="", name=TOOL, arguments=action), (("action",),))] if action.strip() else []
    result = LocatedPart(ToolResult(id="", text=observation), (("observation",),))
    return [
        *([LocatedPart(Text(text=thought), (("thought",),))] if thought else []),
        *call,
        *([result] if observation or call else []),
    ]


def _step(item: Insertion) -> dict[str, Any]:
    if item.role is Role.ASSISTANT:
        return {"action": "", "observation": "", "response": item.text, "state": "", "thought": item.text}
    return {"action": "", "observation": item.text, "response": "", "state": "", "thought": ""}


DIALECT = SweAgent()
