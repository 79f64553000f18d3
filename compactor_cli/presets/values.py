"""Values as people write them (``32k``, ``25%``, ``10m``, ``4 turns``), and tables of them laid over Settings."""

from __future__ import annotations

import dataclasses
import math
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import Budget, Keep, PruneRule, Settings, Size

# Of `Budget.curve`.
CURVES = ("scaled", "tiered")
_MULTIPLES = {"": 1, "k": 1_000, "m": 1_000_000}
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def tokens(value: object, where: str) -> int:
    """A number of tokens: ``16000``, ``"16k"``, ``"1.5m"``. Raises UsageError naming ``where``."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    number = _with_unit(value, _MULTIPLES)
    if number is None or number != int(number):
        raise _refused(value, "is not a number of tokens", "16000, 32k or 1.5m", where)
    return int(number)


def size(value: object, where: str) -> Size:
    """Tokens, or a share between 0 % and 100 %: ``"32k"``, ``"25%"``, ``0.25``. Raises UsageError."""
    if isinstance(value, str) and (value.strip().endswith("%") or 0 < (_number(value.strip()) or 0) < 1):
        return Size(ratio=ratio(value, where))
    if isinstance(value, float) and 0 < value < 1:
        return Size(ratio=value)
    try:
        return Size(tokens=tokens(value, where))
    except UsageError as error:
        raise _refused(value, "is not a size", "32k, 1.5m or 25%", where) from error


def target(value: object, where: str) -> Size:
    """A `size` that leaves something. Raises UsageError."""
    found = size(value, where)
    if found == Size():
        raise UsageError("a target of nothing leaves nothing", next_step="write 32k, 1.5m or 25%", place=where)
    return found


def ratio(value: object, where: str) -> float:
    """A share from 0 to 1: ``0.25``, ``"25%"``. Raises UsageError."""
    number: float | None = None
    if isinstance(value, str):
        text = value.strip()
        number = _number(text[:-1], 100) if text.endswith("%") else _number(text)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    if number is None or not 0 <= number <= 1:
        raise _refused(value, "is not a share", "25% or 0.25", where)
    return number


def seconds(value: object, where: str) -> float:
    """A length of time: ``600``, ``"90s"``, ``"10m"``, ``"1h"``, ``"2d"``. Raises UsageError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    number = _with_unit(value, _SECONDS)
    if number is None:
        raise _refused(value, "is not a length of time", "90s, 10m, 1h or 2d", where)
    return number


def size_bytes(value: object, where: str) -> int:
    """A number of bytes, in units of 1,024: ``1048576``, ``"128M"``, ``"1.5g"``. Raises UsageError."""
    number = float(value) if isinstance(value, int) else _with_unit(value, _BYTES)
    if number is None:
        raise _refused(value, "is not a number of bytes", "64M or 1G", where)
    return int(number)


def money(value: object, where: str) -> float:
    """US dollars: ``5``, ``0.25``, ``"$2"``. Raises UsageError."""
    number = _number(str(value).strip().removeprefix("$"))
    if isinstance(value, bool) or number is None or number <= 0:
        raise _refused(value, "is not a sum of money", "5 or 0.25 (US dollars)", where)
    return number


def switch(value: object, where: str) -> bool:
    """On or off: a boolean, ``1``, ``true``, ``yes``, ``on`` and their opposites. Raises UsageError."""
    if isinstance(value, bool):
        return value
    found = _SWITCHES.get(str(value).strip().lower())
    if found is None:
        raise _refused(value, "is neither on nor off", "true or false", where)
    return found


def count(value: object, where: str) -> int:
    """A whole number from 0. Raises UsageError."""
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        raise _refused(value, "is not a whole number", "digits alone, as 8", where)
    return int(text)


def _with_unit(value: object, units: dict[str, int]) -> float | None:
    if not isinstance(value, str):
        return None
    text = value.strip().lower().replace("_", "")
    unit = text[-1:] if text[-1:].isalpha() else ""
    number = _number(text.removesuffix(unit)) if unit in units else None
    return None if number is None or number < 0 else round(number * units[unit], 6)


def _number(text: str, divisor: int = 1) -> float | None:
    try:
        number = float(text) / divisor
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _refused(value: object, what: str, advice: str, where: str) -> UsageError:
    shown = f"“{value}”" if isinstance(value, str) else repr(value)
    return UsageError(f"{shown} {what}", next_step=f"write {advice}", place=where)


_KEPT = re.compile(r"(\d+)\s*(turns?|messages?)")


def read_head(value: Any, where: str) -> tuple[str, float]:
    """The unit (``tokens`` or ``turns``) and the number. Raises UsageError."""
    unit, number = _counted(value, where)
    if unit == "messages":
        raise UsageError("the head is kept by tokens or turns", next_step="write 4k or 2turns", place=where)
    return unit, number


def read_tail(value: Any, where: str) -> tuple[str, float]:
    """The unit (``tokens``, ``turns``, ``messages`` or ``ratio``) and the number. Raises UsageError."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return "ratio", ratio(value, where)
    return _counted(value, where)


def with_head(keep: Keep, unit: str, number: float) -> Keep:
    """``keep`` with this head in place of its own."""
    count = int(number)
    if unit == "turns":
        return replace(keep, head_turns=count, head_tokens=0)
    return replace(keep, head_tokens=count, head_turns=(keep.head_turns or Keep().head_turns) if count else 0)


def with_tail(keep: Keep, unit: str, number: float) -> Keep:
    """``keep`` with this tail in place of its own."""
    none = replace(keep, tail_tokens=0, tail_messages=0, tail_turns=0, tail_ratio=0.0)
    change: dict[str, Any] = {f"tail_{unit}": number}
    return replace(none, **change)


def _counted(value: Any, where: str) -> tuple[str, float]:
    if isinstance(value, str) and (found := _KEPT.fullmatch(value.strip().lower())):
        return found[2].removesuffix("s") + "s", int(found[1])
    try:
        return "tokens", tokens(value, where)
    except UsageError as error:
        raise _refused(value, "is not a size", "16k tokens, 2turns or 2messages; of a tail also 30%", where) from error


def budget(value: object, where: str) -> Budget:
    """The size of a summary: the name of a curve, or a `size`. Raises UsageError."""
    if value in CURVES:
        return Budget(curve=str(value))
    try:
        return Budget(size=size(value, where))
    except UsageError as error:
        raise _refused(value, "is not the size of a summary", f"{', '.join(CURVES)}, 2k or 10%", where) from error


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
    if kind is Size and isinstance(value, Mapping):  # as reports and plans hold it
        return Size(tokens=tokens(value.get("tokens", 0), where), ratio=ratio(value.get("ratio", 0.0), where))
    if kind is Size:
        return size(value, where)
    if kind is Keep and isinstance(value, str):
        return dataclasses.replace(base, by=value)
    if kind is Budget and not isinstance(value, Mapping):
        return dataclasses.replace(budget(value, where), most_ratio=base.most_ratio)
    if dataclasses.is_dataclass(kind):
        return _overlay(value, base, where)
    if kind == tuple[PruneRule, ...]:
        return _rules(value, where)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(choice(value, tuple(kind), where))
    if kind == tuple[str, ...]:
        return texts(value, where)
    if name == "curve":
        return choice(value, CURVES, where)
    if kind is int and name.endswith("_tokens"):
        return tokens(value, where)
    return _PLAIN[kind](value, where)


def _rules(value: Any, where: str) -> tuple[PruneRule, ...]:
    if isinstance(value, list | tuple) and all(isinstance(rule, PruneRule) for rule in value):
        return tuple(value)
    if not isinstance(value, list | tuple) or not all(isinstance(rule, Mapping) and rule.get("name") for rule in value):
        raise UsageError("rules are tables with a name each", next_step="write [[prune]] and name = …", place=where)
    return tuple(_overlay(rule, PruneRule(name=""), f"{where}: {rule['name']}") for rule in value)


def choice(value: object, choices: tuple[str, ...], where: str) -> str:
    """One of these names. Raises UsageError."""
    if value not in choices:
        raise UsageError(f"“{value}” is not a choice", next_step=f"one of {', '.join(choices)}", place=where)
    return str(value)


def texts(value: object, where: str) -> tuple[str, ...]:
    """A list of texts. Raises UsageError."""
    if not isinstance(value, list | tuple):
        raise UsageError(f"{value!r} is not a list", next_step='write ["a", "b"]', place=where)
    return tuple(text(item, where) for item in value)


def text(value: object, where: str) -> str:
    """A text, which no other value is taken for. Raises UsageError."""
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not a text", next_step="put it in quotes", place=where)
    return value


_PLAIN: Mapping[type, Callable[[object, str], Any]] = {int: count, float: ratio, bool: switch, str: text}
