"""A real Ray of two workers on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from llm_server.client import LlmServer
from scale_cases import TARGET, dataset, joined, plain, row

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="the extra [ray] is not installed")

COMMAND = (sys.executable, "-c", "from compactor_cli.__main__ import compactor; compactor()", "batch")


def on_ray(*arguments: object, environ: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Exit code and standard error. In a process of its own: Ray changes signals and warns at import."""
    command = [*COMMAND, *map(str, arguments), "--executor", "ray", "-j", "2"]
    done = subprocess.run(
        command, env={**os.environ, **(environ or {})}, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stderr


def test_ray_gives_the_bytes_of_a_plain_run_and_goes_on_where_it_stopped(work: Path) -> None:
    (work / "rows.jsonl").write_bytes(dataset(12, odd=True))
    (work / "torn.jsonl").write_bytes(b"{torn")
    arguments = ("rows.jsonl", "torn.jsonl", "-t", TARGET, "--output-dir", "out", "--split", "30k")
    code, said = on_ray(*arguments, "--report", "first.json")
    assert (code, "torn.jsonl:1: the last line is torn" in said) == (3, True)
    assert joined(work / "out", "rows-*.jsonl") == plain(work / "rows.jsonl")
    failed = b"".join(path.read_bytes() for path in sorted((work / "out").glob("*.failed")))
    assert [json.loads(line)["text"].strip() for line in failed.splitlines()] == ['{"weather": "fine"}', "42"]
    first = json.loads(Path("first.json").read_text())["metrics"]
    assert (first["shards_failed"], first["failed"], first["compacted"] > 0) == (1, 2, True)
    # A plain run takes what is finished, and the other way round.
    (work / "torn.jsonl").write_bytes(dataset(1))
    done = subprocess.run([*COMMAND, *arguments, "--report", "-"], capture_output=True, text=True, check=False)
    again = json.loads(done.stdout)["metrics"]
    assert (again["shards"], again["shards_skipped"], again["failed"]) == (1, first["shards"], 2)


def test_the_limit_on_requests_is_one_for_all_workers(work: Path, llm_server: LlmServer) -> None:
    (work / "rows.jsonl").write_bytes(b"".join(row(number, 12) for number in range(6)))
    model = ("-m", "openai/well", "--api-base", llm_server.openai, "--set", "max-requests=3", "--set", "cache=false")
    environ = {"OPENAI_API_KEY": "sk-of-this-test-0123456789"}
    arguments = ("rows.jsonl", "-t", "2500", "--output-dir", "out", "--split", "30k", "--report", "report.json", "-v")
    code, said = on_ray(*arguments, *model, environ=environ)
    assert (code, len(llm_server.requests())) == (0, 3)
    assert "openai/well: 3 requests" in said
    metrics = json.loads(Path("report.json").read_text())["metrics"]
    assert metrics["fell_back"] == metrics["compacted"] - 3 > 0


def test_a_cluster_that_does_not_answer_is_an_error(work: Path) -> None:
    (work / "rows.jsonl").write_bytes(dataset(1))
    code, said = on_ray("rows.jsonl", "--output-dir", "out", "--address", "127.0.0.1:1")
    assert (code, "check --address" in said) == (75, True)
