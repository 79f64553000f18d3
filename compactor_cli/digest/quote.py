"""Quoting: verbatim pieces of texts, cut only where a cut makes no new word, and what they cost in tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from compactor_cli.model.summary import Item

ELLIPSIS = "…"
# Full-width punctuation, written as escapes since some of it looks like ASCII. These end a sentence without a blank.
FULL_STOPS = "\u3002\uff01\uff1f"
QUESTION_MARKS = ("?", "\uff1f")
COLONS = (":", "\uff1a")
# No text of a budget's tokens is longer: 97 % of English and code is below 6 characters a token, and a text
# that is not is cut after counting.
_MOST_CHARS_PER_TOKEN = 8
_LIST_SPREAD_CHARS = 400


@dataclass(slots=True, kw_only=True)
class TokenCache:
    """Tokens of texts and items as they will be written, each counted once."""

    count: Callable[[str], int]
    known: dict[str, int] = field(default_factory=dict)

    def text(self, text: str) -> int:
        """Tokens of a text."""
        tokens = self.known.get(text)
        if tokens is None:
            tokens = self.known[text] = self.count(text)
        return tokens

    def item(self, item: Item) -> int:
        """Tokens of an item with its list mark, line break and the records after it."""
        indent = "  " * item.depth
        body = item.text.replace("\n", f"\n{indent}  ")
        return self.text(f"\n{indent}- {body}{tag(item.records)}")


def tag(records: Sequence[int]) -> str:
    """The records of an item about as a template writes them."""
    if not records:
        return ""
    first, last = records[0] + 1, records[-1] + 1
    return f" [{first}]" if first == last else f" [{first}-{last}]"


def records_of(numbers: Iterable[int]) -> tuple[int, ...]:
    """Record indices as an item wants them: ascending, each once; negative ones (carried over) left out."""
    return tuple(sorted({number for number in numbers if number >= 0}))


def _is_dense(char: str) -> bool:
    return "\u3000" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af" or "\uff00" <= char <= "\uffef"


def _may_cut(text: str, at: int) -> bool:
    """Whether a cut before this character leaves whole words: at a blank, or next to a character that is a word."""
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


def clipped(text: str, tokens: int, token_cache: TokenCache) -> str:
    """The text if it fits, else its first three quarters and last quarter around an ellipsis; at most ``tokens``."""
    if len(text) <= tokens * _MOST_CHARS_PER_TOKEN and token_cache.text(text) <= tokens:
        return text
    sample = text[: max(1, tokens * _MOST_CHARS_PER_TOKEN)]
    chars = int(len(sample) / max(1, token_cache.text(sample)) * (tokens - 2))
    while chars > 0:
        cut = _both_ends(text, chars)
        if not cut or token_cache.text(cut) <= tokens:
            return cut
        chars = int(chars * 0.9)
    return ""


def _both_ends(text: str, chars: int) -> str:
    first, last = head(text, chars * 3 // 4), tail(text, chars // 4)
    if chars < 60 or not last:
        first, last = head(text, chars), ""
    joint = f"\n{ELLIPSIS} " if "\n" in text and chars > _LIST_SPREAD_CHARS else f" {ELLIPSIS} "
    return f"{first}{joint}{last}".strip() if first or last else ""


def opening(text: str, chars: int) -> str:
    """The beginning of a text as one line: whole sentences where one ends within ``chars``, else whole words."""
    line = one_line(text)
    if len(line) <= chars:
        return line
    ends = [end for found in _sentence_end().finditer(line, 0, chars + 1) if _may_cut(line, end := found.end())]
    if ends and ends[-1] >= chars // 2:
        return line[: ends[-1]].rstrip()
    cut = head(line, chars)
    return f"{cut} {ELLIPSIS}" if cut else ""


def one_line(text: str) -> str:
    """The text on one line, without the marks of headings, emphasis and list items."""
    lines = (plain_line(line) for line in text.split("\n"))
    return " ".join(line for line in lines if line)


@cache
def _marks() -> re.Pattern[str]:
    return re.compile(r"^\s*(?:#{1,6}\s+|>\s+|[-*+•]\s+(?:\[[ xX]\]\s+)?)|^\s*(?:```\w*|---+|===+|\*\*\*+)\s*$")


@cache
def _bold() -> re.Pattern[str]:
    # Not next to a slash or a word: `src/**/x*` is a pattern of paths.
    return re.compile(r"(?<![\w/*])\*\*(?=[^\s*])([^*\n]*[^\s*])\*\*(?![\w/*])")


def plain_line(line: str) -> str:
    """A line without markup: heading and list marks, emphasis, fences, rules and table borders."""
    text = _bold().sub(r"\1", _marks().sub("", line)).strip()
    if text.startswith("|") and text.endswith("|"):
        return _row(text)
    return text


def _row(line: str) -> str:
    """The cells of a table's row; nothing for the rule under its head."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    return " · ".join(cell for cell in cells if cell.strip(":-"))


@cache
def _sentence_end() -> re.Pattern[str]:
    return re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s|$)|[" + FULL_STOPS + r"]+[」』”]*")


def sentences(text: str) -> list[str]:
    """The sentences of a text, line by line, without markup; lines of code fences and tables left out."""
    found: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith("|"):
            found.extend(_split(plain_line(line)))
    return found


def _split(line: str) -> list[str]:
    pieces: list[str] = []
    at = 0
    for end in _sentence_end().finditer(line):
        if len(line[at : end.end()].strip()) > 2:
            pieces.append(line[at : end.end()].strip())
            at = end.end()
    rest = line[at:].strip()
    return [*pieces, rest] if rest else pieces


def tidy(text: str) -> str:
    """A text of several lines without blank lines and trailing blanks."""
    return "\n".join(listed(line.rstrip()) for line in text.split("\n") if line.strip())


def verbatim(text: str) -> str:
    """A text without blank lines and trailing blanks, its words untouched.

    A list item of its own stands after the line before it: on a line, it would be taken for one of a template's.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        if lines and line.lstrip().startswith("- "):
            lines[-1] = f"{lines[-1]} {line.strip()}"
        else:
            lines.append(line.rstrip())
    return "\n".join(lines)


def listed(line: str) -> str:
    """A line whose own list mark cannot be taken for that of a template's list."""
    body = line.lstrip()
    return f"{line[: len(line) - len(body)]}• {body[2:]}" if body.startswith("- ") else line


def chosen(offers: Iterable[Item], budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """The items that fit when taken in this order; one that does not fit is passed over."""
    left = budget_tokens
    taken: list[Item] = []
    for item in offers:
        if left < 6:
            break
        cost = token_cache.item(item)
        if cost <= left:
            taken.append(item)
            left -= cost
    return tuple(taken)
