"""Hooks and notes: what of the user's takes part in a run: programs that are told of it, and notes of the sessions."""

from __future__ import annotations

import shlex
from typing import Any

from compactor_cli.cli.run_options import RunOptions
from compactor_cli.model.errors import UsageError
from compactor_cli.run.hooks import NAME, note_of


def hooks_and_memory(run_options: RunOptions) -> dict[str, Any]:
    """Fields of `RunConfig`. Raises UsageError for a command that is none."""
    found: dict[str, Any] = {"memory": run_options.memory}
    for name, command in (("hook-before", run_options.hook_before), ("hook-after", run_options.hook_after)):
        if command:
            _check_command(command, f"--{name}")
    if run_options.hook_before or run_options.hook_after:
        from compactor_cli.run.hooks import Hooks

        found["hooks"] = Hooks(
            before=run_options.hook_before, after=run_options.hook_after, seconds=run_options.hook_timeout
        )
    return found


def check_memory(run_options: RunOptions, *, inputs: int) -> None:
    """Raises UsageError for a note that is not there, and for one note for several sessions."""
    if not run_options.memory:
        return
    if NAME not in run_options.memory:
        note_of(run_options.memory, "")
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
