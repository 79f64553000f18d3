"""A file that other programs write to is replaced without the loss of a byte of theirs."""

from __future__ import annotations

import multiprocessing
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from archived import add

from compactor_cli.archive import atomic
from compactor_cli.archive.maintenance import find_leftovers, sweep
from compactor_cli.archive.store import Archive
from compactor_cli.model.errors import Changed, InUse
from compactor_cli.read.streams import open_stream
from compactor_cli.run.outputs import Target, TargetKind, open_target

OLD = b'{"old":1}\n'
NEW = b'{"new":1}\n'
LATE = b'{"late":1}\n'

linux = pytest.mark.skipif(sys.platform != "linux", reason="open writers are known on Linux alone")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(OLD)
    return path


def replaced(path: Path, before: Callable[[], Any] = lambda: None) -> None:
    """Replace the file in place by `NEW`, after ``before`` was done."""
    with open_stream(str(path)) as source:
        source.reader.read()
        with open_target(Target(path=str(path), kind=TargetKind.IN_PLACE), source) as output:
            output.write(NEW)
            before()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def append_late(path: Path) -> None:
    with path.open("ab", buffering=0) as agent:
        agent.write(LATE)


def put_in_place(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(OLD + LATE)
    other.replace(path)


def test_a_file_that_nobody_writes_to_is_replaced_and_keeps_its_mode(file: Path, tmp_path: Path) -> None:
    file.chmod(0o640)
    replaced(file)
    assert file.read_bytes() == NEW
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert names(tmp_path) == ["session.jsonl"]


@linux
@pytest.mark.parametrize("mode", ["ab", "r+b"])
def test_a_file_that_someone_has_open_for_writing_is_left_to_the_next_run(file: Path, mode: str) -> None:
    with file.open(mode, buffering=0) as agent:
        with pytest.raises(InUse, match="open for writing") as caught:
            replaced(file)
        assert caught.value.exit_code == 75
        agent.seek(0, os.SEEK_END)
        agent.write(LATE)
    assert file.read_bytes() == OLD + LATE
    replaced(file)
    assert file.read_bytes() == NEW


def test_a_file_that_someone_only_reads_is_replaced(file: Path) -> None:
    with file.open("rb"):
        replaced(file)
    assert file.read_bytes() == NEW


def test_a_file_that_someone_has_locked_is_left_to_the_next_run(file: Path) -> None:
    import fcntl

    with file.open("rb") as agent:
        fcntl.flock(agent, fcntl.LOCK_EX)
        with pytest.raises(InUse, match="locked"):
            replaced(file)
    assert file.read_bytes() == OLD


@linux
def test_the_writer_is_named_where_the_system_shows_it(file: Path) -> None:
    code = "import sys; file = open(sys.argv[1], 'ab'); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        with pytest.raises(InUse, match=rf"\(process {process.pid}\)"):
            replaced(file)
        assert process.stdin
        process.stdin.close()


@linux
def test_open_writers_are_found_without_leases_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("fcntl.F_SETLEASE")
    with file.open("ab"), pytest.raises(InUse, match=rf"\(process {os.getpid()}\)"):
        replaced(file)
    replaced(file)
    assert file.read_bytes() == NEW


@pytest.fixture(params=["with leases", "without leases", "without an exchange"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Systems of several abilities."""
    if request.param != "with leases":
        monkeypatch.delattr("fcntl.F_SETLEASE", raising=False)
    if request.param == "without an exchange":
        monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    return str(request.param)


def acting(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> list[int]:
    """Let another program act after the last look at the file, just before its name is taken."""
    real = atomic.check_unchanged
    calls: list[int] = []

    def check(path: str, look: Any) -> None:
        real(path, look)
        calls.append(1)
        # Without an exchange there is a second, last look.
        if len(calls) == (2 if atomic.exchange.__name__ == "<lambda>" else 1):
            act()

    monkeypatch.setattr(atomic, "check_unchanged", check)
    return calls


def another(act: Callable[[Path], Any], path: Path) -> Callable[[], None]:
    """``act`` by another process, which is waited for if it is not made to wait itself."""

    def start() -> None:
        process = multiprocessing.get_context("fork").Process(target=act, args=(path,))
        process.start()
        process.join(0.2)
        started.append(process)

    return start


started: list[Any] = []


@pytest.fixture(autouse=True)
def _all_ended() -> Iterator[None]:
    yield
    while started:
        started.pop().join(30)


def test_a_record_appended_between_the_look_and_the_replacement_is_not_lost(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    acting(monkeypatch, another(append_late, file))
    with pytest.raises(Changed) as caught:
        replaced(file)
    assert caught.value.exit_code == 75
    while started:
        started.pop().join(30)
    assert file.read_bytes() == OLD + LATE
    assert names(tmp_path) == ["session.jsonl"]


def test_a_file_put_in_its_place_between_the_look_and_the_replacement_is_not_lost(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acting(monkeypatch, lambda: put_in_place(file))
    with pytest.raises(Changed):
        replaced(file)
    assert file.read_bytes() == OLD + LATE
    assert names(tmp_path) == ["session.jsonl"]


def test_what_is_appended_to_the_new_file_before_it_is_taken_back_is_not_lost(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = atomic.exchange
    calls: list[int] = []

    def exchange(one: Path, other: Path) -> bool:
        if not calls:
            put_in_place(file)
        done = real(one, other)
        if not calls:
            with file.open("ab", buffering=0) as agent:
                agent.write(b'{"later":2}\n')
        calls.append(1)
        return done

    monkeypatch.setattr(atomic, "exchange", exchange)
    with pytest.raises(Changed):
        replaced(file)
    assert file.read_bytes() == OLD + LATE + b'{"later":2}\n'
    assert names(tmp_path) == ["session.jsonl"]


def leave(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_drafts_of_killed_runs_are_removed_and_those_in_use_stay(tmp_path: Path) -> None:
    left = leave(tmp_path, ".compact-0123456789abcdef.tmp", b"half")
    other = leave(tmp_path, ".compact-notes.tmp", b"not by compact")
    used = tmp_path / ".compact-fedcba9876543210.tmp"
    descriptor = atomic.new_temporary(str(used))
    assert list(find_leftovers(tmp_path)) == [left]
    assert sweep(tmp_path) == ()
    os.close(descriptor)
    assert sorted(tmp_path.iterdir()) == sorted([other, used])


def swap_name(data: bytes) -> str:
    import hashlib

    return f".compact-0123456789abcdef-{hashlib.sha256(data).hexdigest()[:16]}.swap"


def test_a_replaced_file_that_was_left_behind_goes_if_the_archive_has_it(tmp_path: Path) -> None:
    archive = Archive(tmp_path / ".transcripts")
    left = leave(tmp_path, swap_name(NEW), OLD)
    assert sweep(tmp_path, [archive.folder]) == (left,)
    archive.record(replace(add(archive, OLD), records=1, source=str(tmp_path / "session.jsonl")))
    assert sweep(tmp_path, [archive.folder]) == ()
    assert names(tmp_path) == [".transcripts"]


def test_a_new_file_that_did_not_get_its_place_goes(tmp_path: Path) -> None:
    leave(tmp_path, swap_name(NEW), NEW)
    assert sweep(tmp_path) == ()
    assert names(tmp_path) == []


def test_what_was_written_to_a_replaced_file_in_the_last_moment_finds_its_place(tmp_path: Path, file: Path) -> None:
    import hashlib

    archive = Archive(tmp_path / ".transcripts")
    written = {"written_sha256": hashlib.sha256(NEW).hexdigest(), "written_bytes": len(NEW)}
    archive.record(replace(add(archive, OLD), records=1, source=str(file), **written))
    file.write_bytes(NEW)
    leave(tmp_path, swap_name(NEW), OLD + LATE)
    assert sweep(tmp_path, [archive.folder]) == ()
    assert file.read_bytes() == NEW + LATE
    assert names(tmp_path) == [".transcripts", "session.jsonl"]


def test_a_forged_manifest_makes_nobody_delete_or_append_to_anything(tmp_path: Path, file: Path) -> None:
    """The archive has no such original: the line alone is not believed."""
    import hashlib

    from compactor_cli.archive.store import ManifestEntry, append_entry

    folder = tmp_path / ".transcripts"
    folder.mkdir()
    forged = ManifestEntry(sha256=hashlib.sha256(OLD).hexdigest(), bytes=len(OLD), stored="x", source="/etc/passwd")
    append_entry(folder, forged)
    left = leave(tmp_path, swap_name(NEW), OLD)
    assert sweep(tmp_path, [folder]) == (left,)
    assert left.read_bytes() == OLD


@linux
def test_an_agent_that_opens_the_file_in_the_last_moment_waits_and_writes_to_what_has_the_name(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late_open(path: Path) -> None:
        with path.open("ab", buffering=0) as agent:
            time.sleep(0.1)
            agent.write(LATE)

    acting(monkeypatch, another(late_open, file))
    with pytest.raises(Changed):
        replaced(file)
    while started:
        started.pop().join(30)
    assert file.read_bytes() == OLD + LATE
