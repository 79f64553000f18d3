"""Tables for people: columns as wide as what stands in them."""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from compactor_cli.cli.console import visible

# So much of a clipped path is always shown.
LEAST_CLIPPED = 24


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The rows under their heads; numbers right, everything else left. Ends with a line feed."""
    texts = [list(head), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(_width(row[column]) for row in texts) for column in range(len(head))]
    right = [bool(rows) and all(_is_number(row[column]) for row in rows) for column in range(len(head))]
    lines = (
        "  ".join(_padded(cell, width, side) for cell, width, side in zip(row, widths, right, strict=True))
        for row in texts
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def fitted_table(
    head: Sequence[str], rows: Sequence[Sequence[object]], columns: int, *, optional: Sequence[str]
) -> str:
    """The table in at most this many columns of a terminal (0: as wide as it is), as far as its numbers allow.

    The last column gives room first, down to `LEAST_CLIPPED`; then the ``optional`` ones go, by name and in this order.
    """
    going = list(optional)
    while True:
        texts = [_text(row[-1]) for row in rows]
        most = max(map(_width, texts), default=0)
        widest = max(map(_width, table(head, rows).splitlines()))
        least = min(most, LEAST_CLIPPED)
        room = most - (widest - columns)
        if not columns or widest <= columns:
            return table(head, rows)
        if room >= least or not going:
            return table(
                head, [(*row[:-1], clipped(text, max(room, least))) for row, text in zip(rows, texts, strict=True)]
            )
        at = head.index(going.pop(0))
        head = [*head[:at], *head[at + 1 :]]
        rows = [(*row[:at], *row[at + 1 :]) for row in rows]


def terminal_columns() -> int:
    """The width of the terminal that is written to, or ``COLUMNS``; 0 where there is neither."""
    return shutil.get_terminal_size((0, 0)).columns


def home_path(path: str) -> str:
    """The path with ``~`` for the user's home."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}{os.sep}") else path


def clipped(text: str, most_columns: int) -> str:
    """The text, or its end after an ellipsis: of a path the end says most."""
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


def _is_number(cell: object) -> bool:
    return cell is None or isinstance(cell, int | float) or str(cell).endswith("%")


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


def _width(text: str) -> int:
    """Columns of a terminal: wide characters take two, marks on the one before take none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
