from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from compaction import compacted
from hypothesis import given, settings
from hypothesis import strategies as st
from opening import joined, open_bytes, open_one, open_values

from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import Place, UnknownShape, UsageError
from compactor_cli.model.transcript import Container, Record, Role

SYSTEM = {"role": "system", "content": "You repair bicycles."}
RESPONSES = "openai-responses"
CHAT = [SYSTEM, {"role": "user", "content": "The chain slips."}, {"role": "assistant", "content": "Is it worn?"}]
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "measure", "arguments": '{"what":"chain"}'}}],
}
TOOL_USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "measure", "input": {}}]}
FLAT_CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "name": "f", "arguments": {}}]}
TURNS = [{"from": "human", "value": "The chain slips."}, {"from": "gpt", "value": "Is it worn?"}]
TAGGED = [*TURNS, {"from": "gpt", "value": '<tool_call>\n{"name": "measure", "arguments": {}}\n</tool_call>'}]
OBSERVED = [{"from": "function_call", "value": '{"name": "f", "arguments": {}}'}, {"from": "observation", "value": "1"}]
CLAUDE = {
    "type": "user",
    "uuid": "u",
    "parentUuid": None,
    "sessionId": "s",
    "message": {"role": "user", "content": "Hi"},
}


@pytest.mark.parametrize(
    ("values", "dialect"),
    [
        (CHAT, "openai-chat"),
        ([*CHAT, CALL], "openai-chat"),
        ([*CHAT[1:], TOOL_USE], "anthropic"),
        ([*CHAT[1:], FLAT_CALL], "tau"),
        (TURNS, "sharegpt"),
        (OBSERVED, "sharegpt"),
        (TAGGED, "hermes"),
        ([CLAUDE], "claude-code"),
        ([{"messages": CHAT}], "openai-chat"),
        ([{"messages": [*CHAT, CALL], "tools": []}], "openai-chat"),
        ([{"messages": [*CHAT[1:], TOOL_USE]}], "anthropic"),
        ([{"messages": CHAT[1:], "system": "You repair bicycles."}], "anthropic"),
        ([{"messages": [FLAT_CALL]}], "tau"),
        ([{"custom_id": "r1", "body": {"model": "m", "messages": CHAT}}], "openai-chat"),
        ([{"custom_id": "r1", "params": {"model": "m", "messages": CHAT[1:]}}], "anthropic"),
        ([{"request": {"model": "m", "messages": CHAT}, "response": {}}], "openai-chat"),
        ([{"request": {"model": "m", "system": "You repair.", "messages": CHAT[1:]}}], "anthropic"),
        ([{"conversations": CHAT}], "openai-chat"),
        ([{"conversation": CHAT}], "openai-chat"),
        ([{"conversations": TURNS}], "sharegpt"),
        ([{"conversations": OBSERVED, "tools": "[]"}], "sharegpt"),
        ([{"conversations": TAGGED}], "hermes"),
        ([CHAT], "openai-chat"),
        ([TURNS], "sharegpt"),
        ([{"messages": []}], "openai-chat"),
        ([{"input": [*CHAT, CALL], "target": "worn"}], "openai-chat"),
        ([{"input": CHAT, "model": "m"}], "openai-responses"),
        (
            [{"input": [*CHAT[1:], {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]}],
            RESPONSES,
        ),
    ],
)
def test_the_format_is_found_by_content(values: list[Any], dialect: str) -> None:
    assert open_one(*values).dialect == dialect


def test_a_line_with_an_array_of_messages_is_a_conversation_of_its_own() -> None:
    rows = [{"id": i, "messages": [*CHAT, {"role": "user", "content": str(i)}], "tools": []} for i in range(3)]
    transcripts = open_values(*rows)
    assert [transcript.messages[-1].text for transcript in transcripts] == ["0", "1", "2"]
    assert all(transcript.frame.container is Container.ARRAY for transcript in transcripts)
    assert [transcript.row["id"] for transcript in transcripts] == [0, 1, 2]
    assert transcripts[0].frame.suffix == b'], "tools": []}\n'
    assert [json.loads(record.raw) for record in transcripts[1].records] == rows[1]["messages"]


def test_rows_are_read_one_by_one() -> None:
    taken = 0

    def lines() -> Any:
        nonlocal taken
        for number in range(1, 1000):
            taken = number
            raw = json.dumps({"messages": CHAT}).encode()
            yield Record(raw=raw, ending=b"\n", value=json.loads(raw), place=Place(path="-", line=number))

    transcripts = open_transcripts(lines())
    for _ in range(3):
        next(transcripts)
    assert taken == 3


def test_rows_of_several_formats_in_one_file_are_each_known() -> None:
    rows = [{"messages": [CALL]}, {"conversations": TURNS}, {"messages": [TOOL_USE]}, {"messages": [CALL]}]
    assert [found.dialect for found in open_values(*rows)] == ["openai-chat", "sharegpt", "anthropic", "openai-chat"]


def test_a_repeated_system_prompt_begins_the_next_session() -> None:
    transcripts = open_values(*CHAT, CALL, *CHAT, *CHAT)
    assert [len(transcript.records) for transcript in transcripts] == [4, 3, 3]


def test_a_system_message_of_its_own_does_not_part_a_session() -> None:
    note = {"role": "system", "content": "It is late now."}
    assert len(open_one(*CHAT, note, *CHAT[1:]).records) == 6
    assert len(open_one(SYSTEM, SYSTEM, *CHAT[1:]).records) == 4


def test_a_header_that_codex_repeats_does_not_part_a_session() -> None:
    def header(key: str) -> dict[str, Any]:
        return {"timestamp": "t", "type": "session_meta", "payload": {"id": key, "cwd": "/w"}}

    words = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "The chain slips."}]}
    said = {"timestamp": "t", "type": "response_item", "payload": words}
    transcripts = open_values(header("a"), said, header("a"), said, header("b"), said)
    assert [len(transcript.records) for transcript in transcripts] == [4, 2]
    # A fork holds the header of the session that it goes on from after its own.
    assert len(open_one(header("fork"), header("a"), said, header("fork"), said).records) == 5


def test_sessions_and_rows_of_different_formats_follow_one_another() -> None:
    values = [CLAUDE, *CHAT, CALL, {"messages": CHAT}, CLAUDE, {"conversations": TURNS}, *TAGGED]
    dialects = [transcript.dialect for transcript in open_values(*values)]
    assert dialects == ["claude-code", "openai-chat", "openai-chat", "claude-code", "sharegpt", "hermes"]
    assert joined(open_values(*values)) == b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_a_document_may_be_an_array_of_rows() -> None:
    rows = [{"conversations": TURNS}, {"conversations": OBSERVED}]
    for indent in (None, 2):
        data = json.dumps(rows, indent=indent).encode() + b"\n"
        transcripts = open_bytes(data)
        assert [len(transcript.messages) for transcript in transcripts] == [2, 2]
        assert joined(transcripts) == data


def test_a_benchmarks_document_holds_its_runs() -> None:
    data = json.dumps(
        {"info": {}, "simulations": [{"id": 1, "messages": [FLAT_CALL]}, {"messages": [FLAT_CALL]}]}
    ).encode()
    assert [transcript.dialect for transcript in open_bytes(data)] == ["tau", "tau"]
    assert joined(open_bytes(data)) == data


def test_what_stood_before_the_first_record_belongs_to_the_first_transcript() -> None:
    data = b"\xef\xbb\xbf\n" + json.dumps({"messages": CHAT}).encode() + b"\r\n\r\n"
    (transcript,) = open_bytes(data)
    assert transcript.source() == data
    assert transcript.sha256 == hashlib.sha256(data).hexdigest()
    lines = b"\n" + b"\n".join(json.dumps(value).encode() for value in CHAT)
    (session,) = open_bytes(lines)
    assert (session.source(), session.frame.prefix) == (lines, b"\n")
    assert session.sha256 == hashlib.sha256(lines).hexdigest()


def test_no_records_no_transcripts() -> None:
    assert open_values() == []
    assert open_bytes(b"\n\n") == []


def test_an_empty_conversation_is_a_transcript_without_records() -> None:
    transcript = open_one({"id": 1, "messages": []})
    assert (transcript.records, transcript.source()) == ((), b'{"id": 1, "messages": []}\n')


def test_an_unknown_shape_is_named_with_its_place_and_what_was_seen() -> None:
    with pytest.raises(UnknownShape) as caught:
        open_values({"foo": 1, "bar": 2}, {"foo": 3})
    assert str(caught.value).startswith("file.jsonl:1: no format is recognised (an object with the keys foo, bar)")
    assert "--format" in str(caught.value)


def test_of_an_array_that_is_unknown_the_first_element_is_named() -> None:
    with pytest.raises(UnknownShape, match=r"an array, first in it an object with the keys foo, bar\)"):
        open_values([{"foo": 1, "bar": 2}, {"foo": 3}])


def test_messages_that_say_nothing_are_no_chat() -> None:
    with pytest.raises(UnknownShape):
        open_values([{"role": "user", "blocks": []}, {"role": "assistant", "blocks": []}])


def test_of_an_array_of_rows_the_row_at_fault_is_named() -> None:
    data = json.dumps([{"messages": CHAT}, {"foo": 1}, {"messages": CHAT}], indent=1).encode()
    places = [str(found.fault).partition(": ")[0] for found in open_bytes(data) if found.fault]
    assert places == ["file.jsonl:1 (row 2)"]


@pytest.mark.parametrize("value", [3, "text", None, [1, 2], {}, [], True])
def test_json_that_is_no_transcript_is_an_unknown_shape(value: Any) -> None:
    if value == []:
        assert open_one(value).records == ()
        return
    with pytest.raises(UnknownShape):
        open_values(value)


def test_rubbish_within_a_session_is_bookkeeping() -> None:
    transcript = open_one(SYSTEM, 3, *CHAT[1:], "text", {"foo": 1}, None, [1], CALL)
    roles = [message.role for message in transcript.messages]
    assert roles == [Role.SYSTEM, Role.META, Role.USER, Role.ASSISTANT, *[Role.META] * 4, Role.ASSISTANT]


@pytest.mark.parametrize(
    ("first", "parent", "own"),
    [
        ({"type": "session", "id": "S", "timestamp": "t", "cwd": "/w"}, "parentId", "id"),
        ({"type": "permission-mode", "permissionMode": "plan", "sessionId": "S"}, "parentUuid", "uuid"),
    ],
    ids=["pi", "claude-code"],
)
def test_damaged_messages_that_link_to_a_session_do_not_part_it(first: Any, parent: str, own: str) -> None:
    values = [
        {own: f"e{i}", parent: f"e{i - 1}" if i else None, "timestamp": "t", "message": words}
        for i, words in enumerate((*CHAT[1:], *CHAT[1:]))
    ]
    for value in values[:2]:
        value["type"] = "message" if own == "id" else value["message"]["role"]
    (transcript,) = open_values(first, *values, first | {"type": "model_change", "permissionMode": "", "id": "x"})
    assert [message.role for message in transcript.messages[1:3]] == [Role.USER, Role.ASSISTANT]


def test_rubbish_between_rows_is_kept_and_named() -> None:
    row = b'{"messages": [{"role": "user", "content": "a"}]}\n'
    data = row + b'{"messages": null}\nnot json\n' + row
    transcripts = open_bytes(data)
    assert joined(transcripts) == data
    assert ":2: no format is recognised" in str(transcripts[1].fault)
    assert [message.role for message in transcripts[2].messages] == [Role.META]
    assert [bool(found.fault) for found in transcripts] == [False, True, False, False]


def test_a_short_plain_session_is_not_swallowed_by_what_follows() -> None:
    transcripts = open_values(*CHAT, CLAUDE, CLAUDE, *CHAT[1:])
    assert [(found.dialect, len(found.records)) for found in transcripts] == [
        ("openai-chat", 3),
        ("claude-code", 2),
        ("openai-chat", 2),
    ]


def test_a_foreign_file_with_a_few_familiar_lines_is_not_taken_for_chat() -> None:
    events = [{"type": "event", "n": i} for i in range(5)]
    with pytest.raises(UnknownShape):
        open_values(*events, {"role": "user", "content": "hi"})


@pytest.mark.parametrize(
    "lines",
    [
        # Lines of this kind say their words under a key that no format of this package has.
        [{"type": "message", "role": "user", "timestamp": "t", "words": "Hi"}],
        # Results of other clients, which have their words elsewhere.
        [{"type": "tool_result", "timestamp": "t", "ref": "1", "status": "success", "output": "out"}] * 3,
    ],
)
def test_a_line_whose_words_would_not_be_read_is_unknown(lines: list[dict[str, Any]]) -> None:
    with pytest.raises(UnknownShape):
        open_values(*lines)


def test_a_message_with_a_time_is_plain_chat_and_no_rollout() -> None:
    metadata = {"_type": "metadata", "key": "session", "created_at": "t", "last_consolidated": 0}
    timed = [{**message, "timestamp": "t"} for message in CHAT]
    (transcript,) = open_values(metadata, *timed)
    assert transcript.dialect == "openai-chat"
    assert [message.text for message in transcript.messages[1:]] == [message["content"] for message in CHAT]


def test_a_named_format_is_used_even_where_another_would_be_found() -> None:
    assert open_one({"messages": CHAT}, dialect="anthropic").dialect == "anthropic"
    assert [message.text for message in open_one(*CHAT[1:], dialect="tau").messages] == [
        "The chain slips.",
        "Is it worn?",
    ]


def test_a_named_format_that_nothing_is_of_is_an_error() -> None:
    with pytest.raises(UnknownShape, match="nothing here is of the format sharegpt"):
        open_values(*CHAT, dialect="sharegpt")
    with pytest.raises(UsageError):
        open_values(*CHAT, dialect="nonsense")


def test_a_key_given_twice_is_read_as_parsers_do() -> None:
    data = b'{"messages": [1, 2], "messages": [{"role": "user", "content": "second"}]}'
    (transcript,) = open_bytes(data)
    assert (transcript.source(), transcript.messages[0].text) == (data, "second")


def test_the_model_is_the_one_last_named() -> None:
    assert open_one({"model": "gpt-x", "messages": CHAT}).model == "gpt-x"
    assert open_one(*CHAT, {**CHAT[2], "model": "gpt-y"}, CHAT[1]).model == "gpt-y"
    assert open_one({"body": {"model": "gpt-z", "messages": CHAT}}).model == "gpt-z"
    assert open_one(*CHAT).model == ""


TEXT = st.text(max_size=12)
SCALAR = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
ROLE = st.sampled_from(["system", "user", "assistant", "tool", "developer", "odd"])
MESSAGE = st.fixed_dictionaries({"role": ROLE, "content": JSON}, optional={"tool_calls": JSON, "weight": SCALAR})
TURN = st.fixed_dictionaries(
    {"from": st.sampled_from(["human", "gpt", "tool", "function_call", "observation"]), "value": JSON}
)
ROW = st.fixed_dictionaries({"messages": st.lists(MESSAGE, max_size=4)}, optional={"tools": JSON, "id": SCALAR}) | (
    st.fixed_dictionaries({"id": SCALAR, "conversations": st.lists(TURN, min_size=1, max_size=4)})
)
STYLE = st.tuples(
    st.booleans(), st.sampled_from([None, (",", ":"), (" ,  ", " : ")]), st.sampled_from(["\n", "\r\n", "\n\n"])
)


def written(value: Any, style: tuple[bool, Any, str]) -> bytes:
    ascii_only, separators, ending = style
    return (json.dumps(value, ensure_ascii=ascii_only, separators=separators) + ending).encode("utf-8", "surrogatepass")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(ROW | MESSAGE | JSON, STYLE), max_size=6))
def test_the_source_is_read_back_byte_for_byte(lines: list[tuple[Any, tuple[bool, Any, str]]]) -> None:
    data = b"".join(written(value, style) for value, style in [({"messages": [SYSTEM]}, (True, None, "\n")), *lines])
    transcripts = open_bytes(data)
    assert joined(transcripts) == data
    for transcript in transcripts:
        assert len(transcript.messages) == len(transcript.records)
        assert transcript.sha256 == hashlib.sha256(transcript.source()).hexdigest()


OURS = {
    "anthropic-request": {"anthropic", "openai-chat", "bedrock"},
    "bedrock-converse": {"bedrock"},
    "claude-stream-json": {"claude-stream"},
    "gemini-request": {"gemini-contents"},
    "inspect-sample": {"inspect"},
    "langchain-messages": {"langchain"},
    "openai-responses-request": {"openai-responses"},
    "openhands-events": {"openhands"},
    "openhands-events-v1": {"openhands-v1"},
    "openai-chat-request": {"openai-chat"},
    "openai-completion-log": {"openai-chat"},
    "hermes-session": {"hermes-session"},
    "who-when": {"who-when"},
    "derived/openai-chat-jsonl": {"openai-chat"},
    "derived/tau2-chat-jsonl": {"tau"},
}


@pytest.mark.parametrize("folder", OURS)
def test_real_files_are_known_and_read_back_byte_for_byte(folder: str, corpus: Path) -> None:
    files = [path for path in sorted((corpus / folder).rglob("*.json*")) if path.is_file()]
    assert files
    for path in files:
        data = path.read_bytes()
        transcripts = open_bytes(data)
        assert joined(transcripts) == data, path
        assert {transcript.dialect for transcript in transcripts} <= OURS[folder], path
        assert any(not message.is_meta for transcript in transcripts for message in transcript.messages), path


def test_no_real_file_of_an_unknown_format_is_taken_for_chat(corpus: Path) -> None:
    foreign = (
        "atif",
        "inspect-events",
    )
    for path in (path for folder in foreign for path in sorted((corpus / folder).rglob("*.json*")) if path.is_file()):
        data = path.read_bytes()
        with pytest.raises(UnknownShape):
            open_bytes(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def test_a_conversation_that_is_the_text_of_a_key_is_pointed_out_with_the_command_for_it() -> None:
    with pytest.raises(UnknownShape, match="chat holds one as JSON text: use compactor batch --column chat"):
        open_values({"id": "[1]", "note": "[not JSON", "chat": json.dumps(CHAT)})


def test_a_session_of_another_client_is_not_taken_for_pis_by_its_first_word() -> None:
    header = {"type": "session", "version": 0, "id": "s", "createdAt": 1786728845574, "cwd": "/w"}
    event = {"type": "turn/start", "seq": 1, "time": 1786728846574, "data": {"turn": 1}}
    with pytest.raises(UnknownShape):
        open_values(header, event, event)


def test_records_that_hold_no_message_are_a_warning() -> None:
    header = {"type": "session_meta", "timestamp": "2026-01-01T00:00:00Z", "payload": {"id": "s"}}
    event = {"type": "event_msg", "timestamp": "2026-01-01T00:00:00Z", "payload": {"type": "task_started"}}
    assert compacted(open_one(header, event)).report.warnings == ()
    (warning,) = compacted(open_one(header, event, event)).report.warnings
    assert warning.startswith("0 of 3 records hold a message, read as codex")
    chat = open_one(*({"role": "system", "content": f"rule {i}"} for i in range(4)))
    assert compacted(chat).report.warnings == ()
