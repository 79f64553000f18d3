"""Reports and events: what happened to each transcript, and what happens while a run lasts.

The reports are the one source of exit code, text and JSON. Events are passed to whoever listens, at once::

    RunBegan
      InputBegan                    an input is opened
        BytesRead …                 pieces of it
        Planned                     what becomes of one transcript
          ModelCalled …             one call of a model for its summary
        TranscriptEnded             what became of it
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
from typing import TYPE_CHECKING, Any, Protocol

from compactor_cli.model.plan import Plan
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass

if TYPE_CHECKING:
    from compactor_cli.model.summary import Estimate


# Reports are read by people: of a dataset's rows the first are listed, and all are counted.
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
    line: int = 0  # where it begins in its input, from 1; 0: there is no such line
    row: int = 0  # which row of a document that is an array of them, from 1; 0 elsewhere
    records: int = 0
    reason: str = ""
    tier: str = ""
    token_method: str = ""  # by which the sizes are counted
    window_tokens: int = 0
    target_tokens: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    bytes_before: int = 0  # of the file
    bytes_after: int = 0
    kept: int = 0
    covered: int = 0
    pruned: Mapping[str, int] = field(default_factory=dict)
    summary_source: str = ""
    summary_tokens: int = 0
    state_used: str = ""
    over_target: str = ""
    orphans: tuple[str, ...] = ()  # calls and results without their other half
    in_flight: tuple[str, ...] = ()
    fell_back: str = ""  # this and the next are of a model that was asked: see `Answer`
    invented: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    refused_tokens: int = 0
    lost: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    retention: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # for people
    not_carried: Mapping[str, int] = field(default_factory=dict)  # left behind in another format: how much, by name


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
    counts: Mapping[str, int] = field(default_factory=dict)  # of all transcripts, by outcome
    tokens_before: int = 0
    tokens_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    written_as: str = ""  # the format of the output, where it is not the input's own
    not_carried: Mapping[str, int] = field(default_factory=dict)
    transcripts: tuple[TranscriptReport, ...] = ()  # the first, and all that failed, warned or are over target
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
    """The report of an input, in one short object where it stayed as it is and there is nothing to report."""
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
    """A run over this many inputs; ``purpose`` as the user gave it (``act``, ``plan``, ``try``)."""

    inputs: int
    version: str
    preset: str
    purpose: str
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputBegan:
    """An input is about to be opened."""

    path: str
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesRead:
    """``size_bytes`` more of an input were read."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A transcript's plan was made; ``report`` has the sizes that a run by it reaches at most."""

    path: str
    report: TranscriptReport
    at: float = field(default_factory=time.time)


class Answered(StrEnum):
    """What came of a call."""

    BY_MODEL = "answered"
    CACHED = "cached"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """One request to a model, or its answer from the cache; each repetition is one of its own.

    ``transcript``: the hash of what it is about; ``cost_usd`` None: not known.
    """

    transcript: str
    model: str
    reply: Answered
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    error: str = ""
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEnded:
    """What became of one transcript; nothing of it is written yet."""

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
    """The run is over. ``error``: why it did not start or finish; ``model``: what was asked of models in all."""

    inputs: tuple[InputReport, ...]
    exit_code: int
    error: str = ""
    model: Mapping[str, object] | None = None
    at: float = field(default_factory=time.time)


Event = RunBegan | InputBegan | BytesRead | Planned | ModelCalled | TranscriptEnded | InputEnded | RunEnded


class Listener(Protocol):
    """Receives events, from any thread. Raises nothing, and changes nothing of what happens."""

    def __call__(self, event: Event, /) -> None:
        """One event, at once."""
        ...


def without_progress(listener: Callable[[Event], object]) -> Listener:
    """A listener that passes on everything but how far reading is."""

    def emit(event: Event, /) -> None:
        if not isinstance(event, BytesRead):
            listener(event)

    return emit


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """One transcript compacted, or left as it was."""

    output: bytes  # its source, where nothing changed
    report: TranscriptReport
    plan: Plan
    state: bytes | None = None  # the counter table of the summary, to be stored under the hash that its marker names
    summary_text: str = ""
    transcript: Transcript | None = None  # what the output is read as; None where nothing changed
    estimate: Estimate | None = None  # what a model would be asked, of a decision alone
    example: bytes = b""  # the summariser's own call, as a row of a dataset

    @property
    def changed(self) -> bool:
        """Whether the output differs from the source."""
        return self.report.outcome is Outcome.COMPACTED
