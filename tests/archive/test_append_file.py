"""Bytes appended to a file, and cut off again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from compactor_cli.archive import append as module
from compactor_cli.archive.append import append_to, cut_back, find_appended
from compactor_cli.archive.store import Archive
from compactor_cli.model.errors import Changed, OutputError
from compactor_cli.read.streams import look_at

BEGUN = b'{"a":1}\n'
WHOLE = BEGUN + b'{"b":2}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(BEGUN)
    return path


def test_only_what_is_new_is_written(file: Path) -> None:
    inode = file.stat().st_ino
    append_to(str(file), WHOLE, look_at(str(file)))
    assert file.read_bytes() == WHOLE
    assert file.stat().st_ino == inode


def test_a_file_that_someone_wrote_to_is_left_alone(file: Path) -> None:
    look = look_at(str(file))
    file.write_bytes(BEGUN + b"more\n")
    with pytest.raises(Changed):
        append_to(str(file), WHOLE, look)
    assert file.read_bytes() == BEGUN + b"more\n"


def test_an_output_that_does_not_begin_with_the_file_is_refused(file: Path) -> None:
    with pytest.raises(OutputError, match="several conversations"):
        append_to(str(file), b"other\n", look_at(str(file)))
    assert file.read_bytes() == BEGUN


def test_a_write_that_fails_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(OutputError, match="the disk is full"):
        append_to(str(file), WHOLE, look_at(str(file)))
    assert file.read_bytes() == BEGUN


def test_the_original_is_found_by_the_hash_of_the_beginning(file: Path, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    for data in (BEGUN, b"x" * len(BEGUN), BEGUN[:4]):
        archive.record(archive.add(data), records=1, dialect="", source="elsewhere")
    append_to(str(file), WHOLE, look_at(str(file)))
    found = find_appended(str(file), [tmp_path / "none", tmp_path / "archive"])
    assert found.original.sha256 == hashlib.sha256(BEGUN).hexdigest()
    cut_back(str(file), found)
    assert file.read_bytes() == BEGUN


def test_a_file_that_begins_with_nothing_archived_is_refused(file: Path, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    archive.record(archive.add(b"y" * 4), records=1, dialect="", source=str(file))
    with pytest.raises(OutputError, match="begins with no archived original"):
        find_appended(str(file), [tmp_path / "archive"])


def test_nothing_is_cut_off_a_file_that_grew_meanwhile(file: Path, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    archive.record(archive.add(BEGUN), records=1, dialect="", source=str(file))
    file.write_bytes(WHOLE)
    found = find_appended(str(file), [tmp_path / "archive"])
    with file.open("ab") as more:
        more.write(b"more\n")
        os.fsync(more.fileno())
    with pytest.raises(Changed):
        cut_back(str(file), found)
    assert file.read_bytes() == WHOLE + b"more\n"
