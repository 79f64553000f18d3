"""United: the windows of one session, each compacted, as what became of the session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from compactor_cli.model.report import Outcome
from compactor_cli.model.transcript import Transcript
from compactor_cli.run.row import CompactedRow


def merge_windows(transcript: Transcript, rows: Sequence[CompactedRow]) -> CompactedRow:
    """One row of all: outputs one after another, sizes summed; the rest is that of the last window."""
    reports = [row.report for row in rows]
    lost: Counter[str] = Counter()
    for report in reports:
        lost.update(report.not_carried)
    whole = replace(
        reports[-1],
        outcome=Outcome.COMPACTED if any(row.changed for row in rows) else Outcome.UNCHANGED,
        sha256=transcript.sha256,
        records=len(transcript.records),
        tokens_before=sum(report.tokens_before for report in reports),
        tokens_after=sum(report.tokens_after for report in reports),
        bytes_before=transcript.size_bytes,
        bytes_after=sum(report.bytes_after for report in reports),
        not_carried=dict(lost),
        notes=(*reports[-1].notes, f"{len(rows)} windows"),
    )
    output, example = (b"".join(parts) for parts in zip(*((row.output, row.example) for row in rows), strict=True))
    return replace(rows[-1], output=output, report=whole, example=example)
