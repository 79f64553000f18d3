"""A vocabulary as a table on the disk, by which the tokens of small texts are counted without loading it.

tiktoken takes 0.15 s in each process to build what it looks tokens up in; this is a hash table with open addressing,
read as it is. It is made when a run of the command loads a vocabulary for the first time, in the user's cache folder,
private, and held to its own hash. Texts are parted by the vocabulary's pattern, its classes written out for Latin,
Greek and common signs; those of other characters, and pieces that would take long to be merged here, are left to
tiktoken.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
import unicodedata
import zlib
from array import array
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate, count, groupby
from pathlib import Path

from compactor_cli.read.sources import cache_folder

# A power of two, and more than twice the tokens of the largest vocabulary, so that few have to be looked for.
_SLOTS = 1 << 19
_MASK = _SLOTS - 1
_HASH_BYTES = 32
_NO_RANK = 1 << 31
_MOST_PIECE_BYTES = 300
# Latin, Greek, joiners, dashes and quotes, arrows to boxes and dingbats, the mark for emoji, and emoji:
# all of old Unicode versions, or signs in every version.
_RANGES = (
    *((0, 0x17E), (0x391, 0x3A1), (0x3A3, 0x3C9), (0x200B, 0x2027), (0x2190, 0x2BFF), (0xFE0F, 0xFE0F)),
    *((0x1F300, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F7E0, 0x1F7EB), (0x1F900, 0x1F9FF)),
)
_CLASS = re.compile(r"\\(?:p\{(\w+)\}|s)")
_ITEM = re.compile(r"\[[^\]]*\]|\\p\{\w+\}|\\[sS]|\$")
# Python's own class has four control characters more, and its end may stand before a line feed.
_WHITE = r"\t-\r \x85\xa0"
_ENDS = {"$": r"\Z", r"\S": f"[^{_WHITE}]"}


class VocabularyTable:
    """Counts tokens by the table with these bytes, of a vocabulary whose texts are parted by ``pattern``."""

    def __init__(self, data: bytes, pattern: str) -> None:
        view = memoryview(data)
        size = view[:4].cast("I")[0]
        bounds_start = 4 + 4 * _SLOTS
        tokens_start = bounds_start + 4 * (size + 1)
        self._slots = view[4:bounds_start].cast("I")
        self._bounds = view[bounds_start:tokens_start].cast("I")
        self._tokens = data[tokens_start:-_HASH_BYTES]
        self._pieces = re.compile(_ITEM.sub(_written_out, pattern)).findall
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int | None:
        """Tokens of a text; None where only the vocabulary itself decides."""
        if not (text.isascii() or _covered().fullmatch(text)):
            return None
        known, total = self._known, 0
        for piece in self._pieces(text):
            tokens = known.get(piece)
            if tokens is None:
                raw = piece.encode()
                if len(raw) > _MOST_PIECE_BYTES:
                    return None
                tokens = known[piece] = self._count(raw)
            total += tokens
        return total

    def _count(self, piece: bytes) -> int:
        """Byte pair encoding: of all neighbours that are a token together, those of the lowest rank are joined."""
        if self._rank(piece) < _NO_RANK:
            return 1
        parts = [piece[i : i + 1] for i in range(len(piece))]
        ranks = [self._rank(piece[i : i + 2]) for i in range(len(piece) - 1)]
        while ranks and (lowest := min(ranks)) < _NO_RANK:
            i = ranks.index(lowest)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
            del ranks[i]
            if i < len(ranks):
                ranks[i] = self._rank(parts[i] + parts[i + 1])
            if i:
                ranks[i - 1] = self._rank(parts[i - 1] + parts[i])
        return len(parts)

    def _rank(self, token: bytes) -> int:
        slot = zlib.crc32(token) & _MASK
        while number := self._slots[slot]:
            if self._tokens[self._bounds[number - 1] : self._bounds[number]] == token:
                return number
            slot = (slot + 1) & _MASK
        return _NO_RANK


def read_table(name: str, pattern: str) -> VocabularyTable | None:
    """The table of this name; None where there is none. One that is damaged is removed."""
    file = _file(name)
    with suppress(OSError):
        data = file.read_bytes()
        if hashlib.sha256(data[:-_HASH_BYTES]).digest() == data[-_HASH_BYTES:]:
            return VocabularyTable(data, pattern)
        file.unlink()
    return None


def write_table(name: str, tokens: Sequence[bytes]) -> None:
    """Make the table of these tokens, in the order of their ranks, if there is none; nothing where none can be."""
    file = _file(name)
    if file.exists():
        return
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as draft:
            slots = array("I", bytes(4 * _SLOTS))
            for number, token in enumerate(tokens, 1):
                slot = zlib.crc32(token) & _MASK
                while slots[slot]:
                    slot = (slot + 1) & _MASK
                slots[slot] = number
            bounds = array("I", [0, *accumulate(map(len, tokens))])
            data = b"".join((array("I", [len(tokens)]), slots, bounds, *tokens))
            draft.write(data + hashlib.sha256(data).digest())
        Path(draft.name).replace(file)


def _file(name: str) -> Path:
    return cache_folder() / "vocabularies" / f"{name}-{sys.byteorder}.1"


def _written_out(found: re.Match[str]) -> str:
    """A class of Unicode in a pattern as `re` takes it, for texts that are covered."""
    item = found[0]
    if item in _ENDS:
        return _ENDS[item]
    inner = _CLASS.sub(lambda name: _ranges(name[1]) if name[1] else _WHITE, item)
    return inner if item.startswith("[") else f"[{inner}]"


@cache
def _ranges(category: str) -> str:
    """The covered characters of a category, as they stand in a class."""
    found: list[tuple[int, int]] = []
    for first, last, kind in _runs():
        if kind.startswith(category):
            joined = found.pop()[0] if found and found[-1][1] == first - 1 else first
            found.append((joined, last))
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in found)


@cache
def _runs() -> tuple[tuple[int, int, str], ...]:
    """Neighbours of one category among the covered characters: first, last and category."""
    every = ((code, unicodedata.category(chr(code))) for first, last in _RANGES for code in range(first, last + 1))
    places = count()
    runs = (tuple(run) for _, run in groupby(every, lambda each: (each[0] - next(places), each[1])))
    return tuple((run[0][0], run[-1][0], run[0][1]) for run in runs if run[0][1] != "Cn")


@cache
def _covered() -> re.Pattern[str]:
    return re.compile(f"[{_ranges('')}]*")
