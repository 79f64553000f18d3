"""Actions: what was done through tools that are about neither files nor commands, and how each ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compactor_cli.digest.commands import error_line, trouble
from compactor_cli.digest.events import Event, EventKind, ToolKind, results_of
from compactor_cli.digest.language import Words
from compactor_cli.digest.quote import ELLIPSIS, Meter, opening, records_of
from compactor_cli.digest.tools import is_lookup
from compactor_cli.model.summary import Item

# The arguments of a call are told in so many characters: the first of these that leaves half of the room to other
# calls, else the last.
_SIZES_CHARS = (240, 120, 60)
_CHARS_PER_TOKEN = 4
_MOST_ARGUMENT_CHARS = 60
_LEAST_TOKENS = 10


def action_items(events: Sequence[Event], budget_tokens: int, meter: Meter, words: Words) -> tuple[Item, ...]:
    """Calls that changed something, newest first, as ``name(key=value, …) → outcome``; of equal ones the newest."""
    results = results_of(events)
    told: dict[str, Item] = {}
    left = budget_tokens
    most_chars = budget_tokens * _CHARS_PER_TOKEN // 2
    chars = next((size for size in _SIZES_CHARS if size <= most_chars), _SIZES_CHARS[-1])
    for number in range(len(events) - 1, -1, -1):
        call = events[number]
        if call.kind is not EventKind.CALL or call.tool is not ToolKind.OTHER or is_lookup(call.name):
            continue
        item = _item(call, results.get(number), chars, words)
        if item.text not in told and (cost := meter.item(item)) <= left:
            told[item.text] = item
            left -= cost
        if left < _LEAST_TOKENS:
            break
    return tuple(told.values())


def _item(call: Event, result: Event | None, chars: int, words: Words) -> Item:
    given = words.comma.join(_given(call.text.split("\n")[1:], chars))
    text = f"{call.name}({given})"
    if result is None:
        return Item(text=text, records=records_of((call.record,)))
    first = result.text.lstrip().partition("\n")[0]
    failed = result.is_error or trouble().search(first) is not None
    outcome = f"{words.failed}{words.colon}{opening(error_line(result.text), chars)}" if failed else words.ok
    return Item(text=f"{text} → {outcome}", records=records_of((call.record, result.record)))


def _given(lines: Iterable[str], chars: int) -> Iterator[str]:
    """The arguments as far as they fit, each shortened where it is long; empty ones are left out."""
    for line in (line for line in lines if not line.endswith("=")):
        shown = opening(line, _MOST_ARGUMENT_CHARS)
        chars -= len(shown)
        if chars < 0:
            yield ELLIPSIS
            return
        yield shown
