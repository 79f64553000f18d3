"""Rows of one dataset made by several processes: whatever the input holds, the result of one process."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from compactor_cli.model.report import Compaction, InputReport, Outcome
from compactor_cli.model.settings import Settings, Size
from compactor_cli.model.transcript import Transcript
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.sources import InputSource
from compactor_cli.run import workers as spread
from compactor_cli.run.jobs import Job, Outputs, Purpose, RunConfig
from compactor_cli.run.outputs import Existing, Target, TargetKind
from compactor_cli.run.rows import RowMaker
from compactor_cli.run.runner import run_batch


def _messages(steps: int, name: str) -> list[dict[str, str]]:
    return [
        {"role": role, "content": f"{name} {role} {step}: " + f"word{step} and so on about src/file_{step}.py " * 9}
        for step in range(steps)
        for role in ("user", "assistant")
    ]


def _row(number: int) -> bytes:
    return json.dumps({"id": number, "messages": _messages(2 + number % 5 * 5, f"row{number}")}).encode() + b"\n"


ROWS = b"".join(map(_row, range(13)))
SESSION = b"".join(json.dumps(message).encode() + b"\n" for message in _messages(12, "session"))
RESPONSES = json.dumps({"input": _messages(20, "other"), "model": "gpt-4o"}).encode() + b"\n"
INPUTS = {
    "rows": ROWS,
    "no line feed at the end": ROWS[:-1],
    "a byte-order mark": b"\xef\xbb\xbf\n" + ROWS,
    "blank lines and carriage returns": b"\n \n" + ROWS.replace(b"\n", b"\r\n\r\n  "),
    "one row": _row(4),
    "nothing": b"",
    "only blanks": b"\n\n",
    "a session": SESSION,
    "rows, then a session, then rows": ROWS + SESSION + ROWS,
    "a session, then rows": SESSION + ROWS,
    "rows of two dialects": ROWS + RESPONSES + ROWS,
    "a line among rows that is no conversation": ROWS + b'{"id": 7, "messages": "x"}\n' + ROWS,
    "a line that is not JSON": ROWS + b"oops {\n" + ROWS,
    "a torn last line": ROWS + b'{"messages": [{"ro',
    "two rows on a line": ROWS + _row(3)[:-1] + _row(4) + ROWS,
    "two rows on the first line": _row(3)[:-1] + ROWS,
    "an array of rows on one line": b"[" + b",".join(ROWS.splitlines()) + b"]\n",
    "a document over many lines": json.dumps([json.loads(line) for line in ROWS.splitlines()], indent=1).encode(),
    "odd JSON": ROWS + _row(4).replace(b'"id": 4', b'"id": NaN') + ROWS,
    "a lone surrogate": ROWS + _row(4).replace(b"row4", b"\\ud800") + ROWS,
    "no conversation at all": b'{"a": 1}\n' * 5,
}


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "TASK_LINES", 2)


@pytest.fixture
def run_config(tmp_path: Path) -> RunConfig:
    return RunConfig(settings=Settings(target=Size(tokens=900)), archive_dir=str(tmp_path / "archive"))


def _ran(content: bytes, run_config: RunConfig, folder: Path, processes: int) -> tuple[InputReport, bytes, list[str]]:
    """The report, the output, and what was shown and saved."""
    source, out = folder / "rows.jsonl", folder / "out.jsonl"
    source.write_bytes(content)
    out.unlink(missing_ok=True)
    target = Target(path=str(out), kind=TargetKind.FILE, existing=Existing.REPLACE)
    job = Job(source=InputSource(path=str(source), name=source.name, root=str(folder)), target=target)
    said: list[str] = []
    outputs = Outputs(show=said.append, save=lambda line: said.append(line.decode()))
    (report,) = run_batch([job], run_config, processes=processes, outputs=outputs)
    return report, out.read_bytes() if out.exists() else b"", said


@pytest.mark.parametrize("on_invalid", OnInvalid)
@pytest.mark.parametrize("name", INPUTS)
def test_two_processes_give_what_one_gives(
    name: str, on_invalid: OnInvalid, tmp_path: Path, run_config: RunConfig
) -> None:
    run_config = replace(run_config, on_invalid=on_invalid)
    alone = _ran(INPUTS[name], run_config, tmp_path, 1)
    assert _ran(INPUTS[name], run_config, tmp_path, 2) == alone


@pytest.mark.parametrize("purpose", Purpose)
def test_what_is_shown_and_saved_is_the_same_too(purpose: Purpose, tmp_path: Path, run_config: RunConfig) -> None:
    run_config = replace(
        run_config, purpose=purpose, view=lambda transcript, row: f"{len(transcript.records)} {row.plan.reason}"
    )
    report, out, said = _ran(ROWS, run_config, tmp_path, 1)
    assert _ran(ROWS, run_config, tmp_path, 2) == (report, out, said)
    assert len(said) == 26
    assert report.counts["compacted"] >= 5


def test_a_format_that_was_named_is_used_by_all(tmp_path: Path, run_config: RunConfig) -> None:
    for dialect in ("openai-chat", "anthropic"):
        named = replace(run_config, dialect=dialect)
        assert _ran(ROWS, named, tmp_path, 2) == _ran(ROWS, named, tmp_path, 1)


def _only_in_workers(monkeypatch: pytest.MonkeyPatch, do: str) -> None:
    """Rows with ``row9`` in them end their worker, or fail."""
    parent = os.getpid()
    compact = RowMaker._compact

    def compact_or_not(self: RowMaker, transcript: Transcript, guidance: str) -> Compaction:
        if b"row9" in transcript.source() and os.getpid() != parent:
            if do == "die":
                os._exit(9)
            raise ZeroDivisionError("on purpose")
        return compact(self, transcript, guidance)

    monkeypatch.setattr(RowMaker, "_compact", compact_or_not)


@pytest.mark.parametrize(("do", "reason"), [("die", "the process that worked on it died"), ("fail", "on purpose")])
def test_one_bad_row_is_passed_on_and_the_others_are_compacted(
    do: str, reason: str, tmp_path: Path, run_config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, expected, _ = _ran(ROWS, run_config, tmp_path, 1)
    _only_in_workers(monkeypatch, do)
    report, out, _ = _ran(ROWS, run_config, tmp_path, 2)
    lines = expected.splitlines(keepends=True)
    assert lines[9] != _row(9)
    assert out.splitlines(keepends=True) == [*lines[:9], _row(9), *lines[10:]]
    assert report.counts == {**whole.counts, "compacted": whole.counts["compacted"] - 1, "failed": 1}
    (bad,) = (item for item in report.transcripts if item.outcome is Outcome.FAILED)
    assert bad.line == 10
    assert reason in bad.reason
    assert report.exit_code == 3
