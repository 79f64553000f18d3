"""Cuts: where real transcripts are cut to be compacted, deterministic and never across a compaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from compactor_cli.digest.transcript_events import Event, EventKind, ToolKind
from compactor_cli.evaluate.plain_events import plain_events, schema_words
from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Message, Transcript

CountMessage = Callable[[Message], int]

_FILE_WORK = frozenset({ToolKind.EDIT, ToolKind.READ, ToolKind.COMMAND})


class Protocol(StrEnum):
    """By which rule a cut was made."""

    SESSION = "session"  # a middle and a tail as in a full window
    SHORT = "short"  # transcripts too short for that: everything in proportion


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRule:
    """Where a segment may be cut.

    ``fractions`` are of the segment's tokens. The tail takes ``tail_tokens``, at most ``tail_ratio`` of what
    lies before the cut. A cut needs a middle of ``least_middle_tokens`` and ``least_future_events`` after it,
    of which ``most_future_events`` count.
    """

    protocol: Protocol = Protocol.SESSION
    fractions: tuple[float, ...] = (0.25, 0.4, 0.55, 0.7, 0.85)
    tail_tokens: int = 8_000
    tail_ratio: float = 1.0
    least_middle_tokens: int = 4_000
    least_future_events: int = 20
    most_future_events: int = 400


SHORT_RULE = CutRule(
    protocol=Protocol.SHORT,
    fractions=(0.6, 0.8),
    tail_ratio=0.15,
    least_middle_tokens=400,
    least_future_events=4,
)


@dataclass(frozen=True, kw_only=True)
class EvalCase:
    """One cut: what is compacted, and what came after.

    ``prefix`` holds the records before the cut and nothing after it; ``head``, ``middle`` and ``tail`` tile
    its records; ``kept_tokens`` are those of head and tail. ``schema``: names of tools' parameters, which say
    nothing of the work and count nowhere. ``session`` names the transcript: cuts of one
    session are not independent.
    """

    session: str
    dialect: str
    protocol: Protocol
    prefix: Transcript
    head: tuple[int, ...]
    middle: tuple[int, ...]
    tail: tuple[int, ...]
    middle_tokens: int
    kept_tokens: int
    prefix_events: tuple[Event, ...]
    future_events: tuple[Event, ...]
    schema: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Session and place of the cut."""
        return f"{self.session}@{len(self.prefix.records)}"

    @cached_property
    def head_events(self) -> tuple[Event, ...]:
        """H."""
        return _between(self.prefix_events, self.head)

    @cached_property
    def middle_events(self) -> tuple[Event, ...]:
        """M."""
        return _between(self.prefix_events, self.middle)

    @cached_property
    def tail_events(self) -> tuple[Event, ...]:
        """T."""
        return _between(self.prefix_events, self.tail)

    @cached_property
    def is_chat(self) -> bool:
        """Whether the agent of the middle works on no files: customer service, conversation."""
        return not any(event.tool in _FILE_WORK for event in self.middle_events)


def _between(found: tuple[Event, ...], indices: tuple[int, ...]) -> tuple[Event, ...]:
    if not indices:
        return ()
    return tuple(event for event in found if indices[0] <= event.record <= indices[-1])


def find_cases(transcript: Transcript, session: str, rule: CutRule, count: CountMessage) -> Iterator[EvalCase]:
    """The cases of a transcript by this rule, or by the SHORT one where that finds none."""
    found = False
    for used in dict.fromkeys((rule, replace(SHORT_RULE, tail_tokens=rule.tail_tokens))):
        for segment in segments(transcript):
            for case in _cases(segment, session, used, count):
                found = True
                yield case
        if found:
            return


def segments(transcript: Transcript) -> Iterator[Transcript]:
    """The stretches between compactions; a summary opens the stretch after it.

    Nothing in a stretch is marked as superseded: that mark comes from a later compaction, of which whoever
    compacts at a cut cannot know.
    """
    messages = tuple(replace(message, superseded=False) for message in transcript.messages)
    starts = [0]
    for i, message in enumerate(messages):
        is_next = i > 0 and message.summary is not None and messages[i - 1].summary is None
        if is_next and any(not earlier.is_meta for earlier in messages[starts[-1] : i]):
            starts.append(i)
    for start, stop in zip(starts, (*starts[1:], len(messages)), strict=True):
        yield part_of(replace(transcript, messages=messages), start, stop)


def part_of(transcript: Transcript, start: int, stop: int) -> Transcript:
    """The transcript of some of its records, hashed as what it is."""
    part = replace(transcript, records=transcript.records[start:stop], messages=transcript.messages[start:stop])
    return replace(part, sha256=hashlib.sha256(part.source()).hexdigest())


def _cases(segment: Transcript, session: str, rule: CutRule, count: CountMessage) -> Iterator[EvalCase]:
    sizes = [0 if message.is_meta else count(message) for message in segment.messages]
    total = sum(sizes)
    if total < rule.least_middle_tokens:
        return
    safe = group(segment.messages).borders
    found = plain_events(segment)
    for at in dict.fromkeys(_cut_points(sizes, safe, rule)):
        future = tuple(event for event in found if event.record >= at)[: rule.most_future_events]
        case = _case(segment, session, at, sizes, safe, rule, (found, future))
        if case is not None and len(future) >= rule.least_future_events:
            yield case


def _cut_points(sizes: Sequence[int], safe: Sequence[int], rule: CutRule) -> Iterator[int]:
    """The first safe point after each fraction of the tokens."""
    total, before, points = sum(sizes), 0, iter(rule.fractions)
    wanted = next(points, None)
    allowed = frozenset(safe)
    for i, size in enumerate(sizes):
        if wanted is not None and before >= wanted * total and i in allowed:
            yield i
            while wanted is not None and before >= wanted * total:
                wanted = next(points, None)
        before += size


def _case(
    segment: Transcript,
    session: str,
    at: int,
    sizes: Sequence[int],
    safe: Sequence[int],
    rule: CutRule,
    found: tuple[tuple[Event, ...], tuple[Event, ...]],
) -> EvalCase | None:
    everything, future = found
    before = [point for point in safe if point <= at]
    head = _head_end(everything, before)
    most = min(rule.tail_tokens, int(sum(sizes[:at]) * rule.tail_ratio))
    tail = next((point for point in before if sum(sizes[point:at]) <= most), at)
    middle_tokens = sum(sizes[head:tail])
    if tail <= head or middle_tokens < rule.least_middle_tokens:
        return None
    return EvalCase(
        session=session,
        dialect=segment.dialect,
        protocol=rule.protocol,
        prefix=part_of(segment, 0, at),
        head=tuple(range(head)),
        middle=tuple(range(head, tail)),
        tail=tuple(range(tail, at)),
        middle_tokens=middle_tokens,
        kept_tokens=sum(sizes[:at]) - middle_tokens,
        prefix_events=tuple(event for event in everything if event.record < at),
        future_events=future,
        schema=schema_words(everything),
    )


def _head_end(found: Sequence[Event], safe: Sequence[int]) -> int:
    """After the first message of the user, or after the summary that stands in its place."""
    first = next((event.record for event in found if event.kind in (EventKind.USER, EventKind.SUMMARY)), -1)
    return next((point for point in safe if point > first), 0)
