from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from made_sessions import ACKNOWLEDGEMENT, SUMMARY, compacted, from_file, line, made, shown

from compactor_cli.formats.codex import DIALECT, PREFIX
from compactor_cli.formats.registry import InsertionPoint
from compactor_cli.model.errors import UsageError
from compactor_cli.model.transcript import Media, Role, Thinking

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
META = {
    "type": "session_meta",
    "payload": {"id": "S", "timestamp": "t", "cwd": "/w", "originator": "o", "cli_version": "1"},
}
STATE = {"type": "world_state", "payload": {"full": True, "state": {"model": "m"}}}
CONTEXT = {"type": "turn_context", "payload": {"model": "gpt-5.2", "cwd": "/w"}}


def item(**payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": payload}


def said(role: str, words: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(type="message", role=role, content=[{"type": kind, "text": words}])


def call(number: str, **arguments: Any) -> dict[str, Any]:
    return item(type="function_call", name="exec_command", arguments=json.dumps(arguments), call_id=number)


def output(number: str, words: Any) -> dict[str, Any]:
    return item(type="function_call_output", call_id=number, output=words)


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, **more}}


def reasoning(number: str, *texts: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": words} for words in texts]
    return item(type="reasoning", id=number, summary=summary, encrypted_content="gAAAA")


def replaced_by(message: str, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
    history = [value["payload"] for value in items]
    return {"type": "compacted", "payload": {"message": message, "replacement_history": history, **more}}


def stamped(values: list[Any], *, ordinals: bool = False) -> list[Any]:
    """With a time each, and an ordinal where the client writes them."""
    return [
        {"timestamp": f"2026-03-01T10:00:{i:02d}.000Z", **({"ordinal": i} if ordinals else {}), **value}
        for i, value in enumerate(values)
    ]


def session(turns: int) -> list[Any]:
    values = [META, said("developer", "rules"), said("user", "<environment_context>here"), STATE, CONTEXT]
    for n in range(turns):
        values += [
            said("user", f"question {n}"),
            event("user_message", message=f"question {n}"),
            call(f"c{n}", cmd="ls"),
        ]
        values += [output(f"c{n}", f"output {n}"), event("token_count", info=None), said("assistant", f"answer {n}")]
    return values


def test_items_are_messages_and_the_rest_is_meta() -> None:
    transcript = made(DIALECT, stamped(session(1)))
    roles = [message.role for message in transcript.messages]
    expected = "META SYSTEM USER META META USER META ASSISTANT TOOL META ASSISTANT".split()
    assert roles == [Role[name] for name in expected]
    assert transcript.messages[7].calls[0].arguments == {"cmd": "ls"}
    assert transcript.messages[8].results[0].text == "output 0"
    assert transcript.messages[5].timestamp == "2026-03-01T10:00:05.000Z"
    assert transcript.model == "gpt-5.2"


@pytest.mark.parametrize(
    ("written", "text", "is_error"),
    [
        ("plain", "plain", False),
        ("Exit code: 2\nWall time: 1 s\nOutput:\nno", "Exit code: 2\nWall time: 1 s\nOutput:\nno", True),
        (
            "Chunk ID: a\nProcess exited with code 0\nOutput:\nok",
            "Chunk ID: a\nProcess exited with code 0\nOutput:\nok",
            False,
        ),
        ('{"output":"a\\nb","metadata":{"exit_code":1}}', "a\nb", True),
        ('{"output":"a","metadata":{"exit_code":0}}', "a", False),
        ('{"answer": 42}', '{"answer": 42}', False),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", False),
        ({"type": "input_text", "text": "a"}, "a", False),
        (None, "", False),
    ],
)
def test_outputs_of_every_version(written: Any, text: str, is_error: bool) -> None:
    (message,) = made(DIALECT, stamped([output("c", written)])).messages
    assert (message.results[0].text, message.results[0].is_error) == (text, is_error)


def test_an_output_with_an_image_counts_it() -> None:
    blocks = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:..."}]
    (message,) = made(DIALECT, stamped([output("c", blocks)])).messages
    assert (message.results[0].text, message.results[0].media_count) == ("a", 1)


def test_other_calls_and_reasoning() -> None:
    values = [
        reasoning("r", "one", "two"),
        item(type="custom_tool_call", call_id="p", name="apply_patch", input="*** Begin Patch"),
        item(type="custom_tool_call_output", call_id="p", output="Done"),
        item(type="local_shell_call", call_id="s", action={"type": "exec", "command": ["ls"]}),
        item(type="web_search_call", id="w", action={"type": "search", "query": "q"}),
        item(type="tool_search_call", call_id="ts", arguments={"query": "q"}),
        item(type="tool_search_output", call_id="ts", tools=[{"name": "t"}]),
        item(type="compaction", encrypted_content="12345"),
        item(type="ghost_snapshot", ghost_commit={}),
        item(type="agent_message", author="a", content=[{"type": "input_text", "text": "hello"}]),
        item(type="never seen", text="x"),
    ]
    messages = made(DIALECT, stamped(values)).messages
    assert messages[0].parts == (Thinking(text="one\ntwo"), Media(kind="encrypted_reasoning", size_bytes=5))
    assert (messages[1].calls[0].name, messages[1].calls[0].arguments) == ("apply_patch", "*** Begin Patch")
    assert messages[2].results[0].id == "p"
    assert (messages[3].calls[0].name, messages[3].calls[0].id) == ("local_shell", "s")
    assert (messages[4].calls[0].id, messages[4].results[0].id) == ("w", "w")
    assert messages[5].calls[0].id == messages[6].results[0].id == "ts"
    assert messages[7].parts == (Media(kind="compaction", size_bytes=5),)
    assert [message.role for message in messages[8:]] == [Role.META, Role.USER, Role.META]


def test_reasoning_is_never_parted_from_what_follows_it() -> None:
    values = [
        said("user", "q"),
        reasoning("r"),
        event("token_count"),
        call("c"),
        call("d"),
        output("c", "x"),
        call("e"),
    ]
    groups = [message.group for message in made(DIALECT, stamped(values)).messages]
    assert groups[1] == groups[3] == groups[4] != ""
    assert groups[0] == groups[2] == groups[5] == groups[6] == ""


def test_rollouts_from_before_the_envelope() -> None:
    values = [
        {"id": "S", "timestamp": "t", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"record_type": "state"},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"timestamp": "t", "role": "assistant", "content": "done"},
        {"type": "Message", "role": "user", "content": "more"},
        {"created_at": "t", "role": "user", "message": "else"},
        {"timestamp": "t", "type": "tool_call", "function": {"name": "git"}, "arguments": "status"},
        {"timestamp": "t", "type": "tool_result", "name": "git", "result": {"stdout": "on main", "exitCode": 1}},
    ]
    transcript = made(DIALECT, values)
    assert [message.is_meta for message in transcript.messages] == [True, False, True] + [False] * 7
    assert shown(transcript)[:5] == ["hi", "shell({})", "= x", "done", "more"]
    assert (transcript.messages[8].calls[0].name, transcript.messages[8].calls[0].arguments) == ("git", "status")
    assert transcript.messages[9].results[0].is_error
    after = compacted(DIALECT, transcript, 2, 6)
    assert after.records[2].value["type"] == "message"
    assert after.messages[2].summary is not None


def test_lines_are_scored() -> None:
    assert DIALECT.score({"timestamp": "t", **META}) == 3
    assert DIALECT.score({"timestamp": "t", **said("user", "x")}) == 3
    assert DIALECT.score({"type": "function_call_output", "call_id": "c", "output": "x"}) == 2
    assert DIALECT.score({"type": "message", "role": "user", "content": []}) == 2
    assert DIALECT.score({"role": "user", "content": "x"}) == 0
    assert DIALECT.score({"type": "message", "id": "1", "parentId": None, "timestamp": "t", "message": {}}) == 0
    assert DIALECT.starts(META)
    assert DIALECT.starts({"id": "S", "timestamp": "t", "instructions": "x"})
    assert not DIALECT.starts(said("user", "x"))


def test_a_native_compaction_replaces_all_but_what_it_repeats() -> None:
    before = stamped([META, said("user", "first"), said("assistant", "long"), said("user", "second")])
    summary = said("user", f"{PREFIX}\nthe summary")
    mark = replaced_by(
        f"{PREFIX}\nthe summary", said("user", "first"), said("user", "second"), said("user", "new"), summary
    )
    transcript = made(DIALECT, [*before, *stamped([mark, said("user", "third")])])
    assert [message.superseded for message in transcript.messages] == [False, False, True, False, False, False]
    assert shown(transcript) == ["first", "second", f"new\n{PREFIX}\nthe summary", "third"]
    found = transcript.messages[4].summary
    assert found is not None
    assert (found.origin, found.text) == ("codex", "the summary")


def test_a_copy_without_the_clients_labels_is_a_copy() -> None:
    first = said("user", "first")
    first["payload"] |= {"id": "msg_1", "internal_chat_message_metadata_passthrough": {"turn_id": "T"}}
    transcript = made(DIALECT, stamped([META, first, replaced_by("m", said("user", "first"))]))
    assert not transcript.messages[1].superseded


def test_a_compaction_without_a_history_keeps_the_users_messages() -> None:
    values = [
        META,
        said("user", "first"),
        said("assistant", "long"),
        {"type": "compacted", "payload": {"message": "sum"}},
    ]
    transcript = made(DIALECT, stamped(values))
    assert shown(transcript) == ["first", "sum"]
    assert [message.summary.text for message in transcript.messages if message.summary] == ["sum"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: value["payload"].pop("message"),
        lambda value: value.pop("timestamp"),
        lambda value: value["payload"]["replacement_history"].append(
            {"type": "message", "role": "user", "content": "x"}
        ),
        lambda value: value.update(payload=None),
    ],
)
def test_a_malformed_compaction_is_skipped_as_clients_do(spoil: Any) -> None:
    values = stamped([META, said("user", "first"), said("assistant", "long"), replaced_by("sum")])
    spoil(values[-1])
    assert shown(made(DIALECT, values)) == ["first", "long"]


def test_only_the_last_compaction_counts_and_opaque_ones_are_media() -> None:
    opaque = item(type="compaction", encrypted_content="12345")
    values = [
        META,
        said("user", "a"),
        replaced_by("one"),
        said("user", "b"),
        replaced_by("", said("user", "b"), opaque),
    ]
    transcript = made(DIALECT, stamped([*values, said("user", "c")]))
    assert shown(transcript) == ["b", "c"]
    assert transcript.messages[4].parts == (Media(kind="compaction", size_bytes=5),)
    assert transcript.messages[2].superseded


def test_the_head_is_repeated_before_the_summary() -> None:
    transcript = made(DIALECT, stamped(session(3), ordinals=True))
    after = compacted(DIALECT, transcript, 11, 17, (SUMMARY, ACKNOWLEDGEMENT))
    mark, state = after.records[11].value, after.records[12].value
    history = mark["payload"]["replacement_history"]
    heads = [r.value["payload"] for r in transcript.records[:11] if r.value["type"] == "response_item"]
    assert history[:-2] == heads
    assert mark["payload"]["message"] == history[-2]["content"][0]["text"] == f"{PREFIX}\n{SUMMARY.text}"
    assert history[-1] == {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Understood."}],
    }
    assert (mark["ordinal"], state["ordinal"], after.records[13].value["ordinal"]) == (14, 15, 16)
    assert after.records[13].value["type"] == "turn_context"
    assert mark["timestamp"] == transcript.records[16].value["timestamp"]
    assert (state["type"], state["payload"]) == ("world_state", STATE["payload"])
    assert [r.raw for r in after.records[14:]] == [r.raw for r in transcript.records[17:]]
    texts = shown(after)
    assert texts.count("question 0") == 1
    assert [word for word in texts if "S-U-M" in word] == [f"{PREFIX}\n{SUMMARY.text}\nUnderstood."]
    assert after.messages[11].summary is not None


def test_a_second_compaction_repeats_the_head_and_not_the_first_summary() -> None:
    once = compacted(DIALECT, made(DIALECT, stamped(session(3))), 11, 17)
    twice = compacted(DIALECT, once, 11, 13)
    history = twice.records[11].value["payload"]["replacement_history"]
    words = [part["content"][0]["text"] for part in history if part["type"] == "message"]
    assert words == ["rules", "<environment_context>here", "question 0", "answer 0", f"{PREFIX}\n{SUMMARY.text}"]


def test_an_opaque_summary_survives_though_its_record_is_removed() -> None:
    opaque = item(type="compaction", encrypted_content="12345")
    values = [META, said("user", "a"), replaced_by("", said("user", "a"), opaque), said("user", "b"), said("user", "c")]
    after = compacted(DIALECT, made(DIALECT, stamped(values)), 1, 4)
    history = after.records[1].value["payload"]["replacement_history"]
    assert [part["type"] for part in history] == ["compaction", "message"]
    assert "world_state" not in [r.value["type"] for r in after.records]


def test_without_ordinals_and_states_none_are_written() -> None:
    values = [value for value in session(3) if value is not STATE]
    after = compacted(DIALECT, made(DIALECT, stamped(values)), 4, 16)
    assert list(after.records[4].value) == ["timestamp", "type", "payload"]
    assert after.records[5].value["type"] == "response_item"


def test_insertions_are_the_same_every_time() -> None:
    runs = [compacted(DIALECT, made(DIALECT, stamped(session(3))), 11, 17).source() for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("value", "key", "expected"),
    [
        (output("c", "long"), "output", "s"),
        (
            output("c", '{"output":"long","metadata":{"exit_code":1}}'),
            "output",
            '{"output":"s","metadata":{"exit_code":1}}',
        ),
        (output("c", [{"type": "input_text", "text": "long"}]), "output", [{"type": "input_text", "text": "s"}]),
        (
            output("c", {"type": "input_text", "text": "long", "detail": None}),
            "output",
            {"type": "input_text", "text": "s", "detail": None},
        ),
        (call("c", cmd="long"), "arguments", "s"),
        (said("assistant", "long"), "content", [{"type": "output_text", "text": "s"}]),
    ],
)
def test_a_shortened_record_keeps_its_shape(value: Any, key: str, expected: Any) -> None:
    record = line(stamped([value])[0])
    short = json.loads(DIALECT.shorten(record, {0: "s"}))
    assert short["payload"][key] == expected
    assert {**short, "payload": {**short["payload"], key: 0}} == {
        **record.value,
        "payload": {**value["payload"], key: 0},
    }


def test_real_rollouts_are_read_whole(corpus: Path) -> None:
    with (corpus / "FEATURES.tsv").open(encoding="utf-8") as file:
        features = {row["path"]: row for row in csv.DictReader(file, delimiter="\t")}
    for path in sorted((corpus / "codex-rollout").rglob("*.jsonl")):
        transcript = from_file(DIALECT, path)
        name = str(path.relative_to(corpus))
        assert transcript.source() == path.read_bytes(), name
        assert len(transcript.messages) == len(transcript.records), name
        said_count = sum(message.role in (Role.USER, Role.ASSISTANT, Role.SYSTEM) for message in transcript.messages)
        assert said_count >= int(features[name]["messages"]), name
        assert sum(len(message.calls) for message in transcript.messages) >= int(features[name]["tool_calls"]), name
        assert sum(len(message.results) for message in transcript.messages) >= int(features[name]["tool_results"]), name


def test_real_rollouts_can_be_compacted(corpus: Path) -> None:
    for path in sorted((corpus / "codex-rollout").rglob("*.jsonl")):
        transcript = from_file(DIALECT, path)
        count = len(transcript.records)
        after = compacted(DIALECT, transcript, min(2, count), count)
        assert any(SUMMARY.text in message.text and not message.superseded for message in after.messages), path
        assert sum(SUMMARY.text in message.text for message in after.messages) == 1, path


def test_the_sample_is_a_rollout() -> None:
    transcript = from_file(DIALECT, SAMPLES / "codex-rollout.jsonl")
    assert all(DIALECT.score(record.value) == 3 for record in transcript.records)
    calls = {call.id for message in transcript.messages for call in message.calls}
    assert calls == {result.id for message in transcript.messages for result in message.results}
    assert any(result.is_error for message in transcript.messages for result in message.results)


def test_the_call_of_a_server_that_failed_is_known_by_its_event() -> None:
    def ended(key: str, result: dict[str, Any]) -> dict[str, Any]:
        return {"type": "event_msg", "payload": {"type": "mcp_tool_call_end", "call_id": key, "result": result}}

    values = [call("a"), output("a", "x"), ended("a", {"Ok": {"content": [], "isError": True}})]
    values += [call("b"), output("b", "x"), ended("b", {"Err": "timed out"})]
    values += [call("c"), output("c", "x"), ended("c", {"Ok": {"content": [], "isError": False}})]
    results = [message.results[0] for message in made(DIALECT, stamped(values)).messages if message.results]
    assert [result.is_error for result in results] == [True, True, False]


def in_events(turns: int) -> list[Any]:
    """A rollout whose user is heard in events alone."""
    return [
        META,
        *(
            value
            for n in range(turns)
            for value in (event("user_message", message=f"question {n}"), said("assistant", f"answer {n}"))
        ),
    ]


def test_words_that_stand_in_events_alone_are_the_users() -> None:
    transcript = made(DIALECT, stamped(in_events(2)))
    assert [message.role for message in transcript.messages[1:3]] == [Role.USER, Role.ASSISTANT]
    assert shown(transcript) == ["question 0", "answer 0", "question 1", "answer 1"]
    short = json.loads(DIALECT.shorten(transcript.records[1], {0: "short"}))
    assert short["payload"] == {"type": "user_message", "message": "short"}
    own = made(DIALECT, stamped([META, said("user", "question 0"), event("user_message", message="question 0")]))
    assert shown(own) == ["question 0"]


@pytest.mark.parametrize(("head", "tail"), [(1, 1), (1, 2), (3, 2), (3, 4)])
def test_a_summary_is_heard_among_words_in_events_and_so_is_the_next(head: int, tail: int) -> None:
    transcript = made(DIALECT, stamped(in_events(4)))
    words = shown(transcript)
    after = compacted(DIALECT, transcript, head, 9 - tail)
    assert shown(after) == [*words[: head - 1], SUMMARY.text, *words[8 - tail :]]
    again = compacted(DIALECT, after, head, len(after.records) - 1, (SUMMARY, ACKNOWLEDGEMENT))
    assert shown(again) == [*words[: head - 1], SUMMARY.text, ACKNOWLEDGEMENT.text, words[-1]]


def test_events_that_repeat_the_user_stay_unread_after_a_compaction() -> None:
    values = [META, *(value for n in range(3) for value in session(3)[5 + 6 * n : 11 + 6 * n])]
    transcript = made(DIALECT, stamped(values))
    after = compacted(DIALECT, transcript, 1, 14)
    assert not [words for words in shown(after) if words.startswith("question")]


def test_nothing_is_appended_to_words_in_events() -> None:
    transcript = made(DIALECT, stamped(in_events(4)))
    with pytest.raises(UsageError):
        DIALECT.append(transcript, InsertionPoint(before=(), after=(8,)), (SUMMARY,), 100)
