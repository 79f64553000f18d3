"""`run_replies`: replies of models to real prompts, measured as whole summaries, next to the text alone and the digest.

A reply is a row of JSONL: ``file`` (a transcript, named as questions name it), ``cut`` (it stands for everything
before this record, from 1) and ``text``. Whole means: read, checked and supplemented as a run would. The digest gets
the tokens of the whole summary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import orjson

from compactor_cli.digest.events import EventKind
from compactor_cli.evaluate.baselines import Count
from compactor_cli.evaluate.cuts import EvalCase, locate, plain_events, read_cut, schema_words
from compactor_cli.evaluate.digested import body, request_from, the_digest
from compactor_cli.evaluate.measures import Measure, SummaryView, forget, needs_of, score
from compactor_cli.evaluate.questions import Question, is_misled, questions_by_cut, score_answer
from compactor_cli.evaluate.tables import NOTHING, columns, mean, percent
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.llm.check_reply import CheckInput, SourceRecords, Verdict, check, essentials
from compactor_cli.llm.model_calls import Reply
from compactor_cli.llm.outline import headings_of, own_words
from compactor_cli.llm.prompts import asked
from compactor_cli.llm.supplement import MOST_RATIO, CompletedText, completed
from compactor_cli.model.errors import InputError, Place, UsageError
from compactor_cli.model.summary import Request
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import Counter, count_message, counter_for
from compactor_cli.read.jsonl import OnInvalid, records_in
from compactor_cli.read.streams import open_stream
from compactor_cli.render.template import heading_names, read_client, read_ours, template_names

TEXT, WHOLE, DIGEST = "text alone", "whole", "digest"
METHODS = (TEXT, WHOLE, DIGEST)
MEASURES = (Measure.FUR, Measure.PAIRS, Measure.PHRASES, Measure.USER)
_MOST_FUTURE_EVENTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRow:
    """One reply; ``source``: the file that holds it."""

    source: str
    file: str
    cut: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredReplies:
    """One method at one cut. ``shares``: of what was needed, by measure; ``answers``: a score a question."""

    method: str
    tokens: int
    shares: dict[str, float]
    answers: tuple[float, ...] = ()
    misled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RepliesResult:
    """All that was measured; ``refused``: replies that no run would take, and why; ``skipped``: cuts not found."""

    measured: tuple[MeasuredReplies, ...]
    taken: int
    refused: dict[str, str]
    skipped: dict[str, str]


def read_replies(folder: str) -> Iterator[ReplyRow]:
    """The rows of every JSONL file in a folder. Raises UsageError where there is none, or a line is not a reply."""
    paths = sorted(Path(folder).glob("*.jsonl"))
    if not paths:
        raise UsageError("holds no replies", next_step="put JSONL files there: file, cut, text", place=folder)
    for path in paths:
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if line.strip():
                yield _row(line, Place(path=str(path), line=number))


def _row(line: bytes, place: Place) -> ReplyRow:
    try:
        value = orjson.loads(line)
        return ReplyRow(source=place.path, file=str(value["file"]), cut=int(value["cut"]), text=str(value["text"]))
    except (TypeError, KeyError, ValueError) as error:
        advice = "a line is an object with file, cut and text"
        raise UsageError(f"no reply: {type(error).__name__}: {error}", next_step=advice, place=place) from error


def run_replies(folder: str, questions: Sequence[str] = (), tokenizer: str = "auto") -> RepliesResult:
    """Every reply in the folder as a whole summary, as its text alone, and the digest at the tokens of the first."""
    counter = counter_for(tokenizer)
    asked_at = questions_by_cut(questions)
    measured: list[MeasuredReplies] = []
    refused: dict[str, str] = {}
    skipped: dict[str, str] = {}
    rows = list(read_replies(folder))
    for row in rows:
        name = f"{row.file}@{row.cut}"
        try:
            case = _case(row, counter)
        except InputError as error:
            skipped[name] = error.what
            continue
        whole, verdict = _whole(case, row.text, counter.count)
        if verdict.fault:
            refused[name] = str(verdict)
        else:
            measured += _measured(case, row, whole, asked_at.get((row.file, row.cut), ()), counter.count)
        forget()
    taken = len(rows) - len(refused) - len(skipped)
    return RepliesResult(measured=tuple(measured), taken=taken, refused=refused, skipped=skipped)


def _case(row: ReplyRow, counter: Counter) -> EvalCase:
    """Everything before the cut as the middle, and what came after it up to the next compaction."""
    path = locate(row.file, row.source)
    case = read_cut(path, row.file, row.cut, 0, partial(count_message, counter)).case
    with open_stream(str(path)) as stream:
        records = records_in(stream, OnInvalid.KEEP)
        following = [record for record in records if record.place.line >= row.cut]
    events = [event for part in open_transcripts(following) for event in plain_events(part)] if following else []
    opened = next((n for n, event in enumerate(events) if event.kind is not EventKind.SUMMARY), len(events))
    future = tuple(takewhile(lambda event: event.kind is not EventKind.SUMMARY, events[opened:]))
    everything = tuple(range(len(case.prefix.messages)))
    return replace(
        case,
        head=(),
        middle=everything,
        future_events=future[:_MOST_FUTURE_EVENTS],
        schema=case.schema | schema_words(future),
    )


def _whole(case: EvalCase, text: str, count: Count) -> tuple[str, Verdict]:
    """The summary that a run would write with this reply, and the verdict on it."""
    parts = [(case.prefix, case.middle)]
    text = own_words(text)
    ground = CheckInput(
        records=SourceRecords(parts),
        essentials=essentials([(case.prefix, case.middle, "")]),
        source_tokens=max(case.middle_tokens, count(text)),
        room_tokens=count(text),
        headings=asked(headings_of(body, "en")),
        covered=frozenset(case.middle),
    )
    verdicts = [
        check(Reply(text=text, model=name), replace(ground, known=heading_names(name)), count)
        for name in template_names()
    ]
    verdict = max(verdicts, key=lambda one: (one.fault is None, len(one.outline.present)))
    request = Request(
        transcript=case.prefix,
        covered=case.middle,
        kept=(),
        budget_tokens=int(count(text) / (1 - MOST_RATIO)) + 100,
        render=body,
        count=count,
        read=read_ours,
        read_client=read_client,
    )
    outline = verdict.outline
    missing = frozenset() if outline.prose else frozenset(h.section for h in ground.headings) - outline.present
    written = CompletedText(sections=outline.sections, prose=outline.prose, missing=missing)
    return body(completed(request, written, "en").summary), verdict


def _measured(
    case: EvalCase, row: ReplyRow, whole: str, questions: Sequence[Question], count: Count
) -> Iterator[MeasuredReplies]:
    digest = the_digest().digest(request_from(case), count(whole), count, body).text
    needs = needs_of(case)
    for method, text in zip(METHODS, (own_words(row.text), whole, digest), strict=True):
        shares = score(needs, SummaryView(text))
        yield MeasuredReplies(
            method=method,
            tokens=count(text),
            shares={measure.value: shares[measure].ratio for measure in MEASURES if shares[measure].total},
            answers=tuple(score_answer(question, text) for question in questions),
            misled=sum(is_misled(question, text) for question in questions),
        )


def render_replies(result: RepliesResult) -> str:
    """A table with a row a method. Ends with a line break."""
    rows = [[f"{result.taken} replies", "tokens", *(measure.value for measure in MEASURES), "answered", "misled"]]
    for method in METHODS:
        mine = [one for one in result.measured if one.method == method]
        answers = [answer for one in mine for answer in one.answers]
        shares = ([one.shares[m.value] for one in mine if m.value in one.shares] for m in MEASURES)
        rows.append(
            [
                method,
                f"{mean(one.tokens for one in mine):,.0f}",
                *(percent(mean(values)) if values else NOTHING for values in shares),
                percent(mean(answers)) if answers else NOTHING,
                str(sum(one.misled for one in mine)),
            ]
        )
    notes = [f"refused: {name}: {why}" for name, why in result.refused.items()]
    notes += [f"skipped: {name}: {why}" for name, why in result.skipped.items()]
    return "\n\n".join([columns(rows), *notes]) + "\n"


def replies_json(result: RepliesResult) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "taken": result.taken,
        "refused": result.refused,
        "skipped": result.skipped,
        "measured": [
            {"method": one.method, "tokens": one.tokens, **one.shares, "answers": one.answers, "misled": one.misled}
            for one in result.measured
        ],
    }
