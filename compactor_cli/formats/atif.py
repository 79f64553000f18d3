"""ATIF trajectories (Agent Trajectory Interchange Format 1.0 to 1.8): a document with ``steps``.

A step holds calls together with their results. Steps are numbered from 1 without gaps, so they are numbered
anew after a compaction. A system step whose ``extra.context_management.boundary`` is ``replace`` stands for
everything before it; with ``append`` it adds to what is before it. A summary after a kept head therefore is
written with ``append``, one that nothing is kept before with ``replace``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import located
from compactor_cli.formats.base import Capabilities, Insertion, InsertionPoint, of_words
from compactor_cli.formats.client_signs import marked_summary, summary_of
from compactor_cli.formats.contents import listed, size_bytes, string
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, arguments_object, thinking_of
from compactor_cli.formats.jsontext import dumped, number_replaced, with_key
from compactor_cli.formats.located import LocatedPart, RecordDialect, at, parts_of
from compactor_cli.formats.sessions import time_near
from compactor_cli.model.transcript import Media, Message, Record, Role, Text, ToolCall, Transcript

_ROLES = {"system": Role.SYSTEM, "user": Role.USER, "agent": Role.ASSISTANT}
_NO_CALL = LocatedPart(ToolCall(id="", name="", arguments=""))


class Atif(RecordDialect):
    """The dialect of ATIF."""

    name = "atif"
    title = "ATIF trajectory"
    holds = of_words("run ids images thinking times usage summaries sidechains".split())
    unwritten = NEVER_WRITTEN | Capabilities.IMAGES
    paths = (("steps",), ("trajectory", "steps"))
    models = (("model_name",),)
    row_models = (("agent", "model_name"), ("trajectory", "agent", "model_name"))

    def record_score(self, value: Any) -> int:
        """3 for a step."""
        return 3 if _is_step(value) else 0

    def starts(self, value: Any) -> bool:
        """Whether it is the step with number 1."""
        return _is_step(value) and value["step_id"] == 1 and type(value["step_id"]) is int

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per step, its results in it; what a boundary replaced is ``superseded``."""
        values = [record.value for record in records]
        last = max((i for i, value in enumerate(values) if _boundary(value) == "replace"), default=0)
        return tuple(_message(value, i < last) for i, value in enumerate(values))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A boundary step with the summary as its observation. Neither it nor other messages are trained on."""
        has_head = any(not transcript.messages[i].is_meta for i in cut.before)
        time, number = time_near(transcript, cut), len(cut.before) + 1
        steps = (_step(item, number + i, time, has_head=has_head) for i, item in enumerate(insertions))
        return dumped(transcript, steps)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """Steps numbered from 1; ``total_steps`` next to them is their number."""
        records = list(composed.records)
        for i, record in enumerate(records):
            if _is_step(record.value) and record.value["step_id"] != i + 1:
                raw = number_replaced(record.raw, "step_id", i + 1)
                records[i] = replace(record, raw=raw, value={**record.value, "step_id": i + 1})
        frame = composed.frame
        if isinstance(at(composed.row, ("final_metrics", "total_steps")), int):
            frame = with_key(frame, "total_steps", len(records))
        return replace(composed, records=tuple(records), frame=frame)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A trajectory of steps; keys that the format does not define stand in ``extra``, as it wants it."""
        named = {"model_name": conversation.model} if conversation.model else {}
        agent = {"name": "agent", "version": "unknown", **named}
        document = {"schema_version": "ATIF-v1.7", "session_id": conversation.key("session"), "agent": agent}
        steps: list[dict[str, Any]] = []
        for message in conversation.messages:
            if message.role is Role.TOOL:
                answers = [{"source_call_id": result.id, "content": result.text} for result in message.results]
                steps[-1]["observation"] = {"results": answers}
            else:
                has_head = any(step["source"] != "system" for step in steps)
                steps.append(_written(message, len(steps) + 1, has_head=has_head))
        return ({**document, "steps": steps, **({"extra": dict(conversation.extra)} if conversation.extra else {})},)


def _written(message: Message, number: int, *, has_head: bool) -> dict[str, Any]:
    if message.summary:
        item = Insertion(role=Role.USER, text=message.text, is_summary=True)
        return _step(item, number, message.timestamp, has_head=has_head)
    source = next(name for name, role in _ROLES.items() if role is message.role)
    stamp = {"timestamp": message.timestamp} if message.timestamp else {}
    step: dict[str, Any] = {"step_id": number, **stamp, "source": source, "message": message.text}
    if thought := thinking_of(message):
        step["reasoning_content"] = thought
    if message.calls:
        step["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments_object(call)}
            for call in message.calls
        ]
    return step


def _is_step(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("step_id"), int):
        return False
    return string(value.get("source")) in _ROLES and "message" in value


def _boundary(value: Any) -> str:
    """How a step changes the context (``replace``, ``append``); empty for one that does not."""
    found = at(value, ("extra", "context_management"))
    if not _is_step(value) or not isinstance(found, dict) or found.get("type", "compaction") != "compaction":
        return ""
    return string(found.get("boundary"))


def _message(value: Any, is_superseded: bool) -> Message:
    if not _is_step(value):
        return Message(role=Role.META)
    found, is_boundary = parts_of(pieces(value)), bool(_boundary(value))
    role = Role.USER if is_boundary else _ROLES[value["source"]]
    is_summary = is_boundary and any(part.text for part in found if isinstance(part, Text))
    summary = marked_summary("atif", found) if is_summary else summary_of(role, found)
    time = string(value.get("timestamp"))
    return Message(role=role, parts=found, timestamp=time, summary=summary, superseded=is_superseded)


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of a step with the places of their texts.

    Of a boundary only the observation is shown to a model. Results without a call answer what the message
    asked for in the agent's steps, and are given as texts in others.
    """
    if not _is_step(value):
        return []
    found = enumerate(listed(at(value, ("observation", "results"))))
    results = [(result, ("observation", "results", i, "content")) for i, result in found]
    texts = [
        piece for result, place in results for piece in located.content(at(result, ("content",)), *place, read=_block)
    ]
    if _boundary(value) and results:
        return texts
    reasoning = value.get("reasoning_content")
    spoken = [located.thinking(reasoning)] if isinstance(reasoning, str) and reasoning else []
    spoken += located.content(value["message"], "message", read=_block)
    if value["source"] != "agent":
        return [*spoken, *texts]
    calls = [
        located.call(call, "arguments", "tool_calls", i, id_key="tool_call_id", name_key="function_name")
        if isinstance(call, dict)
        else _NO_CALL
        for i, call in enumerate(listed(value.get("tool_calls")))
    ]
    calls += [_NO_CALL] * max(len(results) - len(calls), 0)
    answers = (
        located.result(at(result, ("content",)), place, call_id=at(result, ("source_call_id",)))
        for result, place in results
    )
    return [*spoken, *calls, *answers]


def _block(block: Any) -> LocatedPart:
    piece = located.block(block)
    media = piece.part
    return LocatedPart(replace(media, size_bytes=size_bytes(block))) if isinstance(media, Media) else piece


def _step(item: Insertion, number: int, time: str, *, has_head: bool) -> dict[str, Any]:
    stamp = {"timestamp": time} if time else {}
    if not item.is_summary:
        source = "agent" if item.role is Role.ASSISTANT else "user"
        return {"step_id": number, **stamp, "source": source, "message": item.text, "is_copied_context": True}
    management = {"type": "compaction", "boundary": "append" if has_head else "replace"}
    return {
        "step_id": number,
        **stamp,
        "source": "system",
        "message": "Context compaction performed",
        "observation": {"results": [{"content": item.text}]},
        "is_copied_context": True,
        "extra": {"context_management": management},
    }


DIALECT = Atif(pieces)
