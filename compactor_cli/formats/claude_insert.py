"""Writes a summary into a Claude Code session.

Clients follow ``parentUuid`` from the newest record to a root. Kept records keep their bytes, so the tail
cannot be linked to the summary; instead the last record written takes over the uuid of the removed record
that the tail links to. Where a kept record after the summary links to another removed one, a record that says
nothing takes over that one's uuid. Appended, a boundary names the tail instead, as the client's own compaction does.
Three shapes of a rewritten session, all sent by the client as summary and tail:

- a head stays: the summary links to it, without a boundary (a boundary would hide the head);
- no head: a ``compact_boundary`` as the new root, the summary after it;
- the tail links to nothing that was removed: a boundary that names the kept records as preserved.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from compactor_cli.formats.base import Insertion, InsertionPoint
from compactor_cli.formats.claude_refresh import size_tokens
from compactor_cli.formats.claude_tree import Tree
from compactor_cli.formats.contents import string
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.times import later
from compactor_cli.model.transcript import Message, Role, Transcript

_COPIED = ("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "agentId")


def insert(transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
    """The records to be put between ``cut.before`` and ``cut.after``."""
    if not insertions:
        return ()
    site = _Site(transcript, cut)
    ids = [_uuid(transcript, f"{i} {item.text}") for i, item in enumerate(insertions)]
    ids[-1] = site.taken or ids[-1]
    needs_boundary = not site.head or (site.has_tail and not site.taken)
    root = _uuid(transcript, "boundary") if needs_boundary else site.head
    parents = [root, *ids[:-1]]
    records = [site.record(item, ids[i], parents[i]) for i, item in enumerate(insertions)]
    if needs_boundary:
        records.insert(0, site.boundary(root, {} if site.taken else site.preserved(ids[-1])))
    records += [site.bridge(own, parent) for own, parent in site.holes()]
    return tuple(dump(record, transcript.records[0].raw) for record in records)


def append(transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
    """The records to be put after all others: a boundary that names ``cut.after`` as preserved, and the insertions.

    Their times follow the newest record's, since clients take the newest record for the end of the chain.
    """
    site = _Site(transcript, cut)
    ids = [_uuid(transcript, f"{i} {item.text}") for i, item in enumerate(insertions)]
    root = _uuid(transcript, "boundary")
    site.removed = list(range(len(site.tree.values)))
    records = [site.boundary(root, site.preserved(ids[-1]))]
    parents = [root, *ids[:-1]]
    records += [site.record(item, own, parent) for item, own, parent in zip(insertions, ids, parents, strict=True)]
    newest = max((string(value.get("timestamp")) for value in site.tree.values), default="")
    stamped = ({**record, "timestamp": later(newest, n)} for n, record in enumerate(records, 1))
    return tuple(dump(record, transcript.records[0].raw) for record in stamped)


def taken_uuid(transcript: Transcript, cut: InsertionPoint) -> str:
    """The uuid that the last inserted record takes over; empty if the tail links to nothing removed."""
    return _Site(transcript, cut).taken


def dangling(transcript: Transcript, kept: Iterable[int], taken: str = "") -> tuple[int, ...]:
    """Kept records whose parent was in the transcript and is removed, except for the one with the uuid ``taken``.

    A client reads them (results are found by their call, hooks are not sent) but does not follow them.
    """
    tree = _tree(transcript)
    staying = set(kept)
    orphans = (i for i in sorted(staying) if (parent := tree.parent(i)) is not None and parent not in staying)
    return tuple(i for i in orphans if tree.values[i].get("parentUuid") != taken)


class _Site:
    """Where the insertion goes: the uuids and the envelope around it."""

    def __init__(self, transcript: Transcript, cut: InsertionPoint) -> None:
        self.transcript = transcript
        self.cut = cut
        self.tree = _tree(transcript)
        self.before = set(cut.before)
        self.after = set(cut.after)
        self.removed = [i for i in range(len(self.tree.values)) if i not in self.before and i not in self.after]
        self.has_tail = any(_is_shown(transcript.messages[i]) for i in cut.after)
        self.taken = self._taken()
        self.head = self._head()
        self.timestamp = self._timestamp()

    def _taken(self) -> str:
        """The parent of the tail, if it is removed; where it was missing already, rather that of another
        tail record, since newer clients bridge missing parents by themselves."""
        parent = self._parent_uuid(self._top())
        if parent in self.tree.index or not parent:
            return parent if self._is_free(parent) else ""
        others = (self._parent_uuid(i) for i in self.cut.after if i in self.tree.is_main)
        return next((uuid for uuid in others if uuid in self.tree.index and self._is_free(uuid)), parent)

    def _chain(self) -> tuple[int, ...]:
        """The tail's newest record and what it links to, up to the root, removed records among them."""
        newest = next((i for i in reversed(self.tree.main) if i in self.after), None)
        return tuple(self.tree.ancestors(newest)) if newest is not None else ()

    def _top(self) -> int | None:
        """The first tail record on the chain of the newest record."""
        return next((i for i in reversed(self._chain()) if i in self.after), None)

    def holes(self) -> Iterator[tuple[str, str]]:
        """Uuids of removed records that lie between kept ones of the tail on the chain, with the uuid above each."""
        chain = self._chain()
        kept = [at for at, i in enumerate(chain) if i in self.after]
        for below, above in pairwise(kept):
            if above > below + 1:
                yield self._parent_uuid(chain[below]), string(self.tree.values[chain[above]].get("uuid"))

    def _parent_uuid(self, i: int | None) -> str:
        return string(self.tree.values[i].get("parentUuid")) if i is not None else ""

    def _is_free(self, uuid: str) -> bool:
        """Whether no kept record has this uuid."""
        at = self.tree.index.get(uuid, -1)
        return bool(uuid) and at not in self.before and at not in self.after

    def _head(self) -> str:
        """The kept record that the removed ones link to, else the last of the head; empty without a head."""
        shown = [i for i in self.cut.before if _is_shown(self.transcript.messages[i])]
        if not shown:
            return ""
        start = self.tree.index.get(self.taken)
        above = self.tree.ancestors(start) if start is not None else ()
        new_parent = next((i for i in above if i in self.before), None)
        return string(self.tree.values[shown[-1] if new_parent is None else new_parent].get("uuid"))

    def _timestamp(self) -> str:
        """That of the last removed record: clients take the newest record for the end of the chain."""
        end = self.cut.after[0] if self.cut.after else len(self.tree.values)
        covered = [i for i in reversed(self.removed) if i < end]
        order = (*covered, *reversed(self.cut.before), *self.cut.after)
        stamps = (string(self.tree.values[i].get("timestamp")) for i in order)
        return next((stamp for stamp in stamps if stamp), "1970-01-01T00:00:00.000Z")

    def envelope(self) -> dict[str, Any]:
        """What neighbours say about the session, the client and the folder."""
        near = [*self.cut.after, *reversed(self.cut.before), *self.removed]
        value = next((self.tree.values[i] for i in near if i in self.tree.is_main), {})
        return {"isSidechain": False} | {key: value[key] for key in _COPIED if key in value}

    def record(self, item: Insertion, own: str, parent: str) -> dict[str, Any]:
        """A user or assistant record."""
        is_assistant = item.role is Role.ASSISTANT and not item.is_summary
        marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True} if item.is_summary else {}
        return {
            "parentUuid": parent or None,
            **self.envelope(),
            "type": "assistant" if is_assistant else "user",
            "message": _answer(item, own) if is_assistant else {"role": "user", "content": item.text},
            **marks,
            "uuid": own,
            "timestamp": self.timestamp,
        }

    def bridge(self, own: str, parent: str) -> dict[str, Any]:
        """A record that is not sent, in the place of a removed one."""
        return {
            "parentUuid": parent,
            **self.envelope(),
            "type": "system",
            "subtype": "turn_duration",
            "durationMs": 0,
            "isMeta": False,
            "uuid": own,
            "timestamp": self.timestamp,
        }

    def boundary(self, own: str, preserved: dict[str, Any]) -> dict[str, Any]:
        """The record with which the client marks its own compactions; ``preserved`` says what else is sent."""
        covered = (string(self.tree.values[i].get("uuid")) for i in reversed(self.removed))
        logical = next((uuid for uuid in covered if uuid and uuid != self.taken), None)
        metadata: dict[str, Any] = {"trigger": "manual", "preTokens": self._tokens_before()}
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
            "compactMetadata": metadata | preserved,
        }

    def preserved(self, anchor: str) -> dict[str, Any]:
        """The kept records by name, sent after the record ``anchor``."""
        staying = (*self.cut.before, *self.cut.after)
        shown = (i for i in staying if _is_shown(self.transcript.messages[i]))
        uuids = [uuid for i in shown if (uuid := string(self.tree.values[i].get("uuid")))]
        if not uuids:
            return {}
        return {
            "preservedSegment": {"headUuid": uuids[0], "anchorUuid": anchor, "tailUuid": uuids[-1]},
            "preservedMessages": {"anchorUuid": anchor, "uuids": uuids, "allUuids": uuids},
        }

    def _tokens_before(self) -> int:
        """The size of the last request before the cut, as the client itself had it."""
        values = (self.tree.values[i] for i in reversed(self.removed) if i in self.tree.is_main)
        usages = (value["message"].get("usage") for value in values)
        return next((size_tokens(usage) for usage in usages if isinstance(usage, dict) and size_tokens(usage)), 0)


def _tree(transcript: Transcript) -> Tree:
    return Tree([record.value if isinstance(record.value, dict) else {} for record in transcript.records])


def _is_shown(message: Message) -> bool:
    return not message.is_meta and not message.superseded


def _answer(item: Insertion, own: str) -> dict[str, Any]:
    return {
        "id": f"msg_{own.replace('-', '')}",
        "type": "message",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": item.text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
    }


def _uuid(transcript: Transcript, what: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{transcript.sha256} {what}"))
