"""The marker of a new summary, and that of the summary before it."""

from __future__ import annotations

import hashlib

from compactor_cli.core.marker import Marker, find_marker
from compactor_cli.core.plan import Action, Plan
from compactor_cli.core.transcript import Transcript


def marker_for(transcript: Transcript, plan: Plan, previous: Marker | None) -> Marker:
    """What the summary made by this plan stands for."""
    covered = plan.indices(Action.COVER)
    return Marker(
        transcript=transcript.sha256[:16],
        first=covered[0] + 1,
        last=covered[-1] + 1,
        records=len(transcript.records),
        tokens=plan.tokens_before + (previous.tokens if previous else 0),
        end=end_hash(transcript),
    )


def end_hash(transcript: Transcript) -> str:
    """16 hex digits of the SHA-256 of the last record that is part of the conversation."""
    shown = (i for i in range(len(transcript.records) - 1, -1, -1) if not transcript.messages[i].is_meta)
    last = next(shown, len(transcript.records) - 1)
    return hashlib.sha256(transcript.records[last].raw).hexdigest()[:16]


def previous_marker(transcript: Transcript) -> Marker | None:
    """The marker of the newest summary of ours that is still in force."""
    for message in reversed(transcript.messages):
        if message.summary and not message.superseded and (found := find_marker(message.text)):
            return found
    return None
