"""Console: messages for people, on standard error; standard output is left to the data."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Never, TextIO

from compactor_cli.model.report import BytesRead, Event, InputEnded

if TYPE_CHECKING:
    from tqdm import tqdm


SHOWN_ALIKE = 3  # messages of a kind that are printed; others are counted

# What differs between messages of one kind: `(3 of 7)`, `0123456789ab`, `1,024`, `“tide”`, `'tide'`
_VARYING = re.compile(r"\([^()]*\)|[0-9a-f]{12,}|\d[\d,.]*|“[^”]*”|'[^']*'")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Level(IntEnum):
    """How much is printed; each level includes those below it."""

    NOTHING = -2
    ERRORS = -1
    WARNINGS = 0
    DONE = 1
    WHY = 2


class Color(IntEnum):
    """Colours of a terminal, with their numbers."""

    RED = 31
    GREEN = 32
    YELLOW = 33
    CYAN = 36


def wants_color(choice: str, stream: TextIO | None) -> bool:
    """Whether to use colours, by the option, then by ``NO_COLOR``, then by whether the stream is a capable terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return is_terminal(stream)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal; a closed one is not."""
    with contextlib.suppress(ValueError, OSError):
        return stream is not None and stream.isatty()
    return False


def painted(text: str, color: Color, on: bool) -> str:
    """The text in a colour if colours are on."""
    return f"\x1b[{color.value}m{text}\x1b[0m" if on and text else text


def visible(text: str) -> str:
    """The text with control characters as escapes, so that text from files cannot control a terminal."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shell_word(name: str) -> str:
    """The name of a file quoted for a shell, in printable characters."""
    if name.isprintable():
        import shlex

        return shlex.quote(name)
    shown = ""
    for char in name:
        is_plain = char.isprintable() and char not in "\\'"
        shown += char if is_plain else "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))
    return f"$'{shown}'"


def counted(number: int, noun: str) -> str:
    """``1 record``, ``2,000 records``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class Console:
    """Prints messages on standard error; after the third of a kind, it only counts them."""

    def __init__(self, program: str, level: int = Level.WARNINGS, color: str = "auto") -> None:
        self.program = program
        self.level = max(Level.NOTHING, min(Level.WHY, level))
        self.color = wants_color(color, sys.stderr)
        self.before_line: Callable[[], object] = lambda: None  # called before each message: a progress bar is cleared
        self._alike: Counter[str] = Counter()

    @property
    def watched(self) -> bool:
        """Whether standard error is a terminal, and messages are not turned off."""
        return self.level >= Level.WARNINGS and is_terminal(sys.stderr)

    def progress(self, label: str, total: int, unit: str) -> Progress:
        """A progress bar, which is shown where messages are watched, and cleared before each of them."""
        bar = Progress(label=label, total=total, unit=unit, shown=self.watched)
        self.before_line = bar.make_room
        return bar

    def error(self, text: str) -> None:
        """Print an error: something failed."""
        self._say(Level.ERRORS, text, Color.RED)

    def warn(self, text: str) -> None:
        """Print a warning: the work was done, but something should be looked at."""
        self._say(Level.WARNINGS, text, Color.YELLOW)

    def done(self, text: str, kind: str = "") -> None:
        """Print what was done: always on a terminal, else with ``-v``. ``kind`` groups messages for counting."""
        if self.watched or self.level >= Level.DONE:
            self._say(Level.WARNINGS, text, Color.GREEN, kind)

    def note(self, text: str) -> None:
        """Print a minor message, as that nothing needed doing; only with ``-v``."""
        self._say(Level.DONE, text, Color.CYAN)

    def why(self, text: str) -> None:
        """Print background; only with ``-vv``."""
        self._say(Level.WHY, text, Color.CYAN)

    def finish(self) -> None:
        """Print how many messages of a kind were left out."""
        for kind, count in self._alike.items():
            if count > SHOWN_ALIKE and self.level < Level.DONE:
                _write(f"{self.program}: and {count - SHOWN_ALIKE:,} more like (-v names each): {kind}\n")
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
    """Write to standard error; if that fails, there is no place to report it."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


def print_quoted(text: str) -> None:
    """Print text from transcripts on standard output; lone surrogates, which UTF-8 cannot encode, become ``?``."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


AFTER_SECONDS = 1.0  # a progress bar is shown only if the work takes longer


class Progress(contextlib.AbstractContextManager["Progress"]):
    """A listener that shows progress: bytes read (``unit`` B) or inputs done (``file``) of ``total`` (0: unknown)."""

    def __init__(self, *, label: str, total: int, unit: str, shown: bool) -> None:
        self._label = label
        self._total = total
        self._unit = unit
        self._shown = shown
        self._count = 0
        self._started = time.monotonic()
        self._bar: tqdm[Never] | None = None

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, event: Event, /) -> None:
        """Count an event."""
        if self._unit == "B" and isinstance(event, BytesRead):
            self.advance(event.size_bytes)
        elif self._unit == "file" and isinstance(event, InputEnded):
            self.advance(1)

    def advance(self, count: int) -> None:
        """Add to what is done."""
        self._count += count
        if not self._shown:
            return
        if self._bar is not None:
            self._bar.update(count)
        elif time.monotonic() - self._started > AFTER_SECONDS:
            from tqdm import tqdm

            # tqdm's monitor is a thread, and a process with threads should not be forked.
            tqdm.monitor_interval = 0
            shown: dict[str, Any] = {"desc": self._label, "unit": self._unit, "unit_scale": self._unit == "B"}
            self._bar = tqdm(total=self._total or None, initial=self._count, leave=False, disable=None, **shown)

    def make_room(self) -> None:
        """Clear the bar, before something else is written to the terminal."""
        if self._bar is not None:
            self._bar.clear()


LEAST_CLIPPED = 24  # columns of a clipped path, at least


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The rows under their heads, numbers flush right and all else flush left; ends with a line feed."""

    def is_number(cell: object) -> bool:
        return cell is None or isinstance(cell, int | float) or str(cell).endswith("%")

    texts = [list(head), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(_width(row[column]) for row in texts) for column in range(len(head))]
    right = [bool(rows) and all(is_number(row[column]) for row in rows) for column in range(len(head))]
    lines: list[str] = []
    for row in texts:
        blanks = [" " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = (b + c if is_right else c + b for b, c, is_right in zip(blanks, row, right, strict=True))
        lines.append(f"{'  '.join(cells).rstrip()}\n")
    return "".join(lines)


def table_width(head: Sequence[str], rows: Sequence[Sequence[object]]) -> int:
    """The columns of a terminal that the table takes."""
    return max(map(_width, table(head, rows).splitlines()))


def fitted_table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    columns: int,
    *,
    optional: Sequence[str] = (),
    clip: int = -1,
    least_clipped: int = LEAST_CLIPPED,
) -> str:
    """The table in at most this many columns of a terminal (0: no limit), as far as its numbers allow.

    The column ``clip`` is clipped first, down to ``least_clipped``; then the ``optional`` columns, given by name, are
    left out in their order: with any, ``clip`` counts from the end.
    """
    going = list(optional)
    while True:
        texts = [_text(row[clip]) for row in rows]
        most = max(map(_width, texts), default=0)
        widest = table_width(head, rows)
        if not columns or widest <= columns:
            return table(head, rows)
        least = min(most, least_clipped)
        room = most - (widest - columns)
        if room >= least or not going:
            cut = (clipped(text, max(room, least)) for text in texts)
            return table(head, [(*row[:clip], text, *row[clip:][1:]) for row, text in zip(rows, cut, strict=True)])
        at = head.index(going.pop(0))
        head = [*head[:at], *head[at + 1 :]]
        rows = [(*row[:at], *row[at + 1 :]) for row in rows]


def terminal_columns() -> int:
    """The width of the terminal, or ``COLUMNS``; 0 if there is neither."""
    # Imported here, as it is slow and most runs print no table.
    from shutil import get_terminal_size

    return get_terminal_size((0, 0)).columns


def home_path(path: str) -> str:
    """The path with ``~`` for the user's own folder."""
    home = os.path.expanduser("~")  # noqa: PTH111 -- as it is where there is none
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}{os.sep}") else path


def beginning(text: str, most_chars: int) -> str:
    """The text, or its beginning with an ellipsis if it is longer."""
    return text if len(text) <= most_chars else f"{text[: most_chars - 1]}…"


def clipped(text: str, most_columns: int) -> str:
    """The text, or its end with an ellipsis if it is wider: the end of a path matters most."""
    text = visible(text)
    if _width(text) <= most_columns:
        return text
    while _width(text) > most_columns - 1:
        text = text[1:]
    return f"…{text}"


def _text(cell: object) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    return "–" if cell is None else visible(str(cell))


def _width(text: str) -> int:
    """The columns of a text on a terminal: wide characters take two, combining marks take none."""
    if text.isascii():
        return len(text)
    shown = (character for character in text if not unicodedata.combining(character))
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in shown)
