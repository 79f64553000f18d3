"""Sets compact up in a client, and takes it out again: entries in its settings, and files that it loads.

What was done is noted in the state folder, so that it can be taken back byte for byte. Where a file was changed since,
the entries alone are taken out of it. What is known of the clients is data: `clients/NAME.toml`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import stat
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from compactor_cli.agents.settings_text import (
    Insertion,
    applied,
    bare,
    entries,
    json_added,
    json_removed,
    parse_json,
    read_toml,
    taken_back,
    toml_added,
    toml_removed,
)
from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE, atomic_writer, followed, make_folders
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.value import dataclass
from compactor_cli.presets.values import nearest
from compactor_cli.read.sources import state_folder

# Not importlib.resources: importing that takes longer than reading a file.
_FOLDER = Path(__file__).parent / "clients"


class AnswerShape(StrEnum):
    """How a client takes what a hook answers."""

    NONE = ""  # it does not
    TEXT = "text"  # what is printed, as it is
    CONTEXT = "context"  # a JSON object with ``additionalContext``


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsEdit:
    """One entry in a file of settings: an element appended to the list at ``append``, or the value ``set`` at a path.

    ``user`` is the file where its variable is set, ``default`` the one below the home folder where it is not,
    ``project`` the one below a project's folder. In the texts of ``value``, ``{program}`` stands for the path of
    compactor, and ``{command}`` for that as a word of a shell.
    """

    user: str
    default: str
    project: str
    value: Any
    append: tuple[str, ...] = ()
    set: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCopy:
    """A file of ``integrations/`` that the client loads; the places as of `SettingsEdit`."""

    file: str
    user: str
    default: str
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentClient:
    """One client. ``by_hand``: what is left to the user after an installation. ``answers``: its hooks, by event."""

    name: str
    title: str
    by_hand: str
    answers: Mapping[str, AnswerShape] = field(default_factory=dict)
    edits: tuple[SettingsEdit, ...] = ()
    copies: tuple[FileCopy, ...] = ()


def client_names() -> tuple[str, ...]:
    """The clients that are known, in alphabetical order."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def load_client(name: str) -> AgentClient:
    """The client of that name. Raises UsageError where there is none."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file before and after; None: it is not there.

    ``insertions``: what is noted of it, to be taken back; ``is_new``: compact made the file.
    """

    path: Path
    before: str | None
    after: str | None
    insertions: tuple[Insertion, ...] = ()
    is_new: bool = False

    def write(self) -> None:
        """Make the file what it is to be, whole or not at all, and note what was put in. Raises OutputError."""
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
            make_folders(note.parent, PRIVATE_FOLDER_MODE)
            with atomic_writer(note, mode=PRIVATE_FILE_MODE) as file:
                file.write(json.dumps({**value, "created": self.is_new}).encode())
        else:
            note.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPlace:
    """Where a client is set up: for this user, or in the project of this folder."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    project: Path | None = None

    def path(self, item: SettingsEdit | FileCopy) -> Path:
        """The file of an entry or a copy."""
        if self.project:
            return self.project / item.project
        variable, _, rest = item.user.removeprefix("$").partition("/")
        folder = self.environ.get(variable, "")
        return Path(folder).expanduser() / rest if folder else self.home / item.default

    @property
    def program(self) -> str:
        """What starts compactor: in a project, which others have too, by its name alone."""
        if self.project:
            return PROGRAM
        neighbour = Path(sys.executable).with_name(PROGRAM)
        return str(neighbour) if neighbour.is_file() else shutil.which(PROGRAM) or PROGRAM


def install(client: AgentClient, place: InstallPlace) -> Iterator[FileChange]:
    """What sets a client up: the files that change. Nothing is written.

    Raises UsageError where a file cannot take an entry, or another entry has the same name.
    """
    for path, edits in _by_file(client, place).items():
        before = _read(path)
        # What an earlier installation left, of whichever version, is put in anew.
        text, is_exact = _without(path, before or "", edits)
        is_new = before is None or (is_exact and _note(path)["created"])
        insertions: list[Insertion] = []
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
    """What takes it out again. Files that compact made are deleted, unless something was added to them."""
    for path, edits in _by_file(client, place).items():
        before = _read(path)
        text, is_exact = _without(path, before or "", edits)
        if before is not None and text != before:
            is_ours = is_exact and _note(path).get("created") is True
            yield FileChange(path=path, before=before, after=None if is_ours else text)
    for copy in client.copies:
        path, before = place.path(copy), _read(place.path(copy))
        if before is None:
            continue
        if _note(path).get("sha256") != _hash(before):
            raise InputError("it was changed since it was installed", next_step="delete it by hand", place=str(path))
        yield FileChange(path=path, before=before, after=None)


def integration(name: str) -> str:
    """The text of a file of ``integrations/``, installed with the package or next to it in a checkout."""
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
    """The text without the entries of compact, and whether it is what it was before they were put in."""
    note = _note(path)
    if note.get("sha256") == _hash(text):
        return taken_back(text, [(at, added) for at, added in note["insertions"]]), True
    for edit in edits if text.strip() else ():
        text = _cut(path, text, edit)
    return text, False


def _cut(path: Path, text: str, edit: SettingsEdit) -> str:
    """The text without this entry, wherever it is, if it is one of compact."""
    try:
        if path.suffix == ".toml":
            return toml_removed(text, edit.set) if _is_ours(_at(read_toml(text), edit.set), edit.value) else text
        node = parse_json(text)
        for number, value in entries(node, edit.append) if edit.append else ():
            if _is_ours(value, edit.value):
                return json_removed(text, (*edit.append, number))
        return json_removed(text, edit.set) if edit.set and _is_ours(_at(node.value, edit.set), edit.value) else text
    except UsageError as error:
        error.place = str(path)
        raise


def _added(path: Path, text: str, edit: SettingsEdit, value: Any) -> list[Insertion]:
    """What puts an entry in, checked: read again, the file holds that and all it held before."""
    is_toml = path.suffix == ".toml"
    try:
        if edit.set and _at(read_toml(text) if is_toml else parse_json(text or "{}").value, edit.set) is not None:
            raise UsageError(f"{'.'.join(edit.set)} is there already", next_step="rename it, then run this again")
        if is_toml:
            return toml_added(text, edit.set, value)
        added = json_added(text, edit.append or edit.set, value, append=bool(edit.append))
        after = parse_json(applied(text, added)).value
    except UsageError as error:
        error.place = str(path)
        raise
    *above, last = edit.append or edit.set
    target = _at(after, tuple(above))
    is_added = (target[last].pop() if edit.append else target.pop(last)) == value
    if not is_added or bare(after) != bare(parse_json(text).value if text.strip() else {}):
        raise UsageError("the entry cannot be put in", next_step="put it in by hand", place=str(path))
    return added


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _is_ours(found: Any, value: Any) -> bool:
    """Whether an entry is this one, whatever path the program had and however long it may take."""
    if isinstance(value, str):
        name = value.removeprefix("{program}").removeprefix("{command}")
        return isinstance(found, str) and found.endswith(name) and (name == value or PROGRAM in found)
    if isinstance(value, list):
        return isinstance(found, list) and len(found) == len(value) and all(map(_is_ours, found, value))
    if isinstance(value, dict):
        return isinstance(found, dict) and all(key in found and _is_ours(found[key], value[key]) for key in value)
    return isinstance(found, type(value))


def _filled(value: Any, program: str) -> Any:
    """A value with the program's path in it."""
    if isinstance(value, str):
        return value.replace("{program}", program).replace("{command}", shlex.quote(program))
    if isinstance(value, list):
        return [_filled(item, program) for item in value]
    return {key: _filled(item, program) for key, item in value.items()} if isinstance(value, dict) else value


def _read(path: Path) -> str | None:
    """The text of a file that may be written, byte for byte; None if it is not there. Raises InputError."""
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
    """What was noted when a file was changed; empty if nothing was."""
    try:
        value: dict[str, Any] = json.loads(_note_file(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value
