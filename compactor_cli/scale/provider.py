"""Provider: the summaries of a dataset by batch jobs, round by round, until nothing is missing.

Round 1 asks for all leaves, the next ones for what could not be asked before: joined summaries, second attempts at
replies that were not accepted, halves of prompts that were too long. What a job fails at falls to the ladder (asked
live) or to the digest. A shard is written as soon as none of its summaries waits.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compactor_cli.llm.limits import RateLimiter, Spend
from compactor_cli.llm.llm import ENDED, Batches, batch_reply, scrubbed
from compactor_cli.llm.model import AUTO
from compactor_cli.llm.model_calls import Call, ModelFailure, Price, batch_price_of, provider_of
from compactor_cli.model.errors import TryLater, UsageError
from compactor_cli.run.model_run import ModelConfig
from compactor_cli.scale.batch_job_log import BatchJobLog, LoggedRequest, ProviderJob, RequestFault
from compactor_cli.scale.recorded import Missing, RecordedClient, RecordedRun
from compactor_cli.scale.run_shards import ShardResult, try_shard
from compactor_cli.scale.shard_options import ShardOptions
from compactor_cli.scale.shards import Shard

# What OpenAI takes in one job: 50,000 requests and 200 MB ("Batch API", platform documentation, 2025).
MOST_REQUESTS = 50_000
MOST_BYTES = 190 << 20
DEFAULT_ROUNDS = 4
_SENDING = "sending"
_TOO_LONG = ("context_length_exceeded", "maximum context length", "prompt is too long", "string_above_max_length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one look came to. ``results``: of the shards, if they could be tried; ``sent``: requests of a new round."""

    jobs: tuple[ProviderJob, ...]
    results: tuple[ShardResult, ...] = ()
    sent: int = 0

    @property
    def waits(self) -> bool:
        """Whether a job is under way."""
        return any(job.status not in ENDED for job in self.jobs)


def way_of(run_config: ModelConfig) -> Call:
    """Model, server and key of the jobs. Raises `UsageError` for models that have no batch jobs here."""
    model_options = run_config.model_options
    name = model_options.model
    model = f"openai/{name}" if model_options.api_base and not provider_of(name) else name
    if model_options.models or model_options.model == AUTO:
        raise UsageError("a batch job asks one model", next_step="name it with -m, without --model-for")
    if provider_of(model) not in Batches.PROVIDERS:
        advice = f"one of these providers: {', '.join(Batches.PROVIDERS)}; or ask live: compactor batch run -m"
        raise UsageError(f"{model}: no batch jobs with this provider", next_step=advice)
    key = model_options.key or run_config.keys.for_model(model)
    return Call(model=model, messages=(), max_tokens=0, api_base=model_options.api_base, key=key)


class Provider:
    """The jobs of one output folder. ``mark`` tells them from those of others at the same provider."""

    def __init__(self, job_log: BatchJobLog, run_config: ModelConfig, mark: str) -> None:
        self._job_log = job_log
        self._run_config = run_config
        self._mark = mark
        self._way = way_of(run_config)
        self._batches = Batches(self._way)

    def step(self, shards: Sequence[Shard], options: ShardOptions, missing: Missing, rounds: int) -> Step:
        """Fetch what came back; if nothing is under way any more, try the shards, and send what they lack.

        After this many ``rounds`` nothing is sent. Raises `TryLater` where the provider does not answer, `UsageError`
        where a limit would be passed; what came back is kept.
        """
        self.fetch()
        if (now := Step(jobs=self._job_log.jobs())).waits:
            return now
        round_number = max((job.round for job in now.jobs), default=0)
        if missing is Missing.SEND and round_number >= rounds:
            missing = Missing.GIVE_UP
        results = tuple(self._tried(shards, options, missing))
        sent = self._send(round_number + 1) if missing is Missing.SEND else 0
        return Step(jobs=self._job_log.jobs(), results=results, sent=sent)

    def standing(self) -> tuple[ProviderJob, ...]:
        """The jobs, with what the provider says of them now."""
        jobs = self._job_log.jobs()
        known = (job.status in ENDED or not job.name for job in jobs)
        return tuple(
            job
            if is_known
            else replace(job, status=self._tried_call(lambda job=job: self._batches.look(job.name)).status)
            for job, is_known in zip(jobs, known, strict=True)
        )

    def fetch(self) -> None:
        """Ask how the jobs stand, and keep what those that ended have brought."""
        for job in self._job_log.jobs():
            if job.status == _SENDING:
                self._recover(job)
        for job in self._job_log.jobs():
            if job.status not in ENDED:
                self._look(job)

    def _recover(self, job: ProviderJob) -> None:
        """A job that was about to be begun when the process died: taken up if the provider has it."""
        name = self._tried_call(lambda: self._batches.find(self._named(job.number)))
        if not name:
            self._job_log.forget(job.number)
            return
        keys = [key for key, _ in self._job_log.wanted_lines(job.requests, MOST_BYTES)]
        self._job_log.begun(job.number, name, keys)

    def _look(self, job: ProviderJob) -> None:
        found = self._tried_call(lambda: self._batches.look(job.name))
        if found.has_ended:
            for file in found.files:
                for line in self._tried_call(lambda file=file: list(self._batches.lines(file))):
                    self._keep(line)
            self._job_log.give_up(job.number, f"its batch job ended without a reply ({found.status})")
        self._job_log.stands(job.number, found.status)

    def _keep(self, line: bytes) -> None:
        """One result. A line that cannot be read is none."""
        try:
            value = json.loads(line)
            key = bytes.fromhex(value["custom_id"])
        except (ValueError, KeyError, TypeError):
            return
        self._job_log.keep(key, self._entry(value))

    def _entry(self, value: Mapping[str, Any]) -> LoggedRequest:
        response = value.get("response") or {}
        body = response.get("body") or {}
        if response.get("status_code") == 200 and not value.get("error"):
            try:
                reply = batch_reply(self._way, body)
            except ModelFailure as failure:
                return LoggedRequest(fault=RequestFault.FAILED, reason=failure.reason)
            price = self._price
            cost = price.cost_usd(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens) if price else None
            return LoggedRequest(reply=replace(reply, cost_usd=cost))
        error = value.get("error") or body.get("error") or {}
        error_text = (
            f"{error.get('code') or ''} {error.get('message') or ''}".strip() if isinstance(error, dict) else str(error)
        )
        fault = RequestFault.TOO_LONG if any(words in error_text for words in _TOO_LONG) else RequestFault.FAILED
        return LoggedRequest(fault=fault, reason=scrubbed(error_text or "no reply", self._way))

    @property
    def _price(self) -> Price | None:
        return self._run_config.model_options.price or batch_price_of(self._way.model)

    def _tried(self, shards: Sequence[Shard], options: ShardOptions, missing: Missing) -> Iterator[ShardResult]:
        run_config = self._run_config
        line = RecordedClient(
            self._job_log,
            self._batches,
            missing,
            spend=Spend(run_config.limits),
            rate_limiter=RateLimiter(run_config.rate_limits),
            keys=run_config.keys,
            fallback=run_config.fallback,
        )
        # The book is the cache: a reply that was paid live goes to the usual one only with batch run.
        with RecordedRun(replace(run_config, cache_file=None), line) as run:
            for shard in shards:
                run.begin()
                yield try_shard(shard, options, run)

    def _send(self, round_number: int) -> int:
        """Begin jobs for all that is wanted; how many requests that was."""
        count, input_tokens, output_tokens = self._job_log.wanted()
        if count:
            self._check_limits(count, input_tokens, output_tokens)
        while lines := list(self._job_log.wanted_lines(MOST_REQUESTS, MOST_BYTES)):
            number = self._job_log.intend(round_number, len(lines))
            with tempfile.TemporaryDirectory(prefix="compact-") as folder:
                path = Path(folder, f"{self._named(number)}.jsonl")
                path.write_text("".join(f"{line}\n" for _, line in lines), encoding="utf-8")
                name = self._tried_call(lambda path=path, number=number: self._batches.begin(path, self._named(number)))
            self._job_log.begun(number, name, [key for key, _ in lines])
        return count

    def _check_limits(self, count: int, input_tokens: int, output_tokens: int) -> None:
        limits, tally, price = self._run_config.limits, self._job_log.tally(), self._price
        cost = price.cost_usd(input_tokens=input_tokens, output_tokens=output_tokens) if price else 0.0
        for limit, amount, what in (
            (limits.requests, tally["replies"] + tally["faults"] + count, "requests"),
            (limits.tokens_sent, tally["input_tokens"] + input_tokens, "tokens sent"),
            (limits.cost_usd, tally["cost_usd"] + cost, "USD"),
        ):
            if limit and amount > limit:
                advice = "submit anew with a higher limit, or let the digest write the rest: collect --finish"
                raise UsageError(f"with this round {amount:,.10g} {what}, over the limit {limit:g}", next_step=advice)

    def _named(self, number: int) -> str:
        return f"{self._mark}-{number}"

    def _tried_call(self, call: Any) -> Any:
        try:
            return call()
        except ModelFailure as failure:
            advice = "nothing is lost: compactor batch collect goes on"
            raise TryLater(f"the provider: {failure.reason}", next_step=advice) from None
