"""Beside: what of the user's takes part in a run: programs that are told of it, and notes of the sessions."""

from __future__ import annotations

import shlex
from typing import Any

from compactor_cli.cli.wishes import Wishes
from compactor_cli.model.errors import UsageError
from compactor_cli.run.notes import NAME, note_of


def beside(wishes: Wishes) -> dict[str, Any]:
    """Fields of `Orders`. Raises UsageError for a command that is none."""
    found: dict[str, Any] = {"memory": wishes.memory}
    for name, command in (("hook-before", wishes.hook_before), ("hook-after", wishes.hook_after)):
        if command:
            _check_command(command, f"--{name}")
    if wishes.hook_before or wishes.hook_after:
        from compactor_cli.run.hooks import Hooks

        found["hooks"] = Hooks(before=wishes.hook_before, after=wishes.hook_after, seconds=wishes.hook_timeout)
    return found


def check_memory(wishes: Wishes, *, inputs: int) -> None:
    """Raises UsageError for a note that is not there, and for one note for several sessions."""
    if not wishes.memory:
        return
    if NAME not in wishes.memory:
        note_of(wishes.memory, "")
        if inputs > 1:
            advice = f"name each session's own: notes/{NAME}.md"
            raise UsageError("one note cannot be the summary of several sessions", next_step=advice, place="--memory")


def _check_command(command: str, where: str) -> None:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the command cannot be read ({error})", next_step="mind the quotes", place=where) from error
    if not words:
        raise UsageError("the command is empty", next_step="leave it out", place=where)
