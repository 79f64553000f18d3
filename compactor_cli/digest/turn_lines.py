"""Turns: from one message of the user to the next, and where one ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compactor_cli.digest.quote import one_line, opening
from compactor_cli.digest.transcript_events import Event, EventKind

_NAME_CHARS = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestTurn:
    """What was asked, and how it ended. ``first``, ``last``: positions of its events.

    ``closing``: position of the last message of the assistant, -1 where it said nothing.
    """

    number: int
    asked: str
    first: int
    last: int
    closing: int


def turns_of(events: Sequence[Event]) -> tuple[DigestTurn, ...]:
    """The turns in order; turn 0 is what comes before the first message, if anything does."""
    found: list[DigestTurn] = []
    start = 0
    for number in range(1, len(events) + 1):
        if number == len(events) or events[number].turn != events[start].turn:
            found.append(_turn(events, start, number))
            start = number
    return tuple(found) if events else ()


def _turn(events: Sequence[Event], start: int, stop: int) -> DigestTurn:
    asked = " ".join(one_line(event.text) for event in events[start:stop] if event.kind is EventKind.USER)
    spoken = (number for number in range(stop - 1, start - 1, -1) if events[number].kind is EventKind.ASSISTANT)
    return DigestTurn(number=events[start].turn, asked=asked, first=start, last=stop - 1, closing=next(spoken, -1))


def finals(turns: Sequence[DigestTurn]) -> frozenset[int]:
    """The positions of the messages that end a turn."""
    return frozenset(turn.closing for turn in turns if turn.closing >= 0)


def line_of(turn: DigestTurn, events: Sequence[Event], chars: int, changed: Sequence[str] = ()) -> str:
    """``"asked" → changed files → how the assistant's last message begins``, in about this many characters."""
    asked = opening(turn.asked, min(max(chars // 3, 40), _NAME_CHARS))
    files = opening(", ".join(changed), max(chars // 3, 30))
    left = chars - len(asked) - len(files)
    closing = opening(events[turn.closing].text, max(40, left)) if turn.closing >= 0 else ""
    return " → ".join(part for part in (f'"{asked}"' if asked else "", files, closing) if part)


def shared_line(turns: Sequence[DigestTurn], events: Sequence[Event], chars: int) -> str:
    """One line for turns of one topic: what was asked in each, and what came of the last."""
    names = " · ".join(filter(None, map(name_of, turns)))
    outcome = line_of(replace(turns[-1], asked=""), events, max(40, chars - len(names)))
    return f"{names} → {outcome}" if names and outcome else names


def name_of(turn: DigestTurn) -> str:
    """The first words of what was asked, quoted."""
    asked = opening(turn.asked, _NAME_CHARS)
    return f'"{asked}"' if asked else ""
