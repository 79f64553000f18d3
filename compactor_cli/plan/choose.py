"""Choose: exchanges of the middle that stay because they matter, in place of an unbroken tail.

The tokens are those of the tail that would have stayed: half of them stay with the newest exchanges, the rest
goes to the blocks that `Importance` ranks first, each as a whole. Their order in the transcript stays.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from itertools import pairwise

from compactor_cli.model.plan import Importance, Middle
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.cut_limits import CutLimits
from compactor_cli.plan.layout import Layout

# The newest exchanges are what the agent is in the middle of; measured by benchmarks/keep.py.
NEWEST_RATIO = 0.5


def chosen(
    cut: Layout, ground: CutLimits, transcript: Transcript, importance: Importance, focus: str
) -> tuple[Layout, str]:
    """The cut with a shorter tail and ``kept_middle`` before it that take no more together, and what is to be said of
    it.

    The cut as it is, where its tail is the newest block already or nothing before that block could stay.
    """
    newest = _newest_start(cut, ground)
    middle = _middle(cut, ground, transcript, newest, focus)
    if not middle.blocks:
        return cut, ""
    ranking = importance.rank(middle)
    left, kept_middle = middle.room_tokens, set[int]()
    for number in dict.fromkeys((*ranking.order, *reversed(range(len(middle.blocks))))):
        if middle.tokens[number] <= left:
            left -= middle.tokens[number]
            kept_middle.update(middle.blocks[number])
    spent = middle.room_tokens - left
    kept = cut.kept_tokens - middle.room_tokens + spent
    chosen_cut = replace(
        cut,
        tail_start=newest,
        kept_middle=frozenset(kept_middle),
        kept_tokens=kept,
        covered_tokens=cut.covered_tokens + cut.kept_tokens - kept,
    )
    return chosen_cut, ranking.note


def _newest_start(cut: Layout, ground: CutLimits) -> int:
    """Where the newest exchanges begin, which stay whatever they say."""
    most = int(ground.staying(cut.tail_start, ground.end) * NEWEST_RATIO)
    at = bisect_left(ground.borders, True, key=lambda border: ground.staying(border, ground.end) <= most)
    return max(min(ground.borders[at], ground.last), cut.tail_start)


def _middle(cut: Layout, ground: CutLimits, transcript: Transcript, newest: int, focus: str) -> Middle:
    first = max(cut.head_stop, ground.floor)
    borders = [border for border in ground.borders if first <= border <= newest]
    room = ground.staying(cut.tail_start, newest)
    found = [
        (range(start, stop), ground.staying(start, stop))
        for start, stop in pairwise(borders)
        if 0 < ground.staying(start, stop) <= room
    ]
    return Middle(
        transcript=transcript,
        blocks=tuple(block for block, _ in found),
        tokens=tuple(tokens for _, tokens in found),
        room_tokens=room,
        kept=(*range(cut.head_stop), *range(newest, ground.end)),
        focus=focus,
    )
