"""What every target promises, checked on one transcript."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.plan import Mode
from compactor_cli.model.settings import Settings, Size
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import Counter
from compactor_cli.read.jsonl import read_records

TARGETS = tuple(Size(tokens=tokens) for tokens in (150, 300, 410, 700, 1_000, 1_500, 2_000, 4_000, 8_000)) + tuple(
    Size(ratio=ratio) for ratio in (0.05, 0.1, 0.25, 0.5, 0.75)
)


def opened(data: bytes, dialect: str = "") -> Transcript:
    (found,) = open_transcripts(read_records(data.splitlines(keepends=True), "session"), dialect=dialect)
    return found


def broken_promise(transcript: Transcript, settings: Settings, counter: Counter, mode: Mode = Mode.REWRITE) -> str:
    """What is wrong with the compaction to the target of these settings; empty if nothing is.

    Wrong are an output over the target without the reason, one within it with a reason why not, and a second run
    with the same settings, and with what the first one stored, that changes a byte.
    """
    states: dict[str, bytes] = {}

    def run(given: Transcript) -> Compaction:
        done = compact_transcript(
            given, settings, counter=counter, summariser=Digest(), load_state=states.get, mode=mode
        )
        if done.state:
            states[hashlib.sha256(done.state).hexdigest()[:16]] = done.state
        return done

    done = run(transcript)
    report = done.report
    most = settings.target.tokens or report.target_tokens
    if (report.tokens_after > most) != bool(report.over_target):
        return f"{report.tokens_after} tokens for a target of {most}, said: {report.over_target!r} ({report.reason})"
    if done.changed:
        again = run(opened(done.output, transcript.dialect))
        if again.output != done.output:
            before, after = report.tokens_after, again.report.tokens_after
            return f"{report.tokens_before} to {before} tokens, then to {after} ({report.over_target!r})"
    return ""


def broken_promises(
    transcript: Transcript, settings: Settings, counter: Counter, targets: Sequence[Size] = TARGETS
) -> dict[Size, str]:
    """`broken_promise` at each of these targets that it is broken at."""
    found = {size: broken_promise(transcript, replace(settings, target=size), counter) for size in targets}
    return {size: what for size, what in found.items() if what}
