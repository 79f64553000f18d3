"""Errors with the status that the records show: fixed and by what, failing when last seen, changed since and not run.

A failing run is fixed by a later passing run of the same command or of one that contains it (the whole suite contains
one test), or by one that fails for another reason. The fix is what was done before the first run without the error, or
another way to the same end. Slips (a search without a hit) and calls that the user turned down are not errors.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from itertools import islice, takewhile
from math import inf
from operator import attrgetter

from compactor_cli.digest.checks import (
    COMPILER_PLACE,
    COMPILES_TESTS,
    PLACED_FILE,
    TEST_FILE,
    after,
    contains,
    entered,
    in_package,
    is_about,
    is_check,
    is_to_fail,
    languages_checked,
    may_look_at,
    places_in,
    places_line,
    programs_of,
    selects_some,
    task_of,
)
from compactor_cli.digest.commands import acting_part, asks_for_help, code_is_of_another, may_act_outside, shown
from compactor_cli.digest.commits import PUSHES
from compactor_cli.digest.edits import PROSE, FixingLine, fixing_line
from compactor_cli.digest.error_lines import (
    AT_LINE,
    conflicting_files,
    erring_files,
    error_line,
    failed_tests,
    failure_parts,
    names_of_tests,
    only_counts,
    placed,
    read_output,
)
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.files import FileOperation, is_throwaway
from compactor_cli.digest.reruns import SLIPS, Reader, fails_otherwise, runs_again, runs_from_gone, shows_gone
from compactor_cli.digest.runs import NEVER_RAN, CommandOutcome, Run, sets_up, shows_whole
from compactor_cli.digest.shell import OF_ONE_USE, unquoted
from compactor_cli.digest.texts import ELLIPSIS, head, sentences
from compactor_cli.digest.tools import FileAction
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass

# In runs; a success further on has nothing to do with the failure.
_MAX_STEPS_TO_OTHER_WAY = 3
# Runs that are searched for one that passes: time stays linear in very long sessions.
_MAX_LATER = 300
_MAX_BEFORE = 20  # earlier runs that are compared with a failed one
# An error of the last 40 events (a wrong call: of the last 4) still concerns the work.
_RECENT_EVENTS, _RECENT_SLIP_EVENTS = 40, 4
_MAX_EXPLAINING = 6  # events within which a message after an error explains it


class Status(StrEnum):
    """What became of an error."""

    FIXED = "fixed"
    FAILING = "failing"
    CHANGED_SINCE = "changed since"
    RUN_AGAIN = "run again, and how it went is not shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """An error line of a command, the records that show it, and its status at the end."""

    line: str
    command: str
    event: int  # position of the call in the events
    status: Status
    fixes: tuple[str, ...] = ()  # files changed between its last sight and the run without it, or since if nothing ran
    tried: tuple[str, ...] = ()  # other files, after whose change it failed again
    other_way: str = ""  # the command that did the same after this one failed
    records: tuple[int, ...] = ()  # of the error, the last change and the run, as far as there are any
    explained: str = ""  # the sentence by which the assistant let it be
    fixing: FixingLine = FixingLine()  # the line that fixed it
    between: tuple[str, ...] = ()  # set up before the run that passed, where no edit was: installed, built, entered
    files: tuple[str, ...] = ()  # in which its run named errors, and that were not changed since
    is_in_part: bool = False  # its tests passed later, and the run was not repeated as a whole
    is_test_gone: bool = False  # the fix took out the tests that failed
    then: str = ""  # the error that the same command still ends with, where it never passed


def is_open(error: ErrorRecord, number_of_events: int) -> bool:
    """Whether an error is still to be dealt with: a failed check, handover or merge, or a recent one left unexplained.

    Not open is another command that failed on the way and was let go, nor a check or handover that could not start.
    """
    if error.status in (Status.FIXED, Status.RUN_AGAIN):
        return False
    counts = (is_check(error.command) or is_outward(error.command)) and not NEVER_RAN.search(error.line)
    counts |= bool(conflicting_files(error.line))
    recent = _RECENT_SLIP_EVENTS if _MISCALLED.search(error.line) else _RECENT_EVENTS
    return counts or (error.event >= number_of_events - recent and not error.explained)


# `No such option: --tides`: the call was wrong and nothing is broken; the next call is another.
_MISCALLED = pattern(
    r"\b[Uu]n(?:known|recognized|expected) (?:(?:sub)?command|argument|option)|\b[Nn]o such (?:command|option)"
)


def is_outward(command: str) -> bool:
    """Whether a command hands the work over (commit, push, release): others lack the work if it fails for good."""
    return _OUTWARD.search(unquoted(command)) is not None


_OUTWARD = pattern(
    r"\b(?:npm|pnpm|yarn|bun|twine|cargo|poetry|uv|make|just|task|mise|gh)(?: run)?"
    r" (?:publish|deploy|release)\b(?![./])|\bgit (?:commit|push)\b"
)


def is_shown(error: ErrorRecord, number_of_events: int) -> bool:
    """Whether an error is listed, among the fixed or the open ones."""
    return error.status is Status.FIXED or is_open(error, number_of_events)


def find_errors(
    events: Sequence[Event], runs: Sequence[Run], operations: Sequence[FileOperation]
) -> tuple[ErrorRecord, ...]:
    """The errors of commands that do more than look, in order; results of calls to services are in Facts instead."""
    acting = [run for run in runs if not run.is_read_only]
    changes = [one for one in operations if not (one.action is FileAction.READ or one.is_try)]
    tries = [one for one in operations if one.is_try and one.action is not FileAction.READ]
    gone = [one for one in operations if one.action in _TAKES_AWAY and is_throwaway(one.path)]
    newest: dict[tuple[str, str], ErrorRecord] = {}
    first_seen: dict[str, int] = {}

    read, explaining = cache(read_output), _explaining(events)

    @cache
    def looked_at(languages: tuple[str, ...]) -> Sequence[FileOperation]:
        return [change for change in changes if may_look_at(languages, change)]

    for number, run in enumerate(acting):
        if run.outcome is CommandOutcome.FAILED and run.line and not SLIPS.search(run.line):
            later = acting[number + 1 : number + 1 + _MAX_LATER]
            if _is_past(run, later, gone):
                continue
            names = failure_parts(run.line)[0] or {AT_LINE.sub("", run.line)}
            partly = _partly(run, later, changes)
            if (without := runs_from_gone(run, later, read)) is None:
                newest |= partly
                first_seen |= dict.fromkeys(names.difference(first_seen), run.event)
                newest |= _failed_handover(run, later, read)
                continue  # a later run shows it again, and decides
            since = _may_fix(run, changes)
            between = in_package(run, after(run, looked_at(languages_checked(run)))) if since else ()
            between = between or [one for one in since if not one.path.endswith(PROSE) or one.name in run.output]
            found = _judged(run, later, without, between, read)
            seen = min((first_seen.pop(name) for name in names if name in first_seen), default=run.event)
            tried = (one for one in looked_at(languages_checked(run)) if seen < one.event < run.event)
            others = dict.fromkeys(one.path for one in tried if not (one.is_in_passing or one.path in found.fixes))
            is_fixed = found.status is Status.FIXED
            # The frames of a failed test's stack are no findings of a compiler.
            places = "" if names_of_tests(run.line) else places_line(run.output, found.fixes, is_in=is_fixed)
            line = places or _in_detail(run, later, since)
            line = _without_printed(line, run, (*without, *acting[max(0, number - _MAX_BEFORE) : number]))
            found = replace(found, line=line, tried=tuple(others))
            if is_fixed:
                if not (found.fixes or found.other_way):
                    # The fix may be in a throwaway script that the command runs.
                    own = (one for one in after(run, tries) if one.name in run.command)
                    scripts = dict.fromkeys(one.path for one in own if one.record < found.records[-1])
                    found = replace(found, fixes=tuple(scripts))
                is_in_part = bool(without) and not any(shows_gone(run, one, read) for one in without)
                edits = [one for one in after(run, changes) if one.path in found.fixes]
                newest[run.key, run.line] = replace(found, fixing=_fixing(found, edits), is_in_part=is_in_part)
                continue
            newest |= partly
            if not any(fails_otherwise(run, one, read) for one in without):
                # In the output of tests, such lines may be logs.
                named = () if failed_tests(run.output) else erring_files(run.output).items()
                files = tuple(file for file, line in named if not any(is_about(path, line) for path in found.fixes))
                newest[run.key, run.line] = replace(found, explained=_explained(events, run, explaining), files=files)
    return _as_last_seen(newest)


def without_pushed(runs: Sequence[Run], in_step: Mapping[str, int]) -> list[Run]:
    """The runs without failed pushes of what git shows later to be there, whoever pushed it (`branches_in_step`)."""
    last, failed = max(in_step.values(), default=-1), CommandOutcome.FAILED
    return [run for run in runs if not (run.event < last and run.outcome is failed and PUSHES.search(run.key))]


def _fixing(error: ErrorRecord, edits: Sequence[FileOperation]) -> FixingLine:
    """The line that fixed an error; empty for a mere count of errors that several edits fixed: none stands for all."""
    is_one = len(edits) == 1 or not only_counts(error.line)
    last = error.records[:2][-1]  # the record of the newest edit that counts
    return fixing_line(error.line, edits, last) if is_one else FixingLine()


def _failed_handover(run: Run, later: Sequence[Run], read: Reader) -> dict[tuple[str, str], ErrorRecord]:
    """The record of a failed handover whose error a later run shows again, by its key and line; empty for any other
    run, and for a handover that was tried again and never succeeded."""
    if not is_outward(run.command):
        return {}
    again = [other for other in later if runs_again(other, run)]
    done = [other for other in again if other.outcome is CommandOutcome.OK]
    if again and not done:
        return {}
    return {(run.key, run.line): _judged(run, later if done else (), done, (), read)}


_TAKES_AWAY = (FileAction.DELETE, FileAction.MOVE)


def _as_last_seen(newest: Mapping[tuple[str, str], ErrorRecord]) -> tuple[ErrorRecord, ...]:
    """The errors in order; of the unfixed ones of one command that name no test, only the newest is left."""
    unnamed = {
        place: one for place, one in newest.items() if one.status is not Status.FIXED and not names_of_tests(one.line)
    }
    last: dict[str, int] = {}
    for (key, _), one in unnamed.items():
        last[key] = max(one.event, last.get(key, -1))
    left = (one for place, one in newest.items() if place not in unnamed or one.event == last[place[0]])
    return tuple(sorted((one for one in left if one.line), key=lambda one: one.event))


def _is_past(run: Run, later: Sequence[Run], gone: Sequence[FileOperation]) -> bool:
    """Whether a failure no longer matters: its merge was aborted, its script was for one use or is ``gone`` since, a
    later run called what the error says to use, `git add` had a wrong path in a commit that was then made, or a path
    was given that cannot exist."""
    is_given_up = conflicting_files(run.line) and any("--abort" in other.key for other in later)
    of_one_use = later and OF_ONE_USE.search(run.command)
    was_deleted = any(one.event > run.event and one.path in run.command for one in gone)
    named = _SAYS_TO_USE.search(run.line)
    is_called = named is not None and any(one.key.startswith(f"{named[1]} ") for one in later)
    is_path = run.line.startswith("fatal: pathspec ")
    is_added = is_path and any("git commit" in one.key and one.outcome is CommandOutcome.OK for one in later)
    return bool(is_given_up or of_one_use or was_deleted or is_called or is_added or is_to_fail(run.command))


# `This needs the full runtime. Use: cargo tides <command>`
_SAYS_TO_USE = pattern(r"\b[Uu]se:? [`'\"]?([a-z][\w.-]*(?: [a-z][\w-]*)+)")


def _may_fix(run: Run, changes: Sequence[FileOperation]) -> Sequence[FileOperation]:
    """The changes after a failed run, without those that cannot have fixed it.

    No edit installs a missing program, gives a permission, or fixes a failed call of git unless the error names the
    file. Only a manifest brings a missing task, and only a file of the same name a missing path.
    """
    is_of_git = run.line.startswith("fatal: ") and not any(one.name in run.line for one in changes)
    since = () if is_of_git or _NO_PROGRAM.search(run.line) else after(run, changes)
    if NEVER_RAN.search(run.line):
        since = [one for one in since if one.name in _MANIFESTS or "akefile" in one.name]
    missing = _MISSED.search(run.line)
    return [one for one in since if one.name == missing["path"].rpartition("/")[2]] if missing else since


_NO_PROGRAM = pattern(
    r"command not found|\b[Pp]ermission denied(?:$| \()|\b[Ff]ailed to spawn\b"
    r"|\b[Uu]nsupported (?:environment|engine)\b"
)
# `bash: line 1: data/tides.csv: No such file or directory`
_MISSED = pattern(r"^(?:[\w./()-]+: )*(?:line \d+: )?(?P<path>[\w./~-]+): (?:No such file or directory|not found)$")


def _without_printed(line: str, run: Run, others: Sequence[Run]) -> str:
    """An error line without the parts that passing runs of the command print, too; unchanged if none is left.

    Tests that pass may provoke errors.
    """
    outputs = [one.output for one in others if one.outcome is CommandOutcome.OK and runs_again(one, run)]
    parts = [(part, part.strip(f" {ELLIPSIS}")) for part in line.split(" · ")]
    own = [(part, bare) for part, bare in parts if not any(bare in output for output in outputs)]
    return " · ".join(part for part, _ in own) if any(bare for _, bare in own) else line


def _in_detail(run: Run, later: Sequence[Run], since: Sequence[FileOperation]) -> str:
    """The error line of a run; if it only counts, that of the next such run that names places before any change."""
    end = since[0].event if since else inf
    looks = takewhile(lambda one: one.event < end, later) if only_counts(run.line) else ()
    failed = (one for one in looks if one.outcome is not CommandOutcome.OK and places_in(one.output))
    shown = (error_line(one.output) for one in failed if runs_again(one, run))
    return next(shown, run.line)


# `this failure is pre-existing`, `it is harmless`: the error is not of the work, or needs nothing.
_EXPLAINS = pattern(
    r"\b(?:pre-?existing|unrelated|not (?:related|caused)|(?:is|are|was|were|be|fail(?:s|ed)? as) expected|flaky"
    r"|known (?:issue|failure)|(?:that|this|it)(?:'s| is) (?:fine|ok(?:ay)?|harmless|normal)"
    r"|(?:can|could|safe to) (?:be )?ignored?)\b",
    re.IGNORECASE,
)


def _explaining(events: Sequence[Event]) -> dict[int, list[str]]:
    """The messages in which the assistant lets errors be, by position, with the sentences that do so for certain."""
    spoken = ((n, one.text) for n, one in enumerate(events) if one.kind is EventKind.ASSISTANT)
    found = ((number, sentences(text)) for number, text in spoken if _EXPLAINS.search(text))
    return {n: [one for one in spoken if _EXPLAINS.search(one) and not GUESS.search(one)] for n, spoken in found}


def _explained(events: Sequence[Event], run: Run, explaining: Mapping[int, Sequence[str]]) -> str:
    """The sentence by which the assistant lets an error be in its next message, or an empty string."""
    near = range(run.event + 1, min(run.event + _MAX_EXPLAINING, len(events)))
    following = next((number for number in near if events[number].kind is EventKind.ASSISTANT), -1)
    return next(iter(explaining.get(following, ())), "")


GUESS = pattern(
    r"\b(?:might|may|could|probably|likely|possibl[ey]|perhaps|maybe|almost certainly|seems?|suggests?"
    r"|I (?:think|suspect))\b|\?$",
    re.IGNORECASE,
)


def _is_about(run: Run, change: FileOperation) -> bool:
    """Whether a change may concern a failure; if a compiler named places, it is to a file or a word in those lines."""
    found = () if failure_parts(run.line)[0] else places_in(run.output)
    if (
        not found
        or change.name in _MANIFESTS
        or _CONFIGURES.search(change.name)
        or any(change.name in line for line in found)
    ):
        return True
    words = {word for line in found for word in _WORD.findall(COMPILER_PLACE.split(line)[-1])}
    return not words.isdisjoint(_WORD.findall("\n".join(map("\n".join, change.replaced))))


_WORD = pattern(r"[^\W\d]\w{2,}")
_MANIFESTS = ("package.json", "pyproject.toml", "requirements.txt", "go.mod", "Cargo.toml")  # of packages and tasks
# The settings of a checker: `biome.json`, `tsconfig.build.json`, `.eslintrc`, `eslint.config.mjs`.
_CONFIGURES = pattern(
    r"^\.?(?:babel|biome|eslint|jest|mypy|oxlint|prettier|pytest|ruff|stylelint|tsconfig|vitest)(?:rc|\.config)?"
    r"(?:\.[\w.-]+)?$"
)


def _judged(
    run: Run,
    later: Sequence[Run],
    from_gone: Sequence[Run],
    between: Sequence[FileOperation],
    read: Reader,
) -> ErrorRecord:
    """The error of a run, by what came after.

    ``from_gone``: see `runs_from_gone`. ``between``: the changes that may have fixed it.
    """
    without = [other for number, other in enumerate(from_gone) if not number or shows_gone(run, other, read)]
    went = (other for other in without if other.outcome is not CommandOutcome.FAILED)
    passed = next((other for other in went if not _misses_too(run, other)), None)
    first = next((other for other in without if between and between[0].event < other.event), None)
    # If none passed, the first one after a change will do, if it ran all tests and shows all that they printed.
    is_whole = first and read(first.output).failing and read(first.output).is_whole
    gone = passed  # the run that decides which edits count
    if first and (passed or (is_whole and not code_is_of_another(first.command))):
        gone = min(first, passed or first, key=lambda one: one.event)
    passed = passed or gone
    between = _may_have_fixed(run, between, gone)
    # No edit fixes what fails elsewhere, unless the error names the file, as that of a commit hook does.
    is_elsewhere = may_act_outside(run.command) or _ASKS_ELSEWHERE.search(run.key) is not None
    is_elsewhere = is_elsewhere and not any(one.name in run.line for one in between)
    fixes = () if is_elsewhere else tuple(dict.fromkeys(one.target or one.path for one in between))
    if passed and len(fixes) > _MAX_FIXES and (places := places_in(run.output)):
        # Of many edited files, those count that the compiler names.
        fixes = tuple(path for path in fixes if any(is_about(path, line) for line in places))
    records = [run.result_record, *(one.record for one in between[-1:]), *([passed.result_record] if passed else [])]
    status = Status.FIXED if passed else Status.CHANGED_SINCE if fixes else Status.FAILING
    unknown = (one for one in later if one.outcome is CommandOutcome.UNKNOWN and runs_again(one, run))
    again = (read(one.output).text for one in unknown if between and one.event > between[0].event)
    if not passed and any(not any(map(text.__contains__, failure_parts(run.line)[1])) for text in again):
        status = Status.RUN_AGAIN
    # If the file that the error names was edited, that was the remedy, and not another command.
    is_edited = is_check(run.command) or any(path.rpartition("/")[2] in run.line for path in fixes)
    other = None if fixes and (passed or is_edited) else passed or _other_way(run, later)
    before = [one for one in later if passed and not fixes and one.event < passed.event]
    made = [one.command for one in before if sets_up(one, run)]
    is_same = not other or shown(other.command) == shown(run.command) or (made and runs_again(other, run))
    if is_same and passed and not (fixes or made) and (place := entered(passed.command)) != entered(run.command):
        made = [f"cd {place}"] if place else []
    if other and not passed:
        status, records = Status.FIXED, [run.result_record, other.result_record]
    return ErrorRecord(
        line=run.line,
        command=run.command,
        event=run.event,
        status=status,
        fixes=fixes,
        other_way=other.command if other and not is_same else "",
        between=tuple(dict.fromkeys(made))[-_MAX_BETWEEN:],
        records=tuple(dict.fromkeys(records)),
        is_test_gone=_are_taken_out(names_of_tests(run.line), between),
        then=passed.line if passed and passed.outcome is CommandOutcome.FAILED else "",
    )


def _are_taken_out(tests: Sequence[str], changes: Iterable[FileOperation]) -> bool:
    """Whether there are tests, and changes took each of them out."""
    replaced = [pair for one in changes for pair in one.replaced]
    return bool(tests) and all(any(name in old and name not in new for old, new in replaced) for name in tests)


def _may_have_fixed(run: Run, between: Sequence[FileOperation], passed: Run | None) -> Sequence[FileOperation]:
    """Those of the changes after a failure that may have fixed it: before the run that ``passed``, if one did."""
    if passed:
        between = between[: bisect_left(between, passed.event, key=attrgetter("event"))]
        put_back = {one.path: one.event for one in between if one.action is FileAction.REVERT}
        kept = (one for one in between if one.event > put_back.get(one.path, -1))
        between = [one for one in kept if not one.is_in_passing] or between
        between = [one for one in between if _is_about(run, one)]
        # The test of something else may have been written for the fix of this one: it fixes nothing.
        of_others = {one.path for one in between if TEST_FILE.search(one.path) and one.name not in run.output}
        of_others = of_others if names_of_tests(run.line) else set()
        between = [one for one in between if one.path not in of_others] or between
    else:
        between = [one for one in between if not one.is_in_passing]
    # An edit of a file without conflicts may be for something else.
    conflicts = conflicting_files(run.line)
    return [one for one in between if not conflicts or any(path.endswith(one.name) for path in conflicts)]


# Commands whose answer only others change: `npm view tides`.
_ASKS_ELSEWHERE = pattern(
    r"^(?:npm (?:view|info|show)|pip (?:index|download)|gh (?:run|pr|issue|release)|curl|docker pull)\b"
)
_MAX_BETWEEN, _MAX_FIXES = 2, 3


def _partly(run: Run, later: Sequence[Run], changes: Sequence[FileOperation]) -> dict[tuple[str, str], ErrorRecord]:
    """One fixed error for what a build found in files that were edited since and that no later failing build names.

    Its line holds the file and kind of each place; its key ends with `(in part)`, unlike that of any run. Else empty.
    """
    if not (places := places_in(run.output)):
        return {}
    alike = [one for one in later if contains(one.key, run.key)]
    before = takewhile(lambda one: one.outcome is not CommandOutcome.OK, alike)
    again = [one for one in before if one.outcome is CommandOutcome.FAILED]
    named = {found[1] for one in again for found in PLACED_FILE.finditer(placed(one.output))}
    again = [one for one in again if shows_whole(one)]
    gone = [line for line in places if again and (found := PLACED_FILE.search(line)) and found[1] not in named]
    between = [one.path for one in after(run, changes) if one.event < again[0].event] if gone else []
    fixes = tuple(dict.fromkeys(path for path in between if any(is_about(path, line) for line in gone)))
    fixed = (line for line in gone if any(is_about(path, line) for path in fixes))
    kinds = (": ".join(line[line.rfind("/", 0, line.find(": ")) + 1 :].split(": ")[:2]) for line in fixed)
    line = " · ".join(islice((head(kind, _MAX_PLACE_CHARS) for kind in kinds), _MAX_GONE))
    if not line:
        return {}
    is_passed = any(one.outcome is CommandOutcome.OK for one in alike)
    one = ErrorRecord(
        line=line,
        command=run.command,
        event=run.event,
        status=Status.FIXED,
        fixes=fixes,
        records=(run.result_record, again[0].result_record),
        then="" if is_passed else again[-1].line,
    )
    return {(f"{run.key} (in part)", line): one}


_MAX_PLACE_CHARS, _MAX_GONE = 60, 4


def fails_later(run: Run, errors: Sequence[ErrorRecord], number_of_events: int) -> bool:
    """Whether a later run with an open error contains this run, or fails in a test that this run's command names."""
    later = [one for one in errors if one.event > run.event and is_open(one, number_of_events)]
    return any(
        contains(one.command, run.key) or any(map(run.command.__contains__, names_of_tests(one.line))) for one in later
    )


def _misses_too(run: Run, other: Run) -> bool:
    """Whether two runs both call a program that is not there."""
    return NEVER_RAN.search(run.line) is not None and NEVER_RAN.search(other.output) is not None


# What a pull does with what was fetched: `git merge --ff-only origin/main`.
_BRINGS_IN = pattern(r"\bgit (?:merge|rebase|reset)\b[^;&|\n]*(?: (?:origin|upstream)/\S+| FETCH_HEAD| @\{u\S*)")


def _other_way(run: Run, later: Sequence[Run]) -> Run | None:
    """The next successful command of the same program and task, if it is one of the next few runs; else None.

    For a handover (a commit, a push) it may come any time later, and only the programs of its acting part count.
    """
    hands_on, is_unknown = is_outward(run.command), NEVER_RAN.search(run.line) is not None
    first = next(iter(programs_of(acting_part(run.command) if hands_on else run.command)), "")
    task = task_of(first, run.command)
    if is_unknown:
        first = first.partition(" run ")[0]  # the task may have another name
    for other in later[: None if hands_on else _MAX_STEPS_TO_OTHER_WAY]:
        # Neither the failed command itself nor a part of it is another way to the whole.
        if asks_for_help(other.command) or contains(run.key, other.key) or other.outcome is not CommandOutcome.OK:
            continue
        if is_check(run.command) and COMPILES_TESTS.search(other.key):
            continue
        if run.line in other.output or _misses_too(run, other):
            continue  # it ended well and printed the same error
        if is_unknown and run.key.endswith(f" {other.key}"):
            return other  # the same without the missing runner
        if first == "git pull" and (found := _BRINGS_IN.search(other.command)):
            return replace(other, command=found[0])
        is_same = is_unknown or task_of(first, other.command) == task
        # Other tests that pass show nothing of those that failed.
        is_of_others = is_check(run.command) and not is_unknown and selects_some(other.key.split())
        is_alike = is_same and any(f"{one} ".startswith(f"{first} ") for one in programs_of(other.command))
        if first and is_alike and not is_of_others:
            return other
    return None
