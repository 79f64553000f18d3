"""``--events``: a listener that writes each event as one line of JSON, by the schema ``event``."""

from __future__ import annotations

import json
import os
import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from compactor_cli.archive.atomic import PRIVATE_FILE_MODE
from compactor_cli.cli.console import Console
from compactor_cli.model.errors import UsageError
from compactor_cli.model.report import (
    BytesRead,
    Event,
    InputBegan,
    InputEnded,
    InputReport,
    ModelCalled,
    Outcome,
    Planned,
    RunBegan,
    RunEnded,
    TranscriptEnded,
    TranscriptReport,
)

_DESCRIPTOR = re.compile(r"fd:(\d+)")
_PLANNED = (
    "dialect records reason tier window_tokens target_tokens tokens_before tokens_after kept covered over_target"
).split()
_ENDED = (
    "outcome reason tokens_before tokens_after bytes_before bytes_after kept covered summary_source summary_tokens"
    " fell_back warnings"
).split()
_INPUT = (
    "outcome reason tokens_before tokens_after bytes_before bytes_after sha256 archive output counts exit_code"
).split()


class EventFile:
    """Writes to a file (after what is in it) or to an open descriptor, a whole line at a time.

    ``fd:3`` names a descriptor, ``-`` standard output.
    Where that fails, the run goes on: ``trouble`` says why, and nothing more is written. Use as a context manager.
    """

    def __init__(self, where: str) -> None:
        """Raises UsageError if it cannot be written."""
        self.trouble = ""
        self._lock = threading.Lock()
        # What was paid, by transcript while it is worked on, then by input.
        self._costs_usd: defaultdict[str, float] = defaultdict(float)
        self._paid_usd: defaultdict[str, float] = defaultdict(float)
        self._descriptor = _opened(where)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def __call__(self, event: Event) -> None:
        """Write what there is to say of it."""
        with self._lock:
            for line in self._lines(event):
                self._write(json.dumps(line).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        try:
            while data and not self.trouble:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self.trouble = error.strerror or str(error)

    def _lines(self, event: Event) -> Iterator[dict[str, Any]]:
        match event:
            case BytesRead():
                return
            case RunBegan():
                values = {"inputs": event.inputs, "version": event.version, "preset": event.preset}
                yield _line("run", event.at, **values, purpose=event.purpose)
            case InputBegan():
                yield _line("begin", event.at, path=event.path)
            case Planned():
                report = event.report
                yield _line("plan", event.at, **_transcript(event.path, report), **_picked(report, _PLANNED))
            case ModelCalled():
                self._costs_usd[event.transcript] += event.cost_usd or 0.0
                yield _line("call", event.at, **_call(event))
            case TranscriptEnded():
                yield from self._transcript_ended(event)
            case InputEnded():
                yield from self._input_ended(event.report, event.at)
            case RunEnded():
                yield from _run_ended(event)

    def _transcript_ended(self, event: TranscriptEnded) -> Iterator[dict[str, Any]]:
        report = event.report
        name = _transcript(event.path, report)
        if report.outcome is Outcome.FAILED:
            yield _line("error", event.at, path=event.path, line=report.line, error=report.reason, exit_code=3)
        cost_usd = self._costs_usd.pop(report.sha256, 0.0)
        self._paid_usd[event.path] += cost_usd
        yield _line("transcript", event.at, **name, **_picked(report, _ENDED), cost_usd=cost_usd)

    def _input_ended(self, report: InputReport, at: float) -> Iterator[dict[str, Any]]:
        if report.error:
            values = {"error": report.error, "next_step": report.next_step, "exit_code": report.exit_code}
            yield _line("error", at, path=report.path, **values)
        cost_usd = self._paid_usd.pop(report.path, 0.0)
        yield _line("end", at, path=report.path, **_picked(report, _INPUT), cost_usd=cost_usd)


def _run_ended(event: RunEnded) -> Iterator[dict[str, Any]]:
    if event.error:
        yield _line("error", event.at, error=event.error, exit_code=event.exit_code)
    cost_usd = float(str((event.model or {}).get("cost_usd") or 0.0))
    tokens = {name: sum(getattr(item, name) for item in event.inputs) for name in ("tokens_before", "tokens_after")}
    yield _line("done", event.at, inputs=len(event.inputs), exit_code=event.exit_code, **tokens, cost_usd=cost_usd)


def _line(name: str, at: float, **values: Any) -> dict[str, Any]:
    moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"event": name, "time": moment, **values}


def _transcript(path: str, report: TranscriptReport) -> dict[str, Any]:
    return {"path": path, "line": report.line, "transcript": report.sha256}


def _picked(report: TranscriptReport | InputReport, names: list[str]) -> dict[str, Any]:
    found = {name: getattr(report, name) for name in names}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}


def _call(event: ModelCalled) -> dict[str, Any]:
    values = {"transcript": event.transcript, "model": event.model, "reply": event.reply.value}
    tokens = {"input_tokens": event.input_tokens, "output_tokens": event.output_tokens}
    return {**values, **tokens, "cost_usd": event.cost_usd, "seconds": round(event.seconds, 3), "error": event.error}


def _opened(where: str) -> int:
    """A descriptor of its own, not passed on to other programs. Raises UsageError."""
    try:
        if found := _DESCRIPTOR.fullmatch("fd:1" if where == "-" else where):
            descriptor = os.dup(int(found[1]))
            os.write(descriptor, b"")
            return descriptor
        return os.open(where, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE_MODE)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such descriptor"
        advice = "name a file, or an open descriptor: --events fd:3 3> events.jsonl"
        raise UsageError(f"events cannot be written there ({reason})", next_step=advice, place=where) from error


def warn_of_trouble(events: EventFile, console: Console) -> None:
    """Say that events were lost."""
    if events.trouble:
        console.warn(f"the events could not be written ({events.trouble}): the last ones are missing")
