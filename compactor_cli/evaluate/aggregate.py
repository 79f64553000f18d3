"""From cases to rows: micro, macro with standard error, and differences, by dialect and in total."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from compactor_cli.evaluate.bootstrap import Difference, Mean, by_session, macro, paired
from compactor_cli.evaluate.cuts import Protocol
from compactor_cli.evaluate.measures import Measure, Share
from compactor_cli.evaluate.results import DIGEST, CaseResult, EvalResult, label

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
