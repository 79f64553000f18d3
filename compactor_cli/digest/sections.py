"""Sections: one table of what the digest states, the share of tokens of each section, and what is dropped first.

A builder takes the analysis and a number of tokens. It ranks its items itself and gives them in the order of reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from compactor_cli.digest import now
from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.background import running_items, skill_items
from compactor_cli.digest.facts import fact_items
from compactor_cli.digest.file_lines import content_items, file_items
from compactor_cli.digest.history import whole_summaries
from compactor_cli.digest.messages import without_data
from compactor_cli.digest.open import fixed_items, open_items
from compactor_cli.digest.settled import answered_tokens, settled_items
from compactor_cli.digest.statements import TokenCache
from compactor_cli.digest.wants import newest_request, wants_items
from compactor_cli.model.summary import Item, Section
from compactor_cli.model.value import dataclass

# Takes the analysis, the tokens and the token cache; some also the items ``shown`` in earlier sections, to leave out.
Build = Callable[..., tuple[Item, ...]]

HEADING_TOKENS = 6
_MIN_TOKENS = 8
# Between these sizes of a summary, shares change evenly from the small column to the large one. In few tokens the
# user's words and what was explained answer more than paths and names do.
SMALL_TOKENS, LARGE_TOKENS = 300, 600
# Where very many files were changed, their paths may take more than the share of their section: this many tokens for
# each, up to this share of the summary.
_PATH_TOKENS = 12
_MAX_FILES_RATIO = 0.16
# Another client's summary that takes no more than this share is carried whole: its author knew what mattered.
_PREVIOUS_RATIO = 0.3
# More shares of the summary: of the contents of files, where they are asked for; of skills and of background work each.
_CONTENTS_RATIO = 0.25
_ATTACHED_RATIO = 0.06
_OPEN_RATIO = 0.2  # the most that the first open thing may take
# Share of the index of names in work on files; elsewhere, names and numbers stand with what was looked up.
_NAMES_RATIO = 0.08


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPlan:
    """One row of the table."""

    section: Section
    build: Build
    large: float  # share of the tokens of a large summary
    small: float  # share of the tokens of a small summary
    conversation: float  # share of the tokens where the conversation is not about files
    drop: int  # rank by which it is dropped where the whole is over its budget, the lowest first

    def budget(self, tokens: int, coding: float) -> int:
        """The section's tokens of all ``tokens``; ``coding``: how much of the conversation is about files (0 to 1)."""
        size = _size(tokens)
        work = self.large * size + self.small * (1.0 - size)
        return int(tokens * (work * coding + self.conversation * (1.0 - coding)))


def _size(tokens: int) -> float:
    """How large a summary is, from 0 (`SMALL_TOKENS`) to 1 (`LARGE_TOKENS`)."""
    return min(1.0, max(0.0, (tokens - SMALL_TOKENS) / (LARGE_TOKENS - SMALL_TOKENS)))


def names_tokens(tokens: int, coding: float) -> int:
    """The tokens of the index of names of all ``tokens``; ``coding`` as in `SectionPlan.budget`."""
    return int(tokens * _NAMES_RATIO * _size(tokens) * coding)


def build_sections(analysis: Analysis, tokens: int, token_cache: TokenCache) -> dict[Section, tuple[Item, ...]]:
    """The items of every section but history and names, for a summary of this many tokens without its frame."""
    found: dict[Section, tuple[Item, ...]] = {}
    given = 0
    lent = _lent(tokens, analysis, token_cache)
    share = _share(Section.USER, tokens, analysis)
    # The user's answer to a question of a tool stands with the question, among the decisions.
    answered = max(0, min(share // 2 - lent, answered_tokens(analysis, token_cache)))
    moved = {Section.TASK: lent, Section.DECISIONS: answered, Section.USER: -lent - answered}
    for row in SECTIONS:
        share = row.budget(tokens, analysis.scores.coding)
        shown = tuple(chain.from_iterable(found.values()))
        room = share - HEADING_TOKENS + moved.get(row.section, 0)
        if row.section is Section.FILES:
            changed = sum(state.is_changed for state in analysis.files)
            room = max(room, min(changed * _PATH_TOKENS, int(_MAX_FILES_RATIO * _size(tokens) * tokens)))
            if changed and not analysis.messages:  # a task done alone: its edits are what there is to tell
                room += _share(Section.USER, tokens, analysis)
        if row.section in _TAKES_WHAT_IS_UNUSED:
            room += max(0, given - sum(map(token_cache.item, shown))) // 3
        options = {"shown": shown} if row.section in _LEAVES_OUT_WHAT_IS_SHOWN else {}
        found[row.section] = row.build(analysis, room, token_cache, **options) if room > _MIN_TOKENS else ()
        if row.section is Section.PLAN and not (found[row.section] or analysis.is_dialogue):
            # In a small summary, the first thing that is open is stated even if it takes more than the share.
            found[row.section] = row.build(analysis, min(3 * room, int(_OPEN_RATIO * tokens)), token_cache)[:1]
        given += share
    attached, room = analysis.attached, int(tokens * _ATTACHED_RATIO)
    found[Section.PLAN] += running_items(attached, room, token_cache, analysis.words)
    found[Section.COMMANDS] += skill_items(attached, room, token_cache, analysis.words)
    if analysis.restore_files:
        found[Section.FILES] += content_items(analysis, int(tokens * _CONTENTS_RATIO), token_cache)
    quoted = "\n".join(item.text for item in (*found[Section.TASK], *found[Section.USER]))
    found[Section.PREVIOUS] = whole_summaries(analysis, quoted, int(tokens * _PREVIOUS_RATIO), token_cache)
    return found


def _lent(tokens: int, analysis: Analysis, token_cache: TokenCache) -> int:
    """The tokens that the user's section lends to the newest request, which is quoted in Now and nowhere else.

    All where there is no other message; else at most half, and no more than the request and those it goes back to lack.
    None where there is no request.
    """
    newest = newest_request(analysis)
    share = _share(Section.USER, tokens, analysis)
    if newest is None or len(analysis.messages) == 1:
        return share if newest else 0
    spare = now.request_tokens(_share(Section.TASK, tokens, analysis), analysis)
    asked = (newest, *now.standing_requests(newest, analysis))
    return max(0, min(share // 2, sum(token_cache.text(without_data(one.text)) for one in asked) - spare))


def _share(section: Section, tokens: int, analysis: Analysis) -> int:
    return sum(row.budget(tokens, analysis.scores.coding) for row in SECTIONS if row.section is section)


def _files(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    return file_items(analysis.files, budget_tokens, token_cache, analysis.words)


SECTIONS: tuple[SectionPlan, ...] = (
    SectionPlan(section=Section.TASK, build=now.now_items, large=0.16, small=0.30, conversation=0.34, drop=10),
    SectionPlan(section=Section.PLAN, build=open_items, large=0.10, small=0.12, conversation=0.06, drop=9),
    SectionPlan(section=Section.QUESTIONS, build=now.question_items, large=0.03, small=0.04, conversation=0.02, drop=6),
    SectionPlan(section=Section.FILES, build=_files, large=0.09, small=0.05, conversation=0.02, drop=5),
    SectionPlan(section=Section.DECISIONS, build=settled_items, large=0.05, small=0.0, conversation=0.02, drop=2),
    SectionPlan(section=Section.COMMANDS, build=fact_items, large=0.08, small=0.05, conversation=0.34, drop=1),
    SectionPlan(section=Section.USER, build=wants_items, large=0.25, small=0.30, conversation=0.15, drop=8),
    SectionPlan(section=Section.ERRORS, build=fixed_items, large=0.06, small=0.03, conversation=0.02, drop=3),
)
_LEAVES_OUT_WHAT_IS_SHOWN = (Section.QUESTIONS, Section.USER)
# They also take a third of the tokens that the sections before them were given and did not need.
_TAKES_WHAT_IS_UNUSED = (Section.USER, Section.ERRORS, Section.DECISIONS, Section.COMMANDS)
# The order in which sections are dropped where the whole is over its budget, those without a row among them.
DROP_ORDER: tuple[Section, ...] = (
    Section.NAMES,
    Section.PREVIOUS,
    *(row.section for row in sorted(SECTIONS, key=lambda row: row.drop) if row.drop <= 3),
    Section.HISTORY,
    *(row.section for row in sorted(SECTIONS, key=lambda row: row.drop) if row.drop > 3),
)


def texts_of(sections: Mapping[Section, Iterable[Item]]) -> list[str]:
    """All texts of some sections."""
    return [item.text for items in sections.values() for item in items]
