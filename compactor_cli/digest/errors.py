"""Errors and what they came to: the change after which an error was gone, or that it was not seen to pass since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compactor_cli.digest.commands import Outcome, Run, error_line, shown
from compactor_cli.digest.events import Event, EventKind, ToolKind
from compactor_cli.digest.language import Words
from compactor_cli.digest.quote import Meter, chosen, opening, records_of
from compactor_cli.digest.touches import Act, Touch
from compactor_cli.model.summary import Item

_MOST_PATHS = 4
_MOST_COMMAND_CHARS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An error line of a command (or tool), where it was seen first, and how it ended.

    ``fixes``: the files changed between its last sight and the run that did not show it any more.
    """

    line: str
    command: str
    key: str
    record: int
    event: int
    is_solved: bool = False
    fixes: tuple[str, ...] = ()
    records: tuple[int, ...] = ()


def troubles(events: Sequence[Event], runs: Sequence[Run], touches: Sequence[Touch]) -> tuple[Trouble, ...]:
    """Every error of a command that does something, and of tools that are neither commands nor file work."""
    replay = _Replay()
    acts: list[Run | Touch] = [*_tool_runs(events), *(run for run in runs if not run.is_look), *touches]
    for act in sorted(acts, key=lambda act: act.event):
        if isinstance(act, Run):
            replay.ran(act)
        elif act.act is not Act.READ:
            replay.changed(act)
    return replay.ended()


def _tool_runs(events: Sequence[Event]) -> list[Run]:
    """Calls of other tools (a booking, a query) as runs: one that failed may be made again with success."""
    found: list[Run] = []
    for event in events:
        call = events[event.call] if event.kind is EventKind.RESULT and event.call >= 0 else None
        if call is None or call.tool is not ToolKind.OTHER:
            continue
        failed = event.is_error or event.text.lstrip().startswith(("Error", '{"error"', "错误"))
        found.append(
            Run(
                command=call.name,
                key=call.name,
                event=event.call,
                record=call.record,
                result_record=event.record,
                outcome=Outcome.FAILED if failed else Outcome.OK,
                line=error_line(event.text) if failed else "",
            )
        )
    return found


class _Replay:
    def __init__(self) -> None:
        self.open: dict[str, Trouble] = {}
        self.changes: dict[str, list[Touch]] = {}
        self.closed: list[Trouble] = []
        self.passed: dict[str, int] = {}

    def changed(self, touch: Touch) -> None:
        for key in self.open:
            self.changes[key].append(touch)

    def ran(self, run: Run) -> None:
        before = self.open.get(run.key)
        if run.outcome is Outcome.FAILED and run.line:
            if before and before.line == run.line:
                self.changes[run.key] = []
                return
            if before:
                self._close(before, run)
            self.open[run.key] = Trouble(
                line=run.line, command=run.command, key=run.key, record=run.result_record, event=run.event
            )
            self.changes[run.key] = []
        elif run.outcome is Outcome.OK:
            self.passed[_program(run.key)] = run.event
            if before:
                self._close(before, run)

    def _close(self, trouble: Trouble, run: Run) -> None:
        changes = self.changes.pop(trouble.key)
        del self.open[trouble.key]
        paths = tuple(dict.fromkeys(touch.path for touch in changes))
        records = (trouble.record, *(touch.record for touch in changes[-1:]), run.result_record)
        self.closed.append(replace(trouble, is_solved=True, fixes=paths, records=records_of(records)))

    def ended(self) -> tuple[Trouble, ...]:
        """Solved and unsolved ones in order; one whose program passed later in another form says nothing sure."""
        left = (
            replace(trouble, records=(trouble.record,))
            for trouble in self.open.values()
            if self.passed.get(_program(trouble.key), -1) < trouble.event
        )
        return tuple(sorted((*self.closed, *left), key=lambda trouble: trouble.event))


def _program(key: str) -> str:
    return " ".join(key.split()[:2])


def error_items(found: Sequence[Trouble], budget_tokens: int, meter: Meter, words: Words) -> tuple[Item, ...]:
    """Unsolved errors first, then solved ones with their fix, newest first; the same line is told once."""
    newest = {trouble.line: trouble for trouble in found}
    ranked = sorted(newest.values(), key=lambda trouble: (trouble.is_solved, not trouble.fixes, -trouble.event))
    return chosen((_item(trouble, words) for trouble in ranked), budget_tokens, meter)


def _item(trouble: Trouble, words: Words) -> Item:
    if not trouble.is_solved:
        ending = f"— {words.unsolved}"
    elif trouble.fixes:
        ending = f"→ {words.gone} {', '.join(trouble.fixes[-_MOST_PATHS:])}"
    else:
        ending = f"→ {words.later}"
    command = opening(shown(trouble.command), _MOST_COMMAND_CHARS)
    where = f" (`{command}`)" if command and command not in trouble.line else ""
    return Item(text=f"{trouble.line}{where} {ending}", records=trouble.records)
