"""The state of the work tree: commits, what is not in them, test runs older than the edits, calls without a result."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice

from compactor_cli.digest.checks import OF_TESTS, covered_since, is_check, standing_checks
from compactor_cli.digest.commands import CONCLUDES, PUTS_AWAY, STASHES, CommandOutcome, Run
from compactor_cli.digest.commits import PUSHES, Commit, after_rebases, earlier_hashes, find_commits, held_by
from compactor_cli.digest.edits import PROSE
from compactor_cli.digest.error_lines import conflicting_files
from compactor_cli.digest.events import Event, EventKind, results_of
from compactor_cli.digest.files import FileOperation, FileState, is_throwaway
from compactor_cli.digest.shell import GIT, entered_folder, is_whole, segments, unquoted
from compactor_cli.digest.tools import FileAction
from compactor_cli.formats.directories import is_absolute
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkState:
    """What a colleague must know of the work tree.

    ``branch``: as git named it last, in the record ``branch_record`` (-1: unknown). ``ahead``: how far it is from the
    branch that it follows, as git says where nothing moved it since. ``checks``: the newest passing run
    of each check, with the changes since of what it covers. ``is_pushed``: whether a push was seen. ``uncommitted``:
    files changed after the last commit (or reset), where any git command shows that commits are made, and those that
    git has listed as changed since, by whomever; each with the record that shows it. ``found_changed``: those of them
    that git listed before the session changed or committed anything, and that it did not touch; ``found_new``: what it
    did not know then. ``stashed``: those that `git stash` put away in the record ``stash_record``, and that were not
    brought back. ``without_result``: positions of calls at the end that nothing answered. ``by_others``: the newest
    commit made outside the session, which may hold what was changed before, and the record that shows it. ``older``:
    positions of the runs of code that changed since. ``elsewhere``: the folders of the runs in another folder, by
    position.
    """

    branch: str = ""
    branch_record: int = -1
    ahead: str = ""
    commits: tuple[Commit, ...] = ()
    uncommitted: Mapping[str, int] = field(default_factory=dict)
    found_changed: frozenset[str] = frozenset()
    found_new: frozenset[str] = frozenset()
    checks: tuple[tuple[Run, tuple[FileOperation, ...]], ...] = ()
    without_result: tuple[int, ...] = ()
    stashed: tuple[str, ...] = ()
    stash_record: int = -1
    unpushed: tuple[Commit, ...] = ()
    is_pushed: bool = False
    by_others: tuple[str, int] | None = None
    older: frozenset[int] = frozenset()
    elsewhere: Mapping[int, str] = field(default_factory=dict)

    @property
    def stale(self) -> tuple[tuple[Run, tuple[FileOperation, ...]], ...]:
        """The checks that passed before files changed again."""
        return tuple(one for one in self.checks if one[1])


def _outside(states: Sequence[FileState]) -> Callable[[str], bool]:
    """Whether a path is outside the work tree: in a home folder, absolute where those of the tree are relative, or for
    a try."""
    has_relative = any(state.is_changed and not is_whole(state.path) for state in states)
    return lambda path: path.startswith("~/") or (has_relative and is_absolute(path)) or is_throwaway(path)


def _changes_inside(operations: Sequence[FileOperation], states: Sequence[FileState]) -> list[FileOperation]:
    """What changed files of the work tree; not those that were made here and are gone again."""
    is_outside = _outside(states)
    made = {one.path for one in operations if one.action is FileAction.CREATE and not one.is_rewrite}
    gone = {state.path for state in states if state.is_deleted and state.path in made}
    changes = (one for one in operations if one.action is not FileAction.READ and one.path not in gone)
    return [one for one in changes if not is_outside(one.path)]


def _elsewhere(runs: Sequence[Run], states: Sequence[FileState], directory: str) -> dict[int, str]:
    """The folders of the runs in another folder than the one that paths are relative to, by position.

    One next to it (`../other`) is such a folder, unless files are known from a folder of that name.
    """
    has_relative = any(not is_whole(state.path) for state in states)
    changed = [state.path for state in states if state.is_changed]
    known = {"..", posixpath.basename(directory), *(part for state in states for part in state.path.split("/")[:-1])}

    def is_other(folder: str) -> bool:
        if folder.startswith("../"):
            return posixpath.basename(folder) not in known
        # Where all paths are whole, the work may be in that folder.
        is_tried = is_throwaway(f"{folder}/") and not any(path.startswith(f"{folder}/") for path in changed)
        return is_whole(folder) and folder != directory and (has_relative or is_tried)

    folders = ((run.event, _folder(run.command).rstrip("/")) for run in runs)
    return {event: folder for event, folder in folders if is_other(folder)}


def _folder(command: str) -> str:
    """The folder in which a command line commits, else calls git first, else the one that it enters first; or none."""
    first, folder, of_git = "", "", None
    variables: dict[str, str] = {}
    for number, segment in enumerate(segments(command.partition("<<")[0])):
        if assigned := _ASSIGNED.fullmatch(segment):
            variables[assigned[1]] = _MADE if "mktemp" in assigned[2] else assigned[2].strip("\"'")
        named = _VARIABLE.sub(lambda name: variables.get(name[1], name[0]), segment)
        match [word.strip("\"'()") for word in named.split() if word.strip("()")]:
            case ["git", "-C", place, *_]:
                return posixpath.join(folder, place)
            case ["git", "commit", *_]:
                return folder
            case ["git" | "gh", *_]:
                of_git = folder if of_git is None else of_git
            case ["cd" | "pushd", place, *_]:
                folder = posixpath.join(folder, entered_folder(named) or place)
                first = first if number else folder
    return first if of_git is None else of_git


# What `mktemp` makes is for a try.
_MADE = "/tmp/made"  # noqa: S108 (a name, no file)
_ASSIGNED, _VARIABLE = re.compile(r"(\w+)=(\S.*)", re.DOTALL), re.compile(r"\$\{?(\w+)\}?")


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

    ``directory``: where the session works; ``branch_of_records``: the branch that its records name last, and the last
    of these: others may have switched since git named one. ``before``: what was known at the beginning.
    """
    before = before or WorkState()
    elsewhere = _elsewhere(runs, states, directory)
    # What the user refused or stopped did nothing.
    runs = [run for run in runs if not run.is_refused]
    here = [run for run in runs if run.event not in elsewhere]
    away = [run for run in runs if run.event in elsewhere and not is_throwaway(f"{elsewhere[run.event]}/")]
    commits = find_commits(here, directory)
    by_others = _commit_by_others(here, commits)
    commits = list(after_rebases(commits, here))
    _throw_away(states, here, commits)
    merge = _conflicts(here)
    without_result = _without_result(events)
    uncommitted, listed = _uncommitted(states, here, commits, by_others, merge, uses_git=bool(before.uncommitted))
    # What became of changes that a commit without a result may have taken, nobody has seen.
    if any(run.event in without_result and re.search(r"\bgit commit\b", run.key) for run in here):
        uncommitted, listed = [], {}
    branch, branch_record = _branch(here, branch_of_records) or (before.branch, -1)
    _place(states, commits, merge, branch)
    stash = _last_stash(here)
    stashed_at = stash.event if stash else 0
    not_stashed = {state.path: max(state.records, default=-1) for state in uncommitted if state.changed >= stashed_at}
    all_commits = (*commits, *_commits_elsewhere(away, elsewhere, states))
    changes = _changes_inside(operations, states)
    first_deed = min((*(one.event for one in changes), *(one.event for one in commits)), default=len(events))
    at_first, found_new, _ = _listed_by_git([run for run in here if run.event < first_deed], (), with_new=not changes)
    own = {end for path in not_stashed for end in ends_of(path)}
    return WorkState(
        branch=branch,
        branch_record=branch_record,
        ahead=_ahead(here, branch_record),
        commits=all_commits,
        uncommitted=_with_listed(not_stashed, listed),
        found_changed=frozenset(listed.keys() & at_first.keys() - own),
        found_new=frozenset(found_new),
        stashed=tuple(state.path for state in uncommitted if state.changed < stashed_at)
        or _still_stashed(before, here),
        stash_record=stash.result_record if stash else -1,
        elsewhere=elsewhere,
        older=frozenset(_older(runs, changes)),
        unpushed=_unpushed(all_commits, runs, before),
        is_pushed=before.is_pushed or any(_pushes(runs)),
        by_others=(by_others[0], by_others[1].result_record) if by_others else None,
        checks=tuple(standing_checks(runs, changes, before.checks)),
        without_result=without_result,
    )


def _without_result(events: Sequence[Event]) -> tuple[int, ...]:
    """The positions of the calls at the end that nothing answered; none where the client records no results."""
    calls = [number for number, event in enumerate(events) if event.kind is EventKind.CALL]
    answered = results_of(events).keys()
    ending = {number for number in calls if number >= len(events) - 8}
    return tuple(sorted(ending - answered)) if answered or len(ending) == len(calls) else ()


def _commits_elsewhere(
    runs: Sequence[Run], elsewhere: Mapping[int, str], states: Sequence[FileState]
) -> Iterator[Commit]:
    """The commits in other folders; sets the ``commit`` of the files there."""
    for folder in dict.fromkeys(elsewhere[run.event] for run in runs):
        there = [run for run in runs if elsewhere[run.event] == folder]
        files = [state for state in states if state.path.startswith(f"{folder}/")]
        commits = find_commits(there, "")
        held = held_by(files, commits, _ignored_by_git(there))
        for state in files:
            commit = held.get(state.path)
            state.commit = commit.name if commit else ""
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
    """The files whose last change is in no commit, and all that git listed as changed; sets the others' ``commit``.

    Left out are files of which that is not known, and those that git ignores. ``merge``: see `_conflicts`.
    """
    is_outside, is_ignored = _outside(states), _ignored_by_git(runs)
    merged_at, conflicts = merge
    here = [one for one in states if one.changed >= 0 and not (one.is_reverted or is_outside(one.path))]
    held = held_by(here, commits, is_ignored)
    # What git listed before others committed may be in their commit.
    since = by_others[1].event if by_others else -1
    # Where nothing was changed here, what was found is the work that is looked at.
    listed, untracked, before = _listed_by_git([run for run in runs if run.event > since], commits, with_new=not here)
    first = min((one.changed for one in here), default=0)
    uses_git |= any(_COMMITS.search(run.key) or (run.event > first and _COMPARES.search(run.key)) for run in runs)
    end = runs[-1].event if runs else 0
    unseen = {one.path for one in here if one.path not in held and is_ignored(one, end)}
    # Where git passes over a new file, its folder is ignored more often than that file alone.
    folders = {posixpath.dirname(one.path) for one in here if one.is_created and one.path in unseen} - {""}
    found: list[FileState] = []
    for state in here:
        # What a merge under way brings is listed as changed, too.
        is_merged = state.changed < merged_at and conflicts.isdisjoint(ends_of(state.path))
        is_listed = not listed.keys().isdisjoint(ends_of(state.path)) or _is_in(untracked, state.path)
        is_listed = is_listed and not is_merged
        commit = None if is_listed else held.get(state.path)
        state.commit = ", ".join((*earlier_hashes(state, commits, commit), commit.name)) if commit else ""
        is_in_another = by_others and state.changed < by_others[1].event
        is_passed_over = state.path in unseen or (state.is_created and posixpath.dirname(state.path) in folders)
        is_unknown = state.path in held or is_in_another or is_passed_over
        if uses_git and not state.is_deleted and (is_listed or not is_unknown):
            found.append(state)
            state.commit_before = next(reversed([*earlier_hashes(state, commits, None)]), "")
    named = {path: commit.name for commit in commits for path in commit.named}
    for state in (one for one in states if not one.is_changed):
        # What others wrote was committed with the rest.
        state.commit = named.get(state.path, "")
    own = {end for state in here for end in ends_of(state.path)}
    if merged_at >= 0:
        listed = {path: record for path, record in listed.items() if path in conflicts}
    return found, {**listed, **{path: record for path, record in before.items() if path not in own}}


# What shows that the session commits, and what compares the work tree with its last commit. Who looks at other commits,
# or at what was there before, may leave committing to the user.
_COMMITS = pattern(r"\bgit (?:commit|add|stash)\b")
_COMPARES = pattern(r"\bgit (?:status|diff)\b(?![^|;&]*(?:\.\.|HEAD[~^]))")


def _place(
    states: Sequence[FileState], commits: Sequence[Commit], merge: tuple[int, frozenset[str]], branch: str
) -> None:
    """Says of the ``commit`` of files on which other branch it is; takes it from those in an unresolved merge, unless
    the work in conflict is that of another branch. ``merge``: see `_conflicts`.
    """
    others = {commit.name: commit.branch for commit in commits if branch and commit.branch not in ("", branch)}
    merged_at, conflicts = merge
    for state in states:
        if state.commit in others:
            state.commit = f"{state.commit} ({others[state.commit]})"
        elif state.changed < merged_at and not conflicts.isdisjoint(ends_of(state.path)):
            state.commit = ""


def _conflicts(runs: Sequence[Run]) -> tuple[int, frozenset[str]]:
    """Where the newest merge that is not concluded stands, and the files in which it is to be resolved."""
    for run in reversed(runs):
        if conflicts := conflicting_files(run.line):
            return run.event, frozenset(conflicts)
        if CONCLUDES.search(run.key) and run.outcome is not CommandOutcome.FAILED:
            break
    return -1, frozenset()


def _ignored_by_git(runs: Sequence[Run]) -> Callable[[FileState, int], bool]:
    """Whether a `git status` between the last change of a file and an event names neither it nor its folder.

    Git ignores such a file, or it is as it was, or in a commit. What was changed is named by a switch of branches, too.
    """
    statuses = [
        (run.event, found[1].split(), run.output)
        for run in runs
        if run.outcome is CommandOutcome.OK or (run.outcome is CommandOutcome.UNKNOWN and "fatal:" not in run.output)
        # What else a line prints names more files, never fewer.
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
            # A new folder stands for what is in it, as seen from where the command ran.
            state.changed < at <= until and name not in text and not _is_in(text.split(), state.path)
            for at, asked, text in statuses
            if not asked or _is_in(asked, state.path)
        )

    return is_ignored


_SWITCHES = pattern(r"git (?:checkout|switch) [\w./-]*\w(?= *(?:$|[;&]))")
# What git says of it; a file that is put back by its name alone is called the same way.
_SWITCHED = pattern(r"^(?:Switched to branch|Already on) '", re.MULTILINE)


def _is_in(names: Iterable[str], path: str) -> bool:
    """Whether a path is one of these, or in a folder among them (`docs/`), as seen from any folder above it."""
    ends = (f"/{_UPWARDS.sub('', name)}" for name in names)
    return any(f"/{path}".endswith(end) or (end[-1] == "/" and end in f"/{path}") for end in ends if len(end) > 1)


_UPWARDS = pattern(r"^(?:\.{1,2}/)+")


def _commit_by_others(runs: Sequence[Run], commits: Sequence[Commit]) -> tuple[str, Run] | None:
    """The line of the newest commit that was made outside the session, and the `git log` that first showed it."""
    made = {commit.event: commit.hash for commit in commits}
    head, found = "", None
    for run in runs:
        shown = _LOGGED.match(run.output) if _LOG.match(run.key) else None
        if shown and head and not head.startswith(shown[2]) and not shown[2].startswith(head):
            found = (shown[1], run)
        is_moved = _TAKES_CHANGES.search(run.key) and run.outcome is not CommandOutcome.FAILED
        # The commit that a rebase goes on with has another name after it.
        known = "" if "--continue" in run.key else made.get(run.event, "")
        head = known or (shown[2] if shown else "" if is_moved else head)
    return found


# A log that begins with the commit that is checked out, and how it begins.
_LOG = pattern(
    r"git log(?: --oneline| -n? ?\d+| --decorate| --(?:format|pretty)=(?:\"[^\"]*\"|'[^']*'|\S+)| \S*[^\s.]\.\.HEAD)*"
    r"(?= *(?:$|[|;&]))"
)
_LOGGED = pattern(r"(?:commit )?(([0-9a-f]{7,40})\b.*)")
_WHOLE_STATUS = pattern(
    rf"{GIT}status(?: (?:-s|-sb|--short|--porcelain|--branch))*((?: [\w./@+][\w./@+-]*)*)(?: 2>&1)?"
)
_IS_CLEAN = pattern(r"^nothing to commit, working tree clean", re.MULTILINE)


def _listed_by_git(
    runs: Sequence[Run], commits: Sequence[Commit], *, with_new: bool = False
) -> tuple[dict[str, int], list[str], dict[str, int]]:
    """The files that `git status` or `git diff --stat` listed as changed since anything was done about changes, each
    with the record; the new ones, which are in no commit; and those changed that no commit since then named.

    ``with_new``: new files are among the changed ones, too.
    """
    made = {commit.event: commit for commit in commits}
    taken_since: list[str] | None = None
    for run in reversed(runs):
        taken, shown = (
            max((one.start() for one in form.finditer(run.key)), default=-1)
            for form in (_TAKES_CHANGES, _LISTS_CHANGES)
        )
        names = _LISTS_NAMES.search(run.key) if "|" not in run.command else None
        shown = names.start() if names else shown
        if shown > taken and run.outcome is not CommandOutcome.UNKNOWN:
            listed_as = _NAMED_ALONE if names else _LISTED
            named = (next(filter(None, found)) for found in listed_as.findall(run.output))
            _, _, new = run.output.partition("\nUntracked files:")
            # As seen from the root, wherever git was asked.
            shown_paths = (_UPWARDS.sub("", path) for path in named if not path.startswith("..."))
            changed = dict.fromkeys(shown_paths, run.result_record)
            if not changed and run.output.strip() and "git status" not in run.key:
                continue  # a difference line by line, which lists nothing
            if taken_since is not None:
                folders = tuple(f"{name.rstrip('/')}/" for name in taken_since)
                return {}, [], {path: at for path, at in changed.items() if not f"{path}/".startswith(folders)}
            untracked = [*_NEW_SHORT.findall(run.output), *_NEW.findall(new.partition("\n\n")[0])]
            files = (path for path in untracked if with_new and not path.endswith("/"))
            return {**dict.fromkeys(files, run.result_record), **changed}, untracked, {}
        if taken >= 0 and run.outcome is not CommandOutcome.FAILED:
            commit = made.get(run.event)
            if (
                commit is None
                or commit.takes_all is not False
                or commit.size > len(commit.named)
                or set(_TAKES_CHANGES.findall(run.key)) != {"git commit"}
            ):
                break
            taken_since = [*(taken_since or ()), *commit.named]
    return {}, [], {}


_TAKES_CHANGES = pattern(r"\bgit (?:commit|stash|reset|checkout|restore|switch|merge|rebase|pull|cherry-pick)\b")
_LISTS_CHANGES = pattern(
    r"\bgit (?:status\b|diff(?: --(?:stat|cached|staged)| -- \S+)*(?= *(?:$|[|;&])))(?!.*--(?:name-only|no-))"
)
# A list of names and nothing else, whole.
_LISTS_NAMES = pattern(r"\bgit diff(?: --(?:cached|staged))* --name-only(?: --(?:cached|staged))*$")
_NAMED_ALONE = pattern(r"^()([\w./@-]+)$", re.MULTILINE)
# The long form of a status, its short one, and the one of differences.
_LISTED = pattern(
    r"^\s*(?:modified|deleted|both modified|renamed|new file): +(?:\S+ -> )?(\S+)$"
    r"|^(?:[MADRU][MADRU ]|[ ]?[MD]) (?:\S+ -> )?([\w./@-]+)$|^ (\S+) +\| +(?:\d+ [+-]+|Bin )",
    re.MULTILINE,
)


_NEW, _NEW_SHORT = pattern(r"^\s+([^\s(]\S*)$", re.MULTILINE), pattern(r"^\?\? (\S+)$", re.MULTILINE)


def _with_listed(uncommitted: dict[str, int], listed: Mapping[str, int]) -> dict[str, int]:
    """The files with some of the others that git lists."""
    known = {end for path in uncommitted for end in ends_of(path)}
    return uncommitted | {
        path: listed[path] for path in islice((one for one in listed if one not in known), _MAX_LISTED)
    }


def ends_of(path: str) -> list[str]:
    """A path as it may be written from each of the folders above it."""
    parts = path.split("/")
    return ["/".join(parts[first:]) for first in range(len(parts))]


_MAX_LISTED = 200


def _throw_away(states: Sequence[FileState], runs: Sequence[Run], commits: Sequence[Commit]) -> None:
    """Marks the files whose changes since the last commit a later `git reset --hard` or the like threw away; not those
    of which edits were taken back by others after a commit: that is a change like any other."""
    committed = commits[-1].event if commits else -1
    resets = [run.event for run in runs if run.outcome is CommandOutcome.OK and _RESET.search(run.command)]
    for state in states:
        if any(committed < state.changed < event for event in resets) and not state.is_created:
            state.is_reverted = True
        is_undone = state.is_reverted and not (state.edits or state.is_created) and len(state.records) > 1
        if is_undone and any(state.records[0] < commit.record < state.records[-1] for commit in commits):
            state.is_reverted, state.edits = False, 1


_RESET = pattern(r"\bgit (?:reset --hard|checkout (?:-- )?\.|restore \.)(?:\s|$)")


def _last_stash(runs: Sequence[Run]) -> Run | None:
    """The newest run that put changes away, if none brought them back after it."""
    for run in reversed(runs):
        found = STASHES.search(run.command)
        if found and run.outcome is CommandOutcome.OK and found[1] not in ("list", "show", "drop"):
            return run if (found[1] or "") in PUTS_AWAY and "git stash pop" not in run.command else None
    return None


def _still_stashed(before: WorkState, runs: Sequence[Run]) -> tuple[str, ...]:
    return () if any("git stash" in run.key for run in runs) else before.stashed


_ON_BRANCH = pattern(
    r"^(?:On branch |Already on '|Switched to (?:a new )?branch '|branch ')([\w./-]+)"
    r"|^\[([\w./-]+) (?:\(root-commit\) )?[0-9a-f]{7}|^[^\w\s] ([\w./-]+?)\.\.\.[\w./-]+(?: \[[^\]\n]*\])?$",
    re.MULTILINE,
)
# How `git status -sb` and `git branch` mark it: in other texts these are headings and entries of lists.
_MARKED_BRANCH = pattern(r"^(?:## ([\w./-]+?)(?:\.\.\..*)?|\* ([\w./-]+).*)$", re.MULTILINE)
_MARKS_BRANCH = pattern(r"git (?:branch|status(?: -\S+)* (?:-s?b|--branch))\b")


def _branch(runs: Sequence[Run], of_records: tuple[str, int]) -> tuple[str, int] | None:
    """The branch that git, or a record after that, named last, and the record that shows it; None where none did."""
    named = _named_branch(runs)
    return of_records if of_records[0] and of_records[1] > (named[1] if named else -1) else named


def _named_branch(runs: Sequence[Run]) -> tuple[str, int] | None:
    for run in reversed(runs):
        if not re.search(r"\b(?:git|gh)\b", run.command) or "git log" in run.key:
            continue
        printed = run.output.strip().split("\n") if "--show-current" in run.key else []
        place = 0 if run.key.startswith("git branch --show-current") else -1
        if printed and (len(printed) == 1 or _SHOWS_CURRENT.search(run.key)) and _IS_NAME.fullmatch(printed[place]):
            return printed[place], run.result_record
        form = _MARKED_BRANCH if _MARKS_BRANCH.match(run.key) else _ON_BRANCH
        found = form.findall(run.output[:20_000])
        if found and (name := "".join(found[-1])) and name not in ("detached", "HEAD"):
            return name, run.result_record
    return None


# At the beginning of a line, or at its end.
_SHOWS_CURRENT = pattern(r"\Agit branch --show-current\b|\bgit branch --show-current\Z")
_IS_NAME = pattern(r"[\w./-]+")


def _ahead(runs: Sequence[Run], branch_record: int) -> str:
    """How far the branch is from the one that it follows, where the run that named it says so and nothing moved it."""
    for run in reversed(runs):
        if run.result_record == branch_record and "git status" in run.key and (found := _AHEAD.search(run.output)):
            return " ".join((found[1] or found[2] or found[3]).split())
        if run.result_record == branch_record or _MOVES_BRANCH.search(run.key):
            break
    return ""


_AHEAD = pattern(
    r"^(?:##|[^\w\s]) \S+ \[([^\]\n]+)\]|^Your branch is ((?:ahead|behind)\b[^\n,]*?by \d+ commits?)"
    r"|^Your branch and '[^'\n]+' (have diverged,\nand have \d+ and \d+ different commits)",
    re.MULTILINE,
)
_MOVES_BRANCH = pattern(rf"\b{GIT}(?:commit|push|rebase|reset|merge|pull|fetch|checkout|switch)\b")


def _older(runs: Sequence[Run], changes: Sequence[FileOperation]) -> Iterator[int]:
    """The runs that execute, build or format the code of the work, or check it, before changes of what they cover.

    Tests that were written since make no run of the code itself older; what git brought into the work tree does.
    """
    brought = max((run.event for run in runs if _BRINGS.search(run.key) and _brings_code(run.output)), default=-1)
    for run in runs:
        checks = is_check(run.command)
        is_run = checks or _EXECUTES.search(unquoted(run.command))
        if not is_run:
            continue
        if run.event < brought or any(checks or not OF_TESTS.search(one.path) for one in covered_since(run, changes)):
            yield run.event


_BRINGS = pattern(rf"\b{GIT}(?:merge|pull|rebase|cherry-pick|revert|am|stash (?:pop|apply))\b")
_BROUGHT = pattern(r"^(?:Auto-merging |CONFLICT |Fast-forward\b|Merge made by |Updating [0-9a-f]{7})", re.MULTILINE)


_CHANGED_FILE = pattern(r"^ (\S+) +\| +\d+", re.MULTILINE)


def _brings_code(output: str) -> bool:
    """Whether git says that it brought something into the work tree, and lists not only prose."""
    changed = _CHANGED_FILE.findall(output)
    is_prose = bool(changed) and all(path.endswith(PROSE) for path in changed)
    return not is_prose and _BROUGHT.search(output) is not None


_EXECUTES = pattern(
    r"(?<![\w/-])(?:build|fmt|format|gofmt|black|prettier|rustfmt)(?![\w/-])|(?:^|[;&]\s*)(?:\w+=\S+\s+)*"
    r"(?:python3? (?!-m (?:pip|venv)\b|-V|--version)|node (?!-v\b|--version)|go run |cargo run|deno run|bun run|\./)\S"
)


def _unpushed(commits: Sequence[Commit], runs: Sequence[Run], before: WorkState) -> tuple[Commit, ...]:
    """The commits after the newest push, or after git reported that nothing is left to push of their branch.

    None where neither was seen: nobody may want it.
    """
    pushes = list(_pushes(runs))
    shown = (run for run in runs if "git status" in run.key)
    in_step = {found[1]: run.event for run in shown if (found := _IN_STEP.search(run.output))}
    pushed = {branch: max((at, *pushes[-1:])) for branch, at in in_step.items()}
    default = pushes[-1] if pushes else _BEFORE if before.is_pushed else None
    known = () if any(_REPLACES.search(run.key) for run in runs) else before.unpushed
    return tuple(
        commit
        for commit in (*known, *commits)
        if (at := pushed.get(commit.branch, default)) is not None and commit.event > at
    )


def _pushes(runs: Sequence[Run]) -> Iterator[int]:
    """Where pushes stand that went well, by their outcome, or in a longer line by what git says of them."""
    pushing = (run for run in runs if PUSHES.search(run.key) and run.outcome is not CommandOutcome.FAILED)
    return (run.event for run in pushing if run.outcome is CommandOutcome.OK or _PUSHED.search(run.output))


_PUSHED = pattern(r"^ +(?:[0-9a-f]{7,}\.{2,3}[0-9a-f]{7,}|\* \[new branch\]) +\S+ -> \S+", re.MULTILINE)


# Before all events, those of commits that are known from before among them.
_BEFORE = -2
# What makes other commits of those that there were.
_REPLACES = pattern(r"\bgit (?:reset|rebase|commit\b.* --amend)\b")
_IN_STEP = pattern(r"Your branch is up to date with '[^/'\s]+/([^'\s]+)'")
