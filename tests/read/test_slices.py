"""Files cut by bytes at the beginnings of rows."""

from __future__ import annotations

import io
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.model.errors import Unreadable
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.read.streams import Slice, open_stream, row_start

LINES = st.lists(st.sampled_from([b'{"a": 1}', b'{"bb": [1, 2, 3]}', b"", b"  ", b"\xef\xbb\xbf", b'  {"c": 0}', b"x"]))
FEEDS = st.sampled_from([b"\n", b"\r\n"])


@given(LINES, FEEDS, st.lists(st.integers(0, 200)))
def test_every_byte_is_in_one_part_and_every_record_reads_as_in_the_whole(
    lines: list[bytes], feed: bytes, cuts: list[int]
) -> None:
    data = feed.join(lines)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.jsonl")
        path.write_bytes(data)
        parts = [_read(path, Slice(start=a, stop=b)) for a, b in pairwise(places)]
        assert b"".join(parts) == data
        records = [(record.raw, record.ending) for part in parts for record in _records(part)]
        if not data.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"x"):
            assert records == [(record.raw, record.ending) for record in _records(data)]


def _read(path: Path, part: Slice) -> bytes:
    seen = io.BytesIO()
    with open_stream(str(path), (seen.write,), part) as stream:
        found = stream.reader.read()
    assert seen.getvalue() == found
    return found


def _records(data: bytes) -> list[object]:
    return list(read_records(io.BytesIO(data), "rows.jsonl", OnInvalid.KEEP))


def test_a_long_row_belongs_to_the_part_it_begins_in(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    long = b'{"a": "' + b"x" * 300_000 + b'"}\n'
    path.write_bytes(long + b"{}\n")
    assert _read(path, Slice(start=0, stop=10)) == long
    assert _read(path, Slice(start=10, stop=200_000)) == b""
    assert _read(path, Slice(start=200_000, stop=10**9)) == b"{}\n"


def test_a_mark_across_the_edge_of_what_is_read_at_once_is_blank(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    before = b"{}" + b" " * ((1 << 16) - 4) + b"\n"
    path.write_bytes(before + b"\xef\xbb\xbf{}\n")
    with io.FileIO(path) as file:
        assert row_start(file, 1) == len(before) + 3


def test_a_missing_file_is_stated_as_such(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no such file"):
        open_stream(str(tmp_path / "none.jsonl"), (), Slice(start=0, stop=1))
