"""The section of files: what happened to each file, and the last known contents of those worked on last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from compactor_cli.digest.edits import MAX_SHOWN_LINES, PROSE, line_worth
from compactor_cli.digest.file_contents import Content, contents
from compactor_cli.digest.files import FileState, is_clients, is_throwaway
from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.noise import DEFINERS, MODIFIER
from compactor_cli.digest.statements import TokenCache, chosen, records_of, water_level
from compactor_cli.digest.texts import ELLIPSIS
from compactor_cli.model.summary import Item

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# Share of the section that is reserved for files that were only read, from a budget of `_TIGHT_TOKENS` on.
_READ_RATIO = 0.3
_TIGHT_TOKENS = 100
_PATHS_PER_LINE = 8
# How many names and how many lines of its edits a file is shown with, in rounds: first a little of every file.
_DETAILS = ((2, 0), (5, 0), (5, 1), (5, MAX_SHOWN_LINES))
_MIN_CONTENT_TOKENS = 30


def file_items(
    states: Sequence[FileState],
    budget_tokens: int,
    token_cache: TokenCache,
    words: FixedWords,
) -> tuple[Item, ...]:
    """The changed files, one item each, newest first; then scripts for a try and files only read, several in an item.

    Where there is no room for an item each, changed files share items too. An item that says how many are left out
    follows them if some are.
    """
    tries = [state for state in states if state.is_try and not state.is_deleted]
    moved_here = {state.path for state in states if state.moved_from and not state.is_deleted}
    acted_on = [one for one in states if (one.is_changed or one.commit) and one.moved_to not in moved_here]
    changed = [state for state in acted_on if not state.is_try]
    # Temporary files are shown only if nothing else was changed.
    changed = [state for state in changed if not is_throwaway(state.path)] or changed
    looked_at = [state for state in states if not (state.is_changed or state.commit)]
    read = [state for state in looked_at if not (is_throwaway(state.path) or is_clients(state.path))]
    ratio = _READ_RATIO if budget_tokens >= _TIGHT_TOKENS else 0.0
    reserve = min(int(budget_tokens * ratio), sum(token_cache.text(state.path) + 2 for state in read) + 12)
    lines = _changed_items(changed, budget_tokens - reserve, token_cache, words)
    if _left_out(changed, lines):  # changed files take precedence over those that were only read
        lines = _changed_items(changed, budget_tokens, token_cache, words)
    if lines and (number := _left_out(changed, lines)):
        lines = (*lines, Item(text=f"{ELLIPSIS} {number} {words.more}"))
    left = budget_tokens - sum(token_cache.item(item) for item in lines)
    of_tries = _lists(words.tries, tries, left, token_cache, words)
    left -= sum(token_cache.item(item) for item in of_tries)
    return (*lines, *of_tries, *_lists(words.looked_at, read, left, token_cache, words))


def _left_out(states: Iterable[FileState], items: Iterable[Item]) -> int:
    """The number of these files whose path is in no item."""
    shown = "\n".join(item.text for item in items)
    return sum(state.path not in shown for state in states)


def state_text(state: FileState, words: FixedWords) -> str:
    """What happened to a file, in fixed words: ``created, edited ×3, read``."""
    facts = [words.created] if state.is_created else []
    facts += [_times(words.edited, max(state.edits, 1))] if state.least_edits else []
    facts += [_times(words.read, state.reads)] if state.reads and not facts else []
    facts += [words.deleted] if state.is_deleted else []
    facts += [f"{words.moved} {state.moved_to}"] if state.moved_to else []
    facts += [f"{words.moved_from} {state.moved_from}"] if state.moved_from and not state.moved_to else []
    facts += [words.reverted] if state.is_reverted else []
    facts += [f"{words.committed} {state.commit}"] if state.commit else []
    facts += [f"{words.since_commit} {state.commit_before}"] if state.commit_before and not state.commit else []
    return words.comma.join(facts)


def _times(word: str, number: int) -> str:
    return word if number == 1 else f"{word} ×{number}"


def _changed_items(
    states: Sequence[FileState],
    budget_tokens: int,
    token_cache: TokenCache,
    words: FixedWords,
) -> tuple[Item, ...]:
    items = [_item(state, words) for state in states]
    if sum(token_cache.item(item) for item in items) <= budget_tokens:
        for names, lines in _DETAILS:
            full = [_item(state, words, names, lines) for state in states]
            items = list(_with_more(items, full, budget_tokens, token_cache))
        return tuple(items)
    together = _by_fate(states, budget_tokens // 2, token_cache, words)
    left = budget_tokens - sum(token_cache.item(item) for item in together)
    # Of files as they were before, their names are enough.
    single = chosen(
        (item for state, item in zip(states, items, strict=True) if not state.is_reverted), left, token_cache
    )
    rest = [state for state, item in zip(states, items, strict=True) if item not in single]
    return (*single, *_by_fate(rest, budget_tokens - sum(map(token_cache.item, single)), token_cache, words))


def _by_fate(
    states: Sequence[FileState], budget_tokens: int, token_cache: TokenCache, words: FixedWords
) -> tuple[Item, ...]:
    """Items of paths that share a fate: created, edited, reverted or deleted, by commit; moved to one place."""
    groups: dict[str, list[FileState]] = {}
    for state in states:
        commit = f"{words.comma}{words.committed} {state.commit}" if state.commit else ""
        done = [words.created] if state.is_created else []
        done += [words.edited] if state.edits > state.undone else []
        other = words.edited if state.is_changed else words.looked_at  # of the latter, others wrote what was committed
        done = done or [words.moved_away if state.moved_from else other]
        done = [words.deleted] if state.is_deleted else [words.reverted] if state.is_reverted else done
        is_moved = state.moved_to and not state.is_deleted
        fate = f"{words.moved} {state.moved_to}" if is_moved else f"{words.comma.join(done)}{commit}"
        groups.setdefault(fate, []).append(state)
    items: list[Item] = []
    for label, group in sorted(groups.items(), key=lambda pair: pair[1][0].is_deleted or bool(pair[1][0].moved_to)):
        items += _lists(label, group, budget_tokens - sum(map(token_cache.item, items)), token_cache, words)
    return tuple(items)


def _with_more(
    items: Sequence[Item], full: Sequence[Item], budget_tokens: int, token_cache: TokenCache
) -> tuple[Item, ...]:
    """The items, each replaced by its full version as long as the budget allows, in order (newest first)."""
    items = list(items)
    left = budget_tokens - sum(token_cache.item(item) for item in items)
    for place, item in enumerate(full):
        more = token_cache.item(item) - token_cache.item(items[place])
        if more <= left:
            items[place] = item
            left -= more
    return tuple(items)


def _newest(names: Sequence[str], most: int) -> str:
    """The newest of these names, at most ``most``, and the number of the others."""
    more = f" {ELLIPSIS} +{len(names) - most}" if len(names) > most else ""
    return f"{', '.join(names[-most:])}{more}"


def _item(state: FileState, words: FixedWords, names: int = 0, lines: int = 0) -> Item:
    """A file with its fate, and at most this many names and lines that its newest edits added or changed."""
    within = [name for name in state.within if name not in state.removed]
    named = (("+", [*state.added]), ("−", [*state.removed]), (words.within, within))
    parts = [f"{sign} {_newest(found, names)}" for sign, found in named if names and found]
    added = f"{words.colon}{' · '.join(parts)}" if parts else ""
    # The subject of a commit already states what is in it.
    is_shown = not (state.commit or state.is_deleted or is_throwaway(state.path))
    if not parts and names > _DETAILS[0][0]:
        lines = max(lines, 1)  # a file without names to show gets a line instead
    most = sorted(state.lines, key=lambda one: _worth(one, state))[-lines:] if lines and is_shown else []
    line = " · ".join(f"`{one}`" for one in state.lines if one in most)
    line = f"{words.colon if not added else ' · '}{line}" if line else ""
    text = f"{state.path} — {state_text(state, words)}{added}{line}"
    return Item(text=text, records=records_of((*map(state.lines.__getitem__, most), *state.records[-1:])))


def _worth(line: str, state: FileState) -> tuple[bool, int, int]:
    """A sort key, highest for the line to show first: code, or the beginning of a sentence, then of the newest edit."""
    is_code, length = line_worth(line)
    is_begun = line[0] != "(" and not line[0].islower()
    is_telling = is_begun if state.path.endswith(PROSE) else is_code and length >= _MIN_TELLING_CHARS
    return is_telling, state.lines[line], length


_MIN_TELLING_CHARS = 16


def _lists(
    label: str, states: Sequence[FileState], budget_tokens: int, token_cache: TokenCache, words: FixedWords
) -> tuple[Item, ...]:
    """Items of at most `_PATHS_PER_LINE` paths each, as many paths as fit; a path that does not fit is passed over."""
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
    """The last known contents of the files changed last: whole where they are short, else changes and signatures."""
    words = analysis.words
    there = [state for state in analysis.files if state.is_changed and not (state.is_deleted or state.moved_to)]
    states = there[: analysis.restore_files]
    found = contents(analysis.operations, [state.path for state in states])
    known = [(state.path, content) for state in states if (content := found.get(state.path)) and content.written]
    costs = [
        token_cache.item(_content(path, content, content.written, words.content, words)) for path, content in known
    ]
    level = water_level(costs, budget_tokens)
    items: list[Item] = []
    for (path, content), cost in zip(known, costs, strict=True):
        if cost <= level:
            label = words.parts if content.text is None else words.content
            items.append(_content(path, content, content.written, label, words))
        elif level >= _MIN_CONTENT_TOKENS and (parts := _parts(path, content, level, token_cache, words)):
            items.append(parts)
    return tuple(items)


def _parts(path: str, content: Content, tokens: int, token_cache: TokenCache, words: FixedWords) -> Item | None:
    """A part of a file that fits: lines of its newest changes, then its signatures. None where not even a line does."""
    changed = "\n".join(reversed(content.parts))
    signatures = (found[0] for found in _SIGNATURE.finditer(content.text or ""))
    known = chain(changed.split("\n"), (line for line in dict.fromkeys(signatures) if line not in changed))
    lines = [line.rstrip() for line in known if line.strip()]
    left = tokens - token_cache.item(_content(path, content, "", words.parts, words)) - 2
    taken: list[str] = []
    for line in lines:
        left -= token_cache.text(f"\n  {line}")
        if left < 0:
            taken.append(ELLIPSIS)
            break
        taken.append(line)
    item = _content(path, content, "\n".join(taken), words.parts, words)
    return item if len(taken) > 1 and token_cache.item(item) <= tokens else None


# `    async def low_tide(self):`, `## Harbours`
_SIGNATURE = re.compile(rf"^ {{0,4}}{MODIFIER}*(?:{DEFINERS}|module|package)\b.*$|^#{{1,3}} .*$", re.MULTILINE)


def _content(path: str, content: Content, text: str, label: str, words: FixedWords) -> Item:
    body = text.rstrip("\n")
    # The template would otherwise take list entries in the content for items of its own.
    if any(line.lstrip().startswith("- ") for line in body.split("\n")):
        body = "\n".join(f"| {line}" for line in body.split("\n"))
    return Item(text=f"{path} — {label}{words.colon.rstrip()}\n{body}".rstrip(), records=records_of(content.records))
