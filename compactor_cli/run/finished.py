"""Finished: what is left of a transcript when its row is made; small enough to come from another process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compactor_cli.model.report import Outcome, TranscriptReport
from compactor_cli.model.transcript import Transcript
from compactor_cli.run.row import CompactedRow

View = Callable[[Transcript, CompactedRow], str]
Make = Callable[[Transcript], CompactedRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRow:
    """One transcript done: its output, report and state, what is shown of it, its lines of a plan file, its page, and
    its summariser's call as a row."""

    output: bytes
    report: TranscriptReport
    state: bytes | None = None
    shown: str = ""
    plans: bytes = b""
    example: bytes = b""
    page: str = ""

    @property
    def changed(self) -> bool:
        """Whether the output differs from the source."""
        return self.report.outcome is Outcome.COMPACTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Finisher:
    """Makes rows of transcripts and finishes them. Safe for several threads and processes.

    ``view`` makes what is shown of each, ``page`` its page. ``plans_path`` is the input's name in a plan file; empty:
    none is saved.
    """

    make: Make
    view: View | None = None
    plans_path: str = ""
    page: View | None = None

    def __call__(self, transcript: Transcript) -> FinishedRow:
        """The transcript, done."""
        return self.finished(transcript, self.make(transcript))

    def finished(self, transcript: Transcript, row: CompactedRow) -> FinishedRow:
        """The row, without what only its making needed."""
        plans = b""
        if self.plans_path:
            from compactor_cli.run.planfile import plan_line

            plans = plan_line(self.plans_path, row.plan, row.summary, row.report.summary_source)
        shown = self.view(transcript, row) if self.view else ""
        return FinishedRow(
            output=row.output,
            report=row.report,
            state=row.state,
            shown=shown,
            plans=plans,
            example=row.example,
            page=self.page(transcript, row) if self.page else "",
        )
