"""Reports and events: what happened to each transcript, and what happens while a run lasts.

Exit code, text and JSON are all made from the reports. Events are passed to listeners when they happen::

    RunBegan
      InputBegan                    an input is opened
        BytesRead …                 pieces of it
        Planned                     the plan of one transcript was made
          ModelCalled …             one call of a model for its summary
        TranscriptEnded             the outcome of that transcript
      InputEnded                    archived, written, or failed
    RunEnded

Inputs that are worked on at the same time are reported interleaved; the events of an input stay in this order.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from compactor_cli.model.plan import Plan
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass

if TYPE_CHECKING:
    from compactor_cli.model.summary import Estimate


# The most rows of a dataset that a report lists; all rows are counted.
LISTED = 20


class Outcome(StrEnum):
    """How one input ended."""

    COMPACTED = "compacted"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptReport:
    """One transcript: what was decided, what it cost, what was lost. Sizes are tokens of what a model is shown."""

    outcome: Outcome
    sha256: str = ""
    dialect: str = ""
    line: int = 0  # line of the input at which it begins, counted from 1; 0: it has no records
    row: int = 0  # row of a document that is an array of rows, counted from 1; 0 in other documents
    records: int = 0
    reason: str = ""  # as `Plan.reason`
    tier: str = ""
    token_method: str = ""  # how the sizes were counted
    window_tokens: int = 0  # 0: not known
    target_tokens: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    bytes_before: int = 0  # of the transcript in its file
    bytes_after: int = 0
    kept: int = 0  # records kept as they were
    covered: int = 0  # records that the summary replaced
    pruned: Mapping[str, int] = field(default_factory=dict)  # records shortened or left out, by rule
    summary_source: str = ""  # a `Source`; empty: no summary was written
    summary_tokens: int = 0
    state_used: str = ""  # as `Summary.state_used`
    over_target: str = ""  # as `Plan.over_target`
    orphans: tuple[str, ...] = ()  # calls without a result, and results without a call
    in_flight: tuple[str, ...] = ()  # calls still running at the end of the transcript
    # What came of asking a model: the five fields up to ``refused_tokens`` are those of `Answer`.
    fell_back: str = ""
    invented: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    refused_tokens: int = 0
    lost: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # as `Summary.lost`
    retention: Mapping[str, float] = field(default_factory=dict)  # as `Summary.retention`
    notes: tuple[str, ...] = ()  # for people
    warnings: tuple[str, ...] = ()  # for people
    not_carried: Mapping[str, int] = field(default_factory=dict)  # what another format cannot hold: how much, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReport:
    """One input (a file or standard input) with its transcripts."""

    path: str
    outcome: Outcome
    output: str = ""
    archive: str = ""
    sha256: str = ""
    reason: str = ""
    error: str = ""
    next_step: str = ""
    exit_code: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)  # number of transcripts, by outcome
    tokens_before: int = 0
    tokens_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    written_as: str = ""  # dialect of the output; empty: that of the input
    not_carried: Mapping[str, int] = field(default_factory=dict)  # as in `TranscriptReport`, of all transcripts
    transcripts: tuple[TranscriptReport, ...] = ()  # the first ones, and all that failed, warned or missed the target
    warnings: tuple[str, ...] = ()


def totals(inputs: Iterable[InputReport]) -> dict[str, Any]:
    """Inputs and conversations by outcome, and the sizes of all of them."""
    reports = tuple(inputs)
    outcomes = Counter(report.outcome for report in reports)
    conversations: Counter[str] = Counter()
    for report in reports:
        conversations.update(report.counts)
    sizes = ("tokens_before", "tokens_after", "bytes_before", "bytes_after")
    return {
        "inputs": {"total": len(reports), **{outcome.value: outcomes[outcome] for outcome in Outcome}},
        "conversations": {
            "total": conversations.total(),
            **{outcome.value: conversations[outcome.value] for outcome in Outcome},
        },
        **{name: sum(getattr(report, name) for report in reports) for name in sizes},
    }


def short(report: InputReport) -> InputReport | dict[str, Any]:
    """The report of an input; shortened to a few keys if the input is unchanged and there is nothing to warn of."""
    odd = report.warnings or any(item.warnings or item.over_target or item.orphans for item in report.transcripts)
    if report.outcome is not Outcome.UNCHANGED or odd or report.error or report.not_carried:
        return report
    return {
        "path": report.path,
        "outcome": report.outcome.value,
        "reason": report.reason,
        "tokens_before": report.tokens_before,
        "bytes_before": report.bytes_before,
        **({"output": report.output} if report.output else {}),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegan:
    """A run has begun."""

    inputs: int  # how many
    version: str
    preset: str
    purpose: str  # as the user gave it: ``act``, ``plan`` or ``try``
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputBegan:
    """An input is about to be opened."""

    path: str
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesRead:
    """Another piece of an input was read."""

    path: str
    size_bytes: int  # of this piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The plan of a transcript was made."""

    path: str
    report: TranscriptReport  # its sizes are the most that carrying out the plan can reach
    at: float = field(default_factory=time.time)


class Answered(StrEnum):
    """The outcome of a request to a model."""

    BY_MODEL = "answered"
    CACHED = "cached"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """One request to a model, or its answer from the cache; each retry is an event of its own."""

    transcript: str  # hash of the transcript that is summarised
    model: str
    reply: Answered
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None  # None: not known
    seconds: float = 0.0
    error: str = ""
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEnded:
    """One transcript was compacted or left as it is; its output is not written yet."""

    path: str
    report: TranscriptReport
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEnded:
    """An input is done: its original archived and its result in effect, or it failed and is as it was."""

    report: InputReport
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """The run is over."""

    inputs: tuple[InputReport, ...]
    exit_code: int
    error: str = ""  # why it did not start or did not finish; empty: it finished
    model: Mapping[str, object] | None = None  # totals of all requests to models; None: no model was in use
    at: float = field(default_factory=time.time)


Event = RunBegan | InputBegan | BytesRead | Planned | ModelCalled | TranscriptEnded | InputEnded | RunEnded


# Gets each event when it happens, from any thread. Must not raise, and cannot change what happens.
Listener = Callable[[Event], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """One transcript compacted, or left as it was."""

    output: bytes  # what is to be written; the source itself where nothing changed
    report: TranscriptReport
    plan: Plan
    state: bytes | None = None  # the counter table of the summary, to be stored under the hash that its marker names
    summary_text: str = ""
    transcript: Transcript | None = None  # the output, as it is read again; None where nothing changed
    estimate: Estimate | None = None  # what a model would cost, where the run only plans
    example: bytes = b""  # the request for the summary and the reply, as a row of a dataset; empty: not collected

    @property
    def changed(self) -> bool:
        """Whether the output differs from the source."""
        return self.report.outcome is Outcome.COMPACTED
