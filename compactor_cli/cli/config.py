"""Configuration: the layers, and what comes of them.

From strongest to weakest: command line, ``COMPACT_*``, the project's file, the user's file, the preset,
what is built in. The project's file is ``compact.toml``, or ``[tool.compact]`` in ``pyproject.toml``, in the
working directory; inside a git work tree the folders up to its root are searched too, and the nearest
file is used alone. A file holds option names (``keep-tail = "16k"``) and tables of `Settings`
(``[trigger]``, ``[keep]``, ``[budget]``, ``[[prune]]``).
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from compactor_cli.cli.options import (
    OPTIONS,
    PROJECT_OPTIONS,
    PROJECT_TABLES,
    REFUSED_IN_PROJECT,
    Option,
    OptionKind,
    Scope,
)
from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import KEPT_BY, NEWEST, Budget, Settings, Size
from compactor_cli.presets import DEFAULT, is_preset_file, load_preset, values
from compactor_cli.presets.values import nearest, read_head, read_tail, settings_from, with_head, with_tail

CURVES = ("scaled", "tiered")


def read_value(option: Option, value: Any, where: str) -> Any:
    """The value in the type of its kind. Raises UsageError that names ``where`` and says what to write."""
    if option.name == "target" and values.size(value, where) == Size():
        raise UsageError("a target of nothing leaves nothing", next_step="write 32k, 1.5m or 25%", place=where)
    if option.kind in _READERS:
        return _READERS[option.kind](value, where)
    if option.kind is OptionKind.KEEP:
        return (read_head if option.name == "keep_head" else read_tail)(value, where)
    if option.kind is OptionKind.BUDGET:
        return Budget(curve=value) if value in CURVES else Budget(size=values.size(value, where))
    if option.kind is OptionKind.LIST:
        return _texts(value, where)
    if option.kind is OptionKind.CHOICE and value not in option.choices:
        advice = f"one of {', '.join(option.choices)}"
        raise UsageError(f"“{value}” is not a choice", next_step=advice, place=where)
    return _text(value, where)


def setting(option: Option, value: Any, settings: Settings) -> Settings:
    """``settings`` with what this option says. A head or tail given anew replaces the one of the preset."""
    if option.name == "keep_head":
        return replace(settings, keep=with_head(settings.keep, *value))
    if option.name == "keep_tail":
        return replace(settings, keep=with_tail(settings.keep, *value))
    if option.name == "keep":
        return replace(settings, keep=replace(settings.keep, by=value))
    if option.name == "budget":
        return replace(settings, budget=replace(value, most_ratio=settings.budget.most_ratio))
    if option.into.startswith("trigger."):
        change = {option.into.removeprefix("trigger."): value}
        return replace(settings, trigger=replace(settings.trigger, **change))
    return replace(settings, **{option.into: value})


def _texts(value: Any, where: str) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise UsageError(f"{value!r} is not a list", next_step='write ["a", "b"]', place=where)
    return tuple(_text(item, where) for item in items)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not a text", next_step="put it in quotes", place=where)
    return value


_READERS = {
    OptionKind.FLAG: values.switch,
    OptionKind.PAIR: values.switch,
    OptionKind.TALLY: values.count,
    OptionKind.COUNT: values.count,
    OptionKind.TOKENS: values.tokens,
    OptionKind.SIZE: values.size,
    OptionKind.RATIO: values.ratio,
    OptionKind.SECONDS: values.seconds,
    OptionKind.MONEY: values.money,
    OptionKind.BYTES: values.size_bytes,
}


PREFIX = "COMPACT_"
PROJECT_FILES = ("compact.toml", "pyproject.toml")
MAX_FILE_BYTES = 1 << 20
_RULE_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")

_BY_NAME = {option.name: option for option in OPTIONS}
_TABLES = frozenset(field.name for field in fields(Settings)) - _BY_NAME.keys()
# An option by this name, and a table of settings.
_BOTH = ("keep", "budget")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Where values come from, option values (read) by name, and tables of `Settings` (raw)."""

    where: str
    options: Mapping[str, Any]
    tables: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What the layers come to. ``options``: what is not a setting, by name; ``sources``: strongest first.

    ``warnings``: variables of the environment that are passed over, because no option has their name.
    """

    settings: Settings
    options: Mapping[str, Any]
    sources: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def configure(given: Mapping[str, Any], environ: Mapping[str, str], folder: Path) -> Configuration:
    """The configuration of a run in ``folder``; ``given`` is what the command line says, by option name.

    Raises UsageError for a value that cannot be read, an unknown key (with the nearest known name), and
    for what a layer may not say.
    """
    project = _project(folder)
    layers = [_command_line(given), _environment(environ), project, _user(environ)]
    layers = [layer for layer in layers if layer.options or layer.tables]
    merged: dict[str, Any] = {}
    for layer in reversed(layers):
        merged |= layer.options
    preset = load_preset(merged.get("preset", DEFAULT))
    settings = preset.with_environment(environ)
    for layer in reversed(layers):
        weaker, settings = settings, _laid_over(settings, layer)
        if layer is project and settings.min_retention_ratio < weaker.min_retention_ratio:
            raise _refused("ask for less to survive than you do", "min-retention", layer.where)
    options = {name: value for name, value in merged.items() if not _BY_NAME[name].into}
    sources = (*(layer.where for layer in layers), f"preset {preset.name}")
    return Configuration(settings=settings, options=options, sources=sources, warnings=tuple(_unknown(environ)))


def _laid_over(settings: Settings, layer: Layer) -> Settings:
    settings = settings_from(layer.tables, settings, layer.where)
    for name, value in layer.options.items():
        if _BY_NAME[name].into:
            settings = setting(_BY_NAME[name], value, settings)
    return settings


def _command_line(given: Mapping[str, Any]) -> Layer:
    options = {name: read_value(_BY_NAME[name], value, f"--{name.replace('_', '-')}") for name, value in given.items()}
    return Layer(where="command line", options=options, tables={})


def _environment(environ: Mapping[str, str]) -> Layer:
    options: dict[str, Any] = {}
    for variable in sorted(name for name in environ if name.startswith(PREFIX) and environ[name]):
        if variable.removeprefix(PREFIX).lower() not in _BY_NAME:
            continue  # another program's, perhaps: see `_unknown`
        option = _known(variable.removeprefix(PREFIX).lower(), "environment", variable)
        value: Any = environ[variable]
        options[option.name] = read_value(
            option, value.split(os.pathsep) if option.kind is OptionKind.LIST else value, variable
        )
    return Layer(where="environment", options=options, tables={})


def _unknown(environ: Mapping[str, str]) -> Iterator[str]:
    """What is to be said of variables that no option goes by."""
    for variable in sorted(name for name in environ if name.startswith(PREFIX) and environ[name]):
        if variable.removeprefix(PREFIX).lower() not in _BY_NAME:
            names = [PREFIX + item.name.upper() for item in OPTIONS if item.scope is not Scope.COMMAND_LINE]
            advice = nearest(variable, names)
            yield f"{variable} in the environment is no option of compact and is passed over" + (
                f": {advice}" if advice else ""
            )


def _known(name: str, where: str, written: str) -> Option:
    """The option of this name that may be given outside the command line."""
    option = _BY_NAME.get(name)
    if option is None:
        names = [item.name for item in OPTIONS if item.scope is not Scope.COMMAND_LINE]
        advice = nearest(written.replace("_", "-"), [name.replace("_", "-") for name in (*names, *_TABLES)])
        raise UsageError(f"unknown key {written}", next_step=advice or "see compact --help", place=where)
    if option.scope is Scope.COMMAND_LINE:
        raise UsageError(f"{written} can only be given on the command line", next_step="leave it out", place=where)
    return option


def _user(environ: Mapping[str, str]) -> Layer:
    base = environ.get("XDG_CONFIG_HOME") or ""
    folder = Path(base) if base.startswith("/") else Path(environ.get("HOME") or "~").expanduser() / ".config"
    path = folder / "compact" / "config.toml"
    table = _table(path)
    return _file_layer(table or {}, str(path))


def _project(folder: Path) -> Layer:
    for place in _searched(folder.absolute()):
        for name in PROJECT_FILES:
            table = _table(place / name)
            if table is not None and name == "pyproject.toml":
                table = _inner(_inner(table, "tool", place / name), "compact", place / name)
            if table is not None:
                _refuse(table, str(place / name))
                return _file_layer(table, str(place / name))
    return Layer(where="", options={}, tables={})


def _inner(table: Mapping[str, Any] | None, key: str, path: Path) -> Any:
    """The table under this key, None if there is none. Raises UsageError for what is not a table."""
    found = table.get(key) if table is not None else None
    if found is not None and not isinstance(found, Mapping):
        raise UsageError(f"{key} is not a table", next_step="write [tool.compact] and keys below it", place=str(path))
    return found


def _searched(folder: Path) -> tuple[Path, ...]:
    """The folder, and those above it up to the root of its git work tree; outside one, the folder alone."""
    above = (folder, *folder.parents)
    for depth, place in enumerate(above):
        if (place / ".git").exists():
            return above[: depth + 1]
    return (folder,)


def _refuse(table: Mapping[str, Any], where: str) -> None:
    """Raise UsageError for what a project's file may not say; see `PROJECT_OPTIONS`."""
    for key, value in table.items():
        name = key.replace("-", "_")
        is_known = name in _BY_NAME or name in _TABLES
        if name in REFUSED_IN_PROJECT:
            raise _refused(REFUSED_IN_PROJECT[name], key, where)
        if is_known and _is_guarded(name):
            raise _refused("set this", key, where)
        reason = _WEAKENING[name](value) if name in _WEAKENING else ""
        if reason:
            raise _refused(reason, f"{key} = {value!r}", where)
    _refuse_words_of_rules(table.get("prune"), where)
    keep = table.get("keep", NEWEST)
    by = keep.get("by", NEWEST) if isinstance(keep, Mapping) else keep
    if by not in KEPT_BY:
        advice = f"one of {', '.join(KEPT_BY)}; a plug-in only on the command line or in your own config.toml"
        raise UsageError(f"a project's file may not choose code to run (keep = {by!r})", next_step=advice, place=where)


def _is_guarded(name: str) -> bool:
    is_allowed = name in PROJECT_OPTIONS or name in PROJECT_TABLES
    # An option of the command line has its own message.
    return not is_allowed and (name not in _BY_NAME or _BY_NAME[name].scope is not Scope.COMMAND_LINE)


def _refused(reason: str, key: str, where: str) -> UsageError:
    advice = "say it on the command line or in your own config.toml"
    return UsageError(f"a project's file may not {reason} ({key})", next_step=advice, place=where)


# Values by which an option that a project's file may set would weaken care.
_WEAKENING: Mapping[str, Callable[[Any], str]] = {
    "preset": lambda value: "choose files to read" if is_preset_file(str(value)) else "",
    "on_invalid": lambda value: "leave out or pass over lines" if value in ("keep", "drop") else "",
    "strict": lambda value: "" if value is True else "switch off strictness",
}


def _refuse_words_of_rules(rules: Any, where: str) -> None:
    """A rule's marker is written into transcripts, and its name into reports."""
    for rule in rules if isinstance(rules, list) else ():
        for key in rule if isinstance(rule, Mapping) else ():
            if key.replace("-", "_") == "marker":
                raise _refused(REFUSED_IN_PROJECT["acknowledgement"], "prune: marker", where)
        name = rule.get("name") if isinstance(rule, Mapping) else None
        if isinstance(name, str) and name and not _RULE_NAME.fullmatch(name):
            raise _refused("name a rule so; letters, digits, - and _, at most 40", f"prune: name = {name!r}", where)


def _file_layer(table: Mapping[str, Any], where: str) -> Layer:
    tables: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in _TABLES or (name in _BOTH and isinstance(value, Mapping)):
            tables[name] = value
        else:
            options[name] = read_value(_known(name, where, key), value, f"{where}: {key}")
    return Layer(where=where, options=options, tables=tables)


def _table(path: Path) -> dict[str, Any] | None:
    """The file's top table; None if there is no such file. Raises UsageError for one that cannot be read."""
    try:
        return tomllib.loads(_small_file(path).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except RecursionError:
        raise UsageError("nested too deeply", next_step="fix the file", place=str(path)) from None
    except ValueError as error:  # not TOML, not UTF-8, a number of thousands of digits
        raise UsageError(f"not valid TOML: {error}", next_step="fix the file", place=str(path)) from error
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", next_step="check its owner", place=str(path)) from error


def _small_file(path: Path) -> bytes:
    """The bytes of a regular file of a sane size. Opening never waits, not even for the writer of a pipe.

    Raises OSError, and UsageError for anything else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError("not a regular file", next_step="move it away, or write a TOML file", place=str(path))
        # One read gives all of a regular file that is at most so large.
        data = os.read(descriptor, MAX_FILE_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_FILE_BYTES:
        what = f"larger than {MAX_FILE_BYTES >> 10} KiB, so it holds no settings"
        raise UsageError(what, next_step="move it away", place=str(path))
    return data
