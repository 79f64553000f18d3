"""Where a piece of text stands in a longer one, in time that does not grow with the longer one."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Letters or digits up to something else, and how many of them tell one from the others.
_RUN = re.compile(r"[^\W\d_]+|\d+")
_KEY_CHARS = 4
# Through less text, and up to this many times, a search costs less than an index of the text.
_LEAST_INDEXED_CHARS = 1 << 15
_MOST_SEARCHES = 256


class TextSearch:
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
