"""The result as text: fixed-width tables of every method, differences, dialects and checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compactor_cli.evaluate.aggregate import TOTAL, CaseGroup, budgets_of, cell, differences, groups_of, shares, used
from compactor_cli.evaluate.checks import drift_table, gate_table, retention_table
from compactor_cli.evaluate.measures import Measure
from compactor_cli.evaluate.results import DIGEST, EvalResult
from compactor_cli.evaluate.table_columns import change, columns, figure

RECALL = (
    Measure.FUR,
    Measure.FUR_ANY,
    Measure.PAIRS,
    Measure.PAIRS_STRICT,
    Measure.PHRASES,
    Measure.USER,
    Measure.RETRIEVAL,
)
ARTEFACTS = (
    Measure.EDITED,
    Measure.READ,
    Measure.COMMANDS,
    Measure.TODOS,
    Measure.DECISIONS,
    Measure.ERRORS,
    Measure.CHAT,
)
_COMPARED = (Measure.FUR, Measure.PAIRS, Measure.PHRASES, Measure.USER, Measure.RETRIEVAL, Measure.CHAT)
_BY_DIALECT = (
    Measure.FUR,
    Measure.PAIRS,
    Measure.PHRASES,
    Measure.USER,
    Measure.RETRIEVAL,
    Measure.EDITED,
    Measure.READ,
    Measure.CHAT,
)
_NOTE = """\
Cells: micro %/macro % ± standard error over sessions; - nothing to measure. Every method has the same budget in tokens,
its frame (preface and marker) paid from it; used: the mean share of the rest that was taken. The measures are read
together: bare-list is a probe that wins FUR and carries no information."""
_BOOTSTRAP = "paired bootstrap over sessions, points of the macro mean, 95 % interval; * p < 0.05, ** p < 0.01"


def render_table(result: EvalResult) -> str:
    """The whole report. Ends with a line break."""
    blocks = [_head(result), _NOTE]
    for group in groups_of(result.cases):
        if group.dialect == TOTAL:
            blocks += _group_blocks(result, group)
    blocks += [_dialects(result), drift_table(result), gate_table(result), retention_table(result)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _head(result: EvalResult) -> str:
    files = sum(bool(file.cases or file.retention) for file in result.files)
    skipped = len(result.files) - files
    return f"{len(result.cases)} cuts and question sets of {files} files, {skipped} skipped; {result.token_method}"


def _group_blocks(result: EvalResult, group: CaseGroup) -> Iterator[str]:
    yield f"== {group.title}"
    for measures in (RECALL, ARTEFACTS):
        measured = [measure for measure in measures if _is_measured(group, measure)]
        if measured:
            yield _methods(result, group, measured)
    if len(result.methods) > 1:
        yield _comparison(result, group)


def _is_measured(group: CaseGroup, measure: Measure) -> bool:
    return any(score.shares[measure].total for case in group.cases for score in case.scores)


def _methods(result: EvalResult, group: CaseGroup, measures: Sequence[Measure]) -> str:
    rows = [["method", "at", *measures, "used"]]
    for budget in budgets_of(result, group.cases):
        for method in result.methods:
            cells = _cells(group, method, budget, measures)
            rows.append([method, budget, *cells, f"{used(group.cases, method, budget)[0]:.2f}"])
    return columns(rows)


def _cells(group: CaseGroup, method: str, budget: str, measures: Sequence[Measure]) -> list[str]:
    return [figure(cell(shares(group.cases, method, budget, measure))) for measure in measures]


def _comparison(result: EvalResult, group: CaseGroup) -> str:
    measures = [measure for measure in _COMPARED if _is_measured(group, measure)]
    rows = [["digest minus", "at", *measures]]
    for budget in _shares_only(budgets_of(result, group.cases)):
        found = differences(result, group, budget)
        for method in result.methods[1:]:
            rows.append([method, budget, *(change(found.get((method, measure))) for measure in measures)])
    return f"{_BOOTSTRAP}\n\n{columns(rows)}"


def _shares_only(budgets: Sequence[str]) -> Sequence[str]:
    """The budgets that are shares of the middle, where there are any: the long tables keep to them."""
    return [budget for budget in budgets if budget.endswith("%")] or budgets


def _dialects(result: EvalResult) -> str:
    groups = [group for group in groups_of(result.cases) if group.dialect != TOTAL]
    if len(groups) < 2:
        return ""
    rows = [["digest by dialect", "cuts", "at", *_BY_DIALECT]]
    for group in groups:
        for budget in _shares_only(budgets_of(result, group.cases)):
            name = f"{group.dialect} ({group.protocol})"
            rows.append([name, str(len(group.cases)), budget, *_cells(group, DIGEST, budget, _BY_DIALECT)])
    return columns(rows)
