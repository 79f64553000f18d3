from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import inserted, open_one, shortened

from compactor_cli.model.transcript import Role, Thinking, ToolCall, ToolResult


def said(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


ASK = said("user", {"text": "Saw the oak."})


def call(number: int) -> dict[str, Any]:
    return said("assistant", {"toolUse": {"toolUseId": f"t{number}", "name": "saw", "input": {"wood": "oak"}}})


def result(number: int, text: str) -> dict[str, Any]:
    told = {"toolUseId": f"t{number}", "content": [{"text": text}], "status": "error"}
    return said("user", {"toolResult": told}, {"cachePoint": {"type": "default"}})


def test_calls_results_and_reasoning() -> None:
    reasoning = said("assistant", {"reasoningContent": {"reasoningText": {"text": "why", "signature": "s"}}})
    transcript = open_one({"modelId": "us.anthropic/claude", "messages": [ASK, reasoning, call(1), result(1, "broke")]})
    assert (transcript.dialect, transcript.model) == ("bedrock", "claude")
    assert transcript.messages[1].parts == (Thinking(text="why"),)
    assert transcript.messages[2].parts == (ToolCall(id="t1", name="saw", arguments={"wood": "oak"}),)
    assert transcript.messages[3].role is Role.TOOL
    assert transcript.messages[3].results == (ToolResult(id="t1", text="broke", is_error=True),)


def test_messages_with_types_are_anthropic_s() -> None:
    typed = said("user", {"type": "text", "text": "Saw."})
    assert open_one({"messages": [typed], "system": "s"}).dialect == "anthropic"


def test_new_messages_are_untyped_blocks() -> None:
    (summary,) = inserted(open_one({"messages": [ASK, ASK]}), 1, "So far.")
    assert summary == said("user", {"text": "So far."})


def test_a_result_is_shortened_in_its_block() -> None:
    assert shortened("bedrock", result(1, "long"), {0: "…"}) == result(1, "…")


def test_a_request_stays_what_it_was_around_its_messages() -> None:
    turns = [part for i in range(8) for part in (call(i), result(i, LONG))]
    value = value_of(round_trip({"messages": [ASK, *turns, ASK], "system": [], "toolConfig": {"tools": []}}, "bedrock"))
    assert value["toolConfig"] == {"tools": []}
