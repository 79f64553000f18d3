"""The items of the OpenAI Responses API: those of `codex_items`, and what the API has beyond them.

Tools that run at the provider's are call and answer in one item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compactor_cli.formats import codex_items
from compactor_cli.formats.codex_items import Item, is_opaque, item_type
from compactor_cli.formats.contents import arguments, result_text, shortened_arguments, string
from compactor_cli.formats.conversation import arguments_text, spoken_parts
from compactor_cli.model.transcript import Message, Part, Role, Text, ToolCall, ToolResult

# Calls that an output answers, with the key of their arguments; and those outputs.
_CALLS = {"computer_call": "action", "shell_call": "action", "apply_patch_call": "operation"}
_OUTPUTS = frozenset({"computer_call_output", "shell_call_output", "apply_patch_call_output"})
# Calls that the provider answered in the same item: the keys of arguments and answer.
_ANSWERED = {
    "file_search_call": ("queries", "results"),
    "code_interpreter_call": ("code", "outputs"),
    "mcp_call": ("arguments", "output"),
}
_NOTES = frozenset({"mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "additional_tools"})

# The bare calls and results of old rollouts are none of the API's.
_OF_THE_API = codex_items.ITEM_TYPES - {"message", "tool_call", "tool_result"}
OWN_TYPES = frozenset({*_OF_THE_API, *_CALLS, *_OUTPUTS, *_ANSWERED, *_NOTES})
OWN_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})


def is_item(value: Any) -> bool:
    """Whether this is an item of the API at all."""
    if not isinstance(value, dict):
        return False
    kind = item_type(value)
    if is_opaque(value):
        return "encrypted_content" in value
    return kind in OWN_TYPES or kind == "item_reference" or (kind == "message" and "content" in value)


def role_of(item: Item) -> Role:
    """Who speaks; META for references and lists of tools."""
    kind = item_type(item)
    if kind in _OUTPUTS:
        return Role.TOOL
    if kind in _CALLS or kind in _ANSWERED:
        return Role.ASSISTANT
    return codex_items.item_role(item)


def parts_of(item: Item) -> tuple[Part, ...]:
    """The parts of an item."""
    kind = item_type(item)
    if kind in _CALLS:
        call_id = string(item.get("call_id")) or string(item.get("id"))
        name = kind.removesuffix("_call")
        return (ToolCall(id=call_id, name=name, arguments=_arguments(item.get(_CALLS[kind]))),)
    if kind in _OUTPUTS:
        return (_output(item),)
    if kind in _ANSWERED:
        return _answered(item, *_ANSWERED[kind])
    found = codex_items.item_parts(item)
    return _with_refusals(item, found) if kind == "message" else found


def _arguments(value: Any) -> Mapping[str, Any] | str:
    return arguments({"queries": value} if isinstance(value, list) else value)


def _output(item: Item) -> ToolResult:
    output = item.get("output")
    has_image = isinstance(output, dict) and string(output.get("type")).endswith("screenshot")
    return ToolResult(
        id=string(item.get("call_id")),
        text="" if has_image else _plain(output),
        is_error=item.get("status") == "failed",
        media_count=int(has_image),
    )


def _plain(output: Any) -> str:
    """The text of a shell's outputs (``[{"stdout", "stderr", "outcome"}]``), else of any other output."""
    if not isinstance(output, list) or not all(isinstance(entry, dict) for entry in output):
        return result_text(output)
    shells = [entry for entry in output if "stdout" in entry or "stderr" in entry]
    texts = (string(entry.get(key)) for entry in shells for key in ("stdout", "stderr"))
    return "\n".join(text for text in texts if text) if shells else result_text(output)


def _answered(item: Item, asked: str, result_key: str) -> tuple[Part, ...]:
    call_id = string(item.get("id"))
    name = string(item.get("name")) or item_type(item).removesuffix("_call")
    failed = bool(item.get("error")) or item.get("status") == "failed"
    text = result_text(item.get(result_key)) or result_text(item.get("error"))
    return (
        ToolCall(id=call_id, name=name, arguments=_arguments(item.get(asked))),
        ToolResult(id=call_id, text=text, name=name, is_error=failed),
    )


def _with_refusals(item: Item, found: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts of a message, refusals as the texts they are."""
    content = item.get("content")
    blocks = content if isinstance(content, list) and len(content) == len(found) else [None] * len(found)
    return tuple(_opened(block, part) for block, part in zip(blocks, found, strict=True))


def _opened(block: Any, part: Part) -> Part:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "refusal":
        return Text(text=string(block.get("refusal")))
    return part


def written(message: Message) -> Iterator[dict[str, Any]]:
    """The items of a message: its words, then each call or result."""
    words = [
        {"type": "output_text" if message.role is Role.ASSISTANT else "input_text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "input_image", "image_url": part.url}
        for part in spoken_parts(message)
    ]
    if words:
        yield {"type": "message", "role": message.role.value, "content": words}
    for call in message.calls:
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments_text(call)}
    for result in message.results:
        yield {"type": "function_call_output", "call_id": result.id, "output": result.text}


def is_reasoning(item: Item) -> bool:
    """Whether this is reasoning, readable or encrypted."""
    return item_type(item) == "reasoning"


def shortened(item: Item, texts: Mapping[int, str]) -> dict[str, Any]:
    """The item with the texts of these parts replaced, in the shape they had."""
    kind = item_type(item)
    if kind in _CALLS:
        return {**item, _CALLS[kind]: shortened_arguments(texts[0])} if 0 in texts else dict(item)
    if kind in _OUTPUTS:
        return {**item, "output": _shortened_output(item.get("output"), texts[0])} if 0 in texts else dict(item)
    if kind in _ANSWERED:
        result_key = _ANSWERED[kind][1]
        is_text = 1 in texts and isinstance(item.get(result_key), str)
        return {**item, result_key: texts[1]} if is_text else dict(item)
    short = codex_items.shortened_item(item, texts)
    content = item.get("content")
    if kind == "message" and isinstance(content, list):
        short["content"] = [_refused(block, short["content"][i], texts.get(i)) for i, block in enumerate(content)]
    return short


def _refused(old: Any, new: Any, text: str | None) -> Any:
    is_refusal = isinstance(old, dict) and old.get("type") == "refusal" and text is not None
    return {**old, "refusal": text} if is_refusal else new


def _shortened_output(output: Any, text: str) -> Any:
    if isinstance(output, list) and output and isinstance(output[0], dict) and "stdout" in output[0]:
        return [{**output[0], "stdout": text, "stderr": ""}]
    return text if isinstance(output, str) else output
