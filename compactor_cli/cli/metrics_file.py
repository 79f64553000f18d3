"""Metrics: what a run did to a dataset, in one JSON object, from the events of its rows."""

from __future__ import annotations

import json
import time
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.cli.written import output_file
from compactor_cli.model.report import Event, Outcome, RunEnded, TranscriptEnded, TranscriptReport, totals

_PERCENTILES = (5, 25, 50, 75, 95)
# Failures are counted all, and listed this many.
_LISTED = 1_000
# A file of this name is written for Prometheus.
PROMETHEUS = ".prom"


class Metrics:
    """A listener that writes the file when the run ends, also when it failed.

    ``conversations``: counts by outcome, and of those over their target; ``tokens``: sums and their ratio;
    ``each``: percentiles over conversations (``ratio``: of the compacted ones); ``summaries``: who wrote them;
    ``failures``: where and why. Twelve bytes are held for each conversation.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._began = time.time()
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
            text = (
                self.prometheus(event) if self._path.endswith(PROMETHEUS) else json.dumps(self.value(), indent=2) + "\n"
            )
            with output_file(self._path) as file:
                file.write(text.encode())

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

    def prometheus(self, ended: RunEnded) -> str:
        """What the textfile collector of Prometheus' node_exporter reads: the last run, as gauges."""
        sizes = totals(ended.inputs)
        cost_usd = float(str((ended.model or {}).get("cost_usd") or 0.0))
        families = (
            ("last_run_timestamp_seconds", "When the last run ended, in Unix time.", ended.at),
            ("run_seconds", "How long it took.", round(ended.at - self._began, 3)),
            ("exit_code", "Its exit code.", ended.exit_code),
            ("inputs", "Inputs by what became of them.", _but_total(sizes["inputs"])),
            ("conversations", "Conversations by what became of them.", _but_total(sizes["conversations"])),
            ("tokens_before", "Tokens of all inputs.", sizes["tokens_before"]),
            ("tokens_after", "Tokens of all outputs.", sizes["tokens_after"]),
            ("over_target", "Conversations larger than their target.", self._over_target),
            ("fell_back", "Summaries by the digest although a model was asked.", self._summaries["fell back"]),
            ("cost_usd", "Paid for models, in US dollars.", cost_usd),
        )
        return "".join(_family(f"compact_{name}", about, value) for name, about, value in families)

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


def _but_total(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if name != "total"}


def _family(name: str, about: str, value: float | Mapping[str, int]) -> str:
    """One metric in Prometheus' text format; a mapping is by outcome."""
    head = f"# HELP {name} {about}\n# TYPE {name} gauge\n"
    if isinstance(value, Mapping):
        return head + "".join(f'{name}{{outcome="{outcome}"}} {count}\n' for outcome, count in value.items())
    return f"{head}{name} {value}\n"


def _ratio(after: int, before: int) -> float:
    return round(after / before, 4) if before else 1.0


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    """By the nearest rank; empty without values."""
    ordered = sorted(values)
    ranks = {f"p{percent}": -(-percent * len(ordered) // 100) - 1 for percent in _PERCENTILES}
    return {name: round(ordered[max(rank, 0)], 4) for name, rank in ranks.items()} if ordered else {}
