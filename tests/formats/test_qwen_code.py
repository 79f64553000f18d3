"""Qwen Code: contents in a chain of records."""

from __future__ import annotations

import json
from typing import Any

from made_sessions import ACKNOWLEDGEMENT, SUMMARY, compacted, made, shown

from compactor_cli.formats.harness import user_text
from compactor_cli.formats.qwen_code import DIALECT
from compactor_cli.formats.registry import InsertionPoint
from compactor_cli.model.transcript import Role


def chained(*values: dict[str, Any]) -> list[dict[str, Any]]:
    """Each linked to the one before, unless it says otherwise."""
    found: list[dict[str, Any]] = []
    for i, value in enumerate(values):
        parent = found[-1]["uuid"] if found else None
        own = {"uuid": f"id{i}", "parentUuid": parent, "sessionId": "s", "cwd": "/w", "timestamp": f"t{i:02}"}
        found.append({**own, **value})
    return found


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "parts": [{"text": text}]}, **more}


def model(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "model", "parts": [{"text": text}]}, **more}


def called() -> list[dict[str, Any]]:
    call = {"functionCall": {"id": "c", "name": "ls", "args": {"path": "."}}}
    response = {"functionResponse": {"id": "c", "name": "ls", "response": {"output": "out"}}}
    return [
        {"type": "assistant", "message": {"role": "model", "parts": [call]}},
        {"type": "tool_result", "message": {"role": "user", "parts": [response]}},
    ]


TELEMETRY = {"type": "system", "subtype": "ui_telemetry", "systemPayload": {}}
TALK = [user("q0"), TELEMETRY, *called(), model("r0"), user("q1"), model("r1"), user("q2"), model("r2")]


def compression(*contents: dict[str, Any]) -> dict[str, Any]:
    payload = {"info": {}, "compressedHistory": list(contents)}
    return {"type": "system", "subtype": "chat_compression", "systemPayload": payload}


def test_messages_are_read_from_their_contents() -> None:
    transcript = made(DIALECT, chained(*TALK))
    assert shown(transcript)[:4] == ["q0", "ls({'path': '.'})", "= out", "r0"]
    assert transcript.messages[1].is_meta
    assert transcript.messages[3].role is Role.TOOL


def test_what_ran_in_the_background_reports_in_the_users_name() -> None:
    transcript = made(DIALECT, chained(user("q0"), user("Agent a1 is done.", subtype="notification"), model("r0")))
    assert [user_text(message) for message in transcript.messages] == ["q0", "", ""]


def test_what_is_off_the_chain_is_not_sent() -> None:
    transcript = made(DIALECT, chained(user("q0"), model("dead end"), user("q1", parentUuid="id0")))
    assert shown(transcript) == ["q0", "q1"]


def test_a_compression_replaces_what_it_does_not_repeat() -> None:
    snapshot = {"role": "user", "parts": [{"text": "<state_snapshot>S</state_snapshot>"}]}
    values = chained(user("q0"), model("r0"), user("q1"), compression(snapshot, user("q1")["message"]), user("q2"))
    transcript = made(DIALECT, values)
    assert shown(transcript) == ["q1", "<state_snapshot>S</state_snapshot>", "q2"]
    assert transcript.messages[3].summary is not None


def test_words_that_come_again_are_matched_from_the_end_after_the_summary() -> None:
    snapshot = {"role": "user", "parts": [{"text": "<state_snapshot>S</state_snapshot>"}]}
    conversation = chained(user("a"), model("Done."), user("b"), model("Done."))
    values = chained(*conversation, compression(snapshot, user("b")["message"], model("Done.")["message"]))
    assert [message.superseded for message in made(DIALECT, values).messages[:4]] == [True, True, False, False]


def test_the_last_inserted_record_takes_over_the_id_that_the_tail_hangs_on() -> None:
    transcript = made(DIALECT, chained(*TALK))
    after = compacted(DIALECT, transcript, 5, 7, (SUMMARY, ACKNOWLEDGEMENT))
    summary, answer = after.records[5].value, after.records[6].value
    assert (summary["parentUuid"], answer["uuid"], answer["parentUuid"]) == ("id4", "id6", summary["uuid"])
    assert (summary["cwd"], summary["sessionId"], answer["type"]) == ("/w", "s", "assistant")
    assert shown(after)[-4:] == [SUMMARY.text, "Understood.", "q2", "r2"]


def test_a_record_that_is_gone_from_the_tail_leaves_a_bridge() -> None:
    transcript = made(DIALECT, chained(*TALK))
    new = DIALECT.insert(transcript, InsertionPoint(before=(0,), after=(5, 7, 8)), (SUMMARY,))
    summary, bridge = map(json.loads, new)
    assert (summary["uuid"], summary["parentUuid"]) == ("id4", "id0")
    assert (bridge["uuid"], bridge["parentUuid"], bridge["type"]) == ("id6", "id5", "system")


def test_a_summary_is_sent_before_a_tail_that_links_to_a_record_that_is_not_there() -> None:
    conversation = chained(*TALK)
    conversation[7]["parentUuid"] = "gone"
    after = compacted(DIALECT, made(DIALECT, conversation), 1, 7)
    assert after.records[1].value["uuid"] == "gone"
    assert shown(after) == ["q0", SUMMARY.text, "q2", "r2"]


def test_appended_the_history_is_head_summary_and_tail() -> None:
    transcript = made(DIALECT, chained(*TALK))
    cut = InsertionPoint(before=(0, 1, 2, 3, 4), after=(7, 8))
    (raw,) = DIALECT.append(transcript, cut, (SUMMARY,), 321)
    record = json.loads(raw)
    assert record["parentUuid"] == "id8"
    assert record["systemPayload"]["info"]["newTokenCount"] == 321
    after = made(DIALECT, [*(r.value for r in transcript.records), record])
    assert shown(after) == ["q0", "ls({'path': '.'})", "= out", "r0", "q2", "r2", SUMMARY.text]


def test_the_last_counter_is_set_and_its_answer_kept() -> None:
    usage = {"promptTokenCount": 900_000, "candidatesTokenCount": 5, "totalTokenCount": 900_005}
    transcript = made(DIALECT, chained(user("q"), model("r", usageMetadata=usage), user("q")))
    assert DIALECT.counters(transcript.records, range(3)) == {1: 900_005}
    value = json.loads(DIALECT.recount(transcript.records[1], 50))
    assert value["usageMetadata"] == {"promptTokenCount": 50, "candidatesTokenCount": 0, "totalTokenCount": 50}
    assert value["message"] == transcript.records[1].value["message"]
