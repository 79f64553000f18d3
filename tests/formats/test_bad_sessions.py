"""Sessions that are not as they should be, read as the client reads them: each case was resumed by Claude Code
2.1.329, and what it then sent is what is expected here; none is made worse by a compaction."""

from __future__ import annotations

import json
from typing import Any

import pytest
from made_sessions import made, opened

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import compact_transcript
from compactor_cli.formats.claude_code import CLAUDE_CODE
from compactor_cli.formats.clients import find_problems, sent
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.plan import Mode
from compactor_cli.model.settings import Budget, Keep, Settings, Size
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import counter_for
from compactor_cli.read.jsonl import OnInvalid, read_records

Value = dict[str, Any]


def said(number: int, parent: int, words: str, at: int = 0, **more: Any) -> Value:
    """The record of this number: questions of the user are odd, answers even."""
    role = "user" if number % 2 else "assistant"
    content: Any = words if role == "user" else [{"type": "text", "text": words}]
    answer = {"id": f"msg_{number}", "model": "claude-opus-4-6"} if role == "assistant" else {}
    return {
        "parentUuid": f"u{parent}" if parent else None,
        "isSidechain": False,
        "sessionId": "S",
        "type": role,
        "message": {**answer, "role": role, "content": content},
        "uuid": f"u{number}",
        "timestamp": f"2026-01-01T00:00:{at or number:02d}.000Z",
        **more,
    }


def compaction(number: int, named: tuple[int, ...] = (), logical: int = 6) -> list[Value]:
    """A boundary and its summary, of these numbers."""
    uuids = [f"u{one}" for one in named]
    held = {"preservedMessages": {"anchorUuid": f"u{number + 2}", "uuids": uuids, "allUuids": uuids}} if named else {}
    mark = said(number, 0, "") | {"type": "system", "subtype": "compact_boundary", "compactMetadata": held}
    del mark["message"]
    return [
        mark | {"logicalParentUuid": f"u{logical}"},
        said(number + 2, number, "SUMMARY", isCompactSummary=True, isVisibleInTranscriptOnly=True),
    ]


BASE = [said(1, 0, "1"), *(said(i, i - 1, str(i)) for i in range(2, 7))]
# What is odd, the records, and what the client sends.
CASES: dict[str, tuple[list[Value], str]] = {
    "nothing": (BASE, "1 2 3 4 5 6"),
    "a copy at the end": ([*BASE, BASE[2]], "1 2 3 4 5 6"),
    "another version in place": ([*BASE[:3], said(3, 2, "3b"), *BASE[3:]], "1 2 3b 4 5 6"),
    "another version at the end": ([*BASE, said(3, 2, "3b")], "1 2 3b 4 5 6"),
    "another version of the newest": ([*BASE, said(6, 5, "6b")], "1 2 3 4 5 6b"),
    "another version is named": ([*BASE, said(3, 2, "3b", at=7), *compaction(9, (3,))], "SUMMARY 3b"),
    "two roots": ([*BASE[:4], said(5, 0, "5"), BASE[5]], "5 6"),
    "two roots, the newest first": ([said(7, 0, "7", at=50), said(8, 7, "8", at=51), *BASE[:4]], "1 2 3 4"),
    "two branches": ([*BASE, said(8, 3, "8"), said(9, 8, "9")], "1 2 3 8 9"),
    "a missing parent": ([*BASE[:2], *BASE[3:]], "1 2 4 5 6"),
    "two missing parents": ([*BASE[:2], BASE[3], BASE[5]], "1 2 4 6"),
    "a missing parent behind a branch": (
        [*BASE[:4], said(7, 2, "7"), said(8, 7, "8"), said(9, 77, "9"), said(10, 9, "10")],
        "1 2 7 8 9 10",
    ),
    "a missing parent, and all before it later": (
        [*BASE[:4], said(7, 0, "7", at=40), said(8, 7, "8", at=41), said(9, 77, "9", at=20), said(10, 9, "10", at=21)],
        "9 10",
    ),
    "a boundary off the chain": ([*BASE[:4], *compaction(7, (), 4), *BASE[4:]], "1 2 3 4 5 6"),
    "a boundary that names what is there": ([*BASE, *compaction(7, (5, 6))], "SUMMARY 5 6"),
    "a boundary that names what is not there": ([*BASE, *compaction(7, (55, 66))], "SUMMARY"),
    "a boundary of another session": ([*BASE, *compaction(7, (), 99)], "SUMMARY"),
}
SOUND = ("nothing", "a copy at the end", "a boundary that names what is there", "a boundary of another session")
SETTINGS = Settings(
    keep=Keep(head_turns=1, head_tokens=400, tail_tokens=0, tail_turns=1), budget=Budget(size=Size(tokens=300))
)


def shown(transcript: Transcript) -> list[str]:
    return [transcript.messages[i].text for i in sent(transcript)]


@pytest.mark.parametrize("name", CASES)
def test_a_session_is_read_as_its_client_reads_it(name: str) -> None:
    values, expected = CASES[name]
    assert shown(made(CLAUDE_CODE, values)) == expected.split()


@pytest.mark.parametrize("name", CASES)
def test_what_is_odd_is_reported(name: str) -> None:
    found = find_problems(made(CLAUDE_CODE, CASES[name][0]))
    assert bool(found) == (name not in SOUND), found


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", CASES)
def test_a_compaction_makes_nothing_worse(name: str, mode: Mode) -> None:
    """Head and tail of what was sent are what is sent around the summary; nothing else is sent again."""
    transcript = made(CLAUDE_CODE, [_long(value) for value in CASES[name][0]])
    before = shown(transcript)
    done = compact_transcript(
        transcript, SETTINGS, counter=counter_for("auto", ""), summariser=Digest(), load_state=lambda _: None, mode=mode
    )
    (after,) = open_transcripts(read_records(done.output.splitlines(keepends=True), "after"), dialect="claude-code")
    kept = [text for text in shown(after) if "[compact/1" not in text]
    assert [text for text in before if text in kept] == kept
    assert len(find_problems(after)) <= len(find_problems(transcript))
    # A version at the end of the file is sent in the middle, but is in the tail by its place in the file.
    if done.changed and name != "another version at the end":
        assert kept[-1:] == before[-1:] or before[-1].startswith("SUMMARY")


def _long(value: Value) -> Value:
    """The record with enough words that a summary pays."""
    if "message" not in value:
        return value
    content = value["message"]["content"]
    words = " ".join(f"word{i}" for i in range(300))
    text = content if isinstance(content, str) else content[0]["text"]
    longer = f"{text} {words}"
    new = longer if isinstance(content, str) else [{"type": "text", "text": longer}]
    return {**value, "message": {**value["message"], "content": new}}


def test_glued_records_are_both_read_and_reported() -> None:
    lines = [json.dumps(value).encode() + b"\n" for value in BASE]
    lines[1] = lines[1].rstrip() + lines[2]
    del lines[2]
    transcript = opened(CLAUDE_CODE, list(read_records(lines, "glued.jsonl")))
    assert shown(transcript) == list("123456")
    assert [str(doubt.place) for doubt in find_problems(transcript) if "on its line" in doubt.what] == ["glued.jsonl:2"]


def test_a_torn_boundary_is_as_if_it_were_not_there() -> None:
    torn = json.dumps(compaction(7)[0]).encode()[:150]
    lines = [*(json.dumps(value).encode() + b"\n" for value in BASE), torn]
    transcript = opened(CLAUDE_CODE, list(read_records(lines, "torn.jsonl", OnInvalid.KEEP)))
    assert shown(transcript) == list("123456")


def test_parallel_calls_off_the_chain_are_sent() -> None:
    def call(number: int, parent: int) -> Value:
        value = said(number, parent, "")
        value["message"] = {"id": "msg_p", "role": "assistant", "content": []}
        value["message"]["content"] = [{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}]
        return value | {"type": "assistant"}

    def answer(number: int, parent: int, key: int) -> Value:
        content = [{"type": "tool_result", "tool_use_id": f"t{key}", "content": f"result {key}"}]
        return said(number, parent, "") | {"type": "user", "message": {"role": "user", "content": content}}

    values = [BASE[0], call(2, 1), call(3, 2), answer(4, 3, 3), answer(5, 2, 2), said(6, 5, "6"), said(7, 6, "7")]
    transcript = made(CLAUDE_CODE, values)
    results = [part.text for i in sent(transcript) for part in transcript.messages[i].results]
    assert sorted(results) == ["result 2", "result 3"]


def test_records_that_name_no_parent_are_a_list() -> None:
    loose = [{**value, "parentUuid": None} for value in BASE]
    assert shown(made(CLAUDE_CODE, loose)) == list("123456")


@pytest.mark.parametrize("lost", [1, 2])
def test_a_call_in_the_tail_stays_next_to_a_line_that_is_not_json_and_may_hold_its_answer(lost: int) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    half = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "done"}]
    half[lost - 1] = {"role": "?"}
    words = " ".join(f"word{i}" for i in range(900))
    asked = [{"role": role, "content": words} for role in ("user", "assistant", "user", "assistant", "user")]
    lines = [json.dumps(value).encode() + b"\n" for value in (*asked, *half, {"role": "assistant", "content": "ok"})]
    lines[len(asked) + lost - 1] = b'{"torn\n'
    (transcript,) = open_transcripts(read_records(lines, "torn.jsonl", OnInvalid.KEEP))
    done = compact_transcript(
        transcript,
        Settings(target=Size(tokens=2_500), keep=Keep(head_turns=0, tail_turns=1)),
        counter=counter_for("auto", ""),
        summariser=Digest(),
        load_state=lambda name: None,
    )
    assert done.changed, done.report.reason
    assert done.output.splitlines(keepends=True)[-3:] == lines[-3:]
