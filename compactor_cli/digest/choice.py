"""Choice: picks, within a token budget, the statements that add most to what the rest of the summary shows.

Weighted coverage by lazy greedy choice: a fact that a chosen statement covers is worth nothing in another one, so a
gain computed earlier is an upper bound (Minoux 1978), except that a statement becomes cheaper once its item is open.
For a budget, the gain is divided by a power of the cost (Lin & Bilmes 2010). `lists` merges short lists and
blocks of code into one statement each beforehand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import compress, groupby
from math import inf, log
from typing import TYPE_CHECKING

from compactor_cli.digest import language
from compactor_cli.digest.atoms import find_atoms
from compactor_cli.digest.noise import is_amid_code
from compactor_cli.digest.salience import Scores
from compactor_cli.digest.statements import Statement, StatementForm, lead_of
from compactor_cli.digest.texts import ELLIPSIS

if TYPE_CHECKING:
    pass

# A statement of at most this many characters that stands between two chosen ones is taken with them.
BRIDGE_CHARS = 80
# A statement of at most this many characters that turns against the one before it ("But …") is taken with that one.
CONTRAST_CHARS = 240
# Worth of a name that is certain to be used again, in work on files and in a conversation, whose words tell more than
# its names. For comparison: a word that occurs twice, in two of ten messages, is worth 2.4 (see `Worth`).
ATOM_VALUE, ATOM_VALUE_OF_CHAT = 24.0, 6.0
# A word counts this much more if at least half of the messages that have it use it as a name.
NAME_FACTOR = 1.5
# Worth of the fact that a call did or answered something, whatever its words.
CALL_VALUE = 30.0
# The gain of a statement is divided by its cost to this power.
COST_POWER = 0.75
# Tokens that a statement costs for opening an item (list mark, records); its event may have one open already.
ITEM_TOKENS = 6
OUTPUT_WORD_FACTOR = 0.5
# Most lines taken of one answer: at first, and where tokens are left over. More would read as a heap of pieces.
MIN_OUTPUTS, MAX_OUTPUTS = 3, 10
# Worth added to a statement for naming the focus, and the share of the budget that such statements may take.
FOCUS_VALUE, FOCUS_RATIO = 100.0, 0.6
# The newest spoken text of at least this many characters that takes at most this share of the budget is quoted whole.
WHOLE_CHARS, WHOLE_RATIO = 600, 0.3
# Share of the budget that all groups of ``first`` may take together.
FIRST_RATIO = 0.3
# A name whose chance of being used again is lower is worth nothing.
MIN_ATOM_CHANCE = 0.02
_MIN_WEIGHT = 0.1
_LINES = (StatementForm.OUTPUT, StatementForm.LOOKED)
_SHOWN = (*_LINES, StatementForm.OBJECT)
# A word, the row of a name in the table, or a negative number for a call; in an object, paired with the object's form.
Fact = Hashable


class Worth:
    """The worth of facts: of words that are used often but in few messages, of names by their chance of further use."""

    def __init__(self, scores: Scores) -> None:
        self._table = scores.table
        self._words: dict[str, float] = {}
        spoken = scores.table.spoken
        for word, times in spoken.times.items():
            if language.is_term(word):
                events = spoken.events.get(word, 0)
                factor = NAME_FACTOR if spoken.names.get(word, 0) * 2 >= events else 1.0
                self._words[word] = (1 + 0.5 * log(times)) * log(1 + spoken.total / max(1, events)) * factor
        value = ATOM_VALUE * scores.coding + ATOM_VALUE_OF_CHAT * (1.0 - scores.coding)
        self._values = [value * chance if chance >= MIN_ATOM_CHANCE else 0.0 for chance in scores.rows]

    def facts(self, text: str, form: StatementForm = StatementForm.SENTENCE) -> dict[Fact, float]:
        """The worth of each fact in a text, in order: its words, then the table rows of its names.

        Facts that are worth nothing are left out. Words in a tool's output count less: they may be there by chance. The
        facts of an object are distinct from the same facts elsewhere, since an object shows which values belong
        together: a statement about it does not cover them.
        """
        worth, values = self._words.get, self._values
        factor = OUTPUT_WORD_FACTOR if form in _SHOWN else 1.0
        found: dict[Fact, float] = {word: factor * value for word in language.raw_terms(text) if (value := worth(word))}
        for row in self._rows_in(text):
            if value := values[row]:
                found[row] = value
        return {(form, fact): value for fact, value in found.items()} if form is StatementForm.OBJECT else found

    def _rows_in(self, text: str) -> Iterable[int]:
        table = self._table
        if (place := table.lines.numbers.get(text)) is not None:
            return table.lines.atoms[place]
        return [row for atom in find_atoms(text) if (row := table.atoms.get(atom.text)) is not None]


class Choice:
    """A choice among candidates for one budget after another; what does not depend on the budget is computed once.

    Candidates are referred to by number, their position in ``candidates``. Costs are estimated in characters, each
    taken as a quarter of a token, and counted exactly only when a candidate is taken.
    """

    def __init__(
        self,
        candidates: Sequence[Statement],
        shown: Iterable[str],  # what the rest of the summary says
        worth: Worth,
        count: Callable[[str], int],
        *,
        focus: frozenset[str] = frozenset(),  # in lower case; what names one comes first, up to FOCUS_RATIO
        first: Sequence[tuple[Sequence[int], float]] = (),  # groups to take first, with shares of FIRST_RATIO
        looked_tokens: float = inf,  # most for lines of what was only looked at: they can be read again
    ) -> None:
        texts = tuple(shown)
        self.shown = "\n".join(text.replace("\n", " ") for text in texts)
        covered = set[Fact]().union(*map(worth.facts, texts))
        self.candidates, self.count, self.first = candidates, count, first
        self.looked_tokens = looked_tokens
        self.fresh = [_without(worth.facts(one.text, one.form), covered) for one in candidates]
        for number, one in enumerate(candidates):
            if one.place < 0:
                self.fresh[number][-1 - number] = CALL_VALUE
        self.values = [sum(facts.values()) for facts in self.fresh]
        # A number for everything that is opened once: an item (event and label), and each line of a lead in an event.
        self.numbers: dict[Hashable, int] = {}
        numbers = self.numbers
        self.items = [numbers.setdefault((origin(one), one.label), len(numbers)) for one in candidates]
        self.leads = [
            tuple((numbers.setdefault((origin(one), line, True), len(numbers)), line) for line in one.lead.split("\n"))
            if one.lead
            else ()
            for one in candidates
        ]
        # By event, every line of a lead that some candidate of it stands under.
        self.led: dict[int, set[str]] = {}
        for one in candidates:
            if one.lead:
                self.led.setdefault(origin(one), set()).update(one.lead.split("\n"))
        # A character of a script without spaces takes about as many tokens as three others.
        self.chars = [int(len(one.text) * (1 + 2 * language.dense_share(one.text))) for one in candidates]
        self.focused = frozenset(i for i, one in enumerate(candidates) if focus and names(one.text, focus))
        # By candidate, the item whose number of lines is limited, or -1 where no limit applies.
        self.bounded = [
            self.items[i] if one.form in _SHOWN and i not in self.focused else -1 for i, one in enumerate(candidates)
        ]
        self.is_looked = [
            one.form is StatementForm.LOOKED and i not in self.focused for i, one in enumerate(candidates)
        ]
        self.weights = [one.weight for one in candidates]
        self.bridges = _bridges(candidates)
        self.openings = _openings(candidates)
        self.opened_quarters = [len(one.label) + 4 * ITEM_TOKENS for one in candidates]
        self.is_exhausted = False  # whether a larger budget would have given nothing more than the last one did
        gain = _Round(choice=self, left=0, focus_left=1.0).gain
        # What was only looked at can be looked at again: it comes after everything else.
        heaped = (i for i, is_looked in enumerate(self.is_looked) if not is_looked)
        self.heap = [(-value, i) for i in heaped if (value := gain(i)) > 0.0]
        heapify(self.heap)

    def says(self, text: str) -> bool:
        """Whether the rest of the summary says a text, around what is left out of it."""
        return all(part.strip() in self.shown for part in text.split(ELLIPSIS))

    def choose(self, budget_tokens: int) -> list[Statement]:
        """The candidates that add most to what is shown, within the budget, in the order of the transcript.

        Guarantees: the texts with their leads, and ``ITEM_TOKENS`` for every event (and label) opened, stay within
        ``budget_tokens`` by ``count``; the same input gives the same choice.
        """
        run = _Round(choice=self, left=budget_tokens, focus_left=budget_tokens * FOCUS_RATIO)
        run.quote_newest(int(budget_tokens * WHOLE_RATIO))
        run.take_first(int(budget_tokens * FIRST_RATIO))
        run.take(self.heap.copy(), MIN_OUTPUTS)
        run.take(run.rest(), MAX_OUTPUTS)
        run.fill()
        self.is_exhausted = not run.is_short
        return sorted((self.candidates[number] for number in run.taken), key=order)


class _Round:
    """One run of a choice, for one budget: what is taken, which facts that covers, and the tokens left."""

    def __init__(self, *, choice: Choice, left: int, focus_left: float) -> None:
        self.choice, self.left, self.focus_left = choice, left, focus_left
        self.fresh, self.values = choice.fresh.copy(), choice.values.copy()
        # How many candidates were taken when each was last weighed: while that number stands, its gain is exact.
        self.weighed = [0] * len(self.fresh)
        self.covered: set[Fact] = set()
        self.opened: set[int] = set()
        self.outputs: Counter[int] = Counter()  # by item, how many lines of output are taken
        self.looked_left = choice.looked_tokens
        self.full: set[int] = set()  # the items that have as many lines of output as they may
        self.taken: dict[int, None] = {}
        # By label and text without numbers, the event of the first line of output that was taken with these.
        self.printed: dict[tuple[str, str], int] = {}
        self.is_short = False  # whether something did not fit

    def quote_newest(self, most_tokens: int) -> None:
        """Takes the whole newest long text that was spoken and costs at most this: reasons stand anywhere in it."""
        candidates, count = self.choice.candidates, self.choice.count
        spoken = [i for i, one in enumerate(candidates) if one.event >= 0 and one.form not in _SHOWN and not one.label]
        for _, group in groupby(sorted(spoken, key=lambda i: (-candidates[i].event, i)), lambda i: candidates[i].event):
            whole = list(group)
            texts = [candidates[i].text for i in whole]
            if sum(map(len, texts)) >= WHOLE_CHARS and sum(map(count, texts)) + len(texts) <= most_tokens:
                for i in whole:
                    if not self.choice.says(candidates[i].text):
                        self._enter(i, 0)
                return

    def take_first(self, tokens: int) -> None:
        """Takes the statements of each group in ``first``, in order, until its share of these tokens is used up.

        The first statement of a group may exceed that share, but not what is left of the tokens.
        """
        end = self.left - min(tokens, self.left)
        for group, ratio in self.choice.first:
            least = max(end, self.left - int(tokens * ratio))
            for number in group:
                left = self.left - self.choice.count(self.choice.candidates[number].text) - ITEM_TOKENS
                if left < (end if number == group[0] else least):
                    break
                self._enter(number, 0)

    def take(self, heap: list[tuple[float, int]], max_outputs: int) -> None:
        """Takes what has the largest gain until nothing fits or adds any; at most this many lines of one answer."""
        bounded = self.choice.bounded
        self.full = {item for item, number in self.outputs.items() if number >= max_outputs}
        while heap:
            if self.left <= ITEM_TOKENS:
                self.is_short = True
                return
            bound, number = heappop(heap)
            if bounded[number] in self.full or not self._has_room(number) or self._is_printed_again(number):
                continue
            if not self._fits(number):
                self.is_short = True
                continue  # nor will it later: the tokens left only shrink
            gain = -bound if self.weighed[number] == len(self.taken) else self.gain(number)
            if heap and -gain > heap[0][0]:
                heappush(heap, (-gain, number))
            elif gain > 0.0:
                self._enter(number, max_outputs)

    def fill(self) -> None:
        """Fills the tokens left with what was spoken, then with lines of output, the newest first, whatever their gain.

        A sentence of known words may still be new. Of what was only looked at, lines are taken only where all of it
        fits, and none that are code and define nothing.
        """
        if self.left <= ITEM_TOKENS:
            return
        candidates, is_looked = self.choice.candidates, self.choice.is_looked
        is_short = sum(compress(self.choice.chars, is_looked)) <= 4 * self.looked_left
        offered = (
            i for i, one in enumerate(candidates) if one.place >= 0 and not (is_looked[i] and is_amid_code(one.text))
        )
        telling = (i for i in offered if is_short or not is_looked[i])
        known = {_without_numbers(candidates[number]) for number in self.taken}
        for number in sorted(telling, key=lambda i: (candidates[i].form in _LINES, -candidates[i].event)):
            if self.left <= ITEM_TOKENS:
                return
            one = candidates[number]
            is_new = _without_numbers(one) not in known and not self.choice.says(one.text)
            if is_new and self.outputs[self.choice.items[number]] < MAX_OUTPUTS and self._has_room(number):
                known.add(_without_numbers(one))
                self._enter(number, 0)

    def _is_printed_again(self, number: int) -> bool:
        """Whether a taken line, printed by another run under the same label, differs from this one in numbers alone."""
        one = self.choice.candidates[number]
        event = self.printed.get((one.label, _without_numbers(one)), one.event) if one.form in _LINES else one.event
        return event != one.event

    def _has_room(self, number: int) -> bool:
        """Whether tokens for what was only looked at are left, if a candidate is of that; true for every other one."""
        return not self.choice.is_looked[number] or self.looked_left > 0

    def rest(self) -> list[tuple[float, int]]:
        """A heap of the candidates that are not taken, by gain; empty where no tokens are left.

        Those that do not fit are in it too: `take` never gets to most of them, so their tokens need not be counted.
        """
        if self.left <= ITEM_TOKENS:
            return []
        rest = [i for i in range(len(self.fresh)) if i not in self.taken]
        self.is_short = self.is_short or not all(map(self._fits, rest))
        heap = [(-gain, i) for i in rest if (gain := self.gain(i)) > 0.0]
        heapify(heap)
        return heap

    def _fits(self, number: int) -> bool:
        """Whether the text of a candidate has fewer tokens than are left; it never has more tokens than bytes."""
        text = self.choice.candidates[number].text
        most = len(text) if text.isascii() else 4 * len(text)
        return most < self.left or self.choice.count(text) < self.left

    def gain(self, number: int) -> float:
        """The worth of the facts that a candidate adds to what is taken, divided by a power of its estimated cost."""
        choice, facts, value, weight = self.choice, self.fresh[number], self.values[number], self.choice.weights[number]
        if not self.covered.isdisjoint(facts):
            facts = self.fresh[number] = _without(facts, self.covered)
            value = self.values[number] = sum(facts.values())
        if number in choice.focused and self.focus_left > 0:
            value += FOCUS_VALUE / max(weight, _MIN_WEIGHT)
        quarters = choice.chars[number]
        if choice.items[number] not in self.opened:
            quarters += choice.opened_quarters[number]
        for lead, line in choice.leads[number]:
            if lead not in self.opened:
                quarters += len(line)
        quarters += sum(choice.chars[i] for i in self._missing(number))
        self.weighed[number] = len(self.taken)
        return weight * value / (_COST[quarters] if quarters < len(_COST) else _cost(quarters))

    def _enter(self, number: int, max_outputs: int) -> None:
        """Takes a candidate with its leads and its opening if all of that fits, then the bridges that it completes."""
        choice, candidate = self.choice, self.choice.candidates[number]
        item = choice.items[number]
        leads = [(lead, line) for lead, line in choice.leads[number] if lead not in self.opened]
        cost = choice.count(candidate.text) + 1
        if item not in self.opened:
            cost += ITEM_TOKENS + (choice.count(candidate.label) + 1 if candidate.label else 0)
        cost += sum(choice.count(line) + 1 for _, line in leads)
        missing = self._missing(number)
        cost += sum(choice.count(choice.candidates[i].text) + 1 for i in missing)
        if cost > self.left:
            self.is_short = True
            return
        self.left -= cost
        self.focus_left -= cost if number in choice.focused else 0
        self.taken |= dict.fromkeys((number, *missing))
        if candidate.form in _LINES:
            self.printed.setdefault((candidate.label, _without_numbers(candidate)), candidate.event)
        if candidate.form in _SHOWN:
            self.looked_left -= cost if choice.is_looked[number] else 0
            self.outputs[item] += 1
            if self.outputs[item] >= max_outputs:
                self.full.add(item)
        # The text of an entry leads the entries below it, which then need no lead of their own.
        for line in choice.led.get(origin(candidate), ()):
            if lead_of(candidate.text).startswith(line):
                self.opened.add(choice.numbers[origin(candidate), line, True])
        self.opened.update((item, *(lead for lead, _ in leads)))
        for i in (number, *missing):
            self.covered.update(self.fresh[i])
        for short, pair in choice.bridges.get(number, ()):
            if self.taken.keys() >= pair and not self._is_known(choice.candidates[short].text):
                self._enter(short, max_outputs)

    def _missing(self, number: int) -> Sequence[int]:
        """The opening that a candidate needs (see `_openings`), as long as it is not taken; else nothing."""
        opening = self.choice.openings.get(number, -1)
        return (opening,) if opening >= 0 and opening not in self.taken else ()

    def _is_known(self, text: str) -> bool:
        return self.choice.says(text) or any(self.choice.candidates[i].text == text for i in self.taken)


def _openings(candidates: Sequence[Statement]) -> dict[int, int]:
    """The candidate that must be taken along with another one, by the number of that: the opening of its section.

    For a sentence under a heading that is the first sentence there, for a numbered entry the entry 1 of its list: what
    all of it is about, a writer says first. For a sentence that points back it is the one before it. Openings longer
    than `MAX_OPENING_CHARS` are left out.
    """
    found: dict[int, int] = {}
    first: dict[Hashable, int] = {}
    for i, one in enumerate(candidates):
        number = _ENTRY_NUMBER.match(one.text) if one.form is StatementForm.ITEM else None
        if one.place < 0 or not (number or (one.lead and one.form is StatementForm.SENTENCE)):
            continue
        key = origin(one), one.label, one.lead, one.form
        is_first = number[1] == "1" if number else one.opens
        if is_first and len(one.text) <= MAX_OPENING_CHARS:
            first[key] = i
        elif key in first and not is_first:
            found[i] = first[key]
    ends = {(origin(one), one.label, one.place + one.span): i for i, one in enumerate(candidates) if one.place >= 0}
    for i, one in enumerate(candidates):
        before = ends.get((origin(one), one.label, one.place), -1)
        is_brief = before >= 0 and len(candidates[before].text) <= MAX_OPENING_CHARS
        if is_brief and one.form is StatementForm.SENTENCE and _POINTS_BACK.match(one.text):
            found[i] = before
    return found


# A sentence about what stands before it: `That keeps the hour of the log.`, `Neither was lost.`
_POINTS_BACK = re.compile(
    r"(?:(?:And|So|But|Also|Then|Even) )?(?:This|That|These|Those|Neither|Both|Same|Such|It|They"
    r"|Everything else|The (?:rest|others?|second|third|former|latter|same)|Either way|Another"
    r"|(?:One|Two|Three|Four|Several|A few) (?:further|more|other|additional)"
    r"|All (?:the )?others?|Otherwise|[Aa]ll of (?:this|that|them)"
    r"|[Nn]one of (?:this|that|them)|[Ww]ithout (?:this|that))\b(?! (?:PR|session|repo)\b)"
)
_ENTRY_NUMBER = re.compile(r"(\d{1,2})[.)] ")
MAX_OPENING_CHARS = 240


def _bridges(candidates: Sequence[Statement]) -> dict[int, list[tuple[int, set[int]]]]:
    """The statements to take along, by the number of a candidate, each with all that must be taken before it is.

    A short statement between two others is taken once both of them are: an ellipsis in its place would cost half as
    much and hide a "no". A statement that turns against the one before it is taken with that one.
    """
    spoken = [i for i, one in enumerate(candidates) if one.form not in _SHOWN and one.place >= 0]
    places = {i: (origin(candidates[i]), candidates[i].label) for i in spoken}
    starts = {(*places[i], candidates[i].place): i for i in spoken}
    ends = {(*places[i], candidates[i].place + candidates[i].span): i for i in spoken}
    found: dict[int, list[tuple[int, set[int]]]] = {}
    for i in spoken:
        one = candidates[i]
        before, after = ends.get((*places[i], one.place)), starts.get((*places[i], one.place + one.span))
        if len(one.text) <= BRIDGE_CHARS and before is not None and after is not None:
            for end in (before, after):
                found.setdefault(end, []).append((i, {before, after}))
        elif before is not None and len(one.text) <= CONTRAST_CHARS and _CONTRASTS.match(one.text):
            found.setdefault(before, []).append((i, {before}))
    return found


_CONTRASTS = re.compile(r"(?:But|However|Yet|Instead|Except|Unfortunately)\b|但是?|しかし")


def _without_numbers(one: Statement) -> str:
    """The text of a statement; of a line of output with each number as ``0``: steps of a count differ only there."""
    return _NUMBER.sub("0", one.text) if one.form in _LINES else one.text


_NUMBER = re.compile(r"\d+")


def _cost(quarters: int) -> float:
    """What a gain is divided by where a candidate costs this many quarters of a token; 4 tokens are the least."""
    return float(max(4.0, quarters / 4) ** COST_POWER)


_COST = tuple(map(_cost, range(2_000)))


def _without(facts: dict[Fact, float], covered: set[Fact]) -> dict[Fact, float]:
    if covered.isdisjoint(facts):
        return facts
    return {fact: value for fact, value in facts.items() if fact not in covered}


def origin(one: Statement) -> int:
    """A key that is equal for all statements of one event: its position, or below -1 for one of an earlier round."""
    return one.event if one.event >= 0 else -2 - one.at_tokens


def names(text: str, focus: frozenset[str]) -> bool:
    """Whether a text names any of these."""
    if not focus:
        return False
    lowered = text.lower()
    return any(name in lowered for name in focus)


def order(statement: Statement) -> tuple[bool, int, int, int, str]:
    """The key that sorts statements as in the transcript; those of earlier rounds come first, by where they stood."""
    is_new = statement.event >= 0
    return is_new, statement.event, 0 if is_new else statement.at_tokens, statement.place, statement.text
