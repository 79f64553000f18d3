"""Events: what happens in a run, passed to whoever listens, while it happens.

::

    RunBegan
      InputBegan                    an input is opened
        BytesRead …                 pieces of it
        Planned                     what becomes of one transcript
          Asked …                   one call of a model for its summary
        TranscriptEnded             what became of it
      InputEnded                    archived, written, or failed
    RunEnded

Inputs that are worked on at the same time are reported interleaved; the events of an input stay in this order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from compactor_cli.model.report import InputReport, TranscriptReport


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
    """So much more of an input was read."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A transcript's plan was made; ``report`` says what a run by it would take at most."""

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
    """Hears events, from any thread. Raises nothing; it has no say in what happens."""

    def __call__(self, event: Event, /) -> None:
        """One event, at once."""
        ...


def without_progress(listener: Callable[[Event], object]) -> Listener:
    """A listener that passes on everything but how far reading is."""

    def emit(event: Event, /) -> None:
        if not isinstance(event, BytesRead):
            listener(event)

    return emit
