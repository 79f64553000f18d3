"""Terms: texts and queries as SQLite's full-text index takes them.

Its tokenisers cut at blanks and punctuation, which Chinese and Japanese have not. Runs of such scripts are indexed
as pairs of characters that overlap, and the last character alone: a word of two or more is then a phrase of pairs,
a single character the beginning of one. (Its trigram tokeniser cannot find words of two characters, takes 2.2 times
the text instead of 0.3, and is built 14 times as slowly.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from compactor_cli.digest.words import stop_words
from compactor_cli.model.errors import UsageError

if TYPE_CHECKING:
    import sqlite3

# Porter's stems find "migrations" by "migration"; marks belong to the letters before them, as in Thai.
_TOKENIZE = "porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''"
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# More words than this are no question, and each costs a look-up.
_MOST_TERMS = 64


@cache
def _run() -> re.Pattern[str]:
    return re.compile(f"[{_DENSE}]+")


@cache
def _term() -> re.Pattern[str]:
    return re.compile(r'-?"[^"]*"\*?|\S+')


@cache
def _piece() -> re.Pattern[str]:
    return re.compile(r"[^\W_]{3,}")


def create_words(database: sqlite3.Connection) -> None:
    """Make the full-text table ``words`` (rowid, text), which keeps no text itself.

    Raises UsageError where this Python's SQLite cannot.
    """
    import sqlite3

    try:
        database.execute(f"CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='{_TOKENIZE}')")
    except sqlite3.OperationalError as error:
        if "no such module" not in str(error):
            raise
        what = f"the SQLite of this Python ({sqlite3.sqlite_version}) has no full-text search (FTS5)"
        raise UsageError(what, next_step="use a Python from python.org, your distribution, conda or uv") from error


def add_words(database: sqlite3.Connection, number: int, text: str) -> None:
    """Index a text under this number."""
    database.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", (number, spaced(text)))


def spaced(text: str) -> str:
    """The text as it is indexed: runs of scripts without spaces as pairs; nothing that UTF-8 has no bytes for."""
    if text.isascii():
        return text
    return _run().sub(_pairs, text).encode("utf-8", "replace").decode()


def _pairs(found: re.Match[str]) -> str:
    run = found[0]
    return f" {' '.join(run[i : i + 2] for i in range(len(run)))} "


def match_all(query: str) -> str:
    """The query in the index's own language: every word must occur.

    ``"a phrase"`` in quotes, ``begin*`` for beginnings, ``-word`` for what must not occur, ``one OR other``. Raises
    UsageError where there is nothing to look for.
    """
    wanted: list[str] = []
    unwanted: list[str] = []
    alternative = False
    for term in _term().findall(query):
        if term == "OR":
            alternative = bool(wanted)
            continue
        negative = term.startswith("-") and len(term) > 1
        phrase = _phrase(term[1:] if negative else term)
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
    """The query in the index's own language: any of its words; empty if it has none.

    A path or name with punctuation in it counts as a phrase and by its pieces.
    """
    runs = _run().findall(query)
    phrases = [f"{phrase}*" for run in runs if len(run) == 1 and (phrase := _quoted([run]))]
    phrases += [_quoted([run[i : i + 2]]) for run in runs for i in range(len(run) - 1)]
    for word in _run().sub(" ", query).split():
        bare = word.strip("\"'`()[]{}<>.,;:!?").lower()
        if bare in stop_words():
            continue
        pieces = _piece().findall(bare)
        phrases += [_quoted([text]) for text in (bare, *(pieces if len(pieces) > 1 else ()))]
    return " OR ".join(list(dict.fromkeys(filter(None, phrases)))[:_MOST_TERMS])


def _phrase(term: str) -> str:
    """One word or quoted phrase of a query; empty if nothing in it is indexed."""
    is_beginning = term.endswith("*")
    text = term.rstrip("*").strip('"')
    words = spaced(text).split()
    if text and _run().fullmatch(text[-1]):
        if len(words) > 1 and words[-2][1:] == words[-1]:
            words.pop()
        else:
            is_beginning = True
    phrase = _quoted(words)
    return f"{phrase}*" if phrase and is_beginning else phrase


def _quoted(words: list[str]) -> str:
    # The index reads a query up to its first NUL.
    text = " ".join(words).replace('"', '""').replace("\0", " ").encode("utf-8", "replace").decode()
    return f'"{text}"' if any(letter.isalnum() for letter in text) else ""


def wanted_words(query: str) -> Iterator[str]:
    """The words of a query that must or may occur, as people write them; for showing where they stand."""
    for term in _term().findall(query):
        if term != "OR" and not (term.startswith("-") and len(term) > 1):
            yield from term.strip('"*').split()
