"""An archive folder in a tree that somebody else made leads nowhere else."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from archived import add, said, session

from compactor_cli.archive.index import INDEX, opened
from compactor_cli.archive.maintenance import old_originals, remove, verify
from compactor_cli.archive.restore import find, restore_to
from compactor_cli.archive.store import MANIFEST, Archive, ManifestEntry, append_entry, read_entries
from compactor_cli.model.errors import CompactError

DATA = session(said("a", "b", "c"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a name that a shell would run, as it stands in a path of the manifest."""
    folder = tmp_path / "$(touch PWNED)"
    folder.mkdir()
    return folder


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    path = tmp_path / ".bashrc"
    path.write_text("alias ll='ls -l'\n")
    return path


def store(folder: Path) -> str:
    archive = Archive(folder)
    blob = add(archive, DATA)
    archive.record(replace(blob, records=3, dialect="openai-chat", source=str(folder / "a.jsonl")))
    return blob.sha256


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_manifest_that_leads_to_another_file_is_not_appended_to(
    tree: Path, theirs: Path, link: Callable[[Path, Path], None]
) -> None:
    (tree / ".transcripts").mkdir()
    link(tree / ".transcripts" / MANIFEST, theirs)
    with pytest.raises(CompactError, match="link"):
        store(tree / ".transcripts")
    assert theirs.read_text() == "alias ll='ls -l'\n"


def test_a_manifest_that_is_a_link_is_not_read(tree: Path, theirs: Path) -> None:
    (tree / ".transcripts").mkdir()
    (tree / ".transcripts" / MANIFEST).symlink_to(theirs)
    with pytest.raises(CompactError, match="is a link"):
        list(read_entries(tree / ".transcripts"))


def test_an_archive_folder_that_is_a_link_takes_no_original_elsewhere(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tree / ".transcripts").symlink_to(tmp_path / "elsewhere")
    for attempt in (store, verify, lambda folder: list(read_entries(folder))):
        with pytest.raises(CompactError, match="is a link"):
            attempt(tree / ".transcripts")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_archive_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "big-disk").mkdir()
    (tmp_path / "archive").symlink_to("big-disk")
    sha256 = store(tmp_path / "archive")
    restore_to(find([tmp_path / "archive"], sha256), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == DATA


@pytest.mark.parametrize("name", ["shard", "state"])
def test_a_folder_in_an_archive_that_is_a_link_is_not_written_through(tree: Path, tmp_path: Path, name: str) -> None:
    import hashlib

    (tmp_path / "elsewhere").mkdir()
    (tree / ".transcripts").mkdir()
    shard = hashlib.sha256(DATA).hexdigest()[:2] if name == "shard" else "state"
    (tree / ".transcripts" / shard).symlink_to(tmp_path / "elsewhere")
    archive = Archive(tree / ".transcripts")
    with pytest.raises(CompactError, match="is a link"):
        add(archive, DATA) if name == "shard" else archive.store_state(DATA)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert [path.name for path in (tree / ".transcripts").iterdir()] == [shard]


def test_an_original_that_is_a_link_is_not_fetched(tree: Path, tmp_path: Path) -> None:
    sha256 = store(tree / ".transcripts")
    (stored,) = (tree / ".transcripts" / sha256[:2]).iterdir()
    shutil.move(stored, tmp_path / "elsewhere.zst")
    stored.symlink_to(tmp_path / "elsewhere.zst")
    with pytest.raises(CompactError, match="is a link"):
        restore_to(find([tree / ".transcripts"], sha256), tmp_path / "again")
    assert verify(tree / ".transcripts").problems
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_an_index_that_leads_to_the_database_of_another_program_does_not_alter_it(
    tree: Path, tmp_path: Path, end: str
) -> None:
    other = tmp_path / "other.sqlite3"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE precious (value)")
    before = other.read_bytes()
    store(tree / ".transcripts")
    (tree / ".transcripts" / f"{INDEX}{end}").symlink_to(other)
    with pytest.raises(CompactError, match="is a link"), opened(tree / ".transcripts"):
        pass
    assert other.read_bytes() == before


def test_a_pipe_in_the_place_of_a_manifest_is_not_waited_for(tree: Path) -> None:
    (tree / ".transcripts").mkdir()
    os.mkfifo(tree / ".transcripts" / MANIFEST)
    with pytest.raises(CompactError, match="not a regular file"):
        list(read_entries(tree / ".transcripts"))
    with pytest.raises(CompactError, match="not a regular file"):
        append_entry(tree / ".transcripts", ManifestEntry(sha256="", bytes=0, stored=""))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_belongs_to_another_user_is_refused(tree: Path) -> None:
    sha256 = store(tree / ".transcripts")
    os.chown(tree / ".transcripts" / MANIFEST, 4321, 4321)
    with pytest.raises(CompactError, match="another user"):
        list(read_entries(tree / ".transcripts"))
    os.chown(tree / ".transcripts", 4321, 4321)
    with pytest.raises(CompactError, match="another user"):
        store(tree / ".transcripts")
    assert sha256


def test_the_name_of_a_folder_is_data_in_the_line_of_the_manifest(tree: Path) -> None:
    source = tree / 'a"\n$(touch PWNED)\x1b[2J.jsonl'
    archive = Archive(tree / ".transcripts")
    archive.record(replace(add(archive, DATA), records=3, dialect="openai-chat", source=str(source)))
    (line,) = (tree / ".transcripts" / MANIFEST).read_bytes().splitlines()
    assert b"\x1b" not in line
    ((_, entry),) = read_entries(tree / ".transcripts")
    assert entry
    assert entry.source == str(source)


def test_pruning_follows_no_link_and_removes_nothing_outside(tree: Path, tmp_path: Path) -> None:
    sha256 = store(tree / ".transcripts")
    elsewhere = tmp_path / "elsewhere"
    shutil.move(tree / ".transcripts" / sha256[:2], elsewhere)
    (tree / ".transcripts" / sha256[:2]).symlink_to(elsewhere)
    ((old, _),) = old_originals([tree / ".transcripts"], "9")
    with pytest.raises(CompactError, match="is a link"):
        remove([old])
    assert len(list(elsewhere.iterdir())) == 1


def test_a_manifest_that_leads_elsewhere_is_not_rewritten_by_pruning(tree: Path, tmp_path: Path) -> None:
    store(tree / ".transcripts")
    ((old, _),) = old_originals([tree / ".transcripts"], "9")
    manifest = tree / ".transcripts" / MANIFEST
    shutil.move(manifest, tmp_path / "manifest")
    manifest.symlink_to(tmp_path / "manifest")
    before = (tmp_path / "manifest").read_bytes()
    with pytest.raises(CompactError, match="is a link"):
        remove([old])
    assert (tmp_path / "manifest").read_bytes() == before


@pytest.mark.parametrize("name", ["../../precious", "../precious", "precious", "*"])
def test_a_manifest_with_a_path_for_a_hash_removes_no_other_file(tree: Path, name: str) -> None:
    """Whoever made the tree wrote its manifest, and the file that it names is the user's."""
    store(tree / ".transcripts")
    for folder in (tree.parent, tree, tree / ".transcripts"):
        (folder / "precious.txt").write_text("mine")
    forged = {"sha256": name, "bytes": 1, "stored": f"{name}.txt", "compacted_at": "2020-01-01T00:00:00Z"}
    with (tree / ".transcripts" / MANIFEST).open("ab") as file:
        file.write(json.dumps(forged).encode() + b"\n")
    remove(item for item, _ in old_originals([tree / ".transcripts"], "2021"))
    for folder in (tree.parent, tree, tree / ".transcripts"):
        assert (folder / "precious.txt").read_text() == "mine"
    assert len(list((tree / ".transcripts").glob("??/*.zst"))) == 1
