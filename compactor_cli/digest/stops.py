"""Stops: what became of the calls that the user turned down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from compactor_cli.digest.checks import chain_parts
from compactor_cli.digest.commands import CommandOutcome, Run, acting_part
from compactor_cli.digest.events import Event, EventKind, is_service_call, results_of
from compactor_cli.digest.files import FileOperation, attempted
from compactor_cli.digest.messages import UserMessage
from compactor_cli.digest.tools import FileAction, ToolKind, argument, command_of, parameters, short_name


def stops_in_force(
    messages: Iterable[UserMessage],
    events: Sequence[Event],
    operations: Sequence[FileOperation],
    runs: Sequence[Run],
    directory: str = "",
) -> tuple[UserMessage, ...]:
    """The messages without the stops that are over, and those that have words with the record that shows it.

    A stop of a change is over when the file is changed by a later call, of a command when it runs later, of a call of a
    service when that is called again with most of what it was given, of a plan when one is shown later and not refused:
    the user consented to that.
    """
    results = (one for one in reversed(events) if one.kind is EventKind.RESULT and one.call >= 0)
    taken = (one.call for one in results if not (one.is_refusal or one.is_error) and _shows_plan(events[one.call]))
    plan = next(taken, -1)
    made = {(_is_removal(one), one.target or one.path): one for one in operations if one.action is not FileAction.READ}
    # A commit is the same with another message, if it is of the same files.
    parts = ((run, acting_part(run.command)) for run in runs)
    keys = {run.event: part if "git commit" in part else run.key for run, part in parts}
    ran: dict[str, list[Run]] = {}
    for run in reversed(runs):
        if run.outcome is CommandOutcome.OK:
            for key in {keys[run.event], *chain_parts(keys[run.event])}:
                ran.setdefault(key, []).append(run)
    served: dict[str, list[tuple[int, frozenset[str], int]]] = {}
    for number, result in results_of(events).items():
        if is_service_call(events[number]) and not (result.is_error or result.is_refusal):
            served.setdefault(events[number].name, []).append((number, _given(events[number]), result.record))

    def resumed(call: int, reason: str = "") -> int:
        """The record of what shows that the change of a call, or its command, was made after it; -1 where none does."""
        if call >= 0 and _shows_plan(events[call]):
            return events[plan].record if plan > call else -1
        if call >= 0 and is_service_call(events[call]):
            given = _given(events[call])
            again = (one for one in served.get(events[call].name, ()) if one[0] > call)
            return next((record for _, other, record in again if 2 * len(given & other) >= len(given)), -1)
        files = _staged(command_of(events[call].arguments)) if call in keys else frozenset()
        runs_since = (one for one in ran.get(keys.get(call, ""), ()) if one.event > call)
        # One of all that changed may leave out what was not wanted.
        staged = ((one, _staged(one.command)) for one in runs_since)
        run = next((one for one, given in staged if files <= given or not (given or reason)), None)
        tried = attempted(events[call], directory) if call >= 0 else ()
        later = [made.get((_is_removal(one), one.target or one.path)) for one in tried]
        shown = [one.record for one in ([run] if run else later) if one and one.event > call]
        return max(shown, default=-1) if len(shown) == max(1, len(later)) or run else -1

    found: list[UserMessage] = []
    for message in messages:
        record = resumed(message.call, message.text)
        after_stop = tuple(one for one in message.after_stop if resumed(one[0]) < 0)
        if message.text or record < 0:
            is_plan = message.call >= 0 and _shows_plan(events[message.call])
            found.append(replace(message, resumed=record, is_plan=is_plan, after_stop=after_stop))
    return tuple(found)


def _staged(command: str) -> frozenset[str]:
    """The files that a command line gives to ``git add``; none where it gives all that changed."""
    given = (word for words in _ADDS.findall(command) for word in words.split())
    return frozenset(word for word in given if word != "." and not word.startswith("-"))


_ADDS = re.compile(r"\bgit add ([^&|;\n]*)")


def _shows_plan(call: Event) -> bool:
    """Whether a call shows a plan to the user: not one that only keeps a list of tasks."""
    is_plan = short_name(call.name).startswith("exitplan") or argument(call.arguments, ("plan",)).strip()
    return call.tool is ToolKind.PLAN and bool(is_plan)


def _given(call: Event) -> frozenset[str]:
    """What a call of a service was given."""
    return frozenset(value for _, value in parameters(call.arguments))


def _is_removal(one: FileOperation) -> bool:
    return one.action in (FileAction.DELETE, FileAction.REVERT)
