from __future__ import annotations

import json
from typing import Any

import pytest
from opening import inserted, open_one, open_values, shortened

from compactor_cli.model.transcript import Role

INIT = {"type": "system", "subtype": "init", "session_id": "S", "model": "claude-opus-4-6", "cwd": "/w"}
END = {"type": "result", "subtype": "success", "session_id": "S", "result": "Done."}


def said(kind: str, content: Any, of: str = "", **more: Any) -> dict[str, Any]:
    own = {"id": of} if of else {}
    return {"type": kind, "message": {**own, "role": kind, "content": content}, "session_id": "S", **more}


def use(call: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}}]


def result(call: str, text: str = "a.txt") -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call, "content": text}]


def test_lines_of_one_message_and_the_lines_around() -> None:
    transcript = open_one(
        INIT, said("assistant", use("a"), "m1"), said("user", result("a")), said("assistant", use("b"), "m1"), END
    )
    assert (transcript.dialect, transcript.model) == ("claude-stream", "claude-opus-4-6")
    roles = [message.role for message in transcript.messages]
    assert roles == [Role.META, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.META]
    assert transcript.messages[1].group == transcript.messages[3].group == "m1"


def test_a_session_s_own_file_is_not_taken_for_a_stream() -> None:
    own = {**said("user", "Hi"), "uuid": "u", "parentUuid": None, "sessionId": "S"}
    assert open_one(own).dialect == "claude-code"


def test_what_subagents_say_is_not_shown() -> None:
    inner = said("assistant", use("x"), "m2", parent_tool_use_id="a")
    assert open_one(INIT, said("user", "Hi"), inner).messages[2].is_meta


def test_streams_of_two_sessions_are_two() -> None:
    other = [{**line, "session_id": "T"} for line in (INIT, said("user", "Hi"))]
    assert [len(found.records) for found in open_values(INIT, said("user", "Hi"), INIT, END, *other)] == [4, 2]


@pytest.mark.parametrize(
    ("text", "gone"),
    [("This session is being continued from a previous conversation. Summary:\nOak.", True), ("Hi", False)],
)
def test_a_boundary_with_a_summary_replaces_what_is_before(text: str, gone: bool) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "session_id": "S"}
    transcript = open_one(INIT, said("user", "Hi"), boundary, said("user", text))
    assert transcript.messages[1].superseded is gone


def test_insertions_have_a_neighbour_s_envelope() -> None:
    transcript = open_one(INIT, said("user", "Hi", parent_tool_use_id=None, uuid="u"), said("assistant", use("a"), "m"))
    (summary, answer) = inserted(transcript, 2, "So far.", "Understood.")
    assert summary["message"] == {"role": "user", "content": [{"type": "text", "text": "So far."}]}
    assert (summary["session_id"], summary["parent_tool_use_id"]) == ("S", None)
    assert answer["uuid"] not in ("u", summary["uuid"])


def test_a_wrapper_s_lines_without_ids() -> None:
    init = {"type": "system", "message": {"subtype": "init", "session_id": "S"}, "timestamp": "t"}
    bare = {"type": "user", "message": {"role": "user", "content": "Hi"}, "timestamp": "t"}
    assert open_one(init, bare).dialect == "claude-stream"


def test_shortened_results() -> None:
    new = shortened("claude-stream", said("user", result("a", "long")), {0: "…"})
    assert new == json.loads(json.dumps(said("user", result("a", "…"))))
