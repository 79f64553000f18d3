from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import inserted, open_one, shortened

from compactor_cli.model.transcript import Role, Text, ToolCall, ToolResult

SYSTEM = {"role": "system", "content": "You repair code.", "agent": "primary"}
ISSUE = {"role": "user", "content": "Here is the issue.", "agent": "primary"}


def acted(thought: str, action: str, **more: Any) -> dict[str, Any]:
    said = f"{thought}\n\n```\n{action}\n```"
    return {
        "role": "assistant",
        "content": said,
        "thought": thought,
        "action": f"{action}\n",
        "agent": "primary",
        **more,
    }


def told(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "agent": "primary", **more}


def document(*history: Any, **more: Any) -> dict[str, Any]:
    steps = [{"action": "ls", "observation": "a", "response": "r", "state": "{}", "thought": "t"}]
    return {
        "environment": "swe_main",
        "trajectory": steps,
        "history": list(history),
        "info": {"exit_status": "s"},
        **more,
    }


def test_an_action_in_the_words_and_what_came_of_it() -> None:
    transcript = open_one(document(SYSTEM, ISSUE, acted("I look.", "ls -a"), told("a.txt"), acted("Done.", "submit")))
    assert transcript.dialect == "swe-agent"
    roles = [message.role for message in transcript.messages]
    assert roles == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    call = ToolCall(id="", name="bash", arguments={"command": "ls -a"})
    assert transcript.messages[2].parts == (Text(text="I look."), call)
    assert transcript.messages[3].parts == (ToolResult(id="", text="a.txt"),)


def test_a_note_between_an_action_and_its_observation_leaves_them_a_pair() -> None:
    note = {"role": "warning", "content": "slow"}
    messages = open_one(document(SYSTEM, ISSUE, acted("I look.", "ls"), note, told("a.txt"))).messages
    assert [message.role for message in messages[2:]] == [Role.ASSISTANT, Role.META, Role.TOOL]
    assert messages[4].parts == (ToolResult(id="", text="a.txt"),)


def test_how_a_run_ended_is_the_observation_of_its_last_action() -> None:
    diff = "\ndiff --git a/clock.py b/clock.py\n--- a/clock.py\ndiff --git a/try.py b/try.py\n"
    run = (SYSTEM, ISSUE, acted("I look.", "ls"), told("a.txt"), acted("Done.", "submit"))
    ended = open_one(document(*run, info={"exit_status": "submitted", "submission": diff})).messages[-1]
    assert ended.results[0].text == "exit_status: submitted; submission changes clock.py, try.py"
    assert not open_one(document(*run, info={})).messages[-1].results
    assert not open_one(document(*run[:4])).messages[-1].calls


def test_a_demonstration_was_done_by_nobody() -> None:
    shown = [told("Demo issue.", is_demo=True), acted("So.", "ls", is_demo=True), told("x", is_demo=True)]
    messages = open_one(document(SYSTEM, *shown, ISSUE)).messages
    assert [message.role for message in messages[1:]] == [Role.TOOL] * 3 + [Role.USER]
    assert not any(message.calls for message in messages)


def test_function_calls_have_their_ids_in_a_list() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    asked = {"role": "assistant", "content": "I look.", "thought": "I look.", "action": "ls", "tool_calls": [call]}
    result = {"role": "tool", "content": [{"type": "text", "text": "a.txt"}], "tool_call_ids": ["c1"]}
    messages = open_one(document(SYSTEM, ISSUE, asked, result)).messages
    assert (messages[2].calls[0].id, messages[3].results[0].id, messages[3].results[0].text) == ("c1", "c1", "a.txt")
    assert shortened("swe-agent", result, {0: "…"})["content"] == [{"type": "text", "text": "…"}]


def test_steps_without_a_history() -> None:
    step = {"action": "ls", "observation": "a.txt", "response": "r", "state": "{}", "thought": "I look."}
    transcript = open_one({"trajectory": [step, step], "info": {}})
    assert transcript.messages[0].parts == (
        Text(text="I look."),
        ToolCall(id="", name="bash", arguments="ls"),
        ToolResult(id="", text="a.txt"),
    )
    (summary,) = inserted(transcript, 1, "So far.")
    assert (list(summary), summary["observation"]) == (list(step), "So far.")
    assert shortened("swe-agent", step, {2: "…"}) == {**step, "observation": "…"}


def test_words_and_action_are_shortened_in_the_content() -> None:
    value = acted("I look around.", "ls -a")
    new = shortened("swe-agent", value, {0: "I…"})
    assert (new["content"], new["thought"][:2]) == ("I…\n\n```\nls -a\n```", "I…")
    new = shortened("swe-agent", value, {1: '{"command": "ls"}'})
    assert (new["content"], new["action"]) == ("I look around.\n\n```\nls\n```", "ls")


def test_a_document_stays_what_it_was_around_its_history() -> None:
    turns = [part for i in range(12) for part in (acted(f"Step {i}.", f"cat {i}"), told(LONG))]
    original = document(SYSTEM, ISSUE, *turns, acted("Done.", "submit"), odd=1.5)
    value = value_of(round_trip(original, "swe-agent", indent=2))
    assert {**value, "history": 0} == {**original, "history": 0}
    assert all("agent" in message for message in value["history"])


def asked(number: int) -> list[dict[str, Any]]:
    """A call of a function and its result, as function calling has them."""
    called = {"id": f"call_{number}", "type": "function", "function": {"name": "open", "arguments": '{"path": "a"}'}}
    marks = {"agent": "main", "message_type": "action"}
    words = {"role": "assistant", "content": f"{number} {LONG}", "thought": LONG, "action": "open a"}
    result = {"role": "tool", "content": f"a {number}", "agent": "main", "message_type": "observation"}
    return [{**words, **marks, "tool_calls": [called]}, {**result, "tool_call_ids": [called["id"]]}]


def test_a_demonstration_that_holds_nothing_but_its_history_pairs_calls_and_results() -> None:
    again = round_trip({"history": [SYSTEM, ISSUE, *(each for i in range(8) for each in asked(i))]}, "swe-agent")
    assert [result.id for message in again.messages for result in message.results][-1] == "call_7"


def test_a_history_of_a_chat_is_not_taken_for_a_demonstration() -> None:
    assert open_one({"history": [{"role": "user", "content": "Hi"}]}).dialect == "openai-chat"
