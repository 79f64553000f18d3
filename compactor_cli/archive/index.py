"""Index: a full-text index of an archive, in one SQLite file inside it, brought up to date whenever it is asked.

Only originals that it does not know are read; those that are gone drop out. It holds words and where they stand,
no text: everything in it comes from the archive, and it may be deleted at any time. A damaged one is made anew.
While it is open, the archive folder is locked (flock), and others who want the index wait.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from compactor_cli.archive.atomic import PRIVATE_FOLDER_MODE, make_folders
from compactor_cli.archive.folder import check_plain, open_inside, opened_folder
from compactor_cli.archive.indexing import IndexedOriginal, add_original, create_tables, remove_originals, unix_seconds
from compactor_cli.archive.layout import BLOB_ENDINGS, SHA256_CHARS, SIDECAR_ENDING, is_hex
from compactor_cli.archive.leftovers import sweep
from compactor_cli.archive.manifest import read_entries
from compactor_cli.model.errors import OutputError, Unreadable

if TYPE_CHECKING:
    import sqlite3

INDEX = "INDEX.sqlite3"
_VERSION = 1
# The database, its log, the log's index and the journal of another mode.
_ENDS = ("", "-wal", "-shm", "-journal")
_BATCH_CHARS = 16_000_000
# A folder's time tells of changes since only if it is older than the coarsest clock of a file system.
_SETTLED_NS = 2_000_000_000
# What is no damage: busy, no permission, full, cannot be opened, and the like (primary codes of SQLite).
_NO_DAMAGE = frozenset((3, 5, 6, 7, 8, 9, 10, 13, 14, 15))

# A damaged file may also answer with values of any type.
ODD_VALUES = (TypeError, ValueError, AttributeError, OverflowError)

Progress = Callable[[int, int], object]


class IndexStart(StrEnum):
    """What to begin with."""

    KNOWN = "known"  # from what is indexed already
    NOTHING = "nothing"  # from the archive alone


def index_file(archive: Path) -> Path:
    """Inside the archive; in ``$XDG_CACHE_HOME/compact/index`` where nothing may be written there."""
    if os.access(archive, os.W_OK):
        return archive / INDEX
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    cache = base if base.is_absolute() else Path.home() / ".cache"
    name = hashlib.sha256(os.fsencode(archive.resolve())).hexdigest()[:16]
    return cache / "compact" / "index" / f"{name}.sqlite3"


@contextlib.contextmanager
def opened(
    archive: Path, start: IndexStart = IndexStart.KNOWN, progress: Progress = lambda done, total: None
) -> Iterator[sqlite3.Connection]:
    """The index of an archive, up to date. ``progress`` receives the originals indexed, and how many there are.

    Raises `Unreadable` if there is no such folder, `OutputError` where the index cannot be written, UsageError where
    SQLite has no full-text search; `sqlite3.DatabaseError` of the caller's own statements is let through.
    """
    with _locked(archive), contextlib.closing(_updated(archive, index_file(archive), start, progress)) as database:
        yield database


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the index itself is broken, so that making it anew helps."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF not in _NO_DAMAGE


def _updated(archive: Path, file: Path, start: IndexStart, progress: Progress) -> sqlite3.Connection:
    if start is IndexStart.NOTHING:
        _remove(file)
    database = _current(archive, file, start, progress)
    if database is None:
        _remove(file)
        database = _current(archive, file, IndexStart.NOTHING, progress)
    if database is None:
        raise OutputError("the index cannot be made", place=str(file), next_step="delete it, and run again")
    return database


def _current(archive: Path, file: Path, start: IndexStart, progress: Progress) -> sqlite3.Connection | None:
    """The index up to date; None: it is damaged, of another version, or mostly of originals that are gone."""
    import sqlite3

    with contextlib.ExitStack() as stack:
        try:
            database = stack.enter_context(contextlib.closing(_connected(file)))
            if not _update(database, archive, progress):
                return None
        except sqlite3.DatabaseError as error:
            if is_damage(error):
                return None
            advice = "make room, or let it be written"
            raise OutputError(f"the index cannot be used ({error})", place=str(file), next_step=advice) from error
        except ODD_VALUES:
            if start is IndexStart.NOTHING:
                raise
            return None
        stack.pop_all()
        return database


def _connected(file: Path) -> sqlite3.Connection:
    import sqlite3

    make_folders(file.parent, PRIVATE_FOLDER_MODE)
    try:
        _check_no_link(file)
        # SQLite gives its log files the mode of the database.
        os.close(open_inside(file.parent, file.name, os.O_RDWR | os.O_CREAT))
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", place=str(file)) from error
    database = sqlite3.connect(file, isolation_level=None)
    try:
        # The file may come with the tree it lies in: nothing in it is to run.
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA cache_size = -16000")
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise sqlite3.DatabaseError("another version")
        if not version:
            with _transaction(database):
                create_tables(database)
                database.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        database.close()
        raise
    return database


def _check_no_link(file: Path) -> None:
    """Raise `Unreadable` if one of the names that SQLite will open leads elsewhere; it opens them by their names."""
    for end in _ENDS:
        path = file.with_name(file.name + end)
        with contextlib.suppress(FileNotFoundError):
            check_plain(path.lstat(), path, is_written=True)


def _remove(file: Path) -> None:
    for end in _ENDS:
        with contextlib.suppress(FileNotFoundError):
            file.with_name(file.name + end).unlink()


@contextlib.contextmanager
def _locked(archive: Path) -> Iterator[None]:
    """The archive's index for this process alone; waits for others."""
    import fcntl

    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(opened_folder(archive))
        except OSError as error:
            advice = "name it with --archive-dir"
            raise Unreadable("no such archive folder", place=str(archive), next_step=advice) from error
        # Where a file system has no locks, SQLite's own are all there is.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        sweep(archive)
        yield


def _update(database: sqlite3.Connection, archive: Path, progress: Progress) -> bool:
    """Index what is new, forget what is gone; whether the index is still mostly of what is there."""
    shards, gone_shards = _changed_shards(database, archive)
    new: list[IndexedOriginal] = []
    gone: list[str] = []
    for name in (*shards, *gone_shards):
        known = dict(database.execute("SELECT sha256, look FROM originals WHERE sha256 GLOB ?", (f"{name}*",)))
        present = {item.sha256: item for item in _stored(archive / name)}
        changed = [sha256 for sha256, look in known.items() if sha256 not in present or present[sha256].look != look]
        gone += changed
        new += [item for sha256, item in present.items() if sha256 not in known or sha256 in changed]
    if gone:
        with _transaction(database):
            remove_originals(database, gone)
    _add(database, archive, new, progress)
    settled_ns = time.time_ns() - _SETTLED_NS
    if shards or gone_shards:
        with _transaction(database):
            database.executemany("DELETE FROM shards WHERE name = ?", [(name,) for name in gone_shards])
            rows = [(name, mtime_ns) for name, mtime_ns in shards.items() if mtime_ns < settled_ns]
            database.executemany("INSERT OR REPLACE INTO shards VALUES (?, ?)", rows)
    return not gone or _is_mostly_alive(database)


def _changed_shards(database: sqlite3.Connection, archive: Path) -> tuple[dict[str, int], list[str]]:
    """The folders of originals that changed since they were read, with their times; and those that are gone."""
    known = dict(database.execute("SELECT name, mtime_ns FROM shards"))
    with os.scandir(archive) as entries:
        present = {entry.name: entry.stat().st_mtime_ns for entry in entries if _is_shard(entry)}
    indexed = {name for (name,) in database.execute("SELECT DISTINCT substr(sha256, 1, 2) FROM originals")}
    changed = {name: time_ns for name, time_ns in present.items() if known.get(name) != time_ns}
    return changed, sorted((indexed | known.keys()) - present.keys())


def _is_shard(entry: os.DirEntry[str]) -> bool:
    return len(entry.name) == 2 and is_hex(entry.name) and entry.is_dir(follow_symlinks=False)


def _stored(shard: Path) -> Iterator[IndexedOriginal]:
    """The originals in a folder, in the order of their hashes."""
    if shard.is_symlink() or not shard.is_dir():
        return
    with os.scandir(shard) as entries:
        names = {entry.name: entry for entry in entries}
    for name in sorted(names):
        sha256, dot, ending = name.partition(".")
        if f"{dot}{ending}" not in BLOB_ENDINGS or len(sha256) != SHA256_CHARS or not is_hex(sha256):
            continue
        sidecar = names.get(f"{sha256}{SIDECAR_ENDING}")
        status = sidecar.stat() if sidecar else None
        yield IndexedOriginal(
            sha256=sha256,
            path=shard / name,
            sidecar=shard / sidecar.name if sidecar else None,
            look=f"{status.st_size} {status.st_mtime_ns}" if status else "",
            archived=int(names[name].stat().st_mtime),
        )


def _add(database: sqlite3.Connection, archive: Path, new: list[IndexedOriginal], progress: Progress) -> None:
    """Index these originals, in batches that are each whole or not there."""
    listed = _listed_sources(archive) if new else {}
    waiting = iter(new)
    done = 0
    while done < len(new):
        size_chars = 0
        with _transaction(database):
            for original in waiting:
                source, archived = listed.get(original.sha256, ("", None))
                known = replace(original, source=source, archived=archived or original.archived)
                size_chars += add_original(database, known)
                done += 1
                progress(done, len(new))
                if size_chars > _BATCH_CHARS:
                    break


def _listed_sources(archive: Path) -> dict[str, tuple[str, int | None]]:
    """Source and time of each original, as the manifest last says."""
    try:
        entries = [entry for _, entry in read_entries(archive) if entry]
    except OSError:
        return {}
    return {entry.sha256: (entry.source, unix_seconds(entry.compacted_at)) for entry in entries}


def _is_mostly_alive(database: sqlite3.Connection) -> bool:
    """Whether most of the texts still stand in a record."""
    texts, alive = database.execute(
        "SELECT (SELECT count(*) FROM texts), (SELECT count(DISTINCT text) FROM records)"
    ).fetchone()
    return bool(alive * 2 >= texts)


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    import sqlite3

    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
