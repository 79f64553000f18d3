"""Loss: what of the covered records did not make it into the summary, by kind, and the share that did."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.atoms import AtomKind
from compactor_cli.digest.commands import shown
from compactor_cli.digest.counter_table import KINDS
from compactor_cli.digest.plan_state import State
from compactor_cli.digest.quote import ELLIPSIS, sentences
from compactor_cli.digest.text_search import TextSearch

# A report names this many of each kind, the ones most likely to be missed first.
MOST_NAMED = 50
_NUMBERS = "numbers"
# Numbers are many and mostly noise: the ones most likely to be used again stand for all.
_MOST_NUMBERS = 200


def loss(
    analysis: Analysis, text: str
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[tuple[str, float], ...]]:
    """What is not in the summary's text, and the retained share (0 to 1), by kind (if there is any)."""
    lost: list[tuple[str, tuple[str, ...]]] = []
    kept: list[tuple[str, float]] = []
    line = squeezed(text)
    shown_text, shown_numbers = TextSearch(line), TextSearch(" ".join(_digits().findall(line)))
    for kind, things in _things(analysis).items():
        haystack = shown_numbers if kind == _NUMBERS else shown_text
        missing = tuple(thing for thing in things if squeezed(thing) not in haystack)
        if things:
            kept.append((kind, round(1.0 - len(missing) / len(things), 4)))
        if missing:
            lost.append((kind, missing[:MOST_NAMED]))
    return tuple(lost), tuple(kept)


def squeezed(text: str) -> str:
    """Line breaks and indentation are the template's, not the text's."""
    return " ".join(text.split())


def _things(analysis: Analysis) -> Mapping[str, tuple[str, ...]]:
    return {
        "user rules": _distinct(rule for message in reversed(analysis.messages) for rule in rules_in(message.text)),
        "paths": _distinct(state.path for state in analysis.files),
        "commands": _distinct(shown(run.command).rstrip(" " + ELLIPSIS) for run in reversed(analysis.runs)),
        _NUMBERS: _numbers(analysis),
        "open items": _distinct(todo.text for state in (State.DOING, State.OPEN) for todo in analysis.plan.of(state)),
    }


def _distinct(things: Iterable[str]) -> tuple[str, ...]:
    return tuple(thing for thing in dict.fromkeys(things) if thing)


@cache
def _digits() -> re.Pattern[str]:
    # What a number consists of (see `atoms`), so that numbers need not be looked for in all of a text.
    return re.compile(r"\d[\d._]*")


@cache
def _rule() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:must|never|always|don'?t|do not|should(?:n'?t)?|make sure|ensure|avoid|without|keep|only|please)\b"
        r"|必须|不要|不能|务必|始终|禁止|只能|请|ください|してはいけない|必ず",
        re.IGNORECASE,
    )


def rules_in(text: str) -> list[str]:
    """The sentences of a message that ask for something to hold."""
    return [sentence for sentence in sentences(text[:20_000]) if len(sentence) <= 400 and _rule().search(sentence)]


def _numbers(analysis: Analysis) -> tuple[str, ...]:
    code, p = KINDS.index(AtomKind.NUM), analysis.scores.rows
    numbers = [row for row, kind in enumerate(analysis.table.columns.kinds) if kind == code]
    atoms = list(analysis.table.atoms)
    return tuple(atoms[row] for row in sorted(numbers, key=p.__getitem__, reverse=True)[:_MOST_NUMBERS])
