"""The plan's state: to-do lists and plans as the last call left them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.quote import TokenCache, clipped, head, one_line, records_of, tidy
from compactor_cli.digest.transcript_events import Event, EventKind, ToolKind
from compactor_cli.group.todos import State as State
from compactor_cli.group.todos import Todo as Todo
from compactor_cli.group.todos import TodoReplay
from compactor_cli.model.summary import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """The last known to-do list, and the last plan written as text (``ExitPlanMode``)."""

    todos: tuple[Todo, ...] = ()
    text: str = ""
    record: int = -1

    def of(self, state: State) -> tuple[Todo, ...]:
        """The steps in this state, in order."""
        return tuple(todo for todo in self.todos if todo.state is state)

    @property
    def next_step(self) -> Todo | None:
        """The step in progress, else the first open one."""
        return next(iter((*self.of(State.DOING), *self.of(State.OPEN))), None)


_MOST_STEP_CHARS = 240


def plan_state(events: Sequence[Event]) -> PlanState:
    """The state after every plan call; calls that failed change nothing."""
    failed = {event.call for event in events if event.kind is EventKind.RESULT and event.is_error}
    answers = {event.call: event.text for event in events if event.tool is ToolKind.PLAN and event.call >= 0}
    replay = TodoReplay()
    for number, event in enumerate(events):
        if event.kind is EventKind.CALL and event.tool is ToolKind.PLAN and number not in failed:
            replay.call(event.name, event.arguments, answers.get(number, ""), event.record)
    todos = tuple(replace(todo, text=_step_text(todo.text)) for todo in replay.todos.values())
    return PlanState(todos=todos, text=tidy(replay.text), record=replay.record)


def _step_text(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _MOST_STEP_CHARS else head(line, _MOST_STEP_CHARS)


def plan_items(state: PlanState, budget_tokens: int, token_cache: TokenCache, words: FixedWords) -> tuple[Item, ...]:
    """What is in progress and open first, then what is done on one line, then a plan's text as far as it fits."""
    offers = [
        Item(text=f"{label}{words.colon}{todo.text}", records=records_of((todo.record,)))
        for label, kind in ((words.doing, State.DOING), (words.open, State.OPEN))
        for todo in state.of(kind)
    ]
    items: list[Item] = []
    left = budget_tokens
    for item in offers:
        if (cost := token_cache.item(item)) > left:
            break
        items.append(item)
        left -= cost
    done = _done_item(state.of(State.DONE), left, token_cache, words)
    left -= sum(token_cache.item(item) for item in done)
    return (*items, *done, *_text_item(state, left, token_cache, words))


def _done_item(
    todos: Sequence[Todo], budget_tokens: int, token_cache: TokenCache, words: FixedWords
) -> tuple[Item, ...]:
    """The newest steps that are done, as many as fit, in order."""
    for start in range(len(todos)):
        shown = todos[start:]
        text = f"{words.done}{words.colon}{words.stop.join(todo.text for todo in shown)}"
        item = Item(text=text, records=records_of(todo.record for todo in shown))
        if token_cache.item(item) <= budget_tokens:
            return (item,)
    return ()


def _text_item(state: PlanState, budget_tokens: int, token_cache: TokenCache, words: FixedWords) -> tuple[Item, ...]:
    is_old = any(todo.record > state.record for todo in state.todos)
    if not state.text or is_old or budget_tokens < 40:
        return ()
    text = clipped(state.text, budget_tokens - 16, token_cache)
    return (Item(text=f"{words.plan}{words.colon}{text}", records=records_of((state.record,))),) if text else ()
