"""Events: a transcript as a flat run of what was said, called and answered, with cleaned texts.

Everything after this module (the counter table, the sections, the measures of `compactor eval`) reads
events and never messages, so that what is counted is what is quoted.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any

from compactor_cli.digest import clean
from compactor_cli.digest.tools import ToolKind, tool_kind
from compactor_cli.formats.harness import refusal, user_text
from compactor_cli.formats.located_parts import at
from compactor_cli.model.transcript import Message, Role, Text, ToolCall, ToolResult, Transcript

__all__ = ["Event", "EventKind", "ToolKind", "events", "results_of", "working_directory"]


class EventKind(StrEnum):
    """Who or what an event comes from."""

    USER = "user"
    ASSISTANT = "assistant"
    CALL = "call"
    RESULT = "result"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened.

    ``record`` is the index of the record that shows it. ``turn`` counts the user's messages among the events
    asked for: 0 before the first one, n from the n-th on. ``call`` is, for a RESULT, the position of its CALL
    in the same tuple, -1 where that is unknown. ``arguments`` are cleaned as ``text`` is. Texts that a client
    sends in the user's name (project instructions, skills, notices) are RESULTs without a call. ``refusal``: what
    the user said when turning the call down or stopping it, None where that was not done.
    """

    kind: EventKind
    record: int
    text: str
    turn: int = 0
    tool: ToolKind = ToolKind.OTHER
    name: str = ""
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    call: int = -1
    is_error: bool = False
    refusal: str | None = None

    @property
    def is_refusal(self) -> bool:
        """Whether the user turned the call down, or stopped it."""
        return self.refusal is not None


def events(transcript: Transcript, indices: Iterable[int]) -> tuple[Event, ...]:
    """The events of these records, in record order; a record without words has none.

    Texts are without the working directory's prefix, ``<system-reminder>`` blocks, line-number gutters and
    terminal control sequences; long lines of JSON in results are broken between members. A call's text is its
    name and the texts of its arguments, a line ``key=value`` each where the tool is about neither files nor
    commands. Thinking is left out: clients do not send it again; so is a demonstration, which is of another task.
    """
    reader = _Reader(strip=clean.path_stripper(working_directory(transcript)))
    for index in indices:
        if 0 <= index < len(transcript.messages):
            value = transcript.records[index].value if index < len(transcript.records) else None
            if not _has(value, "is_demo"):
                reader.read(index, transcript.messages[index])
    return tuple(reader.found)


def results_of(events: Iterable[Event]) -> dict[int, Event]:
    """The result of each call that has one, by the call's position."""
    return {event.call: event for event in events if event.kind is EventKind.RESULT and event.call >= 0}


def working_directory(transcript: Transcript) -> str:
    """The directory the agent worked in, as the transcript's bookkeeping or its first messages name it; else empty."""
    for record in transcript.records:
        if directory := _named_directory(record.value):
            return directory
    own = (i for i, record in enumerate(transcript.records) if not _has(record.value, "is_demo"))
    for index in islice(own, _DIRECTORY_MESSAGES):
        if directory := _directory_in_text(transcript.messages[index].text):
            return directory
    return ""


_DIRECTORY_KEYS = ("cwd", "working_dir", "workdir", "work_dir", "workingDirectory")
# Codex, opencode and Copilot CLI say it deeper.
_DEEPER = (("payload",), ("info", "path"), ("data", "context"))
_DIRECTORY_SIGNS = frozenset((*_DIRECTORY_KEYS, *(place[0] for place in _DEEPER)))


def _named_directory(value: Any) -> str:
    if not isinstance(value, Mapping) or _DIRECTORY_SIGNS.isdisjoint(value):
        return ""
    deeper = (at(value, place) for place in _DEEPER)
    for source in (value, *(each for each in deeper if isinstance(each, Mapping))):
        for key in _DIRECTORY_KEYS:
            found = source.get(key)
            if isinstance(found, str) and _is_absolute(found):
                return found.rstrip("/\\")
    return ""


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or path[1:3] in (":\\", ":/")


# Messages from the first on that may say where the agent works.
_DIRECTORY_MESSAGES = 8
# How clients tell the model where it is: Codex, Claude Code (both spellings), Gemini and Qwen, pi, Cline and Roo,
# SWE-agent.
_DIRECTORY_FORMS = (
    ("<cwd>", "</cwd>"),
    ("Primary working directory: ", "\n"),
    ("Working directory: ", "\n"),
    ("working in the directory: ", "\n"),
    ("Current working directory: ", "\n"),
    ("Current Workspace Directory (", ")"),
    ("(Current directory: ", ")"),
)


def _directory_in_text(text: str) -> str:
    for opening, closing in _DIRECTORY_FORMS:
        start = text.find(opening)
        if start >= 0:
            named_path = (
                text[start + len(opening) : start + len(opening) + 300].partition(closing)[0].strip().strip("`'\"")
            )
            if _is_absolute(named_path):
                return named_path.rstrip("/\\")
    return ""


def _has(value: Any, mark: str) -> bool:
    """Whether a record is marked, as SWE-agent's demonstrations are."""
    return isinstance(value, Mapping) and value.get(mark) is True


@dataclass(slots=True, kw_only=True)
class _Reader:
    strip: Callable[[str], str]
    found: list[Event] = field(default_factory=list)
    waiting: defaultdict[str, deque[int]] = field(default_factory=lambda: defaultdict(deque))
    turn: int = 0

    def read(self, index: int, message: Message) -> None:
        if message.is_meta:
            return
        if message.summary is not None:
            self._add(EventKind.SUMMARY, index, clean.summary_words(self._clean(message.summary.text)))
            return
        for part in message.parts:
            if isinstance(part, Text) and message.role is Role.ASSISTANT:
                self._add(EventKind.ASSISTANT, index, clean.spoken_words(self._clean(part.text)))
            elif isinstance(part, ToolCall):
                self._called(index, part)
            elif isinstance(part, ToolResult) and part.is_told:
                self._answered(index, part)
        if message.role is not Role.ASSISTANT:
            self._heard(index, message)

    def _add(self, kind: EventKind, index: int, text: str) -> None:
        if text:
            self.found.append(Event(kind=kind, record=index, text=text, turn=self.turn))

    def _clean(self, text: str) -> str:
        return self.strip(clean.without_prompt(clean.without_block(clean.plain(text), "system-reminder"))).strip("\n")

    def _heard(self, index: int, message: Message) -> None:
        """The user's own words; else what a client sends in the user's name, as a result without a call."""
        if words := self._clean(user_text(message)):
            self._new_turn(index)
            self._add(EventKind.USER, index, words)
        elif text := self._clean(message.text):
            self._add(EventKind.RESULT, index, text)

    def _new_turn(self, index: int) -> None:
        last = self.found[-1] if self.found else None
        if last is None or last.kind is not EventKind.USER or last.record != index:
            self.turn += 1
            # Without ids only order tells, and a call that the user spoke after gets no answer any more.
            self.waiting.pop("", None)

    def _called(self, index: int, call: ToolCall) -> None:
        arguments = _cleaned(call.arguments, lambda text: self.strip(clean.plain(text)))
        kind = tool_kind(call.name, arguments)
        # What a file tool or a shell calls its arguments is its schema, and carries no information on the work.
        lines = _argument_lines(arguments) if kind is ToolKind.OTHER else _values(arguments)
        self.waiting[call.id].append(len(self.found))
        self.found.append(
            Event(
                kind=EventKind.CALL,
                record=index,
                text="\n".join((call.name, *lines)),
                turn=self.turn,
                tool=kind,
                name=call.name,
                arguments=arguments,
            )
        )

    def _answered(self, index: int, result: ToolResult) -> None:
        # By id and order: ids repeat in real files, and the oldest open call of an id is answered first.
        waiting = self.waiting.get(result.id)
        call = waiting.popleft() if waiting else -1
        tool = self.found[call].tool if call >= 0 else ToolKind.OTHER
        name = self.found[call].name if call >= 0 else result.name
        text = clean.without_gutters(clean.unfolded(self._clean(result.text)), surely=tool is ToolKind.READ)
        self.found.append(
            Event(
                kind=EventKind.RESULT,
                record=index,
                text=text,
                turn=self.turn,
                tool=tool,
                name=name,
                call=call,
                is_error=result.is_error,
                refusal=refusal(result),
            )
        )


# No tool's arguments are nested so deep; what is deeper was made to exhaust whoever walks through it.
_MAX_DEPTH = 64


def _cleaned(value: Any, cleaner: Callable[[str], str], depth: int = _MAX_DEPTH) -> Any:
    if isinstance(value, str):
        return cleaner(value)
    if not depth and isinstance(value, Mapping | list | tuple):
        return "…"
    if isinstance(value, Mapping):
        return {key: _cleaned(item, cleaner, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_cleaned(item, cleaner, depth - 1) for item in value)
    return value


def _argument_lines(arguments: Any, key: str = "") -> Iterator[str]:
    """``key=value`` lines; what is nested is given by its innermost key, a list of words as one line."""
    if isinstance(arguments, Mapping):
        for name, value in arguments.items():
            yield from _argument_lines(value, str(name))
    elif isinstance(arguments, tuple) and not all(isinstance(item, str) for item in arguments):
        for item in arguments:
            yield from _argument_lines(item, key)
    else:
        yield (f"{key}=" if key else "") + _scalar(arguments)


def _values(arguments: Any) -> Iterator[str]:
    """The texts among the arguments; numbers, switches and modes say how a tool was used, not what on."""
    if isinstance(arguments, Mapping):
        for value in arguments.values():
            yield from _values(value)
    elif isinstance(arguments, tuple):
        if arguments and all(isinstance(item, str) for item in arguments):
            yield " ".join(arguments)
        else:
            for item in arguments:
                yield from _values(item)
    elif isinstance(arguments, str):
        yield arguments


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value
    return " ".join(value) if isinstance(value, tuple) else json.dumps(value, ensure_ascii=False, default=str)
