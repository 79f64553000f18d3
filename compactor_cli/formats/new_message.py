"""New messages that look like the file's own: the same keys in the same order, the same kind of content.

Readers of data sets want one set of keys (Arrow adds nulls for missing ones, some loaders refuse a file
that holds two shapes), so a new message takes the keys that all messages of its role have: with a value of its own,
or with null where that is what some of them say. What others say of themselves (a ``name``) is not repeated. Where
trainers and APIs want user and assistant to alternate, a summary between their turns is given a turn of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from compactor_cli.formats.base import Insertion, InsertionPoint
from compactor_cli.formats.contents import text_key
from compactor_cli.formats.jsontext import dumped
from compactor_cli.formats.sessions import derived_hex
from compactor_cli.model.transcript import Message, Role, Transcript

Value = Mapping[str, Any]

# Keys by which trainers leave a message out of the loss: neither summary nor acknowledgement is a target.
_UNTRAINED: Value = {"weight": 0, "train": False, "loss": False}
_TIMES = frozenset({"timestamp", "created_at", "time", "turn_idx"})
_IDS = frozenset({"id", "uuid", "message_id"})
# By these a reader knows the kind of a message; the same in all of them.
_KINDS = frozenset({"type", "object", "kind", "lang", "language"})


class TurnShape(NamedTuple):
    """How a dialect calls the speaker and the text, and its speakers' names."""

    role_key: str
    text_key: str
    user: tuple[str, ...]
    assistant: tuple[str, ...]


def insert(
    transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], shape: TurnShape
) -> tuple[bytes, ...]:
    """One record for each insertion, in the style of the records around."""
    near = (*reversed(cut.before), *cut.after)
    neighbour = next((value for i in near if isinstance(value := transcript.records[i].value, dict)), {})
    return dumped(transcript, (_message(transcript, item, neighbour, shape) for item in insertions))


def _message(transcript: Transcript, item: Insertion, neighbour: Value, shape: TurnShape) -> dict[str, Any]:
    both = zip(transcript.records, transcript.messages, strict=True)
    spoken = [record.value for record, message in both if message.role is item.role and not message.calls]
    peers = [value for value in spoken if isinstance(value, dict) and shape.text_key in value]
    # What this speaker is called here; the usual name where the file has several.
    usual = shape.assistant if item.role is Role.ASSISTANT else shape.user
    used = {value.get(shape.role_key) for value in peers}
    name = next((name for name in usual if name in used), usual[0])
    texts = {shape.role_key: name, shape.text_key: _content(item.text, peers, shape)}
    message: dict[str, Any] = {}
    for key in _keys(peers, transcript, shape):
        if key in texts:
            message[key] = texts[key]
        elif key in _UNTRAINED:
            message[key] = _UNTRAINED[key]
        elif key in _IDS:
            message[key] = derived_hex(transcript.sha256, item.text, 24)
        elif key in _TIMES:
            message[key] = neighbour.get(key)
        # A kind that all peers say; null where some say that.
        elif key in _KINDS and isinstance(kind := peers[0][key], str) and all(peer[key] == kind for peer in peers):
            message[key] = kind
        elif any(peer[key] is None for peer in peers):
            message[key] = None
    return message


def _keys(peers: Sequence[Value], transcript: Transcript, shape: TurnShape) -> list[str]:
    """The keys that all peers have, and those that leave a message out of training if any has them."""
    if not peers:
        known = (shape.role_key, shape.text_key)
        first = next((record.value for record in transcript.records if isinstance(record.value, dict)), {})
        return [key for key in first if key in known] if all(key in first for key in known) else list(known)
    marks = [key for key in _UNTRAINED if any(key in peer for peer in peers)]
    common = [key for key in peers[0] if all(key in peer for peer in peers)]
    return common + [key for key in marks if key not in common]


def _content(text: str, peers: Sequence[Value], shape: TurnShape) -> Any:
    """The text as a string, or as a block where all peers write blocks."""
    contents = [peer[shape.text_key] for peer in peers]
    if not contents or not all(isinstance(content, list) and content for content in contents):
        return text
    blocks = [block for content in contents for block in content]
    if all(isinstance(block, str) for block in blocks):
        return [text]
    objects = [block for block in blocks if isinstance(block, dict)]
    key = "value" if any(text_key(block) == "value" for block in objects) else "text"
    return [{"type": "text", key: text}] if any("type" in block for block in objects) else [{"text": text}]


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
