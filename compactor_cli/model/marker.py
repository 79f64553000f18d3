"""Names by which summaries lead back to the archive: the marker line, and references to records.

The marker is the one line by which a summary written by compact is known again, in any dialect. It is part of the
summary's text, so it survives a conversion from one dialect to another, and it names the transcript by its hash.
Whoever writes a text can write a marker into it. So a marker is only looked for in records that are summaries, and
its numbers decide nothing: sizes are counted, of what is there and of the original that the archive holds.

A reference is the name by which a record of an archived transcript can be asked for again: ``54453b50b756405f:12``
is record 12 (counted from 1) of the transcript whose SHA-256 begins so, ``…:4-9`` a range, ``…:3,12`` both of them.
"""

from __future__ import annotations

import re

from compactor_cli.model.value import dataclass

# A marker deeper in a text is a quotation, not a mark: clients put at most a short preface before it.
SEARCHED_CHARS = 2_000
# In place of a hash that is not known yet: it takes about as many tokens as any other.
PLACEHOLDER_HASH = "7f3a9c1e5b8d2046"

_LINE = re.compile(
    r"^\[compact/1 transcript=(?P<transcript>[0-9a-f]{16})"
    r" records=(?P<first>\d{1,12})-(?P<last>\d{1,12})/(?P<records>\d{1,12}) tokens=(?P<tokens>\d{1,15})"
    r" end=(?P<end>(?:[0-9a-f]{16})?)(?: state=(?P<state>[0-9a-f]{16}))?\]$"
    r"(?:\n\[kept (?:as they were|beside it): (?P<kept>[^\]\n]+)\]$)?",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What a summary covers."""

    transcript: str  # the first 16 hex digits of the SHA-256 of the transcript it was made from
    first: int  # of the covered records, counted from 1
    last: int
    records: int  # how many the transcript had
    tokens: int  # its size with everything that earlier summaries stood for
    end: str  # hash of its last record, by which a second run sees that nothing was added; empty: no message stayed
    state: str = ""  # hash of the digest's stored counter table
    kept_outside: str = ""  # which records of the covered range were kept as they were and follow the summary

    def __str__(self) -> str:
        state = f" state={self.state}" if self.state else ""
        outside = f"\n[kept as they were: {self.kept_outside}]" if self.kept_outside else ""
        return (
            f"[compact/1 transcript={self.transcript} records={self.first}-{self.last}/{self.records}"
            f" tokens={self.tokens} end={self.end}{state}]{outside}"
        )


def find_marker(text: str) -> Marker | None:
    """The marker of a summary's text, or None: it has none, or one that names records that cannot be."""
    found = _LINE.search(text[:SEARCHED_CHARS]) if "[compact/1 " in text[:SEARCHED_CHARS] else None
    if found is None or not int(found["first"]) <= int(found["last"]) <= int(found["records"]):
        return None
    return Marker(
        transcript=found["transcript"],
        first=int(found["first"]),
        last=int(found["last"]),
        records=int(found["records"]),
        tokens=int(found["tokens"]),
        end=found["end"],
        state=found["state"] or "",
        kept_outside=found["kept"] or "",
    )


def text_before_marker(text: str) -> str | None:
    """What leads to the marker in a text: the preface of a summary. None: there is no marker."""
    found = _LINE.search(text[:SEARCHED_CHARS]) if find_marker(text) else None
    return text[: found.start()] if found else None


def without_preface(text: str) -> str:
    """The summary from its marker line on. The whole text if there is no marker."""
    found = _LINE.search(text[:SEARCHED_CHARS])
    return text[found.start() :] if found else text


def without_marker(text: str) -> str:
    """The text after the marker line: the summary's body. The whole text if there is no marker."""
    found = _LINE.search(text[:SEARCHED_CHARS])
    return text[found.end() :].lstrip("\n") if found else text


SHOWN_HASH_CHARS = 16

_RANGE = r"\d+(?:-\d+)?"
_RANGES = re.compile(rf"\[?({_RANGE}(?:,{_RANGE})*)\]?")
_ID = re.compile(rf"([0-9a-fA-F]{{8,64}})(?::({_RANGE}(?:,{_RANGE})*))?")


# First and last record, counted from 1, both included.
Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Records of one transcript. ``transcript``: the beginning of its SHA-256; ``ranges`` empty: none is named."""

    transcript: str
    ranges: Ranges


def record_id(sha256: str, record: int) -> str:
    """The id of the record with this index (counted from 0) of the transcript with this hash."""
    return f"{sha256[:SHOWN_HASH_CHARS]}:{record + 1}"


def parse_id(text: str) -> Reference | None:
    """``HASH``, ``HASH:12``, ``HASH:4-9``; None where the text is not of this form. At least 8 digits of the hash."""
    found = _ID.fullmatch(text)
    return Reference(transcript=found[1].lower(), ranges=_ranges(found[2] or "")) if found else None


def parse_ranges(text: str) -> Ranges:
    """Records as summaries name them, ``[12]``, ``[4-9]``, ``[3,12]``, also without brackets; empty: no such thing."""
    found = _RANGES.fullmatch(text)
    return _ranges(found[1]) if found else ()


def _ranges(text: str) -> Ranges:
    pairs = (piece.partition("-") for piece in text.split(",") if piece)
    return tuple((int(first), int(last or first)) for first, _, last in pairs)
