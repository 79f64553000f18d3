"""Turns: what a user asked, and everything up to what they asked next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compactor_cli.formats.harness import user_text
from compactor_cli.model.transcript import Media, Message, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Records ``start <= i < stop``; ``messages[start]`` holds the user's words."""

    start: int
    stop: int


def is_user_words(message: Message) -> bool:
    """Whether a person speaks here: not a tool result, a summary, bookkeeping, or a client's insertion only."""
    if message.role is not Role.USER or message.superseded or message.summary is not None or message.results:
        return False
    if message.own_words == "":
        return False
    if any(isinstance(part, Media) for part in message.parts):
        return True
    return bool(user_text(message))


def turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """All turns, in order. Records before the first user's words belong to none."""
    starts = [index for index, message in enumerate(messages) if is_user_words(message)]
    stops = [*starts[1:], len(messages)]
    return tuple(Turn(start=start, stop=stop) for start, stop in zip(starts, stops, strict=bool(starts)))


def newest_request(messages: Sequence[Message]) -> int:
    """The record in which the user spoke last; -1 if none did."""
    return next((i for i in range(len(messages) - 1, -1, -1) if is_user_words(messages[i])), -1)
