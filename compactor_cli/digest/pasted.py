"""Pasted text: data and logs in a message of the user, of which a quotation keeps the errors."""

from __future__ import annotations

import re
from itertools import groupby

from compactor_cli.digest.error_lines import ERROR_PATTERN
from compactor_cli.digest.statements import ELLIPSIS
from compactor_cli.model.patterns import pattern

# A line with this many names of members is data, and so are this many lines of one each, or of brackets, in a row.
_MEMBERS_OF_DATA, _LINES_OF_DATA = 3, 6
_DATA_LINE = pattern(r'\s*(?:"[^"]*"\s*(?::|,?$)|[\[\]{}]+,?$)')
# What somebody says before an object, in the line in which it begins.
_BEFORE_DATA = pattern(r'(\w[^{}"]*\s[^{}"]*?)\s*\{"')
# A line that is nothing but where a picture lies, as a terminal writes one that was dropped on it.
_PICTURE = pattern(r"\W*(?:~|[A-Z]:)?[/\\].*\.(?:png|jpe?g|gif|webp|bmp|heic)\W*", re.IGNORECASE)
# From this length and number of lines on, a message that does not list requests was pasted for the most part.
_PASTED_CHARS, _PASTED_LINES, _MIN_STRUCTURE = 1_500, 12, 6
_STRUCTURE = pattern(r"^[ \t]*(?:#{1,6} |[-*•] |\d+[.)] )", re.MULTILINE)
# What is quoted of it: how it begins, the first errors, and how it ends, if that is a sentence.
_OPENING_CHARS, _MAX_ERRORS, _ENDING_CHARS = 400, 3, 300


def own_words(text: str, *, is_first: bool = False) -> str:
    """A long message as it begins and ends, with the first errors in it; what stands between was pasted.

    Guarantee: a plan (headings, lists), a message of less than 1,500 characters or 12 lines, and the first one stay as
    they are.
    """
    is_short = len(text) < _PASTED_CHARS or text.count("\n") < _PASTED_LINES
    if is_short or is_first or len(_STRUCTURE.findall(text)) >= _MIN_STRUCTURE:
        return text
    text = _PASSING.sub("", without_data(text)).strip() or text
    lines = [line for line in text.split("\n") if line.strip()]
    chars, shown, errors = 0, list[str](), 0
    for line in lines[:-1]:
        is_error = errors < _MAX_ERRORS and line not in shown and _is_error(line)
        if chars < _OPENING_CHARS or is_error:
            shown.append(line if len(line) <= _OPENING_CHARS else f"{line[:_OPENING_CHARS]} {ELLIPSIS}")
        elif not shown[-1].endswith(ELLIPSIS):
            shown[-1] += f" {ELLIPSIS}"
        errors += is_error
        chars += len(line)
    is_sentence = len(lines[-1]) <= _ENDING_CHARS and _SENTENCE.match(lines[-1])
    return "\n".join([*shown, lines[-1]] if is_sentence or not shown else shown)


def without_screens(text: str) -> str:
    """A text, of whose paragraphs those that were copied from a screen go as far as the first line of it."""
    return "\n\n".join(map(_without_screen, text.split("\n\n")))


def _without_screen(paragraph: str) -> str:
    lines = paragraph.split("\n")
    width = max(map(len, lines))
    filled = [place for place, line in enumerate(lines) if len(line) == width and line.endswith(" ")]
    is_screen = len(filled) >= _LINES_OF_SCREEN and 2 * len(filled) >= len(lines)
    return " ".join([*map(str.strip, lines[: filled[0] + 1]), ELLIPSIS]) if is_screen else paragraph


# So many lines that are filled up with blanks to one width are no words that somebody types.
_LINES_OF_SCREEN = 4


def is_pasted(text: str) -> bool:
    """Whether a text of several lines is an output that shows an error.

    It neither begins nor ends with a line that somebody says.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    is_output = len(lines) >= _LINES_OF_OUTPUT and not any(map(_SPEECH.search, (lines[0], lines[-1])))
    return is_output and any(map(_is_error, lines))


_LINES_OF_OUTPUT = 3
_SPEECH = pattern(
    r"[?？]\W*$|\b(?:I|we|you|let'?s|can|please|this|that|it|why|how|what|when|but|yes|ok|also)\b|[^\x00-\x7f]{4}",
    re.IGNORECASE,
)


# What a runner of tests writes of those that run and pass.
_PASSING = pattern(r"^(?:=== (?:RUN|PAUSE|CONT|NAME)\b|\s*--- PASS:|.* PASSED\b).*\n", re.MULTILINE)
_SENTENCE = pattern(r"\w[\w',]*(?: [\w`'\",/.-]+){2,}.*[.?!\w]\s*$")


# How somebody begins who tells an agent what it is, or what it is given, before the request; and what heads that.
_PREFACE = pattern(
    r"\s*(?:you are\b|you're an?\b|act as\b|your (?:role|job) is\b|we(?:'re| are) (?:currently )?(?:solving|working)\b"
    r"|I(?:'ve| have) uploaded\b|<\w+>\n)[^.!?]*(?:[.!?:]+(?=\s)|\n)",
    re.IGNORECASE,
)
_HEADS_REQUEST = pattern(
    r"^\W*(?:[\w' ]{0,40}\b)?(?:task|issue|problem|request|question|query)(?:[ _](?:text|description|statement))?\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_PREFACE_CHARS = 1_500


def without_preface(text: str) -> str:
    """A request without what it says before that of the agent and its role; the text where nothing else is in it."""
    if not _PREFACE.match(text):
        return text
    headed = _HEADS_REQUEST.search(text, 0, _MAX_PREFACE_CHARS)
    rest = text[headed.end() :] if headed else text
    while found := _PREFACE.match(rest):
        rest = rest[found.end() :]
    return rest.strip() or text


def without_data(text: str) -> str:
    """A text with an ellipsis for the lines of data that were pasted into it, and without paths of pictures."""
    lines: list[str] = []
    for may_be, found in groupby(text.split("\n"), key=lambda line: _DATA_LINE.match(line) is not None):
        run = [line for line in found if not _PICTURE.fullmatch(line)]
        is_data = may_be and len(run) >= _LINES_OF_DATA
        for line in run:
            is_plain = line.count('":') < _MEMBERS_OF_DATA
            opens = None if is_plain else _BEFORE_DATA.match(line)
            if not is_data and (is_plain or opens):
                lines.append(f"{opens[1].rstrip()} {ELLIPSIS}" if opens else line)
            elif lines and not lines[-1].endswith(ELLIPSIS):
                lines[-1] += f" {ELLIPSIS}"
    return "\n".join(lines)


def _is_error(line: str) -> bool:
    """Whether a line says in what would be quoted of it that something went wrong."""
    return ERROR_PATTERN.search(line[:_OPENING_CHARS]) is not None
