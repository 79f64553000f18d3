"""Grounding: what a text names or quotes that stands nowhere in the records it is about.

Held against the records as they were written, not as a prompt showed them: a prompt leaves much out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from compactor_cli.digest.atoms import AtomKind, atom_kinds
from compactor_cli.formats.harness import user_text
from compactor_cli.llm.flatten import call_text
from compactor_cli.model.transcript import Role, Text, ToolCall, ToolResult, Transcript

MARK = " (?)"
# Shorter numbers are counts and sums as often as not: a summary may reckon.
_LONG_NUMBER_DIGITS = 7
# Names in a text that nobody would look for in a transcript.
_REMARK_NAMES = frozenset({"N/A", "n/a", "I/O", "CI/CD", "TCP/IP", "GitHub", "JavaScript", "TypeScript", "OpenAI"})
_WORDS_AND_SLASHES = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*(?:/[^\W\d_]+(?:['’-][^\W\d_]+)*)+")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z_-]*(?:\s[^<>\n]*)?/?>")
_LINE_NUMBER = re.compile(r":\d+(?:[-:,]\d+)*$")
# A request in quotation marks that a text lays in the user's mouth.
_QUOTE = re.compile(r"[\"“「『]([^\"“”「」『』\n]{1,400})[\"”」』]")
_LEAST_QUOTE_CHARS = 12
_BY_USER = re.compile(
    r"\b(?:user|they|he|she)\b[^.\n\"“]{0,60}\b(?:said|says|asked|asks|requested|wrote|writes|wants|demanded|insisted"
    r"|told|instructed|confirmed|replied|answered|stated|ordered)\b[^.\n\"“]{0,30}$|用户[^。\n「“\"]{0,20}$",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(r"\.{3}|…|\[[^\]]*\]")
_WORD = re.compile(r"\w+")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_RUN_WORDS = 3
# Clients and models shorten quotations; so much of one must be in the user's words as it stands.
_LEAST_QUOTED_RATIO = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a text names: how many names there are, those without a source, and numbers without one."""

    names: int
    unfound: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    @property
    def unfound_ratio(self) -> float:
        """The share of the names that has no source, 0 to 1."""
        return len(self.unfound) / self.names if self.names else 0.0


class SourceRecords:
    """Full records, searched for what a text names. The texts are put together when first needed.

    ``shown``: texts that a model was given besides (its instructions, a list of facts, an earlier summary).
    """

    def __init__(self, parts: Iterable[tuple[Transcript, Sequence[int]]], shown: Sequence[str] = ()) -> None:
        self._parts = tuple(parts)
        self._shown = tuple(shown)

    def named(self, text: str) -> Named:
        """What the text names; tags, words with a slash between them and the records' own spelling aside."""
        names = 0
        unfound: list[str] = []
        numbers: list[str] = []
        for name, kind in atom_kinds(_TAG.sub(" ", text)).items():
            if name in _REMARK_NAMES or (kind is AtomKind.PATH and _WORDS_AND_SLASHES.fullmatch(name)):
                continue
            is_number = kind is AtomKind.DATE or (kind is AtomKind.NUM and not _is_long(name))
            names += not is_number
            if not self.holds(name):
                (numbers if is_number else unfound).append(name)
        return Named(names=names, unfound=tuple(unfound), numbers=tuple(numbers))

    def holds(self, name: str) -> bool:
        """Whether a name stands somewhere, in whatever case, as a whole or (a path) in two pieces."""
        if any(name in text for text in self._shown) or name in self._text:
            return True
        folded = _LINE_NUMBER.sub("", name).casefold()
        if folded in self._folded:
            return True
        pieces = folded.split("/")
        if "." not in folded and pieces[0] and all(piece in self._folded for piece in pieces):
            return len(pieces) > 1  # names set side by side, each of them known
        cuts = range(1, len(pieces))
        return any(self._has_both("/".join(pieces[:cut]), "/".join(pieces[cut:])) for cut in cuts)

    def _has_both(self, folder: str, rest: str) -> bool:
        return bool(rest) and rest in self._folded and (not folder or folder in self._folded)

    def said_by_user(self, text: str) -> bool:
        """Whether most of a text are words that a user said."""
        runs = _runs(text)
        return not runs or sum(run in self._user_runs for run in runs) >= _LEAST_QUOTED_RATIO * len(runs)

    def is_quoted(self, quotation: str) -> bool:
        """Whether a quotation is mostly the user's words, or else stands in the records: what was left out aside."""
        pieces = [words for piece in _LEFT_OUT.split(quotation) if (words := " ".join(_WORD.findall(piece.casefold())))]
        return all(self.said_by_user(piece) or f" {piece} " in self._spaced for piece in pieces)

    @cached_property
    def _text(self) -> str:
        return "\n".join(text for transcript, indices in self._parts for text in _texts(transcript, indices))

    @cached_property
    def _folded(self) -> str:
        return "\n".join((self._text, *self._shown)).casefold()

    @cached_property
    def _spaced(self) -> str:
        return f" {' '.join(_WORD.findall(self._folded.replace(chr(92) + 'n', ' ')))} "

    @cached_property
    def _user_runs(self) -> frozenset[tuple[str, ...]]:
        known_runs: set[tuple[str, ...]] = set()
        for transcript, indices in self._parts:
            for index in indices:
                message = transcript.messages[index]
                if message.role is Role.USER or message.results:
                    known_runs.update(_runs(user_text(message)))
                    known_runs.update(
                        run for result in message.results if result.is_error for run in _runs(result.text)
                    )
                if message.summary is not None:
                    known_runs.update(_runs(message.summary.text))
        for text in self._shown:
            known_runs.update(_runs(text))
        return frozenset(known_runs)


def _is_long(number: str) -> bool:
    return number.isdigit() and len(number) >= _LONG_NUMBER_DIGITS


def _texts(transcript: Transcript, indices: Sequence[int]) -> Iterable[str]:
    """The texts of records, then the records as they were written: bookkeeping names directories and branches."""
    for index in indices:
        for part in transcript.messages[index].parts:
            if isinstance(part, Text | ToolResult):
                yield part.text
            elif isinstance(part, ToolCall):
                yield call_text(part)
        if index < len(transcript.records):
            yield transcript.records[index].raw.decode("utf-8", "replace")


def _runs(text: str) -> list[tuple[str, ...]]:
    """Each three words in a row, in lower case; of a shorter text, all of its words; characters where dense."""
    words = [piece for word in _WORD.findall(text.casefold()) for piece in (word if _DENSE.search(word) else (word,))]
    if len(words) <= _RUN_WORDS:
        return [tuple(words)] if words else []
    return [tuple(words[at : at + _RUN_WORDS]) for at in range(len(words) - _RUN_WORDS + 1)]


def marked(text: str, names: Iterable[str]) -> str:
    """The text with a question mark in brackets after the first place of each of these names."""
    for name in sorted(names, key=len, reverse=True):
        pattern = re.compile(rf"(?<![\w/]){re.escape(name)}(?![\w/])(?P<tick>`?)(?! \(\?\))")
        text = pattern.sub(lambda found: f"{found[0]}{MARK}", text, count=1)
    return text


def quotes(text: str) -> tuple[str, ...]:
    """What stands in quotation marks."""
    return tuple(_QUOTE.findall(text))


def false_quotes(text: str, is_quoted: Callable[[str], bool]) -> tuple[str, ...]:
    """What the text says in quotation marks that the user said, and nobody did."""
    found = []
    for quotation in _QUOTE.finditer(text):
        before = text[max(0, quotation.start() - 120) : quotation.start()]
        if len(quotation[1]) >= _LEAST_QUOTE_CHARS and _BY_USER.search(before) and not is_quoted(quotation[1]):
            found.append(quotation[1])
    return tuple(found)
