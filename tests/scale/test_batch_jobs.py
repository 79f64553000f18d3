"""Batch jobs of a provider, against the loopback server's files and batches."""

from __future__ import annotations

import json
import stat
from contextlib import closing
from pathlib import Path

import pytest
from llm_server.client import LlmServer
from scale_cases import Batch, dataset, row

from compactor_cli.run.provider import BatchJobLog

LATER = 75


@pytest.fixture
def rows(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset, and a key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-0123456789")
    path = work / "rows.jsonl"
    path.write_bytes(b"".join(row(number, 12) for number in range(4)) + row(9, 1))
    return path


def model_options(server: LlmServer, model: str = "well") -> tuple[str, ...]:
    return ("-m", f"openai/{model}", "--api-base", server.openai, "-t", "2500", "--output-dir", "out")


def live(server: LlmServer) -> int:
    """Requests that were no part of a batch job."""
    return sum(bool(entry["model"]) and not entry.get("batch") for entry in server.requests())


def test_the_summaries_are_those_of_live_calls(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    llm_server.control(batch={"looks": 1})
    code, _, said = batch("submit", "rows.jsonl", *model_options(llm_server), "-v")
    assert (code, "round 1: 4 requests sent" in said) == (0, True)
    assert sorted(path.name for path in Path("out").iterdir()) == [".compact-batch.sqlite"]
    assert stat.S_IMODE(Path("out/.compact-batch.sqlite").stat().st_mode) == 0o600
    code, shown, _ = batch("status", "out")
    assert (code, "in_progress" in shown, "0 of 1 outputs written" in shown) == (0, True, True)
    code, _, said = batch("collect", "out", "-v")
    assert (code, "5 conversations" in said) == (0, True)
    assert "4 replies, 0 failed" in batch("status", "out")[1]
    assert live(llm_server) == 0
    assert batch("rows.jsonl", *model_options(llm_server)[:-1], "live")[0] == 0
    assert live(llm_server) == 4
    assert Path("out/rows.jsonl").read_bytes() == Path("live/rows.jsonl").read_bytes()
    assert batch("collect", "out")[0] == 0  # nothing more to do


def test_what_a_killed_run_left_is_cleared_away(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    llm_server.control(batch={"looks": 1})
    left = [Path(folder, f".compact-{number:016x}.tmp") for number, folder in enumerate(("out", "archive", "out"))]
    for path in left[:2]:
        path.parent.mkdir()
        path.write_bytes(b"half of an output")
    batch("submit", "rows.jsonl", *model_options(llm_server), "--archive-dir", "archive")
    assert not [path for path in left if path.exists()]
    left[2].write_bytes(b"half of an output")
    batch("collect", "out")
    assert not left[2].exists()


def test_what_is_collected_from_another_folder_is_archived_in_the_same_place(
    rows: Path, batch: Batch, llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    llm_server.control(batch={"looks": 1})
    batch("submit", "rows.jsonl", *model_options(llm_server), "--archive-dir", "archive")
    batch("status", "out")
    monkeypatch.chdir(tmp_path)
    assert batch("collect", rows.with_name("out"))[0] == 0
    assert rows.with_name("archive").joinpath("MANIFEST.jsonl").exists()
    assert not Path("archive").exists()


def test_a_job_under_way_is_waited_for(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    llm_server.control(batch={"looks": 2})
    batch("submit", "rows.jsonl", *model_options(llm_server))
    for code in (LATER, LATER, 0):
        assert batch("collect", "out")[0] == code
        assert Path("out/rows.jsonl").exists() is (code == 0)


def test_leaves_first_then_what_joins_them(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    # Few enough steps that the server, which keeps the oldest of equal facts, still tells of those that matter most.
    rows.write_bytes(row(0, 60) + row(1, 12))
    code, _, said = batch("submit", "rows.jsonl", *model_options(llm_server), "-v")
    leaves = int(said.split("round 1: ")[1].split()[0]) - 1
    assert (code, leaves > 1) == (0, True)
    code, _, said = batch("collect", "out", "-v")
    assert (code, "round 2: 1 requests sent" in said) == (LATER, True)
    assert batch("collect", "out")[0] == 0
    assert live(llm_server) == 0
    assert batch("rows.jsonl", *model_options(llm_server)[:-1], "live")[0] == 0
    assert Path("out/rows.jsonl").read_bytes() == Path("live/rows.jsonl").read_bytes()


def test_prompts_that_are_too_long_are_cut_again(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    rows.write_bytes(row(0, 60))
    batch("submit", "rows.jsonl", *model_options(llm_server, "context.30000"), "--rounds", "8")
    codes = [batch("collect", "out")[0]]
    while codes[-1] == LATER and len(codes) < 9:
        codes.append(batch("collect", "out")[0])
    assert (codes[0], codes[-1]) == (LATER, 0)
    run_report = BatchJobLog.open(Path("out"))
    tally = run_report.tally()
    run_report.close()
    assert tally["faults"] >= 1
    assert tally["replies"] >= 3  # two halves and what joins them
    assert json.loads(Path("out/rows.jsonl.done").read_text())["metrics"]["fell_back"] == 0


@pytest.mark.parametrize(
    ("model", "reason"),
    [("chat", "no-summary"), ("server_error", "Internal server error"), ("policy", "content policy")],
)
def test_what_fails_is_written_by_the_digest(
    rows: Path, batch: Batch, llm_server: LlmServer, model: str, reason: str
) -> None:
    batch("submit", "rows.jsonl", *model_options(llm_server, model))
    codes = [batch("collect", "out")[0]]
    if codes[-1] == LATER:  # a reply that was not accepted is asked for once more
        codes.append(batch("collect", "out")[0])
    assert codes[-1] == 0
    done = json.loads(Path("out/rows.jsonl.done").read_text())["metrics"]
    assert (done["fell_back"], done["compacted"], live(llm_server)) == (4, 4, 0)
    assert batch("run", "rows.jsonl", "-t", "2500", "--output-dir", "digest")[0] == 0
    assert Path("out/rows.jsonl").read_bytes() == Path("digest/rows.jsonl").read_bytes()


def test_what_a_job_did_not_get_to_is_asked_live_if_asked_for(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    llm_server.control(batch={"ends": "expired", "share": 0.5})
    batch("submit", "rows.jsonl", *model_options(llm_server))
    assert batch("collect", "out", "--live")[0] == 0
    assert live(llm_server) == 2
    assert json.loads(Path("out/rows.jsonl.done").read_text())["metrics"]["fell_back"] == 0


def test_no_round_beyond_the_last_and_paid_parts_are_used(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    rows.write_bytes(row(0, 120))
    batch("submit", "rows.jsonl", *model_options(llm_server), "--rounds", "1")
    assert batch("collect", "out")[0] == 0
    assert json.loads(Path("out/rows.jsonl.done").read_text())["metrics"]["fell_back"] == 0
    assert live(llm_server) == 0
    assert batch("run", "rows.jsonl", "-t", "2500", "--output-dir", "digest")[0] == 0
    assert Path("out/rows.jsonl").read_bytes() != Path("digest/rows.jsonl").read_bytes()


def test_a_job_begun_by_a_process_that_died_is_taken_up_not_paid_twice(
    rows: Path, batch: Batch, llm_server: LlmServer
) -> None:
    batch("submit", "rows.jsonl", *model_options(llm_server))
    run_report = BatchJobLog.open(Path("out"))
    keys = [key for (key,) in run_report._do("SELECT key FROM calls")]
    run_report._do("UPDATE jobs SET name = '', status = 'sending'")  # as if it had died before it heard of the job
    for key in keys:
        run_report._do("UPDATE calls SET job = NULL, line = '{}' WHERE key = ?", key)
    run_report.close()
    assert batch("collect", "out")[0] == 0
    assert len([entry for entry in llm_server.requests() if entry["path"] == "/v1/batches"]) == 1
    assert json.loads(Path("out/rows.jsonl.done").read_text())["metrics"]["fell_back"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "max-requests=2"), "over the limit 2"),
        (("--max-cost", "1"), "price of openai/well is not known"),
        (("-m", "anthropic/claude-haiku-4-5"), "no batch jobs with this provider"),
        (("-m", "auto"), "a batch job asks one model"),
    ],
)
def test_what_cannot_be_submitted_leaves_nothing(
    rows: Path, batch: Batch, llm_server: LlmServer, arguments: tuple[str, ...], said: str
) -> None:
    for _ in range(2):
        code, _, error = batch("submit", "rows.jsonl", *model_options(llm_server), *arguments)
        assert (code, said in error) == (2, True)
    assert llm_server.requests() == []


def test_a_second_submission_and_an_empty_folder_are_errors(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    assert "no batch jobs were begun here" in batch("collect", ".")[2]
    batch("submit", "rows.jsonl", *model_options(llm_server))
    code, _, said = batch("submit", "rows.jsonl", *model_options(llm_server))
    assert (code, "begun here already" in said) == (2, True)
    assert batch("submit", "rows.jsonl", "-t", "2500", "--output-dir", "other")[0] == 2


def test_a_provider_that_does_not_answer_loses_nothing(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    code, _, said = batch("submit", "rows.jsonl", *model_options(llm_server), "--api-base", "http://127.0.0.1:1/v1")
    assert (code, "nothing is lost" in said) == (LATER, True)
    assert "sk-of-this-test" not in said
    assert b"sk-of-this-test" not in Path("out/.compact-batch.sqlite").read_bytes()


def test_rows_without_a_summary_need_no_job(work: Path, batch: Batch, llm_server: LlmServer) -> None:
    (work / "rows.jsonl").write_bytes(dataset(1))
    assert batch("submit", "rows.jsonl", *model_options(llm_server))[0] == 0
    assert Path("out/rows.jsonl").read_bytes() == dataset(1)
    assert llm_server.requests() == []


def test_the_log_of_another_version_is_an_error_that_names_the_next_step(tmp_path: Path, batch: Batch) -> None:
    with closing(BatchJobLog(tmp_path)) as job_log:
        job_log.store_request({"orders": {}})
    for command in ("collect", "status"):
        code, _, error = batch(command, str(tmp_path))
        assert (code, "collect with the version that submitted them" in error) == (2, True)
