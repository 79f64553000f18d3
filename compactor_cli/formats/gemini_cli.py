"""Gemini CLI sessions: ``~/.gemini/tmp/<project>/chats/session-*.jsonl``, and ``.json`` documents before that.

A log is replayed: a line with the ``id`` of an earlier one is its newer version; ``{"$set": {"messages": [...]}}``
replaces the whole list (the client writes it after a compression, and at each resume, repeating everything);
``{"$rewindTo": id}`` takes back that message and all after it. A call and its result are in one record; the record
with the response that follows it is a repetition, as are the repeated lists: neither is kept. Observed with Gemini
CLI 0.61.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import located
from compactor_cli.formats.base import SESSION, Insertion, InsertionPoint, JsonPath, objects
from compactor_cli.formats.client_signs import summary_among, summary_of
from compactor_cli.formats.contents import listed, role_of, string
from compactor_cli.formats.conversation import SIGNED, Conversation, arguments_object, spoken_parts
from compactor_cli.formats.gemini_contents import pieces as content_pieces
from compactor_cli.formats.gemini_contents import written as content_written
from compactor_cli.formats.jsontext import dumped
from compactor_cli.formats.located import LocatedPart, at, parts_of
from compactor_cli.formats.sessions import SessionDialect, Value, derived_uuids, is_shown, later, newest_time, parsed
from compactor_cli.model.transcript import Message, Record, Role, ToolResult, Transcript

TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
# Texts that the client writes into user messages by itself, and does not read back.
_CONTEXTS = ("<session_context>", "<hook_context>")


class Replay:
    """The log of one session: ``sent`` are the records that hold messages of the final list, ``own[i]`` the
    messages that the ``$set`` at ``i`` holds and no line next to it, ``repeated`` the records that others say as
    well: older versions, and tool results that their calls hold."""

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.own: dict[int, tuple[Value, ...]] = {}
        self._holders: dict[str, int] = {}
        self._list: dict[str, int] = {}
        self._nested = frozenset(key for value in values if is_message(value) for key in _nested(value))
        for i, value in enumerate(values):
            self._play(i, value)
        self.sent = frozenset(self._list.values())
        self.answered = frozenset(key for value in values if is_message(value) for key in _answered_ids(value))
        self.repeated = frozenset(
            i
            for i, value in enumerate(values)
            if is_message(value) and (_only_answers(value, self._nested) or self._holders[_key_of(i, value)] != i)
        )

    def _play(self, i: int, value: Value) -> None:
        replacement = _new_messages(value)
        if is_message(value):
            self._holders[_key_of(i, value)] = self._list[_key_of(i, value)] = i
        elif replacement is not None:
            self._replace(i, replacement)
        elif isinstance(value.get("$rewindTo"), str) and value["$rewindTo"] in self._list:
            keys = list(self._list)
            self._list = {key: self._list[key] for key in keys[: keys.index(value["$rewindTo"])]}

    def _replace(self, i: int, messages: Sequence[Value]) -> None:
        shown = (item for item in messages if not _is_context(item) and not _only_answers(item, self._nested))
        self._list = {}
        own: list[Value] = []
        for message in shown:
            key = string(message.get("id"))
            if self._holders.setdefault(key, i) == i:
                own.append(message)
            self._list[key] = self._holders[key]
        if own:
            self.own[i] = tuple(own)


def _key_of(i: int, value: Value) -> str:
    """What identifies this message; one without an id is like no other."""
    return string(value.get("id")) or f"#{i}"


def is_message(value: Value) -> bool:
    """Whether a line is one message."""
    return isinstance(value.get("id"), str) and string(value.get("type")) in TYPES


def _new_messages(value: Value) -> list[Value] | None:
    """The messages of a line that replaces the whole list; None for all other lines."""
    messages = at(value, ("$set", "messages"))
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else None


def _is_context(message: Value) -> bool:
    """Whether the client wrote this about surroundings: it writes it anew whenever it starts."""
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return message.get("type") == "user" and string(text).lstrip().startswith(_CONTEXTS)


def _answered_ids(value: Value) -> Iterator[str]:
    found = (at(block, ("functionResponse",)) for block in listed(value.get("content")))
    return (string(response.get("id")) for response in found if isinstance(response, dict))


def _nested(value: Value) -> Iterator[str]:
    for call in listed(value.get("toolCalls")):
        if isinstance(call, dict) and isinstance(call.get("result"), list) and call["result"]:
            yield string(call.get("id"))


def _only_answers(value: Value, nested: frozenset[str]) -> bool:
    content = value.get("content")
    answers = list(_answered_ids(value))
    return isinstance(content, list) and bool(content) and len(answers) == len(content) and nested.issuperset(answers)


_HEADER = ("sessionId", "projectHash", "startTime")


class GeminiCli(SessionDialect):
    """The dialect of Gemini CLI's session files."""

    name = "gemini-cli"
    title = "Gemini CLI session"
    holds = SESSION
    unwritten = SIGNED
    models = (("model",),)

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a document; None for a line of a log."""
        is_document = _is_header(value) and isinstance(value.get("messages"), list)
        return ("messages",) if is_document else None

    def score(self, value: Any) -> int:
        """3 for a header, a control line or an answer; 2 for other messages."""
        if not isinstance(value, dict):
            return 0
        if _is_header(value) or "$set" in value or "$rewindTo" in value:
            return 3
        if not is_message(value) or "content" not in value or "message" in value:
            return 0
        return 3 if value["type"] == "gemini" else 2

    def session_key(self, value: Any) -> str:
        """The session that a header names."""
        return string(value.get("sessionId")) if _is_header(value) else ""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what was replaced or taken back is ``superseded``, what others say as well META."""
        replay = Replay(objects(records))
        return tuple(_message(replay, i, value) for i, value in enumerate(replay.values))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with ids and times of their own."""
        values = objects(transcript.records)
        before = [i for i in range(cut.tail_start(len(values))) if values[i].get("timestamp")]
        timestamp = string(values[before[-1]].get("timestamp")) if before else ""
        return dumped(transcript, _new(transcript, insertions, [timestamp] * len(insertions)))

    # The boundary is the whole list.
    appends_head = True

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """A ``$set`` of the whole list: head, insertions and tail."""
        values = parsed(transcript)
        newest = newest_time(values)
        times = [later(newest, n) for n in range(1, len(insertions) + 1)]
        head, tail = ([values[i] for i in side if is_shown(transcript.messages[i])] for side in (cut.before, cut.after))
        messages = [*head, *_new(transcript, insertions, times), *tail]
        line = {"$set": {"messages": messages, "lastUpdated": times[-1] if times else newest}}
        return dumped(transcript, (line,))

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """Lists that repeat messages, lines that take messages back, and what these lines did away with."""
        replay = Replay(objects(records))
        return frozenset(i for i, value in enumerate(replay.values) if _is_outdated(replay, i, value))

    def problems(self, values: Sequence[Value]) -> Iterator[tuple[int, str]]:
        """What the client ignores, or sends in another's place."""
        ids = {string(value.get("id")) for value in values}
        for i, value in enumerate(values):
            if "$rewindTo" in value and value["$rewindTo"] not in ids:
                yield i, "the message that it takes back is not there"
        headers = (value for value in values if "sessionId" in value and "projectHash" in value)
        if values and next(headers, None) is None and any(value.get("type") == "gemini" for value in values):
            yield 0, "no line names session and project: the client does not find the session"

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """The header, and messages whose calls hold their results."""
        times = conversation.times()
        start, end = (times[0], times[-1]) if times else ("", "")
        names = {"sessionId": conversation.key("session"), "projectHash": "0" * 64}
        lines: list[dict[str, Any]] = [{**names, "startTime": start, "lastUpdated": end, "kind": "main"}]
        for message, time in zip(conversation.messages, times, strict=True):
            if message.role is Role.TOOL:
                answers = {result.id: result for result in message.results}
                for call in lines[-1]["toolCalls"]:
                    if answer := answers.get(call["id"]):
                        response = content_written(replace(answer, name=string(call.get("name"))))
                        call |= {"result": [response], "status": "error" if answer.is_error else "success"}
            else:
                lines.append(_line(message, conversation.key(len(lines)), time, conversation.model))
        return lines


def _line(message: Message, key: str, time: str, model: str) -> dict[str, Any]:
    is_answer = message.role is Role.ASSISTANT
    content = [content_written(part) for part in spoken_parts(message)]
    line = {"id": key, "timestamp": time, "type": "gemini" if is_answer else "user", "content": content}
    if message.calls:
        line["toolCalls"] = [
            {"id": call.id, "name": call.name, "args": arguments_object(call), "status": "cancelled", "timestamp": time}
            for call in message.calls
        ]
    return {**line, "model": model} if is_answer and model else line


def _is_header(value: Any) -> bool:
    return isinstance(value, dict) and sum(key in value for key in _HEADER) >= 2 and "type" not in value


def _is_outdated(replay: Replay, i: int, value: Value) -> bool:
    if is_message(value):
        return (i not in replay.sent and not _is_context(value)) or i in replay.repeated
    is_list = _new_messages(value) is not None and i not in replay.own
    return is_list or (i in replay.own and i not in replay.sent) or "$rewindTo" in value


def _message(replay: Replay, i: int, value: Value) -> Message:
    if i in replay.own:
        # A list with messages that stand nowhere else: never kept, since it also repeats those that do.
        found = tuple(part for message in replay.own[i] for part in parts_of(_pieces(message)))
        summary = summary_among("gemini", found)
        return Message(role=Role.USER, parts=found, summary=summary, superseded=i not in replay.sent)
    timestamp = string(value.get("timestamp"))
    if not is_message(value) or value["type"] not in ("user", "gemini") or _is_context(value) or i in replay.repeated:
        return Message(role=Role.META, timestamp=timestamp)
    found = parts_of(_pieces(value))
    if value["type"] == "user":
        role = role_of(Role.USER, found)
    else:
        role = Role.ASSISTANT
        # A result without a text stands for a missing one, which a record after it may hold.
        found = tuple(p for p in found if not isinstance(p, ToolResult) or p.text or p.id not in replay.answered)
    is_gone = i not in replay.sent
    return Message(role=role, parts=found, timestamp=timestamp, summary=summary_of(role, found), superseded=is_gone)


def _pieces(value: Any) -> list[LocatedPart]:
    content = value.get("content")
    if isinstance(content, str):
        found = [located.text(content, ("content",))] if content else []
    else:
        blocks = [content] if isinstance(content, dict) else listed(content)
        found = [_moved(piece, ("content",)) for piece in content_pieces({"parts": blocks})]
    for n, call in enumerate(listed(value.get("toolCalls"))):
        if isinstance(call, dict):
            found += _call_pieces(call, n)
    # Results that are not there last: leaving them out must not change the numbers of the others.
    return sorted(found, key=lambda piece: isinstance(piece.part, ToolResult) and not piece.places)


def _call_pieces(call: Value, n: int) -> Iterator[LocatedPart]:
    key, name = string(call.get("id")), string(call.get("name"))
    place: JsonPath = ("toolCalls", n)
    yield located.call({**call, "args": call.get("args") or {}}, "args", *place)
    answers = [
        _moved(piece, (*place, "result"))
        for piece in content_pieces({"parts": listed(call.get("result"))})
        if isinstance(piece.part, ToolResult)
    ]
    is_error = call.get("status") == "error"
    if not answers:
        yield LocatedPart(ToolResult(id=key, text="", name=name, is_error=is_error))
    for piece in answers[:1]:
        part = replace(piece.part, id=key, is_error=is_error) if isinstance(piece.part, ToolResult) else piece.part
        display = ((*place, "resultDisplay"),) if isinstance(call.get("resultDisplay"), str) else ()
        yield LocatedPart(part, (*piece.places, *display))


def _moved(piece: LocatedPart, place: JsonPath) -> LocatedPart:
    """The piece of a content, whose parts stand at this place instead of ``parts``."""
    return LocatedPart(piece.part, tuple((*place, *old[1:]) for old in piece.places))


def _new(transcript: Transcript, insertions: Sequence[Insertion], times: Sequence[str]) -> Iterator[dict[str, Any]]:
    for key, item, time in zip(derived_uuids(transcript, insertions), insertions, times, strict=True):
        is_answer = item.role is Role.ASSISTANT
        kind, content = ("gemini", item.text) if is_answer else ("user", [{"text": item.text}])
        yield {"id": key, "timestamp": time, "type": kind, "content": content}


DIALECT = GeminiCli(_pieces)
