"""Turns by turns: trainers and APIs that want user and assistant to alternate, and a summary between such turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from compactor_cli.formats.base import Insertion, InsertionPoint
from compactor_cli.model.transcript import Message, Role, Transcript

# What stands between two turns of one side. It carries no information, so that nothing is learnt or concluded from it.
BRIDGE = "Understood."


def alternating(transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[Insertion, ...]:
    """The insertions so that turns alternate after them as they do in the transcript.

    Between two turns of the user's side stands a short answer; an acknowledgement next to another answer is left
    out. As they are where the transcript itself does not alternate. Results of tools are on the user's side.
    """
    messages = transcript.messages
    if any(one is other for one, other in pairwise(_sides(messages))):
        return tuple(insertions)
    before = next(_sides(messages[i] for i in reversed(cut.before)), None)
    after = next(_sides(messages[i] for i in cut.after), None)
    found: list[Insertion] = []
    for item in insertions:
        if item.role is not before:
            found.append(item)
        elif item.role is Role.USER:
            found += [_BRIDGE, item]
        before = item.role
    if found and found[-1].role is after:
        found = [*found, _BRIDGE] if after is Role.USER else found[:-1]
    return tuple(found)


_BRIDGE = Insertion(role=Role.ASSISTANT, text=BRIDGE)


def _sides(messages: Iterable[Message]) -> Iterator[Role]:
    """Whose turns these are: the user's or the assistant's."""
    roles = (message.role for message in messages if not message.superseded)
    return (Role.USER if role is Role.TOOL else role for role in roles if role not in (Role.META, Role.SYSTEM))
