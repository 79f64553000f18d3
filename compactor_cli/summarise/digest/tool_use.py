"""Tools in use: which were called, how often, and with which arguments, in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from compactor_cli.core.summary import Item
from compactor_cli.summarise.digest.events import Event, EventKind
from compactor_cli.summarise.digest.language import Words
from compactor_cli.summarise.digest.quote import Meter
from compactor_cli.summarise.digest.tools import parameter_names


def tool_items(events: Iterable[Event], budget_tokens: int, meter: Meter, words: Words) -> tuple[Item, ...]:
    """One item that names as many tools as fit, the ones called most first; none where nothing fits."""
    calls: Counter[str] = Counter()
    arguments: dict[str, dict[str, None]] = {}
    for event in events:
        if event.kind is EventKind.CALL:
            calls[event.name] += 1
            arguments.setdefault(event.name, {}).update(dict.fromkeys(parameter_names(event.arguments)))
    told: list[str] = []
    for name, times in calls.most_common():
        tool = f"{name} ×{times} ({words.comma.join(arguments[name])})"
        if arguments[name] and meter.item(_item([*told, tool], words)) <= budget_tokens:
            told.append(tool)
    return (_item(told, words),) if told else ()


def is_tool_item(text: str, words: Words) -> bool:
    """Whether an item's text is what `tool_items` writes."""
    return text.startswith(f"{words.tools}{words.colon}")


def _item(told: Iterable[str], words: Words) -> Item:
    return Item(text=f"{words.tools}{words.colon}{words.stop.join(told)}")
