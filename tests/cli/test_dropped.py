"""What a compacted file no longer says: listed by need, each with the record that still has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Run, conversation

RULE = "Never touch the table billing_ledger_v7 without a dump."


@pytest.fixture(autouse=True)
def _state(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))


def _lines(messages: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def _dropped(compactor: Run, *arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in compactor("dropped", *arguments, "--json").out.splitlines()]


@pytest.fixture
def cut(work: Path, compact: Run) -> Path:
    """A session whose middle, with a rule of the user, was cut out by hand after it was archived."""
    path = work / "cut.jsonl"
    messages = conversation(12)
    messages[21]["content"] = f"Please fix problem 5. {RULE}"
    path.write_bytes(_lines(messages))
    assert compact("-i", "-t", "1500", path).code == 0
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b"billing_ledger_v7" not in line))
    return path


def test_a_rule_of_the_user_that_is_gone_comes_before_names(cut: Path, compactor: Run) -> None:
    found = _dropped(compactor, cut)
    rules = [place for place, item in enumerate(found) if "billing_ledger_v7" in item["text"]]
    assert found[rules[0]]["kind"] == "user rule"
    assert all(item["kind"] == "user rule" for item in found[: rules[0]])
    assert [item["score"] for item in found] == sorted((item["score"] for item in found), reverse=True)


def test_the_id_of_a_dropped_thing_expands_to_the_record_that_says_it(cut: Path, compactor: Run) -> None:
    item = next(item for item in _dropped(compactor, cut) if item["text"] == RULE)
    assert RULE.encode() in compactor("expand", item["id"]).out


def test_what_the_file_still_says_is_not_listed(work: Path, compact: Run, compactor: Run) -> None:
    path = work / "long.jsonl"
    path.write_bytes(_lines(conversation(80)))
    compact("-i", "-t", "1500", path)
    text = " ".join(path.read_text().split())
    found = _dropped(compactor, path)
    assert found
    assert not [item for item in found if item["text"] in text]


def test_a_summary_that_says_everything_leaves_nothing_to_list(work: Path, compact: Run, compactor: Run) -> None:
    compact("-i", "-t", "1500", "session.jsonl")
    assert compactor("dropped", "session.jsonl").out == b"session.jsonl: nothing left out\n"


def test_rows_of_a_dataset_are_held_against_their_own_originals(work: Path, compact: Run, compactor: Run) -> None:
    rows = [{"id": row, "messages": conversation(8)} for row in range(2)]
    rows[1]["messages"][13]["content"] = f"Please fix problem 3. {RULE}"  # type: ignore[index]
    path = work / "two.jsonl"
    path.write_bytes(_lines(rows))
    compact("-i", "-t", "1000", path)
    path.write_bytes(path.read_bytes().replace(RULE.encode(), b"(gone)"))
    ids = [item["id"] for item in _dropped(compactor, path) if item["text"] == RULE]
    assert len(ids) == 1
    assert RULE.encode() in compactor("expand", ids[0]).out


def test_an_appended_compaction_is_read_as_its_client_reads_it(home: Path, compact: Run, compactor: Run) -> None:
    """The records stay in the file, but the client no longer sends them: they are dropped anyway."""
    sample = next((Path(__file__).parents[2] / "samples").glob("*claude*"), None)
    assert sample
    session = home / "work" / "live.jsonl"
    session.write_bytes(sample.read_bytes())
    assert compact("--append", "-t", "25%", session).code == 0
    before = session.read_bytes()
    assert _dropped(compactor, session)
    assert session.read_bytes() == before


def test_a_person_sees_a_table_and_how_many_there_are(cut: Path, compactor: Run) -> None:
    ran = compactor("dropped", cut, "--limit", "3")
    lines = ran.out.decode().splitlines()
    assert lines[0].split() == ["need", "kind", "what", "record"]
    assert len(lines) == 5
    assert "3 shown" in lines[-1]


def test_a_file_that_was_never_compacted_is_an_error_that_says_where_to_look(work: Path, compactor: Run) -> None:
    ran = compactor("dropped", "session.jsonl")
    assert ran.code == 3
    assert "compactor archive list" in ran.err


@pytest.fixture
def compacted_twice(work: Path, compact: Run) -> Path:
    """A long session compacted, gone on with, and compacted again: its newest original has a summary of the first."""
    path = work / "twice.jsonl"
    path.write_bytes(_lines(conversation(80)))
    assert compact("-i", "-t", "1500", path).code == 0
    path.write_bytes(path.read_bytes() + _lines(conversation(12)[1:]))
    assert compact("-i", "--min-age", "0", "-t", "1500", path).code == 0
    return path


def _originals() -> list[dict[str, Any]]:
    """The first and the newest, as the archive lists them."""
    return [json.loads(line) for line in Path(".transcripts/MANIFEST.jsonl").read_text().splitlines()]


def test_what_an_earlier_compaction_left_out_counts_too(compacted_twice: Path, compactor: Run) -> None:
    first, newest = _originals()
    found = _dropped(compactor, compacted_twice)
    earlier = [item for item in found if item["id"] and first["sha256"].startswith(item["id"].partition(":")[0])]
    assert earlier
    assert not any(item["id"] and newest["sha256"].startswith(item["id"].partition(":")[0]) for item in earlier)
    assert compactor("expand", earlier[0]["id"]).code == 0
    texts = [(item["kind"], item["text"]) for item in found]
    assert len(texts) == len(set(texts))
    assert "in no archive" not in compactor("dropped", compacted_twice).out.decode()


def test_an_original_that_no_archive_has_is_named(compacted_twice: Path, compactor: Run) -> None:
    first, _ = _originals()
    every = len(_dropped(compactor, compacted_twice))
    (Path(".transcripts") / first["stored"]).unlink()
    last = compactor("dropped", compacted_twice).out.decode().splitlines()[-1]
    assert last.endswith(f"; what was left out before {first['sha256'][:16]} is in no archive")
    assert len(_dropped(compactor, compacted_twice)) < every
