from __future__ import annotations

import json
from typing import Any

import pytest
from compaction import LONG, compacted, round_trip, value_of
from opening import inserted, message, open_one, shortened

from compactor_cli.formats.clients import sent
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.registry import Refreshing, get
from compactor_cli.model.errors import InvalidLine
from compactor_cli.model.transcript import Media, Role, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.read.jsonl import read_records


def own_id(number: int) -> str:
    return f"msg_{number:012x}AbCdEfGhIjKlMn"


def user(number: int, *parts: Any) -> dict[str, Any]:
    model = {"providerID": "p", "modelID": "m"}
    known = {"id": own_id(number), "sessionID": "ses_1", "role": "user", "time": {"created": number}}
    return {"info": {**known, "agent": "build", "model": model}, "parts": list(parts)}


def answer(number: int, *parts: Any, **more: Any) -> dict[str, Any]:
    known = {"id": own_id(number), "sessionID": "ses_1", "role": "assistant", "time": {"created": number}}
    return {"info": {**known, "modelID": "m", "providerID": "p", "cost": 1, **more}, "parts": list(parts)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def tool(output: str, status: str = "completed", **more: Any) -> dict[str, Any]:
    state = {"status": status, "input": {"command": "ls"}, "output": output, **more}
    return {"type": "tool", "tool": "bash", "callID": "c1", "state": state}


def export(*messages: Any) -> dict[str, Any]:
    return {"info": {"id": "ses_1", "version": "1.18.33", "odd": 1}, "messages": list(messages)}


def test_parts() -> None:
    parts = (
        {"type": "step-start"},
        {"type": "reasoning", "text": "why"},
        text("I look."),
        text("hidden", ignored=True),
        tool("a.txt"),
        {"type": "file", "mime": "image/png", "url": "data:x"},
    )
    transcript = open_one(export(user(1, text("Saw.")), answer(2, *parts)))
    assert (transcript.dialect, transcript.model) == ("opencode", "m")
    assert transcript.messages[1].parts == (
        Thinking(text="why"),
        Text(text="I look."),
        ToolCall(id="c1", name="bash", arguments={"command": "ls"}),
        ToolResult(id="c1", text="a.txt", name="bash"),
        Media(kind="file", size_bytes=19),
    )


def test_results_of_tools_that_run_failed_or_were_cleared() -> None:
    assert not message("opencode", answer(1, tool("", "running"))).results
    failed = {"type": "tool", "tool": "t", "callID": "c", "state": {"status": "error", "input": {}, "error": "broke"}}
    assert message("opencode", answer(1, failed)).results == (
        ToolResult(id="c", text="broke", name="t", is_error=True),
    )
    cleared = message("opencode", answer(1, tool("long", time={"compacted": 5}))).results
    assert cleared[0].text == "[Old tool result content cleared]"
    assert cleared[0].pruned == "long"


def test_a_compaction_replaces_what_it_does_not_retain() -> None:
    asked, told = user(5, {"type": "compaction", "auto": False}), answer(6, text("Oak."), summary=True, finish="stop")
    told["info"]["parentID"] = own_id(5)
    conversation = [user(1, text("a")), answer(2, text("b")), user(3, text("c"))]
    gone = [found.superseded for found in open_one(export(*conversation, asked, told, user(7, text("d")))).messages]
    assert gone == [True, True, True, True, False, False]
    asked["parts"][0]["tail_start_id"] = own_id(3)
    gone = [found.superseded for found in open_one(export(*conversation, asked, told)).messages]
    assert gone == [True, True, False, True, False]
    del told["info"]["finish"]
    assert not any(found.superseded for found in open_one(export(*conversation, asked, told)).messages)


def test_a_summary_is_the_pair_that_the_client_writes() -> None:
    transcript = open_one(export(user(1, text("a")), *(answer(i, text("b")) for i in range(2, 8)), user(8, text("c"))))
    (asked, told, last) = inserted(transcript, 1, "So far.", "Understood.")
    assert asked["parts"][0]["type"] == "compaction"
    assert asked["parts"][0]["tail_start_id"] == own_id(1)
    assert told["info"]["summary"] is True
    assert told["info"]["finish"] == "stop"
    assert told["info"]["parentID"] == asked["info"]["id"]
    assert (told["parts"][0]["text"], last["parts"][0]["text"]) == ("So far.", "Understood.")


def test_new_ids_lie_between_their_neighbours() -> None:
    turns = [
        found for i in range(2, 26, 2) for found in (answer(i, text("I look."), tool(LONG)), user(i + 1, text("On.")))
    ]
    again = round_trip(export(user(1, text("Saw.")), *turns, answer(40, text("Done."))), "opencode", indent=2)
    value = value_of(again)
    ids = [found["info"]["id"] for found in value["messages"]]
    assert ids == sorted(set(ids))
    assert [found.role for found in again.messages].count(Role.META) == 1
    assert not any(found.superseded for found in again.messages if not found.is_meta)
    assert value["info"]["odd"] == 1


def test_an_output_is_shortened_in_its_state() -> None:
    assert shortened("opencode", answer(1, tool("long")), {1: "…"}) == answer(1, tool("…"))


def test_the_client_sends_the_summary_before_what_it_keeps_before_it() -> None:
    asked = user(3, {"type": "compaction", "auto": False, "tail_start_id": own_id(1)})
    said = answer(4, text("S"), parentID=own_id(3), mode="compaction", agent="compaction", summary=True, finish="stop")
    transcript = open_one(export(user(1, text("head")), answer(2, text("yes")), asked, said, user(5, text("tail"))))
    assert [transcript.messages[i].text for i in sent(transcript)] == ["S", "head", "yes", "tail"]


def test_the_counter_of_an_answer_without_parts_is_brought_in_line() -> None:
    transcript = open_one(export(user(1, text("Go.")), {"info": answer(2, tokens={"input": 900_000})["info"]}))
    dialect = get("opencode")
    assert isinstance(dialect, Refreshing)
    assert dialect.counters(transcript.records, (0, 1)) == {1: 900_000}
    assert json.loads(dialect.recount(transcript.records[1], 70))["info"]["tokens"]["input"] == 70


def test_the_exit_code_of_a_command_is_told_by_its_metadata() -> None:
    (result,) = message("opencode", answer(1, tool("1 failed", metadata={"exit": 1}))).results
    assert (result.exit_code, result.is_error) == (1, False)


def test_the_line_that_announces_an_export_stays_before_it() -> None:
    turns = [each for n in range(1, 13, 2) for each in (user(n, text(f"{n} {LONG}")), answer(n + 1, text(LONG)))]
    announced = b"Exporting session: ses_1\n"
    data = announced + json.dumps(export(*turns), indent=2).encode() + b"\n"
    (transcript,) = open_bytes(data)
    assert transcript.dialect == "opencode"
    assert transcript.source() == data
    done = compacted(transcript)
    assert done.output.startswith(announced + b"{")
    assert len(open_bytes(done.output)[0].records) < len(turns)
    with pytest.raises(InvalidLine):
        open_bytes(b"Exporting my session\n" + data)
    with pytest.raises(InvalidLine):
        open_bytes(data + announced)


def open_bytes(data: bytes) -> list[Transcript]:
    records = read_records(data.splitlines(keepends=True), "file.jsonl")
    return list(open_transcripts(records, prefix=records.prefix))
