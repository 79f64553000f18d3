from __future__ import annotations

import json
from typing import Any

from compaction import LONG, SETTINGS, compacted, round_trip, value_of
from opening import inserted, joined, open_bytes, open_one, shortened

from compactor_cli.model.transcript import Role, Text, Thinking, ToolCall, ToolResult

ASK = {"id": "m0", "content": "Saw the oak.", "source": "input", "role": "user"}


def call(number: int) -> dict[str, Any]:
    asked = {"id": f"c{number}", "function": "saw", "arguments": {"wood": "oak"}, "type": "function"}
    return {"id": f"m{number}", "content": "", "role": "assistant", "model": "gpt-5", "tool_calls": [asked]}


def result(number: int, text: str, **more: Any) -> dict[str, Any]:
    return {"content": text, "role": "tool", "tool_call_id": f"c{number}", "function": "saw", **more}


def sample(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"id": 1, "epoch": 1, "input": "Saw.", "target": "x", "messages": list(messages), "events": [], **more}


def test_messages_of_a_sample() -> None:
    transcript = open_one(sample(ASK, call(1), result(1, "two"), result(2, "", error={"message": "broke"})))
    assert (transcript.dialect, transcript.model) == ("inspect", "gpt-5")
    assert transcript.messages[1].parts == (ToolCall(id="c1", name="saw", arguments={"wood": "oak"}),)
    assert transcript.messages[2].parts == (ToolResult(id="c1", text="two", name="saw"),)
    assert transcript.messages[3].parts == (ToolResult(id="c2", text="broke", name="saw", is_error=True),)


def test_blocks_and_attachments() -> None:
    blocks = [
        {"type": "reasoning", "reasoning": "why"},
        {"type": "text", "text": "attachment://a1"},
        {"type": "tool_use", "id": "w", "name": "web_search", "arguments": "{}", "result": "found"},
    ]
    said = {"role": "assistant", "content": blocks, "source": "generate"}
    found = open_one(sample(said, attachments={"a1": "the text"})).messages[0]
    assert found.parts[:2] == (Thinking(text="why"), Text(text="the text"))
    assert (found.calls[0].name, found.results[0].text) == ("web_search", "found")
    assert shortened("inspect", sample(said), {3: "f"})["content"][2]["result"] == "f"


def test_a_log_holds_its_samples() -> None:
    turns = [part for i in range(12) for part in (call(i), result(i, LONG))]
    log = {"version": 2, "eval": {"task": "t"}, "samples": [sample(ASK, *turns, ASK), sample(ASK)], "reductions": []}
    for indent in (None, 2):
        data = json.dumps(log, indent=indent).encode()
        transcripts = open_bytes(data)
        assert [len(found.records) for found in transcripts] == [26, 1]
        assert joined(transcripts) == data
        outputs = [compacted(found, SETTINGS).output for found in transcripts]
        value = json.loads(b"".join(outputs))
        assert len(value["samples"][0]["messages"]) < 26
        assert value["samples"][1] == log["samples"][1]
        assert value["reductions"] == []


def test_a_log_without_samples_is_left_alone() -> None:
    assert open_one({"version": 2, "eval": {}, "samples": []}).records == ()


def test_the_summary_is_marked_as_inspect_marks_its_own() -> None:
    (summary,) = inserted(open_one(sample(ASK, call(1), result(1, "x"))), 1, "So far.")
    assert list(summary) == ["id", "content", "role", "metadata"]
    assert summary["metadata"] == {"summary": True}
    native = {**ASK, "metadata": {"summary": True}, "content": "[…]\n<previous_summary>\nOak.\n</previous_summary>"}
    found = open_one(sample(native)).messages[0]
    assert found.summary is not None
    assert (found.role, found.summary.text) == (Role.USER, "Oak.")


def test_a_sample_stays_what_it_was_around_its_messages() -> None:
    turns = [part for i in range(12) for part in (call(i), result(i, LONG))]
    value = value_of(round_trip(sample(ASK, *turns, ASK, scores={"match": 1}), "inspect"))
    assert value["scores"] == {"match": 1}
