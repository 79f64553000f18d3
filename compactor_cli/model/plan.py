"""Plan: what will happen to every record, decided before anything is done.

An `Importance` decides which exchanges of the middle stay: by scores of the digest, by a model's embeddings, or in a
plug-in. The planner does not know which.
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
    """A run of records with the same action."""

    start: int  # first record, counted from 0
    stop: int  # the record after the last
    action: Action
    name: str = ""  # of the rule or the summary; empty for KEEP


# The action of one record, and the name of the rule or the summary.
Mark = tuple[Action, str]


def spans_of(marks: Sequence[Mark]) -> tuple[Span, ...]:
    """The marks of all records as spans: each run of equal marks becomes one."""
    spans: list[Span] = []
    start = 0
    for (action, name), run in groupby(marks):
        stop = start + sum(1 for _ in run)
        spans.append(Span(start=start, stop=stop, action=action, name=name))
        start = stop
    return tuple(spans)


# Names of rules that no setting lists, and of what stands for covered records in place of a summary.
ORPHAN = "orphan"
SUPERSEDED = "superseded"
BOOKKEEPING = "bookkeeping"
NO_ROOM = "no-room"
NOTICE = "notice"
EXCERPTS = "excerpts"

# As `Edit.part`: the client's own counter of tokens in the record, not a part.
USAGE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replaces the text of one part of one record, or its counter of tokens."""

    record: int  # counted from 0
    part: int  # position in the message's parts, or `USAGE`
    text: str  # the part's new text; with `USAGE`, the number of tokens that the counter is set to


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The decision about one transcript.

    Guarantees: ``spans`` tile the records without gap or overlap; no exchange is divided between kept
    and not kept; ``tokens_kept + summary_tokens <= target_tokens`` unless ``over_target`` says why not.
    """

    transcript_sha256: str
    fingerprint: str  # of the settings, see `Settings.fingerprint`
    spans: tuple[Span, ...]  # a single KEEP span where nothing changes
    edits: tuple[Edit, ...] = ()
    reason: str = ""  # why the transcript is compacted, or why nothing changes
    tier: Tier = Tier.NONE
    window_tokens: int = 0  # 0: not known, or not the reason for the decision
    target_tokens: int = 0
    tokens_before: int = 0
    tokens_kept: int = 0  # of the records that stay, as shortened
    tokens_middle: int = 0  # of the records that the summary replaces
    summary_tokens: int = 0  # the most that the whole message may take, frame included; 0: no summary is needed
    # REWRITE: the summary is written before this record, counted from 0. APPEND: the summary follows all records; the
    # records before this one are sent before it, if the client can do that.
    summary_at: int = 0
    notes: tuple[str, ...] = ()  # for people
    over_target: str = ""  # by how much the target is missed, and why; empty: it is reached
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
    """The part of a transcript between head and tail, from which an `Importance` chooses what stays."""

    transcript: Transcript
    blocks: tuple[range, ...]  # runs of records (counted from 0) that divide no exchange; ascending, without overlap
    tokens: tuple[int, ...]  # size of each block
    room_tokens: int  # size that the blocks that stay may have together
    kept: tuple[int, ...]  # records that stay in any case, ascending, the newest exchange among them
    focus: str = ""  # the subject that the user wants kept, as asked for; may be empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The blocks of a `Middle` by importance."""

    order: Sequence[int]  # positions in `Middle.blocks`, the most important first; then those left out, newest first
    note: str = ""  # for people


class Importance(Protocol):
    """Ranks the blocks of a middle. The same middle gives the same ranking, unless a model is asked."""

    def rank(self, middle: Middle) -> Ranking:
        """The blocks in the order in which they are given room. Raises nothing for odd content."""
        ...
