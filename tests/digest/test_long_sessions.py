"""Long sessions: a session of twice the length takes twice the work, counted in calls of functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable

import pytest
from conversation import answer, call, conversation, digest, ran, says, user

from compactor_cli.digest import causes, failures, reruns
from compactor_cli.digest.checks import may_look_at
from compactor_cli.digest.files import FileOperation
from compactor_cli.digest.runs import Run
from compactor_cli.model.transcript import Message

Shape = Callable[[int], Iterable[Message | tuple[Message, ...]]]
WORK = ("parser", "reader", "planner", "writer", "router", "loader", "cache")


def gone_on(n: int) -> Iterable[Message | tuple[Message, ...]]:
    """A user who says nothing but "continue"."""
    for i in range(n):
        yield user("continue")
        yield ran(f"make step{i}", f"step{i} ok")
        yield says(f"Step {i} of the {WORK[i % 7]} is finished.")


def one_file(n: int) -> Iterable[Message | tuple[Message, ...]]:
    yield user("Give every function of the file a name that says what it does")
    for i in range(n):
        yield call("Edit", f"e{i}", file_path="/w/main.py", old_string=f"x_{i} = {i}", new_string=f"value_{i} = {i}")
        yield answer(f"The file /w/main.py has been updated.\n{i}\tvalue_{i} = {i}", f"e{i}")


def to_dos(n: int) -> Iterable[Message | tuple[Message, ...]]:
    yield user("Write all the parts")
    for i in range(n):
        todos = [{"content": f"Write part {at}", "status": "completed"} for at in range(max(0, i - 9), i)]
        yield call("TodoWrite", f"t{i}", todos=[*todos, {"content": f"Write part {i}", "status": "in_progress"}])
        yield answer("Todos have been modified successfully.", f"t{i}")


def tasks(n: int) -> Iterable[Message | tuple[Message, ...]]:
    yield user("Write all the parts")
    for i in range(n):
        yield call("TaskCreate", f"c{i}", subject=f"Write part {i}")
        yield answer(f"Task #{i + 1} created successfully: Write part {i}", f"c{i}")
        yield call("TaskUpdate", f"u{i}", taskId=str(i + 1), status="in_progress" if i % 50 == 49 else "completed")
        yield answer(f"Updated task #{i + 1} status", f"u{i}")


def commits(n: int) -> Iterable[Message | tuple[Message, ...]]:
    yield user("Commit every step")
    for i in range(n):
        yield ran(
            f"git commit -am 'Change the {WORK[i % 7]} {i}'", f"[main {i + 4096:07x}] Change the {WORK[i % 7]} {i}"
        )


def questions(n: int) -> Iterable[Message | tuple[Message, ...]]:
    for i in range(n):
        yield user(f"Which {WORK[i % 7]} should module_{i} use, and why?")
        yield says(f"I'd use the {WORK[(i + 1) % 7]} of module_{i}, because it keeps what was read. Shall I?")


def at_once(n: int) -> Iterable[Message | tuple[Message, ...]]:
    yield user("Read all of it at once")
    yield from (call("Read", f"r{i}", file_path=f"/w/src/{WORK[i % 7]}_{i}.py") for i in range(n))
    yield from (answer(f"def {WORK[i % 7]}_{i}():\n    return {i}", f"r{i}") for i in range(n))


def failing(n: int) -> Iterable[Message | tuple[Message, ...]]:
    yield user("Make every test pass")
    for i in range(n):
        yield call("Edit", f"e{i}", file_path=f"/w/src/part_{i}.py", old_string=f"x = {i}", new_string=f"x = {i + 1}")
        yield answer(f"The file /w/src/part_{i}.py has been updated.", f"e{i}")
        yield ran(f"pytest tests/test_part_{i}.py", f"E   AssertionError: part_{i} is {i}\n1 failed", is_error=True)


def findings(n: int) -> Iterable[Message | tuple[Message, ...]]:
    for i in range(n):
        yield user(f"Why does part_{i} fail?")
        yield says(f"The bug is in `part_{i}`: it fails because `value_{i}` is read before it was written.")
        yield call("Edit", f"e{i}", file_path=f"/w/src/{WORK[i % 7]}_{i}.py", old_string=f"a{i}", new_string=f"b_{i}")
        yield answer(f"The file /w/src/{WORK[i % 7]}_{i}.py has been updated.", f"e{i}")


def calls_of(n: int, shape: Shape) -> int:
    """How many functions are called to write the digest of n steps."""
    transcript, calls = conversation(*shape(n), user("and now?")), 0

    def counted(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        digest(transcript, 2_000)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("shape", [gone_on, one_file, to_dos, tasks, commits, questions, at_once])
def test_four_times_as_long_a_session_takes_about_four_times_the_work(shape: Shape) -> None:
    calls_of(50, shape)  # what is compiled and remembered once
    assert calls_of(800, shape) <= 5 * calls_of(200, shape)


def test_whether_a_check_looks_at_a_change_is_asked_once_and_not_for_each_check_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0

    def counted(languages: Collection[str], change: FileOperation) -> bool:
        nonlocal asked
        asked += 1
        return may_look_at(languages, change)

    monkeypatch.setattr(failures, "may_look_at", counted)
    digest(conversation(*failing(30)), 2_000)
    assert asked == 30


def test_a_later_run_is_compared_once_with_each_check_that_failed_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    compared, shows_gone = 0, reruns.shows_gone

    def counted(run: Run, other: Run, read: reruns.Reader) -> bool:
        nonlocal compared
        compared += 1
        return shows_gone(run, other, read)

    for module in (failures, reruns):
        monkeypatch.setattr(module, "shows_gone", counted)
    digest(conversation(*failing(30)), 2_000)
    assert compared == 30 * 29 // 2


def test_a_finding_looks_for_its_names_in_the_edits_of_its_turn_and_the_next_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at, says_any = 0, causes._Edits._says

    def counted(edits: causes._Edits, one: FileOperation, names: Collection[str]) -> bool:
        nonlocal looked_at
        looked_at += 1
        return says_any(edits, one, names)

    monkeypatch.setattr(causes._Edits, "_says", counted)
    digest(conversation(*findings(30)), 2_000)
    assert looked_at == 30 + 29
