"""Who&When: failures of teams of agents, ``{"question", "history": [{"content", "role", "name"}], "mistake_agent"}``.

Each agent has a name; the roles beside it are those of a chat in which the others speak as the user. The
task comes first; the terminal that runs the code answers as a tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats.base import Cut, Insertion, JsonPath
from compactor_cli.formats.contents import content_parts, string, with_texts
from compactor_cli.formats.holds import Holds
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.places import like_keys
from compactor_cli.formats.previous import summary_of
from compactor_cli.model.records import Record
from compactor_cli.model.transcript import Message, Role, Transcript

_ROW_KEYS = ("mistake_agent", "mistake_step", "question_ID")
_TERMINALS = frozenset({"computer_terminal", "computerterminal", "terminal"})
_ROLES = {"human": Role.USER, "system": Role.SYSTEM}
# Who speaks in a summary: no agent of the team.
_SUMMARY_NAME = "summary"


class WhoWhen:
    """The dialect of the Who&When data set."""

    name = "who-when"
    title = "Who&When history"
    holds = Holds.SYSTEM | Holds.METADATA

    def array_path(self, value: Any) -> JsonPath | None:
        """``history`` of a row that says whose mistake it was."""
        is_row = isinstance(value, dict) and any(key in value for key in _ROW_KEYS)
        return chat.array_at(value, (("history",),)) if is_row else None

    def score(self, value: Any) -> int:
        """3 for a row. Its messages look like any other."""
        return 3 if isinstance(value, dict) and self.array_path(value) is not None else 0

    def starts(self, value: Any) -> bool:
        """Never: no message says that it is the first."""
        return False

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record: the task is the user's, the rest the agents'."""
        return tuple(_message(record.value, is_first=i == 0) for i, record in enumerate(records))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """Empty: the data set does not name it."""
        return ""

    def insert(self, transcript: Transcript, cut: Cut, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with the keys of the file's own, the summary by no agent of the team."""
        first = transcript.records[0] if transcript.records else None
        like, raw = (first.value, first.raw) if first and isinstance(first.value, dict) else ({}, b"")
        return tuple(dump(_written(item, like), raw) for item in insertions)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with its text replaced."""
        value = parse(record.raw)
        return dump({**value, "content": with_texts(value.get("content"), texts)}, record.raw)


def _message(value: Any, *, is_first: bool) -> Message:
    if not chat.is_chat(value):
        return Message(role=Role.META)
    parts = content_parts(value.get("content"))
    name, role = string(value.get("name")), string(value.get("role"))
    summary = summary_of(Role.USER, parts)
    if is_first or summary or (not name and role == "user"):
        return Message(role=_ROLES.get(role, Role.USER), parts=parts, summary=summary)
    if (name or role).lower() in _TERMINALS:
        return Message(role=Role.TOOL, parts=parts)
    return Message(role=_ROLES.get(role, Role.ASSISTANT), parts=parts)


def _written(item: Insertion, like: Mapping[str, Any]) -> dict[str, Any]:
    has_names = "name" in like
    role = item.role.value if has_names or item.role is not Role.USER else "human"
    name = {"name": _SUMMARY_NAME} if has_names else {}
    return like_keys({"content": item.text, "role": role, **name}, like)


DIALECT = WhoWhen()
