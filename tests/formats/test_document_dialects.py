"""What holds for every dialect of requests, documents and exports, whatever they say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_sessions import ACKNOWLEDGEMENT, SUMMARY, made

from compactor_cli.formats.registry import Dialect, InsertionPoint, get
from compactor_cli.model.transcript import Text, ToolResult

NAMES = (
    "adk",
    "atif",
    "autogen",
    "bedrock",
    "claude-stream",
    "dialogue",
    "gemini-contents",
    "hermes-session",
    "inspect",
    "langchain",
    "letta",
    "mini-swe",
    "openai-responses",
    "opencode",
    "openhands",
    "openhands-v1",
    "pydantic-ai",
    "swe-agent",
    "ui-messages",
    "who-when",
)
DIALECTS = tuple(map(get, NAMES))

_KEYS = (
    "type role content text parts name id input output message messages action args observation extras cause"
    " source step_id results tool_calls tool_call_id arguments function functionCall functionResponse response"
    " executableCode code codeExecutionResult toolUse toolResult toolUseId lc kwargs data additional_kwargs"
    " lc_source info state status callID tool summary parentID finish kind llm_message thought tool_call"
    " source_call_id extra context_management boundary thinking_blocks reasoning_content call_id encrypted_content"
    " refusal tool_call_metadata model_response choices forgotten_event_ids summary_offset actions is_demo"
    " parent_tool_use_id session_id subtype metadata error result attachments time tail_start_id history"
    " trajectory steps contents events in_context_message_indices epoch author invocation_id part_kind tool_name"
    " toolName toolCallId toolInvocation speaker sender utterance turns thought call_id"
).split()
_WORDS = (
    "user assistant system agent model tool function human ai text thinking reasoning tool_use tool_result message"
    " function_call function_call_output compaction run condensation error null replace append completed running"
    " ActionEvent ObservationEvent MessageEvent Condensation SystemPromptEvent constructor HumanMessage AIMessage"
    " request response system-prompt user-prompt tool-call tool-return retry-prompt tool-invocation tool-search"
    " dynamic-tool TextMessage UserMessage AssistantMessage ToolCallExecutionEvent ThoughtEvent"
    " ToolMessage attachment://a summarization environment exit a b c"
).split()
_scalars = st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(_WORDS)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=14,
)
_blocks = st.lists(st.dictionaries(st.sampled_from(_KEYS), _values, max_size=4) | _values, max_size=3)
_records = _values | st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(_WORDS) | _values,
        "role": st.sampled_from(_WORDS),
        "content": _blocks | _values,
        "parts": _blocks,
        "info": st.dictionaries(st.sampled_from(_KEYS), _values, max_size=4),
        "message": _blocks | _values,
        "action": st.sampled_from(_WORDS) | _values,
        "args": st.dictionaries(st.sampled_from(_KEYS), _values, max_size=4),
        "observation": st.sampled_from(_WORDS) | _values,
        "extras": st.just({}),
        "kind": st.sampled_from(_WORDS),
        "author": st.sampled_from(_WORDS),
        "speaker": st.sampled_from(_WORDS),
        "source": st.sampled_from(_WORDS),
        "step_id": st.integers(0, 9),
        "tool_calls": _blocks,
        "lc": st.just(1),
        "kwargs": st.dictionaries(st.sampled_from(_KEYS), _values, max_size=5),
        "id": _values | st.just(["HumanMessage"]),
        "extra": _values,
    },
)


def cut(count: int, start: int, stop: int) -> InsertionPoint:
    return InsertionPoint(
        before=tuple(range(min(start, stop, count))), after=tuple(range(min(max(start, stop), count), count))
    )


@settings(max_examples=400, deadline=None)
@given(values=st.lists(_records, min_size=1, max_size=5), start=st.integers(0, 5), stop=st.integers(0, 5))
def test_odd_content_never_raises(values: list[Any], start: int, stop: int) -> None:
    for dialect in DIALECTS:
        transcript = made(dialect, values)
        assert len(transcript.messages) == len(values)
        assert all(dialect.score(value) in range(4) for value in values)
        assert not any(dialect.starts(value) for value in values if dialect.score(value) == 0)
        assert dialect.array_path(values) in ((), None)
        written = dialect.insert(transcript, cut(len(values), start, stop), (SUMMARY, ACKNOWLEDGEMENT))
        assert all(isinstance(json.loads(raw), (dict, list)) for raw in written)


@settings(max_examples=400, deadline=None)
@example(value={"role": "user", "content": [{"toolResult": {"content": [{"text": "a tide"}]}}]})
@given(value=_records)
def test_texts_and_results_are_shortened_and_nothing_else(value: Any) -> None:
    for dialect in DIALECTS:
        transcript = made(dialect, [value])
        (message,) = transcript.messages
        for i, part in enumerate(message.parts):
            if not isinstance(part, Text | ToolResult) or len(part.text) < 3:
                continue
            short = made(dialect, [json.loads(dialect.shorten(transcript.records[0], {i: "ß"}))]).messages[0]
            assert [type(found) for found in short.parts] == [type(found) for found in message.parts]
            assert isinstance(short.parts[i], Text | ToolResult)
            assert short.parts[i].text == "ß"  # type: ignore[union-attr]


@settings(max_examples=200, deadline=None)
@given(row=_values | st.dictionaries(st.sampled_from(_KEYS), st.lists(_records, max_size=2), max_size=3))
def test_an_odd_row_never_raises(row: Any) -> None:
    for dialect in DIALECTS:
        path = dialect.array_path(row)
        found = row
        for step in path or ():
            found = found[step]
        if path is not None:
            assert isinstance(found, list)
            assert len(dialect.read(made(dialect, found).records, row)) == len(found)
        assert isinstance(dialect.model((), row), str)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_nothing_is_inserted_where_nothing_is_asked_for(dialect: Dialect) -> None:
    transcript = made(dialect, [{"type": "user"}])
    assert dialect.insert(transcript, InsertionPoint(before=(), after=()), ()) == ()
