"""The state of the work: what is committed, what is not, and test runs that are older than the edits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conversation import answer, call, conversation, digest, events_of, ran, rendered, says, summary, texts, user

from compactor_cli.digest import checks
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message

STORE = (call("Edit", "s", file_path="store.py", old_string="a", new_string="b"), answer("ok", "s"))
CLOCK = (call("Edit", "c", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "c"))
COMMIT = ran("git commit -am 'Store UTC'", "[utc-times 4f1c2aa] Store UTC\n 1 file changed")
TESTS = ran("pytest -q", "212 passed in 3s")


def is_open(*messages: object) -> list[str]:
    return texts(digest(conversation(user("store the times in UTC"), *messages), 3_000), Section.PLAN)  # type: ignore[arg-type]


def test_what_was_changed_after_the_last_commit_is_not_committed() -> None:
    one = digest(conversation(user("store the times in UTC"), STORE, COMMIT, CLOCK), 3_000)
    assert texts(one, Section.PLAN) == ["Not committed: clock.py"]
    assert texts(one, Section.FILES) == ["clock.py — edited", "store.py — edited, in commit 4f1c2aa"]


def test_a_commit_holds_only_the_files_that_were_named_to_it() -> None:
    named = ran("git add store.py && git commit -m 'Store UTC'", "[utc-times 4f1c2aa] Store UTC\n 1 file changed")
    one = digest(conversation(user("store the times in UTC"), STORE, CLOCK, named), 3_000)
    assert texts(one, Section.PLAN) == ["Not committed: clock.py"]
    assert texts(one, Section.FILES) == ["clock.py — edited", "store.py — edited, in commit 4f1c2aa"]


@pytest.mark.parametrize("add", ["git add -A", "git add .", "git add src '*.py'", "git add store.py && git add -u"])
def test_a_commit_of_more_than_named_files_holds_all_that_changed(add: str) -> None:
    assert is_open(STORE, CLOCK, ran(f"{add}; git commit -m x", "[main 4f1c2aa] x\n 2 files changed")) == []


def test_an_amended_commit_is_gone_and_its_files_are_in_the_one_in_its_place() -> None:
    first = ran("git add store.py && git commit -m x", "[main d2b81e4] x\n 1 file changed")
    amended = ran("git add clock.py && git commit --amend --no-edit", "[main c05e70b] x\n 2 files changed")
    one = digest(conversation(user("store the times in UTC"), STORE, first, CLOCK, amended), 3_000)
    assert texts(one, Section.PLAN) == []
    assert [text.rpartition(" ")[2] for text in texts(one, Section.FILES)] == ["c05e70b", "c05e70b"]
    assert "d2b81e4" not in "\n".join(texts(one, Section.TASK))


def test_a_commit_that_was_amended_without_a_word_of_git_has_the_hash_that_a_log_shows() -> None:
    first = ran("git add store.py && git commit -m 'Store UTC'", "[main d2b81e4] Store UTC\n 1 file changed")
    shown = "c05e70b Store UTC\n store.py | 2 +-\n clock.py | 4 ++--"
    amended = ran("git add clock.py\ngit commit -q --amend --no-edit\ngit show --stat --oneline HEAD", shown)
    later = ran("git commit -am 'Read the clock'", "[main 9b8c7d6] Read the clock\n 1 file changed")
    session = conversation(user("store the times in UTC"), STORE, first, CLOCK, amended, later)
    assert [text.rpartition(" ")[2] for text in texts(digest(session, 3_000), Section.FILES)] == ["c05e70b", "c05e70b"]


def test_what_asked_for_a_commit_that_was_amended_since_came_to_the_one_in_its_place() -> None:
    first = user("commit this now"), *ran("git commit -am x", "[main d2b81e4] x\n 1 file changed")
    amended = ran("git commit --amend --no-edit", "[main c05e70b] x\n 1 file changed")
    ended = says("Pushed."), user("and what does the clock of the gauges tell at night?"), says("The hour.")
    asked = user("store the times in UTC"), STORE, *first, says("Committed."), user("push it"), *amended, *ended
    one = digest(conversation(*asked), 3_000)
    assert 'commit this now → c05e70b "x"' in rendered(one.summary)
    assert "d2b81e4" not in "\n".join(texts(one, Section.COMMANDS))


def test_where_all_is_committed_nothing_is_open() -> None:
    assert is_open(STORE, TESTS, COMMIT) == []


def test_a_commit_that_failed_commits_nothing() -> None:
    failed = ran(
        "git commit -am x", "error: gpg failed to sign the data\nfatal: failed to write commit object", is_error=True
    )
    assert "Not committed: store.py" in is_open(STORE, failed)


def test_of_changes_that_a_commit_without_a_result_may_hold_nothing_is_stated() -> None:
    shown = ran("git diff store.py", "-a\n+b")
    assert "Not committed: store.py" in is_open(STORE, shown)
    assert is_open(STORE, shown, call("Bash", command="git add store.py && git commit -m 'Store UTC'")) == []


def test_where_git_is_not_used_nothing_is_stated_of_commits() -> None:
    assert is_open(STORE, CLOCK) == []


def test_where_the_user_may_commit_nothing_is_called_uncommitted() -> None:
    looked = ran("git log --oneline -3", "9e00b6e Add a clock"), ran("git diff main...HEAD --stat", " store.py | 2 +-")
    assert is_open(ran("git status", "On branch main"), STORE, *looked) == []
    clean = ran("git fetch && git status", "On branch main\nnothing to commit, working tree clean")
    assert is_open(COMMIT, STORE, clean) == []


def test_what_git_says_in_another_folder_is_nothing_of_this_work_tree() -> None:
    elsewhere = (
        ran("cd /home/ada/trial && git commit -am try", "[trial 9e00b6e] try\n 1 file changed"),
        ran("cd /home/ada/trial && git reset --hard", "HEAD is now at 9e00b6e try"),
        ran("git -C /home/ada/trial branch", "* trial\n  main"),
        ran("cd ../trial && git status", "On branch trial\nChanges not staged for commit:\n\tmodified:   page.py"),
    )
    one = digest(conversation(user("store the times in UTC"), STORE, COMMIT, CLOCK, *elsewhere), 3_000)
    assert texts(one, Section.PLAN) == ["Not committed: clock.py"]
    assert any("utc-times" in text for text in texts(one, Section.COMMANDS))
    assert not any("branch trial" in text for text in texts(one, Section.COMMANDS))
    page = (call("Edit", "p", file_path="lib/page.py", old_string="a", new_string="b"), answer("ok", "p"))
    beside = ran("cd ../lib && git status", "On branch of-lib\nnothing to commit")
    one = digest(conversation(user("store the times in UTC"), STORE, page, beside), 3_000)
    assert "branch of-lib, no commit in these records" in texts(one, Section.COMMANDS)


def test_a_commit_in_another_repository_whose_files_were_edited_too_is_none_of_this_work_tree() -> None:
    gate = (call("Edit", "g", file_path="../../gates/gate.py", old_string="a", new_string="b"), answer("ok", "g"))
    log = ran("cd ../../gates && git log --oneline -1", "ba8e2c6 Merge pull request #47 from ada/gates")
    there = ran("cd ../../gates && git commit -am 'Open it'", "[open 9e00b6e] Open it\n 1 file changed")
    one = digest(conversation(user("store the times in UTC"), STORE, gate, COMMIT, log, there), 3_000)
    facts = texts(one, Section.COMMANDS)
    assert "branch utc-times, no push seen" in facts
    assert any("(../../gates)" in text and "9e00b6e" in text for text in facts)
    assert not any("ba8e2c6" in text for text in facts)


def test_where_all_is_done_in_a_work_tree_below_the_directory_its_branch_and_commits_count() -> None:
    tree = "/srv/tides/.claude/worktrees/utc"
    edit = call("Edit", "1", file_path=f"{tree}/store.py", old_string="a", new_string="b"), answer("ok", "1")
    taken = ran(f"cd {tree} && git add store.py && git commit -m UTC", "[utc 4f1c2aa] UTC\n 1 file")
    notes = call("Write", "2", file_path="/srv/tides/notes.py", content="a = 1"), answer("ok", "2")

    def facts(*messages: Message | tuple[Message, ...], there: int = 2) -> tuple[list[str], list[str]]:
        asked = user("store the times in UTC"), ran("git branch --show-current", "main")
        session = conversation(*asked, *messages, taken, cwd="/srv/tides")
        records = [*session.records]
        records[-there:] = (replace(one, value={"cwd": tree}) for one in records[-there:])  # the shell was there
        one = digest(replace(session, records=tuple(records)), 3_000)
        assert texts(one, Section.PLAN) == []
        return texts(one, Section.FILES), texts(one, Section.COMMANDS)

    files, shown = facts(edit)
    assert files == [".claude/worktrees/utc/store.py — edited, in commit 4f1c2aa"]
    assert "branch utc in .claude/worktrees/utc, no push seen" in shown
    before = ran(f"cd {tree} && git add store.py && git commit -m clock", "[utc 1a2b3c4] clock\n 1 file")
    again = call("Edit", "3", file_path=f"{tree}/store.py", old_string="b", new_string="c"), answer("ok", "3")
    assert facts(edit, before, again, there=6)[0] == [
        ".claude/worktrees/utc/store.py — edited ×2, in commit 1a2b3c4, 4f1c2aa"
    ]
    assert any(text.startswith("branch main") for text in facts(edit, notes)[1])


def test_a_commit_in_the_folder_above_the_one_of_the_session_is_of_this_work_tree() -> None:
    def edit(number: str, name: str) -> tuple[Message, ...]:
        path = f"/srv/tides/app/{name}"
        return call("Edit", number, file_path=path, old_string="a", new_string="b"), answer("ok", number)

    looked = ran("cd /srv/tides && git diff --stat", " app/store.py | 2 +-\n app/zone.py | 2 +-\n 2 files changed")
    taken = ran(
        "cd /srv/tides && git add app/store.py app/zone.py && git commit -m UTC", "[main 4f1c2aa] UTC\n 2 files"
    )
    back = call("Edit", "z", file_path="/srv/tides/app/zone.py", old_string="b", new_string="a"), answer("ok", "z")
    session = user("store the times in UTC"), edit("1", "store.py"), edit("2", "zone.py"), looked, taken
    one = digest(conversation(*session, cwd="/srv/tides/app"), 3_000)
    assert texts(one, Section.FILES) == [f"{name} — edited, in commit 4f1c2aa" for name in ("zone.py", "store.py")]
    assert "branch main, no push seen" in texts(one, Section.COMMANDS)
    again = ran("cd /srv/tides && git add app/zone.py && git commit -m Back", "[main 5a2b3cc] Back\n 1 file")
    assert texts(digest(conversation(*session, back, again, cwd="/srv/tides/app"), 3_000), Section.PLAN) == []


def test_what_is_committed_in_a_folder_for_tries_is_no_outcome_of_the_request_and_holds_none_of_its_files() -> None:
    tried = ran(
        "go build ./... && cd /tmp && mkdir try && cd try && git init && echo a > test.txt && git add . "
        "&& git commit -m 'Initial commit'",
        "[main (root-commit) ba18cf6] Initial commit\n 1 file changed",
    )
    one = digest(conversation(user("store the times in UTC"), STORE, tried, user("go on")), 3_000)
    assert texts(one, Section.FILES) == ["store.py — edited"]
    assert not any("ba18cf6" in text for section in (Section.TASK, Section.USER) for text in texts(one, section))
    assert not any("ba18cf6" in text for text in texts(one, Section.COMMANDS))


def test_tests_that_passed_before_the_newest_edits_are_stated_to_be_older() -> None:
    assert is_open(STORE, TESTS, CLOCK) == ["Passed before the newest edits of clock.py: `pytest -q`"]


def test_every_check_that_is_older_than_the_edits_is_stated_to_be_so_not_only_the_newest() -> None:
    lint = ran("ruff check .", "All checks passed!")
    one = digest(conversation(user("store the times in UTC"), STORE, lint, CLOCK, TESTS, STORE), 3_000)
    assert "Passed before the newest edits of store.py: `pytest -q`" in texts(one, Section.PLAN)
    assert "Passed before the newest edits of store.py, clock.py: `ruff check .`" in texts(one, Section.PLAN)
    assert texts(one, Section.COMMANDS) == [
        "`pytest -q` → ok before the newest edits: 212 passed in 3s",
        "`ruff check .` → ok before the newest edits: All checks passed!",
    ]


def test_a_check_is_not_older_than_edits_of_prose_or_of_another_language() -> None:
    notes = (call("Edit", "n", file_path="NOTES.md", old_string="a", new_string="b"), answer("ok", "n"))
    page = (call("Edit", "p", file_path="web/page.ts", old_string="a", new_string="b"), answer("ok", "p"))
    assert is_open(STORE, TESTS, notes, page) == []
    # What a task runs it may have said in another run, of which not only the end was shown.
    checked = ran("make test", "$ pytest tests\n2 passed"), page, ran("make test | tail -1", "2 passed")
    assert is_open(STORE, *checked, page) == []


def test_what_looks_for_a_checker_is_no_check() -> None:
    assert is_open(ran("which mypy && file $(which mypy)", "/usr/bin/mypy: script"), STORE) == []


@pytest.mark.parametrize("path", ["docs/review", "src/clock-test.exe"])
def test_a_folder_or_a_program_that_is_thrown_away_makes_no_check_older(path: str) -> None:
    assert is_open(STORE, TESTS, ran(f"rm -rf {path}", "")) == []


def test_a_look_at_a_folder_that_is_named_like_a_check_is_no_part_of_one() -> None:
    chain = ran("ls -la tasks/lint; file tasks/lint; ruff check .", "All checks passed!")
    assert is_open(chain, STORE, ran("ruff check .", "All checks passed!")) == []


GO = (call("Edit", "g", file_path="store/page.go", old_string="a", new_string="b"), answer("ok", "g"))


def test_checks_are_compared_with_no_more_than_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    monkeypatch.setattr(checks, "contains", lambda whole, part: compared.append(part) or False)
    many = [ran(f"pytest tests/test_{number}.py", "1 passed in 1s") for number in range(300)]
    digest(conversation(user("Test each part."), *many, CLOCK))
    assert 0 < len(compared) <= checks.MOST_CHECKS**2


def test_a_check_that_others_took_the_place_of_is_not_stated_of() -> None:
    old = ran("go vet ./store", "")
    assert any("go vet" in text for text in is_open(STORE, old, *[TESTS] * 3, GO))
    assert not any("go vet" in text for text in is_open(STORE, old, *[TESTS] * 12, GO))


def test_a_narrow_check_that_a_later_one_contains_is_not_stated_of_again() -> None:
    narrow = ran("pytest -q tests/test_store.py", "3 passed in 1s")
    assert is_open(narrow, STORE, TESTS) == []


def test_a_chain_whose_checks_were_each_run_again_is_not_stated_of() -> None:
    chain = ran("mise run lint && mise run fmt", "0 issues.")
    assert is_open(chain, CLOCK, ran("mise run lint", "0 issues.")) == []
    unit = ran("mise run test", "[test] $ pytest tests\n2 passed")
    every = ran("mise run test:ci", "[test:ci] $ pytest -x tests\n2 passed")
    assert is_open(unit, CLOCK, every) == []
    assert len(is_open(unit, CLOCK, ran("mise run lint", "0 issues."))) == 1


def test_of_a_chain_only_the_checks_that_were_not_run_again_are_stated() -> None:
    chain = ran("cd src && go test ./store/... ./clock/... && golangci-lint run ./store/...", "ok\n0 issues.")
    edited = (call("Edit", "g", file_path="src/clock.go", old_string="a", new_string="b"), answer("ok", "g"))
    again = ran("cd src && golangci-lint run && go test ./store/...", "0 issues.\nok")
    (stated,) = is_open(chain, edited, again)
    assert stated.endswith(": `go test ./store/... ./clock/...`")


def test_tests_that_passed_after_the_newest_edits_are_no_open_matter() -> None:
    assert is_open(STORE, TESTS, CLOCK, TESTS) == []


def test_a_throw_away_file_is_neither_uncommitted_nor_makes_tests_older() -> None:
    scratch = (call("Write", "w", file_path="/tmp/probe.py", content="x"), answer("ok", "w"))
    assert is_open(STORE, TESTS, COMMIT, scratch) == []


def test_a_file_in_the_user_s_folder_is_in_no_commit_of_the_work_tree() -> None:
    theme = (call("Write", "t", file_path="~/.themes/dark.json", content="x"), answer("ok", "t"))
    one = digest(conversation(user("store the times in UTC"), STORE, theme, COMMIT, theme), 3_000)
    assert texts(one, Section.PLAN) == []
    assert texts(one, Section.FILES)[0] == "~/.themes/dark.json — created, edited"
    assert texts(one, Section.FILES)[1] == "store.py — edited, in commit 4f1c2aa"


def test_edits_that_were_stashed_are_put_away_until_they_are_brought_back() -> None:
    edit = (call("Edit", "e", file_path="src/a.py", old_string="x", new_string="y"), answer("ok", "e"))
    away = ran("git stash", "Saved working directory and index state WIP on main: 1dda1ed fix")
    one = digest(conversation(user("mend it"), edit, away), 2_000)
    assert "Put away by git stash: src/a.py" in texts(one, Section.PLAN)
    later = (user("first put that away, I want to see how it was"), away, user("how do I see it?"), says("Open it."))
    one = digest(conversation(user("mend it"), edit, *later), 2_000)
    why = 'Put away by git stash: src/a.py — "first put that away, I want to see how it was"'
    assert why in texts(one, Section.PLAN)
    again = digest(conversation(summary(rendered(one.summary)), user("go on")), 900)
    assert "Put away by git stash: src/a.py" in texts(again, Section.PLAN)
    back = ran("git stash pop", "Dropped refs/stash@{0}")
    one = digest(conversation(user("mend it"), edit, away, back), 2_000)
    assert "Not committed: src/a.py" in texts(one, Section.PLAN)


def test_a_file_that_was_put_back_is_not_uncommitted() -> None:
    one = digest(conversation(user("mend it"), COMMIT, STORE, ran("git checkout -- store.py", "")), 2_000)
    assert texts(one, Section.PLAN) == []
    assert texts(one, Section.FILES) == ["store.py — edited, changes thrown away"]


def test_a_try_after_the_commit_that_was_put_back_leaves_the_committed_state() -> None:
    tried = (call("Edit", "t", file_path="store.py", old_string="b", new_string="c"), answer("ok", "t"))
    put_back = ran("git checkout -- store.py && echo back", "back")
    one = digest(conversation(user("mend it"), STORE, COMMIT, TESTS, tried, put_back), 2_000)
    assert texts(one, Section.PLAN) == []
    assert texts(one, Section.FILES) == ["store.py — edited, in commit 4f1c2aa"]


def test_a_hard_reset_throws_away_what_was_edited_since_the_last_commit() -> None:
    one = digest(conversation(user("mend it"), STORE, COMMIT, CLOCK, ran("git reset --hard", "HEAD is now at 4f1c2aa")))
    assert texts(one, Section.PLAN) == []
    assert texts(one, Section.FILES) == [
        "clock.py — edited, changes thrown away",
        "store.py — edited, in commit 4f1c2aa",
    ]


def test_a_commit_after_the_newest_push_is_not_pushed() -> None:
    pushed = ran("git push", "To git.example:a/b.git\n   1a2b3c4..4f1c2aa  utc-times -> utc-times")
    again = ran("git commit -am 'Mend it'", "[utc-times 7e00b6e] Mend it\n 1 file changed")
    assert is_open(STORE, COMMIT, pushed, CLOCK, again) == ['Committed, not pushed: 7e00b6e "Mend it"']
    line = "git push origin main && git ls-remote origin | grep -i log || true; git status --short"
    in_line = ran(line, "To https://git.example/a.git\n   4f1c2aa..7e00b6e  main -> main\n## main...origin/main")
    assert not any("pushed" in text for text in is_open(STORE, COMMIT, pushed, CLOCK, again, in_line))
    assert is_open(STORE, COMMIT, pushed, CLOCK, again, pushed) == []
    unknown = ran("git commit -qam 'Mend it' && git push -q 2>&1 | tail -1; echo pushed", "pushed")
    assert not any("pushed" in text for text in is_open(STORE, COMMIT, pushed, CLOCK, unknown))
    tried = ran("git push --dry-run", "To git.example:a/b.git\n   4f1c2aa..7e00b6e  utc-times -> utc-times")
    assert is_open(STORE, COMMIT, pushed, CLOCK, again, tried) == ['Committed, not pushed: 7e00b6e "Mend it"']


@pytest.mark.parametrize(
    ("order", "is_stated"),
    [
        ("Commit each step, and do not push.", False),
        ("Never commit or push without my word.", False),
        ("Do not push to main.", True),
        ("Never push --force.", True),
    ],
)
def test_what_is_not_to_be_pushed_is_not_open(order: str, is_stated: bool) -> None:
    pushed = ran("git push", "To git.example:a/b.git\n   1a2b3c4..4f1c2aa  utc-times -> utc-times")
    again = ran("git commit -am 'Mend it'", "[utc-times 7e00b6e] Mend it\n 1 file changed")
    one = digest(conversation(user(f"mend it. {order}"), STORE, COMMIT, pushed, CLOCK, again))
    assert ('Committed, not pushed: 7e00b6e "Mend it"' in texts(one, Section.PLAN)) is is_stated
    assert is_open(STORE, COMMIT) == []


def test_what_a_skill_forbids_to_push_is_not_open() -> None:
    pushed = ran("git push", "To git.example:a/b.git\n   1a2b3c4..4f1c2aa  utc-times -> utc-times")
    again = ran("git commit -am 'Mend it'", "[utc-times 7e00b6e] Mend it\n 1 file changed")
    skill = '<skill name="commit" location="/skills/commit">\n- **Commit but do NOT push.**\n</skill>'
    assert is_open(STORE, COMMIT, pushed, CLOCK, user(skill), again) == []
    assert is_open(STORE, COMMIT, pushed, CLOCK, user("/skill:commit"), again) == [
        'Committed, not pushed: 7e00b6e "Mend it"'
    ]


def test_what_a_move_or_an_appending_writes_over_was_not_created_by_it() -> None:
    read = (call("Read", "r", file_path="store_test.py"), answer("def test_a(): pass", "r"))
    moved = ran("mv fixed.py store_test.py", "")
    appended = ran("cat >> clock_test.py <<'EOF'\nx\nEOF", "")
    one = digest(conversation(user("mend the tests"), read, moved, appended), 2_000)
    assert {"clock_test.py — edited", "store_test.py — edited"} <= set(texts(one, Section.FILES))


def test_a_command_that_names_the_work_tree_itself_is_one_of_the_work() -> None:
    edit = (call("Edit", "e", file_path="/data/app/src/a.py", old_string="a", new_string="b"), answer("ok", "e"))
    entered = ran("git -C /data/app checkout -b drift", "Switched to a new branch 'drift'")
    one = digest(conversation(user("mend the clock"), edit, entered, cwd="/data/app"), 1_500)
    assert "branch drift, no commit in these records" in texts(one, Section.COMMANDS)


def test_a_whole_path_on_a_drive_is_none_below_the_folder_where_the_shell_is() -> None:
    transcript = conversation(
        user("Try the clock."),
        call("Write", file_path="D:\\tide\\src\\cmd\\try.go", content="package main"),
        answer("File created successfully"),
        *ran("go run ./cmd && rm -rf D:/tide/src/cmd", "ok"),
    )
    places = ("D:\\tide", "D:\\tide", "D:\\tide", "D:\\tide\\src", "D:\\tide\\src")
    named = zip(transcript.records, places, strict=True)
    records = tuple(replace(record, value={"cwd": place}) for record, place in named)
    assert texts(digest(replace(transcript, records=records)), Section.FILES) == ["src/cmd/try.go — created, deleted"]


def test_a_file_that_was_edited_again_since_it_was_committed_is_known_by_both() -> None:
    added = ran("git add store.py && git commit -m x", "[main 4f1c2aa] x\n 1 file changed")
    one = digest(conversation(user("store the times in UTC"), STORE, added, CLOCK, STORE), 3_000)
    assert {"store.py — edited ×2, again since commit 4f1c2aa", "clock.py — edited"} <= {
        text.partition(":")[0] for text in texts(one, Section.FILES)
    }


def test_a_file_that_tools_and_shells_name_with_different_slashes_is_one() -> None:
    made = "[main 1a2b3c4] Read the clock\n 1 file changed"
    transcript = conversation(
        user("Fix the clock."),
        call("Edit", file_path="D:\\tide\\src\\clock.py", old_string="a = 1", new_string="a = 2"),
        answer("Done."),
        *ran("cd /d/tide && git add src/clock.py && git commit -m 'Read the clock'", made),
    )
    records = tuple(replace(record, value={"cwd": "D:\\tide"}) for record in transcript.records)
    text = rendered(digest(replace(transcript, records=records)).summary)
    assert "- src/clock.py — edited, in commit 1a2b3c4" in text
    assert "Not committed" not in text


def test_a_file_that_git_passes_over_is_not_called_uncommitted() -> None:
    edits = [
        (call("Write", name, file_path=f"/data/app/{name}", content="a"), answer("ok", name))
        for name in (".env.local", "src/a.py")
    ]
    log = ran("git status --short && git log --oneline -3", "?? src/\n4f1c2aa Store UTC")
    for status in (ran("git status --short", "?? src/"), log):
        one = digest(conversation(user("mend the clock"), *edits, status, cwd="/data/app"), 1_500)
        assert "Not committed: src/a.py" in texts(one, Section.PLAN)


def test_a_file_that_was_moved_into_an_ignored_folder_is_in_no_commit() -> None:
    wrote = (call("Write", "w", file_path="doc/plans/drift.md", content="# Drift"), answer("ok", "w"))
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    steps = (
        ran("git add -A && git status", refused, is_error=True),
        ran("mkdir -p doc/local && mv doc/plans/drift.md doc/local/ && rmdir doc/plans", ""),
        ran("git status", "On branch utc-times\nUntracked files:\n\tdoc/new/\n\tstore.py"),
        ran("git add store.py", ""),
        ran("git commit -m 'Store UTC'", "[utc-times 4f1c2aa] Store UTC\n 1 file changed"),
    )
    one = digest(conversation(user("store the times in UTC"), STORE, wrote, *steps), 3_000)
    assert "doc/plans/drift.md — created, moved to doc/local/" in "\n".join(texts(one, Section.FILES))
    assert [text for text in texts(one, Section.FILES) if "4f1c2aa" in text] == ["store.py — edited, in commit 4f1c2aa"]
    assert texts(one, Section.PLAN) == []


def test_a_file_that_git_lists_as_changed_is_not_committed_whoever_changed_it() -> None:
    status = ran("git status", "On branch main\n\tmodified:   gauges/export.py\n\tmodified:   clock.py")
    assert is_open(STORE, COMMIT, CLOCK, status) == [
        "Not committed: clock.py",
        "Also listed by git, not committed: gauges/export.py",
    ]
    untracked = (
        'Untracked files:\n  (use "git add <file>..." to include)\n\tgauges/keys.json\n\tnotes/\n\nno changes added'
    )
    new = ran("git status", f"On branch main\n\tmodified:   clock.py\n\n{untracked}")
    assert is_open(STORE, COMMIT, CLOCK, new) == [
        "Not committed: clock.py",
        "Also listed by git, not committed: gauges/keys.json",
    ]
    formatted = ran("gofmt -w store.py && git diff --stat", " store.py | 1 -\n 1 file changed, 1 deletion(-)")
    assert is_open(STORE, COMMIT, formatted) == ["Not committed: store.py"]


def test_what_git_listed_as_changed_stays_so_past_a_commit_of_other_files_that_were_named() -> None:
    status = ran("git status", "On branch main\n\tmodified:   gauges/export.py\n\tmodified:   store.py")
    named = ran("git add store.py && git commit -m x", "[main 4f1c2aa] x\n 1 file changed")
    assert is_open(STORE, status, named) == ["Also listed by git, not committed: gauges/export.py"]
    for taking in (
        ran("git add gauges && git commit -m y", "[main 5b1c2aa] y\n 1 file changed"),
        ran("git pull", "ok"),
    ):
        assert is_open(STORE, status, named, taking) == []


def test_what_git_listed_before_the_newest_commit_is_no_open_matter() -> None:
    status = ran("git status --short", " M gauges/export.py\n M store.py")
    assert is_open(STORE, status, COMMIT) == []
    assert is_open(STORE, status, ran("git stash", "Saved working directory")) == ["Put away by git stash: store.py"]


def test_what_a_commit_of_somebody_else_may_hold_is_not_called_uncommitted() -> None:
    before = ran("git log --oneline -5", "9e00b6e Add a clock\n8d0f11a Begin")
    after = ran("git log --oneline origin/main..HEAD", "c48f60d Store UTC\n9e00b6e Add a clock")
    shown = ran("git diff clock.py", "-a\n+b")
    one = digest(conversation(user("store the times in UTC"), before, STORE, after, CLOCK, shown), 3_000)
    assert texts(one, Section.PLAN) == ["Not committed: clock.py"]
    assert "committed outside this session: c48f60d Store UTC" in texts(one, Section.COMMANDS)
    branch = ran("git log main..HEAD --oneline", "9e00b6e Add a clock")
    listed = ran("git diff --stat", " store.py | 2 +-")
    assert is_open(branch, STORE, listed, after) == []
    of_both = ran("git log main...HEAD --oneline", "c48f60d Store UTC")
    assert is_open(branch, STORE, listed, of_both) == ["Not committed: store.py"]
    own = ran("git log --oneline -5", "4f1c2aa Store UTC\n9e00b6e Add a clock")
    assert is_open(before, STORE, COMMIT, CLOCK, own) == ["Not committed: clock.py"]
    pulled = ran("git pull", "Updating 9e00b6e..c48f60d")
    assert is_open(before, STORE, pulled, after, ran("git diff", "-a\n+b")) == ["Not committed: store.py"]


def test_a_commit_of_a_branch_that_git_said_was_in_step_is_not_pushed() -> None:
    status = ran(
        "git status", "On branch utc-times\nYour branch is up to date with 'origin/utc-times'.\nnothing to commit"
    )
    assert is_open(STORE, status, COMMIT) == ['Committed, not pushed: 4f1c2aa "Store UTC"']
    pushed = ran("git push", "To host\n   d2b81e4..9e00b6e  utc-times -> utc-times")
    assert is_open(pushed, STORE, COMMIT, status) == []


def test_a_log_with_a_graph_names_no_branch() -> None:
    log = ran("git log --oneline --graph", "* 5df1636 Store UTC\n* 9e00b6e Add a clock")
    facts = texts(digest(conversation(user("store the times in UTC"), STORE, COMMIT, log), 3_000), Section.COMMANDS)
    assert "branch utc-times, no push seen" in facts


def test_a_check_that_failed_since_it_passed_is_not_said_to_have_passed() -> None:
    failed = ran("pytest -q", "FAILED test_store.py::test_utc\n1 failed", is_error=True)
    assert not any("Passed before" in text for text in is_open(TESTS, STORE, failed, STORE))


def test_what_the_user_runs_himself_shows_the_state_of_the_work_and_asks_nothing() -> None:
    typed = user("<bash-input>git status</bash-input>")
    shown = user(
        "<bash-stdout>On branch main\nnothing to commit, working tree clean</bash-stdout><bash-stderr></bash-stderr>"
    )
    one = digest(conversation(user("store the times in UTC"), COMMIT, STORE, typed, shown), 3_000)
    assert texts(one, Section.PLAN) == []
    assert texts(one, Section.TASK)[0].startswith("Asked: store the times in UTC")
    assert "branch main" in texts(one, Section.COMMANDS), "the commit is on another branch"


def test_a_file_outside_the_work_tree_makes_no_check_older() -> None:
    theme = (call("Write", "t", file_path="~/.themes/dark.py", content="a = 1"), answer("ok", "t"))
    assert is_open(STORE, TESTS, theme) == []


def test_a_file_on_another_place_of_a_drive_is_outside_the_work_tree() -> None:
    notes = (call("Write", "n", file_path=r"C:\Users\ada\notes\tides.md", content="a"), answer("ok", "n"))
    assert is_open(STORE, COMMIT, notes) == []


def test_where_no_file_of_the_work_tree_was_changed_one_outside_of_it_is_not_to_be_committed() -> None:
    read = call("Read", "r", file_path="src/store.py"), answer("a = 1", "r")
    notes = call("Write", "n", file_path="/home/ada/.notes/tides.md", content="a"), answer("ok", "n")
    status = ran("git status --short", "")
    assert is_open(read, status, notes) == []


def test_a_heading_in_what_git_shows_is_no_branch() -> None:
    shown = ran("git diff main...HEAD", "## Interface\n* one\n+text")
    marked = ran("git status -sb", "## utc-times...origin/utc-times [ahead 1]\n M store.py")
    listed = ran("git branch -vv", "  main 9e00b6e a\n* drift 4f1c2aa b")
    for runs, branch in (((shown,), ""), ((marked, shown), "utc-times, ahead 1"), ((marked, listed, shown), "drift")):
        facts = texts(digest(conversation(user("store the times in UTC"), STORE, *runs)), Section.COMMANDS)
        assert [text for text in facts if text.startswith("branch")] == ([f"branch {branch}"] if branch else [])


def test_where_more_commits_are_not_pushed_than_are_named_it_says_so() -> None:
    pushed = ran("git push", "To host\n   d2b81e4..9e00b6e  utc-times -> utc-times")
    made = [ran("git commit -am x", f"[utc-times 4f1c2a{n}] Step {n}\n 1 file changed") for n in range(4)]
    assert is_open(STORE, pushed, *made)[-1].startswith('Committed, not pushed: …, 4f1c2a1 "Step 1", ')


def test_where_git_named_no_branch_the_records_do_and_that_no_commit_is_shown_is_stated_of_changes_alone() -> None:
    def branch_in(*messages: Message | tuple[Message, ...]) -> list[str]:
        session = conversation(user("store the times in UTC"), *messages)
        named = tuple(replace(record, value={"gitBranch": "utc-times"}) for record in session.records)
        return texts(digest(replace(session, records=named), 1_500), Section.COMMANDS)

    assert branch_in(STORE) == ["branch utc-times, no commit in these records"]
    assert branch_in(says("I only looked.")) == ["branch utc-times"]
    assert branch_in(STORE, COMMIT)[0] == "branch utc-times, no push seen"
    for words in ("I committed that, go on", "the last commit is fine"):
        assert branch_in(STORE, user(words)) == ["branch utc-times"]
    asked = user("what does the page show once somebody makes a commit?")
    assert branch_in(asked, STORE) == ["branch utc-times, no commit in these records"]


OFFER = says("The export could store the times in UTC as well. Want me to add that?")
OFFERED = 'Offered, not answered: "The export could store the times in UTC as well. Want me to add that?"'


def test_an_offer_that_the_user_only_asks_more_about_is_open() -> None:
    asks_back = (user("what does the export store now?"), says("Local times, without a zone."))
    assert OFFERED in is_open(OFFER, *asks_back, user("and the import?"), says("UTC."))
    assert OFFERED not in is_open(OFFER, *asks_back, user("yes, add it"), says("Done."))
    assert OFFERED not in is_open(OFFER, user("no, what does it store now?"), says("Local times."))
    assert OFFERED not in is_open(OFFER, *asks_back, *CLOCK, says("The clock is edited."))
    assert OFFERED not in is_open(OFFER, user("write the changelog"), says("Written."))


def test_a_commit_that_was_reset_since_is_no_fact() -> None:
    first = ran("git commit -am 'Store UTC'", "[main d2b81e4] Store UTC\n 1 file changed")
    back = ran("git reset --hard HEAD~1", "HEAD is now at 9571a23 Add the gauges")
    for commits, is_stated in (((first,), True), ((first, back), False), ((first, back, *CLOCK, COMMIT), False)):
        one = digest(conversation(user("store the times in UTC"), *STORE, *commits), 3_000)
        assert ("d2b81e4" in "\n".join(texts(one, Section.COMMANDS))) is is_stated


def test_the_size_of_what_differs_is_no_outcome_of_a_check_before_it() -> None:
    sizes = "".join(f" gauges_{n}.sh | 30 {'+' * 30}\n" for n in range(20))
    run = ran("bash -n gauges.sh && git diff --stat", f"{sizes} 20 files changed, 600 insertions(+)")
    facts = texts(digest(conversation(user("store the times in UTC"), *STORE, run), 3_000), Section.COMMANDS)
    assert "20 files changed" not in "\n".join(facts)


def test_where_most_calls_name_another_work_tree_paths_are_as_seen_from_there_and_it_is_named_once() -> None:
    tree = "/data/app__trees/tide"
    edit = (
        call("apply_patch", "e", input=f"*** Begin Patch\n*** Update File: {tree}/clock.py\n+x = 1\n*** End Patch"),
    )
    looks = [
        (call("exec_command", f"l{i}", cmd=f"cat part{i}.py", workdir=tree), answer(f"x = {i}", f"l{i}"))
        for i in range(8)
    ]
    made = (
        call("exec_command", "c", cmd="git commit -am 'Set the clock'", workdir=tree),
        answer("Wall time: 0.1 seconds\nOutput:\n[tide 4f1c2aa] Set the clock\n 1 file changed", "c"),
    )
    messages = (user("set the clock"), edit, *looks, made, says("Set."))
    one = digest(conversation(*messages, cwd="/data/app"), 2_000)
    assert "clock.py — edited, in commit 4f1c2aa" in texts(one, Section.FILES)
    assert f"branch tide in {tree}, no push seen" in texts(one, Section.COMMANDS)
    assert texts(one, Section.PLAN) == []


def test_what_codex_tells_of_a_call_before_its_output_is_none_of_it() -> None:
    (_, result) = events_of(
        call("exec_command", "1", cmd="bun lint"),
        answer("Chunk ID: 1a2b3c\nWall time: 0.3 seconds\nProcess exited with code 0\nOutput:\nChecked 763 files", "1"),
    )
    assert result.text == "Process exited with code 0\nChecked 763 files"


def test_tests_that_were_written_and_not_run_are_open() -> None:
    written = (call("Write", "1", file_path="tests/tide.spec.ts", content="it('turns')"), answer("ok", "1"))
    checked = ran("npx tsc --noEmit tests/tide.spec.ts", "")
    asked = user("write tests for the tide")
    one = digest(conversation(asked, written, checked, says("Written.")), 2_000)
    assert "Tests edited and not run: tests/tide.spec.ts" in texts(one, Section.PLAN)
    done = digest(conversation(asked, written, ran("pnpm --filter web test", "1 passed"), says("Written.")), 2_000)
    assert not any("not run" in text for text in texts(done, Section.PLAN))
    for by_name in ("node tests/tide.spec.ts", "cd ~/tides && node tests/tide.spec.ts; echo done"):
        done = digest(conversation(asked, written, ran(by_name, "it turns"), says("Written.")), 2_000)
        assert not any("not run" in text for text in texts(done, Section.PLAN))


def test_what_was_changed_before_the_session_did_anything_is_told_from_its_own_changes() -> None:
    status = ran("git status --short", " M tide.py\n M clock.py")
    later = ran("git status --short", " M tide.py\n M clock.py\n M store.py")
    assert is_open(status, STORE, CLOCK, later) == [
        "Not committed: clock.py, store.py",
        "Changed before this session, not committed: tide.py",
    ]


def test_what_only_a_later_status_lists_was_not_changed_before_the_session() -> None:
    linked = (ran("git status --short", " M tide.py"), ran("gauge link --yes", "Linked; added to .gitignore"))
    status = ran("git status --short", " M .gitignore\n M tide.py")
    assert is_open(*linked, status, STORE, ran("git status --short", " M .gitignore\n M tide.py\n M store.py")) == [
        "Not committed: store.py",
        "Also listed by git, not committed: .gitignore",
        "Changed before this session, not committed: tide.py",
    ]


def test_a_check_is_older_than_what_a_merge_brought_and_not_than_one_that_brought_nothing() -> None:
    def facts(output: str) -> list[str]:
        session = conversation(user("merge it"), ran("make test", "12 passed"), ran("git merge origin/main", output))
        return [text for text in texts(digest(session, 900), Section.COMMANDS) if "make test" in text]

    assert "before the newest edits" in facts("Auto-merging tide.py\nMerge made by the 'ort' strategy.")[0]
    assert "before the newest edits" not in facts("Already up to date.")[0]
    fast = "Updating 08982b5..f1558ec\nFast-forward\n {} | 33 +++\n 1 file changed, 33 insertions(+)"
    assert "before the newest edits" in facts(fast.format("lib/tide.py"))[0]
    assert "before the newest edits" not in facts(fast.format("docs/tide.mdx"))[0]


def test_only_its_own_file_fixes_a_conflict() -> None:
    merge = ran("git merge origin/main", "Auto-merging b.py\nCONFLICT (content): Merge conflict in a.py", is_error=True)
    edits = [
        (call("Edit", name, file_path=name, old_string="a", new_string="b"), answer("ok", name))
        for name in ("a.py", "b.py")
    ]
    ended = ran("git commit -m merge", "[main 1234abc] merge")
    one = digest(conversation(user("merge it"), merge, *edits, ended), 900)
    assert any(text.endswith("fixed by a.py") for text in texts(one, Section.ERRORS))


def test_a_check_of_a_package_is_not_older_than_edits_of_an_app() -> None:
    def edited(path: str) -> tuple[Message, ...]:
        return call("Edit", path, file_path=path, old_string="a", new_string="b"), answer("ok", path)

    package, app = edited("packages/tide/level.ts"), edited("apps/web/page.ts")
    checked = ran("pnpm --filter @acme/tide test", "12 passed")
    assert not any("Passed before" in text for text in is_open(package, checked, app))
    assert any("Passed before" in text for text in is_open(package, checked, package))
    # What is no folder that is known may be the name of the app.
    assert any("Passed before" in text for text in is_open(ran("pnpm --filter @acme/site test", "12 passed"), app))


def test_of_runs_of_a_check_the_one_that_names_what_failed_stands_for_the_one_that_counts_it() -> None:
    counted = ran("npm test | tail -3", "Test Suites: 2 failed, 23 passed, 25 total", is_error=True)
    named = ran('npm test | grep -E "FAIL|●"', "FAIL gauge.spec.ts\n  ● Gauge › reads › the level\n")
    (line,) = [text for text in is_open(STORE, counted, named) if "npm test" in text]
    assert "Gauge › reads › the level" in line


def test_a_commit_in_a_work_tree_that_was_made_for_a_try_is_none_of_the_work() -> None:
    edit = call("Edit", "1", file_path="src/clock.py", old_string="a", new_string="b"), answer("ok", "1")
    tried = (
        'T=$(mktemp -d /tmp/check.XXXX)\ngit worktree add --detach "$T" HEAD\n(\n  cd "$T"\n  git add src/clock.py\n'
        '  git commit -m "try the clock"\n)\ngit worktree remove --force "$T"'
    )
    run = ran(tried, "Preparing worktree\n[detached HEAD 1a2b3c4] try the clock\n 1 file changed, 1 insertion(+)")
    shown = rendered(digest(conversation(user("mend the clock"), *edit, *run, says("Done."))).summary)
    assert "src/clock.py — edited [" in shown
    assert "in commit" not in shown


def test_what_git_lists_in_a_review_is_stated_with_its_new_files_whatever_was_looked_at_after_it() -> None:
    status = ran("git status --short", " M src/clock.py\n?? src/tide.py\n?? notes/")
    look = ran("git diff -- src/clock.py", "diff --git a/src/clock.py b/src/clock.py\n@@ -1 +1 @@\n-a = 1\n+a = 2")
    one = digest(conversation(user("review the change of the clock"), *status, *look, says("It drifts.")))
    assert texts(one, Section.PLAN) == [
        "Changed before this session, not committed: src/{tide.py (new to git), clock.py}"
    ]


def test_the_checks_that_a_request_names_are_open_until_they_are_run() -> None:
    plan = user(
        "Implement the following plan:\n\n# Store times in UTC\n\n## Steps\n1. Run `make clean` by hand.\n\n"
        "## Verification\n1. `npm run lint` passes\n2. `npm run dev` and look at the clock\n"
        "```bash\nnpm run test   # all of them\n```\n"
    )

    def left(*messages: object) -> list[str]:
        shown = texts(digest(conversation(plan, *messages), 3_000), Section.PLAN)  # type: ignore[arg-type]
        return [text for text in shown if text.startswith("Asked for as a check")]

    assert left() == []
    assert left(STORE) == ["Asked for as a check and not run: `npm run lint`, `npm run dev`, `npm run test`"]
    assert "`npm run test`" not in left(STORE, ran("npm run test:ci -- clock", "3 passed"))[0]
    run = (*ran("npm run lint:fix", "ok"), *ran("cd app && npm run test 2>&1 | tail -3", "3 passed"))
    assert left(STORE, *run) == ["Asked for as a check and not run: `npm run dev`"]
    assert left(STORE, *run, ran("npm run dev", "listening")) == []


def test_a_file_that_was_made_and_is_gone_again_makes_no_check_older() -> None:
    trial = (call("Write", "t", file_path="src/try_test.py", content="x = 1"), answer("ok", "t"))
    assert is_open(STORE, TESTS, trial, ran("python src/try_test.py; rm src/try_test.py", "1")) == []
    throwaway = (call("Write", "t", file_path="/tmp/try_test.py", content="x = 1"), answer("ok", "t"))
    assert is_open(STORE, TESTS, throwaway) == []


def test_what_the_hook_of_a_commit_runs_is_a_check_after_the_newest_edits() -> None:
    hook = "$ pytest -x\n12 passed in 1s\n[main 1a2b3c4] Set the clock\n 1 file changed"
    assert is_open(STORE, TESTS, CLOCK, ran("git add clock.py store.py && git commit -m 'Set the clock'", hook)) == []


def test_the_task_that_runs_the_tests_ran_again_where_its_runner_did() -> None:
    hook = "$ bun test src/\n 12 pass\n 0 fail\n[main 1a2b3c4] Set the clock\n 1 file changed"
    edited = (call("Edit", "g", file_path="clock.ts", old_string="a", new_string="b"), answer("ok", "g"))
    tests = ran("bun run test", " 12 pass\n 0 fail")
    assert is_open(STORE, tests, edited, ran("git add . && git commit -m 'Set the clock'", hook)) == []
    long = "git add . && git commit -m \"$(cat <<'EOF'\nSet the clock\n\nIt ran late.\nEOF\n)\""
    assert is_open(STORE, tests, edited, ran(long, hook)) == []


def test_a_linter_of_named_files_is_as_old_as_the_edits_of_these() -> None:
    lint = ran("npx eslint clock.ts", "0 errors")
    clock = (call("Edit", "g", file_path="src/clock.ts", old_string="a", new_string="b"), answer("ok", "g"))
    crane = (call("Edit", "h", file_path="src/crane.ts", old_string="a", new_string="b"), answer("ok", "h"))
    assert is_open(clock, lint, crane) == []
    assert is_open(clock, lint, clock) == ["Passed before the newest edits of src/clock.ts: `npx eslint clock.ts`"]


def test_a_lint_script_is_no_older_than_the_linter_that_a_commit_hook_ran() -> None:
    lint = ran("yarn lint", "Done in 3s.")
    clock = (call("Edit", "g", file_path="clock.ts", old_string="a", new_string="b"), answer("ok", "g"))
    hook = (
        "⋯ Running tasks for staged files…\n      ⋯ eslint --fix\n\n✔ eslint --fix\n\n[main 4f1c2aa] x\n 1 file changed"
    )
    assert is_open(lint, clock, ran("git commit -am x", hook)) == []
    other = hook.replace("eslint --fix", "prettier --write")
    assert is_open(lint, clock, ran("git commit -am x", other)) == [
        "Passed before the newest edits of clock.ts: `yarn lint`"
    ]


def test_a_linter_of_a_folder_or_an_app_is_no_older_by_edits_outside_of_it() -> None:
    edit = (call("Edit", "g", file_path="apps/api/src/a.ts", old_string="a", new_string="b"), answer("ok", "g"))
    web = ran("cd /home/ada/clock/apps/web && npx eslint src", "0 errors")
    api = ran("npx eslint 'apps/api/src/**/*.ts'", "0 errors")
    assert is_open(edit, web, edit) == is_open(edit, ran("npx eslint 'apps/web/**/*.ts'", ""), edit) == []
    older = "Passed before the newest edits of apps/api/src/a.ts"
    assert is_open(edit, api, edit) == [f"{older}: `npx eslint 'apps/api/src/**/*.ts'`"]
    assert is_open(edit, ran("npx eslint .", "0 errors"), edit) == [f"{older}: `npx eslint .`"]


def test_where_a_subagent_may_have_edited_it_nothing_is_called_changed_by_no_edit() -> None:
    task = (call("Agent", "a", description="Fix it", prompt="Fix it."), answer("Both are fixed.", "a"))
    status = ran("git status --short", " M page.py\n M store.py")
    assert is_open(STORE, task, status) == ["Not committed: store.py, page.py"]
    assert is_open(STORE, status)[-1] == "Also listed by git, not committed: page.py"


def test_an_option_that_follows_a_placeholder_is_no_file() -> None:
    typed = ran("send <<X\nuse <id> --target <name>--out\nX", "ok")
    assert texts(digest(conversation(user("send it"), typed, ran("echo a >--out", ""))), Section.FILES) == []


@pytest.mark.parametrize("path", [".vscode/launch.json", ".gitignore", ".github/workflows/ci.yml"])
def test_what_an_editor_git_or_a_server_is_told_makes_no_check_older(path: str) -> None:
    edit = call("Edit", "o", file_path=path, old_string="x", new_string="y"), answer("ok", "o")
    told = texts(digest(conversation(user("check it"), ran("pytest", "3 passed"), *edit), 2_000), Section.PLAN)
    assert not any("Passed before" in text for text in told)


def test_the_branch_is_the_one_that_the_newest_record_names() -> None:
    made = ran("git commit -am x", "[utc-times 4f1c2aa] x")
    transcript = conversation(user("store the times in UTC"), *made, says("Done."), user("and now?"))
    for place, branch in ((1, "utc-times"), (len(transcript.records) - 1, "main")):
        records = [*transcript.records]
        records[place] = replace(records[place], value={"gitBranch": branch})
        one = digest(replace(transcript, records=tuple(records)), 2_000)
        assert any(text.startswith(f"branch {branch}") for text in texts(one, Section.COMMANDS))


def test_the_branch_of_the_records_is_none_of_another_directory_that_holds_the_work() -> None:
    read = [(call("Read", str(n), file_path=f"/srv/tide/src/{n}.py"), answer("a = 1", str(n))) for n in range(12)]
    session = conversation(user("store the times in UTC"), *read)

    def shown(directory: str) -> list[str]:
        records = tuple(replace(one, value={"gitBranch": "utc-times", "cwd": directory}) for one in session.records)
        return texts(digest(replace(session, records=records), 1_500), Section.COMMANDS)

    assert "branch utc-times" in shown("/srv/tide/src")
    assert shown("/home/ann/notes") == ["Paths are below: /srv/tide/src"]


@pytest.mark.parametrize(
    "line", ["git branch --show-current; git status --short", "git fetch -q; git branch --show-current"]
)
def test_the_branch_that_git_shows_among_other_commands_is_known(line: str) -> None:
    shown = "main\n M store.py" if line.startswith("git branch") else "From origin\nmain"
    one = digest(conversation(user("where are we?"), STORE, ran(line, shown)), 2_000)
    assert any(text.startswith("branch main") for text in texts(one, Section.COMMANDS))


def test_an_edit_that_takes_back_what_a_commit_holds_is_a_change() -> None:
    back = call("Edit", "b", file_path="store.py", old_string="b", new_string="a"), answer("ok", "b")
    first = ran("git commit -am x", "[main 4f1c2aa] x\n 1 file changed")
    second = ran("git add store.py && git commit -m y", "[main 5e1c2aa] y\n 1 file changed")
    one = digest(conversation(user("try it"), STORE, first, back, second), 2_000)
    assert texts(one, Section.FILES) == ["store.py — edited, in commit 5e1c2aa"]


def test_files_that_a_stash_was_given_are_stashed_whoever_changed_them() -> None:
    stash = ran("git stash push -m wip -- store.py zone.py && git status --short", "Saved working directory on tides")
    shown = texts(digest(conversation(user("commit the note alone"), CLOCK, stash), 2_000), Section.PLAN)
    assert any("store.py" in text and "zone.py" in text for text in shown)
    back = ran("git stash pop", "Dropped refs/stash@{0}")
    shown = texts(digest(conversation(user("commit the note alone"), CLOCK, stash, back), 2_000), Section.PLAN)
    assert not any("zone.py" in text for text in shown)


def test_a_build_is_no_older_than_edits_that_passing_tests_of_the_same_packages_came_after() -> None:
    edit = call("Edit", "e", file_path="tide/refs.go", old_string="a", new_string="b"), answer("ok", "e")
    vet, tests = ran("go vet ./tide/...", ""), ran("go test ./tide/...", "ok  \ttides/tide\t0.2s")
    assert is_open(vet, edit) == ["Passed before the newest edits of tide/refs.go: `go vet ./tide/...`"]
    assert is_open(vet, edit, tests) == []


def test_a_branch_that_was_taken_in_the_line_of_a_log_is_the_branch() -> None:
    merged = ran(
        "gh pr merge 53 --merge && git checkout dev && git log --oneline -1",
        "Already on 'dev'\n2c7e464 Merge #53 [utc 1]",
    )
    one = digest(conversation(user("store the times in UTC"), STORE, COMMIT, merged), 3_000)
    assert texts(one, Section.COMMANDS)[0].startswith("branch dev")


def test_a_file_that_was_only_read_and_that_a_commit_takes_out_is_deleted() -> None:
    read = call("Read", "r", file_path="plan.md"), answer("# Plan", "r")
    shown = "A  gauge.py\nD  plan.md\n[main 4f1c2aa] init\n 2 files changed\n delete mode 100644 plan.md"
    taken = ran("git add -A && git status --short && git commit -m init", shown)
    one = digest(conversation(user("commit it all"), *read, taken), 3_000)
    assert "plan.md — read, deleted, in commit 4f1c2aa" in texts(one, Section.FILES)


def test_a_name_that_git_lists_means_the_file_below_the_folder_where_it_was_called() -> None:
    def write(path: str) -> tuple[Message, ...]:
        return call("Write", path, file_path=path, content=path), answer("ok", path)

    commit = ran("cd tides && git add gauges && git commit -m x", "[main 4f1c2aa] x\n 1 file changed")
    paths = ("tides/gauges/README.md", "tides/README.md", "tides/locks/a.py")
    status = ran("cd tides && git status --short", " M README.md\n?? locks/a.py")
    first, *others = map(write, paths)
    assert is_open(first, commit, *others, status)[0] == "Not committed: tides/{locks/a.py, README.md}"


def test_a_check_on_a_line_of_its_own_contains_a_narrow_one() -> None:
    narrow = ran("rubocop app/tide.rb", "1 file inspected, no offenses detected")
    edit = call("Edit", "t", file_path="app/tide.rb", old_string="a", new_string="b"), answer("ok", "t")
    wide = ran("rubocop --format simple 2>&1 | tail -5\ngit status --short", "35 files inspected, no offenses detected")
    assert any(text.startswith("Passed before") for text in is_open(edit, narrow, edit))
    assert not any(text.startswith("Passed before") for text in is_open(edit, narrow, edit, wide))
    loop = ran("for one in app/*.rb; do\n  rubocop\ndone", "no offenses detected")
    assert any(text.startswith("Passed before") for text in is_open(edit, narrow, edit, loop))


def test_the_removal_of_a_process_file_makes_no_check_older() -> None:
    removed = ran("rm -f tmp/pids/server.pid", "")
    assert not any(text.startswith("Passed before") for text in is_open(STORE, TESTS, removed))


def test_a_branch_that_another_work_tree_got_is_not_the_one_here() -> None:
    here = ran("git status --short --branch", "## main\n M clock.py")
    there = ran("git worktree add ../tides -b tides origin/main", "branch 'tides' set up to track 'origin/main'.")
    facts = texts(digest(conversation(user("begin"), here, there, says("Begun."))), Section.COMMANDS)
    assert facts[0].startswith("branch main")


def test_a_renamed_file_stands_once_with_its_edits_and_both_names() -> None:
    edit = (call("Edit", "e", file_path="pier/clock_test.py", old_string="a", new_string="b"), answer("ok", "e"))
    again = (call("Edit", "f", file_path="pier/tide_test.py", old_string="c", new_string="d"), answer("ok", "f"))
    status = "On branch main\n\nChanges to be committed:\n\trenamed:    pier/clock_test.py -> pier/tide_test.py\n"
    renamed = ran("git mv pier/clock_test.py pier/tide_test.py", ""), *again, ran("git status", status)
    one = digest(conversation(user("rename the test"), edit, *renamed, says("It is renamed.")))
    assert texts(one, Section.FILES) == ["pier/tide_test.py — edited ×2, moved from pier/clock_test.py"]
    assert "Not committed: pier/clock_test.py → pier/tide_test.py" in texts(one, Section.PLAN)
    assert "Tests edited and not run: pier/tide_test.py" in texts(one, Section.PLAN)
    assert texts(one, Section.TASK)[0].endswith("→ edited tide_test.py")


def test_a_status_counts_with_its_new_files_though_a_diff_came_after_it() -> None:
    status = ran("git status --short", " M pier/clock.py\n?? pier/tide.py\n?? pier/gauge.py")
    names = ran("git diff --name-only", "pier/clock.py")
    branch = ran("git branch --show-current", "Process exited with code 0\nharbour", tool="exec_command")
    one = digest(conversation(user("review the work"), status, names, branch, says("It is good.")))
    left = "Changed before this session, not committed: pier/{tide.py (new to git), gauge.py (new to git), clock.py}"
    assert left in texts(one, Section.PLAN)
    assert "branch harbour" in texts(one, Section.COMMANDS)


def test_a_check_in_another_repository_is_not_older_than_the_edits_of_this_one() -> None:
    def stale(folder: str) -> bool:
        edit = call("Edit", "e", file_path="/data/app/src/clock.py", old_string="a", new_string="b"), answer("ok", "e")
        checked = ran(f"cd {folder} && pytest -q", "4 passed in 0.1s")
        one = digest(conversation(user("mend the clock"), edit, checked, edit, cwd="/data/app"), 1_500)
        return any("Passed before" in text for text in texts(one, Section.PLAN))

    assert [stale(folder) for folder in ("/data/app", "/data/gauges", "/tmp/tides")] == [True, False, False]


def test_the_files_of_commits_that_were_compared_in_the_same_line_are_not_listed_as_changed() -> None:
    other = " pier.py | 9 +\n 1 file changed, 9 insertions(+)"
    own = " clock.py | 4 +-\n 1 file changed, 2 insertions(+), 2 deletions(-)"
    both = ran("git diff origin/main...HEAD --stat && echo --- && git diff --stat", f"{other}\n---\n{own}")
    status = ran("git status --short && git show --stat HEAD", f" M clock.py\ncommit 4f1c2aa\n\n{other}")
    listed = ["Changed before this session, not committed: clock.py"]
    assert is_open(both) == []
    assert is_open(status) == is_open(status, both) == listed
