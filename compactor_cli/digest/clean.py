"""Cleaning: what clients wrap around words, taken off before anything is counted or quoted.

Everything here only removes, except for the command line that stands for a wrapped slash command and for line
breaks in long lines of JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

# What Claude Code writes in the model's name where it did not ask it.
_NOT_SPOKEN = frozenset({"No response requested."})
_CONTINUED = "This session is being continued from a previous conversation"

# A line of JSON longer than this says more than one thing; what it is broken into is about so long.
_LONG_CHARS = 240
_STATEMENT_CHARS = 160


@lru_cache(maxsize=1)
def _ansi() -> re.Pattern[str]:
    return re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])|\x00")


@lru_cache(maxsize=1)
def _window() -> re.Pattern[str]:
    # SWE-agent's file viewer: a head, then every line after its number.
    return re.compile(r"^\[File: [^\n]* \(\d+ lines total\)\]\n(?:\(\d+ more lines above\)\n)?(?=\d+:)", re.MULTILINE)


@lru_cache(maxsize=1)
def _gutter() -> re.Pattern[str]:
    # From the line break on: that is searched for much faster than the beginning of a line.
    return re.compile(r"\n[ \t]*(\d+)(?:→|\t| \| ?)")


def without_block(text: str, tag: str) -> str:
    """``text`` without its ``<tag>…</tag>`` blocks; a block that never ends stays."""
    opening, closing = f"<{tag}>", f"</{tag.split(' ')[0]}>" if " " not in tag else f"</{tag}>"
    if opening not in text:
        return text
    kept: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (stop := text.find(closing, start)) >= 0:
        kept.append(text[at:start])
        at = stop + len(closing)
    kept.append(text[at:])
    return "".join(kept)


def plain(text: str) -> str:
    """Without terminal control sequences, with ``\\n`` line ends."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text or "\x00" in text:
        text = _ansi().sub("", text)
    return text


@lru_cache(maxsize=1)
def _prompt() -> re.Pattern[str]:
    return re.compile(r"\s*\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\nbash-\$\s*\Z")


def without_prompt(text: str) -> str:
    """Without the prompt that SWE-agent's shell puts after every output."""
    return _prompt().sub("", text) if text.rstrip().endswith("\nbash-$") else text


def path_stripper(directory: str) -> Callable[[str], str]:
    """A function that takes the working directory's prefix off every path in a text."""
    if len(directory) < 3:
        return lambda text: text
    if directory[1] == ":":
        return _windows_stripper(re.split(r"[\\/]+", directory))
    prefix = directory + ("\\" if "\\" in directory and "/" not in directory else "/")
    # Not inside a longer path or URL: `https://host/app/x` is no path below `/app`.
    literal = re.escape(prefix)
    pattern = re.compile(rf"{literal}(?<![\w./\\-]{literal})")
    return lambda text: pattern.sub("", text) if prefix in text else text


def _windows_stripper(names: Sequence[str]) -> Callable[[str], str]:
    """As `path_stripper`: tools write either slash, also two of them, and the drive in either case."""
    pattern = re.compile(r"(?<![\w./\\-])" + r"[\\/]+".join(map(re.escape, names)) + r"[\\/]+", re.IGNORECASE)
    last = names[-1]
    return lambda text: pattern.sub("", text) if last in text else text


def without_gutters(text: str, *, surely: bool) -> str:
    """Without numbers in front of lines (``   12→``, ``12<tab>``, ``12 | ``; ``12:`` below the head of a viewed file).

    A tab is a gutter only where numbers follow one another or ``surely`` says so, a bar only where it does: a
    table's first column may be numbers too.
    """
    if " lines total)]" in text and (head := _window().search(text)):
        return text[: head.end()] + re.sub(r"^\d+:", "", text[head.end() :], flags=re.MULTILINE)
    if "→" not in text and "\t" not in text and not (surely and " |" in text):
        return text
    lines = f"\n{text}"
    first = _gutter().search(lines)
    if first is None:
        return text
    if "|" in first.group() and not surely:
        return text
    if "→" not in first.group() and not surely:
        second = _gutter().search(lines, first.end())
        if second is None or int(second[1]) != int(first[1]) + 1:
            return text
    return _gutter().sub("\n", lines)[1:]


def unfolded(text: str) -> str:
    """Long lines of JSON broken between their objects and members, so that a line is a statement.

    Only line breaks are added.
    """
    lines = text.split("\n")
    if max(map(len, lines)) <= _LONG_CHARS:
        return text
    return "\n".join(map(_unfolded_line, lines))


def _unfolded_line(line: str) -> str:
    if len(line) <= _LONG_CHARS or line.lstrip()[:1] not in ("{", "["):
        return line
    lines: list[str] = []
    for piece in _members().split(line):
        if lines and len(lines[-1]) + len(piece) <= _STATEMENT_CHARS and not piece.lstrip().startswith("{"):
            lines[-1] += piece
        else:
            lines.append(piece)
    return "\n".join(lines)


@lru_cache(maxsize=1)
def _members() -> re.Pattern[str]:
    return re.compile(r"(?<=[\[,{])(?=\s*[{\"])")


def spoken_words(text: str) -> str:
    """What the model said; empty for what its client wrote in its name."""
    text = text.strip()
    return "" if text in _NOT_SPOKEN else text


def summary_words(text: str) -> str:
    """Another client's summary without its opening sentence and without the thoughts before it."""
    text = without_block(text, "analysis")
    if text.lstrip().startswith(_CONTINUED):
        text = text.lstrip().partition("\n")[2]
    _, mark, body = text.partition("\nSummary:\n")
    return (body if mark and body.strip() else text).strip()
