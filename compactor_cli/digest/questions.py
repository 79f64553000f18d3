"""Questions that nobody has answered yet: at the end of what is known, one asks and the other has not spoken."""

from __future__ import annotations

from collections.abc import Sequence

from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.quote import QUESTION_MARKS, Meter, chosen, sentences
from compactor_cli.model.summary import Item

_SPEAKERS = (EventKind.USER, EventKind.ASSISTANT)
_MOST_QUESTIONS = 4
_MOST_CHARS = 400
_ENDING_CHARS = 1_500


def last_question(text: str) -> str:
    """The question that a text ends with, or nearly; empty if there is none."""
    ending = text if len(text) <= _ENDING_CHARS else text[-_ENDING_CHARS:].partition("\n")[2]
    if not any(mark in ending for mark in QUESTION_MARKS):
        return ""
    asked = [sentence for sentence in sentences(ending)[-3:] if sentence.endswith(QUESTION_MARKS)]
    return asked[-1] if asked else ""


def last_words(text: str) -> str:
    """What a short reply to a text answers: its last question, else its last sentence."""
    return last_question(text) or next(iter(sentences(text[-_ENDING_CHARS:])[-1:]), "")


def question_items(
    events: Sequence[Event], kept: Sequence[Event], budget_tokens: int, meter: Meter
) -> tuple[Item, ...]:
    """The questions of the last speaker, if nothing is said in ``events`` or behind them that may answer."""
    last = next((event for event in reversed(events) if event.kind in _SPEAKERS), None)
    if last is None or any(event.kind in _SPEAKERS and event.record > last.record for event in kept):
        return ()
    asked = [text for text in sentences(last.text) if text.endswith(QUESTION_MARKS) and len(text) <= _MOST_CHARS]
    return chosen((Item(text=text, records=(last.record,)) for text in asked[-_MOST_QUESTIONS:]), budget_tokens, meter)
