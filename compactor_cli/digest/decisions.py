"""Decisions with their reasons: sentences in which a cue word says that something was chosen, or why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.questions import last_question
from compactor_cli.digest.quote import (
    COLONS,
    QUESTION_MARKS,
    Meter,
    chosen,
    one_line,
    opening,
    records_of,
    sentences,
)
from compactor_cli.model.summary import Item

_LEAST_CHARS, _MOST_CHARS = 12, 320
_LEAST_REASON_WORDS = 6
# What newest means against the strength of a cue: the last sentence of a transcript gains as much as a choice.
_RECENCY = 2.0
_MOST_ANSWER_CHARS = 200
_ANSWER_WEIGHT = 2.5
_MOST_PER_MESSAGE = 2
_ANSWERED = ("User has answered your questions:", "User answered:", "User's answers:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A sentence that decides or gives a reason, or a question with the user's answer.

    ``weight``: how surely it decides, 1 (a reason) to 4 (the user chose from a list).
    """

    text: str
    records: tuple[int, ...]
    weight: float


# Patterns of cues, each by a part that every text with the cue has in lower case.
_CHOICES = {
    "deci": "decided|decision",
    "chose": "we chose|I chose",
    "choosing": "choosing",
    "with": "(?:go|going|went) with",
    "opt": "opt(?:ed|ing)? for",
    "instead": "instead of",
    "rather": "rather than",
    "let": "let'?s (?:use|go|keep|drop|skip)",
    "we": "we(?:'ll| will| should) (?:use|keep|go)",
    "ll use": "I'?ll use",
    "prefer": "prefer(?:red|s)?",
    "switch": "switch(?:ed|ing)? to",
    "intentional": "intentional(?:ly)?",
    "design": "by design",
    "agreed": "agreed",
    "trade": "trade-?off",
    "the fix": "the fix (?:is|was)",
    "the solution": "the solution (?:is|was)",
}
_REASONS = {
    "because": "because",
    "the reason": "the reason",
    "root cause": "root cause",
    "turns out": "turns out",
    "the issue": "the issue (?:is|was)",
    "the problem": "the problem (?:is|was)",
    "the cause": "the cause (?:is|was)",
    "the bug": "the bug (?:is|was)",
    "so that": "so that",
    "due to": "due to",
    "since": "since (?:it|the|we)",
    "that's why": "that's why",
    "which means": "which means",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cues:
    """Cue words, looked for with a pattern only in what has a part of one."""

    parts: tuple[str, ...]
    pattern: re.Pattern[str]

    def are_in(self, sentence: str) -> bool:
        """Whether a sentence has one of the cues."""
        # Letters beyond ASCII are cues themselves, or some of their letters in another case.
        may_be = not sentence.isascii() or any(map(sentence.lower().__contains__, self.parts))
        return may_be and self.pattern.search(sentence) is not None


@cache
def _choice() -> _Cues:
    return _cues(_CHOICES, "决定|改用|采用|选择|改为|而不是|建议使用|决议|ことにし|採用|に決め|ではなく|代わりに")


@cache
def _reason() -> _Cues:
    return _cues(_REASONS, "因为|由于|原因|所以|之所以|なので|ためです|ために|理由|原因")


def _cues(by_part: Mapping[str, str], dense: str) -> _Cues:
    pattern = re.compile(rf"\b(?:{'|'.join(by_part.values())})\b|{dense}", re.IGNORECASE)
    return _Cues(parts=tuple(by_part), pattern=pattern)


def decisions(events: Sequence[Event]) -> tuple[Decision, ...]:
    """What was decided, in order: sentences of the assistant, and its questions with what the user answered.

    Other messages of the user are not searched: they are kept verbatim elsewhere.
    """
    found: dict[str, Decision] = {}
    asked = _Asked()
    for event in events:
        for decision in (*_sentences_of(event), *asked.answered(event)):
            found.pop(decision.text, None)
            found[decision.text] = decision
    return tuple(found.values())


def _sentences_of(event: Event) -> Iterator[Decision]:
    if event.kind is EventKind.ASSISTANT:
        for sentence in sentences(event.text):
            if weight := _weight(sentence):
                yield Decision(text=sentence, records=(event.record,), weight=weight)
    elif event.kind is EventKind.RESULT and event.text.startswith(_ANSWERED):
        yield Decision(text=opening(event.text, 2 * _MOST_CHARS), records=(event.record,), weight=4.0)


class _Asked:
    """The assistant's last question, until somebody goes on."""

    def __init__(self) -> None:
        self.question = ""
        self.record = -1

    def answered(self, event: Event) -> Iterator[Decision]:
        """The question with its answer, if this event is the user's short answer."""
        if event.kind is EventKind.ASSISTANT:
            self.question, self.record = last_question(event.text), event.record
            return
        if event.kind is EventKind.USER and self.question and len(event.text) <= _MOST_ANSWER_CHARS:
            text = f'{opening(self.question, _MOST_CHARS)} → "{one_line(event.text)}"'
            yield Decision(text=text, records=records_of((self.record, event.record)), weight=_ANSWER_WEIGHT)
        self.question = ""


def _weight(sentence: str) -> float:
    if not _LEAST_CHARS <= len(sentence) <= _MOST_CHARS or sentence.endswith((*COLONS, *QUESTION_MARKS)):
        return 0.0
    chooses, reasons = _choice().are_in(sentence), _reason().are_in(sentence)
    # "The problem is clear." names no reason.
    tells = chooses or not sentence.isascii() or len(sentence.split()) >= _LEAST_REASON_WORDS
    return 2.0 * chooses + 1.0 * reasons if tells else 0.0


def decision_items(found: Sequence[Decision], budget_tokens: int, meter: Meter) -> tuple[Item, ...]:
    """The strongest and newest decisions that fit, in the order they were made."""
    ranked = sorted(range(len(found)), key=lambda at: (-(found[at].weight + _RECENCY * at / len(found)), -at))
    items = [Item(text=one.text, records=one.records) for one in found]
    taken = {item.text for item in chosen(_spread(items[at] for at in ranked), budget_tokens, meter)}
    return tuple(item for item in items if item.text in taken)


def _spread(items: Iterable[Item]) -> Iterator[Item]:
    """The items without all but the first few of one message: what follows argues for the same."""
    seen: Counter[tuple[int, ...]] = Counter()
    for item in items:
        seen[item.records] += 1
        if not item.records or seen[item.records] <= _MOST_PER_MESSAGE:
            yield item


def last_decision(found: Sequence[Decision]) -> Decision | None:
    """The newest sentence that chooses (a reason alone is none)."""
    return next((one for one in reversed(found) if one.weight >= 2.0), None)
