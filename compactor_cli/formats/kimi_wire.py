"""Kimi Code logs: ``~/.kimi-code/sessions/<folder>/<session>/agents/main/wire.jsonl``, one event a line.

What is sent is folded from some of the events (`kimi_log`); the others are telemetry and state. A step of
the model is several events, which stay together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from compactor_cli.formats import blocks
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import SESSION, Capabilities
from compactor_cli.formats.contents import arguments, string
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.kimi_log import (
    APPEND,
    COMPACTION,
    Folded,
    Value,
    event_of,
    fold,
    is_users,
    summary_text,
)
from compactor_cli.formats.located_parts import LocatedPart, at, parts, result_piece, shorten, text_pieces
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.transcript import Message, Part, PreviousSummary, Record, Role, Text, ToolCall, Transcript

_FAMILIES = frozenset(
    "agent config context full_compaction goal llm micro_compaction permission plan_mode plugin profile prompt runtime"
    " token_counting tools turn usage".split()
)
# Messages of the user that the client wrote.
_CLIENT_ORIGINS = frozenset({"injection", "system_trigger", "hook", "notification"})
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "system": Role.SYSTEM}


class KimiWire:
    """The dialect of Kimi Code's session logs."""

    name = "kimi-wire"
    title = "Kimi Code wire log"
    holds = SESSION | Capabilities.SYSTEM | Capabilities.SUMMARIES | Capabilities.TOOLS

    def array_path(self, value: Any) -> JsonPath | None:
        """None: a line is an event."""
        return None

    def score(self, value: Any) -> int:
        """3 for the first line and for events of the client's families with their time."""
        if not isinstance(value, dict):
            return 0
        family, dot, _ = string(value.get("type")).partition(".")
        is_event = bool(dot) and family in _FAMILIES and isinstance(value.get("time", 0), int)
        return 3 if self.starts(value) or is_event else 0

    def starts(self, value: Any) -> bool:
        """``{"type": "metadata", "protocol_version": …}``."""
        return isinstance(value, dict) and value.get("type") == "metadata" and "protocol_version" in value

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per event; what was compacted, undone or cleared is ``superseded``."""
        values = _values(records)
        folded = fold(values)
        sent = frozenset(folded.history)
        return tuple(_message(value, i, folded, sent) for i, value in enumerate(values))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last request."""
        requests = (value for value in reversed(_values(records)) if value.get("type") == "llm.request")
        return next((name for value in requests if (name := string(value.get("model")))), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages; the client takes the summary for one of its own, and replaces it at its next compaction."""
        values = _values(transcript.records)
        stop = cut.after[0] if cut.after else len(values)
        time = next((time for value in reversed(values[:stop]) if isinstance(time := value.get("time"), int)), 0)
        written = (
            {"type": APPEND, **_agent(values), "message": _message_of(item), "time": time} for item in insertions
        )
        return tuple(dump(event, transcript.records[0].raw) for event in written)

    @property
    def appends_head(self) -> bool:
        """False: a compaction replaces from the start."""
        return False

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """``context.apply_compaction`` of all messages before the tail, and a new base for the client's counters. An
        acknowledgement is left out: it would stand after the tail."""
        values = _values(transcript.records)
        tail = set(cut.after)
        history = fold(values).history
        count = next((n for n, i in enumerate(history) if i in tail), len(history))
        before = _size(values)
        sizes = {"tokensBefore": before, "tokensAfter": size_tokens}
        summary = next((item.text for item in insertions if item.is_summary), "")
        events: list[dict[str, Any]] = [{"type": COMPACTION, "summary": summary, "compactedCount": count, **sizes}]
        if before:
            left = {"length": len(history) - count + 1, "tokens": size_tokens, "measured": False}
            events.append({"type": "token_counting.rebased", **left})
        newest = max((time for value in values if isinstance(time := value.get("time"), int)), default=0)
        stamped = ({**event, **_agent(values), "time": newest + n} for n, event in enumerate(events, 1))
        return tuple(dump(event, transcript.records[0].raw) for event in stamped)

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """Counters, which count messages that are gone; copies of messages for display; prompts of messages that
        do not stay."""
        values = _values(records)
        kept = set(staying)
        found = set()
        prompt = -1
        for i, value in enumerate(values):
            kind = string(value.get("type"))
            if kind.startswith("token_counting.") or kind == "agent.message.appended":
                found.add(i)
            elif kind in ("turn.prompt", "turn.steer"):
                prompt = i
            elif prompt >= 0 and is_users(value):
                found |= {prompt} if i not in kept else set()
                prompt = -1
        return frozenset(found)

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """None: counters do not stay."""
        return {}

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The event as it is."""
        return record.raw

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The event with texts replaced."""
        return shorten(record, texts, lambda value: list(_pieces(value)))


DIALECT = KimiWire()


def _values(records: Sequence[Record]) -> list[Value]:
    return [record.value if isinstance(record.value, dict) else {} for record in records]


def _message(value: Value, i: int, folded: Folded, sent: frozenset[int]) -> Message:
    timestamp = _timestamp(value.get("time"))
    is_gone = folded.step_of.get(i, i) not in sent
    if i in folded.compactions:
        text = summary_text(value)
        summary_parts = (Text(text=text),)
        summary = summary_of(Role.USER, summary_parts) or PreviousSummary(origin="kimi", text=text)
        return Message(role=Role.USER, parts=summary_parts, timestamp=timestamp, summary=summary, superseded=is_gone)
    role = _role(value)
    if role is Role.META or folded.step_of.get(i) in folded.empty:
        return Message(role=Role.META, timestamp=timestamp)
    found = parts(tuple(_pieces(value)))
    is_step = i in folded.step_of
    group = f"step-{folded.step_of[i]}" if is_step else ""
    summary_ = _summary(value, role, found)
    return Message(
        role=role,
        parts=found,
        group=group,
        timestamp=timestamp,
        summary=summary_,
        superseded=is_gone,
        own_words="" if at(value, ("message", "origin", "kind")) in _CLIENT_ORIGINS else None,
    )


def _summary(value: Value, role: Role, found: tuple[Part, ...]) -> PreviousSummary | None:
    summary = summary_of(role, found)
    if summary or at(value, ("message", "origin", "kind")) != "compaction_summary":
        return summary
    text = "\n".join(part.text for part in found if isinstance(part, Text))
    return PreviousSummary(origin="kimi", text=text)


def _role(value: Value) -> Role:
    event = event_of(value)
    if event:
        return {"tool.result": Role.TOOL}.get(string(event.get("type")), Role.ASSISTANT)
    message = value.get("message") if value.get("type") == APPEND else None
    return _ROLES.get(string(message.get("role")), Role.META) if isinstance(message, dict) else Role.META


def _pieces(value: Any) -> Iterator[LocatedPart]:
    event = event_of(value)
    kind = event.get("type")
    if kind == "content.part":
        yield from text_pieces(event.get("part"), ("event", "part"), _block)
    elif kind == "tool.call":
        yield _call(event, ("event", "args"), "toolCallId", "args")
    elif kind == "tool.result":
        result = event.get("result")
        output, place = (result.get("output"), ("event", "result", "output")) if isinstance(result, dict) else ("", ())
        is_error = isinstance(result, dict) and result.get("isError") is True
        yield result_piece(output, place, call_id=string(event.get("toolCallId")), is_error=is_error)
    elif value.get("type") == APPEND:
        yield from _message_pieces(value["message"])


def _message_pieces(message: Value) -> Iterator[LocatedPart]:
    content = message.get("content")
    if message.get("role") == "tool":
        yield result_piece(content, ("message", "content"), call_id=string(message.get("toolCallId")))
        return
    yield from text_pieces(content, ("message", "content"), _block)
    calls = message.get("toolCalls")
    for n, call in enumerate(calls if isinstance(calls, list) else []):
        if isinstance(call, dict):
            yield _call(call, ("message", "toolCalls", n, "arguments"), "id", "arguments")


def _call(call: Value, place: tuple[str | int, ...], id_key: str, key: str) -> LocatedPart:
    made = ToolCall(id=string(call.get(id_key)), name=string(call.get("name")), arguments=arguments(call.get(key)))
    return LocatedPart(made, (place,))


def _block(block: Any) -> Part:
    return next(iter(blocks.parts([block])))


def _message_of(item: Insertion) -> dict[str, Any]:
    kind = "compaction_summary" if item.is_summary else "user"
    origin = {} if item.role is Role.ASSISTANT else {"origin": {"kind": kind}}
    return {"role": item.role.value, "content": [{"type": "text", "text": item.text}], "toolCalls": [], **origin}


def _agent(values: Sequence[Value]) -> dict[str, Any]:
    named = (value["agentId"] for value in reversed(values) if isinstance(value.get("agentId"), str))
    return {"agentId": name} if (name := next(named, "")) else {}


def _size(values: Sequence[Value]) -> int:
    """The size of the conversation as the client last measured it."""
    counted = (value.get("tokens") for value in reversed(values) if str(value.get("type")).startswith("token_counting"))
    return next((size for size in counted if isinstance(size, int)), 0)


def _timestamp(milliseconds: Any) -> str:
    if not isinstance(milliseconds, int) or not 0 < milliseconds < 1 << 46:
        return ""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
