"""OpenAI chat completions: one message a line, or one conversation a line (fine-tuning, requests, batches)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.core.records import Record
from compactor_cli.core.transcript import Message, Transcript
from compactor_cli.normalise import chat, imitate
from compactor_cli.normalise.base import Cut, Insertion, JsonPath

# Fine-tuning rows and requests, batch lines, preference rows, TRL prompts, benchmark runs and other logs.
_PATHS: tuple[JsonPath, ...] = (
    ("messages",),
    ("body", "messages"),
    ("input", "messages"),
    ("conversations",),
    ("prompt",),
    ("traj",),
    ("history",),
)
_SHAPE = imitate.Shape(role_key="role", text_key="content", user=("user", "human"), assistant=("assistant", "gpt"))
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_OWN_BLOCKS = frozenset({"image_url", "input_audio", "file", "refusal"})
_OWN_KEYS = ("tool_calls", "reasoning_content", "refusal", "tool_call_id")


class OpenAIChat:
    """The dialect of OpenAI's chat completions, and of the many that follow it."""

    name = "openai-chat"
    title = "OpenAI chat messages"

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` and its other places; a bare array of messages."""
        return chat.array_at(value, _PATHS)

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

    def starts(self, value: Any) -> bool:
        """Never: a system message may come anywhere."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record."""
        return chat.read_all(records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the row or the last message names."""
        return model_of(records, row)

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with the keys of the file's own; an acknowledgement has ``weight`` 0 where weights are used."""
        return imitate.insert(transcript, cut, insertions, _SHAPE)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced."""
        return chat.shorten(record, texts)


def _has_function_calls(value: Mapping[str, Any]) -> bool:
    calls = value.get("tool_calls")
    return isinstance(calls, list) and any(isinstance(call, dict) and "function" in call for call in calls)


def _kinds(content: Any) -> set[Any]:
    blocks = content if isinstance(content, list) else ()
    return {kind for block in blocks if isinstance(block, dict) and isinstance(kind := block.get("type"), str)}


def model_of(records: Sequence[Record], row: Any) -> str:
    """The model named by the last message that names one, else by what is around the messages."""
    values = [record.value for record in reversed(records)]
    around = [row, row.get("body"), row.get("params")] if isinstance(row, dict) else []
    names = (value.get("model") for value in (*values, *around) if isinstance(value, dict))
    return next((name for name in names if name and isinstance(name, str)), "")


DIALECT = OpenAIChat()
