"""Gemini contents: ``{"contents": [{"role": "user"|"model", "parts": [...]}]}`` of the Gemini API.

Calls have ids in newer requests only; without, order pairs them. Signatures (``thoughtSignature``) stand
next to what they sign, and are kept or left out with it. The Python client's names (``function_call``) are read too,
and the arrays of early Gemini CLI logs, whose entries name their speaker in ``type``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats import located
from compactor_cli.formats.base import REQUEST, Capabilities, Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.chat import ROW_MODELS
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.contents import role_of, size_bytes, string
from compactor_cli.formats.conversation import SIGNED, Conversation, arguments_object, image_of, merged, without_system
from compactor_cli.formats.jsontext import dumped
from compactor_cli.formats.located import LocatedPart, RecordDialect, like_keys, parts_of
from compactor_cli.formats.new_message import alternating
from compactor_cli.model.transcript import (
    Media,
    Message,
    Part,
    Record,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Transcript,
)

# Requests, tuning rows of Vertex AI, and the reports that Gemini CLI writes of errors (``context``).
_PATHS: tuple[JsonPath, ...] = (
    ("contents",),
    ("request", "contents"),
    ("body", "contents"),
    ("history",),
    ("messages",),
    ("conversation", "messages"),
    ("context",),
)
_ROLES = {
    "user": Role.USER,
    "model": Role.ASSISTANT,
    "gemini": Role.ASSISTANT,
    "function": Role.TOOL,
    "tool": Role.TOOL,
    "system": Role.SYSTEM,
}
_CALLS = ("functionCall", "function_call", "toolCall", "tool_call")
_RESULTS = ("functionResponse", "function_response", "toolResponse", "tool_response")
_CODE = ("executableCode", "executable_code")
_CODE_RESULTS = ("codeExecutionResult", "code_execution_result")
_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")
_PART_KEYS = frozenset({"text", *_CALLS, *_RESULTS, *_CODE, *_CODE_RESULTS, *_MEDIA})
_CODE_TOOL = "code_execution"


class GeminiContents(RecordDialect):
    """The dialect of the Gemini API's requests."""

    name = "gemini-contents"
    title = "Gemini contents"
    holds = REQUEST | Capabilities.ERRORS | Capabilities.THINKING
    unwritten = SIGNED
    paths = _PATHS
    row_models = ROW_MODELS

    def record_score(self, value: Any) -> int:
        """3 for a content with parts of the API; 2 for an entry of an early log."""
        return (2 if _is_entry(value) else 3) if is_content(value) else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per content; a content that only brings results is a tool's."""
        return tuple(_message(record.value) for record in records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the request names."""
        return super().model((), row).removeprefix("models/")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Contents of one text part, their keys in the file's order; the API wants user and model to take turns."""
        like = transcript.records[0].value if transcript.records else {}
        speaker, names = "type" if _is_entry(like) else "role", {Role.ASSISTANT: "model"}
        placed = alternating(transcript, cut, insertions)
        contents = ({speaker: names.get(item.role, "user"), "parts": [{"text": item.text}]} for item in placed)
        return dumped(transcript, (like_keys(content, like) for content in contents))

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A request: ``systemInstruction`` and ``tools`` next to the contents, contents of one side as one."""
        system, others = without_system(conversation)
        row = conversation.row()
        if system:
            row["systemInstruction"] = {"parts": [{"text": system}]}
        row["contents"] = [
            {"role": "model" if side is Role.ASSISTANT else "user", "parts": [written(p) for m in run for p in m.parts]}
            for side, run in merged(others)
        ]
        if conversation.tools:
            declared = [tool.declaration("parametersJsonSchema") for tool in conversation.tools]
            row["tools"] = [{"functionDeclarations": declared}]
        return (row,)


def written(part: Part) -> dict[str, Any]:
    """A part of the API."""
    if isinstance(part, Text | Thinking):
        return {"text": part.text}
    if isinstance(part, ToolCall):
        return {"functionCall": {"id": part.id, "name": part.name, "args": arguments_object(part)}}
    if isinstance(part, ToolResult):
        result_body = {"error" if part.is_error else "output": part.text}
        return {"functionResponse": {"id": part.id, "name": part.name, "response": result_body}}
    if image := image_of(part):
        return {"inlineData": {"mimeType": image.media_type, "data": image.data}}
    return {"fileData": {"fileUri": part.url}}


def is_content(value: Any) -> bool:
    """Whether this is a content: parts of the API, and a role that may be missing."""
    if _is_entry(value):
        return True
    if not isinstance(value, dict) or not isinstance(value.get("parts"), list) or "content" in value:
        return False
    known = (
        isinstance(part, dict) and not _PART_KEYS.isdisjoint(part) and "type" not in part for part in value["parts"]
    )
    return string(value.get("role", "user")) in _ROLES and all(known)


def _is_entry(value: Any) -> bool:
    """Whether this is an entry of an early log: a text or parts, and its speaker as a type."""
    if not isinstance(value, dict) or {"role", "content", "message", "id"} & value.keys():
        return False
    result_body = isinstance(value.get("text"), str) or isinstance(value.get("parts"), list)
    return result_body and string(value.get("type")) in _ROLES


def _message(value: Any) -> Message:
    if not is_content(value):
        return Message(role=Role.META)
    found = parts_of(pieces(value))
    role = role_of(_ROLES[value.get("type" if _is_entry(value) else "role", "user")], found)
    return Message(role=role, parts=found, timestamp=string(value.get("ts")), summary=summary_of(role, found))


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of a content with the places of their texts."""
    blocks = value.get("parts") if isinstance(value, dict) else None
    if not isinstance(blocks, list):
        text = value.get("text") if _is_entry(value) else None
        return [located.text(text, ("text",))] if isinstance(text, str) and text else []
    has_code_pairs = _count(blocks, _CODE) == _count(blocks, _CODE_RESULTS)
    return [_piece(block, ("parts", i), has_code_pairs) for i, block in enumerate(blocks)]


def _count(blocks: Sequence[Any], keys: Sequence[str]) -> int:
    return sum(_key(block, keys) != "" for block in blocks)


def _key(block: Any, keys: Sequence[str]) -> str:
    """Which of these keys the block has an object at."""
    return next((key for key in keys if isinstance(block, dict) and isinstance(block.get(key), dict)), "")


def _piece(block: Any, place: tuple[str | int, ...], has_code_pairs: bool) -> LocatedPart:
    if isinstance(block, str):
        return located.text(block, place)
    if not isinstance(block, dict):
        return LocatedPart(Media(kind=type(block).__name__, size_bytes=0))
    if isinstance(block.get("text"), str):
        is_thought = block.get("thought") is True
        return located.thinking(block["text"]) if is_thought else located.text(block["text"], (*place, "text"))
    if key := _key(block, _CALLS):
        call = block[key]
        return located.call({**call, "name": _name(call), "args": call.get("args") or {}}, "args", *place, key)
    if key := _key(block, _RESULTS):
        answer, response = block[key], block[key].get("response")
        failed = isinstance(response, dict) and len(response) == 1 and "error" in next(iter(response))
        there = (*place, key, "response")
        piece = located.result(response, there, call_id=answer.get("id"), name=_name(answer), is_error=failed)
        return piece if isinstance(response, (dict, str, list)) else LocatedPart(piece.part)
    if key := _key(block, (*_CODE, *_CODE_RESULTS)):
        return _code(block[key], key, (*place, key), has_code_pairs)
    kind = next((key for key in block if key not in ("thought", "thoughtSignature")), "unknown")
    return LocatedPart(Media(kind=kind, size_bytes=size_bytes(block)))


def _name(block: Mapping[str, Any]) -> str:
    return string(block.get("name")) or string(block.get("toolType")) or string(block.get("tool_type"))


def _code(inner: Mapping[str, Any], key: str, place: tuple[str | int, ...], is_paired: bool) -> LocatedPart:
    """Code that ran at the provider's, and what it gave; one without the other is reported as text."""
    inner_key = "output" if key in _CODE_RESULTS else "code"
    text, there = string(inner.get(inner_key)), ((*place, inner_key),) if isinstance(inner.get(inner_key), str) else ()
    if not is_paired:
        return located.text(text, *there)
    if inner_key == "code":
        return LocatedPart(ToolCall(id="", name=_CODE_TOOL, arguments={"code": text}))
    failed = string(inner.get("outcome")) not in ("", "OUTCOME_OK")
    return LocatedPart(ToolResult(id="", text=text, name=_CODE_TOOL, is_error=failed), there)


DIALECT = GeminiContents(pieces)
