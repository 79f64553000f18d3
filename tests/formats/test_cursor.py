"""Cursor's agent transcripts."""

from __future__ import annotations

from typing import Any

from made_sessions import ACKNOWLEDGEMENT, SUMMARY, compacted, made, shown
from opening import open_one, shortened

from compactor_cli.digest.events import EventKind, events
from compactor_cli.formats.registry import get
from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Role, Text

DIALECT = get("cursor")


def said(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "message": {"content": list(blocks)}}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call(command: str) -> dict[str, Any]:
    return {"type": "tool_use", "name": "Shell", "input": {"command": command}}


ASKED = said("user", words("<image_files>\n1. /a.png\n</image_files>\n<user_query>\nrun the tests\n</user_query>"))
CALLED = said("assistant", words("I run them.\n\n[REDACTED]"), call("pytest -q"), call("ls"))
ENDED = {"type": "turn_ended", "status": "success"}
ANSWERED = said("assistant", words("They pass."))


def test_a_transcript_is_known_and_its_calls_are_answered_without_words() -> None:
    transcript = open_one(ASKED, CALLED, ENDED, ANSWERED)
    assert transcript.dialect == "cursor"
    assert [message.role for message in transcript.messages] == [Role.USER, Role.ASSISTANT, Role.META, Role.ASSISTANT]
    assert transcript.messages[1].text == "I run them."
    assert not group(transcript.messages).orphan_calls
    assert not any(result.is_recorded or result.text for result in transcript.messages[1].results)


def test_the_digest_claims_nothing_of_how_an_unanswered_call_ended() -> None:
    transcript = open_one(ASKED, CALLED, ANSWERED)
    found = events(transcript, range(3))
    assert EventKind.RESULT not in [event.kind for event in found]
    assert [event.text for event in found if event.kind is EventKind.USER] == ["run the tests"]


def test_results_that_are_in_the_file_are_read() -> None:
    result = said("user", {"type": "tool_result", "tool_use_id": "t", "content": [words("2 passed")]})
    transcript = made(DIALECT, [ASKED, said("assistant", call("pytest -q")), result, ANSWERED])
    assert shown(transcript)[1:3] == ["Shell({'command': 'pytest -q'})", "= 2 passed"]
    assert len(group(transcript.messages).pairs) == 1


def test_a_tool_that_is_called_by_way_of_another_is_the_one_that_is_called() -> None:
    steps = [{"id": "tide", "status": "completed"}]
    given = {"namespace": "cursor", "toolName": "TodoWrite", "arguments": {"merge": True, "todos": steps}}
    block = {"type": "tool_use", "name": "CallDynamicTool", "input": given}
    transcript = made(DIALECT, [ASKED, said("assistant", words("Done."), block), ANSWERED])
    assert shown(transcript)[1:3] == [
        "Done.",
        "TodoWrite({'merge': True, 'todos': [{'id': 'tide', 'status': 'completed'}]})",
    ]


def test_what_the_client_asks_for_after_background_work_is_not_the_persons_word() -> None:
    told = "Briefly inform the user about the task result and perform any follow-up actions (if needed). "
    told += "If there's no follow-ups needed, don't explicitly say that."
    transcript = open_one(ASKED, CALLED, said("user", words(f"<user_query>{told}</user_query>")), ANSWERED)
    assert [one.text for one in events(transcript, range(4)) if one.kind is EventKind.USER] == ["run the tests"]


def test_a_summary_takes_the_place_of_what_was_removed() -> None:
    transcript = compacted(DIALECT, made(DIALECT, [ASKED, CALLED, ANSWERED] * 2), 1, 5, (SUMMARY, ACKNOWLEDGEMENT))
    assert shown(transcript)[1:] == [SUMMARY.text, ACKNOWLEDGEMENT.text, "They pass."]


def test_a_text_is_shortened_in_its_block() -> None:
    value = shortened("cursor", CALLED, {0: "Short."})
    assert value["message"]["content"][0] == words("Short.")
    assert value["message"]["content"][1:] == CALLED["message"]["content"][1:]
    assert isinstance(open_one(value).messages[0].parts[0], Text)
