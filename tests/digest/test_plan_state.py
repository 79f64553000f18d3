"""Plan state: what is done, in progress and open after the last plan call, whoever made it."""

from __future__ import annotations

from pathlib import Path

import pytest
from conversation import answer, call, conversation, digest, events_of, ran, says, texts, token_cache, user

from compactor_cli.digest.checklists import PlanState, State, plan_items, plan_state
from compactor_cli.digest.language import words_of
from compactor_cli.model.summary import Section

STEPS = (("Write it", "completed"), ("Test it", "in_progress"), ("Ship it", "pending"))


def states(*messages: object) -> list[tuple[str, State]]:
    return [(todo.text, todo.state) for todo in plan_state(events_of(*messages)).todos]  # type: ignore[arg-type]


def shown(plan: PlanState, budget_tokens: int) -> list[str]:
    """The texts of what is open, then of what is done."""
    return [item.text for part in plan_items(plan, budget_tokens, token_cache(), words_of("en")) for item in part]


@pytest.mark.parametrize(
    "plan",
    [
        call("TodoWrite", todos=[{"content": text, "status": state} for text, state in STEPS]),
        call("update_plan", plan=[{"step": text, "status": state} for text, state in STEPS]),
        call("write_todos", todos=[{"description": text, "status": state} for text, state in STEPS]),
        call("SetTodoList", todos=[{"title": text, "status": state} for text, state in STEPS]),
        call("update_todo_list", todos="[x] Write it\n[-] Test it\n[ ] Ship it"),
        call("task_tracker", task_list=[{"title": text, "status": state} for text, state in STEPS]),
    ],
)
def test_lists_of_every_agent(plan: object) -> None:
    assert states(plan) == [("Write it", State.DONE), ("Test it", State.DOING), ("Ship it", State.OPEN)]


def test_the_last_list_counts_and_failed_calls_do_not() -> None:
    old = call("TodoWrite", "1", todos=[{"content": "Old", "status": "pending"}])
    new = call("TodoWrite", "2", todos=[{"content": "New", "status": "pending"}])
    assert states(old, answer("ok", "1"), new, answer("ok", "2")) == [("New", State.OPEN)]
    assert states(old, answer("ok", "1"), new, answer("invalid", "2", is_error=True)) == [("Old", State.OPEN)]


MADE = call(
    "sql",
    query="INSERT INTO todos (id, title, description, status) VALUES ('w', 'Write it', 'Tide''s page', 'in_progress'),"
    " ('t', 'Test it', '', 'pending'), ('s', 'Ship it', '', 'pending');"
    " INSERT INTO todo_deps (todo_id, depends_on) VALUES ('t', 'w')",
)


def test_a_call_that_changes_some_steps_leaves_the_others_as_they_are() -> None:
    steps = [{"id": "a", "content": "Write it", "status": "in_progress"}, {"id": "b", "content": "Ship it"}]
    changed = [{"id": "a", "status": "completed"}, {"id": "c", "content": "Test it", "status": "in_progress"}]
    listed = call("TodoWrite", "1", merge=False, todos=steps), answer("ok", "1")
    more = call("TodoWrite", "2", merge=True, todos=changed), answer("ok", "2")
    state = plan_state(events_of(*listed, *more))
    assert [(one.text, one.state) for one in state.todos] == [
        ("Write it", State.DONE),
        ("Ship it", State.OPEN),
        ("Test it", State.DOING),
    ]
    dropped = call("TodoWrite", "3", merge=True, todos=[{"id": "b", "status": "cancelled"}]), answer("ok", "3")
    assert [one.text for one in plan_state(events_of(*listed, *more, *dropped)).todos] == ["Write it", "Test it"]


def test_steps_that_share_a_name_are_all_kept() -> None:
    steps = [{"id": "1", "content": text, "status": "pending"} for text in ("Write it", "Ship it")]
    assert [one.text for one in plan_state(events_of(call("TodoWrite", todos=steps))).todos] == ["Write it", "Ship it"]


def test_a_list_in_a_database_is_as_its_queries_left_it() -> None:
    moved = call(
        "sql", query="UPDATE todos SET status = CASE id WHEN 'w' THEN 'done' ELSE 'in_progress' END WHERE id != 's'"
    )
    asked = call("sql", query="SELECT id, status FROM todos ORDER BY id")
    expected = [("Write it", State.DONE), ("Test it", State.DOING), ("Ship it", State.OPEN)]
    assert states(MADE, moved, asked) == expected
    assert states(MADE, moved, call("sql", query="DELETE FROM todos WHERE id = 'w'")) == expected[1:]
    assert states(call("sql", query="SELECT * FROM tides")) == []
    stated = texts(
        digest(conversation(user("mend it"), MADE, moved, asked, answer("3 row(s) returned"))), Section.COMMANDS
    )
    assert not any("row(s)" in text for text in stated)


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH DATABASE '{path}' AS todos",
        "VACUUM todos INTO '{path}'; UPDATE todos SET id = NULL",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) UPDATE todos SET id = (SELECT max(i) FROM n)",
        "UPDATE todos SET title = printf('%.*c', 100000000, 'x')",
        "UPDATE todos SET status = ",
        "\0 todos",
    ],
)
def test_a_query_that_is_none_of_the_list_does_nothing(query: str, tmp_path: Path) -> None:
    path = tmp_path / "made"
    found = states(MADE, call("sql", query=query.format(path=path)))
    assert [text for text, _ in found] == ["Write it", "Test it", "Ship it"]
    assert not path.exists()


def test_tasks_made_one_by_one_are_replayed() -> None:
    assert states(
        call("TaskCreate", "1", subject="Write it"),
        answer("Task #7 created successfully: Write it", "1"),
        call("TaskCreate", "2", subject="Test it"),
        answer("Task #8 created successfully: Test it", "2"),
        call("TaskUpdate", "3", taskId="7", status="completed"),
        call("TaskUpdate", "4", taskId="8", status="deleted"),
    ) == [("Write it", State.DONE)]


def test_a_list_that_is_shown_tells_what_others_did_of_it() -> None:
    made = [call("TaskCreate", str(n), subject=name) for n, name in ((1, "Write it"), (2, "Test it"), (3, "Ship it"))]
    numbered = [answer(f"Task #{n} created successfully", str(n)) for n in (1, 2, 3)]
    listed = call("TaskList", "4"), answer("#1 [completed] Write it\n#3 [pending] Ship it (ann) [blocked by #1]", "4")
    assert states(*made, *numbered, *listed) == [("Write it", State.DONE), ("Ship it", State.OPEN)]
    assert states(*made, *numbered, call("TaskList", "4"), answer("No tasks found", "4")) == []
    failed = call("TaskList", "4"), answer("The list could not be read", "4")
    assert len(states(*made, *numbered, *failed)) == 3
    taken = call("TaskUpdate", "5", taskId="3", status="in_progress", owner="bob")
    found = plan_state(events_of(*made, *numbered, *listed, taken)).todos
    assert [(todo.text, todo.owner) for todo in found] == [("Write it", ""), ("Ship it", "bob")]


def test_open_work_is_stated_before_what_is_done() -> None:
    plan = plan_state(events_of(call("TodoWrite", todos=[{"content": text, "status": state} for text, state in STEPS])))
    texts = shown(plan, 200)
    assert texts == ["in progress: Test it", "open: Ship it", "done: Write it"]
    assert shown(plan, 12) == ["in progress: Test it"]


def test_of_a_plan_that_is_done_nothing_stands_among_what_is_open() -> None:
    todos = [{"content": text, "status": "completed"} for text, _ in STEPS]
    assert shown(plan_state(events_of(call("TodoWrite", todos=todos))), 200) == []


def test_a_plan_written_as_text_is_quoted() -> None:
    plan = plan_state(events_of(call("ExitPlanMode", plan="# Plan\n\n- move the parser\n- drop the cache")))
    assert shown(plan, 200) == ["Plan: # Plan\n• move the parser\n• drop the cache"]


def test_of_several_steps_in_progress_only_the_one_begun_last_is_said_to_be() -> None:
    made = [call("TaskCreate", str(n), subject=name) for n, name in enumerate(("Old", "New"), 1)]
    answers = [answer(f"Task #{n} created successfully: {name}", str(n)) for n, name in enumerate(("Old", "New"), 1)]
    begun = [call("TaskUpdate", taskId=str(n), status="in_progress") for n in (1, 2)]
    plan = plan_state(events_of(*made, *answers, *begun))
    assert shown(plan, 200) == ["in progress: New", "begun, not closed: Old"]


def test_a_plan_that_is_too_long_is_shown_by_its_numbered_steps() -> None:
    steps = "\n".join(
        f"### Step {number}: gate {number}\n{'It opens when the tide turns. ' * 9}" for number in (1, 2, 3)
    )
    text = f"# Tide gates\n{steps}\n## Checks\nmake test"
    assert shown(PlanState(text=text, record=3), 60) == [
        "Plan: # Tide gates\nStep 1: gate 1\nStep 2: gate 2\nStep 3: gate 3"
    ]
    assert shown(PlanState(text=text, record=3), 900) == [f"Plan: {text}"]


def test_steps_of_a_list_that_was_left_while_the_user_asked_for_other_things_are_not_said_to_be_open() -> None:
    steps = [{"content": text, "status": state} for text, state in STEPS]
    listed = call("TodoWrite", "1", todos=steps), answer("ok", "1"), says("I begin.")
    edited = call("Edit", "2", file_path="a.py", old_string="a", new_string="b"), answer("ok", "2")
    asked = (user(f"please take the {what} out of the menu") for what in ("button", "old filter"))
    later = [next(asked), *edited, says("Moved."), next(asked)]
    left = digest(conversation(user("build the filters"), *listed, *later, *ran("ls", "a.py")), 2_000)
    open_steps = [text for text in texts(left, Section.PLAN) if "Ship it" in text]
    assert open_steps == ["Steps, not updated since: Test it; Ship it"]
    told = [user("please take the button out"), says("Moved."), user("and how is the old filter read?"), says("Twice.")]
    one = digest(conversation(user("build the filters"), *listed, *told, *ran("make filters", "read twice")), 2_000)
    assert [text for text in texts(one, Section.PLAN) if "Ship it" in text] == open_steps
    only_told = digest(conversation(user("build the filters"), *listed, *told), 2_000)
    assert "open: Ship it" in texts(only_told, Section.PLAN)
    kept = digest(conversation(user("build the filters"), *listed, *later[:4], *ran("ls", "a.py")), 2_000)
    assert "open: Ship it" in texts(kept, Section.PLAN)


LISTED = [
    {"content": text, "status": "pending"} for text in ("Task 6: Draw the tide", "Task 7: Parse the `read_gauge` feed")
]
LIST = (call("TodoWrite", "t", todos=LISTED), answer("ok", "t"))


def plan(*messages: object) -> list[str]:
    return texts(digest(conversation(user("build the filters"), *LIST, *messages), 2_000), Section.PLAN)  # type: ignore[arg-type]


def test_a_step_that_a_later_edit_or_commit_dealt_with_is_not_only_called_open() -> None:
    edit = call("Edit", "2", file_path="a.py", old_string="a = 1", new_string="a = read_gauge(1)"), answer("ok", "2")
    assert {"open: Task 6: Draw the tide", "open: Task 7: Parse the `read_gauge` feed (files edited since)"} <= {
        *plan(*edit)
    }
    commit = ran("git commit -am 'Parse the feed'", "[main 1a2b3c4] Parse the read_gauge feed\n 1 file changed")
    assert "open: Task 7: Parse the `read_gauge` feed (in commit 1a2b3c4)" in plan(*edit, *commit)


def test_edits_while_a_step_is_in_progress_are_for_that_step() -> None:
    steps = [{"content": "Name the gauges", "status": "in_progress"}, *LISTED]
    listed = call("TodoWrite", "u", todos=steps), answer("ok", "u")
    edit = call("Edit", "2", file_path="a.py", old_string="a = 1", new_string="a = read_gauge(1)"), answer("ok", "2")
    found = plan(*listed, *edit, *ran("draw tide --task 6", "drawn"))
    assert {"open: Task 7: Parse the `read_gauge` feed", "open: Task 6: Draw the tide (later edited or run)"} <= {
        *found
    }


def test_a_step_in_progress_whose_function_was_edited_since_says_so() -> None:
    steps = [
        {"content": "Modify `load_page` to ask once", "status": "in_progress"},
        {"content": "Describe it in the notes", "status": "pending"},
    ]
    plan = call("TodoWrite", "p", todos=steps), answer("ok", "p")
    for name, sign in (("load_page", " (files edited since)"), ("read_tide", "")):
        edit = call("Edit", "e", file_path="src/page.py", old_string="a", new_string=f"def {name}(day):")
        shown_steps = texts(digest(conversation(user("make it fast"), *plan, edit, answer("ok", "e"))), Section.PLAN)
        assert shown_steps[0] == f"in progress: Modify `load_page` to ask once{sign}"


def test_the_message_of_a_commit_deals_with_no_other_step() -> None:
    message = "git commit -m \"$(cat <<'EOF'\nName the gauges\n\nTask 6 is next: draw the tide.\nEOF\n)\""
    assert "open: Task 6: Draw the tide" in plan(*ran(message, "[main 1a2b3c4] Name the gauges\n 1 file changed"))


def test_a_step_that_says_what_to_run_is_run_by_several_commands_as_by_one() -> None:
    steps = [{"content": "Run fmt, lint, and tests", "status": "in_progress"}]
    listed = call("TodoWrite", "u", todos=steps), answer("ok", "u")
    checks = *ran("make run fmt", "done"), *ran("make run lint", "0 issues.")
    assert "in progress: Run fmt, lint, and tests" in plan(*listed, *checks)
    passed = *checks, *ran("make run test", "4 passed")
    assert "in progress: Run fmt, lint, and tests (later edited or run)" in plan(*listed, *passed)


def test_steps_that_say_to_commit_and_to_push_are_dealt_with_by_a_commit_and_a_push() -> None:
    steps = [{"content": text, "status": "pending"} for text in ("Commit changes", "Push to remote")]
    listed = call("TodoWrite", "u", todos=steps), answer("ok", "u")
    assert {"open: Commit changes", "open: Push to remote"} <= {*plan(*listed)}
    commit = ran("git commit -am 'Draw the tide'", "[main 1a2b3c4] Draw the tide\n 1 file changed")
    done = {"open: Commit changes (in commit 1a2b3c4)", "open: Push to remote (later edited or run)"}
    assert done <= {*plan(*listed, *commit, *ran("git push", "main -> main"))}


def test_a_step_that_is_not_done_is_shown_with_what_was_said_of_it_where_there_is_room() -> None:
    detail = "Run `make client`, then check that the page of the tides compiles."
    made = call("TaskCreate", "1", subject="Regenerate the client", description=detail)
    one = conversation(user("Add the page."), made, answer("Task #1 created successfully", "1"), says("I look."))
    assert f"open: Regenerate the client: {detail}" in texts(digest(one, 900), Section.PLAN)
    assert "open: Regenerate the client" in texts(digest(one, 400), Section.PLAN)


def test_a_list_that_agents_share_names_who_works_and_counts_what_is_left_out() -> None:
    tasks = "\n".join(
        (
            "#1 [in_progress] Wire the pumps (pumps)",
            "#2 [pending] Paint the gates [blocked by #1]",
            *(f"#{n} [pending] Read gauge {n} of the harbour at noon" for n in range(3, 40)),
        )
    )
    listed = (call("TaskList", "l"), answer(tasks, "l"))
    one = digest(conversation(user("lead the team"), listed, *ran("make", "ok"), says("I wait.")), 800)
    steps = texts(one, Section.PLAN)
    assert steps[0] == "in progress: Wire the pumps (pumps)"
    assert steps[1] == "open: Read gauge 3 of the harbour at noon"
    shown = sum(step.startswith("open: ") for step in steps)
    assert f"… {38 - shown} more" in steps


def test_a_task_that_another_agent_reports_as_done_is_open_no_more() -> None:
    listed = (
        call("TaskList", "l"),
        answer("#1 [in_progress] Wire the pumps (pumps)\n#2 [pending] Paint the gates", "l"),
    )
    said = (
        '<teammate-message teammate_id="pumps">\nTask #1 (wire the pumps) is {}. The rest follows.\n</teammate-message>'
    )
    for word, steps in (("complete", 1), ("not complete", 2)):
        told = (*listed, user(said.format(word)), *ran("make", "ok"))
        shown = texts(digest(conversation(user("lead the team"), *told), 2_000), Section.PLAN)
        assert sum(text.startswith(("open: ", "in progress: ", "begun")) for text in shown) == steps


def test_a_written_plan_is_open_until_the_user_asks_for_other_things_once_it_was_worked_on() -> None:
    approved = "User has approved your plan. You can now start coding."
    plan = call("ExitPlanMode", "p", plan="# Gauges\n\n- Read each gauge by radio"), answer(approved, "p")
    edit = call("Edit", "e", file_path="src/gauge.py", old_string="a", new_string="b"), answer("ok", "e")

    def is_open(*messages: object) -> bool:
        one = digest(conversation(user("plan the gauges"), *plan, *messages), 2_000)  # type: ignore[arg-type]
        return any("Read each gauge by radio" in text for text in texts(one, Section.PLAN))

    asked = user("Now describe the gates in the handbook, with a picture of each.")
    assert is_open(edit)
    assert is_open(edit, says("The first half is done."), user("go on"), edit)
    assert is_open(asked, says("I will."))
    assert not is_open(edit, says("All is done."), asked, ran("ls docs", "handbook.md"))
