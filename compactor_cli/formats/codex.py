"""Codex rollouts: ``~/.codex/sessions/Y/M/D/rollout-*.jsonl``, one ``{"timestamp", "type", "payload"}`` a line.

A model is shown the response items. When a session is resumed, the newest valid ``compacted`` record is the base: its
``replacement_history`` in place of all items before it, then the items after it. Without a ``replacement_history`` the
client rebuilds the user's messages. Everything else is telemetry and state. If no item is the user's, the user's words
are read from the events that repeat them. Older rollouts without the envelope, one bare item a line, are read too.
Observed with Codex CLI 0.64 to 0.169; 0.45 only knows compactions without a history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import located, openai
from compactor_cli.formats.client_signs import previous_summary, summary_of
from compactor_cli.formats.contents import dump, dumped, listed, object_of, parse, string
from compactor_cli.formats.conversation import SIGNED, Conversation
from compactor_cli.formats.located import LocatedPart, SessionDialect, Value, at, covered, insertion_time, parsed
from compactor_cli.formats.openai import ITEM_TYPES, is_context, is_opaque, item_parts, item_role, item_type, written
from compactor_cli.formats.registry import SESSION, Capabilities, Insertion, InsertionPoint, objects
from compactor_cli.model.errors import UsageError
from compactor_cli.model.transcript import Message, PreviousSummary, Record, Role, Text, ToolResult, Transcript, text_of

# Keys of an item that a copy of it may lack.
_LABELS = frozenset({"id", "internal_chat_message_metadata_passthrough", "metadata", "phase", "status"})


class History:
    """Which records of a rollout are sent.

    ``boundaries`` are the valid ``compacted`` records. ``copies[i]`` has, for each item of the boundary ``i``, the
    record that holds the same item, or -1 if none does. ``superseded`` are the records that are neither sent nor
    repeated by the last boundary. ``failed`` are the ids of failed calls of MCP servers, which only events mark.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.boundaries = tuple(i for i, value in enumerate(values) if _is_boundary(value))
        items = ((i, _item_of(value)) for i, value in enumerate(values) if self.boundaries)
        keys = [(i, _key(item)) for i, item in items if item]
        self.copies = {
            end: located.matched(
                [_key(item) for item in _replacement(values[end])], [(i, key) for i, key in keys if i < end]
            )
            for end in self.boundaries
        }
        last = self.boundaries[-1] if self.boundaries else 0
        if last and not isinstance(_payload_of(values[last]).get("replacement_history"), list):
            # The client rebuilds the user's messages.
            before = ((i, _item_of(values[i])) for i in range(last))
            still_sent = {i for i, item in before if item and item_role(item) in (Role.USER, Role.SYSTEM)}
        else:
            still_sent = set(self.copies.get(last, ()))
        self.superseded = frozenset(range(last)) - still_sent
        ended = (_payload_of(value) for value in values if value.get("type") == "event_msg")
        ended = (event for event in ended if event.get("type") == "mcp_tool_call_end")
        self.failed = {string(event.get("call_id")) for event in ended if _is_failure(event.get("result"))} - {""}


def _is_failure(result: Any) -> bool:
    """Whether a server's answer is an error: the call failed, or the answer is marked as an error."""
    return isinstance(result, dict) and ("Err" in result or at(result, ("Ok", "isError")) is True)


def _item_of(value: Value) -> Value | None:
    payload = value.get("payload")
    if isinstance(payload, dict):
        return payload if value.get("type") == "response_item" else None
    return value if item_type(value) in ITEM_TYPES and value.get("type") != "response_item" else None


def _words_of(value: Value) -> str:
    """The user's words in an event that repeats them; empty for any other record."""
    payload = _payload_of(value) if value.get("type") == "event_msg" else {}
    is_words = payload.get("type") == "user_message" and payload.get("kind") in (None, "plain")
    return string(payload.get("message")) if is_words else ""


def _with_words(values: Sequence[Value]) -> Sequence[Value]:
    """The values, with events that hold the user's words turned into items if only events hold these words."""
    if not _is_of_events(values):
        return values
    return [
        {**value, "type": "response_item", "payload": _new_item(Insertion(role=Role.USER, text=words))}
        if (words := _words_of(value))
        else value
        for value in values
    ]


def _is_of_events(values: Sequence[Value]) -> bool:
    """Whether only events hold the user's words. If items hold them, or did before a compaction, events repeat them."""
    items = (_item_of(value) for value in values)
    if any(item is not None and item_role(item) is Role.USER for item in items):
        return False
    return any(map(_words_of, values)) and not any(value.get("type") == "compacted" for value in values)


def _replacement(value: Value) -> tuple[Value, ...]:
    items = listed(_payload_of(value).get("replacement_history"))
    return tuple(item for item in items if isinstance(item, dict))


def _payload_of(value: Value) -> Mapping[str, Any]:
    return object_of(value.get("payload"))


def _is_boundary(value: Value) -> bool:
    """Whether a client accepts this as a compaction. It silently skips others."""
    if value.get("type") != "compacted" or not string(value.get("timestamp")):
        return False
    contents = (item.get("content") for item in _replacement(value) if item_type(item) == "message")
    has_message = isinstance(_payload_of(value).get("message"), str)
    return has_message and all(isinstance(content, list) for content in contents)


def _key(item: Value) -> str:
    plain = {key: value for key, value in _proper(item).items() if key not in _LABELS and value is not None}
    return json.dumps(plain, sort_keys=True)


def _proper(item: Value) -> Value:
    """The item in the form that a history needs: clients skip a compaction with a content that is not a list."""
    bare = {key: value for key, value in item.items() if key not in ("timestamp", "created_at", "ordinal")}
    if item_type(item) != "message" or isinstance(item.get("content"), list):
        return bare
    block = openai.text_block(item_role(item), text_of(item_parts(item)))
    return {"type": "message", "role": item.get("role"), "content": [block]}


# Clients recognise a summary by this opening and replace it at the next compaction; otherwise it would stay for ever.
PREFIX = (
    "Another language model started to solve this problem and produced a summary of its thinking process. You also"
    " have access to the state of the tools that were used by that language model. Use this to build on the work"
    " that has already been done and avoid duplicating work. Here is the summary produced by the other language"
    " model, use the information in this summary to assist with your own analysis:"
)

# Type and payload of a record.
_Line = tuple[str, Mapping[str, Any]]


def _recounted(value: Value, size_tokens: int) -> dict[str, Any]:
    """The ``token_count`` event with another size of the conversation; the totals of the session stay."""
    payload = _payload_of(value)
    usage = dict.fromkeys(payload["info"]["last_token_usage"], 0)
    usage |= {"input_tokens": size_tokens, "total_tokens": size_tokens}
    return {**value, "payload": {**payload, "info": {**payload["info"], "last_token_usage": usage}}}


def _is_enveloped(values: Sequence[Value]) -> bool:
    return any(value.get("type") in ("session_meta", "response_item") and _payload_of(value) for value in values)


def _compaction(
    history: History, cut: InsertionPoint, insertions: Sequence[Insertion], stop: int, tail: Iterable[Value] = ()
) -> list[_Line]:
    """The lines of a compaction: ``compacted`` with the items of head, insertions and tail, then the client's state."""
    items = [*map(_proper, _kept_items(history, cut)), *map(_new_item, insertions), *map(_proper, tail)]
    text = next((_prefixed(item) for item in insertions if item.is_summary), "")
    return [("compacted", {"message": text, "replacement_history": items}), *_state(history, cut, stop)]


def _state(history: History, cut: InsertionPoint, stop: int) -> list[_Line]:
    """The last full ``world_state`` and ``turn_context``, which keep the client from describing permissions and
    surroundings to the model again. Empty if not all such descriptions stay: then the client must do it.
    """
    staying = cut.kept
    read = ((i, _item_of(history.values[i])) for i in range(stop) if i not in history.superseded)
    still_sent = [i in staying for i, item in read if item is not None and is_context(item)]
    for boundary in [i for i in history.boundaries[-1:] if i < stop and i not in staying]:
        pairs = zip(_replacement(history.values[boundary]), history.copies[boundary], strict=True)
        still_sent += [False for item, copied in pairs if copied < 0 and is_context(item)]
    if not still_sent or not all(still_sent):
        return []
    lines = [(string(value.get("type")), _payload_of(value)) for value in reversed(history.values[:stop])]
    state = next((line for line in lines if line[0] == "world_state" and line[1].get("full") is True), None)
    context = next((line for line in lines if line[0] == "turn_context"), None)
    if state is None:
        return []
    return [state, context] if context and context[1] else [state]


def _records(lines: Sequence[_Line], ordinals: Sequence[int], timestamp: str) -> Iterator[dict[str, Any]]:
    """The records of these lines. If there are fewer ordinals than lines, the last one is repeated."""
    for i, (kind, payload) in enumerate(lines):
        ordinal = {"ordinal": ordinals[min(i, len(ordinals) - 1)]} if ordinals else {}
        yield {"timestamp": timestamp, **ordinal, "type": kind, "payload": payload}


def _prefixed(item: Insertion) -> str:
    return f"{PREFIX}\n{item.text}" if item.is_summary else item.text


def _new_item(item: Insertion) -> dict[str, Any]:
    role = "developer" if item.role is Role.SYSTEM else item.role.value
    return {"type": "message", "role": role, "content": [openai.text_block(item.role, _prefixed(item))]}


def _new_line(item: Insertion, timestamp: str) -> dict[str, Any]:
    """The record of an insertion for a rollout in which only events hold the user's words."""
    is_answer = item.role is Role.ASSISTANT
    payload = _new_item(item) if is_answer else {"type": "user_message", "message": item.text}
    return {"timestamp": timestamp, "type": "response_item" if is_answer else "event_msg", "payload": payload}


def _kept_items(history: History, cut: InsertionPoint) -> Iterator[Value]:
    """The items of the head that the client still sends, and opaque summaries among removed records, since no other
    record holds what is in them."""
    before = set(cut.before)
    stop = cut.tail_start(len(history.values))
    last = history.boundaries[-1] if history.boundaries else -1
    if 0 <= last < stop:
        pairs = zip(_replacement(history.values[last]), history.copies[last], strict=True)
        yield from (item for item, i in pairs if is_opaque(item) or (i if i >= 0 else last) in before)
    for i in range(max(last + 1 if last < stop else 0, 0), stop):
        item = _item_of(history.values[i])
        if item is not None and item_role(item) is not Role.META and (i in before or is_opaque(item)):
            yield item


_LINE_TYPES = frozenset(
    "session_meta turn_context response_item event_msg compacted world_state token_usage_record"
    " inter_agent_communication_metadata".split()
)
# Types of items that no other dialect has.
_OWN_ITEMS = ITEM_TYPES - {"message", "tool_call", "tool_result", "compaction"}
# Types that other dialects use too, with the keys of which one makes such a line an item.
_BARE_KEYS = {"tool_call": ("arguments", "function"), "tool_result": ("result",), "compaction": ("encrypted_content",)}
_CONTENT_KEYS = ("content", "message")


class Codex(SessionDialect):
    """The dialect of Codex CLI's rollout files."""

    name = "codex"
    title = "Codex rollout"
    holds = SESSION | Capabilities.SYSTEM | Capabilities.SUMMARIES
    unwritten = SIGNED | Capabilities.ERRORS

    def record_score(self, value: Any) -> int:
        """3 for a line of the envelope; 2 for what older rollouts hold; 1 for a message or result of their kind."""
        kind = string(value.get("type"))
        if isinstance(value.get("payload"), dict):
            return 3 if kind in _LINE_TYPES else 2 if kind and "timestamp" in value else 0
        if self.starts(value) or "record_type" in value or kind in _OWN_ITEMS:
            return 2
        if kind in ("message", "Message") and item_role(value) is not Role.META:
            return 2 if isinstance(value.get("content"), list) else int(any(key in value for key in _CONTENT_KEYS))
        keys = _BARE_KEYS.get(kind, _CONTENT_KEYS if item_role(value) is not Role.META else ())
        return int("timestamp" in value and any(key in value for key in keys))

    def starts(self, value: Any) -> bool:
        """``session_meta``, or the first line of rollouts from before it."""
        if not isinstance(value, dict):
            return False
        is_old = "instructions" in value and "timestamp" in value and not {"type", "role", "payload"} & value.keys()
        return is_old or (value.get("type") == "session_meta" and isinstance(value.get("payload"), dict))

    def session_key(self, value: Any) -> str:
        """The id in a header, which newer clients repeat when a session is resumed; empty for other lines."""
        return string(_payload_of(value).get("id")) if self.starts(value) else ""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what the last compaction replaced is ``superseded``."""
        values = _with_words(objects(records))
        history = History(values)
        groups = openai.answers([_item_of(value) for value in values])
        return tuple(_message(history, i, group) for i, group in enumerate(groups))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last turn."""
        values = reversed(objects(records))
        places = (value.get("payload") if value.get("type") == "turn_context" else value for value in values)
        return located.first_string(at(place, ("model",)) for place in places)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A ``compacted`` record with the head's items and all insertions, then the client's state (see `_state`).

        Their ordinals are those of removed records. A rollout without envelopes gets plain items, and one in which only
        events hold the user's words gets an event.
        """
        values = parsed(transcript)
        timestamp = insertion_time(values, cut)
        if _is_of_events(values):
            return dumped(transcript, (_new_line(item, timestamp) for item in insertions))
        if not _is_enveloped(values):
            return dumped(transcript, ({"timestamp": timestamp, **_new_item(item)} for item in insertions))
        lines = _compaction(History(values), cut, insertions, cut.tail_start(len(values)))
        numbers = {i: value["ordinal"] for i, value in enumerate(values) if isinstance(value.get("ordinal"), int)}
        removed = [numbers[i] for i in reversed(covered(cut, len(values))) if i in numbers]
        ordinals = (removed or [max(numbers.values())])[-len(lines) :] if numbers else []
        return dumped(transcript, _records(lines, ordinals, timestamp))

    # The boundary repeats what is sent.
    appends_head = True

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """``compacted`` with head, summary and tail, the client's state, and a token counter.

        Without the counter the client would read the last one and compact again at once. Raises `UsageError` for
        rollouts without envelopes, whose clients had no compaction, and for those in which only events hold the user's
        words, since a compaction repeats items.
        """
        values = parsed(transcript)
        if not _is_enveloped(values) or _is_of_events(values):
            what = "this rollout is older than compactions, or holds no items of the user"
            raise UsageError(what, next_step="use -i: the archive keeps the original")
        tail = (_item_of(values[i]) for i in cut.after)
        shown = [item for item in tail if item is not None and item_role(item) is not Role.META]
        lines = _compaction(History(values), cut, insertions, len(values), shown)
        counter = next((value for value in reversed(values) if self.counted_tokens(value)), None)
        if counter is not None:
            lines.append(("event_msg", _recounted(counter, size_tokens)["payload"]))
        numbers = [value["ordinal"] for value in values if isinstance(value.get("ordinal"), int)]
        ordinals = [max(numbers) + n for n in range(1, len(lines) + 1)] if numbers else []
        timestamp = insertion_time(values, InsertionPoint(before=(), after=()))
        return dumped(transcript, _records(lines, ordinals, timestamp))

    def counted_tokens(self, value: Value) -> int:
        """The total of a ``token_count`` event; 0 for other records."""
        is_counter = _payload_of(value).get("type") == "token_count"
        total = at(value, ("payload", "info", "last_token_usage", "total_tokens")) if is_counter else None
        return total if isinstance(total, int) else 0

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The event with ``size_tokens`` as its ``last_token_usage``."""
        return dump(_recounted(parse(record.raw), size_tokens), record.raw)

    def problems(self, values: Sequence[Value]) -> Iterator[tuple[int, str]]:
        """The compactions that the client ignores, and a missing ordinal for which it refuses the session."""
        history = History(values)
        for i, value in enumerate(values):
            if value.get("type") == "compacted" and i not in history.boundaries:
                yield i, "this compaction is ignored: it lacks a timestamp, a message or a content that is a list"
        if _payload_of(values[0]).get("history_mode") == "paginated" and "ordinal" not in values[-1]:
            yield len(values) - 1, "the last record has no ordinal: the client refuses the session"

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A header with the keys that the client requires, the model, and the response items."""
        times = conversation.times()
        start = times[0] if times else ""
        about = {"cwd": "/", "originator": "compact", "cli_version": "0.0.0"}
        head = {"id": conversation.key("session"), "timestamp": start, **about}
        lines = [{"timestamp": start, "type": "session_meta", "payload": head}]
        if conversation.model:
            turn = {"cwd": "/", "model": conversation.model}
            lines.append({"timestamp": start, "type": "turn_context", "payload": turn})
        for message, time in zip(conversation.messages, times, strict=True):
            for item in written(message):
                # As the client takes them: system prompts of others are a developer's, summaries open as its own.
                if item.get("role") == "system":
                    item["role"] = "developer"
                elif message.summary and item["type"] == "message":
                    text = message.text.removeprefix(PREFIX).lstrip()
                    item["content"] = [{"type": "input_text", "text": f"{PREFIX}\n{text}"}]
                lines.append({"timestamp": time, "type": "response_item", "payload": item})
        return lines


def _message(history: History, i: int, group: str) -> Message:
    value, is_gone = history.values[i], i in history.superseded
    time = string(value.get("timestamp")) or string(value.get("created_at"))
    if i in history.boundaries:
        # A boundary's message has the items of its history that no record before it holds, the summary among them.
        message = string(_payload_of(value).get("message"))
        items = zip(_replacement(value), history.copies[i], strict=True)
        parts = tuple(part for item, copied in items if copied < 0 for part in item_parts(item))
        if not _replacement(value):
            parts = (Text(text=message),) if message else ()
        texts = (message, *(part.text for part in reversed(parts) if isinstance(part, Text)))
        found = filter(None, (previous_summary(Role.USER, text) for text in texts))
        summary = next(found, PreviousSummary(origin="codex", text=message))
        return Message(role=Role.USER, parts=parts, timestamp=time, summary=summary, superseded=is_gone)
    item = _item_of(value)
    role = Role.META if item is None else item_role(item)
    if item is None or role is Role.META:
        return Message(role=Role.META, timestamp=time)
    parts = tuple(
        replace(part, is_error=True) if isinstance(part, ToolResult) and part.id in history.failed else part
        for part in item_parts(item)
    )
    own_summary = summary_of(role, parts)
    return Message(role=role, parts=parts, group=group, timestamp=time, summary=own_summary, superseded=is_gone)


def _pieces(value: Value) -> list[LocatedPart]:
    if words := _words_of(value):
        return [located.text(words, ("payload", "message"))]
    item = _item_of(value)
    inside = ("payload",) if isinstance(value.get("payload"), dict) else ()
    return [piece.below(*inside) for piece in openai.item_pieces(item)] if item else []


DIALECT = Codex(_pieces)
