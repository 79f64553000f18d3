"""Reference: the name by which a record of an archived transcript can be asked for again.

``54453b50b756405f:12`` is record 12 (counted from 1) of the transcript whose SHA-256 begins so, ``…:4-9`` a range,
``…:3,12`` both of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SHOWN_HASH_CHARS = 16

_RANGE = r"\d+(?:-\d+)?"
_RANGES = re.compile(rf"\[?({_RANGE}(?:,{_RANGE})*)\]?")
_ID = re.compile(rf"([0-9a-fA-F]{{8,64}})(?::({_RANGE}(?:,{_RANGE})*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Records of one transcript.

    ``transcript``: the beginning of its SHA-256, empty where it is not given; ``ranges``: first and last record,
    counted from 1, both included; none: not given.
    """

    transcript: str = ""
    ranges: tuple[tuple[int, int], ...] = ()


def record_id(sha256: str, record: int) -> str:
    """The id of the record with this index (counted from 0) of the transcript with this hash."""
    return f"{sha256[:SHOWN_HASH_CHARS]}:{record + 1}"


def parse_id(text: str) -> Reference | None:
    """``HASH``, ``HASH:12``, ``HASH:4-9``; None: it is no such thing. At least 8 digits of the hash."""
    found = _ID.fullmatch(text)
    return Reference(transcript=found[1].lower(), ranges=_ranges(found[2] or "")) if found else None


def parse_ranges(text: str) -> Reference | None:
    """Records as summaries name them, ``[12]``, ``[4-9]``, ``[3,12]``, also without brackets; None: no such thing."""
    found = _RANGES.fullmatch(text)
    return Reference(ranges=_ranges(found[1])) if found else None


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    pairs = (piece.partition("-") for piece in text.split(",") if piece)
    return tuple((int(first), int(last or first)) for first, _, last in pairs)
