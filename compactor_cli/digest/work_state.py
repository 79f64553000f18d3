"""The state of the work: commits, what is not in them, test runs older than the edits, calls without a result."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from compactor_cli.digest.commands import CommandOutcome, Run
from compactor_cli.digest.files import FileAction, FileOperation, FileState
from compactor_cli.digest.transcript_events import Event, EventKind, results_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit that a run made: its branch and hash as git wrote them, and where the run stands."""

    branch: str
    hash: str
    event: int
    record: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkState:
    """What a colleague must know of the work tree.

    ``branch``: as git named it last, in the record ``branch_record`` (-1: unknown). ``stale``: test runs that passed
    before files changed again. ``uncommitted``: files changed after the last commit (or reset), where any git command
    shows that commits are made. ``stashed``: those that `git stash` put away in the record ``stash_record``, and that
    were not brought back. ``without_result``: positions of calls at the end that nothing answered.
    """

    branch: str = ""
    branch_record: int = -1
    commits: tuple[Commit, ...] = ()
    uncommitted: tuple[str, ...] = ()
    stale: tuple[tuple[Run, tuple[FileOperation, ...]], ...] = ()
    without_result: tuple[int, ...] = ()
    stashed: tuple[str, ...] = ()
    stash_record: int = -1


@cache
def _commit() -> re.Pattern[str]:
    return re.compile(r"^\[([\w./-]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\]", re.MULTILINE)


@cache
def _test() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest)\b|\b(?:go|cargo|npm|yarn|pnpm|bun|mvn|make|mix"
        r"|dotnet|swift|deno|gradlew?|rake|mise run) (?:run )?(?:test|check|lint|verify)\S*|\btest:\w+|\blint\b|\btsc\b"
    )


def is_test(command: str) -> bool:
    """Whether a command checks the work: tests, lint, types."""
    return _test().search(_quoted().sub("", command.partition("<<")[0])) is not None


@cache
def _quoted() -> re.Pattern[str]:
    return re.compile(r"\"[^\"]*\"?|'[^']*'?")


def is_throwaway(path: str) -> bool:
    """Whether a path lies where nothing is meant to stay."""
    return path.startswith(("/tmp/", "/var/", "/private/tmp/", "/dev/"))  # noqa: S108 (a name is looked at, no file)


def _outside(states: Sequence[FileState]) -> Callable[[str], bool]:
    """Whether a path is outside the work tree: in a home folder, or absolute where those of the tree are relative."""
    has_relative = any(state.is_changed and not state.path.startswith(("/", "~")) for state in states)
    return lambda path: path.startswith("~/") or (has_relative and path.startswith("/"))


def work_state(
    events: Sequence[Event], runs: Sequence[Run], operations: Sequence[FileOperation], states: Sequence[FileState]
) -> WorkState:
    """The state at the end; sets each file state's ``commit`` where a commit holds its last change."""
    commits = tuple(_commits(events, runs))
    changes = [one for one in operations if one.action is not FileAction.READ and not is_throwaway(one.path)]
    uses_git = any(re.search(r"\bgit (?:commit|add|status|diff|stash)\b", run.command) for run in runs)
    last = commits[-1].event if commits else -1
    is_outside = _outside(states)
    uncommitted: list[str] = []
    for state in states:
        if not state.is_changed or state.changed < 0 or is_throwaway(state.path) or is_outside(state.path):
            continue
        if state.changed < last:
            state.commit = next((commit.hash for commit in commits if commit.event > state.changed), "")
        elif uses_git and not state.is_deleted:
            uncommitted.append(state.path)
    stash = _last_stash(runs)
    stashed = [path for path in uncommitted if stash and _changed_before(path, stash.event, states)]
    answered = results_of(events)
    ending = [number for number in range(max(0, len(events) - 8), len(events)) if events[number].kind is EventKind.CALL]
    branch, branch_record = _branch(events, runs)
    return WorkState(
        branch=branch,
        branch_record=branch_record,
        commits=commits,
        uncommitted=tuple(path for path in uncommitted if path not in stashed),
        stashed=tuple(stashed),
        stash_record=stash.result_record if stash else -1,
        stale=tuple(_stale(runs, changes)),
        without_result=tuple(number for number in ending if number not in answered),
    )


def _last_stash(runs: Sequence[Run]) -> Run | None:
    """The newest run that put changes away, if none brought them back after it."""
    for run in reversed(runs):
        found = re.search(r"\bgit stash\b(?: (?!-)(\w+))?", run.command)
        if found and run.outcome is CommandOutcome.OK and found[1] not in ("list", "show", "drop"):
            return run if found[1] in (None, "push", "save") and "git stash pop" not in run.command else None
    return None


def _changed_before(path: str, event: int, states: Sequence[FileState]) -> bool:
    return any(state.path == path and state.changed < event for state in states)


@cache
def _on_branch() -> re.Pattern[str]:
    return re.compile(
        r"^(?:On branch |Switched to (?:a new )?branch '|branch ')([\w./-]+)"
        r"|^\[([\w./-]+) (?:\(root-commit\) )?[0-9a-f]{7}|^(?:##|\*) ([\w./-]+)",
        re.MULTILINE,
    )


def _branch(events: Sequence[Event], runs: Sequence[Run]) -> tuple[str, int]:
    """The branch that git named last, and the record that shows it."""
    results = results_of(events)
    for run in reversed(runs):
        result = results.get(run.event)
        if result is None or not re.search(r"\b(?:git|gh)\b", run.command):
            continue
        if "--show-current" in run.command and len(result.text.split()) == 1:
            return result.text.strip(), result.record
        found = _on_branch().findall(result.text[:20_000])
        if found and (name := "".join(found[-1])) and name not in ("detached", "HEAD"):
            return name, result.record
    return "", -1


def _commits(events: Sequence[Event], runs: Sequence[Run]) -> list[Commit]:
    results = results_of(events)
    found: list[Commit] = []
    for run in runs:
        result = results.get(run.event)
        if result is None or "commit" not in run.command or run.outcome is CommandOutcome.FAILED:
            continue
        if line := _commit().search(result.text):
            found.append(Commit(branch=line[1], hash=line[2], event=run.event, record=result.record))
    return found


def _stale(runs: Sequence[Run], changes: Sequence[FileOperation]) -> list[tuple[Run, tuple[FileOperation, ...]]]:
    """The newest passing test run, where files changed after it and none passed since."""
    passed = [run for run in runs if run.outcome is CommandOutcome.OK and is_test(run.command)]
    if not passed:
        return []
    since = tuple(change for change in changes if change.event > passed[-1].event)
    return [(passed[-1], since)] if since else []
