"""To-do lists: the steps that are done, in progress and open, as the planning tools of all known agents state them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from compactor_cli.formats.contents import short_name
from compactor_cli.model.value import dataclass

# Names of planning tools, as `short_name` gives them.
PLAN_TOOLS = frozenset(
    "todowrite exitplanmode updateplan writetodos settodolist updatetodolist todo todolist todoread taskcreate"
    " taskupdate tasklist taskget managetodolist tasktracker plan setplan createplan planning writeplan".split()
)


def is_plan_call(name: str, arguments: Any) -> bool:
    """Whether a call reads or changes a to-do list: by a planning tool, or by a query of the table with the list."""
    return short_name(name) in PLAN_TOOLS or (name == _QUERY_TOOL and _TABLE.search(_query(arguments)) is not None)


class State(StrEnum):
    """How far a step is."""

    DONE = "done"
    DOING = "doing"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """One step of a plan."""

    text: str
    state: State
    record: int  # the record that shows its last change, counted from 0
    key: str = ""  # the name by which later calls refer to it; empty if they cannot
    detail: str = ""  # its description, if that states more than ``text``
    owner: str = ""  # the agent that works on it, if several agents share the list
    is_blocked: bool = False  # other steps must be done first


_STATES = {
    **dict.fromkeys(("completed", "complete", "done", "finished", "x"), State.DONE),
    **dict.fromkeys(("in_progress", "in-progress", "inprogress", "doing", "active", "-"), State.DOING),
}
_STATUS_OF = {State.DONE: "done", State.DOING: "in_progress", State.OPEN: "pending"}
_DROPPED = ("cancelled", "canceled", "deleted", "removed")
_LIST_KEYS = ("todos", "todoList", "todo_list", "plan", "task_list", "tasks", "items", "newTodos", "steps")
_TEXT_KEYS = ("content", "step", "title", "description", "subject", "text", "task", "name")


# A task as `TaskList` shows it: `#7 [pending] Run the tests (ann) [blocked by #6]`.
_SHOWN_TASK = re.compile(r"^#(\d+) \[(\w+)\] (.+?)(?: \(([\w-]+)\))?(?: \[(blocked by) [^\]]*\])?$", re.MULTILINE)
_SHOWS_NONE = "No tasks found"
# Opens the key of a step that no call can refer to; its number follows.
_UNNAMED = "without key "
# The tool by which an agent queries a database of its session, and the table that holds the list there.
_QUERY_TOOL = "sql"
_TABLE = re.compile(r"\btodos\b")


@dataclass(slots=True, kw_only=True)
class TodoReplay:
    """A to-do list as the planning calls so far left it."""

    todos: dict[str, Todo] = field(default_factory=dict)  # by key; steps without one by a key of this replay's own
    text: str = ""  # the last plan that was written as a text; empty: none
    record: int = -1  # the record of that text
    _has_tasks: bool = False  # the list consists of tasks with keys, so new tasks are added rather than replacing it
    _created: int = 0  # tasks created so far, from which a task without a number in its result gets its key

    @classmethod
    def going_on(cls, todos: Iterable[Todo]) -> TodoReplay:
        """A replay that begins with these steps, with which an earlier replay ended."""
        known = {todo.key or f"{_UNNAMED}{number}": todo for number, todo in enumerate(todos)}
        named = sum(bool(todo.key) for todo in known.values())
        return cls(todos=known, _has_tasks=named > 0, _created=named)

    def call(self, name: str, arguments: Any, answer: str, record: int) -> None:
        """Update the list by a planning call and the tool's answer to it."""
        arguments = arguments if isinstance(arguments, Mapping) else {}
        name = short_name(name)
        if name == "taskcreate":
            self._create(arguments, answer, record)
        elif name == "taskupdate":
            self._change(arguments, record)
        elif name == "tasklist":
            self._list(answer, record)
        elif name == _QUERY_TOOL:
            self._run(_query(arguments), record)
        elif steps := _steps(arguments):
            self._take(steps, record, is_whole=arguments.get("merge") is not True)
        elif isinstance(plan := arguments.get("plan"), str) and plan.strip():
            self.text, self.record = plan, record

    def _create(self, arguments: Mapping[str, Any], answer: str, record: int) -> None:
        """Add a task; its key is the number in the tool's answer."""
        if not self._has_tasks:
            self.todos, self._has_tasks = {}, True
        self._created += 1
        number = re.search(r"#(\d+)", answer[:200])
        detail = str(arguments.get("description") or "").strip()
        if text := str(arguments.get("subject") or "").strip() or detail:
            key = number[1] if number else str(self._created)
            more = "" if detail in text else detail
            self.todos[key] = Todo(text=text, state=State.OPEN, record=record, key=key, detail=more)

    def _change(self, arguments: Mapping[str, Any], record: int) -> None:
        key = str(arguments.get("taskId") or arguments.get("task_id") or "")
        status = str(arguments.get("status") or "")
        if status in _DROPPED:
            self.todos.pop(key, None)
        elif key in self.todos:
            todo = self.todos[key]
            text = str(arguments.get("subject") or todo.text)
            state = _STATES.get(status, State.OPEN) if status else todo.state
            owner = str(arguments.get("owner") or todo.owner)
            self.todos[key] = replace(todo, text=text, state=state, owner=owner, record=record)
        elif status:
            self._forget_unnamed()

    def _forget_unnamed(self) -> None:
        """Forget the steps whose keys are not known: a call may have changed any of them."""
        self.todos = {key: todo for key, todo in self.todos.items() if not key.startswith(_UNNAMED)}

    def _take(self, steps: Iterable[tuple[str, str, str]], record: int, *, is_whole: bool) -> None:
        """Replace the list by these steps, or change the steps of these keys, which then may have no text."""
        self._has_tasks, before = False, self.todos
        self.todos = {} if is_whole else {**before}
        for key, text, status in steps:
            if status in _DROPPED:
                self.todos.pop(key, None)
            elif text or key in before:
                state = _STATES.get(status, State.OPEN)
                self.todos[key] = Todo(text=text or before[key].text, state=state, record=record)

    def close(self, key: str, record: int) -> None:
        """Mark a step as done, if the list has one with this key that is not done."""
        todo = self.todos.get(key)
        if todo and todo.state is not State.DONE:
            self.todos[key] = replace(todo, state=State.DONE, record=record)

    def has_open(self) -> bool:
        """Whether any step is not done."""
        return any(todo.state is not State.DONE for todo in self.todos.values())

    def _run(self, query: str, record: int) -> None:
        """Update the list by a query of the database that holds it."""
        if not query.lstrip().upper().startswith("SELECT"):
            self._forget_unnamed()
        rows = [
            (key, one.text, one.detail, "blocked" if one.is_blocked else _STATUS_OF[one.state])
            for key, one in self.todos.items()
        ]
        before, self.todos = self.todos, {}
        for key, title, detail, status in _rows_after(query, rows):
            if status not in _DROPPED and (title or detail):
                text, state = title or detail, _STATES.get(status, State.OPEN)
                is_blocked, more = status == "blocked", "" if detail in title else detail
                todo = Todo(text=text, state=state, record=record, key=key, detail=more, is_blocked=is_blocked)
                old = before.get(key)
                self.todos[key] = old if old and replace(old, record=record) == todo else todo

    def _list(self, answer: str, record: int) -> None:
        """Replace the list by one that a tool showed, on which others, such as subagents, may have worked."""
        shown = sorted(_SHOWN_TASK.findall(answer), key=lambda task: int(task[0]))
        if not (shown or _SHOWS_NONE in answer):
            return
        before, self.todos, self._has_tasks = self.todos, {}, True
        for key, status, text, owner, blocked in shown:
            state = _STATES.get(status, State.OPEN)
            todo = before.get(key)
            if todo is None or not text.startswith(todo.text):
                todo = Todo(text=text, state=state, record=record, key=key)
            # For a step that is not done this record is the newest evidence; for one that was done before, an earlier
            # record shows when it was done.
            is_news = todo.state is not state or state is not State.DONE
            todo = replace(todo, state=state, owner=owner, is_blocked=bool(blocked))
            self.todos[key] = replace(todo, record=record) if is_news else todo
        self._created = max(self._created, len(shown))


def _steps(arguments: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Key, text and status of each step in a planning call, in any of the shapes that agents use; empty if none.

    The key is what the call names the step by, else its place in the list.
    """
    for key in _LIST_KEYS:
        value = arguments.get(key)
        if isinstance(value, str) and "[" in value:
            found = re.findall(r"^\s*(?:[-*]\s+|\d+\.\s+)?\[([ x~X-]?)\]\s*(.+)$", value, re.MULTILINE)
            marked = [(step, {"~": "-"}.get(mark, mark.lower())) for mark, step in found]
            return [(str(place), *step) for place, step in enumerate(marked)]
        if isinstance(value, (list, tuple)):
            steps = [step for place, entry in enumerate(value) if (step := _step(entry, str(place)))]
            is_named = len({step[0] for step in steps}) == len(steps)
            return steps if is_named else [(str(place), *step[1:]) for place, step in enumerate(steps)]
    return []


def _step(entry: Any, place: str) -> tuple[str, str, str] | None:
    """Key, text and status of an entry of a list of steps; None if it is of another kind."""
    if isinstance(entry, str):
        return place, entry, ""
    if not isinstance(entry, Mapping):
        return None
    texts = (text for key in _TEXT_KEYS if isinstance(text := entry.get(key), str) and text.strip())
    done = "done" if entry.get("completed") is True else ""
    key = entry.get("id")
    named = str(key) if isinstance(key, (str, int)) and key != "" else place
    return named, next(texts, ""), str(entry.get("status") or entry.get("state") or done).lower()


def _query(arguments: Any) -> str:
    query = arguments.get("query") if isinstance(arguments, Mapping) else None
    return query if isinstance(query, str) else ""


# The tables in which agents keep a list, and the statements that write and read the steps.
_TABLES = """
CREATE TABLE todos (id TEXT PRIMARY KEY, title TEXT, description TEXT, status TEXT DEFAULT 'pending',
                    created_at TEXT, updated_at TEXT);
CREATE TABLE todo_deps (todo_id TEXT, depends_on TEXT);
"""
_INSERT = "INSERT INTO todos (id, title, description, status) VALUES (?, ?, ?, ?)"
_SELECT = "SELECT id, title, description, status FROM todos ORDER BY rowid"
_FUNCTIONS = frozenset(("coalesce", "count", "datetime", "ifnull", "lower", "max", "min", "upper"))
# Limits of a query: instructions of SQLite's virtual machine, and bytes of one value.
_MOST_INSTRUCTIONS, _MOST_VALUE_BYTES = 200_000, 100_000


def _rows_after(query: str, rows: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    """Run a query on these steps, and return key, title, description and status of the steps after it.

    The query runs in a database in memory that holds only these steps. It may touch nothing else, and it is stopped at
    the first statement that fails and when it runs too long.
    """
    import sqlite3

    actions = (sqlite3.SQLITE_READ, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)

    def authorize(action: int, table: str | None, name: str | None, *_: str | None) -> int:
        is_of_list = action == sqlite3.SQLITE_SELECT or (action in actions and table in ("todos", "todo_deps"))
        is_known = action == sqlite3.SQLITE_FUNCTION and name in _FUNCTIONS
        return sqlite3.SQLITE_OK if is_of_list or is_known else sqlite3.SQLITE_DENY

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database, suppress(sqlite3.Error, ValueError):
        database.executescript(_TABLES)
        database.executemany(_INSERT, rows)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(_MOST_VALUE_BYTES, len(query) * 4))
        database.set_authorizer(authorize)
        database.set_progress_handler(lambda: 1, _MOST_INSTRUCTIONS)
        with suppress(sqlite3.Error, sqlite3.Warning, ValueError):
            database.executescript(query)
        database.set_progress_handler(None, 0)
        rows = [tuple(str(value or "") for value in values) for values in database.execute(_SELECT)]
    return rows
