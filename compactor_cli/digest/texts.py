"""Pieces of texts: beginnings, ends and sentences, cut only between words, without markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import dropwhile

ELLIPSIS = "…"
GAP = f" {ELLIPSIS} "
# The most characters of one statement that are shown.
MAX_CHARS = 320
# Full-width punctuation, written as escapes since some of it looks like ASCII. These end a sentence without a blank.
FULL_STOPS = "\u3002\uff01\uff1f"
COLONS = (":", "\uff1a")


def _is_dense(char: str) -> bool:
    """Whether a character is taken as a word by itself: Chinese, Japanese, Korean or full-width."""
    return "\u3000" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af" or "\uff00" <= char <= "\uffef"


def _may_cut(text: str, at: int) -> bool:
    """Whether a cut before position ``at`` splits no word: at either end, at a blank, or next to a dense character."""
    if not 0 < at < len(text):
        return True
    return text[at].isspace() or text[at - 1].isspace() or _is_dense(text[at]) or _is_dense(text[at - 1])


def head(text: str, chars: int) -> str:
    """At most the first ``chars`` characters, in whole words; empty if the first word is longer."""
    at = min(max(0, chars), len(text))
    while at > 0 and not _may_cut(text, at):
        at -= 1
    return text[:at].rstrip()


def tail(text: str, chars: int) -> str:
    """At most the last ``chars`` characters, in whole words; empty if the last word is longer."""
    at = max(len(text) - max(0, chars), 0)
    while at < len(text) and not _may_cut(text, at):
        at += 1
    return text[at:].lstrip()


def opening(text: str, chars: int) -> str:
    """The beginning of a text as one line: whole sentences where one ends near ``chars``, else whole words.

    Near is in the second half. A first word that is too long (the path of a picture) is left out; the only word of a
    text may have twice as many characters, and of a longer one nothing is left.
    """
    line = one_line(text)
    if len(line) <= chars:
        return line
    found = (one for one in _SENTENCE_END.finditer(line, 0, chars + 1) if not _is_abbreviated(line, one.start()))
    ends = [one.end() for one in found if _may_cut(line, one.end())]
    ends = [end for end in ends if not _LIST_NUMBER.search(line, 0, end)]
    if ends and ends[-1] >= chars // 2:
        return line[: ends[-1]].rstrip()
    if cut := head(line, chars):
        return f"{cut} {ELLIPSIS}"
    following = line.partition(" ")[2]
    if not following and len(line) <= 2 * chars:
        return line
    rest = following if len(following) <= chars else head(following, chars)
    return f"{ELLIPSIS} {rest}" if rest else ""


# The number of a list entry, which ends no sentence: the `2.` in `Two gauges: 1. north; 2.`.
_LIST_NUMBER = re.compile(r"(?<=[:;.!?] )\d{1,2}\.\s*\Z")
# The characters of one part that `windowed` cuts out around a name.
_WINDOW_CHARS = 110


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
    united: list[tuple[int, int]] = []
    for start, stop in sorted(taken):
        if united and start <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], stop))
        else:
            united.append((start, stop))
    pieces = [text[a:b].strip() for a, b in united]
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


def one_line(text: str) -> str:
    """The text on one line, without the marks of headings, emphasis and list items."""
    return " ".join(filter(None, map(plain_line, text.split("\n")))) if "\n" in text else plain_line(text)


# The first characters of the lines that `_MARKS` can match.
_MARK_STARTS = frozenset("#>-*+•`=")
_MARKS = re.compile(r"^\s*(?:#{1,6}\s+|>\s+|[-*+•]\s+)|^\s*(?:```\w*|---+|===+|\*\*\*+)\s*$")
# Not next to a slash or a word: `src/**/x*` is a pattern of paths.
_BOLD = re.compile(r"(?<![\w/*])\*\*(?=[^\s*])([^*\n]*[^\s*])\*\*(?![\w/*])")
# A link to a file whose target repeats its name, with a line in either: `[tide.py](src/tide.py:12)`.
_FILE_LINK = re.compile(
    r"\[`?([\w./@-]+\.\w+)(?::([\d-]+))?`?\]\((?!https?:)((?:[^()\s]*/)?\1)(?:(?::|#L)(\d+(?:-\d+)?)(?=[:)]))?[^()\s]*\)"
)


def _linked_file(link: re.Match[str]) -> str:
    """The file of a link, with its folder if the link has one that is not the editor's own, and with the line."""
    named, line, target, target_line = link.groups()
    if target.startswith("cci:"):
        return named
    return f"{target}:{number}" if (number := line or target_line) else target


def plain_line(line: str) -> str:
    """A line without markup: heading and list marks, emphasis, fences, rules, table borders and links to files."""
    text = line.strip()
    if text[:1] in _MARK_STARTS:
        text = _MARKS.sub("", text).strip()
    if "**" in text:
        text = _BOLD.sub(lambda bold: bold[0] if is_in_code(text, bold.start()) else bold[1], text).strip()
    if "](" in text:
        text = _FILE_LINK.sub(_linked_file, text)
    if text.startswith("|") and text.endswith("|"):
        # The rule under the head of a table becomes empty.
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        return " | ".join(cell for cell in cells if cell.strip(":-"))
    if text.startswith('"') and (member := _JSON_MEMBER.fullmatch(text)):
        return f"{member[1]}: {member[2] or member[3] or ''}".strip()
    return text


# One line of a JSON object that is written over several lines: `"depth": 4,`.
_JSON_MEMBER = re.compile(r'"([^"]+)": *(?:[{[]|"(.*)"|([^{["].*?)),?')
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s|$)|[" + FULL_STOPS + r"]+[」』”]*")


@lru_cache(maxsize=1 << 10)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text without markup, line by line; tables, and code with the line above it, are left out."""
    found: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            if fenced and found and found[-1].endswith(COLONS):
                found.pop()
        elif not (fenced or line.lstrip().startswith("|")):
            found.extend(_split(plain_line(line)))
    return tuple(found)


def without_end(text: str, is_left_out: Callable[[str], bool]) -> str:
    """A text without the sentences at its end of which ``is_left_out`` is true; empty if it is true of all."""
    stated = list(dropwhile(is_left_out, reversed(sentences(text) or (text,))))
    if not stated:
        return ""
    start = text.rfind(stated[0])
    return text[: start + len(stated[0])] if start >= 0 else text


def _split(line: str) -> list[str]:
    pieces: list[str] = []
    at = 0
    for end in _SENTENCE_END.finditer(line):
        if is_in_code(line, end.start()) or _is_abbreviated(line, end.start()):
            continue
        if end[0].endswith((")", "]", "...", ELLIPSIS)) and line[end.end() + 1 : end.end() + 2].islower():
            continue  # no end of a sentence: "(`0/`, `1/`, ...) which matches"
        if len(line[at : end.end()].strip()) > 2:
            pieces.append(line[at : end.end()].strip())
            at = end.end()
    rest = line[at:].strip()
    return [*pieces, rest] if rest else pieces


def _is_abbreviated(line: str, at: int) -> bool:
    """Whether the full stop at a position belongs to the word before it: `north vs. south`, `one (e.g. CAS-02)`."""
    return _ABBREVIATION.search(line, max(0, at - _MAX_ABBREVIATION_CHARS), at) is not None


_ABBREVIATION, _MAX_ABBREVIATION_CHARS = re.compile(r"\b(?:vs|e\.g|i\.e|cf|approx|incl|resp)\Z"), 8


def is_in_code(line: str, at: int) -> bool:
    """Whether position ``at`` of a line is between backticks: a `?` or a full stop there ends no sentence."""
    return line.count("`", 0, at) % 2 == 1 and "`" in line[at:]


def verbatim(text: str) -> str:
    """A text without blank lines and trailing blanks, its words untouched.

    A list entry (`- `) is put on the line before it, unless that is a heading or code: on a line of its own, it would
    be read as an entry of the template's list. Where it stays on its own line, its mark is changed (see `listed`).
    """
    lines: list[str] = []
    is_code = False
    for line in text.split("\n"):
        if not (plain := line.strip()):
            continue
        is_entry = lines and plain.startswith("- ") and not is_code
        if is_entry and not lines[-1].lstrip().startswith(("#", "```")):
            lines[-1] = f"{lines[-1]} {plain}"
        else:
            lines.append(listed(line.rstrip()))
        is_code ^= plain.startswith("```")
    return "\n".join(lines)


def listed(line: str) -> str:
    """A line with `• ` instead of a leading `- `, which would be read as an entry of the template's list."""
    body = line.lstrip()
    return f"{line[: len(line) - len(body)]}• {body[2:]}" if body.startswith("- ") else line
