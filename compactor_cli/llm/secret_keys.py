"""Private keys: armour of PEM and PGP, one end missing, numbered or escaped lines, no armour, base64 of all that."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from compactor_cli.llm.text_scan import Found, Scan

_KEY_BLOCK_CHARS = 20_000
_KEY_LINES = 200
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_ARMOUR = re.compile(r"-----(?P<end>BEGIN|END) (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?(?:-----)?")
# How private keys begin in base64: DER (RSA, PKCS 8, EC), OpenSSH's own, and a PEM file packed once more.
_BODIES = ("MII", "MIG", "MHcCAQ", "MHQCAQ", "MIGk", "MC4CAQ", "b3BlbnNzaC1rZXktdjE")
_PACKED = "LS0tLS1CRUdJTi"
_RUN = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_HEAD_CHARS = 96


def key_blocks(scan: Scan) -> Iterator[Found]:
    """The private keys of a text. Linear time: every part between two lines of armour is passed once each way."""
    if "PRIVATE KEY" in scan.text:
        yield from _armoured(scan)
    for body in _BODIES:
        yield from _bare(scan, body, _is_private_der)
    yield from _bare(scan, _PACKED, _is_packed_pem)


def _armoured(scan: Scan) -> Iterator[Found]:
    text = scan.text
    marks = list(_ARMOUR.finditer(text))
    scan.steps += len(text)
    done = 0
    for i, mark in enumerate(marks):
        following = marks[i + 1] if i + 1 < len(marks) else None
        if mark["end"] == "BEGIN":
            is_whole = following and following["end"] == "END" and following.start() - mark.end() <= _KEY_BLOCK_CHARS
            limit = following.start() if following else len(text)
            done = following.end() if is_whole and following else _block_stop(scan, mark.end(), limit)
            yield mark.start(), done, "private-key"
        elif mark.start() >= done:
            yield _block_start(scan, mark.start(), done), mark.end(), "private-key"
            done = mark.end()


def _block_stop(scan: Scan, stop: int, limit: int) -> int:
    """After the last line that looks like a part of the key that begins before ``stop``."""
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


def _block_start(scan: Scan, head: int, done: int) -> int:
    """Where the lines before a lone END begin that look like a key."""
    text = scan.text
    begin = max(done, head - _KEY_BLOCK_CHARS)
    scan.steps += head - begin
    start = begin + len(text[begin:head].rstrip(_BASE64 + "\\"))
    while start > begin and text[start - 1] == "\n":
        line = text.rfind("\n", begin, start - 1) + 1 or begin
        if not _is_key_line(text[line : start - 1]):
            break
        start = line
    return start


def _is_key_line(line: str) -> bool:
    words = line[:400].split()
    return 0 < len(words) <= 3 and any(
        len(word) >= 16 and not word.strip(_BASE64 + "→|:0123456789\"',\\+-") for word in words
    )


def _bare(scan: Scan, literal: str, is_key: Callable[[bytes], bool]) -> Iterator[Found]:
    """Runs of base64 that begin with the literal and are a key by their first bytes; with the lines after them."""
    done = 0
    for at in scan.hits(literal):
        if at < done or (at and scan.text[at - 1] in _BASE64):
            continue
        head = _RUN.match(scan.text, at, at + _KEY_BLOCK_CHARS)
        scan.steps += (head.end() - at) if head else 40
        if head is None:
            continue
        done = head.end()
        if is_key(_decoded(head[0][:_HEAD_CHARS])):
            done = _block_stop(scan, done, len(scan.text)) if scan.text.startswith("\n", done) else _escaped(scan, done)
            yield at, done, "private-key"


_ESCAPED_LINES = re.compile(r"(?:\\{1,4}r)?(?:\\{1,4}n[A-Za-z0-9+/]{4,100}={0,2}){1,200}")


def _escaped(scan: Scan, at: int) -> int:
    found = scan.match(_ESCAPED_LINES, at, _KEY_BLOCK_CHARS) if scan.text.startswith("\\", at) else None
    return found.end() if found else at


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text[: len(text) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _is_private_der(data: bytes) -> bool:
    """A sequence that begins with the version 0 or 1, as private keys do and certificates and public keys do not."""
    if data.startswith(b"openssh-key-v1"):
        return True
    if data[:1] != b"\x30" or len(data) < 8:
        return False
    length_bytes = data[1] & 0x7F if data[1] & 0x80 else 0
    inner = data[2 + length_bytes :]
    return inner[:3] in (b"\x02\x01\x00", b"\x02\x01\x01") and inner[3:4] in (b"\x02", b"\x30", b"\x04")


def _is_packed_pem(data: bytes) -> bool:
    return data.startswith(b"-----BEGIN") and b"PRIVATE KEY" in data
