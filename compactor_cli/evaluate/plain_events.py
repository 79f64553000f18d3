"""Events as the measures see them: without the names of tools' parameters and without what a client writes itself.

Neither tells anything of the work: `file_path` comes again in every call, whatever a summary keeps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from compactor_cli.digest.clean import without_block
from compactor_cli.digest.transcript_events import Event, EventKind, events
from compactor_cli.model.transcript import Transcript

# Blocks that a client fills itself, and marks that it sets around what somebody said or a program printed.
_BLOCKS = ("system-reminder", "command-message", "local-command-caveat")
_MARKS = (
    "bash-input|bash-stdout|bash-stderr|command-name|command-args|local-command-stdout|local-command-stderr"
    "|persisted-output|tool_use_error|task-notification|task-id|tool-use-id|output-file|user-prompt-submit-hook"
)


def plain_events(transcript: Transcript) -> tuple[Event, ...]:
    """The events of a whole transcript; one that carries no information but what is left out has an empty text.

    A call's text is its name and a line for each value of its arguments.
    """
    return tuple(map(_plain, events(transcript, range(len(transcript.messages)))))


def schema_words(events: Iterable[Event]) -> frozenset[str]:
    """The names of parameters in these events' calls, nested ones too."""
    return frozenset(name for event in events if event.kind is EventKind.CALL for name in _names(event.arguments))


def _plain(event: Event) -> Event:
    text = "\n".join((event.name, *_values(event.arguments))) if event.kind is EventKind.CALL else event.text
    return replace(event, text=_without_harness(text))


def _without_harness(text: str) -> str:
    if "<" not in text:
        return text
    for tag in _BLOCKS:
        text = without_block(text, tag)
    return _marks().sub("", text)


@cache
def _marks() -> re.Pattern[str]:
    return re.compile(rf"</?(?:{_MARKS})>")


def _names(arguments: Any) -> Iterator[str]:
    if isinstance(arguments, Mapping):
        for name, value in arguments.items():
            if _is_parameter(name):
                yield name
            yield from _names(value)
    elif isinstance(arguments, tuple):
        for value in arguments:
            yield from _names(value)


def _is_parameter(name: str) -> bool:
    """Whether a key is a name in a schema, and not a path, a variable of the environment or other content."""
    return name.isidentifier() and not name.isupper()


def _values(arguments: Any) -> Iterator[str]:
    """A line for each value; a list of words is one line. Keys that are content are lines of their own."""
    if isinstance(arguments, Mapping):
        for name, value in arguments.items():
            if not _is_parameter(name):
                yield name
            yield from _values(value)
    elif isinstance(arguments, tuple) and not all(isinstance(item, str) for item in arguments):
        for item in arguments:
            yield from _values(item)
    elif isinstance(arguments, tuple):
        yield " ".join(arguments)
    else:
        yield arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
