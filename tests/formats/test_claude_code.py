from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from made_sessions import ACKNOWLEDGEMENT, SUMMARY, compacted, from_file, line, made, opened, shown

from compactor_cli.formats import claude_code, claude_tree
from compactor_cli.formats.claude_code import CLAUDE_CODE as DIALECT
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.harness import user_text
from compactor_cli.formats.registry import Insertion, InsertionPoint
from compactor_cli.group.exchanges import is_user_words
from compactor_cli.model.errors import UsageError
from compactor_cli.model.transcript import Media, Role, Text, Thinking, Transcript
from compactor_cli.read.jsonl import read_records

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
NOT_A_SESSION = ("agent-a0ad4f44468bdf20d.meta.json",)
# Two records on one line are counted as none there; records of subagents are counted as conversation there.
COUNTED_OTHERWISE = {
    "claude-code/entireio+cli/2026-01-22-48f428f9-72d8-40b2-9594-953019809473.jsonl",
    "claude-code/jazzyalex+agent-sessions/small.jsonl",
}


def record(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    at = f"2026-03-01T10:00:{int(''.join(filter(str.isdigit, uuid)) or 0):02d}.000Z"
    envelope = {"parentUuid": parent, "isSidechain": False, "sessionId": "S", "version": "2.1.0", "cwd": "/w"}
    body = {"type": kind, "message": {"role": kind, "content": content}, "uuid": uuid, "timestamp": at}
    return {**envelope, **body, **more}


def user(uuid: str, parent: str | None, text: Any, **more: Any) -> dict[str, Any]:
    return record(uuid, parent, "user", text, **more)


def answer(uuid: str, parent: str | None, block: Any, of: str, **more: Any) -> dict[str, Any]:
    value = record(uuid, parent, "assistant", [block], **more)
    value["message"] |= {"id": of, "model": "claude-opus-4-6", "usage": {"input_tokens": 900, "output_tokens": 100}}
    return value


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def use(call: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": arguments}


def result(call: str, content: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call, "content": content, **more}]


def boundary(uuid: str, **metadata: Any) -> dict[str, Any]:
    return {
        "parentUuid": None,
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": uuid,
        "sessionId": "S",
        "timestamp": "2026-03-01T11:00:00.000Z",
        "compactMetadata": {"trigger": "auto", "preTokens": 9, **metadata},
    }


def summary(uuid: str, parent: str | None, words: str = "Summary:\nearlier work") -> dict[str, Any]:
    opening = "This session is being continued from a previous conversation that ran out of context."
    return user(uuid, parent, f"{opening} {words}", isCompactSummary=True, isVisibleInTranscriptOnly=True)


def chain(turns: int) -> list[dict[str, Any]]:
    """Turns of question, call, result and answer, linked to each other."""
    values: list[dict[str, Any]] = []
    last = None
    for n in range(turns):
        a, b, c, d = (f"r{4 * n + k}" for k in range(4))
        values += [
            user(a, last, f"question {n}"),
            answer(b, a, use(f"t{n}", command=f"ls {n}"), f"m{n}a"),
            user(c, b, result(f"t{n}", f"output {n}")),
            answer(d, c, text(f"answer {n}"), f"m{n}b"),
        ]
        last = d
    return values


def chain_after(parent: str, number: int) -> list[dict[str, Any]]:
    """One more question and answer."""
    asked, answered = f"r{number}", f"r{number + 1}"
    return [user(asked, parent, "go on"), answer(answered, asked, text("yes"), f"m{number}")]


def client_path(transcript: Transcript) -> list[str]:
    """The uuids that a client follows from the newest record to the root."""
    values = {value["uuid"]: value for r in transcript.records if "uuid" in (value := r.value)}
    at: str | None = [u for u, value in values.items() if value["type"] in ("user", "assistant")][-1]
    path = []
    while at is not None:
        assert at in values, f"dangling {at}"
        path.append(at)
        at = values[at]["parentUuid"]
    return path[::-1]


def test_blocks_become_parts_and_lines_of_one_message_share_a_group() -> None:
    transcript = made(
        DIALECT,
        [
            user("u1", None, "please look"),
            answer("a2", "u1", {"type": "thinking", "thinking": "hm", "signature": "x" * 500}, "m"),
            answer("a3", "a2", text("I look."), "m"),
            answer("a4", "a3", use("t1", command="ls"), "m"),
            user("u5", "a4", result("t1", [text("one"), {"type": "image", "source": {}}, text("two")], is_error=True)),
        ],
    )
    question, thought, words, call, answered = transcript.messages
    assert (question.role, question.text) == (Role.USER, "please look")
    assert thought.parts == (Thinking(text="hm"),)
    assert thought.group == words.group == call.group == "m"
    assert (call.calls[0].id, call.calls[0].name, call.calls[0].arguments) == ("t1", "Bash", {"command": "ls"})
    assert answered.role is Role.TOOL
    assert (answered.results[0].text, answered.results[0].media_count) == ("one\ntwo", 1)
    assert answered.results[0].is_error
    assert question.timestamp.startswith("2026-03-01")
    assert transcript.model == "claude-opus-4-6"


def test_parallel_calls_with_a_result_between_them_keep_their_group() -> None:
    transcript = made(
        DIALECT,
        [
            user("u1", None, "both"),
            answer("a2", "u1", use("t1"), "m"),
            user("u3", "a2", result("t1", "one")),
            answer("a4", "a2", use("t2"), "m"),
            user("u5", "a4", result("t2", "two")),
        ],
    )
    assert [message.group for message in transcript.messages] == ["", "m", "", "m", ""]
    assert not any(message.superseded for message in transcript.messages)


@pytest.mark.parametrize(
    "value",
    [
        {"type": "summary", "summary": "title", "leafUuid": "x"},
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        {"type": "queue-operation", "operation": "enqueue", "content": "later", "sessionId": "S"},
        {"type": "progress", "uuid": "p", "parentUuid": "u1", "data": {"message": {"message": {"content": "nested"}}}},
        {"type": "attachment", "uuid": "p", "parentUuid": "u1", "attachment": {"type": "skill_listing"}},
        {"type": "system", "subtype": "microcompact_boundary", "uuid": "p", "parentUuid": "u1"},
        {"type": "api-request-blob", "sessionId": "S", "messages": ["again"]},
        {"type": "user", "message": "no object", "uuid": "x"},
        {"type": "never seen"},
        "a string",
        42,
        [1],
        None,
    ],
)
def test_bookkeeping_and_odd_lines_are_meta(value: Any) -> None:
    transcript = made(DIALECT, [user("u1", None, "hello"), value])
    assert [message.is_meta for message in transcript.messages] == [False, True]


@pytest.mark.parametrize("content", [None, "", [], ["plain", "strings"], [None, 3], [{"type": "novel", "data": "xyz"}]])
def test_content_of_any_shape_is_read(content: Any) -> None:
    (message,) = made(DIALECT, [user("u1", None, content)]).messages
    assert message.role is Role.USER


def test_words_that_are_sent_besides_messages_are_the_users() -> None:
    queued = {"type": "attachment", "uuid": "q", "parentUuid": "u1", "attachment": {"type": "queued_command"}}
    queued["attachment"] |= {"prompt": "and the tests too"}
    local = {"type": "system", "subtype": "local_command", "uuid": "l", "parentUuid": "q", "content": "<stdout>x"}
    transcript = made(DIALECT, [user("u1", None, "fix"), queued, local, user("u2", "l", "caveat", isMeta=True)])
    assert shown(transcript) == ["fix", "and the tests too", "<stdout>x", "caveat"]
    assert all(message.role is Role.USER for message in transcript.messages)


def queue(operation: str, content: Any = None, **more: Any) -> dict[str, Any]:
    said = {} if content is None else {"content": content}
    return {"type": "queue-operation", "operation": operation, "timestamp": "", "sessionId": "S", **said, **more}


def working(*between: dict[str, Any]) -> Transcript:
    """A call, these records while it runs, and its result."""
    start, call, answered, end = chain(1)
    return made(DIALECT, [start, call, *between, answered, end])


@pytest.mark.parametrize("reason", [{}, {"reason": "absorbed_mid_turn"}])
@pytest.mark.parametrize("named", ["please don't amend commits", None])
def test_what_was_typed_while_the_agent_worked_is_said_by_the_user(reason: dict[str, str], named: str | None) -> None:
    words = "please don't amend commits"
    transcript = working(queue("enqueue", words), queue("remove", named, **reason))
    assert [user_text(message) for message in transcript.messages if is_user_words(message)] == ["question 0", words]


def test_a_queued_prompt_that_another_record_holds_is_said_once() -> None:
    words = "also the docs"
    attachment = {
        "type": "queued_command",
        "prompt": [text(words)],
        "commandMode": "prompt",
        "origin": {"kind": "human"},
    }
    held = {"type": "attachment", "uuid": "q", "parentUuid": "r1", "attachment": attachment}
    removed = queue("remove", words, reason="absorbed_mid_turn")
    for around in ([queue("enqueue", words), removed, held], [queue("enqueue", words), held, queue("remove")]):
        assert [user_text(message) for message in working(*around).messages].count(words) == 1
    later = [*chain(1), queue("enqueue", words), queue("dequeue"), user("u9", "r3", words)]
    assert shown(made(DIALECT, later)).count(words) == 1


@pytest.mark.parametrize(
    "taken_back",
    [queue("popAll", "no, stop"), queue("popAll"), queue("remove", "no, stop", reason="cleared_on_cancel"), queue("x")],
)
def test_a_queued_prompt_that_was_taken_back_or_waits_is_not_said(taken_back: dict[str, Any]) -> None:
    assert "no, stop" not in shown(working(queue("enqueue", "no, stop"), taken_back))


@pytest.mark.parametrize("kind", ["task", "agent"])
def test_what_other_sessions_and_tasks_put_into_the_queue_is_no_request(kind: str) -> None:
    note = f"<{kind}-notification>\n<{kind}-id>b1</{kind}-id>\n<status>completed</status>\n</{kind}-notification>"
    peer = {"type": "queued_command", "prompt": "done here", "commandMode": "prompt", "origin": {"kind": "peer"}}
    told = {"type": "attachment", "uuid": "q", "parentUuid": "r1", "attachment": peer}
    transcript = working(queue("enqueue", note), queue("remove", note), told)
    assert [user_text(message) for message in transcript.messages if is_user_words(message)] == ["question 0"]
    woken = user("u9", "r3", "wake up", origin={"kind": "task-notification"})
    assert not is_user_words(made(DIALECT, [*chain(1), woken]).messages[-1])


def test_a_queued_prompt_in_the_tail_stays_and_nothing_links_to_it() -> None:
    words = [queue("enqueue", "and be brief"), queue("remove", "and be brief")]
    values = [*chain(3), *words, *chain_after("r11", 20)]
    transcript = made(DIALECT, values)
    assert not DIALECT.outdated(transcript.records, range(len(values))) & {12}
    for start, stop in ((0, 12), (4, 12), (4, 14), (13, 14)):
        after = compacted(DIALECT, transcript, start, stop)
        kept = [value for i, value in enumerate(values) if not start <= i < stop]
        assert [record.value for record in after.records if record.value in kept] == kept
        assert "What was done: S-U-M." in shown(after)
        assert client_path(after)


def test_a_subagent_is_no_conversation_unless_the_file_is_its_own() -> None:
    inner = [user("s1", None, "go", isSidechain=True), answer("s2", "s1", text("done"), "sm", isSidechain=True)]
    mixed = made(DIALECT, [user("u1", None, "main"), *inner])
    assert shown(mixed) == ["main"]
    assert shown(made(DIALECT, inner)) == ["go", "done"]


def test_opaque_thinking_and_unknown_blocks_are_media() -> None:
    blocks = [{"type": "redacted_thinking", "data": "abcd"}, {"type": "image", "source": {"data": "xx"}}]
    (message,) = made(DIALECT, [record("a1", None, "assistant", blocks)]).messages
    assert message.parts == (
        Media(kind="redacted_thinking", size_bytes=4),
        Media(kind="image", size_bytes=2),
    )


def test_what_is_before_a_boundary_is_superseded() -> None:
    old, new = chain(2), [user("n1", "s", "go on"), answer("n2", "n1", text("yes"), "n")]
    transcript = made(DIALECT, [*old, boundary("b"), summary("s", "b"), *new])
    assert shown(transcript)[1:] == ["go on", "yes"]
    found = transcript.messages[len(old) + 1].summary
    assert found is not None
    assert (found.origin, found.text) == ("claude-code", "earlier work")


def test_only_the_last_boundary_counts() -> None:
    first = [*chain(1), boundary("b"), summary("s", "b", "Summary:\none"), user("n1", "s", "middle")]
    transcript = made(DIALECT, [*first, boundary("c"), summary("z", "c", "Summary:\ntwo"), user("n2", "z", "last")])
    assert [message.summary.text for message in transcript.messages if message.summary] == ["one", "two"]
    assert [words for words in shown(transcript) if "continued" not in words] == ["last"]


@pytest.mark.parametrize("names", ["messages", "segment", "both"])
def test_records_that_a_boundary_preserves_are_still_sent(names: str) -> None:
    old = chain(2)
    kept = ["r4", "r5", "r6", "r7"]
    segment = {"preservedSegment": {"headUuid": "r4", "anchorUuid": "s", "tailUuid": "r7"}}
    messages = {"preservedMessages": {"anchorUuid": "s", "uuids": kept, "allUuids": kept}}
    metadata = {"messages": messages, "segment": segment, "both": {**segment, **messages}}[names]
    transcript = made(DIALECT, [*old, boundary("b", **metadata), summary("s", "b")])
    assert shown(transcript)[:-1] == ["question 1", "Bash({'command': 'ls 1'})", "= output 1", "answer 1"]


def test_a_tail_that_was_hung_after_a_boundary_further_on_is_still_sent() -> None:
    old = chain(1)
    tail = user("n1", "s", "re-hung")
    transcript = made(DIALECT, [*old, tail, boundary("b"), summary("s", "b"), user("n2", "n1", "newest")])
    assert [words for words in shown(transcript) if "continued" not in words] == ["re-hung", "newest"]


def test_a_boundary_that_the_tail_does_not_hang_on_is_ignored_as_clients_do() -> None:
    old = chain(1)
    transcript = made(DIALECT, [*old, boundary("b"), summary("s", "b"), user("n1", "r3", "old chain goes on")])
    gone = [message.text for message in transcript.messages if message.superseded and not message.is_meta]
    assert [words.startswith("This session is being continued") for words in gone] == [True]


def test_a_summary_of_ours_is_known_by_its_marker_before_its_flag() -> None:
    marker = f"[compact/1 transcript={'a' * 16} records=1-2/3 tokens=9 end={'b' * 16}]"
    value = user("u1", None, f"Reference only: of earlier records.\n{marker}\nbody", isCompactSummary=True)
    (message,) = made(DIALECT, [value]).messages
    assert message.summary is not None
    assert (message.summary.origin, message.summary.text) == ("compact", "body")


def test_a_result_that_quotes_a_summary_is_none() -> None:
    quote = "This session is being continued from a previous conversation that ran out of context."
    transcript = made(DIALECT, [answer("a1", None, use("t"), "m"), user("u2", "a1", result("t", quote))])
    assert [message.summary for message in transcript.messages] == [None, None]


def test_an_abandoned_branch_of_a_rewind_is_superseded() -> None:
    values = [
        *chain(1),
        user("x1", "r3", "wrong way"),
        answer("x2", "x1", text("on it"), "x"),
        user("y1", "r3", "right way"),
        answer("y2", "y1", text("done"), "y"),
    ]
    transcript = made(DIALECT, values)
    assert shown(transcript)[-2:] == ["right way", "done"]
    assert [message.superseded for message in transcript.messages] == [False] * 4 + [True, True, False, False]


@pytest.mark.parametrize("kind", ["progress", "system", "attachment"])
def test_a_cleared_conversation_does_not_come_back(kind: str) -> None:
    root = {"type": kind, "uuid": "h", "parentUuid": None, "isSidechain": False, "sessionId": "S"}
    started = {"data": {"type": "hook_progress", "hookName": "SessionStart:clear"}, "subtype": "informational"}
    new = [
        {**root, **started, "timestamp": "2026-03-01T12:00:00.000Z"},
        user("u9", "h", "Implement the following plan: oak"),
        answer("a10", "u9", text("planted"), "n"),
    ]
    transcript = made(DIALECT, [*chain(2), *new])
    assert shown(transcript) == ["Implement the following plan: oak", "planted"]
    assert [message.superseded for message in transcript.messages] == [True] * 8 + [False] * 3


def test_parallel_results_and_hooks_off_the_chain_are_sent() -> None:
    hook = {"type": "progress", "uuid": "h", "parentUuid": "a2", "isSidechain": False, "sessionId": "S"}
    values = [
        user("u1", None, "both"),
        answer("a2", "u1", use("t1"), "m"),
        answer("a3", "a2", use("t2"), "m"),
        hook,
        user("u4", "a2", result("t1", "one")),
        user("u5", "a3", result("t2", "two")),
        answer("a6", "u5", text("done"), "n"),
    ]
    assert not any(message.superseded for message in made(DIALECT, values).messages)


def test_a_session_that_the_client_wrote_again_under_a_new_root_counts_once() -> None:
    first = [
        user("u1", None, "both"),
        answer("a2", "u1", use("t1"), "m"),
        answer("a3", "a2", use("t2"), "m"),
        user("u4", "a2", result("t1", "one")),
        user("u5", "a3", result("t2", "two")),
        answer("a6", "u5", text("done"), "n"),
    ]
    again = [
        user("v1", None, "both"),
        answer("b3", "v1", use("t2"), "m"),
        user("v5", "b3", result("t2", "two")),
        answer("b6", "v5", text("done"), "n"),
        user("v7", "b6", "thanks"),
    ]
    transcript = made(DIALECT, [*first, *again])
    # The parallel call, which the client left out of the copy, stays with its message.
    sent = [
        record.value["uuid"]
        for record, message in zip(transcript.records, transcript.messages, strict=True)
        if not message.superseded
    ]
    assert sent == ["a2", "u4", "v1", "b3", "v5", "b6", "v7"]


def test_a_copied_record_counts_once_and_of_two_versions_the_last() -> None:
    copied = [user("u1", None, "hello"), user("u1", None, "hello")]
    assert [message.superseded for message in made(DIALECT, copied).messages] == [False, True]
    changed = [*copied, user("u1", None, "another")]
    assert [message.superseded for message in made(DIALECT, changed).messages] == [True, True, False]


def test_a_result_that_stands_before_its_call_is_sent_with_it() -> None:
    asked = answer("a1", "u1", use("c1"), "m1")
    early = user("r1", "h1", result("c1", "done"))
    hook = {"type": "attachment", "uuid": "h1", "parentUuid": "a1"}
    transcript = made(DIALECT, [user("u1", None, "ask"), early, asked, hook])
    assert [message.superseded for message in transcript.messages] == [False] * 4


def test_a_missing_parent_and_a_circle_do_no_harm() -> None:
    values = [user("u1", "gone", "a"), user("u2", "u3", "b"), user("u3", "u2", "c")]
    assert shown(made(DIALECT, values)) == ["a", "b", "c"]


def test_two_records_glued_on_one_line_are_two() -> None:
    glued = json.dumps(answer("a1", None, text("said"), "m")) + json.dumps({"type": "summary", "leafUuid": "a1"})
    transcript = opened(DIALECT, list(read_records([glued.encode() + b"\n"], "x")))
    assert [message.is_meta for message in transcript.messages] == [False, True]
    assert transcript.source() == glued.encode() + b"\n"


def test_lines_are_scored() -> None:
    assert DIALECT.score(user("u1", None, "x")) == 3
    assert DIALECT.score({"type": "summary", "summary": "t", "leafUuid": "x"}) == 3
    assert DIALECT.score({"type": "assistant", "message": {"role": "assistant", "content": []}}) == 2
    assert DIALECT.score({"role": "user", "content": "x"}) == 0
    assert DIALECT.score({"type": "message", "id": "1", "parentId": None, "message": {"role": "user"}}) == 0
    assert DIALECT.score({"uuid": "1", "parentUuid": None, "type": "user", "message": {"parts": []}}) == 0
    assert DIALECT.score("user") == DIALECT.score(None) == DIALECT.score([]) == 0


def test_the_session_is_named_by_records_of_the_tree() -> None:
    assert DIALECT.session_key(user("u1", None, "x")) == "S"
    assert DIALECT.session_key({"type": "worktree-state", "sessionId": "other"}) == ""
    assert DIALECT.session_key(3) == ""


def test_a_summary_after_a_head_is_written_into_the_chain() -> None:
    transcript = made(DIALECT, chain(4))
    after = compacted(DIALECT, transcript, 4, 12)
    new = after.records[4].value
    assert len(after.records) == 9
    assert (new["parentUuid"], new["uuid"], new["timestamp"]) == (
        "r3",
        "r11",
        transcript.records[11].value["timestamp"],
    )
    assert (new["isCompactSummary"], new["message"]) == (True, {"role": "user", "content": SUMMARY.text})
    assert (new["sessionId"], new["version"], new["cwd"], new["isSidechain"]) == ("S", "2.1.0", "/w", False)
    assert client_path(after) == ["r0", "r1", "r2", "r3", "r11", "r12", "r13", "r14", "r15"]
    assert after.messages[4].summary is not None
    assert not any(message.superseded for message in after.messages)
    assert all(a is b for a, b in zip(after.records[5:], transcript.records[12:], strict=True))


def test_without_a_head_a_boundary_is_the_new_root() -> None:
    transcript = made(DIALECT, chain(3))
    after = compacted(DIALECT, transcript, 0, 8)
    mark, new = after.records[0].value, after.records[1].value
    assert (mark["subtype"], mark["parentUuid"], mark["logicalParentUuid"]) == ("compact_boundary", None, "r6")
    assert (new["parentUuid"], new["uuid"]) == (mark["uuid"], "r7")
    assert mark["compactMetadata"] == {"trigger": "manual", "preTokens": 1000}
    assert client_path(after)[:3] == [mark["uuid"], "r7", "r8"]


def test_an_acknowledgement_stands_between_summary_and_tail() -> None:
    after = compacted(DIALECT, made(DIALECT, chain(3)), 4, 8, (SUMMARY, ACKNOWLEDGEMENT))
    first, second = after.records[4].value, after.records[5].value
    assert (first["parentUuid"], second["parentUuid"], second["uuid"]) == ("r3", first["uuid"], "r7")
    assert second["message"]["content"] == [{"type": "text", "text": "Understood."}]
    assert client_path(after)[3:7] == ["r3", first["uuid"], "r7", "r8"]


def test_the_tail_is_found_after_a_hook_that_it_hangs_on() -> None:
    values = chain(3)
    hook = {
        "type": "progress",
        "uuid": "h",
        "parentUuid": "r7",
        "timestamp": "x",
        "isSidechain": False,
        "sessionId": "S",
    }
    values[8] |= {"parentUuid": "h"}
    transcript = made(DIALECT, [*values[:8], hook, *values[8:]])
    assert compacted(DIALECT, transcript, 4, 8).records[4].value["uuid"] == "r7"
    assert compacted(DIALECT, transcript, 4, 9).records[4].value["uuid"] == "h"


def test_a_tail_that_hangs_on_nothing_removed_is_named_by_the_boundary() -> None:
    values = chain(3)
    values[8] |= {"parentUuid": None}
    transcript = made(DIALECT, values)
    after = compacted(DIALECT, transcript, 0, 8)
    mark, new = after.records[0].value, after.records[1].value
    assert mark["compactMetadata"]["preservedMessages"]["uuids"] == ["r8", "r9", "r10", "r11"]
    assert mark["compactMetadata"]["preservedSegment"]["anchorUuid"] == new["uuid"]
    assert shown(after) == [SUMMARY.text, *shown(transcript)[-4:]]


def test_without_a_tail_the_summary_is_the_newest_record() -> None:
    after = compacted(DIALECT, made(DIALECT, chain(2)), 4, 8)
    assert client_path(after) == ["r0", "r1", "r2", "r3", after.records[4].value["uuid"]]


def test_a_subagents_file_stays_one() -> None:
    values = [{**value, "isSidechain": True, "agentId": "a7"} for value in chain(3)]
    after = compacted(DIALECT, made(DIALECT, values), 4, 8)
    assert (after.records[4].value["isSidechain"], after.records[4].value["agentId"]) == (True, "a7")
    assert not any(message.is_meta for message in after.messages)


def test_a_file_with_a_native_compaction_is_compacted_after_a_boundary_of_its_own() -> None:
    later = [user("n1", "s", "go on"), answer("n2", "n1", text("yes"), "n"), user("n3", "n2", "more")]
    transcript = made(DIALECT, [*chain(1), boundary("b"), summary("s", "b"), *later])
    after = compacted(DIALECT, transcript, 0, 8)
    assert after.records[0].value["subtype"] == "compact_boundary"
    assert shown(after) == [SUMMARY.text, "more"]
    assert client_path(after)[1:] == ["n2", "n3"]


def test_insertions_are_the_same_every_time() -> None:
    transcript = made(DIALECT, chain(3))
    cut = InsertionPoint(before=(), after=tuple(range(8, 12)))
    runs = [DIALECT.insert(transcript, cut, (SUMMARY, ACKNOWLEDGEMENT)) for _ in range(2)]
    assert runs[0] == runs[1]
    uuids = [json.loads(raw)["uuid"] for raw in runs[0]]
    assert len(set(uuids)) == 3


def test_a_shortened_record_keeps_everything_else() -> None:
    value = user("u1", "a", result("t", [text("long"), {"type": "image", "source": {"data": "x"}}, text("more")]))
    value |= {"toolUseResult": {"stdout": "long"}, "big": 123456789012345678901234567890}
    raw = json.dumps(value, ensure_ascii=False).encode()
    short = json.loads(DIALECT.shorten(opened(DIALECT, list(read_records([raw], "x"))).records[0], {0: "s"}))
    value["message"]["content"][0]["content"] = [text("s"), {"type": "image", "source": {"data": "x"}}]
    assert short == value


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("long", 0),
        ([text("a"), text("long")], 1),
        ([{"type": "thinking", "thinking": "t"}, use("t", command="long")], 1),
    ],
)
def test_a_shortened_text_is_read_back(content: Any, part: int) -> None:
    record = line({**user("u1", None, content), "type": "assistant"})
    before = DIALECT.read([record])[0].parts
    after = DIALECT.read([line(json.loads(DIALECT.shorten(record, {part: '{"command":"s"}'})))])[0].parts
    assert [a for i, a in enumerate(before) if i != part] == [a for i, a in enumerate(after) if i != part]
    changed = after[part]
    assert (changed.text if isinstance(changed, Text) else changed) != before[part]
    assert "s" in str(changed)


def _features(corpus: Path) -> dict[str, dict[str, str]]:
    with (corpus / "FEATURES.tsv").open(encoding="utf-8") as file:
        return {row["path"]: row for row in csv.DictReader(file, delimiter="\t")}


def _is_boundary(value: Any) -> bool:
    return isinstance(value, dict) and value.get("subtype") == "compact_boundary"


def _sessions(corpus: Path) -> Iterable[Path]:
    return (p for p in sorted((corpus / "claude-code").rglob("*.json*")) if p.name not in NOT_A_SESSION)


def test_real_sessions_are_read_whole(corpus: Path) -> None:
    features = _features(corpus)
    for path in _sessions(corpus):
        transcript = from_file(DIALECT, path)
        name = str(path.relative_to(corpus))
        assert transcript.source() == path.read_bytes(), name
        assert len(transcript.messages) == len(transcript.records), name
        if name in COUNTED_OTHERWISE:
            continue
        seen = [
            sum(not message.is_meta for message in transcript.messages),
            sum(len(message.calls) for message in transcript.messages),
            sum(len(message.results) for message in transcript.messages),
        ]
        expected = [int(features[name][key]) for key in ("messages", "tool_calls", "tool_results")]
        assert seen == expected, name


def test_the_record_glued_after_another_is_read(corpus: Path) -> None:
    path = "claude-code/entireio+cli/2026-01-22-48f428f9-72d8-40b2-9594-953019809473.jsonl"
    transcript = from_file(DIALECT, corpus / path)
    assert sum(not message.is_meta for message in transcript.messages) == 1 + int(_features(corpus)[path]["messages"])


def test_real_sessions_can_be_compacted_anywhere(corpus: Path) -> None:
    for path in _sessions(corpus):
        transcript = from_file(DIALECT, path)
        count = len(transcript.records)
        for start, stop in ((0, count // 2), (count // 4, 3 * count // 4), (count // 3, count)):
            last_mark = max((i for i, r in enumerate(transcript.records) if _is_boundary(r.value)), default=-1)
            if stop == start or last_mark >= stop:
                continue
            after = compacted(DIALECT, transcript, start, stop, (SUMMARY, ACKNOWLEDGEMENT))
            found = [message for message in after.messages if SUMMARY.text in message.text]
            assert len(found) == 1, path
            assert not found[0].superseded, path


def test_real_boundaries_supersede_what_is_before_them(corpus_train: Path) -> None:
    count = 0
    for path in sorted(corpus_train.rglob("*.jsonl.gz"))[:20]:
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        transcript = opened(DIALECT, list(read_records(lines, str(path))))
        marks = [i for i, r in enumerate(transcript.records) if r.value.get("subtype") == "compact_boundary"]
        last = marks[-1] if marks else 0
        conversation = [(i, message) for i, message in enumerate(transcript.messages) if not message.is_meta]
        assert all(message.superseded == (i < last) for i, message in conversation), path
        count += len(marks)
    assert count


def test_the_samples_are_sessions() -> None:
    long = from_file(DIALECT, SAMPLES / "claude-code.jsonl")
    assert len(long.source()) > 40_000
    assert all(DIALECT.score(record.value) for record in long.records)
    again = from_file(DIALECT, SAMPLES / "claude-code-compacted.jsonl")
    assert any(message.summary and message.summary.origin == "claude-code" for message in again.messages)
    assert any(message.superseded for message in again.messages)
    for transcript in (long, again):
        calls = {call.id for message in transcript.messages for call in message.calls}
        assert calls == {result.id for message in transcript.messages for result in message.results}
        assert client_path(transcript)


def test_an_insertion_by_a_system_is_the_users_in_a_session() -> None:
    item = Insertion(role=Role.SYSTEM, text="S", is_summary=True)
    after = compacted(DIALECT, made(DIALECT, chain(3)), 4, 8, (item,))
    assert after.records[4].value["type"] == "user"


def test_what_a_client_repeats_for_its_own_screen_is_let_go_and_stays_in_the_bytes() -> None:
    answered = user("u3", "a2", result("c1", "1 passed"), toolUseResult={"stdout": "1 passed", "stderr": ""})
    asked = [user("u1", None, "Run it."), answer("a2", "u1", use("c1", command="pytest"), "m1")]
    [session] = open_transcripts(map(line, (*asked, answered)))
    assert session.records[2].value == {key: value for key, value in answered.items() if key != "toolUseResult"}
    assert b"toolUseResult" in session.records[2].raw


def test_what_links_to_what_is_worked_out_once_to_read_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    made_of: list[int] = []

    def counted(values: Sequence[Any]) -> claude_code.Tree:
        made_of.append(len(values))
        return claude_tree.Tree(values)

    monkeypatch.setattr(claude_code, "Tree", counted)
    [session] = open_transcripts(map(line, chain(3)))
    assert session.model == "claude-opus-4-6"
    assert made_of == [len(session.records)]


def test_a_prompt_is_heard_though_notes_of_tasks_wait_in_the_queue_before_it() -> None:
    note = '{"task_id":"b1","tool_use_id":"t","description":"Run the tests","task_type":"local_bash"}'
    transcript = working(queue("enqueue", note), queue("enqueue", "and the page too"), queue("remove"))
    spoken = [user_text(message) for message in transcript.messages if is_user_words(message)]
    assert spoken == ["question 0", "and the page too"]


def test_a_prompt_that_waited_since_before_the_last_answer_is_known_to_have_waited() -> None:
    ahead = [
        *chain(1)[:-1],
        queue("enqueue", "the docs too"),
        chain(1)[-1],
        queue("dequeue"),
        user("u9", "r3", "the docs too"),
    ]
    later = [*chain(1), queue("enqueue", "the docs too"), queue("dequeue"), user("u9", "r3", "the docs too")]
    assert [message.was_waiting for message in made(DIALECT, ahead).messages][-1] is True
    assert not any(message.was_waiting for message in made(DIALECT, later).messages)


def unlinked(turns: int, keys: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Records without a tree, as shared sessions and wrappers have them, with these keys of their envelope."""
    return [
        {key: value[key] for key in ("type", "message", "timestamp", *keys)}
        for number in range(turns)
        for value in (
            user(f"u{number}", None, f"ask {number}"),
            answer(f"a{number}", None, text(f"said {number}"), "m"),
        )
    ]


@pytest.mark.parametrize("keys", [(), ("uuid",), ("sessionId", "uuid")])
@pytest.mark.parametrize(("head", "tail"), [(0, 0), (0, 1), (0, 2), (0, 4), (1, 0), (1, 1), (2, 1), (2, 4)])
def test_a_summary_among_records_without_parents_is_read_back_with_all_that_stays(
    head: int, tail: int, keys: tuple[str, ...]
) -> None:
    transcript = made(DIALECT, unlinked(6, keys))
    words = [word for message in transcript.messages for word in [message.text]]
    after = compacted(DIALECT, transcript, head, 12 - tail)
    assert shown(after) == [*words[:head], SUMMARY.text, *words[12 - tail :]]
    assert [message.summary is not None for message in after.messages].count(True) == 1
    assert not any("parentUuid" in record.value for record in after.records)
    again = compacted(DIALECT, after, head, len(after.records) - max(tail - 1, 0), (SUMMARY, ACKNOWLEDGEMENT))
    assert shown(again) == [*words[:head], SUMMARY.text, ACKNOWLEDGEMENT.text, *words[12 - max(tail - 1, 0) :]]


def test_what_was_written_into_records_without_parents_before_is_still_read() -> None:
    marks = {"uuid": "s", "parentUuid": "u0", "isCompactSummary": True}
    earlier = {**user("s", None, "Summary:\nearlier work"), **marks}
    assert shown(made(DIALECT, [earlier, unlinked(1)[1]])) == ["Summary:\nearlier work", "said 0"]


def test_nothing_is_appended_to_records_without_parents() -> None:
    transcript = made(DIALECT, unlinked(6))
    with pytest.raises(UsageError, match="name no parents"):
        DIALECT.append(transcript, InsertionPoint(before=(), after=(10, 11)), (SUMMARY,), 100)


def test_the_size_stands_in_the_last_answer_that_counts_tokens() -> None:
    asked, said = user("u1", None, "q"), answer("a1", "u1", text("yes"), "msg_1")
    failed = answer("a2", "a1", text("API Error: Connection error."), "msg_2")
    said["message"]["usage"] = {"input_tokens": 900_000, "output_tokens": 5}
    failed["message"] |= {"model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}}
    transcript = made(DIALECT, [asked, said, failed])
    assert DIALECT.counters(transcript.records, range(3)) == {1: 900_005}
