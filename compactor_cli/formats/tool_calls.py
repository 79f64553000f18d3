"""Tool calls of chat messages: next to the content, or written as JSON within a text; read and shortened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from compactor_cli.formats.contents import arguments
from compactor_cli.model.transcript import ToolCall

_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters")


def has_calls(value: Mapping[str, Any]) -> bool:
    """Whether the message asks for tools outside its content."""
    return bool(value.get("tool_calls")) or isinstance(value.get("function_call"), dict)


def calls_of(value: Mapping[str, Any]) -> list[Any]:
    """The calls outside the content, today's and the single one of before 2023-11."""
    calls = value.get("tool_calls")
    found = list(calls) if isinstance(calls, list) else []
    legacy = value.get("function_call")
    return [*found, legacy] if isinstance(legacy, dict) else found


def read_call(call: Any) -> ToolCall:
    """One call, its name and arguments in ``function`` or next to its id."""
    holder = _named(call)
    call_id = call.get("id") if isinstance(call, dict) else ""
    name = holder.get("name")
    return ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=name if isinstance(name, str) else "",
        arguments=_parsed(holder.get(_arguments_key(holder))),
    )


def _parsed(written: Any) -> Mapping[str, Any] | str:
    """Arguments as `arguments` reads them, by the fast parser where it can; as they stand where nested too deeply."""
    try:
        value = orjson.loads(written) if isinstance(written, str) else written
        return value if isinstance(value, dict) else arguments(written)
    except orjson.JSONDecodeError:
        return _odd(written)


def _odd(written: str) -> Mapping[str, Any] | str:
    try:
        return arguments(written)
    except RecursionError:
        return written


def _named(call: Any) -> dict[str, Any]:
    """The object with name and arguments: ``function`` if there is one, else the call itself."""
    if not isinstance(call, dict):
        return {"name": "", "arguments": call}
    function = call.get("function")
    if isinstance(function, str):
        return {**call, "name": function}
    return function if isinstance(function, dict) else call


def _arguments_key(holder: Mapping[str, Any]) -> str:
    if "arguments" in holder:
        return "arguments"
    return next((key for key in _ARGUMENT_KEYS if key in holder), "arguments")


def named_call(text: str) -> ToolCall:
    """A call that is written as JSON within a text: ``{"name": ..., "arguments": ...}``; without an id."""
    value = _odd(text)
    if isinstance(value, str):
        return ToolCall(id="", name="", arguments=text)
    holder = _named(value)
    name = holder.get("name")
    found = _parsed(holder.get(_arguments_key(holder)))
    return ToolCall(id="", name=name if isinstance(name, str) else "", arguments=found)


def shorten_call(call: Any, text: str) -> None:
    """Sets the text in place of the arguments of a call, in place."""
    if isinstance(call, dict):
        inner = call.get("function")
        holder = inner if isinstance(inner, dict) else call
        key = _arguments_key(holder)
        holder[key] = shortened_arguments(holder.get(key), text)


def shortened_call(written: str, text: str) -> str:
    """A call written as JSON, with the text in place of its arguments; only the text if it is no JSON object."""
    value = _odd(written)
    if isinstance(value, str):
        return text
    shorten_call(value, text)
    return json.dumps(value, ensure_ascii=False)


def shortened_arguments(old: Any, text: str) -> Any:
    """Arguments of the old ones' type: an object, or the JSON string of one. Text that is no JSON object is
    held by an object, so that what an API parses stays parsable."""
    parsed = arguments(text)
    held: Mapping[str, Any] = {"shortened": parsed} if isinstance(parsed, str) else parsed
    if not isinstance(old, str):
        return held
    return text if not isinstance(parsed, str) else json.dumps(held, ensure_ascii=False)
