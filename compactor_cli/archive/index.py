"""Index: a full-text index of an archive, in one SQLite file inside it, brought up to date at each search.

Only originals that are not in it are read; those that are gone are removed. It holds words and where they stand, but no
text: everything in it comes from the archive, and it may be deleted at any time. A damaged one is made again. While it
is open, the archive folder is locked (flock), and other searches wait.

A text that many records hold (the same system prompt, the same session archived again) is indexed once. SQLite's
tokenisers cut at blanks and punctuation, but Chinese and Japanese do not separate words. Runs of such scripts are
indexed as overlapping pairs of characters, and the last character alone: a word of two or more characters is then a
phrase of pairs, a single character the beginning of a pair. (SQLite's trigram tokeniser cannot find words of two
characters, takes 2.2 times the size of the text instead of 0.3, and is built 14 times as slowly.)
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from compactor_cli.archive import store
from compactor_cli.archive.atomic import PRIVATE_FOLDER_MODE, make_folders
from compactor_cli.archive.maintenance import sweep
from compactor_cli.archive.restore import transcripts_in
from compactor_cli.archive.store import INDEX, SIDECAR_ENDING, check_plain, is_hex, open_inside, opened_folder
from compactor_cli.llm.quoting import call_text, tool_names
from compactor_cli.model.errors import CompactError, OutputError, Unreadable, UsageError
from compactor_cli.model.transcript import Message, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.sources import cache_folder

if TYPE_CHECKING:
    import sqlite3
# Porter's stems find "migrations" by "migration". Marks (Mn, Mc) count as letters, as scripts like Thai need it.
_TOKENIZE = "porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''"
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
DENSE_RUN = re.compile(f"[{_DENSE}]+")
_MOST_SECONDS = 100_000_000_000  # a larger number as a timestamp is in milliseconds
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
_VERSION = 1
# Of the names of SQLite's files: the database, its log, the log's index, and the journal of another mode.
_ENDS = ("", "-wal", "-shm", "-journal")
_BATCH_CHARS = 16_000_000
# A folder's time reveals later changes only if it is older than the coarsest tick of a file system's clock.
_SETTLED_NS = 2_000_000_000
# SQLite's primary error codes that are no sign of damage: busy, no permission, full, cannot be opened, and the like.
_NO_DAMAGE = frozenset((3, 5, 6, 7, 8, 9, 10, 13, 14, 15))
# What code raises that reads values from a damaged file, which may be of any type.
ODD_VALUES = (TypeError, ValueError, AttributeError, OverflowError)
# Called with the number of originals that were indexed since the last call.
Advance = Callable[[int], object]


def text_of(message: Message) -> str:
    """The text of a message, its calls with their arguments, and its results, but no thinking."""
    parts = (part for part in message.parts if isinstance(part, Text | ToolCall | ToolResult))
    texts = (call_text(part) if isinstance(part, ToolCall) else part.text for part in parts)
    return "\n".join(filter(None, texts))


def searched_text(message: Message) -> str:
    """The thinking, then what `text_of` returns, then results that the client no longer sends."""
    thoughts = (part.text for part in message.parts if isinstance(part, Thinking))
    pruned = (part.pruned for part in message.parts if isinstance(part, ToolResult))
    return "\n".join(filter(None, (*thoughts, text_of(message), *pruned)))


def tools_of(message: Message, names: Mapping[str, str]) -> tuple[str, ...]:
    """The tools that the message calls or has results of, each once; ``names`` are those of tools by the call's id."""
    called = (call.name for call in message.calls)
    answered = (result.name or names.get(result.id, "") for result in message.results)
    return tuple(dict.fromkeys(name for name in (*called, *answered) if name))


def passages(text: str, most_chars: int) -> Sequence[str]:
    """The text in pieces of at most ``most_chars``, cut between lines if possible; joined, they are the text."""
    pieces: list[str] = []
    room = 0
    for line in text.splitlines(keepends=True):
        if len(line) > room or not pieces:
            cut = [line[i : i + most_chars] for i in range(0, len(line), most_chars)]
            pieces += cut
            room = most_chars - len(cut[-1])
        else:
            pieces[-1] += line
            room -= len(line)
    return pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class _Original:
    """A stored original."""

    sha256: str
    path: Path
    sidecar: Path | None  # the list of its transcripts; None: it is one transcript
    look: str  # size and time of the sidecar: changes when the list does; empty without one
    archived: int  # Unix seconds


def create_words(database: sqlite3.Connection) -> None:
    """Make the full-text table ``words``, which stores no text. Raises UsageError if SQLite has no full-text search."""
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
    """The text as it is indexed: runs of scripts without spaces as pairs, and lone surrogates replaced."""
    if text.isascii():
        return text

    def pairs(found: re.Match[str]) -> str:
        run = found[0]
        return f" {' '.join(run[i : i + 2] for i in range(len(run)))} "

    return DENSE_RUN.sub(pairs, text).encode("utf-8", "replace").decode()


def _add_original(database: sqlite3.Connection, original: _Original, source: str, archived: int) -> int:
    """Index the compacted transcripts of an original; returns the number of characters indexed.

    An original that cannot be read gets an entry with the reason.
    """
    row = (original.sha256, original.look, source, archived, "")
    insert = "INSERT INTO originals(sha256, look, source, archived, trouble) VALUES (?, ?, ?, ?, ?)"
    number = database.execute(insert, row).lastrowid
    size_chars = 0
    try:
        wanted = {original.sha256: OnInvalid.KEEP}
        if original.sidecar:
            wanted = {part.sha256: part.on_invalid for part in store.read_parts(original.sidecar)}
        on_invalid = OnInvalid.DROP if OnInvalid.DROP in wanted.values() else OnInvalid.KEEP
        for transcript in transcripts_in(original.path, on_invalid):
            if transcript.sha256 in wanted:
                size_chars += _add_transcript(database, number or 0, transcript)
    except CompactError as error:
        database.execute("UPDATE originals SET trouble = ? WHERE id = ?", (error.what, number))
    return size_chars


def _add_transcript(database: sqlite3.Connection, original: int, transcript: Transcript) -> int:
    row: tuple[object, ...] = (original, transcript.sha256)
    number = database.execute("INSERT INTO transcripts(original, sha256) VALUES (?, ?)", row).lastrowid
    names = tool_names(transcript.messages)
    size_chars = 0
    for i, message in enumerate(transcript.messages):
        # The archive has the records that a summary by compact was made from, so that it is not indexed.
        is_own = message.summary is not None and message.summary.origin == "compact"
        text = "" if message.is_meta or is_own else searched_text(message)
        if not text.strip():
            continue
        size_chars += len(text)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        known = int.from_bytes(digest, signed=True)
        added = database.execute("INSERT OR IGNORE INTO texts(hash) VALUES (?)", (known,))
        if added.rowcount:
            text_number = added.lastrowid or 0
            add_words(database, text_number, text)
        else:
            text_number = database.execute("SELECT id FROM texts WHERE hash = ?", (known,)).fetchone()[0]
        tools = "\n".join(tools_of(message, names)).encode("utf-8", "replace").decode()
        row = (text_number, number, i + 1, message.role.value, tools, unix_seconds(message.timestamp))
        database.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", row)
    return size_chars


def unix_seconds(timestamp: str) -> int | None:
    """A timestamp as clients write it (ISO 8601, or seconds or milliseconds since 1970) in seconds; None for others."""
    with suppress(ValueError, OverflowError):
        number = float(timestamp)
        return int(number / 1_000 if number > _MOST_SECONDS else number)
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(timestamp)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    return None


def index_file(archive: Path) -> Path:
    """The path of the index: inside the archive, or in ``$XDG_CACHE_HOME/compact/index`` if that is read-only."""
    if os.access(archive, os.W_OK):
        return archive / INDEX
    name = hashlib.sha256(os.fsencode(archive.resolve())).hexdigest()[:16]
    return cache_folder() / "index" / f"{name}.sqlite3"


@contextmanager
def opened(
    archive: Path, *, rebuild: bool = False, advance: Advance = lambda count: None
) -> Iterator[sqlite3.Connection]:
    """The index of an archive, up to date; with ``rebuild``, it is made again from the archive.

    Raises `Unreadable` if there is no such folder, `OutputError` if the index cannot be written, UsageError if SQLite
    has no full-text search; `sqlite3.DatabaseError` from the caller's own statements is passed on.
    """
    import fcntl

    with ExitStack() as stack:
        try:
            descriptor = stack.enter_context(opened_folder(archive))
        except OSError as error:
            advice = "name it with --archive-dir"
            raise Unreadable("no such archive folder", place=str(archive), next_step=advice) from error
        # Other searches wait here. If the file system has no locks, only SQLite's own apply.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        sweep(archive)
        file = index_file(archive)
        for is_new in (rebuild, True):
            if is_new:
                for end in _ENDS:
                    with suppress(FileNotFoundError):
                        file.with_name(file.name + end).unlink()
            if database := _current(archive, file, advance, is_new=is_new):
                yield stack.enter_context(closing(database))
                return
    raise OutputError("the index cannot be made", place=str(file), next_step="delete it, and run again")


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the index itself is damaged, so that it helps to make it again."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF not in _NO_DAMAGE


def _current(archive: Path, file: Path, advance: Advance, *, is_new: bool) -> sqlite3.Connection | None:
    """The index, up to date; None if it is damaged, of another version, or mostly about originals that are gone."""
    import sqlite3

    with ExitStack() as stack:
        try:
            database = stack.enter_context(closing(_connected(file)))
            if not _update(database, archive, advance):
                return None
        except sqlite3.DatabaseError as error:
            if is_damage(error):
                return None
            advice = "make room, or let it be written"
            raise OutputError(f"the index cannot be used ({error})", place=str(file), next_step=advice) from error
        except ODD_VALUES:
            if is_new:
                raise
            return None
        stack.pop_all()
        return database


def _connected(file: Path) -> sqlite3.Connection:
    import sqlite3

    make_folders(file.parent, PRIVATE_FOLDER_MODE)
    try:
        # SQLite opens these files by name, so that none of them may be a link.
        for path in (file.with_name(file.name + end) for end in _ENDS):
            with suppress(FileNotFoundError):
                check_plain(path.lstat(), path, is_written=True)
        # SQLite gives its log files the mode of the database.
        os.close(open_inside(file.parent, file.name, os.O_RDWR | os.O_CREAT))
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", place=str(file)) from error
    database = sqlite3.connect(file, isolation_level=None)
    try:
        # The file may have come with somebody else's tree: no code in its schema may run.
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA cache_size = -16000")
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise sqlite3.DatabaseError("another version")
        if not version:
            with _transaction(database):
                create_words(database)
                for table in _TABLES:
                    database.execute(table)
                # The memory for sorting new entries: a fifth faster than with the default of 1 MB.
                database.execute("INSERT INTO words(words, rank) VALUES ('hashsize', ?)", (16 << 20,))
                database.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        database.close()
        raise
    return database


def _update(database: sqlite3.Connection, archive: Path, advance: Advance) -> bool:
    """Index what is new and remove what is gone; returns whether at least half of the texts are still in use."""
    read = dict(database.execute("SELECT name, mtime_ns FROM shards"))
    with os.scandir(archive) as entries:
        folders = (entry for entry in entries if len(entry.name) == 2 and is_hex(entry.name))
        there = {entry.name: entry.stat().st_mtime_ns for entry in folders if entry.is_dir(follow_symlinks=False)}
    indexed = {name for (name,) in database.execute("SELECT DISTINCT substr(sha256, 1, 2) FROM originals")}
    shards = {name: time_ns for name, time_ns in there.items() if read.get(name) != time_ns}
    gone_shards = sorted((indexed | read.keys()) - there.keys())
    new: list[_Original] = []
    gone: list[str] = []
    for name in (*shards, *gone_shards):
        known = dict(database.execute("SELECT sha256, look FROM originals WHERE sha256 GLOB ?", (f"{name}*",)))
        present = {item.sha256: item for item in _stored(archive / name)}
        changed = [sha256 for sha256, look in known.items() if sha256 not in present or present[sha256].look != look]
        gone += changed
        new += [item for sha256, item in present.items() if sha256 not in known or sha256 in changed]
    if gone:
        _remove(database, gone)
    _add(database, archive, new, advance)
    settled_ns = time.time_ns() - _SETTLED_NS
    if shards or gone_shards:
        rows = [(name, mtime_ns) for name, mtime_ns in shards.items() if mtime_ns < settled_ns]
        with _transaction(database):
            database.executemany("DELETE FROM shards WHERE name = ?", [(name,) for name in gone_shards])
            database.executemany("INSERT OR REPLACE INTO shards VALUES (?, ?)", rows)
    if not gone:
        return True
    counted = "SELECT (SELECT count(*) FROM texts), (SELECT count(DISTINCT text) FROM records)"
    texts, alive = database.execute(counted).fetchone()
    return bool(alive * 2 >= texts)


def _remove(database: sqlite3.Connection, gone: Sequence[str]) -> None:
    """Remove originals from the index. Their words stay in the full-text table, but no record refers to them."""
    among = "(SELECT id FROM originals WHERE sha256 = ?)"
    transcripts = f"(SELECT id FROM transcripts WHERE original IN {among})"  # noqa: S608 -- constants
    with _transaction(database):
        for sha256 in gone:
            database.execute(f"DELETE FROM records WHERE transcript IN {transcripts}", (sha256,))  # noqa: S608
            database.execute(f"DELETE FROM transcripts WHERE original IN {among}", (sha256,))  # noqa: S608
            database.execute("DELETE FROM originals WHERE sha256 = ?", (sha256,))


def _stored(shard: Path) -> Iterator[_Original]:
    """The originals in a folder of the archive, in the order of their hashes."""
    if shard.is_symlink() or not shard.is_dir():
        return
    with os.scandir(shard) as entries:
        names = {entry.name: entry for entry in entries}
    for name in sorted(names):
        if sha256 := store.stored_sha256(name):
            path, sidecar = shard / name, names.get(f"{sha256}{SIDECAR_ENDING}")
            status = sidecar.stat() if sidecar else None
            look = f"{status.st_size} {status.st_mtime_ns}" if status else ""
            listed, archived = shard / sidecar.name if sidecar else None, int(names[name].stat().st_mtime)
            yield _Original(sha256=sha256, path=path, sidecar=listed, look=look, archived=archived)


def _add(database: sqlite3.Connection, archive: Path, new: list[_Original], advance: Advance) -> None:
    """Index these originals in batches, each in one transaction."""
    listed: dict[str, tuple[str, int | None]] = {}
    if new:
        # Of several entries of the manifest for an original, the newest is used.
        with suppress(OSError):
            entries = [entry for _, entry in store.read_entries(archive) if entry]
            listed = {entry.sha256: (entry.source, unix_seconds(entry.compacted_at)) for entry in entries}
    waiting = deque(new)
    while waiting:
        size_chars = 0
        with _transaction(database):
            while waiting and size_chars <= _BATCH_CHARS:
                original = waiting.popleft()
                source, archived = listed.get(original.sha256, ("", None))
                size_chars += _add_original(database, original, source, archived or original.archived)
                advance(1)


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    import sqlite3

    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
