"""Events for the tests of the digest's statistical half."""

from __future__ import annotations

from hypothesis import strategies as st

from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.tools import ToolKind

WORDS = [
    "src/a.py",
    "src/b.py",
    "load_items",
    "parseLine",
    "8080",
    "#12",
    "--fast",
    "the",
    "value",
    "fails",
    "https://x.y/z",
]


def event(kind: EventKind, text: str, record: int = 0, **fields: object) -> Event:
    return Event(kind=kind, text=text, record=record, **fields)  # type: ignore[arg-type]


lines = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
texts = st.lists(lines, min_size=1, max_size=5).map("\n".join)
one_event = st.builds(
    Event,
    kind=st.sampled_from(list(EventKind)),
    record=st.integers(0, 50),
    text=texts,
    tool=st.sampled_from(list(ToolKind)),
    is_error=st.booleans(),
)
event_lists = st.lists(one_event, max_size=8)
