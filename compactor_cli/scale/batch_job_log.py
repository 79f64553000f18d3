"""Log of batch jobs: what was asked of a provider by batch jobs and what came back, in one file next to the outputs.

SQLite, readable by its owner only. A prompt is in it until its job is begun, a reply as long as the file; both with
secrets taken out. Keys are never in it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from compactor_cli.llm.model_calls import Reply
from compactor_cli.model.errors import UsageError

NAME = ".compact-batch.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS said (value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, round INTEGER NOT NULL, name TEXT NOT NULL DEFAULT '', status TEXT NOT NULL,
    requests INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS calls (
    key BLOB PRIMARY KEY, job INTEGER, line TEXT, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    reply TEXT, fault TEXT, reason TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS waiting ON calls (job);
"""


class RequestFault(StrEnum):
    """Why a request has no reply."""

    TOO_LONG = "too long"  # the prompt does not fit the model: cut smaller, it may
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request: waiting, or with a reply or a fault and its reason."""

    reply: Reply | None = None
    fault: RequestFault | None = None
    reason: str = ""

    @property
    def waits(self) -> bool:
        """Whether nothing came back yet."""
        return self.reply is None and self.fault is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderJob:
    """One batch job. ``name`` empty: it was about to be begun; ``status`` as the provider says."""

    number: int
    round: int
    name: str
    status: str
    requests: int


class BatchJobLog:
    """The file. Safe for the threads of one process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._lock = threading.Lock()
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        import sqlite3

        self._database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._database.executescript(_SCHEMA)

    @classmethod
    def open(cls, folder: Path) -> BatchJobLog:
        """The book that is there. Raises `UsageError` if there is none."""
        if not (folder / NAME).is_file():
            advice = "begin with: compactor batch submit … --output-dir DIR"
            raise UsageError("no batch jobs were begun here", place=str(folder), next_step=advice)
        return cls(folder)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def store_request(self, value: Any) -> None:
        """Set down what was asked for, in JSON."""
        self._do("DELETE FROM said")
        self._do("INSERT INTO said VALUES (?)", json.dumps(value))

    def request(self) -> Any:
        """What was asked for; None before it was set down."""
        found = self._do("SELECT value FROM said")
        return json.loads(found[0][0]) if found else None

    def entry(self, key: bytes) -> LoggedRequest | None:
        """What is known of a request; None if it was never wanted."""
        found = self._do("SELECT reply, fault, reason FROM calls WHERE key = ?", key)
        if not found:
            return None
        reply, fault, reason = found[0]
        kept = Reply(**json.loads(reply)) if reply else None
        return LoggedRequest(reply=kept, fault=RequestFault(fault) if fault else None, reason=reason or "")

    def want(self, key: bytes, line: str, input_tokens: int, output_tokens: int) -> None:
        """Set down a request to be sent."""
        query = "INSERT OR IGNORE INTO calls (key, line, input_tokens, output_tokens) VALUES (?, ?, ?, ?)"
        self._do(query, key, line, input_tokens, output_tokens)

    def wanted(self) -> tuple[int, int, int]:
        """Requests still to be sent: their number, tokens of their prompts, and tokens of the longest replies."""
        query = "SELECT count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) FROM calls"
        count, sent, received = self._do(f"{query} WHERE job IS NULL")[0]
        return count, sent, received

    def wanted_lines(self, most: int, most_bytes: int) -> Iterator[tuple[bytes, str]]:
        """(key, line) of the next requests to be sent, as many as one job takes."""
        size = 0
        for key, line in self._do("SELECT key, line FROM calls WHERE job IS NULL ORDER BY key LIMIT ?", most):
            size += len(line.encode()) + 1
            if size > most_bytes and size > len(line.encode()) + 1:
                return
            yield key, line

    def jobs(self) -> tuple[ProviderJob, ...]:
        """All jobs, oldest first."""
        rows = self._do("SELECT number, round, name, status, requests FROM jobs ORDER BY number")
        names = ("number", "round", "name", "status", "requests")
        return tuple(ProviderJob(**dict(zip(names, row, strict=True))) for row in rows)

    def intend(self, round_number: int, requests: int) -> int:
        """Set down that a job is about to be begun; its number."""
        query = "INSERT INTO jobs (round, status, requests) VALUES (?, 'sending', ?) RETURNING number"
        return int(self._do(query, round_number, requests)[0][0])

    def forget(self, number: int) -> None:
        """A job that was not begun after all."""
        self._do("DELETE FROM jobs WHERE number = ?", number)

    def begun(self, number: int, name: str, keys: list[bytes]) -> None:
        """The job has these requests; their prompts are no longer needed."""
        with self._lock, self._database:
            self._database.execute("BEGIN")
            query = "UPDATE jobs SET name = ?, status = 'begun' WHERE number = ?"
            self._database.execute(query, (name, number))
            update = "UPDATE calls SET job = ?, line = NULL WHERE key = ?"
            self._database.executemany(update, [(number, key) for key in keys])

    def keep(self, key: bytes, entry: LoggedRequest) -> None:
        """Set down what came back."""
        reply = json.dumps(asdict(entry.reply)) if entry.reply else None
        query = "UPDATE calls SET reply = ?, fault = ?, reason = ? WHERE key = ?"
        self._do(query, reply, entry.fault.value if entry.fault else None, entry.reason, key)

    def stands(self, number: int, status: str) -> None:
        """How the provider says a job stands."""
        self._do("UPDATE jobs SET status = ? WHERE number = ?", status, number)

    def give_up(self, number: int, reason: str) -> None:
        """The job has ended: what nothing came back for has failed."""
        query = "UPDATE calls SET fault = ?, reason = ? WHERE job = ? AND reply IS NULL AND fault IS NULL"
        self._do(query, RequestFault.FAILED.value, reason, number)

    def tally(self) -> dict[str, float]:
        """What came back: replies, faults, tokens and their price."""
        query = """SELECT count(reply), count(fault), coalesce(sum(json_extract(reply, '$.input_tokens')), 0),
            coalesce(sum(json_extract(reply, '$.output_tokens')), 0),
            coalesce(sum(json_extract(reply, '$.cost_usd')), 0) FROM calls"""
        names = ("replies", "faults", "input_tokens", "output_tokens", "cost_usd")
        return dict(zip(names, self._do(query)[0], strict=True))

    def _do(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(query, values).fetchall()
