"""A library's own hand: makes a conversation as the library writes it, and loads one as the library reads it.

Run by the Python that has the library, as ``loaders.py NAME``: prints the conversation as JSON, reads JSON (or lines
of it) up to the end of its input, and prints what the library made of it as ``{"messages": …, "text": …}``. Exit
status 5 where the library is not installed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

TURNS = 8
LONG = "The plane is dull, the board is long and the grain runs the wrong way. " * 12
NOT_INSTALLED = 5


def asked(turn: int) -> str:
    return f"Question {turn}: which plane?"


def answered(turn: int) -> str:
    return f"Answer {turn}: the long one."


def found(turn: int) -> str:
    return f"Result {turn}: {LONG}"


class PydanticAI:
    def __init__(self) -> None:
        self.messages = import_module("pydantic_ai.messages")

    def make(self) -> Any:
        m = self.messages
        history = []
        for turn in range(TURNS):
            call = m.ToolCallPart(tool_name="look", args={"turn": turn}, tool_call_id=f"c{turn}")
            result = m.ToolReturnPart(tool_name="look", content=found(turn), tool_call_id=f"c{turn}")
            history += [
                m.ModelRequest(parts=[m.UserPromptPart(content=asked(turn))]),
                m.ModelResponse(parts=[m.ThinkingPart(content="hm"), call], model_name="m"),
                m.ModelRequest(parts=[result]),
                m.ModelResponse(parts=[m.TextPart(content=answered(turn))], model_name="m"),
            ]
        return json.loads(m.ModelMessagesTypeAdapter.dump_json(history))

    def load(self, value: Any) -> tuple[int, str]:
        history = self.messages.ModelMessagesTypeAdapter.validate_python(value)
        return len(history), repr(history)


class LangChain:
    def __init__(self) -> None:
        self.messages = import_module("langchain_core.messages")

    def make(self) -> Any:
        m = self.messages
        history = []
        for turn in range(TURNS):
            call = {"name": "look", "args": {"turn": turn}, "id": f"c{turn}"}
            history += [
                m.HumanMessage(content=asked(turn)),
                m.AIMessage(content="", tool_calls=[call]),
                m.ToolMessage(content=found(turn), tool_call_id=f"c{turn}"),
                m.AIMessage(content=answered(turn)),
            ]
        return m.messages_to_dict(history)

    def load(self, value: Any) -> tuple[int, str]:
        history = self.messages.messages_from_dict(value)
        return len(history), repr(history)


class AutoGen:
    def __init__(self) -> None:
        self.models = import_module("autogen_core.models")
        self.context = import_module("autogen_core.model_context")
        self.call = import_module("autogen_core").FunctionCall
        import_module("autogen_agentchat")

    def make(self) -> Any:
        m = self.models
        history = []
        for turn in range(TURNS):
            call = self.call(id=f"c{turn}", name="look", arguments="{}")
            result = m.FunctionExecutionResult(content=found(turn), name="look", call_id=f"c{turn}", is_error=False)
            history += [
                m.UserMessage(content=asked(turn), source="user"),
                m.AssistantMessage(content=[call], source="agent"),
                m.FunctionExecutionResultMessage(content=[result]),
                m.AssistantMessage(content=answered(turn), source="agent"),
            ]
        context = {"messages": [message.model_dump() for message in history]}
        return {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": context}

    def load(self, value: Any) -> tuple[int, str]:
        import asyncio

        async def load() -> list[Any]:
            context = self.context.UnboundedChatCompletionContext()
            await context.load_state(value["llm_context"])
            return list(await context.get_messages())

        history = asyncio.run(load())
        return len(history), repr(history)


class ADK:
    def __init__(self) -> None:
        self.session = import_module("google.adk.sessions").Session
        self.event = import_module("google.adk.events").Event
        self.types = import_module("google.genai").types

    def make(self) -> Any:
        part, content = self.types.Part, self.types.Content
        events = []
        for turn in range(TURNS):
            call = self.types.FunctionCall(id=f"c{turn}", name="look", args={"turn": turn})
            result = self.types.FunctionResponse(id=f"c{turn}", name="look", response={"result": found(turn)})
            for author, role, said in (
                ("user", "user", part(text=asked(turn))),
                ("agent", "model", part(function_call=call)),
                ("agent", "user", part(function_response=result)),
                ("agent", "model", part(text=answered(turn))),
            ):
                made = self.event(author=author, invocation_id=f"i{turn}", content=content(role=role, parts=[said]))
                events.append(made.model_copy(update={"id": f"e{len(events)}", "timestamp": float(len(events))}))
        session = self.session(id="s", app_name="a", user_id="u", events=events, last_update_time=1.0)
        return json.loads(session.model_dump_json())

    def load(self, value: Any) -> tuple[int, str]:
        session = self.session.model_validate(value)
        return len(session.events), repr([event.content for event in session.events])


class OpenAIAgents:
    def __init__(self) -> None:
        self.converter = import_module("agents.models.chatcmpl_converter").Converter

    def make(self) -> Any:
        items: list[Any] = []
        for turn in range(TURNS):
            items += [
                {"role": "user", "content": asked(turn)},
                {"type": "function_call", "call_id": f"c{turn}", "name": "look", "arguments": "{}", "id": f"fc{turn}"},
                {"type": "function_call_output", "call_id": f"c{turn}", "output": found(turn)},
                {
                    "id": f"msg{turn}",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": answered(turn), "annotations": []}],
                },
            ]
        return {"model": "m", "input": items}

    def load(self, value: Any) -> tuple[int, str]:
        return len(value["input"]), repr(self.converter.items_to_messages(value["input"]))


class Inspect:
    def __init__(self) -> None:
        self.log = import_module("inspect_ai.log")
        self.model = import_module("inspect_ai.model")
        self.tool = import_module("inspect_ai.tool")

    def make(self) -> Any:
        m = self.model
        messages = []
        for turn in range(TURNS):
            call = self.tool.ToolCall(id=f"c{turn}", function="look", arguments={"turn": turn})
            messages += [
                m.ChatMessageUser(id=f"u{turn}", content=asked(turn)),
                m.ChatMessageAssistant(id=f"a{turn}", content="", tool_calls=[call]),
                m.ChatMessageTool(id=f"t{turn}", content=found(turn), tool_call_id=f"c{turn}", function="look"),
                m.ChatMessageAssistant(id=f"b{turn}", content=answered(turn)),
            ]
        sample = self.log.EvalSample(id=1, epoch=1, input=asked(0), target="x", messages=messages)
        spec = self.log.EvalSpec(
            created=datetime(2026, 1, 1, tzinfo=UTC).isoformat(),
            task="t",
            dataset=self.log.EvalDataset(),
            model="m",
            config=self.log.EvalConfig(),
            eval_id="e",
            run_id="r",
            task_id="i",
        )
        log = self.log.EvalLog(eval=spec, status="success", samples=[sample])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "log.json")
            self.log.write_eval_log(log, str(path))
            return json.loads(path.read_text(encoding="utf-8"))

    def load(self, value: Any) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "log.json")
            path.write_text(json.dumps(value), encoding="utf-8")
            sample = self.log.read_eval_log(str(path)).samples[0]
        return len(sample.messages), repr(sample.messages)


class OpenHands:
    def __init__(self) -> None:
        self.event = import_module("openhands.sdk.event")
        self.base = import_module("openhands.sdk.event.base")
        self.llm = import_module("openhands.sdk.llm")
        self.view = import_module("openhands.sdk.context.view").View

    def make(self) -> Any:
        events: list[Any] = []
        for turn in range(TURNS):
            text = self.llm.TextContent
            for source, role, words in (("user", "user", asked(turn) + LONG), ("agent", "assistant", answered(turn))):
                message = self.llm.Message(role=role, content=[text(text=words)])
                made = self.event.MessageEvent(source=source, llm_message=message)
                events.append({**json.loads(made.model_dump_json()), "id": f"e{len(events)}"})
        return events

    def load(self, value: Any) -> tuple[int, str]:
        events = [self.base.Event.model_validate(event) for event in value]
        shown = self.view.from_events(events).events
        return len(shown), repr(self.base.LLMConvertibleEvent.events_to_messages(shown))


class Anthropic:
    def __init__(self) -> None:
        adapter = import_module("pydantic").TypeAdapter
        self.request = adapter(list[import_module("anthropic.types").MessageParam])

    def make(self) -> Any:
        messages: list[Any] = []
        for turn in range(TURNS):
            call = {"type": "tool_use", "id": f"c{turn}", "name": "look", "input": {"turn": turn}}
            messages += [
                {"role": "user", "content": asked(turn)},
                {"role": "assistant", "content": [call]},
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": f"c{turn}", "content": found(turn)}],
                },
                {"role": "assistant", "content": answered(turn)},
            ]
        return {"model": "m", "max_tokens": 9, "messages": messages}

    def load(self, value: Any) -> tuple[int, str]:
        messages = self.request.validate_python(value["messages"])
        roles = [message["role"] for message in messages]
        assert all(one != other for one, other in pairwise(roles)), roles
        return len(messages), json.dumps(value["messages"], ensure_ascii=False)


class OpenAI:
    def __init__(self) -> None:
        adapter = import_module("pydantic").TypeAdapter
        self.request = adapter(list[import_module("openai.types.chat").ChatCompletionMessageParam])

    def make(self) -> Any:
        messages: list[Any] = []
        for turn in range(TURNS):
            call = {"id": f"c{turn}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            messages += [
                {"role": "user", "content": asked(turn)},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{turn}", "content": found(turn)},
                {"role": "assistant", "content": answered(turn)},
            ]
        return {"model": "m", "messages": messages}

    def load(self, value: Any) -> tuple[int, str]:
        messages = self.request.validate_python(value["messages"])
        return len(messages), json.dumps(value["messages"], ensure_ascii=False)


class GoogleGenAI:
    def __init__(self) -> None:
        self.content = import_module("google.genai").types.Content

    def make(self) -> Any:
        contents: list[Any] = []
        for turn in range(TURNS):
            call = {"id": f"c{turn}", "name": "look", "args": {"turn": turn}}
            result = {"id": f"c{turn}", "name": "look", "response": {"output": found(turn)}}
            contents += [
                {"role": "user", "parts": [{"text": asked(turn)}]},
                {"role": "model", "parts": [{"functionCall": call}]},
                {"role": "user", "parts": [{"functionResponse": result}]},
                {"role": "model", "parts": [{"text": answered(turn)}]},
            ]
        return {"model": "m", "contents": contents}

    def load(self, value: Any) -> tuple[int, str]:
        contents = [self.content.model_validate(content) for content in value["contents"]]
        return len(contents), repr(contents)


# The library's loader for each dialect that has one.
LIBRARIES: dict[str, Callable[[], Any]] = {
    "pydantic-ai": PydanticAI,
    "langchain": LangChain,
    "autogen": AutoGen,
    "adk": ADK,
    "openai-responses": OpenAIAgents,
    "inspect": Inspect,
    "openhands-v1": OpenHands,
    "anthropic": Anthropic,
    "openai-chat": OpenAI,
    "gemini-contents": GoogleGenAI,
}


def main() -> int:
    try:
        library = LIBRARIES[sys.argv[1]]()
    except ImportError as error:
        print(error, file=sys.stderr)
        return NOT_INSTALLED
    print(json.dumps(library.make()), flush=True)
    count, text = library.load(json.load(sys.stdin))
    print(json.dumps({"messages": count, "text": text}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
