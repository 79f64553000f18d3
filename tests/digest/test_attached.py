"""Skills in use and work in the background, as Claude Code writes them."""

from __future__ import annotations

import json

import pytest
from conversation import answer, call, conversation, digest, events_of, ran, rendered, says, texts, user

from compactor_cli.digest.background import attached
from compactor_cli.digest.events import EventKind, events
from compactor_cli.formats.client_signs import plans_only
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message, Role, ToolCall, Transcript


def skill(name: str) -> tuple[Message, ...]:
    return call("Skill", f"s-{name}", skill=name), answer(f"Launching skill: {name}", f"s-{name}")


def start(key: str, about: str) -> tuple[Message, ...]:
    said = f"Async agent launched successfully.\nagentId: {key} (This is an internal ID for your use)"
    task = call("Task", f"t-{key}", description=about, prompt="Look at it.", run_in_background=True)
    return task, answer(said, f"t-{key}")


def notice(key: str, status: str = "completed") -> Message:
    return user(f"<task-notification>\n<task-id>{key}</task-id>\n<status>{status}</status>\n</task-notification>")


TALK = (
    user("Please review the pull request with all its history, and tell me what you think."),
    skill("git:review"),
    user("Base directory for this skill: /home/a/.claude/skills/review\n\n# Review"),
    start("a1b2c3", "Look at the git history"),
    call("Bash", "b", command="make long", run_in_background=True),
    answer("Command running in background with ID: b77f00. Output is being written to: /tmp/x", "b"),
    says("Both run now; I go on with the files."),
)


def plan(transcript: Transcript, **more: object) -> list[str]:
    return texts(digest(transcript, **more), Section.PLAN)


def skills(transcript: Transcript, **more: object) -> list[str]:
    lines = texts(digest(transcript, **more), Section.COMMANDS)
    return [line for line in lines if line.startswith("Skills loaded: ")]


def test_skills_and_what_still_runs_are_stated() -> None:
    assert skills(conversation(*TALK)) == ["Skills loaded: git:review"]
    assert plan(conversation(*TALK)) == [
        'In the background, not seen to end: "Look at the git history" (a1b2c3)',
        'In the background, not seen to end: "make long" (b77f00)',
    ]


def test_what_a_client_says_before_the_id_of_what_it_started_hides_it_not() -> None:
    said = f"Async agent launched successfully. (This result is {'internal, ' * 15}so never quote it.)\nagentId: a1b2c3"
    asked = {"description": "Look at the history", "prompt": "Look.", "run_in_background": True}
    task = call("Agent", "t", **asked), answer(said, "t")
    assert plan(conversation(user("Review it."), task, says("It runs."))) == [
        'In the background, not seen to end: "Look at the history" (a1b2c3)'
    ]


def test_a_skill_in_a_folder_on_a_drive_has_its_name() -> None:
    loaded = user("Base directory for this skill: C:\\Users\\mei\\.claude\\skills\\review\n\n# Review")
    asked = call("Skill", "s", skill="review"), answer("Launching skill: review", "s")
    assert skills(conversation(user("Review it."), asked, loaded, says("I review it."))) == ["Skills loaded: review"]


def test_a_skill_that_is_not_there_is_not_loaded() -> None:
    unknown = call("Skill", "s", skill="commit"), answer("Unknown skill: commit", "s", is_error=True)
    assert skills(conversation(*TALK, unknown)) == skills(conversation(*TALK))


def test_what_ended_is_not_stated_wherever_that_is_shown() -> None:
    over = (notice("a1b2c3"), call("TaskStop", "k", task_id="b77f00"), answer("Successfully stopped task", "k"))
    assert plan(conversation(*TALK, *over)) == []
    whole = conversation(*TALK, *over)
    covered = range(len(whole.messages) - 3)
    kept = tuple(range(len(whole.messages) - 3, len(whole.messages)))
    assert plan(whole, covered=covered, kept=kept) == []
    assert skills(whole, covered=covered, kept=kept) == ["Skills loaded: git:review"]


def test_an_agent_whose_end_an_older_client_announced_runs_no_more() -> None:
    ended = "<agent-notification>\n<agent-id>a1b2c3</agent-id>\n<status>completed</status>\n</agent-notification>"
    assert "a1b2c3" not in str(plan(conversation(*TALK, user(ended))))


def test_a_command_that_the_client_itself_put_in_the_background_still_runs() -> None:
    began = answer("Command running in background with ID: b5db73. Output is being written to: /tmp/x", "b")
    long = conversation(user("run it all"), call("Bash", "b", command="make long"), began)
    assert plan(long) == ['In the background, not seen to end: "make long" (b5db73)']
    shown = answer("started\n" * 20 + "Command running in background with ID: b5db73.", "b")
    assert plan(conversation(user("run it all"), call("Bash", "b", command="cat log"), shown)) == []


def test_a_workflow_runs_in_the_background_until_its_end_is_told() -> None:
    launched = answer("Workflow launched in background. Task ID: w9ys8z\nSummary: Review the gauge", "w")
    begun = user("review it"), call("Workflow", "w", script="…", description="Review the gauge"), launched
    assert plan(conversation(*begun)) == ['In the background, not seen to end: "Review the gauge" (w9ys8z)']
    ended = "<task-notification>\n<task-id>w9ys8z</task-id>\n<status>completed</status>\n</task-notification>"
    assert plan(conversation(*begun, user(ended))) == []


def test_a_look_at_a_session_of_a_shell_leaves_it_the_command_that_began_it() -> None:
    began = call("exec_command", "b", cmd="bun run dev"), answer("Process running with session ID 25660", "b")
    look = call("write_stdin", "w", session_id=25660, chars=""), answer("Process running with session ID 25660", "w")
    shown = plan(conversation(user("run it"), *began, *look))
    assert shown == ['In the background, not seen to end: "bun run dev" (25660)']


@pytest.mark.parametrize("begins", ["<command started in background with shellId: tides>", "hour 1\n{}"])
def test_a_command_in_a_shell_with_a_name_goes_on_until_a_look_shows_its_end(begins: str) -> None:
    still = "<command with shellId: tides is still running after 30 seconds. Use read_bash to wait, or stop_bash.>"
    began = call("bash", "b", command="make tides"), answer(begins.format(still), "b")
    look = call("read_bash", "w", shellId="tides"), answer(f"hour 2\n{still}", "w")
    shown = ['In the background, not seen to end: "make tides" (tides)']
    assert plan(conversation(user("run it"), *began, *look)) == shown
    end = call("read_bash", "e", shellId="tides"), answer("hour 3\n<shellId: tides completed with exit code 0>", "e")
    assert plan(conversation(user("run it"), *began, *look, *end)) == []


def test_what_only_looks_does_not_go_on_in_the_background() -> None:
    look = call("exec_command", "g", cmd="git -C ../tide status --short && find . -name '*.py'")
    shown = answer("Process running with session ID 48497\n M tide.py", "g")
    assert plan(conversation(user("run it"), look, shown)) == []


def test_a_look_at_work_that_is_not_done_leaves_it_running() -> None:
    def look(status: str) -> tuple[Message, ...]:
        return call("TaskOutput", "o", task_id="a1b2c3"), answer(f"<status>{status}</status>", "o")

    assert len(attached(events_of(*TALK, look("running"))).running) == 2
    assert [work.id for work in attached(events_of(*TALK, look("completed"))).running] == ["b77f00"]


@pytest.mark.parametrize(
    ("ends", "left"),
    [
        ("lsof -ti :3000 | xargs kill -9 2>/dev/null; sleep 1", ["b5db74", "b5db75"]),
        ("pkill -f 'vite --port 5173'", ["b5db73", "b5db75"]),
        ("kill $(lsof -ti :8080)", ["b5db75"]),
        ("pkill -f gauge", ["b5db73", "b5db74", "b5db75"]),
        ("git commit -m 'kill the dev server'", ["b5db73", "b5db74", "b5db75"]),
    ],
)
def test_what_a_command_ended_runs_no_more(ends: str, left: list[str]) -> None:
    begun = {"b5db73": "pnpm dev --port 3000", "b5db74": "pnpm vite --port 5173 serve", "b5db75": "make long"}
    started = [
        message
        for key, command in begun.items()
        for message in (
            call("Bash", key, command=command),
            answer(f"Command running in background with ID: {key}.", key),
        )
    ]
    found = attached(events_of(user("run it"), *started, *ran(ends, "")))
    assert [work.id for work in found.running] == left


def test_they_are_carried_from_one_summary_to_the_next() -> None:
    first = digest(conversation(*TALK))
    later = conversation(user("And now the docs, please, all of them."), says("Yes."), skill("docs"))
    assert skills(later, state=first.state) == ["Skills loaded: git:review, docs"]
    assert any("a1b2c3" in line for line in plan(later, state=first.state))
    ended = conversation(user("And now the docs, please."), notice("a1b2c3"), notice("b77f00", "failed"), says("Yes."))
    assert plan(ended, state=first.state) == ['Failed in the background: "make long"']
    again = call("Bash", "c", command="make long", run_in_background=True)
    begun = answer("Command running in background with ID: c88e00.", "c"), notice("c88e00")
    assert plan(conversation(*TALK, notice("a1b2c3"), notice("b77f00", "failed"), again, *begun)) == []
    assert skills(ended, state=first.state) == ["Skills loaded: git:review"]


def test_talk_without_any_has_none() -> None:
    transcript = conversation(user("hello"), says("hi"))
    assert attached(events(transcript, range(2))) == attached(())


def test_what_only_waited_is_over_when_the_user_goes_on() -> None:
    waits = (
        call("Bash", "w", command="workmux wait compare-tides --status done", run_in_background=True),
        answer("Command running in background with ID: w77f00. Output is being written to: /tmp/x", "w"),
    )
    waiting = plan(conversation(*TALK, *waits))
    assert any("workmux wait" in text for text in waiting)
    gone_on = plan(conversation(*TALK, *waits, says("All are done."), user("then close them"), says("Yes.")))
    assert not any("workmux wait" in text for text in gone_on)
    assert any("make long" in text for text in gone_on)


def test_a_look_at_what_only_waited_starts_nothing() -> None:
    began = call("exec_command", "b", cmd="workmux wait tides"), answer("Process running with session ID 691", "b")
    look = call("write_stdin", "w", session_id=691, chars=""), answer("Process running with session ID 691", "w")
    assert plan(conversation(*TALK, *began, user("and then?"), *look, says("It goes on."))) == plan(conversation(*TALK))


def test_a_skill_that_is_read_from_its_file_is_loaded_and_none_of_what_was_looked_at() -> None:
    path = "/home/mara/.agents/skills/harbour-work/SKILL.md"
    text = "\n".join(f"Always run reviewGauge{n}() before the export of the harbour." for n in range(30))
    loaded = (*ran(f"sed -n 1,200p {path}", text), *ran("cat src/clock.py", "def tide(): return reviewGauge3()"))
    one = digest(conversation(user("mend the clock of reviewGauge3()"), *loaded, says("It drifts.")))
    shown = rendered(one.summary)
    assert "Skills loaded: harbour-work" in shown
    assert "Always run" not in shown
    assert path not in shown


def test_the_file_of_a_skill_among_the_users_own_work_is_read_and_not_loaded() -> None:
    path = "/home/mara/Documents/work/skills/harbour-work/SKILL.md"
    read = call("Read", "r", file_path=path), answer("Always run reviewGauge3() before the export.", "r")
    assert "Skills loaded" not in rendered(
        digest(conversation(user("what does it do?"), *read, says("It runs."))).summary
    )


def test_the_mode_in_which_an_agent_only_plans_is_stated_until_it_is_left() -> None:
    def edit(path: str) -> tuple[Message, ...]:
        return call("Write", "w", file_path=path, content="a"), answer("File created", "w")

    mode = "In plan mode: nothing is to be changed before the user approves a plan"
    entered = user("plan the gauge"), call("EnterPlanMode", "e"), answer("Entered plan mode.", "e")
    leaves = call("ExitPlanMode", "x", plan="One gauge.")
    assert plan(conversation(*entered)) == [mode]
    assert mode in plan(conversation(*entered, *edit("/plans/gauge.md")))
    assert mode not in plan(conversation(*entered, leaves, answer("User has approved your plan.", "x")))
    assert mode not in plan(conversation(*entered, *edit("/harbour/gauge.py")))


def test_the_user_may_let_the_agent_only_plan_and_end_that_with_any_message() -> None:
    assert [plans_only(one) for one in ({"permissionMode": "plan"}, {"permissionMode": "default"}, {}, None)] == [
        *(True, False, None, None)
    ]
    found = events_of(user("plan the gauge"), says("I read it."), user("now the clock"), says("I read that."))
    asked, again = (event.record for event in found if event.kind is EventKind.USER)
    assert attached(found, modes={asked: True}).planning == asked
    assert attached(found, modes={asked: True, again: False}).planning == -1
    leaves = call("ExitPlanMode", "x", plan="One gauge."), answer("User has approved your plan.", "x")
    assert attached(events_of(user("plan the gauge"), *leaves), modes={0: True}).planning == -1


def test_a_command_that_was_run_again_to_its_end_runs_no_more() -> None:
    begun = ran("go test ./tides", "Process running with session ID 35703\nOutput:\n")
    assert plan(conversation(user("test it"), *begun)) == [
        'In the background, not seen to end: "go test ./tides" (35703)'
    ]
    assert plan(conversation(user("test it"), *begun, *ran("go test ./tides", "ok  tides 0.4s"))) == []


def test_what_asks_a_program_for_what_it_knows_is_no_work_in_the_background() -> None:
    begun = ran("bd show tide-41", "Command running in background with ID: b77f00. Output is being written to: /tmp/x")
    assert plan(conversation(user("look at it"), *begun)) == []


def test_a_commit_shows_that_the_mode_to_plan_only_was_left() -> None:
    enter = call("EnterPlanMode", "p"), answer("Entered plan mode.", "p")
    note = call("Write", "w", file_path="docs/plan.md", content="a"), answer("File created", "w")
    assert any("plan mode" in text for text in plan(conversation(user("plan it"), *enter, *note)))
    committed = ran("git add docs && git commit -m 'Plan'", "[main 4f1c2aa] Plan\n 1 file changed")
    assert not any("plan mode" in text for text in plan(conversation(user("plan it"), *enter, *note, committed)))


def test_a_skill_is_loaded_by_the_read_that_found_it() -> None:
    path = "/home/a/.codex/skills/{}/review/SKILL.md"
    missed = ran(
        f"sed -n '1,220p' {path.format('old')}", "Process exited with code 1\nNo such file", tool="exec_command"
    )
    read = ran(f"sed -n '1,220p' {path.format('new')}", "Process exited with code 0\n# Review", tool="exec_command")
    assert skills(conversation(user("review it"), *missed, says("Elsewhere."))) == []
    assert skills(conversation(user("review it"), *missed, *read, says("Read."))) == ["Skills loaded: review"]


def _script(number: str, source: str) -> Message:
    return Message(role=Role.ASSISTANT, parts=(ToolCall(id=number, name="exec", arguments=source),))


def test_a_command_that_a_script_began_is_followed_to_its_end() -> None:
    head = "Wall time 10.0 seconds\nOutput:\n\n"
    running = "Script running with cell ID {}\n" + head
    began = (
        _script("a", 'const r = await tools.exec_command({cmd: "make tides"}); text(JSON.stringify(r))'),
        answer(running.format(3), "a"),
        call("wait", "b", cell_id="3"),
        answer(f'Script completed\n{head}{{"session_id": 77, "output": "half"}}', "b"),
    )
    one = digest(conversation(user("make the tides"), *began))
    assert 'In the background, not seen to end: "make tides" (77)' in texts(one, Section.PLAN)
    over = (
        _script("c", 'const r = await tools.write_stdin({session_id: 77, chars: ""}); text(JSON.stringify(r))'),
        answer(running.format(4), "c"),
        call("wait", "d", cell_id="4"),
        answer(f'Script completed\n{head}{{"exit_code": 1, "output": "Error: no tide"}}', "d"),
    )
    one = digest(conversation(user("make the tides"), *began, *over))
    assert not any("In the background" in text for text in texts(one, Section.PLAN))
    assert "`make tides`: Error: no tide — failed" in texts(one, Section.PLAN)


def test_what_agents_report_to_a_call_that_waits_for_them_is_their_report() -> None:
    words = "The sum is short: `PumpTable` rounds the rates of both pumps down, since it divides before it adds."
    waits = call("wait_agent", "w", targets=["p"]), answer(json.dumps({"status": {"p": {"completed": words}}}), "w")
    found = digest(conversation(user("review the pumps"), *waits, *ran("make", "ok"), says("One finding.")), 2_000)
    assert f"wait_agent: {words}" in "\n".join(texts(found, Section.HISTORY))
    assert not any("wait_agent" in text for text in texts(found, Section.COMMANDS))
