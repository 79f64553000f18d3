"""Which result answers which call, by id and by order.

Ids are not unique in real transcripts, some dialects have none, and results may stand before their
call. The rules, in the order they are tried:

1. A result belongs to the newest record before it that holds an unanswered call with its id (the
   first such call of that record).
2. A result without an id, or with one that no call ever had, belongs to the first unanswered call of
   the newest burst: the calls since the last result that followed a call. Names, where both are given, must agree;
   of two ids that are both given, none may differ.
3. A result that is still alone belongs to a later call with its id, if no user turn lies between.

What no rule pairs is an orphan, or in flight if it is a call that the transcript ends on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from compactor_cli.group.turns import is_user_words
from compactor_cli.model.transcript import Message, Role, ToolCall, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """One call or one result: ``messages[record].parts[part]``."""

    record: int
    part: int
    id: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name or 'tool'} {self.id or '(no id)'} in record {self.record + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A call and its result."""

    call: Half
    result: Half


@dataclass(slots=True)
class _Open:
    """Calls not answered yet. Queues hold answered calls too, until these come to the front.

    ``by_id`` has one queue per record, the newest record last. ``burst`` has the calls of the newest burst, by name
    (None: all) and by the ids of the results that may take them; those in ``coming`` are added when a result asks,
    since most results have an id. ``waiting`` has the calls by their places.
    """

    by_id: dict[str, list[deque[Half]]] = field(default_factory=dict)
    burst: dict[tuple[str | None, bool], deque[Half]] = field(default_factory=dict)
    coming: list[Half] = field(default_factory=list)
    burst_is_over: bool = False
    waiting: dict[tuple[int, int], Half] = field(default_factory=dict)

    def end_burst(self) -> None:
        self.burst, self.coming, self.burst_is_over = {}, [], False

    def add(self, call: Half) -> None:
        if self.burst_is_over:
            self.end_burst()
        self.coming.append(call)
        queues = self.by_id.setdefault(call.id, [])
        if not queues or not queues[-1] or queues[-1][-1].record != call.record:
            queues.append(deque())
        queues[-1].append(call)
        self.waiting[call.record, call.part] = call

    def take(self, result: Half) -> Half | None:
        found = self._with_id(result.id) if result.id else None
        found = found or self._in_burst(result)
        if found:
            del self.waiting[found.record, found.part]
        self.burst_is_over = True
        return found

    def _with_id(self, key: str) -> Half | None:
        queues = self.by_id.get(key, [])
        while queues:
            if found := self._first(queues[-1]):
                return found
            queues.pop()
        return None

    def _in_burst(self, result: Half) -> Half | None:
        """The first call whose name and id do not speak against this result."""
        for call in self.coming:
            for has_id in (False,) if call.id else (False, True):
                for name in (call.name, None):
                    self.burst.setdefault((name, has_id), deque()).append(call)
        self.coming = []
        names: tuple[str | None, ...] = (result.name, "") if result.name else (None,)
        firsts = (self._first(self.burst.get((name, bool(result.id)), deque())) for name in names)
        return min((call for call in firsts if call), key=lambda call: (call.record, call.part), default=None)

    def _first(self, queue: deque[Half]) -> Half | None:
        while queue and (queue[0].record, queue[0].part) not in self.waiting:
            queue.popleft()
        return queue[0] if queue else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """All pairs in the order of their results, and what is left over, each in transcript order."""

    pairs: tuple[Pair, ...]
    calls_alone: tuple[Half, ...]
    results_alone: tuple[Half, ...]


def pair(messages: Sequence[Message]) -> Pairing:
    """Pair the calls and results of a transcript; bookkeeping records are not looked at. Linear."""
    unanswered = _Open()
    pairs: list[Pair] = []
    alone: list[Half] = []
    for record, message in enumerate(messages):
        if message.role is Role.META:
            continue
        if is_user_words(message) or message.summary is not None:
            unanswered.end_burst()
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                unanswered.add(Half(record=record, part=index, id=part.id, name=part.name))
            elif isinstance(part, ToolResult):
                result = Half(record=record, part=index, id=part.id, name=part.name)
                call = unanswered.take(result)
                if call is None:
                    alone.append(result)
                else:
                    pairs.append(Pair(call=call, result=result))
    return _with_early_results(messages, pairs, list(unanswered.waiting.values()), alone)


def _with_early_results(
    messages: Sequence[Message], pairs: list[Pair], calls: list[Half], results: list[Half]
) -> Pairing:
    """Rule 3: results that were written before their call."""
    early = _early_pairs(messages, calls, results) if calls and results else []
    called, answered = {item.call for item in early}, {item.result for item in early}
    every = sorted([*pairs, *early], key=lambda item: (item.result.record, item.result.part)) if early else pairs
    return Pairing(
        pairs=tuple(every),
        calls_alone=tuple(call for call in calls if call not in called),
        results_alone=tuple(result for result in results if result not in answered),
    )


def _early_pairs(messages: Sequence[Message], calls: list[Half], results: list[Half]) -> list[Pair]:
    turn_of = _turn_numbers(messages)
    by_id: dict[str, list[Half]] = {}
    for result in reversed(results):
        by_id.setdefault(result.id, []).append(result)
    found = []
    for call in calls:
        candidates = by_id.get(call.id, []) if call.id else []
        if candidates and candidates[-1].record < call.record:
            if turn_of[candidates[-1].record] == turn_of[call.record]:
                found.append(Pair(call=call, result=candidates[-1]))
            candidates.pop()
    return found


def _turn_numbers(messages: Sequence[Message]) -> list[int]:
    number, numbers = 0, []
    for message in messages:
        number += is_user_words(message)
        numbers.append(number)
    return numbers
