"""Originals are durable under their hash, or nothing has changed."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import shutil
import stat
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from archived import add
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.archive.store import (
    MANIFEST,
    Archive,
    Part,
    default_archive_dir,
    read_entries,
    read_parts,
    stored_sidecars,
)
from compactor_cli.model.errors import OutputError
from compactor_cli.read.streams import open_stream, zstd

DATA = b'{"a":1}\n' * 1000
SHA = hashlib.sha256(DATA).hexdigest()


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_an_original_is_stored_under_its_hash_for_its_owner_only(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "x" / "archive")
    blob = add(archive, DATA)
    assert (blob.sha256, blob.bytes, blob.stored) == (SHA, len(DATA), f"{SHA[:2]}/{SHA}.jsonl.zst")
    assert files(archive.folder) == [blob.stored]
    assert stat.S_IMODE((archive.folder / blob.stored).stat().st_mode) == 0o600
    assert {stat.S_IMODE(item.stat().st_mode) for item in (archive.folder, archive.folder / SHA[:2])} == {0o700}


@pytest.mark.skipif(not shutil.which("zstd"), reason="no zstd command here")
def test_zstd_alone_gets_the_original_back(tmp_path: Path) -> None:
    blob = add(Archive(tmp_path), DATA)
    done = subprocess.run(["zstd", "-dc", str(tmp_path / blob.stored)], capture_output=True, check=True)
    assert done.stdout == DATA


@given(st.lists(st.binary()))
def test_what_is_stored_piece_by_piece_is_what_came(
    tmp_path_factory: pytest.TempPathFactory, data: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    with Archive(folder).writer() as writer:
        for piece in data:
            writer(piece)
        blob = writer.commit()
    whole = b"".join(data)
    assert blob.sha256 == hashlib.sha256(whole).hexdigest()
    assert zstd().decompress((folder / blob.stored).read_bytes()) == whole


def test_a_stream_is_archived_while_it_is_read(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl.gz"
    source.write_bytes(gzip.compress(DATA))
    with Archive(tmp_path / "archive").writer() as writer, open_stream(str(source), [writer]) as stream:
        assert stream.reader.read() == DATA
        assert writer.commit().sha256 == SHA


def test_the_same_original_is_stored_once(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    first = add(archive, DATA)
    before = (tmp_path / first.stored).stat()
    assert add(archive, DATA) == first
    after = (tmp_path / first.stored).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert files(tmp_path) == [first.stored]


def test_a_damaged_original_is_repaired_when_it_comes_again(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    path = tmp_path / add(archive, DATA).stored
    path.write_bytes(b"rot")
    add(archive, DATA)
    assert zstd().decompress(path.read_bytes()) == DATA


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_is_not_committed_leaves_no_trace(tmp_path: Path, error: type[BaseException]) -> None:
    folder = tmp_path / "archive"
    with pytest.raises(error), Archive(folder).writer() as writer:  # noqa: PT012 -- what happens inside is the case
        writer(DATA)
        writer.add_part(Part(sha256=SHA, offset=0, length=8))
        raise error
    assert not folder.exists()
    with Archive(folder).writer() as writer:
        writer(DATA)
    assert not folder.exists()


@pytest.mark.parametrize("call", ["open", "fsync", "replace", "mkdir"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_whatever_the_system_refuses_no_half_original_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OutputError) as caught:
            add(Archive(tmp_path / "archive"), DATA)
    assert caught.value.next_step
    assert files(tmp_path) == []


def test_an_original_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    syncing, replacing = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        syncing(descriptor)

    def replace(*args: Any, **kwargs: Any) -> None:
        done.append("replace")
        replacing(*args, **kwargs)

    archive = Archive(tmp_path)
    (tmp_path / SHA[:2]).mkdir()
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    add(archive, DATA)
    assert done == ["file", "replace", "folder"]


def test_the_transcripts_of_an_original_are_listed_and_lists_of_several_runs_joined(tmp_path: Path) -> None:
    parts = [Part(sha256=f"{number:064x}", offset=number * 8, length=8) for number in range(4)]
    archive = Archive(tmp_path)
    for chosen in (parts[2:3], parts[:3], parts[:3], parts[3:]):
        with archive.writer() as writer:
            writer(DATA)
            for part in chosen:
                writer.add_part(part)
            writer.commit()
    ((original, path),) = stored_sidecars(tmp_path)
    assert original == SHA
    assert path.name == f"{SHA}.transcripts.jsonl.zst"
    assert list(read_parts(path)) == parts
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(files(tmp_path)) == 2


def test_counter_tables_are_found_by_their_hash(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    assert archive.load_state("0" * 16) is None
    name = archive.store_state(b"table")
    assert name == hashlib.sha256(b"table").hexdigest()[:16]
    assert archive.store_state(b"table") == name
    assert archive.load_state(name) == b"table"
    assert files(archive.folder) == [f"state/{name}.zst"]
    (archive.folder / "state" / f"{name}.zst").write_bytes(b"rot")
    assert archive.load_state(name) is None
    assert archive.load_state("../../etc/passw") is None
    archive.store_state(b"table")
    assert archive.load_state(name) == b"table"


def test_every_compaction_is_a_line_of_the_manifest(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    blob = add(archive, DATA)
    first = replace(blob, records=3, dialect="pi", source="/s/a.jsonl", compacted_at="2026-01-01T00:00:00Z")
    archive.record(first)
    archive.record(replace(blob, records=3, dialect="pi", source="-"))
    lines = (tmp_path / MANIFEST).read_bytes().splitlines()
    assert json.loads(lines[0]) == {
        "sha256": SHA,
        "bytes": len(DATA),
        "stored": blob.stored,
        "records": 3,
        "dialect": "pi",
        "source": "/s/a.jsonl",
        "compacted_at": "2026-01-01T00:00:00Z",
    }
    assert json.loads(lines[1])["compacted_at"].endswith("Z")
    assert next(entry for _, entry in read_entries(tmp_path)) == first
    assert stat.S_IMODE((tmp_path / MANIFEST).stat().st_mode) == 0o600


def test_a_torn_line_of_the_manifest_does_not_spoil_the_next(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    blob = add(archive, DATA)
    (tmp_path / MANIFEST).write_bytes(b'{"sha256": "to')
    archive.record(replace(blob, records=1, source=""))
    assert [entry.sha256 if entry else None for _, entry in read_entries(tmp_path)] == [None, SHA]


def test_a_full_disk_leaves_the_manifest_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive(tmp_path)
    blob = add(archive, DATA)
    archive.record(replace(blob, records=1, source="first"))
    before = (tmp_path / MANIFEST).read_bytes()
    writing = os.write
    calls = iter(range(9))

    def write(descriptor: int, data: bytes) -> int:
        if next(calls):
            raise OSError(errno.ENOSPC, "No space left on device")
        return writing(descriptor, data[:10])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(OutputError, match="full"):
            archive.record(replace(blob, records=1, source="second"))
    assert (tmp_path / MANIFEST).read_bytes() == before


def test_lines_added_at_the_same_time_stay_whole(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    blob = add(archive, DATA)

    def record() -> None:
        for _ in range(10):
            archive.record(replace(blob, records=1, source="s" * 5000))

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry is not None for _, entry in read_entries(tmp_path)] == [True] * 40


def test_the_archive_lies_next_to_a_replaced_file_else_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a").touch()
    (tmp_path / "link").symlink_to("real/a")
    assert default_archive_dir(str(tmp_path / "link"), in_place=True) == tmp_path / "real/.transcripts"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_archive_dir("a", in_place=False) == Path("/data/compact/archive")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert default_archive_dir("-", in_place=True) == Path("/home/me/.local/share/compact/archive")


def test_a_source_whose_name_is_not_utf8_is_in_the_manifest(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.record(replace(add(archive, DATA), records=3, dialect="pi", source=os.fsdecode(b"/s/\xff\xc3\xa9.jsonl")))
    assert [entry and entry.source for _, entry in read_entries(tmp_path)] == ["/s/\\xff\u00e9.jsonl"]


@pytest.mark.parametrize("odd", [{"records": []}, {"bytes": "1"}, {"source": {}}, {"written_bytes": True}])
def test_a_line_with_values_of_other_types_is_no_entry(tmp_path: Path, odd: dict[str, object]) -> None:
    archive = Archive(tmp_path)
    archive.record(replace(add(archive, DATA), records=3, dialect="pi", source="-"))
    line = json.loads((tmp_path / MANIFEST).read_bytes())
    (tmp_path / MANIFEST).write_text(json.dumps(line | odd) + "\n")
    assert list(read_entries(tmp_path)) == [(1, None)]
