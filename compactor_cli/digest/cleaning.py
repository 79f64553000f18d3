"""Cleaning: texts without what clients and tools add around them and between their lines."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress

from compactor_cli.digest.texts import ELLIPSIS
from compactor_cli.formats.client_signs import (
    ABOUT_EDIT,
    AROUND_SPOKEN,
    ASKS_FOR_TEXT,
    COMMAND_REPORT,
    CONTINUED,
    CUT_LINES,
    CUT_LINES_SIGN,
    FILE_FRAME,
    LEDGER,
    LEDGER_ENTRIES,
    NOT_SPOKEN,
    OUTPUT_FRAME,
    OUTPUT_HEAD,
    SHORT_REPORT,
    SPOKEN_LABEL,
    STEP_HEAD,
    STEP_HEADS,
    STEP_REMARKS,
    agents_status,
)
from compactor_cli.formats.contents import json_value, result_text
from compactor_cli.formats.script_calls import script_output
from compactor_cli.model.patterns import pattern

# A longer line of JSON is broken, since it states more than one thing.
_LONG_CHARS = 240
_STATEMENT_CHARS = 160  # the members of such a line are joined up to this length
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])|\x00")
# The head of a file viewer, after which every line begins with its number:
# `[File: /srv/tides.py (80 lines total)]`, `(40 more lines above)`.
_WINDOW = re.compile(r"^\[File: [^\n]* \(\d+ lines total\)\]\n(?:\(\d+ more lines above\)\n)?(?=\d+:)", re.MULTILINE)
# A line's number, with the line break before it, since searching for that is much faster than for ``^``: `   12→`.
_GUTTER = re.compile(r"\n[ \t]*(\d+)(?:→|\t| \| ?)")
# A whole text of lines that begin with `12:` or `12.`.
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
    """``text`` without terminal control sequences, and with every line ended by ``\\n``."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text or "\x00" in text:
        text = _ANSI.sub("", text)
    return text


def straightened(text: str) -> str:
    """``text`` with straight apostrophes between letters (`don't`), as the patterns of the package expect them."""
    return _APOSTROPHE.sub("'", text) if "\u2019" in text else text


_APOSTROPHE = re.compile("(?<=[A-Za-z])\u2019(?=[A-Za-z])")


_PROMPT = re.compile(r"\s*(?:\(Open file: [^\n]*\)\n)?\(Current directory: [^\n]*\)(?:\nbash-\$)?\s*\Z")


def without_prompt(text: str) -> str:
    """``text`` without the frame of a tool's output: how it was run, tags, an editor's remarks, a prompt at its end."""
    text = COMMAND_REPORT.sub(r"\1\2\3", text).lstrip("\n") if text.startswith("Command: ") else text
    text = SHORT_REPORT.sub(r"\1\2\3", text).lstrip("\n") if text.startswith("Output: ") else text
    text = OUTPUT_FRAME.sub(r"\1", text) if text.endswith("</output>") else text
    text = FILE_FRAME.sub(r"\1", text) if text.startswith("<path>") else text
    text = OUTPUT_HEAD.sub(r"\1", text) if text.startswith(("Chunk ID: ", "Wall time: ", "Command: ")) else text
    text = agents_status(text) if text.startswith('{"status":') else text
    text = script_output(text) if text.startswith("Script ") else text
    text = _unblocked(text) if text.startswith("[{") else text
    text = STEP_REMARKS.sub("", STEP_HEAD.sub(r"\1\2", text)) if text.startswith(STEP_HEADS) else text
    text = ABOUT_EDIT.sub("", text) if " lines total)]" in text else text
    # What stands before and after it are parts of two lines.
    text = CUT_LINES.sub(f" {ELLIPSIS}\n{ELLIPSIS} ", text) if CUT_LINES_SIGN in text else text
    return _PROMPT.sub("", text) if "(Current directory: " in text[-_PROMPT_CHARS:] else text


_PROMPT_CHARS = 400


def _unblocked(text: str) -> str:
    """The texts of a JSON array of content blocks, as servers answer and some clients print it; other text as it is."""
    blocks = json_value(text) if '"text":' in text else None
    if not isinstance(blocks, list) or not all(isinstance(one, dict) and "type" in one for one in blocks):
        return text
    return result_text(blocks) if any(one["type"] == "text" for one in blocks) else text


def without_gutters(text: str, *, surely: bool) -> str:
    """``text`` without the line numbers that a viewer puts before lines; ``surely`` if it is the content of a file.

    ``   12→`` is always taken off, and ``12:`` below the head of a viewed file. ``12<tab>`` is taken off if ``surely``
    or if the first two numbers are consecutive; ``12 | `` only if ``surely``, and so are ``12:`` and ``12.`` if all
    lines begin with them. The caution is for tables whose first column holds numbers.
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
    """``text`` with long lines of JSON broken between objects and members, so that each line is one statement.

    Guarantee: only line breaks are added.
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
    """The positions of the first and the last piece of each object that fits on a line."""
    ends: dict[int, int] = {}
    begun: list[tuple[int, int, int]] = []  # objects still open: position, depth and characters before each
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


# The empty place before each value or member, at which a line may be broken.
_MEMBERS = re.compile(r"(?<=[\[,])(?=\s*[{\"])|(?<=\{)(?=\s*\")")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def spoken_words(text: str) -> str:
    """The model's own words in its message; empty if the client wrote the message in its name.

    A JSON object whose only value is a text becomes that text.
    """
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


_AROUND_PARTS = (
    "Warning: ",
    "!#!#",
    "Next speaker",
    "No agent selected",
    "following team:",
    "following metadata was",
    "\n::",
)


def _ledger_words(text: str) -> str:
    """A ledger's reasons (what is missing, what went in circles) and its next instruction; empty for other JSON."""
    with suppress(ValueError, AttributeError):
        entries = json.loads(text)
        missing, circles, asked = (entries[key] for key in LEDGER_ENTRIES)
        stated = (missing["reason"], circles["reason"] if circles["answer"] is True else "", asked["answer"])
        return "\n\n".join(filter(None, (str(one).strip() for one in stated)))
    return ""


def summary_words(text: str) -> str:
    """A client's summary without its opening sentence, the thoughts before it and instructions that it quotes."""
    text = without_block(text, "analysis")
    if text.lstrip().startswith(CONTINUED):
        text = text.lstrip().partition("\n")[2]
    _, mark, body = text.partition("\nSummary:\n")
    return ASKS_FOR_TEXT.sub("", body if mark and body.strip() else text).strip()


def without_removed(text: str) -> str:
    """A patch with its lines as they are afterwards, and a diff with its added lines only; other texts unchanged.

    The context lines of a diff are dropped too, since the change did not write them.
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


def without_hunks(text: str) -> str:
    """A text with an ellipsis for each hunk of a long diff in it; the lines that name the files stay, each file once.

    A hunk ends after the lines that its header counts: a list that follows may begin with the same signs.
    """
    if "@@ -" not in text:
        return text
    found: list[str] = []
    old = new = hidden = 0
    for line in text.split("\n"):
        if header := _HUNK.match(line):
            old, new = int(header[1] or 1), int(header[2] or 1)
            if found[-2:-1] == [ELLIPSIS] and any(
                name in one for name in _FILE.findall(found[-1]) for one in found[:-2]
            ):
                found.pop()
            found += [ELLIPSIS] if found[-1:] != [ELLIPSIS] else []
        elif (old > 0 or new > 0) and line[:1] in _SIGNS:
            old -= line[:1] not in ("+", "\\")
            new -= line[:1] not in ("-", "\\")
            hidden += 1
        elif not _ABOVE_HUNK.match(line):
            old = new = 0
            found.append(line)
    return "\n".join(found) if hidden >= _LINES_OF_LONG_DIFF else text


_HUNK = pattern(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_FILE = pattern(r"[^\s\"'`=:]+\.\w+\b")
_ABOVE_HUNK = pattern(r"index [0-9a-f]{4,}\.\.|(?:---|\+\+\+) (?:[ab]/|/dev/null)|\\ No newline")
_LINES_OF_LONG_DIFF = 24
# The first characters of the lines in a diff; the empty one is for context lines that lost their blank.
_SIGNS = ("+", "-", " ", "\\", "")


def _as_then(line: str) -> str:
    return line[1:] if line[:1] in ("+", " ") else line
