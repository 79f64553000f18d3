"""Workers: order, death, errors, and an end that leaves nothing running."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactor_cli.run.workers import Workers


def _square(number: int) -> int:
    time.sleep(0.002 * (number % 3))
    return number * number


def test_results_come_in_the_order_of_the_items() -> None:
    results = list(Workers(_square, 3, lambda item: -1).results([(n, n + 1) for n in range(0, 40, 2)]))
    assert results == [number * number for number in range(40)]


def test_no_tasks_start_no_process() -> None:
    workers = Workers(_square, 2, lambda item: -1)
    assert list(workers.results([])) == []
    assert workers._team == []


def test_tasks_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def endless() -> Iterator[tuple[int, ...]]:
        for number in range(10**9):
            taken.append(number)
            yield (number,)

    results = Workers(_square, 2, lambda item: -1).results(endless())
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    results.close()
    assert len(taken) < 30


def test_a_worker_that_dies_costs_the_item_it_was_at() -> None:
    def dies_at_five(number: int) -> int:
        if number == 5:
            os._exit(9)
        return number

    tasks = [range(start, start + 4) for start in range(0, 12, 4)]
    results = list(Workers(dies_at_five, 2, lambda item: -item).results(tasks))
    assert results == [0, 1, 2, 3, 4, -5, 6, 7, 8, 9, 10, 11]


def test_every_worker_may_die() -> None:
    def dies(number: int) -> int:
        os._exit(9)

    assert list(Workers(dies, 2, lambda item: -item).results([(1, 2, 3), (4,)])) == [-1, -2, -3, -4]


def test_an_error_in_a_worker_is_raised_in_its_items_turn() -> None:
    def fails_behind_a_slow_one(number: int) -> int:
        if number:
            raise LookupError(f"at {number}")
        time.sleep(0.05)
        return number

    results = Workers(fails_behind_a_slow_one, 2, lambda item: -1).results([(0,), (1,), (2,)])
    assert next(results) == 0
    with pytest.raises(LookupError, match="at 1"):
        next(results)


def test_leaving_early_lets_workers_clean_up_and_keeps_what_was_done(tmp_path: Path) -> None:
    def slow_from_three(number: int) -> int:
        file = tmp_path / f"{number}.tmp"
        try:  # from before the file is there: the end may come between any two lines
            file.touch()
            time.sleep(60 if number >= 3 else 0)
        finally:
            file.unlink(missing_ok=True)
        return number

    workers = Workers(slow_from_three, 1, lambda item: -1)
    results = workers.results([(0, 1, 2, 3, 4)])
    assert next(results) == 0
    started = time.monotonic()
    while not (tmp_path / "3.tmp").exists() and time.monotonic() - started < 60:
        time.sleep(0.01)
    results.close()
    assert list(tmp_path.iterdir()) == []
    assert workers.late == (1, 2)
