from __future__ import annotations

from pathlib import Path

import pytest
from opening import joined, open_bytes

from compactor_cli.group.exchanges import group

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
NAMES = {"atif.json": "atif", "opencode-export.json": "opencode"}


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_known_by_its_content_and_read_back_byte_for_byte(name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    transcripts = open_bytes(data)
    assert [transcript.dialect for transcript in transcripts] == [NAMES[name]]
    assert joined(transcripts) == data
    (transcript,) = transcripts
    grouping = group(transcript.messages)
    assert grouping.pairs
    assert not grouping.orphan_calls
    assert not any(message.is_meta for message in transcript.messages)
