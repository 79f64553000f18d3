"""Loss: what the covered records hold and a text does not, by kind, and the share that the text retains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import nsmallest
from itertools import islice

from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.atoms import AtomKind, atom_texts
from compactor_cli.digest.checklists import State
from compactor_cli.digest.commands import shown
from compactor_cli.digest.failures import Status
from compactor_cli.digest.runs import Run
from compactor_cli.digest.salience import FILE_KINDS, KINDS
from compactor_cli.digest.texts import ELLIPSIS, sentences
from compactor_cli.model.value import dataclass

# A report names this many of each kind, the ones most likely to be missed first.
MOST_NAMED = 50
_NUMBER = KINDS.index(AtomKind.NUM)
# Numbers are many and mostly noise: the ones most likely to be used again stand for all.
_MOST_NUMBERS = 200


def loss(
    analysis: Analysis, text: str
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[tuple[str, float], ...]]:
    """By kind, the things that are not in the summary's text, and the share (0 to 1) of all its things that are.

    A kind without things, or without missing ones, is left out; at most `MOST_NAMED` missing things are named.
    """
    lost: list[tuple[str, tuple[str, ...]]] = []
    kept: list[tuple[str, float]] = []
    there = squeezed(text)
    numbers = " ".join(_DIGITS.findall(there))
    for kind, things in _things(analysis).items():
        missing = tuple(one for one in things if squeezed(one) not in (numbers if kind == "numbers" else there))
        if things:
            kept.append((kind, round(1.0 - len(missing) / len(things), 4)))
        if missing:
            lost.append((kind, missing[:MOST_NAMED]))
    return tuple(lost), tuple(kept)


def squeezed(text: str) -> str:
    """The text with a blank for every run of whitespace: line breaks and indentation are the template's."""
    return " ".join(text.split())


def _things(analysis: Analysis) -> Mapping[str, tuple[str, ...]]:
    """What is looked for in a summary, by kind, the likeliest to be missed first."""
    names, scores = list(analysis.table.atoms), analysis.scores.rows
    numbers = [row for row, kind in enumerate(analysis.table.columns["kinds"]) if kind == _NUMBER]
    likely = nsmallest(_MOST_NUMBERS, numbers, key=lambda row: -scores[row])
    return {
        "user rules": _distinct(rule for message in reversed(analysis.messages) for rule in rules_in(message.text)),
        "paths": _distinct(state.path for state in analysis.files),
        "commands": _distinct(map(_command, reversed(analysis.runs))),
        "numbers": tuple(names[row] for row in likely),
        "open items": _distinct(todo.text for state in (State.DOING, State.OPEN) for todo in analysis.plan.of(state)),
    }


def _command(run: Run) -> str:
    return shown(run.command).rstrip(" " + ELLIPSIS)


def _distinct(things: Iterable[str]) -> tuple[str, ...]:
    return tuple(thing for thing in dict.fromkeys(things) if thing)


# What a number consists of (see `atoms`), so that numbers need not be looked for in all of a text.
_DIGITS = re.compile(r"\d[\d._]*")
_RULE = re.compile(
    r"\b(?:must|never|always|don'?t|do not|should(?:n'?t)?|make sure|ensure|avoid|without|keep|only|please)\b"
    r"|必须|不要|不能|务必|始终|禁止|只能|请|ください|してはいけない|必ず",
    re.IGNORECASE,
)


def rules_in(text: str) -> list[str]:
    """The sentences of a message that state what must, should or must not be done."""
    return [sentence for sentence in sentences(text[:20_000]) if len(sentence) <= 400 and _RULE.search(sentence)]


# How likely a thing is needed whatever names it holds (chosen, not fitted); its names can only raise that.
_STANDING = 0.6  # what the user asked to hold, open steps, errors that still fail
_SETTLED = 0.3  # decisions, files that were changed, commands that acted outside
_PASSING = 0.0
# Names are many and mostly noise: those most likely to be used again stand for all.
_MOST_NAMES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Something that is no longer there."""

    kind: str
    text: str
    score: float  # how likely it is needed, 0 to 1
    record: int  # where it was last named or shown, counted from 0; -1: only an earlier summary knew of it


def dropped(analysis: Analysis, later: str) -> tuple[Dropped, ...]:
    """The things of the analysed records that the text ``later`` does not hold, each once, most likely needed first."""
    there = squeezed(later)
    missing: dict[str, Dropped] = {}
    for thing in _droppable(analysis):
        text = squeezed(thing.text)
        if text and text not in missing and text not in there:
            best = max(map(analysis.scores.of, {thing.text, *atom_texts(thing.text)}))
            score = 1.0 - (1.0 - thing.score) * (1.0 - min(best, 1.0))
            missing[text] = replace(thing, text=text, score=round(score, 4))
    return tuple(sorted(missing.values(), key=lambda item: (-item.score, -item.record)))


def _droppable(analysis: Analysis) -> Iterator[Dropped]:
    """The things that may be missed, each with the score that it has whatever names it holds."""
    for message in reversed(analysis.messages):
        for rule in rules_in(message.text):
            yield Dropped(kind="user rule", text=rule, score=_STANDING, record=message.record)
    for state in (State.DOING, State.OPEN):
        for todo in analysis.plan.of(state):
            yield Dropped(kind="open item", text=todo.text, score=_STANDING, record=todo.record)
    for error in reversed(analysis.errors):
        base = _PASSING if error.status is Status.FIXED else _STANDING
        yield Dropped(kind="error", text=error.line, score=base, record=next(iter(error.records), -1))
    for decision in reversed(analysis.decisions):
        yield Dropped(kind="decision", text=decision.whole, score=_SETTLED, record=next(iter(decision.records), -1))
    for file in analysis.files:
        base = _SETTLED if file.is_changed else _PASSING
        yield Dropped(kind="file", text=file.path, score=base, record=max(file.records, default=-1))
    for run in reversed(analysis.runs):
        base = _SETTLED if run.acts_outside else _PASSING
        yield Dropped(kind="command", text=_command(run), score=base, record=run.record)
    yield from _names(analysis)


def _names(analysis: Analysis) -> Iterator[Dropped]:
    """The names and numbers most likely to be used again; not paths: they are known as files or were only looked at."""
    kinds, atoms = analysis.table.columns["kinds"], analysis.table.atoms
    tools = {event.name for event in analysis.events}
    ranked = (name for name in analysis.scores.top(len(atoms)) if name not in tools)
    for name in islice((name for name in ranked if kinds[atoms[name]] not in FILE_KINDS), _MOST_NAMES):
        kind = "number" if kinds[atoms[name]] == _NUMBER else "name"
        last = next((event.record for event in reversed(analysis.events) if name in event.text), -1)
        yield Dropped(kind=kind, text=name, score=_PASSING, record=last)
