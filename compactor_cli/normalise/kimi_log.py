"""What a log of Kimi Code comes to: the history that the client folds from its events.

A history is counted in messages: one per appended message, per step of the model and per tool result. A
``context.apply_compaction`` replaces the first ``compactedCount`` of them by its summary, or, with
``keptUserMessageCount``, by that many of the user's messages and the summary. Observed with Kimi Code 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compactor_cli.normalise.contents import string
from compactor_cli.normalise.places import at

Value = Mapping[str, Any]

APPEND = "context.append_message"
EVENT = "context.append_loop_event"
COMPACTION = "context.apply_compaction"
_STEP_EVENTS = ("content.part", "tool.call", "step.end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The history: the first record of each of its messages; ``step_of``: the first record of the step that a
    record is of; ``compactions``: the records that replaced something."""

    history: tuple[int, ...]
    step_of: Mapping[int, int]
    compactions: tuple[int, ...]


def fold(values: Sequence[Value]) -> Folded:
    """Fold the events of one session."""
    history: list[int] = []
    steps: dict[str, int] = {}
    step_of: dict[int, int] = {}
    compactions: list[int] = []
    for i, value in enumerate(values):
        kind = value.get("type")
        event = event_of(value)
        if kind == APPEND or event.get("type") == "tool.result":
            history.append(i)
        elif event.get("type") == "step.begin":
            history.append(i)
            steps[string(event.get("uuid"))] = step_of[i] = i
        elif event.get("type") in _STEP_EVENTS:
            step_of[i] = steps.get(string(event.get("stepUuid")) or string(event.get("uuid")), i)
        elif kind == COMPACTION and (count := compacted_count(value)) is not None:
            history = [*_kept_users(values, history[:count], value), i, *history[count:]]
            compactions.append(i)
        elif kind == "context.undo":
            history = _undone(values, history, value.get("count"))
        elif kind == "context.clear":
            history = []
    return Folded(history=tuple(history), step_of=step_of, compactions=tuple(compactions))


def event_of(value: Value) -> Value:
    """The event of the model's loop that a record holds; empty for all others."""
    event = value.get("event") if value.get("type") == EVENT else None
    return event if isinstance(event, dict) else {}


def summary_text(value: Value) -> str:
    """The summary of a compaction, as it is sent."""
    text = value.get("contextSummary") if isinstance(value.get("contextSummary"), str) else value.get("summary")
    return string(text)


def compacted_count(value: Value) -> int | None:
    """How many messages a compaction replaces. None: the client ignores this record."""
    counts = (value.get("compactedCount"), value.get("count"))
    count = next((count for count in counts if isinstance(count, int)), None)
    has_summary = isinstance(value.get("summary"), (str, dict)) or isinstance(value.get("contextSummary"), str)
    return count if has_summary else None


def is_users(value: Value) -> bool:
    """Whether this is a message that the user wrote."""
    message = value.get("message")
    if value.get("type") != APPEND or not isinstance(message, dict) or message.get("role") != "user":
        return False
    return at(message, ("origin", "kind")) in (None, "user")


def _kept_users(values: Sequence[Value], replaced: Sequence[int], compaction: Value) -> list[int]:
    count, first = compaction.get("keptUserMessageCount"), compaction.get("keptHeadUserMessageCount")
    if not isinstance(count, int):
        return []
    users = [i for i in replaced if is_users(values[i])]
    first = min(first, count) if isinstance(first, int) else 0
    rest = users[first:]
    return users[:first] + rest[max(len(rest) - (count - first), 0) :]


def _undone(values: Sequence[Value], history: list[int], count: Any) -> list[int]:
    """Without the user's last messages and all behind them; never further back than a compaction."""
    left = count if isinstance(count, int) else 0
    for at_ in range(len(history) - 1, -1, -1):
        if left <= 0 or values[history[at_]].get("type") == COMPACTION:
            break
        if is_users(values[history[at_]]):
            left -= 1
            if left == 0:
                return history[:at_]
    return history
