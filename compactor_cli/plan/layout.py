"""Layout: where the head ends, where the tail begins, and how much the summary between them may take.

By the settings, the head is the leading system records and up to ``head_turns`` turns within ``head_tokens``; of a turn
that is too long, only its user message. The tail is the longest run of whole blocks within ``tail_tokens``. The
summary's budget follows from what lies between.

Under a target, the head takes at most 15 % of it (system records aside), the tail what is left next to the summary.
A target that the user named is used up: what is left over goes to the summary, up to ``most_ratio`` of the target and
half of what it covers; then to the tail, beyond ``tail_tokens``; a rest that is too small for the next block goes to
the summary again, now beyond ``most_ratio``.

Where all this is too large, it is reduced in this order:

1. the head's turns go into the middle;
2. the tail shrinks to the newest block and the calls in flight;
3. the summary's budget shrinks to its floor (300 tokens);
4. long tool results of the tail are shortened in their middle, until the summary can have what it would have next to a
   smaller tail; then long texts, until the summary has its floor;
5. system records are never cut: the plan is over its target and gives the reason.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, islice, pairwise

from compactor_cli.group.exchanges import Grouping, Turn, borders_of, is_user_words, turns
from compactor_cli.model.plan import Importance, Middle
from compactor_cli.model.settings import UNBROKEN, Budget, Settings
from compactor_cli.model.transcript import Message, Record, Role, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.trigger import is_settled

# The scaled budget: tokens of the middle, tokens of the summary, with straight lines between these points.
# SCALED_POINTS[1:4] are Hermes' own; the line from 100k to 1M keeps the share falling without a step.
SCALED_POINTS = ((0, 0), (10_000, 2_000), (30_000, 3_000), (100_000, 5_000), (1_000_000, 20_000))
# The tiered budget, Hermes' table: below this size of the middle, this share of it in per cent; 5 % from the last on.
TIERS = ((10_000, 20), (30_000, 15), (100_000, 10))
LAST_TIER_PERCENT = 5
# A summary's frame (preface, marker line, headings) takes about 200 tokens: a smaller summary carries no information.
FLOOR_TOKENS = 300


def scaled_tokens(middle_tokens: int) -> int:
    """The scaled budget, and beyond its last point on at the slope of the last line. It is continuous and monotone."""
    lines = pairwise(SCALED_POINTS)
    (x0, y0), (x1, y1) = next((line for line in lines if middle_tokens <= line[1][0]), SCALED_POINTS[-2:])
    return y0 + max(middle_tokens - x0, 0) * (y1 - y0) // (x1 - x0)


def tiered_tokens(middle_tokens: int) -> int:
    """The tiered budget, which jumps down at its borders."""
    percent = next((percent for below, percent in TIERS if middle_tokens < below), LAST_TIER_PERCENT)
    return max(middle_tokens, 0) * percent // 100


def budget_for(budget: Budget, middle_tokens: int) -> int:
    """The budget by these settings: a fixed size or a share of the middle, else the curve; at least a frame."""
    size = budget.size.of(middle_tokens)
    if not size:
        size = tiered_tokens(middle_tokens) if budget.curve == "tiered" else scaled_tokens(middle_tokens)
    return max(size, FLOOR_TOKENS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutLimits:
    """The facts that decide where a transcript may be cut. Indices are those of records."""

    messages: Sequence[Message]
    records: Sequence[Record]
    borders: tuple[int, ...]  # where cuts may be made: between blocks, regardless of ``removed`` records
    sums: tuple[int, ...]  # sums[i]: tokens of the records before i, without ``removed`` ones
    total_tokens: int  # of all records
    system_end: int  # end of the leading system records
    head_limit: int  # no head reaches beyond it: a summary or the newest block stands there
    turns: tuple[Turn, ...]  # those that begin before the first summary, or before what it replaced
    earliest_tail: int  # no tail begins before it: a summary stands there (calls in flight are an exception)
    latest_tail: int  # no tail begins after it, so that it holds the newest block and all calls in flight
    in_flight: int  # start of the block of the first call in flight; the number of records if there is none
    removed: frozenset[int]  # records that never stay, wherever they stand: summaries, orphans, superseded ones
    previous_tokens: int = 0  # of the earlier summaries
    replaced_tokens: int = 0  # of what the earlier summaries stand for, as far as it is known
    is_settled: bool = False  # nothing was added since the newest summary written by compact

    @property
    def end(self) -> int:
        """The number of records."""
        return len(self.messages)

    def tokens_kept(self, start: int, stop: int) -> int:
        """Tokens of the records ``start <= i < stop`` that stay if this range is kept."""
        return self.sums[stop] - self.sums[start]

    def covered(self, head: int, tail: int) -> int:
        """Tokens of all that does not stay if the middle is ``head <= i < tail``."""
        return self.total_tokens - self.tokens_kept(0, head) - self.tokens_kept(tail, self.end)

    def border_from(self, index: int) -> int:
        """The first border at or after ``index``."""
        return self.borders[bisect_left(self.borders, index)]

    def border_until(self, index: int) -> int:
        """The last border at or before ``index``."""
        return self.borders[bisect_right(self.borders, index) - 1]


def measure_limits(
    transcript: Transcript, grouping: Grouping, tokens: Sequence[int], earliest_tail: int = 0
) -> CutLimits:
    """The limits of a transcript in which no tail begins before ``earliest_tail``. Linear in records."""
    messages = transcript.messages
    count = len(messages)
    orphaned = grouping.orphaned()
    removed = frozenset(
        index
        for exchange in grouping.exchanges
        if any(i in orphaned or messages[i].superseded or messages[i].summary for i in exchange)
        for index in exchange
    )
    summaries = [i for i, message in enumerate(messages) if message.summary and not message.superseded]
    # No head reaches beyond the first summary or, where that was appended after the tail, beyond what it replaced.
    limit = summaries[0] if summaries else count
    if summaries and _is_by_compact(messages[limit]) and _replaced_before(messages, limit) >= 0:
        limit = next(i for i in range(limit) if messages[i].superseded)
    turns_before = tuple(turn for turn in turns(messages) if turn.start < limit)
    previous_tokens = sum(tokens[i] for i in summaries)
    borders = borders_of(count, (each for each in grouping.exchanges if each[0] not in removed))
    sums = (0, *accumulate(0 if i in removed else tokens[i] for i in range(count)))
    # From here on, every limit is moved to a border.
    running = grouping.in_flight
    in_flight = borders[bisect_right(borders, running[0].record) - 1] if running else count
    shown = (i for i, message in enumerate(messages) if not (message.is_meta or message.superseded))
    system_end = next((i for i in shown if messages[i].role is not Role.SYSTEM or messages[i].summary), count)
    system_end = borders[bisect_left(borders, system_end)]
    earliest = borders[bisect_left(borders, max(_earliest_tail(messages, summaries), earliest_tail))]
    earliest = max(min(earliest, in_flight), system_end)
    newest = bisect_left(sums, sums[-1]) - 1
    latest = borders[bisect_right(borders, newest) - 1] if newest >= earliest else count
    latest = max(min(latest, in_flight), earliest)
    return CutLimits(
        messages=messages,
        records=transcript.records,
        borders=borders,
        sums=sums,
        total_tokens=sum(tokens),
        system_end=system_end,
        head_limit=min(limit, latest),
        turns=turns_before,
        earliest_tail=earliest,
        latest_tail=latest,
        in_flight=in_flight,
        removed=removed,
        previous_tokens=previous_tokens,
        replaced_tokens=max(transcript.original_tokens if summaries else 0, previous_tokens),
        is_settled=bool(summaries) and is_settled(transcript),
    )


def _earliest_tail(messages: Sequence[Message], summaries: Sequence[int]) -> int:
    """The index after the newest summary; where that was appended after its tail, after the records it replaced.

    A client's own summary that follows superseded records is passed over: it may also follow records that it did not
    replace. 0 if no summary is left.
    """
    for index in reversed(summaries):
        replaced = _replaced_before(messages, index)
        if replaced < 0:
            return index + 1
        if _is_by_compact(messages[index]):
            return replaced + 1
    return 0


def _replaced_before(messages: Sequence[Message], index: int) -> int:
    """The last superseded record before this one, bookkeeping aside; -1 if there is none."""
    found = (i for i in range(index - 1, -1, -1) if messages[i].superseded and not messages[i].is_meta)
    return next(found, -1)


def _is_by_compact(message: Message) -> bool:
    return message.summary is not None and message.summary.origin == "compact"


# The head's share of a target: enough for the first request, not for the work that followed.
HEAD_RATIO = 0.15
# A summary that takes a larger share of what it covers is hardly worth reading instead.
MOST_OF_COVERED_RATIO = 0.5
# Where the middle is short and the frame weighs more, a larger share is allowed.
MOST_OF_SHORT_RATIO = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A cut: the middle is ``head_stop <= i < tail_start``.

    ``kept_tokens + budget_tokens <= target_tokens`` unless the tail is too large: then its texts have to be shortened,
    and at last the summary's budget.
    """

    head_stop: int
    tail_start: int
    budget_tokens: int  # the most that the summary may take
    kept_tokens: int = 0
    covered_tokens: int = 0  # of the records that the summary replaces
    min_budget_tokens: int = 0  # the least that the summary's budget may shrink to
    target_tokens: int = 0
    kept_middle: frozenset[int] = frozenset()  # records of the middle that stay anyway


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutSearch:
    """Finds cuts by one set of settings."""

    limits: CutLimits
    settings: Settings
    frame_tokens: int = 0  # of what is written along with the summary, such as an acknowledgement
    scale_ratio: float = 1.0  # by which the sizes of tail and budget are multiplied

    @property
    def floor_tokens(self) -> int:
        """The least a summary is given."""
        return FLOOR_TOKENS + self.frame_tokens

    def by_settings(self) -> Layout:
        """The cut by the settings alone; its target is the size that it results in."""
        limits, keep = self.limits, self.settings.keep
        head = self._head(keep.head_tokens or limits.total_tokens)
        tail = self._tail_by_settings(head)
        wanted = self._wanted(limits.covered(head, tail))
        return self._cut(head, tail, wanted, 0)

    def for_user_target(self, target_tokens: int) -> Layout:
        """The cut under a target that the user named; what is left over is used as the module describes."""
        cut = self.for_window(target_tokens)
        spare = target_tokens - cut.kept_tokens - cut.budget_tokens
        if spare <= 0 or cut.covered_tokens <= 0:
            return cut
        most = int(target_tokens * self.settings.budget.most_ratio)
        budget_tokens = self._grown(cut.budget_tokens, spare, cut.covered_tokens, most)
        tail = cut.tail_start
        if self.settings.keep.tail_tokens and not self._tail_is_counted:
            longest_tokens = budget_tokens

            def fits(border: int) -> bool:
                """Whether this tail fits next to the summary, which takes no more than half of what it then covers."""
                half = int(self.limits.covered(cut.head_stop, border) * MOST_OF_COVERED_RATIO)
                summary_tokens = min(longest_tokens, max(cut.budget_tokens, half))
                return self._kept(cut.head_stop, border) + summary_tokens <= target_tokens

            tail = min(self._first_border(max(self.limits.earliest_tail, cut.head_stop), fits), tail)
        spare = target_tokens - self._kept(cut.head_stop, tail) - cut.budget_tokens
        budget_tokens = self._grown(cut.budget_tokens, spare, self.limits.covered(cut.head_stop, tail), target_tokens)
        return self._cut(cut.head_stop, tail, budget_tokens, target_tokens)

    @property
    def _tail_is_counted(self) -> bool:
        """Whether the settings name the tail by messages, turns or characters."""
        keep = self.settings.keep
        return bool(keep.tail_messages or keep.tail_turns or keep.tail_ratio)

    def for_window(self, target: int) -> Layout:
        """The cut under a target that follows from a window, reduced by the module's rules 1 to 3."""
        most_head = int(target * HEAD_RATIO)
        cap = min(self.settings.keep.head_tokens or most_head, most_head)
        heads = dict.fromkeys((self._head(cap), self._head(cap // 2), self.limits.system_end))
        for head in heads:

            def fits(border: int, head: int = head) -> bool:
                return self._kept(head, border) + self._capped(head, border, target) <= target

            newest = self._first_border(max(self.limits.earliest_tail, head), fits)
            tail = max(self._tail_by_settings(head), min(newest, max(self.limits.latest_tail, head)))
            wanted = self._capped(head, tail, target)
            if self._kept(head, tail) + wanted <= target:
                return self._cut(head, tail, wanted, target)
        head = self.limits.system_end
        tail = max(self.limits.latest_tail, self._tail_by_settings(head))
        room = target - self._kept(head, tail)
        wanted = self._capped(head, tail, target)
        return self._cut(head, tail, min(wanted, room) if room >= self.floor_tokens else wanted, target)

    def _head(self, cap_tokens: int) -> int:
        """The end of the head: whole turns within ``cap_tokens``, then the user message of one that does not fit."""
        limits, stop = self.limits, self.limits.system_end
        if count := self.settings.keep.head_messages:
            # The first messages after the system records; no head where a summary stands among them.
            shown = (i for i in range(stop, limits.end) if not limits.messages[i].is_meta and i not in limits.removed)
            last = next(islice(shown, count - 1, None), limits.end)
            border = limits.border_from(last + 1) if last < limits.head_limit else limits.end
            return border if border <= limits.head_limit else stop
        for turn in limits.turns[: self.settings.keep.head_turns]:
            for end in (min(turn.stop, limits.head_limit), turn.start + 1):
                border = limits.border_from(end)
                is_new = max(stop, turn.start) < border <= limits.head_limit
                if is_new and limits.tokens_kept(limits.system_end, border) <= cap_tokens:
                    stop = border
                    break
            if stop < turn.stop and stop != limits.head_limit:
                break
        return stop

    def _tail_by_settings(self, head: int) -> int:
        """The start of the tail by the settings: never after the calls in flight, never before ``earliest_tail``."""
        limits, cap = self.limits, int(self.settings.keep.tail_tokens * self.scale_ratio)
        if self._tail_is_counted and not self.settings.keep.tail_tokens:
            cap = limits.total_tokens  # the tail is not limited by tokens; otherwise 0 means no tail
        earliest = max(limits.earliest_tail, head)
        if ratio := self.settings.keep.tail_ratio:
            if limits.is_settled:
                return min(earliest, limits.in_flight)
            return max(earliest, min(limits.border_from(_newest_share(limits, ratio)), limits.in_flight))
        # Records chosen by importance may be more messages than the settings name, in no more tokens. They stay until
        # something is added.
        fixed, keep = earliest, self.settings.keep
        if not limits.is_settled or keep.by in UNBROKEN:
            if keep.tail_messages:
                fixed = max(fixed, limits.border_until(_newest_messages(limits, keep.tail_messages)))
            elif keep.tail_turns:
                starts = [i for i in range(limits.earliest_tail, limits.end) if is_user_words(limits.messages[i])]
                if len(starts) >= keep.tail_turns:
                    fixed = max(fixed, limits.border_until(starts[-keep.tail_turns]))
        by_tokens = self._first_border(fixed, lambda border: limits.tokens_kept(border, limits.end) <= cap)
        if not cap:
            return max(earliest, limits.in_flight)
        return max(earliest, min(by_tokens, limits.latest_tail))

    def _wanted(self, covered: int) -> int:
        """The summary's budget by the settings, for what it covers and what earlier summaries stand for.

        Unless its size is named, it is no smaller than those summaries.
        """
        limits, budget = self.limits, self.settings.budget
        new = covered - limits.previous_tokens
        wanted = budget_for(budget, new + limits.replaced_tokens)
        if not (budget.size.tokens or budget.size.ratio):
            wanted = max(wanted, limits.previous_tokens)
        wanted = int(wanted * self.scale_ratio)
        most = max(int(covered * MOST_OF_SHORT_RATIO), limits.previous_tokens)
        return max(min(wanted + self.frame_tokens, most), self.floor_tokens)

    def _capped(self, head: int, tail: int, target: int) -> int:
        """The wanted budget for this middle, within the share of the target that a summary may take."""
        wanted = self._wanted(self.limits.covered(head, tail))
        return max(min(wanted, int(target * self.settings.budget.most_ratio)), self.floor_tokens)

    def _grown(self, budget_tokens: int, spare: int, covered: int, most: int) -> int:
        """The budget increased by ``spare``, within ``most`` and half of what is covered; unchanged if it was named."""
        size = self.settings.budget.size
        if size.tokens or size.ratio:
            return budget_tokens
        return max(min(budget_tokens + spare, most, int(covered * MOST_OF_COVERED_RATIO)), budget_tokens)

    def _kept(self, head: int, tail: int) -> int:
        return self.limits.tokens_kept(0, head) + self.limits.tokens_kept(tail, self.limits.end)

    def _first_border(self, start: int, holds: Callable[[int], bool]) -> int:
        """The first border from ``start`` on for which this holds, as for all borders after it; else the end."""
        borders = self.limits.borders
        at = bisect_left(borders, True, lo=bisect_left(borders, start), key=holds)
        return borders[at] if at < len(borders) else self.limits.end

    def _cut(self, head: int, tail: int, budget_tokens: int, target: int) -> Layout:
        kept = self._kept(head, tail)
        return Layout(
            head_stop=head,
            tail_start=tail,
            kept_tokens=kept,
            covered_tokens=self.limits.covered(head, tail),
            budget_tokens=budget_tokens,
            min_budget_tokens=self.floor_tokens,
            target_tokens=target or kept + budget_tokens,
        )


def _newest_messages(limits: CutLimits, count: int) -> int:
    """The start of the Nth newest message of the user or the assistant; 0 if there are fewer.

    Records of one group are one message.
    """
    start, seen, group = limits.end, 0, ""
    for index in range(limits.end - 1, limits.earliest_tail - 1, -1):
        message = limits.messages[index]
        if index in limits.removed or message.role not in (Role.USER, Role.ASSISTANT) or message.results:
            continue
        if not message.group or message.group != group:
            seen += 1
            if seen > count:
                return start
        start, group = index, message.group
    return start if seen == count else 0


def _newest_share(limits: CutLimits, ratio: float) -> int:
    """The start of the newest share of all JSON characters, moved forward to the next message of the user.

    If no such message follows, it is the end where the assistant has finished, else the last message of the user.
    """
    messages = limits.messages
    sent = [i for i in range(limits.system_end, limits.end) if not (messages[i].is_meta or messages[i].superseded)]
    chars = [len(limits.records[i].raw.decode("utf-8", "surrogateescape")) for i in sent]
    wanted, seen, last = sum(chars) * (1 - ratio), 0, limits.system_end
    for i, size in zip(sent, chars, strict=True):
        if messages[i].role is Role.USER and not messages[i].results and not messages[i].summary:
            if seen >= wanted:
                return i
            last = i
        seen += size
    is_done = bool(sent) and messages[sent[-1]].role is Role.ASSISTANT and not messages[sent[-1]].calls
    return limits.end if is_done else last


# The share of the tail's tokens that the newest exchanges, the agent's present work, keep in any case; measured by
# benchmarks/keep.py.
NEWEST_RATIO = 0.5


def chosen(
    cut: Layout, limits: CutLimits, transcript: Transcript, importance: Importance, focus: str
) -> tuple[Layout, str]:
    """The cut with a shorter tail and chosen records before it (``kept_middle``), and a note for people.

    Both together take no more than the tail did: half of its tokens stay with the newest exchanges, the rest goes to
    the blocks that `Importance` ranks first, each as a whole. Records keep their order. The cut stays as it is, with an
    empty note, where its tail is only the newest block or no block before that could stay.
    """
    # The newest exchanges stay whatever their importance.
    most = int(limits.tokens_kept(cut.tail_start, limits.end) * NEWEST_RATIO)
    at = bisect_left(limits.borders, True, key=lambda border: limits.tokens_kept(border, limits.end) <= most)
    newest = max(min(limits.borders[at], limits.latest_tail), cut.tail_start)
    first, room = max(cut.head_stop, limits.earliest_tail), limits.tokens_kept(cut.tail_start, newest)
    runs = pairwise(border for border in limits.borders if first <= border <= newest)
    found = [run for run in runs if 0 < limits.tokens_kept(*run) <= room]
    if not found:
        return cut, ""
    middle = Middle(
        transcript=transcript,
        blocks=tuple(range(*run) for run in found),
        tokens=tuple(limits.tokens_kept(*run) for run in found),
        room_tokens=room,
        kept=(*range(cut.head_stop), *range(newest, limits.end)),
        focus=focus,
    )
    ranking = importance.rank(middle)
    left, kept_middle = room, set[int]()
    for number in dict.fromkeys((*ranking.order, *reversed(range(len(middle.blocks))))):
        if middle.tokens[number] <= left:
            left -= middle.tokens[number]
            kept_middle.update(middle.blocks[number])
    chosen_cut = replace(
        cut,
        tail_start=newest,
        kept_middle=frozenset(kept_middle),
        kept_tokens=cut.kept_tokens - left,
        covered_tokens=cut.covered_tokens + left,
    )
    return chosen_cut, ranking.note
