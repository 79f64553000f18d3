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
# A text in quotation marks; where a line is cut at its here-document, the last may be without its end.
_NO_SIGNS = str.maketrans(dict.fromkeys(">|;&\n", " "))
QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"?|'[^']*'")
# What runs a command that it knows to show less of its output (rtk).
SHORTENS = r"rtk +(?:(?:proxy|test|lint|err) +|(?=(?:git|gh|cargo|pnpm|npm|pytest|ruff|tsc|go|vitest|docker|kubectl) ))"
# `git` with what is set for one call, before its command: another folder, a setting, no pager.
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
# Their first operand is a script or a pattern, unless it was given by an option.
_SCRIPT_FIRST = frozenset({"sed", "perl"})


@lru_cache(maxsize=1 << 10)
def shell_operations(command: str, *, failed: bool = False) -> tuple[tuple[FileAction, str, str], ...]:
    """What a command line does to files, as (action, path, target).

    Known are redirections, ``rm``, ``mv``, ``cp`` (its target is what is copied), ``tee``, readers, ``sed -i``,
    ``perl -i``, and what a script in the line or its here-document writes. Where the line ``failed``, its last command
    is what did: those before it went well.

    Paths are relative to where the line starts: a ``cd`` in front of them is followed, and where it leads to a place
    that cannot be known, no path is given. A here-document's body is content, not commands.
    """
    shown, _ = _here_document(_INLINE.sub(" q ", command))
    shown = _QUOTED.sub(lambda quote: quote[0].translate(_NO_SIGNS), shown[:_MAX_COMMAND_CHARS])
    steps = [*_steps(shown)]
    operations: list[tuple[FileAction, str, str]] = []
    for directory, segment in steps[:-1] if failed else steps:
        # Of one command among several, nothing shows whether the file was there.
        is_hidden = len(steps) > 1 and "2>/dev/null" in segment
        for action, path, target in _segment_operations(segment):
            if (found := _located(directory, path)) and not (is_hidden and action is FileAction.READ):
                operations.append((action, found, _located(directory, target) if target else ""))
    for path in written_paths(script_in(command)) if steps and not failed else ():
        if found := _located(steps[-1][0], path):
            operations.append((FileAction.EDIT, found, ""))
    return tuple(operations)


@lru_cache(maxsize=1 << 10)
def scripts_run(command: str) -> tuple[tuple[str, str, str], ...]:
    """The script files that a command line runs, as (path, how the line names it, the directory it is run in)."""
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
    """The commands of a line but `cd`, each with the directory that it runs in; None where that cannot be known."""
    directory: str | None = ""
    for segment in segments(line):
        words = segment.split()
        if words[0] == "cd":
            directory = _entered(directory, [entered_folder(segment)] if words[1:] else [])
        else:
            yield directory, segment


def plain_git(command: str) -> str:
    """A command whose calls of git have nothing before the command of git (see `GIT`)."""
    return _GIT.sub("git ", command)


def entered_folder(segment: str) -> str:
    """The folder that a ``cd`` names, without its quotation marks: there may be blanks in it."""
    return (found[1] or found[2] or found[3]) if (found := _CD.match(segment)) else ""


_CD = re.compile(r"""\s*(?:cd|pushd)\s+(?:--\s+)?(?:"([^"]*)"|'([^']*)'|(\S+))""")


def _without_prefix(words: list[str]) -> list[str]:
    """The words of a command without what it runs in: variables, ``sudo``; nor ``git`` before its command."""
    return list(dropwhile(lambda word: word in _PREFIXES or re.fullmatch(r"\w+=\S*", word), words))


_PREFIXES = ("git", "sudo", "command", "time", "rtk", "npx", "bunx", "pnpx")


def segments(line: str) -> list[str]:
    """The commands of a line, those of pipes too, in order."""
    return [segment.strip() for segment in re.split(r"&&|\|\||[;|\n]", line) if segment.strip()]


def unquoted(command: str) -> str:
    """A command line up to its here-document, with a ``q`` for each text in quotation marks."""
    return QUOTED.sub("q", command.partition("<<")[0])


def _here_document(command: str) -> tuple[str, str]:
    """A command line without comments and its here-document, and the body of that; after it come commands again."""
    shown, _, body = command.partition("<<")
    opening, _, body = body.partition("\n")
    shown = _COMMENT.sub("", shown) + opening
    word = opening.strip().lstrip("-").split()[:1]
    end = re.search(rf"^\s*{re.escape(word[0].strip(chr(39) + chr(34)))}\s*$", body, re.MULTILINE) if word else None
    return (shown + _COMMENT.sub("", body[end.end() :]), body[: end.start()]) if end else (shown, body)


def script_in(command: str) -> str:
    """The Python or JavaScript of a command line (``-c``, ``-e``) or of its here-document, or an empty string."""
    if inline := _INLINE.search(command):
        return inline[1] or _ESCAPED.sub(r"\1", inline[2] or "")
    shown, body = _here_document(command)
    return body if _RUNS_SCRIPT.search(shown) else ""


_RUNS_SCRIPT = re.compile(r"python|\b(?:node|bun|deno)\b")
# A script on the command line is never run again.
OF_ONE_USE = re.compile(r"\b(?:python3?|node|ruby|perl)(?: -{1,2}[a-z][\w=-]+)* (?:-[cep]\b|-? ?<<)")


def written_paths(script: str) -> list[str]:
    """The paths that a Python or JavaScript script writes: literal ones, and names that one was given to."""
    named = dict(_GIVEN.findall(script))
    places = (found[1] or found[2] or found[3] for found in _WRITES.finditer(script))
    paths = (place.strip("'\"") if place[0] in "'\"" else named.get(place, "") for place in places)
    return [*dict.fromkeys(filter(_looks_like_file, paths))]


_GIVEN = re.compile(r"\b(\w+) *= *(?:[\w.]*Path\()?['\"]([^'\"\n]+)['\"]")
_PATH = r"(['\"][^'\"\n]+['\"]|\b\w+)"
_WRITES = re.compile(
    rf"\bopen\(\s*{_PATH}\s*,\s*(?:mode=)?['\"][wa]|{_PATH}\)?\.write_text\(|\bwriteFile(?:Sync)?\(\s*{_PATH}"
)


def _entered(directory: str | None, operands: Sequence[str]) -> str | None:
    """The directory after a ``cd``; None where it cannot be known (home, back, a variable)."""
    place = operands[0].strip("'\"") if operands else "~"
    if place.startswith(("~", "-", "$")):
        return None
    if place.startswith("/"):
        return place
    return None if directory is None else posixpath.normpath(posixpath.join(directory, place)).removeprefix("./")


def is_whole(path: str) -> bool:
    """Whether a path is the same from every folder: from the root, from a drive or from a home folder."""
    return path.startswith("~") or is_absolute(path)


def _located(directory: str | None, path: str) -> str:
    is_below = directory and "/" in directory and path.startswith(f"{directory}/")  # as where the session works
    if is_whole(path) or directory in ("", ".") or is_below:
        return path
    return "" if directory is None else posixpath.normpath(posixpath.join(directory, path))


def _segment_operations(segment: str) -> Iterator[tuple[FileAction, str, str]]:
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
        operands = [*_CONTENT_PLACE.findall(segment), *operands][:1]  # the next one is what is written
    if name == "checkout" and not {"--ours", "--theirs"}.isdisjoint(words):
        yield from ((FileAction.EDIT, path, "") for path in operands if _looks_like_file(path))
    elif (name == "checkout" and "--" in words) or (name == "restore" and "--staged" not in words):
        reverted = words[words.index("--") + 1 :] if "--" in words else operands
        before = words[1 : words.index("--")] if name == "checkout" else _SOURCE.findall(segment)
        # What is taken from another commit is a change like any other.
        action = FileAction.REVERT if {word for word in before if word[0] != "-"} <= {"HEAD"} else FileAction.EDIT
        yield from ((action, path, "") for path in reverted if _looks_like_file(path) and path not in before)
    elif name == "rm" and "--cached" in words:
        return  # git knows it no more, and it stays
    elif name in ("rm", "tee"):
        action = FileAction.DELETE if name == "rm" else FileAction.CREATE
        yield from ((action, path, "") for path in operands if _looks_like_file(path))
    elif name == "mv" and len(operands) == 2 and all(_looks_like_file(path.removesuffix("/")) for path in operands):
        yield FileAction.MOVE, operands[0], operands[1]
    elif name == "cp" and len(operands) == 2 and all(map(_looks_like_file, operands)):
        if "." in posixpath.basename(operands[1]):
            yield FileAction.CREATE, operands[1], operands[0]
    elif name in _FORMATTERS and not _REWRITES.isdisjoint(words):
        yield from (
            (FileAction.EDIT, path, "") for path in operands if _looks_like_file(path) and _NAMED_FILE.search(path)
        )
    elif name in _READERS:
        in_place = name in _SCRIPT_FIRST and any(re.match(r"-\w{0,2}i", word) for word in words)
        if name == "perl" and not in_place:
            return  # it runs a program
        scripted = name in _SCRIPT_FIRST and not any(word in ("-e", "-f") for word in words)
        action = FileAction.EDIT if in_place else FileAction.READ
        files = operands[1:] if scripted else operands
        yield from ((action, path, "") for path in files if _looks_like_file(path) and "." in posixpath.basename(path))


# What writes a file anew by rules, where that is asked for and the file is named.
_FORMATTERS = frozenset("prettier biome eslint gofmt goimports rustfmt black ruff clang-format stylua shfmt".split())
_REWRITES = frozenset(("--write", "-w", "--fix", "-i", "format"))
_NAMED_FILE = re.compile(r"\.\w+$")
_SOURCE = re.compile(r" (?:-s|--source)[ =](\S+)")
# What PowerShell calls these commands.
_POWERSHELL = {"remove-item": "rm", "move-item": "mv", "copy-item": "cp", "get-content": "cat", "set-content": "tee"}
_CONTENT_PLACE = re.compile(r" -(?:Literal)?Path +[\"']?([^\s\"']+)", re.IGNORECASE)
# What stands in quotation marks is one word, blanks and all.
_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"]|['"])+""")


# A folder in round or square brackets is one of pages: `app/(shop)/[id]/page.tsx`.
_FILE = re.compile(r"(?=[^A-Za-z]*[A-Za-z])(?:[\w./~@+-]|(?<=[\w.:])\\(?=\w)|(?<=/)(?:\([\w.-]+\)|\[[\w.-]+\]))+")


def _looks_like_file(word: str) -> bool:
    return _FILE.fullmatch(word) is not None and not word.startswith(("/dev/", "-")) and not word.endswith((".", "/"))
