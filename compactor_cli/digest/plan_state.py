"""The plan's state: to-do lists and plans as the last call left them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from compactor_cli.digest.events import Event, EventKind, ToolKind
from compactor_cli.digest.language import Words
from compactor_cli.digest.quote import Meter, clipped, head, one_line, records_of, tidy
from compactor_cli.digest.tools import short_name
from compactor_cli.model.summary import Item


class State(StrEnum):
    """How far a step is."""

    DONE = "done"
    DOING = "doing"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """One step of a plan; ``record`` shows its last change."""

    text: str
    state: State
    record: int


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


_STATES = {
    "completed": State.DONE,
    "complete": State.DONE,
    "done": State.DONE,
    "finished": State.DONE,
    "x": State.DONE,
    "in_progress": State.DOING,
    "in-progress": State.DOING,
    "inprogress": State.DOING,
    "doing": State.DOING,
    "active": State.DOING,
    "-": State.DOING,
}
_DROPPED = ("cancelled", "canceled", "deleted", "removed")
_LIST_KEYS = ("todos", "todoList", "todo_list", "plan", "task_list", "tasks", "items", "newTodos", "steps")
_TEXT_KEYS = ("content", "step", "title", "description", "subject", "text", "task", "name")
_MOST_STEP_CHARS = 240


def plan_state(events: Sequence[Event]) -> PlanState:
    """The state after every plan call; calls that failed change nothing."""
    failed = {event.call for event in events if event.kind is EventKind.RESULT and event.is_error}
    answers = {event.call: event.text for event in events if event.tool is ToolKind.PLAN and event.call >= 0}
    replay = _Replay()
    for number, event in enumerate(events):
        if event.kind is EventKind.CALL and event.tool is ToolKind.PLAN and number not in failed:
            replay.call(event, answers.get(number, ""))
    return PlanState(todos=tuple(replay.todos.values()), text=replay.text, record=replay.record)


@dataclass(slots=True, kw_only=True)
class _Replay:
    todos: dict[str, Todo] = field(default_factory=dict)
    text: str = ""
    record: int = -1
    tasks: bool = False
    created: int = 0

    def call(self, event: Event, answer: str) -> None:
        arguments = event.arguments if isinstance(event.arguments, Mapping) else {}
        name = short_name(event.name)
        if name == "taskcreate":
            self._create(arguments, event.record, answer)
        elif name == "taskupdate":
            self._update(arguments, event.record)
        elif steps := _steps(arguments):
            self.tasks = False
            self.todos = {str(i): _todo(step, event.record) for i, step in enumerate(steps) if _is_live(step)}
        elif isinstance(plan := arguments.get("plan"), str) and plan.strip():
            self.text, self.record = tidy(plan), event.record

    def _create(self, arguments: Mapping[str, Any], record: int, answer: str) -> None:
        if not self.tasks:
            self.todos, self.tasks = {}, True
        self.created += 1
        number = re.search(r"#(\d+)", answer[:200])
        text = str(arguments.get("subject") or arguments.get("description") or "")
        if text.strip():
            key = number[1] if number else str(self.created)
            self.todos[key] = Todo(text=_step_text(text), state=State.OPEN, record=record)

    def _update(self, arguments: Mapping[str, Any], record: int) -> None:
        key = str(arguments.get("taskId") or arguments.get("task_id") or "")
        status = str(arguments.get("status") or "")
        if status in _DROPPED:
            self.todos.pop(key, None)
        elif key in self.todos:
            todo = self.todos[key]
            text = _step_text(str(arguments.get("subject") or todo.text))
            state = _STATES.get(status, State.OPEN) if status else todo.state
            self.todos[key] = replace(todo, text=text, state=state, record=record)


def _steps(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Text and status of each step, in any of the shapes that agents use."""
    for key in _LIST_KEYS:
        value = arguments.get(key)
        if isinstance(value, str) and "[" in value:
            return _checklist(value)
        if isinstance(value, (list, tuple)):
            return [step for entry in value if (step := _step(entry))[0]]
    return []


def _step(entry: Any) -> tuple[str, str]:
    if isinstance(entry, str):
        return entry, ""
    if not isinstance(entry, Mapping):
        return "", ""
    text = next((value for key in _TEXT_KEYS if isinstance(value := entry.get(key), str) and value.strip()), "")
    return text, str(entry.get("status") or entry.get("state") or "").lower()


def _checklist(text: str) -> list[tuple[str, str]]:
    found = re.findall(r"^\s*(?:[-*]\s+|\d+\.\s+)?\[([ xX~-]?)\]\s*(.+)$", text, re.MULTILINE)
    return [(step, {"~": "-"}.get(mark, mark.lower())) for mark, step in found]


def _is_live(step: tuple[str, str]) -> bool:
    return step[1] not in _DROPPED


def _todo(step: tuple[str, str], record: int) -> Todo:
    return Todo(text=_step_text(step[0]), state=_STATES.get(step[1], State.OPEN), record=record)


def _step_text(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _MOST_STEP_CHARS else head(line, _MOST_STEP_CHARS)


def plan_items(state: PlanState, budget_tokens: int, meter: Meter, words: Words) -> tuple[Item, ...]:
    """What is in progress and open first, then what is done on one line, then a plan's text as far as it fits."""
    offers = [
        Item(text=f"{label}{words.colon}{todo.text}", records=records_of((todo.record,)))
        for label, kind in ((words.doing, State.DOING), (words.open, State.OPEN))
        for todo in state.of(kind)
    ]
    items: list[Item] = []
    left = budget_tokens
    for item in offers:
        if (cost := meter.item(item)) > left:
            break
        items.append(item)
        left -= cost
    done = _done_item(state.of(State.DONE), left, meter, words)
    left -= sum(meter.item(item) for item in done)
    return (*items, *done, *_text_item(state, left, meter, words))


def _done_item(todos: Sequence[Todo], budget_tokens: int, meter: Meter, words: Words) -> tuple[Item, ...]:
    """The newest steps that are done, as many as fit, in order."""
    for start in range(len(todos)):
        shown = todos[start:]
        text = f"{words.done}{words.colon}{words.stop.join(todo.text for todo in shown)}"
        item = Item(text=text, records=records_of(todo.record for todo in shown))
        if meter.item(item) <= budget_tokens:
            return (item,)
    return ()


def _text_item(state: PlanState, budget_tokens: int, meter: Meter, words: Words) -> tuple[Item, ...]:
    is_old = any(todo.record > state.record for todo in state.todos)
    if not state.text or is_old or budget_tokens < 40:
        return ()
    text = clipped(state.text, budget_tokens - 16, meter)
    return (Item(text=f"{words.plan}{words.colon}{text}", records=records_of((state.record,))),) if text else ()
