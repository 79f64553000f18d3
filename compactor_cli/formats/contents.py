"""Contents: the blocks of a message's ``content`` and its tool calls to parts, and shortened texts back into them.

Every block gives exactly one part, so that the number of a part is the number of its block. Blocks are
those of the Anthropic Messages API, with the text blocks of its relatives (``input_text``, ``output_text``). Calls
stand next to the content, or are written as JSON within a text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from compactor_cli.model.transcript import Media, Part, Role, Text, Thinking, ToolCall, ToolResult

_TEXT_KINDS = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_CALL_KINDS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
# The names that providers have for them, without ``input_`` before or ``_url`` after.
_MEDIA_KINDS = frozenset({"image", "document", "file", "audio", "video"})
_BULKY_KEYS = ("data", "encrypted_content", "image_url", "url", "base64", "file_data")


def content_parts(content: Any) -> tuple[Part, ...]:
    """The parts of a message's content: a string, a list of blocks (or strings), or nothing."""
    if isinstance(content, str):
        return (Text(text=content),) if content else ()
    if isinstance(content, list):
        return tuple(block_part(block) for block in content)
    return (block_part(content),) if isinstance(content, dict) else ()


def block_part(block: Any) -> Part:
    """The part that a block is; what is not known is `Media` of its own kind."""
    if isinstance(block, str):
        return Text(text=block)
    if not isinstance(block, dict):
        return Media(kind=type(block).__name__, size_bytes=0)
    kind = string(block.get("type"))
    if kind in _TEXT_KINDS or (not kind and isinstance(block.get("text"), str)):
        return Text(text=string(block.get("text")))
    if kind == "thinking":
        return Thinking(text=string(block.get("thinking")))
    if kind in _CALL_KINDS:
        return ToolCall(
            id=string(block.get("id")), name=string(block.get("name")), arguments=arguments(block.get("input"))
        )
    if kind.endswith("tool_result"):
        return _result(block)
    if kind == "compaction":
        return Text(text=string(block.get("content")))
    return Media(kind=kind or "unknown", size_bytes=_media_bytes(block))


def _result(block: Mapping[str, Any]) -> ToolResult:
    content = block.get("content")
    return ToolResult(
        id=string(block.get("tool_use_id")),
        text=result_text(content),
        name=string(block.get("name")),
        is_error=block.get("is_error") is True,
        media_count=media_count(content),
    )


def arguments(value: Any) -> Mapping[str, Any] | str:
    """A call's arguments: the object, the object that a string holds, or the text as it stands."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        return "" if value is None else _plain(value)
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    return parsed if isinstance(parsed, dict) else value


def result_text(content: Any) -> str:
    """What a tool answered, as text: text blocks on lines of their own, other objects as JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(result_text(block) for block in content if not _is_media(block))
    if isinstance(content, dict):
        text = content.get(text_key(content))
        if isinstance(text, str) or _is_media(content):
            return text if isinstance(text, str) else ""
        return _plain({key: value for key, value in content.items() if key != "encrypted_content"})
    return "" if content is None else str(content)


def text_key(block: Mapping[str, Any]) -> str:
    """Where a text block has its text: ``value`` in the rows of LLaMA-Factory, ``text`` everywhere else."""
    return "value" if block.get("type") == "text" and isinstance(block.get("value"), str) else "text"


def media_count(content: Any) -> int:
    """How many blocks of a tool's answer are images, documents or other files."""
    blocks: Sequence[Any] = content if isinstance(content, list) else [content]
    return sum(map(_is_media, blocks))


def _is_media(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and kind.removeprefix("input_").removesuffix("_url") in _MEDIA_KINDS


def role_of(role: Role, parts: Sequence[Part]) -> Role:
    """TOOL for a user message that only brings results (and what came with them); else ``role``."""
    if role is not Role.USER or not any(isinstance(part, ToolResult) for part in parts):
        return role
    has_words = any(isinstance(part, Text) and part.text.strip() for part in parts)
    return role if has_words else Role.TOOL


def with_texts(content: Any, texts: Mapping[int, str]) -> Any:
    """The content with the texts of these parts (numbered as in `content_parts`) replaced.

    Images of a tool result stay. Thinking and media are returned as they are.
    """
    if isinstance(content, list):
        return [_with_text(block, texts[i]) if i in texts else block for i, block in enumerate(content)]
    return _with_text(content, texts[0]) if 0 in texts else content


def _with_text(block: Any, text: str) -> Any:
    if not isinstance(block, dict):
        return text
    part = block_part(block)
    if isinstance(part, Text):
        return {**block, "content" if block.get("type") == "compaction" else "text": text}
    if isinstance(part, ToolCall):
        return {**block, "input": shortened_arguments(text)}
    if isinstance(part, ToolResult):
        return {**block, "content": shortened_result(block.get("content"), text)}
    return block


def shortened_arguments(text: str) -> Mapping[str, Any]:
    """Arguments that must be an object: the text's own object, else one that holds the text."""
    parsed = arguments(text)
    return {"shortened": parsed} if isinstance(parsed, str) else parsed


def shortened_result(content: Any, text: str) -> Any:
    """A tool's answer with its text replaced and its images kept, in the shape it had."""
    if not isinstance(content, list):
        return text
    texts = (
        block for block in content if isinstance(block, dict) and not _is_media(block) and text_key(block) in block
    )
    first = next(texts, {"type": "text"})
    return [{**first, text_key(first): text}, *(block for block in content if _is_media(block))]


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def string(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def _media_bytes(block: Mapping[str, Any]) -> int:
    inner = block.get("source")
    places = (inner, block) if isinstance(inner, dict) else (block,)
    found = (place[key] for place in places for key in _BULKY_KEYS if isinstance(place.get(key), str))
    return len(next(found, ""))


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
        holder[key] = arguments_like(holder.get(key), text)


def shortened_call(written: str, text: str) -> str:
    """A call written as JSON, with the text in place of its arguments; only the text if it is no JSON object."""
    value = _odd(written)
    if isinstance(value, str):
        return text
    shorten_call(value, text)
    return json.dumps(value, ensure_ascii=False)


def arguments_like(old: Any, text: str) -> Any:
    """Arguments of the old ones' type: an object, or the JSON string of one. Text that is no JSON object is
    held by an object, so that what an API parses stays parsable."""
    parsed = arguments(text)
    held: Mapping[str, Any] = {"shortened": parsed} if isinstance(parsed, str) else parsed
    if not isinstance(old, str):
        return held
    return text if not isinstance(parsed, str) else json.dumps(held, ensure_ascii=False)
