"""Tools in use: which were called, how often, and with which arguments, in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from compactor_cli.digest.events import Event, EventKind, ToolKind
from compactor_cli.digest.language import Words
from compactor_cli.digest.quote import Meter
from compactor_cli.digest.tools import is_lookup, parameters
from compactor_cli.model.summary import Item

# Longer values are texts, not what a tool is asked about.
_MOST_VALUE_CHARS = 32
_MOST_VALUES = 3

# The arguments of a tool by name, each with its values as far as they are told, the newest last.
_Given = dict[str, dict[str, None]]


def tool_items(events: Iterable[Event], budget_tokens: int, meter: Meter, words: Words) -> tuple[Item, ...]:
    """One item that names as many tools as fit, the ones called most first; none where nothing fits.

    Tools that look something up elsewhere than in files come before, with the newest values they were asked about:
    no other section tells those.
    """
    calls: Counter[str] = Counter()
    given: dict[str, _Given] = {}
    for event in events:
        if event.kind is EventKind.CALL:
            calls[event.name] += 1
            _enter(given.setdefault(event.name, {}), event)
    told: list[str] = []
    for name, times in sorted(calls.most_common(), key=lambda tool: not any(given[tool[0]].values())):
        arguments = words.comma.join(_argument(*each, words) for each in given[name].items())
        tool = f"{name} ×{times} ({arguments})"
        if arguments and meter.item(_item([*told, tool], words)) <= budget_tokens:
            told.append(tool)
    return (_item(told, words),) if told else ()


def is_tool_item(text: str, words: Words) -> bool:
    """Whether an item's text is what `tool_items` writes."""
    return text.startswith(f"{words.tools}{words.colon}")


def _enter(given: _Given, event: Event) -> None:
    is_asking = event.tool is ToolKind.OTHER and is_lookup(event.name)
    for name, value in parameters(event.arguments):
        values = given.setdefault(name, {})
        shown = value.strip()
        if is_asking and 0 < len(shown) <= _MOST_VALUE_CHARS and "\n" not in shown:
            values.pop(shown, None)
            values[shown] = None


def _argument(name: str, values: Mapping[str, None], words: Words) -> str:
    newest = list(values)[-_MOST_VALUES:]
    return f"{name}{words.colon}{' / '.join(newest)}" if newest else name


def _item(told: Iterable[str], words: Words) -> Item:
    return Item(text=f"{words.tools}{words.colon}{words.stop.join(told)}")
