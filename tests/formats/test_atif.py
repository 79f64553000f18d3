from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import inserted, message, open_one, shortened

from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Role, Text, Thinking, ToolCall, ToolResult


def step(number: int, source: str, text: Any, **more: Any) -> dict[str, Any]:
    return {
        "step_id": number,
        "timestamp": f"2026-01-01T00:00:{number:02d}Z",
        "source": source,
        "message": text,
        **more,
    }


def acted(number: int, text: str = "", told: str = "done") -> dict[str, Any]:
    call = {"tool_call_id": f"c{number}", "function_name": "saw", "arguments": {"board": number}}
    result = {"source_call_id": f"c{number}", "content": told}
    return step(number, "agent", text, tool_calls=[call], observation={"results": [result]})


def document(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    agent = {"name": "carpenter", "version": "1.0", "model_name": "gpt-5"}
    return {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": list(steps), **more}


BOUNDARY = step(
    3,
    "system",
    "Context compaction performed",
    observation={"results": [{"content": "Two boards were sawn."}]},
    extra={"context_management": {"type": "compaction", "boundary": "replace"}},
)


def test_a_step_holds_its_call_and_the_result() -> None:
    transcript = open_one(document(step(1, "user", "Saw."), acted(2, "I saw.", "two boards")))
    assert transcript.dialect == "atif"
    assert transcript.model == "gpt-5"
    assert transcript.messages[1].parts == (
        Text(text="I saw."),
        ToolCall(id="c2", name="saw", arguments={"board": 2}),
        ToolResult(id="c2", text="two boards"),
    )
    assert not group(transcript.messages).orphan_calls


def test_reasoning_parts_and_results_of_words() -> None:
    parts = message("atif", step(1, "agent", [{"type": "text", "text": "a"}], reasoning_content="why")).parts
    assert parts == (Thinking(text="why"), Text(text="a"))
    told = {"results": [{"content": "exit 0"}]}
    assert message("atif", step(1, "agent", "ls", observation=told)).results == (ToolResult(id="", text="exit 0"),)
    assert message("atif", step(1, "system", "env", observation=told)).text == "env\nexit 0"


def test_a_boundary_replaces_what_is_before_it() -> None:
    messages = open_one(document(step(1, "user", "Saw."), acted(2), BOUNDARY, step(4, "user", "Plane."))).messages
    assert [found.superseded for found in messages] == [True, True, False, False]
    assert messages[2].summary is not None
    assert (messages[2].role, messages[2].summary.text) == (Role.USER, "Two boards were sawn.")


def test_steps_are_numbered_without_gaps_after_a_compaction() -> None:
    steps = [step(1, "user", "Saw."), *(acted(i, LONG, LONG) for i in range(2, 20)), step(20, "user", "And now?")]
    for indent in (None, 2):
        again = round_trip(
            document(*steps, final_metrics={"total_steps": 20, "total_cost_usd": 1.10}, extra={"odd": 1}),
            "atif",
            indent=indent,
        )
        value = value_of(again)
        assert [found["step_id"] for found in value["steps"]] == list(range(1, len(value["steps"]) + 1))
        assert value["final_metrics"]["total_steps"] == len(value["steps"]) < 20
        assert value["extra"] == {"odd": 1}
        assert value["steps"][-1] == {**steps[-1], "step_id": len(value["steps"])}
        assert b'"total_cost_usd": 1.1' in again.source()


def test_a_summary_after_a_head_is_added_and_one_before_all_else_replaces() -> None:
    transcript = open_one(document(step(1, "user", "Saw."), acted(2), step(3, "user", "Plane.")))
    ((added,), (first,)) = inserted(transcript, 1, "So far."), inserted(transcript, 0, "So far.")
    assert added["extra"]["context_management"] == {"type": "compaction", "boundary": "append"}
    assert first["extra"]["context_management"]["boundary"] == "replace"
    assert added["observation"] == {"results": [{"content": "So far."}]}


def test_shortened_steps() -> None:
    new = shortened("atif", acted(2, "words", "long"), {0: "w", 2: "l"})
    assert (new["message"], new["observation"]["results"][0]["content"]) == ("w", "l")
