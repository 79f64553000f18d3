"""The result as a drawing: each measure against the budget, a line for each method. SVG, written by hand.

It draws the mean that the tables quote first: micro, all needs of all cuts together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from xml.sax.saxutils import escape

from compactor_cli.evaluate.aggregate import CaseGroup, cell, groups_of, shares
from compactor_cli.evaluate.measures import Measure
from compactor_cli.evaluate.results import DIGEST, EvalResult, label
from compactor_cli.model.settings import Size

PANELS = (Measure.FUR, Measure.PAIRS, Measure.PHRASES, Measure.USER, Measure.RETRIEVAL, Measure.DECISIONS)
PANEL_WIDTH, PANEL_HEIGHT = 300, 210
LEFT, TOP, GAP, LEGEND = 46, 58, 52, 150
LEGEND_CHARS = 18
# Okabe and Ito's palette, which people with any colour vision can distinguish; the digest is black and thick.
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#0072B2", "#D55E00", "#999999", "#B8A800")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """One measure's frame: where it lies, and which budgets it spans."""

    left: float
    top: float
    budgets: tuple[Size, ...]

    def x(self, ratio: float) -> float:
        low, high = log10(self.budgets[0].ratio), log10(self.budgets[-1].ratio)
        return self.left + PANEL_WIDTH * (log10(ratio) - low) / (high - low)

    def y(self, share: float) -> float:
        return self.top + PANEL_HEIGHT * (1 - share)


def write_plot(result: EvalResult, path: str) -> None:
    """Writes the drawing. Raises OSError as the file system does."""
    Path(path).write_text(draw(result), encoding="utf-8")


def draw(result: EvalResult) -> str:
    """The SVG text: micro means of the session cuts, or of the short ones where there are no others.

    Budgets in tokens have no place on an axis of shares. With fewer than two shares there is nothing to draw but
    the legend.
    """
    budgets = tuple(sorted((size for size in result.options.budgets if size.ratio), key=lambda size: size.ratio))
    group = next(groups_of(result.cases), None)
    width = LEFT + 3 * (PANEL_WIDTH + GAP) + LEGEND
    height = TOP + 2 * (PANEL_HEIGHT + GAP)
    box = f'viewBox="0 0 {width} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    if group is not None and len(budgets) > 1:
        parts.append(_text(LEFT, 22, f"Share kept against budget, micro mean · {group.title}", size=15))
        for number, measure in enumerate(PANELS):
            left = LEFT + (number % 3) * (PANEL_WIDTH + GAP)
            panel = _Panel(left=left, top=TOP + (number // 3) * (PANEL_HEIGHT + GAP), budgets=budgets)
            parts += _frame(panel, measure)
            for method in reversed(result.methods):
                parts += _curve(panel, group, result.methods, method, measure)
    parts += _legend(result.methods, LEFT + 3 * (PANEL_WIDTH + GAP) - 16)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _frame(panel: _Panel, measure: Measure) -> Iterator[str]:
    yield _text(panel.left, panel.top - 8, measure.value, size=13)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = panel.y(share)
        yield _line([(panel.left, y), (panel.left + PANEL_WIDTH, y)], "#dddddd", 1)
        yield _text(panel.left - 6, y + 4, f"{100 * share:.0f}", anchor="end")
    for size in panel.budgets:
        yield _text(panel.x(size.ratio), panel.top + PANEL_HEIGHT + 16, label(size), anchor="middle")


def _curve(panel: _Panel, group: CaseGroup, methods: Sequence[str], method: str, measure: Measure) -> Iterator[str]:
    points = []
    for size in panel.budgets:
        found = cell(shares(group.cases, method, label(size), measure))
        if found is not None:
            points.append((panel.x(size.ratio), panel.y(found.micro)))
    if points:
        colour, width = _style(methods, method)
        yield _line(points, colour, width)
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{width + 1}" fill="{colour}"/>' for x, y in points)


def _style(methods: Sequence[str], method: str) -> tuple[str, float]:
    if method == DIGEST:
        return "#000000", 3
    return COLOURS[(methods.index(method) - 1) % len(COLOURS)], 1.5


def _legend(methods: Sequence[str], left: float) -> Iterator[str]:
    for number, method in enumerate(methods):
        y = TOP + 18 * number
        colour, width = _style(methods, method)
        yield _line([(left, y), (left + 22, y)], colour, width)
        yield _text(left + 28, y + 4, method if len(method) <= LEGEND_CHARS else method[: LEGEND_CHARS - 1] + "…")


def _line(points: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
