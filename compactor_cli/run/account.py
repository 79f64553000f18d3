"""Account: the events of the transcripts of one input."""

from __future__ import annotations

from compactor_cli.model.events import Listener, Planned, TranscriptEnded
from compactor_cli.model.plan import Plan
from compactor_cli.model.report import TranscriptReport
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.reported import planned_report


class Account:
    """Tells of each transcript's plan, once and before its end. Without a listener it does nothing."""

    def __init__(self, path: str, tell: Listener | None) -> None:
        self._path = path
        self._tell = tell
        self._told: set[str] = set()

    def planned(self, transcript: Transcript, plan: Plan) -> None:
        """A plan is about to be carried out; said at once only where that takes long. From any thread."""
        if self._tell and transcript.sha256 not in self._told:
            self._told.add(transcript.sha256)
            self._tell(Planned(path=self._path, report=planned_report(transcript, plan)))

    def ended(self, report: TranscriptReport) -> None:
        """What became of it."""
        if self._tell is None:
            return
        if report.sha256 not in self._told:
            self._tell(Planned(path=self._path, report=report))
        self._told.discard(report.sha256)
        self._tell(TranscriptEnded(path=self._path, report=report))
