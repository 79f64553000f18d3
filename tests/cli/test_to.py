"""``compact --to``: another format for the output, and what it does not hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_cases import Run, conversation

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def test_a_session_becomes_a_row_whole_or_compacted(work: Path, compact: Run) -> None:
    whole = compact("--no-compact", "--to", "openai-chat", SAMPLES / "claude-code.jsonl")
    small = compact("--to", "openai-chat", "-t", "25%", SAMPLES / "claude-code.jsonl")
    assert whole.code == small.code == 0
    rows = [json.loads(ran.out) for ran in (whole, small)]
    assert len(rows[0]["messages"]) > len(rows[1]["messages"])
    assert any("[compact/1 " in str(message["content"]) for message in rows[1]["messages"])
    assert whole.err.count("\n") == 1
    assert "usage counters" in whole.err
    assert "openai-chat cannot hold them" in whole.err


def test_each_row_of_a_dataset_becomes_one_and_what_is_lost_is_stated_once(work: Path, compact: Run) -> None:
    done = compact(
        "--to", "anthropic", "-t", "1k", "rows.jsonl", "-o", "out.jsonl", "--report", "report.json", "-j", "2"
    )
    assert done.code == 0
    rows = [json.loads(line) for line in (work / "out.jsonl").read_bytes().splitlines()]
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4]
    assert all(row["license"] == "MIT" and row["messages"][0]["role"] == "user" for row in rows)
    (report,) = json.loads((work / "report.json").read_bytes())["inputs"]
    assert report["not_carried"] == {}
    lost = compact("--to", "sharegpt", "--no-compact", "rows.jsonl", "-o", "more.jsonl", "--report", "report.json")
    (report,) = json.loads((work / "report.json").read_bytes())["inputs"]
    assert report["not_carried"] == {"call ids": 40}
    assert lost.err == "compact: rows.jsonl: call ids 40: sharegpt cannot hold them\n"


def test_the_source_is_not_touched_and_what_cannot_be_is_refused(work: Path, compact: Run) -> None:
    before = (work / "session.jsonl").read_bytes()
    for words in (
        ("-i", "--to", "anthropic"),
        ("--append", "--to", "anthropic"),
        ("--to", "openhands"),
        ("--no-compact",),
        ("--no-compact", "--to", "anthropic", "-t", "2k"),
    ):
        done = compact(*words, "session.jsonl")
        assert (done.code, done.out) == (2, b""), words
        assert done.err.startswith("compact: ")
    assert (work / "session.jsonl").read_bytes() == before


def test_a_row_that_is_no_conversation_is_passed_on_and_counted(work: Path, compact: Run) -> None:
    odd = b'{"note": "no conversation"}\n'
    good = json.dumps({"messages": conversation(2)}).encode() + b"\n"
    (work / "odd.jsonl").write_bytes(good + odd + good)
    done = compact("--no-compact", "--to", "anthropic", "odd.jsonl")
    assert done.code == 3
    assert done.out.splitlines(keepends=True)[1] == odd
    assert len(done.out.splitlines()) == 3


@pytest.mark.parametrize("as_json", [False, True])
def test_the_table_of_formats_shows_what_each_can_hold(as_json: bool, compactor: Run) -> None:
    out = compactor("formats", *(["--json"] if as_json else [])).out.decode()
    if as_json:
        found = {value["name"]: value for value in map(json.loads, out.splitlines())}
        assert "thinking" not in found["openai-chat"]["holds"]
        assert found["openai-chat"]["to"]
        assert "sidechains" in found["claude-code"]["holds"]
        assert not found["openhands"]["to"]
    else:
        assert "thnk: thinking" in out.splitlines()[-1]
