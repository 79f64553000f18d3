"""A file is there as a whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compactor_cli.archive.atomic import Existing, atomic_writer, make_folders
from compactor_cli.model.errors import Changed, OutputError


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def fail(number: int) -> Callable[..., Any]:
    def failing(*args: object, **kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return failing


def test_a_new_file_is_written_and_nothing_else_is_left(tmp_path: Path) -> None:
    with atomic_writer(tmp_path / "a") as file:
        file.write(b"new")
        assert not (tmp_path / "a").exists()
    assert content(tmp_path) == {"a": b"new"}


def test_the_umask_and_the_mode_asked_for_hold_for_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for name, mode in (("open", 0o666), ("own", 0o600)):
            with atomic_writer(tmp_path / name, mode=mode):
                pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o600, 0o444, 0o751])
def test_a_replaced_file_keeps_its_mode_and_is_private_until_then(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    with atomic_writer(path) as file:
        file.write(b"new")
        others = [item.stat().st_mode for item in tmp_path.iterdir() if item != path]
        assert [stat.S_IMODE(item) for item in others] == [0o600]
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, 4321, 1234)
    with atomic_writer(path):
        pass
    assert (path.stat().st_uid, path.stat().st_gid) == (4321, 1234)


def test_a_link_stays_and_the_file_after_it_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("deep/real")
    with atomic_writer(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "deep") == {"real": b"new"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exception_leaves_everything_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(error), atomic_writer(tmp_path / "a") as file:  # noqa: PT012 -- what happens inside is the case
        file.write(b"half" * 1_000_000)
        raise error
    assert content(tmp_path) == {"a": b"old"}


@pytest.mark.parametrize("call", ["open", "fsync", "replace", "fchmod"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES])
def test_whatever_the_system_refuses_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with monkeypatch.context() as patch, pytest.raises(OutputError) as caught:  # noqa: PT012 -- what happens inside is the case
        patch.setattr(os, call, fail(number))
        with atomic_writer(tmp_path / "a") as file:
            file.write(b"new")
    assert content(tmp_path) == {"a": b"old"}
    assert caught.value.next_step
    assert caught.value.place == str(tmp_path / "a")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_found_while_writing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old")
    opening = os.open

    def full(path: object, *args: Any, **kwargs: Any) -> int:
        opening(path, *args, **kwargs)  # type: ignore[arg-type]
        return opening("/dev/full", os.O_WRONLY)

    with monkeypatch.context() as patch, pytest.raises(OutputError, match="disk is full"):  # noqa: PT012 -- what happens inside is the case
        patch.setattr(os, "open", full)
        with atomic_writer(tmp_path / "a") as file:
            file.write(b"new" * 1_000_000)
    assert content(tmp_path) == {"a": b"old"}


def test_a_file_system_that_cannot_sync_folders_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncing = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        syncing(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_writer(tmp_path / "a") as file:
        file.write(b"new")
    assert content(tmp_path) == {"a": b"new"}


def test_the_file_is_on_the_disk_before_it_has_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    syncing, replacing = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        syncing(descriptor)

    def replace(*args: Any) -> None:
        done.append("replace")
        replacing(*args)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    with atomic_writer(tmp_path / "a") as file:
        file.write(b"new")
    assert done == ["file", "replace", "folder"]


def test_refusing_holds_even_for_a_file_that_came_meanwhile(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"), atomic_writer(tmp_path / "a", existing=Existing.REFUSE):
        (tmp_path / "a").write_bytes(b"theirs")
    assert content(tmp_path) == {"a": b"theirs"}


def test_refusing_works_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", fail(errno.EPERM))
    with atomic_writer(tmp_path / "a", existing=Existing.REFUSE) as file:
        file.write(b"new")
    with pytest.raises(OutputError), atomic_writer(tmp_path / "a", existing=Existing.REFUSE) as file:
        file.write(b"newer")
    assert content(tmp_path) == {"a": b"new"}


def test_a_way_of_taking_the_name_that_raises_leaves_the_old_file(tmp_path: Path) -> None:
    def take(temporary: Path, target: Path) -> None:
        assert temporary.read_bytes() == b"new"
        raise Changed("changed")

    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(Changed), atomic_writer(tmp_path / "a", take=take) as file:
        file.write(b"new")
    assert content(tmp_path) == {"a": b"old"}


def test_a_file_that_stands_is_no_failure_when_only_its_folder_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncing = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        syncing(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    warnings: list[str] = []
    with atomic_writer(tmp_path / "a", warn=warnings.append) as file:
        file.write(b"new")
    assert content(tmp_path) == {"a": b"new"}
    assert len(warnings) == 1
    assert "power cut" in warnings[0]


def test_a_missing_folder_is_named_with_a_next_step(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="folder"), atomic_writer(tmp_path / "none" / "a"):
        pass


def test_folders_are_made_with_their_mode_and_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    make_folders(tmp_path / "a" / "b", 0o700)
    make_folders(tmp_path / "a" / "b", 0o700)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        make_folders(tmp_path / "file" / "c")
    with pytest.raises(OutputError):
        make_folders(tmp_path / "file")


def test_a_device_or_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_writer(pipe) as file:
        file.write(b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [item.name for item in tmp_path.iterdir()] == ["pipe"]
