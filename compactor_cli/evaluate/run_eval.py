"""`run_eval`: make cases of files and scores of cases, in one or several processes; and the figures over all cases.

Cuts of one session are not independent, so that a session is the unit of every error and interval. Differences have
percentile intervals by a paired bootstrap (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

from compactor_cli.digest.digest import Digest
from compactor_cli.evaluate import measures, methods
from compactor_cli.evaluate.cuts import CutProtocol, CutRule, EvalCase, file_records, find_cases
from compactor_cli.evaluate.measures import Gates, Measure, Share, SummaryView, artefacts_of, forget, gates_of, needs_of
from compactor_cli.evaluate.methods import Baseline, Carry, Count, Repeat, choose, digest_of, frame_tokens, repeat
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import InputError
from compactor_cli.model.settings import Size
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import Counter, count_message, counter_for
from compactor_cli.read.sources import InputSource, Walk, find_sources

DIGEST = "digest"
DRIFT_BUDGET = Size(ratio=0.05)
DEFAULT_BUDGETS = (
    Size(ratio=0.02),
    Size(ratio=0.05),
    Size(ratio=0.1),
    Size(ratio=0.2),
    Size(tokens=1_000),
    Size(tokens=2_000),
    Size(tokens=4_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """What is evaluated, and how."""

    baselines: tuple[str, ...] = ()  # names, or ``all``
    commands: tuple[str, ...] = ()  # as of `external_baseline`
    budgets: tuple[Size, ...] = DEFAULT_BUDGETS  # shares are of the tokens of the middle
    tail_tokens: int = CutRule().tail_tokens
    rounds: tuple[int, ...] = (1, 2, 5, 10)  # of updates, to measure the drift; empty: it is not measured
    drift_budget: Size = DRIFT_BUDGET
    dialect: str = ""  # only transcripts of this dialect; empty: all
    limit: int = 0  # at most this many files, spread evenly over all; 0: no limit
    jobs: int = 1  # processes
    seed: int = 0  # of the bootstrap
    resamples: int = 2_000  # of the bootstrap
    tokenizer: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScore:
    """The score of one method at one budget, for one case."""

    method: str
    budget: str
    shares: Mapping[Measure, Share]
    budget_ratio: float  # the share of the budget that its text takes


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPoint:
    """What a summary holds of the needs after this many rounds of updates."""

    rounds: int
    carry: Carry
    shares: Mapping[Measure, Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of one cut."""

    name: str
    session: str  # the path, with the name of the folder that was asked for, and `#2` if the file has several
    dialect: str
    protocol: str
    middle_tokens: int
    scores: tuple[CaseScore, ...]
    gates: Mapping[str, Gates]  # the digest's, by budget
    # These two are at `EvalOptions.drift_budget`, and missing if that makes no sense for this middle.
    repeat: Repeat | None = None
    drift: tuple[DriftPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """The result of one input."""

    path: str
    cases: tuple[CaseResult, ...] = ()
    skipped: str = ""  # why there are no cases


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalResult:
    """The result of an evaluation."""

    options: EvalOptions
    methods: tuple[str, ...]  # in the order of the table, the digest first
    token_method: str
    files: tuple[FileResult, ...]

    @property
    def cases(self) -> tuple[CaseResult, ...]:
        """The cuts of all files."""
        return tuple(case for file in self.files for case in file.cases)

    @property
    def gates_hold(self) -> bool:
        """Whether every digest passed its gates."""
        repeats = all(case.repeat is None or case.repeat.is_same for case in self.cases)
        return repeats and all(gates.hold for case in self.cases for gates in case.gates.values())


def label(size: Size) -> str:
    """The name of a budget: ``5%``, ``2k``, ``500``."""
    if size.ratio:
        return f"{size.ratio * 100:g}%"
    return f"{size.tokens // 1000}k" if size.tokens % 1000 == 0 else str(size.tokens)


LOW, HIGH = 0.025, 0.975  # the ends of the 95 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A mean difference over sessions with its 95 % interval and its two-sided p-value."""

    value: float
    low: float
    high: float
    p: float
    sessions: int


def by_session(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The mean of each session's values."""
    found: dict[str, list[float]] = {}
    for session, value in values:
        found.setdefault(session, []).append(value)
    return {session: fmean(several) for session, several in found.items()}


def paired(ours: Mapping[str, float], theirs: Mapping[str, float], resamples: int, seed: str) -> Difference | None:
    """Ours minus theirs over the sessions that both have; None if there is none. The same seed gives the same result.

    p is twice the smaller share of resamples on one side of zero, and never below 1 / resamples.
    """
    differences = [ours[session] - theirs[session] for session in sorted(ours.keys() & theirs.keys())]
    if not differences:
        return None
    chance = random.Random(seed)  # noqa: S311 -- statistics, not secrets
    size = len(differences)
    drawn = sorted(sum(chance.choices(differences, k=size)) / size for _ in range(resamples))
    below = sum(mean <= 0 for mean in drawn) / resamples
    above = sum(mean >= 0 for mean in drawn) / resamples
    return Difference(
        value=fmean(differences),
        low=drawn[int(LOW * resamples)],
        high=drawn[min(resamples - 1, int(HIGH * resamples))],
        p=min(1.0, max(2 * min(below, above), 1 / resamples)),
        sessions=len(differences),
    )


TOTAL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseGroup:
    """Cases that are reported together: one protocol, one dialect or all of them."""

    protocol: str
    dialect: str
    cases: tuple[CaseResult, ...]

    @property
    def title(self) -> str:
        """``session · all``, with how many cuts of how many sessions."""
        sessions = len({case.session for case in self.cases})
        tokens = sum(case.middle_tokens for case in self.cases)
        return f"{self.protocol} cuts, {self.dialect}: {len(self.cases)} of {sessions} sessions, {tokens:,} tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCell:
    """One measure of one method at one budget."""

    micro: float  # over all cases together
    macro: float  # the mean of the sessions' means
    error: float  # the standard error of macro; 0 if there is only one session
    sessions: int
    cases: int


def groups_of(cases: Sequence[CaseResult]) -> Iterator[CaseGroup]:
    """For each protocol with cases, all of them, then those of each dialect."""
    for protocol in CutProtocol:
        chosen = tuple(case for case in cases if case.protocol == protocol)
        for dialect in (TOTAL, *sorted({case.dialect for case in chosen})) if chosen else ():
            found = tuple(case for case in chosen if dialect in (TOTAL, case.dialect))
            yield CaseGroup(protocol=protocol, dialect=dialect, cases=found)


def _scored_by(cases: Iterable[CaseResult], method: str, budget: str) -> Iterator[tuple[str, CaseScore]]:
    for case in cases:
        yield from ((case.session, one) for one in case.scores if (one.method, one.budget) == (method, budget))


def shares(cases: Iterable[CaseResult], method: str, budget: str, measure: Measure) -> Iterator[tuple[str, Share]]:
    """The (session, share) of the cases that have something to measure."""
    for session, one in _scored_by(cases, method, budget):
        if (share := one.shares.get(measure)) and share.total:
            yield session, share


def cell(found: Iterable[tuple[str, Share]]) -> ScoreCell | None:
    """The figures of these shares; None if there are none."""
    every = tuple(found)
    if not every:
        return None
    means = list(by_session((session, share.ratio) for session, share in every).values())
    return ScoreCell(
        micro=sum(share.kept for _, share in every) / sum(share.total for _, share in every),
        macro=fmean(means),
        error=stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0,
        sessions=len(means),
        cases=len(every),
    )


def used(cases: Iterable[CaseResult], method: str, budget: str) -> tuple[float, float]:
    """The mean and the largest share of the budget that this method's texts take; 0 if it wrote none."""
    ratios = [one.budget_ratio for _, one in _scored_by(cases, method, budget)]
    return (sum(ratios) / len(ratios), max(ratios)) if ratios else (0.0, 0.0)


def budgets_of(result: EvalResult, cases: Iterable[CaseResult]) -> list[str]:
    """The budgets that these cases were given, in the order of the options."""
    given = {one.budget for case in cases for one in case.scores}
    return [name for size in result.options.budgets if (name := label(size)) in given]


def differences(result: EvalResult, group: CaseGroup, budget: str) -> Mapping[tuple[str, Measure], Difference]:
    """The digest minus each baseline in this group at this budget, by baseline and measure."""
    found: dict[tuple[str, Measure], Difference] = {}

    @cache
    def means(method: str, measure: Measure) -> dict[str, float]:
        every = shares(group.cases, method, budget, measure)
        return by_session((session, share.ratio) for session, share in every)

    for method in result.methods:
        for measure in Measure if method != DIGEST else ():
            seed = f"{result.options.seed}/{group.protocol}/{group.dialect}/{budget}/{method}/{measure}"
            ours, theirs = means(DIGEST, measure), means(method, measure)
            if difference := paired(ours, theirs, result.options.resamples, seed):
                found[method, measure] = difference
    return found


INCLUDE = ("*.jsonl", "*.jsonl.gz", "*.jsonl.zst", "*.json", "*.json.gz", "*.traj")
# A smaller budget has no room for a statement; with one above half of the middle, little is compacted.
LEAST_BUDGET_TOKENS = 40
MOST_BUDGET_RATIO = 0.5

# Called with the number of files, or cuts, done since the last call.
Advance = Callable[[int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """What a process needs for evaluating files."""

    options: EvalOptions
    baselines: tuple[Baseline, ...]  # in addition to the digest
    counter: Counter


def run_eval(
    paths: Sequence[str],
    options: EvalOptions,
    extra: Sequence[Baseline] = (),
    advance: Advance = lambda count: None,
) -> EvalResult:
    """Evaluate the digest and the chosen baselines on every transcript below these paths.

    ``extra`` are baselines that can be chosen by name, like the built-in ones. Files without a transcript, or with one
    that is too short to be cut, are skipped, with the reason. The same files and options give the same result, whatever
    ``jobs`` is. Raises UsageError for unknown names and for a baseline command that fails.
    """
    bench = _Bench(
        options=options,
        baselines=(*choose(options.baselines, extra), *map(methods.external_baseline, options.commands)),
        counter=counter_for(options.tokenizer),
    )
    sources = find_sources(paths, recursive=True, walk=Walk(include=INCLUDE))
    chosen: Sequence[InputSource] = sources
    if 0 < options.limit < len(sources):
        chosen = [sources[i * len(sources) // options.limit] for i in range(options.limit)]
    files: list[FileResult] = []
    with ExitStack() as stack:
        found: Iterable[FileResult] = (evaluate_file(source, bench) for source in chosen)
        if options.jobs > 1 and len(chosen) > 1:
            from concurrent.futures import ProcessPoolExecutor

            workers = ProcessPoolExecutor(options.jobs, initializer=_benches.append, initargs=(bench,))
            found = stack.enter_context(workers).map(evaluate_file, chosen)
        for file in found:
            files.append(file)
            advance(1)
    return EvalResult(
        options=options,
        methods=(DIGEST, *(baseline.name for baseline in bench.baselines)),
        token_method=bench.counter.method,
        files=tuple(files),
    )


# The bench of a worker process, passed to it only once, so that its vocabulary is loaded only once.
_benches: list[_Bench] = []


def evaluate_file(source: InputSource, bench: _Bench | None = None) -> FileResult:
    """Evaluate one file; if no ``bench`` is given, with that of this worker process."""
    bench = bench or _benches[-1]
    forget()
    # Without what is above the folder that was asked for, so that two machines have the same results.
    path = f"{Path(source.root).name}/{source.name}"
    try:
        transcripts = tuple(open_transcripts(file_records(source.path)))
    except InputError as error:
        return FileResult(path=path, skipped=error.what)
    rule, count = CutRule(tail_tokens=bench.options.tail_tokens), partial(count_message, bench.counter)
    cases: list[CaseResult] = []
    for number, transcript in enumerate(transcripts, 1):
        session = path if len(transcripts) == 1 else f"{path}#{number}"
        if not bench.options.dialect or transcript.dialect == bench.options.dialect:
            for case in find_cases(transcript, session, rule, count):
                cases += _evaluate(case, bench)
    return FileResult(path=path, cases=tuple(cases), skipped="" if cases else "too short to be cut")


def _evaluate(case: EvalCase, bench: _Bench) -> Iterator[CaseResult]:
    digest, count = Digest(), bench.counter.count
    needs, artefacts = needs_of(case), artefacts_of(case.middle_events)
    facts = measures.reused_facts(case) if case.is_chat else ()

    def shares_of(text: str) -> dict[Measure, Share]:
        summary = SummaryView(text)
        return {
            **measures.score(needs, summary),
            Measure.RETRIEVAL: measures.retrieval(needs.uses, summary),
            **measures.score_artefacts(artefacts, summary),
            Measure.CHAT: measures.score_facts(facts, summary),
        }

    def scored(method: str, budget: str, text: str) -> CaseScore:
        ratio = count(text) / budgets[budget]
        return CaseScore(method=method, budget=budget, shares=shares_of(text), budget_ratio=ratio)

    budgets = {label(size): tokens for size in bench.options.budgets if (tokens := _allowed(size, case, count))}
    if not budgets:
        return
    digests = {name: digest_of(case, tokens, count) for name, tokens in budgets.items()}
    once = _allowed(bench.options.drift_budget, case, count)
    scores = [scored(DIGEST, name, found.text) for name, found in digests.items()]
    for baseline in bench.baselines:
        write = baseline.prepare(case, count)
        scores += (scored(baseline.name, name, write(size)) for name, size in budgets.items())
    drift: list[DriftPoint] = []
    for carry, rounds in product(Carry, bench.options.rounds) if once else ():
        text = methods.last_summary(digest, case, rounds, carry, once, count)
        drift.append(DriftPoint(rounds=rounds, carry=carry, shares=shares_of(text)))
    yield CaseResult(
        name=case.name,
        session=case.session,
        dialect=case.dialect,
        protocol=case.protocol,
        middle_tokens=case.middle_tokens,
        scores=tuple(scores),
        gates={name: gates_of(case, budgets[name], count, found) for name, found in digests.items()},
        repeat=repeat(digest, case, once, count) if once else None,
        drift=tuple(drift),
    )


def _allowed(size: Size, case: EvalCase, count: Count) -> int:
    """The budget in tokens without those of the frame, or 0 if it makes no sense for this middle."""
    tokens = size.of(case.middle_tokens)
    if tokens > MOST_BUDGET_RATIO * case.middle_tokens:
        return 0
    left = tokens - frame_tokens(case, tokens, count)
    return left if left >= LEAST_BUDGET_TOKENS else 0
