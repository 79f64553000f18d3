"""The circuit breaker: within a run, with calls under way, and across runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from compactor_cli.llm.limits import Breaker
from compactor_cli.llm.model_calls import CircuitOpen, ModelFailure, Refused, ServerTrouble

SERVER = "api.example.com (key 0123abcd)"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def breaker(clock: Clock, file: Path | None = None) -> Breaker:
    return Breaker(file=file, cool_down_seconds=600, clock=clock)


def call(made: Breaker, failure: ModelFailure | None = None, server: str = SERVER) -> None:
    """One call that fails so, or succeeds."""

    async def run() -> None:
        async with made.admitted(server):
            if failure:
                raise failure

    try:
        asyncio.run(run())
    except ModelFailure as raised:
        if raised is not failure:
            raise


def is_admitted(made: Breaker, server: str = SERVER) -> bool:
    """Whether a call may go now; it succeeds then."""
    try:
        call(made, server=server)
    except CircuitOpen:
        return False
    return True


def opened(clock: Clock, file: Path | None = None) -> Breaker:
    made = breaker(clock, file)
    for _ in range(3):
        call(made, ServerTrouble("the server is down"))
    return made


def test_three_failures_in_a_row_open_it_and_it_states_the_minutes(clock: Clock) -> None:
    made = opened(clock)
    clock.now += 241
    advice = "another 6 minutes; --set reset-breaker=true"
    expected = rf"api.example.com .* failed 3 times in a row .*the server is down.* {advice}"
    with pytest.raises(CircuitOpen, match=expected):
        call(made)
    with pytest.raises(CircuitOpen):
        made.check(SERVER)


def test_a_success_between_begins_the_count_anew(clock: Clock) -> None:
    made = breaker(clock)
    for _ in range(5):
        call(made, ServerTrouble("no"))
        call(made, ServerTrouble("no"))
        call(made)
    made.check(SERVER)
    assert is_admitted(made)


def test_what_a_server_refuses_does_not_count(clock: Clock) -> None:
    made = breaker(clock)
    for _ in range(9):
        call(made, Refused("content policy"))
    made.check(SERVER)
    assert is_admitted(made)


def test_a_server_that_is_down_is_asked_three_times_however_many_calls_wait(clock: Clock) -> None:
    made, asked, refused = breaker(clock), 0, 0

    async def one() -> None:
        nonlocal asked, refused
        try:
            async with made.admitted(SERVER):
                asked += 1
                await asyncio.sleep(0)
                raise ServerTrouble("down")
        except CircuitOpen:
            refused += 1
        except ServerTrouble:
            pass

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(8)))

    asyncio.run(all_of_them())
    assert (asked, refused) == (3, 5)


def test_once_a_server_has_answered_all_calls_go_at_once(clock: Clock) -> None:
    made, now, most = breaker(clock), 0, 0

    async def one() -> None:
        nonlocal now, most
        async with made.admitted(SERVER):
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

    async def all_of_them(count: int) -> None:
        await asyncio.gather(*(one() for _ in range(count)))

    asyncio.run(all_of_them(3))
    assert most == 3
    asyncio.run(all_of_them(20))
    assert most == 20


def test_a_cancelled_call_leaves_its_place_to_the_next(clock: Clock) -> None:
    made, admitted = breaker(clock), 0

    async def run() -> None:
        nonlocal admitted

        async def for_ever() -> None:
            nonlocal admitted
            async with made.admitted(SERVER):
                admitted += 1
                await asyncio.sleep(3_600)

        tasks = [asyncio.create_task(for_ever()) for _ in range(5)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(10), made.admitted(SERVER):
            admitted += 1

    asyncio.run(run())
    assert admitted == 4


def test_after_the_cool_down_one_probe_goes_and_the_rest_waits_for_it(clock: Clock) -> None:
    made, order = opened(clock), list[str]()
    clock.now += 601

    async def one(name: str) -> None:
        async with made.admitted(SERVER):
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    async def both() -> None:
        await asyncio.gather(one("probe"), one("other"))

    asyncio.run(both())
    assert order == ["probe begins", "probe ends", "other begins", "other ends"]
    made.check(SERVER)


def test_a_probe_that_fails_keeps_it_open(clock: Clock) -> None:
    made = opened(clock)
    clock.now += 601
    call(made, ServerTrouble("still down"))
    clock.now += 599
    with pytest.raises(CircuitOpen, match="still down"):
        call(made)


def test_a_probe_that_was_killed_does_not_block_it_for_ever(clock: Clock, tmp_path: Path) -> None:
    opened(clock, tmp_path / "b.json")
    clock.now += 601
    killed = breaker(clock, tmp_path / "b.json").admitted(SERVER)
    asyncio.run(killed.__aenter__())  # type: ignore[arg-type]
    assert not is_admitted(breaker(clock, tmp_path / "b.json"))
    clock.now += 601
    call(breaker(clock, tmp_path / "b.json"))


def test_the_next_run_knows(clock: Clock, tmp_path: Path) -> None:
    file = tmp_path / "state" / "compact" / "breaker.json"
    opened(clock, file)
    assert not is_admitted(breaker(clock, file))
    assert file.stat().st_mode & 0o777 == 0o600
    clock.now += 601
    assert is_admitted(breaker(clock, file))
    assert is_admitted(breaker(clock, file))


def test_failures_of_single_runs_add_up(clock: Clock, tmp_path: Path) -> None:
    for _ in range(3):
        call(breaker(clock, tmp_path / "b.json"), ServerTrouble("no"))
    assert not is_admitted(breaker(clock, tmp_path / "b.json"))


def test_another_server_is_not_concerned(clock: Clock, tmp_path: Path) -> None:
    opened(clock, tmp_path / "b.json")
    call(breaker(clock, tmp_path / "b.json"), ServerTrouble("once"), "other.example.com")
    assert is_admitted(breaker(clock, tmp_path / "b.json"), "other.example.com")
    assert not is_admitted(breaker(clock, tmp_path / "b.json"))


@pytest.mark.parametrize("has_file", [True, False])
def test_a_reset_forgets_all_failures(clock: Clock, tmp_path: Path, has_file: bool) -> None:
    made = opened(clock, tmp_path / "b.json" if has_file else None)
    assert not is_admitted(made)
    made.reset()
    made.check(SERVER)
    assert is_admitted(made)
    if has_file:
        assert is_admitted(breaker(clock, tmp_path / "b.json"))


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"s": 5}', '{"s": {"opened": "x"}}', "\x00\xff", '{"s": {"z": 1}}']
)
def test_a_damaged_file_is_no_file(clock: Clock, tmp_path: Path, content: str) -> None:
    file = tmp_path / "b.json"
    file.write_bytes(content.replace('"s"', f'"{SERVER}"').encode("latin-1"))
    call(breaker(clock, file))
    opened(clock, file)
    assert not is_admitted(breaker(clock, file))


def test_without_a_place_for_its_file_it_counts_for_this_run(clock: Clock, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = opened(clock, tmp_path / "file" / "b.json")
    assert not is_admitted(made)


def test_a_clock_that_was_set_back_does_not_keep_it_open(clock: Clock, tmp_path: Path) -> None:
    opened(clock, tmp_path / "b.json")
    assert not is_admitted(breaker(clock, tmp_path / "b.json"))
    clock.now -= 100_000
    assert is_admitted(breaker(clock, tmp_path / "b.json"))
