from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from made_sessions import ACKNOWLEDGEMENT, SUMMARY, compacted, from_file, line, made, opened, shown

from compactor_cli.formats.registry import InsertionPoint
from compactor_cli.formats.summary_first import PI
from compactor_cli.model.transcript import Role, Transcript
from compactor_cli.read.jsonl import read_records

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
HEADER = {"type": "session", "version": 3, "id": "S", "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/w"}


def at(n: int) -> str:
    return f"2026-03-01T10:00:{n:02d}.000Z"


def entry(n: int, kind: str, **more: Any) -> dict[str, Any]:
    parent = f"e{n - 1}" if n else None
    return {"type": kind, "id": f"e{n}", "parentId": parent, "timestamp": at(n), **more}


def said(n: int, role: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return entry(n, "message", message={"role": role, "content": content, **more})


def call(number: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": number, "name": "bash", "arguments": arguments}


def chain(turns: int) -> list[dict[str, Any]]:
    values = [entry(0, "model_change", provider="p", modelId="chosen")]
    for turn in range(turns):
        n = 1 + 4 * turn
        usage = {"input": 900, "output": 100, "totalTokens": 1000}
        source = {"api": "a", "provider": "p", "model": "answering", "usage": usage}
        values += [
            said(n, "user", f"question {turn}"),
            said(n + 1, "assistant", f"look {turn}", call(f"c{turn}", command="ls"), **source),
            said(n + 2, "toolResult", f"output {turn}", toolCallId=f"c{turn}", toolName="bash", isError=turn == 1),
            said(n + 3, "assistant", f"answer {turn}", **source),
        ]
    return [HEADER, *values]


def without_ids(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [values[0], *({k: v for k, v in value.items() if k not in ("id", "parentId")} for value in values[1:])]


def compaction(n: int, words: str, **more: Any) -> dict[str, Any]:
    return entry(n, "compaction", summary=words, tokensBefore=9, **more)


def client_path(transcript: Transcript) -> list[str]:
    entries = {record.value["id"]: record.value for record in transcript.records if "parentId" in record.value}
    at: str | None = list(entries)[-1]
    path = []
    while at is not None:
        assert at in entries, f"dangling {at}"
        path.append(at)
        at = entries[at]["parentId"]
    return path[::-1]


def test_entries_are_messages_and_the_rest_is_meta() -> None:
    transcript = made(PI, chain(2))
    assert [message.role for message in transcript.messages[:6]] == [
        *(Role.META, Role.META),
        *(Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT),
    ]
    _, _, question, look, output, _, _, _, failed, _ = transcript.messages
    assert question.text == "question 0"
    assert (look.text, look.calls[0].id, look.calls[0].arguments) == ("look 0", "c0", {"command": "ls"})
    assert (output.results[0].id, output.results[0].name, output.results[0].text) == ("c0", "bash", "output 0")
    assert [message.results[0].is_error for message in (output, failed)] == [False, True]
    assert transcript.model == "answering"
    assert made(PI, chain(0)).model == "chosen"


def test_other_entries() -> None:
    shell = {"role": "bashExecution", "command": "make", "output": "ok", "exitCode": 0}
    values = [
        HEADER,
        entry(0, "message", message=shell),
        entry(1, "message", message={**shell, "excludeFromContext": True}),
        entry(2, "custom_message", content="from an extension", display=True),
        entry(3, "custom", data={}),
        entry(4, "branch_summary", summary="what the branch did", fromId="e0"),
        entry(5, "thinking_level_change", thinkingLevel="off"),
        entry(6, "message", message={"role": "novel", "content": "x"}),
        entry(7, "message", message="broken"),
        "a string",
    ]
    transcript = made(PI, values)
    assert shown(transcript) == ["Ran `make`\nok", "from an extension", "what the branch did"]
    assert [message.is_meta for message in transcript.messages] == [
        *(True, False, True, False, True, False),
        *(True, True, True, True),
    ]


def test_an_image_in_a_result_is_counted() -> None:
    value = said(0, "toolResult", "seen", {"type": "image", "data": "x", "mimeType": "image/png"}, toolCallId="c")
    (result,) = made(PI, [HEADER, value]).messages[1].results
    assert (result.text, result.media_count) == ("seen", 1)


def test_a_native_compaction_replaces_what_is_before_its_first_kept_entry() -> None:
    values = [*chain(2), compaction(9, "earlier work", firstKeptEntryId="e5"), said(10, "user", "go on")]
    transcript = made(PI, values)
    words = shown(transcript)
    assert words[0] == "question 1"
    assert words[-2:] == ["earlier work", "go on"]
    assert "question 0" not in words
    found = transcript.messages[10].summary
    assert found is not None
    assert (found.origin, found.text) == ("pi", "earlier work")


def test_an_unknown_first_kept_entry_keeps_nothing_before() -> None:
    values = [*chain(1), compaction(5, "earlier work", firstKeptEntryId="gone"), said(6, "user", "go on")]
    assert shown(made(PI, values)) == ["earlier work", "go on"]


def test_only_the_last_compaction_counts() -> None:
    values = [*chain(1), compaction(5, "one", firstKeptEntryId="e1"), said(6, "user", "middle")]
    values += [compaction(7, "two", firstKeptEntryId="e4"), said(8, "user", "last")]
    assert shown(made(PI, values)) == ["answer 0", "middle", "two", "last"]


def test_entries_without_ids_are_sent_in_order_from_an_index_that_counts_the_header() -> None:
    old = without_ids([*chain(2), compaction(9, "earlier work", firstKeptEntryIndex=6), said(10, "user", "go on")])
    words = shown(made(PI, old))
    assert words[0] == "question 1"
    assert words[-2:] == ["earlier work", "go on"]


def test_a_branch_that_was_left_is_superseded_and_a_broken_path_is_not_trusted() -> None:
    left = {**said(5, "user", "wrong way"), "parentId": "e4"}
    right = {**said(6, "user", "right way"), "parentId": "e4"}
    assert "wrong way" not in shown(made(PI, [*chain(1), left, right]))
    broken = {**right, "parentId": "gone"}
    assert shown(made(PI, [*chain(1), left, broken]))[-2:] == ["wrong way", "right way"]


def glued(*values: dict[str, Any]) -> list[bytes]:
    """Lines of a session of which the last holds the last two values."""
    lines = [json.dumps(value).encode() + b"\n" for value in values]
    return [*lines[:-2], lines[-2].rstrip() + lines[-1]]


def test_what_the_client_cannot_read_decides_nothing() -> None:
    """pi passes over a line with two objects: the compaction in it is not in force."""
    lost = [said(9, "user", "lost"), compaction(10, "nearly nothing", firstKeptEntryId="e9")]
    values = [*chain(2), *lost]
    transcript = opened(PI, list(read_records(glued(*values), "x")))
    assert transcript.source() == b"".join(glued(*values))
    assert shown(transcript) == shown(made(PI, values[:-2]))
    assert [message.superseded for message in transcript.messages[-2:]] == [True, True]

    cut = InsertionPoint(before=tuple(range(5)), after=tuple(range(5, len(values))))
    newest = values[-3]["id"]
    assert json.loads(PI.append(transcript, cut, [SUMMARY], 0)[0])["parentId"] == newest


def test_entries_hung_on_one_that_the_client_passes_over_stay_together() -> None:
    values = chain(2)
    lines = [json.dumps(value).encode() + b"\n" for value in values]
    lines[3:5] = [lines[3].rstrip() + lines[4]]
    transcript = opened(PI, list(read_records(lines, "x")))
    assert not any(message.superseded for message in transcript.messages)


def test_a_summary_takes_the_place_of_the_entry_that_the_tail_hangs_on() -> None:
    transcript = made(PI, chain(4))
    after = compacted(PI, transcript, 6, 14)
    new = after.records[6].value
    assert (new["type"], new["id"], new["parentId"], new["firstKeptEntryId"]) == ("compaction", "e12", "e4", "e1")
    assert (new["summary"], new["tokensBefore"], new["timestamp"]) == (SUMMARY.text, 1000, at(12))
    assert client_path(after) == ["e0", "e1", "e2", "e3", "e4", "e12", "e13", "e14", "e15", "e16"]
    assert shown(after)[0] == "question 0"
    assert not any(message.superseded for message in after.messages)
    assert all(a is b for a, b in zip(after.records[7:], transcript.records[14:], strict=True))


def test_without_a_head_the_tail_is_what_is_kept() -> None:
    after = compacted(PI, made(PI, chain(3)), 1, 10)
    new = after.records[1].value
    assert (new["id"], new["parentId"], new["firstKeptEntryId"]) == ("e8", None, "e9")
    assert shown(after)[:2] == [SUMMARY.text, "question 2"]


def test_an_acknowledgement_stands_between_summary_and_tail() -> None:
    after = compacted(PI, made(PI, chain(3)), 6, 10, (SUMMARY, ACKNOWLEDGEMENT))
    first, second = after.records[6].value, after.records[7].value
    assert (first["parentId"], second["parentId"], second["id"]) == ("e4", first["id"], "e8")
    assert (second["message"]["role"], second["message"]["model"]) == ("assistant", "answering")
    assert client_path(after)[4:8] == ["e4", first["id"], "e8", "e9"]


def test_a_second_compaction_keeps_the_head_and_replaces_the_first() -> None:
    once = compacted(PI, made(PI, chain(4)), 6, 10)
    twice = compacted(PI, once, 6, 11)
    assert client_path(twice) == ["e0", "e1", "e2", "e3", "e4", "e12", "e13", "e14", "e15", "e16"]
    assert sum(message.summary is not None for message in twice.messages) == 1


def test_a_session_without_ids_gets_an_index() -> None:
    transcript = made(PI, without_ids(chain(3)))
    after = compacted(PI, transcript, 6, 10)
    assert list(after.records[6].value) == ["type", "timestamp", "summary", "firstKeptEntryIndex", "tokensBefore"]
    assert after.records[6].value["firstKeptEntryIndex"] == 2
    assert shown(after) == [*shown(transcript)[:5], SUMMARY.text, *shown(transcript)[-5:]]
    bare = compacted(PI, transcript, 1, 10)
    assert bare.records[bare.records[1].value["firstKeptEntryIndex"]].value["message"]["role"] == "user"
    assert shown(bare) == [SUMMARY.text, *shown(transcript)[-5:]]


def test_insertions_are_the_same_every_time() -> None:
    runs = [compacted(PI, made(PI, chain(3)), 6, 14).source() for _ in range(2)]
    assert runs[0] == runs[1]


def test_lines_are_scored() -> None:
    assert PI.score(HEADER) == 3
    assert PI.score(said(1, "user", "x")) == 3
    assert PI.score({"type": "message", "timestamp": "t", "message": {"role": "user", "content": []}}) == 2
    assert PI.score({"type": "message", "role": "user", "content": []}) == 0
    assert PI.score({"role": "user", "content": "x"}) == 0
    assert PI.starts(HEADER)
    assert not PI.starts(said(1, "user", "x"))


@pytest.mark.parametrize(
    ("message", "part", "key", "expected"),
    [
        ({"role": "user", "content": "long"}, 0, "content", "s"),
        (
            {"role": "toolResult", "content": [{"type": "text", "text": "long"}]},
            0,
            "content",
            [{"type": "text", "text": "s"}],
        ),
        ({"role": "bashExecution", "command": "x", "output": "long"}, 1, "output", "s"),
    ],
)
def test_a_shortened_record_keeps_its_shape(message: Any, part: int, key: str, expected: Any) -> None:
    record = line(entry(1, "message", message=message))
    short = json.loads(PI.shorten(record, {part: "s"}))
    assert short == {**record.value, "message": {**message, key: expected}}


def test_shortened_arguments_stay_an_object() -> None:
    record = line(said(1, "assistant", "words", call("c", command="long")))
    (_, shortened) = PI.read([line(json.loads(PI.shorten(record, {1: '{"command":"s"}'})))])[0].parts
    assert getattr(shortened, "arguments", None) == {"command": "s"}


def test_real_sessions_are_read_whole(corpus: Path) -> None:
    with (corpus / "FEATURES.tsv").open(encoding="utf-8") as file:
        features = {row["path"]: row for row in csv.DictReader(file, delimiter="\t")}
    for path in sorted((corpus / "pi-session").rglob("*.jsonl")):
        transcript = from_file(PI, path)
        name = str(path.relative_to(corpus))
        assert transcript.source() == path.read_bytes(), name
        assert len(transcript.messages) == len(transcript.records), name
        conversation = [message for message in transcript.messages if not message.is_meta and message.summary is None]
        seen = [len(conversation), sum(len(m.calls) for m in conversation), sum(len(m.results) for m in conversation)]
        assert seen == [int(features[name][key]) for key in ("messages", "tool_calls", "tool_results")], name


def test_the_sample_is_a_session() -> None:
    transcript = from_file(PI, SAMPLES / "pi-session.jsonl")
    assert all(PI.score(record.value) == 3 for record in transcript.records)
    assert not any(message.superseded for message in transcript.messages)
    calls = {call.id for message in transcript.messages for call in message.calls}
    assert calls == {result.id for message in transcript.messages for result in message.results}
