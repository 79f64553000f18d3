"""Rewrites: writings of whole files that were there before, as records show it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from compactor_cli.digest.events import REPORTING_TOOLS, Event, EventKind, FileAction, ToolKind, command_of, short_name
from compactor_cli.digest.files import FileOperation, is_search

# A command that lists files, those that git knows among them, and one that takes changes into a commit or away.
_LISTS = re.compile(r"\b(?:rg|grep|find|fd|git\b[^|;&]*? (?:ls-files|status|diff))\b")
_TAKES = re.compile(r"\bgit\b[^|;&\n]*? (?:add|commit|stash|rm|mv|merge|rebase|pull|checkout|reset)\b")
# A path alone on its line, as git's status names it, and before the place of a hit.
_LISTED = re.compile(
    r"^(?:\?\? |[ MARU]{2} |\t(?:modified|renamed): +)?(?:\./)?(?P<path>[\w.@+-][\w./@+()\[\]-]*)(?=:\d+[:-]|$)",
    re.MULTILINE,
)
# What git knows and sees changed, with the object that was there.
_TRACKED = re.compile(
    r"^(?: M |MM |\tmodified: +)(?P<path>\S+)$|^diff --git a/(?P<other>\S+) .*\nindex [0-9a-f]+\.\.", re.MULTILINE
)


def with_rewrites(operations: Sequence[FileOperation], events: Sequence[Event]) -> Iterator[FileOperation]:
    """The operations, each creation of a file that was there marked as a rewrite.

    It was there where something was done with it or a search listed it before, where the same call deletes it, or
    where git sees it changed next, and nothing had been staged since.
    """
    if not any(one.action is FileAction.CREATE for one in operations):
        yield from operations
        return
    is_tracked, listings = _tracked(events), _listings(events)
    listed = next(listings, None)
    there, deleted = set[str](), dict[str, int]()
    for one in operations:
        while listed and listed[0] < one.event:
            there.update(listed[1])
            listed = next(listings, None)
        if one.action is FileAction.CREATE:
            is_there = one.path in there or deleted.get(one.path) == one.event or is_tracked(one.path, one.event)
            one = replace(one, is_rewrite=is_there)
        yield one
        if one.action is FileAction.DELETE:
            there.discard(one.path)
            deleted[one.path] = one.event
        else:
            there.add(one.target or one.path)


def _listings(events: Sequence[Event]) -> Iterator[tuple[int, list[str]]]:
    """The paths that each search, and each command that lists files, showed, by where its result stands."""
    for number, event in enumerate(events):
        call = events[event.call] if event.kind is EventKind.RESULT and event.call >= 0 else None
        if call and (_LISTS.search(command_of(call.arguments)) if call.tool is ToolKind.COMMAND else is_search(call)):
            yield number, [found["path"] for found in _LISTED.finditer(event.text)]


def _tracked(events: Sequence[Event]) -> Callable[[str, int], bool]:
    """Whether git, asked next, sees a file changed that was there, and nothing was staged since an event.

    What a subagent does in between may be a commit.
    """
    seen: list[tuple[int, set[str]]] = []
    taken: list[int] = []
    for number, event in enumerate(events):
        call = events[event.call] if event.call >= 0 else event
        if call.tool is not ToolKind.COMMAND:
            taken += [number] if call.name and short_name(call.name) in REPORTING_TOOLS else []
        elif event.kind is EventKind.CALL and _TAKES.search(command_of(call.arguments)):
            taken.append(number)
        elif event.kind is EventKind.RESULT and (found := _TRACKED.findall(event.text)):
            seen.append((number, {path or other for path, other in found}))

    def is_tracked(path: str, event: int) -> bool:
        until = taken[at] if (at := bisect_right(taken, event)) < len(taken) else len(events)
        first = bisect_right(seen, event, key=itemgetter(0))
        return any(path in paths for number, paths in seen[first : first + _MAX_SEEN] if number < until)

    return is_tracked


_MAX_SEEN = 20
