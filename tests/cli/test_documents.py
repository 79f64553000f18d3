"""--to markdown and --to text: a transcript as a text, within its target as that text counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_cases import Run

from compactor_cli.plan.tokens import counter_for

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@pytest.mark.parametrize("markup", ["markdown", "text"])
@pytest.mark.parametrize("sample", ["claude-code.jsonl", "openai-chat.jsonl", "codex-rollout.jsonl"])
def test_the_target_counts_the_text_that_is_written(markup: str, sample: str, work: Path, compact: Run) -> None:
    shutil.copy(SAMPLES / sample, work / "s.jsonl")
    ran = compact("-t", "3k", "s.jsonl", "--to", markup, "--report", "report.json", "-o", "out")
    assert ran.code == 0, ran.err
    text = (work / "out").read_text()
    (report,) = json.loads((work / "report.json").read_text())["inputs"]
    (item,) = report["transcripts"]
    counted = counter_for("auto", "claude-sonnet-4-5" if sample.startswith("claude") else "").count(text)
    assert item["tokens_after"] == counted <= 3_000
    assert item["over_target"] == ""


@pytest.mark.parametrize("markup", ["markdown", "text"])
def test_everything_that_is_kept_can_be_read(markup: str, work: Path, compact: Run) -> None:
    text = compact("session.jsonl", "--to", markup).out.decode()
    for step in range(12):
        assert f"Please fix problem {step} in src/module_{step}.py" in text
        assert f'src/module_{step}.py"' in text
        assert f"line 29 of module {step}" in text
        assert f"Fixed problem {step}" in text
    assert text.index("Fixed problem 3") < text.index("Fixed problem 4")


def test_a_fence_in_a_result_does_not_close_its_own(work: Path, compact: Run) -> None:
    lines = (work / "session.jsonl").read_bytes().replace(b"line 3 of module 2", b"```` end of a fence")
    (work / "session.jsonl").write_bytes(lines)
    assert "\n`````\nline 0 of module 2" in compact("session.jsonl", "--to", "markdown").out.decode()


def test_a_text_has_no_rows_for_arrow(work: Path, compact: Run) -> None:
    assert compact("session.jsonl", "--to", "text", "--set", "arrow=true").code == 2


def test_an_unknown_format_names_the_texts_too(work: Path, compact: Run) -> None:
    assert "markdown" in compact("session.jsonl", "--to", "claude-stream").err
