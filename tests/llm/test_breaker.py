"""The circuit breaker, within a run and across runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from compactor_cli.llm.breaker import Breaker
from compactor_cli.llm.failures import CircuitOpen


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def breaker(clock: Clock, file: Path | None = None, name: str = "openai/a") -> Breaker:
    return Breaker(name, file=file, cool_down_seconds=600, clock=clock)


def opened(clock: Clock, file: Path | None = None) -> Breaker:
    made = breaker(clock, file)
    for _ in range(3):
        made.admit()
        made.failed("the server is down")
    return made


def test_three_failures_in_a_row_open_it(clock: Clock) -> None:
    made = opened(clock)
    with pytest.raises(CircuitOpen, match=r"3 failures in a row.*openai/a.*the server is down"):
        made.admit()
    with pytest.raises(CircuitOpen):
        made.check()


def test_a_success_between_begins_the_count_anew(clock: Clock) -> None:
    made = breaker(clock)
    for _ in range(5):
        made.failed("no")
        made.failed("no")
        made.succeeded()
    made.admit()
    made.check()


def test_after_the_cool_down_one_probe_goes_and_the_rest_waits_for_it(clock: Clock) -> None:
    made = opened(clock)
    clock.now += 601
    made.admit()
    made.check()
    with pytest.raises(CircuitOpen):
        made.admit()
    made.succeeded()
    made.admit()


def test_a_probe_that_fails_keeps_it_open(clock: Clock) -> None:
    made = opened(clock)
    clock.now += 601
    made.admit()
    made.failed("still down")
    clock.now += 599
    with pytest.raises(CircuitOpen, match="still down"):
        made.admit()


def test_a_probe_that_was_killed_does_not_block_it_for_ever(clock: Clock) -> None:
    made = opened(clock)
    clock.now += 601
    made.admit()
    clock.now += 601
    made.admit()


def test_the_next_run_knows(clock: Clock, tmp_path: Path) -> None:
    file = tmp_path / "state" / "compact" / "breaker.json"
    opened(clock, file)
    with pytest.raises(CircuitOpen):
        breaker(clock, file).admit()
    assert file.stat().st_mode & 0o777 == 0o600
    clock.now += 601
    breaker(clock, file).admit()
    breaker(clock, file).succeeded()
    breaker(clock, file).admit()


def test_failures_of_single_runs_add_up(clock: Clock, tmp_path: Path) -> None:
    for _ in range(3):
        run = breaker(clock, tmp_path / "b.json")
        run.admit()
        run.failed("no")
    with pytest.raises(CircuitOpen):
        breaker(clock, tmp_path / "b.json").admit()


def test_another_model_is_not_concerned(clock: Clock, tmp_path: Path) -> None:
    opened(clock, tmp_path / "b.json")
    other = breaker(clock, tmp_path / "b.json", "openai/b")
    other.admit()
    other.failed("once")
    with pytest.raises(CircuitOpen):
        breaker(clock, tmp_path / "b.json").admit()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"openai/a": 5}', '{"openai/a": {"opened": "x"}}', "\x00\xff", '{"openai/a": {"z": 1}}']
)
def test_a_damaged_file_is_no_file(clock: Clock, tmp_path: Path, content: str) -> None:
    file = tmp_path / "b.json"
    file.write_bytes(content.encode("latin-1"))
    made = breaker(clock, file)
    made.admit()
    for _ in range(3):
        made.failed("no")
    with pytest.raises(CircuitOpen):
        breaker(clock, file).admit()


def test_without_a_place_for_its_file_it_counts_for_this_run(clock: Clock, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = opened(clock, tmp_path / "file" / "b.json")
    with pytest.raises(CircuitOpen):
        made.admit()


def test_a_clock_that_was_set_back_does_not_keep_it_open(clock: Clock, tmp_path: Path) -> None:
    opened(clock, tmp_path / "b.json")
    clock.now -= 100_000
    breaker(clock, tmp_path / "b.json").admit()
