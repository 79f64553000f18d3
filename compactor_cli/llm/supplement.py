"""Where the model path and the digest meet: a check list in the prompt, a supplement after the reply.

A supplement is added to a text that somebody else wrote of the records, a model or the agent itself. It holds only
what the text cannot be contradicted by and does not hold already: the user's words and refusals, open steps, outcomes
of calls that changed something outside, what was reported at the end of a turn, files the text does not name with
their state, one index of names. Whole sections come from the digest only where the text has no such heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, takewhile
from textwrap import wrap

from compactor_cli.digest.analysis import Analysis, analyse
from compactor_cli.digest.checks import is_check
from compactor_cli.digest.choice import Choice, Fact
from compactor_cli.digest.commands import CommandOutcome, may_act_outside, shown
from compactor_cli.digest.digest import Digest, facts, written
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.files import is_throwaway
from compactor_cli.digest.history import history_items
from compactor_cli.digest.language import LANGUAGES, words_of
from compactor_cli.digest.loss import loss
from compactor_cli.digest.names import name_items
from compactor_cli.digest.now import standing_requests
from compactor_cli.digest.sections import build_sections
from compactor_cli.digest.settled import proposes
from compactor_cli.digest.statements import ELLIPSIS, Statement, StatementForm, TokenCache, clipped, records_of
from compactor_cli.digest.wants import newest_request
from compactor_cli.formats.directories import directories_of
from compactor_cli.llm.check_reply import MOST_RANKED, Essential, SourceRecords, essentials_of
from compactor_cli.llm.prompts import Outline, OutlineHeading, as_text, joined_outline
from compactor_cli.llm.quoting import Strand
from compactor_cli.model.summary import Answer, Item, Request, Section, SectionItems, Source
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass

# Of the tokens of text and supplement together.
MOST_RATIO = 0.25
# Of the supplement's tokens, at most; what one does not use goes to those after it, names get the rest.
_SHARES: Mapping[Section, float] = {Section.USER: 0.5, Section.PLAN: 0.1, Section.COMMANDS: 0.15, Section.FILES: 0.1}
_FILL_RATIO = 0.15
# What is dropped first where text and supplement together are over the budget after all; the text never is.
_DROPPED_FIRST = (*(one for one in reversed(Section) if one not in _SHARES), *reversed(tuple(_SHARES)))
# Of what an update dropped of the earlier summary: as much for open steps, the user's words, decisions and facts.
_CARRIED = (Section.PLAN, Section.USER, Section.DECISIONS, Section.COMMANDS)
_CARRIED_RATIO = 0.25
_NAMES_RATIO = 0.25
_ITEM_TOKENS = 3
# A shorter statement seldom reads alone, its heading included.
_LEAST_STATEMENT_CHARS = 40
_QUESTION = re.compile(r"[?？][\"'”*_`)]*\s*$")
# A client's command with addresses and paths, which holds no word of the user.
_COMMAND = re.compile(r"^/\S+(?:\s+\S*/\S*)*\s*")
_STOPS = re.compile(r"\b(?:refus|reject|declin|stop|interrupt|den(?:y|ied)|turned down)|拒|中止")
# A request that is cut below this says what to do, and no longer what not to do.
_SENTENCE_TOKENS = 30
# A statement is shown where one line of the text holds this many of its words, a quotation where the text has so much.
_SHOWN_RATIO = 0.6
_QUOTED_RATIO = 0.7
# A line with this many words of an earlier decision has to do with it, and may overturn it.
_CONCERNED_RATIO = 0.3
_WORD = re.compile(r"\w+")
_RUN_WORDS = 4
_LONG_WORD_CHARS = 4
_SAME_CHARS = 40
_PLAIN_WORD = re.compile(r"[\w./:@][\w./:@-]*")
# What a push reports: from which commit to which.
_PUSHED = re.compile(r"\b[0-9a-f]{7,40}\.\.\.?[0-9a-f]{7,40}\b")
_FOLDER = re.compile(r"(?<=\bgit) -C \S+")
_MOST_PROGRAM_WORDS = 4
_ADDRESS = re.compile(r"https?://[^\s\"'<>)]+")
_LABELS = [words_of(language) for language in LANGUAGES]
# How an item of the plan begins that is a step which is not done.
_OPEN_LABELS = tuple(f"{label}{words.colon}" for words in _LABELS for label in (words.doing, words.open))
# A call by another tool than files and shell, as the digest lists those that changed something.
_ACTION = re.compile(r"[\w.:-]+\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedText:
    """A text in place of records."""

    sections: tuple[SectionItems, ...]
    prose: str = ""  # what stands before them word for word
    missing: frozenset[Section] = frozenset()  # those that it should have, to be filled from the digest

    def __str__(self) -> str:
        return "\n".join((self.prose, *(item.text for part in self.sections for item in part.items)))


def completed(
    request: Request,
    text: CompletedText,
    language: str,
    *,
    most_ratio: float = MOST_RATIO,
    analysis: Analysis | None = None,
    previous: str = "",
) -> Answer:
    """The text with its supplement, within ``request.budget_tokens``; the text's own items come first under a heading.

    The supplement takes ``most_ratio`` of both at most. The state is that of the digest of all covered records, as if
    nobody else had written. ``analysis``: of the request, where it is made already. ``previous``: the earlier summary
    that the text brings up to date; what was open in it, the user's words in it, and its decisions that nothing since
    has to do with come first.
    """
    request = replace(request, language=language)
    # Paths as the digest writes them: without the directory that the agent worked in.
    strip = directories_of(request.transcript).strip
    sections = tuple(
        replace(part, items=tuple(replace(item, text=strip(item.text)) for item in part.items))
        for part in text.sections
    )
    text = replace(text, sections=sections)
    analysis = analysis or analyse(request)
    statements: Sequence[Statement] = ()
    if Section.HISTORY in text.missing:
        digest = written(request, analysis)
    else:
        digest, statements = facts(request, analysis)
    own = _joined(text.sections, {})
    summary = replace(digest.summary, source=Source.MODEL, sections=own, prose=text.prose, language=language)
    spare_tokens = request.budget_tokens - request.count(request.render(summary))
    allowed = spare_tokens if most_ratio >= 1 else int(request.count(str(text)) * most_ratio / (1 - most_ratio))
    carried = _carried(previous, request, analysis)
    added = _Chooser(request, analysis, text).chosen(digest, statements, carried, max(min(spare_tokens, allowed), 0))
    while True:
        summary = replace(summary, sections=_joined(own, added))
        rendered = request.render(summary)
        over = request.count(rendered) - request.budget_tokens
        section = next((section for section in _DROPPED_FIRST if added.get(section)), None)
        if over <= 0 or section is None:
            break
        while over > 0 and added[section]:
            over -= request.count(added[section].pop().text) + 2
    lost, retention = loss(analysis, rendered)
    return Answer(summary=replace(summary, lost=lost, retention=retention), state=digest.state)


class _Chooser:
    """Chooses what the text does not hold, the most needed first."""

    def __init__(self, request: Request, analysis: Analysis, text: CompletedText) -> None:
        self.request, self.analysis, self.text = request, analysis, text
        self.folded = str(text).casefold()
        self.spaced = _spaced(self.folded)
        self.lines = tuple(words for line in self.folded.split("\n") if (words := _long_words(line)))
        self.begun: set[str] = set()
        self.token_cache = TokenCache(count=request.count)
        self.found: dict[Section, list[Item]] = {}
        self.left = 0
        self.added: dict[Section, list[frozenset[str]]] = {}

    def chosen(
        self, digest: Answer, statements: Sequence[Statement], carried: Mapping[Section, Sequence[Item]], tokens: int
    ) -> dict[Section, list[Item]]:
        """The items by section, of this many tokens in all, each section's in the digest's order; ``carried`` first."""
        sections = {part.section: part.items for part in digest.summary.sections}
        if Section.PLAN not in self.text.missing:
            is_open = (item for item in sections.get(Section.PLAN, ()) if item.text.startswith(_OPEN_LABELS))
            sections[Section.PLAN] = tuple(is_open)
        # Of the digest's, calls by other tools than files and shell, and the newest outcomes of tests.
        actions = (
            run
            for run in sections.get(Section.COMMANDS, ())
            if _ACTION.match(run.text) or (run.text.startswith("`") and is_check(run.text[1:].partition("` ")[0]))
        )
        sections[Section.COMMANDS] = (*_outcomes(self.analysis), *actions)
        sections[Section.USER] = (*sections.get(Section.USER, ()), *self._requests(tokens))
        filled = tuple(one for one in Section if one in self.text.missing and one not in _SHARES)
        offered = {section: sections.get(section, ()) for section in (*_SHARES, *filled)}
        # Of the user's words, what stopped a call first, then the newest.
        messages, user = self.request.transcript.messages, offered[Section.USER]
        stops = [item for item in user if any(messages[i].results for i in item.records if i < len(messages))]
        offered[Section.USER] = (*reversed(stops), *(item for item in reversed(user) if item not in stops))
        self.left, names_tokens = tokens, int(tokens * _NAMES_RATIO)
        for section, items in carried.items():
            self._take(section, items, int(tokens * _CARRIED_RATIO))
            sections[section] = (*items, *sections.get(section, ()))
        for section, items in offered.items():
            self._take(section, items, int(tokens * _SHARES.get(section, _FILL_RATIO)))
        # What did not fit its share may take what the others left, except for a share of the names.
        for section, items in offered.items():
            more = [item for item in items if item not in self.found.get(section, ())]
            self._take(section, more, self.left - names_tokens)
        for section, chosen in self.found.items():
            chosen.sort(key=tuple(sections[section]).index)
        shown = (str(self.text), *(item.text for chosen in self.found.values() for item in chosen))
        explaining = self._explaining(statements, shown, self.left - names_tokens)
        self._take(Section.COMMANDS, explaining, self.left)
        names = name_items(self.analysis, (*shown, *(item.text for item in explaining)), self.left, self.token_cache)
        return {**self.found, Section.NAMES: list(names)} if names else self.found

    def _explaining(self, statements: Iterable[Statement], shown: Sequence[str], tokens: int) -> Sequence[Item]:
        """What was reported to the user at the end of a turn: no question or proposal, which may be settled since.

        A statement weighs by the share of its worth that is not ``shown``.
        """
        events, worth = self.analysis.finals - self.analysis.taken_back.keys(), self.analysis.worth
        covered = frozenset[Fact]().union(*map(worth.facts, shown))
        candidates = []
        for one in statements:
            is_final = one.event in events and one.form is not StatementForm.CODE
            is_long = len(one.lead) + len(one.text) >= _LEAST_STATEMENT_CHARS
            if is_final and is_long and not proposes(one.text) and not _QUESTION.search(one.text):
                facts = worth.facts(one.text)
                if new := sum(value for fact, value in facts.items() if fact not in covered):
                    candidates.append(one._replace(weight=one.weight * new / sum(facts.values())))
        chosen = Choice(candidates, shown, worth, self.token_cache.text).choose(tokens)
        return history_items(self.analysis, chosen, {}, {}, with_names=False)

    def _requests(self, tokens: int) -> Iterator[Item]:
        """What the digest quotes under the task, which is for the text to state: the newest request last.

        Each gets half the share of the user's words, or all of it where half is less than a sentence takes.
        ``tokens``: of all that is added.
        """
        newest = newest_request(self.analysis)
        if newest and Section.TASK not in self.text.missing:
            share = int(tokens * _SHARES[Section.USER]) - _ITEM_TOKENS
            room = max(tokens // 4, min(_SENTENCE_TOKENS, share))
            for one in (*reversed(standing_requests(newest, self.analysis)), newest):
                words = clipped(one.text, room, self.token_cache)
                yield Item(text=words, records=records_of((one.record,)))

    def _take(self, section: Section, items: Iterable[Item], tokens: int) -> None:
        """Adds as many of the items as are news and fit into what is left, in their order."""
        least_left = max(self.left - tokens, 0)
        for item in items:
            cost = self.request.count(item.text) + _ITEM_TOKENS
            if self.left - cost >= least_left and self._is_news(item, section):
                self.found.setdefault(section, []).append(item)
                self.left -= cost
                self.added.setdefault(section, []).append(_long_words(item.text.casefold()))
                if section is Section.USER:
                    self.spaced += f" {_spaced(item.text)}"
                    self.begun.add(_beginning(_asked(item.text)))

    def _is_news(self, item: Item, section: Section) -> bool:
        """Whether an item is of the kind that may be added, and not in the text."""
        text = _OLD_RECORDS.sub("", item.text)
        if section is Section.USER:
            asked = _asked(text)
            plain = _spaced(asked).split()
            runs = [" ".join(plain[at : at + _RUN_WORDS]) for at in range(max(len(plain) - _RUN_WORDS + 1, 1))]
            is_quoted = sum(run in self.spaced for run in runs) >= _QUOTED_RATIO * len(runs)
            # The text may say itself that the user stopped this call, for which no reason was given.
            label, _, call = asked.partition("`")
            call = call.rstrip("`").partition(ELLIPSIS)[0].strip().casefold()
            stated = self.folded.split("\n") if label.startswith(self.analysis.words.stopped) and call else ()
            states_stop = any(call in line and _STOPS.search(line) for line in stated)
            return bool(asked) and not (is_quoted or _beginning(asked) in self.begun or states_stop)
        if section is Section.FILES:
            # What was only read has no state.
            path, dash, _ = text.partition(" — ")
            return bool(dash) and path.strip("`").casefold().rstrip("/").rsplit("/", 1)[-1] not in self.folded
        words = _long_words(text.casefold())
        if section in (Section.DECISIONS, Section.COMMANDS) and not item.records and not text.startswith("`"):
            # Settled or stated in an earlier summary: it stands where nothing since has to do with it.
            messages = (one.text for one in self.analysis.messages if one.record >= 0)
            settled = (one.text for one in self.analysis.decisions if one.records)
            since = (_long_words(line) for one in (*messages, *settled) for line in one.casefold().split("\n"))
            return not any(len(words & line) >= _CONCERNED_RATIO * len(words) for line in (*self.lines, *since))
        # Runs of one command differ in a hash or a number.
        lines = self.lines if text.startswith("`") else (*self.lines, *self.added.get(section, ()))
        return not words or all(len(words & line) < _SHOWN_RATIO * len(words) for line in lines)


_DONE = re.compile(r"\W*(?:done|completed|finished|已完成|完成|✅|x\])", re.IGNORECASE)
_OLD_RECORDS = re.compile(r"\s*\[[0-9a-f]{8}:[\d,-]+\]")


def _carried(previous: str, request: Request, analysis: Analysis) -> dict[Section, tuple[Item, ...]]:
    """What still holds of an earlier summary: no step that is done, of runs what they changed, of pushes the last."""
    is_pushed = any(_PUSHED.search(run.line) for run in analysis.runs)

    def holds(text: str) -> bool:
        is_over = _DONE.match(text) or (is_pushed and _PUSHED.search(text))
        return not is_over and (not text.startswith("`") or may_act_outside(text[1:].partition("` ")[0]))

    found: dict[Section, tuple[Item, ...]] = {}
    for part in (request.read(previous) or request.read_client(previous)) if previous else ():
        if part.section in _CARRIED:
            found[part.section] = tuple(Item(text=item.text) for item in part.items if holds(item.text))
    return found


def _outcomes(analysis: Analysis) -> Iterator[Item]:
    """What changed something outside, newest first: the program, and what it reported, an address by itself.

    Of pushes of a branch only the newest; nothing that failed and was done after all, nothing in a throwaway folder,
    no changes that were stashed and brought back.
    """
    known: set[str] = set()
    for run in reversed(analysis.runs):
        if not run.acts_outside or (run.outcome is CommandOutcome.UNKNOWN and not run.line):
            continue
        folder = analysis.work.elsewhere.get(run.event, "")
        steps = map(str.strip, run.command.split(" && "))
        line = _FOLDER.sub("", shown(next(filter(may_act_outside, steps), run.command)))
        # What is shown of a command (a loop, a search) may not show that it changed something.
        if is_throwaway(f"{folder}/") or not may_act_outside(line):
            continue
        # The words before its first option or text, where its report names the rest; else the command.
        plain = tuple(takewhile(_PLAIN_WORD.fullmatch, line.split()))[:_MOST_PROGRAM_WORDS]
        program = " ".join(plain) if run.line and len(plain) > 1 else line
        if program.startswith("git stash") and run.result_record != analysis.work.stash_record:
            continue
        addresses = _ADDRESS.findall(run.line)
        report = addresses[-1] if addresses else run.line or run.outcome.value
        is_failure = run.outcome is CommandOutcome.FAILED
        named = f"`{program}` ({folder})" if folder else f"`{program}`"
        text = f"{named} → {report}"
        if (key := named if is_failure else _PUSHED.sub("", text)) not in known:
            yield Item(text=text, records=records_of((run.record, run.result_record)))
        known |= {key} if is_failure else {key, named}


def _asked(text: str) -> str:
    """Of a call that was stopped, the reason that the user gave; else what was asked, without what came of it."""
    return _COMMAND.sub("", text.rpartition(' → "')[2].partition(" → ")[0])


def _beginning(words: str) -> str:
    """By what a request is known that one summary quotes whole and another without its middle."""
    return _spaced(words.partition(ELLIPSIS)[0])[:_SAME_CHARS]


def _spaced(text: str) -> str:
    """The words of a text, in lower case, with a blank between them."""
    return " ".join(_WORD.findall(text.casefold()))


def _long_words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text) if len(word) >= _LONG_WORD_CHARS)


def _joined(own: Iterable[SectionItems], added: Mapping[Section, Sequence[Item]]) -> tuple[SectionItems, ...]:
    """Each section once, in the order of `Section`, its own items before those that are added."""
    items: dict[Section, list[Item]] = {}
    for section, more in (*((part.section, part.items) for part in own), *added.items()):
        items.setdefault(section, []).extend(more)
    return tuple(SectionItems(section=one, items=tuple(items[one])) for one in Section if items.get(one))


# A check list is read with the records themselves: it names, it does not explain.
_LIST_RATIO, _LEAST_LIST_TOKENS, _MOST_LIST_TOKENS = 0.1, 200, 1_500
_NAMES_OF_LIST_RATIO = 0.25
_NAMES_LINE_CHARS = 200


class RecordFacts:
    """What the digest knows of the records of one summary, read once for prompts, checks and the supplement.

    ``request``: with the language of the summary. ``strands``: the records that prompts show. Everything is worked out
    when it is first needed. Not for several threads.
    """

    def __init__(self, request: Request, strands: Sequence[Strand]) -> None:
        self._request = request
        self._strands = tuple(strand for strand in strands if strand.indices)
        self._analyses: dict[int, Analysis] = {}
        self._items: dict[int, tuple[Item, ...]] = {}
        self._tokens = TokenCache(count=request.count)

    @cached_property
    def records(self) -> SourceRecords:
        """All of the records, to be searched."""
        return SourceRecords((strand.transcript, strand.indices) for strand in self._strands)

    @property
    def analysis(self) -> Analysis:
        """Of the covered records of the request."""
        return self._analysis(self._request.transcript)

    def essentials(self, parts: Iterable[Strand]) -> tuple[Essential, ...]:
        """What a summary of some of the records has to name, the weightiest first."""
        numbered: list[tuple[str, Event]] = []
        names: list[tuple[float, str]] = []
        terms: dict[str, float] = {}
        for part in parts:
            analysis, records = self._analysis(part.transcript), frozenset(part.indices)
            found = [
                event for event in analysis.events if event.record in records and event.kind is not EventKind.SUMMARY
            ]
            numbered += ((f"{part.prefix}{event.record + 1}", event) for event in found)
            lines, atoms, rows = analysis.table.lines, list(analysis.table.atoms), analysis.scores.rows
            here: Iterable[int] = range(len(atoms))
            if len(found) < len(analysis.events):
                texts = {line.strip() for event in found for line in event.text.split("\n")}
                here = {row for line in texts if line in lines.numbers for row in lines.atoms[lines.numbers[line]]}
            likeliest = sorted(here, key=lambda row: (-rows[row], row))[:MOST_RANKED]
            names += ((rows[row], atoms[row]) for row in likeliest)
            terms |= analysis.scores.terms
        ranked = dict.fromkeys(name for _, name in sorted(names, key=lambda one: -one[0]))
        return essentials_of(numbered, islice(ranked, MOST_RANKED), terms)

    def check_list(self, parts: Iterable[Strand], tokens: int, wanted: Sequence[Essential], share: float = 1.0) -> str:
        """The facts of some of the records most likely to be needed, an item a line, not yet quoted.

        ``tokens``: their size; ``share``: of all records. ``wanted``: their essentials.
        """
        room = int(min(max(tokens * _LIST_RATIO, _LEAST_LIST_TOKENS), _MOST_LIST_TOKENS))
        lines: list[str] = []
        left = room
        for part in parts:
            known, records = id(part.transcript), frozenset(part.indices)
            if known not in self._items:
                facts_tokens = int(int(room / max(share, 0.01)) * (1 - _NAMES_OF_LIST_RATIO))
                sections = build_sections(self._analysis(part.transcript), facts_tokens, self._tokens)
                self._items[known] = tuple(item for section in Section for item in sections.get(section, ()))
            for item in self._items[known]:
                cost = self._tokens.item(item)
                if cost <= left and not records.isdisjoint(item.records):
                    lines.append(f"- {item.text}")
                    left -= cost
        shown_lines = "\n".join(lines)
        names = [one.name for one in wanted if one.words == (one.name.casefold(),) and one.name not in shown_lines]
        for line in wrap(", ".join(names), _NAMES_LINE_CHARS, break_long_words=False, break_on_hyphens=False):
            left -= self._tokens.text(line)
            lines += [f"- {line}"] if left >= 0 else []
        return "\n".join(lines)

    def outline(self, parts: Iterable[Strand], tokens: int, headings: Sequence[OutlineHeading]) -> Outline:
        """The digest of some of the records as if a model had written it, under these headings."""
        asked = {heading.section for heading in headings}
        wanted = list(parts)
        digests = [Digest().summarise(self._of(part, tokens // len(wanted))).summary.sections for part in wanted]
        outline = joined_outline([Outline(sections=found, present=frozenset(), text="") for found in digests])
        sections = tuple(part for part in outline.sections if part.section in asked)
        return Outline(sections=sections, present=frozenset(asked), text=as_text(sections, headings))

    def _analysis(self, transcript: Transcript) -> Analysis:
        if id(transcript) not in self._analyses:
            is_own = transcript is self._request.transcript
            strand = next((one for one in self._strands if one.transcript is transcript), None)
            request = self._request if is_own or strand is None else self._of(strand, 0)
            self._analyses[id(transcript)] = analyse(request)
        return self._analyses[id(transcript)]

    def _of(self, strand: Strand, tokens: int) -> Request:
        """A digest of these records alone, an item a line."""
        return replace(
            self._request,
            transcript=strand.transcript,
            covered=strand.indices,
            kept=(),
            budget_tokens=tokens,
            render=lambda summary: "\n".join(f"- {item.text}" for part in summary.sections for item in part.items),
            state=None,
        )
