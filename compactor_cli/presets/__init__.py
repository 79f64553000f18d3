"""Presets: one TOML file of settings per system, and the loader for them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import Settings, nearest, read_switch, settings_from
from compactor_cli.model.value import dataclass

DEFAULT = "default"
# Not by importlib.resources, as importing that takes longer than reading a preset.
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A named set of settings."""

    name: str
    about: str  # one line, for lists of presets
    settings: Settings
    toml: str  # the text of its file
    # Variables by which the system itself changes a setting: each with the setting (``set``) and its value (``to``).
    environment: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def with_environment(self, environ: Mapping[str, str]) -> Settings:
        """The settings with what these variables change. Raises UsageError for a value that cannot be read.

        A rule without ``to`` sets the variable's value. One whose ``to`` holds ``{value}`` sets ``to`` with the value
        put in there; any other sets ``to`` if the variable is on.
        """
        settings = self.settings
        for variable, rule in self.environment.items():
            setting = environ.get(variable, "")
            to = str(rule.get("to", "{value}"))
            if setting and ("{value}" in to or read_switch(setting, variable)):
                table: Any = to.replace("{value}", setting)
                for key in reversed(str(rule["set"]).split(".")):
                    table = {key: table}
                settings = settings_from(table, settings, variable)
        return settings


def preset_names() -> tuple[str, ...]:
    """The presets that come with the package, in alphabetical order."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def load_preset(name: str) -> Preset:
    """The preset of this name; a name that has a slash or ends in ``.toml`` is the path of a file.

    Raises UsageError if there is none, or if the file has a setting or value that is not allowed.
    """
    where, names = f"preset {name}", preset_names()
    try:
        if not is_preset_file(name) and name not in names:
            advice = nearest(name, names) or f"one of {', '.join(names)}, or a file NAME.toml"
            raise UsageError(f"no preset is called {name}", next_step=advice)
        path = Path(name) if is_preset_file(name) else _FOLDER / f"{name}.toml"
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"not valid TOML: {error}", next_step="fix the file", place=where) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        what = f"the preset cannot be read ({reason})"
        raise UsageError(what, next_step="check the path after --preset", place=name) from error
    # The base of a preset must be one that comes with the package.
    if "base" in table and table["base"] not in names:
        raise UsageError(f"no preset is called {table['base']}", next_step=f"one of {', '.join(names)}", place=where)
    base = load_preset(table.pop("base")) if "base" in table else None
    about = str(table.pop("about", ""))
    environment = {**(base.environment if base else {}), **table.pop("environment", {})}
    settings = settings_from(table, base.settings if base else Settings(), where)
    return Preset(name=name, about=about, settings=replace(settings, preset=name), toml=text, environment=environment)


def is_preset_file(name: str) -> bool:
    """Whether the name of a preset is the path of a file."""
    return "/" in name or name.endswith(".toml")
