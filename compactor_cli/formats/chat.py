"""Messages with a role and a content, in the shapes of OpenAI, Anthropic, Bedrock, Kimi and their relatives.

One reader for all of them: logs mix the shapes, and a message that is read by the wrong name must still
be read. The dialects differ in how they are recognised and in how new messages are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.formats import blocks, located, new_message
from compactor_cli.formats.base import JsonPath
from compactor_cli.formats.client_signs import previous_summary, summary_of
from compactor_cli.formats.contents import (
    CALL_LISTS,
    arguments_place,
    has_calls,
    listed,
    media_count,
    named_call,
    read_call,
    result_text,
    role_of,
    shortened_call,
    shortened_result,
    size_bytes,
    string,
)
from compactor_cli.formats.located import LocatedPart, at
from compactor_cli.model.transcript import Media, Message, PreviousSummary, Record, Role, Text, ToolResult

ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
    "assistant": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "ai": Role.ASSISTANT,
    "gpt": Role.ASSISTANT,
    "tool_call": Role.ASSISTANT,
    "function_call": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
    "observation": Role.TOOL,
    "tool_response": Role.TOOL,
    "tool_result": Role.TOOL,
    "ipython": Role.TOOL,
}
_META = Message(role=Role.META)
# Bookkeeping among the messages: what a run of mini-swe-agent ended with, a platform's own notes.
_META_ROLES = frozenset({"exit", "session_meta", "info", "error", "warning"})
_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
_OPAQUE_KEYS = ("reasoning_details", "audio")
_ERROR_KEYS = ("is_error", "error")
_REASONING = frozenset({*_REASONING_KEYS, *_OPAQUE_KEYS})
# What may stand next to the content and has something to say.
_SIBLING_KEYS = frozenset({*_REASONING, "refusal", *CALL_LISTS, "function_call"})
_CALL_ROLES = ("tool_call", "function_call")
_SUMMARISING = (Role.USER, Role.SYSTEM)
# This many elements of an array are looked at for one that says anything.
_LOOKED_AT = 50

# Where what is around the messages names the model.
ROW_MODELS: tuple[JsonPath, ...] = (("model",), ("body", "model"), ("params", "model"), ("request", "model"))


def is_chat(value: Any) -> bool:
    """Whether this is a message of this family at all."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    return "content" in value or not _SIBLING_KEYS.isdisjoint(value)


def array_at(value: Any, paths: Sequence[JsonPath]) -> JsonPath | None:
    """The first of these paths at which there is an array of messages (an empty one counts)."""
    if isinstance(value, list):
        return () if not value or _leads(value) else None
    if not isinstance(value, dict):
        return None
    for path in paths:
        if path[0] not in value:
            continue
        found = at(value, path)
        if isinstance(found, list) and (not found or _leads(found)):
            return path
    return None


def _leads(elements: Sequence[Any]) -> bool:
    """Whether the first object in the array has a role, and one of the first has a content; others identify nothing."""
    objects = [element for element in elements[:_LOOKED_AT] if isinstance(element, dict)]
    has_role = bool(objects) and isinstance(objects[0].get("role"), str) and "parts" not in objects[0]
    return has_role and any(map(is_chat, objects))


def read(value: Any) -> Message:
    """What one message says. A role that is a name (of an agent among several) speaks as an assistant."""
    role = _role(value)
    if role is Role.META:
        return _META
    content = value.get("content")
    if (
        isinstance(content, str)
        and role is not Role.TOOL
        and value["role"] not in _CALL_ROLES
        and _SIBLING_KEYS.isdisjoint(value)
    ):
        # A message that is nothing but a text: most are, and this is the short way for them.
        summary = previous_summary(role, content) if role in _SUMMARISING else None
        words = (Text(text=content),) if content else ()
        return Message(role=role, parts=words, timestamp=string(value.get("timestamp")), summary=summary)
    parts = tuple([piece.part for piece in _pieces(value, role)])
    return Message(
        role=role_of(role, parts),
        parts=parts,
        timestamp=string(value.get("timestamp")),
        summary=_compaction(content) or (summary_of(role, parts) if role in _SUMMARISING else None),
    )


def _role(value: Any) -> Role:
    if not is_chat(value):
        return Role.META
    name = value["role"]
    if role := ROLES.get(name) or ROLES.get(name.lower()):
        return role
    return Role.META if name in _META_ROLES or name.startswith("_") or not name else Role.ASSISTANT


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of a message with the places of their texts: reasoning, content, refusal, calls."""
    role = _role(value)
    return [] if role is Role.META else _pieces(value, role)


def _pieces(value: Mapping[str, Any], role: Role) -> list[LocatedPart]:
    content = value.get("content")
    if role is Role.TOOL and isinstance(content, str):
        return [LocatedPart(_result(value), (("content",),), shortened_result)]
    if value["role"] in _CALL_ROLES:
        call = named_call(result_text(content))
        inside = [LocatedPart(call, (("content",),), lambda old, text: shortened_call(result_text(old), text))]
    else:
        inside = located.content(content, "content", read=blocks.piece)
    if role is Role.TOOL:
        # The blocks that are results, with what stands next to them; else the whole content is one result.
        has_results = isinstance(content, list) and any(isinstance(piece.part, ToolResult) for piece in inside)
        return inside if has_results else [LocatedPart(_result(value), (("content",),), shortened_result)]
    found = [*_reasoning(value), *inside]
    if (refusal := value.get("refusal")) and isinstance(refusal, str):
        found.append(located.text(refusal, ("refusal",)))
    return [*found, *_calls(value)] if has_calls(value) else found


def _calls(value: Mapping[str, Any]) -> Iterator[LocatedPart]:
    """The calls outside the content, today's and the single one of before 2023-11."""
    legacy = value.get("function_call")
    held: list[tuple[Any, JsonPath]] = [
        (call, (key, i)) for key in CALL_LISTS for i, call in enumerate(listed(value.get(key)))
    ]
    for call, place in [*held, (legacy, ("function_call",))] if isinstance(legacy, dict) else held:
        inner = arguments_place(call)
        yield LocatedPart(read_call(call), ((*place, *inner),) if inner else ())


def _reasoning(value: Mapping[str, Any]) -> Iterator[LocatedPart]:
    """The reasoning next to the content, once; what is opaque by its size."""
    if _REASONING.isdisjoint(value):
        return
    texts = (value.get(key) for key in _REASONING_KEYS)
    if text := next((text for text in texts if text and isinstance(text, str)), ""):
        yield located.thinking(text)
        return
    opaque = ((key, value.get(key)) for key in _OPAQUE_KEYS)
    yield from (LocatedPart(Media(kind=key, size_bytes=size_bytes(found))) for key, found in opaque if found)


def _result(value: Mapping[str, Any]) -> ToolResult:
    content = value.get("content")
    return ToolResult(
        id=_first_string(value, "tool_call_id", "toolCallId", "id"),
        text=result_text(content),
        name=_first_string(value, "name", "tool_name", "toolName"),
        is_error=any(value.get(key) not in (None, False, "") for key in _ERROR_KEYS if key in value),
        media_count=0 if isinstance(content, str) else media_count(content),
    )


def _first_string(value: Mapping[str, Any], *keys: str) -> str:
    return next((found for key in keys if isinstance(found := value.get(key), str)), "")


def _compaction(content: Any) -> PreviousSummary | None:
    """The summary in a ``compaction`` block of the Anthropic API."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "compaction":
            text = block.get("content")
            return PreviousSummary(origin="anthropic", text=text if isinstance(text, str) else "")
    return None


def shorten(record: Record, texts: Mapping[int, str]) -> bytes:
    """The record with the texts of these parts replaced; arguments stay the JSON object or string they were."""
    return located.shorten(record, texts, pieces)


SHAPE = new_message.TurnShape(role_key="role", text_key="content", user=("user",), assistant=("assistant",))
