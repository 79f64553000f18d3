"""Cline's and Roo Code's histories."""

from __future__ import annotations

import json
from typing import Any

from compaction import LONG, round_trip, value_of
from made_sessions import shown
from opening import open_one

from compactor_cli.digest.events import EventKind, events
from compactor_cli.formats.registry import get
from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Role, ToolResult, Transcript

DETAILS = "<environment_details>\n# Current Time\nnoon\n</environment_details>"
REMINDER = "# TODO LIST UPDATE REQUIRED - You MUST include the task_progress parameter in your NEXT tool call."


def said(role: str, *texts: Any) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text} if isinstance(text, str) else text for text in texts]
    return {"role": role, "content": blocks, "ts": 1_777_000_000_000}


def call(name: str, key: str, **arguments: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": arguments}


TASK = said("user", "<task>\nmake it blue\n</task>", DETAILS)
READS = said("assistant", "I look.", call("read_file", "c1", path="a.css"), call("read_file", "c2", path="b.css"))
FOUND = said(
    "user", "[read_file for 'a.css'] Result:\nred", "[read_file for 'b.css'] Result:\ngreen", REMINDER, DETAILS
)


def user_words(transcript: Transcript) -> list[str]:
    found = events(transcript, range(len(transcript.records)))
    return [event.text for event in found if event.kind is EventKind.USER]


def test_what_tools_answer_is_no_word_of_the_user() -> None:
    transcript = open_one([TASK, READS, FOUND])
    assert transcript.dialect == "cline"
    assert [message.role for message in transcript.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert [(result.id, result.text) for result in transcript.messages[2].results] == [("c1", "red"), ("c2", "green")]
    assert len(group(transcript.messages).pairs) == 2
    assert user_words(transcript) == ["make it blue"]


def test_a_command_of_many_lines_stands_in_the_head_of_its_result() -> None:
    asked = said("assistant", call("execute_command", "c", command="a\nb"))
    done = said("user", "[execute_command for 'a\nb'] Result:\nCommand failed with exit code 1.\nOutput:\nno", DETAILS)
    result = open_one([TASK, asked, done]).messages[2].results[0]
    assert result.text.startswith("Command failed")
    assert result.is_error


def test_calls_and_results_of_older_versions_are_texts() -> None:
    asked = said("assistant", "I look.\n\n<read_file>\n<path>a.css</path>\n</read_file>")
    found = said("user", "[read_file for 'a.css'] Result:", "1 | red", DETAILS)
    transcript = open_one([TASK, asked, found])
    assert shown(transcript)[1:3] == ["I look.", "read_file({'path': 'a.css'})"]
    assert transcript.messages[2].results[0].text == "1 | red"
    assert len(group(transcript.messages).pairs) == 1


def test_an_answer_that_names_its_call_is_paired_with_it() -> None:
    asked = said("assistant", call("read_file", "c1", path="a.css"))
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "1 | red"}]}
    grouping = group(open_one([TASK, asked, answer]).messages)
    assert (len(grouping.pairs), grouping.orphan_results) == (1, ())


def test_what_the_user_answers_a_tool_is_theirs() -> None:
    asked = said("assistant", call("ask_followup_question", "c", question="Which?"))
    told = said("user", "[ask_followup_question for 'Which?'] Result:\n<answer>\nthe dark one\n</answer>", DETAILS)
    transcript = open_one([TASK, asked, told])
    assert transcript.messages[2].role is Role.USER
    assert user_words(transcript) == ["make it blue", "the dark one"]


def test_a_call_that_was_given_up_is_whole() -> None:
    resumed = said("user", "[TASK RESUMPTION] This task was interrupted.", "<user_message>\ngo on\n</user_message>")
    transcript = open_one([TASK, FOUND, said("assistant", call("execute_command", "c", command="x")), resumed])
    assert not group(transcript.messages).orphan_calls
    assert [result.is_recorded for result in transcript.messages[2].results] == [False]
    assert user_words(transcript)[-1] == "go on"


def short(message: dict[str, Any], text: str) -> list[str]:
    """The texts of the message when its first part is shortened to this."""
    record = open_one([message, TASK]).records[0]
    return [block["text"] for block in json.loads(get("cline").shorten(record, {0: text}))["content"]]


def test_shortening_leaves_the_heads_of_results_and_calls_in_texts() -> None:
    assert short(FOUND, "r…")[0] == "[read_file for 'a.css'] Result:\nr…"
    older = said("user", "[read_file for 'a.css'] Result:", "1 | red", DETAILS)
    assert short(older, "r…")[:2] == ["[read_file for 'a.css'] Result:", "r…"]
    asked = "\n\n<read_file>\n<path>a.css</path>\n</read_file>"
    assert short(said("assistant", f"I look.{asked}"), "I") == [f"I{asked}"]


def test_a_history_stays_one_when_it_is_compacted() -> None:
    found = said(
        "user", f"[read_file for 'a.css'] Result:\n{LONG}", f"[read_file for 'b.css'] Result:\n{LONG}", DETAILS
    )
    history = [
        TASK,
        *[READS, found] * 12,
        said("assistant", "Done."),
        said("user", "<feedback>\nOn.\n</feedback>", DETAILS),
    ]
    value = value_of(round_trip(history, "cline", indent=None))
    assert len(value) < len(history)
    assert set(value[1]) <= {"role", "content", "ts"}


def test_the_model_is_the_last_answers() -> None:
    asked = said("assistant", "I look.") | {"modelInfo": {"modelId": "m", "providerId": "p"}}
    assert open_one([TASK, asked]).model == "m"


def test_plain_messages_of_the_api_are_no_history() -> None:
    plain = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}, {"role": "assistant", "content": "yes"}]
    assert get("cline").array_path(plain) is None
    assert not any(isinstance(part, ToolResult) for part in open_one(plain).messages[0].parts)
