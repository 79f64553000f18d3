"""What each preset decides about one sample, record by record. Run with UPDATE_CASES=1 to write it anew."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from compactor_cli.engine import plan_transcript
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.plan import Plan
from compactor_cli.model.settings import Size
from compactor_cli.plan.tokens import counter_for
from compactor_cli.presets import load_preset, preset_names
from compactor_cli.read.jsonl import read_records

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests/cases/presets"
SAMPLE = ROOT / "samples/openai-chat.jsonl"


def _planned(name: str) -> Plan:
    settings = replace(load_preset(name).settings, target=Size(tokens=4_000), tokenizer="chars/4")
    with SAMPLE.open("rb") as file:
        (transcript,) = open_transcripts(read_records(file, SAMPLE.name))
    return plan_transcript(transcript, settings, counter=counter_for("chars/4"))


def _told(plan: Plan) -> dict[str, object]:
    """The decision; of shortened texts the length and a hash, records counted from 0."""
    return {
        "reason": plan.reason,
        "records": [f"{s.start}-{s.stop - 1} {s.action.value} {s.name}".rstrip() for s in plan.spans],
        "shortened": {
            f"{edit.record}.{edit.part}": f"{len(edit.text)} {hashlib.sha256(edit.text.encode()).hexdigest()[:12]}"
            for edit in plan.edits
        },
        "tokens": [plan.tokens_before, plan.tokens_kept, plan.summary_tokens],
        "summary_at": plan.summary_at,
    }


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_decides_as_it_did(name: str) -> None:
    case = CASES / f"{name}.json"
    told = _told(_planned(name))
    if os.environ.get("UPDATE_CASES"):
        case.parent.mkdir(parents=True, exist_ok=True)
        case.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    assert json.loads(case.read_text(encoding="utf-8")) == told
