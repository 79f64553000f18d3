"""Statements: what was said, and what tools answered, cut into pieces that read alone and can be quoted verbatim."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from string import ascii_letters, digits
from typing import NamedTuple

from compactor_cli.digest.quote import plain_line

MAX_CHARS = 320
_WINDOW_CHARS = 110
GAP = " … "
_MIN_CHARS = 6
_MAX_LEAD_CHARS = 160
# A word of this many characters is data, and so are this many marks in a row.
_RUN_CHARS = 80
_MAX_MARKS = 12
_LETTERS = (ascii_letters + digits).encode()


class StatementForm(StrEnum):
    """What a statement is."""

    SENTENCE = "sentence"
    ITEM = "item"  # an entry of a list
    ROW = "row"  # of a table
    CODE = "code"  # a line inside a fence
    OUTPUT = "output"  # a line of a tool's answer


class Statement(NamedTuple):
    """A verbatim piece of an event; a tuple, since a great many are made.

    ``event``: position among the events, -1 for one remembered from an earlier round. ``place``: its number in the
    event. ``lead``: the heading and the line with a colon that it stands under, a line each. ``label``: the file,
    command or tool of an output. ``at_tokens``: where its event stands in the counter table. ``weight``: what its
    place makes of its worth.
    """

    text: str
    event: int
    place: int
    form: StatementForm = StatementForm.SENTENCE
    lead: str = ""
    label: str = ""
    record: int = -1
    at_tokens: int = 0
    weight: float = 1.0


@cache
def _item() -> re.Pattern[str]:
    return re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)]|\[[ xX]\])\s+\S")


@cache
def _number() -> re.Pattern[str]:
    return re.compile(r"(\d{1,3}[.)])\s+")


@cache
def _sentence_end() -> re.Pattern[str]:
    # A full stop is an end before a blank and what can open a sentence; full-width stops always are.
    return re.compile(r"(?<=[.!?])[\"')*_`]*\s+(?=[A-Z\"'(*_`\[#])|(?<=[。！？；])")


def statements_of(text: str) -> Iterator[tuple[str, StatementForm, str]]:
    """The statements of a spoken text in order, with their form and what they stand under.

    Headings, and lines that introduce a list, are no statements of their own but the lead of what follows.
    """
    fenced, heading, colon = False, "", ""
    for raw in text.split("\n"):
        line = raw.strip()
        if line.startswith("```"):
            fenced = not fenced
        elif not line:
            continue
        elif fenced:
            yield raw.rstrip(), StatementForm.CODE, _lead(heading, colon)
        elif line.startswith("#") or (line.startswith("**") and line.endswith(("**", "**:", ":**"))):
            heading, colon = plain_line(line), ""
        elif line.startswith("|"):
            if row := plain_line(line):
                yield row, StatementForm.ROW, _lead(heading, colon)
        elif _item().match(raw):
            number = _number().match(line)
            pieces = _pieces(plain_line(line[number.end() :] if number else line))
            # An entry keeps its number: what is left out of a list can then be seen.
            named = [f"{number[1]} {pieces[0]}", *pieces[1:]] if number and pieces else pieces
            yield from ((piece, StatementForm.ITEM, _lead(heading, colon)) for piece in named)
        elif (shown := plain_line(line)).endswith((":", "：")) and len(shown) <= _MAX_LEAD_CHARS:
            colon = shown
        else:
            colon = ""  # it introduces what stands next only
            yield from ((piece, StatementForm.SENTENCE, heading) for piece in _pieces(shown))


def _lead(heading: str, colon: str) -> str:
    return f"{heading}\n{colon}" if heading and colon else heading or colon


def _pieces(line: str) -> list[str]:
    if len(line) <= 100:
        return [line] if line else []
    return [piece.strip() for piece in _sentence_end().split(line) if piece and piece.strip()]


@cache
def _narration() -> re.Pattern[str]:
    # What the agent says it is about to do: the calls that follow say it better.
    lead = (
        r"(?:(?:ok(?:ay)?|good|great|perfect|now|so|alright|excellent|first|next|then|also|done|right|sure)[,.!:]?\s+)*"
    )
    return re.compile(
        rf"^{lead}(?:let me|let'?s|let us|i'?ll|i will|i'?m going to|i need to|we need to|i should|i want to|i can see"
        r"|i see|time to|going to|updat(?:e|ing)|add(?:ing)?|check(?:ing)?|run(?:ning)?|look(?:ing)?|read(?:ing)?"
        r"|fix(?:ing)?|the (?:next|last|remaining)|one (?:more|remaining|last))"
        r"\b[^.!?]{0,140}[.:!]?(?: let me[^.]*[.:]?)?$"
        r"|^(?:让我|我来|现在我|接下来我|首先,?我)|^(?:では|次に)",
        re.IGNORECASE,
    )


@cache
def _courtesy() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:feel free|let me know|(?:how|what) (?:can|may|else can) I (?:help|assist|do)|anything else"
        r"|you'?re welcome|happy to help|glad to|here to help|thank you for|thanks for|I apologi[sz]e"
        r"|have a (?:great|nice|good|wonderful)|I understand your|please (?:wait|hold|bear))"
        r"|^(?:(?:ah|oh|yes|sorry|you'?re (?:absolutely |completely |totally |so )?right|(?:good|great|nice|excellent)"
        r"(?: catch| point| question| idea| find| thinking)?|perfect|sure|of course|got it|understood|absolutely"
        r"|makes sense|no problem)\b[\s,.!]*)+$"
        r"|请随时|很高兴|还有什么|不客气",
        re.IGNORECASE,
    )


def is_narration(text: str) -> bool:
    """Whether a sentence only announces the next call, or is a courtesy."""
    return len(text) <= 200 and (_narration().match(text) is not None or _courtesy().search(text) is not None)


@cache
def _noise() -> re.Pattern[str]:
    # A run of 80 and more without a blank that is neither a path nor an address: encoded or minified data.
    return re.compile(rf"[A-Za-z0-9+/=_-]{{{_RUN_CHARS},}}|(?:\\x[0-9a-f]{{2}}){{8}}|(?:[^\s\w]\s*){{{_MAX_MARKS}}}")


def is_noise(text: str) -> bool:
    """Whether a text carries no information to a reader: brackets, rules, encoded or minified data."""
    if len(text) < _MIN_CHARS:
        return True
    letters = _letters(text)
    if letters * 5 < len(text) * 2 or not any(map(str.isalpha, text)):
        return True
    if len(text) < _RUN_CHARS and len(text) - letters - text.count(" ") < _MAX_MARKS and "\\x" not in text:
        return False
    return _noise().search(text) is not None and "://" not in text


def _letters(text: str) -> int:
    """How many letters and digits a text has."""
    if text.isascii():
        return len(text) - len(text.encode().translate(None, _LETTERS))
    return sum(map(str.isalnum, text))


@cache
def _passed_test() -> re.Pattern[str]:
    # go, cargo, pytest, unittest, TAP, and the check marks of mocha, jest and vitest.
    return re.compile(
        r"^\s*(?:--- PASS: |=== RUN |test .* \.\.\. ok$|ok \d+ |[✓✔√] |PASS(?:ED)? )"
        r"|\bPASSED(?: +\[ *\d+%\])?$|\.\.\. ok$"
    )


def is_passed_test(text: str) -> bool:
    """Whether a line of output is the entry of one test that passed, or that begins."""
    return _passed_test().search(text) is not None


@cache
def _import() -> re.Pattern[str]:
    return re.compile(
        r"(?:import\b|from \S+ import\b|#include\b|(?:pub )?use [\w:]|using [\w.]+;|export \*|const .* = require\()"
    )


@cache
def _signature() -> re.Pattern[str]:
    return re.compile(
        r"^(?:export |default |public |private |protected |static |async |pub |final |abstract |@)*"
        r"(?:def|class|func|fn|function|interface|type|struct|enum|trait|impl|const|CREATE|ALTER)\b"
        r"|^(?:#|//|--|\"\"\"|\*) "
    )


def is_signature(text: str) -> bool:
    """Whether a line of a file says what something is: a definition, or a comment."""
    return _signature().match(text) is not None


def is_scrap(text: str) -> bool:
    """Whether a line of code or output reads as a piece of something larger, or as what every file begins with."""
    if _import().match(text):
        return True
    return (
        text[0] in ")]},.;:&|+*/=<?" or text[-1] in "([{,&|+=\\<" or text.startswith(("and ", "or ", "else", "return "))
    )


def windowed(text: str, spots: Sequence[tuple[int, int]], max_chars: int = MAX_CHARS) -> str:
    """The parts of a long text around ``spots`` (start, stop), most important first, cut at blanks, joined by ``GAP``.

    Guarantee: every part is verbatim, and the whole is no longer than ``max_chars`` plus the gaps.
    """
    if len(text) <= max_chars:
        return text
    taken: list[tuple[int, int]] = []
    left = max_chars
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
