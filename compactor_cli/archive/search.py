"""Search: the records of an archive that say something, the best first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from compactor_cli.archive.index import ODD_VALUES, IndexStart, Progress, is_damage, opened
from compactor_cli.archive.stored_transcripts import load_transcript
from compactor_cli.archive.terms import match_all, match_any, wanted_words
from compactor_cli.archive.texts import searched_text
from compactor_cli.model.errors import CompactError
from compactor_cli.model.marker import record_id
from compactor_cli.model.transcript import Transcript

if TYPE_CHECKING:
    import sqlite3

SNIPPET_CHARS = 200
# Of a word, so much must agree where it is looked for in a text: endings differ ("migration", "migrations").
_STEM_CHARS = 5
_MOST_PLACES = 200
# Texts looked at beyond the limit, in place of those that are in no record any more.
_SPARE = 50

_COLUMNS = "found.score, r.text, t.sha256, r.number, r.role, r.tools, coalesce(r.time, o.archived), o.source"
_FROM = """
(SELECT rowid AS text, rank AS score FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?) AS found
CROSS JOIN records r ON r.text = found.text
JOIN transcripts t ON t.id = r.transcript
JOIN originals o ON o.id = t.original
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which records are looked at; what is empty does not matter.

    ``session``: the beginning of a transcript's hash, or a part of the path it was read from. ``since`` and
    ``until``: unix seconds; a record without a time has that of its archiving.
    """

    session: str = ""
    role: str = ""
    tool: str = ""
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One record. ``score``: BM25, larger is better; ``copies``: other records that say the same."""

    archive: Path
    sha256: str
    record: int
    score: float
    role: str
    tools: tuple[str, ...]
    time: int
    source: str
    copies: int
    snippet: str = ""

    @property
    def id(self) -> str:
        """What `expand` finds the record by."""
        return record_id(self.sha256, self.record)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Hits, the best first. ``any_word``: nothing holds all words of the query; these hold some.

    ``troubles``: originals that could not be indexed, with the reason.
    """

    hits: tuple[Hit, ...]
    any_word: bool = False
    troubles: tuple[str, ...] = ()


def search(
    archives: Iterable[Path],
    query: str,
    *,
    only: Filter | None = None,
    limit: int = 10,
    start: IndexStart = IndexStart.KNOWN,
    progress: Progress = lambda done, total: None,
) -> SearchResult:
    """The best ``limit`` records, each with a snippet. The indexes are brought up to date first.

    Every word must occur (see `match_all`); where no record holds all of them, any. Raises as `match_all` and
    `opened`.
    """
    wanted = _Wanted(all_words=match_all(query), any_word=match_any(query), only=only or Filter(), limit=limit)
    asked = [_asked(archive, wanted, start, progress) for archive in archives]
    exact = [hit for answer in asked for hit in answer.exact]
    loose = [hit for answer in asked for hit in answer.loose]
    best = _each_once(sorted(exact or loose, key=lambda hit: -hit.score))[:limit]
    load = lru_cache(maxsize=limit)(lambda archive, sha256: load_transcript([archive], sha256))
    return SearchResult(
        hits=tuple(replace(hit, snippet=_snippet_of(hit, query, load)) for hit in best),
        any_word=bool(best) and not exact,
        troubles=tuple(trouble for answer in asked for trouble in answer.troubles),
    )


def _each_once(hits: Iterable[Hit]) -> list[Hit]:
    """The same record of two archives is one hit, the first."""
    found: dict[str, Hit] = {}
    for hit in hits:
        found.setdefault(hit.id, hit)
    return list(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is asked of each index, in its own language."""

    all_words: str
    any_word: str
    only: Filter
    limit: int


class _Answer(NamedTuple):
    exact: tuple[Hit, ...]
    loose: tuple[Hit, ...]
    troubles: tuple[str, ...]


def _asked(archive: Path, wanted: _Wanted, start: IndexStart, progress: Progress) -> _Answer:
    """What the index of this archive says; a damaged one is made anew."""
    import sqlite3

    try:
        with opened(archive, start, progress) as database:
            return _answer(database, archive, wanted)
    except (sqlite3.DatabaseError, *ODD_VALUES) as error:
        # A damaged file may also answer with values of any type.
        if isinstance(error, sqlite3.DatabaseError) and not is_damage(error):
            raise
        with opened(archive, IndexStart.NOTHING, progress) as database:
            return _answer(database, archive, wanted)


def _answer(database: sqlite3.Connection, archive: Path, wanted: _Wanted) -> _Answer:
    exact = _hits(database, archive, wanted.all_words, wanted)
    loose = () if exact or not wanted.any_word else _hits(database, archive, wanted.any_word, wanted)
    return _Answer(exact, loose, tuple(_troubles(database, archive)))


def _hits(database: sqlite3.Connection, archive: Path, match: str, wanted: _Wanted) -> tuple[Hit, ...]:
    """The best records, each text once: where it was archived last.

    Without a filter, the best texts are those of the best records, except for those that are in no record any more.
    """
    if wanted.only == Filter():
        best = wanted.limit + _SPARE
        hits = tuple(_rows(database, archive, match, wanted, best))
        if len(hits) == wanted.limit or not _is_cut(database, match, best):
            return hits
    return tuple(_rows(database, archive, match, wanted, -1))


def _is_cut(database: sqlite3.Connection, match: str, best: int) -> bool:
    """Whether more texts match than were looked at."""
    row = database.execute("SELECT 1 FROM words WHERE words MATCH ? LIMIT 1 OFFSET ?", (match, best)).fetchone()
    return row is not None


def _rows(database: sqlite3.Connection, archive: Path, match: str, wanted: _Wanted, best: int) -> Iterator[Hit]:
    conditions, values = _conditions(wanted.only)
    statement = (
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE {' AND '.join(conditions)}"  # noqa: S608 -- constants
        " ORDER BY found.score, found.text, o.archived DESC, t.id, r.number"
    )
    seen: set[int] = set()
    for score, text, sha256, number, role, tools, time, source in database.execute(statement, (match, best, *values)):
        if text in seen:
            continue
        if len(seen) == wanted.limit:
            return
        seen.add(text)
        copies = database.execute("SELECT count(*) - 1 FROM records WHERE text = ?", (text,)).fetchone()[0]
        yield Hit(
            archive=archive,
            sha256=sha256,
            record=number - 1,
            score=-score,
            role=role,
            tools=tuple(filter(None, tools.split("\n"))),
            time=time,
            source=source,
            copies=copies,
        )


def _conditions(only: Filter) -> tuple[list[str], list[Any]]:
    filters = (
        (only.session, "(t.sha256 GLOB ? || '*' OR instr(o.source, ?) > 0)", (only.session.lower(), only.session)),
        (only.role, "r.role = ?", (only.role,)),
        (
            only.tool,
            "instr(char(10) || lower(r.tools) || char(10), char(10) || ? || char(10)) > 0",
            (only.tool.lower(),),
        ),
        (only.since is not None, "coalesce(r.time, o.archived) >= ?", (only.since,)),
        (only.until is not None, "coalesce(r.time, o.archived) < ?", (only.until,)),
    )
    conditions = ["1"]
    values: list[Any] = []
    for is_given, condition, parameters in filters:
        if is_given:
            conditions.append(condition)
            values += parameters
    return conditions, values


def _troubles(database: sqlite3.Connection, archive: Path) -> Iterator[str]:
    rows = database.execute("SELECT sha256, trouble FROM originals WHERE trouble <> '' ORDER BY sha256")
    return (f"{archive}: {sha256[:16]}… could not be indexed: {trouble}" for sha256, trouble in rows)


def _snippet_of(hit: Hit, query: str, load: Callable[[Path, str], Transcript]) -> str:
    """The words around what was looked for; empty where the archive cannot be read any more."""
    try:
        message = load(hit.archive, hit.sha256).messages[hit.record]
    except (CompactError, IndexError):
        return ""
    return snippet(searched_text(message), query)


def snippet(text: str, query: str, most_chars: int = SNIPPET_CHARS) -> str:
    """The stretch of a text in which most words of the query stand, in one line, with ``…`` where it was cut."""
    places = [found.span() for found in islice(_pattern(query).finditer(text), _MOST_PLACES)]
    start, best = 0, 0
    for first, _ in places:
        within = {text[a:b].lower()[:_STEM_CHARS] for a, b in places if first <= a and b <= first + most_chars // 2}
        if len(within) > best:
            start, best = max(0, first - most_chars // 4), len(within)
    stop = min(len(text), start + most_chars)
    while 0 < start < len(text) and best and text[start - 1].isalnum() and text[start - 1].isascii():
        start -= 1
    line = " ".join(text[start:stop].split())
    return f"{'… ' if start else ''}{line}{' …' if stop < len(text) else ''}"


def marks(line: str, query: str) -> list[tuple[int, int]]:
    """Where the words of the query stand in a line."""
    return [found.span() for found in _pattern(query).finditer(line)]


def _pattern(query: str) -> re.Pattern[str]:
    """The words of a query as they may stand in a text."""
    words = dict.fromkeys(word.lower() for word in wanted_words(query))
    pieces = (re.escape(word[: max(_STEM_CHARS, len(word) - 3)]) + (r"\w*" if word.isascii() else "") for word in words)
    return re.compile("|".join(f"(?<![a-z0-9]){piece}" if piece[0].isascii() else piece for piece in pieces), re.I)
