"""History: a line for each recent turn, and for the older ones a line for each topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import ceil, log2

from compactor_cli.digest.language import Words
from compactor_cli.digest.quote import ELLIPSIS, Meter, opening, records_of
from compactor_cli.digest.turns import Turn, done_text, line_text
from compactor_cli.digest.words import terms
from compactor_cli.group.topics import topics
from compactor_cli.model.summary import Item

# A turn's line says something from this size on; below it, old turns share a line.
_LEAST_TOKENS = 24
MILESTONE_TOKENS = 12
# A longer topic is told in several lines, as one would say next to nothing of each turn.
_TURNS_PER_MILESTONE = 8
_CHARS_PER_TOKEN = 4
# With ever so many turns, so much of the room is left to recent ones.
_RECENT_RATIO = 0.2
# The newest turn gets this many times the room of the oldest.
_RECENCY = 3.0
# What of a turn's texts is read to find its topic.
_TOPIC_CHARS = 2_000


def turn_items(found: Sequence[Turn], budget_tokens: int, meter: Meter, words: Words) -> dict[int, Item]:
    """A line for each turn, by its number; where there is no room for that, the oldest share one with their topic."""
    single = len(found)
    recent = int(budget_tokens * _RECENT_RATIO)
    least = max(1, recent // (2 * _LEAST_TOKENS))
    while single > least and single * _LEAST_TOKENS + (len(found) - single) * MILESTONE_TOKENS > budget_tokens:
        single -= 1
    old = len(found) - single
    items = _milestones(found, old, budget_tokens - max(recent, single * _LEAST_TOKENS), meter, words) if old else {}
    left = budget_tokens - sum(meter.item(item) for item in items.values())
    items.update(_lines([[turn] for turn in found[old:]], left, meter, words))
    return items


def _milestones(found: Sequence[Turn], old: int, budget_tokens: int, meter: Meter, words: Words) -> dict[int, Item]:
    """A line for each topic among the first ``old`` turns; the oldest are left out where even that is too much."""
    told = list(_stretches(found, old))
    return _lines(told[-max(1, budget_tokens // MILESTONE_TOKENS) :], budget_tokens, meter, words)


def _stretches(found: Sequence[Turn], old: int) -> Iterator[Sequence[Turn]]:
    """The first ``old`` turns by topic, long topics in parts of about the same length."""
    for topic in topics([_vocabulary(turn) for turn in found]):
        number = min(topic.stop, old) - topic.start
        parts = ceil(number / _TURNS_PER_MILESTONE)
        for part in range(parts):
            yield found[topic.start + number * part // parts : topic.start + number * (part + 1) // parts]


def _vocabulary(turn: Turn) -> list[str]:
    """What a turn is about: the words of what was asked, done and said last, and the files in it by name."""
    paths = [*turn.edited, *turn.read]
    said = (turn.asked, turn.closing, turn.line, " ".join(turn.ran), " ".join(turn.called), " ".join(paths))
    return [*paths, *(term for text in said for term in terms(text[:_TOPIC_CHARS]))]


def _lines(stretches: Sequence[Sequence[Turn]], budget_tokens: int, meter: Meter, words: Words) -> dict[int, Item]:
    weights = [_weight(position, stretch, len(stretches)) for position, stretch in enumerate(stretches)]
    left, weight_left = float(budget_tokens), sum(weights)
    items: dict[int, Item] = {}
    # Oldest first: what a short turn does not use is there for the newer ones.
    for stretch, weight in zip(stretches, weights, strict=True):
        room = int(left * weight / weight_left)
        weight_left -= weight
        item = _line(stretch, room, meter, words)
        if item is None:
            continue
        cost = meter.item(item)
        if cost <= left:
            items[stretch[0].number] = item
            left -= cost
    return items


def _weight(position: int, stretch: Sequence[Turn], number: int) -> float:
    age = 0.0 if stretch[-1].line else position / max(1, number - 1)
    return (1.0 + (_RECENCY - 1.0) * age) * sum(log2(3 + turn.events) for turn in stretch)


def _line(stretch: Sequence[Turn], room_tokens: int, meter: Meter, words: Words) -> Item | None:
    """The line of a turn, or of several, within its room, made shorter until it fits."""
    records = records_of(stretch[0].records[:1] + stretch[-1].records[-1:])
    chars = max(room_tokens - 8, 10) * _CHARS_PER_TOKEN
    item = Item(text=_text(stretch, chars, words), records=records)
    while item.text and meter.item(item) > room_tokens and chars > 40:
        chars = int(chars * 0.8)
        item = Item(text=_text(stretch, chars, words), records=records)
    return item if item.text else None


def _text(stretch: Sequence[Turn], chars: int, words: Words) -> str:
    """A turn's line; of several turns, what was asked first → what was done in all of them → what came of the last.

    Room that is left goes to the names of the other turns.
    """
    if len(stretch) == 1:
        return line_text(stretch[0], chars, words)
    asked = [name for turn in stretch if (name := _name(turn, max(chars // 2, 40), words))]
    done = done_text(_merged(stretch), chars // 4, words)
    closing = opening(_came_of(stretch[-1]), chars // 4)
    named = asked[: 1 + _fitting(asked[1:], chars - sum(map(len, (done, closing, *asked[:1]))))]
    if len(named) < len(asked):
        named.append(ELLIPSIS)
    return " → ".join(part for part in (" · ".join(named), done, closing) if part)


def _fitting(names: Sequence[str], chars: int) -> int:
    """How many of the names stand one after the other in so many characters."""
    lengths = accumulate(len(name) + len(" · ") for name in names)
    return sum(length <= chars for length in lengths)


def _name(turn: Turn, chars: int, words: Words) -> str:
    """A few words by which an old turn is known again."""
    most = min(chars, MILESTONE_TOKENS * _CHARS_PER_TOKEN)
    text = turn.asked
    if turn.line:
        parts = turn.line.split(" → ")
        asked = next((part for part in parts if part.startswith('"')), "")
        if not asked:
            return opening(parts[0], most)
        text = asked[1:].partition('" · ')[0].removesuffix('"')
    name = opening(text, most)
    return words.quoted(name) if name else ""


def _came_of(turn: Turn) -> str:
    """What the assistant said last, also where an earlier summary tells it."""
    return turn.closing or turn.line.partition(" → ")[2].rpartition(" → ")[2]


def _merged(stretch: Sequence[Turn]) -> Turn:
    """What was done in several turns, as if it were one."""
    whole = Turn(number=stretch[0].number)
    for turn in stretch:
        whole.edited |= turn.edited
        whole.ran |= turn.ran
        whole.called |= turn.called
        whole.read |= turn.read
    return whole
