"""The result of an evaluation as text, as JSON and as a drawing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import log10
from typing import Any
from xml.sax.saxutils import escape

from compactor_cli.evaluate import run_eval
from compactor_cli.evaluate.cuts import CutProtocol
from compactor_cli.evaluate.measures import Measure, Share
from compactor_cli.evaluate.methods import Carry
from compactor_cli.evaluate.run_eval import CaseGroup, EvalResult, budgets_of, cell, groups_of, label, shares, used
from compactor_cli.model.settings import Size
from compactor_cli.model.value import dataclass

NOTHING = "-"


def columns(rows: Sequence[Sequence[str]]) -> str:
    """The rows as a table: the first column flush left, the others flush right, and a rule under the first row."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines: list[str] = []
    for row in rows:
        rest = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([lines[0], rule, *lines[1:]])


def percent(ratio: float) -> str:
    """A share in per cent, without the sign."""
    return f"{100 * ratio:.1f}"


def mean(values: Iterable[float]) -> float:
    """The mean; 0 if there are no values."""
    every = list(values)
    return sum(every) / len(every) if every else 0.0


def figure(found: run_eval.ScoreCell | None) -> str:
    """``micro/macro±error`` in per cent; without the error if there is only one session."""
    if found is None:
        return NOTHING
    error = f"±{percent(found.error)}" if found.sessions > 1 else ""
    return f"{percent(found.micro)}/{percent(found.macro)}{error}"


def change(difference: run_eval.Difference | None) -> str:
    """``+12.3 [+8.1,+16.0]**`` in points, with stars for p below 0.05 and 0.01."""
    if difference is None:
        return NOTHING
    stars = "**" if difference.p < 0.01 else "* " if difference.p < 0.05 else "  "
    value, low, high = (f"{100 * number:+.1f}" for number in (difference.value, difference.low, difference.high))
    return f"{value} [{low},{high}]{stars}"


_DRIFT_MEASURES = (Measure.FUR, Measure.PAIRS, Measure.PHRASES, Measure.USER, Measure.EDITED)


def gate_table(result: EvalResult) -> str:
    """How many digests failed each gate, and the worst value; empty if there are none."""
    gates = [gate for case in result.cases for gate in case.gates.values()]
    if not gates:
        return ""
    most_used = percent(max(gate.budget_ratio for gate in gates))
    invented, malformed = [len(gate.invented) for gate in gates], [len(gate.malformed) for gate in gates]
    checks = [
        ("budget", [gate.budget_ratio > 1 for gate in gates], f"{most_used} %"),
        ("invented atoms", list(map(bool, invented)), str(max(invented))),
        ("structure", list(map(bool, malformed)), str(max(malformed))),
    ]
    if repeats := [case.repeat for case in result.cases if case.repeat]:
        checks.append(("same text again", [not item.is_same for item in repeats], ""))
    rows = [["gate", "digests", "broken", "worst"]]
    rows += ([name, str(len(broken)), str(sum(broken)), worst] for name, broken, worst in checks)
    if repeats:
        kept = percent(mean(item.kept_ratio for item in repeats))
        rows.append([f"atoms kept by an update with nothing new: {kept} %", str(len(repeats)), NOTHING, NOTHING])
    return columns(rows)


def drift_table(result: EvalResult) -> str:
    """What is left after each number of updates, with the state or only the text carried; empty if not measured."""
    rows = [["drift of the digest", "rounds", "cuts", *_DRIFT_MEASURES]]
    for protocol, carry, rounds in product(CutProtocol, Carry, result.options.rounds):
        points = [
            (case.session, point.shares)
            for case in result.cases
            for point in case.drift
            if case.protocol == protocol and point.carry is carry and point.rounds == rounds
        ]
        measured = [
            cell((session, shares[measure]) for session, shares in points if shares[measure].total)
            for measure in _DRIFT_MEASURES
        ]
        if points:
            rows.append([f"{protocol} cuts, {carry} carried", str(rounds), str(len(points)), *map(figure, measured)])
    at = f"at {label(result.options.drift_budget)} of the middle"
    return f"{at}\n\n{columns(rows)}" if len(rows) > 1 else ""


_FIRST_ARTEFACT = tuple(Measure).index(Measure.EDITED)
RECALL, ARTEFACTS = tuple(Measure)[:_FIRST_ARTEFACT], tuple(Measure)[_FIRST_ARTEFACT:]
_MOST_TELLING = (Measure.FUR, Measure.PAIRS, Measure.PHRASES, Measure.USER, Measure.RETRIEVAL)
_COMPARED = (*_MOST_TELLING, Measure.CHAT)
_BY_DIALECT = (*_MOST_TELLING, Measure.EDITED, Measure.READ, Measure.CHAT)
_NOTE = """\
Cells: micro %/macro % ± standard error over sessions; - nothing to measure. Every method has the same budget in tokens,
its frame (preface and marker) paid from it; used: the mean share of the rest that was taken. The measures are read
together: bare-list is a probe that wins FUR and carries no information."""
_BOOTSTRAP = "paired bootstrap over sessions, points of the macro mean, 95 % interval; * p < 0.05, ** p < 0.01"


def render_table(result: EvalResult) -> str:
    """The whole report. Ends with a line break."""
    files = sum(bool(file.cases) for file in result.files)
    head = f"{len(result.cases)} cuts of {files} files, {len(result.files) - files} skipped"
    blocks = [f"{head}; {result.token_method}", _NOTE]
    groups = list(groups_of(result.cases))
    for group in groups:
        blocks += _group_blocks(result, group) if group.dialect == run_eval.TOTAL else ()
    rows = [["digest by dialect", "cuts", "at", *_BY_DIALECT]]
    dialects = [group for group in groups if group.dialect != run_eval.TOTAL]
    for group in dialects:
        for budget in _shares_only(budgets_of(result, group.cases)):
            name = f"{group.dialect} ({group.protocol})"
            rows.append([name, str(len(group.cases)), budget, *_cells(group, run_eval.DIGEST, budget, _BY_DIALECT)])
    blocks += [columns(rows) if len(dialects) > 1 else "", drift_table(result), gate_table(result)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _group_blocks(result: EvalResult, group: CaseGroup) -> Iterator[str]:
    yield f"== {group.title}"
    for measures in (RECALL, ARTEFACTS):
        if measured := [measure for measure in measures if _is_measured(group, measure)]:
            rows = [["method", "at", *measured, "used"]]
            for budget in budgets_of(result, group.cases):
                for method in result.methods:
                    cells = _cells(group, method, budget, measured)
                    rows.append([method, budget, *cells, f"{used(group.cases, method, budget)[0]:.2f}"])
            yield columns(rows)
    if len(result.methods) > 1:
        compared = [measure for measure in _COMPARED if _is_measured(group, measure)]
        rows = [["digest minus", "at", *compared]]
        for budget in _shares_only(budgets_of(result, group.cases)):
            found = run_eval.differences(result, group, budget)
            for method in result.methods[1:]:
                rows.append([method, budget, *(change(found.get((method, measure))) for measure in compared)])
        yield f"{_BOOTSTRAP}\n\n{columns(rows)}"


def _is_measured(group: CaseGroup, measure: Measure) -> bool:
    return any(score.shares[measure].total for case in group.cases for score in case.scores)


def _cells(group: CaseGroup, method: str, budget: str, measures: Sequence[Measure]) -> list[str]:
    return [figure(cell(shares(group.cases, method, budget, measure))) for measure in measures]


def _shares_only(budgets: Sequence[str]) -> Sequence[str]:
    """The budgets that are shares of the middle, or all if there are none: to keep long tables short."""
    return [budget for budget in budgets if budget.endswith("%")] or budgets


_DIGITS = 6


def to_json(result: EvalResult) -> dict[str, Any]:
    """Plain values for a JSON encoder. The same result gives the same document."""
    budgets = {"budgets": [label(size) for size in result.options.budgets]}
    options = {**dataclasses.asdict(result.options), **budgets, "drift_budget": label(result.options.drift_budget)}
    # The number of processes is not part of the result.
    del options["jobs"]
    return {
        "options": options,
        "methods": list(result.methods),
        "tokens": result.token_method,
        "gates_hold": result.gates_hold,
        "groups": [_group(result, group) for group in groups_of(result.cases)],
        "cases": [_case(case) for case in result.cases],
        "skipped": {file.path: file.skipped for file in result.files if file.skipped},
    }


def _group(result: EvalResult, group: CaseGroup) -> dict[str, Any]:
    figures = []
    for budget, method in product(budgets_of(result, group.cases), result.methods):
        measured: dict[str, Any] = {}
        for measure in Measure:
            if found := cell(shares(group.cases, method, budget, measure)):
                values = _rounded({"micro": found.micro, "macro": found.macro, "error": found.error})
                measured[measure.value] = {**values, "cuts": found.cases, "sessions": found.sessions}
        usual, highest = used(group.cases, method, budget)
        sizes = _rounded({"used": usual, "most_used": highest})
        figures.append({"method": method, "budget": budget, **sizes, "measures": measured})
    return {
        "protocol": group.protocol,
        "dialect": group.dialect,
        "cuts": len(group.cases),
        "sessions": len({case.session for case in group.cases}),
        "middle_tokens": sum(case.middle_tokens for case in group.cases),
        "figures": figures,
        "digest_minus": [
            {"method": method, "budget": budget, "measure": measure.value, **_rounded(dataclasses.asdict(difference))}
            for budget in budgets_of(result, group.cases)
            for (method, measure), difference in run_eval.differences(result, group, budget).items()
        ],
    }


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: round(value, _DIGITS) if isinstance(value, float) else value for key, value in values.items()}


def _case(case: run_eval.CaseResult) -> dict[str, Any]:
    return {
        "name": case.name,
        "dialect": case.dialect,
        "protocol": case.protocol,
        "middle_tokens": case.middle_tokens,
        "scores": [
            {"method": one.method, "budget": one.budget, "used": round(one.budget_ratio, _DIGITS)}
            | {"kept_of": _kept_of(one.shares)}
            for one in case.scores
        ],
        "gates": {budget: dataclasses.asdict(gates) for budget, gates in case.gates.items()},
        "repeat": dataclasses.asdict(case.repeat) if case.repeat else None,
        "drift": [
            {"rounds": point.rounds, "carry": point.carry.value, "kept_of": _kept_of(point.shares)}
            for point in case.drift
        ],
    }


def _kept_of(found: Mapping[Measure, Share]) -> dict[str, list[int]]:
    return {measure.value: [share.kept, share.total] for measure, share in found.items() if share.total}


PANELS = (*_MOST_TELLING, Measure.DECISIONS)
PANEL_WIDTH, PANEL_HEIGHT = 300, 210
LEFT, TOP, GAP, LEGEND = 46, 58, 52, 150
LEGEND_CHARS = 18
# Okabe and Ito's palette, which people with any colour vision can distinguish; the digest's curve is black and thick.
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#0072B2", "#D55E00", "#999999", "#B8A800")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """The plot of one measure: its place in the drawing, and the budgets on its axis."""

    left: float
    top: float
    budgets: tuple[Size, ...]

    def x(self, ratio: float) -> float:
        low, high = log10(self.budgets[0].ratio), log10(self.budgets[-1].ratio)
        return self.left + PANEL_WIDTH * (log10(ratio) - low) / (high - low)

    def y(self, share: float) -> float:
        return self.top + PANEL_HEIGHT * (1 - share)


def draw(result: EvalResult) -> str:
    """The SVG text: micro means of the session cuts, or of the short cuts if there are no others.

    Budgets in tokens are left out, since the axis is one of shares. With fewer than two shares, only the legend is
    drawn.
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
        parts.append(_svg_text(LEFT, 22, f"Share kept against budget, micro mean · {group.title}", size=15))
        for number, measure in enumerate(PANELS):
            left = LEFT + (number % 3) * (PANEL_WIDTH + GAP)
            panel = _Panel(left=left, top=TOP + (number // 3) * (PANEL_HEIGHT + GAP), budgets=budgets)
            parts.append(_svg_text(left, panel.top - 8, measure.value, size=13))
            for share in (0.0, 0.25, 0.5, 0.75, 1.0):
                y = panel.y(share)
                parts.append(_polyline([(left, y), (left + PANEL_WIDTH, y)], "#dddddd", 1))
                parts.append(_svg_text(left - 6, y + 4, f"{100 * share:.0f}", anchor="end"))
            for size in budgets:
                bottom = panel.top + PANEL_HEIGHT + 16
                parts.append(_svg_text(panel.x(size.ratio), bottom, label(size), anchor="middle"))
            for method in reversed(result.methods):
                parts += _curve(panel, group, result.methods, method, measure)
    left = LEFT + 3 * (PANEL_WIDTH + GAP) - 16
    for number, method in enumerate(result.methods):
        y = TOP + 18 * number
        colour, thickness = _style(result.methods, method)
        parts.append(_polyline([(left, y), (left + 22, y)], colour, thickness))
        name = method if len(method) <= LEGEND_CHARS else method[: LEGEND_CHARS - 1] + "…"
        parts.append(_svg_text(left + 28, y + 4, name))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _curve(panel: _Panel, group: CaseGroup, methods: Sequence[str], method: str, measure: Measure) -> Iterator[str]:
    points = []
    for size in panel.budgets:
        found = cell(shares(group.cases, method, label(size), measure))
        if found is not None:
            points.append((panel.x(size.ratio), panel.y(found.micro)))
    if points:
        colour, width = _style(methods, method)
        yield _polyline(points, colour, width)
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{width + 1}" fill="{colour}"/>' for x, y in points)


def _style(methods: Sequence[str], method: str) -> tuple[str, float]:
    if method == run_eval.DIGEST:
        return "#000000", 3
    return COLOURS[(methods.index(method) - 1) % len(COLOURS)], 1.5


def _polyline(points: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def _svg_text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
