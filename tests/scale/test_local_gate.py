"""Several processes of this machine that ask a model, with one rate limit and one account."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from llm_server.client import LlmServer
from scale_cases import Batch, joined, row

from compactor_cli.llm.limits import RateLimits, SpendLimits
from compactor_cli.llm.model_calls import Call, LimitReached
from compactor_cli.run.model_run import GateAnswer, SharedSpend, local_gate


def test_the_gate_answers_several_at_once_and_sees_them_go() -> None:
    call = Call(model="openai/well", messages=(), max_tokens=10, input_tokens=100)
    with local_gate(RateLimits(), SpendLimits(requests=2)) as connect:
        for _ in range(2):
            with connect() as one, connect() as two:
                one.acquire.remote(10).result()
                SharedSpend(two, GateAnswer.result).reserve(call)
        with connect() as three, pytest.raises(LimitReached):
            SharedSpend(three, GateAnswer.result).reserve(call)
        with connect() as four:
            assert four.spent.remote().result().requests == 2


@pytest.fixture
def rows(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset, and a key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-0123456789")
    (work / "rows.jsonl").write_bytes(b"".join(row(number, 12) for number in range(6)))
    return work


def model_options(server: LlmServer) -> tuple[str, ...]:
    model = ("-m", "openai/well", "--api-base", server.openai, "--set", "cache=false")
    return ("rows.jsonl", "-t", "2500", "--split", "30k", *model)


def test_processes_give_the_bytes_of_one(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    assert batch(*model_options(llm_server), "--output-dir", "many", "-j", "3")[0] == 0
    assert batch(*model_options(llm_server), "--output-dir", "one")[0] == 0
    assert joined(rows / "many", "*.jsonl") == joined(rows / "one", "*.jsonl")
    assert len(llm_server.requests()) == 12


def test_the_limit_on_requests_is_one_for_all_processes(rows: Path, batch: Batch, llm_server: LlmServer) -> None:
    run_options = ("--output-dir", "out", "-j", "3", "--set", "max-requests=4", "--report", "report.json", "-v")
    code, _, said = batch(*model_options(llm_server), *run_options)
    assert (code, len(llm_server.requests())) == (0, 4)
    assert "openai/well: 4 requests" in said
    assert json.loads(Path("report.json").read_text())["metrics"]["fell_back"] == 2
