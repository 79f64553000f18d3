"""Files: what each call did to which file, and the last state and text of every file by replay."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from compactor_cli.digest.edits import (
    PROSE,
    WRITING,
    added_names,
    changed_lines,
    changes_of,
    definitions_around,
    edited_paths,
    editor_step,
    is_renamed,
    overwrites,
    patch_of,
    reported_files,
    shown_lines,
    viewed_file,
    written_lines,
    written_text,
)
from compactor_cli.digest.error_lines import ERROR_PATTERN
from compactor_cli.digest.events import Event, EventKind, results_of
from compactor_cli.digest.runs import failed_with_code
from compactor_cli.digest.shell import script_in, shell_operations
from compactor_cli.digest.tools import (
    PAGE_TOOLS,
    PATH_KEYS,
    REPORTING_TOOLS,
    FileAction,
    ToolKind,
    argument,
    command_of,
    short_name,
)
from compactor_cli.formats.client_signs import ATTACHMENTS, CLIENT_FILE
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOperation:
    """One action of a call on one file."""

    action: FileAction
    path: str
    event: int  # position of the call in the events
    record: int
    target: str = ""  # where a MOVE went
    added: tuple[str, ...] = ()  # names that it defines
    within: tuple[str, ...] = ()  # the definitions that it changes something in
    lines: tuple[str, ...] = ()  # the most telling of the lines that it wrote
    replaced: tuple[tuple[str, str], ...] = ()  # pairs of old and new text; of a whole file, ("", its text)
    is_rewrite: bool = False  # whether the file that a CREATE writes is known to have existed
    is_try: bool = False  # whether the file is a script that was only run to try something
    undone_by: int = -1  # position of the edit that took back the last of it, to the letter
    undoes: int = 0  # the number of edits of which it takes back the last
    only_undoes: bool = False  # whether it does nothing else than take back earlier edits
    is_reported: bool = False  # whether only a subagent's report shows it; in how many edits, that does not say

    @property
    def is_cancelled(self) -> bool:
        """Whether nothing is left of it: it only takes earlier edits back, or later ones took it back."""
        return self.only_undoes or self.undone_by >= 0

    @property
    def is_in_passing(self) -> bool:
        """Whether the file is not meant to stay."""
        return self.is_try or is_throwaway(self.target or self.path)

    @property
    def name(self) -> str:
        """The name of the file, without its folders."""
        return self.path.rpartition("/")[2]


@dataclass(slots=True, kw_only=True)
class FileState:
    """What is known about a path."""

    path: str
    is_created: bool = False
    edits: int = 0  # those of which there is a record, since the file was as before the session
    undone: int = 0  # how many of them later ones took back, or do nothing else
    is_edited_by_subagent: bool = False  # whether a subagent reported an edit, which ``edits`` does not count
    reads: int = 0
    is_deleted: bool = False
    moved_to: str = ""
    moved_from: str = ""  # the path under which it stood before
    records: list[int] = field(default_factory=list)
    last: int = -1  # position of the last action in the events
    changed: int = -1  # position of the last action that was not a READ
    added: dict[str, None] = field(default_factory=dict)  # names that its edits define
    removed: dict[str, None] = field(default_factory=dict)  # functions that its edits took out
    had: dict[str, None] = field(default_factory=dict)  # names that it had before, as what its edits took out shows
    within: dict[str, None] = field(default_factory=dict)  # definitions that its edits change something in
    lines: dict[str, int] = field(default_factory=dict)  # lines of its edits that still stand, each with its record
    commit: str = ""  # hash of the commit that holds the last change
    commit_before: str = ""  # if none holds it: hash of the newest commit of the file before
    is_reverted: bool = False
    is_try: bool = False  # whether it is a script that was only run to try something

    @property
    def least_edits(self) -> int:
        """The number of edits that surely stand: those on record, or one if only a subagent reported any."""
        return max(self.edits - self.undone, int(self.is_edited_by_subagent))

    @property
    def is_changed(self) -> bool:
        """Whether anything but reading happened to it."""
        return self.changed >= 0 or self.is_created or self.least_edits > 0 or self.is_deleted or bool(self.moved_to)


def file_operations(events: Sequence[Event], directory: str = "") -> tuple[FileOperation, ...]:
    """Every action on a file, in order; calls that the user turned down or that ended in an error are left out.

    Paths below ``directory``, where the session works, are relative to it. A change that a subagent reports counts only
    where none of its own records shows the file.
    """
    results = results_of(events)
    # If results are recorded at all, a call at the very end that has none may not have run.
    pending = range(len(events) - _PENDING_EVENTS if results else len(events), len(events))
    windows: dict[str, str] = {}
    texts: dict[str, _Views] = {}
    found: list[FileOperation] = []
    for number, event in enumerate(events):
        result = results.get(number)
        is_done = not is_undone(event, result) if result else number not in pending
        if event.kind is EventKind.CALL and is_done:
            shown = viewed_file(result.text) if result else ""
            one = _operations(event, number, result, shown, windows.get(shown, ""))
            one = (_placed(operation, texts, result) for operation in one if _is_path(operation.path))
            if result and _WROTE_OVER.search(result.text[:_ABOUT_CHARS]):
                one = (replace(operation, is_rewrite=operation.action is FileAction.CREATE) for operation in one)
            shows = result.text if result else ""
            found += (step for step in one if f"{step.path}: No such file" not in shows or step.action in WRITING)
            if shown and result:
                windows[shown] = result.text
        elif event.kind is EventKind.RESULT and event.call >= 0 and short_name(event.name) in _SUBAGENTS:
            known = {one.path for one in found if one.event > event.call}
            reported = _reported(event, number, events[event.call], [one.path for one in found])
            found += (one for one in reported if one.path not in known)
    return _with_undone(_with_rewrites(_by_file(_seen_from(directory, one) for one in found)))


def _by_file(operations: Iterable[FileOperation]) -> Iterator[FileOperation]:
    """The operations; deleting, moving or reverting a folder becomes one operation for each file known below it.

    Clearing a place where nothing is meant to stay is left out, unless something is known to be there.
    """
    there: dict[str, None] = {}
    for one in operations:
        folder = f"{one.path.removesuffix('/')}/"
        below = [] if one.path in there or one.action not in _ON_FOLDERS else _below(folder, there)
        target = f"{one.target.removesuffix('/')}/" if one.target else ""
        if target and below and _below(target, there):
            target += folder[:-1].rpartition("/")[2] + "/"  # an existing folder takes the moved one in
        steps = [replace(one, path=path, target=target + path[len(folder) :] if target else "") for path in below]
        is_cleared = one.action is FileAction.DELETE and one.path not in there and is_throwaway(one.path)
        for step in steps or ([] if is_cleared else [one]):
            yield step
            if step.action in (FileAction.DELETE, FileAction.MOVE):
                there.pop(step.path, None)
            if step.action is not FileAction.DELETE:
                there[step.target or step.path] = None


_ON_FOLDERS = (FileAction.DELETE, FileAction.MOVE, FileAction.REVERT)


def _below(folder: str, paths: Iterable[str]) -> list[str]:
    return [path for path in paths if path.startswith(folder)]


def _with_undone(operations: Iterable[FileOperation]) -> tuple[FileOperation, ...]:
    """The operations, with edits that later ones took back line by line, and the edits that did so, marked as such.

    The lines of one edit may be taken back by several others, in any pieces. An edit that also writes something new
    takes nothing back.
    """
    found = [*operations]
    standing: dict[tuple[str, bool, str], list[int]] = {}  # by path, kind of change and line: places of the edits
    left: dict[int, int] = {}  # by place of an edit, how many of its changed lines are not taken back
    taken_from: dict[int, list[int]] = {}  # by place of an edit, whose lines it takes back, one place for each line
    for place, one in enumerate(found):
        lines = [*changed_lines(one.replaced)] if one.action is FileAction.EDIT else []
        before = [(one.path, not is_new, line) for is_new, line in lines]
        if any(number > len(standing.get(key, ())) for key, number in Counter(before).items()):
            for path, was_new, line in before:
                if other := standing.get((path, was_new, line)):
                    other.pop()
                standing.setdefault((path, not was_new, line), []).append(place)
            left[place] = len(lines)
        elif lines:
            taken_from[place] = [standing[key].pop() for key in before]
            for at in taken_from[place]:
                left[at] -= 1
            gone = {at for at in taken_from[place] if not left[at]}
            for at in gone:
                found[at] = replace(found[at], undone_by=one.event)
            found[place] = replace(one, undoes=len(gone))
    for place, edits in taken_from.items():
        found[place] = replace(found[place], only_undoes=not any(left[at] for at in edits))
    return tuple(found)


def _with_rewrites(operations: Iterable[FileOperation]) -> Iterator[FileOperation]:
    """The operations, with a CREATE marked as a rewrite if its file was worked on before or its own call deletes it."""
    there, deleted = set[str](), dict[str, int]()
    for one in operations:
        is_there = one.is_rewrite or one.path in there or deleted.get(one.path) == one.event
        yield replace(one, is_rewrite=is_there) if one.action is FileAction.CREATE else one
        if one.action is FileAction.DELETE:
            there.discard(one.path)
            deleted[one.path] = one.event
        else:
            there.add(one.target or one.path)


@dataclass(slots=True)
class _Views:
    """The newest texts of a file, as calls read and wrote it."""

    texts: list[str] = field(default_factory=list)
    original: list[str] = field(default_factory=list)  # those read before the session changed the file
    is_original: bool = True  # whether it is unchanged so far


def _placed(one: FileOperation, known: dict[str, _Views], result: Event | None) -> FileOperation:
    """An operation with the definitions that it changes, found in the ``known`` texts of its file; updates these."""
    views = known.setdefault(one.path, _Views())
    texts = views.texts
    if views.is_original:
        text = result.text if one.action is FileAction.READ and result else ""
        views.original += [text] if text else []
        views.is_original = bool(text)
    if one.action is FileAction.READ and result:
        texts.append(result.text)
    elif one.action is FileAction.CREATE:
        one = _without_known(one, "\n".join(views.original))
        texts[:] = [new for _, new in one.replaced]
    elif one.action is FileAction.EDIT:
        if not all(old for old, _ in one.replaced):
            one = _without_known(one, "\n".join(texts))  # lines by number: what stood there is not known
        within: dict[str, None] = {}
        for old, new in one.replaced:
            holding = [at for at, text in enumerate(texts) if old and old in text]
            around = [*(texts[at] for at in reversed(holding)), old]
            found = (dict.fromkeys(definitions_around(old, new, view)) for view in around)
            within |= next(filter(None, found), {})
            for at in holding:
                texts[at] = texts[at].replace(old, new, 1)
            texts += [] if holding else [new]
        one = replace(one, within=tuple(within))
    del texts[:-_MAX_TEXTS]
    return one


def _without_known(one: FileOperation, before: str) -> FileOperation:
    """An operation without the names and lines that its file already had."""
    added = tuple(name for name in one.added if name.removesuffix("()") not in before)
    return replace(one, added=added, lines=tuple(line for line in one.lines if line not in before))


# Of a file that is read over and over, this many of the newest views are enough.
_MAX_TEXTS = 8


def attempted(event: Event, directory: str = "") -> list[FileOperation]:
    """The changes that a call would make to files, whether or not it succeeded."""
    tried = _operations(event, 0, None, "", "") if event.kind is EventKind.CALL else ()
    return [_seen_from(directory, one) for one in tried if one.action is not FileAction.READ and _is_path(one.path)]


def _seen_from(directory: str, one: FileOperation) -> FileOperation:
    above = f"{directory}/" if directory else "./"
    if one.path.startswith("./") or one.target.startswith("./"):
        one = replace(one, path=one.path.removeprefix("./"), target=one.target.removeprefix("./"))
    if not (one.path.startswith(above) or one.target.startswith(above)):
        return one
    return replace(one, path=one.path.removeprefix(above), target=one.target.removeprefix(above))


def _reported(event: Event, number: int, call: Event, known: Sequence[str]) -> Iterator[FileOperation]:
    """The changes to files that a subagent reports; of a review only those in sentences.

    The lists of files in a review are of what somebody else changed. Where a path is relative to another folder, the
    prefix that ``known`` paths have before that folder is added.
    """
    is_review = _REVIEWS.search(call.text[:_ABOUT_CHARS]) is not None
    reported = {} if event.is_error else reported_files(event.text, with_lists=not is_review)
    for path, is_new in reported.items():
        if _is_path(path):
            action = FileAction.CREATE if is_new else FileAction.EDIT
            known_path = _as_known(path, known)
            yield FileOperation(action=action, path=known_path, event=number, record=event.record, is_reported=True)


def _as_known(path: str, known: Sequence[str]) -> str:
    folder = f"{path.partition('/')[0]}/"
    if folder == "/" or "/" not in path or any(one.startswith(folder) for one in known):
        return path
    above = {one.partition(f"/{folder}")[0] for one in known if f"/{folder}" in one}
    return f"{above.pop()}/{path}" if len(above) == 1 else path


def changed_by_turn(operations: Iterable[FileOperation], events: Sequence[Event]) -> dict[int, set[str]]:
    """The paths that each turn changed, by its number, in order."""
    found: dict[int, set[str]] = {}
    for one in operations:
        if one.action is not FileAction.READ:
            found.setdefault(events[one.event].turn, set()).add(one.path)
    return found


def is_subagent(call: Event) -> bool:
    """Whether a call starts a subagent, which may change files."""
    return call.kind is EventKind.CALL and short_name(call.name) in _SUBAGENTS


# Tools that return a subagent's report.
_SUBAGENTS = REPORTING_TOOLS - PAGE_TOOLS - {"taskoutput"}
_REVIEWS, _ABOUT_CHARS = re.compile(r"review|audit", re.IGNORECASE), 200
# How a tool reports that it wrote over an existing file: `The file gauge.py has been updated`.
_WROTE_OVER = re.compile(r"\b(?:has been|was|successfully) (?:updated|overwritten)\b|\boverwrote\b", re.IGNORECASE)


def _is_path(path: str) -> bool:
    """Whether a path can be a file of the work: not too long, on one line, and not a lock file of git."""
    is_one = 0 < len(path) <= _MAX_PATH_CHARS and "\n" not in path and path.lower() not in _NOT_PATHS
    is_one = is_one and "://" not in path  # what another agent or a server holds
    return is_one and not (path.endswith(".lock") and "/.git/" in f"/{path}")


# "apply_patch verification failed: …", "Failed to find …"
_FAILED = re.compile(r"\bfailed(?::| to\b)", re.IGNORECASE)


def is_undone(event: Event, result: Event) -> bool:
    """Whether a call did nothing to files: it was refused or an error, or the result of an edit begins with one.

    Of a chain of commands whose last one failed, the commands before it took effect. A script did nothing if all that
    it prints is that it did not find what it was to replace.
    """
    if (
        event.tool is ToolKind.COMMAND
        and _NOT_REPLACED.fullmatch(result.text)
        and script_in(command_of(event.arguments))
    ):
        return True
    if event.tool is ToolKind.COMMAND and not editor_step(event) and failed_with_code(result):
        return result.is_refusal
    if result.is_error or result.is_refusal or event.tool not in (ToolKind.EDIT, ToolKind.COMMAND):
        return result.is_error or result.is_refusal
    refused = "introduced new syntax error" in result.text
    if event.tool is ToolKind.EDIT:
        line = result.text.partition("\n")[0]
        refused = refused or failed_with_code(result) or bool(ERROR_PATTERN.search(line) or _FAILED.search(line))
    return refused


# `pattern 'low tide' not found`
_NOT_REPLACED = pattern(
    r"\s*[^\n]{0,80}\b(?:not found|no match(?:es)?|could(?: not|n't) find)\b[^\n]{0,80}\s*", re.IGNORECASE
)


def _operations(event: Event, number: int, result: Event | None, shown: str, window: str) -> Iterator[FileOperation]:
    """What a call does to files.

    ``shown``: the file that its result shows in an editor; ``window``: what an earlier result showed of that file.
    """
    done = partial(FileOperation, event=number, record=event.record)
    source = command_of(event.arguments) if event.tool is ToolKind.COMMAND else event.text

    def changed(path: str) -> FileOperation:
        changes = tuple(changes_of(event, path, window))
        added = tuple(added_names(changes, path))
        return done(
            action=FileAction.EDIT, path=path, added=added, lines=written_lines(changes, source), replaced=changes
        )

    if event.tool is ToolKind.COMMAND and (step := editor_step(event)):
        # The edit does not name its file; the result shows it.
        yield changed(shown) if step == "edit" else done(action=_EDITOR_ACTIONS[step], path=shown)
    elif event.tool is ToolKind.COMMAND and _CAT.fullmatch(source):
        yield from (
            done(action=FileAction.READ, path=path, replaced=_whole(result)) for _, path, _ in shell_operations(source)
        )
    elif event.tool is ToolKind.COMMAND:
        is_entered = result is None or not _NOT_ENTERED.match(result.text)
        steps = list(shell_operations(source, failed=failed_with_code(result))) if is_entered else []
        written_paths = {path for action, path, *_ in steps if action in WRITING and not is_throwaway(path)}
        for action, path, target in steps:
            # Where several files are written, it is not known which of them a text belongs to.
            is_known = len(written_paths) == 1 or written_text(event, path) is not None
            of_it = changed(path) if action in WRITING and is_known else done(action=action, path=path)
            yield replace(of_it, action=action, target=target if action is FileAction.MOVE else "")
    elif event.tool is ToolKind.EDIT and (patch := patch_of(event)):
        path = ""
        for action, named in patched_files(patch):
            if action is FileAction.MOVE:
                yield done(action=action, path=path, target=named)
            else:
                path = named
                yield replace(changed(path), action=action, lines=())
    elif event.tool is ToolKind.EDIT:
        name = short_name(event.name)
        is_creating = name in _CREATING or argument(event.arguments, ("command",)) == "create"
        action = FileAction.DELETE if "delete" in name else FileAction.CREATE if is_creating else FileAction.EDIT
        for path in edited_paths(event) or (shown,):
            one = changed(path)
            yield replace(one, action=action, lines=one.lines if action is FileAction.EDIT else ())
    elif event.tool is ToolKind.READ and not is_search(event):
        is_whole = isinstance(event.arguments, Mapping) and not any(map(event.arguments.get, _RANGES))
        replaced = _whole(result) if is_whole else ()
        yield done(action=FileAction.READ, path=argument(event.arguments, PATH_KEYS), replaced=replaced)


def _whole(result: Event | None) -> tuple[tuple[str, str], ...]:
    """The text that reading a whole file showed, in the form of a change; empty where it may not be all of the file."""
    if result is None or result.is_error or result.text.count("\n") > _MAX_READ_LINES:
        return ()
    return () if any(map(result.text.lower().__contains__, _CUT_SHORT)) else (("", result.text),)


# A command that shows one file and does nothing else: `cd tides && cat -n gauge.py`.
_CAT = re.compile(r"\s*(?:cd [^\s&;|]+ && )?cat (?:-n )?[^\s&;|<>$*?-][^\s&;|<>$*?]*\s*")
# What a tool writes when it shows only a part of a file, or a notice instead of it.
_CUT_SHORT = (
    "truncated|omitted|elided|more lines|too large|too long|clipped|unchanged since|cleared]|contents are empty"
).split("|")
_MAX_READ_LINES = 1_990  # tools show at most the first 2,000 lines of a file
_EDITOR_ACTIONS = {"open": FileAction.READ, "create": FileAction.CREATE}
_PATCHED = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
_PATCH_ACTIONS = {
    "Add File": FileAction.CREATE,
    "Update File": FileAction.EDIT,
    "Delete File": FileAction.DELETE,
    "Move to": FileAction.MOVE,
}


def patched_files(patch: str) -> Iterator[tuple[FileAction, str]]:
    """The actions of a patch with their paths, in order; the path of a MOVE is where the file named before it goes."""
    return ((_PATCH_ACTIONS[kind], path.strip()) for kind, path in _PATCHED.findall(patch))


def replay(operations: Iterable[FileOperation], carried: Iterable[FileState] = ()) -> tuple[FileState, ...]:
    """The state of every path after all operations: the last changed one first, files that were only read at the end.

    ``carried``: states known from an earlier summary, in the order in which they were worked on.
    """
    states = {state.path: state for state in carried}
    for operation in operations:
        state = states.setdefault(operation.path, FileState(path=operation.path))
        _apply(state, operation)
        # Where the target is a folder, no record shows the whole path of the moved file.
        if operation.action is FileAction.MOVE and operation.target and not operation.target.endswith("/"):
            target = states.setdefault(operation.target, FileState(path=operation.target))
            if target.last >= 0 and not target.is_deleted:
                target.edits += 1  # the existing file is written over
            else:
                target.edits, target.is_created = target.edits + state.edits, state.is_created
                target.undone += state.undone
                target.is_edited_by_subagent |= state.is_edited_by_subagent
                came_from = state.moved_from or state.path
                target.moved_from = came_from if came_from != target.path else ""
            target.is_deleted, target.changed, target.last = False, operation.event, operation.event
            target.added |= state.added
            target.moved_to = ""
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
        for _, text in operation.replaced:  # what the text lacks by now, somebody took out
            state.lines = {line: record for line, record in state.lines.items() if line in text}
            state.added = {name: None for name in state.added if name.removesuffix("()") in text}
        return
    state.changed = operation.event
    state.is_try = operation.is_try
    state.records.append(operation.record)
    if operation.action is FileAction.CREATE:
        # A CREATE of a file that was read or edited before is an edit.
        is_known = operation.is_rewrite or state.reads or state.least_edits or state.is_created
        was_there = state.reads > 0 or (state.least_edits > 0 and not state.is_created)
        is_new = not is_known or (state.is_deleted and not (operation.is_rewrite or was_there))
        state.is_created, state.edits = state.is_created or is_new, state.edits + (not is_new)
    elif operation.action is FileAction.EDIT:
        state.is_edited_by_subagent |= operation.is_reported
        state.edits += not operation.is_reported
        state.undone += operation.only_undoes + operation.undoes
        if state.undone == state.edits:
            state.edits = state.undone = 0  # the file is as it was
    elif operation.action is FileAction.FORMAT and not (state.is_created or state.least_edits):
        state.edits = 1
    renamed = _note_names(state, operation)
    replaced = [pair for pair in operation.replaced if pair[0] or operation.action is FileAction.CREATE]
    standing = (line for line in state.lines if not any(overwrites(line, *pair) for pair in replaced))
    standing = (line for line in standing if renamed.isdisjoint(re.findall(r"\w+", line)))
    written = state.lines | dict.fromkeys(operation.lines, operation.record)
    state.lines = {line: written[line] for line in shown_lines(tuple(standing), operation.lines)}
    _note_reverted(state, operation)
    if operation.action is FileAction.DELETE and state.moved_to:
        return  # `git rm --cached` after `mv`: the file was moved
    state.is_deleted = operation.action is FileAction.DELETE
    state.moved_to = operation.target if operation.action is FileAction.MOVE else ""


def _note_names(state: FileState, operation: FileOperation) -> set[str]:
    """Note which definitions an operation adds, takes out and changes; returns those that it renames."""
    is_anew = operation.action is FileAction.CREATE
    gone = [*added_names([pair[::-1] for pair in operation.replaced], operation.path, with_locals=True)]
    for name in gone:
        state.within.pop(name, None)
        if name in state.added or is_anew:
            continue
        state.had[name] = None
        if name.endswith("()") and not operation.path.endswith(PROSE):
            state.removed[name] = None
    for name in (*(state.added if is_anew else gone), *operation.added):
        state.added.pop(name, None)
    renamed = {old for old, new in operation.replaced if is_renamed(old, new)}
    state.added = {name: None for name in state.added if name.removesuffix("()") not in renamed}
    for name in operation.added:
        state.removed.pop(name, None)
        if len(state.added) < _MAX_ADDED and name not in state.had:
            state.added[name] = None
    for name in operation.within:
        state.within.pop(name, None)
        if not (name in state.added or name in gone):
            state.within[name] = None
    return renamed


def _note_reverted(state: FileState, operation: FileOperation) -> None:
    """Note whether an operation threw away all changes of a file, or which earlier edit shows what stands."""
    is_undone = operation.only_undoes and not (state.least_edits or state.is_created)
    state.is_reverted = operation.action is FileAction.REVERT or is_undone
    if state.is_reverted:
        state.lines, state.added, state.removed, state.within = {}, {}, {}, {}
    elif operation.is_cancelled and len(state.records) > 1:
        state.records.pop()


# What a shell prints when the leading `cd` of a line failed, so that the rest was not run.
_NOT_ENTERED = pattern(r"(?:Exit code \d+\s+)?[^\n]{0,40}\bcd:[^\n]{0,200}[Nn]o such file or directory")


def is_clients(path: str) -> bool:
    """Whether a path is a file of a skill, outside of the working directory, or one that the client itself keeps."""
    return ATTACHMENTS.skill_file.fullmatch(path) is not None or CLIENT_FILE.match(path) is not None


def is_throwaway(path: str) -> bool:
    """Whether a path lies in a folder such as ``/tmp``, where nothing is meant to stay; on Windows too."""
    return _THROWAWAY.match(path) is not None


# `/tmp/gauge.py`, `/dev/null`, `C:\Users\harbour\AppData\Local\Temp\gauge.py`
_THROWAWAY = pattern(r"/(?:tmp|var|private/tmp|dev)/|(?:(?:/mnt)?/[A-Za-z]|[A-Za-z]:)[\\/](?:.+[\\/])?Temp[\\/]")


_RANGES = ("offset", "limit", "view_range", "start_line", "end_line", "line_range", "n_lines", "line_offset")
_CREATING = frozenset({"write", "writefile", "writetofile", "createfile", "create", "fswrite", "savefile", "filewrite"})


def is_search(call: Event) -> bool:
    """Whether the tool of a call lists files or searches in them."""
    return short_name(call.name) in _SEARCHING


_SEARCHING = frozenset(
    "grep glob ls listfiles listdirectory listdir searchfiles findfiles searchfilecontent grepsearch globsearch"
    " filesearch find codebasesearch searchtext listcodedefinitionnames searchdir finddir findfile searchfile"
    " grepfiles".split()
)
_MAX_PATH_CHARS = 200
_NOT_PATHS = frozenset({".", "/", "-", "/dev/null", "nul"})
_MAX_ADDED = 40
_PENDING_EVENTS = 8
