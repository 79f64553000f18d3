"""Indexing: what the transcripts of an archive say, brought into the tables of the index.

A text that stands in many records (the same system prompt, the same session archived again) is indexed once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from compactor_cli.archive.layout import read_parts
from compactor_cli.archive.stored_transcripts import transcripts_in
from compactor_cli.archive.terms import add_words, create_words
from compactor_cli.archive.texts import searched_text, tools_of
from compactor_cli.llm.flatten import tool_names
from compactor_cli.model.errors import CompactError
from compactor_cli.model.transcript import Message, Transcript
from compactor_cli.read.jsonl import OnInvalid

if TYPE_CHECKING:
    import sqlite3

# Above this, a number of a timestamp is in milliseconds.
_MOST_SECONDS = 100_000_000_000

_TABLES = (
    "CREATE TABLE shards (name TEXT PRIMARY KEY, mtime_ns INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE originals (
        id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, look TEXT NOT NULL, source TEXT NOT NULL,
        archived INTEGER NOT NULL, trouble TEXT NOT NULL
    )""",
    "CREATE TABLE transcripts (id INTEGER PRIMARY KEY, original INTEGER NOT NULL, sha256 TEXT NOT NULL)",
    "CREATE TABLE texts (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL UNIQUE)",
    """CREATE TABLE records (
        text INTEGER NOT NULL, transcript INTEGER NOT NULL, number INTEGER NOT NULL, role TEXT NOT NULL,
        tools TEXT NOT NULL, time INTEGER, PRIMARY KEY (text, transcript, number)
    ) WITHOUT ROWID""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedOriginal:
    """A stored original, and what is known of it. ``look`` changes when its list of transcripts does."""

    sha256: str
    path: Path
    sidecar: Path | None
    look: str
    source: str = ""
    archived: int = 0


def create_tables(database: sqlite3.Connection) -> None:
    """Make the empty index. Raises UsageError where SQLite has no full-text search."""
    create_words(database)
    for table in _TABLES:
        database.execute(table)
    # Of what is indexed at once, so much is sorted in memory: a fifth faster than with the default of 1 MB.
    database.execute("INSERT INTO words(words, rank) VALUES ('hashsize', ?)", (16 << 20,))


def add_original(database: sqlite3.Connection, original: IndexedOriginal) -> int:
    """Index what was compacted of an original; the characters indexed. One that cannot be read is noted as such."""
    row = (original.sha256, original.look, original.source, original.archived, "")
    number = database.execute(
        "INSERT INTO originals(sha256, look, source, archived, trouble) VALUES (?, ?, ?, ?, ?)", row
    ).lastrowid
    size_chars = 0
    try:
        for transcript in _compacted(original):
            size_chars += _add_transcript(database, number or 0, transcript)
    except CompactError as error:
        database.execute("UPDATE originals SET trouble = ? WHERE id = ?", (error.what, number))
    return size_chars


def remove_originals(database: sqlite3.Connection, sha256s: list[str]) -> None:
    """Forget what these originals held. Their words stay in the full-text table, where nothing leads to them."""
    for sha256 in sha256s:
        among = "(SELECT id FROM originals WHERE sha256 = ?)"
        database.execute(
            f"DELETE FROM records WHERE transcript IN (SELECT id FROM transcripts WHERE original IN {among})",  # noqa: S608 -- constants
            (sha256,),
        )
        database.execute(f"DELETE FROM transcripts WHERE original IN {among}", (sha256,))  # noqa: S608
        database.execute("DELETE FROM originals WHERE sha256 = ?", (sha256,))


def text_hash(text: str) -> int:
    """64 bits by which a text is known."""
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), signed=True)


def _compacted(original: IndexedOriginal) -> Iterator[Transcript]:
    """The transcripts that can be asked for by their hash: those that were compacted."""
    wanted = {original.sha256: OnInvalid.KEEP}
    if original.sidecar:
        wanted = {part.sha256: part.on_invalid for part in read_parts(original.sidecar)}
    on_invalid = OnInvalid.DROP if OnInvalid.DROP in wanted.values() else OnInvalid.KEEP
    return (transcript for transcript in transcripts_in(original.path, on_invalid) if transcript.sha256 in wanted)


def _add_transcript(database: sqlite3.Connection, original: int, transcript: Transcript) -> int:
    number = database.execute(
        "INSERT INTO transcripts(original, sha256) VALUES (?, ?)", (original, transcript.sha256)
    ).lastrowid
    names = tool_names(transcript.messages)
    size_chars = 0
    for i, message in enumerate(transcript.messages):
        text = searched_text(message) if _is_conversation(message) else ""
        if not text.strip():
            continue
        size_chars += len(text)
        tools = "\n".join(tools_of(message, names)).encode("utf-8", "replace").decode()
        row = (_text(database, text), number, i + 1, message.role.value, tools, unix_seconds(message.timestamp))
        database.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", row)
    return size_chars


def _is_conversation(message: Message) -> bool:
    """Whether it is part of the conversation. What a summary written by compact says is in the archive in its own
    words.
    """
    return not message.is_meta and (message.summary is None or message.summary.origin != "compact")


def _text(database: sqlite3.Connection, text: str) -> int:
    """The number of this text, indexed if it is new."""
    known = text_hash(text)
    added = database.execute("INSERT OR IGNORE INTO texts(hash) VALUES (?)", (known,))
    if added.rowcount:
        number = added.lastrowid or 0
        add_words(database, number, text)
        return number
    found: int = database.execute("SELECT id FROM texts WHERE hash = ?", (known,)).fetchone()[0]
    return found


def unix_seconds(timestamp: str) -> int | None:
    """A time as clients write it (ISO 8601, seconds or milliseconds since 1970); None: it is not a time."""
    with suppress(ValueError, OverflowError):
        number = float(timestamp)
        return int(number / 1_000 if number > _MOST_SECONDS else number)
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(timestamp)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    return None
