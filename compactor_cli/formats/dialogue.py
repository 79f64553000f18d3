"""Dialogues: turns of a speaker and an utterance, in corpora of service calls and in exports of chats.

``{"turns": [{"speaker": "USER", "utterance": ...}]}`` (Schema-Guided Dialogue, MultiWOZ 2.2, JMultiWOZ),
``{"utterances": [{"speaker", "text"}]}`` (Taskmaster), ``{"chat_messages": [{"sender": "human", "text"}]}`` (exports of
claude.ai), ``{"chat_history": [{"role": "CHATBOT", "message"}]}`` (Cohere).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compactor_cli.formats import new_message as new_message
from compactor_cli.formats.base import Capabilities, Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.contents import string
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.located_parts import array_path, at
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.transcript import Message, Record, Role, Text, Transcript

_PATHS: tuple[JsonPath, ...] = tuple(
    (name,) for name in ("turns", "utterances", "chat_messages", "chat_history", "dialogue", "trajectory")
)
_SPEAKER_KEYS = ("speaker", "sender", "role")
_TEXT_KEYS = ("utterance", "text", "message")
_USERS = frozenset({"user", "usr", "human", "customer", "client", "caller"})
_ASSISTANTS = frozenset({"assistant", "agent", "ai", "bot", "chatbot", "model", "gpt", "operator"})
# The name of the answering side in corpora of dialogues, and of a prompt's author in logs of models.
_SYSTEM = "system"


class Dialogue:
    """The dialect of dialogues of two speakers."""

    name = "dialogue"
    title = "Dialogue turns"
    holds = Capabilities.SYSTEM | Capabilities.TIMES | Capabilities.METADATA

    def array_path(self, value: Any) -> JsonPath | None:
        """The first of the known keys with turns, or a bare array of them."""
        return array_path(value, _PATHS, _leads)

    def score(self, value: Any) -> int:
        """2 for a turn, and for a row of them."""
        return 2 if is_turn(value) or (isinstance(value, dict) and self.array_path(value) is not None) else 0

    def starts(self, value: Any) -> bool:
        """Never: no turn says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per turn; ``system`` is the answering side where nobody else answers."""
        roles = _roles(record.value for record in records)
        return tuple(_message(record.value, roles) for record in records)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the row names."""
        return string(at(row, ("model",)))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Turns with the keys and the speakers' names of the file's own."""
        return new_message.insert(transcript, cut, insertions, _shape(transcript))

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The turn with its utterance replaced, and with the blocks that say the same (claude.ai)."""
        value = parse(record.raw)
        if 0 not in texts:
            return record.raw
        blocks = {"content": [{"type": "text", "text": texts[0]}]} if isinstance(value.get("content"), list) else {}
        return dump({**value, _text_key(value): texts[0], **blocks}, record.raw)


def is_turn(value: Any) -> bool:
    """Whether this is a turn: a speaker of a known name, and what was said. Lines of clients have a type alongside."""
    if not isinstance(value, dict) or "type" in value or _name(value) not in (*_USERS, *_ASSISTANTS, _SYSTEM):
        return False
    has_content = "role" in value and "content" in value
    return bool(_text_key(value)) and not has_content and "parts" not in value


def _leads(elements: Any) -> bool:
    """Whether an array begins with turns, of more than one speaker where there is more than one turn."""
    if not isinstance(elements, list) or not elements or not all(map(is_turn, elements[:2])):
        return False
    return len(elements) == 1 or len({_name(element) for element in elements if isinstance(element, dict)}) > 1


def _key(value: Mapping[str, Any], keys: Iterable[str]) -> str:
    return next((key for key in keys if isinstance(value.get(key), str)), "")


def _text_key(value: Mapping[str, Any]) -> str:
    return _key(value, _TEXT_KEYS) or next((key for key in _TEXT_KEYS if key in value and value[key] is None), "")


def _name(value: Mapping[str, Any]) -> str:
    return string(value.get(_key(value, _SPEAKER_KEYS))).lower()


def _roles(values: Iterable[Any]) -> dict[str, Role]:
    """Who the speakers are."""
    names = {_name(value) for value in values if is_turn(value)}
    system = Role.ASSISTANT if names.isdisjoint(_ASSISTANTS) and len(names) > 1 else Role.SYSTEM
    return {_SYSTEM: system, **dict.fromkeys(_USERS, Role.USER), **dict.fromkeys(_ASSISTANTS, Role.ASSISTANT)}


def _message(value: Any, roles: Mapping[str, Role]) -> Message:
    if not is_turn(value):
        return Message(role=Role.META)
    role, text = roles[_name(value)], string(value[_text_key(value)])
    parts = (Text(text=text),) if text else ()
    timestamp = string(value.get("timestamp")) or string(value.get("created_at"))
    return Message(role=role, parts=parts, timestamp=timestamp, summary=summary_of(role, parts))


def _shape(transcript: Transcript) -> new_message.TurnShape:
    """The keys and names of this dialogue."""
    spoken = zip(transcript.records, transcript.messages, strict=True)
    turns = [(record.value, message.role) for record, message in spoken if not message.is_meta]
    first = turns[0][0] if turns else {"speaker": "user", "text": ""}
    speaker_key = _key(first, _SPEAKER_KEYS)

    def names(role: Role, usual: str) -> tuple[str, ...]:
        found = dict.fromkeys(value[speaker_key] for value, own in turns if own is role and speaker_key in value)
        return (*found, usual)

    users, assistants = names(Role.USER, "user"), names(Role.ASSISTANT, "assistant")
    return new_message.TurnShape(role_key=speaker_key, text_key=_text_key(first), user=users, assistant=assistants)


DIALECT = Dialogue()
