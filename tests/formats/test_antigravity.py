"""Transcripts that Antigravity exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compaction import LONG, compacted
from made_sessions import ACKNOWLEDGEMENT, SUMMARY, made, shown
from made_sessions import compacted as replaced
from opening import joined, open_bytes, open_one, shortened

from compactor_cli.api import make_digest
from compactor_cli.digest.events import events
from compactor_cli.formats.directories import directories_of
from compactor_cli.formats.harness import refusal, user_text
from compactor_cli.formats.registry import get
from compactor_cli.group.exchanges import group, turns
from compactor_cli.model.transcript import Role
from compactor_cli.run.documents import faults

DIALECT = get("antigravity")
SAMPLE = Path(__file__).resolve().parents[2] / "samples/antigravity.jsonl"
TASK = "4d1c7b52-0b6e-4f0a-9a3e-7c2f5e8d9b10/task-9"


def step(source: str, kind: str, content: str = "", *, status: str = "DONE", **values: Any) -> dict[str, Any]:
    text = {"content": content} if content else {}
    head = {"step_index": 7, "source": source, "type": kind, "status": status, "created_at": "2026-06-02T07:00:00Z"}
    return {**head, **text, **values}


def asked(words: str) -> dict[str, Any]:
    around = "<ADDITIONAL_METADATA>\nThe current local time is: 2026-06-02.\n</ADDITIONAL_METADATA>"
    return step("USER_EXPLICIT", "USER_INPUT", f"<USER_REQUEST>\n{words}\n</USER_REQUEST>\n{around}")


def calls(*named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    coded = [
        {"name": name, "args": {key: json.dumps(value) for key, value in {**args, "toolAction": "Looking"}.items()}}
        for name, args in named
    ]
    return step("MODEL", "PLANNER_RESPONSE", thinking="Hm.", tool_calls=coded)


def result(kind: str, text: str, status: str = "DONE") -> dict[str, Any]:
    return step("MODEL", kind, f"Created At: 2026-06-02\nCompleted At: 2026-06-02\n{text}", status=status)


def ran(command: str) -> dict[str, Any]:
    return calls(("run_command", {"CommandLine": command, "Cwd": "C:\\tides\\north", "WaitMsBeforeAsync": 500}))


ASKED = asked("Where is the oak?")
ANSWERED = step("MODEL", "PLANNER_RESPONSE", "In the garden.")
REMINDER = step("SYSTEM", "EPHEMERAL_MESSAGE", "You're in planning mode.")


def test_the_sample_is_read_back_byte_for_byte_with_every_call_answered() -> None:
    data = SAMPLE.read_bytes()
    transcripts = open_bytes(data)
    assert joined(transcripts) == data
    (transcript,) = transcripts
    assert transcript.dialect == "antigravity"
    assert all(faults("antigravity", record.value) == () for record in transcript.records)
    found = group(transcript.messages)
    assert len(found.pairs) == sum(len(message.calls) for message in transcript.messages) > 0
    assert not found.orphan_results
    assert directories_of(transcript).working == "/c/Users/ann/tides"


def test_the_digest_of_the_sample_has_what_was_done_and_nothing_of_the_client() -> None:
    text = make_digest(SAMPLE.read_bytes(), size=2_000).summary
    assert "Find out why and fix it, but keep the log in UTC." in text
    assert "`python -m pytest -q` → ok: 12 passed" in text
    assert "src/gauge.py — edited ×2" in text
    assert "not yet, Ben reads it first" in text
    signs = ("USER_", "METADATA", "planning mode", "Created At", "proactively", "Retries", "SYSTEM_MESSAGE", "_block_")
    assert [sign for sign in (*signs, "toolAction", "Reading gauge.py", "task-", "503") if sign in text] == []


def test_only_the_request_is_the_user_s() -> None:
    looked_at = "The USER performed the following action:\nShow the contents of file a"
    opened_file = step("USER_EXPLICIT", "VIEW_FILE", looked_at)
    messages = open_one(ASKED, REMINDER, opened_file, ANSWERED, asked("")).messages
    assert [user_text(message) for message in messages] == ["Where is the oak?", "", "", "", ""]
    assert [message.role for message in messages] == [Role.USER, Role.META, Role.USER, Role.ASSISTANT, Role.USER]
    assert len(turns(messages)) == 1


def test_a_request_of_which_the_client_cut_out_a_part_is_shown_with_a_gap() -> None:
    (event,) = events(open_one(asked("Find the oak,\n<truncated 91 bytes>\nthen the elm.")), range(1))
    assert event.text == "Find the oak, … then the elm."


def test_arguments_are_read_from_their_json_without_labels_and_written_back_so() -> None:
    value = calls(("multi_replace_file_content", {"TargetFile": "C:\\a.py", "ReplacementChunks": [{"StartLine": 4}]}))
    (call,) = open_one(ASKED, value).messages[1].calls
    assert call.arguments == {"TargetFile": "C:\\a.py", "ReplacementChunks": [{"StartLine": 4}]}
    new = shortened("antigravity", value, {1: '{"TargetFile": "C:\\\\a.py", "ReplacementChunks": ["…"]}'})
    assert new["tool_calls"][0]["args"] == {
        "TargetFile": '"C:\\\\a.py"',
        "ReplacementChunks": '["…"]',
        "toolAction": '"Looking"',
    }


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('"# Oak\\n\\"tree\\"\n<truncated 9 bytes>', '# Oak\n"tree"\n<truncated 9 bytes>'),
        ('"# Oak\\\n<truncated 9 bytes>', "# Oak\n<truncated 9 bytes>"),
        ('"# Oak\\u00\n<truncated 9 bytes>', "# Oak\n<truncated 9 bytes>"),
        ('[{"Start\n<truncated 9 bytes>', '[{"Start\n<truncated 9 bytes>'),
        (5, 5),
    ],
)
def test_an_argument_whose_end_was_cut_off_is_what_is_left_of_it(written: Any, read: Any) -> None:
    call = {"name": "write_to_file", "args": {"CodeContent": written}}
    message = open_one(ASKED, step("MODEL", "PLANNER_RESPONSE", tool_calls=[call])).messages[1]
    assert message.calls[0].arguments == {"CodeContent": read}


def test_results_are_those_of_the_calls_in_order_also_where_the_client_could_not_read_one() -> None:
    unread = "There was a problem parsing the tool call. \nError Message: no such file"
    transcript = open_one(
        ASKED,
        calls(("list_dir", {"DirectoryPath": "C:\\a"}), ("view_file", {"AbsolutePath": "C:\\b"})),
        result("LIST_DIRECTORY", "oak.md"),
        step("SYSTEM", "ERROR_MESSAGE", error=unread),
        ran("git push"),
        result("RUN_COMMAND", "Encountered error in step execution: no such program", "ERROR"),
        step("SYSTEM", "ERROR_MESSAGE", error="UNAVAILABLE (code 503)"),
    )
    found = [(pair.call.record, pair.call.part, pair.result.record) for pair in group(transcript.messages).pairs]
    assert found == [(1, 1, 2), (1, 2, 3), (4, 1, 5)]
    errors = [each.is_error for message in transcript.messages for each in message.results]
    assert errors == [False, True, True]
    assert transcript.messages[6].is_meta


def test_what_the_user_says_when_denying_a_command_is_a_refusal() -> None:
    said = "The following instruction was provided by the user as an alternative: wait"
    failed = f"Encountered error in step execution: user denied permission for command(x). {said}"
    denied = result("RUN_COMMAND", f"\n\t\t{failed}\n", "ERROR")
    (one,) = open_one(ASKED, ran("x"), denied).messages[2].results
    assert refusal(one) == "wait"


def test_a_command_in_the_background_has_the_outcome_that_is_reported_later() -> None:
    started = (
        f"Created At: 2026-06-02\nTool is running as a background task with task id: {TASK}\nTask Description: make"
    )
    reported = (
        "The following is a <SYSTEM_MESSAGE> not actually sent by the user.\n\n<SYSTEM_MESSAGE>\n[Message] content="
        f'Task id "{TASK}" finished with result:\n\n\t\t\t\tThe command failed with exit code: 2\n\t\t\t\tOutput:\n'
        "\t\t\t\tno acorns left\n</SYSTEM_MESSAGE>"
    )
    begun = [ASKED, ran("make oak"), step("MODEL", "RUN_COMMAND", started, status="RUNNING")]
    told = step("SYSTEM", "SYSTEM_MESSAGE", reported)
    data = ["".join(json.dumps(value) + "\n" for value in values) for values in (begun, [*begun, told, ANSWERED])]
    before, after = (make_digest(each.encode(), size=500).summary for each in data)
    assert "(task-9)" in before
    assert "(task-9)" not in after
    assert "no acorns left" in after


@pytest.mark.parametrize("times", ["Created At: 2026-06-02\nCompleted At: 2026-06-02\n\n\t\t\t\t", ""])
def test_how_a_command_ended_is_shown_without_what_the_client_writes_around_it(times: str) -> None:
    failed = "The command failed with exit code: 2\n\t\t\t\tOutput:\n\t\t\t\tno acorns left\n"
    done = "The command completed successfully.\n\t\t\t\tOutput:\n\t\t\t\t3 acorns\n"
    values = [ASKED, ran("make oak"), step("MODEL", "RUN_COMMAND", times + failed), ran("make elm")]
    values += [step("MODEL", "RUN_COMMAND", times + done)]
    typed = "The USER performed the following action:\nCommand: make ash\nCWD: C:\\tides\\north\n\n\t\t\t\t"
    values += [step("USER_EXPLICIT", "RUN_COMMAND", typed + failed), ANSWERED]
    found = [event.text for event in events(open_one(*values), range(7))]
    assert found[1:] == [
        *("run_command\nmake oak", "exit code: 2\nno acorns left", "run_command\nmake elm", "3 acorns"),
        *("bash\nmake ash", "exit code: 2\nno acorns left", "In the garden."),
    ]


def test_what_a_program_prints_is_not_taken_for_the_client_s() -> None:
    printed = step("MODEL", "RUN_COMMAND", "The command completed successfully.\r\n")
    found = events(open_one(ASKED, ran("net use"), printed), range(3))
    assert found[2].text == "The command completed successfully."


def test_a_checkpoint_stands_for_all_before_it() -> None:
    checkpoint = step("SYSTEM", "CHECKPOINT", "{{ CHECKPOINT 3 }}\nThe user asked for the oak.")
    transcript = made(DIALECT, [ASKED, ANSWERED, checkpoint, asked("And the elm?")])
    assert [message.superseded for message in transcript.messages] == [True, True, False, False]
    assert transcript.messages[2].summary is not None
    assert len(shown(transcript)) == 2


def test_a_compacted_transcript_is_one_again() -> None:
    values = [ASKED]
    for n in range(9):
        values += [REMINDER, ran(f"make {n}"), result("RUN_COMMAND", f"{n} {LONG}"), ANSWERED]
    (transcript,) = open_bytes("".join(json.dumps(value) + "\n" for value in values).encode())
    done = compacted(transcript)
    (again,) = open_bytes(done.output)
    assert again.dialect == "antigravity"
    assert [message.summary.origin for message in again.messages if message.summary] == ["compact"]
    assert not group(again.messages).orphan_results
    assert all(faults("antigravity", record.value) == () for record in again.records)
    assert compacted(again).output == done.output
    after = replaced(DIALECT, transcript, 1, 30, (SUMMARY, ACKNOWLEDGEMENT))
    assert [after.messages[i].text for i in (1, 2)] == [SUMMARY.text, ACKNOWLEDGEMENT.text]
    assert [after.records[i].value["created_at"] for i in (1, 2)] == [ASKED["created_at"]] * 2
