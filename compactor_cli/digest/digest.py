"""The digest: a summary written without a model, every statement of it found in the transcript.

It stays within its budget, and is the same for the same request. `analysis` works out what the records show, `sections`
states it, `candidates` and `choice` fill the rest with statements, `names` adds an index. docs/digest.md has the rules
in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from compactor_cli.digest.analysis import Analysis, analyse
from compactor_cli.digest.candidates import candidates_of
from compactor_cli.digest.choice import Choice
from compactor_cli.digest.corrections import standing
from compactor_cli.digest.events import EventKind
from compactor_cli.digest.facts import remembered_commands
from compactor_cli.digest.files import FileState
from compactor_cli.digest.gist import whole_lists
from compactor_cli.digest.history import (
    ENDED,
    HIERARCHY_RATIO,
    asked_line,
    history_items,
    is_outdated,
    made_lines,
    main_statements,
    remembered_items,
    turn_lines,
)
from compactor_cli.digest.loss import loss
from compactor_cli.digest.memory import UNCOMMITTED_BY_GIT, Memory, file_row, lasting_part, serialise
from compactor_cli.digest.messages import ALL_WORK, forbids, is_rule, lasting
from compactor_cli.digest.names import name_items, named_in
from compactor_cli.digest.now import now_items
from compactor_cli.digest.open import remembered_errors
from compactor_cli.digest.replies import is_assent
from compactor_cli.digest.sections import (
    DROP_ORDER,
    HEADING_TOKENS,
    SMALL_TOKENS,
    build_sections,
    names_tokens,
    texts_of,
)
from compactor_cli.digest.services import dialogue_statements
from compactor_cli.digest.statements import Statement, TokenCache
from compactor_cli.digest.texts import ELLIPSIS
from compactor_cli.digest.wants import outcome_of, stop_before
from compactor_cli.digest.work_state import WorkState
from compactor_cli.model.settings import HIERARCHICAL
from compactor_cli.model.summary import Answer, Item, Request, Section, SectionItems, Source, Summary
from compactor_cli.model.value import dataclass

# The tokens of the whole differ by some percent from those of its parts: where a history fills less than this share of
# its room, or overfills it, the number asked for is corrected by the outcome, in a few rounds.
_FILLED = 0.97
_MAX_ROUNDS = 3
_MAX_TRIMS = 12
_MIN_HISTORY_TOKENS = 24
_MAX_REMEMBERED = 1_500
_MIN_NAMED_TOKENS = 600
# Share of the history that the lines of turns that made something may take.
_MADE_RATIO = 0.3
# Share of the summary, and most tokens, of lines of what was only looked at: they can be read again.
_LOOKED_RATIO, _MAX_LOOKED_TOKENS = 0.5, 4_000
# How many times its share the index of names may take of what nothing else needs.
_NAMES_FACTOR = 2
# From here on, tokens that nothing else needs go to a request that was cut.
_MIN_SPARE_TOKENS = 40
# In work on files, a list of up to a third of these characters is quoted whole or not at all.
_LIST_CHARS = 900
# An item quotes a message that holds this many characters of its beginning.
_SAME_CHARS = 16
# Characters of a brief message that forbids something: `implement it, but don't commit`.
_MAX_FORBIDDING_CHARS = 90
Sections = dict[Section, tuple[Item, ...]]


class Digest:
    """The default summariser. Same request, same answer; time linear in the covered text."""

    def summarise(self, request: Request) -> Answer:
        """The summary of ``request.covered``: within its budget, and within some percent of it where there is enough.

        It ends where nothing new is left to say but lines of files and outputs, however large the budget. A budget
        that cannot even hold the template's frame gives a summary without sections.
        """
        return self.with_analysis(request)[0]

    def with_analysis(self, request: Request) -> tuple[Answer, Analysis]:
        """The answer of `summarise`, and the analysis that it was written from."""
        analysis = analyse(request)
        return written(request, analysis), analysis


def written(request: Request, analysis: Analysis) -> Answer:
    """The digest of a request that was analysed already."""
    writer = _Writer(request=request, analysis=analysis, token_cache=TokenCache(count=request.count))
    summary = writer.write()
    lost, retention = loss(analysis, request.render(summary))
    return writer.answer(replace(summary, lost=lost, retention=retention))


def facts(request: Request, analysis: Analysis) -> tuple[Answer, Sequence[Statement]]:
    """The sections that need no history, with the state, and the statements that a history would be chosen from.

    For a caller that adds facts to a text that was written elsewhere.
    """
    writer = _Writer(request=request, analysis=analysis, token_cache=TokenCache(count=request.count))
    summary, candidates = writer.facts()
    return writer.answer(summary), candidates


def _memory(analysis: Analysis, names: Iterable[Item]) -> Memory:
    """What the next digest is to know of these records: all that is small, not only what the summary shows.

    Messages that only agree are left out: what they agreed to is a decision.
    """
    work = analysis.work
    return Memory(
        users=tuple(_lasting_requests(analysis)),
        files=tuple(file_row(state, _uncommitted(state, work)) for state in reversed(analysis.files)),
        todos=tuple((todo.state.value, todo.text, todo.key) for todo in analysis.plan.todos),
        plan=analysis.plan.text,
        commands=remembered_commands(analysis),
        errors=remembered_errors(analysis),
        decisions=tuple(decision.whole for decision in analysis.decisions),
        skills=tuple(name for name, _ in analysis.attached.skills),
        running=tuple((work.id, work.about) for work in analysis.attached.running),
        branch=work.branch,
        checks=tuple((run.command, *dict.fromkeys(one.path for one in since)) for run, since in work.checks),
        unpushed=tuple((commit.branch, commit.hash, commit.subject) for commit in work.unpushed),
        stashed=work.stashed,
        names=tuple(chain.from_iterable(named_in(item.text).items() for item in names)),
    )


def _lasting_requests(analysis: Analysis) -> Iterator[str]:
    """The user's messages with what came of them.

    Replies of a few words are left out, as nobody can read them alone; not where one states a lasting rule, is the
    newest message, or led to something that was made.
    """
    messages = [one for one in analysis.messages if one.text and not is_assent(one.text)]
    for message in messages:
        outcome = analysis.outcomes.get(message.turn)
        if not message.is_short or lasting(message.text) or message is messages[-1] or (outcome and outcome.is_made):
            stop, outcome_text = stop_before(message, analysis.words), outcome_of(message, analysis)[0]
            yield lasting_part(f"{message.text}{stop}{outcome_text}")


def _forbids_briefly(text: str) -> bool:
    return len(text) <= _MAX_FORBIDDING_CHARS and lasting(text) == ALL_WORK and forbids(text)


def _uncommitted(state: FileState, work: WorkState) -> int:
    """Whether a file's last change is in no commit, as `file_row` takes it."""
    has_no_commit = not (work.commits or work.by_others)
    if state.path in work.uncommitted:
        return UNCOMMITTED_BY_GIT
    return int(state.changed >= 0 and has_no_commit and state.path not in work.stashed)


@dataclass(slots=True, kw_only=True)
class _Writer:
    """Writes one digest: sections first, then history and names in what they leave."""

    request: Request
    analysis: Analysis
    token_cache: TokenCache
    remembered: Sequence[Statement] = ()  # the statements that the state keeps for the next digest

    def answer(self, summary: Summary) -> Answer:
        names = (item for part in summary.sections if part.section is Section.NAMES for item in part.items)
        state = serialise(self.analysis.scores, self.remembered, _memory(self.analysis, names).to_json())
        return Answer(summary=summary, state=state)

    def facts(self) -> tuple[Summary, list[Statement]]:
        available = max(self.request.budget_tokens - self._tokens({}), 0)
        sections = build_sections(self.analysis, available, self.token_cache) if available else {}
        candidates = self._candidates(available)
        self.remembered = self._to_remember(candidates)
        return self._summary(sections), candidates

    def write(self) -> Summary:
        budget = self.request.budget_tokens
        available = budget - self._tokens({})
        sections = build_sections(self.analysis, available, self.token_cache) if available > 0 else {}
        left = budget - self._tokens(sections)
        if left >= _MIN_HISTORY_TOKENS:
            sections = self._filled(sections, left, available)
        return self._summary(self._fitted(sections))

    def _filled(self, sections: Sections, left: int, available: int) -> Sections:
        """The sections with history and names in the tokens ``left`` of those ``available`` without the frame."""
        share = names_tokens(available, self.analysis.scores.coding)
        index_tokens = min(share, left // 3)
        lines = {}
        if self.request.kept_by == HIERARCHICAL:
            index_tokens = min(index_tokens, left // 6)
            most = min(left - index_tokens, int(available * HIERARCHY_RATIO))
            lines = turn_lines(self.analysis, most, self.token_cache)
        elif self._with_names:
            lines = made_lines(self.analysis, self._quoted(sections), int(left * _MADE_RATIO), self.token_cache)
        candidates = self._candidates(left)
        # A request is not its answer: a statement in the words of a request still holds something new.
        stated: Sections = {section: items for section, items in sections.items() if section is not Section.USER}
        shown = [*texts_of(stated), *(item.text for item in lines.values())]
        if self.analysis.is_dialogue:
            offered = list(dialogue_statements(self.analysis, candidates, left * 3))
        else:
            offered = list(whole_lists(candidates, self.analysis, min(left * 3, _LIST_CHARS)))
        offered = self._not_carried(offered, sections)
        choice = Choice(
            offered,
            shown,
            self.analysis.worth,
            self.token_cache.text,
            focus=self.analysis.focus,
            first=main_statements(offered, self.analysis),
            looked_tokens=min(_LOOKED_RATIO * available, _MAX_LOOKED_TOKENS),
        )
        room = left - index_tokens - sum(map(self.token_cache.item, lines.values()))
        best, tokens = self._best(choice, sections, lines, room, left - index_tokens // 2)
        self.remembered = self._to_remember(candidates)
        best, tokens = self._with_whole_request(best, tokens, share)
        unused = self.request.budget_tokens - tokens - HEADING_TOKENS
        # Where statements leave room, the index takes more.
        most = min(unused, _NAMES_FACTOR * share)
        return {**best, Section.NAMES: name_items(self.analysis, texts_of(best), most, self.token_cache)}

    def _with_whole_request(self, sections: Sections, tokens: int, reserved: int) -> tuple[Sections, int]:
        """The sections with more of the newest request, where nothing else needs the room; and the tokens of the whole.

        Unchanged in a small summary: the least that is planned may be more than its target has room for.
        """
        stated, budget = sections.get(Section.TASK, ()), self.request.budget_tokens
        spare = budget - tokens - reserved - HEADING_TOKENS
        if budget <= SMALL_TOKENS or spare < _MIN_SPARE_TOKENS or not any(ELLIPSIS in item.text for item in stated):
            return sections, tokens
        room = sum(map(self.token_cache.item, stated)) + spare
        longer = {**sections, Section.TASK: now_items(self.analysis, room, self.token_cache)}
        more = self._tokens(longer)
        return (longer, more) if tokens < more <= tokens + spare else (sections, tokens)

    def _not_carried(self, offered: Iterable[Statement], sections: Sections) -> list[Statement]:
        """The statements without those of summaries that are carried whole, quoted as the user's words, or outdated."""
        whole = {record for item in sections.get(Section.PREVIOUS, ()) for record in item.records}
        wanted = "\n".join(item.text for item in sections.get(Section.USER, ()))
        listed = {event.record for event in self.analysis.events if event.kind is EventKind.SUMMARY}
        left = (one for one in offered if not (one.record in whole or (one.record in listed and one.text in wanted)))
        return [one for one in left if not is_outdated(one, self.analysis)]

    def _best(
        self, choice: Choice, sections: Sections, lines: dict[int, Item], room: int, limit: int
    ) -> tuple[Sections, int]:
        """The fullest of a few tries whose history takes at most ``limit`` tokens, and the tokens of the whole.

        ``room``: the tokens that the history is to take.
        """
        start = self._tokens(sections)
        best, most, asked = sections, start, room
        for _ in range(_MAX_ROUNDS):
            chosen = choice.choose(asked)
            filled = self._with_history(sections, chosen, lines)
            tokens = self._tokens(filled)
            used = tokens - start
            if most < tokens <= start + limit:
                best, most = filled, tokens
            if not chosen or (used <= room and (choice.is_exhausted or used >= room * _FILLED)):
                break
            asked = int(asked * room * 0.99 / max(1, used))
        return best, most

    def _candidates(self, tokens: int) -> list[Statement]:
        new = candidates_of(self.analysis, tokens)
        known = {statement.text for statement in new}
        # Remembered output of a command is outdated where the command ran again.
        again = {self.analysis.labels[run.event].text for run in self.analysis.runs}
        remembered = (one for one in self.analysis.remembered if one.text not in known)
        old = (one for one in remembered if one.label.partition(ENDED)[0] not in again)
        return [*old, *new]

    def _with_history(self, sections: Sections, chosen: Sequence[Statement], lines: dict[int, Item]) -> Sections:
        previous = (*remembered_items(chosen, self.analysis), *sections.get(Section.PREVIOUS, ()))
        history = history_items(self.analysis, chosen, lines, self._quoted(sections), with_names=self._with_names)
        opened = {item.text for item in history}
        words, wants = self.analysis.words, sections.get(Section.USER, ())
        # What the user forbids stands among what the user wants even if it opens a turn.
        unquoted = tuple(
            item
            for item in wants
            if opened.isdisjoint((item.text, asked_line(item, words))) or _forbids_briefly(item.text)
        )
        return {**sections, Section.USER: unquoted, Section.HISTORY: history, Section.PREVIOUS: previous}

    @property
    def _with_names(self) -> bool:
        """Whether turns are opened by what was asked: of a dialogue the user's words are chosen with the rest."""
        return self.request.budget_tokens >= _MIN_NAMED_TOKENS and not self.analysis.is_dialogue

    def _quoted(self, sections: Sections) -> dict[int, Item]:
        """The items that quote the user's messages with what came of them, by record: they open the turns."""
        texts = {one.record: one.text for one in self.analysis.messages}
        found: dict[int, Item] = {}
        for one in sections.get(Section.USER, ()):
            message = texts.get(one.records[0], "") if one.records else ""
            # A rule out of the middle of a message does not stand for the message.
            if one.text[:_SAME_CHARS] in message and not (is_rule(one.text) and one.text in message[1:]):
                found[one.records[0]] = one
        return found

    def _to_remember(self, candidates: Sequence[Statement]) -> list[Statement]:
        """The statements of most weight that no later record questions, in order; of equal weight, the newest."""
        found = [one for one in candidates if not standing(one, self.analysis)]
        best = sorted(range(len(found)), key=lambda i: (-found[i].weight, -i))[:_MAX_REMEMBERED]
        return [found[i] for i in sorted(best)]

    def _summary(self, sections: Mapping[Section, Sequence[Item]]) -> Summary:
        return Summary(
            source=Source.DIGEST,
            sections=tuple(
                SectionItems(section=section, items=tuple(sections[section]))
                for section in Section
                if sections.get(section)
            ),
            language=self.analysis.language,
            state_used=self.analysis.state_used,
        )

    def _tokens(self, sections: Mapping[Section, Sequence[Item]]) -> int:
        return self.request.count(self.request.render(self._summary(sections)))

    def _fitted(self, sections: Sections) -> Sections:
        """The sections without the last items of those that are dropped first, so that the whole fits its budget.

        No sections where it does not fit even so.
        """
        kept = {section: list(items) for section, items in sections.items()}
        for _ in range(_MAX_TRIMS + 1):
            over = self._tokens(kept) - self.request.budget_tokens
            if over <= 0:
                return {section: tuple(items) for section, items in kept.items()}
            for section in DROP_ORDER:
                items = kept.get(section, [])
                while items and over > 0:
                    over -= self.token_cache.item(items.pop())
        return {}
