"""Run page: what became of many transcripts, as a self-contained HTML page: sizes, savings, losses, failures."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compactor_cli.model.report import InputReport, Outcome, TranscriptReport
from compactor_cli.render.page import printable, render_page

MAX_ROWS = 20
MAX_LARGEST = 10
MAX_FAILURES = 200
# Sizes are sorted into doublings, of which no more than this many are drawn.
MAX_BINS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Transcripts of ``from_tokens`` up to twice that: how many before and after, and these in percent of the most."""

    label: str
    from_tokens: int
    before: int
    after: int
    before_percent: float
    after_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """The inputs of one folder, or one input; the percents are of the largest row, to be drawn as bars."""

    name: str
    inputs: int
    before: int
    after: int
    before_percent: float
    after_percent: float

    @property
    def saved(self) -> int:
        """Percent of the tokens."""
        return round(100 * (1 - self.after / self.before)) if self.before else 0


def run_page(
    inputs: Sequence[InputReport],
    sizes: Sequence[tuple[int, int]],
    retained: Sequence[tuple[str, TranscriptReport]],
    *,
    target_tokens: int,
    seconds: float,
    title: str,
    uncounted: int = 0,
) -> str:
    """The page. ``sizes``: tokens before and after of every transcript; ``retained``: those that lost most, with names.

    ``target_tokens``: what each was to be compacted to; 0: there is no one number. ``uncounted``: this many
    sizes are bounds, of transcripts whose bytes already showed that they are small enough.
    """
    bins = _bins(sizes)
    before, after = sum(size for size, _ in sizes), sum(size for _, size in sizes)
    failures = [report for report in inputs if report.error]
    return render_page(
        "run.html",
        title=title,
        transcripts=len(sizes),
        inputs=len(inputs),
        outcomes=[(outcome.value, _outcome_count(inputs, outcome)) for outcome in Outcome],
        before=before,
        after=after,
        percent=round(100 * (1 - after / before)) if before else 0,
        seconds=seconds,
        uncounted=uncounted,
        bins=bins,
        target=target_tokens,
        target_percent=_position(bins, target_tokens),
        projects=_projects(inputs),
        largest=_savings(((report.path, (report,)) for report in inputs), by_after=True)[:MAX_LARGEST],
        retained=[_retention(name, report) for name, report in retained[:MAX_ROWS]],
        failures=[
            {"path": printable(report.path), "error": printable(report.error), "next": printable(report.next_step)}
            for report in failures[:MAX_FAILURES]
        ],
        more_failures=max(0, len(failures) - MAX_FAILURES),
    )


def _outcome_count(inputs: Sequence[InputReport], outcome: Outcome) -> int:
    return sum(report.outcome is outcome for report in inputs)


def _bins(sizes: Sequence[tuple[int, int]]) -> list[Bin]:
    """Sizes before and after, by doublings; the smallest ones together in the first."""
    filled = [size for pair in sizes for size in pair if size]
    if not filled:
        return []
    last = max(filled).bit_length() - 1
    first = max(min(filled).bit_length() - 1, last - MAX_BINS + 1)
    counts = [[0, 0] for _ in range(first, last + 1)]
    for pair in sizes:
        for side, size in enumerate(pair):
            counts[max(0, max(size, 1).bit_length() - 1 - first)][side] += 1
    most = max(max(pair) for pair in counts)
    return [
        Bin(
            label=_short(1 << (first + i)),
            from_tokens=1 << (first + i),
            before=before,
            after=after,
            before_percent=round(100 * before / most, 1),
            after_percent=round(100 * after / most, 1),
        )
        for i, (before, after) in enumerate(counts)
    ]


def _short(tokens: int) -> str:
    for unit, name in ((1 << 20, "M"), (1 << 10, "k")):
        if tokens >= unit:
            return f"{tokens // unit}{name}"
    return str(tokens)


def _position(bins: Sequence[Bin], tokens: int) -> float | None:
    """Where on the axis this many tokens are, in percent of its width; None where that is not on it."""
    if not bins or not tokens:
        return None
    place = math.log2(tokens / bins[0].from_tokens) / len(bins)
    return round(100 * place, 2) if 0 <= place <= 1 else None


def _projects(inputs: Sequence[InputReport]) -> list[Saving]:
    """By folder, where there are several."""
    folders: dict[str, list[InputReport]] = {}
    for report in inputs:
        folders.setdefault(os.path.dirname(report.path) or ".", []).append(report)  # noqa: PTH120 -- paths may be "-"
    return _savings(folders.items()) if len(folders) > 1 else []


def _savings(groups: Iterable[tuple[str, Sequence[InputReport]]], *, by_after: bool = False) -> list[Saving]:
    """The largest savings, or what is largest still."""
    rows = [
        (name, len(reports), sum(item.tokens_before for item in reports), sum(item.tokens_after for item in reports))
        for name, reports in groups
    ]
    rows.sort(key=lambda row: (-row[3] if by_after else row[3] - row[2], row[0]))
    rows = [row for row in rows if row[2]][:MAX_ROWS]
    most = max((row[2] for row in rows), default=1)
    return [
        Saving(
            name=printable(name),
            inputs=inputs,
            before=before,
            after=after,
            before_percent=round(100 * before / most, 2),
            after_percent=round(100 * after / most, 2),
        )
        for name, inputs, before, after in rows
    ]


def _retention(name: str, report: TranscriptReport) -> dict[str, object]:
    kinds = sorted(report.retention.items(), key=lambda item: item[1])
    return {
        "name": printable(name),
        "before": report.tokens_before,
        "after": report.tokens_after,
        "kinds": [{"kind": kind, "percent": round(100 * share)} for kind, share in kinds[:4]],
    }
