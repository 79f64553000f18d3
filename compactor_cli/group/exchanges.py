"""Turns, exchanges and topics: which records belong together, and where a transcript may be cut."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from itertools import accumulate, chain, pairwise
from math import fsum, log, prod, sqrt
from typing import NamedTuple

from compactor_cli.formats.harness import user_text
from compactor_cli.model.transcript import Media, Message, Role, Text, ToolCall, ToolResult
from compactor_cli.model.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A user's message with all records up to the next one."""

    start: int  # the record with the user's words, counted from 0
    stop: int  # the record after the last


def is_user_words(message: Message) -> bool:
    """Whether a person wrote something in this message.

    False for tool results, summaries, bookkeeping, superseded messages, and texts that the client alone inserted.
    """
    if message.role is not Role.USER or message.superseded or message.summary is not None or message.results:
        return False
    if message.own_words == "":
        return False
    if any(isinstance(part, Media) for part in message.parts):
        return True
    return bool(user_text(message))


def turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """All turns, in order. Records before the first message of the user belong to no turn."""
    starts = (index for index, message in enumerate(messages) if is_user_words(message))
    return tuple(Turn(start=start, stop=stop) for start, stop in pairwise((*starts, len(messages))))


def _turn_numbers(messages: Sequence[Message]) -> list[int]:
    """The number of each message's turn, from 1; 0 before the first turn."""
    return list(accumulate(map(int, map(is_user_words, messages))))


def newest_request(messages: Sequence[Message]) -> int:
    """The index of the last record with words of the user; -1 if there is none."""
    return next((i for i in range(len(messages) - 1, -1, -1) if is_user_words(messages[i])), -1)


class Half(NamedTuple):
    """One call or one result: ``messages[record].parts[part]``."""

    record: int
    part: int
    id: str  # of the call; may be empty
    name: str = ""  # of the tool; may be empty

    def __str__(self) -> str:
        return f"{self.name or 'tool'} {self.id or '(no id)'} in record {self.record + 1}"


class Pair(NamedTuple):
    """A call and its result."""

    call: Half
    result: Half


@dataclass(slots=True)
class _Open:
    """The calls that are not answered yet. Queues may hold answered ones too, which are dropped when first in line."""

    by_id: dict[str, list[deque[Half]]] = field(default_factory=dict)  # one queue per record, the newest record last
    # The calls of the newest burst (see `pair`), by tool name (None: of all tools) and by whether the result that may
    # take them has an id.
    burst: dict[tuple[str | None, bool], deque[Half]] = field(default_factory=dict)
    # Calls of the newest burst that are not in ``burst`` yet: most results find their call by id and never need it.
    coming: list[Half] = field(default_factory=list)
    burst_is_over: bool = False  # a result followed: the next call begins a new burst
    waiting: dict[tuple[int, int], Half] = field(default_factory=dict)  # all unanswered calls, by record and part

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
        found = None
        queues = self.by_id.get(result.id, []) if result.id else []
        while queues and not (found := self._first(queues[-1])):
            queues.pop()
        if not found:
            # The first call of the newest burst whose name and id do not contradict those of this result.
            for call in self.coming:
                for has_id in (False,) if call.id else (False, True):
                    for name in (call.name, None):
                        self.burst.setdefault((name, has_id), deque()).append(call)
            self.coming = []
            names: tuple[str | None, ...] = (result.name, "") if result.name else (None,)
            firsts = (self._first(self.burst.get((name, bool(result.id)), deque())) for name in names)
            found = min((call for call in firsts if call), key=lambda call: (call.record, call.part), default=None)
        if found:
            del self.waiting[found.record, found.part]
        self.burst_is_over = True
        return found

    def _first(self, queue: deque[Half]) -> Half | None:
        while queue and (queue[0].record, queue[0].part) not in self.waiting:
            queue.popleft()
        return queue[0] if queue else None


def pair(messages: Sequence[Message]) -> tuple[tuple[Pair, ...], tuple[Half, ...], tuple[Half, ...]]:
    """Pair the calls and results of a transcript; bookkeeping records are not looked at. Linear.

    Returns the pairs in the order of their results, the calls without a partner, and the results without one.

    Ids are not unique in real transcripts, some dialects have none, and results may stand before their
    call. The rules, in the order they are tried:

    1. A result belongs to the newest record before it that holds an unanswered call with its id (the
       first such call of that record).
    2. A result without an id, or whose id no unanswered call has, belongs to the first unanswered call of the newest
       burst. A burst is a run of calls that only ends when a call comes after a result, and at a user's message, a
       summary or an unread record (which may hold the calls of results after it). Tool names must agree if both halves
       have one. The two halves must not both have an id.
    3. A result that is still alone belongs to a later call with its id, if no user turn begins between them.

    Halves that no rule pairs are orphans, except that calls at the end of the transcript are in flight.
    """
    unanswered = _Open()
    pairs: list[Pair] = []
    alone: list[Half] = []
    for record, message in enumerate(messages):
        if is_user_words(message) or message.summary is not None or message.is_unread:
            unanswered.end_burst()
        if message.role is Role.META:
            continue
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
    calls = list(unanswered.waiting.values())
    early = _early_pairs(messages, calls, alone) if calls and alone else []
    called, answered = {item.call for item in early}, {item.result for item in early}
    every = sorted([*pairs, *early], key=lambda item: (item.result.record, item.result.part)) if early else pairs
    calls_alone = tuple(call for call in calls if call not in called)
    return tuple(every), calls_alone, tuple(result for result in alone if result not in answered)


def _early_pairs(messages: Sequence[Message], calls: list[Half], results: list[Half]) -> list[Pair]:
    """The pairs by rule 3: results that were written before their call."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Which records of a transcript belong together.

    Guarantee: ``exchanges`` partitions the records into the smallest sets that separate neither a call from its results
    (or from an unread record of its turn that may hold them), nor the records of one message from each other.
    """

    exchanges: tuple[tuple[int, ...], ...]  # each ascending; in the order of their first records
    borders: tuple[int, ...]  # ascending indices at which a cut divides no exchange, from 0 to the number of records
    pairs: tuple[Pair, ...] = ()
    orphan_calls: tuple[Half, ...] = ()  # in transcript order, as the three fields below
    orphan_results: tuple[Half, ...] = ()
    in_flight: tuple[Half, ...] = ()  # calls still running at the end
    torn: tuple[Half, ...] = ()  # halves whose partner may stand in an unread record

    def orphaned(self) -> frozenset[int]:
        """The records of every exchange that holds an orphan."""
        records = {half.record for half in (*self.orphan_calls, *self.orphan_results)}
        if not records:
            return frozenset()
        return frozenset(i for exchange in self.exchanges if not records.isdisjoint(exchange) for i in exchange)


def group(messages: Sequence[Message]) -> Grouping:
    """Group the records of a transcript. Linear (except for sorting) in records and parts; raises nothing."""
    pairs, calls_alone, results_alone = pair(messages)
    orphan_calls, in_flight = _unanswered(messages, calls_alone)
    torn = _torn(messages, orphan_calls, results_alone)
    links = [*((item.call.record, item.result.record) for item in pairs), *torn.values()]
    # Link the records of one message. A user's message ends it: records with its name after that are copies.
    last: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.role is Role.META:
            continue
        if message.group:
            if message.group in last:
                links.append((last[message.group], index))
            last[message.group] = index
        elif last and is_user_words(message):
            last.clear()
    exchanges = _components(len(messages), links)
    return Grouping(
        exchanges=exchanges,
        borders=borders_of(len(messages), exchanges),
        pairs=pairs,
        orphan_calls=tuple(half for half in orphan_calls if half not in torn),
        orphan_results=tuple(half for half in results_alone if half not in torn),
        in_flight=in_flight,
        torn=tuple(sorted(torn)),
    )


def orphans(messages: Sequence[Message]) -> tuple[Half, ...]:
    """The ``orphan_calls`` and ``orphan_results`` that `group` finds, without computing the rest."""
    _, calls_alone, results = pair(messages)
    calls, _ = _unanswered(messages, calls_alone)
    torn = _torn(messages, calls, results)
    return tuple(half for half in (*calls, *results) if half not in torn)


def _torn(messages: Sequence[Message], calls: Sequence[Half], results: Sequence[Half]) -> dict[Half, tuple[int, int]]:
    """The halves whose partner may stand in an unread record of their turn, each with the link to that record."""
    unread = [i for i, message in enumerate(messages) if message.is_unread] if calls or results else []
    if not unread:
        return {}
    turn_of = _turn_numbers(messages)
    found = {}
    for halves, step in ((calls, 0), (results, -1)):  # a result is looked for after its call, a call before its result
        for half in halves:
            at = bisect_left(unread, half.record) + step
            if 0 <= at < len(unread) and turn_of[unread[at]] == turn_of[half.record]:
                found[half] = (half.record, unread[at])
    return found


def _unanswered(messages: Sequence[Message], calls: tuple[Half, ...]) -> tuple[tuple[Half, ...], tuple[Half, ...]]:
    """Divide the calls without a result: those before the last step are orphans, the others are still in flight.

    A new step begins with words of the user or the assistant, with a summary, and with a call after a
    result. Records of one group are one step.
    """
    if not calls:
        return (), ()
    # Words outside of any group always begin a step, so nothing before the last such record needs to be looked at.
    last_step = 0
    for index in range(len(messages) - 1, 0, -1):
        message = messages[index]
        is_shown = message.role not in (Role.META, Role.SYSTEM) and not message.superseded
        if is_shown and not message.group and (message.calls or not message.results) and _speaks(message):
            last_step = index
            break
    result_seen, step_group = False, ""
    for index in range(last_step, len(messages)):
        message = messages[index]
        if message.role in (Role.META, Role.SYSTEM) or message.superseded:
            continue
        if message.results and not message.calls:
            result_seen = True
        elif message.group and message.group == step_group:
            continue
        elif _speaks(message) or (message.calls and result_seen):
            last_step, result_seen, step_group = index, False, message.group
        elif message.calls:
            step_group = message.group
    given_up = sum(call.record < last_step for call in calls)
    return calls[:given_up], calls[given_up:]


def _components(count: int, links: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """The connected components of ``range(count)`` under these links, by union and find."""
    parent = list(range(count))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for one, other in links:
        first, second = sorted((root(one), root(other)))
        parent[second] = first
    members: dict[int, list[int]] = {}
    for index in range(count):
        members.setdefault(root(index), []).append(index)
    return tuple(tuple(items) for items in members.values())


def borders_of(count: int, exchanges: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The indices from 0 to ``count``, both included, at which a cut divides none of these exchanges."""
    reach = list(range(count))
    for exchange in exchanges:
        reach[exchange[0]] = exchange[-1]
    borders, furthest = [0], 0
    for index in range(count):
        furthest = max(furthest, reach[index])
        if furthest == index:
            borders.append(index + 1)
    return tuple(borders)


def _speaks(message: Message) -> bool:
    if message.summary is not None or is_user_words(message):
        return True
    return message.role is Role.ASSISTANT and any(isinstance(part, Text) and part.text for part in message.parts)


# Number of turns on each side of a gap that are compared. TextTiling (Hearst 1997) compares blocks of a few sentences,
# since a single one is too short to decide.
_BLOCK_TURNS = 3
# A topic begins only where cohesion falls to this ratio of its maximum on either side. Otherwise small dips would
# divide a conversation about a single subject.
_RATIO = 0.6


def topics(vocabularies: Sequence[Collection[str]]) -> tuple[range, ...]:
    """Divide turns into topics. ``vocabularies`` holds the words of each turn; a topic is a range of turns.

    Guarantees: topics are in order and not empty, and every turn is in exactly one. A topic begins where the cohesion
    with the turns before is a local minimum, below the mean minus half of the standard deviation, and at most `_RATIO`
    of its maximum on either side. So fewer than four turns are one topic, and the first and the last turn are never
    alone. The order of words does not matter. Time is linear in the number of words.
    """
    if not vocabularies:
        return ()
    gaps = _cohesion(vocabularies)
    mean = fsum(gaps) / max(len(gaps), 1)
    most = mean - sqrt(fsum((gap - mean) ** 2 for gap in gaps) / max(len(gaps), 1)) / 2
    starts = [0]
    for at in range(1, len(gaps) - 1):
        sides = gaps[max(0, at - _BLOCK_TURNS) : at], gaps[at + 1 : at + 1 + _BLOCK_TURNS]
        is_lowest = gaps[at] < most and gaps[at - 1] > gaps[at] <= gaps[at + 1]
        if is_lowest and gaps[at] <= _RATIO * min(map(max, sides)):
            starts.append(at + 1)
    return tuple(map(range, starts, [*starts[1:], len(vocabularies)]))


def _cohesion(vocabularies: Sequence[Collection[str]]) -> list[float]:
    """The cohesion at each gap between two turns, from 0 to 1: the cosine of the words before and after the gap.

    Words of a single turn are left out, since they connect it to nothing; words of few turns weigh more. The cohesion
    is 1 if one side has no words, since nothing distinguishes the two sides.
    """
    turns_with = Counter(word for vocabulary in vocabularies for word in set(vocabulary))
    total = len(vocabularies)
    weights = {word: log(1 + total / turns) ** 2 for word, turns in turns_with.items() if turns > 1}
    bags = [[word for word in set(vocabulary) if word in weights] for vocabulary in vocabularies]
    gaps: list[float] = []
    for at in range(1, total):
        before = Counter(chain(*bags[max(0, at - _BLOCK_TURNS) : at]))
        after = Counter(chain(*bags[at : at + _BLOCK_TURNS]))
        # Exact sums, so that the result does not depend on the order of the words.
        shared = fsum(turns * after[word] * weights[word] for word, turns in before.items() if word in after)
        squares = [fsum(turns * turns * weights[word] for word, turns in side.items()) for side in (before, after)]
        gaps.append(shared / sqrt(prod(squares)) if before and after else 1.0)
    return gaps
