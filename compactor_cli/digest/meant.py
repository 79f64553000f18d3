"""Meant: of several things that were shown, those that the conversation goes on with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from compactor_cli.digest.events import Event, EventKind, is_lookup, is_service_call, parameters

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# What something that was not meant is worth against what was.
UNMEANT_FACTOR = 0.3
# What somebody gave to one thing of many: letters with digits, or many digits.
_ID = re.compile(r"(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{4,24}|\d{5,24}")


def ids_of(text: str) -> frozenset[str]:
    """The ids that a text names."""
    return frozenset(_ID.findall(text))


class Meant:
    """Which ids somebody goes on with, in the records that stay after the summary too.

    The user means what he names or points at, a call that acts what it is called with.
    """

    def __init__(self, analysis: Analysis) -> None:
        self._used: dict[str, int] = {}
        self._named: dict[str, int] = {}
        pointed = {message.record: message.points_at for message in analysis.messages}
        for event in chain(analysis.events, analysis.kept) if analysis.is_dialogue else ():
            acts = is_service_call(event) and not is_lookup(event.name)
            is_used = acts or event.kind is EventKind.USER
            if is_used or event.kind is EventKind.ASSISTANT:
                found = ids_of(f"{event.text} {pointed.get(event.record, '')}")
                self._named.update(dict.fromkeys(found, event.record))
                self._used.update(dict.fromkeys(found, event.record) if is_used else {})

    def weights(self, texts: Sequence[str], record: int) -> list[float]:
        """What each of several things is worth: less than 1 where after a record others of them are meant."""
        if not self._used:
            return [1.0] * len(texts)
        found = [ids_of(text) for text in texts]
        common = frozenset.intersection(*found) if found else frozenset()
        return self._weights((ids - common, record) for ids in found)

    def looked_up(self, calls: Iterable[Event]) -> dict[int, float]:
        """What each of several look-ups by one tool is worth, by the record of its call.

        It is less than 1 where nobody speaks any more of what it was called with, and of that of others somebody does.
        """
        asked = [
            (call.record, frozenset().union(*(ids_of(v) for _, v in parameters(call.arguments)))) for call in calls
        ]
        named = [(record, ids) for record, ids in asked if ids]
        return dict(zip((r for r, _ in named), self._weights(((i, r) for r, i in named), by_anybody=True), strict=True))

    def _weights(self, things: Iterable[tuple[frozenset[str], int]], *, by_anybody: bool = False) -> list[float]:
        last = (self._named if by_anybody else self._used).get
        are_meant = [any(last(one, -1) > record for one in ids) for ids, record in things]
        return [1.0 if is_meant or not any(are_meant) else UNMEANT_FACTOR for is_meant in are_meant]
