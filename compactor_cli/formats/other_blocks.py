"""Content blocks of frameworks: the AI SDK's model messages, Haystack's chat messages, LLaMA-Factory's rows.

Each block is one part, with the place of its text in the block. Sources: the types ``ModelMessage`` of the AI SDK
(versions 4 and 5), ``ChatMessage.to_dict`` of Haystack 2, the rows of LLaMA-Factory's ``v1`` data sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compactor_cli.formats.contents import arguments, string
from compactor_cli.formats.located_parts import LocatedPart, at, result_piece
from compactor_cli.formats.tool_calls import named_call, read_call
from compactor_cli.model.transcript import Text, Thinking, ToolCall

_VALUE = ("value",)


def piece(block: Mapping[str, Any]) -> LocatedPart | None:
    """The part that a block of these frameworks is; None for a block of no one of them."""
    kind = block.get("type")
    if isinstance(block.get("value"), str):
        return _valued(string(kind), block["value"])
    if kind == "tool-call":
        key = "input" if "input" in block else "args"
        call_id, name = string(block.get("toolCallId")), string(block.get("toolName"))
        return LocatedPart(ToolCall(id=call_id, name=name, arguments=arguments(block.get(key))), ((key,),))
    if kind == "tool-result":
        return _sdk_result(block)
    if kind == "reasoning" and isinstance(block.get("text"), str):
        return LocatedPart(Thinking(text=block["text"]))
    return None if kind is not None else _haystack(block)


def _valued(kind: str, value: str) -> LocatedPart | None:
    if kind == "text":
        return LocatedPart(Text(text=value), (_VALUE,))
    if kind == "reasoning":
        return LocatedPart(Thinking(text=value))
    return LocatedPart(named_call(value)) if kind == "tool_call" else None


def _sdk_result(block: Mapping[str, Any]) -> LocatedPart:
    """What a tool gave: ``output`` with a type and a value, ``result`` before version 5."""
    is_typed = isinstance(at(block, ("output", "type")), str) and "value" in block["output"]
    place = ("output", "value") if is_typed else ("output",) if "output" in block else ("result",)
    failed = block.get("isError") is True or string(at(block, ("output", "type"))).startswith("error")
    call_id, name = string(block.get("toolCallId")), string(block.get("toolName"))
    return result_piece(at(block, place), place, call_id=call_id, name=name, is_error=failed)


def _haystack(block: Mapping[str, Any]) -> LocatedPart | None:
    call, result, reasoning = (block.get(key) for key in ("tool_call", "tool_call_result", "reasoning"))
    if isinstance(call, dict):
        named = {"id": call.get("id"), "name": call.get("tool_name"), "arguments": call.get("arguments")}
        return LocatedPart(read_call(named), (("tool_call", "arguments"),))
    if isinstance(result, dict):
        call_id, name = (string(at(result, ("origin", key))) for key in ("id", "tool_name"))
        place = ("tool_call_result", "result")
        return result_piece(result.get("result"), place, call_id=call_id, name=name, is_error=bool(result.get("error")))
    text = at(reasoning, ("reasoning_text",))
    return LocatedPart(Thinking(text=text)) if isinstance(text, str) else None
