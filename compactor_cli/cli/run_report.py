"""Run report: what is known of a run so far, passed to its listeners and written as its report when it ends."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compactor_cli.cli.console import Console
from compactor_cli.cli.print_report import RunRecord, write_report
from compactor_cli.cli.run_options import RunOptions
from compactor_cli.model.report import Event, InputReport, Listener, RunEnded
from compactor_cli.model.settings import Settings

if TYPE_CHECKING:
    from compactor_cli.cli.metrics_file import Metrics


@dataclass(slots=True)
class RunReport:
    """``report``: where it is written; empty: nowhere. ``listeners`` hear every event, in their order.

    ``wants_all``: someone listens to what happens inside an input, not to its end alone. ``resume_command``: how the
    client of the session that was asked for goes on with it.
    """

    report: str
    settings: Settings | None = None
    inputs: tuple[InputReport, ...] = ()
    model: Mapping[str, Any] | None = None
    listeners: list[Listener] = field(default_factory=list)
    wants_all: bool = False
    resume_command: str = ""
    started: float = field(default_factory=time.time)
    metrics: Metrics | None = None

    def open_events(self, run_options: RunOptions, stack: ExitStack) -> None:
        """Begin to write events, where they are asked for. Raises UsageError if they cannot be written."""
        if run_options.metrics:
            from compactor_cli.cli.metrics_file import Metrics

            self.metrics = Metrics(run_options.metrics)
            self.listeners.append(self.metrics)
            self.wants_all = True
        if not run_options.events:
            return
        from compactor_cli.cli.event_file import EventFile, warn_of_trouble

        file = stack.enter_context(EventFile(run_options.events))
        stack.callback(warn_of_trouble, file, Console("compact", run_options.level, run_options.color))
        self.listeners.append(file)
        self.wants_all = True

    def emit(self, event: Event, /) -> None:
        """One event for everyone."""
        for listener in self.listeners:
            listener(event)

    def close(self, exit_code: int, error: str) -> None:
        """The run is over: tell it, and write the report."""
        self.emit(RunEnded(inputs=self.inputs, exit_code=exit_code, error=error, model=self.model))
        if self.report:
            run = RunRecord(
                started=self.started,
                settings=self.settings,
                inputs=self.inputs,
                model=self.model,
                metrics=self.metrics.value() if self.metrics else None,
            )
            write_report(self.report, run, exit_code=exit_code, error=error)
