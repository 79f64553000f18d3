"""What is known of the clients that compact can be installed in, as data: a TOML file each."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from compactor_cli.model.errors import UsageError
from compactor_cli.model.value import dataclass
from compactor_cli.presets.values import nearest

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
    return AgentClient(
        name=name,
        title=table["title"],
        by_hand=table["by_hand"],
        answers={event: AnswerShape(shape) for event, shape in table.get("answers", {}).items()},
        edits=tuple(_edit(edit) for edit in table.get("edit", ())),
        copies=tuple(FileCopy(**copy) for copy in table.get("copy", ())),
    )


def _edit(table: dict[str, Any]) -> SettingsEdit:
    paths: dict[str, Any] = {key: tuple(table.pop(key)) for key in ("append", "set") if key in table}
    return SettingsEdit(**table, **paths)
