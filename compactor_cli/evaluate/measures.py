"""What the future needed of the middle, and how much of it a summary holds.

The needs are worked out once for a case; scoring a summary against them is cheap. Events: U user text,
A assistant text, C tool call, R tool result. H head, M middle, T kept tail, F future.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from enum import StrEnum

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.transcript_events import Event, EventKind, ToolKind
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.evaluate.text_views import SummaryView, line_words, lines_of, tokens, view, words

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
    schema = _unspoken(case.schema)
    known = _atoms(case.head_events) | _atoms(case.tail_events)
    candidates = _atoms(case.middle_events) - known - case.schema
    return Needs(
        uses=_uses(case.future_events, candidates),
        reused=_reused(case.future_events, candidates),
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
        Measure.PAIRS_STRICT: _held(filter(_is_strict, needs.pairs), summary),
        Measure.PHRASES: Share(kept=len(needs.phrases & summary.grams), total=len(needs.phrases)),
        Measure.USER: Share(kept=quoted, total=len(needs.shingles)),
    }


def _unspoken(schema: Set[str]) -> frozenset[str]:
    """The names that are no plain words, as they stand among words: `description` may be said of anything."""
    return frozenset(name.lower() for name in schema if not name.isalpha() or name.lower() != name)


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


def _reused(future: Iterable[Event], candidates: set[str]) -> frozenset[str]:
    return frozenset(candidates & _atoms(event for event in future if event.kind in _AGENT))


def _pairs(case: EvalCase, candidates: set[str]) -> frozenset[tuple[str, str]]:
    """(atom, word) that share a line of the agent's future and one of the middle."""
    wanted: dict[str, set[str]] = {}
    for event in case.future_events:
        if event.kind in _AGENT:
            for atom, words_beside in _adjacent(event, candidates):
                wanted.setdefault(atom, set()).update(words_beside)
    found: set[tuple[str, str]] = set()
    for event in case.middle_events:
        for atom, words_beside in _adjacent(event, wanted.keys()):
            found.update((atom, word) for word in words_beside & wanted[atom])
    return frozenset(found)


def _adjacent(event: Event, atoms: Set[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Each of these atoms with the words of each short line that holds it."""
    here = view(event.text)
    for atom in here.atoms & atoms:
        for line in here.by_atom.get(atom, ()):
            yield atom, line_words(line)


def _is_strict(pair: tuple[str, str]) -> bool:
    """Whether the word is no part of the atom itself, so that the atom alone cannot hold the pair."""
    atom, word = pair
    return word not in words(atom)


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
