"""Metrics: what a run did to a dataset, in one JSON object, from the events of its rows."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any

from compactor_cli.archive.atomic import atomic_writer
from compactor_cli.model.events import Event, RunEnded, TranscriptEnded
from compactor_cli.model.report import Outcome, TranscriptReport

_PERCENTILES = (5, 25, 50, 75, 95)
# Failures are counted all, and listed so many.
_LISTED = 1_000


class Metrics:
    """A listener that writes the file when the run ends, also when it failed.

    ``conversations``: counts by outcome, and of those over their target; ``tokens``: sums and their ratio;
    ``each``: percentiles over conversations (``ratio``: of the compacted ones); ``summaries``: who wrote them;
    ``failures``: where and why. Twelve bytes are held for each conversation.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._outcomes: Counter[str] = Counter()
        self._summaries: Counter[str] = Counter()
        self._records = [0, 0]
        self._over_target = 0
        self._before = array("L")
        self._after = array("L")
        self._ratios = array("f")
        self._failures: list[dict[str, Any]] = []

    def __call__(self, event: Event, /) -> None:
        """Count it."""
        if isinstance(event, TranscriptEnded):
            self._add(event.path, event.report)
        elif isinstance(event, RunEnded):
            with atomic_writer(self._path) as file:
                file.write(json.dumps(self.value(), indent=2).encode() + b"\n")

    def _add(self, path: str, report: TranscriptReport) -> None:
        self._outcomes[report.outcome.value] += 1
        self._over_target += bool(report.over_target)
        self._before.append(report.tokens_before)
        self._after.append(report.tokens_after)
        self._records[0] += report.records
        self._records[1] += report.records - report.covered + bool(report.summary_source)
        if report.outcome is Outcome.COMPACTED:
            self._ratios.append(report.tokens_after / max(report.tokens_before, 1))
        if report.summary_source:
            self._summaries[report.summary_source] += 1
            self._summaries["fell back"] += bool(report.fell_back)
        if report.outcome is Outcome.FAILED and len(self._failures) < _LISTED:
            self._failures.append({"input": path, "line": report.line, "reason": report.reason})

    def value(self) -> dict[str, Any]:
        """What the file holds."""
        before, after = sum(self._before), sum(self._after)
        return {
            "conversations": {
                "total": len(self._before),
                **{outcome.value: self._outcomes[outcome.value] for outcome in Outcome},
                "over_target": self._over_target,
            },
            "tokens": {"before": before, "after": after, "saved": before - after, "ratio": _ratio(after, before)},
            "records": {"before": self._records[0], "after": self._records[1]},
            "each": {
                "tokens_before": _percentiles(self._before),
                "tokens_after": _percentiles(self._after),
                "ratio": _percentiles(self._ratios),
            },
            "summaries": dict(self._summaries),
            "failures": self._failures,
        }


def _ratio(after: int, before: int) -> float:
    return round(after / before, 4) if before else 1.0


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    """By the nearest rank; empty without values."""
    ordered = sorted(values)
    ranks = {f"p{percent}": -(-percent * len(ordered) // 100) - 1 for percent in _PERCENTILES}
    return {name: round(ordered[max(rank, 0)], 4) for name, rank in ranks.items()} if ordered else {}
