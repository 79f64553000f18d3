"""A session that is archived while it grows is stored once, and every state of it can be had."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from pathlib import Path

import pytest
from archived import add, said, session, store

from compactor_cli.archive.maintenance import old_originals, remove, store_session, verify
from compactor_cli.archive.restore import each_once, expand, find, listed, restore
from compactor_cli.archive.search import search
from compactor_cli.archive.store import Archive, read_entries, stored_blobs
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import InputError, OutputError
from compactor_cli.read.jsonl import OnInvalid, read_records

SAID = said(*(f"tide {number} at harbour_{number}" for number in range(12)))


def _stored(folder: Path, data: bytes, source: str = "/s/live.jsonl") -> str:
    (transcript,) = open_transcripts(read_records(io.BytesIO(data), "live", OnInvalid.KEEP))
    store_session(Archive(folder), transcript, source)
    return transcript.sha256


def _restored(folder: Path, sha256: str) -> bytes:
    file = io.BytesIO()
    restore(find([folder], sha256), file)
    return file.getvalue()


def test_every_state_of_a_session_is_had_from_the_last(tmp_path: Path) -> None:
    states = [session(SAID[:stop]) for stop in (2, 4, 8, 12)]
    hashes = []
    for state in states:
        hashes.append(_stored(tmp_path, state))
        assert [hit.record for hit in search([tmp_path], "harbour_1").hits] == [1]
    assert [sha256 for sha256, _ in stored_blobs(tmp_path)] == [hashes[-1]]
    assert [entry.sha256 for _, entry in read_entries(tmp_path) if entry] == [hashes[-1]]
    assert [_restored(tmp_path, sha256) for sha256 in hashes] == states
    (record,) = expand([tmp_path], [f"{hashes[1]}:4"])
    assert record.message.text == "tide 3 at harbour_3"
    checked = verify(tmp_path)
    assert (checked.problems, checked.originals, checked.leftovers) == ((), 1, ())
    assert len(search([tmp_path], "tide", limit=20).hits) == 12


def test_a_line_that_was_still_being_written_is_had_as_it_was(tmp_path: Path) -> None:
    whole = session(SAID)
    first = _stored(tmp_path, session(SAID[:6]))
    torn = _stored(tmp_path, whole[:-20])
    _stored(tmp_path, whole)
    assert _restored(tmp_path, torn) == whole[:-20]
    assert _restored(tmp_path, first) == session(SAID[:6])
    assert verify(tmp_path).originals == 1


def test_what_was_rewritten_or_lies_elsewhere_is_kept_next_to_it(tmp_path: Path) -> None:
    elsewhere = store(tmp_path, *SAID[:2])
    in_place = add(Archive(tmp_path), session(SAID[:4]))
    written = {"written_sha256": hashlib.sha256(b"x").hexdigest(), "written_bytes": 1}
    Archive(tmp_path).record(replace(in_place, records=4, source="/s/live.jsonl", **written))
    rewritten = _stored(tmp_path, session(SAID[1:6]))
    last = _stored(tmp_path, session(SAID))
    unnamed = _stored(tmp_path, session([*SAID, *SAID]), source="")
    expected = {elsewhere, in_place.sha256, rewritten, last, unnamed}
    assert {sha256 for sha256, _ in stored_blobs(tmp_path)} == expected
    assert not verify(tmp_path).problems


def test_where_an_earlier_state_cannot_be_taken_out_both_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **more: object) -> None:
        raise OutputError("no space left")

    first = _stored(tmp_path, session(SAID[:4]))
    with monkeypatch.context() as patched:
        patched.setattr("compactor_cli.archive.maintenance.remove", refuse)
        with pytest.raises(OutputError):
            _stored(tmp_path, session(SAID[:8]))
    assert (verify(tmp_path).problems, verify(tmp_path).originals) == ((), 2)
    last = _stored(tmp_path, session(SAID))
    assert [sha256 for sha256, _ in stored_blobs(tmp_path)] == [last]
    assert _restored(tmp_path, first) == session(SAID[:4])


def test_pruning_the_last_state_takes_all_of_them(tmp_path: Path) -> None:
    first = _stored(tmp_path, session(SAID[:4]))
    _stored(tmp_path, session(SAID))
    ((old, _),) = old_originals(each_once([tmp_path]), "9999")
    remove([old])
    assert list(listed([tmp_path])) == []
    assert list(tmp_path.glob("??/*")) == []
    with pytest.raises(InputError, match="nothing with the hash"):
        find([tmp_path], first)
