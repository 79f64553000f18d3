"""Where a piece of text stands in a longer one, in time that does not grow with the longer one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compactor_cli.digest.events import Event
from compactor_cli.digest.lines import Lines

# Up to here a search costs less than a map of the lines, for which time and memory go at first use.
_MOST_SEARCHED_CHARS = 1 << 16
# Letters or digits up to something else, and how many of them tell one from the others.
_RUN = re.compile(r"[^\W\d_]+|\d+")
_KEY_CHARS = 4
# Through less text, and up to so many times, a search costs less than an index of the text.
_LEAST_INDEXED_CHARS = 1 << 15
_MOST_SEARCHES = 256


class Places:
    """Where the distinct lines of a scan stand in its events."""

    def __init__(self, events: Sequence[Event], lines: Lines) -> None:
        self._events = events
        self._lines = lines
        self._mapped: dict[int, dict[int, int]] = {}

    def of(self, line: str, event: int) -> int:
        """The first place of a line that the event holds; in a very long event, the first as a whole line."""
        text = self._events[event].text
        if len(text) <= _MOST_SEARCHED_CHARS:
            return max(0, text.find(line))
        if event not in self._mapped:
            self._mapped[event] = self._map(text)
        return self._mapped[event].get(self._lines.numbers[line], 0)

    def _map(self, text: str) -> dict[int, int]:
        """The places of the lines of a text, by the number of the line."""
        places: dict[int, int] = {}
        at = 0
        for raw in text.split("\n"):
            if (number := self._lines.numbers.get(raw.strip())) is not None:
                places.setdefault(number, at + len(raw) - len(raw.lstrip()))
            at += len(raw) + 1
        return places


class Told:
    """A text that is asked for many others: ``piece in told`` is ``piece in text``."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._asked = 0
        self._places: dict[str, list[int]] = {}

    def __contains__(self, piece: str) -> bool:
        self._asked += 1
        if self._asked <= _MOST_SEARCHES or len(self._text) < _LEAST_INDEXED_CHARS:
            return piece in self._text
        if not self._places:
            self._index()
        anchors = [(self._places.get(run[0][:_KEY_CHARS], ()), run.start()) for run in _anchors(piece)]
        if not anchors:
            return piece in self._text
        places, shift = min(anchors, key=lambda anchor: len(anchor[0]))
        return any(self._text.startswith(piece, at - shift) for at in places if at >= shift)

    def _index(self) -> None:
        for run in _RUN.finditer(self._text):
            self._places.setdefault(run[0][:_KEY_CHARS], []).append(run.start())


def _anchors(piece: str) -> Iterator[re.Match[str]]:
    """The runs of a piece that begin, and have the same key, in every text that holds it."""
    for run in _RUN.finditer(piece):
        if run.start() > 0 and (run.end() < len(piece) or len(run[0]) >= _KEY_CHARS):
            yield run
