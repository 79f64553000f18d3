"""What holds for every session dialect, whatever the lines say."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_sessions import ACKNOWLEDGEMENT, SUMMARY, from_file, made

from compactor_cli.formats import claude_code, codex, gemini, kimi, qwen_code, summary_first
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.registry import Appending, Dialect, InsertionPoint, Refreshing
from compactor_cli.model.errors import UsageError
from compactor_cli.read.jsonl import read_records

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


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_nothing_is_inserted_where_nothing_is_asked_for(dialect: Dialect) -> None:
    transcript = made(dialect, [{"type": "user"}])
    assert dialect.insert(transcript, InsertionPoint(before=(), after=()), ()) == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_recognised_by_its_content(name: str) -> None:
    lines = (SAMPLES / name).read_bytes().splitlines(keepends=True)
    (transcript,) = open_transcripts(read_records(lines, "-"))
    assert transcript.dialect == NAMES[name]
    assert transcript.messages == from_file(next(d for d in DIALECTS if d.name == NAMES[name]), SAMPLES / name).messages
