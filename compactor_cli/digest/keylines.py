"""Key lines: the statements that carry most of what will be needed again, for a budget, and the names beside them.

A statement tells what a name means; a name alone costs a fifth of it. So most of the budget goes to statements,
and a share to lists of names under the file they belong to, for what no statement tells.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compactor_cli.digest import statements
from compactor_cli.digest.candidates import Candidate, Form, Gatherer, in_order
from compactor_cli.digest.coverage import Cover, Option, Shared
from compactor_cli.digest.events import Event, EventKind, ToolKind
from compactor_cli.digest.facts import Facts
from compactor_cli.digest.salience import Scores
from compactor_cli.digest.table import Table
from compactor_cli.digest.values import Valuer
from compactor_cli.digest.worth import COST_POWER

# A line break with indentation or a list mark; a comma and a blank.
LINE_TOKENS = 2
_COMMA_TOKENS = 1
# What a heading costs beside its words: list mark, colon, the record's number.
HEADER_TOKENS = 8
NAMES_RATIO = 0.1
MOST_NAMES_RATIO = 0.2
_SMALL_TOKENS = 400
# A name with its comma, about.
_NAME_TOKENS = 5
_NAMES_CHARS = 200
# The user's words have a section of their own.
_QUOTED_QUALITY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLine:
    """A chosen statement, neighbouring ones of an event (a line break between them), or a list of names.

    Every line of a statement is verbatim but for the gaps of a shortened one; names are verbatim, with commas
    between them. ``event``: position in the events given, -1 for what is remembered from an earlier round;
    ``records`` then is empty. ``label``: the file, command or tool it stands under. ``lead``: the line
    introducing the list that it is an item of, empty where that is shown already.
    """

    text: str
    event: int
    records: tuple[int, ...]
    turn: int
    kind: EventKind
    form: Form = Form.LINE
    tool: ToolKind = ToolKind.OTHER
    label: str = ""
    lead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The key lines in transcript order, and the candidates to be remembered for the next round."""

    lines: tuple[KeyLine, ...]
    candidates: tuple[Candidate, ...]


def choose(
    events: Sequence[Event],
    table: Table,
    scores: Scores,
    *,
    budget_tokens: int,
    count: Callable[[str], int],
    covered: Facts | None = None,
    old_candidates: Sequence[Candidate] = (),
    header_tokens: int = HEADER_TOKENS,
) -> Choice:
    """The lines that tell most of what is likely to be used again and is not in ``covered`` already.

    ``table`` ends with the scan of ``events`` (merged behind an older one or not), ``scores`` are its scores.
    Guarantees: the texts, ``LINE_TOKENS`` for each, and for each label in a turn its words and ``header_tokens``,
    stay within ``budget_tokens`` by ``count``; the same input gives the same lines. For several budgets in a
    row, see `Chooser`.
    """
    chooser = Chooser(
        events,
        scores,
        budget_tokens=budget_tokens,
        count=count,
        covered=covered,
        old_candidates=old_candidates,
        header_tokens=header_tokens,
    )
    return chooser.choose(budget_tokens)


class Chooser:
    """Candidates weighed once, for several tries at a budget near ``budget_tokens``.

    ``names``: shorter names of labels, as they will be written.
    """

    def __init__(
        self,
        events: Sequence[Event],
        scores: Scores,
        *,
        budget_tokens: int,
        count: Callable[[str], int],
        covered: Facts | None = None,
        old_candidates: Sequence[Candidate] = (),
        header_tokens: int = HEADER_TOKENS,
        names: Mapping[str, str] | None = None,
    ) -> None:
        shown = covered or Facts()
        self._gatherer = Gatherer(events=events, scores=scores, old=old_candidates, known=shown.atoms)
        self._valuer = Valuer(scores)
        self._count = count
        self._header_tokens = header_tokens
        self._names = names or {}
        self._rows = scores.table.atoms
        self._pool: tuple[Candidate, ...] = ()
        self.events = events
        self.lines = self._gatherer.gather(budget_tokens)
        newest = {_needs(line)[0]: line for line in self.lines}
        headings = {thing: self._heading(line) for thing, line in newest.items()}
        facts = self._valuer.facts([*self.lines, *headings.values()])
        known = self._valuer.known(shown)
        unlike = statements.repetition(line.text for line in self.lines)
        options = [self._option(*each) for each in zip(self.lines, facts[: len(self.lines)], unlike, strict=True)]
        self._shared: dict[Hashable, Shared] = {
            thing: Shared(cost_tokens=self._heading_cost(heading.text), facts=told)
            for (thing, heading), told in zip(headings.items(), facts[len(self.lines) :], strict=True)
        }
        self._share(self.lines)
        self._cover = Cover(options, self._shared, known, COST_POWER)
        self._ranked = self._cover.rank(range(len(self.lines)))

    def choose(self, budget_tokens: int) -> Choice:
        """The lines for a budget; see `choose`."""
        cover = self._cover.copy()
        most_names = len(self._gatherer.hot) * (_NAME_TOKENS + self._header_tokens)
        # Where nothing is about files, there are none for names to stand under, and a name alone says less.
        ratio = _names_ratio(budget_tokens) * (1.0 + self._valuer.scores.coding) / 2
        reserved = min(int(budget_tokens * ratio), most_names)
        left = reserved + cover.take(self._ranked, budget_tokens - reserved)
        names = self._names_of(self._gatherer.names(cover.covered, 3 * (left // _NAME_TOKENS + 1)))
        self._share(names)
        left = cover.take(cover.rank(cover.add([self._name(name) for name in names])), left)
        cover.take(self._ranked, left)
        candidates = [*self.lines, *names]
        chosen = in_order(candidates[number] for number in cover.taken)
        return Choice(lines=_key_lines(chosen, self.events), candidates=self._remembered())

    def _remembered(self) -> tuple[Candidate, ...]:
        self._pool = self._pool or (*self.lines, *self._names_of(self._gatherer.names()))
        return self._pool

    def _names_of(self, names: Iterable[Candidate]) -> list[Candidate]:
        """Without the names that an answer in JSON has as keys only: they say nothing without their values."""
        return [name for name in names if name.event < 0 or not _is_key(name.text, self.events[name.event])]

    def _option(self, candidate: Candidate, facts: dict[int, float], unlike: float) -> Option:
        is_heading = candidate.text == candidate.label.strip("`")
        cost = 0 if is_heading else self._count(candidate.text) + LINE_TOKENS
        quoted = _QUOTED_QUALITY if candidate.kind is EventKind.USER else 1.0
        quality = unlike * quoted * statements.quality(candidate.text)
        return Option(facts=facts, cost_tokens=cost, quality=quality, needs=_needs(candidate))

    def _name(self, candidate: Candidate) -> Option:
        cost = self._count(candidate.text) + _COMMA_TOKENS
        return Option(facts=self._valuer.of_name(self._rows[candidate.text]), cost_tokens=cost, needs=_needs(candidate))

    def _share(self, candidates: Iterable[Candidate]) -> None:
        """Enters the headings and lead-ins that candidates need and that are not there yet."""
        for candidate in candidates:
            heading, *leads = _needs(candidate)
            if heading not in self._shared:
                self._shared[heading] = Shared(cost_tokens=self._heading_cost(self._heading(candidate).text))
            for lead in leads:
                self._shared[lead] = Shared(cost_tokens=self._count(candidate.lead) + LINE_TOKENS)

    def _heading(self, candidate: Candidate) -> Candidate:
        """The heading a line stands under, as something that tells facts itself."""
        label = self._names.get(candidate.label, candidate.label)
        return candidate._replace(text=label, kind=EventKind.CALL, lead="")

    def _heading_cost(self, label: str) -> int:
        return self._header_tokens + (self._count(label) if label else 0)


def _is_key(name: str, home: Event) -> bool:
    """Whether a call of a tool that is about no file, or its answer, has the name as a key and nowhere else."""
    if home.kind not in (EventKind.CALL, EventKind.RESULT) or home.tool is not ToolKind.OTHER:
        return False
    text = home.text
    for key in (f'"{name}":', f"'{name}':", f"\n{name}="):
        text = text.replace(key, "")
    return name not in text


def _names_ratio(budget_tokens: int) -> float:
    """The share for names: the smaller the budget, the more of it, as few statements fit anyway."""
    return min(MOST_NAMES_RATIO, NAMES_RATIO * (1 + _SMALL_TOKENS / max(1, budget_tokens)))


def _needs(candidate: Candidate) -> tuple[Hashable, ...]:
    """The heading a candidate stands under, and the lead-in of its list."""
    is_old = candidate.event < 0
    heading = (candidate.label, -1 if is_old else candidate.turn, "" if candidate.label or is_old else candidate.event)
    return (heading, (candidate.event, candidate.lead)) if candidate.lead else (heading,)


def _key_lines(chosen: Iterable[Candidate], events: Sequence[Event]) -> tuple[KeyLine, ...]:
    """Chosen candidates as key lines; statements of an event that stand next to each other become one."""
    lines: list[KeyLine] = []
    before: Candidate | None = None
    for candidate in chosen:
        if before and candidate.form is Form.NAME and _are_listed(before, candidate, lines[-1]):
            lines[-1] = replace(lines[-1], text=f"{lines[-1].text}, {candidate.text}")
        elif before and candidate.form is Form.LINE and _are_neighbours(before, candidate, events):
            lines[-1] = replace(lines[-1], text=f"{lines[-1].text}\n{candidate.text}")
        else:
            lines.append(_key_line(candidate, before))
        before = candidate
    return tuple(lines)


def _are_listed(before: Candidate, candidate: Candidate, line: KeyLine) -> bool:
    same = (before.form, before.event, before.label) == (candidate.form, candidate.event, candidate.label)
    return same and len(line.text) + len(candidate.text) < _NAMES_CHARS


def _are_neighbours(before: Candidate, candidate: Candidate, events: Sequence[Event]) -> bool:
    """Whether only blanks and list marks stand between two statements."""
    if candidate.event != before.event or candidate.event < 0 or before.form is not Form.LINE:
        return False
    between = events[candidate.event].text[before.place + len(before.text) : candidate.place]
    return candidate.place > before.place and len(between) < 80 and not between.strip(" \t\n\r-*+•>|#,.;")


def _key_line(candidate: Candidate, before: Candidate | None) -> KeyLine:
    is_led = before is not None and (before.event, before.lead) == (candidate.event, candidate.lead)
    return KeyLine(
        text=candidate.text,
        event=candidate.event,
        records=candidate.records if candidate.event >= 0 else (),
        turn=candidate.turn,
        kind=candidate.kind,
        form=candidate.form,
        tool=candidate.tool,
        label=candidate.label,
        lead="" if is_led else candidate.lead,
    )
