"""The marker of a new summary."""

from __future__ import annotations

from compactor_cli.model.marker import Marker
from compactor_cli.model.plan import Action, Plan
from compactor_cli.model.transcript import Transcript


def marker_for(transcript: Transcript, plan: Plan, *, tokens: int, end: str) -> Marker:
    """What the summary made by this plan stands for; for ``tokens`` and ``end`` see `Marker`."""
    covered = plan.indices(Action.COVER)
    return Marker(
        transcript=transcript.sha256[:16],
        first=covered[0] + 1,
        last=covered[-1] + 1,
        records=len(transcript.records),
        tokens=tokens,
        end=end,
    )


def beside(transcript: Transcript, plan: Plan) -> str:
    """What to say of the records that stay between covered ones; empty where none do."""
    covered = plan.indices(Action.COVER)
    messages = transcript.messages
    kept = [i for i in plan.indices(Action.KEEP) if plan.summary_at <= i < covered[-1] and not messages[i].is_meta]
    if not kept:
        return ""
    return f"{len(kept)} of the records {kept[0] + 1}-{kept[-1] + 1}, with gaps between them, then the newest messages"
