"""What is removed from a conversation leaves the copies next to it as well, in documents that repeat it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from compaction import round_trip, value_of
from opening import shortened

from compactor_cli.formats.contents import LEFT_OUT, lines_between, scrubbed

TURNS = 16


def words(i: int) -> str:
    return "\n".join(f"Line {n} of part {i}: the board is planed along its grain." for n in range(25))


def swe_agent(version: str) -> dict[str, Any]:
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "You repair code.", "agent": "primary"},
        {"role": "user", "content": "Here is the issue.", "agent": "primary"},
    ]
    steps = []
    for i in range(TURNS):
        thought, action, told = f"Thinking about part {i} of this.", f"cat part_{i}.txt # and look", words(i)
        asked = {"query": [dict(message) for message in history]} if version == "query" else {}
        said = f"{thought}\n\n```\n{action}\n```"
        steps.append(
            {"action": action, "observation": told, "response": said, "state": "{}", "thought": thought, **asked}
        )
        history.append({"role": "assistant", "content": said, "thought": thought, "action": action, "agent": "primary"})
        history.append({"role": "user", "content": f"OBSERVATION:\n{told}", "agent": "primary"})
    return {"environment": "e", "trajectory": steps, "history": history, "info": {"submission": words(3)}}


def inspect_sample() -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"id": "m", "role": "user", "content": "Look.", "source": "input"}]
    for i in range(TURNS):
        messages.append({"id": f"a{i}", "role": "assistant", "content": f"attachment://{i:032x}", "source": "generate"})
        messages.append({"id": f"u{i}", "role": "user", "content": f"Next: {words(i)}", "source": "operator"})
    events = [
        {"event": "model", "input": messages[: i + 1], "output": {"said": f"attachment://{i:032x}"}} for i in (1, 9)
    ]
    attachments = {f"{i:032x}": f"Said long ago: {words(100 + i)}" for i in range(TURNS)}
    return {"id": 1, "epoch": 1, "messages": messages, "events": events, "attachments": attachments, "scores": {}}


def covered(after: Any, of: int) -> list[int]:
    """The parts that the conversation does not hold any more."""
    told = json.dumps(after)
    return [i for i in range(of) if f"Line 20 of part {i}:" not in told]


@pytest.mark.parametrize("version", ["query", "plain"])
def test_a_trajectory_keeps_nothing_of_what_left_its_history(version: str) -> None:
    value = swe_agent(version)
    after = value_of(round_trip(value, "swe-agent"))
    kept = [message for message in after["history"] if "[compact/" not in message["content"]]
    gone = covered(kept, TURNS)
    assert len(gone) > TURNS // 2
    assert covered(after["trajectory"], TURNS) == gone
    assert after["info"] == value["info"]
    assert [list(step) for step in after["trajectory"]] == [list(step) for step in value["trajectory"]]
    assert all(not step.get("query") for step in after["trajectory"])


def test_events_and_attachments_keep_nothing_of_what_left_the_messages() -> None:
    value = inspect_sample()
    after = value_of(round_trip(value, "inspect"))
    gone = covered(after["messages"], TURNS)
    assert gone
    assert set(gone) <= set(covered(after["events"], TURNS))
    used = json.dumps(after["messages"])
    for key, text in after["attachments"].items():
        assert (text == LEFT_OUT) == (f"attachment://{key}" not in used)


def test_a_shortened_output_is_short_in_its_copy_too() -> None:
    raw = {"raw_output": words(1), "returncode": 0}
    told = {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{words(1)}</output>", "extra": raw}
    before = [{"role": "system", "content": "S", "extra": {}}, {"role": "user", "content": "I", "extra": {}}]
    document = {"info": {"mini_version": "1.0"}, "messages": [told, *before], "trajectory_format": "mini-swe-agent-1"}
    new = shortened("mini-swe", document, {0: "short"})
    assert (new["content"], new["extra"]) == ("short", {"raw_output": LEFT_OUT, "returncode": 0})


def test_lines_are_known_again_in_json_within_strings() -> None:
    gone = lines_between("first = compute_everything()\nelse:\n", "nothing")
    assert gone == {"first = compute_everything()"}
    copy = {"arguments": '{"code": "first = compute_everything()\\nelse:"}', "other": ["else:", 3]}
    assert scrubbed(copy, gone) == {"arguments": LEFT_OUT, "other": ["else:", 3]}
