"""Copilot CLI's session events."""

from __future__ import annotations

from typing import Any

from made_sessions import ACKNOWLEDGEMENT, SUMMARY, compacted, made, shown
from opening import open_one, shortened

from compactor_cli.formats.directories import directories_of
from compactor_cli.formats.harness import user_text, with_client
from compactor_cli.formats.registry import get
from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Role

DIALECT = get("copilot")


def chain(*events: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": kind, "data": data, "id": f"e{i}", "timestamp": f"t{i}", "parentId": f"e{i - 1}" if i else None}
        for i, (kind, data) in enumerate(events)
    ]


START = ("session.start", {"sessionId": "s", "selectedModel": "gpt-5", "context": {"cwd": "/data/app"}})
ASKED = ("user.message", {"content": "run it", "transformedContent": "<now/>run it", "attachments": []})
CALL = {"toolCallId": "c1", "name": "bash", "arguments": {"command": "make"}, "type": "function"}
CALLED = (
    "assistant.message",
    {"messageId": "m", "content": "I run it.", "reasoningText": "Hm.", "toolRequests": [CALL]},
)
BEGUN = ("tool.execution_start", {"toolCallId": "c1", "toolName": "bash", "arguments": {"command": "make"}})
DONE = ("tool.execution_complete", {"toolCallId": "c1", "success": True, "result": {"content": "built"}})
SAID = ("assistant.message", {"messageId": "n", "content": "Built.", "toolRequests": []})
TURN = (ASKED, CALLED, BEGUN, DONE, SAID)


def test_a_session_is_known_by_its_events() -> None:
    transcript = open_one(*chain(START, *TURN))
    assert (transcript.dialect, transcript.model) == ("copilot", "gpt-5")
    assert shown(transcript) == ["run it", "I run it.", "bash({'command': 'make'})", "= built", "Built."]
    assert len(group(transcript.messages).pairs) == 1
    assert directories_of(transcript).working == "/data/app"


def test_what_failed_says_why() -> None:
    failed = {"toolCallId": "c1", "success": False, "error": {"message": "no such file", "code": "failure"}}
    (result,) = made(DIALECT, chain(START, ASKED, CALLED, ("tool.execution_complete", failed))).messages[3].results
    assert (result.text, result.is_error) == ("no such file", True)


def test_a_compaction_stands_for_all_before_it_but_the_system_message() -> None:
    system = ("system.message", {"content": "You help.", "role": "system"})
    done = ("session.compaction_complete", {"success": True, "summaryContent": "It was built."})
    transcript = made(DIALECT, chain(START, system, *TURN, done, ASKED))
    assert shown(transcript) == ["You help.", "It was built.", "run it"]
    failed = ("session.compaction_complete", {"success": False, "summaryContent": None})
    assert len(shown(made(DIALECT, chain(START, *TURN, failed, ASKED)))) == 6


def test_the_tail_hangs_on_what_takes_the_place_of_the_removed() -> None:
    transcript = made(DIALECT, chain(START, *TURN, *TURN))
    after = compacted(DIALECT, transcript, 2, 6, (SUMMARY, ACKNOWLEDGEMENT))
    ids = {record.value["id"]: record.value["parentId"] for record in after.records}
    assert ids["e6"] == "e5"
    assert ids[ids["e5"]] == "e1"
    assert [message.summary.origin for message in after.messages if message.summary] == []
    assert shown(after)[1:3] == [SUMMARY.text, ACKNOWLEDGEMENT.text]
    assert after.messages[2].role is Role.USER


def test_texts_are_shortened_where_they_stand() -> None:
    asked, called, done = chain(ASKED, CALLED, DONE)
    assert shortened("copilot", asked, {0: "r"})["data"] | {"attachments": 0} == {
        "content": "r",
        "transformedContent": "r",
        "attachments": 0,
    }
    short = shortened("copilot", called, {1: "I", 2: '{"command":"m"}'})["data"]
    assert (short["content"], short["toolRequests"][0]["arguments"]) == ("I", {"command": "m"})
    assert shortened("copilot", done, {0: "b"})["data"]["result"] == {"content": "b"}


def test_the_summary_of_a_compaction_is_shortened_where_it_stands() -> None:
    (done,) = chain(("session.compaction_complete", {"success": True, "summaryContent": "It was built."}))
    assert shortened("copilot", done, {0: "Built."})["data"] == {"success": True, "summaryContent": "Built."}


def test_instructions_that_the_client_found_are_no_words_of_the_user() -> None:
    reminder = "<system_reminder>\nCustom instructions from AGENTS.md. Apply these.\n</system_reminder>"
    found = ("user.message", {"content": reminder, "source": "instruction-discovery"})
    messages = with_client(made(DIALECT, chain(START, ASKED, found)).messages, "copilot")
    assert [user_text(message) for message in messages[1:]] == ["run it", ""]
