"""Run report: what is known of a run, passed to listeners as events and written as a report when the run ends."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import threading
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import field
from typing import IO, TYPE_CHECKING, Any

import orjson

from compactor_cli import __version__
from compactor_cli.archive.atomic import DEFAULT_MODE, PRIVATE_FILE_MODE, atomic_writer
from compactor_cli.archive.store import moment
from compactor_cli.cli.config import RunOptions
from compactor_cli.cli.console import Console, counted
from compactor_cli.model import report as events
from compactor_cli.model.errors import CompactError, InvariantError, UsageError
from compactor_cli.model.report import Event, InputReport, Outcome, RunEnded, TranscriptEnded, TranscriptReport, totals
from compactor_cli.model.settings import Settings
from compactor_cli.model.value import dataclass
from compactor_cli.run.outputs import STDOUT, standard_output

if TYPE_CHECKING:
    from compactor_cli.llm.limits import Spent
    from compactor_cli.run.model_run import ModelRun

# Inputs of a report that are checked against its schema: the others are written by the same code, and checking ten
# thousand would take longer than the work on them.
MOST_CHECKED = 200
REPORT_SCHEMA = 2
_NOT_ASCII = re.compile(r"[^\x00-\x7e]+")


def _json(value: object, *, indented: bool) -> str:
    """JSON in ASCII, since names of files may hold bytes that are not UTF-8."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indented else 0).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value, indent=2 if indented else None, default=dataclasses.asdict)
    return _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


@dataclass(slots=True)
class RunReport:
    """What is known of a run so far, and the listeners to its events."""

    report: str = ""  # the path of the report; empty: none is written
    settings: Settings | None = None  # None: not known yet
    inputs: tuple[InputReport, ...] = ()
    model: Mapping[str, Any] | None = None  # the usage of models; None without any
    listeners: list[events.Listener] = field(default_factory=list)  # each gets every event
    wants_all: bool = False  # whether a listener needs the events within an input, and not only its end
    resume_command: str = ""  # the command by which the client goes on with the session of --last; empty: not known
    started: float = field(default_factory=time.time)  # Unix seconds
    metrics: Metrics | None = None

    def open_events(self, run_options: RunOptions, console: Console, stack: ExitStack) -> None:
        """Add the listeners that the options name. Raises UsageError for a descriptor that is not open."""
        if run_options.metrics:
            self.metrics = Metrics(run_options.metrics)
            self.listeners.append(self.metrics)
            self.wants_all = True
        if run_options.events:
            self.listeners.append(stack.enter_context(EventFile(run_options.events, console)))
            self.wants_all = True

    def emit(self, event: Event, /) -> None:
        """Pass an event to all listeners."""
        for listener in self.listeners:
            listener(event)

    def add_late(self, report: InputReport) -> None:
        """Add an input that was done but not yet returned when the run was stopped."""
        self.inputs = (*self.inputs, report)
        self.emit(events.InputEnded(report=report))

    def close(self, exit_code: int, error: str) -> None:
        """Emit the end of the run, and write the report: JSON by the schema ``report``, with one line for each input.

        The first error of a listener is passed to the later ones and to the report, and is raised at the end.
        """
        failure: CompactError | None = None
        for listener in self.listeners:
            try:
                listener(RunEnded(inputs=self.inputs, exit_code=exit_code, error=error, model=self.model))
            except CompactError as raised:
                failure = failure or raised
                exit_code, error = exit_code or raised.exit_code, error or str(raised)
        if self.report:
            self._write(exit_code, error)
        if failure:
            raise failure

    def _write(self, exit_code: int, error: str) -> None:
        from compactor_cli.run.documents import faults

        finished = time.time()
        report = {
            "schema": REPORT_SCHEMA,
            "version": __version__,
            "started": moment(self.started),
            "finished": moment(finished),
            "seconds": round(finished - self.started, 3),
            "exit_code": exit_code,
            "error": error,
            "totals": totals(self.inputs),
            "metrics": self.metrics.value() if self.metrics else None,
            "settings": dataclasses.asdict(self.settings) if self.settings else None,
            "model": self.model,
        }
        lines = ",\n".join(f"    {_json(events.short(item), indented=False)}" for item in self.inputs)
        inputs = f"[\n{lines}\n  ]" if lines else "[]"
        text = f'{_json(report, indented=True)[:-2]},\n  "inputs": {inputs}\n}}\n'
        with output_file(self.report, mode=PRIVATE_FILE_MODE) as file:
            file.write(text.encode())
        written = json.loads(text)
        written["inputs"] = written["inputs"][:MOST_CHECKED]
        if wrong := faults("report", written):
            advice = "this is a defect, please report it"
            raise InvariantError(f"the report is not by its schema: {wrong[0]}", next_step=advice)


def output_file(path: str, *, mode: int = DEFAULT_MODE) -> AbstractContextManager[IO[bytes]]:
    """A file to write, by `atomic_writer`, or standard output."""
    return standard_output() if path == STDOUT else atomic_writer(path, mode=mode)


_DESCRIPTOR = re.compile(r"fd:(.*)")
_PLANNED = (
    "dialect records reason tier window_tokens target_tokens tokens_before tokens_after kept covered over_target"
).split()
_ENDED = (
    "outcome reason tokens_before tokens_after bytes_before bytes_after kept covered summary_source summary_tokens"
    " fell_back warnings"
).split()
_CALL = "transcript model reply input_tokens output_tokens cost_usd seconds error".split()
_INPUT = (
    "outcome reason tokens_before tokens_after bytes_before bytes_after sha256 archive output counts exit_code"
).split()


class EventFile(AbstractContextManager["EventFile"]):
    """Appends events to a file, or writes them to an open descriptor, always whole lines.

    ``fd:3`` names a descriptor, ``-`` standard output. The file is opened at the first event, which raises UsageError
    if that fails: by then it is known to be no input and no result. If writing fails later, the run goes on, nothing
    more is written, and ``console`` warns of it at the end. Use as a context manager.
    """

    def __init__(self, where: str, console: Console) -> None:
        """Raises UsageError for a descriptor that is not open."""
        self._where = where
        self._console = console
        self._trouble = ""
        self._lock = threading.Lock()
        # The cost by transcript, while it is worked on, and by input.
        self._costs_usd: defaultdict[str, float] = defaultdict(float)
        self._paid_usd: defaultdict[str, float] = defaultdict(float)
        self._number = _DESCRIPTOR.fullmatch("fd:1" if where == STDOUT else where)
        # Duplicated now, before a file that the run opens can get a number that was not open.
        self._descriptor = self._opened() if self._number else -1

    def _opened(self) -> int:
        try:
            if self._number:
                # A duplicate, which programs that the run starts do not inherit.
                descriptor = os.dup(int(self._number[1]))
                os.write(descriptor, b"")
                return descriptor
            return os.open(self._where, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE_MODE)
        except (OSError, OverflowError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "no such descriptor"
            what = f"events cannot be written there ({reason})"
            advice = "name a file, or an open descriptor: --events fd:3 3> events.jsonl"
            raise UsageError(what, next_step=advice, place=self._where) from error

    def __exit__(self, *raised: object) -> None:
        if self._trouble:
            self._console.warn(f"the events could not be written ({self._trouble}): the last ones are missing")
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def __call__(self, event: Event) -> None:
        """Write the lines of an event. Raises UsageError if the file cannot be opened."""
        with self._lock:
            self._descriptor = self._opened() if self._descriptor < 0 else self._descriptor
            try:
                for line in self._lines(event):
                    data = json.dumps(line).encode() + b"\n"
                    while data and not self._trouble:
                        data = data[os.write(self._descriptor, data) :]
            except OSError as error:
                self._trouble = error.strerror or str(error)

    def _lines(self, event: Event) -> Iterator[dict[str, Any]]:
        match event:
            case events.BytesRead():
                return
            case events.RunBegan():
                values = {"inputs": event.inputs, "version": event.version, "preset": event.preset}
                yield _line("run", event.at, **values, purpose=event.purpose)
            case events.InputBegan():
                yield _line("begin", event.at, path=event.path)
            case events.Planned():
                yield _line("plan", event.at, **_transcript(event.path, event.report, _PLANNED))
            case events.ModelCalled():
                self._costs_usd[event.transcript] += event.cost_usd or 0.0
                values = {name: getattr(event, name) for name in _CALL}
                yield _line("call", event.at, **values | {"seconds": round(event.seconds, 3)})
            case TranscriptEnded():
                report = event.report
                if report.outcome is Outcome.FAILED:
                    failed = {"path": event.path, "line": report.line, "error": report.reason}
                    yield _line("error", event.at, **failed, exit_code=3)
                cost_usd = self._costs_usd.pop(report.sha256, 0.0)
                self._paid_usd[event.path] += cost_usd
                yield _line("transcript", event.at, **_transcript(event.path, report, _ENDED), cost_usd=cost_usd)
            case events.InputEnded():
                ended, at = event.report, event.at
                if ended.error:
                    values = {"error": ended.error, "next_step": ended.next_step, "exit_code": ended.exit_code}
                    yield _line("error", at, path=ended.path, **values)
                cost_usd = self._paid_usd.pop(ended.path, 0.0)
                yield _line("end", at, path=ended.path, **_picked(ended, _INPUT), cost_usd=cost_usd)
            case RunEnded():
                if event.error:
                    yield _line("error", event.at, error=event.error, exit_code=event.exit_code)
                sizes = totals(event.inputs)
                values = {"inputs": len(event.inputs), "exit_code": event.exit_code}
                tokens = {name: sizes[name] for name in ("tokens_before", "tokens_after")}
                yield _line("done", event.at, **values, **tokens, cost_usd=_cost_usd(event))


def _cost_usd(ended: RunEnded) -> float:
    spent: Mapping[str, Any] = ended.model or {}
    return float(spent.get("cost_usd", 0.0))


def _line(name: str, at: float, **values: Any) -> dict[str, Any]:
    return {"event": name, "time": moment(at, "milliseconds"), **values}


def _transcript(path: str, report: TranscriptReport, names: list[str]) -> dict[str, Any]:
    return {"path": path, "line": report.line, "transcript": report.sha256, **_picked(report, names)}


def _picked(report: TranscriptReport | InputReport, names: list[str]) -> dict[str, Any]:
    found = {name: getattr(report, name) for name in names}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}


_PERCENTILES = (5, 25, 50, 75, 95)
_LISTED = 1_000  # failures listed at most; all are counted
PROMETHEUS = ".prom"  # the ending of a file that is written for Prometheus


class Metrics:
    """A listener that writes the file of metrics when the run ends, even if it failed.

    ``conversations``: counts by outcome, and of those over their target; ``tokens``: sums and their ratio; ``each``:
    percentiles over conversations (``ratio``: over the compacted ones only); ``summaries``: counts by who wrote them;
    ``failures``: place and reason. Only a few numbers are held in memory for each conversation.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._began = time.time()
        self._outcomes: Counter[str] = Counter()
        self._summaries: Counter[str] = Counter()
        self._records = [0, 0]
        self._over_target = 0
        self._before = array("L")
        self._after = array("L")
        self._ratios = array("f")
        self._failures: list[dict[str, Any]] = []

    def __call__(self, event: Event, /) -> None:
        """Count a transcript, or write the file at the end of the run."""
        if isinstance(event, RunEnded):
            is_prometheus = self._path.endswith(PROMETHEUS)
            text = self.prometheus(event) if is_prometheus else json.dumps(self.value(), indent=2) + "\n"
            with output_file(self._path) as file:
                file.write(text.encode())
        if not isinstance(event, TranscriptEnded):
            return
        report = event.report
        self._outcomes[report.outcome.value] += 1
        self._over_target += bool(report.over_target)
        self._before.append(report.tokens_before)
        self._after.append(report.tokens_after)
        self._records[0] += report.records
        self._records[1] += report.records - report.covered + bool(report.summary_source)
        if report.outcome is Outcome.COMPACTED:
            self._ratios.append(report.tokens_after / max(report.tokens_before, 1))
        if report.summary_source:
            self._summaries[report.summary_source] += 1
            self._summaries["fell back"] += bool(report.fell_back)
        if report.outcome is Outcome.FAILED and len(self._failures) < _LISTED:
            self._failures.append({"input": event.path, "line": report.line, "reason": report.reason})

    def prometheus(self, ended: RunEnded) -> str:
        """The metrics as gauges of the last run, for the textfile collector of Prometheus' node_exporter."""
        sizes = totals(ended.inputs)
        families = (
            ("last_run_timestamp_seconds", "When the last run ended, in Unix time.", ended.at),
            ("run_seconds", "How long it took.", round(ended.at - self._began, 3)),
            ("exit_code", "Its exit code.", ended.exit_code),
            ("inputs", "Inputs by what became of them.", sizes["inputs"]),
            ("conversations", "Conversations by what became of them.", sizes["conversations"]),
            ("tokens_before", "Tokens of all inputs.", sizes["tokens_before"]),
            ("tokens_after", "Tokens of all outputs.", sizes["tokens_after"]),
            ("over_target", "Conversations larger than their target.", self._over_target),
            ("fell_back", "Summaries that are not all by the model asked.", self._summaries["fell back"]),
            ("cost_usd", "Paid for models, in US dollars.", _cost_usd(ended)),
        )
        lines: list[str] = []
        for end, about, value in families:
            name = f"compact_{end}"
            lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
            if isinstance(value, Mapping):
                counts = {outcome: count for outcome, count in value.items() if outcome != "total"}
                lines += (f'{name}{{outcome="{outcome}"}} {count}' for outcome, count in counts.items())
            else:
                lines.append(f"{name} {value}")
        return "\n".join(lines) + "\n"

    def value(self) -> dict[str, Any]:
        """The content of the file."""
        before, after = sum(self._before), sum(self._after)
        ratio = round(after / before, 4) if before else 1.0
        return {
            "conversations": {
                "total": len(self._before),
                **{outcome.value: self._outcomes[outcome.value] for outcome in Outcome},
                "over_target": self._over_target,
            },
            "tokens": {"before": before, "after": after, "saved": before - after, "ratio": ratio},
            "records": {"before": self._records[0], "after": self._records[1]},
            "each": {
                "tokens_before": _percentiles(self._before),
                "tokens_after": _percentiles(self._after),
                "ratio": _percentiles(self._ratios),
            },
            "summaries": dict(self._summaries),
            "failures": self._failures,
        }


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    """The percentiles by the nearest rank; empty if there are no values."""
    ordered = sorted(values)
    ranks = {f"p{percent}": -(-percent * len(ordered) // 100) - 1 for percent in _PERCENTILES}
    return {name: round(ordered[max(rank, 0)], 4) for name, rank in ranks.items()} if ordered else {}


def print_models(run: ModelRun, console: Console) -> None:
    """Print warnings about keys, names and the reply cache, then the requests and their cost."""
    for warning in run.config.warnings:
        console.warn(warning)
    if run.cache and run.cache.trouble:
        console.warn(f"the reply cache: {run.cache.trouble}; replies are paid for again")
    print_spent(run.client.spend.spent, run.name, console)


def print_spent(spent: Spent, model: str, console: Console) -> None:
    """Print the requests and their cost; nothing if there were none."""
    if not spent.requests and not spent.cache_hits:
        return
    cost = f", ${spent.cost_usd:.4f}" if spent.cost_usd else ""
    unknown = f" ({spent.unpriced:,} replies of unknown price)" if spent.unpriced else ""
    console.done(
        f"{model}: {counted(spent.requests, 'request')} ({spent.retries:,} again, {spent.failures:,} failed),"
        f" {spent.input_tokens:,} tokens in, {spent.output_tokens:,} out{cost}{unknown};"
        f" {spent.cache_hits:,} from the cache"
    )
