"""The baseline that quotes: the user's words, then whole texts of the assistant, the newest first."""

from __future__ import annotations

from collections.abc import Iterable

from compactor_cli.digest.transcript_events import EventKind
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.evaluate.fit import Count, first

USER_RATIO = 0.3
# Texts of this many characters come first: long ones explain, short ones announce.
CLASSES_CHARS = (200, 60, 0)


def prose(case: EvalCase, budget_tokens: int, count: Count) -> str:
    """Texts in the order of the transcript, within the budget; whole except for the oldest of the user's, which is
    cut.
    """
    texts = {place: event.text for place, event in enumerate(case.middle_events)}
    users = [place for place in reversed(texts) if case.middle_events[place].kind is EventKind.USER]
    replies = [place for place in reversed(texts) if case.middle_events[place].kind is EventKind.ASSISTANT]
    replies.sort(key=lambda place: _class(texts[place]))
    chosen: dict[int, str] = {}
    left = budget_tokens - _take(users, texts, int(budget_tokens * USER_RATIO), chosen, count, cut=True)
    _take(replies, texts, left, chosen, count)
    return "\n".join(text for _, text in sorted(chosen.items()))


def _class(text: str) -> int:
    return next(number for number, chars in enumerate(CLASSES_CHARS) if len(text) >= chars)


def _take(
    places: Iterable[int],
    texts: dict[int, str],
    budget_tokens: int,
    chosen: dict[int, str],
    count: Count,
    *,
    cut: bool = False,
) -> int:
    """Adds the texts that still fit whole; the tokens that they take. With ``cut`` the first that does not is cut."""
    used = 0
    for place in places:
        text = texts[place]
        tokens = count(f"{text}\n")
        if used + tokens > budget_tokens and cut:
            text = first(text, budget_tokens - used - 1, count)
            tokens = count(f"{text}\n")
            cut = False
        if text and used + tokens <= budget_tokens:
            chosen[place] = text
            used += tokens
    return used
