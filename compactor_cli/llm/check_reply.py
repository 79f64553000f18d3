"""Check: whether a reply is the summary that was asked for, and what of it does not hold.

Limits come from real compactions of clients, against replies that are none: see tests/replies. Only a reply that is
no summary of these records is refused; single names that nobody wrote are marked, single items are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from compactor_cli.llm.essentials import Coverage, Essential, coverage
from compactor_cli.llm.grounding import MARK, Named, SourceRecords, false_quotes, marked, quotes
from compactor_cli.llm.model_calls import Reply
from compactor_cli.llm.outline import Outline, OutlineHeading, as_text, read_reply
from compactor_cli.model.summary import Item, Section, SectionItems

# The share of the essentials that a summary tells at least; without headings it has to prove more.
LEAST_COVERAGE, LEAST_COVERAGE_OF_PROSE, LEAST_COVERAGE_OF_PART = 0.3, 0.45, 0.2
# More names without a source than this, and few of the essentials: it tells of something else.
MOST_UNFOUND_RATIO, ENOUGH_COVERAGE = 0.25, 0.5
# More than this, and it does so whatever it tells besides.
FOREIGN_RATIO = 0.6
_LEAST_UNFOUND = 5
# With this many headings of the template missing, the rest of the reply is.
_HALF = 0.5
_ENDED = re.compile(r"(?:[.!?。！？][*_\"'”)]*|</\w+>)\s*\Z")
# A budget has room for this many of them: a name with what is printed about it takes about 20 tokens.
_TOKENS_PER_ESSENTIAL = 20
_LEAST_ESSENTIALS = 6
# A model counts tokens by feel, and what is added to its text takes what is left.
LENGTH_TOLERANCE = 1.15
_NAMED = 12
# What is left of a call where a server knows no calls.
_CALL = re.compile(
    r"\A\s*(?:```\w*\s*)?(?:<(?:tool_call|function_calls?|invoke|function=|tool_use|antml)|\[TOOL_CALLS\]|<\|tool"
    r"|\{\s*\"(?:name|tool|tool_name|function|type|action)\"\s*:)"
)


class ReplyFault(StrEnum):
    """Why a reply is not taken; the value is the name of what the model is given."""

    TOOL_CALL = "tool-call"
    EMPTY = "empty"
    CUT_OFF = "cut-off"
    FILTERED = "filtered"
    NO_SUMMARY = "no-summary"
    TOO_LONG = "too-long"
    INFLATED = "inflated"
    INVENTED = "invented"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInput:
    """What a reply is held against.

    ``records``: in which everything that the reply names must stand. ``essentials``: what the summary must tell, the
    weightiest first. ``source_tokens``: the size of what it stands for, ``room_tokens``: what it may take.
    ``known``: other names of the headings, as in `read_reply`. ``is_part``: others tell of the rest.
    """

    records: SourceRecords
    essentials: tuple[Essential, ...]
    source_tokens: int
    room_tokens: int
    headings: tuple[OutlineHeading, ...]
    covered: frozenset[int]
    known: Mapping[str, Section] = field(default_factory=dict)
    is_part: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``fault`` None: taken, as ``outline`` has it. ``details`` is for the model.

    ``invented``: names and quotations without a source, which are marked or taken out; ``numbers``: counts and sums
    that no record shows, left as they are.
    """

    outline: Outline
    fault: ReplyFault | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    invented: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The fault for people: a line without texts of the transcript."""
        detail = self.details.get("detail", "")
        return f"{self.fault or 'ok'}" + (f" ({detail})" if detail else "")


def check(reply: Reply, ground: CheckInput, count: Callable[[str], int]) -> Verdict:
    """The reply read, and the first fault it has. Raises nothing, whatever the text."""
    outline = read_reply(reply.text, ground.headings, ground.covered, ground.known)
    if fault := _mechanical(reply, outline):
        return Verdict(outline=outline, fault=fault)
    if missing := _rest_missing(outline, ground):
        detail = f"{len(missing)} of {len(_openings(ground.headings))} sections"
        return Verdict(outline=outline, fault=ReplyFault.CUT_OFF, details={"detail": detail})
    reached = coverage(outline.text, _wanted(ground))
    named = ground.records.named(outline.text)
    if fault := _foreign(outline, reached, named, ground):
        return Verdict(outline=outline, fault=fault, details=_details(fault, reached, named))
    if verdict := _length(outline, ground, count):
        return verdict
    return _healed(outline, named, ground)


def _mechanical(reply: Reply, outline: Outline) -> ReplyFault | None:
    """What the reply says of itself."""
    if reply.has_tool_call or _CALL.match(outline.text):
        return ReplyFault.TOOL_CALL
    if reply.finish_reason == "content_filter":
        return ReplyFault.FILTERED
    if reply.finish_reason == "length":
        return ReplyFault.CUT_OFF
    return None if outline.text else ReplyFault.EMPTY


def _openings(headings: Sequence[OutlineHeading]) -> dict[str, list[Section]]:
    """The sections under each opening."""
    found: dict[str, list[Section]] = {}
    for heading in headings:
        found.setdefault(heading.opening, []).append(heading.section)
    return found


def _rest_missing(outline: Outline, ground: CheckInput) -> list[str]:
    """The headings that are not there, where this many are missing that the reply ends too early.

    A reply that ends as a text does may be in a client's own format, which has fewer of them.
    """
    if outline.prose:
        return []
    openings = _openings(ground.headings)
    missing = [line for line, sections in openings.items() if outline.present.isdisjoint(sections)]
    unclosed = [line for line in openings if line.startswith("<") and _is_unclosed(line, outline.text)]
    return missing if len(missing) >= _HALF * len(openings) and not _ENDED.search(outline.text) else unclosed


def _is_unclosed(tag: str, text: str) -> bool:
    return tag in text and f"</{tag[1:]}" not in text[text.rindex(tag) :]


def _wanted(ground: CheckInput) -> tuple[Essential, ...]:
    """As many of the essentials as the summary has room for."""
    return ground.essentials[: max(_LEAST_ESSENTIALS, ground.room_tokens // _TOKENS_PER_ESSENTIAL)]


def _foreign(outline: Outline, reached: Coverage, named: Named, ground: CheckInput) -> ReplyFault | None:
    """Whether the reply tells of something else than these records, or of next to nothing in them."""
    least = LEAST_COVERAGE_OF_PROSE if outline.prose else LEAST_COVERAGE
    if reached.ratio < (LEAST_COVERAGE_OF_PART if ground.is_part else least):
        return ReplyFault.NO_SUMMARY
    if len(named.unfound) < _LEAST_UNFOUND:
        return None
    most = FOREIGN_RATIO if reached.ratio >= ENOUGH_COVERAGE else MOST_UNFOUND_RATIO
    return ReplyFault.INVENTED if named.unfound_ratio > most else None


def _details(fault: ReplyFault, reached: Coverage, named: Named) -> dict[str, str]:
    if fault is ReplyFault.INVENTED:
        return {
            "detail": f"{len(named.unfound)} of {named.names} names",
            "names": ", ".join(named.unfound[:_NAMED]),
        }
    held = reached.total - len(reached.missing)
    return {"detail": f"{held} of {reached.total}", "names": "; ".join(map(str, reached.missing[:_NAMED]))}


def _length(outline: Outline, ground: CheckInput, count: Callable[[str], int]) -> Verdict | None:
    tokens = count(as_text(outline.sections, ground.headings) or outline.text)
    if tokens > max(ground.source_tokens, 1):
        fault, detail = ReplyFault.INFLATED, f"{tokens} > {ground.source_tokens}"
    elif tokens > ground.room_tokens * LENGTH_TOLERANCE:
        fault, detail = ReplyFault.TOO_LONG, f"{tokens} > {ground.room_tokens}"
    else:
        return None
    return Verdict(outline=outline, fault=fault, details={"detail": detail})


def _healed(outline: Outline, named: Named, ground: CheckInput) -> Verdict:
    """The reply with what has no source marked, and without items that nothing in has one."""
    invented = list(named.unfound)
    sections = []
    for part in outline.sections:
        items = [_healed_item(item, part.section, named.unfound, ground.records, invented) for item in part.items]
        kept = tuple(item for item in items if item)
        if kept:
            sections.append(SectionItems(section=part.section, items=kept))
    prose = marked(outline.prose, named.unfound) if outline.prose else ""
    healed = replace(outline, sections=tuple(sections), prose=prose)
    return Verdict(outline=healed, invented=tuple(dict.fromkeys(invented)), numbers=named.numbers)


# What the one who goes on needs last, where a summary is longer than it may be.
_DROPPED_FIRST = (
    Section.HISTORY,
    Section.COMMANDS,
    Section.PREVIOUS,
    Section.ERRORS,
    Section.FILES,
    Section.DECISIONS,
    Section.QUESTIONS,
    Section.USER,
    Section.PLAN,
)


def shortened(verdict: Verdict, ground: CheckInput, count: Callable[[str], int]) -> Verdict:
    """The verdict on a summary that is too long: taken, without the last items of what matters least."""
    outline = verdict.outline
    named = ground.records.named(outline.text)
    taken = _healed(outline, named, ground)
    left = {part.section: list(part.items) for part in taken.outline.sections}
    over = count(as_text(taken.outline.sections, ground.headings)) - ground.room_tokens
    for section in _DROPPED_FIRST:
        while over > 0 and left.get(section):
            over -= count(left[section].pop().text) + 2
    sections = tuple(SectionItems(section=s, items=tuple(items)) for s, items in left.items() if items)
    invented = tuple(dict.fromkeys((*verdict.invented, *taken.invented)))
    return replace(taken, outline=replace(taken.outline, sections=sections), invented=invented)


def is_enough(verdict: Verdict, ground: CheckInput) -> bool:
    """Whether a reply that lacks headings, and was not cut off by the provider, tells most of what matters."""
    is_cut = verdict.fault is ReplyFault.CUT_OFF and bool(verdict.details) and bool(verdict.outline.sections)
    return is_cut and coverage(verdict.outline.text, _wanted(ground)).ratio >= ENOUGH_COVERAGE


def _healed_item(
    item: Item, section: Section, unfound: Sequence[str], records: SourceRecords, invented: list[str]
) -> Item | None:
    """The item with its doubts marked; None for what nobody said, and what names only things that are not there."""
    if section is Section.USER and (false := _is_unfounded(item, records)) is not None:
        invented.extend(false)
        return None
    absent = [name for name in unfound if name in item.text]
    misquoted = false_quotes(item.text, records.is_quoted)
    invented.extend(misquoted)
    if len(absent) > 1 and records.named(item.text).unfound_ratio == 1:
        return None
    text = marked(item.text, absent)
    for quote in misquoted:
        text = re.sub(rf"{re.escape(quote)}[\"”」』]", lambda found: f"{found[0]}{MARK}", text, count=1)
    return replace(item, text=text) if text != item.text else item


def _is_unfounded(item: Item, records: SourceRecords) -> tuple[str, ...] | None:
    """What an item lays in the user's mouth; empty for an account in other words, None for what was said."""
    quoted = quotes(item.text)
    false = tuple(quote for quote in quoted if not records.is_quoted(quote))
    if quoted and not false:
        return None
    return false if quoted else None if records.said_by_user(item.text) else ()
