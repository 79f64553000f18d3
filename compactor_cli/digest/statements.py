"""Statements: verbatim pieces of a text that can be read alone, cut only between words, and their cost in tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate, pairwise, takewhile, zip_longest
from typing import NamedTuple

from compactor_cli.digest.noise import is_narration
from compactor_cli.digest.texts import (
    COLONS,
    ELLIPSIS,
    FULL_STOPS,
    head,
    is_in_code,
    listed,
    opening,
    plain_line,
    sentences,
    tail,
)
from compactor_cli.digest.tools import joined_lines
from compactor_cli.model.summary import Item
from compactor_cli.model.value import dataclass

QUESTION_MARKS = ("?", "\uff1f")
# A text with more characters per token of its budget is taken as too long without being counted: 97 % of English and
# code has fewer than 6 characters per token.
_MOST_CHARS_PER_TOKEN = 8
_LIST_SPREAD_CHARS = 400


@dataclass(slots=True, kw_only=True)
class TokenCache:
    """Token counts of texts, and of items as they will be written; each text is counted once."""

    count: Callable[[str], int]
    known: dict[str, int] = field(default_factory=dict)  # tokens by text

    def text(self, text: str) -> int:
        """Tokens of a text."""
        tokens = self.known.get(text)
        if tokens is None:
            tokens = self.known[text] = self.count(text)
        return tokens

    def item(self, item: Item) -> int:
        """Tokens of an item with its list mark, line break and the records after it."""
        indent = "  " * item.depth
        body = item.text.replace("\n", f"\n{indent}  ")
        return self.text(f"\n{indent}- {body}{tag(item.records)}")


def tag(records: Sequence[int]) -> str:
    """The records after an item, roughly as a template writes them: ` [3-5]`, counted from 1; empty without records."""
    if not records:
        return ""
    first, last = records[0] + 1, records[-1] + 1
    return f" [{first}]" if first == last else f" [{first}-{last}]"


def records_of(numbers: Iterable[int]) -> tuple[int, ...]:
    """Record indices for an item: ascending, each once, without negative ones (of an earlier summary)."""
    return tuple(sorted({number for number in numbers if number >= 0}))


def clipped(text: str, tokens: int, token_cache: TokenCache) -> str:
    """The text if it fits in ``tokens``; else its beginning and end around an ellipsis, or empty if no cut fits.

    The beginning gets three quarters of the room, and all of it in a cut of less than 60 characters.
    """
    if len(text) <= tokens * _MOST_CHARS_PER_TOKEN and token_cache.text(text) <= tokens:
        return text
    sample = text[: max(1, tokens * _MOST_CHARS_PER_TOKEN)]
    chars = int(len(sample) / max(1, token_cache.text(sample)) * (tokens - 2))
    while chars > 0:
        cut = _both_ends(text, chars)
        if token_cache.text(cut) <= tokens:
            return cut
        chars = int(chars * 0.9)
    return ""


def _both_ends(text: str, chars: int) -> str:
    first, last = head(text, chars * 3 // 4), tail(text, chars // 4)
    if chars < 60:
        first, last = head(text, chars), ""
    joint = f"\n{ELLIPSIS} " if "\n" in text and chars > _LIST_SPREAD_CHARS else f" {ELLIPSIS} "
    return f"{first}{joint}{last}".strip()


def chosen(offers: Iterable[Item], budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """The items that fit when taken in this order; one that does not fit is passed over."""
    left = budget_tokens
    taken: list[Item] = []
    for item in offers:
        if left < 6:
            break
        cost = token_cache.item(item)
        if cost <= left:
            taken.append(item)
            left -= cost
    return tuple(taken)


def water_level(costs: Iterable[int], budget: int) -> int:
    """The level L with Σ min(cost, L) as large as the budget allows; the largest cost if all fit, 0 without costs."""
    left = budget
    ordered = sorted(costs)
    for position, cost in enumerate(ordered):
        share = left // (len(ordered) - position)
        if cost > share:
            return share
        left -= cost
    return ordered[-1] if ordered else 0


_MAX_LEAD_CHARS = 160


class StatementForm(StrEnum):
    """The kind of text that a statement is."""

    SENTENCE = "sentence"
    ITEM = "item"  # an entry of a list
    ROW = "row"  # a row of a table
    CODE = "code"  # a line inside a fence
    OUTPUT = "output"  # a line of a call or its answer
    LOOKED = "looked"  # a line of what was only looked at: a file, a listing
    OBJECT = "object"  # an object in a service's answer


class Statement(NamedTuple):
    """A verbatim piece of an event; a tuple, since a great many are made."""

    text: str
    event: int  # position in the events; -1: remembered from an earlier summary
    place: int  # its number within the event
    form: StatementForm = StatementForm.SENTENCE
    lead: str = ""  # the headings and the introducing line that it stands under, a line each
    label: str = ""  # of output: the file, command or tool that it comes from
    record: int = -1  # of its event; -1: of none here
    at_tokens: int = 0  # estimated tokens of the events before its own
    weight: float = 1.0  # factor of its worth, by where it stands
    span: int = 1  # how many places it takes; more than 1 for a list as a whole
    siblings: int = 0  # rows of its list; 0: it is not a row of a list
    opens: bool = True  # nothing else stands between its lead and it
    closes: bool = True  # no entry of its list stands after it


_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)]|[A-Ha-h]\)|\[[ xX]\])\s+\S")
# The start of a sentence that limits the one before it, takes it back or refers to it (`However, not at low tide.`):
# either of the two alone would mislead.
LIMITS = re.compile(
    r"(?:But|However|Though|Although|Except|Unfortunately|Actually|Wait|Hmm|So|Otherwise|Instead|Thus|Therefore"
    r"|This|That|These|They|Those|The (?:rest|others?))\b"
    r"|[^.!?\n]{1,80}\bthough\b|但是?|不过|然而|しかし|ただし"
)
_NUMBER = re.compile(r"(\d{1,3}[.)]|[A-Ha-h]\))\s+")
# A piece ends at a full stop, `!` or `?` before a blank and a character that can open a sentence (not `(as here)`),
# and at any full-width stop; but not before a sentence of `LIMITS`, which stays in one piece with the one it limits.
_PIECE_END = re.compile(
    r"(?:(?<=[.!?])(?<!\b\d\.)(?<!\b\d\d\.)|(?<=[.!?][\"')*_`])|(?<=[.!?][\"')*_`]{2}))(?<!\.\.\.`)\s+"
    r"(?=[A-Z\"'*_`\[#]|\([^a-z])"
    rf"(?!{LIMITS.pattern})|(?<=[。！？；])(?!{LIMITS.pattern})"
)


def _with_labels(text: str) -> list[str]:
    """The lines that are not blank; outside code, a label (`Cause:`) is joined with the sentence below it."""
    lines: list[str] = []
    fenced, label = False, ""
    for raw in text.split("\n"):
        line = raw.strip()
        fenced ^= line.startswith("```")
        if label and line and not (line.startswith(_NO_SENTENCE) or line.endswith(COLONS) or _ITEM.match(raw)):
            lines[-1] = f"{label} {line}"
        elif line:
            lines.append(raw)
        is_label = line.endswith(COLONS) and not fenced and LABEL.fullmatch(line)
        label = raw.rstrip() if is_label else "" if line else label
    return lines


# The first characters of lines that a label is not joined with.
_NO_SENTENCE = ("#", "|", "`", "*", ">", "(")
# One to three words that head the sentence below them.
LABEL = re.compile(r"\w+(?: \w+){0,2}[:\uff1a]")
# "I need to:" is a sentence only with the list below it.
_COMPLETED_BELOW = re.compile(r"\b(?:to|will|should|must)\s*[:\uff1a]$")


def statements_of(text: str) -> Iterator[tuple[str, StatementForm, str]]:
    """The statements of a message in order, each with its form and its lead: what it stands under.

    Headings, lines that introduce what is below them, and the head of a table are not statements, but part of the lead
    of what follows. The first sentence of a list entry leads the entry's other sentences and what is indented below it.
    A command that goes on after a backslash is one statement.
    """
    outline = _Outline()
    lines = _with_labels(joined_lines(text) if "\\\n" in text else text)
    is_paired = text.count(_FENCE) % 2 == 0
    for raw, below in zip_longest(lines, lines[1:], fillvalue=""):
        yield from outline.read(raw, below)
        # A fence may also begin or end within a line: `Given this: ```The gauge of the …`.
        if is_paired and raw.count(_FENCE) % 2 and not raw.lstrip().startswith(_FENCE):
            outline.fenced = not outline.fenced


_FENCE = "```"


class _Outline:
    """Where a line of a text stands: in a fence, under which heading, in which list."""

    def __init__(self) -> None:
        # Whether: in a fence; under a heading in bold; after a line that introduces; after list entries of the heading.
        self.fenced = self.is_bold = self.introduces = self.has_entries = False
        self.heading = self.columns = ""  # the headings for the lead, a line each; the head of the table
        self.above: list[tuple[float, str]] = []  # indent, and the lead of lines with a larger one; innermost last
        self.headings: list[tuple[int, str]] = []  # level and text, innermost last

    def read(self, raw: str, below: str) -> Iterator[tuple[str, StatementForm, str]]:
        """The statements of the next line ``raw``; ``below`` is the line after it."""
        line, above = raw.strip(), self.above
        if self.fenced and not line.startswith(_FENCE):
            yield raw.rstrip(), StatementForm.CODE, self.lead()
            return
        indent = len(raw) - len(raw.lstrip())
        # A block of code belongs to the entry that introduces it, however it is indented.
        opens_led = line.startswith(_FENCE) and not self.fenced and bool(above) and above[-1][1].endswith(COLONS)
        while above and above[-1][0] >= indent and not opens_led:
            above.pop()
        introduced = above[-1:] if self.introduces else []
        self.introduces = False
        if line.startswith("|"):
            yield from self._row(line, below)
            return
        self.columns = ""
        if line.startswith(_FENCE):
            self.fenced = not self.fenced
        elif _TAG_ALONE.fullmatch(line) or _BREAK.fullmatch(line):
            # A tag alone on its line, or a rule, ends all leads above it.
            self.heading, self.above, self.headings = "", [], []
        elif line.startswith("#") or (_IS_BOLD.match(line) and not _BOLD_SENTENCE.match(line)):
            self._head(line)
        elif _ITEM.match(raw):
            self.has_entries = True
            # Entries with a bullet at the indent of the numbered entry above them are a list under that entry.
            is_numbered = _NUMBER.match(line) is not None
            while is_numbered and above and above[-1][0] == indent - _HALF:
                above.pop()
            is_head = is_numbered and len(below) - len(below.lstrip()) == indent and _BULLET.match(below.lstrip())
            yield from self._entry(line, indent - _HALF * bool(is_head))
        elif line.startswith("**") and (_ITEM.match(below) or _BOLD_NUMBER.match(line)) and not line.endswith(COLONS):
            # A line that begins in bold, above a list or with a number, is an entry of an outer list.
            above.clear()
            yield from self._entry(plain_line(line), indent - 1)
        else:
            # A line that introduces a list leads entries of its own indent, until a sentence that is not a quotation.
            while above and above[-1][0] >= indent - (not line.startswith(">")):
                above.pop()
            # A label in bold (`**Gauges:**`) leads a list up to its last entry, and sentences about the entries.
            is_after = self.has_entries and not (indent or _OF_ENTRIES.match(line)) and self.heading.endswith(COLONS)
            if self.is_bold and (is_after or _OWN_LABEL.match(line)):
                self.heading = ""
            pieces, lead = _introduced(plain_line(line), below)
            led = self.lead([*above, *(one for one in introduced if one not in above)])
            if len(pieces) > 1 and (label := _PARAGRAPH_LABEL.match(line)):
                named = plain_line(label[0].strip())
                pieces = [*filter(None, (pieces[0].removeprefix(named).lstrip(), *pieces[1:]))]
                led = "\n".join(filter(None, (led, named)))
            yield from ((piece, StatementForm.SENTENCE, led) for piece in pieces)
            above += [(indent - 1, lead)] if lead else []
            self.introduces = bool(lead) and not _SHOWS.match(lead)

    def lead(self, above: Sequence[tuple[float, str]] | None = None) -> str:
        """The lead of the next statement: the headings, the outer lead (shortened) and the inner lead, a line each."""
        above = self.above if above is None else above
        outer = above[-2][1] if len(above) > 1 and not above[-2][1].endswith(COLONS) else ""
        inner = above[-1][1] if above else ""
        return "\n".join(filter(None, (self.heading, opening(outer, _MAX_OUTER_CHARS), inner)))

    def _head(self, line: str) -> None:
        level = len(line) - len(line.lstrip("#")) or _BOLD_LEVEL
        self.headings = [one for one in self.headings if one[0] < level]
        heading, self.is_bold, self.above, self.has_entries = plain_line(line), line[0] == "*", [], False
        # The heading above numbered ones says what kind they are: how grave, or of which part.
        outer = self.headings[-1][1] if self.headings and _NUMBER.match(heading) else ""
        # The heading of an option, a step or a proposal (not done yet) limits all that is below it.
        qualifying = () if _OF_ALL.match(heading) else (above for _, above in reversed(self.headings))
        outer = outer or next(filter(_QUALIFIES.match, qualifying), "")
        self.headings.append((level, heading))
        self.heading = "\n".join(filter(None, (outer, heading)))

    def _row(self, line: str, below: str) -> Iterator[tuple[str, StatementForm, str]]:
        row = plain_line(line)
        if row and _TABLE_RULE.fullmatch(below.strip()):
            # Rows of two columns that have a word each as a head are clear without it.
            self.columns = row if row.count(" | ") > 1 or len(row.split()) > 3 else ""
        elif row:
            yield row, StatementForm.ROW, "\n".join(filter(None, (self.lead(), self.columns)))

    def _entry(self, line: str, indent: float) -> Iterator[tuple[str, StatementForm, str]]:
        """The statements of a list entry; its first sentence becomes the lead of what is indented below it."""
        lead = self.lead()
        number = _NUMBER.match(line)
        first, *rest = _pieces(plain_line(line[number.end() :] if number else line)) or [""]
        # An entry keeps its number, which shows where entries were left out.
        first = f"{number[1]} {first}" if number else first
        self.above.append((indent, lead_of(first)))
        if rest or not first.endswith(COLONS) or len(first) > _MAX_LEAD_CHARS:
            yield first, StatementForm.ITEM, lead
        yield from ((piece, StatementForm.ITEM, self.lead()) for piece in rest)


# A lead that only says that something is shown: `Here are the gauges:`.
_SHOWS = re.compile(r"\W*(?:here(?:['’]s| is| are)|the following|below)\b", re.IGNORECASE)
_IS_BOLD = re.compile(r"\*\*.*(?:\*\*:?|:\*\*)$|\*\*[^*]{2,60}\*\* \([^()]{2,60}\):?$")
# Half a step of the indent, to put a lead between two indents.
_HALF = 0.5
_BULLET = re.compile(r"[-*+•]\s+\S")
_TAG_ALONE = re.compile(r"</?[a-z][\w-]*>")


def _introduced(line: str, below: str) -> tuple[list[str], str]:
    """The statements of a line, and the part of it that introduces what is below, or an empty string.

    A step that is announced after a statement introduces nothing: "The file uses tabs. Let me use Python:".
    """
    if not line.endswith(COLONS):
        return _pieces(line), ""
    *pieces, last = sentences(line) or (line,)
    is_step = pieces and is_narration(last) and not _COMPLETED_BELOW.search(last)
    is_lead = below.strip() and len(last) <= _MAX_LEAD_CHARS and not is_step
    return (pieces, last) if is_lead else ([*pieces, last], "")


def list_ends(found: Sequence[tuple[str, StatementForm, str]]) -> list[tuple[bool, bool]]:
    """For each statement of a text, whether it is the first under its lead and whether it is the last of its list.

    The first is also true of a sentence without a lead, the second of all that are not entries. A statement counts for
    each line of its lead: what is below an entry is part of the entry's list.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for place, (_, form, lead) in enumerate(found):
        for of_list in accumulate(lead.split("\n"), "{}\n{}".format):
            if lead or form in _ENTRIES:
                first.setdefault(of_list, place)
            if form in _ENTRIES:
                last[of_list] = place
    ends: list[tuple[bool, bool]] = []
    for place, (_, form, lead) in enumerate(found):
        is_entry = form in _ENTRIES
        ends.append((not (lead or is_entry) or place == first[lead], not is_entry or place == last[lead]))
    return ends


_ENTRIES = (StatementForm.ITEM, StatementForm.ROW)
# A heading that limits what is below it: `Option B: ebb`, `Step 2. Gauges`, `Suggested changes`.
_QUALIFIES = re.compile(
    r"(?:[^\W\d]+ #?)?(?:\d{1,2}|[A-H])(?:[.:)]| [-–—])\s"
    r"|.*\b(?:[Pp]ropos\w+|[Ss]uggest\w+|[Rr]ecommend\w+|[Ii]deas?)\b"
)
# A heading at the end of a message (`Next steps`, `My verdict`) is about all above it, not about the last option.
_OF_ALL = re.compile(
    r"(?:(?:what|how) I(?:['’]d| would)|(?:my |the )?(?:recommend|suggest|conclu|verdict|summary|overall|bottom line)"
    r"|next steps?\b|to sum up)",
    re.IGNORECASE,
)
_OF_ENTRIES = re.compile(r"(?:th(?:ose|ese|ey|is|at)|it|both|each|all of|none of)\b", re.IGNORECASE)
# A horizontal rule between parts of a text, also one drawn with the name of what it frames: `★ Note ──────`.
_BREAK = re.compile(r"(?:-{3,}|\*{3,}|_{3,})|`?(?:\W [A-Z]\w+ )?─{5,}`?")
# The level of a heading in bold: under all headings with `#`, which have at most 6.
_BOLD_LEVEL = 7
# The start of a paragraph with its own label in bold, which is not under the label before it: `**Ebb:** it falls`.
_OWN_LABEL = re.compile(r"\*\*[^*\n]{2,60}(?:(?::\*\*|\*\*:)\s+\S|\*\*[^*\n]*[:\uff1a]$)")
# A label in bold that all sentences of its paragraph stand under.
_PARAGRAPH_LABEL = re.compile(r"\*\*[^*\n]{2,60}(?::\*\*|\*\*:)\s+(?=\S)")
# A line in bold that is a whole sentence is not a heading.
_BOLD_SENTENCE = re.compile(r"\*\*(?:[^*\s]+ ){6}[^*\n]+[.!?]\*\*$")
_BOLD_NUMBER = re.compile(r"\*\*\d{1,2}[.)] \S")
# The line between the head of a table and its rows: `|---|:-:|`.
_TABLE_RULE = re.compile(r"\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-+:?)?")


@lru_cache(maxsize=1 << 12)
def lead_of(text: str) -> str:
    """The beginning of a list entry, as long as a lead may be."""
    return opening(text, _MAX_LEAD_CHARS)


_MAX_OUTER_CHARS = 60


def _pieces(line: str) -> list[str]:
    if len(line) <= 100:
        return [line] if line else []
    ends = [end.span() for end in _PIECE_END.finditer(line) if not is_in_code(line, end.start())]
    starts, stops = [0, *(stop for _, stop in ends)], [*(start for start, _ in ends), len(line)]
    return [piece for start, stop in zip(starts, stops, strict=True) if (piece := line[start:stop].strip())]


class Mark(NamedTuple):
    """What is written before a statement and after it; each may be an empty string."""

    before: str = ""
    after: str = ""


def cut_lists(group: Sequence[Statement]) -> Iterator[tuple[int, Mark]]:
    """Ellipses for the lists of a message: at the first and last shown entry, if others stand before or after it.

    Each with the place of the statement that it goes with.
    """
    shown: dict[str, list[int]] = {}
    for at, one in enumerate(group):
        shown.setdefault(one.lead, []).append(at)
    for places in shown.values():
        first, last = group[places[0]], group[places[-1]]
        # Right below its parent entry, or right after what stands below the entry before, the gap is shown already.
        above = group[places[0] - 1] if places[0] else None
        if not (first.opens or (above and (_is_below(above, first) or _follows(above, first)))):
            yield first.place, Mark(before=f"{ELLIPSIS} ")
        if not last.closes:
            below = takewhile(lambda pair: _is_below(*pair), pairwise(group[places[-1] :]))
            *_, (_, end) = [(last, last), *below]
            yield end.place, Mark(after="" if end.text.endswith(ELLIPSIS) else f" {ELLIPSIS}")


def _follows(below: Statement, one: Statement) -> bool:
    """Whether ``one`` comes right after ``below``, which stands under the entry of the list before ``one``."""
    return below.lead.startswith(f"{one.lead}\n") and one.place <= below.place + below.span


def _is_below(above: Statement, one: Statement) -> bool:
    """Whether ``one`` stands under ``above``, as an entry under the line that introduces it."""
    return one.lead.rpartition("\n")[2] == lead_of(above.text)


_STOPS = (".", *FULL_STOPS)


def _number(text: str) -> int:
    """The number with which a text begins, as an entry or heading of a list has it; 0 where it has none."""
    found = _NUMBERED.match(text)
    return int(found[1]) if found else 0


_NUMBERED = re.compile(r"\*{0,2}(\d{1,2})[.)]\s")


def running_text(group: Sequence[Statement], marks: Mapping[tuple[int, int], Mark]) -> str:
    """The statements of a message as one text; one under other leads than that before starts a line with new leads.

    An ellipsis stands for what is left out between two statements.
    """
    lines: list[str] = []
    above: list[str] = []
    shown: set[str] = set()
    before: Statement | None = None
    last_number = 0
    # A mark that holds for the whole message is written once, before it.
    doubted = marks.get((group[0].event, -1), Mark()).before if group else ""
    for statement in group:
        entry = statement.form is not StatementForm.SENTENCE
        mark = marks.get((statement.event, statement.place), Mark())
        piece = f"{mark.before}{listed(statement.text.strip())}{mark.after}"
        leads = statement.lead.split("\n") if statement.lead else []
        is_below = before is not None and _is_below(before, statement)
        gap = before is not None and (statement.event != before.event or statement.place > before.place + before.span)
        if not before or (leads != above and not is_below):
            new = [lead for lead in leads if lead not in shown]
            named = [lead if lead.rstrip("*").endswith((*COLONS, *_STOPS)) else f"{lead}:" for lead in new]
            if named and named[-1].rstrip("*").endswith(_STOPS) and not statement.opens:
                named.append(ELLIPSIS)
            # A heading shows that something else begins; without one, only a mark shows what is left out.
            is_marked = mark.before.startswith(ELLIPSIS) or (lines and lines[-1].endswith(ELLIPSIS))
            is_cut = gap and not (named or is_marked)
            parts = [*named, f"{ELLIPSIS} {piece}" if is_cut else piece]
            for at, part in enumerate(parts):
                number = _number(part)
                if number > 1 and number != last_number + 1:
                    parts[at] = f"{ELLIPSIS} {part}"  # the entries before it are left out
                last_number = number or last_number
            lines.append(" ".join(parts))
        else:
            is_listed = entry and before.form is not StatementForm.SENTENCE
            # Text that ends with a word is no full sentence, so the next one must not run on from it.
            is_apart = is_listed or (before.form is statement.form and lines[-1][-1:].isalnum())
            last_number = _number(piece) or last_number
            between = (
                f" {ELLIPSIS} " if gap and not lines[-1].endswith(ELLIPSIS) else " · " if is_apart and not gap else " "
            )
            lines[-1] += f"{between}{piece}"
        above, before = leads, statement
        shown.update(leads, (lead_of(statement.text),))
    return doubted + "\n".join(lines)
