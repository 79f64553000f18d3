"""Contexts of secrets: values that are secret because of where they stand, whatever they look like.

``password = …``, ``"api_key": "…"``, ``--token …``, ``mysql -p…``, ``Authorization: Basic …``,
``scheme://user:…@host``, columns of tables. Names and programs are data: `secrets.toml`. A value that may as well be
code or a placeholder (``$PASSWORD``, ``<your key>``) is not taken for a secret. Quotes around names may be escaped,
also several times (``\\"password\\": \\"…\\"``).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from compactor_cli.llm.secret_forms import Found, Scan, key_blocks, secret_tables
from compactor_cli.model.value import dataclass

_FLAG_CHARS = 32
_NAME_CHARS = 64
_VALUE_CHARS = 1_024
_LINE_CHARS = 240
# In longer values no further names are looked for.
_LONG_CHARS = 64

# What may follow a name: `_prod`, `-2`.
_SUFFIX = r"(?:[-_]?(?:prod|production|staging|stage|dev|test|old|new|main|[a-z]|\d{1,2})(?![a-z0-9]))?"
_QUOTE = r"\\{0,7}[\"'`]"
_GAP = r"[ \t]{0,16}"
# Between a name and its value where the value has a field of its own: `", "value": `, a line break and `value: `.
_VALUE_FIELD = (
    rf"(?:{_QUOTE})?(?:\s{{0,40}},|\s{{1,40}}|\\{{1,4}}n\s{{0,40}})\s{{0,40}}"
    rf"(?:{_QUOTE})?value(?:{_QUOTE})?{_GAP}[:=]{_GAP}"
)
# Between a name and its value otherwise: `" : `, ` = `, `", `, ` is `, `>`, each maybe with a line break after it.
_SIGN = re.compile(
    rf"(?P<field>{_VALUE_FIELD})"
    rf"|(?:{_QUOTE})?[\])]?{_GAP}(?P<sign>:=|=>|={{1,3}}|[:：]|,(?={_GAP}{_QUOTE})|>(?=[^\s<>]{{4,200}}</)"
    rf"|(?P<is>is|ist|lautet|est|es|是|は)(?=[ \"'`:：]){_GAP}[:：]?){_GAP}"
    rf"(?P<break>\r?\n[ \t]{{0,40}}|\\{{1,4}}n[ \t]{{0,40}})?"
)
_FLAG = re.compile(r"[ \t]{1,4}(?=[^ \t=-])")
_OPENING = re.compile(_QUOTE)
# Where a value without quotes ends: a blank, a quote, `;`, `\n` in JSON, `&tide=` in an address.
_BARE_END = re.compile(r"[\s\"'`,;<>|]|\\+[\"'`nrt]|&(?=\w{1,40}=)")

_USER_INFO = re.compile(r"://[^\s/:@\"'`<>\\]{0,128}:(?P<s>[^\s\"'`<>\\]{1,256})@")
_AS_USER = re.compile(r"://(?P<s>[^\s/:@\"'`<>\\]{20,256})@")
_ARGUMENT = r"(?:\\*[\"'])?(?P<s>[^\s\"'\\]{3,256})"

# How a value begins that stands for another one: `${TIDE_KEY}`, `<your key>`, `os.environ[…`, `none`.
_PLACEHOLDER = re.compile(
    r"\$\{|\$\(|\$[A-Za-z_]\w*$|%[A-Za-z_]\w*%$|%[sdr]\b|<|\{\{|\{[\w.]*\}|@\w+@$|\*{3}|&[a-z]|\[REDACTED"
    r"|(?:~|\.{1,2})/|https?:|file:|(?:none|null|nil|true|false|undefined|string|str|bytes|text|required|optional|redacted"
    r"|example|test)$|your|my[-_]|os\.|process\.|env\.|self\.|this\.|args\.|config\.|settings\.|request\.",
    re.IGNORECASE,
)
_PATH = re.compile(r"/(?:[\w.@-]+/)+[\w.@-]*|/[\w.@-]*")
_NOT_BARE = re.compile(r"[$<{%~@&*(\[.#]")
_ELLIPSIS = re.compile(r"\.\.\.|…|\*\*\*|x{4}", re.IGNORECASE)
# A value that may be an expression: `read_key(`, `gauges[0]`, `Clock::new`.
_CODE = re.compile(r"[A-Za-z_][\w.]*\(|[({\[]|->|=>|::|==(?!=*$)")
# A name of a variable, or words joined by dashes: `tide-gauge-key2`, `_token`, `my_secret`.
_SPELLED = re.compile(
    r"[a-z]+\d{0,2}[a-z]*(?:[-_][a-z]+\d{0,2}[a-z]*)+|_\w+|\w*(?:key|token|secret|passw|cred)\w*", re.IGNORECASE
)
_NAME = re.compile(r"[A-Za-z_]+(?:[.-][A-Za-z_]+)*")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\w+\.\w+\.\w+")
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]*")
_WORDS = re.compile(r"[a-z]{3,12}(?: [a-z]{3,12}){2,11}")
# The first argument of a call, as in setenv("NAME", "value").
_CALLED = re.compile(r"\(\s{0,8}\\*[\"'`][\w.-]*$")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def contexts(scan: Scan) -> Iterator[Found]:
    """The values in a text that are secret because of where they stand; may overlap. Linear time; see `Scan`."""
    for stem, kind, name in _table("stems"):
        if stem in scan.lowered:
            yield from _assigned(scan, stem, kind, name)
    yield from _placed(scan)
    for program, kind, argument in _table("programs"):
        for at in scan.hits(program, lowered=True) if program in scan.lowered else ():
            # An entry of a .netrc file may take several lines.
            line = scan.text[at : at + _LINE_CHARS] if program == "machine " else scan.line_from(at, _LINE_CHARS)
            match = argument.search(line)
            if match and not _PLACEHOLDER.match(match["s"]) and not _PATH.fullmatch(match["s"]):
                yield at + match.start("s"), at + match.end("s"), kind
    yield from _columns(scan)
    yield from key_blocks(scan)


@cache
def _table(name: str) -> list[tuple[str, str, re.Pattern[str]]]:
    """The rows of a table in `secrets.toml`: a literal, a kind, and the pattern to match where the literal stands."""
    parts = {"<quote>": f"(?:{_QUOTE})?", "<gap>": _GAP, "<argument>": _ARGUMENT}
    found = []
    for literal, kind, expression in secret_tables()[name]:
        for part, meaning in parts.items():
            expression = expression.replace(part, meaning)
        found.append((literal, kind, re.compile(f"(?i){expression}{_SUFFIX}" if name == "stems" else expression)))
    return found


@cache
def _word_list(name: str) -> frozenset[str]:
    return frozenset(secret_tables()["words"][name].split())


@cache
def _ends_in(name: str) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(sorted(_word_list(name)))})[-_ ]?$", re.IGNORECASE)


def _is_random(text: str, least_chars: int = 8) -> bool:
    """Whether a text is this long, mixed, and varied: 3 bits a character, or 70 % of the most at its length."""
    if len(text) < least_chars or not is_mixed(text):
        return False
    entropy_bits = -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
    return entropy_bits >= min(3.0, 0.7 * math.log2(len(text)))


# Base64 of at least 16 characters that ends in `=`.
_PADDED = re.compile(r"(?:[A-Za-z0-9+/_-]{4}){3,}(?:[A-Za-z0-9+/_-]{3}=|[A-Za-z0-9+/_-]{2}==)")


def is_mixed(text: str) -> bool:
    """Whether a text has both digits and letters, or is padded base64, as random texts are and words are not."""
    has_both = any(char.isdigit() for char in text) and any(char.isalpha() for char in text)
    return has_both or (text.endswith("=") and bool(_PADDED.fullmatch(text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoundValue:
    """A value, and how it stands to its name."""

    kind: str  # of secret, by the name
    stem: str  # the part of the name that shows that the value is secret
    before: str  # the text in front of the stem, where the name begins
    text: str  # the value
    is_quoted: bool
    is_flag: bool  # the name is an option of a command, the value its argument
    sign: str  # between name and value; ``is`` for a word, empty for a flag or a field of its own
    is_on_next_line: bool
    is_name_quoted: bool

    @property
    def is_environment(self) -> bool:
        """Whether it is set like an environment variable: ``NAME=value``."""
        name = re.split(r"[^A-Za-z0-9_]", self.before)[-1] + self.stem
        return self.sign == "=" and bool(_ENVIRONMENT.fullmatch(name))


def _assigned(scan: Scan, stem: str, kind: str, name: re.Pattern[str]) -> Iterator[Found]:
    text, looked_at = scan.text, 0
    for at in scan.hits(stem, lowered=True):
        if at < looked_at or not (named := scan.match(name, at, _NAME_CHARS)):
            continue
        sign = scan.match(_SIGN, named.end(), _NAME_CHARS)
        word = text[max(0, at - _FLAG_CHARS) : at].rpartition(" ")[2].lstrip("\"'`([\\")
        flag = scan.match(_FLAG, named.end(), 8) if not sign and word.startswith("--") else None
        if not (found := sign or flag):
            continue
        opening = scan.match(_OPENING, found.end(), 8)
        start = opening.end() if opening else found.end()
        stop = scan.closing(opening[0], start, _VALUE_CHARS) if opening else -1
        if not (is_quoted := stop >= 0):
            end = scan.search(_BARE_END, start, _VALUE_CHARS)
            stop = end.start() if end else min(len(text), start + _VALUE_CHARS)
        if stop - start > _LONG_CHARS:
            looked_at = stop
        value = _FoundValue(
            kind=kind,
            stem=text[at : named.end()],
            before=text[max(0, at - _FLAG_CHARS) : at],
            text=text[start:stop],
            is_quoted=is_quoted,
            is_flag=flag is not None,
            sign=(sign["sign"] or "") if sign and not sign["is"] else "is" if sign else "",
            is_on_next_line=bool(sign and sign["break"]),
            is_name_quoted=text[named.end() : named.end() + 8].lstrip("\\")[:1] in "\"'`",
        )
        words = "" if is_quoted or kind != "password" else scan.line_from(start, 120).rstrip()
        if _WORDS.fullmatch(words) and value.sign in (":", "=") and _is_passphrase(words):
            yield start, start + len(words), kind
        elif _is_secret(value):
            yield start, stop, kind


def _is_secret(value: _FoundValue) -> bool:
    text = value.text if value.is_quoted else value.text.rstrip(".:!?)")
    if len(text) < 4 or len(set(text)) < 3 or _PLACEHOLDER.match(text) or _ELLIPSIS.search(text):
        return False
    if value.is_on_next_line and not (is_mixed(text) and len(text) >= 8 and "=" not in text.rstrip("=")):
        return False
    if value.sign == "," and (not _CALLED.search(value.before) or _ENVIRONMENT.fullmatch(text)):
        return False
    may_be_code = not value.is_quoted and not value.is_environment
    if may_be_code and (
        _NOT_BARE.match(text) or _CODE.search(text) or _DOTTED.fullmatch(text) or _PATH.fullmatch(text)
    ):
        return False
    if value.kind == "password":
        return _is_password(value, text)
    if _PATH.fullmatch(text) or (not value.is_quoted and _SPELLED.fullmatch(text)) or " " in text:
        return False
    if value.stem.lower().startswith(("key", "schlüssel", "auth")):
        return _is_key(value, text)
    return _is_random(text)


def _is_key(value: _FoundValue, text: str) -> bool:
    """Whether the value of a name in "key" or "auth" is secret.

    A random value is, if the name is in the list of secret keys. Another one has to be long, too, and not a UUID, and
    its name neither bare nor in the list of open keys. That of ``"auth"`` has to be base64 of a user and a password.
    """
    if value.stem.lower().startswith("auth"):
        return value.is_quoted and value.is_name_quoted and _is_user_and_password(text)
    word = re.split(r"[^A-Za-z0-9_-]", value.before)[-1]
    if _ends_in("secret_keys").search(word):
        return _is_random(text)
    if (
        not word.strip("-_")
        or word.lower().rstrip("-_").endswith("secret")
        or _ends_in("open_keys").search(word)
        or _UUID.fullmatch(text)
    ):
        return False
    text = text.removeprefix("base64:")
    return _is_random(text, 16) and not _SPELLED.fullmatch(text)


def _is_user_and_password(text: str) -> bool:
    """Whether a text is base64 of ``user:password``."""
    padded = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        plain = base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in plain and plain.decode("utf-8", "replace").isprintable()


def _is_password(value: _FoundValue, text: str) -> bool:
    """Whether the value of a name in "password" is secret.

    It may be a plain word where that is quoted or set like an environment variable, not in prose or code.
    """
    if " " in text:
        return value.is_quoted and _is_passphrase(text)
    if value.stem.lower() == "pass" and not (value.is_environment or value.is_quoted or value.is_flag):
        return is_mixed(text) and len(text) >= 6
    if not _NAME.fullmatch(text):
        return not text.replace(".", "").isdigit() or value.is_quoted or len(text) > 5
    if value.sign == "is":
        return False
    if value.is_quoted:
        return "passw" not in text.lower() and not text.istitle()
    return value.is_environment or value.sign == ">"


def _is_passphrase(text: str) -> bool:
    """Whether a text is three to twelve words that are not a sentence: none of them is a word that joins others."""
    words = text.lower().split()
    return (
        3 <= len(words) <= 12
        and text == text.strip(".!?:")
        and not _word_list("sentence").intersection(words)
        and text.isprintable()
        and (text == text.lower() or is_mixed(text))
        and not _CODE.search(text)
    )


def _placed(scan: Scan) -> Iterator[Found]:
    for stem, kind, expression in _table("placed"):
        done = 0
        for at in scan.hits(stem, lowered=True) if stem in scan.lowered else ():
            match = scan.match(expression, at, 4_400, 340) if at >= done else None
            if match:
                done = match.end()
                if _is_placed(stem, match):
                    yield (*match.span("s"), kind)
    for at in scan.hits("://"):
        # Without an @ nearby there is no user, and the patterns below need not be tried.
        if not 0 <= scan.next_of("@", at) < at + 400:
            continue
        user = scan.match(_USER_INFO, at, 400)
        if user and _is_placed("://", user) and not re.match(r"\d*/", user["s"]):
            yield (*user.span("s"), "password")
        if (match := scan.match(_AS_USER, at, 300)) and _is_placed("user", match):
            yield (*match.span("s"), "token")


def _is_placed(stem: str, match: re.Match[str]) -> bool:
    value = match["s"]
    if _PLACEHOLDER.match(value) or _ELLIPSIS.search(value) or len(set(value)) < 2:
        return False
    if stem == "basic":
        return _is_user_and_password(value)
    if stem in ("authorization", "bearer", "user"):
        scheme = (match.groupdict().get("scheme") or "").lower()
        is_word = _DOTTED.fullmatch(value) or _SPELLED.fullmatch(value)
        return scheme.startswith(("basic", "digest")) or (is_mixed(value) and not is_word)
    if stem == "cookie":
        return any(len(part) >= 16 and is_mixed(part) for part in re.split(r"[=;]\s*", value))
    if stem in ("-u", "--user"):
        return not value.isdigit() and not _NAME.fullmatch(value)
    return True


_LINE_BREAK = re.compile(r"\r?\n|(?:\\+r)?\\+n")
_COLUMN_NAME = re.compile(
    r"(?:[a-z_]{1,20}[_ ])?(?:(?P<password>passw(?:or[dt]|d)|pwd|kennwort|mot de passe)|secret"
    r"|(?:api|access|auth)?[_ -]?(?:token|key))",
    re.IGNORECASE,
)
# A cell of a table's heading: `station`, `api key`.
_HEADING = re.compile(r"[A-Za-z_][\w .-]{0,30}")
_RULER = re.compile(r"[-:=+| \t]{3,}")
_NO_CELL = re.compile(
    r"(?:yes|no|none|null|n/?a|text|string|str|varchar.*|char.*|required|optional|true|false|-+)$", re.IGNORECASE
)
_COLUMN_LINES = 2_000
_COLUMN_CHARS = 2_000
_COLUMN_STEMS = ("passw", "pwd", "kennwort", "passe", "secret", "token", "key")
# Separator of cells, number of cells, and the columns of secrets: each its index, and whether it holds passwords.
_Heading = tuple[str, int, tuple[tuple[int, bool], ...]]


def _columns(scan: Scan) -> Iterator[Found]:
    """Cells of tables (CSV, tabs, bars) below a heading that is the name of a secret."""
    for stem in filter(scan.lowered.__contains__, _COLUMN_STEMS):
        done = 0
        for at in scan.hits(stem, lowered=True):
            # In a heading, the name ends where its cell does.
            if at < done or not scan.match(_CELL_NAME, at, 40):
                continue
            escaped = scan.text.rfind("\\n", done, at)
            start = max(scan.text.rfind("\n", done, at) + 1, escaped + 2 if escaped >= 0 else 0, done)
            scan.steps += at - start
            found = scan.search(_LINE_BREAK, start, _COLUMN_CHARS)
            heading = _heading(scan.text[start : found.start()]) if found else None
            stop = found.end() if found else start
            cells, stop = _below(scan, heading, stop) if heading else ([], stop)
            done = max(stop, at + 1)
            yield from cells


_CELL_NAME = re.compile(r"[\w -]{2,20}\\*[\"']?[ \t]{0,20}(?:[,;|\t]|\r?\n|\\+[rn])")


def _below(scan: Scan, heading: _Heading, start: int) -> tuple[list[Found], int]:
    """The secret cells in the lines below a heading, and the offset at which the table ends.

    It ends before the first line that has another number of cells and is not a ruler.
    """
    mark, count, columns = heading
    found: list[Found] = []
    for _ in range(_COLUMN_LINES):
        end = scan.search(_LINE_BREAK, start, _COLUMN_CHARS)
        line = scan.text[start : end.start() if end else start + _COLUMN_CHARS]
        cells = _cells(line, mark)
        if len(cells) == count:
            for column, is_password in columns:
                begin, stop = cells[column]
                if _is_cell(line[begin:stop], is_password):
                    found.append((start + begin, start + stop, "password" if is_password else "token"))
        elif not _RULER.fullmatch(line):
            break
        if end is None:
            break
        start = end.end()
    return found, start


def _heading(line: str) -> _Heading | None:
    mark = next((mark for mark in "\t|;," if mark in line), "")
    cells = _cells(line, mark) if mark else []
    # The first name may follow the JSON around the text that holds the table: `{"output": "`.
    names = [line[begin:end].rpartition('"')[2] for begin, end in cells]
    if len([name for name in names if name]) < 2 or not all(_HEADING.fullmatch(name) for name in names if name):
        return None
    found = [(i, match) for i, name in enumerate(names) if (match := _COLUMN_NAME.fullmatch(name))]
    return (mark, len(cells), tuple((i, bool(match["password"])) for i, match in found)) if found else None


_CELL_EDGES = " \"'\\"
# Where the JSON string that holds a table ends: `",`, `\"}`.
_CELL_END = re.compile(r"\\*\"\s*[,}\]]")


def _cells(line: str, mark: str) -> list[tuple[int, int]]:
    """The offsets (start, stop) of the cells of a line, without blanks and quotes around them."""
    found: list[tuple[int, int]] = []
    begin = 0
    for piece in line.split(mark):
        inner = _CELL_END.split(piece.strip(_CELL_EDGES))[0]
        lead = piece.find(inner) if inner else 0
        found.append((begin + lead, begin + lead + len(inner)))
        begin += len(piece) + 1
    return found


def _is_cell(text: str, is_password: bool) -> bool:
    if len(text) < 4 or len(set(text)) < 3 or _NO_CELL.match(text) or _PLACEHOLDER.match(text):
        return False
    if _RULER.fullmatch(text):
        return False
    if is_password:
        return " " not in text or _is_passphrase(text)
    return _is_random(text) and " " not in text
