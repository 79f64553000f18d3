"""Contexts of secrets: values that are secret for where they stand, whatever they look like.

``password = …``, ``"api_key": "…"``, ``--token …``, ``Authorization: Bearer …``, ``scheme://user:…@host``,
private key blocks. Where a value may as well be code or a placeholder (``token = get_token()``,
``$PASSWORD``, ``<your key>``), it is none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

Found = tuple[int, int, str]  # start, stop, kind

LEAST_ENTROPY_BITS = 3.0
_FLAG_CHARS = 32
_LONG_CHARS = 120
_KEY_BLOCK_CHARS = 20_000
_KEY_LINES = 200
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

# What the name of a secret ends in; found in lower case by the stem, then matched as a whole.
_STEMS = (
    ("password", "passw", r"passw(?:or)?d"),
    ("password", "passphrase", r"passphrase"),
    ("password", "pwd", r"pwd"),
    ("password", "密码", r"密码"),
    ("secret", "secret", r"secret(?:[-_]?(?:access)?[-_]?key)?"),
    ("token", "token", r"token"),
    ("api-key", "api", r"api[-_ ]?key"),
    ("api-key", "access", r"access[-_]?key"),
    ("api-key", "private", r"private[-_]?key"),
    ("api-key", "auth", r"auth[-_]?key"),
    ("api-key", "account", r"account[-_]?key"),
    ("api-key", "encryption", r"encryption[-_]?key"),
    ("api-key", "signing", r"signing[-_]?key"),
    ("api-key", "master", r"master[-_]?key"),
    ("secret", "credential", r"credentials?"),
)
_SIGN = r"(?:\\?[\"'`])?[ \t]{0,4}(?P<sign>:=|=>|==?|[:：]|(?P<is>is|是)(?=[ \"'`]))[ \t]{0,4}"
_FLAG = r"(?P<flag>[ \t]{1,4})"
_VALUE = (
    r"(?:\\?(?P<quote>[\"'`])(?P<quoted>[^\s\"'`\\]{4,1024})(?=\\?[\"'`])"
    r"|(?P<bare>(?:(?!&\w{1,40}=)[^\s\"'`\\,;()\[\]{}<>|]){4,1024}))"
)
_AUTHORIZATION = (
    r"(?i:authorization)\\?[\"']?[ \t]{0,4}[:=,][ \t]{0,4}\\?[\"']?"
    r"(?P<scheme>(?i:bearer|basic|token|apikey|key|digest)[ \t]{1,4})?(?P<s>[A-Za-z0-9._~+/=-]{8,4096})"
)
_BEARER = r"(?i:bearer)[ \t]{1,4}(?P<s>[A-Za-z0-9._~+/=-]{16,4096})"
_COOKIE = r"(?i:cookie)\\?[\"']?:[ \t]{0,4}\\?[\"']?(?P<s>[A-Za-z0-9_.-]{1,64}=[^\n\"'\\]{8,4096})"
_BEHIND_USER = r"://[^\s/:@\"'`<>\\]{0,128}:(?P<s>[^\s\"'`<>\\]{1,256})@"
_AS_USER = r"://(?P<s>[^\s/:@\"'`<>\\]{20,256})@"
_USER_FLAG = r"(?:-u|--user)[ =]{1,3}[\"']?[^\s:\"'/]{1,64}:(?P<s>[^\s\"'@\\]{4,256})"

_NO_VALUE = re.compile(
    r"[$<{%/~@&*(\[.#]|https?:|file:"
    r"|(?:none|null|nil|true|false|undefined|string|str|bytes|required|optional|redacted|example|test)$"
    r"|your|my[-_]|os\.|process\.|env\.|self\.|this\.|args\.|config\.|settings\.|request\.|\w+\.\w+\.\w+$",
    re.IGNORECASE,
)
_CODE = re.compile(r"[({]|\.\.\.|…|\*\*\*|[xX]{4}|->|=>|::|==")
# What a variable or a word is called: parts of letters, with a number at most here and there.
_SPELLED = re.compile(
    r"[A-Za-z]+\d{0,2}[A-Za-z]*(?:[-_][A-Za-z]+\d{0,2}[A-Za-z]*)+|_\w+|\w*(?i:key|token|secret|passw|cred)\w*"
)
_NAME = re.compile(r"[A-Za-z_]+(?:[.\-_][A-Za-z_]+)*")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_ENVIRONMENT = re.compile(r"[A-Z0-9_]+")


@lru_cache(maxsize=1)
def _assignments() -> tuple[tuple[str, str, re.Pattern[str], re.Pattern[str]], ...]:
    return tuple(
        (kind, stem, re.compile(f"(?i:{name}){_SIGN}{_VALUE}"), re.compile(f"(?i:{name}){_FLAG}{_VALUE}"))
        for kind, stem, name in _STEMS
    )


@lru_cache(maxsize=1)
def _places() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    return (
        ("authorization", "authorization", re.compile(_AUTHORIZATION)),
        ("authorization", "bearer", re.compile(_BEARER)),
        ("cookie", "cookie", re.compile(_COOKIE)),
        ("password", "://", re.compile(_BEHIND_USER)),
        ("token", "://", re.compile(_AS_USER)),
        ("password", "-u", re.compile(_USER_FLAG)),
    )


def contexts(text: str) -> Iterator[Found]:
    """The values in ``text`` that are secret for where they stand; may overlap. Linear time."""
    lowered = text.lower()
    if len(lowered) != len(text):  # İ is the one letter that grows
        lowered = text.replace("İ", "I").lower()
    for kind, stem, assignment, flag in _assignments():
        looked_at = 0
        for at in hits(lowered, stem):
            if at < looked_at:
                continue
            match = assignment.match(text, at) or (flag.match(text, at) if _is_flag(text, at) else None)
            if match and _is_assigned(text, kind, match):
                yield (*match.span("quoted" if match["quoted"] else "bare"), kind)
            # A long value is not looked through again for each name in it: that would not be linear.
            if match and match.end() - at > _LONG_CHARS:
                looked_at = match.end()
    for kind, stem, expression in _places():
        for at in hits(lowered, stem):
            match = expression.match(text, at)
            if match and _is_placed(kind, stem, match):
                yield (*match.span("s"), kind)
    yield from _key_blocks(text)


def hits(text: str, literal: str) -> Iterator[int]:
    """Where a literal is in a text."""
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + 1)


def entropy_bits(text: str) -> float:
    """Shannon entropy per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def is_mixed(text: str) -> bool:
    """Whether it has digits and letters, as made-up texts do and words do not."""
    return any(char.isdigit() for char in text) and any(char.isalpha() for char in text)


def _is_flag(text: str, at: int) -> bool:
    """Whether ``--name`` leads here."""
    word = text[max(0, at - _FLAG_CHARS) : at].rpartition(" ")[2].lstrip("\"'`([")
    return word.startswith("--")


def _is_assigned(text: str, kind: str, match: re.Match[str]) -> bool:
    value: str = match["quoted"] or match["bare"]
    if not match["quoted"]:
        value = value.rstrip(".:!?")
    if len(value) < 4 or _NO_VALUE.match(value) or _CODE.search(value) or len(set(value)) < 3:
        return False
    if match["bare"] and _DOTTED.fullmatch(value):
        return False
    if kind == "password":
        return _is_password(text, match, value)
    if match["bare"] and _SPELLED.fullmatch(value):
        return False
    return len(value) >= 8 and is_mixed(value) and entropy_bits(value) >= LEAST_ENTROPY_BITS


def _is_password(text: str, match: re.Match[str], value: str) -> bool:
    """Passwords may be words; a word is one where it is quoted or set in the environment, not in prose or code."""
    if not _NAME.fullmatch(value):
        return not value.replace(".", "").isdigit() or bool(match["quoted"]) or len(value) > 5
    if match.groupdict().get("is"):
        return False
    if match["quoted"]:
        return "passw" not in value.lower() and not value.istitle()
    begin = max(0, match.start() - _FLAG_CHARS)
    name = re.split(r"[^A-Za-z0-9_]", text[begin : match.end()].rpartition("=")[0])[-1]
    return bool(match.groupdict().get("sign") == "=" and _ENVIRONMENT.fullmatch(name))


def _is_placed(kind: str, stem: str, match: re.Match[str]) -> bool:
    value = match["s"]
    if _NO_VALUE.match(value) or _CODE.search(value) or len(set(value)) < 2:
        return False
    if kind in ("authorization", "token"):
        told = (match.groupdict().get("scheme") or "").strip().lower()
        return told == "basic" or (is_mixed(value) and not _DOTTED.fullmatch(value) and not _SPELLED.fullmatch(value))
    if kind == "cookie":
        return any(len(part) >= 16 and is_mixed(part) for part in re.split(r"[=;]\s*", value))
    if stem == "://":  # http://host:8080/@scope has a port, not a password
        return not re.match(r"\d*/", value)
    if stem == "-u":
        return not value.isdigit() and not _NAME.fullmatch(value)
    return True


def _key_blocks(text: str) -> Iterator[Found]:
    """Private keys in PEM and PGP armour, also with one end missing, with line numbers, or in one escaped line."""
    if "PRIVATE KEY" not in text:
        return
    done = 0
    for at in hits(text, "PRIVATE KEY"):
        if at < done:
            continue
        head = text.rfind("-----", max(0, at - 60), at)
        if head < 0 or "\n" in text[head:at]:
            continue
        if text.startswith("-----BEGIN", head):
            done = _block_stop(text, at)
            yield head, done, "private-key"
        elif text.startswith("-----END", head):
            yield _block_start(text, head, done), _line_stop(text, at), "private-key"


def _block_stop(text: str, at: int) -> int:
    """Behind the END line of the block; without one, behind the last line that looks like a part of it."""
    end = text.find("-----END", at, at + _KEY_BLOCK_CHARS)
    if end >= 0 and "-----BEGIN" not in text[at:end]:
        dashes = text.find("-----", end + 8, end + 80)
        return dashes + 5 if dashes >= 0 else end + 8
    stop = at + len("PRIVATE KEY")
    rest = text[stop : stop + _KEY_BLOCK_CHARS]
    stop += len(rest) - len(rest.lstrip(_BASE64 + "-\\"))
    for _ in range(_KEY_LINES):
        if not text.startswith("\n", stop):
            break
        next_stop = text.find("\n", stop + 1)
        next_stop = len(text) if next_stop < 0 else next_stop
        line = text[stop + 1 : next_stop]
        if not _is_key_line(line):
            # The last line of a key may be short.
            return next_stop if line and not line.strip(_BASE64) else stop
        stop = next_stop
    return stop


def _block_start(text: str, head: int, done: int) -> int:
    """Where the lines before a lone END begin that look like a key."""
    begin = max(done, head - _KEY_BLOCK_CHARS)
    start = begin + len(text[begin:head].rstrip(_BASE64 + "\\"))
    while start > begin and text[start - 1] == "\n":
        line = text.rfind("\n", begin, start - 1) + 1 or begin
        if not _is_key_line(text[line : start - 1]):
            break
        start = line
    return start


def _is_key_line(line: str) -> bool:
    words = line.split()
    return 0 < len(words) <= 3 and any(
        len(word) >= 16 and not word.strip(_BASE64 + "→|:0123456789\"',\\") for word in words
    )


def _line_stop(text: str, at: int) -> int:
    stop = at + len("PRIVATE KEY")
    return stop + 5 if text.startswith("-----", stop) else stop
