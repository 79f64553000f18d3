"""Sections: one table of what the digest tells, in which share of its tokens, and what is dropped first.

Every builder takes the analysis and a number of tokens and gives items in the order they are read; what does not fit
is left out from the end of its own ranking. To add a section: a value of `Section`, a row of `SECTIONS`, a heading in
the templates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from compactor_cli.digest import now
from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.commands import MERGE_CONFLICT, conflicting_files, shown
from compactor_cli.digest.decisions import Decision
from compactor_cli.digest.fact_items import fact_items
from compactor_cli.digest.files import content_items, file_items
from compactor_cli.digest.history import whole_summaries
from compactor_cli.digest.open import attached_items, plan_items
from compactor_cli.digest.statements import ELLIPSIS, TokenCache, chosen, clipped, opening, records_of, water_level
from compactor_cli.digest.statuses import ErrorRecord, Status, is_test
from compactor_cli.digest.user_words import UserMessage
from compactor_cli.model.summary import Item, Section

Build = Callable[[Analysis, int, TokenCache], tuple[Item, ...]]

HEADING_TOKENS = 6
_MIN_TOKENS = 8
# Between these sizes of a summary, shares go from the small column to the large one.
SMALL_TOKENS, LARGE_TOKENS = 300, 1_500
_MIN_QUOTE_TOKENS = 24
# Shorter replies (yes, go on) are shown with what they reply to only.
_MIN_SHORT_CHARS = 14
_MAX_PATHS = 4
_MAX_COMMAND_CHARS = 90
# What newest means against the strength of a decision: the last of a transcript gains as much as a choice.
_RECENCY = 2.0
# An error of this many events ago is still what the work is about.
_RECENT_EVENTS = 40
# Where very many files were changed, their paths may take more than the ledger's share.
_PATH_TOKENS = 12
_MAX_FILES_RATIO = 0.16
# Another client's summary that takes no more than this is carried whole: its author knew what mattered.
_PREVIOUS_RATIO = 0.3
# What the contents of files may take where they are asked for, and skills and background work where there are any.
_CONTENTS_RATIO = 0.25
_ATTACHED_RATIO = 0.06
# What the index of names may take: where nothing is about files, names and numbers are what was looked up.
_NAMES_RATIO, _NAMES_RATIO_OF_CHAT = 0.08, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPlan:
    """One row: the section, its builder, and its share of the tokens in large and small summaries and in talk.

    ``drop``: when it is dropped where the whole is over its budget, the lowest first.
    """

    section: Section
    build: Build
    large: float
    small: float
    conversation: float
    drop: int

    def budget(self, tokens: int, coding: float) -> int:
        """Its tokens out of this many, by size and by how much of the conversation is about files (0 to 1)."""
        size = min(1.0, max(0.0, (tokens - SMALL_TOKENS) / (LARGE_TOKENS - SMALL_TOKENS)))
        small = self.small * coding + self.conversation * (1.0 - coding)
        large = self.large * coding + self.conversation * (1.0 - coding)
        return int(tokens * (large * size + small * (1.0 - size)))


def names_ratio(coding: float) -> float:
    """The share of the index of names, by how much of the conversation is about files (0 to 1)."""
    return _NAMES_RATIO * coding + _NAMES_RATIO_OF_CHAT * (1.0 - coding)


def build_sections(analysis: Analysis, tokens: int, token_cache: TokenCache) -> dict[Section, tuple[Item, ...]]:
    """The items of every section of known cost, for a summary of this many tokens without its frame."""
    found: dict[Section, tuple[Item, ...]] = {}
    lent = _lent(tokens, analysis, token_cache)
    for row in SECTIONS:
        room = row.budget(tokens, analysis.scores.coding) - HEADING_TOKENS
        if row.section is Section.FILES:
            changed = sum(state.is_changed for state in analysis.files)
            room = max(room, min(changed * _PATH_TOKENS, int(_MAX_FILES_RATIO * tokens)))
        if row.section is Section.TASK:
            room += lent
        if row.section is Section.USER:
            room += max(0, _unused(found, tokens, analysis, token_cache)) // 3 - lent
        build = partial(_wants, shown=texts_of(found)) if row.section is Section.USER else row.build
        found[row.section] = build(analysis, room, token_cache) if room > _MIN_TOKENS else ()
    found[Section.PLAN] += attached_items(analysis.attached, int(tokens * _ATTACHED_RATIO), token_cache, analysis.words)
    if analysis.restore_files:
        found[Section.FILES] += content_items(analysis, int(tokens * _CONTENTS_RATIO), token_cache)
    found[Section.PREVIOUS] = whole_summaries(
        analysis.events, analysis.own_summaries, int(tokens * _PREVIOUS_RATIO), token_cache
    )
    return found


def _lent(tokens: int, analysis: Analysis, token_cache: TokenCache) -> int:
    """What the user's words give to the newest request, which is quoted in Now and nowhere else.

    All where there is no other message, else half at most, and no more than a long request needs.
    """
    newest = now.newest_request(analysis)
    share = _share(Section.USER, tokens, analysis)
    if newest is None or len(analysis.messages) == 1:
        return share
    spare = now.request_tokens(_share(Section.TASK, tokens, analysis))
    return max(0, min(share // 2, token_cache.text(newest.text) - spare))


def _share(section: Section, tokens: int, analysis: Analysis) -> int:
    return sum(row.budget(tokens, analysis.scores.coding) for row in SECTIONS if row.section is section)


def _unused(found: Mapping[Section, tuple[Item, ...]], tokens: int, analysis: Analysis, token_cache: TokenCache) -> int:
    given = sum(row.budget(tokens, analysis.scores.coding) for row in SECTIONS if row.section in found)
    return given - sum(token_cache.item(item) for items in found.values() for item in items)


def _open(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """What is not finished: to-dos, errors, edits not committed or not tested; then the steps that are done."""
    words = analysis.words
    todos = plan_items(analysis.plan, budget_tokens, token_cache, words)
    done = tuple(
        item for item in todos if item.text.startswith((f"{words.done}{words.colon}", f"{words.plan}{words.colon}"))
    )
    undone = tuple(item for item in todos if item not in done)
    unfixed = (_error_item(error, analysis) for error in reversed(analysis.errors) if _is_open(error, analysis))
    return chosen(
        (*undone, *unfixed, *_unfinished(analysis), *_carried_errors(analysis), *done), budget_tokens, token_cache
    )


def _is_open(error: ErrorRecord, analysis: Analysis) -> bool:
    """Whether an error is still to be dealt with: of a check of the work, or of what was done last.

    A command that failed on the way to something else, and was let go, is none.
    """
    if error.status is Status.FIXED:
        return False
    return is_test(error.command) or error.event >= len(analysis.events) - _RECENT_EVENTS


def _unfinished(analysis: Analysis) -> Iterator[Item]:
    words, work = analysis.words, analysis.work
    if work.uncommitted:
        states = {state.path: state for state in analysis.files}
        text = f"{words.uncommitted}{words.colon}{_listed(work.uncommitted, 2 * _MAX_PATHS)}"
        yield Item(
            text=text, records=records_of(states[path].records[-1] for path in work.uncommitted if states[path].records)
        )
    if work.stashed:
        text = f"{words.stashed}{words.colon}{_listed(work.stashed, 2 * _MAX_PATHS)}"
        yield Item(text=text, records=records_of((work.stash_record,)))
    for run, since in work.stale:
        paths = _listed(tuple(dict.fromkeys(operation.path for operation in since)), _MAX_PATHS)
        text = f"{words.stale} {paths}{words.colon}`{opening(shown(run.command), _MAX_COMMAND_CHARS)}`"
        yield Item(text=text, records=records_of((run.result_record, since[-1].record)))


def _carried_errors(analysis: Analysis) -> Iterator[Item]:
    words = analysis.words
    known = [f"`{run.key}`" for run in analysis.runs]
    for text in reversed(analysis.memory.errors):
        if (words.failing in text or words.changed in text) and not any(key in text for key in known):
            yield Item(text=text)


def _listed(names: Sequence[str], number: int) -> str:
    return ", ".join(names[:number]) + (f" {ELLIPSIS}" if len(names) > number else "")


def _error_item(error: ErrorRecord, analysis: Analysis) -> Item:
    words = analysis.words
    command = opening(shown(error.command), _MAX_COMMAND_CHARS)
    where = f"`{command}`{words.colon}" if command and command not in error.line else ""
    if (conflicts := conflicting_files(error.line)) and error.status is not Status.FIXED:
        left = ", ".join(path for path in conflicts if path not in error.fixes)
        edited = [path for path in conflicts if path in error.fixes]
        text = f"{where}{MERGE_CONFLICT}{left} — {words.unresolved}" if left else f"{where}{MERGE_CONFLICT}"
        done = f"{words.stop}{words.edited}{words.colon}{', '.join(edited)}" if edited else ""
        return Item(text=f"{text}{done}", records=records_of(error.records))
    if error.status is Status.FAILING:
        ending = f"— {words.failing if is_test(error.command) else words.failed}"
    elif error.status is Status.CHANGED_SINCE:
        changed = f"{words.changed} {_listed(error.fixes[::-1], _MAX_PATHS)}"
        ending = f"— {changed if is_test(error.command) else words.failed}"
    elif error.other_way:
        how = f"{words.passed}{words.colon}" if is_test(error.command) else f"{words.instead} "
        ending = f"→ {how}`{opening(shown(error.other_way), _MAX_COMMAND_CHARS)}`"
    elif error.fixes:
        ending = f"→ {words.fixed} {_listed(error.fixes[::-1], _MAX_PATHS)}"
    else:
        ending = f"→ {words.passed}"
    return Item(text=f"{where}{error.line} {ending}", records=records_of(error.records))


def _fixed(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """Errors that were fixed, with what fixed them: those with an edit first, newest first."""
    words = analysis.words
    fixed = [error for error in analysis.errors if error.status is Status.FIXED]
    newest = {error.line: error for error in fixed}
    ranked = sorted(newest.values(), key=lambda error: (not error.fixes, not error.other_way, -error.event))
    known = {error.line for error in analysis.errors}
    carried = (
        Item(text=text)
        for text in reversed(analysis.memory.errors)
        if not (words.failing in text or words.changed in text) and not any(line in text for line in known)
    )
    return chosen((*(_error_item(error, analysis) for error in ranked), *carried), budget_tokens, token_cache)


def _wants(
    analysis: Analysis, budget_tokens: int, token_cache: TokenCache, *, shown: Iterable[str] = ()
) -> tuple[Item, ...]:
    """The user's messages in order and verbatim; newest and first ones preferred, the longest cut to the same size.

    Left out are those that one of the texts ``shown`` quotes whole, and the newest, which Now quotes.

    Replies of a few words come where the others leave room: they are read with what they reply to elsewhere.
    """
    quoted = tuple(shown)
    newest = now.newest_request(analysis) if quoted else None
    shown_messages = [
        m for m in analysis.messages if m.stopped or not (m is newest or any(m.text in text for text in quoted))
    ]
    places = {id(message): place for place, message in enumerate(shown_messages)}
    kept = _affordable([m for m in shown_messages if not m.is_short], budget_tokens)
    costs = [
        token_cache.item(_user_item(message, message.text[: budget_tokens * 12 + 200], analysis)) for message in kept
    ]
    level = water_level(costs, budget_tokens)
    items = {
        places[id(message)]: _user_item(
            message, message.text if cost <= level else clipped(message.text, level - 8, token_cache), analysis
        )
        for message, cost in zip(kept, costs, strict=True)
    }
    left = budget_tokens - sum(map(token_cache.item, items.values()))
    for message in reversed([m for m in shown_messages if m.is_short and len(m.text) >= _MIN_SHORT_CHARS]):
        item = _user_item(message, message.text, analysis)
        if places[id(message)] not in items and (cost := token_cache.item(item)) <= left:
            items[places[id(message)]] = item
            left -= cost
    return tuple(items[place] for place in sorted(items) if items[place].text)


def _user_item(message: UserMessage, text: str, analysis: Analysis) -> Item:
    words = analysis.words
    if message.stopped:
        quoted = f" → {words.quoted(text)}" if text else ""
        text = f"{words.stopped}{words.colon}`{message.stopped}`{quoted}"
    return Item(text=text, records=records_of((message.record,)))


def _affordable(messages: Sequence[UserMessage], budget_tokens: int) -> list[UserMessage]:
    """As many messages as can have a useful size: the newest, the first, then newest to oldest."""
    most = budget_tokens // _MIN_QUOTE_TOKENS
    if len(messages) <= most:
        return list(messages)
    if most < 1:
        return []
    first, rest = list(messages[: most > 1]), messages[1:]
    return first + list(rest[len(rest) - (most - len(first)) :])


def _settled(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """The strongest and newest decisions that fit, in the order they were made."""
    found = [one for one in analysis.decisions if one.weight >= 2.0]
    ranked = sorted(range(len(found)), key=lambda at: (-(found[at].weight + _RECENCY * at / len(found)), -at))
    items = [_decision_item(one, analysis) for one in found]
    taken = {item.text for item in chosen((items[at] for at in ranked), budget_tokens, token_cache)}
    return tuple(item for item in items if item.text in taken)


def _decision_item(decision: Decision, analysis: Analysis) -> Item:
    words = analysis.words
    rest = f" ({words.given_up}{words.colon}{' · '.join(decision.given_up)})" if decision.given_up else ""
    return Item(text=f"{decision.text}{rest}", records=decision.records)


def _facts(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    return fact_items(analysis, budget_tokens, token_cache)


def _files(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    return file_items(analysis.files, frozenset(analysis.work.uncommitted), budget_tokens, token_cache, analysis.words)


SECTIONS: tuple[SectionPlan, ...] = (
    SectionPlan(section=Section.TASK, build=now.now_items, large=0.14, small=0.40, conversation=0.34, drop=10),
    SectionPlan(section=Section.PLAN, build=_open, large=0.10, small=0.12, conversation=0.06, drop=9),
    SectionPlan(section=Section.QUESTIONS, build=now.question_items, large=0.03, small=0.04, conversation=0.02, drop=6),
    SectionPlan(section=Section.FILES, build=_files, large=0.09, small=0.10, conversation=0.02, drop=5),
    SectionPlan(section=Section.ERRORS, build=_fixed, large=0.06, small=0.03, conversation=0.02, drop=3),
    SectionPlan(section=Section.DECISIONS, build=_settled, large=0.05, small=0.0, conversation=0.02, drop=2),
    SectionPlan(section=Section.COMMANDS, build=_facts, large=0.08, small=0.05, conversation=0.34, drop=1),
    SectionPlan(section=Section.USER, build=_wants, large=0.17, small=0.10, conversation=0.15, drop=8),
)
# What is dropped first where the whole is over its budget; the sections without a row of their own among them.
DROP_ORDER: tuple[Section, ...] = (
    Section.NAMES,
    Section.PREVIOUS,
    *(row.section for row in sorted(SECTIONS, key=lambda row: row.drop) if row.drop <= 3),
    Section.HISTORY,
    *(row.section for row in sorted(SECTIONS, key=lambda row: row.drop) if row.drop > 3),
)


def remembered_errors(analysis: Analysis) -> tuple[str, ...]:
    """Every error with its status as a line, for the next digest."""
    new = [_error_item(error, analysis).text for error in analysis.errors]
    return tuple(dict.fromkeys((*analysis.memory.errors, *new)))


def texts_of(sections: Mapping[Section, Iterable[Item]]) -> list[str]:
    """All texts of some sections."""
    return [item.text for items in sections.values() for item in items]
