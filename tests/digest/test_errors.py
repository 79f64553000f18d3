"""Errors: the line that says what went wrong, and the change after which it was gone."""

from __future__ import annotations

import pytest
from compactor_cli.digest.touches import touches
from talk import answer, call, meter, ran, told

from compactor_cli.digest.commands import Outcome, command_items, command_key, error_line, runs
from compactor_cli.digest.errors import error_items, troubles
from compactor_cli.digest.language import words_of

EN = words_of("en")
EDIT = (call("Edit", "e", file_path="src/a.py", old_string="x", new_string="y"), answer("ok", "e"))


def shown(*messages: object) -> list[tuple[str, tuple[int, ...]]]:
    found = told(*messages)  # type: ignore[arg-type]
    troubled = troubles(found, runs(found), touches(found))
    return [(item.text, item.records) for item in error_items(troubled, 400, meter(), EN)]


def test_an_error_is_paired_with_the_change_after_which_it_was_gone() -> None:
    failed = ran("cd /w && pytest", "E   TypeError: bad\n1 failed", is_error=True)
    assert shown(failed, EDIT, ran("pytest 2>&1 | tail", "3 passed")) == [
        ("E   TypeError: bad (`cd /w && pytest`) → gone after the edit of src/a.py", (1, 2, 5))
    ]


def test_only_changes_after_its_last_sight_count() -> None:
    fail = ran("make", "a.c:3: error: no x", is_error=True)
    other = (call("Edit", "o", file_path="b.c"), answer("ok", "o"))
    assert shown(fail, other, fail, EDIT, ran("make", "")) == [
        ("a.c:3: error: no x (`make`) → gone after the edit of src/a.py", (1, 6, 9))
    ]


def test_what_never_passed_is_said_to_be_open_and_comes_first() -> None:
    fixed = (ran("make", "error: one", is_error=True), EDIT, ran("make", "ok"))
    assert [text for text, _ in shown(*fixed, ran("npm run build", "Error: two", is_error=True))] == [
        "Error: two (`npm run build`) — not seen to pass since",
        "error: one (`make`) → gone after the edit of src/a.py",
    ]


def test_looking_at_errors_of_others_is_no_error() -> None:
    looked = ran("grep -rn Error src", "src/a.py: raise TypeError: x")
    assert shown(looked, ran("cat log", "fatal: old", is_error=True)) == []


def test_other_tools_fail_and_pass_too() -> None:
    assert shown(
        call("cancel_order", "1", order="W1"),
        answer("Error: order is shipped", "1"),
        call("cancel_order", "2", order="W2"),
        answer("cancelled", "2"),
    ) == [("Error: order is shipped (`cancel_order`) → passed later", (1, 3))]


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Exit code 1\nTraceback (most recent call last):\n  File 'x'\nKeyError: 'a'", "KeyError: 'a'"),
        ("building\nsrc/x.rs:3: error: bad\nmore", "src/x.rs:3: error: bad"),
        ("Exit code 2\nno such thing", "no such thing"),
    ],
)
def test_the_line_that_says_what_went_wrong(output: str, line: str) -> None:
    assert error_line(output) == line


@pytest.mark.parametrize(
    ("output", "is_error", "outcome", "code"),
    [
        ("Exit code 2\nx", True, Outcome.FAILED, 2),
        ("Process exited with code 0\nx", False, Outcome.OK, 0),
        ('{"output":"x","metadata":{"exit_code":1}}', False, Outcome.FAILED, 1),
        ("<returncode>1</returncode>", False, Outcome.FAILED, 1),
        ("--- FAIL: TestX\nFAIL", False, Outcome.FAILED, -1),
        ("fine", False, Outcome.OK, -1),
    ],
)
def test_how_a_command_ended(output: str, is_error: bool, outcome: Outcome, code: int) -> None:
    run = runs(told(ran("go test ./...", output, is_error=is_error)))[0]
    assert (run.outcome, run.code) == (outcome, code)


def test_commands_are_told_once_newest_first_with_what_they_report() -> None:
    found = runs(
        told(
            ran("ls -la", "x"),
            ran("pytest -q | tail -3", "5 passed in 1s"),
            ran("git commit -m x", "[main 1a2b3c4] x\n 1 file changed"),
            ran("cd /w && pytest -q", "6 passed in 1s"),
        )
    )
    assert [item.text for item in command_items(found, 400, meter(), EN)] == [
        "`cd /w && pytest -q` → ok ×2: 6 passed in 1s",
        "`git commit -m x` → ok: 1 file changed",
        "`ls -la` → ok",
    ]


def test_the_same_command_has_the_same_key() -> None:
    assert command_key("cd /a/b && go  test ./... 2>&1 | tail -20") == command_key("go test ./...")


def test_a_command_is_told_by_its_first_line_that_does_something() -> None:
    command = "# all tests\ncd /data/app\nset -euo pipefail\nmake test\nmake demo"
    (text, _), *_ = shown(ran(command, "Error: two", is_error=True))
    assert "(`make test …`)" in text


def test_a_failure_that_tells_only_a_number_or_its_code_has_no_error_line() -> None:
    assert shown(ran("grep -c x a.html > n.txt", "0\n\nCommand exited with code 1", is_error=True)) == []


def test_a_command_is_the_same_wherever_a_line_before_it_goes() -> None:
    assert shown(ran("cd /data/app\nmake test", "Error: two", is_error=True), EDIT, ran("make test", "")) == [
        ("Error: two (`make test`) → gone after the edit of src/a.py", (1, 2, 5))
    ]
