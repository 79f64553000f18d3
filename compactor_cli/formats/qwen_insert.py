"""Writes a summary into a Qwen Code session.

The client follows ``parentUuid`` from the last record. Kept records keep their bytes, so what links to removed
records is caught by new ones that take over their uuids: the last message for the tail, bridges for the rest.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from compactor_cli.formats.base import Insertion, InsertionPoint
from compactor_cli.formats.contents import string
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.qwen_chain import Chain, Value, history, is_of_conversation
from compactor_cli.formats.times import later
from compactor_cli.model.transcript import Role, Transcript

_COPIED = ("sessionId", "cwd", "version", "gitBranch")


def insert(transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
    """The records to be put between ``cut.before`` and ``cut.after``."""
    site = _Site(transcript, cut)
    ids = [_uuid(transcript, f"{i} {item.text}") for i, item in enumerate(insertions)]
    holes = site.holes()
    taken = next(iter(holes), "")
    ids[-1] = taken or ids[-1]
    parents = [site.head_uuid(), *ids[:-1]]
    time = site.timestamp()
    records = [
        site.message(item, own, parent, time) for item, own, parent in zip(insertions, ids, parents, strict=True)
    ]
    records += [site.bridge(own, holes[own] or ids[-1], time) for own in holes if own != taken]
    return tuple(dump(record, transcript.records[0].raw) for record in records)


def append(
    transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
) -> tuple[bytes, ...]:
    """A compression to be put after all other records, linked to the last one of the chain."""
    site = _Site(transcript, cut)
    last = site.chain.sent[-1] if site.chain.sent else None
    contents = [*site.contents(cut.before), *map(_content, insertions), *site.contents(cut.after)]
    info = {
        "originalTokenCount": site.tokens_before(),
        "newTokenCount": size_tokens,
        "compressionStatus": 1,
        "triggerReason": "manual",
    }
    newest = max((string(value.get("timestamp")) for value in site.chain.values), default="")
    record = {
        "uuid": _uuid(transcript, "compression"),
        "parentUuid": string(site.chain.values[last].get("uuid")) if last is not None else None,
        **site.envelope(),
        "timestamp": later(newest, 1),
        "type": "system",
        "subtype": "chat_compression",
        "systemPayload": {"info": info, "compressedHistory": contents, "completedToolCallIds": []},
    }
    return (dump(record, transcript.records[0].raw),)


class _Site:
    """Where the insertion goes: the uuids and the envelope around it."""

    def __init__(self, transcript: Transcript, cut: InsertionPoint) -> None:
        records = transcript.records
        values: list[Value] = [parse(record.raw) if isinstance(record.value, dict) else {} for record in records]
        self.chain = Chain(values)
        self.transcript = transcript
        self.cut = cut
        self.staying = {*cut.before, *cut.after}

    def holes(self) -> dict[str, str]:
        """Uuids of removed records that kept ones link to, with the kept record above them (empty: there is none
        after the head). That of the tail's top is the first."""
        after = set(self.cut.after)
        sent = [i for i in self.chain.sent if i in after]
        found: dict[str, str] = {}
        for i in sent:
            parent = self.chain.parent(i)
            if parent is not None and parent not in self.staying:
                above = next((j for j in self.chain.ancestors(parent) if j in after), None)
                key = string(self.chain.values[i].get("parentUuid"))
                found[key] = string(self.chain.values[above].get("uuid")) if above is not None else ""
        return dict(sorted(found.items(), key=lambda item: item[1] != ""))

    def head_uuid(self) -> str | None:
        """The uuid of the last record of the head on the chain."""
        sent = set(self.chain.sent)
        found = (string(self.chain.values[i].get("uuid")) for i in reversed(self.cut.before) if i in sent)
        return next((key for key in found if key), None)

    def timestamp(self) -> str:
        """That of the last removed record."""
        stop = self.cut.after[0] if self.cut.after else len(self.chain.values)
        order = [*(i for i in range(stop - 1, -1, -1) if i not in self.staying), *reversed(self.cut.before)]
        stamps = (string(self.chain.values[i].get("timestamp")) for i in order)
        return next((stamp for stamp in stamps if stamp), "1970-01-01T00:00:00.000Z")

    def envelope(self) -> dict[str, Any]:
        """What the newest record says about the session and the folder, without which the client fails."""
        values = (value for value in reversed(self.chain.values) if string(value.get("sessionId")))
        near = next(values, {})
        return {key: near[key] for key in _COPIED if key in near}

    def message(self, item: Insertion, own: str, parent: str | None, time: str) -> dict[str, Any]:
        """A user or assistant record."""
        kind = "assistant" if item.role is Role.ASSISTANT else "user"
        return self._record(own, parent, time) | {"type": kind, "message": _content(item)}

    def bridge(self, own: str, parent: str, time: str) -> dict[str, Any]:
        """A record that carries no information, in the place of a removed one."""
        return self._record(own, parent, time) | {"type": "system", "subtype": "ui_telemetry", "systemPayload": {}}

    def _record(self, own: str, parent: str | None, time: str) -> dict[str, Any]:
        return {"uuid": own, "parentUuid": parent, **self.envelope(), "timestamp": time}

    def contents(self, indices: Sequence[int]) -> Iterator[Value]:
        """The messages of these records that the client sends."""
        messages = self.transcript.messages
        shown = (i for i in indices if not messages[i].is_meta and not messages[i].superseded)
        for i in shown:
            value = self.chain.values[i]
            yield from (value["message"],) if is_of_conversation(value) else history(value)

    def tokens_before(self) -> int:
        """The size of the last request, as the client itself had it."""
        usages = (value.get("usageMetadata") for value in reversed(self.chain.values))
        sizes = (usage.get("promptTokenCount") for usage in usages if isinstance(usage, dict))
        return next((size for size in sizes if isinstance(size, int)), 0)


def _content(item: Insertion) -> dict[str, Any]:
    return {"role": "model" if item.role is Role.ASSISTANT else "user", "parts": [{"text": item.text}]}


def _uuid(transcript: Transcript, what: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{transcript.sha256} {what}"))
