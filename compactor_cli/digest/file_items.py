"""The file ledger as items: last state, what was added, whether it is committed; contents where they are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from compactor_cli.digest.edits import Content, contents
from compactor_cli.digest.files import FileState
from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.quote import ELLIPSIS, TokenCache, chosen, records_of
from compactor_cli.digest.user_words import water_level
from compactor_cli.digest.work_state import is_throwaway
from compactor_cli.model.summary import Item

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# Share of the section that files which were only read may always have, where there is room for a few lines.
_READ_RATIO = 0.3
_TIGHT_TOKENS = 100
_PATHS_PER_LINE = 8
_MAX_ADDED = 5
_MIN_CONTENT_TOKENS = 30


def file_items(
    states: Sequence[FileState],
    uncommitted: frozenset[str],
    budget_tokens: int,
    token_cache: TokenCache,
    words: FixedWords,
) -> tuple[Item, ...]:
    """Changed files one by one, newest first; then those only read, several on a line.

    Where there is no room for a line each, changed files are named together too.
    """
    changed = sorted((state for state in states if state.is_changed), key=lambda state: is_throwaway(state.path))
    changed = [state for state in changed if not (state.is_deleted and is_throwaway(state.path))]
    read = [state for state in states if not state.is_changed]
    ratio = _READ_RATIO if budget_tokens >= _TIGHT_TOKENS else 0.0
    reserve = min(int(budget_tokens * ratio), sum(token_cache.text(state.path) + 2 for state in read) + 12)
    lines = _changed_items(changed, uncommitted, budget_tokens - reserve, token_cache, words)
    left = budget_tokens - sum(token_cache.item(item) for item in lines)
    return (*lines, *_lists(words.read, read, left, token_cache, words))


def state_text(state: FileState, words: FixedWords) -> str:
    """What happened to a file, in fixed words: ``created, edited ×3, read``."""
    facts = [words.created] if state.is_created else []
    facts += [_times(words.edited, state.edits)] if state.edits else []
    facts += [_times(words.read, state.reads)] if state.reads and not facts else []
    facts += [words.deleted] if state.is_deleted else []
    facts += [f"{words.moved} {state.moved_to}"] if state.moved_to else []
    facts += [f"{words.committed} {state.commit}"] if state.commit else []
    return words.comma.join(facts)


def _times(word: str, number: int) -> str:
    return word if number == 1 else f"{word} ×{number}"


def _changed_items(
    states: Sequence[FileState],
    uncommitted: frozenset[str],
    budget_tokens: int,
    token_cache: TokenCache,
    words: FixedWords,
) -> tuple[Item, ...]:
    full = [_item(state, words, with_added=True) for state in states]
    if sum(token_cache.item(item) for item in full) <= budget_tokens:
        return tuple(full)
    items = [_item(state, words, with_added=False) for state in states]
    if sum(token_cache.item(item) for item in items) <= budget_tokens:
        return _with_more(items, full, budget_tokens, token_cache)
    together = _lists(words.edited, states, budget_tokens // 2, token_cache, words)
    left = budget_tokens - sum(token_cache.item(item) for item in together)
    single = chosen(items, left, token_cache)
    rest = [state for state, item in zip(states, items, strict=True) if item not in single]
    return (
        *single,
        *_lists(words.edited, rest, budget_tokens - sum(map(token_cache.item, single)), token_cache, words),
    )


def _with_more(
    items: list[Item], full: Sequence[Item], budget_tokens: int, token_cache: TokenCache
) -> tuple[Item, ...]:
    """The items, the newest of them with what was added as far as it fits."""
    left = budget_tokens - sum(token_cache.item(item) for item in items)
    for place, item in enumerate(full):
        more = token_cache.item(item) - token_cache.item(items[place])
        if more <= left:
            items[place] = item
            left -= more
    return tuple(items)


def _item(state: FileState, words: FixedWords, *, with_added: bool) -> Item:
    newest = list(state.added)[-_MAX_ADDED:] if with_added else []
    added = f"{words.colon}+ {', '.join(newest)}" if newest else ""
    # What another name was moved to is given there.
    status = state_text(state, words)
    text = f"{state.path} — {status}{added}" if status or added else state.path
    return Item(text=text, records=records_of(state.records[-1:]))


def _lists(
    label: str, states: Sequence[FileState], budget_tokens: int, token_cache: TokenCache, words: FixedWords
) -> tuple[Item, ...]:
    """Paths together, a few on a line, as many as fit."""
    items: list[Item] = []
    left = budget_tokens
    remaining = iter(states)
    while batch := list(islice(remaining, _PATHS_PER_LINE)):
        listed: list[FileState] = []
        for state in batch:
            if token_cache.item(_list_item(label, [*listed, state], words)) <= left:
                listed.append(state)
        if listed:
            items.append(_list_item(label, listed, words))
            left -= token_cache.item(items[-1])
    return tuple(items)


def _list_item(label: str, states: Sequence[FileState], words: FixedWords) -> Item:
    return Item(text=f"{label}{words.colon}{', '.join(state.path for state in states)}")


def content_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """The last known contents of the files worked on last: whole where they are short, else changes and signatures."""
    words = analysis.words
    there = [state for state in analysis.files if state.is_changed and not (state.is_deleted or state.moved_to)]
    states = there[: analysis.restore_files]
    found = contents(analysis.events, analysis.operations, [state.path for state in states])
    known = [(state.path, content) for state in states if (content := found.get(state.path)) and _text(content)]
    costs = [token_cache.item(_content(path, content, _text(content), words.content, words)) for path, content in known]
    level = water_level(costs, budget_tokens)
    items: list[Item] = []
    for (path, content), cost in zip(known, costs, strict=True):
        if content.text is not None and cost <= level:
            items.append(_content(path, content, content.text, words.content, words))
        elif level >= _MIN_CONTENT_TOKENS and (parts := _parts(path, content, level, token_cache, words)):
            items.append(parts)
    return tuple(items)


def _text(content: Content) -> str:
    return content.text if content.text is not None else "\n".join(content.parts)


def _parts(path: str, content: Content, tokens: int, token_cache: TokenCache, words: FixedWords) -> Item | None:
    """As many lines of the newest changes, then signatures, as fit."""
    lines = [line.rstrip() for line in _part_lines(content) if line.strip()]
    left = tokens - token_cache.item(_content(path, content, "", words.parts, words)) - 2
    taken: list[str] = []
    for line in dict.fromkeys(lines):
        left -= token_cache.text(f"\n  {line}")
        if left < 0:
            taken.append(ELLIPSIS)
            break
        taken.append(line)
    item = _content(path, content, "\n".join(taken), words.parts, words)
    return item if len(taken) > 1 and token_cache.item(item) <= tokens else None


def _part_lines(content: Content) -> Iterator[str]:
    for part in reversed(content.parts):
        yield from part.split("\n")
    yield from (found[0] for found in _signature().finditer(content.text or ""))


@cache
def _signature() -> re.Pattern[str]:
    return re.compile(
        r"^ {0,4}(?:export |default |public |private |protected |static |async |pub |abstract |final )*"
        r"(?:def|class|func|fn|function|interface|type|struct|enum|trait|impl|module|package)\b.*$|^#{1,3} .*$",
        re.MULTILINE,
    )


def _content(path: str, content: Content, text: str, label: str, words: FixedWords) -> Item:
    body = text.rstrip("\n")
    # A template's list would take these lines for items of its own.
    if any(line.lstrip().startswith("- ") for line in body.split("\n")):
        body = "\n".join(f"| {line}" for line in body.split("\n"))
    return Item(text=f"{path} — {label}{words.colon.rstrip()}\n{body}".rstrip(), records=records_of(content.records))
