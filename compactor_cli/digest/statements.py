"""Statements: verbatim pieces of texts that read alone, cut only where a cut makes no new word, and what they cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate, dropwhile, zip_longest
from typing import NamedTuple

from compactor_cli.digest.noise import is_narration
from compactor_cli.model.summary import Item
from compactor_cli.model.value import dataclass

ELLIPSIS = "…"
GAP = f" {ELLIPSIS} "
# What is shown of one statement.
MAX_CHARS = 320
# Full-width punctuation, written as escapes since some of it looks like ASCII. These end a sentence without a blank.
FULL_STOPS = "\u3002\uff01\uff1f"
QUESTION_MARKS = ("?", "\uff1f")
COLONS = (":", "\uff1a")
# No text of a budget's tokens is longer: 97 % of English and code is below 6 characters a token, and a text
# that is not is cut after counting.
_MOST_CHARS_PER_TOKEN = 8
_LIST_SPREAD_CHARS = 400


@dataclass(slots=True, kw_only=True)
class TokenCache:
    """Tokens of texts and items as they will be written, each counted once."""

    count: Callable[[str], int]
    known: dict[str, int] = field(default_factory=dict)

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
    """The records of an item about as a template writes them."""
    if not records:
        return ""
    first, last = records[0] + 1, records[-1] + 1
    return f" [{first}]" if first == last else f" [{first}-{last}]"


def records_of(numbers: Iterable[int]) -> tuple[int, ...]:
    """Record indices as an item wants them: ascending, each once; negative ones (carried over) left out."""
    return tuple(sorted({number for number in numbers if number >= 0}))


def _is_dense(char: str) -> bool:
    return "\u3000" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af" or "\uff00" <= char <= "\uffef"


def _may_cut(text: str, at: int) -> bool:
    """Whether a cut before this character leaves whole words: at a blank, or next to a character that is a word."""
    if not 0 < at < len(text):
        return True
    return text[at].isspace() or text[at - 1].isspace() or _is_dense(text[at]) or _is_dense(text[at - 1])


def head(text: str, chars: int) -> str:
    """At most the first ``chars`` characters, in whole words; empty if the first word is longer."""
    at = min(max(0, chars), len(text))
    while at > 0 and not _may_cut(text, at):
        at -= 1
    return text[:at].rstrip()


def tail(text: str, chars: int) -> str:
    """At most the last ``chars`` characters, in whole words; empty if the last word is longer."""
    at = max(len(text) - max(0, chars), 0)
    while at < len(text) and not _may_cut(text, at):
        at += 1
    return text[at:].lstrip()


def clipped(text: str, tokens: int, token_cache: TokenCache) -> str:
    """The text if it fits, else its first three quarters and last quarter around an ellipsis; at most ``tokens``."""
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


def opening(text: str, chars: int) -> str:
    """The beginning of a text as one line: whole sentences where one ends within ``chars``, else whole words.

    Without its first word where that alone is too long: the path of a picture. A word alone may have twice as many.
    """
    line = one_line(text)
    if len(line) <= chars:
        return line
    ends = [end for found in _SENTENCE_END.finditer(line, 0, chars + 1) if _may_cut(line, end := found.end())]
    ends = [end for end in ends if not _LIST_NUMBER.search(line, 0, end)]
    if ends and ends[-1] >= chars // 2:
        return line[: ends[-1]].rstrip()
    if cut := head(line, chars):
        return f"{cut} {ELLIPSIS}"
    following = line.partition(" ")[2]
    if not following and len(line) <= 2 * chars:
        return line
    rest = following if len(following) <= chars else head(following, chars)
    return f"{ELLIPSIS} {rest}" if rest else ""


# What a list counts with: nothing ends there.
_LIST_NUMBER = re.compile(r"(?<=[:;.!?] )\d{1,2}\.\s*\Z")


# Of a long text, the parts around a name.
_WINDOW_CHARS = 110


def windowed(text: str, spots: Sequence[tuple[int, int]], max_chars: int = MAX_CHARS) -> str:
    """The parts of a long text around ``spots`` (start, stop), most important first, cut at blanks, joined by ``GAP``.

    Guarantee: every part is verbatim, and the whole is no longer than ``max_chars`` plus the gaps.
    """
    if len(text) <= max_chars:
        return text
    taken: list[tuple[int, int]] = []
    left = max_chars
    for start, stop in spots:
        if any(a <= start and stop <= b for a, b in taken):
            continue
        near = _around(text, start, stop)
        # Parts that touch are united with the blank between them.
        size_chars = near[1] - near[0] + bool(taken)
        if size_chars > left:
            break
        left -= size_chars
        taken.append(near)
    if not taken:
        taken = [_around(text, 0, 0)]
    united: list[tuple[int, int]] = []
    for start, stop in sorted(taken):
        if united and start <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], stop))
        else:
            united.append((start, stop))
    pieces = [text[a:b].strip() for a, b in united]
    begins, ends = min(taken)[0] == 0, max(taken)[1] == len(text)
    return ("" if begins else GAP.lstrip()) + GAP.join(pieces) + ("" if ends else GAP.rstrip())


def _around(text: str, start: int, stop: int) -> tuple[int, int]:
    side = max(20, (_WINDOW_CHARS - (stop - start)) // 2)
    first, last = max(0, start - side), min(len(text), stop + side)
    if first and (blank := text.find(" ", first, start)) >= 0:
        first = blank + 1
    if last < len(text) and (blank := text.rfind(" ", stop, last)) >= 0:
        last = blank
    return first, last


def one_line(text: str) -> str:
    """The text on one line, without the marks of headings, emphasis and list items."""
    return " ".join(filter(None, map(plain_line, text.split("\n")))) if "\n" in text else plain_line(text)


# What a line with a mark begins with.
_MARK_STARTS = frozenset("#>-*+•`=")
_MARKS = re.compile(r"^\s*(?:#{1,6}\s+|>\s+|[-*+•]\s+)|^\s*(?:```\w*|---+|===+|\*\*\*+)\s*$")
# Not next to a slash or a word: `src/**/x*` is a pattern of paths.
_BOLD = re.compile(r"(?<![\w/*])\*\*(?=[^\s*])([^*\n]*[^\s*])\*\*(?![\w/*])")
# A file with its path, which says its name again; an editor writes the path with a scheme and the place in the file.
_FILE_LINK = re.compile(r"\[`?([\w./@-]+\.\w+)(?::[\d-]+)?`?\]\((?!https?:)([^()\s]*\1[^()\s]*)\)")


def plain_line(line: str) -> str:
    """A line without markup: heading and list marks, emphasis, fences, rules, table borders and links to files."""
    text = line.strip()
    if text[:1] in _MARK_STARTS:
        text = _MARKS.sub("", text).strip()
    if "**" in text:
        text = _BOLD.sub(lambda bold: bold[0] if _is_in_code(text, bold.start()) else bold[1], text).strip()
    if "](" in text:
        text = _FILE_LINK.sub(lambda link: link[1] if link[2].startswith((link[1], "cci:")) else link[2], text)
    if text.startswith("|") and text.endswith("|"):
        # Of the rule under a table's head nothing stays.
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        return " | ".join(cell for cell in cells if cell.strip(":-"))
    if text.startswith('"') and (member := _JSON_MEMBER.fullmatch(text)):
        return f"{member[1]}: {member[2] or member[3] or ''}".strip()
    return text


# A member of an object that is written out over several lines.
_JSON_MEMBER = re.compile(r'"([^"]+)": *(?:[{[]|"(.*)"|([^{["].*?)),?')


_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s|$)|[" + FULL_STOPS + r"]+[」』”]*")


@lru_cache(maxsize=1 << 10)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, line by line, without markup, tables, and code with the line that introduces it."""
    found: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            if fenced and found and found[-1].endswith(COLONS):
                found.pop()
        elif not (fenced or line.lstrip().startswith("|")):
            found.extend(_split(plain_line(line)))
    return tuple(found)


def without_end(text: str, is_left_out: Callable[[str], bool]) -> str:
    """A text without the sentences of some kind at its end; empty where it has no other."""
    stated = list(dropwhile(is_left_out, reversed(sentences(text) or (text,))))
    if not stated:
        return ""
    start = text.rfind(stated[0])
    return text[: start + len(stated[0])] if start >= 0 else text


def _split(line: str) -> list[str]:
    pieces: list[str] = []
    at = 0
    for end in _SENTENCE_END.finditer(line):
        if _is_in_code(line, end.start()):
            continue
        if end[0].endswith((")", "]", "...", ELLIPSIS)) and line[end.end() + 1 : end.end() + 2].islower():
            continue  # "(`0/`, `1/`, ...) which matches"
        if len(line[at : end.end()].strip()) > 2:
            pieces.append(line[at : end.end()].strip())
            at = end.end()
    rest = line[at:].strip()
    return [*pieces, rest] if rest else pieces


def _is_in_code(line: str, at: int) -> bool:
    """Whether a place of a line stands between two marks of code: a query's `?` ends no sentence."""
    return line.count("`", 0, at) % 2 == 1 and "`" in line[at:]


def verbatim(text: str) -> str:
    """A text without blank lines and trailing blanks, its words untouched.

    An entry of a list stands after the line before it, if that is no heading and no code: on a line of its own, it
    would be taken for an entry of a template's.
    """
    lines: list[str] = []
    is_code = False
    for line in text.split("\n"):
        if not (plain := line.strip()):
            continue
        is_entry = lines and plain.startswith("- ") and not is_code
        if is_entry and not lines[-1].lstrip().startswith(("#", "```")):
            lines[-1] = f"{lines[-1]} {plain}"
        else:
            lines.append(listed(line.rstrip()))
        is_code ^= plain.startswith("```")
    return "\n".join(lines)


def listed(line: str) -> str:
    """A line whose own list mark cannot be taken for that of a template's list."""
    body = line.lstrip()
    return f"{line[: len(line) - len(body)]}• {body[2:]}" if body.startswith("- ") else line


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
    """The level L with Σ min(cost, L) as large as the budget allows; the largest cost if everything fits."""
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
    """What a statement is."""

    SENTENCE = "sentence"
    ITEM = "item"  # an entry of a list
    ROW = "row"  # of a table
    CODE = "code"  # a line inside a fence
    OUTPUT = "output"  # a line of a call or its answer
    LOOKED = "looked"  # a line of what was only looked at: a file, a listing
    OBJECT = "object"  # of a service's answer


class Statement(NamedTuple):
    """A verbatim piece of an event; a tuple, since a great many are made.

    ``event``: position among the events, -1 for one remembered from an earlier round. ``place``: its number in the
    event. ``lead``: the heading and the line with a colon that it stands under, a line each. ``label``: the file,
    command or tool of an output. ``at_tokens``: where its event stands in the counter table. ``weight``: what its
    place makes of its worth. ``span``: how many places it takes, more than 1 for a list as a whole. ``siblings``: how
    many rows its list has, 0 for no row of one. ``opens``, ``closes``: whether nothing else stands between its lead and
    it, or none of its list after it.
    """

    text: str
    event: int
    place: int
    form: StatementForm = StatementForm.SENTENCE
    lead: str = ""
    label: str = ""
    record: int = -1
    at_tokens: int = 0
    weight: float = 1.0
    span: int = 1
    siblings: int = 0
    opens: bool = True
    closes: bool = True


_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)]|[A-Ha-h]\)|\[[ xX]\])\s+\S")
# How a sentence begins that limits the one before it, takes it back, or speaks of what that names: alone, either of the
# two would say what is not so.
LIMITS = re.compile(
    r"(?:But|However|Though|Although|Except|Unfortunately|Actually|Wait|Hmm|So|Otherwise|Instead|Thus|Therefore"
    r"|This|That|These|They|Those|The (?:rest|others?))\b"
    r"|[^.!?\n]{1,80}\bthough\b|但是?|不过|然而|しかし|ただし"
)
_NUMBER = re.compile(r"(\d{1,3}[.)]|[A-Ha-h]\))\s+")
# A full stop is an end before a blank and what can open a sentence; full-width stops always are. What limits a sentence
# is one piece with it.
_PIECE_END = re.compile(
    r"(?:(?<=[.!?])(?<!\b\d\.)(?<!\b\d\d\.)|(?<=[.!?][\"')*_`])|(?<=[.!?][\"')*_`]{2}))\s+(?=[A-Z\"'(*_`\[#])"
    rf"(?!{LIMITS.pattern})|(?<=[。！？；])(?!{LIMITS.pattern})"
)


def _with_labels(text: str) -> list[str]:
    """The lines that are not blank; outside of code, a label and the sentence below it as one: `Cause:` is no lead."""
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


_NO_SENTENCE = ("#", "|", "`", "*", ">", "(")
# One to three words that head the sentence below them.
LABEL = re.compile(r"\w+(?: \w+){0,2}[:\uff1a]")
# "I need to:" is a sentence only with the list below it.
_COMPLETED_BELOW = re.compile(r"\b(?:to|will|should|must)\s*[:\uff1a]$")


def statements_of(text: str) -> Iterator[tuple[str, StatementForm, str]]:
    """The statements of a spoken text in order, with their form and what they stand under.

    Headings, lines that introduce a list or the line below them, and the head of a table are no statements of their own
    but the lead of what follows. An entry of a list leads what stands further in below it, and the sentences after its
    first.
    """
    outline = _Outline()
    lines = _with_labels(text)
    for raw, below in zip_longest(lines, lines[1:], fillvalue=""):
        yield from outline.read(raw, below)


class _Outline:
    """Where a line of a text stands: in a fence, under which heading, in which list.

    ``above``: what leads lines of a larger indent than this, the innermost last; ``headings``: each with its level, the
    innermost last. ``introduces``: whether the line before introduces something; ``columns``: the head of a table.
    """

    def __init__(self) -> None:
        self.fenced = self.is_bold = self.introduces = self.has_entries = False
        self.heading = self.columns = ""
        self.above: list[tuple[float, str]] = []
        self.headings: list[tuple[int, str]] = []

    def read(self, raw: str, below: str) -> Iterator[tuple[str, StatementForm, str]]:
        """The statements of the next line, which ``below`` follows."""
        line, above = raw.strip(), self.above
        if self.fenced and not line.startswith("```"):
            yield raw.rstrip(), StatementForm.CODE, self.lead()
            return
        indent = len(raw) - len(raw.lstrip())
        while above and above[-1][0] >= indent:
            above.pop()
        introduced = above[-1:] if self.introduces else []
        self.introduces = False
        if line.startswith("|"):
            yield from self._row(line, below)
            return
        self.columns = ""
        if line.startswith("```"):
            self.fenced = not self.fenced
        elif _TAG_ALONE.fullmatch(line) or _BREAK.fullmatch(line):
            # What stands in another element, or after a break, is under none of it.
            self.heading, self.above, self.headings = "", [], []
        elif line.startswith("#") or (_IS_BOLD.match(line) and not _BOLD_SENTENCE.match(line)):
            self._head(line)
        elif _ITEM.match(raw):
            self.has_entries = True
            # Below an entry with a number, entries with a mark of the same indent are a list of its own.
            is_numbered = _NUMBER.match(line) is not None
            while is_numbered and above and above[-1][0] == indent - _HALF:
                above.pop()
            is_head = is_numbered and len(below) - len(below.lstrip()) == indent and _BULLET.match(below.lstrip())
            yield from self._entry(line, indent - _HALF * bool(is_head))
        elif line.startswith("**") and (_ITEM.match(below) or _BOLD_NUMBER.match(line)) and not line.endswith(COLONS):
            # As the entries of a list of which each has a list, or words, of its own.
            above.clear()
            yield from self._entry(plain_line(line), indent - 1)
        else:
            # A line that introduces a list leads entries of its own indent; a sentence ends that, a quotation does not.
            while above and above[-1][0] >= indent - (not line.startswith(">")):
                above.pop()
            # A list that a label in bold introduces ends with its last entry; a sentence about them is of it.
            is_after = self.has_entries and not (indent or _OF_ENTRIES.match(line)) and self.heading.endswith(COLONS)
            if self.is_bold and (is_after or _OWN_LABEL.match(line)):
                self.heading = ""
            pieces, lead = _introduced(plain_line(line), below)
            led = self.lead([*above, *(one for one in introduced if one not in above)])
            yield from ((piece, StatementForm.SENTENCE, led) for piece in pieces)
            above += [(indent - 1, lead)] if lead else []
            self.introduces = bool(lead) and not _SHOWS.match(lead)

    def lead(self, above: Sequence[tuple[float, str]] | None = None) -> str:
        """What the next statement stands under, a line each."""
        above = self.above if above is None else above
        outer = above[-2][1] if len(above) > 1 and not above[-2][1].endswith(COLONS) else ""
        inner = above[-1][1] if above else ""
        return "\n".join(filter(None, (self.heading, opening(outer, _MAX_OUTER_CHARS), inner)))

    def _head(self, line: str) -> None:
        level = len(line) - len(line.lstrip("#")) or _BOLD_LEVEL
        self.headings = [one for one in self.headings if one[0] < level]
        heading, self.is_bold, self.above, self.has_entries = plain_line(line), line[0] == "*", [], False
        # What numbered headings stand under says of what kind they are: how grave, of which part.
        outer = self.headings[-1][1] if self.headings and _NUMBER.match(heading) else ""
        # What stands under one of several, an option or a step, is of that one; of a proposal nothing is done yet.
        qualifying = () if _OF_ALL.match(heading) else (above for _, above in reversed(self.headings))
        outer = outer or next(filter(_QUALIFIES.match, qualifying), "")
        self.headings.append((level, heading))
        self.heading = "\n".join(filter(None, (outer, heading)))

    def _row(self, line: str, below: str) -> Iterator[tuple[str, StatementForm, str]]:
        row = plain_line(line)
        if row and _TABLE_RULE.fullmatch(below.strip()):
            # Of two columns with a word each the rows show themselves what they are.
            self.columns = row if row.count(" | ") > 1 or len(row.split()) > 3 else ""
        elif row:
            yield row, StatementForm.ROW, "\n".join(filter(None, (self.lead(), self.columns)))

    def _entry(self, line: str, indent: float) -> Iterator[tuple[str, StatementForm, str]]:
        """The statements of an entry of a list, which leads the lines below it."""
        lead = self.lead()
        number = _NUMBER.match(line)
        first, *rest = _pieces(plain_line(line[number.end() :] if number else line)) or [""]
        # An entry keeps its number: what is left out of a list can then be seen.
        first = f"{number[1]} {first}" if number else first
        self.above.append((indent, lead_of(first)))
        if rest or not first.endswith(COLONS) or len(first) > _MAX_LEAD_CHARS:
            yield first, StatementForm.ITEM, lead
        yield from ((piece, StatementForm.ITEM, self.lead()) for piece in rest)


# What only says that something is shown.
_SHOWS = re.compile(r"\W*(?:here(?:['’]s| is| are)|the following|below)\b", re.IGNORECASE)
_IS_BOLD = re.compile(r"\*\*.*(?:\*\*:?|:\*\*)$")
# Between two indents.
_HALF = 0.5
_BULLET = re.compile(r"[-*+•]\s+\S")
_TAG_ALONE = re.compile(r"</?[a-z][\w-]*>")


def _introduced(line: str, below: str) -> tuple[list[str], str]:
    """The pieces of a line, and what of it introduces what stands below; empty where nothing does.

    "The file uses tabs. Let me use Python:" states something before it announces something.
    """
    if not line.endswith(COLONS):
        return _pieces(line), ""
    *pieces, last = sentences(line) or (line,)
    is_step = pieces and is_narration(last) and not _COMPLETED_BELOW.search(last)
    is_lead = below.strip() and len(last) <= _MAX_LEAD_CHARS and not is_step
    return (pieces, last) if is_lead else ([*pieces, last], "")


def list_ends(found: Sequence[tuple[str, StatementForm, str]]) -> list[tuple[bool, bool]]:
    """Of each statement of a text whether nothing stands between its lead and it, and none of its list after it.

    Where nothing leads it, only entries of lists stand before one. What stands below an entry is of its list.
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
_QUALIFIES = re.compile(
    r"(?:[^\W\d]+ #?)?(?:\d{1,2}|[A-H])(?:[.:)]| [-–—])\s"
    r"|.*\b(?:[Pp]ropos\w+|[Ss]uggest\w+|[Rr]ecommend\w+|[Ii]deas?)\b"
)
# What a message ends with is about all that stands above it.
_OF_ALL = re.compile(
    r"(?:(?:what|how) I(?:['’]d| would)|(?:my |the )?(?:recommend|suggest|conclu|verdict|summary|overall|bottom line)"
    r"|next steps?\b|to sum up)",
    re.IGNORECASE,
)
_OF_ENTRIES = re.compile(r"(?:th(?:ose|ese|ey|is|at)|it|both|each|all of|none of)\b", re.IGNORECASE)
# A line across, between parts of a text.
_BREAK = re.compile(r"(?:-{3,}|\*{3,}|_{3,})")
# A line in bold heads what is under any heading with marks.
_BOLD_LEVEL = 7
# How a paragraph begins that has a label in bold of its own: it is not under the one before it.
_OWN_LABEL = re.compile(r"\*\*[^*\n]{2,60}(?:(?::\*\*|\*\*:)\s+\S|\*\*[^*\n]*[:\uff1a]$)")
# A bold line that says something heads nothing.
_BOLD_SENTENCE = re.compile(r"\*\*(?:[^*\n]+ ){6,}[^*\n]+[.!?]\*\*$")
_BOLD_NUMBER = re.compile(r"\*\*\d{1,2}[.)] \S")
# What stands between the head of a table and its rows.
_TABLE_RULE = re.compile(r"\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-+:?)?")


@lru_cache(maxsize=1 << 12)
def lead_of(text: str) -> str:
    """What an entry of a list says at most above what stands under it."""
    return opening(text, _MAX_LEAD_CHARS)


_MAX_OUTER_CHARS = 60


def _pieces(line: str) -> list[str]:
    if len(line) <= 100:
        return [line] if line else []
    ends = [end.span() for end in _PIECE_END.finditer(line) if not _is_in_code(line, end.start())]
    starts, stops = [0, *(stop for _, stop in ends)], [*(start for start, _ in ends), len(line)]
    return [piece for start, stop in zip(starts, stops, strict=True) if (piece := line[start:stop].strip())]
