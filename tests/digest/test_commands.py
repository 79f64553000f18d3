"""Commands: how a run ended, which runs are the same, and what they report."""

from __future__ import annotations

import pytest
from conversation import answer, call, conversation, digest, events_of, ran, texts, user

from compactor_cli.digest.commands import acting_part, command_key, failing_part, shown
from compactor_cli.digest.error_lines import error_line
from compactor_cli.digest.runs import CommandOutcome, runs
from compactor_cli.digest.tools import command_of
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message, Role, ToolResult


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Exit code 1\nTraceback (most recent call last):\n  File 'x'\nKeyError: 'a'", "KeyError: 'a'"),
        ("building\nsrc/x.rs:3: error: bad\nmore", "src/x.rs:3: error: bad"),
        ("Exit code 2\nno such thing", "no such thing"),
        ("Exit code 1\nlint\tfail\t1m25s\nbot\tpending\t0", "lint\tfail\t1m25s"),
        ("<returncode>1</returncode>\n<output>\nno such gauge\n</output>", "no such gauge"),
        ("docs/a.py:2: in <module>\nE   KeyError: 7\nE   more", "docs/a.py:2: in <module> · E   KeyError: 7"),
        (
            "E   KeyError: 7\nt.py:9: KeyError\nFAILED tide.py::Ebb::test_low - x\nFAILED tide.py::Ebb::test_neap",
            "FAILED tide.py::Ebb::test_low · FAILED tide.py::Ebb::test_neap · E   KeyError: 7 · t.py:9: KeyError",
        ),
        ("error[bad-type]: no depth\n  --> tide.py:9:2\n   |", "error[bad-type]: no depth · --> tide.py:9:2"),
        (
            "FAIL  tide.test.ts > ebb > is low\nError: expected 2\n x",
            "FAIL  tide.test.ts > ebb > is low · Error: expected 2",
        ),
        (
            "  x Failed to build\n      Traceback (most\n        File 'x'\n      ValueError: no harbour",
            "ValueError: no harbour",
        ),
        ("=== RUN TestTide\n--- FAIL: TestTide (0s)\n Error:\n  not found", "--- FAIL: TestTide · Error: · not found"),
        ("F401 `os` unused\n --> tide.py:9:2\n  |\nFound 1 error.", "F401 `os` unused · --> tide.py:9:2"),
        ("no such gauge\nnpm notice New major version of npm available! 10 -> 11", "no such gauge"),
    ],
)
def test_the_line_that_says_what_went_wrong(output: str, line: str) -> None:
    assert error_line(output) == line


@pytest.mark.parametrize(
    ("output", "is_error", "outcome", "code"),
    [
        ("Exit code 2\nx", True, CommandOutcome.FAILED, 2),
        ("Process exited with code 0\nx", False, CommandOutcome.OK, 0),
        ('{"output":"x","metadata":{"exit_code":1}}', False, CommandOutcome.FAILED, 1),
        ("<returncode>1</returncode>", False, CommandOutcome.FAILED, 1),
        ("<returncode>-1</returncode>\n<output>\n..F.", False, CommandOutcome.FAILED, 255),
        ("--- FAIL: TestX\nFAIL", False, CommandOutcome.FAILED, -1),
        ("error[invalid-type]: Object of type `Tide`\nWARN", False, CommandOutcome.FAILED, -1),
        ("tide.py::test_ebb FAILED [ 9%]\nCommand timed out after 2m 0.0s", False, CommandOutcome.FAILED, -1),
        ("collecting\nCommand timed out after 2m 0.0s", False, CommandOutcome.UNKNOWN, -1),
        ("fine", False, CommandOutcome.OK, -1),
    ],
)
def test_how_a_command_ended(output: str, is_error: bool, outcome: CommandOutcome, code: int) -> None:
    run = runs(events_of(ran("go test ./...", output, is_error=is_error)))[0]
    assert (run.outcome, run.code) == (outcome, code)


def test_the_frame_of_an_output_is_no_answer() -> None:
    told = "<returncode>0</returncode>\n<output>\n345\n</output>"
    assert runs(events_of(ran("python drift.py", told)))[0].line == "345"
    assert runs(events_of(ran("pytest a.py", "....      [100%]")))[0].line == ""


def test_the_same_command_has_the_same_key() -> None:
    assert command_key("cd /a/b && go  test ./... 2>&1 | tail -20") == command_key("go test ./...")
    assert command_key("ssh pier 'make tide 2>&1 | tail -3'") == command_key("ssh pier 'make tide 2>&1 | tee log'")
    assert command_key("ssh pier 'make tide | tail -3'").count("'") == 2
    assert command_key("(source .venv/bin/activate && pytest | grep -v '|')") == command_key("pytest")


def test_a_command_is_shown_by_its_first_line_that_does_something() -> None:
    command = "# all tests\ncd /data/app\nset -euo pipefail\nmake test\nmake demo"
    assert shown(command) == "make test …"
    assert shown("tmp=$(mktemp)\nprintf '%s\\n' \"$tmp\"\nworkmux add tides") == "workmux add tides"
    assert shown("DIR='/c/Temp/x y' && make demo") == "make demo"
    assert shown("cd /srv/tides; make demo") == "make demo"
    assert shown("cd tides && body=$'## Gauges\\n- it\\'s low'\ngh api pulls/7 -f body=x") == "gh api pulls/7 -f body=x"
    assert shown("rm -rf build/*.json 2>/dev/null || true\nmkdir -p build\nmake demo") == "make demo"


def test_a_run_without_a_result_or_turned_down_by_the_user_has_no_outcome() -> None:
    refused = ran("git push", "The user doesn't want to proceed with this tool use.", is_error=True)
    found = runs(events_of(refused, call("Bash", command="make serve")))
    assert [run.outcome for run in found] == [CommandOutcome.UNKNOWN, CommandOutcome.UNKNOWN]


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("[main 1a2b3c4] Fix it\n 1 file changed", "[main 1a2b3c4] Fix it"),
        ("....\n4 passed in 0.12s", "4 passed in 0.12s"),
        ("....\n======== 202 passed in 1.58s ========", "202 passed in 1.58s"),
        ("bun test v1.3.5\n\n 1274 pass\n 0 fail\n 2761 expect() calls", "1274 pass"),
        ("remote: x\nhttps://git.example/app/pull/17", "https://git.example/app/pull/17"),
        ("tides 2.0\nSuccessfully published the new version 2.0", "Successfully published the new version 2.0"),
        (
            "0 errors, 0 warnings\nWARNING: there is a new version available (v1.1 -> v1.2).\nPlease install the new",
            "0 errors, 0 warnings",
        ),
        (
            "WARNING: You are using version 21; a newer version is available.\n4 passed in 0.2s\nCreated a log",
            "4 passed in 0.2s",
        ),
        ("ok  \tharbour/tide\t0.2s\nPASS\nok  \tharbour/gate\t0.1s [no tests to run]", "ok  \tharbour/tide\t0.2s"),
    ],
)
def test_what_a_run_that_went_well_reports(output: str, line: str) -> None:
    assert runs(events_of(ran("make all", output)))[0].line == line


@pytest.mark.parametrize(
    ("command", "output", "outcome"),
    [
        ("pytest -q | tail -3", "1 failed, 11 passed in 2s", CommandOutcome.FAILED),
        ("pytest -q | tail -3", "12 passed in 2s", CommandOutcome.OK),
        ("pytest -q | tail -3", "collecting", CommandOutcome.UNKNOWN),
        ("./migrate.sh || true", "connecting", CommandOutcome.UNKNOWN),
        ("./migrate.sh; echo done", "done", CommandOutcome.UNKNOWN),
        ("./migrate.sh && echo done", "done", CommandOutcome.OK),
        ("set -euo pipefail\n./migrate.sh\necho done", "done", CommandOutcome.OK),
        ("git add a.nix && set -e; for h in a b; do x=$(nix eval $h); echo ok; done", "ok\nok", CommandOutcome.OK),
        ("kubectl apply -f gauge.yaml\nkubectl -n pier get pods", "gauge CrashLoopBackOff", CommandOutcome.UNKNOWN),
        ("npm test | head -2", "3 passed\nmore to come", CommandOutcome.UNKNOWN),
        ("npm test | head -5", "3 passed", CommandOutcome.OK),
        ("go build ./... 2>&1 | head -20", "", CommandOutcome.OK),
        ("go build ./... 2>&1 | head -20", "# a/b\nb/c.go:16:3: cannot use id as string value", CommandOutcome.FAILED),
        ("npm run build 2>&1 | tail -3", "npm error workspace tide\nnpm error command failed", CommandOutcome.FAILED),
        ("go test -v ./... | head -60", "PASS: one\nok  \ttide\n" * 30, CommandOutcome.UNKNOWN),
        ("go test ./... | tail -90", "ok  \ttide\n" * 40 + "FAIL\tgate\n" + "ok  \ttide\n" * 40, CommandOutcome.FAILED),
        ("go test ./... | grep tide", "ok  \tharbour/tide\t0.2s", CommandOutcome.UNKNOWN),
        ("go test -v ./... | grep -E 'PASS|FAIL'", "--- PASS: TestErrorOfTide (0.1s)", CommandOutcome.OK),
        (
            "go test ./t -v | head -90",
            "    t_test.go:7: got error: x\n--- PASS: TestT (0.1s)\nok  \ttide\t0.4s",
            CommandOutcome.OK,
        ),
        ("go build ./... 2>&1 | grep tide", "", CommandOutcome.UNKNOWN),
        ("pytest -v | tail -3", "Error handling of the gate\n12 passed in 2s", CommandOutcome.OK),
        ("git switch main && ls tides | grep ebb", "Switched to branch 'main'", CommandOutcome.OK),
    ],
)
def test_where_the_exit_code_is_that_of_a_pipe_the_output_decides(
    command: str, output: str, outcome: CommandOutcome
) -> None:
    assert runs(events_of(ran(command, output)))[0].outcome is outcome


def test_a_run_of_unknown_outcome_is_shown_by_its_output_and_without_a_status() -> None:
    one = digest(conversation(user("load the gauges"), ran("./load.sh | tail -1", "412 rows loaded")), 2_000)
    assert texts(one, Section.COMMANDS) == ["`./load.sh` → 412 rows loaded"]


def test_a_command_that_goes_on_below_is_shown_with_that() -> None:
    sent = "# reply\ngh api repos/tide/pulls/4/comments \\\n  --field in_reply_to=2835 \\\n  --raw-field body='Done.'"
    one = digest(conversation(user("reply to it"), ran(sent, "{}")), 2_000)
    assert texts(one, Section.COMMANDS)[0].startswith("`gh api repos/tide/pulls/4/comments --field in_reply_to=2835")


def test_a_script_that_a_shell_is_called_with_is_the_command() -> None:
    wrapped = "bash -lc 'set -a; source /srv/tide/.env; set +a; bun check.ts gauges.yaml'"
    (run,) = runs(events_of(*ran(wrapped, "Valid: 2")))
    assert (run.key, shown(run.command)) == ("bun check.ts gauges.yaml",) * 2


def test_how_many_errors_were_counted_is_no_error() -> None:
    counted = ran(
        'git stash && npx tsc 2>&1 | grep -c "error TS" && git stash pop', "58\nDropped refs/stash@{0} (b60bf5d)"
    )
    (run,) = runs(events_of(*counted))
    assert (run.outcome, run.line) == (CommandOutcome.FAILED, "")


def test_a_loop_that_only_shows_is_a_look() -> None:
    shown_commit = "for commit in a1 b2; do\n  id=$(git show $commit | grep -i 'Checkpoint:' | awk '{print $2}')\n"
    loop = f'{shown_commit}  if [ -n "$id" ]; then\n    echo "$id" 2>/dev/null\n  fi\ndone'
    assert [
        run.is_read_only for run in runs(events_of(ran(loop, "a1"), ran("grep -i x a.txt || echo none", "none")))
    ] == [True] * 2
    assert [run.is_read_only for run in runs(events_of(ran("echo 8c0 | git cat-file --batch-check", "")))] == [True]
    assert [run.is_read_only for run in runs(events_of(ran("git push --dry-run", ""), ran("git push", "")))] == [
        True,
        False,
    ]
    assert [run.is_read_only for run in runs(events_of(ran("sed -i s/a/b/ a.txt", "")))] == [False]
    by_kind = "case \"$f\" in\n a) sign='--' ;;\n *) sign='#' ;;\n esac\n git diff $f | grep -v $sign"
    assert [run.is_read_only for run in runs(events_of(ran(f"for f in a b; do\n {by_kind}\ndone", "")))] == [True]
    assert [run.is_read_only for run in runs(events_of(ran("for f in a b; do rm $f; done", "")))] == [False]


def test_what_was_put_in_the_background_ended_as_the_look_at_it_shows() -> None:
    begun = ran(
        "git rebase origin/main", "Command running in background with ID: b49d4. Output is being written to: /x"
    )
    look = (call("TaskOutput", "t", task_id="b49d4"), answer("<status>failed</status>\n<exit_code>1</exit_code>", "t"))
    assert [run.outcome for run in runs(events_of(begun))] == [CommandOutcome.UNKNOWN]
    assert [run.outcome for run in runs(events_of(begun, look))] == [CommandOutcome.FAILED]


def test_tests_of_which_some_failed_did_not_go_well_though_no_exit_code_is_shown() -> None:
    for line in ("1 failed, 1 passed in 0.06s", "Tests: 3 passed, 1 failed"):
        assert [run.outcome for run in runs(events_of(ran("make -k try", f"F.\n{line}")))] == [CommandOutcome.FAILED]
    assert [run.outcome for run in runs(events_of(ran("make try", "2 passed, 0 failed")))] == [CommandOutcome.OK]


def test_a_command_that_was_stopped_neither_failed_nor_went_well() -> None:
    stopped = events_of(ran("npm test", "> node --test\n\nCommand aborted", is_error=True))
    assert [run.outcome for run in runs(stopped)] == [CommandOutcome.UNKNOWN]


@pytest.mark.parametrize(
    "output",
    [
        "testing: warning: no tests to run\nPASS\nok  \ttide\t0.1s [no tests to run]",
        "?   \ttide\t[no test files]",
        "== no tests collected (205 deselected) in 0.39s ==\nExit code 5",
        "no packages to test\nExit code 1",
    ],
)
def test_a_run_that_found_no_test_shows_nothing(output: str) -> None:
    (run,) = runs(events_of(*ran("go test ./tide -run TestEbb", output)))
    assert (run.outcome, run.line) == (CommandOutcome.UNKNOWN, "")


def test_a_linter_that_found_no_file_shows_nothing() -> None:
    (run,) = runs(events_of(*ran("markdownlint-cli2 'docs/*.md'", "Linting: 0 file(s)\nSummary: 0 error(s)")))
    assert run.outcome is CommandOutcome.UNKNOWN


def test_a_call_that_the_client_never_started_since_another_failed_is_no_run() -> None:
    cancelled = "<tool_use_error>Sibling tool call errored</tool_use_error>"
    assert runs(events_of(ran("pgrep -f gitstatusd", cancelled, is_error=True))) == ()


def test_the_exit_code_that_a_record_tells_beside_the_output_counts() -> None:
    def ended(code: int) -> CommandOutcome:
        output = "ERR_PNPM_UNSUPPORTED_ENGINE  Unsupported environment\nTo fix this, install Node 20." if code else "ok"
        result = ToolResult(id="1", text=output, exit_code=code)
        (run,) = runs(events_of(call("bash", "1", command="pnpm test"), Message(role=Role.TOOL, parts=(result,))))
        assert run.line.startswith("ERR_PNPM_UNSUPPORTED_ENGINE") or not code
        return run.outcome

    assert [ended(0), ended(1)] == [CommandOutcome.OK, CommandOutcome.FAILED]


def test_a_command_that_goes_on_in_a_session_ends_as_the_last_look_at_it_says() -> None:
    head = "Chunk ID: 1a2b3c\nWall time: 1.0 seconds\n"
    begun = (
        call("exec_command", "1", cmd="bun test"),
        answer(f"{head}Process running with session ID 77\nOutput:\n", "1"),
    )
    ended = (
        call("write_stdin", "2", session_id=77, chars=""),
        answer(f"{head}Process exited with code 1\nOutput:\n2 failed, 3 passed", "2"),
    )
    assert [run.outcome for run in runs(events_of(begun)) if run.key == "bun test"] == [CommandOutcome.UNKNOWN]
    run = next(run for run in runs(events_of(begun, ended)) if run.key == "bun test")
    assert (run.outcome, run.result_record) == (CommandOutcome.FAILED, 3)


def test_of_a_compiler_the_error_is_shown_and_no_warning() -> None:
    output = (
        "warning: unused variable: `x`\n --> src/a.rs:3:5\nerror[E0063]: missing field `zone`\n --> src/b.rs:9:1\n"
        "error: could not compile `tide` (lib) due to 1 previous error"
    )
    assert error_line(output).startswith("error[E0063]: missing field `zone`")
    (run,) = runs(events_of(*ran("cargo test | tail -30", output)))
    assert run.outcome is CommandOutcome.FAILED


@pytest.mark.parametrize(("printed", "outcome"), [("Usage: tide [level]", "ok"), ("tide: command not found", "failed")])
def test_help_that_ends_with_a_failing_code_was_printed_all_the_same(printed: str, outcome: str) -> None:
    (run,) = runs(events_of(*ran("npx tide --help", f"Exit code 2\n{printed}", is_error=True)))
    assert run.outcome == outcome


def test_what_was_aborted_neither_failed_nor_went_well() -> None:
    (run,) = runs(events_of(*ran("pnpm install", "Tool execution aborted", is_error=True)))
    assert run.outcome is CommandOutcome.UNKNOWN


def test_a_script_for_another_shell_is_judged_by_what_it_does() -> None:
    looks = [
        "ssh -o BatchMode=yes keeper@pier 'sudo ls -l /srv/tides; systemctl is-active gauge'",
        'zsh -i -c "source ~/.zshrc; which gauge"',
        "KUBECONFIG=~/pier.yaml kubectl -n tides describe pod gauge && kubectl rollout status deploy/gauge",
    ]
    acts = ["ssh keeper@pier 'sudo rm /srv/tides.csv'", "bash -lc 'make gauge'", "kubectl -n tides delete pod gauge"]
    assert [run.is_read_only for run in runs(events_of(*(ran(one, "") for one in looks)))] == [True] * 3
    assert [run.is_read_only for run in runs(events_of(*(ran(one, "") for one in acts)))] == [False] * 3


def test_what_is_written_for_a_command_is_not_shown_in_its_place() -> None:
    line = 'tmp=$(mktemp).md\ncat > "$tmp" <<\'EOF\'\nLook at the gauges; report.\nEOF\nworkers add gauges -P "$tmp"'
    assert shown(line) == 'workers add gauges -P "$tmp"'
    assert shown(f"a=1\n{line}") == 'workers add gauges -P "$tmp"'


def test_a_name_with_deploy_in_it_deploys_nothing() -> None:
    sent = ["gh api graphql -f query='query { viewer { login } }'", "gh api graphql -f query='mutation { add }'"]
    assert [run.acts_outside for run in runs(events_of(*(ran(one, "{}") for one in sent)))] == [False, True]
    found = ran("unzip -p trace.zip a.trace | strings | grep -i error", "TimeoutError: locator.waitFor")
    assert [(run.is_read_only, run.outcome) for run in runs(events_of(found))] == [(True, CommandOutcome.OK)]
    looks = ["gh api repos/acme/tide-deploy/contents/.tide --jq .path", "ls $(ls pending | tr -d ' ' | base64)"]
    assert [run.is_read_only for run in runs(events_of(*(ran(one, "a.txt") for one in looks)))] == [True, True]
    deploys = ["npm run deploy", "./deploy.sh prod", "wrangler deploy", "make deploy-staging"]
    assert all(run.acts_outside for run in runs(events_of(*(ran(one, "ok") for one in deploys))))


def test_a_look_at_tags_changes_nothing() -> None:
    looks = ("git tag --points-at HEAD", "git tag -l 'v1*'", "git tag", "git tag v1.2.0 && git push --tags")
    assert [run.acts_outside for run in runs(events_of(*(ran(one, "v1.2.0") for one in looks)))] == [
        *[False] * 3,
        True,
    ]


def test_the_end_of_a_command_that_was_looked_at_several_times_is_its_own() -> None:
    begun = call("exec_command", "b", cmd="git commit -m x"), answer("Process running with session ID 93932", "b")
    looks = [
        (call("write_stdin", n, session_id=93932, chars=""), answer(text, n))
        for n, text in (
            ("1", "Process running with session ID 93932\nOutput:\n"),
            ("2", "Process running with session ID 93932\nOutput:\n"),
            ("3", "Process exited with code 0\nOutput:\n[main b9f1ef0] x"),
        )
    ]
    (run,) = runs(events_of(*begun, *looks))
    assert (run.command, run.outcome, run.line) == ("git commit -m x", "ok", "[main b9f1ef0] x")


def test_what_the_agent_stopped_by_a_key_did_not_fail_and_the_key_is_no_command() -> None:
    begun = call("exec_command", "b", cmd="npm run dev"), answer("Process running with session ID 18489", "b")
    key = (
        call("write_stdin", "k", session_id=18489, chars="\x03"),
        answer("Process exited with code 1\nOutput:\n^C", "k"),
    )
    assert [(run.command, run.outcome) for run in runs(events_of(*begun, *key))] == [("npm run dev", "unknown")]


def test_what_runs_after_a_text_was_added_to_a_file_is_the_command() -> None:
    line = "cat >> style.css <<'EOF'\n.tide { color: blue }\nEOF\nnpm run build"
    assert command_key(line) == "npm run build"


@pytest.mark.parametrize(
    ("command", "read"),
    [
        (
            'SRC=/srv/a.csv\nDST="/srv/b c.csv"\ncp "$SRC" ${DST}',
            'SRC=/srv/a.csv\nDST="/srv/b c.csv"\ncp /srv/a.csv "/srv/b c.csv"',
        ),
        ("export N=3 && head -n $N tides.csv", "export N=3 && head -n 3 tides.csv"),
        # A name that is made of several parts, a text in single quotes and a value that a command gives stay.
        ("D=/srv/tide; cat $D/a.csv '$D'", "D=/srv/tide; cat $D/a.csv '$D'"),
        ('D=$(mktemp -d); cp a.csv "$D"', 'D=$(mktemp -d); cp a.csv "$D"'),
        ("A=1\npython - <<EOF\nprint($A)\nEOF", "A=1\npython - <<EOF\nprint($A)\nEOF"),
    ],
)
def test_a_variable_that_a_command_sets_is_read_as_its_value(command: str, read: str) -> None:
    assert command_of({"command": command}) == read


def test_what_a_here_document_writes_is_no_command() -> None:
    sends = "gh pr comment 449 --body-file /tmp/note.md"
    assert acting_part(f"cat <<'EOF' > /tmp/note.md\nThe gate (`{{open && ...}}`) is shut.\nEOF\n{sends}") == sends


def test_of_a_linters_counts_the_one_of_all_problems_is_stated() -> None:
    printed = "✖ 88 problems (0 errors, 88 warnings)\n  0 errors and 1 warning potentially fixable with `--fix`."
    assert runs(events_of(*ran("yarn lint", printed)))[0].line == "✖ 88 problems (0 errors, 88 warnings)"


def test_of_a_chain_that_git_failed_in_the_whole_is_shown() -> None:
    chain = "git branch kept 4f1c2aa && git reset --hard 1a2b3c4"
    assert failing_part(chain, "fatal: cannot lock ref 'refs/heads/kept'") == chain
    assert failing_part(chain, "error: nothing to reset") == "git reset --hard 1a2b3c4"


def test_the_acting_part_of_a_command_of_several_lines_is_as_that_of_a_chain() -> None:
    message = "git commit -m \"$(cat <<'EOF'\nread the gauge\n\ngit push by hand\nEOF\n)\""
    assert acting_part(f"cd tides\ngit add a.py\n{message}\ngit push") == "git commit -m … && git push"
    written = "python3 - <<'EOF'\ngit push\nEOF"
    assert acting_part(written) == written


def test_a_command_that_env_runs_is_what_it_runs() -> None:
    lines = ("env | sort && env LC_ALL=C git log -3", "env GOCACHE=/tmp/tides go test ./tide", "env rm -r out")
    assert [run.is_read_only for run in runs(events_of(*(ran(line, "") for line in lines)))] == [True, False, False]


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("--- SKIP: TestEbb (0.00s)\n    no gauge\nPASS\nok  \ttide\t0.3s", "--- SKIP: TestEbb (0.00s)"),
        ("ss\n=== 2 skipped, 1 deselected in 0.10s ===", "2 skipped, 1 deselected in 0.10s"),
        ("Tests:       3 skipped, 3 total", "Tests:       3 skipped, 3 total"),
        (" Tests  3 skipped (3)", "Tests  3 skipped (3)"),
    ],
)
def test_a_run_of_which_each_test_was_skipped_did_not_go_well(output: str, line: str) -> None:
    (run,) = runs(events_of(*ran("go test -v ./tide", output)))
    assert (run.outcome, run.line) == (CommandOutcome.UNKNOWN, line)


@pytest.mark.parametrize(
    "output",
    ["--- SKIP: TestEbb (0.00s)\n--- PASS: TestTide (0.00s)\nPASS\nok  \ttide\t0.3s", "1 passed, 2 skipped in 1s"],
)
def test_a_run_of_which_some_tests_were_skipped_went_well(output: str) -> None:
    (run,) = runs(events_of(*ran("go test -v ./tide", output)))
    assert run.outcome is CommandOutcome.OK


def test_a_formatter_that_lists_files_found_them_wrong() -> None:
    for command in ("gofmt -l tide.go gate.go", "cd harbour && gofmt -s -l . 2>&1 | head"):
        (run,) = runs(events_of(ran(command, "gate.go\ntide.go")))
        assert (run.outcome, run.line) == (CommandOutcome.FAILED, "gate.go · tide.go")
        assert [run.outcome for run in runs(events_of(ran(command, "")))] == [CommandOutcome.OK]
