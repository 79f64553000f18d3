"""What holds for every session dialect, whatever the lines say."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from compaction import LONG, compacted
from hypothesis import given, settings
from hypothesis import strategies as st
from made_sessions import ACKNOWLEDGEMENT, SUMMARY, from_file, made
from opening import open_bytes

from compactor_cli.formats import claude_code, codex, gemini, kimi, qwen_code, summary_first
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.harness import user_text
from compactor_cli.formats.registry import Appending, Dialect, InsertionPoint, Refreshing
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import UnknownShape, UsageError
from compactor_cli.read.jsonl import read_records
from compactor_cli.run.documents import faults

DIALECTS: tuple[Dialect, ...] = (
    claude_code.CLAUDE_CODE,
    codex.DIALECT,
    summary_first.PI,
    gemini.GEMINI_CLI,
    qwen_code.DIALECT,
    kimi.KIMI_WIRE,
    kimi.KIMI_CLI,
)
SAMPLES = Path(__file__).resolve().parents[2] / "samples"
NAMES = {
    "claude-code.jsonl": "claude-code",
    "claude-code-compacted.jsonl": "claude-code",
    "codex-rollout.jsonl": "codex",
    "pi-session.jsonl": "pi",
    "gemini-cli.jsonl": "gemini-cli",
    "qwen-code.jsonl": "qwen-code",
    "kimi-cli.jsonl": "kimi-cli",
    "kimi-wire.jsonl": "kimi-wire",
}

_KEYS = (
    "type subtype uuid parentUuid id parentId message role content text payload call_id arguments input output name"
    " timestamp ordinal summary firstKeptEntryId firstKeptEntryIndex replacement_history compactMetadata"
    " preservedMessages preservedSegment uuids headUuid tailUuid isSidechain isMeta attachment prompt usage model"
    " tool_use_id toolCallId full command action function parts toolCalls result functionCall functionResponse args"
    " $set $rewindTo messages systemPayload compressedHistory usageMetadata event stepUuid part compactedCount time"
    " token_count origin kind tokens total"
).split()
_WORDS = (
    "user assistant system developer toolResult tool_use tool_result text thinking toolCall message response_item"
    " compacted session_meta world_state turn_context function_call function_call_output reasoning compact_boundary"
    " attachment queued_command local_command compaction session branch_summary bashExecution a b c"
    " gemini model chat_compression context.append_message context.append_loop_event context.apply_compaction"
    " step.begin content.part tool.call tool.result step.end _usage _system_prompt token_count event_msg"
).split()
_scalars = st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(_WORDS)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=12,
)
_blocks = st.dictionaries(st.sampled_from(_KEYS), _values, max_size=4) | _values
_types = st.sampled_from(_WORDS) | _values
_ids = st.sampled_from(["a", "b", "c", None]) | _values
_messages = st.fixed_dictionaries({}, optional={"role": _types, "content": st.lists(_blocks, max_size=3) | _values})
_lines = st.fixed_dictionaries(
    {"type": _types},
    optional={
        "message": _messages | _values,
        "payload": st.fixed_dictionaries(
            {"type": _types},
            optional={
                "message": _types,
                "role": _types,
                "content": st.lists(_blocks, max_size=2),
                "replacement_history": st.lists(_messages | _values, max_size=3),
                "output": _values,
                "call_id": _ids,
            },
        ),
        "timestamp": _ids,
        "ordinal": st.integers(0, 9) | _values,
        "uuid": _ids,
        "parentUuid": _ids,
        "id": _ids,
        "parentId": _ids,
        "subtype": _types,
        "compactMetadata": _values,
        "attachment": _values,
        "isSidechain": _scalars,
        "summary": _types,
        "firstKeptEntryId": _ids,
        "firstKeptEntryIndex": _scalars,
    },
)


@settings(max_examples=300, deadline=None)
@given(values=st.lists(_lines | _values, min_size=1, max_size=6), start=st.integers(0, 6), stop=st.integers(0, 6))
def test_odd_content_never_raises(values: list[Any], start: int, stop: int) -> None:
    for dialect in DIALECTS:
        transcript = made(dialect, values)
        assert len(transcript.messages) == len(values)
        assert all(dialect.score(value) in range(4) for value in values)
        assert not any(dialect.starts(value) for value in values if dialect.score(value) == 0)
        before, after = tuple(range(min(start, stop, len(values)))), tuple(range(max(start, stop), len(values)))
        cut = InsertionPoint(before=before, after=after)
        new = dialect.insert(transcript, cut, (SUMMARY, ACKNOWLEDGEMENT))
        if isinstance(dialect, Appending):
            with suppress(UsageError):
                new += dialect.append(transcript, cut, (SUMMARY, ACKNOWLEDGEMENT), 100)
        assert all(isinstance(json.loads(raw), dict) for raw in new)


@settings(max_examples=200, deadline=None)
@given(values=st.lists(_lines | _values, min_size=1, max_size=6))
def test_counters_of_odd_content_can_be_set_once(values: list[Any]) -> None:
    for dialect in DIALECTS:
        assert isinstance(dialect, Refreshing)
        transcript = made(dialect, values)
        everything = range(len(values))
        assert dialect.outdated(transcript.records, everything) <= set(everything)
        for i, size in dialect.counters(transcript.records, everything).items():
            assert size > 0
            again = [
                json.loads(dialect.recount(transcript.records[j], 7)) if j == i else v for j, v in enumerate(values)
            ]
            after = made(dialect, again)
            assert dialect.counters(after.records, everything).get(i, 0) >= 7
            assert after.messages[i].parts == transcript.messages[i].parts


@settings(max_examples=300, deadline=None)
@given(value=_lines | _values)
def test_shortening_changes_the_parts_that_are_named_and_no_others(value: Any) -> None:
    for dialect in DIALECTS:
        transcript = made(dialect, [value])
        (message,) = transcript.messages
        for i in range(len(message.parts)):
            short = made(dialect, [json.loads(dialect.shorten(transcript.records[0], {i: "short"}))]).messages[0]
            if message.summary is None:
                assert [part for j, part in enumerate(short.parts) if j != i] == [
                    part for j, part in enumerate(message.parts) if j != i
                ]


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_recognised_by_its_content(name: str) -> None:
    lines = (SAMPLES / name).read_bytes().splitlines(keepends=True)
    (transcript,) = open_transcripts(read_records(lines, "-"))
    assert transcript.dialect == NAMES[name]
    assert transcript.messages == from_file(next(d for d in DIALECTS if d.name == NAMES[name]), SAMPLES / name).messages


def moment(n: int) -> str:
    return f"2026-01-30T06:{n:02d}:00.000Z"


def gemini_stream() -> list[dict[str, Any]]:
    """What Gemini CLI prints: an answer in pieces, a call that failed, one without an output."""
    lines: list[dict[str, Any]] = [
        {"type": "init", "session_id": "S", "model": "gemini-3"},
        {"type": "message", "role": "user", "content": "Where is the oak?"},
    ]
    for n in range(6):
        answered = {"status": "error", "error": {"type": "invalid", "message": "no such file"}}
        lines += [
            {"type": "tool_use", "tool_name": "read_file", "tool_id": f"c{n}", "parameters": {"path": f"{n}.md"}},
            {"type": "tool_result", "tool_id": f"c{n}", **({"status": "success", "output": LONG} if n else answered)},
            {"type": "message", "role": "assistant", "content": f"{n} is ", "delta": True},
            {"type": "message", "role": "assistant", "content": LONG, "delta": True},
        ]
    lines += [
        {"type": "tool_use", "tool_name": "write_file", "tool_id": "w", "parameters": {"path": "a.md"}},
        {"type": "tool_result", "tool_id": "w", "status": "success"},
        {"type": "result", "status": "success", "stats": {"total_tokens": 9}},
    ]
    return [{**line, "timestamp": moment(n)} for n, line in enumerate(lines)]


def opencode_stream() -> list[dict[str, Any]]:
    """What opencode prints of a run: the parts of its answers."""
    parts: list[tuple[str, dict[str, Any]]] = []
    for n in range(8):
        done = {"status": "error", "error": "denied"} if n == 1 else {"status": "completed", "output": f"{n} {LONG}"}
        state = {**done, "input": {"command": f"ls {n}"}}
        parts += [
            ("step_start", {"type": "step-start"}),
            ("reasoning", {"type": "reasoning", "text": "why"}),
            ("tool_use", {"type": "tool", "callID": f"c{n}", "tool": "bash", "state": state}),
            ("text", {"type": "text", "text": f"{n} {LONG}"}),
            ("step_finish", {"type": "step-finish", "reason": "stop"}),
        ]
    lines = ({"type": kind, "timestamp": 1767036059338, "sessionID": "S", "part": part} for kind, part in parts)
    return [*lines, {"type": "error", "timestamp": 1767036059339, "sessionID": "S", "error": {"name": "APIError"}}]


def kiro() -> list[dict[str, Any]]:
    """A session of Kiro CLI: results as text, as an object, and as several blocks."""
    texts: list[Any] = [
        [{"kind": "text", "data": LONG}],
        [{"kind": "json", "data": {"exit_status": "exit status: 0", "stdout": LONG}}],
        [{"kind": "text", "data": "one"}, {"kind": "text", "data": "two"}],
    ]
    lines: list[tuple[str, list[dict[str, Any]]]] = [("Prompt", [{"kind": "text", "data": "Where is the oak?"}])]
    for n in range(9):
        use = {"toolUseId": f"c{n}", "name": "shell", "input": {"command": f"ls {n}"}}
        result = {"toolUseId": f"c{n}", "content": texts[n % 3], "status": "error" if n == 1 else "success"}
        thought = {"kind": "thinking", "data": {"text": "why", "signature": "s"}}
        words = {"kind": "text", "data": f"{n} {LONG}"}
        lines.append(("AssistantMessage", [thought, words, {"kind": "toolUse", "data": use}]))
        lines.append(("ToolResults", [{"kind": "toolResult", "data": result}]))
    return [
        {"version": "v1", "kind": kind, "data": {"message_id": f"m{n}", "content": content}}
        for n, (kind, content) in enumerate(lines)
    ]


def grok() -> list[dict[str, Any]]:
    """A chat history of Grok CLI: surroundings in the user's name, and a search that ran at the provider's."""
    lines: list[dict[str, Any]] = [
        {"type": "system", "content": "You are Grok."},
        {
            "type": "user",
            "content": [{"type": "text", "text": "<user_info>"}],
            "synthetic_reason": "environment_context",
        },
        {"type": "user", "content": [{"type": "text", "text": "Where is the oak?"}], "prompt_index": 0},
    ]
    for n in range(8):
        call = {"id": f"c{n}", "name": "read_file", "arguments": json.dumps({"target_file": f"{n}.py"})}
        search = {"tool_type": "web_search", "action": {"query": "oak"}, "id": f"s{n}", "status": "completed"}
        lines += [
            {"type": "reasoning", "id": f"r{n}", "summary": [{"type": "summary_text", "text": "why"}]},
            {"type": "assistant", "content": f"{n} {LONG}", "tool_calls": [call], "model_id": "grok-4.5"},
            {"type": "tool_result", "tool_call_id": f"c{n}", "content": f"{n} {LONG}"},
            {"type": "backend_tool_call", "kind": search},
        ]
    return lines


def entire() -> list[dict[str, Any]]:
    """A transcript that Entire stored of a session: each call holds its result."""
    head = {"v": 1, "agent": "claude-code", "cli_version": "0.9.0", "ts": "2026-07-29T15:33:27.349Z"}
    lines = [{**head, "type": "user", "content": [{"id": "u", "text": "Where is the oak?"}]}]
    for n in range(9):
        status = "error" if n == 1 else "success"
        call = {"id": f"c{n}", "name": "Read", "input": {"file_path": f"{n}.py"}, "type": "tool_use"}
        answered = {**call, "result": {"output": f"{n} {LONG}", "status": status}}
        content = [{"text": f"{n} {LONG}", "type": "text"}, answered]
        lines.append({**head, "type": "assistant", "id": f"m{n}", "content": content})
    return lines


WRITTEN = {
    "gemini-stream": gemini_stream,
    "opencode-stream": opencode_stream,
    "kiro": kiro,
    "grok": grok,
    "entire": entire,
}


def of_lines(values: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_other_clients_write_is_read_compacted_and_read_again(name: str) -> None:
    data = of_lines(WRITTEN[name]())
    (transcript,) = open_bytes(data)
    assert transcript.dialect == name
    assert all(faults(name, record.value) == () for record in transcript.records)
    found = group(transcript.messages)
    calls = sum(len(message.calls) for message in transcript.messages)
    assert len(found.pairs) == calls > 0
    assert not found.orphan_calls
    assert not found.orphan_results
    done = compacted(transcript)
    (again,) = open_bytes(done.output)
    assert again.dialect == name
    assert not group(again.messages).orphan_results
    assert [message.summary.origin for message in again.messages if message.summary] == ["compact"]
    assert compacted(again).output == done.output
    assert {record.raw for record in again.records} - {record.raw for record in transcript.records}


def test_what_the_records_of_other_clients_hold() -> None:
    read = {name: open_bytes(of_lines(make()))[0] for name, make in WRITTEN.items()}
    failed = {
        name: [result.text for message in one.messages for result in message.results if result.is_error]
        for name, one in read.items()
    }
    assert failed == {
        "gemini-stream": ["no such file"],
        "opencode-stream": ["denied"],
        "kiro": [result.text for result in read["kiro"].messages[4].results],
        "grok": [],
        "entire": [f"1 {LONG}"],
    }
    said_by_users = {name: [*filter(None, map(user_text, one.messages))] for name, one in read.items()}
    asked = ["Where is the oak?"]
    assert said_by_users == {
        "gemini-stream": asked,
        "opencode-stream": [],
        "kiro": asked,
        "grok": asked,
        "entire": asked,
    }
    assert [read[name].model for name in ("gemini-stream", "grok")] == ["gemini-3", "grok-4.5"]
    assert any("two" in result.text for message in read["kiro"].messages for result in message.results)
    assert len(open_bytes(of_lines(gemini_stream()) * 2)) == 2


def test_lines_of_anybody_are_not_taken_for_those_of_a_client() -> None:
    with pytest.raises(UnknownShape):
        open_bytes(of_lines([{"type": "user", "content": "Hi"}, {"type": "assistant", "content": "Hello"}]))
