"""Metrics: what became of the rows of a shard, as a value that adds up."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from compactor_cli.model.report import Outcome, TranscriptReport
from compactor_cli.run.row import LEFT_AS_IT_WAS


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardMetrics:
    """Counts of shards and rows; ``a + b`` counts both, in any order.

    ``shards`` were worked on, ``shards_skipped`` were finished before (their rows are counted anyway),
    ``shards_failed`` wrote nothing. ``failed`` rows were passed on unchanged, ``fell_back`` have the digest where a
    model was asked, ``left`` are unchanged for want of a summary. ``seconds`` are of all processes together.
    """

    shards: int = 0
    shards_skipped: int = 0
    shards_failed: int = 0
    compacted: int = 0
    unchanged: int = 0
    failed: int = 0
    over_target: int = 0
    fell_back: int = 0
    left: int = 0
    lines_dropped: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    seconds: float = 0.0

    def __add__(self, other: ShardMetrics) -> ShardMetrics:
        names = self.__dataclass_fields__
        return ShardMetrics(**{name: a + b for name, a, b in zip(names, astuple(self), astuple(other), strict=True)})

    @property
    def rows(self) -> int:
        """All rows."""
        return self.compacted + self.unchanged + self.failed

    @classmethod
    def of(cls, report: TranscriptReport) -> ShardMetrics:
        """One row."""
        return cls(
            compacted=int(report.outcome is Outcome.COMPACTED),
            unchanged=int(report.outcome is Outcome.UNCHANGED),
            failed=int(report.outcome is Outcome.FAILED),
            over_target=int(bool(report.over_target)),
            fell_back=int(bool(report.fell_back)),
            left=int(any(warning.startswith(LEFT_AS_IT_WAS) for warning in report.warnings)),
            bytes_before=report.bytes_before,
            bytes_after=report.bytes_after,
            tokens_before=report.tokens_before,
            tokens_after=report.tokens_after,
        )
