"""Files: which file each call wrote, read, removed or moved, and the last state of every file by replay of that."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache

from compactor_cli.digest.edits import added_names, changes_of, editor_step, patch_of, viewed_file
from compactor_cli.digest.tools import PATH_KEYS, argument, command_of, short_name
from compactor_cli.digest.transcript_events import Event, EventKind, ToolKind, results_of


class FileAction(StrEnum):
    """What happened to a file."""

    CREATE = "create"
    EDIT = "edit"
    READ = "read"
    DELETE = "delete"
    MOVE = "move"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOperation:
    """One action on one file by the call ``event``. ``target``: where a MOVE went.

    ``written``: the path as a command wrote it below a directory that it entered. ``added``: names it defines.
    """

    action: FileAction
    path: str
    event: int
    record: int
    target: str = ""
    written: str = ""
    added: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class FileState:
    """What is known about a path. ``last`` is the position of the last action, ``changed`` of the last change.

    ``added``: names that its edits define, newest last. ``commit``: the hash of the commit that holds the last change.
    """

    path: str
    is_created: bool = False
    edits: int = 0
    reads: int = 0
    is_deleted: bool = False
    moved_to: str = ""
    records: list[int] = field(default_factory=list)
    last: int = -1
    changed: int = -1
    added: dict[str, None] = field(default_factory=dict)
    commit: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether anything but reading happened to it."""
        return self.changed >= 0 or self.is_created or self.edits > 0 or self.is_deleted or bool(self.moved_to)


_CREATING = frozenset({"write", "writefile", "writetofile", "createfile", "create", "fswrite", "savefile", "filewrite"})
_SEARCHING = frozenset(
    "grep glob ls listfiles listdirectory listdir searchfiles findfiles searchfilecontent grepsearch globsearch"
    " filesearch find codebasesearch searchtext listcodedefinitionnames searchdir finddir grepfiles".split()
)
_PATCH_ACTIONS = {"Add File": FileAction.CREATE, "Update File": FileAction.EDIT, "Delete File": FileAction.DELETE}
_MAX_PATH_CHARS = 200
_NOT_PATHS = frozenset({".", "/", "-", "/dev/null", "nul"})
_MAX_ADDED = 40
_PENDING_EVENTS = 8


def file_operations(events: Sequence[Event]) -> tuple[FileOperation, ...]:
    """Every action on a file, in order. Calls whose result is an error, or that the user turned down, did nothing."""
    results = results_of(events)
    # Where results are recorded, a call at the end without one may not have run.
    pending = range(len(events) - _PENDING_EVENTS if results else len(events), len(events))
    found = [
        operation
        for number, event in enumerate(events)
        if event.kind is EventKind.CALL
        if not ((result := results.get(number)) and (result.is_error or result.is_refusal))
        if result is not None or number not in pending
        for operation in _operations(event, number, result)
        if _is_path(operation.path)
    ]
    known = {operation.path for operation in found if not operation.written}
    return tuple(_as_written(operation, known) for operation in found)


def _as_written(operation: FileOperation, known: Collection[str]) -> FileOperation:
    """A path below a directory that a command entered, as the command wrote it where nothing else names it in full.

    What the digest shows stands in a record, character by character.
    """
    if not operation.written or operation.path in known:
        return operation
    return replace(operation, path=operation.written)


def _is_path(path: str) -> bool:
    return 0 < len(path) <= _MAX_PATH_CHARS and "\n" not in path and path.lower() not in _NOT_PATHS


def _operations(event: Event, number: int, result: Event | None) -> Iterator[FileOperation]:
    if event.tool is ToolKind.COMMAND and (step := editor_step(event)):
        yield from _by_editor(step, event, number, result)
    elif event.tool is ToolKind.COMMAND:
        for action, path, target, written in shell_operations(command_of(event.arguments)):
            yield FileOperation(
                action=action, path=path, event=number, record=event.record, target=target, written=written
            )
    elif event.tool is ToolKind.EDIT:
        yield from _by_edit(event, number)
    elif event.tool is ToolKind.READ and short_name(event.name) not in _SEARCHING:
        path = argument(event.arguments, PATH_KEYS)
        yield FileOperation(action=FileAction.READ, path=path, event=number, record=event.record)


def _by_edit(event: Event, number: int) -> Iterator[FileOperation]:
    patch = patch_of(event)
    if patch:
        yield from _by_patch(patch, event, number)
        return
    name = short_name(event.name)
    is_creating = name in _CREATING or argument(event.arguments, ("command",)) == "create"
    action = FileAction.DELETE if "delete" in name else FileAction.CREATE if is_creating else FileAction.EDIT
    path = argument(event.arguments, PATH_KEYS)
    added = tuple(added_names(changes_of(event, path)))
    yield FileOperation(action=action, path=path, event=number, record=event.record, added=added)


def _by_editor(step: str, event: Event, number: int, result: Event | None) -> Iterator[FileOperation]:
    """The file is the one that the result shows: an edit does not name it."""
    path = viewed_file(result.text) if result else ""
    if result and path and not (step == "edit" and "introduced new syntax error" in result.text):
        action = {"edit": FileAction.EDIT, "open": FileAction.READ, "create": FileAction.CREATE}[step]
        yield FileOperation(action=action, path=path, event=number, record=event.record)


def _by_patch(patch: str, event: Event, number: int) -> Iterator[FileOperation]:
    path = ""
    for kind, named in re.findall(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$", patch, re.MULTILINE):
        if kind == "Move to":
            yield FileOperation(
                action=FileAction.MOVE, path=path, event=number, record=event.record, target=named.strip()
            )
        else:
            path = named.strip()
            added = tuple(added_names(changes_of(event, path)))
            action = _PATCH_ACTIONS[kind]
            yield FileOperation(action=action, path=path, event=number, record=event.record, added=added)


@cache
def _redirect() -> re.Pattern[str]:
    return re.compile(r"(?<![0-9&<>=-])>{1,2}\s*([^\s;&|<>()]+)")


@cache
def _quoted() -> re.Pattern[str]:
    # Not the script of `sh -c "…"`, whose redirections are real.
    return re.compile(r"(?<!c )(?:'[^']*'|\"[^\"]*\")")


_SEGMENT = r"&&|\|\||;|\n|\|"
_MAX_COMMAND_CHARS = 4_000
_MAX_SCRIPT_CHARS = 20_000
_READERS = frozenset({"cat", "sed", "head", "tail", "nl", "bat", "less", "more"})
# Their first operand is a script or a pattern, unless it was given by an option.
_SCRIPT_FIRST = frozenset({"sed"})


def shell_operations(command: str) -> Iterator[tuple[FileAction, str, str, str]]:
    """What a command line does to files, as (action, path, target, path as written if that differs).

    Known are redirections, ``rm``, ``mv``, ``cp``, ``tee``, readers, ``sed -i``, and what a Python script in a
    here-document writes.

    Paths are relative to where the line starts: a ``cd`` in front of them is followed, and where it leads to a place
    that cannot be known, no path is given. A here-document's body is content, not commands.
    """
    shown, marker, body = command.partition("<<")
    if marker:
        opening, _, body = body.partition("\n")
        shown += opening
        # What follows the here-document is commands again.
        word = opening.strip().lstrip("-").split()[:1]
        end = re.search(rf"^\s*{re.escape(word[0].strip(chr(39) + chr(34)))}\s*$", body, re.MULTILINE) if word else None
        shown += body[end.end() :] if end else ""
    shown = _quoted().sub(lambda quote: re.sub(r"[>|;&\n]", " ", quote[0]), shown[:_MAX_COMMAND_CHARS])
    directory: str | None = ""
    for segment in re.split(_SEGMENT, shown):
        words = segment.split()
        if words[:1] == ["cd"]:
            directory = _entered(directory, words[1:])
            continue
        for action, path, target in _segment_operations(segment):
            found = _located(directory, path)
            if found:
                written = path if path != found else ""
                yield action, found, target if written else _located(directory, target) if target else "", written
    if marker and "python" in shown:
        for path in _written_by_script(body[:_MAX_SCRIPT_CHARS]):
            yield FileAction.EDIT, path, "", ""


def _entered(directory: str | None, operands: Sequence[str]) -> str | None:
    """The directory after a ``cd``; None where it cannot be known (home, back, a variable)."""
    place = operands[0].strip("'\"") if operands else "~"
    if place.startswith(("~", "-", "$")):
        return None
    if place.startswith("/"):
        return place
    return None if directory is None else posixpath.normpath(posixpath.join(directory, place)).removeprefix("./")


def _located(directory: str | None, path: str) -> str:
    if path.startswith(("/", "~")) or directory in ("", "."):
        return path
    return "" if directory is None else posixpath.normpath(posixpath.join(directory, path))


def _segment_operations(segment: str) -> Iterator[tuple[FileAction, str, str]]:
    for path in _redirect().findall(segment):
        if _looks_like_file(path := path.strip("'\"")):
            yield FileAction.CREATE, path, ""
    words = [word.strip("'\"") for word in _redirect().sub(" ", segment).split()]
    while words and (words[0] in ("git", "sudo", "command") or re.fullmatch(r"\w+=\S*", words[0])):
        words = words[1:]
    if not words:
        return
    name, operands = words[0], [word for word in words[1:] if not word.startswith("-")]
    if name in ("rm", "tee"):
        action = FileAction.DELETE if name == "rm" else FileAction.CREATE
        yield from ((action, path, "") for path in operands if _looks_like_file(path))
    elif name == "mv" and len(operands) == 2 and all(map(_looks_like_file, operands)):
        yield FileAction.MOVE, operands[0], operands[1]
    elif name == "cp" and len(operands) == 2 and all(map(_looks_like_file, operands)):
        if "." in posixpath.basename(operands[1]):
            yield FileAction.CREATE, operands[1], ""
    elif name in _READERS:
        in_place = name == "sed" and any(word.startswith("-i") for word in words)
        scripted = name in _SCRIPT_FIRST and not any(word in ("-e", "-f") for word in words)
        action = FileAction.EDIT if in_place else FileAction.READ
        files = operands[1:] if scripted else operands
        yield from ((action, path, "") for path in files if _looks_like_file(path) and "." in posixpath.basename(path))


def _looks_like_file(word: str) -> bool:
    named = re.fullmatch(r"[\w./~@+-]*[A-Za-z][\w./~@+-]*", word) is not None
    return named and not word.startswith("/dev/") and not word.endswith((".", "/"))


@cache
def _named_file() -> re.Pattern[str]:
    return re.compile(r"^\s*(\w+)\s*=\s*(?:pathlib\.)?(?:Path\(\s*)?[\"']([^\"'\n]+)[\"']\s*\)?\s*$", re.MULTILINE)


@cache
def _write() -> re.Pattern[str]:
    opened, written = (
        r"\bopen\(\s*([^,()\n]+?)\s*,\s*(?:mode=)?[\"'][wa]",
        r"(?:Path\(\s*([^()\n]+?)\s*\)|\b(\w+))\.write_text\(",
    )
    return re.compile(f"{opened}|{written}")


def _written_by_script(script: str) -> Iterator[str]:
    """The files that a Python script writes: literal paths, and names that one was given to on a line of its own."""
    named: dict[str, str] = dict(_named_file().findall(script))
    places = dict.fromkeys("".join(found) for found in _write().findall(script))
    paths = (place.strip("\"'") if place[:1] in "\"'" else named.get(place, "") for place in places)
    return (path for path in dict.fromkeys(paths) if _looks_like_file(path))


def replay(operations: Iterable[FileOperation], carried: Iterable[FileState] = ()) -> tuple[FileState, ...]:
    """The state of every path after all operations, the one changed last first, files only read at the end.

    ``carried``: states known from an earlier summary, in the order they were worked on.
    """
    states = {state.path: state for state in carried}
    for operation in operations:
        state = states.setdefault(operation.path, FileState(path=operation.path))
        _apply(state, operation)
        if operation.action is FileAction.MOVE and operation.target:
            target = states.setdefault(operation.target, FileState(path=operation.target))
            target.is_deleted, target.changed, target.last = False, operation.event, operation.event
            target.edits, target.is_created = target.edits + state.edits, state.is_created
            target.added |= state.added
            target.records.append(operation.record)
    # Python's sort is stable: carried files, of which only the order is known, keep it (newest first).
    newest_first = reversed(states.values())
    return tuple(sorted(newest_first, key=lambda state: (not state.is_changed, -state.changed, -state.last)))


def _apply(state: FileState, operation: FileOperation) -> None:
    state.last = operation.event
    if operation.action is FileAction.READ:
        state.reads += 1
        if not state.is_changed:
            state.records.append(operation.record)
        return
    state.changed = operation.event
    state.records.append(operation.record)
    if operation.action is FileAction.CREATE:
        # Writing a file that was read or edited before replaces it.
        is_new = state.is_deleted or not (state.reads or state.edits or state.is_created)
        state.is_created, state.edits = state.is_created or is_new, state.edits + (not is_new)
    elif operation.action is FileAction.EDIT:
        state.edits += 1
    for name in operation.added:
        state.added.pop(name, None)
        if len(state.added) < _MAX_ADDED:
            state.added[name] = None
    state.is_deleted = operation.action is FileAction.DELETE
    state.moved_to = operation.target if operation.action is FileAction.MOVE else ""
