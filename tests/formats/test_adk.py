from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import inserted, open_one, shortened

from compactor_cli.model.transcript import Role, Text, ToolCall, ToolResult


def event(author: str, *parts: dict[str, Any]) -> dict[str, Any]:
    content = {"parts": list(parts), "role": "user" if author == "user" else "model"}
    return {"content": content, "invocation_id": "i1", "author": author, "actions": {}, "id": "e1", "timestamp": 1.5}


ASK = event("user", {"text": "An olive tree?"})


def call(number: int) -> dict[str, Any]:
    return event("shop", {"function_call": {"id": f"c{number}", "name": "search", "args": {"tree": "olive"}}})


def told(number: int, text: str) -> dict[str, Any]:
    return event("shop", {"function_response": {"id": f"c{number}", "name": "search", "response": {"result": text}}})


def test_events_are_contents_with_an_author() -> None:
    transcript = open_one({"app_name": "shop", "events": [ASK, call(1), told(1, "none"), {**ASK, "content": None}]})
    assert transcript.dialect == "adk"
    assert transcript.messages[0].parts == (Text(text="An olive tree?"),)
    assert transcript.messages[1].calls == (ToolCall(id="c1", name="search", arguments={"tree": "olive"}),)
    assert transcript.messages[2].results == (ToolResult(id="c1", text="none", name="search"),)
    assert transcript.messages[3].role is Role.META


def test_events_of_the_server_are_in_camel_case() -> None:
    answer = {"author": "shop", "invocationId": "i1", "content": {"role": "model", "parts": [{"text": "Yes."}]}}
    assert open_one(answer, {**answer, "author": "user"}).dialect == "adk"


def test_a_new_event_is_the_user_s_with_an_id_of_its_own() -> None:
    (summary,) = inserted(open_one({"events": [ASK, ASK]}), 1, "So far.")
    assert summary["content"] == {"parts": [{"text": "So far."}], "role": "user"}
    assert (summary["author"], summary["invocation_id"], summary["timestamp"]) == ("user", "i1", 1.5)
    assert summary["id"] != "e1"


def test_a_result_is_shortened_in_its_event() -> None:
    assert shortened("adk", told(1, "long"), {0: "…"}) == told(1, "…")


def test_a_session_stays_what_it_was_around_its_events() -> None:
    steps = [part for i in range(8) for part in (call(i), told(i, LONG))]
    session = {"id": "s", "app_name": "shop", "state": {"cart": []}, "events": [ASK, *steps, ASK]}
    assert value_of(round_trip(session, "adk"))["state"] == {"cart": []}
