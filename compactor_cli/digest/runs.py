"""Runs of commands: how each ended, and the line of its output that reports it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from compactor_cli.digest.commands import (
    acts_outside,
    asks_for_help,
    bare_command,
    code_is_of_another,
    command_key,
    is_read_only,
    may_act_outside,
    searched_for,
    searches_for_errors,
    sent_subject,
)
from compactor_cli.digest.edits import editor_step
from compactor_cli.digest.error_lines import (
    ERROR_PATTERN,
    MOST_LINE_CHARS,
    PLACE,
    error_line,
    is_notice,
    own_lines,
    short,
)
from compactor_cli.digest.events import Event, EventKind, results_of
from compactor_cli.digest.noise import may_have
from compactor_cli.digest.shell import GIT, segments, unquoted
from compactor_cli.digest.tools import ToolKind, command_of
from compactor_cli.formats.client_signs import ATTACHMENTS, EXIT_CODE_WORDS, background_id, exit_code, started_id
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass


class CommandOutcome(StrEnum):
    """How a command ended."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"  # still running, interrupted, or without a result


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a command."""

    command: str
    key: str  # the same for runs that do the same (see `command_key`)
    event: int  # position of the call in the events
    record: int
    result_record: int  # the record of the call where there is no result
    outcome: CommandOutcome
    code: int = -1  # -1 where it is not shown
    line: str = ""  # of the output: the error if it failed, else what a test, build or commit reports
    is_read_only: bool = False
    echoed: str = ""  # the commands that a task runner prints as those that it runs, as a chain
    output: str = ""  # empty where the run is refused
    is_refused: bool = False  # the user turned it down or stopped it

    @property
    def acts_outside(self) -> bool:
        """Whether it changed something outside the files of the work: a commit, a push, a release, a service."""
        return acts_outside(self.command)

    @property
    def asks_a_server(self) -> bool:
        """Whether it calls a server, which is done again and again with other numbers and texts."""
        return self.key.startswith("gh api ")


_EDGE_CHARS = 400
_IS_PLACE = pattern(r"\s*--> \S+:\d+")
_MAX_BRIEF_LINES, _MAX_BRIEF_CHARS = 3, 160
# What counts a whole run, anywhere in a line: `12 passed`, `0 errors`.
_COUNT = pattern(
    r"\b\d+ (?:passed|tests? passed|passing|tests? ok)|^All tests passed\b|\b(?:0|[Nn]o) (?:issues|errors|problems)\b"
    r"|^ ?0 fail$|^ ?\d+ pass$"
    # `dotnet test`, in any language: failed, passed, skipped, in all.
    r"|^\w+! +- \w+: +0, \w+: +[1-9]\d*, \w+: +\d+, \w+: +\d+, "
)
# What a check or a build that went well reports.
_RESULT = pattern(
    rf"{_COUNT.pattern}|^ok\s+\S|^PASS\b|BUILD SUCC|^OK \(|^All checks passed|Success: |^test result: ok"
    r"|compiled successfully|^✓ built in |\bno offenses detected"
    r"|^Finished in [\d.]+m?s$"  # mise, after all tasks; one that fails ends the run
)
# How git reports a commit: `[tides 1a2b3c4] Read the gauge`.
COMMIT_LINE = pattern(
    r"^\[(?P<branch>[\w./-]+)(?: \(root-commit\))? (?P<hash>[0-9a-f]{7,40})\](?P<subject>.*)", re.MULTILINE
)
# A commit in a short log: `4f1c2aa Read the tide`.
LOG_LINE = pattern(r"[0-9a-f]{7,40} \S")
_COMMITS = pattern(rf"\b{GIT}commit\b.*\b{GIT}(?:log|show)\b", re.DOTALL)
# What any command that went well reports: `2 files changed`, `Switched to branch 'tides'`.
_REPORT = pattern(
    rf"{_RESULT.pattern}|{COMMIT_LINE.pattern}|\b\d+ files? changed|Successfully"
    r"|->\s+\S+(?: \([\w ]+\))?$|/pull/\d+|/issues/\d+|^Switched to |^Your branch is |^branch '[^']+' set up"
    r"|^(?:Deleted|Created) |^HEAD is now at |^Checked \d+ files? in \S+ (?:No fixes|Fixed \d)|^\d+ fix(?:es)? made in "
)
# In lower case: every line that `_RESULT` or `_REPORT` matches has one of these parts (see `may_have`).
_REPORT_PARTS = (
    "pass|ok|issues|errors|problems|succ|[|changed|->|/pull/|switched|your branch|branch '|deleted|created|head is"
    "|0 fail|no fixes|no offenses|fixed |built in|made in|! |finished in"
).split("|")
_NOTHING_PARTS = ("no test", "deselected", " 0 file", "0 runs", "0 tests", "no packages")
_RAN_NOTHING = pattern(
    r"\bno tests? (?:to run|files?|ran|found|collected)\b|\bno packages to test\b|^\W*\d+ deselected in "
    r"|^\W*(?:Linting|Checked|Checking): 0 file|^\W*(?:Ran|Running)? ?0 (?:runs|tests)\b",
    re.IGNORECASE | re.MULTILINE,
)
_FAILURE = pattern(
    r"\s*(?:--- FAIL|FAIL\b|FAILED\b|panic:|fatal:|npm (?:ERR!|error\b)|make: \*\*\*|Traceback \(|error\[[\w-]+\]: )"
    r"|\s*ERR_(?!PNPM_RECURSIVE)[A-Z_]+\b|error: could not compile\b"
    # pytest: a test in the verbose form, and errors before any test.
    r"|\S+::\S+ FAILED\b|_+ ERROR collecting |\W*[1-9]\d* errors? in [\d.]+s\b"
    r"|\s*(?:Found )?[1-9]\d* (?:fail|errors?\.)$|[1-9]\d* issues? found\b"
    r"|\W*[1-9]\d* failed, \d+ passed|.*\b\d+ passed\b.*\b[1-9]\d* failed\b|\w+! +- \w+: +[1-9]\d*, \w+: +\d+, "
    r"|\[xUnit\.net .*\[FAIL\]$|(?:\[[\w:.-]+\] )?ERROR task failed\b"
    # A step could not begin, however the next ones of the line ended.
    r"|Error: (?:request to|connect|getaddrinfo) \S"
    r"|error: (?:[Ff]ailed to (?:spawn|push|open|read|parse|download|build)|cannot |[Cc]ould not |pathspec )"
    r"|\S+: (?:line )?\d+: .*(?:unbound variable|command not found|not found|syntax error|No such file)"
)


def runs(events: Sequence[Event]) -> tuple[Run, ...]:
    """Every run of a command, in order."""
    results = _ends(events)
    found = tuple(
        _run(event, number, results.get(number))
        for number, event in enumerate(events)
        if event.kind is EventKind.CALL and event.tool is ToolKind.COMMAND
        # Input without a letter or digit is a key that was pressed.
        if any(map(str.isalnum, command_of(event.arguments))) and not editor_step(event)
    )
    if found and not results:
        found = tuple(_as_stated(run, events) for run in found)
    # Most outputs show only the end: what one run echoes at its beginning holds for all of its key.
    echoed = {run.key: run.echoed for run in found if run.echoed}
    return tuple(replace(run, echoed=echoed[run.key]) if run.key in echoed else run for run in found)


def _as_stated(run: Run, events: Sequence[Event]) -> Run:
    """A run whose result the client does not record: of a commit or a push, with what the assistant reports next."""
    spoken = (one for one in events[run.event + 1 :] if one.kind in (EventKind.ASSISTANT, EventKind.USER))
    report = next(spoken, None) if _HANDS_ON.search(run.key) else None
    found = _HANDED_ON.search(report.text) if report and report.kind is EventKind.ASSISTANT else None
    if not (report and found):
        return run
    output = f"[{found['branch'] or 'HEAD'} {found['hash']}] {sent_subject(run.command)}"
    output = output if "git commit" in run.key else found[0]
    return replace(
        run, outcome=CommandOutcome.OK, line=found[0], output=output, result_record=report.record, is_read_only=False
    )


_HANDS_ON = pattern(r"\bgit (?:commit|push)\b")
# `Committed and pushed `1a2b3c4` to `tides`
_HANDED_ON = pattern(
    r"\b(?:[Cc]ommitted|[Pp]ushed)\b[^.\n`]{0,40}`(?P<hash>[0-9a-f]{7,40})`(?: (?:to|on) `(?P<branch>[\w./-]+)`)?"
)


def _run(event: Event, number: int, result: Event | None) -> Run:
    command = command_of(event.arguments).strip()
    key = command_key(command)
    look = is_read_only(bare_command(command))
    shows_errors = searches_for_errors(command) and not look
    is_refused = result is not None and result.is_refusal
    output = result.text if result and not is_refused else ""
    outcome, code = _outcome(result, look, shows_errors)
    if outcome is CommandOutcome.OK and not (look or shows_errors) and result and code_is_of_another(command):
        outcome = _outcome_by_output(command, result.text)
    report = output
    if result and not look and (codes := _echoed_codes(command, output)):
        outcome = CommandOutcome.FAILED if any(codes) else CommandOutcome.OK
        report = _ECHOED_CODE.sub("", output)
    if result and not (look or may_act_outside(command)) and _ran_nothing(result.text):
        outcome = CommandOutcome.UNKNOWN
    listed = _SOURCE.findall(output) if _LISTS_UNFORMATTED.fullmatch(key) else []
    outcome = CommandOutcome.FAILED if listed else outcome  # though the exit code is 0
    skipped = "" if look or outcome is not CommandOutcome.OK else _all_skipped(output)
    if skipped or (outcome is CommandOutcome.OK and _CURL.search(command) and _HTTP_ERROR.search(output)):
        outcome = CommandOutcome.UNKNOWN  # no test ran; it was sent, and turned down
    if outcome is CommandOutcome.FAILED and code > 0 and asks_for_help(command) and not ERROR_PATTERN.search(output):
        outcome = CommandOutcome.OK  # some programs end with a failing code after they printed their help
    return Run(
        command=command,
        key=key,
        event=number,
        record=event.record,
        result_record=result.record if result else event.record,
        outcome=outcome,
        code=code,
        line=skipped or short(" · ".join(listed)) or _line(command, report, outcome, look),
        is_read_only=look,
        echoed=" && ".join(_ANNOUNCED.sub(r"npm run \1", one) for one in _ECHO.findall(output[:_MAX_ECHO_CHARS])),
        output=output,
        is_refused=is_refused,
    )


def _echoed_codes(command: str, output: str) -> list[int]:
    """The exit codes that a command line itself prints after its steps (`make; echo "exit=$?"`)."""
    number = len(_ECHOES_CODE.findall(command))
    return [int(code) for code in _ECHOED_CODE.findall(output)[-number:]] if number else []


_ECHOES_CODE = pattern(r"\becho\b[^|;&\n]*\$(?:\?|\{?PIPESTATUS)")
_ECHOED_CODE = pattern(
    r"^[^\w\n]*(?:[\w -]*(?:exit|rc|code|status)[\w ]*|\w+)[ :=]+(\d{1,3})\W*$", re.IGNORECASE | re.MULTILINE
)
_CURL = pattern(r"\bcurl\b(?![^|;&]* (?:-f|--fail))")
_HTTP_ERROR = pattern(r"\bHTTP(?:/[\d.]+)?[ :=]+[45]\d\d\b|\"status(?:Code)?\": ?[45]\d\d\b|^[45]\d\d$", re.MULTILINE)


def _ends(events: Sequence[Event]) -> dict[int, Event]:
    """The result of each call that has one, by position; for work in the background, the one that shows its end."""
    results, started = results_of(events), dict[str, int]()
    for number, result in tuple(results.items()):
        call = events[number]
        shows_work = call.name in ATTACHMENTS.look_tools
        # A look at running work does not take the place of the command that began it.
        begun = started.get(background_id(call.arguments), number) if shows_work else number
        if call.tool is ToolKind.COMMAND and (key := started_id(result.text)):
            started[key] = started.get(key, begun) if shows_work else number
            del results[number]
        elif shows_work and ATTACHMENTS.is_over(call.name, result.text):
            results[begun] = result
    for event in events:
        if event.of_client and (found := ATTACHMENTS.result_notice.match(event.text)) and found[1] in started:
            results.setdefault(started[found[1]], event)
    return results


# mise: `[test] $ go test ./...` · yarn, task: `$ jest` · npm, pnpm: `> jest` · lint-staged: `✔ eslint --fix`
_ECHO = pattern(
    r"^(?:(?:\[[\w:.-]+\] )?[$>]|[✔✓](?= (?:eslint|biome|oxlint|stylelint|ruff)\b)) (@?\w\S* .*)$", re.MULTILINE
)
# npm and pnpm before it: `> tidegate@1.2.0 check`
_ANNOUNCED = pattern(r"@?[\w./-]+@\d\S* ([\w:.-]+)(?: \S+)?\Z")
_MAX_ECHO_CHARS = 2_000


def never_ran(run: Run) -> bool:
    """Whether a run failed because there is no such program, task, target or folder: that shows nothing of the work."""
    is_unknown = NEVER_RAN.search(run.line) or _NO_FOLDER.search(run.output[:_MAX_HEAD_CHARS])
    return run.outcome is CommandOutcome.FAILED and is_unknown is not None


NEVER_RAN = pattern(
    r"command not found|\bexec format error$|\b[Ff]ailed to spawn\b|\bno task \S|[Mm]issing script|[Ss]cript not found"
    r"|could not determine executable|No rule to make target|[Uu]n(?:known|recognized) (?:sub)?command"
    r"|\(eval\):\d+: (?:permission denied|no such file)|[Cc]an(?:'t|not) find a (?:root directory|config)"
)
# Go prints it above the packages whose setup failed for that.
_NO_FOLDER, _MAX_HEAD_CHARS = pattern(r"^stat \S+: directory not found$", re.MULTILINE), 400


def failed_with_code(result: Event | None) -> bool:
    """Whether a result shows an exit code other than 0: the command ran, and failed at its end."""
    return result is not None and _exit_code(result) > 0


def _outcome(result: Event | None, look: bool, shows_errors: bool) -> tuple[CommandOutcome, int]:
    if result is None or result.is_refusal:
        return CommandOutcome.UNKNOWN, -1
    code = _exit_code(result)
    if shows_errors:
        failed = any(_is_error_line(line.strip()) for line in result.text.split("\n"))
        return CommandOutcome.FAILED if failed else CommandOutcome.OK, -1
    is_stopped = _STOPPED.search(result.text[-_EDGE_CHARS:]) is not None
    if (code > 0 or result.is_error) and not is_stopped:
        return CommandOutcome.FAILED, code
    # A pipe hides the code of what failed before it; output of looking commands quotes others' errors.
    lines = _edges(result.text) if code < 0 and not look else ()
    # What passing Go tests log at a place is no error.
    is_passed = _GO_PASSED.search(result.text) is not None and "FAIL" not in result.text
    if any(_FAILURE.match(line) or (not is_passed and "error" in line and PLACE.match(line)) for line in lines):
        return CommandOutcome.FAILED, -1
    return (CommandOutcome.UNKNOWN, -1) if is_stopped else (CommandOutcome.OK, code)


_GO_PASSED = pattern(r"^ok\s+\S+\s+(?:[\d.]+s|\(cached\))", re.MULTILINE)
# What was stopped before its end: only what it had shown by then is known.
_STOPPED = pattern(
    r"\b(?:Command (?:aborted|timed out after [\w. ]+)|Tool execution aborted)\s*\Z|^\^C\s*\Z", re.MULTILINE
)


def _ran_nothing(text: str) -> bool:
    """Whether test runners report that they had nothing to run, and the output shows no other result."""
    if not (may_have(text, _NOTHING_PARTS) and _RAN_NOTHING.search(text)):
        return False
    rest = (line.strip() for line in text.split("\n") if not (_RAN_NOTHING.search(line) or exit_code().search(line)))
    telling = (line for line in rest if line != "PASS")
    return not any(_RESULT.search(line) or _FAILURE.match(line) for line in telling)


# What lists the files that are not formatted, and such a file: `gofmt -l gauge.go`.
_LISTS_UNFORMATTED = pattern(r"(?:go(?:fmt|imports)|gofumpt) (?:-\w )*-(?:l|ls|sl)(?: [^;&|]*)?")
_SOURCE = pattern(r"^\S+\.go$", re.MULTILINE)


def _all_skipped(text: str) -> str:
    """The line by which an output says that tests were skipped, if none of them ran; else an empty string."""
    skipped = _SKIPPED.search(text) if "skip" in text or "SKIP" in text else None
    return short(skipped[0].strip(" ="), MOST_LINE_CHARS) if skipped and not _NOT_SKIPPED.search(text) else ""


# A skipped test, as Go lists it and others count it, and signs that another one ran: Go lists these next to it.
_SKIPPED = pattern(
    r"^\s*--- SKIP: .*|^\W*(?:Tests:? +)?[1-9]\d* skipped(?:(?:, \d+ \w+)* in | \(\d|, \d+ total).*", re.MULTILINE
)
_NOT_SKIPPED = pattern(r"^\s*--- (?:PASS|FAIL): |\b[1-9]\d* (?:passed|failed|errors?)\b", re.MULTILINE)


def _outcome_by_output(command: str, text: str) -> CommandOutcome:
    """How a command ended whose exit code is not shown: by what it reports, else unknown.

    A full head, and a search for some lines, may leave failures out. A build without output found nothing wrong.
    """
    printed = text.strip("\n").split("\n")
    edges = [line.strip() for line in _edges(text) if line.strip()]
    lines = [line for line in edges if not line.startswith("$ ")]
    # A line `$ tsc` echoes what a script runs: it is a part of the command, not of its report.
    scripts = [f"{line} 2>&1" for line in edges if line.startswith("$ ") and "2>&1" in command]
    says_only_errors = any(map(_SAYS_ONLY_ERRORS.search, (command, *scripts)))
    if any(map(_FAILURE.match, printed)) or (says_only_errors and any(map(PLACE.match, lines))):
        return CommandOutcome.FAILED
    # JSON is an answer.
    cut = _HEAD.search(command)
    is_whole = not (_is_full(cut, text) or searched_for(command))
    is_data = re.match(r"\s*(?:\{\s*\"|\[\s*[\[{\"\d])", text) is not None
    reported = () if cut and not is_whole else (line for line in lines if may_have(line, _REPORT_PARTS))
    if is_data or any(map((_REPORT if is_whole else _COUNT).search, reported)):
        return CommandOutcome.OK
    return CommandOutcome.OK if is_whole and says_only_errors and not lines else CommandOutcome.UNKNOWN


def shows_whole(run: Run) -> bool:
    """Whether a run shows all that its command printed: it was not searched, nor cut by a head or tail."""
    cut = _CUT.search(run.command)
    return not (searched_for(run.command) or _is_full(cut, run.output))


def _is_full(cut: re.Match[str] | None, text: str) -> bool:
    """Whether a head or tail shows as many lines as it was asked for, so that there may be more."""
    return cut is not None and text.strip("\n").count("\n") + 1 >= int(cut[1] or 10)


def rerun(runs: Sequence[Run], events: Sequence[Event]) -> set[int]:
    """The positions of the runs whose command, to the letter, has a later result, which counts instead."""
    answered = results_of(events)
    newest: dict[str, int] = {}
    for run in runs:
        if run.event in answered:
            newest[run.command] = max(run.result_record, newest.get(run.command, -1))
    return {run.event for run in runs if newest.get(run.command, -1) > run.result_record}


_HEAD = pattern(r"\|\s*head\b(?:\s+-(?:n\s*)?(\d+))?")
_CUT = pattern(r"\|\s*(?:head|tail)\b(?:\s+-(?:n\s*)?(\d+))?")
_SAYS_ONLY_ERRORS = pattern(r"\b(?:go (?:build|vet)|tsc|gofmt|ruff|mypy|py_compile|eslint|clippy)\b[^|;\n]*2>&1")


def _is_error_line(line: str) -> bool:
    """Whether a line that a search for errors found reports one: a count above 0, or the error itself."""
    return int(line) > 0 if line.isdigit() else ERROR_PATTERN.search(line) is not None


def _exit_code(result: Event) -> int:
    """The exit code of a command, by its record or its output; -1 where neither shows it."""
    if result.exit_code >= 0:
        return result.exit_code
    for edge in (result.text[:_EDGE_CHARS], result.text[-_EDGE_CHARS:]):
        if may_have(edge, EXIT_CODE_WORDS) and (found := exit_code().search(edge)):
            return int(found[1]) % 256  # as shells count: -1 is 255, and not that none is shown
    return -1


def _edges(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if len(lines) <= 40 else lines[:20] + lines[-20:]


def _line(command: str, text: str, outcome: CommandOutcome, look: bool) -> str:
    if outcome is CommandOutcome.FAILED:
        # A search may only count the errors: that line is not an error.
        is_count = searches_for_errors(command) and not any(map(ERROR_PATTERN.search, text.split("\n")))
        return "" if is_count else error_line(text)
    if look:
        return ""
    lines = _edges(text)
    # The first line of a commit shows its branch and hash; the sizes after it count less. After a quiet commit, the
    # first line of a log is the commit.
    commit = next((line for line in lines if COMMIT_LINE.match(line)), "")
    if not commit and _COMMITS.search(command):
        commit = next((line for line in lines if LOG_LINE.match(line)), "")
    is_known, acts_outside = outcome is CommandOutcome.OK, may_act_outside(command)
    patterns = (_REPORT,) if acts_outside else (_RESULT, _REPORT) if is_known else (_RESULT,)
    reporting = [] if commit else [line for line in reversed(lines) if may_have(line, _REPORT_PARTS)]
    telling = [line for line in reporting if not (is_notice(line) or _IS_PLACE.match(line) or _IS_TO_DO.match(line))]
    reported = (line.strip(" \t=") for pattern in patterns for line in telling if pattern.search(line))
    # The end of a `git diff --stat` is about uncommitted changes, or about another commit.
    counts_own = acts_outside and _SHOWS_SIZES.search(command) is None
    reported = (one for one in reported if counts_own or not _DIFF_SIZE.match(one))
    reports = (one for one in reported if not (one == "PASS" or _SAYS_LITTLE.search(one) or one.startswith('"')))
    line = next(reports, "")
    if line == "0 fail":  # how many passed stands above it
        line = next((one for one in reports if one.endswith(" pass")), line)
    if _PACKAGE.match(line) and sum(bool(_PACKAGE.match(one)) and not _RAN_NOTHING.search(one) for one in lines) > 1:
        return short(next((one for one in reports if not _PACKAGE.match(one)), ""))
    line = commit or line or _brief(text)
    if line.startswith("Successfully installed ") and (clash := next(filter(_CLASHES.search, lines), "")):
        return short(f"{clash.strip()} · {line}", MOST_LINE_CHARS)
    return short(line, _MOST_LISTED_CHARS if line.startswith("Successfully installed ") else MOST_LINE_CHARS)


_MOST_LISTED_CHARS = 80
_SAYS_LITTLE = pattern(
    rf"{_RAN_NOTHING.pattern}|\bpotentially fixable\b|^Finished in \S+$", re.IGNORECASE | re.MULTILINE
)
# An entry of a list of steps, which a page may have: `- [x] the tests: 317 passed`.
_IS_TO_DO = pattern(r"\s*[-*] \[[ xX]\] ")
# What an installer says of a package that no longer fits: `tides 2 requires gauge<1, but you have gauge 3`.
_CLASHES = pattern(r"\brequires\b.*\bbut you have\b")
_SHOWS_SIZES = pattern(rf"\b{GIT}(?:show|diff|log)\b")
_DIFF_SIZE = pattern(r"\d+ files? changed, ")
# A package whose tests passed, as Go says it (`ok  tides/gauge 0.01s`): one of many says little.
_PACKAGE = pattern(r"ok\s+\S+\s+(?:\(cached\)|[\d.]+s)")


def _brief(text: str) -> str:
    """An answer of very few lines, on one line, as the command was run for it; empty for a longer one."""
    text = text.strip()
    if text.count("\n") > 4 * _MAX_BRIEF_LINES:
        return ""
    lines = [line.strip() for line in own_lines(text) if not line.startswith("Shell cwd was reset to ")]
    own = (line for line in lines if not _tells_exit_code(line))
    lines = [line for line in own if not (_ECHO.match(line) or _RAN_NOTHING.search(line) or _IS_PLACE.match(line))]
    whole = " · ".join(line for line in lines if line)
    is_brief = len(lines) <= _MAX_BRIEF_LINES and len(whole) <= _MAX_BRIEF_CHARS
    return whole if is_brief and any(map(str.isalnum, whole)) and whole not in ("(no output)", "PASS") else ""


def _tells_exit_code(line: str) -> bool:
    """Whether a line is the client's note on how the command ended."""
    is_in_brackets = line[:1] + line[-1:] in ("[]", "<>")
    return (exit_code().search if is_in_brackets else exit_code().fullmatch)(line.removeprefix("Process ")) is not None


def sets_up(other: Run, run: Run) -> bool:
    """Whether a run that went well installed, built, fetched or removed what another run may have failed for."""
    if other.outcome is not CommandOutcome.OK or other.key == run.key:
        return False
    takes_in = "git push" in run.key and _TAKES_IN.search(other.key) is not None
    if takes_in or any(map(_SETS_UP.match, segments(unquoted(other.key)))):
        return True
    removed = _REMOVES.search(other.key)
    path = removed[1].partition("*")[0].strip("./") if removed else ""
    return any("/" in one and one in run.output for one in (path, posixpath.dirname(path)))


_REMOVES = pattern(r"\brm -\w*r\w* (\S*\w/\S+)")
# What brings the commits of others, without which the server refuses a push.
_TAKES_IN = pattern(r"\bgit (?:pull|rebase|merge)\b")
_SETS_UP = pattern(
    r"(?:(?:\w+=\S*|sudo|env|time|npx|exec|python[\d.]* -m|uv run|mise exec --|(?:pnpm|bundle|poetry) (?:exec|run)) )*"
    r"(?:\S*/)?(?:(?:npm|pnpm|yarn|bun|pip3?|uv|poetry|cargo|go|gem|bundle|composer|brew|apt(?:-get)?|mix|dotnet"
    r"|gradlew?|mvn|prisma|alembic|docker|rake|rails)\b"
    r"[^|;&]*\b(?:i|ci|install|add|sync|build|generate|compile|migrate|up|get|restore)\b"
    r"|make\b|tsc\b(?![^|;&\n]*--noEmit))"
)
