"""Content blocks of frameworks: the AI SDK's model messages, Haystack's chat messages, LLaMA-Factory's rows.

Each block is one part, with the place of its text in the block. Sources: the types ``ModelMessage`` of the AI SDK
(versions 4 and 5), ``ChatMessage.to_dict`` of Haystack 2, the rows of LLaMA-Factory's ``v1`` data sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compactor_cli.formats.calls import named_call, read_call
from compactor_cli.formats.contents import arguments, string
from compactor_cli.formats.places import Piece, at, result_piece
from compactor_cli.model.transcript import Text, Thinking, ToolCall

_VALUE = ("value",)


def piece(block: Mapping[str, Any]) -> Piece | None:
    """The part that a block of these frameworks is; None for a block of no one of them."""
    kind = block.get("type")
    if isinstance(block.get("value"), str):
        return _valued(string(kind), block["value"])
    if kind == "tool-call":
        key = "input" if "input" in block else "args"
        call_id, name = string(block.get("toolCallId")), string(block.get("toolName"))
        return Piece(ToolCall(id=call_id, name=name, arguments=arguments(block.get(key))), ((key,),))
    if kind == "tool-result":
        return _sdk_result(block)
    if kind == "reasoning" and isinstance(block.get("text"), str):
        return Piece(Thinking(text=block["text"]))
    return None if kind is not None else _haystack(block)


def _valued(kind: str, value: str) -> Piece | None:
    if kind == "text":
        return Piece(Text(text=value), (_VALUE,))
    if kind == "reasoning":
        return Piece(Thinking(text=value))
    return Piece(named_call(value)) if kind == "tool_call" else None


def _sdk_result(block: Mapping[str, Any]) -> Piece:
    """What a tool gave: ``output`` with a type and a value, ``result`` before version 5."""
    is_typed = isinstance(at(block, ("output", "type")), str) and "value" in block["output"]
    place = ("output", "value") if is_typed else ("output",) if "output" in block else ("result",)
    failed = block.get("isError") is True or string(at(block, ("output", "type"))).startswith("error")
    call_id, name = string(block.get("toolCallId")), string(block.get("toolName"))
    return result_piece(at(block, place), place, call_id=call_id, name=name, is_error=failed)


def _haystack(block: Mapping[str, Any]) -> Piece | None:
    call, result, reasoning = (block.get(key) for key in ("tool_call", "tool_call_result", "reasoning"))
    if isinstance(call, dict):
        named = {"id": call.get("id"), "name": call.get("tool_name"), "arguments": call.get("arguments")}
        return Piece(read_call(named), (("tool_call", "arguments"),))
    if isinstance(result, dict):
        call_id, name = (string(at(result, ("origin", key))) for key in ("id", "tool_name"))
        place = ("tool_call_result", "result")
        return result_piece(result.get("result"), place, call_id=call_id, name=name, is_error=bool(result.get("error")))
    text = at(reasoning, ("reasoning_text",))
    return Piece(Thinking(text=text)) if isinstance(text, str) else None
