"""A run over many inputs, without the command line: what is in the reports, and what never happens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from compactor_cli.model.report import InputReport, Outcome
from compactor_cli.model.settings import Settings, Size
from compactor_cli.read.sources import InputSource, find_sources
from compactor_cli.run.jobs import AfterFailure, Job, Originals, Outputs, Purpose, RunConfig
from compactor_cli.run.outputs import Target, TargetKind
from compactor_cli.run.runner import MEMORY_PER_BYTE, affordable, memory_at_hand, run_batch
from compactor_cli.run.shards import plan_shards, run_here
from compactor_cli.run.workers import Workers


def _session(steps: int) -> bytes:
    lines = (
        {"role": role, "content": f"{role} {step}: " + f"word{step} and so on about src/file_{step}.py " * 12}
        for step in range(steps)
        for role in ("user", "assistant")
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.fixture
def run_config(tmp_path: Path) -> RunConfig:
    return RunConfig(settings=Settings(target=Size(tokens=1_500)), archive_dir=str(tmp_path / "archive"))


def _job(path: Path, target: Target | None = None) -> Job:
    source = InputSource(path=str(path), name=path.name, root=str(path.parent))
    return Job(source=source, target=target or Target(path=str(path), kind=TargetKind.IN_PLACE))


def _reports(jobs: Sequence[Job], run_config: RunConfig, **more: object) -> list[InputReport]:
    return list(run_batch(jobs, run_config, **more))  # type: ignore[arg-type]


def _write(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


@pytest.mark.parametrize("processes", [1, 2])
def test_one_report_per_job_in_their_order(processes: int, tmp_path: Path, run_config: RunConfig) -> None:
    files = [_write(tmp_path, f"{number}.jsonl", _session(number * 2)) for number in range(9)]
    files.insert(4, tmp_path / "missing.jsonl")
    reports = _reports([_job(file) for file in files], run_config, processes=processes)
    assert [report.path for report in reports] == [str(file) for file in files]
    assert reports[4].outcome is Outcome.FAILED
    assert {report.outcome for report in reports[-3:]} == {Outcome.COMPACTED}


@pytest.mark.parametrize("processes", [1, 2])
def test_after_a_failure_nothing_is_begun_if_asked_for(processes: int, tmp_path: Path, run_config: RunConfig) -> None:
    bad = _write(tmp_path, "bad.jsonl", b"oops\n")
    files = [_write(tmp_path, f"{number:03}.jsonl", _session(1)) for number in range(200)]
    stopping = replace(run_config, after_failure=AfterFailure.STOP)
    reports = _reports([_job(file) for file in (bad, *files)], stopping, processes=processes)
    assert len(reports) == 201
    assert reports[-1].outcome is Outcome.SKIPPED
    assert reports[-1].reason.startswith("not reached")


def test_purposes_other_than_acting_write_nothing(tmp_path: Path, run_config: RunConfig) -> None:
    file = _write(tmp_path, "a.jsonl", _session(20))
    for purpose in (Purpose.PLAN, Purpose.TRY):
        (report,) = _reports([_job(file)], replace(run_config, purpose=purpose))
        assert report.outcome is Outcome.COMPACTED
        assert (report.output, report.archive) == ("", "")
    assert file.read_bytes() == _session(20)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_what_fails_leaves_no_trace(tmp_path: Path, run_config: RunConfig) -> None:
    file = _write(tmp_path, "a.jsonl", _session(20) + b"{torn")
    (report,) = _reports([_job(file)], run_config)
    assert (report.outcome, report.exit_code) == (Outcome.FAILED, 3)
    assert report.error.startswith(f"{file}:41: ")
    assert file.read_bytes() == _session(20) + b"{torn"
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_an_archive_that_cannot_be_written_leaves_the_source(tmp_path: Path, run_config: RunConfig) -> None:
    file = _write(tmp_path, "a.jsonl", _session(20))
    (tmp_path / "archive").write_text("a file where the folder should be")
    (report,) = _reports([_job(file)], run_config)
    assert report.outcome is Outcome.FAILED
    assert file.read_bytes() == _session(20)


def test_a_file_that_changes_meanwhile_is_left_alone(tmp_path: Path, run_config: RunConfig) -> None:
    file = _write(tmp_path, "a.jsonl", _session(20))

    def meddle(text: str) -> None:
        file.write_bytes(_session(21))

    watched = replace(run_config, view=lambda transcript, row: "")
    (report,) = run_batch([_job(file)], watched, outputs=Outputs(show=meddle))
    assert (report.outcome, report.reason, report.exit_code) == (Outcome.FAILED, "changed", 75)
    assert file.read_bytes() == _session(21)


def test_a_defect_costs_one_input(tmp_path: Path, run_config: RunConfig) -> None:
    files = [_write(tmp_path, name, _session(20)) for name in ("a.jsonl", "b.jsonl")]

    def broken(transcript: object, row: object) -> str:
        raise ZeroDivisionError("on purpose")

    calls: list[str] = []
    watched = replace(run_config, view=broken)
    reports = list(run_batch([_job(file) for file in files], watched, outputs=Outputs(show=calls.append)))
    assert [report.outcome for report in reports] == [Outcome.FAILED, Outcome.FAILED]
    assert "ZeroDivisionError: on purpose" in reports[0].error
    assert "Traceback" in reports[0].reason


def test_originals_are_not_kept_if_asked_for(tmp_path: Path, run_config: RunConfig) -> None:
    file = _write(tmp_path, "a.jsonl", _session(20))
    (report,) = _reports([_job(file)], replace(run_config, originals=Originals.NOT_KEPT))
    assert (report.outcome, report.archive) == (Outcome.COMPACTED, "")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_report_lists_the_first_rows_and_counts_all(tmp_path: Path, run_config: RunConfig) -> None:
    row = json.dumps({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]})
    file = _write(tmp_path, "rows.jsonl", f"{row}\n".encode() * 500)
    (report,) = _reports([_job(file)], run_config)
    assert report.counts == {"unchanged": 500}
    assert len(report.transcripts) == 20


def test_a_report_lists_every_row_over_its_target_and_where_it_is(tmp_path: Path, run_config: RunConfig) -> None:
    row = json.dumps({"messages": [{"role": "system", "content": "word " * 2_000}, {"role": "user", "content": "hi"}]})
    file = _write(tmp_path, "rows.jsonl", f"{row}\n".encode() * 30)
    small = replace(run_config, settings=replace(run_config.settings, target=Size(tokens=100)))
    (report,) = _reports([_job(file)], small)
    assert [item.line for item in report.transcripts if item.over_target] == list(range(1, 31))


def test_a_line_among_rows_that_is_no_conversation_is_passed_on_and_counted(
    tmp_path: Path, run_config: RunConfig
) -> None:
    row = json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode() + b"\n"
    content = row + b'{"id": 7, "messages": "x"}\n' + row
    file = _write(tmp_path, "rows.jsonl", content)
    (report,) = _reports([_job(file)], run_config)
    assert report.counts == {"unchanged": 2, "failed": 1}
    assert report.exit_code == 3
    assert f"{file}:2: no format is recognised" in report.transcripts[1].reason
    assert file.read_bytes() == content


def test_as_many_sessions_are_worked_on_at_once_as_memory_has_room_for(tmp_path: Path) -> None:
    session = _session(3)
    needed = MEMORY_PER_BYTE * len(session)
    inputs = [(str(_write(tmp_path, f"{number}.jsonl", session)), len(session)) for number in range(5)]
    assert [affordable(inputs, 4, memory) for memory in (0, needed, 2 * needed, 3 * needed + 1, 99 * needed)] == [
        1,
        1,
        2,
        3,
        4,
    ]
    assert affordable(inputs[:2], 4, 99 * needed) == 2


def test_the_size_of_a_dataset_limits_no_processes(tmp_path: Path) -> None:
    row = json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}).encode()
    datasets = [_write(tmp_path, f"rows-{number}.jsonl", (row + b"\n") * 50) for number in range(4)]
    session = _write(tmp_path, "session.jsonl", _session(30))
    sizes = [(str(path), path.stat().st_size) for path in (*datasets, session)]
    assert affordable(sizes, 8, MEMORY_PER_BYTE * len(_session(30))) == 5


def test_sessions_that_do_not_fit_together_are_done_one_after_another(
    tmp_path: Path, run_config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memory_at_hand() > 0
    monkeypatch.setattr("compactor_cli.run.runner.memory_at_hand", lambda: 0)
    monkeypatch.setattr("compactor_cli.run.workers.Workers._new", lambda team: pytest.fail("a process was started"))
    jobs = [_job(_write(tmp_path, f"{number}.jsonl", _session(20))) for number in range(3)]
    assert [report.outcome for report in _reports(jobs, run_config, processes=3)] == [Outcome.COMPACTED] * 3


def test_shards_that_are_sessions_do_not_take_more_processes_than_memory_has_room_for(
    tmp_path: Path, run_config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    paths = [str(_write(tmp_path / "in", f"{number}.jsonl", _session(20))) for number in range(3)]
    shards = plan_shards(find_sources(paths), str(tmp_path / "out"))
    started: list[object] = []
    start = Workers._new
    monkeypatch.setattr(Workers, "_new", lambda team: (started.append(team), start(team))[1])
    monkeypatch.setattr("compactor_cli.run.runner.memory_at_hand", lambda: 0)
    assert [result.error for result in run_here(shards, run_config, processes=3)] == [""] * 3
    assert len(started) == 1
