"""Gemini CLI: a log that is replayed, and a document."""

from __future__ import annotations

import json
from typing import Any

from made_sessions import ACKNOWLEDGEMENT, SUMMARY, compacted, made, shown
from opening import open_bytes, open_one

from compactor_cli.formats.gemini import GEMINI_CLI as DIALECT
from compactor_cli.formats.harness import user_text
from compactor_cli.formats.registry import InsertionPoint
from compactor_cli.model.transcript import Container, Role

HEADER = {"sessionId": "s", "projectHash": "p", "startTime": "2026-03-01T10:00:00.000Z", "kind": "main"}
CONTEXT = {"id": "ctx", "type": "user", "timestamp": "t", "content": [{"text": "<session_context>here"}]}


def user(key: str, text: str) -> dict[str, Any]:
    return {"id": key, "timestamp": "2026-03-01T10:00:01.000Z", "type": "user", "content": [{"text": text}]}


def gemini(key: str, text: str, **more: Any) -> dict[str, Any]:
    return {"id": key, "timestamp": "2026-03-01T10:00:02.000Z", "type": "gemini", "content": text, **more}


def called(key: str, output: str) -> dict[str, Any]:
    response = [{"functionResponse": {"id": f"c-{key}", "name": "shell", "response": {"output": output}}}]
    call = {"id": f"c-{key}", "name": "shell", "args": {"command": "ls"}, "result": response, "resultDisplay": output}
    return gemini(key, "", toolCalls=[call])


def answered(key: str, output: str) -> dict[str, Any]:
    response = {"id": f"c-{key}", "name": "shell", "response": {"output": output}}
    return {"id": f"{key}-r", "timestamp": "t", "type": "user", "content": [{"functionResponse": response}]}


def everything(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"$set": {"messages": list(messages), "lastUpdated": "t"}}


TURNS = [user("u0", "q0"), called("g0", "out0"), answered("g0", "out0"), gemini("a0", "r0"), user("u1", "q1")]


def test_a_call_has_its_result_in_the_same_record_and_the_repetition_says_nothing() -> None:
    transcript = made(DIALECT, [HEADER, everything(CONTEXT), *TURNS])
    assert shown(transcript) == ["q0", "shell({'command': 'ls'})", "= out0", "r0", "q1"]
    assert [m.role for m in transcript.messages][:3] == [Role.META, Role.META, Role.USER]
    assert transcript.messages[4].is_meta


def test_the_last_version_of_a_message_counts() -> None:
    transcript = made(DIALECT, [HEADER, user("u0", "q0"), gemini("g0", ""), called("g0", "out0"), gemini("g0", "last")])
    assert shown(transcript) == ["q0", "last"]


def test_a_result_in_a_record_of_its_own_answers_the_call() -> None:
    bare = {**called("g0", ""), "toolCalls": [{"id": "c-g0", "name": "shell", "args": {}}]}
    transcript = made(DIALECT, [user("u0", "q0"), bare, answered("g0", "out0")])
    assert shown(transcript) == ["q0", "shell({})", "= out0"]
    assert transcript.messages[2].role is Role.TOOL


def test_what_the_client_repeats_when_it_resumes_replaces_nothing() -> None:
    again = [HEADER, everything(CONTEXT), everything(CONTEXT, *TURNS)]
    transcript = made(DIALECT, [HEADER, everything(CONTEXT), *TURNS, *again, user("u2", "q2")])
    assert shown(transcript) == ["q0", "shell({'command': 'ls'})", "= out0", "r0", "q1", "q2"]


def test_a_compression_replaces_what_it_does_not_repeat() -> None:
    snapshot = user("n0", "<state_snapshot>done</state_snapshot>")
    transcript = made(DIALECT, [HEADER, *TURNS, everything(CONTEXT, snapshot, gemini("n1", "Got it."), TURNS[4])])
    assert shown(transcript) == ["q1", "<state_snapshot>done</state_snapshot>\nGot it."]
    assert transcript.messages[-1].summary is not None
    assert transcript.messages[-1].summary.text == "done"


def test_a_rewind_takes_back_a_message_and_all_after_it() -> None:
    transcript = made(DIALECT, [HEADER, *TURNS, {"$rewindTo": "a0"}, user("u2", "q2")])
    assert shown(transcript) == ["q0", "shell({'command': 'ls'})", "= out0", "q2"]
    assert DIALECT.outdated(transcript.records, range(len(transcript.records))) == {3, 4, 5, 6}


def test_a_rewritten_log_holds_no_list_that_repeats_the_middle() -> None:
    values = [HEADER, everything(CONTEXT), *TURNS, everything(CONTEXT, *TURNS), user("u2", "q2")]
    transcript = made(DIALECT, values)
    assert DIALECT.outdated(transcript.records, range(len(values))) == {1, 4, 7}
    after = compacted(DIALECT, transcript, 2, 8, (SUMMARY, ACKNOWLEDGEMENT))
    assert [m["type"] for m in (after.records[2].value, after.records[3].value)] == ["user", "gemini"]
    assert shown(after) == [SUMMARY.text, "Understood.", "q2"]


def test_appended_the_list_is_head_summary_and_tail() -> None:
    transcript = made(DIALECT, [HEADER, everything(CONTEXT), *TURNS])
    (raw,) = DIALECT.append(transcript, InsertionPoint(before=(2,), after=(6,)), (SUMMARY,), 100)
    messages = json.loads(raw)["$set"]["messages"]
    assert [message["id"] for message in (messages[0], messages[2])] == ["u0", "u1"]
    after = made(DIALECT, [*(record.value for record in transcript.records), json.loads(raw)])
    assert shown(after) == ["q0", "q1", SUMMARY.text]


def test_a_document_stays_a_document() -> None:
    document = json.dumps({**HEADER, "messages": TURNS, "summary": "x"}, indent=2).encode()
    (transcript,) = open_bytes(document)
    assert (transcript.dialect, transcript.frame.container) == ("gemini-cli", Container.ARRAY)
    assert transcript.source() == document
    assert len(transcript.records) == len(TURNS)


def test_a_shortened_result_is_short_where_the_client_shows_it_too() -> None:
    record = open_one(HEADER, called("g0", "long")).records[1]
    call = json.loads(DIALECT.shorten(record, {1: "short"}))["toolCalls"][0]
    assert call["result"][0]["functionResponse"]["response"] == {"output": "short"}
    assert call["resultDisplay"] == "short"


def test_what_was_typed_is_the_users_and_the_template_it_became_is_not() -> None:
    template = {**user("u0", "You are an AI agent. Analyse this folder."), "displayContent": [{"text": "/init"}]}
    answer = {"functionResponse": {"id": "c", "name": "update_topic", "response": {"output": "done"}}}
    own = {**user("u1", "System: Please continue."), "displayContent": [answer]}
    mentioned = {**user("u2", "Read @a.txt\n--- a.txt ---\noak"), "displayContent": "Read @a.txt"}
    messages = made(DIALECT, [HEADER, template, gemini("a0", "r0"), own, mentioned, user("u3", "q")]).messages
    assert [user_text(message) for message in messages[1:]] == ["/init", "", "", "Read @a.txt", "q"]
    assert messages[1].text == "You are an AI agent. Analyse this folder."
