"""Facts of a conversation that its future asks for again, where there are no files to name.

A fact is a value that the agent uses in the future, that somebody said in the middle, and that
nobody repeated before the agent needed it: an argument of a call, an amount, a number, a name. It is held
if all of its words are in the summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from compactor_cli.digest.transcript_events import Event, EventKind
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.evaluate.measures import Share
from compactor_cli.evaluate.text_views import SummaryView, words

# Longer values are texts, not facts.
MOST_ANSWER_WORDS = 12
_TRIVIAL = frozenset({"true", "false", "none", "null", "yes", "no", "ok", "user", "assistant", "i", "the"})


def reused_facts(case: EvalCase) -> tuple[str, ...]:
    """Word sequences in lower case, in the order of their first use."""
    known = _flat((*case.head_events, *case.tail_events))
    middle = _flat(case.middle_events)
    shown = ""
    found: dict[str, None] = {}
    for event in case.future_events:
        if event.kind in (EventKind.USER, EventKind.RESULT):
            shown += _flat((event,))
            continue
        for fact in _facts(event):
            phrase = f" {fact} "
            if phrase in middle and phrase not in known and phrase not in shown:
                found.setdefault(fact)
    return tuple(found)


def score_facts(wanted: Iterable[str], summary: SummaryView) -> Share:
    """Share of the facts whose words are all in the summary."""
    wanted = tuple(wanted)
    return Share(kept=sum(summary.word_set.issuperset(fact.split()) for fact in wanted), total=len(wanted))


def _flat(events: Iterable[Event]) -> str:
    return f" {' '.join(word for event in events for word in words(event.text))} "


def _facts(event: Event) -> Iterator[str]:
    texts = _values(event.arguments) if event.kind is EventKind.CALL else _named(event.text)
    for text in texts:
        found = words(text)
        if 0 < len(found) <= MOST_ANSWER_WORDS and len(text) > 1 and not _TRIVIAL.issuperset(found):
            yield " ".join(found)


def _values(arguments: Any) -> Iterator[str]:
    if isinstance(arguments, Mapping):
        for value in arguments.values():
            yield from _values(value)
    elif isinstance(arguments, (list, tuple)):
        for value in arguments:
            yield from _values(value)
    elif not isinstance(arguments, bool) and arguments is not None:
        yield str(arguments)


def _named(text: str) -> Iterator[str]:
    """Amounts, numbers and codes with a digit, and capitalised names of two or more words."""
    return (found[0] for found in _fact().finditer(text))


@cache
def _fact() -> re.Pattern[str]:
    return re.compile(
        r"[$€£¥]\s?\d[\d,.]*\d|\b(?=[\w-]*\d)[A-Za-z0-9][\w-]{2,}\b|\b[A-Z][a-z]+(?: [A-Z][a-z]+)+\b",
    )
