"""Search: the records of an archive, or the passages of one transcript, that match a query best.

They are ranked by BM25 as SQLite's full-text search computes it. Records of an archive are found by its index. A
transcript is searched by passages, since one line is too little to rank a long result of a tool as a whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli.archive import index
from compactor_cli.archive.index import DENSE_RUN, ODD_VALUES, Advance, add_words, opened, passages, text_of
from compactor_cli.archive.restore import load_transcript
from compactor_cli.digest.language import STOP_WORDS, detect, terms
from compactor_cli.group.exchanges import is_user_words
from compactor_cli.model.errors import CompactError, UsageError
from compactor_cli.model.marker import record_id
from compactor_cli.model.summary import Answer, Item, Request, Section, SectionItems, Source, Summary
from compactor_cli.model.transcript import Role, Transcript
from compactor_cli.model.value import dataclass

if TYPE_CHECKING:
    import sqlite3


# `tide`, `"low tide"`, `-"low tide"`, `"low ti"*`
_TERM = re.compile(r'-?"[^"]*"\*?|\S+')
_PIECE = re.compile(r"[^\W_]{3,}")
_MOST_TERMS = 64  # further words of a query are ignored: each costs a look-up
SNIPPET_CHARS = 200
# The beginning by which a word is found in a text, at least: endings differ ("migration", "migrations").
_STEM_CHARS = 5
_MOST_PLACES = 20_000  # occurrences of a query's words in a text that a snippet is chosen from
_SPARE = 50  # texts read beyond the limit, since some belong to no record any more
_COLUMNS = "found.score, r.text, t.sha256, r.number, r.role, r.tools, coalesce(r.time, o.archived), o.source"
_HAS_TOOL = "instr(char(10) || lower(r.tools) || char(10), char(10) || ? || char(10)) > 0"
_FROM = """
(SELECT rowid AS text, rank AS score FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?) AS found
CROSS JOIN records r ON r.text = found.text
JOIN transcripts t ON t.id = r.transcript
JOIN originals o ON o.id = t.original
"""
PASSAGE_CHARS = 1_000
FRAME_TOKENS = 8  # for the frame of a quoted excerpt: its number, a line break
# A message longer than the first is searched for by its salient words only, and these are taken from the two ends of
# one longer than the second (the numbers are Qwen-Agent's).
QUERY_CHARS = 1_000
LOOKED_AT_CHARS = 2_000
SALIENT_WORDS = 32
_SHRINK_RATIO = 0.85  # of the budget for excerpts, used in the next attempt if the summary is too large
_ROUNDS = 12


def match_all(query: str) -> str:
    """The query in the index's own language, such that every word must occur.

    A query may have ``"a phrase"`` in quotes, ``begin*`` for beginnings, ``-word`` for what must not occur, and ``one
    OR other``. Raises UsageError if there is no word to search for.
    """
    wanted: list[str] = []
    unwanted: list[str] = []
    alternative = False
    for term in _TERM.findall(query):
        if term == "OR":
            alternative = bool(wanted)
            continue
        negative = term.startswith("-") and len(term) > 1
        term = term[1:] if negative else term
        is_beginning, text = term.endswith("*"), term.rstrip("*").strip('"')
        words = index.spaced(text).split()
        if text and DENSE_RUN.fullmatch(text[-1]):
            if len(words) > 1 and words[-2][1:] == words[-1]:
                words.pop()
            else:
                is_beginning = True
        phrase = _quoted(words)
        if phrase and is_beginning:
            phrase += "*"
        if phrase and negative:
            unwanted.append(phrase)
        elif phrase and alternative:
            wanted[-1] = f"{wanted[-1]} OR {phrase}"
        elif phrase:
            wanted.append(phrase)
        alternative = False
    if not wanted:
        raise UsageError("nothing to search for", next_step="give a word that is to occur", place="QUERY")
    return " NOT ".join((" AND ".join(f"({group})" for group in wanted), *unwanted))


def match_any(query: str) -> str:
    """The query in the index's own language, such that any of its words suffices; empty if it has none.

    Stop words are left out. A path is searched for as a phrase and by its pieces.
    """
    runs = DENSE_RUN.findall(query)
    phrases = [f"{phrase}*" for run in runs if len(run) == 1 and (phrase := _quoted([run]))]
    phrases += [_quoted([run[i : i + 2]]) for run in runs for i in range(len(run) - 1)]
    for word in DENSE_RUN.sub(" ", query).split():
        bare = word.strip("\"'`()[]{}<>.,;:!?").lower()
        if bare in STOP_WORDS:
            continue
        pieces = _PIECE.findall(bare)
        phrases += [_quoted([text]) for text in (bare, *(pieces if len(pieces) > 1 else ()))]
    return " OR ".join(list(dict.fromkeys(filter(None, phrases)))[:_MOST_TERMS])


def _quoted(words: list[str]) -> str:
    # The index would read a query only up to its first NUL.
    text = " ".join(words).replace('"', '""').replace("\0", " ").encode("utf-8", "replace").decode()
    return f'"{text}"' if any(letter.isalnum() for letter in text) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which records are searched; a field that is empty or None does not restrict them."""

    session: str = ""  # the beginning of a transcript's hash, or a part of the path it was read from
    role: str = ""
    tool: str = ""
    since: int | None = None  # in Unix seconds; a record without a time has that of its archiving
    until: int | None = None  # in Unix seconds, exclusive


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A record that was found."""

    archive: Path
    sha256: str  # of its transcript
    record: int  # counted from 0
    score: float  # by BM25: larger is better
    role: str
    tools: tuple[str, ...]  # that it calls or has results of
    time: int  # in Unix seconds
    source: str  # the path it was archived from
    copies: int  # other records with the same text
    snippet: str = ""

    @property
    def id(self) -> str:
        """The id by which `expand` finds the record."""
        return record_id(self.sha256, self.record)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of a search."""

    hits: tuple[Hit, ...]  # the best first
    any_word: bool = False  # whether no record holds all words, and these hold some
    warnings: tuple[str, ...] = ()  # originals that could not be indexed


def search(
    archives: Iterable[Path],
    query: str,
    *,
    only: Filter | None = None,
    limit: int = 10,
    rebuild: bool = False,
    advance: Advance = lambda count: None,
) -> SearchResult:
    """The best ``limit`` records, each with a snippet.

    The indexes are brought up to date first, or made again with ``rebuild``. Every word of the query must occur; if no
    record holds all of them, any word suffices. Raises as `match_all` and `opened`.
    """
    import sqlite3

    index_query = _IndexQuery(all_words=match_all(query), any_word=match_any(query), only=only or Filter(), limit=limit)
    exact: list[Hit] = []
    loose: list[Hit] = []
    warnings: list[str] = []
    for archive in archives:
        try:
            with opened(archive, rebuild=rebuild, advance=advance) as database:
                hits, is_exact, failed = _answer(database, archive, index_query)
        except (sqlite3.DatabaseError, *ODD_VALUES) as error:
            # A damaged index, which may also return values of any type, is made again.
            if isinstance(error, sqlite3.DatabaseError) and not index.is_damage(error):
                raise
            with opened(archive, rebuild=True, advance=advance) as database:
                hits, is_exact, failed = _answer(database, archive, index_query)
        (exact if is_exact else loose).extend(hits)
        warnings += failed
    by_id: dict[str, Hit] = {}
    for hit in sorted(exact or loose, key=lambda hit: -hit.score):
        by_id.setdefault(hit.id, hit)  # the same record in two archives is one hit
    best = list(by_id.values())[:limit]
    load = lru_cache(maxsize=limit)(lambda archive, sha256: load_transcript([archive], sha256))
    for at, hit in enumerate(best):
        # There is no snippet if the archive can no longer be read.
        with suppress(CompactError, IndexError):
            text = index.searched_text(load(hit.archive, hit.sha256).messages[hit.record])
            best[at] = replace(hit, snippet=snippet(text, query))
    return SearchResult(hits=tuple(best), any_word=bool(best) and not exact, warnings=tuple(warnings))


@dataclass(frozen=True, slots=True, kw_only=True)
class _IndexQuery:
    """A query in the index's own language, see `match_all` and `match_any`."""

    all_words: str
    any_word: str
    only: Filter
    limit: int


def _answer(database: sqlite3.Connection, archive: Path, query: _IndexQuery) -> tuple[tuple[Hit, ...], bool, list[str]]:
    """The hits, whether they hold all words, and a warning for each original that could not be indexed."""
    hits = _hits(database, archive, query.all_words, query)
    is_exact = bool(hits)
    if not is_exact and query.any_word:
        hits = _hits(database, archive, query.any_word, query)
    rows = database.execute("SELECT sha256, trouble FROM originals WHERE trouble <> '' ORDER BY sha256")
    failed = [f"{archive}: {sha256[:16]}… could not be indexed: {reason}" for sha256, reason in rows]
    return hits, is_exact, failed


def _hits(database: sqlite3.Connection, archive: Path, match: str, query: _IndexQuery) -> tuple[Hit, ...]:
    """The best records, best first; of those with the same text, only the one archived last.

    Without a filter, only the best texts are read first; all are read if too many of those belong to no record any
    more.
    """
    if query.only == Filter():
        best = query.limit + _SPARE
        hits = tuple(_rows(database, archive, match, query, best))
        more = database.execute("SELECT 1 FROM words WHERE words MATCH ? LIMIT 1 OFFSET ?", (match, best))
        if len(hits) == query.limit or more.fetchone() is None:
            return hits
    return tuple(_rows(database, archive, match, query, -1))


def _rows(database: sqlite3.Connection, archive: Path, match: str, query: _IndexQuery, best: int) -> Iterator[Hit]:
    only = query.only
    filters: tuple[tuple[object, str, tuple[Any, ...]], ...] = (
        (only.session, "(t.sha256 GLOB ? || '*' OR instr(o.source, ?) > 0)", (only.session.lower(), only.session)),
        (only.role, "r.role = ?", (only.role,)),
        (only.tool, _HAS_TOOL, (only.tool.lower(),)),
        (only.since is not None, "coalesce(r.time, o.archived) >= ?", (only.since,)),
        (only.until is not None, "coalesce(r.time, o.archived) < ?", (only.until,)),
    )
    conditions = ["1", *(condition for is_given, condition, _ in filters if is_given)]
    values = [value for is_given, _, parameters in filters if is_given for value in parameters]
    statement = (
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE {' AND '.join(conditions)}"  # noqa: S608 -- constants
        " ORDER BY found.score, found.text, o.archived DESC, t.id, r.number"
    )
    seen: set[int] = set()
    for score, text, sha256, number, role, tools, time, source in database.execute(statement, (match, best, *values)):
        if text in seen:
            continue
        if len(seen) == query.limit:
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


def snippet(text: str, query: str, most_chars: int = SNIPPET_CHARS) -> str:
    """The stretch of a text with the most different words of the query, as one line, with ``…`` where it is cut."""
    found = islice(_pattern(query).finditer(text), _MOST_PLACES)
    places = [(*one.span(), one[0].lower()[:_STEM_CHARS]) for one in found]
    start, best, ahead = 0, 0, 0
    within: Counter[str] = Counter()
    for number, (first, _, stem) in enumerate(places):
        while ahead < len(places) and (ahead == number or places[ahead][1] <= first + most_chars // 2):
            within[places[ahead][2]] += 1
            ahead += 1
        if (count := len(+within)) > best:
            start, best = max(0, first - most_chars // 4), count
        within[stem] -= 1
    stop = min(len(text), start + most_chars)
    while 0 < start < len(text) and best and text[start - 1].isalnum() and text[start - 1].isascii():
        start -= 1
    line = " ".join(text[start:stop].split())
    return f"{'… ' if start else ''}{line}{' …' if stop < len(text) else ''}"


def marks(line: str, query: str) -> list[tuple[int, int]]:
    """The (start, stop) of each word of the query in a line."""
    return [found.span() for found in _pattern(query).finditer(line)]


def _pattern(query: str) -> re.Pattern[str]:
    """A pattern for the words of a query as they may occur in a text, with other endings."""
    asked = (term for term in _TERM.findall(query) if term != "OR" and (term == "-" or not term.startswith("-")))
    words = dict.fromkeys(word.lower() for term in asked for word in term.strip('"*').split())
    # A word that ends in a digit is a name, and has no other endings.
    stems = (word if word[-1].isdigit() else word[: max(_STEM_CHARS, len(word) - 3)] for word in words)
    pieces = (re.escape(stem) + (r"\w*" if stem.isascii() else "") for stem in stems)
    return re.compile("|".join(f"(?<![a-z0-9]){piece}" if piece[0].isascii() else piece for piece in pieces), re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Text of one record, word for word."""

    record: int  # position in the transcript
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

    ``records`` are those to search (default: all except for bookkeeping). The tokens of all excerpts, by ``count`` and
    with `FRAME_TOKENS` for each, are within ``budget_tokens``. A passage that has no word of the query is never taken.
    Deterministic. Raises UsageError if SQLite has no full-text search.
    """
    import sqlite3

    places = range(len(transcript.messages)) if records is None else records
    found = [
        Excerpt(record=i, text=text)
        for i in places
        if not transcript.messages[i].is_meta
        for text in passages(text_of(transcript.messages[i]), passage_chars)
    ]
    if not (wanted := match_any(query)):
        return ()
    left_tokens = budget_tokens
    taken: list[int] = []
    with closing(sqlite3.connect(":memory:")) as database:
        index.create_words(database)
        for number, passage in enumerate(found):
            add_words(database, number, passage.text)
        # Best first; of equal ones the earlier.
        rows = database.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words), rowid", (wanted,))
        for (number,) in rows:
            cost_tokens = count(found[number].text) + FRAME_TOKENS
            if cost_tokens <= left_tokens:
                taken.append(number)
                left_tokens -= cost_tokens
            if left_tokens <= FRAME_TOKENS:
                break
    return tuple(_joined(found, sorted(taken)))


def _joined(found: Sequence[Excerpt], taken: Iterable[int]) -> Iterator[Excerpt]:
    """The passages of these ascending numbers; those that follow one another in a record are one."""
    for _, run in groupby(enumerate(taken), key=lambda one: (found[one[1]].record, one[1] - one[0])):
        neighbours = [found[number] for _, number in run]
        yield Excerpt(record=neighbours[0].record, text="".join(passage.text for passage in neighbours))


class OmissionNotice:
    """A summariser that only states that there were records, and nothing of their content."""

    def summarise(self, request: Request) -> Answer:
        """A summary without sections, in the language of the conversation."""
        return Answer(summary=Summary(source=Source.NOTICE, sections=(), language=language_of(request)))


def language_of(request: Request) -> str:
    """The language that the request names, or else that of the user's messages among the covered records."""
    if request.language != "auto":
        return request.language
    messages = request.transcript.messages
    return detect(messages[i].text for i in request.covered if messages[i].role is Role.USER)


class Retrieval:
    """A summariser that quotes passages found by a search. Deterministic, and without a model."""

    def summarise(self, request: Request) -> Answer:
        """The excerpts within the budget, each with its record; no sections if no passage has a word of the query."""
        language = language_of(request)
        query = " ".join(filter(None, (query_of(request), request.focus)))
        empty = Summary(source=Source.EXCERPTS, sections=(), language=language)
        budget = request.budget_tokens - request.count(request.render(empty))
        for _ in range(_ROUNDS):
            found = excerpts(
                request.transcript, query, budget_tokens=max(budget, 0), count=request.count, records=request.covered
            )
            items = tuple(Item(text=excerpt.text.strip("\n"), records=(excerpt.record,)) for excerpt in found)
            sections = (SectionItems(section=Section.HISTORY, items=items),) if items else ()
            summary = Summary(source=Source.EXCERPTS, sections=sections, language=language)
            if request.count(request.render(summary)) <= request.budget_tokens:
                return Answer(summary=summary)
            budget = int(budget * _SHRINK_RATIO)
        return Answer(summary=empty)


def query_of(request: Request) -> str:
    """The newest message of the user; of a long one, only the words that the fewest covered records have."""
    messages = request.transcript.messages
    text = next((message.text for message in reversed(messages) if is_user_words(message)), "")
    if len(text) <= QUERY_CHARS:
        return text
    half = LOOKED_AT_CHARS // 2
    wanted = dict.fromkeys(terms(text if len(text) <= LOOKED_AT_CHARS else f"{text[:half]}\n{text[-half:]}"))
    found: Counter[str] = Counter()
    for i in request.covered:
        found.update(wanted.keys() & set(terms(text_of(messages[i]))))
    rarest = sorted((word for word in wanted if found[word]), key=lambda word: found[word])[:SALIENT_WORDS]
    return " ".join(word for word in wanted if word in set(rarest))
