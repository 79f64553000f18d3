"""Frames: what stands around the records of a row, brought in line with the records that are left."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from compactor_cli.model.transcript import Frame
from compactor_cli.read.jsonl import as_text, parse, value_end
from compactor_cli.read.streams import blanks_end

_ANY: Any = object()


def with_key(frame: Frame, key: str, value: Any, old: Any = _ANY) -> Frame:
    """The frame with another value for the key nearest to the records; as it is where the key is missing.

    Only the bytes of that value change. ``old``: the key is the nearest whose value is this one.
    """
    before = _with_value(frame.prefix, reversed(_places(frame.prefix, key)), key, value, old)
    if before is not None:
        return Frame(container=frame.container, prefix=before, suffix=frame.suffix)
    following = _with_value(frame.suffix, _places(frame.suffix, key), key, value, old)
    return frame if following is None else Frame(container=frame.container, prefix=frame.prefix, suffix=following)


def _quoted(key: str) -> bytes:
    """The key as it is written. Within a string its quotes would be escaped: it is found as a string only."""
    return json.dumps(key).encode()


def _places(raw: bytes, key: str) -> list[int]:
    """Where the key may be written."""
    return [found.start() for found in re.finditer(re.escape(_quoted(key)), raw)]


def _with_value(raw: bytes, places: Iterable[int], key: str, value: Any, old: Any) -> bytes | None:
    for place in places:
        colon = blanks_end(raw, place + len(_quoted(key)))
        start = blanks_end(raw, colon + 1)
        try:
            stop = value_end(as_text(raw), start) if raw[colon : colon + 1] == b":" else -1
        except ValueError:
            stop = -1
        if stop < 0 or (old is not _ANY and parse(raw[start:stop]) != old):
            continue
        spaced = raw[start - 1 : start] == b" "
        written = json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if spaced else (",", ":"))
        return raw[:start] + written.encode() + raw[stop:]
    return None


def number_replaced(raw: bytes, key: str, number: int) -> bytes:
    """The object with another number at a key of its own; as it is where there is none. No other byte changes."""
    text = as_text(raw)
    at = blanks_end(raw, blanks_end(raw) + 1)
    while at < len(raw) and raw[at : at + 1] == b'"':
        key_stop = value_end(text, at)
        start = blanks_end(raw, blanks_end(raw, key_stop) + 1)
        stop = value_end(text, start)
        if raw[at:key_stop] == _quoted(key):
            return raw[:start] + str(number).encode() + raw[stop:]
        at = blanks_end(raw, blanks_end(raw, stop) + 1)
    return raw
