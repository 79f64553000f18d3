"""Exchanges: the records that stand or fall together, and where a transcript may be cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compactor_cli.group.pairing import Half, Pair, pair
from compactor_cli.group.turns import is_user_words
from compactor_cli.model.transcript import Message, Role, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How the records of one transcript hang together.

    Guarantees: ``exchanges`` is a partition of the records into the smallest sets that divide neither a
    call from its results nor a message over several records; each is ascending, and they are in the order
    of their first records. ``borders`` are the ascending indices, 0 and the number of records among them, at
    which a cut divides no exchange. ``orphan_calls``, ``orphan_results`` and ``in_flight`` (calls still running at
    the end) are in transcript order.
    """

    exchanges: tuple[tuple[int, ...], ...]
    borders: tuple[int, ...]
    pairs: tuple[Pair, ...] = ()
    orphan_calls: tuple[Half, ...] = ()
    orphan_results: tuple[Half, ...] = ()
    in_flight: tuple[Half, ...] = ()

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The smallest runs ``(start, stop)`` that divide no exchange; they tile the records."""
        return tuple(pairwise(self.borders))

    def orphaned(self) -> frozenset[int]:
        """The records of every exchange that holds an orphan."""
        records = {half.record for half in (*self.orphan_calls, *self.orphan_results)}
        if not records:
            return frozenset()
        return frozenset(i for exchange in self.exchanges if not records.isdisjoint(exchange) for i in exchange)


def group(messages: Sequence[Message]) -> Grouping:
    """Group the records of a transcript. Linear (except for sorting) in records and parts; raises nothing."""
    found = pair(messages)
    links = [(item.call.record, item.result.record) for item in found.pairs]
    exchanges = _components(len(messages), [*links, *_shared_groups(messages)])
    orphan_calls, in_flight = _unanswered(messages, found.calls_alone)
    return Grouping(
        exchanges=exchanges,
        borders=borders_of(len(messages), exchanges),
        pairs=found.pairs,
        orphan_calls=orphan_calls,
        orphan_results=found.results_alone,
        in_flight=in_flight,
    )


def orphans(messages: Sequence[Message]) -> tuple[Half, ...]:
    """The ``orphan_calls`` and ``orphan_results`` of `group`, without the rest of it."""
    found = pair(messages)
    return _unanswered(messages, found.calls_alone)[0] + found.results_alone


def _unanswered(messages: Sequence[Message], calls: tuple[Half, ...]) -> tuple[tuple[Half, ...], tuple[Half, ...]]:
    """Calls without a result: those that were given up, and those still in flight."""
    if not calls:
        return (), ()
    last_step = _last_step(messages)
    given_up = sum(call.record < last_step for call in calls)
    return calls[:given_up], calls[given_up:]


def _shared_groups(messages: Sequence[Message]) -> Iterable[tuple[int, int]]:
    """Neighbouring records of one group. A user's words end a group: what repeats its name later is a copy."""
    last: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.role is Role.META:
            continue
        if message.group:
            if message.group in last:
                yield last[message.group], index
            last[message.group] = index
        elif last and is_user_words(message):
            last.clear()


def _components(count: int, links: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Connected components of ``range(count)``, by union and find."""
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
    """The places in ``range(count)`` at which a cut divides none of these exchanges, both ends among them."""
    reach = list(range(count))
    for exchange in exchanges:
        reach[exchange[0]] = exchange[-1]
    borders, furthest = [0], 0
    for index in range(count):
        furthest = max(furthest, reach[index])
        if furthest == index:
            borders.append(index + 1)
    return tuple(borders)


def _last_step(messages: Sequence[Message]) -> int:
    """The first record of the last step: a call before it that has no result was given up.

    A new step begins with words of the user or the assistant, with a summary, and with a call after a
    result. Records of one group are one step.
    """
    start, result_seen, step_group = 0, False, ""
    for index, message in enumerate(messages):
        if message.role in (Role.META, Role.SYSTEM) or message.superseded:
            continue
        if message.results and not message.calls:
            result_seen = True
        elif message.group and message.group == step_group:
            continue
        elif _speaks(message) or (message.calls and result_seen):
            start, result_seen, step_group = index, False, message.group
        elif message.calls:
            step_group = message.group
    return start


def _speaks(message: Message) -> bool:
    if message.summary is not None or is_user_words(message):
        return True
    return message.role is Role.ASSISTANT and any(isinstance(part, Text) and part.text for part in message.parts)
