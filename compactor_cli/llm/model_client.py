"""The client for models that all transcripts of a run share, the loop its calls run on, and the cache of replies."""

from __future__ import annotations

import hashlib
import json
import os
import random
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from compactor_cli.llm import llm, model_calls
from compactor_cli.llm.limits import Breaker, Charge, RateLimiter, Reservation, Sleep, Spend, sleep_seconds
from compactor_cli.llm.model_calls import Call, CircuitOpen, GaveUp, LimitReached, Passing, Reply, UnknownModel, Wanted
from compactor_cli.llm.redact import Redactor
from compactor_cli.model.report import Answered, Listener, ModelCalled
from compactor_cli.model.value import dataclass
from compactor_cli.read.sources import cache_folder, state_folder

if TYPE_CHECKING:
    import sqlite3

    from anyio.from_thread import BlockingPortal


T = TypeVar("T")
Complete = Callable[[Call], Awaitable[Reply]]

# How often a caller tries smaller spans after `ContextTooLong`; Claude Code's number.
SHRINK_ROUNDS = 3
# A longer Retry-After is not waited for: the call fails.
_MOST_RETRY_AFTER_SECONDS = 120.0
# How often a waiting call looks whether others released what they reserved; they may be in other processes.
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How a failed request is repeated.

    The n-th wait is drawn evenly from 0 to ``base_seconds * 2**n`` (exponential backoff with full jitter, after
    M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015), and is never less than the provider's
    Retry-After.
    """

    attempts: int = 5
    base_seconds: float = 1.0
    most_seconds: float = 60.0  # of one wait, on top of Retry-After


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """The model that is asked when the first one gives no reply."""

    model: str
    api_base: str = ""


class ModelClient:
    """Answers calls from the reply cache or from a model, within the limits of the run.

    A call passes redaction, cache, breaker, rate limit and spend limit, in this order, before it is sent. A request
    that failed is repeated while that can help; then the fallback model is asked in the same way. There is one client
    for all transcripts of a run; `ask` belongs to one event loop (`BackgroundEventLoop`).
    """

    def __init__(
        self,
        *,
        spend: Spend | None = None,
        rate_limiter: RateLimiter | None = None,
        retries: Retries | None = None,
        breaker: Breaker | None = None,
        cache: ReplyCache | None = None,
        keys: model_calls.Keys = model_calls.NO_KEYS,
        fallback: Fallback | None = None,
        complete: Complete = llm.complete,
        sleep: Sleep = sleep_seconds,
        emit: Listener | None = None,
    ) -> None:
        import asyncio

        self.spend = spend or Spend()
        self._breaker = breaker or Breaker()
        self._rate_limiter = rate_limiter or RateLimiter()
        self._retries = retries or Retries()
        self._cache = cache
        self._keys = keys
        self._fallback = fallback
        self._complete = complete
        self._sleep = sleep
        self._emit = emit
        self._unusable: dict[tuple[str, str], model_calls.Unusable] = {}
        self._queue = asyncio.Lock()  # of calls that wait to reserve what they may spend
        self._waited_seconds = 0.0  # in the queue, since a call last got its reservation

    async def ask(self, call: Call, redactor: Redactor | None = None) -> Reply:
        """The reply to a call. ``redactor``: the transcript's; None leaves secrets in, at the user's request.

        Texts already redacted stay as they are. Redact a whole transcript in its order before its first call, so that
        the numbers of its placeholders do not depend on which call comes first.

        Raises `ContextTooLong`, `GaveUp` (with the last reason for each model), `LimitReached` or, where there is no
        fallback, `CircuitOpen` or `UnknownModel`; no failure shows a key.
        """
        call = redacted(call, redactor)
        calls = tuple(filter(None, (call, self.fallback_of(call))))
        reasons: list[str] = []
        for asked in calls:
            if stored := self._cache.get(asked) if self._cache else None:
                self.spend.hit(stored)
                self._report(asked, Answered.CACHED, time.monotonic(), stored)
                return stored
            try:
                return await self._answer(asked, redactor)
            except (Passing, model_calls.Refused, CircuitOpen) as failure:
                if isinstance(failure, CircuitOpen | UnknownModel) and len(calls) == 1:
                    raise
                reasons.append(f"{asked.model}: {failure.reason}")
        raise GaveUp("; then ".join(reasons))

    def fallback_of(self, call: Call) -> Call | None:
        """The same call for the fallback model; None if that is the same model, or the call wants vectors."""
        other = self._fallback
        if other is None or call.wanted is Wanted.VECTORS:
            return None
        if (other.model, other.api_base) == (call.model, call.api_base):
            return None
        # The user's price is that of the first model; for the other it stands in where the table has none.
        price = None if model_calls.price_of(other.model) else call.price
        # Extra parameters are meant for the first model; another provider may refuse them.
        return replace(
            call, model=other.model, api_base=other.api_base, key=model_calls.NO_SECRET, price=price, extra={}
        )

    async def _answer(self, call: Call, redactor: Redactor | None) -> Reply:
        call = call if call.key else replace(call, key=self._keys.for_model(call.model))
        server = model_calls.server_of(call)
        attempt = 0
        reasons: list[str] = []
        async with self._breaker.admitted(server):
            while True:
                try:
                    reply = await self._send(call, server)
                    break
                except LimitReached as reached:
                    # The failure before is why there is no reply, the limit why there is no further attempt.
                    raise LimitReached("; then ".join((*reasons, reached.reason))) from None
                except Passing as failure:
                    attempt, reasons = attempt + 1, [failure.reason]
                    if attempt >= self._retries.attempts or _is_far_off(failure):
                        raise
                    most = min(self._retries.most_seconds, self._retries.base_seconds * 2.0 ** (attempt - 1))
                    # Jitter on top of Retry-After, so that calls with the same Retry-After do not come back at once.
                    seconds = failure.retry_after_seconds + random.uniform(0.0, most)  # noqa: S311 -- guards nothing
                await self._sleep(seconds)
                call = replace(call, is_repeat=True)
        if redactor and call.wanted is Wanted.TEXT:
            reply = replace(reply, text=redactor.redact(reply.text))
        # A reply that was cut off is kept, too: its caller would refuse it again, and pay for it again in vain.
        is_whole = reply.finish_reason == "length" or (bool(reply.text) and reply.finish_reason == "stop")
        if self._cache and is_whole and not reply.has_tool_call:
            self._cache.put(call, reply)
        return reply

    async def _send(self, call: Call, server: str) -> Reply:
        async with self._rate_limiter.acquire(call.expected_input_tokens + call.max_tokens) as number:
            reservation = await self._reserved(call, server)
            started = time.monotonic()
            try:
                reply = await self._complete(call)
            except BaseException as failure:  # a cancelled request was sent as well
                is_sent = isinstance(failure, model_calls.TimedOut | model_calls.Broken)
                is_charged = is_sent or not isinstance(failure, Exception)
                self.spend.failed(reservation, Charge.POSSIBLE if is_charged else Charge.NONE)
                if not is_charged:
                    self._rate_limiter.took(number, 0)
                if isinstance(failure, Passing) and not _is_far_off(failure):
                    self._rate_limiter.pause(failure.retry_after_seconds)
                if isinstance(failure, model_calls.Unusable):
                    self._unusable[server, call.model] = failure
                self._report(call, Answered.FAILED, started, error=getattr(failure, "reason", type(failure).__name__))
                raise
            self.spend.settle(reservation, reply)
            if reply.input_tokens:  # the provider counted
                self._rate_limiter.took(number, reply.input_tokens + reply.output_tokens)
            self._report(call, Answered.BY_MODEL, started, reply)
            return reply

    async def _reserved(self, call: Call, server: str) -> Reservation:
        """The reservation for a call; waits, first come first served, while only requests under way prevent it.

        No request takes longer than its timeout: after that, what is still held belongs to a process that died, and is
        not waited for any more.
        """
        async with self._queue:
            while True:
                self._breaker.check(server)
                if failed := self._unusable.get((server, call.model)):
                    raise type(failed)(failed.reason)
                try:
                    reservation = self.spend.reserve(call)
                except model_calls.LimitHeld:
                    if self._waited_seconds > call.timeout_seconds:
                        raise
                else:
                    self._waited_seconds = 0.0
                    return reservation
                await self._sleep(_LOOK_SECONDS)
                self._waited_seconds += _LOOK_SECONDS

    def _report(self, call: Call, how: Answered, started: float, reply: Reply | None = None, error: str = "") -> None:
        if self._emit is not None:
            self._emit(
                ModelCalled(
                    transcript=call.about,
                    model=call.model,
                    reply=how,
                    input_tokens=reply.input_tokens if reply else 0,
                    output_tokens=reply.output_tokens if reply else 0,
                    cost_usd=reply.cost_usd if reply and how is Answered.BY_MODEL else 0.0,
                    seconds=time.monotonic() - started,
                    error=error,
                )
            )


def _is_far_off(failure: Passing) -> bool:
    return failure.retry_after_seconds > _MOST_RETRY_AFTER_SECONDS


def redacted(call: Call, redactor: Redactor | None) -> Call:
    """The call with its messages redacted; as it is without a redactor."""
    if redactor is None:
        return call
    messages = (
        one if one.is_redacted else replace(one, text=redactor.redact(one.text), is_redacted=True)
        for one in call.messages
    )
    return replace(call, messages=tuple(messages))


CLOSE_SECONDS = 5.0


class BackgroundEventLoop:
    """An event loop in a thread of its own, started when the first coroutine is run; any thread may use it.

    On `close`, ``at_end`` (a coroutine function) runs last on the loop. Not to be used across a fork.
    """

    def __init__(self, at_end: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        self._at_end = at_end
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``; what it raises is raised here.

        An interrupt (Ctrl-C, a signal that raises) while waiting cancels the work. After `close`: RuntimeError.
        """
        import asyncio

        tasks: list[asyncio.Task[Any]] = []
        interrupted = False

        async def watched() -> T:
            tasks.extend(filter(None, (asyncio.current_task(),)))
            if interrupted:
                raise asyncio.CancelledError
            return await work

        try:
            return self.start(watched()).result()
        except BaseException:
            # The interrupt may come before `start` returned a future: the work is cancelled by its task instead.
            interrupted = True
            if not tasks:
                work.close()  # it has not begun; if it is about to, it ends at once
            with suppress(RuntimeError):  # the loop is closed, and has cancelled what ran on it
                for task in tasks:
                    task.get_loop().call_soon_threadsafe(task.cancel)
            raise

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin ``work`` without waiting for it. After `close`: RuntimeError."""
        import anyio
        from anyio.from_thread import BlockingPortal

        async def serve(ready: Future[BlockingPortal]) -> None:
            async with BlockingPortal() as portal:
                ready.set_result(portal)
                await portal.sleep_until_stopped()
            if self._at_end:
                await self._at_end()

        try:
            with self._lock:
                if self._closed:
                    raise RuntimeError("the loop is closed")
                if self._portal is None:
                    ready: Future[BlockingPortal] = Future()
                    life = (serve, ready)
                    self._thread = threading.Thread(target=anyio.run, args=life, name="model calls", daemon=True)
                    self._thread.start()
                    self._portal = ready.result()
                portal = self._portal
            return portal.start_task_soon(lambda: work)
        except RuntimeError:
            work.close()
            raise

    def close(self) -> None:
        """Cancel what runs, wait for its clean-up and for ``at_end``, end the thread. Further calls do nothing."""
        with self._lock:
            self._closed = True
            portal, thread, self._portal, self._thread = self._portal, self._thread, None, None
        if portal is None or thread is None:
            return
        # Both threads are daemons: clean-up that hangs, or a loop that is busy, keeps no process alive.
        threading.Thread(target=portal.call, args=(portal.stop, True), daemon=True).start()
        thread.join(CLOSE_SECONDS)


_LOCK_SECONDS = 10.0
_REPLIES = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, stored INTEGER NOT NULL, used INTEGER NOT NULL, body TEXT NOT NULL
) WITHOUT ROWID
"""
_STATS = """
SELECT count(*), sum(coalesce(json_extract(body, '$.cost_usd'), 0)), min(used), max(used),
    (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) FROM replies
"""
_LONGEST_UNUSED = """
DELETE FROM replies WHERE key IN (
    SELECT key FROM (
        SELECT key, sum(length(body) + length(key) + length(model)) OVER (ORDER BY used DESC, key) AS size FROM replies
    ) WHERE size > ?
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    """What the cache holds."""

    replies: int = 0
    bytes: int = 0  # of its file
    cost_usd: float = 0.0  # what the replies cost
    oldest: int = 0  # unix seconds of the last use of the reply that was not used for longest
    newest: int = 0  # unix seconds of the last use of any reply


def key_of(call: Call) -> bytes:
    """SHA-256 of everything that a reply depends on: model, server, parameters, version of the prompt, messages."""
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
    """Replies by the hash of their calls, so that a run repeated after it was killed does not pay twice.

    One SQLite file with a write-ahead log: whole after a crash, shared by threads and processes, readable by its owner
    only. It holds replies, with secrets already taken out, and hashes of prompts; never a prompt, never a key.

    No method fails: a cache that cannot be opened, read or written finds and keeps nothing, and `trouble` has the
    reason. A file that is not a database any more is set aside (``.broken``) and begun anew.
    """

    def __init__(self, file: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self.trouble = ""

    def get(self, call: Call) -> Reply | None:
        """The reply stored for a call, or None."""

        def look(database: sqlite3.Connection) -> Reply | None:
            key = key_of(call)
            row = database.execute("SELECT body FROM replies WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            database.execute("UPDATE replies SET used = ? WHERE key = ?", (int(self._clock()), key))
            stored, known = json.loads(row[0]), {field.name for field in fields(Reply)}
            return Reply(**{name: value for name, value in stored.items() if name in known})

        return self._do(look, None)

    def put(self, call: Call, reply: Reply) -> None:
        """Store a reply; it outlives a crash of this process. Its text must be redacted already."""
        now = int(self._clock())
        row = (key_of(call), call.model, now, now, json.dumps(asdict(reply)))
        self._do(lambda database: database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?)", row), None)

    def stats(self) -> CacheStats:
        """What is in the cache."""

        def look(database: sqlite3.Connection) -> CacheStats:
            count, cost, oldest, newest, size = database.execute(_STATS).fetchone()
            return CacheStats(replies=count, bytes=size, cost_usd=cost or 0.0, oldest=oldest or 0, newest=newest or 0)

        return self._do(look, CacheStats()) if self._file.exists() else CacheStats()

    def prune(self, *, older_than_seconds: float | None = None, max_bytes: int | None = None) -> int:
        """Remove replies unused for this long, then the longest unused until the rest fits; returns how many."""

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
            # SQLite does not wait for the lock that write-ahead logging needs, so it is tried again.
            give_up = time.monotonic() + _LOCK_SECONDS
            while True:
                try:
                    database.execute("PRAGMA journal_mode = WAL")
                    break
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() > give_up:
                        raise
                    time.sleep(0.02)
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(_REPLIES)
        return self._database


def replies_file() -> Path:
    """The file of the reply cache. It may be deleted at any time, at the cost of paying again."""
    return cache_folder() / "replies.sqlite3"


def breaker_file() -> Path:
    """The file in which the circuit breaker keeps its counts."""
    return state_folder() / "breaker.json"
