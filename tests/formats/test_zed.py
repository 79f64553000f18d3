"""Threads of Zed's agent panel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from made_sessions import shown
from opening import inserted, open_one, shortened

from compactor_cli.formats.harness import user_text
from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Role, Thinking

SAMPLE = Path(__file__).resolve().parents[2] / "samples/zed-thread.json"


def use(call: str, **asked: Any) -> dict[str, Any]:
    said = {"id": call, "name": "read_file", "raw_input": json.dumps(asked), "input": asked, "is_input_complete": True}
    return {"ToolUse": said}


def result(call: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "tool_use_id": call,
        "tool_name": "read_file",
        "is_error": False,
        "content": content,
        "output": None,
        **more,
    }


MENTION = {"Mention": {"uri": {"File": {"abs_path": "/w/a.rs"}}, "content": "fn main() {}"}}
ASKED = {"User": {"id": "u1", "content": [{"Text": "Fix "}, MENTION, {"Image": {"source": "AAAA"}}]}}
THOUGHT = {"Thinking": {"text": "look", "signature": None}}
RESULTS = {"t1": result("t1", {"Text": "1 fn"}), "t2": result("t2", "gone", is_error=True)}
DID = {"Agent": {"content": [THOUGHT, {"Text": "I look."}, use("t1", path="a.rs"), use("t2", path="b.rs")]}}
DID["Agent"]["tool_results"] = RESULTS
DONE: dict[str, Any] = {"Agent": {"content": [{"Text": "Done."}], "tool_results": {}}}
THREAD = {
    "title": "Fix",
    "messages": [ASKED, DID, "Resume", DONE],
    "updated_at": "2026-02-27T12:34:56Z",
    "model": {"provider": "zed.dev", "model": "claude-sonnet-4"},
    "version": "0.3.0",
}


def test_a_thread_is_read_with_the_results_that_its_answers_hold() -> None:
    transcript = open_one(THREAD)
    assert (transcript.dialect, transcript.model) == ("zed", "claude-sonnet-4")
    assert [message.role for message in transcript.messages] == [Role.USER, Role.ASSISTANT, Role.META, Role.ASSISTANT]
    assert transcript.messages[1].parts[0] == Thinking(text="look")
    assert [(one.id, one.text, one.is_error) for one in transcript.messages[1].results] == [
        ("t1", "1 fn", False),
        ("t2", "gone", True),
    ]
    assert len(group(transcript.messages).pairs) == 2
    assert shown(transcript)[-1] == "Done."


def test_what_the_user_points_at_is_not_what_the_user_says() -> None:
    message = open_one(THREAD).messages[0]
    assert user_text(message).strip() == "Fix"
    assert "fn main() {}" in message.text


def test_a_result_is_shortened_in_its_shape() -> None:
    short = shortened("zed", DID, {4: "s"})
    assert short["Agent"]["tool_results"]["t1"]["content"] == {"Text": "s"}
    assert short["Agent"]["tool_results"]["t2"] == RESULTS["t2"]


def test_a_summary_is_a_message_of_the_user() -> None:
    (summary, answer) = inserted(open_one(THREAD), 2, "What was.", "Understood.")
    assert summary["User"]["content"] == [{"Text": "What was."}]
    assert answer == {"Agent": {"content": [{"Text": "Understood."}], "tool_results": {}}}


def test_the_sample_is_read() -> None:
    transcript = open_one(json.loads(SAMPLE.read_bytes()))
    assert transcript.dialect == "zed"
    assert len(group(transcript.messages).pairs) == 2
