"""Every kind of damage to an archive is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from archived import add

from compactor_cli.archive.maintenance import verify
from compactor_cli.archive.store import MANIFEST, Archive, ManifestEntry, Part, stored_blobs
from compactor_cli.model.errors import Unreadable

ROWS = (b'{"row":1}\n', b'{"row":2}\n')


def make(folder: Path) -> tuple[Archive, ManifestEntry]:
    import hashlib

    archive = Archive(folder)
    offset = 0
    with archive.writer() as writer:
        for row in ROWS:
            writer(row)
            writer.add_part(Part(sha256=hashlib.sha256(row).hexdigest(), offset=offset, length=len(row)))
            offset += len(row)
        blob = writer.commit()
    archive.record(replace(blob, records=2, dialect="openai-chat", source="a.jsonl"))
    return archive, blob


def problems(folder: Path) -> list[str]:
    return [str(problem) for problem in verify(folder).problems]


def test_a_sound_archive_is_sound(tmp_path: Path) -> None:
    archive, _ = make(tmp_path)
    archive.store_state(b"table")
    found = verify(tmp_path)
    assert not found.problems
    assert (found.originals, found.states, found.size_bytes) == (1, 1, 20)


def test_a_missing_original_is_named(tmp_path: Path) -> None:
    _, blob = make(tmp_path)
    (tmp_path / blob.stored).unlink()
    names = problems(tmp_path)
    assert any(f"{MANIFEST}:1: {blob.stored} is not here" in name for name in names)
    assert any("lists transcripts" in name for name in names)


@pytest.mark.parametrize("rot", [b"rot", b"", b"\x28\xb5\x2f\xfd\x00"])
def test_a_damaged_original_is_named_once(tmp_path: Path, rot: bytes) -> None:
    _, blob = make(tmp_path)
    (tmp_path / blob.stored).write_bytes(rot)
    (name,) = problems(tmp_path)
    assert blob.stored in name


def test_a_list_that_does_not_fit_is_named(tmp_path: Path) -> None:
    archive, blob = make(tmp_path)
    with archive.writer() as writer:
        for row in ROWS:
            writer(row)
        writer.add_part(Part(sha256="0" * 64, offset=3, length=5))
        writer.add_part(Part(sha256="1" * 64, offset=900, length=5))
        writer.commit()
    names = problems(tmp_path)
    assert len(names) == 2
    assert all(blob.sha256 in name and "no transcript" in name for name in names)


def test_damaged_tables_and_manifest_lines_are_named(tmp_path: Path) -> None:
    archive, blob = make(tmp_path)
    name = archive.store_state(b"table")
    (tmp_path / "state" / f"{name}.zst").write_bytes(b"rot")
    with (tmp_path / MANIFEST).open("ab") as file:
        file.write(b"torn\n")
    archive.record(replace(blob, bytes=7, records=1, source=""))
    names = problems(tmp_path)
    assert len(names) == 3
    assert sum(MANIFEST in text for text in names) == 2


def test_an_original_without_a_line_is_no_problem(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / MANIFEST).unlink()
    found = verify(tmp_path)
    assert (found.originals, found.problems) == (1, ())


def test_no_archive_at_all_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        verify(tmp_path / "none")


def test_an_original_that_is_added_meanwhile_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, _ = make(tmp_path)

    def found_before(root: Path, *more: str) -> Iterator[tuple[str, Path]]:
        found = list(stored_blobs(root, *more))
        archive.record(replace(add(archive, b"later"), records=1, source=""))
        return iter(found)

    monkeypatch.setattr("compactor_cli.archive.store.stored_blobs", found_before)
    assert problems(tmp_path) == []
