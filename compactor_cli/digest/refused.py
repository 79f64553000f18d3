"""Refusals of a service: that a call failed, and the amounts that the assistant worked out and it did not accept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from compactor_cli.digest.commands import ERROR_PATTERN, error_line
from compactor_cli.digest.events import Event, EventKind, is_lookup
from compactor_cli.digest.statements import ELLIPSIS

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.,-])\d+(?:\.\d+)?(?![\w-])")
# The record of an error, and the amounts that it gives instead.
Refusal = tuple[int, frozenset[str]]
# A smaller number is said by chance.
_LEAST = 100


def failure_of(result: Event) -> str:
    """What went wrong as the result of a call to a service says it; empty where nothing did."""
    text = result.text.strip()
    if text.startswith("{"):
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {}
        named = [answer[key] for key in _ERROR_KEYS if answer.get(key)]
        if named or answer.get("ok") is False or answer.get("success") is False:
            return str(next((one for one in (*named, answer.get("message")) if isinstance(one, str)), error_line(text)))
    failed = result.is_error or ERROR_PATTERN.search(text.partition("\n")[0])
    return (error_line(text) or ELLIPSIS) if failed else ""


_ERROR_KEYS = ("error", "errors", "error_message", "fehler", "erreur", "错误", "エラー")


def _amounts(text: str) -> set[str]:
    found = (number.replace(",", "") for number in _NUMBER.findall(text))
    plain = (re.sub(r"\.0+$", "", number) for number in found)
    return {number for number in plain if float(number) >= _LEAST}


def refused_amounts(events: Sequence[Event], kept: Sequence[Event]) -> Mapping[str, Refusal]:
    """The amounts that the assistant stated and called with, and that an error gives next to another one.

    An amount that a call brings later is none. ``kept``: records that stay after these show errors, too.
    """
    stated, found = set[str](), dict[str, Refusal]()
    for part, event in chain(((events, event) for event in events), ((kept, event) for event in kept)):
        if event.kind is EventKind.ASSISTANT:
            stated |= _amounts(event.text)
        elif event.kind is not EventKind.RESULT or event.call < 0 or is_lookup(event.name):
            continue
        elif error := failure_of(event):
            named = _amounts(error)
            refused = named & stated & _given(part[event.call].arguments)
            if others := named - refused:
                found |= dict.fromkeys(refused, (event.record, frozenset(others)))
        else:
            for amount in _amounts(event.text):
                found.pop(amount, None)
    return found


def _given(arguments: Mapping[str, Any] | str) -> set[str]:
    """The amounts that a call was given; of a list of objects also what they come to."""
    if isinstance(arguments, str):
        return _amounts(arguments)
    found = _amounts(" ".join(map(str, arguments.values())))
    for value in arguments.values():
        rows = [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []
        for key in {key for row in rows for key in row}:
            numbers = [row[key] for row in rows if type(row.get(key)) in (int, float)]
            found |= _amounts(f"{sum(numbers)}")
    return found


def marked_amounts(text: str, record: int, analysis: Analysis) -> str:
    """A text of a record, with a mark at the first of each amount that was refused after that.

    What gives the other amount as well says it itself.
    """
    given = _amounts(text) if analysis.refused else set()
    later = {
        amount for amount, (at, others) in analysis.refused.items() if at > record and given.isdisjoint(others)
    } & given

    def mark(found: re.Match[str]) -> str:
        amount = next(iter(_amounts(found[0])), "")
        if amount not in later:
            return found[0]
        later.remove(amount)
        return f"{found[0]} ({analysis.words.overruled})"

    return _NUMBER.sub(mark, text) if later else text
