"""Workers: order, death, errors, and an end that leaves nothing running."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from compactor_cli.batch.workers import Workers


def _square(number: int) -> int:
    time.sleep(0.002 * (number % 3))
    return number * number


def test_results_come_in_the_order_of_the_tasks() -> None:
    results = list(Workers(_square, 3, lambda task: -1).results(range(40)))
    assert results == [number * number for number in range(40)]


def test_no_tasks_start_no_process() -> None:
    workers = Workers(_square, 2, lambda task: -1)
    assert list(workers.results([])) == []
    assert workers._team == []


def test_tasks_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def endless() -> object:
        for number in range(10**9):
            taken.append(number)
            yield number

    results = Workers(_square, 2, lambda task: -1).results(endless())  # type: ignore[arg-type]
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    results.close()  # type: ignore[attr-defined]
    assert len(taken) < 30


def test_a_worker_that_dies_costs_its_task_alone() -> None:
    def dies_at_five(number: int) -> int:
        if number == 5:
            os._exit(9)
        return number

    results = list(Workers(dies_at_five, 2, lambda task: -task).results(range(12)))
    assert results == [0, 1, 2, 3, 4, -5, 6, 7, 8, 9, 10, 11]


def test_an_error_in_a_worker_is_raised_here() -> None:
    def fails(number: int) -> int:
        raise LookupError(f"at {number}")

    with pytest.raises(LookupError, match="at 0"):
        list(Workers(fails, 2, lambda task: -1).results(range(3)))


def test_leaving_early_lets_workers_clean_up(tmp_path: Path) -> None:
    def slow(number: int) -> int:
        file = tmp_path / f"{number}.tmp"
        try:  # from before the file is there: the end may come between any two lines
            file.touch()
            time.sleep(0 if number == 0 else 60)
        finally:
            file.unlink(missing_ok=True)
        return number

    results = Workers(slow, 2, lambda task: -1).results(range(4))
    assert next(iter(results)) == 0
    started = time.monotonic()
    while not (tmp_path / "1.tmp").exists() and time.monotonic() - started < 10:
        time.sleep(0.01)
    results.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []
