"""Errors with the status that a record shows: fixed and by what, failing when last seen, changed since and not run.

A failing run is fixed by a later passing run of the same command or of one that contains it (the whole suite contains
one test), or by one that fails of something else. The fix is what was done before the first run without it, or another
way to the same end. Slips of exploration (a search without a hit) and calls that the user turned down are no errors.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from itertools import chain, islice, takewhile
from math import inf
from operator import attrgetter, itemgetter

from compactor_cli.digest.checks import (
    COMPILER_PLACE,
    PLACED_FILE,
    TEST_FILE,
    after,
    are_in_siblings,
    as_run,
    contains,
    entered,
    is_about,
    is_check,
    languages_checked,
    leaves_some,
    may_look_at,
    places_in,
    places_line,
    preparation,
    programs_of,
    task_of,
)
from compactor_cli.digest.commands import (
    CONCLUDES,
    NEVER_RAN,
    CommandOutcome,
    Run,
    acting_part,
    asks_for_help,
    code_is_of_another,
    may_act_outside,
    sets_up,
    shows_whole,
)
from compactor_cli.digest.edits import PROSE, FixingLine, fixing_line
from compactor_cli.digest.error_lines import (
    AT_LINE,
    TestOutput,
    conflicting_files,
    erring_files,
    error_line,
    failed_tests,
    failure_parts,
    names_of_tests,
    only_counts,
    read_output,
)
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.files import FileOperation, is_throwaway
from compactor_cli.digest.shell import OF_ONE_USE, unquoted
from compactor_cli.digest.statements import ELLIPSIS, head, sentences
from compactor_cli.digest.tools import FileAction
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass

# Another way to the same end comes soon, or it is another matter.
_MAX_STEPS_TO_OTHER_WAY = 3
# Runs that are looked through for one that passes: time stays linear in very long sessions.
_MAX_LATER = 300
_MAX_BEFORE = 20  # runs that are compared with one after them
# An error of this many events ago is still what the work is about.
_RECENT_EVENTS, _RECENT_SLIP_EVENTS = 40, 4
# What is written about an error follows it closely.
_MAX_EXPLAINING = 6

_SLIPS = pattern(
    r"<tool_use_error>|Command aborted|[Ff]ile does not exist|File has not been read yet|EISDIR"
    r"|Found \d+ matches of the string|String to replace not found"
    r"|File has been (?:modified|unexpectedly modified)|InputValidationError|no such file or directory: ?\S*$"
    r"|No matches found|file or directory not found: |exceeds maximum allowed (?:tokens|size)|No files? found"
    r"|unknown flag|[Uu]nknown arguments?\b|illegal option"
    r"|parse error near|jq: error|no matches found: |^\(eval\):\d+: |^nothing to commit\b"
    r"|RUN_NO_SCRIPT|Missing script:|doesn't accept argument|\bField '\w+' doesn't exist on type"
)


class Status(StrEnum):
    """What became of an error."""

    FIXED = "fixed"
    FAILING = "failing"
    CHANGED_SINCE = "changed since"
    RUN_AGAIN = "run again, and how it went is not shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """An error line of a command or tool, the record that shows it, and its status at the end.

    ``fixes``: the files changed between its last sight and the run that did not show it any more, or since then
    where nothing ran; ``tried``: others, after whose change it failed again. ``other_way``: the command that did it
    after this one failed.
    ``files``: those in which its run named errors and that were not changed since.
    ``between``: what was installed, built or made between it and the run that passed, where no edit was.
    ``records``: of error, change, run. ``explained``: what the assistant wrote of one that was let be.
    ``is_in_part``: its tests passed later, and the run was not repeated as a whole.
    """

    line: str
    command: str
    event: int
    status: Status
    fixes: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    other_way: str = ""
    records: tuple[int, ...] = ()
    explained: str = ""
    fixing: FixingLine = FixingLine()
    between: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    is_in_part: bool = False


def is_open(error: ErrorRecord, number_of_events: int) -> bool:
    """Whether an error is still to be dealt with: of a check of the work, or of what was done last.

    A command that failed on the way to something else, and was let go, is none.
    """
    if error.status in (Status.FIXED, Status.RUN_AGAIN):
        return False
    counts = (is_check(error.command) or is_outward(error.command)) and not NEVER_RAN.search(error.line)
    counts |= bool(conflicting_files(error.line))
    recent = _RECENT_SLIP_EVENTS if _MISCALLED.search(error.line) else _RECENT_EVENTS
    return counts or (error.event >= number_of_events - recent and not error.explained)


# A program was called by what it does not know: nothing is broken, and the next call is another.
_MISCALLED = pattern(
    r"\b[Uu]n(?:known|recognized|expected) (?:(?:sub)?command|argument|option)|\b[Nn]o such (?:command|option)"
)


def is_outward(command: str) -> bool:
    """Whether a command hands the work to others: where it failed and was not run again, they do not have it."""
    return _OUTWARD.search(unquoted(command)) is not None


_OUTWARD = pattern(
    r"\b(?:npm|pnpm|yarn|bun|twine|cargo|poetry|uv|make|just|task|mise|gh)(?: run)?"
    r" (?:publish|deploy|release)\b(?![./])|\bgit (?:commit|push)\b"
)


def is_shown(error: ErrorRecord, number_of_events: int) -> bool:
    """Whether an error stands among those that are open or fixed."""
    return error.status is Status.FIXED or is_open(error, number_of_events)


def find_errors(
    events: Sequence[Event], runs: Sequence[Run], operations: Sequence[FileOperation]
) -> tuple[ErrorRecord, ...]:
    """Every error of a command that does something, in order; what calls of services came to stands in Facts."""
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
        if run.outcome is CommandOutcome.FAILED and run.line and not _SLIPS.search(run.line):
            later = acting[number + 1 : number + 1 + _MAX_LATER]
            if _is_past(run, later, gone):
                continue
            names = failure_parts(run.line)[0] or {AT_LINE.sub("", run.line)}
            partly = _partly(run, later, changes)
            if (without := _from_gone(run, later, read)) is None:
                newest |= partly
                first_seen |= dict.fromkeys(names.difference(first_seen), run.event)
                newest |= _failed_handover(run, later, read)
                continue  # its last sight decides
            since = _may_fix(run, changes)
            between = after(run, looked_at(languages_checked(run))) if since else ()
            between = between or [one for one in since if not one.path.endswith(PROSE) or one.name in run.output]
            found = _judged(run, later, without, between, read)
            seen = min((first_seen.pop(name) for name in names if name in first_seen), default=run.event)
            tried = (one for one in looked_at(languages_checked(run)) if seen < one.event < run.event)
            others = dict.fromkeys(one.path for one in tried if not (one.is_in_passing or one.path in found.fixes))
            is_fixed = found.status is Status.FIXED
            line = places_line(run.output, found.fixes, is_in=is_fixed) or _in_detail(run, later, since)
            line = _without_printed(line, run, (*without, *acting[max(0, number - _MAX_BEFORE) : number]))
            found = replace(found, line=line, tried=tuple(others))
            if is_fixed:
                if not (found.fixes or found.other_way):
                    # What was put right was the script that failed.
                    own = (one for one in after(run, tries) if one.name in run.command)
                    scripts = dict.fromkeys(one.path for one in own if one.record < found.records[-1])
                    found = replace(found, fixes=tuple(scripts))
                is_in_part = bool(without) and not any(_is_gone(run, one, read) for one in without)
                edits = [one for one in after(run, changes) if one.path in found.fixes]
                newest[run.key, run.line] = replace(found, fixing=_fixing(found, edits), is_in_part=is_in_part)
                continue
            newest |= partly
            is_past = _is_tried_again(run, later, is_edited=bool(since))
            if not (is_past or any(_fails_otherwise(run, one, read) for one in without)):
                # What a test prints in this form may be what it logged.
                named = () if failed_tests(run.output) else erring_files(run.output).items()
                files = tuple(file for file, line in named if not any(is_about(path, line) for path in found.fixes))
                newest[run.key, run.line] = replace(found, explained=_explained(events, run, explaining), files=files)
    return _as_last_seen(newest)


def _fixing(error: ErrorRecord, edits: Sequence[FileOperation]) -> FixingLine:
    """The line that fixed an error; of many errors that several edits fixed, one line would stand for all."""
    is_one = len(edits) == 1 or not only_counts(error.line)
    return fixing_line(error.line, edits, error.records[-1]) if is_one else FixingLine()


def _failed_handover(run: Run, later: Sequence[Run], read: _Reader) -> dict[tuple[str, str], ErrorRecord]:
    """A failure that shows again elsewhere, of what was to be handed to others: done since, or not tried again."""
    again = [other for other in later if _runs(other, run)]
    done = [other for other in again if other.outcome is CommandOutcome.OK]
    if not is_outward(run.command) or (again and not done):
        return {}
    return {(run.key, run.line): _judged(run, later if done else (), done, (), read)}


_TAKES_AWAY = (FileAction.DELETE, FileAction.MOVE)


def _as_last_seen(newest: Mapping[tuple[str, str], ErrorRecord]) -> tuple[ErrorRecord, ...]:
    """The errors in order; of a check that fails again and names no test, what it says last is what is left."""
    unnamed = {
        place: one for place, one in newest.items() if one.status is not Status.FIXED and not names_of_tests(one.line)
    }
    last: dict[str, int] = {}
    for (key, _), one in unnamed.items():
        last[key] = max(one.event, last.get(key, -1))
    left = (one for place, one in newest.items() if place not in unnamed or one.event == last[place[0]])
    return tuple(sorted((one for one in left if one.line), key=lambda one: one.event))


def _is_past(run: Run, later: Sequence[Run], gone: Sequence[FileOperation]) -> bool:
    """Whether nothing is left of a failure: a merge was given up, or it was of a script for one use, of one that is
    ``gone``, or of what was missed on the way."""
    is_given_up = conflicting_files(run.line) and any("--abort" in other.key for other in later)
    of_one_use = later and OF_ONE_USE.search(run.command)
    is_gone = any(one.event > run.event and one.path in run.command for one in gone)
    return bool(is_given_up or of_one_use or is_gone) or _got_past_it(run, later)


def _got_past_it(run: Run, later: Sequence[Run]) -> bool:
    """Whether a run missed a file on its way, and a later one neither did nor passed: what that one says counts."""
    failing = (one for one in later if one.outcome is not CommandOutcome.OK)
    came = (one for one in failing if one.output.strip() and run.line not in one.output)
    return run.key != run.command and _MISSED.search(run.line) is not None and any(_runs(one, run) for one in came)


def _may_fix(run: Run, changes: Sequence[FileOperation]) -> Sequence[FileOperation]:
    """The changes after a run that failed, without those that cannot have to do with it.

    No edit of the work brings a program that is not there, or what git was called for; a task stands in a manifest, and
    a file that a shell misses is brought by its name.
    """
    is_of_git = run.line.startswith("fatal: ") and not any(one.name in run.line for one in changes)
    since = () if is_of_git or _NO_PROGRAM.search(run.line) else after(run, changes)
    if NEVER_RAN.search(run.line):
        since = [one for one in since if one.name in _MANIFESTS or "akefile" in one.name]
    missing = _MISSED.search(run.line)
    return [one for one in since if one.name == missing["path"].rpartition("/")[2]] if missing else since


_NO_PROGRAM = pattern(r"command not found|\b[Ff]ailed to spawn\b|\b[Uu]nsupported (?:environment|engine)\b")
_MISSED = pattern(r"^(?:[\w./()-]+: )*(?:line \d+: )?(?P<path>[\w./~-]+): (?:No such file or directory|not found)$")


def _without_printed(line: str, run: Run, others: Sequence[Run]) -> str:
    """An error line without what other runs of the same print that pass, if more is left: tests provoke errors too."""
    outputs = [one.output for one in others if one.outcome is CommandOutcome.OK and _runs(one, run)]
    parts = [(part, part.strip(f" {ELLIPSIS}")) for part in line.split(" · ")]
    own = [(part, bare) for part, bare in parts if not any(bare in output for output in outputs)]
    return " · ".join(part for part, _ in own) if any(bare for _, bare in own) else line


def _in_detail(run: Run, later: Sequence[Run], since: Sequence[FileOperation]) -> str:
    """The error line of a run; of one that only counts, that of the next look at the same before anything changed."""
    end = since[0].event if since else inf
    looks = takewhile(lambda one: one.event < end, later) if only_counts(run.line) else ()
    failed = (one for one in looks if one.outcome is not CommandOutcome.OK and places_in(one.output))
    shown = (error_line(one.output) for one in failed if _runs(one, run))
    return next(shown, run.line)


# What the assistant says of an error that is none of the work's, or needs nothing.
_EXPLAINS = pattern(
    r"\b(?:pre-?existing|unrelated|not (?:related|caused)|(?:is|are|was|were|be|fail(?:s|ed)? as) expected|flaky"
    r"|known (?:issue|failure)|(?:that|this|it)(?:'s| is) (?:fine|ok(?:ay)?|harmless|normal)"
    r"|(?:can|could|safe to) (?:be )?ignored?)\b",
    re.IGNORECASE,
)


def _explaining(events: Sequence[Event]) -> list[tuple[int, list[str]]]:
    """The messages of the assistant that let errors be, by where they stand, each with the sentences that do."""
    spoken = ((n, one.text) for n, one in enumerate(events) if one.kind is EventKind.ASSISTANT)
    found = ((number, sentences(text)) for number, text in spoken if _EXPLAINS.search(text))
    return [(n, [one for one in spoken if _EXPLAINS.search(one) and not GUESS.search(one)]) for n, spoken in found]


def _explained(events: Sequence[Event], run: Run, explaining: Sequence[tuple[int, list[str]]]) -> str:
    """What the assistant wrote of an error next, or later by the name of its command, where that lets it be."""
    near = range(run.event + 1, min(run.event + _MAX_EXPLAINING, len(events)))
    following = next((number for number in near if events[number].kind is EventKind.ASSISTANT), -1)
    names = programs_of(run.command)
    for number, spoken in islice(explaining, bisect_left(explaining, run.event, key=itemgetter(0)), None):
        of_it = (one for one in spoken if number == following or _names(one, names, run.line))
        if explained := next(of_it, ""):
            return explained
    return ""


def _names(sentence: str, programs: Collection[str], line: str) -> bool:
    """Whether a sentence names a program, or quotes what stands in an error line."""
    return any(name in sentence for name in programs) or any(name in line for name in _QUOTED.findall(sentence))


_QUOTED = pattern(r"`([^`\n]{4,})`")
GUESS = pattern(
    r"\b(?:might|may|could|probably|likely|possibl[ey]|perhaps|maybe|seems?|suggests?|I (?:think|suspect))\b|\?$",
    re.IGNORECASE,
)


# Reads what a run printed; each once, as runs are compared with many others.
_Reader = Callable[[str], TestOutput]


def fails_alike(run: Run, other: Run) -> bool:
    """Whether two runs fail of the same test, or with the same message."""
    (tests, messages), (other_tests, others) = failure_parts(run.line), failure_parts(other.line)
    return not tests.isdisjoint(other_tests) or not (tests or set(messages).isdisjoint(others))


def _is_gone(run: Run, other: Run, read: _Reader) -> bool:
    """Whether a later run shows a failure no more: it or its tests passed, something else failed, a merge ended."""
    if conflicting_files(run.line) and other.outcome is CommandOutcome.OK and CONCLUDES.search(other.key):
        return True
    if other.outcome is CommandOutcome.UNKNOWN:
        # The same part of what it prints would show the failure again.
        is_shown = other.command == run.command and not is_check(run.command) and code_is_of_another(run.command)
        text = read(other.output).text if is_shown else ""
        return bool(text) and not any(one in text for one in failure_parts(run.line)[1])
    if other.outcome is CommandOutcome.OK:
        return _runs(other, run) and not leaves_some(other)
    if not (is_check(run.command) or places_in(run.output)):
        return False
    tests, messages = read(run.output).failing, failure_parts(run.line)[1]
    if tests and not any(one.startswith("panic: ") for one in messages):
        failing = read(other.output).failing
        return bool(failing) and tests.isdisjoint(failing) and _runs(other, run)
    is_shown = any(map(read(other.output).text.__contains__, messages))
    return (other.command == run.command or shows_whole(other)) and not is_shown and _runs(other, run)


def _fails_otherwise(run: Run, other: Run, read: _Reader) -> bool:
    """Whether a later run that would show a failure again fails of something else: that is what is open."""
    shows_all = bool(places_in(run.output)) or not code_is_of_another(other.command)
    return other.outcome is CommandOutcome.FAILED and shows_all and _is_gone(run, other, read)


def _is_tried_again(run: Run, later: Sequence[Run], *, is_edited: bool) -> bool:
    """Whether what was to be handed to others failed again, of whatever: the last try says what is open, after edits or
    where it is the same to the letter."""
    if not is_outward(run.command):
        return False
    programs, words = set(programs_of(acting_part(run.command))), _from_outward(run.command)
    failed = [one for one in later if one.outcome is CommandOutcome.FAILED]
    return any(
        (is_edited and bool(programs) and programs.issubset(programs_of(acting_part(one.command))))
        or (words and one.command.endswith(words))
        for one in failed
    )


def _from_outward(command: str) -> str:
    found = _OUTWARD.search(command)
    return command[found.start() :] if found else ""


def _runs(other: Run, run: Run) -> bool:
    """Whether a run, or what it says that it runs, is of a command or contains it, and not in a folder next to it.

    Where a chain ends with tests and shows none of their results, what stands before them failed.
    """
    whole, (*before, last) = f"{other.key} && {other.echoed}", run.key.split(" && ")
    is_before = bool(before) and _GO_TEST.match(last) and not _GO_RESULT.search(run.output)
    parts = [part for part in before if is_check(part)] if is_before else []
    return all(contains(whole, part) for part in parts or [run.key]) and not are_in_siblings(other.command, run.command)


_GO_TEST, _GO_RESULT = pattern(r"go test\b"), pattern(r"^(?:ok|FAIL|---|\?|panic:)[ \t]", re.MULTILINE)


def _from_gone(run: Run, later: Sequence[Run], read: _Reader) -> Sequence[Run] | None:
    """The later runs from the first without a failure; None where one ends with it, or shows a part of it again."""
    own, messages, line = read(run.output), failure_parts(run.line)[1], AT_LINE.sub("", run.line)
    tests = left = own.failing
    # A test that panics of something else got further.
    is_gone, has_panicked = False, "panic: " in line
    found: Sequence[Run] = ()
    for place, other in enumerate(later):
        if other.outcome is CommandOutcome.FAILED and other.line and not _SLIPS.search(other.line):
            shown = read(other.output)
            is_failing = tests and not (is_gone or has_panicked) and tests.issubset(shown.failing)
            is_left = not is_gone and tests & shown.failing and shown.is_whole and _runs(other, run)
            if is_failing or is_left or AT_LINE.sub("", other.line) == line:
                return None
            is_again = is_gone and all(map(shown.text.__contains__, messages))
            if is_again and (not tests or tests.intersection(shown.failing)):
                return None
        left = (left - _passed_in(other, left, read)) | (tests & read(other.output).failing)
        if not is_gone and (_is_gone(run, other, read) or (tests and not left and own.is_named)):
            is_gone, found = True, later[place:]
    return found


def _passed_in(run: Run, tests: Collection[str], read: _Reader) -> frozenset[str]:
    """Those of some tests that a run shows to pass: by their result, or as it went well and chose them."""
    chosen = _CHOSEN_TESTS.findall(run.command) if run.outcome is CommandOutcome.OK else []
    exact = {name for nodes, _ in chosen for name in nodes.split("::")}
    begins = tuple(name for _, pattern in chosen for name in re.findall(r"\w+", pattern))
    passed = read(run.output).passed
    return frozenset(name for name in tests if name in passed or name in exact or name.startswith(begins))


def _is_about(run: Run, change: FileOperation) -> bool:
    """Whether a change may have to do with a failure: of what a compiler found, it is in a file or has a word of it."""
    found = () if failure_parts(run.line)[0] else places_in(run.output)
    if not found or change.name in _MANIFESTS or any(change.name in line for line in found):
        return True
    words = {word for line in found for word in _WORD.findall(COMPILER_PLACE.split(line)[-1])}
    return not words.isdisjoint(_WORD.findall("\n".join(map("\n".join, change.replaced))))


_WORD = pattern(r"[^\W\d]\w{2,}")
_MANIFESTS = ("package.json", "pyproject.toml", "requirements.txt", "go.mod", "Cargo.toml")  # what is installed


def _is_of_another_test(run: Run, change: FileOperation) -> bool:
    """Whether a file of tests was changed, and others failed; helpers of tests have another name."""
    tests = failure_parts(run.line)[0]
    if not tests or not TEST_FILE.search(change.name) or change.name in run.output:
        return False
    return not any(test in text for test in tests for text in chain.from_iterable(change.replaced))


def _judged(
    run: Run,
    later: Sequence[Run],
    from_gone: Sequence[Run],
    between: Sequence[FileOperation],
    read: _Reader,
) -> ErrorRecord:
    """The error of a run by the runs after it; ``between``: the changes after it, those that it looks at if any."""
    without = [other for number, other in enumerate(from_gone) if not number or _is_gone(run, other, read)]
    passed = next((other for other in without if other.outcome is not CommandOutcome.FAILED), None)
    first = next((other for other in without if between and between[0].event < other.event), None)
    # Where none passed, one that ran all tests and shows all that they printed.
    is_whole = first and read(first.output).failing and read(first.output).is_whole
    if first and (passed or (is_whole and not code_is_of_another(first.command))):
        passed = min(first, passed or first, key=lambda one: one.event)
    if passed:
        between = between[: bisect_left(between, passed.event, key=attrgetter("event"))]
        put_back = {one.path: one.event for one in between if one.action is FileAction.REVERT}
        kept = (one for one in between if one.event > put_back.get(one.path, -1))
        between = [one for one in kept if not one.is_in_passing] or between
        between = [one for one in between if _is_about(run, one)]
    else:
        between = [one for one in between if not _is_of_another_test(run, one)]
    if conflicts := conflicting_files(run.line):
        # A file that merged by itself may be edited for something else.
        between = [one for one in between if any(path.endswith(one.name) for path in conflicts)]
    # No edit of the work fixes what is done elsewhere, unless its error names the file: a hook of a commit does.
    is_elsewhere = may_act_outside(run.command) or _ASKS_ELSEWHERE.search(run.key) is not None
    is_elsewhere = is_elsewhere and not any(one.name in run.line for one in between)
    fixes = () if is_elsewhere else tuple(dict.fromkeys(one.target or one.path for one in between))
    if passed and len(fixes) > _MAX_FIXES and (places := places_in(run.output)):
        # Of much that was edited in between, a compiler names what its errors are about.
        fixes = tuple(path for path in fixes if any(is_about(path, line) for line in places))
    records = [run.result_record, *(one.record for one in between[-1:]), *([passed.result_record] if passed else [])]
    status = Status.FIXED if passed else Status.CHANGED_SINCE if fixes else Status.FAILING
    unknown = (one for one in later if one.outcome is CommandOutcome.UNKNOWN and _runs(one, run))
    again = (read(one.output).text for one in unknown if between and one.event > between[0].event)
    if not passed and any(not any(map(text.__contains__, failure_parts(run.line)[1])) for text in again):
        status = Status.RUN_AGAIN
    # An edit of the file that the error names is what there was to do about it, not another command.
    is_edited = is_check(run.command) or any(path.rpartition("/")[2] in run.line for path in fixes)
    other = None if fixes and (passed or is_edited) else passed or _other_way(run, later)
    is_prepared = passed and preparation(passed.command) != preparation(run.command)
    before = [one for one in later if passed and not (fixes or is_prepared) and one.event < passed.event]
    made = [one.command for one in before if sets_up(one, run)]
    is_same = not other or as_run(other.command) == as_run(run.command) or (made and _runs(other, run))
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
    )


# What only others change.
_ASKS_ELSEWHERE = pattern(
    r"^(?:npm (?:view|info|show)|pip (?:index|download)|gh (?:run|pr|issue|release)|curl|docker pull)\b"
)
_MAX_BETWEEN, _MAX_FIXES = 2, 3


def _partly(run: Run, later: Sequence[Run], changes: Sequence[FileOperation]) -> dict[tuple[str, str], ErrorRecord]:
    """What a build found in files that were edited then, and that no later one, which failed too, names any more.

    The places by file and kind, under a key that no whole has.
    """
    again = [one for one in later if one.outcome is CommandOutcome.FAILED and contains(one.key, run.key)]
    named = {found[1] for one in again for found in PLACED_FILE.finditer(one.output)}
    again = [one for one in again if shows_whole(one)]
    gone = [
        line
        for line in (places_in(run.output) if again else ())
        if (found := PLACED_FILE.search(line)) and found[1] not in named
    ]
    between = [one.path for one in after(run, changes) if one.event < again[0].event] if gone else []
    fixes = tuple(dict.fromkeys(path for path in between if any(is_about(path, line) for line in gone)))
    fixed = (line for line in gone if any(is_about(path, line) for path in fixes))
    kinds = (": ".join(line[line.rfind("/", 0, line.find(": ")) + 1 :].split(": ")[:2]) for line in fixed)
    line = " · ".join(islice((head(kind, _MAX_PLACE_CHARS) for kind in kinds), _MAX_GONE))
    records = (run.result_record, *(one.result_record for one in again[:1]))
    one = ErrorRecord(
        line=line, command=run.command, event=run.event, status=Status.FIXED, fixes=fixes, records=records
    )
    return {(f"{run.key} (in part)", line): one} if line else {}


_MAX_PLACE_CHARS, _MAX_GONE = 60, 4


def fails_later(run: Run, errors: Sequence[ErrorRecord], number_of_events: int) -> bool:
    """Whether a later run fails that contains a run, or whose failing test its command names."""
    later = [one for one in errors if one.event > run.event and is_open(one, number_of_events)]
    return any(
        contains(one.command, run.key) or any(map(run.command.__contains__, names_of_tests(one.line))) for one in later
    )


# By name, or by how the name begins.
_CHOSEN_TESTS = pattern(r"::([^\s\"'\[]+)|\s--?(?:run|k|t)[ =]+[\"']?([^\s\"']+)")


def _other_way(run: Run, later: Sequence[Run]) -> Run | None:
    """The next command of the same program that went well, where it comes soon.

    Of what was to be handed to others, as a commit or a push, any later one: what stood around it is no way to that.
    """
    hands_on, is_unknown = is_outward(run.command), NEVER_RAN.search(run.line) is not None
    first = next(iter(programs_of(acting_part(run.command) if hands_on else run.command)), "")
    task = task_of(first, run.command)
    if is_unknown:
        first = first.partition(" run ")[0]  # the task may have another name
    for other in later[: None if hands_on else _MAX_STEPS_TO_OTHER_WAY]:
        # A part of what failed, run alone, is no other way to the whole; and the whole is itself.
        if asks_for_help(other.command) or contains(run.key, other.key) or other.outcome is not CommandOutcome.OK:
            continue
        if is_unknown and run.key.endswith(f" {other.key}"):
            return other  # without what ran it
        is_same = is_unknown or task_of(first, other.command) == task
        if first and is_same and any(f"{one} ".startswith(f"{first} ") for one in programs_of(other.command)):
            return other
    return None
