"""Scrubbing: words that left a conversation leave the copies of them, too, that its document holds next to the
messages.

Copies are rarely whole messages: a log repeats a command here and its output there. They are known by their lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from compactor_cli.model.transcript import Transcript

# In place of a text that holds a line of what was removed.
LEFT_OUT = "[left out by compaction]"
# Shorter lines ("else:", "import os") stand anywhere and tell nothing.
_LEAST_CHARS = 16
# Quotes part lines too: the copy may be JSON within a string.
_BREAK = re.compile(r'\\n|\n|\\?"')

Lines = frozenset[str]


def gone_lines(source: Transcript, composed: Transcript) -> Lines:
    """The lines of records that were removed or shortened and that no record left over holds."""
    staying = {record.raw for record in composed.records}
    before = [record.value for record in source.records if record.raw not in staying]
    return lines_between(before, [record.value for record in composed.records]) if before else frozenset()


def lines_between(before: Any, after: Any) -> Lines:
    """The lines that only the first of two values holds."""
    gone = {line for text in _texts(before) for line in _lines(text)}
    return frozenset(gone.difference(line for text in _texts(after) for line in _lines(text)))


def scrubbed(value: Any, gone: Lines) -> Any:
    """The value with every text that holds such a line replaced; keys and everything else stay."""
    if isinstance(value, str):
        return LEFT_OUT if not gone.isdisjoint(_lines(value)) else value
    if isinstance(value, dict):
        return {key: scrubbed(item, gone) for key, item in value.items()}
    return [scrubbed(item, gone) for item in value] if isinstance(value, list) else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _lines(text: str) -> Iterator[str]:
    """The lines of a text worth knowing again, without the blanks around them."""
    lines = (line.strip() for line in _BREAK.split(text))
    return (line for line in lines if len(line) >= _LEAST_CHARS)
