"""What the digest adds to a model's summary: a check list in the prompt, and a supplement after the reply.

A supplement is added to a text that a model, or the agent itself, wrote about the records. It holds only what cannot
contradict the text and is not in it: the user's words and refusals, open steps, outcomes of calls that changed
something outside, what was reported at the end of a turn, files that the text does not name with their state, one
index of names. Whole sections come from the digest only where the text has no such heading.
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
from compactor_cli.digest.commands import may_act_outside, shown
from compactor_cli.digest.decisions import proposes
from compactor_cli.digest.digest import Digest, facts, written
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.files import is_throwaway
from compactor_cli.digest.history import history_items
from compactor_cli.digest.language import LANGUAGES, words_of
from compactor_cli.digest.loss import loss
from compactor_cli.digest.names import name_items
from compactor_cli.digest.now import standing_requests
from compactor_cli.digest.runs import CommandOutcome
from compactor_cli.digest.sections import build_sections
from compactor_cli.digest.statements import Statement, StatementForm, TokenCache, clipped, records_of
from compactor_cli.digest.texts import ELLIPSIS
from compactor_cli.digest.wants import newest_request
from compactor_cli.formats.directories import directories_of
from compactor_cli.llm.check_reply import MOST_RANKED, Essential, SourceRecords, essentials_of, spaced_words
from compactor_cli.llm.prompts import Outline, OutlineHeading, as_text, joined_outline
from compactor_cli.llm.quoting import Strand
from compactor_cli.model.summary import Answer, Item, Request, Section, SectionItems, Source
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass

# The most that the supplement may take of the tokens of text and supplement together.
MOST_RATIO = 0.25
# The most that a section may take of the supplement's tokens: these sections, and any that is filled from the digest.
# What they leave is given out in a second round, and the index of names gets the rest.
_SHARES: Mapping[Section, float] = {Section.USER: 0.5, Section.PLAN: 0.1, Section.COMMANDS: 0.15, Section.FILES: 0.1}
_FILL_RATIO = 0.15
# Which sections of the supplement lose items first where text and supplement are over the budget after all.
_DROPPED_FIRST = (*(one for one in reversed(Section) if one not in _SHARES), *reversed(tuple(_SHARES)))
# Sections whose items an update may have dropped from the earlier summary, and the share of tokens for each of them.
_CARRIED = (Section.PLAN, Section.USER, Section.DECISIONS, Section.COMMANDS)
_CARRIED_RATIO = 0.25
_NAMES_RATIO = 0.25  # kept free for the index of names
_ITEM_TOKENS = 3  # what an item takes next to its text
# A shorter statement, its lead included, is seldom understood alone.
_LEAST_STATEMENT_CHARS = 40
_QUESTION = re.compile(r"[?？][\"'”*_`)]*\s*$")
# A command to the client with its paths: `/open tides/north.csv `. None of it is the user's words.
_COMMAND = re.compile(r"^/\S+(?:\s+\S*/\S*)*\s*")
# How a text states that the user stopped a call.
_STOPS = re.compile(r"\b(?:refus|reject|declin|stop|interrupt|den(?:y|ied)|turned down)|拒|中止")
# A request cut to less than this still holds what to do, but seldom what not to do.
_SENTENCE_TOKENS = 30
# The text shows a statement if one of its lines holds this share of the statement's long words, and the user's words if
# it holds this share of their runs of words.
_SHOWN_RATIO = 0.6
_QUOTED_RATIO = 0.7
# A line with this share of the long words of an earlier decision concerns it, and may overturn it.
_CONCERNED_RATIO = 0.3
_WORD = re.compile(r"\w+")
_RUN_WORDS = 4
_LONG_WORD_CHARS = 4
_SAME_CHARS = 40  # two requests that begin with this many equal characters are the same
_PLAIN_WORD = re.compile(r"[\w./:@][\w./:@-]*")
# What a push reports, from which commit to which: `1f3a9c7..5b8d204`.
_PUSHED = re.compile(r"\b[0-9a-f]{7,40}\.\.\.?[0-9a-f]{7,40}\b")
_FOLDER = re.compile(r"(?<=\bgit) -C \S+")
_MOST_PROGRAM_WORDS = 4
_ADDRESS = re.compile(r"https?://[^\s\"'<>)]+")
_LABELS = [words_of(language) for language in LANGUAGES]
# How an item of the plan begins if its step is not done, in every language.
_OPEN_LABELS = tuple(f"{label}{words.colon}" for words in _LABELS for label in (words.doing, words.open))
# How the digest lists a call by a tool other than files and shell that changed something: `set_clock(`.
_ACTION = re.compile(r"[\w.:-]+\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedText:
    """A text that replaces records, to be completed from the digest."""

    sections: tuple[SectionItems, ...]
    prose: str = ""  # stands before the sections word for word
    missing: frozenset[Section] = frozenset()  # sections that it should have, to be filled from the digest

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

    The supplement takes at most ``most_ratio`` of the tokens of both. The state is that of the digest of all covered
    records, as if the digest had written all of it. ``analysis``: that of the request, if it was made before.
    ``previous``: the earlier summary that the text brings up to date. Its open steps, the user's words in it and those
    of its decisions that nothing since concerns are considered first.
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
    """Chooses items that the text does not hold, the most needed first."""

    def __init__(self, request: Request, analysis: Analysis, text: CompletedText) -> None:
        self.request, self.analysis, self.text = request, analysis, text
        self.folded = str(text).casefold()
        self.spaced = spaced_words(self.folded)
        self.lines = tuple(words for line in self.folded.split("\n") if (words := _long_words(line)))
        self.begun: set[str] = set()  # the beginnings of the user's words that were added
        self.token_cache = TokenCache(count=request.count)
        self.found: dict[Section, list[Item]] = {}
        self.left = 0  # tokens
        self.added: dict[Section, list[frozenset[str]]] = {}  # the long words of each item that was added

    def chosen(
        self, digest: Answer, statements: Sequence[Statement], carried: Mapping[Section, Sequence[Item]], tokens: int
    ) -> dict[Section, list[Item]]:
        """The chosen items by section, within ``tokens`` in all.

        ``carried`` items are considered first. Each section's items are in the order of the digest, carried ones first.
        """
        sections = {part.section: part.items for part in digest.summary.sections}
        if Section.PLAN not in self.text.missing:
            is_open = (item for item in sections.get(Section.PLAN, ()) if item.text.startswith(_OPEN_LABELS))
            sections[Section.PLAN] = tuple(is_open)
        # Of the digest's commands only calls by tools other than files and shell, and the newest outcomes of checks.
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
        # What did not fit in its share may take what the others left, except for the share of the names.
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
        """What was reported to the user at the end of a turn, without questions and proposals: they may be settled now.

        A statement weighs by the share of its worth that is not in ``shown``.
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
        """The newest request and those that still stand, the newest last: the digest quotes them under the task.

        Nothing if the text is to get its task from the digest. Each is cut to half of the user's share, or to all of
        it where half is less than a sentence takes. ``tokens``: the size of the whole supplement.
        """
        newest = newest_request(self.analysis)
        if newest and Section.TASK not in self.text.missing:
            share = int(tokens * _SHARES[Section.USER]) - _ITEM_TOKENS
            room = max(tokens // 4, min(_SENTENCE_TOKENS, share))
            for one in (*reversed(standing_requests(newest, self.analysis)), newest):
                words = clipped(one.text, room, self.token_cache)
                yield Item(text=words, records=records_of((one.record,)))

    def _take(self, section: Section, items: Iterable[Item], tokens: int) -> None:
        """Add the items that are news, in their order, as far as they fit in ``tokens`` and in what is left."""
        least_left = max(self.left - tokens, 0)
        for item in items:
            cost = self.request.count(item.text) + _ITEM_TOKENS
            if self.left - cost >= least_left and self._is_news(item, section):
                self.found.setdefault(section, []).append(item)
                self.left -= cost
                self.added.setdefault(section, []).append(_long_words(item.text.casefold()))
                if section is Section.USER:
                    self.spaced += f" {spaced_words(item.text)}"
                    self.begun.add(_beginning(_asked(item.text)))

    def _is_news(self, item: Item, section: Section) -> bool:
        """Whether an item may be added and the text, or what was added before, does not show it."""
        text = _OLD_RECORDS.sub("", item.text)
        if section is Section.USER:
            asked = _asked(text)
            plain = spaced_words(asked).split()
            runs = [" ".join(plain[at : at + _RUN_WORDS]) for at in range(max(len(plain) - _RUN_WORDS + 1, 1))]
            is_quoted = sum(run in self.spaced for run in runs) >= _QUOTED_RATIO * len(runs)
            # Where the user stopped a call without a reason, the text may state that in its own words.
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
            # Decided or stated in an earlier summary: it still holds if nothing since concerns it.
            messages = (one.text for one in self.analysis.messages if one.record >= 0)
            settled = (one.text for one in self.analysis.decisions if one.records)
            since = (_long_words(line) for one in (*messages, *settled) for line in one.casefold().split("\n"))
            return not any(len(words & line) >= _CONCERNED_RATIO * len(words) for line in (*self.lines, *since))
        # Runs of one command differ in a hash or a number.
        lines = self.lines if text.startswith("`") else (*self.lines, *self.added.get(section, ()))
        return not words or all(len(words & line) < _SHOWN_RATIO * len(words) for line in lines)


# How an item begins whose step is done: `[x] …`, `Done: …`.
_DONE = re.compile(r"\W*(?:done|completed|finished|已完成|完成|✅|x\])", re.IGNORECASE)
# Records of an earlier transcript, by its hash: ` [1f3a9c77:3,12]`.
_OLD_RECORDS = re.compile(r"\s*\[[0-9a-f]{8}:[\d,-]+\]")


def _carried(previous: str, request: Request, analysis: Analysis) -> dict[Section, tuple[Item, ...]]:
    """The items of an earlier summary that may still hold, by section; empty where there is none.

    Left out are finished steps, commands that changed nothing outside, and pushes where a push was made since.
    """
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
    """Commands that changed something outside, newest first: the program, and the address or line that it reported.

    Of several pushes of a branch only the newest. Left out are failures of what succeeded later, what happened in a
    throwaway folder, and stashes that were brought back.
    """
    known: set[str] = set()
    for run in reversed(analysis.runs):
        if not run.acts_outside or (run.outcome is CommandOutcome.UNKNOWN and not run.line):
            continue
        folder = analysis.work.elsewhere.get(run.event, "")
        steps = map(str.strip, run.command.split(" && "))
        line = _FOLDER.sub("", shown(next(filter(may_act_outside, steps), run.command)))
        # The shown line of a command (a loop, a search) may not be what changed something.
        if is_throwaway(f"{folder}/") or not may_act_outside(line):
            continue
        # The words before its first option or quoted argument, if there is a report; else the whole line.
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
    """The user's own words in an item: the reason given for stopping a call, else the request without its outcome."""
    return _COMMAND.sub("", text.rpartition(' → "')[2].partition(" → ")[0])


def _beginning(words: str) -> str:
    """The beginning of a request, the same whether a summary quotes it whole or without its middle."""
    return spaced_words(words.partition(ELLIPSIS)[0])[:_SAME_CHARS]


def _long_words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text) if len(word) >= _LONG_WORD_CHARS)


def _joined(own: Iterable[SectionItems], added: Mapping[Section, Sequence[Item]]) -> tuple[SectionItems, ...]:
    """Each section once, in the order of `Section`, its own items before the added ones."""
    items: dict[Section, list[Item]] = {}
    for section, more in (*((part.section, part.items) for part in own), *added.items()):
        items.setdefault(section, []).extend(more)
    return tuple(SectionItems(section=one, items=tuple(items[one])) for one in Section if items.get(one))


# The size of a check list by that of its records. It is read along with them: it names things, it does not explain.
_LIST_RATIO, _LEAST_LIST_TOKENS, _MOST_LIST_TOKENS = 0.1, 200, 1_500
_NAMES_OF_LIST_RATIO = 0.25
_NAMES_LINE_CHARS = 200


class RecordFacts:
    """What the digest knows of the records of one summary, for its prompts, its checks and its supplement.

    ``request``: with the language of the summary. ``strands``: the records that prompts show. Everything is computed
    once, when it is first needed. Not for several threads.
    """

    def __init__(self, request: Request, strands: Sequence[Strand]) -> None:
        self._request = request
        self._strands = tuple(strand for strand in strands if strand.indices)
        self._analyses: dict[int, Analysis] = {}
        self._items: dict[int, tuple[Item, ...]] = {}
        self._tokens = TokenCache(count=request.count)

    @cached_property
    def records(self) -> SourceRecords:
        """All records, to be searched for names."""
        return SourceRecords((strand.transcript, strand.indices) for strand in self._strands)

    @property
    def analysis(self) -> Analysis:
        """The digest's analysis of the covered records of the request."""
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
        """The facts of some of the records that are most likely to be needed, an item a line, not yet quoted.

        ``tokens``: the size of these records; ``share``: their share of all records, 0 to 1. ``wanted``: their
        essentials.
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
        """The digest of some of the records as an outline under these headings, as if a model had written it."""
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
        """The request for a digest of these records alone, written an item a line."""
        return replace(
            self._request,
            transcript=strand.transcript,
            covered=strand.indices,
            kept=(),
            budget_tokens=tokens,
            render=lambda summary: "\n".join(f"- {item.text}" for part in summary.sections for item in part.items),
            state=None,
        )
