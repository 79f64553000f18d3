"""The user's own words: every message verbatim, long ones from both ends, within a share of the budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.questions import last_words
from compactor_cli.digest.quote import Meter, clipped, records_of, verbatim
from compactor_cli.digest.words import dense_share
from compactor_cli.model.summary import Item

# A message of fewer words is told whole in the history of its turn (and has no 8-word run to be verbatim about).
# Where a conversation is all talk, most messages are short and hold the names and numbers that matter.
SHORT_WORDS, SHORT_WORDS_OF_TALK = 8, 4
_CHARS_PER_WORD = 8
# A longer message says itself what it is about.
_MOST_REPLY_CHARS = 80
_LEAST_TOKENS = 24
# Where clients quote what the user typed when a tool call was turned down (Claude Code).
_REJECTED = "the user said:\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of the user: its words, its record, its turn, and whether it is a few words only.

    ``answers``: what it replies to, where the assistant spoke just before it; ``asked``: the record of that.
    """

    text: str
    record: int
    turn: int
    is_short: bool = False
    answers: str = ""
    asked: int = -1


def _is_short(text: str, short_words: int) -> bool:
    """Whether a text has fewer words (Chinese and Japanese: about as many characters as so many words)."""
    weight = len(text) * (1 + dense_share(text))
    return len(text.split()) < short_words and weight < _CHARS_PER_WORD * short_words


def said(events: Sequence[Event], short_words: int = SHORT_WORDS) -> tuple[Said, ...]:
    """What the user said, in order, also when turning down a tool call; of equal messages only the newest."""
    found: dict[str, Said] = {}
    before: Event | None = None
    for event in events:
        words = event.text if event.kind is EventKind.USER else _rejection(event)
        text = verbatim(words)
        if text:
            found.pop(text, None)
            short = _is_short(text, short_words)
            message = Said(text=text, record=event.record, turn=event.turn, is_short=short)
            if before is not None and len(text) <= _MOST_REPLY_CHARS:
                message = replace(message, answers=last_words(before.text), asked=before.record)
            found[text] = message
        before = event if event.kind is EventKind.ASSISTANT else None
    return tuple(sorted(found.values(), key=lambda message: message.record))


def _rejection(event: Event) -> str:
    if event.kind is not EventKind.RESULT or not event.is_error or _REJECTED not in event.text[:600]:
        return ""
    return event.text.partition(_REJECTED)[2].partition("\n\nNote:")[0]


def user_items(messages: Sequence[Said], budget_tokens: int, meter: Meter) -> tuple[Item, ...]:
    """The messages as items in order, newest and first ones preferred where not all can be shown.

    The budget is shared by water-filling: short messages whole, the longest ones cut to the same size.
    """
    kept = _affordable([message for message in messages if not message.is_short], budget_tokens)
    costs = [meter.item(_item(message, _start(message.text, budget_tokens))) for message in kept]
    level = water_level(costs, budget_tokens)
    items = (
        _item(message, message.text if cost <= level else clipped(message.text, level - 8, meter))
        for message, cost in zip(kept, costs, strict=True)
    )
    return tuple(item for item in items if item.text)


def _start(text: str, budget_tokens: int) -> str:
    """As much of a text as could matter for its cost: counting a pasted book would cost more than it tells."""
    return text[: budget_tokens * 12 + 200]


def _item(message: Said, text: str) -> Item:
    return Item(text=text, records=records_of((message.record,)))


def _affordable(messages: Sequence[Said], budget_tokens: int) -> list[Said]:
    """As many messages as can have a useful size: the newest, the first, then newest to oldest."""
    most = budget_tokens // _LEAST_TOKENS
    if len(messages) <= most:
        return list(messages)
    if most < 1:
        return []
    first, rest = list(messages[: most > 1]), messages[1:]
    return first + list(rest[len(rest) - (most - len(first)) :])


def water_level(costs: Iterable[int], budget: int) -> int:
    """The level L with Σ min(cost, L) as large as the budget allows; the largest cost if everything fits."""
    left = budget
    ordered = sorted(costs)
    for position, cost in enumerate(ordered):
        share = left // (len(ordered) - position)
        if cost > share:
            return share
        left -= cost
    return ordered[-1] if ordered else 0
