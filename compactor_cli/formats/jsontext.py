"""JSON written in the style of the record next to it."""

from __future__ import annotations

import json
import re
from typing import Any

_FIRST_KEY = re.compile(rb'\A\{\s*"(?:[^"\\]|\\.)*"\s*:( ?)')


def parse(raw: bytes) -> Any:
    """The value with integers of any size. Bytes that are no UTF-8 become lone surrogates, and `dump` undoes that."""
    return json.loads(raw.decode("utf-8", _errors(raw)))


def dump(value: Any, like: bytes) -> bytes:
    """One line of JSON: spaces as in ``like``, characters unescaped unless a lone surrogate forbids it."""
    spaced = (found := _FIRST_KEY.match(like)) is not None and found[1] == b" "
    separators = (", ", ": ") if spaced else (",", ":")
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    try:
        return text.encode("utf-8", _errors(like))
    except UnicodeEncodeError:
        return json.dumps(value, separators=separators).encode()


def _errors(raw: bytes) -> str:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return "surrogateescape"
    return "strict"
