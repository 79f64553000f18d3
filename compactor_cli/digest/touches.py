"""Touches: which file each call wrote, read, removed or moved, told from its arguments, patch or command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from compactor_cli.digest.events import Event, EventKind, ToolKind, results_of
from compactor_cli.digest.tools import PATH_KEYS, argument, command_of, short_name


class Act(StrEnum):
    """What happened to a file."""

    CREATE = "create"
    EDIT = "edit"
    READ = "read"
    DELETE = "delete"
    MOVE = "move"


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One act on one file by the call ``event``; ``target`` is where a MOVE went."""

    act: Act
    path: str
    event: int
    record: int
    target: str = ""


_CREATING = frozenset({"write", "writefile", "writetofile", "createfile", "create", "fswrite", "savefile", "filewrite"})
_SEARCHING = frozenset(
    "grep glob ls listfiles listdirectory listdir searchfiles findfiles searchfilecontent grepsearch globsearch"
    " filesearch find codebasesearch searchtext listcodedefinitionnames searchdir finddir grepfiles".split()
)
_PATCH_ACTS = {"Add File": Act.CREATE, "Update File": Act.EDIT, "Delete File": Act.DELETE}
_MOST_PATH_CHARS = 200
_NO_PATHS = frozenset({".", "/", "-", "/dev/null", "nul"})


def touches(events: Sequence[Event]) -> tuple[Touch, ...]:
    """Every act on a file, in order. Calls whose result is an error did nothing."""
    results = results_of(events)
    return tuple(
        touch
        for number, event in enumerate(events)
        if event.kind is EventKind.CALL and not ((result := results.get(number)) and result.is_error)
        for touch in _touched(event, number, result)
        if _is_path(touch.path)
    )


def _is_path(path: str) -> bool:
    return 0 < len(path) <= _MOST_PATH_CHARS and "\n" not in path and path.lower() not in _NO_PATHS


def _touched(event: Event, number: int, result: Event | None) -> Iterator[Touch]:
    if event.tool is ToolKind.COMMAND and (step := editor_step(event)):
        yield from _by_editor(step, event, number, result)
    elif event.tool is ToolKind.COMMAND:
        yield from _by_command(command_of(event.arguments), event, number)
    elif event.tool is ToolKind.EDIT:
        yield from _by_edit(event, number)
    elif event.tool is ToolKind.READ and short_name(event.name) not in _SEARCHING:
        yield Touch(act=Act.READ, path=argument(event.arguments, PATH_KEYS), event=number, record=event.record)


def _by_edit(event: Event, number: int) -> Iterator[Touch]:
    patch = patch_of(event)
    if patch:
        yield from _by_patch(patch, event, number)
        return
    name = short_name(event.name)
    created = name in _CREATING or argument(event.arguments, ("command",)) == "create"
    act = Act.DELETE if "delete" in name else Act.CREATE if created else Act.EDIT
    yield Touch(act=act, path=argument(event.arguments, PATH_KEYS), event=number, record=event.record)


def editor_step(event: Event) -> str:
    """What a command does in SWE-agent's editor (``open``, ``create``, ``edit 3:7``), or an empty string."""
    found = _editor().match(command_of(event.arguments).lstrip())
    return (found[1] or found[2]) if found else ""


@cache
def _editor() -> re.Pattern[str]:
    return re.compile(r"(edit) \d+:\d+\s*\n|(open|create) \"?[\w./~@+-]+\"?(?: \d+)?\s*\Z")


def _by_editor(step: str, event: Event, number: int, result: Event | None) -> Iterator[Touch]:
    """The file is the one that the result shows: an edit does not name it."""
    path = viewed_file(result.text) if result else ""
    if result and path and not (step == "edit" and "introduced new syntax error" in result.text):
        act = {"edit": Act.EDIT, "open": Act.READ, "create": Act.CREATE}[step]
        yield Touch(act=act, path=path, event=number, record=event.record)


def viewed_file(text: str) -> str:
    """The file that a result of SWE-agent's editor shows a part of, or an empty string."""
    found = re.search(r"^\[File: (.+) \(\d+ lines total\)\]$", text, re.MULTILINE) if " lines total)]" in text else None
    return found[1] if found else ""


def patch_of(event: Event) -> str:
    """The patch in Codex's format that a call applies, or an empty string."""
    named = argument(event.arguments, ("input", "patch", "patchText", "patch_text"))
    text = named or command_of(event.arguments)
    return text[text.index("*** Begin Patch") :] if "*** Begin Patch" in text else ""


def _by_patch(patch: str, event: Event, number: int) -> Iterator[Touch]:
    path = ""
    for kind, told in re.findall(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$", patch, re.MULTILINE):
        if kind == "Move to":
            yield Touch(act=Act.MOVE, path=path, event=number, record=event.record, target=told.strip())
        else:
            path = told.strip()
            yield Touch(act=_PATCH_ACTS[kind], path=path, event=number, record=event.record)


@cache
def _redirect() -> re.Pattern[str]:
    return re.compile(r"(?<![0-9&<>=-])>{1,2}\s*([^\s;&|<>()]+)")


@cache
def _quoted() -> re.Pattern[str]:
    # Not the script of `sh -c "…"`, whose redirections are real.
    return re.compile(r"(?<!c )(?:'[^']*'|\"[^\"]*\")")


_SEGMENT = r"&&|\|\||;|\n|\|"
_MOST_SCRIPT_CHARS = 20_000
_READERS = frozenset({"cat", "sed", "head", "tail", "nl", "bat", "less", "more"})


def _by_command(command: str, event: Event, number: int) -> Iterator[Touch]:
    # A here-document's body is content, not commands.
    shown, marker, body = command.partition("<<")
    if marker:
        shown += body.partition("\n")[0]
    shown = _quoted().sub(lambda quote: quote[0].replace(">", " "), shown[:4_000])
    for segment in re.split(_SEGMENT, shown):
        for act, path, target in _of_segment(segment):
            yield Touch(act=act, path=path, event=number, record=event.record, target=target)
    if marker and "python" in shown:
        for path in _written_by_script(body[:_MOST_SCRIPT_CHARS]):
            yield Touch(act=Act.EDIT, path=path, event=number, record=event.record)


@cache
def _named_file() -> re.Pattern[str]:
    return re.compile(r"^\s*(\w+)\s*=\s*(?:pathlib\.)?(?:Path\(\s*)?[\"']([^\"'\n]+)[\"']\s*\)?\s*$", re.MULTILINE)


@cache
def _write() -> re.Pattern[str]:
    opened, written = (
        r"\bopen\(\s*([^,()\n]+?)\s*,\s*(?:mode=)?[\"'][wa]",
        r"(?:Path\(\s*([^()\n]+?)\s*\)|\b(\w+))\.write_text\(",
    )
    return re.compile(f"{opened}|{written}")


def _written_by_script(script: str) -> Iterator[str]:
    """The files that a Python script writes: literal paths, and names that one was given to on a line of its own."""
    named: dict[str, str] = dict(_named_file().findall(script))
    places = dict.fromkeys("".join(found) for found in _write().findall(script))
    paths = (place.strip("\"'") if place[:1] in "\"'" else named.get(place, "") for place in places)
    return (path for path in dict.fromkeys(paths) if _looks_like_file(path))


def _of_segment(segment: str) -> Iterator[tuple[Act, str, str]]:
    for path in _redirect().findall(segment):
        if _looks_like_file(path := path.strip("'\"")):
            yield Act.CREATE, path, ""
    words = [word.strip("'\"") for word in _redirect().sub(" ", segment).split()]
    while words and (words[0] in ("git", "sudo", "command") or re.fullmatch(r"\w+=\S*", words[0])):
        words = words[1:]
    if not words:
        return
    operands = [word for word in words[1:] if not word.startswith("-")]
    if words[0] == "rm":
        yield from ((Act.DELETE, path, "") for path in operands if _looks_like_file(path))
    elif words[0] == "mv" and len(operands) == 2 and all(map(_looks_like_file, operands)):
        yield Act.MOVE, operands[0], operands[1]
    elif words[0] == "tee":
        yield from ((Act.CREATE, path, "") for path in operands if _looks_like_file(path))
    elif words[0] in _READERS:
        in_place = words[0] == "sed" and any(word.startswith("-i") for word in words)
        act = Act.EDIT if in_place else Act.READ
        yield from ((act, path, "") for path in operands if _looks_like_file(path) and "." in path.rsplit("/", 1)[-1])


def _looks_like_file(word: str) -> bool:
    named = re.fullmatch(r"[\w./~@+-]*[A-Za-z][\w./~@+-]*", word) is not None
    return named and not word.startswith("/dev/") and not word.endswith(".")
