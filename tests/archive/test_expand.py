"""Records come back by every name that people copy, or with a reason why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from archived import remove, said, session, store, store_rows

from compactor_cli.archive.restore import expand
from compactor_cli.model.errors import InputError, UsageError

TALK = said("one", "two", "three", "four", "five")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def numbers(archive: Path, *names: str) -> list[int]:
    return [original.number for original in expand([archive], names)]


def marker(sha256: str, first: int, last: int) -> str:
    return f"[compact/1 transcript={sha256[:16]} records={first}-{last}/5 tokens=9 end=0123456789abcdef]"


def test_ids_ranges_lists_and_whole_hashes(archive: Path) -> None:
    sha256 = store(archive, *TALK)
    short = sha256[:8]
    assert numbers(archive, f"{short}:2") == [2]
    assert numbers(archive, f"{sha256}:2-4", f"{short}:1,5") == [2, 3, 4, 1, 5]
    assert numbers(archive, short.upper()) == [1, 2, 3, 4, 5]
    (found,) = expand([archive], [f"{short}:3"])
    assert found.id == f"{sha256[:16]}:3"
    assert (found.message.text, json.loads(found.record.raw)) == ("three", TALK[2])


def test_marker_lines_and_the_references_of_their_summaries(archive: Path) -> None:
    sha256 = store(archive, *TALK)
    line = marker(sha256, 2, 4)
    assert numbers(archive, line) == [2, 3, 4]
    assert numbers(archive, f"preface\n{line}\n## Summary") == [2, 3, 4]
    assert numbers(archive, line, "[5]", "1,3") == [5, 1, 3]
    assert numbers(archive, sha256[:8], "[2-3]") == [2, 3]
    assert numbers(archive, f"{sha256[:8]}:1", "[2]") == [1, 2]


def test_a_reference_belongs_to_the_transcript_before_it(archive: Path) -> None:
    first, second = store(archive, *TALK), store(archive, *said("other", "talk"))
    found = list(expand([archive], [first[:12], "[1]", second[:12], "[2]"]))
    assert [original.message.text for original in found] == ["one", "talk"]


@pytest.mark.parametrize("names", [["[3]"], ["12"], ["hello"], ["54453b50:x"], [""]])
def test_what_names_no_record_is_a_usage_error(archive: Path, names: list[str]) -> None:
    with pytest.raises(UsageError):
        numbers(archive, *names)


def test_what_the_archive_lacks_is_named(archive: Path) -> None:
    sha256 = store(archive, *TALK)
    with pytest.raises(InputError, match="1-5"):
        numbers(archive, f"{sha256[:8]}:6")
    with pytest.raises(InputError, match="1-5"):
        numbers(archive, f"{sha256[:8]}:4-2")
    remove(archive, sha256)
    with pytest.raises(InputError, match=sha256[:8]):
        numbers(archive, f"{sha256[:8]}:1")


def test_conversations_of_a_dataset_come_back_by_their_own_hash(archive: Path) -> None:
    rows = [json.dumps({"messages": said("row", str(number))}).encode() + b"\n" for number in range(3)]
    blob = store_rows(archive, *rows, listed=(1, 2))
    import hashlib

    second = hashlib.sha256(rows[1]).hexdigest()
    (found,) = expand([archive], [f"{second[:10]}:2"])
    assert found.message.text == "1"
    with pytest.raises(InputError, match="several conversations"):
        numbers(archive, f"{blob.sha256[:10]}:1")


def test_rows_of_a_json_array_come_back_although_commas_stand_between_them(archive: Path) -> None:
    rows = [json.dumps({"messages": said("row", str(number))}).encode() for number in range(3)]
    pieces = [b"[" + rows[0] + b",\n", rows[1] + b",\n", rows[2] + b"]\n"]
    store_rows(archive, *pieces, listed=(0, 1, 2))
    import hashlib

    for number, piece in enumerate(pieces):
        (found,) = expand([archive], [f"{hashlib.sha256(piece).hexdigest()}:2"])
        assert found.message.text == str(number)


def test_two_sessions_in_one_file_are_distinguished(archive: Path) -> None:
    other = {"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/"}
    sha256 = store(archive, *TALK)
    rows = [session(TALK), json.dumps(other).encode() + b"\n"]
    store_rows(archive, *rows, listed=(0,))
    assert numbers(archive, f"{sha256[:12]}:1") == [1]
