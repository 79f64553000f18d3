from __future__ import annotations

from pathlib import Path

import pytest
from opening import joined, open_bytes

from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Container

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@pytest.mark.parametrize(
    ("name", "dialect", "container", "count"),
    [
        ("openai-chat.jsonl", "openai-chat", Container.LINES, 1),
        ("openai-chat-chinese.jsonl", "openai-chat", Container.LINES, 1),
        ("openai-chat-dataset.jsonl", "openai-chat", Container.ARRAY, 3),
        ("parallel-calls.jsonl", "openai-chat", Container.LINES, 1),
        ("anthropic.jsonl", "anthropic", Container.LINES, 1),
        ("sharegpt.jsonl", "sharegpt", Container.ARRAY, 3),
        ("hermes-trajectory.jsonl", "hermes", Container.ARRAY, 2),
    ],
)
def test_samples_are_what_their_names_say(name: str, dialect: str, container: Container, count: int) -> None:
    data = (SAMPLES / name).read_bytes()
    transcripts = open_bytes(data)
    assert joined(transcripts) == data
    assert [(found.dialect, found.frame.container) for found in transcripts] == [(dialect, container)] * count
    for transcript in transcripts:
        found = group(transcript.messages)
        assert not found.orphan_calls
        assert not found.orphan_results
        assert not any(message.is_meta for message in transcript.messages)


def test_one_sample_is_long_enough_that_compaction_pays() -> None:
    (transcript,) = open_bytes((SAMPLES / "openai-chat.jsonl").read_bytes())
    assert len(transcript.records) >= 120
    assert len(transcript.source()) >= 60_000


def test_one_sample_has_parallel_calls_and_one_in_flight() -> None:
    (transcript,) = open_bytes((SAMPLES / "parallel-calls.jsonl").read_bytes())
    assert max(len(message.calls) for message in transcript.messages) >= 6
    assert group(transcript.messages).in_flight
