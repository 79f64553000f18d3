"""Claude Code's stream-json output: the records of a session without its tree, as a program reads them.

Lines of one API message share ``message.id``. What subagents say (``parent_tool_use_id``) is not shown to the
main model. A ``compact_boundary`` that a summary follows replaces everything before it. Seen with
``claude -p --output-format stream-json`` 2.0 and 2.1, and with wrappers that keep only type, message and time.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import SESSION, Capabilities
from compactor_cli.formats.claude_tree import is_of_conversation, message_id
from compactor_cli.formats.contents import content_parts, role_of, string, with_texts
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.located_parts import at
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.transcript import Message, Record, Role, Transcript

_TREE_KEYS = ("parentUuid", "sessionId", "isSidechain", "systemPayload")
_SYSTEM_SUBTYPES = frozenset({"init", "compact_boundary", "status", "hook_response", "task_notification"})
_META = Message(role=Role.META)
# Keys of the envelope that a new record takes over from a neighbour.
_COPIED = ("session_id", "parent_tool_use_id", "timestamp")


class ClaudeStream:
    """The dialect of Claude Code's stream-json."""

    name = "claude-stream"
    title = "Claude Code stream-json"
    holds = SESSION | Capabilities.SIDECHAINS

    def array_path(self, value: Any) -> JsonPath | None:
        """None: a line is a record. A whole stream may also be one array of such records."""
        is_stream = isinstance(value, list) and any(self.score(item) == 3 for item in value[:2])
        return () if is_stream else None

    def score(self, value: Any) -> int:
        """3 for the first and the last line, stream events, and messages with ``session_id``; 2 for bare messages."""
        if not isinstance(value, dict) or any(key in value for key in _TREE_KEYS):
            return 0
        kind = value.get("type")
        if kind == "system":
            return 3 if _subtype(value) in _SYSTEM_SUBTYPES and _session_id(value) else 0
        if kind in ("result", "stream_event"):
            return 3 if _session_id(value) and ("subtype" in value or "event" in value) else 0
        if kind not in ("user", "assistant") or not is_of_conversation(value) or "parts" in value["message"]:
            return 0
        return (
            3 if "session_id" in value or "parent_tool_use_id" in value else 2 * (value["message"].get("role") == kind)
        )

    def starts(self, value: Any) -> bool:
        """Never: a stream of several prompts has several first lines (see `session_key`)."""
        return False

    def session_key(self, value: Any) -> str:
        """The session that a record says it belongs to."""
        return _session_id(value) if isinstance(value, dict) else ""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what a compaction replaced is ``superseded``."""
        values = [record.value if isinstance(record.value, dict) else {} for record in records]
        replaced_until = _last_boundary(values)
        return tuple(_message(value, i < replaced_until) for i, value in enumerate(values))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last answer, else the one the stream began with."""
        values = [record.value for record in reversed(records) if isinstance(record.value, dict)]
        answers = (at(value, ("message", "model")) for value in values if value.get("type") == "assistant")
        begun = (value.get("model") for value in values if value.get("type") == "system")
        names = (name for name in (*answers, *begun) if isinstance(name, str) and name)
        return next((name for name in names if not name.startswith("<")), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Records of the user (and the assistant) with the envelope of a neighbour.

        No boundary: it would say that the head is not sent any more.
        """
        conversation = [
            i for i in (*reversed(cut.before), *cut.after) if is_of_conversation(_value(transcript.records[i]))
        ]
        neighbour = _value(transcript.records[conversation[0]]) if conversation else {}
        raw = transcript.records[0].raw if transcript.records else b""
        return tuple(dump(_written(item, neighbour, transcript.sha256), raw) for item in insertions)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with texts replaced in its message; thinking is never touched."""
        value = parse(record.raw)
        message = value["message"]
        return dump({**value, "message": {**message, "content": with_texts(message.get("content"), texts)}}, record.raw)


def _value(record: Record) -> Mapping[str, Any]:
    return record.value if isinstance(record.value, dict) else {}


def _subtype(value: Mapping[str, Any]) -> str:
    return string(value.get("subtype")) or string(at(value, ("message", "subtype")))


def _session_id(value: Mapping[str, Any]) -> str:
    return string(value.get("session_id")) or string(at(value, ("message", "session_id")))


def _is_of_subagent(value: Mapping[str, Any]) -> bool:
    return bool(value.get("parent_tool_use_id"))


def _last_boundary(values: Sequence[Mapping[str, Any]]) -> int:
    """The last boundary with a summary after it; 0 without one."""
    is_summarised = False
    for i in range(len(values) - 1, -1, -1):
        if values[i].get("type") == "system" and _subtype(values[i]) == "compact_boundary" and is_summarised:
            return i
        is_summarised = is_summarised or _message(values[i], False).summary is not None
    return 0


def _message(value: Mapping[str, Any], is_superseded: bool) -> Message:
    if value.get("type") not in ("user", "assistant") or not is_of_conversation(value) or _is_of_subagent(value):
        return _META
    parts = content_parts(value["message"].get("content"))
    role = Role.ASSISTANT if value["type"] == "assistant" else role_of(Role.USER, parts)
    return Message(
        role=role,
        parts=parts,
        group=message_id(value),
        timestamp=string(value.get("timestamp")),
        summary=summary_of(role, parts),
        superseded=is_superseded,
        own_words="" if value.get("isSynthetic") is True else None,
    )


def _written(item: Insertion, neighbour: Mapping[str, Any], sha256: str) -> dict[str, Any]:
    content = [{"type": "text", "text": item.text}]
    own_id = uuid.uuid5(uuid.NAMESPACE_OID, f"{sha256} {item.text}")
    message: dict[str, Any] = {"role": item.role.value, "content": content}
    if item.role is Role.ASSISTANT:
        message = {"id": f"msg_{own_id.hex}", "type": "message", **message, "stop_reason": "end_turn"}
    envelope = {key: neighbour[key] for key in _COPIED if key in neighbour}
    own = {"uuid": str(own_id)} if "uuid" in neighbour else {}
    return {"type": item.role.value, "message": message, **envelope, **own}


DIALECT = ClaudeStream()
