"""Account: the report as a file, and what is said about each input."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from compactor_cli import __version__
from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, atomic_writer
from compactor_cli.cli.console import Console
from compactor_cli.model.errors import InvariantError
from compactor_cli.model.events import Event, InputEnded, RunEnded
from compactor_cli.model.records import Place
from compactor_cli.model.report import InputReport, Outcome, TranscriptReport
from compactor_cli.model.settings import Settings
from compactor_cli.read.streams import STDIN
from compactor_cli.run.jobs import Purpose

# Inputs of a report that are checked by its schema: the others are written as these are, and checking ten
# thousand takes longer than working on them.
MOST_CHECKED = 200
_NOT_ASCII = re.compile(r"[^\x00-\x7e]+")


def write_report(
    path: str,
    *,
    settings: Settings | None,
    inputs: Sequence[InputReport],
    exit_code: int,
    error: str,
    model: Mapping[str, Any] | None = None,
) -> None:
    """Write the report (``-`` is standard output) as JSON by the schema ``report``."""
    from compactor_cli.schema import faults

    report = {
        "version": __version__,
        "exit_code": exit_code,
        "error": error,
        "settings": dataclasses.asdict(settings) if settings else None,
        "model": model,
        "inputs": inputs,
    }
    text = _json(report) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        with atomic_writer(path, mode=PRIVATE_FILE_MODE) as file:
            file.write(text.encode())
    written = json.loads(text)
    written["inputs"] = written["inputs"][:MOST_CHECKED]
    if wrong := faults("report", written):
        raise InvariantError(
            f"the report is not by its schema: {wrong[0]}", next_step="this is a defect, please report it"
        )


def _json(report: Mapping[str, Any]) -> str:
    """In ASCII: names of files may hold bytes that are not UTF-8."""
    try:
        text = orjson.dumps(report, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:
        return json.dumps(report, indent=2, default=dataclasses.asdict)
    return _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


class Teller:
    """A listener that says on the console what became of each input, and in the end of all."""

    def __init__(self, purpose: Purpose, console: Console) -> None:
        self._purpose = purpose
        self._console = console

    def __call__(self, event: Event, /) -> None:
        """Say what there is to say of it."""
        if isinstance(event, InputEnded):
            tell(event.report, self._purpose, self._console)
        elif isinstance(event, RunEnded) and not event.error:
            tell_all(event.inputs, self._purpose, self._console)


def tell(report: InputReport, purpose: Purpose, console: Console) -> None:
    """Say what became of one input."""
    if report.error:
        advice = f": {report.next_step}" if report.next_step else ""
        console.error(report.error + advice)
        if report.reason.startswith("Traceback"):
            console.why(report.reason)
    name = "standard input" if report.path == STDIN else report.path
    for warning in report.warnings:
        console.warn(f"{name}: {warning}")
    for item in report.transcripts:
        place = Place(path=name, line=item.line, row=item.row)
        _warn(str(place) if sum(report.counts.values()) > 1 else name, item, console)
    if report.not_carried and purpose is Purpose.ACT:
        from compactor_cli.render.convert import not_carried_line

        console.warn(f"{name}: {not_carried_line(report.not_carried, report.written_as)}")
    if report.outcome is Outcome.SKIPPED and report.reason == "live":
        console.done(f"{name}: skipped, it was changed just now: --min-age 0 takes it all the same")
    elif report.outcome is Outcome.SKIPPED:
        console.note(f"{name}: skipped ({report.reason})")
    elif report.outcome is Outcome.UNCHANGED and purpose is Purpose.ACT:
        console.note(f"{name}: unchanged ({report.reason or 'nothing to do'})")
    elif report.outcome is Outcome.COMPACTED and purpose is Purpose.ACT:
        console.done(f"{name}: {_sizes(report)}{_kept_where(report)}", kind="compacted")


def tell_all(reports: Sequence[InputReport], purpose: Purpose, console: Console) -> None:
    """Say what became of all inputs, if there are several."""
    if len(reports) < 2 or purpose is not Purpose.ACT:
        return
    counts = Counter(report.outcome.value for report in reports)
    said = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items()))
    before, after = (sum(getattr(report, name) for report in reports) for name in ("tokens_before", "tokens_after"))
    console.done(f"{len(reports):,} inputs: {said}; {before:,} → {after:,} tokens")


def _warn(name: str, item: TranscriptReport, console: Console) -> None:
    if item.outcome is Outcome.FAILED:
        console.warn(f"{item.reason}; passed on unchanged")
    if item.over_target:
        console.warn(f"{name}: over its target: {item.over_target}")
    for warning in item.warnings:
        console.warn(f"{name}: {warning}")
    for note in item.notes:
        console.note(f"{name}: {note}")


def _sizes(report: InputReport) -> str:
    saved = 1 - report.tokens_after / report.tokens_before if report.tokens_before else 0.0
    many = sum(report.counts.values())
    rows = f" in {many:,} conversations" if many > 1 else ""
    return f"{report.tokens_before:,} → {report.tokens_after:,} tokens (−{saved:.0%}){rows}"


def _kept_where(report: InputReport) -> str:
    return f"; the original is {report.archive}" if report.archive else ""
