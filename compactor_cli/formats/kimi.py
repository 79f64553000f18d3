"""Kimi's two kinds of files.

Kimi Code logs: ``~/.kimi-code/sessions/<folder>/<session>/agents/main/wire.jsonl``, one event a line. What is sent
is folded from some of the events; the others are telemetry and state. A step of the model is several events, which
stay together. The history is counted in messages: one per appended message, per step of the model and per tool
result. A ``context.apply_compaction`` replaces the first ``compactedCount`` of them by its summary, or, with
``keptUserMessageCount``, by that many of the user's messages and the summary. Observed with Kimi Code 2.1.

Kimi CLI contexts: ``~/.kimi/sessions/<folder>/<session>/context.jsonl``, one message a line. Messages are those of
OpenAI's API with Kimi's ``think`` blocks; roles that begin with ``_`` are the client's own: ``_system_prompt``,
``_checkpoint`` and ``_usage``, of which the last counts. A summary is written like the client's own compaction.
Observed with kimi-cli 1.51.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compactor_cli.formats import chat, located
from compactor_cli.formats.client_signs import marked_summary, summary_of
from compactor_cli.formats.contents import ROLES, dump, dumped, listed, object_of, parse, string, time_of
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, openai_lines, thinking_of, without_system
from compactor_cli.formats.located import LocatedPart, SessionDialect, Value, at, first_string, parts_of
from compactor_cli.formats.registry import CHAT, SESSION, Capabilities, Insertion, InsertionPoint, objects
from compactor_cli.model.transcript import Message, Record, Role, Text, Transcript

APPEND = "context.append_message"
EVENT = "context.append_loop_event"
COMPACTION = "context.apply_compaction"
_STEP_EVENTS = ("content.part", "tool.call", "step.end")


class Folded:
    """Folds a session's events into the history that the client sends, as the client does.

    An interrupted step stays open until the next one begins. It leaves no message if it wrote nothing, and the client
    itself answers its calls without results. Messages that are appended while calls run come after their results.

    ``history`` has the first record of each message. A message without a record of its own stands under another one:
    the result of an interrupted call under its step, a note that the client adds to its own summary under the
    compaction. ``step_of`` maps each record of a step to the step's first record. ``compactions`` are the records that
    replaced messages. ``empty`` are the first records of steps that left no message.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self.history: list[int] = []
        self.step_of: dict[int, int] = {}
        self.compactions: list[int] = []
        self.empty: set[int] = set()
        self._steps: dict[str, int] = {}
        self._reset(self.history)
        for i, value in enumerate(values):
            kind = value.get("type")
            if kind == APPEND:
                (self._deferred if self._pending else self.history).append(i)
            elif kind == EVENT:
                self._step(i, _event_of(value))
            elif kind == COMPACTION and (count := _compacted_count(value)) is not None:
                self._reset([*_compacted(values, self.history[:count], i), *self.history[count:]])
                self.compactions.append(i)
            elif kind == "context.undo":
                self._reset(_undone(values, self.history, value.get("count")))
            elif kind == "context.clear":
                self._reset([])

    def _reset(self, history: list[int]) -> None:
        self.history = history
        self._open = -1  # the first record of the open step
        self._has_content = False  # of that step
        self._pending: set[str] = set()  # the ids of its calls without a result
        self._deferred: list[int] = []  # messages that come after these results

    def _step(self, i: int, event: Value) -> None:
        kind = event.get("type")
        if kind == "step.begin":
            self._settle()
            self.history.append(i)
            self._steps[string(event.get("uuid"))] = self.step_of[i] = self._open = i
        elif kind == "tool.result":
            if (key := string(event.get("toolCallId"))) in self._pending:
                self.history.append(i)
                self._pending.remove(key)
                if not self._pending:
                    self._flush()
        elif kind in _STEP_EVENTS:
            self.step_of[i] = self._steps.get(string(event.get("stepUuid")) or string(event.get("uuid")), i)
            if kind == "tool.call":
                self._pending.add(string(event.get("toolCallId")))
                self._has_content = True
            elif kind == "content.part" and not self._has_content:
                part: Any = event.get("part")
                holds = part.get("type") if isinstance(part, dict) and "encrypted" not in part else ""
                self._has_content = holds not in ("text", "think") or bool(string(part.get(holds)).strip())
            if kind == "step.end" and event.get("finishReason") not in ("interrupted", "error") and not self._pending:
                self._settle()

    def _settle(self) -> None:
        self.history += [self._open] * len(self._pending)
        self._pending.clear()
        self._flush()
        if self._open >= 0 and not self._has_content:
            self.history.remove(self._open)
            self.empty.add(self._open)
        self._open, self._has_content = -1, False

    def _flush(self) -> None:
        self.history += self._deferred
        self._deferred = []


def _event_of(value: Value) -> Value:
    return object_of(value.get("event")) if value.get("type") == EVENT else {}


def _compacted_count(value: Value) -> int | None:
    """The number of messages that a compaction replaces; None if the client ignores the record."""
    counts = (value.get("compactedCount"), value.get("count"))
    count = next((count for count in counts if isinstance(count, int)), None)
    has_summary = isinstance(value.get("summary"), (str, dict)) or isinstance(value.get("contextSummary"), str)
    return count if has_summary else None


def _is_users(value: Value) -> bool:
    message = value.get("message")
    if value.get("type") != APPEND or not isinstance(message, dict) or message.get("role") != "user":
        return False
    return at(message, ("origin", "kind")) in (None, "user")


def _compacted(values: Sequence[Value], replaced: Sequence[int], i: int) -> list[int]:
    """The records in place of the messages that the compaction at ``i`` replaces.

    That is the summary, ``i``. The client's own compactions also keep messages of the user before it, with a note if
    some are left out, and add a note to go on after it; the notes stand as ``i`` too.
    """
    compaction = values[i]
    count, first = compaction.get("keptUserMessageCount"), compaction.get("keptHeadUserMessageCount")
    if not isinstance(count, int):
        return [i]
    users = [record for record in replaced if _is_users(values[record])]
    first, notes = (min(first, count), [i]) if isinstance(first, int) else (0, [])
    rest = users[first:]
    return [*users[:first], *notes, *rest[max(len(rest) - (count - first), 0) :], i, i]


def _undone(values: Sequence[Value], history: list[int], count: Any) -> list[int]:
    """The history without the user's last ``count`` messages and all after them. A compaction is never undone."""
    left = count if isinstance(count, int) else 0
    for n in reversed(range(len(history))):
        if left <= 0 or values[history[n]].get("type") == COMPACTION:
            break
        left -= _is_users(values[history[n]])
        if left == 0:
            return history[:n]
    return history


_FAMILIES = frozenset(
    "agent config context full_compaction goal llm micro_compaction permission plan_mode plugin profile prompt runtime"
    " token_counting tools turn usage".split()
)
# Origins of messages in the user's name that the client wrote.
_CLIENT_ORIGINS = frozenset({"injection", "system_trigger", "hook", "notification"})


class KimiWire(SessionDialect):
    """The dialect of Kimi Code's session logs."""

    name = "kimi-wire"
    title = "Kimi Code wire log"
    holds = SESSION | Capabilities.SYSTEM | Capabilities.SUMMARIES | Capabilities.TOOLS

    def record_score(self, value: Any) -> int:
        """3 for the first line of a log, and for events of the client's families that have a time."""
        family, dot, _ = string(value.get("type")).partition(".")
        is_event = bool(dot) and family in _FAMILIES and isinstance(value.get("time"), int)
        return 3 if self.starts(value) or is_event else 0

    def starts(self, value: Any) -> bool:
        """``{"type": "metadata", "protocol_version": …}``."""
        return isinstance(value, dict) and value.get("type") == "metadata" and "protocol_version" in value

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per event; those that were compacted, undone or cleared are ``superseded``."""
        values = objects(records)
        folded = Folded(values)
        sent = frozenset(folded.history)
        return tuple(_message(value, i, folded, sent) for i, value in enumerate(values))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last request."""
        requests = (value for value in reversed(objects(records)) if value.get("type") == "llm.request")
        return first_string(value.get("model") for value in requests)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages. The summary is marked as the client's own, so that its next compaction replaces it."""
        values = objects(transcript.records)
        stop = cut.tail_start(len(values))
        time = next((time for value in reversed(values[:stop]) if isinstance(time := value.get("time"), int)), 0)
        events = []
        for item in insertions:
            kind = "compaction_summary" if item.is_summary else "user"
            origin = {} if item.role is Role.ASSISTANT else {"origin": {"kind": kind}}
            content = [{"type": "text", "text": item.text}]
            message = {"role": item.role.value, "content": content, "toolCalls": [], **origin}
            events.append({"type": APPEND, **_agent(values), "message": message, "time": time})
        return dumped(transcript, events)

    # A compaction replaces messages from the start of the history on.
    appends_head = False

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """``context.apply_compaction`` of all messages before the tail, and a new base for the client's counters.

        An acknowledgement is left out, since it would stand after the tail.
        """
        values = objects(transcript.records)
        tail = set(cut.after)
        history = Folded(values).history
        count = next((n for n, i in enumerate(history) if i in tail), len(history))
        # The size that the client measured last.
        measures = (value for value in reversed(values) if str(value.get("type")).startswith("token_counting"))
        before = next((size for value in measures if isinstance(size := value.get("tokens"), int)), 0)
        sizes = {"tokensBefore": before, "tokensAfter": size_tokens}
        summary = next((item.text for item in insertions if item.is_summary), "")
        events: list[dict[str, Any]] = [{"type": COMPACTION, "summary": summary, "compactedCount": count, **sizes}]
        if before:
            left = {"length": len(history) - count + 1, "tokens": size_tokens, "measured": False}
            events.append({"type": "token_counting.rebased", **left})
        newest = max((time for value in values if isinstance(time := value.get("time"), int)), default=0)
        stamped = ({**event, **_agent(values), "time": newest + n} for n, event in enumerate(events, 1))
        return dumped(transcript, stamped)

    def problems(self, values: Sequence[Value]) -> Iterator[tuple[int, str]]:
        """The compactions that the client ignores, and why."""
        for i, value in enumerate(values):
            if value.get("type") == COMPACTION and _compacted_count(value) is None:
                yield i, "this compaction is ignored: it lacks a summary or a number of messages"

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """Counters (which count removed messages), copies of messages for display, and prompts of removed messages."""
        values = objects(records)
        kept = set(staying)
        found = set()
        prompt = -1
        for i, value in enumerate(values):
            kind = string(value.get("type"))
            if kind.startswith("token_counting.") or kind == "agent.message.appended":
                found.add(i)
            elif kind in ("turn.prompt", "turn.steer"):
                prompt = i
            elif prompt >= 0 and _is_users(value):
                found |= {prompt} if i not in kept else set()
                prompt = -1
        return frozenset(found)


def _message(value: Value, i: int, folded: Folded, sent: frozenset[int]) -> Message:
    time = time_of(value.get("time"))
    is_gone = folded.step_of.get(i, i) not in sent
    if i in folded.compactions:
        own = value.get("contextSummary")
        words = (Text(text=own if isinstance(own, str) else string(value.get("summary"))),)
        native = marked_summary("kimi", words)
        return Message(role=Role.USER, parts=words, timestamp=time, summary=native, superseded=is_gone)
    event, message = _event_of(value), value.get("message") if value.get("type") == APPEND else None
    role = ROLES.get(string(at(message, ("role",))), Role.META)
    if event:
        role = Role.TOOL if event.get("type") == "tool.result" else Role.ASSISTANT
    if role is Role.META or folded.step_of.get(i) in folded.empty:
        return Message(role=Role.META, timestamp=time)
    found = parts_of(tuple(_pieces(value)))
    group = f"step-{folded.step_of[i]}" if i in folded.step_of else ""
    origin = string(at(value, ("message", "origin", "kind")))
    summary = marked_summary("kimi", found) if origin == "compaction_summary" else summary_of(role, found)
    own_words = "" if origin in _CLIENT_ORIGINS else None
    return Message(
        role=role, parts=found, group=group, timestamp=time, summary=summary, superseded=is_gone, own_words=own_words
    )


def _pieces(value: Any) -> Iterator[LocatedPart]:
    event = _event_of(value)
    kind = event.get("type")
    if kind == "content.part":
        yield from located.content(event.get("part"), "event", "part", read=located.any_block)
    elif kind == "tool.call":
        yield located.call(event, "args", "event", id_key="toolCallId")
    elif kind == "tool.result":
        output, failed = (at(event, ("result", key)) for key in ("output", "isError"))
        place = ("event", "result", "output")
        yield located.result(output, place, call_id=event.get("toolCallId"), is_error=failed is True)
    elif value.get("type") == APPEND:
        message = value["message"]
        content = message.get("content")
        if message.get("role") == "tool":
            yield located.result(content, ("message", "content"), call_id=message.get("toolCallId"))
            return
        yield from located.content(content, "message", "content", read=located.any_block)
        for n, call in enumerate(listed(message.get("toolCalls"))):
            if isinstance(call, dict):
                yield located.call(call, "arguments", "message", "toolCalls", n)


def _agent(values: Sequence[Value]) -> dict[str, Any]:
    named = (value["agentId"] for value in reversed(values) if isinstance(value.get("agentId"), str))
    return {"agentId": name} if (name := next(named, "")) else {}


_OWN_ROLES = {"_system_prompt": "content", "_checkpoint": "id", "_usage": "token_count"}
_OPENING = "<system>Previous context has been compacted. Here is the compaction output:</system>"


def _written(item: Insertion) -> dict[str, Any]:
    texts = (_OPENING, item.text) if item.is_summary else (item.text,)
    return {"role": item.role.value, "content": [{"type": "text", "text": text} for text in texts]}


def _role(value: Any) -> str:
    return string(object_of(value).get("role"))


class KimiCli(SessionDialect):
    """The dialect of Kimi CLI's context files."""

    name = "kimi-cli"
    title = "Kimi CLI context"
    holds = CHAT | Capabilities.THINKING | Capabilities.USAGE | Capabilities.SUMMARIES
    unwritten = NEVER_WRITTEN

    def record_score(self, value: Any) -> int:
        """3 for the client's own roles; 1 for any other message."""
        key = _OWN_ROLES.get(_role(value))
        return 3 if key and key in value else 1 if chat.is_chat(value) else 0

    def starts(self, value: Any) -> bool:
        """The system prompt, or the first checkpoint where there is none before it."""
        return _role(value) == "_system_prompt" or (_role(value) == "_checkpoint" and value.get("id") == 0)

    def message(self, value: Any) -> Message:
        """Read one line. The client's own lines, except for the system prompt, are META."""
        if _role(value) == "_system_prompt":
            return Message(role=Role.SYSTEM, parts=(Text(text=string(value.get("content"))),))
        return chat.read(value)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages of text blocks; the summary follows the opening of the client's own summaries."""
        return dumped(transcript, map(_written, insertions))

    def counted_tokens(self, value: Value) -> int:
        """The count in a ``_usage`` line; 0 for other lines."""
        size = value.get("token_count") if value.get("role") == "_usage" else None
        return size if isinstance(size, int) else 0

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The ``_usage`` line with ``size_tokens`` as its count."""
        return dump({**parse(record.raw), "token_count": size_tokens}, record.raw)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """The lines of a new context: the system prompt, a checkpoint, and the messages."""
        system, others = without_system(conversation)
        head = [{"role": "_system_prompt", "content": system}] if system else []
        lines: list[dict[str, Any]] = [*head, {"role": "_checkpoint", "id": 0}]
        for message in others:
            if message.summary:
                lines.append(_written(Insertion(role=Role.USER, text=message.text, is_summary=True)))
                continue
            for line in openai_lines(message):
                if line["role"] == "assistant":
                    thought = thinking_of(message)
                    thinking = [{"type": "think", "think": thought}] if thought else []
                    words = [{"type": "text", "text": message.text}] if message.text else []
                    line["content"] = [*thinking, *words]
                lines.append(line)
        return lines


KIMI_WIRE = KimiWire(lambda value: list(_pieces(value)))
KIMI_CLI = KimiCli(chat.pieces)
