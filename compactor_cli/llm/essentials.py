"""Essentials: what a summary of some records has to name — changed files, the user's things, open steps, names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.events import PATH_KEYS, Event, EventKind, ToolKind, argument, events, parameters
from compactor_cli.digest.open import State, plan_state
from compactor_cli.digest.salience import build, score
from compactor_cli.model.transcript import Transcript

MOST_SALIENT, _MOST_OF_USER, _MOST_FILES, _MOST_STEPS = 50, 20, 40, 12
# Where there are few names, words stand for them.
_LEAST_NAMES, _MOST_WORDS = 6, 6
_FILE_WEIGHT, _STEP_WEIGHT = 3.0, 2.0
_LEAST_STEP_RATIO = 0.6
_STEP_WORD_CHARS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Essential:
    """One of them. ``words``: what a text must hold to tell it, in lower case; ``records``: where it stands last."""

    name: str
    words: tuple[str, ...]
    record: str
    weight: float = 1.0

    def is_in(self, folded: str) -> bool:
        """Whether a text, in lower case, tells it."""
        held = sum(word in folded for word in self.words)
        return held >= _LEAST_STEP_RATIO * len(self.words)

    def __str__(self) -> str:
        return f"{self.name} [{self.record}]" if self.record else self.name


def essentials(parts: Iterable[tuple[Transcript, Sequence[int], str]], focus: str = "") -> tuple[Essential, ...]:
    """Those of these records (each with the prefix of its numbers), the weightiest first.

    Names of tools' parameters are none, whatever their count. Linear in the records' text.
    """
    found: list[Event] = []
    where: dict[int, str] = {}
    for transcript, indices, prefix in parts:
        for event in events(transcript, indices):
            if event.kind is not EventKind.SUMMARY:
                where[len(found)] = f"{prefix}{event.record + 1}"
                found.append(event)
    scores = score(build(found), focus=focus)
    schema = {name for event in found if event.kind is EventKind.CALL for name, _ in parameters(event.arguments)}
    names = [name for name in scores.top(4 * MOST_SALIENT) if name not in schema]
    ranked = _unique((*_changed_files(found), *_open_steps(found), *_of_user(found, names), *names[:MOST_SALIENT]))
    if len(ranked) < _LEAST_NAMES:
        words = sorted(scores.terms, key=lambda term: (-scores.terms[term], term))[:_MOST_WORDS]
        ranked = _unique((*ranked, *words))
    return tuple(_located(one, found, where) for one in ranked)


def _changed_files(found: Sequence[Event]) -> Iterator[Essential]:
    """The files that calls changed, newest first, by name: a summary may shorten a path."""
    edits = (e for e in reversed(found) if e.kind is EventKind.CALL and e.tool is ToolKind.EDIT)
    paths = dict.fromkeys(path for edit in edits if (path := argument(edit.arguments, PATH_KEYS)))
    for path in islice(paths, _MOST_FILES):
        word = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].casefold()
        yield Essential(name=path, words=(word,), record="", weight=_FILE_WEIGHT)


def _open_steps(found: Sequence[Event]) -> Iterator[Essential]:
    state = plan_state(found)
    for step in (*state.of(State.DOING), *state.of(State.OPEN))[:_MOST_STEPS]:
        words = tuple(dict.fromkeys(w for w in step.text.casefold().split() if len(w) >= _STEP_WORD_CHARS))
        yield Essential(name=step.text, words=words or (step.text.casefold(),), record="", weight=_STEP_WEIGHT)


def _of_user(found: Sequence[Event], names: Sequence[str]) -> list[str]:
    """The names that the user used, the most salient first."""
    user_names = {name for event in found if event.kind is EventKind.USER for name in atom_texts(event.text)}
    return [name for name in names if name in user_names][:_MOST_OF_USER]


def _unique(found: Iterable[Essential | str]) -> tuple[Essential, ...]:
    """Each thing once, names as essentials of their own."""
    unique: dict[tuple[str, ...], Essential] = {}
    for one in found:
        fact = one if isinstance(one, Essential) else Essential(name=one, words=(one.casefold(),), record="")
        unique.setdefault(fact.words, fact)
    return tuple(unique.values())


def _located(fact: Essential, found: Sequence[Event], where: dict[int, str]) -> Essential:
    place = next((n for n in range(len(found) - 1, -1, -1) if fact.name in found[n].text), None)
    if place is None:
        return fact
    return Essential(name=fact.name, words=fact.words, record=where[place], weight=fact.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the essentials a text tells: by weight (0 to 1), and which are missing."""

    ratio: float
    missing: tuple[Essential, ...]
    total: int


def coverage(text: str, wanted: Sequence[Essential]) -> Coverage:
    """The coverage of a text; 1 where there is nothing that it must tell."""
    folded = text.casefold()
    missing = tuple(fact for fact in wanted if not fact.is_in(folded))
    weight = sum(fact.weight for fact in wanted)
    ratio = 1 - sum(fact.weight for fact in missing) / weight if weight else 1.0
    return Coverage(ratio=ratio, missing=missing, total=len(wanted))
