"""`run_questions`: every method's summary of each cut, and which questions it answers.

A summary here is what the agent would read, its frame (preface and marker line) paid from the budget; every method
pays the same frame, so that all have the same tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from compactor_cli.evaluate.baselines import Method, choose
from compactor_cli.evaluate.digested import EMPTY, frame_tokens, framed, request_from, the_digest
from compactor_cli.evaluate.fit import Count
from compactor_cli.evaluate.question_cuts import QuestionCut, locate, read_cut
from compactor_cli.evaluate.questions import Question, is_misled, read_questions, score_answer
from compactor_cli.evaluate.results import DIGEST, label
from compactor_cli.evaluate.text_views import forget
from compactor_cli.model.errors import InputError
from compactor_cli.model.settings import Size
from compactor_cli.plan.tokens import Counter, count_message, counter_for

CLIENT = "client"
DEFAULT_BASELINES = ("head-tail", "prose", "log-frequency")
DEFAULT_BUDGETS = (Size(tokens=1_500), Size(ratio=0.05))
# A share of a short dialogue is never less than this: a smaller summary is little more than its frame.
LEAST_BUDGET_TOKENS = 256

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """What is asked, and of which summaries.

    ``budgets``: shares are of the tokens between head and tail. ``at_client``: only cuts where a client compacted,
    at the tokens of its own summary, which is a method then. ``tails``: (part of a path, tokens); the first part
    that the transcript's path or that of the questions holds decides, else ``tail_tokens``.
    """

    paths: tuple[str, ...]
    baselines: tuple[str, ...] = DEFAULT_BASELINES
    budgets: tuple[Size, ...] = DEFAULT_BUDGETS
    at_client: bool = False
    tail_tokens: int = 8_000
    tails: tuple[tuple[str, int], ...] = ()
    tokenizer: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One question read against one method's summary at one budget."""

    question: Question
    dialect: str
    method: str
    budget: str
    score: float
    misled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSummary:
    """One summary as the agent would read it."""

    file: str
    cut: int
    method: str
    budget: str
    budget_tokens: int
    tokens: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsResult:
    """All readings and summaries. ``skipped``: transcripts that could not be cut, and why."""

    options: QuestionOptions
    methods: tuple[str, ...]
    token_method: str
    readings: tuple[Reading, ...]
    written: tuple[WrittenSummary, ...]
    skipped: Mapping[str, str]


def run_questions(
    options: QuestionOptions, extra: Sequence[Method] = (), progress: Progress | None = None
) -> QuestionsResult:
    """Asks the questions of every file. Transcripts that are missing or cannot be read are skipped and named.

    Raises UsageError for lines that are no questions and baselines that nothing is called.
    """
    counter = counter_for(options.tokenizer)
    methods = choose(options.baselines, extra)
    asked = _by_cut(question for path in options.paths for question in read_questions(path))
    readings: list[Reading] = []
    written: list[WrittenSummary] = []
    skipped: dict[str, str] = {}
    for done, ((file, cut), questions) in enumerate(asked.items(), 1):
        try:
            found = _cut(questions[0], options, counter)
        except InputError as error:
            skipped[f"{file}@{cut}"] = error.what
        else:
            for text in _summaries(found, questions[0], methods, options, counter.count):
                written.append(text)
                readings += (_read(question, text, found.case.dialect) for question in questions)
        forget()
        if progress:
            progress(done, len(asked))
    return QuestionsResult(
        options=options,
        methods=(DIGEST, *((CLIENT,) if options.at_client else ()), *(method.name for method in methods)),
        token_method=counter.method,
        readings=tuple(readings),
        written=tuple(written),
        skipped=skipped,
    )


def _by_cut(questions: Iterator[Question]) -> dict[tuple[str, int], list[Question]]:
    found: dict[tuple[str, int], list[Question]] = {}
    for question in questions:
        if not question.in_head:
            found.setdefault((question.file, question.cut), []).append(question)
    return found


def _cut(question: Question, options: QuestionOptions, counter: Counter) -> QuestionCut:
    path = locate(question.file, question.source)
    if path is None:
        raise InputError("there is no such file")
    names = (question.file, question.source)
    tails = (tokens for part, tokens in options.tails if any(part in name for name in names))
    tail_tokens = next(tails, options.tail_tokens)
    return read_cut(path, question.file, question.cut, tail_tokens, partial(count_message, counter))


def _summaries(
    cut: QuestionCut, question: Question, methods: Sequence[Method], options: QuestionOptions, count: Count
) -> Iterator[WrittenSummary]:
    if options.at_client and count(cut.client_summary) < LEAST_BUDGET_TOKENS:
        return
    for name, budget in _budgets(cut, options, count):
        for method, text in _texts(cut, methods, budget, options.at_client, count):
            yield WrittenSummary(
                file=question.file,
                cut=question.cut,
                method=method,
                budget=name,
                budget_tokens=budget,
                tokens=count(text),
                text=text,
            )


def _budgets(cut: QuestionCut, options: QuestionOptions, count: Count) -> Iterator[tuple[str, int]]:
    if options.at_client:
        yield CLIENT, count(cut.client_summary)
        return
    for size in options.budgets:
        tokens = size.of(cut.case.middle_tokens)
        yield label(size), max(tokens, LEAST_BUDGET_TOKENS) if size.ratio else tokens


def _texts(
    cut: QuestionCut, methods: Sequence[Method], budget: int, at_client: bool, count: Count
) -> Iterator[tuple[str, str]]:
    """Each method's name and its summary."""
    write = framed(cut.case, budget)
    yield DIGEST, the_digest().digest(request_from(cut.case), budget, count, write).text
    if at_client:
        yield CLIENT, cut.client_summary
    frame = write(EMPTY)
    room = max(budget - frame_tokens(cut.case, budget, count), 0)
    for method in methods:
        yield method.name, f"{frame}\n{method.prepare(cut.case, count)(room)}"


def _read(question: Question, text: WrittenSummary, dialect: str) -> Reading:
    return Reading(
        question=question,
        dialect=dialect,
        method=text.method,
        budget=text.budget,
        score=score_answer(question, text.text),
        misled=is_misled(question, text.text),
    )
