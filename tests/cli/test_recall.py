"""``compactor expand`` and ``search``, from a compacted session back to its originals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_cases import Run, session_bytes


@pytest.fixture
def marker(work: Path, compact: Run) -> str:
    """The marker line of a session that was compacted in place."""
    assert compact("-i", "-t", "1500", "session.jsonl").code == 0
    found = re.search(r"\[compact/1 [^\]]*\]", (work / "session.jsonl").read_text())
    assert found
    return found[0]


def test_what_a_summary_names_can_be_expanded(marker: str, compactor: Run) -> None:
    first, last = (int(number) for number in re.findall(r"records=(\d+)-(\d+)", marker)[0])
    ran = compactor("expand", marker, "--raw")
    lines = session_bytes().splitlines(keepends=True)
    assert ran.out == b"".join(lines[first - 1 : last])
    hash_start = marker.split("transcript=")[1][:8]
    assert compactor("expand", hash_start, "[3]", "[5-6]", "--raw").out == lines[2] + lines[4] + lines[5]


def test_records_are_shown_to_people_and_programs(marker: str, compactor: Run) -> None:
    name = marker.split("transcript=")[1][:16] + ":3"
    shown = compactor("expand", name).out.decode()
    assert shown == f"{name}  assistant\ncall read_file\npath=src/module_0.py\n\n"
    value = json.loads(compactor("expand", name, "--json").out)
    assert (value["id"], value["record"], value["role"]) == (name, 3, "assistant")
    assert value["calls"] == [{"id": "c0", "name": "read_file", "arguments": {"path": "src/module_0.py"}}]


def test_an_unknown_record_says_what_there_is(marker: str, compactor: Run) -> None:
    ran = compactor("expand", f"{marker.split('transcript=')[1][:16]}:50")
    assert (ran.code, ran.out) == (3, b"")
    assert "1-49" in ran.err
    assert compactor("expand", "[3]").code == 2
    assert compactor("expand", "00000000:1").code == 3


@pytest.mark.parametrize(
    "arguments", [("archive", "list"), ("archive", "stats"), ("search", "module"), ("expand", "12345678")]
)
def test_an_archive_that_is_not_there_is_named(work: Path, compactor: Run, arguments: tuple[str, ...]) -> None:
    ran = compactor(*arguments, "--archive-dir", "nowhere")
    assert (ran.code, ran.out) == (3, b"")
    assert ran.err == "compactor: nowhere: no such archive folder: name it with --archive-dir\n"


def test_archived_records_are_found_and_what_is_printed_can_be_expanded(marker: str, compactor: Run) -> None:
    ran = compactor("search", "module", "7", "value", "--json", "--limit", "1")
    (hit,) = (json.loads(line) for line in ran.out.splitlines())
    assert (hit["role"], hit["tools"], hit["record"]) == ("tool", ["read_file"], 32)
    assert b"line 1 of module 7" in compactor("expand", hit["id"]).out
    shown = compactor("search", "module", "7", "value").out.decode()
    assert shown.startswith(f"{hit['id']}  tool read_file  ")
    assert "module 7" in shown.splitlines()[1]


def test_a_search_without_hits_has_an_exit_code_of_its_own(marker: str, compactor: Run) -> None:
    ran = compactor("search", "nowhere")
    assert (ran.code, ran.out, ran.err) == (1, b"", "")
    assert compactor("search", "problem", "--role", "system").code == 1
    assert compactor("search", "problem", "--since", "1h").code == 0
    assert compactor("search", "problem", "--until", "2001-01-01").code == 1
    assert compactor("search", "--", "problem", "-fixed").code == 0


@pytest.mark.parametrize(
    "words", [("problem", "--role", "robot"), ("problem", "--since", "soon"), ("--",), ("problem", "--limit", "0")]
)
def test_what_cannot_be_searched_for_is_a_usage_error(words: tuple[str, ...], marker: str, compactor: Run) -> None:
    assert compactor("search", *words).code == 2


def test_without_an_archive_there_is_nothing_to_find(work: Path, compactor: Run) -> None:
    ran = compactor("search", "word")
    assert (ran.code, ran.err) == (1, "compactor: there is no archive yet\n")
    assert compactor("search", "word", "--archive-dir", "nowhere").code == 3


def test_a_damaged_index_does_not_stop_a_search(marker: str, work: Path, compactor: Run) -> None:
    before = compactor("search", "problem").out
    (work / ".transcripts/INDEX.sqlite3").write_bytes(b"damaged")
    assert compactor("search", "problem").out == before
    assert compactor("search", "problem", "--rebuild").out == before
    assert compactor("verify", ".transcripts").code == 0


@pytest.mark.parametrize("name", ["session.jsonl", "rows.jsonl"])
def test_what_was_compacted_without_its_broken_lines_comes_back(
    name: str, work: Path, compact: Run, compactor: Run
) -> None:
    lines = (work / name).read_bytes().splitlines(keepends=True)
    (work / name).write_bytes(b"".join([lines[0], b"{no json\n", *lines[1:4], b"nor this\n", *lines[4:]]))
    assert compact("-i", "-t", "900", "--on-invalid", "drop", name).code in (0, 3)
    assert compactor("verify", ".transcripts").code == 0
    for sha256 in re.findall(r"transcript=([0-9a-f]{16})", (work / name).read_text()):
        restored = compactor("restore", sha256).out
        assert restored == b"".join(lines) or restored in lines
        assert compactor("expand", f"{sha256}:2").code == 0
    assert compactor("search", "problem").code == 0
