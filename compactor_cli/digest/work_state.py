"""The state of the work tree: commits, what is not in them, test runs older than the edits, calls without a result."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from math import inf

from compactor_cli.digest.checks import OF_TESTS, covered_since, is_check, standing_checks
from compactor_cli.digest.commands import CONCLUDES
from compactor_cli.digest.commits import (
    Commit,
    after_rebases,
    all_hashes,
    branches_in_step,
    earlier_hashes,
    ends_of,
    find_commits,
    held_by,
    last_stash,
    listed_files,
    named_to,
    pushes,
    seen_from,
    tree_below,
    unpushed,
)
from compactor_cli.digest.edits import PROSE
from compactor_cli.digest.error_lines import conflicting_files, own_lines
from compactor_cli.digest.events import Event, EventKind, results_of
from compactor_cli.digest.files import FileOperation, FileState, is_throwaway
from compactor_cli.digest.runs import CommandOutcome, Run
from compactor_cli.digest.shell import GIT, is_whole, unquoted, working_folder
from compactor_cli.digest.tools import FileAction
from compactor_cli.formats.directories import is_absolute
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkState:
    """What a colleague must know of the work tree; positions are those of calls in the events."""

    branch: str = ""  # as git, or a record after that, named it last
    branch_record: int = -1  # the record that names it; -1 where none of these records does
    ahead: str = ""  # its distance from its upstream, in git's words; empty if unknown or if it moved since
    commits: tuple[Commit, ...] = ()
    # The files changed after the last commit (or reset), where any git command shows that commits are made, and those
    # that git has listed as changed since, by whomever; each with the record that shows it.
    uncommitted: Mapping[str, int] = field(default_factory=dict)
    # Files that git listed before the session changed or committed anything, and still lists; the session left them.
    found_changed: frozenset[str] = frozenset()
    found_new: frozenset[str] = frozenset()  # what git listed as untracked at that time
    checks: tuple[tuple[Run, tuple[FileOperation, ...]], ...] = ()  # see `standing_checks`
    without_result: tuple[int, ...] = ()  # positions of calls at the end that nothing answered
    stashed: tuple[str, ...] = ()  # uncommitted files that `git stash` put away and nothing brought back
    stash_record: int = -1  # the record of that stash; -1 where these records show none
    in_step: Mapping[str, int] = field(default_factory=dict)  # see `branches_in_step`
    unpushed: tuple[Commit, ...] = ()  # commits after the newest push; empty where no push was seen
    is_pushed: bool = False  # whether a push was seen
    # The newest commit made outside the session, which may hold what was changed before, and the record that shows it.
    by_others: tuple[str, int] | None = None
    tree: str = ""  # the work tree below the session's directory in which all was done, where that is another one
    older: frozenset[int] = frozenset()  # positions of the runs of code that changed since
    elsewhere: Mapping[int, str] = field(default_factory=dict)  # the folders of runs in other folders, by position

    @property
    def stale(self) -> tuple[tuple[Run, tuple[FileOperation, ...]], ...]:
        """The checks that passed and whose files changed afterwards."""
        return tuple(one for one in self.checks if one[1])


def _outside(states: Sequence[FileState]) -> Callable[[str], bool]:
    """A test whether a path is outside the work tree: in a home folder, in a folder for temporary files, or absolute
    where paths of other files are relative."""
    has_relative = any(not is_whole(state.path) for state in states)
    return lambda path: path.startswith("~/") or (has_relative and is_absolute(path)) or is_throwaway(path)


def _changes_inside(operations: Sequence[FileOperation], states: Sequence[FileState]) -> list[FileOperation]:
    """The operations that changed files of the work tree, without files that were created here and deleted again."""
    is_outside = _outside(states)
    made = {one.path for one in operations if one.action is FileAction.CREATE and not one.is_rewrite}
    gone = {state.path for state in states if state.is_deleted and state.path in made}
    changes = (one for one in operations if one.action is not FileAction.READ and one.path not in gone)
    return [one for one in changes if not is_outside(one.path)]


def _changes_at(
    changes: Sequence[FileOperation], elsewhere: Mapping[int, str], directory: str
) -> Callable[[Run], Sequence[FileOperation]]:
    """The changes in the work tree in which a run was made, as a function; all of them if the directory is unknown."""

    def changes_at(run: Run) -> Sequence[FileOperation]:
        if not (directory and (folder := elsewhere.get(run.event))):
            return changes
        return [one for one in changes if one.path.startswith((f"{folder}/", seen_from(folder, directory)))]

    return changes_at


def _elsewhere(runs: Sequence[Run], states: Sequence[FileState], directory: str) -> dict[int, str]:
    """The folders of the runs in another folder than ``directory``, to which paths are relative; by position.

    A sibling (`../other`) is another folder, unless the path of a known file inside has a folder of that name.
    """
    has_relative = any(not is_whole(state.path) for state in states)
    changed = [state.path for state in states if state.is_changed]
    inside = (state.path for state in states if not (state.path.startswith("../") or is_whole(state.path)))
    known = {"..", posixpath.basename(directory), *(part for path in inside for part in path.split("/")[:-1])}

    def is_other(folder: str) -> bool:
        if folder.startswith("../"):
            return posixpath.basename(folder) not in known
        # Where all paths are absolute, that folder may be the one of the work.
        is_tried = is_throwaway(f"{folder}/") and not any(path.startswith(f"{folder}/") for path in changed)
        is_above = f"{directory}/".startswith(f"{folder}/")  # the session works in a folder of that one
        return is_whole(folder) and not is_above and (has_relative or is_tried)

    folders = ((run.event, working_folder(run.command).rstrip("/")) for run in runs)
    return {event: folder for event, folder in folders if is_other(folder)}


def work_state(
    events: Sequence[Event],
    runs: Sequence[Run],
    operations: Sequence[FileOperation],
    states: Sequence[FileState],
    directory: str = "",
    before: WorkState | None = None,
    branch_of_records: tuple[str, int] = ("", -1),
) -> WorkState:
    """The state at the end; sets each file state's ``commit`` where a commit holds its last change.

    ``directory``: where the session works. ``before``: the state known at the beginning. ``branch_of_records``: the
    branch that records name last, and the last such record: others may have switched since git named one.
    """
    before = before or WorkState()
    elsewhere = _elsewhere(runs, states, directory)
    runs = [run for run in runs if not run.is_refused]  # those that the user refused or stopped did nothing
    here = [run for run in runs if run.event not in elsewhere]
    away = [run for run in runs if run.event in elsewhere and not is_throwaway(f"{elsewhere[run.event]}/")]
    by_others = _commit_by_others(here, commits := find_commits(here, directory))
    commits = list(after_rebases(commits, here))
    _throw_away(states, here, commits)
    merge = _conflicts(here)
    without_result = _without_result(events)
    uncommitted, listed = _uncommitted(states, here, commits, by_others, merge, uses_git=bool(before.uncommitted))
    # A commit without a result may have taken any of the changes: which are left is unknown.
    if any(run.event in without_result and re.search(r"\bgit commit\b", run.key) for run in here):
        uncommitted, listed = [], {}
    made_away = tuple(_commits_elsewhere(runs, away, elsewhere, states, directory))
    tree = tree_below(states, made_away, elsewhere, directory)
    branch, branch_record = _branch(here, branch_of_records, made_away[-1:] if tree else ()) or (before.branch, -1)
    _place(states, commits, merge, branch)
    stashed_at = stash.event if (stash := last_stash(here)) else 0
    not_stashed = {state.path: max(state.records, default=-1) for state in uncommitted if state.changed >= stashed_at}
    changes = _changes_inside(operations, states)
    changes_at = _changes_at(changes, elsewhere, directory)
    at_first, found_new = _listed_at_first(here, changes, commits)
    own = {end for path in not_stashed for end in ends_of(path)}
    return WorkState(
        branch=branch,
        branch_record=branch_record,
        ahead=_ahead(here, branch_record),
        commits=(*commits, *made_away),
        uncommitted=_with_listed(not_stashed, listed),
        found_changed=frozenset(listed.keys() & at_first.keys() - own),
        found_new=frozenset(found_new),
        stashed=tuple(state.path for state in uncommitted if state.changed < stashed_at)
        or named_to(stash)
        or (() if any("git stash" in run.key for run in here) else before.stashed),
        stash_record=stash.result_record if stash else -1,
        elsewhere=elsewhere,
        tree=tree,
        older=frozenset(_older(runs, changes_at)),
        in_step=(in_step := branches_in_step(runs)),
        unpushed=unpushed((*commits, *made_away), runs, in_step, before.unpushed, is_pushed=before.is_pushed),
        is_pushed=before.is_pushed or any(pushes(runs)),
        by_others=(by_others[0], by_others[1].result_record) if by_others else None,
        checks=tuple(standing_checks(runs, changes_at, before.checks)),
        without_result=without_result,
    )


def _without_result(events: Sequence[Event]) -> tuple[int, ...]:
    """The positions of calls in the last 8 events that have no result; none where the client records no results."""
    calls = [number for number, event in enumerate(events) if event.kind is EventKind.CALL]
    answered = results_of(events).keys()
    ending = {number for number in calls if number >= len(events) - 8}
    return tuple(sorted(ending - answered)) if answered or len(ending) == len(calls) else ()


def _commits_elsewhere(
    runs: Sequence[Run],
    away: Sequence[Run],
    elsewhere: Mapping[int, str],
    states: Sequence[FileState],
    directory: str,
) -> Iterator[Commit]:
    """The commits made in other folders by the runs ``away``; sets the ``commit`` of the files there."""
    for folder in dict.fromkeys(elsewhere[run.event] for run in away):
        there = [run for run in away if elsewhere[run.event] == folder]
        files = [state for state in states if state.path.startswith((f"{folder}/", seen_from(folder, directory)))]
        commits = list(after_rebases(find_commits(there, ""), runs))
        held = held_by(files, commits, _ignored_by_git(there))
        for state in files:
            commit = held.get(state.path)
            state.commit = all_hashes(state, commits, commit)
        yield from commits


def _uncommitted(
    states: Sequence[FileState],
    runs: Sequence[Run],
    commits: Sequence[Commit],
    by_others: tuple[str, Run] | None,
    merge: tuple[int, frozenset[str]],
    *,
    uses_git: bool,
) -> tuple[list[FileState], Mapping[str, int]]:
    """The files whose last change is in no commit, and all that git listed as changed, by path with the record.

    Left out are files that may be in a commit, and those that git seems to ignore. Sets ``commit`` and
    ``commit_before`` of the states. ``uses_git``: commits are known to be made. ``merge``: see `_conflicts`.
    """
    is_outside, is_ignored = _outside(states), _ignored_by_git(runs)
    merged_at, conflicts = merge
    here = [one for one in states if one.changed >= 0 and not (one.is_reverted or is_outside(one.path))]
    held = held_by(here, commits, is_ignored)
    # The commit by others may hold what git listed before it.
    since = by_others[1].event if by_others else -1
    # If the session changed nothing, untracked files are the work that it looks at.
    listed, untracked, before = _listed_by_git([run for run in runs if run.event > since], commits, with_new=True)
    first = min((one.changed for one in here), default=0)
    uses_git |= any(_COMMITS.search(run.key) or (run.event > first and _COMPARES.search(run.key)) for run in runs)
    end = runs[-1].event if runs else 0
    unseen = {one.path for one in here if one.path not in held and is_ignored(one, end)}
    # If git ignores a new file, it more often ignores the whole folder than that file alone.
    folders = {posixpath.dirname(one.path) for one in here if one.is_created and one.path in unseen} - {""}
    named_by_git = listed_files(listed, [state.path for state in here])
    found: list[FileState] = []
    for state in here:
        # Git also lists as changed what an unfinished merge brings.
        is_merged = state.changed < merged_at and conflicts.isdisjoint(ends_of(state.path))
        is_listed = state.path in named_by_git or _is_in(untracked, state.path)
        is_listed = is_listed and not is_merged
        commit = None if is_listed else held.get(state.path)
        known = state.commit.rpartition(", ")[2] or state.commit_before  # from an earlier summary
        state.commit = all_hashes(state, commits, commit)
        is_in_another = by_others and state.changed < by_others[1].event
        is_passed_over = state.path in unseen or (state.is_created and posixpath.dirname(state.path) in folders)
        is_unknown = state.path in held or is_in_another or is_passed_over
        if uses_git and not state.is_deleted and (is_listed or not is_unknown):
            found.append(state)
            state.commit_before = next(reversed([*earlier_hashes(state, commits, None)]), known)
    named = {path: commit.name for commit in commits for path in commit.named}
    gone = {path for run in runs if "git " in run.key for path in _GONE.findall(run.output)}
    for state in (one for one in states if not one.is_changed):
        # Not changed here, but in a commit: others wrote it, or took it out.
        state.commit = named.get(state.path, "")
        state.is_deleted = state.commit != "" and state.path in gone
    own = {end for state in here for end in ends_of(state.path)}
    if merged_at >= 0:
        listed = {path: record for path, record in listed.items() if path in conflicts}
    return found, {**listed, **{path: record for path, record in before.items() if path not in own}}


# `D  tides.md` of a status, ` delete mode 100644 tides.md` of a commit
_GONE = pattern(r"^(?:D |[ ]delete mode \d+) (\S+)$", re.MULTILINE)
# What shows that the session commits, and what compares the work tree with its last commit. Looking at other commits
# (`git diff HEAD~2`) shows neither: committing may be left to the user.
_COMMITS = pattern(r"\bgit (?:commit|add|stash)\b")
_COMPARES = pattern(r"\bgit (?:status|diff)\b(?![^|;&]*(?:\.\.|HEAD[~^]))")


def _place(
    states: Sequence[FileState], commits: Sequence[Commit], merge: tuple[int, frozenset[str]], branch: str
) -> None:
    """Append its branch to each ``commit`` that is on another branch than ``branch``, and clear that of any other file
    with an unresolved conflict that was changed before the merge. ``merge``: see `_conflicts`.
    """
    others = {commit.name: commit.branch for commit in commits if branch and commit.branch not in ("", branch)}
    merged_at, conflicts = merge
    for state in states:
        if state.commit in others:
            state.commit = f"{state.commit} ({others[state.commit]})"
        elif state.changed < merged_at and not conflicts.isdisjoint(ends_of(state.path)):
            state.commit = ""


def _conflicts(runs: Sequence[Run]) -> tuple[int, frozenset[str]]:
    """The position of the newest merge that is not concluded, and its files in conflict; -1 and none without one."""
    for run in reversed(runs):
        if conflicts := conflicting_files(run.line):
            return run.event, frozenset(conflicts)
        if CONCLUDES.search(run.key) and run.outcome is not CommandOutcome.FAILED:
            break
    return -1, frozenset()


def _ignored_by_git(runs: Sequence[Run]) -> Callable[[FileState, int], bool]:
    """A test whether some `git status` between a file's last change and an event names neither it nor its folder.

    Git then ignores the file, or it is unchanged or committed. A switch of branches, too, lists changed files.
    """
    statuses = [
        (run.event, found[1].split(), run.output)
        for run in runs
        if run.outcome is CommandOutcome.OK or (run.outcome is CommandOutcome.UNKNOWN and "fatal:" not in run.output)
        # Other commands of the line can only add names to the output.
        for step in re.split(r"&&|\|\||[;\n]", run.command if "git status" in run.key else "")
        if (found := _WHOLE_STATUS.fullmatch(step.strip()))
    ]
    statuses += [(run.event, [], run.output) for run in runs if _IS_CLEAN.search(run.output)]
    switches = [
        (run.event, run.output)
        for run in runs
        if run.outcome is CommandOutcome.OK and "|" not in run.command
        if _SWITCHES.match(run.key) and _SWITCHED.search(run.output)
    ]

    def is_ignored(state: FileState, until: int) -> bool:
        name = posixpath.basename(state.path)
        if not state.is_created and any(state.changed < at <= until and name not in text for at, text in switches):
            return True
        return any(
            # Git lists a new folder in place of its files, relative to where the command ran.
            state.changed < at <= until and name not in text and not _is_in(text.split(), state.path)
            for at, asked, text in statuses
            if not asked or _is_in(asked, state.path)
        )

    return is_ignored


_SWITCHES = pattern(r"git (?:checkout|switch) [\w./-]*\w(?= *(?:$|[;&]))")
# What git prints on a switch: `git checkout gauge` may also restore a file.
_SWITCHED = pattern(r"^(?:Switched to branch|Already on) '", re.MULTILINE)


def _is_in(names: Iterable[str], path: str) -> bool:
    """Whether a path has one of these names, or is in a folder among them (`docs/`), from any folder above it."""
    ends = (f"/{_UPWARDS.sub('', name)}" for name in names)
    return any(f"/{path}".endswith(end) or (end[-1] == "/" and end in f"/{path}") for end in ends if len(end) > 1)


_UPWARDS = pattern(r"^(?:\.{1,2}/)+")


def _commit_by_others(runs: Sequence[Run], commits: Sequence[Commit]) -> tuple[str, Run] | None:
    """The log line of the newest commit made outside the session, and the `git log` that first showed it; or None."""
    made = {commit.event: commit.hash for commit in commits}
    head, found = "", None
    for run in runs:
        shown = _LOGGED.match(run.output) if _LOG.match(run.key) else None
        if shown and head and not head.startswith(shown[2]) and not shown[2].startswith(head):
            found = (shown[1], run)
        is_moved = _TAKES_CHANGES.search(run.key) and run.outcome is not CommandOutcome.FAILED
        # A rebase that continues gives its commits other hashes.
        known = "" if "--continue" in run.key else made.get(run.event, "")
        head = known or (shown[2] if shown else "" if is_moved else head)
    return found


# A log that begins with the commit that is checked out (`git log --oneline -3`), and its first line.
_LOG = pattern(
    r"git log(?: --oneline| -n? ?\d+| --decorate| --(?:format|pretty)=(?:\"[^\"]*\"|'[^']*'|\S+)| \S*[^\s.]\.\.HEAD)*"
    r"(?= *(?:$|[|;&]))"
)
_LOGGED = pattern(r"(?:commit )?(([0-9a-f]{7,40})\b.*)")
# A status that hides nothing below the paths that it is given: `git status --short docs`.
_WHOLE_STATUS = pattern(
    rf"{GIT}status(?: (?:-s|-sb|--short|--porcelain|--branch))*((?: [\w./@+][\w./@+-]*)*)(?: 2>&1)?"
)
_IS_CLEAN = pattern(r"^nothing to commit, working tree clean", re.MULTILINE)


_Listed = tuple[dict[str, int], list[str], dict[str, int]]


def _listed_by_git(runs: Sequence[Run], commits: Sequence[Commit], *, with_new: bool = False) -> _Listed:
    """The files that the newest `git status` (or `git diff`) lists as changed, with its record, and the untracked ones.

    Where commits of named paths followed the list, both are empty, and third are the changed files that these did not
    name, with its record. All are empty where anything else was done about changes since. ``with_new``: untracked
    files are changed ones, too.
    """
    made = {commit.event: commit for commit in commits}
    taken_since: list[str] | None = None
    by_diff: _Listed = {}, [], {}
    for run in reversed(runs):
        taken, shown = (
            max((one.start() for one in form.finditer(run.key)), default=-1)
            for form in (_TAKES_CHANGES, _LISTS_CHANGES)
        )
        names = _LISTS_NAMES.search(run.key) if "|" not in run.command else None
        # Where the line also compares commits, the sizes that diffs list may be of files in these.
        is_mixed = _COMPARES_COMMITS.search(run.key) is not None
        shown = names.start() if names else -1 if is_mixed and "git status" not in run.key else shown
        if shown > taken and run.outcome is not CommandOutcome.UNKNOWN:
            listed_as = _NAMED_ALONE if names else _LISTED
            found_names = ([*filter(None, found[: 2 if is_mixed else None])] for found in listed_as.findall(run.output))
            named = (one[0] for one in found_names if one)
            _, _, new = run.output.partition("\nUntracked files:")
            # Relative to the root, wherever git was called.
            shown_paths = (_UPWARDS.sub("", path) for path in named if not path.startswith("..."))
            changed = dict.fromkeys(shown_paths, run.result_record)
            if not changed and run.output.strip() and "git status" not in run.key:
                continue  # a diff line by line, which lists no files
            if taken_since is not None:
                folders = tuple(f"{name.rstrip('/')}/" for name in taken_since)
                taken_ends = {end for name in taken_since for end in ends_of(name)}  # named from another folder
                left = (path for path in changed if path not in taken_ends and not f"{path}/".startswith(folders))
                return {}, [], {path: changed[path] for path in left}
            untracked = [*_NEW_SHORT.findall(run.output), *_NEW.findall(new.partition("\n\n")[0])]
            files = (path for path in untracked if with_new and not path.endswith("/"))
            found: _Listed = {**dict.fromkeys(files, run.result_record), **(by_diff[0] or changed)}, untracked, {}
            if "git status" in run.key:
                return found
            by_diff = by_diff if by_diff[0] else found  # a status before it also lists untracked files
        elif taken >= 0 and run.outcome is not CommandOutcome.FAILED:
            commit = made.get(run.event)
            is_alone = set(_TAKES_CHANGES.findall(run.key)) == {"git commit"} and not by_diff[0]
            if not (commit and is_alone and commit.takes_all is False and commit.size <= len(commit.named)):
                break
            taken_since = [*(taken_since or ()), *commit.named]
    return by_diff


def _listed_at_first(
    runs: Sequence[Run], changes: Sequence[FileOperation], commits: Sequence[Commit]
) -> tuple[dict[str, int], list[str]]:
    """What git first listed, before anything was changed or committed, as `_listed_by_git`."""
    first = min((*(one.event for one in changes), *(one.event for one in commits)), default=inf)
    before = [run for run in runs if run.event < first]
    # What a later status adds, a command of the session changed.
    statuses = [run for run in before if "git status" in run.key and run.outcome is not CommandOutcome.FAILED]
    return _listed_by_git(statuses[:1] or before, (), with_new=not changes)[:2]


_TAKES_CHANGES = pattern(r"\bgit (?:commit|stash|reset|checkout|restore|switch|merge|rebase|pull|cherry-pick)\b")
_LISTS_CHANGES = pattern(
    r"\bgit (?:status\b|diff(?: --(?:stat|cached|staged)| -- \S+)*(?= *(?:$|[|;&])))(?!.*--(?:name-only|no-))"
)
# `git diff main...HEAD --stat`, `git show --stat 1a2b3c4`
_COMPARES_COMMITS = pattern(
    rf"\b{GIT}(?:diff [^;&|]*(?:\.\.|HEAD[~^]|origin/)|(?:show|log|diff-tree) [^;&|]*--(?:stat|name))"
)
# What prints all names and nothing else: `git diff --cached --name-only`.
_LISTS_NAMES = pattern(r"\bgit diff(?: --(?:cached|staged))* --name-only(?: --(?:cached|staged))*$")
_NAMED_ALONE = pattern(r"^()([\w./@-]+)$", re.MULTILINE)
# `modified:   gauge.py` and ` M gauge.py` of a status, ` gauge.py | 4 +-` of a diff.
_LISTED = pattern(
    r"^\s*(?:modified|deleted|both modified|renamed|new file): +(?:\S+ -> )?(\S+)$"
    r"|^(?:[MADRU][MADRU ]|[ ]?[MD]) (?:\S+ -> )?([\w./@-]+)$|^ (\S+) +\| +(?:\d+ [+-]+|Bin )",
    re.MULTILINE,
)
_NEW, _NEW_SHORT = pattern(r"^\s+([^\s(]\S*)$", re.MULTILINE), pattern(r"^\?\? (\S+)$", re.MULTILINE)


def _with_listed(uncommitted: dict[str, int], listed: Mapping[str, int]) -> dict[str, int]:
    """The uncommitted files with up to `_MAX_LISTED` others that git lists."""
    known = {end for path in uncommitted for end in ends_of(path)}
    others = islice((path for path in listed if path not in known), _MAX_LISTED)
    return uncommitted | {path: listed[path] for path in others}


_MAX_LISTED = 200


def _throw_away(states: Sequence[FileState], runs: Sequence[Run], commits: Sequence[Commit]) -> None:
    """Mark as reverted each known file whose changes since the last commit a `git reset --hard` or the like threw away.
    One without other edits that was reverted after a commit counts as edited: that is a change like any other."""
    committed = commits[-1].event if commits else -1
    resets = [run.event for run in runs if run.outcome is CommandOutcome.OK and _RESET.search(run.command)]
    for state in states:
        if any(committed < state.changed < event for event in resets) and not state.is_created:
            state.is_reverted = True
        is_undone = (
            state.is_reverted and not (state.edits > state.undone or state.is_created) and len(state.records) > 1
        )
        if is_undone and any(state.records[0] < commit.record < state.records[-1] for commit in commits):
            state.is_reverted, state.edits, state.undone = False, 1, 0


_RESET = pattern(r"\bgit (?:reset --hard|checkout (?:-- )?\.|restore \.)(?:\s|$)")


# `On branch tides`, `Switched to branch 'tides'`, and `[tides 1a2b3c4]` of a commit.
_ON_BRANCH = pattern(
    r"^(?:On branch |Already on '|Switched to (?:a new )?branch '|branch ')([\w./-]+)"
    r"|^\[([\w./-]+) (?:\(root-commit\) )?[0-9a-f]{7}|^[^\w\s] ([\w./-]+?)\.\.\.[\w./-]+(?: \[[^\]\n]*\])?$",
    re.MULTILINE,
)
# `## tides...origin/tides` and `* tides` of `git status -sb` and `git branch`: elsewhere, headings and list entries.
_MARKED_BRANCH = pattern(r"^(?:## ([\w./-]+?)(?:\.\.\..*)?|\* ([\w./-]+).*)$", re.MULTILINE)
_TAKEN_BRANCH = pattern(r"^(?:Already on|Switched to(?: a new)? branch) '([\w./-]+)'", re.MULTILINE)
_MARKS_BRANCH = pattern(r"git (?:branch|status(?: -\S+)* (?:-s?b|--branch))\b")


def _branch(runs: Sequence[Run], of_records: tuple[str, int], away: Sequence[Commit]) -> tuple[str, int] | None:
    """The branch named last, by git or by a record after that, and the record that names it; None where none does.

    ``away``: the newest commit of the work tree in which all was done, if that is another one: it names the branch.
    """
    if away:
        return away[0].branch, away[0].record
    named = _named_branch(runs)
    return of_records if of_records[0] and of_records[1] > (named[1] if named else -1) else named


def _named_branch(runs: Sequence[Run]) -> tuple[str, int] | None:
    for run in reversed(runs):
        if not re.search(r"\b(?:git|gh)\b", run.command) or "git worktree add" in run.key:
            continue
        if "git log" in run.key:
            # A log may show lines in any form: only where the branch was taken in the same line, it is known.
            if taken := _TAKEN_BRANCH.findall(run.output[:20_000]):
                return taken[-1], run.result_record
            continue
        printed = own_lines(run.output.strip()) if "--show-current" in run.key else []
        place = 0 if run.key.startswith("git branch --show-current") else -1
        if printed and (len(printed) == 1 or _SHOWS_CURRENT.search(run.key)) and _IS_NAME.fullmatch(printed[place]):
            return printed[place], run.result_record
        form = _MARKED_BRANCH if _MARKS_BRANCH.match(run.key) else _ON_BRANCH
        found = form.findall(run.output[:20_000])
        if found and (name := "".join(found[-1])) and name not in ("detached", "HEAD"):
            return name, run.result_record
    return None


# First or last in a command line: the branch is then the first or last line of the output.
_SHOWS_CURRENT = pattern(r"\Agit branch --show-current\b|\bgit branch --show-current\Z")
_IS_NAME = pattern(r"[\w./-]+")


def _ahead(runs: Sequence[Run], branch_record: int) -> str:
    """How far the branch is from its upstream, as the run that named it says; empty if not, or if it moved since."""
    for run in reversed(runs):
        if run.result_record == branch_record and "git status" in run.key and (found := _AHEAD.search(run.output)):
            return " ".join((found[1] or found[2] or found[3]).split())
        if run.result_record == branch_record or _MOVES_BRANCH.search(run.key):
            break
    return ""


# `## tides...origin/tides [ahead 2]`, `Your branch is ahead of 'origin/tides' by 2 commits.`
_AHEAD = pattern(
    r"^(?:##|[^\w\s]) \S+ \[([^\]\n]+)\]|^Your branch is ((?:ahead|behind)\b[^\n,]*?by \d+ commits?)"
    r"|^Your branch and '[^'\n]+' (have diverged,\nand have \d+ and \d+ different commits)",
    re.MULTILINE,
)
_MOVES_BRANCH = pattern(rf"\b{GIT}(?:commit|push|rebase|reset|merge|pull|fetch|checkout|switch)\b")


def _older(runs: Sequence[Run], changes_at: Callable[[Run], Sequence[FileOperation]]) -> Iterator[int]:
    """The positions of runs that execute, build, format or check code that changed after them.

    Changed tests make only checks older; code that git brought into the work tree makes every run before it older.
    ``changes_at``: the changes where a run was made.
    """
    brought = max((run.event for run in runs if _BRINGS.search(run.key) and _brings_code(run.output)), default=-1)
    for run in runs:
        checks = is_check(run.command)
        is_run = checks or _EXECUTES.search(unquoted(run.command))
        if not is_run:
            continue
        if run.event < brought or any(
            checks or not OF_TESTS.search(one.path) for one in covered_since(run, changes_at(run))
        ):
            yield run.event


_BRINGS = pattern(rf"\b{GIT}(?:merge|pull|rebase|cherry-pick|revert|am|stash (?:pop|apply))\b")
_BROUGHT = pattern(r"^(?:Auto-merging |CONFLICT |Fast-forward\b|Merge made by |Updating [0-9a-f]{7})", re.MULTILINE)
_CHANGED_FILE = pattern(r"^ (\S+) +\| +\d+", re.MULTILINE)


def _brings_code(output: str) -> bool:
    """Whether an output of git says that it brought something into the work tree, other than only prose."""
    changed = _CHANGED_FILE.findall(output)
    is_prose = bool(changed) and all(path.endswith(PROSE) for path in changed)
    return not is_prose and _BROUGHT.search(output) is not None


# `black src`, `PORT=80 ./serve`, `python3 gauge.py`, but neither `python3 --version` nor `python3 -m venv .venv`.
_EXECUTES = pattern(
    r"(?<![\w/-])(?:build|fmt|format|gofmt|black|prettier|rustfmt)(?![\w/-])|(?:^|[;&]\s*)(?:\w+=\S+\s+)*"
    r"(?:python3? (?!-m (?:pip|venv)\b|-V|--version)|node (?!-v\b|--version)|go run |cargo run|deno run|bun run|\./)\S"
)
