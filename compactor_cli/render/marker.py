"""The marker of a new summary."""

from __future__ import annotations

from compactor_cli.core.marker import Marker
from compactor_cli.core.plan import Action, Plan
from compactor_cli.core.transcript import Transcript
from compactor_cli.plan.previous import end_hash


def marker_for(transcript: Transcript, plan: Plan, tokens: int) -> Marker:
    """What the summary made by this plan stands for; ``tokens`` is the transcript's size, see `Marker`."""
    covered = plan.indices(Action.COVER)
    return Marker(
        transcript=transcript.sha256[:16],
        first=covered[0] + 1,
        last=covered[-1] + 1,
        records=len(transcript.records),
        tokens=tokens,
        end=end_hash(transcript),
    )
