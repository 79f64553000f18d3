"""An adapter in its framework: ``adapter_runs.py NAME PATH…`` by a Python that has it prints what came of it as JSON.

PATHs are looked in after the Python's own. Exit code 77: the framework, or what compact needs, is not installed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from typing import Any

TURNS, LONG = 40, "The plane is dull, the board is long and the grain runs the wrong way. " * 12
sys.path += sys.argv[2:]


def rows(turns: int = TURNS) -> list[dict[str, Any]]:
    """Messages as OpenAI has them: a question, a call, its result, an answer, a turn."""
    found: list[dict[str, Any]] = []
    for turn in range(turns):
        function = {"name": "look", "arguments": "{}"}
        found += [
            {"role": "user", "content": f"Question {turn}: which plane?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{turn}", "content": f"Result {turn}: {LONG}"},
            {"role": "assistant", "content": f"Answer {turn}: the long one."},
        ]
    return found


def pydantic_ai() -> dict[str, Any]:
    from pydantic_ai import Agent
    from pydantic_ai import messages as m
    from pydantic_ai.capabilities import ProcessHistory
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from compactor_cli.adapters.pydantic_ai import history_processor

    seen: list[list[m.ModelMessage]] = []

    def model(messages: list[m.ModelMessage], info: AgentInfo) -> m.ModelResponse:
        seen.append(list(messages))
        return m.ModelResponse(parts=[m.TextPart(content="fine")])

    history: list[m.ModelMessage] = []
    for turn in range(TURNS):
        call = m.ToolCallPart(tool_name="look", args={}, tool_call_id=f"c{turn}")
        result = m.ToolReturnPart(tool_name="look", content=f"Result {turn}: {LONG}", tool_call_id=f"c{turn}")
        history += [
            m.ModelRequest(parts=[m.UserPromptPart(content=f"Question {turn}: which plane?")]),
            m.ModelResponse(parts=[call]),
            m.ModelRequest(parts=[result]),
            m.ModelResponse(parts=[m.TextPart(content=f"Answer {turn}: the long one.")]),
        ]
    agent = Agent(FunctionModel(model), capabilities=[ProcessHistory(history_processor("4k"))])
    first = agent.run_sync("Next?", message_history=history)
    agent.run_sync("And now?", message_history=first.all_messages())
    calls = {part.tool_call_id for message in seen[0] for part in message.parts if part.part_kind == "tool-call"}
    results = {part.tool_call_id for message in seen[0] for part in message.parts if part.part_kind == "tool-return"}
    return {
        "sent": len(seen[0]),
        "digests": str(seen[0]).count("[compact/1 "),
        "paired": calls == results,
        "newest": "Next?" in str(seen[0][-1]),
        "stable": str(seen[1])[: len(str(seen[0][:-1])) - 1] == str(seen[0][:-1])[:-1],
    }


def openai_agents() -> dict[str, Any]:
    from agents.run_config import CallModelData, ModelInputData

    from compactor_cli.adapters.openai_agents import input_filter

    items: list[Any] = []
    for turn in range(TURNS):
        items += [
            {"role": "user", "content": f"Question {turn}: which plane?"},
            {"type": "function_call", "call_id": f"c{turn}", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{turn}", "output": f"Result {turn}: {LONG}"},
            {"role": "assistant", "content": f"Answer {turn}: the long one."},
        ]
    agent = import_module("agents").Agent(name="a")
    process = input_filter("4k")

    def sent(given: list[Any]) -> ModelInputData:
        return process(
            CallModelData(model_data=ModelInputData(input=given, instructions="i"), agent=agent, context=None)
        )

    first = sent(items)
    second = sent([*items, {"role": "user", "content": "And now?"}])
    return {
        "sent": len(first.input),
        "digests": str(first.input).count("[compact/1 "),
        "newest": first.input[-1] is items[-1],
        "instructions": first.instructions,
        "stable": second.input[:-1] == first.input,
    }


def langchain() -> dict[str, Any]:
    from langchain_core.messages import convert_to_messages

    from compactor_cli.adapters.langchain import summarizer

    text = summarizer("1k")(convert_to_messages(rows()))
    return {"digests": text.count("[compact/1 "), "names": "Question 39" in text}


def google_adk() -> dict[str, Any]:
    from google.adk.events import Event
    from google.genai.types import Content, FunctionCall, FunctionResponse, Part

    from compactor_cli.adapters.google_adk import DigestSummarizer

    events = []
    for turn in range(TURNS):
        call = FunctionCall(id=f"c{turn}", name="look", args={"turn": turn})
        result = FunctionResponse(id=f"c{turn}", name="look", response={"result": f"Result {turn}: {LONG}"})
        for author, role, part in (
            ("user", "user", Part(text=f"Question {turn}: which plane?")),
            ("a", "model", Part(function_call=call)),
            ("a", "user", Part(function_response=result)),
            ("a", "model", Part(text=f"Answer {turn}: the long one.")),
        ):
            events.append(Event(author=author, invocation_id="i", content=Content(role=role, parts=[part])))
    made = asyncio.run(DigestSummarizer("1k").maybe_summarize_events(events=events))
    again = asyncio.run(DigestSummarizer("1k").maybe_summarize_events(events=[made, *events[-8:]]))
    nothing = asyncio.run(DigestSummarizer().maybe_summarize_events(events=[]))
    text = made.actions.compaction.compacted_content.parts[0].text
    return {
        "digests": text.count("[compact/1 "),
        "times": made.actions.compaction.end_timestamp == events[-1].timestamp,
        "again": again.actions.compaction.compacted_content.parts[0].text.count("[compact/1 "),
        "nothing": nothing,
    }


def inspect_ai() -> dict[str, Any]:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageTool, ChatMessageUser, get_model
    from inspect_ai.tool import ToolCall

    from compactor_cli.adapters.inspect_ai import CompactCompaction

    history: list[Any] = [ChatMessageSystem(content="Be brief.")]
    for turn in range(TURNS):
        call = ToolCall(id=f"c{turn}", function="look", arguments={})
        history += [
            ChatMessageUser(content=f"Question {turn}: which plane?"),
            ChatMessageAssistant(content="", tool_calls=[call]),
            ChatMessageTool(content=f"Result {turn}: {LONG}", tool_call_id=f"c{turn}", function="look"),
            ChatMessageAssistant(content=f"Answer {turn}: the long one."),
        ]
    strategy = CompactCompaction(but_newest="2k", size="1k")
    sent, message = asyncio.run(strategy.compact(get_model("mockllm/model"), history, []))
    small, none = asyncio.run(strategy.compact(get_model("mockllm/model"), history[:5], []))
    return {
        "first": sent[0].role,
        "summary": sent[1] is message and "[compact/1 " in message.text,
        "newest": sent[-1] is history[-1],
        "fewer": len(sent) < 40,
        "small": small == history[:5] and none is None,
    }


def openhands() -> dict[str, Any]:
    from openhands.sdk.context.view import View
    from openhands.sdk.event import MessageEvent
    from openhands.sdk.llm import Message, TextContent

    from compactor_cli.adapters.openhands import DigestCondenser

    events: list[Any] = []
    for turn in range(TURNS):
        for source, role, text in (
            ("user", "user", f"Question {turn}: which plane?"),
            ("agent", "assistant", f"Answer {turn}: {LONG}"),
        ):
            message = Message(role=role, content=[TextContent(text=text)])
            events.append(MessageEvent(source=source, llm_message=message))
    view = View.from_events(events)
    made = DigestCondenser(limit=4_000, but_newest=1_000, size=800).condense(view)
    after = View.from_events([*events, made])
    return {
        "fewer": len(after.events) < 20,
        "digests": str([event.model_dump() for event in after.events]).count("[compact/1 "),
        "first": after.events[0].id == events[0].id,
        "newest": after.events[-1].id == events[-1].id,
        "small": DigestCondenser().condense(view) is view,
    }


if __name__ == "__main__":
    try:
        import_module(f"compactor_cli.adapters.{sys.argv[1]}")
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(77)
    print(json.dumps(globals()[sys.argv[1]]()))
