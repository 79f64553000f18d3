"""Earlier summaries of other clients, carried whole where they fit."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache

from compactor_cli.digest.quote import TokenCache, listed, plain_line
from compactor_cli.digest.transcript_events import Event, EventKind
from compactor_cli.model.summary import Item


@cache
def _heading() -> re.Pattern[str]:
    # Markdown headings, numbered or bold lines that end with a colon, opening tags (Claude Code, Codex, Kimi, Gemini).
    return re.compile(
        r"^(?:#{1,6} +\S.*|\d{1,2}\. +(?:\*\*)?[^.\n]{2,60}:(?:\*\*)?|\*\*[^*\n]{2,60}\*\*:?"
        r"|<[a-z_]+(?: [^>]*)?>)[ \t]*$",
        re.MULTILINE,
    )


def whole_summaries(
    events: Sequence[Event], own: Collection[int], budget_tokens: int, token_cache: TokenCache
) -> tuple[Item, ...]:
    """The summaries that fit whole, newest preferred, an item for each of their parts; ``own``: records left out."""
    items: list[Item] = []
    left = budget_tokens
    for event in reversed(events):
        if event.kind is not EventKind.SUMMARY or event.record in own or len(event.text) > left * 8:
            continue
        parts = [item for part in _parts(event.text) if (item := _item(part.split("\n"), event)).text]
        cost = sum(map(token_cache.item, parts))
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
    listed_lines = (listed(plain_line(_untagged(line))) for line in lines)
    return Item(text="\n".join(line for line in listed_lines if line), records=(event.record,))


def _untagged(line: str) -> str:
    """A line of XML sections without its tag; the tag's name stays as a heading."""
    found = re.fullmatch(r"\s*<(/?)([a-z_]+)(?: [^>]*)?>\s*", line)
    if found is None:
        return line
    return "" if found[1] else f"{found[2].replace('_', ' ')}:"
