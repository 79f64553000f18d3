"""Ground: what of a transcript can stay, and between which borders it may be cut."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from compactor_cli.group.exchanges import Grouping, Turn, borders_of, turns
from compactor_cli.model.transcript import Message, Record, Role, Transcript
from compactor_cli.plan.previous_marker import is_settled


@dataclass(frozen=True, slots=True, kw_only=True)
class CutLimits:
    """The facts that cuts are made from. Indices are of records; all cuts are at ``borders``.

    ``sums[i]`` are the tokens of the records before ``i`` that stay if their place stays: summaries, orphans
    and superseded records (``gone``) never do, and no border minds them. ``lead``: the leading system records
    end here. ``head_limit``: no head reaches over it, since a summary or the newest block stands there.
    ``floor``: no tail begins before it, since a summary stands before it (except for calls in flight). ``last``: the
    latest start of a tail, so that it holds the newest block and all calls in flight; ``in_flight``: the start
    of the block of the first such call. ``is_settled``: nothing was added since the newest summary written by compact.
    """

    messages: Sequence[Message]
    records: Sequence[Record]
    borders: tuple[int, ...]
    sums: tuple[int, ...]
    total_tokens: int
    lead: int
    head_limit: int
    turns: tuple[Turn, ...]
    floor: int
    last: int
    in_flight: int
    gone: frozenset[int]
    previous_tokens: int = 0
    replaced_tokens: int = 0
    is_settled: bool = False

    @property
    def end(self) -> int:
        """The number of records."""
        return len(self.messages)

    def staying(self, start: int, stop: int) -> int:
        """Tokens of what stays of ``start <= i < stop``."""
        return self.sums[stop] - self.sums[start]

    def covered(self, head: int, tail: int) -> int:
        """Tokens of what does not stay, if the middle is ``head <= i < tail``."""
        return self.total_tokens - self.staying(0, head) - self.staying(tail, self.end)

    def border_from(self, index: int) -> int:
        """The first border at or after ``index``."""
        return self.borders[bisect_left(self.borders, index)]

    def border_until(self, index: int) -> int:
        """The last border at or before ``index``."""
        return self.borders[bisect_right(self.borders, index) - 1]


def measure_limits(transcript: Transcript, grouping: Grouping, tokens: Sequence[int], floor: int = 0) -> CutLimits:
    """The ground of a transcript, on which no tail begins before ``floor``. Linear in records."""
    messages = transcript.messages
    count = len(messages)
    gone = _gone(messages, grouping)
    staying = (0 if i in gone else tokens[i] for i in range(count))
    summaries = [i for i, message in enumerate(messages) if message.summary and not message.superseded]
    limit = _head_limit(messages, summaries)
    previous_tokens = sum(tokens[i] for i in summaries)
    bare = CutLimits(
        messages=messages,
        records=transcript.records,
        borders=borders_of(count, (each for each in grouping.exchanges if each[0] not in gone)),
        sums=(0, *accumulate(staying)),
        total_tokens=sum(tokens),
        lead=_lead(messages),
        head_limit=limit,
        turns=tuple(turn for turn in turns(messages) if turn.start < limit),
        floor=max(_floor(messages, summaries), floor),
        last=count,
        in_flight=count,
        gone=gone,
        previous_tokens=previous_tokens,
        replaced_tokens=max(transcript.original_tokens if summaries else 0, previous_tokens),
        is_settled=bool(summaries) and is_settled(transcript),
    )
    return _snapped(bare, grouping)


def _snapped(ground: CutLimits, grouping: Grouping) -> CutLimits:
    """The ground with its marks on borders."""
    running = grouping.in_flight
    in_flight = ground.border_until(running[0].record) if running else ground.end
    lead = ground.border_from(ground.lead)
    floor = max(min(ground.border_from(ground.floor), in_flight), lead)
    newest = bisect_left(ground.sums, ground.sums[-1]) - 1
    last = ground.border_until(newest) if newest >= floor else ground.end
    last = max(min(last, in_flight), floor)
    limit = min(ground.head_limit, last)
    return replace(ground, lead=lead, head_limit=limit, floor=floor, last=last, in_flight=in_flight)


def _gone(messages: Sequence[Message], grouping: Grouping) -> frozenset[int]:
    """Records that stay nowhere, with all that links to them."""
    orphaned = grouping.orphaned()
    return frozenset(
        index
        for exchange in grouping.exchanges
        if any(i in orphaned or messages[i].superseded or messages[i].summary for i in exchange)
        for index in exchange
    )


def _lead(messages: Sequence[Message]) -> int:
    for index, message in enumerate(messages):
        if not message.is_meta and not message.superseded and (message.role is not Role.SYSTEM or message.summary):
            return index
    return len(messages)


def _head_limit(messages: Sequence[Message], summaries: Sequence[int]) -> int:
    """The first summary; where it was appended after the tail, the first record that it replaced."""
    if not summaries:
        return len(messages)
    first = summaries[0]
    is_appended = _replaced_before(messages, first) >= 0 and _is_ours(messages[first])
    return next(i for i in range(first + 1) if i == first or (is_appended and messages[i].superseded))


def _floor(messages: Sequence[Message], summaries: Sequence[int]) -> int:
    """After the newest summary that everything before it is older than; where a summary was appended after the
    tail, after what it replaced.

    A client's own summary may stand after records that it did not replace: it follows superseded ones then.
    """
    for index in reversed(summaries):
        replaced = _replaced_before(messages, index)
        if replaced < 0:
            return index + 1
        if _is_ours(messages[index]):
            return replaced + 1
    return 0


def _replaced_before(messages: Sequence[Message], index: int) -> int:
    """The last superseded record before this one, -1 if there is none. Bookkeeping is not replaced by anything."""
    found = (i for i in range(index - 1, -1, -1) if messages[i].superseded and not messages[i].is_meta)
    return next(found, -1)


def _is_ours(message: Message) -> bool:
    return message.summary is not None and message.summary.origin == "compact"
