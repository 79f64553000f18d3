"""Kimi CLI's contexts and Kimi Code's logs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from made_sessions import ACKNOWLEDGEMENT, SUMMARY, compacted, made, shown
from opening import open_values

from compactor_cli.formats import kimi
from compactor_cli.formats.registry import InsertionPoint
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import UnknownShape
from compactor_cli.model.transcript import Role

WIRE = kimi.KIMI_WIRE
CONTEXT = kimi.KIMI_CLI


def timed(*values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**value, "agentId": "main", "time": 1_000 + i} for i, value in enumerate(values)]


def user(text: str, kind: str = "user") -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": text}], "toolCalls": [], "origin": {"kind": kind}}
    return {"type": "context.append_message", "message": message}


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": {"type": kind, **more}}


def step(key: str, text: str = "", call: str = "") -> list[dict[str, Any]]:
    said = [event("content.part", stepUuid=key, part={"type": "text", "text": text})] if text else []
    asked = [
        event("tool.call", stepUuid=key, toolCallId=call, name="Bash", args={"command": "ls"}),
        event("tool.result", parentUuid=call, toolCallId=call, result={"output": f"out {call}"}),
    ]
    return [event("step.begin", uuid=key), *said, *(asked if call else []), event("step.end", uuid=key)]


def turn(number: int) -> list[dict[str, Any]]:
    n = str(number)
    prompt = {"type": "turn.prompt", "input": [{"type": "text", "text": f"q{n}"}]}
    return [prompt, user(f"q{n}"), *step(f"s{n}a", call=f"c{n}"), *step(f"s{n}b", text=f"r{n}")]


METADATA = {"type": "metadata", "protocol_version": "1.5"}
LENGTH = len(turn(0))


def test_a_step_of_the_model_is_one_message_over_several_events() -> None:
    transcript = made(WIRE, timed(METADATA, *turn(0)))
    assert shown(transcript) == ["q0", "Bash({'command': 'ls'})", "= out c0", "r0"]
    exchanges = group(transcript.messages).exchanges
    assert (3, 4, 5, 6) in exchanges
    assert (7, 8, 9) in exchanges


def test_a_compaction_replaces_a_number_of_messages() -> None:
    compaction = {"type": "context.apply_compaction", "summary": "S", "compactedCount": 4}
    transcript = made(WIRE, timed(METADATA, *turn(0), *turn(1), compaction))
    assert shown(transcript) == ["q1", "Bash({'command': 'ls'})", "= out c1", "r1", "S"]
    ignored = made(WIRE, timed(METADATA, *turn(0), {"type": "context.apply_compaction", "summary": "S"}))
    assert "q0" in shown(ignored)


def test_a_compaction_of_the_client_keeps_the_users_words() -> None:
    compaction = {
        "type": "context.apply_compaction",
        "summary": "raw",
        "contextSummary": "S",
        "compactedCount": 9,
        "keptUserMessageCount": 1,
    }
    transcript = made(WIRE, timed(METADATA, *turn(0), *turn(1), user("<system-reminder>", "injection"), compaction))
    assert shown(transcript) == ["q1", "S"]


def test_an_origin_of_an_unknown_shape_is_the_users() -> None:
    odd = user("q")
    odd["message"]["origin"]["kind"] = {"name": "hook"}
    transcript = made(WIRE, timed(METADATA, odd))
    assert shown(transcript) == ["q"]
    assert transcript.messages[1].own_words is None


def test_an_undone_turn_is_not_sent() -> None:
    transcript = made(WIRE, timed(METADATA, *turn(0), *turn(1), {"type": "context.undo", "count": 1}, *turn(2)))
    assert [word for word in shown(transcript) if word.startswith("q")] == ["q0", "q2"]


def test_a_rewritten_log_loses_its_counters_and_the_prompts_of_what_is_gone() -> None:
    counter = {"type": "token_counting.measured", "length": 4, "tokens": 900_000}
    copy = {"type": "agent.message.appended", "message": {}}
    transcript = made(WIRE, timed(METADATA, *turn(0), counter, copy, *turn(1)))
    staying = [*range(LENGTH + 4)]
    assert WIRE.outdated(transcript.records, staying) == {LENGTH + 1, LENGTH + 2, LENGTH + 3}


def test_the_client_takes_the_summary_for_its_own() -> None:
    transcript = made(WIRE, timed(METADATA, *turn(0), *turn(1), *turn(2)))
    after = compacted(WIRE, transcript, 1 + LENGTH, 1 + 2 * LENGTH, (SUMMARY, ACKNOWLEDGEMENT))
    summary, answer = after.records[1 + LENGTH].value, after.records[2 + LENGTH].value
    assert summary["message"]["origin"] == {"kind": "compaction_summary"}
    assert (summary["agentId"], answer["message"]["role"]) == ("main", "assistant")
    assert after.messages[1 + LENGTH].summary is not None


def test_appended_the_count_is_of_messages_and_the_client_counts_anew() -> None:
    counter = {"type": "token_counting.measured", "length": 8, "tokens": 900_000}
    transcript = made(WIRE, timed(METADATA, *turn(0), *turn(1), counter))
    tail = tuple(range(2 + LENGTH, 1 + 2 * LENGTH))
    compaction, base = map(json.loads, WIRE.append(transcript, InsertionPoint(before=(), after=tail), (SUMMARY,), 70))
    assert (compaction["compactedCount"], compaction["tokensAfter"]) == (4, 70)
    assert (base["type"], base["length"], base["tokens"]) == ("token_counting.rebased", 5, 70)
    after = made(WIRE, [*(record.value for record in transcript.records), compaction, base])
    assert shown(after) == ["q1", "Bash({'command': 'ls'})", "= out c1", "r1", SUMMARY.text]


def count_before(values: list[dict[str, Any]], start: int) -> int:
    """The number of messages that an appended compaction replaces, if the tail begins at this record."""
    transcript = made(WIRE, timed(*values))
    tail = tuple(range(start, len(values)))
    appended = WIRE.append(transcript, InsertionPoint(before=(), after=tail), (SUMMARY,), 70)
    return int(json.loads(appended[0])["compactedCount"])


def test_an_interrupted_step_that_said_nothing_counts_no_more_when_the_next_begins() -> None:
    broken = [event("step.begin", uuid="b"), event("step.end", uuid="b", finishReason="interrupted")]
    values = [METADATA, user("q"), *broken, user("why?")]
    assert count_before(values, 4) == 2
    values += step("s", text="r")
    assert count_before(values, 4) == 1
    assert shown(made(WIRE, timed(*values))) == ["q", "why?", "r"]


def test_the_client_answers_a_call_that_was_broken_off() -> None:
    call = event("tool.call", stepUuid="b", toolCallId="c", name="Bash", args={})
    late = event("tool.result", toolCallId="c", result={"output": "late"})
    broken = [event("step.begin", uuid="b"), call, event("step.end", uuid="b", finishReason="interrupted")]
    values = [METADATA, user("q"), *broken, user("why?"), *step("s", text="r"), late, user("more")]
    transcript = made(WIRE, timed(*values))
    assert shown(transcript) == ["q", "Bash({})", "why?", "r", "more"]
    assert count_before(values, 10) == 5, "q, the call, the client's answer, why?, r"


def test_words_that_come_while_a_call_runs_stand_after_its_result() -> None:
    asked = event("tool.call", stepUuid="s", toolCallId="c", name="Bash", args={})
    answer = event("tool.result", toolCallId="c", result={"output": "out"})
    running = [event("step.begin", uuid="s"), asked, user("hurry"), answer, event("step.end", uuid="s")]
    values = [METADATA, user("q"), *running, *step("t", text="r")]
    folded = kimi.Folded(timed(*values))
    assert folded.history == [1, 2, 5, 4, 7]


def test_the_client_counts_what_it_writes_next_to_a_summary_of_its_own() -> None:
    kept = {"compactedCount": 8, "keptUserMessageCount": 2}
    own = {"type": "context.apply_compaction", "summary": "raw", "contextSummary": "S", **kept}
    values = [METADATA, *turn(0), *turn(1), own, *turn(2), *turn(3)]
    start = len(values) - LENGTH + 1
    assert count_before(values, start) == 8, "q0, q1, S, the note to go on, and four of the turn"
    own["keptHeadUserMessageCount"] = 1
    assert count_before(values, start) == 9, "and a note that some are left out"


def test_a_context_has_a_system_prompt_and_bookkeeping_of_its_own() -> None:
    values = [
        {"role": "_system_prompt", "content": "rules"},
        {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "think", "think": "…"}, {"type": "text", "text": "r"}]},
        {"role": "_usage", "token_count": 900_000},
    ]
    transcript = made(CONTEXT, values)
    roles = [message.role for message in transcript.messages]
    assert roles == [Role.SYSTEM, Role.META, Role.USER, Role.ASSISTANT, Role.META]
    assert CONTEXT.counters(transcript.records, range(5)) == {4: 900_000}
    assert json.loads(CONTEXT.recount(transcript.records[4], 9)) == {"role": "_usage", "token_count": 9}
    after = compacted(CONTEXT, transcript, 2, 3)
    assert [part["text"] for part in after.records[2].value["content"]][1] == SUMMARY.text
    assert after.messages[2].summary is not None


def test_events_without_a_time_are_none_of_kimis() -> None:
    events = [{"type": "run.started", "run": "t"}, {"type": "turn.started"}]
    with pytest.raises(UnknownShape):
        open_values(*events, {"type": "step.completed", "step": {"type": "agent_message", "text": "Done."}})
