"""History: every turn in one line — what was asked, what was done, what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log2

from compactor_cli.core.summary import Item
from compactor_cli.summarise.digest.commands import Run, shown
from compactor_cli.summarise.digest.events import Event, EventKind, ToolKind
from compactor_cli.summarise.digest.language import Words
from compactor_cli.summarise.digest.quote import ELLIPSIS, Meter, head, one_line, opening, records_of
from compactor_cli.summarise.digest.touches import Act, Touch
from compactor_cli.summarise.digest.user_words import Said

# A turn's line says something from this size on; below it, old turns share a line.
_LEAST_TOKENS = 24
MILESTONE_TOKENS = 12
_TURNS_PER_MILESTONE = 6
_CHARS_PER_TOKEN = 4
# A request that is quoted elsewhere is named by its first words.
_NAME_CHARS = 70
# The newest turn gets this many times the room of the oldest.
_RECENCY = 3.0
_REMEMBERED_CHARS = 320
_REMEMBERED_TURNS = 400
_LOOKUPS = ("get", "find", "list", "search", "read", "fetch", "query", "check", "lookup", "think", "calculate", "show")


@dataclass(slots=True, kw_only=True)
class Turn:
    """What happened between one message of the user and the next. ``line``: what an earlier summary said of it.

    ``goes_on``: it is the rest of a turn that an earlier summary told.
    """

    number: int
    asked: str = ""
    answers: str = ""
    is_short: bool = True
    records: list[int] = field(default_factory=list)
    edited: dict[str, None] = field(default_factory=dict)
    ran: dict[str, Run] = field(default_factory=dict)
    called: dict[str, None] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    closing: str = ""
    events: int = 0
    line: str = ""
    goes_on: bool = False


def turns(events: Sequence[Event], said: Sequence[Said], touches: Sequence[Touch], runs: Sequence[Run]) -> list[Turn]:
    """The turns in order; turn 0 is what comes before the first message, if anything does."""
    found: dict[int, Turn] = {}
    for event in events:
        if event.kind is EventKind.SUMMARY:
            continue
        turn = found.setdefault(event.turn, Turn(number=event.turn))
        turn.records.append(event.record)
        turn.events += 1
        _tell(turn, event)
    for message in said:
        if message.turn in found:
            found[message.turn].is_short &= message.is_short
            found[message.turn].answers = message.answers
    for touch in touches:
        turn = found[events[touch.event].turn]
        (turn.read if touch.act is Act.READ else turn.edited)[touch.path] = None
    for run in runs:
        if not run.is_look:
            found[events[run.event].turn].ran[run.key] = run
    return [found[number] for number in sorted(found)]


def renamed(found: Sequence[Turn], names: Mapping[str, str]) -> list[Turn]:
    """The turns with other names for the files that were worked on."""

    def changed(paths: Mapping[str, None]) -> dict[str, None]:
        return dict.fromkeys(names.get(path, path) for path in paths)

    return [replace(turn, edited=changed(turn.edited), read=changed(turn.read)) for turn in found]


def _tell(turn: Turn, event: Event) -> None:
    if event.kind is EventKind.USER:
        turn.asked = f"{turn.asked} {one_line(event.text)}".strip()
    elif event.kind is EventKind.ASSISTANT:
        turn.closing = event.text
    elif event.kind is EventKind.CALL and event.tool is ToolKind.OTHER:
        turn.called[_call_words(event)] = None


def _call_words(event: Event) -> str:
    """A call of another tool in one line: its name, and what it was given if it changes something."""
    lines = event.text.split("\n")
    if lines[0].lower().startswith(_LOOKUPS) or len(event.text) > 300:
        return head(lines[0], 60)
    return " ".join(line.strip() for line in lines)


def turn_items(found: Sequence[Turn], budget_tokens: int, meter: Meter, words: Words) -> dict[int, Item]:
    """A line for each turn, by the turn's number; the oldest share lines where there is no room for one each."""
    single = len(found)
    while single > 1 and single * _LEAST_TOKENS + (len(found) - single) * MILESTONE_TOKENS > budget_tokens:
        single -= 1
    old, new = list(found[: len(found) - single]), found[len(found) - single :]
    items = _milestones(old, budget_tokens - single * _LEAST_TOKENS, meter, words)
    left = budget_tokens - sum(meter.item(item) for item in items.values())
    items.update(_lines(new, left, meter, words))
    return items


def remembered_lines(found: Sequence[Turn], words: Words) -> tuple[str, ...]:
    """A line for each turn for the next digest, with more than fits today; the newest turns where there are many."""
    lines: list[str] = []
    for turn in found:
        line = turn.line or line_text(turn, _REMEMBERED_CHARS, words)
        if turn.goes_on and lines:
            lines[-1] = opening(f"{lines[-1]} → {line}", 2 * _REMEMBERED_CHARS)
        elif line:
            lines.append(line)
    return tuple(lines[-_REMEMBERED_TURNS:])


def _milestones(found: Sequence[Turn], budget_tokens: int, meter: Meter, words: Words) -> dict[int, Item]:
    """Old turns, several on a line, by what was asked; the oldest are left out where even that is too much."""
    items: dict[int, Item] = {}
    groups = [found[start : start + _TURNS_PER_MILESTONE] for start in range(0, len(found), _TURNS_PER_MILESTONE)]
    left = budget_tokens
    for group in reversed(groups):
        asked = [name for turn in group if (name := _name(turn, words))]
        item = Item(text=" · ".join(asked), records=records_of(r for turn in group for r in turn.records))
        cost = meter.item(item)
        if not asked or cost > left:
            continue
        items[group[0].number] = item
        left -= cost
    return items


def _name(turn: Turn, words: Words) -> str:
    """A few words by which an old turn is known again."""
    most = MILESTONE_TOKENS * _CHARS_PER_TOKEN
    if turn.line:
        return opening(turn.line.partition(" → ")[0], most)
    text = opening(turn.asked, most)
    return words.quoted(text) if text else ""


def _lines(found: Sequence[Turn], budget_tokens: int, meter: Meter, words: Words) -> dict[int, Item]:
    weights = [_weight(position, turn, len(found)) for position, turn in enumerate(found)]
    left, weight_left = float(budget_tokens), sum(weights)
    items: dict[int, Item] = {}
    # Oldest first: what a short turn does not use is there for the newer ones.
    for turn, weight in zip(found, weights, strict=True):
        room = int(left * weight / weight_left)
        weight_left -= weight
        item = _line(turn, room, meter, words)
        if item is None:
            continue
        cost = meter.item(item)
        if cost <= left:
            items[turn.number] = item
            left -= cost
    return items


def _weight(position: int, turn: Turn, number: int) -> float:
    age = 0.0 if turn.line else position / max(1, number - 1)
    return (1.0 + (_RECENCY - 1.0) * age) * log2(3 + turn.events)


def _line(turn: Turn, room_tokens: int, meter: Meter, words: Words) -> Item | None:
    """The turn's line within its room, made shorter until it fits."""
    records = records_of(turn.records[:1] + turn.records[-1:])
    chars = max(room_tokens - 8, 10) * _CHARS_PER_TOKEN
    item = Item(text=line_text(turn, chars, words), records=records)
    while item.text and meter.item(item) > room_tokens and chars > 40:
        chars = int(chars * 0.8)
        item = Item(text=line_text(turn, chars, words), records=records)
    return item if item.text else None


def line_text(turn: Turn, chars: int, words: Words) -> str:
    """``“asked” → edited a, b; ran `c` → closing words`` in about so many characters."""
    if turn.line:
        return opening(turn.line, chars)
    # A long request stands verbatim among the user's words: here a few words of it name the turn.
    most = chars if turn.is_short else min(max(chars // 4, 40), _NAME_CHARS)
    asked = opening(turn.asked, min(most, max(chars // 2, 40)))
    parts = [words.quoted(asked) if asked else words.since if turn.goes_on else words.before]
    if asked and turn.answers and (before := opening(turn.answers, chars // 3)):
        parts.insert(0, before)
    done = _done(turn, max(0, (chars - sum(map(len, parts))) // 2), words)
    parts += [done] if done else []
    if not (asked or done or turn.closing):
        return ""
    left = chars - sum(map(len, parts))
    closing = opening(turn.closing, left) if left > 24 else ""
    return " → ".join([*parts, closing] if closing else parts)


def _done(turn: Turn, chars: int, words: Words) -> str:
    groups = (
        (words.edited, list(turn.edited)),
        (words.ran, [f"`{short}`" for run in reversed(turn.ran.values()) if (short := _short(run))]),
        (words.called, list(turn.called)),
        (words.read, [] if turn.edited or turn.ran else list(turn.read)),
    )
    told: list[str] = []
    left = chars
    for word, names in groups:
        shown_names = _fitting(names, left - len(word))
        if shown_names:
            text = f"{word} {', '.join(shown_names)}" + (f" {ELLIPSIS}" if len(shown_names) < len(names) else "")
            told.append(text)
            left -= len(text)
    return words.stop.join(told)


def _short(run: Run) -> str:
    line = shown(run.key)
    return line if len(line) <= 80 else f"{head(line, 80)} {ELLIPSIS}"


def _fitting(names: Sequence[str], chars: int) -> list[str]:
    fitting: list[str] = []
    for name in names:
        if len(name) + 2 > chars:
            break
        fitting.append(name)
        chars -= len(name) + 2
    return fitting
