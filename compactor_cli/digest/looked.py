"""Looked at: of the lines of files, listings and searches, those that have to do with what is under way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from math import fsum, log
from typing import TYPE_CHECKING

from compactor_cli.digest.failures import is_open
from compactor_cli.digest.language import is_term
from compactor_cli.digest.noise import DEFINERS, MODIFIER
from compactor_cli.digest.open import State
from compactor_cli.digest.wants import newest_request

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# A line that shares nothing with the work is worth 1. What is added for each word that few lines have, and for a line
# that defines something; none is worth more than this.
SHARED, DEFINES = 1.0, 2.0
MAX_WORTH = 4.0
# A word in a larger share of the lines tells none of them from the others.
_MAX_SHARE = 0.03
_MIN_LINES = 5
# How many characters of a request, and of what was said last, are looked at.
_MAX_CHARS = 4_000
_BEGINNING = 5
_MOST_REMEMBERED = 1 << 16
# That it begins with a letter or a digit is seen before any of the ways in which it may go on is tried.
_WORD = re.compile(r"(?=[^\W_])(?:[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d{3,}|[^\W\d_]{2,})")
# Before it, where a search found it: `src/clock.py:12:`.
_DEFINES = re.compile(
    rf"(?:[\w./@+-]++:)?(?:\d+[:-]\s*)?{MODIFIER}*(?:{DEFINERS}|module)\s+[\w$(*]"
    rf"|export (?:default )?(?:const|let|var) |(?:CREATE|create) (?:TABLE|table) "
)


def defines(line: str) -> bool:
    """Whether a line of code declares something that is used by its name."""
    return _DEFINES.match(line) is not None


class UnderWay:
    """How much of what is under way a line shares, by words that few of the ``lines`` have.

    Under way is what the user asked last, the open steps, what fails, and what the assistant said last.
    """

    def __init__(self, analysis: Analysis, lines: Iterable[str]) -> None:
        self._wanted = set(_parts("\n".join(_texts(analysis)))) - {""}
        # `intersection` makes no set of the line itself, which would hold ten times as much.
        wanted = self._wanted.intersection
        self._shared = {line: wanted(_parts(line)) for line in lines}
        times, number = Counter(chain.from_iterable(self._shared.values())), len(self._shared) + 1
        most = max(_MIN_LINES, int(_MAX_SHARE * number))
        self._worth = {word: log(number / many) / log(number) for word, many in times.items() if many <= most}

    def worth(self, line: str) -> float:
        """A factor for a line: more than 1 where it shares what few lines have."""
        words = self._shared[line] if line in self._shared else self._wanted.intersection(_parts(line))
        shared = fsum([self._worth[word] for word in words if word in self._worth])
        return min(MAX_WORTH, 1.0 + SHARED * shared + (DEFINES if defines(line) else 0.0))


def _texts(analysis: Analysis) -> Iterable[str]:
    newest, events = newest_request(analysis), analysis.events
    last = max(analysis.finals, default=-1)
    steps = (todo.text for todo in analysis.plan.todos if todo.state is not State.DONE)
    failing = (f"{error.command}\n{error.line}" for error in analysis.errors if is_open(error, len(events)))
    asked = (newest.text[:_MAX_CHARS],) if newest else ()
    return chain(asked, steps, failing, (events[last].text[-_MAX_CHARS:],) if last >= 0 else ())


class _Beginnings(dict[str, str]):
    """How a word begins, empty where it carries no meaning; worked out once for the transcripts of a batch."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        lowered = word.lower()
        found = self[word] = lowered[:_BEGINNING] if is_term(lowered) else ""
        return found


_beginnings = _Beginnings()


def _parts(text: str) -> Iterator[str]:
    """How the words of a text begin, those within names too."""
    return map(_beginnings.__getitem__, _WORD.findall(text))
