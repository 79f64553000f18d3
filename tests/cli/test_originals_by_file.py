"""Originals found by their file, from any folder; archives listed, counted, pruned."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from cli_cases import Run, command, dataset_bytes, session_bytes

# Turns of a session whose summary is long enough for its whole preface.
LONG = 200


@pytest.fixture(autouse=True)
def _state(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))


@pytest.fixture
def elsewhere(home: Path) -> Path:
    folder = home / "elsewhere"
    folder.mkdir()
    return folder


def _make_old(archive: Path) -> None:
    """Let all that was archived seem to have been archived long ago."""
    manifest = archive / "MANIFEST.jsonl"
    lines = [json.loads(line) | {"compacted_at": "2020-01-01T00:00:00Z"} for line in manifest.read_text().splitlines()]
    manifest.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def test_an_original_comes_back_by_its_file_from_any_folder(
    work: Path, elsewhere: Path, compact: Run, compactor: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    compact("-i", "-t", "1500", "session.jsonl")
    monkeypatch.chdir(elsewhere)
    assert compactor("restore", work / "session.jsonl").out == session_bytes()
    assert compactor("restore", work / "session.jsonl", "-o", "back.jsonl").code == 0
    assert (elsewhere / "back.jsonl").read_bytes() == session_bytes()


def test_a_compacted_file_that_was_moved_names_its_original_itself(
    work: Path, elsewhere: Path, compact: Run, compactor: Run
) -> None:
    compact("-i", "-t", "1500", "session.jsonl")
    (work / "session.jsonl").rename(elsewhere / "moved.jsonl")
    assert compactor("restore", elsewhere / "moved.jsonl").out == session_bytes()


def test_an_output_written_elsewhere_names_its_original_too(work: Path, compact: Run, compactor: Run) -> None:
    compact("-t", "1500", "session.jsonl", "-o", "small.jsonl", "--archive-dir", "kept")
    assert compactor("restore", "small.jsonl").out == session_bytes()


@pytest.mark.parametrize("output", [(), ("-o", "small.jsonl"), ("--output-dir", "small")])
def test_where_the_input_stays_nothing_is_archived_and_nothing_is_promised(
    output: tuple[str, ...], work: Path, home: Path, compact: Run
) -> None:
    (work / "session.jsonl").write_bytes(session_bytes(LONG))
    ran = compact("-t", "8k", "session.jsonl", *output)
    written = (
        ran.out
        or next(path for path in (work / "small.jsonl", work / "small/session.jsonl") if path.exists()).read_bytes()
    )
    assert b"[compact/1 " in written
    assert b"compactor expand" not in written
    assert (work / "session.jsonl").read_bytes() == session_bytes(LONG)
    assert not (home / "data").exists()
    assert not (work / ".transcripts").exists()


@pytest.mark.parametrize("options", [("-i",), ("-o", "small.jsonl", "--archive"), ("-o", "a", "--archive-dir", "kept")])
def test_a_summary_leads_to_its_original_where_that_is_archived(
    options: tuple[str, ...], work: Path, compact: Run, compactor: Run
) -> None:
    (work / "session.jsonl").write_bytes(session_bytes(LONG))
    compact("-t", "8k", "session.jsonl", *options)
    written = (work / (options[1] if len(options) > 1 else "session.jsonl")).read_text()
    name, numbers = written.partition("`compactor expand ")[2].partition("`")[0].split()
    assert compactor("expand", name, numbers.strip("'")).code == 0


def test_the_same_is_summarised_whether_or_not_it_is_archived(work: Path, compact: Run) -> None:
    (work / "session.jsonl").write_bytes(session_bytes(LONG))

    def body(*options: str) -> bytes:
        return compact("-t", "8k", "session.jsonl", *options).out.partition(b"[compact/1 ")[2]

    assert body() == body("--archive")


@pytest.mark.parametrize("name", ["session.jsonl", "small.jsonl"])
@pytest.mark.parametrize("what", ["restore", "undo"])
def test_where_no_archive_was_asked_for_that_is_stated(
    what: str, name: str, work: Path, compact: Run, compactor: Run
) -> None:
    compact("-t", "1500", "session.jsonl", "-o", "small.jsonl")
    ran = compactor(what, name)
    assert ran.code == 3
    assert "leave the input as it is, and archive with --archive" in ran.err


def test_a_shortened_result_names_the_archive_only_where_there_is_one(work: Path, compact: Run) -> None:
    settings = ("--preset", "suna", "-t", "2k", "long.jsonl")
    result = {"role": "user", "content": "reading " * 4_000}
    (work / "long.jsonl").write_bytes(session_bytes() + json.dumps(result).encode() + b"\n" + session_bytes())
    assert b"compactor expand" in compact(*settings, "--archive").out
    without = compact(*settings).out
    assert b"(truncated)" in without
    assert b"compactor expand" not in without


def test_of_a_file_that_was_compacted_twice_the_last_state_comes_back(work: Path, compact: Run, compactor: Run) -> None:
    compact("-i", "-t", "3k", "session.jsonl")
    once = (work / "session.jsonl").read_bytes()
    _make_old(work / ".transcripts")
    compact("-i", "-t", "1500", "session.jsonl")
    assert compactor("restore", "session.jsonl").out == once


def test_of_a_file_that_was_put_back_the_original_comes_back_and_not_what_was_undone(
    work: Path, compact: Run, compactor: Run
) -> None:
    compact("-i", "-t", "3k", "session.jsonl")
    compact("-i", "-t", "1500", "session.jsonl")
    assert compactor("undo", "session.jsonl").code == 0
    assert compactor("restore", "session.jsonl").out == session_bytes()


@pytest.mark.parametrize("packed", [False, True])
def test_after_as_many_undos_as_compactions_the_first_original_comes_back(
    packed: bool, work: Path, compact: Run, compactor: Run
) -> None:
    name = "session.jsonl.gz" if packed else "session.jsonl"
    (work / name).write_bytes(gzip.compress(session_bytes()) if packed else session_bytes())
    for target in ("3k", "1500"):
        assert compact("-i", "-t", target, name).code == 0
    for _ in range(2):
        assert compactor("undo", name).code == 0
        assert compactor("restore", name).out == session_bytes()
    if not packed:  # the session goes on
        (work / name).write_bytes(session_bytes() + session_bytes(1))
        assert compactor("restore", name).out == session_bytes()


@pytest.mark.parametrize("order", ["rows.jsonl more.jsonl", "more.jsonl rows.jsonl"])
def test_of_datasets_that_were_joined_both_originals_are_named(
    order: str, work: Path, compact: Run, compactor: Run
) -> None:
    (work / "more.jsonl").write_bytes(dataset_bytes(3).replace(b"problem", b"question"))
    for name in ("rows.jsonl", "more.jsonl"):
        assert compact("-i", "-t", "500", name).code == 0
    (work / "all.jsonl").write_bytes(b"".join((work / name).read_bytes() for name in order.split()))
    ran = compactor("restore", "all.jsonl", "-o", "back.jsonl")
    assert (ran.code, (work / "back.jsonl").exists()) == (3, False)
    found = dict(re.findall(r"([a-z]+\.jsonl) \(([0-9a-f]{16})\)", ran.err))
    assert list(found) == order.split()
    assert compactor("restore", found["more.jsonl"]).out == dataset_bytes(3).replace(b"problem", b"question")
    assert compactor("dropped", "all.jsonl").code == 3


def test_rows_that_were_compacted_before_are_of_the_newest_original(work: Path, compact: Run, compactor: Run) -> None:
    assert compact("-i", "-t", "500", "rows.jsonl").code == 0
    once = (work / "rows.jsonl").read_bytes()
    assert compact("-i", "-t", "450", "rows.jsonl").code == 0
    assert b"transcript=" in (work / "rows.jsonl").read_bytes() != once
    assert compactor("restore", "rows.jsonl").out == once


def test_the_original_of_a_dataset_that_was_written_elsewhere_is_all_of_it(
    work: Path, compact: Run, compactor: Run
) -> None:
    compact("-t", "500", "rows.jsonl", "-o", "small.jsonl", "--archive")
    assert compactor("restore", "small.jsonl").out == dataset_bytes()


def test_archives_of_other_folders_are_searched_and_verified(
    work: Path, elsewhere: Path, compact: Run, compactor: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    compact("-i", "-t", "1500", "session.jsonl")
    compact("-t", "1500", "rows.jsonl", "-o", "small.jsonl", "--archive-dir", elsewhere / "kept")
    monkeypatch.chdir(elsewhere)
    hits = [json.loads(line) for line in compactor("search", "problem", "11", "--json").out.splitlines()]
    assert {str(hit["source"]) for hit in hits} == {str(work / "session.jsonl")}
    assert len({hit["id"] for hit in hits}) == len(hits)
    assert compactor("expand", hits[0]["id"]).code == 0
    verified = compactor("verify").out.decode()
    assert str(work / ".transcripts") in verified
    assert str(elsewhere / "kept") in verified


def test_the_same_original_in_two_archives_is_found_once(work: Path, compact: Run, compactor: Run) -> None:
    compact("-t", "1500", "session.jsonl", "-o", "a.jsonl", "--archive-dir", "one")
    compact("-t", "1500", "session.jsonl", "-o", "b.jsonl", "--archive-dir", "two")
    ids = [json.loads(line)["id"] for line in compactor("search", "module_11", "--json").out.splitlines()]
    assert ids
    assert len(set(ids)) == len(ids)


def test_a_file_without_an_original_says_where_to_look(work: Path, compactor: Run) -> None:
    ran = compactor("restore", "session.jsonl")
    assert ran.code == 3
    assert "compactor archive list" in ran.err


def test_a_folder_without_an_archive_is_not_sound(work: Path, compactor: Run) -> None:
    (work / "empty").mkdir()
    ran = compactor("verify", "empty")
    assert ran.code == 3
    assert "is not an archive" in ran.err


def test_an_original_is_not_poured_on_a_terminal(work: Path, compact: Run) -> None:
    compact("-i", "-t", "1500", "session.jsonl")
    ours, theirs = pty.openpty()
    done = subprocess.run(
        command("restore", "session.jsonl", entry="compactor"), stdout=theirs, stderr=subprocess.PIPE, timeout=60
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"compactor undo session.jsonl" in done.stderr


def test_what_was_archived_is_listed_the_newest_first_within_a_second_too(
    work: Path, compact: Run, compactor: Run
) -> None:
    compact("-i", "-t", "1500", "session.jsonl")
    compact("-i", "-t", "1500", "rows.jsonl")
    found = [json.loads(line) for line in compactor("archive", "list", "--json").out.splitlines()]
    assert [Path(item["source"]).name for item in found] == ["rows.jsonl", "session.jsonl"]
    shown = compactor("archive", "list").out.decode()
    assert found[1]["sha256"][:12] in shown
    assert "2 originals" in shown


def test_what_archives_take_is_counted_with_a_total(work: Path, home: Path, compact: Run, compactor: Run) -> None:
    compact("-i", "-t", "1500", "session.jsonl")
    compact("-t", "1500", "rows.jsonl", "-o", "small.jsonl", "--archive-dir", "kept")
    rows = [json.loads(line) for line in compactor("archive", "stats", "--json").out.splitlines()]
    assert sorted(row["bytes"] for row in rows) == sorted([len(session_bytes()), (work / "rows.jsonl").stat().st_size])
    assert "all" in compactor("archive", "stats").out.decode().splitlines()[-1]


def test_pruning_leaves_the_originals_of_files_that_are_in_use(work: Path, compact: Run, compactor: Run) -> None:
    compact("-i", "-t", "1500", "session.jsonl", "rows.jsonl")
    _make_old(work / ".transcripts")
    (work / "rows.jsonl").unlink()
    ran = compactor("archive", "prune", "--older-than", "90d")
    assert "1 original taken out" in ran.out.decode()
    assert "1 old ones stay" in ran.out.decode()
    assert compactor("restore", "session.jsonl").out == session_bytes()
    assert compactor("verify").code == 0
    assert len((work / ".transcripts/MANIFEST.jsonl").read_text().splitlines()) == 1


def test_pruning_leaves_what_an_original_in_use_was_made_from(work: Path, compact: Run, compactor: Run) -> None:
    compact("-i", "-t", "3k", "session.jsonl")
    compact("-i", "-t", "1500", "session.jsonl")
    _make_old(work / ".transcripts")
    assert "0 originals taken out" in compactor("archive", "prune", "--older-than", "90d").out.decode()


def test_pruning_leaves_what_no_summary_names_and_the_file_was_made_from(
    work: Path, compact: Run, compactor: Run
) -> None:
    long = {"role": "user", "content": "reading " * 4_000}
    original = session_bytes() + json.dumps(long).encode() + b"\n" + session_bytes()
    (work / "session.jsonl").write_bytes(original)
    compact("-i", "--preset", "suna", "-t", "2k", "session.jsonl")
    compact("-i", "--preset", "suna", "-t", "1k", "session.jsonl")
    assert b"[compact/1 " not in (work / "session.jsonl").read_bytes()
    _make_old(work / ".transcripts")
    with (work / "session.jsonl").open("ab") as file:
        file.write(session_bytes(1))
    assert "0 originals taken out" in compactor("archive", "prune", "--older-than", "90d").out.decode()
    for _ in range(2):
        assert compactor("undo", "-f", "session.jsonl").code == 0
    assert (work / "session.jsonl").read_bytes() == original


def test_originals_of_files_whose_path_is_no_text_are_found_and_stay(work: Path, compact: Run, compactor: Run) -> None:
    path = work / os.fsdecode(b"caf\xe9") / "session.jsonl"
    path.parent.mkdir()
    path.write_bytes(session_bytes())
    compact("-i", "-t", "3k", path)
    once = path.read_bytes()
    _make_old(path.parent / ".transcripts")
    compact("-i", "-t", "1500", path)
    _make_old(path.parent / ".transcripts")
    assert "0 originals taken out" in compactor("archive", "prune", "--older-than", "90d").out.decode()
    assert compactor("restore", path).out == once


def test_pruning_leaves_the_entry_of_an_original_whose_earlier_result_goes(
    work: Path, compact: Run, compactor: Run
) -> None:
    compact("-i", "-t", "1500", "session.jsonl")
    compactor("undo", "session.jsonl")
    compact("-i", "-t", "1500", "session.jsonl")
    _make_old(work / ".transcripts")
    assert "1 original taken out" in compactor("archive", "prune", "--older-than", "90d").out.decode()
    assert compactor("undo", "session.jsonl").code == 0
    assert (work / "session.jsonl").read_bytes() == session_bytes()


def test_forced_pruning_takes_all_that_is_old_and_nothing_that_is_new(work: Path, compact: Run, compactor: Run) -> None:
    compact("-i", "-t", "1500", "session.jsonl")
    _make_old(work / ".transcripts")
    compact("-i", "-t", "1500", "rows.jsonl")
    compactor("search", "module")
    assert "1 original taken out" in compactor("archive", "prune", "--older-than", "90d", "-f").out.decode()
    assert compactor("restore", "rows.jsonl").code == 0
    assert compactor("restore", "session.jsonl").code == 3
    assert compactor("verify").code == 0
    assert compactor("search", "module").code == 0


def test_a_dry_run_of_pruning_names_what_would_go_and_takes_nothing(work: Path, compact: Run, compactor: Run) -> None:
    compact("-i", "-t", "1500", "session.jsonl")
    _make_old(work / ".transcripts")
    (work / "session.jsonl").unlink()
    before = sorted(work.rglob("*"))
    ran = compactor("archive", "prune", "--older-than", "90d", "-n")
    assert "session.jsonl" in ran.out.decode()
    assert "1 original would go" in ran.out.decode()
    assert sorted(work.rglob("*")) == before
