"""tau2-bench: messages with flat calls (``{"id", "name", "arguments"}``) and results that are keyed by ``id``.

The simulated user has tools as well: user messages may hold calls, and results say whose they are.
"""

from __future__ import annotations

from typing import Any

from compactor_cli.formats import chat
from compactor_cli.formats.chat_dialect import ChatDialect
from compactor_cli.formats.holds import RUN, Holds


class Tau(ChatDialect):
    """The dialect of tau2-bench's simulations."""

    name = "tau"
    title = "tau2-bench messages"
    paths = (("messages",), ("simulation_run", "messages"))
    holds = RUN | Holds.IDS | Holds.ERRORS | Holds.TIMES | Holds.USAGE

    def score(self, value: Any) -> int:
        """3 for a flat call and for a result with ``requestor``; 2 for a message with ``turn_idx``."""
        if not chat.is_chat(value):
            return 0
        calls = value.get("tool_calls")
        if isinstance(calls, list) and calls:
            return 3 if all(map(_is_flat, calls)) else 0
        if value["role"] == "tool":
            return 0 if "tool_call_id" in value else 3 if "requestor" in value else 1
        return 2 if "turn_idx" in value else 1

    def starts(self, value: Any) -> bool:
        """Whether it is the first message of a simulation."""
        return chat.is_chat(value) and value.get("turn_idx") == 0 and type(value["turn_idx"]) is int


def _is_flat(call: Any) -> bool:
    return isinstance(call, dict) and "function" not in call and "name" in call and "arguments" in call


DIALECT = Tau()
