from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opening import inserted, message, open_bytes, open_one, shortened

from compactor_cli.formats.registry import get
from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Media, Role, Text, Thinking, ToolCall, ToolResult

DIALECT = get("openai-chat")


def read(value: Any) -> tuple[Role, tuple[Any, ...]]:
    found = message("openai-chat", value)
    return found.role, found.parts


def call(arguments: Any, name: str = "cut", call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("system", Role.SYSTEM),
        ("developer", Role.SYSTEM),
        ("user", Role.USER),
        ("assistant", Role.ASSISTANT),
        ("Orchestrator (thought)", Role.ASSISTANT),
        ("_checkpoint", Role.META),
        ("_usage", Role.META),
        ("exit", Role.META),
        ("session_meta", Role.META),
    ],
)
def test_roles(role: str, expected: Role) -> None:
    transcript = open_one({"role": "user", "content": "x"}, {"role": role, "content": "y"}, dialect="openai-chat")
    assert transcript.messages[1].role is expected


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("saw", (Text(text="saw"),)),
        (None, ()),
        ("", ()),
        ([], ()),
        (["saw", "file"], (Text(text="saw"), Text(text="file"))),
        ([{"type": "text", "text": "saw"}], (Text(text="saw"),)),
        ([{"type": "think", "think": "which?"}], (Thinking(text="which?"),)),
        (
            [{"type": "image_url", "image_url": {"url": "data:abcd"}}],
            (Media(kind="image_url", size_bytes=9),),
        ),
        ([{"type": "hologram", "x": 1}, 7, None], None),
        ({"text": "saw"}, (Text(text="saw"),)),
        (3, ()),
    ],
)
def test_contents_of_every_shape(content: Any, parts: tuple[Any, ...] | None) -> None:
    role, found = read({"role": "user", "content": content})
    assert role is Role.USER
    assert parts is None or [type(part) for part in found] == [type(part) for part in parts]
    texts = [part.text for part in parts or () if isinstance(part, Text | Thinking)]
    assert texts == [part.text for part in found if isinstance(part, Text | Thinking)]


def test_sound_and_files_are_media() -> None:
    blocks = [{"type": "input_audio", "input_audio": {"data": "AAAA"}}, {"type": "file", "file": {"file_data": "BBBB"}}]
    assert [part.kind for part in read({"role": "user", "content": blocks})[1]] == ["input_audio", "file"]


def test_calls_and_their_arguments() -> None:
    calls = [
        call('{"depth": 3}'),
        call("{not json", call_id="c2"),
        call('["a"]', call_id="c3"),
        call({"a": 1}),
        call(None),
    ]
    role, parts = read({"role": "assistant", "content": None, "tool_calls": calls})
    assert role is Role.ASSISTANT
    assert [part.arguments for part in parts] == [{"depth": 3}, "{not json", '["a"]', {"a": 1}, ""]
    assert [(part.id, part.name) for part in parts][:2] == [("c1", "cut"), ("c2", "cut")]


@pytest.mark.parametrize(
    "calls", [None, [], "x", [None], [{}], [{"function": None}], [{"id": 5, "function": {"name": 1}}]]
)
def test_odd_calls_are_survived(calls: Any) -> None:
    assert read({"role": "assistant", "content": "Sawing.", "tool_calls": calls})[1][0] == Text(text="Sawing.")


def test_a_result_with_its_id_and_name() -> None:
    role, parts = read({"role": "tool", "tool_call_id": "c1", "name": "cut", "content": "done"})
    assert (role, parts) == (Role.TOOL, (ToolResult(id="c1", text="done", name="cut"),))


def test_results_of_every_shape() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:x"}}
    contents = [None, "", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], [], {"ok": True}, [image]]
    found = [read({"role": "tool", "tool_call_id": "c", "content": content})[1][0] for content in contents]
    assert [part.text for part in found[:5]] == ["", "", "a\nb", "", '{"ok":true}']
    assert all(isinstance(part, ToolResult) for part in found)


def test_functions_of_the_first_generation() -> None:
    asked = read({"role": "assistant", "content": None, "function_call": {"name": "cut", "arguments": "{}"}})
    assert asked == (Role.ASSISTANT, (ToolCall(id="", name="cut", arguments={}),))
    answered = read({"role": "function", "name": "cut", "content": "done"})
    assert answered == (Role.TOOL, (ToolResult(id="", text="done", name="cut"),))


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_next_to_the_content_is_thinking(key: str) -> None:
    parts = read({"role": "assistant", "content": "Oak.", key: "Which wood?"})[1]
    assert parts == (Thinking(text="Which wood?"), Text(text="Oak."))
    assert read({"role": "assistant", "content": "Oak.", key: None})[1] == (Text(text="Oak."),)


def test_reasoning_given_twice_is_read_once() -> None:
    value = {"role": "assistant", "content": "Oak.", "reasoning": "Which?", "reasoning_content": "Which?"}
    assert len(read(value)[1]) == 2


def test_encrypted_reasoning_and_refusals() -> None:
    value = {"role": "assistant", "content": None, "refusal": "No.", "reasoning_details": [{"data": "abcd"}]}
    assert read(value)[1] == (Media(kind="reasoning_details", size_bytes=4), Text(text="No."))


def test_a_previous_summary_of_a_user_is_known_and_one_quoted_by_a_tool_is_not() -> None:
    text = "[CONTEXT SUMMARY]: The oak is sawn."
    assert (found := message("openai-chat", {"role": "user", "content": text}).summary) is not None
    assert (found.origin, found.text) == ("hermes", "The oak is sawn.")
    blocks = [
        {"type": "text", "text": "<system>Previous context has been compacted.</system>"},
        {"type": "text", "text": "Oak"},
    ]
    assert message("openai-chat", {"role": "user", "content": blocks}).summary is not None
    assert message("openai-chat", {"role": "tool", "tool_call_id": "c", "content": text}).summary is None


def test_calls_and_answers_of_roles_of_their_own_are_pairs() -> None:
    called = {"role": "tool-call", "content": [{"type": "text", "text": "Calling tools:\n[{'id': 'c1'}]"}]}
    answer = {"role": "tool-response", "content": [{"type": "text", "text": "Call id: c1\nObservation:\n42"}]}
    transcript = open_one({"role": "user", "content": "Add it up."}, called, answer)
    assert [found.role for found in transcript.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert len(group(transcript.messages).pairs) == 1


def test_timestamps() -> None:
    assert message("openai-chat", {"role": "user", "content": "x", "timestamp": "2026-01-01"}).timestamp == "2026-01-01"
    assert message("openai-chat", {"role": "user", "content": "x", "timestamp": 5}).timestamp == ""


# --- shorten


def test_shortened_texts_leave_everything_else() -> None:
    value = {"role": "tool", "tool_call_id": "c1", "content": "long", "x": 1.5, "n": 2**80}
    assert shortened("openai-chat", value, {0: "…"}) == {**value, "content": "…"}


def test_one_block_of_several_is_shortened() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:x"}}
    value = {"role": "user", "content": [{"type": "text", "text": "a", "k": 1}, image, {"type": "text", "text": "b"}]}
    new = shortened("openai-chat", value, {2: "c"})
    assert new["content"] == [{"type": "text", "text": "a", "k": 1}, image, {"type": "text", "text": "c"}]


def test_shortened_arguments_stay_parsable() -> None:
    value = {"role": "assistant", "content": "Sawing.", "reasoning": "why", "tool_calls": [call("{}"), call("{}")]}
    new = shortened("openai-chat", value, {3: '{"depth": 1}', 2: "a long te"})
    assert [json.loads(found["function"]["arguments"]) for found in new["tool_calls"]] == [
        {"shortened": "a long te"},
        {"depth": 1},
    ]
    assert (new["content"], new["reasoning"]) == ("Sawing.", "why")


def test_thinking_is_never_shortened() -> None:
    value = {"role": "assistant", "content": "Oak.", "reasoning_content": "Which wood?"}
    assert shortened("openai-chat", value, {0: "…"}) == value


def test_shortened_bytes_follow_the_style_and_the_characters_of_the_source() -> None:
    (spaced,) = open_bytes('{"role": "tool", "tool_call_id": "c", "content": "锯木头"}'.encode())
    assert (
        DIALECT.shorten(spaced.records[0], {0: "锯"}).decode()
        == '{"role": "tool", "tool_call_id": "c", "content": "锯"}'
    )
    (tight,) = open_bytes(b'{"role":"tool","tool_call_id":"c","content":"\\ud800 x"}')
    assert DIALECT.shorten(tight.records[0], {0: "\ud800"}) == b'{"role":"tool","tool_call_id":"c","content":"\\ud800"}'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KINDS = [
    *("text", "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use"),
    *("web_search_tool_result", "code_execution_tool_result", "compaction", "think", "odd"),
]
BLOCK = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(KINDS) | JSON,
        "text": JSON,
        "content": JSON,
        "input": JSON,
        "id": JSON,
        "think": JSON,
    }
    | {"toolUse": JSON, "toolResult": JSON, "reasoningContent": JSON, "source": JSON, "thinking": JSON},
)
ODD = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "function", "tool_call"]) | JSON},
    optional={"content": JSON | st.lists(BLOCK | JSON, max_size=4), "tool_calls": JSON | st.lists(BLOCK, max_size=2)}
    | {"function_call": JSON, "reasoning": JSON, "refusal": JSON, "name": JSON, "tool_call_id": JSON, "error": JSON},
)


@settings(max_examples=300, deadline=None)
@given(ODD)
def test_whatever_a_message_holds_it_is_read_and_can_be_shortened(value: Any) -> None:
    plain = {"role": "user", "content": "x"}
    transcript = open_one(plain, plain, value, dialect="openai-chat")
    record, parts = transcript.records[2], transcript.messages[2].parts
    texts = {i: "ß" for i, part in enumerate(parts) if isinstance(part, Text | ToolResult) and part.text}
    (again,) = open_bytes(b"\n".join([transcript.records[0].raw] * 2 + [DIALECT.shorten(record, texts)]), "openai-chat")
    assert [type(part) for part in again.messages[2].parts] == [type(part) for part in parts]
    assert all(again.messages[2].parts[i].text == "ß" for i in texts)  # type: ignore[union-attr]


# --- insert


def test_a_summary_has_the_keys_of_the_files_own_messages_in_their_order_but_nobodys_name() -> None:
    lines = [
        {"content": "Saw it.", "role": "user", "type": "message", "name": "ann"},
        {"content": "Done.", "role": "assistant"},
    ]
    (summary, answer) = inserted(open_one(*lines, *lines), 2, "So far: 锯", "Understood.")
    assert list(summary.items()) == [("content", "So far: 锯"), ("role", "user"), ("type", "message")]
    assert list(answer.items()) == [("content", "Understood."), ("role", "assistant")]


def test_insertions_are_never_trained() -> None:
    messages = [
        {"role": "user", "content": "Saw it."},
        {"role": "assistant", "content": "Done.", "weight": 1},
        {"role": "user", "content": "Plane it."},
        {"role": "assistant", "content": "Done."},
    ]
    (summary, answer) = inserted(open_one({"messages": messages}), 2, "So far.", "Understood.")
    assert summary == {"role": "user", "content": "So far."}
    assert answer == {"role": "assistant", "content": "Understood.", "weight": 0}


def test_no_calls_and_no_half_of_the_keys_are_invented() -> None:
    lines = [
        {"role": "user", "content": "Saw it.", "id": "m1", "timestamp": "t1", "cost": 0.5, "tags": ["a"]},
        {"role": "assistant", "content": None, "tool_calls": [call("{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "user", "content": "Plane it.", "id": "m2", "timestamp": "t2", "cost": 0.7, "tags": ["b"], "x": None},
    ]
    (summary, answer) = inserted(open_one(*lines), 3, "So far.", "Understood.")
    assert set(summary) == {"role", "content", "id", "timestamp"}
    assert summary["id"] not in ("m1", "m2", "")
    assert answer == {"role": "assistant", "content": "Understood."}


def test_content_is_written_in_blocks_where_all_contents_are() -> None:
    line = {"role": "user", "content": [{"type": "text", "text": "Saw it."}]}
    (summary,) = inserted(open_one(line, line), 1, "So far.")
    assert summary["content"] == [{"type": "text", "text": "So far."}]


def test_the_same_insertion_gives_the_same_bytes() -> None:
    line = {"role": "user", "content": "Saw it.", "id": "m1"}
    assert inserted(open_one(line, line), 1, "So far.") == inserted(open_one(line, line), 1, "So far.")


def test_spaces_are_those_of_the_source() -> None:
    from compactor_cli.formats.registry import Insertion, InsertionPoint

    item = Insertion(role=Role.USER, text="So far.", is_summary=True)
    for raw in (b'{"role":"user","content":"a"}', b'{"role": "user", "content": "a"}'):
        (transcript,) = open_bytes(raw)
        (new,) = DIALECT.insert(transcript, InsertionPoint(before=(0,), after=()), [item])
        assert new == raw.replace(b'"a"', b'"So far."')


def test_calls_and_results_of_programs_in_javascript_are_paired() -> None:
    asked = {"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "name": "cut", "args": {"at": 3}}]}
    told = {"role": "tool", "toolCallId": "c1", "toolName": "cut", "content": "ok"}
    assert read(asked) == (Role.ASSISTANT, (ToolCall(id="c1", name="cut", arguments={"at": 3}),))
    assert read(told) == (Role.TOOL, (ToolResult(id="c1", name="cut", text="ok"),))
    assert shortened("openai-chat", asked, {0: '{"at":"…"}'})["toolCalls"][0]["args"] == {"at": "…"}


def test_roles_in_capitals_are_roles_and_new_messages_are_written_so() -> None:
    told = [
        {"role": "SYSTEM", "content": "Be brief."},
        {"role": "USER", "content": "a"},
        {"role": "TOOL", "content": "b"},
    ]
    transcript = open_one({"messages": told})
    assert [found.role for found in transcript.messages] == [Role.SYSTEM, Role.USER, Role.TOOL]
    assert inserted(transcript, 1, "S") == [{"role": "USER", "content": "S"}]


def test_calls_and_observations_with_a_role_of_their_own_are_paired() -> None:
    assert read({"role": "function_call", "content": '{"name": "cut", "arguments": {"at": 3}}'}) == (
        Role.ASSISTANT,
        (ToolCall(id="", name="cut", arguments={"at": 3}),),
    )
    assert read({"role": "observation", "content": "ok"}) == (Role.TOOL, (ToolResult(id="", text="ok"),))
