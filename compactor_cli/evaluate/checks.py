"""Tables of what must hold: gates, drift, and the question sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compactor_cli.evaluate.aggregate import cell
from compactor_cli.evaluate.cuts import Protocol
from compactor_cli.evaluate.drift import Carry
from compactor_cli.evaluate.gates import Gates
from compactor_cli.evaluate.measures import Measure
from compactor_cli.evaluate.results import EvalResult, label
from compactor_cli.evaluate.table_columns import NOTHING, columns, figure, percent

_DRIFT_MEASURES = (Measure.FUR, Measure.PAIRS, Measure.PHRASES, Measure.USER, Measure.EDITED)


def gate_table(result: EvalResult) -> str:
    """How many digests broke a gate, and the worst of them."""
    gates = [gate for case in result.cases for gate in case.gates.values()]
    if not gates:
        return ""
    rows = [["gate", "digests", "broken", "worst"]]
    rows.append(_gate("budget", (gate.budget_ratio > 1 for gate in gates), percent(_most_used(gates)) + " %"))
    rows.append(_gate("invented atoms", (bool(gate.invented) for gate in gates), _longest(g.invented for g in gates)))
    rows.append(_gate("structure", (bool(gate.malformed) for gate in gates), _longest(g.malformed for g in gates)))
    repeats = [case.repeat for case in result.cases if case.repeat]
    if repeats:
        rows.append(_gate("same text again", (not item.is_same for item in repeats), ""))
        mean = percent(sum(item.kept_ratio for item in repeats) / len(repeats))
        rows.append([f"atoms kept by an update with nothing new: {mean} %", str(len(repeats)), NOTHING, NOTHING])
    return columns(rows)


def _gate(name: str, broken: Iterable[bool], worst: str) -> list[str]:
    every = list(broken)
    return [name, str(len(every)), str(sum(every)), worst]


def _most_used(gates: Sequence[Gates]) -> float:
    return max(gate.budget_ratio for gate in gates)


def _longest(lists: Iterable[Sequence[str]]) -> str:
    return str(max(len(found) for found in lists))


def drift_table(result: EvalResult) -> str:
    """What is left after each number of updates, with the state carried and with the text alone."""
    rows = [["drift of the digest", "rounds", "cuts", *_DRIFT_MEASURES]]
    for protocol in Protocol:
        for carry in Carry:
            for rounds in result.options.rounds:
                rows += _drift_row(result, protocol, carry, rounds)
    at = f"at {label(result.options.drift_budget)} of the middle"
    return f"{at}\n\n{columns(rows)}" if len(rows) > 1 else ""


def _drift_row(result: EvalResult, protocol: Protocol, carry: Carry, rounds: int) -> list[list[str]]:
    points = [
        (case.session, point.shares)
        for case in result.cases
        for point in case.drift
        if case.protocol == protocol and point.carry is carry and point.rounds == rounds
    ]
    if not points:
        return []
    cells = [
        figure(cell((session, shares[measure]) for session, shares in points if shares[measure].total))
        for measure in _DRIFT_MEASURES
    ]
    return [[f"{protocol} cuts, {carry} carried", str(rounds), str(len(points)), *cells]]


def retention_table(result: EvalResult) -> str:
    """How many questions still find their answer, and how many bytes were kept for it."""
    rows = [["question sets", "at", "kept", "of", "bytes kept"]]
    for size in result.options.budgets:
        for method in result.methods:
            items = [item for item in result.retention if item.method == method and item.budget == label(size)]
            if items:
                share = sum(item.bytes_ratio for item in items) / len(items)
                kept = str(sum(item.is_kept for item in items))
                rows.append([method, label(size), kept, str(len(items)), f"{percent(share)} %"])
    return columns(rows) if len(rows) > 1 else ""
