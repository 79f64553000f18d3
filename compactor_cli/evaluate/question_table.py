"""The answered questions as text, as JSON, and the summaries as files that other programs can score."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from compactor_cli.evaluate.question_run import QuestionsResult, Reading
from compactor_cli.evaluate.results import DIGEST
from compactor_cli.evaluate.table_columns import NOTHING, columns, percent

_NOTE = """\
Cells: answered % (half for keys that are scattered), then how many summaries' readers were misled of how many questions
that watch for it. Every method has the same tokens, its frame paid from them. The score is a floor: keys are hit by
chance in long scraps, and a meaning in other words is missed. Read the misses, and the hits."""


def render_questions(result: QuestionsResult, with_misses: bool = False) -> str:
    """A table for each budget, by file of questions, type and dialect. Ends with a line break."""
    cuts = len({(text.file, text.cut) for text in result.written})
    blocks = [f"{_asked(result.readings)} questions on {cuts} cuts; {result.token_method}", _NOTE]
    for budget in dict.fromkeys(text.budget for text in result.written):
        blocks.append(_table(result, budget))
    if with_misses:
        blocks += _misses(result)
    blocks += [f"skipped: {name}: {why}" for name, why in result.skipped.items()]
    return "\n\n".join(blocks) + "\n"


def _asked(readings: Iterable[Reading]) -> int:
    return len({(reading.question.source, reading.question.id) for reading in readings})


def _table(result: QuestionsResult, budget: str) -> str:
    readings = [reading for reading in result.readings if reading.budget == budget]
    rows = [[f"at {budget}", "questions", *(cell for method in result.methods for cell in (method, "misled"))]]
    for name, group in _groups(readings):
        rows.append([name, str(_asked(group)), *_cells(result.methods, group)])
    rows.append(["tokens, mean", "", *_tokens(result, budget)])
    return columns(rows)


def _groups(readings: Sequence[Reading]) -> Iterator[tuple[str, list[Reading]]]:
    """All, then each file of questions, each dialect and each type."""
    yield "all", list(readings)
    for about, value_of in (
        ("", lambda reading: Path(reading.question.source).stem),
        ("on ", lambda reading: reading.dialect),
        ("type ", lambda reading: reading.question.type),
    ):
        for value in sorted({value_of(reading) for reading in readings}):
            yield f"{about}{value}", [reading for reading in readings if value_of(reading) == value]


def _cells(methods: Sequence[str], group: Sequence[Reading]) -> Iterator[str]:
    for method in methods:
        read = [reading for reading in group if reading.method == method]
        watched = [reading for reading in read if reading.question.wrong]
        yield percent(_mean(reading.score for reading in read)) if read else NOTHING
        yield f"{sum(reading.misled for reading in watched)}/{len(watched)}"


def _tokens(result: QuestionsResult, budget: str) -> Iterator[str]:
    for method in result.methods:
        found = [text.tokens for text in result.written if (text.method, text.budget) == (method, budget)]
        yield f"{_mean(found):,.0f}"
        yield ""


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every) if every else 0.0


def _misses(result: QuestionsResult) -> Iterator[str]:
    """What the digest does not answer, or misleads about."""
    for reading in result.readings:
        if reading.method == DIGEST and (reading.score < 1 or reading.misled):
            asked = reading.question
            mark = " MISLEADS" if reading.misled else ""
            head = f"{reading.score:g}{mark} at {reading.budget}, {asked.id} ({asked.type})"
            yield f"{head}: {asked.question}\n  -> {asked.answer}"


def questions_json(result: QuestionsResult) -> dict[str, Any]:
    """Plain values for a JSON encoder: every reading, and every table's figures."""
    budgets = dict.fromkeys(text.budget for text in result.written)
    return {
        "methods": list(result.methods),
        "tokens": result.token_method,
        "figures": [figure for budget in budgets for figure in _figures(result, budget)],
        "readings": [_reading(reading) for reading in result.readings],
        "summaries": [
            {key: value for key, value in dataclasses.asdict(text).items() if key != "text"} for text in result.written
        ],
        "skipped": dict(result.skipped),
    }


def _figures(result: QuestionsResult, budget: str) -> Iterator[dict[str, Any]]:
    readings = [reading for reading in result.readings if reading.budget == budget]
    for name, group in _groups(readings):
        for method in result.methods:
            read = [reading for reading in group if reading.method == method]
            yield {
                "budget": budget,
                "group": name,
                "method": method,
                "questions": len(read),
                "answered": round(_mean(reading.score for reading in read), 6),
                "misled": sum(reading.misled for reading in read),
                "watched": sum(bool(reading.question.wrong) for reading in read),
            }


def _reading(reading: Reading) -> dict[str, Any]:
    return {
        "id": reading.question.id,
        "type": reading.question.type,
        "file": reading.question.file,
        "cut": reading.question.cut,
        "dialect": reading.dialect,
        "method": reading.method,
        "budget": reading.budget,
        "score": reading.score,
        "misled": reading.misled,
    }


def write_summaries(result: QuestionsResult, folder: str) -> None:
    """A JSONL file ``METHOD@BUDGET.jsonl`` for each method and budget: file, cut and text, a summary a line.

    Raises OSError as the file system does.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    for method, budget in dict.fromkeys((text.method, text.budget) for text in result.written):
        rows = [
            {"file": text.file, "cut": text.cut, "text": text.text}
            for text in result.written
            if (text.method, text.budget) == (method, budget)
        ]
        lines = b"".join(orjson.dumps(row) + b"\n" for row in rows)
        (Path(folder) / f"{_file_name(method)}@{budget}.jsonl").write_bytes(lines)


def _file_name(method: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in method)
