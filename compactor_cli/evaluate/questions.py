"""Questions with gold answers, which a reader of the summary alone should be able to answer; and replies of models.

A question has patterns that its answer must hold. It scores 1 if all of them are found near one another, 0.5 if they
are found, but scattered; a match of a pattern of ``wrong`` misleads. Short keys match by chance in long scraps of text,
so that a good score proves little: reading decides.

A reply is a row of JSONL: ``file`` (a transcript, named as in questions), ``cut`` (the reply summarises everything
before this record, counted from 1) and ``text``. It is measured as a whole summary (read, checked and supplemented as
in a run), as its text alone, and against the digest, which gets as many tokens as the whole summary.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, product, takewhile
from pathlib import Path
from typing import Any, TypeVar

import orjson

from compactor_cli.digest.events import EventKind
from compactor_cli.evaluate.cuts import CutRule, EvalCase, file_records, locate, plain_events, read_cut, schema_words
from compactor_cli.evaluate.measures import Measure, SummaryView, forget, needs_of, score
from compactor_cli.evaluate.methods import EMPTY, Baseline, Count, body, choose, digest_of, frame_tokens, framed
from compactor_cli.evaluate.run_eval import DIGEST, Advance, label
from compactor_cli.evaluate.tables import NOTHING, columns, mean, percent
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.llm.check_reply import CheckInput, Verdict, check
from compactor_cli.llm.model_calls import Reply
from compactor_cli.llm.prompts import headings_of, own_words, written_headings
from compactor_cli.llm.quoting import Strand
from compactor_cli.llm.supplement import MOST_RATIO, CompletedText, RecordFacts, completed
from compactor_cli.model.errors import InputError, Place, UsageError
from compactor_cli.model.settings import Size
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import Counter, count_message, counter_for
from compactor_cli.render.template import bare_request, heading_names, template_names

Row = TypeVar("Row")

NEAR_CHARS = 400  # the matches of an answer are near one another within these
MOST_PLACES = 60  # matches of one pattern that are considered


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a conversation."""

    source: str  # the file of questions that it is from
    file: str  # the transcript
    cut: int  # the conversation is what precedes this record, counted from 1
    id: str
    type: str
    question: str
    answer: str
    keys: tuple[re.Pattern[str], ...]  # all of which an answer holds
    wrong: tuple[re.Pattern[str], ...]  # which an answer must not hold
    in_head: bool  # whether the first message of the user, which is kept, answers it: it is not asked then


def read_questions(path: str) -> Iterator[Question]:
    """The questions of a JSONL file. Raises UsageError with the number of a line that is wrong."""
    advice = "a line is an object with file, cut, id, type, question, answer and keys (regular expressions)"
    try:
        yield from _rows(path, _question, "question", advice)
    except OSError as error:
        what = f"the questions cannot be read: {error.strerror}"
        raise UsageError(what, next_step="check --questions", place=path) from error


def _question(path: str, value: Any) -> Question:
    keys, wrong = (
        tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)
        for patterns in (value["keys"], value.get("wrong", ()))
    )
    plain = {name: value[name] for name in ("file", "type", "question", "answer")}
    cut, name, in_head = int(value["cut"]), str(value["id"]), bool(value.get("head"))
    return Question(**plain, source=path, cut=cut, id=name, keys=keys, wrong=wrong, in_head=in_head)


def _rows(path: str, made: Callable[[str, Any], Row], noun: str, advice: str) -> Iterator[Row]:
    """The rows that ``made`` makes of the lines of a JSONL file. Raises OSError, and UsageError for a wrong line."""
    for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
        if line.strip():
            try:
                row = made(path, orjson.loads(line))
            except (TypeError, KeyError, ValueError, re.error) as error:
                what = f"no {noun}: {type(error).__name__}: {error}"
                raise UsageError(what, next_step=advice, place=Place(path=path, line=number)) from error
            yield row


def score_answer(question: Question, text: str) -> float:
    """The score: 1 if all keys match within NEAR_CHARS, 0.5 if all match but farther apart, else 0."""
    found = [[match.span() for match in islice(key.finditer(text), MOST_PLACES)] for key in question.keys]
    if not all(found):
        return 0.0
    for start, _ in chain.from_iterable(found):
        if all(any(start <= first and last <= start + NEAR_CHARS for first, last in spans) for spans in found):
            return 1.0
    return 0.5


def is_misled(question: Question, text: str) -> bool:
    """Whether the text matches a pattern that is a wrong answer."""
    return any(pattern.search(text) for pattern in question.wrong)


CLIENT = "client"
DEFAULT_BASELINES = ("head-tail", "prose", "log-frequency")
DEFAULT_BUDGETS = (Size(tokens=1_500), Size(ratio=0.05))
# A budget that is a share has at least this many tokens: a smaller summary is little more than its frame.
LEAST_BUDGET_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """Which questions are asked, and about which summaries."""

    paths: tuple[str, ...]  # files of questions
    baselines: tuple[str, ...] = DEFAULT_BASELINES
    budgets: tuple[Size, ...] = DEFAULT_BUDGETS  # shares are of the tokens between head and tail
    # Use only cuts at which a client compacted; its own summary is then a method too, and its size the budget of all.
    at_client: bool = False
    tail_tokens: int = CutRule().tail_tokens
    # (Part of a path, tokens of the tail): the first whose part is in the path of the transcript or of the questions
    # counts.
    tails: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """The score of one question for one method's summary at one budget."""

    question: Question
    dialect: str
    method: str
    budget: str
    score: float
    misled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSummary:
    """One summary as an agent would read it."""

    file: str
    cut: int
    method: str
    budget: str
    budget_tokens: int
    tokens: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsResult:
    """The result of asking all questions."""

    options: QuestionOptions
    methods: tuple[str, ...]
    token_method: str
    readings: tuple[Reading, ...]
    written: tuple[WrittenSummary, ...]
    skipped: Mapping[str, str]  # cuts that could not be made, with the reason


def run_questions(
    options: QuestionOptions, extra: Sequence[Baseline] = (), advance: Advance = lambda count: None
) -> QuestionsResult:
    """Ask the questions of every file. Transcripts that are missing or cannot be read are skipped, with the reason.

    Raises UsageError for lines that are not questions, and for unknown baselines.
    """
    counter = counter_for()
    baselines = choose(options.baselines, extra)
    asked = questions_by_cut(options.paths)
    readings: list[Reading] = []
    written: list[WrittenSummary] = []
    skipped: dict[str, str] = {}
    for (file, cut), questions in asked.items():
        try:
            names = (file, questions[0].source)
            tails = (tokens for part, tokens in options.tails if any(part in name for name in names))
            tail_tokens = next(tails, options.tail_tokens)
            case, own = read_cut(locate(*names), file, cut, tail_tokens, partial(count_message, counter))
        except InputError as error:
            skipped[f"{file}@{cut}"] = error.what
        else:
            for text in _summaries(case, own, questions[0], baselines, options, counter.count):
                written.append(text)
                for question in questions:
                    score, misled = score_answer(question, text.text), is_misled(question, text.text)
                    reading = Reading(question, case.dialect, text.method, text.budget, score, misled)
                    readings.append(reading)
        forget()
        advance(1)
    return QuestionsResult(
        options=options,
        methods=(DIGEST, *((CLIENT,) if options.at_client else ()), *(baseline.name for baseline in baselines)),
        token_method=counter.method,
        readings=tuple(readings),
        written=tuple(written),
        skipped=skipped,
    )


def questions_by_cut(paths: Iterable[str]) -> dict[tuple[str, int], list[Question]]:
    """The questions of these files by transcript and cut, without those that the head answers."""
    found: dict[tuple[str, int], list[Question]] = {}
    for question in chain.from_iterable(map(read_questions, paths)):
        if not question.in_head:
            found.setdefault((question.file, question.cut), []).append(question)
    return found


def _summaries(
    case: EvalCase,
    client_summary: str,
    question: Question,
    baselines: Sequence[Baseline],
    options: QuestionOptions,
    count: Count,
) -> Iterator[WrittenSummary]:
    if options.at_client and count(client_summary) < LEAST_BUDGET_TOKENS:
        return
    writers = {baseline.name: baseline.prepare(case, count) for baseline in baselines}
    sizes = ((label(size), size.of(case.middle_tokens), size.ratio) for size in options.budgets)
    budgets = [(name, max(tokens, LEAST_BUDGET_TOKENS) if ratio else tokens) for name, tokens, ratio in sizes]
    for name, budget in [(CLIENT, count(client_summary))] if options.at_client else budgets:
        made = partial(WrittenSummary, file=question.file, cut=question.cut, budget=name, budget_tokens=budget)
        write = framed(case, budget)
        texts = {DIGEST: digest_of(case, budget, count, write).text}
        if options.at_client:
            texts[CLIENT] = client_summary
        room = max(budget - frame_tokens(case, budget, count), 0)
        texts |= {method: f"{write(EMPTY)}\n{write_within(room)}" for method, write_within in writers.items()}
        for method, text in texts.items():
            yield made(method=method, tokens=count(text), text=text)


_NOTE = """\
Cells: answered % (half for keys that are scattered), then how many summaries' readers were misled of how many questions
that watch for it. Every method has the same tokens, its frame paid from them. The score is a floor: keys are hit by
chance in long scraps, and a meaning in other words is missed. Read the misses, and the hits."""


def render_questions(result: QuestionsResult, with_misses: bool = False) -> str:
    """A table for each budget, with rows by file of questions, dialect and type; ends with a line break."""
    cuts = len({(text.file, text.cut) for text in result.written})
    blocks = [f"{_asked(result.readings)} questions on {cuts} cuts; {result.token_method}", _NOTE]
    for budget in dict.fromkeys(text.budget for text in result.written):
        rows = [[f"at {budget}", "questions", *(cell for method in result.methods for cell in (method, "misled"))]]
        for name, group in _groups(result, budget):
            row = [name, str(_asked(group))]
            for method in result.methods:
                read = [reading for reading in group if reading.method == method]
                watched = [reading for reading in read if reading.question.wrong]
                row.append(percent(mean(reading.score for reading in read)) if read else NOTHING)
                row.append(f"{sum(reading.misled for reading in watched)}/{len(watched)}")
            rows.append(row)
        last = ["tokens, mean", ""]
        for method in result.methods:
            sizes = (text.tokens for text in result.written if (text.method, text.budget) == (method, budget))
            last += [f"{mean(sizes):,.0f}", ""]
        blocks.append(columns([*rows, last]))
    of_digest = (reading for reading in result.readings if with_misses and reading.method == DIGEST)
    for reading in (one for one in of_digest if one.score < 1 or one.misled):
        asked, mark = reading.question, " MISLEADS" if reading.misled else ""
        head = f"{reading.score:g}{mark} at {reading.budget}, {asked.id} ({asked.type})"
        blocks.append(f"{head}: {asked.question}\n  -> {asked.answer}")
    blocks += [f"skipped: {name}: {why}" for name, why in result.skipped.items()]
    return "\n\n".join(blocks) + "\n"


def _asked(readings: Iterable[Reading]) -> int:
    return len({(reading.question.source, reading.question.id) for reading in readings})


def _groups(result: QuestionsResult, budget: str) -> Iterator[tuple[str, list[Reading]]]:
    """All readings at this budget, then those of each file of questions, each dialect and each type."""
    readings = [reading for reading in result.readings if reading.budget == budget]
    yield "all", readings
    for about, value_of in (
        ("", lambda reading: Path(reading.question.source).stem),
        ("on ", lambda reading: reading.dialect),
        ("type ", lambda reading: reading.question.type),
    ):
        for value in sorted({value_of(reading) for reading in readings}):
            yield f"{about}{value}", [reading for reading in readings if value_of(reading) == value]


def questions_json(result: QuestionsResult) -> dict[str, Any]:
    """Plain values for a JSON encoder: every reading, and every table's figures."""
    figures = []
    for budget in dict.fromkeys(text.budget for text in result.written):
        for (name, group), method in product(_groups(result, budget), result.methods):
            read = [reading for reading in group if reading.method == method]
            figure = {
                "budget": budget,
                "group": name,
                "method": method,
                "questions": len(read),
                "answered": round(mean(reading.score for reading in read), 6),
                "misled": sum(reading.misled for reading in read),
                "watched": sum(bool(reading.question.wrong) for reading in read),
            }
            figures.append(figure)
    readings = []
    for reading in result.readings:
        asked = {name: getattr(reading.question, name) for name in ("id", "type", "file", "cut")}
        found = {name: getattr(reading, name) for name in ("dialect", "method", "budget", "score", "misled")}
        readings.append(asked | found)
    summaries = map(dataclasses.asdict, result.written)
    return {
        "methods": list(result.methods),
        "tokens": result.token_method,
        "figures": figures,
        "readings": readings,
        "summaries": [{key: value for key, value in one.items() if key != "text"} for one in summaries],
        "skipped": dict(result.skipped),
    }


def write_summaries(result: QuestionsResult, folder: str) -> None:
    """Write a file ``METHOD@BUDGET.jsonl`` for each method and budget: a line with file, cut and text for each summary.

    Raises OSError.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    for method, budget in dict.fromkeys((text.method, text.budget) for text in result.written):
        texts = (text for text in result.written if (text.method, text.budget) == (method, budget))
        rows = ({"file": text.file, "cut": text.cut, "text": text.text} for text in texts)
        lines = b"".join(orjson.dumps(row) + b"\n" for row in rows)
        name = re.sub(r"[^\w.-]", "_", method)
        Path(folder, f"{name}@{budget}.jsonl").write_bytes(lines)


TEXT, WHOLE = "text alone", "whole"
METHODS = (TEXT, WHOLE, DIGEST)
MEASURES = (Measure.FUR, Measure.PAIRS, Measure.PHRASES, Measure.USER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRow:
    """One reply of a model."""

    source: str  # the file that holds it
    file: str
    cut: int  # see the module
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredReplies:
    """The measures of one method at one cut."""

    method: str
    tokens: int
    shares: dict[str, float]  # of what was needed, by measure
    answers: tuple[float, ...] = ()  # the score of each question
    misled: int = 0  # how many questions' wrong patterns match


@dataclass(frozen=True, slots=True, kw_only=True)
class RepliesResult:
    """The result of measuring all replies."""

    measured: tuple[MeasuredReplies, ...]
    taken: int  # how many replies were measured
    refused: dict[str, str]  # replies that a run would refuse, with the reason
    skipped: dict[str, str]  # cuts that could not be made, with the reason


def read_replies(folder: str) -> Iterator[ReplyRow]:
    """The rows of every JSONL file in a folder. Raises UsageError if there is none, or if a line is not a reply."""
    paths = sorted(Path(folder).glob("*.jsonl"))
    if not paths:
        raise UsageError("holds no replies", next_step="put JSONL files there: file, cut, text", place=folder)
    for path in paths:
        yield from _rows(str(path), _reply, "reply", "a line is an object with file, cut and text")


def _reply(path: str, value: Any) -> ReplyRow:
    file, cut, text = str(value["file"]), int(value["cut"]), str(value["text"])
    return ReplyRow(source=path, file=file, cut=cut, text=text)


def run_replies(folder: str, questions: Sequence[str] = ()) -> RepliesResult:
    """Measure every reply in the folder: as a whole summary, as its text alone, and the digest of the whole's size."""
    counter = counter_for()
    asked_at = questions_by_cut(questions)
    measured: list[MeasuredReplies] = []
    refused: dict[str, str] = {}
    skipped: dict[str, str] = {}
    rows = list(read_replies(folder))
    for row in rows:
        name = f"{row.file}@{row.cut}"
        try:
            case = _reply_case(row, counter)
        except InputError as error:
            skipped[name] = error.what
            continue
        whole, verdict = _whole(case, row.text, counter.count)
        if verdict.fault:
            refused[name] = str(verdict)
        else:
            digest = digest_of(case, counter.count(whole), counter.count).text
            asked, needs = asked_at.get((row.file, row.cut), ()), needs_of(case)
            for method, text in zip(METHODS, (own_words(row.text), whole, digest), strict=True):
                shares = score(needs, SummaryView(text))
                one = MeasuredReplies(
                    method=method,
                    tokens=counter.count(text),
                    shares={measure.value: shares[measure].ratio for measure in MEASURES if shares[measure].total},
                    answers=tuple(score_answer(question, text) for question in asked),
                    misled=sum(is_misled(question, text) for question in asked),
                )
                measured.append(one)
        forget()
    taken = len(rows) - len(refused) - len(skipped)
    return RepliesResult(measured=tuple(measured), taken=taken, refused=refused, skipped=skipped)


def _reply_case(row: ReplyRow, counter: Counter) -> EvalCase:
    """A case whose middle is everything before the cut, and whose future ends at the next compaction."""
    path = locate(row.file, row.source)
    case, _ = read_cut(path, row.file, row.cut, 0, partial(count_message, counter))
    following = [record for record in file_records(str(path)) if record.place.line >= row.cut]
    events = [event for part in open_transcripts(following) for event in plain_events(part)] if following else []
    opened = next((n for n, event in enumerate(events) if event.kind is not EventKind.SUMMARY), len(events))
    future = tuple(takewhile(lambda event: event.kind is not EventKind.SUMMARY, events[opened:]))
    everything = tuple(range(len(case.prefix.messages)))
    counted, schema = future[: CutRule().most_future_events], case.schema | schema_words(future)
    return replace(case, head=(), middle=everything, future_events=counted, schema=schema)


def _whole(case: EvalCase, text: str, count: Count) -> tuple[str, Verdict]:
    """The summary that a run would write with this reply, and the verdict on the reply."""
    text = own_words(text)
    request = bare_request(case.prefix, case.middle, int(count(text) / (1 - MOST_RATIO)) + 100, count, body)
    request = replace(request, language="en")
    strands = (Strand(transcript=case.prefix, indices=case.middle),)
    facts = RecordFacts(request, strands)
    check_input = CheckInput(
        records=facts.records,
        essentials=facts.essentials(strands),
        source_tokens=max(case.middle_tokens, count(text)),
        budget_tokens=count(text),
        headings=written_headings(headings_of(body, "en")),
        covered=frozenset(case.middle),
    )
    verdicts = [
        check(Reply(text=text, model=name), replace(check_input, known=heading_names(name)), count)
        for name in template_names()
    ]
    verdict = max(verdicts, key=lambda one: (one.fault is None, len(one.outline.present)))
    outline = verdict.outline
    missing = outline.missing(check_input.headings)
    written = CompletedText(sections=outline.sections, prose=outline.prose, missing=missing)
    return body(completed(request, written, "en", analysis=facts.analysis).summary), verdict


def render_replies(result: RepliesResult) -> str:
    """A table with a row for each method; ends with a line break."""
    rows = [[f"{result.taken} replies", "tokens", *(measure.value for measure in MEASURES), "answered", "misled"]]
    for method in METHODS:
        mine = [one for one in result.measured if one.method == method]
        answers = [answer for one in mine for answer in one.answers]
        shares = ([one.shares[m.value] for one in mine if m.value in one.shares] for m in MEASURES)
        cells = (percent(mean(values)) if values else NOTHING for values in (*shares, answers))
        misled = str(sum(one.misled for one in mine))
        rows.append([method, f"{mean(one.tokens for one in mine):,.0f}", *cells, misled])
    notes = [f"refused: {name}: {why}" for name, why in result.refused.items()]
    notes += [f"skipped: {name}: {why}" for name, why in result.skipped.items()]
    return "\n\n".join([columns(rows), *notes]) + "\n"


def replies_json(result: RepliesResult) -> dict[str, Any]:
    """The result as plain values for a JSON encoder."""
    return {
        "taken": result.taken,
        "refused": result.refused,
        "skipped": result.skipped,
        "measured": [
            {"method": one.method, "tokens": one.tokens, **one.shares, "answers": one.answers, "misled": one.misled}
            for one in result.measured
        ],
    }
