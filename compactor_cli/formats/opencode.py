"""opencode exports: ``{"info", "messages": [{"info", "parts"}]}`` of ``opencode export``.

A part holds a call together with its result. A compaction is a pair of messages: a user's with a
``compaction`` part, and the assistant's summary that answers it. What stands before the pair is sent only from
``tail_start_id`` on; that of compact names the first kept message, so that the client sends summary, head and tail.
Order is by id: new ids lie between those of their neighbours. Observed with opencode 1.18.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from string import hexdigits
from typing import Any

from compactor_cli.formats import located
from compactor_cli.formats.base import SESSION, Capabilities, Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.client_signs import marked_summary, summary_of
from compactor_cli.formats.contents import arguments, dump, dumped, listed, parse, string, time_of
from compactor_cli.formats.located import LocatedPart, SessionDialect, at, parts_of
from compactor_cli.model.transcript import Message, Record, Role, ToolCall, ToolResult, Transcript

# Ids are a kind, 12 hex digits that grow with time, and 14 letters and digits.
_TIME_CHARS = 12
_TAIL_CHARS = 14


class _OpenCodeSite:
    """Where the messages go: between which ids and times, and which messages they take their keys from."""

    def __init__(self, transcript: Transcript, cut: InsertionPoint) -> None:
        self.sha256 = transcript.sha256
        found = (at(record.value, ("info",)) for record in transcript.records)
        infos: list[Mapping[str, Any]] = [info if isinstance(info, dict) else {} for info in found]
        self.first = next((string(infos[i].get("id")) for i in cut.before if infos[i].get("id")), "")
        stop = cut.tail_start(len(infos))
        kept = set(cut.before)
        # Messages removed before the first kept one: their ids and times are free.
        self.free = [info for i, info in enumerate(infos[:stop]) if i not in kept and info.get("id")]
        self.before = next((infos[i] for i in reversed(cut.before) if infos[i].get("id")), {})
        self.newest = {role: info for info in infos if isinstance(role := info.get("role"), str)}
        self.session = next((string(info["sessionID"]) for info in infos if info.get("sessionID")), "")
        self.written = 0
        self.parent = ""

    def messages(self, item: Insertion) -> Iterator[dict[str, Any]]:
        """A summary is asked for by a user's message and answered; anything else is one message."""
        role, text = item.role, {"type": "text", "text": item.text}
        marks: dict[str, Any] = {"finish": "stop"} if role is Role.ASSISTANT else {}
        if item.is_summary:
            kept = {"tail_start_id": self.first} if self.first else {}
            yield self._message(Role.USER, {"type": "compaction", "auto": False, **kept}, {})
            marks = {"mode": "compaction", "agent": "compaction", "summary": True, "finish": "stop"}
            role = Role.ASSISTANT
        yield self._message(role, text, marks)

    def _message(self, role: Role, part: Mapping[str, Any], marks: Mapping[str, Any]) -> dict[str, Any]:
        own_id, created = self._next()
        newest = self.newest.get(role.value, {})
        info: dict[str, Any] = {"role": role.value, "time": {"created": created}}
        if role is Role.ASSISTANT:
            info["time"]["completed"] = created
            info["parentID"] = self.parent
            info |= {key: newest[key] for key in ("modelID", "providerID", "mode", "agent", "path") if key in newest}
            tokens = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
            info |= {"cost": 0, "tokens": tokens}
        else:
            info |= {key: newest[key] for key in ("agent", "model") if key in newest}
            self.parent = own_id
        info |= {**marks, "id": own_id, "sessionID": self.session}
        part_id = "prt_" + own_id.removeprefix("msg_")[:_TIME_CHARS] + _letters(f"part {own_id}")
        own_part = {**part, "id": part_id, "sessionID": self.session, "messageID": own_id}
        return {"info": info, "parts": [own_part]}

    def _next(self) -> tuple[str, int]:
        """An id and a time of a removed message, in order; else just after the last one given, or the head."""
        i = min(self.written, len(self.free) - 1)
        info = self.free[i] if self.free else self.before
        over = self.written - i
        self.written += 1
        old = string(info.get("id")) or f"msg_{'0' * _TIME_CHARS}"
        stem = old.rpartition("_")[2][:_TIME_CHARS]
        if not self.free and all(digit in hexdigits for digit in stem):
            stem = f"{int(stem, 16) + over:0{_TIME_CHARS}x}"
        grown = f"{self.written:02d}"[-2:] if over or not self.free else ""
        own = f"msg_{stem}{grown}{_letters(f'{self.sha256} {self.written}')}"
        created = at(info, ("time", "created"))
        return own[: 4 + _TIME_CHARS + _TAIL_CHARS], (created if isinstance(created, int) else 0) + over


def _letters(text: str) -> str:
    """Letters and digits in place of the client's random ones."""
    return hashlib.sha256(text.encode()).hexdigest()[:_TAIL_CHARS]


_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_UNSHOWN_TYPES = frozenset({"text", "step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction"})
# What the client sends in place of an output that it pruned.
_PRUNED = "[Old tool result content cleared]"


class OpenCode(SessionDialect):
    """The dialect of opencode's exports."""

    name = "opencode"
    title = "opencode export"
    holds = SESSION | Capabilities.SUMMARIES
    paths = (("messages",),)
    models = (("info", "modelID"), ("info", "model", "modelID"))

    def record_score(self, value: Any) -> int:
        """3 for a message with its parts."""
        return 3 if _is_message(value) else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what the last compaction replaced is ``superseded``."""
        values = [record.value for record in records]
        gone = _superseded(values)
        asked = {_summarised(value) for value in values} - {""}
        return tuple(_message(value, i in gone, asked) for i, value in enumerate(values))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """The pair of a compaction; further messages after it."""
        site = _OpenCodeSite(transcript, cut)
        return dumped(transcript, (message for item in insertions for message in site.messages(item)))

    def counted_tokens(self, value: Mapping[str, Any]) -> int:
        """``tokens`` of an answer, as the client goes by them: all that was sent and answered."""
        tokens = at(value, ("info", "tokens"))
        sizes = [at(tokens, path) for path in (("input",), ("output",), ("cache", "read"), ("cache", "write"))]
        return sum(size for size in sizes if isinstance(size, int))

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The answer with other ``tokens``, in its steps as well."""
        value = parse(record.raw)
        cache = {"read": 0, "write": 0}
        tokens = {"total": size_tokens, "input": size_tokens, "output": 0, "reasoning": 0, "cache": cache}
        steps = [{**part, "tokens": tokens} if at(part, ("tokens",)) else part for part in listed(value.get("parts"))]
        return dump({**value, "info": {**value["info"], "tokens": tokens}, "parts": steps}, record.raw)


def _is_message(value: Any) -> bool:
    has_parts = isinstance(value, dict) and isinstance(value.get("parts"), list)
    return has_parts and string(at(value, ("info", "role"))) in _ROLES


def _summarised(value: Any) -> str:
    """The id of the message that a finished summary answers; empty for any other message."""
    info = at(value, ("info",))
    is_summary = _is_message(value) and info.get("summary") is True and info.get("finish") and not info.get("error")
    return string(info.get("parentID")) if is_summary else ""


def _compaction(value: Any) -> Mapping[str, Any] | None:
    found = value["parts"] if _is_message(value) and value["info"]["role"] == "user" else []
    return next((part for part in found if isinstance(part, dict) and part.get("type") == "compaction"), None)


def _superseded(values: Sequence[Any]) -> frozenset[int]:
    """What the client does not send: all before the last answered compaction, except for what it retains."""
    answered: set[str] = set()
    for i in range(len(values) - 1, -1, -1):
        answered.add(_summarised(values[i]))
        part = _compaction(values[i])
        if part is not None and string(at(values[i], ("info", "id"))) in answered - {""}:
            first = part.get("tail_start_id")
            kept = next((j for j in range(i) if first and at(values[j], ("info", "id")) == first), i)
            return frozenset(range(kept))
    return frozenset()


def _message(value: Any, is_superseded: bool, asked: set[str]) -> Message:
    if not _is_message(value):
        return Message(role=Role.META)
    info = value["info"]
    if _compaction(value) is not None and string(info.get("id")) in asked:
        # It goes with its answer: without that, the client would send it as a question.
        return Message(role=Role.META, superseded=True)
    found = parts_of(pieces(value))
    role = _ROLES[info["role"]]
    summary = marked_summary("opencode", found) if _summarised(value) else summary_of(role, found)
    texts = [part for part in value["parts"] if isinstance(part, dict) and part.get("type") == "text"]
    own_words = None
    if role is Role.USER and any(part.get("synthetic") is True for part in texts):
        # What the user typed of a message to which the client added texts.
        typed = (part for part in texts if part.get("synthetic") is not True)
        own_words = "\n".join(string(part.get("text")) for part in typed).strip()
    time = time_of(at(info, ("time", "created")))
    return Message(
        role=role, parts=found, timestamp=time, summary=summary, superseded=is_superseded, own_words=own_words
    )


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of a message that a model is shown, with the places of their texts."""
    if not _is_message(value):
        return []
    found: list[LocatedPart] = []
    for i, part in enumerate(value["parts"]):
        if not isinstance(part, dict):
            continue
        kind = string(part.get("type"))
        if kind == "text" and string(part.get("text")) and part.get("ignored") is not True:
            found.append(located.text(part["text"], ("parts", i, "text")))
        elif kind == "reasoning":
            found.append(located.thinking(part.get("text")))
        elif kind == "tool":
            found += _tool(part, ("parts", i))
        elif kind not in _UNSHOWN_TYPES:
            found.append(located.media(kind or "unknown", part))
    return found


def _tool(part: Mapping[str, Any], place: JsonPath) -> list[LocatedPart]:
    state = part.get("state")
    call_id, name = string(part.get("callID")), string(part.get("tool"))
    status = string(at(state, ("status",)))
    call = ToolCall(id=call_id, name=name, arguments=arguments(at(state, ("input",)) or {}))
    asked = LocatedPart(call, ((*place, "state", "input"),) if at(state, ("input",)) else ())
    if status in ("pending", "running", ""):
        return [asked]
    result = ToolResult(id=call_id, text=_PRUNED, name=name, is_error=status == "error")
    if at(state, ("time", "compacted")):
        return [asked, LocatedPart(result)]
    key = "error" if status == "error" and at(state, ("output",)) is None else "output"
    files = len(listed(at(state, ("attachments",))))
    result = replace(result, text=string(at(state, (key,))), media_count=files)
    return [asked, LocatedPart(result, ((*place, "state", key),))]


DIALECT = OpenCode(pieces)
