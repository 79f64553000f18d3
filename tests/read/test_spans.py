"""Where the elements of an array lie."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.read.jsonl import element_spans, parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(VALUES), VALUES, st.text(), st.sampled_from([None, 0, 2]), st.booleans())
def test_spans_are_the_elements(items: list[object], other: object, key: str, indent: int | None, plain: bool) -> None:
    value = {"before": other, "a": [other, {key: items}], "behind": other}
    raw = json.dumps(value, indent=indent, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    start, spans, stop = element_spans(raw, ("a", 1, key))
    assert [json.loads(raw[begin:end].decode("utf-8", "surrogatepass")) for begin, end in spans] == items
    assert raw[start - 1 : start] == b"["
    assert raw[stop : stop + 1] == b"]"
    assert json.loads(raw[start - 1 : stop + 1].decode("utf-8", "surrogatepass")) == items


def test_a_bare_array_is_at_the_empty_path() -> None:
    assert element_spans(b' [ 1 , "]" ] ', ()) == (2, ((3, 4), (7, 10)), 11)
    assert element_spans(b"[]", ()) == (1, (), 1)


def test_of_a_key_met_twice_the_last_counts() -> None:
    raw = b'{"m":[1,2],"x":{"m":[0]},"m":[3]}'
    assert element_spans(raw, ("m",)) == (30, ((30, 31),), 31)
    with pytest.raises(LookupError):
        element_spans(b'{"m":[1],"m":null}', ("m",))


def test_keys_are_compared_by_what_they_mean() -> None:
    assert element_spans('{"\\u00e9":[1],"\u00e9\\n":[]}'.encode(), ("é",)) == (11, ((11, 12),), 12)


def test_bytes_that_are_not_utf8_do_not_shift_anything() -> None:
    raw = b'{"x":"\xff\xc3","m":["\xe4\xbd\xa0", 2]}'
    assert [raw[start:stop] for start, stop in element_spans(raw, ("m",))[1]] == [b'"\xe4\xbd\xa0"', b"2"]


@pytest.mark.parametrize("path", [("no",), ("a", 5), ("a", "key"), ("s", 0), ()])
def test_a_path_without_an_array_is_a_lookup_error(path: tuple[str | int, ...]) -> None:
    with pytest.raises(LookupError):
        element_spans(b'{"a":[1],"s":"text"}', path)


@pytest.mark.parametrize(
    "raw", [b"", b"[", b"[1", b"[1,", b"[1 2]", b'{"a"', b'{"a":', b'{"a":[1]', b'{"a" [1]}', b"[}"]
)
def test_broken_json_is_a_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- the parser's own words
        element_spans(raw, () if raw.startswith(b"[") else ("a",))


@given(st.lists(VALUES | st.dictionaries(st.text(), VALUES)), st.sampled_from(["orjson", "json", "indented", "mixed"]))
def test_knowing_the_values_changes_nothing(items: list[object], style: str) -> None:
    as_orjson = {"orjson": lambda i: True, "mixed": lambda i: i % 3 > 0}.get(style, lambda i: False)
    written = [_written(item, as_orjson(i)) for i, item in enumerate(items)]
    raw = b'{"m":[' + (b" ,\n" if style == "indented" else b",").join(written) + b'],"x":1}'
    values = parse(raw)["m"]
    assert element_spans(raw, ("m",), values) == element_spans(raw, ("m",))
    assert element_spans(raw, ("m",), [{"a": 1}, *values]) == element_spans(raw, ("m",))


def _written(item: object, as_orjson: bool) -> bytes:
    try:
        return orjson.dumps(item) if as_orjson else json.dumps(item).encode()
    except orjson.JSONEncodeError:  # an integer over 64 bits
        return json.dumps(item).encode()
