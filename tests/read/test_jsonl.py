"""Where one record ends and the next begins."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.model.errors import InvalidLine
from compactor_cli.model.transcript import Record
from compactor_cli.read.jsonl import INVALID, OnInvalid, RecordReader, read_records
from compactor_cli.read.streams import open_stream


def read(data: bytes, on_invalid: OnInvalid = OnInvalid.FAIL) -> tuple[RecordReader, list[Record]]:
    records = read_records(io.BytesIO(data), "in.jsonl", on_invalid)
    return records, list(records)


def joined(records: RecordReader, found: list[Record]) -> bytes:
    return records.prefix + b"".join(record.raw + record.ending for record in found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=3).map(lambda value: json.dumps(value).encode())
PRETTY = st.dictionaries(st.text(), JSON, max_size=3).map(lambda value: json.dumps(value, indent=1).encode())
JUNK = st.sampled_from(
    [
        b"no json",
        b'{"torn": [',
        b"\xff\xfe\x00",
        b"\x00\x00",
        b"[1] x",
        b"}",
        b"\xef\xbb\xbf",
        b"\xef\xbb",
        b"1",
        b'"\xff"',
    ]
)
GAPS = st.sampled_from([b"\n", b"\r\n", b"\n\n \t\n", b" \n  ", b"", b"\r", b"\n\xef\xbb\xbf"])
INPUTS = st.lists(st.tuples(OBJECTS | PRETTY | JUNK | st.binary(max_size=6), GAPS), max_size=8).map(
    lambda parts: b"".join(part + gap for part, gap in parts)
)


@given(INPUTS | st.binary(max_size=40), st.sampled_from([b"", b"\xef\xbb\xbf", b"\n\n", b" \xef\xbb\xbf "]))
def test_records_joined_are_the_input_whatever_it_holds(data: bytes, lead: bytes) -> None:
    records, found = read(lead + data, OnInvalid.KEEP)
    assert joined(records, found) == lead + data
    assert [record.value for record in found].count(INVALID) == records.invalid_count


@given(INPUTS)
def test_dropping_gives_what_keeping_gives_without_the_invalid_ones(data: bytes) -> None:
    kept, keep = read(data, OnInvalid.KEEP)
    dropped, drop = read(data, OnInvalid.DROP)
    assert [record.raw for record in drop] == [record.raw for record in keep if record.value is not INVALID]
    assert dropped.invalid_count == kept.invalid_count


@given(INPUTS)
def test_failing_happens_exactly_where_something_is_invalid(data: bytes) -> None:
    kept, _ = read(data, OnInvalid.KEEP)
    if kept.invalid_count:
        with pytest.raises(InvalidLine):
            read(data)
    else:
        read(data)


@given(st.lists(OBJECTS, min_size=1))
def test_every_line_is_a_record_with_its_line_number(lines: list[bytes]) -> None:
    records, found = read(b"\n".join(lines) + b"\n")
    assert [record.raw for record in found] == lines
    assert [record.place.line for record in found] == list(range(1, len(lines) + 1))
    assert not records.prefix


def test_blank_lines_and_marks_belong_to_what_stands_before_them() -> None:
    records, found = read(b'\xef\xbb\xbf\n{"a":1}\r\n\r\n  {"b":2} \n\n')
    assert records.prefix == b"\xef\xbb\xbf\n"
    assert [(record.raw, record.ending, record.place.line) for record in found] == [
        (b'{"a":1}', b"\r\n\r\n  ", 2),
        (b'{"b":2}', b" \n\n", 4),
    ]


def test_prefix_is_known_before_the_first_record_is_asked_for() -> None:
    assert read_records(io.BytesIO(b"\xef\xbb\xbf{}"), "x").prefix == b"\xef\xbb\xbf"
    assert read_records(io.BytesIO(b" \n \n"), "x").prefix == b" \n \n"
    assert read(b"")[1] == []


def test_records_glued_on_one_line_are_all_read() -> None:
    _, found = read(b'{"type":"a"}\n{"type":"b","t":"}{"}{"type":"c"} {"type":"d"}\n{"type":"e"}')
    assert [record.value["type"] for record in found] == list("abcde")
    assert [record.ending for record in found] == [b"\n", b"", b" ", b"\n", b""]
    assert [record.place.line for record in found] == [1, 2, 2, 2, 3]


def test_a_whole_record_before_a_torn_one_is_saved() -> None:
    records, found = read(b'{"a":1}{"b":\n{"c":3}\n', OnInvalid.KEEP)
    assert [record.value for record in found] == [{"a": 1}, INVALID, {"c": 3}]
    assert records.invalid_count == 1


def test_line_separators_inside_strings_do_not_end_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be"
    _, found = read(orjson.dumps({"text": text}) + b"\n{}\n")
    assert [record.value for record in found] == [{"text": text}, {}]


def test_odd_json_is_read_and_its_bytes_stay() -> None:
    lines = [
        b'{"n": 123456789012345678901234567890, "f": 1.10}',
        b'{"n": NaN, "i": -Infinity, "e": 1e999}',
        b'{"s": "lone \\ud800 end", "\\udfff": 1}',
        b'{"s": "not utf-8 \xff\xc3 end"}',
        b'{"k": 1, "k": 2}',
        b'{"n": ' + b"9" * 5000 + b"}",
        b"null",
        b'"text"',
    ]
    _, found = read(b"\n".join(lines))
    assert [record.raw for record in found] == lines
    assert found[2].value == {"s": "lone \ufffd end", "\ufffd": 1}
    assert found[3].value["s"].startswith("not utf-8 \ufffd")
    assert found[4].value == {"k": 2}
    assert found[7].value == "text"
    assert all(json.dumps(record.value, ensure_ascii=False).encode() for record in found)


def test_nesting_beyond_python_is_an_invalid_line_and_no_crash() -> None:
    deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(InvalidLine):
        read(b"{}\n" + deep + b"\n")


def test_an_invalid_line_names_place_and_next_step() -> None:
    with pytest.raises(InvalidLine) as caught:
        read(b'{"a":1}\n\nnot json\n{"b":2}\n')
    assert str(caught.value.place) == "in.jsonl:3"
    assert "--on-invalid" in caught.value.next_step
    assert "torn" not in caught.value.what


def test_a_torn_last_line_says_the_file_may_still_be_being_written() -> None:
    with pytest.raises(InvalidLine) as caught:
        read(b'{"a":1}\n{"b":[')
    assert str(caught.value.place) == "in.jsonl:2"
    assert "torn" in caught.value.what
    assert "still be being written" in caught.value.next_step


def test_records_before_an_invalid_line_were_already_given() -> None:
    records = read_records(io.BytesIO(b'{"a":1}\nbad\n{"b":2}\n'), "x")
    assert next(records).value == {"a": 1}
    with pytest.raises(InvalidLine):
        next(records)


@given(st.dictionaries(st.text(), JSON, min_size=1, max_size=4), st.sampled_from([b"", b"\n", b"\r\n\n"]))
def test_a_document_that_spans_lines_is_one_record(value: dict[str, object], ending: bytes) -> None:
    raw = json.dumps(value, indent=2).encode()
    _, found = read(raw + ending)
    assert [(record.raw, record.ending) for record in found] == [(raw, ending)]


def test_documents_that_span_lines_may_follow_one_another() -> None:
    _, found = read(b'{\n "a": 1\n}\n{\n "b": 2\n}\n')
    assert [record.value for record in found] == [{"a": 1}, {"b": 2}]
    assert [record.place.line for record in found] == [1, 4]


def test_a_broken_document_is_one_invalid_thing_and_names_its_line() -> None:
    data = b'{\n  "a": 1,\n  "b": oops\n}\n'
    assert [record.value for record in read(data, OnInvalid.KEEP)[1]] == [INVALID]
    with pytest.raises(InvalidLine) as caught:
        read(data)
    assert str(caught.value.place) == "in.jsonl:3"


def test_a_torn_first_line_does_not_take_the_others_with_it() -> None:
    records, found = read(b'{"a":[\n{"b":2}\n{"c":3}\n', OnInvalid.DROP)
    assert [record.value for record in found] == [{"b": 2}, {"c": 3}]
    assert records.invalid_count == 1


def test_utf16_is_named() -> None:
    with pytest.raises(InvalidLine, match="UTF-16"):
        read('{"a":1}\n'.encode("utf-16"))


def test_reading_is_lazy() -> None:
    asked: list[int] = []

    def lines() -> Iterator[bytes]:
        for number in range(1000):
            asked.append(number)
            yield b"{}\n"

    records = read_records(lines(), "x")
    next(records)
    next(records)
    assert len(asked) <= 3


def test_real_files_are_read_byte_for_byte(corpus: Path) -> None:
    files = [path for path in sorted(corpus.rglob("*.json*")) if path.is_file()]
    assert files
    for path in files:
        with open_stream(str(path)) as stream:
            records = read_records(stream.reader, str(path), OnInvalid.KEEP)
            found = list(records)
        assert joined(records, found) == path.read_bytes(), path
        assert len(found) > records.invalid_count or records.invalid_count <= 1, path
