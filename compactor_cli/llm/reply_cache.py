"""Replies and where they are kept: a cache on this disk, so that a run which was killed does not pay twice.

One SQLite file with a write-ahead log: whole after a crash, shared by processes, only its owner may read it.
It holds replies, with secrets already taken out, and hashes of prompts; never a prompt, never a key.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from compactor_cli.llm.model_calls import Call, Reply, Wanted
from compactor_cli.model.value import dataclass
from compactor_cli.read.sources import cache_folder, state_folder

if TYPE_CHECKING:
    import sqlite3


T = TypeVar("T")
_LOCK_SECONDS = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, stored INTEGER NOT NULL, used INTEGER NOT NULL, body TEXT NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    """What the cache holds: replies, bytes of its file, what they cost, oldest and newest use (unix seconds)."""

    replies: int = 0
    bytes: int = 0
    cost_usd: float = 0.0
    oldest: int = 0
    newest: int = 0


def key_of(call: Call) -> bytes:
    """SHA-256 of all that decides a reply: model, server, parameters, version of the prompt, messages."""
    parts = (
        call.model,
        call.api_base,
        call.max_tokens,
        call.temperature,
        call.prompt_version,
        dict(call.extra),
        [(message.speaker.value, message.text) for message in call.messages],
        *(() if call.wanted is Wanted.TEXT else (call.wanted.value,)),
    )
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).digest()


class ReplyCache:
    """Replies by the hash of their calls. Safe for threads and processes.

    Never fails: a cache that cannot be opened, read or written gives and keeps nothing, and `trouble` says why. A
    file that is no database any more is set aside (``.broken``) and begun anew.
    """

    def __init__(self, file: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self.trouble = ""

    def get(self, call: Call) -> Reply | None:
        """The reply stored for a call."""

        def look(database: sqlite3.Connection) -> Reply | None:
            key = key_of(call)
            row = database.execute("SELECT body FROM replies WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            database.execute("UPDATE replies SET used = ? WHERE key = ?", (int(self._clock()), key))
            return Reply(**json.loads(row[0]))

        return self._do(look, None)

    def put(self, call: Call, reply: Reply) -> None:
        """Store a reply, durably against the death of this process. Its text must be redacted already."""
        now = int(self._clock())
        row = (key_of(call), call.model, now, now, json.dumps(asdict(reply)))
        self._do(lambda database: database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?)", row), None)

    def stats(self) -> CacheStats:
        """What is in the cache."""

        def look(database: sqlite3.Connection) -> CacheStats:
            query = (
                "SELECT count(*), sum(coalesce(json_extract(body, '$.cost_usd'), 0)), min(used), max(used) FROM replies"
            )
            count, cost_usd, oldest, newest = database.execute(query).fetchone()
            (size,) = database.execute(_SIZE_BYTES).fetchone()
            return CacheStats(
                replies=count, bytes=size, cost_usd=cost_usd or 0.0, oldest=oldest or 0, newest=newest or 0
            )

        return self._do(look, CacheStats()) if self._file.exists() else CacheStats()

    def prune(self, *, older_than_seconds: float | None = None, max_bytes: int | None = None) -> int:
        """Remove replies not used for so long, then the longest unused until the rest fits; how many went."""

        def remove(database: sqlite3.Connection) -> int:
            gone = 0
            if older_than_seconds is not None:
                limit = int(self._clock() - older_than_seconds)
                gone += database.execute("DELETE FROM replies WHERE used < ?", (limit,)).rowcount
            if max_bytes is not None:
                gone += database.execute(_LONGEST_UNUSED, (max_bytes,)).rowcount
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return gone

        return self._do(remove, 0) if self._file.exists() else 0

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _do(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        import sqlite3

        with self._lock:
            for _ in range(2):
                try:
                    return work(self._open())
                except sqlite3.OperationalError as error:  # locked, disk full, no permission
                    self.trouble = str(error)
                    return otherwise
                except (sqlite3.DatabaseError, ValueError, TypeError) as error:
                    self.trouble = f"set aside as broken: {error}"
                    self._close()
                    for end in ("", "-wal", "-shm"):
                        old = self._file.with_name(self._file.name + end)
                        if old.exists():
                            old.replace(self._file.with_name(self._file.name + ".broken" + end))
                except OSError as error:
                    self.trouble = error.strerror or str(error)
                    return otherwise
        return otherwise

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        if self._database is None:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite gives its log files the mode of the database.
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            database = sqlite3.connect(self._file, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False)
            self._database = database
            _log_ahead(database)
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(_SCHEMA)
        return self._database


_SIZE_BYTES = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
_LONGEST_UNUSED = """
DELETE FROM replies WHERE key IN (
    SELECT key FROM (
        SELECT key, sum(length(body) + length(key) + length(model)) OVER (ORDER BY used DESC, key) AS size FROM replies
    ) WHERE size > ?
)
"""


def _log_ahead(database: sqlite3.Connection) -> None:
    """Switch to write-ahead logging. SQLite does not wait for the lock that this needs, so it is tried again."""
    import sqlite3

    give_up = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.02)


def replies_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The cache of replies: may be deleted at any time, at the cost of paying again."""
    return cache_folder(environ) / "replies.sqlite3"


def breaker_file(environ: Mapping[str, str] = os.environ) -> Path:
    """What the circuit breaker knows."""
    return state_folder(environ) / "breaker.json"
