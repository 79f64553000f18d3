"""Tally: the transcripts of one input counted, the first and the odd ones kept for the report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from compactor_cli.model.report import InputReport, Outcome, TranscriptReport
from compactor_cli.read.jsonl import OnInvalid, RecordReader
from compactor_cli.read.streams import ContentHash

# Reports are read by people: a dataset's rows are counted, not listed. Odd rows are listed, within reason.
LISTED = 20
LISTED_ODD = 10_000


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts what became of the transcripts of one input."""

    records: RecordReader
    counts: Counter[Outcome] = field(default_factory=Counter)
    tokens_before: int = 0
    tokens_after: int = 0
    bytes_after: int = 0
    record_count: int = 0
    written_as: str = ""
    not_carried: Counter[str] = field(default_factory=Counter)
    dialect: str = ""
    warnings: list[str] = field(default_factory=list)
    _listed: list[TranscriptReport] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many transcripts there were."""
        return self.counts.total()

    @property
    def dropped(self) -> int:
        """How many lines that are not JSON were left out."""
        return self.records.invalid_count if self.records.on_invalid is OnInvalid.DROP else 0

    @property
    def is_altered(self) -> bool:
        """Whether the output differs from the input."""
        return bool(self.counts[Outcome.COMPACTED] or self.dropped)

    def add(self, report: TranscriptReport) -> None:
        """One more transcript."""
        self.counts[report.outcome] += 1
        self.tokens_before += report.tokens_before
        self.tokens_after += report.tokens_after
        self.bytes_after += report.bytes_after
        self.record_count += report.records
        self.not_carried.update(report.not_carried)
        self.dialect = self.dialect or report.dialect
        is_odd = report.outcome is Outcome.FAILED or bool(report.warnings or report.over_target)
        if len(self._listed) < (LISTED_ODD if is_odd else LISTED):
            self._listed.append(report)

    def report(self, *, path: str, content: ContentHash, output: str, archive: str) -> InputReport:
        """The report of the whole input."""
        failed = self.counts[Outcome.FAILED]
        return InputReport(
            path=path,
            outcome=self._outcome(),
            output=output,
            archive=archive,
            sha256=content.sha256,
            reason=self._reason(),
            error=f"{path}: {failed:,} of {self.count:,} conversations failed and were passed on unchanged"
            if failed
            else "",
            next_step="--report FILE lists them" if failed else "",
            exit_code=3 if failed else 0,
            counts={outcome.value: count for outcome, count in self.counts.items()},
            tokens_before=self.tokens_before,
            tokens_after=self.tokens_after,
            bytes_before=content.size_bytes,
            bytes_after=self.bytes_after,
            written_as=self.written_as,
            not_carried=dict(self.not_carried),
            transcripts=tuple(self._listed),
            warnings=tuple(self.warnings),
        )

    def _outcome(self) -> Outcome:
        if self.is_altered:
            return Outcome.COMPACTED
        return Outcome.FAILED if self.counts[Outcome.FAILED] else Outcome.UNCHANGED

    def _reason(self) -> str:
        if self.dropped:
            return f"{self.dropped:,} lines that are not JSON were left out"
        if not self.count:
            return "empty"
        return self._listed[0].reason if self.count == 1 and self._listed else ""
