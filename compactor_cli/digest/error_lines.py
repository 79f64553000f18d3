"""Error lines: what the output of a command that failed says went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat, zip_longest
from typing import NamedTuple

from compactor_cli.digest.noise import may_have
from compactor_cli.digest.texts import ELLIPSIS, head
from compactor_cli.formats.client_signs import AROUND_OUTPUT, exit_code
from compactor_cli.model.patterns import pattern

MOST_LINE_CHARS = 320
_MAX_PLACES, _MAX_REASONS = 4, 3
# Most characters that the names of failed tests take of an error line.
_MOST_NAMES_CHARS = 240
# A line that says that something went wrong.
ERROR_PATTERN = pattern(
    r"^\s*(?:--- FAIL|FAIL(?:ED|URE)?\b|(?:mise )?ERROR\b|ERR!|ERR_(?!PNPM_RECURSIVE)[A-Z_]+\b|E  +\S|panic:|fatal:"
    r"|fatal error"
    r"|npm (?:ERR!|error (?!code|path|workspace|location|command|A complete))|make: \*\*\*)"
    r"|^ ! \[(?:remote )?rejected\]"
    r"|^\s*Traceback \(|\b[A-Za-z_.]*(?:Error|Exception)\b(?::|$| [(\[])|\berror(?:\[[\w-]+\])?:|: error\b"
    r"|command not found|: exec format error$|No such file or dir|[Pp]ermission denied|\bundefined: |\bcannot find "
    r"|Segmentation fault"
    r"|\tfail\t|\btimed out\b|\b[1-9]\d* (?:failed|failures?|errors?|issues? found)\b|^\s*error • |错误[:\uff1a]|失败"
)
_NOTICE_PARTS = ("new", "available", "you ", "npm ", "notice", "deprecat", "debugger", "(node:", "warning")
# A tool's notice about itself or the age of what it uses: `A newer release of tide is available`.
_NOTICE = pattern(
    r"(?!E  |DeprecationWarning:|.*\b(?:error|success\w*|publish\w*)\b)"
    r"(?:.*\bnew(?:er)? (?:[\w.]+ ){0,3}(?:version|release)\b"
    r"|.*\bup(?:date|grade)s? (?:is |are )?available\b|.*\byou (?:are using|should consider upgrading)\b"
    r"|\(node:\d+\) (?:\[\w+\] )?\w*Warning\b|npm (?:notice|warn)\b|\W*notice\b|.*\bDeprecationWarning\b"
    r"|.*--trace-(?:deprecation|warnings)|To eliminate this warning|Please install the new|Debugger attached"
    r"|Waiting for the debugger)",
    re.IGNORECASE,
)


def own_lines(text: str) -> list[str]:
    """The lines of an output without the client's own around it, notices of tools, and the prefixes of runners."""
    lines = (_RUNNER.sub("", line) for line in text.split("\n"))
    return [line for line in lines if not (AROUND_OUTPUT.match(line) or is_notice(line))]


def is_notice(line: str) -> bool:
    """Whether a line is a tool's notice about itself: of a newer version, a deprecation, a debugger."""
    return may_have(line, _NOTICE_PARTS) and _NOTICE.match(line) is not None


# The prefix by which a runner of many packages names what printed a line: `web:check: `, `packages/web check: `.
_RUNNER = pattern(r"^@?[\w./-]+(?::| )[a-z][\w-]*(?::[a-z][\w-]*)*: (?=\S*[./])")


def error_line(text: str) -> str:
    """What went wrong, in one line of at most `MOST_LINE_CHARS` characters and an ellipsis.

    That is failed tests with what was wrong, a traceback's end, the places that a compiler or linter names, or the last
    line; an empty string where nothing but an exit code is given.
    """
    text = placed(text[:200_000])
    *passed, last = _ALL_PASSED.split(text)
    # Where all tests passed and a line after them is an error, a later step failed: what the tests printed is no error.
    text = last if passed and any(map(_says_why, last.split("\n"), repeat(""))) else text
    failed = failed_tests(text)
    # What Bun prints before an unhandled error may come from tests that passed.
    text = _failing_blocks(text) if failed else text.partition(_UNHANDLED)[2] or text
    lines = [line for line in own_lines(text) if any(map(str.isalpha, line)) and not _SAYS_LITTLE.search(line)]
    lines = list(_without_warnings(lines))
    traced = next((i for i, line in enumerate(lines) if line.lstrip().startswith("Traceback (")), -1)
    if traced >= 0:
        above = len(lines[traced]) - len(lines[traced].lstrip())
        lines = [line for line in lines[traced + 1 :] if not line[above:].startswith((" ", "\t"))] or lines[-1:]
    elif conflicts := _CONFLICT.findall(text):
        return MERGE_CONFLICT + ", ".join(dict.fromkeys(conflicts))
    elif empty := _EMPTY_PICK.search(text):
        return empty[0]
    lines = _of_failed_tests(lines) if failed else lines
    places = _one_of_each_file(_named_places(lines) if traced < 0 else ())
    names = " · ".join(failed)
    places = [line for line in places if not (failed and (_RIGHT.search(line) or line.strip(" ─") in names))]
    if failed:
        # A test may print what it did in the form of a place, too: what was wrong has a word for it, or comes last.
        places = ([line for line in places if _WRONG.search(line)] or places[-1:])[-_MAX_PLACES:]
    if failed and not places:
        places = list(dict.fromkeys(_reasons(text)))[:_MAX_REASONS]
    if not places:
        followed = zip_longest(lines, lines[1:], fillvalue="")
        places = next((_with_next(*pair) for pair in followed if _says_why(*pair)), [])
    if not (places or failed):
        places = [line for line in lines if not (exit_code().search(line) or _COUNTS.fullmatch(line))]
        places = [line for line in places if not _ADVICE.match(line)][-1:] or places[-1:]
    if not failed:
        return short(" · ".join(short(line.strip(), MOST_LINE_CHARS // 2) for line in places[:_MAX_PLACES]))
    reasons = (short(line.strip(), MOST_LINE_CHARS // 2) for line in places[:_MAX_PLACES])
    return short(" · ".join((short(names, _MOST_NAMES_CHARS), *reasons)))


def placed(text: str) -> str:
    """The text in which each finding that stands above its place (oxlint, miette), or below its file, is one line.

    Below its file it stands where ESLint, `next lint` or Stylelint found it. Of these, errors hide the warnings.
    """
    text = _DRAWN.sub(r"\2: \1", text) if ",-[" in text or "╭─[" in text else text
    return "\n".join(_below_files(text.split("\n"))) if _BELOW_FILE.search(text) else text


def _below_files(lines: Sequence[str]) -> Iterator[str]:
    findings = [_FINDING.match(line) for line in lines]
    has_error = any(found and found[2] in _ERROR_MARKS for found in findings)
    file = ""
    for line, found in zip(lines, findings, strict=True):
        if found and file:
            if found[2] in _ERROR_MARKS or not has_error:
                kind, message = found[2].lower().rstrip(":"), " ".join(found[3].split())
                yield f"{file}:{found[1]}: {kind} {message.removeprefix('Error: ')}"
        elif _FILE_ALONE.fullmatch(line):
            file = _DRIVE.sub("", line).replace("\\", "/").removeprefix("./")
        else:
            yield line


# `  68:13  error  'tide' is not defined  no-undef`; where the message has several lines, findings go on below it.
_FINDING = pattern(r"[ \t]*(\d+:\d+)[ \t]+(error|warning|Error:|Warning:|✖|⚠)[ \t]+(\S.*)")
_FILE_ALONE = pattern(r"(?:[A-Za-z]:)?[^\s:]*\w\.[A-Za-z]{1,6}")
_BELOW_FILE = pattern(rf"^{_FILE_ALONE.pattern}\n{_FINDING.pattern}", re.MULTILINE)
_DRIVE = pattern(r"^[A-Za-z]:")
_ERROR_MARKS = "error", "Error:", "✖"


# `  x no-debugger: …` above `   ,-[src/tide.ts:5:8]`
_DRAWN = pattern(r"^ *[x×] (.+)\n[ \t]*(?:,-|╭─+)\[(\S+:\d+:\d+)\]$", re.MULTILINE)
# The last line of a test runner that found no failure: Bun, Jest, Vitest, pytest and Cargo.
_ALL_PASSED = pattern(
    r"^ *(?:0 fail|Tests: +\d+ passed, \d+ total|Tests +\d+ passed \(\d+\)|=+ \d+ passed\b[^=\n]*=+"
    r"|test result: ok\..*)$",
    re.MULTILINE,
)
# A line of JSON that holds a number, true, false, null or the start of a value: `"failed": 2,`.
_COUNTS = pattern(r'\s*"[\w.-]+": ?(?:\d[\d.]*|true|false|null|[\[{])[\]},]*\s*')
# A line after an error that only names where to read on (`See tide --help`), or a hook that ran (`husky - `).
_ADVICE = pattern(
    r"\s*(?:https?://\S+$|husky - |hint: |(?:for|to) (?:more )?(?:details?|help|information|usage)\b"
    r"|(?:see|use|try|run|usage)\b)",
    re.IGNORECASE,
)
# A failure without a word for an error: what is missing (`No such gauge`), or a mark that a script prints (`✖ tide`).
_MISSING = pattern(
    r"^\s*[⚠✖✗❌]|\bsyntax error\b|\bcould not be (?:found|opened|read|resolved)\b"
    r"|^\W*[Nn]o such \w+\b|\bis not (?:recognized|installed)\b"
)


def _failing_blocks(text: str) -> str:
    """What Bun's failed tests printed, each up to its line `(fail) …`; the whole text where it has no such line."""
    blocks, block = list[str](), list[str]()
    for line in text.split("\n"):
        block.append(line)
        if _ENDS_TEST.match(line):
            blocks += block if line.startswith("(fail)") else ()
            block = []
    return "\n".join(blocks) or text


# The line that Bun prints after the output of a test (`(pass) rings at noon`), or above a file's (`clock.test.ts:`).
_ENDS_TEST = pattern(r"\((?:pass|fail|skip|todo)\) |\S+\.(?:test|spec)\.\w+:$")
_UNHANDLED = "# Unhandled error between tests"


def _without_warnings(lines: Sequence[str]) -> Iterator[str]:
    """The lines without a compiler's warnings and their places, log lines, and lines of code that a runner shows.

    All lines where none of them begins as an error does.
    """
    has_error = any(line.lstrip().startswith(("error:", "error[", "fatal:")) for line in lines)
    warns = False
    for line in lines:
        is_warning = _WARNS.match(line) is not None
        is_place = warns and line.lstrip().startswith("-->")
        if not (has_error and (is_warning or is_place or _AROUND.match(line))):
            yield line
        warns = is_warning


# A log line that is not an error (`[12:30:05] reading`), or a line of code with its number (`> 12 | ring()`).
_WARNS = pattern(r"\s*warning(?:\[\w+\])?: ")
_AROUND = pattern(r"\s*\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d[^a-z]*\](?!\W*ERROR)|\s*(?:> *)?\d+ +(?:\d+ +)?[|│]")


def _of_failed_tests(lines: Sequence[str]) -> list[str]:
    """The lines that Go's failed tests printed; where there are none, all lines but those of the runner."""
    lines_of: dict[str, list[str]] = {}
    name, failed = "", dict[str, None]()
    for line in lines:
        if found := _OF_TEST.match(line):
            name = found[2]
            failed |= {name: None} if found[1] == "FAIL" else {}
        elif not line.startswith("FAIL"):
            lines_of.setdefault(name, []).append(line)
    return [line for name in [name for name in failed if name in lines_of] or lines_of for line in lines_of[name]]


MERGE_CONFLICT = "Merge conflict in "


def conflicting_files(line: str) -> tuple[str, ...]:
    """The files that the error line of a merge names, or an empty tuple for any other line."""
    return tuple(line.removeprefix(MERGE_CONFLICT).split(", ")) if line.startswith(MERGE_CONFLICT) else ()


# A line that explains no failure: a stack frame, a test or package that passed, a log line that is not an error.
_SAYS_LITTLE = pattern(
    r" \+0x[0-9a-f]+$|^\s*(?:--- (?:PASS|SKIP): .*/|ok\s|[✓✔√] |npm error (?:code|path|workspace|location|command) )"
    r"|\b(?:INFO|DEBUG|TRACE)\b|\blevel=(?:info|debug)\b"
    # Of PowerShell, around what it says: the place, the line with a mark below it, kinds of errors.
    r"|^At line:\d+ char:|^\+ |^\s+\+ (?:CategoryInfo|FullyQualifiedErrorId)\b|^\+ +~"
)
_OF_TEST = pattern(r"\s*(?:--- (PASS|FAIL|SKIP):|=== [A-Z]+) +(\S+)")
_CONFLICT = pattern(r"^CONFLICT \([^)\n]*\): Merge conflict in (\S+)", re.MULTILINE)
# Complete as an error: what git prints after it is the status of a clean tree.
_EMPTY_PICK = pattern(r"^The previous cherry-pick is now empty\b.*", re.MULTILINE)
# A line that begins with a place, as compilers and linters name it: `src/tide.ts:12:3: …`, `src/tide.ts(12,3): …`.
PLACE = pattern(r"\s*(?:at )?(?:\[[\w:.-]+\] )?[\w./\\()\[\]@-]+\.\w{1,5}(?::\d+(?::\d+)?:? |\(\d+(?:,\d+)?\): )\s*\S")


def failed_tests(text: str) -> list[str]:
    """The tests that a runner lists as failed, as it names them, without the time they took.

    Subtests of a failed test of Go are left out.
    """
    found = (re.sub(r"\n +", " ", next(filter(None, names))) for names in _FAILED_TEST.findall(text))
    named = dict.fromkeys(f"FAILED {name}" if _NAMED_ALONE.match(name) else name for name in found)
    return [name for name in named if not (name.startswith("---") and "/" in name and name.partition("/")[0] in named)]


_FAILED_TEST = pattern(
    r"^\s*(?:(--- FAIL: \S+)|FAILED (\S+::\S+)|(?:test )?(\S+::\S+) (?:\.\.\. )?FAILED\b"  # Go, pytest, Cargo
    r"|((?:FAIL|ERROR): test\w* \([\w.]+\))"  # unittest
    r"|(\(fail\) .+?)(?: \[[\d.]+m?s\])?$|(FAIL +\S+\.\w+ > .+)$|(● .+ › .+)$"  # Bun, Vitest, Jest
    r"|(\d+\) .+\n +.+):\n\n|(✖ .+?) \([\d.]+m?s\)$"  # Mocha, Node
    r"|(\d+\) (?:\[[\w ]+\] › )?\S+\.\w+:\d+:\d+ › .*?)[ ─]*$"  # Playwright
    r"|(rspec \S+\.rb\S* # .+)$|(\d+\) \S+::test\w+)"  # RSpec, PHPUnit
    r"|\[ERROR\] +(\w+(?:\.\w+)*\.\w+:\d+ .+)$|(Failed \w+(?:\.\w+)+)(?: \[.*m?s\])$"  # JUnit, .NET
    r"|\[xUnit\.net [\d:.]+\] +(\S+ \[FAIL\])$)",
    re.MULTILINE,
)
_NAMED_ALONE = re.compile(r"\S+::\S+$")


def names_of_tests(line: str) -> list[str]:
    """The bare names of the tests in an error line, without the runner's marks of failure around them."""
    return [name or other for name, other in FAILED_NAME.findall(line)]


FAILED_NAME = pattern(
    r"(?:--- FAIL: |FAILED \S*::)(\w+)|(?:\(fail\) |FAIL +\S+ > |● |✖ (?!\d+ problems?\b))(.+?)(?= · |$)"
)


def _reasons(text: str) -> Iterator[str]:
    """The lines that state what was wrong with tests and what was expected, in order.

    A line that ends with a colon comes with the line after it.
    """
    lines = [line.strip() for line in own_lines(text) if line.strip()]
    for line, after in zip_longest(lines, lines[1:], fillvalue=""):
        if _REASON.match(line):
            yield f"{line} {after}" if line.endswith(":") else line


_REASON = pattern(
    r"(?:(?:[\w.]*(?:Error|Exception)\b|Failure/Error|error)(?: \[\w+\])?: |expect\(|thrown: "
    r"|Failed asserting |Assert\."
    r"|(?:[Ee]xpected|[Rr]eceived|[Aa]ctual|got)\b[\w ]*:)"
)
_IS_FOLLOWED = pattern(r"^\s*FAIL +\S|:\s*$")
_IS_POINTED_AT = pattern(r"\s*--> \S")
_WRONG = pattern(
    r"^E  |error\b|\b(?:should|expect|want|got\b|fail|missing|mismatch|differ|unexpected|not\b|\w+n't\b)", re.IGNORECASE
)
# How a test prints that something went well.
_RIGHT = pattern(r"[✓✔]|\b(?:completed|passed) successfully\b")


def _named_places(lines: Sequence[str]) -> Iterator[str]:
    """The lines that begin with the place of an error, in order; nothing where there is none.

    Among them are pytest's reasons, each by its first line (``E   KeyError``) after the step that led to it.
    """
    if any(PLACE.match(line) for line in lines):
        step = ""
        for before, line, below in zip(("", *lines), lines, (*lines[1:], ""), strict=False):
            if _IS_STEP.search(line):
                step = line
            elif line.startswith("E  ") and not before.startswith("E  "):
                yield from filter(None, (step, line))
                step = ""
            elif PLACE.match(line) and ": # " not in line:
                # Biome draws a rule after a place, and says below it what is wrong.
                why = f" {below.strip()}" if below.lstrip().startswith("×") else ""
                yield f"{_RULE.sub('', line)}{why}"


# A step on the way to an error, in pytest's short form (`clock.py:12: in ring`): the last one before it counts.
_IS_STEP = pattern(r"^\S+:\d+: in [\w.<>]+$")
_RULE = pattern(r"\s*(?:FIXABLE\s*)?━+\s*$")


def only_counts(line: str) -> bool:
    """Whether an error line states only how many failed, and not which."""
    return _ONLY_COUNTS.fullmatch(line) is not None


_ONLY_COUNTS = pattern(r"\W*[\w :]*\b\d+ (?:failed|failures?|errors?)\b[\w ,.()]*")


def _one_of_each_file(places: Iterable[str]) -> list[str]:
    """The places of errors, reordered: the first in each file, then the second in each, and so on.

    Each file has something to fix, so none is crowded out by another. A line that two programs report of one file, each
    from its own folder (``../app/test/a.ts``, ``test/a.ts``), counts once.
    """
    by_file: dict[str, list[str]] = {}
    reported: dict[str, str] = {}
    for line in places:
        whole = line.strip()
        path = re.split("[:(]", whole, maxsplit=1)[0]
        name = whole[path.rfind("/") + 1 :]
        known = f"/{reported.get(name, '')}"
        if name in reported and (known.endswith(f"/{whole}") or f"/{whole}".endswith(known)):
            continue
        reported[name] = whole
        by_file.setdefault(path, []).append(line)
    return [line for row in zip_longest(*by_file.values()) for line in row if line]


def erring_files(text: str) -> dict[str, str]:
    """The files in which compilers or linters find errors, each with the first line that says so."""
    found: dict[str, str] = {}
    for line in _named_places(own_lines(placed(text[:200_000]))):
        if PLACE.match(line):
            found.setdefault(re.split("[:(]", line.strip(), maxsplit=1)[0].removeprefix("./"), line)
    return found


def _with_next(line: str, after: str) -> list[str]:
    """An error line, with the line after it where the two belong together.

    They do where the first is the name of a failed test or ends with a colon, where the second points at its place
    (``--> ``), and where a sentence follows a short error: it explains more.
    """
    is_explained = len(line) <= _SHORT_CHARS and line.rstrip()[-1:].isalnum() and _SENTENCE.match(after)
    return [line, after] if is_explained or _IS_FOLLOWED.search(line) or _IS_POINTED_AT.match(after) else [line]


_SHORT_CHARS, _SENTENCE = 80, pattern(r"\s*[A-Z][a-z']+ [a-z].{20,}\.$")


def _says_why(line: str, after: str) -> bool:
    """Whether a line names an error, or the next line points at the place of one (``--> ``)."""
    says = ERROR_PATTERN.search(line) or _MISSING.search(line)
    return says is not None or _IS_POINTED_AT.match(after) is not None


def short(line: str, chars: int = MOST_LINE_CHARS) -> str:
    """The leading parts of a line (`` · `` between them) that fit into ``chars``, else its first whole words.

    A cut line ends with an ellipsis; an empty string where not even one word fits.
    """
    if len(line) <= chars:
        return line
    end = line.rfind(" · ", 0, chars)
    cut = line[:end] if end > 0 else head(line, chars)
    return f"{cut} {ELLIPSIS}" if cut else ""


# The number of a line or column in a place: it changes where lines above come or go, and the message does not.
AT_LINE = pattern(r":\d+")


@lru_cache(maxsize=1024)
def failure_parts(line: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The tests that an error line names, and its other parts, without the numbers of lines."""
    parts = (part.strip(f" {ELLIPSIS}") for part in AT_LINE.sub("", line).split(" · "))
    messages = tuple(part for part in parts if part and not FAILED_NAME.match(part))
    return frozenset(names_of_tests(line)), messages


class TestOutput(NamedTuple):
    """What a run of tests printed, and the tests in it by their results."""

    text: str  # the output without the numbers of lines
    failing: frozenset[str]
    passed: frozenset[str]  # none of them in `failing`
    is_named: bool  # no sign of a failed test without a name: no higher count of failures, no time that ran out

    @property
    def is_whole(self) -> bool:
        """Whether all tests ran, as far as the output shows."""
        return self.is_named and not _CUT_SHORT.search(self.text)


def read_output(output: str) -> TestOutput:
    """The results of tests in the output of a run."""
    text = AT_LINE.sub("", placed(output))
    failing, passed = (
        frozenset(name for names in result.findall(text) for name in names if name) for result in (_FAILS, _PASSES)
    )
    number = max(len(failing), len(failed_tests(text)))
    is_named = not _TIMED_OUT.search(text) and all(int(counted) <= number for counted in _COUNTED.findall(text))
    return TestOutput(text, failing, passed - failing, is_named)


# How pytest (in two orders), Go, Cargo, unittest, Jest, Vitest, Bun and Node print the result of a test.
_FAILS = pattern(
    r"^\s*(?:(?:--- FAIL: |FAILED \S*::)(\w+)|(?:test (?:\S*::)?|\S+::)(\w+)\S* (?:\.\.\. )?FAILED\b"
    r"|FAIL: (test\w*) \(|(?:✕ (.+?)(?: \(\d.*\))?|× (.+?) \d+m?s)$"
    r"|(?:\(fail\) (.+?)(?: \[[\d.]+m?s\])?|✖ (.+?) \([\d.]+m?s\))$)",
    re.MULTILINE,
)
_PASSES = pattern(
    r"^\s*(?:(?:--- PASS: |PASSED \S*::)(\w+)|(?:test (?:\S*::)?|\S+::)(\w+)\S* (?:\.\.\. )?(?:PASSED|ok)\b"
    r"|(test\w*) \(.*\.\.\. ok$|(?:✓|\(pass\)) (.+?)(?: \(\d.*\)| \d+m?s| \[[\d.]+m?s\])?$|✔ (.+?) \([\d.]+m?s\)$)",
    re.MULTILINE,
)
_COUNTED = pattern(r"\b(\d+) failed\b")
_TIMED_OUT = pattern(r"\btimed out after\b")
# Where a run of tests ended early: what did not run is not listed.
_CUT_SHORT = pattern(r"panic: |! stopping after ")
