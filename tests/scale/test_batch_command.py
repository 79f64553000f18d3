"""``compactor batch`` on this machine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from llm_server.client import LlmServer
from scale_cases import TARGET, Batch, dataset, joined, plain, row

RUN = ("-t", TARGET, "--output-dir", "out")
SMALL = ("--split", "20k")


def test_shares_and_processes_give_the_bytes_of_a_plain_run(work: Path, batch: Batch) -> None:
    (work / "rows.jsonl").write_bytes(dataset(12, odd=True))
    expected = plain(work / "rows.jsonl")
    for index in (2, 3, 1):
        code, _, said = batch("rows.jsonl", *RUN, *SMALL, "--shard", f"{index}/3", "-q")
        assert (code, said) in ((0, ""), (3, ""))
    assert joined(work / "out", "rows-*.jsonl") == expected
    assert len(list((work / "out").glob("*.failed"))) > 0
    code, _, said = batch("rows.jsonl", "-t", TARGET, "--output-dir", "many", *SMALL, "-j", "2")
    assert code == 3
    assert "failed and were passed on unchanged" in said
    assert joined(work / "many", "rows-*.jsonl") == expected


def test_hidden_folders_are_taken_when_asked_for_but_never_the_archive(work: Path, batch: Batch) -> None:
    for folder in (".agent", ".transcripts"):
        (work / "data" / folder).mkdir(parents=True)
        (work / "data" / folder / "rows.jsonl").write_bytes(dataset(1))
    assert batch("-r", "data", "--hidden", *RUN)[0] == 0
    assert [path.parent.name for path in (work / "out").rglob("rows.jsonl")] == [".agent"]


def test_a_run_goes_on_where_another_one_stopped(work: Path, batch: Batch) -> None:
    (work / "rows.jsonl").write_bytes(dataset(8))
    (work / "torn.jsonl").write_bytes(b"{torn")
    code, _, said = batch("torn.jsonl", "rows.jsonl", *RUN, "--report", "first.json")
    assert (code, "torn.jsonl:1: the last line is torn" in said) == (3, True)
    (work / "torn.jsonl").write_bytes(dataset(1))
    assert batch("torn.jsonl", "rows.jsonl", *RUN, "--report", "second.json")[0] == 0
    first, second = (json.loads(Path(name).read_text())["metrics"] for name in ("first.json", "second.json"))
    assert (first["shards"], first["shards_failed"]) == (1, 1)
    assert (second["shards"], second["shards_skipped"]) == (1, 1)
    assert second["tokens_before"] > first["tokens_before"] > 0
    assert batch("torn.jsonl", "rows.jsonl", *RUN, "-f", "--report", "-")[1].count('"shards": 2') == 1


def test_a_report_takes_the_place_of_no_output(work: Path, batch: Batch) -> None:
    (work / "rows.jsonl").write_bytes(dataset(1))
    assert batch("rows.jsonl", *RUN)[0] == 0
    before = (work / "out/rows.jsonl").read_bytes()
    (work / "out/rows.jsonl").unlink()
    code, _, said = batch("rows.jsonl", *RUN, "--report", "out/rows.jsonl")
    assert (code, "out/rows.jsonl: is an input, a result" in said) == (2, True)
    assert batch("rows.jsonl", *RUN)[0] == 0
    assert (work / "out/rows.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rows.jsonl",), "--output-dir DIR"),
        (("rows.jsonl", "--output-dir", "out", "--shard", "4/3"), "from 1/N to N/N"),
        (("rows.jsonl", "--output-dir", "out", "--shard", "0/3"), "from 1/N to N/N"),
        (("rows.jsonl", "--output-dir", "out", "--split", "lots"), "write 64M or 1G"),
        (("rows.jsonl", "--output-dir", "out", "--executor", "spark"), "local or ray"),
        (("rows.jsonl", "--output-dir", "out", "--engine", "ray"), "no such option"),
        (("rows.jsonl", "--output-dir", "out", "--to", "anthropic"), "no such option"),
        (("rows.jsonl", "--output-dir", "out", "--html", "page.html"), "no such option"),
        (("rows.jsonl", "--output-dir", "out", "--set", "hook-before=true"), "compactor batch takes no hook-before"),
        (("rows.jsonl", "--output-dir", "out", "--set", "dry-run=true"), "compactor batch takes no dry-run"),
        (("rows.jsonl", "--output-dir", "out", "--rpm", "60"), "--rpm is a key: write --set rpm=VALUE"),
        (("rows.jsonl", "--output-dir", "out", "--address", "auto"), "add --executor ray"),
        (("-", "--output-dir", "out"), "standard input cannot be parted"),
    ],
)
def test_what_cannot_be_meant_is_refused(work: Path, batch: Batch, arguments: tuple[str, ...], said: str) -> None:
    (work / "rows.jsonl").write_bytes(dataset(2))
    code, _, error = batch(*arguments)
    assert (code, said in error) == (2, True)
    assert not Path("out").exists()


def test_what_is_configured_and_not_used_is_warned_of(
    work: Path, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "rows.jsonl").write_bytes(dataset(2))
    monkeypatch.setenv("COMPACT_SUMMARISER", "mine")
    code, _, said = batch("rows.jsonl", *RUN)
    assert (code, "summariser is set, and compactor batch does not use it" in said) == (0, True)


def test_trees_keep_their_shape_and_outputs_are_no_inputs(work: Path, batch: Batch) -> None:
    for name in ("a/rows.jsonl", "b/c/rows.jsonl"):
        path = work / "data" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(dataset(3))
    for _ in range(2):
        assert batch("-r", "data", "-t", TARGET, "--output-dir", "data/out")[0] == 0
    outputs = sorted(str(path.relative_to("data/out")) for path in Path("data/out").rglob("*.jsonl"))
    assert outputs == ["a/rows.jsonl", "b/c/rows.jsonl"]


def test_a_run_that_is_stopped_leaves_whole_outputs_and_goes_on(
    work: Path, batch: Batch, llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-0123456789")
    (work / "rows.jsonl").write_bytes(b"".join(row(number, 12) for number in range(3)))
    model = ("-m", "openai/well", "--api-base", llm_server.openai, "--set", "cache=false")
    arguments = ("rows.jsonl", "-t", "2500", "--output-dir", "out", "--split", "10k", *model)
    llm_server.control(answers=1)
    command = [sys.executable, "-c", "from compactor_cli.__main__ import compactor; compactor()", "batch", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        # Until one shard is whole and another one waits for its reply.
        while process.poll() is None and not (list(Path("out").glob("*.done")) and len(llm_server.requests()) > 1):
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    done = len(list(Path("out").glob("*.done")))
    assert len(list(Path("out").iterdir())) == 2 * done > 0
    llm_server.control()
    code, shown, _ = batch(*arguments, "--report", "-")
    metrics = json.loads(shown)["metrics"]
    assert (code, metrics["shards_skipped"], metrics["compacted"], metrics["fell_back"]) == (0, done, 3, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "3 of 3 summaries fell back to the digest: the model gave none"),
        (("--on-failure", "keep"), "3 of 3 conversations were left as they were: the model gave no summary"),
    ],
)
def test_a_model_that_never_answered_is_stated(
    work: Path,
    batch: Batch,
    llm_server: LlmServer,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-0123456789")
    (work / "rows.jsonl").write_bytes(b"".join(row(number, 12) for number in range(3)))
    model = ("-m", "openai/auth", "--api-base", llm_server.openai, "--set", "cache=false", *options)
    code, _, shown = batch("rows.jsonl", "-t", "2500", "--output-dir", "out", *model)
    assert (code, said in shown) == (0, True)
