"""Columns: rows as Arrow and the loaders on it want them, of one set of keys and one type for each.

Arrow unites the keys of all objects it meets at a place and fills the missing ones with null: schemas of tools and
arguments of calls come out changed, and a list here and a null there is an error. So what differs from row to row
is written as a JSON string, and a message has the keys of every message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Where rows hold messages.
_CONVERSATIONS = ("messages", "conversations", "prompt", "completion", "chosen", "rejected")
_ALWAYS: Mapping[str, Any] = {"content": "", "tool_calls": [], "tool_call_id": ""}
_ARGUMENTS = ("arguments", "args", "input")


def as_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with ``tools``, arguments and every other object as a JSON string; its messages with one set of keys."""
    found = {
        key: [_message(item) for item in value] if key in _CONVERSATIONS and isinstance(value, list) else _cell(value)
        for key, value in row.items()
    }
    return {**found, "tools": _text(row.get("tools") or [])}


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    cells = {key: _calls(value) if key == "tool_calls" else _cell(value) for key, value in message.items()}
    missing = {key: value for key, value in _ALWAYS.items() if "role" in message and cells.get(key) is None}
    return {**cells, **missing}


def _calls(calls: Any) -> list[Any]:
    return [_call(call) for call in calls] if isinstance(calls, list) else []


def _call(call: Any) -> Any:
    """The call with its arguments, in ``function`` or next to its id, as a JSON string."""
    if not isinstance(call, dict):
        return call
    inner = {"function": _call(call["function"])} if isinstance(call.get("function"), dict) else {}
    texts = {key: _text(call[key]) for key in _ARGUMENTS if key in call}
    return {**call, **inner, **texts}


def _cell(value: Any) -> Any:
    """A value of one type: objects, and lists with objects in them, as JSON."""
    is_nested = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict | list) for v in value))
    return _text(value) if is_nested else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
