"""Sections: the shares of the budget, and the items that each reserved section gets for its share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from compactor_cli.digest.actions import action_items
from compactor_cli.digest.attached import attached_items
from compactor_cli.digest.commands import command_items
from compactor_cli.digest.contents import content_items, contents
from compactor_cli.digest.decisions import decision_items, last_decision
from compactor_cli.digest.errors import error_items
from compactor_cli.digest.events import EventKind
from compactor_cli.digest.files import file_items
from compactor_cli.digest.labels import short_names
from compactor_cli.digest.language import Words
from compactor_cli.digest.material import Material
from compactor_cli.digest.plan_state import plan_items
from compactor_cli.digest.previous import whole_summaries
from compactor_cli.digest.questions import question_items
from compactor_cli.digest.quote import ELLIPSIS, Meter, chosen, clipped, opening, records_of
from compactor_cli.digest.tool_use import tool_items
from compactor_cli.digest.turn_lines import MILESTONE_TOKENS, turn_items
from compactor_cli.digest.turns import Turn, renamed
from compactor_cli.digest.user_words import Said, user_items
from compactor_cli.model.settings import HIERARCHICAL, NEWEST
from compactor_cli.model.summary import Item, Section

# Shares of the whole budget (docs, "Reserved sections", and for the other sections what reads well at 2,000
# tokens); key lines get what is left. Below `SMALL_TOKENS` the task and the user's words come first.
SHARES: Mapping[Section, float] = {
    Section.TASK: 0.08,
    Section.PLAN: 0.05,
    Section.QUESTIONS: 0.02,
    Section.FILES: 0.09,
    Section.ERRORS: 0.03,
    Section.DECISIONS: 0.03,
    Section.COMMANDS: 0.03,
    Section.USER: 0.18,
    Section.HISTORY: 0.10,
}
SMALL_SHARES: Mapping[Section, float] = {
    Section.TASK: 0.44,
    Section.PLAN: 0.14,
    Section.QUESTIONS: 0.02,
    Section.FILES: 0.12,
    Section.ERRORS: 0.04,
    Section.DECISIONS: 0.0,
    Section.COMMANDS: 0.0,
    Section.USER: 0.15,
    Section.HISTORY: 0.09,
}
# The same where nothing is about files: what was done and looked up stands beside these (`_ACTIONS_RATIO`).
TALK_SHARES: Mapping[Section, float] = {
    Section.TASK: 0.24,
    Section.PLAN: 0.08,
    Section.QUESTIONS: 0.02,
    Section.FILES: 0.04,
    Section.ERRORS: 0.02,
    Section.DECISIONS: 0.0,
    Section.COMMANDS: 0.0,
    Section.USER: 0.22,
    Section.HISTORY: 0.05,
}
SMALL_TOKENS, LARGE_TOKENS = 300, 1_500
HEADING_TOKENS = 6
# Where very many files were changed, their paths may take more than the ledger's share.
_PATH_TOKENS = 12
_MOST_FILES_RATIO = 0.16
_MOST_TASK_TOKENS = 600
# Where the user said but one thing, it is the task, and may take the room of the user's words beside.
_MOST_WHOLE_TASK_TOKENS = 1_500
# Another client's summary that takes no more than this is carried whole: its author knew what mattered.
_PREVIOUS_RATIO = 0.35
# What the contents of files may take where they are asked for.
_CONTENTS_RATIO = 0.25
_TOOLS_RATIO = 0.04
# What skills and background work may take, where there are any.
_ATTACHED_RATIO = 0.06
# A turn that is told with what came of it takes about so many tokens; with very many turns, the history may
# take up to 1 + `_MANY_TURNS` times its share, and more where not even a few words would be left for each turn.
_TURN_TOKENS = 40
_MANY_TURNS = 0.7
_MOST_HISTORY_RATIO = 0.25
# By hierarchy, a turn's line may take so many tokens, and all of them such a share.
_LINE_TOKENS = 60
_HIERARCHY_RATIO = 0.5
# In a conversation without files, what is done through tools may take so much, and what they were asked about,
# beside their names; its turns say little that the user's words do not.
_ACTIONS_RATIO = 0.2
_VALUES_RATIO = 0.15
_MOST_TALK_HISTORY_RATIO = 0.1
_STOOD_CHARS = 500
_MOST_ANSWERED_CHARS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """The items of the reserved sections; ``turns`` are the history's lines by turn.

    ``names``: what the history calls the files that the ledger names in full.
    """

    items: Mapping[Section, tuple[Item, ...]]
    turns: Mapping[int, Item]
    names: Mapping[str, str]


def share(section: Section, tokens: int, coding: float = 1.0) -> int:
    """The tokens of a section out of so many: between the tables by size, and by how much is about files (0 to 1)."""
    large = min(1.0, max(0.0, (tokens - SMALL_TOKENS) / (LARGE_TOKENS - SMALL_TOKENS)))
    small = SMALL_SHARES[section] * coding + TALK_SHARES[section] * (1.0 - coding)
    return int(tokens * (SHARES[section] * large + small * (1.0 - large)))


def reserved(material: Material, tokens: int, meter: Meter, restore_files: int = 0, kept_by: str = NEWEST) -> Reserved:
    """The reserved sections for a summary of so many tokens, with the contents of so many files.

    Kept by hierarchy, every turn has a line of its own where half of the summary holds them.
    A third of what is not used goes to the user's words, the rest is left to the key lines.
    """
    found: dict[Section, tuple[Item, ...]] = {}
    spare, coding = 0, material.scores.coding
    for section, build in _BUILDERS.items():
        room = share(section, tokens, coding)
        if section is Section.TASK and _is_one_task(material):
            room += share(Section.USER, tokens, coding)
        if section is Section.FILES:
            changed = sum(state.is_changed for state in material.files)
            room = max(room, min(changed * _PATH_TOKENS, int(_MOST_FILES_RATIO * tokens)))
        found[section] = build(material, room - HEADING_TOKENS, meter) if room > HEADING_TOKENS + 8 else ()
        spare += room - _cost(found[section], meter)
    talk = tokens * (1.0 - coding)
    found[Section.COMMANDS] = (
        *action_items(material.events, int(talk * _ACTIONS_RATIO), meter, material.words),
        *found[Section.COMMANDS],
        *tool_items(material.events, int(tokens * _TOOLS_RATIO + talk * _VALUES_RATIO), meter, material.words),
    )
    found[Section.FILES] += _contents(material, restore_files, int(tokens * _CONTENTS_RATIO), meter)
    found[Section.PLAN] += attached_items(material.attached, int(tokens * _ATTACHED_RATIO), meter, material.words)
    found[Section.PREVIOUS] = whole_summaries(material.events, int(tokens * _PREVIOUS_RATIO), meter)
    room = share(Section.USER, tokens, coding) + max(0, spare) // 3
    found[Section.USER] = user_items(_still_to_quote(material, found), room - HEADING_TOKENS, meter)
    many = min(1.0, len(material.turns) * _TURN_TOKENS / max(1, tokens))
    room = int(share(Section.HISTORY, tokens, coding) * (1.0 + many * _MANY_TURNS))
    room = max(room, min(len(material.turns) * MILESTONE_TOKENS, int(_MOST_HISTORY_RATIO * (tokens - talk))))
    room = max(room, min(len(material.turns) * _TURN_TOKENS, int(_MOST_TALK_HISTORY_RATIO * talk)))
    if kept_by == HIERARCHICAL:
        room = max(room, min(int(tokens * _HIERARCHY_RATIO), len(material.turns) * _LINE_TOKENS))
    names = _names(material, found[Section.FILES])
    told = _untold(renamed(material.turns, names), found[Section.TASK], material.words)
    turns = turn_items(told, room - HEADING_TOKENS, meter, material.words)
    return Reserved(items=found, turns=turns, names=names)


def _untold(found: Sequence[Turn], task: Sequence[Item], words: Words) -> list[Turn]:
    """The turns, the newest without its closing words where the task section says where it stood."""
    is_told = any(item.text.startswith(f"{words.stood}{words.colon}") for item in task)
    return [*found[:-1], *(replace(turn, closing="" if is_told else turn.closing) for turn in found[-1:])]


def _names(material: Material, ledger: Sequence[Item]) -> dict[str, str]:
    """Short names of the files that the ledger names in full."""
    told = {name for item in ledger for name in item.text.replace(", ", " ").split(" ")}
    return {path: name for path, name in short_names(state.path for state in material.files).items() if path in told}


def _cost(items: tuple[Item, ...], meter: Meter) -> int:
    return sum(meter.item(item) for item in items) + (HEADING_TOKENS if items else 0)


def _still_to_quote(material: Material, found: Mapping[Section, tuple[Item, ...]]) -> tuple[Said, ...]:
    """The user's messages but those that the task section shows."""
    words = material.words
    shown = [item.text for item in found[Section.TASK] if item.text.startswith((words.request, words.earlier))]
    return tuple(one for one in material.said if not any(_quotes(text, one.text) for text in shown))


def _quotes(item: str, text: str) -> bool:
    """Whether an item shows this text, whole or shortened."""
    quoted = item.partition(": ")[2]
    return quoted == text or (ELLIPSIS in quoted and text.startswith(quoted.partition(ELLIPSIS)[0].rstrip()))


def _is_one_task(material: Material) -> bool:
    """Whether one message of the user is all there is to quote, and the latest."""
    return len(material.said) == 1 and not material.said[0].is_short


def _task(material: Material, room: int, meter: Meter) -> tuple[Item, ...]:
    room = min(room, _MOST_WHOLE_TASK_TOKENS if _is_one_task(material) else _MOST_TASK_TOKENS)
    requests, standing = _requests(material, room * 3 // 4, meter), _standing(material, meter, room)
    replied = _replied(material, standing[0].text if standing else "")
    items: list[Item] = []
    for offer in (*requests, *standing[:1], *replied, *standing[1:]):
        if sum(map(meter.item, items)) + meter.item(offer) <= room:
            items.append(offer)
    # What a request replies to is read with it, but where it stood matters more where there is no room for both.
    read = (*requests[:1], *replied, *requests[1:], *standing)
    return tuple(item for item in read if item in items)


def _requests(material: Material, room: int, meter: Meter) -> list[Item]:
    """The newest message of the user, with the one before it that says more where it is a few words only."""
    words = material.words
    newest = material.said[-1:]
    longer = [message for message in material.said if not message.is_short]
    before = longer[-1:] if newest and newest[0].is_short else ()
    items = []
    for label, messages in ((words.request, newest), (words.earlier, before)):
        for message in messages:
            text = clipped(message.text, max(12, room - 10), meter)
            items.append(Item(text=f"{label}{words.colon}{text}", records=records_of((message.record,))))
    return items


def _replied(material: Material, stood: str) -> list[Item]:
    """What the newest message of the user replies to, where it is a few words only; not what ``stood`` says."""
    words = material.words
    replies = [one for one in material.said[-1:] if one.answers and one.answers not in stood]
    return [
        Item(
            text=f"{words.replying}{words.colon}{opening(one.answers, _MOST_ANSWERED_CHARS)}",
            records=records_of((one.asked,)),
        )
        for one in replies
    ]


def _standing(material: Material, meter: Meter, room: int) -> list[Item]:
    """The next open step, the last decision, and what the assistant said last."""
    words = material.words
    items = []
    if step := material.plan.next_step:
        items.append(Item(text=f"{words.step}{words.colon}{step.text}", records=records_of((step.record,))))
    answered = "".join(one.answers for one in material.said[-1:]) or "\n"
    last = next((event for event in reversed(material.events) if event.kind is EventKind.ASSISTANT), None)
    stood = opening(last.text, min(_STOOD_CHARS, room)) if last else ""
    if last:
        items.insert(0, Item(text=f"{words.stood}{words.colon}{stood}", records=(last.record,)))
    decision = last_decision([one for one in material.decisions if not one.text.startswith(answered)])
    if decision and decision.text not in stood:
        text = f"{words.decision}{words.colon}{decision.text}"
        items.append(Item(text=text, records=decision.records))
    return [item for item in items if not item.text.endswith(words.colon)]


def _plan(material: Material, room: int, meter: Meter) -> tuple[Item, ...]:
    return plan_items(material.plan, room, meter, material.words)


def _questions(material: Material, room: int, meter: Meter) -> tuple[Item, ...]:
    return question_items(material.events, material.kept, room, meter)


def _files(material: Material, room: int, meter: Meter) -> tuple[Item, ...]:
    return file_items(material.files, room, meter, material.words)


def _contents(material: Material, number: int, room: int, meter: Meter) -> tuple[Item, ...]:
    """The last known contents of the files worked on last."""
    there = [state for state in material.files if state.is_changed and not (state.is_deleted or state.moved_to)]
    states = there[:number]
    if not states:
        return ()
    found = contents(material.events, material.touches, [state.path for state in states])
    return content_items(states, found, room, meter, material.words)


def _errors(material: Material, room: int, meter: Meter) -> tuple[Item, ...]:
    new = error_items(material.troubles, room, meter, material.words)
    known = [f"`{run.key}`" for run in material.runs]
    carried = (Item(text=text) for text in reversed(material.memory.errors) if not any(key in text for key in known))
    return (*new, *chosen(carried, room - sum(map(meter.item, new)), meter))


def _decisions(material: Material, room: int, meter: Meter) -> tuple[Item, ...]:
    shown = last_decision(material.decisions)
    others = [one for one in material.decisions if shown is None or one.text != shown.text]
    return decision_items(others, room, meter)


def _commands(material: Material, room: int, meter: Meter) -> tuple[Item, ...]:
    new = command_items(material.runs, room, meter, material.words)
    names = {item.text.partition("` ")[0] for item in new}
    carried = (Item(text=text) for text in reversed(material.memory.commands) if text.partition("` ")[0] not in names)
    return (*new, *chosen(carried, room - sum(map(meter.item, new)), meter))


_BUILDERS: Mapping[Section, Callable[[Material, int, Meter], tuple[Item, ...]]] = {
    Section.TASK: _task,
    Section.PLAN: _plan,
    Section.QUESTIONS: _questions,
    Section.FILES: _files,
    Section.ERRORS: _errors,
    Section.DECISIONS: _decisions,
    Section.COMMANDS: _commands,
}
