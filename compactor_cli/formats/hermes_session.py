"""Hermes sessions: a document with ``messages`` in OpenAI's shape, and the number of them beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats.base import JsonPath
from compactor_cli.formats.chat_dialect import ChatDialect
from compactor_cli.formats.frames import with_key
from compactor_cli.formats.holds import REQUEST, Holds
from compactor_cli.model.transcript import Transcript

_ROW_KEYS = frozenset({"session_id", "session_start"})


class HermesSession(ChatDialect):
    """The dialect of Hermes' session files."""

    name = "hermes-session"
    title = "Hermes session"
    holds = REQUEST | Holds.THINKING

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a session."""
        is_session = isinstance(value, dict) and value.keys() >= _ROW_KEYS
        return chat.array_at(value, self.paths) if is_session else None

    def score(self, value: Any) -> int:
        """3 for a session. Its messages look like any other."""
        return 3 if isinstance(value, dict) and self.array_path(value) is not None else 0

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """``message_count`` is the number of messages."""
        if not isinstance(source.row, dict) or not isinstance(source.row.get("message_count"), int):
            return composed
        return replace(composed, frame=with_key(composed.frame, "message_count", len(composed.records)))


DIALECT = HermesSession()
