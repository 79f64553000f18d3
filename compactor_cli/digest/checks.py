"""Checks of the work (tests, lint, types): which commands are checks, what they cover, and the places they report."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice, pairwise
from operator import attrgetter

from compactor_cli.digest.commands import PUTS_AWAY, STASHES, is_read_only, shown
from compactor_cli.digest.edits import PROSE
from compactor_cli.digest.error_lines import error_line, placed
from compactor_cli.digest.events import Event
from compactor_cli.digest.files import FileOperation
from compactor_cli.digest.runs import CommandOutcome, Run
from compactor_cli.digest.shell import GIT, PUTS_BACK, SHORTENS, segments, unquoted
from compactor_cli.digest.texts import ELLIPSIS, head, opening
from compactor_cli.digest.tools import FileAction, ToolKind
from compactor_cli.formats.directories import is_absolute
from compactor_cli.model.patterns import pattern


# Asked for each failed run and each run after it, from several places.
@lru_cache(maxsize=1 << 14)
def contains(whole: str, part: str) -> bool:
    """Whether running ``whole`` also runs what failed in ``part``.

    It does if it runs the same command, its program on everything or on a folder around its targets, or the task of
    the project for its kind of check. Of a chain, the last command that acts is the one that failed.
    """
    if whole == part:
        return True
    narrow = _last_acting(part)
    return bool(narrow) and any(_covers(wide, narrow) for wide in _steps(whole))


@lru_cache(maxsize=4096)
def _last_acting(key: str) -> tuple[str, ...]:
    """The last command of a chain that does more than show, as words; empty where there is none."""
    return next((step for step in reversed(_steps(key)) if not is_read_only(" ".join(step))), ())


@lru_cache(maxsize=4096)
def _steps(key: str) -> tuple[tuple[str, ...], ...]:
    """The words of each command of a chain, without runners. Cached, as each run is compared with many."""
    key = COMPILES_TESTS.sub(r"\1go build", key)
    parts = chain_parts(_REPAIRING.sub("", _APART.sub(r"\1=", key)))
    return tuple(words for piece in map(without_runner, parts) if (words := tuple(piece.split())))


# `go test -c ./tide` compiles the tests and runs none.
COMPILES_TESTS = pattern(r"(^|[ (])go test(?= (?:[^;&|]* )?-c(?: |$))")
# `-tags slow`: an option that adds to what is run, and is compared as one word (`-tags=slow`).
_APART = pattern(r"(?<= )(--?(?:build-)?tags|--features) (?!-)")
# A task in the form that repairs what it finds (`npm run lint:fix`) checks what it checks without.
_REPAIRING = pattern(r"(?<=\w):(?:fix|write)(?!\S)")
REPAIRS = pattern(rf"{_REPAIRING.pattern}|(?<!\S)--(?:fix|write)(?!\S)")


def without_runner(piece: str) -> str:
    """A command of a chain without runners and variables before its program, or the word `run` after it."""
    return _ONLY_RUNS.sub(r"\1", _RUN_BY.sub("", _SHORTENED.sub("", piece.strip("() "))))


_SHORTENED, _ONLY_RUNS = pattern(rf"^{SHORTENS}"), pattern(r"^(vitest|cypress|playwright) (?:run|test)\b")
# `FOO=1 uv run pytest`, `.venv/bin/python -m pytest`, `npx jest`: the runner does not change what is run.
_RUN_BY = pattern(
    r"^(?:(?:\w+=\S*|env|time|timeout \S+|npx|bunx|uvx|(?:uv|poetry|pdm|hatch|pipenv) run"
    r"|(?:pnpm|yarn|bun|mise) exec(?: --)?|(?:\S*/)?python3? -m"
    r"|(?:pnpm|yarn)(?= +(?:biome|eslint|jest|playwright|prettier|stylelint|tsc|vitest)\b)"
    r"|(?:python3?|bash|sh|node)(?= +\S+\.(?:py|sh|m?js)\b)) +)*(?:\S*/bin/)?"
)


def chain_parts(key: str) -> list[str]:
    """The commands of a chain (`a && b; c || d`), in order."""
    return [piece.strip() for piece in re.split(r"&&|;|\|\|", key) if piece.strip()]


def _covers(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    if wide == narrow or (is_check(" ".join(wide)) and _without_shown(wide) == _without_shown(narrow)):
        return True
    if _IS_ALL_TESTS.fullmatch(" ".join(wide)) and _IS_TEST_TASK.fullmatch(" ".join(narrow)):
        return True
    (program, selects, _, targets), (other, _, adds, named) = _read(wide), _read(narrow)
    if selects or not adds.issubset(wide):
        return False
    if kinds := _kinds_of_task(wide):
        return any(_KINDS[kind].search(" ".join(narrow)) for kind in kinds)
    if program != other:
        return False
    return not targets or (bool(named) and all(any(_is_below(name, target) for target in targets) for name in named))


# A runner on all tests or on a whole folder (`vitest run tests/`), and the task of a package that starts one.
_IS_ALL_TESTS = pattern(r"(?:bun test|vitest(?: run)?|jest|mocha)(?: [\w-]+/)?")
_IS_TEST_TASK = pattern(r"(?:npm|pnpm|yarn|bun) (?:run )?test")


@lru_cache(maxsize=4096)
def _kinds_of_task(words: tuple[str, ...]) -> str:
    """The kinds of checks, as keys of `_KINDS`, that a project's task (`make test`) runs on all of it; may be empty."""
    named = [word for word in words if word != "run" and not word.startswith("-")]
    if len(named) != 2 or named[0] not in _TASK_RUNNERS:
        return ""
    return _TASKS.get(named[1].removesuffix(":ci").removesuffix(":all"), "")


_TASK_RUNNERS = frozenset("mise make just task rake npm pnpm yarn bun".split())
# Letters: t for tests, l for lint, c for compiling and types. Tests compile what they run.
_TASKS = {"check": "tlc", "ci": "tlc", "verify": "tlc", "test": "tc", "lint": "l", "typecheck": "c", "build": "c"}
_KINDS = {
    "t": pattern(
        r"^(?:pytest|unittest|jest|vitest|mocha|rspec|phpunit|ctest)\b|^(?:go|cargo|deno|dotnet|flutter|swift) test\b"
        r"|^(?:npm|pnpm|yarn|bun)(?: run)? test\b|^node --test\b"
    ),
    "l": pattern(r"^(?:ruff check|eslint|biome (?:check|lint)|flake8|golangci-lint|cargo clippy)\b"),
    "c": pattern(r"^(?:tsc|mypy|pyright|go (?:build|vet)|cargo (?:build|check))\b"),
}


def _without_shown(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if not _SHOWS.fullmatch(word))


# Options of a test runner that change what it shows, not which tests it is given: `-q`, `--tb=short`.
_SHOWS = pattern(r"-[vqsx]+|-r\w+|--(?:verbose|quiet|no-header|tb=\w+|durations=\d+)")


@lru_cache(maxsize=4096)
def _read(words: tuple[str, ...]) -> tuple[tuple[str, ...], bool, frozenset[str], tuple[str, ...]]:
    """The program with its subcommand, whether an option selects some tests, the options that add, and the targets."""
    depth = (3 if words[0] == "mise" else 2) if words[0] in RUNNERS else 1
    pairs = zip(words[depth - 1 :], words[depth:], strict=False)
    # The word after an option that selects, or that sets the form of the report, is its value.
    rest = tuple(word for before, word in pairs if not (word.startswith("-") or _TAKES_VALUE.fullmatch(before)))
    return words[:depth], selects_some(words), frozenset(filter(_ADDS.match, words)), rest


RUNNERS = frozenset(
    "go npm npx git gh docker kubectl yarn pnpm cargo mise make uv poetry python python3 bun deno dotnet mvn gradle"
    " just rake ruff biome terraform helm alembic prisma dart flutter golangci-lint".split()
)


# `-k low`, `--shard`: options that choose some of the tests. `_SELECTS` has those, too, that abort. `_ADDS`: options
# without which less is run or demanded.
_SELECTING = r"-k|-run|-t|--(?:run|grep|filter|deselect|ignore|exclude|shard|testNamePattern)"
_TAKES_VALUE = pattern(rf"{_SELECTING}|--(?:format|reporter)")
_SELECTS = pattern(rf"(?:{_SELECTING}|-short|--(?:last-failed|lf|abort))(?:=|$)")
_ADDS = pattern(
    r"--?(?:build-)?tags\b|--(?:all-)?features\b|--all-targets\b|--workspace\b"
    # Options that make a run fail which would pass without.
    r"|--(?:[\w-]*(?:fail-(?:under|on)|strict|threshold|warnings-as-errors|max-warnings)[\w-]*)|-W(?:error|=?error)"
)


def task_of(program: str, command: str) -> str:
    """The word after a program that names its task (`gauge show`): `gauge show` is no substitute for `gauge unlink`.

    Empty for a program that is named with its subcommand (`git push`), and where no bare word follows.
    """
    if " " in program:
        return ""
    found = re.search(rf"(?<![\w-]){re.escape(program)}\d* ([a-z][a-z-]+)(?![^\s;&|)])", command)
    return found[1] if found else ""


def selects_some(words: Sequence[str]) -> bool:
    """Whether an option restricts a run to some of the tests."""
    is_marked = "-m" in words and "pytest" in words[: words.index("-m")]
    return is_marked or any(map(_SELECTS.match, words))


def _is_below(name: str, target: str) -> bool:
    """Whether a target of tests is another one or in it: all is in `.` and `./...`."""
    folder = target.removesuffix("...").rstrip("/")
    return folder in ("", ".") or name == target or name.startswith((f"{folder}/", f"{folder}::"))


# What may stand between a runner and its script, as in `npm --prefix web run test`: options, and the package.
_WITH_VALUE = r"-(?:-filter|F|C|-prefix|w|-workspace|-dir|-cwd|p|-package|-manifest-path|f)"
_BETWEEN = rf"(?:{_WITH_VALUE} \S+ |-\S+ |run |workspace \S+ )*"
_TEST = pattern(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest)\b(?!\.\w)"
    r"|\b(?:go|cargo|npm|yarn|pnpm|bun|mvn|make|mix|dotnet|swift|deno|gradlew?|rake|mise run|dart|flutter|bazel"
    r"|cabal|composer|dbt|lein|ng|nx|php artisan|sbt|stack|turbo|xcodebuild|zig build)"
    rf" {_BETWEEN}(?:test|check|analyze|type-?check|lint|verify|vet|clippy)\S*|\btest:\w+|\blint\b"
    r"|\btsc\b|\bact (?:-j|push|pull_request)|\b(?:(?:ruff|ty) check|mypy|pyright|flake8|eslint|golangci-lint)\b"
    r"|\b(?:biome (?:check|lint|ci)|markdownlint(?:-cli2?)?|stylelint|shellcheck|yamllint|actionlint|rubocop)\b"
    r"|\b(?:ansible-lint|detekt|hadolint|ktlint|luacheck|nix flake check|phpstan|pre-commit run|terraform validate)\b"
)


@lru_cache(maxsize=1024)
def is_check(command: str) -> bool:
    """Whether a command checks the work: tests, lint, types."""
    return _TEST.search(_INSTALLS.sub("", unquoted(command))) is not None


# `pip install pytest`, `golangci-lint version`: installing a checker is not a check, nor is a question about it.
_INSTALLS = pattern(
    r"\S+ (?:--version|version)\b(?= *(?:2>|[;&|\n]|\Z))|"
    r"\b(?:pip3?|uv|npm|pnpm|yarn|bun|brew|apt|apt-get|conda|cargo|gem|go|poetry|pipx)(?: pip)?"
    r" (?:install|add|i)\b[^;&|\n]*"
)


def is_to_fail(command: str) -> bool:
    """Whether a command is given a path that does not exist, to see it fail."""
    return _MISSING.search(command) is not None


# `TIDE_BIN=/nonexistent/tide go test ./...`
_MISSING = pattern(r"\b\w+=[\"']?/?(?:[\w.-]+/)*(?:non-?existent|does[-_]not[-_]exist|no[-_]such)\b")


def passed_checks(runs: Iterable[Run]) -> set[int]:
    """The positions of the checks that went well."""
    return {run.event for run in runs if run.outcome is CommandOutcome.OK and is_check(run.command)}


def of_the_work(runs: Iterable[Run], events: Sequence[Event]) -> tuple[Run, ...]:
    """The runs without checks of another state of the work: those while its changes were put away (`git stash`), and
    those in a command that switches to another branch and on again, or puts a file back that it changed.
    """
    found: list[Run] = []
    edits = [number for number, event in enumerate(events) if event.tool is ToolKind.EDIT]
    stashed_at = -1
    for run in runs:
        command = unquoted(run.command)
        before = bisect_right(edits, run.event)
        is_stashed = stashed_at >= 0 and not (before and edits[before - 1] > stashed_at)
        is_before = is_stashed or _OF_BEFORE.search(command) or PUTS_BACK.search(command)
        if not (is_before and is_check(command)):
            found.append(run)
        for step in STASHES.findall(command) if run.outcome is not CommandOutcome.FAILED else ():
            stashed_at = -1 if step in ("pop", "apply") else run.event if step in PUTS_AWAY else stashed_at
    return tuple(found)


# `git stash && pytest`, `git checkout main && pytest && git checkout tides`
_OF_BEFORE = pattern(
    rf"\b{GIT}stash\b(?! (?:list|show|pop|apply|drop))[^|]*(?:&&|;|\n)\s*(?!git\b)\S"
    r"|\bgit (?:checkout|switch) (?!-)[\w./-]+(?: -q)? *(?:&&|;).*(?:&&|;) *git (?:checkout|switch) ",
    re.DOTALL,
)


# By language: the endings of its sources, at which a check of another language does not look, and its checkers.
_LANGUAGES = {
    "go": ((".go",), r"\bgo (?:test|vet|build)\b|\bgolangci-lint\b"),
    "py": ((".py", ".pyi"), r"\b(?:pytest|unittest|tox|nox|ruff|mypy)\b"),
    "js": (
        (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".vue", ".svelte"),
        r"\b(?:npm|npx|yarn|pnpm|bun|jest|vitest|mocha|tsc|eslint)\b",
    ),
    "cs": ((".cs", ".csproj", ".razor"), r"\bdotnet\b"),
    "rs": ((".rs",), r"\bcargo\b"),
    "sh": ((".sh", ".bash"), r"\b(?:shellcheck|bats|shfmt)\b|\bbash -n\b|\.sh\b"),
}


# A file of tests, by its name.
TEST_FILE = pattern(r"(?:^|/)test_[^/]*$|(?:_test|\.test|\.spec|_spec)\.\w+$")
# A file that belongs to tests.
OF_TESTS = pattern(rf"(?:^|/)(?:tests?|__tests__|spec)/|{TEST_FILE.pattern}")


def changes_code(change: FileOperation) -> bool:
    """Whether a change is to something that a check may look at: not prose, `.env` or a throwaway file.

    Deleted folders, programs and build products do not count either: most were made in passing.
    """
    path = change.target or change.path
    is_built = change.action is FileAction.DELETE and ("." not in path.rpartition("/")[2] or path.endswith(_BUILT))
    is_change = change.action is not FileAction.READ and not change.is_in_passing
    # The target of a move may be a folder: the file keeps its name.
    is_checked = not (path.endswith(PROSE) or change.path.endswith(PROSE) or path.rpartition("/")[2].startswith(".env"))
    return is_change and not is_built and is_checked


# Git's own settings (`.gitignore`), and hidden folders of editors and agents (`.editor/`), not those of builds.
_OF_SURROUNDINGS = pattern(
    r"(?:^|/)(?:\.git(?:ignore|attributes)|\.(?!git|circleci|cargo|config|husky|storybook)[\w-]+/.*)$"
)
_OF_SERVER = pattern(r"(?:^|/)\.(?:github|gitlab|circleci)/|(?:^|/)\.gitlab-ci\.yml$")
_BUILT = (".exe", ".dll", ".so", ".o", ".class", ".pyc", ".log", ".pid", ".zip", ".gz")


def after(run: Run, changes: Sequence[FileOperation]) -> Sequence[FileOperation]:
    """The changes after a run."""
    return changes[bisect_right(changes, run.event, key=attrgetter("event")) :]


def covered_since(run: Run, changes: Sequence[FileOperation]) -> Iterator[FileOperation]:
    """The changes after a check that it may look at: none in another language, in another app than its package, or
    outside the files and folders that a linter was given."""
    languages, is_in_reach = languages_checked(run), _reach(run, changes)
    return (one for one in after(run, changes) if may_look_at(languages, one) and is_in_reach(one))


def _reach(run: Run, changes: Sequence[FileOperation]) -> Callable[[FileOperation], bool]:
    """A test whether a change is in the app, and in the files and folders, that a check is limited to."""
    entered_app = _APP.search(f"{entered(run.command)}/")
    package = entered_app[1] if entered_app else _package(run, changes)
    places = _linted_places(run.command)

    def is_in_reach(change: FileOperation) -> bool:
        path = f"/{change.path.lstrip('/')}"
        app = _APP.search(path)
        is_there = not places or any(path.endswith(one) or one.endswith(path) or one in f"{path}/" for one in places)
        return is_there and (not (package and app) or app[1] == package)

    return is_in_reach


def _linted_places(command: str) -> Sequence[str]:
    """The files and folders (to which a glob is shortened) that a linter is given, each after a slash.

    Empty if there are none, or if one of them may be anything else, or everything.
    """
    linted = _LINTED.search(command)
    words = [word.strip("'\"") for word in linted[1].split() if word[0] != "-"] if linted else []
    places = [word if _IS_FILE.fullmatch(word) else _IN_FOLDER.sub("", word) for word in words]
    places = [place.removeprefix("./") for place in places]
    is_known = all(_IS_FILE.fullmatch(place) or re.fullmatch(r"[^*]*\w/", place) for place in places)
    return [f"/{place.lstrip('/')}" for place in places] if is_known else []


# `ruff check gauge.py`: a linter looks at nothing but the files that it is given.
_LINTED = pattern(
    r"\b(?:actionlint|biome check|black|eslint|flake8|hadolint|markdownlint(?:-cli2)?|prettier|pylint|rubocop"
    r"|ruff (?:check|format)|shellcheck|stylelint|vale|yamllint)\b((?: +(?!\d>)[\w./@=*{},'\"-]+)*)"
)
_IS_FILE = pattern(r"[\w./@-]*\w\.\w+")
# `**/*.ts` of `src/**/*.ts`
_IN_FOLDER = pattern(r"(?<=/)[^/]*[*{].*")


def are_apart(command: str, other: str) -> bool:
    """Whether two commands enter folders of which neither is the other or lies in it, as those of two packages.

    If only one of the two is absolute, that is known of folders side by side alone.
    """
    first, second = entered(command), entered(other)
    places = [f"/{one.lstrip('./')}/" for one in (first, second)]
    if not (first and second) or places[0].endswith(places[1]) or places[1].endswith(places[0]):
        return False
    if is_absolute(first) is is_absolute(second):
        return not (places[0].startswith(places[1]) or places[1].startswith(places[0]))
    above, other_above = (posixpath.dirname(place.rstrip("/")) for place in places)
    return above.endswith(other_above) or other_above.endswith(above)


@lru_cache(maxsize=1 << 12)
def entered(command: str) -> str:
    """The folder that a command enters last, or an empty string."""
    folders: list[str] = _ENTERS.findall(command)
    return folders[-1].strip("\"'").rstrip("/") if folders else ""


def is_below(folder: str) -> bool:
    """Whether a folder that a command enters is one below the session's."""
    return _BELOW.match(folder) is not None


_BELOW = re.compile(r"(?!\w:)[\w@]")
_ENTERS = pattern(r"(?:\A|&&|;)\s*cd (\"[^\"]+\"|'[^']+'|[^\s;&|\"']+)")


def _package(run: Run, changes: Sequence[FileOperation]) -> str:
    """The folder of the package that a check names or is run in, if one of the changes is in it; else empty."""
    found = _PACKAGE.search(run.command)
    name = found[1] if found else posixpath.basename(entered(run.command))
    folders = dict.fromkeys(folder for one in changes for folder in one.path.split("/")[:-1]) if name else {}
    return next((one for one in folders if name == one or (found and name.endswith(f"-{one}"))), "")


def in_package(run: Run, changes: Sequence[FileOperation]) -> Sequence[FileOperation]:
    """The changes in the package that a check names, if there are any; else all of them."""
    package = _package(run, changes) if _PACKAGE.search(run.command) else ""
    return [one for one in changes if package in one.path.split("/")] if package else changes


# `pnpm --filter @acme/tide-clock test` is of the package in `packages/clock`; no package depends on an app.
_PACKAGE = pattern(r" (?:--filter|-F|-w|--workspace|workspace)[ =][\"']?(?:@[\w-]+/)?([\w-]+)[\"']?(?= )")
_APP = pattern(r"(?:^|/)apps/([^/]+)/")


def may_look_at(languages: Collection[str], change: FileOperation) -> bool:
    """Whether a check of these languages (empty: of any language) may look at a changed file."""
    if not changes_code(change) or _OF_SURROUNDINGS.search(change.path):
        return False
    if languages and _OF_SERVER.search(change.path):
        return False
    language = next((name for name, (endings, _) in _LANGUAGES.items() if change.path.endswith(endings)), "")
    return not language or not languages or language in languages


def languages_checked(run: Run) -> tuple[str, ...]:
    """The languages whose checkers a run starts, in its command or in the commands that it echoes."""
    return _languages(f"{run.command} && {run.echoed}")


@lru_cache(maxsize=64)
def _languages(command: str) -> tuple[str, ...]:
    return tuple(name for name, (_, checkers) in _LANGUAGES.items() if re.search(checkers, command))


def brief(command: str, chars: int) -> str:
    """A command in about ``chars`` characters.

    A check keeps what it was of, as the result of one test is not that of `pytest …`: its longest paths are cut to
    their ends. If it is still too long, its end is left out, but not the value of its last option. So does a command of
    which only the program would be left.
    """
    line = shown(command)
    line = line if is_read_only(line) else _HOW_SHOWN.sub("", line)
    start = opening(line, chars)
    if len(line) <= chars or not (is_check(command) or _ONLY_PROGRAM.fullmatch(start)):
        return start
    words = line.split(" ")
    ends = [word if is_to_fail(word) else _ABOVE.sub(rf"\1{ELLIPSIS}", word) for word in words]
    for place in sorted(range(len(words)), key=lambda place: len(ends[place]) - len(words[place])):
        if len(" ".join(words)) > chars:
            words[place] = ends[place]
    line = " ".join(words)
    if len(line) <= chars:
        return line
    kept = head(line, chars).split(" ")
    return f"{' '.join(words[: len(kept) + kept[-1].startswith('-')])} {ELLIPSIS}"


# ` 2>&1 | tail -5`, ` | grep -i error`: what chooses the output is not what the command does, and "ok" after a search
# for errors would be wrong where it found some.
_HOW_SHOWN = pattern(
    r"""(?: 2>&1)?(?: \| (?:(?:head|tail)(?: -(?:n ?)?\d+)?|(?:[ef]?grep|rg)(?: -(?!\w*v)\w+)* """
    r"""(?:"[^"]*(?:error|fail)[^"]*"|'[^']*(?:error|fail)[^']*'|\w*(?:error|fail)\w*)))*(?=$| *(?:;|&&|\|\|) )""",
    re.IGNORECASE,
)
_ONLY_PROGRAM = pattern(rf"\S+ {ELLIPSIS}|{ELLIPSIS}.*")
# The folders in front of a name: `tests/tides/` of `tests/tides/test_low.py`.
_ABOVE = pattern(r"^(?!-|\w+://)(\w+=)?(?!/dev/)[^'\"]*\w(?:/|::)(?=\w)")


# Where compilers and linters find an error: file, line and column.
COMPILER_PLACE = pattern(r"\.\w+(?::\d+:\d+\b|\(\d+,\d+\): )")
# `gauge.ts:12:7`, from the beginning of a word: from within, each try would run to the end of the word in vain.
PLACED_FILE = pattern(r"(?<![^\s:])(?:\./)?([^\s:]+?\.\w+)(?=:\d+:|\(\d+,\d+\): )")


def places_in(text: str) -> list[str]:
    """The lines of an output that name the place of an error; a line that only points at it has what stands above."""
    lines = placed(text).split("\n")
    named = ((above, line) for above, line in pairwise(("", *lines)) if COMPILER_PLACE.search(line))
    return [f"{line.strip()}: {above}" if above and _POINTS.match(line) else line for above, line in named]


# `   --> src/lib.rs:4:9`
_POINTS = pattern(r"\s*--> \S+\s*\Z")


def is_about(path: str, line: str) -> bool:
    """Whether the place in a line of a compiler is in a file; the line may name it from the folder of its package."""
    found = PLACED_FILE.search(line)
    return found is not None and (f"/{path}".endswith(f"/{found[1]}") or f"/{found[1]}".endswith(f"/{path}"))


def places_line(text: str, paths: Collection[str], *, is_in: bool) -> str:
    """The error line of the places in these files (``is_in``) or in others; empty unless there are places in both."""
    places = places_in(text)
    kept = [line for line in places if any(is_about(path, line) for path in paths) is is_in]
    return error_line("\n".join(kept)) if 0 < len(kept) < len(places) else ""


@lru_cache(maxsize=1 << 12)
def programs_of(command: str) -> Sequence[str]:
    """The programs of a command line in order, with their subcommands; not those that only show or enter a folder."""
    found: list[str] = []
    for segment in map(without_runner, segments(unquoted(command))):
        words = [word for word in segment.split() if not word.startswith("-")]
        if words and words[0] not in _AROUND and words[1:2] not in (["="], ["+="]):
            # `pip3` is another name of `pip`; of `npm run lint` the task is what runs, of `docker compose up` the verb.
            named = 1 if words[0] not in RUNNERS else 3 if words[1:2] in (["run"], ["compose"]) else 2
            found.append(" ".join((words[0].rstrip("0123456789."), *words[1:named])))
    return tuple(found)


_AROUND = frozenset("cd q echo grep head tail cat sleep export source".split())


def done_instead(command: str, failed: str, stated: str, chars: int) -> str:
    """A command that did what ``failed`` had not, in about ``chars`` characters, which show how the two differ.

    ``stated``: the text by which ``failed`` is shown. Of a long chain, only the part that calls the program of
    ``failed`` is given.
    """
    line, failed_line = shown(command), shown(failed)
    parts = command.split(" && ")
    if len(line) > chars and all(part.count('"') % 2 == part.count("'") % 2 == 0 for part in parts):
        program = next(reversed(programs_of(failed)), " ")
        command = next((part for part in parts if program in part and not is_read_only(part)), command)
    way, same = brief(command, chars), len(posixpath.commonprefix((line, failed_line)))
    is_part = not line.startswith(way.removesuffix(ELLIPSIS).rstrip())
    if way != stated and (is_part or same + _LED_CHARS <= chars):
        return way
    # Where both begin alike, start shortly before the place at which they differ.
    start = line.rfind(" ", 0, same - _LED_CHARS) + 1 if same > _LED_CHARS else 0
    return f"{ELLIPSIS} {opening(line[start:], chars)}" if start else opening(line, chars)


# Characters that are shown of a command before the place where it begins to differ.
_LED_CHARS = 24


# A limit, as each check is compared with each, and with every change.
MOST_CHECKS = 12


def standing_checks(
    runs: Sequence[Run],
    changes_at: Callable[[Run], Sequence[FileOperation]],
    before: Sequence[tuple[Run, tuple[FileOperation, ...]]],
) -> list[tuple[Run, tuple[FileOperation, ...]]]:
    """The newest passing run of each check, newest first, with the later changes of what it covers.

    ``changes_at``: the changes where a run was made. ``before``: those known at the beginning. A check that failed
    since is not listed, nor what later checks contain of it, nor one of selected tests unless it is the newest, nor one
    older than `MOST_CHECKS` others: these replaced it.
    """
    found: list[tuple[Run, tuple[FileOperation, ...]]] = []
    later: list[Run] = []
    acting = (run for run in reversed(runs) if not (run.is_read_only or is_to_fail(run.command)))
    checks = [run for run in acting if is_check(run.command) or is_check(run.echoed)]
    failed = list(islice((run for run in checks if run.outcome is CommandOutcome.FAILED), MOST_CHECKS))
    tested = [
        run for run in checks if run.outcome is CommandOutcome.OK and not any(covered_since(run, changes_at(run)))
    ]
    passed = [(run, ()) for run in checks if run.outcome is CommandOutcome.OK]
    for run, known in islice((*passed, *before), MOST_CHECKS):
        if any(other.event > run.event and contains(other.key, run.key) for other in failed):
            continue
        # Tests that pass are compiled: no build or vet of the same packages is older than the edits.
        as_test = _COMPILES.sub(r"\1 test", run.key)
        if as_test != run.key and any(contains(other.key, as_test) for other in tested):
            continue
        is_narrow = bool(found) and selects_some(run.key.split())
        is_own = is_check(run.command)  # and not what the hooks of a commit run
        if is_own and not is_narrow and (left := _not_run_again(run, later)):
            found.append((replace(run, key=left), (*known, *covered_since(run, changes_at(run)))))
        later.append(run)
    return found


_COMPILES = pattern(r"\b(go|cargo) (?:vet|build|check)\b")


def _not_run_again(run: Run, later: Sequence[Run]) -> str:
    """The checks of a run that no later run contains, as a chain; empty if there are none.

    By its own commands or by those that it echoes, whichever leave fewer.
    """
    ran = [command for one in later for command in (one.key, one.echoed) if command]
    parts_of = map(chain_parts, (run.key, run.echoed))
    chains = [[part for part in parts if is_check(part) and not is_read_only(part)] for parts in parts_of]
    left = [[part for part in parts if not _is_in_one(part, ran)] for parts in chains if parts]
    fewest = min(left, key=len, default=None)
    return run.key if fewest is None or (fewest and fewest in chains) else " && ".join(fewest)


def _is_in_one(part: str, ran: Iterable[str]) -> bool:
    """Whether one of these command lines contains a check, or calls the linter that a script of the package calls."""
    is_script = _LINT_SCRIPT.fullmatch(part) is not None
    return any(contains(one, part) or (is_script and _LINTER.search(one)) for one in ran)


_LINT_SCRIPT = pattern(r"(?:yarn|npm run|pnpm(?: run)?|bun run) lint(?::\w+)?")
_LINTER = pattern(r"(?:\A|&& )(?:(?:npx|bunx|pnpm exec|yarn) )?(?:eslint|biome|oxlint|next lint)\b")
