"""Bytes appended to a file that others may write to at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archived import add

from compactor_cli.archive import atomic
from compactor_cli.archive.atomic import append
from compactor_cli.archive.maintenance import finish_append, journal
from compactor_cli.archive.store import Archive
from compactor_cli.model.errors import Changed, OutputError
from compactor_cli.read.streams import look_at
from compactor_cli.run.outputs import added_bytes

BEGUN = b'{"a":1}\n'
ADDED = b'{"type":"boundary","b":2}\n{"type":"summary","c":3}\n'
LATE = b'{"type":"user","late":1}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(BEGUN)
    return path


def test_only_what_is_new_is_written(file: Path) -> None:
    inode = file.stat().st_ino
    added = added_bytes(str(file), BEGUN + ADDED, look_at(str(file)))
    assert added == ADDED
    append(str(file), added, look_at(str(file)))
    assert file.read_bytes() == BEGUN + ADDED
    assert file.stat().st_ino == inode


def test_a_file_that_someone_wrote_to_is_left_alone(file: Path) -> None:
    look = look_at(str(file))
    file.write_bytes(BEGUN + LATE)
    for attempt in (lambda: added_bytes(str(file), BEGUN + ADDED, look), lambda: append(str(file), ADDED, look)):
        with pytest.raises(Changed) as caught:
            attempt()
        assert caught.value.exit_code == 75
    assert file.read_bytes() == BEGUN + LATE


def test_an_output_that_does_not_begin_with_the_file_is_refused(file: Path) -> None:
    with pytest.raises(OutputError, match="several conversations"):
        added_bytes(str(file), b"other\n", look_at(str(file)))
    assert file.read_bytes() == BEGUN


def test_a_write_that_fails_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OutputError, match="the disk is full"):
        append(str(file), ADDED, look_at(str(file)))
    assert file.read_bytes() == BEGUN


def writing(monkeypatch: pytest.MonkeyPatch, *, before: Callable[[], Any], piece: int = 1 << 20) -> None:
    """Let others act just before our bytes are written, and the system take only a piece at a time."""
    real = os.write
    waiting = [before]

    def write(descriptor: int, data: bytes) -> int:
        if waiting and data.startswith(ADDED[-9:]) | data.startswith(ADDED[:9]):
            waiting.pop()()
        return real(descriptor, data[:piece])

    monkeypatch.setattr(atomic.os, "write", write)


def other_program(file: Path) -> None:
    with file.open("ab", buffering=0) as agent:
        agent.write(LATE)


def test_a_record_that_lands_just_before_is_kept_and_nothing_is_appended(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing(monkeypatch, before=lambda: other_program(file))
    with pytest.raises(Changed):
        append(str(file), ADDED, look_at(str(file)))
    assert file.read_bytes() == BEGUN + LATE


def test_a_record_that_lands_between_two_writes_is_kept_and_nothing_is_appended(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    calls: list[int] = []

    def write(descriptor: int, data: bytes) -> int:
        calls.append(descriptor)
        if len(calls) == 2:
            with file.open("ab", buffering=0) as agent:
                real(agent.fileno(), LATE)
        return real(descriptor, data[:20])

    monkeypatch.setattr(atomic.os, "write", write)
    with pytest.raises(Changed):
        append(str(file), ADDED, look_at(str(file)))
    assert file.read_bytes() == BEGUN + LATE


def killed(file: Path, archive: Path, written: int) -> None:
    """A run that was killed when so much of what it appended had been written."""
    store = Archive(archive)
    with journal(archive, str(file), add(store, BEGUN), ADDED):
        kept = {path: path.read_bytes() for path in archive.iterdir() if path.is_file()}
    for path, data in kept.items():
        path.write_bytes(data)
    file.write_bytes(BEGUN + ADDED[:written])


@pytest.mark.parametrize("written", [1, 10, 26, 30, len(ADDED) - 1])
def test_what_a_killed_run_began_to_append_is_finished_by_the_next(file: Path, tmp_path: Path, written: int) -> None:
    killed(file, tmp_path / "archive", written)
    finish_append(str(file), tmp_path / "archive")
    assert file.read_bytes() == BEGUN + ADDED
    assert not list((tmp_path / "archive").glob("append-*"))


@pytest.mark.parametrize("written", [1, 9, 10, 30, 35, len(ADDED) - 1])
def test_a_record_glued_to_a_torn_append_stands_on_its_own_again(file: Path, tmp_path: Path, written: int) -> None:
    killed(file, tmp_path / "archive", written)
    other_program(file)
    finish_append(str(file), tmp_path / "archive")
    assert file.read_bytes() == BEGUN + LATE


@pytest.mark.parametrize("later", [b"", LATE, ADDED, ADDED + LATE])
def test_a_journal_of_an_append_that_was_not_torn_changes_nothing(file: Path, tmp_path: Path, later: bytes) -> None:
    killed(file, tmp_path / "archive", 0)
    file.write_bytes(BEGUN + later)
    finish_append(str(file), tmp_path / "archive")
    assert file.read_bytes() == BEGUN + later
    assert not list((tmp_path / "archive").glob("append-*"))


@pytest.mark.parametrize("later", [ADDED[:10], ADDED[:7] + LATE])
def test_a_journal_that_came_with_the_tree_is_not_believed(file: Path, tmp_path: Path, later: bytes) -> None:
    """Whoever made the tree knows the path and the bytes of the file in it, but not which file that is on this disk."""
    killed(file, tmp_path / "archive", 0)
    (name,) = (tmp_path / "archive").glob("append-*")
    forged = file.with_name("forged")
    forged.write_bytes(BEGUN + later)
    forged.rename(file)
    finish_append(str(file), tmp_path / "archive")
    assert file.read_bytes() == BEGUN + later
    assert not name.exists()


def test_a_journal_without_end_is_not_read(file: Path, tmp_path: Path) -> None:
    killed(file, tmp_path / "archive", 5)
    (name,) = (tmp_path / "archive").glob("append-*")
    os.truncate(name, 1 << 40)
    finish_append(str(file), tmp_path / "archive")
    assert file.read_bytes() == BEGUN + ADDED[:5]


def test_a_journal_for_another_file_changes_nothing(file: Path, tmp_path: Path) -> None:
    killed(file, tmp_path / "archive", 5)
    file.write_bytes(b'{"z":1}\n' + ADDED[:5])
    finish_append(str(file), tmp_path / "archive")
    assert file.read_bytes() == b'{"z":1}\n' + ADDED[:5]
