"""What was archived is found by what it says, whatever happened to the index."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from archived import remove, said, store, store_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_cli.archive.index import INDEX, index_file, opened
from compactor_cli.archive.search import Filter, SearchResult, search, snippet
from compactor_cli.model.errors import Unreadable


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def ids(archive: Path, query: str, **only: object) -> list[str]:
    found = search([archive], query, only=Filter(**only))  # type: ignore[arg-type]
    return [hit.id for hit in found.hits]


def call(name: str, number: int, **arguments: str) -> dict[str, object]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    tool_calls = [{"id": f"c{number}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}


def test_the_best_record_comes_first_with_its_id_and_the_words_around(archive: Path) -> None:
    sha256 = store(
        archive, *said("hello", "the lock timed out, the lock is stale", "a lock, among many other words here")
    )
    found = search([archive], "locks")
    assert [hit.id for hit in found.hits] == [f"{sha256[:16]}:2", f"{sha256[:16]}:3"]
    assert found.hits[0].score >= found.hits[1].score
    assert found.hits[0].snippet == "the lock timed out, the lock is stale"
    assert (found.hits[0].role, found.hits[0].source) == ("assistant", "/s/a.jsonl")


def test_chinese_and_japanese_are_found(archive: Path) -> None:
    sha256 = store(archive, *said("请把令牌桶限流加上", "データベースの移行が終わりました"))
    assert ids(archive, "限流") == [f"{sha256[:16]}:1"]
    assert ids(archive, "移行") == [f"{sha256[:16]}:2"]
    assert search([archive], "令牌桶").hits[0].snippet == "请把令牌桶限流加上"


def test_where_no_record_holds_all_words_some_do(archive: Path) -> None:
    store(archive, *said("red apple", "green pear"))
    found = search([archive], "red pear")
    assert found.any_word
    assert len(found.hits) == 2
    assert search([archive], "red apple") != found
    assert search([archive], "absent") == SearchResult(hits=())


def test_filters_by_session_role_tool_and_time(archive: Path) -> None:
    first = store(archive, *said("the word", "the word", time="2026-03-01T00:00:00Z"), source="/s/first.jsonl")
    result = {"role": "tool", "tool_call_id": "c1", "content": "result word"}
    second = store(
        archive, call("Bash", 1, command="word"), result, call("Read", 2, path="word"), source="/s/second.jsonl"
    )
    assert {name[:16] for name in ids(archive, "word", session="first")} == {first[:16]}
    assert {name[:16] for name in ids(archive, "word", session=second[:9].upper())} == {second[:16]}
    assert ids(archive, "word", role="tool") == [f"{second[:16]}:2"]
    assert sorted(ids(archive, "word", tool="bash")) == [f"{second[:16]}:1", f"{second[:16]}:2"]
    assert ids(archive, "word", tool="bas") == []
    march = 1_772_323_200
    assert {name[:16] for name in ids(archive, "word", since=march)} == {first[:16]}
    assert {name[:16] for name in ids(archive, "word", until=march)} == {second[:16]}  # archived in January


def test_the_same_words_are_shown_once_where_they_were_archived_last(archive: Path) -> None:
    store(archive, *said("same words"), at="2026-01-01T00:00:00Z")
    later = store(archive, *said("same words", "and more"), at="2026-02-01T00:00:00Z")
    (hit,) = search([archive], "same").hits
    assert (hit.sha256, hit.copies) == (later, 1)


def test_a_summary_of_ours_is_not_found_in_place_of_what_it_stands_for(archive: Path) -> None:
    first = store(archive, *said("an apple", "a pear"))
    line = f"[compact/1 transcript={first[:16]} records=1-2/2 tokens=9 end=0123456789abcdef]"
    store(archive, *said(f"Reference only: background\n{line}\n\n- an apple", "and then"))
    assert ids(archive, "apple") == [f"{first[:16]}:1"]


def test_the_limit_holds(archive: Path) -> None:
    store(archive, *said(*(f"word {number}" for number in range(30))))
    assert len(search([archive], "word", limit=7).hits) == 7


def test_only_what_was_compacted_of_a_dataset_is_found(archive: Path) -> None:
    rows = [json.dumps({"messages": said("row", f"word{number}")}).encode() + b"\n" for number in range(3)]
    store_rows(archive, *rows, listed=(1,))
    assert ids(archive, "word0") == []
    assert len(ids(archive, "word1")) == 1


def test_later_originals_are_added_and_those_that_are_gone_drop_out(archive: Path) -> None:
    first = store(archive, *said("first apple"))
    assert ids(archive, "apple") == [f"{first[:16]}:1"]
    second = store(archive, *said("second apple"))
    assert len(ids(archive, "apple")) == 2
    remove(archive, first)
    assert ids(archive, "apple") == [f"{second[:16]}:1"]
    shutil.rmtree(archive / second[:2])
    assert ids(archive, "apple") == []


def test_a_longer_list_of_transcripts_is_noticed(archive: Path) -> None:
    rows = [json.dumps({"messages": said("row", f"word{number}")}).encode() + b"\n" for number in range(2)]
    store_rows(archive, *rows, listed=(0,))
    assert ids(archive, "word1") == []
    store_rows(archive, *rows, listed=(1,))
    assert len(ids(archive, "word0")) == len(ids(archive, "word1")) == 1


def test_what_is_indexed_is_not_read_again(archive: Path) -> None:
    """Once a folder's time is settled, not even it is listed: what is there is only what SQLite knows."""
    sha256 = store(archive, *said("some apple"))
    os.utime(archive / sha256[:2], (1_000_000_000, 1_000_000_000))
    assert len(ids(archive, "apple")) == 1
    damaged = next((archive / sha256[:2]).glob("*.zst"))
    damaged.write_bytes(b"no longer readable")
    os.utime(archive / sha256[:2], (1_000_000_000, 1_000_000_000))
    (hit,) = search([archive], "apple").hits
    assert (hit.sha256, hit.snippet) == (sha256, "")


def test_an_original_that_cannot_be_read_is_named_and_the_others_are_found(archive: Path) -> None:
    good, bad = store(archive, *said("good apple")), store(archive, *said("bad apple"))
    next((archive / bad[:2]).glob(f"{bad}*")).write_bytes(b"\x28\xb5\x2f\xfd broken")
    found = search([archive], "apple")
    assert [hit.sha256 for hit in found.hits] == [good]
    assert [bad[:16] in warning for warning in found.warnings] == [True]


def test_from_nothing_the_archive_alone_gives_the_same_answers(archive: Path) -> None:
    for number in range(5):
        store(archive, *said(f"apple {number}", "pear"))
    before = search([archive], "apple OR pear")
    assert search([archive], "apple OR pear", rebuild=True) == before
    (archive / INDEX).unlink()
    assert search([archive], "apple OR pear") == before


def test_an_index_mostly_of_what_is_gone_is_made_anew(archive: Path) -> None:
    gone = [store(archive, *said(*(f"apple {number} {part}" for part in range(9)))) for number in range(5)]
    kept = store(archive, *said("kept apple"))
    assert len(search([archive], "apple", limit=50).hits) == 46
    for sha256 in gone:
        remove(archive, sha256)
    assert ids(archive, "apple") == [f"{kept[:16]}:1"]
    with opened(archive) as database:
        assert database.execute("SELECT count(*) FROM texts").fetchone() == (1,)


@settings(max_examples=15)
@given(data=st.data())
def test_any_damage_to_the_index_is_repaired(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    archive = tmp_path_factory.mktemp("damaged")
    for number in range(3):
        store(archive, *said(f"apple {number}", "pear"))
    before = search([archive], "apple")
    size = (archive / INDEX).stat().st_size
    start = data.draw(st.integers(0, size - 1))
    how = data.draw(st.sampled_from(["cut", "zeros", "noise", "empty tables"]))
    if how == "empty tables":
        database = sqlite3.connect(archive / INDEX)
        database.execute("DROP TABLE records")
        database.close()
    else:
        content = bytearray((archive / INDEX).read_bytes())
        length = min(size - start, 5_000)
        content[start : start + length] = {"cut": b"", "zeros": bytes(length), "noise": b"\xa5" * length}[how]
        (archive / INDEX).write_bytes(content[:start] if how == "cut" else content)
    # Damage that SQLite cannot see may hide records; it never stops a search, and --rebuild always helps.
    search([archive], "apple")
    assert search([archive], "apple", rebuild=True) == before


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00 and then nothing" * 40])
def test_what_is_no_index_is_replaced_by_one(archive: Path, content: bytes) -> None:
    sha256 = store(archive, *said("an apple"))
    (archive / INDEX).write_bytes(content)
    assert ids(archive, "apple") == [f"{sha256[:16]}:1"]


def test_an_index_of_another_version_is_made_anew(archive: Path) -> None:
    sha256 = store(archive, *said("an apple"))
    ids(archive, "apple")
    database = sqlite3.connect(archive / INDEX)
    database.execute("PRAGMA user_version = 99")
    database.close()
    assert ids(archive, "apple") == [f"{sha256[:16]}:1"]


def test_the_index_is_private_and_in_the_archive_or_in_the_cache(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(archive, *said("an apple"))
    search([archive], "apple")
    assert index_file(archive) == archive / INDEX
    assert (archive / INDEX).stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert index_file(archive).parent == tmp_path / "cache/compact/index"
    assert len(search([archive], "apple").hits) == 1


def test_a_missing_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no such archive"):
        search([tmp_path / "nowhere"], "word")


def test_runs_at_the_same_time_all_find_everything(archive: Path) -> None:
    """Four processes begin with no index, half of them from nothing."""
    for number in range(40):
        store(archive, *said(f"apple {number}", "pear " * 50))
    code = (
        "import sys; from pathlib import Path; from compactor_cli.archive.search import search;"
        "print(len(search([Path(sys.argv[1])], 'apple', limit=99, rebuild=sys.argv[2] == 'rebuild').hits))"
    )
    starts = ("known", "rebuild", "known", "rebuild")
    runs = [
        subprocess.Popen([sys.executable, "-c", code, str(archive), start], stdout=subprocess.PIPE, text=True)
        for start in starts
    ]
    assert [run.communicate(timeout=120)[0].strip() for run in runs] == ["40"] * len(runs)


def test_an_indexing_that_was_killed_is_taken_up_again(archive: Path) -> None:
    """Killed in the middle of a batch: what was not committed is not there, and comes with the next search."""
    for number in range(10):
        store(archive, *said(f"apple {number}"))
    code = (
        "import os, sys; from pathlib import Path; from compactor_cli.archive.index import opened\n"
        "calls = iter(range(1, 99))\n"
        "kill = lambda count: os._exit(9) if next(calls) == 5 else None\n"
        "with opened(Path(sys.argv[1]), advance=kill): pass"
    )
    assert subprocess.run([sys.executable, "-c", code, str(archive)]).returncode == 9
    assert len(search([archive], "apple", limit=50).hits) == 10


def test_a_snippet_shows_where_most_words_stand_together() -> None:
    text = "lock " + "x " * 300 + "the lock file is stale " + "y " * 300
    assert "the lock file is stale" in snippet(text, "stale lock file")
    assert snippet(text, "stale").startswith("… ")
    assert "LINE-637" in snippet("".join(f"LINE-{number}\n" for number in range(900)), '"LINE-637"')
    assert snippet("short\ntext", "absent") == "short text"
    assert snippet("migrations were run", "migration") == "migrations were run"


@given(st.text(max_size=300), st.text(max_size=30))
def test_a_snippet_can_be_made_of_anything(text: str, query: str) -> None:
    assert "\n" not in snippet(text, f"{query} word", 50)
