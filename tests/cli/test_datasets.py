"""Rows of training data: one shape for Arrow, a row a window, the summariser's own calls, metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Run, conversation

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def dataset(path: Path) -> None:
    """Rows that differ in what they have: tools, calls, arguments, metadata, weights."""
    tool = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}}}
    plain = [message for message in conversation(8) if message["role"] != "tool" and not message.get("tool_calls")]
    rows = [
        {"messages": conversation(8), "tools": [tool], "metadata": {"split": "train", "score": 1}},
        {"messages": plain, "tools": [], "metadata": {"split": "test"}},
        {"messages": conversation(9), "tools": [tool], "metadata": {"by": ["me"]}},
    ]
    path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def test_rows_have_the_same_keys_after_compaction(work: Path, compact: Run) -> None:
    dataset(work / "in.jsonl")
    assert compact("-t", "600", "in.jsonl", "-o", "out.jsonl").code == 0
    before, after = rows_of(work / "in.jsonl"), rows_of(work / "out.jsonl")
    assert [list(row) for row in after] == [list(row) for row in before]
    known = {key for row in before for message in row["messages"] for key in message}
    summaries = [m for row in after for m in row["messages"] if "[compact/1 " in str(m["content"])]
    assert summaries
    assert all(message.keys() <= known and message["role"] == "user" for message in summaries)


@pytest.mark.parametrize("name", [(), ("--to", "openai-chat"), ("--to", "sharegpt")])
def test_columns_for_arrow_have_one_type_each(name: tuple[str, ...], work: Path, compact: Run) -> None:
    dataset(work / "in.jsonl")
    assert compact("-t", "600", "--set", "arrow=true", *name, "in.jsonl", "-o", "out.jsonl").code == 0
    rows = rows_of(work / "out.jsonl")
    assert len({frozenset(row) for row in rows}) == 1
    assert all(isinstance(row["tools"], str) and isinstance(row["metadata"], str) for row in rows)
    assert json.loads(rows[0]["metadata"]) == {"split": "train", "score": 1}
    assert json.loads(rows[1]["tools"]) == []
    for message in (message for row in rows for message in row.get("messages", ())):
        assert isinstance(message["content"], str)
        assert isinstance(message["tool_calls"], list)
        assert isinstance(message["tool_call_id"], str)
        assert all(isinstance(call["function"]["arguments"], str) for call in message["tool_calls"])


def test_a_session_is_no_row_without_a_format_for_rows(work: Path, compact: Run) -> None:
    done = compact("--set", "arrow=true", "session.jsonl")
    assert done.code == 3
    assert "--to" in done.err


def test_a_session_that_was_compacted_becomes_a_row_a_window(work: Path, compact: Run) -> None:
    words = ("--no-compact", "--to", "openai-chat")
    one = compact(*words, SAMPLES / "claude-code-compacted.jsonl")
    two = compact(*words, "--set", "split-at-boundaries=true", SAMPLES / "claude-code-compacted.jsonl")
    assert (one.code, two.code) == (0, 0)
    first, second = two.out.splitlines(keepends=True)
    assert second == one.out
    assert "This session is being continued" not in str(json.loads(first)["messages"][0])
    assert "This session is being continued" in str(json.loads(second)["messages"][0])
    assert (
        len(compact(*words, "--set", "split-at-boundaries=true", SAMPLES / "claude-code.jsonl").out.splitlines()) == 1
    )
    assert compact("--set", "split-at-boundaries=true", "session.jsonl").code == 2


def test_a_row_a_window_loses_nothing_that_an_earlier_row_holds_and_no_record_twice(work: Path, compact: Run) -> None:
    def lost(*words: str) -> dict[str, int]:
        session = SAMPLES / "claude-code-compacted.jsonl"
        assert compact("--no-compact", "--to", "openai-chat", *words, session, "--report", "report.json").code == 0
        found: dict[str, int] = json.loads((work / "report.json").read_text())["inputs"][0]["not_carried"]
        return found

    whole, split = lost(), lost("--set", "split-at-boundaries=true")
    assert whole["messages that were no longer sent"] > 0
    assert "messages that were no longer sent" not in split
    assert [split[what] for what in ("usage counters", "bookkeeping records")] == [18, 3]
    assert [whole[what] for what in ("usage counters", "bookkeeping records")] == [18, 3]
    assert split["timestamps"] > whole["timestamps"], "of the messages of both rows"


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_summarisers_own_calls_are_rows(processes: str, work: Path, compact: Run) -> None:
    words = ("-t", "1k", "-j", processes, "rows.jsonl", "-o", "out.jsonl", "--set", "summary-rows=calls.jsonl")
    assert compact(*words).code == 0
    outputs = [row["messages"] for row in rows_of(work / "out.jsonl")]
    calls = rows_of(work / "calls.jsonl")
    assert len(calls) == sum("[compact/1 " in str(messages) for messages in outputs) > 0
    for row in calls:
        assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]
        _, prompt_input, answer = (message["content"] for message in row["messages"])
        assert "<<transcript>>" in prompt_input
        assert "[compact/1 " not in answer
        assert row["transcript"]
        assert any(answer in str(message["content"]) for messages in outputs for message in messages)


def test_metrics_of_all_rows_in_one_file(work: Path, compact: Run) -> None:
    odd = b'{"note": "no conversation"}\n'
    (work / "rows.jsonl").write_bytes((work / "rows.jsonl").read_bytes() + odd)
    done = compact(
        "-t", "1200", "rows.jsonl", "-o", "out.jsonl", "--metrics", "metrics.json", "--report", "report.json"
    )
    assert done.code == 3
    metrics = json.loads((work / "metrics.json").read_bytes())
    (report,) = json.loads((work / "report.json").read_bytes())["inputs"]
    assert metrics["conversations"]["total"] == 6
    assert metrics["conversations"]["failed"] == 1
    assert metrics["conversations"]["compacted"] == report["counts"]["compacted"]
    assert metrics["tokens"]["before"] == report["tokens_before"]
    assert metrics["tokens"]["after"] == report["tokens_after"]
    assert 0 < metrics["each"]["ratio"]["p5"] <= metrics["each"]["ratio"]["p95"] < 1
    assert metrics["summaries"]["digest"] >= 1
    (failure,) = metrics["failures"]
    assert failure["input"] == "rows.jsonl"
    assert "rows.jsonl:6" in failure["reason"]
    assert (work / "out.jsonl").read_bytes().endswith(odd)


def test_parquet_and_columns_are_sent_to_the_command_that_reads_them(work: Path, compact: Run) -> None:
    Path("rows.parquet").write_bytes(b"PAR1\x15\x04\x15\x10 rows PAR1")
    ran = compact("-t", "1k", "rows.parquet")
    assert ran.code == 3
    assert "rows.parquet:1: Parquet: compact it with: compactor batch rows.parquet --output-dir DIR" in ran.err
    ran = compact("--column", "chat", "rows.jsonl")
    assert ran.code == 2
    assert "--column is an option for datasets in shards, also of Parquet: see compactor batch --help" in ran.err
