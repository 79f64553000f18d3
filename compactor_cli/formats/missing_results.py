"""Calls without ids: paired by order, and never more of them than results where one result answers several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compactor_cli.model.transcript import Message, Role, ToolResult


def pad_missing_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages; where fewer results follow than calls without ids were made, the last stands for the rest."""
    found = list(messages)
    for i, message in enumerate(found):
        calls = _unnamed(message) if message.role is Role.ASSISTANT else 0
        if not calls:
            continue
        stop = i + 1
        while stop < len(found) and found[stop].role is Role.TOOL:
            stop += 1
        missing = calls - sum(len(result.results) for result in found[i + 1 : stop])
        if stop > i + 1 and missing > 0:
            last = found[stop - 1]
            found[stop - 1] = replace(last, parts=last.parts + (ToolResult(id="", text=""),) * missing)
    return tuple(found)


def _unnamed(message: Message) -> int:
    """How many calls a message makes, if none of them has an id."""
    return 0 if any(call.id for call in message.calls) else len(message.calls)
