"""Earlier summaries of other clients: whole where they fit, else their key lines under their own headings."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from compactor_cli.digest.candidates import Form
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.keylines import KeyLine
from compactor_cli.digest.layout import remembered
from compactor_cli.digest.material import Material
from compactor_cli.digest.quote import Meter, listed, plain_line
from compactor_cli.model.summary import Item


@cache
def _heading() -> re.Pattern[str]:
    # Markdown headings, numbered or bold lines that end with a colon, opening tags (Claude Code, Codex, Kimi, Gemini).
    return re.compile(
        r"^(?:#{1,6} +\S.*|\d{1,2}\. +(?:\*\*)?[^.\n]{2,60}:(?:\*\*)?|\*\*[^*\n]{2,60}\*\*:?"
        r"|<[a-z_]+(?: [^>]*)?>)[ \t]*$",
        re.MULTILINE,
    )


def whole_summaries(events: Sequence[Event], budget_tokens: int, meter: Meter) -> tuple[Item, ...]:
    """The summaries that fit whole, newest preferred, an item for each of their parts."""
    items: list[Item] = []
    left = budget_tokens
    for event in reversed(events):
        if event.kind is not EventKind.SUMMARY or len(event.text) > left * 8:
            continue
        parts = [item for part in _parts(event.text) if (item := _item(part.split("\n"), event)).text]
        cost = sum(map(meter.item, parts))
        if parts and cost <= left:
            items = parts + items
            left -= cost
    return tuple(items)


def _parts(text: str) -> list[str]:
    starts = _starts(text)
    return [text[start:stop] for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]


def _starts(text: str) -> list[int]:
    """Where the parts of a summary start: at each heading, and at its beginning."""
    return sorted({0, *(found.start() for found in _heading().finditer(text))})


def _item(lines: Iterable[str], event: Event) -> Item:
    told = (listed(plain_line(_untagged(line))) for line in lines)
    return Item(text="\n".join(line for line in told if line), records=(event.record,))


def _untagged(line: str) -> str:
    """A line of XML sections without its tag; the tag's name stays as a heading."""
    found = re.fullmatch(r"\s*<(/?)([a-z_]+)(?: [^>]*)?>\s*", line)
    if found is None:
        return line
    return "" if found[1] else f"{found[2].replace('_', ' ')}:"


def previous_items(
    lines: Sequence[KeyLine], whole: tuple[Item, ...], material: Material, names: Mapping[str, str]
) -> tuple[Item, ...]:
    """The section: other clients' summaries, then the key lines of an earlier one of ours under their labels.

    ``whole``: the summaries that are carried whole, whose lines need not come again. ``names``: see `layout.history`.
    """
    shown = {record for item in whole for record in item.records}
    ours, theirs = [], []
    labels = {line: label for label, line in material.memory.lines}
    for line in lines:
        if line.event < 0:
            ours.append(line)
        elif material.ours.issuperset(line.records):
            texts = line.text.split("\n")
            ours += [replace(line, text=text, label=labels.get(text, ""), kind=EventKind.RESULT) for text in texts]
        elif not shown.issuperset(line.records):
            theirs.append(line)
    return (*_under_headings(theirs, material.events), *whole, *remembered(ours, material.words, names))


def _under_headings(lines: Sequence[KeyLine], events: Sequence[Event]) -> tuple[Item, ...]:
    """Key lines of summaries, those of a part together under its heading."""
    parts: dict[tuple[int, int], list[str]] = {}
    for line in lines:
        text = events[line.event].text
        starts = _starts(text)
        start = starts[bisect_right(starts, max(0, text.find(line.text.split("\n")[0]))) - 1]
        told = parts.setdefault((line.event, start), [])
        opening = text[start:].partition("\n")[0]
        heads = [opening] if _heading().match(opening) and not told else []
        told += [*heads, *([line.lead] if line.lead else []), *_texts(line)]
    return tuple(_item(dict.fromkeys(told), events[event]) for (event, _), told in sorted(parts.items()))


def _texts(line: KeyLine) -> list[str]:
    return [line.text] if line.form is Form.NAME else line.text.split("\n")
