"""What a log of Kimi Code comes to: the history that the client folds from its events.

A history is counted in messages: one per appended message, per step of the model and per tool result. A
``context.apply_compaction`` replaces the first ``compactedCount`` of them by its summary, or, with
``keptUserMessageCount``, by that many of the user's messages and the summary. Observed with Kimi Code 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compactor_cli.formats.contents import string
from compactor_cli.formats.located_parts import at

Value = Mapping[str, Any]

APPEND = "context.append_message"
EVENT = "context.append_loop_event"
COMPACTION = "context.apply_compaction"
_STEP_EVENTS = ("content.part", "tool.call", "step.end")
_BROKEN_OFF = ("interrupted", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The history: for each of its messages the first record. A message that no record holds is there under another
    record: the result of a call that was broken off under its step, what the client writes next to a summary of
    its own under the compaction. ``step_of``: the first record of the step that a record is of; ``compactions``: the
    records that replaced something; ``empty``: the first records of steps that came to nothing."""

    history: tuple[int, ...]
    step_of: Mapping[int, int]
    compactions: tuple[int, ...]
    empty: frozenset[int]


def fold(values: Sequence[Value]) -> Folded:
    """Fold the events of one session."""
    state = _Fold(values)
    for i, value in enumerate(values):
        state.play(i, value)
    return Folded(
        history=tuple(state.history),
        step_of=state.step_of,
        compactions=tuple(state.compactions),
        empty=frozenset(state.empty),
    )


class _Fold:
    """The client's own folding. A step that was interrupted stays open until the next one begins; it leaves nothing
    if it said nothing, and its calls without results are answered by the client. What is said while calls run comes
    after their results."""

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.history: list[int] = []
        self.step_of: dict[int, int] = {}
        self.compactions: list[int] = []
        self.empty: set[int] = set()
        self._steps: dict[str, int] = {}
        self._reset()

    def _reset(self) -> None:
        self._open = -1
        self._says = False
        self._pending: set[str] = set()
        self._deferred: list[int] = []

    def play(self, i: int, value: Value) -> None:
        """The history with one more event."""
        kind = value.get("type")
        if kind == APPEND:
            (self._deferred if self._pending else self.history).append(i)
        elif kind == EVENT:
            self._step(i, event_of(value))
        elif kind == COMPACTION and (count := compacted_count(value)) is not None:
            self.history = [*_shape(self.values, self.history[:count], i), *self.history[count:]]
            self.compactions.append(i)
            self._reset()
        elif kind == "context.undo":
            self.history = _undone(self.values, self.history, value.get("count"))
            self._reset()
        elif kind == "context.clear":
            self.history = []
            self._reset()

    def _step(self, i: int, event: Value) -> None:
        kind = event.get("type")
        if kind == "step.begin":
            self._settle()
            self.history.append(i)
            self._steps[string(event.get("uuid"))] = self.step_of[i] = self._open = i
        elif kind == "tool.result":
            self._answered(i, string(event.get("toolCallId")))
        elif kind in _STEP_EVENTS:
            self.step_of[i] = self._steps.get(string(event.get("stepUuid")) or string(event.get("uuid")), i)
            if kind == "tool.call":
                self._pending.add(string(event.get("toolCallId")))
            self._says |= kind == "tool.call" or (kind == "content.part" and _has_content(event.get("part")))
            if kind == "step.end" and event.get("finishReason") not in _BROKEN_OFF and not self._pending:
                self._settle()

    def _answered(self, i: int, key: str) -> None:
        if key not in self._pending:
            return
        self.history.append(i)
        self._pending.remove(key)
        if not self._pending:
            self._flush()

    def _settle(self) -> None:
        """Close the open step."""
        self.history += [self._open] * len(self._pending)
        self._pending.clear()
        self._flush()
        if self._open >= 0 and not self._says:
            self.history.remove(self._open)
            self.empty.add(self._open)
        self._open, self._says = -1, False

    def _flush(self) -> None:
        self.history += self._deferred
        self._deferred = []


def _has_content(part: Any) -> bool:
    if not isinstance(part, dict) or part.get("type") not in ("text", "think"):
        return True
    return "encrypted" in part or bool(string(part.get(part["type"])).strip())


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


def _shape(values: Sequence[Value], replaced: Sequence[int], i: int) -> list[int]:
    """What the compaction at ``i`` puts in place of messages: the summary; where it is the client's own also messages
    of the user before it, with a note where some are left out, and a note to go on after it."""
    compaction = values[i]
    count, first = compaction.get("keptUserMessageCount"), compaction.get("keptHeadUserMessageCount")
    if not isinstance(count, int):
        return [i]
    users = [at_ for at_ in replaced if is_users(values[at_])]
    first, notes = (min(first, count), [i]) if isinstance(first, int) else (0, [])
    rest = users[first:]
    return [*users[:first], *notes, *rest[max(len(rest) - (count - first), 0) :], i, i]


def _undone(values: Sequence[Value], history: list[int], count: Any) -> list[int]:
    """Without the user's last messages and all after them; never further back than a compaction."""
    left = count if isinstance(count, int) else 0
    for at_ in range(len(history) - 1, -1, -1):
        if left <= 0 or values[history[at_]].get("type") == COMPACTION:
            break
        if is_users(values[history[at_]]):
            left -= 1
            if left == 0:
                return history[:at_]
    return history
