"""What was archived comes back byte for byte, or not at all."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.archive.restore import find, restore, restore_to
from compactor_cli.archive.store import Archive, Part
from compactor_cli.model.errors import InputError, OutputError, Unreadable, UsageError
from compactor_cli.read.streams import compression_named, compression_of, open_stream


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def store(folder: Path, *rows: bytes) -> str:
    """Archive rows as one original that lists each of them."""
    offset = 0
    with Archive(folder).writer() as writer:
        for row in rows:
            writer(row)
            writer.add_part(Part(sha256=sha(row), offset=offset, length=len(row)))
            offset += len(row)
        return writer.commit().sha256


def restored(folder: Path, prefix: str) -> bytes:
    file = io.BytesIO()
    count = restore(find([folder], prefix), file)
    assert count == len(file.getvalue())
    return file.getvalue()


@given(st.lists(st.binary(min_size=1), min_size=1, max_size=5))
def test_originals_and_the_transcripts_in_them_come_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    whole = store(folder, *rows)
    assert restored(folder, whole) == b"".join(rows)
    for row in rows:
        assert restored(folder, sha(row)[:16]) == row


def test_transcripts_across_pieces_of_a_large_original_come_back(tmp_path: Path) -> None:
    rows = [bytes([65 + number]) * 700_000 for number in range(5)]
    store(tmp_path, *rows)
    assert [restored(tmp_path, sha(row)) for row in rows] == rows


def test_a_hash_is_found_in_any_archive_in_any_case_and_copies_are_no_ambiguity(tmp_path: Path) -> None:
    for name in ("a", "b"):
        store(tmp_path / name, b"same\n", b"other\n")
    folders = [tmp_path / "none", tmp_path / "a", tmp_path / "b"]
    assert find(folders, sha(b"same\nother\n")[:8].upper()).length == -1
    assert find(folders, sha(b"same\n")[:8]).length == 5


@pytest.mark.parametrize("prefix", ["", "1234567", "not a hash", "../../../etc"])
def test_what_is_no_hash_is_a_usage_error(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(UsageError):
        find([tmp_path], prefix)


def test_an_unknown_hash_names_the_archives_and_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--archive-dir") as caught:
        find([tmp_path], "0" * 8)
    assert str(tmp_path) in str(caught.value)


def test_an_ambiguous_start_names_what_begins_with_it(tmp_path: Path) -> None:
    names = [f"{'ab' * 4}{number:056x}" for number in range(2)]
    (tmp_path / "ab").mkdir()
    for name in names:
        (tmp_path / "ab" / f"{name}.jsonl.zst").touch()
    with pytest.raises(InputError, match=f"{names[0]}, {names[1]}"):
        find([tmp_path], "ab" * 4)
    assert find([tmp_path], names[1]).sha256 == names[1]


def test_damage_is_noticed_and_no_file_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    right = store(folder, b"right\n")
    wrong = store(folder, b"wrong\n")
    found = find([folder], right)
    found.path.write_bytes(find([folder], wrong).path.read_bytes())
    with pytest.raises(Unreadable, match="damaged"):
        restore_to(found, tmp_path / "out")
    found.path.write_bytes(b"\x28\xb5\x2f\xfd rot")
    with pytest.raises(Unreadable):
        restore_to(found, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_restored_file_overwrites_only_if_asked_to(tmp_path: Path) -> None:
    found = find([tmp_path / "archive"], store(tmp_path / "archive", b"data\n"))
    out = tmp_path / "out"
    out.write_bytes(b"mine")
    with pytest.raises(OutputError, match="exists"):
        restore_to(found, out)
    assert out.read_bytes() == b"mine"
    out.unlink()
    restore_to(found, out)
    assert out.read_bytes() == b"data\n"


@pytest.mark.parametrize("name", ["out.jsonl.gz", "out.zst"])
def test_a_restored_file_is_packed_as_its_name_says(name: str, tmp_path: Path) -> None:
    found = find([tmp_path / "archive"], store(tmp_path / "archive", b"data\n"))
    restore_to(found, tmp_path / name)
    packed = (tmp_path / name).read_bytes()
    assert compression_of(packed) is compression_named(name)
    with open_stream(str(tmp_path / name)) as stream:
        assert list(stream.lines()) == [b"data\n"]


def test_of_many_archives_that_lack_a_hash_a_few_are_named(tmp_path: Path) -> None:
    folders = [tmp_path / f"archive{number}" for number in range(100)]
    with pytest.raises(InputError) as failed:
        find(folders, "deadbeef")
    assert "archive0, " in str(failed.value)
    assert " more archives" in str(failed.value)
    assert "archive99" not in str(failed.value)
