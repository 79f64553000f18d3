"""Text scan: a text looked through in bounded steps, which are counted.

Whoever looks for secrets looks at a window of a fixed length from each place where a literal stands, and goes on after
what it found. What lies far ahead (a closing quote) is looked for once, not from every place again. So the work
is proportional to the length of the text, whatever stands in it; ``steps`` is an upper bound of it in characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Found = tuple[int, int, str]  # start, stop, kind


class Scan:
    """One text. ``lowered`` has the same offsets as ``text``. ``steps``: characters looked at, literals aside."""

    def __init__(self, text: str) -> None:
        self.text = text
        lowered = text.lower()
        # İ is the one letter that grows.
        self.lowered = lowered if len(lowered) == len(text) else text.replace("İ", "I").lower()
        self.steps = 0
        self._next: dict[str, tuple[int, int]] = {}

    def hits(self, literal: str, *, lowered: bool = False) -> Iterator[int]:
        """Where a literal stands."""
        text = self.lowered if lowered else self.text
        at = text.find(literal)
        while at >= 0:
            self.steps += len(literal)
            yield at
            at = text.find(literal, at + 1)

    def match(self, pattern: re.Pattern[str], at: int, most: int, failing: int = 0) -> re.Match[str] | None:
        """The pattern matched at a place, within ``most`` characters; where it fails it has looked at ``failing``."""
        found = pattern.match(self.text, at, at + most)
        self.steps += found.end() - at if found else failing or most
        return found

    def search(self, pattern: re.Pattern[str], at: int, most: int) -> re.Match[str] | None:
        """The pattern searched for from a place on, within ``most`` characters."""
        found = pattern.search(self.text, at, at + most)
        self.steps += (found.end() if found else min(len(self.text), at + most)) - at
        return found

    def line_from(self, at: int, most: int) -> str:
        """The rest of the line, at most so long."""
        end = self.next_of("\n", at)
        stop = min(end if end >= 0 else len(self.text), at + most)
        self.steps += stop - at
        return self.text[at:stop]

    def next_of(self, literal: str, at: int) -> int:
        """Where the literal next stands; -1: nowhere. Asked from rising places, all answers together take one pass."""
        start, found = self._next.get(literal, (0, -2))
        if found != -2 and start <= at and (found == -1 or at <= found):
            return found
        found = self.text.find(literal, at)
        self.steps += (found if found >= 0 else len(self.text)) - at
        self._next[literal] = (at, found)
        return found

    def closing(self, quote: str, at: int, most: int) -> int:
        """Where the quotation ends that ``quote`` (with its backslashes) opened before ``at``; -1: not in this line."""
        limit = min(len(self.text), at + most)
        line = self.next_of("\n", at)
        limit = min(limit, line) if line >= 0 else limit
        end = self.next_of(quote, at)
        for _ in range(4):
            if not 0 <= end < limit:
                return -1
            if end == at or self.text[end - 1] != "\\":
                return end
            end = self.next_of(quote, end + 1)
        return -1
