"""Provider: the summaries of a dataset by batch jobs, round by round, until nothing is missing.

Round 1 requests all leaves. Later rounds request what depends on earlier replies: summaries joined from others, second
attempts at replies that were not accepted, halves of prompts that were too long. What a job fails at is left to the
fallback model (asked live) or to the digest. A shard is written as soon as none of its summaries waits for a reply.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from compactor_cli.llm import model_calls
from compactor_cli.llm.limits import RateLimiter, Spend
from compactor_cli.llm.llm import ENDED, Batches, batch_reply, scrubbed
from compactor_cli.llm.model import AUTO
from compactor_cli.llm.model_calls import Call, ContextTooLong, GaveUp, ModelFailure, Price, Reply, batch_price_of
from compactor_cli.llm.model_client import ModelClient, key_of, redacted
from compactor_cli.llm.redact import Redactor
from compactor_cli.model.errors import KeptAsIs, TryLater, UsageError
from compactor_cli.model.value import dataclass
from compactor_cli.run.jobs import RunConfig
from compactor_cli.run.model_run import ModelConfig, ModelRun
from compactor_cli.run.shards import Shard, ShardResult, try_shard

NAME = ".compact-batch.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS request (value TEXT NOT NULL);
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

    TOO_LONG = "too long"  # the prompt does not fit the model; cut into smaller ones, it may
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """What is known of one request: a reply, or a fault with its reason, or neither while it waits."""

    reply: Reply | None = None
    fault: RequestFault | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderJob:
    """One batch job."""

    number: int
    round: int  # from 1
    name: str  # the provider's; empty: the job was about to be begun
    status: str  # the provider's, or `sending` or `begun`
    requests: int  # how many


class BatchJobLog:
    """The requests sent to a provider in batch jobs, and the replies, in one SQLite file next to the outputs.

    Only its owner can read the file. It holds a prompt until its job is begun, and a reply for good; secrets are
    removed from both. It never holds keys. Safe for the threads of one process.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._lock = threading.Lock()
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        import sqlite3

        self._database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._database.executescript(_SCHEMA)

    @classmethod
    def open(cls, folder: Path) -> BatchJobLog:
        """Open the log in a folder. Raises `UsageError` if there is none."""
        if not (folder / NAME).is_file():
            advice = "begin with: compactor batch submit … --output-dir DIR"
            raise UsageError("no batch jobs were begun here", place=str(folder), next_step=advice)
        return cls(folder)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def store_request(self, value: Any) -> None:
        """Store the options of the submitted run, a value that JSON can hold."""
        self._do("DELETE FROM request")
        self._do("INSERT INTO request VALUES (?)", json.dumps(value))

    def request(self) -> Any:
        """The options of the submitted run; None before they were stored."""
        found = self._do("SELECT value FROM request")
        return json.loads(found[0][0]) if found else None

    def entry(self, key: bytes) -> LoggedRequest | None:
        """What is known of a request; None if it was never entered."""
        found = self._do("SELECT reply, fault, reason FROM calls WHERE key = ?", key)
        if not found:
            return None
        reply, fault, reason = found[0]
        kept = Reply(**json.loads(reply)) if reply else None
        return LoggedRequest(reply=kept, fault=RequestFault(fault) if fault else None, reason=reason or "")

    def want(self, key: bytes, line: str, input_tokens: int, output_tokens: int) -> None:
        """Enter a request to be sent, unless it is in the log already."""
        query = "INSERT OR IGNORE INTO calls (key, line, input_tokens, output_tokens) VALUES (?, ?, ?, ?)"
        self._do(query, key, line, input_tokens, output_tokens)

    def wanted(self) -> tuple[int, int, int]:
        """The number of requests still to be sent, the tokens of their prompts and the most tokens of their replies."""
        query = "SELECT count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) FROM calls"
        count, sent, received = self._do(f"{query} WHERE job IS NULL")[0]
        return count, sent, received

    def wanted_lines(self, most: int, most_bytes: int) -> Iterator[tuple[bytes, str]]:
        """The (key, line) of the next requests to be sent, within one job's limits; a single one may exceed them."""
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
        """Enter that a job is about to be begun; returns its number."""
        query = "INSERT INTO jobs (round, status, requests) VALUES (?, 'sending', ?) RETURNING number"
        return int(self._do(query, round_number, requests)[0][0])

    def forget(self, number: int) -> None:
        """Remove a job that was not begun after all."""
        self._do("DELETE FROM jobs WHERE number = ?", number)

    def begun(self, number: int, name: str, keys: list[bytes]) -> None:
        """Enter that the job was begun with these requests, and delete their prompts, which are no longer needed."""
        with self._lock, self._database:
            self._database.execute("BEGIN")
            query = "UPDATE jobs SET name = ?, status = 'begun' WHERE number = ?"
            self._database.execute(query, (name, number))
            update = "UPDATE calls SET job = ?, line = NULL WHERE key = ?"
            self._database.executemany(update, [(number, key) for key in keys])

    def keep(self, key: bytes, entry: LoggedRequest) -> None:
        """Enter the reply to a request, or its fault."""
        reply = json.dumps(asdict(entry.reply)) if entry.reply else None
        query = "UPDATE calls SET reply = ?, fault = ?, reason = ? WHERE key = ?"
        self._do(query, reply, entry.fault.value if entry.fault else None, entry.reason, key)

    def set_status(self, number: int, status: str) -> None:
        """Enter the provider's status of a job."""
        self._do("UPDATE jobs SET status = ? WHERE number = ?", status, number)

    def give_up(self, number: int, reason: str) -> None:
        """Enter that the requests of an ended job for which nothing came back have failed."""
        query = "UPDATE calls SET fault = ?, reason = ? WHERE job = ? AND reply IS NULL AND fault IS NULL"
        self._do(query, RequestFault.FAILED.value, reason, number)

    def tally(self) -> dict[str, float]:
        """The number of replies and faults, and the tokens and cost of the replies."""
        query = """SELECT count(reply), count(fault), coalesce(sum(json_extract(reply, '$.input_tokens')), 0),
            coalesce(sum(json_extract(reply, '$.output_tokens')), 0),
            coalesce(sum(json_extract(reply, '$.cost_usd')), 0) FROM calls"""
        names = ("replies", "faults", "input_tokens", "output_tokens", "cost_usd")
        return dict(zip(names, self._do(query)[0], strict=True))

    def _do(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(query, values).fetchall()


class Missing(StrEnum):
    """What to do with a request whose reply is not in the log."""

    SEND = "send"  # enter it for the next job
    ASK = "ask"  # ask live
    GIVE_UP = "give up"  # the digest writes the summary, or whatever the options name for a failed model


class Deferred(KeptAsIs):
    """The summary waits for replies, so that its transcript must not be written yet."""


class Pending(TryLater):
    """Summaries of this shard wait for replies, so that nothing of it is written yet."""


class RecordedClient(ModelClient):
    """A client that answers from the log and enters the requests that it cannot answer; it sends some only with ASK.

    The summaries of a dataset are made by the code for live models, again and again, each time with more of the
    replies, until none is missing. Prompts depend only on the transcript, the settings and earlier replies, so that a
    request answered once is found again. Checks, retries, cuts and joins of replies work as they do live.
    """

    def __init__(self, job_log: BatchJobLog, batches: Batches, missing: Missing, **options: Any) -> None:
        super().__init__(**options)
        self.deferred = 0  # requests of this shard that wait for a reply
        self._job_log = job_log
        self._batches = batches
        self._missing = missing

    async def ask(self, call: Call, redactor: Redactor | None = None) -> Reply:
        """The reply in the log. Raises `Deferred` if it is still to come; otherwise the same as `ModelClient.ask`.

        It raises without waiting, so that concurrent calls are all entered.
        """
        sent = redacted(call, redactor)
        key = key_of(sent)
        entry = self._job_log.entry(key)
        if entry and entry.reply:
            text = redactor.redact(entry.reply.text) if redactor else entry.reply.text
            return replace(entry.reply, text=text)
        if entry and entry.fault is RequestFault.TOO_LONG:
            raise ContextTooLong(entry.reason)
        if self._missing is Missing.ASK:
            return await super().ask(call, redactor)
        if self._missing is Missing.SEND and (entry is None or entry.fault is None):
            self.deferred += 1
            if entry is None:
                line = {"custom_id": key.hex(), "method": "POST", "url": "/v1/chat/completions"}
                text = json.dumps({**line, "body": self._batches.body(sent)})
                self._job_log.want(key, text, sent.expected_input_tokens, sent.max_tokens)
            raise Deferred("its summary waits for a batch job")
        raise GaveUp(entry.reason if entry and entry.reason else "no reply from any batch job")

    def fallback_of(self, call: Call) -> Call | None:
        """The call for the fallback model, which is only ever asked live; None if nothing may be."""
        return super().fallback_of(call) if self._missing is Missing.ASK else None


class RecordedRun(ModelRun):
    """A run whose outputs take effect only if none of their summaries waits for a reply."""

    def __init__(self, config: ModelConfig, client: RecordedClient) -> None:
        super().__init__(config, client=client)
        self._recorded = client

    def settle(self) -> None:
        """Raise `Pending` if a summary of this shard waits for a reply."""
        if waiting := self._recorded.deferred:
            raise Pending(f"{waiting:,} requests wait for a batch job", next_step="collect again later")


# What OpenAI takes in one job: 50,000 requests and 200 MB ("Batch API", platform documentation, 2025).
MOST_REQUESTS = 50_000
MOST_BYTES = 190 << 20
DEFAULT_ROUNDS = 4
_SENDING = "sending"
_TOO_LONG = ("context_length_exceeded", "maximum context length", "prompt is too long", "string_above_max_length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The result of one `Provider.step`."""

    jobs: tuple[ProviderJob, ...]
    results: tuple[ShardResult, ...] = ()  # of the shards; empty if a job was still under way
    sent: int = 0  # requests sent in a new round

    @property
    def waits(self) -> bool:
        """Whether a job is under way."""
        return any(job.status not in ENDED for job in self.jobs)


def call_template(config: ModelConfig) -> Call:
    """A call without messages that holds model, server and key of the jobs.

    Raises `UsageError` if more than one model is named, or if its provider takes no batch jobs.
    """
    model_options = config.model_options
    model = model_calls.served_name(model_options.model, model_options.api_base)
    if model_options.models or model_options.model == AUTO:
        raise UsageError("a batch job asks one model", next_step="name it with -m, without model-for")
    if model_calls.provider_of(model) not in Batches.PROVIDERS:
        advice = f"one of these providers: {', '.join(Batches.PROVIDERS)}; or ask live: compactor batch run -m"
        raise UsageError(f"{model}: no batch jobs with this provider", next_step=advice)
    key = config.keys.for_model(model)
    return Call(model=model, messages=(), max_tokens=0, api_base=model_options.api_base, key=key)


class Provider:
    """Runs the jobs of one output folder. ``mark`` distinguishes them from other jobs at the same provider."""

    def __init__(self, job_log: BatchJobLog, config: ModelConfig, mark: str) -> None:
        self._job_log = job_log
        self._config = config
        self._mark = mark
        self._template = call_template(config)
        self._batches = Batches(self._template)

    def step(self, shards: Sequence[Shard], options: RunConfig, missing: Missing, rounds: int) -> Step:
        """Fetch the replies; if no job is under way any more, try the shards and send the requests that they lack.

        After this many ``rounds`` nothing is sent. Raises `TryLater` if the provider does not answer, `UsageError` if a
        limit would be exceeded; replies that were fetched are kept.
        """
        self.fetch()
        if (now := Step(jobs=self._job_log.jobs())).waits:
            return now
        round_number = max((job.round for job in now.jobs), default=0)
        if missing is Missing.SEND and round_number >= rounds:
            missing = Missing.GIVE_UP
        config = self._config
        client = RecordedClient(
            self._job_log,
            self._batches,
            missing,
            spend=Spend(config.limits),
            rate_limiter=RateLimiter(config.rate_limits),
            keys=config.keys,
            fallback=config.fallback,
        )
        results: list[ShardResult] = []
        # The log takes the place of the reply cache, which only `batch run` uses.
        with RecordedRun(replace(config, cache_file=None), client) as run:
            for shard in shards:
                client.deferred = 0
                results.append(try_shard(shard, replace(options, model_run=run)))
        sent = self._send(round_number + 1) if missing is Missing.SEND else 0
        return Step(jobs=self._job_log.jobs(), results=tuple(results), sent=sent)

    def statuses(self) -> tuple[ProviderJob, ...]:
        """The jobs with their present status at the provider."""
        jobs = list(self._job_log.jobs())
        for place, job in enumerate(jobs):
            if job.name and job.status not in ENDED:
                jobs[place] = replace(job, status=self._tried_call(self._batches.look, job.name).status)
        return tuple(jobs)

    def fetch(self) -> None:
        """Ask for the status of the jobs, and store the results of those that ended."""
        for job in self._job_log.jobs():
            if job.status == _SENDING:
                # The process died when the job was about to be begun: it is continued if the provider has it.
                if name := self._tried_call(self._batches.find, self._named(job.number)):
                    keys = [key for key, _ in self._job_log.wanted_lines(job.requests, MOST_BYTES)]
                    self._job_log.begun(job.number, name, keys)
                else:
                    self._job_log.forget(job.number)
        for job in self._job_log.jobs():
            if job.status in ENDED:
                continue
            found = self._tried_call(self._batches.look, job.name)
            if found.status in ENDED:
                for file in found.files:
                    for line in self._tried_call(lambda file: list(self._batches.lines(file)), file):
                        self._keep(line)
                self._job_log.give_up(job.number, f"its batch job ended without a reply ({found.status})")
            self._job_log.set_status(job.number, found.status)

    def _keep(self, line: bytes) -> None:
        """Store one result. A line that cannot be read is ignored."""
        try:
            value = json.loads(line)
            key = bytes.fromhex(value["custom_id"])
        except (ValueError, KeyError, TypeError):
            return
        response = value.get("response") or {}
        body = response.get("body") or {}
        if response.get("status_code") == 200 and not value.get("error"):
            try:
                reply = batch_reply(self._template, body)
            except ModelFailure as failure:
                entry = LoggedRequest(fault=RequestFault.FAILED, reason=failure.reason)
            else:
                tokens = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
                cost = self._price.cost_usd(**tokens) if self._price else None
                entry = LoggedRequest(reply=replace(reply, cost_usd=cost))
        else:
            error = value.get("error") or body.get("error") or {}
            is_coded = isinstance(error, dict)
            text = f"{error.get('code') or ''} {error.get('message') or ''}".strip() if is_coded else str(error)
            fault = RequestFault.TOO_LONG if any(words in text for words in _TOO_LONG) else RequestFault.FAILED
            entry = LoggedRequest(fault=fault, reason=scrubbed(text or "no reply", self._template))
        self._job_log.keep(key, entry)

    @property
    def _price(self) -> Price | None:
        return self._config.model_options.price or batch_price_of(self._template.model)

    def _send(self, round_number: int) -> int:
        """Begin jobs for all requests still to be sent; returns how many those were."""
        count, input_tokens, output_tokens = self._job_log.wanted()
        limits, tally, price = self._config.limits, self._job_log.tally(), self._price
        cost = price.cost_usd(input_tokens=input_tokens, output_tokens=output_tokens) if price else 0.0
        for limit, amount, what in (
            (limits.requests, tally["replies"] + tally["faults"] + count, "requests"),
            (limits.tokens_sent, tally["input_tokens"] + input_tokens, "tokens sent"),
            (limits.cost_usd, tally["cost_usd"] + cost, "USD"),
        ):
            if count and limit and amount > limit:
                advice = "submit anew with a higher limit, or let the digest write the rest: collect --finish"
                raise UsageError(f"with this round {amount:,.10g} {what}, over the limit {limit:g}", next_step=advice)
        while lines := list(self._job_log.wanted_lines(MOST_REQUESTS, MOST_BYTES)):
            number = self._job_log.intend(round_number, len(lines))
            with tempfile.TemporaryDirectory(prefix="compact-") as folder:
                path = Path(folder, f"{self._named(number)}.jsonl")
                path.write_text("".join(f"{line}\n" for _, line in lines), encoding="utf-8")
                name = self._tried_call(self._batches.begin, path, self._named(number))
            self._job_log.begun(number, name, [key for key, _ in lines])
        return count

    def _named(self, number: int) -> str:
        return f"{self._mark}-{number}"

    def _tried_call(self, call: Callable[..., Any], *arguments: object) -> Any:
        try:
            return call(*arguments)
        except ModelFailure as failure:
            advice = "nothing is lost: compactor batch collect goes on"
            raise TryLater(f"the provider: {failure.reason}", next_step=advice) from None
