"""Statements: the pieces of a text that can stand alone — a sentence, a command, a signature, an error.

Every statement is a verbatim piece of the text it comes from: only what stands around it is taken off
(bullets, quotes, trailing commas), and of a line too long to be shown the parts around its facts remain.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from string import ascii_letters, digits

MOST_CHARS = 320
# A line longer than this is cut into sentences where it has any.
_SENTENCE_CHARS = 160
_WINDOW_CHARS = 110
GAP = " … "
_LEAST_CHARS = 6
# A word of so many characters is data, and so are so many marks in a row.
_RUN_CHARS = 80
_MOST_MARKS = 12
_LETTERS = (ascii_letters + digits).encode()
# Lines that differ in numbers only: so many are told as any other line, more of them are worth a part of that.
_MOST_ALIKE = 3
_ALIKE_QUALITY = 0.3


@cache
def _sentence_end() -> re.Pattern[str]:
    # A full stop is an end before a blank and what can open a sentence; full-width stops always are.
    return re.compile(r"(?<=[.!?])[\"')*_`]*\s+(?=[A-Z\"'(*_`\[#\d])|(?<=[。！？；])")


@cache
def _call_opening() -> re.Pattern[str]:
    # What names a file or a command, or is a file's text, stands for itself; other arguments are told with their names.
    return re.compile(
        r"^(?:command|cmd|script|code|input|file_?path|path|absolute_path|filename|target_file|pattern"
        r"|content|file_text)="
    )


@cache
def _item() -> re.Pattern[str]:
    return re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)]|\[[ xX]\])\s+\S")


@cache
def _noise() -> re.Pattern[str]:
    # A run of 80 and more without a blank that is neither a path nor an address: encoded or minified data.
    return re.compile(rf"[A-Za-z0-9+/=_-]{{{_RUN_CHARS},}}|(?:\\x[0-9a-f]{{2}}){{8}}|(?:[^\s\w]\s*){{{_MOST_MARKS}}}")


@cache
def _signature() -> re.Pattern[str]:
    return re.compile(
        r"^(?:export |default |public |private |protected |static |async |pub |final |abstract |@)*"
        r"(?:def|class|func|fn|function|interface|type|struct|enum|trait|impl|const|let|var|package"
        r"|CREATE|ALTER|SELECT|INSERT|UPDATE|DELETE)\b"
    )


@cache
def _import() -> re.Pattern[str]:
    return re.compile(
        r"(?:import\b|from \S+ import\b|#include\b|(?:pub )?use [\w:]|using [\w.]+;|export \*|const .* = require\()"
    )


@cache
def _trouble() -> re.Pattern[str]:
    return re.compile(r"\b(?:\w*Error|\w*Exception|[Ee]rror|FAILED|FAIL|[Ff]ailed|panic|[Ww]arning|fatal)\b")


# One of these is in whatever tells of trouble.
_TROUBLES = ("rror", "xception", "FAIL", "ailed", "panic", "arning", "fatal")


def is_item(line: str) -> bool:
    """Whether a line is an item of a list."""
    return _item().match(line) is not None


def without_key(line: str) -> str:
    """A line of a call without the ``key=`` of an argument that is a path, a command, a pattern or a file's text."""
    found = _call_opening().match(line)
    return line[found.end() :] if found else line


@cache
def _setting() -> re.Pattern[str]:
    return re.compile(r"^[A-Za-z_]\w{0,30}=(?:true|false|null|None|[\d.]+|[a-z_]{1,20})?$")


def is_setting(line: str) -> bool:
    """Whether a line of a call sets a number, a switch or a mode: how the tool was used, not what on."""
    return _setting().match(line) is not None


def sentences(line: str) -> tuple[str, ...]:
    """A line as the sentences it consists of; a short line is one."""
    if len(line) <= _SENTENCE_CHARS:
        return (line,)
    return tuple(piece for piece in _sentence_end().split(line) if piece)


def is_noise(text: str) -> bool:
    """Whether a text says nothing to a reader: brackets, rules, encoded or minified data."""
    if len(text) < _LEAST_CHARS:
        return True
    letters = _letters(text)
    if letters * 5 < len(text) * 2 or not any(map(str.isalpha, text)):
        return True
    if len(text) < _RUN_CHARS and len(text) - letters - text.count(" ") < _MOST_MARKS and "\\x" not in text:
        return False
    return _noise().search(text) is not None and "://" not in text


def _letters(text: str) -> int:
    """How many letters and digits a text has."""
    if text.isascii():
        return len(text) - len(text.encode().translate(None, _LETTERS))
    return sum(map(str.isalnum, text))


def quality(text: str) -> float:
    """How well a line reads alone, from 0.8 (a scrap) to 1.1 (an error); 0.5 for what every file begins with."""
    if any(map(text.__contains__, _TROUBLES)) and _trouble().search(text):
        return 1.1
    if _import().match(text):
        return 0.5
    if _signature().match(text):
        return 1.0
    blanks = text.count(" ")
    if text[0] in ")]},.;:&|+*/=<?" or text[-1] in "([{,&|+=\\<" or text.startswith(("and ", "or ", "else", "return ")):
        return 0.8
    if blanks == 0:
        return 0.8
    return 1.0 if blanks >= 3 else 0.9


def repetition(texts: Iterable[str]) -> list[float]:
    """For each line 1, or less where several before it are the same but for numbers: some examples tell the rest."""
    seen: Counter[str] = Counter()
    found: list[float] = []
    for text in texts:
        shape = _digits().sub("0", text)
        seen[shape] += 1
        found.append(1.0 if seen[shape] <= _MOST_ALIKE else _ALIKE_QUALITY)
    return found


@cache
def _digits() -> re.Pattern[str]:
    return re.compile(r"\d+")


def windowed(text: str, spots: Sequence[tuple[int, int]], most_chars: int = MOST_CHARS) -> str:
    """The parts of a long text around ``spots`` (start, stop), most important first, cut at blanks, joined by ``GAP``.

    Guarantee: every part is verbatim, and the whole is no longer than ``most_chars`` plus the gaps.
    """
    if len(text) <= most_chars:
        return text
    taken: list[tuple[int, int]] = []
    left = most_chars
    for start, stop in spots:
        if any(a <= start and stop <= b for a, b in taken):
            continue
        near = _around(text, start, stop)
        # Parts that touch are united with the blank between them.
        size_chars = near[1] - near[0] + bool(taken)
        if size_chars > left:
            break
        left -= size_chars
        taken.append(near)
    if not taken:
        taken = [_around(text, 0, 0)]
    pieces = [text[a:b].strip() for a, b in _united(taken)]
    begins, ends = min(taken)[0] == 0, max(taken)[1] == len(text)
    return ("" if begins else GAP.lstrip()) + GAP.join(pieces) + ("" if ends else GAP.rstrip())


def _around(text: str, start: int, stop: int) -> tuple[int, int]:
    side = max(20, (_WINDOW_CHARS - (stop - start)) // 2)
    first, last = max(0, start - side), min(len(text), stop + side)
    if first and (blank := text.find(" ", first, start)) >= 0:
        first = blank + 1
    if last < len(text) and (blank := text.rfind(" ", stop, last)) >= 0:
        last = blank
    return first, last


def _united(parts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Parts in order, those that touch or overlap made one."""
    current: tuple[int, int] | None = None
    for part in sorted(parts):
        if current is None or part[0] > current[1] + 1:
            if current is not None:
                yield current
            current = part
        else:
            current = (current[0], max(current[1], part[1]))
    if current is not None:
        yield current
