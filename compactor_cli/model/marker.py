"""Names by which summaries lead back to the archive: the marker line, and references to records.

The marker is the line by which compact recognises its own summaries, in any dialect. It is part of the summary's
text, so it survives a conversion from one dialect to another, and it names the transcript by its hash.
Anybody can write a marker into a text. So markers are only looked for in records that are summaries, and nothing is
decided by the numbers in them: sizes are counted anew, in the transcript and in the archived original.

A reference names records of an archived transcript: ``54453b50b756405f:12`` is record 12 (counted from 1) of the
transcript whose SHA-256 begins with these digits, ``…:4-9`` a range, ``…:3,12`` two records.
"""

from __future__ import annotations

import re

from compactor_cli.model.value import dataclass

# A marker further inside a text is a quotation: clients put at most a short preface before a summary.
SEARCHED_CHARS = 2_000
# Stands for a hash that is not known yet; it takes about as many tokens as a real one.
PLACEHOLDER_HASH = "7f3a9c1e5b8d2046"

# `[compact/1 transcript=54453b50b756405f records=3-40/52 tokens=81000 end=0f3c9a1e5b8d2046]`, and on the next line
# perhaps `[kept as they were: 7-9,21]`.
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

    transcript: str  # the first 16 hex digits of the SHA-256 of the transcript that was compacted
    first: int  # first covered record, counted from 1
    last: int  # last covered record, counted from 1
    records: int  # number of records that the transcript had
    tokens: int  # size of the transcript, with everything that earlier summaries stood for
    end: str  # hash of the last record, by which a second run sees that nothing was added; empty: no message stayed
    state: str = ""  # hash of the digest's stored counter table; empty: none is stored
    kept_outside: str = ""  # records of the covered range that were kept and follow the summary, as in `7-9,21`

    def __str__(self) -> str:
        state = f" state={self.state}" if self.state else ""
        outside = f"\n[kept as they were: {self.kept_outside}]" if self.kept_outside else ""
        return (
            f"[compact/1 transcript={self.transcript} records={self.first}-{self.last}/{self.records}"
            f" tokens={self.tokens} end={self.end}{state}]{outside}"
        )


def find_marker(text: str) -> Marker | None:
    """The marker in a summary's text; None if there is none, or if not ``first <= last <= records``."""
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
    """The preface of a summary: the text before its marker line. None if `find_marker` finds none."""
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

# `4-9` or `12`; `[3,12-15]`; `54453b50b756405f:3,12-15`.
_RANGE = r"\d+(?:-\d+)?"
_RANGES = re.compile(rf"\[?({_RANGE}(?:,{_RANGE})*)\]?")
_ID = re.compile(rf"([0-9a-fA-F]{{8,64}})(?::({_RANGE}(?:,{_RANGE})*))?")


# First and last record, counted from 1, both included.
Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Records of one transcript, or the whole transcript."""

    transcript: str  # the beginning of its SHA-256, lower case
    ranges: Ranges  # empty: no record is named


def record_id(sha256: str, record: int) -> str:
    """The id of the record with this index (counted from 0) of the transcript with this hash."""
    return f"{sha256[:SHOWN_HASH_CHARS]}:{record + 1}"


def parse_id(text: str) -> Reference | None:
    """Read ``HASH``, ``HASH:12`` or ``HASH:4-9``, with 8 to 64 digits of the hash. None for any other text."""
    found = _ID.fullmatch(text)
    return Reference(transcript=found[1].lower(), ranges=_ranges(found[2] or "")) if found else None


def parse_ranges(text: str) -> Ranges:
    """Read records as summaries name them: ``[12]``, ``[4-9]``, ``3,12``. Empty for any other text."""
    found = _RANGES.fullmatch(text)
    return _ranges(found[1]) if found else ()


def _ranges(text: str) -> Ranges:
    pairs = (piece.partition("-") for piece in text.split(",") if piece)
    return tuple((int(first), int(last or first)) for first, _, last in pairs)
