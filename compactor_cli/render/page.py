"""Pages: one transcript before and after, or a whole run, as a self-contained HTML page.

The text of a transcript is never markup here: the templates escape every value, control characters are shown as
pictures of themselves, and a page allows no script and loads nothing.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli.model.plan import USAGE, Action, Edit, Plan
from compactor_cli.model.report import InputReport, Outcome, TranscriptReport
from compactor_cli.model.transcript import Message, Role, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import Counter, count_messages

if TYPE_CHECKING:
    from jinja2 import Environment


FOLDER = Path(__file__).with_name("pages")
# The width of a drawing in its own units; its height is in pixels.
PAGE_WIDTH = 1_000

# What would be invisible or make a text look like another one: control characters are shown as their pictures, marks
# that change the direction of text as their code points.
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
_UNSEEN = (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0xFEFF)
_VISIBLE = _PICTURES | {0x7F: "␡"} | {code: f"⟨U+{code:04X}⟩" for code in _UNSEEN}


def printable(text: str) -> str:
    """The text with invisible characters made visible; halves of surrogate pairs are replaced."""
    text = text.replace("\r\n", "\n").translate(_VISIBLE)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def render_page(template: str, **values: Any) -> str:
    """The page that this template makes of the values, all of which are escaped."""
    return _environment().get_template(template).render(width=PAGE_WIDTH, **values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = lambda number: f"{number:,}"
    environment.filters["printable"] = lambda text: printable(str(text))
    return environment


MAX_ROWS = 20
MAX_LARGEST = 10
MAX_FAILURES = 200
# Sizes are counted by powers of two, of which the largest ones are drawn.
MAX_BINS = 18


# The values of one thing that a template shows, by their names in the template.
Shown = dict[str, Any]


def run_page(
    inputs: Sequence[InputReport],
    sizes: Sequence[tuple[int, int]],
    retained: Sequence[tuple[str, TranscriptReport]],
    *,
    target_tokens: int,
    seconds: float,
    title: str,
    uncounted: int = 0,
) -> str:
    """The page of a run.

    ``sizes``: tokens before and after of every transcript. ``retained``: the transcripts that lost most, with their
    names. ``target_tokens``: the target of every transcript; 0: there is no single one. ``uncounted``: how many of the
    sizes are upper bounds, of transcripts whose bytes already showed that they are small enough.
    """
    bins = _bins(sizes)
    # Where the target is on the axis, as a share of its width; outside 0 to 1 it is not shown.
    place = math.log2(target_tokens / bins[0]["from_tokens"]) / len(bins) if bins and target_tokens else -1
    before, after = sum(size for size, _ in sizes), sum(size for _, size in sizes)
    failures = [report for report in inputs if report.error]
    rows: list[Shown] = []
    for name, one in retained[:MAX_ROWS]:
        worst = sorted(one.retention.items(), key=lambda item: item[1])[:4]
        kinds = [{"kind": kind, "percent": round(100 * share)} for kind, share in worst]
        rows.append({"name": printable(name), "before": one.tokens_before, "after": one.tokens_after, "kinds": kinds})
    folders: dict[str, list[InputReport]] = {}
    for report in inputs:
        folders.setdefault(os.path.dirname(report.path) or ".", []).append(report)  # noqa: PTH120 -- paths may be "-"
    return render_page(
        "run.html",
        title=title,
        transcripts=len(sizes),
        inputs=len(inputs),
        outcomes=[(outcome.value, sum(report.outcome is outcome for report in inputs)) for outcome in Outcome],
        before=before,
        after=after,
        percent=round(100 * (1 - after / before)) if before else 0,
        seconds=seconds,
        uncounted=uncounted,
        bins=bins,
        target=target_tokens,
        target_percent=round(100 * place, 2) if 0 <= place <= 1 else None,
        projects=_savings(folders.items()) if len(folders) > 1 else [],
        largest=_savings(((report.path, (report,)) for report in inputs), by_after=True)[:MAX_LARGEST],
        retained=rows,
        failures=[
            {"path": printable(report.path), "error": printable(report.error), "next": printable(report.next_step)}
            for report in failures[:MAX_FAILURES]
        ],
        more_failures=max(0, len(failures) - MAX_FAILURES),
    )


def _bins(sizes: Sequence[tuple[int, int]]) -> list[Shown]:
    """Counts of the sizes before and after, by powers of two; all smaller sizes are in the first."""
    filled = [size for pair in sizes for size in pair if size]
    if not filled:
        return []
    last = max(filled).bit_length() - 1
    first = max(min(filled).bit_length() - 1, last - MAX_BINS + 1)
    counts = [[0, 0] for _ in range(first, last + 1)]
    for pair in sizes:
        for side, size in enumerate(pair):
            counts[max(0, max(size, 1).bit_length() - 1 - first)][side] += 1
    most = max(max(pair) for pair in counts)
    bins: list[Shown] = []
    for i, (before, after) in enumerate(counts):
        tokens = 1 << (first + i)
        unit, name = next(((unit, name) for unit, name in ((1 << 20, "M"), (1 << 10, "k")) if tokens >= unit), (1, ""))
        percents = {"before_percent": round(100 * before / most, 1), "after_percent": round(100 * after / most, 1)}
        label = f"{tokens // unit}{name}"
        bins.append({"label": label, "from_tokens": tokens, "before": before, "after": after, **percents})
    return bins


def _savings(groups: Iterable[tuple[str, Sequence[InputReport]]], *, by_after: bool = False) -> list[Shown]:
    """The groups with the largest savings or, ``by_after``, those that are largest afterwards.

    For the bars, sizes are also given in percent of the largest size before.
    """
    rows: list[Shown] = []
    for name, reports in groups:
        before, after = (sum(getattr(item, size) for item in reports) for size in ("tokens_before", "tokens_after"))
        if before:
            saved = round(100 * (1 - after / before))
            rows.append({"name": name, "inputs": len(reports), "before": before, "after": after, "saved": saved})
    rows.sort(key=lambda row: (-row["after"] if by_after else row["after"] - row["before"], row["name"]))
    rows = rows[:MAX_ROWS]
    most = max((row["before"] for row in rows), default=1)
    for row in rows:
        row |= {f"{side}_percent": round(100 * row[side] / most, 2) for side in ("before", "after")}
        row["name"] = printable(row["name"])
    return rows


# How much is shown of a long text, at its beginning and end: browsers should open a page at once.
FIRST_CHARS = 6_000
LAST_CHARS = 2_000
# For all texts of a page together; beyond this, records are shown without their texts.
MOST_CHARS = 12_000_000
# Narrower slices of a strip are joined with their neighbours of the same fate.
MIN_SLICE = 0.7
MAX_LOST_SHOWN = 50
# References to records and code in a line of the summary: `[8,64-66]`, or text between backticks.
_REFERENCES = re.compile(r"(\[\d+(?:-\d+)?(?:,\s?\d+(?:-\d+)?)*\])|`([^`\n]+)`")
_NUMBERS = re.compile(r"(\d+(?:-\d+)?)")


class Fate(StrEnum):
    """What became of a record, in the words of the page; the values are CSS classes."""

    KEPT = "kept"
    SHORTENED = "shortened"
    SUMMARISED = "summarised"
    LEFT_OUT = "left-out"
    SUMMARY = "summary"  # not a record: the summary


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFragment:
    """A piece of a line of the summary: plain text, a link to a record, or code."""

    text: str
    record: int = 0  # the linked record, counted from 1; 0: no link
    is_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """A part of a record as it is shown."""

    label: str  # what it is; empty for plain words
    text: str
    is_code: bool = False
    now: str = ""  # what it was shortened to; empty where it was not
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRecord:
    """A record of the session, or a run of bookkeeping records."""

    number: int  # of the record, counted from 1
    last: int  # of the last record of the run
    role: str
    fate: Fate
    rule: str  # that shortened it or left it out; empty: none did
    tokens: int
    time: str
    parts: tuple[ShownPart, ...]  # empty for bookkeeping, and where the page has too much text
    note: str = ""


def session_page(
    transcript: Transcript, plan: Plan, summary: str, report: TranscriptReport, *, counter: Counter, title: str
) -> str:
    """The page of a session. ``summary`` is the text that replaces the covered records; empty if there is none."""
    tokens = count_messages(counter, transcript.messages)
    fates = _fates(plan, len(transcript.records))
    sized = [
        (number, count, fate, f"{number} · {message.role.value} · {count:,} tokens · {_word(fate)}")
        for number, (message, count, fate) in enumerate(zip(transcript.messages, tokens, fates, strict=True), 1)
    ]
    after = _tokens_after(transcript, plan, tokens, fates, counter)
    scale = PAGE_WIDTH / max(sum(tokens), 1)
    changes = report.outcome is Outcome.COMPACTED
    summary_tokens = report.tokens_after - sum(after) if summary else 0
    sized_after = [
        (number, count, fate, f"{number} · {count:,} tokens · {_word(fate)}")
        for number, (count, fate) in enumerate(zip(after, fates, strict=True), 1)
    ]
    if summary_tokens:
        title_of_it = f"the summary · {summary_tokens:,} tokens"
        sized_after.insert(plan.summary_at, (0, summary_tokens, Fate.SUMMARY, title_of_it))
    return render_page(
        "session.html",
        title=title,
        report=report,
        model=transcript.model,
        changes=changes,
        kept=fates.count(Fate.KEPT),
        percent=round(100 * (1 - report.tokens_after / report.tokens_before)) if report.tokens_before else 0,
        before=_slices(sized, scale),
        after=_slices(sized_after, scale) if changes else (),
        turns=_turns(transcript.messages, tokens, scale),
        legend=_legend(fates, tokens, after, summary_tokens),
        summary=list(_summary_lines(summary, len(transcript.records))),
        kinds=_kinds(report),
        groups=_groups(_records(transcript, plan, tokens, fates)),
    )


def _turns(messages: Sequence[Message], tokens: Sequence[int], scale: float) -> list[Shown]:
    """Where the user spoke, as marks over the strip; ``scale`` as in `_slices`."""
    turns: list[Shown] = []
    x = 0.0
    for number, (message, count) in enumerate(zip(messages, tokens, strict=True), 1):
        if message.role is Role.USER and count and message.text.strip() and not message.results:
            words = printable(" ".join(message.text[:300].split())[:120])
            turns.append({"x": round(x, 2), "record": number, "title": f"{number} · {words}"})
        x += count * scale
    return turns


def _kinds(report: TranscriptReport) -> list[Shown]:
    """By kind, the worst first: what share of the covered records' content the summary holds, and what it lost."""
    kinds: list[Shown] = []
    for kind, share in sorted(report.retention.items(), key=lambda item: item[1]):
        lost = report.lost.get(kind, ())
        shown = [printable(text[:400]) for text in lost[:MAX_LOST_SHOWN]]
        kinds.append({"kind": kind, "percent": round(100 * share), "lost": shown, "more": len(lost) - len(shown)})
    return kinds


def _fates(plan: Plan, count: int) -> list[Fate]:
    fates = [Fate.KEPT] * count
    edited = {edit.record for edit in plan.edits if edit.part != USAGE}
    # A record in which only the counter is changed counts as kept.
    recounted = {edit.record for edit in plan.edits} - edited
    for span in plan.spans:
        for i in range(span.start, span.stop):
            if span.action is Action.COVER:
                fates[i] = Fate.SUMMARISED
            elif span.action is Action.PRUNE:
                fates[i] = Fate.SHORTENED if i in edited else Fate.KEPT if i in recounted else Fate.LEFT_OUT
    return fates


def _tokens_after(
    transcript: Transcript, plan: Plan, tokens: Sequence[int], fates: Sequence[Fate], counter: Counter
) -> list[int]:
    """Tokens of each record in the output; 0 for records that were summarised or left out."""
    after = [count if fate in (Fate.KEPT, Fate.SHORTENED) else 0 for count, fate in zip(tokens, fates, strict=True)]
    for edit in plan.edits:
        if edit.part != USAGE:
            part = transcript.messages[edit.record].parts[edit.part]
            text = part.text if isinstance(part, Text | Thinking | ToolResult) else ""
            saved = counter.count(text) - counter.count(edit.text)
            after[edit.record] = max(0, after[edit.record] - saved)
    return after


def _slices(sized: Iterable[tuple[int, int, Fate, str]], scale: float) -> list[Shown]:
    """The slices of a strip, from the number, tokens, fate and title of each record (0: the summary).

    ``scale``: units of width per token. Slices too narrow to be seen are joined with neighbours of the same fate.
    """
    slices: list[Shown] = []
    for number, count, fate, title in sized:
        if slices and slices[-1]["fate"] is fate and slices[-1]["width"] < MIN_SLICE and count:
            slices[-1]["width"] += count * scale
            slices[-1]["title"] = f"{slices[-1]['record']}-{number} · {_word(fate)}"
        elif count:
            slices.append({"record": number, "fate": fate, "width": count * scale, "title": title})
    x = 0.0
    for piece in slices:
        width = piece["width"]
        piece |= {"x": round(x, 2), "width": round(width, 2), "title": printable(piece["title"])}
        x += width
    return slices


def _legend(fates: Sequence[Fate], tokens: Sequence[int], after: Sequence[int], summary_tokens: int) -> list[Shown]:
    """What each colour stands for, and how many records and tokens have it."""
    counts, before_tokens, after_tokens = Tally(fates), Tally[Fate](), Tally[Fate]()
    for fate, count, later in zip(fates, tokens, after, strict=True):
        before_tokens[fate] += count
        after_tokens[fate] += later
    rows: list[Shown] = [
        {
            "fate": fate,
            "word": _word(fate) if before_tokens[fate] else f"{_word(fate)} (bookkeeping)",
            "records": counts[fate],
            "before": before_tokens[fate],
            "after": after_tokens[fate],
        }
        for fate in Fate
        if counts[fate]
    ]
    if summary_tokens:
        rows.append({"fate": Fate.SUMMARY, "word": "the summary", "records": 0, "before": 0, "after": summary_tokens})
    return rows


def _word(fate: Fate) -> str:
    return fate.value.replace("-", " ")


def _summary_lines(summary: str, records: int) -> Iterator[Shown]:
    """The summary as headings, items, paragraphs and its marker line; references to records are links."""
    for line in summary.splitlines():
        text = line.strip()
        if not text:
            continue
        depth = min((len(line) - len(line.lstrip())) // 2, 4)
        if heading := re.match(r"(#+)\s+(.*)", text):
            yield {"kind": "heading", "depth": len(heading[1]), "pieces": list(_pieces(heading[2], records))}
        elif item := re.match(r"[-*•]\s+(.*)", text):
            yield {"kind": "item", "depth": depth, "pieces": list(_pieces(item[1], records))}
        elif re.match(r"\[compact/\d+ ", text):
            yield {"kind": "marker", "depth": 0, "pieces": [PageFragment(text=printable(text))]}
        else:
            yield {"kind": "text", "depth": depth, "pieces": list(_pieces(text, records))}


def _pieces(text: str, records: int) -> Iterator[PageFragment]:
    at = 0
    for found in _REFERENCES.finditer(text):
        if found.start() > at:
            yield PageFragment(text=printable(text[at : found.start()]))
        if found[2] is not None:
            yield PageFragment(text=printable(found[2]), is_code=True)
        else:
            # In `[8,64-66]` every number or range whose first record exists becomes a link.
            for piece in _NUMBERS.split(found[1]):
                first = piece.partition("-")[0]
                number = int(first) if first.isdigit() and len(first) < 10 else 0
                yield PageFragment(text=piece, record=number if 1 <= number <= records else 0)
        at = found.end()
    if at < len(text):
        yield PageFragment(text=printable(text[at:]))


def _records(transcript: Transcript, plan: Plan, tokens: Sequence[int], fates: Sequence[Fate]) -> Iterator[ShownRecord]:
    """Every record with its content; runs of bookkeeping as one."""
    rules = {i: span.name for span in plan.spans if span.action is Action.PRUNE for i in range(span.start, span.stop)}
    edits = {(edit.record, edit.part): edit for edit in plan.edits}
    chars = 0
    i = 0
    while i < len(transcript.messages):
        message = transcript.messages[i]
        stop = i + 1
        while message.is_meta and stop < len(fates) and transcript.messages[stop].is_meta and fates[stop] is fates[i]:
            stop += 1
        parts = () if message.is_meta else tuple(_parts(message, i, edits))
        chars += sum(len(part.text) for part in parts)
        yield ShownRecord(
            number=i + 1,
            last=stop,
            role="bookkeeping" if message.is_meta else message.role.value,
            fate=fates[i],
            rule=rules.get(i, "") if fates[i] in (Fate.SHORTENED, Fate.LEFT_OUT) else "",
            tokens=sum(tokens[i:stop]),
            time=message.timestamp[:19].replace("T", " "),
            parts=parts if chars <= MOST_CHARS else (),
            note="not sent: an earlier compaction stands for it" if message.superseded else "",
        )
        i = stop


def _parts(message: Message, record: int, edits: dict[tuple[int, int], Edit]) -> Iterator[ShownPart]:
    for number, part in enumerate(message.parts):
        edit = edits.get((record, number))
        now = _clipped(edit.text) if edit else ""
        if isinstance(part, Text):
            yield ShownPart(label="", text=_clipped(part.text), now=now)
        elif isinstance(part, Thinking):
            yield ShownPart(label="thinking", text=_clipped(part.text), now=now)
        elif isinstance(part, ToolCall):
            arguments = part.arguments
            if not isinstance(arguments, str):
                # One argument a line: strings as they are, everything else as JSON.
                values = (
                    (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
                    for name, value in arguments.items()
                )
                arguments = "\n".join(f"{name}: {value}" for name, value in values)
            label = f"calls {printable(part.name)}"
            yield ShownPart(label=label, text=_clipped(arguments), is_code=True, now=now)
        elif isinstance(part, ToolResult):
            media = f", {part.media_count} images or files" if part.media_count else ""
            kind, name = "error" if part.is_error else "result", f" of {printable(part.name)}" if part.name else ""
            yield ShownPart(
                label=f"{kind}{name}{media}", text=_clipped(part.text), is_code=True, now=now, is_error=part.is_error
            )
        else:
            yield ShownPart(label=f"{printable(part.kind)}, {part.size_bytes:,} bytes", text="")


def _clipped(text: str) -> str:
    """The printable text; of a long one the beginning and the end, with a note between them."""
    left_out = len(text) - FIRST_CHARS - LAST_CHARS
    if left_out <= 0:
        return printable(text)
    return printable(f"{text[:FIRST_CHARS]}\n\n… {left_out:,} characters are not shown here …\n\n{text[-LAST_CHARS:]}")


def _groups(records: Iterable[ShownRecord]) -> list[Shown]:
    """Runs of records of one fate, to be folded together.

    Bookkeeping and records that were left out join the run before them or, at the beginning, the one after.
    """
    groups: list[list[ShownRecord]] = []
    for record in records:
        is_loose = record.role == "bookkeeping" or record.fate is Fate.LEFT_OUT
        if groups and (is_loose or _main_fate(groups[-1]) in (record.fate, None)):
            groups[-1].append(record)
        else:
            groups.append([record])
    rows: list[Shown] = []
    for group in groups:
        fate = _main_fate(group) or group[0].fate
        shown: Shown = {"fate": fate, "word": _word(fate), "first": group[0].number, "last": group[-1].last}
        rows.append({**shown, "tokens": sum(record.tokens for record in group), "records": group})
    return rows


def _main_fate(group: Sequence[ShownRecord]) -> Fate | None:
    found = (record.fate for record in group if record.role != "bookkeeping" and record.fate is not Fate.LEFT_OUT)
    return next(found, None)
