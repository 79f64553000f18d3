"""OpenAI chat completions: one message a line, or one conversation a line (fine-tuning, requests, batches)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats import new_message as new_message
from compactor_cli.formats.base import REQUEST, JsonPath
from compactor_cli.formats.chat import ChatDialect
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, Tool, arguments_text, spoken_parts
from compactor_cli.model.transcript import Media, Message, Role, Text

# Fine-tuning rows and requests, batch lines, preference rows, chat logs, TRL prompts, benchmark runs, other logs and
# exports of conversations.
_PATHS: tuple[JsonPath, ...] = (
    ("messages",),
    ("body", "messages"),
    ("input", "messages"),
    ("request", "messages"),
    ("request_params", "messages"),
    ("conversation", "messages"),
    ("simulation_run", "messages"),
    ("conversations",),
    ("conversation",),
    ("prompt",),
    ("traj",),
    ("history",),
    ("input",),
)
_SHAPE = new_message.TurnShape(
    role_key="role", text_key="content", user=("user", "human"), assistant=("assistant", "gpt")
)
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_OWN_BLOCKS = frozenset({"image_url", "input_audio", "file", "refusal"})
_OWN_KEYS = ("tool_calls", "reasoning_content", "refusal", "tool_call_id")


class OpenAIChat(ChatDialect):
    """The dialect of OpenAI's chat completions, and of the many that follow it."""

    name = "openai-chat"
    title = "OpenAI chat messages"
    holds = REQUEST
    unwritten = NEVER_WRITTEN
    paths = _PATHS
    shape = _SHAPE

    def score(self, value: Any) -> int:
        """3 for calls with a ``function`` and their results; 1 for any role with a content."""
        if not chat.is_chat(value):
            return 1 if isinstance(value, dict) and chat.array_at(value, _PATHS) else 0
        if _has_function_calls(value) or (value["role"] == "tool" and "tool_call_id" in value):
            return 3
        if value["role"] == "function" or isinstance(value.get("function_call"), dict):
            return 3
        kinds = _kinds(value.get("content"))
        if kinds & _ANTHROPIC_BLOCKS or (value.get("type") == "message" and kinds):
            return 0
        return 2 if kinds & _OWN_BLOCKS or any(value.get(key) for key in _OWN_KEYS) else 1

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A row of ``messages``, and ``tools`` where there are any."""
        row: dict[str, Any] = {"messages": [line for message in conversation.messages for line in lines(message)]}
        if conversation.tools:
            row["tools"] = [{"type": "function", "function": _definition(tool)} for tool in conversation.tools]
        return ({**conversation.extra, **({"model": conversation.model} if conversation.model else {}), **row},)


def lines(message: Message) -> Iterator[dict[str, Any]]:
    """A message as this API has it: one each for the results of a tool message."""
    for result in message.results:
        yield {"role": "tool", "tool_call_id": result.id, "content": result.text}
    if message.role is Role.TOOL:
        return
    line: dict[str, Any] = {"role": message.role.value, "content": content(message)}
    if message.calls:
        line["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}
            for call in message.calls
        ]
    yield line


def content(message: Message) -> Any:
    """Words as a string, or null; blocks where there are images."""
    parts = list(spoken_parts(message))
    if not any(isinstance(part, Media) for part in parts):
        return message.text or (None if message.calls else "")
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "image_url", "image_url": {"url": part.url}}
        for part in parts
    ]


def _definition(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _has_function_calls(value: Mapping[str, Any]) -> bool:
    calls = value.get("tool_calls")
    return isinstance(calls, list) and any(isinstance(call, dict) and "function" in call for call in calls)


def _kinds(content: Any) -> set[Any]:
    blocks = content if isinstance(content, list) else ()
    return {kind for block in blocks if isinstance(block, dict) and isinstance(kind := block.get("type"), str)}


DIALECT = OpenAIChat()
