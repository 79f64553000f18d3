"""Compaction: what became of one transcript."""

from __future__ import annotations

from dataclasses import dataclass

from compactor_cli.model.plan import Plan
from compactor_cli.model.report import Outcome, TranscriptReport
from compactor_cli.model.transcript import Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """One transcript compacted, or left as it was (``output`` is then its source).

    ``state`` is the counter table of the summary, to be stored under the hash its marker names. ``transcript``:
    what the output is read as; None where nothing changed.
    """

    output: bytes
    report: TranscriptReport
    plan: Plan
    state: bytes | None = None
    summary_text: str = ""
    transcript: Transcript | None = None

    @property
    def changed(self) -> bool:
        """Whether the output differs from the source."""
        return self.report.outcome is Outcome.COMPACTED
