"""Every preset on real transcripts: the promises that hold for all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import compact_transcript
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import CompactError
from compactor_cli.model.settings import Settings, Size
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import counter_for
from compactor_cli.presets import load_preset, preset_names
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.read.streams import open_stream

MOST_BYTES = 150_000
COUNTER = counter_for("chars/4")


@pytest.fixture(scope="module")
def transcripts(corpus: Path) -> tuple[Transcript, ...]:
    """The small ones, of every format."""
    found: list[Transcript] = []
    for path in sorted(corpus.rglob("*")):
        if not (path.is_file() and ".json" in path.name and path.stat().st_size < MOST_BYTES):
            continue
        try:
            with open_stream(str(path)) as stream:
                records = read_records(stream.reader, str(path), OnInvalid.KEEP)
                found += list(open_transcripts(records, prefix=records.prefix))[:2]
        except CompactError:
            continue
    return tuple(found)


def _holds(transcript: Transcript, settings: Settings) -> bool:
    """The promises; whether anything changed."""

    def compacted(given: Transcript) -> tuple[bytes, bool]:
        done = compact_transcript(given, settings, counter=COUNTER, summariser=Digest(), load_state=lambda name: None)
        assert done.report.tokens_after <= done.report.target_tokens or done.report.over_target or not done.changed
        return done.output, done.changed

    output, changed = compacted(transcript)
    if changed:
        lines = output.splitlines(keepends=True)
        (again,) = open_transcripts(read_records(lines, "again"), dialect=transcript.dialect)
        grouping = group(again.messages)
        assert not grouping.orphan_calls
        assert not grouping.orphan_results
        assert len(output) < transcript.size_bytes
        assert compacted(again) == (output, False)
    return changed


@pytest.mark.parametrize("name", preset_names())
def test_every_output_has_whole_pairs_is_within_its_target_and_a_second_run_changes_nothing(
    name: str, transcripts: tuple[Transcript, ...]
) -> None:
    settings = load_preset(name).settings
    targets = (settings, replace(settings, target=Size(tokens=2_000)))
    assert sum(_holds(transcript, each) for transcript in transcripts for each in targets)
