from __future__ import annotations

from typing import Any

from compaction import LONG, round_trip, value_of
from opening import open_one, shortened

from compactor_cli.model.transcript import Role, Text, ToolCall, ToolResult

SYSTEM = {"role": "system", "content": "You repair code."}
ISSUE = {"role": "user", "content": "Here is the issue."}
EXIT = {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}}


def acted(command: str) -> dict[str, Any]:
    return {"role": "assistant", "content": f"THOUGHT: So.\n\n```bash\n{command}\n```", "extra": {"response": {}}}


def told(text: str, code: int = 0) -> dict[str, Any]:
    return {"role": "user", "content": f"<returncode>{code}</returncode>\n<output>\n{text}</output>"}


def document(*messages: Any) -> dict[str, Any]:
    info = {"exit_status": "Submitted", "config": {"model": {"model_name": "gpt-5"}}, "mini_version": "1.0"}
    return {"info": info, "messages": list(messages), "trajectory_format": "mini-swe-agent-1"}


def test_a_command_block_and_its_output() -> None:
    transcript = open_one(document(SYSTEM, ISSUE, acted("ls"), told("a", 2), EXIT))
    assert (transcript.dialect, transcript.model) == ("mini-swe", "gpt-5")
    call = ToolCall(id="", name="bash", arguments={"command": "ls"})
    assert transcript.messages[2].parts == (Text(text="THOUGHT: So."), call)
    assert transcript.messages[3].role is Role.TOOL
    assert transcript.messages[3].parts == (ToolResult(id="", text=told("a", 2)["content"], is_error=True),)
    assert transcript.messages[4].is_meta


def test_words_without_one_command_are_words() -> None:
    two = {"role": "assistant", "content": "```bash\nls\n```\n```bash\npwd\n```"}
    messages = open_one(document(SYSTEM, ISSUE, two, {"role": "user", "content": "One action, please."})).messages
    assert (messages[2].calls, messages[3].role) == ((), Role.USER)


def test_what_refuses_an_answer_is_said_by_nobody() -> None:
    def stopped(kind: str) -> dict[str, Any]:
        return {"role": "user", "content": "No.", "extra": {"interrupt_type": kind}}

    messages = open_one(
        document(SYSTEM, ISSUE, stopped("FormatError"), acted("ls"), stopped("UserInterruption"))
    ).messages
    assert [messages[i].role for i in (1, 2)] == [Role.USER, Role.TOOL]
    assert messages[2].text == "No."


def test_calls_next_to_the_words() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call], "extra": {"actions": [{"command": "ls"}]}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "a", "extra": {"returncode": 0}}
    transcript = open_one(document(SYSTEM, ISSUE, asked, result))
    assert transcript.dialect == "mini-swe"
    assert (transcript.messages[2].calls[0].id, transcript.messages[3].results[0].id) == ("c1", "c1")


def test_shortened_words() -> None:
    assert shortened("mini-swe", acted("ls"), {0: "S…"})["content"] == "S…\n\n```bash\nls\n```"
    assert shortened("mini-swe", {**told("long"), "extra": {}}, {0: "…"})["content"] == "…"


def test_a_document_stays_what_it_was_around_its_messages() -> None:
    turns = [part for i in range(12) for part in (acted(f"cat {i}"), told(LONG))]
    original = document(SYSTEM, ISSUE, *turns, acted("submit"), EXIT)
    value = value_of(round_trip(original, "mini-swe", indent=2))
    assert {**value, "messages": 0} == {**original, "messages": 0}
    assert value["messages"][-1] == EXIT
