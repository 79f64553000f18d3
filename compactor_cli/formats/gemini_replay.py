"""What a log of Gemini CLI comes to: messages that later lines update, replace as a whole, or take back.

A line with the ``id`` of an earlier one is its newer version; ``{"$set": {"messages": [...]}}`` replaces the whole
list (the client writes it after a compression, and at each resume, repeating everything); ``{"$rewindTo": id}``
takes back that message and all after it. Observed with Gemini CLI 0.61.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.formats.contents import string
from compactor_cli.formats.located_parts import at

Value = Mapping[str, Any]

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
        self.answered = frozenset(key for value in values if is_message(value) for key in _answered(value))
        self.repeated = frozenset(
            i
            for i, value in enumerate(values)
            if is_message(value) and (_only_answers(value, self._nested) or self._holders[key_of(i, value)] != i)
        )

    def _play(self, i: int, value: Value) -> None:
        replacement = new_messages(value)
        if is_message(value):
            self._holders[key_of(i, value)] = self._list[key_of(i, value)] = i
        elif replacement is not None:
            self._replace(i, replacement)
        elif isinstance(value.get("$rewindTo"), str) and value["$rewindTo"] in self._list:
            keys = list(self._list)
            self._list = {key: self._list[key] for key in keys[: keys.index(value["$rewindTo"])]}

    def _replace(self, i: int, messages: Sequence[Value]) -> None:
        shown = (item for item in messages if not is_context(item) and not _only_answers(item, self._nested))
        self._list = {}
        own: list[Value] = []
        for message in shown:
            key = string(message.get("id"))
            if self._holders.setdefault(key, i) == i:
                own.append(message)
            self._list[key] = self._holders[key]
        if own:
            self.own[i] = tuple(own)


def key_of(i: int, value: Value) -> str:
    """What tells this message from others; one without an id is like no other."""
    return string(value.get("id")) or f"#{i}"


def is_message(value: Value) -> bool:
    """Whether a line is one message."""
    return isinstance(value.get("id"), str) and string(value.get("type")) in TYPES


def new_messages(value: Value) -> list[Value] | None:
    """The messages of a line that replaces the whole list; None for all other lines."""
    messages = at(value, ("$set", "messages"))
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else None


def is_context(message: Value) -> bool:
    """Whether the client wrote this about surroundings: it writes it anew whenever it starts."""
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return message.get("type") == "user" and string(text).lstrip().startswith(_CONTEXTS)


def responses(parts: Any) -> Iterator[Value]:
    """The ``functionResponse`` objects among the parts of a message."""
    blocks = parts if isinstance(parts, list) else []
    found = (at(block, ("functionResponse",)) for block in blocks)
    return (response for response in found if isinstance(response, dict))


def _answered(value: Value) -> Iterator[str]:
    return (string(response.get("id")) for response in responses(value.get("content")))


def _nested(value: Value) -> Iterator[str]:
    calls = value.get("toolCalls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict) and isinstance(call.get("result"), list) and call["result"]:
            yield string(call.get("id"))


def _only_answers(value: Value, nested: frozenset[str]) -> bool:
    content = value.get("content")
    answers = list(_answered(value))
    return isinstance(content, list) and bool(content) and len(answers) == len(content) and nested.issuperset(answers)
