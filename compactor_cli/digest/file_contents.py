"""What files hold, by a replay of the edits, and what scripts that the session wrote and ran changed."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cache, partial
from operator import itemgetter

from compactor_cli.digest.edits import added_names, overwrites, python_changes, written_lines
from compactor_cli.digest.events import Event, EventKind, results_of
from compactor_cli.digest.files import FileOperation
from compactor_cli.digest.runs import failed_with_code
from compactor_cli.digest.shell import scripts_run, unquoted, written_paths
from compactor_cli.digest.tools import PATH_KEYS, FileAction, ToolKind, argument, command_of
from compactor_cli.model.value import dataclass

_MAX_PARTS = 6
# Later changes of a file that are searched for one that took a line out: time stays linear in very long sessions.
_MAX_LATER_CHANGES = 200


@dataclass(slots=True, kw_only=True)
class Content:
    """What is known of a file."""

    text: str | None = None  # None: never seen whole, deleted, or changed by an edit that does not fit what was seen
    parts: list[str] = field(default_factory=list)  # the newest changes since it was written whole, newest last
    records: list[int] = field(default_factory=list)  # of the operations on it since it was written whole

    @property
    def written(self) -> str:
        """The text, else the newest changes."""
        return self.text if self.text is not None else "\n".join(self.parts)


def overwritten(events: Sequence[Event], operations: Iterable[FileOperation]) -> Callable[[int, str], bool]:
    """A function of the position of an event and a line that it shows of a file: whether the line was changed.

    What changed it there is the call of that event or a later one.
    """
    changes: dict[str, list[tuple[int, str, str]]] = {}
    for one in operations:
        if one.action is FileAction.DELETE:
            changes.setdefault(one.path, []).append((one.event, "", ""))
        for old, new in one.replaced:
            if old or one.action is not FileAction.EDIT:
                changes.setdefault(one.path, []).append((one.event, old, new))

    @cache
    def later_changes(number: int) -> list[tuple[int, str, str]]:
        event = events[number]
        call = events[event.call] if event.call >= 0 else event
        if call.tool is ToolKind.COMMAND:
            # What a command shows is of the file that it names, if it names one.
            named = {word for word in unquoted(command_of(call.arguments)).split() if "." in word or "/" in word}
            found = changes.get(named.pop(), []) if len(named) == 1 else []
        elif call.tool in (ToolKind.READ, ToolKind.EDIT):
            found = changes.get(argument(call.arguments, PATH_KEYS), [])
        else:
            return []
        first = bisect_left(found, number, key=itemgetter(0))
        return found[first : first + _MAX_LATER_CHANGES]

    # A search shows a line after its number: `12:` where it found the line, `13-` where the line is next to one.
    bare = partial(re.compile(r"^\d+[:-]\s*").sub, "")

    def is_gone(number: int, line: str) -> bool:
        later = later_changes(number)
        shown = bare(line) if later else ""
        return any(overwrites(shown, old, new) for _, old, new in later)

    return is_gone


def contents(operations: Iterable[FileOperation], paths: Iterable[str]) -> dict[str, Content]:
    """The last known text of these files, after every operation on them."""
    found = {path: Content() for path in paths}
    for operation in operations:
        if operation.action is FileAction.MOVE and operation.target in found:
            found[operation.target] = found.get(operation.path, Content())
        if operation.path in found:
            replay_text(found[operation.path], operation)
    return found


def replay_text(content: Content, operation: FileOperation) -> None:
    """Brings ``content`` up to date with an operation on its file."""
    content.records.append(operation.record)
    if operation.action is FileAction.DELETE:
        content.text, content.parts = None, []
    for old, new in operation.replaced:
        if not old and operation.action is not FileAction.EDIT:
            content.text, content.parts, content.records = new, [], [operation.record]
            continue
        if content.text is not None:
            # What the edit looked for is not there: the file is not as it was seen, only its changes are known.
            content.text = content.text.replace(old, new, 1) if old and old in content.text else None
        part = _changed_part(old, new)
        content.parts = [*(one for one in content.parts if one != part), part][-_MAX_PARTS:]


def _changed_part(old: str, new: str) -> str:
    """The new text of an edit; of a long one, only the lines that the old text does not have."""
    lines = new.split("\n")
    if len(lines) <= _MAX_WHOLE_LINES:
        return new
    known = set(old.split("\n"))
    return "\n".join(line for line in lines if line not in known)


_MAX_WHOLE_LINES = 12


def with_scripts(
    operations: Sequence[FileOperation], events: Sequence[Event], directory: str = ""
) -> tuple[FileOperation, ...]:
    """All operations, with the edits made by the scripts that the session wrote and ran.

    The operations on a script that only tries something are marked ``is_try``: the session created it, a command ran it
    in its own folder, the user never named it, and files that the session did not create were edited, too. What a run
    of SWE-agent handed in is no try.
    """
    results, by_event = results_of(events), dict[int, list[FileOperation]]()
    for one in operations:
        by_event.setdefault(one.event, []).append(one)
    reader = _Scripts(above=f"{directory}/" if directory else "\n")
    found: list[FileOperation] = []
    for number, event in enumerate(events):
        own, result = by_event.get(number, []), results.get(number)
        for one in own:
            reader.note(one)
        done = [*reader.ran(event, number)] if event.kind is EventKind.CALL and event.tool is ToolKind.COMMAND else []
        if done and result and not (result.is_refusal or failed_with_code(result)):
            # For a command line that writes the script and runs it, only the path that the script edits is known.
            written = {one.path for one in done}
            own = [one for one in own if one.action is not FileAction.EDIT or one.path not in written] + done
        found += own
    users_words = "\n".join(event.text for event in events if event.kind is EventKind.USER)
    submitted = _SUBMITTED.search(events[-1].text) if events else None
    tries = {path for path in reader.run & reader.created.keys() if posixpath.basename(path) not in users_words}
    tries.difference_update(submitted[1].split(", ") if submitted else ())
    is_amid_others = any(one.action is FileAction.EDIT and one.path not in reader.created for one in found)
    return tuple(replace(one, is_try=True) if is_amid_others and one.path in tries else one for one in found)


# `exit_status: submitted; submission changes clock.py, try.py`
_SUBMITTED = re.compile(r"; submission changes (.+)")


@dataclass(slots=True, kw_only=True)
class _Scripts:
    """The files that the session created, and what they change when they are run as scripts."""

    above: str  # the directory that paths are without
    created: dict[str, Content] = field(default_factory=dict)  # by path
    run: set[str] = field(default_factory=set)  # scripts that a command ran in their folder

    def ran(self, event: Event, number: int) -> Iterator[FileOperation]:
        """The edits made by the Python scripts of the session that a command runs."""
        for whole_path, name, place in scripts_run(command_of(event.arguments)):
            path = whole_path.removeprefix(self.above)
            if "/" not in name.removeprefix("./"):
                self.run.add(path)
            script = self.created.get(path, Content()).text or ""
            paths = written_paths(script) if path.endswith(".py") else []
            changes = python_changes(script) if len(paths) == 1 else ()
            for written in paths:
                whole = posixpath.normpath(posixpath.join(place, written)).removeprefix(self.above)
                yield FileOperation(
                    action=FileAction.EDIT,
                    path=whole,
                    event=number,
                    record=event.record,
                    added=tuple(added_names(changes, whole)),
                    lines=written_lines(changes, script),
                    replaced=changes,
                )

    def note(self, one: FileOperation) -> None:
        """Keeps the content of a file that the session created: it may be a script that is run later."""
        if one.action is FileAction.CREATE and not one.is_rewrite:
            self.created[one.path] = Content()
        if one.path in self.created:
            replay_text(self.created[one.path], one)
