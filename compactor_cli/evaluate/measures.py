"""What the future needed of the middle, and how much of it a summary holds.

The needs are worked out once for a case; scoring a summary against them is cheap. Events: U user text,
A assistant text, C tool call, R tool result. H head, M middle, T kept tail, F future.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from enum import StrEnum
from functools import cached_property, lru_cache

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.events import Event, EventKind, ToolKind
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.model.value import dataclass

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
        found: dict[str, list[str]] = {}
        for line in self.short_lines if self.atoms else ():
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


SHINGLE_TOKENS = 8
# Longer user messages are pasted logs and documents, not instructions.
USER_MESSAGE_WORDS = 400

_AGENT = frozenset({EventKind.ASSISTANT, EventKind.CALL})


class Measure(StrEnum):
    """What is measured; each value is a share of what was needed."""

    FUR = "FUR"
    FUR_ANY = "FUR-any"
    PAIRS = "pairs"
    PAIRS_STRICT = "pairs-strict"
    PHRASES = "phrases"
    USER = "user"
    RETRIEVAL = "R@3"
    EDITED = "edited"
    READ = "read"
    COMMANDS = "commands"
    TODOS = "todos"
    DECISIONS = "decisions"
    ERRORS = "errors"
    CHAT = "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """``kept`` of ``total``; ``total`` 0 means that there was nothing to measure."""

    kept: int
    total: int

    @property
    def ratio(self) -> float:
        """0 to 1; 0 where there was nothing to measure."""
        return self.kept / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """An atom of the middle that the agent uses before anybody shows it again, and the line it does so on."""

    atom: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a summary of this middle should hold, as the future shows."""

    uses: tuple[Use, ...]
    reused: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    phrases: frozenset[str]
    shingles: tuple[str, ...]


def needs_of(case: EvalCase) -> Needs:
    """The needs of the four measures of recall, none of which holds a name of a tool's parameter."""
    # The names that are no plain words, as they stand among words: `description` may be used of anything.
    schema = {name.lower() for name in case.schema if not name.isalpha() or name.lower() != name}
    known = _atoms(case.head_events) | _atoms(case.tail_events)
    candidates = _atoms(case.middle_events) - known - case.schema
    return Needs(
        uses=_uses(case.future_events, candidates),
        reused=frozenset(candidates & _atoms(event for event in case.future_events if event.kind in _AGENT)),
        pairs=frozenset(pair for pair in _pairs(case, candidates) if pair[1] not in schema),
        phrases=frozenset(phrase for phrase in _phrases(case) if schema.isdisjoint(phrase.split())),
        shingles=tuple(dict.fromkeys(shingles(case.middle_events))),
    )


def score(needs: Needs, summary: SummaryView) -> dict[Measure, Share]:
    """How much of the needs this summary holds."""
    targets = {use.atom for use in needs.uses}
    quoted = sum(f" {word_run} " in summary.flat for word_run in needs.shingles)
    return {
        Measure.FUR: Share(kept=len(targets & summary.atoms), total=len(targets)),
        Measure.FUR_ANY: Share(kept=len(needs.reused & summary.atoms), total=len(needs.reused)),
        Measure.PAIRS: _held(needs.pairs, summary),
        # Where the word is part of the atom, the atom alone holds the pair.
        Measure.PAIRS_STRICT: _held((pair for pair in needs.pairs if pair[1] not in words(pair[0])), summary),
        Measure.PHRASES: Share(kept=len(needs.phrases & summary.grams), total=len(needs.phrases)),
        Measure.USER: Share(kept=quoted, total=len(needs.shingles)),
    }


def _atoms(events: Iterable[Event]) -> set[str]:
    return {atom for event in events for atom in view(event.text).atoms}


def _uses(future: Iterable[Event], candidates: set[str]) -> tuple[Use, ...]:
    """The first use of each atom that the agent uses before a user or a result shows it."""
    shown: set[str] = set()
    found: dict[str, Use] = {}
    for event in future:
        atoms = view(event.text).atoms & candidates
        if event.kind not in _AGENT:
            shown |= atoms
            continue
        wanted = atoms - shown - found.keys()
        for line in lines_of(event.text) if wanted else ():
            for atom in sorted(wanted & atom_texts(line) - found.keys()):
                found[atom] = Use(atom=atom, line=line)
    return tuple(found.values())


def _pairs(case: EvalCase, candidates: set[str]) -> frozenset[tuple[str, str]]:
    """(atom, word) that share a line of the agent's future and one of the middle."""
    wanted: dict[str, set[str]] = {}
    for event in case.future_events:
        if event.kind in _AGENT:
            for atom, near in _adjacent(event, candidates):
                wanted.setdefault(atom, set()).update(near)
    found: set[tuple[str, str]] = set()
    for event in case.middle_events:
        for atom, near in _adjacent(event, wanted.keys()):
            found.update((atom, word) for word in near & wanted[atom])
    return frozenset(found)


def _adjacent(event: Event, atoms: Set[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Each of these atoms with the words of each short line that holds it."""
    here = view(event.text)
    for atom in here.atoms & atoms:
        for line in here.by_atom.get(atom, ()):
            yield atom, line_words(line)


def _held(pairs: Iterable[tuple[str, str]], summary: SummaryView) -> Share:
    pairs = tuple(pairs)
    kept = sum(any(word in line_words(line) for line in summary.by_atom.get(atom, ())) for atom, word in pairs)
    return Share(kept=kept, total=len(pairs))


def _grams(events: Iterable[Event]) -> set[str]:
    return {gram for event in events for gram in view(event.text).grams}


def _phrases(case: EvalCase) -> frozenset[str]:
    candidates = _grams(case.middle_events) - _grams(case.head_events) - _grams(case.tail_events)
    shown: set[str] = set()
    used: set[str] = set()
    for event in case.future_events:
        here = view(event.text).grams & candidates
        if event.kind not in _AGENT:
            shown |= here
        elif event.tool is not ToolKind.EDIT:
            used |= here - shown
    return frozenset(used)


def shingles(events: Iterable[Event]) -> Iterator[str]:
    """Eight tokens of the user at a time, without overlap; what is left at the end of a message does not count."""
    for event in events:
        if event.kind is not EventKind.USER:
            continue
        word_run = tokens(event.text)
        if len(word_run) > USER_MESSAGE_WORDS:
            continue
        for i in range(0, len(word_run) - SHINGLE_TOKENS + 1, SHINGLE_TOKENS):
            yield " ".join(word_run[i : i + SHINGLE_TOKENS])
