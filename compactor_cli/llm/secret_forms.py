"""Secrets recognised by their form: keys and tokens with a prefix that their makers chose, and private keys.

Sources: the makers' own documentation and the list of supported patterns of GitHub's secret scanning; lengths are
lower bounds where a maker names none. The forms are data: `secrets.toml`. Each has literals, which are found first and
fast, and an expression that is matched where one was found. The expression has parts of bounded length and at most one
without a bound, at its end: it fails within `SecretForm.failing_chars`, and what it matches is not looked at again.
Private keys are recognised in the armour of PEM and PGP, also with one end missing, with numbered or escaped lines,
without armour, and as base64 of all that.

`Scan` is a text that is searched in bounded steps, which are counted. A search looks at a window of fixed length from
each place where a literal stands, and continues after what it found. What lies far ahead (a closing quote) is looked
for once, not from every place again. The work is therefore proportional to the length of the text, whatever it holds;
``steps`` is an upper bound of it in characters.
"""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

from compactor_cli.model.value import dataclass

Found = tuple[int, int, str]  # start, stop, kind


class Scan:
    """One text to be searched; ``lowered`` has the same offsets as ``text``.

    ``steps``: characters looked at so far, except by the searches for literals.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        lowered = text.lower()
        # İ is the only letter that becomes longer in lower case.
        self.lowered = lowered if len(lowered) == len(text) else text.replace("İ", "I").lower()
        self.steps = 0
        self._next: dict[str, tuple[int, int]] = {}

    def hits(self, literal: str, *, lowered: bool = False) -> Iterator[int]:
        """The offsets of a literal. Where it is mostly absent, test ``literal in text`` first, which is faster."""
        text = self.lowered if lowered else self.text
        at = text.find(literal)
        while at >= 0:
            self.steps += len(literal)
            yield at
            at = text.find(literal, at + 1)

    def match(self, pattern: re.Pattern[str], at: int, most: int, failing: int = 0) -> re.Match[str] | None:
        """The pattern matched at an offset, within ``most`` characters.

        ``failing``: how many characters count as looked at where it does not match; 0: ``most``.
        """
        found = pattern.match(self.text, at, at + most)
        self.steps += found.end() - at if found else failing or most
        return found

    def search(self, pattern: re.Pattern[str], at: int, most: int) -> re.Match[str] | None:
        """The first match of the pattern from an offset on, within ``most`` characters."""
        found = pattern.search(self.text, at, at + most)
        self.steps += (found.end() if found else min(len(self.text), at + most)) - at
        return found

    def line_from(self, at: int, most: int) -> str:
        """The rest of the line, at most ``most`` characters."""
        end = self.next_of("\n", at)
        stop = min(end if end >= 0 else len(self.text), at + most)
        self.steps += stop - at
        return self.text[at:stop]

    def next_of(self, literal: str, at: int) -> int:
        """The next offset of the literal, or -1. Called with rising offsets, all calls together take one pass."""
        start, found = self._next.get(literal, (0, -2))
        if found != -2 and start <= at and (found == -1 or at <= found):
            return found
        found = self.text.find(literal, at)
        self.steps += (found if found >= 0 else len(self.text)) - at
        self._next[literal] = (at, found)
        return found

    def closing(self, quote: str, at: int, most: int) -> int:
        """Where the quotation that ``quote`` (with its backslashes) opened before ``at`` ends; -1: not in this line."""
        limit = min(len(self.text), at + most)
        line = self.next_of("\n", at)
        limit = min(limit, line) if line >= 0 else limit
        end = self.next_of(quote, at)
        for _ in range(4):
            if not 0 <= end < limit:
                return -1
            if end == at or self.text[end - 1] != "\\":
                return end
            end = self.next_of(quote, end + 1)
        return -1


# No bound: what matches is taken to its end, and not looked at again.
_MOST_CHARS = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretForm:
    """How one kind of secret looks."""

    kind: str
    literals: tuple[str, ...]
    expression: re.Pattern[str]  # its group ``s``, or else the whole match, is the secret
    back_chars: int = 0  # how far before a literal the expression begins
    failing_chars: int = 300  # how far the expression looks at most where it does not match

    def at(self, scan: Scan, literal_at: int) -> re.Match[str] | None:
        """The match of the form around a literal at this offset, if a word begins there; else None."""
        begin = literal_at - self.back_chars
        if begin < 0 or not begins(scan.text, begin):
            return None
        return scan.match(self.expression, begin, _MOST_CHARS, self.failing_chars)

    def span(self, match: re.Match[str]) -> tuple[int, int]:
        """The offsets of the secret in a match."""
        return match.span("s" if "s" in self.expression.groupindex else 0)


@lru_cache(maxsize=1)
def secret_tables() -> Mapping[str, Any]:
    """What `secrets.toml` holds: tables of forms, of names and of programs."""
    return tomllib.loads(Path(__file__).with_name("secrets.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def forms() -> tuple[SecretForm, ...]:
    """All forms, longer prefixes before shorter ones that they begin with."""
    tails = []
    for kind, written, tail in secret_tables()["tails"]:
        names = (written,) if written.endswith(" ") else tuple(written.split())
        expression = re.compile(f"(?:{'|'.join(map(re.escape, names))}){tail}")
        tails.append(SecretForm(kind=kind, literals=names, expression=expression))
    inner = (
        SecretForm(kind=kind, literals=(literal,), back_chars=back, expression=re.compile(expression), failing_chars=60)
        for kind, literal, back, expression in secret_tables()["inner"]
    )
    return (*tails, *inner)


def begins(text: str, at: int) -> bool:
    """Whether a word can begin here: not after a letter or digit, unless that ends an escape (``\\n``, a colour)."""
    before = text[max(0, at - 3) : at]
    if not before or not text[at].isalnum() or not (before[-1].isascii() and before[-1].isalnum()):
        return True
    return before[-2:] in ("\\n", "\\r", "\\t") or (before[-1] == "m" and before[-2:-1].isdigit())


LiteralForms = tuple[tuple[str, SecretForm], ...]
# Most literals hold one of these signs. The two characters before each sign of a text are nearly always enough to rule
# a literal out.
_SIGN = re.compile(r"(?<=[^_.$:=}-]{2})[_.$:=}-]")


@lru_cache(maxsize=1)
def _by_sign() -> tuple[tuple[str, tuple[tuple[str, str, SecretForm], ...]], ...]:
    """For each sign its literals: the two characters before the sign, the literal, its form. ``""``: without a sign."""
    groups: dict[str, list[tuple[str, str, SecretForm]]] = {}
    for form in forms():
        for literal in form.literals:
            found = _SIGN.search(literal)
            ending = literal[found.start() - 2 : found.start()] if found else ""
            groups.setdefault(found[0] if found else "", []).append((ending, literal, form))
    return tuple((sign, tuple(group)) for sign, group in groups.items())


def forms_in(text: str) -> LiteralForms:
    """The literals that stand in a text, with their forms; much faster than a search for each of them."""
    found: list[tuple[str, SecretForm]] = []
    for sign, group in _by_sign():
        endings = {piece[-2:] for piece in text.split(sign)} if sign else {""}
        found += ((literal, form) for ending, literal, form in group if ending in endings and literal in text)
    return tuple(found)


def known_forms(scan: Scan, literal_forms: LiteralForms) -> Iterator[Found]:
    """The secrets of these forms, also those that line breaks divide. May overlap. Linear time.

    ``literal_forms``: what `forms_in` returns for the text, or for a longer one that holds it.
    """
    for literal, form in literal_forms:
        if literal not in scan.text:
            continue
        done = 0
        for at in scan.hits(literal):
            if at < done:
                continue
            match = form.at(scan, at)
            start, stop = form.span(match) if match else (0, 0)
            if match is None or _breaks_off(scan, stop):
                start, stop = _parted(scan, form, at, len(literal)) or (start, stop)
            if stop:
                done = stop
                yield start, stop, form.kind
    if "eyJ" in scan.text:
        yield from ((*span, _JWT.kind) for span in _jwts(scan))


# RFC 7519: two objects and a signature, each in base64url. An object begins with `{"`, which is `eyJ`.
_BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_PAYLOAD = re.compile(r"\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?")
_JWT = SecretForm(
    kind="jwt",
    literals=("eyJ",),
    expression=re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}"),
)


def _jwts(scan: Scan) -> Iterator[tuple[int, int]]:
    """The offsets of JSON web tokens, first of whole ones, then of those that line breaks divide.

    Whole ones are found from the dot in their middle, so that a long word that begins like a token is passed once.
    """
    done = 0
    for at in scan.hits(".eyJ"):
        if at < done:
            continue
        head = scan.text[done:at]
        scan.steps += len(head)
        begin = at - (len(head) - len(head.rstrip(_BASE64URL)))
        first = scan.text.find("eyJ", begin, at - 8)
        while 0 <= first < at - 10 and not begins(scan.text, first):
            first = scan.text.find("eyJ", first + 1, at - 8)
        done = at
        if first >= 0 and (match := scan.match(_PAYLOAD, at, _MOST_CHARS, 16)):
            done = match.end()
            yield first, done
    done = 0
    for at in scan.hits("eyJ"):
        if at >= done and (span := _parted(scan, _JWT, at, 3)):
            done = span[1]
            yield span


# A line break, as it is or escaped in JSON, with the indentation after it.
_BREAK = re.compile(r"\r?\n[ \t]{0,16}|(?:\\{1,7}r)?\\{1,7}n[ \t]{0,16}")
_RUN = re.compile(r"[A-Za-z0-9+/_=.~%$,:-]*")
# What may be the rest of a secret, on a line of its own.
_PIECE = re.compile(r"[A-Za-z0-9+/_=.~%-]{1,2000}(?![^\s\"'`\\,;)\]}>])")
_LEAD_CHARS = 4  # of a divided secret that stand before its line break, after the literal, at least
# How much text is joined at most, from the literal on or around a literal in the middle of a secret.
_PARTED_CHARS = 600
_MIDDLE_CHARS = 120
_PIECE_CHARS = 8  # a shorter piece on a line of its own may be a word


def _breaks_off(scan: Scan, at: int) -> bool:
    return scan.text.startswith(("\n", "\r", "\\"), at)


def _parted(scan: Scan, form: SecretForm, at: int, literal_chars: int) -> tuple[int, int] | None:
    """(start, stop) of a secret that a terminal or an editor broke over lines; None if there is none.

    ``at``: where a literal of its form stands.
    """
    text = scan.text
    if form.back_chars:
        pieces = _joined(scan, max(0, at - form.back_chars - 20), _MIDDLE_CHARS)
    else:
        run = scan.match(_RUN, at + literal_chars, _PARTED_CHARS) if begins(text, at) else None
        if run is None or run.end() - run.start() < _LEAD_CHARS or not _breaks_off(scan, run.end()):
            return None
        pieces = _joined(scan, at, _PARTED_CHARS)
    if len(pieces) < 2:
        return None
    joined = "".join(text[start:stop] for start, stop in pieces)
    match = form.expression.search(joined) if form.back_chars else form.expression.match(joined)
    if match is None:
        return None
    # The secret ends with the first line that completes it and whose next line does not look random, or else goes on
    # for as long as lines look random.
    start, stop = form.span(match)
    for seam in accumulate(stop - start for start, stop in pieces):
        is_inside = match.start() < seam < match.end()
        if is_inside and form.expression.fullmatch(joined, match.start(), seam) and not _is_piece(joined, seam):
            stop = min(stop, seam)
            break
    first, last = _original(pieces, start), _original(pieces, stop - 1) + 1
    while stop == len(joined) and (more := piece_after(scan, last)) > last:
        last = more
        stop += 1
    return (first, last) if last - first > stop - start else None


def _joined(scan: Scan, begin: int, chars: int) -> list[tuple[int, int]]:
    """The pieces (start, stop) of the next ``chars`` characters that are left when line breaks are taken out."""
    stop = min(len(scan.text), begin + chars)
    scan.steps += stop - begin
    pieces: list[tuple[int, int]] = []
    for found in _BREAK.finditer(scan.text, begin, stop):
        pieces.append((begin, found.start()))
        begin = found.end()
    return [*pieces, (begin, stop)]


def _original(pieces: list[tuple[int, int]], offset: int) -> int:
    """The offset in the text that an offset in the joined pieces stands for."""
    for start, stop in pieces:
        if offset < stop - start:
            return start + offset
        offset -= stop - start
    return pieces[-1][1]


def _is_piece(text: str, at: int) -> bool:
    piece = _PIECE.match(text, at)
    return piece is not None and len(piece[0]) >= _PIECE_CHARS and any(char.isdigit() for char in piece[0])


def piece_after(scan: Scan, stop: int) -> int:
    """Where a secret ends that seems to end at ``stop``.

    If it ends with its line and the next line is one random word, it ends after that; otherwise at ``stop``.
    """
    found = scan.match(_BREAK, stop, 32) if _breaks_off(scan, stop) else None
    if found is None or not _is_piece(scan.text, found.end()):
        return stop
    run = scan.match(_RUN, found.end(), 2_000)
    return run.end() if run else stop


_KEY_BLOCK_CHARS = 20_000
_KEY_LINES = 200
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
# `-----BEGIN EC PRIVATE KEY-----`
_ARMOUR = re.compile(r"-----(?P<end>BEGIN|END) (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?(?:-----)?")
# How private keys begin in base64: DER (RSA, PKCS 8, EC), OpenSSH's own format, and a PEM file encoded once more.
_BODIES = ("MII", "MIG", "MHcCAQ", "MHQCAQ", "MIGk", "MC4CAQ", "b3BlbnNzaC1rZXktdjE", "LS0tLS1CRUdJTi")
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_HEAD_CHARS = 96
# The lines of a key in a JSON string: `\nMIIB…\nAQAB==`.
_ESCAPED_LINES = re.compile(r"(?:\\{1,4}r)?(?:\\{1,4}n[A-Za-z0-9+/]{4,100}={0,2}){1,200}")


def key_blocks(scan: Scan) -> Iterator[Found]:
    """The private keys of a text. Linear time: text between two lines of armour is passed once in each direction."""
    for body in filter(scan.text.__contains__, _BODIES):
        yield from _bare(scan, body)
    if "PRIVATE KEY" not in scan.text:
        return
    text, done = scan.text, 0
    marks = list(_ARMOUR.finditer(text))
    scan.steps += len(text)
    for mark, following in zip_longest(marks, marks[1:]):
        if mark["end"] == "BEGIN":
            if following and following["end"] == "END" and following.start() - mark.end() <= _KEY_BLOCK_CHARS:
                done = following.end()
            else:
                done = _block_stop(scan, mark.end(), following.start() if following else len(text))
            yield mark.start(), done, "private-key"
        elif (head := mark.start()) >= done:
            # An END without its BEGIN: the key starts with the first of the lines before it that look like a key.
            begin = max(done, head - _KEY_BLOCK_CHARS)
            scan.steps += head - begin
            start = begin + len(text[begin:head].rstrip(_BASE64 + "\\"))
            while start > begin and text[start - 1] == "\n":
                line = text.rfind("\n", begin, start - 1) + 1 or begin
                if not _is_key_line(text[line : start - 1]):
                    break
                start = line
            done = mark.end()
            yield start, done, "private-key"


def _block_stop(scan: Scan, stop: int, limit: int) -> int:
    """Where the key that begins before ``stop`` ends: after its last line that looks like a part of a key."""
    text = scan.text
    limit = min(limit, stop + _KEY_BLOCK_CHARS)
    rest = text[stop:limit]
    scan.steps += len(rest)
    stop += len(rest) - len(rest.lstrip(_BASE64 + "-\\"))
    for _ in range(_KEY_LINES):
        if not text.startswith("\n", stop) or stop >= limit:
            break
        next_stop = text.find("\n", stop + 1, limit)
        next_stop = limit if next_stop < 0 else next_stop
        line = text[stop + 1 : next_stop]
        if not _is_key_line(line):
            # The last line of a key may be short.
            return next_stop if line and not line.strip(_BASE64) else stop
        stop = next_stop
    return stop


def _is_key_line(line: str) -> bool:
    words = line[:400].split()
    return 0 < len(words) <= 3 and any(
        len(word) >= 16 and not word.strip(_BASE64 + "→|:0123456789\"',\\+-") for word in words
    )


def _bare(scan: Scan, literal: str) -> Iterator[Found]:
    """Keys without armour: runs of base64 that begin with the literal and whose first bytes are those of a key.

    The lines after such a run that look like parts of the key belong to it.
    """
    done = 0
    for at in scan.hits(literal):
        if at < done or (at and scan.text[at - 1] in _BASE64):
            continue
        head = _BASE64_RUN.match(scan.text, at, at + _KEY_BLOCK_CHARS)
        scan.steps += (head.end() - at) if head else 40
        if head is None:
            continue
        done = head.end()
        try:
            data = base64.b64decode(head[0][: min(len(head[0]), _HEAD_CHARS) // 4 * 4])
        except (binascii.Error, ValueError):
            data = b""
        # DER of a private key is a sequence that begins with the version 0 or 1, unlike certificates and public keys.
        inner = data[2 + (data[1] & 0x7F if data[1] & 0x80 else 0) :] if data[:1] == b"\x30" and len(data) >= 8 else b""
        is_der = inner.startswith((b"\x02\x01\x00", b"\x02\x01\x01")) and inner[3:4] in (b"\x02", b"\x30", b"\x04")
        is_packed = data.startswith(b"-----BEGIN") and b"PRIVATE KEY" in data
        if is_der or is_packed or data.startswith(b"openssh-key-v1"):
            if scan.text.startswith("\n", done):
                done = _block_stop(scan, done, len(scan.text))
            elif scan.text.startswith("\\", done) and (more := scan.match(_ESCAPED_LINES, done, _KEY_BLOCK_CHARS)):
                done = more.end()
            yield at, done, "private-key"
