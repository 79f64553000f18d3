"""Whether a reply is the summary that was asked for, and which of its names and quotations have no source.

A reply is compared with the records as they were written, not as a prompt showed them, since a prompt leaves much out.
What the reply names or quotes must stand in them, and it must name enough of what a summary of them has to name
(changed files, open steps, names, above all those that the user used). The limits separate real compactions of clients
from replies that are not summaries: see tests/replies. Only a reply that is not a summary of these records is refused;
single names that nobody wrote are marked, and items in which nothing has a source are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import field, replace
from enum import StrEnum
from functools import cached_property
from itertools import islice

from compactor_cli.digest.atoms import AtomKind, atom_kinds, atom_texts
from compactor_cli.digest.checklists import plan_state
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.language import LANGUAGES, words_of
from compactor_cli.digest.tools import PATH_KEYS, ToolKind, argument, parameters
from compactor_cli.formats.harness import user_text
from compactor_cli.group.todos import State
from compactor_cli.llm.model_calls import Reply
from compactor_cli.llm.prompts import Outline, OutlineHeading, as_text, read_reply
from compactor_cli.llm.quoting import call_text
from compactor_cli.model.summary import Item, Section, SectionItems
from compactor_cli.model.transcript import Role, Text, ToolCall, ToolResult, Transcript
from compactor_cli.model.value import dataclass

MARK = " (?)"
# Shorter numbers need no source: they are often counts and sums, which a summary may work out itself.
_LONG_NUMBER_DIGITS = 7
# Names in common use, which a summary may write though no record does.
_REMARK_NAMES = frozenset({"N/A", "n/a", "I/O", "CI/CD", "TCP/IP", "GitHub", "JavaScript", "TypeScript", "OpenAI"})
# Alternatives, which look like a path: `tides/currents`.
_WORDS_AND_SLASHES = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*(?:/[^\W\d_]+(?:['’-][^\W\d_]+)*)+")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z_-]*(?:\s[^<>\n]*)?/?>")
_ISSUE = re.compile(r"#\d+")
# What follows a path: `:12`, `:12-20`, `:12:5`.
_LINE_NUMBER = re.compile(r":\d+(?:[-:,]\d+)*$")
# A quotation within one line. It is attributed to the user if `_BY_USER` matches the text before it.
_QUOTE = re.compile(r"[\"“「『]([^\"“”「」『』\n]{1,400})[\"”」』]")
_LEAST_QUOTE_CHARS = 12
# `the user asked for the gauge: `
_BY_USER = re.compile(
    r"\b(?:user|they|he|she)\b[^.\n\"“]{0,60}\b(?:said|says|asked|asks|requested|wrote|writes|wants|demanded|insisted"
    r"|told|instructed|confirmed|replied|answered|stated|ordered)\b[^.\n\"“]{0,30}$|用户[^。\n「“\"]{0,20}$",
    re.IGNORECASE,
)
# Where a quotation leaves something out: `...`, `[the rest of the table]`.
_LEFT_OUT = re.compile(r"\.{3}|…|\[[^\]]*\]")
_WORD = re.compile(r"\w+")
# Scripts without blanks between words.
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_RUN_WORDS = 3
# Clients and models shorten quotations; at least this share of one must be the user's words.
_LEAST_QUOTED_RATIO = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a text names."""

    names: int  # how many names it holds, other than the numbers below
    unfound: tuple[str, ...] = ()  # names without a source
    numbers: tuple[str, ...] = ()  # numbers without a source

    @property
    def unfound_ratio(self) -> float:
        """The share of the names that has no source, 0 to 1."""
        return len(self.unfound) / self.names if self.names else 0.0


class SourceRecords:
    """Full records, and what else a model was shown, to be searched for what a text names.

    The searched texts are put together once, when they are first needed.
    """

    def __init__(self, parts: Iterable[tuple[Transcript, Sequence[int]]]) -> None:
        self._texts: tuple[_Searched, ...] = (_Searched(parts),)

    def with_shown(self, *texts: str) -> SourceRecords:
        """A copy that searches these texts too (instructions, a list of facts, an earlier summary)."""
        other = copy(self)
        # Most names stand in these, which are shorter: they are searched first.
        other._texts = (_Searched((), texts), *self._texts)
        return other

    def named(self, text: str) -> Named:
        """The names and numbers in a text, and which of them have no source.

        Tags, words joined by slashes and names in common use do not count; nor does the case of a name, see `holds`.
        """
        names = 0
        unfound: list[str] = []
        numbers: list[str] = []
        for name, kind in atom_kinds(_TAG.sub(" ", text)).items():
            if name in _REMARK_NAMES or (kind is AtomKind.PATH and _WORDS_AND_SLASHES.fullmatch(name)):
                continue
            is_long = name.isdigit() and len(name) >= _LONG_NUMBER_DIGITS
            is_number = kind is AtomKind.DATE or (kind is AtomKind.NUM and not is_long)
            names += not is_number
            if not self.holds(name):
                (numbers if is_number else unfound).append(name)
        return Named(names=names, unfound=tuple(unfound), numbers=tuple(numbers))

    def holds(self, name: str) -> bool:
        """Whether a name stands in the texts, in upper or lower case.

        A path may stand there in two pieces, an issue or a pull request (``#12``) by its address, and names joined by
        slashes one by one.
        """
        if any(name in one.text for one in self._texts):
            return True
        folded = _LINE_NUMBER.sub("", name).casefold()
        number = name[1:] if _ISSUE.fullmatch(name) else ""
        if self._has(folded) or (number and (self._has(f"pull/{number}") or self._has(f"issues/{number}"))):
            return True
        pieces = folded.split("/")
        if "." not in folded and pieces[0] and all(map(self._has, pieces)):
            return len(pieces) > 1  # names set side by side, each of them known
        cuts = (("/".join(pieces[:cut]), "/".join(pieces[cut:])) for cut in range(1, len(pieces)))
        return any(rest and self._has(rest) and (not folder or self._has(folder)) for folder, rest in cuts)

    def _has(self, folded: str) -> bool:
        return any(folded in one.folded for one in self._texts)

    def is_by_user(self, text: str) -> bool:
        """Whether at least half of a text's runs of words stand in the user's words; true for a text without words."""
        runs = _runs(text)
        known = sum(any(run in one.user_runs for one in self._texts) for run in runs)
        return not runs or known >= _LEAST_QUOTED_RATIO * len(runs)

    def is_quoted(self, quotation: str) -> bool:
        """Whether each piece of a quotation is mostly the user's words, or else stands in the texts word for word.

        The pieces are those between ellipses and remarks in brackets.
        """
        pieces = filter(None, map(spaced_words, _LEFT_OUT.split(quotation)))
        return all(self.is_by_user(piece) or any(f" {piece} " in one.spaced for one in self._texts) for piece in pieces)


class _Searched:
    """Records or texts in the forms that are searched, each made when it is first needed."""

    def __init__(self, parts: Iterable[tuple[Transcript, Sequence[int]]], texts: Sequence[str] = ()) -> None:
        self._indices = [(transcript, index) for transcript, indices in parts for index in indices]
        self._texts = texts

    @cached_property
    def text(self) -> str:
        """All texts, and each record as it was written: its bookkeeping names directories and branches."""
        texts = list(self._texts)
        for transcript, index in self._indices:
            for part in transcript.messages[index].parts:
                if isinstance(part, Text | ToolResult):
                    texts.append(part.text)
                elif isinstance(part, ToolCall):
                    texts.append(call_text(part))
            if index < len(transcript.records):
                texts.append(transcript.records[index].raw.decode("utf-8", "replace"))
        return "\n".join(texts)

    @cached_property
    def folded(self) -> str:
        return self.text.casefold()

    @cached_property
    def spaced(self) -> str:
        """The words alone, with a blank between them and at both ends."""
        return f" {spaced_words(self.folded.replace(chr(92) + 'n', ' '))} "

    @cached_property
    def user_runs(self) -> frozenset[tuple[str, ...]]:
        """The runs of the user's words; of refusals of calls, earlier summaries and what else was shown, too."""
        texts = list(self._texts)
        for message in (transcript.messages[index] for transcript, index in self._indices):
            if message.role is Role.USER or message.results:
                texts.append(user_text(message))
                texts += (result.text for result in message.results if result.is_error)
            if message.summary is not None:
                texts.append(message.summary.text)
        return frozenset(run for text in texts for run in _runs(text))


def spaced_words(text: str) -> str:
    """The words of a text, in lower case, with a blank between them."""
    return " ".join(_WORD.findall(text.casefold()))


def _runs(text: str) -> list[tuple[str, ...]]:
    """Every three words in a row, in lower case; a text of up to three words is one run, an empty one none.

    In scripts without blanks a character counts as a word.
    """
    words = [piece for word in _WORD.findall(text.casefold()) for piece in (word if _DENSE.search(word) else (word,))]
    if len(words) <= _RUN_WORDS:
        return [tuple(words)] if words else []
    return [tuple(words[at : at + _RUN_WORDS]) for at in range(len(words) - _RUN_WORDS + 1)]


def marked(text: str, names: Iterable[str]) -> str:
    """The text with a question mark in brackets after the first occurrence of each of these names."""
    for name in sorted(names, key=len, reverse=True):
        pattern = re.compile(rf"(?<![\w/]){re.escape(name)}(?![\w/])(?P<tick>`?)(?! \(\?\))")
        text = pattern.sub(lambda found: f"{found[0]}{MARK}", text, count=1)
    return text


# The most that are essential: salient names, the user's names among them, changed files, open steps.
MOST_SALIENT, _MOST_OF_USER, _MOST_FILES, _MOST_STEPS = 50, 20, 40, 12
# How many ranked names to offer: those of tools' parameters are removed from them.
MOST_RANKED = 4 * MOST_SALIENT
# Where there are fewer essentials than the first, as many words as the second are essential, too.
_LEAST_NAMES, _MOST_WORDS = 6, 6
_FILE_WEIGHT, _STEP_WEIGHT = 3.0, 2.0
# A text names a step if it holds this share of the step's words; shorter words are not looked for.
_LEAST_STEP_RATIO = 0.6
_STEP_WORD_CHARS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Essential:
    """What a summary has to name."""

    name: str
    words: tuple[str, ...]  # in lower case: a text names it that holds most of these
    record: str = ""  # the newest record that holds it, as prompts number it; empty: none
    weight: float = 1.0

    def is_in(self, folded: str) -> bool:
        """Whether a text, in lower case, names it."""
        held = sum(word in folded for word in self.words)
        return held >= _LEAST_STEP_RATIO * len(self.words)

    def __str__(self) -> str:
        return f"{self.name} [{self.record}]" if self.record else self.name


def essentials_of(
    numbered: Sequence[tuple[str, Event]], ranked: Iterable[str], terms: Mapping[str, float]
) -> tuple[Essential, ...]:
    """What a summary of these events has to name, the weightiest first.

    ``numbered``: each event with the number of its record, as prompts show it. ``ranked``: the most salient names, best
    first. ``terms``: the weights of words. Names of tools' parameters are never essential.
    """
    found = [event for _, event in numbered]
    wanted: list[Essential | str] = []
    # The files that calls changed, newest first, by name: a summary may shorten a path.
    edits = (e for e in reversed(found) if e.kind is EventKind.CALL and e.tool is ToolKind.EDIT)
    for path in islice(dict.fromkeys(filter(None, (argument(e.arguments, PATH_KEYS) for e in edits))), _MOST_FILES):
        word = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].casefold()
        wanted.append(Essential(name=path, words=(word,), weight=_FILE_WEIGHT))
    state = plan_state(found)
    for step in (*state.of(State.DOING), *state.of(State.OPEN))[:_MOST_STEPS]:
        words = tuple(dict.fromkeys(w for w in step.text.casefold().split() if len(w) >= _STEP_WORD_CHARS))
        wanted.append(Essential(name=step.text, words=words or (step.text.casefold(),), weight=_STEP_WEIGHT))
    schema = {name for event in found if event.kind is EventKind.CALL for name, _ in parameters(event.arguments)}
    names = [name for name in ranked if name not in schema]
    user_names = {name for event in found if event.kind is EventKind.USER for name in atom_texts(event.text)}
    wanted += [name for name in names if name in user_names][:_MOST_OF_USER]
    unique = _unique((*wanted, *names[:MOST_SALIENT]))
    if len(unique) < _LEAST_NAMES:
        spoken = "\n".join(event.text for event in found).casefold()
        by_weight = [term for term in sorted(terms, key=lambda term: (-terms[term], term)) if term in spoken]
        unique = _unique((*unique, *by_weight[:_MOST_WORDS]))
    last = (next((record for record, event in reversed(numbered) if one.name in event.text), "") for one in unique)
    return tuple(replace(one, record=record) for one, record in zip(unique, last, strict=True))


def _unique(found: Iterable[Essential | str]) -> tuple[Essential, ...]:
    """The essentials, bare names made into such, without those whose words came before."""
    unique: dict[tuple[str, ...], Essential] = {}
    for one in found:
        fact = one if isinstance(one, Essential) else Essential(name=one, words=(one.casefold(),))
        unique.setdefault(fact.words, fact)
    return tuple(unique.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the essentials a text names."""

    ratio: float  # by weight, 0 to 1
    missing: tuple[Essential, ...]


def coverage(text: str, wanted: Sequence[Essential]) -> Coverage:
    """The coverage of a text; 1 where there is nothing that it must name."""
    folded = text.casefold()
    missing = tuple(fact for fact in wanted if not fact.is_in(folded))
    weight = sum(fact.weight for fact in wanted)
    ratio = 1 - sum(fact.weight for fact in missing) / weight if weight else 1.0
    return Coverage(ratio=ratio, missing=missing)


# How a line begins about a call that the user stopped, by language.
_STOPPED = tuple(f"- {words_of(language).stopped}" for language in LANGUAGES)


def not_shown(facts: str, texts: Sequence[str]) -> str:
    """The lines of ``facts`` that the texts do not show.

    A line is shown where it stands in the texts itself or all its names do. For a call that the user stopped the line
    itself must stand there: a text may name the call and not state that it was refused.
    """
    shown = "\n".join(texts)

    def is_news(line: str) -> bool:
        names = () if line.startswith(_STOPPED) else atom_texts(line)
        return line not in shown and not (names and all(name in shown for name in names))

    return "\n".join(filter(is_news, facts.split("\n")))


# The least share of the essentials that a summary must name: under headings; as prose, which has more to prove; and as
# one of several parts.
LEAST_COVERAGE, LEAST_COVERAGE_OF_PROSE, LEAST_COVERAGE_OF_PART = 0.3, 0.45, 0.2
# A reply is about something else if a larger share of its names than the first has no source, and it covers less of the
# essentials than the second.
MOST_UNFOUND_RATIO, ENOUGH_COVERAGE = 0.25, 0.5
# Above this share of names without a source it is, however much it covers.
FOREIGN_RATIO = 0.6
# Fewer names without a source prove nothing.
_LEAST_UNFOUND = 5
# A reply that lacks this share of the template's headings may have been cut off.
_HALF = 0.5
# How a text ends that was not cut off: `… at high tide.**`, `</notes>`.
_ENDED = re.compile(r"(?:[.!?。！？][*_\"'”)]*|</\w+>)\s*\Z")
# A name with what is printed about it takes about this much: it limits how many essentials a budget has room for.
_TOKENS_PER_ESSENTIAL = 20
_LEAST_ESSENTIALS = 6
# How far over its budget a reply may be: models only estimate tokens, and what is added later takes what is left.
LENGTH_TOLERANCE = 1.15
_NAMED = 12  # names that a fault lists
# A tool call as text, from a server that does not parse calls: `<tool_call>…`, `{"name": "read_gauge", …`.
_CALL = re.compile(
    r"\A\s*(?:```\w*\s*)?(?:<(?:tool_call|function_calls?|invoke|function=|tool_use|antml)|\[TOOL_CALLS\]|<\|tool"
    r"|\{\s*\"(?:name|tool|tool_name|function|type|action)\"\s*:)"
)


class ReplyFault(StrEnum):
    """Why a reply is refused; the value names the text that explains it to the model."""

    TOOL_CALL = "tool-call"
    EMPTY = "empty"
    CUT_OFF = "cut-off"  # at its end, by the provider or by the looks of it
    FILTERED = "filtered"  # by the provider
    NO_SUMMARY = "no-summary"  # it names too little of what a summary has to name
    TOO_LONG = "too-long"  # over its budget
    INFLATED = "inflated"  # longer than what it stands for
    INVENTED = "invented"  # too many names without a source


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInput:
    """What a reply is checked against."""

    records: SourceRecords  # in which everything that the reply names must stand
    essentials: tuple[Essential, ...]  # what the summary must name, the weightiest first
    source_tokens: int  # the size of the records it stands for
    budget_tokens: int  # the most it should take; a little more is tolerated
    headings: tuple[OutlineHeading, ...]  # that it was asked to use
    covered: frozenset[int]  # the records, counted from 0, that it may cite
    known: Mapping[str, Section] = field(default_factory=dict)  # other names of the headings, as in `read_reply`
    is_part: bool = False  # it is about some of the records; other summaries are about the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A reply as it was read, and whether it is accepted."""

    outline: Outline  # with its marks, where it is accepted; else as it was read
    fault: ReplyFault | None = None  # None: it is accepted
    details: Mapping[str, str] = field(default_factory=dict)  # of the fault, for the model
    invented: tuple[str, ...] = ()  # names and quotations without a source, which are marked or taken out
    numbers: tuple[str, ...] = ()  # counts and sums that no record shows, left as they are

    def __str__(self) -> str:
        """The fault for people: a line without texts of the transcript."""
        detail = self.details.get("detail", "")
        return f"{self.fault or 'ok'}" + (f" ({detail})" if detail else "")


def check(reply: Reply, check_input: CheckInput, count: Callable[[str], int]) -> Verdict:
    """The verdict on a reply: its first fault, or what is accepted of it. Raises nothing, whatever the text."""
    outline = read_reply(reply.text, check_input.headings, check_input.covered, check_input.known)
    named = check_input.records.named(outline.text)
    if found := _fault(reply, outline, named, check_input, count):
        return Verdict(outline=outline, fault=found[0], details=found[1])
    return _healed(outline, named, check_input)


def _fault(
    reply: Reply, outline: Outline, named: Named, check_input: CheckInput, count: Callable[[str], int]
) -> tuple[ReplyFault, dict[str, str]] | None:
    """The first fault of a reply, with details for the model; None if there is none.

    Checked in this order: how the provider ended it, what it holds, how long it is.
    """
    if reply.has_tool_call or _CALL.match(outline.text):
        return ReplyFault.TOOL_CALL, {}
    if reply.finish_reason == "content_filter":
        return ReplyFault.FILTERED, {}
    if reply.finish_reason == "length":
        return ReplyFault.CUT_OFF, {}
    if not outline.text:
        return ReplyFault.EMPTY, {}
    openings: dict[str, list[Section]] = {}
    for heading in check_input.headings:
        openings.setdefault(heading.opening, []).append(heading.section)
    if missing := _rest_missing(outline, openings):
        return ReplyFault.CUT_OFF, {"detail": f"{len(missing)} of {len(openings)} sections"}
    wanted = _wanted(check_input)
    reached = coverage(outline.text, wanted)
    least = LEAST_COVERAGE_OF_PROSE if outline.prose else LEAST_COVERAGE
    if reached.ratio < (LEAST_COVERAGE_OF_PART if check_input.is_part else least):
        held, names = len(wanted) - len(reached.missing), "; ".join(map(str, reached.missing[:_NAMED]))
        return ReplyFault.NO_SUMMARY, {"detail": f"{held} of {len(wanted)}", "names": names}
    most = FOREIGN_RATIO if reached.ratio >= ENOUGH_COVERAGE else MOST_UNFOUND_RATIO
    if len(named.unfound) >= _LEAST_UNFOUND and named.unfound_ratio > most:
        detail = f"{len(named.unfound)} of {named.names} names"
        return ReplyFault.INVENTED, {"detail": detail, "names": ", ".join(named.unfound[:_NAMED])}
    tokens = count(as_text(outline.sections, check_input.headings) or outline.text)
    if tokens > max(check_input.source_tokens, 1):
        return ReplyFault.INFLATED, {"detail": f"{tokens} > {check_input.source_tokens}"}
    if tokens > check_input.budget_tokens * LENGTH_TOLERANCE:
        return ReplyFault.TOO_LONG, {"detail": f"{tokens} > {check_input.budget_tokens}"}
    return None


def _rest_missing(outline: Outline, openings: Mapping[str, list[Section]]) -> list[str]:
    """The headings that show that a reply was cut off; an empty list if it was not.

    These are the missing ones, if they are half of all and the reply does not end as a text does (one that does may be
    in a client's own format, which has fewer of them); else the tags that it opens and does not close.
    """
    if outline.prose:
        return []
    missing = [line for line, sections in openings.items() if outline.present.isdisjoint(sections)]
    if len(missing) >= _HALF * len(openings) and not _ENDED.search(outline.text):
        return missing
    tags = (line for line in openings if line.startswith("<") and line in outline.text)
    return [tag for tag in tags if f"</{tag[1:]}" not in outline.text[outline.text.rindex(tag) :]]


def _wanted(check_input: CheckInput) -> tuple[Essential, ...]:
    """The weightiest essentials, as many as the summary has room for."""
    return check_input.essentials[: max(_LEAST_ESSENTIALS, check_input.budget_tokens // _TOKENS_PER_ESSENTIAL)]


def _healed(outline: Outline, named: Named, check_input: CheckInput) -> Verdict:
    """The verdict that accepts a reply, its names without a source marked, items in which nothing has one left out."""
    invented = list(named.unfound)
    sections = []
    for part in outline.sections:
        found = [_healed_item(item, part.section, named.unfound, check_input.records) for item in part.items]
        invented += (quotation for _, misquoted in found for quotation in misquoted)
        if kept := tuple(item for item, _ in found if item):
            sections.append(SectionItems(section=part.section, items=kept))
    prose = marked(outline.prose, named.unfound) if outline.prose else ""
    healed = replace(outline, sections=tuple(sections), prose=prose)
    return Verdict(outline=healed, invented=tuple(dict.fromkeys(invented)), numbers=named.numbers)


def _healed_item(
    item: Item, section: Section, unfound: Sequence[str], records: SourceRecords
) -> tuple[Item | None, Sequence[str]]:
    """The item with what has no source marked, and its quotations without a source.

    The item is None if it is to be left out: it has several names and none has a source, or it is listed as the user's
    words and does not consist of them.
    """
    if section is Section.USER:
        quoted = _QUOTE.findall(item.text)
        false = [quote for quote in quoted if not records.is_quoted(quote)]
        # A paraphrase of the user is left out and does not count as invented.
        if false or not (quoted or records.is_by_user(item.text)):
            return None, false
    misquoted = []
    for quotation in _QUOTE.finditer(item.text):
        before = item.text[max(0, quotation.start() - 120) : quotation.start()]
        is_by_user = len(quotation[1]) >= _LEAST_QUOTE_CHARS and _BY_USER.search(before)
        if is_by_user and not records.is_quoted(quotation[1]):
            misquoted.append(quotation[1])
    absent = [name for name in unfound if name in item.text]
    if len(absent) > 1 and records.named(item.text).unfound_ratio == 1:
        return None, misquoted
    text = marked(item.text, absent)
    for quote in misquoted:
        text = re.sub(rf"{re.escape(quote)}[\"”」』]", lambda found: f"{found[0]}{MARK}", text, count=1)
    return replace(item, text=text), misquoted


# Where a summary that is too long loses items first: what whoever continues the work needs least.
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


def cut_to_budget(verdict: Verdict, check_input: CheckInput, count: Callable[[str], int]) -> Verdict:
    """The verdict that accepts a summary that is too long, without the last items of the least needed sections."""
    outline = verdict.outline
    named = check_input.records.named(outline.text)
    taken = _healed(outline, named, check_input)
    left = {part.section: list(part.items) for part in taken.outline.sections}
    over = count(as_text(taken.outline.sections, check_input.headings)) - check_input.budget_tokens
    for section in _DROPPED_FIRST:
        while over > 0 and left.get(section):
            over -= count(left[section].pop().text) + 2
    sections = tuple(SectionItems(section=s, items=tuple(items)) for s, items in left.items() if items)
    invented = tuple(dict.fromkeys((*verdict.invented, *taken.invented)))
    return replace(taken, outline=replace(taken.outline, sections=sections), invented=invented)


def is_enough(verdict: Verdict, check_input: CheckInput) -> bool:
    """Whether a reply refused for missing headings, not cut off by the provider, covers half of the essentials."""
    is_cut = verdict.fault is ReplyFault.CUT_OFF and bool(verdict.details) and bool(verdict.outline.sections)
    return is_cut and coverage(verdict.outline.text, _wanted(check_input)).ratio >= ENOUGH_COVERAGE
