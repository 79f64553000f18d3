"""Account: the report as a file, and a line for people about each input and about the run."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from compactor_cli import __version__
from compactor_cli.archive.atomic import PRIVATE_FILE_MODE
from compactor_cli.cli.console import Console, counted
from compactor_cli.cli.written import output_file
from compactor_cli.model.errors import InvariantError, Place
from compactor_cli.model.plan import Tier
from compactor_cli.model.report import (
    Event,
    InputEnded,
    InputReport,
    Outcome,
    RunEnded,
    TranscriptReport,
    short,
    totals,
)
from compactor_cli.model.settings import Keep, Settings, Size, Trigger
from compactor_cli.read.streams import STDIN
from compactor_cli.run.jobs import Purpose

# Inputs of a report that are checked by its schema: the others are written as these are, and checking ten
# thousand takes longer than working on them.
MOST_CHECKED = 200
REPORT_SCHEMA = 2
_NOT_ASCII = re.compile(r"[^\x00-\x7e]+")


def write_report(path: str, run: RunRecord, *, exit_code: int, error: str) -> None:
    """Write the report (``-`` is standard output) as JSON by the schema ``report``, an input a line."""
    from compactor_cli.schema import faults

    finished = time.time()
    report = {
        "schema": REPORT_SCHEMA,
        "version": __version__,
        "started": _moment(run.started),
        "finished": _moment(finished),
        "seconds": round(finished - run.started, 3),
        "exit_code": exit_code,
        "error": error,
        "totals": totals(run.inputs),
        "metrics": run.metrics,
        "settings": dataclasses.asdict(run.settings) if run.settings else None,
        "model": run.model,
    }
    lines = ",\n".join(f"    {_json(short(item), indented=False)}" for item in run.inputs)
    inputs = f"[\n{lines}\n  ]" if lines else "[]"
    text = f'{_json(report, indented=True)[:-2]},\n  "inputs": {inputs}\n}}\n'
    with output_file(path, mode=PRIVATE_FILE_MODE) as file:
        file.write(text.encode())
    written = json.loads(text)
    written["inputs"] = written["inputs"][:MOST_CHECKED]
    if wrong := faults("report", written):
        raise InvariantError(
            f"the report is not by its schema: {wrong[0]}", next_step="this is a defect, please report it"
        )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _json(value: object, *, indented: bool) -> str:
    """In ASCII: names of files may hold bytes that are not UTF-8."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indented else 0).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value, indent=2 if indented else None, default=dataclasses.asdict)
    return _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What a report tells of a run. ``started``: Unix seconds; ``metrics``: of all rows, where they were asked for."""

    started: float
    settings: Settings | None
    inputs: Sequence[InputReport]
    model: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWording:
    """What the lines about a run depend on: its purpose and settings, and how results are written.

    ``is_shown``: the result is only shown, and nothing is written; ``only_look``: nothing else was asked for.
    ``resume_command``: how the client goes on with the session, where that is known.
    """

    purpose: Purpose
    settings: Settings
    inputs: int = 1
    in_place: bool = False
    append: bool = False
    is_shown: bool = False
    only_look: bool = False
    resume_command: str = ""

    @property
    def names_results(self) -> bool:
        """Whether there is a result to name."""
        return self.purpose is Purpose.ACT or self.is_shown


class ResultLines:
    """A listener that prints what became of each input, and in the end of all of them."""

    def __init__(self, wording: ReportWording, console: Console) -> None:
        self._wording = wording
        self._console = console
        self._began = time.time()

    def __call__(self, event: Event, /) -> None:
        """Print what the event is worth to a person."""
        if isinstance(event, InputEnded):
            print_input(event.report, self._wording, self._console)
        elif isinstance(event, RunEnded) and not event.error and self._wording.purpose is Purpose.ACT:
            print_totals(event.inputs, event.at - self._began, self._console)
            if self._wording.resume_command and not event.exit_code:
                self._console.done(f"go on with it: {self._wording.resume_command}")


def print_input(report: InputReport, wording: ReportWording, console: Console) -> None:
    """Print what became of one input: errors and warnings, then its result on one line."""
    name = "standard input" if report.path == STDIN else report.path
    _print_problems(name, report, wording, console)
    if report.outcome is Outcome.SKIPPED and report.reason == "live":
        console.done(f"{name}: skipped, it was changed just now: --min-age 0 takes it anyway")
    elif report.outcome is Outcome.SKIPPED:
        console.note(f"{name}: skipped ({report.reason})")
    elif report.outcome is Outcome.UNCHANGED and wording.names_results:
        line = f"{name}: unchanged, {unchanged_line(report, wording.settings)}"
        (console.done if wording.inputs == 1 else console.note)(line)
    elif report.outcome is Outcome.COMPACTED and wording.names_results:
        console.done(f"{name}: {result_line(report, wording)}", kind="compacted")
    elif wording.purpose is Purpose.TRY and report.outcome in (Outcome.COMPACTED, Outcome.UNCHANGED):
        would = "would be compacted" if report.outcome is Outcome.COMPACTED else "would stay as it is"
        console.note(f"{name}: {would}, {_change(report.tokens_before, report.tokens_after)}")


def print_totals(reports: Sequence[InputReport], seconds: float, console: Console) -> None:
    """Print what became of all inputs, if there are several."""
    if len(reports) < 2:
        return
    counts = Counter(report.outcome for report in reports)
    outcomes = ", ".join(f"{counts[outcome]:,} {outcome.value}" for outcome in Outcome if counts[outcome])
    before, after = (sum(getattr(report, name) for report in reports) for name in ("tokens_before", "tokens_after"))
    console.done(f"{len(reports):,} inputs: {outcomes} · {_change(before, after)} · {seconds:,.1f} s")


def result_line(report: InputReport, wording: ReportWording) -> str:
    """``12,054 → 2,997 tokens (−75 %) · 26 kept, 81 summarised by the digest · back: compactor restore FILE``."""
    parts = [_change(report.tokens_before, report.tokens_after), _records(report)]
    if report.path != STDIN and (wording.in_place or wording.append) and report.archive:
        parts.append(f"back: compactor undo {shlex.quote(report.path)}")
    if wording.is_shown and not wording.only_look:
        ways = "-o FILE writes it, --stdout prints it"
        parts.append(f"nothing was written: {ways}" + (", -i replaces the file" if report.path != STDIN else ""))
    return " · ".join(filter(None, parts))


def unchanged_line(report: InputReport, settings: Settings) -> str:
    """How large it is, why it stays as it is, and how it becomes smaller anyway."""
    if len(report.transcripts) != 1 or sum(report.counts.values()) > 1:
        reason = report.reason or f"none of its {counted(sum(report.counts.values()), 'conversation')} needs compacting"
        return f"{report.tokens_before:,} tokens ({reason})"
    item = report.transcripts[0]
    bound = "at most " if item.reason.startswith("at most ") else ""
    size = f"{bound}{item.tokens_before:,} tokens"
    has_target = settings.target != Size()
    if has_target and item.tokens_before <= item.target_tokens:
        return f"{size}, within the target of {item.target_tokens:,}"
    default = settings.keep.head_tokens + settings.keep.tail_tokens
    is_default = not has_target and settings.trigger == Trigger() and settings.keep == Keep()
    if is_default and item.tokens_before <= default:
        return f"{size}, within the default of {default:,}; for less: -t 25%"
    return f"{size} ({item.reason or 'nothing to do'})"


def _print_problems(name: str, report: InputReport, wording: ReportWording, console: Console) -> None:
    if report.error:
        advice = f": {report.next_step}" if report.next_step else ""
        console.error(report.error + advice)
        if report.reason.startswith("Traceback"):
            console.why(report.reason)
    for warning in report.warnings:
        console.warn(f"{name}: {warning}")
    for item in report.transcripts:
        place = Place(path=name, line=item.line, row=item.row)
        where = str(place) if sum(report.counts.values()) > 1 else name
        _warn(where, item, console)
        _print_pressure(where, item, wording.settings.trigger, console)
    if report.not_carried and wording.purpose is Purpose.ACT:
        from compactor_cli.render.convert import not_carried_line

        console.warn(f"{name}: {not_carried_line(report.not_carried, report.written_as)}")


def warn_of_fallbacks(reports: Sequence[InputReport], console: Console) -> None:
    """Say how many summaries the digest wrote in place of the model or plug-in that was asked for, and why."""
    asked = [item for report in reports for item in report.transcripts if item.summary_source]
    reasons = Counter(item.fell_back for item in asked if item.fell_back)
    if reasons:
        (reason, _), *others = reasons.most_common()
        more = f" (and {len(others)} other reasons)" if others else ""
        console.warn(f"{reasons.total():,} of {len(asked):,} summaries fell back to the digest: {reason}{more}")


def _warn(name: str, item: TranscriptReport, console: Console) -> None:
    if item.outcome is Outcome.FAILED:
        console.warn(f"{item.reason}; passed on unchanged")
    if item.over_target:
        console.warn(f"{name}: over its target: {item.over_target}")
    for warning in item.warnings:
        console.warn(f"{name}: {warning}")
    for note in item.notes:
        console.note(f"{name}: {note}")


def _print_pressure(name: str, item: TranscriptReport, trigger: Trigger, console: Console) -> None:
    """Say that a transcript which stays as it is fills its window: from the first tier on with ``-v``.

    A warning from the second one on, where the window is the one that the run is about.
    """
    if item.outcome is not Outcome.UNCHANGED or item.tier in ("", Tier.NONE):
        return
    is_named = trigger.window_tokens or trigger.window_model
    line = f"{item.tokens_before:,} tokens fill {item.tokens_before / item.window_tokens:.0%} of the window"
    start = f"; compaction starts at {trigger.compact_ratio:.0%}" if is_named else ""
    report = console.warn if is_named and item.tier != Tier.LOG else console.note
    report(f"{name}: {line} of {item.window_tokens:,}{start}")


def _change(before: int, after: int) -> str:
    """``12,054 → 2,997 tokens (−75 %)``; one number where nothing changed."""
    if before == after:
        return f"{before:,} tokens"
    percent = round(100 * (1 - after / before)) if before else 0
    sign = "−" if percent >= 0 else "+"
    return f"{before:,} → {after:,} tokens ({sign}{abs(percent)} %)"


# Who wrote what stands for the summarised records, in the words of a sentence.
_AUTHORS = {
    "digest": "summarised by the digest",
    "model": "summarised by the model",
    "plugin": "summarised by a plug-in",
    "memory": "summarised by the session's note",
    "excerpts": "replaced by excerpts",
    "notice": "left out",
}
# Rules that take out what no model is shown.
_NO_CONTENT = ("bookkeeping", "usage")


def _records(report: InputReport) -> str:
    """What became of the records of one transcript, or of the conversations of a dataset."""
    many = sum(report.counts.values())
    if many != 1 or len(report.transcripts) != 1:
        return ", ".join(f"{count:,} {outcome}" for outcome, count in report.counts.items() if count) + (
            " conversations" if many else ""
        )
    item = report.transcripts[0]
    shortened = sum(count for rule, count in item.pruned.items() if rule not in _NO_CONTENT)
    parts = [f"{item.kept:,} kept"]
    parts += [f"{shortened:,} shortened"] if shortened else []
    parts += [f"{item.covered:,} {_AUTHORS.get(item.summary_source, 'left out')}"] if item.covered else []
    return ", ".join(parts)
