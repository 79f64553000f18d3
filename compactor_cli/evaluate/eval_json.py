"""The result as JSON: every case, every aggregate, every difference, and what was asked."""

from __future__ import annotations

import dataclasses
from typing import Any

from compactor_cli.evaluate.aggregate import CaseGroup, budgets_of, cell, differences, groups_of, shares, used
from compactor_cli.evaluate.bootstrap import Difference
from compactor_cli.evaluate.measures import Measure
from compactor_cli.evaluate.results import CaseResult, EvalOptions, EvalResult, label

_DIGITS = 6


def to_json(result: EvalResult) -> dict[str, Any]:
    """Plain values for a JSON encoder. The same result gives the same document."""
    return {
        "options": _options(result.options),
        "methods": list(result.methods),
        "tokens": result.token_method,
        "gates_hold": result.gates_hold,
        "groups": [_group(result, group) for group in groups_of(result.cases)],
        "cases": [_case(case) for case in result.cases],
        "retention": [dataclasses.asdict(item) for item in result.retention],
        "skipped": {file.path: file.skipped for file in result.files if file.skipped},
        "notes": {file.path: list(file.notes) for file in result.files if file.notes},
    }


def _options(options: EvalOptions) -> dict[str, Any]:
    # How many processes did the work is no part of the result.
    values = {key: value for key, value in dataclasses.asdict(options).items() if key != "jobs"}
    return {**values, "budgets": [label(size) for size in options.budgets], "drift_budget": label(options.drift_budget)}


def _group(result: EvalResult, group: CaseGroup) -> dict[str, Any]:
    return {
        "protocol": group.protocol,
        "dialect": group.dialect,
        "cuts": len(group.cases),
        "sessions": len({case.session for case in group.cases}),
        "middle_tokens": sum(case.middle_tokens for case in group.cases),
        "figures": [
            {"method": method, "budget": budget, **_figures(group, method, budget)}
            for budget in budgets_of(result, group.cases)
            for method in result.methods
        ],
        "digest_minus": [
            {"method": method, "budget": budget, "measure": measure.value, **_difference(difference)}
            for budget in budgets_of(result, group.cases)
            for (method, measure), difference in differences(result, group, budget).items()
        ],
    }


def _figures(group: CaseGroup, method: str, budget: str) -> dict[str, Any]:
    mean, highest = used(group.cases, method, budget)
    measured = {measure.value: _cell(group, method, budget, measure) for measure in Measure}
    return {"used": _round(mean), "most_used": _round(highest), "measures": {k: v for k, v in measured.items() if v}}


def _cell(group: CaseGroup, method: str, budget: str, measure: Measure) -> dict[str, Any]:
    found = cell(shares(group.cases, method, budget, measure))
    if found is None:
        return {}
    return {
        "micro": _round(found.micro),
        "macro": _round(found.macro.value),
        "error": _round(found.macro.error),
        "cuts": found.cases,
        "sessions": found.macro.sessions,
    }


def _difference(difference: Difference) -> dict[str, Any]:
    values = dataclasses.asdict(difference)
    return {key: _round(value) if isinstance(value, float) else value for key, value in values.items()}


def _case(case: CaseResult) -> dict[str, Any]:
    return {
        "name": case.name,
        "dialect": case.dialect,
        "protocol": case.protocol,
        "middle_tokens": case.middle_tokens,
        "scores": [
            {
                "method": score.method,
                "budget": score.budget,
                "used": _round(score.budget_ratio),
                "kept_of": {measure.value: [s.kept, s.total] for measure, s in score.shares.items() if s.total},
            }
            for score in case.scores
        ],
        "gates": {budget: dataclasses.asdict(gates) for budget, gates in case.gates.items()},
        "repeat": dataclasses.asdict(case.repeat) if case.repeat else None,
        "drift": [
            {
                "rounds": point.rounds,
                "carry": point.carry.value,
                "kept_of": {measure.value: [s.kept, s.total] for measure, s in point.shares.items() if s.total},
            }
            for point in case.drift
        ],
    }


def _round(value: float) -> float:
    return round(value, _DIGITS)
