"""Labels: what the lines of an event stand under — its file, its command, or its tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from compactor_cli.digest.commands import shown
from compactor_cli.digest.edits import editor_step, viewed_file
from compactor_cli.digest.quote import head
from compactor_cli.digest.tools import PATH_KEYS, argument, command_of
from compactor_cli.digest.transcript_events import Event, EventKind, ToolKind

_MOST_CHARS = 80
_LOOKUP_KEYS = ("pattern", "query", "q", "url", "regex", "prompt", "description", "subject")
_FILE_TOOLS = (ToolKind.EDIT, ToolKind.READ)


class Labels:
    """The labels of a run of events, each worked out once."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._known: dict[int, tuple[str, bool]] = {}

    def of(self, number: int) -> str:
        """The label of an event; empty for what was said."""
        return self._entry(number)[0]

    def is_file(self, number: int) -> bool:
        """Whether the label is the path of a file."""
        return self._entry(number)[1]

    def _entry(self, number: int) -> tuple[str, bool]:
        entry = self._known.get(number)
        if entry is None:
            entry = self._known[number] = self._read(number)
        return entry

    def _read(self, number: int) -> tuple[str, bool]:
        event = self._events[number]
        is_answer = event.kind is EventKind.RESULT and 0 <= event.call < len(self._events)
        call = self._events[event.call] if is_answer else event
        if call.kind is not EventKind.CALL:
            return event.name, False
        path = _path(call) or self._viewed(number)
        return (path, True) if path else (_tool_label(call), False)

    def _viewed(self, number: int) -> str:
        """The file that a command of an editor, or its result, is about."""
        event, *following = self._events[number : number + 2]
        if event.tool is not ToolKind.COMMAND:
            return ""
        if event.kind is EventKind.CALL:
            if not (editor_step(event) and following and following[0].call == number):
                return ""
            event = following[0]
        return viewed_file(event.text)


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """The shortest ending of each path, in whole parts, that no other of these paths has."""
    parts = {path: path.split("/") for path in paths}
    endings = Counter("/".join(names[at:]) for names in parts.values() for at in range(len(names)))
    return {path: _shortest(names, endings) for path, names in parts.items()}


def _shortest(names: Sequence[str], endings: Counter[str]) -> str:
    found = ("/".join(names[at:]) for at in range(len(names) - 1, -1, -1))
    return next((ending for ending in found if ending and endings[ending] == 1), "/".join(names))


def _path(call: Event) -> str:
    if call.tool not in _FILE_TOOLS or argument(call.arguments, _LOOKUP_KEYS[:1]):
        return ""
    path = argument(call.arguments, PATH_KEYS)
    return "" if "\n" in path else path


def _tool_label(call: Event) -> str:
    if call.tool is ToolKind.COMMAND:
        command = shown(command_of(call.arguments))
        return f"`{_short(command)}`" if command else call.name
    entry = argument(call.arguments, _LOOKUP_KEYS).partition("\n")[0]
    return f"{call.name} {_short(entry)}".strip()


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else head(text, _MOST_CHARS)
