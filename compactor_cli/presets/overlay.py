"""Overlay: a table of a preset or configuration file laid over Settings, key by key."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import Budget, Keep, PruneRule, Settings, Size
from compactor_cli.presets import units as values
from compactor_cli.presets.kept import read_head, read_tail, with_head, with_tail


def settings_from(table: Mapping[str, Any], base: Settings, where: str) -> Settings:
    """``base`` with every value that ``table`` names; the others stay.

    Keys are the names of the fields of `Settings`, ``-`` standing for ``_``; a value of a field's own type is taken as
    it is. In short, as options have them: ``keep`` and ``budget`` as a text or number, ``keep_head``, ``keep_tail``.
    ``prune`` replaces all rules. Raises UsageError that names the key, and the nearest known one where it is unknown.
    """
    if not isinstance(table, Mapping):
        raise UsageError(f"{table!r} is not a table", next_step="write a table of keys", place=where)
    table = {key.replace("-", "_"): value for key, value in table.items()}
    ends = {name: table.pop(name) for name in ("keep_head", "keep_tail") if name in table}
    settings = typing.cast(Settings, _overlay(table, base, where))
    keep = settings.keep
    if "keep_head" in ends:
        keep = with_head(keep, *read_head(ends["keep_head"], f"{where}: keep_head"))
    if "keep_tail" in ends:
        keep = with_tail(keep, *read_tail(ends["keep_tail"], f"{where}: keep_tail"))
    return dataclasses.replace(settings, keep=keep)


def nearest(name: str, known: Iterable[str]) -> str:
    """Advice for an unknown name: the known one it resembles most, or where to look."""
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else ""


def _overlay(table: Mapping[str, Any], base: Any, where: str) -> Any:
    if not isinstance(table, Mapping):
        raise UsageError(f"{table!r} is not a table", next_step="write a table of keys", place=where)
    types = typing.get_type_hints(type(base))
    changes: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in types:
            advice = nearest(name, types) or f"known keys: {', '.join(types)}"
            raise UsageError(f"unknown key {key}", next_step=advice, place=where)
        changes[name] = _field(types[name], name, value, getattr(base, name), f"{where}: {name}")
    return dataclasses.replace(base, **changes)


def _field(kind: Any, name: str, value: Any, base: Any, where: str) -> Any:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(value, kind):
        return value
    if kind is Size:
        return _size(value, where)
    if kind is Keep and isinstance(value, str):
        return dataclasses.replace(base, by=value)
    if kind is Budget and not isinstance(value, Mapping):
        return _budget(value, base, where)
    if dataclasses.is_dataclass(kind):
        return _overlay(value, base, where)
    if kind == tuple[PruneRule, ...]:
        return _rules(value, where)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(_choice(value, tuple(kind), where))
    if kind == tuple[str, ...]:
        return _texts(value, where)
    if name in _CHOICES:
        return _choice(value, _CHOICES[name], where)
    if kind is int and name.endswith("_tokens"):
        return values.tokens(value, where)
    return _PLAIN[kind](value, where)


def _budget(value: Any, base: Budget, where: str) -> Budget:
    """A curve by its name, or a fixed size."""
    if value in _CHOICES["curve"]:
        return dataclasses.replace(base, curve=value, size=Size())
    return dataclasses.replace(base, size=values.size(value, where))


def _size(value: Any, where: str) -> Size:
    """A size as people write it, or as reports and plans hold it (``tokens`` and ``ratio``)."""
    if not isinstance(value, Mapping):
        return values.size(value, where)
    return Size(
        tokens=values.tokens(value.get("tokens", 0), where),
        ratio=values.ratio(value.get("ratio", 0.0), where),
    )


def _rules(value: Any, where: str) -> tuple[PruneRule, ...]:
    if isinstance(value, list | tuple) and all(isinstance(rule, PruneRule) for rule in value):
        return tuple(value)
    if not isinstance(value, list | tuple) or not all(isinstance(rule, Mapping) and rule.get("name") for rule in value):
        raise UsageError("rules are tables with a name each", next_step="write [[prune]] and name = …", place=where)
    return tuple(_overlay(rule, PruneRule(name=""), f"{where}: {rule['name']}") for rule in value)


def _choice(value: object, choices: tuple[str, ...], where: str) -> str:
    if value not in choices:
        raise UsageError(f"{value!r} is not a choice", next_step=f"one of {', '.join(choices)}", place=where)
    return str(value)


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise UsageError(f"{value!r} is not a list", next_step='write ["a", "b"]', place=where)
    return tuple(_text(item, where) for item in value)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not a text", next_step="put it in quotes", place=where)
    return value


# Of `Budget.curve`.
_CHOICES: Mapping[str, tuple[str, ...]] = {"curve": ("scaled", "tiered")}

_PLAIN: Mapping[type, Callable[[object, str], Any]] = {
    int: values.count,
    float: values.ratio,
    bool: values.switch,
    str: _text,
}
