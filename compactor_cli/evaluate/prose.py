"""The baseline that quotes: the user's words, then whole texts of the assistant, the newest first."""

from __future__ import annotations

from collections.abc import Sequence

from compactor_cli.digest.events import Event, EventKind
from compactor_cli.evaluate.cuts import Case
from compactor_cli.evaluate.fit import Count

USER_RATIO = 0.3
# Texts of so many characters come first: long ones explain, short ones announce.
CLASSES_CHARS = (200, 60, 0)


def prose(case: Case, budget_tokens: int, count: Count) -> str:
    """Whole texts in the order of the transcript, within the budget."""
    chosen: set[int] = set()
    used = _take(_users(case), int(budget_tokens * USER_RATIO), chosen, case.middle_events, count)
    _take(_assistants(case), budget_tokens - used, chosen, case.middle_events, count)
    return "\n".join(case.middle_events[i].text for i in sorted(chosen))


def _users(case: Case) -> list[int]:
    """The places of the user's messages, the newest first."""
    return [i for i, event in reversed(tuple(enumerate(case.middle_events))) if event.kind is EventKind.USER]


def _assistants(case: Case) -> list[int]:
    """The places of the assistant's texts, those of the longest class first, in a class the newest first."""
    newest = [i for i, event in reversed(tuple(enumerate(case.middle_events))) if event.kind is EventKind.ASSISTANT]
    return sorted(newest, key=lambda i: _class(case.middle_events[i]))


def _class(event: Event) -> int:
    return next(number for number, chars in enumerate(CLASSES_CHARS) if len(event.text) >= chars)


def _take(places: Sequence[int], budget_tokens: int, chosen: set[int], events: Sequence[Event], count: Count) -> int:
    """Adds the places whose whole text still fits; the tokens that they take."""
    used = 0
    for place in places:
        tokens = count(events[place].text + "\n")
        if used + tokens <= budget_tokens:
            chosen.add(place)
            used += tokens
    return used
