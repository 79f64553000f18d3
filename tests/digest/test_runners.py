"""Runners of tests: of a run that failed, the tests by name and what was expected; what passes later is fixed."""

from __future__ import annotations

import pytest
from conversation import answer, call, conversation, digest, ran, says, texts, user

from compactor_cli.digest.error_lines import error_line
from compactor_cli.model.summary import Section

STRICT = "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:"
BUN = """\
bun test v1.1.0
src/clock.test.ts:
(pass) clock > starts [1.20ms]
12 |   expect(drift()).toBe(0)
                       ^
error: expect(received).toBe(expected)

Expected: 0
Received: 2

      at <anonymous> (/srv/tide/src/clock.test.ts:12:23)
(fail) clock > has no drift [3.10ms]
(fail) clock > keeps its zone [0.90ms]

 1 pass
 2 fail
 3 expect() calls
Ran 3 tests across 1 file. [49.00ms]
"""

VITEST = """\
 RUN  v1.6.0 /srv/tide

 ❯ src/clock.test.ts  (3 tests | 1 failed) 12ms
   ❯ src/clock.test.ts > clock > has no drift
     → expected 2 to be +0 // Object.is equality
 ✓ src/gauge.test.ts  (4 tests) 3ms

⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  src/clock.test.ts > clock > has no drift
AssertionError: expected 2 to be +0 // Object.is equality

- Expected
+ Received

- 0
+ 2

 ❯ src/clock.test.ts:12:23
     10|
⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[1/1]⎯

 Test Files  1 failed | 1 passed (2)
      Tests  1 failed | 6 passed (7)
   Duration  412ms
"""

JEST = """\
PASS src/gauge.test.ts
FAIL src/clock.test.ts
  clock
    ✓ starts (3 ms)
    ✕ has no drift (5 ms)

  ● clock › has no drift

    expect(received).toBe(expected) // Object.is equality

    Expected: 0
    Received: 2

      10 |   it('has no drift', () => {
      11 |     const d = drift();
    > 12 |     expect(d).toBe(0);
         |               ^

      at Object.<anonymous> (src/clock.test.ts:12:15)

Test Suites: 1 failed, 1 passed, 2 total
Tests:       1 failed, 5 passed, 6 total
Snapshots:   0 total
Time:        1.2 s
"""

MOCHA = """\
  clock
    ✔ starts
    1) has no drift

  1 passing (8ms)
  1 failing

  1) clock
       has no drift:

      AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

2 !== 0

      + expected - actual

      at Context.<anonymous> (test/clock.js:12:12)
"""

NODE = """\
✔ starts (1.1ms)
✖ has no drift (2.3ms)
ℹ tests 2
ℹ pass 1
ℹ fail 1

✖ failing tests:

test at test/clock.test.js:10:1
✖ has no drift (2.3ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

  2 !== 0
"""

UNITTEST = """\
.F
======================================================================
FAIL: test_no_drift (tests.test_clock.ClockTest)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/srv/tide/tests/test_clock.py", line 12, in test_no_drift
    self.assertEqual(drift(), 0)
AssertionError: 2 != 0

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1)
"""

RSPEC = """\
.F

Failures:

  1) Clock has no drift
     Failure/Error: expect(clock.drift).to eq(0)

       expected: 0
            got: 2

       (compared using ==)
     # ./spec/clock_spec.rb:12:in `block (2 levels) in <top (required)>'

Finished in 0.01 seconds
2 examples, 1 failure

Failed examples:

rspec ./spec/clock_spec.rb:10 # Clock has no drift
"""

MAVEN = """\
[INFO] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0
[ERROR] Failures:
[ERROR]   ClockTest.hasNoDrift:12 expected:<0> but was:<2>
[INFO]
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0
[INFO] BUILD FAILURE
"""

PHPUNIT = """\
There was 1 failure:

1) Tide\\ClockTest::testHasNoDrift
Failed asserting that 2 matches expected 0.

/srv/tide/tests/ClockTest.php:12

FAILURES!
Tests: 2, Assertions: 2, Failures: 1.
"""

DOTNET = """\
  Failed Tide.ClockTests.HasNoDrift [3 ms]
  Error Message:
   Assert.Equal() Failure
Expected: 0
Actual:   2
  Stack Trace:
     at Tide.ClockTests.HasNoDrift() in /srv/tide/ClockTests.cs:line 12

Failed!  - Failed:     1, Passed:     1, Skipped:     0, Total:     2, Duration: 5 ms
"""

PLAYWRIGHT = """\
Running 2 tests using 1 worker
  ✓  1 clock.spec.ts:3:5 › starts (1.2s)
  ✘  2 clock.spec.ts:8:5 › has no drift (5.1s)

  1) clock.spec.ts:8:5 › has no drift ──────────────────────────────

    Error: expect(locator).toHaveText(expected)

    Expected string: "0"
    Received string: "2"

      10 |   await expect(page.locator('#drift')).toHaveText('0');

  1 failed
    clock.spec.ts:8:5 › has no drift ──────────────────
  1 passed (6.5s)
"""


@pytest.mark.parametrize(
    ("output", "tests", "reasons"),
    [
        (
            BUN,
            "(fail) clock > has no drift · (fail) clock > keeps its zone",
            "error: expect(received).toBe(expected) · Expected: 0 · Received: 2",
        ),
        (
            VITEST,
            "FAIL  src/clock.test.ts > clock > has no drift",
            "AssertionError: expected 2 to be +0 // Object.is equality",
        ),
        (
            JEST,
            "● clock › has no drift",
            "expect(received).toBe(expected) // Object.is equality · Expected: 0 · Received: 2",
        ),
        (MOCHA, "1) clock has no drift", f"{STRICT} 2 !== 0"),
        (NODE, "✖ has no drift", f"{STRICT} 2 !== 0"),
        (UNITTEST, "FAIL: test_no_drift (tests.test_clock.ClockTest)", "AssertionError: 2 != 0"),
        (
            RSPEC,
            "rspec ./spec/clock_spec.rb:10 # Clock has no drift",
            "Failure/Error: expect(clock.drift).to eq(0) · expected: 0 · got: 2",
        ),
        (PHPUNIT, "1) Tide\\ClockTest::testHasNoDrift", "Failed asserting that 2 matches expected 0."),
        (DOTNET, "Failed Tide.ClockTests.HasNoDrift", "Assert.Equal() Failure · Expected: 0 · Actual:   2"),
        (
            PLAYWRIGHT,
            "1) clock.spec.ts:8:5 › has no drift",
            'Error: expect(locator).toHaveText(expected) · Expected string: "0" · Received string: "2"',
        ),
    ],
)
def test_a_run_that_failed_names_the_tests_and_what_was_expected(output: str, tests: str, reasons: str) -> None:
    assert error_line(output) == f"{tests} · {reasons}"


def test_what_was_expected_stands_in_one_line_with_its_test() -> None:
    assert error_line(MAVEN) == "ClockTest.hasNoDrift:12 expected:<0> but was:<2>"


def test_a_test_that_passes_in_another_run_is_no_open_error() -> None:
    edit = (call("Edit", "e", file_path="src/clock.ts", old_string="x", new_string="y"), answer("ok", "e"))
    passed = "(pass) clock > has no drift [1.10ms]\n(pass) clock > keeps its zone [0.90ms]\n\n 2 pass\n 0 fail"
    failed = ran("bun test", f"{BUN}\nexit code 1", is_error=True)
    again = ran("bun test src/clock.test.ts", passed)
    one = digest(conversation(user("mend the clock"), failed, edit, again, says("Done.")), 3_000)
    assert not [text for text in texts(one, Section.PLAN) if "failing" in text]
    assert any("has no drift" in text and "fixed by src/clock.ts" in text for text in texts(one, Section.ERRORS))


def test_what_runners_report_through_a_pipe_says_how_a_check_ended() -> None:
    ended = {
        "bun run test 2>&1 | tail -4": {
            " 12 pass\n 0 fail\nRan 12 tests across 2 files.": "ok",
            " 11 pass\n 1 fail": "",
        },
        "bun run lint 2>&1 | tail -4": {
            "$ biome check\nChecked 9 files in 40ms. No fixes applied.": "ok",
            "Checked 9 files in 40ms. No fixes applied.\nFound 2 errors.": "",
        },
        "bun run typecheck 2>&1 | tail -4": {"$ tsc --noEmit": "ok"},
    }
    for command, outputs in ended.items():
        for output, outcome in outputs.items():
            one = digest(conversation(user("check it"), ran(command, output), says("Done.")), 3_000)
            shown = "\n".join(texts(one, Section.COMMANDS))
            assert ("→ ok" in shown) is bool(outcome), output
            assert bool(texts(one, Section.PLAN)) is not bool(outcome), output


def test_a_runner_that_ran_no_test_has_passed_none() -> None:
    report = "Finished in 0.000643s, 0.0000 runs/s\n0 runs, 0 assertions, 0 failures, 0 errors, 0 skips"
    one = digest(conversation(user("check it"), ran("bin/rails test 2>&1 | tail -30", report), says("Done.")))
    assert "→ ok" not in "\n".join(texts(one, Section.COMMANDS))


def test_a_run_of_tasks_that_was_finished_went_well_though_only_its_end_is_seen() -> None:
    tests = ran("go test ./tide", "ok  \ttide\t0.3s")
    edit = call("Edit", "e", file_path="tide/clock.go", old_string="a", new_string="b"), answer("ok", "e")
    shown = "[test:ci] ?   \ttide/tables\t[no test files]\n[test:ci] Finished in 9.06s\nFinished in 9.06s"
    check = ran("mise run check 2>&1 | tail -3", shown)
    one = digest(conversation(user("mend the clock"), *tests, *edit, *check, says("All is green.")))
    assert not any("Passed before" in text for text in texts(one, Section.PLAN))
    assert any(text.startswith("`mise run check` → ok") for text in texts(one, Section.COMMANDS))
