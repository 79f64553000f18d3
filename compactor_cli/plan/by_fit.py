"""Fit: the newest messages that fit stay, or both ends; what does not fit goes without a summary.

A call and its results stay or go as one. System messages always stay and are charged first, and so are calls in
flight. The newest exchange stays in any case, cut as short as it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from compactor_cli.formats.base import Linked
from compactor_cli.formats.registry import find
from compactor_cli.group.exchanges import newest_request
from compactor_cli.model.plan import Action, Edit, Plan
from compactor_cli.model.settings import Fit, OverflowPolicy
from compactor_cli.model.transcript import Message, Role, Text, ToolResult
from compactor_cli.plan.layout import Layout
from compactor_cli.plan.plan_input import BOOKKEEPING, KEEP, ORPHAN, SUPERSEDED, PlanInput
from compactor_cli.plan.refresh import Mark
from compactor_cli.plan.shorten import Shortening, saved_tokens, shorten_to_fit, shortened

NO_ROOM = "no-room"
NOTICE = "notice"
# What a notice takes at most that joins both ends of a session whose records link to each other (see `Linked`).
NOTICE_TOKENS = 200
_CUT = "\n[… {omitted} characters left out]"
# A message of which less than this would be left goes.
_LEAST_CHARS = 40

Unit = tuple[int, ...]


def by_fit(case: PlanInput) -> Plan:
    """The plan by `Strategy.FIT`: back from the newest, see `Fit` for what becomes of what does not fit."""
    target = case.decision.target_tokens
    if not target or case.settings.target.ratio:
        # Nothing in the result says of what a share was taken, and a second run would take it again.
        return case.unchanged("no number of tokens is named that it should fit in", target)
    walk = _Walk.of(case)
    walk.back(case.settings.fit)
    notes: tuple[str, ...] = ()
    if case.settings.fit.user_leads and not walk.led_by_user():
        notes = ("no message of the user fits: what fits stays without one",)
    return _plan(case, walk, f"{case.decision.reason}; the newest that fit stay", notes)


def middle_out(case: PlanInput) -> Plan:
    """Both ends stay, message by message in turn as long as they fit; the middle goes."""
    walk = _Walk.of(case)
    walk.both_ends()
    return _plan(case, walk, f"{case.decision.reason}; texts are shortened, then both ends stay", ())


@dataclass(slots=True, kw_only=True)
class _Walk:
    """What stays so far. ``units`` are what can stay or go, oldest first; ``room`` the tokens that are left."""

    case: PlanInput
    units: list[Unit]
    room: int
    kept: list[Unit] = field(default_factory=list)
    edits: list[Shortening] = field(default_factory=list)

    @classmethod
    def of(cls, case: PlanInput) -> _Walk:
        """Nothing yet but what stays in any case: system messages and calls in flight."""
        running = {half.record for half in case.grouping.in_flight}
        gone = case.grouping.orphaned()
        notice_tokens = NOTICE_TOKENS if _is_linked(case) else 0
        walk = cls(case=case, units=[], room=case.decision.target_tokens - notice_tokens)
        for unit in case.grouping.exchanges:
            sent = [case.messages[i] for i in unit if not case.messages[i].is_meta]
            if not sent or not gone.isdisjoint(unit) or any(message.superseded for message in sent):
                continue
            if not running.isdisjoint(unit) or all(_is_system(message) for message in sent):
                walk.take(unit)
            else:
                walk.units.append(unit)
        walk.units.sort(key=lambda unit: unit[-1])
        return walk

    def take(self, unit: Unit, edits: Sequence[Shortening] = ()) -> None:
        """This stays, shortened so."""
        self.kept.append(unit)
        self.edits.extend(edits)
        self.room -= self.cost(unit) - saved_tokens(edits)

    def cost(self, unit: Unit) -> int:
        """The tokens of these records."""
        return sum(self.case.tokens[i] for i in unit)

    def back(self, fit: Fit) -> None:
        """Takes the newest that fit."""
        for unit in reversed(self.units):
            if self.cost(unit) <= self.room:
                self.take(unit)
                continue
            policy = _policy(fit, [self.case.messages[i] for i in unit])
            edits = self._cut(unit, policy)
            if edits or unit is self.units[-1]:
                self.take(unit, edits or self._cut(unit, OverflowPolicy.CUT_MIDDLE) or self._shortest(unit))
            if policy in (OverflowPolicy.STOP, OverflowPolicy.CUT_END) or (
                policy is OverflowPolicy.CUT_MIDDLE and not edits
            ):
                break

    def both_ends(self) -> None:
        """Takes the newest, the oldest, the second newest and so on, until one does not fit."""
        older, newer = 0, len(self.units)
        while older < newer:
            newest = self.units[newer - 1]
            if self.cost(newest) > self.room:
                if newer == len(self.units):
                    self.take(newest, self._cut(newest, OverflowPolicy.CUT_MIDDLE) or self._shortest(newest))
                return
            self.take(newest)
            newer -= 1
            if older < newer:
                if self.cost(self.units[older]) > self.room:
                    return
                self.take(self.units[older])
                older += 1

    def led_by_user(self) -> bool:
        """Lets the oldest go until a message of the user leads; if there is none, nothing goes."""
        messages = self.case.messages
        free = sorted(unit for unit in self.kept if unit in set(self.units))
        leads = next((n for n, unit in enumerate(free) if _is_user(messages[unit[0]])), -1)
        dropped = set(free[: max(leads, 0)])
        self.kept = [unit for unit in self.kept if unit not in dropped]
        self.edits = [item for item in self.edits if not any(item.edit.record in unit for unit in dropped)]
        return leads >= 0 or not free

    def _cut(self, unit: Unit, policy: OverflowPolicy) -> tuple[Shortening, ...]:
        """The unit shortened by this policy so that it fits; empty if it cannot be."""
        excess = self.cost(unit) - self.room
        if policy is OverflowPolicy.CUT_END:
            # What the user asked last stands at the end of the message as often as not.
            is_newest = newest_request(self.case.messages) in unit
            return self._longest(unit, Text, excess, _both_ends if is_newest else _beginning)
        if policy is not OverflowPolicy.CUT_MIDDLE:
            return ()
        # To half of the room, so that the walk can go on; else to all of it.
        edits = self._longest(unit, ToolResult, self.cost(unit) - self.room // 2, _both_ends)
        edits = edits or self._longest(unit, ToolResult, excess, _both_ends)
        edits = edits or shorten_to_fit(self.case.messages, unit, excess, self.case.counter, excess)
        return edits if saved_tokens(edits) >= excess else ()

    def _shortest(self, unit: Unit) -> tuple[Shortening, ...]:
        """The unit as short as it can be, though it does not fit."""
        return shorten_to_fit(self.case.messages, unit, self.cost(unit), self.case.counter, self.cost(unit))

    def _longest(
        self, unit: Unit, kind: type[Text] | type[ToolResult], excess: int, shape: Callable[[str, int], str]
    ) -> tuple[Shortening, ...]:
        """The longest text of this kind with as many characters as save ``excess`` tokens; empty if too few do."""
        places = [(i, n, part) for i in unit for n, part in enumerate(self.case.messages[i].parts)]
        texts = [(len(part.text), i, n, part.text) for i, n, part in places if isinstance(part, kind)]
        if not texts:
            return ()
        _, record, index, text = max(texts)
        count = self.case.counter.count
        allowed = count(text) - excess
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if count(shape(text, middle)) <= allowed:
                low = middle
            else:
                high = middle - 1
        short = shape(text, low)
        if low < _LEAST_CHARS or short == text:
            return ()
        edit = Edit(record=record, part=index, text=short)
        return (Shortening(edit=edit, rule="cut", saved_tokens=count(text) - count(short)),)


def _beginning(text: str, chars: int) -> str:
    return shortened(text, chars, 0, _CUT)


def _both_ends(text: str, chars: int) -> str:
    return shortened(text, chars - chars // 2, chars // 2)


def _policy(fit: Fit, messages: Sequence[Message]) -> OverflowPolicy:
    if any(message.results for message in messages):
        return fit.result
    return fit.user if any(_is_user(message) for message in messages) else fit.other


def _is_system(message: Message) -> bool:
    return message.role is Role.SYSTEM and message.summary is None


def _is_user(message: Message) -> bool:
    return message.role is Role.USER and not message.results


def _plan(case: PlanInput, walk: _Walk, reason: str, notes: tuple[str, ...]) -> Plan:
    """What was not taken is left out, and the bookkeeping after it."""
    taken = {i for unit in walk.kept for i in unit}
    orphaned = case.grouping.orphaned()
    shown = [i for i, m in enumerate(case.messages) if not (m.is_meta or m.superseded or i in orphaned)]
    gap = _last_gap(shown, taken) if _is_linked(case) else None
    fate = (Action.COVER, NOTICE) if gap else (Action.PRUNE, NO_ROOM)
    marks: list[Mark] = []
    goes = False
    for i, message in enumerate(case.messages):
        if message.superseded or i in orphaned:
            marks.append((Action.PRUNE, SUPERSEDED if message.superseded else ORPHAN))
        elif message.is_meta and i not in taken:
            marks.append((Action.PRUNE, BOOKKEEPING) if goes else KEEP)
        else:
            goes = i not in taken
            marks.append(fate if goes else KEEP)
    return case.plan(marks, walk.edits, case.decision.target_tokens, reason, summary=gap, notes=notes)


def _is_linked(case: PlanInput) -> bool:
    dialect = find(case.transcript.dialect)
    return isinstance(dialect, Linked) and dialect.links_records


def _last_gap(shown: Sequence[int], taken: set[int]) -> Layout | None:
    """The last place where messages go between others that stay, for a notice to be set there; None: nowhere."""
    last = max((i for i in shown if i not in taken), default=-1)
    if not any(i in taken for i in shown if i < last):
        return None
    tail = next((i for i in shown if i > last), last + 1)
    return Layout(
        head_stop=tail,
        tail_start=tail,
        kept_tokens=0,
        covered_tokens=0,
        summary_tokens=NOTICE_TOKENS,
        least_summary_tokens=NOTICE_TOKENS,
        target_tokens=0,
    )
