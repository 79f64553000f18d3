"""Checklists: to-do lists and plans as the last call left them, and which of their steps later records deal with."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from compactor_cli.digest.atoms import AtomKind, find_atoms
from compactor_cli.digest.commits import Commit
from compactor_cli.digest.edits import PROSE, changes_of
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.files import FileOperation
from compactor_cli.digest.language import FixedWords, terms
from compactor_cli.digest.messages import UserMessage
from compactor_cli.digest.noise import is_signature
from compactor_cli.digest.statements import TokenCache, clipped, records_of
from compactor_cli.digest.texts import ELLIPSIS, head, listed, one_line
from compactor_cli.digest.tools import FileAction, ToolKind
from compactor_cli.group.todos import State as State
from compactor_cli.group.todos import Todo as Todo
from compactor_cli.group.todos import TodoReplay
from compactor_cli.model.summary import Item
from compactor_cli.model.value import dataclass

# Steps, and the newest edits and commands, that are looked at: time stays linear in very long sessions.
_MAX_STEPS, _MAX_LATER = 40, 200
_MAX_EDIT_CHARS = 20_000
_BEGINNING = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """The last known to-do list, and the last plan written as text (``ExitPlanMode``)."""

    todos: tuple[Todo, ...] = ()
    text: str = ""
    record: int = -1  # the record that shows `text`; -1: none does
    # Whether the user asked for other things since the list's last change, for which files were edited: no record shows
    # which of its steps are still open.
    is_past: bool = False
    # By the text of a step that the list does not call done, what became of it (see `done_since`).
    dealt_with: Mapping[str, str] = field(default_factory=dict)

    def of(self, state: State) -> tuple[Todo, ...]:
        """The steps in this state, in order."""
        return tuple(todo for todo in self.todos if todo.state is state)


_MOST_STEP_CHARS = 240


def plan_state(events: Sequence[Event], before: PlanState | None = None) -> PlanState:
    """The state after all plan calls, going on from the one ``before``; calls that failed change nothing."""
    before = before or PlanState()
    failed = {event.call for event in events if event.kind is EventKind.RESULT and event.is_error}
    answers = {event.call: event.text for event in events if event.tool is ToolKind.PLAN and event.call >= 0}
    replay = TodoReplay.going_on(before.todos)
    for number, event in enumerate(events):
        if event.kind is EventKind.CALL and event.tool is ToolKind.PLAN and number not in failed:
            replay.call(event.name, event.arguments, answers.get(number, ""), event.record)
        for key in _REPORTED_DONE.findall(event.text) if event.is_report else ():
            replay.close(key, event.record)
    todos = tuple(replace(todo, text=head(one_line(todo.text), _MOST_STEP_CHARS)) for todo in replay.todos.values())
    return PlanState(
        todos=todos,
        text="\n".join(listed(line.rstrip()) for line in replay.text.split("\n") if line.strip()) or before.text,
        record=replay.record,
    )


# How another agent of the team reports that a task of the shared list is done: `Task #3 (set the clocks) is completed`.
_REPORTED_DONE = re.compile(r"\btask #(\d+)\b(?![^.\n]*\bnot\b)[^.\n]{0,90}\b(?:completed?|done)\b", re.IGNORECASE)


def checked(
    state: PlanState,
    messages: Iterable[UserMessage],
    events: Sequence[Event],
    operations: Sequence[FileOperation],
    commits: Sequence[Commit],
    words: FixedWords,
) -> PlanState:
    """The state with ``is_past`` and ``dealt_with`` by what the records after the list's last change show.

    A plan's text is left out if the user asked for something else once files were edited for it.
    """
    messages = tuple(messages)
    worked = (one.record for one in operations if one.record > state.record and one.action is not FileAction.READ)
    begun = next(worked, None) if state.record >= 0 else None
    is_text_past = begun is not None and any(one.stands_alone and one.record > begun for one in messages)
    newest = max((todo.record for todo in state.todos), default=-1)
    since = [message for message in messages if message.record > newest]
    edits = [one.record for one in operations if one.record > newest and one.action is not FileAction.READ]
    asked = [message.record for message in since if message.stands_alone]
    unfinished = [todo for todo in state.todos if todo.state is not State.DONE]
    ran = [event.record for event in events if event.kind is EventKind.CALL and event.tool is ToolKind.COMMAND]
    is_left = len(asked) >= _MIN_ASKED_SINCE and max((*edits, *ran), default=-1) > asked[0]
    return replace(
        state,
        text="" if is_text_past else state.text,
        is_past=is_left or (bool(since) and len(edits) >= _MIN_EDITS_SINCE),
        dealt_with=done_since(
            [(todo.text, todo.record) for todo in unfinished],
            events,
            operations,
            commits,
            words,
            {todo.text for todo in state.of(State.DOING)},
        ),
    )


_MIN_ASKED_SINCE, _MIN_EDITS_SINCE = 2, 6


def plan_items(
    state: PlanState, budget_tokens: int, token_cache: TokenCache, words: FixedWords
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Two groups of items: the steps in progress and open; the steps done, on one line, and a plan's text as it fits.

    Where no step is left to do, those done are left out: a list of finished steps alone reads as one of work to do. Of
    a list that is past, the steps that nothing dealt with are one item, and there is no second group.
    """
    # Where other steps were begun or done since, no record shows that one is still in progress.
    newest = max((todo.record for todo in state.todos if todo.state is not State.OPEN), default=-1)
    doing = [
        (words.doing if todo.record == newest or todo.owner else words.begun, todo) for todo in state.of(State.DOING)
    ]
    doing.sort(key=lambda one: -one[1].record)
    # What can be begun stands before what waits for others.
    waiting = sorted(state.of(State.OPEN), key=lambda todo: todo.is_blocked)
    unfinished = [*doing, *((words.open, todo) for todo in waiting)]
    if state.is_past and unfinished:
        unfinished = [one for one in unfinished if one[1].text not in state.dealt_with]
        if not unfinished:
            return (), ()
        listed_steps = words.stop.join(todo.text for _, todo in unfinished)
        text = clipped(f"{words.old_plan}{words.colon}{listed_steps}", budget_tokens // 2, token_cache)
        return (Item(text=text, records=records_of(todo.record for _, todo in unfinished)),) if text else (), ()

    signs = {text: f" ({what})" for text, what in state.dealt_with.items()}
    offers = [
        Item(
            text=f"{label}{words.colon}{todo.text}{_owner(todo) or signs.get(todo.text, '')}",
            records=records_of((todo.record,)),
        )
        for label, todo in unfinished
    ]
    items: list[Item] = []
    left = budget_tokens
    for item in offers:
        if (cost := token_cache.item(item)) > left:
            break
        items.append(item)
        left -= cost
    done = _done_item(state.of(State.DONE), left, token_cache, words) if offers else ()
    left -= sum(token_cache.item(item) for item in done)
    return tuple(items), (*done, *_text_item(state, left, token_cache, words))


def _owner(todo: Todo) -> str:
    return f" ({todo.owner})" if todo.owner else ""


def _done_item(
    todos: Sequence[Todo], budget_tokens: int, token_cache: TokenCache, words: FixedWords
) -> tuple[Item, ...]:
    """One item with the newest steps that are done, as many as fit, in order; none where not even one fits."""

    def item(number: int) -> Item:
        shown = todos[len(todos) - number :]
        text = f"{words.done}{words.colon}{words.stop.join(todo.text for todo in shown)}"
        return Item(text=text, records=records_of(todo.record for todo in shown))

    numbers = range(1, len(todos) + 1)
    most = bisect_left(numbers, True, key=lambda number: token_cache.item(item(number)) > budget_tokens)
    return (item(most),) if most else ()


def _text_item(state: PlanState, budget_tokens: int, token_cache: TokenCache, words: FixedWords) -> tuple[Item, ...]:
    is_old = any(todo.record > state.record for todo in state.todos)
    if not state.text or is_old or budget_tokens < 40:
        return ()
    is_whole = token_cache.text(state.text) <= budget_tokens - 16
    steps = [] if is_whole else _NUMBERED_HEADING.findall(state.text)
    outline = "\n".join((state.text.partition("\n")[0], *steps)) if len(steps) >= _MIN_STEPS else state.text
    text = clipped(outline, budget_tokens - 16, token_cache)
    return (Item(text=f"{words.plan}{words.colon}{text}", records=records_of((state.record,))),) if text else ()


# A heading with a number, as which a plan that is too long names a step: `### Step 2: set the clocks`.
_NUMBERED_HEADING = re.compile(r"^#{2,4} (.*\d.*)$", re.MULTILINE)
_MIN_STEPS = 3


def with_details(
    items: Iterable[Item], state: PlanState, left: int, token_cache: TokenCache, words: FixedWords
) -> Iterator[Item]:
    """The items, each step with its description where that fits into what the others leave of ``left`` tokens."""
    colon = words.colon
    details = {f"{colon}{one.text}": one_line(one.detail) for one in state.todos if one.detail}
    for item in items:
        detail = next((detail for text, detail in details.items() if item.text.endswith(text)), "")
        if detail:
            shown = head(detail, _MOST_STEP_CHARS)
            cut = f" {ELLIPSIS}" if len(shown) < len(detail) else ""
            longer = replace(item, text=f"{item.text}{colon}{shown}{cut}")
            more = token_cache.item(longer) - token_cache.item(item)
            if 0 < more <= left:
                item, left = longer, left - more
        yield item


def done_since(
    steps: Sequence[tuple[str, int]],
    events: Sequence[Event],
    operations: Sequence[FileOperation],
    commits: Sequence[Commit],
    words: FixedWords,
    begun: Collection[str],
) -> Mapping[str, str]:
    """What became of steps, by their texts, where a later record shows it.

    ``steps``: each with the record after which others count. What shows it is a commit whose subject holds half of the
    step's words (for a step that only says to commit, any commit), an edit (see `_edited`), or commands (see
    `_is_run`). While some steps are ``begun``, edits count for these only. Looked at are the first steps, and the
    newest edits and commands.
    """
    steps = steps[:_MAX_STEPS]
    first = min((record for _, record in steps), default=len(events))
    changes = [one for one in operations if one.record > first and one.action is not FileAction.READ][-_MAX_LATER:]
    edits = [(one.record, one.name, _edit_text(events[one.event], one.path)) for one in changes]
    commands = [e for e in events if e.record > first and e.kind is EventKind.CALL and e.tool is ToolKind.COMMAND]
    # The text of a here-document, such as a commit's message, is not what a command does.
    lines = ((event.record, event.text.partition("<<")[0]) for event in commands[-_MAX_LATER:])
    ran = [(record, beginnings(line)) for record, line in lines]
    texts = [text for text, _ in steps]
    edited = {
        since: _edited(texts, [(file, changed) for record, file, changed in edits if record > since])
        for since in {since for _, since in steps}
    }
    found: dict[str, str] = {}
    for text, record in steps:
        named = beginnings(text)
        later = [one for one in commits if one.record > record]
        made = [one for one in later if holds_half(one.subject, named)]
        if not made and "commi" in named and named <= _TO_COMMIT:
            made = later
        if made:
            found[text] = f"{words.committed} {made[-1].name}"
        elif text in edited[record] and (text in begun or not begun):
            found[text] = words.edited_later
        elif _is_run(named, [command for when, command in ran if when > record]):
            found[text] = words.resumed
    return found


def _is_run(named: frozenset[str], commands: Sequence[frozenset[str]]) -> bool:
    """Whether one command has all words of a step; for a step that says to run something, all commands together.

    For a step that only says to push, any command that pushes is enough.
    """
    if named <= _TO_PUSH:
        return "push" in named and any("push" in command for command in commands)
    is_one = len(named) > 1 and any(map(named.issubset, commands))
    return is_one or ("run" in named and named <= frozenset[str]().union(*commands))


# The words, as `beginnings` gives them, of steps that only say to commit, or to push.
_TO_COMMIT = frozenset(("commi", "chang", "all", "work", "the", "git"))
_TO_PUSH = frozenset(("push", "remot", "origi", "branc", "git"))


def beginnings(text: str) -> frozenset[str]:
    """How the words that carry meaning begin: mostly the same for other tenses of a verb and for plurals."""
    return frozenset(word[:_BEGINNING].removesuffix("s") for word in terms(text))


def holds_half(text: str, words: frozenset[str]) -> bool:
    """Whether a text has at least half of these beginnings of words; False where there are fewer than two."""
    return len(words) > 1 and 2 * len(words & beginnings(text)) >= len(words)


def _edited(steps: Iterable[str], edits: Sequence[tuple[str, str]]) -> set[str]:
    """The steps that edits deal with; each edit is the name of a file and the text that changed in it.

    For a step that names files, that is an edit of one of them that holds a name of this step only, or any edit of a
    file that no other step names. For a step without files, it is edits (of prose aside) that together hold half of the
    names that no other step has.
    """
    subjects = {step: _subject(step) for step in steps}
    found = set[str]()
    for step, (files, names) in subjects.items():
        others = [other for other in subjects.values() if other != (files, names)]
        own_files = {name for name in files if not any(name in other for other, _ in others)}
        own_names = {name for name in names if not any(name in other for _, other in others)}
        later = [one for one in edits if (one[0] in files if files else not one[0].endswith(PROSE))]
        named = sum(any(name in changed for _, changed in later) for name in own_names)
        if any(file in own_files for file, _ in later) or 0 < named >= (1 if files else len(own_names) / 2):
            found.add(step)
    return found


def _edit_text(call: Event, path: str) -> str:
    """The lines that an edit changed, and the signatures among the lines around them, cut to `_MAX_EDIT_CHARS`."""
    lines: list[str] = []
    for old, new in changes_of(call, path):
        before, after = (dict.fromkeys(text[:_MAX_EDIT_CHARS].split("\n")) for text in (old, new))
        lines += (line for line in (*before, *after) if not (line in before and line in after) or is_signature(line))
    return "\n".join(lines)[:_MAX_EDIT_CHARS]


def _subject(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names of files and the other names in a step."""
    atoms = find_atoms(text)
    files = (atom.text.rpartition("/")[2] for atom in atoms if atom.kind in (AtomKind.FILE, AtomKind.PATH))
    return frozenset(files), frozenset(atom.text for atom in atoms if atom.kind is AtomKind.ID)
