"""The file ledger: what became of every file, by replaying the acts on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compactor_cli.digest.language import Words
from compactor_cli.digest.quote import Meter, chosen, records_of
from compactor_cli.digest.touches import Act, Touch
from compactor_cli.model.summary import Item

# Share of the section that files which were only read may always have, where there is room for a few lines.
_READ_RATIO = 0.3
_TIGHT_TOKENS = 100
_PATHS_PER_LINE = 8


@dataclass(slots=True, kw_only=True)
class FileState:
    """What is known about a path. ``last`` is the position of the last act, ``worked`` of the last change."""

    path: str
    is_created: bool = False
    edits: int = 0
    reads: int = 0
    is_deleted: bool = False
    moved_to: str = ""
    records: list[int] = field(default_factory=list)
    last: int = -1
    worked: int = -1

    @property
    def is_changed(self) -> bool:
        """Whether anything but reading happened to it."""
        return self.worked >= 0 or self.is_created or self.edits > 0 or self.is_deleted or bool(self.moved_to)


def ledger(touches: Iterable[Touch], before: Iterable[FileState] = ()) -> tuple[FileState, ...]:
    """The state of every path after all acts on it, the one changed last first, files only read behind them.

    ``before``: states known from an earlier summary, in the order they were worked on.
    """
    states = {state.path: state for state in before}
    for touch in touches:
        state = states.setdefault(touch.path, FileState(path=touch.path))
        _apply(state, touch)
        if touch.act is Act.MOVE and touch.target:
            target = states.setdefault(touch.target, FileState(path=touch.target))
            target.is_deleted, target.worked, target.last = False, touch.event, touch.event
            target.edits, target.is_created = target.edits + state.edits, state.is_created
            target.records.append(touch.record)
    # Python's sort is stable: carried files, of which only the order is known, keep it (newest first).
    newest_first = reversed(states.values())
    return tuple(sorted(newest_first, key=lambda state: (not state.is_changed, -state.worked, -state.last)))


def _apply(state: FileState, touch: Touch) -> None:
    state.last = touch.event
    if touch.act is Act.READ:
        state.reads += 1
        if not state.is_changed:
            state.records.append(touch.record)
        return
    state.worked = touch.event
    state.records.append(touch.record)
    if touch.act is Act.CREATE:
        # Writing a file that was read or edited before replaces it.
        is_new = state.is_deleted or not (state.reads or state.edits or state.is_created)
        state.is_created, state.edits = state.is_created or is_new, state.edits + (not is_new)
    elif touch.act is Act.EDIT:
        state.edits += 1
    state.is_deleted = touch.act is Act.DELETE
    state.moved_to = touch.target if touch.act is Act.MOVE else ""


def told(state: FileState, words: Words) -> str:
    """What happened to a file, in fixed words: ``created, edited ×3, read``."""
    facts = [words.created] if state.is_created else []
    facts += [_times(words.edited, state.edits)] if state.edits else []
    facts += [_times(words.read, state.reads)] if state.reads else []
    facts += [words.deleted] if state.is_deleted else []
    facts += [f"{words.moved} {state.moved_to}"] if state.moved_to else []
    return words.comma.join(facts)


def _times(word: str, number: int) -> str:
    return word if number == 1 else f"{word} ×{number}"


def file_items(states: Sequence[FileState], budget_tokens: int, meter: Meter, words: Words) -> tuple[Item, ...]:
    """The ledger as items: changed files one by one, newest first; then those only read, several on a line.

    Where there is no room for a line each, changed files are named together too.
    """
    changed = [state for state in states if state.is_changed]
    read = [state for state in states if not state.is_changed]
    ratio = _READ_RATIO if budget_tokens >= _TIGHT_TOKENS else 0.0
    reserve = min(int(budget_tokens * ratio), sum(meter.text(state.path) + 2 for state in read) + 12)
    lines = _changed_items(changed, budget_tokens - reserve, meter, words)
    left = budget_tokens - sum(meter.item(item) for item in lines)
    return (*lines, *_lists(words.read, read, left, meter, words))


def _changed_items(states: Sequence[FileState], budget_tokens: int, meter: Meter, words: Words) -> tuple[Item, ...]:
    items = [_item(state, words) for state in states]
    if sum(meter.item(item) for item in items) <= budget_tokens:
        return tuple(items)
    together = _lists(words.edited, states, budget_tokens // 2, meter, words)
    left = budget_tokens - sum(meter.item(item) for item in together)
    single = chosen(items, left, meter)
    rest = [state for state, item in zip(states, items, strict=True) if item not in single]
    return (*single, *_lists(words.edited, rest, budget_tokens - sum(map(meter.item, single)), meter, words))


def _item(state: FileState, words: Words) -> Item:
    return Item(text=f"{state.path} — {told(state, words)}", records=records_of(state.records))


def _lists(label: str, states: Sequence[FileState], budget_tokens: int, meter: Meter, words: Words) -> tuple[Item, ...]:
    """Paths together, a few on a line, as many as fit."""
    items: list[Item] = []
    left = budget_tokens
    for start in range(0, len(states), _PATHS_PER_LINE):
        shown: list[FileState] = []
        for state in states[start : start + _PATHS_PER_LINE]:
            if meter.item(_list_item(label, [*shown, state], words)) > left:
                continue
            shown.append(state)
        if shown:
            items.append(_list_item(label, shown, words))
            left -= meter.item(items[-1])
    return tuple(items)


def _list_item(label: str, states: Sequence[FileState], words: Words) -> Item:
    paths = ", ".join(state.path for state in states)
    return Item(text=f"{label}{words.colon}{paths}", records=records_of(r for state in states for r in state.records))
