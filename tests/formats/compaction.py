"""One value through the whole engine, for the tests of the dialects of documents."""

from __future__ import annotations

import json
from typing import Any

from opening import open_bytes

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.group.exchanges import group
from compactor_cli.model.plan import Action
from compactor_cli.model.report import Outcome
from compactor_cli.model.settings import Keep, Settings, Size
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import counter_for

COUNTER = counter_for("auto", "")
SETTINGS = Settings(target=Size(tokens=1_500), keep=Keep(head_turns=1, head_tokens=300, tail_tokens=600))
LONG = "The plane is dull, the board is long and the grain runs the wrong way. " * 12


def compacted(transcript: Transcript, settings: Settings = SETTINGS) -> Compaction:
    return compact_transcript(transcript, settings, counter=COUNTER, summariser=Digest(), load_state=lambda name: None)


def round_trip(value: Any, dialect: str, *, indent: int | None = None, settings: Settings = SETTINGS) -> Transcript:
    """The value recognised, compacted and read again, with what every compaction promises checked."""
    data = json.dumps(value, indent=indent, ensure_ascii=False).encode() + b"\n"
    (transcript,) = open_bytes(data)
    assert transcript.dialect == dialect
    assert transcript.source() == data
    done = compacted(transcript, settings)
    assert done.report.outcome is Outcome.COMPACTED, done.report.reason
    assert done.plan.indices(Action.COVER)
    (again,) = open_bytes(done.output, dialect=dialect)
    grouping = group(again.messages)
    assert not grouping.orphan_calls
    assert not grouping.orphan_results
    assert [message.summary.origin for message in again.messages if message.summary] == ["compact"]
    assert compacted(again, settings).output == done.output
    return again


def value_of(transcript: Transcript) -> Any:
    return json.loads(transcript.source())
