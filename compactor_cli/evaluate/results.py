"""Results: what an evaluation was asked, what it found, and the figures over cases.

Cuts of one session are not independent, so a session is the unit of every error and interval. Paired bootstrap as in
Efron and Tibshirani, "An Introduction to the Bootstrap" (1993): percentile intervals.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from statistics import fmean, stdev

from compactor_cli.evaluate.cuts import Protocol
from compactor_cli.evaluate.digested import Carry, Gates, Repeat
from compactor_cli.evaluate.measures import Measure, Share
from compactor_cli.model.settings import Size
from compactor_cli.model.value import dataclass

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
    """What is evaluated, and how.

    ``baselines``: names, or ``all``. ``commands``: external baselines, see `ExternalMethod`. ``budgets``: shares are of
    the middle's tokens. ``rounds``: of the drift; empty leaves it out. ``dialect``: only transcripts of that name.
    ``limit``: at most this many files, spread evenly over all; 0 is all. ``jobs``: processes. ``seed``: of the
    bootstrap.
    """

    baselines: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    budgets: tuple[Size, ...] = DEFAULT_BUDGETS
    tail_tokens: int = 8_000
    rounds: tuple[int, ...] = (1, 2, 5, 10)
    drift_budget: Size = DRIFT_BUDGET
    dialect: str = ""
    limit: int = 0
    jobs: int = 1
    seed: int = 0
    resamples: int = 2_000
    tokenizer: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScore:
    """One method at one budget. ``budget_ratio`` is the share of the budget that its text takes."""

    method: str
    budget: str
    shares: Mapping[Measure, Share]
    budget_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPoint:
    """What is left of the needs after this many updates."""

    rounds: int
    carry: Carry
    shares: Mapping[Measure, Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One cut.

    ``session`` is the path below the folder that was named; ``gates`` are the digest's, by budget;
    ``repeat`` and ``drift`` are at one budget, and left out where that makes no sense for this middle.
    """

    name: str
    session: str
    dialect: str
    protocol: str
    middle_tokens: int
    scores: tuple[CaseScore, ...]
    gates: Mapping[str, Gates]
    repeat: Repeat | None = None
    drift: tuple[DriftPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionResult:
    """One question of a question set after compaction by one method at one budget."""

    scenario: str
    question: str
    method: str
    budget: str
    is_kept: bool
    bytes_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """What one input gave. ``skipped``: why it gave nothing, ``notes``: what of it was left out."""

    path: str
    cases: tuple[CaseResult, ...] = ()
    retention: tuple[RetentionResult, ...] = ()
    skipped: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalResult:
    """An evaluation. ``methods`` in the order of the table, the digest first."""

    options: EvalOptions
    methods: tuple[str, ...]
    token_method: str
    files: tuple[FileResult, ...]

    @property
    def cases(self) -> tuple[CaseResult, ...]:
        """The cuts of all files."""
        return tuple(case for file in self.files for case in file.cases)

    @property
    def retention(self) -> tuple[RetentionResult, ...]:
        """The answered questions of all files."""
        return tuple(item for file in self.files for item in file.retention)

    @property
    def gates_hold(self) -> bool:
        """Whether every digest passed its gates."""
        repeats = all(case.repeat is None or case.repeat.is_same for case in self.cases)
        return repeats and all(gates.hold for case in self.cases for gates in case.gates.values())


def label(size: Size) -> str:
    """How a budget is named: ``5%``, ``2k``, ``500``."""
    if size.ratio:
        return f"{size.ratio * 100:g}%"
    return f"{size.tokens // 1000}k" if size.tokens % 1000 == 0 else str(size.tokens)


LOW, HIGH = 0.025, 0.975


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over sessions with its standard error (0 where there is one session)."""

    value: float
    error: float
    sessions: int


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


def macro(values: Iterable[tuple[str, float]]) -> Mean | None:
    """The mean of the sessions' means. None where there is nothing."""
    means = list(by_session(values).values())
    if not means:
        return None
    error = stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    return Mean(value=fmean(means), error=error, sessions=len(means))


def paired(ours: Mapping[str, float], theirs: Mapping[str, float], resamples: int, seed: str) -> Difference | None:
    """Ours minus theirs over the sessions that both have. Same seed, same result.

    p is twice the smaller share of resamples on one side of zero, never below 1 / resamples.
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
        low=_quantile(drawn, LOW),
        high=_quantile(drawn, HIGH),
        p=min(1.0, max(2 * min(below, above), 1 / resamples)),
        sessions=len(differences),
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


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
    """One measure of one method at one budget. ``micro`` is of all cases together."""

    micro: float
    macro: Mean
    cases: int


def groups_of(cases: Sequence[CaseResult]) -> Iterator[CaseGroup]:
    """For each protocol all cases, then those of each dialect where there is more than one."""
    for protocol in Protocol:
        chosen = tuple(case for case in cases if case.protocol == protocol)
        if not chosen:
            continue
        yield CaseGroup(protocol=protocol, dialect=TOTAL, cases=chosen)
        for dialect in sorted({case.dialect for case in chosen}):
            of_dialect = tuple(case for case in chosen if case.dialect == dialect)
            yield CaseGroup(protocol=protocol, dialect=dialect, cases=of_dialect)


def shares(cases: Iterable[CaseResult], method: str, budget: str, measure: Measure) -> Iterator[tuple[str, Share]]:
    """(session, share) of the cases that have something to measure."""
    for case in cases:
        for score in case.scores:
            if score.method == method and score.budget == budget:
                share = score.shares.get(measure)
                if share is not None and share.total:
                    yield case.session, share


def cell(found: Iterable[tuple[str, Share]]) -> ScoreCell | None:
    """The figures of these shares. None where nothing was measured."""
    every = tuple(found)
    mean = macro((session, share.ratio) for session, share in every)
    if mean is None:
        return None
    kept, total = sum(share.kept for _, share in every), sum(share.total for _, share in every)
    return ScoreCell(micro=kept / total, macro=mean, cases=len(every))


def used(cases: Iterable[CaseResult], method: str, budget: str) -> tuple[float, float]:
    """Mean and largest share of the budget that this method's texts take; 0 where it wrote none."""
    ratios = [
        score.budget_ratio
        for case in cases
        for score in case.scores
        if score.method == method and score.budget == budget
    ]
    return (sum(ratios) / len(ratios), max(ratios)) if ratios else (0.0, 0.0)


def budgets_of(result: EvalResult, cases: Iterable[CaseResult]) -> list[str]:
    """The budgets that these cases were given, in the order of the options."""
    given = {score.budget for case in cases for score in case.scores}
    return [name for size in result.options.budgets if (name := label(size)) in given]


def differences(result: EvalResult, group: CaseGroup, budget: str) -> Mapping[tuple[str, Measure], Difference]:
    """The digest minus each baseline, in this group at this budget."""
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
