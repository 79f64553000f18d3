"""Memory: what an earlier summary written by compact held, section by section, so that the next one updates it.

It comes from the state stored with that summary, else from the summary's own text (see `readback`): both give the
same kind of value, the text just fewer of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from compactor_cli.digest.attached import Attached, BackgroundWork
from compactor_cli.digest.files import FileState
from compactor_cli.digest.plan_state import PlanState, State, Todo

# What is carried of each kind, newest kept: a state stays small however often it is renewed.
_MAX_ITEMS = 400
_MAX_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Carried statements by kind, oldest first.

    ``files``: path, created, edits, reads, deleted, moved to. ``todos``: state and text. ``turns``: one line
    each. ``lines``: statements that no other kind holds, each with the label it stood under. ``running``: id of
    """

    users: tuple[str, ...] = ()
    files: tuple[tuple[str, bool, int, int, bool, str], ...] = ()
    todos: tuple[tuple[str, str], ...] = ()
    plan: str = ""
    commands: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    skills: tuple[str, ...] = ()
    running: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON values, bounded."""
        return {name: value if isinstance(value, str) else bounded(value) for name, value in asdict(self).items()}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Memory:
        """What `to_json` gave; kinds that are missing are empty."""
        known = {field.name for field in fields(Memory)} & set(values)
        return Memory(**{name: _tuples(values[name]) for name in known})

    def file_states(self) -> tuple[FileState, ...]:
        """The carried ledger, as states without records."""
        return tuple(
            FileState(path=path, is_created=created, edits=edits, reads=reads, is_deleted=deleted, moved_to=moved)
            for path, created, edits, reads, deleted, moved in self.files
        )

    def attached(self) -> Attached:
        """The carried skills and background work."""
        running = tuple(BackgroundWork(id=key, about=about) for key, about in self.running)
        return Attached(skills=tuple((name, -1) for name in self.skills), running=running)

    def plan_state(self) -> PlanState:
        """The carried plan, as a state without records."""
        todos = tuple(Todo(text=text, state=State(state), record=-1) for state, text in self.todos)
        return PlanState(todos=todos, text=self.plan)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(entry) for entry in value) if isinstance(value, (list, tuple)) else value


def bounded(values: Sequence[Any]) -> list[Any]:
    """The newest values within the bounds of a state."""
    kept: list[Any] = []
    left = _MAX_CHARS
    for value in reversed(values[-_MAX_ITEMS:]):
        left -= len(str(value))
        if left < 0:
            break
        kept.append(value)
    return kept[::-1]


def carried_files(states: Iterable[FileState]) -> tuple[tuple[str, bool, int, int, bool, str], ...]:
    """File states as a memory holds them, the one worked on last at the end."""
    rows = [(s.path, s.is_created, s.edits, s.reads, s.is_deleted, s.moved_to) for s in states]
    return tuple(reversed(rows))
