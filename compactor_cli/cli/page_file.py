"""``--html``: a listener that writes a page on what a run did, for a person to look at."""

from __future__ import annotations

import time
from array import array
from heapq import heappush, heappushpop
from pathlib import Path

from compactor_cli.cli.written import output_file
from compactor_cli.model.errors import Place
from compactor_cli.model.plan import Plan
from compactor_cli.model.report import Event, RunEnded, TranscriptEnded, TranscriptReport
from compactor_cli.model.settings import Settings
from compactor_cli.model.transcript import Transcript
from compactor_cli.read.streams import STDIN
from compactor_cli.render.page import MAX_ROWS
from compactor_cli.run.rows import CompactedRow


class PageFile:
    """Writes the page when the run ends: on one transcript if there was only one, else on all of them.

    Of each transcript two numbers are held, and of the worst ones their reports.
    """

    def __init__(self, path: str, settings: Settings) -> None:
        self._path = path
        self._settings = settings
        self._began = time.time()
        self._session = ""
        self._before = array("L")
        self._after = array("L")
        self._uncounted = 0
        self._worst: list[tuple[float, int, str, TranscriptReport]] = []

    def add_session(self, page: str) -> None:
        """The page of a transcript; of several, none is written."""
        self._session = page

    def __call__(self, event: Event, /) -> None:
        """Take it in."""
        if isinstance(event, TranscriptEnded):
            self._add(event.path, event.report)
        elif isinstance(event, RunEnded) and (event.inputs or not event.error):
            self._write(self._page(event))

    def _add(self, path: str, report: TranscriptReport) -> None:
        self._before.append(report.tokens_before)
        self._after.append(report.tokens_after)
        self._uncounted += report.reason.startswith("at most ")
        if not report.retention:
            return
        name = str(Place(path=_name(path), line=report.line, row=report.row)) if report.line > 1 else _name(path)
        # The negative: a heap lets go of its smallest, here of what kept most.
        kept_ratio = sum(report.retention.values()) / len(report.retention)
        item = (-kept_ratio, -len(self._before), name, report)
        (heappush if len(self._worst) < MAX_ROWS else heappushpop)(self._worst, item)

    def _page(self, event: RunEnded) -> str:
        if self._session and len(event.inputs) == 1 and len(self._before) == 1:
            return self._session
        from compactor_cli.render.page import run_page

        worst = [(name, report) for _, _, name, report in sorted(self._worst, reverse=True)]
        one = event.inputs[0].path if len(event.inputs) == 1 else ""
        return run_page(
            event.inputs,
            list(zip(self._before, self._after, strict=True)),
            worst,
            target_tokens=self._settings.target.tokens,
            seconds=event.at - self._began,
            uncounted=self._uncounted,
            title=f"{Path(one).name} compacted" if one and one != STDIN else "What was compacted",
        )

    def _write(self, page: str) -> None:
        with output_file(self._path) as file:
            file.write(page.encode())


def session_view(transcript: Transcript, row: CompactedRow, settings: Settings) -> str:
    """The page of one transcript; empty for the rows of a dataset but the first."""
    place = transcript.records[0].place if transcript.records else None
    if place is None or place.line > 1 or place.row > 1:
        return ""
    from compactor_cli.plan.tokens import counter_for
    from compactor_cli.render.page import printable, session_page

    plan: Plan = row.plan
    counter = counter_for(settings.tokenizer, transcript.model)
    title = printable(Path(_name(place.path)).name)
    return session_page(transcript, plan, row.summary, row.report, counter=counter, title=title)


def _name(path: str) -> str:
    return "standard input" if path == STDIN else path
