"""`run_eval`: files to cases, cases to scores, on one or several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from compactor_cli.evaluate.artefacts import artefacts_of, retrieval, reused_facts, score_artefacts, score_facts
from compactor_cli.evaluate.baselines import Count, ExternalMethod, Method, choose
from compactor_cli.evaluate.cuts import CutRule, EvalCase, find_cases
from compactor_cli.evaluate.digested import (
    Carry,
    DigestMethod,
    frame_tokens,
    gates_of,
    last_summary,
    repeat,
    request_from,
    the_digest,
)
from compactor_cli.evaluate.measures import Measure, Share, SummaryView, forget, needs_of, score
from compactor_cli.evaluate.results import (
    DIGEST,
    CaseResult,
    CaseScore,
    DriftPoint,
    EvalOptions,
    EvalResult,
    FileResult,
    label,
)
from compactor_cli.evaluate.retention import ask, read_scenario, unanswerable
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import InputError
from compactor_cli.model.settings import Size
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import Counter, count_message, counter_for
from compactor_cli.read.jsonl import OnInvalid, records_in
from compactor_cli.read.sources import InputSource, Walk, find_sources
from compactor_cli.read.streams import open_stream

INCLUDE = ("*.jsonl", "*.jsonl.gz", "*.jsonl.zst", "*.json", "*.json.gz", "*.traj")
# Smaller budgets hold no statement; with a fixed budget over half of the middle, little is compacted.
LEAST_BUDGET_TOKENS = 40
MOST_BUDGET_RATIO = 0.5

Scorer = Callable[[SummaryView], dict[Measure, Share]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """What a process needs to evaluate files. ``digest`` is also the first of the ``methods``."""

    options: EvalOptions
    digest: DigestMethod
    methods: tuple[Method, ...]
    counter: Counter


def run_eval(
    paths: Sequence[str], options: EvalOptions, extra: Sequence[Method] = (), progress: Progress | None = None
) -> EvalResult:
    """Evaluates the digest and the chosen baselines on every transcript below these paths.

    ``extra`` are methods that can be chosen by name next to the built-in ones. Files that hold no transcript, or one
    too short to be cut, are skipped, with the reason. Same files, same options: same result, whatever ``jobs``.
    Raises UsageError for unknown names and for a baseline command that fails.
    """
    bench = _Bench(
        options=options,
        digest=the_digest(),
        methods=(*choose(options.baselines, extra), *(ExternalMethod(command=text) for text in options.commands)),
        counter=counter_for(options.tokenizer),
    )
    bench = replace(bench, methods=(bench.digest, *bench.methods))
    sources = find_sources(paths, recursive=True, walk=Walk(include=INCLUDE))
    chosen: Sequence[InputSource] = sources
    if 0 < options.limit < len(sources):
        chosen = [sources[i * len(sources) // options.limit] for i in range(options.limit)]
    files: list[FileResult] = []
    for file in _evaluated(chosen, bench):
        files.append(file)
        if progress:
            progress(len(files), len(chosen))
    return EvalResult(
        options=options,
        methods=tuple(method.name for method in bench.methods),
        token_method=bench.counter.method,
        files=tuple(files),
    )


def _evaluated(sources: Sequence[InputSource], bench: _Bench) -> Iterator[FileResult]:
    """The results in the order of the sources."""
    if bench.options.jobs <= 1 or len(sources) <= 1:
        yield from (evaluate_file(source, bench) for source in sources)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(bench.options.jobs, initializer=_benches.append, initargs=(bench,)) as pool:
        yield from pool.map(_in_worker, sources)


# What a worker process evaluates with: handed over once, so that its vocabulary is loaded once.
_benches: list[_Bench] = []


def _in_worker(source: InputSource) -> FileResult:
    return evaluate_file(source, _benches[-1])


def evaluate_file(source: InputSource, bench: _Bench) -> FileResult:
    """One file: its cuts, or its questions."""
    forget()
    # Named without what is above the folder that was asked for: results of two machines are to be the same.
    path = f"{Path(source.root).name}/{source.name}"
    try:
        with open_stream(source.path) as stream:
            records = list(records_in(stream, OnInvalid.KEEP))
        scenario = read_scenario(records[0].value, path) if len(records) == 1 else None
        if scenario is not None:
            ratios = [budget for budget in bench.options.budgets if budget.ratio]
            asked = ask(scenario, bench.methods, ratios, bench.counter.count, _counting(bench))
            notes = tuple(f"not in the history: {name}" for name in unanswerable(scenario))
            return FileResult(path=path, retention=tuple(asked), notes=notes)
        transcripts = tuple(open_transcripts(records))
    except InputError as error:
        return FileResult(path=path, skipped=error.what)
    cases = tuple(result for case in _cases(transcripts, path, bench) for result in _evaluate(case, bench))
    return FileResult(path=path, cases=cases, skipped="" if cases else "too short to be cut")


def _counting(bench: _Bench) -> Callable[..., int]:
    return partial(count_message, bench.counter)


def _cases(transcripts: Sequence[Transcript], path: str, bench: _Bench) -> Iterator[EvalCase]:
    rule = CutRule(tail_tokens=bench.options.tail_tokens)
    for number, transcript in enumerate(transcripts, 1):
        session = path if len(transcripts) == 1 else f"{path}#{number}"
        if not bench.options.dialect or transcript.dialect == bench.options.dialect:
            yield from find_cases(transcript, session, rule, _counting(bench))


def _evaluate(case: EvalCase, bench: _Bench) -> Iterator[CaseResult]:
    scorer = _scorer(case)
    count = bench.counter.count
    budgets = {label(size): tokens for size in bench.options.budgets if (tokens := _allowed(size, case, count))}
    if not budgets:
        return
    digests = {name: bench.digest.digest(request_from(case), tokens, count) for name, tokens in budgets.items()}
    once = _allowed(bench.options.drift_budget, case, count)
    scores = [_scored(DIGEST, name, budgets[name], found.text, scorer, count) for name, found in digests.items()]
    for method in bench.methods[1:]:
        write = method.prepare(case, count)
        scores += [_scored(method.name, name, size, write(size), scorer, count) for name, size in budgets.items()]
    drift: list[DriftPoint] = []
    for carry, rounds in product(Carry, bench.options.rounds) if once else ():
        text = last_summary(bench.digest, case, rounds, carry, once, count)
        drift.append(DriftPoint(rounds=rounds, carry=carry, shares=scorer(SummaryView(text))))
    yield CaseResult(
        name=case.name,
        session=case.session,
        dialect=case.dialect,
        protocol=case.protocol,
        middle_tokens=case.middle_tokens,
        scores=tuple(scores),
        gates={name: gates_of(case, budgets[name], count, found) for name, found in digests.items()},
        repeat=repeat(bench.digest, case, once, count) if once else None,
        drift=tuple(drift),
    )


def _allowed(size: Size, case: EvalCase, count: Count) -> int:
    """The budget in tokens with its frame paid, or 0 where it makes no sense for this middle."""
    tokens = size.of(case.middle_tokens)
    if tokens > MOST_BUDGET_RATIO * case.middle_tokens:
        return 0
    left = tokens - frame_tokens(case, tokens, count)
    return left if left >= LEAST_BUDGET_TOKENS else 0


def _scorer(case: EvalCase) -> Scorer:
    needs = needs_of(case)
    artefacts = artefacts_of(case.middle_events)
    facts = reused_facts(case) if case.is_chat else ()

    def scored(summary: SummaryView) -> dict[Measure, Share]:
        return {
            **score(needs, summary),
            Measure.RETRIEVAL: retrieval(needs.uses, summary),
            **score_artefacts(artefacts, summary),
            Measure.CHAT: score_facts(facts, summary),
        }

    return scored


def _scored(method: str, budget: str, tokens: int, text: str, scorer: Scorer, count: Count) -> CaseScore:
    shares = scorer(SummaryView(text))
    return CaseScore(method=method, budget=budget, shares=shares, budget_ratio=count(text) / tokens)
