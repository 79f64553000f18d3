"""Attached: what a client loads or starts next to the conversation, and the agent goes on with: skills, background
work.

As Claude Code writes it (2.0 to 2.1): a skill is the tool ``Skill`` and a text with its folder; what runs in the
background is a call with ``run_in_background``, an id in its result, and a notice or a stop when it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.quote import TokenCache, head, records_of
from compactor_cli.digest.transcript_events import Event, EventKind
from compactor_cli.model.summary import Item

_FOLDER = re.compile(r"\ABase directory for this skill: (\S+)")
_STARTED = re.compile(r"\bagentId: (\w+)|\bbackground with ID: (\w+)")
_NOTICE = re.compile(r"<task-id>(\w+)</task-id>.*?<status>(\w+)</status>", re.DOTALL)
_LOOKS = ("TaskOutput", "AgentOutputTool", "BashOutput")
_ENDED = re.compile(r"<status>(?!running|pending)\w+</status>")
_NAME_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundWork:
    """Something that runs in the background: its id, what it is to do, and the record that started it (-1: carried)."""

    id: str
    about: str
    record: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """Skills by name with the record that loaded them (-1: carried), and the work not seen to end, oldest first."""

    skills: tuple[tuple[str, int], ...] = ()
    running: tuple[BackgroundWork, ...] = ()


@dataclass(slots=True)
class _Reader:
    skills: dict[str, int] = field(default_factory=dict)
    running: dict[str, BackgroundWork] = field(default_factory=dict)

    def read(self, events: Sequence[Event], event: Event) -> None:
        if event.kind is EventKind.CALL:
            self._called(event)
        elif event.kind is EventKind.RESULT:
            if found := _FOLDER.match(event.text):
                self._load(found[1].rstrip("/").rpartition("/")[2], event.record)
            self._answered(event, events[event.call] if event.call >= 0 else None)
        if event.kind in (EventKind.USER, EventKind.RESULT) and "<task-id>" in event.text:
            for key, _ in _NOTICE.findall(event.text):
                self.running.pop(key, None)

    def _called(self, event: Event) -> None:
        if event.name == "Skill":
            self._load(_argument(event, "skill") or _argument(event, "command"), event.record)
        elif event.name in ("TaskStop", "KillShell", "KillBash"):
            self.running.pop(_argument(event, "task_id") or _argument(event, "shell_id"), None)

    def _load(self, name: str, record: int) -> None:
        known = next((one for one in self.skills if one.rpartition(":")[2] == name), name)
        if name:
            self.skills[known] = self.skills.pop(known, record)

    def _answered(self, event: Event, call: Event | None) -> None:
        if call is None:
            return
        if _argument(call, "run_in_background") == "True" and (found := _STARTED.search(event.text)):
            key = found[1] or found[2]
            about = _argument(call, "description") or head(_argument(call, "command"), _NAME_CHARS) or call.name
            self.running[key] = BackgroundWork(id=key, about=about, record=call.record)
        elif call.name in _LOOKS and _ENDED.search(event.text):
            self.running.pop(_argument(call, "task_id") or _argument(call, "bash_id"), None)


def _argument(event: Event, name: str) -> str:
    value = event.arguments.get(name) if not isinstance(event.arguments, str) else None
    return str(value) if isinstance(value, str | bool) else ""


def attached(
    events: Sequence[Event], later: Sequence[Event] = (), notices: Iterable[str] = (), carried: Attached | None = None
) -> Attached:
    """What is attached after these events and was not seen to end in those that are ``later``, or in ``notices``."""
    reader = _Reader()
    for name, _ in carried.skills if carried else ():
        reader.skills[name] = -1
    for work in carried.running if carried else ():
        reader.running[work.id] = replace(work, record=-1)
    for event in events:
        reader.read(events, event)
    skills, started = tuple(reader.skills.items()), set(reader.running)
    for event in later:
        reader.read(later, event)
    ended = {key for text in notices for key, _ in _NOTICE.findall(text)}
    return Attached(skills=skills, running=tuple(w for w in reader.running.values() if w.id in started - ended))


def attached_items(found: Attached, room_tokens: int, token_cache: TokenCache, words: FixedWords) -> tuple[Item, ...]:
    """A line for the skills and one for each running work, as many as there is room for."""
    names = ", ".join(name for name, _ in found.skills)
    offers = (
        [Item(text=f"{words.skills}{words.colon}{names}", records=_records(r for _, r in found.skills))]
        if names
        else []
    )
    for work in found.running:
        text = f"{words.background}{words.colon}{words.quoted(work.about)} ({work.id})"
        offers.append(Item(text=text, records=_records((work.record,))))
    items: list[Item] = []
    for offer in offers:
        cost = token_cache.item(offer)
        if cost <= room_tokens:
            room_tokens -= cost
            items.append(offer)
    return tuple(items)


def _records(records: Iterable[int]) -> tuple[int, ...]:
    return records_of(record for record in records if record >= 0)
