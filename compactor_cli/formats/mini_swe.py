"""mini-swe-agent trajectories: a document with ``messages``, ``info`` and ``trajectory_format``.

Version 1 writes commands into the assistant's words and answers as the user; version 2 has OpenAI's calls.
``extra`` on the messages holds what the run needs to know. A message of the role ``exit`` ends the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import RUN, Capabilities
from compactor_cli.formats.chat_dialect import model_of
from compactor_cli.formats.contents import string
from compactor_cli.formats.fenced import Fenced, fenced, text_of, with_text
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.located_parts import at, like_keys
from compactor_cli.formats.scrub import lines_between, scrubbed
from compactor_cli.formats.tool_calls import has_calls
from compactor_cli.model.transcript import Message, Record, Role, ToolResult, Transcript

_FORMAT = "mini-swe-agent"
# The kind of an interruption that says that an answer was no action: nobody's words.
_REFUSAL = "FormatError"
# A code block with a command, as the agent's prompt asks for it.
_FENCES = ("```mswea_bash_command\n", "```bash\n")


class MiniSwe:
    """The dialect of mini-swe-agent's ``.traj.json`` files."""

    name = "mini-swe"
    title = "mini-swe-agent trajectory"
    holds = RUN | Capabilities.IDS | Capabilities.TIMES | Capabilities.USAGE | Capabilities.ERRORS

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a document that says it is of this agent."""
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            return None
        is_own = string(value.get("trajectory_format")).startswith(_FORMAT) or at(value, ("info", "mini_version"))
        return chat.array_at(value, (("messages",),)) if is_own else None

    def score(self, value: Any) -> int:
        """3 for a document, the end of a run and a message with ``extra`` from a model; 2 for any with ``extra``."""
        if not chat.is_chat(value):
            return 3 if self.array_path(value) is not None else 0
        extra = value.get("extra")
        if not isinstance(extra, dict):
            return 0
        return 3 if value["role"] == "exit" or "actions" in extra or "response" in extra else 2

    def starts(self, value: Any) -> bool:
        """Never: no message says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; a user message after a command is its observation."""
        messages: list[Message] = []
        for record in records:
            asks = bool(messages) and any(not call.id for call in messages[-1].calls)
            messages.append(_message(record.value, asks))
        return tuple(messages)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last answer, else of the run's configuration."""
        answers = (at(record.value, ("extra", "response", "model")) for record in reversed(records))
        configured = at(row, ("info", "config", "model", "model_name"))
        names = (name for name in (*answers, configured) if isinstance(name, str) and name)
        return next(names, "") or model_of(records, None)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages of a role and a content."""
        first = transcript.records[0] if transcript.records else None
        like, raw = (first.value, first.raw) if first else ({}, b"")
        messages = ({"role": item.role.value, "content": item.text} for item in insertions)
        return tuple(dump(like_keys(message, like), raw) for message in messages)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced within its words; ``extra`` without the copies of what is cut."""
        old = parse(record.raw)
        found = _fenced(old)
        if found is None:
            new = parse(chat.shorten(record, texts))
        else:
            new = {**old, "content": with_text(old["content"], "".join(found.shortened(texts)))}
        if "extra" in new:
            bare = {key: new[key] for key in new if key != "extra"}
            new["extra"] = scrubbed(new["extra"], lines_between(old.get("content"), bare))
        return dump(new, record.raw)


def _message(value: Any, follows_command: bool) -> Message:
    message = chat.read(value)
    if message.is_meta or message.summary:
        return message
    if at(value, ("extra", "interrupt_type")) == _REFUSAL:
        return Message(role=Role.TOOL, parts=message.parts, timestamp=message.timestamp)
    if message.role is Role.USER and follows_command and (text := text_of(value.get("content"))):
        return Message(role=Role.TOOL, parts=(ToolResult(id="", text=text, is_error=_failed(value, text)),))
    found = _fenced(value)
    return Message(role=Role.ASSISTANT, parts=found.parts(), timestamp=message.timestamp) if found else message


def _failed(value: Mapping[str, Any], text: str) -> bool:
    code = at(value, ("extra", "returncode"))
    if isinstance(code, int):
        return code != 0
    start = text.partition("<returncode>")[2].partition("</returncode>")[0].strip()
    return start not in ("", "0")


def _fenced(value: Any) -> Fenced | None:
    """The words of an assistant with the command in them; None where there is none."""
    if not chat.is_chat(value) or value["role"] != "assistant" or has_calls(value):
        return None
    content = text_of(value.get("content"))
    found = fenced(content, _command_text(value) or _written_command(content))
    return found if found.action else None


def _command_text(value: Mapping[str, Any]) -> str:
    actions = at(value, ("extra", "actions"))
    first = actions[0] if isinstance(actions, list) and len(actions) == 1 else None
    return first if isinstance(first, str) else string(at(first, ("command",)))


def _written_command(content: str) -> str:
    """The only command block; several are refused by the agent, and answered as words."""
    fence = next((fence for fence in _FENCES if content.count(fence) == 1), "")
    return content.partition(fence)[2].partition("\n```")[0] if fence else ""


DIALECT = MiniSwe()
