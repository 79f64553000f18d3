"""Conversation: a transcript that is being converted to another dialect.

Also reads what stands around the messages in a request (system prompt, tools), and writes requests for the dialects
that are data (`WRITERS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Protocol, runtime_checkable

from compactor_cli.formats.chat import BRIDGE
from compactor_cli.formats.contents import json_text, json_value, listed, object_of, string
from compactor_cli.formats.located import EPOCH, at, derived_uuid
from compactor_cli.formats.registry import Capabilities
from compactor_cli.model.transcript import Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult
from compactor_cli.model.value import dataclass

# Paths of the objects in which requests hold system prompt and tools.
_AROUND = ((), ("body",), ("params",), ("request",), ("modelInput",))
_SYSTEM_KEYS = ("system", "systemInstruction", "system_instruction", "instructions")
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool's definition."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # a JSON Schema

    def declaration(self, schema_key: str = "parameters") -> dict[str, Any]:
        """The declaration for an API that wants the schema at this key."""
        return {"name": self.name, "description": self.description, schema_key: self.parameters}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A whole conversation.

    Guarantees: every call has a unique id, and its result stands in the TOOL message after the message that
    calls (except for calls at the end of the conversation); TOOL messages hold only results; no message
    is empty; images have their content in ``url``.
    """

    messages: tuple[Message, ...]
    model: str = ""  # empty: not known
    tools: tuple[Tool, ...] = ()
    seed: str = ""  # from which ids are derived
    extra: Mapping[str, Any] = field(default_factory=dict)  # keys next to the messages that no format defines

    def row(self, model_key: str = "model") -> dict[str, Any]:
        """A row without its messages: ``extra``, and the model if it is known."""
        return {**self.extra, **({model_key: self.model} if self.model else {})}

    def key(self, what: object) -> str:
        """A UUID for something in this conversation, the same in every run."""
        return derived_uuid(self.seed, what)

    def times(self) -> list[str]:
        """A time for each message: its own, else that of the one before."""
        stamps: list[str] = []
        for message in self.messages:
            stamps.append(message.timestamp or (stamps[-1] if stamps else EPOCH))
        return stamps


@runtime_checkable
class Writing(Protocol):
    """A dialect in which a new conversation can be written."""

    @property
    def unwritten(self) -> Capabilities:
        """What the format can hold but `write` cannot provide, such as token counters and a provider's signatures."""

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """The conversation as JSON values, one a line: a row, or the records of a session."""


# Written conversations have no token counters, since no request was made, and no subagents, which have their own files.
NEVER_WRITTEN = Capabilities.USAGE | Capabilities.SIDECHAINS
# Thinking is refused by these providers without the signature that they made for it.
SIGNED = NEVER_WRITTEN | Capabilities.THINKING

# Formats that hold images only by their content, not by an address.
IMAGES_BY_CONTENT = frozenset({"bedrock", "pi"})


def image_of(part: Part) -> tuple[str, str] | None:
    """The media type and the base64 data of an image with a ``data:`` URL; None for an address and for other parts."""
    url = part.url if isinstance(part, Media) else ""
    found = re.fullmatch(r"data:([\w.+/-]+);base64,(.*)", url, re.DOTALL)
    return (found[1], found[2]) if found else None


def thinking_of(message: Message) -> str:
    """What the model thought, as one text."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Thinking))


def spoken_parts(message: Message) -> Iterator[Text | Media]:
    """Words and images, in order."""
    return (part for part in message.parts if isinstance(part, (Text, Media)))


def arguments_json(call: ToolCall) -> str:
    """Arguments as JSON; a text stays as it is."""
    return call.arguments if isinstance(call.arguments, str) else json_text(call.arguments)


def arguments_object(call: ToolCall) -> Mapping[str, Any]:
    """Arguments as an object; a text becomes ``{"input": text}``."""
    if not isinstance(call.arguments, str):
        return call.arguments
    return {"input": call.arguments} if call.arguments else {}


def plain_id(call_id: str) -> str:
    """The id in the characters and the length that all providers accept."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:64]


def merged(messages: Sequence[Message]) -> list[tuple[Role, list[Message]]]:
    """Runs of messages of one side, for APIs whose turns must alternate. Results are on the user's side.

    A summary is a run of its own, since it could not be recognised within another message.
    """
    runs: list[tuple[Role, list[Message]]] = []
    for message in messages:
        side = Role.USER if message.role is Role.TOOL else message.role
        if runs and runs[-1][0] is side and not message.summary and not runs[-1][1][-1].summary:
            runs[-1][1].append(message)
        else:
            runs.append((side, [message]))
    return runs


def without_system(conversation: Conversation) -> tuple[str, list[Message]]:
    """The system prompt as one text, and the other messages."""
    texts = [message.text for message in conversation.messages if message.role is Role.SYSTEM]
    return "\n\n".join(texts), [message for message in conversation.messages if message.role is not Role.SYSTEM]


def system_of(row: Any) -> str:
    """The system prompt that stands next to the messages of a row."""
    around = (object_of(at(row, place)) for place in _AROUND)
    texts = (_text(each.get(key)) for each in around for key in _SYSTEM_KEYS)
    return next(filter(None, texts), "")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return _text(value.get("parts")) or string(value.get("text"))
    if isinstance(value, list):
        return "\n\n".join(filter(None, map(_text, value)))
    return string(value)


def tools_of(row: Any) -> tuple[Tool, ...]:
    """The definitions of tools that stand next to the messages of a row, in the shape of any provider."""
    around = (object_of(at(row, place)) for place in _AROUND)
    held = (each.get("tools", at(each, ("toolConfig", "tools"))) for each in around)
    return tuple(_tools(json_value(next(filter(None, held), None))))


def _tools(declarations: Any) -> Iterator[Tool]:
    for entry in map(json_value, listed(declarations)):
        declared = at(entry, ("functionDeclarations",)) or at(entry, ("function_declarations",))
        if declared:
            yield from _tools(declared)
            continue
        held = next((at(entry, (key,)) for key in ("function", "toolSpec") if at(entry, (key,))), entry)
        if isinstance(held, dict) and isinstance(held.get("name"), str):
            schema = object_of(next((json_value(held[key]) for key in _SCHEMA_KEYS if held.get(key)), {}))
            parameters = object_of(schema.get("json", schema))
            yield Tool(name=held["name"], description=string(held.get("description")), parameters=parameters)


# Types of blocks whose images belong to a tool's answer, not to the speaker.
_RESULTS = ("tool_result", "toolResult", "functionResponse", "function_response", "toolUseResult")


def with_images(parts: tuple[Part, ...], value: Any) -> tuple[Part, ...]:
    """The parts with the content of the record's images; unchanged if images and parts do not match in number."""
    if not any(is_image(part) for part in parts):
        return parts
    found = list(_images(value))
    if len(found) != sum(map(is_image, parts)):
        return parts
    urls = iter(found)
    return tuple(
        replace(part, url=next(urls)) if isinstance(part, Media) and is_image(part) else part for part in parts
    )


def is_image(part: Part) -> bool:
    """Whether this is an image, by the names that the dialects have for one."""
    return isinstance(part, Media) and ("image" in part.kind or part.kind in ("inlineData", "inline_data"))


def _images(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _images(item)
    if not isinstance(value, dict) or string(value.get("type")) in _RESULTS:
        return
    if (url := _url(value)) is not None:
        yield url
        return
    for key, item in value.items():
        if key not in _RESULTS:
            yield from _images(item)


def _url(block: Mapping[str, Any]) -> str | None:
    kind = string(block.get("type"))
    if kind in ("image_url", "input_image"):
        return string(block.get("image_url")) or string(at(block, ("image_url", "url")))
    if kind == "image":
        source = block.get("source")
        held = source if isinstance(source, dict) else block
        return string(held.get("url")) or _data(held.get("media_type") or held.get("mimeType"), held.get("data"))
    if isinstance(inline := block.get("inlineData", block.get("inline_data")), dict):
        return _data(inline.get("mimeType") or inline.get("mime_type"), inline.get("data"))
    if isinstance(image := block.get("image"), dict) and "format" in image:
        return _data(f"image/{image['format']}", at(image, ("source", "bytes")))
    return None


def _data(media_type: Any, data: Any) -> str:
    return f"data:{string(media_type) or 'image/png'};base64,{data}" if isinstance(data, str) else ""


def _openai_chat(conversation: Conversation) -> Sequence[Any]:
    row = conversation.row()
    row["messages"] = [line for message in conversation.messages for line in openai_lines(message)]
    if conversation.tools:
        row["tools"] = [{"type": "function", "function": tool.declaration()} for tool in conversation.tools]
    return (row,)


def openai_lines(message: Message) -> Iterator[dict[str, Any]]:
    """A message in the shape of OpenAI's API; a tool message becomes one for each result."""
    for result in message.results:
        yield {"role": "tool", "tool_call_id": result.id, "content": result.text}
    if message.role is Role.TOOL:
        return
    line: dict[str, Any] = {"role": message.role.value, "content": openai_content(message)}
    if message.calls:
        line["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_json(call)}}
            for call in message.calls
        ]
    yield line


def openai_content(message: Message) -> Any:
    """The words as a string, as blocks if there are images, or None for a call without words."""
    parts = list(spoken_parts(message))
    if not any(isinstance(part, Media) for part in parts):
        return message.text or (None if message.calls else "")
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "image_url", "image_url": {"url": part.url}}
        for part in parts
    ]


def _anthropic(conversation: Conversation) -> Sequence[Any]:
    system, others = without_system(conversation)
    row = conversation.row() | {"system": system or []}
    row["messages"] = [{"role": side.value, "content": anthropic_content(run)} for side, run in merged(others)]
    if conversation.tools:
        row["tools"] = [tool.declaration("input_schema") for tool in conversation.tools]
    return (row,)


def anthropic_content(run: Iterable[Message]) -> list[dict[str, Any]]:
    """The blocks of messages of one side, results first."""
    blocks: list[dict[str, Any]] = []
    for part in (part for message in run for part in message.parts):
        if isinstance(part, Text) and part.text:
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, ToolCall):
            call = {"id": plain_id(part.id), "name": part.name, "input": arguments_object(part)}
            blocks.append({"type": "tool_use", **call})
        elif isinstance(part, ToolResult):
            failed = {"is_error": True} if part.is_error else {}
            answer = {"type": "tool_result", "tool_use_id": plain_id(part.id), "content": part.text, **failed}
            blocks.append(answer)
        elif isinstance(part, Media):
            source = {"type": "url", "url": part.url}
            if image := image_of(part):
                source = {"type": "base64", "media_type": image[0], "data": image[1]}
            blocks.append({"type": "image", "source": source})
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _bedrock(conversation: Conversation) -> Sequence[Any]:
    system, others = without_system(conversation)
    row = conversation.row("modelId")
    if system:
        row["system"] = [{"text": system}]
    row["messages"] = messages = list[dict[str, Any]]()
    for side, run in merged(others):
        if messages and messages[-1]["role"] == side.value:
            # One of two messages of the user is a summary: the API wants an answer between them.
            messages.append({"role": Role.ASSISTANT.value, "content": [{"text": BRIDGE}]})
        blocks = [block for message in run for part in message.parts if (block := _bedrock_block(part))]
        messages.append({"role": side.value, "content": sorted(blocks, key=lambda block: "toolResult" not in block)})
    if conversation.tools:
        specs = (
            {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.parameters}}
            for tool in conversation.tools
        )
        row["toolConfig"] = {"tools": [{"toolSpec": spec} for spec in specs]}
    return (row,)


def _bedrock_block(part: Part) -> dict[str, Any]:
    """A part as a block; nothing for an empty text, which the API refuses."""
    if isinstance(part, Text):
        return {"text": part.text} if part.text else {}
    if isinstance(part, ToolCall):
        call = {"toolUseId": plain_id(part.id), "name": part.name, "input": arguments_object(part)}
        return {"toolUse": call}
    if isinstance(part, ToolResult):
        status = "error" if part.is_error else "success"
        return {"toolResult": {"toolUseId": plain_id(part.id), "content": [{"text": part.text}], "status": status}}
    image = image_of(part)
    return {"image": {"format": image[0].rpartition("/")[2], "source": {"bytes": image[1]}}} if image else {}


# For each dialect of an API: what cannot be written, and the function that writes the rest.
WRITERS: Mapping[str, tuple[Capabilities, Callable[[Conversation], Sequence[Any]]]] = {
    "openai-chat": (NEVER_WRITTEN, _openai_chat),
    "anthropic": (SIGNED, _anthropic),
    "bedrock": (SIGNED, _bedrock),
}
