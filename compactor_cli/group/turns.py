"""Turns: what a user asked, and everything up to what they asked next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compactor_cli.model.transcript import Media, Message, Role, Text

# Clients put these elements into user messages by themselves; none of them is typed by a person.
INJECTED_TAGS = (
    "system-reminder",
    "environment_context",
    "environment_details",
    "user_instructions",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "command-name",
    "command-message",
    "command-args",
    "task-notification",
    "turn_aborted",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Records ``start <= i < stop``; ``messages[start]`` holds the user's words."""

    start: int
    stop: int


def is_user_words(message: Message) -> bool:
    """Whether a person speaks here: not a tool result, a summary, bookkeeping, or a client's insertion only."""
    if message.role is not Role.USER or message.superseded or message.summary is not None or message.results:
        return False
    if any(isinstance(part, Media) for part in message.parts):
        return True
    return any(isinstance(part, Text) and _has_words(part.text) for part in message.parts)


def _has_words(text: str) -> bool:
    rest = text.lstrip()
    while rest.startswith("<"):
        opening = re.match(r"<([a-z_-]+)>", rest)
        if opening is None or opening[1] not in INJECTED_TAGS:
            return True
        end = rest.find(f"</{opening[1]}>")
        if end < 0:
            return False
        rest = rest[end + len(opening[1]) + 3 :].lstrip()
    return bool(rest)


def turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """All turns, in order. Records before the first user's words belong to none."""
    starts = [index for index, message in enumerate(messages) if is_user_words(message)]
    stops = [*starts[1:], len(messages)]
    return tuple(Turn(start=start, stop=stop) for start, stop in zip(starts, stops, strict=bool(starts)))


def newest_request(messages: Sequence[Message]) -> int:
    """The record in which the user spoke last; -1 if none did."""
    return next((i for i in range(len(messages) - 1, -1, -1) if is_user_words(messages[i])), -1)
