"""Fits the constants of `compactor_cli.digest.salience` on real sessions.

    python benchmarks/fit_salience.py ../shared/corpus-train --start ../shared/data/salience_weights.json [--write]

Every session is cut as `compactor eval` cuts it; an atom of the middle that head and tail do not show is an
example, positive if the agent uses it before anybody shows it again. Two thirds of the sessions fit, one third
(by the CRC of the file's name) is held out; the fit is drawn to the constants in use by an L2 penalty on the
difference, since those come from more transcripts than are here. Prints AUC and average precision of both, by
session. Plain Python: L-BFGS (Nocedal 1980) with backtracking.
"""

from __future__ import annotations

import argparse
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, log, sqrt
from operator import mul
from pathlib import Path

import orjson

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.salience import build, features
from compactor_cli.evaluate.cuts import CutRule, EvalCase, file_records, find_cases
from compactor_cli.evaluate.measures import forget, needs_of
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.plan.tokens import count_message, counter_for

MODEL = "atom_salience"
WEIGHTS = Path(__file__).parents[1] / "compactor_cli/digest/weights.json"
PENALTY = 100.0
NEGATIVES_RATIO = 0.15
HELD_OUT = 3
LEAST_POSITIVES = 2
STEPS = 100
MEMORY = 8
MOST_LOGIT = 30.0

Vector = list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An atom of a case. ``weight``: how many examples it stands for, where not all are kept."""

    features: dict[str, float]
    is_used: bool
    weight: float


def cases(folder: Path) -> Iterator[tuple[bool, EvalCase]]:
    """The cases below a folder, and whether they are held out."""
    counter = counter_for("auto")
    for path in sorted(folder.rglob("*.jsonl*")):
        held_out = zlib.crc32(path.name.partition(".")[0].encode()) % HELD_OUT == HELD_OUT - 1
        for transcript in open_transcripts(file_records(str(path))):
            for case in find_cases(transcript, path.name, CutRule(), partial(count_message, counter)):
                yield held_out, case
        forget()


def examples(case: EvalCase) -> list[Example]:
    """All examples of a case; none where too few atoms are used again to say anything."""
    used = {use.atom for use in needs_of(case).uses}
    if len(used) < LEAST_POSITIVES:
        return []
    shown = {atom for event in (*case.head_events, *case.tail_events) for atom in atom_texts(event.text)}
    table = build(case.middle_events)
    found = (atom for atom in table.atoms if atom not in shown)
    return [Example(features=features(table, atom), is_used=atom in used, weight=1.0) for atom in found]


def thinned(found: Sequence[Example], chance: random.Random) -> list[Example]:
    """Every positive and some of the negatives, weighted as all of them."""
    kept = (item for item in found if item.is_used or chance.random() < NEGATIVES_RATIO)
    return [
        item if item.is_used else Example(features=item.features, is_used=False, weight=1.0 / NEGATIVES_RATIO)
        for item in kept
    ]


def logit(constants: dict[str, float], item: Example) -> float:
    """The log-odds of an example."""
    return constants["intercept"] + sum(constants.get(name, 0.0) * value for name, value in item.features.items())


def ranking(constants: dict[str, float], found: Sequence[Example]) -> tuple[float, float]:
    """AUC and average precision of one case."""
    ranked = sorted(found, key=lambda item: -logit(constants, item))
    positives = sum(item.is_used for item in ranked)
    seen, pairs, precision = 0, 0, 0.0
    for place, item in enumerate(ranked, 1):
        if item.is_used:
            seen += 1
            precision += seen / place
            pairs += len(ranked) - positives - (place - seen)
    return pairs / max(1, positives * (len(ranked) - positives)), precision / positives


def fit(found: Sequence[Example], start: dict[str, float]) -> dict[str, float]:
    """Constants that explain the examples, near those to start from."""
    names = sorted({name for item in found for name in item.features})
    rows = [[float(item.features.get(name, 0.0)) for name in names] for item in found]
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    spreads = [
        max(1e-6, sqrt(sum((value - mean) ** 2 for value in column) / len(rows)))
        for column, mean in zip(zip(*rows, strict=True), means, strict=True)
    ]
    scaled = [[(v - m) / s for v, m, s in zip(row, means, spreads, strict=True)] + [1.0] for row in rows]
    moved = minimised(objective(scaled, found, [logit(start, item) for item in found]), len(names) + 1)
    steps = [step / spread for step, spread in zip(moved, spreads, strict=False)]
    shift = moved[-1] - sum(map(mul, steps, means))
    fitted = {name: round(start.get(name, 0.0) + step, 4) for name, step in zip(names, steps, strict=True)}
    # Features that no example has keep their constants.
    return {**start, "intercept": round(start["intercept"] + shift, 4), **fitted}


def objective(
    rows: Sequence[Vector], found: Sequence[Example], offsets: Sequence[float]
) -> Callable[[Vector], tuple[float, Vector]]:
    """Penalised log-loss and its gradient, of steps away from the constants after ``offsets``."""
    columns = list(zip(*rows, strict=True))

    def at(steps: Vector) -> tuple[float, Vector]:
        loss, errors = 0.0, []
        for row, item, offset in zip(rows, found, offsets, strict=True):
            p = 1 / (1 + exp(-min(MOST_LOGIT, max(-MOST_LOGIT, offset + sum(map(mul, steps, row))))))
            loss -= item.weight * log(p if item.is_used else 1 - p)
            errors.append(item.weight * (p - item.is_used))
        slope = [sum(map(mul, errors, column)) for column in columns]
        # The intercept is free.
        drawn = [*steps[:-1], 0.0]
        return loss + PENALTY / 2 * sum(map(mul, drawn, drawn)), [
            value + PENALTY * step for value, step in zip(slope, drawn, strict=True)
        ]

    return at


def minimised(at: Callable[[Vector], tuple[float, Vector]], size: int) -> Vector:
    """Where a smooth convex function is least."""
    point = [0.0] * size
    value, slope = at(point)
    history: list[tuple[Vector, Vector]] = []
    for _ in range(STEPS):
        way = direction(slope, history)
        length, descent = 1.0, sum(map(mul, slope, way))
        while True:
            there = [a - length * b for a, b in zip(point, way, strict=True)]
            new_value, new_slope = at(there)
            if new_value <= value - 1e-4 * length * descent or length < 1e-4:
                break
            length /= 2
        pair = difference(there, point), difference(new_slope, slope)
        if sum(map(mul, *pair)) > 1e-10:
            history = [*history, pair][-MEMORY:]
        is_done = abs(value - new_value) < 1e-5 * abs(value)
        point, value, slope = there, new_value, new_slope
        if is_done:
            break
    return point


def difference(one: Vector, other: Vector) -> Vector:
    """One minus the other."""
    return [a - b for a, b in zip(one, other, strict=True)]


def direction(slope: Vector, history: Sequence[tuple[Vector, Vector]]) -> Vector:
    """The two-loop recursion of L-BFGS."""
    way, factors = list(slope), []
    for step, change in reversed(history):
        factor = sum(map(mul, step, way)) / sum(map(mul, change, step))
        factors.append(factor)
        way = [a - factor * b for a, b in zip(way, change, strict=True)]
    scale = 1 / (1 + sqrt(sum(map(mul, slope, slope))))
    if history:
        step, change = history[-1]
        scale = sum(map(mul, step, change)) / sum(map(mul, change, change))
    way = [scale * a for a in way]
    for (step, change), factor in zip(history, reversed(factors), strict=True):
        back = sum(map(mul, change, way)) / sum(map(mul, change, step))
        way = [a + (factor - back) * b for a, b in zip(way, step, strict=True)]
    return way


def report(title: str, constants: dict[str, float], held: dict[bool, list[list[Example]]]) -> None:
    """One line for the sessions fitted on, one for those held out."""
    for held_out, name in ((False, "fitted on"), (True, "held out")):
        scores = [ranking(constants, found) for found in held[held_out]]
        auc, precision = (sum(column) / len(scores) for column in zip(*scores, strict=True))
        print(f"{title:8} {name:10} {len(scores):4} cases  AUC {auc:.4f}  average precision {precision:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--start", type=Path, default=WEIGHTS, help="the constants to start from and to stay near")
    parser.add_argument("--write", action="store_true", help="put the fitted constants into the package")
    options = parser.parse_args()
    held: dict[bool, list[list[Example]]] = {False: [], True: []}
    for held_out, case in cases(options.folder):
        if found := examples(case):
            held[held_out].append(found)
    chance = random.Random(1)
    start = orjson.loads(options.start.read_bytes())[MODEL]
    fitted = fit([item for found in held[False] for item in thinned(found, chance)], start)
    report("before", start, held)
    report("after", fitted, held)
    if options.write:
        data = orjson.loads(WEIGHTS.read_bytes()) | {MODEL: fitted}
        WEIGHTS.write_bytes(orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
