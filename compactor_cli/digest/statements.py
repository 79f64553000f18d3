"""Statements: verbatim pieces of texts that read alone, cut only where a cut makes no new word, and what they cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from functools import cache, lru_cache
from itertools import zip_longest
from operator import itemgetter
from typing import NamedTuple

from compactor_cli.formats.client_signs import AROUND_OUTPUT
from compactor_cli.model.summary import Item
from compactor_cli.model.value import dataclass

ELLIPSIS = "…"
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
        if not cut or token_cache.text(cut) <= tokens:
            return cut
        chars = int(chars * 0.9)
    return ""


def _both_ends(text: str, chars: int) -> str:
    first, last = head(text, chars * 3 // 4), tail(text, chars // 4)
    if chars < 60 or not last:
        first, last = head(text, chars), ""
    joint = f"\n{ELLIPSIS} " if "\n" in text and chars > _LIST_SPREAD_CHARS else f" {ELLIPSIS} "
    return f"{first}{joint}{last}".strip() if first or last else ""


def opening(text: str, chars: int) -> str:
    """The beginning of a text as one line: whole sentences where one ends within ``chars``, else whole words."""
    line = one_line(text)
    if len(line) <= chars:
        return line
    ends = [end for found in _SENTENCE_END.finditer(line, 0, chars + 1) if _may_cut(line, end := found.end())]
    if ends and ends[-1] >= chars // 2:
        return line[: ends[-1]].rstrip()
    cut = head(line, chars)
    return f"{cut} {ELLIPSIS}" if cut else ""


def one_line(text: str) -> str:
    """The text on one line, without the marks of headings, emphasis and list items."""
    return " ".join(filter(None, map(plain_line, text.split("\n")))) if "\n" in text else plain_line(text)


# What a line with a mark begins with.
_MARK_STARTS = frozenset("#>-*+•`=")
_MARKS = re.compile(r"^\s*(?:#{1,6}\s+|>\s+|[-*+•]\s+(?:\[ \]\s+)?)|^\s*(?:```\w*|---+|===+|\*\*\*+)\s*$")
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
        text = _BOLD.sub(itemgetter(1), text).strip()
    if "](" in text:
        text = _FILE_LINK.sub(lambda link: link[1] if link[2].startswith((link[1], "cci:")) else link[2], text)
    if text.startswith("|") and text.endswith("|"):
        # Of the rule under a table's head nothing stays.
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        return " | ".join(cell for cell in cells if cell.strip(":-"))
    if text.startswith('"'):
        return _JSON_MEMBER.sub(lambda found: f"{found[1]}: {found[2] or found[3] or ''}".strip(), text)
    return text


# A member of an object that is written out over several lines.
_JSON_MEMBER = re.compile(r'"([^"]+)": *(?:[{[]|"(.*)"|([^{["].*?)),?')


_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s|$)|[" + FULL_STOPS + r"]+[」』”]*")


@lru_cache(maxsize=1 << 10)
def sentences(text: str, *, with_code: bool = False) -> tuple[str, ...]:
    """The sentences of a text, line by line, without markup; tables are left out.

    Lines of code are sentences of their own, in marks, or are left out with the line that introduces them.
    """
    found: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            if fenced and not with_code and found and found[-1].endswith((":", "：")):
                found.pop()
        elif fenced:
            found.extend([f"`{line.strip()}`"] if with_code and line.strip() else ())
        elif not line.lstrip().startswith("|"):
            found.extend(_split(plain_line(line)))
    return tuple(found)


def _split(line: str) -> list[str]:
    pieces: list[str] = []
    at = 0
    for end in _SENTENCE_END.finditer(line):
        if end[0].endswith((")", "]", "...", ELLIPSIS)) and line[end.end() + 1 : end.end() + 2].islower():
            continue  # "(`0/`, `1/`, ...) which matches"
        if len(line[at : end.end()].strip()) > 2:
            pieces.append(line[at : end.end()].strip())
            at = end.end()
    rest = line[at:].strip()
    return [*pieces, rest] if rest else pieces


def verbatim(text: str) -> str:
    """A text without blank lines and trailing blanks, its words untouched.

    An entry of a list stands after the line before it, if that is no heading: on a line of its own, it would be taken
    for an entry of a template's.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        if lines and line.lstrip().startswith("- ") and not lines[-1].startswith("#"):
            lines[-1] = f"{lines[-1]} {line.strip()}"
        else:
            lines.append(listed(line.rstrip()))
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


MAX_CHARS = 320
GAP = " … "
_MIN_CHARS = 6
_MAX_LEAD_CHARS = 160
# A word of this many characters is data, and so are this many marks in a row.
_RUN_CHARS = 80
_MAX_MARKS = 12
_MAX_NARRATION_CHARS, _MAX_PASSING_CHARS = 300, 140


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
    many rows its list has, 0 for no row of one.
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


_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)]|[A-Ha-h]\)|\[[ xX]\])\s+\S")
# How a sentence begins that limits the one before it, or takes it back: alone, that would say what is not so.
LIMITS = re.compile(
    r"(?:But|However|Though|Although|Except|Unfortunately)\b|[^.!?\n]{1,80}\bthough\b|但是?|不过|然而|しかし|ただし"
)
_NUMBER = re.compile(r"(\d{1,3}[.)]|[A-Ha-h]\))\s+")
# A full stop is an end before a blank and what can open a sentence; full-width stops always are. What limits a sentence
# is one piece with it.
_PIECE_END = re.compile(
    r"(?:(?<=[.!?])(?<!\b\d\.)(?<!\b\d\d\.)|(?<=[.!?][\"')*_`])|(?<=[.!?][\"')*_`]{2}))\s+(?=[A-Z\"'(*_`\[#])"
    rf"(?!{LIMITS.pattern})|(?<=[。！？；])(?!{LIMITS.pattern})"
)


def statements_of(text: str) -> Iterator[tuple[str, StatementForm, str]]:
    """The statements of a spoken text in order, with their form and what they stand under.

    Headings, lines that introduce a list, and the head of a table are no statements of their own but the lead of what
    follows. An entry of a list leads what stands further in below it, and the sentences after its first.
    """
    fenced, heading, is_bold, columns = False, "", False, ""
    above: list[tuple[int, str]] = []  # what leads lines of a larger indent than this, the innermost last
    headings: list[tuple[int, str]] = []  # each with its level, the innermost last
    lines = [raw for raw in text.split("\n") if raw.strip()]
    for raw, below in zip_longest(lines, lines[1:], fillvalue=""):
        line = raw.strip()
        if fenced and not line.startswith("```"):
            yield raw.rstrip(), StatementForm.CODE, _lead(heading, above)
            continue
        indent = len(raw) - len(raw.lstrip())
        while above and above[-1][0] >= indent:
            above.pop()
        if line.startswith("```"):
            fenced = not fenced
        elif line.startswith("#") or (line.startswith("**") and line.endswith(("**", "**:", ":**"))):
            level = len(line) - len(line.lstrip("#")) or _BOLD_LEVEL
            headings = [one for one in headings if one[0] < level]
            heading, is_bold, above = plain_line(line), line[0] == "*", []
            # What numbered headings stand under says of what kind they are: how grave, of which part.
            outer = headings[-1][1] if headings and _NUMBER.match(heading) else ""
            # What stands under one of several, an option or a step, is of that one.
            outer = outer or next((above for _, above in reversed(headings) if _ONE_OF_SEVERAL.match(above)), "")
            headings.append((level, heading))
            heading = "\n".join(filter(None, (outer, heading)))
        elif line.startswith("|"):
            row = plain_line(line)
            if row and _TABLE_RULE.fullmatch(below.strip()):
                # Of two columns the rows show themselves what they are.
                columns = row if row.count(" | ") > 1 else ""
            elif row:
                yield row, StatementForm.ROW, "\n".join(filter(None, (_lead(heading, above), columns)))
            continue
        elif _ITEM.match(raw):
            yield from _entry(line, indent, heading, above)
        elif line.startswith("**") and _ITEM.match(below) and not line.endswith(COLONS):
            # As the entries of a list of which each has a list of its own.
            above.clear()
            yield from _entry(plain_line(line), indent - 1, heading, above)
        else:
            # A line that introduces a list leads entries of its own indent; a sentence ends that.
            while above and above[-1][0] >= indent - 1:
                above.pop()
            if is_bold and _OWN_LABEL.match(line):
                heading = ""
            shown = plain_line(line)
            pieces, lead = _pieces(shown), ""
            if shown.endswith(COLONS) and len(shown) <= _MAX_LEAD_CHARS:
                pieces, lead = [], shown
            elif shown.endswith(COLONS) and _ITEM.match(below) and not is_narration(pieces[-1]):
                lead = pieces.pop() if len(pieces[-1]) <= _MAX_LEAD_CHARS else ""
            yield from ((piece, StatementForm.SENTENCE, _lead(heading, above)) for piece in pieces)
            above += [(indent - 1, lead)] if lead else []
        columns = ""


_ONE_OF_SEVERAL = re.compile(r"(?:[^\W\d]+ #?)?(?:\d{1,2}|[A-H])(?:[.:)]| [-–—])\s")
# A line in bold heads what is under any heading with marks.
_BOLD_LEVEL = 7
# How a paragraph begins that has a label in bold of its own: it is not under the one before it.
_OWN_LABEL = re.compile(r"\*\*[^*\n]{2,60}(?::\*\*|\*\*:)\s+\S")
# What stands between the head of a table and its rows.
_TABLE_RULE = re.compile(r"\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-+:?)?")


def _entry(
    line: str, indent: int, heading: str, above: list[tuple[int, str]]
) -> Iterator[tuple[str, StatementForm, str]]:
    """The statements of an entry of a list; adds it to what leads the lines below it."""
    lead = _lead(heading, above)
    number = _NUMBER.match(line)
    first, *rest = _pieces(plain_line(line[number.end() :] if number else line)) or [""]
    # An entry keeps its number: what is left out of a list can then be seen.
    first = f"{number[1]} {first}" if number else first
    above.append((indent, lead_of(first)))
    if rest or not first.endswith(COLONS) or len(first) > _MAX_LEAD_CHARS:
        yield first, StatementForm.ITEM, lead
    yield from ((piece, StatementForm.ITEM, _lead(heading, above)) for piece in rest)


@lru_cache(maxsize=1 << 12)
def lead_of(text: str) -> str:
    """What an entry of a list says at most above what stands under it."""
    return opening(text, _MAX_LEAD_CHARS)


def _lead(heading: str, above: Sequence[tuple[int, str]]) -> str:
    return "\n".join(filter(None, (heading, above[-1][1] if above else "")))


def _pieces(line: str) -> list[str]:
    if len(line) <= 100:
        return [line] if line else []
    return [piece.strip() for piece in _PIECE_END.split(line) if piece and piece.strip()]


# What opens a sentence without a word on the work.
_OPENS = (
    r"(?:(?:ok(?:ay)?|good|great|perfect|now|so|alright|excellent|first|next|then|also|done|right|sure|wait|hm+|actually"
    r"|found it|got it|(?:good|great|excellent) (?:question|catch|points?|idea)"
    r"|(?:task|fix|step|change|phase|part) #?\w{1,2}(?: \([^)]*\))?)(?: ?[,.!:—–-]+)?\s+)*"
)


@cache
def _narration() -> re.Pattern[str]:
    # What the agent says it is about to do: the calls that follow say it better.
    aim = (
        r"(?:(?:now that|to (?:start|begin|do|achieve|confirm|ensure|verify|check|test)|before|after|while)"
        r"\b[^.!?,]{0,90}, )?"
    )
    return re.compile(
        rf"^{_OPENS}{aim}(?:let me|let'?s|let us|(?:i|we)'?ll|(?:i|we) (?:will|need to|should)|i'?m going to|i want to"
        r"|(?:now|next|then),? (?:remov|delet|replac|renam|creat|mov|extract|verify|build|handl|rewrit)(?:e|ing)?"
        r"|time to|going to|updat(?:e|ing)|add(?:ing)?|check(?:ing)?|run(?:ning)?|look(?:ing)?|read(?:ing)?"
        r"|fix(?:ing)?|appl(?:y|ying)|implement(?:ing)?|writ(?:e|ing)|commit(?:ting)?|push(?:ing)?|fetch(?:ing)?"
        r"|starting|the (?:next|last|remaining)|one (?:more|remaining|last))"
        r"\b(?:[^.!?]|\.(?=\w)){0,240}[.:!]*(?: let me(?:[^.]|\.(?=\w))*[.:]?)?$"
        rf"|^{_OPENS}i (?:can |now )*(?:see|understand|have)\b(?! that)[^.!?:`\d]{{0,60}}[.:!]*$"
        r"|^(?:让我|我来|现在我|接下来我|首先,?我)|^(?:では|次に)",
        re.IGNORECASE,
    )


@cache
def _passing() -> re.Pattern[str]:
    # What was checked or written, and how that went; what is left of a row of steps.
    subject = r"(?:tests?|checks?|lint\w*|build|suite|ci|compil\w+|everything|all|both|tree)"
    outcome = (
        r"(?:pass(?:e[sd]|ing)?|fail(?:s|ed|ing|ures?)?|clean|green|success\w*|compil(?:es?|ed)|errors?|issues?"
        r"|written|done|expected)"
    )
    return re.compile(
        rf"^{_OPENS}(?:[\w`*/.()'’-]+ ){{0,7}}?{subject}\b[^!?\n]{{0,60}}\b{outcome}\b"
        r"[^,;!?\n]{0,60}(?:, (?:including|with|as)\b[^,;!?\n]{0,40})?$"
        rf"|^{_OPENS}(?:(?:the|that|this) (?:\w+ ){{1,3}}(?:looks?|is|was) (?:correct|fine|good|done|in place)\b"
        r"|still|waiting|commit(?:ted)?\b[^!?\n]{0,20} success)[^!?\n]{0,60}$",
        re.IGNORECASE,
    )


# A part of every courtesy in lower case, and those that are the whole of a sentence.
_COURTESY_PARTS = (
    *("feel free", "let me know", "if you need", " can i ", " may i ", "anything else", "welcome", "thank"),
    *("happy to help", "glad to", "here to help", "apologi", "appreciate", "have a ", "i understand your", "please "),
    *(" you with ", "请随时", "很高兴", "还有什么", "不客气"),
)
_COURTESY = re.compile(
    r"\b(?:feel free|let me know|if you need (?:any )?(?:further|more) (?:assistance|help)"
    r"|(?:how|what) (?:can|may|else can) I (?:help|assist|do)|anything else"
    r"|you'?re welcome|happy to help|glad to|here to help|thank(?:s| you) (?:for|again|so much)|I apologi[sz]e"
    r"|I (?:really )?appreciate (?:your|the|it|all)\b"
    r"|have a (?:great|nice|good|wonderful)|I understand your|please (?:wait|hold|bear)"
    r"|(?:help|assist) you with [^.!?,]{1,40}[.!]?$)"
    r"|请随时|很高兴|还有什么|不客气",
    re.IGNORECASE,
)
_ONLY_COURTESY = re.compile(
    r"(?:(?:ah|oh|yes|sorry|you'?re (?:absolutely |completely |totally |so )?right(?: to (?:question|doubt|ask)"
    r"(?: (?:that|this|it))?)?|now I see(?: the [\w ]{0,24})?|(?:good|great|nice|excellent)"
    r"(?: catch| point| question| idea| find| thinking)?|perfect|sure|of course|got it|understood|absolutely"
    r"|makes sense|no (?:problem|worries)|thanks|thank you)\b[\s,.!]*)+$",
    re.IGNORECASE,
)


def is_narration(text: str) -> bool:
    """Whether a sentence only announces the next call, or is a courtesy."""
    if len(text) > _MAX_NARRATION_CHARS:
        return False
    text = text.replace("’", "'")
    return is_courtesy(text) or (_narration().match(text) is not None and not _PURPOSE.search(text))


def is_passing(text: str) -> bool:
    """Whether a sentence only says how a step of the work went: true until the next one, and shown by its call.

    One with a number says more.
    """
    is_short = len(text) <= _MAX_PASSING_CHARS and _DIGIT.search(text) is None
    return is_short and _passing().match(text) is not None and not _PURPOSE.search(text)


_DIGIT = re.compile(r"\d")
# What an announcement says of why, or for what, stays.
_PURPOSE = re.compile(
    r"\b(?:because|since|so that|instead of"
    r"|to (?:handle|avoid|prevent|keep|support|ensure|match|allow|preserve|stop))\b"
    r"|(?::| [—–-]) (?:it|this|that|the|there|with|without|but)\b",
    re.IGNORECASE,
)


def is_courtesy(text: str) -> bool:
    """Whether a sentence is a courtesy: thanks, an offer of help, a yes."""
    text = text.replace("’", "'")
    if _ONLY_COURTESY.match(text):
        return True
    return may_have(text, _COURTESY_PARTS) and _COURTESY.search(text) is not None


def may_have(text: str, parts: Iterable[str]) -> bool:
    """Whether a text has one of these parts (in lower case) in any case, or a letter that is one of ASCII in another.

    Asked before a pattern of which every match has one of the parts: that is found much faster.
    """
    return any(map(text.lower().__contains__, parts)) or (not text.isascii() and any(map(text.__contains__, "İıſ")))


# A run of 80 and more without a blank that is neither a path nor an address: encoded or minified data.
_ENCODED = re.compile(rf"[A-Za-z0-9+/=_-]{{{_RUN_CHARS},}}|(?:\\x[0-9a-f]{{2}}){{8}}")
# The navigation of a page: links with little between them, as its first characters show.
_LINK, _MIN_LINKS, _LINKS_CHARS = re.compile(r"\[[^\]\n]*\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)"), 3, 2_000
_MARKS_IN_A_ROW = re.compile(rf"(?:[^\s\w]\s*){{{_MAX_MARKS}}}")
# The same of ASCII, without blanks: a letter is "a", a digit "0", a mark "#".
_BLANKS = bytes(code for code in range(128) if chr(code).isspace())
_SHAPES = bytes(97 if chr(c).isalpha() else 48 if chr(c).isdigit() else 95 if c == 95 else 35 for c in range(256))
_MARKS_SHAPE = b"#" * _MAX_MARKS


def is_noise(text: str) -> bool:
    """Whether a text carries no information to a reader: brackets, rules, what tools add, encoded data."""
    if len(text) < _MIN_CHARS or (text.endswith("()") and " " not in text) or AROUND_OUTPUT.match(text):
        return True
    is_ascii, shape = text.isascii(), text.encode("ascii", "ignore").translate(_SHAPES, _BLANKS)
    letters, has_letter = shape.count(b"a") + shape.count(b"0"), b"a" in shape
    if not is_ascii and (letters * 5 < len(text) * 2 or not has_letter):
        letters, has_letter = sum(map(str.isalnum, text)), any(map(str.isalpha, text))
    if letters * 5 < len(text) * 2 or not has_letter:
        return True
    if text.count("](", 0, _LINKS_CHARS) >= _MIN_LINKS:
        words = _LINK.sub("", text[:_LINKS_CHARS])
        if 3 * sum(map(str.isalpha, words)) < min(len(text), _LINKS_CHARS):
            return True
    if "://" in text:
        return False
    has_run = len(text) >= _RUN_CHARS and max(map(len, text.split())) >= _RUN_CHARS
    if ("\\x" in text or has_run) and _ENCODED.search(text):
        return True
    if is_ascii:
        return _MARKS_SHAPE in shape
    return len(text) - letters - text.count(" ") >= _MAX_MARKS and _MARKS_IN_A_ROW.search(text) is not None


_PROGRESS_STARTS = tuple(
    "=== RUN |ok |✓ |✔ |√ |Compiling |Checking |Adding |Download|Collecting |Unpacking |Using cached "
    "|Requirement already |Get:|Setting up |Receiving objects:|Resolving deltas:|remote: ".split("|")
)
# go, cargo, pytest, unittest, TAP, and the check marks of mocha, jest and vitest; then cargo, pip, apt and git.
_PROGRESS = re.compile(
    r"^\s*(?:--- PASS: |=== RUN |test .* \.\.\. ok$|ok \d+ |[✓✔√] |PASS(?:ED)? )"
    r"|\bPASSED(?: +\[ *\d+%\])?$|\.\.\. ok$"
    r"|^(?:(?:Compiling|Checking|Adding|Downloaded) \S+ v\d|(?:Downloading|Collecting|Unpacking|Using cached) \S"
    r"|Requirement already satisfied|Get:\d|Setting up \S+ \(|Receiving objects:|Resolving deltas:"
    r"|remote: (?:Counting|Compressing|Enumerating|Total) )"
)


def progress_among(texts: Iterable[str]) -> frozenset[str]:
    """The lines of output that are entries of one test that passed, or of one step of a build or a download."""
    may_be = [text for text in texts if "PASS" in text or text.endswith(" ok") or text.startswith(_PROGRESS_STARTS)]
    return frozenset(filter(_PROGRESS.search, may_be))


_IMPORT = re.compile(
    r"(?:import\b|from \S+ import\b|\} from ['\"]|#include\b|(?:pub )?use [\w:]|using [\w.]+;|export \*"
    r"|const .* = require\(|(?:\w+ )?\"[\w.]+(?:/[\w.-]+)+\"$)"
)


_SIGNATURE = re.compile(
    r"^(?:export |default |public |private |protected |static |async |pub |final |abstract |@)*"
    r"(?:def|class|func|fn|function|interface|type|struct|enum|trait|impl|const|CREATE|ALTER)\b"
    r"|^(?:#|//|--|\"\"\"|\*) "
)


def is_signature(text: str) -> bool:
    """Whether a line of a file says what something is: a definition, or a comment."""
    return _SIGNATURE.match(text) is not None


def is_import(text: str) -> bool:
    """Whether a line of a file brings another in; a path in quotation marks is one of a list of such lines."""
    return _IMPORT.match(text) is not None


def is_scrap(text: str) -> bool:
    """Whether a line of code or output reads as a piece of something larger, or as what every file begins with."""
    if is_import(text):
        return True
    return (
        text[0] in ")]},.;:&|+*/=<?" or text[-1] in "([{,&|+=\\<" or text.startswith(("and ", "or ", "else", "return "))
    )
