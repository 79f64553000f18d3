"""Writes a summary into an opencode export: the pair of messages that the client's own compaction leaves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from string import hexdigits
from typing import Any

from compactor_cli.formats.base import Insertion, InsertionPoint
from compactor_cli.formats.contents import string
from compactor_cli.formats.located_parts import at
from compactor_cli.model.transcript import Role, Transcript

# Ids are a kind, 12 hex digits that grow with time, and 14 letters and digits.
_TIME_CHARS = 12
_TAIL_CHARS = 14


class Site:
    """Where the messages go: between which ids and times, and whom they imitate."""

    def __init__(self, transcript: Transcript, cut: InsertionPoint) -> None:
        self.sha256 = transcript.sha256
        infos = [_info(record.value) for record in transcript.records]
        self.first = next((string(infos[i].get("id")) for i in cut.before if infos[i].get("id")), "")
        stop = cut.after[0] if cut.after else len(infos)
        kept = set(cut.before)
        # Messages removed before the first kept one: their ids and times are free.
        self.free = [info for i, info in enumerate(infos[:stop]) if i not in kept and info.get("id")]
        self.before = next((infos[i] for i in reversed(cut.before) if infos[i].get("id")), {})
        self.users = [info for info in infos if info.get("role") == "user"]
        self.answers = [info for info in infos if info.get("role") == "assistant"]
        self.session = next((string(info["sessionID"]) for info in infos if info.get("sessionID")), "")
        self.written = 0
        self.parent = ""

    def messages(self, item: Insertion) -> Iterator[dict[str, Any]]:
        """A summary is asked for by a user's message and answered; anything else is one message."""
        if item.is_summary:
            part: dict[str, Any] = {"type": "compaction", "auto": False}
            if self.first:
                part["tail_start_id"] = self.first
            yield self._message(Role.USER, part)
            marks = {"mode": "compaction", "agent": "compaction", "summary": True, "finish": "stop"}
            yield self._message(Role.ASSISTANT, {"type": "text", "text": item.text}, marks)
        else:
            marks = {"finish": "stop"} if item.role is Role.ASSISTANT else {}
            yield self._message(item.role, {"type": "text", "text": item.text}, marks)

    def _message(self, role: Role, part: Mapping[str, Any], marks: Mapping[str, Any] | None = None) -> dict[str, Any]:
        own_id, created = self._next()
        like = self._like(role)
        info: dict[str, Any] = {"role": role.value, "time": {"created": created}}
        if role is Role.ASSISTANT:
            info["time"]["completed"] = created
            info["parentID"] = self.parent
        else:
            self.parent = own_id
        info |= {**like, **(marks or {}), "id": own_id, "sessionID": self.session}
        own_part = {**part, "id": self._part_id(own_id), "sessionID": self.session, "messageID": own_id}
        return {"info": info, "parts": [own_part]}

    def _like(self, role: Role) -> dict[str, Any]:
        """What a message of this speaker needs besides: agent, model, path and counters without a count."""
        if role is Role.USER:
            newest: Mapping[str, Any] = self.users[-1] if self.users else {}
            return {key: newest[key] for key in ("agent", "model") if key in newest}
        newest = self.answers[-1] if self.answers else {}
        taken = {key: newest[key] for key in ("modelID", "providerID", "mode", "agent", "path") if key in newest}
        tokens = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        return {**taken, "cost": 0, "tokens": tokens}

    def _next(self) -> tuple[str, int]:
        """An id and a time of a removed message, in order; else just after the last one given, or the head."""
        i = min(self.written, len(self.free) - 1)
        info = self.free[i] if self.free else self.before
        over = self.written - i
        self.written += 1
        old = string(info.get("id")) or f"msg_{'0' * _TIME_CHARS}"
        stem = old.rpartition("_")[2][:_TIME_CHARS]
        if not self.free and all(digit in hexdigits for digit in stem):
            stem = f"{int(stem, 16) + over:0{_TIME_CHARS}x}"
        grown = f"{self.written:02d}"[-2:] if over or not self.free else ""
        own = f"msg_{stem}{grown}{_letters(f'{self.sha256} {self.written}')}"
        created = at(info, ("time", "created"))
        return own[: 4 + _TIME_CHARS + _TAIL_CHARS], (created if isinstance(created, int) else 0) + over

    def _part_id(self, message_id: str) -> str:
        return "prt_" + message_id.removeprefix("msg_")[:_TIME_CHARS] + _letters(f"part {message_id}")


def _info(value: Any) -> Mapping[str, Any]:
    info = at(value, ("info",))
    return info if isinstance(info, dict) else {}


def _letters(text: str) -> str:
    """Letters and digits in place of the client's random ones."""
    return hashlib.sha256(text.encode()).hexdigest()[:_TAIL_CHARS]
