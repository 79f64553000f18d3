"""What the files of sessions have in common: times, and boundaries that repeat records."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta


def later(timestamp: str, milliseconds: int) -> str:
    """An ISO 8601 time moved by milliseconds, in UTC; the text itself if it is not a time."""
    try:
        moment = datetime.fromisoformat(timestamp) + timedelta(milliseconds=milliseconds)
    except (ValueError, OverflowError):
        return timestamp
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def matched(keys: Sequence[str], held: Sequence[tuple[int, str]]) -> tuple[int, ...]:
    """For each item of a boundary, by its key, the record before it that says the same; -1 where none does.

    What stands after the last item of the boundary's own is the tail and is looked for from the end, the rest
    from the start: words like "Done." may come again and again. Each record is matched once.
    """
    places: dict[str, deque[int]] = {}
    for i, key in held:
        places.setdefault(key, deque()).append(i)
    own = [n for n, key in enumerate(keys) if key not in places]
    tail_start = own[-1] + 1 if own else len(keys)
    found = [-1] * len(keys)
    for n in range(len(keys) - 1, tail_start - 1, -1):
        if places[keys[n]]:
            found[n] = places[keys[n]].pop()
    for n in range(tail_start):
        if places.get(keys[n]):
            found[n] = places[keys[n]].popleft()
    return tuple(found)
