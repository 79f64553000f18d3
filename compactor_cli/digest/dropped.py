"""Dropped: what a transcript said that a later text no longer says, what is most likely to be needed first.

A thing counts as there if the later text holds it verbatim (line breaks and indentation aside), as in `loss`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.atoms import AtomKind, atom_texts
from compactor_cli.digest.commands import shown
from compactor_cli.digest.counter_table import KINDS
from compactor_cli.digest.error_records import Status
from compactor_cli.digest.loss import rules_in, squeezed
from compactor_cli.digest.plan_state import State
from compactor_cli.digest.quote import ELLIPSIS
from compactor_cli.digest.text_search import TextSearch
from compactor_cli.digest.transcript_events import Event

# How likely a thing is needed whatever names it holds (chosen, not fitted); its names can only raise that.
_STANDING = 0.6  # what the user asked to hold, open steps, errors that still fail
_SETTLED = 0.3  # decisions, files that were changed, commands that changed the world
_PASSING = 0.0
# Names are many and mostly noise: those most likely to be used again stand for all.
_MOST_NAMES = 200
_FILE_KINDS = (AtomKind.PATH, AtomKind.FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Something that is no longer there. ``score``: how likely it is needed, 0 to 1; ``record``: of the transcript,
    counted from 0, where it was last said or shown; -1: only an earlier summary knew of it.
    """

    kind: str
    text: str
    score: float
    record: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thing:
    kind: str
    text: str
    base: float
    record: int


def dropped(analysis: Analysis, later: str) -> tuple[Dropped, ...]:
    """The things of the analysed records that ``later`` does not say, each once, the most likely needed first."""
    there = TextSearch(squeezed(later))
    missing: dict[str, Dropped] = {}
    for thing in _things(analysis):
        text = squeezed(thing.text)
        if text and text not in missing and text not in there:
            missing[text] = Dropped(kind=thing.kind, text=text, score=_score(analysis, thing), record=thing.record)
    return tuple(sorted(missing.values(), key=lambda item: (-item.score, -item.record)))


def _score(analysis: Analysis, thing: _Thing) -> float:
    best = max(map(analysis.scores.of, {thing.text, *atom_texts(thing.text)}), default=0.0)
    return round(1.0 - (1.0 - thing.base) * (1.0 - min(best, 1.0)), 4)


def _things(analysis: Analysis) -> Iterator[_Thing]:
    for message in reversed(analysis.messages):
        for rule in rules_in(message.text):
            yield _Thing(kind="user rule", text=rule, base=_STANDING, record=message.record)
    for state in (State.DOING, State.OPEN):
        for todo in analysis.plan.of(state):
            yield _Thing(kind="open item", text=todo.text, base=_STANDING, record=todo.record)
    for error in reversed(analysis.errors):
        base = _PASSING if error.status is Status.FIXED else _STANDING
        yield _Thing(kind="error", text=error.line, base=base, record=_first(error.records))
    for decision in reversed(analysis.decisions):
        yield _Thing(kind="decision", text=decision.text, base=_SETTLED, record=_first(decision.records))
    for file in analysis.files:
        base = _SETTLED if file.is_changed else _PASSING
        yield _Thing(kind="file", text=file.path, base=base, record=max(file.records, default=-1))
    for run in reversed(analysis.runs):
        base = _SETTLED if run.changes_world else _PASSING
        yield _Thing(kind="command", text=shown(run.command).rstrip(" " + ELLIPSIS), base=base, record=run.record)
    yield from _names(analysis)


def _first(records: Sequence[int]) -> int:
    return records[0] if records else -1


def _names(analysis: Analysis) -> Iterator[_Thing]:
    """The names and numbers that are most likely used again; paths are known as files, or were only looked at."""
    files = {KINDS.index(kind) for kind in _FILE_KINDS}
    kinds = analysis.table.columns.kinds
    names = [name for name in analysis.scores.top(len(kinds)) if kinds[analysis.table.atoms[name]] not in files]
    for name in names[:_MOST_NAMES]:
        kind = "number" if kinds[analysis.table.atoms[name]] == KINDS.index(AtomKind.NUM) else "name"
        yield _Thing(kind=kind, text=name, base=_PASSING, record=_last_record(analysis.events, name))


def _last_record(events: Iterable[Event], name: str) -> int:
    return max((event.record for event in events if name in event.text), default=-1)
