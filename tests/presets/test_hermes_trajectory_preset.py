"""The preset hermes-trajectory: what Hermes' compressor of training data protects stays, and no more is summarised than
has to be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.plan import Action
from compactor_cli.model.settings import Settings, Size
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import count_messages, counter_for
from compactor_cli.presets import load_preset
from compactor_cli.read.jsonl import read_records

COUNTER = counter_for("auto", "")
PRESET = load_preset("hermes-trajectory").settings


def trajectory(steps: int, words: int = 120) -> Transcript:
    turns: list[dict[str, Any]] = [
        {"from": "system", "value": "You call functions."},
        {"from": "human", "value": "Plane all the boards."},
    ]
    for i in range(steps):
        call = json.dumps({"name": "plane", "arguments": {"board": i}})
        told = json.dumps({"name": "plane", "content": " ".join(f"shaving{i}x{n}" for n in range(words))})
        turns.append({"from": "gpt", "value": f"Board {i}.\n<tool_call>\n{call}\n</tool_call>"})
        turns.append({"from": "tool", "value": f"<tool_response>\n{told}\n</tool_response>"})
    turns.append({"from": "gpt", "value": "All boards are planed."})
    raw = json.dumps({"conversations": turns, "id": 1}).encode() + b"\n"
    (transcript,) = open_transcripts(read_records([raw], "row.jsonl"))
    return transcript


def compacted(transcript: Transcript, settings: Settings = PRESET) -> Compaction:
    return compact_transcript(transcript, settings, counter=COUNTER, summariser=Digest(), load_state=lambda _: None)


def test_a_row_below_the_target_stays() -> None:
    assert not compacted(trajectory(5)).changed


@pytest.mark.parametrize("steps", [40, 80, 200])
def test_first_exchange_and_newest_turns_stay_and_the_middle_only_as_far_as_needed(steps: int) -> None:
    transcript = trajectory(steps)
    done = compacted(transcript)
    kept = done.plan.indices(Action.KEEP)
    count = len(transcript.records)
    assert kept[:4] == (0, 1, 2, 3)
    assert kept[-4:] == tuple(range(count - 4, count))
    covered = done.plan.indices(Action.COVER)
    assert covered == tuple(range(4, covered[-1] + 1))
    assert done.plan.summary_tokens == 750
    assert done.report.tokens_after <= 15_250
    tokens = count_messages(COUNTER, transcript.messages)
    assert done.plan.tokens_kept + 750 + sum(tokens[covered[-1] - 1 : covered[-1] + 1]) > 15_250


def test_the_summary_is_a_human_turn_that_hermes_knows() -> None:
    (again,) = open_transcripts(read_records([compacted(trajectory(60)).output], "row.jsonl"))
    turn = again.records[4].value
    assert turn["from"] == "human"
    assert turn["value"].startswith("[CONTEXT SUMMARY]: ")
    assert again.messages[4].summary is not None
    assert not compacted(again).changed


def test_another_target_is_held_too() -> None:
    done = compacted(trajectory(40), replace(PRESET, target=Size(tokens=6_000)))
    assert done.report.tokens_after <= 6_000
    assert done.plan.indices(Action.KEEP)[:4] == (0, 1, 2, 3)
