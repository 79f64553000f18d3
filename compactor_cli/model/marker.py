"""Marker: the one line by which a summary written by compact is known again, in any dialect.

It is part of the summary's text, so it survives a conversion from one dialect to another. It also is
the archive pointer: what was summarised can be fetched by the transcript's hash.

Whoever writes a text can write a marker into it. So a marker is only looked for in records that are summaries, and
its numbers decide nothing: sizes are counted, of what is there and of the original that the archive holds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# A marker deeper in a text is a quotation, not a mark: clients put at most a short preface before ours.
SEARCHED_CHARS = 2_000

_LINE = re.compile(
    r"^\[compact/1 transcript=(?P<transcript>[0-9a-f]{16})"
    r" records=(?P<first>\d{1,12})-(?P<last>\d{1,12})/(?P<records>\d{1,12}) tokens=(?P<tokens>\d{1,15})"
    r" end=(?P<end>(?:[0-9a-f]{16})?)(?: state=(?P<state>[0-9a-f]{16}))?\]$"
    r"(?:\n\[kept beside it: (?P<beside>[^\]\n]+)\]$)?",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What a summary stands for.

    ``transcript``: first 16 hex digits of the SHA-256 of the transcript it was made from; ``first`` and ``last``: the
    covered records, counted from 1; ``records``: how many the transcript had; ``tokens``: its size with everything
    that earlier summaries stood for; ``end``: hash of its last record, by which a second run sees that nothing was
    added, empty where no message stayed; ``state``: hash of the digest's stored counter table; ``beside``: what of
    the covered range stands after the summary as it was, for whoever reads on there.
    """

    transcript: str
    first: int
    last: int
    records: int
    tokens: int
    end: str
    state: str = ""
    beside: str = ""

    def __str__(self) -> str:
        state = f" state={self.state}" if self.state else ""
        beside = f"\n[kept beside it: {self.beside}]" if self.beside else ""
        return (
            f"[compact/1 transcript={self.transcript} records={self.first}-{self.last}/{self.records}"
            f" tokens={self.tokens} end={self.end}{state}]{beside}"
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
        beside=found["beside"] or "",
    )


def text_before_marker(text: str) -> str | None:
    """What leads to the marker in a text: the preface of a summary. None: there is no marker."""
    if find_marker(text) is None:
        return None
    found = _LINE.search(text[:SEARCHED_CHARS])
    return text[: found.start()] if found else None


def without_marker(text: str) -> str:
    """What stands after the marker line: the summary's body. The whole text if there is no marker."""
    found = _LINE.search(text[:SEARCHED_CHARS])
    return text[found.end() :].lstrip("\n") if found else text
