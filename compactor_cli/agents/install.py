"""Install compact in a client, and remove it again: entries in its settings, and files that it loads.

Changes are noted in the state folder, so that they can be undone byte for byte. If a file was changed since, only the
entries are removed from it. What differs between clients is data: `clients/NAME.toml`.

All other bytes of a settings file stay as they are; JSON may have comments and trailing commas, as clients accept them.
After an edit the text is parsed and compared: nothing but the entry may have changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, atomic_writer, followed, make_folders, write_private
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.settings import nearest
from compactor_cli.model.value import dataclass
from compactor_cli.read.sources import state_folder

# A position in a text, and the text inserted there.
TextInsertion = tuple[int, str]

# Not importlib.resources: its import takes longer than reading a file.
_FOLDER = Path(__file__).parent / "clients"


class AnswerShape(StrEnum):
    """How a client takes the answer of a hook."""

    NONE = ""  # it ignores it
    TEXT = "text"  # as plain text
    CONTEXT = "context"  # a JSON object with ``additionalContext``


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsEdit:
    """One entry in a settings file: a value that is appended to a list, or set at a path."""

    user: str  # the file, as `$VARIABLE/path`, if that variable is set
    default: str  # the file below the user's folder if it is not
    project: str  # the file below a project's folder
    value: Any  # in its texts, `{program}` is the path of compactor, `{command}` the same quoted for a shell
    append: tuple[str, ...] = ()  # the path of the list that gets the value
    set: tuple[str, ...] = ()  # the path at which the value is set


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCopy:
    """A file of ``integrations/`` that the client loads; the last three fields are as in `SettingsEdit`."""

    file: str  # its name there
    user: str
    default: str
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentClient:
    """What is known of one client."""

    name: str
    title: str  # its name for people
    by_hand: str  # what the user has to do after an installation
    answers: Mapping[str, AnswerShape] = field(default_factory=dict)  # how it takes answers, by the event of the hook
    edits: tuple[SettingsEdit, ...] = ()
    copies: tuple[FileCopy, ...] = ()


def client_names() -> tuple[str, ...]:
    """The names of the clients, in alphabetical order."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def load_client(name: str) -> AgentClient:
    """The client of that name. Raises UsageError if there is none."""
    names = client_names()
    if name not in names:
        advice = nearest(name, names) or f"one of {', '.join(names)}"
        raise UsageError(f"no client is called {name}", next_step=advice)
    table = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    edits = []
    for edit in table.get("edit", ()):
        edit |= {key: tuple(edit[key]) for key in ("append", "set") if key in edit}
        edits.append(SettingsEdit(**edit))
    return AgentClient(
        name=name,
        title=table["title"],
        by_hand=table["by_hand"],
        answers={event: AnswerShape(shape) for event, shape in table.get("answers", {}).items()},
        edits=tuple(edits),
        copies=tuple(FileCopy(**copy) for copy in table.get("copy", ())),
    )


PROGRAM = "compactor"
# A ``default`` below this folder is below XDG_CONFIG_HOME if that is set.
_CONFIG = ".config/"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The change of one file."""

    path: Path
    before: str | None  # None: the file does not exist
    after: str | None  # None: the file is deleted
    insertions: tuple[TextInsertion, ...] = ()  # noted, so that they can be undone
    is_new: bool = False  # whether compact created the file

    def write(self) -> None:
        """Write or delete the file, atomically, and note the insertions. Raises OutputError."""
        note = _note_file(self.path)
        if self.after is None:
            followed(self.path).unlink()
        else:
            make_folders(self.path.parent)
            # Settings may hold keys.
            with atomic_writer(self.path, mode=PRIVATE_FILE_MODE) as file:
                file.write(self.after.encode("utf-8", "surrogateescape"))
        if self.insertions and self.after is not None:
            value = {"path": str(self.path), "sha256": _hash(self.after), "insertions": self.insertions}
            write_private(note, json.dumps({**value, "created": self.is_new}))
        else:
            note.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPlace:
    """Where compact is installed in a client: for this user, or in a project."""

    home: Path
    project: Path | None = None  # its folder; None: for this user

    def path(self, item: SettingsEdit | FileCopy) -> Path:
        """The path of the file that has the entry or is the copy."""
        if self.project:
            return self.project / item.project
        variable, _, rest = item.user.removeprefix("$").partition("/")
        folder = os.environ.get(variable, "")
        if not folder and item.default.startswith(_CONFIG):
            folder, rest = os.environ.get("XDG_CONFIG_HOME", ""), item.default.removeprefix(_CONFIG)
        return Path(folder).expanduser() / rest if folder else self.home / item.default

    @property
    def program(self) -> str:
        """The path of compactor; only its name in a project, which other people use too."""
        if self.project:
            return PROGRAM
        neighbour = Path(sys.executable).with_name(PROGRAM)
        return str(neighbour) if neighbour.is_file() else shutil.which(PROGRAM) or PROGRAM


def install(client: AgentClient, place: InstallPlace) -> Iterator[FileChange]:
    """The changes of files that install compact in a client. Nothing is written.

    Raises UsageError if a file cannot take an entry, or has another entry or is another file of the same name.
    """
    for path, edits in _by_file(client, place).items():
        before = _read(path)
        # The entries of an earlier installation, of any version, are replaced.
        text, is_exact = _without(path, before or "", edits)
        is_new = before is None or (is_exact and _note(path)["created"])
        insertions: list[TextInsertion] = []
        for edit in edits:
            added = _added(path, text, edit, _filled(edit.value, place.program))
            insertions += added
            text = applied(text, added)
        if text != before:
            yield FileChange(path=path, before=before, after=text, insertions=tuple(insertions), is_new=is_new)
    for copy in client.copies:
        path, before = place.path(copy), _read(place.path(copy))
        text = integration(copy.file).replace(json.dumps(PROGRAM), json.dumps(place.program), 1)
        if before not in (None, text) and _note(path).get("sha256") != _hash(before or ""):
            raise UsageError("there is another file of this name", next_step="move it away", place=str(path))
        if before != text:
            yield FileChange(path=path, before=before, after=text, insertions=((0, text),))


def remove(client: AgentClient, place: InstallPlace) -> Iterator[FileChange]:
    """The changes of files that remove it. Files that compact created are deleted, unless something was added to them.

    Nothing is written. Raises UsageError as `install`, InputError for a copied file that was changed.
    """
    for path, edits in _by_file(client, place).items():
        before = _read(path)
        text, is_exact = _without(path, before or "", edits)
        if before is not None and text != before:
            is_created = is_exact and _note(path).get("created") is True
            yield FileChange(path=path, before=before, after=None if is_created else text)
    for copy in client.copies:
        path, before = place.path(copy), _read(place.path(copy))
        if before is None:
            continue
        if _note(path).get("sha256") != _hash(before):
            raise InputError("it was changed since it was installed", next_step="delete it by hand", place=str(path))
        yield FileChange(path=path, before=before, after=None)


def integration(name: str) -> str:
    """The text of a file of ``integrations/``, which is in the package or, in a checkout, next to it."""
    package = Path(__file__).parents[1]
    for folder in (package / "integrations", package.parent / "integrations"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise InputError(f"{name} is not installed", next_step="install compactor-cli anew")


def _by_file(client: AgentClient, place: InstallPlace) -> dict[Path, list[SettingsEdit]]:
    found: dict[Path, list[SettingsEdit]] = {}
    for edit in client.edits:
        found.setdefault(place.path(edit), []).append(edit)
    return found


def _without(path: Path, text: str, edits: list[SettingsEdit]) -> tuple[str, bool]:
    """The text without the entries of compact, and whether it is byte for byte as before they were inserted."""
    note = _note(path)
    if note.get("sha256") == _hash(text):
        return taken_back(text, note["insertions"]), True
    for edit in edits:
        text = _cut(path, text, edit)
    return text, False


def _cut(path: Path, text: str, edit: SettingsEdit) -> str:
    """The text without this entry of compact, if it has it."""
    try:
        if path.suffix == ".toml":
            return toml_removed(text, edit.set) if _is_entry(_at(read_toml(text), edit.set), edit.value) else text
        whole = read_json(text)
        elements = _at(whole, edit.append) if edit.append else None
        for number, element in enumerate(elements if isinstance(elements, list) else ()):
            if _is_entry(element, edit.value):
                return json_removed(text, (*edit.append, number))
        return json_removed(text, edit.set) if edit.set and _is_entry(_at(whole, edit.set), edit.value) else text
    except UsageError as error:
        error.place = str(path)
        raise


def _added(path: Path, text: str, edit: SettingsEdit, value: Any) -> list[TextInsertion]:
    """The insertions that add an entry; the result is parsed, and must hold the entry and all that was there before."""
    is_toml = path.suffix == ".toml"
    try:
        if edit.set and _at(read_toml(text) if is_toml else read_json(text), edit.set) is not None:
            raise UsageError(f"{'.'.join(edit.set)} is there already", next_step="rename it, then run this again")
        if is_toml:
            return toml_added(text, edit.set, value)
        added = json_added(text, edit.append or edit.set, value, append=bool(edit.append))
        after = parse_json(applied(text, added)).value
    except UsageError as error:
        error.place = str(path)
        raise
    *above, last = edit.append or edit.set
    target = _at(after, above)
    is_added = (target[last].pop() if edit.append else target.pop(last)) == value
    if not is_added or bare(after) != bare(read_json(text)):
        raise UsageError("the entry cannot be put in", next_step="put it in by hand", place=str(path))
    return added


def _at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _is_entry(found: Any, value: Any) -> bool:
    """Whether an entry is this one, apart from the program's path, numbers and further keys."""
    if isinstance(value, str):
        name = value.removeprefix("{program}").removeprefix("{command}")
        return isinstance(found, str) and found.endswith(name) and (name == value or PROGRAM in found)
    if isinstance(value, list):
        return isinstance(found, list) and len(found) == len(value) and all(map(_is_entry, found, value))
    if isinstance(value, dict):
        return isinstance(found, dict) and all(key in found and _is_entry(found[key], value[key]) for key in value)
    return isinstance(found, type(value))


def _filled(value: Any, program: str) -> Any:
    """A value with the program's path filled in."""
    if isinstance(value, str):
        return value.replace("{program}", program).replace("{command}", shlex.quote(program))
    if isinstance(value, list):
        return [_filled(item, program) for item in value]
    return {key: _filled(item, program) for key, item in value.items()} if isinstance(value, dict) else value


def _read(path: Path) -> str | None:
    """The text of a file, byte for byte; None if it does not exist. Raises InputError, also if it is read-only."""
    try:
        if path.is_file() and not path.stat().st_mode & stat.S_IWUSR:
            advice = "let it be written, or put the entry in by hand"
            raise InputError("it is read-only", next_step=advice, place=str(path))
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", next_step="check its owner", place=str(path)) from error


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _note_file(path: Path) -> Path:
    return state_folder() / "installed" / f"{_hash(os.path.realpath(path))[:16]}.json"


def _note(path: Path) -> dict[str, Any]:
    """What was noted when the file was last changed; empty if nothing was."""
    try:
        value: dict[str, Any] = json.loads(_note_file(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value


_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*+", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
# Of a file that is there and has no content yet.
_BLANK = "\ufeff \t\r\n"
_BY_HAND = "put the entry in by hand, or fix the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A JSON value and where it stands in the text: at ``text[start:stop]``."""

    value: Any
    begin: int  # where its key begins; the same as ``start`` if it has none
    start: int
    stop: int
    items: dict[str | int, Node] = field(default_factory=dict)  # of an object by key, of an array by position


KeyPath = Sequence[str | int]


def parse_json(text: str) -> Node:
    """Parse JSON with comments and trailing commas. Raises UsageError if it is not that, or names a key twice."""
    start = _after_space(text, 1 if text.startswith("\ufeff") else 0)
    node = _value(text, start, start)
    if _after_space(text, node.stop) != len(text):
        raise _no_json(text, node.stop)
    return node


def read_json(text: str) -> Any:
    """The value that `parse_json` finds; an empty object for a blank text. Raises UsageError like it."""
    return parse_json(text).value if text.strip(_BLANK) else {}


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, begin: int, at: int) -> Node:
    """The value at position ``at``; ``begin`` is that of its key, or ``at`` if it has none."""
    if text[at : at + 1] not in ("{", "["):
        found = _STRING.match(text, at) or _SCALAR.match(text, at)
        if not found:
            raise _no_json(text, at)
        try:
            return Node(value=json.loads(found[0]), begin=begin, start=at, stop=found.end())
        except ValueError:
            raise _no_json(text, at) from None
    start, is_object = at, text[at] == "{"
    closing = "}" if is_object else "]"
    items: dict[str | int, Node] = {}
    at = _after_space(text, start + 1)
    while text[at : at + 1] != closing:
        first, key = at, len(items)
        if is_object:
            name = _STRING.match(text, at)
            colon = _after_space(text, name.end()) if name else at
            if name is None or text[colon : colon + 1] != ":" or json.loads(name[0]) in items:
                raise _no_json(text, at)
            key, at = json.loads(name[0]), _after_space(text, colon + 1)
        node = items[key] = _value(text, first, at)
        at = _after_space(text, node.stop)
        if text[at : at + 1] == ",":
            at = _after_space(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _no_json(text, at)
    value: Any = {key: node.value for key, node in items.items()} if is_object else [x.value for x in items.values()]
    return Node(value=value, begin=begin, start=start, stop=at + 1, items=items)


def _no_json(text: str, at: int) -> UsageError:
    line = text.count("\n", 0, at) + 1
    return UsageError(f"line {line} is no JSON, or names a key again", next_step=_BY_HAND)


def json_added(text: str, path: KeyPath, value: Any, *, append: bool = False) -> list[TextInsertion]:
    """The insertions, to be applied in order, that set ``value`` at ``path``, where nothing is yet.

    With ``append``, the value is appended to the list at the path. Missing containers are added. Raises UsageError if a
    value on the way is of another kind.
    """
    if not text.strip(_BLANK):
        whole: Any = [value] if append else value
        for key in reversed(path):
            whole = {key: whole}
        return [(len(text), _dumped(whole, "", "  ", "\n") + "\n")]
    node, depth = parse_json(text), 0
    while depth < len(path) and isinstance(node.value, dict) and path[depth] in node.items:
        node, depth = node.items[path[depth]], depth + 1
    missing = path[depth:]
    if isinstance(node.value, dict) is not bool(missing) or not isinstance(node.value, dict | list):
        raise UsageError(f"{'.'.join(map(str, path[:depth]))} is of another kind", next_step=_BY_HAND)
    new: Any = [value] if append and missing else value
    for key in reversed(missing[1:]):
        new = {key: new}
    # The new item becomes the last of the container, formatted like the others.
    newline = "\r\n" if "\r\n" in text else "\n"
    last = next(reversed(node.items.values()), None)
    unit = next(iter(re.findall(r"^([ \t]+)\S", text, re.MULTILINE)), "  ")
    outer = _indent(text, node.begin)
    before = text[node.start + 1 : last.begin if last and len(node.items) == 1 else node.stop - 1]
    is_inline = last is not None and "\n" not in before
    indent = _indent(text, last.begin) if last and not is_inline else outer + unit
    item = json.dumps(new, ensure_ascii=False) if is_inline else _dumped(new, indent, unit, newline)
    if missing:
        item = f"{json.dumps(str(missing[0]), ensure_ascii=False)}: {item}"
    # The place after the comments that follow the last item.
    stop = node.stop - 1
    end = stop - len(text[:stop]) + len(text[:stop].rstrip())
    if last is None:
        closing = "" if "\n" in text[end:stop] else newline + outer
        return [(end, f"{newline}{indent}{item}{closing}")]
    comma = _after_space(text, last.stop)
    if text[comma] == ",":
        return [(comma + 1, f" {item}") if is_inline else (end, f"{newline}{indent}{item}")]
    if is_inline:
        return [(last.stop, f", {item}")]
    return [(last.stop, ","), (end + 1, f"{newline}{indent}{item}")]


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _dumped(value: Any, indent: str, unit: str, newline: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{newline}{indent}".join(lines)


def json_removed(text: str, path: KeyPath) -> str:
    """The text without the value at this path, and without containers that it leaves empty."""
    trail = [parse_json(text)]
    for key in path:
        trail.append(trail[-1].items[key])
    while len(trail) > 2 and len(trail[-2].items) == 1:
        trail.pop()
    node, siblings = trail[-1], list(trail[-2].items.values())
    comma = _after_space(text, node.stop)
    start = len(text[: node.begin].rstrip())
    if "//" in text[text.rfind("\n", 0, start) + 1 : start]:
        start = len(text[: node.begin].rstrip(" \t"))  # the comment needs the line break after it
    if text[comma] == ",":
        return text[:start] + text[comma + 1 :]
    text = text[:start] + text[node.stop :]
    if node is not siblings[0]:
        comma = _after_space(text, siblings[-2].stop)
        text = text[:comma] + text[comma + 1 :] if text[comma] == "," else text
    return text


def toml_added(text: str, path: Sequence[str], table: dict[str, Any]) -> list[TextInsertion]:
    """The insertion that adds a table of strings and lists at ``path``, at the end of the text.

    Raises UsageError if the table cannot be added.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(path)}]"]
    lines += (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items())
    lead = "" if not text else newline if text.endswith("\n") else newline * 2
    insertion = (len(text), lead + newline.join(lines) + newline)
    value = read_toml(text)
    inner = value
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = table
    with suppress(UsageError):
        if read_toml(applied(text, [insertion])) == value:
            return [insertion]
    raise UsageError(f"a table [{'.'.join(path)}] cannot be added", next_step=_BY_HAND)


def toml_removed(text: str, path: Sequence[str]) -> str:
    """The text without this table. Raises UsageError if that is not simply a header and the lines below it."""
    value, name = read_toml(text), ".".join(path)
    del _at(value, path[:-1])[path[-1]]
    lines = r"(?:(?![ \t]*(?:#|\[|\r?\n))[^\n]+(?:\n|\Z))*"
    for found in re.finditer(rf"(?:\r?\n)?^\[{re.escape(name)}\][^\n]*(?:\n|\Z){lines}", text, re.MULTILINE):
        rest = text[: found.start()] + text[found.end() :]
        with suppress(UsageError):
            if bare(read_toml(rest)) == bare(value):
                return rest
    raise UsageError(f"[{name}] cannot be taken out", next_step="take it out by hand")


def bare(value: Any) -> Any:
    """A value without empty containers, since these may be left or added on the way to an entry."""
    if not isinstance(value, dict):
        return value
    return {key: inner for key, item in value.items() if (inner := bare(item)) not in ({}, [])}


def read_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises UsageError if it is not valid."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise UsageError(f"not valid TOML: {error}", next_step=_BY_HAND) from None


def applied(text: str, insertions: Sequence[TextInsertion]) -> str:
    """The text after these insertions, one after the other."""
    for at, added in insertions:
        text = text[:at] + added + text[at:]
    return text


def taken_back(text: str, insertions: Sequence[TextInsertion]) -> str:
    """The text without these insertions, the inverse of `applied`. Raises ValueError if they are not there."""
    for at, added in reversed(insertions):
        if text[at : at + len(added)] != added:
            raise ValueError("it was changed since")
        text = text[:at] + text[at + len(added) :]
    return text
