"""Fixed-width columns, and how figures are written in them."""

from __future__ import annotations

from collections.abc import Sequence

from compactor_cli.evaluate.aggregate import ScoreCell
from compactor_cli.evaluate.bootstrap import Difference

NOTHING = "-"


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns of equal width, the first flush left, the others flush right; a rule under the first row."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    head, *body = rows
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([_line(head, widths), rule, *(_line(row, widths) for row in body)])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    rest = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join([row[0].ljust(widths[0]), *rest]).rstrip()


def percent(ratio: float) -> str:
    """A share in per cent, without the sign."""
    return f"{100 * ratio:.1f}"


def figure(found: ScoreCell | None) -> str:
    """``micro/macro±error`` in per cent; no error where there is one session."""
    if found is None:
        return NOTHING
    error = f"±{percent(found.macro.error)}" if found.macro.sessions > 1 else ""
    return f"{percent(found.micro)}/{percent(found.macro.value)}{error}"


def change(difference: Difference | None) -> str:
    """``+12.3 [+8.1,+16.0]**`` in points, with stars for p below 0.05 and 0.01."""
    if difference is None:
        return NOTHING
    stars = "**" if difference.p < 0.01 else "* " if difference.p < 0.05 else "  "
    value, low, high = (f"{100 * number:+.1f}" for number in (difference.value, difference.low, difference.high))
    return f"{value} [{low},{high}]{stars}"
