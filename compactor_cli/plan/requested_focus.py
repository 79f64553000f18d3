"""Asked: whether a transcript itself asks to be compacted, by a tool call."""

from __future__ import annotations

from collections.abc import Sequence

from compactor_cli.group.exchanges import is_user_words
from compactor_cli.model.transcript import Message


def asked_focus(messages: Sequence[Message], tool: str) -> str | None:
    """The ``focus`` of the last call of this tool in the newest turn (empty if it names none); None: no such call."""
    for message in reversed(messages) if tool else ():
        for call in reversed(message.calls):
            if call.name == tool and not message.superseded:
                focus = call.arguments.get("focus") if not isinstance(call.arguments, str) else ""
                return focus if isinstance(focus, str) else ""
        if is_user_words(message) or message.summary is not None:
            break
    return None
