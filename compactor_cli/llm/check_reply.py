"""Whether a reply is the summary that was asked for, and what of it does not hold.

It is held against the records as they were written, not as a prompt showed them (a prompt leaves much out): what it
names or quotes must stand there, and of what a summary of them has to name (changed files, the user's things, open
steps, names) it must name enough. Limits come from real compactions of clients, against replies that are none: see
tests/replies. Only a reply that is not a summary of these records is refused; single names that nobody wrote are
marked, single items are taken out.
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
# Shorter numbers are counts and sums as often as not: a summary may reckon.
_LONG_NUMBER_DIGITS = 7
# Names in a text that nobody would look for in a transcript.
_REMARK_NAMES = frozenset({"N/A", "n/a", "I/O", "CI/CD", "TCP/IP", "GitHub", "JavaScript", "TypeScript", "OpenAI"})
_WORDS_AND_SLASHES = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*(?:/[^\W\d_]+(?:['’-][^\W\d_]+)*)+")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z_-]*(?:\s[^<>\n]*)?/?>")
_ISSUE = re.compile(r"#\d+")
_LINE_NUMBER = re.compile(r":\d+(?:[-:,]\d+)*$")
# A request in quotation marks that a text lays in the user's mouth.
_QUOTE = re.compile(r"[\"“「『]([^\"“”「」『』\n]{1,400})[\"”」』]")
_LEAST_QUOTE_CHARS = 12
_BY_USER = re.compile(
    r"\b(?:user|they|he|she)\b[^.\n\"“]{0,60}\b(?:said|says|asked|asks|requested|wrote|writes|wants|demanded|insisted"
    r"|told|instructed|confirmed|replied|answered|stated|ordered)\b[^.\n\"“]{0,30}$|用户[^。\n「“\"]{0,20}$",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(r"\.{3}|…|\[[^\]]*\]")
_WORD = re.compile(r"\w+")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_RUN_WORDS = 3
# Clients and models shorten quotations; at least this share of one must be the user's words.
_LEAST_QUOTED_RATIO = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a text names."""

    names: int
    unfound: tuple[str, ...] = ()  # names without a source
    numbers: tuple[str, ...] = ()  # numbers without a source

    @property
    def unfound_ratio(self) -> float:
        """The share of the names that has no source, 0 to 1."""
        return len(self.unfound) / self.names if self.names else 0.0


class SourceRecords:
    """Full records, searched for what a text names, and what a model was shown besides; put together once."""

    def __init__(self, parts: Iterable[tuple[Transcript, Sequence[int]]]) -> None:
        self._texts: tuple[_Searched, ...] = (_Searched(parts),)

    def with_shown(self, *texts: str) -> SourceRecords:
        """The same records, and these texts (instructions, a list of facts, an earlier summary)."""
        other = copy(self)
        # Most names stand in these, which are shorter: they are searched first.
        other._texts = (_Searched((), texts), *self._texts)
        return other

    def named(self, text: str) -> Named:
        """What the text names; tags, words with a slash between them and the records' own spelling aside."""
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
        """Whether a name stands somewhere, in whatever case, as a whole or (a path) in two pieces."""
        if any(name in one.text for one in self._texts):
            return True
        folded = _LINE_NUMBER.sub("", name).casefold()
        # A pull request or an issue is known by its address too.
        if self._has(folded) or (
            _ISSUE.fullmatch(name) and any(map(self._has, (f"pull/{name[1:]}", f"issues/{name[1:]}")))
        ):
            return True
        pieces = folded.split("/")
        if "." not in folded and pieces[0] and all(map(self._has, pieces)):
            return len(pieces) > 1  # names set side by side, each of them known
        cuts = (("/".join(pieces[:cut]), "/".join(pieces[cut:])) for cut in range(1, len(pieces)))
        return any(rest and self._has(rest) and (not folder or self._has(folder)) for folder, rest in cuts)

    def _has(self, folded: str) -> bool:
        return any(folded in one.folded for one in self._texts)

    def is_by_user(self, text: str) -> bool:
        """Whether most of a text are words of a user's messages."""
        runs = _runs(text)
        known = sum(any(run in one.user_runs for one in self._texts) for run in runs)
        return not runs or known >= _LEAST_QUOTED_RATIO * len(runs)

    def is_quoted(self, quotation: str) -> bool:
        """Whether a quotation is mostly the user's words, or else stands in the records: what was left out aside."""
        pieces = [words for piece in _LEFT_OUT.split(quotation) if (words := " ".join(_WORD.findall(piece.casefold())))]
        return all(self.is_by_user(piece) or any(f" {piece} " in one.spaced for one in self._texts) for piece in pieces)


class _Searched:
    """Records or texts in the forms that are searched, each made when it is first needed."""

    def __init__(self, parts: Iterable[tuple[Transcript, Sequence[int]]], texts: Sequence[str] = ()) -> None:
        self._indices = [(transcript, index) for transcript, indices in parts for index in indices]
        self._texts = texts

    @cached_property
    def text(self) -> str:
        """All texts, each with its record as it was written: bookkeeping names directories and branches."""
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
        return f" {' '.join(_WORD.findall(self.folded.replace(chr(92) + 'n', ' ')))} "

    @cached_property
    def user_runs(self) -> frozenset[tuple[str, ...]]:
        """Of the users' words: refusals of calls, earlier summaries and what else was shown included."""
        texts = list(self._texts)
        for message in (transcript.messages[index] for transcript, index in self._indices):
            if message.role is Role.USER or message.results:
                texts.append(user_text(message))
                texts += (result.text for result in message.results if result.is_error)
            if message.summary is not None:
                texts.append(message.summary.text)
        return frozenset(run for text in texts for run in _runs(text))


def _runs(text: str) -> list[tuple[str, ...]]:
    """Each three words in a row, in lower case; of a shorter text, all of its words; characters where dense."""
    words = [piece for word in _WORD.findall(text.casefold()) for piece in (word if _DENSE.search(word) else (word,))]
    if len(words) <= _RUN_WORDS:
        return [tuple(words)] if words else []
    return [tuple(words[at : at + _RUN_WORDS]) for at in range(len(words) - _RUN_WORDS + 1)]


def marked(text: str, names: Iterable[str]) -> str:
    """The text with a question mark in brackets after the first place of each of these names."""
    for name in sorted(names, key=len, reverse=True):
        pattern = re.compile(rf"(?<![\w/]){re.escape(name)}(?![\w/])(?P<tick>`?)(?! \(\?\))")
        text = pattern.sub(lambda found: f"{found[0]}{MARK}", text, count=1)
    return text


MOST_SALIENT, _MOST_OF_USER, _MOST_FILES, _MOST_STEPS = 50, 20, 40, 12
# Names of parameters are taken out of this many.
MOST_RANKED = 4 * MOST_SALIENT
# Where there are few names, words stand for them.
_LEAST_NAMES, _MOST_WORDS = 6, 6
_FILE_WEIGHT, _STEP_WEIGHT = 3.0, 2.0
_LEAST_STEP_RATIO = 0.6
_STEP_WORD_CHARS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Essential:
    """What a summary has to name."""

    name: str
    words: tuple[str, ...]  # what a text must hold then, in lower case
    record: str = ""  # its last place
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
    """The essentials of these events (with the numbers of their records, as prompts show them), the weightiest first.

    ``ranked`` are the most salient names and ``terms`` weigh the words. Names of tools' parameters are never essential.
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
    """Each thing once, names as essentials of their own."""
    unique: dict[tuple[str, ...], Essential] = {}
    for one in found:
        fact = one if isinstance(one, Essential) else Essential(name=one, words=(one.casefold(),))
        unique.setdefault(fact.words, fact)
    return tuple(unique.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the essentials a text names: by weight (0 to 1), and which are missing."""

    ratio: float
    missing: tuple[Essential, ...]


def coverage(text: str, wanted: Sequence[Essential]) -> Coverage:
    """The coverage of a text; 1 where there is nothing that it must name."""
    folded = text.casefold()
    missing = tuple(fact for fact in wanted if not fact.is_in(folded))
    weight = sum(fact.weight for fact in wanted)
    ratio = 1 - sum(fact.weight for fact in missing) / weight if weight else 1.0
    return Coverage(ratio=ratio, missing=missing)


_STOPPED = tuple(f"- {words_of(language).stopped}" for language in LANGUAGES)


def not_shown(facts: str, texts: Sequence[str]) -> str:
    """Those of the facts, an item a line, of which some name stands in none of the texts.

    What the user stopped is shown by its own words alone: a text may name the thing and not say that it was refused.
    """
    shown = "\n".join(texts)

    def is_news(line: str) -> bool:
        names = () if line.startswith(_STOPPED) else atom_texts(line)
        return line not in shown and not (names and all(name in shown for name in names))

    return "\n".join(filter(is_news, facts.split("\n")))


# The share of the essentials that a summary names at least; without headings it has to prove more.
LEAST_COVERAGE, LEAST_COVERAGE_OF_PROSE, LEAST_COVERAGE_OF_PART = 0.3, 0.45, 0.2
# More names without a source than this, and few of the essentials: it is about something else.
MOST_UNFOUND_RATIO, ENOUGH_COVERAGE = 0.25, 0.5
# More than this, and it does so whatever else it names.
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
    """What a reply is held against."""

    records: SourceRecords  # in which everything that the reply names must stand
    essentials: tuple[Essential, ...]  # what the summary must name, the weightiest first
    source_tokens: int  # the size of what it stands for
    budget_tokens: int  # what it may take
    headings: tuple[OutlineHeading, ...]
    covered: frozenset[int]
    known: Mapping[str, Section] = field(default_factory=dict)  # other names of the headings, as in `read_reply`
    is_part: bool = False  # other summaries are about the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A reply read, and whether it is taken."""

    outline: Outline  # as it is taken, or as it was read
    fault: ReplyFault | None = None  # None: it is taken
    details: Mapping[str, str] = field(default_factory=dict)  # of the fault, for the model
    invented: tuple[str, ...] = ()  # names and quotations without a source, which are marked or taken out
    numbers: tuple[str, ...] = ()  # counts and sums that no record shows, left as they are

    def __str__(self) -> str:
        """The fault for people: a line without texts of the transcript."""
        detail = self.details.get("detail", "")
        return f"{self.fault or 'ok'}" + (f" ({detail})" if detail else "")


def check(reply: Reply, check_input: CheckInput, count: Callable[[str], int]) -> Verdict:
    """The reply read, and the first fault it has. Raises nothing, whatever the text."""
    outline = read_reply(reply.text, check_input.headings, check_input.covered, check_input.known)
    named = check_input.records.named(outline.text)
    if found := _fault(reply, outline, named, check_input, count):
        return Verdict(outline=outline, fault=found[0], details=found[1])
    return _healed(outline, named, check_input)


def _fault(
    reply: Reply, outline: Outline, named: Named, check_input: CheckInput, count: Callable[[str], int]
) -> tuple[ReplyFault, dict[str, str]] | None:
    """What is wrong first: by the reply's own account, by what it holds, by its length. With details for the model."""
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
    """The headings that are not there, where this many are missing that the reply ends too early.

    A reply that ends as a text does may be in a client's own format, which has fewer of them.
    """
    if outline.prose:
        return []
    missing = [line for line, sections in openings.items() if outline.present.isdisjoint(sections)]
    if len(missing) >= _HALF * len(openings) and not _ENDED.search(outline.text):
        return missing
    tags = (line for line in openings if line.startswith("<") and line in outline.text)
    return [tag for tag in tags if f"</{tag[1:]}" not in outline.text[outline.text.rindex(tag) :]]


def _wanted(check_input: CheckInput) -> tuple[Essential, ...]:
    """As many of the essentials as the summary has room for."""
    return check_input.essentials[: max(_LEAST_ESSENTIALS, check_input.budget_tokens // _TOKENS_PER_ESSENTIAL)]


def _healed(outline: Outline, named: Named, check_input: CheckInput) -> Verdict:
    """The reply with what has no source marked, and without items that nothing in has one."""
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
    """The item with its doubts marked (None: nothing of it has a source), and its quotations that have none."""
    if section is Section.USER:
        quoted = _QUOTE.findall(item.text)
        false = [quote for quote in quoted if not records.is_quoted(quote)]
        # An account in other words than the user's is left out, and not held against the reply.
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


def cut_to_budget(verdict: Verdict, check_input: CheckInput, count: Callable[[str], int]) -> Verdict:
    """The verdict on a summary that is too long: taken, without the last items of what matters least."""
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
    """Whether a reply that lacks headings, and was not cut off by the provider, names most of what matters."""
    is_cut = verdict.fault is ReplyFault.CUT_OFF and bool(verdict.details) and bool(verdict.outline.sections)
    return is_cut and coverage(verdict.outline.text, _wanted(check_input)).ratio >= ENOUGH_COVERAGE
