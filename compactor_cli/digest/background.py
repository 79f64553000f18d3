"""What a client has loaded or runs for the agent: skills, work in the background, the mode that only plans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from compactor_cli.digest.commands import is_read_only
from compactor_cli.digest.edits import PROSE
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.runs import failed_with_code
from compactor_cli.digest.statements import TokenCache, chosen, records_of
from compactor_cli.digest.texts import head, one_line
from compactor_cli.digest.tools import REPORTING_TOOLS, ToolKind, command_of, short_name, skill_read
from compactor_cli.formats.client_signs import ATTACHMENTS, background_id, started_id
from compactor_cli.model.patterns import pattern
from compactor_cli.model.summary import Item
from compactor_cli.model.value import dataclass

_NAME_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundWork:
    """Something that runs in the background."""

    id: str
    about: str  # what it is to do
    command: str = ""  # the command line that started it, if one did
    record: int = -1  # record that started it, or that reports its failure; -1: carried over from an earlier summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """Skills in use, work in the background, and whether the agent may only plan."""

    skills: tuple[tuple[str, int], ...] = ()  # name, and record that loaded it (-1: carried over)
    running: tuple[BackgroundWork, ...] = ()  # work not seen to end, oldest first
    failed: tuple[BackgroundWork, ...] = ()  # work that failed and was not started again
    planning: int = -1  # record in which the agent entered the mode to plan only; -1: it is not in that mode


@dataclass(slots=True)
class _AttachmentReader:
    skills: dict[str, int] = field(default_factory=dict)
    running: dict[str, BackgroundWork] = field(default_factory=dict)  # by id
    failed: dict[str, BackgroundWork] = field(default_factory=dict)  # by what it was to do
    waited: set[str] = field(default_factory=set)  # ids of work that only waited for something
    planning: int = -1
    modes: Mapping[int, bool] = field(default_factory=dict)  # see `attached`

    def read(self, events: Sequence[Event], event: Event) -> None:
        if event.kind is EventKind.USER and event.record in self.modes:
            self.planning = event.record if self.modes[event.record] else -1
        if event.kind is EventKind.CALL:
            self._called(event)
        elif event.kind is EventKind.RESULT:
            if found := ATTACHMENTS.skill_folder.match(event.text):
                self._load(re.split(r"[\\/]", found[1].rstrip("\\/"))[-1], event.record)
            if event.call >= 0:
                self._answered(event, events[event.call])
        is_notice = any(sign in event.text for sign in ATTACHMENTS.notice_signs)
        if event.kind in (EventKind.USER, EventKind.RESULT) and is_notice:
            for key, status in ATTACHMENTS.notice.findall(event.text):
                work = self.running.pop(key, None)
                if work and status == "failed":
                    self.failed[work.about] = replace(work, record=event.record)
        elif event.kind is EventKind.USER:
            # Work that only waits is over once the user writes again: the answer that waited for it was given.
            self.waited |= {key for key, work in self.running.items() if _WAITS.search(work.about)}
            self.running = {key: work for key, work in self.running.items() if key not in self.waited}

    def _called(self, event: Event) -> None:
        if event.name in ATTACHMENTS.stop_tools:
            self.running.pop(background_id(event.arguments), None)

    def _load(self, name: str, record: int) -> None:
        known = next((one for one in self.skills if one.rpartition(":")[2] == name), name)
        if name:
            self.skills[known] = self.skills.pop(known, record)

    def _end(self, ends: Sequence[str]) -> None:
        """Drop the running work that these parts of a command ended: what they name.

        A port or the number of a process names none: `kill` is then taken to end all servers.
        """
        words = _WORD.findall(" ".join(ends))
        works = {key: f"{work.about} {work.command}" for key, work in self.running.items()}
        ended = {key for key, text in works.items() if any(word in text for word in words)}
        if not (ended or any("pkill" in end or "killall" in end for end in ends)):
            ended = {key for key, text in works.items() if _SERVES.search(text)}
        self.running = {key: work for key, work in self.running.items() if key not in ended}

    def _answered(self, event: Event, call: Event) -> None:
        is_done = not (event.is_error or event.is_refusal)
        command = command_of(call.arguments) if call.tool is ToolKind.COMMAND else ""
        if is_done and call.name in ATTACHMENTS.plan_tools:
            self.planning = call.record if call.name == ATTACHMENTS.plan_tools[0] else -1
        elif is_done and call.tool is ToolKind.EDIT and not _argument(call, "file_path").endswith(PROSE):
            self.planning = -1  # an edit of anything but prose shows that the mode was left in another way
        elif is_done and (ends := _ENDS.findall(command)):
            self._end(ends)
        if is_done and "git commit" in command:
            self.planning = -1  # so does a commit
            self.failed.clear()  # what needed that work was finished without it
        if call.name == ATTACHMENTS.skill_tool and is_done:
            self._load(_argument(call, "skill") or _argument(call, "command"), call.record)
        elif call.of_client and is_done and not failed_with_code(event):
            self._load(skill_read(call.tool, call.arguments), call.record)
        if command:  # a command that is run again replaces its earlier run
            self.running = {key: work for key, work in self.running.items() if work.command != command}
        # A client may move a command that takes long to the background by itself.
        may_be = call.tool is ToolKind.COMMAND or short_name(call.name) in REPORTING_TOOLS
        may_be |= _argument(call, ATTACHMENTS.background_argument) == "True" or call.name == ATTACHMENTS.background_tool
        own = background_id(call.arguments) if call.name in ATTACHMENTS.look_tools else ""
        if may_be and (key := started_id(event.text)):
            if key != own and own in self.running:  # it goes on under another id
                self.running[key] = replace(self.running.pop(own), id=key)
            about = _argument(call, "description") or head(one_line(command_of(call.arguments)), _NAME_CHARS)
            # A call that only looks, at running work or at anything else, starts nothing.
            only_looks = call.tool is ToolKind.COMMAND and (
                is_read_only(command) or _ASKS.fullmatch(command) is not None
            )
            only_looks |= own != "" and (key in self.running or key in self.waited)
            if not only_looks:
                work = BackgroundWork(id=key, about=about or call.name, command=command, record=call.record)
                self.running[key] = work
                self.failed.pop(work.about, None)
        elif own and ATTACHMENTS.is_over(call.name, event.text):
            self.running.pop(own, None)


# The part of a command that ends processes, with what finds them: `lsof -ti :3000 | xargs kill -9`.
_ENDS = pattern(r"(?:^|(?<=[;&\n]))(?:[^;&\n]*\|)?\s*(?:sudo )?(?:xargs (?:-\S+ )*)?(?:kill|pkill|killall) [^;&\n]*")
# A word of such a part that may name what it ends.
_WORD = pattern(r"(?!null\b|ports?\b|kill|pkill|xargs|lsof|grep|sudo)[A-Za-z0-9][\w.-]{3,}")
# A command that only asks a program for what it knows: `tidectl gauge status`.
_ASKS = pattern(r"\s*[\w./-]+ (?:[\w-]+ )?(?:list|show|status|info|view|describe|logs?)\b[^;&|]*")
_SERVES = pattern(r"\b(?:serv(?:e|er|es|ing)|dev|start|listen\w*)\b", re.IGNORECASE)
_WAITS = pattern(r"(?:^|^\S+ |&& )(?:wait|sleep|watch)\b", re.IGNORECASE)


def _argument(event: Event, name: str) -> str:
    value = event.arguments.get(name) if not isinstance(event.arguments, str) else None
    return str(value) if isinstance(value, str | bool) else ""


def attached(
    events: Sequence[Event],
    later: Sequence[Event] = (),
    notices: Iterable[str] = (),
    carried: Attached | None = None,
    modes: Mapping[int, bool] | None = None,
) -> Attached:
    """What is attached after ``events``, without work that the ``later`` events or the ``notices`` show to have ended.

    ``carried``: what an earlier summary says is attached. ``modes``: whether the agent may only plan, by the record of
    the user that says so.
    """
    before = carried or Attached()
    running = {work.id: replace(work, record=-1) for work in before.running}
    reader = _AttachmentReader(skills={name: -1 for name, _ in before.skills}, running=running, modes=modes or {})
    for event in events:
        reader.read(events, event)
    skills, started, planning = tuple(reader.skills.items()), set(reader.running), reader.planning
    failed = [*reader.failed]
    for event in later:
        reader.read(later, event)
    still_failed = tuple(reader.failed[about] for about in failed if about in reader.failed)
    ended = {key for text in notices for key, _ in ATTACHMENTS.notice.findall(text)}
    left = tuple(work for work in reader.running.values() if work.id in started - ended)
    return Attached(skills=skills, running=left, failed=still_failed, planning=planning if reader.planning >= 0 else -1)


def running_items(found: Attached, room_tokens: int, token_cache: TokenCache, words: FixedWords) -> tuple[Item, ...]:
    """A line for the mode to plan only, and one for each running and each failed work, as many as there is room for."""
    mode = [Item(text=words.planning, records=records_of([found.planning]))] if found.planning >= 0 else []
    lines = (
        Item(
            text=f"{words.background}{words.colon}{words.quoted(work.about)} ({work.id})",
            records=records_of([work.record]),
        )
        for work in found.running
    )
    label = f"{words.background_failed}{words.colon}"
    failed = (Item(text=f"{label}{words.quoted(work.about)}", records=(work.record,)) for work in found.failed)
    return chosen((*mode, *lines, *failed), room_tokens, token_cache)


def skill_items(found: Attached, room_tokens: int, token_cache: TokenCache, words: FixedWords) -> tuple[Item, ...]:
    """One line for all skills, if there are any and there is room for it."""
    names = ", ".join(name for name, _ in found.skills)
    line = Item(text=f"{words.skills}{words.colon}{names}", records=records_of(record for _, record in found.skills))
    return chosen([line] if names else [], room_tokens, token_cache)
