"""Which inputs a command line names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from compactor_cli.model.errors import UsageError
from compactor_cli.read.sources import Walk, find_sources


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def names(root: Path, **walk: Any) -> list[str]:
    return [source.name for source in find_sources([str(root)], recursive=True, walk=Walk(**walk))]


def test_a_tree_gives_transcripts_in_byte_order_without_hidden_ones(tmp_path: Path) -> None:
    make(tmp_path, "b.jsonl", "a/z.jsonl.gz", "a.jsonl", "é.jsonl", "Z.jsonl.zst", "x.txt", ".h.jsonl", ".t/q.jsonl")
    assert names(tmp_path) == ["Z.jsonl.zst", "a.jsonl", "a/z.jsonl.gz", "b.jsonl", "é.jsonl"]


def test_links_in_a_tree_are_not_followed_but_named_ones_are(tmp_path: Path) -> None:
    make(tmp_path, "tree/a.jsonl", "far/b.jsonl")
    (tmp_path / "tree/link.jsonl").symlink_to(tmp_path / "far/b.jsonl")
    (tmp_path / "tree/folder").symlink_to(tmp_path / "far")
    (tmp_path / "named").symlink_to(tmp_path / "tree")
    assert names(tmp_path / "tree") == ["a.jsonl"]
    assert names(tmp_path / "named") == ["a.jsonl"]


def test_globs_choose_by_name_or_by_path(tmp_path: Path) -> None:
    make(tmp_path, "a.json", "s/b.json", "s/c.jsonl", "old/d.json", "s/old.json")
    assert names(tmp_path, include=("*.json",)) == ["a.json", "old/d.json", "s/b.json", "s/old.json"]
    assert names(tmp_path, include=("s/*",), exclude=("b*",)) == ["s/c.jsonl", "s/old.json"]
    assert names(tmp_path, include=("*.json",), exclude=("old",)) == ["a.json", "s/b.json", "s/old.json"]


def test_skipped_folders_are_left_out_wherever_they_lie(tmp_path: Path) -> None:
    make(tmp_path, "a.jsonl", "out/deep/b.jsonl")
    assert names(tmp_path, skip=(str(tmp_path / "out" / "deep"),)) == ["a.jsonl"]


def test_a_file_reached_twice_is_given_once(tmp_path: Path) -> None:
    make(tmp_path, "a.jsonl")
    os.link(tmp_path / "a.jsonl", tmp_path / "hard.jsonl")
    (tmp_path / "soft").symlink_to("a.jsonl")
    found = find_sources([str(tmp_path / "soft"), str(tmp_path), "-", "-"], recursive=True)
    assert [source.path for source in found] == [str(tmp_path / "soft"), "-"]


def test_a_folder_without_r_is_a_usage_error_that_names_r(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="-r"):
        find_sources([str(tmp_path)])


def test_what_cannot_be_read_is_given_and_fails_later(tmp_path: Path) -> None:
    assert [source.path for source in find_sources([str(tmp_path / "none.jsonl")])] == [str(tmp_path / "none.jsonl")]


def test_an_unreadable_folder_in_a_tree_is_an_input_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.jsonl", "shut/b.jsonl")
    listing = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("shut"):
            raise PermissionError(13, "Permission denied", path)
        return listing(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert names(tmp_path) == ["a.jsonl", "shut"]


@pytest.mark.parametrize(("separator", "is_null"), [("\n", False), ("\0", True)])
def test_a_list_of_files_keeps_their_paths_as_names(tmp_path: Path, separator: str, is_null: bool) -> None:
    make(tmp_path, "s/a.jsonl", "s/b c.jsonl")
    listed = tmp_path / "list"
    paths = [str(tmp_path / "s/b c.jsonl"), str(tmp_path / "s/a.jsonl")]
    listed.write_text(separator.join([*paths, ""]))
    found = find_sources([], files_from=str(listed), null_separated=is_null)
    assert [source.path for source in found] == paths
    assert all(source.name == source.path.lstrip("/") for source in found)


def test_a_listed_name_cannot_lead_out_of_the_output_folder(tmp_path: Path) -> None:
    listed = tmp_path / "list"
    listed.write_text("../../x/./a.jsonl\n")
    assert find_sources([], files_from=str(listed))[0].name == "x/a.jsonl"


def test_a_missing_list_or_standard_input_twice_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="list of files"):
        find_sources([], files_from=str(tmp_path / "none"))
    with pytest.raises(UsageError, match="standard input"):
        find_sources(["-"], files_from="-")


def test_what_a_walk_does_not_take_is_named_and_what_only_its_content_can_tell_is_marked(tmp_path: Path) -> None:
    make(tmp_path, "a.jsonl", "b.json", "c.txt", ".agent/d.jsonl", "skipped/e.txt", "out/f.txt")
    passed: list[str] = []
    walk = Walk(candidates=("*.json",), exclude=("skipped",), skip=(str(tmp_path / "out"),))
    found = find_sources([str(tmp_path)], recursive=True, walk=walk, passed_over=passed.append)
    assert [(source.name, source.is_candidate) for source in found] == [("a.jsonl", False), ("b.json", True)]
    assert passed == [str(tmp_path / ".agent"), str(tmp_path / "c.txt")]


def test_hidden_folders_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    make(tmp_path, ".agent/a.jsonl", ".b.jsonl", ".git/c.jsonl")
    assert names(tmp_path, hidden=True, exclude=(".git",)) == [".agent/a.jsonl", ".b.jsonl"]
