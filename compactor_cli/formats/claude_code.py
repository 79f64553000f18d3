"""Claude Code sessions: ``~/.claude/projects/<project>/<session>.jsonl``, one record a line.

One message of the API is several records that share ``message.id``. What a client sends of a session
follows from a tree (`claude_tree`); a compaction is written into that tree (`claude_insert`).
Also read are the same records with a bare envelope: stream-json output, and ``{"loglines": [...]}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats import anthropic, claude_insert, claude_refresh
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import SESSION, Capabilities
from compactor_cli.formats.claude_tree import Tree, Value, is_boundary, is_of_conversation, message_id, superseded
from compactor_cli.formats.contents import content_parts, role_of, string, with_texts
from compactor_cli.formats.conversation import SIGNED, Conversation, merged
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.located_parts import at
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.transcript import Message, Part, PreviousSummary, Record, Role, Text, Transcript

_ENVELOPE = ("uuid", "parentUuid", "sessionId", "isSidechain")
_TREE_TYPES = frozenset({"user", "assistant", "system", "attachment", "progress"})
# Types of lines next to the tree, with a key that each of them has.
_SIDE_TYPES = {
    "summary": "leafUuid",
    "file-history-snapshot": "snapshot",
    "queue-operation": "operation",
    "last-prompt": "leafUuid",
    "permission-mode": "permissionMode",
    "custom-title": "customTitle",
    "ai-title": "aiTitle",
    "agent-name": "agentName",
    "pr-link": "prUrl",
    "mode": "mode",
    "worktree-state": "worktreeSession",
    "content-replacement": "replacements",
    "attribution-snapshot": "sessionId",
    "api-request-shape": "sessionId",
    "api-request-blob": "sessionId",
    "api-request": "sessionId",
}


class ClaudeCode:
    """The dialect of Claude Code's session files."""

    name = "claude-code"
    title = "Claude Code session"
    holds = SESSION | Capabilities.SIDECHAINS | Capabilities.SUMMARIES
    unwritten = SIGNED
    links_records = True

    def array_path(self, value: Any) -> JsonPath | None:
        """``loglines`` of a session that was shared from the web client."""
        return ("loglines",) if isinstance(value, dict) and isinstance(value.get("loglines"), list) else None

    def score(self, value: Any) -> int:
        """3 for two keys of the envelope, or a line that only this client writes; 2 for a bare envelope."""
        if not isinstance(value, dict) or "systemPayload" in value:
            return 0
        kind = string(value.get("type"))
        if kind in _SIDE_TYPES:
            return 3 if _SIDE_TYPES[kind] in value else 0
        if kind not in _TREE_TYPES or (kind in ("user", "assistant") and not is_of_conversation(value)):
            return 0
        if is_of_conversation(value) and "parts" in value["message"]:  # a relative with messages of the Gemini API
            return 0
        if sum(key in value for key in _ENVELOPE) >= 2:
            return 3
        return 2 if is_of_conversation(value) and value["message"].get("role") == kind else 0

    def starts(self, value: Any) -> bool:
        """Never: a session has no first line of its own kind (see `session_key`)."""
        return False

    def session_key(self, value: Any) -> str:
        """The session that a record says it belongs to. Empty for lines next to the tree: they name others too."""
        is_own = isinstance(value, dict) and value.get("type") in (*_TREE_TYPES, "queue-operation")
        return string(value.get("sessionId")) if is_own else ""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what the client does not send any more is ``superseded``."""
        tree = tree_of(records)
        gone = superseded(tree)
        return tuple(_message(tree, i, is_superseded=i in gone) for i in range(len(tree.values)))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last answer that a model gave."""
        tree = tree_of(records)
        names = (string(tree.values[i]["message"].get("model")) for i in reversed(tree.main))
        return next((name for name in names if name and not name.startswith("<")), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """The summary in the chain between head and tail (see `claude_insert`)."""
        return claude_insert.insert(transcript, cut, insertions)

    @property
    def appends_head(self) -> bool:
        """False: a boundary hides the head; older clients would walk from the tail to it through what is removed."""
        return False

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """A boundary that names the tail, and the summary; the client does not go by the tail's counters then."""
        return claude_insert.append(transcript, cut, insertions)

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """Lines next to the tree that repeat messages."""
        return claude_refresh.outdated(tree_of(records))

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """The ``usage`` of the last answer."""
        return claude_refresh.counters(tree_of(records), staying)

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The answer with another ``usage``."""
        return dump(claude_refresh.recounted(parse(record.raw), size_tokens), record.raw)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with texts replaced in its message; ``toolUseResult`` stays as it is."""
        value = parse(record.raw)
        if value.get("type") == "system":
            return dump({**value, "content": with_texts(value.get("content"), texts)}, record.raw)
        place, key = ("attachment", "prompt") if value.get("type") == "attachment" else ("message", "content")
        inner = value[place]
        return dump({**value, place: {**inner, key: with_texts(inner.get(key), texts)}}, record.raw)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A chain of records with the least envelope that the client resumes; messages of one side as one."""
        session, parent = conversation.key("session"), None
        stamps = iter(conversation.times())
        records: list[dict[str, Any]] = []
        for side, run in merged(conversation.messages):
            own = conversation.key(len(records))
            times = [next(stamps) for _ in run]
            is_summary = any(message.summary for message in run)
            marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True} if is_summary else {}
            message: dict[str, Any] = {"role": side.value, "content": anthropic.content(run)}
            if side is Role.ASSISTANT:
                message = {
                    "id": f"msg_{own.replace('-', '')}",
                    "type": "message",
                    "model": conversation.model,
                    **message,
                }
            envelope = {"parentUuid": parent, "isSidechain": False, "sessionId": session, "type": side.value}
            records.append({**envelope, "message": message, **marks, "uuid": own, "timestamp": times[0]})
            parent = own
        return records


DIALECT = ClaudeCode()


def tree_of(records: Sequence[Record]) -> Tree:
    """The tree of these records; a line that is not an object is an empty one."""
    return Tree([record.value if isinstance(record.value, dict) else {} for record in records])


def _message(tree: Tree, i: int, *, is_superseded: bool) -> Message:
    value = tree.values[i]
    timestamp = string(value.get("timestamp"))
    if i not in tree.is_main:
        parts = () if tree.is_of_subagent(i) else _other_words(value)
        role = Role.USER if parts else Role.META
        # A boundary that stayed behind ours would be the one in force: it goes with what it replaced.
        is_gone = is_boundary(value) or (is_superseded and bool(parts))
        own_words = "" if _is_notification(value) else None
        return Message(role=role, parts=parts, timestamp=timestamp, superseded=is_gone, own_words=own_words)
    parts = content_parts(value["message"].get("content"))
    role = Role.ASSISTANT if value["type"] == "assistant" else role_of(Role.USER, parts)
    return Message(
        role=role,
        parts=parts,
        group="" if is_superseded else message_id(value),
        timestamp=timestamp,
        summary=_summary(value, role, parts),
        superseded=is_superseded,
        own_words="" if value.get("isMeta") is True else None,
    )


def _other_words(value: Value) -> tuple[Part, ...]:
    """What is sent of records that are no messages: prompts queued while the model worked, and the output
    of commands that the user ran."""
    attachment = value.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return content_parts(attachment.get("prompt"))
    is_command = value.get("type") == "system" and value.get("subtype") == "local_command"
    return content_parts(value.get("content")) if is_command else ()


def _is_notification(value: Value) -> bool:
    """Whether what was queued is the client's own, which no person typed."""
    return at(value, ("attachment", "commandMode")) not in (None, "prompt", "bash")


def _summary(value: Value, role: Role, parts: Sequence[Part]) -> PreviousSummary | None:
    if value.get("isCompactSummary") is not True:
        return summary_of(role, parts)
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    return summary_of(role, parts) or PreviousSummary(origin="claude-code", text=text)
