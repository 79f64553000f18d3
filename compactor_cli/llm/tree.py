"""Tree: the covered records cut into spans that fit a model, and the order in which their summaries are joined.

Every block is in exactly one leaf: cutting never drops one, and `check_coverage` proves it on the prompts
themselves. A block that no prompt has room for is shortened in its middle, which its text and the report say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate

from compactor_cli.group.exchanges import group, turns
from compactor_cli.llm.flatten import Block
from compactor_cli.model.errors import InvariantError
from compactor_cli.model.transcript import Message
from compactor_cli.plan.layout import FLOOR_TOKENS, scaled_tokens
from compactor_cli.plan.models import window_tokens

# Where a model's window is not known: the least that models in use have. One that is shorter says so, and the
# spans are cut again.
DEFAULT_WINDOW_TOKENS = 32_000
# Beyond this models read less well than they could; and leaves that run side by side are faster than a long one.
MOST_LEAF_TOKENS = 200_000
# Of a window, what is not counted on: its model's vocabulary may differ from the one counted with by a quarter.
_USED_RATIO = 0.75
_LEAST_ROOM_TOKENS = 1_000
_LEAST_FILL_RATIO = 0.6
_MOST_TRIES = 12
_NEAR_RATIO = 0.2


class CoverageError(InvariantError):
    """A covered record would be in no prompt, or in two: a defect, nothing is sent."""


class Border(IntEnum):
    """What begins with a record; the larger, the better to cut before it."""

    RECORD = 0
    EXCHANGE = 1
    TURN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSlice:
    """A block with its size and what begins with it. ``strand``: which of the transcripts it comes from."""

    block: Block
    tokens: int
    border: Border
    strand: int = 0


Leaf = tuple[BlockSlice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooms:
    """What a model can take: ``leaf_tokens`` of quoted text in one prompt, ``reply_tokens`` in the longest reply."""

    leaf_tokens: int
    reply_tokens: int


def rooms(model: str, summary_tokens: int, rules_tokens: int) -> Rooms:
    """The room in the window of a model next to the rules and the reply."""
    usable = int((window_tokens(model) or DEFAULT_WINDOW_TOKENS) * _USED_RATIO)
    reply = min(summary_tokens, usable // 4)
    leaf = min(usable - reply - rules_tokens, MOST_LEAF_TOKENS)
    return Rooms(leaf_tokens=max(leaf, _LEAST_ROOM_TOKENS), reply_tokens=reply)


def borders(messages: Sequence[Message]) -> tuple[Border, ...]:
    """What begins with each record."""
    found = [Border.RECORD] * len(messages)
    for index in group(messages).borders[:-1]:
        found[index] = Border.EXCHANGE
    for turn in turns(messages):
        # A turn may begin inside an exchange, while a tool still runs: that is no good place.
        found[turn.start] = Border.TURN if found[turn.start] is Border.EXCHANGE else found[turn.start]
    return tuple(found)


def cut(pieces: Sequence[BlockSlice], room_tokens: int, count: Callable[[str], int]) -> tuple[Leaf, ...]:
    """Leaves of at most ``room_tokens`` and about equal size, cut at turns, else exchanges, else records."""
    fitting = [fitted(piece, room_tokens, count) for piece in pieces]
    sizes = [0, *accumulate(piece.tokens for piece in fitting)]
    leaves: list[Leaf] = []
    at = 0
    while at < len(fitting):
        rest = sizes[-1] - sizes[at]
        even = rest // max(-(-rest // room_tokens), 1)
        stop = _stop(fitting, sizes, at, even, room_tokens)
        leaves.append(tuple(fitting[at:stop]))
        at = stop
    return tuple(leaves)


def _stop(pieces: Sequence[BlockSlice], sizes: Sequence[int], at: int, even: int, most: int) -> int:
    """Where the leaf that starts at ``at`` ends: at the best border in reach, of several at the one nearest to even."""
    furthest = max(bisect_right(sizes, sizes[at] + most) - 1, at + 1)
    if furthest >= len(pieces):
        return len(pieces)
    least = bisect_right(sizes, sizes[at] + int(even * _LEAST_FILL_RATIO))
    places = range(min(max(least, at + 1), furthest), furthest + 1)
    return max(places, key=lambda place: (pieces[place].border, -abs(sizes[place] - sizes[at] - even)))


def split(leaf: Leaf, count: Callable[[str], int]) -> tuple[Leaf, ...]:
    """The leaf in two, for a model that found it too long; a leaf of one record keeps half of its text."""
    if len(leaf) > 1:
        sizes = [0, *accumulate(piece.tokens for piece in leaf)]
        middle = min(range(1, len(leaf)), key=lambda place: _badness(sizes, leaf, place))
        return leaf[:middle], leaf[middle:]
    return ((fitted(leaf[0], max(leaf[0].tokens // 2, 1), count),),)


def _badness(sizes: Sequence[int], leaf: Leaf, place: int) -> tuple[bool, int, float]:
    """How bad a place is to split at: near the middle first, then the better border, then nearer still."""
    off = abs(sizes[place] / max(sizes[-1], 1) - 0.5)
    return off > _NEAR_RATIO, -leaf[place].border, off


def fitted(piece: BlockSlice, room_tokens: int, count: Callable[[str], int]) -> BlockSlice:
    """The piece itself if there is room for it, else with its middle left out."""
    block, tokens = piece.block, piece.tokens
    chars = len(block.text)
    for _ in range(_MOST_TRIES):
        if tokens <= room_tokens:
            break
        chars = int(chars * min(room_tokens / tokens, 0.95) * 0.98)
        block = piece.block.shortened(chars)
        tokens = count(block.text)
    return BlockSlice(block=block, tokens=tokens, border=piece.border, strand=piece.strand)


def leaf_budget(leaf_tokens: int, final_tokens: int, reply_tokens: int) -> int:
    """What the summary of a leaf may take: by its own size as any summary, except for the last one's needs no less."""
    least = min(final_tokens, reply_tokens, leaf_tokens // 2)
    return max(min(scaled_tokens(leaf_tokens), reply_tokens), least, FLOOR_TOKENS)


def merge_groups(sizes: Sequence[int], room_tokens: int) -> tuple[tuple[int, int], ...]:
    """Consecutive summaries to be joined in one prompt, as ``(start, stop)``: two at least, so each level has fewer."""
    groups: list[tuple[int, int]] = []
    at = 0
    while at < len(sizes):
        stop, used = at, 0
        while stop < len(sizes) and (stop - at < 2 or used + sizes[stop] <= room_tokens):
            used += sizes[stop]
            stop += 1
        groups.append((at, stop))
        at = stop
    return tuple(groups)


def check_coverage(expected: Iterable[str], shown: Iterable[str]) -> None:
    """Raises `CoverageError` unless the prompts show every record exactly once, in order."""
    wanted, found = tuple(expected), tuple(shown)
    if wanted == found:
        return
    missing, twice = sorted(set(wanted) - set(found)), sorted({name for name in found if found.count(name) > 1})
    raise CoverageError(f"records in no prompt: {missing[:10]}; in more than one: {twice[:10]}; or out of order")
