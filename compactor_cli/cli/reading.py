"""Reading: an option's value from any layer, and the setting it stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compactor_cli.cli.options import Option, OptionKind
from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import Budget, Settings, Size
from compactor_cli.presets import units as values
from compactor_cli.presets.kept import read_head, read_tail, with_head, with_tail

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
