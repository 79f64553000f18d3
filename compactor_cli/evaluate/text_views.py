"""Views of a text: its lines, words, atoms and word triples, worked out once and remembered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from compactor_cli.digest.atoms import atom_texts

# A longer line shows no neighbourhood: minified code and data would pair everything with everything.
LINE_CHARS = 240
GRAM_WORDS = 3

# Scripts without spaces between words: kana, Han, Thai and their like count a character as a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")

# Shorter words (of, to, in) are on every line: sharing one with them carries no information about an atom.
LEAST_WORD_CHARS = 3


def words(text: str) -> list[str]:
    """The words of a text in lower case; in scripts without spaces every character is one."""
    return _WORD.findall(text.lower())


def tokens(text: str) -> list[str]:
    """What blanks separate, as it stands; in scripts without spaces every character is one."""
    return _TOKEN.findall(text)


@lru_cache(maxsize=100_000)
def line_words(line: str) -> frozenset[str]:
    """The words of a line that an atom can be paired with: those that begin with a letter, from three characters on."""
    return frozenset(
        word for word in words(line) if word[0].isalpha() and (len(word) >= LEAST_WORD_CHARS or not word.isascii())
    )


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text without outer blanks; empty ones are left out."""
    return (stripped for line in text.split("\n") if (stripped := line.strip()))


def pieces(line: str) -> Iterator[str]:
    """A line in pieces of at most LINE_CHARS, cut at blanks where there are any.

    A summary on one endless line must not win what is measured by line.
    """
    while len(line) > LINE_CHARS:
        at = line.rfind(" ", 1, LINE_CHARS + 1)
        at = at if at > 0 else LINE_CHARS
        yield line[:at]
        line = line[at:].lstrip()
    if line:
        yield line


def grams(text: str) -> Iterator[str]:
    """The word triples of each line, joined by blanks, in order."""
    for line in lines_of(text):
        found = words(line)
        for i in range(len(found) - GRAM_WORDS + 1):
            yield " ".join(found[i : i + GRAM_WORDS])


class View:
    """One text as the measures see it. Values are worked out when first asked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def atoms(self) -> frozenset[str]:
        """The distinct atoms."""
        return frozenset(atom_texts(self.text))

    @cached_property
    def grams(self) -> frozenset[str]:
        """The distinct word triples."""
        return frozenset(grams(self.text))

    @cached_property
    def short_lines(self) -> tuple[str, ...]:
        """The distinct lines of at most LINE_CHARS; longer ones are left out."""
        return tuple(dict.fromkeys(line for line in lines_of(self.text) if len(line) <= LINE_CHARS))

    @cached_property
    def by_atom(self) -> dict[str, list[str]]:
        """The short lines that hold an atom."""
        return _by_atom(self.short_lines) if self.atoms else {}


def _by_atom(lines: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        for atom in atom_texts(line):
            found.setdefault(atom, []).append(line)
    return found


class SummaryView(View):
    """A summary's text: long lines are cut in pieces instead of being left out."""

    @cached_property
    def short_lines(self) -> tuple[str, ...]:
        """The distinct lines, long ones in pieces."""
        return tuple(dict.fromkeys(piece for line in lines_of(self.text) for piece in pieces(line)))

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines as they stand, however long."""
        return tuple(lines_of(self.text))

    @cached_property
    def flat(self) -> str:
        """All tokens with one blank between them and around."""
        return f" {' '.join(tokens(self.text))} "

    @cached_property
    def flat_words(self) -> str:
        """All words in lower case with one blank between them and around: markup and line breaks do not count."""
        return f" {' '.join(words(self.text))} "

    @cached_property
    def word_set(self) -> frozenset[str]:
        """The distinct words."""
        return frozenset(words(self.text))


@lru_cache(maxsize=60_000)
def view(text: str) -> View:
    """The remembered view of an event's text. `forget` frees the memory."""
    return View(text)


def forget() -> None:
    """Drops what was remembered; to be called between transcripts, which share little."""
    view.cache_clear()
    line_words.cache_clear()
