"""Baselines that compact a whole transcript themselves: a built-in preset, or somebody else's program."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from compactor_cli.evaluate.baselines import Write
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.evaluate.fit import Count, first
from compactor_cli.evaluate.plain_events import plain_events
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import CompactError, UsageError
from compactor_cli.model.transcript import Container, Transcript
from compactor_cli.read.jsonl import OnInvalid, read_records

BUDGET_VARIABLE = "COMPACT_BUDGET_TOKENS"
TIMEOUT_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterMethod:
    """A function from a case and a budget to a compacted transcript, as bytes.

    Its summary is what the output says beyond the kept head and tail, cut to the budget.
    """

    name: str
    compact: Callable[[EvalCase, int], bytes]

    def prepare(self, case: EvalCase, count: Count) -> Write:
        """See `Method`."""
        return lambda budget: first(new_text(self.compact(case, budget), case), budget, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalMethod:
    """A command line, run without a shell.

    It gets what lies before the cut as JSONL, and ``COMPACT_BUDGET_TOKENS``, the tokens its summary may take; for
    what counts as its summary see `FilterMethod`. A program that cannot be started, fails or takes more than five
    minutes is a UsageError, since its figures would be of something else.
    """

    command: str

    @property
    def name(self) -> str:
        """``cmd:`` and the command line."""
        return f"cmd:{self.command}"

    def prepare(self, case: EvalCase, count: Count) -> Write:
        """See `Method`."""
        given = as_jsonl(case.prefix)
        return lambda budget: first(new_text(self._run(given, budget), case), budget, count)

    def _run(self, given: bytes, budget: int) -> bytes:
        environment = {**os.environ, BUDGET_VARIABLE: str(budget)}
        try:
            done = subprocess.run(  # noqa: S603 -- running the user's own command is what the option is for
                shlex.split(self.command),
                input=given,
                env=environment,
                capture_output=True,
                timeout=TIMEOUT_SECONDS,
                check=True,
            )
        except subprocess.CalledProcessError as error:
            complaint = error.stderr.decode("utf-8", "replace").strip().splitlines()
            what = f"the baseline command ended with status {error.returncode}: {self.command}"
            raise UsageError(
                what, next_step=complaint[-1] if complaint else "run it by hand on one transcript"
            ) from error
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"the baseline command does not run: {error}", next_step="check --baseline-cmd") from error
        return done.stdout


def as_jsonl(transcript: Transcript) -> bytes:
    """The records one a line, as they were written where they are lines."""
    if transcript.frame.container is Container.LINES:
        return b"".join(record.raw + b"\n" for record in transcript.records)
    return b"".join(orjson.dumps(record.value) + b"\n" for record in transcript.records)


def new_text(output: bytes, case: EvalCase) -> str:
    """What a compacted transcript says that neither head nor tail says; the whole output if it is no transcript."""
    kept = {event.text for event in (*case.head_events, *case.tail_events)}
    try:
        records = read_records(io.BytesIO(output), "-", OnInvalid.KEEP)
        found = [event.text for part in open_transcripts(records) for event in plain_events(part)]
    except CompactError:
        return output.decode("utf-8", "replace")
    return "\n".join(text for text in found if text not in kept)
