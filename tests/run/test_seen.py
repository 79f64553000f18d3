"""Inputs that needed nothing are read once, as long as they and the orders stay the same."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from compactor_cli.model.report import InputReport, Outcome
from compactor_cli.model.settings import Settings, Size
from compactor_cli.read.sources import InputSource
from compactor_cli.run import jobs as jobs_module
from compactor_cli.run.jobs import Job, RunConfig
from compactor_cli.run.outputs import Target, TargetKind
from compactor_cli.run.runner import UNCHANGED_REASON, UnchangedCache, run_batch, seen_file

LONG_AGO = 1_700_000_000


def _session(name: str, steps: int) -> bytes:
    lines = [
        {"role": role, "content": f"{name} {role} {step}: word{step} about src/file_{step}.py " * 9}
        for step in range(steps)
        for role in ("user", "assistant")
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three small sessions and a large one, none of them new."""
    found = []
    for name, steps in (("a", 1), ("b", 2), ("c", 1), ("large", 20)):
        path = tmp_path / "tree" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(_session(name, steps))
        os.utime(path, (LONG_AGO, LONG_AGO))
        found.append(path)
    return found


@pytest.fixture
def run_config() -> RunConfig:
    return RunConfig(settings=Settings(target=Size(tokens=1_500)))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the inputs that were opened to be worked on, so far."""
    names: list[str] = []
    open_stream = jobs_module.open_stream

    def watched(path: str, *more: object, **named: object) -> object:
        names.append(Path(path).name)
        return open_stream(path, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs_module, "open_stream", watched)
    return names


def _run(files: Sequence[Path], run_config: RunConfig, folder: Path, opened: list[str]) -> list[InputReport]:
    opened.clear()
    jobs = [
        Job(
            source=InputSource(path=str(file), name=file.name, root=str(file.parent)),
            target=Target(path=str(file), kind=TargetKind.IN_PLACE),
        )
        for file in files
    ]
    seen = UnchangedCache(seen_file(folder / "cache", run_config, TargetKind.IN_PLACE))
    return list(run_batch(jobs, run_config, seen=seen))


def test_what_needed_nothing_is_not_read_again(
    files: list[Path], run_config: RunConfig, tmp_path: Path, opened: list[str]
) -> None:
    first = _run(files, run_config, tmp_path, opened)
    assert [report.outcome for report in first] == [*[Outcome.UNCHANGED] * 3, Outcome.COMPACTED]
    os.utime(files[3], (LONG_AGO, LONG_AGO))
    assert [report.outcome for report in _run(files, run_config, tmp_path, opened)] == [Outcome.UNCHANGED] * 4
    assert opened == ["large.jsonl"]  # it was written, and is looked at once as it is now
    third = _run(files, run_config, tmp_path, opened)
    assert opened == []
    assert [report.reason for report in third] == [UNCHANGED_REASON] * 4
    for known, report in zip(first[:3], third, strict=False):
        sizes = ("path", "sha256", "counts", "tokens_before", "tokens_after", "bytes_before", "bytes_after", "output")
        assert [getattr(report, name) for name in sizes] == [getattr(known, name) for name in sizes]


def test_what_changed_is_read(files: list[Path], run_config: RunConfig, tmp_path: Path, opened: list[str]) -> None:
    _run(files, run_config, tmp_path, opened)
    with files[0].open("ab") as file:
        file.write(_session("more", 30))
    files[1].write_bytes(_session("x", 2))  # of the same size, at another time
    replaced = files[2].with_suffix(".new")
    replaced.write_bytes(_session("y", 1))
    os.utime(replaced, (LONG_AGO, LONG_AGO))
    replaced.replace(files[2])  # of the same size and time
    reports = _run(files[:3], run_config, tmp_path, opened)
    assert opened == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert reports[0].outcome is Outcome.COMPACTED


def test_what_was_only_touched_is_known_by_its_hash(
    files: list[Path], run_config: RunConfig, tmp_path: Path, opened: list[str]
) -> None:
    _run(files, run_config, tmp_path, opened)
    os.utime(files[0], (LONG_AGO + 5, LONG_AGO + 5))
    for _ in range(2):
        assert _run(files[:2], run_config, tmp_path, opened)[0].reason == UNCHANGED_REASON
        assert opened == []


def test_other_orders_read_everything(
    files: list[Path], run_config: RunConfig, tmp_path: Path, opened: list[str]
) -> None:
    _run(files, run_config, tmp_path, opened)
    smaller = replace(run_config, settings=Settings(target=Size(tokens=1_400)))
    for other in (smaller, replace(run_config, dialect="openai-chat")):
        _run(files[:3], other, tmp_path, opened)
        assert len(opened) == 3
    _run(files[:3], run_config, tmp_path, opened)
    assert opened == []


def test_what_was_written_just_now_is_not_trusted(
    files: list[Path], run_config: RunConfig, tmp_path: Path, opened: list[str]
) -> None:
    soon = time.time() + 3_600  # however slow this machine is
    os.utime(files[0], (soon, soon))
    _run(files[:2], run_config, tmp_path, opened)
    _run(files[:2], run_config, tmp_path, opened)
    assert opened == ["a.jsonl"]


def test_what_a_person_should_see_is_reported_again(
    files: list[Path], run_config: RunConfig, tmp_path: Path, opened: list[str]
) -> None:
    files[0].write_bytes(b"oops\n")
    files[1].write_bytes(json.dumps({"role": "system", "content": "word " * 4_000}).encode() + b"\n")
    for file in files[:2]:
        os.utime(file, (LONG_AGO, LONG_AGO))
    for _ in range(2):
        failed, over, _ = _run(files[:3], run_config, tmp_path, opened)
        assert failed.outcome is Outcome.FAILED
        assert over.transcripts[0].over_target
        assert opened[:2] == ["a.jsonl", "b.jsonl"]


def test_a_damaged_memory_is_no_memory(
    files: list[Path], run_config: RunConfig, tmp_path: Path, opened: list[str]
) -> None:
    _run(files, run_config, tmp_path, opened)
    (memory,) = (tmp_path / "cache").rglob("*.json")
    assert memory.stat().st_mode & 0o077 == 0
    for damage in (b"", b"[]", b'{"a": [1]}', memory.read_bytes()[:-9]):
        memory.write_bytes(damage)
        _run(files[:3], run_config, tmp_path, opened)
        assert len(opened) == 3


def test_a_memory_that_cannot_be_written_does_no_harm(
    files: list[Path], run_config: RunConfig, tmp_path: Path, opened: list[str]
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert len(_run(files, run_config, tmp_path, opened)) == 4
