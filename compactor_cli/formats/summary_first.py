"""Summary first: sessions of pi and of opencode, whose clients send a summary before everything else.

pi: ``~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl``, a header and one entry a line. Since version 2, entries link to
each other by ``parentId``, and the client sends the path from the last entry to the root; before, entries have no ids
and are sent in order. A ``compaction`` entry replaces all before its first kept entry (``firstKeptEntryId``, or
``firstKeptEntryIndex``, which counts all lines, the header included); a summary is written as one, in place of removed
entries or after all others. The client reads the conversation's size from the ``usage`` of the last answer, unless a
compaction is younger. Observed with pi 0.73; the older shape after the client's own migration.

opencode: ``{"info", "messages": [{"info", "parts"}]}`` of ``opencode export``. A part holds a call together with its
result. A compaction is a pair of messages: a user's with a ``compaction`` part, and the assistant's summary that
answers it. Messages before the pair are sent only from ``tail_start_id`` on; compact sets it to the first kept message,
so that the client sends summary, head and tail. Messages are ordered by id, so new ids lie between those of their
neighbours. Observed with opencode 1.18.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from string import hexdigits
from typing import Any

from compactor_cli.formats import contents, located
from compactor_cli.formats.client_signs import PRUNED_OUTPUT, marked_summary, summary_of
from compactor_cli.formats.contents import arguments, dump, dumped, listed, object_of, parse, string, time_of
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, arguments_object, image_of
from compactor_cli.formats.located import LinkedSite, LocatedPart, ParentTree, SessionDialect, Value, at, usage_of
from compactor_cli.formats.registry import SESSION, Capabilities, Insertion, InsertionPoint, JsonPath, objects
from compactor_cli.model.transcript import Message, Record, Role, Text, Thinking, ToolCall, ToolResult, Transcript


class PiPath(ParentTree):
    """The entries of one session; ``has_ids`` is false before version 2, where the order of lines is the path.

    ``unread`` are entries that share a line, which the client skips: none of them counts as the newest entry or as a
    compaction. If other entries link to one, it is still on their path.
    """

    keys = ("id", "parentId")

    def __init__(self, values: Sequence[Value], unread: frozenset[int] = frozenset()) -> None:
        self.values = values
        self.unread = unread
        self.objects = [i for i, value in enumerate(values) if value and i not in unread]
        self.entries = [i for i, value in enumerate(values) if value and value.get("type") != "session"]
        self.has_ids = any("parentId" in values[i] for i in self.entries)
        self.index = {own: i for i in self.entries if (own := self.id(i))}

    @property
    def newest(self) -> int | None:
        """The last entry that the client reads, or None."""
        return next((i for i in reversed(self.entries) if i not in self.unread), None)

    def sent(self) -> list[int]:
        """The path from the root to the last entry. All entries, if that path breaks off at a missing parent:
        it is then not known what the client shows."""
        readable = [i for i in self.entries if i not in self.unread]
        if not self.has_ids or self.newest is None:
            return readable
        on_path = self.ancestors(self.newest)
        path = [i for i in on_path if i not in self.unread or self.values[i].get("type") != "compaction"][::-1]
        return readable if self.parent_id(path[0]) else path

    def superseded(self) -> frozenset[int]:
        """Entries off the path, and on it what the last compaction replaced."""
        path = self.sent()
        marks = [at for at, i in enumerate(path) if self.values[i].get("type") == "compaction"]
        gone = set(self.entries) - set(path)
        if not marks:
            return frozenset(gone)
        before, compaction = path[: marks[-1]], self.values[path[marks[-1]]]
        number = compaction.get("firstKeptEntryIndex")
        if isinstance(number, int):
            target = self.objects[number] if 0 <= number < len(self.objects) else -1
        else:
            target = self.index.get(string(compaction.get("firstKeptEntryId")), -1)
        # If the named entry is missing, nothing before the compaction is kept.
        first = before.index(target) if target in before else len(before)
        return frozenset(gone.union(before[:first], (path[at] for at in marks[:-1])))


def _path_of(records: Sequence[Record]) -> PiPath:
    unread = (i for i in range(1, len(records)) if b"\n" not in records[i - 1].ending)
    return PiPath(objects(records), frozenset(both for i in unread for both in (i - 1, i)))


_SIZES = ("input", "output", "cacheRead", "cacheWrite")


def _usage_size(usage: Mapping[str, Any]) -> int:
    total = usage.get("totalTokens")
    parts = (usage.get(key) for key in _SIZES)
    return total if isinstance(total, int) and total else sum(part for part in parts if isinstance(part, int))


class _PiSite(LinkedSite):
    """The place of an insertion among the entries of a session."""

    def __init__(self, transcript: Transcript, cut: InsertionPoint) -> None:
        self.path = path = _path_of(transcript.records)
        newest_first = sorted(set(cut.after).intersection(path.entries), key=lambda i: (i in path.unread, -i))
        super().__init__(transcript, cut, path, next(iter(newest_first), None))
        self.covered = located.covered(cut, len(transcript.records))
        self.head = [i for i in cut.before if located.is_shown(transcript.messages[i])]
        self.tail = [i for i in cut.after if path.values[i].get("type") != "session"]

    def bridge(self, own: str, parent: str) -> dict[str, Any]:
        """An entry that is not sent and takes over the id of a removed one, so that links to it still work."""
        entry = {"type": "custom", "id": own, "parentId": parent, "timestamp": self.timestamp}
        return {**entry, "customType": "compact", "data": {}}

    def entry(
        self, item: Insertion, own: str, parent: str | None, time: str, first_kept: dict[str, Any]
    ) -> dict[str, Any]:
        """The entry of an insertion: for the summary a compaction that names the first kept entry, else a message."""
        values = self.path.values
        entry = {**({"id": own, "parentId": parent} if self.path.has_ids else {}), "timestamp": time}
        if item.is_summary:
            # The size of the last request before the cut, as the client would report it.
            sizes = (_usage_size(usage_of(values[i])) for i in self.covered if _is_answer(values[i]))
            before = next(filter(None, sizes), 0)
            return {"type": "compaction", **entry, "summary": item.text, **first_kept, "tokensBefore": before}
        message: dict[str, Any] = {"role": item.role.value, "content": [{"type": "text", "text": item.text}]}
        if item.role is Role.ASSISTANT:
            near = (i for i in (*self.cut.after, *reversed(self.cut.before), *self.covered) if _is_answer(values[i]))
            like: Value = next((values[i]["message"] for i in near), {})
            message |= {key: like[key] for key in like if key in ("api", "provider", "model")} | {"stopReason": "stop"}
        return {"type": "message", **entry, "message": message}

    def first_kept(self, kept: Sequence[int], before: Collection[int]) -> dict[str, Any]:
        """The key with which a compaction names the first kept entry: by its id, or without ids by its number.

        The number counts the objects before the compaction; without a kept entry it is the one after the compaction.
        """
        first = next(iter(kept), None)
        if self.path.has_ids:
            return {"firstKeptEntryId": self.path.id(first)}
        objects = [i for i in self.path.objects if i in before]
        return {"firstKeptEntryIndex": objects.index(first) if first in objects else len(objects) + 1}


def _is_answer(value: Value) -> bool:
    return isinstance(value.get("message"), dict) and value["message"].get("role") == "assistant"


def _pi_ids(transcript: Transcript, insertions: Sequence[Insertion]) -> list[str]:
    return [located.derived_uuid(transcript.sha256, i)[:8] for i in range(len(insertions))]


# The ``usage`` that the client requires in an answer. It is all zero, since no request was made.
_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": _COST}


def messages(message: Message, model: str, time: str) -> Iterator[dict[str, Any]]:
    """The message in pi's shape; a tool message becomes one for each result."""
    try:
        stamp = {"timestamp": int(datetime.fromisoformat(time).timestamp() * 1000)}
    except (ValueError, OverflowError):
        stamp = {"timestamp": 0}
    for result in message.results:
        head = {"toolCallId": result.id, "toolName": result.name, "content": [{"type": "text", "text": result.text}]}
        yield {"role": "toolResult", **head, "isError": result.is_error, **stamp}
    if message.role is Role.TOOL:
        return
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Text):
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, Thinking):
            blocks.append({"type": "thinking", "thinking": part.text})
        elif isinstance(part, ToolCall):
            called = {"id": part.id, "name": part.name, "arguments": arguments_object(part)}
            blocks.append({"type": "toolCall", **called})
        elif image := image_of(part):
            blocks.append({"type": "image", "data": image[1], "mimeType": image[0]})
    if message.role is not Role.ASSISTANT:
        yield {"role": "user", "content": blocks, **stamp}
        return
    reason = "toolUse" if message.calls else "stop"
    origin = {"api": "unknown", "provider": "unknown", "model": model or "unknown"}
    yield {"role": "assistant", "content": blocks, **origin, "usage": _USAGE, "stopReason": reason, **stamp}


_SIDE_TYPES = frozenset({"model_change", "thinking_level_change", "custom", "label", "session_info"})
_MESSAGE_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"})
_BY_CLIENT = ("custom", "hookMessage", "bashExecution")
_SUMMARIES = ("compaction", "branch_summary")


class Pi(SessionDialect):
    """The dialect of pi's session files."""

    name = "pi"
    title = "pi session"
    holds = SESSION | Capabilities.SUMMARIES
    unwritten = NEVER_WRITTEN
    links_records = True

    def record_score(self, value: Any) -> int:
        """3 for the header, an entry with ``parentId`` or an entry only pi writes; 2 for an entry without ids."""
        kind = value.get("type")
        if self.starts(value) or (kind == "compaction" and "summary" in value):
            return 3
        if kind == "message" and isinstance(value.get("message"), dict):
            known = string(value["message"].get("role")) in _MESSAGE_ROLES
            return (3 if "parentId" in value else 2) if known else 0
        return 3 if string(kind) in {*_SIDE_TYPES, *_SUMMARIES, "custom_message"} and "timestamp" in value else 0

    def starts(self, value: Any) -> bool:
        """The header: ``{"type": "session", "id": …, "timestamp": …}``. Headers of other clients lack this time."""
        return isinstance(value, dict) and value.get("type") == "session" and "id" in value and "timestamp" in value

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; those off the path or before the first kept entry are ``superseded``."""
        path = _path_of(records)
        gone = path.superseded()
        return tuple(_pi_message(value, i in gone) for i, value in enumerate(path.values))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last answer, else the last one chosen."""
        values = [record.value for record in reversed(records) if isinstance(record.value, dict)]
        answers = (value["message"].get("model") for value in values if isinstance(value.get("message"), dict))
        chosen = (value.get("modelId") for value in values)
        return located.first_string((*answers, *chosen))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A ``compaction`` entry in place of the removed entry to which the tail links.

        It names the first entry of the head as the first kept one: the client then sends the summary, the
        head, and everything after the compaction. Further messages link to it; the last one has the id to which the
        tail links. If an entry of the tail links to another removed one, an entry without information takes over that
        one's id.
        """
        site = _PiSite(transcript, cut)
        ids = _pi_ids(transcript, insertions)
        ids[-1] = site.taken or ids[-1]
        entries = set(site.path.entries)
        parents = [site.head_id([i for i in cut.before if i in entries]) or None, *ids[:-1]]
        # Without a head, the first entry of the tail is named, before which nothing is sent.
        first_kept = site.first_kept((*site.head, *site.tail), cut.before)
        both = zip(insertions, ids, parents, strict=True)
        new = (site.entry(item, own, parent, site.timestamp, first_kept) for item, own, parent in both)
        return dumped(transcript, (*new, *(site.bridge(own, parent) for own, parent in site.gaps())))

    # All entries from the named one to the end are kept, so a head cannot be kept without the middle.
    appends_head = False

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """A ``compaction`` entry that names the first entry of the tail; the client then ignores older counters."""
        site = _PiSite(transcript, cut)
        ids = _pi_ids(transcript, insertions)
        parents = [site.path.id(site.path.newest) or None, *ids[:-1]]
        first_kept = site.first_kept(site.tail, site.path.objects)
        entries = enumerate(zip(insertions, ids, parents, strict=True), 1)
        return dumped(transcript, (site.entry(*entry, site.later(n), first_kept) for n, entry in entries))

    def counted_tokens(self, value: Value) -> int:
        """The size in the ``usage`` of an answer; 0 for other entries."""
        return _usage_size(usage_of(value)) if _is_answer(value) else 0

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The answer with another size in its ``usage``; what it cost stays."""
        value = parse(record.raw)
        old = usage_of(value)
        total = {"totalTokens": size_tokens} if "totalTokens" in old else {}
        usage = {**old, **{key: 0 for key in _SIZES if key in old}, "input": size_tokens, **total}
        return dump({**value, "message": {**value["message"], "usage": usage}}, record.raw)

    def problems(self, values: Sequence[Value]) -> Iterator[tuple[int, str]]:
        """The compactions that the client ignores, and missing entries, before which it sends nothing."""
        path = PiPath(values)
        on_path = path.sent()
        for i, value in enumerate(values):
            if value.get("type") != "compaction" or not path.has_ids:
                continue
            first = string(value.get("firstKeptEntryId"))
            if i not in on_path:
                yield i, "this compaction is ignored: the last entry does not link to it"
            elif first not in path.index and i == on_path[-1]:
                yield i, "its first kept entry is not there: nothing before it is sent"
        if path.has_ids and path.entries and (end := path.breaks_off(path.entries[-1])) is not None:
            yield end, "the entry that it links to is not there: nothing before it is sent"

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A header, and entries that link to each other; a summary is a compaction that keeps all entries before it."""
        times = conversation.times()
        start = times[0] if times else ""
        lines: list[dict[str, Any]] = [
            {"type": "session", "version": 3, "id": conversation.key("session"), "timestamp": start, "cwd": "/"}
        ]
        parent = None
        for message, time in zip(conversation.messages, times, strict=True):
            for entry in messages(message, conversation.model, time):
                own = conversation.key(len(lines))[:8]
                envelope = {"id": own, "parentId": parent, "timestamp": time}
                if message.summary:
                    kept = {"firstKeptEntryId": lines[1]["id"] if parent else own, "tokensBefore": 0}
                    lines.append({"type": "compaction", **envelope, "summary": message.text, **kept})
                else:
                    lines.append({"type": "message", **envelope, "message": entry})
                parent = own
        return lines


def _pi_message(value: Value, is_superseded: bool) -> Message:
    role, pieces = _role_and_pieces(value)
    parts = located.parts_of(pieces)
    timestamp = string(value.get("timestamp"))
    if role is Role.META:
        return Message(role=role, timestamp=timestamp)
    # An extension wrote this in the user's name, or the user ran a command in the client's shell.
    by_client = value.get("type") == "custom_message" or at(value, ("message", "role")) in _BY_CLIENT
    summary = marked_summary("pi", parts) if value.get("type") == "compaction" else None
    own = "" if by_client else None
    return Message(
        role=role, parts=parts, timestamp=timestamp, summary=summary, superseded=is_superseded, own_words=own
    )


def _role_and_pieces(value: Value) -> tuple[Role, list[LocatedPart]]:
    kind = value.get("type")
    if kind in _SUMMARIES or kind == "custom_message":
        content = value.get("content" if kind == "custom_message" else "summary")
        return Role.USER, [LocatedPart(part) for part in located.content_parts(content)]
    message = value.get("message") if kind == "message" else None
    if not isinstance(message, dict):
        return Role.META, []
    role, content = string(message.get("role")), message.get("content")
    if role == "toolResult":
        call_id, name, failed = message.get("toolCallId"), message.get("toolName"), message.get("isError") is True
        return Role.TOOL, [located.result(content, ("message", "content"), call_id=call_id, name=name, is_error=failed)]
    if role == "bashExecution":
        if message.get("excludeFromContext") is True:
            return Role.META, []
        command = located.text(f"Ran `{string(message.get('command'))}`")
        return Role.USER, [command, located.text(message.get("output"), ("message", "output"))]
    speaker = {"user": Role.USER, "custom": Role.USER, "hookMessage": Role.USER, "assistant": Role.ASSISTANT}.get(role)
    if not speaker:
        return Role.META, []
    return speaker, located.content(content, "message", "content", read=_pi_block)


def _pi_block(block: Any) -> LocatedPart:
    is_call = isinstance(block, dict) and block.get("type") == "toolCall"
    return located.call(block, "arguments") if is_call else located.block(block)


PI = Pi(lambda value: _role_and_pieces(value)[1])


# `msg_0193f2c5a8d1` and 14 letters and digits: an id is its kind, 12 hex digits that grow with time, and random letters
# and digits, in place of which new ids have derived ones.
_TIME_CHARS = 12
_TAIL_CHARS = 14


class _OpenCodeSite:
    """The place of an insertion: the ids and times that are free there, and messages from which keys are copied."""

    def __init__(self, transcript: Transcript, cut: InsertionPoint) -> None:
        self.sha256 = transcript.sha256
        infos = [object_of(at(record.value, ("info",))) for record in transcript.records]
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
        """The messages of an insertion: for a summary the user's request and the answer to it, else one message."""
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
            info |= {"cost": 0, "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}}
        else:
            info |= {key: newest[key] for key in ("agent", "model") if key in newest}
            self.parent = own_id
        info |= {**marks, "id": own_id, "sessionID": self.session}
        part_id = "prt_" + own_id.removeprefix("msg_")[:_TIME_CHARS] + located.derived_hex("part", own_id, _TAIL_CHARS)
        own_part = {**part, "id": part_id, "sessionID": self.session, "messageID": own_id}
        return {"info": info, "parts": [own_part]}

    def _next(self) -> tuple[str, int]:
        """The id and time of the next message: those of a removed message, else just after the last one or the head."""
        i = min(self.written, len(self.free) - 1)
        info = self.free[i] if self.free else self.before
        over = self.written - i
        self.written += 1
        old = string(info.get("id")) or f"msg_{'0' * _TIME_CHARS}"
        stem = old.rpartition("_")[2][:_TIME_CHARS]
        if not self.free and all(digit in hexdigits for digit in stem):
            stem = f"{int(stem, 16) + over:0{_TIME_CHARS}x}"
        grown = f"{self.written:02d}"[-2:] if over or not self.free else ""
        own = f"msg_{stem}{grown}{located.derived_hex(self.sha256, self.written, _TAIL_CHARS)}"
        created = at(info, ("time", "created"))
        return own[: 4 + _TIME_CHARS + _TAIL_CHARS], (created if isinstance(created, int) else 0) + over


_OPENCODE_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_UNSHOWN_TYPES = frozenset({"text", "step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction"})


class OpenCode(SessionDialect):
    """The dialect of opencode's exports."""

    name = "opencode"
    title = "opencode export"
    holds = SESSION | Capabilities.SUMMARIES
    paths = (("messages",),)
    models = (("info", "modelID"), ("info", "model", "modelID"))

    def record_score(self, value: Any) -> int:
        """3 for a message with its parts."""
        return 3 if _is_opencode_message(value) else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; those that the last compaction replaced are ``superseded``."""
        values = [record.value for record in records]
        asked = {_summarised(value) for value in values} - {""}
        # Messages before the last answered compaction are not sent, except from its ``tail_start_id`` on.
        stop, answered = 0, set[str]()
        for i in reversed(range(len(values))):
            answered.add(_summarised(values[i]))
            part = _compaction(values[i])
            if part is not None and string(at(values[i], ("info", "id"))) in answered - {""}:
                first = part.get("tail_start_id")
                stop = next((j for j in range(i) if first and at(values[j], ("info", "id")) == first), i)
                break
        return tuple(_opencode_message(value, i < stop, asked) for i, value in enumerate(values))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """The pair of messages of a compaction, and further messages after it."""
        site = _OpenCodeSite(transcript, cut)
        return dumped(transcript, (message for item in insertions for message in site.messages(item)))

    def counted_tokens(self, value: Mapping[str, Any]) -> int:
        """The size by the ``tokens`` of an answer, as the client computes it: all that was sent and answered."""
        tokens = at(value, ("info", "tokens"))
        sizes = [at(tokens, path) for path in (("input",), ("output",), ("cache", "read"), ("cache", "write"))]
        return sum(size for size in sizes if isinstance(size, int))

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The answer with ``size_tokens`` in its ``tokens``, and in those of its steps."""
        value = parse(record.raw)
        cache = {"read": 0, "write": 0}
        tokens = {"total": size_tokens, "input": size_tokens, "output": 0, "reasoning": 0, "cache": cache}
        steps = [{**part, "tokens": tokens} if at(part, ("tokens",)) else part for part in listed(value.get("parts"))]
        return dump({**value, "info": {**value["info"], "tokens": tokens}, "parts": steps}, record.raw)


def _is_opencode_message(value: Any) -> bool:
    has_parts = isinstance(value, dict) and isinstance(value.get("parts"), list)
    return has_parts and string(at(value, ("info", "role"))) in _OPENCODE_ROLES


def _summarised(value: Any) -> str:
    """The id of the message that a finished summary answers; empty for any other message."""
    info = at(value, ("info",))
    is_summary = (
        _is_opencode_message(value) and info.get("summary") is True and info.get("finish") and not info.get("error")
    )
    return string(info.get("parentID")) if is_summary else ""


def _compaction(value: Any) -> Mapping[str, Any] | None:
    is_user = _is_opencode_message(value) and value["info"]["role"] == "user"
    return next(_of_type(value, "compaction"), None) if is_user else None


def _of_type(value: Any, kind: str) -> Iterator[Mapping[str, Any]]:
    """The parts of a message that are of a type."""
    return (part for part in value["parts"] if isinstance(part, dict) and part.get("type") == kind)


def _opencode_message(value: Any, is_superseded: bool, asked: set[str]) -> Message:
    if not _is_opencode_message(value):
        return located.META
    info = value["info"]
    if _compaction(value) is not None and string(info.get("id")) in asked:
        # Removed together with its answer, without which the client would send it as a question.
        return Message(role=Role.META, superseded=True)
    found = located.parts_of(_opencode_pieces(value))
    role = _OPENCODE_ROLES[info["role"]]
    summary = marked_summary("opencode", found) if _summarised(value) else summary_of(role, found)
    texts, subtasks = list(_of_type(value, "text")), _of_type(value, "subtask")
    # The slash commands with which the user gave work to a subagent.
    commands = [f"/{command}" for part in subtasks if (command := string(part.get("command")))]
    own_words = None
    if role is Role.USER and commands:
        own_words = "\n".join(commands)
    elif role is Role.USER and any(part.get("synthetic") is True for part in texts):
        # What the user typed in a message to which the client added texts.
        typed = (part for part in texts if part.get("synthetic") is not True)
        own_words = "\n".join(string(part.get("text")) for part in typed).strip()
    time = time_of(at(info, ("time", "created")))
    return Message(
        role=role, parts=found, timestamp=time, summary=summary, superseded=is_superseded, own_words=own_words
    )


def _opencode_pieces(value: Any) -> list[LocatedPart]:
    """The parts of a message that a model is shown, with the places of their texts."""
    if not _is_opencode_message(value):
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
            found += _opencode_tool(part, ("parts", i))
        elif kind not in _UNSHOWN_TYPES:
            found.append(located.media(kind or "unknown", part))
    return found


def _opencode_tool(part: Mapping[str, Any], place: JsonPath) -> Iterator[LocatedPart]:
    state = part.get("state")
    call_id, name = string(part.get("callID")), string(part.get("tool"))
    status, given = string(at(state, ("status",))), at(state, ("input",))
    call = ToolCall(id=call_id, name=name, arguments=arguments(given or {}))
    yield LocatedPart(call, ((*place, "state", "input"),) if given else ())
    if status in ("pending", "running", ""):
        return
    key = "error" if status == "error" and at(state, ("output",)) is None else "output"
    files, ended = len(listed(at(state, ("attachments",)))), contents.shell_exit_code(at(state, ("metadata", "exit")))
    answer, is_pruned = string(at(state, (key,))), bool(at(state, ("time", "compacted")))
    result = ToolResult(
        id=call_id,
        text=PRUNED_OUTPUT if is_pruned else answer,
        name=name,
        is_error=status == "error",
        media_count=0 if is_pruned else files,
        exit_code=ended,
        pruned=answer if is_pruned else "",
    )
    yield LocatedPart(result, () if is_pruned else ((*place, "state", key),))


OPENCODE = OpenCode(_opencode_pieces)
