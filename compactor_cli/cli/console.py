"""Console: what people are shown, on standard error; standard output is left to the data."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SHOWN_ALIKE = 3

_VARYING = re.compile(r"\([^()]*\)|[0-9a-f]{12,}|\d[\d,.]*|“[^”]*”|'[^']*'")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Level(IntEnum):
    """How much is said; each level says what those below it say."""

    NOTHING = -2
    ERRORS = -1
    WARNINGS = 0
    DONE = 1
    WHY = 2


class Color(IntEnum):
    """Colours of a terminal, by their number."""

    RED = 31
    GREEN = 32
    YELLOW = 33
    CYAN = 36


def wants_color(choice: str, stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Whether to colour: ``--color`` decides, then ``NO_COLOR``, then whether it is a terminal that can."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return is_terminal(stream)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether someone looks at this stream; a closed one is none."""
    with contextlib.suppress(ValueError, OSError):
        return stream is not None and stream.isatty()
    return False


def painted(text: str, color: Color, on: bool) -> str:
    """The text in a colour, where colours are on."""
    return f"\x1b[{color.value}m{text}\x1b[0m" if on and text else text


def visible(text: str) -> str:
    """The text with control characters shown as escapes: names in files must not steer a terminal."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def counted(number: int, noun: str) -> str:
    """``1 record``, ``2,000 records``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class Console:
    """Says things on standard error; after the third alike message only counts them.

    ``before_line`` is called before each line (a progress bar makes room).
    """

    def __init__(self, program: str, level: int = Level.WARNINGS, color: str = "auto") -> None:
        self.program = program
        self.level = max(Level.NOTHING, min(Level.WHY, level))
        self.color = wants_color(color, sys.stderr, os.environ)
        self.before_line: Callable[[], object] = lambda: None
        self._alike: Counter[str] = Counter()

    @property
    def watched(self) -> bool:
        """Whether a person sees standard error and has not asked for quiet."""
        return self.level >= Level.WARNINGS and is_terminal(sys.stderr)

    def error(self, text: str) -> None:
        """Something failed."""
        self._say(Level.ERRORS, text, Color.RED)

    def warn(self, text: str) -> None:
        """Something to look at; the work was done."""
        self._say(Level.WARNINGS, text, Color.YELLOW)

    def done(self, text: str, kind: str = "") -> None:
        """What was done: to a terminal always, else with ``-v``. ``kind``: what makes messages alike."""
        if self.watched or self.level >= Level.DONE:
            self._say(Level.WARNINGS, text, Color.GREEN, kind)

    def note(self, text: str) -> None:
        """That nothing needed doing, and the like, with ``-v``."""
        self._say(Level.DONE, text, Color.CYAN)

    def why(self, text: str) -> None:
        """Background, with ``-vv``."""
        self._say(Level.WHY, text, Color.CYAN)

    def finish(self) -> None:
        """Say how many alike messages were left out."""
        for kind, count in self._alike.items():
            if count > SHOWN_ALIKE and self.level < Level.DONE:
                _write(f"{self.program}: and {count - SHOWN_ALIKE:,} more like: {kind}\n")
        self._alike.clear()

    def _say(self, level: Level, text: str, color: Color, kind: str = "") -> None:
        if self.level < level:
            return
        kind = kind or _VARYING.sub("…", text.split(": ", 1)[-1])
        self._alike[kind] += 1
        if self._alike[kind] <= SHOWN_ALIKE or self.level >= Level.DONE:
            self.before_line()
            _write(f"{painted(self.program, color, self.color)}: {visible(text)}\n")


def _write(text: str) -> None:
    """To standard error; nobody can be told that it is closed."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()
