"""Cleaning: texts without what clients and tools put around them and between their lines."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress

from compactor_cli.formats.client_signs import (
    ABOUT_EDIT,
    AROUND_SPOKEN,
    ASKS_FOR_TEXT,
    COMMAND_REPORT,
    CONTINUED,
    FILE_FRAME,
    LEDGER,
    LEDGER_ENTRIES,
    NOT_SPOKEN,
    OUTPUT_FRAME,
    OUTPUT_HEAD,
    SPOKEN_LABEL,
)

# A line of JSON longer than this says more than one thing; what it is broken into is about so long.
_LONG_CHARS = 240
_STATEMENT_CHARS = 160
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])|\x00")
# SWE-agent's file viewer: a head, then every line after its number.
_WINDOW = re.compile(r"^\[File: [^\n]* \(\d+ lines total\)\]\n(?:\(\d+ more lines above\)\n)?(?=\d+:)", re.MULTILINE)
# From the line break on: that is searched for much faster than the beginning of a line.
_GUTTER = re.compile(r"\n[ \t]*(\d+)(?:→|\t| \| ?)")
_NUMBERED = re.compile(r"\d+[:.](?: [^\n]*)?(?:\n\d+[:.](?: [^\n]*)?)*\n*\Z")


def without_block(text: str, tag: str) -> str:
    """``text`` without its ``<tag>…</tag>`` blocks; a block that never ends stays."""
    opening, closing = f"<{tag}>", f"</{tag}>"
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
        text = _ANSI.sub("", text)
    return text


def straightened(text: str) -> str:
    """With the apostrophe of a keyboard between letters (`don't`), as the words that are looked for are written."""
    return _APOSTROPHE.sub("'", text) if "\u2019" in text else text


_APOSTROPHE = re.compile("(?<=[A-Za-z])\u2019(?=[A-Za-z])")


_PROMPT = re.compile(r"\s*(?:\(Open file: [^\n]*\)\n)?\(Current directory: [^\n]*\)(?:\nbash-\$)?\s*\Z")


def without_prompt(text: str) -> str:
    """Without the frame of an output: a prompt after it, what an editor says of an edit, tags, how it was run."""
    text = COMMAND_REPORT.sub(r"\1\2\3", text).lstrip("\n") if text.startswith("Command: ") else text
    text = OUTPUT_FRAME.sub(r"\1", text) if text.endswith("</output>") else text
    text = FILE_FRAME.sub(r"\1", text) if text.startswith("<path>") else text
    text = OUTPUT_HEAD.sub(r"\1", text) if text.startswith(("Chunk ID: ", "Wall time: ", "Command: ")) else text
    text = ABOUT_EDIT.sub("", text) if " lines total)]" in text else text
    return _PROMPT.sub("", text) if "(Current directory: " in text[-_PROMPT_CHARS:] else text


_PROMPT_CHARS = 400


def without_gutters(text: str, *, surely: bool) -> str:
    """Without numbers in front of lines (``   12→``, ``12<tab>``, ``12 | ``; ``12:`` below the head of a viewed file).

    All lines of a file that was ``surely`` read may begin with ``12:`` or ``12.``. A tab is a gutter only where numbers
    follow one another or ``surely`` says so, a bar only where it does: a table's first column may be numbers too.
    """
    if " lines total)]" in text and (head := _WINDOW.search(text)):
        return text[: head.end()] + re.sub(r"^\d+:", "", text[head.end() :], flags=re.MULTILINE)
    if surely and _NUMBERED.match(text):
        return re.sub(r"^\d+[:.] ?", "", text, flags=re.MULTILINE)
    if "→" not in text and "\t" not in text and not (surely and " |" in text):
        return text
    lines = f"\n{text}"
    first = _GUTTER.search(lines)
    if first is None:
        return text
    if "→" not in first[0] and not surely:
        second = _GUTTER.search(lines, first.end())
        if "|" in first[0] or second is None or int(second[1]) != int(first[1]) + 1:
            return text
    return _GUTTER.sub("\n", lines)[1:]


def unfolded(text: str) -> str:
    """Long lines of JSON broken between their objects and members, so that a line is a statement.

    Only line breaks are added.
    """
    lines = text.split("\n")
    if max(map(len, lines)) <= _LONG_CHARS:
        return text
    return "\n".join([line if len(line) <= _LONG_CHARS else _unfolded_line(line) for line in lines])


def _unfolded_line(line: str) -> str:
    if line.lstrip()[:1] not in ("{", "["):
        return line
    pieces = _MEMBERS.split(line)
    ends = _object_ends(pieces)
    lines: list[str] = []
    at = 0
    while at < len(pieces):
        piece = "".join(pieces[at : ends.get(at, at) + 1])
        if lines and len(lines[-1]) + len(piece) <= _STATEMENT_CHARS and not piece.lstrip().startswith("{"):
            lines[-1] += piece
        else:
            lines.append(piece)
        at = ends.get(at, at) + 1
    return "\n".join(lines)


def _object_ends(pieces: Sequence[str]) -> dict[int, int]:
    """Of each object that is no longer than a line may be, the positions of its first piece and of its last."""
    ends: dict[int, int] = {}
    begun: list[tuple[int, int, int]] = []  # position, depth and characters before it, of objects that go on
    depth = chars = 0
    for at, piece in enumerate(pieces):
        if piece.lstrip().startswith("{"):
            begun.append((at, depth, chars))
        marks = _STRING.sub("", piece)
        depth += marks.count("{") + marks.count("[") - marks.count("}") - marks.count("]")
        chars += len(piece)
        while begun and depth <= begun[-1][1]:
            first, _, before = begun.pop()
            if chars - before <= _LONG_CHARS:
                ends[first] = at
    return ends


_MEMBERS = re.compile(r"(?<=[\[,{])(?=\s*[{\"])")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def spoken_words(text: str) -> str:
    """The words of the model, an object with one text as that text; empty for what its client wrote in its name."""
    text = SPOKEN_LABEL.sub("", text.strip())
    text = AROUND_SPOKEN.sub("", text).strip() if any(map(text.__contains__, _AROUND_PARTS)) else text
    if ledger := LEDGER.match(text):
        return _ledger_words(ledger[1]) or text
    if text.startswith("{") and text.endswith("}"):
        with suppress(ValueError):
            value = json.loads(text)
            values = list(value.values()) if isinstance(value, dict) else []
            text = values[0].strip() if len(values) == 1 and isinstance(values[0], str) else text
    return "" if NOT_SPOKEN.match(text) else text


_AROUND_PARTS = ("Warning: ", "!#!#", "Next speaker", "No agent selected", "following team:", "following metadata was")


def _ledger_words(text: str) -> str:
    """What is missing, what went in circles, and what is to be done, of a ledger; empty for any other object."""
    with suppress(ValueError, AttributeError):
        entries = json.loads(text)
        missing, circles, asked = (entries[key] for key in LEDGER_ENTRIES)
        stated = (missing["reason"], circles["reason"] if circles["answer"] is True else "", asked["answer"])
        return "\n\n".join(filter(None, (str(one).strip() for one in stated)))
    return ""


def summary_words(text: str) -> str:
    """Another client's summary without its opening sentence and without the thoughts before it."""
    text = without_block(text, "analysis")
    if text.lstrip().startswith(CONTINUED):
        text = text.lstrip().partition("\n")[2]
    _, mark, body = text.partition("\nSummary:\n")
    return ASKS_FOR_TEXT.sub("", body if mark and body.strip() else text).strip()


def without_removed(text: str) -> str:
    """Of a patch the lines as they are then, of differences those that are added; any other text as it is.

    What differences show around a change was there before and is none of it.
    """
    patch = text.partition("*** Begin Patch\n")[2]
    if patch:
        return "\n".join(_as_then(line) for line in patch.split("\n") if not line.startswith(("-", "@@")))
    if "@@ -" not in text:
        return text
    found: list[str] = []
    is_hunk = False
    for line in text.split("\n"):
        is_hunk = line.startswith("@@ -") or (is_hunk and line[:1] in _SIGNS and not line.startswith("+++ "))
        if not is_hunk:
            found.append(line)
        elif line.startswith("+"):
            found.append(line[1:])
    return "\n".join(found)


# What a line of differences begins with; an empty one may have lost its blank.
_SIGNS = ("+", "-", " ", "\\", "")


def _as_then(line: str) -> str:
    return line[1:] if line[:1] in ("+", " ") else line
