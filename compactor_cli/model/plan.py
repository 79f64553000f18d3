"""Plan: what will happen to every record, decided before anything is done.

Which exchanges of the middle stay is asked of an `Importance`: scores of the digest, a model's embeddings, or a
plug-in; the planner does not know which.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby
from typing import Protocol

from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass


class Action(StrEnum):
    """What happens to a record. Every record has exactly one."""

    KEEP = "keep"  # written byte for byte
    PRUNE = "prune"  # shortened (see Edit) or left out, by the named rule
    COVER = "cover"  # replaced by the named summary


class Mode(StrEnum):
    """How a compacted transcript is written."""

    REWRITE = "rewrite"  # what is not kept is gone
    APPEND = "append"  # all bytes stay, the client's own boundary after them marks what is still sent


class Tier(StrEnum):
    """How full the window is: tokens / window."""

    NONE = "none"
    LOG = "log"
    WARN = "warn"
    COMPACT = "compact"
    EMERGENCY = "emergency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of records ``start <= i < stop`` with one action; ``name`` is the rule or the summary."""

    start: int
    stop: int
    action: Action
    name: str = ""


# The action of one record, and the name of the rule or the summary.
Mark = tuple[Action, str]


def spans_of(marks: Sequence[Mark]) -> tuple[Span, ...]:
    """Runs of equal marks."""
    spans: list[Span] = []
    start = 0
    for (action, name), run in groupby(marks):
        stop = start + sum(1 for _ in run)
        spans.append(Span(start=start, stop=stop, action=action, name=name))
        start = stop
    return tuple(spans)


# Rules that no setting names, and what stands for covered records in place of a summary.
ORPHAN = "orphan"
SUPERSEDED = "superseded"
BOOKKEEPING = "bookkeeping"
NO_ROOM = "no-room"
NOTICE = "notice"
EXCERPTS = "excerpts"

# In place of a part: the client's own counter of tokens in a record.
USAGE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Shortens one part of one record: ``text`` is set in place of the part's text.

    With `USAGE` as part, ``text`` is the number of tokens that the record's counter is set to.
    """

    record: int
    part: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The decision about one transcript.

    Guarantees: ``spans`` tile the records without gap or overlap; no exchange is divided between kept
    and not kept; ``tokens_kept + summary_tokens <= target_tokens`` unless ``over_target`` says why not.
    """

    transcript_sha256: str
    fingerprint: str
    spans: tuple[Span, ...]  # where nothing changes, one that is kept
    edits: tuple[Edit, ...] = ()
    reason: str = ""  # why nothing changes
    tier: Tier = Tier.NONE
    window_tokens: int = 0
    target_tokens: int = 0
    tokens_before: int = 0
    tokens_kept: int = 0
    tokens_middle: int = 0
    summary_tokens: int = 0  # the most that the whole message may take, frame included; 0: no summary is needed
    # The record before which the summary is set; where it is appended, the boundary stands after all records, and those
    # before this one are sent before the summary, if the client can.
    summary_at: int = 0
    notes: tuple[str, ...] = ()
    over_target: str = ""
    mode: Mode = Mode.REWRITE

    @property
    def changes(self) -> bool:
        """Whether acting on this plan changes a byte."""
        return any(span.action is not Action.KEEP for span in self.spans)

    def marks(self) -> list[Mark]:
        """Action and name of each record."""
        return [(span.action, span.name) for span in self.spans for _ in range(span.start, span.stop)]

    def indices(self, action: Action) -> tuple[int, ...]:
        """The records with this action, ascending."""
        return tuple(i for span in self.spans if span.action is action for i in range(span.start, span.stop))

    def count(self, action: Action) -> int:
        """How many records have this action."""
        return sum([span.stop - span.start for span in self.spans if span.action is action])


@dataclass(frozen=True, slots=True, kw_only=True)
class Middle:
    """What could stay of a transcript."""

    transcript: Transcript
    blocks: tuple[range, ...]  # runs of records that divide no exchange, ascending and apart
    tokens: tuple[int, ...]  # what each block would take
    room_tokens: int  # what all blocks that stay may take together
    kept: tuple[int, ...]  # records that stay in any case, ascending, the newest exchange among them
    focus: str = ""  # what the user wants most


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Numbers of blocks, the most important first; all others come after, the newest first. ``note`` for people."""

    order: Sequence[int]
    note: str = ""


class Importance(Protocol):
    """Ranks the blocks of a middle. The same middle gives the same ranking, unless a model is asked."""

    def rank(self, middle: Middle) -> Ranking:
        """The blocks in the order in which they are given room. Raises nothing for odd content."""
        ...
