"""Later runs of a failed command: whether they run it again, and what they show of its failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from compactor_cli.digest.checks import are_apart, contains, is_check, places_in
from compactor_cli.digest.commands import CONCLUDES, code_is_of_another
from compactor_cli.digest.error_lines import AT_LINE, TestOutput, conflicting_files, failure_parts
from compactor_cli.digest.runs import CommandOutcome, Run, shows_whole
from compactor_cli.model.patterns import pattern

# Wrong calls of tools, and searches without a hit: `No matches found`, `unknown flag`.
SLIPS = pattern(
    r"<tool_use_error>|Command aborted|[Ff]ile does not exist|File has not been read yet|EISDIR"
    r"|Found \d+ matches of the string|String to replace not found"
    r"|File has been (?:modified|unexpectedly modified)|InputValidationError|no such file or directory: ?\S*$"
    r"|No matches found|file or directory not found: |exceeds maximum allowed (?:tokens|size)|No files? found"
    r"|unknown flag|[Uu]nknown arguments?\b|illegal option"
    r"|parse error near|jq: error|no matches found: |^\(eval\):\d+: |^nothing to commit\b"
    r"|RUN_NO_SCRIPT|Missing script:|doesn't accept argument|\bField '\w+' doesn't exist on type"
)
# `read_output` with a cache, as each run is compared with many others.
Reader = Callable[[str], TestOutput]


def fails_alike(run: Run, other: Run) -> bool:
    """Whether two runs fail in the same test or, where the first names none, with the same message."""
    (tests, messages), (other_tests, others) = failure_parts(run.line), failure_parts(other.line)
    return not tests.isdisjoint(other_tests) or not (tests or set(messages).isdisjoint(others))


def shows_gone(run: Run, other: Run, read: Reader) -> bool:
    """Whether a later run shows that a failure is gone: the command passed, it fails otherwise, or a merge ended."""
    if conflicting_files(run.line) and other.outcome is CommandOutcome.OK and CONCLUDES.search(other.key):
        return True
    if other.outcome is CommandOutcome.UNKNOWN:
        # The same command shows the same part of its output, with the failure if it is still there.
        is_shown = other.command == run.command and not is_check(run.command) and code_is_of_another(run.command)
        text = read(other.output).text if is_shown else ""
        return bool(text) and not any(one in text for one in failure_parts(run.line)[1])
    if other.outcome is CommandOutcome.OK:
        return runs_again(other, run)
    if not (is_check(run.command) or places_in(run.output)):
        return False
    tests, messages = read(run.output).failing, failure_parts(run.line)[1]
    if tests and not any(one.startswith("panic: ") for one in messages):
        failing = read(other.output).failing
        return bool(failing) and tests.isdisjoint(failing) and runs_again(other, run)
    is_shown = any(map(read(other.output).text.__contains__, messages))
    return (other.command == run.command or shows_whole(other)) and not is_shown and runs_again(other, run)


def fails_otherwise(run: Run, other: Run, read: Reader) -> bool:
    """Whether a later run that would show a failure again fails otherwise: only the new failure is open."""
    shows_all = bool(places_in(run.output)) or not code_is_of_another(other.command)
    return other.outcome is CommandOutcome.FAILED and shows_all and shows_gone(run, other, read)


def runs_again(other: Run, run: Run) -> bool:
    """Whether ``other``, or a command that it echoes, runs ``run`` again or contains it, and not in a folder apart.

    Where a chain ends with `go test` and shows none of its results, only the checks before that must be contained.
    """
    whole, (*before, last) = f"{other.key} && {other.echoed}", run.key.split(" && ")
    is_before = bool(before) and _GO_TEST.match(last) and not _GO_RESULT.search(run.output)
    parts = [part for part in before if is_check(part)] if is_before else []
    return all(contains(whole, part) for part in parts or [run.key]) and not are_apart(other.command, run.command)


_GO_TEST, _GO_RESULT = pattern(r"go test\b"), pattern(r"^(?:ok|FAIL|---|\?|panic:)[ \t]", re.MULTILINE)


def runs_from_gone(run: Run, later: Sequence[Run], read: Reader) -> Sequence[Run] | None:
    """The later runs from the first without a failure on; None where one shows it, or a part of it, again."""
    own, messages, line = read(run.output), failure_parts(run.line)[1], AT_LINE.sub("", run.line)
    tests = left = own.failing
    # A test that panicked and now fails with another line got further.
    is_gone, has_panicked = False, "panic: " in line
    found: Sequence[Run] = ()
    for place, other in enumerate(later):
        if other.outcome is CommandOutcome.FAILED and other.line and not SLIPS.search(other.line):
            shown = read(other.output)
            is_failing = tests and not (is_gone or has_panicked) and tests.issubset(shown.failing)
            is_left = not is_gone and tests & shown.failing and shown.is_whole and runs_again(other, run)
            if is_failing or is_left or AT_LINE.sub("", other.line) == line:
                return None
            is_again = is_gone and all(map(shown.text.__contains__, messages))
            if is_again and (not tests or tests.intersection(shown.failing)):
                return None
        left = (left - _passed_in(other, left, read)) | (tests & read(other.output).failing)
        if not is_gone and (shows_gone(run, other, read) or (tests and not left and own.is_named)):
            is_gone, found = True, later[place:]
    return found


def _passed_in(run: Run, tests: Collection[str], read: Reader) -> frozenset[str]:
    """Those of ``tests`` that passed in a run: by their results, or because it succeeded and its command chose them."""
    if not tests:
        return frozenset()
    chosen = _CHOSEN_TESTS.findall(run.command) if run.outcome is CommandOutcome.OK else []
    exact = {name for nodes, _ in chosen for name in nodes.split("::")}
    begins = tuple(name for _, pattern in chosen for name in re.findall(r"\w+", pattern))
    passed = read(run.output).passed
    return frozenset(name for name in tests if name in passed or name in exact or name.startswith(begins))


# A test by name (`test_tides.py::test_low`) or by how names begin (`-run TestTide`, `-k low`).
_CHOSEN_TESTS = pattern(r"::([^\s\"'\[]+)|\s--?(?:run|k|t)[ =]+[\"']?([^\s\"']+)")
