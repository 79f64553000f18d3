"""Qwen Code sessions: ``~/.qwen/projects/<folder>/chats/<session>.jsonl``, one record a line.

Messages are contents of the Gemini API (``{"role", "parts"}``). Records of all kinds link to each other by
``parentUuid``; the client sends the chain from the last record to its root. A ``chat_compression`` on it replaces all
before it by its ``compressedHistory``. Kept records keep their bytes, so their links to removed records are served by
new records with the uuids of these: the last inserted message for the tail, bridges for the rest. Observed with Qwen
Code 0.24.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from compactor_cli.formats import located
from compactor_cli.formats.client_signs import summary_among, summary_of
from compactor_cli.formats.contents import dump, dumped, listed, parse, role_of, string
from compactor_cli.formats.gemini import pieces as content_pieces
from compactor_cli.formats.located import LinkedSite, LocatedPart, ParentTree, SessionDialect, Value, at, parts_of
from compactor_cli.formats.registry import SESSION, Capabilities, Insertion, InsertionPoint, objects
from compactor_cli.model.transcript import Message, PreviousSummary, Record, Role, Transcript

_MESSAGE_TYPES = ("user", "assistant", "tool_result")


class Chain(ParentTree):
    """The records of one session.

    ``sent`` are those on the chain, ``boundary`` is the last compression on it (-1 if there is none). ``copies`` maps
    positions in its history to the earlier records that hold the same message.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        super().__init__(values)
        with_id = [i for i in range(len(values)) if self.id(i)]
        if with_id and self.breaks_off(with_id[-1]) is None:
            # Compared by uuid, since the pieces of one record share it.
            path = {self.id(i) for i in self.ancestors(with_id[-1])}
            with_id = [i for i in with_id if self.id(i) in path]
        # All records if the chain breaks off at a missing parent: it is then not known what the client shows.
        self.sent = tuple(with_id)
        marks = [i for i in self.sent if _is_compression(values[i])]
        self.boundary = marks[-1] if marks else -1
        self.copies: dict[int, int] = {}
        if marks:
            before = (i for i in self.sent if i < self.boundary and is_of_conversation(values[i]))
            held = [(i, _key(values[i]["message"])) for i in before]
            found = located.matched([_key(content) for content in history(values[self.boundary])], held)
            self.copies = {number: i for number, i in enumerate(found) if i >= 0}

    def superseded(self) -> frozenset[int]:
        """The messages off the chain, and those on it that the last compression replaced and does not repeat."""
        conversation = {i for i, value in enumerate(self.values) if is_of_conversation(value) or _is_compression(value)}
        before = {i for i in self.sent if i < self.boundary} - set(self.copies.values())
        return frozenset((conversation - set(self.sent)) | (conversation & before))


def is_of_conversation(value: Value) -> bool:
    """Whether a record is a message."""
    return value.get("type") in _MESSAGE_TYPES and isinstance(at(value, ("message", "parts")), list)


def _is_compression(value: Value) -> bool:
    has_history = isinstance(at(value, ("systemPayload", "compressedHistory")), list)
    return value.get("type") == "system" and value.get("subtype") == "chat_compression" and has_history


def history(value: Value) -> tuple[Value, ...]:
    """The messages in the history of a compression; empty for other records."""
    contents = listed(at(value, ("systemPayload", "compressedHistory")))
    return tuple(item for item in contents if isinstance(item, dict))


def _key(content: Value) -> str:
    return json.dumps({"role": content.get("role"), "parts": content.get("parts")}, sort_keys=True)


_COPIED = ("sessionId", "cwd", "version", "gitBranch")


class _QwenSite(LinkedSite):
    """The place of an insertion: the uuids to which it links, and the envelope of the records around it."""

    def __init__(self, transcript: Transcript, cut: InsertionPoint) -> None:
        self.tree = tree = Chain(located.parsed(transcript))
        after = set(cut.after)
        super().__init__(transcript, cut, tree, next((i for i in reversed(tree.sent) if i in after), None))

    def envelope(self) -> dict[str, Any]:
        """The keys about session and folder, copied from the newest record; the client fails without them."""
        near = next((value for value in reversed(self.tree.values) if string(value.get("sessionId"))), {})
        return {key: near[key] for key in _COPIED if key in near}

    def message(self, item: Insertion, own: str, parent: str | None) -> dict[str, Any]:
        """The user or assistant record of an insertion, linked to ``parent``."""
        kind = "assistant" if item.role is Role.ASSISTANT else "user"
        return self._record(own, parent) | {"type": kind, "message": _content(item)}

    def bridge(self, own: str, parent: str) -> dict[str, Any]:
        """A record without information that takes over the uuid of a removed one, so that links to it still work."""
        return self._record(own, parent) | {"type": "system", "subtype": "ui_telemetry", "systemPayload": {}}

    def _record(self, own: str, parent: str | None) -> dict[str, Any]:
        return {"uuid": own, "parentUuid": parent, **self.envelope(), "timestamp": self.timestamp}

    def contents(self, indices: Sequence[int]) -> Iterator[Value]:
        """The messages of these records that the client sends."""
        for i in (i for i in indices if located.is_shown(self.transcript.messages[i])):
            value = self.tree.values[i]
            yield from (value["message"],) if is_of_conversation(value) else history(value)


def _content(item: Insertion) -> dict[str, Any]:
    return {"role": "model" if item.role is Role.ASSISTANT else "user", "parts": [{"text": item.text}]}


_ENVELOPE = ("uuid", "parentUuid", "sessionId")


class QwenCode(SessionDialect):
    """The dialect of Qwen Code's session files."""

    name = "qwen-code"
    title = "Qwen Code session"
    holds = SESSION | Capabilities.SUMMARIES
    links_records = True
    models = (("model",),)

    def record_score(self, value: Any) -> int:
        """3 for a message or a system record with two keys of the envelope; 2 for a message with one."""
        marks = sum(key in value for key in _ENVELOPE)
        if value.get("type") == "system":
            has_payload = "systemPayload" in value or isinstance(at(value, ("message", "parts")), list)
            return 3 if marks >= 2 and has_payload else 0
        return (3 if marks >= 2 else 2 if marks else 0) if is_of_conversation(value) else 0

    def session_key(self, value: Any) -> str:
        """The session that a record names; empty if it names none."""
        return string(value.get("sessionId")) if isinstance(value, dict) else ""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; those off the chain and those that were compressed are ``superseded``."""
        chain = Chain(objects(records))
        gone = chain.superseded()
        return tuple(_message(chain, i, i in gone) for i in range(len(chain.values)))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages linked into the chain between head and tail, and bridges for other links to removed records."""
        site, ids = _QwenSite(transcript, cut), located.derived_uuids(transcript, insertions)
        ids[-1] = site.taken or ids[-1]
        sent = set(site.tree.sent)
        parents = [site.head_id([i for i in cut.before if i in sent]) or None, *ids[:-1]]
        records = [*map(site.message, insertions, ids, parents)]
        records += [site.bridge(own, parent) for own, parent in site.gaps()]
        return dumped(transcript, records)

    # The boundary holds the whole history.
    appends_head = True

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """A ``chat_compression`` with head, insertions and tail as its history, linked to the last of the chain."""
        site = _QwenSite(transcript, cut)
        contents = [*site.contents(cut.before), *map(_content, insertions), *site.contents(cut.after)]
        # The size of the last request, as the client would report it.
        sizes = (at(value, ("usageMetadata", "promptTokenCount")) for value in reversed(site.tree.values))
        before = next((size for size in sizes if isinstance(size, int)), 0)
        counts = {"originalTokenCount": before, "newTokenCount": size_tokens}
        info = {**counts, "compressionStatus": 1, "triggerReason": "manual"}
        record = {
            "uuid": located.derived_uuid(transcript.sha256, "compression"),
            "parentUuid": site.tree.id(site.tree.sent[-1]) if site.tree.sent else None,
            **site.envelope(),
            "timestamp": site.later(1),
            "type": "system",
            "subtype": "chat_compression",
            "systemPayload": {"info": info, "compressedHistory": contents, "completedToolCallIds": []},
        }
        return dumped(transcript, (record,))

    def problems(self, values: Sequence[Value]) -> Iterator[tuple[int, str]]:
        """The compressions that the client ignores, and a missing parent, before which it sends nothing."""
        chain = Chain(values)
        for i, value in enumerate(values):
            if _is_compression(value) and i not in chain.sent:
                yield i, "this compression is ignored: the last record does not link to it"
            elif value.get("subtype") == "chat_compression" and not _is_compression(value):
                yield i, "this compression is ignored: it has no history"
        if chain.sent and (end := chain.breaks_off(chain.sent[-1])) is not None:
            yield end, "the record that it links to is not there: nothing before it is sent"

    def counted_tokens(self, value: Value) -> int:
        """The size in the ``usageMetadata`` of an answer. If it is too large, the client refuses to go on."""
        sizes = (at(value, ("usageMetadata", key)) for key in ("totalTokenCount", "promptTokenCount"))
        return max((size for size in sizes if isinstance(size, int)), default=0)

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The answer with ``size_tokens`` in its ``usageMetadata``."""
        value = parse(record.raw)
        old = value["usageMetadata"]
        usage = dict.fromkeys(old, 0) | {"promptTokenCount": size_tokens, "totalTokenCount": size_tokens}
        return dump({**value, "usageMetadata": usage}, record.raw)


def _pieces(value: Any) -> list[LocatedPart]:
    return [piece.below("message") for piece in content_pieces(value["message"])]


def _message(chain: Chain, i: int, is_superseded: bool) -> Message:
    value = chain.values[i]
    timestamp = string(value.get("timestamp"))
    role = Role.USER
    if contents := history(value):
        # The messages of a compression that no record before it holds.
        copies = chain.copies if i == chain.boundary else {}
        own = (content for number, content in enumerate(contents) if number not in copies)
        found = tuple(part for content in own for part in parts_of(content_pieces(content)))
        summary: PreviousSummary | None = summary_among("qwen", found)
    elif is_of_conversation(value):
        found = parts_of(_pieces(value))
        role = Role.ASSISTANT if value["type"] == "assistant" else role_of(Role.USER, found)
        summary = summary_of(role, found)
    else:
        return Message(role=Role.META, timestamp=timestamp)
    # Background tasks report in the user's name.
    own_words = "" if value.get("subtype") == "notification" else None
    return Message(
        role=role, parts=found, timestamp=timestamp, summary=summary, superseded=is_superseded, own_words=own_words
    )


DIALECT = QwenCode(_pieces)
