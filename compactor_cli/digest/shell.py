"""Shell: what a command line does to files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile

from compactor_cli.digest.tools import FileAction
from compactor_cli.formats.directories import is_absolute

_REDIRECT = re.compile(r"(?<![0-9&<>=-])(>{1,2})\s*([^\s;&|<>()]+)")
# Not the script of `sh -c "…"`, whose redirections are real.
_QUOTED = re.compile(r"(?<!c )(?:'[^']*'|\"[^\"]*\")")
_NO_SIGNS = str.maketrans(dict.fromkeys(">|;&\n", " "))
# A text in quotation marks; where a line is cut at its here-document, the last may be without its end.
QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"?|'[^']*'")
# A wrapper (rtk) that runs a command to show less of its output: `rtk git status`, `rtk proxy make`.
SHORTENS = r"rtk +(?:(?:proxy|test|lint|err) +|(?=(?:git|gh|cargo|pnpm|npm|pytest|ruff|tsc|go|vitest|docker|kubectl) ))"
# `git` with the options for one call, before the subcommand: `git -C ../tides `, `git --no-pager `.
GIT = r"""git (?:(?:-[Cc] (?:[^\s"']|"[^"]*"|'[^']*')+|--no-pager|--no-optional-locks) )*"""
_GIT = re.compile(rf"\b{GIT}")
_COMMENT = re.compile(r"^\s*#.*", re.MULTILINE)
# A program in quotation marks, to its end: `python -c "…"`.
_INLINE = re.compile(
    r"\b(?:python[\d.]*|node|bun|deno)(?: -\w+)* (?:-c|-e|--eval) *(?:'([^']*)'|\"((?:[^\"\\]|\\.)*)\")", re.DOTALL
)
_ESCAPED = re.compile(r"\\([\"\\$`])")
_MAX_COMMAND_CHARS = 4_000
_READERS = frozenset({"cat", "sed", "perl", "head", "tail", "nl", "bat", "less", "more"})
# Their first operand is a script, unless an option gives that.
_SCRIPT_FIRST = frozenset({"sed", "perl"})


@lru_cache(maxsize=1 << 10)
def shell_operations(command: str, *, failed: bool = False) -> tuple[tuple[FileAction, str, str], ...]:
    """What a command line does to files, as (action, path, target).

    Read are redirections, ``rm``, ``mv``, ``cp`` (the target is the file that was copied), ``tee``, readers,
    ``sed -i``, ``perl -i``, formatters that rewrite, ``git checkout`` and ``git restore``, their like in PowerShell,
    and what a script in the line or its here-document writes. If the line ``failed``, its last command is left out,
    and so are scripts: that one failed, and those before it went well.

    Paths are relative to where the line starts: a ``cd`` before them is followed, and after one to an unknown place,
    relative paths are left out. A here-document's body is content, not commands.
    """
    shown, _ = _here_document(_INLINE.sub(" q ", command))
    shown = _QUOTED.sub(lambda quote: quote[0].translate(_NO_SIGNS), shown[:_MAX_COMMAND_CHARS])
    steps = [*_steps(shown)]
    operations: list[tuple[FileAction, str, str]] = []
    put_back = {path for pair in PUTS_BACK.findall(shown) for path in pair}
    for directory, segment in steps[:-1] if failed else steps:
        # One silenced command among several: nothing shows whether the file was there.
        is_hidden = len(steps) > 1 and "2>/dev/null" in segment
        for action, path, target in _segment_operations(segment):
            if path in put_back:
                continue
            if (found := _located(directory, path)) and not (is_hidden and action is FileAction.READ):
                operations.append((action, found, _located(directory, target) if target else ""))
    for path in written_paths(script_in(command)) if steps and not failed else ():
        if found := _located(steps[-1][0], path):
            operations.append((FileAction.EDIT, found, ""))
    return tuple(operations)


# A line that copies a file away, works with another state of it and puts it back: it changes nothing.
PUTS_BACK = re.compile(r"\bcp (?:-\w+ )*(\S+) (\S+)(?=.*\b(?:cp|mv) (?:-\w+ )*\2 \1(?![^\s;&|)]))", re.DOTALL)


@lru_cache(maxsize=1 << 10)
def scripts_run(command: str) -> tuple[tuple[str, str, str], ...]:
    """The script files that a command line runs, as (path, name in the line, directory that it is run in)."""
    found: list[tuple[str, str, str]] = []
    for directory, segment in _steps(QUOTED.sub("q", _here_document(command)[0])):
        words = _without_prefix(segment.split())
        is_run = bool(words) and _RUNS.fullmatch(words[0]) is not None
        name = next((word for word in words[is_run:] if not word.startswith("-")), "")
        is_script = (is_run or name.startswith("./")) and _looks_like_file(name)
        if is_script and (path := _located(directory, name.removeprefix("./"))):
            found.append((path, name, directory or ""))
    return tuple(found)


_RUNS = re.compile(r"(?:\S*/)?(?:python[\d.]*|node|ruby|perl|bash|sh|bun|php|Rscript)")


def _steps(line: str) -> Iterator[tuple[str | None, str]]:
    """The commands of a line except `cd`, each after the directory that it runs in; None where that is unknown."""
    directory: str | None = ""
    for segment in segments(line):
        words = segment.split()
        if words[0] == "cd":
            directory = _entered(directory, [entered_folder(segment)] if words[1:] else [])
        else:
            yield directory, segment


def plain_git(command: str) -> str:
    """A command without the options between `git` and its subcommand (see `GIT`)."""
    return _GIT.sub("git ", command)


def entered_folder(segment: str) -> str:
    """The folder that a ``cd`` or ``pushd`` names, unquoted (it may contain blanks), or an empty string."""
    return (found[1] or found[2] or found[3]) if (found := _CD.match(segment)) else ""


_CD = re.compile(r"""\s*(?:cd|pushd)\s+(?:--\s+)?(?:"([^"]*)"|'([^']*)'|(\S+))""")


def _without_prefix(words: list[str]) -> list[str]:
    """The words of a command without leading variables, wrappers (``sudo``, ``npx``) and ``git``."""
    return list(dropwhile(lambda word: word in _PREFIXES or re.fullmatch(r"\w+=\S*", word), words))


_PREFIXES = ("git", "sudo", "command", "time", "rtk", "npx", "bunx", "pnpx")


def segments(line: str) -> list[str]:
    """The commands of a line in order, including each one of a pipe."""
    return [segment.strip() for segment in re.split(r"&&|\|\||[;|\n]", line) if segment.strip()]


def unquoted(command: str) -> str:
    """A command line up to its here-document, with a ``q`` for each text in quotation marks."""
    return QUOTED.sub("q", command.partition("<<")[0])


def _here_document(command: str) -> tuple[str, str]:
    """A command line without comments and the body of its here-document, and that body.

    The commands after the body are part of the line; without an end, the body is all that follows.
    """
    shown, _, body = command.partition("<<")
    opening, _, body = body.partition("\n")
    shown = _COMMENT.sub("", shown) + opening
    word = opening.strip().lstrip("-").split()[:1]
    end = re.search(rf"^\s*{re.escape(word[0].strip(chr(39) + chr(34)))}\s*$", body, re.MULTILINE) if word else None
    return (shown + _COMMENT.sub("", body[end.end() :]), body[: end.start()]) if end else (shown, body)


def script_in(command: str) -> str:
    """The Python or JavaScript source in a command line (``-c``, ``-e``) or its here-document, or an empty string."""
    if inline := _INLINE.search(command):
        return inline[1] or _ESCAPED.sub(r"\1", inline[2] or "")
    shown, body = _here_document(command)
    return body if _RUNS_SCRIPT.search(shown) else ""


_RUNS_SCRIPT = re.compile(r"python|\b(?:node|bun|deno)\b")
# `python -c …`, `node -e …`, `python - <<EOF`: a script on the command line is never run again.
OF_ONE_USE = re.compile(r"\b(?:python3?|node|ruby|perl)(?: -{1,2}[a-z][\w=-]+)* (?:-[cep]\b|-? ?<<)")


def written_paths(script: str) -> list[str]:
    """The paths that a Python or JavaScript script writes: literals, and variables that a literal was assigned to."""
    named = dict(_GIVEN.findall(script))
    places = (found[1] or found[2] or found[3] for found in _WRITES.finditer(script))
    paths = (place.strip("'\"") if place[0] in "'\"" else named.get(place, "") for place in places)
    return [*dict.fromkeys(filter(_looks_like_file, paths))]


# `place = Path("tides.csv")`
_GIVEN = re.compile(r"\b(\w+) *= *(?:[\w.]*Path\()?['\"]([^'\"\n]+)['\"]")
_PATH = r"(['\"][^'\"\n]+['\"]|\b\w+)"
# `open("tides.csv", "w")`, `Path(place).write_text(`, `writeFileSync(place`
_WRITES = re.compile(
    rf"\bopen\(\s*{_PATH}\s*,\s*(?:mode=)?['\"][wa]|{_PATH}\)?\.write_text\(|\bwriteFile(?:Sync)?\(\s*{_PATH}"
)


def _entered(directory: str | None, operands: Sequence[str]) -> str | None:
    """The directory after a ``cd``; None where it is unknown (home, `-`, a variable, or below an unknown one)."""
    place = operands[0].strip("'\"") if operands else "~"
    if place.startswith(("~", "-", "$")):
        return None
    if place.startswith("/"):
        return place
    return None if directory is None else posixpath.normpath(posixpath.join(directory, place)).removeprefix("./")


def working_folder(command: str) -> str:
    """The folder of the first `git -C` or `git commit` in a command line, else of its first call of git or gh, else the
    one that it begins by entering; or an empty string."""
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


# Stands for the path that `mktemp` prints, which is throwaway.
_MADE = "/tmp/made"  # noqa: S108 (a name, no file)
_ASSIGNED, _VARIABLE = re.compile(r"(\w+)=(\S.*)", re.DOTALL), re.compile(r"\$\{?(\w+)\}?")


def is_whole(path: str) -> bool:
    """Whether a path is the same from every folder: from the root, from a drive or from a home folder."""
    return path.startswith("~") or is_absolute(path)


def _located(directory: str | None, path: str) -> str:
    """A path as seen from where the line starts; empty for a relative one in an unknown directory (None)."""
    is_below = directory and "/" in directory and path.startswith(f"{directory}/")  # seen from there already
    if is_whole(path) or directory in ("", ".") or is_below:
        return path
    return "" if directory is None else posixpath.normpath(posixpath.join(directory, path))


def _segment_operations(segment: str) -> Iterator[tuple[FileAction, str, str]]:
    """What one command does to files, as (action, path, target), with paths as the command names them."""
    for mark, path in _REDIRECT.findall(segment):
        if _looks_like_file(path := path.strip("'\"")):
            yield FileAction.EDIT if mark == ">>" else FileAction.CREATE, path, ""
    words = [found for word in _WORD.findall(_REDIRECT.sub(" ", segment)) if (found := word.strip("'\""))]
    words = _without_prefix(words)
    if not words:
        return
    name, operands = (
        _POWERSHELL.get(words[0].lower(), words[0]),
        [word for word in words[1:] if not word.startswith("-")],
    )
    if words[0].lower() == "set-content":
        operands = [*_CONTENT_PLACE.findall(segment), *operands][:1]  # the other operand is the content
    if name == "checkout" and not {"--ours", "--theirs"}.isdisjoint(words):
        yield from ((FileAction.EDIT, path, "") for path in operands if _looks_like_file(path))
    elif _is_git_revert(name, words):
        reverted = words[words.index("--") + 1 :] if "--" in words else operands
        before = words[1 : words.index("--")] if name == "checkout" and "--" in words else _SOURCE.findall(segment)
        # What is taken from another commit is a change like any other.
        action = FileAction.REVERT if {word for word in before if word[0] != "-"} <= {"HEAD"} else FileAction.EDIT
        yield from ((action, path, "") for path in reverted if _looks_like_file(path) and path not in before)
    elif name == "rm" and "--cached" in words:
        return  # git stops tracking the file, which stays
    elif name in ("rm", "tee"):
        action = FileAction.DELETE if name == "rm" else FileAction.CREATE
        yield from ((action, path, "") for path in operands if _looks_like_file(path))
    elif name == "mv" and len(operands) == 2 and all(_looks_like_file(path.removesuffix("/")) for path in operands):
        yield FileAction.MOVE, operands[0], operands[1]
    elif name == "cp" and len(operands) == 2 and _looks_like_file(operands[1]):
        if "." in posixpath.basename(operands[1]):
            yield FileAction.CREATE, operands[1], operands[0] if _looks_like_file(operands[0]) else ""
    elif name in _FORMATTERS and not _REWRITES.isdisjoint(words):
        yield from (
            (FileAction.FORMAT, path, "") for path in operands if _looks_like_file(path) and _NAMED_FILE.search(path)
        )
    elif name in _READERS:
        in_place = name in _SCRIPT_FIRST and any(re.match(r"-\w{0,2}i", word) for word in words)
        if name == "perl" and not in_place:
            return  # the operand is a program to run
        scripted = name in _SCRIPT_FIRST and not any(word in ("-e", "-f") for word in words)
        action = FileAction.EDIT if in_place else FileAction.READ
        files = operands[1:] if scripted else operands
        yield from ((action, path, "") for path in files if _looks_like_file(path) and "." in posixpath.basename(path))


# Formatters and linters, and the words by which they rewrite the files that they are given.
_FORMATTERS = frozenset("prettier biome eslint gofmt goimports rustfmt black ruff clang-format stylua shfmt".split())
_REWRITES = frozenset(("--write", "-w", "--fix", "-i", "format"))
_NAMED_FILE = re.compile(r"\.\w+$")
_NAMED_SOURCE = re.compile(r"\.[A-Za-z]\w*$")  # `gauge.py`, but not the branch `release-1.2`
_SOURCE = re.compile(r" (?:-s|--source)[ =](\S+)")
# PowerShell's names of these commands.
_POWERSHELL = {"remove-item": "rm", "move-item": "mv", "copy-item": "cp", "get-content": "cat", "set-content": "tee"}
_CONTENT_PLACE = re.compile(r" -(?:Literal)?Path +[\"']?([^\s\"']+)", re.IGNORECASE)
# A quoted text is part of one word, with its blanks.
_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"]|['"])+""")


# Routers of pages have folders in brackets: `app/(shop)/[id]/page.tsx`.
_FILE = re.compile(r"(?=[^A-Za-z]*[A-Za-z])(?:[\w./~@+-]|(?<=[\w.:])\\(?=\w)|(?<=/)(?:\([\w.-]+\)|\[[\w.-]+\]))+")


def _is_git_revert(name: str, words: Sequence[str]) -> bool:
    """Whether it is `git checkout -- gauge.py`, `git checkout gauge.py` or `git restore gauge.py`, not a switch."""
    if name == "checkout":
        return "--" in words or (len(words) > 1 and all(map(_NAMED_SOURCE.search, words[1:])))
    return name == "restore" and "--staged" not in words


def _looks_like_file(word: str) -> bool:
    return _FILE.fullmatch(word) is not None and not word.startswith(("/dev/", "-")) and not word.endswith((".", "/"))
