"""Claude Code: its sessions (``~/.claude/projects/<project>/<session>.jsonl``) and its stream-json output.

One message of the API is several records that share ``message.id``. Which records a client sends follows from the tree
that they form (`claude_tree`). The same records are also read with a bare envelope, in an array, and in
``{"loglines": [...]}``.

Clients follow ``parentUuid`` from the newest record to a root. Kept records keep their bytes, so the tail
cannot be linked to the summary; instead, the last record that is inserted takes over the uuid of the removed record
to which the tail links. If a kept record after the summary links to another removed record, a record without
information takes over that uuid. In append mode a boundary names the tail instead, as in the client's own compactions.
A rewritten session has one of three shapes, all of which the client sends as summary and tail:

- a head stays: the summary links to it, without a boundary (a boundary would hide the head);
- no head: a ``compact_boundary`` as the new root, the summary after it;
- the tail links to nothing that was removed: a boundary that names the kept records as preserved.

A stream has the records without the tree. Messages of subagents (``parent_tool_use_id``) are not shown to the main
model. A ``compact_boundary`` that a summary follows replaces everything before it. Seen with ``claude -p
--output-format stream-json`` 2.0 and 2.1, and with wrappers that keep only type, message and time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import claude_tree, located
from compactor_cli.formats.claude_tree import Tree, interjections, is_of_conversation, message_id
from compactor_cli.formats.client_signs import marked_summary, summary_of
from compactor_cli.formats.contents import dump, dumped, parse, role_of, string
from compactor_cli.formats.conversation import SIGNED, Conversation, anthropic_content, merged
from compactor_cli.formats.located import RecordDialect, Value, at, content_parts, derived_uuid, derived_uuids, usage_of
from compactor_cli.formats.registry import SESSION, Capabilities, Insertion, InsertionPoint, JsonPath, objects
from compactor_cli.model.errors import UsageError
from compactor_cli.model.transcript import Message, Record, Role, Transcript

_COPIED = ("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "agentId")


class _ClaudeSite(located.LinkedSite):
    """The place of an insertion: the uuids to which it links, and the envelope of the records around it."""

    def __init__(self, transcript: Transcript, cut: InsertionPoint) -> None:
        self.tree = tree = Tree(objects(transcript.records))
        tail, kept = set(cut.after), cut.kept
        super().__init__(transcript, cut, tree, next((i for i in reversed(tree.main) if i in tail), None))
        self.removed = [i for i in range(len(tree.values)) if i not in kept]
        self.has_tail = any(self._is_linked(i) for i in cut.after)
        if self.taken and self.taken not in tree.index:
            # The tail's own parent is missing already, which newer clients bridge by themselves. So take over the
            # parent of another record of the tail, if there is one that is removed.
            others = (tree.parent_id(i) for i in cut.after if i in tree.is_main)
            free = (uuid for uuid in others if uuid in tree.index and tree.index[uuid] not in kept)
            self.taken = next(free, self.taken)
        self.head = self.head_id([i for i in cut.before if self._is_linked(i)])

    def _is_linked(self, i: int) -> bool:
        """Whether a record is sent and others can link to it. Prompts of the queue have no uuid."""
        return located.is_shown(self.transcript.messages[i]) and bool(self.tree.id(i))

    def envelope(self) -> dict[str, Any]:
        """The keys about session, client and folder, copied from a neighbour."""
        near = [*self.cut.after, *reversed(self.cut.before), *self.removed]
        value = next((self.tree.values[i] for i in near if i in self.tree.is_main), {})
        return {"isSidechain": False} | {key: value[key] for key in _COPIED if key in value}

    def record(self, item: Insertion, own: str, parent: str) -> dict[str, Any]:
        """The user or assistant record of an insertion, linked to ``parent``."""
        return self._linked(own, parent, _body(item, own))

    def unlinked(self, item: Insertion, own: str) -> dict[str, Any]:
        """The record of an insertion for a file whose records name no parents; with a uuid if its neighbours have one.

        If it named a parent, clients would take the file for a tree, and no record would link to the new one.
        """
        near = next((self.tree.values[i] for i in (*self.cut.near, *self.removed) if i in self.tree.is_main), {})
        envelope = {key: near[key] for key in _COPIED if key in near} | _body(item, own)
        return envelope | ({"uuid": own} if "uuid" in near else {}) | {"timestamp": self.timestamp}

    def bridge(self, own: str, parent: str) -> dict[str, Any]:
        """A record that is not sent and takes over the uuid of a removed one, so that links to it still work."""
        body = {"type": "system", "subtype": "turn_duration", "durationMs": 0, "isMeta": False}
        return self._linked(own, parent, body)

    def _linked(self, own: str, parent: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"parentUuid": parent, **self.envelope(), **body, "uuid": own, "timestamp": self.timestamp}

    def boundary(self, own: str, preserved: dict[str, Any]) -> dict[str, Any]:
        """A compaction boundary as the client writes it; ``preserved`` names earlier records that are still sent."""
        covered = map(self.tree.id, reversed(self.removed))
        logical = next((uuid for uuid in covered if uuid and uuid != self.taken), None)
        # The size of the last request before the cut, as the client would report it.
        usages = (usage_of(self.tree.values[i]) for i in reversed(self.removed) if i in self.tree.is_main)
        size = next(filter(None, map(_size_tokens, usages)), 0)
        return {
            "parentUuid": None,
            "logicalParentUuid": logical,
            **self.envelope(),
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "uuid": own,
            "timestamp": self.timestamp,
            "compactMetadata": {"trigger": "manual", "preTokens": size, **preserved},
        }

    def preserved(self, anchor: str) -> dict[str, Any]:
        """The keys with which a boundary names the kept records, which are sent after the record ``anchor``."""
        staying = (*self.cut.before, *self.cut.after)
        uuids = [self.tree.id(i) for i in staying if self._is_linked(i)]
        if not uuids:
            return {}
        return {
            "preservedSegment": {"headUuid": uuids[0], "anchorUuid": anchor, "tailUuid": uuids[-1]},
            "preservedMessages": {"anchorUuid": anchor, "uuids": uuids, "allUuids": uuids},
        }


_SUMMARY_MARKS = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}


def _body(item: Insertion, own: str) -> dict[str, Any]:
    """The record of an insertion, without its envelope and links."""
    if item.role is not Role.ASSISTANT or item.is_summary:
        message: dict[str, Any] = {"role": "user", "content": item.text}
        return {"type": "user", "message": message, **(_SUMMARY_MARKS if item.is_summary else {})}
    message = {**_answer(own), "role": "assistant", "model": "<synthetic>"}
    message |= {"content": [{"type": "text", "text": item.text}], "stop_reason": "end_turn", "stop_sequence": None}
    return {"type": "assistant", "message": message}


def _answer(own_id: str) -> dict[str, Any]:
    """The first keys of an answer of the API."""
    return {"id": f"msg_{own_id.replace('-', '')}", "type": "message"}


_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _size_tokens(usage: Mapping[str, Any]) -> int:
    """The tokens of a request, as the provider counted them."""
    return sum(number for key in (*_INPUT, "output_tokens") if isinstance(number := usage.get(key), int))


# Types of lines outside the tree that repeat a prompt.
_PROMPTS = ("queue-operation", "last-prompt")
_ENVELOPE = ("uuid", "parentUuid", "sessionId", "isSidechain")
_TREE_TYPES = frozenset({"user", "assistant", "system", "attachment", "progress"})
# Types of lines outside the tree, each with a key that all lines of the type have.
_SIDE_TYPES = dict(
    pair.split("=")
    for pair in (
        "summary=leafUuid last-prompt=leafUuid file-history-snapshot=snapshot queue-operation=operation"
        " permission-mode=permissionMode mode=mode custom-title=customTitle ai-title=aiTitle agent-name=agentName"
        " pr-link=prUrl worktree-state=worktreeSession content-replacement=replacements attribution-snapshot=sessionId"
        " api-request-shape=sessionId api-request-blob=sessionId api-request=sessionId"
    ).split()
)


class ClaudeCode(RecordDialect):
    """The dialect of Claude Code's session files."""

    name = "claude-code"
    title = "Claude Code session"
    holds = SESSION | Capabilities.SIDECHAINS | Capabilities.SUMMARIES
    unwritten = SIGNED
    links_records = True
    row_score = 0  # ``loglines`` alone are no mark
    # Copies of results for the client's screen, and snapshots of files: half of a session's bytes.
    unread_keys = frozenset({"toolUseResult", "data", "snapshot"})

    def array_path(self, value: Any) -> JsonPath | None:
        """``loglines`` in a session shared from the web client; the top level if a session is one array of records."""
        if isinstance(value, list):
            scores = [self.score(item) for item in value[:2]]
            return () if 3 in scores or (scores and min(scores) == 2) else None
        return ("loglines",) if isinstance(value, dict) and isinstance(value.get("loglines"), list) else None

    def record_score(self, value: Any) -> int:
        """3 for two keys of the envelope, or a line that only this client writes; 2 for a bare envelope."""
        if "systemPayload" in value:
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

    def session_key(self, value: Any) -> str:
        """The session that a record names. Empty for lines outside the tree, which may name other sessions."""
        is_own = isinstance(value, dict) and value.get("type") in (*_TREE_TYPES, "queue-operation")
        return string(value.get("sessionId")) if is_own else ""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; those that the client no longer sends are ``superseded``."""
        tree = Tree(objects(records))
        gone, queued = claude_tree.superseded(tree), interjections(tree.values)
        ahead = claude_tree.typed_ahead(tree.values)
        messages = (_message(tree, i, is_superseded=i in gone, is_queued=i in queued) for i in range(len(tree.values)))
        return tuple(replace(one, was_waiting=True) if i in ahead else one for i, one in enumerate(messages))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last answer that a model gave."""
        values = objects(records)
        names = (string(values[i]["message"].get("model")) for i in reversed(claude_tree.main_of(values)))
        return next((name for name in names if name and not name.startswith("<")), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """The summary, linked into the chain between head and tail; unlinked if the records name no parents."""
        site, ids = _ClaudeSite(transcript, cut), derived_uuids(transcript, insertions)
        if not site.tree.has_links:
            return dumped(transcript, map(site.unlinked, insertions, ids))
        ids[-1] = site.taken or ids[-1]
        needs_boundary = not site.head or (site.has_tail and not site.taken)
        root = derived_uuid(transcript.sha256, "boundary") if needs_boundary else site.head
        records = [site.boundary(root, {} if site.taken else site.preserved(ids[-1]))] if needs_boundary else []
        records += map(site.record, insertions, ids, [root, *ids[:-1]])
        records += [site.bridge(own, parent) for own, parent in site.gaps()]
        return dumped(transcript, records)

    # A boundary hides the head. To send it, older clients would walk from the tail through the replaced records.
    appends_head = False

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """A boundary that names the tail, and the summary. The client then ignores the token counters in the tail.

        The new records are later than the newest one, since clients take the newest record for the end of the chain.
        Raises UsageError if the records name no parents, since the boundary then cannot name them.
        """
        site = _ClaudeSite(transcript, cut)
        if not site.tree.has_links:
            what = "nothing can be appended: the records of this session name no parents"
            raise UsageError(what, next_step="use -i: the archive keeps the original")
        ids = derived_uuids(transcript, insertions)
        root = derived_uuid(transcript.sha256, "boundary")
        site.removed = list(range(len(site.tree.values)))
        records = [site.boundary(root, site.preserved(ids[-1])), *map(site.record, insertions, ids, [root, *ids[:-1]])]
        return dumped(transcript, ({**record, "timestamp": site.later(n)} for n, record in enumerate(records, 1)))

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """Lines that log whole API requests, and lines before the newest message that repeat a prompt."""
        tree = Tree(objects(records))
        newest = -1 if tree.newest is None else tree.newest
        kinds = [string(value.get("type")) for value in tree.values]
        prompts = {i for i, kind in enumerate(kinds) if kind in _PROMPTS and i < newest} - interjections(tree.values)
        return frozenset(prompts.union(i for i, kind in enumerate(kinds) if kind.startswith("api-request")))

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """The lines of the last answer that stays and counts tokens, each with the number in its ``usage``.

        What the client itself wrote in the assistant's name has a ``usage`` of zeros, from which it reads no size.
        """
        values = objects(records)
        is_main = frozenset(claude_tree.main_of(values))
        answers = [i for i in staying if i in is_main and _size_tokens(usage_of(values[i])) > 0]
        last = message_id(values[answers[-1]]) if answers else ""
        lines = [i for i in answers if i == answers[-1] or (last and message_id(values[i]) == last)]
        return {i: _size_tokens(usage_of(values[i])) for i in lines}

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The record of an answer with ``size_tokens`` as the input size in its ``usage``."""
        value = parse(record.raw)
        old = usage_of(value)
        usage = {**old, **{key: 0 for key in _INPUT if key in old}, "input_tokens": size_tokens}
        if usage.get("iterations"):
            usage["iterations"] = []
        return dump({**value, "message": {**value["message"], "usage": usage}}, record.raw)

    def problems(self, values: Sequence[Value]) -> Iterator[tuple[int, str]]:
        """The records that the client ignores, or in whose place it sends another, and why."""
        tree = Tree(values)
        in_force = claude_tree.last_boundary(tree)
        for i, value in enumerate(values):
            if claude_tree.is_boundary(value) and (in_force is None or i > in_force):
                yield i, "this compaction is ignored: nothing that follows links to it"
        if in_force is not None:
            missing = [uuid for uuid in claude_tree.named_uuids(values[in_force]) if uuid not in tree.index]
            if missing:
                yield in_force, f"{len(missing)} of the records that it says are preserved are not there: none is sent"
        end = None if tree.newest is None else tree.breaks_off(tree.newest)
        if end is not None and end in tree.is_main:
            yield end, "the record that it links to is not there: older clients send nothing before it"
        if left := claude_tree.left_out(tree):
            yield min(left), f"{len(left)} records from here on link to another root or branch: they are not sent"
        for i in sorted(claude_tree.outdone(tree)):
            yield i, "a later record has its uuid and says something else: that one is sent in its place"

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A chain of records with the smallest envelope that the client resumes; a run of one side is one message."""
        session, parent = conversation.key("session"), None
        stamps = iter(conversation.times())
        records: list[dict[str, Any]] = []
        for side, run in merged(conversation.messages):
            own = conversation.key(len(records))
            times = [next(stamps) for _ in run]
            marks = _SUMMARY_MARKS if any(message.summary for message in run) else {}
            message: dict[str, Any] = {"role": side.value, "content": anthropic_content(run)}
            if side is Role.ASSISTANT:
                message = {**_answer(own), "model": conversation.model, **message}
            envelope = {"parentUuid": parent, "isSidechain": False, "sessionId": session, "type": side.value}
            records.append({**envelope, "message": message, **marks, "uuid": own, "timestamp": times[0]})
            parent = own
        return records


# Modes and origins of prompts that the user typed; all other prompts are written by the client (or by another session,
# or a plug-in).
_TYPED_MODES = (None, "prompt", "bash")
_TYPED_ORIGINS = (None, "human", "channel")


def _message(tree: Tree, i: int, *, is_superseded: bool, is_queued: bool) -> Message:
    value = tree.values[i]
    time, attached = string(value.get("timestamp")), value.get("attachment")
    is_typed = at(attached, ("commandMode",)) in _TYPED_MODES
    for one in (value, attached):
        is_typed = is_typed and at(one, ("origin", "kind")) in _TYPED_ORIGINS and at(one, ("isMeta",)) is not True
    own = None if is_typed else ""
    if i not in tree.is_main:
        is_of_others = tree.is_of_subagent(i) or is_of_conversation(value)
        is_held = is_of_others or (value.get("type") == "queue-operation" and not is_queued)
        parts = () if is_held else located.parts_of(_pieces(value))
        return Message(
            role=Role.USER if parts else Role.META,
            parts=parts,
            timestamp=time,
            # A boundary counts as superseded, so that it is removed with what it replaced: if it stayed after a new
            # boundary, the client would go by it.
            superseded=claude_tree.is_boundary(value) or (is_superseded and bool(parts)),
            own_words=own,
            # A prompt that was queued and delivered during a turn.
            interjects=is_queued or at(attached, ("type",)) == "queued_command",
        )
    parts = content_parts(value["message"].get("content"))
    role = Role.ASSISTANT if value["type"] == "assistant" else role_of(Role.USER, parts)
    is_marked, group = value.get("isCompactSummary") is True, "" if is_superseded else message_id(value)
    summary = marked_summary("claude-code", parts) if is_marked else summary_of(role, parts)
    return Message(
        role=role, parts=parts, group=group, timestamp=time, summary=summary, superseded=is_superseded, own_words=own
    )


def _pieces(value: Value) -> list[located.LocatedPart]:
    """The parts of a record that are sent, with the places of their texts.

    The record is a message, a prompt that was queued while the model worked, or the output of a command that the user
    ran; other records have no parts.
    """
    if is_of_conversation(value):
        return located.content(value["message"].get("content"), "message", "content")
    attachment = value.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return located.content(attachment.get("prompt"), "attachment", "prompt")
    is_command = value.get("type") == "system" and value.get("subtype") == "local_command"
    is_sent = is_command or value.get("operation") == "enqueue"
    return located.content(value.get("content"), "content") if is_sent else []


_TREE_KEYS = ("parentUuid", "sessionId", "isSidechain", "systemPayload")
_SYSTEM_SUBTYPES = frozenset({"init", "compact_boundary", "status", "hook_response", "task_notification"})
# Keys of the envelope that a new record takes over from a neighbour.
_STREAM_COPIED = ("session_id", "parent_tool_use_id", "timestamp")


class ClaudeStream(RecordDialect):
    """The dialect of Claude Code's stream-json."""

    name = "claude-stream"
    title = "Claude Code stream-json"
    holds = SESSION | Capabilities.SIDECHAINS
    unread_keys = frozenset({"tool_use_result"})

    def array_path(self, value: Any) -> JsonPath | None:
        """The top level if a whole stream is one array of records; None for a line, which is a record."""
        is_stream = isinstance(value, list) and any(self.score(item) == 3 for item in value[:2])
        return () if is_stream else None

    def record_score(self, value: Any) -> int:
        """3 for the first and the last line, stream events, and messages with ``session_id``; 2 for bare messages."""
        if any(key in value for key in _TREE_KEYS):
            return 0
        kind = value.get("type")
        if kind == "system":
            return 3 if _mark(value, "subtype") in _SYSTEM_SUBTYPES and _mark(value, "session_id") else 0
        if kind in ("result", "stream_event"):
            return 3 if _mark(value, "session_id") and ("subtype" in value or "event" in value) else 0
        if not is_of_conversation(value) or "parts" in value["message"]:
            return 0
        is_enveloped = "session_id" in value or "parent_tool_use_id" in value
        return 3 if is_enveloped else 2 * (value["message"].get("role") == kind)

    def session_key(self, value: Any) -> str:
        """The session that a record names; empty if it names none."""
        return _mark(value, "session_id") if isinstance(value, dict) else ""

    def message(self, value: Any) -> Message:
        """The message of a record. META for bookkeeping, and for subagents, which the main model is not shown."""
        if not isinstance(value, dict) or not is_of_conversation(value) or value.get("parent_tool_use_id"):
            return located.META
        parts = content_parts(value["message"].get("content"))
        role = Role.ASSISTANT if value["type"] == "assistant" else role_of(Role.USER, parts)
        group, time = message_id(value), string(value.get("timestamp"))
        summary, own = summary_of(role, parts), "" if value.get("isSynthetic") is True else None
        return Message(role=role, parts=parts, group=group, timestamp=time, summary=summary, own_words=own)

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; those that a compaction replaced are ``superseded``."""
        values, messages, is_summarised = objects(records), [*super().read(records)], False
        for i in reversed(range(len(values))):
            value = values[i]
            if is_summarised and value.get("type") == "system" and _mark(value, "subtype") == "compact_boundary":
                before = (one if one.is_meta else replace(one, superseded=True) for one in messages[:i])
                return (*before, *messages[i:])
            is_summarised = is_summarised or messages[i].summary is not None
        return tuple(messages)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last answer, else the one the stream began with."""
        values = list(reversed(objects(records)))
        answers = (at(value, ("message", "model")) for value in values if value.get("type") == "assistant")
        begun = (value.get("model") for value in values if value.get("type") == "system")
        return next((name for name in map(string, (*answers, *begun)) if name and not name.startswith("<")), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Records of the user (and the assistant) with the envelope of a neighbour.

        No boundary is written, since it would mean that the head is no longer sent.
        """
        values, records = objects(transcript.records), []
        neighbour = next((values[i] for i in cut.near if is_of_conversation(values[i])), {})
        envelope = {key: neighbour[key] for key in _STREAM_COPIED if key in neighbour}
        for item in insertions:
            own_id = derived_uuid(transcript.sha256, item.text)
            message: dict[str, Any] = {"role": item.role.value, "content": [{"type": "text", "text": item.text}]}
            if item.role is Role.ASSISTANT:
                message = {**_answer(own_id), **message, "stop_reason": "end_turn"}
            own = {"uuid": own_id} if "uuid" in neighbour else {}
            records.append({"type": item.role.value, "message": message, **envelope, **own})
        return dumped(transcript, records)


def _mark(value: Value, key: str) -> str:
    """The text at this key of the envelope, or of the message, into which wrappers move it; else empty."""
    return string(value.get(key)) or string(at(value, ("message", key)))


CLAUDE_CODE = ClaudeCode(_pieces)
CLAUDE_STREAM = ClaudeStream(_pieces)
