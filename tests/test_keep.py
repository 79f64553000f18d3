"""Whole runs with ``--keep``: what is kept apart is still sent, in every dialect, and a second run changes nothing."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.registry import Insertion, InsertionPoint, get
from compactor_cli.model.marker import find_marker
from compactor_cli.model.plan import Action, Mode
from compactor_cli.model.settings import SEMANTIC, SMART, Keep, Settings, Size
from compactor_cli.model.transcript import Role, Transcript
from compactor_cli.plan.tokens import counter_for
from compactor_cli.read.jsonl import read_records

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
NAMES = sorted(path.name for path in SAMPLES.iterdir() if "compacted" not in path.name)
COUNTER = counter_for("auto", "")


def opened(data: bytes, dialect: str = "") -> Transcript:
    records = read_records(data.splitlines(keepends=True), "made")
    return next(iter(open_transcripts(records, dialect=dialect, prefix=records.prefix)))


def compacted(made: Transcript, settings: Settings, mode: Mode = Mode.REWRITE) -> Compaction:
    return compact_transcript(
        made, settings, counter=COUNTER, summariser=Digest(), load_state=lambda name: None, mode=mode
    )


@pytest.mark.parametrize("by", [SMART, SEMANTIC])
@pytest.mark.parametrize("name", NAMES)
def test_what_stays_is_sent_in_its_order_and_a_second_run_changes_nothing(name: str, by: str) -> None:
    source = opened((SAMPLES / name).read_bytes())
    for settings in (
        Settings(target=Size(ratio=0.25), keep=Keep(by=by)),
        Settings(keep=Keep(by=by, head_turns=0, tail_tokens=0, tail_messages=6)),
    ):
        done = compacted(source, settings)
        if not done.changed:
            continue
        again = opened(done.output, source.dialect)
        sent = [m.parts for m in again.messages if not (m.is_meta or m.superseded or m.summary)]
        edited = {edit.record for edit in done.plan.edits}
        kept = [i for i in done.plan.indices(Action.KEEP) if i not in edited and not source.messages[i].is_meta]
        rest = iter(sent)
        assert all(any(parts == source.messages[i].parts for parts in rest) for i in kept)
        assert not compacted(again, settings).changed


def made(tree: str, number: int = 30) -> Transcript:
    """A session of a client whose records link to each other: asked once, then calls with their results."""
    lines = [_line(tree, 0, "user", "Please survey the harbour.")]
    for n in range(1, number):
        words = f"gauge_{n}.csv " * 40 if n % 7 == 0 else "and so it goes on " * 40
        lines.append(_line(tree, n, "assistant" if n % 2 else "user", words))
    head = [] if tree == "claude-code" else [{"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/w"}]
    return opened(b"".join(json.dumps(line).encode() + b"\n" for line in (*head, *lines)))


def _line(tree: str, n: int, role: str, words: str) -> dict[str, Any]:
    at = f"2026-03-01T10:00:{n:02d}.000Z"
    said = {"role": role, "content": [{"type": "text", "text": words}]}
    if tree == "claude-code":
        ids = {"uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": "S", "isSidechain": False}
        return {**ids, "type": role, "message": said, "timestamp": at, "cwd": "/w", "version": "2.1.0"}
    return {"type": "message", "id": f"i{n}", "parentId": f"i{n - 1}" if n else None, "timestamp": at, "message": said}


@pytest.mark.parametrize(("tree", "own", "parent"), [("claude-code", "uuid", "parentUuid"), ("pi", "id", "parentId")])
def test_the_chain_from_the_newest_record_holds_all_that_stays(tree: str, own: str, parent: str) -> None:
    source = made(tree)
    done = compacted(source, Settings(keep=Keep(by=SMART, head_turns=0, tail_tokens=1_200)))
    values = [json.loads(line) for line in done.output.splitlines()]
    by_id = {value[own]: value for value in values if value["type"] != "session"}
    chain = [values[-1]]
    while chain[-1].get(parent) in by_id:
        chain.append(by_id[chain[-1][parent]])
    assert not chain[-1].get(parent)
    on_chain = [value[own] for value in reversed(chain)]
    records = [source.records[i].value for i in done.plan.indices(Action.KEEP)]
    kept = [value[own] for value in records if value["type"] != "session"]
    runs = sum(int(key[1:]) != int(before[1:]) + 1 for before, key in pairwise(kept))
    assert runs >= 1
    assert [key for key in on_chain if key in kept] == kept
    assert len(by_id) == sum(value["type"] != "session" for value in values)


def test_the_summary_names_the_gaps() -> None:
    source = opened((SAMPLES / "claude-code.jsonl").read_bytes())
    smart = compacted(source, Settings(target=Size(ratio=0.25), keep=Keep(by=SMART)))
    newest = compacted(source, Settings(target=Size(ratio=0.25)))
    found = find_marker(smart.summary_text)
    assert found is not None
    assert "with gaps between them" in found.kept_outside
    assert "kept as they were" not in newest.summary_text
    assert smart.report.tokens_after <= smart.report.target_tokens


def test_appended_boundaries_keep_apart_only_where_the_client_can() -> None:
    settings = Settings(target=Size(ratio=0.25), keep=Keep(by=SMART))
    for name, holds in (("claude-code.jsonl", False), ("codex-rollout.jsonl", True)):
        source = opened((SAMPLES / name).read_bytes())
        done = compacted(source, settings, Mode.APPEND)
        assert done.changed
        assert done.output.startswith(source.source())
        covered = [i for i in done.plan.indices(Action.COVER) if not source.messages[i].is_meta]
        between = [
            i for i in done.plan.indices(Action.KEEP) if covered[0] < i < covered[-1] and not source.messages[i].is_meta
        ]
        assert bool(between) == holds


def test_an_opencode_summary_stands_before_what_is_kept_right_after_the_head() -> None:
    source = opened((SAMPLES / "opencode-export.json").read_bytes())
    head, island = source.records[0].value["info"]["id"], source.records[1].value["info"]["id"]
    cut = InsertionPoint(before=(0,), after=(1, len(source.records) - 1))
    new = get("opencode").insert(source, cut, (Insertion(role=Role.USER, text="What was done.", is_summary=True),))
    ids = [json.loads(raw)["info"]["id"] for raw in new]
    assert [head, *ids, island] == sorted([head, *ids, island])
