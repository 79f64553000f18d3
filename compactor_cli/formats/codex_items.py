"""The response items of a Codex rollout: what each says, and shortened texts back into it.

Items are those of the OpenAI Responses API. Older clients and other tools wrote them without the
``payload`` around them, or as ``tool_call`` and ``tool_result`` without ids; both are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from compactor_cli.formats.contents import (
    arguments,
    content_parts,
    media_count,
    result_text,
    shortened_result,
    string,
    with_texts,
)
from compactor_cli.model.transcript import Media, Part, Role, Text, Thinking, ToolCall, ToolResult

Item = Mapping[str, Any]

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}
# Calls, with the key that holds their arguments.
_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
    "tool_call": "arguments",
}
# Calls that the provider answered by itself: no record holds their result.
_ANSWERED_CALLS = {"web_search_call": "action", "image_generation_call": "revised_prompt"}
# Results, with the key that holds their text.
_RESULTS = {
    "function_call_output": "output",
    "custom_tool_call_output": "output",
    "local_shell_call_output": "output",
    "tool_search_output": "tools",
    "tool_result": "result",
    "function_result": "result",
}
OPAQUE = frozenset({"compaction", "compaction_summary", "context_compaction"})
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:?) (-?\d+)", re.MULTILINE)
# Where an output begins with its exit code, it does so in its first lines.
_HEADER_CHARS = 400

ITEM_TYPES = frozenset({"message", "reasoning", "agent_message", *_CALLS, *_ANSWERED_CALLS, *_RESULTS, *OPAQUE})


def item_type(item: Item) -> str:
    """The type, ``message`` for an item that only has a role; empty for anything else."""
    kind = string(item.get("type"))
    is_message = kind == "Message" or (not kind and string(item.get("role")) in _ROLES)
    return "message" if is_message else kind


def is_opaque(item: Item) -> bool:
    """Whether this is a summary by the provider, which nobody but the provider can read."""
    return item_type(item) in OPAQUE


def is_context(item: Item) -> bool:
    """Whether the client itself wrote this to tell the model about permissions and surroundings."""
    if item_type(item) != "message":
        return False
    text = "".join(part.text for part in content_parts(item.get("content"))[:1] if isinstance(part, Text))
    return item_role(item) is Role.SYSTEM or text.startswith("<environment_context>")


def item_role(item: Item) -> Role:
    """Who speaks; META for what no model is shown."""
    kind = item_type(item)
    if kind == "message":
        return _ROLES.get(string(item.get("role")), Role.META)
    if kind in _RESULTS:
        return Role.TOOL
    if kind == "agent_message":
        return Role.USER
    return Role.ASSISTANT if kind in ITEM_TYPES else Role.META


def item_parts(item: Item) -> tuple[Part, ...]:
    """The parts of an item; none for what no model is shown."""
    kind = item_type(item)
    if kind in ("message", "agent_message"):
        return content_parts(item.get("content") if item.get("content") is not None else item.get("message"))
    if kind == "reasoning":
        return _reasoning(item)
    if kind in _CALLS:
        return (_call(item, _CALLS[kind]),)
    if kind in _RESULTS:
        return (_result(item, _RESULTS[kind]),)
    if kind in _ANSWERED_CALLS:
        call = _call(item, _ANSWERED_CALLS[kind])
        images = 1 if string(item.get("result")) else 0
        return (call, ToolResult(id=call.id, text="", name=call.name, media_count=images))
    return (Media(kind=kind, size_bytes=len(string(item.get("encrypted_content")))),) if kind in OPAQUE else ()


def _reasoning(item: Item) -> tuple[Part, ...]:
    texts = [*content_parts(item.get("summary")), *content_parts(item.get("content"))]
    words = "\n".join(part.text for part in texts if isinstance(part, Text))
    secret = string(item.get("encrypted_content"))
    opaque = (Media(kind="encrypted_reasoning", size_bytes=len(secret)),) if secret else ()
    return (*((Thinking(text=words),) if words else ()), *opaque)


def _call(item: Item, key: str) -> ToolCall:
    function = item.get("function")
    inner = function.get("name") if isinstance(function, dict) else None
    name = string(item.get("name")) or string(inner) or item_type(item).removesuffix("_call")
    return ToolCall(id=_call_id(item), name=name, arguments=arguments(item.get(key)))


def _call_id(item: Item) -> str:
    return string(item.get("call_id")) or string(item.get("id"))


def _result(item: Item, key: str) -> ToolResult:
    output = item.get(key)
    wrapped = _wrapped(output)
    text = result_text(output if wrapped is None else wrapped["output"])
    return ToolResult(
        id=string(item.get("call_id")),
        text=text,
        name=string(item.get("name")),
        is_error=_failed(text, output if wrapped is None else wrapped),
        media_count=media_count(output),
    )


def _wrapped(output: Any) -> dict[str, Any] | None:
    """The object in the output of older shells: ``"{\\"output\\":…,\\"metadata\\":{…}}"``."""
    if not isinstance(output, str) or not output.startswith("{"):
        return None
    try:
        value = json.loads(output)
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("output"), str) else None


def _failed(text: str, output: Any) -> bool:
    if isinstance(output, dict):
        metadata = output.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, dict) else output.get("exitCode")
        return output.get("success") is False or (isinstance(code, int) and code != 0)
    found = _EXIT_CODE.search(text[:_HEADER_CHARS])
    return found is not None and found[1] != "0"


def shortened_item(item: Item, texts: Mapping[int, str]) -> dict[str, Any]:
    """The item with the texts of these parts replaced, in the shape they had."""
    kind = item_type(item)
    if kind in ("message", "agent_message"):
        key = "content" if item.get("content") is not None else "message"
        return {**item, key: with_texts(item.get(key), texts)}
    if 0 in texts and kind in _RESULTS:
        return {**item, _RESULTS[kind]: _shortened_output(item.get(_RESULTS[kind]), texts[0])}
    if 0 in texts and kind in _CALLS:
        value = item.get(_CALLS[kind])
        return {**item, _CALLS[kind]: texts[0] if isinstance(value, str) else arguments(texts[0])}
    return dict(item)


def _shortened_output(output: Any, text: str) -> Any:
    wrapped = _wrapped(output)
    if wrapped is not None:
        return json.dumps({**wrapped, "output": text}, ensure_ascii=False, separators=(",", ":"))
    if isinstance(output, dict) and "text" in output:
        return {**output, "text": text}
    return shortened_result(output, text)
