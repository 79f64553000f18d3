"""Statuses that a record shows: errors (fixed and by what, failing when last seen, changed since and not run), commits,
what is not in them, test runs older than the edits, calls without a result.

A failing run is fixed by a later passing run of the same command or of one that contains it (the whole suite contains
one test). A command that failed and was followed by another way to the same end has that as its fix. Slips of
exploration (a search without a hit, a wrong path) are no errors, nor is a call that the user turned down.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import lru_cache
from itertools import islice

from compactor_cli.digest.commands import CommandOutcome, Run, error_line
from compactor_cli.digest.events import Event, EventKind, FileAction, ToolKind, is_lookup, results_of
from compactor_cli.digest.files import FileOperation, FileState, is_throwaway
from compactor_cli.digest.statements import sentences
from compactor_cli.model.value import dataclass

# Another way to the same end comes soon, or it is another matter.
_MAX_STEPS_TO_OTHER_WAY = 3
# Runs that are looked through for one that passes: time stays linear in very long sessions.
_MAX_LATER = 300
# An error of this many events ago is still what the work is about.
_RECENT_EVENTS = 40
# What is said of an error follows it closely.
_MAX_EXPLAINING = 6
_SLIPS = re.compile(
    r"<tool_use_error>|Command aborted|[Ff]ile does not exist|File has not been read yet|EISDIR"
    r"|Found \d+ matches of the string|String to replace not found"
    r"|File has been (?:modified|unexpectedly modified)|InputValidationError|no such file or directory: ?\S*$"
    r"|No matches found|exceeds maximum allowed (?:tokens|size)|No files? found"
    r"|unknown flag|illegal option|parse error near|no matches found: "
)


class Status(StrEnum):
    """What became of an error."""

    FIXED = "fixed"
    FAILING = "failing"
    CHANGED_SINCE = "changed since"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """An error line of a command or tool, the record that shows it, and its status at the end.

    ``fixes``: the files changed between its last sight and the run that did not show it any more, or since then
    where nothing ran. ``other_way``: the command that did it after this one failed. ``records``: of error, change, run.
    ``explained``: what the assistant said of one that was let be.
    """

    line: str
    command: str
    event: int
    status: Status
    fixes: tuple[str, ...] = ()
    other_way: str = ""
    records: tuple[int, ...] = ()
    explained: str = ""


def is_open(error: ErrorRecord, number_of_events: int) -> bool:
    """Whether an error is still to be dealt with: of a check of the work, or of what was done last.

    A command that failed on the way to something else, and was let go, is none.
    """
    if error.status is Status.FIXED:
        return False
    return is_test(error.command) or (error.event >= number_of_events - _RECENT_EVENTS and not error.explained)


def is_shown(error: ErrorRecord, number_of_events: int) -> bool:
    """Whether an error stands among those that are open or fixed."""
    return error.status is Status.FIXED or is_open(error, number_of_events)


def find_errors(
    events: Sequence[Event], runs: Sequence[Run], operations: Sequence[FileOperation]
) -> tuple[ErrorRecord, ...]:
    """Every error of a command that does something, and of tools that are neither commands nor file work, in order."""
    acting = sorted((*_tool_runs(events), *(run for run in runs if not run.is_look)), key=lambda run: run.event)
    changes = [operation for operation in operations if operation.action is not FileAction.READ]
    newest: dict[tuple[str, str], ErrorRecord] = {}
    for number, run in enumerate(acting):
        if run.outcome is CommandOutcome.FAILED and run.line and not _SLIPS.search(run.line):
            later = acting[number + 1 : number + 1 + _MAX_LATER]
            if any(other.line == run.line and other.outcome is CommandOutcome.FAILED for other in later):
                continue  # seen again: its last sight decides
            found = _judged(run, later, changes)
            explained = _explained(events, run.event) if found.status is not Status.FIXED else ""
            newest[run.key, run.line] = replace(found, explained=explained)
    return tuple(sorted(newest.values(), key=lambda error: error.event))


# What the assistant says of an error that is none of the work's, or needs nothing.
_EXPLAINS = re.compile(
    r"\b(?:pre-?existing|unrelated|not (?:related|caused)|(?:is|are|was|were|as|be) expected|known (?:issue|failure)"
    r"|flaky|(?:that|this|it)(?:'s| is) (?:fine|ok(?:ay)?|harmless|normal)|(?:can|could|safe to) (?:be )?ignored?)\b",
    re.IGNORECASE,
)


def _explained(events: Sequence[Event], start: int) -> str:
    """The sentence that lets an error be, in what the assistant says next."""
    spoken = (event.text for event in events[start + 1 : start + _MAX_EXPLAINING] if event.kind is EventKind.ASSISTANT)
    return next((one for text in islice(spoken, 1) for one in sentences(text) if _EXPLAINS.search(one)), "")


def _judged(run: Run, later: Sequence[Run], changes: Sequence[FileOperation]) -> ErrorRecord:
    passed = next(
        (other for other in later if other.outcome is CommandOutcome.OK and contains(other.key, run.key)), None
    )
    end = passed.event if passed else None
    between = [change for change in changes if change.event > run.event and (end is None or change.event < end)]
    fixes = tuple(dict.fromkeys(change.path for change in between))
    records = [
        run.result_record,
        *(change.record for change in between[-1:]),
        *([passed.result_record] if passed else []),
    ]
    status = Status.FIXED if passed else Status.CHANGED_SINCE if fixes else Status.FAILING
    is_check = is_test(run.command)
    # An edit of the file that the error names is what there was to do about it, not another command.
    is_edited = any(path.rpartition("/")[2] in run.line for path in fixes)
    instead = None if (fixes and is_check) or is_edited else _suggested(run, later) or _other_way(run, later)
    other = None if passed else _wider_check(run, later) or instead or _other_lookup(run, later)
    if other:
        status, records = Status.FIXED, [run.result_record, other.result_record]
    return ErrorRecord(
        line=run.line,
        command=run.command,
        event=run.event,
        status=status,
        fixes=fixes,
        other_way=other.command if other else "",
        records=tuple(dict.fromkeys(records)),
    )


def _suggested(run: Run, later: Sequence[Run]) -> Run | None:
    """The run that an error line asks for: `use: cargo autopilot`."""
    found = re.search(
        r"\b(?:use|try|run|did you mean)\b:?\s+[`'\"]?([a-z][\w.-]*(?: [a-z][\w.:-]*)?)", run.line, re.IGNORECASE
    )
    asked = found[1] if found else ""
    return next(
        (one for one in later if asked and one.outcome is CommandOutcome.OK and one.key.startswith(asked)), None
    )


def _other_way(run: Run, later: Sequence[Run]) -> Run | None:
    """The next command of the same programs that went well, where it comes soon."""
    programs = _programs(run.command)
    for other in later[:_MAX_STEPS_TO_OTHER_WAY]:
        is_help = re.search(r"(?:^|\s)(?:-h|--help|--version)\b", other.command)
        if is_help or other.outcome is not CommandOutcome.OK or other.key == run.key:
            continue
        if programs & _programs(other.command) or _builds_same(run.key, other.key):
            return other
    return None


def _builds_same(key: str, other: str) -> bool:
    """Whether two runs of a build tool have the same targets: `go build ./x`, then `go test -c ./x`."""
    tool, targets = key.partition(" ")[0], set(_targets(key))
    is_build = tool in _RUNNERS and tool not in ("git", "gh", "docker", "kubectl")
    return is_build and bool(targets) and other.startswith(f"{tool} ") and targets <= set(_targets(other))


def _other_lookup(run: Run, later: Sequence[Run]) -> Run | None:
    """The next look-up of the same thing that found it: `find_user_by_mail`, then `find_user_by_name`."""
    if not is_lookup(run.key):
        return None
    same = "_".join(run.key.split("_")[:2])
    return next((one for one in later if one.outcome is CommandOutcome.OK and one.key.startswith(same)), None)


def _programs(command: str) -> frozenset[str]:
    """The programs of a command line, those with subcommands with theirs; what only shows or enters aside."""
    found: set[str] = set()
    for segment in re.split(r"&&|\|\||[;|\n]", re.sub(r"\"[^\"]*\"|'[^']*'", "q", command.partition("<<")[0])):
        words = [word for word in segment.split() if not re.match(r"\w+=|-", word)]
        if words and words[0] not in ("cd", "q", "echo", "grep", "head", "tail", "cat", "sleep", "export"):
            found.add(" ".join(words[: 2 if words[0] in _RUNNERS else 1]))
    return frozenset(found)


def _wider_check(run: Run, later: Sequence[Run]) -> Run | None:
    """The newest run without targets of another check (lint, types, not tests) of the same tools that passed."""
    family = _check_family(run.command)
    passed = (other for other in reversed(later) if other.outcome is CommandOutcome.OK)
    return next((o for o in passed if family and _check_family(o.command) == family and not _targets(o.key)), None)


def _check_family(command: str) -> str:
    """Whose checks of the code, tests aside, a command runs; empty if it runs none that is known."""
    if not re.search(r"\b(?:check|verify|lint|tsc|typecheck|type-check|eslint)\b", command):
        return ""
    return "js" if re.search(r"\b(?:npm|npx|yarn|pnpm|bun)\b", command) else ""


def _targets(key: str) -> list[str]:
    words = _chain(key)[-1].split() if _chain(key) else []
    return [word for word in words if "/" in word or "." in word]


def contains(whole: str, part: str) -> bool:
    """Whether running ``whole`` runs what failed in ``part``: the same, or its program on all or on a folder of it.

    Of a chain of commands, the last is what failed: those before it went well.
    """
    if whole == part:
        return True
    narrow = _chain(part)[-1:]
    return bool(narrow) and any(_covers(wide.split(), narrow[0].split()) for wide in _chain(whole))


def _chain(key: str) -> list[str]:
    return [piece.strip() for piece in re.split(r"&&|;|\|\|", key) if piece.strip()]


def _covers(wide: Sequence[str], narrow: Sequence[str]) -> bool:
    depth = (3 if narrow[0] == "mise" else 2) if narrow[0] in _RUNNERS else 1
    if wide[:depth] != narrow[:depth]:
        return False
    if wide == narrow:
        return True
    targets = [word for word in wide[depth:] if not word.startswith("-")]
    if not targets:
        return not _selects(wide)
    named = [word for word in narrow[depth:] if not word.startswith("-")]
    below = all(any(_is_below(name, target) for target in targets) for name in named)
    return not _selects(wide) and bool(named) and below


_RUNNERS = frozenset(
    "go npm npx git gh docker kubectl yarn pnpm cargo mise make uv poetry python python3 bun deno dotnet mvn"
    " gradle just rake".split()
)


_SELECTING = frozenset(("-k", "-run", "--run", "-t", "--grep", "--filter"))


def _selects(words: Sequence[str]) -> bool:
    """Whether an option chooses some of the tests only."""
    return any(word in _SELECTING or word.startswith(("-run=", "--filter=")) for word in words)


def _is_below(name: str, target: str) -> bool:
    folder = target.removesuffix("...").rstrip("/")
    return folder in ("", ".") or name == target or name.startswith((f"{folder}/", f"{folder}::"))


def _tool_runs(events: Sequence[Event]) -> list[Run]:
    """Calls of other tools (a booking, a query) as runs: one that failed may be made again with success."""
    found: list[Run] = []
    for event in events:
        call = events[event.call] if event.kind is EventKind.RESULT and event.call >= 0 else None
        if call is None or call.tool is not ToolKind.OTHER or event.is_refusal:
            continue
        failed = event.is_error or event.text.lstrip().startswith(("Error", '{"error"', "错误"))
        found.append(
            Run(
                command=call.name,
                key=call.name,
                event=event.call,
                record=call.record,
                result_record=event.record,
                outcome=CommandOutcome.FAILED if failed else CommandOutcome.OK,
                line=error_line(event.text) if failed else "",
            )
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit that a run made: its branch, hash and subject as git wrote them, and where the run stands.

    ``staged``: the paths that were named to `git add` before it, between slashes; None where it may hold all changes.
    """

    branch: str
    hash: str
    subject: str
    event: int
    record: int
    staged: tuple[str, ...] | None = None

    def holds(self, state: FileState) -> bool:
        """Whether it holds the last change of a file; either path may be written from a deeper folder."""
        if state.changed >= self.event:
            return False
        path = f"/{state.path.strip('/')}/"
        return self.staged is None or any(named in path or named.endswith(path) for named in self.staged)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkState:
    """What a colleague must know of the work tree.

    ``branch``: as git named it last, in the record ``branch_record`` (-1: unknown). ``stale``: test runs that passed
    before files changed again. ``uncommitted``: files changed after the last commit (or reset), where any git command
    shows that commits are made. ``stashed``: those that `git stash` put away in the record ``stash_record``, and that
    were not brought back. ``without_result``: positions of calls at the end that nothing answered. ``made``: by turn,
    the commits made and the addresses of what was opened on a server.
    """

    branch: str = ""
    branch_record: int = -1
    commits: tuple[Commit, ...] = ()
    uncommitted: tuple[str, ...] = ()
    stale: tuple[tuple[Run, tuple[FileOperation, ...]], ...] = ()
    without_result: tuple[int, ...] = ()
    stashed: tuple[str, ...] = ()
    stash_record: int = -1
    unpushed: tuple[Commit, ...] = ()
    older: frozenset[int] = frozenset()
    elsewhere: Mapping[int, str] = field(default_factory=dict)


_COMMIT = re.compile(r"^\[([\w./-]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\](.*)", re.MULTILINE)


_TEST = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest)\b|\b(?:go|cargo|npm|yarn|pnpm|bun|mvn|make|mix"
    r"|dotnet|swift|deno|gradlew?|rake|mise run) (?:run )?(?:test|check|lint|verify|vet|clippy)\S*|\btest:\w+|\blint\b"
    r"|\btsc\b|\b(?:ruff check|mypy|pyright|flake8|eslint|golangci-lint)\b"
)


def is_test(command: str) -> bool:
    """Whether a command checks the work: tests, lint, types."""
    return _TEST.search(_QUOTED.sub("", command.partition("<<")[0])) is not None


_QUOTED = re.compile(r"\"[^\"]*\"?|'[^']*'?")


def _outside(states: Sequence[FileState]) -> Callable[[str], bool]:
    """Whether a path is outside the work tree: in a home folder, or absolute where those of the tree are relative."""
    has_relative = any(state.is_changed and not state.path.startswith(("/", "~")) for state in states)
    return lambda path: path.startswith("~/") or (has_relative and path.startswith("/"))


def _elsewhere(runs: Sequence[Run], states: Sequence[FileState], directory: str) -> dict[int, str]:
    """The folders of the runs in another folder than the one that paths are relative to, by position."""
    has_relative = any(not state.path.startswith(("/", "~")) for state in states)
    changed = [state.path for state in states if state.is_changed]
    folders = {run.event: _folder(run.command) for run in runs}
    return {
        event: folder
        for event, folder in folders.items()
        if folder.startswith(("/", "~")) and folder.rstrip("/") != directory
        # Where all paths are whole, the work may be in that folder.
        if has_relative or (is_throwaway(f"{folder}/") and not any(path.startswith(f"{folder}/") for path in changed))
    }


def _folder(command: str) -> str:
    """The folder in which a command line calls git, else the one that it enters first; empty where it enters none."""
    first, folder = "", ""
    for number, segment in enumerate(re.split(r"&&|\|\||[;|\n]", command.partition("<<")[0])):
        match [word.strip("\"'") for word in segment.split()]:
            case ["git", "-C", place, *_]:
                return posixpath.join(folder, place)
            case ["git" | "gh", *_]:
                return folder
            case ["cd" | "pushd", place, *_]:
                folder = posixpath.join(folder, place)
                first = first if number else folder
    return first


def work_state(
    events: Sequence[Event],
    runs: Sequence[Run],
    operations: Sequence[FileOperation],
    states: Sequence[FileState],
    directory: str = "",
) -> WorkState:
    """The state at the end; sets each file state's ``commit`` where a commit holds its last change.

    ``directory``: where the session works, as its records name it.
    """
    results = results_of(events)
    elsewhere = _elsewhere(runs, states, directory)
    found = _commits(results, runs)
    commits = tuple(commit for commit in found if not is_throwaway(f"{elsewhere.get(commit.event, '')}/"))
    runs_here = [run for run in runs if run.event not in elsewhere]
    commits_here = [commit for commit in commits if commit.event not in elsewhere]
    changes = [one for one in operations if one.action is not FileAction.READ and not is_throwaway(one.path)]
    uses_git = any(re.search(r"\bgit (?:commit|add|status|diff|stash)\b", run.command) for run in runs_here)
    last = commits_here[-1].event if commits_here else -1
    is_outside = _outside(states)
    _throw_away(states, runs_here, last)
    uncommitted: list[FileState] = []
    for state in states:
        if state.is_reverted:
            continue
        if not state.is_changed or state.changed < 0 or is_throwaway(state.path) or is_outside(state.path):
            continue
        state.commit = next((commit.hash for commit in commits_here if commit.holds(state)), "")
        if uses_git and not (state.commit or state.is_deleted or _is_passed_over(state, runs_here, results)):
            uncommitted.append(state)
    stash = _last_stash(runs_here)
    stashed_at = stash.event if stash else 0
    ending = [number for number in range(max(0, len(events) - 8), len(events)) if events[number].kind is EventKind.CALL]
    branch, branch_record = _branch(results, runs_here)
    return WorkState(
        branch=branch,
        branch_record=branch_record,
        commits=commits,
        uncommitted=tuple(state.path for state in uncommitted if state.changed >= stashed_at),
        stashed=tuple(state.path for state in uncommitted if state.changed < stashed_at),
        stash_record=stash.result_record if stash else -1,
        elsewhere=elsewhere,
        older=frozenset(_older(runs, changes)),
        unpushed=_unpushed(commits, runs),
        stale=tuple(_stale(runs, changes)),
        without_result=tuple(number for number in ending if number not in results),
    )


def _is_passed_over(state: FileState, runs: Sequence[Run], results: Mapping[int, Event]) -> bool:
    """Whether the whole of a `git status` after the last change of a file names neither it nor its folder: ignored."""
    *folders, name = state.path.split("/")
    for run in runs:
        is_whole = run.event > state.changed and _WHOLE_STATUS.fullmatch(run.command) is not None
        if is_whole and run.outcome is CommandOutcome.OK and run.event in results:
            text = results[run.event].text
            if name not in text and not any(f"{folder}/" in text for folder in folders if folder):
                return True
    return False


_WHOLE_STATUS = re.compile(r"\s*(?:cd \S+ && )?git status(?: (?:-s|-sb|--short|--porcelain|--branch))*\s*")


def _throw_away(states: Sequence[FileState], runs: Sequence[Run], committed: int) -> None:
    """Marks the files whose changes since the last commit a later `git reset --hard` or the like threw away."""
    resets = [run.event for run in runs if run.outcome is CommandOutcome.OK and _RESET.search(run.command)]
    for state in states:
        if any(committed < state.changed < event for event in resets) and not state.is_created:
            state.is_reverted = True


_RESET = re.compile(r"\bgit (?:reset --hard|checkout (?:-- )?\.|restore \.)(?:\s|$)")


def _last_stash(runs: Sequence[Run]) -> Run | None:
    """The newest run that put changes away, if none brought them back after it."""
    for run in reversed(runs):
        found = re.search(r"\bgit stash\b(?: (?!-)(\w+))?", run.command)
        if found and run.outcome is CommandOutcome.OK and found[1] not in ("list", "show", "drop"):
            return run if found[1] in (None, "push", "save") and "git stash pop" not in run.command else None
    return None


_ON_BRANCH = re.compile(
    r"^(?:On branch |Switched to (?:a new )?branch '|branch ')([\w./-]+)"
    r"|^\[([\w./-]+) (?:\(root-commit\) )?[0-9a-f]{7}|^(?:##|\*) ([\w./-]+)",
    re.MULTILINE,
)


def _branch(results: Mapping[int, Event], runs: Sequence[Run]) -> tuple[str, int]:
    """The branch that git named last, and the record that shows it."""
    for run in reversed(runs):
        result = results.get(run.event)
        if result is None or not re.search(r"\b(?:git|gh)\b", run.command):
            continue
        if "--show-current" in run.command and len(result.text.split()) == 1:
            return result.text.strip(), result.record
        found = _ON_BRANCH.findall(result.text[:20_000])
        if found and (name := "".join(found[-1])) and name not in ("detached", "HEAD"):
            return name, result.record
    return "", -1


def _commits(results: Mapping[int, Event], runs: Sequence[Run]) -> list[Commit]:
    """The commits that stand: one that was amended is part of the commit in its place."""
    found: list[Commit] = []
    staged: list[tuple[str, ...] | None] = []  # since the last commit; None: all, or unknown
    for run in runs:
        result = results.get(run.event)
        staged += _staged(run.command)
        if result is None or "commit" not in run.command or run.outcome is CommandOutcome.FAILED:
            continue
        if line := _COMMIT.search(result.text):
            if found and re.search(r"\bgit [^|;&\n]*--amend\b", run.command):
                staged.append(found.pop().staged)
            paths = None if None in staged or not staged else tuple(path for part in staged for path in part or ())
            branch, name, subject = line.groups()
            found.append(
                Commit(
                    branch=branch,
                    hash=name,
                    subject=subject.strip(),
                    event=run.event,
                    record=result.record,
                    staged=paths,
                )
            )
            staged = []
    return found


_STAGING = re.compile(r"\bgit (?:-C \S+ )?(?:(?P<add>add|stage|rm|mv)|(?P<commit>commit))\b(?P<rest>[^|;&\n]*)")


def _staged(command: str) -> Iterator[tuple[str, ...] | None]:
    """The paths that each staging command of a line names; None where it takes all that changed."""
    for found in _STAGING.finditer(command.partition("<<")[0]):
        words = _QUOTED.sub("q", found["rest"]).split()
        if found["commit"]:
            if any(re.fullmatch(r"-(?!-)\w*a\w*|--all", word) for word in words):
                yield None
            continue
        paths = [word.strip("\"'").removeprefix("./") for word in found["rest"].split() if not word.startswith("-")]
        is_plain = all(re.fullmatch(r"[\w./@+-]*\w[\w./@+-]*", path) for path in paths)
        yield tuple(f"/{path.strip('/')}/" for path in paths) if paths and is_plain else None


def _older(runs: Sequence[Run], changes: Sequence[FileOperation]) -> Iterator[int]:
    """The runs that execute the code of the work, or check it, before changes of what they cover."""
    at = [one.event for one in changes]
    for run in runs:
        is_run = is_test(run.command) or _EXECUTES.search(run.command)
        first = bisect_right(at, run.event) if is_run else len(changes)
        if any(covers(run, one) for one in changes[first:]):
            yield run.event


_EXECUTES = re.compile(
    r"(?:^|[;&|]\s*)(?:\w+=\S+\s+)*(?:python3? (?!-m (?:pip|venv)\b)|node |go run |cargo run|deno run|bun run|\./)\S"
)


def _unpushed(commits: Sequence[Commit], runs: Sequence[Run]) -> tuple[Commit, ...]:
    """The commits after the newest push; none where nothing was pushed, since then nobody may want it."""
    pushes = [run.event for run in runs if re.search(r"\bgit push\b", run.command) and run.outcome is CommandOutcome.OK]
    return tuple(commit for commit in commits if pushes and commit.event > pushes[-1])


def _stale(runs: Sequence[Run], changes: Sequence[FileOperation]) -> list[tuple[Run, tuple[FileOperation, ...]]]:
    """The newest passing run of each check, newest first, where what it covers changed after it.

    A check that a later passing run contains is not listed again, nor one of chosen tests only.
    """
    passed: list[Run] = []
    for run in reversed(runs):
        if len(passed) == _MOST_CHECKS:
            break
        is_passed = run.outcome is CommandOutcome.OK and is_test(run.command)
        is_narrow = bool(passed) and _selects(run.key.split())
        if is_passed and not is_narrow and not any(contains(later.key, run.key) for later in passed):
            passed.append(run)
    found = ((run, tuple(one for one in changes if one.event > run.event and covers(run, one))) for run in passed)
    return [(run, since) for run, since in found if since]


# More than anyone has: each is compared with each, and with every change.
_MOST_CHECKS = 64

# What a check of one language does not look at: prose, and the sources of the others.
PROSE = (".md", ".txt", ".rst", ".adoc")
_SOURCES = {
    "go": (".go",),
    "py": (".py", ".pyi"),
    "js": (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".vue", ".svelte"),
    "rs": (".rs",),
}
_CHECKERS = {
    "go": re.compile(r"\bgo (?:test|vet|build)\b|\bgolangci-lint\b"),
    "py": re.compile(r"\b(?:pytest|unittest|tox|nox|ruff|mypy)\b"),
    "js": re.compile(r"\b(?:npm|npx|yarn|pnpm|bun|jest|vitest|mocha|tsc|eslint)\b"),
    "rs": re.compile(r"\bcargo\b"),
}


def changes_code(change: FileOperation) -> bool:
    """Whether something that a check may look at was changed: not prose, nor what is thrown away.

    Nor does a check miss a folder that was thrown away: it holds what was made by the way more often than sources.
    """
    is_folder = change.action is FileAction.DELETE and "." not in change.path.rpartition("/")[2]
    is_change = change.action is not FileAction.READ and not is_throwaway(change.path)
    return is_change and not is_folder and not change.path.endswith(PROSE)


def covers(run: Run, change: FileOperation) -> bool:
    """Whether a check may look at a changed file: not at the sources of another language alone."""
    if not changes_code(change):
        return False
    language = next((name for name, endings in _SOURCES.items() if change.path.endswith(endings)), "")
    checked = _checked(run.command)
    return not language or not checked or language in checked


@lru_cache(maxsize=_MOST_CHECKS)
def _checked(command: str) -> tuple[str, ...]:
    """The languages whose checkers a command runs; asked again for each file that changed after it."""
    return tuple(name for name, pattern in _CHECKERS.items() if pattern.search(command))
