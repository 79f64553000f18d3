"""Excerpts: the passages of one transcript that say most about a query, within a budget.

Ranked by BM25 (as SQLite's FTS5 computes it) over passages, not records: a long result of a tool is not found as a
whole because of one line in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from compactor_cli.archive.terms import add_words, create_words, match_any
from compactor_cli.archive.texts import passages, text_of
from compactor_cli.model.transcript import Transcript

PASSAGE_CHARS = 1_000
# What stands around an excerpt where it is quoted: its number, a line break.
FRAME_TOKENS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Words of one record (its index), as they stand there."""

    record: int
    text: str


def excerpts(
    transcript: Transcript,
    query: str,
    *,
    budget_tokens: int,
    count: Callable[[str], int],
    records: Iterable[int] | None = None,
    passage_chars: int = PASSAGE_CHARS,
) -> tuple[Excerpt, ...]:
    """The best passages for the words of ``query``, in the order of the transcript; neighbours are joined.

    ``records``: where to look (default: everything but bookkeeping). The tokens of all excerpts, by ``count`` and
    `FRAME_TOKENS` each, are within ``budget_tokens``. A passage that shares no word with the query is never taken.
    Deterministic. Raises UsageError where SQLite has no full-text search.
    """
    places = range(len(transcript.messages)) if records is None else records
    found = [
        Excerpt(record=i, text=text)
        for i in places
        if not transcript.messages[i].is_meta
        for text in passages(text_of(transcript.messages[i]), passage_chars)
    ]
    left_tokens = budget_tokens
    taken: list[int] = []
    for number in _ranked(found, query):
        cost_tokens = count(found[number].text) + FRAME_TOKENS
        if cost_tokens <= left_tokens:
            taken.append(number)
            left_tokens -= cost_tokens
        if left_tokens <= FRAME_TOKENS:
            break
    return _joined(found, sorted(taken))


def _ranked(found: list[Excerpt], query: str) -> Iterator[int]:
    """Numbers of passages, the best first; of equal ones the earlier."""
    import sqlite3

    if not (wanted := match_any(query)):
        return
    with closing(sqlite3.connect(":memory:")) as database:
        create_words(database)
        for number, passage in enumerate(found):
            add_words(database, number, passage.text)
        rows = database.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words), rowid", (wanted,))
        for (number,) in rows:
            yield number


def _joined(found: list[Excerpt], numbers: list[int]) -> tuple[Excerpt, ...]:
    joined: list[Excerpt] = []
    last = -1
    for number in numbers:
        passage = found[number]
        if joined and number == last + 1 and joined[-1].record == passage.record:
            joined[-1] = Excerpt(record=passage.record, text=joined[-1].text + passage.text)
        else:
            joined.append(passage)
        last = number
    return tuple(joined)
