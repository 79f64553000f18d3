"""Commits: which files each of them holds, as far as records show it."""

from __future__ import annotations

import pytest
from conversation import answer, call, conversation, digest, ran, says, texts, user

from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message, Role, ToolCall, ToolResult

STORE = (call("Edit", "s", file_path="store.py", old_string="a", new_string="b"), answer("ok", "s"))
CLOCK = (call("Edit", "c", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "c"))
COMMIT = ran("git commit -am 'Store UTC'", "[utc-times 4f1c2aa] Store UTC\n 1 file changed")


def is_open(*messages: object) -> list[str]:
    return texts(digest(conversation(user("store the times in UTC"), *messages), 3_000), Section.PLAN)  # type: ignore[arg-type]


def states_of(*messages: object) -> list[str]:
    return texts(digest(conversation(user("store the times in UTC"), *messages), 3_000), Section.FILES)  # type: ignore[arg-type]


NEW = (call("Write", "n", file_path="zone.py", content="utc = 0"), answer("ok", "n"))


def committed(command: str, *shown: str) -> tuple[object, ...]:
    return ran(command, "\n".join(("[main 4f1c2aa] x", *shown)))


def test_of_a_new_file_that_a_commit_of_everything_does_not_show_nothing_is_stated() -> None:
    all_of_it = committed("git add -A && git commit -m x", " 1 file changed")
    assert states_of(STORE, NEW, all_of_it) == ["zone.py — created", "store.py — edited, in commit 4f1c2aa"]
    assert is_open(STORE, NEW, all_of_it) == []
    with_it = committed("git add -A && git commit -m x", " 2 files changed", " create mode 100644 zone.py")
    assert [text.rpartition(", ")[2] for text in states_of(STORE, NEW, with_it)] == ["in commit 4f1c2aa"] * 2


def test_a_commit_of_fewer_files_than_were_changed_is_not_said_to_hold_them_all() -> None:
    assert states_of(STORE, CLOCK, committed("git commit -am x", " 1 file changed")) == [
        "clock.py — edited",
        "store.py — edited",
    ]


def test_of_a_commit_of_which_nobody_saw_what_was_staged_nothing_is_stated() -> None:
    made = committed("git commit -m x", " 2 files changed")
    assert not any("4f1c2aa" in text for text in states_of(STORE, CLOCK, made))
    assert is_open(STORE, CLOCK, made) == []


@pytest.mark.parametrize(
    "status",
    [
        ran(
            "git status",
            "Changes to be committed:\n\tmodified: store.py\n\nChanges not staged for commit:\n\tmodified: clock.py",
        ),
        ran("git add store.py; git status --short", "M  store.py\n M clock.py"),
        ran("git diff --cached --stat", " store.py | 2 +-\n 1 file changed"),
    ],
)
def test_a_commit_holds_what_git_showed_as_staged(status: tuple[object, ...]) -> None:
    made = committed("git commit -m x", " 1 file changed")
    assert states_of(STORE, CLOCK, status, made)[1] == "store.py — edited, in commit 4f1c2aa"
    assert is_open(STORE, CLOCK, status, made) == ["Not committed: clock.py"]


def test_a_commit_of_a_path_holds_that_alone() -> None:
    assert is_open(STORE, CLOCK, committed("git commit -m 'store it' store.py", " 1 file changed")) == [
        "Not committed: clock.py"
    ]


def test_a_file_that_was_taken_out_of_what_is_staged_is_in_no_commit() -> None:
    staged = (ran("git add -A", ""), ran("git restore --staged clock.py", ""))
    steps = (*staged, committed("git commit -m x", " 1 file changed"))
    assert states_of(STORE, CLOCK, *steps)[1] == "store.py — edited, in commit 4f1c2aa"
    assert is_open(STORE, CLOCK, *steps) == ["Not committed: clock.py"]


def test_a_file_in_the_folder_of_a_tool_may_be_ignored() -> None:
    plan = (call("Edit", "p", file_path=".agent/plan.md", old_string="a", new_string="b"), answer("ok", "p"))
    made = committed("git add -A; git commit -m x")
    assert not any("plan.md" in text and "4f1c2aa" in text for text in states_of(STORE, plan, made))
    assert is_open(STORE, plan, made) == []


def test_of_two_commits_in_one_line_each_holds_its_own_files() -> None:
    both = ran(
        "git add store.py && git commit -m 'Store UTC' && git add clock.py && git commit -m 'Read UTC'",
        "[main 4f1c2aa] Store UTC\n 1 file changed\n[main 7e00b6e] Read UTC\n 1 file changed",
    )
    assert states_of(STORE, CLOCK, both) == [
        "clock.py — edited, in commit 7e00b6e",
        "store.py — edited, in commit 4f1c2aa",
    ]


def test_a_commit_that_was_taken_back_from_one_branch_for_another_stands() -> None:
    moved = ran("git branch utc && git reset --hard HEAD~1 && git checkout utc", "Switched to branch 'utc'")
    assert states_of(STORE, COMMIT, moved) == ["store.py — edited, in commit 4f1c2aa"]
    for gone in ("git reset --hard HEAD~1", "git branch backup && git reset --hard HEAD~1"):
        assert not any("4f1c2aa" in text for text in states_of(STORE, COMMIT, ran(gone, "HEAD is now at 1a2b3c4")))


def test_a_commit_that_was_taken_back_holds_nothing() -> None:
    back = ran("git reset --soft HEAD~1", "")
    assert is_open(STORE, COMMIT, back) == ["Not committed: store.py"]
    again = ran("git commit -m 'Store it'", "[main 7e00b6e] Store it\n 1 file changed")
    named = ran("git add store.py && git commit -m 'Store UTC'", "[main 4f1c2aa] Store UTC\n 1 file changed")
    assert states_of(STORE, named, back, again) == ["store.py — edited, in commit 7e00b6e"]


def test_what_the_user_refused_took_no_changes() -> None:
    status = ran("git status --short", " M store.py\n M gauges/export.py")
    refused = ran("git stash", "The user doesn't want to proceed with this tool use.", is_error=True)
    assert is_open(STORE, status, refused) == [
        "Not committed: store.py",
        "Also listed by git, not committed: gauges/export.py",
    ]


def test_a_new_file_that_git_lists_after_a_commit_is_not_in_it() -> None:
    made = committed("git add -A && git commit -qm x && git status --short", "?? zone.py")
    assert is_open(STORE, NEW, made) == ["Not committed: zone.py"]


def test_files_of_another_repository_are_in_its_commits_alone() -> None:
    there = (call("Edit", "t", file_path="/data/lib/moon.py", old_string="a", new_string="b"), answer("ok", "t"))
    made = ran("cd /data/lib && git add -A && git commit -m x", "[main 4f1c2aa] x\n 1 file changed")
    one = digest(conversation(user("mend both"), STORE, there, ran("git diff", "-a"), made, cwd="/data/app"), 3_000)
    assert texts(one, Section.FILES) == ["/data/lib/moon.py — edited, in commit 4f1c2aa", "store.py — edited"]
    assert texts(one, Section.PLAN) == ["Not committed: store.py"]


def test_a_commit_has_the_hash_that_a_log_shows_after_a_rebase() -> None:
    steps = (ran("git rebase main", ""), ran("git log --oneline -2", "7e00b6e (HEAD -> utc) Store UTC\n9e00b6e Begin"))
    assert states_of(STORE, COMMIT, *steps) == ["store.py — edited, in commit 7e00b6e"]


@pytest.mark.parametrize("merge", ["gh pr merge 12 --squash && git pull && git log --oneline -2", "git log --oneline"])
def test_a_commit_that_others_made_again_has_the_hash_that_a_later_log_shows(merge: str) -> None:
    merged = ran(merge, "7e00b6e (HEAD -> main) Store UTC (#12)\n9e00b6e Begin")
    assert states_of(STORE, COMMIT, merged) == ["store.py — edited, in commit 7e00b6e"]
    twice = ran("git log --oneline", "7e00b6e Store UTC\n4f1c2aa Store UTC")
    assert states_of(STORE, COMMIT, twice) == ["store.py — edited, in commit 4f1c2aa"]


def test_a_commit_that_a_pull_rebased_has_the_hash_of_the_next_push_and_else_none() -> None:
    refused = ran("git push", " ! [rejected] utc -> utc (fetch first)\nerror: failed to push some refs", is_error=True)
    pulled = ran("git pull --rebase", "Rebasing (1/1)\nSuccessfully rebased and updated refs/heads/utc.")
    pushed = ran("git push", "To https://forge.example/tide.git\n   10cdeb6..6c51f94  utc -> utc")
    assert states_of(STORE, COMMIT, refused, pulled, pushed) == ["store.py — edited, in commit 6c51f94"]
    assert states_of(STORE, COMMIT, refused, pulled) == ['store.py — edited, in commit "Store UTC"']


def test_a_new_file_next_to_one_that_git_passes_over_is_not_called_uncommitted() -> None:
    plans = [(call("Write", name, file_path=f"docs/plans/{name}.md", content="a"), answer("ok", name)) for name in "ab"]
    clean = ran("git status", "nothing to commit, working tree clean")
    assert is_open(plans[0], clean, plans[1], STORE) == ["Not committed: store.py"]
    other = (call("Write", "c", file_path="docs/c.md", content="a"), answer("ok", "c"))
    assert is_open(plans[0], clean, other) == ["Not committed: docs/c.md"]


def test_commits_of_the_same_subject_keep_their_own_hashes() -> None:
    merged = "Merge branch 'main' into utc"
    first = ran("git add store.py && git commit --no-edit", f"[utc 4f1c2aa] {merged}\n 1 file changed")
    again = ran("git add clock.py && git commit --no-edit", f"[utc 7e00b6e] {merged}\n 1 file changed")
    log = ran("git log --oneline -2", f"7e00b6e {merged}\n4f1c2aa {merged}")
    one = digest(conversation(user("merge it"), STORE, first, CLOCK, again, log), 3_000)
    assert [text.rpartition(" ")[2] for text in texts(one, Section.FILES)] == ["7e00b6e", "4f1c2aa"]
    assert not any("outside" in text for text in texts(one, Section.COMMANDS))


def test_a_file_whose_commit_is_on_another_branch_than_the_present_one_says_which() -> None:
    made = ran("git commit -am x", "[utc-times 4f1c2aa] x\n 1 file changed")
    away = ran("git checkout main", "Switched to branch 'main'")
    assert states_of(STORE, made, away) == ["store.py — edited, in commit 4f1c2aa (utc-times)"]
    assert states_of(STORE, made, ran("git status", "On branch utc-times")) == ["store.py — edited, in commit 4f1c2aa"]


def test_a_file_in_which_a_merge_is_to_be_resolved_is_in_no_commit_until_the_merge_is_concluded() -> None:
    made = committed("git commit -am x", " 2 files changed")
    merge = ran("git merge utc-times", "CONFLICT (content): Merge conflict in store.py", is_error=True)
    both = (STORE, CLOCK, made, merge)
    assert states_of(*both) == ["clock.py — edited, in commit 4f1c2aa", "store.py — edited"]
    assert "store.py — edited, in commit 4f1c2aa" in states_of(*both, ran("git merge --abort", ""))


def test_going_on_with_a_rebase_commits_what_was_staged_for_it() -> None:
    stopped = ran("git rebase main", "CONFLICT (content): Merge conflict in store.py", is_error=True)
    again = "CONFLICT (content): Merge conflict in clock.py"
    first = ran("git add store.py && git rebase --continue", again, is_error=True)
    done = "[detached HEAD 4f1c2aa] Store UTC\n 2 files changed\nSuccessfully rebased and updated refs/heads/utc."
    rebased = (stopped, STORE, first, CLOCK, ran("git add clock.py && git rebase --continue", done))
    assert is_open(*rebased) == []
    assert [text.partition(" — ")[2] for text in states_of(*rebased)] == ["edited, in commit 4f1c2aa"] * 2
    assert is_open(*rebased, STORE) == ["Not committed: store.py"]


def test_a_lock_of_git_is_no_file_of_the_work_that_a_commit_could_lack_and_its_hooks_are_files() -> None:
    unlocked = ran("rm -f .git/index.lock && git rebase --continue", "Successfully rebased and updated.")
    all_of_it = committed("git add -A && git commit -m x", " 1 file changed")
    assert states_of(STORE, unlocked, all_of_it) == ["store.py — edited, in commit 4f1c2aa"]
    hook = call("Write", "h", file_path=".git/hooks/pre-commit", content="make lint"), answer("ok", "h")
    assert states_of(hook) == [".git/hooks/pre-commit — created"]


def test_of_many_files_that_are_not_committed_the_others_are_counted_by_folder() -> None:
    names = [f"src/tide/part{number}.py" for number in range(10)] + ["tests/one.py"]
    written = [(call("Write", name, file_path=name, content="x"), answer("ok", name)) for name in names]
    (line,) = is_open(COMMIT, *written)
    assert line.startswith("Not committed: tests/one.py, src/tide/part9.py")
    assert line.endswith("… +7: src/tide 7")


def test_what_git_lists_from_a_folder_below_is_named_from_the_root_and_all_of_it_counts() -> None:
    names = [f"src/part{number}.py" for number in range(12)]
    status = ran("cd apps/web && git status --short", "\n".join(f" D ../../{name}" for name in names))
    (line,) = is_open(COMMIT, status)
    named = ", ".join(f"part{number}.py" for number in range(4))
    assert line == f"Also listed by git, not committed: src/{{{named} …}} +8: src 8"


def test_a_commit_that_tells_nothing_of_itself_is_the_one_that_a_log_shows() -> None:
    quiet = ran('git commit -q -m "Store UTC\n\nAll of it." && git log --oneline -1', "4f1c2aa Store UTC")
    assert states_of(STORE, ran("git add store.py", ""), quiet) == ["store.py — edited, in commit 4f1c2aa"]
    later = ran("git log --oneline -3", "9c1d2e3 (HEAD -> main) Store UTC\n1a2b3c4 Read the gauge")
    unseen = ran("git commit -qam 'Store UTC'", "")
    assert states_of(STORE, unseen, later) == ["store.py — edited, in commit 9c1d2e3"]
    assert states_of(STORE, unseen) == ['store.py — edited, in commit "Store UTC"']
    assert not any("in commit" in state for state in states_of(STORE, ran("git commit -m 'Store UTC'", "")))


def test_a_commit_of_which_a_tool_that_shortens_outputs_says_only_that_it_went_well_is_made() -> None:
    add, commit = ran("rtk git add store.py", "ok ✓ 1 file changed"), ran('rtk git commit -m "Store UTC"', "ok ✓")
    assert states_of(STORE, add, commit, CLOCK)[-1] == 'store.py — edited, in commit "Store UTC"'
    assert is_open(STORE, add, commit, CLOCK) == ["Not committed: clock.py"]
    hashed = ran('git commit -m "Store UTC"', "ok 2 files changed, 8 insertions(+)\nok 189b49d")
    shown = ran("git log --oneline -2", "189b49d Store UTC\n40e2979 Read the tide")
    assert states_of(STORE, add, hashed, shown) == ["store.py — edited, in commit 189b49d"]
    failed = ran('rtk git commit -m "Store UTC"', "FAILED: git commit\n$ make check", is_error=True)
    assert not any("in commit" in state for state in states_of(STORE, add, failed))


def test_a_file_that_was_moved_and_not_committed_stands_with_where_it_is() -> None:
    read = call("Read", "r", file_path="todo/store.md"), answer("1→# Store", "r")
    moved = ran("mv todo/store.md done/store.md", "")
    status = ran("git status", "On branch main\nChanges not staged for commit:\n\tdeleted: todo/store.md")
    open_work = is_open(COMMIT, read, moved, CLOCK, status)
    assert any("todo/store.md → done/store.md" in text for text in open_work), open_work


def test_in_a_rebase_that_stopped_only_what_is_to_be_resolved_is_not_committed() -> None:
    commit = committed("git add store.py clock.py && git commit -m x", " 2 files changed")
    stopped = "CONFLICT (content): Merge conflict in store.py\nerror: could not apply 6692321"
    status = ran("git status --short --branch", "## HEAD (no branch)\nUU store.py\nM  clock.py\nM  README.md")
    session = (STORE, CLOCK, commit, ran("git rebase origin/main", stopped, is_error=True), status)
    looks = [message for number in range(30) for message in ran(f"git show HEAD~{number}", "x")]
    merge, uncommitted = is_open(*session, *looks)
    assert merge.startswith("`git rebase origin/main`: Merge conflict in store.py")
    assert uncommitted == "Not committed: store.py"
    assert "clock.py — edited, in commit 4f1c2aa" in states_of(*session)
    taken = ran("git checkout --ours store.py", "Updated 1 path from the index")
    assert "store.py — edited" in is_open(*session, taken)[0]


def test_a_file_taken_from_another_branch_is_a_change_that_a_later_commit_holds() -> None:
    taken = ran("git checkout main -- store.py", "")
    made = ran("git commit -m 'Take it back'", "[utc 4f1c2aa] Take it back\n 1 file changed")
    assert states_of(taken, ran("git add -A", ""), made) == ["store.py — edited, in commit 4f1c2aa"]
    for command in ("git checkout HEAD -- store.py", "git checkout store.py"):
        assert states_of(STORE, ran(command, "")) == ["store.py — edited, changes thrown away"]


def test_what_is_added_in_lines_that_go_on_after_a_backslash_is_in_the_commit() -> None:
    notes = call("Write", "w", file_path=".notes/tide.md", content="low"), answer("ok", "w")
    made = ran("git add \\\n  store.py \\\n  .notes/tide.md && git commit -m 'x'", "[main 4f1c2aa] x\n 2 files changed")
    assert states_of(STORE, notes, made) == [
        ".notes/tide.md — created, in commit 4f1c2aa",
        "store.py — edited, in commit 4f1c2aa",
    ]
    # An empty line ends the command, and what follows is another.
    apart = ran("git add store.py \\\n\ntouch .notes/tide.md && git commit -m 'x'", "[main 4f1c2aa] x\n 1 file changed")
    assert ".notes/tide.md — created" in states_of(STORE, notes, apart)


def test_a_change_that_a_switch_of_branches_does_not_name_is_committed_whoever_did_it() -> None:
    status = ran("git diff", "-a\n+b")
    switched = "Switched to branch 'main'\nYour branch is up to date with 'origin/main'."
    assert is_open(STORE, status, ran("git checkout main", switched)) == []
    assert is_open(STORE, status, ran("git checkout main", f"M\tstore.py\n{switched}")) == ["Not committed: store.py"]


def test_what_a_command_wrote_is_not_committed_where_git_names_it() -> None:
    generated = ran("make api", "12 files"), ran("git diff --name-only", "api/a.ts\napi/b.ts\nstore.py")
    assert is_open(STORE, *generated) == [
        "Not committed: store.py",
        "Also listed by git, not committed: api/{a.ts, b.ts}",
    ]


def test_a_commit_that_was_rebased_is_no_fact() -> None:
    steps = (ran("git rebase main", ""), ran("git log --oneline -2", "7e00b6e (HEAD -> utc) Store UTC\n9e00b6e Begin"))
    one = digest(conversation(user("store the times in UTC"), STORE, COMMIT, *steps), 3_000)
    assert "4f1c2aa" not in "\n".join(texts(one, Section.COMMANDS))


def test_a_file_that_is_put_back_by_its_name_alone_shows_nothing_of_the_others() -> None:
    status = ran("git diff", "-a\n+b")
    put_back = ran("git checkout lock.json", "Updated 1 path from the index")
    assert is_open(STORE, status, put_back) == ["Not committed: store.py"]


def test_the_part_of_a_list_of_names_that_a_filter_shows_leaves_an_earlier_status_in_force() -> None:
    status = ran("git status --short", " M api/a.ts\n M api/b.ts\n M store.py")
    part = ran("git diff --name-only | head -1", "api/a.ts")
    assert is_open(STORE, status, part) == [
        "Not committed: store.py",
        "Also listed by git, not committed: api/{a.ts, b.ts}",
    ]
    staged = ran("git diff --name-only --cached", "api/a.ts")
    assert is_open(STORE, staged) == ["Not committed: store.py", "Also listed by git, not committed: api/a.ts"]


def test_a_file_whose_edits_went_into_several_commits_names_them_all() -> None:
    def committed(number: int, commit: str) -> tuple[Message, ...]:
        edit = call("Edit", f"{number}", file_path="clock.py", old_string=f"a{number}", new_string=f"b{number}")
        made = ran(
            f"git add clock.py && git commit -m 'step {number}'", f"[main {commit}] step {number}\n 1 file changed"
        )
        return (edit, answer("ok", f"{number}"), *made)

    one = digest(conversation(user("two steps"), *committed(1, "4f1c2aa"), *committed(2, "5a1d3bb"), says("Done.")))
    assert texts(one, Section.FILES)[0].startswith("clock.py — edited ×2, in commit 4f1c2aa, 5a1d3bb")


def test_a_file_that_was_only_read_and_added_by_name_is_in_the_commit() -> None:
    looked = ran("cat zone.toml", "utc = 0")
    added = committed("git add zone.toml && git commit -m x", " 1 file changed", " create mode 100644 zone.toml")
    assert states_of(looked, added) == ["zone.toml — read, in commit 4f1c2aa"]


def test_of_files_listed_before_a_commit_of_more_than_were_named_nothing_is_stated() -> None:
    status = ran("git status --short", " M clock.py\n M page.py\n?? new.py")
    edit = call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e")

    def committed(files: int) -> str:
        commit = ran("git add clock.py && git commit -m x", f"[main 4f1c2aa] x\n {files} files changed")
        return "\n".join(texts(digest(conversation(user("set the clock"), edit, status, commit)), Section.PLAN))

    assert "page.py" in committed(1)
    assert "page.py" not in committed(3)


@pytest.mark.parametrize(
    ("line", "output"),
    [
        (
            "git add -A && git -c user.name='A. Okoro' commit -q -m 'Store UTC' && git log --oneline -1",
            "4f1c2aa Store UTC",
        ),
        ("git commit -aq -F - <<'EOF' && git log --oneline -1\nStore UTC\n\nLonger.\nEOF", "4f1c2aa Store UTC"),
        (
            "git commit -aq -m 'Store UTC' && git push -q 2>&1 | tail -2; git log --oneline | head -1",
            "4f1c2aa Store UTC",
        ),
    ],
)
def test_a_quiet_commit_is_known_by_its_message_however_git_is_called(line: str, output: str) -> None:
    assert states_of(STORE, ran(line, output)) == ["store.py — edited, in commit 4f1c2aa"]
    assert is_open(STORE, ran(line, output)) == []


def test_of_a_quiet_commit_in_a_chain_that_hides_its_code_an_error_decides() -> None:
    line = "git commit -aq -m 'Store UTC' && git push -q; echo pushed | tail -1"
    assert states_of(STORE, ran(line, "pushed")) == ['store.py — edited, in commit "Store UTC"']
    assert is_open(STORE, ran(line, "error: gpg failed to sign the data\npushed")) == ["Not committed: store.py"]


def test_a_commit_in_another_folder_of_the_home_holds_what_was_edited_there() -> None:
    def edited(path: str) -> tuple[object, ...]:
        return call("Edit", path, file_path=path, old_string="a", new_string="b"), answer("ok", path)

    edits = *edited("/home/ines/tools/run.py"), *edited("/home/ines/tools/stop.py")
    made = ran("cd ~/tools && git add run.py && git commit -m x", "[main 4f1c2aa] x\n 1 file changed")
    assert states_of(*edits, made) == [
        "/home/ines/tools/stop.py — edited",
        "/home/ines/tools/run.py — edited, in commit 4f1c2aa",
    ]


def test_a_message_from_a_here_document_is_read_where_commands_follow_it() -> None:
    line = "git add store.py\ngit commit -q -F - <<'MSG'\nStore UTC\n\nLonger.\nMSG\ngit log -2; git status"
    assert states_of(STORE, ran(line, "4f1c2aa Store UTC\n1a2b3c4 Before")) == ["store.py — edited, in commit 4f1c2aa"]


@pytest.mark.parametrize("target", ["1a2b3c4", "origin/main", "HEAD~2"])
def test_commits_that_were_made_into_one_are_no_commits_any_more(target: str) -> None:
    first, second = (ran(f"git commit -am {n}", f"[main {n}{n}1c2aa] {n}\n 1 file changed") for n in ("4f", "5e"))
    into_one = ran(f"git reset -q --soft {target} && git commit -m both", "[main 6d1c2aa] both\n 2 files changed")
    held = states_of(STORE, first, CLOCK, second, into_one)
    assert [text.rpartition(", ")[2] for text in held] == ["in commit 6d1c2aa"] * 2
    after = ran("git reset -q --soft 4f4f1c2aa && git commit -m clock", "[main 6d1c2aa] clock\n 1 file changed")
    assert states_of(STORE, first, CLOCK, second, after) == [
        "clock.py — edited, in commit 6d1c2aa",
        "store.py — edited, in commit 4f4f1c2aa",
    ]


def test_what_was_resolved_in_a_rebase_is_in_the_commit_that_it_goes_on_with() -> None:
    made = committed("git commit -am x", " 1 file changed")
    stopped = ran("git rebase main", "CONFLICT (content): Merge conflict in store.py", is_error=True)
    on = ran(
        "git add store.py && git rebase --continue 2>&1 | tail -5", "Successfully rebased and updated refs/heads/utc."
    )
    log = ran("git log --oneline -2", "9b8c7d6 x\n1a2b3c4 Before")
    assert states_of(STORE, made, stopped, STORE, on, log) == ["store.py — edited ×2, in commit 9b8c7d6"]


def test_a_status_among_other_commands_shows_what_somebody_else_has_committed() -> None:
    line = "echo '== status =='; git status --short; echo '== tracked =='; git ls-files | wc -l"
    shown = ran(line, "== status ==\n M clock.py\n== tracked ==\n21")
    assert is_open(STORE, CLOCK, shown) == ["Not committed: clock.py"]


def test_a_commit_that_a_rebase_made_again_is_named_by_its_new_hash() -> None:
    first = ran("git commit -am 'Store UTC'", "[utc-times 4f1c2aa] Store UTC\n 1 file changed")
    again = ran("git add store.py && git rebase --continue", "[detached HEAD 9e8d7c6] Store UTC\n 1 file changed")
    assert states_of(STORE, first, again) == ["store.py — edited, in commit 9e8d7c6"]


def test_a_commit_that_was_picked_to_another_branch_is_named_as_it_is_there() -> None:
    first = ran("git commit -am 'Store UTC'", "[utc-times 4f1c2aa] Store UTC\n 1 file changed")
    picked = ran(
        "git checkout -b utc-again main && git cherry-pick 4f1c2aa",
        "Switched to a new branch 'utc-again'\n[utc-again 9e8d7c6] Store UTC\n Date: Mon\n 1 file changed",
    )
    assert states_of(STORE, first, picked) == ["store.py — edited, in commit 9e8d7c6"]


def unanswered(command: str) -> Message:
    """A call, and the result that the client did not record."""
    made = ToolCall(id="", name="Bash", arguments={"command": command})
    return Message(role=Role.ASSISTANT, parts=(made, ToolResult(id="", text="", is_recorded=False)))


def test_where_no_results_are_recorded_a_commit_is_known_by_the_report_of_it() -> None:
    edit = call("Edit", file_path="store.py", old_string="a", new_string="b")
    made = unanswered("git add store.py && git commit -m 'Store UTC' && git push")
    report = says("Committed and pushed `4f1c2aa` to `main`:\n\n**Store UTC**")
    assert states_of(edit, made, report) == ["store.py — edited, in commit 4f1c2aa"]
    assert is_open(edit, made, report) == []
    assert states_of(edit, made, says("The commit needs a name.")) == ["store.py — edited"]
    # What a client records is believed, and not what the assistant makes of it.
    shown = ran("git commit -am 'Store UTC'", "[main 0d1c2bb] Store UTC\n 1 file changed")
    assert states_of(STORE, shown, report) == ["store.py — edited, in commit 0d1c2bb"]
