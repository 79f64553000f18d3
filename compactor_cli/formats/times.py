"""Times as clients write them."""

from __future__ import annotations

from datetime import datetime, timedelta


def later(timestamp: str, milliseconds: int) -> str:
    """An ISO 8601 time moved by milliseconds, in UTC; the text itself if it is not a time."""
    try:
        moment = datetime.fromisoformat(timestamp) + timedelta(milliseconds=milliseconds)
    except (ValueError, OverflowError):
        return timestamp
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
