"""Views: how plans, results and runs are shown to people, and how they are asked about a summary."""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heappush, heappushpop
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from compactor_cli.cli.console import Color, Console, beginning, counted, painted, shell_word, terminal_columns, visible
from compactor_cli.cli.run_report import output_file
from compactor_cli.model import report as events
from compactor_cli.model.errors import Place, UsageError
from compactor_cli.model.plan import BOOKKEEPING, NO_ROOM, NOTICE, ORPHAN, SUPERSEDED, USAGE, Action, Plan, Span, Tier
from compactor_cli.model.report import Compaction, Event, InputReport, Outcome, RunEnded, TranscriptReport
from compactor_cli.model.settings import Keep, Settings, Size, Trigger
from compactor_cli.model.transcript import Container, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.plan.planner import COUNTER, OUTDATED
from compactor_cli.read.streams import STDIN, shown_name
from compactor_cli.run.jobs import Purpose

if TYPE_CHECKING:
    from compactor_cli.cli.config import RunOptions
    from compactor_cli.model.summary import Estimate

EXCERPT_CHARS = 96
SHOWN_RECORDS = 6  # of a run of covered records: from its two ends
SHOWN_ROWS = 10  # of a dataset, in the short view of a result
SHOWN_LINES = 24  # of a summary, in the short view of a result

# What happens to records that do not stay, by rule; the other rules shorten texts.
_LEFT_OUT = {
    ORPHAN: "leave out {} (tool calls or results without the other half)",
    SUPERSEDED: "leave out {} (the client sends them no longer)",
    BOOKKEEPING: "leave out {} (bookkeeping, never sent)",
    OUTDATED: "leave out {} (bookkeeping about what is left out)",
    NO_ROOM: "leave out {} (no room)",
    NOTICE: "leave out {} (a notice says so)",
}


def where(transcript: Transcript) -> str:
    """The path of a transcript, with its line if it is a row of a dataset or a later session of a stream."""
    if not transcript.records:
        return "-"
    place = transcript.records[0].place
    name = shown_name(place.path)
    is_whole = place.line == 1 and transcript.frame.container is Container.LINES
    return visible(name if is_whole else str(replace(place, path=name)))


def plan_view(transcript: Transcript, row: Compaction, model: str) -> str:
    """The plan, with a line for each region, and the requests that ``model`` would get."""
    plan = row.plan
    size = f"{counted(len(transcript.records), 'record')}, {_tokens(plan.tokens_before, plan.reason)}"
    head = f"{where(transcript)}: {transcript.dialect}, {size}"
    if not plan.changes:
        return f"{head}: unchanged ({plan.reason or 'nothing to do'})\n"
    most = plan.tokens_kept + plan.summary_tokens
    aim = [f"target {plan.target_tokens:,}"] if plan.target_tokens else []
    if plan.window_tokens:
        share = plan.tokens_before / plan.window_tokens
        aim.append(f"{share:.0%} of the window of {plan.window_tokens:,} was full")
    lines = [f"{head} → at most {most:,}" + (f" ({', '.join(aim)})" if aim else "")]
    lines += [f"  why: {plan.reason}"] if plan.reason else []
    lines += _region_lines(plan)
    if plan.summary_tokens:
        lines.append(f"  the summary takes at most {plan.summary_tokens:,} of {plan.tokens_middle:,} tokens")
    if shortened := sum(edit.part != USAGE for edit in plan.edits):
        lines.append(f"  texts shortened: {shortened:,}")
    lines += [f"  {note}" for note in (*plan.notes, plan.over_target) if note]
    lines += [estimate_line(row.estimate, model)] if row.estimate else []
    return "\n".join(lines) + "\n"


def estimate_line(estimate: Estimate, model: str) -> str:
    """A line about the requests that would be made, and their cost."""
    cost = "price unknown" if estimate.cost_usd is None else f"about ${estimate.cost_usd:.4f}"
    sizes = f"{estimate.input_tokens:,} tokens in, {estimate.output_tokens:,} out"
    return f"  {model} would get {counted(estimate.requests, 'request')}: {sizes}, {cost}"


def diff_view(transcript: Transcript, row: Compaction, color: bool) -> str:
    """The difference: kept records counted, others named, the summary in full; empty if nothing changes."""
    if not row.changed:
        return ""
    plan, name = row.plan, where(transcript)
    lines = [
        painted(f"--- {name}  {plan.tokens_before:,} tokens", Color.RED, color),
        painted(f"+++ {name}  {row.report.tokens_after:,} tokens", Color.GREEN, color),
    ]
    added = [painted(f"+ {visible(line)}".rstrip(), Color.GREEN, color) for line in row.summary_text.splitlines()]
    for region in _regions(plan):
        if region[0].start >= plan.summary_at:
            lines += added
            added = []
        lines.append(painted(f"@@ {_range(region)}: {_fate(region)} @@", Color.CYAN, color))
        if not _is_kept(region[0]):
            lines += _gone(transcript, plan, region, color)
    return "\n".join([*lines, *added]) + "\n"


def result_view(transcript: Transcript, row: Compaction, color: bool) -> str:
    """The result in short: a line for each region, and the beginning of the summary.

    It is empty for an unchanged transcript, and for the rows of a dataset after the first `SHOWN_ROWS`.
    """
    report, is_row = row.report, transcript.frame.container is not Container.LINES
    if not row.changed or (is_row and transcript.records[0].place.line > SHOWN_ROWS):
        return ""
    change = f"{report.tokens_before:,} → {report.tokens_after:,} tokens"
    head = f"{where(transcript)}  {transcript.dialect}, {counted(len(transcript.records), 'record')}, {change}"
    if is_row:
        return head + "\n"
    lines = [painted(head, Color.CYAN, color)]
    lines += _region_lines(row.plan)
    if row.summary_text:
        text = [visible(line) for line in row.summary_text.splitlines()]
        more = len(text) - SHOWN_LINES
        most_chars = max((terminal_columns() or 80) - 3, EXCERPT_CHARS // 2)
        lines += ["", *(f"  {beginning(line, most_chars)}".rstrip() for line in text[:SHOWN_LINES])]
        lines += [f"  … {counted(more, 'more line')} of the summary"] if more > 0 else []
    return "\n".join(lines) + "\n\n"


def _region_lines(plan: Plan) -> list[str]:
    return [f"  {_range(region):>15}  {_fate(region)}" for region in _regions(plan)]


def _regions(plan: Plan) -> list[tuple[Span, ...]]:
    """The spans in runs of kept ones and runs of others."""
    return [tuple(spans) for _, spans in groupby(plan.spans, key=_is_kept)]


def _is_kept(span: Span) -> bool:
    """Whether these records stay as they were, except for a client's counter of tokens, which is not content."""
    return span.action is Action.KEEP or span.name == COUNTER


def _fate(region: tuple[Span, ...]) -> str:
    """What happens to the records of a region, with their numbers."""
    counts: dict[tuple[Action, str], int] = {}
    for span in region:
        key = (span.action, span.name)
        counts[key] = counts.get(key, 0) + span.stop - span.start
    if _is_kept(region[0]):
        reset = counts.get((Action.PRUNE, COUNTER), 0)
        return f"keep {sum(counts.values()):,}" + (f" ({counted(reset, 'token counter')} reset)" if reset else "")
    words: list[str] = []
    for (action, name), count in counts.items():
        other = "summarise {}" if action is Action.COVER else f"shorten {{}} ({name})"
        words.append(_LEFT_OUT.get(name, other).format(f"{count:,}"))
    return ", ".join(words)


def _gone(transcript: Transcript, plan: Plan, region: tuple[Span, ...], color: bool) -> Iterator[str]:
    """Lines for the first and the last records of a region that does not stay."""
    edits = {edit.record: edit for edit in plan.edits if edit.part != USAGE}
    indices = range(region[0].start, region[-1].stop)
    shown = [i for i in indices if i in edits or not transcript.messages[i].is_meta]
    more, half = len(shown) - SHOWN_RECORDS, SHOWN_RECORDS // 2
    for number, index in enumerate(shown if more <= 0 else shown[:half] + shown[-half:]):
        if more > 0 and number == half:
            yield painted(f"- … {more:,} more …", Color.RED, color)
        message = transcript.messages[index]
        excerpt = _short(" ".join(filter(None, map(_part, message.parts))))
        yield painted(f"- {message.role.value}: {excerpt}", Color.RED, color)
        if index in edits:
            yield painted(f"+ {_short(edits[index].text)}", Color.GREEN, color)


def _part(part: object) -> str:
    if isinstance(part, Text | ToolResult):
        return part.text[: EXCERPT_CHARS * 2]
    if isinstance(part, Thinking):
        return "(thinking)"
    if isinstance(part, ToolCall):
        return f"{part.name}({str(part.arguments)[:EXCERPT_CHARS]})"
    return "(media)"


def _short(text: str) -> str:
    return beginning(visible(" ".join(text[: EXCERPT_CHARS * 3].split())), EXCERPT_CHARS)


def _range(region: tuple[Span, ...]) -> str:
    first, last = region[0].start + 1, region[-1].stop
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"


class ResultLines:
    """A listener that prints what became of each input and, at the end, of all of them."""

    def __init__(
        self, run_options: RunOptions, settings: Settings, console: Console, inputs: int, resume_command: str
    ) -> None:
        self._options = run_options
        self._settings = settings
        self._console = console
        self._inputs = inputs
        self._resume_command = resume_command  # how the client goes on with the session; empty if that is not known
        self._began = time.time()

    def __call__(self, event: Event, /) -> None:
        """Print the result of an input, or of the run."""
        if isinstance(event, events.InputEnded):
            self._print_input(event.report)
        elif isinstance(event, RunEnded) and not event.error and self._options.purpose is Purpose.ACT:
            reports, seconds = event.inputs, event.at - self._began
            if len(reports) > 1:
                counts = Counter(report.outcome for report in reports)
                outcomes = ", ".join(f"{counts[outcome]:,} {outcome.value}" for outcome in Outcome if counts[outcome])
                change = _change(
                    sum(item.tokens_before for item in reports), sum(item.tokens_after for item in reports)
                )
                self._console.done(f"{len(reports):,} inputs: {outcomes} · {change} · {seconds:,.1f} s")
            if self._resume_command and not event.exit_code:
                self._console.done(f"go on with it: {self._resume_command}")

    def _print_input(self, report: InputReport) -> None:
        """Print the errors and warnings of one input, then its result on one line."""
        console, purpose = self._console, self._options.purpose
        # An empty input has no plan or difference to show, so that its result is printed.
        has_result = purpose is Purpose.ACT or self._options.shows_result or not report.counts
        name = shown_name(report.path)
        _print_problems(name, report, self._settings, purpose, console)
        if report.outcome is Outcome.SKIPPED and report.reason == "live":
            console.done(f"{name}: skipped, it was changed just now: --min-age 0 takes it anyway")
        elif report.outcome is Outcome.SKIPPED:
            console.note(f"{name}: skipped ({report.reason})")
        elif report.outcome is Outcome.UNCHANGED and has_result:
            line = f"{name}: unchanged, {_unchanged_line(report, self._settings)}"
            (console.done if self._inputs == 1 else console.note)(line)
        elif report.outcome is Outcome.COMPACTED and has_result:
            options, is_file = self._options, report.path != STDIN
            parts = [_change(report.tokens_before, report.tokens_after), _records(report)]
            if is_file and (options.in_place or options.append) and report.archive:
                parts.append(f"back: compactor undo {shell_word(report.path)}")
            if options.shows_result and not options.only_look:
                replaces = ", -i replaces the file" if is_file else ""
                parts.append(f"nothing was written: -o FILE writes it, -o - prints it{replaces}")
            console.done(f"{name}: {' · '.join(filter(None, parts))}", kind="compacted")
        elif purpose is Purpose.TRY and report.outcome in (Outcome.COMPACTED, Outcome.UNCHANGED):
            would = "would be compacted" if report.outcome is Outcome.COMPACTED else "would stay as it is"
            console.note(f"{name}: {would}, {_change(report.tokens_before, report.tokens_after)}")


def _unchanged_line(report: InputReport, settings: Settings) -> str:
    """The size of an unchanged input, why it stays as it is, and how to make it smaller nevertheless."""
    if len(report.transcripts) != 1 or sum(report.counts.values()) > 1:
        reason = report.reason or f"none of its {counted(sum(report.counts.values()), 'conversation')} needs compacting"
        return f"{report.tokens_before:,} tokens ({reason})"
    item = report.transcripts[0]
    size = _tokens(item.tokens_before, item.reason)
    has_target = settings.target != Size()
    if has_target and item.tokens_before <= item.target_tokens:
        return f"{size}, within the target of {item.target_tokens:,}"
    default = settings.keep.head_tokens + settings.keep.tail_tokens
    is_default = not has_target and settings.trigger == Trigger() and settings.keep == Keep()
    if is_default and item.tokens_before <= default:
        return f"{size}, within the default of {default:,}; for less: -t 25%"
    return f"{size} ({item.reason or 'nothing to do'})"


def _tokens(count: int, reason: str) -> str:
    """The size before, in words; ``reason`` begins with "at most" if the size is only a bound by the bytes."""
    return f"{'at most ' if reason.startswith('at most ') else ''}{count:,} tokens"


def _print_problems(name: str, report: InputReport, settings: Settings, purpose: Purpose, console: Console) -> None:
    if report.error:
        advice = f": {report.next_step}" if report.next_step else ""
        console.error(report.error + advice)
        if report.reason.startswith("Traceback"):
            console.why(report.reason)
    for warning in report.warnings:
        console.warn(f"{name}: {warning}")
    for item in report.transcripts:
        place = Place(path=name, line=item.line, row=item.row)
        at = str(place) if sum(report.counts.values()) > 1 else name
        if item.outcome is Outcome.FAILED:
            console.warn(f"{item.reason}; passed on unchanged")
        if item.over_target:
            console.warn(f"{at}: over its target: {item.over_target}")
        for warning in item.warnings:
            console.warn(f"{at}: {warning}")
        for note in item.notes:
            console.note(f"{at}: {note}")
        if item.outcome is Outcome.UNCHANGED and item.tier not in ("", Tier.NONE):
            # From the second tier on it is a warning, if the run's own options name the window.
            is_named = settings.trigger.window_tokens or settings.trigger.window_model
            line = f"{item.tokens_before:,} tokens fill {item.tokens_before / item.window_tokens:.0%} of the window"
            start = f"; compaction starts at {settings.trigger.compact_ratio:.0%}" if is_named else ""
            if settings.target != Size():
                start = f"; the target of {item.target_tokens:,} decides"
            report_it = console.warn if is_named and item.tier != Tier.LOG else console.note
            report_it(f"{at}: {line} of {item.window_tokens:,}{start}")
    if report.not_carried and purpose is Purpose.ACT:
        from compactor_cli.render.convert import not_carried_line

        console.warn(f"{name}: {not_carried_line(report.not_carried, report.written_as)}")


def warn_of_fallbacks(reports: Sequence[InputReport], console: Console) -> None:
    """Print how many summaries the digest wrote in place of the model or plug-in, and the commonest reason."""
    asked = [item for report in reports for item in report.transcripts if item.summary_source]
    reasons = Counter(item.fell_back for item in asked if item.fell_back)
    if len(asked) == 1 and any(asked[0].fell_back in warning for warning in asked[0].warnings):
        return  # a warning about this transcript has it already
    if reasons:
        (reason, _), *others = reasons.most_common()
        more = f" (and {len(others)} other reasons)" if others else ""
        console.warn(f"{reasons.total():,} of {len(asked):,} summaries fell back to the digest: {reason}{more}")


def _change(before: int, after: int) -> str:
    """``12,054 → 2,997 tokens (−75 %)``; one number if nothing changed."""
    if before == after:
        return f"{before:,} tokens"
    percent = round(100 * (1 - after / before)) if before else 0
    sign = "−" if percent >= 0 else "+"
    return f"{before:,} → {after:,} tokens ({sign}{abs(percent)} %)"


# What happened to covered records, by who wrote the summary.
_AUTHORS = {
    "digest": "summarised by the digest",
    "model": "summarised by the model",
    "plugin": "summarised by a plug-in",
    "memory": "summarised by the session's note",
    "excerpts": "replaced by excerpts",
    "notice": "left out",
}
# Rules that remove only what no model is shown.
_NO_CONTENT = ("bookkeeping", "usage")


def _records(report: InputReport) -> str:
    """What became of the records of one transcript, or of the conversations of a dataset."""
    many = sum(report.counts.values())
    if many != 1 or len(report.transcripts) != 1:
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in report.counts.items() if count)
        return f"{outcomes} conversations" if many else outcomes
    item = report.transcripts[0]
    shortened = sum(count for rule, count in item.pruned.items() if rule not in _NO_CONTENT)
    # A record in which only a counter of tokens was reset counts as kept.
    parts = [f"{item.kept + item.pruned.get(COUNTER, 0):,} kept"]
    parts += [f"{shortened:,} shortened"] if shortened else []
    parts += [f"{item.covered:,} {_AUTHORS.get(item.summary_source, 'left out')}"] if item.covered else []
    return ", ".join(parts)


class PageFile:
    """A listener that writes the page when the run ends: about the one transcript, or about all if there were several.

    Two numbers of each transcript are held in memory, and the reports of the worst ones.
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
        """Take the page of a transcript, which may be empty; it is written only if the run has a single one."""
        self._session = self._session or page

    def __call__(self, event: Event, /) -> None:
        """Take the sizes of a transcript, or write the page at the end of the run."""
        if isinstance(event, RunEnded) and (event.inputs or not event.error):
            one = event.inputs[0].path if len(event.inputs) == 1 else ""
            page = self._session if one and len(self._before) == 1 else ""
            if not page:
                from compactor_cli.render.page import run_page

                page = run_page(
                    event.inputs,
                    list(zip(self._before, self._after, strict=True)),
                    [(name, report) for _, _, name, report in sorted(self._worst, reverse=True)],
                    target_tokens=self._settings.target.tokens,
                    seconds=event.at - self._began,
                    uncounted=self._uncounted,
                    title=f"{Path(one).name} compacted" if one and one != STDIN else "What was compacted",
                )
            with output_file(self._path) as file:
                file.write(page.encode())
        if not isinstance(event, events.TranscriptEnded):
            return
        report = event.report
        self._before.append(report.tokens_before)
        self._after.append(report.tokens_after)
        self._uncounted += report.reason.startswith("at most ")
        if not report.retention:
            return
        name = shown_name(event.path)
        name = str(Place(path=name, line=report.line, row=report.row)) if report.line > 1 else name
        # Negative, as a heap drops its smallest item, which has to be the one that kept most.
        kept_ratio = sum(report.retention.values()) / len(report.retention)
        item = (-kept_ratio, -len(self._before), name, report)
        from compactor_cli.render.page import MAX_ROWS

        (heappush if len(self._worst) < MAX_ROWS else heappushpop)(self._worst, item)


def session_view(transcript: Transcript, row: Compaction, settings: Settings) -> str:
    """The page of one transcript; empty for all rows of a dataset except the first."""
    place = transcript.records[0].place if transcript.records else None
    if place is None or place.line > 1 or place.row > 1:
        return ""
    from compactor_cli.plan.tokens import counter_for
    from compactor_cli.render.page import printable, session_page

    counter = counter_for(settings.tokenizer, transcript.model)
    title = printable(Path(shown_name(place.path)).name)
    return session_page(transcript, row.plan, row.summary_text, row.report, counter=counter, title=title)


TERMINAL = "/dev/tty"
_YES = ("y", "yes", "j", "ja", "是")
_NO = ("n", "no", "nein", "否")
_QUESTION = "take this summary? yes, no, or what to do better: "


def check_terminal() -> None:
    """Raise UsageError if there is no terminal on which to ask."""
    try:
        with open(TERMINAL, "rb"):  # noqa: PTH123 -- a device
            return
    except OSError as error:
        raise UsageError("--interactive needs a terminal to ask on", next_step="leave it out") from error


def review(transcript: Transcript, row: Compaction) -> str | None:
    """Show plan and summary, and ask about them.

    Returns an empty text (accepted), None (declined, also at the end of input), or guidance.
    """
    shown = plan_view(transcript, row, model="") + diff_view(transcript, row, color=False)
    # Two handles, since one for both directions would have to be seekable, which a terminal is not.
    with open(TERMINAL, encoding="utf-8") as tty_in, open(TERMINAL, "w", encoding="utf-8") as tty_out:  # noqa: PTH123
        tty_out.write(shown)
        for warning in row.report.warnings:
            tty_out.write(f"{warning}\n")
        while True:
            tty_out.write(_QUESTION)
            tty_out.flush()
            line = tty_in.readline()
            answer = line.strip()
            if not line or answer.lower() in _NO:
                return None
            if answer:
                return "" if answer.lower() in _YES else answer
