"""Events: cleaned texts, kinds of tools, and which result belongs to which call."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from conversation import answer, call, conversation, events_of, ran, says, summary, user

from compactor_cli.digest.cleaning import unfolded, without_gutters
from compactor_cli.digest.events import EventKind, events
from compactor_cli.digest.tools import ToolKind, argument, command_of, tool_kind
from compactor_cli.formats.directories import directories_of, path_stripper
from compactor_cli.model.transcript import Message, Role, Text, ToolCall, ToolResult


def test_texts_lose_what_clients_add() -> None:
    found = events_of(
        user("<system-reminder>be nice</system-reminder>Look at /data/app/src/a.py\n"),
        call("Read", file_path="/data/app/src/a.py"),
        answer("     1→import os\r\n     2→\x1b[31mred\x1b[0m\n<system-reminder>x</system-reminder>"),
        cwd="/data/app",
    )
    assert [event.text for event in found] == ["Look at src/a.py", "Read\nsrc/a.py", "import os\nred"]


def test_of_words_around_a_command_that_is_called_anyway_the_thought_stays() -> None:
    thought = "THOUGHT: The zero is lost in the reader.\n\n```bash\nsed -n '1,20p' gauge.py\n```"
    parts = (Text(text=thought), ToolCall(id="1", name="bash", arguments={"command": "sed -n '1,20p' gauge.py"}))
    found = events_of(Message(role=Role.ASSISTANT, parts=parts), says("So:\n```bash\nmake\n```"))
    spoken = [event.text for event in found if event.kind is EventKind.ASSISTANT]
    assert spoken == ["The zero is lost in the reader.", "So:\n```bash\nmake\n```"]


def test_a_path_that_only_looks_like_the_working_directory_stays() -> None:
    found = events_of(user("see https://host/data/app/x and /srv/data/app/y and /data/app/z"), cwd="/data/app")
    assert found[0].text == "see https://host/data/app/x and /srv/data/app/y and z"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("1\tfirst\n2\tsecond", "first\nsecond"), ("17\tx\n5\ty", "17\tx\n5\ty"), ("  9→one", "one")],
)
def test_line_numbers_go_but_tables_stay(text: str, shown: str) -> None:
    assert events_of(call("Bash", command="x"), answer(text))[1].text == shown


def test_of_a_file_that_was_read_neither_frame_nor_numbers_stay() -> None:
    content = "17: import os\n18: \n19: x = {1: 2}\n\n{}\n"
    framed = f"<path>/data/app/src/a.py</path>\n<type>file</type>\n<content>{content}</content>"
    for notice in ("(End of file - total 19 lines)", "(Showing lines 17-19 of 80. Use offset=20 to continue.)"):
        text = framed.replace("{}", notice)
        assert events_of(call("Read", file_path="a.py"), answer(text))[1].text == "import os\n\nx = {1: 2}"
    listed = "17: import os\n19: x"
    assert events_of(call("Bash", command="x"), answer(listed))[1].text == listed


def test_long_json_is_broken_between_its_members_and_nothing_else_changes() -> None:
    rows = ", ".join(f'{{"flight": "HAT{number}", "price": {number * 3}}}' for number in range(100, 120))
    text = events_of(call("search_flights"), answer(f'{{"user_id": "mei_7", "rows": [{rows}]}}'))[1].text
    assert '{"flight": "HAT101", "price": 303},' in [line.strip() for line in text.split("\n")]
    assert text.replace("\n", "") == f'{{"user_id": "mei_7", "rows": [{rows}]}}'


def test_an_object_that_fits_a_line_stays_one_with_what_it_holds() -> None:
    threads = [
        {"id": f"PRRT_{n}", "isResolved": n < 9, "comments": {"nodes": [{"path": f"src/gauge{n}.py", "line": n}]}}
        for n in (7, 8, 9)
    ]
    text = json.dumps({"data": {"pullRequest": {"reviewThreads": {"nodes": threads}}}}, separators=(",", ":"))
    lines = unfolded(text).split("\n")
    assert "".join(lines) == text
    assert [line.rstrip("]},") for line in lines[1:]] == [
        json.dumps(thread, separators=(",", ":")).rstrip("]},") for thread in threads
    ]


def test_questions_that_are_asked_by_a_tool_and_what_the_user_answers_are_spoken() -> None:
    order = {"question": "Which order?", "options": [{"label": "Keep"}, {"label": "Sort", "description": "clean"}]}
    asked = call("AskUserQuestion", "1", questions=[order, {"question": "Which name, please?"}])
    reply = 'User has answered your questions: "Which order?"="Keep", "Which name, please?"="say "tide", no more".'
    found = events_of(asked, answer(f"{reply} You can now continue with these.", "1"))
    assert [(event.kind, event.text) for event in found] == [
        (EventKind.ASSISTANT, "1. Keep\n2. Sort: clean\nWhich order?"),
        (EventKind.USER, "Keep"),
        (EventKind.ASSISTANT, "Which name, please?"),
        (EventKind.USER, 'say "tide", no more'),
    ]
    assert [event.turn for event in found] == [0, 1, 1, 2]


def test_what_a_client_adds_after_the_last_answer_is_no_word_of_the_user() -> None:
    asked = call("AskUserQuestion", "1", questions=[{"question": "Which order?"}])
    added = "Read the answers carefully \u2014 they may request changes \u2014 and follow what they actually say."
    found = events_of(asked, answer(f'Your questions have been answered: "Which order?"="Keep". {added}', "1"))
    assert [one.text for one in found if one.kind is EventKind.USER] == ["Keep"]
    (chosen,) = (one.text for one in events_of(asked, answer("User selected: Keep", "1")) if one.kind is EventKind.USER)
    assert chosen == "Keep"


def test_what_the_user_writes_beside_a_choice_stands_with_it_and_only_once() -> None:
    asked = call("AskUserQuestion", "1", questions=[{"question": "Which order?"}, {"question": "Which name?"}])
    notes = "what does sorting cost?"
    first = f'"Which order?"="{notes}" user notes: {notes}'
    reply = f'User has answered your questions: {first}, "Which name?"="tide" user notes: not the old one.'
    found = events_of(asked, answer(f"{reply} You can now continue with the user's answers in mind.", "1"))
    assert [one.text for one in found if one.kind is EventKind.USER] == [notes, "tide: not the old one"]


def test_where_the_user_chose_no_option_the_notes_are_the_answer() -> None:
    asked = call("AskUserQuestion", "1", questions=[{"question": "Which order?"}, {"question": "Which name?"}])
    given = '"Which order?"=(no option selected) notes: newest first., "Which name?"="tide"'
    found = events_of(
        asked, answer(f"The user answered: {given}. Read the answers carefully \u2014 they may ask.", "1")
    )
    assert [one.text for one in found if one.kind is EventKind.USER] == ["newest first", "tide"]


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        (
            "ask_followup_question",
            {"question": "Now?", "options": '["yes", "no"]'},
            "<answer>\nyes, at once\n</answer>",
        ),
        ("ask_followup_question", {"question": "Now?", "follow_up": "<suggest>yes</suggest>"}, "yes, at once"),
        (
            "request_user_input",
            {"questions": [{"question": "Now?"}]},
            '{"answers": {"a": {"answers": ["yes, at once"]}}}',
        ),
        ("ask_user", {"questions": [{"question": "Now?"}]}, "User answered: yes, at once"),
        ("AskUserQuestion", {"questions": [{"question": "Now?"}]}, '{"answers": {"Now?": "yes, at once"}}'),
    ],
)
def test_an_answer_is_the_users_however_a_client_writes_it(
    tool: str, arguments: dict[str, object], result: str
) -> None:
    asked, replied = events_of(call(tool, "1", **arguments), answer(result, "1"))
    assert asked.kind is EventKind.ASSISTANT
    assert asked.text.endswith("Now?")
    assert (replied.kind, replied.text) == (EventKind.USER, "yes, at once")


def test_an_error_or_a_refusal_of_a_question_is_no_answer() -> None:
    asked = call("AskUserQuestion", "1", questions=[{"question": "Now?"}])
    refused = "The user doesn't want to proceed with this tool use. the user said:\nlet me think"
    assert [e.text for e in events_of(asked, answer("InputValidationError: header", "1", is_error=True))] == ["Now?"]
    assert [e.text for e in events_of(asked, answer(refused, "1", is_error=True))] == ["Now?", "let me think"]
    assert len(events_of(asked, answer("[" * 100_000, "1"))) == 2


def test_a_report_without_words_is_a_call_like_others() -> None:
    report = call("attempt_completion", "1", result="<system-reminder>x</system-reminder>")
    found = events_of(report, call("Read", "2", file_path="a.py"), answer("a = 1", "2"))
    assert [event.kind for event in found] == [EventKind.CALL, EventKind.CALL, EventKind.RESULT]


def test_a_report_by_a_tool_is_spoken_and_only_a_person_replies_to_it() -> None:
    report = call("attempt_completion", "1", result="The export streams now.")
    assert [event.text for event in events_of(report, answer("done", "1"))] == ["The export streams now."]
    reply = "The user has provided feedback on the results.\n<feedback>\nand the import?\n</feedback>"
    assert [event.text for event in events_of(report, answer(reply, "1"))][1:] == ["and the import?"]


def test_what_comes_of_an_action_in_words_is_no_word_of_the_user() -> None:
    acted = says("Thought: I should count them.\nAction: count[LIS-07]")
    seen = user("Observation: 1380")
    found = events_of(acted, seen, says("Thought: It lost 60."), user("Observation: it is late."))
    assert [event.kind.value for event in found] == ["assistant", "result", "assistant", "user"]
    assert found[0].text.startswith("I should count them.")


@pytest.mark.parametrize(
    ("acted", "seen"),
    [
        ("```mswea_bash_command\nls tide\n```", "<returncode>0</returncode>\n<output>\ngauge.py\n</output>"),
        ("```bash\nls tide\n```", "<output>\ngauge.py\n</output>"),
        ("```\nls tide\n```", "OBSERVATION:\ngauge.py"),
        (
            "<function=execute_bash>\n<parameter=command>ls tide</parameter>\n</function>",
            "EXECUTION RESULT of [execute_bash]:\ngauge.py",
        ),
    ],
)
def test_a_call_that_is_written_into_words_is_a_call_with_its_result(acted: str, seen: str) -> None:
    found = events_of(says(f"I look for the gauge.\n\n{acted}"), user(seen), says("It is there."), user("Good."))
    assert [event.kind.value for event in found] == ["assistant", "call", "result", "assistant", "user"]
    assert (found[0].text, command_of(found[1].arguments)) == ("I look for the gauge.", "ls tide")
    assert (found[2].call, "gauge.py" in found[2].text, "OBSERVATION" in found[2].text) == (1, True, False)


def test_who_acted_by_words_once_is_answered_by_what_came_of_it() -> None:
    acted = says("```bash\nls\n```")
    found = events_of(acted, user("<output>\na.py\n</output>"), says("```bash\ngit diff\n```"), user("+ a line"))
    assert [event.kind.value for event in found] == ["call", "result", "call", "result"]


def test_a_first_message_is_an_output_only_where_it_is_marked_as_one() -> None:
    assert [event.kind for event in events_of(user("Observation: the gauge is slow."))] == [EventKind.USER]
    assert [event.kind for event in events_of(user("<output>\na.py\n</output>"))] == [EventKind.RESULT]


def test_a_command_that_is_only_shown_is_no_call() -> None:
    found = events_of(says("Run it like this:\n```bash\nmake gauge\n```"), user("It fails."))
    assert [event.kind.value for event in found] == ["assistant", "user"]


def test_a_message_to_somebody_else_is_a_call() -> None:
    sent = events_of(
        call("send_message", channel="ops", message="The export is late."),
        call("mcp__telegram__send_message", message="The export is late."),
    )
    assert [event.kind for event in sent] == [EventKind.CALL, EventKind.CALL]


def test_nobody_said_what_the_client_says_in_the_users_name() -> None:
    found = events_of(
        user("<local-command-caveat>Caveat: …</local-command-caveat>"),
        user("<command-name>/clear</command-name><command-args></command-args>"),
        user("[Request interrupted by user]"),
        user("<command-name>/review</command-name>\n<command-args>src</command-args>"),
        user("<local-command-stdout>Set model</local-command-stdout>"),
        user("<environment_context>\n<cwd>/w</cwd>\n</environment_context>"),
        Message(
            role=Role.TOOL, parts=(Text(text="<environment_details>\nVisible files: a.py\n</environment_details>"),)
        ),
    )
    assert [(event.kind, event.text) for event in found] == [(EventKind.USER, "/review src")]


@pytest.mark.parametrize(
    "refusal",
    [
        "Please always provide EXACTLY ONE action in triple backticks, found 0 actions.",
        "Tool call error:\n\n<error>\nNo tool calls found in the response.\n</error>",
        "Please continue working on the task on whatever approach you think is suitable.\nIf you think …",
    ],
)
def test_what_a_run_says_to_an_answer_without_an_action_is_no_turn(refusal: str) -> None:
    found = events_of(user("Fix it"), says("Done"), user(refusal))
    assert [event.kind for event in found] == [EventKind.USER, EventKind.ASSISTANT, EventKind.RESULT]
    assert {event.turn for event in found} == {1}


def test_what_the_runner_of_a_team_of_agents_writes_into_their_words_is_not_said() -> None:
    ledger = {
        "is_request_satisfied": {"reason": "The price of a pass is not known.", "answer": False},
        "is_in_loop": {"reason": "The same page was opened twice.", "answer": True},
        "next_speaker": {"reason": "It can browse.", "answer": "WebSurfer"},
        "instruction_or_question": {"reason": "It is missing.", "answer": "Open the page of the passes."},
    }
    metadata = 'The following metadata was extracted from the webpage:\n\n{\n    "meta_tags": {\n    }\n}\n\n'
    ended = "No agent selected.\n/x/scenario.py:94: UserWarning: a mismatch\n  a = await c.create(m)\nFINAL ANSWER: 6"
    found = events_of(
        user("What does it cost?"),
        says(f"Updated Ledger:\n{json.dumps(ledger)}"),
        says(f"{metadata}A pass costs $300."),
        says(ended),
    )
    assert [event.text for event in found[1:]] == [
        "The price of a pass is not known.\n\nThe same page was opened twice.\n\nOpen the page of the passes.",
        "A pass costs $300.",
        "FINAL ANSWER: 6",
    ]


def test_the_buttons_that_an_app_shows_below_an_answer_are_not_said() -> None:
    found = events_of(user("Push it"), says('Pushed.\n\n::git-stage{cwd="/w"}\n::git-push{cwd="/w" branch="tide"}'))
    assert [event.text for event in found] == ["Push it", "Pushed."]


def test_instructions_that_nobody_typed_are_no_turn() -> None:
    found = events_of(user("Fix it"), user("Base directory for this skill: /x\n\n# Skill"), says("Done"))
    assert [(event.kind, event.turn) for event in found] == [
        (EventKind.USER, 1),
        (EventKind.RESULT, 1),
        (EventKind.ASSISTANT, 1),
    ]


def test_a_calls_text_is_its_name_and_its_arguments() -> None:
    edits = [{"old_string": "x\ny", "new_string": "z"}]
    one = events_of(call("MultiEdit", file_path="a.py", edits=edits, replace_all=True))[0]
    assert one.text == "MultiEdit\na.py\nx\ny\nz"
    assert events_of(call("shell", command=["bash", "-lc", "ls"]))[0].text == "shell\nbash -lc ls"
    booked = events_of(call("book_flight", origin="JFK", passengers=[{"first_name": "Mei"}], is_return=True))[0]
    assert booked.text == "book_flight\norigin=JFK\nfirst_name=Mei\nis_return=true"


def test_repeated_ids_pair_in_order() -> None:
    found = events_of(
        call("Bash", "1", command="first"),
        call("Bash", "1", command="second"),
        answer("one", "1"),
        answer("two", "1"),
        answer("nobody asked", "1"),
    )
    assert [event.call for event in found[2:]] == [0, 1, -1]


def test_only_the_records_asked_for_and_turns_count_from_there() -> None:
    transcript = conversation(user("a"), says("b"), user("c"), says("d"))
    assert [(event.record, event.turn) for event in events(transcript, (1, 2, 3))] == [(1, 0), (2, 1), (3, 1)]


def test_a_summary_is_one_event_whatever_it_holds() -> None:
    assert [event.kind for event in events_of(summary("## Task\n- x"), user("go on"))] == [
        EventKind.SUMMARY,
        EventKind.USER,
    ]


def test_results_inside_user_messages_are_results() -> None:
    mixed = Message(role=Role.USER, parts=(ToolResult(id="1", text="out"), Text(text="and now?")))
    broken = ToolCall(id="1", name="Read", arguments="{broken")
    called = Message(role=Role.ASSISTANT, parts=(Text(text="I look"), broken))
    kinds = [event.kind for event in events_of(called, mixed)]
    assert kinds == [EventKind.ASSISTANT, EventKind.CALL, EventKind.RESULT, EventKind.USER]


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("Edit", {"file_path": "a"}, ToolKind.EDIT),
        ("apply_patch", "*** Begin Patch", ToolKind.EDIT),
        ("exec_command", {"cmd": "apply_patch <<'E'\n*** Begin Patch\n*** End Patch\nE"}, ToolKind.EDIT),
        ("exec_command", {"cmd": "ls"}, ToolKind.COMMAND),
        ("functions.shell", {"command": ["ls"]}, ToolKind.COMMAND),
        ("StrReplaceFile", {"path": "a"}, ToolKind.EDIT),
        ("str_replace_editor", {"command": "view", "path": "a"}, ToolKind.READ),
        ("str_replace_editor", {"command": "create", "path": "a"}, ToolKind.EDIT),
        ("run_shell_command", {"command": "ls"}, ToolKind.COMMAND),
        ("read_many_files", {"paths": ["a"]}, ToolKind.READ),
        ("mcp__fs__write_file", {"path": "a"}, ToolKind.EDIT),
        ("SetTodoList", {"todos": []}, ToolKind.PLAN),
        ("update_plan", {"plan": []}, ToolKind.PLAN),
        ("TaskUpdate", {"taskId": "1"}, ToolKind.PLAN),
        ("Task", {"prompt": "look"}, ToolKind.OTHER),
        ("update_reservation_flights", {"reservation_id": "X"}, ToolKind.OTHER),
        ("search_direct_flight", {"origin": "X"}, ToolKind.OTHER),
        ("overwrite_document", {"path": "a.md"}, ToolKind.EDIT),
    ],
)
def test_what_a_tool_does(name: str, arguments: object, kind: ToolKind) -> None:
    assert tool_kind(name, arguments) is kind  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["<environment_context><cwd>/data/app</cwd></environment_context>", "x\nWorking directory: /data/app\ny"],
)
def test_the_working_directory_is_stated_in_words_too(text: str) -> None:
    assert directories_of(conversation(user(text))).working == "/data/app"


def test_a_bar_after_a_number_is_a_gutter_only_where_a_file_was_read() -> None:
    table = "1 | red\n2 | green"
    assert without_gutters(table, surely=True) == "red\ngreen"
    assert without_gutters(table, surely=False) == table


def test_the_working_directory_of_opencode_is_found() -> None:
    value = {"info": {"role": "assistant", "path": {"cwd": "C:\\work\\app", "root": "/"}}, "parts": []}
    transcript = conversation(user("x"))
    records = tuple(replace(record, value=value) for record in transcript.records)
    assert directories_of(replace(transcript, records=records)).working == "/c/work/app"


@pytest.mark.parametrize(
    ("places", "directory"),
    [
        (["/w/a/tide"] * 9 + ["/w/a/copy"] * 9, "/w/a/copy"),
        (["/w/tide"] * 9 + ["/w/tide/docs"] * 9, "/w/tide"),
        (["/w/tide/docs"] * 9 + ["/w/tide"] * 9, "/w/tide/docs"),
        (["/w/a/tide"] * 39 + ["/w/a/copy"], "/w/a/tide"),
        (["/Users/mei/tide"] * 9 + ["/Users/ola/w/tide"] * 9, "/Users/mei/tide"),
    ],
)
def test_paths_are_relative_to_the_tree_to_which_the_session_moved_and_stayed(
    places: list[str], directory: str
) -> None:
    transcript = conversation(*[user("go on")] * len(places))
    named = zip(transcript.records, places, strict=True)
    records = tuple(replace(record, value={"cwd": place}) for record, place in named)
    assert directories_of(replace(transcript, records=records)).working == directory


@pytest.mark.parametrize(
    "path",
    [
        "c:/Work/App/src/a.py",
        "C:\\Work\\App\\src\\a.py",
        "C:\\\\Work\\\\App\\\\src\\\\a.py",
        "/c/Work/App/src/a.py",
        "/mnt/c/Work/App/src/a.py",
    ],
)
def test_a_windows_directory_is_taken_off_however_it_is_written(path: str) -> None:
    strip = path_stripper("C:\\Work\\App")
    assert strip(f"see {path} now") == "see src/a.py now"
    assert strip("see C:\\Work\\Apple\\a.py") == "see C:\\Work\\Apple\\a.py"
    assert strip("cd /c/Work/App && make") == "cd /c/Work/App && make"
    assert strip("[see C:\\Work\\App\\app\\[handle]\\a.py]") == "[see app/[handle]/a.py]"


def test_a_line_that_would_name_the_same_place_twice_keeps_the_directory() -> None:
    strip = path_stripper("/data/app")
    assert strip("cd /data/app/x\nrsync -a results/ /data/app/results/") == "cd x\nrsync -a results/ /data/app/results/"


def test_what_the_client_says_in_the_model_s_name_is_not_stated() -> None:
    refused = says('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}')
    found = events_of(user("Go on"), says("No response requested."), refused, says("Done"))
    assert [event.text for event in found] == ["Go on", "Done"]


def test_of_differences_a_result_has_the_lines_that_are_added() -> None:
    above = "diff --git a/tide.py b/tide.py\n--- a/tide.py\n+++ b/tide.py\n@@ -1,3 +1,3 @@ def low():\n"
    shown = "     levels = read()\n-    return 1\n+    return min(levels)\n\n\\ No newline at end of file\n"
    result = events_of(*ran("git diff", f"{above}{shown}--- a/moon.py\n+++ b/moon.py"))[1]
    named = "diff --git a/tide.py b/tide.py\n--- a/tide.py\n+++ b/tide.py\n"
    assert result.text == f"{named}    return min(levels)\n+++ b/moon.py"
    assert events_of(*ran("ls -l", "- a\n+ b"))[1].text == "- a\n+ b"


@pytest.mark.parametrize(
    ("version", "result", "refusal"),
    [
        ("2.0.5", "please add the clock to it first", "please add the clock to it first"),
        ("2.0.5", "Wait a sec, which gauge is it?", "Wait a sec, which gauge is it?"),
        ("2.0.5", "Exit code 1\nno gauge is there", None),
        ("2.0.5", "make: *** No rule to make target", None),
        ("1.0.51", "please add the clock to it first", None),  # may be what the command printed
        ("2.0.5", "Permission to use Bash with command make has been denied.", ""),
    ],
)
def test_words_that_stand_for_the_result_of_a_command_are_the_users_refusal(
    version: str, result: str, refusal: str | None
) -> None:
    transcript = conversation(*ran("make", result, is_error=True))
    written = {"parentUuid": "u1", "version": version}
    records = tuple(replace(record, value=written) for record in transcript.records)
    found = events(replace(transcript, records=records), range(2))
    assert found[1].refusal == refusal


@pytest.mark.parametrize(
    ("kind", "refusals"),
    [("permission-rule", []), ("automode-blocked", []), ("user-rejected", [""]), (None, [""])],
)
def test_a_call_that_a_rule_denied_was_not_made_and_not_stopped_by_the_user(
    kind: str | None, refusals: list[str]
) -> None:
    transcript = conversation(*ran("make", "Permission to use Bash with command make has been denied.", is_error=True))
    written = {"parentUuid": "u1", "version": "2.1.9", "toolDenialKind": kind}
    records = tuple(replace(record, value=written) for record in transcript.records)
    found = events(replace(transcript, records=records), range(2))
    assert [one.refusal for one in found[1:]] == refusals


@pytest.mark.parametrize(
    ("words", "refusal"),
    [("find holds glob characters that could expand", None), ("please ask me before", "please ask me before")],
)
def test_what_a_program_says_of_a_call_that_it_refused_is_not_the_users(words: str, refusal: str | None) -> None:
    transcript = conversation(*ran("make", words, is_error=True))
    written = {"parentUuid": "u1", "version": "2.1.9", "entrypoint": "sdk-py"}
    records = tuple(replace(record, value=written) for record in transcript.records)
    assert events(replace(transcript, records=records), range(2))[1].refusal == refusal


def test_a_result_that_is_written_before_its_call_answers_it() -> None:
    found = events_of(user("go"), answer("done", "c"), call("Bash", "c", command="make"))
    assert [(one.kind, one.call) for one in found[1:]] == [(EventKind.RESULT, 2), (EventKind.CALL, -1)]


def test_what_a_client_tells_of_a_command_around_its_output_is_none_of_it() -> None:
    told = "Command: make\nDirectory: (root)\nOutput: 3 gauges\nread\nError: (none)\nExit Code: 2\nSignal: 0\n"
    found = events_of(*ran("make", f"{told}Background PIDs: (none)\nProcess Group PGID: 88"))
    assert found[-1].text == "3 gauges\nread\nExit Code: 2"
    apart = told.replace("Output:", "Stdout:").replace("\nError:", "\nStderr: late\nError:")
    assert events_of(*ran("make", apart))[-1].text == "3 gauges\nread\nStderr: late\nExit Code: 2"
    brief = "Output: 3 gauges\nread\nExit Code: 2\nBackground PIDs: 7\nProcess Group PGID: 88"
    assert events_of(*ran("make", brief))[-1].text == "3 gauges\nread\nExit Code: 2"
    assert events_of(*ran("make", "Output: 3 gauges"))[-1].text == "Output: 3 gauges"


def test_the_command_that_a_client_repeats_above_what_it_tells_of_a_run_is_no_output() -> None:
    told = "Command: /bin/zsh -lc 'make\nmake test'\nChunk ID: 73a6b8\nWall time: 1.0018 seconds\n"
    ended = f"{told}Process exited with code 0\nOriginal token count: 3\nOutput:\n3 gauges"
    assert events_of(*ran("make", ended))[-1].text == "Process exited with code 0\n3 gauges"
    assert events_of(*ran("make", "Command: 3\nWall time: short"))[-1].text == "Command: 3\nWall time: short"


def test_the_answer_of_a_server_is_read_out_of_its_blocks() -> None:
    blocks = '[{"type":"text","text":"low tide\\n0.4 m"},{"type":"image","data":"AAAA"}]'
    assert events_of(*ran("tides", f"Wall time: 0.7 seconds\nOutput:\n{blocks}"))[-1].text == "low tide\n0.4 m"
    kept = '[{"kind":"ebb","text":"0.4 m"}]'
    assert events_of(*ran("tides", kept))[-1].text == kept


def test_what_a_client_instructs_in_the_midst_of_a_conversation_is_no_event() -> None:
    rules = Message(role=Role.SYSTEM, parts=(Text(text="Run `bd prime` after each compaction."),))
    found = events_of(rules, user("set the clock"), rules, says("I look."))
    assert [(one.kind, one.record) for one in found] == [
        (EventKind.RESULT, 0),
        (EventKind.USER, 1),
        (EventKind.ASSISTANT, 3),
    ]


def test_paths_are_relative_to_the_same_tree_in_the_home_of_somebody_who_went_on_with_the_session() -> None:
    transcript = conversation(*[call("Read", str(n), file_path=f"{home}/src/a.py") for n, home in enumerate(HOMES)])
    named = zip(transcript.records, HOMES, strict=True)
    records = tuple(replace(record, value={"cwd": home}) for record, home in named)
    found = events(replace(transcript, records=records), range(len(HOMES)))
    assert [argument(event.arguments, ("file_path",)) for event in found] == ["src/a.py", "/tmp/x/src/a.py", "src/a.py"]


HOMES = ("/Users/ann/sea", "/tmp/x", "/home/bob/work/sea")


def test_a_request_that_was_typed_where_a_command_was_expected_is_the_users_word() -> None:
    asked = user("<bash-input>Image updated. Do a handoff doc and let's clear the session</bash-input>")
    shown = user("<bash-stdout></bash-stdout><bash-stderr>(eval):1: unmatched '\n</bash-stderr>")
    found = events_of(user("build the image"), says("Built."), asked, shown)
    assert [one.text for one in found if one.kind is EventKind.USER] == [
        "build the image",
        "Image updated. Do a handoff doc and let's clear the session",
    ]
    typed = user("<bash-input>Rscript tides.R --low 3 now later gone</bash-input>")
    assert [one.kind for one in events_of(typed)] == [EventKind.CALL]


def test_where_no_directory_is_named_the_one_of_nearly_all_paths_is_taken() -> None:
    names = [f"/home/ann/harbour/tide/src/gauge_{n}.py" for n in range(20)]
    others = ["/home/ann/harbour/notes.md", "/tmp/tide.log"]
    found = conversation(*(call("Read", file_path=name) for name in (*names, *others)))
    directories = directories_of(found)
    assert (directories.working, directories.other) == ("/home/ann/harbour/tide/src",) * 2
    read = [event.text for event in events(found, range(22))]
    assert read == [*(f"Read\ngauge_{n}.py" for n in range(20)), *(f"Read\n{other}" for other in others)]
    few = conversation(*(call("Read", file_path=name) for name in names[:11]))
    apart = conversation(*(call("Read", file_path=f"/home/ann/{n}/gauge.py") for n in range(20)))
    assert [directories_of(one).other for one in (few, apart)] == ["", ""]
    named = [conversation(user(f"<cwd>{place}</cwd>"), *found.messages) for place in ("/home/ann/harbour", "/data/app")]
    assert [directories_of(one).other for one in named] == ["", "/home/ann/harbour/tide/src"]


def test_a_summary_stands_before_the_records_that_the_client_kept_along_with_it() -> None:
    kept = (says("I read the gauge."), *ran("make", "ok"))
    session = conversation(user("old"), *kept, summary("## Next Steps\n- Read the gauge", "pi"), user("and the lock?"))
    gone = replace(session.messages[0], superseded=True)
    found = events(replace(session, messages=(gone, *session.messages[1:])), range(1, 6))
    kinds = [EventKind.SUMMARY, EventKind.ASSISTANT, EventKind.CALL, EventKind.RESULT, EventKind.USER]
    assert [(event.kind, event.record) for event in found] == list(zip(kinds, (4, 1, 2, 3, 5), strict=True))
    replaced = [replace(message, superseded=True) for message in session.messages[:4]]
    found = events(replace(session, messages=(*replaced, *session.messages[4:])), range(6))
    assert [event.record for event in found] == [0, 1, 2, 3, 4, 5]


def test_a_call_that_the_client_turned_down_failed_though_its_answer_is_not_marked() -> None:
    edit = call("Edit", "e", file_path="gauge.py", old_string="a", new_string="b")
    unread = answer("<tool_use_error>File has not been read yet. Read it first.</tool_use_error>", "e")
    assert [event.is_error for event in events_of(edit, unread)] == [False, True]


def test_placeholders_of_a_template_are_not_torn_apart() -> None:
    template = '{"text": "' + "<td>{{ tide.level }}</td>" * 40 + '", "name": "tide.html"}'
    assert "{{ tide.level }}" in unfolded(template)
    assert not any(line.startswith("{ tide") for line in unfolded(template).split("\n"))


def test_the_lines_that_a_read_names_after_a_path_are_no_part_of_the_path() -> None:
    (read,) = events_of(call("read", path="src/tide.py:12-40"))
    assert read.arguments == {"path": "src/tide.py", "line_range": "12-40"}


def test_a_prompt_that_the_agent_set_for_later_and_the_text_of_a_skill_are_not_the_users() -> None:
    later = "Continue the review of the tides: round one fixed the levels of the north gauge."
    wake = call("ScheduleWakeup", "w", delaySeconds=240, prompt=later), answer("scheduled", "w")
    found = events_of(user("review it"), wake, says("I wait."), user(later), says("I go on."))
    assert [one.text for one in found if one.kind is EventKind.USER] == ["review it"]
    assert [one.text for one in found if one.kind is EventKind.ASSISTANT] == ["I wait.", "I go on."]
    text = "# Review\n\nRead every gauge and its level, then say which of them is wrong. " * 8
    loads = call("Skill", "s", skill="review"), answer("Launching skill: review", "s")
    found = events_of(user("review it"), loads, user(text), says("I read."))
    assert [one.text for one in found if one.kind is EventKind.USER] == ["review it"]


def test_what_a_client_writes_above_a_part_of_a_file_is_none_of_it() -> None:
    above = "IMPORTANT: The file content has been truncated.\nStatus: Showing lines 1-2 of 9.\nAction: Ask for more.\n"
    shown = f"{above}\n--- FILE CONTENT (truncated) ---\nlevel = 3"
    read = call("read_file", "r", file_path="a.py"), answer(shown, "r")
    assert events_of(*read)[-1].text == "level = 3"


def test_a_command_that_the_user_ran_is_read_after_the_agent_set_a_prompt_without_words() -> None:
    wake = call("ScheduleWakeup", "w", delaySeconds=240), answer("scheduled", "w")
    ran_by_user = user("<bash-input>make tides</bash-input>"), user("<bash-stdout>12 gauges</bash-stdout>")
    found = events_of(user("read the gauges"), *wake, *ran_by_user)
    assert [event.text for event in found if event.record >= 3 and event.kind is EventKind.RESULT] == ["12 gauges"]


def test_a_skill_that_the_user_called_is_their_command_where_only_its_text_is_recorded() -> None:
    folder = "Base directory for this skill: /srv/.claude/skills/tide-table"
    text = user(f"{folder}\n\n# Tides\nRead each gauge.\n\n\nARGUMENTS: at noon only")
    called = events_of(Message(role=Role.USER, parts=()), text)
    assert [one.text for one in called if one.kind is EventKind.USER] == ["/tide-table at noon only"]
    loaded = call("Skill", "s", skill="tide-table"), answer("Launching skill: tide-table", "s"), text
    assert not any(one.kind is EventKind.USER for one in events_of(*loaded))
    again = user("Skill /tide-table is already loaded above; instructions unchanged.")
    assert not any(one.kind is EventKind.USER for one in events_of(*loaded, again))


def test_the_parts_of_two_lines_around_what_a_client_cut_out_are_not_one_line() -> None:
    (event,) = events_of(*ran("cat gauge.py", "level = re…120 tokens truncated…ebb(level)"))[1:]
    assert event.text == "level = re …\n… ebb(level)"
