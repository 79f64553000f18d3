"""Views: a plan, and what a compaction changes, for people. Records are counted from 1."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from compactor_cli.cli.console import Color, counted, painted, visible
from compactor_cli.model.plan import USAGE, Action, Plan, Span
from compactor_cli.model.report import Outcome, TranscriptReport
from compactor_cli.model.transcript import Container, Message, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.plan.finish import COUNTER, OUTDATED
from compactor_cli.plan.strategies import BOOKKEEPING, NO_ROOM, NOTICE, ORPHAN, SUPERSEDED

EXCERPT_CHARS = 96
# Of a long run of covered records the ends are enough to see what it is.
SHOWN_RECORDS = 6
# Of a result that is only shown: rows of a dataset, and lines of a summary.
SHOWN_ROWS = 10
SHOWN_LINES = 24

# What is done to records that do not stay, by the rule; all other rules shorten texts.
_LEFT_OUT = {
    ORPHAN: "leave out {} (tool calls or results without the other half)",
    SUPERSEDED: "leave out {} (the client sends them no longer)",
    BOOKKEEPING: "leave out {} (bookkeeping, never sent)",
    OUTDATED: "leave out {} (bookkeeping about what is left out)",
    NO_ROOM: "leave out {} (no room)",
    NOTICE: "leave out {} (a notice says so)",
}


def where(transcript: Transcript) -> str:
    """``path``, with the line for a row of a dataset or a later session of a stream."""
    if not transcript.records:
        return "-"
    place = transcript.records[0].place
    name = "standard input" if place.path == "-" else place.path
    is_whole = place.line == 1 and transcript.frame.container is Container.LINES
    return visible(name if is_whole else str(replace(place, path=name)))


def plan_view(transcript: Transcript, plan: Plan) -> str:
    """The decision, a line per span."""
    size = f"{counted(len(transcript.records), 'record')}, {plan.tokens_before:,} tokens"
    head = f"{where(transcript)}: {transcript.dialect}, {size}"
    if not plan.changes:
        return f"{head}: unchanged ({plan.reason or 'nothing to do'})\n"
    most = plan.tokens_kept + plan.summary_tokens
    lines = [f"{head} → at most {most:,}{_aim(plan)}"]
    lines += [f"  why: {plan.reason}"] if plan.reason else []
    lines += [f"  {_range(region):>15}  {_fate(region)}" for region in _regions(plan)]
    if plan.summary_tokens:
        lines.append(f"  the summary takes at most {plan.summary_tokens:,} of {plan.tokens_middle:,} tokens")
    if shortened := sum(edit.part != USAGE for edit in plan.edits):
        lines.append(f"  texts shortened: {shortened:,}")
    lines += [f"  {note}" for note in (*plan.notes, plan.over_target) if note]
    return "\n".join(lines) + "\n"


def diff_view(transcript: Transcript, plan: Plan, summary: str, tokens_after: int, color: bool) -> str:
    """Before and after: kept records counted, left-out ones named, the summary in full."""
    name = where(transcript)
    head = [
        painted(f"--- {name}  {plan.tokens_before:,} tokens", Color.RED, color),
        painted(f"+++ {name}  {tokens_after:,} tokens", Color.GREEN, color),
    ]
    return "\n".join([*head, *_hunks(transcript, plan, summary, color)]) + "\n"


def result_view(transcript: Transcript, plan: Plan, summary: str, report: TranscriptReport, color: bool) -> str:
    """The result in short: a line per span, and the beginning of the summary. Of a dataset, the first rows alone."""
    is_row = transcript.frame.container is not Container.LINES
    if report.outcome is not Outcome.COMPACTED or (is_row and transcript.records[0].place.line > SHOWN_ROWS):
        return ""
    change = f"{report.tokens_before:,} → {report.tokens_after:,} tokens"
    head = f"{where(transcript)}  {transcript.dialect}, {counted(len(transcript.records), 'record')}, {change}"
    if is_row:
        return head + "\n"
    lines = [painted(head, Color.CYAN, color)]
    lines += [f"  {_range(region):>15}  {_fate(region)}" for region in _regions(plan)]
    if summary:
        text = [visible(line) for line in summary.splitlines()]
        more = len(text) - SHOWN_LINES
        most_chars = max(shutil.get_terminal_size().columns - 3, EXCERPT_CHARS // 2)
        lines += ["", *(f"  {_clipped(line, most_chars)}".rstrip() for line in text[:SHOWN_LINES])]
        lines += [f"  … {counted(more, 'more line')} of the summary"] if more > 0 else []
    return "\n".join(lines) + "\n\n"


def _clipped(line: str, most_chars: int) -> str:
    return line if len(line) <= most_chars else f"{line[: most_chars - 1]}…"


def _regions(plan: Plan) -> list[tuple[Span, ...]]:
    """Runs of kept spans, and runs of all others: bookkeeping between covered records is no news."""
    runs = groupby(plan.spans, key=_is_kept)
    return [tuple(spans) for _, spans in runs]


def _is_kept(span: Span) -> bool:
    """Whether the model is shown these records as they were: a client's counter of tokens is no content."""
    return span.action is Action.KEEP or span.name == COUNTER


def _fate(region: tuple[Span, ...]) -> str:
    """What is done to how many records."""
    counts: dict[tuple[Action, str], int] = {}
    for span in region:
        key = (span.action, span.name)
        counts[key] = counts.get(key, 0) + span.stop - span.start
    if _is_kept(region[0]):
        reset = counts.get((Action.PRUNE, COUNTER), 0)
        return f"keep {sum(counts.values()):,}" + (f" ({counted(reset, 'token counter')} reset)" if reset else "")
    return ", ".join(_phrase(action, name).format(f"{count:,}") for (action, name), count in counts.items())


def _phrase(action: Action, name: str) -> str:
    if name in _LEFT_OUT:
        return _LEFT_OUT[name]
    return "summarise {}" if action is Action.COVER else f"shorten {{}} ({name})"


def _hunks(transcript: Transcript, plan: Plan, summary: str, color: bool) -> Iterator[str]:
    summary_shown = not summary
    for region in _regions(plan):
        if not summary_shown and region[0].start >= plan.summary_at:
            yield from _added(summary, color)
            summary_shown = True
        yield painted(f"@@ {_range(region)}: {_fate(region)} @@", Color.CYAN, color)
        yield from _gone(transcript, plan, region, color)
    if not summary_shown:
        yield from _added(summary, color)


def _gone(transcript: Transcript, plan: Plan, region: tuple[Span, ...], color: bool) -> Iterator[str]:
    """The first and the last of the records that do not stay as they are."""
    if _is_kept(region[0]):
        return
    edits = {edit.record: edit for edit in plan.edits if edit.part != USAGE}
    indices = range(region[0].start, region[-1].stop)
    shown = [i for i in indices if i in edits or not transcript.messages[i].is_meta]
    ends = shown if len(shown) <= SHOWN_RECORDS else [*shown[: SHOWN_RECORDS // 2], -1, *shown[-SHOWN_RECORDS // 2 :]]
    for index in ends:
        description = _excerpt(transcript.messages[index]) if index >= 0 else f"… {len(shown) - SHOWN_RECORDS:,} more …"
        yield painted(f"- {description}", Color.RED, color)
        if index in edits:
            yield painted(f"+ {_short(edits[index].text)}", Color.GREEN, color)


def _added(summary: str, color: bool) -> Iterator[str]:
    return (painted(f"+ {visible(line)}".rstrip(), Color.GREEN, color) for line in summary.splitlines())


def _excerpt(message: Message) -> str:
    description = " ".join(filter(None, (_part(part) for part in message.parts)))
    return f"{message.role.value}: {_short(description)}"


def _part(part: object) -> str:
    if isinstance(part, Text | ToolResult):
        return part.text[: EXCERPT_CHARS * 2]
    if isinstance(part, Thinking):
        return "(thinking)"
    if isinstance(part, ToolCall):
        return f"{part.name}({str(part.arguments)[:EXCERPT_CHARS]})"
    return "(media)"


def _short(text: str) -> str:
    line = visible(" ".join(text[: EXCERPT_CHARS * 3].split()))
    return line if len(line) <= EXCERPT_CHARS else f"{line[: EXCERPT_CHARS - 1]}…"


def _range(region: tuple[Span, ...]) -> str:
    first, last = region[0].start + 1, region[-1].stop
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"


def _aim(plan: Plan) -> str:
    parts = [f"target {plan.target_tokens:,}"] if plan.target_tokens else []
    if plan.window_tokens:
        share = plan.tokens_before / plan.window_tokens
        parts.append(f"{share:.0%} of the window of {plan.window_tokens:,} was full")
    return f" ({', '.join(parts)})" if parts else ""
