"""What presets without a summary leave, resumed by the clients: both ends are sent, or the newest that fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lab import resumed, seeded, transcripts, written

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.formats.clients import find_problems
from compactor_cli.model.settings import Size
from compactor_cli.plan.tokens import count_messages, counter_for
from compactor_cli.presets import load_preset

# In these sessions records link to each other: where the middle goes, a notice must join the ends.
LINKED = ("claude", "pi", "qwen")


def _compacted(path: Path, name: str, share: float) -> Compaction:
    """The session by this preset, with so much of its tokens left."""
    (transcript,) = transcripts(path)
    counter = counter_for("chars/4")
    target = Size(tokens=int(sum(count_messages(counter, transcript.messages)) * share))
    settings = replace(load_preset(name).settings, target=target)
    return compact_transcript(transcript, settings, counter=counter, summariser=Digest(), load_state=lambda name: None)


@pytest.mark.parametrize("name", LINKED)
def test_both_ends_are_sent_where_the_middle_is_left_out(name: str, tmp_path: Path) -> None:
    source = seeded(name, tmp_path)
    done = _compacted(source, "suna", 0.5)
    assert done.report.pruned.get("no-room") or done.report.covered
    first = written(source, done, "first")
    assert not find_problems(transcripts(first)[0])
    once = resumed(name, first)
    assert "MARK-A1" in once.text
    assert "MARK-D4" in once.text
    assert "MARK-C3" not in once.text


@pytest.mark.parametrize("name", [*LINKED, "codex", "gemini", "kimi-code"])
def test_the_newest_that_fit_are_sent(name: str, tmp_path: Path) -> None:
    source = seeded(name, tmp_path)
    first = written(source, _compacted(source, "joyagent", 0.5), "first")
    once = resumed(name, first)
    assert "MARK-D4" in once.text
    assert "MARK-A1" not in once.text
