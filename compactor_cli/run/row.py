"""Row: what became of one transcript."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compactor_cli.engine import Compaction
from compactor_cli.model.plan import Action, Plan, Span
from compactor_cli.model.report import Outcome, TranscriptReport
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.finish import planned_report

if TYPE_CHECKING:
    from compactor_cli.llm.model import Estimate

LEFT_AS_IT_WAS = "left as it was"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedRow:
    """What became of one transcript. ``output`` is its source where nothing changed.

    ``estimate``: what a model would be asked, of a decision alone. ``transcript``: what a changed output is read as.
    ``example``: the summariser's own call, as a row of a dataset.
    """

    output: bytes
    report: TranscriptReport
    plan: Plan
    summary: str = ""
    state: bytes | None = None
    estimate: Estimate | None = None
    transcript: Transcript | None = None
    example: bytes = b""

    @property
    def changed(self) -> bool:
        """Whether the output differs from the source."""
        return self.report.outcome is Outcome.COMPACTED


def row_of(done: Compaction) -> CompactedRow:
    """A compaction as a row."""
    return CompactedRow(
        output=done.output,
        report=done.report,
        plan=done.plan,
        summary=done.summary_text,
        state=done.state,
        transcript=done.transcript,
    )


def kept(transcript: Transcript, reason: str) -> CompactedRow:
    """The transcript as it was, at the user's request."""
    whole = Span(start=0, stop=len(transcript.records), action=Action.KEEP)
    plan = Plan(transcript_sha256=transcript.sha256, fingerprint="", spans=(whole,), reason=reason)
    report = planned_report(transcript, plan)
    warnings = () if reason == "declined" else (f"{LEFT_AS_IT_WAS}: {reason}",)
    return CompactedRow(output=transcript.source(), plan=plan, report=replace(report, warnings=warnings))
