"""Recorded: a line to the models that answers from the book, and sets down what it cannot answer.

The summaries of a dataset are made as live ones are, again and again: each time further, until nothing is missing.
Prompts depend only on the transcript, the settings and the replies before them, so what was answered once is found
again, and replies are checked, retried, cut smaller and joined by the same code as live ones.
"""

from __future__ import annotations

import json
from dataclasses import replace
from enum import StrEnum
from typing import Any

from compactor_cli.llm.llm import Batches
from compactor_cli.llm.model_calls import Call, ContextTooLong, GaveUp, Reply
from compactor_cli.llm.model_client import ModelClient, redacted
from compactor_cli.llm.redact import Redactor
from compactor_cli.llm.reply_cache import key_of
from compactor_cli.model.errors import KeptAsIs, TryLater
from compactor_cli.run.model_run import ModelConfig, ModelRun
from compactor_cli.scale.batch_job_log import BatchJobLog, RequestFault


class Missing(StrEnum):
    """What to do with a request that the book has no reply to."""

    SEND = "send"  # set it down for the next job
    ASK = "ask"  # ask live
    GIVE_UP = "give up"  # the digest, or what else the user asks for where a model gives nothing


class Deferred(KeptAsIs):
    """The summary waits for replies: its transcript is not to be written yet."""


class Pending(TryLater):
    """Summaries of this shard wait for replies: nothing of it is written yet."""


class RecordedClient(ModelClient):
    """`ask` never sends, but with ASK, and then only what failed in a job or is in none."""

    def __init__(self, job_log: BatchJobLog, batches: Batches, missing: Missing, **line: Any) -> None:
        super().__init__(**line)
        self.deferred = 0
        self._job_log = job_log
        self._batches = batches
        self._missing = missing

    async def ask(self, call: Call, redactor: Redactor | None = None) -> Reply:
        """The reply in the book. Raises `Deferred` where one is to come; else as `ModelClient.ask`.

        It does not wait before it raises, so calls that are asked side by side are all set down.
        """
        sent = redacted(call, redactor)
        entry = self._job_log.entry(key_of(sent))
        if entry and entry.reply:
            text = redactor.redact(entry.reply.text) if redactor else entry.reply.text
            return replace(entry.reply, text=text)
        if entry and entry.fault is RequestFault.TOO_LONG:
            raise ContextTooLong(entry.reason)
        if self._missing is Missing.ASK:
            return await super().ask(call, redactor)
        if self._missing is Missing.SEND and (entry is None or entry.waits):
            self.deferred += 1
            if entry is None:
                self._want(sent)
            raise Deferred("its summary waits for a batch job")
        raise GaveUp(entry.reason if entry and entry.reason else "no reply from any batch job")

    def fallback_of(self, call: Call) -> Call | None:
        """The fallback model is asked live, or not at all."""
        return super().fallback_of(call) if self._missing is Missing.ASK else None

    def _want(self, call: Call) -> None:
        key = key_of(call)
        line = {"custom_id": key.hex(), "method": "POST", "url": "/v1/chat/completions"}
        text = json.dumps({**line, "body": self._batches.body(call)})
        self._job_log.want(key, text, call.expected_input_tokens, call.max_tokens)


class RecordedRun(ModelRun):
    """A run whose outputs take effect only where none of their summaries waits."""

    def __init__(self, run_config: ModelConfig, line: RecordedClient) -> None:
        super().__init__(run_config, line=line)
        self._recorded = line
        self._before = 0

    def begin(self) -> None:
        """Before a shard."""
        self._before = self._recorded.deferred

    def settle(self) -> None:
        """Raises `Pending` where a summary of this shard waits."""
        waiting = self._recorded.deferred - self._before
        if waiting:
            raise Pending(f"{waiting:,} requests wait for a batch job", next_step="collect again later")
